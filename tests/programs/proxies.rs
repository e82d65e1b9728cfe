//! Long lists through squid and tinyproxy, and what they logged.

use std::collections::HashSet;

use super::job::{Job, retries};
use super::support::dante::{Dante, Method};
use super::support::nginx::Nginx;
use super::support::squid::{Squid, SquidOptions};
use super::support::tinyproxy::Tinyproxy;
use super::support::{PASSWORD, USER};

const WORKERS: usize = 24;

/// The client ports in squid's log: one for each connection that it accepted.
fn connections(log: &str) -> usize {
    log.lines().map(|line| line.split(' ').next().unwrap()).collect::<HashSet<_>>().len()
}

/// The lines of squid's log without the client's port, each once.
fn asked(log: &str) -> HashSet<&str> {
    log.lines().map(|line| line.split_once(' ').unwrap().1).collect()
}

#[test]
fn two_thousand_plain_urls_through_squid() {
    let (Some(nginx), Some(squid)) = (Nginx::start(), Squid::start(&SquidOptions::default()))
    else {
        return;
    };
    let urls: Vec<String> = (0..2000).map(|page| nginx.url(&format!("/small/{page}"))).collect();
    let job = Job::new(&urls);
    let ended = job.run(&["-w", "24", "-x", &format!("http://{}", squid.address())]);
    ended.assert_code(0);
    let records = job.all_ok_once();
    assert_eq!(records.len(), 2000);
    for record in &records {
        assert_eq!((&record["status"], &record["bytes_body"]), (&200.into(), &1024.into()));
    }
    let retries = retries(&records);

    let log = squid.program().wait_for_log("access.log", |log| log.lines().count() >= 2000);
    assert_eq!(log.lines().count(), 2000 + retries);
    // Absolute form, each of them, and nothing else.
    let wanted: Vec<String> = urls.iter().map(|url| format!("GET {url} 200 -")).collect();
    assert_eq!(asked(&log), wanted.iter().map(String::as_str).collect());
    assert!(connections(&log) <= WORKERS + retries, "{}", connections(&log));
    println!(
        "squid, http: 2000 records, {retries} retries, {} connections; {}",
        connections(&log),
        ended.took()
    );
}

#[test]
fn two_thousand_tls_urls_through_squid() {
    let (Some(nginx), Some(squid)) = (Nginx::start(), Squid::start(&SquidOptions::default()))
    else {
        return;
    };
    let job = Job::new((0..2000).map(|page| nginx.tls_url(&format!("/small/{page}"))));
    job.write("ca.pem", nginx.ca().pem());
    let proxy = format!("http://{}", squid.address());
    let ended = job.run(&["-w", "24", "-x", &proxy, "--cacert", "ca.pem"]);
    ended.assert_code(0);
    let records = job.all_ok_once();
    assert_eq!(records.len(), 2000);
    let retries = retries(&records);

    // A tunnel is logged when it has ended.
    let line = format!("CONNECT localhost:{} 200 -", nginx.tls().port());
    let log = squid.program().wait_for_log("access.log", |log| log.contains(&line));
    assert_eq!(asked(&log), HashSet::from([line.as_str()]));
    let tunnels = log.lines().count();
    assert!(tunnels <= WORKERS + retries, "{tunnels}");
    assert_eq!(connections(&log), tunnels);
    let log = nginx.program().wait_for_log("access.log", |log| log.lines().count() >= 2000);
    let port = nginx.tls().port();
    let served = |page| log.contains(&format!("{port} \"GET /small/{page} HTTP/1.1\" 200 "));
    assert!((0..2000).all(served));
    println!("squid, https: 2000 records, {retries} retries, {tunnels} tunnels; {}", ended.took());
}

#[test]
fn the_rule_that_squid_is_shipped_with_leaves_plain_urls_alone() {
    let options = SquidOptions { connect_only_443: true, ..SquidOptions::default() };
    let (Some(nginx), Some(squid)) = (Nginx::start(), Squid::start(&options)) else { return };
    let proxy = format!("http://{}", squid.address());
    let job = Job::new((0..50).map(|page| nginx.url(&format!("/page/{page}"))));
    job.run(&["-x", &proxy]).assert_code(0);
    assert_eq!(job.all_ok_once().len(), 50);
    let log = squid.program().wait_for_log("access.log", |log| log.lines().count() >= 50);
    assert!(!log.contains("CONNECT"), "{log}");

    // A tunnel to another port is refused, which says nothing against the proxy's credentials.
    let job = Job::new([nginx.tls_url("/page/1")]);
    job.run(&["-x", &proxy, "--backoff-factor", "0"]).assert_code(1);
    let record = &job.records()[0];
    assert_eq!(record["error"]["kind"], "proxy_refused", "{record}");
    assert_eq!(record["error"]["fault"], "proxy");
    assert!(record["error"]["message"].as_str().unwrap().contains("403 Forbidden"), "{record}");
}

#[test]
fn tinyproxy_with_credentials() {
    let (Some(nginx), Some(tinyproxy)) = (Nginx::start(), Tinyproxy::start(true)) else { return };
    let job = Job::new((0..400).map(|page| match page % 2 {
        0 => nginx.url(&format!("/page/{page}")),
        _ => nginx.tls_url(&format!("/page/{page}")),
    }));
    job.write("ca.pem", nginx.ca().pem());
    let proxy = format!("http://{USER}:{PASSWORD}@{}", tinyproxy.address());
    let ended = job.run(&["-w", "24", "-x", &proxy, "--cacert", "ca.pem"]);
    ended.assert_code(0);
    let records = job.all_ok_once();
    job.assert_nowhere(&[PASSWORD]);
    let line = format!("GET {} HTTP/1.1", nginx.url("/page/0"));
    tinyproxy.program().wait_for_log("tinyproxy.log", |log| log.contains(&line));
    let line = format!("CONNECT localhost:{} HTTP/1.1", nginx.tls().port());
    tinyproxy.program().wait_for_log("tinyproxy.log", |log| log.contains(&line));
    println!(
        "tinyproxy: {} records, {} retries; {}",
        records.len(),
        retries(&records),
        ended.took()
    );
}

#[test]
fn dante_with_accounts() {
    let (Some(nginx), Some(dante)) = (Nginx::start(), Dante::start(Method::Accounts)) else {
        return;
    };
    for scheme in ["socks5", "socks5h"] {
        let job = Job::new((0..200).map(|page| match page % 2 {
            0 => nginx.url(&format!("/small/{page}")),
            _ => nginx.tls_url(&format!("/small/{page}")),
        }));
        job.write("ca.pem", nginx.ca().pem());
        let proxy = format!("{scheme}://{USER}:{PASSWORD}@{}", dante.address());
        let ended = job.run(&["-w", "8", "-x", &proxy, "--cacert", "ca.pem"]);
        ended.assert_code(0);
        let records = job.all_ok_once();
        job.assert_nowhere(&[PASSWORD]);
        println!("dante, {scheme}: {} records; {}", records.len(), ended.took());
    }
    let user = format!("tcp/connect [: username%{USER}@");
    let log = dante.program().wait_for_log("danted.log", |log| log.contains(&user));
    let connections = log.lines().filter(|line| line.contains("tcp/connect [:"));
    assert!(connections.clone().count() > 1);
    assert!(connections.into_iter().all(|line| line.contains(&user)), "{log}");
}

/// tinyproxy closes after each response and does not say so, and a POST cannot be sent twice.
#[test]
fn no_post_is_lost_to_a_proxy_that_closes_without_a_word() {
    let (Some(nginx), Some(tinyproxy)) = (Nginx::start(), Tinyproxy::start(false)) else { return };
    let url = nginx.url("/echo");
    let job = Job::new((0..300).map(|number| {
        format!(r#"{{"url":"{url}","method":"POST","body":"{number}","id":{number}}}"#)
    }));
    let proxy = format!("http://{}", tinyproxy.address());
    let ended = job.run(&["-w", "24", "-x", &proxy]);
    let records = job.records();
    assert_eq!((records.len(), retries(&records)), (300, 0));
    let lost = records.iter().filter(|record| record["ok"] != true).count();
    // Its thread may be held up between the response and the end for longer than anybody listens;
    // one in three is lost to a client that does not listen at all.
    assert!(lost <= 15, "{lost} of 300 lost: {}", ended.stderr);
    println!("tinyproxy, POST: {lost} of 300 lost; {}", ended.took());
}

#[test]
fn one_list_over_three_proxies() {
    let (Some(nginx), Some(tinyproxy), Some(open), Some(guarded)) = (
        Nginx::start(),
        Tinyproxy::start(false),
        Squid::start(&SquidOptions::default()),
        Squid::start(&SquidOptions { credentials: true, ..SquidOptions::default() }),
    ) else {
        return;
    };
    let job = Job::new((0..600).map(|page| nginx.url(&format!("/small/{page}"))));
    job.write(
        "proxies.txt",
        format!(
            "# three spellings\n{}\nhttp://{}\n{}:{USER}:{PASSWORD}\n",
            tinyproxy.address(),
            open.address(),
            guarded.address()
        ),
    );
    let ended = job.run(&["-w", "12", "--proxies", "proxies.txt"]);
    ended.assert_code(0);
    let records = job.all_ok_once();
    let through = |address: String| {
        records
            .iter()
            .filter(|record| record["proxy"].as_str().unwrap().ends_with(&address))
            .count()
    };
    let counts = [tinyproxy.address(), open.address(), guarded.address()]
        .map(|address| through(address.to_string()));
    assert_eq!(counts.iter().sum::<usize>(), 600);
    // Round robin, but for what a retry took elsewhere.
    let most_off = 1 + retries(&records);
    assert!(counts.iter().all(|count| count.abs_diff(200) <= most_off), "{counts:?}");
    guarded.program().wait_for_log("access.log", |log| log.contains(&format!(" 200 {USER}\n")));
}
