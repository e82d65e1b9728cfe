//! How long one URL is held on to: the flags of timeouts and retries, resolved.
//!
//! The default deadline is decided here: it is the worst case of the very policy that was given,
//! with Retry-After at its cap. A promise that is computed from the policy and then enforced cannot
//! be broken by a policy that somebody forgot to recompute. The command that computes it and the
//! command that keeps it resolve their flags in this one place.

use crate::args::{Jitter, PolicyArgs, RetryArgs, TimeoutArgs};
use crate::usage::UsageError;
use longhaul::policy::{Backoff, Bound, WorstCase, WorstCaseInput};
use longhaul::{Retry, Timeouts};
use std::time::Duration;

/// Timeouts and retries with nothing left to decide.
#[derive(Debug, Clone)]
pub(crate) struct Policy {
    /// Retries.
    pub(crate) retry: Retry,
    /// Connect, read, and the deadline that is enforced.
    pub(crate) timeouts: Timeouts,
    /// What both come to, without the deadline.
    pub(crate) worst: WorstCase,
    /// Whether the deadline is that worst case, since none was asked for.
    pub(crate) deadline_is_promise: bool,
    /// Whether a proxy stands in between, which may refuse with a Retry-After of its own.
    pub(crate) proxied: bool,
}

impl Policy {
    /// The long-run policy with what was asked for in its place; `proxied` tells whether requests go
    /// through proxies.
    ///
    /// # Errors
    /// A timeout that is none.
    pub(crate) fn resolve(args: &PolicyArgs, proxied: bool) -> Result<Self, UsageError> {
        let PolicyArgs {
            timeouts: TimeoutArgs { connect_timeout, read_timeout, deadline },
            retries,
        } = args;
        let retry = retry(retries);
        let mut timeouts = Timeouts::default();
        if let Some(limit) = connect_timeout {
            timeouts = timeouts
                .with_connect(limit.0)
                .map_err(|error| UsageError::at("--connect-timeout", &error))?;
        }
        if let Some(limit) = read_timeout {
            timeouts = timeouts
                .with_read(limit.0)
                .map_err(|error| UsageError::at("--read-timeout", &error))?;
        }
        let worst = WorstCase::compute(&assumed(&retry, &timeouts, proxied));
        let deadline_is_promise = deadline.is_none();
        let deadline = match deadline {
            Some(limit) => limit.0,
            None => promise(&worst),
        };
        let timeouts = timeouts
            .with_deadline(deadline)
            .map_err(|error| UsageError::at("--deadline", &error))?;
        Ok(Self { retry, timeouts, worst, deadline_is_promise, proxied })
    }

    /// What the promise assumes; further assumptions can be added.
    pub(crate) fn assumed(&self) -> WorstCaseInput {
        assumed(&self.retry, &self.timeouts, self.proxied)
    }
}

/// A longer Retry-After is honoured too (the URL is parked), but only within the deadline; what is
/// promised is the policy with the longest one that was agreed to.
fn assumed(retry: &Retry, timeouts: &Timeouts, proxied: bool) -> WorstCaseInput {
    WorstCaseInput::new(retry, timeouts)
        .retry_after_cap(retry.retry_after_ceiling())
        .proxied(proxied)
}

/// The retries of a policy in words.
pub(crate) fn describe_retries(retry: &Retry) -> String {
    format!(
        "total {}, connect {}, read {}, status {}, redirect {}, other {}; methods {}; \
         statuses {}",
        retry.total_budget(),
        retry.connect_budget(),
        retry.read_budget(),
        retry.status_budget(),
        retry.redirect_budget(),
        retry.other_budget(),
        retry.methods(),
        retry.statuses(),
    )
}

/// The longest time of one URL under this policy; `None` where no bound exists.
fn promise(worst: &WorstCase) -> Option<Duration> {
    match worst.with_retry_after() {
        Bound::At(longest) => Some(longest),
        Bound::Unbounded { .. } => None,
    }
}

/// The long-run policy with what was asked for in its place.
fn retry(args: &RetryArgs) -> Retry {
    // No `..`: a new flag has to be decided on here before anything compiles.
    let RetryArgs {
        total,
        connect,
        read,
        status,
        redirect,
        other,
        forcelist,
        methods,
        backoff_factor,
        backoff_max,
        jitter,
        retry_after_max,
    } = args;
    let mut retry = Retry::long_run();
    for (budget, set) in [
        (*total, Retry::total as fn(Retry, _) -> Retry),
        (*connect, Retry::connect),
        (*read, Retry::read),
        (*status, Retry::status),
        (*redirect, Retry::redirect),
        (*other, Retry::other),
    ] {
        if let Some(budget) = budget {
            retry = set(retry, budget);
        }
    }
    if let Some(statuses) = forcelist {
        retry = retry.status_forcelist(statuses.clone());
    }
    if let Some(methods) = methods {
        retry = retry.allowed_methods(methods.clone());
    }
    if let Some(longest) = *retry_after_max {
        retry = retry.retry_after_max(longest);
    }
    let usual = *retry.backoff_shape();
    let factor = backoff_factor.unwrap_or(usual.factor());
    let shape = match jitter {
        None => usual.with_factor(factor),
        Some(Jitter::None) => Backoff::exponential(factor),
        Some(Jitter::Full) => Backoff::full_jitter(factor),
        Some(Jitter::Equal) => Backoff::equal_jitter(factor),
        Some(Jitter::Decorrelated) => Backoff::decorrelated(factor),
    };
    retry.backoff(shape.with_max(backoff_max.unwrap_or(usual.max())))
}
