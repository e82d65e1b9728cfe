//! What a run can be given as its input, and what it makes of it.
//!
//! A [`Source`] is a description: it can be gone through before the run, and only the results say
//! which of its lines are still to be done. Every other [`JobSource`] is taken as it is.

use super::done_before::DoneBefore;
use super::job_source::JobSource;
use super::journal::Done;
use super::line_jobs::LineJobs;
use super::source::{Checked, Known, Source};
use crate::error::Error;
use std::fmt;
use std::sync::Arc;

/// The input of a run: a [`Source`] of lines, or any [`JobSource`].
#[must_use]
pub struct Input(Of);

enum Of {
    Lines(Source),
    Jobs(Arc<dyn JobSource>),
}

/// How many jobs are claimed at once at most. They are soon fed, and withheld from others until then.
const AT_ONCE: usize = 32;

/// Says whether the run is over.
pub(super) type IsOver = Arc<dyn Fn() -> bool + Send + Sync>;

/// An input that a run takes its jobs from.
pub(super) struct Jobs {
    pub(super) source: Arc<dyn JobSource>,
    /// What is left out of it; `None` where the source does so itself.
    pub(super) done: Option<DoneBefore>,
    pub(super) is_over: IsOver,
    /// How many are claimed at once.
    pub(super) at_once: usize,
}

impl Jobs {
    /// Claims no more at once than the run holds anyway.
    pub(super) fn within(mut self, permits: usize) -> Self {
        self.at_once = self.at_once.min(permits).max(1);
        self
    }
}

impl Input {
    /// Whether there is nothing to take from.
    pub(super) fn is_empty(&self) -> bool {
        matches!(&self.0, Of::Lines(source) if source.is_empty())
    }

    /// Goes through what can be read twice.
    pub(super) fn survey(&self, done: &Done) -> Result<(Checked, Known), Error> {
        match &self.0 {
            Of::Lines(source) => source.survey(done),
            Of::Jobs(_) => Ok((Checked::default(), Known::of(done.clone()))),
        }
    }

    /// The jobs, after a [`survey`](Self::survey).
    pub(super) fn jobs(self, known: Known, is_over: IsOver) -> Jobs {
        match self.0 {
            Of::Jobs(source) => {
                let done = Some(known.done).filter(|done| !done.is_empty());
                Jobs { source, done: done.map(DoneBefore::new), is_over, at_once: AT_ONCE }
            }
            Of::Lines(source) => {
                let may_block = source.may_block();
                let asked = Arc::clone(&is_over);
                let items = source.surveyed(known).until(move || asked());
                let source = Arc::new(LineJobs::new(items, may_block));
                Jobs { source, done: None, is_over, at_once: AT_ONCE }
            }
        }
    }
}

impl Default for Input {
    fn default() -> Self {
        Source::new().into()
    }
}

impl From<Source> for Input {
    fn from(source: Source) -> Self {
        Self(Of::Lines(source))
    }
}

impl<S: JobSource + 'static> From<S> for Input {
    fn from(source: S) -> Self {
        Self(Of::Jobs(Arc::new(source)))
    }
}

impl fmt::Debug for Input {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Of::Lines(source) => source.fmt(f),
            Of::Jobs(_) => f.write_str("Jobs"),
        }
    }
}
