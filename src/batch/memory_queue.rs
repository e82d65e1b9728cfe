//! A queue in memory, with leases and delivery counts, for several runs of one program.
//!
//! It does what a distributed queue does, without one: whoever takes a job has it for a time, an
//! expired lease goes to somebody else, a job that is of no use goes to the dead letters. So it is
//! the queue on which one's own handling of a queue is tried out, under a clock that the test moves,
//! and the example of how a [`JobSource`] is to behave.

use super::item::Place;
use super::job_source::{Claimed, JobSource, Lease, LeaseId, Lost, Supply};
use crate::error::Error;
use crate::time::Clock;
use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How often a claim that waits looks at its clock and at whether the run is over.
const LOOK_UP: Duration = Duration::from_millis(20);

/// A queue of lines; a clone is another handle on it.
///
/// # Ordering
/// First in, first out; jobs that come back go to the front.
///
/// # Examples
/// ```
/// use longhaul::batch::{Batch, FnSink, MemoryQueue};
/// use longhaul::time::SystemClock;
/// use std::sync::Arc;
/// use std::time::Duration;
///
/// # fn example(session: longhaul::session::SessionBuilder) -> Result<(), longhaul::Error> {
/// let queue = MemoryQueue::new(Arc::new(SystemClock)).lease(Duration::from_secs(60));
/// queue.push("https://example.com/a");
/// queue.close();
/// let batch = Batch::builder(session)
///     .source(queue.clone())
///     .sink(FnSink::new(|record, _| Ok(println!("{} {}", record.url, record.class))))
///     .build()?;
/// # drop(batch); Ok(()) }
/// ```
#[derive(Clone)]
pub struct MemoryQueue {
    shared: Arc<Shared>,
    lease: Option<Duration>,
}

struct Shared {
    state: Mutex<State>,
    changed: Condvar,
    clock: Arc<dyn Clock>,
    name: Arc<str>,
}

#[derive(Default)]
struct State {
    ready: VecDeque<Waiting>,
    /// By the number of the job.
    out: BTreeMap<u64, Out>,
    dead: Vec<DeadLetter>,
    acknowledged: u64,
    pushed: u64,
    handed_out: u64,
    closed: bool,
}

struct Waiting {
    number: u64,
    line: String,
    /// How often it was handed out.
    deliveries: u32,
}

struct Out {
    job: Waiting,
    /// Tells this handing out from all others.
    serial: u64,
    lasts: Option<Duration>,
    until: Option<Instant>,
}

/// A job that was given up.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct DeadLetter {
    /// The line, as it was pushed. It may hold credentials.
    pub line: String,
    /// Why it was given up.
    pub reason: String,
    /// How often it was handed out.
    pub deliveries: u32,
}

impl MemoryQueue {
    /// An empty queue, whose leases run out by this clock.
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        let state = Mutex::new(State::default());
        let shared = Shared { state, changed: Condvar::new(), clock, name: "queue".into() };
        Self { shared: Arc::new(shared), lease: None }
    }

    /// How long the leases last that are handed out through this handle and its clones.
    ///
    /// # Defaults
    /// They never run out.
    #[must_use]
    pub fn lease(mut self, lasts: impl Into<Option<Duration>>) -> Self {
        self.lease = lasts.into();
        self
    }

    /// Adds a job: a URL or a JSON object, as a line of an input file.
    pub fn push(&self, line: impl Into<String>) {
        let mut state = self.lock();
        state.pushed += 1;
        let number = state.pushed;
        state.ready.push_back(Waiting { number, line: line.into(), deliveries: 0 });
        self.shared.changed.notify_one();
    }

    /// Says that no more will be added: runs end when nothing is left, and when nothing has come
    /// back for as long as a lease lasts.
    pub fn close(&self) {
        self.lock().closed = true;
        self.shared.changed.notify_all();
    }

    /// How many jobs nobody has.
    pub fn waiting(&self) -> usize {
        let mut state = self.lock();
        self.take_back_expired(&mut state);
        state.ready.len()
    }

    /// How many jobs somebody has.
    pub fn handed_out(&self) -> usize {
        let mut state = self.lock();
        self.take_back_expired(&mut state);
        state.out.len()
    }

    /// How many jobs were acknowledged.
    pub fn acknowledged(&self) -> u64 {
        self.lock().acknowledged
    }

    /// The jobs that were given up.
    pub fn dead_letters(&self) -> Vec<DeadLetter> {
        self.lock().dead.clone()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.shared.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take_back_expired(&self, state: &mut State) {
        let now = self.shared.clock.now();
        let is_over = |out: &Out| out.until.is_some_and(|until| until <= now);
        let over: Vec<_> =
            state.out.iter().filter(|(_, out)| is_over(out)).map(|(number, _)| *number).collect();
        // The oldest to the very front.
        for number in over.into_iter().rev() {
            if let Some(out) = state.out.remove(&number) {
                state.ready.push_front(out.job);
            }
        }
    }

    /// Hands out as many as there are, up to `most`.
    fn hand_out(&self, state: &mut State, most: usize, jobs: &mut Vec<Claimed>) {
        let now = self.shared.clock.now();
        for _ in 0..most {
            let Some(mut job) = state.ready.pop_front() else { return };
            job.deliveries = job.deliveries.saturating_add(1);
            state.handed_out += 1;
            let serial = state.handed_out;
            let id = format!("{}.{serial}", job.number);
            let place = Place { source: Arc::clone(&self.shared.name), line: job.number };
            let claimed = Claimed::line(&job.line, place).unwrap_or_else(|| {
                let error = Error::config("this job is a blank line; queue a URL or an object");
                Claimed::bad(id.clone(), error)
            });
            let lease = Lease::new(id).lasts(self.lease).deliveries(job.deliveries);
            jobs.push(claimed.under(lease));
            let until = self.lease.and_then(|lasts| now.checked_add(lasts));
            state.out.insert(job.number, Out { job, serial, lasts: self.lease, until });
        }
    }

    /// Does something with each job that is still out under its lease; gives the others.
    fn with_each(&self, leases: &[LeaseId], mut each: impl FnMut(&mut State, u64)) -> Lost {
        let mut state = self.lock();
        self.take_back_expired(&mut state);
        let mut lost = Vec::new();
        for id in leases {
            let parts = id.as_str().split_once('.');
            let parts = parts.and_then(|(job, serial)| Some((job.parse().ok()?, serial)));
            match parts {
                Some((number, serial)) if state.has(number, serial) => each(&mut state, number),
                _ => lost.push(id.clone()),
            }
        }
        self.shared.changed.notify_all();
        lost.into_iter().collect()
    }
}

impl State {
    fn has(&self, number: u64, serial: &str) -> bool {
        self.out.get(&number).is_some_and(|out| serial.parse() == Ok(out.serial))
    }
}

impl JobSource for MemoryQueue {
    fn claim(
        &self,
        most: usize,
        jobs: &mut Vec<Claimed>,
        is_over: &dyn Fn() -> bool,
    ) -> Result<Supply, Error> {
        let began = self.shared.clock.now();
        let mut state = self.lock();
        loop {
            if is_over() {
                return Ok(Supply::More);
            }
            self.take_back_expired(&mut state);
            self.hand_out(&mut state, most, jobs);
            if !jobs.is_empty() {
                return Ok(Supply::More);
            }
            // What others have would have come back by now if they were dead.
            let waited = self.shared.clock.now().saturating_duration_since(began);
            let is_quiet = self.lease.is_none_or(|lasts| waited > lasts);
            if state.closed && (state.out.is_empty() || is_quiet) {
                return Ok(Supply::Ended);
            }
            let woken = self.shared.changed.wait_timeout(state, LOOK_UP);
            (state, _) = woken.unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn extend(&self, leases: &[LeaseId]) -> Result<Lost, Error> {
        let now = self.shared.clock.now();
        Ok(self.with_each(leases, |state, number| {
            if let Some(out) = state.out.get_mut(&number) {
                out.until = out.lasts.and_then(|lasts| now.checked_add(lasts));
            }
        }))
    }

    fn acknowledge(&self, leases: &[LeaseId]) -> Result<Lost, Error> {
        Ok(self.with_each(leases, |state, number| {
            state.out.remove(&number);
            state.acknowledged += 1;
        }))
    }

    fn give_back(&self, leases: &[LeaseId]) -> Result<(), Error> {
        let _gone_already = self.with_each(leases, |state, number| {
            if let Some(mut out) = state.out.remove(&number) {
                out.job.deliveries = out.job.deliveries.saturating_sub(1);
                state.ready.push_front(out.job);
            }
        });
        Ok(())
    }

    fn dead_letter(&self, lease: &LeaseId, reason: &str) -> Result<Lost, Error> {
        Ok(self.with_each(std::slice::from_ref(lease), |state, number| {
            if let Some(Out { job, .. }) = state.out.remove(&number) {
                let Waiting { line, deliveries, .. } = job;
                state.dead.push(DeadLetter { line, reason: reason.to_owned(), deliveries });
            }
        }))
    }
}

impl fmt::Debug for MemoryQueue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.lock();
        f.debug_struct("MemoryQueue")
            .field("waiting", &state.ready.len())
            .field("handed_out", &state.out.len())
            .field("acknowledged", &state.acknowledged)
            .field("dead", &state.dead.len())
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for DeadLetter {
    /// Without the line.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DeadLetter")
            .field("reason", &self.reason)
            .field("deliveries", &self.deliveries)
            .finish_non_exhaustive()
    }
}
