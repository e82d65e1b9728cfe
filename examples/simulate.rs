//! When you want to know what a night will cost before you spend it: forty thousand URLs at 24
//! workers, with the faults of a bad day, on the code that would run for real.

use longhaul::policy::{Capacity, format_duration};
use longhaul::workers::simulation::{
    Bucket, FaultModel, LatencyModel, Persistence, Report, Simulation, Trouble,
};
use longhaul::{ProxyPool, Session, WorkerPool, secs};
use std::time::{Duration, Instant};

const WORKERS: usize = 24;

fn main() -> Result<(), longhaul::Error> {
    let proxies: String = (1..=20).map(|n| format!("http://10.0.0.{n}:8000\n")).collect();
    let session = Session::builder().proxies(ProxyPool::parse(&proxies)?);
    let pool = WorkerPool::builder(session).workers(WORKERS);
    let faults = FaultModel::none()
        .latency(LatencyModel::lognormal(secs(0.8), secs(2.5))?)
        // A share of the URLs hangs for as long as anybody asks: they are what a night is made of.
        .share(Trouble::Stall, 0.02)
        .share(Trouble::Status(404), 0.03)
        .share(Trouble::Throttle(503), 0.02)
        .persistence(Persistence::Always)
        .retry_after(secs(20.0))
        .dead_proxies(2);
    let night = Simulation::of(pool).urls(40_000).hosts(200).faults(faults).seed(1);

    let report = timed(&night)?;
    table(&report, &night.capacity()?)?;
    timeline(&report);
    Ok(())
}

#[allow(clippy::disallowed_methods, reason = "the one figure that is about this machine")]
fn timed(night: &Simulation) -> Result<Report, longhaul::Error> {
    let began = Instant::now();
    let report = night.run()?;
    let ms = began.elapsed().as_millis();
    println!("{} URLs at {} workers, simulated in {ms} ms\n", report.urls, report.workers);
    Ok(report)
}

fn table(report: &Report, capacity: &Capacity) -> Result<(), longhaul::Error> {
    let estimate = capacity.run(WORKERS as u64)?;
    let minutes = |time: Duration| format!("{:.1} min", time.as_secs_f64() / 60.0);
    let row = |name: &str, night: String, arithmetic: String| {
        println!("{name:<26}{night:>16}{arithmetic:>16}");
    };
    row("", "the night".into(), "arithmetic".into());
    row("run time", minutes(report.run_time), minutes(estimate.run_time()));
    row("time of all workers", minutes(report.busy), minutes(estimate.worker_time()));
    row(
        "busy workers",
        format!("{:.1}", report.occupancy * WORKERS as f64),
        format!("{:.1}", estimate.busy_workers()),
    );
    row("longest path of a URL", format_duration(report.longest_path), report.promised.to_string());
    row("longest URL, all told", format_duration(report.longest), "-".into());
    println!(
        "\nlimited by {}; {:.4} attempts per URL:",
        estimate.limited_by(),
        report.amplification
    );
    for (attempts, urls) in report.by_attempts.iter().enumerate().filter(|(_, urls)| **urls > 0) {
        println!("{urls:>8} URLs in {attempts} attempts");
    }
    for (class, urls) in &report.classes {
        println!("{urls:>8} {class}");
    }
    for (reason, waits) in &report.waits {
        println!("{:>8} waits for {reason}, {} in all", waits.count, minutes(waits.total));
    }
    Ok(())
}

/// A bar for a twentieth of the night each.
fn timeline(report: &Report) {
    let step = report.timeline.len().div_ceil(20).max(1);
    let rate = |part: &[Bucket]| {
        let lasts: Duration = part.iter().map(|bucket| bucket.lasts).sum();
        let done: u64 = part.iter().map(|bucket| bucket.done).sum();
        done as f64 / lasts.as_secs_f64().max(1e-9)
    };
    let parts: Vec<&[Bucket]> = report.timeline.chunks(step).collect();
    let most = parts.iter().map(|part| rate(part)).fold(1e-9, f64::max);
    println!("\n{:>9}  {:>7} {:>7} {:>7}", "minute", "done/s", "busy", "waiting");
    for part in parts {
        let Some(first) = part.first() else { continue };
        let mean = |of: fn(&Bucket) -> f64| part.iter().map(of).sum::<f64>() / part.len() as f64;
        println!(
            "{:>9}  {:>7.1} {:>7.1} {:>7.1}  {}",
            first.begins.as_secs() / 60,
            rate(part),
            mean(|bucket| bucket.in_flight),
            mean(|bucket| bucket.waiting),
            "#".repeat((rate(part) / most * 40.0).round() as usize),
        );
    }
}
