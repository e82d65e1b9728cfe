//! Credentials that the proxy does not accept: the run stops at once, says why, and says no secret.

use std::net::SocketAddr;

use super::job::Job;
use super::support::dante::{Dante, Method};
use super::support::microsocks::Microsocks;
use super::support::nginx::Nginx;
use super::support::relay::Relay;
use super::support::squid::{Squid, SquidOptions};
use super::support::tinyproxy::Tinyproxy;
use super::support::{PASSWORD, USER};

const WORKERS: usize = 8;

const WRONG_USER: &str = "mallory";
/// As it is typed, percent-encoded; see [`SECRETS`].
const WRONG_PASSWORD: &str = "wr0ng%40staple";
/// Both in every form in which they might show: as typed, decoded, and as Basic credentials of
/// `mallory:wr0ng@staple`, the end of which depends on what follows.
const SECRETS: &[&str] = &["mallory", "wr0ng", "staple", "bWFsbG9yeTp3cjBuZ0BzdGFwbG"];

/// Five hundred URLs through a proxy that accepts nobody; gives the number of connections that
/// were made to it.
pub(crate) fn refused(
    nginx: &Nginx,
    tls: bool,
    scheme: &str,
    userinfo: &str,
    proxy: SocketAddr,
) -> usize {
    let relay = Relay::to(proxy);
    let job = Job::new((0..500).map(|page| match tls {
        true => nginx.tls_url(&format!("/small/{page}")),
        false => nginx.url(&format!("/small/{page}")),
    }));
    job.write("ca.pem", nginx.ca().pem());
    let proxy = format!("{scheme}://{userinfo}{}", relay.address());
    let flags = ["-w", "8", "-x", &proxy, "--cacert", "ca.pem", "-vv"];
    let mut command = job.over_list(&flags);
    command.env("RUST_LOG", "trace");
    let ended = job.end(command);
    ended.assert_code(3);
    let cause = ended.stderr.lines().find(|line| line.starts_with("stopped: "));
    let cause = cause.unwrap_or_else(|| panic!("no cause: {}", ended.stderr));
    let causes = match userinfo {
        "" => &["the proxy wants credentials and its URL has none"][..],
        _ => &["does not accept the credentials", "does not accept the user name and password"],
    };
    assert!(causes.iter().any(|known| cause.contains(known)), "{cause}");
    job.assert_nowhere(SECRETS);

    let records = job.records();
    assert!(records.len() < 2 * WORKERS, "{} records", records.len());
    for record in &records {
        assert_eq!(record["class"], "proxy_auth", "{record}");
        // None where the credentials were retired just before.
        assert!(record["attempts"].as_array().unwrap().len() <= 1, "{record}");
    }
    // Everything that is left is counted, also what no worker came to see.
    let rows: Vec<String> = ended
        .stderr
        .lines()
        .map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "))
        .collect();
    assert!(rows.contains(&format!("not finished {}", 500 - records.len())), "{}", ended.stderr);
    let row = rows.iter().find(|row| row.starts_with(scheme) && row.ends_with("refused"));
    assert!(row.is_some_and(|row| row.ends_with(" credentials refused")), "{}", ended.stderr);
    let seen = relay.accepted();
    assert!((1..2 * WORKERS).contains(&seen), "{scheme}: {seen} connections");
    assert!(!nginx.access_log().contains("/small/"));
    println!("{scheme}, tls {tls}: {seen} connections, {} records; {cause}", records.len());
    seen
}

fn wrong() -> String {
    format!("{WRONG_USER}:{WRONG_PASSWORD}@")
}

#[test]
fn squid() {
    let options = SquidOptions { credentials: true, ..SquidOptions::default() };
    let (Some(nginx), Some(squid)) = (Nginx::start(), Squid::start(&options)) else { return };
    for tls in [false, true] {
        // With the wrong ones, and with none at all.
        for userinfo in [wrong(), String::new()] {
            squid.program().clear_log("access.log");
            let seen = refused(&nginx, tls, "http", &userinfo, squid.address());
            let log = squid.program().wait_for_log("access.log", |log| !log.is_empty());
            assert!(log.lines().all(|line| line.contains(" 407 ")), "{log}");
            assert!(log.lines().count() <= seen, "{log}");
        }
    }
}

#[test]
fn tinyproxy() {
    let (Some(nginx), Some(tinyproxy)) = (Nginx::start(), Tinyproxy::start(true)) else { return };
    // Wrong ones get 401 from it, which only a CONNECT tells from an answer of the target.
    refused(&nginx, true, "http", &wrong(), tinyproxy.address());
    for tls in [false, true] {
        refused(&nginx, tls, "http", "", tinyproxy.address());
    }
}

#[test]
fn microsocks() {
    let (Some(nginx), Some(microsocks)) = (Nginx::start(), Microsocks::start(true)) else { return };
    for userinfo in [wrong(), String::new()] {
        refused(&nginx, false, "socks5h", &userinfo, microsocks.address());
    }
    assert!(!microsocks.access_log().contains("connected to"), "{}", microsocks.access_log());
}

#[test]
fn dante() {
    let (Some(nginx), Some(dante)) = (Nginx::start(), Dante::start(Method::Username)) else {
        return;
    };
    for userinfo in [wrong(), String::new()] {
        refused(&nginx, false, "socks5", &userinfo, dante.address());
    }
}

#[test]
fn dante_with_accounts() {
    let (Some(nginx), Some(dante)) = (Nginx::start(), Dante::start(Method::Accounts)) else {
        return;
    };
    let wrong_password = format!("{USER}:{WRONG_PASSWORD}@");
    for userinfo in [wrong_password, wrong(), String::new()] {
        refused(&nginx, false, "socks5h", &userinfo, dante.address());
    }
    assert!(!dante.access_log().contains("tcp/connect"), "{}", dante.access_log());
}

#[test]
fn one_wrong_password_among_several_is_retired() {
    let options = SquidOptions { credentials: true, ..SquidOptions::default() };
    let (Some(nginx), Some(squid)) = (Nginx::start(), Squid::start(&options)) else { return };
    let job = Job::new((0..400).map(|page| nginx.url(&format!("/small/{page}"))));
    let right = format!("http://{USER}:{PASSWORD}@{}", squid.address());
    let wrong = format!("http://{}{}", wrong(), squid.address());
    let ended = job.run(&["-w", "8", "-x", &wrong, "-x", &right]);
    ended.assert_code(0);
    assert_eq!(job.all_ok_once().len(), 400);
    job.assert_nowhere(SECRETS);
    job.assert_nowhere(&[PASSWORD]);
    let log = squid
        .program()
        .wait_for_log("access.log", |log| log.matches(&format!(" 200 {USER}\n")).count() >= 400);
    let refused = log.matches(" 407 ").count();
    assert!((1..2 * WORKERS).contains(&refused), "{refused}");
}
