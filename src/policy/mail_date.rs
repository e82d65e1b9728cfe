//! Dates as servers really write them.
//!
//! RFC 9110 knows three forms and `httpdate` parses them, strictly. urllib3 hands the field to
//! Python's mail parser instead, which takes the three forms and a good deal more: numeric zones,
//! missing zones, dots in the time, month before day, two-digit years, seconds of 60. Servers that
//! write such dates exist because nobody ever refused them, so the reading here is as forgiving,
//! and gives the same instants.
//!
//! The parts are told apart by their place and corrected by their look, then added up without
//! checking that the day exists: "31 June" is the day after 30 June.

use std::str::SplitWhitespace;

const WEEKDAYS: [&str; 7] = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"];

/// Long enough for every name of a month; only these two spellings are known.
const MONTHS: [(&str, &str); 12] = [
    ("jan", "january"),
    ("feb", "february"),
    ("mar", "march"),
    ("apr", "april"),
    ("may", "may"),
    ("jun", "june"),
    ("jul", "july"),
    ("aug", "august"),
    ("sep", "september"),
    ("oct", "october"),
    ("nov", "november"),
    ("dec", "december"),
];

/// The zones of RFC 822, in hours from UTC; every other name counts as UTC.
const ZONES: [(&str, i64); 10] = [
    ("ast", -4),
    ("adt", -3),
    ("est", -5),
    ("edt", -4),
    ("cst", -6),
    ("cdt", -5),
    ("mst", -7),
    ("mdt", -6),
    ("pst", -8),
    ("pdt", -7),
];

/// The instant in seconds since the epoch, or `None` where the text is no date.
pub(super) fn parse(text: &str) -> Option<i64> {
    let Parts { day, month, year, time, zone } = Parts::split(text)?;
    let (day, month) = match month_number(month) {
        Some(number) => (day, number),
        None => (month, month_number(day)?),
    };
    // The time may stand before the year, and the zone too.
    let (year, time) =
        if year.find(':').is_some_and(|at| at > 0) { (time, year) } else { (year, time) };
    let year = year.strip_suffix(',').unwrap_or(year);
    let (year, zone) =
        if year.starts_with(|c: char| c.is_ascii_digit()) { (year, zone) } else { (zone, year) };

    let day = number(day.strip_suffix(',').unwrap_or(day))?;
    let year = match number(year)? {
        year @ 0..=68 => year + 2000,
        year @ 69..=99 => year + 1900,
        year @ 100..=9999 => year,
        _ => return None,
    };
    let time = time_of_day(time.strip_suffix(',').unwrap_or(time))?;
    Some((days_before(year, month) + day - 1) * 86_400 + time - zone_offset(zone))
}

/// The five parts of a date, before anybody knows that they are right.
struct Parts<'a> {
    day: &'a str,
    month: &'a str,
    year: &'a str,
    time: &'a str,
    zone: &'a str,
}

impl<'a> Parts<'a> {
    fn split(text: &'a str) -> Option<Self> {
        let mut words = text.split_whitespace();
        let first = words.next()?;
        let is_weekday = WEEKDAYS.iter().any(|name| first.eq_ignore_ascii_case(name));
        let day = if first.ends_with(',') || is_weekday {
            words.next()?
        } else {
            first.rsplit_once(',').map_or(first, |(_weekday, day)| day)
        };
        let parts = match Self::rest(words) {
            // RFC 850: the date is one word.
            [Some(time), Some(zone), None, None] => {
                let (day, rest) = day.split_once('-')?;
                let (month, year) = rest.split_once('-').filter(|(_, year)| !year.contains('-'))?;
                Self { day, month, year, time, zone }
            }
            [Some(month), Some(year), Some(time), None] => {
                let sign = time.find('+').or_else(|| time.find('-')).filter(|at| *at > 0);
                let (time, zone) =
                    sign.and_then(|at| time.split_at_checked(at)).unwrap_or((time, ""));
                Self { day, month, year, time, zone }
            }
            [Some(month), Some(year), Some(time), Some(zone)] => {
                Self { day, month, year, time, zone }
            }
            _ => return None,
        };
        let complete = !parts.day.is_empty() && !parts.month.is_empty() && !parts.year.is_empty();
        complete.then_some(parts)
    }

    /// The words after the day; what comes behind the zone is not looked at.
    fn rest(mut words: SplitWhitespace<'a>) -> [Option<&'a str>; 4] {
        [words.next(), words.next(), words.next(), words.next()]
    }
}

fn month_number(name: &str) -> Option<i64> {
    let found = |(short, long): &(&str, &str)| {
        name.eq_ignore_ascii_case(short) || name.eq_ignore_ascii_case(long)
    };
    let index = MONTHS.iter().position(found)?;
    i64::try_from(index).ok().map(|index| index + 1)
}

/// `hh:mm:ss`, `hh:mm`, or the same with dots.
fn time_of_day(text: &str) -> Option<i64> {
    let mut parts = text.split(if text.contains(':') { ':' } else { '.' });
    let (hours, minutes) = (number(parts.next()?)?, number(parts.next()?)?);
    let seconds = parts.next().map_or(Some(0), number)?;
    if parts.next().is_some() {
        return None;
    }
    Some(hours * 3600 + minutes * 60 + seconds)
}

/// Seconds east of UTC, of a name or of `+hhmm`.
fn zone_offset(zone: &str) -> i64 {
    if let Some((_, hours)) = ZONES.iter().find(|(name, _)| zone.eq_ignore_ascii_case(name)) {
        return hours * 3600;
    }
    let digits = number(zone).unwrap_or(0);
    digits.signum() * (digits.abs() / 100 * 3600 + digits.abs() % 100 * 60)
}

/// An integer of a size with which nothing here can overflow.
fn number(text: &str) -> Option<i64> {
    text.parse::<i32>().ok().map(i64::from)
}

/// Days from the epoch to the first of the month, in the proleptic Gregorian calendar.
fn days_before(year: i64, month: i64) -> i64 {
    // Years that begin in March put the leap day at their end.
    let year = if month <= 2 { year - 1 } else { year };
    let month = (month + 9) % 12;
    let days_of_months = (153 * month + 2) / 5;
    365 * year + year / 4 - year / 100 + year / 400 + days_of_months - 719_468
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::{Duration, SystemTime};

    #[test]
    fn days_agree_with_httpdate() {
        for (days, year) in [(0_u32, 1970), (11_016, 2000), (20_254, 2025), (47_540, 2100)] {
            let instant = SystemTime::UNIX_EPOCH + Duration::from_secs(u64::from(days) * 86_400);
            let text = httpdate::fmt_http_date(instant);
            assert!(text.contains(&year.to_string()), "{text}");
            assert_eq!(parse(&text), Some(i64::from(days) * 86_400), "{text}");
        }
        for days in (0..60_000_u64).step_by(17) {
            let instant = SystemTime::UNIX_EPOCH + Duration::from_secs(days * 86_400 + 3661);
            let seconds = i64::try_from(days * 86_400 + 3661).unwrap();
            assert_eq!(parse(&httpdate::fmt_http_date(instant)), Some(seconds));
        }
    }

    #[test]
    fn odd_spellings_and_what_is_no_date() {
        let minute = Some(1_750_000_060);
        for (text, wanted) in [
            ("Sun, 15 Jun 2025 17:07:40 +0200", minute),
            ("Sun, 15 Jun 2025 10:07:40 EST", minute),
            ("Sun, 15 Jun 2025 15:07:40+0000", minute),
            ("Sun, 15 Jun 2025 15:07:40", minute),
            ("Sun, Jun 15 2025 15.07.40 GMT", minute),
            ("15 June 2025 15:07:40 anything more", minute),
            ("Sun, 15 Jun 2025", None),
            ("2025-06-15T15:07:40Z", None),
            ("Sun, 15 Juin 2025 15:07:40 GMT", None),
            ("Fri, 31 Dec 99999 23:59:59 GMT", None),
            ("Sun, 99999999999 Jun 2025 15:07:40 GMT", None),
            (",", None),
            ("", None),
        ] {
            assert_eq!(parse(text), wanted, "{text}");
        }
    }
}
