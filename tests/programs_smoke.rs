//! Each real server of the tests comes up, answers a client of the barest kind, and logs it.
#![cfg(all(feature = "lab", unix))]
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "helpers of tests fail by panicking, as tests do"
)]

mod support;

use std::io::Write as _;
use std::net::SocketAddr;

use socks::{Socks4Stream, Socks5Stream, TargetAddr};

use support::dante::{Dante, Method};
use support::lighttpd::Lighttpd;
use support::microsocks::Microsocks;
use support::nginx::{LARGE, Nginx, PAGE, SMALL};
use support::raw::{client_config, connect, exchange, expect, get, tls, to_end};
use support::squid::{Squid, SquidOptions};
use support::stunnel::Stunnel;
use support::tinyproxy::Tinyproxy;
use support::{PASSWORD, USER};

/// [`USER`] and [`PASSWORD`] as Basic credentials.
const BASIC: &str = "Proxy-Authorization: Basic bGFiOmMwcnJlY3QtaG9yc2U=\r\n";

const GET: &str = "GET /small/1 HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";

fn body(answer: &str) -> &str {
    answer.split_once("\r\n\r\n").unwrap_or_else(|| panic!("no head: {answer}")).1
}

fn assert_status(answer: &str, status: u16) {
    let found = answer.split(' ').nth(1);
    assert_eq!(found, Some(status.to_string().as_str()), "{answer}");
}

#[test]
fn nginx_serves_pages_of_several_sizes_and_faults() {
    let Some(nginx) = Nginx::start() else { return };
    for (path, length) in [("/page/7", PAGE), ("/small/7", SMALL), ("/large/7", LARGE)] {
        let answer = get(nginx.plain(), path);
        assert_status(&answer, 200);
        assert_eq!(body(&answer).len(), length);
    }
    for (path, status) in
        [("/forbidden", 403), ("/gone", 410), ("/broken", 500), ("/moved", 302), ("/nowhere", 404)]
    {
        assert_status(&get(nginx.plain(), path), status);
    }
    let throttled = get(nginx.plain(), "/throttled");
    assert_status(&throttled, 503);
    assert!(throttled.contains("\r\nRetry-After: 2\r\n"), "{throttled}");
    let packed = exchange(
        nginx.plain(),
        "GET /page/1 HTTP/1.1\r\nHost: h\r\nAccept-Encoding: gzip\r\nConnection: close\r\n\r\n",
    );
    assert!(packed.contains("\r\nContent-Encoding: gzip\r\n"));
    assert!(packed.len() < PAGE);

    let mut stream = tls(&client_config(nginx.ca()), "localhost", connect(nginx.tls()));
    stream.write_all(GET.as_bytes()).unwrap();
    assert_eq!(body(&to_end(&mut stream)).len(), SMALL);

    let line = format!("{} \"GET /throttled HTTP/1.1\" 503 6 ", nginx.plain().port());
    nginx.program().wait_for_log("access.log", |log| log.contains(&line));
    let line = format!("{} \"GET /small/1 HTTP/1.1\" 200 1024 ", nginx.tls().port());
    let log = nginx
        .program()
        .wait_for_log("access.log", |log| log.contains(&line) && log.lines().count() >= 11);
    assert_eq!(log.lines().count(), 11);
}

#[test]
fn lighttpd_challenges_and_logs() {
    let Some(lighttpd) = Lighttpd::start() else { return };
    assert_eq!(body(&get(lighttpd.address(), "/open/page")), "open");
    for (realm, challenges) in [("md5", 1), ("sha256", 1), ("both", 2), ("userhash", 1)] {
        let answer = get(lighttpd.address(), &format!("/{realm}/page"));
        assert_status(&answer, 401);
        assert_eq!(answer.matches("\r\nWWW-Authenticate: Digest ").count(), challenges, "{answer}");
        assert_eq!(answer.contains("userhash=true"), realm == "userhash", "{answer}");
    }
    let log = lighttpd.access_log(5);
    assert!(log[0].starts_with("GET /open/page 200 - ") && log[0].ends_with(" -"), "{}", log[0]);
    assert!(log[1].starts_with("GET /md5/page 401 - "), "{}", log[1]);
}

/// What every HTTP proxy must do: forward, tunnel, and log both.
fn forward_and_tunnel(proxy: SocketAddr, nginx: &Nginx, credentials: &str) {
    let url = nginx.url("/small/1");
    let answer = exchange(
        proxy,
        format!("GET {url} HTTP/1.1\r\nHost: h\r\n{credentials}Connection: close\r\n\r\n"),
    );
    assert_status(&answer, 200);
    assert_eq!(body(&answer).len(), SMALL);

    let target = nginx.tls();
    let mut stream = connect(proxy);
    write!(stream, "CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n{credentials}\r\n").unwrap();
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        let mut byte = [0];
        std::io::Read::read_exact(&mut stream, &mut byte).unwrap();
        head.push(char::from(byte[0]));
    }
    assert_status(&head, 200);
    let mut stream = tls(&client_config(nginx.ca()), "localhost", stream);
    stream.write_all(GET.as_bytes()).unwrap();
    assert_eq!(body(&to_end(&mut stream)).len(), SMALL);
}

#[test]
fn squid_forwards_and_tunnels() {
    let (Some(nginx), Some(squid)) = (
        Nginx::start(),
        Squid::start(&SquidOptions { names: vec!["shop.test"], ..SquidOptions::default() }),
    ) else {
        return;
    };
    forward_and_tunnel(squid.address(), &nginx, "");
    let named = format!("http://shop.test:{}/small/2", nginx.plain().port());
    let request = format!("GET {named} HTTP/1.1\r\nHost: shop.test\r\nConnection: close\r\n\r\n");
    assert_status(&exchange(squid.address(), request), 200);
    for line in [
        format!("GET {} 200 -\n", nginx.url("/small/1")),
        format!("CONNECT {} 200 -\n", nginx.tls()),
        format!("GET {named} 200 -\n"),
    ] {
        squid.program().wait_for_log("access.log", |log| log.contains(&line));
    }
    // Neither a connection of the client nor an address of its own reached the origin.
    let line = "\"GET /small/2 HTTP/1.1\" 200";
    nginx.program().wait_for_log("access.log", |log| log.contains(line));
}

#[test]
fn squid_as_shipped_refuses_connect_to_other_ports() {
    let options = SquidOptions { connect_only_443: true, ..SquidOptions::default() };
    let (Some(nginx), Some(squid)) = (Nginx::start(), Squid::start(&options)) else { return };
    let target = nginx.plain();
    let answer = exchange(
        squid.address(),
        format!("CONNECT {target} HTTP/1.1\r\nHost: {target}\r\nConnection: close\r\n\r\n"),
    );
    assert_status(&answer, 403);
    let request = format!("GET {} HTTP/1.1\r\nConnection: close\r\n\r\n", nginx.url("/small/1"));
    assert_status(&exchange(squid.address(), request), 200);
}

#[test]
fn squid_demands_credentials_through_its_own_helper() {
    let options = SquidOptions { credentials: true, ..SquidOptions::default() };
    let (Some(nginx), Some(squid)) = (Nginx::start(), Squid::start(&options)) else { return };
    forward_and_tunnel(squid.address(), &nginx, BASIC);
    for wrong in ["", "Proxy-Authorization: Basic bGFiOndyb25n\r\n"] {
        for line in [format!("GET {}", nginx.url("/small/1")), format!("CONNECT {}", nginx.tls())] {
            let request = format!("{line} HTTP/1.1\r\nHost: h\r\n{wrong}Connection: close\r\n\r\n");
            assert_status(&exchange(squid.address(), request), 407);
        }
    }
    let log = squid.program().wait_for_log("access.log", |log| log.lines().count() == 6);
    assert_eq!(log.matches(" 407 ").count(), 4, "{log}");
    assert_eq!(log.matches(&format!(" 200 {USER}\n")).count(), 2, "{log}");
    assert!(!squid.program().logs().contains(PASSWORD));
}

#[test]
fn tinyproxy_forwards_and_tunnels() {
    let (Some(nginx), Some(proxy)) = (Nginx::start(), Tinyproxy::start(false)) else { return };
    forward_and_tunnel(proxy.address(), &nginx, "");
    for line in
        [format!("GET {} HTTP/1.1", nginx.url("/small/1")), format!("CONNECT {} ", nginx.tls())]
    {
        proxy.program().wait_for_log("tinyproxy.log", |log| log.contains(&line));
    }
}

#[test]
fn tinyproxy_demands_credentials() {
    let (Some(nginx), Some(proxy)) = (Nginx::start(), Tinyproxy::start(true)) else { return };
    forward_and_tunnel(proxy.address(), &nginx, BASIC);
    for line in [format!("GET {}", nginx.url("/small/1")), format!("CONNECT {}", nginx.tls())] {
        assert_status(&exchange(proxy.address(), format!("{line} HTTP/1.1\r\n\r\n")), 407);
        // Credentials that are wrong rather than absent get another status: a refused CONNECT
        // with 401 is a 407 by another name, and a forwarded request shows its origin in `Server`.
        let wrong = "Proxy-Authorization: Basic bGFiOndyb25n\r\n";
        let answer = exchange(proxy.address(), format!("{line} HTTP/1.1\r\n{wrong}\r\n"));
        assert_status(&answer, 401);
        assert!(answer.contains("\r\nServer: tinyproxy/"), "{answer}");
        assert!(answer.contains("\r\nWWW-Authenticate: Basic "), "{answer}");
    }
}

#[test]
fn dante_serves_socks_4_and_5() {
    let (Some(nginx), Some(dante)) = (Nginx::start(), Dante::start(Method::None)) else { return };
    let named = || TargetAddr::Domain("localhost".to_owned(), nginx.plain().port());
    for mut stream in [
        Socks4Stream::connect(dante.address(), nginx.plain(), "me").unwrap().into_inner(),
        Socks5Stream::connect(dante.address(), nginx.plain()).unwrap().into_inner(),
        Socks5Stream::connect(dante.address(), named()).unwrap().into_inner(),
    ] {
        stream.write_all(GET.as_bytes()).unwrap();
        assert_eq!(body(&to_end(&mut stream)).len(), SMALL);
    }
    dante.program().wait_for_log("danted.log", |log| {
        log.lines().filter(|line| line.contains("pass(1): tcp/connect [")).count() >= 3
    });
}

#[test]
fn dante_refuses_an_unknown_user() {
    let Some(dante) = Dante::start(Method::Username) else { return };
    let mut stream = connect(dante.address());
    stream.write_all(b"\x05\x01\x02").unwrap();
    expect(&mut stream, "\x05\x02");
    stream.write_all(b"\x01\x06nobody\x05wrong").unwrap();
    expect(&mut stream, "\x01\x01");
    // Who offers no credentials has nothing in common with it.
    assert_eq!(exchange(dante.address(), "\x05\x01\x00"), "\x05\u{ff}");
}

#[test]
fn dante_knows_an_account_that_this_machine_has_not() {
    let (Some(nginx), Some(dante)) = (Nginx::start(), Dante::start(Method::Accounts)) else {
        return;
    };
    let at = dante.address();
    let mut stream =
        Socks5Stream::connect_with_password(at, nginx.plain(), USER, PASSWORD).unwrap();
    stream.write_all(GET.as_bytes()).unwrap();
    assert_eq!(body(&to_end(&mut stream)).len(), SMALL);
    assert!(Socks5Stream::connect_with_password(at, nginx.plain(), USER, "wrong").is_err());
    assert!(Socks5Stream::connect_with_password(at, nginx.plain(), "root", PASSWORD).is_err());
    assert!(Socks5Stream::connect(at, nginx.plain()).is_err());
    let line = format!("tcp/connect [: username%{USER}@");
    dante.program().wait_for_log("danted.log", |log| log.contains(&line));
    assert!(std::fs::read_to_string("/etc/passwd").is_ok_and(|own| !own.contains("\nlab:")));
}

#[test]
fn stunnel_makes_an_https_proxy_of_squid() {
    let (Some(nginx), Some(squid)) = (Nginx::start(), Squid::start(&SquidOptions::default()))
    else {
        return;
    };
    let Some(stunnel) = Stunnel::in_front_of(squid.address(), nginx.ca()) else { return };
    let mut stream = tls(&client_config(nginx.ca()), "localhost", connect(stunnel.address()));
    let url = nginx.url("/small/1");
    write!(stream, "GET {url} HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n").unwrap();
    assert_status(&to_end(&mut stream), 200);
    squid.program().wait_for_log("access.log", |log| log.contains(&format!("GET {url} 200 -")));
    stunnel.program().wait_for_log("stunnel.log", |log| log.contains("TLS accepted"));
}

#[test]
fn microsocks_checks_credentials() {
    let (Some(nginx), Some(proxy)) = (Nginx::start(), Microsocks::start(true)) else { return };
    let at = proxy.address();
    let mut stream =
        Socks5Stream::connect_with_password(at, nginx.plain(), USER, PASSWORD).unwrap();
    stream.write_all(GET.as_bytes()).unwrap();
    assert_eq!(body(&to_end(&mut stream)).len(), SMALL);
    assert!(Socks5Stream::connect_with_password(at, nginx.plain(), USER, "wrong").is_err());
    assert!(Socks5Stream::connect(at, nginx.plain()).is_err());
    let line = format!("connected to {}", nginx.plain());
    proxy.program().wait_for_log("output.log", |log| log.contains(&line));
}
