//! HTTP proxies: forwarding, tunnels, refusals, and proxies that misbehave.

use crate::peer::{OK, Peer, Serve, Server};
use crate::{Client, limits, through};
use longhaul::error::{ErrorKind, Fault, Phase};
use longhaul::time::{Clock, SystemClock};
use longhaul::{Error, secs};
use std::sync::Arc;
use std::time::Duration;

/// A proxy that answers CONNECT with these bytes and then carries on to the origin.
fn tunnelling(origin: &Server, reply: &'static [u8]) -> Server {
    let to = origin.addr;
    Server::new(move |peer, _| {
        if peer.head().is_some() {
            peer.send(reply);
            peer.tunnel(to);
        }
    })
}

const ESTABLISHED: &[u8] = b"HTTP/1.1 200 Connection established\r\n\r\n";

#[test]
fn http_is_forwarded_in_absolute_form_over_one_connection() {
    let proxy = Server::answering(OK);
    let mut client = Client::new();
    client.headers.append("User-Agent", "x").unwrap();
    client.headers.append("Proxy-Authorization", "of the user").unwrap();
    let mut route = through(&format!("http://me:p%40ss@{}", proxy.addr));
    route.proxy_headers = Arc::from([("X-Exit".to_owned(), "de".to_owned())]);
    for url in ["http://one.test/a?b#c", "http://two.test:8080/", "http://one.test/"] {
        assert_eq!(client.fetch(url, &route).unwrap().1, "ok");
    }
    assert_eq!(
        proxy.heads(),
        [
            ("http://one.test/a?b", "one.test"),
            ("http://two.test:8080/", "two.test:8080"),
            ("http://one.test/", "one.test"),
        ]
        .map(|(target, host)| format!(
            "GET {target} HTTP/1.1\r\nHost: {host}\r\nUser-Agent: x\r\n\
             Proxy-Authorization: Basic bWU6cEBzcw==\r\nX-Exit: de\r\n\r\n"
        ))
    );
    assert_eq!(proxy.connections(), 1);
    assert!(client.asked.0.lock().unwrap().is_empty(), "the target is the proxy's to look up");
}

#[test]
fn fields_for_the_proxy_never_reach_an_origin() {
    let origin = Server::answering(OK);
    let proxy = tunnelling(&origin, ESTABLISHED);
    let mut client = Client::new();
    for (name, value) in [
        ("User-Agent", "Mozilla"),
        ("Cookie", "a=1"),
        ("Authorization", "Basic x"),
        ("Referer", "http://r.test/"),
        ("Proxy-Authorization", "of the user"),
    ] {
        client.headers.append(name, value).unwrap();
    }
    let mut route = through(&format!("http://me:@{}", proxy.addr));
    route.always_connect = true;
    route.proxy_headers = Arc::from([("X-Exit".to_owned(), "de".to_owned())]);
    for _ in 0..2 {
        assert_eq!(client.fetch("http://[::1]/x", &route).unwrap().1, "ok");
    }
    assert_eq!(
        proxy.heads(),
        ["CONNECT [::1]:80 HTTP/1.1\r\nHost: [::1]:80\r\nUser-Agent: Mozilla\r\n\
          Proxy-Authorization: Basic bWU6\r\nX-Exit: de\r\n\r\n"]
    );
    assert_eq!(
        origin.heads(),
        ["GET /x HTTP/1.1\r\nHost: [::1]\r\nUser-Agent: Mozilla\r\nCookie: a=1\r\n\
          Authorization: Basic x\r\nReferer: http://r.test/\r\n\r\n"; 2]
    );
    assert_eq!(origin.connections(), 1);
}

#[test]
fn every_2xx_opens_however_it_is_spelled() {
    for reply in [
        ESTABLISHED,
        b"HTTP/1.0 200 OK\r\n\r\n",
        b"HTTP/1.1 200\r\n\r\n",
        b"HTTP/1.1 200 OK\n\n",
        b"HTTP/1.1 201 Made\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n",
        b"HTTP/1.1 100 Wait\r\n\r\nHTTP/1.1 200 OK\r\n\r\n",
        b"\r\nHTTP/1.1 200 OK\r\nProxy Agent: odd\r\n\r\n",
    ] {
        let origin = Server::answering(OK);
        let proxy = tunnelling(&origin, reply);
        let mut client = Client::new();
        let mut route = through(&format!("http://{}", proxy.addr));
        route.always_connect = true;
        let answer = client.fetch("http://a.test/", &route).unwrap();
        assert_eq!(answer.1, "ok", "{}", reply.escape_ascii());
        assert_eq!(proxy.last_head(), "CONNECT a.test:80 HTTP/1.1\r\nHost: a.test:80\r\n\r\n");
    }
}

#[test]
fn a_reply_in_pieces_and_an_origin_that_speaks_at_once() {
    let origin = Server::answering(OK);
    let to = origin.addr;
    let proxy = Server::new(move |peer, _| {
        peer.head();
        peer.drip(b"HTTP/1.1 200 OK\r\nA: b\r\n", Duration::from_millis(2));
        // The end of the head and the first byte of the tunnel in one piece.
        peer.send(b"\r\nHTTP/1.1 103 From the origin\r\n\r\n");
        peer.tunnel(to);
    });
    let mut route = through(&format!("http://{}", proxy.addr));
    route.always_connect = true;
    assert_eq!(Client::new().fetch("http://a.test/", &route).unwrap().1, "ok");
}

/// The error of a CONNECT that is met like this.
fn refused(serve: impl Fn(&mut Peer) + Send + Sync + 'static) -> Error {
    refused_within(20.0, serve)
}

fn refused_within(connect: f64, serve: impl Fn(&mut Peer) + Send + Sync + 'static) -> Error {
    let proxy = Server::new(move |peer, _| {
        peer.head();
        serve(peer);
    });
    let mut client = Client::new();
    client.limits = limits(connect, 20.0);
    let route = through(&format!("http://user:s3cret@{}", proxy.addr));
    let error = client.fetch("https://a.test/", &route).unwrap_err();
    assert_eq!(error.fault(), Fault::Proxy, "{error}");
    assert_eq!(error.phase(), Phase::Proxy, "{error}");
    assert!(error.is_unsent());
    assert!(!format!("{error} {error:?}").contains("s3cret"));
    assert_eq!(error.proxy(), route.shown.as_deref());
    assert_eq!(client.config.cutter.live_sockets(), 0);
    error
}

#[test]
fn refusals_keep_what_the_proxy_said() {
    let big = "n".repeat(5000);
    let big: &'static str = big.leak();
    for (status, kind, fields, body) in [
        (
            "407 Proxy Authentication Required",
            ErrorKind::ProxyAuth,
            "Proxy-Authenticate: Basic",
            "nope",
        ),
        // To a CONNECT, this can only be the proxy's word.
        ("401 Unauthorized", ErrorKind::ProxyAuth, "WWW-Authenticate: Basic", "nope"),
        ("403 Forbidden", ErrorKind::ProxyRefused, "X: y", ""),
        ("429 Too Many", ErrorKind::ProxyRefused, "Retry-After: 3", "slow"),
        ("502 Bad Gateway", ErrorKind::ProxyRefused, "X-Err: exit-node", big),
        ("503 No exit", ErrorKind::ProxyRefused, "Retry-After: 3", ""),
        ("302 Found", ErrorKind::ProxyRefused, "Location: http://127.0.0.1/login", ""),
    ] {
        let error = refused(move |peer| {
            let length = body.len();
            peer.send(
                format!("HTTP/1.1 {status}\r\n{fields}\r\nContent-Length: {length}\r\n\r\n{body}")
                    .as_bytes(),
            );
            peer.hold();
        });
        assert_eq!(error.kind(), kind, "{status}");
        let reply = error.proxy_reply().unwrap();
        assert_eq!(format!("{} {}", reply.code, reply.reason), status);
        let (name, value) = fields.split_once(": ").unwrap();
        assert_eq!(reply.headers[name], value);
        assert_eq!(reply.body, body[..body.len().min(1024)], "{status}");
        let wait = fields.starts_with("Retry-After").then(|| secs(3.0));
        assert_eq!(error.retry_after(), wait, "{status}");
        assert!(error.to_string().contains(status), "{error}");
    }
}

#[test]
fn proxies_that_misbehave() {
    let cases: [(&str, ErrorKind, Serve); 6] = [
        ("fin", ErrorKind::ProxyUnreachable, |_| {}),
        ("rst", ErrorKind::ProxyUnreachable, Peer::reset),
        ("html", ErrorKind::ProxyUnreachable, |peer| peer.send(b"<html>not http</html>")),
        ("half", ErrorKind::ProxyUnreachable, |peer| peer.send(b"HTTP/1.1 200 OK\r\n")),
        ("hang", ErrorKind::ConnectTimeout, Peer::hold),
        ("flood", ErrorKind::ProxyUnreachable, |peer| {
            peer.send(b"HTTP/1.1 200 OK\r\n");
            for _ in 0..100 {
                peer.send(format!("X: {}\r\n", "a".repeat(8000)).as_bytes());
            }
        }),
    ];
    for (name, kind, serve) in cases {
        // Only who hangs is waited for.
        let connect = if name == "hang" { 0.5 } else { 20.0 };
        assert_eq!(refused_within(connect, serve).kind(), kind, "{name}");
    }
}

#[test]
fn a_reply_that_drips_cannot_outlast_the_clocks() {
    let drip = |peer: &mut Peer| {
        let text = format!("HTTP/1.1 200 OK\r\nX-Pad: {}\r\n\r\n", "a".repeat(300));
        peer.drip(text.as_bytes(), Duration::from_millis(50));
    };
    let start = SystemClock.now();
    let error = refused_within(0.5, drip);
    assert_eq!(error.kind(), ErrorKind::ConnectTimeout);
    // The drip takes 16 seconds.
    assert!(SystemClock.now() - start < secs(8.0));

    let proxy = Server::new(move |peer, _| {
        peer.head();
        drip(peer);
    });
    let mut client = Client::new();
    client.limits.deadline = Some(SystemClock.now() + secs(0.4));
    let route = through(&format!("http://{}", proxy.addr));
    let error = client.fetch("https://a.test/", &route).unwrap_err();
    assert_eq!((error.kind(), error.phase()), (ErrorKind::Deadline, Phase::Proxy));
    assert!(SystemClock.now() - start < secs(12.0));
}

#[test]
fn a_proxy_that_is_not_there_is_no_failure_of_the_target() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let mut client = Client::new();
    for (proxy, phase) in [
        (format!("http://{address}"), Phase::Connect),
        (format!("socks5h://{address}"), Phase::Connect),
        ("http://missing.test:3128".to_owned(), Phase::Dns),
        ("http://later.test:3128".to_owned(), Phase::Dns),
    ] {
        for url in ["http://a.test/", "https://a.test/"] {
            let error = client.fetch(url, &through(&proxy)).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::ProxyUnreachable, "{error}");
            assert_eq!((error.phase(), error.fault()), (phase, Fault::Proxy), "{error}");
        }
    }
    assert!(!client.asked.0.lock().unwrap().contains(&"a.test".to_owned()));
}

#[test]
fn a_407_is_the_proxys_when_forwarded_and_the_targets_in_a_tunnel() {
    let refusal = "HTTP/1.1 407 Who\r\nProxy-Authenticate: Basic\r\nContent-Length: 4\r\n\r\nnope";
    let proxy = Server::answering(refusal);
    let mut client = Client::new();
    let route = through(&format!("http://{}", proxy.addr));
    let error = client.fetch("http://a.test/", &route).unwrap_err();
    assert_eq!((error.kind(), error.fault()), (ErrorKind::ProxyAuth, Fault::Proxy));
    assert!(error.is_unsent());
    assert_eq!(error.proxy_reply().unwrap().body, "nope");

    let origin = Server::answering(refusal);
    let proxy = tunnelling(&origin, ESTABLISHED);
    let mut route = through(&format!("http://{}", proxy.addr));
    route.always_connect = true;
    assert_eq!(client.fetch("http://a.test/", &route).unwrap(), (407, "nope".to_owned()));
    assert_eq!(client.get(&origin.url("/")).unwrap().0, 407);

    // Other statuses of a forwarding proxy are responses; a 401 could be the target's.
    for (line, status) in [("502 Bad", 502), ("401 Who", 401)] {
        let answer = format!("HTTP/1.1 {line}\r\nContent-Length: 0\r\n\r\n");
        let proxy = Server::answering(answer);
        let route = through(&format!("http://{}", proxy.addr));
        assert_eq!(client.fetch("http://a.test/", &route).unwrap().0, status);
    }
}

#[test]
fn identities_do_not_share_connections() {
    let proxy = Server::answering(OK);
    let mut client = Client::new();
    for (user, connections) in [("a", 1), ("b", 2), ("a", 2), ("b", 2)] {
        let route = through(&format!("http://{user}:x@{}", proxy.addr));
        client.fetch("http://a.test/", &route).unwrap();
        assert_eq!(proxy.connections(), connections);
    }
}

#[test]
fn a_hundred_failures_leave_nothing_behind() {
    let proxy = Server::answering("HTTP/1.1 502 Bad\r\nContent-Length: 0\r\n\r\n");
    let mut client = Client::new();
    let route = through(&format!("http://{}", proxy.addr));
    for _ in 0..100 {
        client.fetch("https://a.test/", &route).unwrap_err();
    }
    assert_eq!(client.config.cutter.live_sockets(), 0);
}
