//! A smooth limit of events per second.
//!
//! A bucket that refills once a second lets a whole second's worth through at its edge, which is
//! what servers count as a burst. The generic cell rate algorithm keeps one number instead, the
//! time at which the next event would be due if all came evenly spaced, and lets an event through
//! when it is not earlier than that by more than the burst allows. One instant of state, no timer,
//! and a refusal knows when to come back.

use std::time::{Duration, Instant};

/// At most `per_second` events, evenly spaced rather than in bursts (GCRA).
#[derive(Debug, Clone)]
pub struct RateLimit {
    interval: Duration,
    /// How much earlier than due an event may come.
    tolerance: Duration,
    /// When the next event is due; `None` before the first.
    due: Option<Instant>,
}

impl RateLimit {
    /// A limit with room for `burst` events at once (1 is perfectly smooth).
    ///
    /// `None` where `per_second` is not a positive finite number, or less than one in a hundred
    /// years, and where `burst` is zero.
    pub fn new(per_second: f64, burst: u32) -> Option<Self> {
        if !per_second.is_finite() || per_second <= 0.0 {
            return None;
        }
        let interval = Duration::try_from_secs_f64(per_second.recip()).ok()?;
        if interval > super::RetryAfter::LONGEST {
            return None;
        }
        let tolerance = interval.saturating_mul(burst.checked_sub(1)?);
        Some(Self { interval, tolerance, due: None })
    }

    /// Takes a slot now, or says when the next one is free.
    ///
    /// # Errors
    /// The earliest time at which a slot is free; nothing is taken.
    pub fn check(&mut self, now: Instant) -> Result<(), Instant> {
        let free = self.next_free(now);
        if free > now {
            return Err(free);
        }
        self.take(now);
        Ok(())
    }

    /// Takes the next free slot, now or later, and says when it is.
    pub fn reserve(&mut self, now: Instant) -> Instant {
        let free = self.next_free(now);
        self.take(free);
        free
    }

    /// When the next slot is free, without taking it.
    pub(crate) fn free(&self, now: Instant) -> Instant {
        self.next_free(now)
    }

    /// When the next event is due, if all come evenly spaced; from then on the limit is as good as
    /// a new one, whatever its burst. `None` before the first.
    pub(crate) fn due(&self) -> Option<Instant> {
        self.due
    }

    /// Takes the slot that was taken last back, as if it had not been taken.
    pub(crate) fn undo(&mut self) {
        self.due = self.due.and_then(|due| due.checked_sub(self.interval));
    }

    /// The mean distance of two events.
    pub fn interval(&self) -> Duration {
        self.interval
    }

    fn next_free(&self, now: Instant) -> Instant {
        // A tolerance that reaches before the start of the clock permits everything until then.
        self.due
            .and_then(|due| due.checked_sub(self.tolerance))
            .map_or(now, |earliest| earliest.max(now))
    }

    fn take(&mut self, at: Instant) {
        let due = self.due.map_or(at, |due| due.max(at));
        // Where the clock cannot tell a time so far ahead, the limit stays where it is.
        self.due = Some(due.checked_add(self.interval).unwrap_or(due));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::{Clock, SimClock, secs};
    use proptest::prelude::*;

    #[test]
    fn events_are_evenly_spaced() {
        let clock = SimClock::default();
        let start = clock.now();
        let mut limit = RateLimit::new(4.0, 1).unwrap();
        assert_eq!(limit.interval(), secs(0.25));
        assert_eq!(limit.check(start), Ok(()));
        assert_eq!(limit.check(start), Err(start + secs(0.25)));
        assert_eq!(limit.check(start + secs(0.2)), Err(start + secs(0.25)));
        assert_eq!(limit.check(start + secs(0.25)), Ok(()));
        // An idle hour saves nothing up.
        let later = start + secs(3600.0);
        assert_eq!(limit.check(later), Ok(()));
        assert_eq!(limit.check(later), Err(later + secs(0.25)));
    }

    #[test]
    fn reservations_queue_up() {
        let start = SimClock::default().now();
        let mut limit = RateLimit::new(2.0, 1).unwrap();
        let slots: Vec<_> = (0..4).map(|_| limit.reserve(start) - start).collect();
        assert_eq!(slots, [secs(0.0), secs(0.5), secs(1.0), secs(1.5)]);
        assert_eq!(limit.check(start + secs(1.9)), Err(start + secs(2.0)));
    }

    #[test]
    fn a_burst_is_let_through_at_once_and_refills_evenly() {
        let start = SimClock::default().now();
        let mut limit = RateLimit::new(10.0, 3).unwrap();
        for _ in 0..3 {
            assert_eq!(limit.check(start), Ok(()));
        }
        assert_eq!(limit.check(start), Err(start + secs(0.1)));
        assert_eq!(limit.check(start + secs(0.1)), Ok(()));
        assert_eq!(limit.check(start + secs(0.1)), Err(start + secs(0.2)));
    }

    #[test]
    fn rates_that_are_none_are_refused() {
        for rate in [0.0, -1.0, f64::NAN, f64::INFINITY, 1e-300] {
            assert!(RateLimit::new(rate, 1).is_none(), "{rate}");
        }
        assert!(RateLimit::new(1.0, 0).is_none());
        assert!(RateLimit::new(1e300, u32::MAX).is_some());
    }

    proptest! {
        #[test]
        fn no_second_sees_more_than_its_share(
            per_second in 1_u32..200,
            burst in 1_u32..20,
            gaps in proptest::collection::vec(0_u64..40, 1..400),
        ) {
            let mut now = SimClock::default().now();
            let mut limit = RateLimit::new(f64::from(per_second), burst).unwrap();
            let mut granted = Vec::new();
            for gap in gaps {
                now += Duration::from_millis(gap);
                match limit.check(now) {
                    Ok(()) => granted.push(now),
                    Err(free) => prop_assert!(free > now),
                }
            }
            for (index, first) in granted.iter().enumerate() {
                let second = granted[index..].iter().filter(|at| **at - *first < secs(1.0));
                prop_assert!(second.count() <= (per_second + burst) as usize);
            }
        }
    }
}
