//! Concurrency that finds out what the other side bears: over whole runs, simulated and real.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "helpers of tests fail by panicking, as tests do"
)]

#[cfg(feature = "lab")]
#[path = "support/crowded.rs"]
mod crowded;

use longhaul::policy::Concurrency;
use longhaul::workers::WorkerPoolBuilder;
use longhaul::workers::simulation::{
    Ending, FaultModel, LatencyModel, Overload, Report, Simulation, Trouble,
};
use longhaul::{Retry, Session, WorkerPool, secs};

fn pool(ceiling: usize) -> WorkerPoolBuilder {
    let session = Session::builder().retry(Retry::long_run());
    WorkerPool::builder(session).concurrency(Concurrency::Adaptive).workers(ceiling)
}

fn night(pool: WorkerPoolBuilder, faults: FaultModel, urls: usize, seed: u64) -> Report {
    // On hosts enough that none of them cools down for all.
    Simulation::of(pool)
        .urls(urls)
        .hosts(50)
        .faults(faults)
        .bucket(secs(10.0))
        .seed(seed)
        .run()
        .unwrap()
}

fn web() -> LatencyModel {
    LatencyModel::lognormal(secs(0.4), secs(1.6)).unwrap()
}

fn refusals(report: &Report, status: u16) -> f64 {
    let refused = report.answers.get(&Ending::Status(status)).copied().unwrap_or_default();
    refused as f64 / report.attempts as f64
}

#[test]
fn an_origin_that_refuses_above_40_in_parallel_is_found_and_held() {
    for seed in 0..6 {
        let status = if seed % 2 == 0 { 429 } else { 503 };
        let faults = FaultModel::none().latency(web()).overload(40, Overload::Refuse(status));
        let report = night(pool(300), faults, 15_000, seed);
        assert!((32..=48).contains(&report.concurrency), "seed {seed}: {}", report.concurrency);
        assert!((32..=48).contains(&report.most_concurrency), "seed {seed}: {report:?}");
        let share = refusals(&report, status);
        assert!(share > 0.0 && share < 0.02, "seed {seed}: {share} refused");
        // Held: in each stretch after the walk up, and before the last ones run out.
        let whole = report.timeline.len() - 3;
        for bucket in &report.timeline[6..whole] {
            assert!((30.0..=44.0).contains(&bucket.in_flight), "seed {seed}: {bucket:?}");
        }
        assert_eq!(report.classes["ok"], report.urls, "seed {seed}");
    }
}

#[test]
fn an_origin_that_becomes_slow_under_load_is_not_loaded_further() {
    for seed in 0..4 {
        let faults = FaultModel::none().latency(web()).overload(60, Overload::Slow);
        let report = night(pool(300), faults, 15_000, seed);
        // Below 60 it would not be used, and from 120 on each answer takes twice as long.
        let whole = report.timeline.len() - 3;
        for bucket in &report.timeline[6..whole] {
            assert!((50.0..=140.0).contains(&bucket.in_flight), "seed {seed}: {bucket:?}");
        }
        assert!(report.back_offs > 0, "seed {seed}");
    }
}

#[test]
fn what_is_never_refused_reaches_the_ceiling() {
    for seed in 0..4 {
        let faults = FaultModel::none()
            .latency(web())
            .share(Trouble::Status(403), 0.05)
            .share(Trouble::Status(503), 0.01)
            .share(Trouble::Silence, 0.02)
            .share(Trouble::Reset, 0.01);
        let report = night(pool(200), faults, 20_000, seed);
        assert_eq!(report.concurrency, 200, "seed {seed}: {}", report.back_offs);
    }
}

#[test]
fn a_limit_elsewhere_is_not_mistaken_for_leave_to_grow() {
    let faults = || FaultModel::none().latency(secs(0.5));
    // 20 a second at half a second each are ten at once.
    let report = night(pool(1000).rate(20.0), faults(), 4000, 1);
    assert!(report.concurrency <= 12, "{}", report.concurrency);
    let one_host = Simulation::of(pool(1000).per_host(9)).urls(4000).faults(faults());
    let report = one_host.run().unwrap();
    assert!(report.concurrency <= 12, "{}", report.concurrency);
}

#[test]
fn fixed_concurrency_is_the_number_of_workers() {
    let pool = WorkerPool::builder(Session::builder()).workers(7);
    let report = night(pool, FaultModel::none(), 100, 1);
    assert_eq!((report.concurrency, report.most_concurrency, report.back_offs), (7, 7, 0));
}

#[cfg(feature = "lab")]
#[test]
fn who_rests_has_closed_its_connections() {
    let origin = crowded::crowded(20);
    let session = Session::builder().trust_env(false).retry(Retry::long_run());
    let pool = WorkerPool::builder(session)
        .concurrency(Concurrency::Adaptive)
        .workers(300)
        .build()
        .unwrap();
    let urls: Vec<_> = (0..2000).map(|page| origin.url(&format!("/{page}"))).collect();
    let mut has_fewer = false;
    for (number, done) in pool.run(&urls).enumerate() {
        assert_eq!(done.result.unwrap().status(), 200);
        // After the walk up; whoever is called off finishes what flies.
        let (open, called) = (origin.counts().open, pool.stats().concurrency);
        has_fewer |= number > 1000 && open <= called;
    }
    let stats = pool.stats();
    assert!(stats.back_offs > 0, "{stats:?}");
    assert!(origin.counts().most_open > stats.most_concurrency, "{:?}", origin.counts());
    assert!(has_fewer, "{:?}, {stats:?}", origin.counts());
}
