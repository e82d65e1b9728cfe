//! Durations as people write them: none is zero.
#![no_main]

use longhaul::policy::{format_duration, parse_duration};

libfuzzer_sys::fuzz_target!(|text: &str| {
    match parse_duration(text) {
        Ok(Some(duration)) => {
            assert!(!duration.is_zero());
            assert!(!format_duration(duration).is_empty());
        }
        Ok(None) => assert!(text.trim().eq_ignore_ascii_case("none")),
        Err(error) => drop(error.to_string()),
    }
});
