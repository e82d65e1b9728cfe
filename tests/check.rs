//! What a check finds out about proxies of the lab.
#![cfg(feature = "lab")]
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "helpers of tests fail by panicking, as tests do"
)]

use longhaul::batch::{CheckedProxy, ProxyCheck, ProxyChecks, ProxyState, Rotates};
use longhaul::lab::{Ca, ClosedPort, HttpProxy, Origin, Reply, Script, SocksProxy, reflect};
use longhaul::proxy::ProxyScheme;
use longhaul::time::SystemClock;
use longhaul::transport::{self, Play};
use longhaul::{ErrorKind, ProxyPool, ProxyUrl, Session, SessionBuilder, secs};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Short, since a port that waits for the rest of another protocol says nothing at all.
fn recipe() -> SessionBuilder {
    Session::builder().trust_env(false).timeout((secs(2.0), secs(2.0)))
}

fn endpoint() -> Origin {
    Origin::builder().handler(reflect).start().unwrap()
}

fn check(endpoint: &Origin, proxies: &[String]) -> ProxyChecks {
    check_with(recipe(), &endpoint.url("/"), proxies)
}

fn check_with(recipe: SessionBuilder, url: &str, proxies: &[String]) -> ProxyChecks {
    let proxies: Vec<ProxyUrl> = proxies.iter().map(|proxy| proxy.parse().unwrap()).collect();
    ProxyCheck::new(recipe, url).unwrap().workers(16).run(&proxies).unwrap()
}

fn as_scheme(scheme: &str, address: SocketAddr) -> String {
    format!("{scheme}://{address}")
}

fn ip(text: &str) -> IpAddr {
    text.parse().unwrap()
}

/// State, and the scheme that is suggested.
fn verdict(checked: &CheckedProxy) -> (ProxyState, Option<&'static str>) {
    (checked.state, checked.speaks.map(ProxyScheme::as_str))
}

#[test]
fn a_good_proxy_with_all_its_facts() {
    let endpoint = endpoint();
    let http = HttpProxy::builder().credentials("anna", "hunter2").label("exit-1").start().unwrap();
    let socks = SocksProxy::builder().start().unwrap();
    let found = check(
        &endpoint,
        &[format!("{}:anna:hunter2", http.address()), as_scheme("socks5h", socks.address())],
    );
    assert_eq!(found.direct, Some(ip("127.0.0.1")));
    assert_eq!(found.good().len(), 2);

    let proxy = &found.proxies[0];
    assert_eq!((proxy.n, verdict(proxy)), (1, (ProxyState::Works, None)));
    assert!(proxy.usable && proxy.reachable && proxy.error.is_none());
    assert_eq!(proxy.authenticated, Some(true));
    let forward = proxy.forward.as_ref().unwrap();
    assert_eq!((forward.ok, forward.status), (true, Some(200)));
    let timings = forward.timings.as_ref().unwrap();
    assert!(timings.connect_ms.is_some() && timings.first_byte_ms.is_some());
    assert_eq!(timings.proxy_ms, None);
    let connect = proxy.connect.as_ref().unwrap();
    assert!(connect.ok && connect.timings.as_ref().unwrap().proxy_ms.is_some());
    assert!(proxy.socks.is_none());
    assert_eq!((proxy.keep_alive, proxy.rotates), (Some(true), Some(Rotates::Sticky)));
    assert_eq!((proxy.asked, proxy.told), (4, 4));
    assert_eq!((proxy.exits[0].address, proxy.exits[0].times), (ip("127.0.0.1"), 4));
    let headers = proxy.headers.as_ref().unwrap();
    let added: Vec<_> =
        headers.added.iter().map(|field| (field.name.as_str(), field.value.as_str())).collect();
    assert_eq!(added, [("X-Exit", "exit-1")]);
    assert!(headers.changed.is_empty() && headers.removed.is_empty());
    assert_eq!(proxy.reveals_client, Some(false));

    let proxy = &found.proxies[1];
    assert_eq!((proxy.n, verdict(proxy)), (2, (ProxyState::Works, None)));
    assert_eq!((proxy.authenticated, &proxy.forward, &proxy.connect), (None, &None, &None));
    assert!(proxy.socks.as_ref().unwrap().ok);
    assert!(proxy.headers.as_ref().unwrap().is_empty());

    let shown = format!("{found:?} {}", serde_json::to_string(&found.proxies).unwrap());
    assert!(!shown.contains("hunter2") && !shown.contains("anna"), "{shown}");
}

#[test]
fn wrong_schemes_are_found_out_and_the_right_ones_suggested() {
    let endpoint = endpoint();
    let ca = Ca::new().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let pem = folder.path().join("ca.pem");
    ca.write_pem(&pem).unwrap();
    let http = HttpProxy::builder().start().unwrap();
    let tls = HttpProxy::builder().tls(&ca).start().unwrap();
    let socks = SocksProxy::builder().start().unwrap();
    let closed = HttpProxy::builder().credentials("anna", "right").start().unwrap();
    let cases = [
        // An http endpoint spoken to as SOCKS, and the reverse.
        ("socks5", http.address(), ProxyState::WrongScheme, Some("http")),
        ("socks5h", http.address(), ProxyState::WrongScheme, Some("http")),
        ("socks4a", http.address(), ProxyState::WrongScheme, Some("http")),
        ("http", socks.address(), ProxyState::WrongScheme, Some("socks5h")),
        ("https", socks.address(), ProxyState::WrongScheme, Some("socks5h")),
        // A TLS port spoken to in the clear, and the reverse.
        ("http", tls.address(), ProxyState::WrongScheme, Some("https")),
        ("socks5h", tls.address(), ProxyState::WrongScheme, Some("https")),
        ("https", http.address(), ProxyState::WrongScheme, Some("http")),
        // What wants credentials has shown its protocol as well.
        ("socks5h", closed.address(), ProxyState::WrongScheme, Some("http")),
        ("https", tls.address(), ProxyState::Works, None),
    ];
    let proxies: Vec<String> =
        cases.iter().map(|(scheme, address, ..)| as_scheme(scheme, *address)).collect();
    let found = check_with(recipe().extra_roots(&pem), &endpoint.url("/"), &proxies);
    for ((scheme, _, state, speaks), checked) in cases.iter().zip(&found.proxies) {
        assert_eq!(verdict(checked), (*state, *speaks), "{scheme}: {checked:#?}");
        assert!(checked.reachable, "{scheme}: {checked:?}");
        assert_eq!(checked.usable, *state == ProxyState::Works);
    }
    assert_eq!(found.good().len(), 1);
}

#[test]
fn what_does_not_work_says_why() {
    let endpoint = endpoint();
    let auth = HttpProxy::builder().credentials("anna", "right").start().unwrap();
    let socks = SocksProxy::builder().credentials("anna", "right").start().unwrap();
    let dead = ClosedPort::new().unwrap();
    let forbidding =
        HttpProxy::builder().handler(|_| Some(Reply::new(403).body("no"))).start().unwrap();
    let portal = HttpProxy::builder().handler(|_| Some(Reply::ok("log in"))).start().unwrap();
    let mute = HttpProxy::builder().handler(|_| Some(Script::new().close())).start().unwrap();
    let found = check(
        &endpoint,
        &[
            format!("{}:anna:wrong", auth.address()),
            auth.url(),
            format!("socks5h://anna:wrong@{}", socks.address()),
            as_scheme("http", dead.address()),
            forbidding.url(),
            portal.url(),
            mute.url(),
        ],
    );
    let [wrong, none, socks_wrong, gone, forbids, captive, silent] = &found.proxies[..] else {
        panic!("{found:?}")
    };
    for checked in [wrong, none, socks_wrong] {
        assert_eq!(verdict(checked), (ProxyState::Unauthorized, None), "{checked:?}");
        assert_eq!((checked.reachable, checked.authenticated), (true, Some(false)));
        assert_eq!(checked.error.as_ref().unwrap().kind, "proxy_auth");
    }
    // A refused credential is shown once, and not on every way there is.
    assert_eq!(wrong.forward.as_ref().unwrap().status, Some(407));
    assert!(wrong.connect.is_none());
    assert_eq!(auth.proxy_counts().unauthorized, 2);

    assert_eq!(verdict(gone), (ProxyState::Unreachable, None));
    assert!(!gone.reachable && gone.forward.as_ref().unwrap().error.is_some());
    assert_eq!(gone.error.as_ref().unwrap().kind, "proxy_unreachable");

    assert_eq!(verdict(forbids), (ProxyState::Refuses, None));
    assert_eq!(forbids.forward.as_ref().unwrap().status, Some(403));
    assert_eq!(forbids.connect.as_ref().unwrap().status, Some(403));

    assert_eq!(captive.state, ProxyState::Refuses, "{captive:?}");
    assert!(!captive.forward.as_ref().unwrap().ok);
    assert!(captive.error.as_ref().unwrap().message.contains("not the answer of the endpoint"));

    assert_eq!(verdict(silent), (ProxyState::Broken, None));
    assert!(silent.reachable);
    assert!(found.good().is_empty());
}

#[test]
fn a_proxy_that_refuses_one_way_works_by_the_other() {
    let endpoint = endpoint();
    let only = |method: &'static str| {
        let refuse = move |request: &longhaul::lab::Received| {
            ((request.method == "CONNECT") == (method == "CONNECT")).then(|| Reply::new(403))
        };
        HttpProxy::builder().handler(refuse).start().unwrap()
    };
    let (no_connect, no_forward) = (only("CONNECT"), only("GET"));
    let found = check(&endpoint, &[no_connect.url(), no_forward.url()]);
    for (checked, forwards) in found.proxies.iter().zip([true, false]) {
        assert_eq!(verdict(checked), (ProxyState::Works, None), "{checked:?}");
        assert_eq!(checked.forward.as_ref().unwrap().ok, forwards);
        assert_eq!(checked.connect.as_ref().unwrap().ok, !forwards);
    }
}

#[test]
fn gateways_that_rotate_are_told_from_those_that_do_not() {
    let endpoint = endpoint();
    let exits = ["127.0.0.2", "127.0.0.3", "127.0.0.4", "127.0.0.5"].map(ip);
    let rotating = HttpProxy::builder().exits(exits).start().unwrap();
    let sticky = HttpProxy::builder().exits([ip("127.0.0.9")]).start().unwrap();
    let socks = SocksProxy::builder().exits(exits).start().unwrap();
    let found =
        check(&endpoint, &[rotating.url(), sticky.url(), as_scheme("socks5h", socks.address())]);
    let rotates: Vec<_> = found.proxies.iter().map(|checked| checked.rotates).collect();
    let per_connection = Some(Rotates::PerConnection);
    assert_eq!(rotates, [per_connection, Some(Rotates::Sticky), per_connection]);
    let seen = |at: usize| {
        let exits = &found.proxies[at].exits;
        exits.iter().map(|exit| (exit.address, exit.times)).collect::<Vec<_>>()
    };
    assert_eq!(seen(1), [(ip("127.0.0.9"), 4)]);
    assert!(seen(0).len() >= 2, "{:?}", seen(0));
    assert_eq!(seen(2).len(), 4);
    assert_eq!(found.proxies[0].keep_alive, Some(true));
}

#[test]
fn a_gateway_that_rotates_with_each_request_and_one_that_closes() {
    let endpoint = endpoint();
    let count = AtomicUsize::new(0);
    let each = HttpProxy::builder()
        .handler(move |request| {
            let n = count.fetch_add(1, Ordering::SeqCst);
            let answer = Reply::ok(format!(r#"{{"origin":"192.0.2.{}"}}"#, n + 1));
            (request.method != "CONNECT").then_some(answer)
        })
        .start()
        .unwrap();
    let closes =
        HttpProxy::builder().handler(|_| Some(Reply::ok("192.0.2.77").close())).start().unwrap();
    let found = check(&endpoint, &[each.url(), closes.url()]);
    assert_eq!(found.proxies[0].rotates, Some(Rotates::PerRequest));
    assert_eq!(found.proxies[0].keep_alive, Some(true));
    assert_eq!(found.proxies[1].rotates, Some(Rotates::Sticky));
    assert_eq!(found.proxies[1].keep_alive, Some(false));
    // An answer without fields says nothing of what is added to them.
    assert_eq!(found.proxies[0].headers, None);
}

/// Addresses that a loopback cannot show, from a transport that plays them.
#[test]
fn the_own_address_behind_a_proxy_is_a_leak() {
    let own = "192.0.2.1";
    let forwarded = format!(
        r#"{{"origin":"198.51.100.7","headers":{{"Host":"echo.test","X-Forwarded-For":"{own}"}}}}"#
    );
    let script = transport::Script::with(Arc::new(SystemClock), move |asked, _| {
        match asked.proxy.as_deref() {
            None | Some("http://leaky:1") => Play::status(200).body(own),
            Some("http://telltale:1") => Play::status(200).body(forwarded.clone()),
            Some(_) => Play::status(200).body("198.51.100.8"),
        }
    });
    let recipe = recipe().transport(move || script.clone());
    let proxies = ["leaky:1", "telltale:1", "discreet:1"].map(str::to_owned);
    let found = check_with(recipe, "http://echo.test/", &proxies);
    assert_eq!(found.direct, Some(ip(own)));
    let [leaky, telltale, discreet] = &found.proxies[..] else { panic!("{found:?}") };
    assert_eq!((leaky.state, leaky.usable), (ProxyState::Leaks, false));
    assert_eq!(leaky.error.as_ref().unwrap().kind, "exit_leak");
    assert_eq!((telltale.state, telltale.reveals_client), (ProxyState::Works, Some(true)));
    assert_eq!((discreet.state, discreet.reveals_client), (ProxyState::Works, None));
    assert_eq!(found.good().len(), 2);
}

#[test]
fn an_endpoint_of_no_use_is_an_error_and_not_the_fault_of_the_proxies() {
    let missing = Origin::builder().handler(|_| Reply::new(404)).start().unwrap();
    let check = ProxyCheck::new(recipe(), &missing.url("/")).unwrap();
    let error = check.run(&["h:1".parse().unwrap()]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Config);
    assert!(error.to_string().contains("status 404 without a proxy"), "{error}");
    for url in ["", "ftp://h/", "h:1", "http://"] {
        assert_eq!(ProxyCheck::new(recipe(), url).unwrap_err().kind(), ErrorKind::InvalidUrl);
    }
}

#[test]
fn the_list_of_good_ones_can_be_read_back_and_only_by_its_owner() {
    let endpoint = endpoint();
    let proxy = HttpProxy::builder().credentials("an na", "p@ss:w#rd").start().unwrap();
    let template = HttpProxy::builder().credentials("anna-session-1", "x").start().unwrap();
    let dead = ClosedPort::new().unwrap();
    let list = [
        format!("http://an%20na:p%40ss%3Aw%23rd@{}", proxy.address()),
        as_scheme("http", dead.address()),
        format!("{}:anna-session-{{n}}:x", template.address()),
    ];
    let found = check(&endpoint, &list);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("good.txt");
    std::fs::write(&path, "what was there before, longer than what comes now".repeat(9)).unwrap();
    found.write_good(&path).unwrap();
    let text = std::fs::read_to_string(&path).unwrap();
    let good = ProxyPool::parse(&text).unwrap();
    let wanted: Vec<ProxyUrl> =
        [&list[0], &list[2]].iter().map(|proxy| proxy.parse().unwrap()).collect();
    assert_eq!(good.proxies().cloned().collect::<Vec<_>>(), wanted);
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let mode = std::fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }
    let gone = found.write_good(&folder.path().join("no/such")).unwrap_err();
    assert_eq!(gone.kind(), ErrorKind::Io);
}
