//! Prepared requests: what is in them, and that they go as they stand.

use crate::{fields, location, plays, redirect, scripted, with_parts};
use http::Method;
use longhaul::message::{Auth, Headers};
use longhaul::proxy::Identity;
use longhaul::transport::Play;
use longhaul::{ErrorKind, ProxyMap, ProxyPool, ProxyUrl, Request, Session, secs};
use url::Url;

fn set(session: &Session, name: &str, value: &str) {
    session.with_cookies(|jar| jar.set(name, value, "h.test", "/").unwrap());
}

fn text(headers: &Headers, name: &str) -> Option<String> {
    headers.get(name).map(|value| String::from_utf8(value.to_vec()).unwrap())
}

#[test]
fn settings_cookies_and_credentials_are_in_it() {
    let (recipe, _) = plays(vec![Play::status(200)]);
    let session = recipe
        .header("X-Session", "1")
        .param("s", "1")
        .auth(Auth::Bearer("token".into()))
        .build()
        .unwrap();
    set(&session, "sid", "1");
    set(&session, "own", "jar");
    let request =
        Request::new(Method::PUT, "http://h.test/a b#f").param("q", "ü").cookie("own", "2");
    let prepared = session.prepare_request(request.body("text")).unwrap();
    assert_eq!((&prepared.method, prepared.path_url()), (&Method::PUT, "/a%20b?s=1&q=%C3%BC"));
    assert_eq!(prepared.url.as_str(), "http://h.test/a%20b?s=1&q=%C3%BC#f");
    for (name, value) in
        [("x-session", "1"), ("authorization", "Bearer token"), ("cookie", "sid=1; own=2")]
    {
        assert_eq!(text(&prepared.headers, name).as_deref(), Some(value), "{name}");
    }
    let shown = format!("{prepared:?}");
    assert!(
        !shown.contains("token") && !shown.contains("sid=1") && !shown.contains('ü'),
        "{shown}"
    );
}

#[test]
fn it_goes_as_it_stands_through_any_session() {
    let (recipe, script) = plays(vec![Play::status(200)]);
    let (one, other) = (recipe.clone().header("X-One", "1"), recipe.header("X-Other", "1"));
    let (one, other) = (one.build().unwrap(), other.build().unwrap());
    set(&other, "sid", "2");
    let mut prepared = one.post("http://h.test/").body("a").prepare().unwrap();
    prepared.headers.remove("Accept");
    prepared.headers.insert("X-Late", "1").unwrap();
    prepared.url = Url::parse("http://h.test/else").unwrap();
    prepared.body = "changed".into();
    let response = other.send_prepared(prepared.clone()).unwrap();
    let asked = &script.asked()[0];
    assert_eq!((asked.url.path(), asked.body.as_slice()), ("/else", &b"changed"[..]));
    let sent = |name| asked.headers.contains(name);
    assert!(sent("X-One") && sent("X-Late") && !sent("X-Other") && !sent("Accept"));
    // It had no Cookie field, so the session that sends it adds its own.
    assert_eq!(fields(&script, "cookie"), ["sid=2"]);
    assert_eq!(response.request().unwrap().url.path(), "/else");

    prepared.headers.insert("Cookie", "mine=1").unwrap();
    other.send_prepared(prepared).unwrap();
    assert_eq!(fields(&script, "cookie")[1], "mine=1", "a field goes as it is");
}

#[test]
fn what_the_request_overrode_is_carried_along() {
    let (recipe, script) = plays(vec![redirect("/b"), Play::status(200)]);
    let session = recipe.timeout((secs(5.0), secs(25.0))).build().unwrap();
    let request = session.get("http://h.test/a").timeout((secs(1.0), secs(2.0)));
    let prepared = request.allow_redirects(false).prepare().unwrap();
    let response = session.send_prepared(prepared).unwrap();
    assert_eq!(response.status(), 302);
    let limits = script.asked()[0].limits;
    assert_eq!((limits.connect, limits.read), (Some(secs(1.0)), Some(secs(2.0))));
}

#[test]
fn hooks_travel_with_it_and_the_sending_sessions_are_not_asked() {
    let (recipe, _) = plays(vec![Play::status(200)]);
    let marked = recipe
        .clone()
        .response_hook(|response| Ok(with_parts(response, |parts| parts.reason = "one".into())));
    let other = recipe
        .response_hook(|response| Ok(with_parts(response, |parts| parts.reason = "other".into())));
    let (one, other) = (marked.build().unwrap(), other.build().unwrap());
    let prepared = one.get("http://h.test/").prepare().unwrap();
    assert_eq!(other.send_prepared(prepared).unwrap().reason(), "one");
    let bare = one.get("http://h.test/").no_hooks().prepare().unwrap();
    assert_eq!(other.send_prepared(bare).unwrap().reason(), "OK");
}

#[test]
fn a_redirect_of_it_has_its_cookies_made_anew() {
    let (recipe, script) = plays(vec![
        redirect("/b").header("Set-Cookie", "sid=2; Path=/"),
        redirect("http://other.test/"),
        Play::status(200),
    ]);
    let session = recipe.build().unwrap();
    set(&session, "sid", "1");
    let prepared = session.get("http://h.test/a").cookie("own", "3").prepare().unwrap();
    session.send_prepared(prepared).unwrap();
    assert_eq!(fields(&script, "cookie"), ["sid=1; own=3", "sid=2; own=3", "-"]);
}

/// A jar belongs to one way, so its cookies stand in a prepared request only where the way is known.
#[test]
fn the_cookies_are_those_of_the_way_that_is_taken() {
    let proxy: ProxyUrl = "http://proxy.test:8000".parse().unwrap();
    let identity = Identity::of(&proxy);
    let (recipe, script) = plays(vec![Play::status(200)]);
    let pool = ProxyPool::parse("http://proxy.test:8000").unwrap();
    for (recipe, foreseen) in [
        (recipe.clone().proxies(ProxyMap::all(proxy)), Some("sid=proxy")),
        (recipe.clone().proxies(pool.clone()), None),
        (recipe.proxies(pool).proxies_required(false), None),
    ] {
        let session = recipe.build().unwrap();
        set(&session, "sid", "direct");
        session.with_cookies_of(identity, |jar| jar.set("sid", "proxy", "h.test", "/").unwrap());
        let prepared = session.get("http://h.test/").prepare().unwrap();
        assert_eq!(text(&prepared.headers, "cookie").as_deref(), foreseen);
        session.send_prepared(prepared).unwrap();
    }
    assert_eq!(fields(&script, "cookie"), ["sid=proxy"; 3]);
}

#[test]
fn what_cannot_be_sent_is_told() {
    let (recipe, script) = plays(vec![Play::status(200)]);
    let session = recipe.build().unwrap();
    for (url, kind) in [
        ("http://anna:s3cret@h.test/", ErrorKind::InvalidUrl),
        ("http://h.test:0/", ErrorKind::InvalidUrl),
        ("ftp://h.test/", ErrorKind::InvalidScheme),
    ] {
        let mut prepared = session.get("http://h.test/").prepare().unwrap();
        prepared.url = Url::parse(url).unwrap();
        let error = session.send_prepared(prepared).unwrap_err();
        assert_eq!(error.kind(), kind, "{url}");
        assert!(!error.to_string().contains("s3cret"), "{error}");
    }
    let mut prepared = session.get("http://h.test/").prepare().unwrap();
    prepared.cookies.insert("a;b", "1");
    let error = session.send_prepared(prepared).unwrap_err();
    assert_eq!((error.kind(), script.attempts()), (ErrorKind::InvalidHeader, 0));
}

#[test]
fn a_redirect_that_nobody_followed_has_its_request() {
    let (recipe, script) = scripted(|asked, _| match asked.url.path() {
        "/a" => redirect("/b").header("Set-Cookie", "sid=1"),
        "/odd" => redirect("mailto:nobody@h.test"),
        _ => Play::status(200),
    });
    let session = recipe.build().unwrap();
    let post = |path: &str| {
        let request = session.post(format!("http://h.test{path}")).body("x").header("X-Kept", "1");
        request.timeout(secs(3.0)).allow_redirects(false).send().unwrap()
    };
    let response = post("/a");
    let next = response.next().unwrap().clone();
    assert_eq!((&next.method, next.url.as_str()), (&Method::GET, "http://h.test/b"));
    assert!(next.body.is_empty() && next.headers.contains("X-Kept"));
    let last = session.send_prepared(next).unwrap();
    assert_eq!((last.status(), last.next().is_none()), (200, true));
    let asked = &script.asked()[1];
    assert_eq!((&asked.method, asked.limits.read), (&Method::GET, Some(secs(3.0))));
    assert_eq!(fields(&script, "cookie"), ["-", "sid=1"]);

    // A Location that leads nowhere is no error while nobody follows it.
    assert!(post("/odd").is_redirect() && post("/odd").next().is_none());
    let followed = session.get("http://h.test/a").send().unwrap();
    assert!(followed.next().is_none() && followed.history()[0].next().is_none());
}

#[test]
fn a_response_knows_the_request_that_it_answers() {
    let (recipe, _) = plays(vec![redirect("/b").header("Set-Cookie", "sid=1"), Play::status(200)]);
    let session = recipe.build().unwrap();
    let response = session.post("http://h.test/a").body("text").send().unwrap();
    let (first, last) = (response.history()[0].request().unwrap(), response.request().unwrap());
    assert_eq!((&first.method, first.path_url()), (&Method::POST, "/a"));
    assert_eq!(format!("{:?}", first.body), "Bytes(4)");
    assert_eq!((&last.method, last.path_url()), (&Method::GET, "/b"));
    assert_eq!(text(&last.headers, "cookie").as_deref(), Some("sid=1"));
    let made = with_parts(response, location("/c"));
    assert!(made.request().is_none(), "nobody has sent that");
}
