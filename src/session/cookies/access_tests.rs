use super::*;
use crate::ErrorKind;
use std::time::Duration;

fn jar() -> CookieJar {
    let mut jar = CookieJar::new();
    jar.set("a", "1", ".h.test", "/").unwrap();
    jar.set("a", "2", "h.test", "/p").unwrap();
    jar.set("a", "3", "sub.h.test", "/").unwrap();
    jar.set("b", "4", "other.test", "/").unwrap();
    jar
}

#[test]
fn of_several_cookies_of_a_name_none_is_taken_by_chance() {
    let jar = jar();
    let value = |name: &str, domain, path| {
        jar.get(name, domain, path).map(|found| found.map(|cookie| cookie.value().to_vec()))
    };
    assert_eq!(value("b", None, None).unwrap(), Some(b"4".to_vec()));
    assert_eq!(value("c", None, None).unwrap(), None);
    assert_eq!(value("B", None, None).unwrap(), None);
    for (domain, path, wanted) in [
        (Some("sub.h.test"), None, Some("3")),
        (Some("SUB.H.test"), Some("/"), Some("3")),
        (Some(".h.test"), None, Some("1")),
        (Some("h.test"), Some("/p"), Some("2")),
        (None, Some("/p"), Some("2")),
        (Some("test"), None, None),
        (Some(""), None, None),
        (Some("other.test"), None, None),
        (None, Some("/x"), None),
    ] {
        let found = value("a", domain, path).unwrap();
        assert_eq!(found.as_deref(), wanted.map(str::as_bytes), "{domain:?} {path:?}");
    }
    for (domain, path, words) in [
        (None, None, "3 cookies are named \"a\": for .h.test/, h.test/p, sub.h.test/; name"),
        (Some("h.test"), None, "2 cookies are named \"a\": for .h.test/, h.test/p; name"),
        (None, Some("/"), "2 cookies are named \"a\": for .h.test/, sub.h.test/; name"),
    ] {
        let error = value("a", domain, path).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Config);
        assert!(error.message().contains(words), "{error}");
    }
}

#[test]
fn removing_by_name_domain_and_path() {
    for (name, domain, path, gone) in [
        ("a", None, None, 3),
        ("a", Some("h.test"), None, 2),
        ("a", Some(".h.test"), None, 1),
        ("a", None, Some("/p"), 1),
        ("a", Some("b\u{fc}cher.test"), None, 0),
        ("c", None, None, 0),
    ] {
        let mut jar = jar();
        assert_eq!(jar.remove(name, domain, path), gone, "{name} {domain:?} {path:?}");
        assert_eq!((jar.len(), jar.iter().count()), (4 - gone, 4 - gone));
    }
    let mut jar = jar();
    jar.retain(|cookie| cookie.domain() != "h.test");
    assert_eq!(jar.items().collect::<Vec<_>>(), [(&b"a"[..], &b"3"[..]), (b"b", b"4")]);
    jar.clear();
    assert!(jar.is_empty() && jar.iter().next().is_none() && jar.owners.is_empty());
}

#[test]
fn a_cookie_takes_the_place_of_its_like_and_keeps_its_age() {
    let mut jar = jar();
    jar.set("a", "new", ".h.test", "/").unwrap();
    let mut other = CookieJar::new();
    other.set("z", "5", "h.test", "/").unwrap();
    other.set("a", "newer", "sub.h.test", "/").unwrap();
    jar.update(&other);
    let values: Vec<_> = jar.items().map(|(_, value)| value.to_vec()).collect();
    assert_eq!(values, [&b"new"[..], b"2", b"newer", b"4", b"5"]);
}

#[test]
fn what_is_over_is_no_cookie() {
    let at = |seconds| SystemTime::UNIX_EPOCH + Duration::from_secs(seconds);
    let mut jar = jar();
    let cookie = Cookie::new("over", "x", "h.test").unwrap().with_expires(at(5));
    jar.set_cookie(cookie).unwrap();
    jar.remove_expired(at(4));
    assert_eq!(jar.len(), 5);
    jar.remove_expired(at(5));
    assert_eq!(jar.len(), 4);
}

#[test]
fn a_cookie_of_ones_own_keeps_to_the_rules_of_servers() {
    for (domain, words) in [
        ("", "names no host"),
        (".", "names no host"),
        ("h.test/x", "is no host"),
        ("u@h.test", "is no host"),
        ("h.test:80", "is no host"),
        ("127.1", "is no host"),
        ("a..test", "is no host"),
        ("..h.test", "is no host"),
        ("h.test..", "is no host"),
        ("b\u{fc}cher.test/x", "is no host"),
        ("%68.test", "is no host"),
        ("a b", "is no host"),
        (".co.uk", "unrelated sites"),
        (".test", "unrelated sites"),
        (".github.io", "unrelated sites"),
    ] {
        let error = Cookie::new("a", "s3cret", domain).unwrap_err();
        assert!(error.kind() == ErrorKind::Config && error.message().contains(words), "{error}");
        assert!(!error.message().contains("s3cret"));
    }
    for domain in ["co.uk", "localhost", "127.0.0.1", "::1", "[::1]", "b\u{fc}cher.test", "H.TEST"]
    {
        Cookie::new("a", "1", domain).unwrap_or_else(|error| panic!("{domain}: {error}"));
    }
    let cookie = |name: &str, value: &str| Cookie::new(name, value, "h.test");
    for (name, value) in [
        ("", "s3cret"),
        ("a=b", "s3cret"),
        ("a", "s3cret;x"),
        ("a", "s3cret\r\nX: y"),
        ("a", "s3cret\0"),
        (" a", "s3cret"),
        ("a", "s3cret "),
        ("a", "\ts3cret"),
    ] {
        let error = cookie(name, value).unwrap_err();
        assert!(!error.message().contains("s3cret"), "{error}");
    }
    assert!(cookie("a", &"x".repeat(4095)).is_ok() && cookie("a", &"x".repeat(4096)).is_err());
    for path in ["", "x", "/a;b", "/a\n"] {
        assert!(cookie("a", "1").unwrap().with_path(path).is_err(), "{path:?}");
    }
    let mut jar = CookieJar::new();
    for (name, domain, path, secure, fine) in [
        ("__Secure-a", "h.test", "/", false, false),
        ("__secure-a", ".h.test", "/x", true, true),
        ("__Host-a", "h.test", "/", false, false),
        ("__Host-a", ".h.test", "/", true, false),
        ("__Host-a", "h.test", "/x", true, false),
        ("__Host-a", "h.test", "/", true, true),
    ] {
        let cookie = Cookie::new(name, "1", domain).unwrap().with_path(path).unwrap();
        let result = jar.set_cookie(cookie.with_secure(secure));
        assert_eq!(result.is_ok(), fine, "{name} {domain} {path} {secure}");
    }
}
