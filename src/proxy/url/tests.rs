use super::*;
use proptest::prelude::*;

/// scheme, host, port, credentials
type Parts<'a> = (&'a str, &'a str, u16, Option<(&'a str, &'a str)>);

#[test]
fn every_spelling() {
    let table: &[(&str, Parts<'_>)] = &[
        ("http://10.0.0.1:8000", ("http", "10.0.0.1", 8000, None)),
        ("HTTP://Proxy.Example:8000/", ("http", "proxy.example", 8000, None)),
        ("https://proxy.example", ("https", "proxy.example", 443, None)),
        ("http://proxy.example", ("http", "proxy.example", 80, None)),
        ("socks://proxy.example", ("socks5", "proxy.example", 1080, None)),
        ("socks4://u@10.0.0.1", ("socks4", "10.0.0.1", 1080, Some(("u", "")))),
        ("socks4a://10.0.0.1:9", ("socks4a", "10.0.0.1", 9, None)),
        ("socks5://10.0.0.1", ("socks5", "10.0.0.1", 1080, None)),
        ("Socks5h://u:p@proxy:99", ("socks5h", "proxy", 99, Some(("u", "p")))),
        ("127.0.0.1:1 ", ("http", "127.0.0.1", 1, None)),
        ("\t proxy:3128\r\n", ("http", "proxy", 3128, None)),
        ("proxy", ("http", "proxy", 80, None)),
        ("10.0.0.1:8000:user:pass", ("http", "10.0.0.1", 8000, Some(("user", "pass")))),
        ("10.0.0.1:8000:user:", ("http", "10.0.0.1", 8000, Some(("user", "")))),
        ("10.0.0.1:8000:user:a:b:c", ("http", "10.0.0.1", 8000, Some(("user", "a:b:c")))),
        ("10.0.0.1:8000:user:p@ss", ("http", "10.0.0.1", 8000, Some(("user", "p@ss")))),
        ("10.0.0.1:8000:user:p/s#s?", ("http", "10.0.0.1", 8000, Some(("user", "p/s#s?")))),
        ("10.0.0.1:8000:user:ends/", ("http", "10.0.0.1", 8000, Some(("user", "ends/")))),
        ("gate.example:7777:user:pass", ("http", "gate.example", 7777, Some(("user", "pass")))),
        ("proxy:3128:user:pass", ("http", "proxy", 3128, Some(("user", "pass")))),
        ("proxy:3128:user:pass:word", ("http", "proxy", 3128, Some(("user", "pass:word")))),
        ("[::1]:8080:user:pass", ("http", "::1", 8080, Some(("user", "pass")))),
        ("socks5://10.0.0.1:8000:user:pass", ("socks5", "10.0.0.1", 8000, Some(("user", "pass")))),
        ("user:pass@10.0.0.1:8000", ("http", "10.0.0.1", 8000, Some(("user", "pass")))),
        ("user:pass@proxy", ("http", "proxy", 80, Some(("user", "pass")))),
        ("user:12345@proxy:3128", ("http", "proxy", 3128, Some(("user", "12345")))),
        ("first.last:12345@proxy:3128", ("http", "proxy", 3128, Some(("first.last", "12345")))),
        ("http://[2001:DB8::1]:8080", ("http", "2001:db8::1", 8080, None)),
        ("http://u:p@[::1]", ("http", "::1", 80, Some(("u", "p")))),
        ("[::1]:8080", ("http", "::1", 8080, None)),
        ("[::1]", ("http", "::1", 80, None)),
        ("http://b\u{fc}cher.example:80", ("http", "xn--bcher-kva.example", 80, None)),
        // Special characters in the password, recovered at the last `@`.
        ("http://user:p#ss@127.0.0.1:80", ("http", "127.0.0.1", 80, Some(("user", "p#ss")))),
        ("http://user:p/ss@127.0.0.1:80", ("http", "127.0.0.1", 80, Some(("user", "p/ss")))),
        ("http://user:p?ss@127.0.0.1:80", ("http", "127.0.0.1", 80, Some(("user", "p?ss")))),
        ("http://u:p@ss@127.0.0.1:80", ("http", "127.0.0.1", 80, Some(("u", "p@ss")))),
        ("http://u:12/3@127.0.0.1:80", ("http", "127.0.0.1", 80, Some(("u", "12/3")))),
        ("http://u:p://x@127.0.0.1:80", ("http", "127.0.0.1", 80, Some(("u", "p://x")))),
        ("u:p://x@127.0.0.1:80", ("http", "127.0.0.1", 80, Some(("u", "p://x")))),
        ("http://u:p ss@127.0.0.1:80", ("http", "127.0.0.1", 80, Some(("u", "p ss")))),
        // Percent-decoding, once.
        ("http://u:p%40%3A%25@10.0.0.1:80", ("http", "10.0.0.1", 80, Some(("u", "p@:%")))),
        ("http://u:%2540@10.0.0.1:80", ("http", "10.0.0.1", 80, Some(("u", "%40")))),
        ("http://u:100%@10.0.0.1:80", ("http", "10.0.0.1", 80, Some(("u", "100%")))),
        ("http://u:a+b@10.0.0.1:80", ("http", "10.0.0.1", 80, Some(("u", "a+b")))),
        // User only, empty password, empty user, nothing.
        ("http://user@10.0.0.1:80", ("http", "10.0.0.1", 80, Some(("user", "")))),
        ("http://user:@10.0.0.1:80", ("http", "10.0.0.1", 80, Some(("user", "")))),
        ("http://:token@10.0.0.1:80", ("http", "10.0.0.1", 80, Some(("", "token")))),
        ("http://@10.0.0.1:80", ("http", "10.0.0.1", 80, None)),
        ("http://:@10.0.0.1:80", ("http", "10.0.0.1", 80, None)),
        (
            "http://customer-x_session-1;country=de:pw@gate.example:7777",
            ("http", "gate.example", 7777, Some(("customer-x_session-1;country=de", "pw"))),
        ),
    ];
    for (text, (scheme, host, port, credentials)) in table {
        let proxy: ProxyUrl = text.parse().unwrap_or_else(|error| panic!("{text}: {error}"));
        let got = (proxy.scheme().as_str(), proxy.host(), proxy.port());
        assert_eq!(got, (*scheme, *host, *port), "{text}");
        let wanted = credentials.map(|(user, password)| (user.as_bytes(), password.as_bytes()));
        assert_eq!(proxy.credentials(), wanted, "{text}");
    }
}

#[test]
fn mistakes_are_named_and_secrets_kept() {
    let table: &[(&str, &str, &str)] = &[
        ("", "", "it is empty"),
        ("  ", "", "it is empty"),
        ("foo://x", "***://***", "scheme `foo` is none of"),
        ("htp://u:secret@10.0.0.1:1", "***://***@10.0.0.1:***", "scheme `htp` is none of"),
        ("http:/10.0.0.1:1", "***", "two slashes"),
        ("http://10.0.0.1:0", "http://10.0.0.1:***", "from 1 to 65535"),
        ("http://10.0.0.1:65536", "http://10.0.0.1:***", "from 1 to 65535"),
        ("http://10.0.0.1:+80", "http://10.0.0.1:***", "from 1 to 65535"),
        ("http://10.0.0.1:", "http://10.0.0.1:***", "port after the colon is missing"),
        ("http://user:secret", "http://***", "the host is missing"),
        ("user:secret", "***", "the host is missing"),
        ("http://user:secret@", "http://***@***", "the host is missing"),
        ("http://user:secret@:80", "http://***@***", "the host is missing"),
        ("http://", "http://***", "the host is missing"),
        ("10.0.0.1:8000@user:secret", "***@***", "stand after the address"),
        ("10.0.0.1:8000@user:12345", "***@***", "stand after the address"),
        ("user:secret:10.0.0.1:8000", "***", "the order is host:port:user:password"),
        ("user:12345:10.0.0.1:8000", "***", "the order is host:port:user:password"),
        ("user:secret:proxy:8000", "***", "the order is host:port:user:password"),
        ("10.0.0.1:8000:user", "10.0.0.1:***", "the password is missing"),
        ("proxy:8000:user", "***", "the password is missing"),
        ("10.0.0.1:8000:user:s@ecret:99", "***@***", "in two ways"),
        ("gate.example:8000/x@y", "***@***", "in two ways"),
        ("http://wpad/wpad.dat", "http://***", "PAC script"),
        ("http://user:se/cret", "http://***", "written %2F"),
        ("http://10.0.0.1:80/?a", "http://10.0.0.1:***", "written %2F"),
        ("::1", "***", "in brackets"),
        ("2001:db8::1", "***", "in brackets"),
        ("http://::1", "http://***", "in brackets"),
        ("u:secret@2001:db8::1", "***@***", "in brackets"),
        ("http://[::1", "http://***", "neither a name nor an address"),
        ("http://[::1]x:80", "http://[::1]:***", "neither a name nor an address"),
        ("http://pro xy:80", "http://***", "neither a name nor an address"),
        ("http://pro%20xy:80", "http://***", "neither a name nor an address"),
        ("http://999.1.1.1:80", "http://***", "neither a name nor an address"),
        ("http://u:se\ncret@10.0.0.1:80", "http://***@10.0.0.1:***", "control character"),
    ];
    for (text, outline, cause) in table {
        let error = text.parse::<ProxyUrl>().expect_err(text);
        assert_eq!(error.kind(), ErrorKind::InvalidProxyUrl, "{text}");
        let message = error.to_string();
        assert!(message.starts_with(&format!("the proxy `{outline}` cannot")), "{text}: {message}");
        assert!(message.contains(cause), "{text}: {message}");
        assert!(!message.contains("secret") && !message.contains("12345"), "{text}: {message}");
    }
    let long = "x".repeat(256);
    assert!(format!("socks5://{long}:p@h:1").parse::<ProxyUrl>().is_err());
    assert!(format!("http://{long}:p@h:1").parse::<ProxyUrl>().is_ok());
}

#[test]
fn what_a_proxy_repeats_is_recognised() {
    let proxy: ProxyUrl = "http://anna:p%40ss@h:1".parse().unwrap();
    for (text, found) in [
        ("Nobody knows anna", true),
        ("p@ss is wrong", true),
        ("Basic YW5uYTpwQHNz", true),
        ("Proxy Authentication Required", false),
        ("", false),
    ] {
        assert_eq!(proxy.gives_away(text), found, "{text}");
    }
    // An empty password is in every text, and an absent one in none.
    for url in ["http://anna:@h:1", "http://h:1"] {
        assert!(!url.parse::<ProxyUrl>().unwrap().gives_away("Proxy Authentication Required"));
    }
}

#[test]
fn shown_without_credentials() {
    let table = [
        ("http://user:secret@10.0.0.1:80", "http://***@10.0.0.1:80"),
        ("http://10.0.0.1", "http://10.0.0.1:80"),
        ("socks://u@[2001:db8::1]", "socks5://***@[2001:db8::1]:1080"),
    ];
    for (text, shown) in table {
        let proxy: ProxyUrl = text.parse().unwrap();
        assert_eq!(proxy.to_string(), shown);
        assert_eq!(format!("{proxy:?}"), shown);
        assert_eq!(proxy.redacted(), shown);
        assert_eq!(&**proxy.shown(), shown);
    }
}

#[test]
fn names_are_looked_up_by_the_proxy_except_for_plain_socks() {
    let table = [
        ("http", true),
        ("https", true),
        ("socks4", false),
        ("socks4a", true),
        ("socks5", false),
        ("socks5h", true),
    ];
    for (scheme, remote) in table {
        let proxy: ProxyUrl = format!("{scheme}://h:1").parse().unwrap();
        assert_eq!(proxy.resolves_remotely(), remote, "{scheme}");
    }
}

#[test]
fn the_key_tells_all_parts_apart() {
    let texts = [
        "http://h:1",
        "https://h:1",
        "socks5://h:1",
        "http://i:1",
        "http://h:2",
        "http://u@h:1",
        "http://u:p@h:1",
        "http://u:q@h:1",
        "http://v:p@h:1",
        "http://:up@h:1",
    ];
    let keys: std::collections::HashSet<u64> =
        texts.iter().map(|text| text.parse::<ProxyUrl>().unwrap().key()).collect();
    assert_eq!(keys.len(), texts.len());
    let one: ProxyUrl = "u:p@H:1".parse().unwrap();
    let other: ProxyUrl = "http://u:%70@h:1/".parse().unwrap();
    assert_eq!((one.key(), &one), (other.key(), &other));
    let raw: ProxyUrl = "http://h:1".parse::<ProxyUrl>().unwrap().with_credentials("u", "p");
    assert_eq!(raw, one);
    let user_only: ProxyUrl = "u@h:1".parse().unwrap();
    assert_eq!(user_only, "u:@h:1".parse().unwrap());
}

/// A password that no message contains by chance.
const SECRET: &str = "[0-9A-Za-z!$&'()*+,;=_~.^|<> -]{0,6}Zx9qWv7k[!$&'()*+,;=_~.^|<>-]{0,6}";

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn never_panics(text in "\\PC{0,60}") {
        let _ = text.parse::<ProxyUrl>();
    }

    #[test]
    fn never_panics_near_the_grammar(text in "((http|socks5)://)?[a0.:@/?#%\\[\\]1-3]{0,24}") {
        if let Ok(proxy) = text.parse::<ProxyUrl>() {
            let again: ProxyUrl = proxy.redacted().replace("***@", "").parse().unwrap();
            prop_assert_eq!(again.host(), proxy.host());
            prop_assert_eq!(again.port(), proxy.port());
        }
    }

    #[test]
    fn encoded_credentials_come_back(
        user in prop::collection::vec(any::<u8>(), 1..40),
        password in prop::collection::vec(any::<u8>(), 0..40),
        scheme in prop::sample::select(&["http", "https", "socks4a", "socks5h"][..]),
    ) {
        let encode = |bytes: &[u8]| bytes.iter().map(|b| format!("%{b:02x}")).collect::<String>();
        let (u, p) = (encode(&user), encode(&password));
        for text in [format!("{scheme}://{u}:{p}@h.example:1"), format!("h.example:1:{u}:{p}")] {
            let proxy: ProxyUrl = text.parse().unwrap();
            prop_assert_eq!(proxy.credentials(), Some((&user[..], &password[..])));
            prop_assert_eq!(proxy.host(), "h.example");
        }
    }

    #[test]
    fn what_is_exposed_is_read_back(
        user in prop::collection::vec(any::<u8>(), 0..40),
        password in prop::collection::vec(any::<u8>(), 0..40),
        host in prop::sample::select(&["10.0.0.1", "[2001:db8::1]", "proxy", "a.b-c.test"][..]),
        scheme in prop::sample::select(&["http", "https", "socks4", "socks5", "socks5h"][..]),
    ) {
        let proxy: ProxyUrl = format!("{scheme}://{host}:81").parse().unwrap();
        let proxy = proxy.with_credentials(user, password);
        prop_assert_eq!(proxy.exposed().parse::<ProxyUrl>().unwrap(), proxy);
    }

    #[test]
    fn nothing_shown_contains_the_password(
        password in SECRET,
        special in "[@/?#:%]{0,3}",
        template in prop::sample::select(&[
            "http://user:{}@10.0.0.1:80", "user:{}@proxy.example:80", "http://user:{}@proxy",
            "10.0.0.1:80:user:{}", "proxy.example:80:user:{}", "socks5://[::1]:80:user:{}",
            // None of these is a proxy.
            "http://user:{}@", "http://user:{}@:80", "http://user:{}@10.0.0.1:99999",
            "foo://user:{}@10.0.0.1:1", "10.0.0.1:80:{}", "user:{}:10.0.0.1:80",
            "user:{}@10.0.0.1:80:x", "user:{}", "http://10.0.0.1:80@user:{}",
        ][..]),
        inside in any::<bool>(),
    ) {
        let (left, right) = password.split_at(password.find("Zx9").unwrap_or(0));
        let whole = if inside { format!("{left}{special}{right}") } else { password.clone() };
        let text = template.replace("{}", &whole);
        let shown = match text.parse::<ProxyUrl>() {
            Ok(proxy) => format!("{proxy} {proxy:?} {}", proxy.redacted()),
            Err(error) => format!("{error} {error:?}"),
        };
        // Behind an `@` and without a host of its own, the rest of the password *is* the host.
        let without_host = ["user:{}", "10.0.0.1:80:{}", "user:{}:10.0.0.1:80"].contains(&template)
            || template.ends_with("@user:{}");
        if !(whole.contains('@') && without_host) {
            prop_assert!(!shown.contains("Zx9qWv7k"), "{}: {}", text, shown);
            prop_assert!(!shown.to_lowercase().contains("zx9qwv7k"), "{}: {}", text, shown);
        }
    }
}
