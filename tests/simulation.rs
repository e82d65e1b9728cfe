//! Simulated nights: what holds for every one of them, and what can be calculated without one.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "helpers of tests fail by panicking, as tests do"
)]

use longhaul::error::WaitReason;
use longhaul::policy::{Bound, Budget, SlowLane, WorstCase};
use longhaul::proxy::ProxyPool;
use longhaul::rng::Rng;
use longhaul::workers::simulation::{
    Ending, FaultModel, Happening, LatencyModel, Moment, Persistence, Report, Simulation, Trouble,
};
use longhaul::workers::{StopReason, WorkerPoolBuilder};
use longhaul::{ErrorKind, Retry, Session, SessionBuilder, Timeouts, WorkerPool, secs};
use std::collections::BTreeMap;
use std::time::Duration;

fn pool(workers: usize) -> WorkerPoolBuilder {
    WorkerPool::builder(Session::builder()).workers(workers)
}

fn proxies(count: usize) -> ProxyPool {
    let list: String = (0..count).map(|n| format!("http://10.0.0.{n}:8000\n")).collect();
    ProxyPool::parse(&list).unwrap()
}

/// Some of everything.
fn mixed() -> FaultModel {
    FaultModel::none()
        .latency(LatencyModel::lognormal(secs(0.4), secs(2.0)).unwrap())
        .share(Trouble::ConnectTimeout, 0.02)
        .share(Trouble::ConnectRefused, 0.02)
        .share(Trouble::Silence, 0.02)
        .share(Trouble::Stall, 0.01)
        .share(Trouble::Reset, 0.03)
        .share(Trouble::Truncated, 0.03)
        .share(Trouble::Status(503), 0.03)
        .share(Trouble::Throttle(503), 0.03)
        .share(Trouble::Throttle(429), 0.01)
        .share(Trouble::Status(403), 0.02)
        .share(Trouble::Status(404), 0.02)
        .persistence(Persistence::Attempts(2))
}

/// Runs a night and checks what holds for all of them; gives the report and the number of attempts
/// that were under way at once at most.
fn checked(simulation: &Simulation, urls: usize) -> (Report, usize) {
    checked_with(simulation, urls, |_, _| {})
}

/// As [`checked`], and shows each moment with whether its URL was in an attempt.
fn checked_with(
    simulation: &Simulation,
    urls: usize,
    mut look: impl FnMut(Moment<'_>, bool),
) -> (Report, usize) {
    let mut before = Duration::ZERO;
    let mut not_before = vec![Duration::ZERO; urls];
    let mut flies = vec![false; urls];
    let mut ended = vec![false; urls];
    let mut attempts = vec![0; urls];
    let (mut flying, mut most) = (0, 0);
    let (mut in_attempts, mut path) = (Duration::ZERO, Duration::ZERO);
    let watch = |moment: Moment<'_>| {
        let url = moment.url as usize;
        let flew = std::mem::take(&mut flies[url]);
        look(moment, flew);
        assert!(moment.at >= before, "time runs back at {moment:?}");
        before = moment.at;
        assert!(!ended[url], "after its end: {moment:?}");
        assert!(moment.at >= not_before[url], "{moment:?} before {:?}", not_before[url]);
        flying -= usize::from(flew);
        match moment.what {
            Happening::Began { .. } => {
                assert!(!flew, "twice at once: {moment:?}");
                flies[url] = true;
                flying += 1;
                most = most.max(flying);
                attempts[url] += 1;
            }
            Happening::Waits { until, attempted, .. } => {
                assert_eq!(attempted, flew);
                not_before[url] = until;
            }
            Happening::Ended(done) => {
                assert_eq!((done.index, done.attempts().len()), (moment.url, attempts[url]));
                let made: Duration = done.attempts().iter().map(|made| made.elapsed).sum();
                let waits = done.attempts().iter().filter_map(|made| made.wait);
                path = path.max(made + waits.map(|(wait, _)| wait).sum::<Duration>());
                in_attempts += made;
                ended[url] = true;
            }
            _ => {}
        }
    };
    let report = simulation.run_watched(watch).unwrap();
    assert!(ended.iter().all(|ended| *ended), "one never ended");
    assert_eq!(report.urls, urls as u64);
    assert_eq!(report.busy, in_attempts, "the workers were busy with attempts only");
    assert_eq!(report.attempts, attempts.iter().sum::<usize>() as u64);
    assert_eq!(report.longest_path, path);
    if let Bound::At(promised) = &report.promised {
        assert!(report.longest_path <= *promised, "{path:?} over {promised:?}");
    }
    for sum in [
        report.classes.values().sum::<u64>(),
        report.endings.values().sum(),
        report.by_attempts.iter().sum(),
        report.timeline.iter().map(|bucket| bucket.done).sum(),
    ] {
        assert_eq!(sum, report.urls);
    }
    assert_eq!(report.timeline.iter().map(|bucket| bucket.attempts).sum::<u64>(), report.attempts);
    let lived: Duration = report.timeline.iter().map(|bucket| bucket.lasts).sum();
    assert_eq!(lived, report.run_time);
    let busy: f64 =
        report.timeline.iter().map(|part| part.in_flight * part.lasts.as_secs_f64()).sum();
    assert!((busy - report.busy.as_secs_f64()).abs() < 1e-6 * (1.0 + busy), "{busy} {report:?}");
    (report, most)
}

#[test]
fn one_seed_is_one_night() {
    let night = |seed| {
        let session = Session::builder().proxies(proxies(12).parallel_per_proxy(Some(4)));
        let pool = WorkerPool::builder(session).workers(24).per_host(6).host_rate(20.0);
        let faults = mixed().dead_proxies(2);
        Simulation::of(pool).urls(2000).hosts(16).faults(faults).seed(seed)
    };
    let first = night(7);
    let (report, most) = checked(&first, 2000);
    assert_eq!(report, first.run().unwrap());
    assert_eq!(report, night(7).run().unwrap());
    assert_ne!(report, night(8).run().unwrap());
    assert!(most <= 24);
    for class in ["ok", "permanent", "refused"] {
        assert!(report.classes[class] > 0, "{:?}", report.classes);
    }
    for reason in ["backoff", "retry_after"] {
        assert!(report.waits[reason].count > 0, "{:?}", report.waits);
    }
}

#[test]
fn a_night_without_faults_is_rows_of_workers() {
    for (urls, workers, rows) in [(4000, 24, 167), (24, 24, 1), (25, 24, 2), (7, 1, 7), (1, 9, 1)] {
        let latency = Duration::from_millis(1250);
        let faults = FaultModel::none().latency(latency);
        let simulation = Simulation::of(pool(workers)).urls(urls).faults(faults);
        let (report, most) = checked(&simulation, urls);
        assert_eq!(report.run_time, latency * rows);
        assert_eq!(report.busy, latency * urls as u32);
        assert_eq!((report.longest, report.p50), (latency, latency));
        assert_eq!((report.attempts, report.amplification), (urls as u64, 1.0));
        assert_eq!(report.classes, BTreeMap::from([("ok", urls as u64)]));
        assert_eq!(report.by_attempts, [0, urls as u64]);
        assert_eq!(most, workers.min(urls));
    }
}

#[test]
fn two_percent_at_the_worst_case_cost_what_the_arithmetic_says() {
    // Five attempts of 30 s, with 0.6, 1.2, 2.4 and 4.8 s between them.
    let retry = Retry::long_run().read(Budget::Unlimited);
    let timeouts = Timeouts::from((secs(5.0), secs(25.0)));
    let worst = WorstCase::of(&retry, &timeouts);
    assert_eq!(worst.formula(), Bound::At(secs(159.0)));
    let session = Session::builder().retry(retry).timeout(timeouts);
    let faults = FaultModel::none()
        .latency(secs(0.5))
        .share(Trouble::Stall, 0.02)
        .persistence(Persistence::Always);
    let pool = WorkerPool::builder(session).workers(24);
    let (report, _) = checked(&Simulation::of(pool).urls(4000).faults(faults).seed(3), 4000);
    let bad = report.endings[&Ending::Failure(ErrorKind::ReadTimeout)];
    assert!((60..100).contains(&bad), "{bad}");
    let good = report.endings[&Ending::Status(200)];
    assert_eq!(good + bad, 4000);
    assert_eq!(report.busy, secs(0.5) * good as u32 + secs(150.0) * bad as u32);
    assert_eq!(report.longest_path, secs(159.0));
    assert_eq!(report.attempts, good + 5 * bad);
    assert_eq!(report.waits["backoff"].total, secs(9.0) * bad as u32);
    // Nobody idles but in the tail: the run is the work over the workers, and one URL at most.
    let ideal = report.busy / 24;
    assert!(report.run_time >= ideal && report.run_time <= ideal + secs(159.0), "{report:?}");
}

#[test]
fn a_worst_case_is_reached_and_never_exceeded() {
    let of = |session: SessionBuilder, trouble| {
        let faults = FaultModel::none().share(trouble, 1.0).persistence(Persistence::Always);
        let pool = WorkerPool::builder(session).workers(8);
        let faults = faults.retry_after(secs(600.0)).honest_retry_after(false);
        checked(&Simulation::of(pool).urls(40).hosts(40).faults(faults), 40).0
    };
    let session = || Session::builder().retry(Retry::long_run());
    let worst = WorstCase::of(&Retry::long_run(), &Timeouts::default());
    for (trouble, bound) in
        [(Trouble::ConnectTimeout, worst.connect_only()), (Trouble::Stall, worst.read_only())]
    {
        let report = of(session(), trouble);
        assert_eq!(Bound::At(report.longest_path), bound, "{trouble}");
        assert_eq!(report.promised, worst.exact());
    }
    let parked = of(session(), Trouble::Throttle(503));
    assert_eq!(parked.promised, worst.with_retry_after());
    assert_eq!(parked.longest_path, secs(3.0 * 600.0 + 4.0 * 0.5));
}

#[test]
fn a_deadline_holds_also_behind_a_limit() {
    let faults = mixed().persistence(Persistence::Always).share(Trouble::Stall, 0.3);
    for (workers, per_host, rate) in [(200, None, None), (24, Some(1), None), (24, None, Some(2.0))]
    {
        let session = Session::builder().retry(Retry::long_run()).deadline(secs(50.0));
        let mut pool = WorkerPool::builder(session).workers(workers).permits(200);
        if let Some(attempts) = per_host {
            pool = pool.per_host(attempts);
        }
        if let Some(rate) = rate {
            pool = pool.host_rate(rate);
        }
        let night = Simulation::of(pool).urls(600).hosts(3).faults(faults.clone());
        let (report, _) = checked(&night, 600);
        assert_eq!((report.deadline, report.late), (Some(secs(50.0)), 0));
        assert!(report.longest <= secs(50.0), "{:?}", report.longest);
        assert!(report.endings[&Ending::Failure(ErrorKind::Deadline)] > 0);
    }
}

#[test]
fn what_is_learnt_is_known_when_it_has_happened() {
    // All 24 of the first row are sent before the first 429 is back; then the host has quiet.
    let faults = FaultModel::none()
        .latency(secs(1.0))
        .share(Trouble::Throttle(429), 1.0)
        .retry_after(secs(10.0));
    let simulation = Simulation::of(pool(24)).urls(240).faults(faults);
    let mut begins = Vec::new();
    let (report, _) = checked_with(&simulation, 240, |moment, _| {
        if let Happening::Began { .. } = moment.what {
            begins.push(moment.at);
        }
    });
    assert!(report.waits["cooldown"].count > 0, "{:?}", report.waits);
    assert_eq!(begins.iter().filter(|at| at.is_zero()).count(), 24);
    assert!(begins[24] >= secs(11.0), "{:?}", begins[24]);
}

#[test]
fn dead_proxies_cost_a_little_and_no_url() {
    let session = Session::builder().proxies(proxies(10));
    let faults = FaultModel::none().dead_proxies(3);
    let pool = WorkerPool::builder(session).workers(16);
    let night = Simulation::of(pool).urls(2000).hosts(10).faults(faults).seed(4);
    let (report, _) = checked(&night, 2000);
    assert_eq!(report.classes, BTreeMap::from([("ok", 2000)]));
    let lost = report.answers[&Ending::Failure(ErrorKind::ConnectTimeout)];
    assert_eq!(report.attempts, 2000 + lost);
    // Three proxies in ten, asked in turn, would lose 857 attempts.
    assert!((6..100).contains(&lost), "{lost}");
}

#[test]
fn a_busy_proxy_is_not_asked_for_more() {
    let session = Session::builder().proxies(proxies(3).parallel_per_proxy(Some(2)));
    let pool = WorkerPool::builder(session).workers(16);
    let (report, most) = checked(&Simulation::of(pool).urls(200).hosts(5), 200);
    assert_eq!(most, 6);
    assert!(report.waits["limit"].count > 0);
}

#[test]
fn a_stop_rule_ends_the_night_and_every_job_that_was_fed() {
    let rule = |done: &longhaul::workers::Finished| {
        let status = done.result.as_ref().ok()?.status();
        (status == 404).then(|| StopReason::rule("one page is gone"))
    };
    let faults = FaultModel::none().share(Trouble::Status(404), 0.01);
    let night = Simulation::of(pool(8).permits(100).stop_when(rule)).urls(4000).faults(faults);
    let report = night.run().unwrap();
    assert_eq!(report.stopped.as_deref(), Some("one page is gone"));
    assert_eq!(report.endings[&Ending::Status(404)], 1);
    assert!(report.urls < 4000 && report.classes["cancelled"] > 0, "{report:?}");
    assert_eq!(report.classes.values().sum::<u64>(), report.urls);
}

#[test]
fn a_night_that_will_not_end_is_broken_off() {
    let session = Session::builder().proxies(proxies(2));
    let pool = WorkerPool::builder(session).workers(4).permits(8);
    let faults = FaultModel::none().dead_proxies(2);
    let day = secs(86_400.0);
    let night = Simulation::of(pool).urls(4000).faults(faults).horizon(day);
    let report = night.run().unwrap();
    assert_eq!(report.stopped.as_deref(), Some("the night was longer than 1 days"));
    assert!(report.run_time <= day && report.classes["cancelled"] > 0, "{report:?}");
}

#[test]
fn what_cannot_be_simulated_is_refused_by_name() {
    let silent = FaultModel::none().share(Trouble::Silence, 0.1);
    let timeless = Session::builder().timeout(Timeouts::unlimited());
    let of = |session: &SessionBuilder| Simulation::of(WorkerPool::builder(session.clone()));
    let plain = Session::builder();
    for (simulation, words) in [
        (of(&plain).urls(0), "urls is 0"),
        (of(&plain).hosts(0), "hosts is 0"),
        (of(&plain).bucket(Duration::from_millis(10)), "buckets of 10ms"),
        (Simulation::of(pool(0)), "workers is 0"),
        (Simulation::of(pool(1).rate(-1.0)), "rate is -1"),
        (of(&plain).faults(FaultModel::none().dead_proxies(1)), "the pool has 0"),
        (of(&plain).faults(FaultModel::none().share(Trouble::Reset, 2.0)), "the share 2"),
        (of(&timeless).faults(silent.clone()), "a silent server holds a worker for ever"),
        (of(&plain.clone().timeout((secs(0.0), secs(1.0)))), "the connect timeout is zero"),
        (of(&plain.clone().header("a b", "c")), "a b"),
    ] {
        let error = simulation.run().unwrap_err();
        assert!(error.message().contains(words), "{error}");
    }
    let deadline = timeless.clone().deadline(secs(30.0));
    of(&deadline).urls(100).faults(silent).run().unwrap();
}

#[test]
fn a_report_serialises_as_seconds_and_names() {
    let faults = FaultModel::none().share(Trouble::Silence, 1.0).persistence(Persistence::Always);
    let session = Session::builder().retry(Retry::none());
    let pool = WorkerPool::builder(session).workers(2);
    let report = Simulation::of(pool).urls(6).faults(faults).run().unwrap();
    let json = serde_json::to_value(&report).unwrap();
    assert_eq!(json["run_time"], 75.0);
    assert_eq!(json["endings"], serde_json::json!({ "read_timeout": 6 }));
    assert_eq!(json["promised"], 30.0);
    assert_eq!(json["deadline"], serde_json::Value::Null);
    let bucket = serde_json::json!({
        "begins": 60.0, "lasts": 15.0, "done": 2, "attempts": 2,
        "in_flight": 2.0, "waiting": 0.0, "ready": 0.0,
    });
    assert_eq!(json["timeline"][1], bucket);
}

/// The limits of a random night.
struct Limits {
    hosts: u64,
    per_host: Option<usize>,
    rate: Option<f64>,
    host_rate: Option<f64>,
    workers: usize,
}

#[test]
fn limits_and_promises_hold_over_a_thousand_seeds() {
    for seed in 0..1000 {
        let mut rng = Rng::seeded(seed);
        let urls = 8 + rng.below(24);
        let limits = Limits {
            hosts: 1 + rng.below(4) as u64,
            workers: 1 + rng.below(8),
            per_host: (rng.below(2) == 0).then(|| 1 + rng.below(3)),
            rate: (rng.below(3) == 0).then(|| rng.uniform(1.0, 40.0)),
            host_rate: (rng.below(3) == 0).then(|| rng.uniform(0.5, 20.0)),
        };
        let (faults, session) = random(&mut rng);
        let mut pool = WorkerPool::builder(session)
            .workers(limits.workers)
            .permits(limits.workers + rng.below(20));
        if let Some(attempts) = limits.per_host {
            pool = pool.per_host(attempts);
        }
        if let Some(rate) = limits.rate {
            pool = pool.rate(rate);
        }
        if let Some(rate) = limits.host_rate {
            pool = pool.host_rate(rate);
        }
        let hosts = limits.hosts as usize;
        let night = Simulation::of(pool).urls(urls).hosts(hosts).faults(faults).seed(seed);
        check_limits(&night, urls, &limits, seed);
    }
}

/// Faults and a recipe of any kind.
fn random(rng: &mut Rng) -> (FaultModel, SessionBuilder) {
    let mut faults = FaultModel::none()
        .latency(match rng.below(3) {
            0 => LatencyModel::fixed(secs(0.5)),
            1 => LatencyModel::lognormal(secs(0.3), secs(2.0)).unwrap(),
            _ => LatencyModel::quantiles([(0.0, secs(0.0)), (0.9, secs(1.0)), (1.0, secs(40.0))])
                .unwrap(),
        })
        .persistence(match rng.below(3) {
            0 => Persistence::Once,
            1 => Persistence::Attempts(1 + rng.below(4) as u32),
            _ => Persistence::Always,
        })
        .retry_after(secs(rng.uniform(0.1, 120.0)))
        .honest_retry_after(rng.below(2) == 0);
    for trouble in [
        Trouble::ConnectTimeout,
        Trouble::ConnectRefused,
        Trouble::Silence,
        Trouble::Stall,
        Trouble::Reset,
        Trouble::Truncated,
        Trouble::Status(503),
        Trouble::Throttle(503),
        Trouble::Throttle(429),
        Trouble::Status(404),
    ] {
        faults = faults.share(trouble, rng.uniform(0.0, 0.1));
    }
    let mut session = Session::builder().retry(match rng.below(3) {
        0 => Retry::long_run(),
        1 => Retry::wide(),
        _ => Retry::urllib3().total(3).backoff_factor(secs(0.5)),
    });
    if rng.below(3) == 0 {
        session = session.proxies(proxies(3));
        faults = faults.dead_proxies(rng.below(3));
    }
    (faults, session)
}

/// No host has more attempts at once, and no stretch of time more of them, than is allowed.
fn check_limits(night: &Simulation, urls: usize, limits: &Limits, seed: u64) {
    let mut flying: BTreeMap<u64, usize> = BTreeMap::new();
    let mut begins: Vec<(Duration, u64)> = Vec::new();
    let (report, most) = checked_with(night, urls, |moment, flew| {
        let host = moment.url % limits.hosts;
        let there = flying.entry(host).or_default();
        *there -= usize::from(flew);
        if let Happening::Began { .. } = moment.what {
            *there += 1;
            begins.push((moment.at, host));
        }
        assert!(limits.per_host.is_none_or(|most| *there <= most), "seed {seed}");
    });
    assert!(report.stopped.is_none() && most <= limits.workers, "seed {seed}");
    let times = |of: Option<u64>| -> Vec<Duration> {
        let picked = begins.iter().filter(|(_, host)| of.is_none_or(|of| of == *host));
        picked.map(|(at, _)| *at).collect()
    };
    if let Some(rate) = limits.rate {
        check_rate(rate, &times(None), seed);
    }
    for host in 0..limits.hosts {
        if let Some(rate) = limits.host_rate {
            check_rate(rate, &times(Some(host)), seed);
        }
    }
}

/// In any stretch: what the rate gives, and the one that may come at once.
fn check_rate(rate: f64, times: &[Duration], seed: u64) {
    let mut lowest = f64::INFINITY;
    for (before, at) in times.iter().enumerate() {
        let given = (*at - times[0]).as_secs_f64() * rate;
        lowest = lowest.min(before as f64 - given);
        let over = before as f64 + 1.0 - given - lowest;
        assert!(over <= 1.0 + 1e-3, "seed {seed}: {over} over {rate}");
    }
}

#[test]
fn waits_have_their_reason() {
    let faults = FaultModel::none().share(Trouble::Throttle(503), 0.1);
    let night = Simulation::of(pool(4)).urls(200).hosts(200).faults(faults);
    let mut seen = 0;
    let report = night
        .run_watched(|moment| {
            if let Happening::Waits { reason, .. } = moment.what {
                assert_eq!(reason, WaitReason::RetryAfter);
                seen += 1;
            }
        })
        .unwrap();
    let waits = report.waits["retry_after"];
    assert_eq!((waits.count, waits.total), (seen, secs(2.0) * seen as u32));
    assert!(seen > 10, "{seen}");
}
#[test]
fn arithmetic_says_the_same_of_a_night_that_has_enough_to_do() {
    let timeouts = Timeouts::from((secs(5.0), secs(25.0)));
    let session = || Session::builder().retry(Retry::long_run()).timeout(timeouts);
    let faults = FaultModel::none()
        .latency(LatencyModel::lognormal(secs(0.8), secs(2.0)).unwrap())
        .share(Trouble::Stall, 0.02)
        .share(Trouble::ConnectTimeout, 0.01)
        .share(Trouble::Status(503), 0.01)
        .persistence(Persistence::Always);
    for persistence in [Persistence::Once, Persistence::Attempts(2), Persistence::Always] {
        let pool = WorkerPool::builder(session()).workers(24);
        let faults = faults.clone().persistence(persistence);
        let night = Simulation::of(pool).urls(4000).hosts(40).faults(faults).seed(11);
        let estimate = night.capacity().unwrap().run(24).unwrap();
        let (report, _) = checked(&night, 4000);
        let (have, said) = (report.busy.as_secs_f64(), estimate.worker_time().as_secs_f64());
        assert!((have / said - 1.0).abs() < 0.1, "{persistence:?}: {have} {said}");
        let (have, said) = (report.run_time.as_secs_f64(), estimate.run_time().as_secs_f64());
        assert!((0.9..1.2).contains(&(have / said)), "{persistence:?}: {have} {said}");
    }
    // To the last digit where nothing is drawn: each URL stalls three times for 30 s.
    let all = FaultModel::none().share(Trouble::Stall, 1.0).persistence(Persistence::Always);
    let night = Simulation::of(WorkerPool::builder(session()).workers(10)).urls(100).faults(all);
    let estimate = night.capacity().unwrap().run(10).unwrap();
    assert_eq!(estimate.worker_time(), secs(9000.0));
    assert_eq!(checked(&night, 100).0.busy, secs(9000.0));
    // And where a rate is what limits: 200 attempts at 4 a second.
    let night = Simulation::of(pool(10).rate(4.0)).urls(200);
    let estimate = night.capacity().unwrap().run(10).unwrap();
    assert_eq!(estimate.run_time(), secs(50.0));
    assert_eq!(checked(&night, 200).0.run_time, secs(199.0 / 4.0 + 0.5));
}

#[test]
fn refused_urls_take_turns_and_none_comes_early() {
    let (pause, spacing) = (secs(20.0), secs(5.0));
    for seed in 0..20 {
        let session = Session::builder().proxies(proxies(6));
        let pool = WorkerPool::builder(session).workers(24).slow_lane(SlowLane::default());
        // Every one of them is refused once.
        let faults = FaultModel::none()
            .latency(secs(0.3))
            .share(Trouble::Status(403), 0.05)
            .share(Trouble::Reset, 0.05)
            .persistence(Persistence::Attempts(1));
        let night = Simulation::of(pool).urls(800).hosts(8).faults(faults).seed(seed);
        let mut turns: BTreeMap<u64, Vec<Duration>> = BTreeMap::new();
        let mut entered = 0;
        let (report, _) = checked_with(&night, 800, |moment, _| {
            if let Happening::Waits { until, reason: WaitReason::Refused, attempted } = moment.what
            {
                // One that finds its host left alone again takes a turn behind that.
                assert!(!attempted || until >= moment.at + pause, "seed {seed}: {moment:?}");
                entered += u64::from(attempted);
                turns.entry(moment.url % 8).or_default().push(until);
            }
        });
        assert_eq!(report.classes["ok"], 800, "seed {seed}: {report:?}");
        assert!(entered > 10, "seed {seed}: {entered}");
        for turns in turns.values_mut() {
            turns.sort();
            for pair in turns.windows(2) {
                assert!(pair[1] - pair[0] >= spacing, "seed {seed}: {pair:?}");
            }
        }
    }
}

#[test]
fn without_a_slow_lane_a_refusal_is_the_end() {
    let faults = FaultModel::none()
        .latency(secs(0.3))
        .share(Trouble::Status(403), 0.05)
        .persistence(Persistence::Attempts(9));
    let night = |pool: WorkerPoolBuilder| {
        Simulation::of(pool).urls(400).faults(faults.clone()).seed(1).run().unwrap()
    };
    let off = night(pool(8));
    let on = night(pool(8).slow_lane(SlowLane::default()));
    let refused = off.classes["refused"];
    assert_eq!((off.attempts, on.classes["refused"]), (400, refused));
    // Those that are always refused are sent twice, and everybody waits for that.
    assert_eq!(on.attempts, 400 + refused);
    assert!(on.run_time > off.run_time + secs(20.0), "{:?} {:?}", on.run_time, off.run_time);
}

#[test]
fn hosts_that_refuse_everything_leave_half_of_the_permits_to_the_others() {
    // Nine hosts of ten refuse: their lanes alone would hold more than the run may.
    let faults = FaultModel::none()
        .latency(secs(0.2))
        .share(Trouble::Status(403), 0.9)
        .persistence(Persistence::Always);
    let pool = pool(4).permits(40).slow_lane(SlowLane::default());
    let night = Simulation::of(pool).urls(400).hosts(10).faults(faults).seed(3);
    let mut waiting = BTreeMap::new();
    let mut most = 0;
    let (report, _) = checked_with(&night, 400, |moment, _| match moment.what {
        Happening::Waits { until, reason: WaitReason::Refused, .. } => {
            waiting.insert(moment.url, until);
            let there = waiting.values().filter(|until| **until > moment.at).count();
            most = most.max(there);
        }
        Happening::Ended(_) => drop(waiting.remove(&moment.url)),
        _ => {}
    });
    assert_eq!(most, 20);
    assert!(report.classes["refused"] > 300 && report.classes["ok"] > 20, "{report:?}");
}
