//! The settings of a run, and the order in which it begins.
//!
//! Everything that can be wrong is looked at before the first request leaves, and in this order:
//! settings, results (locked and read, not changed), input, exits. Only then are the results
//! touched.

mod outputs;

use super::Record;
use super::exit_check::check_exits;
use super::exit_sample::Sampling;
use super::feed::{Feed, PassSettings};
use super::input::Input;
use super::journal::{Done, Existing, Found, Journal};
use super::pace::Bounds;
use super::report::{FoundConcurrency, Plan, Progress, Summary};
use super::run::{Ended, Jobs, MOST_HELD, OnProgress, OnRecord, Run};
use super::sink::Sink;
use super::source::Known;
use super::stop::{Outcome, Stopped};
use super::tally::Exceptions;
use super::tally_file::{TallyFile, check_apart};
use super::warc::WarcFiles;
use super::watch::{OnAlarm, OnPassEnd, Wanted};
use super::window::{NAP, Window};
use super::writer::RecordWriter;
use crate::error::{Error, ErrorKind};
use crate::message::Response;
use crate::policy::{
    BlockPage, Bound, Concurrency, DisconnectRise, FailureShare, LastOutcomes, Retry, SlowLane,
    Timeouts,
};
use crate::proxy::ProxyUrl;
use crate::session::{Refusals, SessionBuilder};
use crate::time::{Clock, SystemClock};
use crate::workers::{Finished, PoolStats, StopReason, Stopper, WorkerPool};
use outputs::Outputs;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

/// How often the taking side looks up while nothing ends.
const TICK: Duration = Duration::from_millis(100);

/// How often is told that the run still waits for its time.
const TELL_EVERY: Duration = Duration::from_secs(1);

/// How often a job is handed out at most. A process that works on it can be killed for other
/// reasons a few times, a new version or a machine that is taken away; whoever has died over one job
/// five times is not unlucky.
const MAX_DELIVERIES: u32 = 5;

/// Where the records go.
enum To {
    File(PathBuf, Existing),
    Sink(Box<dyn Sink>),
}

impl fmt::Debug for To {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path, existing) => write!(f, "File({}, {existing:?})", path.display()),
            Self::Sink(_) => f.write_str("Sink"),
        }
    }
}

/// What the first step of a run has found out.
#[derive(Debug)]
struct Prepared {
    plan: Plan,
    journal: Option<Journal>,
    tally: Option<TallyFile>,
    warc: Option<WarcFiles>,
    known: Known,
}

/// A run over a source into a sink.
///
/// # Examples
/// ```no_run
/// use longhaul::{Batch, Retry, Session, batch::Source};
///
/// # fn main() -> Result<(), longhaul::Error> {
/// let session = Session::builder().retry(Retry::long_run());
/// let outcome = Batch::builder(session)
///     .source(Source::file("urls.txt"))
///     .output("results.jsonl")
///     .workers(24)
///     .build()?
///     .run()?;
/// println!("{} of {} URLs", outcome.summary.ok, outcome.summary.urls);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
#[must_use]
pub struct Batch {
    settings: BatchBuilder,
    pool: WorkerPool,
    prepared: Option<Prepared>,
}

/// Builds a [`Batch`].
#[must_use]
pub struct BatchBuilder {
    session: SessionBuilder,
    source: Input,
    max_deliveries: u32,
    to: Option<To>,
    existing: Existing,
    workers: Option<usize>,
    permits: Option<usize>,
    concurrency: Concurrency,
    per_host: Option<usize>,
    rate: Option<f64>,
    rate_burst: Option<u32>,
    host_rate: Option<f64>,
    host_rate_burst: Option<u32>,
    refusals: Refusals,
    sync_each: bool,
    outputs: Outputs,
    passes: u32,
    pass_retry: Option<Retry>,
    pass_timeouts: Option<Timeouts>,
    exit_check: Option<(String, Vec<ProxyUrl>)>,
    exit_sample: Option<u64>,
    window: Window,
    stop_on_failures: Option<FailureShare>,
    on_abort: Option<Arc<dyn Fn() + Send + Sync>>,
    on_progress: Option<OnProgress>,
    on_record: Option<OnRecord>,
    on_pass_end: Option<OnPassEnd>,
    on_alarm: Option<OnAlarm>,
    tally: Option<PathBuf>,
    clock: Arc<dyn Clock>,
}

impl BatchBuilder {
    /// The input: a [`Source`](super::Source) of lines, an iterator
    /// ([`IterSource`](super::IterSource)), or any other [`JobSource`](super::JobSource).
    pub fn source(mut self, source: impl Into<Input>) -> Self {
        self.source = source.into();
        self
    }

    /// How often a job may be handed out by a queue. One that comes more often is not tried: it gets
    /// a record of the kind `internal` and goes to the dead letters, since it may be what ends the
    /// processes that work on it.
    ///
    /// # Defaults
    /// 5.
    pub fn max_deliveries(mut self, count: u32) -> Self {
        self.max_deliveries = count;
        self
    }

    /// A file for the results; `-` is standard output. A name in `.zst` is compressed, with the
    /// feature `zstd`.
    ///
    /// # Defaults
    /// Standard output.
    pub fn output(mut self, path: impl Into<PathBuf>) -> Self {
        let path = path.into();
        self.to = if path.as_os_str() == "-" { None } else { Some(To::File(path, self.existing)) };
        self
    }

    /// A sink of one's own for the results. It cannot be resumed from.
    pub fn sink(mut self, sink: impl Sink + 'static) -> Self {
        self.to = Some(To::Sink(Box::new(sink)));
        self
    }

    /// What to do with results that are in the file already.
    ///
    /// # Defaults
    /// [`Existing::Refuse`].
    pub fn existing(mut self, existing: Existing) -> Self {
        self.existing = existing;
        self
    }

    /// How many URLs are attempted at once; with [`Concurrency::Adaptive`], at most.
    ///
    /// # Defaults
    /// That of [`WorkerPool`](crate::workers::WorkerPoolBuilder::workers).
    pub fn workers(mut self, workers: usize) -> Self {
        self.workers = Some(workers);
        self
    }

    /// How many URLs are held at once at most, in whatever state. With a queue that others share, what
    /// is held nobody else has, and besides, up to 32 jobs are in hand; but URLs that were told to
    /// wait count, too, and leave fewer for those that could be sent.
    ///
    /// # Defaults
    /// That of [`WorkerPool`](crate::workers::WorkerPoolBuilder::permits).
    pub fn permits(mut self, urls: usize) -> Self {
        self.permits = Some(urls);
        self
    }

    /// Whether all workers work from the beginning on, or as many as the other side bears; what was
    /// found is in [`Summary::concurrency`].
    ///
    /// # Defaults
    /// [`Concurrency::Fixed`].
    pub fn concurrency(mut self, concurrency: Concurrency) -> Self {
        self.concurrency = concurrency;
        self
    }

    /// At most so many attempts at once to one host, hops of redirects included.
    ///
    /// # Defaults
    /// Unlimited.
    pub fn per_host(mut self, attempts: usize) -> Self {
        self.per_host = Some(attempts);
        self
    }

    /// At most so many attempts per second over all hosts, retries, the hops of redirects and exit
    /// checks included; see
    /// [`WorkerPoolBuilder::rate`](crate::workers::WorkerPoolBuilder::rate).
    ///
    /// # Defaults
    /// Unlimited.
    pub fn rate(mut self, per_second: f64) -> Self {
        self.rate = Some(per_second);
        self
    }

    /// How many attempts of [`rate`](Self::rate) may be made at once; see
    /// [`WorkerPoolBuilder::rate_burst`](crate::workers::WorkerPoolBuilder::rate_burst).
    ///
    /// # Defaults
    /// 1; with 200 a second or more what falls into 10 ms.
    pub fn rate_burst(mut self, attempts: u32) -> Self {
        self.rate_burst = Some(attempts);
        self
    }

    /// At most so many attempts per second to one host, counted as for [`rate`](Self::rate).
    ///
    /// # Defaults
    /// Unlimited.
    pub fn host_rate(mut self, per_second: f64) -> Self {
        self.host_rate = Some(per_second);
        self
    }

    /// How many attempts of [`host_rate`](Self::host_rate) may be made at once to one host.
    ///
    /// # Defaults
    /// 1; with 200 a second or more what falls into 10 ms.
    pub fn host_rate_burst(mut self, attempts: u32) -> Self {
        self.host_rate_burst = Some(attempts);
        self
    }

    /// What becomes of a URL that is refused; see
    /// [`WorkerPoolBuilder::slow_lane`](crate::workers::WorkerPoolBuilder::slow_lane).
    ///
    /// # Defaults
    /// [`SlowLane::default`]: once more, 20 s later, 5 s apart on one host. `None` leaves it at the
    /// refusal.
    pub fn slow_lane(mut self, lane: impl Into<Option<SlowLane>>) -> Self {
        self.refusals.lane = lane.into();
        self
    }

    /// What else is a refusal, by status, field or text of the body. What matched stands in the
    /// record.
    ///
    /// # Defaults
    /// Nothing: 403 alone.
    pub fn block_page(mut self, page: BlockPage) -> Self {
        self.refusals.page = page;
        self
    }

    /// What else is a refusal, by a rule that is shown each response; see
    /// [`WorkerPoolBuilder::block_when`](crate::workers::WorkerPoolBuilder::block_when).
    ///
    /// # Defaults
    /// None.
    pub fn block_when(
        mut self,
        rule: impl Fn(&Response) -> Option<String> + Send + Sync + 'static,
    ) -> Self {
        self.refusals.rule = Some(Arc::new(rule));
        self
    }

    /// Whether each record is durable before the next is written, and before anybody is told of it:
    /// then a crash of the machine loses none. It costs one `fsync` a record, and one more for a
    /// body that is kept.
    ///
    /// # Defaults
    /// No: a crash of the machine can take what was written in about the last second, at most
    /// 10 000 records. A killed process loses nothing that was written, either way.
    pub fn sync_each(mut self, each: bool) -> Self {
        self.sync_each = each;
        self
    }

    /// How many passes there are at most; see the [module](super).
    ///
    /// A pass begins when the input has ended. Jobs of a queue stay under their leases until then, so
    /// of those no more than [`permits`](Self::permits) are held back; what fails beyond that is
    /// written as failed, and acknowledged. With a queue that stays open no second pass begins: leave
    /// this at 1, and retries to [`Retry`] and to the queue.
    ///
    /// # Defaults
    /// 1: what failed is not passed over again.
    pub fn passes(mut self, passes: u32) -> Self {
        self.passes = passes;
        self
    }

    /// The retry policy of the passes after the first.
    ///
    /// # Defaults
    /// That of the first.
    pub fn pass_retry(mut self, retry: Retry) -> Self {
        self.pass_retry = Some(retry);
        self
    }

    /// Not before this time: until then nothing is sent, exit checks included. Settings, results
    /// and input are looked at before. [`Progress::starts_in`] tells how long it still is.
    ///
    /// # Defaults
    /// At once.
    pub fn start_at(mut self, time: SystemTime) -> Self {
        self.window.start_at = Some(time);
        self
    }

    /// Not beyond this time: the run ends as by [`Stopper::close`], what flies finishes, and what
    /// is left is done by a resumption. The outcome is [`Stopped::TimeUp`].
    ///
    /// # Defaults
    /// As long as it takes.
    pub fn stop_at(mut self, time: SystemTime) -> Self {
        self.window.stop_at = Some(time);
        self
    }

    /// Not for longer than this, from when it began; ends as by [`stop_at`](Self::stop_at).
    ///
    /// # Defaults
    /// As long as it takes.
    pub fn max_time(mut self, time: Duration) -> Self {
        self.window.max_time = Some(time);
        self
    }

    /// Stops where too large a share of the last URLs failed: what flies finishes, and what is left
    /// is done by a resumption. The outcome is [`Stopped::FailureShare`].
    ///
    /// URLs of the classes *retryable*, *refused* and *proxy auth* count as failed, those held back
    /// for another pass included; a permanent answer such as 404 does not, and lines that describe
    /// no request are not counted at all.
    ///
    /// # Defaults
    /// Never.
    pub fn stop_on_failures(mut self, rule: FailureShare) -> Self {
        self.stop_on_failures = Some(rule);
        self
    }

    /// The timeouts of the passes after the first.
    ///
    /// # Defaults
    /// Those of the first.
    pub fn pass_timeout(mut self, timeouts: impl Into<Timeouts>) -> Self {
        self.pass_timeouts = Some(timeouts.into());
        self
    }

    /// Asks this URL for the own address before the run, directly and through each proxy; see
    /// [`exit_check`](super::exit_check()).
    ///
    /// # Defaults
    /// No check.
    pub fn exit_check(
        mut self,
        url: impl Into<String>,
        proxies: impl IntoIterator<Item = ProxyUrl>,
    ) -> Self {
        self.exit_check = Some((url.into(), proxies.into_iter().collect()));
        self
    }

    /// Asks the URL of [`exit_check`](Self::exit_check) again after every so many URLs, on
    /// whichever worker is free and through whichever proxy is due; see [`ExitSamples`]. A sample
    /// that shows the own address stops the run and cuts what flies.
    ///
    /// Samples count against the limits of rate and parallel attempts, and are in no record.
    ///
    /// # Defaults
    /// No samples.
    ///
    /// [`ExitSamples`]: super::ExitSamples
    pub fn exit_sample(mut self, every: u64) -> Self {
        self.exit_sample = Some(every);
        self
    }

    /// What [`Stopper::abort`] calls, once, to cut what flies.
    ///
    /// # Defaults
    /// Nothing: an attempt that flies ends by its own timeouts.
    pub fn on_abort(mut self, cut: impl Fn() + Send + Sync + 'static) -> Self {
        self.on_abort = Some(Arc::new(cut));
        self
    }

    /// Is told how far the run is: at its start and end, and about ten times a second between.
    ///
    /// It is called on the thread of [`Batch::run`], which writes the records; it should be quick.
    pub fn on_progress(mut self, told: impl FnMut(&Progress) + Send + 'static) -> Self {
        self.on_progress = Some(Box::new(told));
        self
    }

    /// Is told of each record after it was written, on the same thread.
    pub fn on_record(mut self, told: impl FnMut(&Record) + Send + 'static) -> Self {
        self.on_record = Some(Box::new(told));
        self
    }

    /// Is told of each URL at the end of each of its passes, on the same thread: a record with the
    /// attempts of that pass alone. Every attempt of each URL that comes to the end of a pass is told
    /// exactly once, also where the URL is held back for another pass and its record is still to
    /// come. What does not come to one is not told: URLs that are cut or whose lease is lost, samples
    /// of the exits, and what ends after the results can no longer be kept.
    pub fn on_pass_end(mut self, told: impl FnMut(&Record) + Send + 'static) -> Self {
        self.on_pass_end = Some(Box::new(told));
        self
    }

    /// Is told when connections begin to break more often than they did, once for each rise, on the
    /// same thread; see [`DisconnectAlarm`](crate::policy::DisconnectAlarm). It is a warning of the
    /// log, too.
    pub fn on_alarm(mut self, told: impl FnMut(&DisconnectRise) + Send + 'static) -> Self {
        self.on_alarm = Some(Box::new(told));
        self
    }

    /// Keeps the table of [`Exceptions`] in this file while the run goes on: failed attempts by hour,
    /// exception and exit, as tab-separated values.
    ///
    /// The file is whole whenever it is read, and at most a second behind the records. A resumption
    /// goes on with it and counts from the records what a kill has kept out of it; without one, a file
    /// that holds something is refused.
    ///
    /// # Defaults
    /// No file; [`Outcome::tally`] has the table in the end.
    pub fn tally(mut self, path: impl Into<PathBuf>) -> Self {
        self.tally = Some(path.into());
        self
    }

    /// The clock of the run and of its workers.
    ///
    /// # Defaults
    /// [`SystemClock`].
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = clock;
        self
    }

    /// Checks the settings and starts the threads, which have nothing to do yet.
    ///
    /// # Errors
    /// `Config` for settings that cannot work, and those of
    /// [`WorkerPoolBuilder::build`](crate::workers::WorkerPoolBuilder::build).
    pub fn build(mut self) -> Result<Batch, Error> {
        if self.source.is_empty() {
            return Err(Error::config("there is no input; give a source of URLs"));
        }
        if let Some(timeouts) = &self.pass_timeouts {
            timeouts.validate()?;
        }
        if self.passes == 0 {
            return Err(Error::config("passes is 0, with which nothing is sent; give 1 or more"));
        }
        if self.exit_sample.is_some() && self.exit_check.is_none() {
            return Err(Error::config(
                "the exits cannot be sampled without an endpoint; give the URL of an exit check",
            ));
        }
        if self.max_deliveries == 0 {
            return Err(Error::config(
                "max_deliveries is 0, with which every job is a dead letter; give 1 or more",
            ));
        }
        self.outputs.check(matches!(self.to, Some(To::File(..))))?;
        self.session = self.outputs.heeded_by(self.session);
        self.window.check(self.clock.wall())?;
        if self.exit_sample == Some(0) {
            return Err(Error::config("a sample after every 0 URLs is none; give 1 or more"));
        }
        match &mut self.to {
            Some(To::File(_, existing)) => *existing = self.existing,
            Some(To::Sink(_)) | None if self.existing != Existing::Refuse => {
                return Err(Error::config(
                    "only a results file can be resumed or overwritten; name one as the output",
                ));
            }
            Some(To::Sink(_)) | None => {}
        }
        let mut pool = WorkerPool::builder(self.session.clone())
            .clock(Arc::clone(&self.clock))
            .concurrency(self.concurrency)
            .stop_on([ErrorKind::ProxyAuth, ErrorKind::ExitLeak, ErrorKind::NoProxyAlive]);
        pool = pool.refusals(self.refusals.clone());
        if let Some(workers) = self.workers {
            pool = pool.workers(workers);
        }
        if let Some(permits) = self.permits {
            pool = pool.permits(permits);
        }
        if let Some(per_host) = self.per_host {
            pool = pool.per_host(per_host);
        }
        if let Some(rate) = self.rate {
            pool = pool.rate(rate);
        }
        if let Some(burst) = self.rate_burst {
            pool = pool.rate_burst(burst);
        }
        if let Some(rate) = self.host_rate {
            pool = pool.host_rate(rate);
        }
        if let Some(burst) = self.host_rate_burst {
            pool = pool.host_rate_burst(burst);
        }
        if let Some(cut) = self.on_abort.take() {
            pool = pool.on_abort(move || cut());
        }
        Ok(Batch { pool: pool.build()?, settings: self, prepared: None })
    }
}

impl BatchBuilder {
    /// The longest time of one URL within any of the passes.
    fn promised(&self) -> Bound {
        let of = |session: &SessionBuilder| match session.settings().timeouts.deadline() {
            Some(deadline) => Bound::At(deadline),
            None => session.worst_case(),
        };
        let first = of(&self.session);
        if self.passes < 2 {
            return first;
        }
        let mut later = self.session.clone();
        if let Some(retry) = &self.pass_retry {
            later = later.retry(retry.clone());
        }
        if let Some(timeouts) = self.pass_timeouts {
            later = later.timeout(timeouts);
        }
        match (first, of(&later)) {
            (Bound::At(first), Bound::At(later)) => Bound::At(first.max(later)),
            (unbounded @ Bound::Unbounded { .. }, _) | (_, unbounded) => unbounded,
        }
    }
}

impl fmt::Debug for BatchBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BatchBuilder")
            .field("source", &self.source)
            .field("to", &self.to)
            .field("existing", &self.existing)
            .field("workers", &self.workers)
            .field("concurrency", &self.concurrency)
            .field("per_host", &self.per_host)
            .field("rate", &self.rate)
            .field("host_rate", &self.host_rate)
            .field("outputs", &self.outputs)
            .field("passes", &self.passes)
            .finish_non_exhaustive()
    }
}

impl Batch {
    /// A run of sessions made from this recipe.
    pub fn builder(session: SessionBuilder) -> BatchBuilder {
        BatchBuilder {
            session,
            source: Input::default(),
            max_deliveries: MAX_DELIVERIES,
            to: None,
            existing: Existing::Refuse,
            workers: None,
            permits: None,
            concurrency: Concurrency::Fixed,
            per_host: None,
            rate: None,
            rate_burst: None,
            host_rate: None,
            host_rate_burst: None,
            refusals: Refusals { lane: Some(SlowLane::default()), ..Refusals::default() },
            sync_each: false,
            outputs: Outputs::default(),
            passes: 1,
            pass_retry: None,
            pass_timeouts: None,
            exit_check: None,
            exit_sample: None,
            window: Window::default(),
            stop_on_failures: None,
            on_abort: None,
            on_progress: None,
            on_record: None,
            on_pass_end: None,
            on_alarm: None,
            tally: None,
            clock: Arc::new(SystemClock),
        }
    }

    /// A handle that stops the run, from any thread and at any time: `close` lets what flies
    /// finish, `abort` cuts it. What has not ended has no record and is done by a resumption.
    pub fn stopper(&self) -> Stopper {
        self.pool.stopper()
    }

    /// Looks at results and input, changes nothing, and tells what is to be done.
    ///
    /// [`run`](Self::run) begins with this where it was not called. The results file is locked
    /// from here on.
    ///
    /// # Errors
    /// Those of [`Journal::open`], [`WarcFiles::open`] and [`Source::check`](super::Source::check).
    pub fn plan(&mut self) -> Result<&Plan, Error> {
        let prepared = match self.prepared.take() {
            Some(prepared) => prepared,
            None => self.prepare()?,
        };
        Ok(&self.prepared.insert(prepared).plan)
    }

    fn prepare(&self) -> Result<Prepared, Error> {
        let journal = match &self.settings.to {
            Some(To::File(path, existing)) => Some(self.settings.outputs.journal(path, *existing)?),
            Some(To::Sink(_)) | None => None,
        };
        let warc = self.settings.outputs.warc_files(self.settings.existing)?;
        let (done, found) = match &journal {
            Some(journal) => (journal.done().clone(), journal.found()),
            None => (Done::default(), Found::default()),
        };
        let tally = self.open_tally(journal.as_ref())?;
        let (input, known) = self.settings.source.survey(&done)?;
        let promised = self.settings.promised();
        Ok(Prepared { plan: Plan { input, found, promised }, journal, tally, warc, known })
    }

    fn open_tally(&self, journal: Option<&Journal>) -> Result<Option<TallyFile>, Error> {
        let Some(path) = &self.settings.tally else { return Ok(None) };
        check_apart(path, journal.iter().flat_map(|journal| journal.paths()))?;
        let resumed = matches!(self.settings.existing, Existing::Resume { .. });
        let overwrite = self.settings.existing == Existing::Overwrite;
        let mut tally = TallyFile::open(path, resumed, overwrite)?;
        let mut records = Exceptions::default();
        if let Some(journal) = journal {
            journal.each_record(|record| records.add(record))?;
        }
        tally.recount(&records);
        Ok(Some(tally))
    }

    /// Does the work and returns when it is done or stopped.
    ///
    /// # Errors
    /// Only before the first request: those of [`plan`](Self::plan),
    /// [`exit_check`](super::exit_check()) and [`Journal::begin`], and `Io` for a folder of bodies or
    /// a WARC file that cannot be made. Whatever happens later is in the [`Outcome`].
    pub fn run(mut self) -> Result<Outcome, Error> {
        let prepared = match self.prepared.take() {
            Some(prepared) => prepared,
            None => self.prepare()?,
        };
        let Self { mut settings, pool, .. } = self;
        let stopper = pool.stopper();
        let input = &prepared.plan.input;
        let total = input.complete.then_some(input.items);
        wait_for_the_start(&mut settings, &stopper, total);
        let mut sampling = None;
        // Stopped while it waited: nothing is sent, not even to ask for exits.
        let asked = settings.exit_check.as_ref().filter(|_| stopper.reason().is_none());
        if let Some((url, proxies)) = asked {
            // They are attempts of this run, under its limits.
            let recipe = settings.session.clone().limited(pool.limits());
            let is_stopped = || stopper.reason().is_some();
            match check_exits(&recipe, url, proxies, pool.workers(), &is_stopped) {
                Ok(exits) => {
                    log::info!(
                        target: "longhaul::exits",
                        "{} exits, own address {:?}", exits.shared().len(), exits.direct
                    );
                    sampling = settings.exit_sample.map(|every| {
                        Sampling::new(url.clone(), every, exits.direct, settings.session.clone())
                    });
                }
                // The run is stopped, and ends as such: its URLs are not sent.
                Err(error) if error.kind() == ErrorKind::Cancelled && is_stopped() => {}
                Err(error) => return Err(error),
            }
        }
        let keep = settings.outputs.keep(prepared.warc, settings.clock.wall())?;
        let sink: Box<dyn Sink> = match (prepared.journal, settings.to) {
            (Some(journal), _) => Box::new(journal.begin()?),
            (None, Some(To::Sink(sink))) => sink,
            (None, _) => {
                let format = settings.outputs.format.unwrap_or_default();
                Box::new(RecordWriter::stdout().format(format))
            }
        };
        let Plan { input, found, promised } = prepared.plan;
        let adaptive = settings.concurrency == Concurrency::Adaptive;
        let is_over = Arc::new(move || stopper.reason().is_some());
        let jobs = settings.source.jobs(prepared.known, is_over).within(pool.permits());
        match total {
            Some(total) => log::info!(target: "longhaul::run", "begins, with {total} URLs to do"),
            None => log::info!(target: "longhaul::run", "begins, with as many URLs as come"),
        }
        let ended = Run {
            jobs: &pool,
            clock: settings.clock,
            sink,
            sync_each: settings.sync_each,
            max_deliveries: settings.max_deliveries,
            keep,
            passes: settings.passes,
            pass_settings: PassSettings {
                retry: settings.pass_retry,
                timeouts: settings.pass_timeouts,
            },
            most_held: MOST_HELD,
            most_leased: pool.permits().min(MOST_HELD),
            total,
            deadline: settings.session.settings().timeouts.deadline(),
            sampling,
            window: settings.window,
            stop_on_failures: settings.stop_on_failures.map(LastOutcomes::new),
            on_progress: settings.on_progress,
            on_record: settings.on_record,
            watched: Wanted {
                bounds: Bounds { most_attempts: settings.rate, passes: settings.passes },
                tally: prepared.tally,
                on_alarm: settings.on_alarm,
                on_pass_end: settings.on_pass_end,
            },
        }
        .run(jobs);
        let Ended { tally, unfinished, repeated, passes, elapsed, exits, stopped, .. } = ended;
        let (dead_lettered, leases_lost) = (ended.dead_lettered, ended.lost);
        let mut summary = Summary {
            unfinished,
            repeated,
            dead_lettered,
            leases_lost,
            passes,
            exit_samples: exits,
            concurrency: adaptive.then(|| FoundConcurrency::of(&pool.stats())),
            ok_before: found.ok,
            failed_before: found.failed,
            ..Summary::of(&tally, Some(&promised), elapsed)
        };
        if input.complete {
            // Those that were never begun are left as well.
            summary.unfinished = input.items.saturating_sub(summary.urls);
        }
        // The time came with the last of them, and nothing is left.
        let is_done = input.complete && summary.unfinished == 0;
        let stopped = stopped.filter(|why| !(is_done && matches!(why, Stopped::TimeUp(_))));
        summary.stopped = stopped.as_ref().map(ToString::to_string);
        log::info!(
            target: "longhaul::run",
            "ended after {:.1} s: {} URLs ok, {} failed, {} unfinished, {} attempts",
            elapsed.as_secs_f64(),
            summary.ok,
            summary.failed,
            summary.unfinished,
            summary.attempts,
        );
        if let Some(why) = &summary.stopped {
            log::info!(target: "longhaul::run", "stopped: {why}");
        }
        Ok(Outcome { summary, tally, stopped })
    }
}

/// Returns when the run may begin, or was stopped; tells meanwhile how long it still is.
fn wait_for_the_start(settings: &mut BatchBuilder, stopper: &Stopper, total: Option<u64>) {
    let mut told: Option<Instant> = None;
    while let Some(left) = settings.window.opens_in(settings.clock.wall()) {
        if stopper.reason().is_some() {
            return;
        }
        let now = settings.clock.now();
        let is_time = told.is_none_or(|last| now.saturating_duration_since(last) >= TELL_EVERY);
        if let (true, Some(tell)) = (is_time, &mut settings.on_progress) {
            told = Some(now);
            tell(&Progress { starts_in: Some(left), total, pass: 1, ..Progress::default() });
        }
        settings.clock.sleep_until(now.checked_add(left.min(NAP)).unwrap_or(now));
    }
}

/// Aborts the pool where what takes the results panics.
///
/// The feeding thread is waited for then. It may be in a source that waits for jobs, and ends only
/// when it is told that the run is over.
struct AbortUnlessDone<'a> {
    pool: &'a WorkerPool,
    is_done: bool,
}

impl Drop for AbortUnlessDone<'_> {
    fn drop(&mut self) {
        if !self.is_done {
            self.pool.abort();
        }
    }
}

impl Jobs for WorkerPool {
    fn run(&self, jobs: Feed, take: &mut dyn FnMut(Option<Finished>)) {
        self.run_scoped(jobs, |mut results| {
            let mut guard = AbortUnlessDone { pool: self, is_done: false };
            loop {
                match results.next_timeout(TICK) {
                    None if results.is_finished() => break,
                    other => take(other),
                }
            }
            guard.is_done = true;
        });
    }

    fn stats(&self) -> PoolStats {
        WorkerPool::stats(self)
    }

    fn abort(&self) {
        WorkerPool::abort(self);
    }

    fn close(&self, cause: String) {
        self.stopper().close_because(StopReason::rule(cause));
    }

    fn stopped(&self) -> Option<Stopped> {
        self.stop_reason().map(|reason| match reason {
            StopReason::Failure { kind, message } => Stopped::Failure { kind, message },
            StopReason::Rule(cause) => Stopped::Rule(cause.into_owned()),
            _ => Stopped::Interrupted,
        })
    }
}
