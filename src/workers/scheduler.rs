//! Which job is stepped next: a state machine without thread, clock and channel.
//!
//! Everything that happens to a pool is told to the [`Scheduler`] as a call with the time it
//! happened, and [`poll`](Scheduler::poll) answers what to do: give this job to a free worker, or
//! end that one. The threads around it only carry messages, so the order of a night with a
//! thousand hosts can be simulated in milliseconds, on the code that runs for real.
//!
//! What it decides:
//! - A job whose wait has ended goes before one that was never stepped. Retries are the older
//!   promise, and their number is bounded by their budgets, so fresh jobs are not starved.
//! - Hosts take turns; one that is at its limit blocks nobody ([`Ready`]).
//! - A wait is an entry in the heap. So is a limit that is hit. The limits are one with those that
//!   the flights ask for the further attempts of their steps, which is why they are behind a lock;
//!   without limits there is none.
//! - A job that was stepped before and has a deadline ends with it, wherever it stands: behind the
//!   limit of its host or for a worker too.
//! - After a stop no job is stepped: what flies ends with its attempt, everything else now.
//! - Each job that is fed comes out of [`Action::End`], or is reported by
//!   [`done`](Scheduler::done), exactly once.

use super::delay::{DelayHeap, Timer};
use super::ready::{Class, Ready};
use super::stats::{ByReason, Gauges};
use crate::error::WaitReason;
use crate::policy::{Echo, Era, Found, Limiter, Taken, Visit, Walk};
use crate::session::SharedLimiter;
use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, MutexGuard, PoisonError};
use std::time::Instant;

/// Names a job within its pool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct JobId(pub(crate) u64);

/// Names the run that a job belongs to within its pool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct LaneId(pub(crate) u64);

/// What is to be done.
#[derive(Debug)]
pub(crate) enum Action<J> {
    /// Give the job to a free worker. It comes back by [`Scheduler::done`],
    /// [`Scheduler::wait`] or [`Scheduler::untouched`].
    Step(J),
    /// The job ends here, without a further attempt.
    End(J, Ending),
}

/// Why a job ends without having finished.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ending {
    /// The pool was stopped.
    Stopped,
    /// Its owner gave it up.
    Cancelled,
    /// Its deadline passed while it stood behind a limit, or for a worker.
    Expired,
}

/// What sleeps in the heap.
#[derive(Debug)]
pub(crate) enum Sleeper {
    /// A job in its wait.
    Job(JobId),
    /// A job that is not with a worker, until its deadline.
    Deadline(JobId),
    /// A host whose next slot is not free yet.
    Host(Option<Arc<str>>),
    /// The whole run, for its next slot.
    Run,
}

/// The state machine; `J` is what a job carries, which is of no concern here.
#[derive(Debug)]
pub(crate) struct Scheduler<J> {
    jobs: HashMap<JobId, Entry<J>>,
    ready: Ready,
    heap: DelayHeap<Sleeper>,
    limits: Option<SharedLimiter>,
    /// The wait for the next slot of the run, while all jobs stand behind it.
    gate: Option<Timer>,
    capacity: usize,
    /// How many may fly at once, where that is found out; else the capacity.
    walk: Option<Box<Walk>>,
    flying: usize,
    waiting: ByReason,
    ended: VecDeque<(J, Ending)>,
    stopped: bool,
}

#[derive(Debug)]
struct Entry<J> {
    lane: LaneId,
    host: Option<Arc<str>>,
    /// Runs while the job is not with a worker. The flight itself holds the deadline in its steps
    /// and begins no wait beyond it, but it does not know when its next step will be.
    deadline: Option<Timer>,
    place: Place<J>,
}

#[derive(Debug)]
enum Place<J> {
    Ready(J),
    Waiting(J, Timer, WaitReason),
    /// With a worker. When it was given up meanwhile, a further wait is not begun.
    Flying {
        given_up: bool,
        slots: Taken,
        era: Era,
    },
}

impl<J> Scheduler<J> {
    /// No job yet, and `capacity` workers.
    pub(crate) fn new(capacity: usize, limits: Option<SharedLimiter>) -> Self {
        Self {
            jobs: HashMap::new(),
            ready: Ready::default(),
            heap: DelayHeap::new(),
            limits,
            gate: None,
            capacity,
            walk: None,
            flying: 0,
            waiting: ByReason::default(),
            ended: VecDeque::new(),
            stopped: false,
        }
    }

    /// Lets the other side decide how many jobs fly at once, up to the capacity.
    pub(crate) fn adaptive(mut self) -> Self {
        self.walk = Some(Box::new(Walk::new(self.capacity)));
        self
    }

    /// There are no more workers than this.
    pub(crate) fn cap(&mut self, workers: usize) {
        if let Some(walk) = &mut self.walk {
            walk.cap(workers);
        }
    }

    /// A job has come. `host` is the one that its first attempt goes to.
    pub(crate) fn feed(&mut self, id: JobId, lane: LaneId, host: Option<Arc<str>>, job: J) {
        if self.stopped {
            self.ended.push_back((job, Ending::Stopped));
            return;
        }
        self.ready.push(&host, id, Class::Fresh);
        self.jobs.insert(id, Entry { lane, host, deadline: None, place: Place::Ready(job) });
    }

    /// The job has finished in its step.
    pub(crate) fn done(&mut self, id: JobId, came: &Came, now: Instant) {
        self.land(id, came, now);
    }

    /// The job wants its next step at `until`, to `host`.
    pub(crate) fn wait(&mut self, id: JobId, job: J, wish: Wish, now: Instant) {
        let Some((lane, given_up)) = self.land(id, &wish.came, now) else {
            // Not one of ours, which cannot be; ending it keeps the promise all the same.
            self.ended.push_back((job, Ending::Cancelled));
            return;
        };
        if self.stopped || given_up {
            let ending = if given_up { Ending::Cancelled } else { Ending::Stopped };
            self.ended.push_back((job, ending));
            return;
        }
        let timer = self.heap.set(wish.until, Sleeper::Job(id));
        self.waiting.add(wish.reason, 1);
        let place = Place::Waiting(job, timer, wish.reason);
        let deadline = wish.deadline.map(|at| self.heap.set(at, Sleeper::Deadline(id)));
        self.jobs.insert(id, Entry { lane, host: wish.host, deadline, place });
    }

    /// The worker gives the job back without a step, since the pool is being stopped.
    pub(crate) fn untouched(&mut self, id: JobId, job: J, now: Instant) {
        let ending = match self.land(id, &Came::UNATTEMPTED, now) {
            Some((_, false)) => Ending::Stopped,
            _ => Ending::Cancelled,
        };
        self.ended.push_back((job, ending));
    }

    /// The owner of the job gives it up. One that flies finishes its attempt.
    pub(crate) fn cancel(&mut self, id: JobId) {
        let Some(entry) = self.jobs.get_mut(&id) else { return };
        if let Place::Flying { given_up, .. } = &mut entry.place {
            *given_up = true;
            return;
        }
        let Some(entry) = self.jobs.remove(&id) else { return };
        if let Place::Ready(_) = entry.place {
            self.ready.remove(&entry.host, id);
        }
        self.end(entry, Ending::Cancelled);
    }

    /// Nobody takes the results of this lane any more: each of its jobs is given up.
    pub(crate) fn cancel_lane(&mut self, lane: LaneId) {
        self.give_up(Ending::Cancelled, |entry| entry.lane == lane);
    }

    /// Nothing is stepped any more.
    pub(crate) fn stop(&mut self) {
        self.stopped = true;
        self.give_up(Ending::Stopped, |_| true);
    }

    /// The next thing to do at `now`; `None` until something is told or
    /// [`next_wake`](Self::next_wake) has come.
    pub(crate) fn poll(&mut self, now: Instant) -> Option<Action<J>> {
        self.fire(now);
        if let Some((job, ending)) = self.ended.pop_front() {
            return Some(Action::End(job, ending));
        }
        while self.gate.is_none() {
            if self.flying >= self.most_flying() {
                self.press(now);
                return None;
            }
            let mut limits = self.limits.as_ref().map(lock);
            let found = self.ready.front(&mut self.heap, |host| match &mut limits {
                Some(limits) => limits.take(Visit { host, arrives: true }, now),
                None => Ok(Taken::default()),
            });
            drop(limits);
            let (class, slots) = match found? {
                Ok(found) => found,
                Err(until) => {
                    self.gate = Some(self.heap.set(until, Sleeper::Run));
                    return None;
                }
            };
            let id = self.ready.take(class)?;
            let Some(entry) = self.jobs.get_mut(&id) else {
                debug_assert!(false, "{id:?} is queued, and unknown");
                continue;
            };
            if let Some(timer) = entry.deadline.take() {
                self.heap.cancel(timer);
            }
            self.flying += 1;
            let era = self.walk.as_ref().map_or_else(Era::default, |walk| walk.era());
            let flying = Place::Flying { given_up: false, slots, era };
            let place = std::mem::replace(&mut entry.place, flying);
            if let Place::Ready(job) = place {
                return Some(Action::Step(job));
            }
        }
        None
    }

    /// When [`poll`](Self::poll) has something to do by itself.
    pub(crate) fn next_wake(&self) -> Option<Instant> {
        self.heap.next_due()
    }

    /// Whether every job that was fed has come out.
    pub(crate) fn is_idle(&self) -> bool {
        self.jobs.is_empty() && self.ended.is_empty()
    }

    /// How many jobs may fly at once now.
    pub(crate) fn most_flying(&self) -> usize {
        self.walk.as_ref().map_or(self.capacity, |walk| walk.limit())
    }

    /// How many jobs are where, and how many may fly.
    pub(crate) fn gauges(&self) -> Gauges {
        let capacity = self.capacity as u64;
        let fixed = Found { limit: capacity, most: capacity, back_offs: 0 };
        let found = self.walk.as_ref().map_or(fixed, |walk| walk.found());
        Gauges { ready: self.ready.len() as u64, waiting: self.waiting, found }
    }

    #[cfg(test)]
    pub(crate) fn hosts(&self) -> usize {
        self.ready.hosts()
    }

    /// Tells the walk that more would fly if it let them.
    fn press(&mut self, now: Instant) {
        let Some(walk) = &mut self.walk else { return };
        let limits = self.limits.as_ref().map(lock);
        let found = self.ready.front(&mut self.heap, |host| match &limits {
            Some(limits) => {
                limits.look(Visit { host, arrives: true }, now).map(|()| Taken::default())
            }
            None => Ok(Taken::default()),
        });
        if let Some(Ok(_)) = found {
            walk.press();
        }
    }

    /// Wakes what is due.
    fn fire(&mut self, now: Instant) {
        while let Some(sleeper) = self.heap.pop_due(now) {
            match sleeper {
                Sleeper::Run => self.gate = None,
                Sleeper::Host(host) => self.ready.wake(&host),
                Sleeper::Job(id) => self.wake_job(id),
                Sleeper::Deadline(id) => self.expire(id),
            }
        }
    }

    fn expire(&mut self, id: JobId) {
        let Some(entry) = self.jobs.remove(&id) else { return };
        if let Place::Ready(_) = entry.place {
            self.ready.remove(&entry.host, id);
        }
        self.end(entry, Ending::Expired);
    }

    fn wake_job(&mut self, id: JobId) {
        let Some(mut entry) = self.jobs.remove(&id) else { return };
        if let Place::Waiting(job, _, reason) = entry.place {
            self.waiting.remove(reason, 1);
            entry.place = Place::Ready(job);
            self.ready.push(&entry.host, id, Class::Due);
        }
        self.jobs.insert(id, entry);
    }

    /// Takes a job from its worker: its lane, and whether it was given up meanwhile.
    fn land(&mut self, id: JobId, came: &Came, now: Instant) -> Option<(LaneId, bool)> {
        let Entry { lane, host, place, .. } = self.jobs.remove(&id)?;
        let Place::Flying { given_up, slots, era } = place else {
            debug_assert!(false, "{id:?} lands, but never flew");
            return None;
        };
        self.flying = self.flying.saturating_sub(1);
        if let (Some(walk), Some(echo)) = (&mut self.walk, came.echo) {
            walk.hear(era, echo);
        }
        if let Some(limits) = &self.limits {
            let mut limits = lock(limits);
            if !came.attempted {
                limits.give_back(host.as_ref(), slots);
            }
            // A step with an attempt may have given back a slot of a further one, which it took by
            // itself, so every landing is a reason to look again.
            if let Some(timer) = self.gate.take() {
                self.heap.cancel(timer);
            }
            for left in host.iter().chain(&came.visited) {
                limits.leave(left, now);
                self.ready.open(left, &mut self.heap);
            }
        }
        Some((lane, given_up))
    }

    fn end(&mut self, entry: Entry<J>, ending: Ending) {
        if let Some(timer) = entry.deadline {
            self.heap.cancel(timer);
        }
        match entry.place {
            Place::Ready(job) => self.ended.push_back((job, ending)),
            Place::Waiting(job, timer, reason) => {
                self.heap.cancel(timer);
                self.waiting.remove(reason, 1);
                self.ended.push_back((job, ending));
            }
            Place::Flying { .. } => {}
        }
    }

    fn give_up(&mut self, ending: Ending, picked: impl Fn(&Entry<J>) -> bool) {
        let mut leaving = Vec::new();
        for (id, entry) in &mut self.jobs {
            if !picked(entry) {
                continue;
            }
            match &mut entry.place {
                // A stop ends a flying job by `stopped`; this flag is for its owner's wish.
                Place::Flying { given_up, .. } => *given_up |= ending == Ending::Cancelled,
                Place::Ready(_) | Place::Waiting(..) => leaving.push(*id),
            }
        }
        // In the order of their arrival, which a map does not keep.
        leaving.sort_unstable();
        let mut left = Vec::with_capacity(leaving.len());
        for id in leaving {
            left.extend(self.jobs.remove(&id));
        }
        let jobs = &self.jobs;
        self.ready.retain(|id| jobs.contains_key(&id));
        for entry in left {
            self.end(entry, ending);
        }
    }
}

/// What a step did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Came {
    /// Whether it made an attempt; if not, it used no slot of a rate.
    pub(crate) attempted: bool,
    /// What its last attempt says about how much the other side bears.
    pub(crate) echo: Option<Echo>,
    /// The hosts that it arrived at beside the one that it was sent to.
    pub(crate) visited: Vec<Arc<str>>,
}

impl Came {
    /// A step that only found that it has to wait, or was not made.
    pub(crate) const UNATTEMPTED: Self = Self { attempted: false, echo: None, visited: Vec::new() };

    /// An attempt that nobody knows the outcome of.
    pub(crate) const ATTEMPTED: Self = Self { attempted: true, echo: None, visited: Vec::new() };
}

/// What a step left to be waited for.
#[derive(Debug, Clone)]
pub(crate) struct Wish {
    /// Not before this time.
    pub(crate) until: Instant,
    /// Why.
    pub(crate) reason: WaitReason,
    /// The host of the next attempt.
    pub(crate) host: Option<Arc<str>>,
    /// What the step did.
    pub(crate) came: Came,
    /// When it ends, if no worker has taken it by then.
    pub(crate) deadline: Option<Instant>,
}

fn lock(limits: &SharedLimiter) -> MutexGuard<'_, Limiter> {
    // Each of its calls leaves the limiter whole, so a panic elsewhere does no harm.
    limits.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
#[path = "scheduler_tests.rs"]
mod tests;
