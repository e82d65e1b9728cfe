//! The first section: what became of the URLs, in numbers and small tables.

use super::figure::id_of;
use super::table::{Column, Table, number, part};
use crate::report_command::Run;
use crate::report_command::words::{bytes, moment, percent, rate, time};
use maud::{Markup, html};
use std::collections::BTreeMap;

/// Key figures, notes, and what URLs ended as.
pub(super) fn content(runs: &[Run<'_>]) -> Markup {
    html! {
        @for run in runs {
            @if !run.letter.is_empty() { h3 { "Run " (run.letter) } }
            (figures(*run))
            @if !run.report.notes.is_empty() {
                div.notes {
                    p { strong { "To read these numbers right:" } }
                    ul { @for note in &run.report.notes { li { (note) } } }
                }
            }
            div.tables { (tables(*run)) }
        }
    }
}

fn figures(run: Run<'_>) -> Markup {
    let report = run.report;
    let share = |part: u64| percent(part as f64 / report.urls.max(1) as f64);
    let count = |pointer: &str, count: u64| number(run, pointer, count, grouped(count));
    html! {
        dl.figures {
            div { dt { "URLs" } dd { (count("/urls", report.urls)) } }
            div.good { dt { "ended well" } dd { (count("/ok", report.ok)) " " small { (share(report.ok)) } } }
            div.bad[report.failed > 0] {
                dt { "failed" } dd { (count("/failed", report.failed)) " " small { (share(report.failed)) } }
            }
            div { dt { "recovered by a retry" } dd { (count("/recovered", report.recovered)) " " small { (share(report.recovered)) } } }
            div { dt { "attempts" } dd {
                (count("/attempts", report.attempts)) " "
                small { (count("/attempts_unlisted", report.attempts_unlisted)) " not listed" }
            } }
            div { dt { "URLs per second" } dd { (number(run, "/rate", report.rate, rate(report.rate))) } }
            div { dt { "from first to last" } dd {
                (number(run, "/span_ms", report.span_ms, time(report.span_ms)))
                @if let (Some(began), Some(ended)) = (&report.began, &report.ended) {
                    " " small { (moment(began)) " to " (moment(ended)) " UTC" }
                }
            } }
            div { dt { "bodies on the wire" } dd {
                (number(run, "/bytes_wire", report.bytes_wire, bytes(report.bytes_wire))) " "
                small { (number(run, "/bytes_body", report.bytes_body, bytes(report.bytes_body))) " decoded" }
            } }
        }
    }
}

fn tables(run: Run<'_>) -> Markup {
    let report = run.report;
    let statuses: BTreeMap<String, u64> =
        report.statuses.iter().map(|(status, count)| (status.to_string(), *count)).collect();
    html! {
        (counts(run, "classes", "URLs by outcome", "outcome", &report.classes))
        (counts(run, "statuses", "URLs by the last status", "status", &statuses))
        (counts(run, "exceptions", "URLs by exception", "exception", &report.exceptions))
    }
}

fn counts(
    run: Run<'_>,
    name: &str,
    caption: &str,
    what: &'static str,
    counts: &BTreeMap<String, u64>,
) -> Markup {
    let columns = [Column::Words(what), Column::Numbers("URLs"), Column::Numbers("share")];
    let mut table = Table::new(id_of(run, name), caption, &columns);
    let mut list: Vec<_> = counts.iter().collect();
    list.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
    for (key, count) in list {
        let pointer = format!("/{name}/{}", part(key));
        let share = *count as f64 / run.report.urls.max(1) as f64;
        table.rows.push(vec![
            html! { (key) },
            number(run, pointer, count, grouped(*count)),
            html! { data value=(share) { (percent(share)) } },
        ]);
    }
    html! { @if !counts.is_empty() { (table.render()) } }
}

/// Digits in threes, with spaces that do not break.
pub(super) fn grouped(count: u64) -> String {
    let digits = count.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push('\u{202f}');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_in_threes() {
        for (count, wanted) in [(0, "0"), (999, "999"), (1000, "1\u{202f}000")] {
            assert_eq!(grouped(count), wanted);
        }
        assert_eq!(grouped(u64::MAX).replace('\u{202f}', ""), u64::MAX.to_string());
    }
}
