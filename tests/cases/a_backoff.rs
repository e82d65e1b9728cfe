//! Section A: the own waits of a policy, and those of a herd.

use crate::a_retry::{in_turn, patient, waits};
use crate::roads::{Road, World, recipe};
use http::Method;
use longhaul::error::WaitReason;
use longhaul::lab::{Origin, Received, Reply};
use longhaul::policy::{Backoff, Decision, Outcome, Shape};
use longhaul::rng::Rng;
use longhaul::session::{Flight, Step};
use longhaul::time::{Clock, SimClock};
use longhaul::transport::{self, Play};
use longhaul::{Request, Response, Retry, Session, SessionBuilder, secs};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Barrier};
use std::time::{Duration, Instant, SystemTime};

#[test]
fn c09_both_series_on_the_wire() {
    let four = |backoff: Backoff| {
        Retry::from_total(4).status_forcelist([503]).raise_on_status(false).backoff(backoff)
    };
    let series = |backoff: Backoff| {
        let world = in_turn(vec![Reply::new(503).into(); 9]);
        let clock = Arc::new(SimClock::default());
        let recipe = patient(&world, Road::Plain, four(backoff)).clock(clock.clone());
        let response = recipe.build().unwrap().get(world.url(Road::Plain, "/")).send().unwrap();
        let waits: Vec<Duration> = waits(response.attempts()).into_iter().flatten().collect();
        assert_eq!(clock.elapsed(), waits.iter().sum::<Duration>());
        waits
    };
    let seconds = |waits: [f64; 4]| waits.map(secs).to_vec();
    // urllib3's: the first retry is made at once.
    assert_eq!(series(Backoff::urllib3(secs(0.6))), seconds([0.0, 1.2, 2.4, 4.8]));
    assert_eq!(series(Backoff::exponential(secs(0.6))), seconds([0.6, 1.2, 2.4, 4.8]));
    let capped = Backoff::urllib3(secs(100.0));
    assert_eq!(series(capped), seconds([0.0, 120.0, 120.0, 120.0]));
    assert_eq!(
        series(Backoff::urllib3(secs(0.6)).with_max(secs(2.0))),
        seconds([0.0, 1.2, 2.0, 2.0])
    );
    // The cap covers what jitter adds.
    let jittered = Backoff::urllib3(secs(100.0)).with_jitter(secs(1000.0));
    assert_eq!(series(jittered)[1..].iter().max(), Some(&secs(120.0)));
    // Which of them a policy has.
    assert_eq!(Retry::long_run().backoff_shape().shape(), Shape::Exponential);
    assert_eq!(Retry::urllib3().backoff_factor(secs(0.6)).backoff_shape().shape(), Shape::Urllib3);
}

/// The shapes, each with this factor.
fn shapes(factor: Duration) -> [Backoff; 7] {
    [
        Backoff::urllib3(factor),
        Backoff::exponential(factor),
        Backoff::full_jitter(factor),
        Backoff::equal_jitter(factor),
        Backoff::decorrelated(factor),
        Backoff::constant(factor),
        Backoff::exponential(factor).with_jitter(factor),
    ]
}

#[test]
fn c10_counts_and_factors_beyond_all_sense() {
    let mut rng = Rng::seeded(1);
    // Negative, infinite and no number at all, as far as a duration can be made of them.
    for factor in [1.0, 1e300, f64::INFINITY, f64::NAN, -1.0, 1e-9, 0.0].map(secs) {
        for backoff in shapes(factor) {
            for number in [1, 2, 30, 31, 32, 33, 63, 64, 65, 127, 128, 1024, 100_000, u32::MAX] {
                for previous in [Duration::ZERO, secs(1.0), Duration::MAX] {
                    let wait = backoff.wait(number, previous, &mut rng);
                    assert!(wait <= secs(120.0), "{backoff:?} {number}: {wait:?}");
                }
                assert!(backoff.longest(number) <= secs(120.0));
            }
        }
    }
    for number in [8, 31, 32, 33, 63, 64, 65, 1024, 100_000, u32::MAX] {
        for backoff in [Backoff::urllib3(secs(1.0)), Backoff::exponential(secs(1.0))] {
            let wait = backoff.wait(number, Duration::ZERO, &mut rng);
            assert_eq!(wait, secs(120.0), "{number}: the cap, and never zero");
        }
    }
}

#[test]
fn c10_a_hundred_thousand_retries() {
    // In the policy.
    let mut state = Retry::from_total(100_000)
        .status_forcelist([503])
        .backoff(Backoff::exponential(secs(1.0)))
        .start();
    let (outcome, mut rng) = (Outcome::Status { status: 503, retry_after: None }, Rng::seeded(1));
    let mut last = Duration::ZERO;
    for number in 0..100_000 {
        let decision = state.decide(&Method::GET, &outcome, &mut rng);
        let Decision::Retry { wait, .. } = decision else { panic!("{number}: {decision:?}") };
        assert!(wait >= last && wait <= secs(120.0), "{number}: {wait:?} after {last:?}");
        last = wait;
    }
    assert_eq!(last, secs(120.0));
    // And in a flight.
    let clock = Arc::new(SimClock::default());
    let script = transport::Script::with(clock.clone(), |_, _| Play::status(503));
    let retry = Retry::from_total(2000)
        .status_forcelist([503])
        .raise_on_status(false)
        .backoff(Backoff::exponential(secs(1e300)));
    let recipe = recipe().clock(clock.clone()).transport(move || script.clone()).retry(retry);
    let response = recipe.build().unwrap().get("http://a.test/").send().unwrap();
    assert_eq!(response.attempts().len(), 2001);
    assert_eq!(clock.elapsed(), 2000 * secs(120.0));
}

#[test]
fn c11_every_draw_lies_within_base_and_cap() {
    let backoff = Backoff::decorrelated(secs(1.0)).with_max(secs(60.0));
    let mut rng = Rng::seeded(1);
    for previous in [0.0, 0.1, 1.0, 20.0, 1000.0, f64::INFINITY] {
        let mut most = Duration::ZERO;
        for _ in 0..10_000 {
            let wait = backoff.wait(2, secs(previous), &mut rng);
            assert!((secs(1.0)..=secs(60.0)).contains(&wait), "{previous}: {wait:?}");
            most = most.max(wait);
        }
        // Where three times the last wait is less than the base, the base is all there is.
        assert_eq!(most == secs(1.0), previous * 3.0 <= 1.0, "{previous}: {most:?}");
    }
    // A base above its cap.
    let odd = Backoff::decorrelated(secs(5.0)).with_max(secs(2.0));
    assert_eq!(odd.wait(7, secs(5.0), &mut rng), secs(2.0));
}

/// The waits of one URL that is always busy, in a session of its own of this recipe.
fn drawn(recipe: &SessionBuilder) -> Vec<Duration> {
    let session = recipe.build().unwrap();
    let response = session.get("http://a.test/").send().unwrap();
    waits(response.attempts()).into_iter().flatten().collect()
}

#[test]
fn c11_no_two_workers_and_no_two_processes_draw_alike() {
    let recipe = || {
        let clock = Arc::new(SimClock::default());
        let script = transport::Script::with(clock.clone(), |_, _| Play::status(503));
        let backoff = Backoff::decorrelated(secs(1.0)).with_max(secs(600.0));
        Session::builder().trust_env(false).clock(clock).transport(move || script.clone()).retry(
            Retry::from_total(5).status_forcelist([503]).raise_on_status(false).backoff(backoff),
        )
    };
    let distinct = |mut all: Vec<Vec<Duration>>| {
        let count = all.len();
        all.sort();
        all.dedup();
        (all.len(), count)
    };
    // Workers of one run, with a seed and without.
    for recipe in [recipe().seed(7), recipe()] {
        let all = (0..24).map(|_| drawn(&recipe)).collect();
        assert_eq!(distinct(all), (24, 24));
    }
    // Two processes of the same second: the clock that they share seeds nothing.
    assert_eq!(distinct((0..24).map(|_| drawn(&recipe())).collect()), (24, 24));
    // With a seed a run repeats itself.
    assert_eq!(drawn(&recipe().seed(7)), drawn(&recipe().seed(7)));
}

/// A clock that is moved by hand, and shows no time twice: as the clocks of machines.
#[derive(Debug, Default)]
struct Ticking {
    by_hand: SimClock,
    looks: AtomicU64,
}

impl Clock for Ticking {
    fn now(&self) -> Instant {
        let looks = self.looks.fetch_add(1, Ordering::SeqCst);
        self.by_hand.now() + Duration::from_nanos(100 * looks)
    }

    fn wall(&self) -> SystemTime {
        self.by_hand.wall()
    }

    fn sleep_until(&self, until: Instant) {
        self.by_hand.advance(until.saturating_duration_since(self.now()));
    }
}

/// 50 URLs of one host, stepped as a pool would step them, each by a worker of its own. The host
/// has taken all of them before it throttles each of them within milliseconds. Gives when they came
/// through, since then.
fn herd(status: u16, cooldown: bool) -> Vec<Duration> {
    const HERD: usize = 50;
    let clock = Arc::new(Ticking::default());
    let together = Barrier::new(HERD);
    let asked = AtomicUsize::new(0);
    let origin = Origin::builder()
        .handler(move |_: &Received| {
            if asked.fetch_add(1, Ordering::SeqCst) >= HERD {
                return Reply::ok("there");
            }
            together.wait();
            Reply::new(status).header("Retry-After", "2")
        })
        .start()
        .unwrap();
    let recipe = recipe().clock(clock.clone()).host_cooldown(cooldown).retry(Retry::long_run());
    let flight = |number: usize| {
        let request = Request::new(Method::GET, origin.url(&format!("/{number}")));
        (recipe.build().unwrap(), Flight::new(request, number as u64))
    };
    let mut waiting: BTreeMap<(Instant, usize), _> = std::thread::scope(|scope| {
        let herd: Vec<_> = (0..HERD)
            .map(|number| {
                let (session, mut flight) = flight(number);
                scope.spawn(move || match flight.step(&session) {
                    Step::Wait { until, reason: WaitReason::RetryAfter } => {
                        ((until, number), (session, flight))
                    }
                    step => panic!("{step:?}"),
                })
            })
            .collect();
        herd.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    let quiet = clock.now();
    if cooldown {
        // Who comes now waits with them, and costs the host nothing.
        let (session, mut late) = flight(HERD);
        let Step::Wait { until, reason } = late.step(&session) else { panic!("it asked") };
        assert_eq!((reason, late.attempts().len()), (WaitReason::Cooldown, 0));
        assert!(until >= quiet + secs(1.9));
    }
    let mut arrived = Vec::new();
    while let Some(((until, number), (session, mut flight))) = waiting.pop_first() {
        clock.sleep_until(until);
        match flight.step(&session) {
            Step::Done(response) => {
                assert_eq!(response.status(), 200);
                arrived.push(clock.now() - quiet);
            }
            Step::Wait { until, .. } => {
                waiting.insert((until, number), (session, flight));
            }
            Step::Failed(error) => panic!("{error}"),
        }
    }
    arrived
}

/// The most that arrive within a tenth of a second.
fn peak(arrived: &[Duration]) -> usize {
    let within =
        |from: Duration| arrived.iter().filter(|at| (from..from + secs(0.1)).contains(*at)).count();
    arrived.iter().map(|from| within(*from)).max().unwrap()
}

#[test]
fn c12_a_herd_that_was_throttled_comes_back_one_by_one() {
    for status in [429, 503] {
        let arrived = herd(status, true);
        assert_eq!(arrived.len(), 50);
        // Not before the two seconds were over for the one that was throttled first.
        assert!(arrived.iter().all(|at| *at >= secs(1.98)), "{status}: {arrived:?}");
        // Spread over a second they are five in each tenth of it.
        assert!(peak(&arrived) <= 16, "{status}: {} at once", peak(&arrived));
        assert!(*arrived.iter().max().unwrap() <= secs(2.0 + 1.1));
    }
}

#[test]
fn c12_without_a_memory_they_share_they_all_come_at_once() {
    // What the case is about: it is the memory that spreads them.
    assert!(peak(&herd(429, false)) >= 49);
}

#[test]
fn c12_another_exit_goes_on_and_another_host_too() {
    let clock = Arc::new(SimClock::default());
    let world = || {
        World::new(Origin::builder().handler(|request: &Received| match request.path.as_str() {
            "/busy" => Reply::new(429).header("Retry-After", "30"),
            _ => Reply::ok("there"),
        }))
    };
    let world = world();
    let retry = Retry::long_run();
    let recipe =
        |road| patient(&world, road, retry.clone()).clock(clock.clone()).host_cooldown(true);
    let (direct, proxied) = (recipe(Road::Plain), recipe(Road::Forward));
    let get = |recipe: &SessionBuilder, road, path: &str| -> Response {
        let session = recipe.build().unwrap();
        session.get(world.url(road, path)).retry(Retry::none()).send().unwrap()
    };
    assert_eq!(get(&direct, Road::Plain, "/busy").status(), 429);
    let begun = clock.elapsed();
    assert_eq!(get(&proxied, Road::Forward, "/page").status(), 200);
    assert_eq!(clock.elapsed(), begun, "seen from elsewhere the host is another");
    assert_eq!(get(&direct, Road::Plain, "/page").status(), 200);
    assert!(clock.elapsed() >= begun + secs(30.0));
}
