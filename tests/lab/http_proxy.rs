use std::io::Write;
use std::net::{IpAddr, Ipv4Addr, Shutdown};

use longhaul::lab::{Ca, ClosedPort, HttpProxy, Origin, Reply, Script, Step, hostile};
use longhaul::secs;

use crate::raw::{SOON, client_config, connect, exchange, expect, tls, to_end, to_failure};

/// "user:pass" as Basic credentials.
const BASIC: &str = "Basic dXNlcjpwYXNz";

fn echo() -> Origin {
    Origin::builder()
        .handler(|request| {
            let exit = request.header("X-Exit").unwrap_or("none");
            let body = String::from_utf8_lossy(&request.body);
            Reply::ok(format!("{} {} {exit} {body}", request.method, request.target))
        })
        .start()
        .unwrap()
}

fn body(answer: &str) -> &str {
    answer.split_once("\r\n\r\n").unwrap().1
}

#[test]
fn an_absolute_target_is_forwarded_in_origin_form() {
    let origin = echo();
    let proxy = HttpProxy::builder()
        .name("shop.test", origin.address())
        .label("exit-a")
        .credentials("user", "pass")
        .start()
        .unwrap();
    let answer = exchange(
        proxy.address(),
        format!(
            "POST http://shop.test/a?b=c HTTP/1.1\r\nHost: shop.test\r\nX-One: 1\r\n\
             Proxy-Authorization: {BASIC}\r\nProxy-Connection: keep-alive\r\n\
             Transfer-Encoding: chunked\r\nConnection: close\r\n\r\n2\r\nhi\r\n0\r\n\r\n"
        ),
    );
    assert_eq!(body(&answer), "POST /a?b=c exit-a hi");
    let seen = &origin.log()[0];
    assert_eq!(
        String::from_utf8_lossy(&seen.head),
        "POST /a?b=c HTTP/1.1\r\nHost: shop.test\r\nX-One: 1\r\nX-Exit: exit-a\r\n\
         Content-Length: 2\r\n\r\n"
    );
    let logged = &proxy.log()[0];
    assert_eq!((logged.target.as_str(), logged.host()), ("http://shop.test/a?b=c", "shop.test"));
    assert_eq!(logged.header("proxy-authorization"), Some(BASIC));
    let counts = proxy.proxy_counts();
    assert_eq!((counts.forwards, counts.connects, counts.unauthorized), (1, 0, 0));
}

#[test]
fn both_sides_of_a_forwarding_proxy_keep_their_connections() {
    let origin = echo();
    let proxy = HttpProxy::builder().start().unwrap();
    let mut stream = connect(proxy.address());
    for path in ["/1", "/2", "/3"] {
        write!(stream, "GET {} HTTP/1.1\r\n\r\n", origin.url(path)).unwrap();
        expect(&mut stream, "HTTP/1.1 200 OK\r\nContent-Length: 12\r\n\r\n");
        expect(&mut stream, &format!("GET {path} none "));
    }
    assert_eq!(proxy.proxy_counts().dialed, 1);
    assert_eq!(origin.requests_per_connection().into_iter().collect::<Vec<_>>(), [(1, 3)]);
}

#[test]
fn a_target_that_closed_a_kept_connection_is_asked_again() {
    let origin = Origin::builder()
        .handler(|request| match request.request {
            1 => Script::from(Reply::ok("ok")),
            _ => Script::new().rst(),
        })
        .start()
        .unwrap();
    let proxy = HttpProxy::builder().start().unwrap();
    let mut stream = connect(proxy.address());
    for _ in 0..2 {
        write!(stream, "GET {} HTTP/1.1\r\n\r\n", origin.url("/")).unwrap();
        expect(&mut stream, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
    }
    assert_eq!(proxy.proxy_counts().dialed, 2);
    assert_eq!(origin.counts().requests, 3);
}

#[test]
fn failures_of_the_target_reach_the_client() {
    let origin =
        Origin::builder().on_head(hostile::early).handler(hostile::origin).start().unwrap();
    let proxy = HttpProxy::builder().start().unwrap();
    use std::io::ErrorKind::ConnectionReset;
    for (name, wanted, end) in [
        ("cl-short-fin", "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nabc", None),
        (
            "cl-short-rst",
            "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nabc",
            Some(ConnectionReset),
        ),
        ("close-delim-fin", "HTTP/1.1 200 OK\r\n\r\nabc", None),
        ("http09", "<html>old</html>", None),
        (
            "chunk-neg",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n-5\r\nhello\r\n0\r\n\r\n",
            None,
        ),
        (
            "103-then-200",
            "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n\
             HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok",
            None,
        ),
        (
            "rst",
            "HTTP/1.1 502 Bad Gateway\r\nX-Lab-Error: unreachable\r\nContent-Length: 27\r\n\r\n\
             127.0.0.1 is not reachable\n",
            None,
        ),
    ] {
        let mut stream = connect(proxy.address());
        let url = origin.url(&format!("/b/{name}"));
        write!(stream, "GET {url} HTTP/1.1\r\nConnection: close\r\n\r\n").unwrap();
        if name == "chunk-neg" {
            // The origin takes the connection for reusable; only the client's leaving ends it.
            expect(&mut stream, wanted);
            continue;
        }
        assert_eq!(to_failure(&mut stream), (wanted.to_owned(), end), "{name}");
    }
}

#[test]
fn a_client_that_leaves_takes_its_request_along() {
    let origin = Origin::builder().handler(hostile::origin).start().unwrap();
    let proxy = HttpProxy::builder().start().unwrap();
    for name in ["never-answer", "cl-hold"] {
        let mut stream = connect(proxy.address());
        write!(stream, "GET {} HTTP/1.1\r\n\r\n", origin.url(&format!("/b/{name}"))).unwrap();
    }
    assert!(origin.wait_for_requests(1, SOON));
    assert!(proxy.wait_until_idle(SOON));
    assert!(origin.wait_until_idle(SOON));
}

#[test]
fn without_the_right_credentials_nobody_gets_through() {
    let origin = echo();
    let proxy = HttpProxy::builder().credentials("user", "pass").start().unwrap();
    let mut stream = connect(proxy.address());
    let refusal = "HTTP/1.1 407 Proxy Authentication Required\r\n\
                   Proxy-Authenticate: Basic realm=\"lab\"\r\nContent-Length: 19\r\n\r\n\
                   credentials wanted\n";
    for line in ["", "Proxy-Authorization: Basic d3Jvbmc=\r\n", "Proxy-Authorization: x\r\n"] {
        write!(stream, "GET {} HTTP/1.1\r\n{line}\r\n", origin.url("/")).unwrap();
        expect(&mut stream, refusal);
        write!(stream, "CONNECT {} HTTP/1.1\r\n{line}\r\n", origin.address()).unwrap();
        expect(&mut stream, refusal);
    }
    write!(stream, "CONNECT {} HTTP/1.1\r\nproxy-authorization: {BASIC}\r\n\r\n", origin.address())
        .unwrap();
    expect(&mut stream, "HTTP/1.1 200 Connection established\r\n\r\n");
    let counts = proxy.proxy_counts();
    assert_eq!((counts.unauthorized, counts.connects, counts.dialed), (6, 4, 1));
}

#[test]
fn a_tunnel_passes_early_bytes_half_closes_and_large_bodies() {
    let origin = Origin::builder().handler(|request| Reply::ok(&request.body)).start().unwrap();
    let proxy = HttpProxy::builder().elsewhere(origin.address()).start().unwrap();
    let mut stream = connect(proxy.address());
    // The first request is sent with the CONNECT, before its answer.
    write!(
        stream,
        "CONNECT any.test:80 HTTP/1.1\r\n\r\nPOST / HTTP/1.1\r\nContent-Length: 2\r\n\r\nhi"
    )
    .unwrap();
    expect(
        &mut stream,
        "HTTP/1.1 200 Connection established\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi",
    );
    let large = vec![b'x'; 3_000_000];
    write!(stream, "POST / HTTP/1.1\r\nContent-Length: {}\r\n\r\n", large.len()).unwrap();
    stream.write_all(&large).unwrap();
    stream.shutdown(Shutdown::Write).unwrap();
    let answer = to_end(&mut stream);
    assert_eq!(body(&answer).len(), large.len());
    assert!(proxy.wait_until_idle(SOON));
    let heads: usize = [
        "POST / HTTP/1.1\r\nContent-Length: 2\r\n\r\nhi",
        "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi",
        "POST / HTTP/1.1\r\nContent-Length: 3000000\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 3000000\r\n\r\n",
    ]
    .iter()
    .map(|head| head.len())
    .sum();
    assert_eq!(proxy.proxy_counts().tunnelled_bytes, (heads + 2 * large.len()) as u64);
}

#[test]
fn a_reset_in_a_tunnel_is_a_reset_on_the_other_side() {
    let origin =
        Origin::builder().handler(|_| Script::send("x").pause(secs(0.02)).rst()).start().unwrap();
    let proxy = HttpProxy::builder().start().unwrap();
    let mut stream = connect(proxy.address());
    write!(stream, "CONNECT {} HTTP/1.1\r\n\r\nGET / HTTP/1.1\r\n\r\n", origin.address()).unwrap();
    expect(&mut stream, "HTTP/1.1 200 Connection established\r\n\r\nx");
    let end = to_failure(&mut stream);
    assert_eq!(end, (String::new(), Some(std::io::ErrorKind::ConnectionReset)));
}

#[test]
fn tls_to_the_target_and_to_the_proxy() {
    let ca = Ca::new().unwrap();
    let config = client_config(&ca);
    let origin =
        Origin::builder().handler(|_| Reply::ok("x".repeat(500_000))).tls(&ca).start().unwrap();
    for secure in [false, true] {
        let mut builder = HttpProxy::builder().name("shop.test:443", origin.address());
        if secure {
            builder = builder.tls(&ca);
        }
        let proxy = builder.start().unwrap();
        assert_eq!(proxy.url().starts_with("https://"), secure);
        let request = "CONNECT shop.test:443 HTTP/1.1\r\nHost: shop.test:443\r\n\r\n";
        let granted = "HTTP/1.1 200 Connection established\r\n\r\n";
        let get = "GET / HTTP/1.1\r\nHost: shop.test\r\nConnection: close\r\n\r\n";
        let answer = if secure {
            let mut outer = tls(&config, "proxy.test", connect(proxy.address()));
            outer.write_all(request.as_bytes()).unwrap();
            expect(&mut outer, granted);
            let mut inner = tls(&config, "shop.test", outer);
            inner.write_all(get.as_bytes()).unwrap();
            to_end(&mut inner)
        } else {
            let mut outer = connect(proxy.address());
            outer.write_all(request.as_bytes()).unwrap();
            expect(&mut outer, granted);
            let mut inner = tls(&config, "shop.test", outer);
            inner.write_all(get.as_bytes()).unwrap();
            to_end(&mut inner)
        };
        assert_eq!(body(&answer).len(), 500_000);
        assert_eq!(origin.log().last().unwrap().sni.as_deref(), Some("shop.test"));
        assert_eq!(proxy.log()[0].sni.as_deref(), secure.then_some("proxy.test"));
    }
}

#[test]
fn a_handler_decides_by_the_request_line() {
    let origin = echo();
    let proxy = HttpProxy::builder()
        .name("good.test", origin.address())
        .elsewhere(origin.address())
        .handler(|request| match request.host() {
            "good.test" => None,
            _ => hostile::http_proxy(request).or_else(|| Some(Script::from(Reply::new(403)))),
        })
        .start()
        .unwrap();
    let ask = |host: &str| {
        let mut stream = connect(proxy.address());
        write!(stream, "CONNECT {host}:80 HTTP/1.1\r\nConnection: close\r\n\r\n").unwrap();
        stream
    };
    for (host, wanted) in [
        ("p403.test", "HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n"),
        ("p429.test", "HTTP/1.1 429 Too Many\r\nRetry-After: 3\r\nContent-Length: 0\r\n\r\n"),
        (
            "p502.test",
            "HTTP/1.1 502 Bad Gateway\r\nX-Err: exit-node\r\nContent-Length: 3\r\n\r\nbad",
        ),
        ("phtml.test", "<html>not http</html>"),
        ("pfin.test", ""),
    ] {
        assert_eq!(to_end(&mut ask(host)), wanted, "{host}");
    }
    let (answer, end) = to_failure(&mut ask("prst.test"));
    assert_eq!((&*answer, end), ("", Some(std::io::ErrorKind::ConnectionReset)));
    for (host, wanted) in [
        ("good.test", "HTTP/1.1 200 Connection established\r\n\r\n"),
        ("ok10.test", "HTTP/1.0 200 OK\r\n\r\n"),
        ("plf.test", "HTTP/1.1 200 OK\n\n"),
        ("psplit.test", "HTTP/1.1 200 OK\r\n\r\n"),
    ] {
        let mut stream = ask(host);
        expect(&mut stream, wanted);
        write!(stream, "GET /in HTTP/1.1\r\nConnection: close\r\n\r\n").unwrap();
        assert_eq!(body(&to_end(&mut stream)), "GET /in none ", "{host}");
    }
    let answer =
        exchange(proxy.address(), "GET http://other.test/ HTTP/1.1\r\nConnection: close\r\n\r\n");
    assert!(answer.starts_with("HTTP/1.1 403 Forbidden\r\n"), "{answer}");
}

#[test]
fn a_target_that_refuses_is_a_bad_gateway() {
    let closed = ClosedPort::new().unwrap();
    let proxy = HttpProxy::builder().start().unwrap();
    let at = closed.address();
    for line in [format!("GET http://{at}/ HTTP/1.1"), format!("CONNECT {at} HTTP/1.1")] {
        let answer = exchange(proxy.address(), format!("{line}\r\nConnection: close\r\n\r\n"));
        assert!(answer.starts_with("HTTP/1.1 502 Bad Gateway\r\n"), "{answer}");
    }
    assert_eq!((proxy.proxy_counts().dialed, proxy.proxy_counts().tunnels), (0, 0));
}

#[test]
fn names_without_a_place_are_not_looked_up() {
    let proxy = HttpProxy::builder().start().unwrap();
    for line in ["GET http://example.com/ HTTP/1.1", "CONNECT example.com:443 HTTP/1.1"] {
        let answer = exchange(proxy.address(), format!("{line}\r\nConnection: close\r\n\r\n"));
        assert!(answer.starts_with("HTTP/1.1 502 Bad Gateway\r\n"), "{answer}");
        assert_eq!(body(&answer), "example.com is not reachable\n");
    }
    assert_eq!(proxy.proxy_counts().dialed, 0);
}

#[test]
fn a_tunnel_step_may_come_late() {
    let origin = echo();
    let proxy = HttpProxy::builder()
        .elsewhere(origin.address())
        .handler(|_| {
            Some(Script::from(vec![
                Step::Reply(Reply::new(407)),
                Step::Next,
                Step::Send(b"HTTP/1.1 200 OK\r\n\r\n"[..].into()),
                Step::Tunnel,
            ]))
        })
        .start()
        .unwrap();
    let mut stream = connect(proxy.address());
    stream.write_all(b"CONNECT a.test:80 HTTP/1.1\r\n\r\n").unwrap();
    expect(&mut stream, "HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n");
    stream.write_all(b"CONNECT a.test:80 HTTP/1.1\r\n\r\n").unwrap();
    expect(&mut stream, "HTTP/1.1 200 OK\r\n\r\n");
    stream.write_all(b"GET /late HTTP/1.1\r\nConnection: close\r\n\r\n").unwrap();
    assert_eq!(body(&to_end(&mut stream)), "GET /late none ");
    assert_eq!(proxy.log().len(), 2);
}

#[test]
#[cfg(target_os = "linux")]
fn exits_are_addresses_that_the_target_sees() {
    let origin = Origin::builder()
        .handler(|request| Reply::ok(request.peer.ip().to_string()))
        .start()
        .unwrap();
    let exits = [2, 3].map(|last| IpAddr::V4(Ipv4Addr::new(127, 0, 0, last)));
    let proxy = HttpProxy::builder().exits(exits).start().unwrap();
    for wanted in ["127.0.0.2", "127.0.0.3", "127.0.0.2"] {
        let request = format!("GET {} HTTP/1.1\r\nConnection: close\r\n\r\n", origin.url("/"));
        assert_eq!(body(&exchange(proxy.address(), request)), wanted);
    }
}

#[test]
fn no_credential_is_printed() {
    let builder = HttpProxy::builder().credentials("user", "hunter2");
    assert!(!format!("{builder:?}").contains("hunter2"));
    assert!(!format!("{builder:?}").contains("aHVudGVyM"));
}
