//! Durations as people write and read them.
//!
//! A setting of seconds that takes a float lets NaN, negative and infinite values in; one that
//! takes text can refuse them with the text in hand. What is printed is for people too, so it is
//! short, and never less than the truth.

use super::RetryAfter;
use crate::error::Error;
use std::time::Duration;

/// A duration as people write it: `5`, `5s`, `0.25`, `250ms`, `1m30s`, `2h`; `none` is `None`.
///
/// A number without a unit is seconds. The units are `d`, `h`, `m` or `min`, `s` and `ms`, the larger
/// before the smaller and each at most once. Spaces may stand around them, so what
/// [`format_duration`] prints can be given back.
///
/// # Errors
/// `Config` for anything else, for zero, negative and non-finite values, and for more than a
/// hundred years.
pub fn parse_duration(text: &str) -> Result<Option<Duration>, Error> {
    let trimmed = text.trim();
    if trimmed.eq_ignore_ascii_case("none") {
        return Ok(None);
    }
    let refuse = |why: &str| {
        Error::config(format!(
            "`{trimmed}` is not a duration ({why}): write 5, 0.25, 250ms, 1m30s or 2h, or `none` for no limit"
        ))
    };
    let nanos = parse_nanos(trimmed).map_err(refuse)?;
    if nanos == 0 {
        return Err(refuse("it is zero"));
    }
    let seconds = u64::try_from(nanos / NANOS).unwrap_or(u64::MAX);
    let rest = u32::try_from(nanos % NANOS).unwrap_or(0);
    let duration = Duration::new(seconds, rest);
    if duration > RetryAfter::LONGEST {
        return Err(refuse("it is more than a hundred years"));
    }
    Ok(Some(duration))
}

const NANOS: u128 = 1_000_000_000;

/// The units in the order in which they have to come, in nanoseconds, as written and as printed.
const UNITS: [([&str; 2], u128); 5] = [
    (["d", "d"], 86_400 * NANOS),
    (["h", "h"], 3600 * NANOS),
    (["m", "min"], 60 * NANOS),
    (["s", "s"], NANOS),
    (["ms", "ms"], NANOS / 1000),
];

fn parse_nanos(text: &str) -> Result<u128, &'static str> {
    let mut rest = text;
    let mut units = UNITS.as_slice();
    let mut total = 0_u128;
    if text.is_empty() {
        return Err("it is empty");
    }
    if text.starts_with('-') {
        return Err("it is negative");
    }
    while !rest.is_empty() {
        let (number, behind) = split_while(rest, |c| c.is_ascii_digit() || c == '.');
        let (unit, behind) = split_while(behind.trim_start(), |c| c.is_ascii_alphabetic());
        let first = rest.len() == text.len();
        let unit = if unit.is_empty() && first && behind.is_empty() { "s" } else { unit };
        let is_it = |name: &&str| unit.eq_ignore_ascii_case(name);
        let at = units.iter().position(|(names, _)| names.iter().any(is_it));
        let at = at.ok_or("the unit is unknown, missing or out of order")?;
        let scale = units.get(at).map_or(0, |(_, scale)| *scale);
        units = units.get(at + 1..).unwrap_or_default();
        total = total.saturating_add(scaled(number, scale).ok_or("the number cannot be read")?);
        rest = behind.trim_start();
    }
    Ok(total)
}

fn split_while(text: &str, wanted: impl Fn(char) -> bool) -> (&str, &str) {
    let end = text.find(|c| !wanted(c)).unwrap_or(text.len());
    text.split_at_checked(end).unwrap_or((text, ""))
}

/// `number · scale` without going through a float; digits below a nanosecond are dropped.
fn scaled(number: &str, scale: u128) -> Option<u128> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if whole.len() + fraction.len() == 0 || fraction.contains('.') {
        return None;
    }
    let whole: u128 = if whole.is_empty() { 0 } else { whole.parse().unwrap_or(u128::MAX) };
    let mut nanos = whole.saturating_mul(scale);
    let mut place = scale;
    for digit in fraction.bytes().take(20) {
        place /= 10;
        nanos = nanos.saturating_add(u128::from(digit - b'0') * place);
    }
    Some(nanos)
}

/// A duration for people: `250 ms`, `158.4 s`, `2 min 39 s`, `6 h`.
///
/// Fractions of a second are shown up to ten minutes, to the millisecond and rounded up, so that
/// an upper bound stays one. [`parse_duration`] reads it, but for zero and for more than a hundred
/// years, which are no limits.
pub fn format_duration(duration: Duration) -> String {
    if duration >= RetryAfter::LONGEST {
        return "more than 100 years".to_owned();
    }
    let millis = duration.as_nanos().div_ceil(1_000_000);
    let (seconds, fraction) = (millis / 1000, millis % 1000);
    if seconds == 0 && fraction > 0 {
        return format!("{fraction} ms");
    }
    if fraction > 0 && seconds < 600 {
        let fraction = format!("{fraction:03}");
        return format!("{seconds}.{} s", fraction.trim_end_matches('0'));
    }
    let seconds = if fraction > 0 { seconds + 1 } else { seconds };
    let parts = [
        (seconds / 86_400, "d"),
        (seconds / 3600 % 24, "h"),
        (seconds / 60 % 60, "min"),
        (seconds % 60, "s"),
    ];
    let shown: Vec<_> = parts
        .iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, unit)| format!("{count} {unit}"))
        .collect();
    if shown.is_empty() { "0 s".to_owned() } else { shown.join(" ") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorKind;
    use crate::time::secs;
    use proptest::prelude::*;

    #[test]
    fn durations_as_people_write_them() {
        for (text, seconds) in [
            ("5", 5.0),
            ("5s", 5.0),
            ("0.25", 0.25),
            (".5", 0.5),
            ("3.05", 3.05),
            ("250ms", 0.25),
            ("1m30s", 90.0),
            ("1.5m", 90.0),
            ("2h", 7200.0),
            ("1d12h", 129_600.0),
            (" 2H30M ", 9000.0),
            ("1s500ms", 1.5),
            ("5 s", 5.0),
            ("2 min 39 s", 159.0),
            ("2MIN39S", 159.0),
            ("1 d 1 h 1 min 1 s", 90_061.0),
        ] {
            assert_eq!(parse_duration(text).unwrap(), Some(secs(seconds)), "{text}");
        }
        assert_eq!(parse_duration("none").unwrap(), None);
        assert_eq!(parse_duration("NONE").unwrap(), None);
    }

    #[test]
    fn what_is_no_duration_is_named() {
        for text in [
            "",
            " ",
            "0",
            "0s",
            "0.0",
            "-1",
            "-0.5s",
            "nan",
            "inf",
            "infinity",
            "1e3",
            "5x",
            "5 10 s",
            "5 minutes",
            "5 s ,",
            "1 min 1 m",
            "min",
            "1.2.3",
            ".",
            "s",
            "30s1m",
            "1m1m",
            "1m30",
            "soon",
            "99999999999999999999",
            "1000000h",
            "１",
        ] {
            let error = parse_duration(text).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Config, "{text}");
            let named = error.message().starts_with(&format!("`{}`", text.trim()));
            assert!(named, "{error}");
        }
        let message = parse_duration("0").unwrap_err().to_string();
        assert_eq!(
            message,
            "`0` is not a duration (it is zero): write 5, 0.25, 250ms, 1m30s or 2h, or `none` for no limit"
        );
    }

    #[test]
    fn durations_for_people() {
        for (seconds, shown) in [
            (0.0, "0 s"),
            (0.000_000_001, "1 ms"),
            (0.25, "250 ms"),
            (5.0, "5 s"),
            (0.999_999, "1 s"),
            (158.4, "158.4 s"),
            (159.0, "2 min 39 s"),
            (60.0, "1 min"),
            (599.999_9, "10 min"),
            (600.5, "10 min 1 s"),
            (3600.0, "1 h"),
            (21_600.0, "6 h"),
            (90_061.0, "1 d 1 h 1 min 1 s"),
            (1e300, "more than 100 years"),
        ] {
            assert_eq!(format_duration(secs(seconds)), shown);
        }
    }

    proptest! {
        #[test]
        fn no_text_panics(text in "\\PC{0,24}") {
            let _ = parse_duration(&text);
        }

        #[test]
        fn nothing_that_looks_like_a_duration_panics(text in "[0-9.]{0,40}[dhms]{0,2}[0-9.]{0,40}[dhms]{0,2}") {
            if let Ok(Some(duration)) = parse_duration(&text) {
                prop_assert!(!duration.is_zero());
            }
        }

        #[test]
        fn milliseconds_round_trip(millis in 1_u64..3_000_000_000) {
            let parsed = parse_duration(&format!("{millis}ms")).unwrap();
            prop_assert_eq!(parsed, Some(Duration::from_millis(millis)));
        }

        #[test]
        fn what_is_printed_can_be_given_back(nanos in prop_oneof![
            1_u64..2_000_000_000,
            1_u64..700_000_000_000,
            1_u64..10_000_000_000_000_000,
        ]) {
            let duration = Duration::from_nanos(nanos);
            let shown = format_duration(duration);
            let parsed = parse_duration(&shown).unwrap().unwrap();
            // Rounded up at the precision of its size, and at that it stays.
            let precision = if parsed < secs(600.0) { secs(0.001) } else { secs(1.0) };
            prop_assert!(parsed >= duration && parsed - duration < precision, "{}", shown);
            prop_assert_eq!(format_duration(parsed), shown);
        }
    }
}
