//! How long an answer takes: a distribution that is drawn from with a seed.
//!
//! A mean is not enough to predict a run: it is the slow tail that holds workers. A log-normal
//! distribution by its median and its 95th percentile describes most web servers; where figures
//! are at hand (a summary of an earlier run gives p50, p95 and p99), they can be given as they are.

use crate::error::Error;
use crate::policy::Latency;
use crate::rng::Rng;
use crate::time::secs;
use std::f64::consts::TAU;
use std::time::Duration;

/// The 95th percentile of the standard normal distribution.
const Z95: f64 = 1.644_853_626_951_472_2;

/// How long an answer takes, from the beginning of its attempt to its head.
#[derive(Debug, Clone, PartialEq)]
pub struct LatencyModel(Law);

#[derive(Debug, Clone, PartialEq)]
enum Law {
    Fixed(Duration),
    LogNormal {
        median: Duration,
        sigma: f64,
    },
    /// By rising share; between two points on a straight line.
    Quantiles(Vec<(f64, Duration)>),
}

impl LatencyModel {
    /// Always the same.
    pub const fn fixed(latency: Duration) -> Self {
        Self(Law::Fixed(latency))
    }

    /// Log-normal, by its median and its 95th percentile.
    ///
    /// # Errors
    /// `Config` where the median is zero or above the percentile.
    pub fn lognormal(median: Duration, p95: Duration) -> Result<Self, Error> {
        if median.is_zero() || p95 < median {
            return Err(Error::config(format!(
                "a median of {median:?} and a 95th percentile of {p95:?} describe no latency; give a median above zero and a percentile not below it"
            )));
        }
        let sigma = (p95.as_secs_f64() / median.as_secs_f64()).ln() / Z95;
        Ok(Self(Law::LogNormal { median, sigma }))
    }

    /// By quantiles: of all answers the share `q` takes at most so long, `(0.5, median)`.
    ///
    /// Between two points the latency runs on a straight line; below the first it is that of the
    /// first and above the last that of the last, so the last should be the maximum (`q` = 1).
    ///
    /// # Errors
    /// `Config` for no points, for a share outside 0 to 1, and where shares or latencies fall.
    pub fn quantiles(points: impl IntoIterator<Item = (f64, Duration)>) -> Result<Self, Error> {
        let points: Vec<_> = points.into_iter().collect();
        if points.is_empty() {
            return Err(Error::config("a latency without quantiles; give at least one point"));
        }
        if let Some((share, _)) = points.iter().find(|(share, _)| !(0.0..=1.0).contains(share)) {
            return Err(Error::config(format!(
                "the quantile {share} of a latency is no share; give 0 to 1, such as 0.95"
            )));
        }
        for ((low, short), (high, long)) in points.iter().zip(points.iter().skip(1)) {
            if low >= high || short > long {
                return Err(Error::config(format!(
                    "the quantiles {low} ({short:?}) and {high} ({long:?}) of a latency do not rise; give them in order"
                )));
            }
        }
        Ok(Self(Law::Quantiles(points)))
    }

    /// The mean.
    pub fn mean(&self) -> Duration {
        match &self.0 {
            Law::Fixed(latency) => *latency,
            Law::LogNormal { median, sigma } => {
                secs(median.as_secs_f64() * (sigma * sigma / 2.0).exp())
            }
            Law::Quantiles(points) => {
                let mut sum = 0.0;
                let mut before: Option<(f64, f64)> = None;
                for (share, latency) in points {
                    let latency = latency.as_secs_f64();
                    let (from, low) = before.unwrap_or((0.0, latency));
                    sum += (share - from) * (low + latency) / 2.0;
                    before = Some((*share, latency));
                }
                let (last, most) = before.unwrap_or_default();
                secs(sum + (1.0 - last) * most)
            }
        }
    }

    /// One latency.
    pub fn draw(&self, rng: &mut Rng) -> Duration {
        match &self.0 {
            Law::Fixed(latency) => *latency,
            Law::LogNormal { median, sigma } => {
                // Box and Muller; the argument of the logarithm is never 0.
                let radius = (-2.0 * (1.0 - rng.unit()).ln()).sqrt();
                let normal = radius * (TAU * rng.unit()).cos();
                secs(median.as_secs_f64() * (sigma * normal).exp())
            }
            Law::Quantiles(points) => between(points, rng.unit()),
        }
    }
}

impl From<Latency> for LatencyModel {
    /// With the very mean that [`Latency::mean`] names: the fast half takes p50, and the slowest
    /// of a hundred p99.
    fn from(latency: Latency) -> Self {
        let (p50, p95, p99) = (latency.p50(), latency.p95(), latency.p99());
        Self(Law::Quantiles(vec![(0.5, p50), (0.95, p95), (0.99, p99)]))
    }
}

impl From<Duration> for LatencyModel {
    fn from(latency: Duration) -> Self {
        Self::fixed(latency)
    }
}

/// The latency at `share`.
fn between(points: &[(f64, Duration)], share: f64) -> Duration {
    let above = points.partition_point(|(at, _)| *at < share);
    let high = points.get(above).or(points.last()).copied().unwrap_or_default();
    let low = above.checked_sub(1).and_then(|below| points.get(below)).copied().unwrap_or(high);
    if high.0 <= low.0 {
        return high.1;
    }
    let way = (share - low.0) / (high.0 - low.0);
    low.1 + (high.1 - low.1).mul_f64(way.clamp(0.0, 1.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mean_of(latency: &LatencyModel) -> f64 {
        let mut rng = Rng::seeded(3);
        let draws = 100_000;
        (0..draws).map(|_| latency.draw(&mut rng).as_secs_f64()).sum::<f64>() / f64::from(draws)
    }

    #[test]
    fn draws_have_the_mean_that_is_named() {
        let quantiles =
            LatencyModel::quantiles([(0.5, secs(0.2)), (0.95, secs(1.0)), (1.0, secs(5.0))])
                .unwrap();
        assert_eq!(quantiles.mean(), secs(0.1 + 0.27 + 0.15));
        let lognormal = LatencyModel::lognormal(secs(0.3), secs(1.0)).unwrap();
        let fixed = LatencyModel::from(secs(0.4));
        for latency in [&quantiles, &lognormal, &fixed] {
            let (have, named) = (mean_of(latency), latency.mean().as_secs_f64());
            assert!((have / named - 1.0).abs() < 0.01, "{latency:?}: {have} {named}");
        }
    }

    #[test]
    fn draws_have_the_quantiles_that_were_given() {
        let share_below = |latency: &LatencyModel, limit: Duration| {
            let mut rng = Rng::seeded(5);
            let below = (0..100_000).filter(|_| latency.draw(&mut rng) <= limit).count();
            below as f64 / 100_000.0
        };
        let lognormal = LatencyModel::lognormal(secs(0.3), secs(1.0)).unwrap();
        let quantiles = LatencyModel::quantiles([(0.1, secs(0.1)), (0.9, secs(0.5))]).unwrap();
        for (latency, limit, wanted) in [
            (&lognormal, 0.3, 0.5),
            (&lognormal, 1.0, 0.95),
            (&quantiles, 0.1, 0.1),
            (&quantiles, 0.3, 0.5),
            (&quantiles, 0.5, 1.0),
        ] {
            let have = share_below(latency, secs(limit));
            assert!((have - wanted).abs() < 0.01, "{latency:?} at {limit}: {have}");
        }
    }

    #[test]
    fn what_describes_no_latency_is_refused_by_name() {
        for (result, words) in [
            (LatencyModel::lognormal(Duration::ZERO, secs(1.0)), "a median of 0ns"),
            (LatencyModel::lognormal(secs(2.0), secs(1.0)), "a 95th percentile of 1s"),
            (LatencyModel::quantiles([]), "without quantiles"),
            (LatencyModel::quantiles([(1.5, secs(1.0))]), "the quantile 1.5"),
            (LatencyModel::quantiles([(f64::NAN, secs(1.0))]), "the quantile NaN"),
            (LatencyModel::quantiles([(0.5, secs(1.0)), (0.5, secs(2.0))]), "do not rise"),
            (LatencyModel::quantiles([(0.5, secs(2.0)), (0.9, secs(1.0))]), "do not rise"),
        ] {
            let error = result.unwrap_err();
            assert!(error.message().contains(words), "{error}");
        }
        let capacity = Latency::quantiles(secs(0.4), secs(1.0), secs(3.0)).unwrap();
        assert_eq!(LatencyModel::from(capacity).mean(), capacity.mean());
        let level = LatencyModel::quantiles([(1.0, secs(2.0))]).unwrap();
        assert_eq!((level.mean(), level.draw(&mut Rng::seeded(1))), (secs(2.0), secs(2.0)));
    }
}
