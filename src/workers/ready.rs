//! The jobs that may be stepped now, queued per host.
//!
//! One queue for all would let a thousand URLs of a host that is at its limit stand in front of
//! everybody else. Here each host has its own two queues, *due* (a wait has ended) and *fresh*
//! (never stepped), and hosts take turns: first those with due jobs, then those with fresh ones.
//! A host at its parallel limit, or whose next slot is not free yet, is not among those that take
//! turns; it comes back when an attempt ends or its timer fires. So finding the next job costs
//! the same for one host and for a hundred thousand, blocked or not.
//!
//! Jobs whose URL names no host share a queue without limits: they fail in their first step.

use super::delay::{DelayHeap, Timer};
use super::limits::{Limits, Slot, Slots};
use super::scheduler::{JobId, Sleeper};
use std::collections::{HashMap, VecDeque};
use std::num::NonZeroUsize;
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
#[derive(Debug)]
pub(crate) struct Ready {
    hosts: HashMap<Option<Arc<str>>, Host>,
    due: VecDeque<Option<Arc<str>>>,
    fresh: VecDeque<Option<Arc<str>>>,
    per_host: Option<NonZeroUsize>,
    host_rate: Option<Slots>,
    len: usize,
}

#[derive(Debug, Default)]
struct Host {
    due: Queue,
    fresh: Queue,
    flying: usize,
    slots: Option<Slots>,
    /// Its next slot is not free yet.
    held: Option<Timer>,
    /// It has nothing to do, but its slots are still to be remembered.
    lingers: bool,
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

    fn is_open(&self, per_host: Option<NonZeroUsize>) -> bool {
        self.held.is_none() && per_host.is_none_or(|limit| self.flying < limit.get())
    }
}

impl Ready {
    /// Empty queues under these limits.
    pub(crate) fn new(limits: &Limits) -> Self {
        Self {
            hosts: HashMap::new(),
            due: VecDeque::new(),
            fresh: VecDeque::new(),
            per_host: limits.per_host,
            host_rate: limits.host_rate.clone(),
            len: 0,
        }
    }

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
        let limited = host.is_some();
        let rate = &self.host_rate;
        let entry = self
            .hosts
            .entry(host.clone())
            .or_insert_with(|| Host { slots: rate.clone().filter(|_| limited), ..Host::default() });
        entry.queue(class).jobs.push_back(job);
        self.len += 1;
        self.take_turns(host);
    }

    /// The class of the job that is next, with its host at the front of that ring.
    pub(crate) fn front(&mut self, now: Instant, heap: &mut DelayHeap<Sleeper>) -> Option<Class> {
        for class in [Class::Due, Class::Fresh] {
            while let Some(key) = self.ring(class).front().cloned() {
                let per_host = self.per_host.filter(|_| key.is_some());
                let Some(host) = self.hosts.get_mut(&key) else {
                    self.ring(class).pop_front();
                    continue;
                };
                let slot = match &host.slots {
                    Some(slots) => slots.look(now),
                    None => Ok(()),
                };
                let has_job = !host.queue(class).jobs.is_empty() && host.is_open(per_host);
                match slot {
                    Ok(()) if has_job => return Some(class),
                    Err(until) if has_job => {
                        host.held = Some(heap.set(until, Sleeper::Host(key)));
                    }
                    _ => {}
                }
                host.queue(class).in_ring = false;
                if let Some(key) = self.ring(class).pop_front() {
                    self.forget_if_idle(&key, now, heap);
                }
            }
        }
        None
    }

    /// Takes the job that [`front`](Self::front) found, and the slot of its host.
    pub(crate) fn take(&mut self, class: Class, now: Instant) -> Option<(JobId, Option<Slot>)> {
        let key = self.ring(class).pop_front()?;
        let host = self.hosts.get_mut(&key)?;
        let queue = host.queue(class);
        queue.in_ring = false;
        let job = queue.jobs.pop_front()?;
        host.flying += 1;
        // `front` looked at the same instant, so there is one.
        let slot = host.slots.as_mut().and_then(|slots| slots.take(now).ok());
        self.len -= 1;
        self.take_turns(&key);
        Some((job, slot))
    }

    /// Notes that the step to this host has ended, and takes the slot that it left unused.
    pub(crate) fn landed(
        &mut self,
        key: &Option<Arc<str>>,
        unused: Option<Slot>,
        now: Instant,
        heap: &mut DelayHeap<Sleeper>,
    ) {
        if let Some(host) = self.hosts.get_mut(key) {
            host.flying = host.flying.saturating_sub(1);
            if let (Some(slot), Some(slots)) = (unused, &mut host.slots) {
                slots.give_back(slot);
                if let Some(timer) = host.held.take() {
                    heap.cancel(timer);
                }
            }
        }
        self.take_turns(key);
        self.forget_if_idle(key, now, heap);
    }

    /// Lets a host that was held for its rate take turns again.
    pub(crate) fn wake(
        &mut self,
        key: &Option<Arc<str>>,
        now: Instant,
        heap: &mut DelayHeap<Sleeper>,
    ) {
        if let Some(host) = self.hosts.get_mut(key) {
            host.held = None;
        }
        self.take_turns(key);
        self.forget_if_idle(key, now, heap);
    }

    /// Forgets a host whose slots need not be remembered any longer, unless it is back at work.
    pub(crate) fn forget(
        &mut self,
        key: &Option<Arc<str>>,
        now: Instant,
        heap: &mut DelayHeap<Sleeper>,
    ) {
        if let Some(host) = self.hosts.get_mut(key) {
            host.lingers = false;
        }
        self.forget_if_idle(key, now, heap);
    }

    /// Takes one job of this host out of its queue.
    pub(crate) fn remove(
        &mut self,
        key: &Option<Arc<str>>,
        job: JobId,
        now: Instant,
        heap: &mut DelayHeap<Sleeper>,
    ) {
        if let Some(host) = self.hosts.get_mut(key) {
            for class in [Class::Due, Class::Fresh] {
                let jobs = &mut host.queue(class).jobs;
                if let Some(place) = jobs.iter().position(|queued| *queued == job) {
                    jobs.remove(place);
                    self.len -= 1;
                }
            }
        }
        self.forget_if_idle(key, now, heap);
    }

    /// Takes every job out for which `keep` is false.
    pub(crate) fn retain(
        &mut self,
        mut keep: impl FnMut(JobId) -> bool,
        now: Instant,
        heap: &mut DelayHeap<Sleeper>,
    ) {
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
            self.forget_if_idle(&key, now, heap);
        }
    }

    fn ring(&mut self, class: Class) -> &mut VecDeque<Option<Arc<str>>> {
        match class {
            Class::Due => &mut self.due,
            Class::Fresh => &mut self.fresh,
        }
    }

    /// Puts a host that has jobs and is not blocked into the rings where it is missing.
    fn take_turns(&mut self, key: &Option<Arc<str>>) {
        let per_host = self.per_host.filter(|_| key.is_some());
        let Some(host) = self.hosts.get_mut(key) else { return };
        if !host.is_open(per_host) {
            return;
        }
        for (queue, ring) in [(&mut host.due, &mut self.due), (&mut host.fresh, &mut self.fresh)] {
            if !queue.in_ring && !queue.jobs.is_empty() {
                queue.in_ring = true;
                ring.push_back(key.clone());
            }
        }
    }

    /// Drops the memory of a host that has nothing to do, once its rate has nothing to say either.
    fn forget_if_idle(
        &mut self,
        key: &Option<Arc<str>>,
        now: Instant,
        heap: &mut DelayHeap<Sleeper>,
    ) {
        let Some(host) = self.hosts.get_mut(key) else { return };
        let idle = host.flying == 0 && host.due.is_idle() && host.fresh.is_idle();
        if !idle || host.held.is_some() || host.lingers {
            return;
        }
        if let Some(until) = host.slots.as_ref().and_then(|slots| slots.matters_until(now)) {
            host.lingers = true;
            heap.set(until, Sleeper::Memory(key.clone()));
            return;
        }
        self.hosts.remove(key);
    }
}
