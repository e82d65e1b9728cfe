//! Section E: redirects that lead nowhere.

use crate::answers::leading;
use crate::roads::{NoNames, Road, World, assert_is, each, recipe};
use longhaul::WorkerPool;
use longhaul::error::{ErrorKind, Fault, Phase};
use longhaul::lab::{Origin, Received, Reply};
use std::sync::Arc;

#[test]
fn c73_a_status_that_leads_nowhere_is_the_response() {
    each(Road::EVERY, World::hostile, |world, road| {
        let session = world.session(road);
        for (name, status, body) in [
            ("r-noloc", 302, "no location"),
            ("r-300", 300, "pick one"),
            ("r-empty", 302, ""),
            ("gz-304", 304, ""),
        ] {
            let response = session.get(world.url(road, &format!("/b/{name}"))).send().unwrap();
            assert_eq!((response.status(), response.text().unwrap().as_str()), (status, body));
            assert!(response.history().is_empty() && response.attempts().len() == 1, "{name}");
            assert!(response.attempts()[0].error.is_none());
        }
        assert_eq!(world.origin(road).counts().requests, 4);
    });
}

#[test]
fn c73_whatever_the_status_and_with_a_location_too() {
    // A Location beside these statuses is a hint, or another thing altogether.
    let statuses = [200, 201, 202, 300, 304, 305, 306, 399, 400, 404, 500, 503];
    let without = [301, 302, 303, 307, 308];
    let world = || {
        World::new(Origin::builder().handler(|request: &Received| {
            let status = request.path.trim_start_matches('/').parse().unwrap();
            let reply = Reply::new(status).body("the body");
            match request.query.as_deref() {
                Some("to") => reply.header("Location", "/204"),
                _ => reply,
            }
        }))
    };
    each(&[Road::Plain, Road::Forward, Road::TlsSocks], world, |world, road| {
        let session = world.session(road);
        let asked = statuses.iter().map(|status| (status, "?to"));
        for (status, query) in asked.chain(without.iter().map(|status| (status, ""))) {
            let response =
                session.get(world.url(road, &format!("/{status}{query}"))).send().unwrap();
            assert_eq!((response.status(), response.history().len()), (*status, 0));
            assert!(!response.is_redirect() && !response.is_permanent_redirect());
            let body = if *status == 304 { "" } else { "the body" };
            assert_eq!(response.text().unwrap(), body, "{status}");
        }
    });
}

/// Schemes that nobody here speaks, each in the ways in which they are written.
const OTHER_SCHEMES: &[&str] = &[
    "ftp://127.0.0.1/x",
    "mailto:a@example.com",
    "file:///etc/passwd",
    "FILE:/etc/passwd",
    "javascript:alert(1)",
    "data:text/html,<b>hi</b>",
    "about:blank",
    "ws://127.0.0.1/",
    "wss://127.0.0.1/",
    "gopher://127.0.0.1:70/_x",
    "ldap://127.0.0.1/",
    "socks5://127.0.0.1:1/b/ok",
    "socks5h://127.0.0.1:1/b/ok",
    "socks4://127.0.0.1:1/",
    "http+unix://%2Frun%2Fx.sock/",
    "httpx://127.0.0.1/",
    "itms-apps://x/",
    "intent://x#Intent;end",
    "  ftp://127.0.0.1/x",
];

#[test]
fn c77_another_scheme_is_an_error_that_holds_the_response() {
    each(Road::EVERY, World::hostile, |world, road| {
        let names = Arc::new(NoNames::default());
        let session = world.recipe(road).resolver(names.clone()).build().unwrap();
        for name in ["r-mailto", "r-ftp", "r-socks"] {
            let error = session.get(world.url(road, &format!("/b/{name}"))).send().unwrap_err();
            assert_is(&error, ErrorKind::InvalidScheme, Phase::Headers, Fault::Target);
            assert_eq!(error.requests_name(), "InvalidSchema");
            let response = error.response().unwrap();
            assert_eq!((response.status(), error.attempts().len()), (302, 1), "{name}");
            assert!(response.headers().contains_key("location"));
        }
        // Nothing was sent there, and nobody was asked for a name.
        assert_eq!(world.origin(road).counts().requests, 3);
        assert_eq!(names.asked(), [""; 0]);
    });
}

#[test]
fn c77_whatever_the_scheme() {
    each(
        &[Road::Plain, Road::Forward],
        || leading(OTHER_SCHEMES),
        |world, road| {
            let session = world.session(road);
            for (number, location) in OTHER_SCHEMES.iter().enumerate() {
                let url = world.url(road, &format!("/dir/{number}?q"));
                let error = session.get(url).send().unwrap_err();
                assert_is(&error, ErrorKind::InvalidScheme, Phase::Headers, Fault::Target);
                // What of the body came with the head is there; to a proxy that asks for us the
                // two may come apart.
                let body = error.into_response().unwrap().text().unwrap();
                assert!(body == "moved" || road == Road::Forward, "{location}: {body:?}");
            }
            let asked = world.origin(road).counts().requests;
            assert_eq!(asked, OTHER_SCHEMES.len() as u64);
        },
    );
    // As the URL to begin with it is a mistake of whoever wrote it.
    let session = recipe().build().unwrap();
    for url in OTHER_SCHEMES {
        let error = session.get(*url).send().unwrap_err();
        assert_is(&error, ErrorKind::InvalidScheme, Phase::Prepare, Fault::Local);
    }
}

#[test]
fn c77_what_a_location_holds_is_shown_without_its_secrets() {
    let locations = ["ftp://user:s3cret@h/x", "http://user:s3cret@256.1.1.1/", "http://u:s3cret@/"];
    let world = leading(&locations);
    let session = world.session(Road::Plain);
    for number in 0..locations.len() {
        let url = world.url(Road::Plain, &format!("/dir/{number}?q"));
        let error = session.get(url).send().unwrap_err();
        let shown = format!("{error} {error:?} {:?}", error.attempts());
        assert!(!shown.contains("s3cret") && !shown.contains("user"), "{shown}");
        assert!(error.message().contains("the Location"), "{error}");
    }
}

/// Hosts and ports that look like some until one looks closer.
const NO_TARGETS: &[&str] = &[
    "http://256.1.1.1/",
    "http://127.0.0.1:99999/",
    "http://127.0.0.1:65536/",
    "http://127.0.0.1:-1/",
    "http://127.0.0.1:8o/",
    "http://127.0.0.1:80:80/",
    "http://127.0.0.1:0/",
    "http://1.2.3.4.5/",
    "http://0x100000000/",
    "http://4294967296/",
    "http://xn--/",
    "http://xn--a/",
    "http://[::1/",
    "http://[::g]/",
    "http://[]/",
    "http://[::1]x/",
    "http://[v1.a]/",
    "http://a%00b/",
    "http://a%20b/",
    "http://a%2Fb/",
    "http://%zz/",
    "http://a b/",
    "http://a<b>/",
    "http://a^b/",
    "http://",
    "http://:80/",
    "http://?x",
    "http://user@/",
    "http://@/",
];

/// As a Location of the same scheme these name no host, and so the one that sends them.
fn is_reference(place: &str) -> bool {
    matches!(place, "http://" | "http://?x")
}

#[test]
fn c78_a_place_that_is_none_is_an_invalid_url() {
    each(Road::EVERY, World::hostile, |world, road| {
        let session = world.session(road);
        for name in ["r-badip", "r-badport"] {
            let error = session.get(world.url(road, &format!("/b/{name}"))).send().unwrap_err();
            assert_is(&error, ErrorKind::InvalidUrl, Phase::Headers, Fault::Target);
            assert_eq!(error.response().unwrap().status(), 302);
            // The session lives on, and so does the connection.
            let response = session.get(world.url(road, "/b/ok")).send().unwrap();
            assert_eq!((response.status(), response.connection().reused), (200, true), "{name}");
        }
        assert_eq!(world.origin(road).counts().requests, 4);
    });
}

#[test]
fn c78_as_a_location_and_as_the_url_to_begin_with() {
    let world = leading(NO_TARGETS);
    let names = Arc::new(NoNames::default());
    let session = world.recipe(Road::Plain).resolver(names.clone()).build().unwrap();
    for (number, place) in NO_TARGETS.iter().enumerate() {
        let error = session.get(*place).send().unwrap_err();
        assert_is(&error, ErrorKind::InvalidUrl, Phase::Prepare, Fault::Local);
        if is_reference(place) {
            continue;
        }
        let url = world.url(Road::Plain, &format!("/dir/{number}?q"));
        let error = match session.get(url).send() {
            Ok(response) => panic!("{place} led to {}", response.url()),
            Err(error) => error,
        };
        assert_is(&error, ErrorKind::InvalidUrl, Phase::Headers, Fault::Target);
    }
    assert_eq!(names.asked(), [""; 0], "nobody was asked for such a name");
}

#[test]
fn c78_no_worker_is_lost_to_them() {
    let world = leading(NO_TARGETS);
    let pool = WorkerPool::builder(world.recipe(Road::Plain)).workers(2).build().unwrap();
    let mut urls = Vec::new();
    for round in 0..3 {
        for (number, place) in NO_TARGETS.iter().enumerate() {
            urls.push((*place).to_owned());
            if !is_reference(place) {
                urls.push(world.url(Road::Plain, &format!("/dir/{number}?q")));
            }
            urls.push(world.url(Road::Plain, &format!("/page/{round}/{number}")));
        }
    }
    let (mut pages, mut failed) = (0, 0);
    for done in pool.run(urls.iter().map(String::as_str)) {
        match done.result {
            Ok(response) => {
                assert_eq!(response.status(), 200);
                pages += 1;
            }
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::InvalidUrl, "{error}");
                failed += 1;
            }
        }
    }
    assert_eq!((pages, pages + failed), (3 * NO_TARGETS.len(), urls.len()));
    assert_eq!(pool.stop_reason(), None);
}
