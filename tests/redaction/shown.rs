//! Everything public that may hold a credential, printed.

use std::sync::Arc;

use http::Method;
use longhaul::batch::{
    Claimed, Done, Entry, Input, IterSource, JobSource, MemoryQueue, Place, Source,
};
use longhaul::error::{ErrorKind, Fault, Phase};
use longhaul::message::{Auth, Body, Netrc, RedirectRules, Request, Settings, follow, prepare};
use longhaul::proxy::{EnvProxies, Identity, Route, resolve_proxy};
use longhaul::session::{CookieJar, Flight, Proxies, Step};
use longhaul::time::SimClock;
use longhaul::transport::{Play, Script};
use longhaul::{ProxyMap, ProxyPool, ProxyUrl, Session, SessionBuilder, WorkerPool};
use url::Url;

use crate::secrets::{
    FIELD, PASSWORD, TOKEN, USER, USERINFO, assert_clean, assert_hidden, assert_silent, listen,
};

/// One proxy in every way of writing it that takes credentials.
fn spellings() -> Vec<String> {
    let schemes = ["http", "https", "socks4a", "socks5", "socks5h", "socks"];
    let mut all: Vec<String> =
        schemes.iter().map(|scheme| format!("{scheme}://{USERINFO}@gate.test:1080")).collect();
    all.push(format!("{USERINFO}@gate.test:1080"));
    all.push(format!("gate.test:1080:{USER}:k3y"));
    all.push(format!("http://{USERINFO}@[::1]:1080"));
    all.push(format!("http://{USER}-session-{{n}}:k3y@gate.test:1080"));
    all
}

fn with_everything() -> SessionBuilder {
    Session::builder()
        .trust_env(false)
        .header("Authorization", FIELD)
        .header("Proxy-Authorization", FIELD)
        .header("X-Api-Key", FIELD)
        .header("Cookie", FIELD)
        .auth(Auth::Basic(USER.to_owned(), PASSWORD.to_owned()))
        .secret_header("X-Api-Key")
}

fn request() -> Request {
    Request::new(Method::POST, format!("http://{USERINFO}@a.test/x"))
        .header("Authorization", FIELD)
        .header("X-Api-Key", FIELD)
        .auth(Auth::Bearer(TOKEN.to_owned()))
        .body(format!("password={PASSWORD}"))
}

#[test]
fn proxies_in_every_spelling() {
    listen();
    for spelling in spellings() {
        let proxy: ProxyUrl = spelling.parse().unwrap();
        assert_clean("Display", &proxy.to_string());
        assert_clean("redacted", &proxy.redacted());
        assert_hidden("ProxyUrl", &proxy);
        let proxy = Arc::new(proxy);
        assert_hidden("Route", &Route::through(proxy.clone()));
        assert_hidden("Identity", &Identity::of(&proxy));
        let map = ProxyMap::from_pairs([("http", &spelling), ("https://a.test", &spelling)]);
        let map = map.unwrap();
        assert_hidden("ProxyMap", &map);
        let url = Url::parse("http://a.test/").unwrap();
        assert_hidden("Chosen", &resolve_proxy(&url, None, &map, None));
        let env = EnvProxies::read(|name| (name == "http_proxy").then(|| spelling.clone()));
        let env = env.unwrap();
        assert_hidden("EnvProxies", &env);
        assert_hidden("Chosen", &resolve_proxy(&url, None, &ProxyMap::new(), Some(&env)));
        let pool = ProxyPool::parse(&spelling).unwrap();
        let recipe = with_everything().proxies(pool.clone());
        assert_hidden("ProxyPool", &pool);
        assert_hidden("Proxies", &Proxies::from(pool));
        assert_hidden("Proxies", &Proxies::from(map.clone()));
        assert_hidden("SessionBuilder", &recipe);
        assert_hidden("ProxyStats", &recipe.proxy_stats());
        assert_hidden("Session", &recipe.build().unwrap());
        assert_hidden("SessionBuilder", &with_everything().proxies(map));
    }
}

#[test]
fn settings_requests_and_what_becomes_of_them() {
    listen();
    let netrc = format!("machine a.test login {USER} password k3y");
    let netrc = Netrc::parse(&netrc).unwrap();
    assert_hidden("Netrc", &netrc);
    let mut settings: Settings = with_everything().settings().clone();
    settings.netrc = Some(Arc::new(netrc));
    assert_hidden("Settings", &settings);
    let request = request();
    assert_hidden("Request", &request);
    assert_hidden("Overrides", &request.overrides);
    assert_hidden("Body", &Body::from(PASSWORD));
    let prepared = prepare(&settings, &request).unwrap();
    assert_hidden("Prepared", &prepared);
    assert_clean("Prepared", prepared.url.as_str());

    let mut headers = http::HeaderMap::new();
    headers.insert("location", format!("http://{USERINFO}@b.test/").parse().unwrap());
    let rules = RedirectRules::of(&settings, &request.overrides, &settings.retry);
    let next = follow(&prepared, 302, &headers, rules).unwrap().unwrap();
    assert_hidden("Prepared", &next);
    assert_clean("Prepared", next.url.as_str());

    let mut jar = CookieJar::default();
    let url = Url::parse("http://a.test/").unwrap();
    let mut set = http::HeaderMap::new();
    set.insert("set-cookie", format!("sid={TOKEN}").parse().unwrap());
    jar.store(&url, &set, std::time::SystemTime::UNIX_EPOCH);
    assert_hidden("CookieJar", &jar);
    assert_hidden("Cookie", &jar.iter().collect::<Vec<_>>());
}

#[test]
fn a_flight_on_its_way() {
    listen();
    let clock = Arc::new(SimClock::default());
    let plays = [
        Play::status(302).header("Location", &format!("http://{USERINFO}@b.test/")),
        Play::status(200).header("Set-Cookie", &format!("sid={TOKEN}")).body("page"),
    ];
    let script = Script::new(clock.clone(), plays);
    let transport = script.clone();
    let proxy: ProxyUrl = format!("http://{USERINFO}@gate.test").parse().unwrap();
    let recipe = with_everything().clock(clock).proxies(proxy);
    let session = recipe.transport(move || transport.clone()).build().unwrap();
    let builder = session.post(format!("http://{USERINFO}@a.test/")).bearer(TOKEN);
    assert_hidden("RequestBuilder", &builder.header("X-Api-Key", FIELD));
    let mut flight = Flight::new(request(), 1);
    assert_hidden("Flight", &flight);
    let step = flight.step(&session);
    assert_hidden("Flight", &flight);
    assert_hidden("Step", &step);
    let Step::Done(response) = step else { panic!("{step:?}") };
    assert_hidden("Response", &response);
    assert_hidden("history", &response.history());
    assert_hidden("attempts", &response.attempts());
    assert_hidden("connection", response.connection());
    assert_clean("url", response.url().as_str());
    assert_clean("proxy", response.proxy().unwrap());
    let names: Vec<String> = response.set_cookie_names().collect();
    assert_hidden("names of cookies", &names);
    assert_hidden("Asked", &script.asked());
    assert_hidden("Script", &script);
    assert_hidden("Session", &session);
}

#[test]
fn the_results_of_a_pool() {
    listen();
    let clock = Arc::new(SimClock::default());
    let script = Script::with(clock.clone(), |asked, _| {
        let refused = Play::error(ErrorKind::Connection, Phase::Connect, Fault::Target);
        if asked.method == Method::POST { Play::status(200) } else { refused }
    });
    let recipe = with_everything().clock(clock).transport(move || script.clone());
    let builder = WorkerPool::builder(recipe.retry(0)).workers(1);
    assert_hidden("WorkerPoolBuilder", &builder);
    let pool = builder.build().unwrap();
    assert_hidden("WorkerPool", &pool);
    for method in [Method::POST, Method::GET] {
        let ticket = pool.submit(Request { method, ..request() });
        assert_hidden("Ticket", &ticket);
        let finished = ticket.wait();
        assert_hidden("Finished", &finished);
        if let Err(error) = &finished.result {
            assert_silent("Finished", error);
        }
    }
}

#[test]
fn lines_of_the_input() {
    listen();
    let lines = [
        format!("http://{USERINFO}@a.test/"),
        format!(r#"{{"url":"http://{USERINFO}@a.test/","headers":{{"X-Api-Key":"{FIELD}"}}}}"#),
        format!("htp://{USERINFO}@a.test/"),
        format!("http://{USERINFO}@a.test:99999/"),
        format!(r#"{{"url":"http://{USERINFO}@a.test/","headers":{{"X-Api-Key":"{FIELD}\n"}}}}"#),
        format!(r#"{{"url":"http://{USERINFO}@a.test/","nonsense":1}}"#),
        format!(r#"{{"url":"http://{USERINFO}@a.test/""#),
    ];
    for line in lines {
        for entry in Source::urls([line.clone()]).items(Done::default()) {
            assert_hidden("Entry", &entry);
            if let Entry::Item(item) = entry {
                assert_hidden("Item", &item);
                assert_clean("id", &item.id());
                assert_hidden("Claimed", &Claimed::from(item));
            }
        }
        let place = Place { source: "queue".into(), line: 1 };
        assert_hidden("Claimed", &Claimed::line(&line, place).unwrap());
        assert_hidden("Input", &Input::from(Source::urls([line.clone()])));
        assert_hidden("IterSource", &IterSource::new([line.clone()]));
        let queue = MemoryQueue::new(Arc::new(SimClock::default()));
        queue.push(line.clone());
        assert_hidden("MemoryQueue", &queue);
        let mut jobs = Vec::new();
        queue.claim(1, &mut jobs, &|| false).unwrap();
        let lost = queue.dead_letter(&"1.1".into(), "of no use").unwrap();
        assert!(lost.is_empty());
        assert_hidden("DeadLetter", &queue.dead_letters());
        if let Err(error) = Source::urls([line]).check(&Done::default()) {
            assert_silent("check", &error);
        }
    }
}
