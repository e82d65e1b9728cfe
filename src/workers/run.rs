//! A run: an iterator of jobs becomes an iterator of results.
//!
//! The input is pulled on the caller's thread, inside `next`, so it needs neither `'static` nor
//! `Send`: lines of a borrowed string, a query over a local map. Feeding and taking happen on one
//! thread and cannot deadlock: a result that is ready is handed out before anything is pulled,
//! something is pulled only onto a free permit, and only when neither is possible does `next` wait
//! for a result, which then must come, since jobs hold all permits or the input has ended.

use super::WorkerPool;
use super::feeder::{Feeder, Results};
use super::lane::Polled;
use super::stage::{Source, Stage};
use super::task::Finished;
use crate::message::IntoRequest;
use crossbeam_channel::Receiver;
use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;

/// The results of a run, in the order of their completion; [`WorkerPool::run`] makes it.
///
/// Dropping it gives up what is not finished: what flies finishes its attempt unseen, what waits
/// is dropped, and the rest of the input is not pulled.
pub struct Run<'a, I> {
    input: Option<I>,
    feeder: Option<Feeder>,
    results: Results,
    pool: PhantomData<&'a WorkerPool>,
}

impl<'a, I> Run<'a, I>
where
    I: Iterator,
    I::Item: IntoRequest,
{
    pub(crate) fn new(input: I, feeder: Feeder, results: Results) -> Self {
        Self { input: Some(input), feeder: Some(feeder), results, pool: PhantomData }
    }

    /// Works on each result on rayon's global pool: parsing and whatever else is bound by the CPU,
    /// off the threads that wait for the network.
    ///
    /// Yields what `work` makes of each result, in the order of completion. Besides the permits of
    /// the run, at most two results per rayon thread are in work or worked on and not taken.
    ///
    /// # Errors
    /// An item is [`Internal`](crate::ErrorKind::Internal) where `work` panicked on it; the others
    /// go on.
    pub fn then<T, F>(self, work: F) -> Stage<'a, T>
    where
        I: 'a,
        F: Fn(Finished) -> T + Send + Sync + 'static,
        T: Send + 'static,
    {
        Stage::new(Box::new(self), work)
    }

    /// The results in the order of the input.
    pub(crate) fn ordered(self) -> Ordered<'a, I> {
        Ordered { run: self, early: BTreeMap::new(), next: 0 }
    }

    fn poll_holding(&mut self) -> Polled<Finished> {
        loop {
            match self.results.poll_holding() {
                Polled::Pending if self.pull() => {}
                polled => return polled,
            }
        }
    }

    fn wait_holding(&mut self) -> Option<Finished> {
        match self.poll_holding() {
            Polled::Ready(finished) => Some(finished),
            Polled::Pending => self.results.wait_holding(),
            Polled::Finished => None,
        }
    }

    /// Feeds one job, or learns that there is none any more; false where nothing can be done.
    fn pull(&mut self) -> bool {
        let (Some(input), Some(feeder)) = (&mut self.input, &mut self.feeder) else {
            return false;
        };
        if feeder.is_stopped() {
            // What was not pulled stays with its owner.
            self.end_input();
            return true;
        }
        if !feeder.try_reserve() {
            return false;
        }
        match input.next().map(IntoRequest::into_request) {
            // Where a stop came between, the job ends as cancelled: it was pulled, so it answers.
            Some(Ok(request)) => feeder.feed_reserved(request),
            Some(Err(error)) => feeder.reject_reserved(error),
            None => {
                self.results.give_back();
                self.end_input();
            }
        }
        true
    }

    fn end_input(&mut self) {
        self.input = None;
        self.feeder = None;
    }
}

impl<I> Iterator for Run<'_, I>
where
    I: Iterator,
    I::Item: IntoRequest,
{
    type Item = Finished;

    fn next(&mut self) -> Option<Finished> {
        let finished = self.wait_holding()?;
        self.results.give_back();
        Some(finished)
    }
}

impl<I> Source for Run<'_, I>
where
    I: Iterator,
    I::Item: IntoRequest,
{
    fn poll(&mut self) -> Polled<Finished> {
        let polled = self.poll_holding();
        if let Polled::Ready(_) = polled {
            self.results.give_back();
        }
        polled
    }

    fn receiver(&self) -> &Receiver<Finished> {
        Source::receiver(&self.results)
    }
}

impl<I> fmt::Debug for Run<'_, I> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Run").field("results", &self.results).finish_non_exhaustive()
    }
}

/// The results of a run in the order of its input; [`WorkerPool::run_ordered`] makes it.
///
/// A result that is early is kept together with its permit until its turn. So the memory stays
/// bounded, and one URL that waits for long holds the run up as soon as the permits are used up by
/// those behind it.
pub struct Ordered<'a, I> {
    run: Run<'a, I>,
    early: BTreeMap<u64, Finished>,
    next: u64,
}

impl<I> Iterator for Ordered<'_, I>
where
    I: Iterator,
    I::Item: IntoRequest,
{
    type Item = Finished;

    fn next(&mut self) -> Option<Finished> {
        loop {
            if let Some(finished) = self.early.remove(&self.next) {
                self.next += 1;
                self.run.results.give_back();
                return Some(finished);
            }
            let finished = self.run.wait_holding()?;
            self.early.insert(finished.index, finished);
        }
    }
}

impl<I> fmt::Debug for Ordered<'_, I> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ordered").field("early", &self.early.len()).finish_non_exhaustive()
    }
}
