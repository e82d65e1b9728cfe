//! Requests that ask only for what has changed, and bodies as they came.

#![cfg(feature = "lab")]
#![allow(clippy::unwrap_used, reason = "helpers of tests are tests")]

use flate2::{Compression, write::GzEncoder};
use longhaul::Session;
use longhaul::lab::{Origin, Received, Reply, Script};
use longhaul::message::Validators;
use std::io::{Read as _, Write as _};

const MODIFIED: &str = "Sun, 15 Jun 2025 15:06:40 GMT";

/// A server with one state of one page.
fn origin() -> Origin {
    let answer = |request: &Received| -> Script {
        let same = request.header("if-none-match") == Some("W/\"v1\"");
        let reply = if same { Reply::new(304) } else { Reply::ok("the page") };
        reply.header("ETag", "W/\"v1\"").header("Last-Modified", MODIFIED).into()
    };
    Origin::builder().handler(answer).start().unwrap()
}

fn session() -> Session {
    Session::builder().trust_env(false).build().unwrap()
}

#[test]
fn what_has_not_changed_is_not_sent_again_and_the_connection_is_kept() {
    let (origin, session) = (origin(), session());
    let first = session.get(origin.url("/")).send().unwrap();
    assert!(!first.not_modified());
    let kept = first.validators();
    // As they come back from wherever they were stored.
    let stored =
        Validators::new(kept.etag().map(str::to_owned), kept.last_modified().map(str::to_owned));
    for validators in [&kept, &stored] {
        let second = session.get(origin.url("/")).if_changed(validators).send().unwrap();
        assert!(second.not_modified() && second.ok() && second.connection().reused);
        assert_eq!(second.text().unwrap(), "");
        assert_eq!(second.validators().etag(), Some("W/\"v1\""));
    }
    let seen = &origin.log()[1];
    assert_eq!(seen.header("if-none-match"), Some("W/\"v1\""));
    assert_eq!(seen.header("if-modified-since"), Some(MODIFIED));
    let other = Validators::new(Some("\"v0\"".into()), None);
    let third = session.get(origin.url("/")).if_changed(&other).send().unwrap();
    assert_eq!((third.status(), third.text().unwrap().as_str()), (200, "the page"));
    assert_eq!(origin.log()[3].header("if-modified-since"), None);
}

#[test]
fn without_validators_the_request_is_an_ordinary_one() {
    let (origin, session) = (origin(), session());
    session.get(origin.url("/")).if_changed(&Validators::default()).send().unwrap();
    let seen = &origin.log()[0];
    assert_eq!((seen.header("if-none-match"), seen.header("if-modified-since")), (None, None));
}

#[test]
fn a_validator_that_is_no_field_is_an_error() {
    let (origin, session) = (origin(), session());
    let torn = Validators::new(Some("\"a\r\nX: y\"".into()), None);
    let error = session.get(origin.url("/")).if_changed(&torn).send().unwrap_err();
    assert_eq!(error.kind(), longhaul::ErrorKind::InvalidHeader);
    assert_eq!(origin.counts().accepted, 0);
}

#[test]
fn the_bytes_of_the_wire_are_to_be_had_as_they_came() {
    let mut coder = GzEncoder::new(Vec::new(), Compression::default());
    coder.write_all(b"the page").unwrap();
    let coded = coder.finish().unwrap();
    let body = coded.clone();
    let origin = Origin::builder()
        .handler(move |_| Reply::ok(&body).header("Content-Encoding", "gzip").chunked(5))
        .start()
        .unwrap();
    let session = session();
    for stream in [false, true] {
        let get = || session.get(origin.url("/")).stream(stream).decode_content(false);
        assert_eq!(get().send().unwrap().bytes().unwrap(), coded, "{stream}");
        let mut read = Vec::new();
        get().send().unwrap().into_reader().read_to_end(&mut read).unwrap();
        assert_eq!(read, coded, "{stream}");
        let decoded = session.get(origin.url("/")).stream(stream).decode_content(true);
        assert_eq!(decoded.send().unwrap().text().unwrap(), "the page");
    }
}
