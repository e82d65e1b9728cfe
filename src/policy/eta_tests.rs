use super::*;
use crate::rng::Rng;
use proptest::prelude::*;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

fn second(times: f64) -> Duration {
    secs(times)
}

/// Ten URLs a second, a thousand left, each quick.
fn steady() -> Remaining {
    let quick = second(0.1);
    Remaining {
        left: 1000,
        in_flight: 10,
        rate: 10.0,
        attempts_each: 1.0,
        took: Took { p50: quick, p90: quick, p99: quick, p999: quick, most: quick },
        ..Remaining::default()
    }
}

#[test]
fn what_each_part_comes_to() {
    let base = steady();
    let held = Later {
        passes: 1,
        held: 100,
        worked_each: second(10.0),
        attempts_each: 4.0,
        took_each: second(30.0),
        at_once: 10,
        ..Later::default()
    };
    for (what, remaining, wanted) in [
        ("the work", base, Some(100.0)),
        ("nothing left", Remaining { left: 0, rate: 0.0, ..base }, Some(0.0)),
        ("nothing has ended yet", Remaining { rate: 0.0, ..base }, None),
        (
            "a limit of attempts",
            Remaining { attempts_each: 2.0, most_attempts: Some(4.0), ..base },
            Some(500.0),
        ),
        (
            "a wait beside the work",
            Remaining { last_wait: Some(second(60.0)), ..base },
            Some(100.0),
        ),
        (
            "a wait that is all there is",
            Remaining { left: 1, waiting: 1, in_flight: 0, last_wait: Some(second(60.0)), ..base },
            Some(60.1),
        ),
        ("another pass", Remaining { later: held, ..base }, Some(200.0)),
        (
            "another pass under a limit",
            Remaining { most_attempts: Some(2.0), later: held, ..base },
            Some(500.0 + 200.0),
        ),
        (
            "those that are still to be held back",
            Remaining { later: Later { share: 0.1, ..held }, ..base },
            Some(300.0),
        ),
        (
            "few in another pass take as long as one",
            Remaining { later: Later { held: 1, ..held }, ..base },
            Some(130.0),
        ),
        (
            "two passes over what is expected to fail again",
            Remaining { later: Later { passes: 2, ..held }, ..base },
            Some(300.0),
        ),
        (
            "two passes of which the share is known",
            Remaining {
                left: 0,
                later: Later { passes: 2, share: 0.5, is_again: true, ..held },
                ..base
            },
            Some(150.0),
        ),
    ] {
        assert_eq!(remaining.eta(), wanted.map(second), "{what}");
    }
}

#[test]
fn the_slowest_of_the_last_ones_is_waited_for() {
    // One in a hundred takes a minute, at ten a second: some of them are always under way.
    let mut remaining = steady();
    remaining.took = Took { p999: second(60.0), most: second(61.0), ..remaining.took };
    remaining.took.p99 = second(20.0);
    let eta = remaining.eta().unwrap();
    assert!(eta > second(99.0 + 30.0) && eta < second(99.0 + 61.0), "{eta:?}");
}

proptest! {
    #[test]
    fn never_a_panic_and_more_to_do_never_takes_less(
        left in 0_u64..1_000_000, more in 0_u64..1000, rate in -1.0..1e6_f64, most in proptest::option::of(0.0..1e3_f64),
        wait in proptest::option::of(0.0..1e9_f64), times in proptest::collection::vec(0.0..1e5_f64, 5),
        held in 0_u64..100_000, share in -1.0..2.0_f64, passes in 0_u32..4,
    ) {
        let mut times = times;
        times.sort_by(f64::total_cmp);
        let remaining = Remaining {
            left, rate, most_attempts: most, attempts_each: 1.1,
            last_wait: wait.map(second),
            took: Took {
                p50: second(times[0]), p90: second(times[1]), p99: second(times[2]),
                p999: second(times[3]), most: second(times[4]),
            },
            later: Later { passes, held, share, at_once: 8, worked_each: second(times[3]), ..Later::default() },
            ..Remaining::default()
        };
        let eta = remaining.eta();
        let longer = Remaining { left: left + more, ..remaining }.eta();
        match (eta, longer) {
            (Some(eta), Some(longer)) => prop_assert!(longer >= eta),
            (None, longer) => prop_assert_eq!(longer, None),
            // One that has nothing left needs no rate.
            (Some(_), None) => prop_assert_eq!(left, 0),
        }
    }
}

/// A run of `urls` on `workers`, of which some are throttled for long: when it ended, and what was
/// estimated at half of it.
fn simulated(seed: u64, urls: u64, workers: u64) -> (f64, f64, f64) {
    let mut rng = Rng::seeded(seed);
    let micros = |time: f64| (time * 1e6) as u64;
    // When an event happens, which URL, when it began, and whether a worker is free by it.
    let mut events: BinaryHeap<Reverse<(u64, u64, u64, bool)>> = BinaryHeap::new();
    let (mut fed, mut busy, mut now) = (0, 0, 0_u64);
    let mut due = Vec::new();
    let (mut took, mut ends) = (Vec::new(), Vec::new());
    let mut waits = WaitLengths::default();
    let (mut attempts, mut estimate) = (0_u64, None);
    loop {
        while busy < workers {
            let next = due.pop().or_else(|| {
                (fed < urls).then(|| {
                    fed += 1;
                    (fed, now)
                })
            });
            let Some((url, began)) = next else { break };
            busy += 1;
            attempts += 1;
            let lasts = micros(rng.uniform(0.1, 0.5));
            events.push(Reverse((now + lasts, url, began, true)));
        }
        let Some(Reverse((at, url, began, attempted))) = events.pop() else { break };
        now = at;
        if !attempted {
            due.push((url, began));
            continue;
        }
        busy -= 1;
        let luck = rng.unit();
        if luck < 0.05 {
            let wait = if luck < 0.01 { rng.uniform(20.0, 60.0) } else { rng.uniform(0.6, 2.4) };
            waits.0[WaitLengths::place(second(wait))] += 1;
            events.push(Reverse((now + micros(wait), url, began, false)));
            continue;
        }
        took.push(now - began);
        ends.push(now);
        if ends.len() as u64 == urls / 2 {
            let mut sorted = took.clone();
            sorted.sort_unstable();
            let at = |share: f64| {
                let place = (share * (sorted.len() - 1) as f64) as usize;
                second(sorted[place] as f64 / 1e6)
            };
            let begun = || events.iter().filter(|event| !event.0.3);
            let last = begun().map(|event| event.0.0 - now).max();
            let remaining = Remaining {
                left: urls - urls / 2,
                waiting: begun().count() as u64,
                waits,
                attempts,
                in_flight: busy,
                rate: ends.len() as f64 / (now as f64 / 1e6),
                attempts_each: attempts as f64 / ends.len() as f64,
                last_wait: last.map(|last| second(last as f64 / 1e6)),
                took: Took {
                    p50: at(0.5),
                    p90: at(0.9),
                    p99: at(0.99),
                    p999: at(0.999),
                    most: at(1.0),
                },
                ..Remaining::default()
            };
            estimate = Some((now as f64 / 1e6, remaining.eta().unwrap().as_secs_f64()));
        }
    }
    let (half, estimate) = estimate.unwrap();
    (half, estimate, *ends.last().unwrap() as f64 / 1e6 - half)
}

/// The bounds that `docs/progress.md` gives. What is left over is luck: one URL that is throttled
/// twice near the end.
#[test]
fn at_half_of_a_run_the_rest_is_told_to_a_quarter_and_never_by_more_than_a_half() {
    let mut ratios: Vec<f64> = (0..60)
        .map(|seed| {
            let (half, estimate, truth) = simulated(seed, 4000, 20);
            // What is done says less: much of a short run is the waits at its end.
            assert!(truth > 1.2 * half, "{seed}: {half:.1} s, then {truth:.1} s");
            estimate / truth
        })
        .collect();
    ratios.sort_by(f64::total_cmp);
    assert!(ratios[0] > 1.0 / 1.5 && ratios[59] < 1.5, "{ratios:?}");
    assert!(ratios[3] > 0.75 && ratios[56] < 1.25, "{ratios:?}");
    assert!((0.9..1.1).contains(&ratios[30]), "{ratios:?}");
}
