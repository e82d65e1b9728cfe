//! The run, simulated: the library's own flights and scheduler under a clock that jumps.

use super::capacity::Run;
use super::table::{for_people, shown};
use crate::args::PlanArgs;
use crate::policy::Policy;
use crate::tables::{align_numbers, table};
use crate::usage::UsageError;
use comfy_table::Table;
use longhaul::policy::Share;
use longhaul::workers::simulation::{FaultModel, Persistence, Report, Simulation, Trouble};
use longhaul::{Session, WorkerPool};
use std::num::{NonZeroU64, NonZeroUsize};
use std::time::Duration;

/// Into so many stretches the course of a night is divided, about.
const STRETCHES: u32 = 20;

/// Of the endings only the most frequent are told.
const MOST_ENDINGS: usize = 8;

/// A simulated night, and what arithmetic says of it.
#[derive(Debug, Clone)]
pub(crate) struct Night {
    /// What it came to.
    pub(crate) report: Report,
    /// The run time that the same faults come to by calculation.
    pub(crate) calculated: Duration,
}

/// The night that follows from this seed.
///
/// # Errors
/// A flag that needs another one, and what the library refuses.
pub(crate) fn simulate(
    args: &PlanArgs,
    policy: &Policy,
    run: Option<&Run>,
    seed: u64,
) -> Result<Night, UsageError> {
    let refused = |error| UsageError::at("--simulate", &error);
    let Some(run) = run else {
        return Err(UsageError::new("--simulate", "there is no run to simulate; add --urls N"));
    };
    let Some(latency) = args.latency else {
        return Err(UsageError::new(
            "--simulate",
            "it is not known how long an answer takes; add --latency",
        ));
    };
    let pages = usize::try_from(run.pages).unwrap_or(usize::MAX);
    let hosts = args.hosts.map_or(1, NonZeroU64::get);
    let recipe =
        Session::builder().retry(policy.retry.clone()).timeout(policy.timeouts).trust_env(false);
    let mut pool = WorkerPool::builder(recipe)
        .workers(args.pace.workers())
        .concurrency(args.pace.concurrency());
    if let Some(rate) = args.pace.rate {
        pool = pool.rate(rate.per_second);
    }
    if let Some(burst) = args.pace.burst {
        pool = pool.rate_burst(burst.get());
    }
    if let Some(rate) = args.pace.host_rate {
        pool = pool.host_rate(rate.per_second);
    }
    if let Some(burst) = args.pace.host_burst {
        pool = pool.host_rate_burst(burst.get());
    }
    if let Some(per_host) = args.pace.per_host.map(NonZeroUsize::get) {
        pool = pool.per_host(per_host);
    }
    let failures = args.failure_rate.unwrap_or(Share::NONE).as_f64();
    let mut faults = FaultModel::none().latency(latency);
    if failures > 0.0 {
        faults = faults.share(Trouble::Stall, failures).persistence(Persistence::Always);
    }
    let night = Simulation::of(pool)
        .urls(pages)
        .hosts(usize::try_from(hosts).unwrap_or(usize::MAX))
        .faults(faults)
        .seed(seed);
    let workers = args.pace.workers() as u64;
    let calculated = night.capacity().and_then(|capacity| capacity.run(workers));
    let calculated = calculated.map_err(refused)?.run_time();
    let stretch = Duration::from_secs((calculated / STRETCHES).as_secs().max(1));
    let report = night.bucket(stretch).run().map_err(refused)?;
    Ok(Night { report, calculated })
}

/// What the night came to, and its course.
pub(super) fn tables(night: &Night) -> [Table; 2] {
    [outcome(night), course(&night.report)]
}

fn outcome(Night { report, calculated }: &Night) -> Table {
    let mut table = table(&[&format!("a simulated night, seed {}", report.seed), "", "", ""]);
    let mut row = |name: &str, value: String, long: String, note: String| {
        table.add_row([name.to_owned(), value, long, note]);
    };
    let note = format!("{} are calculated for the same faults", shown(*calculated));
    row("it takes", shown(report.run_time), for_people(report.run_time), note);
    let amplification = format!("{:.3} a page", report.amplification);
    row("attempts", report.attempts.to_string(), String::new(), amplification);
    let busy = format!("{:.1} %", report.occupancy * 100.0);
    row("workers are busy", busy, String::new(), "of their time".to_owned());
    let mut endings: Vec<_> = report.endings.iter().collect();
    endings.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
    for (ending, count) in endings.into_iter().take(MOST_ENDINGS) {
        row(&format!("end with {ending}"), count.to_string(), String::new(), String::new());
    }
    for (name, time) in [
        ("p50 of a page", report.p50),
        ("p95", report.p95),
        ("p99", report.p99),
        ("the longest", report.longest),
    ] {
        row(name, shown(time), for_people(time), String::new());
    }
    for (reason, waits) in &report.waits {
        let total = format!("{} together", shown(waits.total));
        row(&format!("waits: {reason}"), waits.count.to_string(), String::new(), total);
    }
    if let Some(reason) = &report.stopped {
        row("stopped", String::new(), String::new(), reason.clone());
    }
    align_numbers(&mut table, 1..3);
    table
}

fn course(report: &Report) -> Table {
    let mut table = table(&["from", "pages", "attempts", "busy workers", "waiting"]);
    for stretch in &report.timeline {
        table.add_row([
            shown(stretch.begins),
            stretch.done.to_string(),
            stretch.attempts.to_string(),
            format!("{:.1}", stretch.in_flight),
            format!("{:.1}", stretch.waiting),
        ]);
    }
    align_numbers(&mut table, 0..5);
    table
}
