//! The threads around the scheduler, and what they say to each other.
//!
//! One thread owns the [`Scheduler`] and the heap. It alone decides; it sleeps on its channel until
//! something is told or the next wait is due. Workers take jobs from a queue that never holds more
//! than there are idle workers, make one step and tell the outcome. A result goes from its worker
//! straight to whoever takes it; the scheduler hears only that a worker is free again.
//!
//! A [`Job`] answers exactly once, by type: it owns the sender of its answer, and a job that is
//! dropped on whatever way (a message to a thread that is gone, a bug) answers as `Internal`.
//!
//! The threads are generic over a [`Task`], so that their tests need no session and no socket.

use super::crew::{Crew, Threads};
use super::scheduler::{Action, Came, Ending, JobId, LaneId, Scheduler, Wish};
use super::stats::{Counters, Made};
use super::stop::{Control, Stage, Stop, StopReason};
use super::worker;
use crate::error::{Error, ErrorKind, Fault, Phase, WaitReason};
use crate::policy::Echo;
use crate::time::Clock;
use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, unbounded};
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Something that is stepped by workers until it is done.
pub(crate) trait Task: Send + 'static {
    /// What a worker keeps between steps, made on its own thread.
    type Context: 'static;
    /// What comes of it.
    type Output: Send + 'static;

    /// The host that the next attempt goes to.
    fn host(&self) -> Option<Arc<str>>;
    /// When it ends, whatever it waits for; none before its first step.
    fn deadline(&self) -> Option<Instant> {
        None
    }
    /// One attempt.
    fn step(&mut self, context: &Self::Context, clock: &dyn Clock) -> Stepped<Self::Output>;
    /// The hosts that the last step arrived at beside that of [`host`](Self::host), each named once.
    /// Asked after a panic too.
    fn take_visits(&mut self) -> Vec<Arc<str>> {
        Vec::new()
    }
    /// Ends it from outside. Called after a panic too, and must not panic itself.
    fn fail(&mut self, failure: Failure, now: Instant) -> Self::Output;
    /// What a failure becomes that an abort may have caused.
    fn cut(output: Self::Output, reason: &StopReason) -> Self::Output;
}

/// What came of a step.
#[derive(Debug)]
pub(crate) struct Stepped<O> {
    /// The attempts that it made; none where it only found that it has to wait.
    pub(crate) made: Made,
    /// What the last of them says about how much the other side bears.
    pub(crate) echo: Option<Echo>,
    pub(crate) outcome: Outcome<O>,
}

impl<O> Stepped<O> {
    /// What the scheduler has to know of it, with the hosts that it visited.
    pub(crate) fn came(&self, visited: Vec<Arc<str>>) -> Came {
        Came { attempted: self.made.attempts > 0, echo: self.echo, visited }
    }
}

/// Where a step leaves its task.
#[derive(Debug)]
pub(crate) enum Outcome<O> {
    Done(O),
    Failed(O),
    Wait { until: Instant, reason: WaitReason },
}

/// Why a task ends from outside.
#[derive(Debug)]
pub(crate) enum Failure {
    Stopped(StopReason),
    Cancelled,
    /// Its deadline passed before a worker took it again.
    Expired,
    /// With the words of the panic.
    Panicked(String),
    /// The worker could not make its context.
    NoContext(Error),
    /// The job was dropped on its way.
    Lost,
}

impl Failure {
    /// The error that the job ends with.
    pub(crate) fn into_error(self) -> Error {
        let internal = |message| Error::local(ErrorKind::Internal, message);
        match self {
            Self::Stopped(reason) => {
                Error::local(ErrorKind::Cancelled, format!("not finished, since {reason}"))
            }
            Self::Expired => {
                let message = "the deadline passed before the next attempt could be made: it stood behind a limit, or for a worker";
                Error::new(ErrorKind::Deadline, Phase::Prepare, Fault::Local, message)
            }
            Self::Cancelled => Error::local(ErrorKind::Cancelled, "given up by its owner"),
            Self::Panicked(words) => internal(format!("a panic ended this request: {words}")),
            Self::NoContext(error) => error,
            Self::Lost => internal("the job was lost on its way to a worker".to_owned()),
        }
    }
}

/// A task on its way, with the place where its answer goes.
pub(crate) struct Job<T: Task> {
    pub(crate) id: JobId,
    pub(crate) task: T,
    reply: Option<Reply<T::Output>>,
    shared: Arc<Shared<T>>,
}

/// Where an answer goes, and the permit that it gives back.
pub(crate) struct Reply<O> {
    pub(crate) to: Sender<O>,
    /// Where the permit ends with the job rather than with the taking of its result.
    pub(crate) permit: Option<Receiver<()>>,
}

impl<T: Task> Job<T> {
    /// Ends it with the outcome of its own step: the stop rule is asked.
    pub(crate) fn finish(mut self, output: T::Output) {
        self.shared.ask_rule(&output);
        self.answer(output);
    }

    /// Ends it from outside.
    pub(crate) fn fail(mut self, failure: Failure) {
        let output = self.task.fail(failure, self.shared.clock.now());
        self.answer(output);
    }

    /// Ends it without a further attempt.
    pub(crate) fn end(self, ending: Ending) {
        let failure = match ending {
            Ending::Stopped => Failure::Stopped(self.shared.control.cause()),
            Ending::Cancelled => Failure::Cancelled,
            Ending::Expired => Failure::Expired,
        };
        self.fail(failure);
    }

    fn answer(&mut self, output: T::Output) {
        if let Some(reply) = self.reply.take() {
            self.shared.counters.count_finished();
            // An owner who is gone wants no answer.
            let _ = reply.to.send(output);
            if let Some(permit) = reply.permit {
                let _ = permit.try_recv();
            }
        }
    }
}

impl<T: Task> Drop for Job<T> {
    fn drop(&mut self) {
        if self.reply.is_some() {
            let failure = match self.shared.control.reason() {
                Some(reason) => Failure::Stopped(reason),
                None => Failure::Lost,
            };
            let output = self.task.fail(failure, self.shared.clock.now());
            self.answer(output);
        }
    }
}

/// What the scheduler thread is told.
pub(crate) enum Event<T: Task> {
    Feed {
        lane: LaneId,
        host: Option<Arc<str>>,
        job: Box<Job<T>>,
    },
    Done {
        id: JobId,
        came: Came,
    },
    Wait {
        job: Box<Job<T>>,
        wish: Wish,
    },
    Untouched(Box<Job<T>>),
    Cancel(JobId),
    CancelLane(LaneId),
    Stop,
    /// The pool is being dropped.
    Quit,
    /// A hand-moved clock was moved.
    #[cfg(test)]
    Tick,
}

/// A rule that stops a run by a result.
pub(crate) trait Rule<O>: Fn(&O) -> Option<StopReason> + Send + Sync {}

impl<O, F: Fn(&O) -> Option<StopReason> + Send + Sync> Rule<O> for F {}

/// What all threads of a pool share.
pub(crate) struct Shared<T: Task> {
    pub(crate) control: Control,
    pub(crate) counters: Counters,
    pub(crate) clock: Arc<dyn Clock>,
    events: Sender<Event<T>>,
    rule: Option<Arc<dyn Rule<T::Output>>>,
    next_job: AtomicU64,
    next_lane: AtomicU64,
}

impl<T: Task> Shared<T> {
    /// What the threads of a pool share, and where the scheduler hears of them.
    pub(crate) fn new(
        control: Control,
        clock: Arc<dyn Clock>,
        rule: Option<Arc<dyn Rule<T::Output>>>,
    ) -> (Arc<Self>, Receiver<Event<T>>) {
        let (events, inbox) = unbounded();
        let counters = Counters::default();
        let (next_job, next_lane) = (AtomicU64::new(0), AtomicU64::new(0));
        let shared = Self { control, counters, clock, events, rule, next_job, next_lane };
        (Arc::new(shared), inbox)
    }

    /// Tells the scheduler. A job in a message that arrives nowhere answers by being dropped.
    pub(crate) fn tell(&self, event: Event<T>) {
        let _ = self.events.send(event);
    }

    pub(crate) fn new_lane(&self) -> LaneId {
        LaneId(self.next_lane.fetch_add(1, Ordering::Relaxed))
    }

    /// Sends a task on its way.
    pub(crate) fn feed(self: &Arc<Self>, lane: LaneId, task: T, reply: Reply<T::Output>) -> JobId {
        let id = JobId(self.next_job.fetch_add(1, Ordering::Relaxed));
        let host = task.host();
        let job = Box::new(Job { id, task, reply: Some(reply), shared: Arc::clone(self) });
        self.counters.fed.fetch_add(1, Ordering::Relaxed);
        self.tell(Event::Feed { lane, host, job });
        id
    }

    fn ask_rule(&self, output: &T::Output) {
        let Some(rule) = &self.rule else { return };
        match catch_unwind(AssertUnwindSafe(|| rule(output))) {
            Ok(Some(reason)) => self.stop(Stage::Closing, reason),
            Ok(None) => {}
            // The result is as good as it was; only the rule is not.
            Err(panic) => {
                log::error!(
                    target: "longhaul::workers",
                    "a stop rule panicked: {}", words(&*panic)
                );
            }
        }
    }
}

impl<T: Task> Stop for Shared<T> {
    fn stop(&self, stage: Stage, reason: StopReason) {
        self.control.enter(stage, reason);
        self.tell(Event::Stop);
    }

    fn reason(&self) -> Option<StopReason> {
        self.control.reason()
    }
}

/// What a [`Core`] is made of.
pub(crate) struct Plan<T: Task> {
    pub(crate) scheduler: Scheduler<Box<Job<T>>>,
    pub(crate) stack_bytes: usize,
    pub(crate) name: String,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) context: worker::MakeContext<T>,
    pub(crate) rule: Option<Arc<dyn Rule<T::Output>>>,
    pub(crate) control: Control,
}

/// The threads of a pool.
pub(crate) struct Core<T: Task> {
    pub(crate) shared: Arc<Shared<T>>,
    threads: Threads,
}

impl<T: Task> Core<T> {
    /// Starts the threads.
    ///
    /// # Errors
    /// `Io` where the system gives no further thread.
    pub(crate) fn start(plan: Plan<T>) -> Result<Self, Error> {
        let Plan { scheduler, stack_bytes, name, clock, context, rule, control } = plan;
        let (shared, inbox) = Shared::new(control, clock, rule);
        // Made before the threads and the queue, so that those already started end with them where
        // one fails.
        let core = Self { shared: Arc::clone(&shared), threads: Threads::default() };
        let (queue, jobs) = unbounded();
        let (owner, context) = (Arc::clone(&shared), Arc::new(context));
        let named = format!("{name}-scheduler");
        let mut crew = Crew::new(shared, context, jobs, stack_bytes, name, core.threads.clone());
        crew.call(scheduler.most_flying())?;
        owner.counters.publish(&scheduler.gauges());
        let body = move || schedule(&owner, scheduler, crew, &inbox, &queue);
        core.threads.spawn(&named, stack_bytes, body)?;
        Ok(core)
    }
}

impl<T: Task> Drop for Core<T> {
    fn drop(&mut self) {
        self.shared.control.enter(Stage::Closing, StopReason::Closed);
        self.shared.tell(Event::Quit);
        self.threads.join();
    }
}

impl<T: Task> fmt::Debug for Core<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Core")
            .field("threads", &self.threads.len())
            .field("stats", &self.shared.counters.snapshot())
            .finish_non_exhaustive()
    }
}

/// A wait on the channel is no longer than this, since the system's idea of a timeout and the
/// clock may differ, as after a suspend.
const LONGEST_WAIT: Duration = Duration::from_secs(60);

/// How many messages are heard before the next decision.
const AT_ONCE: usize = 256;

/// The body of the scheduler thread.
fn schedule<T: Task>(
    shared: &Shared<T>,
    mut scheduler: Scheduler<Box<Job<T>>>,
    mut crew: Crew<T>,
    inbox: &Receiver<Event<T>>,
    queue: &Sender<Box<Job<T>>>,
) {
    let mut actions = Vec::new();
    let mut quitting = false;
    loop {
        let now = shared.clock.now();
        while let Some(action) = scheduler.poll(now) {
            actions.push(action);
        }
        // Before acting, so that whoever sees an effect finds it in the numbers.
        shared.counters.publish(&scheduler.gauges());
        if let Err(error) = crew.call(scheduler.most_flying()) {
            log::warn!(target: "longhaul::workers", "{error}");
            scheduler.cap(crew.made());
        }
        for action in actions.drain(..) {
            match action {
                Action::Step(job) => drop(queue.send(job)),
                Action::End(job, ending) => job.end(ending),
            }
        }
        if quitting && scheduler.is_idle() {
            return;
        }
        let first = match scheduler.next_wake() {
            None => inbox.recv().map_err(|_| RecvTimeoutError::Disconnected),
            Some(due) => inbox.recv_timeout(due.saturating_duration_since(now).min(LONGEST_WAIT)),
        };
        let first = match first {
            Ok(event) => event,
            Err(RecvTimeoutError::Timeout) => continue,
            Err(RecvTimeoutError::Disconnected) => return,
        };
        let now = shared.clock.now();
        for event in std::iter::once(first).chain(inbox.try_iter().take(AT_ONCE)) {
            quitting |= matches!(event, Event::Quit);
            hear(&mut scheduler, event, now);
        }
    }
}

/// Tells the scheduler what was said to its thread.
pub(crate) fn hear<T: Task>(scheduler: &mut Scheduler<Box<Job<T>>>, event: Event<T>, now: Instant) {
    match event {
        Event::Feed { lane, host, job } => scheduler.feed(job.id, lane, host, job),
        Event::Done { id, came } => scheduler.done(id, &came, now),
        Event::Wait { job, wish } => scheduler.wait(job.id, job, wish, now),
        Event::Untouched(job) => scheduler.untouched(job.id, job, now),
        Event::Cancel(id) => scheduler.cancel(id),
        Event::CancelLane(lane) => scheduler.cancel_lane(lane),
        Event::Stop | Event::Quit => scheduler.stop(),
        #[cfg(test)]
        Event::Tick => {}
    }
}

/// The words of a panic, where it has any.
pub(crate) fn words(panic: &(dyn std::any::Any + Send)) -> &str {
    panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("without a message")
}

#[cfg(test)]
#[path = "dispatch_tests.rs"]
mod tests;
