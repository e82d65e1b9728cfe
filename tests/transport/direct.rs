//! Plain requests without a proxy: what is sent, what is read, what is kept.

use crate::peer::{OK, Server};
use crate::{Client, read};
use http::Method;
use longhaul::error::ErrorKind;
use longhaul::proxy::Route;
use longhaul::time::{Clock, SimClock, SystemClock};
use longhaul::transport::{Outgoing, Transport};
use std::io::Read;
use std::net::Shutdown;
use std::sync::{Arc, Mutex, mpsc};
use url::Url;

fn ok() -> Server {
    Server::answering(OK)
}

#[test]
fn one_connection_carries_many_requests() {
    let server = ok();
    let mut client = Client::new();
    for index in 0..20 {
        let mut incoming = client.open(&server.url("/"), &Route::direct()).unwrap();
        assert_eq!(incoming.connection.reused, index > 0);
        assert_eq!(incoming.connection.peer, Some(server.addr));
        assert_eq!(incoming.timings.connect.is_some(), index == 0);
        assert!(incoming.timings.first_byte.is_some());
        assert_eq!(read(&mut incoming).unwrap(), "ok");
    }
    assert_eq!(server.connections(), 1);
    assert_eq!(client.config.cutter.live_sockets(), 1);
}

#[test]
fn fields_leave_in_the_order_and_case_that_they_were_given() {
    let server = ok();
    let mut client = Client::new();
    for (name, value) in [
        ("user-AGENT", "x"),
        ("Accept-Encoding", "gzip"),
        ("X-Zed", "1"),
        ("aCCept", "*/*"),
        ("Cookie", "a=\"b c\""),
    ] {
        client.headers.append(name, value).unwrap();
    }
    client.get(&server.url("/a?b=c#d")).unwrap();
    assert_eq!(
        server.last_head(),
        format!(
            "GET /a?b=c HTTP/1.1\r\nHost: {}\r\nuser-AGENT: x\r\nAccept-Encoding: gzip\r\n\
             X-Zed: 1\r\naCCept: */*\r\nCookie: a=\"b c\"\r\n\r\n",
            server.addr
        )
    );
    client.headers.append("hOst", "other.test").unwrap();
    client.get(&server.url("/")).unwrap();
    assert!(server.last_head().ends_with("hOst: other.test\r\n\r\n"), "{}", server.last_head());
    assert_eq!(server.last_head().to_lowercase().matches("host:").count(), 1);
}

#[test]
fn a_name_is_looked_up_once_for_each_connection() {
    let server = ok();
    let mut client = Client::new();
    let url = format!("http://name.test:{}/", server.addr.port());
    for _ in 0..3 {
        client.get(&url).unwrap();
    }
    assert_eq!(*client.asked.0.lock().unwrap(), ["name.test"]);
    assert!(server.last_head().contains(&format!("Host: name.test:{}\r\n", server.addr.port())));
}

#[test]
fn no_body_where_none_is_possible_and_the_connection_lives_on() {
    let server = Server::new(|peer, _| {
        while let Some(head) = peer.head() {
            peer.send(match head.split(' ').nth(1).unwrap() {
                "/204" => b"HTTP/1.1 204 No Content\r\n\r\n",
                "/304" => b"HTTP/1.1 304 Not Modified\r\nContent-Length: 9\r\n\r\n",
                "/0" => b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
                _ => b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\nTransfer-Encoding: x\r\n\r\n",
            });
        }
    });
    let mut client = Client::new();
    for path in ["/204", "/304", "/0"] {
        assert_eq!(client.get(&server.url(path)).unwrap().1, "");
    }
    let url = Url::parse(&server.url("/head")).unwrap();
    let outgoing = Outgoing::new(&Method::HEAD, &url, &client.headers);
    let mut incoming = client.engine.attempt(outgoing, &Route::direct(), &client.limits).unwrap();
    assert_eq!(read(&mut incoming).unwrap(), "");
    assert_eq!(incoming.headers["content-length"], "9");
    assert!(server.last_head().starts_with("HEAD /head HTTP/1.1\r\n"));
    assert_eq!(server.connections(), 1);
}

#[test]
fn status_reason_and_fields_are_handed_on_as_they_came() {
    let server = Server::answering(
        &b"HTTP/1.1 999 Request  denied\r\nX-Fold: a\r\n b\r\nnocolonhere\r\nSet-Cookie: a=1\r\n\
           X-N: caf\xe9\r\nSet-Cookie: b=2\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\nx"[..],
    );
    let mut client = Client::new();
    let incoming = client.open(&server.url("/"), &Route::direct()).unwrap();
    assert_eq!((incoming.status, incoming.reason.as_str()), (999, "Request  denied"));
    assert_eq!(incoming.headers["x-fold"], "a b");
    assert_eq!(incoming.headers["x-n"].as_bytes(), b"caf\xe9");
    let cookies: Vec<_> = incoming.headers.get_all("set-cookie").iter().collect();
    assert_eq!(cookies, ["a=1", "b=2"]);
    assert_eq!(incoming.headers.get_all("content-length").iter().count(), 2);
}

#[test]
fn interim_responses_are_passed_over() {
    let server = Server::answering(
        "HTTP/1.1 100 Continue\r\nServer: x\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n\
         \r\nHTTP/1.1 200 OK\nContent-Length: 2\n\nok",
    );
    let mut client = Client::new();
    assert_eq!(client.get(&server.url("/")).unwrap(), (200, "ok".to_owned()));
    assert_eq!(client.get(&server.url("/")).unwrap(), (200, "ok".to_owned()));
    assert_eq!(server.connections(), 1);

    let server = Server::answering("HTTP/1.1 102 Wait\r\n\r\n".repeat(17));
    let error = client.get(&server.url("/")).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Protocol);
    assert!(error.to_string().contains("16 interim"), "{error}");
}

#[test]
fn a_burst_behind_an_interim_response_is_read_whole() {
    let body = "z".repeat(200_000);
    let server = Server::answering(format!(
        "HTTP/1.1 103 X\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    ));
    let mut client = Client::new();
    for _ in 0..2 {
        assert_eq!(client.get(&server.url("/")).unwrap().1, body);
    }
    assert_eq!(server.connections(), 1);
}

#[test]
fn chunks_with_extensions_zeros_and_trailers() {
    let server = Server::answering(
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n\
         5;name=\"value-of-an-extension\"\r\nhello\r\n000000000000000000000006\r\n world\r\n\
         0\r\nX-Trailer: y\r\n\r\n",
    );
    let mut client = Client::new();
    for _ in 0..2 {
        assert_eq!(client.get(&server.url("/")).unwrap().1, "hello world");
    }
    assert_eq!(server.connections(), 1);
}

#[test]
fn chunks_in_any_pieces() {
    let server = Server::new(|peer, _| {
        peer.head();
        peer.drip(
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4;ext=long-enough-to-split\r\n\
              data\r\n000\r\nT: x\r\n\r\n",
            std::time::Duration::from_micros(200),
        );
        peer.hold();
    });
    assert_eq!(Client::new().get(&server.url("/")).unwrap().1, "data");
}

#[test]
fn large_bodies_of_every_framing() {
    let body: String = (0..300_000u32).map(|n| char::from(b'a' + (n % 26) as u8)).collect();
    let sized = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len());
    let closed = format!("HTTP/1.1 200 OK\r\n\r\n{body}");
    let mut chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n".to_owned();
    for piece in body.as_bytes().chunks(7001) {
        chunked += &format!("{:x};n=1\r\n{}\r\n", piece.len(), std::str::from_utf8(piece).unwrap());
    }
    chunked += "0\r\n\r\n";
    let mut client = Client::new();
    for text in [sized, closed, chunked] {
        let server = Server::new(move |peer, _| {
            peer.head();
            peer.send(text.as_bytes());
            peer.finish();
        });
        assert_eq!(client.get(&server.url("/")).unwrap().1, body);
    }
}

#[test]
fn what_must_not_be_kept_is_closed() {
    for answer in [
        "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok",
        "HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Length: 2\r\n\r\n2\r\nok\r\n0\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok and more than was announced",
    ] {
        let server = Server::answering(answer);
        let mut client = Client::new();
        for _ in 0..2 {
            assert_eq!(client.get(&server.url("/")).unwrap().1, "ok", "{answer}");
        }
        assert_eq!(server.connections(), 2, "{answer}");
        assert_eq!(client.config.cutter.live_sockets(), 0, "{answer}");
    }
    let server = Server::answering(
        "HTTP/1.0 200 OK\r\nConnection: Keep-Alive\r\nContent-Length: 2\r\n\r\nok",
    );
    let mut client = Client::new();
    client.get(&server.url("/")).unwrap();
    client.get(&server.url("/")).unwrap();
    assert_eq!(server.connections(), 1);
}

#[test]
fn the_route_and_the_request_can_ask_for_another_connection() {
    let server = ok();
    let mut client = Client::new();
    let count = |client: &mut Client, route: &Route| {
        client.fetch(&server.url("/"), route).unwrap();
        server.connections()
    };
    let mut route = Route::direct();
    assert_eq!(count(&mut client, &route), 1);
    route.fresh = true;
    assert_eq!(count(&mut client, &route), 2);
    route.fresh = false;
    route.keep_alive = false;
    // The fresh one took the place of the first; it is used up, and not given back.
    for connections in [2, 3, 4] {
        assert_eq!(count(&mut client, &route), connections);
    }
    client.headers.append("Connection", "close").unwrap();
    assert_eq!(count(&mut client, &Route::direct()), 5);
    assert_eq!(count(&mut client, &Route::direct()), 6);
}

#[test]
fn the_pool_keeps_so_many_hosts_and_no_more() {
    let servers: Vec<Server> = (0..3).map(|_| ok()).collect();
    let mut client = Client::with(|config| config.pool_connections = 2);
    for _ in 0..3 {
        for server in &servers {
            client.get(&server.url("/")).unwrap();
        }
    }
    assert_eq!(client.config.cutter.live_sockets(), 2);
    // Round robin over one host more than fits is the worst for an LRU: each time another one.
    assert_eq!(servers.iter().map(Server::connections).collect::<Vec<_>>(), [3, 3, 3]);
    client.engine.forget(longhaul::proxy::Identity::DIRECT);
    assert_eq!(client.config.cutter.live_sockets(), 0);
}

#[test]
fn streamed_responses_share_the_limit_of_their_host() {
    let server = ok();
    let mut client = Client::with(|config| config.pool_maxsize = 2);
    let open: Vec<_> =
        (0..4).map(|_| client.open(&server.url("/"), &Route::direct()).unwrap()).collect();
    assert_eq!(server.connections(), 4);
    for mut incoming in open {
        read(&mut incoming).unwrap();
    }
    assert_eq!(client.config.cutter.live_sockets(), 2);
}

#[test]
fn a_body_that_nobody_reads_closes_its_connection() {
    let server = ok();
    let mut client = Client::new();
    drop(client.open(&server.url("/"), &Route::direct()).unwrap());
    assert_eq!(client.config.cutter.live_sockets(), 0);
    // Read to its length, even though nobody asked for the end.
    let mut incoming = client.open(&server.url("/"), &Route::direct()).unwrap();
    incoming.body.read_exact(&mut [0; 2]).unwrap();
    drop(incoming);
    assert_eq!(client.config.cutter.live_sockets(), 1);
}

#[test]
fn draining_keeps_the_connection_where_that_is_cheap() {
    let server = Server::new(|peer, _| {
        while let Some(head) = peer.head() {
            let (length, stalls) = match head.split(' ').nth(1).unwrap() {
                "/small" => (1000, false),
                "/large" => (100_000, false),
                _ => (1000, true),
            };
            peer.send(format!("HTTP/1.1 302 X\r\nContent-Length: {length}\r\n\r\n").as_bytes());
            if stalls {
                peer.hold();
            }
            peer.send(&vec![b'x'; length]);
        }
    });
    let mut client = Client::new();
    for (path, kept) in [("/small", 1), ("/large", 0), ("/small", 1), ("/stalls", 0)] {
        let until = SystemClock.now() + longhaul::secs(if path == "/stalls" { 0.1 } else { 20.0 });
        client.open(&server.url(path), &Route::direct()).unwrap().drain(65_536, Some(until));
        assert_eq!(client.config.cutter.live_sockets(), kept, "{path}");
    }
}

#[test]
fn draining_waits_for_nothing_where_no_connection_can_be_gained() {
    for head in [
        "HTTP/1.1 302 X\r\n\r\nabc",
        "HTTP/1.1 302 X\r\nConnection: close\r\nContent-Length: 5\r\n\r\nabc",
        "HTTP/1.0 302 X\r\nContent-Length: 5\r\n\r\nabc",
        "HTTP/1.1 302 X\r\nContent-Length: 100000\r\n\r\nabc",
        "HTTP/1.1 302 X\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n",
    ] {
        let server = Server::new(move |peer, _| {
            peer.head();
            peer.send(head.as_bytes());
            peer.hold();
        });
        let mut client = Client::new();
        let begun = SystemClock.now();
        let incoming = client.open(&server.url("/"), &Route::direct()).unwrap();
        incoming.drain(65_536, Some(begun + longhaul::secs(20.0)));
        assert_eq!(client.config.cutter.live_sockets(), 0, "{head}");
        // Not one of the twenty seconds; a busy machine may take a few for nothing.
        assert!(SystemClock.now() - begun < longhaul::secs(10.0), "{head}");
    }
}

#[test]
fn bytes_on_an_idle_connection_are_no_answer() {
    // A 408 that was sent to the idle connection, and one that was closed there.
    for idle in ["HTTP/1.1 408 Timeout\r\nContent-Length: 0\r\n\r\n", ""] {
        let (done, told) = mpsc::channel();
        let (next, read) = mpsc::channel::<()>();
        let (done, read) = (Mutex::new(done), Mutex::new(read));
        let server = Server::new(move |peer, number| {
            peer.head();
            peer.send(OK.as_bytes());
            if number == 0 {
                read.lock().unwrap().recv().unwrap();
                peer.send(idle.as_bytes());
                if idle.is_empty() {
                    peer.stream.get_ref().shutdown(Shutdown::Both).unwrap();
                }
                done.lock().unwrap().send(()).unwrap();
            }
            peer.hold();
        });
        let clock = Arc::new(SimClock::default());
        let mut client = Client::with(|config| config.clock = clock.clone());
        client.get(&server.url("/")).unwrap();
        next.send(()).unwrap();
        told.recv().unwrap();
        // Idle for long enough to be probed.
        clock.advance(longhaul::secs(1.0));
        assert_eq!(client.get(&server.url("/")).unwrap().0, 200);
        assert_eq!(server.connections(), 2);
    }
}

#[test]
fn a_source_address_is_dialled_from() {
    let server = ok();
    let mut client =
        Client::with(|config| config.source_address = Some("127.0.0.77".parse().unwrap()));
    let incoming = client.open(&server.url("/"), &Route::direct()).unwrap();
    assert_eq!(incoming.connection.local.unwrap().ip().to_string(), "127.0.0.77");
}
