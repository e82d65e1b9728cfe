//! When a run may work: not before a time, not after one, and for so long at most.
//!
//! A run that is meant for the night begins when the office has gone home and is over before it
//! comes back. The times are points on the wall clock, which may be set while the run waits or
//! works; so the wall is asked again and again, and nothing is computed from it in advance. The
//! longest time is measured by the monotonic clock.

use crate::error::Error;
use crate::policy::format_duration;
use std::time::{Duration, Instant, SystemTime};

/// How long is slept at once before the beginning, so that a stop is heard.
pub(super) const NAP: Duration = Duration::from_millis(200);

/// The times of a run; none of them by default.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Window {
    pub(super) start_at: Option<SystemTime>,
    pub(super) stop_at: Option<SystemTime>,
    pub(super) max_time: Option<Duration>,
}

impl Window {
    /// Whether a run could work in it at all.
    pub(super) fn check(&self, wall: SystemTime) -> Result<(), Error> {
        let Self { start_at, stop_at, max_time } = *self;
        if max_time.is_some_and(|most| most.is_zero()) {
            return Err(Error::config(
                "max_time is 0, in which nothing is done; give more, or leave it out",
            ));
        }
        let Some(stop) = stop_at else { return Ok(()) };
        if start_at.is_some_and(|start| start >= stop) {
            return Err(Error::config(format!(
                "the run would have to stop at {} before it starts; give a later time",
                shown(stop)
            )));
        }
        if stop <= wall {
            return Err(Error::config(format!(
                "the time to stop, {}, has passed; give a later one",
                shown(stop)
            )));
        }
        Ok(())
    }

    /// How long it is until the run may begin; `None` where it may.
    pub(super) fn opens_in(&self, wall: SystemTime) -> Option<Duration> {
        self.start_at?.duration_since(wall).ok().filter(|left| !left.is_zero())
    }

    /// Why the run has to end, where its time is up; `began` is when it was allowed to begin.
    pub(super) fn closed(&self, began: Instant, now: Instant, wall: SystemTime) -> Option<String> {
        if let Some(stop) = self.stop_at.filter(|stop| wall >= *stop) {
            return Some(format!("the time to stop, {}, has come", shown(stop)));
        }
        let most = self.max_time.filter(|most| now.saturating_duration_since(began) >= *most)?;
        Some(format!("the longest time of {} is over", format_duration(most)))
    }
}

/// To the second, in UTC: where the machine is, is no matter of a library.
fn shown(time: SystemTime) -> String {
    humantime::format_rfc3339_seconds(time).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::{Clock, SimClock, secs};

    #[test]
    fn opens_and_closes_by_the_wall_and_by_its_length() {
        let clock = SimClock::default();
        let (began, wall) = (clock.now(), clock.wall());
        let window = Window {
            start_at: Some(wall + secs(60.0)),
            stop_at: Some(wall + secs(600.0)),
            max_time: Some(secs(3600.0)),
        };
        window.check(wall).unwrap();
        for (at, opens, closed) in [
            (0.0, Some(60.0), false),
            (59.5, Some(0.5), false),
            (60.0, None, false),
            (599.9, None, false),
            (600.0, None, true),
        ] {
            let (now, wall) = (began + secs(at), wall + secs(at));
            assert_eq!(window.opens_in(wall), opens.map(secs), "{at}");
            assert_eq!(window.closed(began, now, wall).is_some(), closed, "{at}");
        }
        // A wall that is set back opens nothing twice and closes nothing early.
        assert_eq!(window.opens_in(wall - secs(10.0)), Some(secs(70.0)));
        let long = Window { stop_at: None, ..window };
        assert_eq!(long.closed(began, began + secs(3599.0), wall + secs(9e9)), None);
        let words = long.closed(began, began + secs(3600.0), wall - secs(9e6)).unwrap();
        assert_eq!(words, "the longest time of 1 h is over");
        let words = window.closed(began, began, wall + secs(601.0)).unwrap();
        assert_eq!(words, "the time to stop, 2025-06-15T15:16:40Z, has come");
    }

    #[test]
    fn windows_in_which_nothing_fits_are_mistakes() {
        let wall = SimClock::default().wall();
        let later = |seconds| Some(wall + secs(seconds));
        for (window, words) in [
            (Window { stop_at: Some(wall), ..Window::default() }, "has passed"),
            (
                Window { start_at: later(9.0), stop_at: later(9.0), max_time: None },
                "before it starts",
            ),
            (Window { max_time: Some(Duration::ZERO), ..Window::default() }, "max_time is 0"),
        ] {
            let error = window.check(wall).unwrap_err();
            assert!(error.message().contains(words), "{error}");
        }
        let past = Window { start_at: Some(wall - secs(5.0)), ..Window::default() };
        assert!(past.check(wall).is_ok() && past.opens_in(wall).is_none());
    }
}
