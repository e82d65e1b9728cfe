//! Retry-After, one field at a time.

use std::time::{Duration, SystemTime};

use longhaul::policy::RetryAfter;
use longhaul::secs;

use crate::verdict::{Vector, Verdict, text, wire};

pub(crate) fn wall(vector: &Vector) -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(vector.given["now"].as_u64().unwrap())
}

pub(crate) fn retry_after(vector: &Vector) -> Option<Verdict> {
    let value = text(&vector.given["value"]);
    let max = Duration::from_secs(vector.given["retry_after_max"].as_u64().unwrap());
    let parsed = RetryAfter::parse([&wire(value)[..]], None, wall(vector));
    let story = || format!("{value:?} is {parsed:?}, not {}", vector.out);
    if let Some(seconds) = vector.out["seconds"].as_f64() {
        let parsed = parsed.map(|wait| wait.min(max));
        let sleeps = parsed.is_some_and(|wait| !wait.is_zero());
        let same = parsed == Some(secs(seconds)) && sleeps == vector.out["sleeps"];
        return Verdict::new(same, retry_after_rule(value), story);
    }
    // Where urllib3 raises there is an answer here, and each rule says which.
    let (name, wanted) = if is_decimal(value) {
        let whole = value.trim().parse::<f64>().unwrap();
        ("decimal-retry-after", Some(secs(whole).min(RetryAfter::LONGEST)))
    } else if is_endless(value) {
        ("endless-retry-after", Some(RetryAfter::LONGEST))
    } else {
        ("unreadable-retry-after", None)
    };
    match parsed == wanted {
        true => Some(Verdict::Aside(name)),
        false => Some(Verdict::Failed(story())),
    }
}

/// Where urllib3 has an answer and ours may be another.
fn retry_after_rule(_value: &str) -> Option<&'static str> {
    None
}

pub(crate) fn is_decimal(value: &str) -> bool {
    value.trim().split_once('.').is_some_and(|(whole, fraction)| {
        let digits = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
        digits(whole) && digits(fraction)
    })
}

/// More digits than Python is willing to read.
fn is_endless(value: &str) -> bool {
    value.trim().bytes().all(|b| b.is_ascii_digit()) && value.trim().len() > 4300
}
