//! Bodies on their way in: the same bytes by every way of reading them, and the same ceilings.

#![cfg(feature = "lab")]
#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests are tests")]

use longhaul::error::{Fault, Phase};
use longhaul::lab::{Origin, Reply, Script, hostile};
use longhaul::{Error, ErrorKind, Response, Retry, Session, SessionBuilder, secs};
use std::io::Read as _;

fn recipe() -> SessionBuilder {
    Session::builder().trust_env(false).seed(1).timeout((secs(5.0), secs(5.0)))
}

fn origin(script: impl Into<Script>) -> Origin {
    let script = script.into();
    Origin::builder().handler(move |_| script.clone()).start().unwrap()
}

fn behaving(name: &str) -> Origin {
    origin(hostile::origin_script(name, "").unwrap())
}

type Way = fn(Response) -> Result<Vec<u8>, Error>;

/// Every way of getting at a body.
const WAYS: &[(&str, Way)] = &[
    ("bytes", |response| Ok(response.bytes()?.to_vec())),
    ("into_reader", |response| {
        let mut bytes = Vec::new();
        let read = response.into_reader().read_to_end(&mut bytes);
        read.map(|_| bytes).map_err(|error| error.downcast::<Error>().unwrap())
    }),
    ("chunks", |response| {
        let pieces = response.chunks(3).collect::<Result<Vec<_>, _>>()?;
        let full = pieces.iter().rev().skip(1).all(|piece| piece.len() == 3);
        assert!(full, "{pieces:?}");
        Ok(pieces.concat())
    }),
    ("split", |response| Ok(response.split("").collect::<Result<Vec<_>, _>>()?.concat())),
    ("lines", |response| {
        Ok(response.lines().collect::<Result<Vec<_>, _>>()?.concat().into_bytes())
    }),
    ("copy_to", |response| {
        let mut bytes = Vec::new();
        let count = response.copy_to(&mut bytes)?;
        assert_eq!(count, bytes.len() as u64);
        Ok(bytes)
    }),
    ("save_to", |response| {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("body");
        let saved = response.save_to(&path);
        let files = std::fs::read_dir(folder.path()).unwrap().count();
        assert_eq!(files, usize::from(saved.is_ok()), "what failed leaves nothing");
        saved.map(|_| std::fs::read(path).unwrap())
    }),
];

#[test]
fn codings_are_undone_by_every_way_of_reading() {
    for (name, wanted) in [
        ("gz", "hello gzip"),
        ("gz-trail-garbage", "hello gzip"),
        ("gz-trail-zero", "hello gzip"),
        ("gz-upper", "hello gzip"),
        ("gz-x", "hello gzip"),
        ("gz-list", "hello gzip"),
        ("gz-twice", "hello gzip"),
        ("gz-members", "hello gzip"),
        ("deflate-zlib", "hello deflate"),
        ("deflate-raw", "hello deflate"),
        // Nobody knows it, so the bytes are left as they came, and the field says so.
        ("ce-unknown", "uryyb"),
        ("gz-empty-body", ""),
        ("gz-204", ""),
        ("gz-304", ""),
    ] {
        let origin = behaving(name);
        let session = recipe().build().unwrap();
        for stream in [false, true] {
            for (way, read) in WAYS {
                let response = session.get(origin.url("/")).stream(stream).send().unwrap();
                assert!(response.headers().contains_key("content-encoding"));
                let body = read(response).unwrap_or_else(|error| panic!("{name} {way}: {error}"));
                assert_eq!(String::from_utf8_lossy(&body), wanted, "{name}, {way}, {stream}");
            }
        }
        // Whoever reads to the end leaves the connection to the next.
        assert_eq!(origin.counts().accepted, 1, "{name}");
    }
}

#[test]
fn where_no_body_is_possible_none_is_waited_for_or_decoded() {
    // The fields are those of the body that a GET would have.
    let head = "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 500\r\n\r\n";
    let origin = origin(Script::send(head));
    let session = recipe().build().unwrap();
    for stream in [false, true] {
        for (way, read) in WAYS {
            let response = session.head(origin.url("/")).stream(stream).send().unwrap();
            assert_eq!(read(response).unwrap(), b"", "{way}, {stream}");
        }
    }
    assert_eq!(origin.counts().accepted, 1);
}

#[test]
fn a_body_that_breaks_is_an_error_by_every_way_of_reading() {
    let length = "HTTP/1.1 200 OK\r\nContent-Length: 30\r\n\r\nten bytes!";
    let chunks = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\na\r\nten bytes!\r\n";
    for (script, kind) in [
        (Script::send(length).fin(), ErrorKind::IncompleteBody),
        (Script::send(length).rst(), ErrorKind::IncompleteBody),
        (Script::send(chunks).fin(), ErrorKind::IncompleteBody),
        (hostile::origin_script("gz-cut", "").unwrap(), ErrorKind::ContentDecoding),
        (hostile::origin_script("ce-many", "").unwrap(), ErrorKind::ContentDecoding),
    ] {
        let origin = origin(script);
        let session = recipe().retry(Retry::long_run()).build().unwrap();
        for (way, read) in WAYS {
            let response = session.get(origin.url("/")).stream(true).send().unwrap();
            let before = origin.counts().requests;
            let error = read(response).unwrap_err();
            assert_eq!((error.kind(), error.phase()), (kind, Phase::Body), "{way}");
            assert_eq!(error.fault(), Fault::Target, "{way}");
            assert!(error.received_bytes().is_some(), "{way}: {error}");
            // What was handed out at its head is the caller's, and not retried behind his back.
            assert_eq!(origin.counts().requests, before, "{way}");
        }
    }
}

#[test]
fn ceilings_hold_in_a_stream_too_and_cost_the_connection() {
    const DECODED: u64 = 1_000_000;
    let bomb = behaving("gz-bomb");
    for (way, read) in WAYS {
        let session = recipe().max_body_bytes(DECODED).build().unwrap();
        for stream in [false, true] {
            let request = session.get(bomb.url("/")).stream(stream);
            let error = request.send().and_then(read).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::TooLarge, "{way}");
            assert!(error.message().contains("1000000"), "{way}: {error}");
            // 64 MiB are behind 65 kB, and hardly more of those is taken than the ceiling asks for.
            assert!(error.received_bytes().unwrap() < 40_000, "{way}: {error:?}");
        }
    }
    let page = origin(Reply::ok("x".repeat(100_000)).chunked(1000));
    for (way, read) in WAYS {
        let session = recipe().max_wire_bytes(50_000).build().unwrap();
        for stream in [false, true] {
            let request = session.get(page.url("/")).stream(stream);
            let error = request.send().and_then(read).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::TooLarge, "{way}");
            assert!(error.message().contains("50000"), "{way}: {error}");
        }
        assert!(!session.get(page.url("/")).stream(true).send().unwrap().connection().reused);
    }
}

#[test]
fn a_stream_that_is_dropped_gives_up_its_connection_and_nothing_else() {
    let origin = origin(Reply::ok("x".repeat(1_000_000)));
    let session = recipe().build().unwrap();
    let mut reader = session.get(origin.url("/")).stream(true).send().unwrap().into_reader();
    reader.read_exact(&mut [0; 10]).unwrap();
    // While it is open, another request takes another connection.
    assert_eq!(session.get(origin.url("/")).send().unwrap().body().len(), 1_000_000);
    drop(reader);
    let next = session.get(origin.url("/")).send().unwrap();
    assert!(next.connection().reused);
    assert_eq!(origin.counts().accepted, 2);
}

#[test]
fn lines_do_not_depend_on_the_chunks_of_the_wire() {
    let text = "one\r\n\r\ntwo\rthr\u{e9}e\nlast";
    for size in 1..=text.len() {
        let origin = origin(Reply::ok(text).header("Content-Type", "application/x").chunked(size));
        let session = recipe().build().unwrap();
        let response = session.get(origin.url("/")).stream(true).send().unwrap();
        let lines: Vec<_> = response.lines().map(Result::unwrap).collect();
        assert_eq!(lines, ["one", "", "two", "thr\u{e9}e", "last"], "{size}");
    }
}
