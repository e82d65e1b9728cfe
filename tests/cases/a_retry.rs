//! Section A: what is retried, how often, and what comes of it in the end.

use crate::roads::{Always, NAME, Road, World, assert_is, each, recipe};
use http::Method;
use longhaul::error::{Attempt, ErrorKind, Fault, Phase, WaitReason};
use longhaul::lab::{ClosedPort, HttpProxy, Origin, Received, Reply, Script, hostile};
use longhaul::message::Body;
use longhaul::policy::Methods;
use longhaul::time::SimClock;
use longhaul::transport::ResolveError;
use longhaul::{ProxyPool, ProxyUrl, Retry, SessionBuilder, secs};
use std::io::Read;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// A recipe of this road whose waits cost nothing.
pub(crate) fn patient(world: &World, road: Road, retry: Retry) -> SessionBuilder {
    world.recipe(road).clock(Arc::new(SimClock::default())).retry(retry)
}

pub(crate) fn waits(attempts: &[Attempt]) -> Vec<Option<Duration>> {
    attempts.iter().map(|attempt| attempt.wait.map(|(wait, _)| wait)).collect()
}

fn statuses(attempts: &[Attempt]) -> Vec<Option<u16>> {
    attempts.iter().map(|attempt| attempt.status).collect()
}

/// An origin that plays one script after the other, and has a page for whoever comes after.
pub(crate) fn in_turn(scripts: Vec<Script>) -> World {
    let asked = AtomicUsize::new(0);
    World::new(Origin::builder().handler(move |_: &Received| {
        let script = scripts.get(asked.fetch_add(1, Ordering::SeqCst)).cloned();
        script.unwrap_or_else(|| Reply::ok("there").into())
    }))
}

fn busy() -> Script {
    Reply::new(503).header("X-Why", "busy").body("why").into()
}

#[test]
fn c13_a_post_that_may_have_arrived_is_sent_once() {
    let failures: [(&str, Script); 5] = [
        ("no answer", Script::new().fin()),
        ("a reset", Script::new().rst()),
        ("half a head", Script::send("HTTP/1.1 200 OK\r\n").fin()),
        ("half a body", Script::send("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc").fin()),
        ("no HTTP", Script::send("what?\r\n\r\n").fin()),
    ];
    for (what, script) in &failures {
        for method in [Method::POST, Method::PATCH, Method::from_bytes(b"MKCOL").unwrap()] {
            each(
                Road::FOUR,
                || in_turn(vec![script.clone(); 9]),
                |world, road| {
                    let session = patient(world, road, Retry::long_run()).build().unwrap();
                    let request = session.request(method.clone(), world.url(road, "/"));
                    let error = request.body("order").send().unwrap_err();
                    assert!(!error.is_unsent() && error.attempts().len() == 1, "{what}: {error}");
                    assert_eq!(world.origin(road).counts().requests, 1, "{what}");
                },
            );
        }
    }
}

#[test]
fn c13_nor_after_a_silence_or_a_status() {
    each(Road::EVERY, World::hostile, |world, road| {
        let session = world.recipe(road).retry(Retry::long_run()).build().unwrap();
        let silent = session.post(world.url(road, "/b/never-answer")).body("order");
        let error = silent.timeout((secs(20.0), secs(0.3))).send().unwrap_err();
        assert_is(&error, ErrorKind::ReadTimeout, Phase::Headers, Fault::Target);
        assert_eq!(world.origin(road).counts().requests, 1);
        // Neither the forcelist nor Retry-After makes a POST one that may be repeated.
        let response = session.post(world.url(road, "/b/503-ra-2")).body("order").send().unwrap();
        assert_eq!((response.status(), response.attempts().len()), (503, 1));
        assert_eq!(world.origin(road).counts().requests, 2);
    });
}

#[test]
fn c13_who_says_that_it_may_be_repeated_is_believed() {
    each(
        Road::FOUR,
        || in_turn(vec![Script::new().fin(), busy()]),
        |world, road| {
            let retry = Retry::long_run().allowed_methods(Methods::Any);
            let session = patient(world, road, retry).build().unwrap();
            let response = session.post(world.url(road, "/")).body("order").send().unwrap();
            assert_eq!((response.status(), response.attempts().len()), (200, 3));
            for request in world.origin(road).log() {
                assert_eq!(request.body.as_ref(), b"order");
            }
        },
    );
}

#[test]
fn c13_what_was_not_sent_is_tried_again_whatever_the_method() {
    let closed = ClosedPort::new().unwrap();
    let here = closed.address();
    let unknown = Always(Err(ResolveError::Temporary("try again".to_owned())));
    let unknown = Arc::new(unknown);
    let through = |proxy: &str| recipe().proxies(proxy.parse::<ProxyUrl>().unwrap());
    let refusing = HttpProxy::builder()
        .elsewhere(here)
        .handler(|_: &Received| hostile::http_proxy_script("p502"))
        .start()
        .unwrap();
    let dropping = HttpProxy::builder()
        .elsewhere(here)
        .handler(|_: &Received| hostile::http_proxy_script("pfin"))
        .start()
        .unwrap();
    let direct = format!("http://{here}/");
    let secure = format!("https://{NAME}/");
    for (what, recipe, url, kind) in [
        ("refused", recipe(), &direct, ErrorKind::Connection),
        (
            "no name",
            recipe().resolver(unknown),
            &direct.replace("127.0.0.1", NAME),
            ErrorKind::NameLookup,
        ),
        ("no proxy", through(&format!("http://{here}")), &secure, ErrorKind::ProxyUnreachable),
        ("no tunnel", through(&refusing.url()), &secure, ErrorKind::ProxyRefused),
        ("a proxy that leaves", through(&dropping.url()), &secure, ErrorKind::ProxyUnreachable),
    ] {
        let recipe = recipe.clock(Arc::new(SimClock::default())).retry(Retry::long_run());
        let session = recipe.build().unwrap();
        for method in [Method::GET, Method::POST, Method::PATCH] {
            let bodies = [
                Body::from("order"),
                // Nobody has read it, so it can still be sent.
                Body::reader(&b"order"[..], Some(5)),
                Body::reader(&b"order"[..], None),
            ];
            for body in bodies {
                let error = session.request(method.clone(), url).body(body).send().unwrap_err();
                assert_eq!(error.kind(), kind, "{what} {method}: {error}");
                assert!(error.is_unsent(), "{what}");
                // `connect` allows three retries.
                assert_eq!(error.attempts().len(), 4, "{what} {method}");
            }
        }
    }
}

#[test]
fn c14_a_body_that_nobody_read_is_sent_by_the_attempt_that_comes_through() {
    // The first proxy is dead: what the body was opened for never left.
    let world = World::new(Origin::builder().handler(|_| Reply::ok("there")));
    let closed = ClosedPort::new().unwrap();
    let list = format!("http://{}\n{}", closed.address(), world.proxy.url());
    for length in [Some(4), None] {
        let pool = ProxyPool::parse(&list).unwrap();
        let session =
            patient(&world, Road::Tunnel, Retry::long_run()).proxies(pool).build().unwrap();
        let once = Body::reader(&b"once"[..], length);
        let response = session.post(format!("http://{NAME}/")).body(once).send().unwrap();
        assert_eq!(response.attempts().len(), 2);
        let asked = world.plain.log().pop().unwrap();
        assert_eq!(asked.body.as_ref(), b"once");
    }
}

#[test]
fn c14_a_refused_credential_does_not_hide_behind_a_body_that_is_gone() {
    // The request was forwarded with its body before the proxy said no; another would take it.
    let origin = Origin::builder().handler(|_| Reply::ok("there")).start().unwrap();
    let proxy = || HttpProxy::builder().elsewhere(origin.address());
    let closed = proxy().credentials("a", "other").start().unwrap();
    let open = proxy().credentials("b", "right").start().unwrap();
    let list = format!("http://a:wrong@{}\nhttp://b:right@{}", closed.address(), open.address());
    let post = |body: Body| {
        let pool = ProxyPool::parse(&list).unwrap();
        let recipe = recipe().proxies(pool).retry(Retry::long_run());
        recipe.build().unwrap().post("http://origin.test/").body(body).send()
    };
    let response = post(Body::from("order")).unwrap();
    assert_eq!((response.status(), response.attempts().len()), (200, 2));
    for length in [Some(4), None] {
        let error = post(Body::reader(&b"once"[..], length)).unwrap_err();
        assert_is(&error, ErrorKind::ProxyAuth, Phase::Headers, Fault::Proxy);
        let note = Some("the body cannot be sent again");
        assert_eq!((error.attempts().len(), error.attempts()[0].note), (1, note));
    }
    assert_eq!(origin.counts().requests, 1);
}

/// The same bytes as each kind of body that can be sent again.
fn replayable(bytes: &'static [u8]) -> [Body; 3] {
    let opened = move |length| {
        Body::replayable(move || Ok((Box::new(bytes) as Box<dyn Read + Send>, length)))
    };
    [Body::from(bytes), opened(Some(bytes.len() as u64)), opened(None)]
}

#[test]
fn c14_a_body_is_replayed_byte_for_byte() {
    static LARGE: [u8; 200_000] = [b'z'; 200_000];
    let retry = || Retry::long_run().allowed_methods([Method::PUT]);
    for bytes in [&b"x"[..], &LARGE] {
        for body in replayable(bytes) {
            each(
                Road::FOUR,
                || in_turn(vec![busy(), Script::new().fin()]),
                |world, road| {
                    let session = patient(world, road, retry()).build().unwrap();
                    let put = session.put(world.url(road, "/")).body(body.clone());
                    let response = put.send().unwrap();
                    assert_eq!((response.status(), response.attempts().len()), (200, 3));
                    let log = world.origin(road).log();
                    assert_eq!(log.len(), 3);
                    for request in &log {
                        assert!(request.body.as_ref() == bytes);
                        assert_eq!(
                            request.header("Content-Length"),
                            log[0].header("Content-Length")
                        );
                    }
                },
            );
        }
    }
}

#[test]
fn c14_what_can_be_read_once_is_sent_once_and_the_first_failure_says_so() {
    let retry = || Retry::long_run().allowed_methods([Method::PUT]);
    for length in [Some(4), None] {
        each(
            Road::FOUR,
            || in_turn(vec![busy(), Script::new().fin()]),
            |world, road| {
                let session = patient(world, road, retry()).build().unwrap();
                let once = || Body::reader(&b"once"[..], length);
                // A status is handed out as it came.
                let response = session.put(world.url(road, "/")).body(once()).send().unwrap();
                assert_eq!((response.status(), response.text().unwrap().as_str()), (503, "why"));
                let note = Some("the body cannot be sent again");
                assert_eq!((response.attempts().len(), response.attempts()[0].note), (1, note));
                // An error likewise.
                let error = session.put(world.url(road, "/")).body(once()).send().unwrap_err();
                assert_is(&error, ErrorKind::Connection, Phase::Headers, Fault::Target);
                assert_eq!((error.attempts().len(), error.attempts()[0].note), (1, note));
                assert_eq!(world.origin(road).counts().requests, 2);
            },
        );
    }
}

#[test]
fn c15_total_2_is_three_requests_and_the_history_names_them() {
    each(
        Road::EVERY,
        || in_turn(vec![busy(); 9]),
        |world, road| {
            let retry = Retry::long_run().total(2);
            let session = patient(world, road, retry).build().unwrap();
            let response = session.get(world.url(road, "/")).send().unwrap();
            assert_eq!(response.status(), 503);
            assert_eq!(world.origin(road).counts().requests, 3);
            assert_eq!(statuses(response.attempts()), [Some(503); 3]);
            assert_eq!(waits(response.attempts()), [Some(secs(0.6)), Some(secs(1.2)), None]);
            assert_eq!(response.attempts()[2].note, Some("total is used up"));
            for attempt in response.attempts() {
                assert_eq!(attempt.method, Method::GET);
                assert_eq!(attempt.url.as_ref(), world.url(road, "/"));
                assert_eq!(attempt.proxy.is_some(), !road.is_direct());
                assert!(attempt.error.is_none());
            }
        },
    );
    // Zero is one, and each number one more.
    let world = in_turn(vec![busy(); 99]);
    for total in 0..5 {
        let before = world.plain.counts().requests;
        let retry = Retry::long_run().total(total).status(99);
        let session = patient(&world, Road::Plain, retry).build().unwrap();
        session.get(world.url(Road::Plain, "/")).send().unwrap();
        assert_eq!(world.plain.counts().requests - before, u64::from(total) + 1);
    }
}

#[test]
fn c15_errors_and_statuses_stand_in_one_history() {
    let scripts =
        vec![Script::new().fin(), busy(), Script::send("HTTP/1.1 200 OK\r\n\r\nab").rst()];
    each(
        Road::FOUR,
        || in_turn(scripts.clone()),
        |world, road| {
            let session = patient(world, road, Retry::long_run()).build().unwrap();
            let response = session.get(world.url(road, "/")).send().unwrap();
            let [lost, busy, _, good] = response.attempts() else {
                panic!("{:?}", response.attempts())
            };
            assert_eq!(lost.error.as_ref().unwrap().kind, ErrorKind::Connection);
            assert_eq!((busy.status, busy.error.is_none()), (Some(503), true));
            assert_eq!((good.status, good.wait), (Some(200), None));
            let wanted = [Some(secs(0.6)), Some(secs(1.2)), Some(secs(2.4)), None];
            assert_eq!(waits(response.attempts()), wanted);
        },
    );
}

#[test]
fn c15_redirects_are_no_errors_and_the_backoff_starts_anew_behind_them() {
    let hop = || Script::from(Reply::redirect(302, "/next"));
    let scripts = vec![busy(), busy(), hop(), hop(), busy(), busy()];
    each(
        Road::EVERY,
        || in_turn(scripts.clone()),
        |world, road| {
            let retry = Retry::long_run().total(9).status(9);
            let session = patient(world, road, retry).build().unwrap();
            let response = session.get(world.url(road, "/")).send().unwrap();
            assert_eq!((response.status(), response.history().len()), (200, 2));
            let codes = [503, 503, 302, 302, 503, 503, 200].map(Some);
            assert_eq!(statuses(response.attempts()), codes);
            let first_steps = [Some(secs(0.6)), Some(secs(1.2)), None, None];
            assert_eq!(waits(response.attempts())[..4], first_steps);
            assert_eq!(waits(response.attempts())[4..], [Some(secs(0.6)), Some(secs(1.2)), None]);
            assert!(response.attempts().iter().all(|attempt| attempt.error.is_none()));
        },
    );
}

#[test]
fn c16_used_up_retries_hand_back_the_last_response() {
    each(
        Road::EVERY,
        || in_turn(vec![busy(); 99]),
        |world, road| {
            let retry = Retry::long_run().total(1);
            let session = patient(world, road, retry.clone()).build().unwrap();
            let response = session.get(world.url(road, "/")).send().unwrap();
            assert_eq!((response.status(), response.text().unwrap().as_str()), (503, "why"));
            assert_eq!(response.headers()["x-why"], "busy");
            // It can still be raised, and keeps what it was.
            let error = response.raise_for_status().unwrap_err();
            assert_eq!(error.response().unwrap().text().unwrap(), "why");

            let raising = patient(world, road, retry.raise_on_status(true)).build().unwrap();
            let error = raising.get(world.url(road, "/")).send().unwrap_err();
            assert_is(&error, ErrorKind::RetriesExhausted, Phase::Headers, Fault::Target);
            assert_eq!((error.requests_name(), error.attempts().len()), ("RetryError", 2));
            let response = error.into_response().unwrap();
            assert_eq!((response.status(), response.text().unwrap().as_str()), (503, "why"));
            assert_eq!(response.headers()["x-why"], "busy");
            // Streamed it is there to be read.
            let streamed = session.get(world.url(road, "/")).stream(true).send().unwrap();
            assert_eq!((streamed.status(), streamed.text().unwrap().as_str()), (503, "why"));
        },
    );
}

#[test]
fn c16_an_error_status_is_a_response_like_others() {
    let world = World::new(Origin::builder().handler(|request: &Received| {
        let status = request.path.trim_start_matches('/').parse().unwrap();
        Reply::new(status).header("X-Why", "because").body("why")
    }));
    for road in [Road::Plain, Road::Forward, Road::TlsTunnel] {
        let session = world.session(road);
        for status in [400, 401, 403, 404, 410, 418, 429, 451, 500, 502, 503, 504, 599, 999] {
            let response = session.get(world.url(road, &format!("/{status}"))).send().unwrap();
            assert_eq!((response.status(), response.text().unwrap().as_str()), (status, "why"));
            assert_eq!(response.headers()["x-why"], "because");
            assert_eq!((response.ok(), response.attempts().len()), (false, 1));
        }
    }
}

#[test]
fn c16_the_last_failure_of_many_kinds_is_the_one_that_is_told() {
    // A status first, then an error: the error comes out, and the history has both.
    let busy = Reply::new(503).close().into();
    let world = in_turn(vec![busy, Script::new().fin(), Script::new().fin()]);
    let session = patient(&world, Road::Plain, Retry::long_run().total(2)).build().unwrap();
    let error = session.get(world.url(Road::Plain, "/")).send().unwrap_err();
    assert_is(&error, ErrorKind::Connection, Phase::Headers, Fault::Target);
    assert_eq!(statuses(error.attempts()), [Some(503), None, None]);
    assert!(error.response().is_none());
    let reasons: Vec<_> =
        error.attempts().iter().filter_map(|attempt| attempt.wait).map(|(_, why)| why).collect();
    assert_eq!(reasons, [WaitReason::Backoff; 2]);
}
