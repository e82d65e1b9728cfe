//! Any iterator as the input of a run.
//!
//! A list in memory, the rows of a query, a channel that another thread fills: one item is pulled
//! for each permit, on a thread of the run's own, so the iterator may be endless and may block.

use super::item::{Item, Place};
use super::job_source::{Claimed, JobSource, LeaseId, Lost, Supply};
use crate::error::Error;
use crate::message::IntoRequest;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

/// The items of an iterator as jobs.
///
/// Each item is a job of its own: one that comes twice is done twice. With
/// [`Existing::Resume`](super::Existing::Resume), items that have a record already are left out, as
/// many of the same as there are records.
///
/// The run waits for an iterator that blocks, also when it is over. One that may be silent for long
/// (a channel) should end by itself then.
///
/// # Examples
/// ```
/// use longhaul::batch::{Batch, IterSource};
///
/// # fn example(session: longhaul::session::SessionBuilder) -> Result<(), longhaul::Error> {
/// let pages = (1..=1000).map(|page| format!("https://example.com/list?page={page}"));
/// let batch = Batch::builder(session).source(IterSource::new(pages)).build()?;
/// # drop(batch); Ok(()) }
/// ```
pub struct IterSource<I>(Mutex<State<I>>);

struct State<I> {
    items: I,
    name: Arc<str>,
    number: u64,
}

impl<I> IterSource<I>
where
    I: Iterator + Send,
    I::Item: IntoJob,
{
    /// What comes out of `items`.
    pub fn new(items: impl IntoIterator<IntoIter = I>) -> Self {
        let (items, name) = (items.into_iter(), "item".into());
        Self(Mutex::new(State { items, name, number: 0 }))
    }
}

impl<I> JobSource for IterSource<I>
where
    I: Iterator + Send,
    I::Item: IntoJob,
{
    /// One at a time: how long the next one would take is not known.
    fn claim(
        &self,
        _: usize,
        jobs: &mut Vec<Claimed>,
        _: &dyn Fn() -> bool,
    ) -> Result<Supply, Error> {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(item) = state.items.next() else { return Ok(Supply::Ended) };
        state.number += 1;
        jobs.push(item.into_job(Place { source: Arc::clone(&state.name), line: state.number }));
        Ok(Supply::More)
    }

    fn extend(&self, _: &[LeaseId]) -> Result<Lost, Error> {
        Ok(Lost::none())
    }

    fn acknowledge(&self, _: &[LeaseId]) -> Result<Lost, Error> {
        Ok(Lost::none())
    }

    fn give_back(&self, _: &[LeaseId]) -> Result<(), Error> {
        Ok(())
    }

    fn dead_letter(&self, _: &LeaseId, _: &str) -> Result<Lost, Error> {
        Ok(Lost::none())
    }
}

impl<I> fmt::Debug for IterSource<I> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("IterSource").finish_non_exhaustive()
    }
}

/// What an [`IterSource`] can be made of.
pub trait IntoJob {
    /// The job of the item at this place.
    fn into_job(self, place: Place) -> Claimed;
}

/// A URL or request; an error in its place is a job that describes no request.
impl<R: IntoRequest> IntoJob for R {
    fn into_job(self, place: Place) -> Claimed {
        match self.into_request() {
            Ok(request) => Item::new(request, place).into(),
            Err(error) => Claimed::bad(place.to_string(), error),
        }
    }
}

/// With its `meta`, and the place that it brings.
impl IntoJob for Item {
    fn into_job(self, _: Place) -> Claimed {
        self.into()
    }
}

impl IntoJob for Claimed {
    fn into_job(self, _: Place) -> Claimed {
        self
    }
}
