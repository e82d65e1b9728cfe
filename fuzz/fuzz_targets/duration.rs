//! Durations as people write them.
#![no_main]

use longhaul::policy::{format_duration, parse_duration};

libfuzzer_sys::fuzz_target!(|text: &str| {
    if let Ok(Some(duration)) = parse_duration(text) {
        let shown = format_duration(duration);
        assert!(parse_duration(&shown).is_ok(), "{text:?} is shown as {shown:?}");
    }
});
