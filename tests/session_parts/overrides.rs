//! What one request has otherwise than its session.

use crate::{fields, plays, redirect, scripted};
use longhaul::message::Auth;
use longhaul::policy::Timeouts;
use longhaul::transport::Play;
use longhaul::{ErrorKind, secs};

#[test]
fn own_cookies_are_sent_and_not_kept() {
    let (recipe, script) = scripted(|asked, _| match asked.url.path() {
        "/a" => redirect("/b"),
        "/b" => redirect("http://other.test/c"),
        _ => Play::status(200),
    });
    let session = recipe.build().unwrap();
    session.with_cookies(|jar| jar.set("sid", "1", "h.test", "/").unwrap());
    session.get("http://h.test/a").cookie("own", "2").cookie("sid", "x").send().unwrap();
    session.get("http://h.test/d").send().unwrap();
    assert_eq!(fields(&script, "cookie"), ["own=2; sid=x", "own=2; sid=x", "-", "sid=1"]);
    let named = session.get("http://h.test/d").cookie("own", "2").header("Cookie", "all=mine");
    named.send().unwrap();
    assert_eq!(fields(&script, "cookie")[4], "all=mine", "a field goes in the place of both");
    let request = session.get("http://h.test/").cookie("own", "s3cret").into_request().unwrap();
    assert!(!format!("{request:?}").contains("s3cret"));
    let error = session.get("http://h.test/").cookie("a", "1;2").send().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidHeader);
}

#[test]
fn ceilings_are_set_and_taken_away() {
    let (recipe, _) = plays(vec![Play::status(200).body("ten bytes!")]);
    let session = recipe.max_wire_bytes(5).max_body_bytes(5).build().unwrap();
    let get = || session.get("http://h.test/");
    let kind = |result: Result<longhaul::Response, longhaul::Error>| result.err().map(|e| e.kind());
    assert_eq!(kind(get().send()), Some(ErrorKind::TooLarge));
    assert_eq!(kind(get().max_wire_bytes(None).send()), Some(ErrorKind::TooLarge));
    assert_eq!(kind(get().max_body_bytes(None).send()), Some(ErrorKind::TooLarge));
    assert_eq!(kind(get().max_wire_bytes(None).max_body_bytes(None).send()), None);
    assert_eq!(kind(get().max_wire_bytes(10).max_body_bytes(10).send()), None);
    let error = get().max_wire_bytes(9).max_body_bytes(None).send().unwrap_err();
    assert!(error.message().contains('9'), "{error}");
}

#[test]
fn timeouts_and_credentials_are_taken_away() {
    let (recipe, script) = plays(vec![Play::status(200)]);
    let session = recipe.auth(Auth::Bearer("t".into())).deadline(secs(9.0)).build().unwrap();
    session.get("http://h.test/").send().unwrap();
    session.get("http://h.test/").no_auth().timeout(Timeouts::unlimited()).send().unwrap();
    assert_eq!(fields(&script, "authorization"), ["Bearer t", "-"]);
    let limits = script.asked()[1].limits;
    assert_eq!((limits.connect, limits.read, limits.deadline), (None, None, None));
    assert!(script.asked()[0].limits.deadline.is_some());
}
