//! User names that choose an exit, on sessions and workers against a gateway of the lab.
#![cfg(feature = "lab")]
#![allow(clippy::unwrap_used, reason = "helpers of tests are tests")]

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use longhaul::lab::{HttpProxy, Origin, Received, Reply};
use longhaul::proxy::SessionPer;
use longhaul::time::SimClock;
use longhaul::{ProxyPool, Retry, Session, SessionBuilder, WorkerPool, secs};
use std::collections::HashMap;
use std::sync::Arc;

/// The numbers under which the gateway was asked, in order.
fn numbers(gateway: &HttpProxy) -> Vec<u64> {
    let number = |request: &Received| {
        let basic = request.header("Proxy-Authorization")?.strip_prefix("Basic ")?.to_owned();
        let pair = String::from_utf8(STANDARD.decode(basic).ok()?).ok()?;
        pair.strip_prefix("anna-session-")?.strip_suffix(":secret")?.parse().ok()
    };
    gateway.log().iter().map(|request| number(request).unwrap()).collect()
}

fn recipe(
    gateway: &HttpProxy,
    per: SessionPer,
    adapt: impl Fn(ProxyPool) -> ProxyPool,
) -> SessionBuilder {
    let template = format!("{}:anna-session-{{n}}:secret", gateway.address());
    let pool = ProxyPool::parse(&template).unwrap().sessions(Some(per));
    Session::builder()
        .trust_env(false)
        .clock(Arc::new(SimClock::default()))
        .retry(Retry::long_run())
        .timeout((secs(5.0), secs(5.0)))
        .proxies(adapt(pool))
}

/// Answers 500 once on every path that ends so, redirects `/from` to `/to`, and sets a cookie.
fn target() -> Origin {
    let seen = std::sync::Mutex::new(HashMap::<String, u32>::new());
    Origin::builder()
        .handler(move |request| {
            let mut seen = seen.lock().unwrap();
            let times = seen.entry(request.path.clone()).or_default();
            *times += 1;
            match request.path.as_str() {
                path if path.ends_with("500-once") && *times == 1 => Reply::new(500),
                path if path.ends_with("429") => Reply::new(429).header("Retry-After", "50"),
                "/from" => Reply::redirect(302, "/to"),
                _ => Reply::ok("there").header("Set-Cookie", "seen=1; Path=/"),
            }
        })
        .start()
        .unwrap()
}

#[test]
fn a_retry_leaves_under_another_number_unless_it_is_told_to_stay() {
    for (per, fresh, wanted) in [
        (SessionPer::Worker, true, [1, 1, 2, 2]),
        (SessionPer::Worker, false, [1, 1, 1, 1]),
        (SessionPer::Url, true, [1, 2, 3, 4]),
        (SessionPer::Url, false, [1, 2, 2, 3]),
        (SessionPer::Request, true, [1, 2, 3, 4]),
    ] {
        let (gateway, target) = (HttpProxy::builder().start().unwrap(), target());
        let session = recipe(&gateway, per, |pool| pool.fresh_exit(fresh)).build().unwrap();
        for path in ["/a", "/500-once", "/b"] {
            assert_eq!(session.get(target.url(path)).send().unwrap().status(), 200);
        }
        assert_eq!(numbers(&gateway), wanted, "{per:?} {fresh}");
    }
}

#[test]
fn redirects_stay_under_the_number_they_began_with() {
    for per in [SessionPer::Worker, SessionPer::Url, SessionPer::Request] {
        let (gateway, target) = (HttpProxy::builder().start().unwrap(), target());
        let session = recipe(&gateway, per, |pool| pool).build().unwrap();
        session.get(target.url("/from")).send().unwrap();
        assert_eq!(numbers(&gateway), [1, 1], "{per:?}");
    }
}

#[test]
fn cookies_and_connections_belong_to_a_number() {
    for (per, cookies, connections) in
        [(SessionPer::Worker, 2, 1), (SessionPer::Url, 0, 3), (SessionPer::Request, 0, 3)]
    {
        let (gateway, target) = (HttpProxy::builder().start().unwrap(), target());
        let session = recipe(&gateway, per, |pool| pool).build().unwrap();
        for _ in 0..3 {
            session.get(target.url("/page")).send().unwrap();
        }
        let with_cookie = target.log().iter().filter(|r| r.header("cookie").is_some()).count();
        assert_eq!((with_cookie, gateway.counts().accepted), (cookies, connections), "{per:?}");
    }
}

#[test]
fn a_host_that_is_tired_of_one_number_is_asked_under_another() {
    let (gateway, target) = (HttpProxy::builder().start().unwrap(), target());
    let clock = Arc::new(SimClock::default());
    let session = recipe(&gateway, SessionPer::Worker, |pool| pool)
        .clock(clock.clone())
        .retry(Retry::none())
        .host_cooldown(true)
        .build()
        .unwrap();
    assert_eq!(session.get(target.url("/429")).send().unwrap().status(), 429);
    assert_eq!(session.get(target.url("/page")).send().unwrap().status(), 200);
    // Nobody waited for the 50 s, and the new number stays.
    session.get(target.url("/page")).send().unwrap();
    assert_eq!((numbers(&gateway), clock.elapsed()), (vec![1, 2, 2], secs(0.0)));
}

#[test]
fn numbers_are_given_out_once_over_all_workers() {
    for (per, most) in [(SessionPer::Worker, 4), (SessionPer::Url, 60)] {
        let (gateway, target) = (HttpProxy::builder().start().unwrap(), target());
        let recipe =
            recipe(&gateway, per, |pool| pool).clock(Arc::new(longhaul::time::SystemClock));
        let pool = WorkerPool::builder(recipe).workers(4).build().unwrap();
        let urls: Vec<String> = (0..60).map(|n| target.url(&format!("/{n}"))).collect();
        assert_eq!(pool.run(urls).filter(|done| done.result.is_ok()).count(), 60);
        let mut seen = numbers(&gateway);
        seen.sort_unstable();
        seen.dedup();
        let numbers: Vec<u64> = (1..=seen.len() as u64).collect();
        assert_eq!(seen, numbers, "{per:?}");
        assert!(if per == SessionPer::Url { seen.len() == most } else { seen.len() <= most });
    }
}

#[test]
fn without_a_word_about_sessions_the_place_is_sent_as_it_stands() {
    let (gateway, target) = (HttpProxy::builder().start().unwrap(), target());
    let session = recipe(&gateway, SessionPer::Url, |pool| pool.sessions(None)).build().unwrap();
    session.get(target.url("/")).send().unwrap();
    let sent = gateway.log()[0].header("Proxy-Authorization").unwrap().to_owned();
    assert_eq!(sent, format!("Basic {}", STANDARD.encode("anna-session-{n}:secret")));
}
