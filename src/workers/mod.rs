//! Threads that step flights: a work queue, a heap of waits, and nobody who sleeps.
//!
//! A pool of threads that each send one request and sleep through its backoff stands still as soon
//! as a site is in trouble: fifty URLs that have to wait are fifty workers that wait. Here a worker
//! makes one attempt and is free. What has to wait (a backoff, a Retry-After, a host that cools
//! down, a refusal, a rate, an empty proxy pool) is an entry in a heap, and costs no thread and no socket.
//!
//! ```text
//! run / channel / submit ─► permits ─► scheduler ─► worker: one step ─► result ─► caller
//!                                        ▲   heap        │ wait until T
//!                                        └───────────────┘
//! ```
//!
//! What holds, whatever happens:
//! - Each job that is fed ends exactly once, also after a panic, a stop, or a dropped pool.
//! - Memory is bounded by the permits: a job takes one when it is fed and gives it back when its
//!   result is taken.
//! - Due jobs go before fresh ones, and hosts take turns; a host at its limit blocks nobody.
//! - Results come in the order of completion; `index` is the place in the input.
//!
//! The decisions are in the scheduler, which knows no thread and no clock; the threads carry
//! messages to and from it.

mod builder;
mod crew;
mod delay;
mod dispatch;
mod feeder;
mod lane;
mod limits;
#[cfg(test)]
pub(crate) mod lockstep;
mod ready;
mod run;
mod scheduler;
pub mod simulation;
mod stage;
mod stats;
mod stop;
mod task;
mod ticket;
mod worker;

pub use builder::WorkerPoolBuilder;
pub use feeder::{Feeder, Results, Returned};
pub use run::{Ordered, Run};
pub use stage::Stage;
pub(crate) use stats::ByReason;
pub use stats::PoolStats;
pub use stop::{StopReason, Stopper};
pub use task::Finished;
pub use ticket::Ticket;

use crate::message::IntoRequest;
use crate::session::{SessionBuilder, SharedLimiter};
use crossbeam_channel::{Receiver, Sender, bounded, select};
use dispatch::{Core, Failure, Reply};
use http::Method;
use scheduler::LaneId;
use std::panic::resume_unwind;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use task::FlightTask;

/// Threads with a session each, and a heap for what has to wait.
///
/// The pool is `Sync`: several threads may run and submit on it at once. It ends with its drop,
/// which closes it (see [`Stopper::close`]) and waits for the attempts that fly; to cut them too,
/// call [`Stopper::abort`] before.
///
/// # Examples
/// ```no_run
/// use longhaul::{Session, WorkerPool};
///
/// # fn main() -> Result<(), longhaul::Error> {
/// let pool = WorkerPool::builder(Session::builder()).workers(24).per_host(4).build()?;
/// for done in pool.run(["https://example.com/a", "https://example.com/b"]) {
///     match done.result {
///         Ok(response) => println!("{} {}", response.status(), done.url),
///         Err(error) => eprintln!("{error}"),
///     }
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct WorkerPool {
    core: Core<FlightTask>,
    permits: usize,
    workers: usize,
    limits: Option<SharedLimiter>,
    tickets: Tickets,
}

/// What the tickets of a pool have in common. Their permits end with the job: a ticket that nobody
/// waits for holds a result, but must not hold the next `submit`.
#[derive(Debug)]
struct Tickets {
    lane: LaneId,
    next: AtomicU64,
    take_permit: Sender<()>,
    permits: Receiver<()>,
}

impl WorkerPool {
    /// A pool whose workers make their sessions from this recipe.
    pub fn builder(session: SessionBuilder) -> WorkerPoolBuilder {
        WorkerPoolBuilder::new(session)
    }

    pub(crate) fn new(
        core: Core<FlightTask>,
        workers: usize,
        permits: usize,
        limits: Option<SharedLimiter>,
    ) -> Self {
        let (take_permit, given) = bounded(permits);
        let tickets = Tickets {
            lane: core.shared.new_lane(),
            next: AtomicU64::new(0),
            take_permit,
            permits: given,
        };
        Self { core, permits, workers, limits, tickets }
    }

    /// Feeds `jobs` and yields each result as it is complete.
    ///
    /// The input is pulled inside `next`, on the thread that takes the results, as far as permits
    /// are free; a result that is ready goes first. An input that blocks therefore holds results
    /// back while it does: for a pipe or a queue use [`run_scoped`](Self::run_scoped) or
    /// [`channel`](Self::channel), which pull on a thread of their own.
    ///
    /// After a stop, nothing more is pulled; every job that was pulled still yields its result.
    ///
    /// # Ordering
    /// By completion; [`Finished::index`] is the place in the input. Input that describes no
    /// request has its place too, and its error as the result.
    pub fn run<'a, I>(&'a self, jobs: I) -> Run<'a, I::IntoIter>
    where
        I: IntoIterator + 'a,
        I::Item: IntoRequest,
    {
        let (feeder, results) = self.channel();
        Run::new(jobs.into_iter(), feeder, results)
    }

    /// As [`run`](Self::run), in the order of the input.
    ///
    /// Results that are early keep their permits until their turn, so one URL that waits for long
    /// holds the run up once the permits are used up behind it.
    pub fn run_ordered<'a, I>(&'a self, jobs: I) -> Ordered<'a, I::IntoIter>
    where
        I: IntoIterator + 'a,
        I::Item: IntoRequest,
    {
        self.run(jobs).ordered()
    }

    /// Feeds `jobs` from a thread of its own while `take` takes the results on this one.
    ///
    /// For input that blocks. Where `take` returns before the end, feeding ends with the next
    /// item, and the call waits until the input has given that one. The same holds after a stop:
    /// an input that may block for long should end by itself then. A panic of the input goes on in
    /// the caller, after `take` has returned.
    pub fn run_scoped<I, R>(&self, jobs: I, take: impl FnOnce(Results) -> R) -> R
    where
        I: IntoIterator + Send,
        I::Item: IntoRequest,
    {
        let (mut feeder, results) = self.channel();
        thread::scope(|scope| {
            let feeding = scope.spawn(move || {
                let mut jobs = jobs.into_iter();
                // The permit first, so that nothing is pulled that cannot be fed.
                while feeder.reserve() {
                    match jobs.next().map(IntoRequest::into_request) {
                        Some(Ok(request)) => feeder.feed_reserved(request),
                        Some(Err(error)) => feeder.reject_reserved(error),
                        None => break,
                    }
                }
            });
            let taken = take(results);
            match feeding.join() {
                Ok(()) => taken,
                Err(panic) => resume_unwind(panic),
            }
        })
    }

    /// The two ends of a run, for feeding and taking on different threads.
    ///
    /// Each channel has permits of its own, so two of them cannot starve each other.
    ///
    /// # Examples
    /// ```no_run
    /// # use longhaul::{Request, WorkerPool};
    /// # fn example(pool: &WorkerPool, lines: impl Iterator<Item = String> + Send) {
    /// let (mut feeder, results) = pool.channel();
    /// std::thread::scope(|scope| {
    ///     scope.spawn(move || {
    ///         for line in lines {
    ///             if feeder.feed(Request::new(http::Method::GET, line)).is_err() {
    ///                 break;
    ///             }
    ///         }
    ///     });
    ///     for done in results {
    ///         println!("{} {}", done.index, done.url);
    ///     }
    /// });
    /// # }
    /// ```
    pub fn channel(&self) -> (Feeder, Results) {
        let (input, output) = lane::lane(&self.core.shared, self.permits);
        (Feeder::new(input, self.stopper()), Results::new(output))
    }

    /// Hands one request over and returns the right to its result.
    ///
    /// Waits while as many submitted requests as there are permits have not ended. Where the pool
    /// is being stopped, the result is [`Cancelled`](crate::ErrorKind::Cancelled).
    pub fn submit(&self, job: impl IntoRequest) -> Ticket {
        let index = self.tickets.next.fetch_add(1, Ordering::Relaxed);
        let (to_answer, answer) = bounded(1);
        let ticket = |job, url, method| Ticket { answer, job, index, url, method };
        let request = match job.into_request() {
            Ok(request) => request,
            Err(error) => {
                self.core.shared.counters.count_unstepped();
                let finished = Finished::of_bad_input(index, error);
                let url = finished.url.clone();
                let _ = to_answer.send(finished);
                return ticket(None, url, Method::GET);
            }
        };
        let (url, method) = (request.url.clone(), request.method.clone());
        if !self.reserve_ticket() {
            let failure = Failure::Stopped(self.core.shared.control.cause());
            let _ = to_answer.send(Finished::of_unfed(index, request, failure));
            return ticket(None, url, method);
        }
        let reply = Reply { to: to_answer, permit: Some(self.tickets.permits.clone()) };
        let task = FlightTask::new(request, index);
        let id = self.core.shared.feed(self.tickets.lane, task, reply);
        ticket(Some((id, Arc::clone(&self.core.shared))), url, method)
    }

    /// Live numbers, over everything that was run and submitted.
    pub fn stats(&self) -> PoolStats {
        self.core.shared.counters.snapshot()
    }

    /// A handle that stops the pool, from any thread.
    pub fn stopper(&self) -> Stopper {
        Stopper::new(Arc::clone(&self.core.shared))
    }

    /// Takes no more; see [`Stopper::close`].
    pub fn close(&self) {
        self.stopper().close();
    }

    /// Ends everything now; see [`Stopper::abort`].
    pub fn abort(&self) {
        self.stopper().abort();
    }

    /// Why the pool was stopped; `None` while it runs. It is there before the result that caused
    /// it can be taken.
    pub fn stop_reason(&self) -> Option<StopReason> {
        self.core.shared.control.reason()
    }

    /// How many worker threads there are at most: all of them from the beginning on, where
    /// [`concurrency`](WorkerPoolBuilder::concurrency) is fixed.
    pub fn workers(&self) -> usize {
        self.workers
    }

    /// The limits of its attempts, for what is sent beside it.
    pub(crate) fn limits(&self) -> Option<SharedLimiter> {
        self.limits.clone()
    }

    /// How many jobs of one run are held at once at most, in whatever state.
    pub fn permits(&self) -> usize {
        self.permits
    }

    fn reserve_ticket(&self) -> bool {
        let control = &self.core.shared.control;
        if control.is_stopping() {
            return false;
        }
        select! {
            send(self.tickets.take_permit, ()) -> sent => sent.is_ok(),
            recv(control.stopped()) -> _ => false,
        }
    }
}

#[cfg(test)]
#[path = "pool_tests.rs"]
mod tests;
