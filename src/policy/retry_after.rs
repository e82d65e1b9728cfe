//! `Retry-After`: what a server asks for, and what to do when that is long.

use std::time::{Duration, SystemTime};

/// The parsing of `Retry-After` fields.
#[derive(Debug, Clone, Copy)]
pub struct RetryAfter;

impl RetryAfter {
    /// The wait that the fields ask for: the largest that parses, `None` where none does.
    ///
    /// `date` is the response's own `Date` field, against which a date is measured where it
    /// parses; else `wall`.
    pub fn parse<'a>(
        fields: impl IntoIterator<Item = &'a [u8]>,
        date: Option<&[u8]>,
        wall: SystemTime,
    ) -> Option<Duration> {
        let _ = (fields.into_iter().count(), date, wall);
        unimplemented!()
    }
}

/// What to do with a wait above `retry_after_max`.
#[allow(clippy::exhaustive_enums, reason = "the three answers there are")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LongWait {
    /// Wait `retry_after_max` (urllib3, and the default of a `Session`).
    Clamp,
    /// Wait as long as asked, up to this much (the default of the worker pool, 10 minutes).
    Park(Duration),
    /// Give up at once; the error carries the wanted wait.
    Fail,
}
