//! A night in a fraction of a second: the real flight code, the real policies and the real
//! scheduler, under a clock that jumps.
//!
//! What a policy costs is decided by how its parts play together: a budget of retries, the waits
//! between them, a limit per host, a proxy that is down and a server that asks for quiet. A
//! formula answers for one URL; for a run of forty thousand there is nothing like running it. So
//! a [`Simulation`] takes the settings of a [`WorkerPool`](crate::WorkerPool) as they are, and
//! replaces three things only: sockets by servers that fail as a [`FaultModel`] says, threads by
//! a queue of events, and the clock of the machine by one that jumps from event to event. What
//! remains is what runs for real: [`Flight`](crate::session::Flight) with its retries and
//! redirects, the health of the proxies, the hosts that cool down, the limits and the heap of
//! waits.
//!
//! # Time
//! An attempt occupies its worker for as long as it takes; a wait occupies nobody. The order of
//! events is exact: a step begins when a worker takes it, and what it shows of a host or a proxy
//! is known to others when it has happened and not before. What the machine itself needs (threads
//! that are woken, bytes that are parsed) takes no time here, so this is the run that the network
//! allows, not the one that the processor allows.
//!
//! # What it leaves out
//! Connections: each attempt is as long as its answer takes, kept-alive or not. Redirects and
//! bodies of any size. The environment, so proxies must be those of the recipe.

mod faults;
mod latency;
mod night;
mod origin;
mod prediction;
mod report;

pub use faults::{FaultModel, Overload, Persistence, Trouble};
pub use latency::LatencyModel;
pub use report::{Bucket, Ending, Report, Waited};

use super::builder::{Checked, WorkerPoolBuilder, check_count};
use super::task::Finished;
use crate::error::{Error, WaitReason};
use std::time::Duration;

/// More URLs than this are a mistake rather than a night.
const MOST_URLS: usize = 10_000_000;

/// The narrowest bucket of a timeline.
const LEAST_BUCKET: Duration = Duration::from_secs(1);

/// A run of a pool that is not made, but calculated.
///
/// # Defaults
/// 1000 URLs on one host, no faults, seed 0, a timeline by the minute, broken off after a week.
///
/// # Examples
/// ```
/// use longhaul::workers::simulation::{FaultModel, Simulation, Trouble};
/// use longhaul::{Session, WorkerPool, secs};
///
/// let pool = WorkerPool::builder(Session::builder()).workers(24);
/// let faults = FaultModel::none().latency(secs(0.5)).share(Trouble::Status(503), 0.02);
/// let report = Simulation::of(pool).urls(960).hosts(20).faults(faults).seed(1).run()?;
/// assert_eq!(report.classes["ok"], 960);
/// // 960 URLs in 24 rows of 40, half a second each, and a few asked twice.
/// assert!(report.run_time >= secs(20.0) && report.amplification < 1.05);
/// # Ok::<(), longhaul::Error>(())
/// ```
#[derive(Debug, Clone)]
#[must_use]
pub struct Simulation {
    pool: WorkerPoolBuilder,
    urls: usize,
    hosts: usize,
    faults: FaultModel,
    seed: u64,
    bucket: Duration,
    horizon: Duration,
}

impl Simulation {
    /// A run of a pool with these settings.
    ///
    /// Its recipe keeps everything but the transport, the clock and the seed; nothing that the
    /// night shows of proxies and hosts finds its way back. Stop rules are asked as in a real run.
    pub fn of(pool: WorkerPoolBuilder) -> Self {
        Self {
            pool,
            urls: 1000,
            hosts: 1,
            faults: FaultModel::none(),
            seed: 0,
            bucket: Duration::from_secs(60),
            horizon: Duration::from_secs(7 * 86_400),
        }
    }

    /// How many URLs there are, all with the method GET. Default: 1000.
    pub fn urls(mut self, urls: usize) -> Self {
        self.urls = urls;
        self
    }

    /// On how many hosts they are, in turn. Default: 1.
    pub fn hosts(mut self, hosts: usize) -> Self {
        self.hosts = hosts;
        self
    }

    /// What goes wrong. Default: nothing.
    pub fn faults(mut self, faults: FaultModel) -> Self {
        self.faults = faults;
        self
    }

    /// What the night depends on: the same seed is the same night, to the last digit. Default: 0.
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// The width of a bucket of the timeline, a second at least. Default: a minute.
    pub fn bucket(mut self, width: Duration) -> Self {
        self.bucket = width;
        self
    }

    /// After how much simulated time the night is broken off, as a run that will not end.
    /// Default: a week.
    pub fn horizon(mut self, horizon: Duration) -> Self {
        self.horizon = horizon;
        self
    }

    /// Checks the settings and calculates the night.
    ///
    /// # Errors
    /// `Config` for a setting that cannot work, here, in the fault model, in the pool and in its
    /// recipe.
    pub fn run(&self) -> Result<Report, Error> {
        self.run_watched(|_| {})
    }

    /// As [`run`](Self::run), with a look at everything that happens, in the order of time.
    ///
    /// # Errors
    /// As [`run`](Self::run).
    pub fn run_watched(&self, mut watch: impl FnMut(Moment<'_>)) -> Result<Report, Error> {
        let checked = self.checked()?;
        night::run(self, checked, &mut watch)
    }

    fn checked(&self) -> Result<Checked, Error> {
        let checked = self.pool.checked()?;
        check_count("urls", self.urls, MOST_URLS)?;
        check_count("hosts", self.hosts, MOST_URLS)?;
        if self.bucket < LEAST_BUCKET {
            return Err(Error::config(format!(
                "a timeline in buckets of {:?} is too fine; give a second or more",
                self.bucket
            )));
        }
        self.faults.validate()?;
        self.check_silences(&checked.session)?;
        let proxies = checked.session.proxy_stats().len();
        if self.faults.dead_proxies > proxies {
            return Err(Error::config(format!(
                "{} proxies are to be dead and the pool has {proxies}; give no more than there are",
                self.faults.dead_proxies
            )));
        }
        Ok(checked)
    }

    /// A silence ends with a timeout, or not at all.
    fn check_silences(&self, session: &crate::session::SessionBuilder) -> Result<(), Error> {
        let timeouts = session.settings().timeouts;
        if timeouts.deadline().is_some() {
            return Ok(());
        }
        let silent = |trouble| matches!(trouble, Trouble::Silence | Trouble::Stall);
        let (missing, what) = match (timeouts.connect(), timeouts.read()) {
            (None, _) if self.faults.has(|trouble| trouble == Trouble::ConnectTimeout) => {
                ("connect", "a server that does not answer the connect")
            }
            (None, _) if self.faults.dead_proxies > 0 => ("connect", "a dead proxy"),
            (_, None) if self.faults.has(silent) => ("read", "a silent server"),
            _ => return Ok(()),
        };
        Err(Error::config(format!(
            "{what} holds a worker for ever; set a {missing} timeout, or a deadline"
        )))
    }
}

/// Something that happened in a simulated night.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct Moment<'a> {
    /// When, from the beginning of the night on.
    pub at: Duration,
    /// To which URL, by its number from 0; it is on host number `url % hosts`.
    pub url: u64,
    /// What.
    pub what: Happening<'a>,
}

/// What happened to a URL.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub enum Happening<'a> {
    /// A worker began an attempt. It ends with the next [`Waits`](Self::Waits) or
    /// [`Ended`](Self::Ended) of this URL.
    Began {
        /// Which worker, from 0.
        worker: usize,
    },
    /// It has to wait.
    Waits {
        /// Until then, from the beginning of the night on.
        until: Duration,
        /// Why.
        reason: WaitReason,
        /// Whether an attempt was made before. If not, a worker only found that it has to wait.
        attempted: bool,
    },
    /// It ended.
    Ended(&'a Finished),
}
