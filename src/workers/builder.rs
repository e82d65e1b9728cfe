//! The settings of a pool, checked before a thread is started.

use super::WorkerPool;
use super::dispatch::{Core, Plan, Rule};
use super::limits::Limits;
use super::scheduler::Scheduler;
use super::stop::{Control, Hook, StopReason};
use super::task::Finished;
use super::worker::MakeContext;
use crate::error::{Error, ErrorKind};
use crate::message::Response;
use crate::policy::{BlockPage, Concurrency, Package, SlowLane};
use crate::session::{Refusals, SessionBuilder, SharedLimiter};
use crate::time::{Clock, SystemClock};
use std::fmt;
use std::sync::Arc;

/// More threads than this are a mistake rather than a wish.
const MOST_WORKERS: usize = 10_000;

/// A permit is a slot of a channel that is laid out in advance, 16 bytes each.
const MOST_PERMITS: usize = 10_000_000;

/// Below this a TLS handshake or a decoder may not fit.
const LEAST_STACK: usize = 64 * 1024;

/// Builds a [`WorkerPool`].
#[derive(Clone)]
#[must_use]
pub struct WorkerPoolBuilder {
    session: SessionBuilder,
    workers: Option<usize>,
    concurrency: Concurrency,
    limits: Limits,
    permits: Option<usize>,
    refusals: Refusals,
    stack_bytes: usize,
    name: String,
    stop_on: Vec<ErrorKind>,
    stop_when: Option<Arc<dyn Rule<Finished>>>,
    on_abort: Option<Arc<dyn Fn() + Send + Sync>>,
    clock: Arc<dyn Clock>,
}

impl WorkerPoolBuilder {
    pub(crate) fn new(session: SessionBuilder) -> Self {
        Self {
            session,
            workers: None,
            concurrency: Concurrency::Fixed,
            limits: Limits::default(),
            permits: None,
            refusals: Refusals::default(),
            stack_bytes: if cfg!(debug_assertions) { 512 * 1024 } else { 256 * 1024 },
            name: "longhaul".to_owned(),
            stop_on: vec![ErrorKind::ProxyAuth, ErrorKind::ExitLeak],
            stop_when: None,
            on_abort: None,
            clock: Arc::new(SystemClock),
        }
    }

    /// How many threads, and so how many attempts at once; with
    /// [`Concurrency::Adaptive`], how many at most.
    ///
    /// # Defaults
    /// 8; with adaptive concurrency 1000, which is what an ordinary proxy package allows
    /// ([`Package::USUAL`]).
    pub fn workers(mut self, workers: usize) -> Self {
        self.workers = Some(workers);
        self
    }

    /// Whether all workers work from the beginning on, or as many as the other side bears.
    ///
    /// Adaptive, a worker's thread and session are made when they are first needed. After a
    /// decrease those that are too many rest and close their connections, and lose the cookies of
    /// their sessions.
    ///
    /// # Defaults
    /// [`Concurrency::Fixed`].
    ///
    /// # Examples
    /// ```no_run
    /// use longhaul::policy::Concurrency;
    /// use longhaul::{Session, WorkerPool};
    ///
    /// # fn main() -> Result<(), longhaul::Error> {
    /// let pool = WorkerPool::builder(Session::builder())
    ///     .concurrency(Concurrency::Adaptive)
    ///     .workers(200)
    ///     .build()?;
    /// for done in pool.run((0..10_000).map(|n| format!("https://example.com/{n}"))) {
    ///     println!("{} {}", done.url, done.result.is_ok());
    /// }
    /// println!("{} at once were borne", pool.stats().most_concurrency);
    /// # Ok(())
    /// # }
    /// ```
    pub fn concurrency(mut self, concurrency: Concurrency) -> Self {
        self.concurrency = concurrency;
        self
    }

    /// At most so many attempts at once to one host. Others go on meanwhile.
    ///
    /// A redirect to another host counts there too. Where there is no room the URL waits for it,
    /// without a worker.
    ///
    /// # Defaults
    /// Unlimited.
    pub fn per_host(mut self, attempts: usize) -> Self {
        self.limits.per_host = Some(attempts);
        self
    }

    /// At most so many attempts per second over all hosts: first ones, retries, the hops of
    /// redirects, answers to challenges, and the exit checks of a [`Batch`](crate::Batch).
    ///
    /// Attempts are spaced evenly; [`rate_burst`](Self::rate_burst) allows several at once. A hop
    /// for which there is no slot waits for one, without a worker.
    ///
    /// # Defaults
    /// Unlimited.
    pub fn rate(mut self, per_second: f64) -> Self {
        self.limits.rate = Some(per_second);
        self
    }

    /// How many attempts of [`rate`](Self::rate) may be made at once after a while in which fewer
    /// were made; in any stretch of time there are no more than the rate and this number together.
    ///
    /// # Defaults
    /// 1, which is perfectly even; with 200 a second or more what falls into 10 ms, since timers
    /// are too coarse for single attempts then.
    pub fn rate_burst(mut self, attempts: u32) -> Self {
        self.limits.burst = Some(attempts);
        self
    }

    /// At most so many attempts per second to one host, counted as for [`rate`](Self::rate). Others
    /// go on meanwhile.
    ///
    /// # Defaults
    /// Unlimited.
    pub fn host_rate(mut self, per_second: f64) -> Self {
        self.limits.host_rate = Some(per_second);
        self
    }

    /// How many attempts of [`host_rate`](Self::host_rate) may be made at once to one host; else as
    /// [`rate_burst`](Self::rate_burst).
    ///
    /// # Defaults
    /// 1; with 200 a second or more what falls into 10 ms.
    pub fn host_rate_burst(mut self, attempts: u32) -> Self {
        self.limits.host_burst = Some(attempts);
        self
    }

    /// How many jobs of one run are held at most between the pulling of their input and the taking
    /// of their result.
    ///
    /// This bounds the memory of a run over any number of URLs. Jobs that wait hold permits too,
    /// so with few permits some dozens of URLs that were told to wait leave nothing for those that
    /// need not: keep it well above the workers.
    ///
    /// # Defaults
    /// 16 for each worker, 1024 at least.
    pub fn permits(mut self, jobs: usize) -> Self {
        self.permits = Some(jobs);
        self
    }

    /// What becomes of a URL that is refused (403, or a page of [`block_page`](Self::block_page)):
    /// it waits, without a worker, and is sent again later, slower and through another proxy where
    /// there is one. Its host is left alone for a while by all workers.
    ///
    /// The wait counts against the deadline of the URL. A URL that finds no turn before it, or
    /// within 10 minutes, or is refused again, ends with the response that refused. So does one that
    /// is refused while half of the [`permits`](Self::permits) wait in slow lanes: hosts that refuse
    /// everything leave the other half to the others. Methods that are not retried and bodies that
    /// can be read once do not enter.
    ///
    /// # Defaults
    /// None: a refusal is a result like any other, and what to do about it is up to the caller. A
    /// [`Batch`](crate::Batch) has one.
    pub fn slow_lane(mut self, lane: impl Into<Option<SlowLane>>) -> Self {
        self.refusals.lane = lane.into();
        self
    }

    pub(crate) fn refusals(mut self, refusals: Refusals) -> Self {
        self.refusals = refusals;
        self
    }

    /// What else is a refusal, by status, field or text of the body.
    ///
    /// # Defaults
    /// Nothing: 403 alone.
    pub fn block_page(mut self, page: BlockPage) -> Self {
        self.refusals.page = page;
        self
    }

    /// What else is a refusal, by a rule that is shown each response before it is handed out, and
    /// says in a few words what it found: they stand in the history.
    ///
    /// It runs on the thread of a worker. In stream mode the body is empty to it. A rule that
    /// panics ends the URL as [`Internal`](ErrorKind::Internal).
    ///
    /// # Defaults
    /// None.
    pub fn block_when(
        mut self,
        rule: impl Fn(&Response) -> Option<String> + Send + Sync + 'static,
    ) -> Self {
        self.refusals.rule = Some(Arc::new(rule));
        self
    }

    /// The stack of each thread.
    ///
    /// # Units
    /// Bytes. It is address space; memory is used as far as the stack is touched.
    ///
    /// # Defaults
    /// 256 KiB; 512 KiB where longhaul is built with debug assertions.
    pub fn stack_bytes(mut self, bytes: usize) -> Self {
        self.stack_bytes = bytes;
        self
    }

    /// What the names of the threads begin with: `longhaul-worker-07`.
    ///
    /// # Defaults
    /// `longhaul`.
    pub fn name(mut self, prefix: impl Into<String>) -> Self {
        self.name = prefix.into();
        self
    }

    /// The kinds of error that close the pool as soon as one URL ends with them: what a retry does
    /// not mend and every further request makes worse.
    ///
    /// # Defaults
    /// [`ProxyAuth`](ErrorKind::ProxyAuth), with which a URL ends once no other credential is
    /// left, and [`ExitLeak`](ErrorKind::ExitLeak). An empty list never stops.
    pub fn stop_on(mut self, kinds: impl IntoIterator<Item = ErrorKind>) -> Self {
        self.stop_on = kinds.into_iter().collect();
        self
    }

    /// A rule that is shown each result before it is handed out, and closes the pool where it gives
    /// a reason. It is asked after [`stop_on`](Self::stop_on), on the thread of a worker.
    ///
    /// A rule that panics gives no reason; the panic is logged and the result stays what it is.
    ///
    /// # Defaults
    /// None.
    pub fn stop_when(
        mut self,
        rule: impl Fn(&Finished) -> Option<StopReason> + Send + Sync + 'static,
    ) -> Self {
        self.stop_when = Some(Arc::new(rule));
        self
    }

    /// What [`Stopper::abort`](super::Stopper::abort) calls, once, after it has cut the sockets of
    /// what flies: for a transport of one's own.
    ///
    /// # Defaults
    /// Nothing more.
    pub fn on_abort(mut self, cut: impl Fn() + Send + Sync + 'static) -> Self {
        self.on_abort = Some(Arc::new(cut));
        self
    }

    /// The clock that waits are measured by.
    ///
    /// # Defaults
    /// [`SystemClock`].
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = clock;
        self
    }

    /// Checks the settings and starts the threads.
    ///
    /// # Errors
    /// `Config` for a setting that cannot work, whatever building a session from the recipe gives,
    /// and `Io` where the system gives no further thread.
    pub fn build(self) -> Result<WorkerPool, Error> {
        let checked = self.checked()?;
        let scheduler = checked.scheduler();
        let Checked { session, workers, permits, rule, limits, .. } = checked;
        let Self { stack_bytes, name, on_abort, clock, .. } = self;
        if stack_bytes < LEAST_STACK {
            return Err(Error::config(format!(
                "stack_bytes is {stack_bytes}, which is too small for TLS; give at least {LEAST_STACK}"
            )));
        }
        if name.contains('\0') {
            return Err(Error::config("the name of the pool holds a NUL; leave it out"));
        }
        let cutter = session.cutter();
        // A recipe that cannot work fails here rather than in every job.
        session.build().map(drop)?;
        let core = Core::start(Plan {
            scheduler,
            stack_bytes,
            name,
            clock,
            context: MakeContext(Box::new(move || session.build())),
            rule,
            control: Control::new(Some(Hook(Arc::new(move || {
                cutter.cut();
                if let Some(on_abort) = &on_abort {
                    on_abort();
                }
            })))),
        })?;
        Ok(WorkerPool::new(core, workers, permits, limits))
    }

    /// The recipe of its sessions, as it was given.
    pub(super) fn recipe(&self) -> &SessionBuilder {
        &self.session
    }

    /// Its limits, as they were given.
    pub(super) fn limits(&self) -> Limits {
        self.limits
    }

    /// What decides how a run goes, whether it is real or simulated.
    pub(super) fn checked(&self) -> Result<Checked, Error> {
        let workers = self.workers.unwrap_or(match self.concurrency {
            Concurrency::Fixed => 8,
            Concurrency::Adaptive => Package::USUAL as usize,
        });
        check_count("workers", workers, MOST_WORKERS)?;
        let permits = self.permits.unwrap_or_else(|| workers.saturating_mul(16).max(1024));
        check_count("permits", permits, MOST_PERMITS)?;
        let limits = self.limits.counted()?;
        if let Some(lane) = self.refusals.lane {
            lane.validate()?;
        }
        let rule = rule(self.stop_on.clone(), self.stop_when.clone());
        Ok(Checked {
            session: self
                .session
                .clone()
                .for_runs(workers)
                .heeding(Refusals {
                    // The rest stays for URLs that need not wait, whatever a host refuses.
                    most_waiting: Some((permits / 2).max(1)),
                    waiting: Arc::default(),
                    ..self.refusals.clone()
                })
                .limited(limits.clone()),
            workers,
            permits,
            concurrency: self.concurrency,
            limits,
            rule,
        })
    }
}

/// The settings that a pool and its simulation have in common.
pub(super) struct Checked {
    pub(super) session: SessionBuilder,
    pub(super) workers: usize,
    pub(super) permits: usize,
    pub(super) concurrency: Concurrency,
    pub(super) limits: Option<SharedLimiter>,
    pub(super) rule: Option<Arc<dyn Rule<Finished>>>,
}

impl Checked {
    /// A scheduler under these settings.
    pub(super) fn scheduler<J>(&self) -> Scheduler<J> {
        let scheduler = Scheduler::new(self.workers, self.limits.clone());
        match self.concurrency {
            Concurrency::Fixed => scheduler,
            Concurrency::Adaptive => scheduler.adaptive(),
        }
    }
}

pub(super) fn check_count(what: &str, given: usize, most: usize) -> Result<(), Error> {
    if (1..=most).contains(&given) {
        return Ok(());
    }
    Err(Error::config(format!("{what} is {given}; give a number from 1 to {most}")))
}

/// The rule of the kinds, then the user's.
fn rule(
    stop_on: Vec<ErrorKind>,
    stop_when: Option<Arc<dyn Rule<Finished>>>,
) -> Option<Arc<dyn Rule<Finished>>> {
    if stop_on.is_empty() && stop_when.is_none() {
        return None;
    }
    Some(Arc::new(move |finished: &Finished| {
        if let Err(error) = &finished.result
            && stop_on.contains(&error.kind())
        {
            return Some(StopReason::failure(error));
        }
        stop_when.as_ref().and_then(|rule| rule(finished))
    }))
}

impl fmt::Debug for WorkerPoolBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WorkerPoolBuilder")
            .field("workers", &self.workers)
            .field("concurrency", &self.concurrency)
            .field("limits", &self.limits)
            .field("permits", &self.permits)
            .field("refusals", &self.refusals)
            .field("stack_bytes", &self.stack_bytes)
            .field("name", &self.name)
            .field("stop_on", &self.stop_on)
            .finish_non_exhaustive()
    }
}
