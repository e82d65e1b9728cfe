//! The forecast as tables.

use super::forecast::{Forecast, drain, seconds};
use super::night;
use super::run_table;
use crate::policy::describe_retries;
use crate::tables::{align_numbers, table};
use comfy_table::{ContentArrangement, Table};
use longhaul::policy::{Bound, LongWait, WorstOutcome, format_duration};
use std::time::Duration;

/// From here on a duration is told in minutes as well.
const MINUTE: Duration = Duration::from_secs(60);

/// More rows than this are not drawn; steps that repeat themselves are one row anyway.
const MOST_ROWS: usize = 60;

/// All tables, for lines of this width.
pub(super) fn render(forecast: &Forecast, width: usize) -> String {
    let tables = [
        Some(policy(forecast)),
        Some(figures(forecast)),
        sequence(forecast),
        run_table::rows(forecast),
    ];
    let width = u16::try_from(width).unwrap_or(u16::MAX);
    let night = forecast.night.iter().flat_map(night::tables);
    let rendered = tables.into_iter().flatten().chain(night).map(|mut table| {
        table.set_content_arrangement(ContentArrangement::Dynamic).set_width(width);
        table.trim_fmt()
    });
    rendered.collect::<Vec<_>>().join("\n\n")
}

fn policy(forecast: &Forecast) -> Table {
    let mut table = table(&["the policy", ""]);
    let (retry, timeouts) = (&forecast.policy.retry, &forecast.policy.timeouts);
    let limit = |limit: Option<Duration>| limit.map_or("none".to_owned(), format_duration);
    let origin = match (forecast.policy.deadline_is_promise, timeouts.deadline()) {
        (true, Some(_)) => " (the worst case with Retry-After)",
        (true, None) => " (there is no worst case)",
        (false, _) => "",
    };
    let longer = match retry.long_wait_policy() {
        LongWait::Clamp => "a longer one is cut to that".to_owned(),
        LongWait::Park(most) => format!("a longer one is parked up to {}", format_duration(most)),
        LongWait::Fail => "a longer one ends the URL".to_owned(),
    };
    let deadlines = format!(
        "connect {}, read {}, deadline {}{origin}",
        limit(timeouts.connect()),
        limit(timeouts.read()),
        limit(timeouts.deadline()),
    );
    let asked = format!("{}, {longer}", format_duration(retry.retry_after_ceiling()));
    table.add_row(["timeouts", &deadlines]);
    table.add_row(["retries", &describe_retries(retry)]);
    table.add_row(["Retry-After", &asked]);
    table
}

fn figures(forecast: &Forecast) -> Table {
    let mut table = table(&["one URL takes at most", "", "", ""]);
    for figure in &forecast.figures {
        let (seconds, long, note) = match &figure.bound {
            Bound::At(time) => (shown(*time), for_people(*time), figure.note.clone()),
            Bound::Unbounded { because } => {
                let remedy = match figure.key {
                    "to_last_byte" => format!("; {}", figure.note),
                    _ => String::new(),
                };
                ("unbounded".to_owned(), String::new(), format!("because {because}{remedy}"))
            }
        };
        table.add_row([figure.name.to_owned(), seconds, long, note]);
    }
    let (enforced, long, note) = match forecast.policy.timeouts.deadline() {
        Some(deadline) => {
            (shown(deadline), for_people(deadline), "the deadline, whatever happens".to_owned())
        }
        None => ("nothing".to_owned(), String::new(), "there is no deadline".to_owned()),
    };
    table.add_row(["enforced".to_owned(), enforced, long, note]);
    align_numbers(&mut table, 1..3);
    table
}

fn sequence(forecast: &Forecast) -> Option<Table> {
    let mut table = table(&["attempt", "a worst sequence", "takes", "then waits", "so far"]);
    let (mut first, mut so_far) = (1_u64, Duration::ZERO);
    for step in forecast.sequence().iter().take(MOST_ROWS) {
        let last = first.saturating_add(step.times - 1);
        so_far = so_far.saturating_add(step.sum());
        let number = if step.times > 1 { format!("{first}–{last}") } else { first.to_string() };
        let wait = if step.wait.is_zero() { String::new() } else { shown(step.wait) };
        table.add_row([
            number,
            match drain(&forecast.policy, step) {
                Some(drain) => format!("{}, drained for {}", happens(step.outcome), shown(drain)),
                None => happens(step.outcome).to_owned(),
            },
            shown(step.cost),
            wait,
            shown(so_far),
        ]);
        first = last.saturating_add(1);
    }
    align_numbers(&mut table, 2..5);
    (!forecast.sequence().is_empty()).then_some(table)
}

/// What an attempt ends with, in words.
fn happens(outcome: WorstOutcome) -> &'static str {
    match outcome {
        WorstOutcome::Connect => "no connection until the connect timeout",
        WorstOutcome::ConnectRetryAfter => "a proxy that refuses with Retry-After",
        WorstOutcome::Read => "silence until the read timeout",
        WorstOutcome::Status => "a status of the list, as late as possible",
        WorstOutcome::StatusRetryAfter => "a status with Retry-After, as late as possible",
        WorstOutcome::Other => "another failure, as late as possible",
        WorstOutcome::Redirect => "a redirect, as late as possible",
        WorstOutcome::RedirectRetryAfter => "a redirect with Retry-After, as late as possible",
        WorstOutcome::Final => "the answer, or the last failure",
        _ => "something new",
    }
}

pub(super) fn shown(time: Duration) -> String {
    match time {
        Duration::MAX => format_duration(time),
        _ => format!("{} s", seconds(time)),
    }
}

/// The same for people, where that says more.
pub(super) fn for_people(time: Duration) -> String {
    let long = format_duration(time);
    if time < MINUTE || long == shown(time) { String::new() } else { long }
}
