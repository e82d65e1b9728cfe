//! The loop of a run: finished jobs in, records out, until the input ends or something stops it.

use super::claims::Claims;
use super::exit_sample::{ExitSamples, Sampling};
use super::feed::{self, Board, Feed, Flying, PassSettings, What};
use super::input;
use super::keep::Keep;
use super::record::{Record, class_of, millis};
use super::report::Progress;
use super::settling::{Ending, Settling};
use super::sink::{Sink, SinkError};
use super::stop::Stopped;
use super::syncing::sync_bodies;
use super::tally::Tally;
use super::watch::{Wanted, Watch};
use super::window::Window;
use crate::message::Setting;
use crate::policy::{Class, LastOutcomes, Timeouts};
use crate::time::Clock;
use crate::workers::{Finished, PoolStats};
use std::borrow::Cow;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How many failed URLs are held back for another pass, with their requests and attempts. A URL
/// that fails beyond that is written as failed at once.
pub(super) const MOST_HELD: usize = 100_000;

/// The least time between two calls of `on_progress`.
const PROGRESS_EVERY: Duration = Duration::from_millis(100);

/// What the loop needs of a worker pool.
pub(super) trait Jobs {
    /// Feeds the jobs and hands out each that is finished, and now and then nothing, so that time
    /// can be told while everything waits.
    fn run(&self, jobs: Feed, take: &mut dyn FnMut(Option<Finished>));
    fn stats(&self) -> PoolStats;
    fn abort(&self);
    /// Takes no more; what flies finishes.
    fn close(&self, cause: String);
    /// Why the pool takes no more, where it does not.
    fn stopped(&self) -> Option<Stopped>;
}

/// Is told how far the run is.
pub(super) type OnProgress = Box<dyn FnMut(&Progress) + Send>;
/// Is told of each record after it was written.
pub(super) type OnRecord = Box<dyn FnMut(&Record) + Send>;

/// What a run is made of.
pub(super) struct Run<'a, J> {
    pub(super) jobs: &'a J,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) sink: Box<dyn Sink>,
    /// Whether the sink is to make each record durable before the next.
    pub(super) sync_each: bool,
    pub(super) max_deliveries: u32,
    pub(super) keep: Keep,
    pub(super) passes: u32,
    pub(super) pass_settings: PassSettings,
    pub(super) most_held: usize,
    /// The same for jobs under a lease, which nobody else gets meanwhile.
    pub(super) most_leased: usize,
    pub(super) total: Option<u64>,
    /// The deadline of a URL in one pass, where it has no timeouts of its own.
    pub(super) deadline: Option<Duration>,
    pub(super) sampling: Option<Sampling>,
    pub(super) window: Window,
    pub(super) stop_on_failures: Option<LastOutcomes>,
    pub(super) on_progress: Option<OnProgress>,
    pub(super) on_record: Option<OnRecord>,
    pub(super) watched: Wanted,
}

/// What a run came to.
#[derive(Debug)]
pub(super) struct Ended {
    pub(super) tally: Tally,
    pub(super) unfinished: u64,
    pub(super) repeated: u64,
    pub(super) dead_lettered: u64,
    pub(super) lost: u64,
    pub(super) passes: u32,
    pub(super) elapsed: Duration,
    pub(super) exits: Option<ExitSamples>,
    pub(super) stopped: Option<Stopped>,
}

/// What changes while it runs.
struct State {
    started: Instant,
    told: Option<Instant>,
    board: Board,
    settling: Settling,
    tally: Tally,
    watch: Watch,
    pass: u32,
    held: Vec<Flying>,
    unfinished: u64,
    stopped: Option<Stopped>,
    /// Why no more is taken, while what flies finishes.
    closing: Option<Stopped>,
}

impl<J: Jobs> Run<'_, J> {
    /// Runs the jobs of the input to their end.
    pub(super) fn run(mut self, input: input::Jobs) -> Ended {
        let board = Board::default();
        let started = self.clock.now();
        let mut state = State {
            started,
            told: None,
            board: board.clone(),
            settling: Settling::new(Arc::clone(&input.source), board.clone()),
            tally: Tally::new(),
            watch: Watch::begin(std::mem::take(&mut self.watched), self.total, started),
            pass: 1,
            held: Vec::new(),
            unfinished: 0,
            stopped: None,
            closing: None,
        };
        let jobs = self.jobs;
        let input = feed::Input {
            claims: Claims::new(input, board.clone(), Arc::clone(&self.clock)),
            keep: self.passes > 1,
            max_deliveries: self.max_deliveries,
        };
        let mut feed = Feed::input(input, board.clone());
        loop {
            self.tell(&mut state, true);
            let feed_now = feed.with_samples(self.sampling.as_ref().map(Sampling::plan));
            jobs.run(feed_now, &mut |finished| {
                self.keep_leases(&mut state);
                match finished {
                    Some(finished) => self.take(finished, &mut state),
                    None => self.tick(&mut state),
                }
                state.settling.settle(self.sink.durable(), self.clock.now());
                self.tell(&mut state, false);
                self.look_at_the_clock(&mut state);
            });
            if state.stopped.is_none() {
                state.stopped = state.closing.take().or_else(|| jobs.stopped());
            }
            let is_over = state.stopped.is_some() || state.pass >= self.passes;
            if is_over || state.held.is_empty() || board.lock().broken.is_some() {
                break;
            }
            state.pass += 1;
            let mut held = std::mem::take(&mut state.held);
            held.retain(|flying| state.settling.holds(flying.lease.as_ref()));
            let keep = state.pass < self.passes;
            state.watch.begin_pass(state.pass, held.len(), self.clock.now());
            feed = Feed::held(held, board.clone(), keep, self.pass_settings.clone());
        }
        self.finish(state)
    }

    fn finish(mut self, mut state: State) -> Ended {
        let now = self.clock.now();
        if let Err(error) = self.sink.sync(now) {
            state.stopped.get_or_insert(Stopped::of_sink(error));
        }
        if let Err(error) = state.settling.finish(self.sink.durable()) {
            state.stopped.get_or_insert(Stopped::SourceFailed(error));
        }
        self.tell(&mut state, true);
        state.watch.end();
        if let Some(error) = state.board.lock().broken.take() {
            state.stopped.get_or_insert(Stopped::SourceFailed(error));
        }
        Ended {
            unfinished: state.unfinished + state.held.len() as u64,
            repeated: state.settling.repeated(),
            dead_lettered: state.settling.dead_lettered(),
            lost: state.settling.lost(),
            passes: state.pass,
            elapsed: now.saturating_duration_since(state.started),
            tally: state.tally,
            exits: self.sampling.as_ref().map(Sampling::summary),
            stopped: state.stopped,
        }
    }

    fn take(&mut self, mut finished: Finished, state: &mut State) {
        let mut flying = state.board.take(finished.index);
        let is_void = finished.is_cancelled() || state.stopped.is_some();
        if flying.as_ref().is_some_and(|flying| flying.what == What::Sample) {
            if !is_void {
                self.take_sample(&finished, state);
            }
            return;
        }
        if is_void {
            state.settling.drop_job(flying.as_mut().and_then(|flying| flying.lease.take()));
        }
        let Some(mut flying) = flying.filter(|_| !is_void) else {
            state.unfinished += 1;
            return;
        };
        if !state.settling.holds(flying.lease.as_ref()) {
            // Somebody else has the job, and writes its record.
            return;
        }
        finished.url = std::mem::take(&mut flying.url);
        finished.method = flying.method.clone();
        let is_bad = flying.what == What::Bad;
        let class = if is_bad { Class::Input } else { class_of(&finished) };
        let mut record = Record::of(&finished, &flying.id, state.pass, self.clock.wall());
        let again = matches!(class, Class::Retryable | Class::Refused);
        self.heed_failures(class, &mut state.closing);
        let is_leased = flying.lease.is_some();
        let most_held = if is_leased { self.most_leased } else { self.most_held };
        let held = again
            && state.pass < self.passes
            && flying.request.is_some()
            && state.held.len() < most_held;
        state.watch.pass_end(&finished, &record, held);
        record = record.after(std::mem::take(&mut flying.earlier));
        if held {
            let kept = self.keep.store_earlier(&finished, self.clock.wall());
            flying.url = finished.url;
            if let (Some(last), refused @ Some(_)) =
                (record.attempts.last_mut(), record.refused.take())
            {
                last.refused = refused;
            }
            flying.earlier = record.attempts;
            state.held.push(flying);
            if let Err(error) = kept {
                self.fail(error, state);
            }
            return;
        }
        record.class = Cow::Borrowed(class.name());
        record.ok = class == Class::Ok;
        record.meta = flying.meta.take();
        if !record.attempts.is_empty() {
            record.promised_ms = self.promise(&flying.timeouts).map(millis);
        }
        match self.write(&finished, &mut record) {
            Ok(()) => {
                if record.is_of_the_run() {
                    // A resumption drops the record and does the job; so the queue must have it.
                    state.settling.wrote(None, Ending::Acknowledge);
                    state.settling.drop_job(flying.lease);
                } else {
                    let ending = Ending::of(flying.what, &record);
                    state.settling.wrote(flying.lease, ending);
                }
                state.tally.add(&record);
                state.watch.written(&record, self.clock.now());
                if let Some(told) = &mut self.on_record {
                    told(&record);
                }
            }
            Err(error) => {
                state.unfinished += 1;
                self.fail(error, state);
            }
        }
    }

    /// How long a URL with these timeouts of its own could take at most in one pass: its deadline and
    /// nothing else. What is computed from a policy leaves out bodies and waits, which the time of the
    /// URL has.
    fn promise(&self, own: &Setting<Timeouts>) -> Option<Duration> {
        match own {
            Setting::Inherit => self.deadline,
            Setting::Set(own) => own.deadline(),
            Setting::Unset => None,
        }
    }

    /// Stops by the share of failures. A permanent answer (404, 410) is no failure: the site has told
    /// what it has to say of the URL. Input that describes no request says nothing of the site.
    fn heed_failures(&mut self, class: Class, closing: &mut Option<Stopped>) {
        let Some(last) = self.stop_on_failures.as_mut().filter(|_| class != Class::Input) else {
            return;
        };
        let failed = matches!(class, Class::Retryable | Class::Refused | Class::ProxyAuth);
        if let (Some(failures), None, None) = (last.note(failed), &closing, self.jobs.stopped()) {
            let stopped = Stopped::FailureShare { rule: last.rule(), failures };
            self.jobs.close(stopped.to_string());
            *closing = Some(stopped);
        }
    }

    fn look_at_the_clock(&mut self, state: &mut State) {
        if state.closing.is_some() || self.window == Window::default() {
            return;
        }
        let closed = self.window.closed(state.started, self.clock.now(), self.clock.wall());
        if let (Some(cause), None) = (closed, self.jobs.stopped()) {
            self.jobs.close(cause.clone());
            state.closing = Some(Stopped::TimeUp(cause));
        }
    }

    /// Extends the leases; without them, what is done here is done elsewhere too.
    fn keep_leases(&mut self, state: &mut State) {
        let Err(error) = state.settling.extend(self.clock.now()) else { return };
        if let (None, None) = (&state.closing, self.jobs.stopped()) {
            self.jobs.close(error.message().to_owned());
            state.closing = Some(Stopped::SourceFailed(error));
        }
    }

    /// Lets time go on for the sink while nothing ends.
    fn tick(&mut self, state: &mut State) {
        if state.stopped.is_none()
            && let Err(error) = self.sink.tick(self.clock.now())
        {
            self.fail(error, state);
        }
    }

    /// Ends the run: nothing that comes now can be kept, so there is no use in finishing it.
    fn fail(&mut self, error: SinkError, state: &mut State) {
        state.stopped = Some(Stopped::of_sink(error));
        state.board.end();
        self.jobs.abort();
    }

    fn take_sample(&mut self, finished: &Finished, state: &mut State) {
        let taken = self.sampling.as_mut().map(|sampling| sampling.take(finished));
        if let Some(Ok(Some(exit))) = taken {
            state.watch.note_exit(exit);
        }
        if let Some(Err(leak)) = taken {
            state.stopped =
                Some(Stopped::Failure { kind: leak.kind(), message: leak.message().to_owned() });
            state.board.end();
            self.jobs.abort();
        }
    }

    fn write(&mut self, finished: &Finished, record: &mut Record) -> Result<(), SinkError> {
        self.keep.store(finished, record, self.clock.wall())?;
        if let Some(files) = self.keep.unsynced().filter(|files| !files.is_empty()) {
            if self.sync_each {
                sync_bodies(&std::mem::take(files))?;
            } else {
                self.sink.rely_on(files)?;
            }
        }
        let response = match &finished.result {
            Ok(response) => Some(response),
            Err(error) => error.response(),
        };
        let now = self.clock.now();
        self.sink.write(record, response, now)?;
        if self.sync_each { self.sink.sync(now) } else { Ok(()) }
    }

    fn tell(&mut self, state: &mut State, always: bool) {
        let now = self.clock.now();
        let is_soon =
            state.told.is_some_and(|last| now.saturating_duration_since(last) < PROGRESS_EVERY);
        if is_soon && !always {
            return;
        }
        state.told = Some(now);
        let stats = self.jobs.stats();
        state.watch.tick(&stats, now);
        let Some(told) = &mut self.on_progress else { return };
        let progress = Progress {
            elapsed: now.saturating_duration_since(state.started),
            total: self.total,
            ok: state.tally.ok(),
            failed: state.tally.failed(),
            held: state.held.len() as u64,
            pass: state.pass,
            ..Progress::default()
        };
        told(&state.watch.complete(progress, &stats, now));
    }
}

#[cfg(test)]
mod queue_tests;
#[cfg(test)]
mod tests;
