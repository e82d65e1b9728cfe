//! urllib3's `Retry` as an immutable value.

use super::{Backoff, LongWait, Outcome};
use crate::rng::Rng;
use http::Method;
use std::time::Duration;

/// One of urllib3's counters: no limit (`None`), a number, or off (`False`).
#[allow(clippy::exhaustive_enums, reason = "urllib3 has exactly these three meanings")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Budget {
    /// No limit of its own.
    Unlimited,
    /// At most this many retries.
    Times(u32),
    /// Never retried; for `total` and `redirect` see their setters.
    Off,
}

/// Which methods may be retried once the request may have arrived.
#[allow(clippy::exhaustive_enums, reason = "a set is all or a list")]
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Methods {
    /// Every method.
    Any,
    /// Those in the list; an empty list means none.
    Only(Vec<Method>),
}

/// A set of status codes.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Statuses(Vec<u16>);

/// How often, after what and how long after a failed attempt the next one is made.
#[derive(Debug, Clone, PartialEq)]
pub struct Retry {
    _todo: (),
}

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

/// Which budget was used up.
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
        /// Whether to raise rather than to return the last response.
        raise: bool,
    },
}

/// The counters of one request in flight.
#[derive(Debug, Clone)]
pub struct RetryState {
    _todo: (),
}

impl Retry {
    /// urllib3 2.x as it is: total 10, no forcelist, no backoff.
    pub fn urllib3() -> Self {
        unimplemented!()
    }
    /// The policy for runs; the default of `WorkerPool`, `Batch` and the command.
    pub fn long_run() -> Self {
        unimplemented!()
    }
    /// `long_run` with total 2, for high concurrency.
    pub fn wide() -> Self {
        unimplemented!()
    }
    /// No retries; the default of a `Session`, as in requests.
    pub fn none() -> Self {
        unimplemented!()
    }
    /// A plain number, as urllib3's `Retry.from_int`.
    pub fn from_total(total: u32) -> Self {
        let _ = total;
        unimplemented!()
    }
    // Setters, each `pub fn name(self, value) -> Self`: total, connect, read, redirect, status,
    // other: impl Into<Budget>; allowed_methods: Methods; status_forcelist: impl Into<Statuses>;
    // backoff: Backoff; respect_retry_after_header: bool; retry_after_max: Duration;
    // long_wait: LongWait; raise_on_status, raise_on_redirect: bool;
    // remove_headers_on_redirect: Vec<String>. Getters with the same name and the suffix `_limit`
    // are NOT wanted: getters are named `total_budget()` .. `other_budget()`, `methods()`,
    // `statuses()`, `backoff_shape()`, `retry_after_ceiling()`, ...
    /// The state before the first attempt.
    pub fn start(&self) -> RetryState {
        unimplemented!()
    }
    /// Headers to remove when a redirect leaves the origin.
    pub fn headers_removed_on_redirect(&self) -> &[String] {
        unimplemented!()
    }
}

impl RetryState {
    /// Charges `outcome` of an attempt with `method` and says what to do next.
    pub fn decide(&mut self, method: &Method, outcome: &Outcome, rng: &mut Rng) -> Decision {
        let _ = (method, outcome, rng);
        unimplemented!()
    }
    /// Charges a redirect that is about to be followed; the wait is that of Retry-After, if any.
    pub fn redirect(&mut self, retry_after: Option<Duration>) -> Decision {
        let _ = retry_after;
        unimplemented!()
    }
    /// How many attempts have been charged so far.
    pub fn charged(&self) -> u32 {
        unimplemented!()
    }
}

#[allow(unused)]
fn _uses(_: Backoff, _: LongWait) {}
