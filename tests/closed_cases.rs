//! The figures that people know, or should: each by the arithmetic, and by a flight where it is
//! about one.

#![allow(clippy::unwrap_used, reason = "helpers of tests are tests")]

use longhaul::policy::{
    Backoff, Bound, Capacity, FailureCost, LimitedBy, LongWait, Share, Waits, Work, WorstCase,
    WorstCaseInput,
};
use longhaul::time::SimClock;
use longhaul::transport::{Play, Script};
use longhaul::{ErrorKind, Retry, Session, Timeouts, secs};
use std::sync::Arc;
use std::time::Duration;

fn timeouts() -> Timeouts {
    Timeouts::from((secs(5.0), secs(25.0)))
}

fn at(seconds: f64) -> Bound {
    Bound::At(secs(seconds))
}

/// Total 4, a connect timeout of 5 s, a read timeout of 25 s, a factor of 0.6.
fn known() -> Retry {
    Retry::from_total(4)
        .status_forcelist([429, 500, 502, 503, 504])
        .backoff(Backoff::exponential(secs(0.6)))
}

#[test]
fn total_4_is_159_seconds() {
    let worst = WorstCase::of(&known(), &timeouts());
    // 5 · (5 + 25) + 0.6 + 1.2 + 2.4 + 4.8
    assert_eq!((worst.formula(), worst.exact()), (at(159.0), at(159.0)));
    assert_eq!(worst.formula().to_string(), "2 min 39 s");
    let run = WorstCase::of(&Retry::long_run(), &timeouts());
    assert_eq!((run.formula(), run.exact()), (at(159.0), at(159.0)));
}

#[test]
fn with_the_series_of_urllib3_it_is_158_and_a_bit() {
    let retry = known().backoff(Backoff::urllib3(secs(0.6)));
    let worst = WorstCase::of(&retry, &timeouts());
    // 5 · (5 + 25) + 0 + 1.2 + 2.4 + 4.8
    assert_eq!(worst.formula(), at(158.4));
    // Where the first retry waits for nothing, what it drains takes its 100 ms.
    assert_eq!(worst.exact(), at(158.5));
    let undrained = WorstCaseInput::new(&retry, &timeouts()).drain(Duration::ZERO);
    assert_eq!(WorstCase::compute(&undrained).exact(), at(158.4));
}

#[test]
fn connect_3_alone_is_much_less_than_the_formula() {
    // Four attempts of 5 s and three waits; the formula says 4 · 30 + 4.2 and more.
    let retry = known().connect(3).read(0).status(0).other(0);
    let worst = WorstCase::of(&retry, &timeouts());
    assert_eq!(worst.connect_only(), at(4.0 * 5.0 + 0.6 + 1.2 + 2.4));
    assert_eq!(worst.connect_only().to_string(), "24.2 s");
    // And three failures to connect, then a silence.
    assert_eq!(worst.exact(), at(3.0 * 5.0 + 30.0 + 4.2));
    assert_eq!(worst.formula(), at(159.0));
}

#[test]
fn a_deadline_of_60_seconds_is_enforced() {
    let timeouts = timeouts().with_deadline(secs(60.0)).unwrap();
    let worst = WorstCase::of(&Retry::long_run(), &timeouts);
    assert_eq!((worst.enforced(), worst.exact()), (Some(secs(60.0)), at(159.0)));

    let clock = Arc::new(SimClock::default());
    let script = Script::with(clock.clone(), |_, _| Play::silence().connecting(secs(4.9)));
    let session = Session::builder()
        .trust_env(false)
        .clock(clock.clone())
        .retry(Retry::long_run())
        .timeout(timeouts)
        .transport(move || script.clone())
        .build()
        .unwrap();
    let error = session.get("http://a.test/").send().unwrap_err();
    // 29.9 s, 0.6 s, and a second attempt that is cut off.
    assert_eq!((error.kind(), error.attempts().len()), (ErrorKind::Deadline, 2));
    assert_eq!(clock.elapsed(), secs(60.0));
}

#[test]
fn urllib3s_cap_of_retry_after_makes_eighteen_hours_of_159_seconds() {
    let retry = Retry::long_run().retry_after_max(secs(21_600.0)).long_wait(LongWait::Clamp);
    let worst = WorstCase::of(&retry, &timeouts());
    assert_eq!(worst.exact(), at(159.0));
    // Three statuses that ask for six hours each, and a silence.
    let bound = worst.with_retry_after();
    assert_eq!(bound, at(150.0 + 3.0 * 21_600.0 + 4.8));
    let hours = bound.duration().unwrap().as_secs_f64() / 3600.0;
    assert!((18.0..18.1).contains(&hours), "{hours}");
    // Nobody is held by it.
    assert!(worst.occupied().duration().unwrap() < secs(151.0));

    // And it can be met: a server that answers so, for as long as it is asked.
    let clock = Arc::new(SimClock::default());
    let script = Script::with(clock.clone(), |_, _| {
        Play::status(503).header("Retry-After", "86400").connecting(secs(4.0)).after(secs(24.0))
    });
    let session = Session::builder()
        .trust_env(false)
        .clock(clock.clone())
        .retry(retry)
        .timeout(timeouts())
        .transport(move || script.clone())
        .build()
        .unwrap();
    assert_eq!(session.get("http://a.test/").send().unwrap().status(), 503);
    assert_eq!(clock.elapsed(), secs(4.0 * 28.0 + 3.0 * 21_600.0));
}

#[test]
fn two_of_a_hundred_failures_make_a_run_an_hour_longer() {
    let worst = WorstCase::of(&known(), &timeouts());
    let builder = || {
        Capacity::builder(Work::Urls(40_000))
            .failure_rate(Share::new(0.02).unwrap())
            .failure_cost(FailureCost::worst(&worst).unwrap())
    };
    let asleep = builder().waits(Waits::HoldWorker).build().unwrap().run(24).unwrap();
    let bill = asleep.failures();
    assert_eq!((bill.urls(), bill.each().total()), (800.0, secs(159.0)));
    // 800 · 159 s = 127 200 s of workers, and 5300 s of 24.
    assert_eq!((bill.worker_time(), bill.run_time()), (secs(127_200.0), secs(5300.0)));
    assert_eq!((asleep.run_time(), asleep.limited_by()), (secs(5300.0), LimitedBy::Workers));
    assert!(asleep.run_time() > secs(3600.0));
    // Where nobody sleeps through the waits it is 800 · 150 s.
    let parked = builder().build().unwrap().run(24).unwrap();
    assert_eq!(parked.run_time(), secs(5000.0));
}
