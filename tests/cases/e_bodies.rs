//! Section E: bodies that are sent along, and those of redirects, for which nobody waits.

use crate::roads::{Road, World, assert_is, each};
use http::Method;
use longhaul::error::{ErrorKind, Fault, Phase};
use longhaul::lab::{Origin, Received, Reply, Script};
use longhaul::message::Body;
use longhaul::secs;
use longhaul::time::SimClock;
use std::io::Read;
use std::sync::Arc;

/// Redirects `/STATUS` to `/end`.
fn by_status() -> World {
    World::new(Origin::builder().handler(|request: &Received| {
        match request.path.trim_start_matches('/').parse() {
            Ok(status) => Reply::redirect(status, "/end").body("moved"),
            Err(_) => Reply::ok("there"),
        }
    }))
}

#[test]
fn c74_the_reported_ones() {
    each(Road::EVERY, World::hostile, |world, road| {
        let session = world.session(road);
        for (name, method, wanted) in [
            ("r-301", Method::POST, Method::GET),
            ("r-301", Method::PUT, Method::PUT),
            ("r-301", Method::DELETE, Method::DELETE),
            ("r-abs", Method::POST, Method::GET),
            ("r-abs", Method::PUT, Method::GET),
            ("r-abs", Method::DELETE, Method::GET),
            ("r-303", Method::POST, Method::GET),
            ("r-303", Method::PUT, Method::GET),
            ("r-303", Method::DELETE, Method::GET),
            ("r-307", Method::POST, Method::POST),
            ("r-307", Method::PUT, Method::PUT),
            ("r-307", Method::DELETE, Method::DELETE),
            ("r-308", Method::POST, Method::POST),
            ("r-308", Method::PUT, Method::PUT),
            ("r-308", Method::DELETE, Method::DELETE),
        ] {
            let url = world.url(road, &format!("/b/{name}"));
            let response = session.request(method.clone(), url).body("a=1").send().unwrap();
            assert_eq!(response.text().unwrap(), "ok");
            let asked = world.origin(road).log().pop().unwrap();
            assert_eq!((asked.path.as_str(), asked.method.as_str()), ("/b/ok", wanted.as_str()));
            assert_eq!(response.method(), wanted);
            assert_eq!(response.history()[0].method(), method);
            let keeps = matches!(name, "r-307" | "r-308");
            assert_eq!(
                asked.body.as_ref(),
                if keeps { &b"a=1"[..] } else { b"" },
                "{name} {method}"
            );
        }
    });
}

#[test]
fn c74_every_method_under_every_status() {
    let methods = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "PROPFIND"];
    each(&[Road::Plain, Road::Forward, Road::TlsTunnel], by_status, |world, road| {
        let session = world.session(road);
        for status in [301, 302, 303, 307, 308] {
            for method in methods {
                let wanted = match (status, method) {
                    (302 | 303, "HEAD") => "HEAD",
                    (302 | 303, _) | (301, "POST") => "GET",
                    _ => method,
                };
                let method = Method::from_bytes(method.as_bytes()).unwrap();
                let response = session
                    .request(method.clone(), world.url(road, &format!("/{status}")))
                    .allow_redirects(true)
                    .form([("a", "1")])
                    .header("X-Own", "kept")
                    .send()
                    .unwrap();
                assert_eq!(response.status(), 200);
                let log = world.origin(road).log();
                let [.., first, second] = log.as_slice() else { panic!("{log:?}") };
                assert_eq!(
                    (first.method.as_str(), second.method.as_str()),
                    (method.as_str(), wanted)
                );
                assert_eq!(first.body.as_ref(), b"a=1");
                assert_eq!(second.header("X-Own"), Some("kept"), "{status} {method}");
                // The body goes with its fields, or all of them go.
                let keeps = matches!(status, 307 | 308);
                assert_eq!(second.body.as_ref(), if keeps { &b"a=1"[..] } else { b"" });
                let form =
                    second.header("Content-Type") == Some("application/x-www-form-urlencoded");
                assert_eq!(form, keeps, "{status} {method}");
                let length = second.header("Content-Length").unwrap_or("0");
                assert_eq!(length, if keeps { "3" } else { "0" }, "{status} {method}");
                assert_eq!(second.header("Transfer-Encoding"), None);
            }
        }
    });
}

#[test]
fn c74_head_is_followed_only_on_demand() {
    let world = by_status();
    let session = world.session(Road::Plain);
    for status in [301, 302, 303, 307, 308] {
        let url = world.url(Road::Plain, &format!("/{status}"));
        let response = session.head(&url).send().unwrap();
        assert_eq!((response.status(), response.history().len()), (status, 0));
        let response = session.get(&url).allow_redirects(false).send().unwrap();
        assert_eq!((response.status(), response.text().unwrap().as_str()), (status, "moved"));
    }
}

/// The same bytes as each kind of body.
fn bodies(bytes: &'static [u8]) -> Vec<(&'static str, Body)> {
    let opened = move |length| {
        Body::replayable(move || Ok((Box::new(bytes) as Box<dyn Read + Send>, length)))
    };
    vec![
        ("bytes", Body::from(bytes)),
        ("opened, of known length", opened(Some(bytes.len() as u64))),
        ("opened, chunked", opened(None)),
    ]
}

#[test]
fn c74_a_body_is_sent_again_byte_for_byte_or_not_at_all() {
    static LARGE: [u8; 300_000] = [b'z'; 300_000];
    each(Road::EVERY, by_status, |world, road| {
        let session = world.session(road);
        for bytes in [&b"x"[..], &LARGE] {
            for (what, body) in bodies(bytes) {
                for status in [307, 308] {
                    let url = world.url(road, &format!("/{status}"));
                    session.put(url).body(body.clone()).send().unwrap();
                    let log = world.origin(road).log();
                    let [.., first, second] = log.as_slice() else { panic!("{log:?}") };
                    assert!(
                        first.body.as_ref() == bytes && second.body.as_ref() == bytes,
                        "{what}"
                    );
                    let framing = |request: &Received| {
                        ["Content-Length", "Transfer-Encoding"]
                            .map(|name| request.header(name).map(str::to_owned))
                    };
                    assert_eq!(framing(first), framing(second), "{what}");
                }
            }
        }
        // What can be read once is gone.
        for length in [Some(4), None] {
            let before = world.origin(road).counts().requests;
            let url = world.url(road, "/308");
            let once = Body::reader(&b"once"[..], length);
            let error = session.put(url).body(once).send().unwrap_err();
            assert_is(&error, ErrorKind::BodyNotReplayable, Phase::Send, Fault::Local);
            assert_eq!(error.requests_name(), "UnrewindableBodyError");
            let response = error.response().unwrap();
            assert_eq!((response.status(), error.attempts().len()), (308, 1));
            assert_eq!(world.origin(road).counts().requests, before + 1);
            // Where the body stays behind, that does not matter.
            let once = Body::reader(&b"once"[..], length);
            let response = session.put(world.url(road, "/303")).body(once).send().unwrap();
            assert_eq!(response.text().unwrap(), "there");
        }
    });
}

#[test]
fn c79_a_redirect_is_followed_whatever_becomes_of_its_body() {
    let found = "HTTP/1.1 302 Found\r\nLocation: /end\r\n";
    let chunked = format!("{found}Transfer-Encoding: chunked\r\n\r\n");
    let scripts = vec![
        Script::send(format!("{found}\r\n")).hold(),
        Script::send(format!("{found}Content-Length: 1000000000\r\n\r\nabc")).hold(),
        Script::send(format!("{found}Content-Length: 5\r\n\r\n")).hold(),
        Script::send(format!("{found}Content-Length: 5\r\n\r\nabc")).fin(),
        // The pause lets the head arrive before the reset throws it away.
        Script::send(format!("{found}Content-Length: 5\r\n\r\nabc")).pause(secs(0.05)).rst(),
        Script::send(format!("{chunked}5\r\nhello\r\n")).hold(),
        Script::send(format!("{chunked}zz\r\n")).hold(),
        Script::send(&chunked).repeat(
            format!("1000\r\n{}\r\n", "x".repeat(4096)),
            4000,
            secs(0.02),
        ),
        Script::send(format!("{found}Content-Length: 3000\r\n\r\n"))
            .drip("x".repeat(3000), secs(0.02)),
        Script::send(format!("{found}\r\n")).drip("x".repeat(3000), secs(0.02)),
        Script::send(format!("{found}\r\n")).repeat("x".repeat(100_000), 1000, secs(0.0)),
    ];
    let count = scripts.len();
    let world = || {
        let scripts = scripts.clone();
        World::new(Origin::builder().handler(move |request: &Received| {
            let number: Option<usize> = request.path.trim_start_matches('/').parse().ok();
            number.map_or_else(|| Reply::ok("there").into(), |number| scripts[number].clone())
        }))
    };
    // A wait for any of these bodies ends in a read timeout, or in the deadline.
    each(Road::EVERY, world, |world, road| {
        let session = world
            .recipe(road)
            .timeout((secs(20.0), secs(15.0)))
            .deadline(secs(30.0))
            .build()
            .unwrap();
        for number in 0..count {
            let response = session.get(world.url(road, &format!("/{number}"))).send().unwrap();
            assert_eq!(response.text().unwrap(), "there", "{number}");
            assert_eq!(response.history()[0].status(), 302);
            // 100 ms are all that such a body is waited for.
            assert!(response.elapsed() < secs(12.0), "{number}: {:?}", response.elapsed());
        }
    });
}

#[test]
fn c79_the_reported_ones() {
    each(Road::EVERY, World::hostile, |world, road| {
        let session = world
            .recipe(road)
            .timeout((secs(20.0), secs(15.0)))
            .deadline(secs(30.0))
            .build()
            .unwrap();
        for (name, kept) in [("r-endless-body", false), ("r-short-cl", false), ("r-badgz", true)] {
            let before = world.origin(road).counts().accepted;
            for _ in 0..2 {
                let response = session.get(world.url(road, &format!("/b/{name}"))).send().unwrap();
                assert_eq!(response.text().unwrap(), "ok", "{name}");
                // The endless one would end after ten seconds.
                assert!(response.elapsed() < secs(8.0), "{name}: {:?}", response.elapsed());
            }
            // A body that is there is drained as it is, undecoded, and its connection is kept.
            let opened = world.origin(road).counts().accepted - before;
            assert!(!kept || opened <= 1, "{name}: {opened}");
        }
    });
}

#[test]
fn c79_what_comes_of_a_small_body_is_a_kept_connection() {
    let found = |extra: &str, body: &str| {
        Script::send(format!("HTTP/1.1 302 Found\r\nLocation: /end\r\n{extra}\r\n{body}"))
    };
    let large = "x".repeat(60_000);
    let scripts = vec![
        found("Content-Length: 0\r\n", ""),
        found("Content-Length: 5\r\n", "moved"),
        found("Content-Length: 60000\r\n", &large),
        found("Transfer-Encoding: chunked\r\n", "5;x=y\r\nmoved\r\n0\r\nT: 1\r\n\r\n"),
        found("Content-Encoding: gzip\r\nContent-Length: 4\r\n", "nope"),
        found("Content-Length: 5\r\n", "").pause(secs(0.01)).then_send("moved"),
    ];
    let count = scripts.len();
    let world = || {
        let scripts = scripts.clone();
        World::new(Origin::builder().handler(move |request: &Received| {
            let number: Option<usize> = request.path.trim_start_matches('/').parse().ok();
            number.map_or_else(|| Reply::ok("there").into(), |number| scripts[number].clone())
        }))
    };
    each(Road::ALL, world, |world, road| {
        // On this clock no time passes, so that none of it can be too late.
        let clock = Arc::new(SimClock::default());
        let session = world.recipe(road).clock(clock).build().unwrap();
        for number in 0..count {
            let response = session.get(world.url(road, &format!("/{number}"))).send().unwrap();
            assert_eq!(response.text().unwrap(), "there");
            assert!(response.connection().reused, "{number}");
        }
        assert_eq!(world.origin(road).counts().accepted, 1);
    });
}
