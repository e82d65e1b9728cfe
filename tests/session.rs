//! A session against servers of the lab. Waits pass on a simulated clock, so nothing sleeps.

#![cfg(feature = "lab")]
#![allow(clippy::unwrap_used, reason = "helpers of tests are tests")]

use longhaul::error::{Phase, WaitReason};
use longhaul::lab::{HttpProxy, Origin, Received, Reply, Script, hostile};
use longhaul::policy::{LongWait, Timeouts};
use longhaul::time::SimClock;
use longhaul::{ErrorKind, ProxyPool, Retry, Session, SessionBuilder, secs};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A recipe that does not look at the environment and whose waits cost nothing.
fn recipe() -> (SessionBuilder, Arc<SimClock>) {
    let clock = Arc::new(SimClock::default());
    let builder = Session::builder()
        .trust_env(false)
        .seed(1)
        .clock(clock.clone())
        .timeout((secs(5.0), secs(5.0)));
    (builder, clock)
}

/// An origin that answers the n-th request (from 0) by `answer(n)`.
fn numbered<S: Into<Script>>(
    answer: impl Fn(usize, &Received) -> S + Send + Sync + 'static,
) -> Origin {
    let count = AtomicUsize::new(0);
    Origin::builder()
        .handler(move |request| answer(count.fetch_add(1, Ordering::SeqCst), request))
        .start()
        .unwrap()
}

fn with_credentials(proxy: &HttpProxy, user: &str, password: &str) -> String {
    format!("http://{user}:{password}@{}", proxy.address())
}

fn long_run() -> Retry {
    Retry::long_run()
}

#[test]
fn a_page_comes_with_its_facts_and_connections_are_kept() {
    let origin = Origin::builder()
        .handler(|request| {
            Reply::ok(format!("page {}", request.path))
                .header("X-Twice", "a")
                .header("X-Twice", "b")
        })
        .start()
        .unwrap();
    let session = recipe().0.build().unwrap();
    for n in 0..3 {
        let response = session.get(origin.url(&format!("/{n}#top"))).send().unwrap();
        assert_eq!(response.status(), 200);
        assert_eq!(response.text().unwrap(), format!("page /{n}"));
        assert_eq!(response.url().fragment(), Some("top"));
        assert_eq!(response.headers().get_all("x-twice").iter().count(), 2);
        assert_eq!(response.connection().reused, n > 0);
        assert_eq!(response.attempts().len(), 1);
    }
    assert_eq!(origin.counts().accepted, 1);
    let seen = origin.log();
    assert_eq!(seen[0].header("accept"), Some("*/*"));
    assert!(seen[0].header("user-agent").unwrap().starts_with("longhaul/"));
}

#[test]
fn retry_after_sets_the_wait_and_nobody_sleeps() {
    let origin = numbered(|n, _| match n {
        0 => Reply::new(503).header("Retry-After", "2"),
        _ => Reply::ok("there"),
    });
    let (builder, clock) = recipe();
    let session = builder.retry(long_run()).build().unwrap();
    let response = session.get(origin.url("/")).send().unwrap();
    assert_eq!(response.text().unwrap(), "there");
    assert_eq!(clock.elapsed(), secs(2.0));
    let attempts = response.attempts();
    assert_eq!(attempts.len(), 2);
    assert_eq!(attempts[0].status, Some(503));
    assert_eq!(attempts[0].wait, Some((secs(2.0), WaitReason::RetryAfter)));
    assert!(attempts[1].reused, "the refused answer was drained, so its connection was kept");
}

#[test]
fn an_exhausted_retry_hands_back_the_last_response() {
    let origin = numbered(|_, _| Reply::new(503).body("why"));
    let (builder, clock) = recipe();
    let session = builder.retry(long_run()).build().unwrap();
    let response = session.get(origin.url("/")).send().unwrap();
    assert_eq!((response.status(), response.text().unwrap().as_str()), (503, "why"));
    // `status` allows three retries: 0.6 + 1.2 + 2.4 s.
    assert_eq!(response.attempts().len(), 4);
    assert_eq!(origin.counts().requests, 4);
    assert_eq!(clock.elapsed(), secs(4.2));
    assert_eq!(response.attempts()[3].note, Some("status is used up"));

    let error =
        session.get(origin.url("/")).retry(long_run().raise_on_status(true)).send().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::RetriesExhausted);
    assert_eq!(error.requests_name(), "RetryError");
    assert_eq!(error.attempts().len(), 4);
    assert_eq!(error.response().unwrap().text().unwrap(), "why");
}

#[test]
fn a_status_is_raised_whatever_becomes_of_its_body() {
    let torn = "HTTP/1.1 503 Busy\r\nContent-Length: 9\r\nX-By: lab\r\n\r\nbusy";
    let origin = Origin::builder().handler(move |_| Script::send(torn).fin()).start().unwrap();
    let session = recipe().0.build().unwrap();
    let retry = long_run().status(1).raise_on_status(true);
    let error = session.get(origin.url("/")).retry(retry).send().unwrap_err();
    // Read errors have a budget left, and this is none.
    assert_eq!(error.kind(), ErrorKind::RetriesExhausted, "{error}");
    assert_eq!(origin.counts().requests, 2);
    let response = error.response().unwrap();
    assert_eq!((response.status(), response.headers()["x-by"].as_bytes()), (503, &b"lab"[..]));
    assert!(response.body().is_empty());
}

#[test]
fn permanent_answers_are_not_retried() {
    for status in [400, 401, 403, 404, 410] {
        let origin = numbered(move |_, _| Reply::new(status));
        let session = recipe().0.retry(long_run()).build().unwrap();
        assert_eq!(session.get(origin.url("/")).send().unwrap().status(), status);
        assert_eq!(origin.counts().requests, 1, "{status}");
    }
}

#[test]
fn a_plain_session_does_not_retry() {
    let origin = numbered(|_, _| Reply::new(503).header("Retry-After", "1"));
    let (builder, clock) = recipe();
    let session = builder.build().unwrap();
    for _ in 0..2 {
        assert_eq!(session.get(origin.url("/")).send().unwrap().status(), 503);
    }
    assert_eq!(origin.counts().requests, 2);
    assert_eq!(clock.elapsed(), secs(0.0));
}

#[test]
fn a_truncated_body_is_a_read_error_within_the_attempt() {
    let origin = numbered(|n, _| match n {
        0 => hostile::origin_script("cl-short-fin", "").unwrap(),
        1 => hostile::origin_script("close-delim-rst", "").unwrap(),
        _ => Reply::ok("whole").into(),
    });
    let session = recipe().0.retry(long_run()).build().unwrap();
    let response = session.get(origin.url("/")).send().unwrap();
    assert_eq!(response.text().unwrap(), "whole");
    let kinds: Vec<_> =
        response.attempts().iter().map(|a| a.error.as_ref().map(|e| (e.kind, e.phase))).collect();
    let torn = Some((ErrorKind::IncompleteBody, Phase::Body));
    assert_eq!(kinds, [torn, torn, None]);
}

#[test]
fn a_post_is_never_sent_twice_but_an_unsent_one_is_tried_again() {
    let origin = numbered(|_, _| Script::new().rst());
    let session = recipe().0.retry(long_run()).build().unwrap();
    let error = session.post(origin.url("/")).body("x").send().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Connection);
    assert_eq!(origin.counts().requests, 1);

    let closed = longhaul::lab::ClosedPort::new().unwrap();
    let error = session.post(format!("http://{}/", closed.address())).body("x").send().unwrap_err();
    assert_eq!((error.kind(), error.phase()), (ErrorKind::Connection, Phase::Connect));
    // `connect` allows three retries, and nothing had been sent.
    assert_eq!(error.attempts().len(), 4);
    assert!(error.is_unsent());
}

#[test]
fn a_stale_connection_costs_nothing() {
    let origin = numbered(|n, _| match n {
        1 => Script::new().rst(),
        _ => Reply::ok("ok").into(),
    });
    // No retries at all: the resend is free of charge.
    let session = recipe().0.build().unwrap();
    session.get(origin.url("/a")).send().unwrap();
    let response = session.get(origin.url("/b")).send().unwrap();
    assert_eq!(response.status(), 200);
    let attempts = response.attempts();
    assert_eq!(attempts.len(), 2);
    assert!(attempts[0].reused && !attempts[0].resend && attempts[1].resend);
    assert_eq!(attempts[0].note, Some("the kept connection had died; sent again on a fresh one"));
}

#[test]
fn a_one_shot_body_is_never_resent() {
    let origin = numbered(|_, _| Reply::new(503).body("busy"));
    let session = recipe().0.retry(long_run()).build().unwrap();
    let body = longhaul::message::Body::reader(std::io::Cursor::new("once"), None);
    let response =
        session.request(http::Method::OPTIONS, origin.url("/")).body(body).send().unwrap();
    assert_eq!((response.status(), response.text().unwrap().as_str()), (503, "busy"));
    assert_eq!(origin.counts().requests, 1);
    assert_eq!(response.attempts()[0].note, Some("the body cannot be sent again"));
}

#[test]
fn redirects_keep_a_history_and_cookies_and_drop_the_body() {
    let origin = Origin::builder()
        .handler(|request| match request.path.as_str() {
            "/login" => Reply::redirect(302, "/a b").header("Set-Cookie", "id=1; Path=/"),
            "/a%20b" => Reply::redirect(301, "end#part"),
            _ => Reply::ok("end"),
        })
        .start()
        .unwrap();
    let session = recipe().0.build().unwrap();
    let response =
        session.post(origin.url("/login")).form([("user", "me")]).bearer("t").send().unwrap();
    assert_eq!(response.url().path(), "/end");
    assert_eq!(response.url().fragment(), Some("part"));
    let history: Vec<_> = response.history().iter().map(longhaul::Response::status).collect();
    assert_eq!(history, [302, 301]);
    let seen = origin.log();
    assert_eq!((&*seen[0].method, &seen[0].body[..]), ("POST", &b"user=me"[..]));
    for hop in &seen[1..] {
        assert_eq!(hop.method, "GET");
        assert_eq!(hop.header("cookie"), Some("id=1"));
        assert_eq!(hop.header("content-type"), None);
        assert_eq!(hop.header("authorization"), Some("Bearer t"), "the same origin");
        assert!(hop.body.is_empty());
    }
}

#[test]
fn what_the_retry_policy_names_does_not_leave_the_origin() {
    let other = numbered(|_, _| Reply::ok("there"));
    let target = other.url("/");
    let origin = numbered(move |n, _| match n {
        0 => Reply::redirect(302, "/here"),
        _ => Reply::redirect(302, &target),
    });
    let retry = Retry::none().remove_headers_on_redirect(vec!["x-token".to_owned()]);
    let session = recipe().0.retry(retry).build().unwrap();
    session.get(origin.url("/")).header("X-Token", "s3cret").header("X-Kept", "1").send().unwrap();
    for seen in origin.log() {
        assert_eq!(seen.header("x-token"), Some("s3cret"), "the same origin");
    }
    let seen = &other.log()[0];
    assert_eq!((seen.header("x-token"), seen.header("x-kept")), (None, Some("1")));
}

#[test]
fn endless_redirects_end_with_the_last_response() {
    let origin = numbered(|n, _| Reply::redirect(302, format!("/{n}")).body("moved"));
    let session = recipe().0.max_redirects(5).build().unwrap();
    let error = session.get(origin.url("/start")).send().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TooManyRedirects);
    assert_eq!(error.response().unwrap().status(), 302);
    assert_eq!(error.response().unwrap().text().unwrap(), "moved");
    assert_eq!(origin.counts().requests, 6);
    let response = session.get(origin.url("/start")).allow_redirects(false).send().unwrap();
    assert_eq!((response.status(), response.is_redirect()), (302, true));
}

#[test]
fn a_redirect_to_another_scheme_is_an_error_with_the_response() {
    for (location, kind) in [
        ("ftp://127.0.0.1/x", ErrorKind::InvalidScheme),
        ("mailto:a@example.com", ErrorKind::InvalidScheme),
        ("http://256.1.1.1/", ErrorKind::InvalidUrl),
    ] {
        let origin = numbered(move |_, _| Reply::redirect(302, location));
        let session = recipe().0.build().unwrap();
        let error = session.get(origin.url("/")).send().unwrap_err();
        assert_eq!(error.kind(), kind, "{location}");
        assert_eq!(error.response().unwrap().status(), 302);
    }
}

#[test]
fn the_deadline_covers_waits() {
    let origin = numbered(|_, _| Reply::new(503).header("Retry-After", "100").body("later"));
    let (builder, clock) = recipe();
    let session = builder
        .retry(long_run().long_wait(LongWait::Park(secs(600.0))))
        .deadline(secs(60.0))
        .build()
        .unwrap();
    let response = session.get(origin.url("/")).send().unwrap();
    assert_eq!((response.status(), response.text().unwrap().as_str()), (503, "later"));
    assert_eq!(response.attempts()[0].note, Some("the deadline leaves no room for the wait"));
    assert_eq!(clock.elapsed(), secs(0.0), "no wait is begun that would outlast the deadline");
}

#[test]
fn ceilings_are_errors_with_numbers() {
    let origin = numbered(|_, _| Reply::ok("x".repeat(5000)));
    let session = recipe().0.max_body_bytes(1000).build().unwrap();
    let error = session.get(origin.url("/")).send().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TooLarge);
    assert!(error.message().contains("1000"), "{error}");
    assert_eq!(
        session.get(origin.url("/")).max_body_bytes(5000).send().unwrap().body().len(),
        5000
    );
}

#[test]
fn codings_are_undone() {
    for name in ["gz", "gz-trail-garbage", "gz-upper", "gz-twice", "deflate-raw", "deflate-zlib"] {
        let origin = numbered(move |_, _| hostile::origin_script(name, "").unwrap());
        let session = recipe().0.build().unwrap();
        let response = session.get(origin.url("/")).send().unwrap();
        assert_eq!(
            response.text().unwrap(),
            "hello deflate"
                .replace("deflate", if name.starts_with("gz") { "gzip" } else { "deflate" }),
            "{name}"
        );
        assert!(response.wire_bytes() > 0, "{name}");
    }
    for name in ["gz-204", "gz-304", "gz-empty-body"] {
        let origin = numbered(move |_, _| hostile::origin_script(name, "").unwrap());
        let session = recipe().0.build().unwrap();
        assert_eq!(session.get(origin.url("/")).send().unwrap().body(), b"", "{name}");
    }
}

#[test]
fn a_streamed_body_is_read_by_the_caller() {
    let origin = numbered(|_, _| Reply::ok("one\ntwo\n").chunked(3));
    let session = recipe().0.build().unwrap();
    let response = session.get(origin.url("/")).stream(true).send().unwrap();
    let lines: Vec<_> = response.lines().map(Result::unwrap).collect();
    assert_eq!(lines, ["one", "two"]);
}

#[test]
fn head_has_no_body_and_follows_no_redirect() {
    let origin = numbered(|n, _| match n {
        0 => Reply::ok("body"),
        _ => Reply::redirect(302, "/else"),
    });
    let session = recipe().0.build().unwrap();
    let response = session.head(origin.url("/")).send().unwrap();
    assert_eq!((response.status(), response.body()), (200, &b""[..]));
    assert_eq!(response.headers()["content-length"], "4");
    assert_eq!(session.head(origin.url("/")).send().unwrap().status(), 302);
}

#[test]
fn one_identity_one_world() {
    let origin = Origin::builder()
        .handler(|_| Reply::ok("ok").header("Set-Cookie", "id=1; Path=/"))
        .start()
        .unwrap();
    let proxies = [HttpProxy::builder().start().unwrap(), HttpProxy::builder().start().unwrap()];
    let list = format!("{}\n{}\n", proxies[0].url(), proxies[1].url());
    let session = recipe().0.proxies(ProxyPool::parse(&list).unwrap()).build().unwrap();
    for _ in 0..4 {
        session.get(origin.url("/")).send().unwrap();
    }
    let cookies: Vec<_> =
        origin.log().iter().map(|seen| seen.header("cookie").map(str::to_owned)).collect();
    // Round robin: the first two visits are the first of each proxy.
    assert_eq!(cookies, [None, None, Some("id=1".into()), Some("id=1".into())]);
    for proxy in &proxies {
        assert_eq!(proxy.counts().accepted, 1);
        assert_eq!(proxy.log()[0].target, origin.url("/"), "absolute form");
    }
}

#[test]
fn a_retry_takes_another_proxy() {
    let origin = numbered(|n, _| if n < 2 { Reply::new(503) } else { Reply::ok("ok") });
    let proxies: Vec<_> = (0..3).map(|_| HttpProxy::builder().start().unwrap()).collect();
    let list: String = proxies.iter().map(|proxy| proxy.url() + "\n").collect();
    let pool = ProxyPool::parse(&list).unwrap();
    let session = recipe().0.proxies(pool).retry(long_run()).build().unwrap();
    let response = session.get(origin.url("/")).send().unwrap();
    let mut through: Vec<_> =
        response.attempts().iter().map(|attempt| attempt.proxy.clone().unwrap()).collect();
    assert_eq!(through.len(), 3);
    through.sort();
    through.dedup();
    assert_eq!(through.len(), 3, "each attempt through another");
}

#[test]
fn refused_credentials_end_it_at_once_and_show_no_secret() {
    let origin = numbered(|_, _| Reply::ok("ok"));
    let proxy = HttpProxy::builder().credentials("user", "right").start().unwrap();
    let wrong = with_credentials(&proxy, "user", "wr0ng-s3cret");
    let session =
        recipe().0.proxies(ProxyPool::parse(&wrong).unwrap()).retry(long_run()).build().unwrap();
    let error = session.get(origin.url("/")).send().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ProxyAuth);
    assert_eq!(error.proxy_reply().unwrap().code, 407);
    assert_eq!(error.attempts().len(), 1);
    assert_eq!(proxy.counts().requests, 1);
    assert_eq!(origin.counts().requests, 0);
    let shown = format!("{error} {error:?} {:?}", error.attempts());
    assert!(!shown.contains("s3cret") && !shown.contains("user"), "{shown}");
    // Retired: the next URL does not even ask, and tells why, since it may be heard of first.
    let first = error.message().to_owned();
    let error = session.get(origin.url("/")).send().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ProxyAuth);
    let wanted = format!("{first}; every proxy has refused its credentials");
    assert_eq!(error.message(), wanted);
    assert_eq!(proxy.counts().requests, 1);
}

#[test]
fn with_other_credentials_left_the_url_goes_on() {
    let origin = numbered(|_, _| Reply::ok("ok"));
    let closed = HttpProxy::builder().credentials("a", "other").start().unwrap();
    let open = HttpProxy::builder().credentials("b", "right").start().unwrap();
    let list = format!(
        "{}\n{}\n",
        with_credentials(&closed, "a", "wrong"),
        with_credentials(&open, "b", "right")
    );
    let session =
        recipe().0.proxies(ProxyPool::parse(&list).unwrap()).retry(long_run()).build().unwrap();
    for _ in 0..4 {
        let answer = session.get(origin.url("/")).send();
        assert!(answer.is_ok(), "{:#?}", answer.unwrap_err().attempts());
    }
    assert_eq!(closed.counts().requests, 1, "asked once, and never again");
}

#[test]
fn nothing_goes_direct_where_proxies_are_required() {
    let origin = numbered(|_, _| Reply::ok("ok"));
    let (builder, _) = recipe();
    let mut map = longhaul::ProxyMap::new();
    map.insert("https", "http://127.0.0.1:1").unwrap();
    let session = builder.proxies(map).proxies_required(true).build().unwrap();
    let error = session.get(origin.url("/")).send().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ProxyRequired);
    assert_eq!(origin.counts().requests, 0);
}

#[test]
fn all_proxies_dead_waits_within_the_deadline_and_then_fails() {
    let origin = numbered(|_, _| Reply::ok("ok"));
    let dead: Vec<_> = (0..3).map(|_| longhaul::lab::ClosedPort::new().unwrap()).collect();
    let list: String = dead.iter().map(|port| format!("http://{}\n", port.address())).collect();
    let (builder, clock) = recipe();
    let session = builder
        .proxies(ProxyPool::parse(&list).unwrap())
        .retry(long_run().total(100).connect(100))
        .deadline(secs(3600.0))
        .build()
        .unwrap();
    let error = session.get(origin.url("/")).send().unwrap_err();
    assert!(error.is_proxy(), "{error}");
    assert!(clock.elapsed() <= secs(3600.0));
    assert_eq!(origin.counts().requests, 0, "never direct");
}

#[test]
fn a_zero_timeout_and_a_bad_header_are_told_by_build() {
    let error = Session::builder().timeout((secs(0.0), secs(1.0))).build().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Config);
    assert!(error.message().contains("connect"), "{error}");
    let error = Session::builder().header("Bad Name", "x").build().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidHeader);
    assert_eq!(Timeouts::default().connect(), Some(secs(5.0)));
}

#[test]
fn bad_urls_are_errors_of_their_own() {
    let session = recipe().0.build().unwrap();
    for (url, kind) in [
        ("example.com/x", ErrorKind::MissingScheme),
        ("ftp://example.com/", ErrorKind::InvalidScheme),
        ("http://", ErrorKind::InvalidUrl),
        ("http://127.0.0.1:99999/", ErrorKind::InvalidUrl),
    ] {
        assert_eq!(session.get(url).send().unwrap_err().kind(), kind, "{url}");
    }
}

#[test]
fn threads_of_ones_own_get_a_session_each() {
    let origin = Origin::builder()
        .handler(|_| Reply::ok("ok").header("Set-Cookie", "id=1; Path=/"))
        .start()
        .unwrap();
    let (builder, _) = recipe();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            let (builder, origin) = (builder.clone(), &origin);
            scope.spawn(move || {
                for n in 0..2 {
                    let sent = builder
                        .local(|session| {
                            session.get(origin.url("/")).send().map(|r| r.connection().reused)
                        })
                        .unwrap()
                        .unwrap();
                    assert_eq!(sent, n > 0);
                }
            });
        }
    });
    let without = origin.log().iter().filter(|seen| seen.header("cookie").is_none()).count();
    assert_eq!(without, 4, "one jar per thread");
}
