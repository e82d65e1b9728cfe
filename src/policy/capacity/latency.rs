//! How long answers take, as far as it is known.

use crate::error::Error;
use crate::policy::worst_case::duration;
use std::time::Duration;

/// How long a URL that is answered takes, from the request to the last byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Latency {
    p50: Duration,
    p95: Duration,
    p99: Duration,
}

impl Latency {
    /// Always the same.
    ///
    /// # Errors
    /// `Config` for zero.
    pub fn fixed(each: Duration) -> Result<Self, Error> {
        Self::quantiles(each, each, each)
    }

    /// So long at most in 50, in 95 and in 99 of a hundred cases.
    ///
    /// # Errors
    /// `Config` for zero, and where one is less than the one before it.
    pub fn quantiles(p50: Duration, p95: Duration, p99: Duration) -> Result<Self, Error> {
        if p50.is_zero() {
            return Err(Error::config("the latency p50 is zero: give a positive duration"));
        }
        for (name, value, below, least) in [("p95", p95, "p50", p50), ("p99", p99, "p95", p95)] {
            if value < least {
                return Err(Error::config(format!(
                    "the latency {name} of {value:?} is less than the {below} of {least:?}: quantiles never fall"
                )));
            }
        }
        Ok(Self { p50, p95, p99 })
    }

    /// The mean: the fast half is counted at p50, the next 45 of a hundred halfway to p95, the
    /// next four halfway from there to p99, and the slowest at p99.
    ///
    /// That is (145 · p50 + 49 · p95 + 6 · p99) / 200, rounded up to the nanosecond. What lies
    /// beyond p99 nobody can know from p99; the timeouts of a policy are its bound.
    pub fn mean(&self) -> Duration {
        let weighted = [(145, self.p50), (49, self.p95), (6, self.p99)]
            .into_iter()
            .fold(0_u128, |sum, (weight, value)| sum + weight * value.as_nanos());
        duration(weighted.div_ceil(200))
    }

    /// The median.
    pub fn p50(&self) -> Duration {
        self.p50
    }

    /// What 95 of a hundred do not exceed.
    pub fn p95(&self) -> Duration {
        self.p95
    }

    /// What 99 of a hundred do not exceed.
    pub fn p99(&self) -> Duration {
        self.p99
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::secs;

    #[test]
    fn the_mean_is_that_of_the_documented_shares() {
        assert_eq!(Latency::fixed(secs(1.2)).unwrap().mean(), secs(1.2));
        let latency = Latency::quantiles(secs(0.4), secs(1.0), secs(3.0)).unwrap();
        // A hundred cases one by one.
        let cases = (0..100).map(|case| match case {
            0..50 => 0.4,
            50..95 => (0.4 + 1.0) / 2.0,
            95..99 => (1.0 + 3.0) / 2.0,
            _ => 3.0,
        });
        let mean: f64 = cases.sum::<f64>() / 100.0;
        assert!((latency.mean().as_secs_f64() - mean).abs() < 1e-9);
        assert_eq!(latency.mean(), secs(0.625));
        let forever = Latency::fixed(Duration::MAX).unwrap();
        assert_eq!(forever.mean(), Duration::MAX);
    }

    #[test]
    fn quantiles_never_fall() {
        for (p50, p95, p99, named) in [
            (0.0, 1.0, 1.0, "p50 is zero"),
            (1.0, 0.5, 2.0, "p95 of 500ms is less than the p50 of 1s"),
            (1.0, 2.0, 1.5, "p99 of 1.5s is less than the p95 of 2s"),
        ] {
            let error = Latency::quantiles(secs(p50), secs(p95), secs(p99)).unwrap_err();
            assert!(error.message().contains(named), "{error}");
        }
        Latency::fixed(Duration::ZERO).unwrap_err();
    }
}
