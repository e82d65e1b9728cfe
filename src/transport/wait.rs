//! How long one blocking call on a socket may take, and which clock is to blame when it is over.
//!
//! An attempt runs under three clocks. The *connect budget* is one stretch over lookup, every
//! address, the proxy handshake and TLS: each step gets what is left of it, so a reply that drips
//! byte by byte cannot stretch it. The *read timeout* bounds each silence. The *deadline* ends
//! everything. A [`Wait`] is what of the three applies to the call at hand.
//!
//! ureq offers the same through `timeout_per_read` and `timeout_global`, but as parts of a
//! configuration that has to be cloned for each request that differs, and its budgets are handed
//! to connectors as they were before the first address was tried. Ours cost nothing to change.

use super::AttemptLimits;
use crate::time::Clock;
use std::fmt;
use std::io;
use std::time::{Duration, Instant, SystemTime};

/// Which clock ran out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Expiry {
    /// The connect budget.
    Connect,
    /// The read timeout.
    Read,
    /// The deadline.
    Deadline,
}

/// The payload of the [`io::ErrorKind::TimedOut`] that a [`Wait`] makes.
#[derive(Debug)]
pub(super) struct Expired(pub(super) Expiry);

impl fmt::Display for Expired {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.0 {
            Expiry::Connect => "the connect timeout ran out",
            Expiry::Read => "the read timeout ran out",
            Expiry::Deadline => "the deadline passed",
        })
    }
}

impl std::error::Error for Expired {}

impl Expired {
    /// The expiry inside of an I/O error, where it is one of ours.
    pub(super) fn of(error: &io::Error) -> Option<Expiry> {
        error.get_ref()?.downcast_ref::<Self>().map(|expired| expired.0)
    }
}

impl From<Expired> for io::Error {
    fn from(expired: Expired) -> Self {
        Self::new(io::ErrorKind::TimedOut, expired)
    }
}

/// The bounds of blocking calls in one part of an attempt.
#[derive(Debug, Clone, Copy)]
pub(super) struct Wait<'a> {
    clock: &'a dyn Clock,
    gap: Option<Duration>,
    until: Option<Instant>,
    by: Expiry,
}

/// What one call may take.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bound {
    /// How long; `None` is without end.
    pub(super) left: Option<Duration>,
    /// Whether the next call will be granted the same: then a socket timeout set once can stay.
    pub(super) steady: bool,
    by: Expiry,
}

impl Bound {
    /// The error for this bound.
    pub(super) fn expired(&self) -> io::Error {
        Expired(self.by).into()
    }
}

impl<'a> Wait<'a> {
    /// Until a connection stands: the connect budget from `start`, and the deadline.
    pub(super) fn connect(clock: &'a dyn Clock, start: Instant, limits: &AttemptLimits) -> Self {
        let budget = limits.connect.and_then(|connect| start.checked_add(connect));
        let (until, by) = match (budget, limits.deadline) {
            (Some(budget), Some(deadline)) if deadline < budget => {
                (Some(deadline), Expiry::Deadline)
            }
            (Some(budget), _) => (Some(budget), Expiry::Connect),
            (None, deadline) => (deadline, Expiry::Deadline),
        };
        Self { clock, gap: None, until, by }
    }

    /// On a connection that stands: the read timeout for each silence, and the deadline.
    pub(super) fn exchange(clock: &'a dyn Clock, limits: &AttemptLimits) -> Self {
        Self { clock, gap: limits.read, until: limits.deadline, by: Expiry::Deadline }
    }

    /// The same, but at most `most` from now on: for what is nice to have and not worth waiting.
    pub(super) fn at_most(self, most: Duration) -> Self {
        let end = self.clock.now().checked_add(most);
        match (self.until, end) {
            (Some(until), Some(end)) if until <= end => self,
            (_, Some(_)) => Self { until: end, ..self },
            (_, None) => self,
        }
    }

    /// The time now, by the clock of the bounds.
    pub(super) fn now(&self) -> Instant {
        self.clock.now()
    }

    /// The wall-clock time now.
    pub(super) fn wall(&self) -> SystemTime {
        self.clock.wall()
    }

    /// What a call that begins now may take.
    ///
    /// Fails where the end has passed already.
    pub(super) fn bound(&self) -> io::Result<Bound> {
        let Some(until) = self.until else {
            return Ok(Bound { left: self.gap, steady: true, by: Expiry::Read });
        };
        let left = until.saturating_duration_since(self.clock.now());
        if left.is_zero() {
            return Err(Expired(self.by).into());
        }
        Ok(match self.gap {
            Some(gap) if gap <= left => Bound { left: Some(gap), steady: true, by: Expiry::Read },
            _ => Bound { left: Some(left), steady: false, by: self.by },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::{SimClock, secs};

    #[test]
    fn the_nearest_end_decides_and_is_named() {
        let clock = SimClock::default();
        let start = clock.now();
        let limits = |connect, read, deadline: Option<f64>| AttemptLimits {
            connect,
            read,
            deadline: deadline.map(|deadline| start + secs(deadline)),
        };
        let case = limits(Some(secs(5.0)), Some(secs(25.0)), Some(3.0));
        let bound = Wait::connect(&clock, start, &case).bound().unwrap();
        assert_eq!((bound.left, bound.by), (Some(secs(3.0)), Expiry::Deadline));
        let bound = Wait::exchange(&clock, &case).bound().unwrap();
        assert_eq!(
            (bound.left, bound.by, bound.steady),
            (Some(secs(3.0)), Expiry::Deadline, false)
        );

        let case = limits(Some(secs(5.0)), Some(secs(25.0)), Some(60.0));
        let bound = Wait::connect(&clock, start, &case).bound().unwrap();
        assert_eq!((bound.left, bound.by), (Some(secs(5.0)), Expiry::Connect));
        let bound = Wait::exchange(&clock, &case).bound().unwrap();
        assert_eq!((bound.left, bound.by, bound.steady), (Some(secs(25.0)), Expiry::Read, true));

        clock.advance(secs(5.0));
        let error = Wait::connect(&clock, start, &case).bound().unwrap_err();
        assert_eq!(Expired::of(&error), Some(Expiry::Connect));

        let none = AttemptLimits::default();
        assert_eq!(Wait::connect(&clock, start, &none).bound().unwrap().left, None);
        let huge = limits(Some(Duration::MAX), None, None);
        assert_eq!(Wait::connect(&clock, start, &huge).bound().unwrap().left, None);
    }

    #[test]
    fn at_most_shortens_and_never_lengthens() {
        let clock = SimClock::default();
        let limits =
            AttemptLimits { deadline: Some(clock.now() + secs(1.0)), ..Default::default() };
        let wait = Wait::exchange(&clock, &limits);
        assert_eq!(wait.at_most(secs(0.2)).bound().unwrap().left, Some(secs(0.2)));
        assert_eq!(wait.at_most(secs(9.0)).bound().unwrap().left, Some(secs(1.0)));
    }
}
