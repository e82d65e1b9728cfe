//! Feeding from one thread and taking from another.
//!
//! [`WorkerPool::run`](super::WorkerPool::run) pulls its input on the caller's thread, between two
//! results. Where the input blocks (a pipe, a queue, a database), feeding belongs on a thread of
//! its own: [`WorkerPool::channel`](super::WorkerPool::channel) gives the two ends.

use super::lane::{Input, Output, Polled, Refusal};
use super::stage::{Source, Stage};
use super::stop::{StopReason, Stopper};
use super::task::{Finished, FlightTask};
use crate::error::Error;
use crate::message::Request;
use crossbeam_channel::Receiver;
use std::error;
use std::fmt;
use std::time::Duration;

/// Puts requests into a pool; the results come out of the [`Results`] it was made with.
///
/// The n-th request that is taken has the index n, from 0. Dropping it says that there is no
/// further input: the results end after the last of those that were fed.
#[derive(Debug)]
pub struct Feeder {
    input: Input<FlightTask>,
    stopper: Stopper,
    next: u64,
}

impl Feeder {
    pub(crate) fn new(input: Input<FlightTask>, stopper: Stopper) -> Self {
        Self { input, stopper, next: 0 }
    }

    /// Feeds a request, waiting while all permits are taken.
    ///
    /// # Errors
    /// The request comes back where the pool is being stopped, or where nobody takes the results
    /// any more.
    pub fn feed(&mut self, request: Request) -> Result<(), Returned> {
        match self.input.reserve() {
            Ok(()) => {
                self.feed_reserved(request);
                Ok(())
            }
            Err(refusal) => Err(self.returned(request, refusal)),
        }
    }

    /// Feeds a request if a permit is free.
    ///
    /// # Errors
    /// The request comes back; [`Returned::is_full`] tells a pool that is busy from one that takes
    /// nothing any more.
    pub fn try_feed(&mut self, request: Request) -> Result<(), Returned> {
        match self.input.try_reserve() {
            Ok(()) => {
                self.feed_reserved(request);
                Ok(())
            }
            Err(refusal) => Err(self.returned(request, refusal)),
        }
    }

    /// Says that there is no further input; the same as dropping the feeder.
    pub fn done(self) {}

    /// Whether nothing will be taken any more, since the pool is being stopped.
    pub fn is_stopped(&self) -> bool {
        self.stopper.reason().is_some()
    }

    /// Takes a permit ahead of the input, so that nothing is pulled that cannot be fed.
    pub(crate) fn try_reserve(&self) -> bool {
        self.input.try_reserve().is_ok()
    }

    /// As [`try_reserve`](Self::try_reserve), waiting for a permit.
    pub(crate) fn reserve(&self) -> bool {
        self.input.reserve().is_ok()
    }

    /// Feeds on the permit taken before.
    pub(crate) fn feed_reserved(&mut self, request: Request) {
        let index = self.next_index();
        self.input.feed(FlightTask::new(request, index));
    }

    /// Sends the end of bad input to the results, on the permit taken before.
    pub(crate) fn reject_reserved(&mut self, error: Error) {
        let index = self.next_index();
        self.input.answer(Finished::of_bad_input(index, error));
    }

    fn next_index(&mut self) -> u64 {
        let index = self.next;
        self.next += 1;
        index
    }

    fn returned(&self, request: Request, refusal: Refusal) -> Returned {
        let why = match refusal {
            Refusal::Full => Why::Full,
            Refusal::Abandoned => Why::Abandoned,
            Refusal::Stopped => Why::Stopped(self.stopper.reason().unwrap_or(StopReason::Closed)),
        };
        Returned(Box::new((request, why)))
    }
}

/// A request that was not taken, given back.
pub struct Returned(Box<(Request, Why)>);

#[derive(Debug)]
enum Why {
    Full,
    Stopped(StopReason),
    Abandoned,
}

impl Returned {
    /// The request.
    pub fn into_request(self) -> Request {
        self.0.0
    }

    /// Whether all permits are taken, so that a later try may succeed.
    pub fn is_full(&self) -> bool {
        matches!(self.0.1, Why::Full)
    }

    /// Why the pool was stopped, where that is why.
    pub fn stop_reason(&self) -> Option<&StopReason> {
        match &self.0.1 {
            Why::Stopped(reason) => Some(reason),
            Why::Full | Why::Abandoned => None,
        }
    }
}

impl fmt::Display for Returned {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0.1 {
            Why::Full => f.write_str("not taken, since all permits of the pool are in use"),
            Why::Stopped(reason) => write!(f, "not taken, since {reason}"),
            Why::Abandoned => f.write_str("not taken, since nobody takes the results"),
        }
    }
}

impl fmt::Debug for Returned {
    /// Without the request, whose fields may hold credentials.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Returned").field("why", &self.0.1).finish_non_exhaustive()
    }
}

impl error::Error for Returned {}

/// The results of what a [`Feeder`] fed, in the order of their completion.
///
/// As an iterator it waits for each, and ends when the feeder is gone and every job it fed has
/// ended. Dropping it gives up all jobs that have not: what flies finishes its attempt, what waits
/// is dropped, and the feeder gets its requests back.
#[derive(Debug)]
pub struct Results {
    output: Output<FlightTask>,
    finished: bool,
}

impl Results {
    pub(crate) fn new(output: Output<FlightTask>) -> Self {
        Self { output, finished: false }
    }

    /// The next result if one is there; after `None`, [`is_finished`](Self::is_finished) tells
    /// whether there will be another.
    pub fn try_next(&mut self) -> Option<Finished> {
        let polled = self.output.poll();
        self.settle(polled)
    }

    /// The next result, waiting for at most `timeout` of real time; after `None`,
    /// [`is_finished`](Self::is_finished) tells whether there will be another.
    pub fn next_timeout(&mut self, timeout: Duration) -> Option<Finished> {
        let polled = self.output.wait_timeout(timeout);
        self.settle(polled)
    }

    /// Whether the end was met: the feeder is gone and every result was taken.
    pub fn is_finished(&self) -> bool {
        self.finished
    }

    /// Works on each result on rayon's global pool; see [`Run::then`](super::Run::then).
    pub fn then<T, F>(self, work: F) -> Stage<'static, T>
    where
        F: Fn(Finished) -> T + Send + Sync + 'static,
        T: Send + 'static,
    {
        Stage::new(Box::new(self), work)
    }

    /// The next result, waiting for it, without giving its permit back.
    pub(crate) fn wait_holding(&mut self) -> Option<Finished> {
        let waited = self.output.wait();
        self.finished |= waited.is_none();
        waited
    }

    /// The next result if one is there, without giving its permit back.
    pub(crate) fn poll_holding(&mut self) -> Polled<Finished> {
        let polled = self.output.poll();
        self.finished |= matches!(polled, Polled::Finished);
        polled
    }

    /// Gives the permit of one result back.
    pub(crate) fn give_back(&mut self) {
        self.output.give_back();
    }

    fn settle(&mut self, polled: Polled<Finished>) -> Option<Finished> {
        match polled {
            Polled::Ready(finished) => {
                self.give_back();
                Some(finished)
            }
            Polled::Pending => None,
            Polled::Finished => {
                self.finished = true;
                None
            }
        }
    }
}

impl Iterator for Results {
    type Item = Finished;

    fn next(&mut self) -> Option<Finished> {
        let finished = self.wait_holding()?;
        self.give_back();
        Some(finished)
    }
}

impl Source for Results {
    fn poll(&mut self) -> Polled<Finished> {
        let polled = self.poll_holding();
        if let Polled::Ready(_) = polled {
            self.give_back();
        }
        polled
    }

    fn receiver(&self) -> &Receiver<Finished> {
        self.output.receiver()
    }
}
