//! The slots of a rate, which can be given back.
//!
//! A slot is taken before it is known whether the attempt will be made: its host may cool down, or
//! no proxy be usable. A thousand URLs of a host that asked for quiet would eat a thousand slots of
//! a slow run. So what was not used is given back, and the limit is then as if it had never been
//! taken. That can be said of the last slot only; an older one is lost, since those behind it were
//! spaced by it. Both ways no stretch of time sees more than the rate and its burst allow.

use super::RateLimit;
use std::time::Instant;

/// The slots of a rate.
#[derive(Debug, Clone)]
pub(crate) struct Slots {
    limit: RateLimit,
    last: Option<Instant>,
}

/// A slot that was taken, by its time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Slot(Instant);

impl Slots {
    /// At most `per_second`, and `burst` at once; `None` where that is no rate.
    pub(crate) fn new(per_second: f64, burst: u32) -> Option<Self> {
        let limit = RateLimit::new(per_second, burst)?;
        Some(Self { limit, last: None })
    }

    /// Takes a slot now, or says when the next one is free.
    pub(crate) fn take(&mut self, now: Instant) -> Result<Slot, Instant> {
        self.limit.check(now)?;
        self.last = Some(now);
        Ok(Slot(now))
    }

    /// Whether a slot is free, or when the next one is.
    pub(crate) fn look(&self, now: Instant) -> Result<(), Instant> {
        let free = self.limit.free(now);
        if free > now { Err(free) } else { Ok(()) }
    }

    /// Until when these slots tell more than new ones would; `None` where they do not.
    pub(crate) fn matters_until(&self, now: Instant) -> Option<Instant> {
        self.limit.due().filter(|due| *due > now)
    }

    /// Gives the slot of an attempt that was not made back.
    pub(crate) fn give_back(&mut self, slot: Slot) {
        if self.last == Some(slot.0) {
            self.limit.undo();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;
    use crate::time::{Clock, SimClock, secs};

    #[test]
    fn a_slot_given_back_was_never_taken() {
        let now = SimClock::default().now();
        let mut slots = Slots::new(2.0, 1).expect("2 a second");
        let slot = slots.take(now).expect("the first");
        assert_eq!(slots.look(now), Err(now + secs(0.5)));
        slots.give_back(slot);
        assert_eq!(slots.look(now + secs(0.1)), Ok(()));
        // Taken later, it counts from then on.
        assert!(slots.take(now + secs(0.1)).is_ok());
        assert_eq!(slots.take(now + secs(0.2)), Err(now + secs(0.6)));
    }

    #[test]
    fn a_slot_with_others_behind_it_is_lost() {
        let now = SimClock::default().now();
        let mut slots = Slots::new(1.0, 2).expect("1 a second");
        let first = slots.take(now).expect("the first");
        assert!(slots.take(now + secs(0.5)).is_ok());
        slots.give_back(first);
        assert_eq!(slots.look(now + secs(0.5)), Err(now + secs(1.0)));
    }

    #[test]
    fn slots_matter_until_what_was_taken_has_come_back() {
        let now = SimClock::default().now();
        let mut slots = Slots::new(10.0, 3).expect("10 a second");
        assert_eq!(slots.matters_until(now), None);
        assert!(slots.take(now).is_ok());
        assert_eq!(slots.look(now), Ok(()));
        // One of the burst is used, and it takes the time of one until all of it is there again.
        assert_eq!(slots.matters_until(now), Some(now + secs(0.1)));
        assert_eq!(slots.matters_until(now + secs(0.1)), None);
        assert!(slots.take(now).is_ok());
        assert!(slots.take(now).is_ok());
        assert_eq!(slots.matters_until(now + secs(0.1)), Some(now + secs(0.3)));
        assert_eq!(slots.matters_until(now + secs(0.3)), None);
    }

    #[test]
    fn how_long_slots_matter_is_no_matter_of_a_burst_that_nobody_uses() {
        let now = SimClock::default().now();
        for burst in [1_000_000, u32::MAX] {
            let mut slots = Slots::new(1.0 / 3600.0, burst).expect("1 an hour");
            assert!(slots.take(now).is_ok());
            assert_eq!(slots.matters_until(now), Some(now + secs(3600.0)), "{burst}");
            assert_eq!(slots.matters_until(now + secs(3600.0)), None, "{burst}");
        }
    }

    #[test]
    fn no_stretch_sees_more_than_rate_and_burst_whatever_is_given_back() {
        for seed in 0..300 {
            let mut rng = Rng::seeded(seed);
            let (rate, burst) = (rng.uniform(1.0, 50.0), 1 + rng.below(4) as u32);
            let mut slots = Slots::new(rate, burst).expect("a rate");
            let start = SimClock::default().now();
            let mut now = start;
            let mut unsettled = Vec::new();
            let mut used: Vec<f64> = Vec::new();
            for _ in 0..300 {
                now += secs(rng.uniform(0.0, 1.5 / rate));
                if let Ok(slot) = slots.take(now) {
                    unsettled.push((slot, now));
                }
                if unsettled.len() > rng.below(3) {
                    let (slot, at) = unsettled.swap_remove(rng.below(unsettled.len()));
                    match rng.below(2) {
                        0 => slots.give_back(slot),
                        _ => used.push((at - start).as_secs_f64()),
                    }
                }
            }
            used.sort_by(f64::total_cmp);
            for (index, first) in used.iter().enumerate() {
                for (further, last) in used[index..].iter().enumerate() {
                    let allowed = (last - first) * rate + f64::from(burst);
                    assert!(further as f64 + 1.0 <= allowed + 1e-6, "seed {seed}");
                }
            }
        }
    }
}
