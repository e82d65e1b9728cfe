//! How long something took, over any number of times, in constant memory.

use super::report::Percentiles;
use hdrhistogram::Histogram;

/// Values beyond this count as this: a day in microseconds.
const LONGEST_MICROS: u64 = 24 * 3600 * 1_000_000;

/// Times in a histogram that is right to 0.1 %; sum and longest are exact.
#[derive(Debug, Clone)]
pub(super) struct Spread {
    histogram: Option<Histogram<u64>>,
    count: u64,
    total_ms: f64,
    longest_ms: f64,
}

impl Default for Spread {
    fn default() -> Self {
        Self {
            // The bounds are constants that are valid, so this is always there.
            histogram: Histogram::new_with_bounds(1, LONGEST_MICROS, 3).ok(),
            count: 0,
            total_ms: 0.0,
            longest_ms: 0.0,
        }
    }
}

impl Spread {
    /// Counts one; what is no time counts as none at all.
    pub(super) fn add(&mut self, ms: f64) {
        let ms = time(ms);
        let micros = (ms * 1000.0) as u64;
        if let Some(histogram) = &mut self.histogram {
            histogram.saturating_record(micros.max(1));
        }
        self.count += 1;
        self.total_ms += ms;
        self.longest_ms = self.longest_ms.max(ms);
    }

    pub(super) fn count(&self) -> u64 {
        self.count
    }

    pub(super) fn total_ms(&self) -> f64 {
        rounded(self.total_ms)
    }

    /// `None` while there is nothing.
    pub(super) fn percentiles(&self) -> Option<Percentiles> {
        let histogram = self.histogram.as_ref().filter(|histogram| !histogram.is_empty())?;
        let longest_ms = rounded(self.longest_ms);
        let at = |share| (histogram.value_at_quantile(share) as f64 / 1000.0).min(longest_ms);
        Some(Percentiles { p50_ms: at(0.5), p95_ms: at(0.95), p99_ms: at(0.99), longest_ms })
    }
}

/// Milliseconds as a record should have them: neither negative nor beyond all sense.
pub(super) fn time(ms: f64) -> f64 {
    // Not `clamp`, which lets through what is no number.
    if ms > 0.0 { ms.min(1e15) } else { 0.0 }
}

/// To the microsecond, as records are.
pub(super) fn rounded(ms: f64) -> f64 {
    (ms * 1000.0).round() / 1000.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thousand_times() {
        let mut spread = Spread::default();
        assert_eq!(spread.percentiles(), None);
        (1..=1000).for_each(|ms| spread.add(f64::from(ms)));
        let found = spread.percentiles().unwrap();
        for (have, wanted) in [(found.p50_ms, 500.0), (found.p95_ms, 950.0), (found.p99_ms, 990.0)]
        {
            assert!((have - wanted).abs() <= wanted / 1000.0, "{have} {wanted}");
        }
        assert_eq!(
            (found.longest_ms, spread.total_ms(), spread.count()),
            (1000.0, 500_500.0, 1000)
        );
    }

    #[test]
    fn absurd_times_do_not_break_it() {
        let mut spread = Spread::default();
        for ms in [-1.0, f64::NAN, 0.0, f64::INFINITY, 1e300] {
            spread.add(ms);
        }
        let found = spread.percentiles().unwrap();
        assert!(found.p50_ms <= found.p99_ms && found.p99_ms <= found.longest_ms);
        assert!(spread.total_ms().is_finite());
    }
}
