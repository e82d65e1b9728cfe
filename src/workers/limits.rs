//! What a run may do at once and per second.
//!
//! A limit counts attempts, so retries and second passes are inside it. A limit that is hit is
//! never slept on by a worker: the scheduler keeps the job where it is and puts the *limit* into
//! the heap of waits, one entry however many jobs stand behind it, and other hosts go on.
//!
//! A slot that was taken for a step that then made no attempt (its host cools down, no proxy is
//! usable) is given back, and good until one interval after it was first taken. Without that, a
//! thousand URLs of a host that asked for quiet would eat a thousand slots of a slow run. Since no
//! slot moves further than one interval, a run never makes more than one attempt beyond what its
//! rate and burst allow in any stretch of time.

use crate::policy::RateLimit;
use std::num::NonZeroUsize;
use std::time::{Duration, Instant};

/// The limits of a run; everything that is not set is unlimited.
#[derive(Debug, Clone, Default)]
pub(crate) struct Limits {
    /// Attempts per second, over all hosts.
    pub(crate) rate: Option<Slots>,
    /// Attempts per second to one host, each of which begins with these.
    pub(crate) host_rate: Option<Slots>,
    /// Attempts at once to one host.
    pub(crate) per_host: Option<NonZeroUsize>,
}

/// The slots of a rate, with the one that was given back.
#[derive(Debug, Clone)]
pub(crate) struct Slots {
    limit: RateLimit,
    spare: Option<Slot>,
    /// How long after the last slot the limit is as good as new.
    recovery: Duration,
    last: Option<Instant>,
}

/// A slot that was taken, and when it first was.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Slot(Instant);

impl Slots {
    /// At most `per_second`, and `burst` at once; `None` where that is no rate.
    pub(crate) fn new(per_second: f64, burst: u32) -> Option<Self> {
        let limit = RateLimit::new(per_second, burst)?;
        let recovery = limit.interval().saturating_mul(burst);
        Some(Self { limit, spare: None, recovery, last: None })
    }

    /// Takes a slot now, or says when the next one is free.
    pub(crate) fn take(&mut self, now: Instant) -> Result<Slot, Instant> {
        if let Some(slot) = self.spare.take()
            && now.saturating_duration_since(slot.0) <= self.limit.interval()
        {
            return Ok(slot);
        }
        self.limit.check(now)?;
        self.last = Some(now);
        Ok(Slot(now))
    }

    /// When a slot is free, without taking it.
    pub(crate) fn look(&self, now: Instant) -> Result<(), Instant> {
        self.clone().take(now).map(drop)
    }

    /// Until when these slots tell more than new ones would; `None` where they do not.
    pub(crate) fn matters_until(&self, now: Instant) -> Option<Instant> {
        self.last.and_then(|last| last.checked_add(self.recovery)).filter(|until| *until > now)
    }

    /// Gives the slot of a step that made no attempt back.
    pub(crate) fn give_back(&mut self, slot: Slot) {
        // Of two, the one that is good for longer.
        self.spare = self.spare.max(Some(slot));
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
        let mut slots = Slots::new(2.0, 1).expect("2 a second");
        let slot = slots.take(now).expect("the first");
        assert_eq!(slots.look(now), Err(now + secs(0.5)));
        slots.give_back(slot);
        assert_eq!(slots.look(now + secs(0.1)), Ok(()));
        // It stays the slot that it was, however often it changes hands.
        assert_eq!(slots.take(now + secs(0.1)), Ok(slot));
        assert_eq!(slots.take(now + secs(0.1)), Err(now + secs(0.5)));
        slots.give_back(slot);
        // Too late for that one, but the next regular one is free.
        assert_eq!(slots.take(now + secs(0.7)), Ok(Slot(now + secs(0.7))));
        assert_eq!(slots.take(now + secs(0.7)), Err(now + secs(1.2)));
    }

    #[test]
    fn slots_matter_until_their_burst_has_come_back() {
        let now = SimClock::default().now();
        let mut slots = Slots::new(10.0, 3).expect("10 a second");
        assert_eq!(slots.matters_until(now), None);
        assert!(slots.take(now).is_ok());
        assert_eq!(slots.look(now), Ok(()));
        assert_eq!(slots.matters_until(now), Some(now + secs(0.3)));
        assert_eq!(slots.matters_until(now + secs(0.3)), None);
    }
}
