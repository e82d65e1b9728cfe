//! Timeouts and the deadline, as types that cannot hold nonsense.

use crate::error::Error;
use std::time::Duration;

/// The connect and read timeouts and the deadline of one URL.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timeouts {
    connect: Option<Duration>,
    read: Option<Duration>,
    deadline: Option<Duration>,
}

impl Timeouts {
    /// The connect budget; `None` is none.
    pub fn connect(&self) -> Option<Duration> {
        self.connect
    }
    /// The longest silence; `None` is unlimited.
    pub fn read(&self) -> Option<Duration> {
        self.read
    }
    /// The longest time for the whole URL; `None` is unlimited.
    pub fn deadline(&self) -> Option<Duration> {
        self.deadline
    }
    // Also: Default (5 s, 25 s, none), `new()`, `with_connect/with_read/with_deadline(impl Into<Option<Duration>>)
    // -> Result<Self, Error>`, TryFrom/From<Duration>, From<(Duration, Duration)>; zero is an error of
    // `validate(&self) -> Result<(), Error>` that builders call.
}

/// A duration as people write it: `5`, `5s`, `0.25`, `250ms`, `1m30s`, `2h`; `none` is `None`.
///
/// # Errors
/// `Config` for anything else, for zero, negative and non-finite values.
pub fn parse_duration(text: &str) -> Result<Option<Duration>, Error> {
    let _ = text;
    unimplemented!()
}
