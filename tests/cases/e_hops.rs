//! Section E: credentials, cookies and the proxy from hop to hop.

use crate::g_choosing::in_environment;
use crate::roads::{NAME, NoNames, Road, World, assert_is, ca};
use longhaul::error::{ErrorKind, Fault, Phase};
use longhaul::lab::{HttpProxy, Origin, Received, Reply, SocksProxy};
use longhaul::message::Auth;
use longhaul::{ProxyMap, ProxyPool, ProxyUrl, SessionBuilder};
use std::sync::Arc;

/// Redirects to whatever the query names, and hands out a cookie at `/set`.
fn guide(request: &Received) -> Reply {
    match request.query.as_deref() {
        Some(to) => {
            let reply = Reply::redirect(302, to);
            let name = request.path.strip_prefix("/set/");
            name.map(|name| reply.clone().header("Set-Cookie", format!("{name}=1; Path=/")))
                .unwrap_or(reply)
        }
        None => Reply::ok("there"),
    }
}

/// An origin of several hosts on the usual ports and on others, in the clear and under TLS.
struct Town {
    world: World,
    proxy: HttpProxy,
}

impl Town {
    fn new() -> Self {
        let world = World::new(Origin::builder().handler(guide));
        let (plain, secure) = (world.plain.address(), world.secure.address());
        let mut proxy = HttpProxy::builder();
        for host in [NAME, "other.test", "sub.origin.test"] {
            for (port, address) in [(80, plain), (8080, plain), (443, secure), (8443, secure)] {
                proxy = proxy.name(&format!("{host}:{port}"), address);
            }
        }
        let proxy = proxy.credentials("gate", "keeper").start().unwrap();
        Self { world, proxy }
    }

    fn recipe(&self) -> SessionBuilder {
        let url = self.proxy.url().parse::<ProxyUrl>().unwrap().with_credentials("gate", "keeper");
        self.world.recipe(Road::TlsTunnel).proxies(url)
    }

    /// Everything that the origins were asked for, in the order of its arrival.
    fn log(&self) -> Vec<Received> {
        let mut log = [self.world.plain.log(), self.world.secure.log()].concat();
        log.sort_by_key(|request| request.arrived);
        self.world.plain.clear_log();
        self.world.secure.clear_log();
        log
    }
}

/// From where to where, and whether credentials go along.
const WAYS: &[(&str, &str, bool)] = &[
    ("http://origin.test/", "/end", true),
    ("http://origin.test/", "http://origin.test/end", true),
    ("http://origin.test/", "http://origin.test:80/end", true),
    ("http://origin.test:80/", "http://origin.test/end", true),
    ("http://origin.test/", "HTTP://ORIGIN.TEST/end", true),
    ("http://origin.test:8080/", "http://origin.test:8080/end", true),
    ("https://origin.test/", "https://origin.test:443/end", true),
    ("https://origin.test:8443/", "//origin.test:8443/end", true),
    ("http://origin.test/", "https://origin.test/end", true),
    ("http://origin.test:80/", "https://origin.test:443/end", true),
    ("http://origin.test/", "http://origin.test:8080/end", false),
    ("http://origin.test:8080/", "http://origin.test/end", false),
    ("http://origin.test:8080/", "https://origin.test/end", false),
    ("http://origin.test/", "https://origin.test:8443/end", false),
    ("https://origin.test/", "https://origin.test:8443/end", false),
    ("https://origin.test/", "http://origin.test/end", false),
    ("https://origin.test/", "http://origin.test:8080/end", false),
    ("http://origin.test/", "http://other.test/end", false),
    ("https://origin.test/", "https://other.test/end", false),
    ("http://origin.test/", "http://sub.origin.test/end", false),
    ("http://sub.origin.test/", "http://origin.test/end", false),
    ("http://origin.test/", "http://user:pass@other.test/end", false),
];

#[test]
fn c76_credentials_stay_with_their_origin() {
    let town = Town::new();
    let recipe = town.recipe().secret_header("X-Api-Key");
    for (from, to, kept) in WAYS {
        let session = recipe.build().unwrap();
        let response = session
            .get(format!("{from}?{to}"))
            .bearer("s3cret")
            .header("X-Api-Key", "key")
            .header("Cookie", "own=1")
            .header("X-Plain", "1")
            .send()
            .unwrap();
        assert_eq!((response.status(), response.history().len()), (200, 1), "{from} {to}");
        let log = town.log();
        let [first, second] = log.as_slice() else { panic!("{log:?}") };
        assert_eq!(first.header("Authorization"), Some("Bearer s3cret"));
        assert_eq!(first.header("X-Api-Key"), Some("key"));
        assert_eq!(first.header("Cookie"), Some("own=1"));
        let shown = format!("{from} {to}");
        let authorization = kept.then_some("Bearer s3cret");
        assert_eq!(second.header("Authorization"), authorization, "{shown}");
        assert_eq!(second.header("X-Api-Key"), kept.then_some("key"), "{shown}");
        // The jar alone decides of cookies, and it is empty.
        assert_eq!(second.header("Cookie"), None, "{shown}");
        assert_eq!(second.header("X-Plain"), Some("1"), "{shown}");
        for request in [first, second] {
            assert_eq!(request.header("Proxy-Authorization"), None, "{shown}");
        }
    }
}

#[test]
fn c76_wherever_the_credentials_came_from() {
    let town = Town::new();
    let basic = Some("Basic bWU6czNjcmV0");
    for (from, to, kept) in WAYS {
        let with_userinfo = from.replace("://", "://me:s3cret@");
        let own =
            town.recipe().auth(Auth::Basic("me".to_owned(), "s3cret".to_owned())).build().unwrap();
        let plain = town.recipe().build().unwrap();
        for (session, url) in [(&plain, &with_userinfo), (&own, &(*from).to_owned())] {
            session.get(format!("{url}?{to}")).send().unwrap();
            let log = town.log();
            let [first, second] = log.as_slice() else { panic!("{log:?}") };
            assert_eq!(first.header("Authorization"), basic, "{url}");
            let wanted = if *kept { basic } else { None };
            assert_eq!(second.header("Authorization"), wanted, "{url} {to}");
        }
    }
}

#[test]
fn c76_what_was_dropped_does_not_come_back() {
    let town = Town::new();
    let session = town.recipe().secret_header("X-Api-Key").build().unwrap();
    for away in [
        "http://other.test/",
        "http://origin.test:8080/",
        "http://sub.origin.test/",
        "https://other.test/",
    ] {
        let start = format!("http://me:s3cret@origin.test/?{away}?http://origin.test/end");
        let response =
            session.get(start).header("X-Api-Key", "key").header("X-Plain", "1").send().unwrap();
        assert_eq!(response.history().len(), 2);
        let log = town.log();
        let [first, _, back] = log.as_slice() else { panic!("{log:?}") };
        assert!(first.header("Authorization").is_some());
        assert_eq!(back.authority(), NAME);
        assert_eq!(back.header("Authorization"), None, "{away}");
        assert_eq!(back.header("X-Api-Key"), None, "{away}");
        assert_eq!(back.header("X-Plain"), Some("1"));
    }
}

#[test]
fn c76_cookies_are_those_of_each_place() {
    let town = Town::new();
    let session = town.recipe().build().unwrap();
    let chain = "http://origin.test/set/a?http://other.test/set/b?http://origin.test/set/c?\
                 https://origin.test/end";
    session.get(chain).send().unwrap();
    let cookies: Vec<_> =
        town.log().iter().map(|request| request.header("Cookie").map(str::to_owned)).collect();
    // What a hop sets is sent by the next one to the same host.
    assert_eq!(cookies, [None, None, Some("a=1".to_owned()), Some("a=1; c=1".to_owned())]);
}

#[test]
fn c76_no_credential_of_a_proxy_reaches_an_origin() {
    // Nor another proxy; also where somebody set the field by hand.
    let town = Town::new();
    let session = town.recipe().build().unwrap();
    for (from, to, _) in WAYS {
        let request = session.get(format!("{from}?{to}"));
        request.header("Proxy-Authorization", "Basic c3RvbGVu").send().unwrap();
        for request in town.log() {
            assert_eq!(request.header("Proxy-Authorization"), None, "{from} {to}");
        }
    }
    let asked = town.proxy.log();
    assert!(asked.len() >= WAYS.len());
    for request in asked {
        let given: Vec<_> = request.headers_named("Proxy-Authorization").collect();
        assert_eq!(given, ["Basic Z2F0ZTprZWVwZXI="], "{}", request.target);
    }
}

/// A proxy that knows both ports of the origin, with credentials of its own.
fn gate(world: &World, user: &str) -> (HttpProxy, ProxyUrl) {
    let proxy = HttpProxy::builder()
        .name(&format!("{NAME}:80"), world.plain.address())
        .name(&format!("{NAME}:443"), world.secure.address())
        .credentials(user, "s3cret")
        .start()
        .unwrap();
    let url = proxy.url().parse::<ProxyUrl>().unwrap().with_credentials(user, "s3cret");
    (proxy, url)
}

#[test]
fn c83_each_hop_has_the_proxy_of_its_own_scheme() {
    let world = World::new(Origin::builder().handler(guide));
    let (first, first_url) = gate(&world, "one");
    let (second, second_url) = gate(&world, "two");
    let mut map = ProxyMap::new();
    map.insert("http", &first_url.exposed()).unwrap();
    map.insert("https", &second_url.exposed()).unwrap();
    let session = world.recipe(Road::Tls).proxies(map).build().unwrap();
    let chain = format!("http://{NAME}/?https://{NAME}/?http://{NAME}/end");
    let response = session.get(chain).send().unwrap();
    assert_eq!(response.history().len(), 2);
    let through: Vec<_> =
        response.attempts().iter().map(|attempt| attempt.proxy.clone().unwrap()).collect();
    let port = |proxy: &HttpProxy| format!(":{}", proxy.address().port());
    for (through, proxy) in through.iter().zip([&first, &second, &first]) {
        assert!(through.contains(&port(proxy)) && !through.contains("s3cret"), "{through}");
    }
    // Each proxy saw its own credentials, and the origin saw none.
    for (proxy, count, own) in
        [(&first, 2, "Basic b25lOnMzY3JldA=="), (&second, 1, "Basic dHdvOnMzY3JldA==")]
    {
        let log = proxy.log();
        assert_eq!(log.len(), count);
        for request in log {
            assert_eq!(request.headers_named("Proxy-Authorization").collect::<Vec<_>>(), [own]);
        }
    }
    for request in [world.plain.log(), world.secure.log()].concat() {
        assert_eq!(request.header("Proxy-Authorization"), None);
    }
}

#[test]
fn c83_a_scheme_without_a_proxy_goes_direct_or_nowhere() {
    let world = World::new(Origin::builder().handler(guide));
    let (proxy, url) = gate(&world, "one");
    let mut map = ProxyMap::new();
    map.insert("http", &url.exposed()).unwrap();
    let target = world.secure.url("/end");
    let recipe = world.recipe(Road::Tls).proxies(map);
    let response = recipe.build().unwrap().get(format!("http://{NAME}/?{target}")).send().unwrap();
    assert_eq!(response.text().unwrap(), "there");
    assert_eq!(response.attempts()[1].proxy, None);
    assert_eq!(proxy.counts().requests, 1);
    let asked = world.secure.log().pop().unwrap();
    assert_eq!(asked.header("Proxy-Authorization"), None);
    // Where proxies are required, the second hop is not made.
    let session = recipe.proxies_required(true).build().unwrap();
    let error = session.get(format!("http://{NAME}/?{target}")).send().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ProxyRequired, "{error}");
    assert_eq!(world.secure.counts().requests, 1);
}

#[test]
fn c83_hosts_of_their_own_in_the_map() {
    let world = World::new(Origin::builder().handler(guide));
    let (first, first_url) = gate(&world, "one");
    let (second, second_url) = gate(&world, "two");
    let direct = world.plain.url("/end");
    let mut map = ProxyMap::new();
    map.insert("all", &first_url.exposed()).unwrap();
    map.insert(&format!("https://{NAME}"), &second_url.exposed()).unwrap();
    map.insert("http://127.0.0.1", "").unwrap();
    let session = world.recipe(Road::Tls).proxies(map).build().unwrap();
    let chain = format!("http://{NAME}/?https://{NAME}/?{direct}");
    let response = session.get(chain).send().unwrap();
    let through: Vec<_> =
        response.attempts().iter().map(|attempt| attempt.proxy.is_some()).collect();
    assert_eq!(through, [true, true, false]);
    assert_eq!((first.counts().requests, second.counts().requests), (1, 1));
}

#[test]
fn c83_from_one_kind_of_proxy_to_another() {
    let world = World::new(Origin::builder().handler(guide));
    let (http, http_url) = gate(&world, "one");
    let socks =
        SocksProxy::builder().name(&format!("{NAME}:443"), world.secure.address()).start().unwrap();
    let mut map = ProxyMap::new();
    map.insert("http", &http_url.exposed()).unwrap();
    map.insert("https", &socks.url("socks5h")).unwrap();
    let names = Arc::new(NoNames::default());
    let session = world.recipe(Road::Tls).proxies(map).resolver(names.clone()).build().unwrap();
    let chain = format!("http://{NAME}/?https://{NAME}/?http://{NAME}/end");
    assert_eq!(session.get(chain).send().unwrap().text().unwrap(), "there");
    assert_eq!((http.counts().requests, socks.counts().accepted), (2, 1));
    assert_eq!(names.asked(), [""; 0], "the proxies look names up");
}

#[test]
fn c83_a_member_of_a_pool_carries_the_whole_chain() {
    // One visit of one address: a site would notice the change of exits, and so would its session.
    let world = World::new(Origin::builder().handler(guide));
    let gates = [gate(&world, "one"), gate(&world, "two"), gate(&world, "three")];
    let pool = ProxyPool::new(gates.iter().map(|(_, url)| url.clone()));
    let session = world.recipe(Road::Tls).proxies(pool).build().unwrap();
    for _ in 0..3 {
        let chain = format!("http://{NAME}/?https://{NAME}/?http://{NAME}/end");
        let response = session.get(chain).send().unwrap();
        let mut through: Vec<_> =
            response.attempts().iter().map(|attempt| attempt.proxy.clone()).collect();
        through.dedup();
        assert_eq!((response.attempts().len(), through.len()), (3, 1));
    }
    for (proxy, _) in &gates {
        assert_eq!(proxy.counts().requests, 3, "one chain each");
    }
}

#[test]
fn c83_into_a_host_of_no_proxy_and_out_of_it() {
    let world = World::new(Origin::builder().handler(guide));
    let (proxy, url) = gate(&world, "one");
    let here = world.plain.address();
    let into = format!("http://{NAME}/?http://{here}/end");
    let out_of = format!("http://{here}/?http://{NAME}/end");
    let exempt = here.to_string();
    let env = [("HTTP_PROXY", url.exposed()), ("NO_PROXY", exempt)];
    let env: Vec<_> = env.iter().map(|(name, value)| (*name, value.as_str())).collect();
    for (start, first, proxied) in [(&into, true, "/"), (&out_of, false, "/end")] {
        assert_eq!(in_environment(start, true, &env), "200 there");
        let asked: Vec<_> = proxy.log().into_iter().map(|request| request.path).collect();
        assert_eq!(asked, [proxied], "{start}");
        proxy.clear_log();
        let hosts: Vec<_> =
            world.plain.log().iter().map(|request| request.authority() == NAME).collect();
        assert_eq!(hosts, [first, !first]);
        for request in world.plain.log() {
            assert_eq!(request.header("Proxy-Authorization"), None, "{start}");
        }
        world.plain.clear_log();
    }
}

#[test]
fn c83_the_certificate_of_a_hop_is_checked_for_its_own_name() {
    let world = World::new(Origin::builder().handler(guide));
    let issued = ca().issue(["elsewhere.test"]).unwrap();
    let wrong = Origin::builder().certificate(&issued).start().unwrap();
    let proxy = HttpProxy::builder()
        .name(&format!("{NAME}:80"), world.plain.address())
        .name(&format!("{NAME}:443"), wrong.address())
        .start()
        .unwrap();
    let url = proxy.url().parse::<ProxyUrl>().unwrap();
    let session = world.recipe(Road::TlsTunnel).proxies(url).build().unwrap();
    let error = session.get(format!("http://{NAME}/?https://{NAME}/end")).send().unwrap_err();
    assert_is(&error, ErrorKind::Certificate, Phase::Tls, Fault::Target);
    assert_eq!((error.attempts().len(), wrong.counts().requests), (2, 0));
}
