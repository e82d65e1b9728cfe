//! The flags that more than one command takes, with the same meaning in each.

use crate::values::{self, Lane, Limit, Rate, Workers};
use crate::window::{self, When};
use clap::{Args, ValueEnum};
use longhaul::policy::{Budget, Concurrency, FailureShare, Methods, Statuses};
use std::num::{NonZeroU32, NonZeroUsize};
use std::time::Duration;

/// How much at a time.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct PaceArgs {
    /// Worker threads, each with its own session; or auto, which begins with 8 and finds out how
    /// many the other side bears, up to 1000 or to N with auto:N. Default: 8, and no walk.
    #[arg(short, long, value_name = "N|auto", allow_negative_numbers = true, value_parser = values::pool, help_heading = "Pace")]
    pub(crate) workers: Option<Workers>,

    /// Requests per time over all workers, every attempt counted and evenly spaced, such as 5/s or
    /// 300/min. Default: no limit.
    #[arg(long, value_name = "N/s", allow_negative_numbers = true, value_parser = values::rate, help_heading = "Pace")]
    pub(crate) rate: Option<Rate>,

    /// Requests of --rate that may be made at once after a while with fewer. Default: 1; from 200/s
    /// on what falls into 10 ms.
    #[arg(long, value_name = "N", requires = "rate", allow_negative_numbers = true, value_parser = values::count::<NonZeroU32>, help_heading = "Pace")]
    pub(crate) burst: Option<NonZeroU32>,

    /// Requests per time to one host, counted as for --rate; other hosts go on. Default: no limit.
    #[arg(long, value_name = "N/s", allow_negative_numbers = true, value_parser = values::rate, help_heading = "Pace")]
    pub(crate) host_rate: Option<Rate>,

    /// Requests of --host-rate that may be made at once to one host. Default: 1; from 200/s on what
    /// falls into 10 ms.
    #[arg(long, value_name = "N", requires = "host_rate", allow_negative_numbers = true, value_parser = values::count::<NonZeroU32>, help_heading = "Pace")]
    pub(crate) host_burst: Option<NonZeroU32>,

    /// Requests in flight to one host at most. Default: no limit but the workers.
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = values::count::<NonZeroUsize>, help_heading = "Pace")]
    pub(crate) per_host: Option<NonZeroUsize>,
}

/// When a run works, and when it gives up.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct HoursArgs {
    /// Send nothing before this time: of day, where this machine is (22:00), or RFC 3339. Default: at
    /// once.
    #[arg(long, value_name = "TIME", value_parser = window::when, help_heading = "Hours and stop rules")]
    pub(crate) start_at: Option<When>,

    /// Stop at this time, as on a first Ctrl-C; what is left is for --resume. Default: at the end.
    #[arg(long, value_name = "TIME", value_parser = window::when, help_heading = "Hours and stop rules")]
    pub(crate) stop_at: Option<When>,

    /// Stop after so long, such as 8h, likewise. Default: none.
    #[arg(long, value_name = "S", allow_negative_numbers = true, value_parser = values::span, help_heading = "Hours and stop rules")]
    pub(crate) max_time: Option<Duration>,

    /// Stop when so large a share of the last so many URLs failed or was refused, such as 50%/200.
    /// Default: never.
    #[arg(long, value_name = "SHARE/N", help_heading = "Hours and stop rules")]
    pub(crate) stop_on_failures: Option<FailureShare>,
}

/// What is a refusal, and what becomes of it.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct RefusalArgs {
    /// How often a URL that was refused (403, or a block page) is sent again, later, slower and
    /// through another proxy, or off. Default: 1 (longhaul; requests: never).
    #[arg(long, value_name = "N|off", allow_negative_numbers = true, value_parser = values::lane, help_heading = "Refusals")]
    pub(crate) slow_lane: Option<Lane>,

    /// How long a refused URL waits at least; its host is left alone for as much of it as its last
    /// 20 answers were refusals. Default: 20.
    #[arg(long, value_name = "S", allow_negative_numbers = true, value_parser = values::wait, help_heading = "Refusals")]
    pub(crate) slow_lane_pause: Option<Duration>,

    /// How far the refused URLs of one host are apart. Default: 5.
    #[arg(long, value_name = "S", allow_negative_numbers = true, value_parser = values::wait, help_heading = "Refusals")]
    pub(crate) slow_lane_spacing: Option<Duration>,

    /// Statuses that are refusals too, such as 429,302; they are neither retried nor followed.
    /// Default: none but 403.
    #[arg(long, value_name = "LIST", help_heading = "Refusals")]
    pub(crate) block_status: Option<Statuses>,

    /// A response whose field holds this text is a refusal: 'Name: text', in any case; may be given
    /// several times. Default: none.
    #[arg(long, value_name = "NAME: TEXT", help_heading = "Refusals")]
    pub(crate) block_header: Vec<String>,

    /// A response whose body holds this text in its first 256 KiB is a refusal; may be given
    /// several times. Default: none.
    #[arg(long, value_name = "TEXT", help_heading = "Refusals")]
    pub(crate) block_body: Vec<String>,
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
