//! The tables at the end of a run, on standard error.
//!
//! A run is judged by four questions: what became of the URLs, what went wrong and under which name
//! a `requests` log would show it, which way it went, and how long it took against what was
//! promised. Each is a table, and an empty one is left out.

use crate::tables::{align_numbers, table};
use comfy_table::Table;
use longhaul::batch::{ExitSamples, Summary, Way};
use longhaul::policy::format_duration;
use longhaul::proxy::ProxyStats;
use longhaul::secs;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::Duration;

/// Of more proxies or exits only the busiest are shown; the records have them all.
const MOST_WAYS: usize = 20;

/// The tables of `summary`; of `proxies` the health at the end.
pub(crate) fn render(summary: &Summary, proxies: &[ProxyStats]) -> String {
    let mut text = String::new();
    let tables = [
        outcomes(summary),
        counts("exception (requests' name)", "URLs", &by_count(&summary.exceptions), summary.urls),
        ways("proxy", &summary.proxies, proxies),
        ways("exit", &summary.exits, &[]),
        summary.exit_samples.as_ref().map(samples),
        Some(times(summary)),
    ];
    for table in tables.into_iter().flatten() {
        let _ = writeln!(text, "{}\n", table.trim_fmt());
    }
    if let Some(reason) = &summary.stopped {
        let _ = writeln!(text, "stopped: {reason}");
    }
    text.truncate(text.trim_end().len());
    text
}

fn outcomes(summary: &Summary) -> Option<Table> {
    let mut table = counts("outcome", "URLs", &by_count(&summary.classes), summary.urls)?;
    let mut row = |name: &str, count: u64, note: String| {
        table.add_row(vec![name.to_owned(), count.to_string(), note]);
    };
    row("all", summary.urls, String::new());
    for (name, count) in [
        ("recovered by a retry", summary.recovered),
        ("not finished", summary.unfinished),
        ("recorded before", summary.ok_before.saturating_add(summary.failed_before)),
        ("repeated lines", summary.repeated),
    ] {
        if count > 0 {
            row(name, count, String::new());
        }
    }
    row(
        "attempts",
        summary.attempts,
        format!("{:.2} a URL", ratio(summary.attempts, summary.urls)),
    );
    if let Some(found) = summary.concurrency {
        let lowered = match found.most {
            0 => "the run was too short to find out".to_owned(),
            most => format!("{most} at most, lowered {} times", found.back_offs),
        };
        row("at once, as found", found.last, lowered);
    }
    Some(table)
}

fn ways(name: &str, ways: &BTreeMap<String, Way>, health: &[ProxyStats]) -> Option<Table> {
    let mut header = vec![name, "attempts", "answered", "refused", "failed", "URLs ok"];
    if !health.is_empty() {
        header.push("state");
    }
    let mut table = table(&header);
    let mut list: Vec<_> = ways.iter().collect();
    list.sort_by_key(|(_, numbers)| std::cmp::Reverse(numbers.attempts));
    for (way, numbers) in list.iter().take(MOST_WAYS) {
        let mut row = vec![(*way).clone()];
        row.extend(
            [numbers.attempts, numbers.answered, numbers.refused, numbers.failed, numbers.ok]
                .map(|number| number.to_string()),
        );
        row.extend(health.iter().find(|line| line.proxy == **way).map(|line| {
            if line.auth_refused { "credentials refused" } else { line.state }.to_owned()
        }));
        table.add_row(row);
    }
    if let Some(more) = list.len().checked_sub(MOST_WAYS).filter(|more| *more > 0) {
        table.add_row(vec![format!("({more} more)")]);
    }
    align_numbers(&mut table, 1..6);
    (!ways.is_empty()).then_some(table)
}

/// Whether rotation rotates.
fn samples(exits: &ExitSamples) -> Table {
    let mut table = table(&["exits sampled", "", ""]);
    let percent = |share: f64| format!("{:.1} %", 100.0 * share);
    let top = exits.top.clone().unwrap_or_default();
    for (name, number, note) in [
        ("samples", exits.samples.to_string(), String::new()),
        ("failed", exits.failed.to_string(), String::new()),
        ("different addresses", exits.distinct.to_string(), String::new()),
        ("repeated", percent(exits.repeat_rate), String::new()),
        ("by the most frequent", percent(exits.top_share), top),
    ] {
        table.add_row(vec![name.to_owned(), number, note]);
    }
    align_numbers(&mut table, 1..2);
    table
}

fn times(summary: &Summary) -> Table {
    let mut table = table(&["time", "", ""]);
    let mut row = |name: &str, milliseconds: Option<f64>, note: String| {
        if let Some(milliseconds) = milliseconds {
            let time = format_duration(rounded(secs(milliseconds / 1000.0)));
            table.add_row(vec![name.to_owned(), time, note]);
        }
    };
    row("run", Some(summary.elapsed_ms), format!("{:.1} URLs a second", summary.rate));
    row("p50", summary.p50_ms, String::new());
    row("p95", summary.p95_ms, String::new());
    row("p99", summary.p99_ms, String::new());
    if let Some(longest) = &summary.longest {
        row("longest URL", Some(longest.elapsed_ms), longest.url.clone());
    }
    row("promised at most", summary.promised_ms, String::new());
    align_numbers(&mut table, 1..2);
    table
}

/// Most frequent first.
fn by_count(counts: &BTreeMap<String, u64>) -> Vec<(&str, u64)> {
    let mut list: Vec<_> = counts.iter().map(|(name, count)| (name.as_str(), *count)).collect();
    list.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    list
}

/// A table of names, counts and shares; `None` where there is nothing to count.
fn counts(name: &str, unit: &str, lines: &[(&str, u64)], all: u64) -> Option<Table> {
    let mut table = table(&[name, unit, "share"]);
    for (name, count) in lines {
        let share = format!("{:.1} %", 100.0 * ratio(*count, all));
        table.add_row(vec![(*name).to_owned(), count.to_string(), share]);
    }
    align_numbers(&mut table, 1..3);
    (!lines.is_empty()).then_some(table)
}

#[allow(clippy::cast_precision_loss, reason = "for display")]
fn ratio(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}

/// To the millisecond: nobody reads on.
fn rounded(time: Duration) -> Duration {
    Duration::from_millis(u64::try_from(time.as_millis()).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn finished() -> Summary {
        let mut fields = serde_json::to_value(Summary::default()).unwrap();
        let way = |attempts, answered, failed, ok| json!({"attempts": attempts, "answered": answered, "refused": 3, "failed": failed, "ok": ok});
        fields.as_object_mut().unwrap().extend([
            ("urls".to_owned(), json!(1200)),
            ("classes".to_owned(), json!({"ok": 1080, "permanent": 59, "refused": 61})),
            ("recovered".to_owned(), json!(200)),
            ("attempts".to_owned(), json!(1500)),
            ("exceptions".to_owned(), json!({"ConnectionError": 12, "ReadTimeout": 24})),
            ("proxies".to_owned(), json!({"http://***@127.0.0.1:3128": way(1500, 1440, 60, 1080)})),
            ("exits".to_owned(), json!({"192.0.2.1": way(1500, 1440, 60, 1080)})),
            (
                "exit_samples".to_owned(),
                json!({"samples": 40, "failed": 1, "distinct": 12, "repeat_rate": 0.7,
                    "top": "192.0.2.1", "top_share": 0.125}),
            ),
            ("elapsed_ms".to_owned(), json!(20_000.0)),
            ("rate".to_owned(), json!(60.0)),
            ("p50_ms".to_owned(), json!(3.25)),
            ("p95_ms".to_owned(), json!(900.0)),
            ("p99_ms".to_owned(), json!(2100.0)),
            ("longest".to_owned(), json!({"id": "1", "url": "http://a/1", "elapsed_ms": 4321.0})),
            ("promised_ms".to_owned(), json!(159_000.0)),
        ]);
        serde_json::from_value(fields).unwrap()
    }

    /// The cells of each line, without rulers.
    fn rows(text: &str) -> Vec<String> {
        text.lines()
            .map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "))
            .filter(|line| line.chars().any(char::is_alphanumeric))
            .collect()
    }

    #[test]
    fn every_question_has_its_answer() {
        let time = |ms| format_duration(Duration::from_millis(ms));
        let health = ProxyStats {
            proxy: "http://***@127.0.0.1:3128".to_owned(),
            state: "good",
            ..ProxyStats::default()
        };
        assert_eq!(
            rows(&render(&finished(), &[health])),
            [
                "outcome URLs share".to_owned(),
                "ok 1080 90.0 %".to_owned(),
                "refused 61 5.1 %".to_owned(),
                "permanent 59 4.9 %".to_owned(),
                "all 1200".to_owned(),
                "recovered by a retry 200".to_owned(),
                "attempts 1500 1.25 a URL".to_owned(),
                "exception (requests' name) URLs share".to_owned(),
                "ReadTimeout 24 2.0 %".to_owned(),
                "ConnectionError 12 1.0 %".to_owned(),
                "proxy attempts answered refused failed URLs ok state".to_owned(),
                "http://***@127.0.0.1:3128 1500 1440 3 60 1080 good".to_owned(),
                "exit attempts answered refused failed URLs ok".to_owned(),
                "192.0.2.1 1500 1440 3 60 1080".to_owned(),
                "exits sampled".to_owned(),
                "samples 40".to_owned(),
                "failed 1".to_owned(),
                "different addresses 12".to_owned(),
                "repeated 70.0 %".to_owned(),
                "by the most frequent 12.5 % 192.0.2.1".to_owned(),
                "time".to_owned(),
                format!("run {} 60.0 URLs a second", time(20_000)),
                format!("p50 {}", time(3)),
                format!("p95 {}", time(900)),
                format!("p99 {}", time(2100)),
                format!("longest URL {} http://a/1", time(4321)),
                format!("promised at most {}", time(159_000)),
            ]
        );
    }

    #[test]
    fn what_was_found_out_is_told() {
        let mut fields = serde_json::to_value(finished()).unwrap();
        fields["concurrency"] = json!({"last": 37, "most": 40, "back_offs": 5});
        let summary: Summary = serde_json::from_value(fields.clone()).unwrap();
        let rows = rows(&render(&summary, &[]));
        assert!(rows.contains(&"at once, as found 37 40 at most, lowered 5 times".to_owned()));

        fields["concurrency"] = json!({"last": 8, "most": 0, "back_offs": 0});
        let summary: Summary = serde_json::from_value(fields).unwrap();
        let rows = self::rows(&render(&summary, &[]));
        let short = "at once, as found 8 the run was too short to find out";
        assert!(rows.contains(&short.to_owned()), "{rows:?}");
    }

    #[test]
    fn nothing_is_said_about_nothing() {
        let mut summary = Summary::default();
        summary.stopped = Some("a proxy refused the credentials".to_owned());
        let rows = rows(&render(&summary, &[]));
        assert_eq!(rows.first().map(String::as_str), Some("time"));
        assert_eq!(
            rows.last().map(String::as_str),
            Some("stopped: a proxy refused the credentials")
        );
    }
}
