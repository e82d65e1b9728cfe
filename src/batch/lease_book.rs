//! Which leases a run holds, and when each has to be extended.
//!
//! A URL can wait for hours: a backoff, a host that cools down, a later pass. Its lease lasts for a
//! minute, perhaps. So every lease is extended at half of its time, whatever its job is doing, and
//! an extension that fails is tried again at half of what is left: a source that is away for a
//! moment costs nothing, and a lease is given up only when its time is over.
//!
//! The book knows no clock and talks to nobody. It is told what happened and when, and says whom it
//! is time for.

use super::job_source::{Lease, LeaseId};
use std::collections::{BTreeSet, HashMap};
use std::time::{Duration, Instant};

/// Two tries to extend a lease are at least this far apart.
const LEAST_PAUSE: Duration = Duration::from_millis(500);

/// The leases that are held.
#[derive(Debug, Default)]
pub(super) struct LeaseBook {
    held: HashMap<LeaseId, Option<Times>>,
    /// Those that run out, by when they are to be extended.
    due: BTreeSet<(Instant, LeaseId)>,
}

#[derive(Debug, Clone, Copy)]
struct Times {
    lasts: Duration,
    until: Instant,
    due: Instant,
}

impl Times {
    /// Of a lease that lasts from now on; `None` where that is beyond all times.
    fn from(now: Instant, lasts: Duration) -> Option<Self> {
        let until = now.checked_add(lasts)?;
        Some(Self { lasts, until, due: now.checked_add(lasts / 2)? })
    }
}

impl LeaseBook {
    /// Notes a lease that was handed out now; whether it is one more. Where one of this name is held
    /// already, it begins anew.
    pub(super) fn note(&mut self, lease: &Lease, now: Instant) -> bool {
        let is_more = !self.release(&lease.id);
        let times = lease.lasts.and_then(|lasts| Times::from(now, lasts));
        if let Some(times) = times {
            self.due.insert((times.due, lease.id.clone()));
        }
        self.held.insert(lease.id.clone(), times);
        is_more
    }

    pub(super) fn holds(&self, id: &LeaseId) -> bool {
        self.held.contains_key(id)
    }

    /// Strikes a lease out: its job is settled, or it is lost. Whether it was held.
    pub(super) fn release(&mut self, id: &LeaseId) -> bool {
        match self.held.remove(id) {
            None => false,
            Some(times) => {
                if let Some(times) = times {
                    self.due.remove(&(times.due, id.clone()));
                }
                true
            }
        }
    }

    /// The leases that have to be extended now, at most so many. Each is due again at half of what
    /// is left of it, unless it is [`extended`](Self::extended) before.
    pub(super) fn due(&mut self, now: Instant, most: usize) -> Vec<LeaseId> {
        let mut found = Vec::new();
        while found.len() < most
            && self.due.first().is_some_and(|(due, _)| *due <= now)
            && let Some((_, id)) = self.due.pop_first()
        {
            if let Some(Some(times)) = self.held.get_mut(&id) {
                let left = times.until.saturating_duration_since(now);
                times.due = now.checked_add((left / 2).max(LEAST_PAUSE)).unwrap_or(now);
                self.due.insert((times.due, id.clone()));
            }
            found.push(id);
        }
        found
    }

    /// The source has extended this lease.
    pub(super) fn extended(&mut self, id: &LeaseId, now: Instant) {
        let Some(held) = self.held.get_mut(id) else { return };
        let Some(times) = held.take() else { return };
        self.due.remove(&(times.due, id.clone()));
        *held = Times::from(now, times.lasts);
        if let Some(times) = held {
            self.due.insert((times.due, id.clone()));
        }
    }

    /// Strikes those of these leases out whose time is over.
    pub(super) fn expire(&mut self, ids: &[LeaseId], now: Instant) -> usize {
        let is_over = |id: &LeaseId| {
            self.held.get(id).copied().flatten().is_some_and(|times| times.until <= now)
        };
        let over: Vec<_> = ids.iter().filter(|id| is_over(id)).collect();
        over.into_iter().filter(|id| self.release(id)).count()
    }

    /// All of them, in the order of their names.
    pub(super) fn all(&self) -> Vec<LeaseId> {
        let mut all: Vec<_> = self.held.keys().cloned().collect();
        all.sort_unstable();
        all
    }
}
