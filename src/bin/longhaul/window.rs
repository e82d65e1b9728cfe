//! The hours of a run: `--start-at 22:00 --stop-at 06:00`, in the time zone of this machine.
//!
//! A time of day names a time only together with a day, and on two days of the year not even then:
//! one has an hour that does not exist, one has an hour twice. A time in the gap is that much later
//! (02:30 becomes 03:30), and of two equal times the first one counts; both are what `cron` and
//! calendars do. Whoever does not want to think about it gives the day and the offset, as RFC 3339.
//!
//! With both flags given as times of day they are a window that comes back every day: within it the
//! run begins at once, outside of it with the next one.

use crate::usage::UsageError;
use jiff::civil::{Date, Time};
use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan as _};
use std::time::SystemTime;

/// `--start-at` and `--stop-at`, as typed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum When {
    /// Each day.
    Daily(Time),
    /// Once.
    Once(Timestamp),
}

/// A time of day, or a day with time and offset.
pub(crate) fn when(text: &str) -> Result<When, String> {
    let trimmed = text.trim();
    if let Ok(once) = trimmed.parse() {
        return Ok(When::Once(once));
    }
    // jiff reads `22` and dates as times of day as well, which nobody means.
    let is_short = (4..=8).contains(&trimmed.len()) && trimmed.contains(':');
    let padded = if trimmed.find(':') == Some(1) { format!("0{trimmed}") } else { trimmed.into() };
    match padded.parse() {
        Ok(time) if is_short => Ok(When::Daily(time)),
        _ => Err(format!(
            "'{}' is not a time; give one of day such as 22:00, or 2027-01-31T22:00:00+01:00",
            text.escape_debug()
        )),
    }
}

/// When a run may begin and when it has to end; `None` where nothing was said.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Hours {
    /// Not before.
    pub(crate) start: Option<Timestamp>,
    /// Not beyond.
    pub(crate) stop: Option<Timestamp>,
}

impl Hours {
    /// The hours that are meant at `now` in the zone `zone`.
    ///
    /// # Errors
    /// Times between which nothing fits.
    pub(crate) fn resolve(
        start: Option<When>,
        stop: Option<When>,
        now: Timestamp,
        zone: &TimeZone,
    ) -> Result<Self, UsageError> {
        let hours = match (start, stop) {
            (Some(When::Daily(start)), Some(When::Daily(stop))) if start == stop => {
                return Err(UsageError::new(
                    "--stop-at",
                    "is the time of --start-at; give another, or leave one of them out",
                ));
            }
            (Some(When::Daily(start)), Some(When::Daily(stop))) => {
                let stop = next(stop, now, zone);
                let start = stop.and_then(|stop| last_before(start, stop, zone));
                Self { start, stop }
            }
            (start, stop) => {
                let start = start.map(|start| point(start, now, zone));
                let begin = start.flatten().unwrap_or(now).max(now);
                let stop = stop.map(|stop| point(stop, begin, zone));
                if start == Some(None) || stop == Some(None) {
                    return Err(UsageError::new("--start-at", "is beyond all calendars"));
                }
                Self { start: start.flatten(), stop: stop.flatten() }
            }
        };
        let begin = hours.start.unwrap_or(now).max(now);
        if hours.stop.is_some_and(|stop| stop <= begin) {
            let what = if hours.stop.is_some_and(|stop| stop <= now) {
                "has passed; give a later time"
            } else {
                "is not after --start-at; give a later time"
            };
            return Err(UsageError::new("--stop-at", what));
        }
        Ok(hours)
    }

    /// In the zone of the machine, as they are printed.
    pub(crate) fn describe(&self, zone: &TimeZone) -> Option<String> {
        let shown = |time: Timestamp| {
            time.to_zoned_datetime(zone.clone()).strftime("%a %Y-%m-%d %H:%M:%S %:z").to_string()
        };
        match (self.start.map(shown), self.stop.map(shown)) {
            (None, None) => None,
            (Some(start), None) => Some(format!("from {start} on")),
            (None, Some(stop)) => Some(format!("until {stop}")),
            (Some(start), Some(stop)) => Some(format!("from {start} until {stop}")),
        }
    }

    /// The time to begin, for the library; none that the system's clock cannot show.
    pub(crate) fn start(&self) -> Option<SystemTime> {
        self.start.and_then(|time| time.try_into().ok())
    }

    /// The time to end, likewise.
    pub(crate) fn stop(&self) -> Option<SystemTime> {
        self.stop.and_then(|time| time.try_into().ok())
    }
}

/// The first time from `from` on.
fn point(when: When, from: Timestamp, zone: &TimeZone) -> Option<Timestamp> {
    match when {
        When::Once(time) => Some(time),
        When::Daily(time) => next(time, from, zone),
    }
}

/// The first `time` of a day after `from`.
fn next(time: Time, from: Timestamp, zone: &TimeZone) -> Option<Timestamp> {
    let today = from.to_zoned_datetime(zone.clone()).date();
    days(today, [-1, 0, 1, 2]).filter_map(|day| at(day, time, zone)).find(|then| *then > from)
}

/// The last `time` of a day before `before`.
fn last_before(time: Time, before: Timestamp, zone: &TimeZone) -> Option<Timestamp> {
    let today = before.to_zoned_datetime(zone.clone()).date();
    days(today, [1, 0, -1, -2]).filter_map(|day| at(day, time, zone)).find(|then| *then < before)
}

fn days(today: Date, offsets: [i64; 4]) -> impl Iterator<Item = Date> {
    offsets.into_iter().filter_map(move |days| today.checked_add(days.days()).ok())
}

fn at(day: Date, time: Time, zone: &TimeZone) -> Option<Timestamp> {
    Some(zone.to_zoned_datetime(day.to_datetime(time)).ok()?.timestamp())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Berlin, whose clocks go forward on 2027-03-28 at 02:00 and back on 2027-10-31 at 03:00, as
    /// POSIX writes it, so that no database is needed.
    fn berlin() -> TimeZone {
        TimeZone::posix("CET-1CEST,M3.5.0,M10.5.0/3").unwrap()
    }

    /// The hours that two flags mean at a time, in UTC.
    fn hours(start: &str, stop: &str, now: &str) -> Result<[String; 2], String> {
        let read = |text: &str| (!text.is_empty()).then(|| when(text).unwrap());
        let hours = Hours::resolve(read(start), read(stop), now.parse().unwrap(), &berlin())
            .map_err(|error| error.to_string())?;
        Ok([hours.start, hours.stop].map(|time| time.map(|t| t.to_string()).unwrap_or_default()))
    }

    #[test]
    fn the_next_time_of_day_and_the_window_around_now() {
        for (start, stop, now, wanted) in [
            // Alone, each is the next of its kind.
            ("22:00", "", "2026-12-01T12:00:00Z", ["2026-12-01T21:00:00Z", ""]),
            ("22:00", "", "2026-12-01T22:00:00Z", ["2026-12-02T21:00:00Z", ""]),
            ("", "06:00", "2026-12-01T12:00:00Z", ["", "2026-12-02T05:00:00Z"]),
            ("", "6:00", "2026-12-01T04:59:59Z", ["", "2026-12-01T05:00:00Z"]),
            // Together they are a window over midnight …
            (
                "22:00",
                "06:00",
                "2026-12-01T12:00:00Z",
                ["2026-12-01T21:00:00Z", "2026-12-02T05:00:00Z"],
            ),
            (
                "22:00",
                "06:00",
                "2026-12-01T23:30:00Z",
                ["2026-12-01T21:00:00Z", "2026-12-02T05:00:00Z"],
            ),
            (
                "22:00",
                "06:00",
                "2026-12-02T02:00:00Z",
                ["2026-12-01T21:00:00Z", "2026-12-02T05:00:00Z"],
            ),
            (
                "22:00",
                "06:00",
                "2026-12-02T05:00:00Z",
                ["2026-12-02T21:00:00Z", "2026-12-03T05:00:00Z"],
            ),
            // … or within a day, also over the end of a year.
            (
                "08:00",
                "18:00",
                "2026-12-31T20:00:00Z",
                ["2027-01-01T07:00:00Z", "2027-01-01T17:00:00Z"],
            ),
            (
                "08:00",
                "18:00",
                "2026-12-31T10:00:00Z",
                ["2026-12-31T07:00:00Z", "2026-12-31T17:00:00Z"],
            ),
            (
                "00:00",
                "23:59:59",
                "2026-12-01T12:00:00Z",
                ["2026-11-30T23:00:00Z", "2026-12-01T22:59:59Z"],
            ),
            // A day of one's own, and the other flag relative to it.
            (
                "2027-01-31T22:00:00+01:00",
                "06:00",
                "2026-12-01T12:00:00Z",
                ["2027-01-31T21:00:00Z", "2027-02-01T05:00:00Z"],
            ),
            ("2026-11-01T00:00:00Z", "", "2026-12-01T12:00:00Z", ["2026-11-01T00:00:00Z", ""]),
        ] {
            assert_eq!(hours(start, stop, now).unwrap(), wanted, "{start} {stop} {now}");
        }
    }

    #[test]
    fn the_hour_that_is_missing_and_the_hour_that_is_there_twice() {
        for (start, stop, now, wanted) in [
            // The night has seven hours.
            (
                "22:00",
                "06:00",
                "2027-03-27T12:00:00Z",
                ["2027-03-27T21:00:00Z", "2027-03-28T04:00:00Z"],
            ),
            // And nine.
            (
                "22:00",
                "06:00",
                "2027-10-30T12:00:00Z",
                ["2027-10-30T20:00:00Z", "2027-10-31T05:00:00Z"],
            ),
            // 02:30 does not exist: it is 03:30 of the new time.
            ("02:30", "", "2027-03-28T00:00:00Z", ["2027-03-28T01:30:00Z", ""]),
            // 02:30 is there twice: the first counts, and once it has passed, the next day's.
            ("", "02:30", "2027-10-31T00:00:00Z", ["", "2027-10-31T00:30:00Z"]),
            ("", "02:30", "2027-10-31T00:45:00Z", ["", "2027-11-01T01:30:00Z"]),
        ] {
            assert_eq!(hours(start, stop, now).unwrap(), wanted, "{start} {stop} {now}");
        }
    }

    #[test]
    fn times_between_which_nothing_fits() {
        let now = "2026-12-01T12:00:00Z";
        for (start, stop, words) in [
            ("22:00", "22:00", "is the time of --start-at"),
            ("", "2026-12-01T11:00:00Z", "has passed"),
            ("2026-12-02T00:00:00Z", "2026-12-01T23:00:00Z", "is not after --start-at"),
            ("22:00", "2026-12-01T20:00:00Z", "is not after --start-at"),
        ] {
            let error = hours(start, stop, now).unwrap_err();
            assert!(error.contains("--stop-at: ") && error.contains(words), "{error}");
        }
    }

    #[test]
    fn spellings() {
        for text in
            ["22:00", " 6:05", "06:05:30", "2027-01-31T22:00:00Z", "2027-01-31 22:00:00+01:00"]
        {
            assert!(when(text).is_ok(), "{text}");
        }
        for text in ["", "22", "24:00", "22:60", "10pm", "2027-01-31", "2027-01-31T22:00:00", "now"]
        {
            let error = when(text).unwrap_err();
            assert!(error.contains("is not a time; give"), "{error}");
        }
        let hours = Hours { start: None, stop: "2026-12-01T05:00:00Z".parse().ok() };
        let shown = hours.describe(&berlin()).unwrap();
        assert_eq!(shown, "until Tue 2026-12-01 06:00:00 +01:00");
    }
}
