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
        loop {
            if is_over() {
                return Ok(Supply::More);
            }
            let mut state = self.lock();
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
            drop(self.shared.changed.wait_timeout(state, LOOK_UP));
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::{SimClock, secs};

    fn claim(queue: &MemoryQueue, most: usize) -> Vec<Lease> {
        let mut jobs = Vec::new();
        queue.claim(most, &mut jobs, &|| true).unwrap();
        assert!(jobs.is_empty(), "nothing once the run is over");
        queue.claim(most, &mut jobs, &|| false).unwrap();
        jobs.into_iter().map(|job| job.lease.unwrap()).collect()
    }

    #[test]
    fn who_comes_too_late_changes_nothing() {
        let clock = Arc::new(SimClock::default());
        let queue = MemoryQueue::new(clock.clone()).lease(secs(60.0));
        queue.push("http://h/1");
        queue.push("http://h/2");
        let first = claim(&queue, 9);
        clock.advance(secs(59.0));
        assert!(queue.extend(&[first[0].id.clone()]).unwrap().is_empty());
        clock.advance(secs(1.0));
        assert_eq!((queue.waiting(), queue.handed_out()), (1, 1));
        let second = claim(&queue, 9);
        assert_eq!((second.len(), second[0].deliveries), (1, 2));
        let late = [first[1].id.clone(), "nonsense".into(), "9.x".into()];
        assert_eq!(queue.extend(&late).unwrap().ids(), late);
        assert_eq!(queue.acknowledge(&late).unwrap().ids(), late);
        assert_eq!(queue.dead_letter(&late[0], "late").unwrap().ids().len(), 1);
        queue.give_back(&late).unwrap();
        assert_eq!((queue.waiting(), queue.handed_out(), queue.acknowledged()), (0, 2, 0));
        let both = [first[0].id.clone(), second[0].id.clone()];
        assert!(queue.acknowledge(&both).unwrap().is_empty());
        // Once more does no harm, and says so.
        assert_eq!(queue.acknowledge(&both).unwrap().ids(), both);
        assert_eq!((queue.waiting(), queue.handed_out(), queue.acknowledged()), (0, 0, 2));
    }

    #[test]
    fn what_is_given_back_is_first_and_was_not_delivered() {
        let queue = MemoryQueue::new(Arc::new(SimClock::default()));
        (1..=3).for_each(|number| queue.push(format!("http://h/{number}")));
        let leases = claim(&queue, 2);
        assert_eq!((leases.len(), leases[0].lasts), (2, None));
        queue.give_back(&[leases[0].id.clone()]).unwrap();
        let again = claim(&queue, 1);
        assert_eq!((again[0].deliveries, again[0].id.as_str()), (1, "1.3"));
    }

    #[test]
    fn a_closed_queue_ends_when_nothing_can_come_back() {
        let clock = Arc::new(SimClock::default());
        let queue = MemoryQueue::new(clock.clone()).lease(secs(60.0));
        queue.push("http://h/1");
        queue.close();
        let lease = claim(&queue, 9);
        let mut jobs = Vec::new();
        // Somebody has it, and time goes on while it is waited for.
        let passes = || {
            clock.advance(secs(40.0));
            !queue.extend(&[lease[0].id.clone()]).unwrap().is_empty()
        };
        assert_eq!(queue.claim(9, &mut jobs, &passes).unwrap(), Supply::Ended);
        assert!(jobs.is_empty() && clock.elapsed() > secs(60.0));
        assert!(queue.acknowledge(&[lease[0].id.clone()]).unwrap().is_empty());
        assert_eq!(queue.claim(9, &mut jobs, &|| false).unwrap(), Supply::Ended);
    }
}
