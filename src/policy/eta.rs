//! How long a run still takes, from what is left and not from what is done.
//!
//! "So many URLs per second so far, so many left" is wrong at both ends of a run. It forgets the
//! URLs that are not worked on but waited for: at the end of a night the workers are idle and
//! twelve URLs sit out a Retry-After of a minute, while the rate says *a second*. And it knows
//! nothing of the passes to come. So three times are put together:
//!
//! - the *work*: what is left at the rate at which URLs ended lately, and never faster than a limit
//!   of attempts per second lets them;
//! - the *waits*: the last one that has been begun has to end, and an attempt follows it. They run
//!   beside the work, so the longer of both counts;
//! - the *tail*: the last URL that is begun need not be a quick one. How long the slowest of the last
//!   ones takes follows from how long URLs took before, from the waits that were begun, and from how
//!   many are begun while it runs.
//!
//! After that come the passes: what is held back, at what it cost the first time. Whether it fails
//! again is not known before the second pass, and until then it is expected to.
//!
//! Where nothing has ended yet, and where nobody knows how much is left, there is no answer.

use super::wait_lengths::WaitLengths;
use crate::time::secs;
use std::time::Duration;

/// What is known of a run that goes on.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Remaining {
    /// URLs of this pass that have neither ended nor been held back.
    pub(crate) left: u64,
    /// Of them, those that wait for a time.
    pub(crate) waiting: u64,
    /// Of them, those that are being attempted.
    pub(crate) in_flight: u64,
    /// URLs that ended or were held back, per second, lately.
    pub(crate) rate: f64,
    /// Attempts that a URL costs.
    pub(crate) attempts_each: f64,
    /// Attempts per second that are allowed at most.
    pub(crate) most_attempts: Option<f64>,
    /// How long it is until the last of the waits that have been begun is over.
    pub(crate) last_wait: Option<Duration>,
    /// How long URLs took.
    pub(crate) took: Took,
    /// The waits that were begun.
    pub(crate) waits: WaitLengths,
    /// Attempts that were made.
    pub(crate) attempts: u64,
    /// What comes after this pass.
    pub(crate) later: Later,
}

/// How long URLs took from their first attempt on, waits included: what half of them did not
/// exceed, and so on.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Took {
    pub(crate) p50: Duration,
    pub(crate) p90: Duration,
    pub(crate) p99: Duration,
    pub(crate) p999: Duration,
    pub(crate) most: Duration,
}

/// The passes to come.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Later {
    pub(crate) passes: u32,
    /// URLs that are held back so far.
    pub(crate) held: u64,
    /// The share of the URLs of this pass that was held back.
    pub(crate) share: f64,
    /// Whether this pass is one over such URLs, so that the share tells how many fail again.
    pub(crate) is_again: bool,
    /// How long each of them was worked on, all its attempts together.
    pub(crate) worked_each: Duration,
    /// Attempts that each of them cost.
    pub(crate) attempts_each: f64,
    /// How long each of them took, waits included.
    pub(crate) took_each: Duration,
    /// How many can be worked on at once.
    pub(crate) at_once: u64,
}

impl Remaining {
    /// How long it takes until the run ends by itself; `None` where that cannot be said.
    pub(crate) fn eta(&self) -> Option<Duration> {
        let this = self.this_pass()?;
        Some(secs(this + self.later_passes()))
    }

    fn this_pass(&self) -> Option<f64> {
        if self.left == 0 {
            return Some(0.0);
        }
        if self.rate <= 0.0 || !self.rate.is_finite() {
            return None;
        }
        let fresh = self.left.saturating_sub(self.waiting).saturating_sub(self.in_flight);
        let work = self.time_for(self.left);
        let tail = if fresh > 0 { self.time_for(fresh) + self.tail() } else { 0.0 };
        let half = self.took.p50.as_secs_f64();
        let waits = self.last_wait.map_or(0.0, |last| last.as_secs_f64() + half);
        Some(work.max(tail).max(waits))
    }

    /// For so many URLs to end, if there is always one to work on.
    fn time_for(&self, urls: u64) -> f64 {
        let work = urls as f64 / self.rate;
        work.max(self.under_the_limit(urls as f64 * self.attempts_each))
    }

    fn under_the_limit(&self, attempts: f64) -> f64 {
        self.most_attempts.filter(|most| *most > 0.0).map_or(0.0, |most| attempts / most)
    }

    /// How long after the last URL was begun the last one ends: as long as makes it an even bet.
    ///
    /// What URLs took leaves out those that still wait, and the waits leave out slow answers: the
    /// longer of both.
    fn tail(&self) -> f64 {
        let Took { p50, p90, p99, p999, most } = self.took;
        // From the longest downwards: up to where, and the share that takes longer than the middle
        // between that and the next.
        let took = [(most, 0.0005), (p999, 0.0055), (p99, 0.055), (p90, 0.3), (p50, 0.75)];
        let took = even_bet(self.rate, took.into_iter());
        let all = self.attempts.max(1) as f64;
        let waits = self.waits.descending().map(|(length, longer)| (length, longer as f64 / all));
        let waits = even_bet(self.rate * self.attempts_each, waits);
        took.max(waits + if waits > 0.0 { p50.as_secs_f64() } else { 0.0 })
    }

    fn later_passes(&self) -> f64 {
        let Later { passes, held, share, is_again, at_once, .. } = self.later;
        let mut urls = held as f64 + share.clamp(0.0, 1.0) * self.left as f64;
        let again = if is_again { share.clamp(0.0, 1.0) } else { 1.0 };
        let mut time = 0.0;
        for _ in 0..passes {
            // Less than one URL is none, and its waits do not come either.
            if urls < 0.5 {
                break;
            }
            let work = urls * self.later.worked_each.as_secs_f64() / at_once.max(1) as f64;
            let attempts = self.under_the_limit(urls * self.later.attempts_each);
            time += work.max(attempts).max(self.later.took_each.as_secs_f64());
            urls *= again;
        }
        time
    }
}

/// The time after which none is left, with one chance in two, of things that begin evenly at `rate`
/// and the last of which begins now.
///
/// Of them, those that still go on a time `t` from now are expected to be `rate` times the integral
/// from `t` on of the share that lasts longer; there is none with one chance in two where that is
/// ln 2. `lasts` are times, the longest first, each with the share that lasts longer than what is
/// between it and the next.
fn even_bet(rate: f64, lasts: impl Iterator<Item = (Duration, f64)>) -> f64 {
    let mut lasts = lasts.map(|(time, share)| (time.as_secs_f64(), share)).peekable();
    let mut expected = 0.0;
    while let Some((to, share)) = lasts.next() {
        let from = lasts.peek().map_or(0.0, |(next, _)| *next);
        let here = rate * share * (to - from).max(0.0);
        if expected + here >= std::f64::consts::LN_2 {
            return to - (std::f64::consts::LN_2 - expected) / (rate * share);
        }
        expected += here;
    }
    0.0
}

#[cfg(test)]
#[path = "eta_tests.rs"]
mod tests;
