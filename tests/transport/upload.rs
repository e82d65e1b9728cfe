//! Bodies on their way out, and answers that do not wait for them.

use crate::peer::{OK, Peer, Server};
use crate::{Client, limits, read};
use http::Method;
use longhaul::error::{ErrorKind, Fault, Phase};
use longhaul::message::Headers;
use longhaul::proxy::Route;
use longhaul::time::Clock;
use longhaul::transport::{Incoming, Outgoing, OutgoingBody, Transport};
use longhaul::{Error, secs};
use std::io::{self, Read};
use std::sync::{Arc, Mutex};
use url::Url;

fn send(client: &mut Client, url: &str, body: OutgoingBody<'_>) -> Result<Incoming, Error> {
    // The body's lifetime is that of everything else in `Outgoing`, and is chosen by the caller.
    let url: &'static Url = Box::leak(Box::new(Url::parse(url).unwrap()));
    let headers: &'static Headers = Box::leak(Box::new(client.headers.clone()));
    let mut outgoing = Outgoing::new(&Method::PUT, url, headers);
    outgoing.body = body;
    client.engine.attempt(outgoing, &Route::direct(), &client.limits)
}

/// A server that keeps the bodies it gets, as they were framed.
fn keeping() -> (Server, Arc<Mutex<Vec<Vec<u8>>>>) {
    let bodies = Arc::new(Mutex::new(Vec::new()));
    let kept = Arc::clone(&bodies);
    let server = Server::new(move |peer, _| {
        while let Some(head) = peer.head() {
            let head = head.to_lowercase();
            let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
            let mut body = Vec::new();
            match length {
                Some(length) => body = peer.take(length.parse().unwrap()),
                None => {
                    while !body.ends_with(b"0\r\n\r\n") {
                        body.extend(peer.take(1));
                    }
                }
            }
            kept.lock().unwrap().push(body);
            peer.send(OK.as_bytes());
        }
    });
    (server, bodies)
}

#[test]
fn bodies_arrive_as_they_are_and_the_connection_is_kept() {
    let (server, bodies) = keeping();
    let mut client = Client::new();
    let url = server.url("/");
    let large: Vec<u8> = (0..1_000_000u32).map(|n| n as u8).collect();
    for body in [&b""[..], b"abc", &large] {
        read(&mut send(&mut client, &url, OutgoingBody::Bytes(body)).unwrap()).unwrap();
        assert!(server.last_head().contains(&format!("Content-Length: {}\r\n", body.len())));
        assert_eq!(bodies.lock().unwrap().pop().unwrap(), body);
        let known = OutgoingBody::Reader(&mut &*body, Some(body.len() as u64));
        read(&mut send(&mut client, &url, known).unwrap()).unwrap();
        assert_eq!(bodies.lock().unwrap().pop().unwrap(), body);
    }
    let chunked = OutgoingBody::Reader(&mut &b"hello"[..], None);
    read(&mut send(&mut client, &url, chunked).unwrap()).unwrap();
    assert!(server.last_head().contains("Transfer-Encoding: chunked\r\n"));
    assert_eq!(bodies.lock().unwrap().pop().unwrap(), b"5\r\nhello\r\n0\r\n\r\n");
    let empty = OutgoingBody::Reader(&mut io::empty(), None);
    read(&mut send(&mut client, &url, empty).unwrap()).unwrap();
    assert_eq!(bodies.lock().unwrap().pop().unwrap(), b"0\r\n\r\n");
    // No more is taken from a reader than was announced.
    let mut longer = &b"abcdef"[..];
    read(&mut send(&mut client, &url, OutgoingBody::Reader(&mut longer, Some(4))).unwrap())
        .unwrap();
    assert_eq!((bodies.lock().unwrap().pop().unwrap(), longer), (b"abcd".to_vec(), &b"ef"[..]));
    assert_eq!(server.connections(), 1);
}

#[test]
fn a_length_of_the_users_gives_way_to_the_bodys() {
    let (server, _) = keeping();
    let mut client = Client::new();
    client.headers.append("content-LENGTH", "99").unwrap();
    client.headers.append("X-After", "1").unwrap();
    send(&mut client, &server.url("/"), OutgoingBody::Bytes(b"abc")).unwrap();
    assert!(
        server.last_head().ends_with("content-LENGTH: 3\r\nX-After: 1\r\n\r\n"),
        "{}",
        server.last_head()
    );
}

struct Failing(usize);

impl Read for Failing {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        if self.0 == 0 {
            return Err(io::Error::other("disk on fire"));
        }
        self.0 -= 1;
        buf[0] = b'x';
        Ok(1)
    }
}

#[test]
fn a_body_that_cannot_be_read_is_the_users_fault() {
    let server = Server::new(|peer, _| {
        peer.head();
        peer.finish();
    });
    let mut client = Client::new();
    let url = server.url("/");
    let error = send(&mut client, &url, OutgoingBody::Reader(&mut Failing(3), None)).unwrap_err();
    assert_eq!(
        (error.kind(), error.phase(), error.fault()),
        (ErrorKind::Io, Phase::Send, Fault::Local)
    );
    assert!(error.to_string().contains("disk on fire"), "{error}");
    assert!(!error.is_unsent());
    let short = OutgoingBody::Reader(&mut &b"abc"[..], Some(5));
    let error = send(&mut client, &url, short).unwrap_err();
    assert_eq!((error.kind(), error.fault()), (ErrorKind::Io, Fault::Local));
    assert!(error.to_string().contains("ended 2 bytes before the length"), "{error}");
}

/// Answers after the head, and then does this instead of reading.
fn early(then: impl Fn(&mut Peer) + Send + Sync + 'static) -> Server {
    Server::new(move |peer, _| {
        peer.head();
        peer.send(b"HTTP/1.1 413 Too Large\r\nConnection: close\r\nContent-Length: 3\r\n\r\nbig");
        then(peer);
    })
}

#[test]
fn an_early_answer_is_the_answer() {
    let large = vec![0; 30_000_000];
    let servers = [early(|_| {}), early(Peer::reset), early(Peer::hold), early(Peer::finish)];
    for (index, server) in servers.iter().enumerate() {
        for reader in [false, true] {
            let mut client = Client::new();
            let mut reader_body = &large[..];
            let body = if reader {
                OutgoingBody::Reader(&mut reader_body, None)
            } else {
                OutgoingBody::Bytes(&large)
            };
            // With a reset the answer may be lost with the connection, as for every client.
            match send(&mut client, &server.url("/"), body) {
                Ok(mut incoming) => {
                    assert_eq!(incoming.status, 413);
                    assert_eq!(read(&mut incoming).unwrap(), "big");
                }
                Err(error) => panic!("server {index}, reader {reader}: {error}"),
            }
            assert_eq!(client.config.cutter.live_sockets(), 0);
        }
    }
}

#[test]
fn a_peer_that_takes_nothing_runs_into_the_clocks() {
    let server = Server::new(|peer, _| peer.hold());
    let large = vec![0; 30_000_000];
    let mut client = Client::new();
    client.limits = limits(20.0, 0.2);
    let error = send(&mut client, &server.url("/"), OutgoingBody::Bytes(&large)).unwrap_err();
    assert_eq!((error.kind(), error.phase()), (ErrorKind::ReadTimeout, Phase::Send));
    client.limits = limits(20.0, 20.0);
    client.limits.deadline = Some(longhaul::time::SystemClock.now() + secs(0.2));
    let error = send(&mut client, &server.url("/"), OutgoingBody::Bytes(&large)).unwrap_err();
    assert_eq!((error.kind(), error.phase()), (ErrorKind::Deadline, Phase::Send));
}

#[test]
fn a_peer_that_closes_without_reading() {
    let server = Server::new(|peer, _| {
        peer.take(1);
        peer.reset();
    });
    let large = vec![0; 30_000_000];
    let mut client = Client::new();
    let error = send(&mut client, &server.url("/"), OutgoingBody::Bytes(&large)).unwrap_err();
    assert_eq!((error.kind(), error.fault()), (ErrorKind::Connection, Fault::Target));
    assert!(!error.is_unsent() && !error.is_stale());
}
