//! How long one URL can take at most, exactly.
//!
//! The well-known formula, (total + 1) · (connect + read) + the sum of the waits, is right for one
//! set of settings and wrong, in both directions, for the rest: budgets per kind make it too
//! large, redirects, Retry-After and draining make it too small. So the answer here is the maximum
//! over all sequences of outcomes that the budgets permit, together with one sequence that reaches
//! it, and each further assumption has its own answer.
//!
//! What one attempt can take is `connect` for one that gets no connection, and `connect + read`
//! for one that does: a server that sends one byte of its head in time may of course send the next
//! as late, so this counts the silence before a head and not a head that drips. Sending a large
//! body is not counted either, nor what other URLs bring about: the wait for a limit, for a host
//! that cools down, for a proxy to live again. A bound that holds against everything is the
//! deadline, and only [`enforced`](WorstCase::enforced) gives it.

mod input;
mod solve;

pub use input::WorstCaseInput;

use super::{Retry, Timeouts, format_duration};
use solve::{Assume, Kind, solve};
pub(super) use solve::{all_waits, duration};
use std::fmt;
use std::time::Duration;

/// A bound, or the reason why there is none.
#[allow(clippy::exhaustive_enums, reason = "bounded or not")]
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Bound {
    /// At most this long.
    At(Duration),
    /// No bound exists.
    Unbounded {
        /// Because of this.
        because: String,
    },
}

impl Bound {
    /// The time, where there is one.
    pub fn duration(&self) -> Option<Duration> {
        match self {
            Self::At(duration) => Some(*duration),
            Self::Unbounded { .. } => None,
        }
    }
}

impl fmt::Display for Bound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::At(duration) => f.write_str(&format_duration(*duration)),
            Self::Unbounded { because } => write!(f, "unbounded, because {because}"),
        }
    }
}

/// What an attempt of a worst sequence ends with.
#[non_exhaustive]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum WorstOutcome {
    /// No connection within the connect timeout.
    Connect,
    /// A refusal by the proxy, with a Retry-After.
    ConnectRetryAfter,
    /// Silence, or a broken connection, after the request went out.
    Read,
    /// A status of the forcelist.
    Status,
    /// A status with a Retry-After; one of zero where the own wait is the longer.
    StatusRetryAfter,
    /// Any other failure.
    Other,
    /// A redirect.
    Redirect,
    /// A redirect with a Retry-After.
    RedirectRetryAfter,
    /// Whatever ends the request.
    Final,
}

impl WorstOutcome {
    /// A stable lower-case name, as it stands in the output of programs.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Connect => "connect",
            Self::ConnectRetryAfter => "connect_retry_after",
            Self::Read => "read",
            Self::Status => "status",
            Self::StatusRetryAfter => "status_retry_after",
            Self::Other => "other",
            Self::Redirect => "redirect",
            Self::RedirectRetryAfter => "redirect_retry_after",
            Self::Final => "final",
        }
    }
}

/// A part of a worst sequence: so many attempts that end alike and are followed by the same wait.
#[non_exhaustive]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WorstStep {
    /// What each of them ends with.
    pub outcome: WorstOutcome,
    /// How long each takes, with what draining it takes beyond the wait.
    pub cost: Duration,
    /// The wait that follows each.
    pub wait: Duration,
    /// How many there are.
    pub times: u64,
}

impl WorstStep {
    /// All of them with their waits.
    pub fn sum(&self) -> Duration {
        let nanos = (self.cost.as_nanos() + self.wait.as_nanos()).saturating_mul(self.times.into());
        solve::duration(nanos)
    }
}

/// The longest path under some assumptions.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Answer {
    bound: Bound,
    steps: Vec<WorstStep>,
}

/// The answers for one policy.
///
/// # Examples
/// ```
/// use longhaul::policy::WorstCase;
/// use longhaul::{Retry, Timeouts, secs};
///
/// let timeouts = Timeouts::from((secs(5.0), secs(25.0)));
/// let worst = WorstCase::of(&Retry::long_run(), &timeouts);
/// assert_eq!(worst.formula().to_string(), "2 min 39 s");
/// assert_eq!(worst.connect_only().to_string(), "24.2 s");
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorstCase {
    formula: Bound,
    exact: Answer,
    connect_only: Answer,
    read_only: Answer,
    status_only: Answer,
    with_retry_after: Answer,
    with_redirects: Answer,
    to_last_byte: Answer,
    occupied: Answer,
    /// As `with_redirects`, for a request that ends with a redirect for requests to follow.
    redirected: Answer,
    enforced: Option<Duration>,
}

impl WorstCase {
    /// The answers for this policy with these timeouts under ordinary assumptions: those of
    /// [`WorstCaseInput::new`].
    pub fn of(retry: &Retry, timeouts: &Timeouts) -> Self {
        Self::compute(&WorstCaseInput::new(retry, timeouts))
    }

    /// The answers for all that the input says.
    pub fn compute(input: &WorstCaseInput) -> Self {
        let plain = Assume::default();
        let only = |kind| solve(input, Assume { only: Some(kind), ..plain });
        let retry_after = Assume { retry_after: true, ..plain };
        let redirects = Assume { redirects: true, ..retry_after };
        Self {
            formula: input.formula(),
            exact: solve(input, plain),
            connect_only: only(Kind::Connect),
            read_only: only(Kind::Read),
            status_only: only(Kind::Status),
            with_retry_after: solve(input, retry_after),
            with_redirects: solve(input, redirects),
            to_last_byte: solve(input, Assume { body: true, ..redirects }),
            redirected: solve(input, Assume { handed_out: true, ..redirects }),
            occupied: solve(input, Assume { no_waits: true, ..redirects }),
            enforced: input.timeouts.deadline(),
        }
    }

    /// The well-known formula: (total + 1) · (connect + read) + the waits before `total` retries.
    pub fn formula(&self) -> Bound {
        self.formula.clone()
    }

    /// The tight maximum to the response head over all sequences of failures and forced statuses
    /// that the budgets permit; without Retry-After and redirects.
    pub fn exact(&self) -> Bound {
        self.exact.bound.clone()
    }

    /// One sequence that takes as long as [`exact`](Self::exact); empty where that is unbounded.
    pub fn sequence(&self) -> &[WorstStep] {
        &self.exact.steps
    }

    /// The most that failures to connect alone can take.
    pub fn connect_only(&self) -> Bound {
        self.connect_only.bound.clone()
    }

    /// The most that silences and broken connections alone can take.
    pub fn read_only(&self) -> Bound {
        self.read_only.bound.clone()
    }

    /// The most that forced statuses alone can take.
    pub fn status_only(&self) -> Bound {
        self.status_only.bound.clone()
    }

    /// [`exact`](Self::exact) with Retry-After at its cap wherever a server may send it.
    ///
    /// Where long waits are parked the cap is `park_max`.
    pub fn with_retry_after(&self) -> Bound {
        self.with_retry_after.bound.clone()
    }

    /// [`with_retry_after`](Self::with_retry_after) with every redirect that may be followed.
    pub fn with_redirects(&self) -> Bound {
        self.with_redirects.bound.clone()
    }

    /// One sequence that takes as long as [`with_redirects`](Self::with_redirects); empty where
    /// that is unbounded.
    pub fn sequence_with_redirects(&self) -> &[WorstStep] {
        &self.with_redirects.steps
    }

    /// [`with_redirects`](Self::with_redirects) up to the last byte of the body, with bodies that
    /// break off at their very end wherever that is retried.
    ///
    /// Bounded only where the input knows a size ceiling and a lowest rate.
    pub fn to_last_byte(&self) -> Bound {
        self.to_last_byte.bound.clone()
    }

    /// What the deadline guarantees, whatever happens; `None` without one.
    pub fn enforced(&self) -> Option<Duration> {
        self.enforced
    }

    /// How long a worker can be held: the attempts of [`with_redirects`](Self::with_redirects)
    /// without the waits between them.
    pub fn occupied(&self) -> Bound {
        self.occupied.bound.clone()
    }

    /// What requests itself would need for `redirects` hops: it arms every budget anew for each.
    ///
    /// Not the figure of this library, whose budgets span the whole chain
    /// (DIFFERENCE(budgets-span-redirects)); for comparisons.
    pub fn as_requests(&self, redirects: u32) -> Bound {
        match (&self.redirected.bound, &self.with_redirects.bound) {
            (Bound::At(hop), Bound::At(last)) => {
                let hops = solve::times(hop.as_nanos(), redirects.into());
                Bound::At(solve::duration(hops.saturating_add(last.as_nanos())))
            }
            (_, unbounded) => unbounded.clone(),
        }
    }
}

#[cfg(test)]
mod tests;
