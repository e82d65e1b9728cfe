//! Dates of cookies: RFC 6265bis 5.1.1, which takes almost anything a server writes.

use std::time::{Duration, SystemTime};

const MONTHS: [&str; 12] =
    ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];

/// The time that `text` means, or `None` where it is no date.
pub(super) fn parse(text: &[u8]) -> Option<SystemTime> {
    let (mut time, mut day, mut month, mut year) = (None, None, None, None);
    for token in text.split(|byte| is_delimiter(*byte)) {
        if time.is_none() {
            time = time_of(token);
            if time.is_some() {
                continue;
            }
        }
        if day.is_none() {
            day = leading_number(token, 1, 2);
            if day.is_some() {
                continue;
            }
        }
        if month.is_none() {
            month = month_of(token);
            if month.is_some() {
                continue;
            }
        }
        if year.is_none() {
            year = leading_number(token, 2, 4);
        }
    }
    let ((hour, minute, second), day, month) = (time?, day?, month?);
    let year = match year? {
        short @ 70..=99 => short + 1900,
        short @ 0..=69 => short + 2000,
        full => full,
    };
    if year < 1601 || hour > 23 || minute > 59 || second > 59 {
        return None;
    }
    if !(1..=days_in(year, month)).contains(&day) {
        return None;
    }
    let seconds = u64::from(hour) * 3600 + u64::from(minute) * 60 + u64::from(second);
    let days = days_from_epoch(i64::from(year), i64::from(month), i64::from(day));
    let begin = match u64::try_from(days) {
        Ok(days) => SystemTime::UNIX_EPOCH.checked_add(Duration::from_secs(days * 86_400)),
        Err(_) => {
            SystemTime::UNIX_EPOCH.checked_sub(Duration::from_secs(days.unsigned_abs() * 86_400))
        }
    };
    begin?.checked_add(Duration::from_secs(seconds))
}

fn is_delimiter(byte: u8) -> bool {
    matches!(byte, 0x09 | 0x20..=0x2f | 0x3b..=0x40 | 0x5b..=0x60 | 0x7b..=0x7e)
}

/// A number of `least` to `most` digits at the start, followed by no further digit.
fn leading_number(token: &[u8], least: usize, most: usize) -> Option<u32> {
    let digits = token.iter().take_while(|byte| byte.is_ascii_digit()).count();
    if !(least..=most).contains(&digits) {
        return None;
    }
    let digits = token.get(..digits)?;
    Some(digits.iter().fold(0, |number, digit| number * 10 + u32::from(digit - b'0')))
}

fn time_of(token: &[u8]) -> Option<(u32, u32, u32)> {
    let mut fields = token.splitn(3, |byte| *byte == b':');
    let whole =
        |field: &[u8]| leading_number(field, 1, 2).filter(|_| field.iter().all(u8::is_ascii_digit));
    let hour = whole(fields.next()?)?;
    let minute = whole(fields.next()?)?;
    Some((hour, minute, leading_number(fields.next()?, 1, 2)?))
}

fn month_of(token: &[u8]) -> Option<u32> {
    let name = token.get(..3)?;
    let index = MONTHS.iter().position(|month| name.eq_ignore_ascii_case(month.as_bytes()))?;
    u32::try_from(index + 1).ok()
}

fn days_in(year: u32, month: u32) -> u32 {
    match month {
        2 if year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400)) => {
            29
        }
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Days since 1 January 1970 in the Gregorian calendar, counted in years that begin in March.
fn days_from_epoch(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let months_since_march = (month + 9) % 12;
    let leap_days = year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400);
    // 719 468 days lie between 1 March of the year 0 and the epoch.
    365 * year + leap_days + (153 * months_since_march + 2) / 5 + day - 1 - 719_468
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn seconds(text: &str) -> Option<u64> {
        parse(text.as_bytes()).map(|t| t.duration_since(SystemTime::UNIX_EPOCH).unwrap().as_secs())
    }

    #[test]
    fn the_forms_that_servers_write() {
        for (text, wanted) in [
            ("Sun, 06 Nov 1994 08:49:37 GMT", Some(784_111_777)),
            ("Sunday, 06-Nov-94 08:49:37 GMT", Some(784_111_777)),
            ("Sun Nov  6 08:49:37 1994", Some(784_111_777)),
            ("6 nov 94 8:49:37", Some(784_111_777)),
            ("Thu, 01-Jan-1970 00:00:00 GMT", Some(0)),
            ("Thu, 01 Jan 70 00:00:00 GMT", Some(0)),
            ("Tue, 29 Feb 2000 00:00:00 GMT", Some(951_782_400)),
            ("Fri, 31 Dec 9999 23:59:59 GMT", Some(253_402_300_799)),
            ("Wed, 29 Feb 1900 00:00:00 GMT", None),
            ("31 Jun 2025 00:00:00", None),
            ("1 Jan 1600 00:00:00", None),
            ("1 Jan 2025 24:00:00", None),
            ("1 Jan 2025", None),
            ("garbage", None),
            ("0", None),
            ("", None),
        ] {
            assert_eq!(seconds(text), wanted, "{text}");
        }
        assert!(parse(b"1 Jan 1969 00:00:00").unwrap() < SystemTime::UNIX_EPOCH);
    }

    proptest! {
        #[test]
        fn every_second_survives_its_http_date(second in 0..253_402_300_799_u64) {
            let time = SystemTime::UNIX_EPOCH + Duration::from_secs(second);
            prop_assert_eq!(parse(httpdate::fmt_http_date(time).as_bytes()), Some(time));
        }

        #[test]
        fn any_text_is_a_date_or_none(text in "[0-9a-zA-Z:, -]{0,40}|.{0,40}") {
            let _ = parse(text.as_bytes());
        }
    }
}
