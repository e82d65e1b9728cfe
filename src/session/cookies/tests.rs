use super::*;
use crate::ErrorKind;
use http::HeaderValue;
use proptest::prelude::*;
use std::time::Duration;

const NOW: SystemTime = SystemTime::UNIX_EPOCH;

fn at(seconds: u64) -> SystemTime {
    NOW + Duration::from_secs(1_750_000_000 + seconds)
}

fn url(text: &str) -> Url {
    Url::parse(text).unwrap()
}

fn set(jar: &mut CookieJar, from: &str, lines: &[&[u8]]) {
    let mut headers = HeaderMap::new();
    for line in lines {
        headers.append(header::SET_COOKIE, HeaderValue::from_bytes(line).unwrap());
    }
    jar.store(&url(from), &headers, at(0));
}

fn jar(from: &str, lines: &[&str]) -> CookieJar {
    let mut jar = CookieJar::new();
    let lines: Vec<&[u8]> = lines.iter().map(|line| line.as_bytes()).collect();
    set(&mut jar, from, &lines);
    jar
}

fn sent(jar: &CookieJar, to: &str) -> Option<String> {
    let field = jar.header(&url(to), at(0))?;
    Some(field.into_iter().map(char::from).collect())
}

#[test]
fn values_come_back_byte_for_byte() {
    for (line, wanted) in [
        (&b"a={\"k\":\"v w\",1}"[..], &b"a={\"k\":\"v w\",1}"[..]),
        (b"b=\"x,y\"; Path=/", b"b=\"x,y\""),
        (b"c[id]=1", b"c[id]=1"),
        (b"d=caf\xc3\xa9", b"d=caf\xc3\xa9"),
        (b"d=caf\xe9", b"d=caf\xe9"),
        (b"e=", b"e="),
        (b"=v", b"v"),
        (b"lonely", b"lonely"),
        (b"f=a=b=c", b"f=a=b=c"),
        (b" g = a\tb ;x", b"g=a\tb"),
        (b"h=%20+", b"h=%20+"),
    ] {
        let mut jar = CookieJar::new();
        set(&mut jar, "http://h.test/", &[line]);
        assert_eq!(jar.header(&url("http://h.test/"), at(0)).as_deref(), Some(wanted));
    }
}

#[test]
fn a_path_that_is_given_replaces_the_same_path_by_default() {
    let jar = jar("http://h.test/", &["a=1", "a=2; Path=/"]);
    assert_eq!(sent(&jar, "http://h.test/").as_deref(), Some("a=2"));
    assert_eq!(jar.len(), 1);
}

#[test]
fn lines_that_are_no_cookie_are_ignored() {
    let long = format!("a={}", "x".repeat(4096));
    for line in ["", "; Path=/", "=", " = ; x", "=__Host-a", "__secure-a=1", &long] {
        assert!(jar("http://h.test/", &[line]).is_empty(), "{line:?}");
    }
    // `HeaderValue` refuses control characters; the parser does so too.
    assert!(Cookie::parse(b"a=\x01", &url("http://h.test/"), NOW).is_none());
    assert!(Cookie::parse(b"a=1\x7f", &url("http://h.test/"), NOW).is_none());
}

#[test]
fn domains() {
    for (from, line, to, wanted) in [
        ("http://a.example.co.uk/", "x=1; Domain=co.uk", "http://b.example.co.uk/", false),
        ("http://a.example.co.uk/", "x=1; Domain=uk", "http://a.example.co.uk/", false),
        ("http://a.example.co.uk/", "x=1; Domain=.EXAMPLE.co.uk", "http://b.example.co.uk/", true),
        ("http://a.github.io/", "x=1; Domain=github.io", "http://b.github.io/", false),
        ("http://github.io/", "x=1; Domain=github.io", "http://github.io/", true),
        ("http://github.io/", "x=1; Domain=github.io", "http://b.github.io/", false),
        ("http://a.test/", "x=1; Domain=test", "http://a.test/", false),
        ("http://127.0.0.1/", "x=1; Domain=127.0.0.1", "http://127.0.0.1:81/", true),
        ("http://127.0.0.1/", "x=1; Domain=0.0.1", "http://127.0.0.1/", false),
        ("http://1.127.0.0.1.test/", "x=1; Domain=1", "http://1.127.0.0.1.test/", false),
        ("http://[::1]/", "x=1", "http://[::1]/", true),
        ("http://localhost/", "x=1; Domain=localhost", "http://localhost/", true),
        ("http://h.test/", "x=1", "http://h.test:8080/", true),
        ("http://h.test/", "x=1", "https://h.test/", true),
        ("http://h.test/", "x=1", "http://sub.h.test/", false),
        ("http://h.test/", "x=1; Domain=h.test", "http://sub.h.test/", true),
        ("http://h.test/", "x=1; Domain=", "http://h.test/", true),
        ("http://h.test/", "x=1; Domain=other.test", "http://h.test/", false),
        ("http://h.test/", "x=1; Domain=sub.h.test", "http://h.test/", false),
        ("http://badh.test/", "x=1; Domain=h.test", "http://h.test/", false),
        ("http://b\u{fc}cher.test/", "x=1", "http://xn--bcher-kva.test/", true),
    ] {
        assert_eq!(sent(&jar(from, &[line]), to).is_some(), wanted, "{from} {line} {to}");
    }
}

#[test]
fn paths_and_order() {
    let jar = jar(
        "http://h.test/a/b",
        &["new=1", "root=2; Path=/", "deep=3; Path=/a/b", "odd=4; Path=x", "old=5; Path=/a"],
    );
    assert_eq!(sent(&jar, "http://h.test/a/b").unwrap(), "deep=3; new=1; odd=4; old=5; root=2");
    assert_eq!(sent(&jar, "http://h.test/a").unwrap(), "new=1; odd=4; old=5; root=2");
    assert_eq!(sent(&jar, "http://h.test/ab").unwrap(), "root=2");
}

#[test]
fn lives() {
    for (line, alive) in [
        ("a=1; Max-Age=10", true),
        ("a=1; Max-Age=0", false),
        ("a=1; Max-Age=-1", false),
        ("a=1; Max-Age=x", true),
        ("a=1; Max-Age=99999999999999999999999", true),
        ("a=1; Max-Age=10; Expires=Thu, 01 Jan 1970 00:00:00 GMT", true),
        ("a=1; Expires=Thu, 01 Jan 1970 00:00:00 GMT; Max-Age=10", true),
        ("a=1; Expires=Thu, 01 Jan 1970 00:00:00 GMT", false),
        ("a=1; Expires=junk", true),
    ] {
        assert_eq!(jar("http://h.test/", &[line]).len() == 1, alive, "{line}");
    }
    let ten = jar("http://h.test/", &["a=1; Max-Age=10"]);
    let target = url("http://h.test/");
    assert!(ten.header(&target, at(9)).is_some() && ten.header(&target, at(10)).is_none());
    let long = jar("http://h.test/", &["a=1; Max-Age=99999999999"]);
    assert_eq!(long.iter().next().unwrap().expires(), Some(at(400 * 86_400)));
    // An expired line removes what it names.
    let mut jar = jar("http://h.test/", &["a=1", "b=2"]);
    set(&mut jar, "http://h.test/", &[b"a=; Max-Age=0"]);
    assert_eq!((sent(&jar, "http://h.test/").as_deref(), jar.len()), (Some("b=2"), 1));
}

#[test]
fn secure_cookies_and_prefixes() {
    let (plain, tls) = ("http://h.test/", "https://h.test/");
    for (from, line, kept) in [
        (plain, "a=1; Secure", false),
        (tls, "a=1; Secure", true),
        (plain, "__Secure-a=1", false),
        (tls, "__Secure-a=1", false),
        (tls, "__SECURE-a=1; Secure", true),
        (tls, "__Host-a=1; Secure; Path=/", true),
        (tls, "__Host-a=1; Secure", false),
        (tls, "__Host-a=1; Secure; Path=/x", false),
        (tls, "__Host-a=1; Secure; Path=/; Domain=h.test", false),
        (tls, "__host-a=1; Path=/", false),
    ] {
        assert_eq!(!jar(from, &[line]).is_empty(), kept, "{from} {line}");
    }
    let mut jar = jar(tls, &["a=1; Secure; Path=/x"]);
    assert_eq!(sent(&jar, "http://h.test/x"), None);
    set(&mut jar, plain, &[b"a=2; Path=/x/y", b"a=3; Path=/", b"b=4"]);
    assert_eq!(sent(&jar, "https://h.test/x/y").unwrap(), "a=1; a=3; b=4");
}

#[test]
fn replacing_keeps_the_age() {
    let mut jar = jar("http://h.test/", &["a=1", "b=2"]);
    set(&mut jar, "http://h.test/", &[b"a=3"]);
    assert_eq!(sent(&jar, "http://h.test/").unwrap(), "a=3; b=2");
    // A domain cookie is another one.
    set(&mut jar, "http://h.test/", &[b"a=4; Domain=h.test"]);
    assert_eq!(sent(&jar, "http://h.test/").unwrap(), "a=3; b=2; a=4");
}

#[test]
fn the_least_recently_used_of_a_domain_goes_first() {
    let mut jar = CookieJar::new();
    set(&mut jar, "https://h.test/", &[b"secure=1; Secure", b"first=1; Path=/used"]);
    for index in 0..PER_DOMAIN - 2 {
        set(&mut jar, "https://h.test/", &[format!("c{index}=1").as_bytes()]);
    }
    assert_eq!(jar.len(), PER_DOMAIN);
    assert!(sent(&jar, "https://h.test/used").unwrap().starts_with("first=1; secure=1; c0=1"));
    set(&mut jar, "https://h.test/", &[b"late=1"]);
    let names: Vec<_> = jar.iter().map(|cookie| cookie.name().to_vec()).collect();
    assert_eq!(jar.len(), PER_DOMAIN);
    assert!(names.contains(&b"secure".to_vec()) && names.contains(&b"late".to_vec()));
    // Another host of the same owner has its own bound.
    set(&mut jar, "https://sub.h.test/", &[b"own=1"]);
    assert_eq!(jar.len(), PER_DOMAIN + 1);
}

#[test]
fn the_jar_is_bounded_and_keeps_what_is_used() {
    let mut jar = jar("http://kept.test/", &["k=1"]);
    for host in 0..20_000 {
        set(&mut jar, &format!("http://h{host}.test/"), &[b"a=1", b"b=2; Max-Age=1"]);
        assert!(jar.len() <= IN_ALL);
        assert!(sent(&jar, "http://kept.test/").is_some(), "{host}");
    }
    assert_eq!(jar.len(), jar.iter().count());
    assert!(sent(&jar, "http://h19999.test/").is_some());
    assert!(sent(&jar, "http://h0.test/").is_none());
    assert!(jar.owners.values().all(|site| !site.cookies.is_empty()));
}

#[test]
fn cookies_of_the_user() {
    let mut jar = CookieJar::new();
    jar.set("a", "x y", ".h.test", "/").unwrap();
    jar.set("b", "2", "sub.h.test", "/p").unwrap();
    jar.set("c", "3", "127.0.0.1", "/").unwrap();
    assert_eq!(sent(&jar, "http://sub.h.test/p").unwrap(), "b=2; a=x y");
    assert_eq!(sent(&jar, "http://h.test/p").unwrap(), "a=x y");
    assert_eq!(sent(&jar, "http://127.0.0.1/").unwrap(), "c=3");
    for (name, value, domain, path) in [
        ("", "s3cret", "h.test", "/"),
        ("a=b", "s3cret", "h.test", "/"),
        ("a", "s3cret;x", "h.test", "/"),
        ("a", "s3cret\r\n", "h.test", "/"),
        ("a", "s3cret", "", "/"),
        ("a", "s3cret", "h.test/x", "/"),
        ("a", "s3cret", "h.test", "x"),
    ] {
        let error = jar.set(name, value, domain, path).unwrap_err();
        assert!(error.kind() == ErrorKind::Config && !error.message().contains("s3cret"));
    }
    assert_eq!(jar.len(), 3);
    assert!(!format!("{jar:?}").contains("x y"));
    jar.clear();
    assert!(jar.is_empty() && sent(&jar, "http://h.test/").is_none());
}

proptest! {
    #[test]
    fn any_line_is_a_cookie_or_ignored(
        lines in proptest::collection::vec(
            "[ab_=; ]{0,12}|(a|__Host-)=.{0,8}; ?(Path|Domain|Max-Age|Expires|Secure)=?[a-z0-9./ :-]{0,24}",
            0..5,
        ),
        host in "[a-z]{1,3}(\\.(co\\.uk|com|test|[a-z]))?|127\\.0\\.0\\.1|\\[::1\\]",
    ) {
        let mut jar = CookieJar::new();
        let from = format!("https://{host}/a/b");
        let mut headers = HeaderMap::new();
        for line in &lines {
            if let Ok(value) = HeaderValue::from_bytes(line.as_bytes()) {
                headers.append(header::SET_COOKIE, value);
            }
        }
        jar.store(&url(&from), &headers, at(0));
        prop_assert!(jar.len() <= lines.len());
        prop_assert_eq!(jar.len(), jar.iter().count());
        let field = jar.header(&url(&from), at(0)).unwrap_or_default();
        prop_assert!(!field.iter().any(|byte| matches!(byte, b'\r' | b'\n' | 0)));
        // A site below another owner gets nothing.
        prop_assert_eq!(jar.header(&url("https://elsewhere.example/a/b"), at(0)), None);
    }
}
