use super::*;
use crate::message::{Netrc, Setting};
use proptest::prelude::*;
use std::sync::Arc;

fn pairs(list: &[(&str, &str)]) -> Vec<(String, String)> {
    list.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

fn lines(prepared: &Prepared) -> Vec<String> {
    let text = |(name, value): (&str, &[u8])| format!("{name}: {}", String::from_utf8_lossy(value));
    prepared.headers.iter().map(text).collect()
}

fn bare() -> Settings {
    Settings { headers: Headers::new(), ..Settings::default() }
}

fn authorization(settings: &Settings, request: &Request) -> Option<String> {
    let prepared = prepare(settings, request).unwrap();
    prepared.headers.get("Authorization").map(|value| String::from_utf8_lossy(value).into_owned())
}

#[test]
fn urls_are_trimmed_and_encoded() {
    for (given, wanted) in [
        (" http://127.0.0.1:81/b/ok\n", "http://127.0.0.1:81/b/ok"),
        ("http://h/a b", "http://h/a%20b"),
        ("http://h/?q=café", "http://h/?q=caf%C3%A9"),
        ("http://h/%zz", "http://h/%25zz"),
        ("http://h/[{}|]", "http://h/%5B%7B%7D%7C%5D"),
        ("http://h/a\\b\tc\nd", "http://h/a%5Cb%09c%0Ad"),
        ("http://h\\@evil.test/", "http://h/%5C@evil.test/"),
        ("HTTP://LOCALHOST?x", "http://localhost/?x"),
        ("http://h/?#", "http://h/"),
        ("http://exämple.test/", "http://xn--exmple-cua.test/"),
        ("http://faß.de/", "http://xn--fa-hia.de/"),
        ("http://a_b.test/", "http://a_b.test/"),
        ("http://[2001:DB8::1]:80/", "http://[2001:db8::1]/"),
        ("https://h:0443/", "https://h/"),
    ] {
        assert_eq!(prepare_url(given, &[]).unwrap().as_str(), wanted, "{given:?}");
    }
}

#[test]
fn parameters_follow_those_of_the_url() {
    let params = pairs(&[("a", "b c"), ("é", "~*"), ("empty", "")]);
    let url = prepare_url("http://h/p?x=1#top", &params).unwrap();
    assert_eq!(url.as_str(), "http://h/p?x=1&a=b+c&%C3%A9=~%2A&empty=#top");
    assert_eq!(
        prepare_url("http://h?", &params).unwrap().query(),
        Some("a=b+c&%C3%A9=~%2A&empty=")
    );
    let settings = Settings { params: pairs(&[("s", "1")]), ..bare() };
    let request = Request::new(Method::GET, "http://h/?u=0").param("r", "2");
    assert_eq!(prepare(&settings, &request).unwrap().url.query(), Some("u=0&s=1&r=2"));
}

#[test]
fn unusable_urls_are_sorted_by_kind() {
    let long = format!("http://{}.test/", "x".repeat(64));
    let longer = format!("http://{}test/", "x.".repeat(130));
    for (given, kind) in [
        ("", ErrorKind::MissingScheme),
        ("example.com/x", ErrorKind::MissingScheme),
        ("//example.com:80/x", ErrorKind::MissingScheme),
        ("/a:b", ErrorKind::MissingScheme),
        ("localhost:8080/x", ErrorKind::InvalidScheme),
        ("ftp://h/", ErrorKind::InvalidScheme),
        ("socks5://h/", ErrorKind::InvalidScheme),
        ("mailto:a@b", ErrorKind::InvalidScheme),
        ("http:h", ErrorKind::InvalidUrl),
        ("http:/h", ErrorKind::InvalidUrl),
        ("http:///h", ErrorKind::InvalidUrl),
        ("http://user@/x", ErrorKind::InvalidUrl),
        ("http://256.1.1.1/", ErrorKind::InvalidUrl),
        ("http://1.2.3.4.5/", ErrorKind::InvalidUrl),
        ("http://h:99999/", ErrorKind::InvalidUrl),
        ("http://h:0/", ErrorKind::InvalidUrl),
        ("http://h:-1/", ErrorKind::InvalidUrl),
        ("http://xn--/", ErrorKind::InvalidUrl),
        ("http://a..b/", ErrorKind::InvalidUrl),
        ("http://*.a/", ErrorKind::InvalidUrl),
        // Word joiners count for nothing in a name.
        ("http://\u{2060}\u{2060}*/", ErrorKind::InvalidUrl),
        ("http://a\tb/", ErrorKind::InvalidUrl),
        (&long, ErrorKind::InvalidUrl),
        (&longer, ErrorKind::InvalidUrl),
    ] {
        assert_eq!(prepare_url(given, &[]).unwrap_err().kind(), kind, "{given:?}");
    }
}

#[test]
fn errors_show_no_credentials() {
    for url in ["ftp://usr:hunter2@h/", "usr:hunter2@h", "http://usr:hunter2@h:99999/"] {
        let error = prepare_url(url, &[]).unwrap_err();
        let text = format!("{error} {error:?}");
        assert!(!text.contains("hunter2") && !text.contains("usr"), "{text}");
    }
}

#[test]
fn userinfo_is_decoded_once_and_leaves_the_url() {
    let request = Request::new(Method::GET, "http://us%20er:p%40ss@127.0.0.1/");
    let prepared = prepare(&bare(), &request).unwrap();
    assert_eq!(prepared.url.as_str(), "http://127.0.0.1/");
    assert_eq!(lines(&prepared), ["Authorization: Basic dXMgZXI6cEBzcw=="]);
    for (url, wanted) in [
        ("http://u@h/", None),
        ("http://:@h/", None),
        ("http://:p@h/", Some("Basic OnA=")),
        ("http://u:@h/", Some("Basic dTo=")),
        ("http://u:p@w@h/", Some("Basic dTpwQHc=")),
    ] {
        let request = Request::new(Method::GET, url);
        assert_eq!(authorization(&bare(), &request).as_deref(), wanted, "{url}");
    }
}

#[test]
fn the_nearest_credentials_win() {
    let netrc = Some(Arc::new(Netrc::parse("machine h login n password n").unwrap()));
    let session = Settings { netrc, ..bare() };
    let basic = |text: &str| Auth::Basic(text.into(), text.into()).header().unwrap();
    let plain = Request::new(Method::GET, "http://h/");
    assert_eq!(authorization(&session, &plain), basic("n"));
    let in_url = Request::new(Method::GET, "http://u:u@h/");
    assert_eq!(authorization(&session, &in_url), basic("u"));
    let in_field = in_url.clone().header("authorization", "mine");
    assert_eq!(authorization(&session, &in_field).as_deref(), Some("mine"));
    let explicit = in_field.clone().basic_auth("e", "e");
    assert_eq!(authorization(&session, &explicit), basic("e"));
    let of_session = Settings { auth: Some(Auth::Bearer("s".into())), ..session.clone() };
    assert_eq!(authorization(&of_session, &in_field).as_deref(), Some("Bearer s"));
    // What each attempt makes anew takes the place of all others too, though not of the field that
    // a custom one may have left to its user.
    let digest = in_field.clone().digest_auth("d", "d");
    let prepared = prepare(&of_session, &digest).unwrap();
    assert_eq!(prepared.auth, Some(Auth::Digest("d".into(), "d".into())));
    assert!(!prepared.headers.contains("Authorization"));
    let mut without = plain.clone();
    without.overrides.auth = Setting::Unset;
    assert_eq!(authorization(&of_session, &without), None);
}

#[test]
fn fields_of_the_request_take_the_place_of_the_sessions() {
    let mut headers = Headers::new();
    for (name, value) in [("User-Agent", "s"), ("Accept", "*/*"), ("X-Keep", "k")] {
        headers.append(name, value).unwrap();
    }
    let session = Settings { headers, ..Settings::default() };
    let request = Request::new(Method::GET, "http://h/")
        .header("X-First", "1")
        .header("ACCEPT", "text/html")
        .remove_header("user-agent")
        .add_header("X-Many", "a")
        .add_header("x-many", "b")
        .header("Content-Length", "99");
    let prepared = prepare(&session, &request).unwrap();
    assert_eq!(
        lines(&prepared),
        ["ACCEPT: text/html", "X-Keep: k", "X-First: 1", "X-Many: a", "x-many: b"]
    );
    assert_eq!(
        lines(&prepare(&session, &Request::new(Method::GET, "http://h/")).unwrap()).len(),
        3
    );
    let bad = Request::new(Method::GET, "http://h/").header("X", "a\r\nb");
    assert_eq!(prepare(&session, &bad).unwrap_err().kind(), ErrorKind::InvalidHeader);
}

#[test]
fn a_body_brings_its_type_unless_one_is_given() {
    let form = Request::new(Method::POST, "http://h/").form([("a", "1 2"), ("b", "ü")]);
    let prepared = prepare(&bare(), &form).unwrap();
    assert_eq!(lines(&prepared), ["Content-Type: application/x-www-form-urlencoded"]);
    assert!(matches!(&prepared.body, Body::Bytes(body) if body == "a=1+2&b=%C3%BC"));
    let json = Request::new(Method::POST, "http://h/").json(&[1, 2]).unwrap();
    assert_eq!(lines(&prepare(&bare(), &json).unwrap()), ["Content-Type: application/json"]);
    let own = json.header("content-type", "application/vnd.api+json");
    assert_eq!(lines(&prepare(&bare(), &own).unwrap()), ["content-type: application/vnd.api+json"]);
}

proptest! {
    #[test]
    fn any_text_prepares_or_fails_without_a_panic(
        url in "(http(s)?://)?.{0,40}|https?://[a-z0-9.:@\\[\\]%/?#\\\\ -]{0,30}",
        name in ".{0,5}",
        value in ".{0,5}",
    ) {
        if let Ok(url) = prepare_url(&url, &[(name, value)]) {
            prop_assert!(url.as_str().is_ascii() && url.has_host());
            prop_assert!(url.username().is_empty() && url.password().is_none());
            prop_assert!(!url.as_str().contains(|char: char| char.is_ascii_control() || char == ' '));
            // What was prepared once stays as it is.
            prop_assert_eq!(prepare_url(url.as_str(), &[]).unwrap(), url);
        }
    }
}
