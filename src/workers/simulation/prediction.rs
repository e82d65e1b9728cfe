//! What arithmetic says of the same night.
//!
//! [`Capacity`] needs the share of URLs that fail and what each of them costs. The share is that of
//! the fault model; the cost is found by flying one URL of each trouble, alone and through the
//! same policy, and counting its attempts, the time in them and the waits between them.

use super::{FaultModel, Happening, Simulation};
use crate::error::Error;
use crate::policy::{Capacity, FailureCost, Latency, Share, Work};
use crate::workers::WorkerPoolBuilder;
use std::time::Duration;

impl Simulation {
    /// The calculation for the same URLs, faults, latency and limits, to hold the night against.
    ///
    /// Arithmetic knows means: the latency counts by its mean, and neither dead proxies nor hosts
    /// that cool down are in it. Where the night takes much longer than
    /// [`Capacity::run`] says, they are the reason, or its last few URLs.
    ///
    /// # Errors
    /// As [`run`](Self::run), and `Config` where nothing takes any time.
    pub fn capacity(&self) -> Result<Capacity, Error> {
        self.checked()?;
        let mut builder = Capacity::builder(Work::Urls(self.urls as u64)).hosts(self.hosts as u64);
        let mean = self.faults.latency.mean();
        if !mean.is_zero() {
            builder = builder.latency(Latency::fixed(mean)?);
        }
        let limits = self.pool.limits();
        if let Some(attempts) = limits.per_host {
            builder = builder.per_host(attempts as u64);
        }
        if let Some(rate) = limits.rate {
            builder = builder.rate(rate);
        }
        if let Some(rate) = limits.host_rate {
            builder = builder.per_host_rate(rate);
        }
        if self.faults.failure_rate() > 0.0 {
            let rate = Share::new(self.faults.failure_rate().min(1.0))?;
            builder = builder.failure_rate(rate).failure_cost(self.failure_cost()?);
        }
        builder.build()
    }

    /// The mean cost of a URL in trouble.
    fn failure_cost(&self) -> Result<FailureCost, Error> {
        let rate = self.faults.failure_rate();
        let mut kinds = Vec::new();
        let mut rest = 1.0;
        let mut shares = self.faults.shares().iter().filter(|(_, share)| *share > 0.0).peekable();
        while let Some((trouble, share)) = shares.next() {
            // Rounded as they are, the shares need not make a whole; the last one sees to it.
            let of_failures = match shares.peek() {
                Some(_) => Share::new((share / rate).min(1.0))?,
                None => Share::new(rest)?,
            };
            rest = (rest - of_failures.as_f64()).clamp(0.0, 1.0);
            let faults = self.faults.only(*trouble).latency(self.faults.latency.mean());
            kinds.push((of_failures, self.cost_of(faults.dead_proxies(0))?));
        }
        FailureCost::expected(&kinds)
    }

    /// What one URL costs that meets these faults.
    fn cost_of(&self, faults: FaultModel) -> Result<FailureCost, Error> {
        let session = self.pool.recipe().clone();
        let alone = Self::of(WorkerPoolBuilder::new(session)).urls(1).faults(faults);
        let (mut attempts, mut held, mut waited) = (0, Duration::ZERO, Duration::ZERO);
        alone.seed(self.seed).run_watched(|moment| {
            let Happening::Ended(done) = moment.what else { return };
            attempts = u32::try_from(done.attempts().len()).unwrap_or(u32::MAX);
            for attempt in done.attempts() {
                held += attempt.elapsed;
                waited += attempt.wait.map_or(Duration::ZERO, |(wait, _)| wait);
            }
        })?;
        FailureCost::new(attempts, held, waited)
    }
}
