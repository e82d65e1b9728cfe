//! Transports that are mounted under a prefix.

use crate::{fields, plays, redirect, scripted};
use longhaul::message::Verify;
use longhaul::proxy::SessionPer;
use longhaul::time::SimClock;
use longhaul::transport::{Engine, EngineConfig, Play, Script};
use longhaul::{ErrorKind, ProxyPool, ProxyUrl, Session, SessionBuilder};
use std::sync::Arc;
use url::Url;

/// A script that answers with its name and the path.
fn named(name: &'static str) -> Script {
    Script::with(Arc::new(SimClock::default()), move |asked, _| match asked.url.path() {
        "/to-web" => redirect("http://web.test/"),
        "/to-self" => redirect("/end"),
        "/to-other" => redirect("mock://other/"),
        "/to-file" => redirect("file:///etc/passwd"),
        path => Play::status(200).body(format!("{name} {path}")),
    })
}

fn mounted(prefixes: &[&'static str]) -> SessionBuilder {
    let web = named("web");
    let recipe = Session::builder().trust_env(false).transport(move || web.clone());
    prefixes.iter().fold(recipe, |recipe, prefix| {
        let script = named(prefix);
        recipe.mount(prefix, move || script.clone())
    })
}

#[test]
fn the_longest_prefix_decides_without_regard_to_case() {
    let prefixes = [
        "https://",
        "HTTPS://API.test/V1/",
        "https://api.test/",
        "",
        "h",
        "http://port.test:80/",
        "mock:",
    ];
    let session = mounted(&prefixes).build().unwrap();
    assert_eq!(
        session.settings().mounts,
        [
            "https://api.test/v1/",
            "https://api.test/",
            "http://port.test/",
            "https://",
            "mock:",
            "h",
            ""
        ]
    );
    for (url, name) in [
        ("https://api.test/v1/x", "HTTPS://API.test/V1/"),
        ("https://API.test/v1/x", "HTTPS://API.test/V1/"),
        ("https://api.test/v10/x", "https://api.test/"),
        ("https://api.test.evil.test/x", "https://"),
        // `h` fits, but the engine's own `http://` is longer.
        ("http://plain.test/x", "web"),
        ("http://port.test/x", "http://port.test:80/"),
        ("mock://a/x", "mock:"),
        ("hx://a/x", "h"),
        ("zx://a/x", ""),
    ] {
        let text = session.get(url).send().unwrap().text().unwrap();
        assert!(text.starts_with(&format!("{name} /")), "{url}: {text}");
        let shown =
            if name == "web" { "http://" } else { &*name.to_lowercase().replace(":80", "") };
        let url = session.get(url).prepare().unwrap().url;
        assert_eq!(session.get_adapter(&url).unwrap(), shown);
    }
}

#[test]
fn what_is_mounted_later_takes_the_place() {
    let later = named("later");
    let session = mounted(&["http://"]).mount("HTTP://", move || later.clone()).build().unwrap();
    assert_eq!(session.settings().mounts, ["http://"]);
    assert_eq!(session.get("http://h.test/x").send().unwrap().text().unwrap(), "later /x");
}

#[test]
fn a_scheme_that_nothing_is_mounted_for_is_refused() {
    let session = mounted(&["mock://one/"]).build().unwrap();
    for url in ["ftp://one/", "mock://two/", "mocks://one/"] {
        let error = session.get(url).send().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidScheme, "{url}");
        let url = Url::parse(url).unwrap();
        assert_eq!(session.get_adapter(&url).unwrap_err().kind(), ErrorKind::InvalidScheme);
    }
    let error = session.get("mock:one").send().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidScheme);
}

/// Whoever mounts `file://` must not have it opened by a page.
#[test]
fn no_redirect_leads_from_the_web_to_a_mounted_scheme() {
    let session = mounted(&["mock://", "file://", "http://mine.test/"]).build().unwrap();
    let end = |url: &str| match session.get(url).send() {
        Ok(response) => Ok((response.text().unwrap(), response.history().len())),
        Err(error) => Err((error.kind(), error.response().map(longhaul::Response::status))),
    };
    let refused = Err((ErrorKind::InvalidScheme, Some(302)));
    for path in ["/to-other", "/to-file"] {
        assert_eq!(end(&format!("http://web.test{path}")), refused, "{path}");
        assert_eq!(end(&format!("http://mine.test{path}")), refused, "{path}");
    }
    assert_eq!(end("mock://a/to-file"), refused);
    // From a mounted scheme to itself, and to the web.
    assert_eq!(end("mock://a/to-self"), Ok(("mock:// /end".to_owned(), 1)));
    assert_eq!(end("mock://a/to-other"), Ok(("mock:// /".to_owned(), 1)));
    assert_eq!(end("mock://a/to-web"), Ok(("web /".to_owned(), 1)));
    assert_eq!(end("file:///x"), Ok(("file:// /x".to_owned(), 0)));
}

#[test]
fn cookies_credentials_and_proxies_are_the_sessions() {
    let (recipe, _) = plays(vec![Play::status(500)]);
    let script = Script::with(Arc::new(SimClock::default()), |_, attempt| match attempt {
        0 => redirect("/b?c=1").header("Set-Cookie", "sid=1"),
        _ => Play::status(200),
    });
    let shared = script.clone();
    let proxy: ProxyUrl = "http://anna:s3cret@proxy.test:8000".parse().unwrap();
    let session = recipe.proxies(proxy).mount("mock://", move || shared.clone()).build().unwrap();
    let response = session.get("mock://anna:pw@shop/a").param("p", "1").send().unwrap();
    assert_eq!(response.url().as_str(), "mock://shop/b?c=1");
    assert_eq!(fields(&script, "cookie"), ["-", "sid=1"]);
    assert_eq!(fields(&script, "authorization"), ["Basic YW5uYTpwdw==", "Basic YW5uYTpwdw=="]);
    let asked = &script.asked()[0];
    assert_eq!(asked.url.as_str(), "mock://shop/a?p=1");
    assert!(asked.proxy.as_ref().unwrap().contains("proxy.test"));
}

#[test]
fn identities_that_are_gone_are_forgotten_there_too() {
    let (recipe, own) = scripted(|_, _| Play::status(200));
    let script = named("mounted");
    let shared = script.clone();
    let pool = ProxyPool::parse("h:1:u-session-{n}:p").unwrap();
    let session = recipe
        .proxies(pool.sessions(Some(SessionPer::Request)))
        .mount("http://mine.test/", move || shared.clone())
        .build()
        .unwrap();
    for _ in 0..300 {
        session.get("http://mine.test/").send().unwrap();
    }
    assert_eq!((script.attempts(), own.attempts()), (300, 0));
    assert_eq!(script.forgotten().len(), 300 - 256);
    assert_eq!(script.forgotten(), own.forgotten());
}

#[test]
fn a_transport_that_cannot_be_made_is_an_error_of_the_requests_that_need_it() {
    let session = mounted(&[])
        .mount("https://old.test/", || {
            let mut config = EngineConfig::default();
            config.tls.verify = Verify::Bundle("/nonexistent/roots.pem".into());
            Engine::new(&config)
        })
        .build()
        .unwrap();
    let error = session.get("https://old.test/").send().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Config);
    assert!(error.message().contains("/nonexistent/roots.pem"), "{error}");
    assert_eq!(session.get("https://new.test/").send().unwrap().status(), 200);
}
