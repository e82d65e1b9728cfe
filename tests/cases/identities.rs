//! One identity, one world: what a server can tie together, and what is kept of many identities.

use crate::roads::{ca, recipe};
use http::Method;
use longhaul::lab::{HttpProxy, Origin, Received, Reply};
use longhaul::message::{Headers, Verify};
use longhaul::proxy::{Identity, Route};
use longhaul::transport::{AttemptLimits, Engine, EngineConfig, Outgoing, Transport};
use longhaul::{ProxyMap, ProxyPool, ProxyUrl, SessionBuilder, secs};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// A site that knows its visitors by a cookie, and gives each connection one page.
fn site() -> Origin {
    Origin::builder()
        .handler(|request| {
            let cookie = format!("visitor={}; Path=/", request.connection);
            let reply = Reply::ok("page").close();
            if request.header("Cookie").is_none() {
                reply.header("Set-Cookie", cookie)
            } else {
                reply
            }
        })
        .tls(ca())
        .start()
        .unwrap()
}

fn trusting(recipe: SessionBuilder) -> (SessionBuilder, tempfile::NamedTempFile) {
    let root = tempfile::NamedTempFile::new().unwrap();
    ca().write_pem(root.path()).unwrap();
    (recipe.extra_roots(root.path()), root)
}

#[test]
fn between_two_proxies_nothing_is_carried_over_and_within_one_both_are() {
    let site = site();
    let exit = |last: u8| {
        HttpProxy::builder()
            .elsewhere(site.address())
            .exits([[127, 0, 0, last].into()])
            .start()
            .unwrap()
    };
    let (two, three) = (exit(2), exit(3));
    let list = format!("{}\n{}", two.url(), three.url());
    let (recipe, _root) = trusting(recipe().proxies(ProxyPool::parse(&list).unwrap()));
    let session = recipe.build().unwrap();
    for _ in 0..6 {
        session.get("https://site.test/").send().unwrap();
    }
    // What the server can tie together, by exit.
    let mut seen: BTreeMap<String, Vec<(Option<String>, bool)>> = BTreeMap::new();
    for request in site.log() {
        let facts = (request.header("Cookie").map(str::to_owned), request.resumed);
        seen.entry(request.peer.ip().to_string()).or_default().push(facts);
    }
    assert_eq!(seen.len(), 2);
    let mut cookies = BTreeSet::new();
    for (exit, visits) in seen {
        let [first, second, third] = &visits[..] else { panic!("{exit}: {visits:?}") };
        assert_eq!(*first, (None, false), "{exit}: a stranger");
        assert!(second.0.is_some() && second.1, "{exit}: known by cookie and ticket");
        assert_eq!(second, third, "{exit}");
        cookies.insert(second.0.clone());
    }
    assert_eq!(cookies.len(), 2, "two visitors");
}

#[test]
fn a_retry_through_another_proxy_is_another_visitor() {
    // The first exit is refused after it was given a cookie and a ticket.
    let site = Origin::builder()
        .handler(|request: &Received| match request.peer.ip().to_string().as_str() {
            "127.0.0.2" if request.path == "/again" => Reply::new(503).close(),
            _ => Reply::ok("page").header("Set-Cookie", "known=1").close(),
        })
        .tls(ca())
        .start()
        .unwrap();
    let exit = |last: u8| {
        HttpProxy::builder()
            .elsewhere(site.address())
            .exits([[127, 0, 0, last].into()])
            .start()
            .unwrap()
    };
    let (two, three) = (exit(2), exit(3));
    let list = format!("{}\n{}", two.url(), three.url());
    let pool = ProxyPool::parse(&list).unwrap().rotation(longhaul::proxy::Rotation::Retry);
    let (recipe, _root) = trusting(recipe().proxies(pool));
    let session = recipe
        .clock(Arc::new(longhaul::time::SimClock::default()))
        .retry(longhaul::Retry::long_run())
        .build()
        .unwrap();
    session.get("https://site.test/").send().unwrap();
    let response = session.get("https://site.test/again").send().unwrap();
    assert_eq!((response.status(), response.attempts().len()), (200, 2));
    let seen: Vec<_> = site
        .log()
        .iter()
        .map(|request| {
            let last = request.peer.ip().to_string().pop().unwrap();
            (last, request.header("Cookie").is_some(), request.resumed)
        })
        .collect();
    assert_eq!(seen, [('2', false, false), ('2', true, true), ('3', false, false)]);
}

#[test]
fn users_of_one_gateway_are_strangers_to_each_other() {
    let site = site();
    let gateway = HttpProxy::builder().elsewhere(site.address()).start().unwrap();
    let list: String =
        (0..3).map(|user| format!("http://user-{user}:p@{}\n", gateway.address())).collect();
    let (recipe, _root) = trusting(recipe().proxies(ProxyPool::parse(&list).unwrap()));
    let session = recipe.build().unwrap();
    for _ in 0..6 {
        session.get("https://site.test/").send().unwrap();
    }
    let known: Vec<_> =
        site.log().iter().map(|seen| (seen.header("Cookie").is_some(), seen.resumed)).collect();
    assert_eq!(known, [[(false, false); 3], [(true, true); 3]].concat());
}

#[test]
fn direct_and_proxied_and_sockets_are_kept_apart() {
    let site = Origin::builder().start().unwrap();
    let proxy = HttpProxy::builder().elsewhere(site.address()).start().unwrap();
    let session = recipe().build().unwrap();
    let through = ProxyMap::all(proxy.url().parse().unwrap());
    for _ in 0..2 {
        session.get(site.url("/")).send().unwrap();
        session.get(site.url("/")).proxies(through.clone()).send().unwrap();
    }
    assert_eq!((site.counts().accepted, proxy.counts().accepted), (2, 1));
}

#[test]
fn tickets_of_as_many_servers_as_a_worker_visits_in_turn() {
    let site = Origin::builder().handler(|_| Reply::ok("x").close()).tls(ca()).start().unwrap();
    let proxy = HttpProxy::builder().elsewhere(site.address()).start().unwrap();
    let (recipe, _root) = trusting(recipe().proxies(proxy.url().parse::<ProxyUrl>().unwrap()));
    let session = recipe.build().unwrap();
    for _ in 0..2 {
        for host in 0..30 {
            session.get(format!("https://{host}.test/")).send().unwrap();
        }
    }
    let resumed: Vec<_> = site.log().iter().map(|request| request.resumed).collect();
    assert_eq!(resumed, [[false; 30], [true; 30]].concat());
}

#[test]
fn what_is_kept_of_many_identities_is_bounded() {
    // The counters of an engine, over more identities than any of its stores holds.
    let site = Origin::builder().tls(ca()).keep(0).start().unwrap();
    let gateway = HttpProxy::builder().elsewhere(site.address()).keep(0).start().unwrap();
    let mut config = EngineConfig::default();
    config.tls.verify = Verify::Off;
    let mut engine = Engine::new(&config).unwrap();
    let limits =
        AttemptLimits { connect: Some(secs(20.0)), read: Some(secs(20.0)), deadline: None };
    let (method, headers) = (Method::GET, Headers::new());
    let mut most = (0, 0, 0);
    for number in 0..300 {
        let url = format!("http://user-{number}:p@{}", gateway.address());
        let route = Route::through(Arc::new(url.parse().unwrap()));
        for target in ["https://site.test/", "http://site.test:443/"] {
            let url = target.parse().unwrap();
            let outgoing = Outgoing::new(&method, &url, &headers);
            if let Ok(incoming) = engine.attempt(outgoing, &route, &limits) {
                incoming.drain(1 << 16, None);
            }
        }
        let kept = engine.kept();
        most =
            (most.0.max(kept.connections), most.1.max(kept.hosts), most.2.max(kept.tls_identities));
        assert!(config.cutter.live_sockets() <= 10);
    }
    assert!(most.0 <= 10 && most.1 <= 10 && most.2 <= 64, "{most:?}");
    // What is forgotten on demand is gone at once.
    engine
        .forget(Identity::of(&format!("http://user-299:p@{}", gateway.address()).parse().unwrap()));
    assert!(engine.kept().tls_identities < most.2);
}
