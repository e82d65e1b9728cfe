//! One URL through real proxies, with every step told.

use super::job::{Ended, Job};
use super::support::dante::{Dante, Method};
use super::support::nginx::{Nginx, SMALL};
use super::support::squid::{Squid, SquidOptions};
use super::support::tinyproxy::Tinyproxy;
use super::support::{PASSWORD, USER};

fn get(nginx: &Nginx, url: &str, flags: &[&str]) -> Ended {
    let job = Job::new([""; 0]);
    job.write("ca.pem", nginx.ca().pem());
    let all = [&["get", url, "--no-env", "-v", "--cacert", "ca.pem"], flags].concat();
    job.end(job.command(&all))
}

#[track_caller]
fn assert_said(ended: &Ended, code: i32, parts: &[&str]) {
    ended.assert_code(code);
    let mut rest = &*ended.stderr;
    assert!(!rest.contains(PASSWORD), "{rest}");
    for part in parts {
        let at = rest.find(part);
        let at = at.unwrap_or_else(|| panic!("{part:?} does not follow in:\n{}", ended.stderr));
        rest = &rest[at + part.len()..];
    }
}

#[test]
fn squid_by_both_ways_and_refused() {
    let options = SquidOptions { credentials: true, ..SquidOptions::default() };
    let (Some(nginx), Some(squid)) = (Nginx::start(), Squid::start(&options)) else { return };
    let good = format!("http://{USER}:{PASSWORD}@{}", squid.address());
    let bad = format!("http://{USER}:{PASSWORD}x@{}", squid.address());

    let (plain, tls) = (nginx.url("/small/1"), nginx.tls_url("/small/1"));
    let ended = get(&nginx, &plain, &["-x", &good]);
    let through = format!("* GET {plain} through http://***@{}\n", squid.address());
    let line = format!("> GET {plain} HTTP/1.1\n");
    let fields = ["> Proxy-Authorization: Basic ***\n", "< Via: ", "* new connection, "];
    assert_said(&ended, 0, &[&through, &line, fields[0], fields[1], fields[2]]);
    assert_eq!(ended.stdout.len(), SMALL);

    let ended = get(&nginx, &tls, &["-x", &good]);
    let line = format!("> CONNECT localhost:{} HTTP/1.1\n", nginx.tls().port());
    let steps = ["< HTTP/1.1 200 ", "* TLS with the target localhost: TLSv1.3 ", "> GET /small/1 "];
    assert_said(&ended, 0, &[&line, steps[0], steps[1], steps[2], ", proxy ", ", tls "]);

    for url in [&plain, &tls] {
        let ended = get(&nginx, url, &["-x", &bad]);
        let steps = ["< HTTP/1.1 407 ", "* what the proxy says:\n* | ", "longhaul: failed: "];
        assert_said(&ended, 3, &[steps[0], steps[1], steps[2], "longhaul: correct user and "]);
        assert_eq!(ended.stdout, "");
    }
}

#[test]
fn tinyproxy_tells_of_wrong_credentials_in_its_own_way() {
    let (Some(nginx), Some(tinyproxy)) = (Nginx::start(), Tinyproxy::start(true)) else { return };
    let bad = format!("http://{USER}:{PASSWORD}x@{}", tinyproxy.address());
    let ended = get(&nginx, &nginx.tls_url("/small/1"), &["-x", &bad]);
    assert_said(&ended, 3, &["< HTTP/1.", " 401 ", "proxy_auth in phase proxy, by the proxy"]);
}

#[test]
fn dante_and_whom_it_cannot_reach() {
    let (Some(nginx), Some(dante)) = (Nginx::start(), Dante::start(Method::None)) else { return };
    let proxy = format!("socks5h://{}", dante.address());
    let ended = get(&nginx, &nginx.tls_url("/small/1"), &["-x", &proxy]);
    let asked = format!("* the proxy has connected to localhost:{} (", nginx.tls().port());
    assert_said(&ended, 0, &["* connected to the proxy, ", &asked, "* TLS with the target "]);

    let ended = get(&nginx, "http://127.0.0.1:9/", &["-x", &proxy, "--total", "0"]);
    assert_said(&ended, 1, &["* connected to the proxy, ", "longhaul: failed: ", "by the target"]);
}
