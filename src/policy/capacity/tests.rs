use super::*;
use crate::policy::worst_case::duration;
use crate::policy::{Backoff, Category};
use crate::time::secs;
use proptest::prelude::*;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

fn fixed(seconds: f64) -> Latency {
    Latency::fixed(secs(seconds)).unwrap()
}

fn percent(text: &str) -> Share {
    text.parse().unwrap()
}

fn urls(count: u64) -> CapacityBuilder {
    Capacity::builder(Work::Urls(count))
}

#[test]
fn two_of_a_hundred_failures_cost_over_an_hour() {
    let capacity = urls(40_000).failure_rate(percent("2%")).build().unwrap();
    let run = capacity.run(24).unwrap();
    let held = run.failures_if_waits_hold();
    assert_eq!((held.urls(), held.each().total()), (800.0, secs(159.0)));
    assert_eq!(held.worker_time(), secs(127_200.0));
    assert_eq!(held.run_time(), secs(5300.0));
    assert!(held.run_time() > secs(3600.0));

    // Nine of the 159 s are waits, and nobody is held by them here.
    let parked = run.failures();
    assert_eq!(parked, run.failures_if_waits_are_parked());
    assert_eq!((parked.each().attempting(), parked.each().waiting()), (secs(150.0), secs(9.0)));
    assert_eq!((parked.worker_time(), parked.run_time()), (secs(120_000.0), secs(5000.0)));
    assert_eq!((parked.each().attempts(), parked.share()), (5.0, None));
    assert_eq!((run.run_time(), run.limited_by()), (secs(5000.0), LimitedBy::Workers));

    let asleep = urls(40_000).failure_rate(percent("2%")).waits(Waits::HoldWorker).build().unwrap();
    assert_eq!(asleep.run(24).unwrap().run_time(), secs(5300.0));
}

#[test]
fn good_answers_and_failures_add_up() {
    let capacity = urls(40_000)
        .latency(fixed(1.2))
        .failure_rate(percent("2%"))
        .waits(Waits::HoldWorker)
        .build()
        .unwrap();
    let run = capacity.run(24).unwrap();
    assert_eq!(run.worker_time(), secs(39_200.0 * 1.2 + 127_200.0));
    assert_eq!(run.run_time(), secs((47_040.0 + 127_200.0) / 24.0));
    let share = run.failures().share().unwrap();
    assert!((share - 127_200.0 / 174_240.0).abs() < 1e-12, "{share}");
    assert!((run.busy_workers() - 24.0).abs() < 1e-9);
    assert!((run.urls_per_second() - 40_000.0 / 7260.0).abs() < 1e-9);
    // In an hour: 174 240 / 3600 = 48.4.
    let hour = capacity.workers_for(secs(3600.0)).unwrap();
    assert_eq!((hour.workers(), hour.limited_by()), (49, LimitedBy::Workers));
    assert!(hour.run_time() <= secs(3600.0));
}

#[test]
fn the_constraint_that_binds_is_named() {
    let base = || urls(10_000).latency(fixed(2.0)).page_bytes(100_000);
    let package = |connections| Package::new(connections).unwrap();
    let cases = [
        (base(), 100, LimitedBy::Workers, 200.0),
        (base().package(package(1000)), 1000, LimitedBy::Workers, 20.0),
        (base().package(package(1000)), 2000, LimitedBy::Package, 20.0),
        (base().package(package(1000).bindings(2).unwrap()), 2000, LimitedBy::Package, 40.0),
        (base().package(package(1000)).package(package(500)), 2000, LimitedBy::Package, 20.0),
        (base().per_host(8), 24, LimitedBy::PerHost, 2500.0),
        (base().per_host(8).hosts(2), 24, LimitedBy::PerHost, 1250.0),
        (base().rate(5.0), 24, LimitedBy::Rate, 2000.0),
        (base().per_host_rate(0.5).hosts(4), 24, LimitedBy::PerHostRate, 5000.0),
        // A thousand million bytes at a hundred thousand a second.
        (base().bandwidth(100_000), 24, LimitedBy::Bandwidth, 10_000.0),
        (base(), 20_000, LimitedBy::Row, 2.0),
    ];
    for (builder, workers, by, seconds) in cases {
        let run = builder.build().unwrap().run(workers).unwrap();
        assert_eq!((run.limited_by(), run.run_time()), (by, secs(seconds)));
    }
    assert_eq!(LimitedBy::Package.to_string(), "the parallel connections of the package");
    assert_eq!(LimitedBy::PerHostRate.name(), "per_host_rate");
}

#[test]
fn pages_of_a_target_come_one_after_another() {
    let work = Work::Targets { targets: 50, depth: 20 };
    let capacity = Capacity::builder(work).latency(fixed(3.0)).build().unwrap();
    assert_eq!((work.urls(), capacity.most_useful_workers()), (1000, 50));
    let run = |workers| capacity.run(workers).unwrap();
    assert_eq!((run(10).run_time(), run(10).limited_by()), (secs(300.0), LimitedBy::Workers));
    assert_eq!((run(50).run_time(), run(50).limited_by()), (secs(60.0), LimitedBy::Workers));
    assert_eq!((run(80).run_time(), run(80).limited_by()), (secs(60.0), LimitedBy::Row));
    assert_eq!(capacity.pool_sizes(80).unwrap().workers, 50);
    // Nothing makes it faster than a row, so the fewest that reach that are the answer.
    let asked = capacity.workers_for(secs(10.0)).unwrap();
    assert_eq!((asked.workers(), asked.run_time()), (50, secs(60.0)));
}

#[test]
fn retries_count_against_a_rate() {
    let cost = FailureCost::new(5, secs(150.0), secs(9.0)).unwrap();
    let capacity = urls(1000)
        .latency(fixed(0.1))
        .failure_rate(percent("10%"))
        .failure_cost(cost)
        .rate(7.0)
        .build()
        .unwrap();
    let run = capacity.run(1000).unwrap();
    // 900 + 100 · 5 attempts.
    assert_eq!((run.limited_by(), run.run_time()), (LimitedBy::Rate, secs(200.0)));
    assert_eq!(run.latest(), None);
}

#[test]
fn littles_law_both_ways() {
    let capacity = urls(100).latency(fixed(0.25)).build().unwrap();
    assert_eq!(capacity.in_flight(100.0).unwrap(), 25.0);
    assert_eq!(capacity.throughput(25).unwrap(), 100.0);
    let workers = capacity.workers_for_rate(100.0).unwrap();
    assert_eq!((workers.workers(), workers.run_time()), (25, secs(1.0)));
    let workers = capacity.workers_for_rate(100.1).unwrap();
    assert!(workers.workers() == 26 && workers.urls_per_second() >= 100.1);
}

#[test]
fn what_to_set() {
    let capacity =
        urls(10_000).latency(fixed(1.0)).hosts(20).identities(3).per_host(4).build().unwrap();
    let sizes = capacity.pool_sizes(200).unwrap();
    // 20 hosts stand 4 connections each.
    assert_eq!((sizes.workers, sizes.pool_connections), (80, 60));
    assert_eq!((sizes.pool_maxsize, sizes.pool_maxsize_shared), (1, 4));
    assert_eq!(capacity.ceiling(), Some((80, LimitedBy::PerHost)));
    let open = urls(10_000).latency(fixed(1.0)).build().unwrap();
    assert_eq!(open.pool_sizes(24).unwrap().pool_maxsize_shared, 24);
    assert_eq!(open.ceiling(), None);
}

#[test]
fn costs_of_failures() {
    let retry = Retry::long_run();
    let refused = FailureCost::alike(&retry, Category::Connect, secs(0.1)).unwrap();
    assert_eq!((refused.attempts(), refused.attempting()), (4.0, secs(0.4)));
    assert_eq!(refused.waiting(), secs(0.6 + 1.2 + 2.4));
    let silent = FailureCost::alike(&retry, Category::Read, secs(30.0)).unwrap();
    assert_eq!((silent.attempts(), silent.total()), (3.0, secs(91.8)));
    let mixed =
        FailureCost::expected(&[(percent("75%"), refused), (percent("25%"), silent)]).unwrap();
    assert_eq!(mixed.attempts(), 3.75);
    assert_eq!(mixed.total(), secs(0.75 * 4.6 + 0.25 * 91.8));
    let error = FailureCost::expected(&[(percent("75%"), refused)]).unwrap_err();
    assert!(error.message().contains("make 75 % together"), "{error}");
    let error =
        FailureCost::alike(&retry.clone().total(None), Category::Other, secs(1.0)).unwrap_err();
    assert!(error.message().contains("neither `total` nor `other`"), "{error}");
    let open = WorstCase::of(&retry, &Timeouts::unlimited());
    let error = FailureCost::worst(&open).unwrap_err();
    assert!(error.message().contains("because no connect timeout is set"), "{error}");
    let jittered = Retry::from_total(2).backoff(Backoff::full_jitter(secs(1.0)));
    let cost = FailureCost::alike(&jittered, Category::Other, secs(1.0)).unwrap();
    assert_eq!(cost.waiting(), secs(3.0));
}

#[test]
fn nonsense_is_refused_by_name() {
    let good = || urls(10).latency(fixed(1.0));
    for (builder, named) in [
        (urls(0).latency(fixed(1.0)), "number of URLs is zero"),
        (
            Capacity::builder(Work::Targets { targets: 0, depth: 3 }).latency(fixed(1.0)),
            "number of targets is zero",
        ),
        (
            Capacity::builder(Work::Targets { targets: 3, depth: 0 }).latency(fixed(1.0)),
            "number of pages of a target is zero",
        ),
        (urls(10), "nothing takes any time"),
        (good().hosts(0), "number of hosts is zero"),
        (good().identities(0), "number of identities is zero"),
        (good().per_host(0), "number of connections per host is zero"),
        (good().bandwidth(0), "number of bytes per second is zero"),
        (good().rate(0.0), "the rate is 0 a second"),
        (good().rate(f64::NAN), "the rate is NaN a second"),
        (good().rate(f64::INFINITY), "the rate is inf a second"),
        (good().per_host_rate(-1.0), "the rate per host is -1 a second"),
    ] {
        let error = builder.build().unwrap_err();
        assert!(error.message().contains(named), "{error} lacks {named}");
    }
    let capacity = good().build().unwrap();
    for error in [
        capacity.run(0).unwrap_err(),
        capacity.workers_for(Duration::ZERO).unwrap_err(),
        capacity.workers_for_rate(0.0).unwrap_err(),
        capacity.in_flight(f64::NAN).unwrap_err(),
        capacity.throughput(0).unwrap_err(),
        capacity.pool_sizes(0).unwrap_err(),
    ] {
        assert_eq!(error.kind(), crate::error::ErrorKind::Config);
    }
}

#[test]
fn numbers_beyond_all_sense_saturate() {
    let cost = FailureCost::new(u32::MAX, Duration::MAX, Duration::MAX).unwrap();
    let capacity = urls(u64::MAX)
        .latency(Latency::fixed(Duration::MAX).unwrap())
        .failure_rate(Share::ALL)
        .failure_cost(cost)
        .page_bytes(u64::MAX)
        .bandwidth(1)
        .rate(0.000001)
        .build()
        .unwrap();
    for run in [
        capacity.run(1).unwrap(),
        capacity.run(u64::MAX).unwrap(),
        capacity.workers_for(secs(1.0)).unwrap(),
        capacity.workers_for_rate(1e9).unwrap(),
    ] {
        assert_eq!(run.run_time(), Duration::MAX);
        assert!(run.busy_workers().is_finite() && run.urls_per_second() >= 0.0);
    }
}

/// A URL of a simulation: what holds a worker, and the wait behind it.
type Segments = Vec<(u128, u128)>;

/// Workers that take what is due, in the order in which it became due; the last end, in
/// nanoseconds.
fn simulate(rows: &[Segments], workers: usize, waits: Waits) -> u128 {
    let mut ready: BinaryHeap<_> = (0..rows.len()).map(|row| Reverse((0, row, 0))).collect();
    let mut free: BinaryHeap<_> = (0..workers).map(|_| Reverse(0_u128)).collect();
    let mut end = 0;
    while let Some(Reverse((due, row, at))) = ready.pop() {
        let Some(Reverse(worker)) = free.pop() else { break };
        let (held, wait) = rows[row][at];
        let attempted = due.max(worker) + held;
        free.push(Reverse(if waits == Waits::HoldWorker { attempted + wait } else { attempted }));
        end = end.max(attempted + wait);
        if at + 1 < rows[row].len() {
            ready.push(Reverse((attempted + wait, row, at + 1)));
        }
    }
    end
}

#[test]
fn a_simulated_night_takes_what_was_calculated() {
    let mut rows: Vec<Segments> = vec![vec![(1_200_000_000, 0)]; 39_200];
    let waits = [0.6, 1.2, 2.4, 4.8, 0.0].map(|wait| secs(wait).as_nanos());
    let failing: Segments = waits.map(|wait| (30_000_000_000, wait)).into();
    // Failures come evenly among the others.
    for place in 0..800 {
        rows.insert(place * 50, failing.clone());
    }
    for waits in [Waits::Parked, Waits::HoldWorker] {
        let capacity = urls(40_000)
            .latency(fixed(1.2))
            .failure_rate(percent("2%"))
            .waits(waits)
            .build()
            .unwrap();
        let run = capacity.run(24).unwrap();
        let simulated = duration(simulate(&rows, 24, waits));
        assert!(run.run_time() <= simulated && simulated <= run.latest().unwrap(), "{simulated:?}");
        assert!(simulated - run.run_time() < secs(160.0));
    }
    // Nothing but equal URLs that share out evenly: to the nanosecond.
    let capacity = urls(2400).latency(fixed(1.2)).build().unwrap();
    let simulated = simulate(&vec![vec![(1_200_000_000, 0)]; 2400], 24, Waits::Parked);
    assert_eq!(capacity.run(24).unwrap().run_time(), duration(simulated));
}

prop_compose! {
    /// So many good and failing URLs in some order, as pages of targets or each by itself.
    fn any_run()(
        good in 0_u64..60,
        failing in 0_u64..10,
        depth in 1_u64..5,
        each in 1_u64..3_000,
        held in 1_u64..30_000,
        waited in 0_u64..9_000,
        workers in 1_usize..12,
        parked in any::<bool>(),
        order in any::<u64>(),
    ) -> (Capacity, Vec<Segments>, usize, Waits) {
        let depth = if failing == 0 { depth } else { 1 };
        let (good, failing) = if good + failing == 0 { (1, 0) } else { (good, failing) };
        let ms = |millis: u64| Duration::from_millis(millis);
        let waits = if parked { Waits::Parked } else { Waits::HoldWorker };
        let mut rows: Vec<Segments> =
            vec![vec![(ms(each).as_nanos(), 0); depth as usize]; good as usize];
        let failure = vec![
            (ms(held).as_nanos(), ms(waited).as_nanos()),
            (ms(held).as_nanos(), 0),
        ];
        rows.extend(vec![failure; failing as usize]);
        let mut rng = crate::rng::Rng::seeded(order);
        for last in (1..rows.len()).rev() {
            rows.swap(last, rng.below(last + 1));
        }
        let work = match depth {
            1 => Work::Urls(good + failing),
            _ => Work::Targets { targets: good, depth },
        };
        let share = failing as f64 / (good + failing) as f64;
        let capacity = Capacity::builder(work)
            .latency(Latency::fixed(ms(each)).unwrap())
            .failure_rate(Share::new(share).unwrap())
            .failure_cost(FailureCost::new(2, ms(2 * held), ms(waited)).unwrap())
            .waits(waits)
            .build()
            .unwrap();
        (capacity, rows, workers, waits)
    }
}

prop_compose! {
    fn any_capacity()(
        count in 1_u64..100_000,
        depth in 1_u64..30,
        rows in any::<bool>(),
        (p50, p95, p99) in (1_u64..2000, 0_u64..2000, 0_u64..2000),
        failures in 0_u64..1000,
        page_bytes in 0_u64..100_000,
        bandwidth in proptest::option::of(1_u64..100_000_000),
        package in proptest::option::of((1_u64..=3000, 1_u64..3)),
        per_host in proptest::option::of(1_u64..100),
        hosts in 1_u64..5,
        rate in proptest::option::of(0.1_f64..1000.0),
        per_host_rate in proptest::option::of(0.1_f64..1000.0),
    ) -> CapacityBuilder {
        let ms = |millis: u64| Duration::from_millis(millis);
        let latency = Latency::quantiles(ms(p50), ms(p50 + p95), ms(p50 + p95 + p99)).unwrap();
        let work = match rows {
            true => Work::Targets { targets: count, depth },
            false => Work::Urls(count),
        };
        let mut builder = Capacity::builder(work)
            .latency(latency)
            .failure_rate(Share::new(failures as f64 / 10_000.0).unwrap())
            .page_bytes(page_bytes)
            .hosts(hosts);
        builder.bandwidth = bandwidth;
        builder.per_host = per_host;
        builder.rate = rate;
        builder.per_host_rate = per_host_rate;
        if let Some((connections, bindings)) = package {
            let bindings = bindings.min(connections);
            builder = builder.package(Package::new(connections).unwrap().bindings(bindings).unwrap());
        }
        builder
    }
}

proptest! {
    #[test]
    fn every_schedule_ends_between_the_bounds((capacity, rows, workers, waits) in any_run()) {
        let run = capacity.run(workers as u64).unwrap();
        let simulated = duration(simulate(&rows, workers, waits));
        // A share of three is told to the billionth.
        let slack = Duration::from_micros(10);
        prop_assert!(run.run_time() <= simulated + slack, "{:?} {simulated:?}", run.run_time());
        prop_assert!(simulated <= run.latest().unwrap() + slack);
    }

    #[test]
    fn the_fewest_workers_are_the_fewest(builder in any_capacity(), seconds in 1_u64..100_000) {
        let capacity = builder.build().unwrap();
        let time = Duration::from_secs(seconds);
        let run = capacity.workers_for(time).unwrap();
        let best = capacity.run(u64::MAX).unwrap().run_time();
        prop_assert!(run.run_time() <= time.max(best));
        if run.workers() > 1 {
            prop_assert!(capacity.run(run.workers() - 1).unwrap().run_time() > time.max(best));
        }
    }

    #[test]
    fn only_the_constraint_that_is_named_matters(builder in any_capacity(), workers in 1_u64..5000) {
        let run = builder.clone().build().unwrap().run(workers).unwrap();
        let time = |builder: CapacityBuilder, workers| {
            builder.build().unwrap().run(workers).unwrap().run_time()
        };
        let without = |by| {
            let mut builder = builder.clone();
            match by {
                LimitedBy::Workers | LimitedBy::Row => {}
                LimitedBy::Package => builder.packages.clear(),
                LimitedBy::PerHost => builder.per_host = None,
                LimitedBy::Rate => builder.rate = None,
                LimitedBy::PerHostRate => builder.per_host_rate = None,
                LimitedBy::Bandwidth => builder.bandwidth = None,
            }
            time(builder, if by == LimitedBy::Workers { u64::MAX } else { workers })
        };
        for by in [
            LimitedBy::Workers,
            LimitedBy::Package,
            LimitedBy::PerHost,
            LimitedBy::Rate,
            LimitedBy::PerHostRate,
            LimitedBy::Bandwidth,
            LimitedBy::Row,
        ] {
            if by == run.limited_by() {
                prop_assert!(without(by) <= run.run_time());
            } else {
                prop_assert_eq!(without(by), run.run_time(), "{:?}", by);
            }
        }
    }

    #[test]
    fn more_workers_are_never_slower_and_failures_never_help(
        builder in any_capacity(),
        workers in 1_u64..5000,
    ) {
        let capacity = builder.clone().build().unwrap();
        let run = |workers| capacity.run(workers).unwrap();
        prop_assert!(run(workers + 1).run_time() <= run(workers).run_time());
        let useful = capacity.most_useful_workers();
        prop_assert_eq!(run(useful).run_time(), run(u64::MAX).run_time());
        let one = run(workers);
        prop_assert!(one.busy_workers() <= workers as f64 * (1.0 + 1e-9));
        let (parked, held) = (one.failures_if_waits_are_parked(), one.failures_if_waits_hold());
        prop_assert!(parked.worker_time() <= held.worker_time());
    }
}

#[test]
fn a_deadline_cuts_what_a_failure_costs() {
    let cost = |deadline: f64| {
        let timeouts = Timeouts::from((secs(5.0), secs(25.0)));
        let timeouts = timeouts.with_deadline(secs(deadline)).unwrap();
        let worst = WorstCase::of(&Retry::long_run(), &timeouts);
        let cost = FailureCost::worst(&worst).unwrap();
        [cost.attempts(), cost.attempting().as_secs_f64(), cost.waiting().as_secs_f64()]
    };
    assert_eq!(cost(159.0), [5.0, 150.0, 9.0]);
    assert_eq!(cost(158.0), [5.0, 149.0, 9.0]);
    assert_eq!(cost(60.0), [2.0, 59.4, 0.6]);
    // The wait would last until the deadline.
    assert_eq!(cost(30.6), [1.0, 30.0, 0.0]);
    assert_eq!(cost(10.0), [1.0, 10.0, 0.0]);
    let retry = Retry::from_total(1_000_000).backoff(Backoff::none());
    let timeouts = Timeouts::from((secs(5.0), secs(25.0))).with_deadline(secs(3600.0)).unwrap();
    let cost = FailureCost::worst(&WorstCase::of(&retry, &timeouts)).unwrap();
    assert_eq!((cost.attempts(), cost.total()), (120.0, secs(3600.0)));
}
