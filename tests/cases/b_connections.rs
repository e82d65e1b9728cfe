//! Section B: connections that are used again, timeouts, deadlines.

use crate::roads::{Always, NAME, Road, World, assert_is, each, recipe};
use http::Method;
use longhaul::error::{Fault, Phase, WaitReason};
use longhaul::lab::{Origin, Received, Reply, Script, SilentPort, hostile};
use longhaul::message::Body;
use longhaul::policy::Timeouts;
use longhaul::time::{Clock, SimClock, SystemClock};
use longhaul::transport::{self, Play, Resolve, ResolveError, SystemResolver};
use longhaul::{ErrorKind, ProxyPool, Request, Retry, Session, secs};
use std::collections::HashSet;
use std::io::Read;
use std::net::{IpAddr, SocketAddr, TcpListener};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::time::{Duration, Instant, SystemTime};

const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

/// An origin that plays this for the first request of each connection; the script goes on itself.
fn playing(script: Script) -> World {
    World::new(Origin::builder().handler(move |_: &Received| script.clone()))
}

#[test]
fn c20_a_kept_connection_that_dies_is_resent_once_free_of_charge() {
    for name in ["stale-fin-after-1", "stale-rst-after-1"] {
        each(Road::ALL, World::hostile, |world, road| {
            let session = world.session(road);
            let url = world.url(road, &format!("/b/{name}"));
            assert!(!session.get(&url).send().unwrap().connection().reused);
            let response = session.get(&url).send().unwrap();
            assert_eq!(response.text().unwrap(), "ok");
            let [lost, resent] = response.attempts() else { panic!("{:?}", response.attempts()) };
            assert!(lost.reused && !lost.resend && lost.wait.is_none());
            let error = lost.error.as_ref().unwrap();
            assert_eq!(
                (error.kind, error.phase, error.fault),
                (ErrorKind::Connection, Phase::Headers, Fault::Target),
                "{}",
                error.message
            );
            assert!(resent.resend && resent.status == Some(200) && !response.connection().reused);
            let counts = world.origin(road).counts();
            assert_eq!((counts.requests, counts.accepted), (3, 2));
        });
    }
}

#[test]
fn c20_methods_that_may_be_sent_twice_and_those_that_may_not() {
    for (method, again) in [
        (Method::GET, true),
        (Method::HEAD, true),
        (Method::OPTIONS, true),
        (Method::TRACE, true),
        (Method::PUT, true),
        (Method::DELETE, true),
        (Method::POST, false),
        (Method::PATCH, false),
        (Method::from_bytes(b"PROPFIND").unwrap(), false),
    ] {
        each(Road::TWO, World::hostile, |world, road| {
            let session = world.session(road);
            let url = world.url(road, "/b/stale-rst-after-1");
            session.get(&url).send().unwrap();
            let result = session.request(method.clone(), &url).body("x").send();
            assert_eq!(world.origin(road).counts().requests, if again { 3 } else { 2 });
            match result {
                Ok(response) => assert!(again && response.attempts().len() == 2, "{method}"),
                Err(error) => {
                    assert!(!again, "{method}: {error}");
                    assert_is(&error, ErrorKind::Connection, Phase::Headers, Fault::Target);
                    assert!(error.is_stale() && !error.is_unsent());
                    assert_eq!(error.attempts().len(), 1);
                }
            }
        });
    }
}

#[test]
fn c20_a_body_that_can_be_read_once_is_not_sent_twice() {
    each(Road::TWO, World::hostile, |world, road| {
        let session = world.session(road);
        let url = world.url(road, "/b/stale-fin-after-1");
        session.get(&url).send().unwrap();
        let once = Body::reader(&b"once"[..], Some(4));
        let error = session.put(&url).body(once).send().unwrap_err();
        assert!(error.is_stale(), "{error}");
        assert_eq!(world.origin(road).counts().requests, 2);
    });
}

#[test]
fn c20_on_a_fresh_connection_it_is_an_ordinary_read_error_and_charged() {
    for name in ["fin", "rst"] {
        each(Road::ALL, World::hostile, |world, road| {
            let session = world
                .recipe(road)
                .clock(Arc::new(SimClock::default()))
                .retry(Retry::long_run().read(1u32))
                .build()
                .unwrap();
            let error = session.get(world.url(road, &format!("/b/{name}"))).send().unwrap_err();
            assert_is(&error, ErrorKind::Connection, Phase::Headers, Fault::Target);
            assert!(!error.is_stale());
            let [first, second] = error.attempts() else { panic!("{:?}", error.attempts()) };
            assert_eq!(first.wait, Some((secs(0.6), WaitReason::Backoff)));
            assert!(!first.resend && !second.resend);
            assert_eq!(second.note, Some("read is used up"));
        });
    }
}

#[test]
fn c20_a_resend_that_fails_too_is_charged_and_not_resent() {
    let world = || {
        World::new(Origin::builder().handler(|request| {
            if (request.connection, request.request) == (1, 1) {
                Script::send(OK)
            } else {
                Script::new().fin()
            }
        }))
    };
    each(Road::TWO, world, |world, road| {
        let session = world
            .recipe(road)
            .clock(Arc::new(SimClock::default()))
            .retry(Retry::long_run().read(1u32))
            .build()
            .unwrap();
        let url = world.url(road, "/");
        session.get(&url).send().unwrap();
        let error = session.get(&url).send().unwrap_err();
        let resends: Vec<_> = error.attempts().iter().map(|attempt| attempt.resend).collect();
        assert_eq!(resends, [false, true, false]);
        let waits: Vec<_> = error.attempts().iter().map(|attempt| attempt.wait.is_some()).collect();
        assert_eq!(waits, [false, true, false]);
    });
}

#[test]
fn c20_a_response_that_has_begun_is_not_stale() {
    for start in ["H", "HTTP/1.1 200 OK\r\n", "HTTP/1.1 100 Continue\r\n\r\n"] {
        for reset in [false, true] {
            let begun = Script::send(OK).next_request().then_send(start);
            // The pause lets the bytes arrive before the reset throws them away.
            let script = if reset { begun.pause(secs(0.02)).rst() } else { begun.fin() };
            each(
                Road::FOUR,
                || playing(script.clone()),
                |world, road| {
                    let session = world.session(road);
                    let url = world.url(road, "/");
                    session.get(&url).send().unwrap();
                    let error = session.get(&url).send().unwrap_err();
                    assert_is(&error, ErrorKind::Connection, Phase::Headers, Fault::Target);
                    assert!(!error.is_stale(), "{start:?}");
                    assert_eq!(error.attempts().len(), 1);
                },
            );
        }
    }
}

#[test]
fn c20_a_post_meets_no_connection_that_has_died_before_it() {
    // The reset has arrived, and on this clock the connection was busy a moment ago: what cannot
    // be sent twice looks all the same, and what was not sent at all may be sent again.
    each(
        Road::FOUR,
        || playing_once(Script::send(OK).rst()),
        |world, road| {
            let recipe = world.recipe(road).clock(Arc::new(SimClock::default()));
            let session = recipe.build().unwrap();
            let url = world.url(road, "/");
            session.get(&url).send().unwrap();
            assert!(world.origin(road).wait_until_idle(secs(20.0)));
            for method in [Method::POST, Method::PATCH] {
                let response = session.request(method, &url).body("order").send().unwrap();
                let (last, lost) = response.attempts().split_last().unwrap();
                assert!(lost.len() <= 1 && last.resend != lost.is_empty());
            }
            let log = world.origin(road).log();
            let bodies: Vec<_> = log.iter().map(|request| request.body.to_vec()).collect();
            assert_eq!(bodies, [&b""[..], b"order", b"order"], "each arrived once");
        },
    );
}

/// An origin that plays this on its first connection, and behaves on all others.
fn playing_once(script: Script) -> World {
    World::new(Origin::builder().handler(move |request: &Received| match request.connection {
        1 => script.clone(),
        _ => Reply::ok("new").into(),
    }))
}

#[test]
fn c20_a_post_of_which_no_byte_was_taken_is_sent_again() {
    let post = |lost: Play| {
        let clock = Arc::new(SimClock::default());
        let script = transport::Script::new(clock.clone(), [lost, Play::status(200)]);
        let session = recipe().clock(clock).transport(move || script.clone()).build().unwrap();
        session.post("http://a.test/").body("order").send()
    };
    let response = post(Play::stale_unsent()).unwrap();
    let [lost, resent] = response.attempts() else { panic!("{:?}", response.attempts()) };
    assert_eq!(lost.error.as_ref().unwrap().phase, Phase::Send);
    assert!(resent.resend);
    // Where it may have arrived, nobody but its owner can know whether it may be sent again.
    let error = post(Play::stale()).unwrap_err();
    assert_is(&error, ErrorKind::Connection, Phase::Headers, Fault::Target);
    assert_eq!(error.attempts().len(), 1);
}

#[test]
fn c21_what_comes_on_an_idle_connection_is_never_an_answer() {
    let idle = secs(0.05);
    for (what, script) in [
        ("408", hostile::origin_script("408-on-idle", "").unwrap()),
        ("an end", hostile::origin_script("fin-idle-50ms", "").unwrap()),
        ("a reset", Script::send(OK).pause(idle).rst()),
        ("a byte", Script::send(OK).pause(idle).then_send("x").hold()),
    ] {
        each(
            Road::ALL,
            || playing_once(script.clone()),
            |world, road| {
                let session = world.session(road);
                let url = world.url(road, "/");
                assert_eq!(session.get(&url).send().unwrap().text().unwrap(), "ok");
                SystemClock.sleep_until(SystemClock.now() + 4 * idle);
                let response = session.get(&url).send().unwrap();
                assert_eq!(response.text().unwrap(), "new", "{what}");
                assert_eq!(world.origin(road).counts().accepted, 2, "{what}");
                // On a machine that was too busy it crossed the request, which costs nothing either.
                let (last, lost) = response.attempts().split_last().unwrap();
                assert!(lost.len() <= 1 && last.resend != lost.is_empty(), "{what}");
            },
        );
    }
}

#[test]
fn c21_a_408_that_crosses_the_request_is_treated_as_a_dead_connection() {
    let late = "HTTP/1.1 408 Request Timeout\r\nConnection: close\r\nContent-Length: 0\r\n\r\n";
    let script = Script::send(OK).next_request().then_send(late).fin();
    each(
        Road::ALL,
        || playing(script.clone()),
        |world, road| {
            let session = world.session(road);
            let url = world.url(road, "/");
            session.get(&url).send().unwrap();
            let response = session.get(&url).send().unwrap();
            assert_eq!(response.status(), 200);
            let [lost, resent] = response.attempts() else { panic!("{:?}", response.attempts()) };
            assert!(lost.status == Some(408) && lost.reused && resent.resend);

            // Nobody knows whether a POST was read; and the answer is an answer.
            let response = session.post(&url).body("x").send().unwrap();
            assert_eq!((response.status(), response.attempts().len()), (408, 1));
        },
    );
    // On a connection of its own it is a status like others.
    let fresh = playing(Script::send(late).fin());
    let response = fresh.session(Road::Plain).get(fresh.url(Road::Plain, "/")).send().unwrap();
    assert_eq!((response.status(), response.attempts().len()), (408, 1));
}

#[test]
fn c21_bytes_behind_a_body_never_begin_the_next_response() {
    // A length that was counted in characters: some bytes are left over.
    for rest in ["!", "left over", "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil"] {
        for apart in [false, true] {
            let short = Script::send(OK);
            let script = if apart {
                short.next_request().then_send(rest).then_send(OK)
            } else {
                Script::send(format!("{OK}{rest}"))
            };
            let world = || playing(script.clone());
            each(Road::FOUR, world, |world, road| {
                let session = world.session(road);
                let url = world.url(road, "/");
                assert_eq!(session.get(&url).send().unwrap().text().unwrap(), "ok");
                let second = session.get(&url).send().unwrap().text().unwrap();
                // Sent after the request, nothing tells a whole response from the wanted one.
                let wanted = if apart && rest.starts_with("HTTP") { "evil" } else { "ok" };
                assert_eq!(second, wanted, "{rest:?} {apart}");
            });
        }
    }
}

#[test]
fn c21_tickets_that_come_on_an_idle_connection_do_not_cost_it() {
    let world = World::hostile();
    for road in [Road::Tls, Road::TlsTunnel, Road::TlsInTls, Road::TlsSocks] {
        let session = world.session(road);
        for number in 0..3 {
            let response = session.get(world.url(road, "/b/ok")).send().unwrap();
            assert_eq!(response.connection().reused, number > 0, "{road:?}");
        }
    }
}

#[test]
fn c23_a_connection_that_was_idle_for_long_is_not_used_again() {
    each(Road::ALL, World::hostile, |world, road| {
        let clock = Arc::new(SimClock::default());
        let session = world.recipe(road).clock(clock.clone()).build().unwrap();
        let mut reused = Vec::new();
        for idle in [0.0, 14.9, 15.0, 3600.0] {
            clock.advance(secs(idle));
            let response = session.get(world.url(road, "/b/ok")).send().unwrap();
            reused.push(response.connection().reused);
        }
        // Routers forget a silent connection after a minute or more.
        assert_eq!(reused, [false, true, false, false]);
        assert_eq!(world.origin(road).counts().accepted, 3);
    });
}

#[test]
fn c23_a_kept_connection_that_went_silent_is_a_read_timeout_and_the_retry_a_new_connection() {
    let script = Script::send(OK).next_request().hold();
    each(
        Road::FOUR,
        || playing(script.clone()),
        |world, road| {
            let session = world
                .recipe(road)
                .timeout((secs(20.0), secs(0.3)))
                .retry(Retry::from_total(1))
                .build()
                .unwrap();
            let url = world.url(road, "/");
            session.get(&url).send().unwrap();
            let response = session.get(&url).send().unwrap();
            let [silent, again] = response.attempts() else { panic!("{:?}", response.attempts()) };
            assert_eq!(silent.error.as_ref().unwrap().kind, ErrorKind::ReadTimeout);
            assert!(silent.reused && !again.reused && !again.resend, "charged");
            assert_eq!(world.origin(road).counts().accepted, 2);
        },
    );
}

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

/// Limits of which only the deadline can run out: no gap of a drip comes near the read timeout.
fn until_deadline() -> Timeouts {
    Timeouts::from((secs(20.0), secs(10.0))).with_deadline(secs(2.0)).unwrap()
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

/// Addresses for every name.
fn leading_to(addresses: &[&str]) -> Arc<Always> {
    Arc::new(Always(Ok(addresses.iter().map(|address| address.parse().unwrap()).collect())))
}

#[test]
fn c28_a_black_hole_costs_a_stagger_and_an_unreachable_address_nothing() {
    let hole = SilentPort::new().unwrap();
    let port = hole.address().port();
    let other = SocketAddr::from(([127, 0, 0, 2], port));
    let origin = Origin::builder().address(other).handler(|_| Reply::ok("there")).start().unwrap();
    for addresses in [
        &["127.0.0.1", "127.0.0.2"][..],
        // Documentation addresses: without a route refused at once, with one a black hole.
        &["2001:db8::1", "127.0.0.2"],
        &["2001:db8::1", "2001:db8::2", "127.0.0.1", "127.0.0.2"],
    ] {
        let session = recipe()
            .resolver(leading_to(addresses))
            .timeout((secs(30.0), secs(20.0)))
            .build()
            .unwrap();
        let begun = SystemClock.now();
        let response = session.get(format!("http://{NAME}:{port}/")).send().unwrap();
        assert_eq!(response.connection().peer, Some(other));
        // A budget of 30 s in equal parts would take seven or more.
        assert!(SystemClock.now() - begun < secs(5.0), "{addresses:?}");
    }
    assert_eq!(origin.counts().requests, 3);
    // Nothing but the hole is a connect timeout.
    let session = recipe()
        .resolver(leading_to(&["127.0.0.1"]))
        .timeout((secs(0.3), secs(20.0)))
        .build()
        .unwrap();
    let error = session.get(format!("http://{NAME}:{port}/")).send().unwrap_err();
    assert_is(&error, ErrorKind::ConnectTimeout, Phase::Connect, Fault::Target);
}

#[test]
fn c28_the_family_that_worked_is_remembered_for_the_host_by_all_sessions() {
    let origin = Origin::builder().start().unwrap();
    let port = origin.address().port();
    let recipe = recipe().resolver(leading_to(&["::1", "127.0.0.1"]));
    let family = |host: &str| {
        let session = recipe.build().unwrap();
        let response = session.get(format!("http://{host}:{port}/")).send().unwrap();
        if response.connection().peer.unwrap().is_ipv4() { 4 } else { 6 }
    };
    assert_eq!(family("one.test"), 4, "nobody listens on ::1");
    let at_home = SocketAddr::from((std::net::Ipv6Addr::LOCALHOST, port));
    let Ok(_six) = Origin::builder().address(at_home).start() else {
        eprintln!("no IPv6 on this machine");
        return;
    };
    assert_eq!(family("one.test"), 4, "as before");
    assert_eq!(family("two.test"), 6, "of another host nothing is known");
}

#[test]
fn c28_all_addresses_of_a_dead_host_are_tried_within_one_budget() {
    let closed = longhaul::lab::ClosedPort::new().unwrap();
    let port = closed.address().port();
    let session = recipe()
        .resolver(leading_to(&["127.0.0.1", "127.0.0.2", "127.0.0.3", "127.0.0.4"]))
        .build()
        .unwrap();
    let error = session.get(format!("http://{NAME}:{port}/")).send().unwrap_err();
    assert_is(&error, ErrorKind::Connection, Phase::Connect, Fault::Target);
    assert!(error.is_unsent() && error.to_string().contains("refused"), "{error}");
}

#[test]
fn c29_lookups_that_hang_end_with_the_budget_and_cost_few_threads() {
    let (release, released) = mpsc::channel::<()>();
    let released = Mutex::new(released);
    let threads = Arc::new(Mutex::new(HashSet::new()));
    let lookups = Arc::new(AtomicUsize::new(0));
    let (seen, count) = (threads.clone(), lookups.clone());
    let resolver = Arc::new(SystemResolver::around(move |_| {
        seen.lock().unwrap().insert(std::thread::current().id());
        count.fetch_add(1, Ordering::SeqCst);
        // Until the sender is dropped.
        let _ = released.lock().unwrap().recv();
        Err(ResolveError::Temporary("hung".to_owned()))
    }));
    let recipe = recipe()
        .resolver(resolver)
        .timeout((secs(0.05), secs(20.0)))
        .retry(Retry::from_total(3).backoff_factor(Duration::ZERO));
    std::thread::scope(|scope| {
        for worker in 0..24 {
            let session = recipe.build().unwrap();
            scope.spawn(move || {
                // Some names are the same for all workers, some are not.
                for host in ["same.test".to_owned(), format!("{worker}.test")] {
                    let error = session.get(format!("http://{host}/")).send().unwrap_err();
                    assert_is(&error, ErrorKind::ConnectTimeout, Phase::Dns, Fault::Target);
                    assert_eq!(error.attempts().len(), 4);
                }
            });
        }
    });
    assert!(threads.lock().unwrap().len() <= 6, "{threads:?}");
    // Only who has a thread asks, and each hangs: 192 attempts, six questions.
    assert!(lookups.load(Ordering::SeqCst) <= 6);
    drop(release);
}

#[test]
fn c29_a_deadline_ends_a_lookup_too_and_a_cut_does_so_at_once() {
    let (release, released) = mpsc::channel::<()>();
    let released = Mutex::new(released);
    let (begun, has_begun) = mpsc::channel::<()>();
    let resolver = Arc::new(SystemResolver::around(move |_| {
        let _ = begun.send(());
        let _ = released.lock().unwrap().recv();
        Err(ResolveError::Temporary("hung".to_owned()))
    }));
    let recipe = recipe().resolver(resolver);
    let session = recipe.build().unwrap();
    let limits = Timeouts::unlimited().with_deadline(secs(0.1)).unwrap();
    let error = session.get("http://one.test/").timeout(limits).send().unwrap_err();
    assert_is(&error, ErrorKind::Deadline, Phase::Dns, Fault::Target);

    has_begun.recv().unwrap();
    std::thread::scope(|scope| {
        let asker = scope.spawn(|| {
            let session = recipe.build().unwrap();
            session.get("http://two.test/").timeout(Timeouts::unlimited()).send().unwrap_err()
        });
        has_begun.recv().unwrap();
        recipe.cutter().cut();
        let error = asker.join().unwrap();
        assert_is(&error, ErrorKind::Cancelled, Phase::Dns, Fault::Local);
    });
    drop(release);
}

#[test]
fn c30_a_name_that_does_not_exist_is_final_and_one_that_cannot_be_asked_for_is_not() {
    for (answer, kind, attempts) in [
        (ResolveError::NotFound("no such name".to_owned()), ErrorKind::NameNotFound, 1),
        (ResolveError::Temporary("try again".to_owned()), ErrorKind::NameLookup, 4),
    ] {
        let session = recipe()
            .resolver(Arc::new(Always(Err(answer))))
            .clock(Arc::new(SimClock::default()))
            .retry(Retry::long_run())
            .build()
            .unwrap();
        let error = session.get("http://does-not-exist.test/").send().unwrap_err();
        assert_is(&error, kind, Phase::Dns, Fault::Target);
        assert_eq!(error.attempts().len(), attempts);
        assert_eq!(error.requests_name(), "ConnectionError");
        assert!(error.to_string().contains("does-not-exist.test"), "{error}");
    }
    // No address at all is no name.
    let session = recipe().resolver(Arc::new(Always(Ok(Vec::new())))).build().unwrap();
    let error = session.get("http://empty.test/").send().unwrap_err();
    assert_is(&error, ErrorKind::NameNotFound, Phase::Dns, Fault::Target);
}

#[test]
fn c30_a_missing_name_is_not_held_against_the_proxy() {
    let socks = longhaul::lab::SocksProxy::builder().start().unwrap();
    let list = socks.url("socks5");
    let recipe = recipe().proxies(ProxyPool::parse(&list).unwrap());
    let session = recipe.build().unwrap();
    for _ in 0..5 {
        let error = session.get("http://does-not-exist.test/").send().unwrap_err();
        assert_is(&error, ErrorKind::NameNotFound, Phase::Dns, Fault::Target);
    }
    let stats = recipe.proxy_stats();
    assert_eq!((stats[0].bad, stats[0].in_flight), (0, 0));
    assert_eq!(socks.counts().accepted, 0);
    // The name of the proxy itself is another matter.
    let recipe = self::recipe().proxies(ProxyPool::parse("http://gone.test:8000").unwrap());
    let error = recipe.build().unwrap().get("http://a.test/").send().unwrap_err();
    assert_is(&error, ErrorKind::ProxyUnreachable, Phase::Dns, Fault::Proxy);
    assert_eq!(recipe.proxy_stats()[0].bad, 1);
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

/// So many bytes without a body of that size in memory.
fn zeros(length: u64) -> Body {
    Body::reader(std::io::repeat(b'z').take(length), Some(length))
}

#[test]
fn c32_an_upload_to_a_slow_reader_ends_at_the_deadline() {
    each(Road::ALL, World::hostile, |world, road| {
        let session = world.recipe(road).timeout(until_deadline()).build().unwrap();
        let url = world.url(road, "/b/slow-reader");
        for body in [
            // More than all the buffers on the way take.
            Body::from(vec![b'z'; 60_000_000]),
            zeros(60_000_000),
            Body::reader(std::io::repeat(b'z').take(60_000_000), None),
        ] {
            let error = session.post(&url).body(body).send().unwrap_err();
            assert_is(&error, ErrorKind::Deadline, Phase::Send, Fault::Target);
            assert!(!error.is_unsent());
        }
    });
}

#[test]
fn c32_a_peer_that_takes_nothing_runs_into_the_read_timeout() {
    let world = || World::new(Origin::builder().on_head(|_| Some(Script::new().pause(secs(20.0)))));
    each(Road::TWO, world, |world, road| {
        let session = world.recipe(road).timeout((secs(20.0), secs(0.3))).build().unwrap();
        let error = session.post(world.url(road, "/")).body(zeros(50_000_000)).send().unwrap_err();
        assert_is(&error, ErrorKind::ReadTimeout, Phase::Send, Fault::Target);
    });
}

#[test]
fn c34_an_early_answer_to_an_upload_is_the_response() {
    for name in ["early-413-close", "early-413-rst"] {
        each(Road::ALL, World::hostile, |world, road| {
            let session = world.session(road);
            let url = world.url(road, &format!("/b/{name}"));
            for body in [
                Body::from(vec![b'z'; 30_000_000]),
                zeros(30_000_000),
                Body::reader(std::io::repeat(b'z').take(30_000_000), None),
            ] {
                let response = session.post(&url).body(body).send().unwrap();
                assert_eq!((response.status(), response.text().unwrap().as_str()), (413, "big"));
                assert_eq!(response.attempts().len(), 1);
                assert!(response.attempts()[0].error.is_none());
                assert!(response.connection().sent_bytes < 30_000_000);
            }
            // None of these connections is in a state to be used again.
            assert_eq!(world.origin(road).counts().accepted, 3);
        });
    }
}

#[test]
fn c34_whatever_the_early_answer_is_and_however_it_is_framed() {
    for (status, head) in [
        (200, "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nbig"),
        (401, "HTTP/1.1 401 Who\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nbig\r\n0\r\n\r\n"),
        (403, "HTTP/1.1 103 Hints\r\n\r\nHTTP/1.1 403 No\r\nContent-Length: 3\r\n\r\nbig"),
        (503, "HTTP/1.1 503 Busy\r\nConnection: close\r\n\r\nbig"),
    ] {
        // It goes on to read nothing, or leaves.
        for stays in [true, false] {
            let answer = Script::send(head);
            let answer =
                if stays && status != 503 { answer.pause(secs(20.0)) } else { answer.close() };
            let world = || {
                let answer = answer.clone();
                World::new(Origin::builder().on_head(move |_| Some(answer.clone())))
            };
            each(Road::TWO, world, |world, road| {
                // The end of a body that the close delimits is lost with a reset, so its sibling
                // is judged by the status alone.
                let stream = status == 503;
                let response = world
                    .session(road)
                    .put(world.url(road, "/"))
                    .body(zeros(50_000_000))
                    .stream(stream)
                    .send()
                    .unwrap();
                assert_eq!(response.status(), status);
                if !stream {
                    assert_eq!(response.text().unwrap(), "big", "{status}");
                }
            });
        }
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

#[test]
fn facts_of_the_connection_are_true_to_the_wire() {
    each(Road::TWO, World::hostile, |world, road| {
        let session = world.session(road);
        for (name, received) in [
            ("ok", OK.len()),
            ("100-with-headers", "HTTP/1.1 100 Continue\r\nServer: x\r\n\r\n".len() + OK.len()),
            ("chunk-ext-short", 47 + "5;a=b\r\nhello\r\n0\r\n\r\n".len()),
        ] {
            let url = world.url(road, &format!("/b/{name}"));
            let response = session.post(&url).body("12345").send().unwrap();
            let facts = response.connection();
            assert_eq!(facts.received_bytes, received as u64, "{name}");
            let request = world.origin(road).log().pop().unwrap();
            assert_eq!(facts.sent_bytes, (request.head.len() + 5) as u64, "{name}");
            assert_eq!(facts.tls.is_some(), road.is_tls());
        }
    });
}

#[test]
fn a_resolver_may_be_of_ones_own() {
    let origin = Origin::builder().start().unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    drop(listener);
    #[derive(Debug)]
    struct Pinned;
    impl Resolve for Pinned {
        fn resolve(&self, host: &str, _: Option<Duration>) -> Result<Vec<IpAddr>, ResolveError> {
            assert_eq!(host, "pinned.test");
            Ok(vec![IpAddr::from([127, 0, 0, 1])])
        }
    }
    let session = recipe().resolver(Arc::new(Pinned)).build().unwrap();
    let url = format!("http://pinned.test:{}/", origin.address().port());
    assert_eq!(session.get(url).send().unwrap().status(), 200);
}
