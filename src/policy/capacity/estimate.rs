//! The answers.

use super::{BILLION, Capacity, FailureCost, Share, Waits};
use crate::policy::worst_case::duration;
use std::fmt;
use std::time::Duration;

/// The constraint that gives the run its length.
#[non_exhaustive]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum LimitedBy {
    /// The workers: more of them are faster.
    Workers,
    /// The parallel connections of the package.
    Package,
    /// The parallel connections that the hosts stand.
    PerHost,
    /// The rate over all.
    Rate,
    /// The rate per host.
    PerHostRate,
    /// The line.
    Bandwidth,
    /// Pages that come one after another, or a single URL that fails.
    Row,
}

impl LimitedBy {
    /// A stable lower-case name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Workers => "workers",
            Self::Package => "package",
            Self::PerHost => "per_host",
            Self::Rate => "rate",
            Self::PerHostRate => "per_host_rate",
            Self::Bandwidth => "bandwidth",
            Self::Row => "row",
        }
    }
}

impl fmt::Display for LimitedBy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Workers => "the number of workers",
            Self::Package => "the parallel connections of the package",
            Self::PerHost => "the parallel connections per host",
            Self::Rate => "the rate over all",
            Self::PerHostRate => "the rate per host",
            Self::Bandwidth => "the bandwidth",
            Self::Row => "the longest row of pages that come one after another",
        })
    }
}

/// The largest of several least times, the first of equal ones.
#[derive(Default)]
pub(super) struct Limit(Option<(u128, LimitedBy)>);

impl Limit {
    pub(super) fn at_least(&mut self, nanos: u128, by: LimitedBy) {
        if self.0.is_none_or(|(longest, _)| nanos > longest) {
            self.0 = Some((nanos, by));
        }
    }

    pub(super) fn longest(self) -> (u128, LimitedBy) {
        self.0.unwrap_or((0, LimitedBy::Workers))
    }
}

/// A run of so many workers.
#[derive(Debug, Clone, PartialEq)]
pub struct Estimate {
    workers: u64,
    urls: u64,
    run_time: u128,
    limited_by: LimitedBy,
    worker_time: u128,
    latest: Option<u128>,
    parked: FailureBill,
    held: FailureBill,
    waits: Waits,
}

impl Estimate {
    pub(super) fn new(capacity: &Capacity, workers: u64) -> Self {
        let mut limit = Limit::default();
        limit.at_least(capacity.time_with(workers), LimitedBy::Workers);
        let (least, by) = capacity.least_time();
        limit.at_least(least, by);
        let (run_time, limited_by) = limit.longest();
        let bill = |waits| FailureBill::new(capacity, workers, waits);
        let paced = capacity.rate.is_some()
            || capacity.per_host_rate.is_some()
            || capacity.bandwidth.is_some()
            || (capacity.per_host.is_some() && capacity.hosts > 1);
        let latest = (!paced).then(|| {
            let parallel = capacity.ceiling().map_or(workers, |(most, _)| most.min(workers));
            let slowest = capacity.latency.map_or(0, |latency| latency.p99().as_nanos());
            let failure = match capacity.failures {
                Share::NONE => 0,
                _ => capacity.cost.total().as_nanos(),
            };
            let row = slowest.max(failure).saturating_mul(capacity.work.depth().into());
            capacity.time_with(parallel).saturating_add(row)
        });
        Self {
            workers,
            urls: capacity.work.urls(),
            run_time,
            limited_by,
            worker_time: capacity.work().div_ceil(BILLION),
            latest,
            parked: bill(Waits::Parked),
            held: bill(Waits::HoldWorker),
            waits: capacity.waits,
        }
    }

    /// How many workers.
    pub fn workers(&self) -> u64 {
        self.workers
    }

    /// How long the run takes, rounded up to the nanosecond.
    pub fn run_time(&self) -> Duration {
        duration(self.run_time)
    }

    /// What makes it take that long.
    pub fn limited_by(&self) -> LimitedBy {
        self.limited_by
    }

    /// URLs per second over the whole run, failed ones included.
    pub fn urls_per_second(&self) -> f64 {
        self.urls as f64 / (self.run_time as f64 / BILLION as f64)
    }

    /// For how long workers are held, all together.
    pub fn worker_time(&self) -> Duration {
        duration(self.worker_time)
    }

    /// How many workers are held at a time, on the average.
    pub fn busy_workers(&self) -> f64 {
        self.worker_time as f64 / self.run_time as f64
    }

    /// A bound for the run time, whatever the order in which the URLs come: the work shared among
    /// the workers, and one row of the slowest behind it.
    ///
    /// For answers that take p99 at most and as many failures as expected. `None` where a rate or a
    /// line is limited, or several hosts are.
    pub fn latest(&self) -> Option<Duration> {
        self.latest.map(duration)
    }

    /// What the failures cost in this run.
    pub fn failures(&self) -> &FailureBill {
        match self.waits {
            Waits::Parked => &self.parked,
            Waits::HoldWorker => &self.held,
        }
    }

    /// What they cost where a worker is free while a URL waits.
    pub fn failures_if_waits_are_parked(&self) -> &FailureBill {
        &self.parked
    }

    /// What they cost where a worker sleeps through the waits.
    pub fn failures_if_waits_hold(&self) -> &FailureBill {
        &self.held
    }
}

/// What the URLs that fail cost a run.
#[derive(Debug, Clone, PartialEq)]
pub struct FailureBill {
    /// In billionths.
    urls: u128,
    each: FailureCost,
    worker_time: u128,
    run_time: u128,
    share: Option<f64>,
}

impl FailureBill {
    fn new(capacity: &Capacity, workers: u64, waits: Waits) -> Self {
        let urls = capacity.failures.parts().saturating_mul(capacity.work.urls().into());
        let time = urls.saturating_mul(capacity.cost.held(waits));
        let whole = Capacity { waits, ..capacity.clone() }.work();
        Self {
            urls,
            each: capacity.cost,
            worker_time: time.div_ceil(BILLION),
            run_time: time.div_ceil(BILLION.saturating_mul(workers.into())),
            share: capacity.latency.map(|_| time as f64 / whole as f64),
        }
    }

    /// How many fail.
    pub fn urls(&self) -> f64 {
        self.urls as f64 / BILLION as f64
    }

    /// What each costs.
    pub fn each(&self) -> FailureCost {
        self.each
    }

    /// For how long they hold workers, all together.
    pub fn worker_time(&self) -> Duration {
        duration(self.worker_time)
    }

    /// What that is of the run time, shared among the workers.
    pub fn run_time(&self) -> Duration {
        duration(self.run_time)
    }

    /// Their share of all the time for which workers are held; `None` where it is not known how
    /// long the others take.
    pub fn share(&self) -> Option<f64> {
        self.share
    }
}

/// What to set.
#[non_exhaustive]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PoolSizes {
    /// The workers: those that were asked for, as far as they make a difference.
    pub workers: u64,
    /// `pool_connections`: every host as seen from every identity.
    pub pool_connections: u64,
    /// `pool_maxsize` of the workers of this library, each of which has a session of its own.
    pub pool_maxsize: u64,
    /// `pool_maxsize` of one session that all threads share, as people do with requests.
    pub pool_maxsize_shared: u64,
}

impl PoolSizes {
    pub(super) fn new(capacity: &Capacity, workers: u64) -> Self {
        Self {
            workers,
            pool_connections: capacity.hosts.saturating_mul(capacity.identities),
            pool_maxsize: 1,
            pool_maxsize_shared: capacity.per_host.map_or(workers, |most| most.min(workers)),
        }
    }
}
