//! Every kind of failure, with credentials in play.

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use longhaul::batch::{Batch, Source};
use longhaul::error::{Fault, Phase};
use longhaul::lab::{Ca, ClosedPort, HttpProxy, Origin, Reply, Script, SilentPort, SocksProxy};
use longhaul::message::{Auth, Body, Verify};
use longhaul::policy::{BlockPage, SlowLane, Timeouts};
use longhaul::transport::{Resolve, ResolveError};
use longhaul::{Error, ErrorKind, ProxyMap, ProxyPool, Retry, Session, SessionBuilder, secs};

use crate::secrets::{
    FIELD, PASSWORD, TOKEN, USER, USERINFO, assert_clean, assert_silent, lines, listen,
};

const PATIENT: Duration = Duration::from_secs(20);
const SHORT: Duration = Duration::from_millis(100);

/// Knows no name; `busy.test` it cannot look up for now.
#[derive(Debug)]
struct NoNames;

impl Resolve for NoNames {
    fn resolve(&self, host: &str, _: Option<Duration>) -> Result<Vec<IpAddr>, ResolveError> {
        Err(match host {
            "busy.test" => ResolveError::Temporary("the resolver is busy".to_owned()),
            _ => ResolveError::NotFound("no such name".to_owned()),
        })
    }
}

fn recipe() -> SessionBuilder {
    Session::builder()
        .trust_env(false)
        .seed(1)
        .timeout((PATIENT, PATIENT))
        .resolver(Arc::new(NoNames))
        .header("X-Api-Key", FIELD)
        .auth(Auth::Bearer(TOKEN.to_owned()))
}

/// Puts credentials into a URL.
fn secret(url: &str) -> String {
    url.replacen("://", &format!("://{USERINFO}@"), 1)
}

fn ask(recipe: &SessionBuilder, url: &str) -> Result<longhaul::Response, Error> {
    recipe.build()?.get(secret(url)).header("Authorization", FIELD).send()
}

fn failure(recipe: &SessionBuilder, url: &str) -> Error {
    ask(recipe, url).unwrap_err()
}

/// Through a proxy with credentials; http keys and https keys.
fn through(url: &str) -> SessionBuilder {
    let proxy = secret(url);
    recipe().proxies(ProxyMap::from_pairs([("http", &proxy), ("https", &proxy)]).unwrap())
}

fn says(bytes: &'static str) -> Origin {
    Origin::builder().handler(move |_| Script::send(bytes).fin()).start().unwrap()
}

/// What goes wrong with a target.
fn of_targets() -> Vec<(&'static str, Error)> {
    let closed = ClosedPort::new().unwrap();
    let silent = SilentPort::new().unwrap();
    let mute = Origin::builder().handler(|_| Script::new().hold()).start().unwrap();
    let torn = says("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\ntorn");
    let gzip = says("HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 4\r\n\r\nnone");
    let busy = says("HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n");
    let junk = says("<html>\r\n\r\n");
    let page = says("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\npage");
    let echo = Origin::builder().handler(|request| {
        Reply::redirect(302, secret(&format!("http://{}/", request.authority())))
    });
    let echo = echo.start().unwrap();
    let elsewhere = Origin::builder().handler(|_| Reply::redirect(302, secret("ftp://a.test/")));
    let elsewhere = elsewhere.start().unwrap();
    let nowhere =
        Origin::builder().handler(|_| Reply::redirect(302, secret("http://a.test:99999/")));
    let nowhere = nowhere.start().unwrap();
    let plain = Origin::builder().on_accept(|_| Some(Script::new().recv().then_send("400").fin()));
    let plain = plain.start().unwrap();
    let secure = Origin::builder().tls(&Ca::new().unwrap()).start().unwrap();
    let at = |address: std::net::SocketAddr| format!("http://{address}/");
    let listed = Retry::urllib3().total(1).status_forcelist([503]);
    vec![
        ("refused", failure(&recipe(), &at(closed.address()))),
        ("silent", failure(&recipe().timeout((SHORT, PATIENT)), &at(silent.address()))),
        ("mute", failure(&recipe().timeout((PATIENT, SHORT)), &mute.url("/"))),
        ("late", failure(&recipe().timeout(deadline(SHORT)), &mute.url("/"))),
        ("no name", failure(&recipe(), "http://no.test/")),
        ("no resolver", failure(&recipe(), "http://busy.test/")),
        ("torn", failure(&recipe(), &torn.url("/"))),
        ("no gzip", failure(&recipe(), &gzip.url("/"))),
        ("no http", failure(&recipe(), &junk.url("/"))),
        ("too large", failure(&recipe().max_body_bytes(2), &page.url("/"))),
        ("in circles", failure(&recipe().max_redirects(2), &echo.url("/"))),
        ("to ftp", failure(&recipe(), &elsewhere.url("/"))),
        ("to no port", failure(&recipe(), &nowhere.url("/"))),
        ("exhausted", failure(&recipe().retry(listed), &busy.url("/"))),
        ("503", ask(&recipe(), &busy.url("/")).unwrap().raise_for_status().unwrap_err()),
        ("no json", ask(&recipe(), &page.url("/")).unwrap().json::<u8>().unwrap_err()),
        ("nowhere", ask(&recipe(), &page.url("/")).unwrap().save_to("/nonexistent/f").unwrap_err()),
        ("untrusted", failure(&recipe(), &secure.url("/"))),
        ("no tls", failure(&recipe(), &plain.url("/").replace("http:", "https:"))),
        ("cut", {
            let recipe = recipe();
            recipe.cutter().cut();
            failure(&recipe, &page.url("/"))
        }),
    ]
}

fn deadline(deadline: Duration) -> Timeouts {
    Timeouts::unlimited().with_deadline(deadline).unwrap()
}

/// What goes wrong with a proxy.
fn of_proxies() -> Vec<(&'static str, Error)> {
    let closed = ClosedPort::new().unwrap();
    let says = |bytes: &'static str| {
        HttpProxy::builder().handler(move |_| Some(Script::send(bytes).fin())).start().unwrap()
    };
    // Proxies like to say whom they do not know. Not in the body of a forwarded answer: that goes
    // through the engine, whose log at the level of `trace` is a dump of what came.
    let unknown = HttpProxy::builder().handler(|request| {
        let given = request.header("Proxy-Authorization").unwrap_or_default();
        let reply = Reply::new(407).reason(format!("Nobody knows {USER}")).header("X-Given", given);
        Some(match request.method.as_str() {
            "CONNECT" => reply.body(format!("{USER}:{PASSWORD} {given}")),
            _ => reply,
        })
    });
    let unknown = unknown.start().unwrap();
    let busy = says("HTTP/1.1 502 Busy\r\nContent-Length: 0\r\n\r\n");
    let socks = SocksProxy::builder().credentials("other", "other").start().unwrap();
    let refusing = SocksProxy::builder()
        .handler(|_| Some(Script::send([5, 2, 0, 1, 0, 0, 0, 0, 0, 0]).fin()))
        .start()
        .unwrap();
    let plain =
        HttpProxy::builder().on_accept(|_| Some(Script::new().recv().then_send("400").fin()));
    let plain = plain.start().unwrap();
    let mute = SocksProxy::builder().on_accept(|_| Some(Script::new().hold())).start().unwrap();
    let dead = ProxyPool::parse(&secret(&format!("http://{}", closed.address()))).unwrap();
    // It cools down for longer than the deadline.
    let dead = recipe().proxies(dead).deadline(secs(0.1));
    let none_alive = (0..20)
        .map(|host| failure(&dead, &format!("http://{host}.test/")))
        .find(|error| error.kind() == ErrorKind::NoProxyAlive);
    let none = recipe().proxies(ProxyMap::new()).proxies_required(true);
    let (http, https) = ("http://a.test/", "https://a.test/");
    let refused = through(&format!("http://{}", closed.address()));
    let mute = through(&mute.url("socks5h")).timeout((SHORT, PATIENT));
    vec![
        ("refused", failure(&refused, http)),
        ("refused", failure(&refused, https)),
        ("407", failure(&through(&unknown.url()), http)),
        ("407", failure(&through(&unknown.url()), https)),
        ("502", failure(&through(&busy.url()), https)),
        ("who are you", failure(&through(&socks.url("socks5h")), http)),
        ("not allowed", failure(&through(&refusing.url("socks5")), "http://127.0.0.1:9/")),
        ("user id", failure(&through(&socks.url("socks4a")), http)),
        ("mute", failure(&mute, https)),
        ("no tls", failure(&through(&plain.url().replace("http", "https")), https)),
        ("none alive", none_alive.unwrap()),
        ("none", failure(&none, http)),
    ]
}

/// What the user got wrong.
fn of_the_user() -> Vec<(&'static str, Error)> {
    let page = says("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
    let session = recipe().build().unwrap();
    let get = |url: String| session.get(url).send().unwrap_err();
    let map = |proxy: String| ProxyMap::from_pairs([("http", proxy)]).unwrap_err();
    let once = || Body::reader(std::io::Cursor::new(PASSWORD), None);
    let again = Origin::builder().handler(|request| match request.path.as_str() {
        "/" => Reply::redirect(307, "/again"),
        _ => Reply::ok("page"),
    });
    let again = again.start().unwrap();
    let full = says("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
    let mut prepared = session.get(page.url("/")).prepare().unwrap();
    prepared.url = secret(&page.url("/")).parse().unwrap();
    let hooked = session.get(secret(&page.url("/"))).response_hook(|_| {
        Err(Error::new(ErrorKind::Hook, Phase::Body, Fault::Target, "the page is not the one"))
    });
    let crowded = recipe().timeout((SHORT, PATIENT)).pool_maxsize(1).pool_block(true);
    let crowded = crowded.build().unwrap();
    let _held = crowded.get(secret(&full.url("/"))).stream(true).send().unwrap();
    vec![
        ("no scheme", get(format!("{USER}@a.test/"))),
        ("no scheme", get(format!("{USERINFO}@a.test/"))),
        ("ftp", get(secret("ftp://a.test/"))),
        ("no port", get(secret("http://a.test:99999/"))),
        ("a slash in the password", get(format!("http://{USER}:k3y/x@a.test/"))),
        ("no host", get(format!("http://{USERINFO}@/"))),
        (
            "field",
            session
                .get(page.url("/"))
                .header("X-Api-Key", format!("{FIELD}\n"))
                .send()
                .unwrap_err(),
        ),
        ("field", recipe().header("X-Api-Key", format!(" {FIELD}")).build().unwrap_err()),
        ("bearer", session.get(page.url("/")).bearer(format!("{TOKEN}\n")).send().unwrap_err()),
        ("proxy scheme", map(format!("foo://{USERINFO}@gate.test"))),
        ("proxy port", map(format!("http://{USERINFO}@gate.test:99999"))),
        ("proxy host", map(format!("http://{USERINFO}@"))),
        ("proxy parts", map(format!("gate.test:port:{USER}:k3y"))),
        ("list", ProxyPool::parse(&format!("# a\nhttp://{USERINFO}@gate.test:x\n")).unwrap_err()),
        ("one-shot", session.post(secret(&again.url("/"))).body(once()).send().unwrap_err()),
        ("bundle", recipe().verify(Verify::Bundle("/nonexistent".into())).build().unwrap_err()),
        ("zero", recipe().timeout((secs(0.0), PATIENT)).build().unwrap_err()),
        (
            "own cookie",
            session.get(page.url("/")).cookie("sid", format!("{TOKEN};")).send().unwrap_err(),
        ),
        ("prepared", session.send_prepared(prepared).unwrap_err()),
        ("hook", hooked.send().unwrap_err()),
        ("connections", crowded.get(secret(&full.url("/"))).send().unwrap_err()),
    ]
}

#[test]
fn no_error_shows_a_credential() {
    listen();
    let mut kinds = BTreeSet::new();
    for (what, error) in of_targets().into_iter().chain(of_proxies()).chain(of_the_user()) {
        assert_silent(&format!("{what}, {}", error.kind()), &error);
        kinds.insert(error.kind());
    }
    // What no session meets: a leak, a stop, and our own mistakes.
    let elsewhere = [ErrorKind::ExitLeak, ErrorKind::Internal];
    let missing: Vec<_> = ErrorKind::ALL
        .iter()
        .filter(|kind| !kinds.contains(kind) && !elsewhere.contains(kind))
        .collect();
    assert!(missing.is_empty(), "not provoked: {missing:?}");
    let lines = lines();
    assert!(!lines.is_empty(), "nothing was logged");
    assert_clean("the log", &lines);
}

#[test]
fn no_record_and_no_summary_shows_a_credential() {
    listen();
    let origin = Origin::builder().handler(|request| match request.path.as_str() {
        "/away" => Reply::redirect(302, secret("http://a.test/")),
        "/busy" => Reply::new(503).header("Set-Cookie", format!("sid={TOKEN}")),
        "/refused" => Reply::new(403).header("Set-Cookie", format!("sid={TOKEN}")),
        _ => Reply::ok("page"),
    });
    let origin = origin.start().unwrap();
    let proxy = HttpProxy::builder()
        .elsewhere(origin.address())
        .credentials(USER, PASSWORD)
        .handler(|request| (request.host() == "nobody.test").then(|| Script::new().rst()))
        .start()
        .unwrap();
    let pool = ProxyPool::parse(&secret(&proxy.url())).unwrap();
    let urls = [
        "http://a.test/",
        "http://a.test/away",
        "http://a.test/busy",
        "http://a.test/refused",
        "http://nobody.test/",
        "https://nobody.test/",
    ];
    let folder = tempfile::tempdir().unwrap();
    let results = folder.path().join("results.jsonl");
    let (said, heard) = std::sync::mpsc::channel();
    let batch = Batch::builder(recipe().proxies(pool).retry(Retry::none()))
        .source(Source::urls(urls.map(secret)))
        .output(&results)
        .slow_lane(SlowLane::default().pause(secs(0.01)))
        .block_page(BlockPage::new().header("Server: nobody").unwrap().body("robot"))
        .workers(2)
        .on_record(move |record| said.send(format!("{record:?}")).unwrap())
        .build()
        .unwrap();
    assert_clean("Batch", &format!("{batch:?}"));
    let outcome = batch.run().unwrap();
    let told: Vec<String> = heard.iter().collect();
    assert_eq!(told.len(), urls.len(), "{outcome:?}");
    assert_clean("records", &told.concat());
    let written = std::fs::read_to_string(&results).unwrap();
    assert_eq!(written.lines().count(), urls.len());
    assert_clean("results", &written);
    assert_clean("Outcome", &format!("{outcome:?}"));
    assert_clean("Outcome", &format!("{outcome:#?}"));
    assert_clean("the log", &lines());
}
