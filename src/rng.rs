//! Seeded randomness, the one place that draws it.
//!
//! Policies take `&mut Rng`, so a run with a seed repeats itself and two workers with different
//! streams of one seed never jump at the same instant.

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use std::time::Duration;

/// A seeded generator with the draws that the policies need.
#[derive(Debug)]
pub struct Rng(StdRng);

impl Rng {
    /// A generator whose draws depend on `seed` alone.
    pub fn seeded(seed: u64) -> Self {
        Self(StdRng::seed_from_u64(seed))
    }

    /// A generator of the `stream`-th worker of a run with this seed.
    pub fn stream(seed: u64, stream: u64) -> Self {
        // One multiplication by an odd constant keeps neighbouring streams apart; the generator's
        // own seeding does the rest.
        Self::seeded(seed ^ stream.wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15))
    }

    /// A generator seeded by the operating system.
    #[allow(clippy::disallowed_methods, reason = "this is the place")]
    pub fn from_os() -> Self {
        Self(StdRng::from_rng(&mut rand::rng()))
    }

    /// A number in `[0, 1)`.
    pub fn unit(&mut self) -> f64 {
        self.0.random::<f64>()
    }

    /// A number between `low` and `high`; `low` where the range is empty or not finite.
    pub fn uniform(&mut self, low: f64, high: f64) -> f64 {
        if low < high && low.is_finite() && high.is_finite() {
            low + (high - low) * self.unit()
        } else {
            low
        }
    }

    /// An index below `count`; 0 where `count` is 0.
    pub fn below(&mut self, count: usize) -> usize {
        if count == 0 { 0 } else { self.0.random_range(0..count) }
    }

    /// A duration between `low` and `high`; `low` where the range is empty.
    pub fn between(&mut self, low: Duration, high: Duration) -> Duration {
        match high.checked_sub(low) {
            Some(span) if !span.is_zero() => low.saturating_add(span.mul_f64(self.unit())),
            _ => low,
        }
    }

    /// 64 random bits.
    pub fn bits(&mut self) -> u64 {
        self.0.random()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn empty_ranges_do_not_panic() {
        let mut rng = Rng::seeded(1);
        assert_eq!(rng.uniform(2.0, 1.0), 2.0);
        assert_eq!(rng.uniform(0.0, f64::INFINITY), 0.0);
        assert_eq!(rng.below(0), 0);
        assert_eq!(rng.between(Duration::MAX, Duration::ZERO), Duration::MAX);
        assert!(rng.between(Duration::ZERO, Duration::MAX) <= Duration::MAX);
    }

    #[test]
    fn one_seed_repeats_and_streams_differ() {
        let draw = |mut rng: Rng| (0..8).map(|_| rng.bits()).collect::<Vec<_>>();
        assert_eq!(draw(Rng::seeded(7)), draw(Rng::seeded(7)));
        assert_ne!(draw(Rng::stream(7, 0)), draw(Rng::stream(7, 1)));
    }
}
