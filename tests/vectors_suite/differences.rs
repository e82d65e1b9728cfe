//! Each difference from requests and urllib3 by itself, in a test of its own name.
//!
//! A rule that sets a vector aside says only that another answer was to be expected. These say
//! which. Those of the transport are proved on sockets, in `tests/transport`;
//! `docs/requests-compat.md` says where.

use std::io::Read as _;
use std::time::{Duration, SystemTime};

use http::{HeaderMap, HeaderValue, Method, header};
use longhaul::error::Phase;
use longhaul::message::{
    Body, DecodeLimits, Multipart, Part, RedirectRules, Request, ResponseBody, Settings,
    build_digest_header, decode, decode_text, follow, prepare, prepare_url,
};
use longhaul::policy::{
    Backoff, Category, Decision, Methods, Outcome, RetryAfter, Timeouts, WorstCase, WorstCaseInput,
};
use longhaul::proxy::{Chosen, EnvProxies, NoProxy, ProxyMap, resolve_proxy};
use longhaul::rng::Rng;
use longhaul::session::CookieJar;
use longhaul::time::SimClock;
use longhaul::transport::{Asked, Play, Script};
use longhaul::{ErrorKind, Retry, Session, SessionBuilder, secs};
use std::sync::Arc;
use url::Url;

// ---- The policy

fn parsed(fields: &[&str]) -> Option<Duration> {
    RetryAfter::parse(fields.iter().map(|field| field.as_bytes()), None, SystemTime::UNIX_EPOCH)
}

fn decide(retry: &Retry, method: &Method, outcome: &Outcome) -> Decision {
    retry.start().decide(method, outcome, &mut Rng::seeded(0))
}

fn status(status: u16, retry_after: Option<Duration>) -> Outcome {
    Outcome::Status { status, retry_after }
}

#[test]
fn empty_methods() {
    let retry = Retry::urllib3().total(3).allowed_methods(Vec::<Method>::new());
    let broken = Outcome::of_error(ErrorKind::ReadTimeout, Phase::Headers, None);
    assert_eq!(decide(&retry, &Method::GET, &broken), Decision::Final);
    let any = retry.allowed_methods(Methods::Any);
    assert!(matches!(decide(&any, &Method::POST, &broken), Decision::Retry { .. }));
}

#[test]
fn default_timeouts() {
    let timeouts = Timeouts::default();
    assert_eq!(timeouts.connect(), Some(secs(5.0)));
    assert_eq!(timeouts.read(), Some(secs(25.0)));
    assert_eq!(timeouts.deadline(), None);
}

#[test]
fn unreadable_retry_after() {
    for field in ["soon", "", "-1", "5s", "2025-06-15T15:07:40Z"] {
        assert_eq!(parsed(&[field]), None, "{field}");
    }
    // Absent: so the ordinary backoff applies, and an unlisted status is final.
    let retry = Retry::urllib3().total(3).backoff_factor(secs(1.0));
    assert_eq!(decide(&retry, &Method::GET, &status(503, None)), Decision::Final);
}

#[test]
fn decimal_retry_after() {
    assert_eq!(parsed(&["0.5"]), Some(secs(0.5)));
    assert_eq!(parsed(&[" 1.0 "]), Some(secs(1.0)));
}

#[test]
fn endless_retry_after() {
    assert_eq!(parsed(&[&"9".repeat(5000)]), Some(RetryAfter::LONGEST));
}

#[test]
fn repeated_retry_after() {
    assert_eq!(parsed(&["3", "soon", "7", "5"]), Some(secs(7.0)));
}

#[test]
fn retry_after_date() {
    let now = at(3600);
    // The server's clock is an hour behind ours.
    let fields = [&b"Sun, 15 Jun 2025 15:06:50 GMT"[..]];
    let own = &b"Sun, 15 Jun 2025 15:06:40 GMT"[..];
    assert_eq!(RetryAfter::parse(fields, Some(own), now), Some(secs(10.0)));
    assert_eq!(RetryAfter::parse(fields, None, now), Some(secs(0.0)));
}

#[test]
fn permanent_failures() {
    let retry = Retry::urllib3().total(10).allowed_methods(Methods::Any);
    for (kind, phase) in [
        (ErrorKind::Certificate, Phase::Tls),
        (ErrorKind::ProxyAuth, Phase::Proxy),
        (ErrorKind::NameNotFound, Phase::Dns),
    ] {
        let outcome = Outcome::of_error(kind, phase, None);
        assert_eq!(decide(&retry, &Method::GET, &outcome), Decision::Final, "{kind}");
    }
}

#[test]
fn category_by_phase() {
    let category = |kind, phase| match Outcome::of_error(kind, phase, None) {
        Outcome::Error { category, .. } => category,
        other => panic!("{other:?}"),
    };
    // urllib3: a handshake that stays silent is a read error, and a broken one another.
    assert_eq!(category(ErrorKind::ConnectTimeout, Phase::Tls), Category::Connect);
    assert_eq!(category(ErrorKind::ConnectTimeout, Phase::Proxy), Category::Connect);
    assert_eq!(category(ErrorKind::Connection, Phase::Connect), Category::Connect);
    assert_eq!(category(ErrorKind::Connection, Phase::Headers), Category::Read);
}

#[test]
fn body_failures_are_read_errors() {
    for kind in [ErrorKind::IncompleteBody, ErrorKind::ContentDecoding, ErrorKind::ReadTimeout] {
        let outcome = Outcome::of_error(kind, Phase::Body, None);
        assert!(matches!(
            outcome,
            Outcome::Error { category: Category::Read, permanent: false, .. }
        ));
        let retry = Retry::urllib3().total(1);
        assert!(matches!(decide(&retry, &Method::GET, &outcome), Decision::Retry { .. }), "{kind}");
    }
}

#[test]
fn first_wait() {
    let first = |backoff: &Backoff| backoff.longest(1);
    assert_eq!(first(Retry::long_run().backoff_shape()), secs(0.6));
    assert_eq!(first(&Backoff::urllib3(secs(0.6))), Duration::ZERO);
}

#[test]
fn budgets_span_redirects() {
    let retry = Retry::from_total(2);
    let mut state = retry.start();
    let lost = Outcome::of_error(ErrorKind::ConnectTimeout, Phase::Connect, None);
    let mut rng = Rng::seeded(0);
    assert!(matches!(state.decide(&Method::GET, &lost, &mut rng), Decision::Retry { .. }));
    assert!(matches!(state.redirect(None), Decision::Retry { .. }));
    // The second hop has not the whole budget before it.
    assert!(matches!(state.decide(&Method::GET, &lost, &mut rng), Decision::Exhausted { .. }));
    // And so one chain costs less than requests' loop over it.
    let timeouts = Timeouts::from((secs(5.0), secs(25.0)));
    let worst = WorstCase::compute(&WorstCaseInput::new(&retry, &timeouts));
    assert!(worst.with_redirects().duration() < worst.as_requests(30).duration());
}

// ---- Proxies

fn url(text: &str) -> Url {
    prepare_url(text, &[]).unwrap()
}

fn env(pairs: &[(&str, &str)]) -> Result<EnvProxies, longhaul::Error> {
    EnvProxies::read(|name| {
        pairs.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
    })
}

fn chosen(to: &str, session: &ProxyMap, pairs: &[(&str, &str)]) -> Option<String> {
    match resolve_proxy(&url(to), None, session, Some(&env(pairs).unwrap())) {
        Chosen::Proxy(proxy) => Some(proxy.host().to_owned()),
        Chosen::Direct | Chosen::Uncovered => None,
    }
}

fn bypassed(list: &str, to: &str) -> bool {
    NoProxy::parse(list).matches(&url(to))
}

#[test]
fn session_over_environment() {
    let session = ProxyMap::from_pairs([("all", "http://s:1")]).unwrap();
    let env = [("http_proxy", "http://e:1")];
    assert_eq!(chosen("http://h/", &session, &env).as_deref(), Some("s"));
    assert_eq!(chosen("http://h/", &ProxyMap::new(), &env).as_deref(), Some("e"));
}

#[test]
fn session_no_proxy() {
    let session = ProxyMap::from_pairs([("no_proxy", "h.test")]).unwrap();
    let env = [("http_proxy", "http://e:1")];
    assert_eq!(chosen("http://h.test/", &session, &env), None);
    assert_eq!(chosen("http://other.test/", &session, &env).as_deref(), Some("e"));
}

#[test]
fn no_proxy_per_hop() {
    // The choice depends on nothing but the URL of the hop.
    let env = [("http_proxy", "http://e:1"), ("no_proxy", "second.test")];
    let session = ProxyMap::new();
    assert_eq!(chosen("http://first.test/", &session, &env).as_deref(), Some("e"));
    assert_eq!(chosen("http://second.test/", &session, &env), None);
}

#[test]
fn no_proxy_trailing_dot() {
    assert!(bypassed("example.com.", "http://example.com/"));
    assert!(bypassed("example.com", "http://example.com./"));
}

#[test]
fn no_proxy_ipv6() {
    assert!(bypassed("[::1]", "http://[::1]/"));
    assert!(bypassed("[::1]:8080", "http://[::1]:8080/"));
    assert!(!bypassed("[::1]:8080", "http://[::1]/"));
    assert!(bypassed("2001:db8::/32", "http://[2001:db8::1]/"));
    assert!(bypassed("2001:db8:0:0:0:0:0:1", "http://[2001:db8::1]/"));
}

#[test]
fn no_proxy_ip_port() {
    assert!(bypassed("10.1.2.3:8080", "http://10.1.2.3:8080/"));
    assert!(!bypassed("10.1.2.3:8080", "http://10.1.2.3/"));
}

#[test]
fn no_proxy_default_port() {
    assert!(bypassed("example.com:80", "http://example.com/"));
    assert!(!bypassed("example.com:80", "https://example.com/"));
}

#[test]
fn no_proxy_zero_prefix() {
    assert!(bypassed("0.0.0.0/0", "http://10.1.2.3/"));
    assert!(!bypassed("0.0.0.0/0", "http://example.com/"));
}

#[test]
fn no_proxy_star_anywhere() {
    assert!(bypassed("localhost, *", "http://example.com/"));
}

#[test]
fn no_proxy_idna() {
    assert!(bypassed("b\u{fc}cher.example", "http://xn--bcher-kva.example/"));
    assert!(bypassed("xn--bcher-kva.example", "http://b\u{fc}cher.example/"));
}

#[test]
fn no_proxy_ip_suffix() {
    assert!(!bypassed("2.3", "http://10.1.2.3/"));
    assert!(!bypassed("3", "http://10.1.2.3/"));
}

#[test]
fn whatwg_url() {
    assert!(bypassed("127.0.0.1", "http://0x7f.1/"));
    assert!(bypassed("10.0.0.0/8", "http://167838211/"));
}

#[test]
fn map_key_case() {
    let map = ProxyMap::from_pairs([("HTTP://Example.com", "http://p:1")]).unwrap();
    assert!(matches!(map.select(&url("http://example.com/")), Some(Some(_))));
}

#[test]
fn map_key_brackets() {
    for key in ["http://[::1]", "http://::1"] {
        let map = ProxyMap::from_pairs([(key, "http://p:1")]).unwrap();
        assert!(matches!(map.select(&url("http://[::1]/")), Some(Some(_))), "{key}");
    }
}

#[test]
fn map_key_refused() {
    for key in ["http://.example.com", "https://example.com:8080", "example.com"] {
        let error = ProxyMap::from_pairs([(key, "http://p:1")]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Config, "{key}");
    }
}

#[test]
fn env_malformed() {
    let error = env(&[("HTTP_PROXY", "http://[bad")]).unwrap_err();
    assert!(error.to_string().contains("HTTP_PROXY"), "{error}");
}

#[test]
fn env_exact_case() {
    assert!(env(&[("Http_Proxy", "http://e:1")]).unwrap().is_empty());
}

#[test]
fn env_http_only() {
    assert!(env(&[("ftp_proxy", "http://e:1")]).unwrap().is_empty());
}

// ---- URLs and redirects

#[test]
fn trailing_whitespace() {
    assert_eq!(url("  http://h/a \n").as_str(), "http://h/a");
}

#[test]
fn canonical_url() {
    assert_eq!(url("http://h:80/?q='").as_str(), "http://h/?q=%27");
    assert_eq!(url("http://127.1/").as_str(), "http://127.0.0.1/");
}

#[test]
fn dot_segments() {
    assert_eq!(url("http://h/a/%2e%2e/b").as_str(), "http://h/b");
}

#[test]
fn idna() {
    assert_eq!(url("http://\u{ff45}xample.com/").as_str(), "http://example.com/");
}

#[test]
fn host_characters() {
    for host in ["a%20b.com", &format!("{}.com", "x".repeat(64)), "[fe80::1%eth0]"] {
        let error = prepare_url(&format!("http://{host}/"), &[]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidUrl, "{host}");
    }
}

#[test]
fn port_zero() {
    assert_eq!(prepare_url("http://h:0/", &[]).unwrap_err().kind(), ErrorKind::InvalidUrl);
}

#[test]
fn raw_params() {
    let pairs = [("a".to_owned(), "[1]".to_owned())];
    assert_eq!(prepare_url("http://h/?x=1", &pairs).unwrap().as_str(), "http://h/?x=1&a=%5B1%5D");
}

#[test]
fn auth_precedence() {
    let netrc = longhaul::message::Netrc::parse("default login n password n").unwrap();
    let mut settings = Settings::default();
    settings.netrc = Some(std::sync::Arc::new(netrc));
    let request = Request::new(Method::GET, "http://h/").header("Authorization", "mine");
    let prepared = prepare(&settings, &request).unwrap();
    assert_eq!(prepared.headers.get("Authorization"), Some(&b"mine"[..]));
}

#[test]
fn basic_utf8() {
    let request = Request::new(Method::GET, "http://h/").basic_auth("\u{fc}", "p");
    let prepared = prepare(&Settings::default(), &request).unwrap();
    // Latin-1 would be `/Dpw`.
    assert_eq!(prepared.headers.get("Authorization"), Some(&b"Basic w7w6cA=="[..]));
}

/// What answers these challenges; one character is one byte.
fn digest(user: &str, challenges: &[&[u8]]) -> Option<String> {
    let mut headers = HeaderMap::new();
    for challenge in challenges {
        let value = HeaderValue::from_bytes(challenge).unwrap();
        headers.append(header::WWW_AUTHENTICATE, value);
    }
    let url = Url::parse("http://h.test/").unwrap();
    let asked = ("GET", &url, &Body::Empty);
    let field = build_digest_header(&headers, (user, "p"), asked, "c", 0).unwrap()?;
    Some(field.iter().map(|byte| char::from(*byte)).collect())
}

#[test]
fn digest_algorithms() {
    for (rest, spoken) in [
        ("algorithm=SHA-512-256", true),
        ("algorithm=SHA-256-sess, qop=auth", true),
        ("qop=\"auth-int\"", true),
        ("qop=\"auth-int, auth\"", true),
        ("algorithm=SHA", false),
    ] {
        let answer = digest("u", &[format!("Digest realm=r, nonce=n, {rest}").as_bytes()]);
        assert_eq!(answer.is_some(), spoken, "{rest}");
    }
}

#[test]
fn digest_challenge() {
    let two: &[&[u8]] = &[
        b"Digest realm=\"one\", nonce=\"1\", algorithm=SHA-256, opaque=\"o\"",
        b"Digest realm=\"two\", nonce=\"2\", algorithm=MD5",
    ];
    // requests answers realm `two` with the algorithm of neither, and the opaque of the first.
    let answer = digest("u", two).unwrap();
    for part in ["realm=\"one\", nonce=\"1\"", "opaque=\"o\", algorithm=SHA-256"] {
        assert!(answer.contains(part), "{answer}");
    }
    assert_eq!(digest("u", &[b"Digest nonce=\"n\""]), None);
}

#[test]
fn digest_fields() {
    let challenge =
        b"Digest realm=\"a \\\"b\\\"\", nonce=\"n\", opaque=\"\", algorithm=\"MD5\", qop=\"auth\"";
    let answer = digest("u", &[challenge]).unwrap();
    for part in ["realm=\"a \\\"b\\\"\"", "opaque=\"\"", "algorithm=MD5, qop=auth, nc=00000001"] {
        assert!(answer.contains(part), "{answer}");
    }
}

#[test]
fn digest_charset() {
    let answer = digest("\u{fc}", &[b"Digest realm=\"k\xf6ln\", nonce=n"]).unwrap();
    assert!(
        answer.starts_with("Digest username=\"\u{c3}\u{bc}\", realm=\"k\u{f6}ln\""),
        "{answer}"
    );
    let answer = digest("\u{fc}", &[b"Digest realm=r, nonce=n, charset=UTF-8"]).unwrap();
    assert!(answer.starts_with("Digest username*=UTF-8''%C3%BC, realm=\"r\""), "{answer}");
    let answer = digest("u", &[b"Digest realm=r, nonce=n, userhash=true"]).unwrap();
    assert!(!answer.contains("username=\"u\"") && answer.ends_with("userhash=true"), "{answer}");
}

/// The URL of the next hop, and its Host field if there is one.
fn hop(location: &[u8]) -> Result<(String, bool), ErrorKind> {
    let request = Request::new(Method::GET, "http://h.test/a?b").header("Host", "front.test");
    let first = prepare(&Settings::default(), &request).unwrap();
    let mut headers = HeaderMap::new();
    headers.insert(header::LOCATION, HeaderValue::from_bytes(location).unwrap());
    let next = follow(&first, 302, &headers, RedirectRules::default());
    let next = next.map_err(|error| error.kind())?.unwrap();
    Ok((next.url.to_string(), next.headers.contains("Host")))
}

#[test]
fn location_bytes() {
    assert_eq!(hop(b"/\xe9").unwrap().0, "http://h.test/%E9");
}

#[test]
fn location_host() {
    let wanted = "http://xn--bcher-kva.example/";
    assert_eq!(hop("http://b\u{fc}cher.example/".as_bytes()).unwrap().0, wanted);
    assert_eq!(hop(b"http://exa mple.com/"), Err(ErrorKind::InvalidUrl));
    assert_eq!(hop(b"////x").unwrap().0, "http://h.test//x");
}

#[test]
fn location_error() {
    assert_eq!(hop(b"http://[::1"), Err(ErrorKind::InvalidUrl));
    assert_eq!(hop(b"http://h.test:abc/"), Err(ErrorKind::InvalidUrl));
    assert_eq!(hop(b"mailto:a@b"), Err(ErrorKind::InvalidScheme));
}

#[test]
fn location_query() {
    assert_eq!(hop(b"?").unwrap().0, "http://h.test/a");
}

#[test]
fn explicit_host() {
    assert!(hop(b"/x").unwrap().1);
    assert!(!hop(b"http://other.test/").unwrap().1);
}

// ---- Bodies

fn text(body: &[u8], content_type: &str) -> String {
    decode_text(body, Some(content_type.as_bytes()))
}

#[test]
fn bom() {
    assert_eq!(text(b"\xef\xbb\xbfh\xc3\xa9", "text/html"), "h\u{e9}");
    assert_eq!(text(b"\xff\xfeh\0", "text/html"), "h");
}

#[test]
fn charset_names() {
    // Lossy UTF-8 under labels of Python's own; what browsers call gb2312 is gbk.
    assert_eq!(text("h\u{e9}".as_bytes(), "text/html; charset=cp437"), "h\u{e9}");
    assert_eq!(text(b"+AGEAYg-", "text/html; charset=utf-7"), "+AGEAYg-");
    assert_eq!(text(b"\xe9l", "text/html; charset=gb2312"), "\u{9598}");
}

#[test]
fn invalid_bytes() {
    assert_eq!(text(b"\x81", "text/html; charset=windows-1252"), "\u{81}");
    assert_eq!(text(b"\x80", "text/html; charset=shift_jis"), "\u{80}");
}

#[test]
fn json_unicode() {
    // Under `text/*` without a charset requests would read ISO-8859-1.
    let response = crate::encoding::response(Some("text/html"), "\"\u{e9}\"".into());
    assert_eq!(response.json::<String>().unwrap(), "\u{e9}");
    let nan = crate::encoding::response(Some("application/json"), b"NaN".to_vec());
    assert!(nan.json::<f64>().is_err());
}

#[test]
fn detection() {
    assert_eq!(decode_text("na\u{ef}ve".as_bytes(), None), "na\u{ef}ve");
    let russian = b"\xcf\xf0\xe8\xe2\xe5\xf2, \xec\xe8\xf0! \xca\xe0\xea \xe4\xe5\xeb\xe0?";
    assert_eq!(
        decode_text(russian, None),
        "\u{41f}\u{440}\u{438}\u{432}\u{435}\u{442}, \u{43c}\u{438}\u{440}! \u{41a}\u{430}\u{43a} \u{434}\u{435}\u{43b}\u{430}?"
    );
}

fn decoded(body: &'static [u8], coding: &'static str) -> std::io::Result<Vec<u8>> {
    let mut headers = HeaderMap::new();
    headers.insert(header::CONTENT_ENCODING, HeaderValue::from_static(coding));
    let mut bytes = Vec::new();
    let mut decoded = decode(Box::new(body), &headers, DecodeLimits::default());
    std::io::Read::read_to_end(&mut decoded, &mut bytes).map(|_| bytes)
}

/// `hello`.
const GZIPPED: &[u8] = &[
    0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 2, 3, 0xcb, 0x48, 0xcd, 0xc9, 0xc9, 7, 0, 0x86, 0xa6, 0x10, 0x36,
    5, 0, 0, 0,
];

#[test]
fn coding_list() {
    assert_eq!(decoded(GZIPPED, "gzip, identity").unwrap(), b"hello");
}

#[test]
fn cut_coding() {
    let error = decoded(GZIPPED.split_at(20).0, "gzip").unwrap_err();
    let error = error.downcast::<longhaul::Error>().unwrap();
    assert_eq!(error.kind(), ErrorKind::ContentDecoding);
}

#[test]
fn part_fields() {
    let refused = |part: Part| {
        let form = Multipart::new().part(part).with_boundary("b");
        form.is_err_and(|error| error.kind() == ErrorKind::InvalidHeader)
    };
    assert!(refused(Part::new("p", "").header("X", "a\r\nY: b")));
    assert!(refused(Part::new("p", "").content_type("a/b\r\nY: b")));
    assert!(refused(Part::new("p", "").header("content-Disposition", "attachment")));
    let part = Part::new("p", "x").header("Content-Location", "/l").header("content-type", "a/b");
    let (body, _) = Multipart::new().part(part).with_boundary("b").unwrap();
    let Body::Bytes(body) = body else { panic!("{body:?}") };
    let fields = "\r\nContent-Type: a/b\r\nContent-Location: /l\r\n\r\nx\r\n";
    assert!(String::from_utf8(body.to_vec()).unwrap().contains(fields));
}

/// A response whose body comes in two pieces.
fn in_two(one: &'static str, other: &'static str) -> longhaul::Response {
    let mut parts = crate::encoding::response(None, Vec::new()).into_parts();
    let reader = one.as_bytes().chain(other.as_bytes());
    parts.body = ResponseBody::Reader(std::sync::Mutex::new(Box::new(reader)));
    longhaul::Response::from_parts(parts)
}

#[test]
fn line_ends() {
    let lines: Vec<_> = in_two("a\r", "\nb\u{c}\u{2028}c\rd").lines().map(Result::unwrap).collect();
    assert_eq!(lines, ["a", "b\u{c}\u{2028}c", "d"]);
}

#[test]
fn delimiter_at_the_end() {
    for (one, other) in [("a|b|", ""), ("a|b", "|"), ("a|", "b|")] {
        let pieces: Vec<_> = in_two(one, other).split("|").map(Result::unwrap).collect();
        assert_eq!(pieces, [b"a", b"b"]);
    }
}

// ---- Cookies

fn at(second: u64) -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(1_750_000_000 + second)
}

/// What a jar sends that has stored `lines`, set by `from`.
fn sent(from: &str, lines: &[&str], to: &str) -> String {
    let mut jar = CookieJar::new();
    let mut headers = HeaderMap::new();
    for line in lines {
        headers.append(header::SET_COOKIE, HeaderValue::from_str(line).unwrap());
    }
    jar.store(&url(from), &headers, at(0));
    String::from_utf8(jar.header(&url(to), at(0)).unwrap_or_default()).unwrap()
}

#[test]
fn host_only() {
    assert_eq!(sent("http://h.test/", &["a=1"], "http://h.test/"), "a=1");
    assert_eq!(sent("http://h.test/", &["a=1"], "http://below.h.test/"), "");
}

#[test]
fn public_suffix() {
    let to = "http://other.co.uk/";
    assert_eq!(sent("http://example.co.uk/", &["a=1; Domain=co.uk"], to), "");
}

#[test]
fn cookie_domain() {
    for (host, domain) in [("localhost", "localhost"), ("127.0.0.1", "127.0.0.1"), ("h.test", "")] {
        let (origin, line) = (format!("http://{host}/"), format!("a=1; Domain={domain}"));
        assert_eq!(sent(&origin, &[&line], &origin), "a=1", "{host}");
    }
    assert_eq!(sent("http://127.0.0.1/", &["a=1; Domain=0.0.1"], "http://127.0.0.1/"), "");
}

#[test]
fn cookie_path() {
    assert_eq!(sent("http://h.test/d/", &["a=1; Path=x"], "http://h.test/d/e"), "a=1");
}

#[test]
fn cookie_attributes() {
    let lines = ["a=1; Path=/; Path=/d", "b=1; Max-Age=x", "c=1; Port=\"81\"; Version=1"];
    assert_eq!(sent("http://h.test/", &lines, "http://h.test/"), "b=1; c=1");
    assert_eq!(sent("http://h.test/", &lines, "http://h.test/d"), "a=1; b=1; c=1");
}

#[test]
fn cookie_dates() {
    let mut jar = CookieJar::new();
    let mut headers = HeaderMap::new();
    let line = HeaderValue::from_static("a=1; Expires=Sun Jun 15 15:07:30 2025");
    headers.append(header::SET_COOKIE, line);
    headers.append(header::SET_COOKIE, HeaderValue::from_static("b=1; Max-Age=99999999999"));
    jar.store(&url("http://h.test/"), &headers, at(0));
    let ends: Vec<_> = jar.iter().map(|cookie| cookie.expires().unwrap()).collect();
    assert_eq!(ends, [at(50), at(400 * 86_400)]);
}

#[test]
fn secure_origin() {
    assert_eq!(sent("http://h.test/", &["a=1; Secure"], "https://h.test/"), "");
    assert_eq!(sent("https://h.test/", &["__Host-a=1; Path=/"], "https://h.test/"), "");
    let kept = ["__Host-a=1; Path=/; Secure", "__Secure-b=1; Secure"];
    assert_eq!(sent("https://h.test/", &kept, "https://h.test/"), "__Host-a=1; __Secure-b=1");
}

#[test]
fn cookie_sequence() {
    let lines = ["a=1", "a=1; Max-Age=0", "b=1; Max-Age=0", "b=2"];
    assert_eq!(sent("http://h.test/", &lines, "http://h.test/"), "b=2");
}

#[test]
fn cookie_order() {
    let lines = ["a=1; Path=/d", "b=1; Domain=h.test", "c=1"];
    assert_eq!(sent("http://h.test/", &lines, "http://h.test/d"), "a=1; b=1; c=1");
}

#[test]
fn domainless_cookie() {
    let mut jar = CookieJar::new();
    let error = jar.set("a", "1", "", "/").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Config);
    assert!(error.message().contains("names no host"), "{error}");
    assert!(jar.is_empty());
}

#[test]
fn nameless() {
    assert_eq!(sent("http://h.test/", &["=v"], "http://h.test/"), "v");
    assert_eq!(sent("http://h.test/", &["lonely"], "http://h.test/"), "lonely");
}

// ---- Sessions

/// A session on a script that answers the n-th attempt by `play`.
fn scripted(play: impl FnMut(&Asked, usize) -> Play + Send + 'static) -> (SessionBuilder, Script) {
    let script = Script::with(Arc::new(SimClock::default()), play);
    let shared = script.clone();
    let recipe = Session::builder().trust_env(false).transport(move || shared.clone());
    (recipe, script)
}

#[test]
fn request_cookies() {
    let (recipe, script) = scripted(|asked, _| match asked.url.path() {
        "/a" => Play::status(302).header("Location", "/b").header("Set-Cookie", "a=jar; Path=/"),
        "/b" => Play::status(302).header("Location", "http://other.test/"),
        _ => Play::status(200),
    });
    recipe.build().unwrap().get("http://h.test/a").cookie("a", "own").send().unwrap();
    let sent: Vec<_> = script
        .asked()
        .iter()
        .map(|asked| asked.headers.get("cookie").map(<[u8]>::to_vec))
        .collect();
    let own = Some(b"a=own".to_vec());
    assert_eq!(sent, [own.clone(), own, None]);
}

#[test]
fn mounted_scheme() {
    let (recipe, script) = scripted(|_, _| Play::status(200));
    let shared = script.clone();
    let session = recipe.mount("mock://", move || shared.clone()).build().unwrap();
    session.get("mock://shop/a b").param("p", "1").send().unwrap();
    assert_eq!(script.asked()[0].url.as_str(), "mock://shop/a%20b?p=1");
}

#[test]
fn head_redirects() {
    let (recipe, script) = scripted(|_, _| Play::status(302).header("Location", "/b"));
    let session = recipe.max_redirects(3).build().unwrap();
    let prepared = session.head("http://h.test/").prepare().unwrap();
    assert_eq!(session.send_prepared(prepared).unwrap().status(), 302);
    assert_eq!(session.request(Method::HEAD, "http://h.test/").send().unwrap().status(), 302);
    assert_eq!(script.attempts(), 2);
    let told = session.head("http://h.test/").allow_redirects(true).send().unwrap_err();
    assert_eq!((told.kind(), script.attempts()), (ErrorKind::TooManyRedirects, 6));
}
