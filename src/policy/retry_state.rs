//! The counters of one request, and the decision after each of its attempts.
//!
//! The order is urllib3's, because the order is what people observe: first whether the outcome is
//! a matter of retries at all (an error that is switched off, or a method that must not be resent,
//! is final whatever the budgets say), then the total, then the budget of the outcome's own kind.
//! Only then the wait: what the other side asked for, else the own backoff.
//!
//! The backoff counts the retries since the last redirect, as in urllib3: a new place starts with
//! a short wait.

use super::{Budget, Category, LongWait, Outcome, Retry};
use crate::rng::Rng;
use http::Method;
use std::fmt;
use std::time::Duration;

/// The statuses that Retry-After makes worth a retry: urllib3's `RETRY_AFTER_STATUS_CODES`.
const RETRY_AFTER_STATUSES: [u16; 3] = [413, 429, 503];

/// Where a wait came from.
#[non_exhaustive]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WaitSource {
    /// No wait.
    None,
    /// The own backoff.
    Backoff,
    /// Retry-After.
    RetryAfter,
}

/// Why no further retry is made.
#[non_exhaustive]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exhausted {
    /// `total`.
    Total,
    /// `connect`.
    Connect,
    /// `read`.
    Read,
    /// `redirect`.
    Redirect,
    /// `status`.
    Status,
    /// `other`.
    Other,
    /// Retry-After asks for more than the policy waits ([`LongWait::Fail`], or beyond `park_max`).
    RetryAfter(Duration),
}

impl Exhausted {
    /// A stable lower-case name, as it stands in the history.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Total => "total",
            Self::Connect => "connect",
            Self::Read => "read",
            Self::Redirect => "redirect",
            Self::Status => "status",
            Self::Other => "other",
            Self::RetryAfter(_) => "retry_after",
        }
    }
}

impl fmt::Display for Exhausted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::RetryAfter(wanted) => {
                let wanted = super::format_duration(*wanted);
                write!(f, "Retry-After asks for {wanted}, more than the policy waits")
            }
            budget => write!(f, "the retry budget `{}` is used up", budget.name()),
        }
    }
}

/// What to do after an attempt.
#[non_exhaustive]
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Decision {
    /// Not a matter of retries: hand out the response, or raise the error as it is.
    Final,
    /// Make another attempt after `wait`.
    Retry {
        /// How long to wait first.
        wait: Duration,
        /// Where the wait came from.
        source: WaitSource,
    },
    /// It would be retried, but a budget is used up. `raise` tells whether the settings want an
    /// error (`raise_on_status`, `raise_on_redirect`) instead of the last response.
    Exhausted {
        /// The budget.
        reason: Exhausted,
        /// Whether to raise rather than to return the last response; always for errors.
        raise: bool,
    },
}

/// What is left of each budget.
#[non_exhaustive]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Counters {
    /// Of `total`.
    pub total: Budget,
    /// Of `connect`.
    pub connect: Budget,
    /// Of `read`.
    pub read: Budget,
    /// Of `redirect`; zero where redirects are off.
    pub redirect: Budget,
    /// Of `status`.
    pub status: Budget,
    /// Of `other`.
    pub other: Budget,
}

impl Counters {
    fn of(&mut self, category: Category) -> &mut Budget {
        match category {
            Category::Connect => &mut self.connect,
            Category::Read => &mut self.read,
            Category::Redirect => &mut self.redirect,
            Category::Status => &mut self.status,
            Category::Other => &mut self.other,
        }
    }
}

/// The counters of one request in flight.
#[derive(Debug, Clone)]
pub struct RetryState {
    policy: Retry,
    left: Counters,
    charged: u32,
    /// Retries since the last redirect.
    consecutive: u32,
    /// What the backoff gave last since the last redirect, whether it was waited or not.
    previous: Duration,
}

impl RetryState {
    pub(super) fn new(policy: Retry) -> Self {
        let redirects_are_off =
            policy.redirect_budget() == Budget::Off || policy.total_budget() == Budget::Off;
        let left = Counters {
            total: policy.total_budget(),
            connect: policy.connect_budget(),
            read: policy.read_budget(),
            redirect: if redirects_are_off { Budget::Times(0) } else { policy.redirect_budget() },
            status: policy.status_budget(),
            other: policy.other_budget(),
        };
        let previous = policy.backoff_shape().first_previous();
        Self { policy, left, charged: 0, consecutive: 0, previous }
    }

    /// Charges `outcome` of an attempt with `method` and says what to do next.
    ///
    /// For a redirect that is about to be followed ask [`redirect`](Self::redirect) instead.
    pub fn decide(&mut self, method: &Method, outcome: &Outcome, rng: &mut Rng) -> Decision {
        match *outcome {
            Outcome::Error { permanent: true, .. } => Decision::Final,
            Outcome::Error { category, retry_after, .. } => {
                if self.left.total == Budget::Off || !self.may_retry_error(category, method) {
                    return Decision::Final;
                }
                let asked = retry_after.filter(|_| self.policy.respects_retry_after());
                self.charge(category, true, true).unwrap_or_else(|| self.wait(asked, true, rng))
            }
            Outcome::Status { status, retry_after } => {
                self.decide_status(Category::Status, method, status, retry_after, rng)
            }
            Outcome::UnfollowedRedirect { status, retry_after } => {
                self.decide_status(Category::Redirect, method, status, retry_after, rng)
            }
        }
    }

    /// Charges a redirect that is about to be followed; the wait is that of Retry-After, if any.
    ///
    /// The wait is granted even where `respect_retry_after_header` is off, and a redirect without
    /// one is followed at once, whatever the backoff: both as urllib3.
    pub fn redirect(&mut self, retry_after: Option<Duration>) -> Decision {
        let raise = self.policy.raises_on_redirect();
        let in_total = self.policy.counts_redirects_in_total();
        if let Some(exhausted) = self.charge(Category::Redirect, in_total, raise) {
            return exhausted;
        }
        match self.granted(retry_after) {
            Err(wanted) => Decision::Exhausted { reason: Exhausted::RetryAfter(wanted), raise },
            Ok(None) => Decision::Retry { wait: Duration::ZERO, source: WaitSource::None },
            Ok(Some(wait)) => Decision::Retry { wait, source: WaitSource::RetryAfter },
        }
    }

    /// How many attempts have been charged so far.
    pub fn charged(&self) -> u32 {
        self.charged
    }

    /// What is left of each budget.
    pub fn counters(&self) -> Counters {
        self.left
    }

    /// The number of the retry that the backoff counts to: retries since the last redirect.
    pub fn consecutive(&self) -> u32 {
        self.consecutive
    }

    /// The policy in force.
    pub fn policy(&self) -> &Retry {
        &self.policy
    }

    fn may_retry_error(&self, category: Category, method: &Method) -> bool {
        match category {
            Category::Connect => self.left.connect != Budget::Off,
            Category::Read => {
                self.left.read != Budget::Off && self.policy.methods().contains(method)
            }
            Category::Other | Category::Redirect | Category::Status => true,
        }
    }

    fn decide_status(
        &mut self,
        category: Category,
        method: &Method,
        status: u16,
        retry_after: Option<Duration>,
        rng: &mut Rng,
    ) -> Decision {
        let asked = retry_after.filter(|_| self.policy.respects_retry_after());
        if !self.may_retry_status(method, status, asked.is_some()) {
            return Decision::Final;
        }
        let raise = self.policy.raises_on_status();
        self.charge(category, true, raise).unwrap_or_else(|| self.wait(asked, raise, rng))
    }

    fn may_retry_status(&self, method: &Method, status: u16, asks_for_wait: bool) -> bool {
        if status == 407 || !self.policy.methods().contains(method) {
            return false;
        }
        // urllib3 tests the truth of `total` here, so a total without a limit triggers nothing.
        let some_total_left = matches!(self.left.total, Budget::Times(1..));
        self.policy.statuses().contains(status)
            || (some_total_left && asks_for_wait && RETRY_AFTER_STATUSES.contains(&status))
    }

    /// Takes one from the budgets, or says which one is used up.
    fn charge(&mut self, category: Category, in_total: bool, raise: bool) -> Option<Decision> {
        let exhausted = |reason| Some(Decision::Exhausted { reason, raise });
        if in_total && !self.left.total.has_room() {
            return exhausted(Exhausted::Total);
        }
        let left = self.left.of(category);
        if !left.has_room() {
            return exhausted(match category {
                Category::Connect => Exhausted::Connect,
                Category::Read => Exhausted::Read,
                Category::Redirect => Exhausted::Redirect,
                Category::Status => Exhausted::Status,
                Category::Other => Exhausted::Other,
            });
        }
        *left = left.less_one();
        if in_total {
            self.left.total = self.left.total.less_one();
        }
        self.charged = self.charged.saturating_add(1);
        if category == Category::Redirect {
            self.consecutive = 0;
            self.previous = self.policy.backoff_shape().first_previous();
        } else {
            self.consecutive = self.consecutive.saturating_add(1);
        }
        None
    }

    fn wait(&mut self, asked: Option<Duration>, raise: bool, rng: &mut Rng) -> Decision {
        let own = self.policy.backoff_shape().wait(self.consecutive, self.previous, rng);
        if self.consecutive > 0 {
            self.previous = own;
        }
        match self.granted(asked) {
            Err(wanted) => Decision::Exhausted { reason: Exhausted::RetryAfter(wanted), raise },
            Ok(Some(wait)) => Decision::Retry { wait, source: WaitSource::RetryAfter },
            Ok(None) if own.is_zero() => {
                Decision::Retry { wait: Duration::ZERO, source: WaitSource::None }
            }
            Ok(None) => Decision::Retry { wait: own, source: WaitSource::Backoff },
        }
    }

    /// What the policy grants of a wait that was asked for; `None` is no extra wait, and the error
    /// is a wait that is too long to be granted.
    fn granted(&self, asked: Option<Duration>) -> Result<Option<Duration>, Duration> {
        let Some(asked) = asked else { return Ok(None) };
        let max = self.policy.retry_after_ceiling();
        let granted = match self.policy.long_wait_policy() {
            _ if asked <= max => asked,
            LongWait::Clamp => max,
            LongWait::Park(park_max) if asked <= park_max => asked,
            LongWait::Park(_) | LongWait::Fail => return Err(asked),
        };
        Ok(Some(granted).filter(|wait| !wait.is_zero()))
    }
}

#[cfg(test)]
#[path = "retry_state_tests.rs"]
mod tests;
