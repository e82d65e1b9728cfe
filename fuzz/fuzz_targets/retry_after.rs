//! Retry-After: any number of fields, with and without a `Date`.
#![no_main]

use std::time::{Duration, SystemTime};

use longhaul::policy::RetryAfter;

libfuzzer_sys::fuzz_target!(|input: (Vec<&[u8]>, Option<&[u8]>, u32)| {
    let (fields, date, now) = input;
    let wall = SystemTime::UNIX_EPOCH + Duration::from_secs(now.into());
    if let Some(wait) = RetryAfter::parse(fields, date, wall) {
        assert!(wait <= RetryAfter::LONGEST);
    }
});
