//! How long a run takes, how many workers it needs, and what stands in the way.
//!
//! One rule answers all of it. Every constraint by itself gives a least time: the work divided by
//! the workers, the same by the connections of a package or of a host, the attempts by a rate, the
//! bytes by the line, and the longest row of pages that have to come one after another. The run
//! takes the largest of these times, and the constraint that gives it is the one to talk about;
//! all others could be better without any effect. Asked the other way round (how many workers for
//! that time?) it is the same rule solved for the workers.
//!
//! The work is Little's law: a URL holds a worker for so long, so that many a second need so many
//! workers. What makes runs late is nearly always the few URLs that fail, since a failure lasts a
//! hundred times as long as an answer; so the bill of the failures is told separately, and the
//! waits in it are told from the attempts: a worker of this library is free while a URL waits, a
//! thread that sleeps through a backoff is not ([`Waits`]).
//!
//! All arithmetic is on whole nanoseconds and billionths, rounded once and up. It is the arithmetic
//! of means: what the last few URLs add at the end is bounded by [`Estimate::latest`].

mod estimate;
mod failure;
mod latency;
mod package;
mod share;

pub use estimate::{Estimate, FailureBill, LimitedBy, PoolSizes};
pub use failure::{FailureCost, Waits};
pub use latency::Latency;
pub use package::Package;
pub use share::Share;

use super::{Retry, Timeouts, WorstCase};
use crate::error::Error;
use estimate::Limit;
use std::time::Duration;

/// In how many parts shares and counts of attempts are told.
pub(super) const BILLION: u128 = 1_000_000_000;

/// In how many parts rates per second are told.
const MILLION: u128 = 1_000_000;

/// What is to be fetched.
#[non_exhaustive]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Work {
    /// So many URLs, none of which has to wait for another.
    Urls(u64),
    /// So many targets, each with pages that come one after another: the link to the next stands
    /// in the one before.
    Targets {
        /// How many.
        targets: u64,
        /// Pages of each.
        depth: u64,
    },
}

impl Work {
    /// How many URLs that is.
    pub const fn urls(self) -> u64 {
        match self {
            Self::Urls(urls) => urls,
            Self::Targets { targets, depth } => targets.saturating_mul(depth),
        }
    }

    /// How many pages come one after another.
    const fn depth(self) -> u64 {
        match self {
            Self::Urls(_) => 1,
            Self::Targets { depth, .. } => depth,
        }
    }
}

/// The calculator of a run: workers, run time and rate, any of them from the others.
///
/// # Examples
/// ```
/// use longhaul::policy::{Capacity, FailureCost, Latency, LimitedBy, Package, Share, Work, WorstCase};
/// use longhaul::{Retry, Timeouts, secs};
///
/// # fn main() -> Result<(), longhaul::Error> {
/// let worst = WorstCase::of(&Retry::long_run(), &Timeouts::from((secs(5.0), secs(25.0))));
/// let capacity = Capacity::builder(Work::Urls(40_000))
///     .latency(Latency::fixed(secs(1.2))?)
///     .failure_rate("2 %".parse()?)
///     .failure_cost(FailureCost::worst(&worst)?)
///     .package(Package::new(1000)?.bindings(2)?)
///     .build()?;
///
/// let run = capacity.run(24)?;
/// assert_eq!(run.limited_by(), LimitedBy::Workers);
/// // 39 200 answers of 1.2 s and 800 failures that hold a worker for 150 s.
/// assert_eq!(run.run_time(), secs((39_200.0 * 1.2 + 800.0 * 150.0) / 24.0));
/// // A thread that sleeps through the waits is held for 159 s.
/// assert_eq!(run.failures_if_waits_hold().run_time(), secs(5300.0));
///
/// assert_eq!(capacity.workers_for(secs(3600.0))?.workers(), 47);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Capacity {
    work: Work,
    latency: Option<Latency>,
    failures: Share,
    cost: FailureCost,
    waits: Waits,
    page_bytes: u64,
    bandwidth: Option<u64>,
    package: Option<u64>,
    hosts: u64,
    identities: u64,
    per_host: Option<u64>,
    /// Millionths of attempts a second.
    rate: Option<u128>,
    per_host_rate: Option<u128>,
}

/// What a [`Capacity`] is told; see its methods for the defaults.
#[derive(Debug, Clone, PartialEq)]
#[must_use]
pub struct CapacityBuilder {
    work: Work,
    latency: Option<Latency>,
    failures: Share,
    cost: Option<FailureCost>,
    waits: Waits,
    page_bytes: u64,
    bandwidth: Option<u64>,
    packages: Vec<Package>,
    hosts: u64,
    identities: u64,
    per_host: Option<u64>,
    rate: Option<f64>,
    per_host_rate: Option<f64>,
}

impl CapacityBuilder {
    /// How long a URL that is answered takes, from the request to the last byte. Default: no time,
    /// so that the figures are those of the failures alone.
    pub fn latency(mut self, latency: Latency) -> Self {
        self.latency = Some(latency);
        self
    }

    /// The share of URLs that fail for good. Default: none.
    pub fn failure_rate(mut self, share: Share) -> Self {
        self.failures = share;
        self
    }

    /// What each of them costs. Default: the worst case of [`Retry::long_run`] with the default
    /// timeouts, 159 s.
    pub fn failure_cost(mut self, cost: FailureCost) -> Self {
        self.cost = Some(cost);
        self
    }

    /// Whether a worker is held while a URL waits for its next attempt. Default:
    /// [`Waits::Parked`], as the workers of this library.
    pub fn waits(mut self, waits: Waits) -> Self {
        self.waits = waits;
        self
    }

    /// Bytes on the wire of a page. Default: none, so that bandwidth is no matter.
    pub fn page_bytes(mut self, bytes: u64) -> Self {
        self.page_bytes = bytes;
        self
    }

    /// What the line carries, in bytes per second. Default: no limit.
    pub fn bandwidth(mut self, bytes_per_second: u64) -> Self {
        self.bandwidth = Some(bytes_per_second);
        self
    }

    /// A proxy package with its ceiling of parallel connections. Of several the one that allows
    /// most counts: they do not add up. Default: no ceiling.
    pub fn package(mut self, package: Package) -> Self {
        self.packages.push(package);
        self
    }

    /// How many hosts the URLs are spread over, evenly. Default: 1.
    pub fn hosts(mut self, hosts: u64) -> Self {
        self.hosts = hosts;
        self
    }

    /// How many identities (proxies, or direct) the connections are spread over. Default: 1.
    pub fn identities(mut self, identities: u64) -> Self {
        self.identities = identities;
        self
    }

    /// The target's ceiling: parallel connections that one host stands. Default: none.
    pub fn per_host(mut self, connections: u64) -> Self {
        self.per_host = Some(connections);
        self
    }

    /// Attempts per second over all, retries included; six decimals count. Default: no limit.
    pub fn rate(mut self, per_second: f64) -> Self {
        self.rate = Some(per_second);
        self
    }

    /// Attempts per second and host, retries included; six decimals count. Default: no limit.
    pub fn per_host_rate(mut self, per_second: f64) -> Self {
        self.per_host_rate = Some(per_second);
        self
    }

    /// Checks the values.
    ///
    /// # Errors
    /// `Config`, naming the field, for a count, a size or a rate that is zero or no number, and
    /// where nothing takes any time.
    pub fn build(self) -> Result<Capacity, Error> {
        let Self {
            work,
            latency,
            failures,
            cost,
            waits,
            page_bytes,
            bandwidth,
            packages,
            hosts,
            identities,
            per_host,
            rate,
            per_host_rate,
        } = self;
        match work {
            Work::Urls(urls) => {
                at_least_one("URLs", urls)?;
            }
            Work::Targets { targets, depth } => {
                at_least_one("targets", targets)?;
                at_least_one("pages of a target", depth)?;
            }
        }
        at_least_one("hosts", hosts)?;
        at_least_one("identities", identities)?;
        per_host
            .map(|connections| at_least_one("connections per host", connections))
            .transpose()?;
        bandwidth.map(|bytes| at_least_one("bytes per second", bytes)).transpose()?;
        let cost = match cost {
            Some(cost) => cost,
            None => FailureCost::worst(&WorstCase::of(&Retry::long_run(), &Timeouts::default()))?,
        };
        let capacity = Capacity {
            work,
            latency,
            failures,
            cost,
            waits,
            page_bytes,
            bandwidth,
            package: packages.iter().map(Package::parallel).max(),
            hosts,
            identities,
            per_host,
            rate: rate.map(|rate| millionths("rate", rate)).transpose()?,
            per_host_rate: per_host_rate
                .map(|rate| millionths("rate per host", rate))
                .transpose()?,
        };
        if capacity.work() == 0 {
            return Err(Error::config(
                "nothing takes any time: give a latency, or a failure rate with the cost of a failure",
            ));
        }
        Ok(capacity)
    }
}

impl Capacity {
    /// A calculation for this work.
    pub fn builder(work: Work) -> CapacityBuilder {
        CapacityBuilder {
            work,
            latency: None,
            failures: Share::NONE,
            cost: None,
            waits: Waits::default(),
            page_bytes: 0,
            bandwidth: None,
            packages: Vec::new(),
            hosts: 1,
            identities: 1,
            per_host: None,
            rate: None,
            per_host_rate: None,
        }
    }

    /// The run with so many workers.
    ///
    /// # Errors
    /// `Config` for no worker.
    pub fn run(&self, workers: u64) -> Result<Estimate, Error> {
        at_least_one("workers", workers)?;
        Ok(Estimate::new(self, workers))
    }

    /// The run with the fewest workers that are done in this time; where other constraints do not
    /// let it be reached, with the fewest that come as near as they let.
    /// [`Estimate::run_time`] says how near, [`Estimate::limited_by`] because of what.
    ///
    /// # Errors
    /// `Config` for no time.
    pub fn workers_for(&self, time: Duration) -> Result<Estimate, Error> {
        if time.is_zero() {
            return Err(Error::config("the run time is zero: give a positive duration"));
        }
        let time = time.as_nanos().max(self.least_time().0);
        Ok(Estimate::new(self, self.workers_within(time)))
    }

    /// As [`workers_for`](Self::workers_for), for a number of URLs per second; six decimals count.
    ///
    /// # Errors
    /// `Config` for a rate that is not positive.
    pub fn workers_for_rate(&self, urls_per_second: f64) -> Result<Estimate, Error> {
        let rate = millionths("rate of URLs", urls_per_second)?;
        // Rounded down, since a shorter time is what keeps the rate.
        let nanos = u128::from(self.work.urls()).saturating_mul(BILLION * MILLION) / rate;
        self.workers_for(super::worst_case::duration(nanos.max(1)))
    }

    /// Little's law: how many workers are busy, on the average, at so many URLs per second.
    ///
    /// # Errors
    /// `Config` for a rate that is not positive.
    pub fn in_flight(&self, urls_per_second: f64) -> Result<f64, Error> {
        millionths("rate of URLs", urls_per_second)?;
        Ok(urls_per_second * self.worker_seconds_per_url())
    }

    /// Little's law the other way round: how many URLs per second so many busy workers make,
    /// whatever else may limit them.
    ///
    /// # Errors
    /// `Config` for no worker.
    pub fn throughput(&self, workers: u64) -> Result<f64, Error> {
        at_least_one("workers", workers)?;
        Ok(workers as f64 / self.worker_seconds_per_url())
    }

    /// The most workers that make any difference: beyond them something else limits the run.
    pub fn most_useful_workers(&self) -> u64 {
        self.workers_within(self.least_time().0)
    }

    /// The ceiling of parallel connections and who sets it; `None` where nobody does.
    pub fn ceiling(&self) -> Option<(u64, LimitedBy)> {
        let package = self.package.map(|most| (most, LimitedBy::Package));
        let hosts = self.per_host.map(|most| (most.saturating_mul(self.hosts), LimitedBy::PerHost));
        package.into_iter().chain(hosts).min_by_key(|(most, _)| *most)
    }

    /// What to set: workers, and the sizes of the connection pools.
    ///
    /// # Errors
    /// `Config` for no worker.
    pub fn pool_sizes(&self, workers: u64) -> Result<PoolSizes, Error> {
        let useful = at_least_one("workers", workers)?.min(self.most_useful_workers());
        Ok(PoolSizes::new(self, useful))
    }

    fn worker_seconds_per_url(&self) -> f64 {
        self.work_per_url() as f64 / (BILLION * BILLION) as f64
    }

    /// What a URL holds a worker for, on the average, in billionths of nanoseconds.
    fn work_per_url(&self) -> u128 {
        let good = self.mean().saturating_mul(self.failures.rest());
        good.saturating_add(self.cost.held(self.waits).saturating_mul(self.failures.parts()))
    }

    fn mean(&self) -> u128 {
        self.latency.map_or(0, |latency| latency.mean().as_nanos())
    }

    /// How long a worker is held by all URLs together, in billionths of nanoseconds.
    fn work(&self) -> u128 {
        self.work_per_url().saturating_mul(self.work.urls().into())
    }

    /// How long so many would need for all the work, if nothing else limited them.
    fn time_with(&self, parallel: u64) -> u128 {
        self.work().div_ceil(BILLION.saturating_mul(parallel.max(1).into()))
    }

    /// The fewest workers for whom the work itself takes no longer than this.
    fn workers_within(&self, nanos: u128) -> u64 {
        let workers = self.work().div_ceil(BILLION.saturating_mul(nanos.max(1)));
        u64::try_from(workers).unwrap_or(u64::MAX).max(1)
    }

    /// The least time with any number of workers, and what gives it.
    fn least_time(&self) -> (u128, LimitedBy) {
        let mut limit = Limit::default();
        if let Some(most) = self.package {
            limit.at_least(self.time_with(most), LimitedBy::Package);
        }
        if let Some(most) = self.per_host {
            let most = most.saturating_mul(self.hosts);
            limit.at_least(self.time_with(most), LimitedBy::PerHost);
        }
        if let Some(rate) = self.rate {
            limit.at_least(self.attempts_at(rate), LimitedBy::Rate);
        }
        if let Some(rate) = self.per_host_rate {
            let rate = rate.saturating_mul(self.hosts.into());
            limit.at_least(self.attempts_at(rate), LimitedBy::PerHostRate);
        }
        if let Some(bandwidth) = self.bandwidth {
            let pages = u128::from(self.work.urls()).saturating_mul(self.failures.rest());
            let bytes = pages.saturating_mul(self.page_bytes.into());
            limit.at_least(bytes.div_ceil(bandwidth.into()), LimitedBy::Bandwidth);
        }
        limit.at_least(self.longest_row(), LimitedBy::Row);
        limit.longest()
    }

    /// How long all attempts need at so many millionths a second.
    fn attempts_at(&self, rate: u128) -> u128 {
        let failed = self.failures.parts().saturating_mul(self.cost.attempt_parts()) / BILLION;
        let per_url = self.failures.rest().saturating_add(failed);
        let attempts = per_url.saturating_mul(self.work.urls().into());
        attempts.saturating_mul(MILLION).div_ceil(rate.max(1))
    }

    /// How long pages take that come one after another; with a failure among them, if there is
    /// one at all.
    fn longest_row(&self) -> u128 {
        let depth = u128::from(self.work.depth());
        let (mean, failure) = (self.mean(), self.cost.total().as_nanos());
        let good = mean.saturating_mul(depth);
        let failures = self.failures.parts().saturating_mul(self.work.urls().into());
        if failures < BILLION {
            return good;
        }
        good.max(mean.saturating_mul(depth - 1).saturating_add(failure))
    }
}

fn at_least_one(name: &str, value: u64) -> Result<u64, Error> {
    match value {
        0 => Err(Error::config(format!("the number of {name} is zero: give at least 1"))),
        _ => Ok(value),
    }
}

/// A rate in whole millionths a second.
fn millionths(name: &str, per_second: f64) -> Result<u128, Error> {
    let parts = (per_second * MILLION as f64).round();
    if !parts.is_finite() || parts < 1.0 || parts > u64::MAX as f64 {
        return Err(Error::config(format!(
            "the {name} is {per_second} a second: give a positive number, at least 0.000001"
        )));
    }
    Ok(parts as u128)
}

#[cfg(test)]
mod tests;
