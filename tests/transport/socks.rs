//! SOCKS proxies: what they are told, and what becomes of what they say.

use crate::peer::{OK, Peer, Serve, Server};
use crate::{Client, limits, through};
use longhaul::Error;
use longhaul::error::{ErrorKind, Fault, Phase};
use std::sync::{Arc, Mutex};
use std::time::Duration;

type Told = Arc<Mutex<Vec<Vec<u8>>>>;

/// A SOCKS5 proxy that takes this method, and answers requests with this.
fn socks5(origin: &Server, method: u8, reply: &'static [u8]) -> (Server, Told) {
    let told: Told = Arc::default();
    let (to, kept) = (origin.addr, Arc::clone(&told));
    let server = Server::new(move |peer, _| {
        let tell = |bytes: Vec<u8>| kept.lock().unwrap().push(bytes);
        let greeting = peer.take(2);
        let mut methods = peer.take(usize::from(greeting[1]));
        methods.splice(0..0, greeting);
        tell(methods);
        peer.send(&[5, method]);
        if method == 2 {
            let mut auth = peer.take(2);
            auth.extend(peer.take(usize::from(auth[1]) + 1));
            let length = usize::from(*auth.last().unwrap());
            auth.extend(peer.take(length));
            let accepted = auth.ends_with(b"wrong") as u8;
            tell(auth);
            peer.send(&[1, accepted]);
            if accepted != 0 {
                return;
            }
        }
        let mut request = peer.take(4);
        match request[3] {
            1 => request.extend(peer.take(4)),
            4 => request.extend(peer.take(16)),
            _ => {
                request.extend(peer.take(1));
                request.extend(peer.take(usize::from(request[4])));
            }
        }
        request.extend(peer.take(2));
        tell(request);
        peer.send(reply);
        if reply[1] == 0 {
            peer.tunnel(to);
        }
    });
    (server, told)
}

const GRANTED: &[u8] = &[5, 0, 0, 1, 0, 0, 0, 0, 0, 0];

#[test]
fn names_and_credentials_on_the_wire() {
    let origin = Server::answering(OK);
    for (scheme, userinfo, method, exchanged, request) in [
        ("socks5h", "", 0, vec![&b"\x05\x01\x00"[..]], &b"\x05\x01\x00\x03\x06a.test\x00\x50"[..]),
        (
            "socks5h",
            "me:p%40ss@",
            2,
            vec![b"\x05\x02\x00\x02", b"\x01\x02me\x04p@ss"],
            b"\x05\x01\x00\x03\x06a.test\x00\x50",
        ),
        (
            "socks5h",
            "me:@",
            2,
            vec![b"\x05\x02\x00\x02", b"\x01\x02me\x00"],
            b"\x05\x01\x00\x03\x06a.test\x00\x50",
        ),
        ("socks5", "", 0, vec![b"\x05\x01\x00"], b"\x05\x01\x00\x01\x7f\x00\x00\x01\x00\x50"),
    ] {
        let (proxy, told) = socks5(&origin, method, GRANTED);
        let mut client = Client::new();
        let route = through(&format!("{scheme}://{userinfo}{}", proxy.addr));
        for _ in 0..2 {
            assert_eq!(client.fetch("http://a.test/", &route).unwrap().1, "ok");
        }
        let mut wanted = exchanged;
        wanted.push(request);
        assert_eq!(*told.lock().unwrap(), wanted);
        assert_eq!(proxy.connections(), 1);
        // Only where the scheme says so a name is looked up here.
        let asked = client.asked.0.lock().unwrap().len();
        assert_eq!(asked, usize::from(scheme == "socks5"), "{scheme}");
    }
    assert!(origin.last_head().starts_with("GET / HTTP/1.1\r\nHost: a.test\r\n"));
}

#[test]
fn odd_replies_that_grant() {
    let origin = Server::answering(OK);
    for reply in [
        &[5, 0, 0, 0, 0, 0, 0, 0, 0, 0][..],
        &[5, 0, 7, 1, 1, 2, 3, 4, 0, 80],
        &[5, 0, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 80],
        b"\x05\x00\x00\x03\x06a.test\x00\x50",
    ] {
        let (proxy, _) = socks5(&origin, 0, reply);
        let route = through(&format!("socks5h://{}", proxy.addr));
        assert_eq!(Client::new().fetch("http://a.test/", &route).unwrap().1, "ok");
    }
}

fn refused(proxy: &Server, userinfo: &str) -> Error {
    refused_within(20.0, proxy, userinfo)
}

fn refused_within(connect: f64, proxy: &Server, userinfo: &str) -> Error {
    let mut client = Client::new();
    client.limits = limits(connect, 20.0);
    let route = through(&format!("socks5h://{userinfo}{}", proxy.addr));
    let error = client.fetch("http://a.test/", &route).unwrap_err();
    assert_eq!(error.phase(), Phase::Proxy, "{error}");
    assert!(error.is_unsent());
    assert_eq!(client.config.cutter.live_sockets(), 0);
    error
}

#[test]
fn who_failed() {
    let origin = Server::answering(OK);
    for (reply, kind, fault) in [
        (&[5, 1, 0, 1, 0, 0, 0, 0, 0, 0][..], ErrorKind::ProxyRefused, Fault::Proxy),
        (&[5, 2, 0, 1, 0, 0, 0, 0, 0, 0], ErrorKind::ProxyRefused, Fault::Proxy),
        (&[5, 4, 0, 1, 0, 0, 0, 0, 0, 0], ErrorKind::Connection, Fault::Target),
        (&[5, 5, 0, 1, 0, 0, 0, 0, 0, 0], ErrorKind::Connection, Fault::Target),
    ] {
        let (proxy, _) = socks5(&origin, 0, reply);
        let error = refused(&proxy, "");
        assert_eq!((error.kind(), error.fault()), (kind, fault), "{error}");
        assert_eq!(error.proxy_reply().unwrap().code, u16::from(reply[1]));
    }
    let (proxy, _) = socks5(&origin, 2, GRANTED);
    let error = refused(&proxy, "me:wrong@");
    assert_eq!((error.kind(), error.fault()), (ErrorKind::ProxyAuth, Fault::Proxy));
    assert!(error.proxy_reply().unwrap().socks);
    assert!(!format!("{error} {error:?}").contains("wrong"));
    let (proxy, _) = socks5(&origin, 0xFF, GRANTED);
    assert_eq!(refused(&proxy, "").kind(), ErrorKind::ProxyAuth);
}

#[test]
fn proxies_that_misbehave() {
    let cases: [(ErrorKind, Serve); 4] = [
        (ErrorKind::ProxyUnreachable, |_| {}),
        (ErrorKind::ProxyUnreachable, |peer| peer.send(b"HTTP/1.1 400 Bad\r\n\r\n")),
        (ErrorKind::ConnectTimeout, Peer::hold),
        (ErrorKind::ConnectTimeout, |peer| {
            peer.send(b"\x05\x00");
            peer.drip(b"\x05\x00\x00\x03\xff", Duration::from_millis(200));
            peer.drip(&[b'a'; 257], Duration::from_millis(200));
        }),
    ];
    for (kind, serve) in cases {
        let proxy = Server::new(move |peer, _| {
            peer.take(3);
            serve(peer);
        });
        // Only who hangs is waited for.
        let connect = if kind == ErrorKind::ConnectTimeout { 0.4 } else { 20.0 };
        let error = refused_within(connect, &proxy, "");
        assert_eq!((error.kind(), error.fault()), (kind, Fault::Proxy), "{error}");
    }
}

/// A SOCKS4 proxy that grants everything.
fn socks4(origin: &Server) -> (Server, Told) {
    let told: Told = Arc::default();
    let (to, kept) = (origin.addr, Arc::clone(&told));
    let server = Server::new(move |peer, _| {
        let mut request = peer.take(8);
        let ends = 1 + usize::from(request[4..7] == [0; 3]);
        while request[8..].iter().filter(|byte| **byte == 0).count() < ends {
            request.extend(peer.take(1));
        }
        kept.lock().unwrap().push(request);
        peer.send(&[0, 90, 0, 0, 0, 0, 0, 0]);
        peer.tunnel(to);
    });
    (server, told)
}

#[test]
fn socks4_sends_the_user_and_4a_the_name() {
    let origin = Server::answering(OK);
    for (scheme, request) in [
        ("socks4", &b"\x04\x01\x00\x50\x7f\x00\x00\x01me\0"[..]),
        ("socks4a", b"\x04\x01\x00\x50\x00\x00\x00\x01me\0a.test\0"),
    ] {
        let (proxy, told) = socks4(&origin);
        let mut client = Client::new();
        let route = through(&format!("{scheme}://me@{}", proxy.addr));
        assert_eq!(client.fetch("http://a.test/", &route).unwrap().1, "ok");
        assert_eq!(*told.lock().unwrap(), [request]);
        let error = client.fetch("http://[::1]/", &route).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidUrl, "{error}");
    }
}

#[test]
fn a_target_that_does_not_exist_is_the_targets_fault() {
    let origin = Server::answering(OK);
    let (proxy, told) = socks5(&origin, 0, GRANTED);
    let route = through(&format!("socks5://{}", proxy.addr));
    let error = Client::new().fetch("http://missing.test/", &route).unwrap_err();
    assert_eq!((error.kind(), error.fault()), (ErrorKind::NameNotFound, Fault::Target));
    assert!(told.lock().unwrap().is_empty());
}
