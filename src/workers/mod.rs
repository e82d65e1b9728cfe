//! Threads that step flights: a work queue, a heap of waits, and nobody who sleeps.

use crate::error::{Attempt, Error};
use crate::message::{IntoRequest, Request, Response};
use crate::session::SessionBuilder;
use std::time::Duration;

/// One finished job.
#[derive(Debug)]
#[non_exhaustive]
pub struct Finished {
    /// Its place in the input, from 0.
    pub index: u64,
    /// The caller's name for it.
    pub id: Option<String>,
    /// The URL as it was given.
    pub url: String,
    /// The method as it was given.
    pub method: http::Method,
    /// What came of it.
    pub result: Result<Response, Error>,
    /// From its first attempt to its end.
    pub elapsed: Duration,
}

/// Threads with a session each.
#[derive(Debug)]
pub struct WorkerPool {
    _todo: (),
}

/// Live numbers of a pool.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct PoolStats {
    /// Jobs fed so far.
    pub fed: u64,
    /// Jobs ended.
    pub finished: u64,
    /// Being stepped right now.
    pub in_flight: u64,
    /// In the heap.
    pub waiting: u64,
    /// In the queue.
    pub ready: u64,
    /// Attempts so far.
    pub attempts: u64,
}

/// Builds a [`WorkerPool`].
#[derive(Debug, Clone)]
#[must_use]
pub struct WorkerPoolBuilder {
    _todo: (),
}

/// Stops a pool from another thread or a signal.
#[derive(Debug, Clone)]
pub struct Stopper {
    _todo: (),
}

impl Stopper {
    /// Take no more; what flies finishes its attempt, what waits ends as `Cancelled`.
    pub fn close(&self) {
        unimplemented!()
    }
    /// End everything now.
    pub fn abort(&self) {
        unimplemented!()
    }
}

impl WorkerPool {
    /// A pool of sessions made from this recipe.
    pub fn builder(session: SessionBuilder) -> WorkerPoolBuilder {
        let _ = session;
        unimplemented!()
    }
    /// Feeds `jobs` and yields each result as it is complete.
    pub fn run<'a, I>(&'a self, jobs: I) -> impl Iterator<Item = Finished> + 'a
    where
        I: IntoIterator + 'a,
        I::Item: IntoRequest,
    {
        let _ = jobs;
        std::iter::empty()
    }
    /// Live numbers.
    pub fn stats(&self) -> PoolStats {
        unimplemented!()
    }
    /// A handle that stops the pool.
    pub fn stopper(&self) -> Stopper {
        unimplemented!()
    }
}

#[allow(unused)]
fn _uses(_: Attempt, _: Request) {}
