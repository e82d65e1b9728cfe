//! What a run may do at once and per second, counted for every attempt.
//!
//! A limit is about what the other side sees: a retry, a hop of a redirect, the answer to a
//! challenge, a request that is sent again and an exit check are attempts like any other. So who is
//! about to make one asks here first, and either has its slots or learns why not. Nobody waits here:
//! a limit that is hit is a value, and what to do about it is up to whoever asked.
//!
//! How many attempts fly to one host is counted by *visits*: whoever sends to a host for the first
//! time arrives there, and leaves when its step is over. An attempt to a host that is being visited
//! takes slots of the rates alone.

use super::slots::{Slot, Slots};
use std::collections::HashMap;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Instant;

/// The limits of a run; everything that is not set is unlimited.
#[derive(Debug, Clone, Default)]
pub(crate) struct Limiter {
    /// Attempts per second, over all hosts.
    rate: Option<Slots>,
    /// Attempts per second to one host, each of which begins with these.
    host_rate: Option<Slots>,
    /// Visits at once to one host.
    per_host: Option<NonZeroUsize>,
    hosts: HashMap<Arc<str>, Host>,
    /// How many hosts are remembered before those are looked for that can go.
    most: usize,
}

#[derive(Debug, Clone, Default)]
struct Host {
    slots: Option<Slots>,
    visits: usize,
}

/// What an attempt asks for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Visit<'a> {
    /// Whom it goes to; a URL that names no host is under the limit of the run alone.
    pub(crate) host: Option<&'a Arc<str>>,
    /// Whether that is a visit of its own.
    pub(crate) arrives: bool,
}

/// The slots that an attempt took.
#[derive(Debug, Clone, Copy, Default)]
#[must_use]
pub(crate) struct Taken {
    run: Option<Slot>,
    host: Option<Slot>,
}

/// The limit that is hit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Busy {
    /// That of the run, until this time.
    Run(Instant),
    /// The rate of the host, until this time.
    HostRate(Instant),
    /// The visits to the host, until one ends.
    Host,
}

impl Limiter {
    /// These limits; `None` where there is none.
    pub(crate) fn new(
        rate: Option<Slots>,
        host_rate: Option<Slots>,
        per_host: Option<NonZeroUsize>,
    ) -> Option<Self> {
        let any = rate.is_some() || host_rate.is_some() || per_host.is_some();
        any.then(|| Self { rate, host_rate, per_host, ..Self::default() })
    }

    /// Whether one host can be at its limit.
    pub(crate) fn knows_hosts(&self) -> bool {
        self.host_rate.is_some() || self.per_host.is_some()
    }

    /// Takes the slots of an attempt.
    ///
    /// # Errors
    /// The limit that is hit; nothing is taken.
    pub(crate) fn take(&mut self, visit: Visit<'_>, now: Instant) -> Result<Taken, Busy> {
        self.look(visit, now)?;
        let mut taken = Taken::default();
        if let Some(name) = visit.host
            && self.knows_hosts()
        {
            self.make_room(now);
            let fresh = || Host { slots: self.host_rate.clone(), visits: 0 };
            let host = self.hosts.entry(Arc::clone(name)).or_insert_with(fresh);
            host.visits += usize::from(visit.arrives);
            // Looked at above at the same time, so there is one; likewise below.
            taken.host = host.slots.as_mut().and_then(|slots| slots.take(now).ok());
        }
        taken.run = self.rate.as_mut().and_then(|rate| rate.take(now).ok());
        Ok(taken)
    }

    /// Whether an attempt would get its slots.
    ///
    /// # Errors
    /// The limit that is hit: of several the host's, so that others can go on.
    pub(crate) fn look(&self, visit: Visit<'_>, now: Instant) -> Result<(), Busy> {
        if let Some(host) = visit.host.and_then(|name| self.hosts.get(name)) {
            let is_full = |most: NonZeroUsize| host.visits >= most.get();
            if visit.arrives && self.per_host.is_some_and(is_full) {
                return Err(Busy::Host);
            }
            if let Some(slots) = &host.slots {
                slots.look(now).map_err(Busy::HostRate)?;
            }
        }
        match &self.rate {
            Some(rate) => rate.look(now).map_err(Busy::Run),
            None => Ok(()),
        }
    }

    /// Gives the slots of an attempt that was not made back. Its visit goes on.
    pub(crate) fn give_back(&mut self, host: Option<&Arc<str>>, taken: Taken) {
        if let (Some(slot), Some(rate)) = (taken.run, &mut self.rate) {
            rate.give_back(slot);
        }
        let slots = host.and_then(|name| self.hosts.get_mut(name)?.slots.as_mut());
        if let (Some(slot), Some(slots)) = (taken.host, slots) {
            slots.give_back(slot);
        }
    }

    /// Ends a visit.
    pub(crate) fn leave(&mut self, host: &Arc<str>, now: Instant) {
        if let Some(known) = self.hosts.get_mut(host) {
            known.visits = known.visits.saturating_sub(1);
            if known.is_forgettable(now) {
                self.hosts.remove(host);
            }
        }
    }

    /// Forgets the hosts that have nothing to tell, whenever there are twice as many as were left
    /// the last time.
    fn make_room(&mut self, now: Instant) {
        const LEAST: usize = 64;
        if self.hosts.len() >= self.most.max(LEAST) {
            self.hosts.retain(|_, host| !host.is_forgettable(now));
            self.most = 2 * self.hosts.len();
        }
    }

    /// How many hosts are remembered.
    #[cfg(test)]
    pub(crate) fn hosts(&self) -> usize {
        self.hosts.len()
    }
}

impl Host {
    fn is_forgettable(&self, now: Instant) -> bool {
        let matters = self.slots.as_ref().and_then(|slots| slots.matters_until(now));
        self.visits == 0 && matters.is_none()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::{Clock, SimClock, secs};

    fn name(host: &str) -> Arc<str> {
        Arc::from(host)
    }

    fn arrival(host: &Arc<str>) -> Visit<'_> {
        Visit { host: Some(host), arrives: true }
    }

    fn further(host: &Arc<str>) -> Visit<'_> {
        Visit { host: Some(host), arrives: false }
    }

    fn limiter(rate: Option<f64>, host_rate: Option<f64>, per_host: usize) -> Limiter {
        let slots = |rate: f64| Slots::new(rate, 1).expect("a rate");
        let per_host = NonZeroUsize::new(per_host);
        Limiter::new(rate.map(slots), host_rate.map(slots), per_host).expect("limits")
    }

    #[test]
    fn without_limits_there_is_none() {
        assert!(Limiter::new(None, None, None).is_none());
    }

    #[test]
    fn every_attempt_takes_its_slots_and_only_an_arrival_is_a_visit() {
        let now = SimClock::default().now();
        let (a, b) = (name("a"), name("b"));
        let mut limiter = limiter(Some(100.0), Some(1.0), 1);
        assert!(limiter.take(arrival(&a), now).is_ok());
        assert_eq!(limiter.look(arrival(&a), now + secs(9.0)), Err(Busy::Host));
        let until = now + secs(1.0);
        assert_eq!(limiter.look(further(&a), now), Err(Busy::HostRate(until)));
        assert!(limiter.take(further(&a), until).is_ok());
        // The other host is free, the run is not.
        let soon = until + secs(0.01);
        assert_eq!(limiter.look(arrival(&b), until), Err(Busy::Run(soon)));
        assert!(limiter.take(arrival(&b), soon).is_ok());
        limiter.leave(&a, soon);
        assert_eq!(limiter.look(arrival(&a), soon + secs(9.0)), Ok(()));
    }

    #[test]
    fn what_was_not_used_is_given_back_and_the_visit_goes_on() {
        let now = SimClock::default().now();
        let a = name("a");
        let mut limiter = limiter(Some(1.0), Some(1.0), 1);
        let taken = limiter.take(arrival(&a), now).expect("the first");
        limiter.give_back(Some(&a), taken);
        assert_eq!(limiter.look(further(&a), now), Ok(()));
        assert_eq!(limiter.look(arrival(&a), now), Err(Busy::Host));
        limiter.leave(&a, now);
    }

    #[test]
    fn hosts_that_have_nothing_to_tell_are_forgotten() {
        let mut now = SimClock::default().now();
        let mut limiter = limiter(None, Some(10.0), 4);
        for number in 0..10_000 {
            let host = name(&format!("h{number}"));
            assert!(limiter.take(arrival(&host), now).is_ok());
            limiter.leave(&host, now);
            now += secs(0.01);
            assert!(limiter.hosts() <= 128, "{}", limiter.hosts());
        }
    }
}
