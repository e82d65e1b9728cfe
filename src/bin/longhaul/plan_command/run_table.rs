//! The run and its ceiling as a table.

use super::capacity::{Ceiling, Run};
use super::forecast::Forecast;
use super::table::{for_people, shown};
use crate::tables::{align_numbers, table};
use comfy_table::Table;
use longhaul::policy::{Estimate, FailureBill, LimitedBy};
use std::fmt;
use std::time::Duration;

/// The table, or `None` where nothing was asked about a run.
pub(super) fn rows(forecast: &Forecast) -> Option<Table> {
    let mut rows = Rows(table(&["the run", "", "", ""]));
    if let Some(run) = &forecast.run {
        rows.work(run);
        if run.estimate.failures().urls() > 0.0 {
            rows.failures(run.estimate.failures(), &run.estimate);
        }
        if run.has_latency {
            rows.time(run);
        }
        rows.within(run);
    }
    if let Some(ceiling) = forecast.ceiling {
        rows.ceiling(ceiling);
    }
    if let Some(run) = &forecast.run {
        rows.sizes(run);
    }
    align_numbers(&mut rows.0, 1..3);
    (!rows.0.is_empty()).then_some(rows.0)
}

struct Rows(Table);

impl Rows {
    fn add(&mut self, name: &str, value: String, long: String, note: &str) {
        self.0.add_row([name.to_owned(), value, long, note.to_owned()]);
    }

    fn count(&mut self, name: &str, count: &dyn fmt::Display, note: &str) {
        self.add(name, count.to_string(), String::new(), note);
    }

    fn duration(&mut self, name: &str, time: Duration, note: &str) {
        self.add(name, shown(time), for_people(time), note);
    }

    fn work(&mut self, run: &Run) {
        let note = match run.depth {
            1 => String::new(),
            depth => format!("{depth} for each URL, one after another"),
        };
        self.count("pages", &run.pages, &note);
        self.count("workers", &run.estimate.workers(), "");
    }

    /// What the failures do to the run.
    fn failures(&mut self, bill: &FailureBill, estimate: &Estimate) {
        let each = bill.each();
        let note = format!(
            "{} each: {} attempts of {} together, and {} of waits",
            shown(each.total()),
            each.attempts(),
            shown(each.attempting()),
            shown(each.waiting())
        );
        self.count("that fail", &whole(bill.urls()), &note);
        self.duration("they hold workers for", bill.worker_time(), "all together");
        if let Some(share) = bill.share() {
            self.count("their share", &format!("{:.1} %", share * 100.0), "of all the work");
        }
        self.duration("they cost the run", bill.run_time(), "shared among the workers");
        self.duration(
            "in threads that sleep",
            estimate.failures_if_waits_hold().run_time(),
            "where a wait holds a worker, as around requests",
        );
    }

    fn time(&mut self, run: &Run) {
        let estimate = &run.estimate;
        self.duration("it takes", estimate.run_time(), &because(estimate.limited_by()));
        if let Some(latest) = estimate.latest() {
            self.duration("at the latest", latest, "with the slowest URLs at the end");
        }
        self.count("pages a second", &format!("{:.1}", estimate.urls_per_second()), "");
        self.count("busy workers", &format!("{:.1}", estimate.busy_workers()), "on the average");
        self.count("workers of use", &run.useful, "more of them change nothing");
    }

    fn within(&mut self, run: &Run) {
        let Some((time, estimate)) = &run.within else { return };
        let note = match estimate.run_time() > *time {
            false => format!("workers do it in {}", shown(estimate.run_time())),
            true => format!(
                "workers, in {} and no sooner: {}",
                shown(estimate.run_time()),
                because(estimate.limited_by())
            ),
        };
        self.count(&format!("within {}", shown(*time)), &estimate.workers(), &note);
    }

    fn ceiling(&mut self, (connections, by): Ceiling) {
        self.count("ceiling", &connections, &format!("at a time: {by}"));
    }

    /// What to set.
    fn sizes(&mut self, run: &Run) {
        let sizes = &run.sizes;
        self.count("pool_connections", &sizes.pool_connections, "of each session");
        let shared = format!(
            "of each session; {} of one that all threads share, as in requests",
            sizes.pool_maxsize_shared
        );
        self.count("pool_maxsize", &sizes.pool_maxsize, &shared);
    }
}

/// A number of pages, which as an expectation may be a fraction.
fn whole(pages: f64) -> String {
    if pages.fract() == 0.0 { format!("{pages:.0}") } else { format!("{pages:.1}") }
}

fn because(by: LimitedBy) -> String {
    format!("limited by {by}")
}
