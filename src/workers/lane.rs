//! A lane: one stream of jobs into a pool and its results out of it, with a bound on both.
//!
//! A permit is taken when a job is fed and given back when its result is taken, so that a lane
//! holds at most so many jobs, in whatever state they are. Each lane has permits of its own: two
//! runs on one pool cannot starve each other, which one budget for both would allow as soon as
//! the results of the first are left lying.
//!
//! Permits are a bounded channel: to take one is to put a token in, to give one back is to take a
//! token out, and when the taker of results is gone, the channel says so to a feeder that waits.

use super::dispatch::{Event, Reply, Shared, Task};
use super::scheduler::{JobId, LaneId};
use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, TryRecvError, TrySendError};
use crossbeam_channel::{bounded, select, unbounded};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// The feeding end. Results end once it is dropped and each fed job has answered.
pub(crate) struct Input<T: Task> {
    shared: Arc<Shared<T>>,
    lane: LaneId,
    results: Sender<T::Output>,
    permits: Sender<()>,
}

/// The taking end. Dropped, it gives up every job of its lane.
pub(crate) struct Output<T: Task> {
    shared: Arc<Shared<T>>,
    lane: LaneId,
    results: Receiver<T::Output>,
    permits: Receiver<()>,
}

/// Why a permit is not to be had.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// All are taken.
    Full,
    /// The pool is being stopped.
    Stopped,
    /// Nobody takes the results.
    Abandoned,
}

/// What a look at the results found.
#[derive(Debug)]
pub(crate) enum Polled<O> {
    Ready(O),
    Pending,
    Finished,
}

/// A lane that holds at most `permits` jobs.
pub(crate) fn lane<T: Task>(shared: &Arc<Shared<T>>, permits: usize) -> (Input<T>, Output<T>) {
    let lane = shared.new_lane();
    // Unbounded by itself, bounded by the permits.
    let (to_results, results) = unbounded();
    let (take_permit, permits) = bounded(permits);
    let input =
        Input { shared: Arc::clone(shared), lane, results: to_results, permits: take_permit };
    let output = Output { shared: Arc::clone(shared), lane, results, permits };
    (input, output)
}

impl<T: Task> Input<T> {
    /// Takes a permit, waiting for one.
    pub(crate) fn reserve(&self) -> Result<(), Refusal> {
        if self.shared.control.is_stopping() {
            return Err(Refusal::Stopped);
        }
        select! {
            send(self.permits, ()) -> sent => sent.map_err(|_| Refusal::Abandoned),
            recv(self.shared.control.stopped()) -> _ => Err(Refusal::Stopped),
        }
    }

    /// Takes a permit if one is there.
    pub(crate) fn try_reserve(&self) -> Result<(), Refusal> {
        if self.shared.control.is_stopping() {
            return Err(Refusal::Stopped);
        }
        self.permits.try_send(()).map_err(|error| match error {
            TrySendError::Full(()) => Refusal::Full,
            TrySendError::Disconnected(()) => Refusal::Abandoned,
        })
    }

    /// Feeds a task on the permit that was taken before.
    pub(crate) fn feed(&self, task: T) -> JobId {
        self.shared.feed(self.lane, task, Reply { to: self.results.clone(), permit: None })
    }

    /// Hands a result out that needs no worker, on the permit that was taken before.
    pub(crate) fn answer(&self, output: T::Output) {
        self.shared.counters.count_unstepped();
        // An owner who is gone wants no answer.
        let _ = self.results.send(output);
    }
}

impl<T: Task> Output<T> {
    /// Waits for the next result; `None` when there will be no further one. Its permit stays
    /// taken until [`give_back`](Self::give_back).
    pub(crate) fn wait(&self) -> Option<T::Output> {
        self.results.recv().ok()
    }

    /// As [`wait`](Self::wait), for at most so long.
    pub(crate) fn wait_timeout(&self, timeout: Duration) -> Polled<T::Output> {
        match self.results.recv_timeout(timeout) {
            Ok(output) => Polled::Ready(output),
            Err(RecvTimeoutError::Timeout) => Polled::Pending,
            Err(RecvTimeoutError::Disconnected) => Polled::Finished,
        }
    }

    /// As [`wait`](Self::wait), without waiting.
    pub(crate) fn poll(&self) -> Polled<T::Output> {
        match self.results.try_recv() {
            Ok(output) => Polled::Ready(output),
            Err(TryRecvError::Empty) => Polled::Pending,
            Err(TryRecvError::Disconnected) => Polled::Finished,
        }
    }

    /// Gives one permit back.
    pub(crate) fn give_back(&self) {
        let _ = self.permits.try_recv();
    }

    /// To wait on together with other channels.
    pub(crate) fn receiver(&self) -> &Receiver<T::Output> {
        &self.results
    }
}

impl<T: Task> Drop for Output<T> {
    fn drop(&mut self) {
        self.shared.tell(Event::CancelLane(self.lane));
    }
}

impl<T: Task> fmt::Debug for Input<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Input").field("permits_taken", &self.permits.len()).finish_non_exhaustive()
    }
}

impl<T: Task> fmt::Debug for Output<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Output").field("ready", &self.results.len()).finish_non_exhaustive()
    }
}
