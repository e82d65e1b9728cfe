//! Timeouts and the deadline, as types that cannot hold nonsense.
//!
//! Three clocks bound a URL, and each stops something the others do not. `connect` is the whole
//! way to a connection that can be used: name, every address, TCP, proxy, TLS. `read` is the
//! longest silence, so a page may take an hour as long as it moves. `deadline` is the wall clock
//! for everything, waits included. None of them is a float, so that NaN and negative numbers have
//! nowhere to go; zero is refused by [`Timeouts::validate`], which every builder calls, because a
//! tuple of durations cannot be refused while it is converted.

use crate::error::Error;
use std::time::Duration;

/// The connect and read timeouts and the deadline of one URL.
///
/// # Defaults
/// Connect 5 s, read 25 s, no deadline. DIFFERENCE(default-timeouts): requests has none at all and
/// waits for ever.
///
/// # Examples
/// ```
/// use longhaul::{Timeouts, secs};
///
/// let timeouts = Timeouts::from((secs(5.0), secs(25.0))).with_deadline(secs(120.0))?;
/// assert_eq!(timeouts.deadline(), Some(secs(120.0)));
/// assert!(Timeouts::new().with_read(secs(0.0)).is_err());
/// # Ok::<(), longhaul::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timeouts {
    connect: Option<Duration>,
    read: Option<Duration>,
    deadline: Option<Duration>,
}

impl Timeouts {
    /// The defaults.
    pub const fn new() -> Self {
        Self {
            connect: Some(Duration::from_secs(5)),
            read: Some(Duration::from_secs(25)),
            deadline: None,
        }
    }

    /// No limit at all: what requests does unless told otherwise.
    pub const fn unlimited() -> Self {
        Self { connect: None, read: None, deadline: None }
    }

    /// The budget for DNS, every address, TCP, proxy handshake and TLS together; `None` is no
    /// limit.
    ///
    /// # Errors
    /// `Config` for zero.
    pub fn with_connect(mut self, connect: impl Into<Option<Duration>>) -> Result<Self, Error> {
        self.connect = positive("connect timeout", connect.into())?;
        Ok(self)
    }

    /// The longest silence between two bytes of the response; `None` is no limit.
    ///
    /// # Errors
    /// `Config` for zero.
    pub fn with_read(mut self, read: impl Into<Option<Duration>>) -> Result<Self, Error> {
        self.read = positive("read timeout", read.into())?;
        Ok(self)
    }

    /// The longest time for the whole URL with its attempts, waits and redirects, from its first
    /// attempt on; `None` is no limit.
    ///
    /// # Errors
    /// `Config` for zero.
    pub fn with_deadline(mut self, deadline: impl Into<Option<Duration>>) -> Result<Self, Error> {
        self.deadline = positive("deadline", deadline.into())?;
        Ok(self)
    }

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

    /// Whether the values can be used; builders call it.
    ///
    /// # Errors
    /// `Config` where one of them is zero.
    pub fn validate(&self) -> Result<(), Error> {
        positive("connect timeout", self.connect)?;
        positive("read timeout", self.read)?;
        positive("deadline", self.deadline)?;
        Ok(())
    }
}

impl Default for Timeouts {
    fn default() -> Self {
        Self::new()
    }
}

impl From<Duration> for Timeouts {
    /// requests' `timeout=5`: connect and read alike.
    fn from(both: Duration) -> Self {
        Self::from((both, both))
    }
}

impl From<(Duration, Duration)> for Timeouts {
    /// requests' `timeout=(5, 25)`: connect, then read.
    fn from((connect, read): (Duration, Duration)) -> Self {
        Self { connect: Some(connect), read: Some(read), deadline: None }
    }
}

impl From<(Option<Duration>, Option<Duration>)> for Timeouts {
    /// requests' `timeout=(5, None)`: connect, then read, `None` without limit.
    fn from((connect, read): (Option<Duration>, Option<Duration>)) -> Self {
        Self { connect, read, deadline: None }
    }
}

fn positive(name: &str, value: Option<Duration>) -> Result<Option<Duration>, Error> {
    if value == Some(Duration::ZERO) {
        return Err(Error::config(format!(
            "the {name} is zero: give a positive duration, or none for no limit"
        )));
    }
    Ok(value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorKind;
    use crate::time::secs;

    #[test]
    fn defaults_and_conversions() {
        let default = Timeouts::default();
        assert_eq!(
            (default.connect(), default.read(), default.deadline()),
            (Some(secs(5.0)), Some(secs(25.0)), None)
        );
        assert_eq!(Timeouts::from(secs(3.0)), Timeouts::from((secs(3.0), secs(3.0))));
        let open = Timeouts::from((Some(secs(5.0)), None));
        assert_eq!((open.connect(), open.read()), (Some(secs(5.0)), None));
        assert_eq!(Timeouts::new().with_read(None).unwrap().read(), None);
    }

    #[test]
    fn zero_is_refused_by_name() {
        let zero = Duration::ZERO;
        for (result, name) in [
            (Timeouts::new().with_connect(zero).map(drop), "connect timeout"),
            (Timeouts::new().with_read(zero).map(drop), "read timeout"),
            (Timeouts::new().with_deadline(zero).map(drop), "deadline"),
            (Timeouts::from((zero, secs(1.0))).validate(), "connect timeout"),
            (Timeouts::from((secs(1.0), zero)).validate(), "read timeout"),
        ] {
            let error = result.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Config);
            assert_eq!(
                error.message(),
                format!("the {name} is zero: give a positive duration, or none for no limit")
            );
        }
        Timeouts::from(Duration::MAX).validate().unwrap();
        Timeouts::unlimited().validate().unwrap();
    }
}
