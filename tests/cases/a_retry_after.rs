//! Section A: the wait that a server asks for.

use crate::a_retry::{in_turn, patient, waits};
use crate::roads::{Road, each};
use http::Method;
use longhaul::error::{ErrorKind, WaitReason};
use longhaul::lab::{Reply, Script, hostile};
use longhaul::policy::{LongWait, RetryAfter};
use longhaul::time::{Clock, SimClock};
use longhaul::{Retry, secs};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

/// A wait that was asked for, and one of the own backoff.
fn asked(seconds: f64) -> Option<(Duration, WaitReason)> {
    Some((secs(seconds), WaitReason::RetryAfter))
}

fn backoff(seconds: f64) -> Option<(Duration, WaitReason)> {
    Some((secs(seconds), WaitReason::Backoff))
}

/// A throttle with these fields.
fn throttle(status: u16, fields: &[(&str, &str)]) -> Script {
    let reply = fields
        .iter()
        .fold(Reply::new(status), |reply, (name, value)| reply.header(*name, value.as_bytes()));
    reply.into()
}

/// What this behaviour of the origin makes of the wait before the first retry, on every road.
fn first_wait_of(name: &str, wanted: Option<(Duration, WaitReason)>) {
    let script = hostile::origin_script(name, "").unwrap();
    each(
        Road::EVERY,
        || in_turn(vec![script.clone()]),
        |world, road| {
            let session = patient(world, road, Retry::long_run()).build().unwrap();
            let response = session.get(world.url(road, "/")).send().unwrap();
            assert_eq!((response.status(), response.attempts().len()), (200, 2), "{name}");
            assert_eq!(response.attempts()[0].wait, wanted, "{name}");
        },
    );
}

/// The same of a value of the field, in the clear.
fn first_wait(
    status: u16,
    fields: &[(&str, &str)],
    retry: Retry,
) -> Option<(Duration, WaitReason)> {
    let world = in_turn(vec![throttle(status, fields)]);
    let session = patient(&world, Road::Plain, retry).build().unwrap();
    let response = session.get(world.url(Road::Plain, "/")).send().unwrap();
    assert_eq!(response.status(), 200, "{fields:?}");
    response.attempts()[0].wait
}

fn after(value: &str) -> Option<(Duration, WaitReason)> {
    first_wait(429, &[("Retry-After", value)], Retry::long_run())
}

#[test]
fn c01_a_fraction_is_a_wait() {
    first_wait_of("429-ra-float", asked(0.5));
    for (value, seconds) in [
        ("0.5", 0.5),
        ("1.5", 1.5),
        ("2.0", 2.0),
        ("0.001", 0.001),
        ("59.999", 59.999),
        (" 3.5 ", 3.5),
    ] {
        assert_eq!(after(value), asked(seconds), "{value}");
    }
    // Nothing of it is no wait asked for.
    assert_eq!(after("0.0"), backoff(0.6));
    for status in [413, 429, 503] {
        let wait = first_wait(status, &[("Retry-After", "0.5")], Retry::long_run());
        assert_eq!(wait, asked(0.5), "{status}");
    }
}

#[test]
fn c02_junk_is_no_field() {
    for name in ["429-ra-1m0s", "429-ra-neg"] {
        first_wait_of(name, backoff(0.6));
    }
    let long = "x".repeat(5000);
    for value in [
        "1m0s",
        "5s",
        "PT5S",
        "-5",
        "-0.5",
        "+5",
        "",
        " ",
        "soon",
        "never",
        "NaN",
        "nan",
        "inf",
        "-inf",
        "infinity",
        "1e9",
        "1e-3",
        "0x10",
        "1,5",
        "5,",
        "5;",
        "5 5",
        ".5",
        "5.",
        "1.2.3",
        "\"5\"",
        "Tomorrow",
        "2026-01-01T00:00:00Z",
        "Wed, 21 Oct",
        "Wed, 99 Foo 2015 07:28:00 GMT",
        "1m0s\u{e9}",
        &long,
    ] {
        assert_eq!(after(value), backoff(0.6), "{value:?}");
    }
}

#[test]
fn c02_the_budget_is_that_of_the_policy() {
    // Junk neither ends the retries nor gives one more.
    let junk = ["NaN", "-1", "soon", ""].map(|value| throttle(429, &[("Retry-After", value)]));
    each(
        Road::FOUR,
        || in_turn(junk.to_vec()),
        |world, road| {
            let session = patient(world, road, Retry::long_run()).build().unwrap();
            let response = session.get(world.url(road, "/")).send().unwrap();
            assert_eq!((response.status(), world.origin(road).counts().requests), (429, 4));
            let own = [Some(secs(0.6)), Some(secs(1.2)), Some(secs(2.4)), None];
            assert_eq!(waits(response.attempts()), own);
        },
    );
    // Without the forcelist it is no reason for a retry: the field counts as absent.
    let world = in_turn(junk.to_vec());
    let session = patient(&world, Road::Plain, Retry::from_total(3)).build().unwrap();
    let response = session.get(world.url(Road::Plain, "/")).send().unwrap();
    assert_eq!((response.status(), response.attempts().len()), (429, 1));
}

#[test]
fn c03_a_date_that_has_passed_leaves_the_ordinary_backoff() {
    first_wait_of("429-ra-past", backoff(0.6));
    first_wait_of("429-ra-0", backoff(0.6));
    // The clock of the tests stands at 15:06:40 on that day.
    for value in [
        "Sun, 15 Jun 2025 15:06:40 GMT",
        "Sun, 15 Jun 2025 15:06:39 GMT",
        "Thu, 01 Jan 1970 00:00:00 GMT",
        "Sunday, 15-Jun-25 15:06:40 GMT",
        "Sun Jun 15 15:06:40 2025",
        "0",
        "000",
    ] {
        assert_eq!(after(value), backoff(0.6), "{value}");
    }
    assert_eq!(after("Sun, 15 Jun 2025 15:06:43 GMT"), asked(3.0));
    // No retries without a pause, however often it is said.
    let past = hostile::origin_script("429-ra-past", "").unwrap();
    let world = in_turn(vec![past; 9]);
    let session = patient(&world, Road::Plain, Retry::long_run()).build().unwrap();
    let response = session.get(world.url(Road::Plain, "/")).send().unwrap();
    assert_eq!(
        waits(response.attempts()),
        [Some(secs(0.6)), Some(secs(1.2)), Some(secs(2.4)), None]
    );
}

/// Waits that nobody means.
const HUGE: &[&str] = &[
    "99999999999999999999999999",
    "18446744073709551616",
    "18446744073709551615",
    "9999999999",
    "86400",
    "99999999999999999999999999.5",
    "Fri, 31 Dec 9999 23:59:59 GMT",
];

#[test]
fn c04_a_huge_wait_is_cut_to_the_longest() {
    let clamped = |most: f64| Retry::from_total(3).retry_after_max(secs(most));
    for value in HUGE {
        let fields = [("Retry-After", *value)];
        assert_eq!(first_wait(503, &fields, Retry::from_total(3)), asked(21_600.0), "{value}");
        assert_eq!(first_wait(503, &fields, clamped(7.0)), asked(7.0), "{value}");
    }
    let huge = hostile::origin_script("429-ra-huge", "").unwrap();
    each(
        Road::EVERY,
        || in_turn(vec![huge.clone()]),
        |world, road| {
            let session = patient(world, road, clamped(60.0)).build().unwrap();
            let response = session.get(world.url(road, "/")).send().unwrap();
            assert_eq!(response.attempts()[0].wait, asked(60.0));
        },
    );
}

#[test]
fn c04_what_outlasts_the_deadline_is_not_waited_for() {
    for value in HUGE.iter().chain(&["31", "30"]) {
        each(
            Road::TWO,
            || in_turn(vec![throttle(503, &[("Retry-After", value)]); 9]),
            |world, road| {
                let clock = Arc::new(SimClock::default());
                let recipe = patient(world, road, Retry::from_total(3).raise_on_status(true));
                let session = recipe.clock(clock.clone()).deadline(secs(30.0)).build().unwrap();
                let error = session.get(world.url(road, "/")).send().unwrap_err();
                assert_eq!(error.kind(), ErrorKind::RetriesExhausted, "{error}");
                // At once, with what was wanted, and with the response.
                assert_eq!((error.attempts().len(), clock.elapsed()), (1, Duration::ZERO));
                let wanted = error.retry_after().unwrap();
                assert!(wanted >= secs(30.0) && wanted <= secs(21_600.0), "{wanted:?}");
                assert_eq!(error.response().unwrap().status(), 503);
                let note = error.attempts()[0].note.unwrap();
                assert_eq!(note, "the deadline leaves no room for the wait");
            },
        );
    }
    let world = in_turn(vec![throttle(503, &[("Retry-After", "29")])]);
    let recipe = patient(&world, Road::Plain, Retry::from_total(3)).deadline(secs(30.0));
    let response = recipe.build().unwrap().get(world.url(Road::Plain, "/")).send().unwrap();
    assert_eq!(response.attempts()[0].wait, asked(29.0));
}

#[test]
fn c04_a_run_parks_or_fails_as_it_was_told() {
    for (value, long_wait, wait) in [
        ("86400", LongWait::Park(secs(600.0)), None),
        ("600", LongWait::Park(secs(600.0)), asked(600.0)),
        ("61", LongWait::Fail, None),
        ("60", LongWait::Fail, asked(60.0)),
    ] {
        let world = in_turn(vec![throttle(503, &[("Retry-After", value)])]);
        let retry = Retry::long_run().long_wait(long_wait);
        let session = patient(&world, Road::Plain, retry).build().unwrap();
        let response = session.get(world.url(Road::Plain, "/")).send().unwrap();
        assert_eq!(response.attempts()[0].wait, wait, "{value} {long_wait:?}");
        assert_eq!(response.status(), if wait.is_some() { 200 } else { 503 });
        let note = wait.is_none().then_some("Retry-After asks for more than the policy waits");
        assert_eq!(response.attempts()[0].note, note);
    }
}

/// A clock that differs from everybody else's by so many seconds.
fn skewed(seconds: i64) -> Arc<SimClock> {
    let shift = Duration::from_secs(seconds.unsigned_abs());
    let right = SimClock::default().wall();
    Arc::new(SimClock::new(if seconds < 0 { right - shift } else { right + shift }))
}

#[test]
fn c07_a_date_is_measured_by_the_clock_of_who_wrote_it() {
    let date = "Sun, 15 Jun 2025 15:06:40 GMT";
    let then = "Sun, 15 Jun 2025 15:06:45 GMT";
    for skew in [0, 3600, -3600, 86_400 * 365, -86_400 * 365, 1, -1, 5, -5] {
        for (fields, wanted) in [
            (vec![("Date", date), ("Retry-After", then)], asked(5.0)),
            (vec![("Retry-After", then), ("date", date)], asked(5.0)),
            // The same instant in the other two forms.
            (vec![("Date", "Sunday, 15-Jun-25 15:06:40 GMT"), ("Retry-After", then)], asked(5.0)),
            (vec![("Date", date), ("Retry-After", "Sun Jun 15 15:06:45 2025")], asked(5.0)),
            (vec![("Date", then), ("Retry-After", date)], backoff(0.6)),
            // Seconds need no clock.
            (vec![("Date", date), ("Retry-After", "7")], asked(7.0)),
            // It is cut as any other.
            (vec![("Date", date), ("Retry-After", "Sun, 15 Jun 2025 16:06:40 GMT")], asked(60.0)),
        ] {
            let world = in_turn(vec![throttle(503, &fields)]);
            let retry = Retry::long_run().long_wait(LongWait::Clamp);
            let recipe = patient(&world, Road::Plain, retry).clock(skewed(skew));
            let response = recipe.build().unwrap().get(world.url(Road::Plain, "/")).send().unwrap();
            assert_eq!(response.attempts()[0].wait, wanted, "{skew} {fields:?}");
        }
    }
    // Without a date that can be read there is only the own clock.
    for fields in [
        vec![("Retry-After", then)],
        vec![("Date", "yesterday"), ("Retry-After", then)],
        vec![("Date", ""), ("Retry-After", then)],
    ] {
        for (skew, wanted) in [(0, asked(5.0)), (2, asked(3.0)), (3600, backoff(0.6))] {
            let world = in_turn(vec![throttle(503, &fields)]);
            let recipe = patient(&world, Road::Plain, Retry::long_run()).clock(skewed(skew));
            let response = recipe.build().unwrap().get(world.url(Road::Plain, "/")).send().unwrap();
            assert_eq!(response.attempts()[0].wait, wanted, "{skew} {fields:?}");
        }
    }
}

#[test]
fn c08_retry_after_is_a_reason_without_a_forcelist() {
    let script = hostile::origin_script("503-ra-2", "").unwrap();
    each(
        Road::EVERY,
        || in_turn(vec![script.clone(); 9]),
        |world, road| {
            // urllib3's policy of a bare number.
            let retry = Retry::from_total(3).raise_on_status(false);
            let session = patient(world, road, retry.clone()).build().unwrap();
            let response = session.get(world.url(road, "/")).send().unwrap();
            assert_eq!((response.status(), world.origin(road).counts().requests), (503, 4));
            let all = [asked(2.0), asked(2.0), asked(2.0), None];
            let found: Vec<_> = response.attempts().iter().map(|attempt| attempt.wait).collect();
            assert_eq!(found, all);
            // Off, it is neither a reason nor a wait.
            let deaf = retry.respect_retry_after_header(false);
            let session = patient(world, road, deaf).build().unwrap();
            let response = session.get(world.url(road, "/")).send().unwrap();
            assert_eq!((response.status(), response.attempts().len()), (503, 1));
        },
    );
}

#[test]
fn c08_which_statuses_methods_and_totals_it_moves() {
    let attempts = |status: u16, field: bool, retry: Retry, method: Method| {
        let fields = [("Retry-After", "1")];
        let script = throttle(status, if field { &fields } else { &[] });
        let world = in_turn(vec![script; 9]);
        let session = patient(&world, Road::Plain, retry.raise_on_status(false)).build().unwrap();
        let request = session.request(method, world.url(Road::Plain, "/"));
        request.send().unwrap().attempts().len()
    };
    let three = || Retry::from_total(3);
    for status in [413, 429, 503] {
        assert_eq!(attempts(status, true, three(), Method::GET), 4, "{status}");
        assert_eq!(attempts(status, false, three(), Method::GET), 1, "{status}");
        assert_eq!(attempts(status, true, three(), Method::POST), 1, "{status}");
        assert_eq!(attempts(status, true, Retry::from_total(0), Method::GET), 1, "{status}");
        assert_eq!(attempts(status, true, three().status(1), Method::GET), 2, "{status}");
    }
    for status in [200, 202, 300, 301, 304, 400, 403, 404, 408, 425, 500, 502, 504] {
        assert_eq!(attempts(status, true, three(), Method::GET), 1, "{status}");
    }
    // With the forcelist the status is retried, and the wait is its own where nobody listens.
    let deaf = Retry::long_run().respect_retry_after_header(false);
    let wait = first_wait(503, &[("Retry-After", "50")], deaf);
    assert_eq!(wait, backoff(0.6));
    // In a status of the forcelist the field counts although it is none of the three.
    assert_eq!(first_wait(500, &[("Retry-After", "9")], Retry::long_run()), asked(9.0));
    // Of several lines the longest that can be read.
    let lines = [("Retry-After", "3"), ("Retry-After", "soon"), ("retry-after", "4")];
    assert_eq!(first_wait(429, &lines, Retry::long_run()), asked(4.0));
}

#[test]
fn the_longest_wait_that_is_read_is_within_all_arithmetic() {
    let wall = SystemTime::UNIX_EPOCH;
    for value in HUGE {
        let wait = RetryAfter::parse([value.as_bytes()], None, wall).unwrap();
        assert!(wait <= RetryAfter::LONGEST, "{value}");
        assert!(SimClock::default().now().checked_add(wait).is_some());
    }
}
