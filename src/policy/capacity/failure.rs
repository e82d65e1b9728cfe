//! What a URL that fails costs.

use super::{BILLION, Share};
use crate::error::Error;
use crate::policy::worst_case::duration;
use crate::policy::{Bound, Budget, Category, Retry, WorstCase, WorstOutcome};
use std::time::Duration;

/// Whether a worker is held while a URL waits for its next attempt.
#[allow(clippy::exhaustive_enums, reason = "held or not")]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Waits {
    /// The URL waits by itself, and the worker takes another: the workers of this library.
    #[default]
    Parked,
    /// The worker sleeps through it: threads around requests.
    HoldWorker,
}

/// What a URL that fails for good costs: its attempts, and the waits between them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FailureCost {
    attempts: u128,
    held: Duration,
    waited: Duration,
}

impl FailureCost {
    /// So many attempts, that take so long together, with so much of waiting between them.
    ///
    /// # Errors
    /// `Config` for no attempt.
    pub fn new(attempts: u32, held: Duration, waited: Duration) -> Result<Self, Error> {
        super::at_least_one("attempts of a URL that fails", attempts.into())?;
        Ok(Self { attempts: u128::from(attempts) * BILLION, held, waited })
    }

    /// The worst that the policy permits, without Retry-After and redirects: the sequence behind
    /// [`WorstCase::exact`], as far as a deadline lets it come.
    ///
    /// # Errors
    /// `Config` where that is unbounded, with the reason.
    pub fn worst(worst: &WorstCase) -> Result<Self, Error> {
        if let Bound::Unbounded { because } = worst.exact() {
            return Err(Error::config(format!(
                "a URL that fails can cost any time, because {because}: set that, or give the cost of a failure"
            )));
        }
        let (mut attempts, mut held, mut waited) = (0_u128, 0_u128, 0_u128);
        let mut left = worst.enforced().map_or(u128::MAX, |deadline| deadline.as_nanos());
        for step in worst.sequence() {
            let cost = step.cost.as_nanos();
            let wait = match step.outcome {
                WorstOutcome::Final => 0,
                _ => step.wait.as_nanos(),
            };
            // A wait that would last until the deadline is not begun.
            let room = left.saturating_sub(1).checked_div(cost.saturating_add(wait));
            let times = u128::from(step.times).min(room.unwrap_or(u128::MAX));
            attempts = attempts.saturating_add(times.saturating_mul(BILLION));
            held = held.saturating_add(cost.saturating_mul(times));
            waited = waited.saturating_add(wait.saturating_mul(times));
            left = left.saturating_sub(cost.saturating_add(wait).saturating_mul(times));
            if times < step.times.into() {
                attempts = attempts.saturating_add(BILLION);
                held = held.saturating_add(cost.min(left));
                break;
            }
        }
        Ok(Self { attempts, held: duration(held), waited: duration(waited) })
    }

    /// A URL that fails in the same way each time, an attempt taking so long, until the budgets
    /// are used up: refused at once, for instance, rather than silent. The waits are at their
    /// longest where they are random.
    ///
    /// # Errors
    /// `Config` where neither `total` nor the budget of the category has a limit.
    pub fn alike(retry: &Retry, category: Category, each: Duration) -> Result<Self, Error> {
        let (name, own) = match category {
            Category::Connect => ("connect", retry.connect_budget()),
            Category::Read => ("read", retry.read_budget()),
            Category::Redirect => ("redirect", retry.redirect_budget()),
            Category::Status => ("status", retry.status_budget()),
            Category::Other => ("other", retry.other_budget()),
        };
        let limits = [retry.total_budget(), own].into_iter().filter_map(Budget::limit);
        let retries = limits.min().ok_or_else(|| {
            Error::config(format!(
                "a URL that fails can cost any time, because neither `total` nor `{name}` has a limit: set one"
            ))
        })?;
        let waits = match category {
            Category::Redirect => 0,
            _ => crate::policy::worst_case::all_waits(retry.backoff_shape(), retries.into()),
        };
        let attempts = u128::from(retries) + 1;
        Ok(Self {
            attempts: attempts * BILLION,
            held: duration(each.as_nanos().saturating_mul(attempts)),
            waited: duration(waits),
        })
    }

    /// The expected cost where failures are of several kinds, each with its share of them.
    ///
    /// # Errors
    /// `Config` where the shares are not the whole.
    pub fn expected(kinds: &[(Share, Self)]) -> Result<Self, Error> {
        let whole: u128 = kinds.iter().map(|(share, _)| share.parts()).sum();
        if whole != BILLION {
            return Err(Error::config(format!(
                "the shares of the kinds of failures make {} % together: let them make 100 %",
                whole as f64 / 1e7
            )));
        }
        let mean = |value: fn(&Self) -> u128| {
            let weighted = kinds.iter().fold(0_u128, |sum, (share, cost)| {
                sum.saturating_add(value(cost).saturating_mul(share.parts()))
            });
            weighted.div_ceil(BILLION)
        };
        Ok(Self {
            attempts: mean(|cost| cost.attempts),
            held: duration(mean(|cost| cost.held.as_nanos())),
            waited: duration(mean(|cost| cost.waited.as_nanos())),
        })
    }

    /// How many attempts it makes.
    pub fn attempts(&self) -> f64 {
        self.attempts as f64 / BILLION as f64
    }

    /// How long its attempts take.
    pub fn attempting(&self) -> Duration {
        self.held
    }

    /// How long it waits between them.
    pub fn waiting(&self) -> Duration {
        self.waited
    }

    /// From its first attempt to its end.
    pub fn total(&self) -> Duration {
        self.held.saturating_add(self.waited)
    }

    /// How long it holds a worker, in nanoseconds.
    pub(super) fn held(&self, waits: Waits) -> u128 {
        match waits {
            Waits::Parked => self.held.as_nanos(),
            Waits::HoldWorker => self.total().as_nanos(),
        }
    }

    /// Attempts in billionths.
    pub(super) fn attempt_parts(&self) -> u128 {
        self.attempts
    }
}
