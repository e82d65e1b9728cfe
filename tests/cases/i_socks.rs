//! Section I: SOCKS, from the greeting to who is to blame.

use crate::roads::{Always, NAME, NoNames, assert_is, ca, recipe};
use longhaul::error::{Error, ErrorKind, Fault, Phase};
use longhaul::lab::{AddressKind, ClosedPort, Origin, Reply, Script, SocksProxy, hostile};
use longhaul::policy::Timeouts;
use longhaul::transport::ResolveError;
use longhaul::{ProxyPool, ProxyUrl, SessionBuilder, secs};
use std::io::{Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

fn page() -> Origin {
    Origin::builder().handler(|_| Reply::ok("page")).start().unwrap()
}

/// A proxy whose replies go by the first label of the name, in front of this origin.
fn hostile(origin: &Origin) -> SocksProxy {
    SocksProxy::builder().elsewhere(origin.address()).handler(hostile::socks_proxy).start().unwrap()
}

fn through(url: &str) -> SessionBuilder {
    recipe().proxies(url.parse::<ProxyUrl>().unwrap())
}

/// A server that reads so many bytes, writes these, and so on, and then leaves; or stays.
fn raw(talk: Vec<(usize, Vec<u8>)>, stays: bool) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        // One connection; its thread ends with the client.
        let Ok((mut stream, _)) = listener.accept() else { return };
        for (wanted, bytes) in talk {
            let mut read = vec![0; wanted];
            if stream.read_exact(&mut read).is_err() || stream.write_all(&bytes).is_err() {
                return;
            }
        }
        if stays {
            let _ = std::io::copy(&mut stream, &mut std::io::sink());
        } else {
            let _ = stream.shutdown(std::net::Shutdown::Write);
            let _ = std::io::copy(&mut stream, &mut std::io::sink());
        }
    });
    address
}

/// The error behind a proxy that says this.
fn failing(scheme: &str, userinfo: &str, talk: Vec<(usize, Vec<u8>)>, stays: bool) -> Error {
    let connect = if stays { 0.3 } else { 20.0 };
    through(&format!("{scheme}://{userinfo}{}", raw(talk, stays)))
        .timeout((secs(connect), secs(20.0)))
        .build()
        .unwrap()
        .get("http://a.test/")
        .send()
        .unwrap_err()
}

#[test]
fn c120_a_handshake_that_stalls_or_drips_ends_with_the_connect_timeout() {
    let origin = page();
    let proxy = hostile(&origin);
    for name in ["hang", "drip"] {
        for target in ["http", "https"] {
            let session = through(&proxy.url("socks5h")).build().unwrap();
            let get = || session.get(format!("{target}://{name}.test/"));
            let error = get().timeout((secs(0.5), secs(20.0))).send().unwrap_err();
            assert_is(&error, ErrorKind::ConnectTimeout, Phase::Proxy, Fault::Proxy);
            assert!(error.is_unsent());
            let deadline = Timeouts::unlimited().with_deadline(secs(0.5)).unwrap();
            let error = get().timeout(deadline).send().unwrap_err();
            assert_is(&error, ErrorKind::Deadline, Phase::Proxy, Fault::Proxy);
        }
    }
    assert_eq!(origin.counts().requests, 0);
}

#[test]
fn c120_at_each_step_of_each_version() {
    let user = "user:pass@";
    for (scheme, userinfo, talk) in [
        ("socks5h", "", vec![]),
        ("socks5h", "", vec![(3, vec![5])]),
        ("socks5h", "", vec![(3, vec![5, 0])]),
        ("socks5h", "", vec![(3, vec![5, 0]), (13, vec![5, 0, 0, 1])]),
        ("socks5h", "", vec![(3, vec![5, 0]), (13, vec![5, 0, 0, 3])]),
        ("socks5h", "", vec![(3, vec![5, 0]), (13, vec![5, 0, 0, 3, 9, b'x'])]),
        ("socks5h", user, vec![(4, vec![5, 2])]),
        ("socks5h", user, vec![(4, vec![5, 2]), (11, vec![1])]),
        ("socks5h", user, vec![(4, vec![5, 2]), (11, vec![1, 0])]),
        ("socks4a", "", vec![]),
        ("socks4a", "", vec![(16, vec![0, 90])]),
    ] {
        let error = failing(scheme, userinfo, talk.clone(), true);
        assert_is(&error, ErrorKind::ConnectTimeout, Phase::Proxy, Fault::Proxy);
        // And where it leaves instead.
        let error = failing(scheme, userinfo, talk, false);
        assert_is(&error, ErrorKind::ProxyUnreachable, Phase::Proxy, Fault::Proxy);
    }
}

#[test]
fn c120_replies_in_pieces_of_one_byte_and_broken_off_anywhere() {
    let origin = page();
    for reply in [
        vec![5, 0, 0, 1, 0, 0, 0, 0, 0, 0],
        vec![5, 0, 0, 0, 0, 0, 0, 0, 0, 0],
        b"\x05\x00\x00\x03\x09exit.test\x00\x50".to_vec(),
        [&[5, 0, 0, 4][..], &[0; 18]].concat(),
    ] {
        let whole = reply.clone();
        let proxy = SocksProxy::builder()
            .elsewhere(origin.address())
            .handler(move |request| {
                let at: usize = request.host.trim_end_matches(".test").parse().unwrap();
                Some(if at == whole.len() {
                    Script::new().drip(&whole, Duration::from_millis(1)).tunnel()
                } else {
                    Script::send(&whole[..at]).fin()
                })
            })
            .start()
            .unwrap();
        let session = through(&proxy.url("socks5h")).build().unwrap();
        for at in 0..reply.len() {
            let error = session.get(format!("http://{at}.test/")).send().unwrap_err();
            assert_is(&error, ErrorKind::ProxyUnreachable, Phase::Proxy, Fault::Proxy);
        }
        let response = session.get(format!("http://{}.test/", reply.len())).send().unwrap();
        assert_eq!(response.text().unwrap(), "page");
    }
}

#[test]
fn c120_odd_replies_that_grant() {
    let origin = page();
    let proxy = hostile(&origin);
    let session = through(&proxy.url("socks5h")).build().unwrap();
    for name in ["ok", "atyp0", "rsv", "domain", "v6"] {
        let response = session.get(format!("http://{name}.test/")).send().unwrap();
        assert_eq!(response.text().unwrap(), "page", "{name}");
    }
    // A target that speaks at once: its bytes come with the reply, and none is lost.
    let response = session.get("http://early.test/").send().unwrap();
    assert_eq!(response.text().unwrap(), "ok");
}

#[test]
fn c123_who_looks_the_name_up_and_what_the_proxy_is_told() {
    let origin = page();
    let (port, home) = (origin.address().port(), "127.0.0.1");
    for (scheme, version, kind, host, local) in [
        ("socks5", 5, AddressKind::Ipv4, home, true),
        ("socks", 5, AddressKind::Ipv4, home, true),
        ("socks5h", 5, AddressKind::Domain, NAME, false),
        ("socks4", 4, AddressKind::Ipv4, home, true),
        ("socks4a", 4, AddressKind::Domain, NAME, false),
    ] {
        let proxy = SocksProxy::builder().name(NAME, origin.address()).start().unwrap();
        let watched = Arc::new(NoNames::default());
        let session = through(&proxy.url(scheme));
        let session = if local {
            session.resolver(Always::home())
        } else {
            session.resolver(watched.clone())
        };
        let url = format!("http://{NAME}:{port}/");
        let response = session.build().unwrap().get(url).send().unwrap();
        assert_eq!(response.text().unwrap(), "page", "{scheme}");
        let [request] = &proxy.log()[..] else { panic!("{scheme}") };
        assert_eq!((request.version, request.kind), (version, kind), "{scheme}");
        assert_eq!((request.host.as_str(), request.port), (host, port), "{scheme}");
        assert_eq!(request.user, None, "{scheme}");
        assert!(watched.asked().is_empty(), "{scheme}: {:?}", watched.asked());
    }
    // An address is an address in every scheme.
    for scheme in ["socks5", "socks5h", "socks4", "socks4a"] {
        let proxy = SocksProxy::builder().start().unwrap();
        let session = through(&proxy.url(scheme)).build().unwrap();
        session.get(origin.url("/")).send().unwrap();
        assert_eq!(proxy.log()[0].kind, AddressKind::Ipv4, "{scheme}");
    }
}

#[test]
fn c123_ports_credentials_and_user_ids() {
    for scheme in ["socks", "socks4", "socks4a", "socks5", "socks5h"] {
        let url: ProxyUrl = format!("{scheme}://proxy.test").parse().unwrap();
        assert_eq!(url.port(), 1080, "{scheme}");
    }
    let origin = page();
    for (scheme, user, password) in [
        ("socks5h", "user", "pass"),
        ("socks5h", "user", ""),
        ("socks5", "us%40er", "p%3Aa"),
        ("socks4", "user", ""),
        ("socks4a", "user", "not sent"),
    ] {
        let decoded = user.replace("%40", "@");
        let proxy = SocksProxy::builder()
            .credentials(&decoded, &password.replace("%3A", ":"))
            .name(NAME, origin.address())
            .start()
            .unwrap();
        let at = proxy.address();
        let recipe = |user: &str| {
            through(&format!("{scheme}://{user}:{password}@{at}")).resolver(Always::home())
        };
        let url = format!("http://{NAME}:{}/", origin.address().port());
        recipe(user).build().unwrap().get(&url).send().unwrap();
        assert_eq!(proxy.log()[0].user.as_deref(), Some(decoded.as_str()), "{scheme}");

        // Refused, once, and as one event.
        let session = recipe("n0body").retry(5).build().unwrap();
        let error = session.get(&url).send().unwrap_err();
        assert_is(&error, ErrorKind::ProxyAuth, Phase::Proxy, Fault::Proxy);
        assert_eq!(error.attempts().len(), 1);
        assert!(error.proxy_reply().unwrap().socks);
        assert_eq!(proxy.socks_counts().unauthorized, 1);
        assert!(!format!("{error:?} {error}").contains("n0body"));
    }
    // A proxy that wants credentials, and a URL that has none.
    let proxy = SocksProxy::builder().credentials("user", "pass").start().unwrap();
    let session = through(&proxy.url("socks5h")).build().unwrap();
    let error = session.get("http://a.test/").send().unwrap_err();
    assert_is(&error, ErrorKind::ProxyAuth, Phase::Proxy, Fault::Proxy);
}

#[test]
fn c123_socks4_carries_no_ipv6() {
    let proxy = SocksProxy::builder().start().unwrap();
    let six: IpAddr = "2001:db8::1".parse().unwrap();
    for scheme in ["socks4", "socks4a"] {
        let session = through(&proxy.url(scheme)).build().unwrap();
        let error = session.get("http://[2001:db8::1]/").send().unwrap_err();
        assert_eq!((error.kind(), error.fault()), (ErrorKind::InvalidUrl, Fault::Local));
        assert!(error.to_string().contains("SOCKS4 carries no IPv6 address"), "{error}");
    }
    // A name that has nothing else.
    let session = through(&proxy.url("socks4")).resolver(Arc::new(Always(Ok(vec![six]))));
    let error = session.build().unwrap().get("http://six.test/").send().unwrap_err();
    assert!(error.to_string().contains("2001:db8::1"), "{error}");
    // And one that has both.
    let origin = page();
    let home = IpAddr::from([127, 0, 0, 1]);
    let session = through(&proxy.url("socks4")).resolver(Arc::new(Always(Ok(vec![six, home]))));
    let url = format!("http://both.test:{}/", origin.address().port());
    session.build().unwrap().get(url).send().unwrap();
    assert_eq!(proxy.log().len(), 1);
    // SOCKS5 carries it.
    let session = through(&proxy.url("socks5h")).build().unwrap();
    let error = session.get("http://[2001:db8::1]/").send().unwrap_err();
    assert_is(&error, ErrorKind::Connection, Phase::Proxy, Fault::Target);
    assert_eq!(proxy.log()[1].kind, AddressKind::Ipv6);
}

#[test]
fn c123_socks5_tries_the_other_addresses_of_the_name() {
    let origin = page();
    let port = origin.address().port();
    let addresses: Vec<IpAddr> =
        ["127.0.0.9", "127.0.0.8", "127.0.0.1"].map(|address| address.parse().unwrap()).to_vec();
    let proxy = SocksProxy::builder().start().unwrap();
    let session = through(&proxy.url("socks5")).resolver(Arc::new(Always(Ok(addresses))));
    let url = format!("http://many.test:{port}/");
    assert_eq!(session.build().unwrap().get(url).send().unwrap().status(), 200);
    let hosts: Vec<_> = proxy.log().iter().map(|request| request.host.clone()).collect();
    assert_eq!(hosts, ["127.0.0.9", "127.0.0.8", "127.0.0.1"]);
    // A refusal by the proxy's own rules is not asked about again.
    let asked = Arc::new(AtomicUsize::new(0));
    let count = asked.clone();
    let strict = SocksProxy::builder()
        .handler(move |_| {
            count.fetch_add(1, Ordering::SeqCst);
            hostile::socks_script("err2")
        })
        .start()
        .unwrap();
    let home = IpAddr::from([127, 0, 0, 1]);
    let session = through(&strict.url("socks5")).resolver(Arc::new(Always(Ok(vec![home; 3]))));
    session.build().unwrap().get("http://many.test/").send().unwrap_err();
    assert_eq!(asked.load(Ordering::SeqCst), 1);
}

#[test]
fn c123_a_missing_name_is_the_targets_even_so() {
    let proxy = SocksProxy::builder().start().unwrap();
    for (answer, kind) in [
        (ResolveError::NotFound("no".to_owned()), ErrorKind::NameNotFound),
        (ResolveError::Temporary("later".to_owned()), ErrorKind::NameLookup),
    ] {
        let session = through(&proxy.url("socks5")).resolver(Arc::new(Always(Err(answer))));
        let error = session.build().unwrap().get("http://gone.test/").send().unwrap_err();
        assert_is(&error, kind, Phase::Dns, Fault::Target);
    }
    // Where the proxy looks it up, it says so in its own way.
    let session = through(&proxy.url("socks5h")).build().unwrap();
    let error = session.get("http://gone.test/").send().unwrap_err();
    assert_is(&error, ErrorKind::Connection, Phase::Proxy, Fault::Target);
}

#[test]
fn c124_who_failed() {
    let origin = page();
    let proxy = hostile(&origin);
    for (code, kind, fault) in [
        (1, ErrorKind::ProxyRefused, Fault::Proxy),
        (2, ErrorKind::ProxyRefused, Fault::Proxy),
        (3, ErrorKind::Connection, Fault::Target),
        (4, ErrorKind::Connection, Fault::Target),
        (5, ErrorKind::Connection, Fault::Target),
        (6, ErrorKind::Connection, Fault::Target),
        (7, ErrorKind::ProxyRefused, Fault::Proxy),
        (8, ErrorKind::ProxyRefused, Fault::Proxy),
    ] {
        let recipe = recipe().proxies(ProxyPool::parse(&proxy.url("socks5h")).unwrap());
        let session = recipe.build().unwrap();
        let error = session.get(format!("http://err{code}.test/")).send().unwrap_err();
        assert_is(&error, kind, Phase::Proxy, fault);
        let reply = error.proxy_reply().unwrap();
        assert_eq!((reply.code, reply.socks), (code, true));
        assert!(error.is_unsent() && error.to_string().contains(&format!("reply {code}")));
        let stats = recipe.proxy_stats();
        let held_against_it = u64::from(fault == Fault::Proxy);
        assert_eq!((stats[0].bad, stats[0].in_flight), (held_against_it, 0), "{code}");
    }
    for code in [0x09, 0x42, 0xff] {
        let error = failing(
            "socks5h",
            "",
            vec![(3, vec![5, 0]), (13, vec![5, code, 0, 1, 0, 0, 0, 0, 0, 0])],
            false,
        );
        assert_is(&error, ErrorKind::ProxyRefused, Phase::Proxy, Fault::Proxy);
    }
    for (code, kind) in [
        (91, ErrorKind::ProxyRefused),
        (92, ErrorKind::ProxyAuth),
        (93, ErrorKind::ProxyAuth),
        (0, ErrorKind::ProxyRefused),
    ] {
        let talk = vec![(16, vec![0, code, 0, 0, 0, 0, 0, 0])];
        let error = failing("socks4a", "", talk, false);
        assert_is(&error, kind, Phase::Proxy, Fault::Proxy);
    }
}

#[test]
fn c124_what_is_no_socks_is_the_proxys_fault() {
    let origin = page();
    let proxy = hostile(&origin);
    for name in ["fin", "rst", "html"] {
        let session = through(&proxy.url("socks5h")).build().unwrap();
        let error = session.get(format!("http://{name}.test/")).send().unwrap_err();
        assert_is(&error, ErrorKind::ProxyUnreachable, Phase::Proxy, Fault::Proxy);
    }
    for (scheme, first) in [
        ("socks5h", &b"HTTP/1.1 400 Bad Request\r\n\r\n"[..]),
        ("socks5h", b"\x04\x5a"),
        ("socks5h", b"SSH-2.0"),
        ("socks4a", b"\x05\x00\x00\x01\x00\x00\x00\x00"),
        ("socks4a", b"HTTP/1.1 400 Bad"),
    ] {
        let wanted = if scheme == "socks4a" { 16 } else { 3 };
        let error = failing(scheme, "", vec![(wanted, first.to_vec())], false);
        assert_is(&error, ErrorKind::ProxyUnreachable, Phase::Proxy, Fault::Proxy);
    }
    let error = failing("socks5h", "", vec![(3, b"HT".to_vec())], false);
    assert!(error.to_string().contains("looks like an HTTP proxy"), "{error}");
    // A method that nobody offered.
    for method in [1, 2, 3, 0x80] {
        let error = failing("socks5h", "", vec![(3, vec![5, method])], false);
        assert_is(&error, ErrorKind::ProxyAuth, Phase::Proxy, Fault::Proxy);
    }
    let closed = ClosedPort::new().unwrap();
    let session = through(&format!("socks5h://{}", closed.address())).build().unwrap();
    let error = session.get("http://a.test/").send().unwrap_err();
    assert_is(&error, ErrorKind::ProxyUnreachable, Phase::Connect, Fault::Proxy);
}

#[test]
fn c124_the_failures_of_a_target_behind_socks_are_its_own() {
    let secure = Origin::builder().tls(ca()).start().unwrap();
    let proxy = SocksProxy::builder().elsewhere(secure.address()).start().unwrap();
    // A certificate that nobody here knows.
    let session = through(&proxy.url("socks5h")).build().unwrap();
    let error = session.get("https://a.test/").send().unwrap_err();
    assert_is(&error, ErrorKind::Certificate, Phase::Tls, Fault::Target);
    let origin = Origin::builder().handler(hostile::origin).start().unwrap();
    let proxy = SocksProxy::builder().elsewhere(origin.address()).start().unwrap();
    let session = through(&proxy.url("socks5h")).build().unwrap();
    for (name, kind, phase) in [
        ("fin", ErrorKind::Connection, Phase::Headers),
        ("rst", ErrorKind::Connection, Phase::Headers),
        ("html", ErrorKind::Protocol, Phase::Headers),
        ("cl-short-rst", ErrorKind::IncompleteBody, Phase::Body),
    ] {
        let error = session.get(format!("http://a.test/b/{name}")).send().unwrap_err();
        assert_is(&error, kind, phase, Fault::Target);
    }
}
