//! What happened along time: outcomes, throughput, exceptions by hour, exits.

use super::figure::{Figure, Shape, id_of};
use super::summary::grouped;
use super::table::{Column, Table, number, part};
use crate::report_command::Run;
use crate::report_command::plots::{Hue, Stack, lines, stacks};
use crate::report_command::words::{bytes, moment, rate, width};
use jiff::Timestamp;
use longhaul::batch::Report;
use maud::{Markup, html};
use std::collections::BTreeMap;

/// Exceptions with a colour of their own; the others share the last one.
const OWN_COLOURS: usize = 5;

/// What became of URLs in each step.
pub(super) fn outcomes(run: Run<'_>) -> Markup {
    let over_time = &run.report.over_time;
    let classes = classes(run.report);
    let wide = width(over_time.width_s);
    let columns = [Column::Words("from (UTC)"), Column::Numbers("URLs")];
    let caption = format!("Outcomes in steps of {wide}");
    let mut table = Table::new(id_of(run, "outcomes-table"), caption, &columns);
    table.columns.extend(classes.iter().map(|(class, _)| ((*class).to_owned(), true)));
    table.columns.push(("bytes on the wire".to_owned(), true));
    let mut drawn = Vec::new();
    for (at, step) in over_time.steps.iter().enumerate() {
        let pointer = format!("/over_time/steps/{at}");
        let count = |class: &str| step.classes.get(class).copied();
        let mut row = vec![
            html! { (moment(&step.from)) },
            number(run, format!("{pointer}/urls"), step.urls, grouped(step.urls)),
        ];
        row.extend(classes.iter().map(|(class, _)| match count(class) {
            Some(count) => {
                number(run, format!("{pointer}/classes/{}", part(class)), count, grouped(count))
            }
            None => html! { "0" },
        }));
        let sent = step.bytes_wire;
        row.push(number(run, format!("{pointer}/bytes_wire"), sent, bytes(sent)));
        table.rows.push(row);
        let parts =
            classes.iter().map(|(class, hue)| (count(class).unwrap_or_default() as f64, *hue));
        drawn.push(Stack { from: seconds(&step.from), parts: parts.collect() });
    }
    let most = over_time.steps.iter().max_by_key(|step| step.urls);
    let shows = most.map_or_else(String::new, |most| {
        let (urls, from) = (most.urls, moment(&most.from));
        let steps = over_time.steps.len();
        format!("{steps} steps of {wide}. Most URLs ended in the one from {from} UTC: {urls}.")
    });
    let legend = classes.iter().map(|(class, hue)| (Shape::Square, *hue, (*class).to_owned()));
    let figure = Figure {
        run,
        id: "outcomes",
        title: "Outcomes over time",
        reading: html! {
            "How many URLs ended in each step, and as what. A step is "
            (number(run, "/over_time/width_s", over_time.width_s, &wide)) " wide."
        },
        shows,
        legend: legend.collect(),
        table,
    };
    figure.render(|size| stacks(size, over_time.width_s, &drawn))
}

/// URLs per second in each step.
pub(super) fn throughput(run: Run<'_>) -> Markup {
    let over_time = &run.report.over_time;
    let columns = [Column::Words("from (UTC)"), Column::Numbers("URLs per second")];
    let mut table = Table::new(id_of(run, "throughput-table"), "URLs per second", &columns);
    let seconds_of = over_time.width_s.max(1) as f64;
    let mut points = Vec::new();
    for step in &over_time.steps {
        let each = step.urls as f64 / seconds_of;
        points.push((seconds(&step.from), each));
        table.rows.push(vec![
            html! { (moment(&step.from)) },
            html! { data value=(each) { (rate(each)) } },
        ]);
    }
    let most = points.iter().map(|point| point.1).fold(0.0, f64::max);
    let wide = width(over_time.width_s);
    let figure = Figure {
        run,
        id: "throughput",
        title: "Throughput over time",
        reading: html! {
            "URLs that ended per second, failed ones included, over steps of " (wide) ". The first \
             and the last step are seldom whole."
        },
        shows: format!("At most {} URLs per second in a step.", rate(most)),
        legend: Vec::new(),
        table,
    };
    figure.render(|size| lines(size, over_time.width_s, &points, Hue::Blue))
}

/// Failed attempts by hour and exception.
pub(super) fn exceptions(run: Run<'_>) -> Markup {
    let hours = &run.report.exceptions_by_hour;
    let names = exception_names(run.report);
    let wide = width(hours.width_s);
    let caption = format!("Failed attempts in steps of {wide}, by exception");
    let table_id = id_of(run, "exceptions-by-hour-table");
    let mut table = Table::new(table_id, caption, &[Column::Words("from (UTC)")]);
    table.columns.extend(names.iter().map(|(name, _)| ((*name).to_owned(), true)));
    let mut drawn = Vec::new();
    for (at, step) in hours.steps.iter().enumerate() {
        let pointer = format!("/exceptions_by_hour/steps/{at}/exceptions");
        let mut row = vec![html! { (moment(&step.from)) }];
        row.extend(names.iter().map(|(name, _)| match step.exceptions.get(*name) {
            Some(count) => number(run, format!("{pointer}/{}", part(name)), count, grouped(*count)),
            None => html! { "0" },
        }));
        table.rows.push(row);
        let count = |name: &str| step.exceptions.get(name).copied().unwrap_or_default() as f64;
        let parts = names.iter().map(|(name, hue)| (count(name), *hue)).collect();
        drawn.push(Stack { from: seconds(&step.from), parts });
    }
    let mut legend: Vec<_> = names
        .iter()
        .take(OWN_COLOURS)
        .map(|(name, hue)| (Shape::Square, *hue, (*name).to_owned()))
        .collect();
    if names.len() > OWN_COLOURS {
        legend.push((Shape::Square, Hue::Grey, "all others".to_owned()));
    }
    let worst = hours.steps.iter().max_by_key(|step| step.exceptions.values().sum::<u64>());
    let shows = worst.map_or_else(
        || "No attempt failed.".to_owned(),
        |worst| {
            let (count, from) = (worst.exceptions.values().sum::<u64>(), moment(&worst.from));
            format!("Most attempts failed in the step from {from} UTC: {count}.")
        },
    );
    let figure = Figure {
        run,
        id: "exceptions-by-hour",
        title: "Exceptions by hour",
        reading: html! {
            "Attempts that failed, by the name that requests would raise. An attempt that was \
             repeated with success counts too. A step is "
            (number(run, "/exceptions_by_hour/width_s", hours.width_s, &wide)) " wide."
        },
        shows,
        legend,
        table,
    };
    figure.render(|size| stacks(size, hours.width_s, &drawn))
}

/// How many different exits there had been by each step.
pub(super) fn distinct_exits(run: Run<'_>) -> Markup {
    let over_time = &run.report.over_time;
    let columns =
        [Column::Words("from (UTC)"), Column::Numbers("new exits"), Column::Numbers("so far")];
    let caption = "Exits that were met first in a step";
    let mut table = Table::new(id_of(run, "distinct-exits-table"), caption, &columns);
    let (mut so_far, mut points) = (0, Vec::new());
    for (at, step) in over_time.steps.iter().enumerate() {
        so_far += step.new_exits;
        points.push((seconds(&step.from), so_far as f64));
        let pointer = format!("/over_time/steps/{at}/new_exits");
        table.rows.push(vec![
            html! { (moment(&step.from)) },
            number(run, pointer, step.new_exits, step.new_exits),
            html! { data value=(so_far) { (grouped(so_far)) } },
        ]);
    }
    let figure = Figure {
        run,
        id: "distinct-exits",
        title: "Different exits over time",
        reading: html! { "How many different exits had been met by then. A line that flattens means that the \
        same exits come again." },
        shows: format!("{so_far} different exits in all."),
        legend: Vec::new(),
        table,
    };
    figure.render(|size| lines(size, over_time.width_s, &points, Hue::Purple))
}

/// The classes that occur, good ones first, with their colours.
fn classes(report: &Report) -> Vec<(&str, Hue)> {
    const KNOWN: [(&str, Hue); 6] = [
        ("ok", Hue::Green),
        ("retryable", Hue::Orange),
        ("refused", Hue::Purple),
        ("permanent", Hue::Grey),
        ("proxy_auth", Hue::Red),
        ("input", Hue::Blue),
    ];
    let known = KNOWN.into_iter().filter(|(class, _)| report.classes.contains_key(*class));
    let others = report.classes.keys().map(String::as_str);
    let others = others.filter(|class| KNOWN.iter().all(|(known, _)| known != class));
    known.chain(others.map(|class| (class, Hue::Grey))).collect()
}

/// The exceptions, the most frequent first, with their colours.
fn exception_names(report: &Report) -> Vec<(&str, Hue)> {
    let mut sums: BTreeMap<&str, u64> = BTreeMap::new();
    for (name, count) in report.exceptions_by_hour.steps.iter().flat_map(|step| &step.exceptions) {
        *sums.entry(name).or_default() += count;
    }
    let mut names: Vec<_> = sums.into_iter().collect();
    names.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let hues = Hue::SERIES.into_iter().take(OWN_COLOURS).chain(std::iter::repeat(Hue::Grey));
    names.into_iter().zip(hues).map(|((name, _), hue)| (name, hue)).collect()
}

/// Since 1970; what is no time stands at its beginning.
fn seconds(rfc3339: &str) -> i64 {
    rfc3339.parse::<Timestamp>().map_or(0, Timestamp::as_second)
}
