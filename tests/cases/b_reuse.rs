//! Section B: connections that are used again.

use crate::answers::playing;
use crate::roads::{Always, NAME, Road, World, assert_is, each, recipe};
use crate::said;
use http::Method;
use longhaul::error::{Fault, Phase, WaitReason};
use longhaul::lab::{Origin, Received, Reply, Script, hostile};
use longhaul::message::Body;
use longhaul::time::{Clock, SimClock, SystemClock};
use longhaul::transport::{self, Play};
use longhaul::{ErrorKind, Retry, WorkerPool, secs};
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

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
            let session = world.reading_twice(road).build().unwrap();
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
        let session = world.reading_twice(road).build().unwrap();
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
fn c145_as_many_connections_as_threads_and_one_warning_for_what_is_thrown_away() {
    said::listen();
    let origin = Origin::builder().handler(|_: &Received| Reply::ok("ok")).start().unwrap();
    let recipe = recipe();
    let (threads, each) = (32, 5);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                let session = recipe.build().unwrap();
                for _ in 0..each {
                    session.get(origin.url("/")).send().unwrap();
                }
            });
        }
    });
    let counts = origin.counts();
    assert_eq!((counts.accepted, counts.requests), (threads, threads * each));

    // In one session only streamed responses can be more than what is kept.
    let session = recipe.pool_maxsize(2).resolver(Always::home()).build().unwrap();
    let url = origin.url("/").replace("127.0.0.1", NAME);
    for _ in 0..2 {
        let held: Vec<_> = (0..5).map(|_| session.get(&url).stream(true).send().unwrap()).collect();
        assert!(held.iter().all(|response| response.text().unwrap() == "ok"), "nothing is lost");
    }
    let warnings = said::with("is thrown away");
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    for part in [NAME, "2 idle", "pool_maxsize"] {
        assert!(warnings[0].contains(part), "{warnings:?}");
    }
}

#[test]
fn c145_a_pool_of_workers_connects_once_each_and_once_to_each_of_two_hundred_hosts() {
    let origin = Origin::builder().handler(|_: &Received| Reply::ok("ok")).start().unwrap();
    let pool = WorkerPool::builder(recipe()).workers(32).build().unwrap();
    let urls: Vec<_> = (0..640).map(|number| origin.url(&format!("/{number}"))).collect();
    let done = pool.run(&urls).filter(|done| done.result.is_ok()).count();
    let counts = origin.counts();
    assert_eq!((done, counts.requests), (640, 640), "nothing is lost");
    assert!(counts.accepted <= 32, "{counts:?}");
    drop(pool);

    // Every address of the machine's own network is a host of its own.
    let everywhere = SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0));
    let origin = Origin::builder()
        .address(everywhere)
        .handler(|_: &Received| Reply::ok("ok"))
        .start()
        .unwrap();
    let session = recipe().pool_connections(200).build().unwrap();
    for round in 0..3 {
        for host in 1..=200 {
            let url = format!("http://127.0.3.{host}:{}/", origin.address().port());
            let response = session.get(url).send().unwrap();
            assert_eq!(response.connection().reused, round > 0, "host {host}, round {round}");
        }
    }
    assert_eq!((origin.counts().accepted, origin.counts().requests), (200, 600));
}
