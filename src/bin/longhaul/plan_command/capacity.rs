//! What the policy does to a run of many URLs.

use crate::args::{PaceArgs, PlanArgs};
use crate::usage::UsageError;
use longhaul::policy::{
    Capacity, CapacityBuilder, Estimate, FailureCost, LimitedBy, Package, PoolSizes, Share, Work,
    WorstCase,
};
use std::num::{NonZeroU64, NonZeroUsize};
use std::time::Duration;

/// A run.
#[derive(Debug, Clone)]
pub(crate) struct Run {
    /// How many pages.
    pub(crate) pages: u64,
    /// Pages of each URL.
    pub(crate) depth: u64,
    /// Whether it is known how long an answer takes; if not, the failures are all that takes time.
    pub(crate) has_latency: bool,
    /// With the workers that were asked for.
    pub(crate) estimate: Estimate,
    /// In the time that was asked for.
    pub(crate) within: Option<(Duration, Estimate)>,
    /// More workers than this make no difference.
    pub(crate) useful: u64,
    /// What to set.
    pub(crate) sizes: PoolSizes,
}

/// Parallel connections, and who limits them.
pub(crate) type Ceiling = (u64, LimitedBy);

/// The run and its ceiling, as far as they were asked for.
///
/// # Errors
/// A flag that needs another one, and what the library refuses.
pub(crate) fn resolve(
    args: &PlanArgs,
    worst: &WorstCase,
) -> Result<(Option<Run>, Option<Ceiling>), UsageError> {
    let library = |error| UsageError::from_library(&error);
    let Some(urls) = args.urls else {
        refuse_without_urls(args)?;
        // A ceiling needs no run; that of one URL is that of any number.
        let builder = Capacity::builder(Work::Urls(1)).failure_rate(Share::ALL);
        return Ok((None, constraints(builder, args)?.build().map_err(library)?.ceiling()));
    };
    let failures = args.failure_rate.unwrap_or(Share::NONE);
    if args.latency.is_none() && failures == Share::NONE {
        return Err(UsageError::new(
            "--urls",
            "nothing of this run takes any time; add --latency, or --failure-rate, or both",
        ));
    }
    let depth = args.depth.map_or(1, NonZeroU64::get);
    let work = match depth {
        1 => Work::Urls(urls.get()),
        _ => Work::Targets { targets: urls.get(), depth },
    };
    let mut builder = constraints(Capacity::builder(work), args)?;
    if let Some(latency) = args.latency {
        builder = builder.latency(latency);
    }
    if failures != Share::NONE {
        let cost =
            FailureCost::worst(worst).map_err(|error| UsageError::at("--failure-rate", &error))?;
        builder = builder.failure_rate(failures).failure_cost(cost);
    }
    let capacity = builder.build().map_err(library)?;
    let workers = args.pace.workers() as u64;
    let within = args
        .within
        .map(|time| Ok((time, capacity.workers_for(time)?)))
        .transpose()
        .map_err(library)?;
    let run = Run {
        pages: work.urls(),
        depth,
        has_latency: args.latency.is_some(),
        estimate: capacity.run(workers).map_err(library)?,
        within,
        useful: capacity.most_useful_workers(),
        sizes: capacity.pool_sizes(workers).map_err(library)?,
    };
    Ok((Some(run), capacity.ceiling()))
}

/// What describes a run says nothing without one.
fn refuse_without_urls(args: &PlanArgs) -> Result<(), UsageError> {
    let given = [
        ("--depth", args.depth.is_some()),
        ("--within", args.within.is_some()),
        ("--latency", args.latency.is_some()),
        ("--failure-rate", args.failure_rate.is_some()),
        ("--page-weight", args.page_weight.is_some()),
        ("--bandwidth", args.bandwidth.is_some()),
    ];
    match given.into_iter().find(|(_, given)| *given) {
        Some((flag, _)) => {
            Err(UsageError::new(flag, "there is no run that it could be about; add --urls N"))
        }
        None => Ok(()),
    }
}

/// Everything that limits a run.
fn constraints(
    mut builder: CapacityBuilder,
    args: &PlanArgs,
) -> Result<CapacityBuilder, UsageError> {
    // A burst shortens the beginning of a run, and nothing else.
    let PaceArgs { workers: _, rate, burst: _, host_rate, host_burst: _, per_host } = &args.pace;
    if args.packages.is_empty() && args.bindings.is_some() {
        return Err(UsageError::new("--bindings", "there is no package to share; add --package N"));
    }
    for connections in &args.packages {
        let package = Package::new(connections.get())
            .map_err(|error| UsageError::at("--package", &error))?
            .bindings(args.bindings.map_or(1, NonZeroU64::get))
            .map_err(|error| UsageError::at("--bindings", &error))?;
        builder = builder.package(package);
    }
    if let Some(hosts) = args.hosts {
        builder = builder.hosts(hosts.get());
    }
    if let Some(per_host) = per_host.map(NonZeroUsize::get) {
        builder = builder.per_host(per_host as u64);
    }
    if let Some(rate) = rate {
        builder = builder.rate(rate.per_second);
    }
    if let Some(rate) = host_rate {
        builder = builder.per_host_rate(rate.per_second);
    }
    if let Some(bytes) = args.page_weight {
        builder = builder.page_bytes(bytes);
    }
    if let Some(bits) = args.bandwidth {
        builder = builder.bandwidth(bits / 8);
    }
    Ok(builder)
}
