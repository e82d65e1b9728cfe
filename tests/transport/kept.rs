//! What is kept of the wire: the bytes of both messages, and why one is not whole.

use crate::{Client, read, through};
use http::Method;
use longhaul::error::{Exchange, Truncated};
use longhaul::lab::{HttpProxy, Origin, Reply, Script};
use longhaul::message::Headers;
use longhaul::proxy::Route;
use longhaul::transport::{Incoming, Outgoing, OutgoingBody, Transport};
use std::io::Read;
use std::sync::Arc;
use std::time::Duration;
use url::Url;

fn keeping(most: u64) -> Client {
    Client::with(|config| config.keep_wire = Some(most))
}

/// An origin that sends these bytes to whoever asks, and ends the connection.
fn sends(bytes: &[u8]) -> Origin {
    let bytes = bytes.to_vec();
    Origin::builder().handler(move |_| Script::send(&bytes).fin()).start().unwrap()
}

fn exchange(incoming: &Incoming) -> Arc<Exchange> {
    incoming.exchange.clone().unwrap()
}

#[test]
fn responses_are_kept_as_they_came() {
    for (sent, kept, truncated) in [
        ("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc", "", None),
        // What comes behind the message is none of it.
        ("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabcHTTP/1.1 400", "HTTP/1.1 400", None),
        ("HTTP/1.1 204 No\r\nContent-Length: 3\r\n\r\nabc", "abc", None),
        ("HTTP/1.0 200 OK\nX-Odd : a\n b\n\nto the end", "", None),
        (
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n03;x=\"y\"\r\nabc\r\n0\r\nT: 1\r\n\r\nmore",
            "more",
            None,
        ),
        // The empty line behind the last chunk is missing, and forgiven.
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n", "", None),
        ("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc", "", Some(Truncated::Disconnect)),
        (
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n9\r\nabc",
            "",
            Some(Truncated::Disconnect),
        ),
        (
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nabc",
            "",
            Some(Truncated::Unspecified),
        ),
    ] {
        let origin = sends(sent.as_bytes());
        let mut client = keeping(u64::MAX);
        let mut incoming = client.open(&origin.url("/a?b#c"), &Route::direct()).unwrap();
        let read = read(&mut incoming);
        let exchange = exchange(&incoming);
        let response = exchange.response();
        let wanted = sent.strip_suffix(kept).unwrap();
        assert_eq!(String::from_utf8_lossy(response.bytes()), wanted);
        assert_eq!(response.truncated(), truncated, "{sent}");
        assert_eq!(response.is_chunked(), sent.contains("chunked"));
        assert_eq!(read.is_ok(), truncated.is_none(), "{sent}");
        assert_eq!(exchange.url(), origin.url("/a?b"));
        assert_eq!(exchange.address(), Some([127, 0, 0, 1].into()));
        let seen = origin.log().remove(0);
        assert_eq!(exchange.request().bytes(), &*seen.head);
    }
}

#[test]
fn interim_responses_are_left_out() {
    let last = "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n";
    let origin = Origin::builder()
        .handler(move |_| {
            let first = "HTTP/1.1 103 Early\r\nLink: a\r\n\r\n\r\n";
            Script::send(first).pause(Duration::from_millis(20)).then_send(last).then_send("x")
        })
        .start()
        .unwrap();
    let mut client = keeping(u64::MAX);
    let mut incoming = client.open(&origin.url("/"), &Route::direct()).unwrap();
    read(&mut incoming).unwrap();
    assert_eq!(exchange(&incoming).response().head(), last.as_bytes());
    assert_eq!(exchange(&incoming).response().body(), b"x");
}

#[test]
fn bodies_are_kept_up_to_the_limit_and_heads_whole() {
    let sent = b"HTTP/1.1 200 OK\r\nContent-Length: 30000\r\n\r\n";
    let origin = sends(&[&sent[..], &[b'x'; 30_000]].concat());
    let mut client = keeping(20_000);
    let mut incoming = client.open(&origin.url("/"), &Route::direct()).unwrap();
    assert_eq!(read(&mut incoming).unwrap().len(), 30_000);
    let exchange = exchange(&incoming);
    assert_eq!(exchange.response().head(), sent);
    assert_eq!(exchange.response().body().len(), 20_000);
    assert_eq!(exchange.response().truncated(), Some(Truncated::Length));
}

#[test]
fn a_body_that_stalls_and_one_that_nobody_reads() {
    let origin = Origin::builder()
        .handler(|_| Script::send("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc").hold())
        .start()
        .unwrap();
    let mut client = keeping(u64::MAX);
    client.limits.read = Some(longhaul::secs(0.2));
    let mut incoming = client.open(&origin.url("/"), &Route::direct()).unwrap();
    read(&mut incoming).unwrap_err();
    assert_eq!(exchange(&incoming).response().truncated(), Some(Truncated::Time));
    assert!(exchange(&incoming).response().bytes().ends_with(b"abc"));

    let incoming = client.open(&origin.url("/"), &Route::direct()).unwrap();
    let exchange = exchange(&incoming);
    drop(incoming);
    assert_eq!(exchange.response().truncated(), Some(Truncated::Unspecified));
}

#[test]
fn requests_are_kept_with_their_bodies_in_their_chunks() {
    let origin = Origin::builder().handler(|_| Reply::ok("")).start().unwrap();
    let url = Url::parse(&origin.url("/")).unwrap();
    let mut client = keeping(u64::MAX);
    let mut headers = Headers::new();
    headers.append("X-Case", "kept").unwrap();
    let mut pieces: &[u8] = b"hello";
    let bodies = [
        (OutgoingBody::Bytes(b"hello"), &b"hello"[..]),
        (OutgoingBody::Reader(&mut pieces, None), b"5\r\nhello\r\n0\r\n\r\n"),
    ];
    for (body, wanted) in bodies {
        let mut outgoing = Outgoing::new(&Method::PUT, &url, &headers);
        outgoing.body = body;
        let incoming = client.engine.attempt(outgoing, &Route::direct(), &client.limits).unwrap();
        let exchange = exchange(&incoming);
        assert_eq!(exchange.request().body(), wanted);
        assert_eq!(exchange.request().head(), &*origin.log().pop().unwrap().head);
        assert_eq!(exchange.request().truncated(), None);
    }
}

#[test]
fn a_request_is_kept_as_far_as_it_was_taken() {
    let origin = Origin::builder()
        .on_head(|_| Some(Script::from(Reply::new(413)).hold()))
        .handler(|_| Reply::ok(""))
        .start()
        .unwrap();
    let url = Url::parse(&origin.url("/")).unwrap();
    let headers = Headers::new();
    let mut client = keeping(u64::MAX);
    let length = 64 << 20;
    let mut body = std::io::repeat(b'x').take(length);
    let mut outgoing = Outgoing::new(&Method::PUT, &url, &headers);
    outgoing.body = OutgoingBody::Reader(&mut body, Some(length));
    let incoming = client.engine.attempt(outgoing, &Route::direct(), &client.limits).unwrap();
    let exchange = exchange(&incoming);
    assert_eq!(incoming.status, 413);
    let sent = incoming.connection.sent_bytes;
    assert_eq!(exchange.request().bytes().len() as u64, sent);
    assert_eq!(exchange.request().truncated(), Some(Truncated::Unspecified));
}

#[test]
fn what_is_for_the_proxy_is_left_out() {
    let origin = Origin::builder().handler(|_| Reply::ok("x")).start().unwrap();
    let proxy = HttpProxy::builder().credentials("me", "hunter2").start().unwrap();
    let route = through(&format!("http://me:hunter2@{}", proxy.address()));
    let mut client = keeping(u64::MAX);
    client.headers.append("Proxy-Authorization", "Basic hunter2").unwrap();
    client.headers.append("X-Case", "kept").unwrap();
    let mut incoming = client.open(&origin.url("/a"), &route).unwrap();
    read(&mut incoming).unwrap();
    let exchange = exchange(&incoming);
    let host = url::Url::parse(&origin.url("/")).unwrap();
    let host = &host[url::Position::BeforeHost..url::Position::AfterPort];
    let wanted = format!("GET http://{host}/a HTTP/1.1\r\nHost: {host}\r\nX-Case: kept\r\n\r\n");
    assert_eq!(String::from_utf8_lossy(exchange.request().bytes()), wanted);
    assert_eq!(exchange.address(), None);
}

#[test]
fn nothing_is_kept_unless_it_is_asked_for() {
    let origin = Origin::builder().handler(|_| Reply::ok("x")).start().unwrap();
    let incoming = Client::new().open(&origin.url("/"), &Route::direct()).unwrap();
    assert!(incoming.exchange.is_none());
}
