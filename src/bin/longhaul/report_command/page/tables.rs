//! The tables without a drawing: hosts, proxies, refusals, the slowest URLs.

use super::figure::id_of;
use super::summary::grouped;
use super::table::{Column, Table, number};
use crate::report_command::Run;
use crate::report_command::words::{bytes, time};
use longhaul::batch::{Row, Rows, Sign, SlowUrl};
use maud::{Markup, html};

/// So many rows of a table are shown; the object has all.
const MOST_ROWS: usize = 100;

/// A table of hosts or proxies.
pub(super) fn ways(run: Run<'_>, name: &str, what: &'static str, rows: &Rows) -> Markup {
    let mut table = way_table(id_of(run, &format!("{name}-table")), caption(run, what), what);
    for (at, row) in rows.rows.iter().take(MOST_ROWS).enumerate() {
        table.rows.push(way(run, &format!("/{name}/rows/{at}"), row));
    }
    if let Some(others) = &rows.others {
        table.rows.push(way(run, &format!("/{name}/others"), others));
    }
    let more = rows.rows.len().saturating_sub(MOST_ROWS);
    html! {
        (table.render())
        @if more > 0 {
            p.fact { "The busiest " (MOST_ROWS) " are shown; " code { "--json" } " has " (more) " more." }
        }
    }
}

/// The caption of a table of ways.
fn caption(run: Run<'_>, what: &str) -> String {
    match run.letter {
        "" => format!("What came of each {what}"),
        letter => format!("{letter}: what came of each {what}"),
    }
}

/// The columns of hosts, proxies and exits.
pub(super) fn way_table(id: String, caption: String, what: &'static str) -> Table {
    let columns = [
        Column::Words(what),
        Column::Numbers("URLs"),
        Column::Numbers("ok"),
        Column::Numbers("attempts"),
        Column::Numbers("answered"),
        Column::Numbers("failed"),
        Column::Numbers("refused"),
        Column::Numbers("429 or 503"),
        Column::Numbers("mean"),
        Column::Numbers("longest"),
        Column::Numbers("on the wire"),
    ];
    Table::new(id, caption, &columns)
}

/// A row of them.
pub(super) fn way(run: Run<'_>, pointer: &str, row: &Row) -> Vec<Markup> {
    let mut cells = vec![html! { code { (row.name) } }];
    for (field, count) in [
        ("urls", row.urls),
        ("ok", row.ok),
        ("attempts", row.attempts),
        ("answered", row.answered),
        ("failed", row.failed),
        ("refused", row.refused),
        ("throttled", row.throttled),
    ] {
        cells.push(number(run, format!("{pointer}/{field}"), count, grouped(count)));
    }
    cells.push(match row.mean_ms {
        Some(mean) => number(run, format!("{pointer}/mean_ms"), mean, time(mean)),
        None => html! {},
    });
    let longest = row.longest_ms;
    cells.push(number(run, format!("{pointer}/longest_ms"), longest, time(longest)));
    let sent = row.bytes_wire;
    cells.push(number(run, format!("{pointer}/bytes_wire"), sent, bytes(sent)));
    cells
}

/// Who refused, with what tells of it.
pub(super) fn refusals(run: Run<'_>) -> Markup {
    let refusals = &run.report.refusals;
    let columns = [
        Column::Words("server"),
        Column::Numbers("status"),
        Column::Numbers("refusals"),
        Column::Words("block page"),
        Column::Words("sets cookies"),
        Column::Words("Cf-Ray"),
        Column::Words("X-Cache"),
        Column::Words("Via"),
        Column::Words("Retry-After"),
    ];
    let caption = "Refusals by what they have in common";
    let mut table = Table::new(id_of(run, "refusals-table"), caption, &columns);
    for (at, kind) in refusals.kinds.iter().enumerate() {
        let pointer = format!("/refusals/kinds/{at}");
        let mut row = vec![
            html! { @if let Some(server) = &kind.server { code { (server) } } @else { "none named" } },
            html! { @if let Some(status) = kind.status {
                (number(run, format!("{pointer}/status"), status, status))
            } },
            number(run, format!("{pointer}/count"), kind.count, grouped(kind.count)),
            html! { @if let Some(matched) = &kind.matched { code { (matched) } } },
            html! { @for name in &kind.set_cookie_names { code { (name) } " " } },
        ];
        for (name, field) in [
            ("cf_ray", &kind.cf_ray),
            ("x_cache", &kind.x_cache),
            ("via", &kind.via),
            ("retry_after", &kind.retry_after),
        ] {
            row.push(sign(run, &format!("{pointer}/{name}"), field));
        }
        table.rows.push(row);
    }
    html! {
        p {
            (number(run, "/refusals/count", refusals.count, grouped(refusals.count)))
            " responses told of a refusal. Refusals with the same status, server, block page and \
             cookies are one row; of the other fields stands there how many had one, and the first."
            @if refusals.others > 0 || refusals.count > 0 {
                " Of kinds that are not listed: "
                (number(run, "/refusals/others", refusals.others, grouped(refusals.others))) "."
            }
        }
        @if !refusals.kinds.is_empty() { (table.render()) }
    }
}

fn sign(run: Run<'_>, pointer: &str, sign: &Sign) -> Markup {
    let count = number(run, format!("{pointer}/count"), sign.count, grouped(sign.count));
    html! {
        (count)
        @if let Some(first) = &sign.first { ": " code { (first) } }
    }
}

/// The URLs that took longest.
pub(super) fn slowest(run: Run<'_>) -> Markup {
    let columns = [
        Column::Words("URL"),
        Column::Numbers("took"),
        Column::Numbers("attempts"),
        Column::Words("outcome"),
        Column::Words("ended (UTC)"),
        Column::Words("id"),
    ];
    let caption = "The URLs that took longest";
    let mut table = Table::new(id_of(run, "slowest-table"), caption, &columns);
    for (at, slow) in run.report.slowest.iter().enumerate() {
        table.rows.push(slow_row(run, &format!("/slowest/{at}"), slow));
    }
    html! { @if table.rows.is_empty() { p { "No URL was attempted." } } @else { (table.render()) } }
}

fn slow_row(run: Run<'_>, pointer: &str, slow: &SlowUrl) -> Vec<Markup> {
    vec![
        html! { code.url { (slow.url) } },
        number(run, format!("{pointer}/elapsed_ms"), slow.elapsed_ms, time(slow.elapsed_ms)),
        number(run, format!("{pointer}/attempts"), slow.attempts, slow.attempts),
        html! { (slow.class) },
        html! { (slow.at) },
        html! { code { (slow.id) } },
    ]
}
