//! What the worst case depends on beside the policy.

use super::Bound;
use super::solve::{all_waits, duration, times};
use crate::policy::{Retry, Timeouts};
use std::time::Duration;

/// requests' `DEFAULT_REDIRECT_LIMIT`.
const MAX_REDIRECTS: u32 = 30;

/// What draining an unwanted response may take between two attempts.
const DRAIN: Duration = Duration::from_millis(100);

/// The facts beside the policy that the worst case depends on.
///
/// [`new`](Self::new) gives those of this library; the setters describe other engines and other
/// assumptions.
#[derive(Debug, Clone, PartialEq)]
#[must_use]
pub struct WorstCaseInput {
    pub(super) retry: Retry,
    pub(super) timeouts: Timeouts,
    pub(super) phases: u32,
    pub(super) addresses: u32,
    pub(super) drain: Duration,
    pub(super) follow_redirects: bool,
    pub(super) max_redirects: Option<u32>,
    pub(super) method_retryable: bool,
    pub(super) forced_status: bool,
    pub(super) retry_after_cap: Duration,
    pub(super) max_body: Option<u64>,
    pub(super) lowest_rate: Option<u64>,
    pub(super) proxied: bool,
    pub(super) urllib3: bool,
}

impl WorstCaseInput {
    /// This library's engine: one connect clock for all addresses and handshakes, an unwanted
    /// response drained for at most 100 ms while its wait runs already, up to 30 redirects
    /// followed at once; the method is one that the policy retries if there is any, a forced
    /// status is possible if the forcelist is not empty; no proxy, and nothing is known about
    /// bodies.
    pub fn new(retry: &Retry, timeouts: &Timeouts) -> Self {
        Self {
            retry: retry.clone(),
            timeouts: *timeouts,
            phases: 1,
            addresses: 1,
            drain: DRAIN,
            follow_redirects: true,
            max_redirects: Some(MAX_REDIRECTS),
            method_retryable: !retry.methods().is_empty(),
            forced_status: !retry.statuses().is_empty(),
            retry_after_cap: retry.longest_retry_after(),
            max_body: None,
            lowest_rate: None,
            proxied: false,
            urllib3: false,
        }
    }

    /// How many steps before a request each have the whole connect timeout. urllib3: 1 for TCP, 2
    /// with TLS or CONNECT, 3 with both.
    pub fn phases(mut self, phases: u32) -> Self {
        self.phases = phases.max(1);
        self
    }

    /// How many addresses are tried one after the other, each with the whole connect timeout, as
    /// urllib3 does.
    pub fn addresses(mut self, addresses: u32) -> Self {
        self.addresses = addresses.max(1);
        self
    }

    /// The longest time spent on the body of a response that is not handed out.
    pub fn drain(mut self, drain: Duration) -> Self {
        self.drain = drain;
        self
    }

    /// Whether redirects are followed at all.
    pub fn follow_redirects(mut self, follow: bool) -> Self {
        self.follow_redirects = follow;
        self
    }

    /// The session's limit of redirects; `None` leaves the policy's alone.
    pub fn max_redirects(mut self, max: impl Into<Option<u32>>) -> Self {
        self.max_redirects = max.into();
        self
    }

    /// Whether the method is one that may be retried once the request may have arrived.
    pub fn method_retryable(mut self, retryable: bool) -> Self {
        self.method_retryable = retryable;
        self
    }

    /// Whether the server may answer with a status of the forcelist.
    pub fn forced_status(mut self, possible: bool) -> Self {
        self.forced_status = possible;
        self
    }

    /// The longest Retry-After that a server may ask for and get; that of the policy by default.
    pub fn retry_after_cap(mut self, cap: Duration) -> Self {
        self.retry_after_cap = cap;
        self
    }

    /// The size at which a body is cut off.
    pub fn max_body(mut self, bytes: u64) -> Self {
        self.max_body = Some(bytes);
        self
    }

    /// The lowest rate at which a body arrives, its silences included, in bytes per second.
    pub fn lowest_rate(mut self, bytes_per_second: u64) -> Self {
        self.lowest_rate = Some(bytes_per_second);
        self
    }

    /// Whether a proxy stands in between: it may refuse with a Retry-After of its own.
    pub fn proxied(mut self, proxied: bool) -> Self {
        self.proxied = proxied;
        self
    }

    /// Describes the engine of urllib3 where it takes its time otherwise than this one:
    ///
    /// - A response is drained first and waited for then, and one that is raised as used up is
    ///   drained too. This engine drains while the wait runs, and reads what it raises as it reads
    ///   any last response.
    /// - A redirect waits for its Retry-After. This engine follows at once, as requests does.
    /// - Some failures count as `other`. Of this engine's none does.
    pub fn urllib3_engine(mut self, urllib3: bool) -> Self {
        self.urllib3 = urllib3;
        self
    }

    /// (total + 1) · (connect + read) + the waits before `total` retries.
    pub(super) fn formula(&self) -> Bound {
        let (connect, read) = match self.attempt_timeouts() {
            Ok(both) => both,
            Err(unbounded) => return unbounded,
        };
        let Some(total) = self.retry.total_budget().limit() else {
            return unbounded("`total` has no limit");
        };
        let attempt = connect.as_nanos() + read.as_nanos();
        let waits = all_waits(self.retry.backoff_shape(), total.into());
        let attempts = times(attempt, u64::from(total) + 1);
        Bound::At(duration(attempts.saturating_add(waits)))
    }

    /// Both timeouts, or which one is missing.
    pub(super) fn attempt_timeouts(&self) -> Result<(Duration, Duration), Bound> {
        let connect = self.connect_timeout()?;
        let read = self.timeouts.read().ok_or_else(|| unbounded("no read timeout is set"))?;
        Ok((connect, read))
    }

    pub(super) fn connect_timeout(&self) -> Result<Duration, Bound> {
        self.timeouts.connect().ok_or_else(|| unbounded("no connect timeout is set"))
    }

    /// How long the body of one response can take.
    pub(super) fn body_time(&self) -> Result<Duration, Bound> {
        let bytes = self.max_body.ok_or_else(|| unbounded("no size ceiling is set for bodies"))?;
        match self.lowest_rate {
            None | Some(0) => Err(unbounded("a body may arrive at any rate, however low")),
            Some(rate) => {
                let nanos = u128::from(bytes) * 1_000_000_000;
                Ok(duration(nanos.div_ceil(u128::from(rate))))
            }
        }
    }
}

pub(super) fn unbounded(because: &str) -> Bound {
    Bound::Unbounded { because: because.to_owned() }
}
