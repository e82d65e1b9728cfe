//! The jobs that may be stepped now, queued per host.
//!
//! One queue for all would let a thousand URLs of a host that is at its limit stand in front of
//! everybody else. Here each host has its own two queues, *due* (a wait has ended) and *fresh*
//! (never stepped), and hosts take turns: first those with due jobs, then those with fresh ones.
//! A host that is found at a limit loses its turns; it comes back when a visit to it ends or its
//! timer fires. So finding the next job costs the same for one host and for a hundred thousand,
//! blocked or not.
//!
//! Jobs whose URL names no host share a queue without limits: they fail in their first step.

use super::delay::{DelayHeap, Timer};
use super::scheduler::{JobId, Sleeper};
use crate::policy::{Busy, Taken};
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Instant;

/// Which jobs go first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Class {
    /// A wait of theirs has ended.
    Due,
    /// Never stepped.
    Fresh,
}

/// The queues of all hosts.
#[derive(Debug, Default)]
pub(crate) struct Ready {
    hosts: HashMap<Option<Arc<str>>, Host>,
    due: VecDeque<Option<Arc<str>>>,
    fresh: VecDeque<Option<Arc<str>>>,
    len: usize,
}

#[derive(Debug, Default)]
struct Host {
    due: Queue,
    fresh: Queue,
    /// What keeps it from its turns.
    held: Option<Held>,
}

#[derive(Debug)]
enum Held {
    /// Its next slot is not free yet.
    Rate(Timer),
    /// As many visit it as may.
    Visits,
}

#[derive(Debug, Default)]
struct Queue {
    jobs: VecDeque<JobId>,
    /// Whether the host stands in the ring of this class. A host that became blocked or empty
    /// stays there until its turn comes, so this may be true without a job to take.
    in_ring: bool,
}

impl Queue {
    /// A host that still stands in a ring is remembered until its turn: forgotten before, it could
    /// come back and stand there twice.
    fn is_idle(&self) -> bool {
        self.jobs.is_empty() && !self.in_ring
    }
}

impl Host {
    fn queue(&mut self, class: Class) -> &mut Queue {
        match class {
            Class::Due => &mut self.due,
            Class::Fresh => &mut self.fresh,
        }
    }
}

impl Ready {
    /// How many jobs are queued.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// How many hosts are remembered.
    #[cfg(test)]
    pub(crate) fn hosts(&self) -> usize {
        self.hosts.len()
    }

    /// Queues a job.
    pub(crate) fn push(&mut self, host: &Option<Arc<str>>, job: JobId, class: Class) {
        let entry = self.hosts.entry(host.clone()).or_default();
        entry.queue(class).jobs.push_back(job);
        self.len += 1;
        self.take_turns(host);
    }

    /// The class of the job that is next, with its host at the front of that ring and what the
    /// limits gave for it; or until when the whole run has to wait.
    pub(crate) fn front(
        &mut self,
        heap: &mut DelayHeap<Sleeper>,
        mut ask: impl FnMut(Option<&Arc<str>>) -> Result<Taken, Busy>,
    ) -> Option<Result<(Class, Taken), Instant>> {
        for class in [Class::Due, Class::Fresh] {
            while let Some(key) = self.ring(class).front().cloned() {
                let Some(host) = self.hosts.get_mut(&key) else {
                    self.ring(class).pop_front();
                    continue;
                };
                if host.held.is_none() && !host.queue(class).jobs.is_empty() {
                    match ask(key.as_ref()) {
                        Ok(taken) => return Some(Ok((class, taken))),
                        Err(Busy::Run(until)) => return Some(Err(until)),
                        Err(Busy::HostRate(until)) => {
                            let timer = heap.set(until, Sleeper::Host(key.clone()));
                            host.held = Some(Held::Rate(timer));
                        }
                        Err(Busy::Host) => host.held = Some(Held::Visits),
                    }
                }
                host.queue(class).in_ring = false;
                if let Some(key) = self.ring(class).pop_front() {
                    self.forget_if_idle(&key);
                }
            }
        }
        None
    }

    /// Takes the job that [`front`](Self::front) found.
    pub(crate) fn take(&mut self, class: Class) -> Option<JobId> {
        let key = self.ring(class).pop_front()?;
        let host = self.hosts.get_mut(&key)?;
        let queue = host.queue(class);
        queue.in_ring = false;
        let job = queue.jobs.pop_front()?;
        self.len -= 1;
        self.take_turns(&key);
        self.forget_if_idle(&key);
        Some(job)
    }

    /// Notes that a visit to this host has ended, with which a slot of its rate may have come back.
    pub(crate) fn open(&mut self, host: &Arc<str>, heap: &mut DelayHeap<Sleeper>) {
        let key = Some(Arc::clone(host));
        let Some(known) = self.hosts.get_mut(&key) else { return };
        if let Some(Held::Rate(timer)) = known.held.take() {
            heap.cancel(timer);
        }
        self.take_turns(&key);
        self.forget_if_idle(&key);
    }

    /// Lets a host that was held for its rate take turns again.
    pub(crate) fn wake(&mut self, key: &Option<Arc<str>>) {
        if let Some(host) = self.hosts.get_mut(key) {
            host.held = None;
        }
        self.take_turns(key);
        self.forget_if_idle(key);
    }

    /// Takes one job of this host out of its queue.
    pub(crate) fn remove(&mut self, key: &Option<Arc<str>>, job: JobId) {
        if let Some(host) = self.hosts.get_mut(key) {
            for class in [Class::Due, Class::Fresh] {
                let jobs = &mut host.queue(class).jobs;
                if let Some(place) = jobs.iter().position(|queued| *queued == job) {
                    jobs.remove(place);
                    self.len -= 1;
                }
            }
        }
        self.forget_if_idle(key);
    }

    /// Takes every job out for which `keep` is false.
    pub(crate) fn retain(&mut self, mut keep: impl FnMut(JobId) -> bool) {
        let mut emptied = Vec::new();
        let mut len = 0;
        for (key, host) in &mut self.hosts {
            host.due.jobs.retain(|job| keep(*job));
            host.fresh.jobs.retain(|job| keep(*job));
            let left = host.due.jobs.len() + host.fresh.jobs.len();
            if left == 0 {
                emptied.push(key.clone());
            }
            len += left;
        }
        self.len = len;
        for key in emptied {
            self.forget_if_idle(&key);
        }
    }

    fn ring(&mut self, class: Class) -> &mut VecDeque<Option<Arc<str>>> {
        match class {
            Class::Due => &mut self.due,
            Class::Fresh => &mut self.fresh,
        }
    }

    /// Puts a host that has jobs and is not held into the rings where it is missing.
    fn take_turns(&mut self, key: &Option<Arc<str>>) {
        let Some(host) = self.hosts.get_mut(key).filter(|host| host.held.is_none()) else { return };
        for (queue, ring) in [(&mut host.due, &mut self.due), (&mut host.fresh, &mut self.fresh)] {
            if !queue.in_ring && !queue.jobs.is_empty() {
                queue.in_ring = true;
                ring.push_back(key.clone());
            }
        }
    }

    /// Drops the memory of a host that has nothing to do. What the limits know of it stays there.
    fn forget_if_idle(&mut self, key: &Option<Arc<str>>) {
        let Some(host) = self.hosts.get(key) else { return };
        // A timer that fires for a host which came back meanwhile would let it go too early.
        let rests = matches!(host.held, Some(Held::Rate(_)));
        if host.due.is_idle() && host.fresh.is_idle() && !rests {
            self.hosts.remove(key);
        }
    }
}
