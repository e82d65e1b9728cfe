//! The flags of `longhaul plan` that describe the run around one URL.

use super::shared::{CeilingArgs, PaceArgs, PolicyArgs};
use crate::values;
use clap::Args;
use longhaul::policy::{Latency, Share};
use std::num::NonZeroU64;
use std::time::Duration;

/// `longhaul plan`.
#[derive(Debug, Clone, Default, Args)]
#[command(after_help = "Durations are seconds (5, 0.5) or carry a unit (250ms, 1m30s, 2h).\n\
                  What `run` takes too means the same here, and has the same defaults.\n\n\
                  Examples:\n  \
                  longhaul plan --urls 40000 -w 24 --failure-rate 2% --latency 0.8 --within 2h\n  \
                  longhaul plan --read 5 --timeline")]
pub(crate) struct PlanArgs {
    #[command(flatten)]
    pub(crate) policy: PolicyArgs,

    #[command(flatten)]
    pub(crate) ceiling: CeilingArgs,

    /// Lowest rate at which a body arrives, per second, such as 10K: bounds the time to the last
    /// byte, together with --max-body. Default: none, so there is no bound.
    #[arg(long, value_name = "SIZE", allow_negative_numbers = true, value_parser = values::size, help_heading = "Requests")]
    pub(crate) lowest_rate: Option<u64>,

    /// Requests go through proxies, which may refuse with a Retry-After of their own. Default: off.
    #[arg(long, help_heading = "Requests")]
    pub(crate) proxied: bool,

    #[command(flatten)]
    pub(crate) pace: PaceArgs,

    /// How many URLs the run has. Default: none, so only a single URL is planned.
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = values::count::<NonZeroU64>, help_heading = "The run")]
    pub(crate) urls: Option<NonZeroU64>,

    /// Pages that each URL leads to one after another, itself included. Default: 1.
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = values::count::<NonZeroU64>, help_heading = "The run")]
    pub(crate) depth: Option<NonZeroU64>,

    /// Hosts that the URLs are spread over, evenly. Default: 1.
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = values::count::<NonZeroU64>, help_heading = "The run")]
    pub(crate) hosts: Option<NonZeroU64>,

    /// How long the run may take, such as 8h: tells the workers it needs. Default: as long as it
    /// takes.
    #[arg(long, value_name = "S", allow_negative_numbers = true, value_parser = values::span, help_heading = "The run")]
    pub(crate) within: Option<Duration>,

    /// How long a page takes: one time such as 0.8, or the 50th, 95th and 99th percentile such as
    /// 0.5,2,9. Default: not known, so that only the failures are counted.
    #[arg(long, value_name = "S[,S,S]", allow_negative_numbers = true, value_parser = values::latency, help_heading = "The run")]
    pub(crate) latency: Option<Latency>,

    /// Share of the URLs that fail in the slowest way there is, such as 0.02 or 2%. Default: 0.
    #[arg(long, value_name = "SHARE", allow_negative_numbers = true, value_parser = values::share, help_heading = "The run")]
    pub(crate) failure_rate: Option<Share>,

    /// What a page weighs on the wire, such as 300K. Default: not counted.
    #[arg(long, value_name = "SIZE", allow_negative_numbers = true, value_parser = values::size, help_heading = "The run")]
    pub(crate) page_weight: Option<u64>,

    /// What the line carries in bits per second, such as 100M. Default: no limit.
    #[arg(long, value_name = "BITS", allow_negative_numbers = true, value_parser = values::bandwidth, help_heading = "The run")]
    pub(crate) bandwidth: Option<u64>,

    /// Parallel connections of a proxy package; may be given several times, and the largest counts.
    /// Default: no ceiling.
    #[arg(long = "package", value_name = "N", allow_negative_numbers = true, value_parser = values::count::<NonZeroU64>, help_heading = "The run")]
    pub(crate) packages: Vec<NonZeroU64>,

    /// Addresses that are bound to each package and share its connections. Default: 1.
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = values::count::<NonZeroU64>, help_heading = "The run")]
    pub(crate) bindings: Option<NonZeroU64>,

    /// Simulate the run, with everything random following from this seed: those that fail connect in
    /// the last moment and stay silent, on every attempt. Default: off.
    #[arg(long, value_name = "SEED", allow_negative_numbers = true, help_heading = "The run")]
    pub(crate) simulate: Option<u64>,

    /// Draw the worst sequence, one bar per attempt. Default: off.
    #[arg(long, help_heading = "Output")]
    pub(crate) timeline: bool,

    /// Print everything as one JSON object. Default: tables.
    #[arg(long, help_heading = "Output")]
    pub(crate) json: bool,
}
