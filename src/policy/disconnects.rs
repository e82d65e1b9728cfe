//! When connections begin to break more often than they did.
//!
//! In a long run some connections always break: two in a hundred, for hours, is how the field is,
//! and a word about each of them only hides the one thing that matters. That is a share that
//! *climbs*: a provider whose line fills up, a site that has begun to cut, a gateway before its
//! end. So nothing is said about the height of the share, only about its rise over what this very
//! run has seen before.
//!
//! What it decides, from attempts and times alone:
//! - Attempts are put together in steps of at least 50 attempts and 6 s. The *window* is the last ten
//!   steps, so it holds 500 attempts or more and is a minute long or longer: neither a blip of a
//!   fast run nor three timeouts of a slow one are a rise. The *baseline* is everything before it.
//! - It is a rise where the share in the window is at least twice that of the baseline, ten
//!   connections broke in it, and the difference is at least six standard errors of two shares that
//!   are the same: at a steady share that happens once in a million windows.
//! - While the alarm is raised the baseline stays as it was, and nothing more is said until the share
//!   has doubled once more, over what it came to within one window of the first word. It falls when
//!   the window is within half as much again of the baseline; the next rise is told anew.

use crate::error::ErrorKind;
use std::collections::VecDeque;
use std::fmt;
use std::time::{Duration, Instant};

/// A step has so many attempts at least.
const STEP_ATTEMPTS: u64 = 50;
/// And is so long.
const STEP_TIME: Duration = Duration::from_secs(6);
/// The window is so many steps.
const STEPS: usize = 10;
/// The baseline has so many attempts before anything is compared with it.
const LEAST_BASELINE: u64 = 500;
/// So many in the window have to be broken.
const LEAST_BROKEN: u64 = 10;
/// So many times the baseline is a rise.
const RISE: f64 = 2.0;
/// So many times the baseline is no longer one.
const FALL: f64 = 1.5;
/// In standard errors.
const SURE: f64 = 6.0;

impl ErrorKind {
    /// Whether a failure of this kind is a connection that did not come about or broke, or fell
    /// silent: `connect_timeout`, `read_timeout`, `connection`, `proxy_unreachable`,
    /// `incomplete_body`. It is what [`DisconnectAlarm`] counts.
    pub const fn is_disconnect(self) -> bool {
        matches!(
            self,
            Self::ConnectTimeout
                | Self::ReadTimeout
                | Self::Connection
                | Self::ProxyUnreachable
                | Self::IncompleteBody
        )
    }
}

/// More connections break than before.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct DisconnectRise {
    /// The share of attempts that broke before, from 0 to 1.
    pub before: f64,
    /// The share in the window.
    pub now: f64,
    /// Attempts in the window.
    pub attempts: u64,
    /// Of them, those that broke.
    pub broken: u64,
    /// How long the window is.
    pub over: Duration,
}

impl fmt::Display for DisconnectRise {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { before, now, attempts, broken, over } = self;
        write!(
            f,
            "connections break more often: {broken} of the last {attempts} attempts ({:.1} %, in \
             {} s) against {:.1} % before",
            100.0 * now,
            over.as_secs(),
            100.0 * before,
        )
    }
}

/// Attempts, and how many of them broke.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Count {
    attempts: u64,
    broken: u64,
}

impl Count {
    fn share(self) -> f64 {
        if self.attempts == 0 { 0.0 } else { self.broken as f64 / self.attempts as f64 }
    }

    fn and(self, other: Self) -> Self {
        Self { attempts: self.attempts + other.attempts, broken: self.broken + other.broken }
    }

    /// By how many standard errors this share is above that one, if both are the same in truth.
    fn above(self, other: Self) -> f64 {
        if self.attempts == 0 || other.attempts == 0 {
            return 0.0;
        }
        let pooled = self.and(other).share();
        let parts = (self.attempts as f64).recip() + (other.attempts as f64).recip();
        let error = (pooled * (1.0 - pooled) * parts).sqrt();
        if error > 0.0 { (self.share() - other.share()) / error } else { 0.0 }
    }

    fn is_rise_over(self, base: Self) -> bool {
        self.broken >= LEAST_BROKEN
            && self.share() >= RISE * base.share()
            && self.above(base) >= SURE
    }

    fn is_back_at(self, base: Self) -> bool {
        self.share() <= FALL * base.share() || self.broken < LEAST_BROKEN / 2
    }
}

#[derive(Debug, Clone, Copy)]
struct Step {
    count: Count,
    began: Instant,
}

/// Compares the share of broken connections with that of the run so far.
///
/// # Examples
/// ```
/// use longhaul::policy::DisconnectAlarm;
/// use std::time::{Duration, Instant};
///
/// let mut alarm = DisconnectAlarm::new();
/// let start = Instant::now();
/// let (mut attempts, mut broken) = (0, 0);
/// let mut told = Vec::new();
/// for second in 0..400 {
///     attempts += 50;
///     broken += if second < 300 { 1 } else { 5 };
///     told.extend(alarm.note(attempts, broken, start + Duration::from_secs(second)));
/// }
/// assert_eq!(told.len(), 1);
/// assert!(alarm.is_raised());
/// ```
#[derive(Debug, Clone, Default)]
pub struct DisconnectAlarm {
    /// What was told last, over the whole run.
    seen: Count,
    open: Option<Step>,
    window: VecDeque<Step>,
    baseline: Count,
    /// `None` while the alarm is down.
    raised: Option<Raised>,
}

/// An alarm that was told.
#[derive(Debug, Clone, Copy)]
struct Raised {
    /// The highest window of this rise: what the next one is compared with.
    height: Count,
    /// Steps until the window holds nothing from before it was told; until then the rise goes on.
    settles_in: usize,
}

impl DisconnectAlarm {
    /// Nothing is known yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// The run has made so many attempts by now, of which so many broke; both count from its
    /// beginning. The rise, where there is a new one.
    pub fn note(&mut self, attempts: u64, broken: u64, now: Instant) -> Option<DisconnectRise> {
        let new = Count {
            attempts: attempts.saturating_sub(self.seen.attempts),
            broken: broken.saturating_sub(self.seen.broken),
        };
        self.seen = Count { attempts, broken };
        let open = self.open.get_or_insert(Step { count: Count::default(), began: now });
        open.count = open.count.and(new);
        let is_full = open.count.attempts >= STEP_ATTEMPTS
            && now.saturating_duration_since(open.began) >= STEP_TIME;
        let step = self.open.take_if(|_| is_full)?;
        self.window.push_back(step);
        if self.window.len() > STEPS
            && let Some(old) = self.window.pop_front()
            && self.raised.is_none()
        {
            self.baseline = self.baseline.and(old.count);
        }
        self.judge(now)
    }

    /// Whether the share is above what it was, and was told so.
    pub fn is_raised(&self) -> bool {
        self.raised.is_some()
    }

    /// The share in the window, from 0 to 1; `None` before it is full.
    pub fn share(&self) -> Option<f64> {
        (self.window.len() >= STEPS).then(|| self.total().share())
    }

    /// The share before the window; `None` where there were too few attempts to compare with.
    pub fn baseline(&self) -> Option<f64> {
        (self.baseline.attempts >= LEAST_BASELINE).then(|| self.baseline.share())
    }

    fn total(&self) -> Count {
        self.window.iter().fold(Count::default(), |sum, step| sum.and(step.count))
    }

    fn judge(&mut self, now: Instant) -> Option<DisconnectRise> {
        self.baseline()?;
        let window = self.total();
        if self.raised.is_some() && window.is_back_at(self.baseline) {
            self.raised = None;
        }
        let base = match &mut self.raised {
            Some(Raised { height, settles_in }) if *settles_in > 0 => {
                *settles_in -= 1;
                if window.share() > height.share() {
                    *height = window;
                }
                return None;
            }
            Some(Raised { height, .. }) => *height,
            None => self.baseline,
        };
        if !window.is_rise_over(base) {
            return None;
        }
        self.raised = Some(Raised { height: window, settles_in: STEPS });
        let first = self.window.front().map(|first| now.saturating_duration_since(first.began));
        Some(DisconnectRise {
            before: base.share(),
            now: window.share(),
            attempts: window.attempts,
            broken: window.broken,
            over: first.unwrap_or_default(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;
    use crate::time::{Clock, SimClock, secs};
    use proptest::prelude::*;

    /// A run whose shares are these, each for so many attempts; what it was told, with the attempt.
    fn told(seed: u64, per_second: u64, course: &[(f64, u64)]) -> Vec<(u64, DisconnectRise)> {
        let mut rng = Rng::seeded(seed);
        let mut alarm = DisconnectAlarm::new();
        let mut now = SimClock::default().now();
        let (mut attempts, mut broken) = (0, 0);
        let mut told = Vec::new();
        for (share, count) in course {
            for _ in 0..*count {
                attempts += 1;
                broken += u64::from(rng.unit() < *share);
                if attempts % per_second == 0 {
                    now += secs(1.0);
                }
                told.extend(alarm.note(attempts, broken, now).map(|rise| (attempts, rise)));
            }
        }
        told
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(48))]

        #[test]
        fn a_steady_share_is_normal(
            seed: u64,
            share in prop_oneof![Just(0.0), Just(0.001), Just(0.02), 0.0..0.5_f64],
        ) {
            prop_assert_eq!(told(seed, 10, &[(share, 40_000)]), vec![]);
        }

        #[test]
        fn a_rise_from_two_to_eight_percent_is_told_once(seed: u64, before in 3000_u64..20_000) {
            let told = told(seed, 10, &[(0.02, before), (0.08, 5000)]);
            prop_assert_eq!(told.len(), 1, "{:?}", told);
            let (at, rise) = told[0];
            prop_assert!(at > before && at < before + 1500, "told at {at} of {before}");
            prop_assert!(rise.before > 0.012 && rise.before < 0.028, "{rise}");
            prop_assert!(rise.now >= 2.0 * rise.before, "{rise}");
        }

        #[test]
        fn each_rise_is_told_anew_and_a_second_doubling_too(seed: u64) {
            let again = told(seed, 10, &[(0.02, 5000), (0.1, 3000), (0.02, 5000), (0.1, 3000)]);
            prop_assert_eq!(again.len(), 2, "{:?}", again);
            let higher = told(seed, 10, &[(0.02, 5000), (0.1, 3000), (0.5, 3000)]);
            prop_assert_eq!(higher.len(), 2, "{:?}", higher);
        }
    }

    #[test]
    fn what_is_said() {
        let (_, rise) = told(1, 10, &[(0.0, 5000), (0.2, 1000)])[0];
        let text = rise.to_string();
        assert!(text.starts_with("connections break more often: "), "{text}");
        assert!(text.ends_with(" against 0.0 % before"), "{text}");
        assert!(rise.attempts >= 500 && rise.over >= secs(54.0), "{rise:?}");
    }

    #[test]
    fn a_blip_of_a_fast_run_is_no_rise() {
        // 1000 attempts a second, and one bad second that breaks 300 of them.
        assert_eq!(told(1, 1000, &[(0.02, 200_000), (0.3, 1000), (0.02, 200_000)]), vec![]);
        // A minute of it is one.
        assert_eq!(told(1, 1000, &[(0.02, 200_000), (0.3, 60_000)]).len(), 1);
    }

    #[test]
    fn nothing_is_compared_with_nothing() {
        // A run that begins badly is a matter for `FailureShare`.
        assert_eq!(told(1, 10, &[(0.02, 300), (0.9, 400)]), vec![]);
        let alarm = DisconnectAlarm::new();
        assert_eq!((alarm.share(), alarm.baseline(), alarm.is_raised()), (None, None, false));
    }
}
