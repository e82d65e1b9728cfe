//! Lines as jobs: for them nobody has to be told anything.
//!
//! Files and lists are read in handfuls, so that the lock between reading and the rest is taken once
//! for many lines. What may block (a pipe, a terminal) gives a line at a time: the second line may
//! come an hour after the first.

use super::job_source::{Claimed, JobSource, LeaseId, Lost, Supply};
use super::source::{Entry, Items};
use crate::error::Error;
use std::fmt;
use std::sync::{Mutex, PoisonError};

/// The lines of a [`Source`](super::Source).
pub(super) struct LineJobs {
    items: Mutex<Items>,
    may_block: bool,
}

impl LineJobs {
    /// `may_block` says whether a line may have to be waited for.
    pub(super) fn new(items: Items, may_block: bool) -> Self {
        Self { items: Mutex::new(items), may_block }
    }
}

impl JobSource for LineJobs {
    /// Whether the run is over is asked by the items themselves, which may be reading right now.
    fn claim(
        &self,
        most: usize,
        jobs: &mut Vec<Claimed>,
        _: &dyn Fn() -> bool,
    ) -> Result<Supply, Error> {
        let mut items = self.items.lock().unwrap_or_else(PoisonError::into_inner);
        for _ in 0..if self.may_block { 1 } else { most } {
            match items.next() {
                None => return Ok(Supply::Ended),
                Some(Entry::Item(item)) => jobs.push(item.into()),
                Some(Entry::Bad { error, key, text, .. }) => {
                    jobs.push(Claimed::of_bad(error, key, text));
                }
                Some(Entry::Broken(error)) => return Err(error),
            }
        }
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

    fn repeated(&self) -> u64 {
        self.items.lock().unwrap_or_else(PoisonError::into_inner).skipped_repeated()
    }
}

impl fmt::Debug for LineJobs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LineJobs").field("may_block", &self.may_block).finish_non_exhaustive()
    }
}
