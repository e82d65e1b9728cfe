//! Numbers as people read them, the same in every view.

use indicatif::HumanBytes;
use longhaul::batch::{Unit, Verdict};
use longhaul::policy::format_duration;
use longhaul::secs;
use std::time::Duration;

/// Milliseconds: with decimals below ten, as a duration beyond a second.
pub(crate) fn time(ms: f64) -> String {
    match ms {
        0.0 => "0 ms".to_owned(),
        ms if ms < 10.0 => format!("{ms:.2} ms"),
        ms if ms < 1000.0 => format!("{ms:.0} ms"),
        ms if ms < 600_000.0 => format!("{:.2} s", ms / 1000.0),
        // Nobody reads seconds behind hours.
        ms if ms < 36_000_000.0 => format_duration(Duration::from_secs((ms / 1000.0) as u64)),
        ms => format_duration(Duration::from_secs((ms / 60_000.0) as u64 * 60)),
    }
}

/// A width of steps.
pub(crate) fn width(seconds: u64) -> String {
    format_duration(secs(seconds as f64))
}

/// A share from 0 to 1.
pub(crate) fn percent(share: f64) -> String {
    // A few in a million are not none.
    if share > 0.0 && share < 0.000_5 {
        return format!("{:.3} %", 100.0 * share);
    }
    format!("{:.1} %", 100.0 * share)
}

/// Bytes.
pub(crate) fn bytes(count: u64) -> String {
    HumanBytes(count).to_string()
}

/// Something per second.
pub(crate) fn rate(per_second: f64) -> String {
    if per_second < 10.0 { format!("{per_second:.2}") } else { format!("{per_second:.1}") }
}

/// A figure of a comparison.
pub(crate) fn figure(value: f64, unit: Unit) -> String {
    let magnitude = value.abs();
    let text = match unit {
        Unit::Count => format!("{magnitude:.0}"),
        Unit::Share => percent(magnitude),
        Unit::Millis => time(magnitude),
        Unit::PerSecond => format!("{} /s", rate(magnitude)),
        Unit::Bytes => bytes(magnitude as u64),
        _ => format!("{magnitude:.2}"),
    };
    if value < 0.0 { format!("−{text}") } else { text }
}

/// A change of it, with its direction: `▲ +12 ms`.
pub(crate) fn change(value: f64, unit: Unit) -> String {
    let text = figure(value, unit);
    match value {
        value if value > 0.0 => format!("▲ +{text}"),
        value if value < 0.0 => format!("▼ {text}"),
        _ => text,
    }
}

/// A change in percent, with its sign.
pub(crate) fn signed_percent(percent: f64) -> String {
    format!("{percent:+.1} %").replace('-', "−")
}

/// What things the unit counts; empty where the figure says it.
pub(crate) fn unit(unit: Unit) -> &'static str {
    match unit {
        Unit::PerThousandUrls => "per 1000 URLs",
        Unit::PerThousandAttempts => "per 1000 attempts",
        _ => "",
    }
}

/// A verdict.
pub(crate) fn verdict(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Better => "better",
        Verdict::Worse => "worse",
        Verdict::Same => "same",
        _ => "",
    }
}

/// A moment of a report, to the minute or second, without what every one of them has.
pub(crate) fn moment(rfc3339: &str) -> String {
    rfc3339.trim_end_matches('Z').replacen('T', " ", 1)
}

/// A text of at most so many characters.
pub(crate) fn short(text: &str, most: usize) -> String {
    if text.chars().count() <= most {
        return text.to_owned();
    }
    text.chars().take(most.saturating_sub(1)).chain(['…']).collect()
}

/// A text without control characters and without marks that turn the direction of writing.
pub(crate) fn printable(text: &str) -> String {
    let steers =
        |c: char| c.is_control() || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    text.chars().map(|c| if steers(c) { char::REPLACEMENT_CHARACTER } else { c }).collect()
}

/// The name of a phase for people.
pub(crate) fn phase(phase: &str) -> &str {
    match phase {
        "dns" => "name lookup",
        "connect" => "connect",
        "proxy" => "proxy",
        "tls" => "TLS",
        "first_byte" => "first byte",
        "attempt" => "attempt",
        "url" => "whole URL",
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_as_people_read_them() {
        for (ms, wanted) in [
            (0.0, "0 ms"),
            (0.35, "0.35 ms"),
            (12.4, "12 ms"),
            (999.4, "999 ms"),
            (1234.0, "1.23 s"),
            (334_800.0, "334.80 s"),
            (3_700_000.0, "1 h 1 min 40 s"),
            (90_061_000.0, "1 d 1 h 1 min"),
        ] {
            assert_eq!(time(ms), wanted);
        }
        assert_eq!(change(-0.25, Unit::Share), "▼ −25.0 %");
        assert_eq!(change(1500.0, Unit::Millis), "▲ +1.50 s");
        assert_eq!(change(0.0, Unit::Count), "0");
        assert_eq!(moment("2026-03-01T22:00:00Z"), "2026-03-01 22:00:00");
        assert_eq!((short("abcdef", 4), short("abcd", 4)), ("abc…".into(), "abcd".into()));
    }
}
