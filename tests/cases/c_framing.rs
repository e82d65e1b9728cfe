//! Section C: where a response ends, and whether its connection is kept.

use crate::answers::{answer, get, scripted, sending};
use crate::roads::{Road, World, assert_is, each};
use http::Method;
use longhaul::error::{ErrorKind, Fault, Phase};
use longhaul::lab::Script;
use longhaul::secs;

const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

/// Length and coding as the standard resolves them where they disagree.
#[test]
fn framing_that_is_said_twice_or_badly() {
    for (fields, body, wanted) in [
        ("Content-Length: 2\r\nContent-Length: 2", "okNO", Some("ok")),
        ("Content-Length: 2, 2", "okNO", Some("ok")),
        ("Content-Length: 2\r\nTransfer-Encoding: chunked", "1\r\nx\r\n0\r\n\r\n", Some("x")),
        ("Transfer-Encoding: chunked\r\nContent-Length: 900", "1\r\nx\r\n0\r\n\r\n", Some("x")),
        ("Transfer-Encoding: Chunked", "1\r\nx\r\n0\r\n\r\n", Some("x")),
        ("Transfer-Encoding: identity\r\nContent-Length: 2", "okNO", Some("ok")),
        ("Transfer-Encoding: identity, chunked", "1\r\nx\r\n0\r\n\r\n", Some("x")),
        ("Transfer-Encoding:\r\nContent-Length: 2", "okNO", Some("ok")),
        ("Content-Length:", "all of it", Some("all of it")),
        ("Content-Length: 2\r\nContent-Length: 3", "okay", None),
        ("Content-Length: 2, 3", "okay", None),
        ("Content-Length: +2", "ok", None),
        ("Content-Length: -1", "ok", None),
        ("Content-Length: 0x2", "ok", None),
        ("Content-Length: 2 2", "ok", None),
        ("Content-Length: 2;", "ok", None),
        ("Content-Length: 99999999999999999999", "ok", None),
        ("Content-Length: ok", "ok", None),
    ] {
        match (answer(format!("HTTP/1.1 200 OK\r\n{fields}\r\n\r\n{body}")), wanted) {
            (Ok(response), Some(wanted)) => {
                assert_eq!(response.text().unwrap(), wanted, "{fields}");
            }
            (Err(error), None) => {
                assert_is(&error, ErrorKind::Protocol, Phase::Headers, Fault::Target);
            }
            (result, _) => panic!("{fields}: {result:?}"),
        }
    }
    // Both at once is believed this time, and the connection not a second time.
    let both = "HTTP/1.1 200 OK\r\nContent-Length: 6\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n";
    each(
        Road::FOUR,
        || sending(both),
        |world, road| {
            let session = world.session(road);
            for _ in 0..2 {
                assert_eq!(get(world, road, &session, "/").unwrap().text().unwrap(), "x");
            }
            assert_eq!(world.origin(road).counts().accepted, 2);
        },
    );
}

#[test]
fn no_body_where_none_is_possible_and_the_next_response_is_the_next() {
    each(Road::ALL, World::hostile, |world, road| {
        let session = world.session(road);
        let response = get(world, road, &session, "/b/304-cl").unwrap();
        assert_eq!((response.status(), response.body()), (304, &b""[..]));
        let response = get(world, road, &session, "/b/304-cl").unwrap();
        assert_eq!((response.status(), response.text().unwrap().as_str()), (200, "ok"));
        for method in [Method::HEAD, Method::GET, Method::HEAD] {
            let url = world.url(road, "/b/ok");
            let response = session.request(method.clone(), url).send().unwrap();
            let length = if method == Method::HEAD { 0 } else { 2 };
            assert_eq!(response.body().len(), length);
            assert!(response.connection().reused);
        }
    });
}

#[test]
fn what_must_not_be_kept_is_closed() {
    for (bytes, kept) in [
        (OK, true),
        ("HTTP/1.1 200 OK\r\nConnection: keep-alive\r\nContent-Length: 2\r\n\r\nok", true),
        ("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok", false),
        ("HTTP/1.1 200 OK\r\nConnection: Upgrade, CLOSE\r\nContent-Length: 2\r\n\r\nok", false),
        ("HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok", false),
        ("HTTP/1.0 200 OK\r\nConnection: Keep-Alive\r\nContent-Length: 2\r\n\r\nok", true),
        ("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok and more", false),
        ("HTTP/1.1 204 No\r\nContent-Length: 5\r\n\r\nhello", false),
    ] {
        each(
            Road::FOUR,
            || sending(bytes),
            |world, road| {
                let session = world.session(road);
                for _ in 0..2 {
                    get(world, road, &session, "/").unwrap();
                }
                let accepted = world.origin(road).counts().accepted;
                assert_eq!(accepted, if kept { 1 } else { 2 }, "{bytes:?}");
            },
        );
    }
}

/// A script that lets the client read what comes before the split by itself.
fn split(whole: &[u8], at: usize) -> Script {
    Script::send(&whole[..at]).pause(secs(0.001)).then_send(&whole[at..])
}

#[test]
fn heads_and_bodies_in_two_pieces_wherever_they_break() {
    let whole = b"\r\nHTTP/1.1 103 Hints\r\nLink: x\r\n\r\nHTTP/1.1 200 OK\r\nX-Fold: a\r\n b\r\n\
        no colon\r\nTransfer-Encoding: chunked\r\n\r\n00A;e=\"f\"\r\n0123456789\r\n5\r\nhello\r\n\
        0\r\nT: 1\r\n\r\n";
    let scripts: Vec<Script> = (0..=whole.len()).map(|at| split(whole, at)).collect();
    each(
        Road::FOUR,
        || scripted(scripts.clone()),
        |world, road| {
            let session = world.session(road);
            for at in 0..=whole.len() {
                let response = get(world, road, &session, &format!("/{at}")).unwrap();
                assert_eq!(response.text().unwrap(), "0123456789hello", "{at}");
                assert_eq!(response.headers()["x-fold"], "a b", "{at}");
                assert_eq!(response.headers().len(), 2, "{at}");
                assert_eq!(response.connection().reused, at > 0, "{at}");
            }
        },
    );
}
