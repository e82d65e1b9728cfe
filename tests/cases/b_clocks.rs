//! Section B: timeouts, deadlines and the clocks behind them.

use crate::answers::playing;
use crate::roads::{Road, World, assert_is, each, recipe, until_deadline};
use http::Method;
use longhaul::error::{Fault, Phase, WaitReason};
use longhaul::lab::{Origin, Received, Reply, Script, hostile};
use longhaul::policy::Timeouts;
use longhaul::time::{Clock, SimClock, SystemClock};
use longhaul::{ErrorKind, Request, Retry, Session, secs};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant, SystemTime};

#[test]
fn c24_the_defaults_end_every_wait() {
    let timeouts = Session::new().unwrap().settings().timeouts;
    assert_eq!(timeouts.connect(), Some(secs(5.0)));
    assert_eq!(timeouts.read(), Some(secs(25.0)));
    assert_eq!(timeouts, Timeouts::new());
    each(Road::FOUR, World::hostile, |world, road| {
        let session = world.recipe(road).timeout((secs(20.0), secs(0.3))).build().unwrap();
        let error = session.get(world.url(road, "/b/never-answer")).send().unwrap_err();
        assert_is(&error, ErrorKind::ReadTimeout, Phase::Headers, Fault::Target);
        assert_eq!(error.requests_name(), "ReadTimeout");
        let deadline = session.get(world.url(road, "/b/never-answer"));
        let limits = Timeouts::unlimited().with_deadline(secs(0.3)).unwrap();
        let error = deadline.timeout(limits).send().unwrap_err();
        assert_is(&error, ErrorKind::Deadline, Phase::Headers, Fault::Target);
    });
}

#[test]
fn c25_a_drip_passes_the_read_timeout_and_ends_at_the_deadline() {
    for (name, phase) in [("drip-body", Phase::Body), ("drip-head", Phase::Headers)] {
        each(Road::ALL, World::hostile, |world, road| {
            let session = world.recipe(road).timeout(until_deadline()).build().unwrap();
            let url = world.url(road, &format!("/b/{name}"));
            let error = session.get(url).send().unwrap_err();
            assert_is(&error, ErrorKind::Deadline, phase, Fault::Target);
            if phase == Phase::Body {
                let received = error.received_bytes().unwrap();
                assert!((1..1000).contains(&received), "{received}");
            }
        });
    }
}

#[test]
fn c25_every_part_of_a_response_can_drip() {
    let drip = secs(0.01);
    let chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
    let interim = "HTTP/1.1 103 Early Hints\r\n\r\n";
    for (what, script, phase) in [
        ("interim", Script::new().drip(interim.repeat(15), drip), Phase::Headers),
        (
            "status line",
            Script::new().drip(format!("HTTP/1.1 200 {}", "y".repeat(2000)), drip),
            Phase::Headers,
        ),
        ("blank lines", Script::new().drip("\r\n".repeat(2000), drip), Phase::Headers),
        (
            "size line",
            Script::send(chunked).drip(format!("5;{}", "e".repeat(2000)), drip),
            Phase::Body,
        ),
        ("zeros", Script::send(chunked).drip("0".repeat(2000), drip), Phase::Body),
        ("chunks", Script::send(chunked).drip("1\r\nx\r\n".repeat(400), drip), Phase::Body),
        (
            "trailers",
            Script::send(chunked).then_send("0\r\n").drip("T: x\r\n".repeat(400), drip),
            Phase::Body,
        ),
        (
            "until the end",
            Script::send("HTTP/1.1 200 OK\r\n\r\n").drip("z".repeat(2000), drip),
            Phase::Body,
        ),
    ] {
        each(
            Road::TWO,
            || playing(script.clone()),
            |world, road| {
                let session = world.recipe(road).timeout(until_deadline()).build().unwrap();
                let error = session.get(world.url(road, "/")).send().unwrap_err();
                assert_is(&error, ErrorKind::Deadline, phase, Fault::Target);
                assert!(!what.is_empty());
            },
        );
    }
}

#[test]
fn c26_a_connect_reply_that_drips_ends_with_the_connect_timeout_or_the_deadline() {
    let proxies = [
        ("http", Script::new()),
        (
            "refusal",
            Script::new().drip(format!("HTTP/1.1 502 {}\r\n\r\n", "x".repeat(300)), secs(0.02)),
        ),
        ("interim", Script::new().drip("HTTP/1.1 100 Continue\r\n\r\n".repeat(15), secs(0.02))),
    ];
    for (what, script) in proxies {
        let proxy = longhaul::lab::HttpProxy::builder()
            .elsewhere(SocketAddr::from(([127, 0, 0, 1], 9)))
            .handler(move |_: &Received| match what {
                "http" => hostile::http_proxy_script("pdrip"),
                _ => Some(script.clone()),
            })
            .start()
            .unwrap();
        let session =
            recipe().proxies(proxy.url().parse::<longhaul::ProxyUrl>().unwrap()).build().unwrap();
        let target = "https://pdrip.test/";
        for (timeouts, kind) in [
            (Timeouts::from((secs(0.4), secs(20.0))), ErrorKind::ConnectTimeout),
            (
                Timeouts::from((secs(20.0), secs(20.0))).with_deadline(secs(0.4)).unwrap(),
                ErrorKind::Deadline,
            ),
            (Timeouts::unlimited().with_deadline(secs(0.4)).unwrap(), ErrorKind::Deadline),
        ] {
            let error = session.get(target).timeout(timeouts).send().unwrap_err();
            assert_is(&error, kind, Phase::Proxy, Fault::Proxy);
            assert!(error.is_unsent(), "{what}");
        }
    }
}

#[test]
fn c31_one_deadline_spans_redirects() {
    let clock = Arc::new(SimClock::default());
    let hand = clock.clone();
    let world = || {
        let hand = hand.clone();
        World::new(Origin::builder().handler(move |request| {
            hand.advance(secs(0.3));
            let hop: u32 = request.path.trim_start_matches('/').parse().unwrap();
            Reply::redirect(302, format!("/{}", hop + 1))
        }))
    };
    for road in [Road::Plain, Road::Tls, Road::Tunnel, Road::Socks] {
        let world = world();
        let session = world.recipe(road).clock(clock.clone()).deadline(secs(1.0)).build().unwrap();
        let begun = clock.elapsed();
        let error = session.get(world.url(road, "/0")).send().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Deadline, "{error}");
        // The answer of the fourth comes at 1.2 s, which is too late for a fifth.
        assert_eq!(world.origin(road).counts().requests, 4, "{road:?}");
        assert_eq!(error.attempts().len(), 4);
        assert_eq!(clock.elapsed() - begun, secs(1.2));
    }
}

#[test]
fn c31_no_wait_outlasts_the_deadline() {
    let clock = Arc::new(SimClock::default());
    let origin = Origin::builder()
        .handler(|request| match request.path.as_str() {
            "/asks" => Reply::new(503).header("Retry-After", "7"),
            _ => Reply::new(503),
        })
        .start()
        .unwrap();
    let session = recipe()
        .clock(clock.clone())
        .retry(Retry::long_run().total(50u32).status(50u32))
        .deadline(secs(10.0))
        .build()
        .unwrap();
    for (path, elapsed, requests) in [("/", 9.0, 5), ("/asks", 7.0, 2)] {
        let (begun, before) = (clock.elapsed(), origin.counts().requests);
        let response = session.get(origin.url(path)).send().unwrap();
        assert_eq!(response.status(), 503);
        assert_eq!(
            response.attempts().last().unwrap().note,
            Some("the deadline leaves no room for the wait")
        );
        assert_eq!(clock.elapsed() - begun, secs(elapsed), "{path}");
        assert_eq!(origin.counts().requests - before, requests, "{path}");
    }
}

/// A monotonic clock that stands, and a wall clock that somebody turns.
#[derive(Debug)]
struct Turned {
    start: Instant,
    ahead: Mutex<Duration>,
    wall: Mutex<SystemTime>,
    turns: AtomicU64,
}

impl Clock for Turned {
    fn now(&self) -> Instant {
        self.start + *self.ahead.lock().unwrap()
    }

    fn wall(&self) -> SystemTime {
        // An hour back and two hours ahead, in turns.
        let mut wall = self.wall.lock().unwrap();
        *wall = if self.turns.fetch_add(1, Ordering::SeqCst).is_multiple_of(2) {
            *wall - secs(3600.0)
        } else {
            *wall + secs(7200.0)
        };
        *wall
    }

    fn sleep_until(&self, until: Instant) {
        let mut ahead = self.ahead.lock().unwrap();
        *ahead = (*ahead).max(until.saturating_duration_since(self.start));
    }
}

#[test]
fn c36_a_wall_clock_that_is_turned_changes_no_wait() {
    let clock = Arc::new(Turned {
        start: SystemClock.now(),
        ahead: Mutex::default(),
        wall: Mutex::new(SystemTime::UNIX_EPOCH + secs(1_750_000_000.0)),
        turns: AtomicU64::new(0),
    });
    let count = AtomicUsize::new(0);
    let origin = Origin::builder()
        .handler(move |_| match count.fetch_add(1, Ordering::SeqCst) {
            0 => Reply::new(503),
            // A date is measured against the server's own.
            1 => Reply::new(503)
                .header("Date", "Wed, 21 Oct 2015 07:28:00 GMT")
                .header("Retry-After", "Wed, 21 Oct 2015 07:28:05 GMT"),
            _ => Reply::ok("there"),
        })
        .start()
        .unwrap();
    let session = recipe()
        .clock(clock.clone())
        .retry(Retry::long_run())
        .deadline(secs(20.0))
        .build()
        .unwrap();
    let response = session.get(origin.url("/")).send().unwrap();
    assert_eq!(response.status(), 200);
    let waits: Vec<_> = response.attempts().iter().filter_map(|attempt| attempt.wait).collect();
    assert_eq!(waits, [(secs(0.6), WaitReason::Backoff), (secs(5.0), WaitReason::RetryAfter)]);
    assert_eq!(response.elapsed(), secs(5.6));
    assert!(clock.turns.load(Ordering::SeqCst) > 0, "the wall clock was looked at");
}

#[test]
fn c36_a_process_that_slept_meets_no_read_timeout_and_begins_nothing_after_its_deadline() {
    // The clock jumps by half a minute while the answer is on its way.
    let clock = Arc::new(SimClock::default());
    let hand = clock.clone();
    let origin = Origin::builder()
        .handler(move |request| {
            hand.advance(secs(30.0));
            Reply::new(if request.path == "/busy" { 503 } else { 200 })
        })
        .start()
        .unwrap();
    let session = recipe()
        .clock(clock.clone())
        .timeout((secs(5.0), secs(5.0)))
        .retry(Retry::long_run())
        .build()
        .unwrap();
    let response = session.get(origin.url("/")).send().unwrap();
    assert_eq!((response.status(), response.elapsed()), (200, secs(30.0)));

    // Whether the answer still counts is chance; that nothing follows it is not.
    let request = Request::new(Method::GET, origin.url("/busy"));
    let limits = Timeouts::new().with_deadline(secs(10.0)).unwrap();
    match session.send(request.timeout(limits)) {
        Ok(response) => assert_eq!(response.status(), 503),
        Err(error) => assert_eq!(error.kind(), ErrorKind::Deadline, "{error}"),
    }
    assert_eq!(origin.counts().requests, 2);
}
