use super::*;
use crate::error::ErrorKind;
use crate::message::{Auth, Headers, Request, prepare};
use http::HeaderValue;
use proptest::prelude::*;

fn head(location: &[u8]) -> HeaderMap {
    let mut headers = HeaderMap::new();
    headers.insert(header::LOCATION, HeaderValue::from_bytes(location).unwrap());
    headers
}

fn from(method: Method, url: &str, fields: &[(&str, &str)]) -> Prepared {
    let settings = Settings { headers: Headers::new(), ..Settings::default() };
    let mut request = Request::new(method, url).body("x=1");
    for (name, value) in fields {
        request = request.header(*name, *value);
    }
    prepare(&settings, &request).unwrap()
}

fn hop(url: &str, location: &[u8]) -> Result<Option<Prepared>, Error> {
    follow(&from(Method::GET, url, &[]), 302, &head(location), RedirectRules::default())
}

#[test]
fn locations_are_joined_and_repaired() {
    let base = "http://127.0.0.1:81/b/r-query?old=1#top";
    for (location, wanted) in [
        (&b"/b/ok?q=a b"[..], "http://127.0.0.1:81/b/ok?q=a%20b#top"),
        (b"/b/ok?q={a}|^\"<>", "http://127.0.0.1:81/b/ok?q=%7Ba%7D%7C%5E%22%3C%3E#top"),
        (b"/b/ok?q=caf\xc3\xa9", "http://127.0.0.1:81/b/ok?q=caf%C3%A9#top"),
        (b"/b/ok?q=\xe9", "http://127.0.0.1:81/b/ok?q=%E9#top"),
        (b"?x=1", "http://127.0.0.1:81/b/r-query?x=1#top"),
        (b"../../../../b/ok", "http://127.0.0.1:81/b/ok#top"),
        (b"//127.0.0.1:82/b/ok", "http://127.0.0.1:82/b/ok#top"),
        (b"/a/../b/ok#own", "http://127.0.0.1:81/b/ok#own"),
        (b"\\b\\ok", "http://127.0.0.1:81/b/%5Cb%5Cok#top"),
        (b"\\\\evil.test\\x", "http://127.0.0.1:81/b/%5C%5Cevil.test%5Cx#top"),
        (b"///evil.test/x", "http://127.0.0.1:81/evil.test/x#top"),
        (b"////evil.test/x", "http://127.0.0.1:81//evil.test/x#top"),
        (b"/%2e%2e//evil.test", "http://127.0.0.1:81//evil.test#top"),
        (b"http:evil.test", "http://127.0.0.1:81/evil.test#top"),
        (b"http:/evil.test", "http://127.0.0.1:81/evil.test#top"),
        (b"http:a:b@evil.test", "http://127.0.0.1:81/a:b@evil.test#top"),
        (b"1:b@evil.test", "http://127.0.0.1:81/b/1:b@evil.test#top"),
        (b"http://u:p@other.test/?#", "http://other.test/#top"),
        (b"HTTPS://B\xc3\xbccher.example", "https://xn--bcher-kva.example/#top"),
    ] {
        let next = hop(base, location).unwrap().unwrap();
        assert_eq!(next.url.as_str(), wanted, "{}", String::from_utf8_lossy(location));
    }
}

#[test]
fn what_cannot_be_followed_is_typed() {
    for (location, kind) in [
        (&b"ftp://h/"[..], ErrorKind::InvalidScheme),
        (b"mailto:a@example.com", ErrorKind::InvalidScheme),
        (b"file:///etc/passwd", ErrorKind::InvalidScheme),
        (b"javascript:alert(1)", ErrorKind::InvalidScheme),
        (b"data:text/plain,hi", ErrorKind::InvalidScheme),
        (b"socks5://127.0.0.1:1/b/ok", ErrorKind::InvalidScheme),
        (b"http://256.1.1.1/", ErrorKind::InvalidUrl),
        (b"http://127.0.0.1:99999/", ErrorKind::InvalidUrl),
        (b"http://1.2.3.4.5/", ErrorKind::InvalidUrl),
        (b"http://xn--/", ErrorKind::InvalidUrl),
        (b"http://*.a/", ErrorKind::InvalidUrl),
        (b"http://[::1", ErrorKind::InvalidUrl),
        (b"http://h:0/", ErrorKind::InvalidUrl),
        (b"https://", ErrorKind::InvalidUrl),
        (b"https:path", ErrorKind::InvalidUrl),
        (b"http://exa mple.com/", ErrorKind::InvalidUrl),
    ] {
        let error = hop("http://127.0.0.1/", location).unwrap_err();
        assert_eq!(error.kind(), kind, "{}", String::from_utf8_lossy(location));
    }
}

#[test]
fn other_statuses_and_missing_locations_are_responses() {
    let previous = from(Method::GET, "http://h/", &[]);
    for status in [200, 201, 300, 304, 305, 306, 399] {
        let next = follow(&previous, status, &head(b"/x"), RedirectRules::default());
        assert!(next.unwrap().is_none(), "{status}");
    }
    assert!(hop("http://h/", b"").unwrap().is_none());
    assert!(!is_redirect(302, &HeaderMap::new()));
    let none = follow(&previous, 302, &HeaderMap::new(), RedirectRules::default());
    assert!(none.unwrap().is_none());
}

#[test]
fn method_and_body_per_status() {
    for (status, method, wanted, body) in [
        (301, Method::POST, Method::GET, false),
        (301, Method::PUT, Method::PUT, false),
        (302, Method::PUT, Method::GET, false),
        (302, Method::HEAD, Method::HEAD, false),
        (303, Method::DELETE, Method::GET, false),
        (303, Method::HEAD, Method::HEAD, false),
        (307, Method::POST, Method::POST, true),
        (308, Method::DELETE, Method::DELETE, true),
    ] {
        let previous = from(method.clone(), "http://h/", &[("Content-Type", "text/x")]);
        let next = follow(&previous, status, &head(b"/n"), RedirectRules::default());
        let next = next.unwrap().unwrap();
        assert_eq!(next.method, wanted, "{status} {method}");
        assert_eq!(!next.body.is_empty(), body, "{status} {method}");
        assert_eq!(next.headers.contains("Content-Type"), body, "{status} {method}");
    }
}

#[test]
fn credentials_stay_with_their_origin() {
    let secrets = ["X-Api-Key".to_owned()];
    let rules = RedirectRules { secret_headers: &secrets, ..RedirectRules::default() };
    let fields = [
        ("Authorization", "a"),
        ("X-Api-Key", "k"),
        ("Cookie", "c=1"),
        ("Proxy-Authorization", "p"),
        ("Host", "virtual.test"),
        ("X-Plain", "1"),
    ];
    for (first, location, kept) in [
        ("http://h/a", "/b", true),
        ("http://h/a", "http://h:80/b", true),
        ("http://h/a", "https://h/b", true),
        ("http://h:80/a", "https://h:443/b", true),
        ("http://h/a", "http://H/b", true),
        ("https://h/a", "http://h/b", false),
        ("http://h/a", "http://h:8080/b", false),
        ("http://h:8080/a", "https://h/b", false),
        ("http://h/a", "https://h:8443/b", false),
        ("http://h/a", "http://other.test/b", false),
        ("http://h/a", "http://h./b", false),
    ] {
        let mut previous = from(Method::GET, first, &fields);
        previous.auth = Some(Auth::Digest("u".into(), "p".into()));
        let next = follow(&previous, 302, &head(location.as_bytes()), rules).unwrap().unwrap();
        let has = |name| next.headers.contains(name);
        assert_eq!(has("Authorization"), kept, "{first} {location}");
        assert_eq!(next.auth.is_some(), kept, "{first} {location}");
        assert_eq!(has("X-Api-Key"), kept, "{first} {location}");
        assert!(has("X-Plain") && !has("Cookie") && !has("Proxy-Authorization"));
        let same_host = next.url.host() == previous.url.host()
            && next.url.port_or_known_default() == previous.url.port_or_known_default();
        assert_eq!(has("Host"), same_host, "{first} {location}");
    }
}

#[test]
fn dropped_credentials_do_not_come_back_but_netrc_is_asked_per_host() {
    let rules = RedirectRules::default();
    let first = from(Method::GET, "http://h/", &[("Authorization", "a")]);
    let away = follow(&first, 302, &head(b"http://o/"), rules).unwrap().unwrap();
    let back = follow(&away, 302, &head(b"http://h/"), rules).unwrap().unwrap();
    assert!(!back.headers.contains("Authorization"));
    let mut digest = first.clone();
    digest.headers.remove("Authorization");
    digest.auth = Some(Auth::Digest("u".into(), "p".into()));
    let away = follow(&digest, 302, &head(b"http://o/"), rules).unwrap().unwrap();
    assert_eq!(follow(&away, 302, &head(b"http://h/"), rules).unwrap().unwrap().auth, None);

    let netrc = Netrc::parse("machine o login u password p").unwrap();
    let rules = RedirectRules { netrc: Some(&netrc), ..rules };
    let within = follow(&digest, 302, &head(b"/b"), rules).unwrap().unwrap();
    assert!(within.auth.is_some() && !within.headers.contains("Authorization"));
    let away = follow(&first, 302, &head(b"http://o/"), rules).unwrap().unwrap();
    assert_eq!(away.headers.get("Authorization"), Some(&b"Basic dTpw"[..]));
    let back = follow(&away, 302, &head(b"http://h/"), rules).unwrap().unwrap();
    assert!(!back.headers.contains("Authorization"));
}

proptest! {
    #[test]
    fn any_location_leads_to_http_or_fails_without_a_panic(
        location in proptest::collection::vec(
            prop_oneof![any::<u8>(), proptest::sample::select(b"/\\:.#?@[]%ahtp".to_vec())], 0..40,
        ),
    ) {
        let Ok(value) = HeaderValue::from_bytes(&location) else { return Ok(()) };
        let mut headers = HeaderMap::new();
        headers.insert(header::LOCATION, value);
        let previous = from(Method::GET, "https://host.test:8443/a/b?c#d", &[]);
        if let Ok(Some(next)) = follow(&previous, 302, &headers, RedirectRules::default()) {
            prop_assert!(matches!(next.url.scheme(), "http" | "https"));
            prop_assert!(next.url.has_host() && next.url.username().is_empty());
        }
    }
}
