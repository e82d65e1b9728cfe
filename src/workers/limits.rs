//! What a run may do at once and per second.
//!
//! A limit counts attempts, so retries and second passes are inside it. A limit that is hit is
//! never slept on by a worker: the scheduler keeps the job where it is and puts the *limit* into
//! the heap of waits, one entry however many jobs stand behind it, and other hosts go on.
//!
//! A slot that was taken for a step that then made no attempt (its host cools down, no proxy is
//! usable) is given back and good for the next attempt within one interval. Without that, a
//! thousand URLs of a host that asked for quiet would eat a thousand slots of a slow run. One slot
//! is kept this way at most, so the rate exceeds its promise by no more than one attempt.

use crate::policy::RateLimit;
use std::num::NonZeroUsize;
use std::time::Instant;

/// The limits of a run; everything that is not set is unlimited.
#[derive(Debug, Clone, Default)]
pub(crate) struct Limits {
    /// Attempts per second, over all hosts.
    pub(crate) rate: Option<RateLimit>,
    /// Attempts per second to one host.
    pub(crate) host_rate: Option<RateLimit>,
    /// Attempts at once to one host.
    pub(crate) per_host: Option<NonZeroUsize>,
}

/// The slots of a rate, with the one that was given back.
#[derive(Debug, Clone)]
pub(crate) struct Slots {
    limit: RateLimit,
    spare_until: Option<Instant>,
}

impl Slots {
    /// The slots of `limit`.
    pub(crate) fn new(limit: RateLimit) -> Self {
        Self { limit, spare_until: None }
    }

    /// Takes a slot now, or says when the next one is free.
    pub(crate) fn take(&mut self, now: Instant) -> Result<(), Instant> {
        match self.spare_until.take() {
            Some(until) if now <= until => Ok(()),
            _ => self.limit.check(now),
        }
    }

    /// When a slot is free, without taking it.
    pub(crate) fn look(&self, now: Instant) -> Result<(), Instant> {
        self.clone().take(now)
    }

    /// Gives the slot of a step that made no attempt back.
    pub(crate) fn give_back(&mut self, now: Instant) {
        self.spare_until = now.checked_add(self.limit.interval());
    }
}

/// How many events a rate admits at once: what falls into 10 ms, at least one.
///
/// Below 100 a second that is perfectly smooth. Above, timers are too coarse to space single
/// attempts, and a burst of one would lose the time by which each wake-up is late.
pub(crate) fn burst(per_second: f64) -> u32 {
    // Saturating by the definition of `as`, and NaN is 0.
    ((per_second * 0.01) as u32).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::{Clock, SimClock, secs};

    #[test]
    fn burst_is_ten_milliseconds_worth() {
        for (rate, wanted) in [
            (f64::NAN, 1),
            (-1.0, 1),
            (0.2, 1),
            (99.0, 1),
            (1000.0, 10),
            (25_000.0, 250),
            (f64::INFINITY, u32::MAX),
        ] {
            assert_eq!(burst(rate), wanted, "{rate}");
        }
    }

    #[test]
    fn a_slot_given_back_is_good_once_and_for_one_interval() {
        let now = SimClock::default().now();
        let limit = RateLimit::new(2.0, 1).expect("2 a second");
        let mut slots = Slots::new(limit);
        assert_eq!(slots.take(now), Ok(()));
        assert_eq!(slots.look(now), Err(now + secs(0.5)));
        slots.give_back(now);
        assert_eq!(slots.look(now + secs(0.1)), Ok(()));
        assert_eq!(slots.take(now + secs(0.1)), Ok(()));
        assert_eq!(slots.take(now + secs(0.1)), Err(now + secs(0.5)));
        slots.give_back(now + secs(0.1));
        // Too late for the one given back, but the next regular one is free.
        assert_eq!(slots.take(now + secs(0.7)), Ok(()));
        assert!(slots.take(now + secs(0.7)).is_err());
    }
}
