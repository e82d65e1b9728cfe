//! The flags that more than one command takes, with the same meaning in each.

use crate::values::{self, Limit, Rate, Workers};
use clap::{Args, ValueEnum};
use longhaul::policy::{Budget, Concurrency, Methods, Statuses};
use std::num::NonZeroUsize;
use std::time::Duration;

/// How much at a time.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct PaceArgs {
    /// Worker threads, each with its own session; or auto, which begins with 8 and finds out how
    /// many the other side bears, up to 1000 or to N with auto:N. Default: 8, and no walk.
    #[arg(short, long, value_name = "N|auto", allow_negative_numbers = true, value_parser = values::pool, help_heading = "Pace")]
    pub(crate) workers: Option<Workers>,

    /// Requests per time over all workers, evenly spaced, such as 5/s or 300/min. Default: no
    /// limit.
    #[arg(long, value_name = "N/s", allow_negative_numbers = true, value_parser = values::rate, help_heading = "Pace")]
    pub(crate) rate: Option<Rate>,

    /// Requests in flight to one host at most. Default: no limit but the workers.
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = values::count::<NonZeroUsize>, help_heading = "Pace")]
    pub(crate) per_host: Option<NonZeroUsize>,
}

impl PaceArgs {
    /// How many workers there are when nobody asks for a number: where a careful walk up begins.
    const DEFAULT_WORKERS: usize = 8;

    /// The number of workers, at most.
    pub(crate) fn workers(&self) -> usize {
        self.workers.map_or(Self::DEFAULT_WORKERS, Workers::most)
    }

    /// Whether as many work as the other side bears.
    pub(crate) fn concurrency(&self) -> Concurrency {
        match self.workers {
            Some(Workers::Auto(_)) => Concurrency::Adaptive,
            Some(Workers::Count(_)) | None => Concurrency::Fixed,
        }
    }
}

/// How much of one answer.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct CeilingArgs {
    /// Ceiling of a decoded body such as 512K or 10M, beyond which the URL fails. Default: none.
    #[arg(long, value_name = "SIZE", value_parser = values::size, help_heading = "Requests")]
    pub(crate) max_body: Option<u64>,
}

/// Timeouts and retries.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct PolicyArgs {
    #[command(flatten)]
    pub(crate) timeouts: TimeoutArgs,

    #[command(flatten)]
    pub(crate) retries: RetryArgs,
}

/// How long one attempt, and one URL, may take.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct TimeoutArgs {
    /// Budget for DNS, TCP, proxy handshake and TLS together, or none. Default: 5 (longhaul;
    /// requests has no limit).
    #[arg(long, value_name = "S", allow_negative_numbers = true, value_parser = values::timeout, help_heading = "Timeouts")]
    pub(crate) connect_timeout: Option<Limit>,

    /// Longest silence between two bytes, or none. Default: 25 (longhaul; requests has no limit).
    #[arg(long, value_name = "S", allow_negative_numbers = true, value_parser = values::timeout, help_heading = "Timeouts")]
    pub(crate) read_timeout: Option<Limit>,

    /// Wall clock for one URL with all its attempts and waits, or none. Default: the worst case of
    /// the policy, which the plan prints.
    #[arg(long, value_name = "S|none", allow_negative_numbers = true, value_parser = values::timeout, help_heading = "Timeouts")]
    pub(crate) deadline: Option<Limit>,
}

/// How often, after what, and after which wait another attempt is made.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct RetryArgs {
    /// Retries of all kinds, or none (no limit of its own), or off. Default: 4 (long-run policy;
    /// urllib3: 10).
    #[arg(long, value_name = "N", allow_negative_numbers = true, help_heading = "Retries")]
    pub(crate) total: Option<Budget>,

    /// Retries after failures before the request was sent, or none, or off. Default: 3 (long-run
    /// policy).
    #[arg(long, value_name = "N", allow_negative_numbers = true, help_heading = "Retries")]
    pub(crate) connect: Option<Budget>,

    /// Retries after failures while sending or reading, or none, or off. Default: 2 (long-run
    /// policy).
    #[arg(long, value_name = "N", allow_negative_numbers = true, help_heading = "Retries")]
    pub(crate) read: Option<Budget>,

    /// Retries after a status of --forcelist or a Retry-After, or none, or off. Default: 3
    /// (long-run policy).
    #[arg(long, value_name = "N", allow_negative_numbers = true, help_heading = "Retries")]
    pub(crate) status: Option<Budget>,

    /// Redirects followed, or none, or off. Default: none, so total alone limits them (urllib3).
    #[arg(long, value_name = "N", allow_negative_numbers = true, help_heading = "Retries")]
    pub(crate) redirect: Option<Budget>,

    /// Retries after any other failure, or none, or off. Default: none, so total alone limits them
    /// (urllib3).
    #[arg(long, value_name = "N", allow_negative_numbers = true, help_heading = "Retries")]
    pub(crate) other: Option<Budget>,

    /// Statuses that are retried, such as 429,500-504, or none. Default:
    /// 408,425,429,500,502,503,504 (long-run policy; urllib3: none).
    #[arg(long, value_name = "LIST", help_heading = "Retries")]
    pub(crate) forcelist: Option<Statuses>,

    /// Methods that are retried once the request may have arrived, such as GET,HEAD, or any, or
    /// none. Default: GET,HEAD,OPTIONS (long-run policy; urllib3 adds DELETE, PUT, TRACE).
    #[arg(long, value_name = "LIST", help_heading = "Retries")]
    pub(crate) methods: Option<Methods>,

    /// Wait before the first retry; it doubles with each further one. Default: 0.6 (long-run
    /// policy; urllib3: 0).
    #[arg(long, value_name = "S", allow_negative_numbers = true, value_parser = values::wait, help_heading = "Retries")]
    pub(crate) backoff_factor: Option<Duration>,

    /// Ceiling of a single backoff. Default: 120 (urllib3).
    #[arg(long, value_name = "S", allow_negative_numbers = true, value_parser = values::wait, help_heading = "Retries")]
    pub(crate) backoff_max: Option<Duration>,

    /// How backoffs are spread. Default: none, the exact series.
    #[arg(long, value_name = "KIND", help_heading = "Retries")]
    pub(crate) jitter: Option<Jitter>,

    /// Longest Retry-After that is part of the promised worst case. Default: 60 (long-run policy;
    /// urllib3: 21600).
    #[arg(long, value_name = "S", allow_negative_numbers = true, value_parser = values::wait, help_heading = "Retries")]
    pub(crate) retry_after_max: Option<Duration>,
}

/// `--jitter`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Jitter {
    /// The exact series.
    None,
    /// Anything from zero to the series' value.
    Full,
    /// Half of the series' value, and up to the other half on top.
    Equal,
    /// Between the factor and three times the wait before.
    Decorrelated,
}
