//! The limits of a run, as the sessions of its recipe meet them.
//!
//! The first attempt of a step has its slots from whoever hands the step out. Each further one (a
//! hop, the answer to a challenge, a copy of a request that was lost) asks for its own here.

use super::SessionBuilder;
use super::router::lock;
use crate::policy::{Busy, Limiter, Taken, Visit};
use std::sync::{Arc, Mutex};
use std::time::Instant;

/// One for all sessions of a run, and for who hands the steps out.
pub(crate) type SharedLimiter = Arc<Mutex<Limiter>>;

/// The hosts that a step sends to.
#[derive(Debug, Default)]
pub(super) struct Visits {
    /// The one that it was handed out for, under the limits of which it is counted already.
    home: Option<Arc<str>>,
    /// Those at which it arrived by itself.
    further: Vec<Arc<str>>,
}

impl Visits {
    /// Those of a step that was handed out for its first attempt, to `host`.
    pub(super) fn from(host: Option<&str>) -> Self {
        Self { home: host.map(Arc::from), further: Vec::new() }
    }

    fn include(&self, host: &str) -> bool {
        self.home.iter().chain(&self.further).any(|known| &**known == host)
    }

    /// The hosts at which it arrived by itself, to be left.
    pub(super) fn take_further(&mut self) -> Vec<Arc<str>> {
        std::mem::take(&mut self.further)
    }
}

impl SessionBuilder {
    /// The recipe of a run under these limits.
    pub(crate) fn limited(mut self, limits: Option<SharedLimiter>) -> Self {
        self.limits = limits;
        self
    }

    /// Whether one host can be at its limit.
    pub(super) fn counts_hosts(&self) -> bool {
        self.limits.as_ref().is_some_and(|limits| lock(limits).knows_hosts())
    }

    /// Takes the slots of an attempt to `host`; without limits nothing.
    ///
    /// # Errors
    /// The limit that is hit; nothing is taken.
    pub(super) fn take_slots(
        &self,
        host: Option<&str>,
        visits: &mut Visits,
        now: Instant,
    ) -> Result<Slots, Busy> {
        let Some(limits) = &self.limits else { return Ok(Slots::default()) };
        let mut limits = lock(limits);
        let host: Option<Arc<str>> = host.filter(|_| limits.knows_hosts()).map(Arc::from);
        let arrives = host.as_ref().is_some_and(|host| !visits.include(host));
        let taken = limits.take(Visit { host: host.as_ref(), arrives }, now)?;
        if let Some(host) = host.as_ref().filter(|_| arrives) {
            visits.further.push(Arc::clone(host));
        }
        Ok(Slots { taken, host })
    }

    /// Gives the slots of an attempt that was not made back.
    pub(super) fn give_slots_back(&self, slots: &Slots) {
        if let Some(limits) = &self.limits {
            lock(limits).give_back(slots.host.as_ref(), slots.taken);
        }
    }

    /// Ends the visits of a step that nobody handed out.
    pub(super) fn leave(&self, visits: &[Arc<str>]) {
        if let Some(limits) = self.limits.as_ref().filter(|_| !visits.is_empty()) {
            let now = self.clock.now();
            let mut limits = lock(limits);
            visits.iter().for_each(|host| limits.leave(host, now));
        }
    }
}

/// The slots that an attempt took.
#[derive(Debug, Default)]
#[must_use]
pub(super) struct Slots {
    taken: Taken,
    host: Option<Arc<str>>,
}
