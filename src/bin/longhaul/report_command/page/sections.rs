//! The sections of the page in their order, each with its drawings of one run or of both.

use super::{differences, over_time, summary, tables, totals};
use crate::report_command::{Run, Told};
use maud::{Markup, html};

/// A section of the page.
pub(super) struct Section {
    pub(super) id: &'static str,
    pub(super) title: &'static str,
    pub(super) content: Markup,
}

/// All of them.
pub(super) fn all(told: &Told) -> Vec<Section> {
    let runs = told.runs();
    let each = |content: &dyn Fn(Run<'_>) -> Markup| {
        html! { @for run in &runs { (content(*run)) } }
    };
    let section = |id, title, content| Section { id, title, content };
    let mut sections = Vec::new();
    if let Some(comparison) = told.comparison() {
        sections.push(section("differences", "Differences", differences::content(comparison)));
    }
    sections.extend([
        section("summary", "Summary", summary::content(&runs)),
        section(
            "time",
            "Along time",
            html! { (each(&over_time::outcomes)) (each(&over_time::throughput)) },
        ),
        section("exceptions-section", "Exceptions", each(&over_time::exceptions)),
        section("latency-section", "Latency", each(&totals::latency)),
        section("attempts-section", "Attempts", each(&totals::attempts)),
        section("waits-section", "Waits", each(&totals::waits)),
        section("promise-section", "The promised worst case", each(&totals::promise)),
        section("exits-section", "Exits", each(&totals::exits)),
        section(
            "hosts",
            "Hosts",
            each(&|run| tables::ways(run, "hosts", "host", &run.report.hosts)),
        ),
        section(
            "proxies",
            "Proxies",
            each(&|run| tables::ways(run, "proxies", "proxy", &run.report.proxies)),
        ),
        section("refusals", "Refusals", each(&tables::refusals)),
        section("slowest", "Slowest URLs", each(&tables::slowest)),
    ]);
    sections
}
