use std::io::Write;
use std::net::{SocketAddr, ToSocketAddrs};

use longhaul::lab::{AddressKind, ClosedPort, Origin, Reply, Script, SocksProxy, hostile};
use socks::{Socks4Stream, Socks5Stream, TargetAddr};

use crate::raw::{SOON, connect, exchange, expect, to_end, to_failure};

const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
const GET: &[u8] = b"GET / HTTP/1.1\r\nConnection: close\r\n\r\n";

fn origin() -> Origin {
    Origin::builder().handler(|_| Reply::ok("ok")).start().unwrap()
}

fn name(host: &str, port: u16) -> TargetAddr {
    TargetAddr::Domain(host.to_owned(), port)
}

#[test]
fn an_independent_client_gets_through_with_every_version() {
    let origin = origin();
    let proxy = SocksProxy::builder().name("shop.test", origin.address()).start().unwrap();
    let at = proxy.address();
    let address = TargetAddr::Ip(origin.address());
    let mut streams = [
        Socks4Stream::connect(at, address.clone(), "me").unwrap().into_inner(),
        Socks4Stream::connect(at, name("shop.test", 80), "").unwrap().into_inner(),
        Socks5Stream::connect(at, address).unwrap().into_inner(),
        Socks5Stream::connect(at, name("Shop.Test", 443)).unwrap().into_inner(),
    ];
    for stream in &mut streams {
        stream.write_all(GET).unwrap();
        assert_eq!(to_end(stream), OK);
    }
    let port = origin.address().port();
    let seen: Vec<_> = proxy
        .log()
        .into_iter()
        .map(|seen| (seen.version, seen.command, seen.kind, seen.host, seen.port, seen.user))
        .collect();
    let ip = || "127.0.0.1".to_owned();
    assert_eq!(
        seen,
        [
            (4, 1, AddressKind::Ipv4, ip(), port, Some("me".to_owned())),
            (4, 1, AddressKind::Domain, "shop.test".to_owned(), 80, None),
            (5, 1, AddressKind::Ipv4, ip(), port, None),
            (5, 1, AddressKind::Domain, "Shop.Test".to_owned(), 443, None),
        ]
    );
    drop(streams);
    assert!(proxy.wait_until_idle(SOON));
    let counts = proxy.socks_counts();
    assert_eq!((counts.tunnels, counts.dialed, counts.unauthorized), (4, 4, 0));
    assert_eq!(counts.tunnelled_bytes, 4 * (GET.len() + OK.len()) as u64);
}

#[test]
fn credentials_are_checked() {
    let origin = origin();
    let proxy = SocksProxy::builder().credentials("user", "p\u{e4}ss").start().unwrap();
    let target = || TargetAddr::Ip(origin.address());
    let at = proxy.address();
    let mut stream =
        Socks5Stream::connect_with_password(at, target(), "user", "p\u{e4}ss").unwrap();
    stream.write_all(GET).unwrap();
    assert_eq!(to_end(&mut stream), OK);
    assert!(Socks5Stream::connect_with_password(at, target(), "user", "wrong").is_err());
    assert!(Socks5Stream::connect_with_password(at, target(), "user2", "p\u{e4}ss").is_err());
    assert!(Socks5Stream::connect(at, target()).is_err());
    assert!(Socks4Stream::connect(at, target(), "user").is_ok());
    assert!(Socks4Stream::connect(at, target(), "other").is_err());
    assert_eq!(proxy.socks_counts().unauthorized, 4);
    assert_eq!(proxy.log()[0].user.as_deref(), Some("user"));
    let shown = format!("{:?} {:?}", proxy.log()[0], SocksProxy::builder().credentials("u", "pw9"));
    assert!(!shown.contains("\"user\"") && !shown.contains("pw9"), "{shown}");
}

#[test]
fn refusals_say_why() {
    let closed = ClosedPort::new().unwrap();
    let proxy = SocksProxy::builder().name("closed.test", closed.address()).start().unwrap();
    let hello = b"\x05\x01\x00";
    for (request, code) in [
        (&b"\x05\x01\x00\x03\x0bclosed.test\x00\x50"[..], 5),
        (b"\x05\x01\x00\x03\x0cunknown.test\x00\x50", 4),
        (b"\x05\x01\x00\x01\xc0\x00\x02\x01\x00\x50", 4),
        (b"\x05\x02\x00\x01\x7f\x00\x00\x01\x00\x50", 7),
    ] {
        let answer = exchange(proxy.address(), [&hello[..], request].concat());
        let wanted = ['\x05', '\0', '\x05', char::from(code), '\0', '\x01'];
        assert!(answer.chars().take(6).eq(wanted), "{}", answer.escape_debug());
        assert_eq!(answer.len(), 12);
    }
    assert_eq!(exchange(proxy.address(), b"\x05\x01\x02"), "\x05\u{ff}");
    let v4 = exchange(proxy.address(), b"\x04\x01\x00\x50\x00\x00\x00\x01\x00unknown.test\x00");
    assert_eq!(v4, "\0[\0\0\0\0\0\0");
    assert_eq!(exchange(proxy.address(), b"GET / HTTP/1.1\r\n\r\n"), "");
    assert!(proxy.wait_until_idle(SOON));
    assert_eq!(proxy.counts().malformed, 1);
}

#[test]
fn ipv6_targets_are_understood() {
    let origin = origin();
    let proxy = SocksProxy::builder().name("2001:db8::1", origin.address()).start().unwrap();
    let target: SocketAddr = "[2001:db8::1]:80".to_socket_addrs().unwrap().next().unwrap();
    let mut stream = Socks5Stream::connect(proxy.address(), target).unwrap();
    stream.write_all(GET).unwrap();
    assert_eq!(to_end(&mut stream), OK);
    assert_eq!(proxy.log()[0].kind, AddressKind::Ipv6);
}

#[test]
fn hostile_replies_by_name() {
    let origin = origin();
    let proxy = SocksProxy::builder()
        .elsewhere(origin.address())
        .handler(hostile::socks_proxy)
        .start()
        .unwrap();
    let ask = |label: &str| {
        let host = format!("{label}.test");
        let mut stream = connect(proxy.address());
        stream.write_all(b"\x05\x01\x00\x05\x01\x00\x03").unwrap();
        stream.write_all(&[u8::try_from(host.len()).unwrap()]).unwrap();
        stream.write_all(host.as_bytes()).unwrap();
        stream.write_all(b"\x00\x50").unwrap();
        expect(&mut stream, "\x05\0");
        stream
    };
    for (label, wanted) in [
        ("ok", "\x05\0\0\x01\0\0\0\0\0\0"),
        ("atyp0", "\x05\0\0\0\0\0\0\0\0\0"),
        ("domain", "\x05\0\0\x03\x09exit.test\0P"),
        ("unlisted", "\x05\0\0\x01\0\0\0\0\0\0"),
    ] {
        let mut stream = ask(label);
        expect(&mut stream, wanted);
        stream.write_all(GET).unwrap();
        assert_eq!(to_end(&mut stream), OK, "{label}");
    }
    expect(&mut ask("early"), &format!("\x05\0\0\x01\0\0\0\0\0\0{OK}"));
    for (label, wanted) in [("err1", "\x05\x01\0\x01\0\0\0\0\0\0"), ("fin", "")] {
        assert_eq!(to_end(&mut ask(label)), wanted, "{label}");
    }
    let reset = Some(std::io::ErrorKind::ConnectionReset);
    assert_eq!(to_failure(&mut ask("rst")), (String::new(), reset));
    drop(ask("hang"));
    assert!(proxy.wait_until_idle(SOON));
}

#[test]
fn a_handler_sees_what_was_asked() {
    let proxy = SocksProxy::builder()
        .handler(|request| {
            (request.port == 81).then(|| Script::send([5, 2, 0, 1, 0, 0, 0, 0, 0, 0]).fin())
        })
        .start()
        .unwrap();
    let error = Socks5Stream::connect(proxy.address(), name("a.test", 81)).unwrap_err();
    assert!(error.to_string().contains("not allowed"), "{error}");
}
