//! squid behind stunnel: a proxy that is spoken to over TLS.

use super::credentials::refused;
use super::job::{Job, retries};
use super::support::nginx::Nginx;
use super::support::squid::{Squid, SquidOptions};
use super::support::stunnel::Stunnel;
use super::support::{PASSWORD, USER};
use longhaul::lab::Ca;

fn guarded() -> Option<(Nginx, Squid)> {
    let options = SquidOptions { credentials: true, ..SquidOptions::default() };
    Some((Nginx::start()?, Squid::start(&options)?))
}

#[test]
fn plain_and_tls_urls_through_an_https_proxy_with_credentials() {
    let Some((nginx, squid)) = guarded() else { return };
    let Some(stunnel) = Stunnel::in_front_of(squid.address(), nginx.ca()) else { return };
    let job = Job::new((0..600).map(|page| match page % 2 {
        0 => nginx.url(&format!("/small/{page}")),
        // TLS to the target, inside of TLS to the proxy.
        _ => nginx.tls_url(&format!("/small/{page}")),
    }));
    job.write("ca.pem", nginx.ca().pem());
    let proxy = format!("https://{USER}:{PASSWORD}@{}", stunnel.address());
    let ended = job.run(&["-w", "12", "-x", &proxy, "--cacert", "ca.pem"]);
    ended.assert_code(0);
    let records = job.all_ok_once();
    assert_eq!(records.len(), 600);
    job.assert_nowhere(&[PASSWORD]);
    assert!(records.iter().all(|record| record["proxy"].as_str().unwrap().starts_with("https://")));

    let forwarded = format!("GET {} 200 {USER}\n", nginx.url("/small/0"));
    let tunnelled = format!("CONNECT localhost:{} 200 {USER}\n", nginx.tls().port());
    let log = squid
        .program()
        .wait_for_log("access.log", |log| log.contains(&forwarded) && log.contains(&tunnelled));
    assert!(log.matches(" GET http://").count() >= 300, "{log}");
    // Connections are kept on both ways.
    let tunnels = log.matches(" CONNECT ").count();
    assert!(tunnels <= 12 + retries(&records), "{tunnels}");
    let handshakes = stunnel.access_log().matches("TLS accepted").count();
    assert!((1..=24 + retries(&records)).contains(&handshakes), "{handshakes}");
    println!(
        "squid behind stunnel: {} records, {} retries, {handshakes} handshakes; {}",
        records.len(),
        retries(&records),
        ended.took()
    );
}

#[test]
fn credentials_that_are_refused_stop_the_run() {
    let Some((nginx, squid)) = guarded() else { return };
    let Some(stunnel) = Stunnel::in_front_of(squid.address(), nginx.ca()) else { return };
    for tls in [false, true] {
        for userinfo in ["mallory:wr0ng%40staple@", ""] {
            refused(&nginx, tls, "https", userinfo, stunnel.address());
        }
    }
}

#[test]
fn whose_certificate_it_was() {
    let Some((nginx, squid)) = guarded() else { return };
    let other = Ca::new().unwrap();
    let Some(stunnel) = Stunnel::in_front_of(squid.address(), &other) else { return };
    let proxy = format!("https://{USER}:{PASSWORD}@{}", stunnel.address());
    let job = Job::new([nginx.url("/small/1"), nginx.tls_url("/small/2")]);
    job.write("nginx.pem", nginx.ca().pem());
    job.write("stunnel.pem", other.pem());
    job.run(&["-x", &proxy, "--cacert", "nginx.pem"]).assert_code(1);
    for record in job.records() {
        let error = &record["error"];
        assert_eq!((&error["kind"], &error["fault"]), (&"certificate".into(), &"proxy".into()));
        assert_eq!(
            (&error["requests_name"], &error["phase"]),
            (&"ProxyError".into(), &"tls".into())
        );
        assert!(
            error["message"].as_str().unwrap().contains("certificate of the proxy"),
            "{record}"
        );
    }
    assert_eq!(squid.access_log(), "");

    let job = Job::new([nginx.tls_url("/small/2")]);
    job.write("stunnel.pem", other.pem());
    job.run(&["-x", &proxy, "--cacert", "stunnel.pem"]).assert_code(1);
    let error = &job.records()[0]["error"];
    assert_eq!((&error["kind"], &error["fault"]), (&"certificate".into(), &"target".into()));
    assert_eq!(error["requests_name"], "SSLError");

    // A folder holds both.
    let job = Job::new([nginx.tls_url("/small/2")]);
    std::fs::create_dir(job.path("trusted")).unwrap();
    job.write("trusted/nginx.crt", nginx.ca().pem());
    job.write("trusted/stunnel.crt", other.pem());
    job.run(&["-x", &proxy, "--cacert", "trusted"]).assert_code(0);
}

#[test]
fn an_https_proxy_that_is_spelt_as_http_is_found_out() {
    let Some((nginx, squid)) = guarded() else { return };
    let Some(stunnel) = Stunnel::in_front_of(squid.address(), nginx.ca()) else { return };
    let job = Job::new([""; 0]);
    job.write("ca.pem", nginx.ca().pem());
    let proxy = format!("http://{USER}:{PASSWORD}@{}", stunnel.address());
    let arguments = ["check", "-x", &proxy, "--cacert", "ca.pem", "--json"];
    job.end(job.command(&arguments));
    let found: serde_json::Value = serde_json::from_str(&job.read("stdout")).unwrap();
    assert_eq!((&found["state"], &found["speaks"]), (&"wrong_scheme".into(), &"https".into()));
    let proxy = proxy.replacen("http://", "https://", 1);
    let flags = ["--proxy-header", "X-Key: k", "--always-connect"];
    let arguments = ["check", "-x", &proxy, "--cacert", "ca.pem", "--json"];
    let ended = job.end(job.command(&[&arguments[..], &flags].concat()));
    ended.assert_code(0);
    let found: serde_json::Value = serde_json::from_str(&job.read("stdout")).unwrap();
    assert_eq!((&found["state"], &found["forward"]), (&"works".into(), &serde_json::Value::Null));
    assert_eq!(found["authenticated"], true);
}
