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
    let Some(seconds) = vector.out["seconds"].as_f64() else {
        // urllib3 raises. What is done with a field that nobody can read is for the retry_trace
        // vectors; where there is an answer here, the rule says which.
        let (rule, wanted) = if is_decimal(value) {
            let whole = value.trim().parse::<f64>().unwrap();
            (Some("decimal-retry-after"), Some(secs(whole).min(RetryAfter::LONGEST)))
        } else if is_endless(value) {
            (Some("endless-retry-after"), Some(RetryAfter::LONGEST))
        } else {
            (None, None)
        };
        return Verdict::new(parsed.is_none(), rule.filter(|_| parsed == wanted), story);
    };
    let sleeps = parsed.is_some_and(|wait| !wait.min(max).is_zero());
    let same = parsed.map(|wait| wait.min(max)) == Some(secs(seconds));
    Verdict::new(same && sleeps == vector.out["sleeps"], None, story)
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
