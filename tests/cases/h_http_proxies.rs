//! Section H: what is said to HTTP proxies, and what they say.

use crate::roads::{NAME, NoNames, Road, World, assert_is, ca, each, recipe, until};
use http::Method;
use longhaul::batch::{Batch, RecordWriter, Source};
use longhaul::error::{Error, ErrorKind, Fault, Phase};
use longhaul::lab::{ClosedPort, HttpProxy, Origin, Received, Reply, Script, hostile};
use longhaul::time::SimClock;
use longhaul::{ProxyPool, ProxyUrl, Retry, Session, SessionBuilder, secs};
use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

/// An address that nobody of these tests dials.
const NOWHERE: SocketAddr = SocketAddr::new(IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 9);

fn url_of(proxy: &HttpProxy) -> ProxyUrl {
    proxy.url().parse().unwrap()
}

/// A recipe through this proxy, with nothing to keep it from being asked again and again.
fn through(proxy: &HttpProxy) -> (SessionBuilder, tempfile::NamedTempFile) {
    let root = tempfile::NamedTempFile::new().unwrap();
    ca().write_pem(root.path()).unwrap();
    (recipe().extra_roots(root.path()).proxies(url_of(proxy)), root)
}

/// A proxy that does this with every CONNECT, in the clear or behind TLS.
fn refusing(script: Script, tls: bool) -> HttpProxy {
    let proxy = HttpProxy::builder().elsewhere(NOWHERE).handler(move |_| Some(script.clone()));
    if tls { proxy.tls(ca()) } else { proxy }.start().unwrap()
}

/// The error of an https target behind a proxy that does this.
fn refusal(script: &Script, tls: bool) -> Error {
    let proxy = refusing(script.clone(), tls);
    let (recipe, _root) = through(&proxy);
    recipe.build().unwrap().get("https://target.test/").send().unwrap_err()
}

fn fields(head: &Received) -> Vec<&str> {
    head.headers.iter().map(|(name, _)| name.as_str()).collect()
}

#[test]
fn c110_http_targets_are_asked_for_in_absolute_form() {
    let origin = Origin::builder().handler(|request| Reply::ok(&request.path)).start().unwrap();
    for tls in [false, true] {
        // As squid does it by default: no tunnel to port 80.
        let builder = HttpProxy::builder().credentials("user", "pass").elsewhere(origin.address());
        let builder = builder.handler(|request: &Received| {
            (request.method == "CONNECT").then(|| hostile::http_proxy_script("p403").unwrap())
        });
        let proxy = if tls { builder.tls(ca()) } else { builder }.start().unwrap();
        let (recipe, _root) = through(&proxy);
        let url = url_of(&proxy).with_credentials("user", "pass");
        let names = Arc::new(NoNames::default());
        let session = recipe.proxies(url).resolver(names.clone()).build().unwrap();
        let targets = [
            ("http://origin.test/path", "http://origin.test/path", "origin.test"),
            ("http://Origin.test:80/?q=1#f", "http://origin.test/?q=1", "origin.test"),
            ("http://other.test:8080", "http://other.test:8080/", "other.test:8080"),
            ("http://me:secret@third.test/x", "http://third.test/x", "third.test"),
            ("http://[2001:db8::1]:81/", "http://[2001:db8::1]:81/", "[2001:db8::1]:81"),
        ];
        for (target, _, _) in &targets {
            assert_eq!(session.get(*target).send().unwrap().status(), 200);
        }
        let seen = proxy.log();
        assert_eq!(seen.len(), targets.len());
        for (request, (_, target, host)) in seen.iter().zip(&targets) {
            assert_eq!((request.method.as_str(), request.target.as_str()), ("GET", *target));
            assert_eq!(request.headers_named("Host").collect::<Vec<_>>(), [*host]);
            assert_eq!(request.header("Proxy-Authorization"), Some("Basic dXNlcjpwYXNz"));
        }
        assert_eq!(proxy.counts().accepted, 1, "one connection for several origins");
        assert!(names.asked().is_empty(), "{:?}", names.asked());
        // The userinfo of the URL is for its target alone.
        let authorized: Vec<_> =
            seen.iter().map(|request| request.header("Authorization").is_some()).collect();
        assert_eq!(authorized, [false, false, false, true, false]);
    }
    assert!(origin.log().iter().all(|request| request.header("Proxy-Authorization").is_none()));
}

#[test]
fn c110_methods_bodies_and_failures_of_a_forwarded_request() {
    let origin = Origin::builder()
        .handler(|request| match request.path.as_str() {
            "/torn" => Script::send("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc").fin(),
            _ => Reply::ok(&*request.body).into(),
        })
        .start()
        .unwrap();
    let proxy = HttpProxy::builder().elsewhere(origin.address()).start().unwrap();
    let session = through(&proxy).0.build().unwrap();
    for method in [Method::GET, Method::POST, Method::PUT, Method::DELETE, Method::HEAD] {
        let url = "http://a.test/echo";
        let response = session.request(method.clone(), url).body("12345").send().unwrap();
        let wanted = if method == Method::HEAD { "" } else { "12345" };
        assert_eq!(response.text().unwrap(), wanted, "{method}");
    }
    assert_eq!(proxy.counts().accepted, 1);
    let error = session.get("http://a.test/torn").send().unwrap_err();
    assert_is(&error, ErrorKind::IncompleteBody, Phase::Body, Fault::Target);
    assert_eq!(error.received_bytes(), Some(3));
}

#[test]
fn c110_connect_for_everything_where_it_is_wanted() {
    let world = World::new(Origin::builder().handler(|request| Reply::ok(&request.target)));
    let names = Arc::new(NoNames::default());
    let session = world.recipe(Road::Tunnel).resolver(names.clone()).build().unwrap();
    for _ in 0..3 {
        let response = session.get(world.url(Road::Tunnel, "/x?y=1")).send().unwrap();
        assert_eq!(response.text().unwrap(), "/x?y=1", "origin form inside of the tunnel");
    }
    let [connect] = &world.proxy.log()[..] else { panic!("one tunnel") };
    assert_eq!((connect.method.as_str(), connect.target.as_str()), ("CONNECT", "origin.test:80"));
    assert_eq!(world.proxy.proxy_counts().forwards, 0);
    assert!(names.asked().is_empty());
}

#[test]
fn c111_a_refused_tunnel_keeps_status_fields_and_the_start_of_its_body() {
    for (name, code, kind, body, wait) in [
        ("p407", 407, ErrorKind::ProxyAuth, "nope".to_owned(), None),
        ("p407big", 407, ErrorKind::ProxyAuth, "n".repeat(1024), None),
        ("p403", 403, ErrorKind::ProxyRefused, String::new(), None),
        ("p429", 429, ErrorKind::ProxyRefused, String::new(), Some(3.0)),
        ("p502", 502, ErrorKind::ProxyRefused, "bad".to_owned(), None),
        ("p503", 503, ErrorKind::ProxyRefused, String::new(), Some(3.0)),
        ("p504", 504, ErrorKind::ProxyRefused, String::new(), None),
        ("p302", 302, ErrorKind::ProxyRefused, String::new(), None),
    ] {
        for tls in [false, true] {
            let script = hostile::http_proxy_script(name).unwrap();
            let error = refusal(&script, tls);
            assert_is(&error, kind, Phase::Proxy, Fault::Proxy);
            assert_eq!(error.requests_name(), "ProxyError", "{name}");
            assert!(error.is_unsent() && error.response().is_none(), "{name}");
            let reply = error.proxy_reply().unwrap();
            assert_eq!((reply.code, reply.socks), (code, false), "{name}");
            assert_eq!(reply.body, body.as_bytes(), "{name}");
            assert_eq!(error.retry_after(), wait.map(secs), "{name}");
            match name {
                "p502" => assert_eq!(reply.headers["x-err"], "exit-node"),
                "p407" => assert_eq!(reply.reason, "Proxy Authentication Required"),
                "p302" => assert_eq!(reply.headers["location"], "http://127.0.0.1/login"),
                _ => {}
            }
            assert!(error.to_string().contains(&code.to_string()), "{error}");
        }
    }
}

#[test]
fn c111_every_status_but_2xx_and_1xx_is_a_refusal() {
    for status in
        [200, 201, 204, 299, 300, 301, 304, 400, 401, 404, 405, 408, 451, 500, 501, 511, 599, 999]
    {
        let line = format!("HTTP/1.1 {status} Somehow\r\nContent-Length: 0\r\n\r\n");
        let error = refusal(&Script::send(line).fin(), false);
        if (200..300).contains(&status) {
            // The tunnel is open, and leads to a proxy that has not made it.
            assert_eq!(error.phase(), Phase::Tls, "{status}");
            continue;
        }
        assert_eq!((error.phase(), error.fault()), (Phase::Proxy, Fault::Proxy), "{status}");
        assert_eq!(error.proxy_reply().unwrap().code, status);
        let refused = [ErrorKind::ProxyRefused, ErrorKind::ProxyAuth];
        assert!(refused.contains(&error.kind()), "{status}: {error}");
    }
}

#[test]
fn c111_what_a_refusal_means_for_the_proxy() {
    for (name, state, bad) in [
        ("p429", "cooling", 0),
        ("p503", "cooling", 0),
        ("p403", "unchecked", 0),
        ("p502", "unchecked", 1),
        ("p504", "unchecked", 1),
        ("p302", "unchecked", 1),
        ("pfin", "unchecked", 1),
    ] {
        let world = World::new(Origin::builder().handler(|_| Reply::ok("page")));
        let first = refusing(hostile::http_proxy_script(name).unwrap(), false);
        let list = format!("{}\n{}\n", first.url(), world.proxy.url());
        let clock = Arc::new(SimClock::default());
        let recipe = world
            .recipe(Road::TlsTunnel)
            .proxies(ProxyPool::parse(&list).unwrap())
            .clock(clock.clone())
            .retry(Retry::long_run())
            .host_cooldown(true);
        let session = recipe.build().unwrap();
        let response = session.get(world.url(Road::TlsTunnel, "/")).send().unwrap();
        assert_eq!(response.text().unwrap(), "page", "{name}: through the other one");
        assert_eq!(response.attempts().len(), 2, "{name}");
        let stats = recipe.proxy_stats();
        assert_eq!((stats[0].state, stats[0].bad), (state, bad), "{name}: {stats:?}");
        assert_eq!((stats[1].state, stats[1].good), ("good", 1), "{name}");
        if state == "cooling" {
            // Left alone for as long as it asked, and then tried again.
            for _ in 0..4 {
                session.get(world.url(Road::TlsTunnel, "/")).send().unwrap();
            }
            assert_eq!(first.counts().requests, 1, "{name}");
            clock.advance(secs(60.0));
            for _ in 0..2 {
                session.get(world.url(Road::TlsTunnel, "/")).send().unwrap();
            }
            assert_eq!(first.counts().requests, 2, "{name}");
        }
    }
}

#[test]
fn c111_a_407_is_one_event_wherever_it_shows_and_never_retried() {
    let origin = Origin::builder().start().unwrap();
    let builder = HttpProxy::builder().credentials("user", "right").elsewhere(origin.address());
    for tls in [false, true] {
        let builder = builder.clone();
        let proxy = if tls { builder.tls(ca()) } else { builder }.start().unwrap();
        let (recipe, _root) = through(&proxy);
        let wrong = url_of(&proxy).with_credentials("user", "s3cret");
        let session = recipe.proxies(wrong).retry(Retry::from_total(5)).build().unwrap();
        for (target, phase) in
            [("http://a.test/", Phase::Headers), ("https://a.test/", Phase::Proxy)]
        {
            let error = session.get(target).send().unwrap_err();
            assert_is(&error, ErrorKind::ProxyAuth, phase, Fault::Proxy);
            assert_eq!(error.attempts().len(), 1);
            let reply = error.proxy_reply().unwrap();
            assert_eq!(reply.headers["proxy-authenticate"], "Basic realm=\"lab\"");
            assert_eq!(&reply.body[..], b"credentials wanted\n");
            assert!(!format!("{error} {error:?}").contains("s3cret"));
        }
        assert_eq!(proxy.proxy_counts().unauthorized, 2);
    }
    assert_eq!(origin.counts().requests, 0);
}

#[test]
fn c111_a_407_out_of_a_tunnel_is_the_targets_word_and_stops_nothing() {
    let world = World::new(Origin::builder().handler(|request| match request.path.as_str() {
        "/407" => Reply::new(407).header("Proxy-Authenticate", "Basic realm=\"x\"").body("no"),
        _ => Reply::ok("page"),
    }));
    for road in [Road::Plain, Road::Tls, Road::Tunnel, Road::TlsTunnel, Road::TlsInTls, Road::Socks]
    {
        let session = world.session(road);
        let response = session.get(world.url(road, "/407")).send().unwrap();
        assert_eq!((response.status(), response.attempts().len()), (407, 1), "{road:?}");

        let urls = ["/407", "/a", "/407", "/b"].map(|path| world.url(road, path));
        let outcome = Batch::builder(world.recipe(road))
            .source(Source::urls(urls).repeats(true))
            .sink(RecordWriter::stream("nowhere", std::io::sink()))
            .workers(2)
            .build()
            .unwrap()
            .run()
            .unwrap();
        assert!(outcome.stopped.is_none(), "{road:?}: {:?}", outcome.stopped);
        assert_eq!((outcome.summary.ok, outcome.exit_code()), (2, 1), "{road:?}");
        assert_eq!(outcome.tally.classes()["permanent"], 2, "{road:?}");
    }
}

#[test]
fn c113_tunnels_open_however_the_reply_is_spelled() {
    let world = World::new(Origin::builder().handler(|_| Reply::ok("page")));
    let names = ["ok", "ok10", "p200cl", "p200cl5", "plf", "pnoreason", "psplit", "p100", "p2xx"];
    for tls in [false, true] {
        let mut builder = HttpProxy::builder().handler(hostile::http_proxy);
        for name in names {
            builder = builder
                .name(&format!("{name}.test:80"), world.plain.address())
                .name(&format!("{name}.test:443"), world.secure.address());
        }
        let proxy = if tls { builder.tls(ca()) } else { builder }.start().unwrap();
        let (recipe, _root) = through(&proxy);
        let pool = ProxyPool::new([url_of(&proxy)]).always_connect(true);
        let session = recipe.proxies(pool).build().unwrap();
        for name in names {
            for scheme in ["http", "https"] {
                for reused in [false, true] {
                    let response = session.get(format!("{scheme}://{name}.test/")).send().unwrap();
                    assert_eq!(response.text().unwrap(), "page", "{scheme} {name} {tls}");
                    assert_eq!(response.connection().reused, reused, "{scheme} {name}");
                }
            }
        }
    }
}

#[test]
fn c113_replies_in_two_pieces_wherever_they_break() {
    let world = World::new(Origin::builder().handler(|_| Reply::ok("page")));
    let reply = "\r\nHTTP/1.1 100 Continue\r\nX: y\r\n\r\nHTTP/1.1 200 Established\r\n\
                 Content-Length: 7\r\nno colon\r\nX-Fold: a\r\n b\r\n\r\n";
    let proxy = HttpProxy::builder()
        .elsewhere(world.secure.address())
        .handler(move |request: &Received| {
            let at: usize = request.host().trim_end_matches(".test").parse().unwrap();
            let (first, second) = reply.split_at(at);
            Some(Script::send(first).pause(secs(0.001)).then_send(second).tunnel())
        })
        .start()
        .unwrap();
    let session = through(&proxy).0.build().unwrap();
    for at in 0..=reply.len() {
        let response = session.get(format!("https://{at}.test/")).send();
        assert_eq!(response.unwrap().text().unwrap(), "page", "{at}");
    }
}

#[test]
fn c113_what_is_no_reply_of_http_is_the_proxys_fault() {
    for reply in [
        "HTTP/2 200 OK\r\n\r\n",
        "HTTP/1.1 20 OK\r\n\r\n",
        "ICY 200 OK\r\n\r\n",
        "200 OK\r\n\r\n",
        "HTTP/1.1 OK\r\n\r\n",
        "\x05\x00",
        "\x15\x03\x01",
        "HTTP/1.1 000 x\r\n\r\n",
    ] {
        let error = refusal(&Script::send(reply).fin(), false);
        assert_is(&error, ErrorKind::ProxyUnreachable, Phase::Proxy, Fault::Proxy);
    }
    // Broken off anywhere.
    let reply = "HTTP/1.1 200 Established\r\nX: y\r\n\r\n";
    for cut in 0..reply.len() {
        let error = refusal(&Script::send(&reply[..cut]).fin(), false);
        assert_is(&error, ErrorKind::ProxyUnreachable, Phase::Proxy, Fault::Proxy);
    }
    let error = refusal(&"HTTP/1.1 100 Continue\r\n\r\n".repeat(17).as_str().into(), false);
    assert_is(&error, ErrorKind::ProxyUnreachable, Phase::Proxy, Fault::Proxy);
}

#[test]
fn c115_a_proxy_that_misbehaves_is_blamed_within_the_connect_timeout() {
    for (name, kind) in [
        ("phang", ErrorKind::ConnectTimeout),
        ("pfin", ErrorKind::ProxyUnreachable),
        ("prst", ErrorKind::ProxyUnreachable),
        ("phtml", ErrorKind::ProxyUnreachable),
        ("pendless", ErrorKind::ProxyUnreachable),
    ] {
        for tls in [false, true] {
            let proxy = refusing(hostile::http_proxy_script(name).unwrap(), tls);
            let (recipe, _root) = through(&proxy);
            let connect = if name == "phang" { 0.5 } else { 20.0 };
            let session = recipe.timeout((secs(connect), secs(20.0))).build().unwrap();
            let error = session.get("https://target.test/").send().unwrap_err();
            assert_is(&error, kind, Phase::Proxy, Fault::Proxy);
            assert!(error.is_proxy() && error.is_unsent(), "{name}");
            if name == "pendless" {
                assert!(error.to_string().contains("longer than 64 KiB"), "{error}");
            }
        }
    }
    // Not there, and not speaking TLS though its URL says so.
    let closed = ClosedPort::new().unwrap();
    let gone: ProxyUrl = closed.address().to_string().parse().unwrap();
    let error = recipe().proxies(gone).build().unwrap().get("https://a.test/").send().unwrap_err();
    assert_is(&error, ErrorKind::ProxyUnreachable, Phase::Connect, Fault::Proxy);
    let plain = HttpProxy::builder().start().unwrap();
    let as_tls: ProxyUrl = format!("https://{}", plain.address()).parse().unwrap();
    for target in ["http://a.test/", "https://a.test/"] {
        // It waits for the end of a head that looks odd to it.
        let recipe = recipe().timeout((secs(0.3), secs(20.0)));
        let session = recipe.proxies(as_tls.clone()).build().unwrap();
        let error = session.get(target).send().unwrap_err();
        assert_is(&error, ErrorKind::ConnectTimeout, Phase::Tls, Fault::Proxy);
    }
}

#[test]
fn c115_the_same_failures_of_a_target_are_not_the_proxys() {
    each(&[Road::Tunnel, Road::TlsTunnel, Road::TlsInTls], World::hostile, |world, road| {
        for (name, kind, phase) in [
            ("fin", ErrorKind::Connection, Phase::Headers),
            ("rst", ErrorKind::Connection, Phase::Headers),
            ("html", ErrorKind::Protocol, Phase::Headers),
            ("cl-short-rst", ErrorKind::IncompleteBody, Phase::Body),
        ] {
            let session = world.session(road);
            let error = session.get(world.url(road, &format!("/b/{name}"))).send().unwrap_err();
            assert_is(&error, kind, phase, Fault::Target);
        }
    });
    // TLS that the target does not speak, through a proxy that did its part.
    let world = World::hostile();
    let proxy = HttpProxy::builder().elsewhere(world.plain.address()).start().unwrap();
    let session = through(&proxy).0.timeout((secs(0.3), secs(20.0))).build().unwrap();
    let error = session.get("https://a.test/").send().unwrap_err();
    assert_is(&error, ErrorKind::ConnectTimeout, Phase::Tls, Fault::Target);
}

#[test]
fn c117_connect_tells_the_proxy_where_to_and_who_asks() {
    let world = World::new(
        Origin::builder().handler(|_| Reply::ok("page").header("Set-Cookie", "session=s3cret")),
    );
    for (road, proxy) in [
        (Road::TlsTunnel, &world.proxy),
        (Road::TlsInTls, &world.secure_proxy),
        (Road::Tunnel, &world.proxy),
    ] {
        proxy.clear_log();
        let url = url_of(proxy).with_credentials("user", "pass");
        let pool = ProxyPool::new([url])
            .always_connect(true)
            .keep_alive(false)
            .proxy_header("X-Session", "7")
            .unwrap();
        let session = world
            .recipe(road)
            .proxies(pool)
            .header("User-Agent", "Mozilla/5.0 (session)")
            .header("Authorization", "Bearer s3cret")
            .header("Referer", "http://before.test/s3cret")
            .build()
            .unwrap();
        let target = world.url(road, "/s3cret?key=s3cret");
        session.get(&target).send().unwrap();
        session.get(&target).header("User-Agent", "Mozilla/5.0").send().unwrap();
        session.get(&target).remove_header("User-Agent").send().unwrap();
        let connects = proxy.log();
        let agents: Vec<_> = connects.iter().map(|head| head.header("User-Agent")).collect();
        assert_eq!(agents, [Some("Mozilla/5.0 (session)"), Some("Mozilla/5.0"), None]);
        for head in &connects {
            let port = if road.is_tls() { 443 } else { 80 };
            assert_eq!(head.target, format!("{NAME}:{port}"));
            let text = String::from_utf8_lossy(&head.head);
            assert!(!text.contains("s3cret"), "{text}");
            assert!(text.contains("\r\nProxy-Authorization: Basic dXNlcjpwYXNz\r\n"), "{text}");
        }
        assert_eq!(
            fields(&connects[0]),
            ["Host", "User-Agent", "Proxy-Authorization", "X-Session"]
        );
        // And the target is told nothing of the proxy.
        for seen in world.origin(road).log() {
            assert_eq!(seen.header("Proxy-Authorization"), None);
            assert_eq!(seen.header("X-Session"), None);
        }
    }
}

#[test]
fn c117_a_field_for_a_proxy_that_a_user_sets_reaches_no_origin() {
    let world = World::new(Origin::builder());
    for road in Road::ALL {
        let session = world.recipe(*road).header("Proxy-Authorization", "Basic eA==").build();
        session.unwrap().get(world.url(*road, "/")).send().unwrap();
        let seen = world.origin(*road).log().pop().unwrap();
        assert_eq!(seen.header("Proxy-Authorization"), None, "{road:?}");
    }
}

/// A gateway with one exit for each connection, and the exits that an origin has seen.
fn gateway(origin: &Origin) -> HttpProxy {
    let exits = (2..=41).map(|last| IpAddr::from([127, 0, 0, last]));
    HttpProxy::builder().elsewhere(origin.address()).exits(exits).start().unwrap()
}

fn exits(origin: &Origin) -> BTreeSet<IpAddr> {
    origin.log().iter().map(|request| request.peer.ip()).collect()
}

#[test]
fn c118_per_request_twenty_exits_and_kept_alive_one() {
    for target in ["http://site.test/", "https://site.test/"] {
        for (keep_alive, wanted) in [(false, 20), (true, 1)] {
            let secure = target.starts_with("https");
            let origin = Origin::builder();
            let origin = if secure { origin.tls(ca()) } else { origin }.start().unwrap();
            let gateway = gateway(&origin);
            let pool = ProxyPool::new([url_of(&gateway)]).keep_alive(keep_alive);
            let (recipe, _root) = through(&gateway);
            let session = recipe.proxies(pool).build().unwrap();
            for _ in 0..20 {
                session.get(target).send().unwrap();
            }
            assert_eq!(exits(&origin).len(), wanted, "{target} {keep_alive}");
            assert_eq!(gateway.counts().accepted, wanted as u64, "{target}");
        }
    }
}

#[test]
fn c118_a_retry_after_a_ban_leaves_by_another_exit() {
    for (fresh, wanted) in [(true, 200), (false, 503)] {
        // The first exit is banned.
        let origin = Origin::builder()
            .handler(|request| match request.peer.ip().to_string().as_str() {
                "127.0.0.2" if request.path == "/page" => Reply::new(503),
                _ => Reply::ok("page"),
            })
            .tls(ca())
            .start()
            .unwrap();
        let gateway = gateway(&origin);
        let pool = ProxyPool::new([url_of(&gateway)]).fresh_exit(fresh);
        let (recipe, _root) = through(&gateway);
        let session = recipe
            .proxies(pool)
            .clock(Arc::new(SimClock::default()))
            .retry(Retry::long_run().total(1u32))
            .build()
            .unwrap();
        session.get("https://site.test/").send().unwrap();
        let response = session.get("https://site.test/page").send().unwrap();
        assert_eq!(response.status(), wanted, "fresh_exit {fresh}");
        let reused: Vec<_> = response.attempts().iter().map(|attempt| attempt.reused).collect();
        assert_eq!(reused, [true, !fresh]);
        // The tunnel to the banned exit is not kept beside the new one.
        until(|| gateway.counts().open == 1);
    }
}

#[test]
fn c119_a_hundred_failures_leave_no_socket_and_no_lease_behind() {
    let world = World::new(Origin::builder().handler(|_| Reply::ok("page")));
    for (what, script) in [
        ("refused", hostile::http_proxy_script("p502").unwrap()),
        ("no TLS", Script::send("HTTP/1.1 200 OK\r\n\r\nthis is no TLS at all, is it\r\n").fin()),
        ("reset", hostile::http_proxy_script("prst").unwrap()),
        ("407", hostile::http_proxy_script("p407").unwrap()),
        ("html", hostile::http_proxy_script("phtml").unwrap()),
    ] {
        let secure = world.secure.address();
        let proxy = HttpProxy::builder()
            .elsewhere(secure)
            .handler(move |request: &Received| {
                (request.host() == "bad.test").then(|| script.clone())
            })
            .start()
            .unwrap();
        // A map has no health that would keep failures away from the proxy.
        let (recipe, _root) = through(&proxy);
        let cutter = recipe.cutter();
        let session = recipe.build().unwrap();
        for _ in 0..100 {
            session.get("https://bad.test/").send().unwrap_err();
        }
        assert_eq!(cutter.live_sockets(), 0, "{what}");
        let response = session.get("https://good.test/").send().unwrap();
        assert_eq!(response.text().unwrap(), "page", "{what}");
        assert_eq!(cutter.live_sockets(), 1, "{what}");
        until(|| proxy.counts().open == 1);
    }
}

#[test]
fn c119_the_one_place_of_a_proxy_is_free_again_after_each_failure() {
    let world = World::new(Origin::builder().handler(|request| match request.path.as_str() {
        "/torn" => Script::send("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc").fin(),
        "/rst" => Script::new().rst(),
        _ => Reply::ok("page").into(),
    }));
    let pool = ProxyPool::new([url_of(&world.proxy)])
        .parallel_per_proxy(Some(1))
        .parallel_per_credential(Some(1));
    let recipe = world.recipe(Road::TlsTunnel).proxies(pool);
    let session: Session = recipe.build().unwrap();
    for number in 0..100 {
        let path = ["/torn", "/rst", "/"][number % 3];
        let result = session.get(world.url(Road::TlsTunnel, path)).send();
        assert_eq!(result.is_ok(), path == "/");
        assert_eq!(recipe.proxy_stats()[0].in_flight, 0);
    }
}
