//! The limits of a pool as they are given, checked and made into what counts.
//!
//! A limit counts attempts, so retries, hops of redirects and second passes are inside it. It is
//! never slept on by a worker: the scheduler asks for the slots of a job before it hands it out, and
//! puts the *limit* into the heap of waits where there are none, one entry however many jobs stand
//! behind it. A flight that makes a further attempt within its step asks for itself, and comes back
//! as a wait where it would have to.

use crate::error::Error;
use crate::policy::{Limiter, Slots};
use crate::session::SharedLimiter;
use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex};

/// The limits of a pool as they were given; everything that is not set is unlimited.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Limits {
    /// Attempts per second, over all hosts.
    pub(crate) rate: Option<f64>,
    /// How many of them at once.
    pub(crate) burst: Option<u32>,
    /// Attempts per second to one host.
    pub(crate) host_rate: Option<f64>,
    /// How many of them at once.
    pub(crate) host_burst: Option<u32>,
    /// Attempts under way to one host.
    pub(crate) per_host: Option<usize>,
}

impl Limits {
    /// What counts attempts under these limits; `None` where there are none.
    ///
    /// # Errors
    /// `Config` for what is no limit.
    pub(crate) fn counted(&self) -> Result<Option<SharedLimiter>, Error> {
        let per_host = match self.per_host.map(NonZeroUsize::new) {
            None => None,
            Some(Some(limit)) => Some(limit),
            Some(None) => {
                return Err(Error::config(
                    "per_host is 0, with which nothing would ever be sent; give at least 1",
                ));
            }
        };
        let rate = slots(("rate", self.rate), ("rate_burst", self.burst))?;
        let host_rate = slots(("host_rate", self.host_rate), ("host_rate_burst", self.host_burst))?;
        let limiter = Limiter::new(rate, host_rate, per_host);
        Ok(limiter.map(|limiter| Arc::new(Mutex::new(limiter))))
    }
}

fn slots(
    (what, per_second): (&str, Option<f64>),
    (what_burst, given): (&str, Option<u32>),
) -> Result<Option<Slots>, Error> {
    let Some(per_second) = per_second else {
        return match given {
            None => Ok(None),
            Some(given) => Err(Error::config(format!(
                "{what_burst} is {given}, and there is no {what} that it could belong to; give both"
            ))),
        };
    };
    if given == Some(0) {
        return Err(Error::config(format!(
            "{what_burst} is 0, with which nothing would ever be sent; give at least 1"
        )));
    }
    if per_second.is_finite()
        && per_second > 0.0
        && let Some(slots) = Slots::new(per_second, given.unwrap_or_else(|| burst(per_second)))
    {
        return Ok(Some(slots));
    }
    Err(Error::config(format!(
        "{what} is {per_second} a second, which is no rate; give a number above 0, or leave it out"
    )))
}

/// How many attempts a rate admits at once where nobody says: what falls into 10 ms, at least one.
///
/// Below 200 a second that is perfectly smooth. Above, timers are too coarse to space single
/// attempts, and a burst of one would lose the time by which each wake-up is late.
fn burst(per_second: f64) -> u32 {
    // Saturating by the definition of `as`, and NaN is 0.
    ((per_second * 0.01) as u32).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

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
    fn what_is_no_limit_is_refused_by_name() {
        let none = Limits::default();
        for (limits, words) in [
            (Limits { per_host: Some(0), ..none }, "per_host is 0"),
            (Limits { rate: Some(0.0), ..none }, "rate is 0 a second"),
            (Limits { host_rate: Some(f64::NAN), ..none }, "host_rate is NaN a second"),
            (Limits { burst: Some(3), ..none }, "rate_burst is 3, and there is no rate"),
            (Limits { rate: Some(1.0), host_burst: Some(3), ..none }, "there is no host_rate"),
            (Limits { rate: Some(1.0), burst: Some(0), ..none }, "rate_burst is 0"),
        ] {
            let error = limits.counted().expect_err(words);
            assert!(error.message().contains(words), "{error}");
        }
        assert!(none.counted().expect("no limits").is_none());
    }
}
