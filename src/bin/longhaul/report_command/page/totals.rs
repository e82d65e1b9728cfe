//! Drawings of the whole run: latency, attempts, waits, the promise, exits.

use super::figure::{Figure, Shape, id_of};
use super::summary::grouped;
use super::table::{Column, Table, number};
use super::{over_time, tables};
use crate::report_command::Run;
use crate::report_command::plots::{Bar, Hue, Range, bars, ranges};
use crate::report_command::words::{self, percent, time};
use maud::{Markup, html};

/// How long each phase took.
pub(super) fn latency(run: Run<'_>) -> Markup {
    let columns = [
        Column::Words("took"),
        Column::Numbers("times"),
        Column::Numbers("p50"),
        Column::Numbers("p95"),
        Column::Numbers("p99"),
        Column::Numbers("longest"),
    ];
    let mut table = Table::new(id_of(run, "latency-table"), "How long each phase took", &columns);
    let mut drawn = Vec::new();
    for (at, phase) in run.report.latency.iter().enumerate() {
        let pointer = |field: &str| format!("/latency/{at}/{field}");
        let times = phase.times;
        let mut row = vec![
            html! { (words::phase(&phase.phase)) },
            number(run, pointer("count"), phase.count, grouped(phase.count)),
        ];
        for (field, ms) in [
            ("p50_ms", times.p50_ms),
            ("p95_ms", times.p95_ms),
            ("p99_ms", times.p99_ms),
            ("longest_ms", times.longest_ms),
        ] {
            row.push(number(run, pointer(field), ms, time(ms)));
        }
        table.rows.push(row);
        let name = words::phase(&phase.phase).to_owned();
        drawn.push(Range { name, p50: times.p50_ms, p95: times.p95_ms, p99: times.p99_ms });
    }
    let url = run.report.latency.iter().find(|phase| phase.phase == "url");
    let shows = url.map_or_else(
        || "No URL was attempted.".to_owned(),
        |url| {
            let (p50, p95, p99) = (url.times.p50_ms, url.times.p95_ms, url.times.p99_ms);
            let [p50, p95, p99] = [p50, p95, p99].map(time);
            format!("A whole URL took {p50} at the median, {p95} at 95 % and {p99} at 99 %.")
        },
    );
    let figure = Figure {
        run,
        id: "latency",
        title: "Latency by phase",
        reading: html! { "On a logarithmic axis, where each mark is ten times the one before. The phases are \
        those of the last attempt of a URL; \"attempt\" is every attempt, \"whole URL\" counts \
        the waits too." },
        shows,
        legend: vec![
            (Shape::Circle, Hue::Blue, "p50: half did not take longer".to_owned()),
            (Shape::Triangle, Hue::Orange, "p95".to_owned()),
            (Shape::Cross, Hue::Red, "p99".to_owned()),
        ],
        table,
    };
    figure.render(|size| ranges(size, &drawn))
}

/// How many attempts URLs took.
pub(super) fn attempts(run: Run<'_>) -> Markup {
    let columns = [Column::Numbers("attempts"), Column::Numbers("URLs"), Column::Numbers("share")];
    let mut table = Table::new(id_of(run, "attempts-table"), "URLs by attempts", &columns);
    let mut drawn = Vec::new();
    for (at, line) in run.report.attempts_per_url.iter().enumerate() {
        let pointer = |field: &str| format!("/attempts_per_url/{at}/{field}");
        let share = line.urls as f64 / run.report.urls.max(1) as f64;
        let more = if line.or_more { " or more" } else { "" };
        table.rows.push(vec![
            html! { (number(run, pointer("attempts"), line.attempts, line.attempts)) (more) },
            number(run, pointer("urls"), line.urls, grouped(line.urls)),
            html! { data value=(share) { (percent(share)) } },
        ]);
        let plural = if line.attempts == 1 && !line.or_more { "" } else { "s" };
        drawn.push(Bar {
            name: format!("{}{more} attempt{plural}", line.attempts),
            value: line.urls as f64,
            shown: format!("{} URLs, {}", grouped(line.urls), percent(share)),
            hue: if line.attempts <= 1 { Hue::Green } else { Hue::Orange },
        });
    }
    let once = run.report.attempts_per_url.iter().find(|line| line.attempts == 1);
    let once = once.map_or(0, |line| line.urls);
    let figure = Figure {
        run,
        id: "attempts",
        title: "Attempts per URL",
        reading: html! { "How many URLs were done with one attempt, and how many took more." },
        shows: format!("{once} of {} URLs took one attempt.", run.report.urls),
        legend: Vec::new(),
        table,
    };
    figure.render(|size| bars(size, &drawn))
}

/// What was waited for.
pub(super) fn waits(run: Run<'_>) -> Markup {
    let columns = [
        Column::Words("waited for"),
        Column::Numbers("times"),
        Column::Numbers("together"),
        Column::Numbers("p50"),
        Column::Numbers("p95"),
        Column::Numbers("p99"),
        Column::Numbers("longest"),
    ];
    let mut table = Table::new(id_of(run, "waits-table"), "Waits by reason", &columns);
    let mut drawn = Vec::new();
    for (at, waits) in run.report.waits.iter().enumerate() {
        let pointer = |field: &str| format!("/waits/{at}/{field}");
        let mut row = vec![
            html! { (waits.reason) },
            number(run, pointer("count"), waits.count, grouped(waits.count)),
        ];
        for (field, ms) in [
            ("total_ms", waits.total_ms),
            ("p50_ms", waits.times.p50_ms),
            ("p95_ms", waits.times.p95_ms),
            ("p99_ms", waits.times.p99_ms),
            ("longest_ms", waits.times.longest_ms),
        ] {
            row.push(number(run, pointer(field), ms, time(ms)));
        }
        table.rows.push(row);
        drawn.push(Bar {
            name: waits.reason.clone(),
            value: waits.total_ms,
            shown: format!("{} in {} waits", time(waits.total_ms), grouped(waits.count)),
            hue: Hue::Blue,
        });
    }
    let shows = run.report.waits.first().map_or_else(
        || "Nothing was waited for.".to_owned(),
        |most| format!("Most was waited for {}: {}.", most.reason, time(most.total_ms)),
    );
    let figure = Figure {
        run,
        id: "waits",
        title: "Waits by reason",
        reading: html! { "What URLs waited for between two attempts, all of it together. A wait holds no worker." },
        shows,
        legend: Vec::new(),
        table,
    };
    figure.render(|size| bars(size, &drawn))
}

/// What was promised, and what was seen.
pub(super) fn promise(run: Run<'_>) -> Markup {
    let promise = &run.report.promise;
    let columns = [Column::Words("what"), Column::Numbers("time")];
    let caption = "Promised and seen";
    let mut table = Table::new(id_of(run, "promise-table"), caption, &columns);
    let mut drawn = Vec::new();
    let mut add = |name: &str, pointer: &str, ms: f64, hue: Hue| {
        table.rows.push(vec![html! { (name) }, number(run, pointer, ms, time(ms))]);
        drawn.push(Bar { name: name.to_owned(), value: ms, shown: time(ms), hue });
    };
    if let Some(promised) = promise.promised_ms {
        add("promised at most", "/promise/promised_ms", promised, Hue::Grey);
    }
    if let Some(smallest) = promise.smallest_ms.filter(|least| Some(*least) != promise.promised_ms)
    {
        add("smallest promise", "/promise/smallest_ms", smallest, Hue::Grey);
    }
    if let Some(longest) = &promise.longest {
        let broken = promise.broken > 0;
        let hue = if broken { Hue::Red } else { Hue::Green };
        add("longest URL", "/promise/longest/elapsed_ms", longest.elapsed_ms, hue);
    }
    let url = run.report.latency.iter().position(|phase| phase.phase == "url");
    if let Some((at, url)) = url.and_then(|at| Some((at, run.report.latency.get(at)?))) {
        add("99 % of the URLs", &format!("/latency/{at}/p99_ms"), url.times.p99_ms, Hue::Blue);
        add("half of the URLs", &format!("/latency/{at}/p50_ms"), url.times.p50_ms, Hue::Blue);
    }
    let shows = match (promise.promised_ms, promise.broken) {
        (None, _) => "The records do not tell what was promised.".to_owned(),
        (Some(promised), 0) => {
            format!("{} were promised at most, and every URL kept it.", time(promised))
        }
        (Some(promised), broken) => {
            format!(
                "{} were promised at most, and not kept by {broken} of the URLs.",
                time(promised)
            )
        }
    };
    let figure = Figure {
        run,
        id: "promise",
        title: "Promised and seen",
        reading: html! { "How long one URL could take at most, as the run promised, against how long URLs took." },
        shows: shows.clone(),
        legend: Vec::new(),
        table,
    };
    html! {
        (figure.render(|size| bars(size, &drawn)))
        p.fact {
            (shows) " Records that tell: "
            (number(run, "/promise/told", promise.told, grouped(promise.told)))
            ". Promises broken: "
            (number(run, "/promise/broken", promise.broken, grouped(promise.broken)))
            ", by at most "
            (number(run, "/promise/worst_excess_ms", promise.worst_excess_ms, time(promise.worst_excess_ms)))
            "."
            @if let Some(smallest) = promise.smallest_ms {
                " Smallest promise: " (number(run, "/promise/smallest_ms", smallest, time(smallest))) "."
            }
            @if let Some(longest) = &promise.longest {
                " The longest was " code.url { (longest.url) } "; attempts: "
                (number(run, "/promise/longest/attempts", longest.attempts, longest.attempts)) "."
            }
        }
    }
}

/// Where attempts came out.
pub(super) fn exits(run: Run<'_>) -> Markup {
    let exits = &run.report.exits;
    let known = html! {
        p.fact {
            "The exit is known of "
            (number(run, "/exits/known", exits.known, grouped(exits.known)))
            " attempts, and not known of "
            (number(run, "/exits/unknown", exits.unknown, grouped(exits.unknown)))
            ". Different exits: "
            (number(run, "/exits/distinct", exits.distinct, grouped(exits.distinct)))
            @if exits.or_more { " or more" }
            "."
        }
    };
    let Some(share) = exits.top_ten_share else { return known };
    let caption = "The ten exits that were taken most";
    let mut table = tables::way_table(id_of(run, "top-exits-table"), caption.to_owned(), "exit");
    let mut drawn = Vec::new();
    for (at, row) in exits.top_ten.iter().enumerate() {
        table.rows.push(tables::way(run, &format!("/exits/top_ten/{at}"), row));
        let part = row.attempts as f64 / exits.known.max(1) as f64;
        drawn.push(Bar {
            name: row.name.clone(),
            value: row.attempts as f64,
            shown: format!("{}, {}", grouped(row.attempts), percent(part)),
            hue: Hue::Purple,
        });
    }
    let figure = Figure {
        run,
        id: "top-exits",
        title: "Share of the top ten",
        reading: html! { "Attempts through the ten exits that were taken most, and their share of those whose \
        exit is known." },
        shows: format!("Ten exits have {} of the attempts.", percent(share)),
        legend: Vec::new(),
        table,
    };
    html! {
        (known)
        (over_time::distinct_exits(run))
        (figure.render(|size| bars(size, &drawn)))
        p.fact {
            "The ten together have " (number(run, "/exits/top_ten_share", share, percent(share))) "."
        }
    }
}
