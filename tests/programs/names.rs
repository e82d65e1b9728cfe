//! Names that only the proxy's machine knows: found by the proxy, never looked up here.
//!
//! The name is known to the resolver of the proxy's process alone, and the resolver of the command
//! is watched; see [`Lookups`].
#![cfg(target_os = "linux")]

use super::job::{Ended, Job, retries};
use super::support::dante::{Dante, Method};
use super::support::lookups::Lookups;
use super::support::microsocks::Microsocks;
use super::support::nginx::Nginx;
use super::support::squid::{Squid, SquidOptions};
use super::support::stunnel::Stunnel;
use super::support::{PASSWORD, USER};
use longhaul::lab::SocksProxy;

/// Under a top level that never exists (RFC 6761).
const NAME: &str = "shop.test";

/// A run whose lookups are watched.
fn watched(job: &Job, lookups: &Lookups, flags: &[&str]) -> Ended {
    let mut command = job.over_list(flags);
    command.envs(lookups.environment("longhaul", None));
    job.end(command)
}

fn plain(nginx: &Nginx, page: usize) -> String {
    format!("http://{NAME}:{}/small/{page}", nginx.plain().port())
}

fn tls(nginx: &Nginx, page: usize) -> String {
    format!("https://{NAME}:{}/small/{page}", nginx.tls().port())
}

#[test]
fn two_thousand_urls_through_dante() {
    let (Some(lookups), Some(nginx)) = (Lookups::new(), Nginx::start()) else { return };
    let knowing = lookups.environment("dante", Some(NAME));
    let Some(dante) = Dante::start_in(Method::None, &knowing) else { return };
    let job = Job::new((0..2000).map(|page| plain(&nginx, page)));
    let proxy = format!("socks5h://{}", dante.address());
    let ended = watched(&job, &lookups, &["-w", "24", "-x", &proxy]);
    ended.assert_code(0);
    let records = job.all_ok_once();
    assert_eq!(records.len(), 2000);
    assert_eq!(lookups.all("longhaul"), Vec::<String>::new());
    assert!(lookups.of("dante", NAME) > 0, "{:?}", lookups.all("dante"));

    let most = 24 + retries(&records);
    let opened = "pass(1): tcp/connect [";
    let log = dante.program().wait_for_log("danted.log", |log| log.contains(opened));
    let tunnels = log.lines().filter(|line| line.contains(opened)).count();
    assert!((1..=most).contains(&tunnels), "{tunnels}");
    println!(
        "dante, socks5h: 2000 records, {} retries, {tunnels} tunnels, 0 lookups here, {} there; {}",
        retries(&records),
        lookups.of("dante", NAME),
        ended.took()
    );

    // The same with socks5, where the name is ours to find: now the watch sees it.
    let job = Job::new([plain(&nginx, 1)]);
    let proxy = format!("socks5://{}", dante.address());
    watched(&job, &lookups, &["-x", &proxy]).assert_code(1);
    assert_eq!(job.records()[0]["error"]["kind"], "name_not_found");
    assert_eq!(lookups.all("longhaul"), [NAME]);
}

#[test]
fn two_thousand_urls_through_microsocks_with_credentials() {
    let (Some(lookups), Some(nginx)) = (Lookups::new(), Nginx::start()) else { return };
    let knowing = lookups.environment("microsocks", Some(NAME));
    let Some(microsocks) = Microsocks::start_in(true, &knowing) else { return };
    let job = Job::new((0..2000).map(|page| match page % 2 {
        0 => plain(&nginx, page),
        _ => tls(&nginx, page),
    }));
    job.write("ca.pem", nginx.ca().pem());
    let proxy = format!("socks5h://{USER}:{PASSWORD}@{}", microsocks.address());
    let ended = watched(&job, &lookups, &["-w", "24", "-x", &proxy, "--cacert", "ca.pem"]);
    ended.assert_code(0);
    let records = job.all_ok_once();
    assert_eq!(records.len(), 2000);
    job.assert_nowhere(&[PASSWORD]);
    assert_eq!(lookups.all("longhaul"), Vec::<String>::new());

    // One connection a worker and target, each with a lookup by the proxy.
    let tunnels = lookups.of("microsocks", NAME);
    assert!((1..=48 + retries(&records)).contains(&tunnels), "{tunnels}");
    let line = format!("connected to {NAME}:");
    microsocks.program().wait_for_log("output.log", |log| log.contains(&line));
    println!(
        "microsocks, socks5h: 2000 records, {} retries, {tunnels} tunnels, 0 lookups here; {}",
        retries(&records),
        ended.took()
    );
}

#[test]
fn squid_is_given_the_name_over_http_and_over_tls() {
    let options = SquidOptions { names: vec![NAME], ..SquidOptions::default() };
    let (Some(lookups), Some(nginx), Some(squid)) =
        (Lookups::new(), Nginx::start(), Squid::start(&options))
    else {
        return;
    };
    let Some(stunnel) = Stunnel::in_front_of(squid.address(), nginx.ca()) else { return };
    for proxy in [format!("http://{}", squid.address()), format!("https://{}", stunnel.address())] {
        let job = Job::new((0..200).map(|page| match page % 2 {
            0 => plain(&nginx, page),
            _ => tls(&nginx, page),
        }));
        job.write("ca.pem", nginx.ca().pem());
        watched(&job, &lookups, &["-x", &proxy, "--cacert", "ca.pem"]).assert_code(0);
        assert_eq!(job.all_ok_once().len(), 200);
        assert_eq!(lookups.all("longhaul"), Vec::<String>::new(), "{proxy}");
    }
}

/// dante and microsocks do not speak it, so the server is that of the lab; the command and the watch
/// over its lookups are as for the others.
#[test]
fn socks4a_gives_the_name_too() {
    let (Some(lookups), Some(nginx)) = (Lookups::new(), Nginx::start()) else { return };
    let socks = SocksProxy::builder().name(NAME, nginx.plain()).start().unwrap();
    let job = Job::new((0..100).map(|page| plain(&nginx, page)));
    watched(&job, &lookups, &["-x", &socks.url("socks4a")]).assert_code(0);
    assert_eq!(job.all_ok_once().len(), 100);
    assert_eq!(lookups.all("longhaul"), Vec::<String>::new());
}
