//! A report as tables.
//!
//! Colours are told apart by their words as well, and are left out where nobody would see them.

use super::words::{self, bytes, moment, percent, rate, time};
use super::{Run, Told};
use crate::tables::{align_numbers, table};
use comfy_table::{Attribute, Cell, Color, ContentArrangement, Table};
use longhaul::batch::{Comparison, Report, Row, Rows, Verdict};
use std::collections::BTreeMap;

/// Of long tables so many rows are shown; the object and the page have more.
const MOST_ROWS: usize = 10;

/// So many steps of an hour are shown.
const MOST_HOURS: usize = 24;

/// All of it, for lines of this width.
pub(super) fn render(told: &Told, width: usize, colours: bool) -> String {
    let look = Look { width: u16::try_from(width).unwrap_or(u16::MAX), colours };
    let mut parts = Vec::new();
    if let Some(comparison) = told.comparison() {
        parts.push(look.draw(differences(comparison)));
        for run in told.runs() {
            let (letter, source) = (run.letter, &run.report.source);
            parts.push(look.notes(&format!("{letter} is {source}"), &run.report.notes));
        }
    } else {
        for Run { report, .. } in told.runs() {
            parts.extend(tables(report).into_iter().flatten().map(|table| look.draw(table)));
            parts.push(look.notes("notes", &report.notes));
        }
    }
    parts.retain(|part| !part.is_empty());
    parts.join("\n\n")
}

struct Look {
    width: u16,
    colours: bool,
}

impl Look {
    fn draw(&self, mut table: Table) -> String {
        table.set_content_arrangement(ContentArrangement::Dynamic).set_width(self.width);
        if self.colours {
            table.enforce_styling();
        } else {
            table.force_no_tty();
        }
        table.trim_fmt()
    }

    /// What has to be known to read the numbers right.
    fn notes(&self, title: &str, notes: &[String]) -> String {
        let mut table = table(&[title]);
        notes.iter().for_each(|note| {
            table.add_row([note]);
        });
        if title == "notes" && notes.is_empty() { String::new() } else { self.draw(table) }
    }
}

fn tables(report: &Report) -> [Option<Table>; 13] {
    [
        Some(run(report)),
        counts("outcome", &report.classes, report.urls),
        counts("status", &named(&report.statuses), report.urls),
        counts("exception (requests' name)", &report.exceptions, report.urls),
        hours(report),
        latency(report),
        attempts(report),
        waits(report),
        exits(report),
        ways("host", &report.hosts),
        ways("proxy", &report.proxies),
        refusals(report),
        slowest(report),
    ]
}

fn run(report: &Report) -> Table {
    let mut table = table(&[&report.source, "", ""]);
    let mut row = |name: &str, value: Cell, note: String| {
        table.add_row([Cell::new(name), value, Cell::new(note)]);
    };
    let share = |part: u64, whole: u64| percent(part as f64 / whole.max(1) as f64);
    row("URLs", Cell::new(report.urls), String::new());
    row("ended well", Cell::new(report.ok).fg(Color::Green), share(report.ok, report.urls));
    let failed = Cell::new(report.failed);
    let failed = if report.failed > 0 { failed.fg(Color::Red) } else { failed };
    row("failed", failed, share(report.failed, report.urls));
    row("recovered by a retry", Cell::new(report.recovered), share(report.recovered, report.urls));
    let each = format!("{:.2} a URL", report.attempts as f64 / report.urls.max(1) as f64);
    row("attempts", Cell::new(report.attempts), each);
    if let (Some(began), Some(ended)) = (&report.began, &report.ended) {
        let span = format!("{} to {}, UTC", moment(began), moment(ended));
        row("from first to last", Cell::new(time(report.span_ms)), span);
        row("URLs per second", Cell::new(rate(report.rate)), String::new());
    }
    let decoded = format!("{} decoded", bytes(report.bytes_body));
    row("bodies on the wire", Cell::new(bytes(report.bytes_wire)), decoded);
    let promise = &report.promise;
    if let Some(longest) = &promise.longest {
        row("longest URL", Cell::new(time(longest.elapsed_ms)), longest.url.clone());
    }
    if let Some(promised) = promise.promised_ms {
        let (kept, colour) = match promise.broken {
            0 => ("kept by every URL".to_owned(), Color::Green),
            broken => {
                let most = time(promise.worst_excess_ms);
                (format!("not kept by {broken} of the URLs, by {most} at most"), Color::Red)
            }
        };
        table.add_row([
            Cell::new("promised at most"),
            Cell::new(time(promised)),
            Cell::new(kept).fg(colour),
        ]);
    }
    align_numbers(&mut table, 1..2);
    table
}

fn named(counts: &BTreeMap<u16, u64>) -> BTreeMap<String, u64> {
    counts.iter().map(|(status, count)| (status.to_string(), *count)).collect()
}

fn counts(name: &str, counts: &BTreeMap<String, u64>, all: u64) -> Option<Table> {
    let mut list: Vec<_> = counts.iter().collect();
    list.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
    let mut table = table(&[name, "URLs", "share"]);
    for (name, count) in &list {
        let share = percent(**count as f64 / all.max(1) as f64);
        table.add_row([(*name).clone(), count.to_string(), share]);
    }
    align_numbers(&mut table, 1..3);
    (!list.is_empty()).then_some(table)
}

fn hours(report: &Report) -> Option<Table> {
    let hours = &report.exceptions_by_hour;
    let mut sums: BTreeMap<&str, u64> = BTreeMap::new();
    for (name, count) in hours.steps.iter().flat_map(|step| &step.exceptions) {
        *sums.entry(name).or_default() += count;
    }
    let mut names: Vec<_> = sums.into_iter().collect();
    names.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let names: Vec<&str> = names.into_iter().take(5).map(|(name, _)| name).collect();
    let mut header = vec!["failed attempts from (UTC)"];
    header.extend(&names);
    header.push("all");
    let mut table = table(&header);
    let skipped = hours.steps.len().saturating_sub(MOST_HOURS);
    for step in hours.steps.iter().skip(skipped) {
        let mut row = vec![moment(&step.from)];
        let count = |name: &&str| step.exceptions.get(*name).copied().unwrap_or_default();
        row.extend(names.iter().map(|name| count(name).to_string()));
        row.push(step.exceptions.values().sum::<u64>().to_string());
        table.add_row(row);
    }
    if skipped > 0 {
        table.add_row([format!("({skipped} before)")]);
    }
    align_numbers(&mut table, 1..header.len());
    (!names.is_empty()).then_some(table)
}

fn latency(report: &Report) -> Option<Table> {
    let mut table = table(&["took", "times", "p50", "p95", "p99", "longest"]);
    for phase in &report.latency {
        let mut row = vec![words::phase(&phase.phase).to_owned(), phase.count.to_string()];
        let times = phase.times;
        row.extend([times.p50_ms, times.p95_ms, times.p99_ms, times.longest_ms].map(time));
        table.add_row(row);
    }
    align_numbers(&mut table, 1..6);
    (!report.latency.is_empty()).then_some(table)
}

fn attempts(report: &Report) -> Option<Table> {
    let mut table = table(&["attempts", "URLs", "share"]);
    for line in &report.attempts_per_url {
        let more = if line.or_more { " or more" } else { "" };
        let share = percent(line.urls as f64 / report.urls.max(1) as f64);
        table.add_row([format!("{}{more}", line.attempts), line.urls.to_string(), share]);
    }
    align_numbers(&mut table, 1..3);
    (!report.attempts_per_url.is_empty()).then_some(table)
}

fn waits(report: &Report) -> Option<Table> {
    let mut table = table(&["waited for", "times", "together", "p50", "p95", "longest"]);
    for waits in &report.waits {
        let mut row = vec![waits.reason.clone(), waits.count.to_string()];
        let times = waits.times;
        row.extend([waits.total_ms, times.p50_ms, times.p95_ms, times.longest_ms].map(time));
        table.add_row(row);
    }
    align_numbers(&mut table, 1..6);
    (!report.waits.is_empty()).then_some(table)
}

fn exits(report: &Report) -> Option<Table> {
    let exits = &report.exits;
    let more = if exits.or_more { " or more" } else { "" };
    let mut drawn = way_table("exit");
    exits.top_ten.iter().for_each(|row| add_way(&mut drawn, row));
    let share = percent(exits.top_ten_share?);
    let last = format!("{} different{more}; these have {share}", exits.distinct);
    drawn.add_row([last]);
    Some(drawn)
}

fn ways(name: &str, rows: &Rows) -> Option<Table> {
    let mut table = way_table(name);
    rows.rows.iter().take(MOST_ROWS).for_each(|row| add_way(&mut table, row));
    if let Some(more) = rows.rows.len().checked_sub(MOST_ROWS).filter(|more| *more > 0) {
        table.add_row([format!("({more} more)")]);
    }
    (!rows.rows.is_empty()).then_some(table)
}

fn way_table(name: &str) -> Table {
    let header =
        [name, "URLs", "ok", "attempts", "failed", "refused", "429/503", "mean", "longest"];
    let mut table = table(&header);
    align_numbers(&mut table, 1..header.len());
    table
}

fn add_way(table: &mut Table, row: &Row) {
    let mut cells = vec![row.name.clone()];
    let counts = [row.urls, row.ok, row.attempts, row.failed, row.refused, row.throttled];
    cells.extend(counts.map(|count| count.to_string()));
    cells.push(row.mean_ms.map_or_else(String::new, time));
    cells.push(time(row.longest_ms));
    table.add_row(cells);
}

fn refusals(report: &Report) -> Option<Table> {
    let mut table = table(&["refusals", "status", "server", "what else tells"]);
    for kind in report.refusals.kinds.iter().take(MOST_ROWS) {
        let mut signs = Vec::new();
        signs.extend(kind.matched.as_ref().map(|matched| format!("matched {matched}")));
        for (name, sign) in [
            ("Cf-Ray", &kind.cf_ray),
            ("X-Cache", &kind.x_cache),
            ("Via", &kind.via),
            ("Retry-After", &kind.retry_after),
        ] {
            signs.extend(sign.first.as_ref().map(|first| format!("{name} {first}")));
        }
        if !kind.set_cookie_names.is_empty() {
            signs.push(format!("sets {}", kind.set_cookie_names.join(" ")));
        }
        table.add_row([
            kind.count.to_string(),
            kind.status.map_or_else(String::new, |status| status.to_string()),
            kind.server.clone().unwrap_or_default(),
            signs.join(", "),
        ]);
    }
    align_numbers(&mut table, 0..2);
    (report.refusals.count > 0).then_some(table)
}

fn slowest(report: &Report) -> Option<Table> {
    let mut table = table(&["slowest", "attempts", "outcome", "URL"]);
    for slow in report.slowest.iter().take(MOST_ROWS) {
        let row = [time(slow.elapsed_ms), slow.attempts.to_string()];
        table.add_row(row.into_iter().chain([slow.class.clone(), slow.url.clone()]));
    }
    align_numbers(&mut table, 0..2);
    (!report.slowest.is_empty()).then_some(table)
}

fn differences(comparison: &Comparison) -> Table {
    let mut table = table(&["", "A", "B", "B against A", "", ""]);
    for one in &comparison.differences {
        let shown = |value: Option<f64>| {
            value.map_or_else(|| "–".to_owned(), |value| words::figure(value, one.unit))
        };
        let name = format!("{} {}", one.name, words::unit(one.unit));
        let change = one.change.map_or_else(String::new, |change| words::change(change, one.unit));
        let percent = one.percent.map_or_else(String::new, words::signed_percent);
        let verdict = Cell::new(words::verdict(one.verdict));
        let verdict = match one.verdict {
            Verdict::Better => verdict.fg(Color::Green),
            Verdict::Worse => verdict.fg(Color::Red).add_attribute(Attribute::Bold),
            _ => verdict,
        };
        table.add_row([
            Cell::new(name.trim()),
            Cell::new(shown(one.a)),
            Cell::new(shown(one.b)),
            Cell::new(change),
            Cell::new(percent),
            verdict,
        ]);
    }
    align_numbers(&mut table, 1..5);
    table
}
