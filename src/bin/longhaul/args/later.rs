//! The flags of the passes after the first.
//!
//! What failed in the first pass may deserve more patience than what has not been tried, so the
//! budgets and timeouts that a wide run is made cheap with have a second value here. Each is called
//! as the flag whose place it takes, with `pass-` before it. Methods, statuses and redirects mean the
//! same in every pass.

use super::{PolicyArgs, RetryArgs, TimeoutArgs};
use crate::values::{self, Limit};
use clap::Args;
use longhaul::policy::Budget;
use std::time::Duration;

/// What the passes after the first do otherwise.
#[derive(Debug, Clone, Default, PartialEq, Eq, Args)]
pub(crate) struct LaterArgs {
    /// --total of the passes after the first. Default: that of the first.
    #[arg(long, value_name = "N", allow_negative_numbers = true, help_heading = "Later passes")]
    pub(crate) pass_total: Option<Budget>,

    /// --connect of the passes after the first. Default: that of the first.
    #[arg(long, value_name = "N", allow_negative_numbers = true, help_heading = "Later passes")]
    pub(crate) pass_connect: Option<Budget>,

    /// --read of the passes after the first. Default: that of the first.
    #[arg(long, value_name = "N", allow_negative_numbers = true, help_heading = "Later passes")]
    pub(crate) pass_read: Option<Budget>,

    /// --status of the passes after the first. Default: that of the first.
    #[arg(long, value_name = "N", allow_negative_numbers = true, help_heading = "Later passes")]
    pub(crate) pass_status: Option<Budget>,

    /// --backoff-factor of the passes after the first. Default: that of the first.
    #[arg(long, value_name = "S", allow_negative_numbers = true, value_parser = values::wait, help_heading = "Later passes")]
    pub(crate) pass_backoff_factor: Option<Duration>,

    /// --retry-after-max of the passes after the first. Default: that of the first.
    #[arg(long, value_name = "S", allow_negative_numbers = true, value_parser = values::wait, help_heading = "Later passes")]
    pub(crate) pass_retry_after_max: Option<Duration>,

    /// --connect-timeout of the passes after the first, or none. Default: that of the first.
    #[arg(long, value_name = "S", allow_negative_numbers = true, value_parser = values::timeout, help_heading = "Later passes")]
    pub(crate) pass_connect_timeout: Option<Limit>,

    /// --read-timeout of the passes after the first, or none. Default: that of the first.
    #[arg(long, value_name = "S", allow_negative_numbers = true, value_parser = values::timeout, help_heading = "Later passes")]
    pub(crate) pass_read_timeout: Option<Limit>,

    /// Wall clock for one URL within one of the passes after the first, or none. Default: that of
    /// the first where it was given, else the worst case of the policy of those passes.
    #[arg(long, value_name = "S|none", allow_negative_numbers = true, value_parser = values::timeout, help_heading = "Later passes")]
    pub(crate) pass_deadline: Option<Limit>,
}

impl LaterArgs {
    /// The first of these flags that was given.
    pub(crate) fn given(&self) -> Option<&'static str> {
        // No `..`: a new flag has to be named here before anything compiles.
        let Self {
            pass_total,
            pass_connect,
            pass_read,
            pass_status,
            pass_backoff_factor,
            pass_retry_after_max,
            pass_connect_timeout,
            pass_read_timeout,
            pass_deadline,
        } = self;
        [
            ("--pass-total", pass_total.is_some()),
            ("--pass-connect", pass_connect.is_some()),
            ("--pass-read", pass_read.is_some()),
            ("--pass-status", pass_status.is_some()),
            ("--pass-backoff-factor", pass_backoff_factor.is_some()),
            ("--pass-retry-after-max", pass_retry_after_max.is_some()),
            ("--pass-connect-timeout", pass_connect_timeout.is_some()),
            ("--pass-read-timeout", pass_read_timeout.is_some()),
            ("--pass-deadline", pass_deadline.is_some()),
        ]
        .into_iter()
        .find_map(|(flag, is_given)| is_given.then_some(flag))
    }

    /// The flags of the first pass with these in their places.
    pub(crate) fn over(&self, first: &PolicyArgs) -> PolicyArgs {
        let PolicyArgs { timeouts, retries } = first.clone();
        PolicyArgs {
            timeouts: TimeoutArgs {
                connect_timeout: self.pass_connect_timeout.or(timeouts.connect_timeout),
                read_timeout: self.pass_read_timeout.or(timeouts.read_timeout),
                deadline: self.pass_deadline.or(timeouts.deadline),
            },
            retries: RetryArgs {
                total: self.pass_total.or(retries.total),
                connect: self.pass_connect.or(retries.connect),
                read: self.pass_read.or(retries.read),
                status: self.pass_status.or(retries.status),
                backoff_factor: self.pass_backoff_factor.or(retries.backoff_factor),
                retry_after_max: self.pass_retry_after_max.or(retries.retry_after_max),
                ..retries
            },
        }
    }
}
