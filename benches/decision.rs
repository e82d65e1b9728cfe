//! What it costs to decide: tens of nanoseconds for a retry, well under a millisecond for the worst
//! case of any policy.
//!
//! `cargo bench --bench decision`; that nothing is allocated is a test (`tests/allocations.rs`).

#![allow(missing_docs, reason = "the macros of criterion make functions without")]

use criterion::{BatchSize, Criterion, criterion_group, criterion_main};
use http::{HeaderMap, HeaderValue, Method};
use longhaul::policy::{
    Backoff, Budget, Category, Cooldown, HostCircuit, Outcome, RetryAfter, RetryBudget, Share,
    WorstCase,
};
use longhaul::rng::Rng;
use longhaul::time::{Clock, SimClock};
use longhaul::{Retry, Timeouts, secs};
use std::hint::black_box;
use std::time::SystemTime;

fn decisions(bench: &mut Criterion) {
    let error = Outcome::Error { category: Category::Read, permanent: false, retry_after: None };
    let status = Outcome::Status { status: 503, retry_after: None };
    let throttle = Outcome::Status { status: 429, retry_after: Some(secs(2.0)) };
    let jitter = Retry::long_run().backoff(Backoff::decorrelated(secs(0.6)));
    let spent = Retry::long_run().total(0);
    for (name, retry, outcome) in [
        ("retry after an error", Retry::long_run(), error),
        ("retry after a status", Retry::long_run(), status),
        ("retry as Retry-After asks", Retry::long_run(), throttle),
        ("retry with jitter", jitter, error),
        ("no retry, the total is used up", spent, error),
    ] {
        let mut rng = Rng::seeded(1);
        bench.bench_function(name, |bench| {
            bench.iter_batched_ref(
                || retry.start(),
                |state| state.decide(&Method::GET, black_box(&outcome), &mut rng),
                BatchSize::SmallInput,
            );
        });
    }
}

fn brakes(bench: &mut Criterion) {
    let now = SimClock::default().now();
    let mut budget = RetryBudget::new(Share::HALF);
    bench.bench_function("the retry budget of a run", |bench| {
        bench.iter(|| {
            budget.note_request(black_box(now));
            budget.take_retry(black_box(now))
        });
    });
    let mut circuit = HostCircuit::default();
    circuit.note("a.example", true, now);
    bench.bench_function("the circuit of a host", |bench| {
        bench.iter(|| {
            circuit.note(black_box("a.example"), true, now);
            circuit.may_retry(black_box("a.example"), now)
        });
    });
    let (mut cooldown, mut rng) = (Cooldown::default(), Rng::seeded(1));
    cooldown.note("a.example", 0, 429, secs(60.0), now);
    bench.bench_function("the cool-down of a host", |bench| {
        bench.iter(|| cooldown.until(black_box("a.example"), 0, now, &mut rng));
    });
}

fn retry_after(bench: &mut Criterion) {
    let wall = SystemTime::UNIX_EPOCH;
    for (name, value) in [
        ("Retry-After in seconds", "120"),
        ("Retry-After as a date", "Sun, 15 Jun 2025 16:06:45 GMT"),
    ] {
        let mut headers = HeaderMap::new();
        headers.insert("retry-after", HeaderValue::from_static(value));
        bench.bench_function(name, |bench| {
            bench.iter(|| RetryAfter::of(black_box(&headers), wall));
        });
    }
}

fn worst_case(bench: &mut Criterion) {
    let timeouts = Timeouts::from((secs(5.0), secs(25.0)));
    let ten = Retry::from_total(10)
        .connect(5)
        .read(4)
        .status(3)
        .other(2)
        .redirect(6)
        .status_forcelist([503])
        .backoff(Backoff::exponential(secs(0.6)));
    let huge = ten.clone().total(u32::MAX).connect(Budget::Unlimited).read(u32::MAX);
    for (name, retry) in [("worst case of total 10", ten), ("worst case of any total", huge)] {
        bench.bench_function(name, |bench| {
            bench.iter(|| WorstCase::of(black_box(&retry), &timeouts));
        });
    }
}

criterion_group!(benches, decisions, brakes, retry_after, worst_case);
criterion_main!(benches);
