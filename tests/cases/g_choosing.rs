//! Section G: which proxy a URL gets, and that a setting that makes no sense is never "direct".

use crate::roads::{NoNames, Road, World, ca, recipe};
use longhaul::error::ErrorKind;
use longhaul::lab::{ClosedPort, HttpProxy, Origin, Reply};
use longhaul::proxy::{EnvProxies, NoProxy};
use longhaul::{ProxyMap, ProxyUrl, Session};
use std::net::SocketAddr;
use std::process::Command;
use std::sync::Arc;

/// What a process makes of its environment: `200 body` or `kind: message`.
#[test]
#[ignore = "run by the others, each time with another environment"]
fn child() {
    let var = |name: &str| std::env::var(name).unwrap();
    let mut recipe = Session::builder().resolver(Arc::new(NoNames::default()));
    if var("CASE_TRUST") == "off" {
        recipe = recipe.trust_env(false);
    }
    if let Ok(root) = std::env::var("CASE_ROOT") {
        recipe = recipe.extra_roots(root);
    }
    let result = recipe.build().and_then(|session| session.get(var("CASE_URL")).send());
    match result {
        Ok(response) => println!("\nRESULT {} {}", response.status(), response.text().unwrap()),
        Err(error) => println!("\nRESULT {}: {error}", error.kind()),
    }
}

/// Runs [`child`] in this environment and no other.
pub(crate) fn in_environment(url: &str, trust: bool, variables: &[(&str, &str)]) -> String {
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["g_choosing::child", "--exact", "--ignored", "--nocapture"])
        .env_clear()
        .env("CASE_URL", url)
        .env("CASE_TRUST", if trust { "on" } else { "off" })
        .envs(variables.iter().copied())
        .output()
        .unwrap();
    let out = String::from_utf8_lossy(&output.stdout).into_owned();
    let line = out.lines().find_map(|line| line.strip_prefix("RESULT "));
    line.unwrap_or_else(|| panic!("{out}{}", String::from_utf8_lossy(&output.stderr))).to_owned()
}

fn origin() -> Origin {
    Origin::builder().handler(|_| Reply::ok("page")).start().unwrap()
}

#[test]
fn c100_a_broken_proxy_setting_is_an_error_that_names_the_variable() {
    let origin = origin();
    for (name, value) in [
        ("HTTP_PROXY", "foo://x"),
        ("http_proxy", "foo://x"),
        ("HTTPS_PROXY", "foo://x"),
        ("ALL_PROXY", "ftp://10.0.0.1:21"),
        ("all_proxy", "http://"),
        ("HTTP_PROXY", "http://10.0.0.1:port"),
        ("HTTP_PROXY", "http://10.0.0.1:99999"),
        ("HTTP_PROXY", "http:/10.0.0.1:80"),
        ("HTTP_PROXY", "http://user:s3cret@"),
        ("HTTP_PROXY", "10.0.0.1:8000:user"),
        ("HTTP_PROXY", "http://10.0.0.1:80/proxy.pac"),
        ("HTTP_PROXY", "::1"),
        ("HTTP_PROXY", "DIRECT;"),
        ("HTTP_PROXY", "PROXY 10.0.0.1:80; DIRECT"),
        ("HTTP_PROXY", "10.0.0.1:80,10.0.0.2:80"),
        ("HTTP_PROXY", "a.test,b.test"),
        ("HTTP_PROXY", "a b"),
    ] {
        // Also for a target that this variable says nothing of: a mistake is a mistake.
        let result = in_environment(&origin.url("/"), true, &[(name, value)]);
        assert!(result.starts_with(&format!("invalid_proxy_url: {name}: ")), "{value}: {result}");
        assert!(!result.contains("s3cret"), "{result}");
    }
    assert_eq!(origin.counts().accepted, 0, "nothing went direct");
}

#[test]
fn c100_white_space_and_the_spelling_of_panels_are_no_mistakes() {
    let origin = origin();
    let proxy = HttpProxy::builder().credentials("user", "pa:ss").start().unwrap();
    let at = proxy.address();
    for value in [
        format!("{at}:user:pa:ss"),
        format!(" {at}:user:pa:ss\n"),
        format!("user:pa:ss@{at}"),
        format!("\thttp://user:pa%3Ass@{at}/ "),
        format!("HTTP://user:pa:ss@{at}"),
    ] {
        let result = in_environment(&origin.url("/"), true, &[("HTTP_PROXY", &value)]);
        assert_eq!(result, "200 page", "{value}");
    }
    assert_eq!(proxy.proxy_counts().forwards, 5);
    let closed = ClosedPort::new().unwrap();
    let value = format!("{} ", closed.address());
    let result = in_environment(&origin.url("/"), true, &[("HTTP_PROXY", &value)]);
    assert!(result.starts_with("proxy_unreachable: "), "{result}");
    assert_eq!(origin.counts().requests, 5);
}

#[test]
fn c101_credentials_arrive_as_they_were_meant() {
    let origin = origin();
    // `None`: an error that says what to do, and nobody is asked about a name.
    for (userinfo, wanted) in [
        ("user:pass", Some(("user", "pass"))),
        ("user:p%40%3A%25", Some(("user", "p@:%"))),
        ("user:p%23%2F%3F", Some(("user", "p#/?"))),
        ("user:p@ss", Some(("user", "p@ss"))),
        ("u@corp.test:p@ss", Some(("u@corp.test", "p@ss"))),
        ("u:100%", Some(("u", "100%"))),
        ("u:100%zz", Some(("u", "100%zz"))),
        ("u:%2540", Some(("u", "%40"))),
        ("user", Some(("user", ""))),
        ("user:", Some(("user", ""))),
        (":pass", Some(("", "pass"))),
        ("customer-x_session-1;country=de:pw", Some(("customer-x_session-1;country=de", "pw"))),
        ("user:p:a:s", Some(("user", "p:a:s"))),
        ("us%C3%A9r:p%E9", Some(("usér", "p\u{e9}"))),
        ("user:p+q r", Some(("user", "p+q r"))),
        ("user:p#ss", Some(("user", "p#ss"))),
        ("user:p/ss", Some(("user", "p/ss"))),
        ("user:p?ss", Some(("user", "p?ss"))),
        ("user:#/?@", Some(("user", "#/?@"))),
        ("10.0.0.1:80/x", None),
    ] {
        let proxy = HttpProxy::builder().start().unwrap();
        let text = format!("http://{userinfo}@{}", proxy.address());
        let parsed: Result<ProxyUrl, _> = text.parse();
        let Some((user, password)) = wanted else {
            let error = parsed.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidProxyUrl);
            assert!(error.to_string().contains("percent-encoded"), "{error}");
            continue;
        };
        let names = Arc::new(NoNames::default());
        let session = recipe().resolver(names.clone()).proxies(parsed.unwrap()).build().unwrap();
        assert_eq!(session.get(origin.url("/")).send().unwrap().text().unwrap(), "page");
        let sent = proxy.log()[0].header("Proxy-Authorization").map(str::to_owned);
        // A byte that is no UTF-8 goes out as that byte.
        let password: Vec<u8> = if userinfo.ends_with("%E9") {
            b"p\xe9".to_vec()
        } else {
            password.as_bytes().to_vec()
        };
        let pair = [user.as_bytes(), b":", &password].concat();
        use base64::Engine as _;
        let wanted = base64::prelude::BASE64_STANDARD.encode(pair);
        assert_eq!(sent, Some(format!("Basic {wanted}")), "{userinfo}");
        assert!(names.asked().is_empty(), "{userinfo}: {:?}", names.asked());
    }
}

#[test]
fn c103_the_variable_of_the_scheme_first_and_lower_case_first() {
    let world = World::new(Origin::builder().handler(|_| Reply::ok("page")));
    let root = tempfile::NamedTempFile::new().unwrap();
    ca().write_pem(root.path()).unwrap();
    let root = root.path().to_str().unwrap();
    let dead = ClosedPort::new().unwrap();
    let (dead, live) = (dead.address().to_string(), world.proxy.address().to_string());
    let (plain, secure) = (world.url(Road::Plain, "/"), world.url(Road::Tls, "/"));
    for (variables, url, through) in [
        (vec![("ALL_PROXY", &dead), ("HTTP_PROXY", &live)], &plain, true),
        (vec![("HTTP_PROXY", &dead), ("http_proxy", &live)], &plain, true),
        (vec![("HTTPS_PROXY", &dead), ("HTTP_PROXY", &live)], &plain, true),
        (vec![("HTTP_PROXY", &live)], &secure, false),
        (vec![("HTTP_PROXY", &dead), ("ALL_PROXY", &live)], &secure, true),
        (vec![("ALL_PROXY", &dead), ("all_proxy", &live)], &secure, true),
        (vec![("HTTPS_PROXY", &live), ("HTTP_PROXY", &dead)], &secure, true),
        (vec![("HTTP_PROXY", &String::new()), ("ALL_PROXY", &live)], &plain, true),
        (vec![("HTTP_PROXY", &dead), ("http_proxy", &String::new())], &plain, false),
        (vec![("HTTP_PROXY", &String::new())], &plain, false),
        (vec![("HTTP_PROXY", &dead), ("REQUEST_METHOD", &"GET".to_owned())], &plain, false),
        (vec![("HTTP_PROXY", &dead), ("NO_PROXY", &"127.0.0.0/8".to_owned())], &plain, false),
        (vec![("FTP_PROXY", &dead)], &plain, false),
    ] {
        let before = world.proxy.counts().requests;
        let mut all: Vec<(&str, &str)> =
            variables.iter().map(|(name, value)| (*name, value.as_str())).collect();
        all.push(("CASE_ROOT", root));
        assert_eq!(in_environment(url, true, &all), "200 page", "{variables:?}");
        let went = world.proxy.counts().requests - before;
        assert_eq!(went, u64::from(through), "{variables:?} {url}");
    }
}

#[test]
fn c105_without_trust_nothing_of_the_environment_counts() {
    let world = World::new(Origin::builder().handler(|_| Reply::ok("page")));
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let netrc = file("netrc", "machine 127.0.0.1 login me password s3cret\n");
    let bundle = file("bundle.pem", "no certificate\n");
    let root = file("root.pem", &ca().pem());
    let dead = ClosedPort::new().unwrap();
    let dead = dead.address().to_string();
    let mut variables: Vec<(&str, &str)> = vec![("NETRC", &netrc), ("HOME", "/nowhere")];
    for name in ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"]
    {
        variables.push((name, &dead));
    }
    for name in ["REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "SSL_CERT_FILE"] {
        variables.push((name, &bundle));
    }
    variables.push(("CASE_ROOT", &root));
    for road in [Road::Plain, Road::Tls] {
        let url = world.url(road, "/");
        assert_eq!(in_environment(&url, false, &variables), "200 page");
        let seen = world.origin(road).log().pop().unwrap();
        assert_eq!(seen.header("Authorization"), None);
    }
    // A broken value is not even looked at.
    let broken = [("HTTP_PROXY", "foo://x"), ("NETRC", "/missing")];
    assert_eq!(in_environment(&world.url(Road::Plain, "/"), false, &broken), "200 page");

    // With trust each of them counts.
    let result = in_environment(&world.url(Road::Plain, "/"), true, &variables);
    assert!(result.starts_with("config: "), "{result}");
    let only = [("NETRC", netrc.as_str())];
    assert_eq!(in_environment(&world.url(Road::Plain, "/"), true, &only), "200 page");
    let seen = world.plain.log().pop().unwrap();
    assert!(seen.header("Authorization").is_some());
}

#[test]
fn c106_domains() {
    for (entry, host, bypasses) in [
        ("example.test", "example.test", true),
        ("example.test", "sub.example.test", true),
        ("example.test", "a.b.example.test", true),
        (".example.test", "example.test", true),
        (".example.test", "sub.example.test", true),
        ("..example.test", "example.test", true),
        ("ple.test", "example.test", false),
        ("example.test", "notexample.test", false),
        ("example.test", "example.test.evil", false),
        ("sub.example.test", "example.test", false),
        ("EXAMPLE.TEST", "example.test", true),
        ("example.test", "EXAMPLE.test", true),
        ("a.test, example.test", "example.test", true),
        ("a.test,example.test ,b.test", "example.test", true),
        ("test", "example.test", true),
        ("localhost", "localhost", true),
        ("", "example.test", false),
    ] {
        let url = format!("http://{host}/").parse().unwrap();
        assert_eq!(NoProxy::parse(entry).matches(&url), bypasses, "{entry} {host}");
    }
}

#[test]
fn c107_ports_blocks_addresses_dots_and_junk() {
    for (entry, url, bypasses) in [
        ("example.test:8080", "http://example.test:8080/", true),
        ("example.test:8080", "http://example.test:9090/", false),
        ("example.test:80", "http://example.test/", true),
        ("example.test:443", "https://example.test/", true),
        ("example.test:443", "http://example.test/", false),
        ("127.0.0.0/8", "http://127.9.8.7/", true),
        ("127.0.0.0/8", "http://128.0.0.1/", false),
        ("10.1.2.3", "http://10.1.2.3/", true),
        ("10.1.2.3:81", "http://10.1.2.3/", false),
        ("::1", "http://[::1]/", true),
        ("[::1]", "http://[::1]/", true),
        ("[::1]:8080", "http://[::1]:8080/", true),
        ("[::1]:8080", "http://[::1]/", false),
        ("fe80::/10", "http://[fe80::1]/", true),
        ("fe80::/10", "http://[fec0::1]/", false),
        ("0:0:0:0:0:0:0:1", "http://[::1]/", true),
        ("example.test.", "http://example.test/", true),
        ("example.test", "http://example.test./", true),
        ("example.test.", "http://example.test./", true),
        ("*", "http://anything.test/", true),
        ("a.test,*", "http://anything.test/", true),
        (" * ", "http://[::1]/", true),
        (",,", "http://example.test/", false),
        (",,example.test,,", "http://example.test/", true),
        ("!!, /, ://, %%, example.test", "http://example.test/", true),
        ("127.0.0.0/99", "http://127.0.0.1/", false),
        ("1.2.3.4.5", "http://1.2.3.4/", false),
    ] {
        let target = url.parse().unwrap();
        assert_eq!(NoProxy::parse(entry).matches(&target), bypasses, "{entry} {url}");
        // And so it is read from the environment.
        let env = EnvProxies::read(|name| match name {
            "all_proxy" => Some("proxy.test:1".to_owned()),
            "no_proxy" => Some(entry.to_owned()),
            _ => None,
        });
        assert_eq!(env.unwrap().select(&target).is_none(), bypasses, "{entry} {url}");
    }
}

#[test]
fn c107_a_name_is_never_looked_up_to_decide() {
    let proxy = HttpProxy::builder().elsewhere(origin().address()).start().unwrap();
    let env = EnvProxies::read(|name| match name {
        "http_proxy" => Some(proxy.url()),
        // The name might lead there.
        "no_proxy" => Some("127.0.0.0/8".to_owned()),
        _ => None,
    })
    .unwrap();
    assert!(env.select(&"http://home.test/".parse().unwrap()).is_some());
}

#[test]
fn c108_the_most_specific_key_and_an_error_for_what_none_covers() {
    let proxies: Vec<HttpProxy> = (0..4)
        .map(|number| {
            HttpProxy::builder()
                .elsewhere(SocketAddr::from(([127, 0, 0, 1], 9)))
                .handler(move |_| Some(Reply::new(500 + number).header("Content-Length", "0")))
                .start()
                .unwrap()
        })
        .collect();
    let url = |number: usize| proxies[number].url();
    let map = ProxyMap::from_pairs([
        ("http://shop.test", url(1)),
        ("http", url(0)),
        ("all://x.test", url(2)),
        ("all", url(3)),
    ])
    .unwrap();
    let session = recipe().proxies(map).build().unwrap();
    for (target, status) in [
        ("http://shop.test/", 501),
        ("http://sub.shop.test/", 500),
        ("http://x.test/", 500),
        ("http://other.test/", 500),
    ] {
        assert_eq!(session.get(target).send().unwrap().status(), status, "{target}");
    }
    for (target, code) in [("https://x.test/", 502), ("https://other.test/", 503)] {
        let error = session.get(target).send().unwrap_err();
        assert_eq!(error.proxy_reply().unwrap().code, code, "{target}");
    }

    let origin = origin();
    let only_https = || ProxyMap::from_pairs([("https", url(0))]).unwrap();
    let session = recipe().proxies(only_https()).build().unwrap();
    assert_eq!(session.get(origin.url("/")).send().unwrap().status(), 200, "as requests: direct");
    let strict = recipe().proxies(only_https()).proxies_required(true).build().unwrap();
    let error = strict.get(origin.url("/")).send().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ProxyRequired);
    assert_eq!(error.requests_name(), "InvalidProxyURL");
    assert_eq!(origin.counts().requests, 1);
    // An empty value is direct, and meant.
    let meant = ProxyMap::from_pairs([("http", String::new()), ("all", url(0))]).unwrap();
    let session = recipe().proxies(meant).proxies_required(true).build().unwrap();
    assert_eq!(session.get(origin.url("/")).send().unwrap().status(), 200);
}
