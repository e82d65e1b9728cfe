//! Every way to fail: what kind, in which phase, whose fault, and what reached the other side.

use crate::peer::{OK, Server};
use crate::{Client, limits, read};
use longhaul::error::{ErrorKind, Fault, Phase};
use longhaul::proxy::Route;
use longhaul::time::Clock;
use longhaul::{Error, secs};
use std::io::Read;
use std::net::TcpListener;
use std::time::Duration;

const TICK: Duration = Duration::from_millis(20);

#[track_caller]
fn assert_is(error: &Error, kind: ErrorKind, phase: Phase, fault: Fault) {
    assert_eq!((error.kind(), error.phase(), error.fault()), (kind, phase, fault), "{error}");
}

/// The error of a request to a server that does this once it has the head.
fn failing(
    limits: longhaul::transport::AttemptLimits,
    serve: impl Fn(&mut crate::peer::Peer) + Send + Sync + 'static,
) -> Error {
    let server = Server::new(move |peer, _| {
        peer.head();
        serve(peer);
    });
    let mut client = Client::new();
    client.limits = limits;
    let url = server.url("/x#secret-fragment").replace("http://", "http://user:s3cret@");
    let error = client.get(&url).unwrap_err();
    assert!(!error.is_stale(), "{error}");
    assert_eq!(error.url(), Some(server.url("/x").as_str()));
    assert_eq!(client.config.cutter.live_sockets(), 0);
    error
}

#[test]
fn before_a_connection_stands() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    drop(listener);
    let mut client = Client::new();
    for (url, kind, phase) in [
        (format!("http://127.0.0.1:{port}/"), ErrorKind::Connection, Phase::Connect),
        ("http://missing.test/".to_owned(), ErrorKind::NameNotFound, Phase::Dns),
        ("http://later.test/".to_owned(), ErrorKind::NameLookup, Phase::Dns),
        ("http://slow.test/".to_owned(), ErrorKind::ConnectTimeout, Phase::Dns),
    ] {
        let error = client.get(&url).unwrap_err();
        assert_is(&error, kind, phase, Fault::Target);
        assert!(error.is_unsent() && !error.is_stale());
    }
    let error = client.get("ftp://a.test/").unwrap_err();
    assert_is(&error, ErrorKind::InvalidScheme, Phase::Prepare, Fault::Local);
}

#[test]
fn a_backlog_that_is_full_ends_with_the_connect_timeout() {
    let listener =
        socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).unwrap();
    listener.bind(&"127.0.0.1:0".parse::<std::net::SocketAddr>().unwrap().into()).unwrap();
    listener.listen(0).unwrap();
    let address = listener.local_addr().unwrap().as_socket().unwrap();
    let connect = || {
        let socket =
            socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).unwrap();
        socket.set_nonblocking(true).unwrap();
        let _ = socket.connect(&address.into());
        socket
    };
    let _full: Vec<_> = (0..8).map(|_| connect()).collect();
    let mut client = Client::new();
    client.limits = limits(0.3, 20.0);
    let error = client.get(&format!("http://{address}/")).unwrap_err();
    assert_is(&error, ErrorKind::ConnectTimeout, Phase::Connect, Fault::Target);
    assert!(error.is_unsent());
}

#[test]
fn while_the_head_is_awaited() {
    let error = failing(limits(20.0, 0.1), crate::peer::Peer::hold);
    assert_is(&error, ErrorKind::ReadTimeout, Phase::Headers, Fault::Target);
    assert!(!error.is_unsent());

    let error = failing(limits(20.0, 20.0), |_| {});
    assert_is(&error, ErrorKind::Connection, Phase::Headers, Fault::Target);
    assert!(error.to_string().contains("closed without a response"), "{error}");

    let error = failing(limits(20.0, 20.0), crate::peer::Peer::reset);
    assert_is(&error, ErrorKind::Connection, Phase::Headers, Fault::Target);

    let error = failing(limits(20.0, 20.0), |peer| peer.send(b"HTTP/1.1 200 OK\r\nA: b\r\n"));
    assert_is(&error, ErrorKind::Connection, Phase::Headers, Fault::Target);
    assert!(error.to_string().contains("23 bytes into the response head"), "{error}");
}

#[test]
fn what_is_no_response() {
    for (bytes, what) in [
        (&b"<html>it works</html>"[..], "\"<html>it works</html>\""),
        (b"ICY 200 OK\r\n\r\n", "ICY"),
        (b"HTTP/2 200 OK\r\n\r\n", "invalid HTTP version"),
        (b"HTTP/1.1 099 X\r\n\r\n", "099"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: +5\r\n\r\n", "+5"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n", "differ"),
        (
            b"\x15\x03\x03\x00\x02\x02\x46",
            "the server answers in TLS: this port is meant for https",
        ),
    ] {
        let error = failing(limits(20.0, 20.0), |peer| {
            peer.send(bytes);
            peer.hold();
        });
        assert_is(&error, ErrorKind::Protocol, Phase::Headers, Fault::Target);
        assert!(error.to_string().contains(what), "{error}");
    }
}

#[test]
fn heads_without_end_stop_at_the_limit() {
    let line = format!("X: {}\r\n", "a".repeat(7997));
    let error = failing(limits(20.0, 20.0), move |peer| {
        peer.send(b"HTTP/1.1 200 OK\r\n");
        for _ in 0..100 {
            peer.send(line.as_bytes());
        }
    });
    assert_is(&error, ErrorKind::TooLarge, Phase::Headers, Fault::Target);
    assert!(error.to_string().contains("64 KiB"), "{error}");

    let fields: String = (0..150).map(|index| format!("X-{index}: v\r\n")).collect();
    for filler in [100, 60_000] {
        let server = Server::answering(format!(
            "HTTP/1.1 200 OK\r\n{fields}X: {}\r\nContent-Length: 2\r\n\r\nok",
            "a".repeat(filler)
        ));
        let mut client = Client::new();
        for _ in 0..2 {
            assert_eq!(client.get(&server.url("/")).unwrap().1, "ok");
        }
    }
}

/// The error of the body of a response that begins like this.
fn body_error(
    limits: longhaul::transport::AttemptLimits,
    serve: impl Fn(&mut crate::peer::Peer) + Send + Sync + 'static,
) -> Error {
    let server = Server::new(move |peer, _| {
        peer.head();
        serve(peer);
    });
    let mut client = Client::new();
    client.limits = limits;
    let mut incoming = client.open(&server.url("/"), &Route::direct()).unwrap();
    let error = read(&mut incoming).unwrap_err();
    assert_eq!(error.url(), Some(server.url("/").as_str()));
    // The same each time, never an end.
    for _ in 0..3 {
        let again = incoming.body.read(&mut [0; 8]).unwrap_err().downcast::<Error>().unwrap();
        assert_is(&again, error.kind(), error.phase(), error.fault());
        assert_eq!(again.received_bytes(), error.received_bytes());
        assert_eq!(again.to_string(), error.to_string());
    }
    error
}

#[test]
fn a_body_that_breaks_off_is_never_complete() {
    for head in ["Content-Length: 10\r\n", "Transfer-Encoding: chunked\r\n", ""] {
        for reset in [false, true] {
            if head.is_empty() && !reset {
                continue;
            }
            let error = body_error(limits(20.0, 20.0), move |peer| {
                let start = if head.starts_with('T') { "a\r\nabc" } else { "abc" };
                peer.send(format!("HTTP/1.1 200 OK\r\n{head}\r\n{start}").as_bytes());
                if reset {
                    // A reset may overtake what was sent: wait until the client has it.
                    let _ = peer.stream.get_mut().set_read_timeout(Some(TICK * 5));
                    let _ = peer.stream.read(&mut [0]);
                    peer.reset();
                }
            });
            assert_is(&error, ErrorKind::IncompleteBody, Phase::Body, Fault::Target);
            assert_eq!(error.received_bytes(), Some(3), "{head:?} {reset}");
        }
    }
}

#[test]
fn a_body_that_stalls() {
    let stall = |peer: &mut crate::peer::Peer| {
        peer.send(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc");
        peer.hold();
    };
    let error = body_error(limits(20.0, 0.1), stall);
    assert_is(&error, ErrorKind::ReadTimeout, Phase::Body, Fault::Target);
    assert_eq!(error.received_bytes(), Some(3));
}

#[test]
fn chunks_that_are_malformed() {
    for chunk in
        ["+5\r\nhello", "-5\r\n", "FFFFFFFFFFFFFFFFF\r\n", "5\nhello", "5\r\nhello!!", "zz\r\n"]
    {
        let error = body_error(limits(20.0, 20.0), move |peer| {
            let text =
                format!("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n{chunk}");
            peer.send(text.as_bytes());
            peer.hold();
        });
        assert_is(&error, ErrorKind::IncompleteBody, Phase::Body, Fault::Target);
        assert!(error.to_string().contains("malformed"), "{error}");
    }
}

#[test]
fn a_close_delimited_body_ends_with_an_orderly_close() {
    let server = Server::new(|peer, _| {
        peer.head();
        peer.send(b"HTTP/1.1 200 OK\r\n\r\nabc");
    });
    assert_eq!(Client::new().get(&server.url("/")).unwrap().1, "abc");
    // The last chunk was there; only the empty line behind it is missing.
    let server = Server::new(|peer, _| {
        peer.head();
        peer.send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n");
    });
    assert_eq!(Client::new().get(&server.url("/")).unwrap().1, "abc");
}

#[test]
fn drips_pass_the_read_timeout_and_end_at_the_deadline() {
    for in_head in [true, false] {
        let server = Server::new(move |peer, _| {
            peer.head();
            if !in_head {
                peer.send(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n");
            }
            let text = format!("HTTP/1.1 200 OK\r\nX: {}", "a".repeat(2000));
            peer.drip(text.as_bytes(), TICK);
        });
        let mut client = Client::new();
        let start = longhaul::time::SystemClock.now();
        client.limits = limits(20.0, 5.0);
        client.limits.deadline = Some(start + secs(1.0));
        let error = client.get(&server.url("/")).unwrap_err();
        let phase = if in_head { Phase::Headers } else { Phase::Body };
        assert_is(&error, ErrorKind::Deadline, phase, Fault::Target);
        // The drip would take 40 seconds.
        assert!(longhaul::time::SystemClock.now() - start < secs(15.0));
        assert_eq!(error.received_bytes().is_some_and(|bytes| bytes > 2), !in_head);
    }
}

#[test]
fn a_deadline_that_has_passed_dials_nobody() {
    let server = Server::answering(OK);
    let mut client = Client::new();
    client.limits.deadline = Some(longhaul::time::SystemClock.now());
    let error = client.get(&server.url("/")).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Deadline);
    assert!(error.is_unsent());
    assert_eq!(server.connections(), 0);
}

#[test]
fn a_kept_connection_that_dies_is_stale_and_a_new_one_is_not() {
    for reset in [false, true] {
        let server = Server::new(move |peer, _| {
            peer.head();
            peer.send(OK.as_bytes());
            peer.head();
            if reset {
                peer.reset();
            }
        });
        let mut client = Client::new();
        client.get(&server.url("/")).unwrap();
        let error = client.get(&server.url("/")).unwrap_err();
        assert_is(&error, ErrorKind::Connection, Phase::Headers, Fault::Target);
        assert!(error.is_stale() && !error.is_unsent(), "{reset}");
        assert_eq!(server.connections(), 1);
        assert_eq!(client.get(&server.url("/")).unwrap().1, "ok");
        assert_eq!(server.connections(), 2);
    }
    // One byte of the response is an answer: no longer stale.
    let server = Server::new(|peer, _| {
        peer.head();
        peer.send(OK.as_bytes());
        peer.head();
        peer.send(b"H");
    });
    let mut client = Client::new();
    client.get(&server.url("/")).unwrap();
    assert!(!client.get(&server.url("/")).unwrap_err().is_stale());
}

#[test]
fn a_cut_ends_what_is_under_way_and_what_comes_later() {
    for in_body in [false, true] {
        let (got, told) = std::sync::mpsc::channel();
        let got = std::sync::Mutex::new(got);
        let server = Server::new(move |peer, _| {
            peer.head();
            if in_body {
                peer.send(b"HTTP/1.1 200 OK\r\n\r\nabc");
            }
            got.lock().unwrap().send(()).unwrap();
            peer.hold();
        });
        let mut client = Client::new();
        let cutter = client.config.cutter.clone();
        let url = server.url("/");
        let blocked = std::thread::spawn(move || {
            let first = client.get(&url).unwrap_err();
            (first, client.get(&url).unwrap_err())
        });
        told.recv().unwrap();
        cutter.cut();
        let (first, second) = blocked.join().unwrap();
        assert_eq!((first.kind(), second.kind()), (ErrorKind::Cancelled, ErrorKind::Cancelled));
        assert_eq!(first.fault(), Fault::Local);
        assert!(second.is_unsent());
    }
}
