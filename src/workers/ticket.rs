//! One request handed to a pool, and its result to be waited for later.

use super::dispatch::{Event, Failure, Shared};
use super::scheduler::JobId;
use super::task::{Finished, FlightTask};
use crate::message::Request;
use crossbeam_channel::{Receiver, RecvTimeoutError, TryRecvError};
use http::Method;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// The right to the result of one request; [`WorkerPool::submit`](super::WorkerPool::submit)
/// makes it.
///
/// The result comes exactly once, also where the pool is stopped or dropped meanwhile. Dropping a
/// ticket does not cancel the request: it goes on, and its result is dropped.
pub struct Ticket {
    pub(crate) answer: Receiver<Finished>,
    pub(crate) job: Option<(JobId, Arc<Shared<FlightTask>>)>,
    pub(crate) index: u64,
    pub(crate) url: String,
    pub(crate) method: Method,
}

impl Ticket {
    /// Its number among the tickets of the pool, from 0; the `index` of its result.
    pub fn index(&self) -> u64 {
        self.index
    }

    /// Waits for the result.
    pub fn wait(self) -> Finished {
        match self.answer.recv() {
            Ok(finished) => finished,
            Err(_) => self.lost(),
        }
    }

    /// Waits for the result for at most `timeout` of real time.
    ///
    /// # Errors
    /// The ticket comes back where the result is not there yet; the request goes on.
    pub fn wait_timeout(self, timeout: Duration) -> Result<Finished, Self> {
        match self.answer.recv_timeout(timeout) {
            Ok(finished) => Ok(finished),
            Err(RecvTimeoutError::Timeout) => Err(self),
            Err(RecvTimeoutError::Disconnected) => Ok(self.lost()),
        }
    }

    /// The result if it is there.
    ///
    /// # Errors
    /// The ticket comes back where the result is not there yet.
    pub fn try_wait(self) -> Result<Finished, Self> {
        match self.answer.try_recv() {
            Ok(finished) => Ok(finished),
            Err(TryRecvError::Empty) => Err(self),
            Err(TryRecvError::Disconnected) => Ok(self.lost()),
        }
    }

    /// Whether [`wait`](Self::wait) would return at once.
    pub fn is_finished(&self) -> bool {
        !self.answer.is_empty()
    }

    /// Gives the request up: queued or waiting, it ends as
    /// [`Cancelled`](crate::ErrorKind::Cancelled) at once; in flight, it finishes its attempt, and
    /// that result counts if it is the last word. The ticket still has to be waited for.
    pub fn cancel(&self) {
        if let Some((id, shared)) = &self.job {
            shared.tell(Event::Cancel(*id));
        }
    }

    /// A job answers by type, so this is not reached; and if it were, it is an answer.
    fn lost(self) -> Finished {
        Finished::of_unfed(self.index, Request::new(self.method, self.url), Failure::Lost)
    }
}

impl fmt::Debug for Ticket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ticket")
            .field("index", &self.index)
            .field("finished", &self.is_finished())
            .finish_non_exhaustive()
    }
}
