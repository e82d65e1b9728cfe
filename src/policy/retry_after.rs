//! `Retry-After`: what a server asks for, and what to do when that is long.
//!
//! RFC 9110, section 10.2.3, allows a whole number of seconds or an HTTP date. Real servers also
//! send fractions, mail-style dates and plain nonsense, always together with the plea to slow
//! down; so whatever has a meaning is taken, and what has none counts as absent. A throttle must
//! never become a failure because its header was written badly.
//!
//! A date says when, not how long, and two clocks are rarely one: where the response tells its own
//! `Date`, the difference of the two is what the server meant.

use super::mail_date;
use http::header::{DATE, RETRY_AFTER};
use http::{HeaderMap, HeaderValue};
use std::borrow::Cow;
use std::time::{Duration, SystemTime};

/// The parsing of `Retry-After` fields.
///
/// Differences from urllib3, which looks at one value and the local clock:
/// - DIFFERENCE(unreadable-retry-after): what cannot be read counts as absent; urllib3 raises
///   `InvalidHeader`.
/// - DIFFERENCE(decimal-retry-after): a decimal such as `0.5` is taken; urllib3 raises.
/// - DIFFERENCE(endless-retry-after): any number of digits is a number; urllib3 raises `ValueError`
///   from 4301 digits on.
/// - DIFFERENCE(repeated-retry-after): of several fields the largest that can be read counts;
///   urllib3 joins them and raises.
/// - DIFFERENCE(retry-after-date): a date is measured against the response's `Date`.
#[derive(Debug, Clone, Copy)]
pub struct RetryAfter;

impl RetryAfter {
    /// The longest wait that is told apart from "for ever": a hundred years. Longer ones are cut
    /// to it, so that no later arithmetic on times can overflow.
    pub const LONGEST: Duration = Duration::from_secs(100 * 31_557_600);

    /// The wait that the fields ask for: the largest that parses, `None` where none does.
    ///
    /// A date that has passed asks for no wait, which is `Some(ZERO)` and not `None`.
    /// `date` is the response's own `Date` field, against which a date is measured where it
    /// parses; else `wall`.
    pub fn parse<'a>(
        fields: impl IntoIterator<Item = &'a [u8]>,
        date: Option<&[u8]>,
        wall: SystemTime,
    ) -> Option<Duration> {
        fields.into_iter().filter_map(|field| parse_one(field, date, wall)).max()
    }

    /// As [`parse`](Self::parse), of the fields `Retry-After` and `Date` of a response.
    pub fn of(headers: &HeaderMap, wall: SystemTime) -> Option<Duration> {
        let mut fields = headers.get_all(RETRY_AFTER).iter().map(HeaderValue::as_bytes);
        // Few responses have any, and those should not pay for it.
        let first = fields.next()?;
        let date = headers.get(DATE).map(HeaderValue::as_bytes);
        Self::parse(std::iter::once(first).chain(fields), date, wall)
    }
}

fn parse_one(field: &[u8], date: Option<&[u8]>, wall: SystemTime) -> Option<Duration> {
    let text = latin1(field);
    let text = text.trim();
    let wait = match parse_seconds(text) {
        Some(wait) => wait,
        None => {
            let until = since_epoch(mail_date::parse(text)?);
            let own = date.and_then(|date| mail_date::parse(latin1(date).trim()));
            let now = own
                .map(since_epoch)
                .or_else(|| wall.duration_since(SystemTime::UNIX_EPOCH).ok())
                .unwrap_or_default();
            until.saturating_sub(now)
        }
    };
    Some(wait.min(RetryAfter::LONGEST))
}

/// Digits, or digits with a fraction; no sign, no exponent, no `inf`.
fn parse_seconds(text: &str) -> Option<Duration> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, "0"));
    let only_digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    if text.starts_with('.') || fraction.is_empty() || whole.is_empty() {
        return None;
    }
    if !only_digits(whole) || !only_digits(fraction) {
        return None;
    }
    // Digits that do not fit are a very long time.
    let seconds = whole.parse().unwrap_or(RetryAfter::LONGEST.as_secs());
    let nanos = fraction
        .bytes()
        .chain(std::iter::repeat(b'0'))
        .take(9)
        .fold(0, |nanos, digit| nanos * 10 + u32::from(digit - b'0'));
    Some(Duration::new(seconds, nanos))
}

fn since_epoch(seconds: i64) -> Duration {
    Duration::from_secs(u64::try_from(seconds).unwrap_or(0))
}

/// Field bytes as text, each byte as the code point of its number; never fails.
fn latin1(bytes: &[u8]) -> Cow<'_, str> {
    match std::str::from_utf8(bytes) {
        Ok(text) if text.is_ascii() => Cow::Borrowed(text),
        _ => bytes.iter().copied().map(char::from).collect(),
    }
}

/// What to do with a wait above `retry_after_max`.
///
/// urllib3 always clamps, which knocks at a server's door again hours before it wants to be asked.
#[allow(clippy::exhaustive_enums, reason = "the three answers there are")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LongWait {
    /// Wait `retry_after_max` (urllib3, and the default of a `Session`).
    Clamp,
    /// Wait as long as asked, up to this much (the default of the worker pool, 10 minutes); what
    /// asks for more fails as under [`Fail`](Self::Fail).
    Park(Duration),
    /// Give up at once, with [`Exhausted::RetryAfter`](super::Exhausted::RetryAfter) carrying the
    /// wanted wait. As with every other end of the budgets, `raise_on_status` says whether that is
    /// an error or the last response.
    Fail,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::secs;
    use proptest::prelude::*;

    const NOW: u64 = 1_750_000_000;

    fn wall() -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_secs(NOW)
    }

    fn parse(field: &str) -> Option<Duration> {
        RetryAfter::parse([field.as_bytes()], None, wall())
    }

    #[test]
    fn numbers() {
        for (field, wanted) in [
            ("0", 0.0),
            ("120", 120.0),
            (" 007\t", 7.0),
            ("0.5", 0.5),
            ("1.250", 1.25),
            ("86400", 86_400.0),
            ("2.0000000009", 2.0),
        ] {
            assert_eq!(parse(field), Some(secs(wanted)), "{field}");
        }
        for huge in ["9999999999", "99999999999999999999999999", "99999999999999999999999.5"] {
            assert_eq!(parse(huge), Some(RetryAfter::LONGEST), "{huge}");
        }
    }

    #[test]
    fn nonsense_counts_as_absent() {
        for field in [
            "",
            " ",
            ".",
            "-5",
            "-0",
            "+5",
            "1m0s",
            "5s",
            "soon",
            "NaN",
            "inf",
            "infinity",
            "1e9",
            "0x10",
            "1,5",
            "5 6",
            ".5",
            "5.",
            "1.5.0",
            "1.-5",
            "\u{661}\u{662}",
        ] {
            assert_eq!(parse(field), None, "{field:?}");
        }
    }

    #[test]
    fn dates_in_all_three_forms() {
        for field in [
            "Sun, 15 Jun 2025 15:07:40 GMT",
            "Sunday, 15-Jun-25 15:07:40 GMT",
            "Sun Jun 15 15:07:40 2025",
        ] {
            assert_eq!(parse(field), Some(secs(60.0)), "{field}");
        }
        for past in ["Wed, 21 Oct 2015 07:28:00 GMT", "Sun, 15 Jun 2025 15:06:40 GMT"] {
            assert_eq!(parse(past), Some(Duration::ZERO), "{past}");
        }
    }

    #[test]
    fn a_date_is_measured_against_the_servers_own() {
        let field: &[u8] = b"Sun, 15 Jun 2025 16:06:45 GMT";
        let parse = |date: Option<&[u8]>, wall| RetryAfter::parse([field], date, wall);
        let date: Option<&[u8]> = Some(b"Sun, 15 Jun 2025 16:06:40 GMT");
        for skew in [0, 3600, 7200] {
            let wall = SystemTime::UNIX_EPOCH + Duration::from_secs(NOW - 3600 + skew);
            assert_eq!(parse(date, wall), Some(secs(5.0)));
        }
        assert_eq!(parse(Some(b"yesterday"), wall()), Some(secs(3605.0)));
        let before_epoch = SystemTime::UNIX_EPOCH - Duration::from_secs(1);
        assert_eq!(parse(None, before_epoch), Some(secs(1_750_003_605.0)));
    }

    #[test]
    fn of_several_fields_the_largest_counts() {
        let fields: [&[u8]; 4] = [b"3", b"soon", b"Sun, 15 Jun 2025 15:06:50 GMT", b"0.5"];
        assert_eq!(RetryAfter::parse(fields, None, wall()), Some(secs(10.0)));
        assert_eq!(RetryAfter::parse([b"x".as_slice()], None, wall()), None);
        assert_eq!(RetryAfter::parse([], None, wall()), None);
    }

    #[test]
    fn fields_of_a_response() {
        let mut headers = HeaderMap::new();
        assert_eq!(RetryAfter::of(&headers, wall()), None);
        headers.append(RETRY_AFTER, HeaderValue::from_static("3"));
        headers.append(RETRY_AFTER, HeaderValue::from_static("Sun, 15 Jun 2025 16:06:45 GMT"));
        headers.insert(DATE, HeaderValue::from_static("Sun, 15 Jun 2025 16:06:40 GMT"));
        assert_eq!(RetryAfter::of(&headers, wall()), Some(secs(5.0)));
    }

    proptest! {
        #[test]
        fn no_bytes_panic_or_exceed_the_longest(
            field in proptest::collection::vec(any::<u8>(), 0..60),
            date in proptest::option::of(proptest::collection::vec(any::<u8>(), 0..40)),
        ) {
            if let Some(wait) = RetryAfter::parse([&field[..]], date.as_deref(), wall()) {
                prop_assert!(wait <= RetryAfter::LONGEST);
            }
        }

        #[test]
        fn nothing_that_looks_like_a_date_panics(
            field in "(Sun|Sunday|sun)?,? ?-?[0-9]{1,20}[ -](Jun|jun|15|Foo)[ -][0-9]{0,12},? [0-9:.+-]{0,12} ?([+-][0-9]{1,12}|GMT|est)?",
        ) {
            prop_assert!(parse(&field).is_none_or(|wait| wait <= RetryAfter::LONGEST));
        }

        #[test]
        fn whole_seconds_are_taken_as_they_are(seconds in 0_u64..3_000_000_000) {
            prop_assert_eq!(parse(&seconds.to_string()), Some(Duration::from_secs(seconds)));
        }
    }
}
