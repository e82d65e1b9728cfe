//! `longhaul check` against proxies that nobody here wrote, spoken to rightly and wrongly.

use super::job::Job;
use super::support::dante::{Dante, Method};
use super::support::microsocks::Microsocks;
use super::support::squid::{Squid, SquidOptions};
use super::support::tinyproxy::Tinyproxy;
use super::support::{PASSWORD, USER};
use longhaul::lab::{Origin, reflect};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::Value;

/// Checks these proxies, and gives what was found.
fn check(proxies: &[String]) -> Vec<Value> {
    let endpoint = Origin::builder().handler(reflect).start().unwrap();
    let job = Job::new([""; 0]);
    job.write("proxies.txt", proxies.join("\n"));
    let url = endpoint.url("/");
    let arguments = ["check", "--proxies", "proxies.txt", "--url", &url, "--json"];
    let ended = job.end(job.command(&[&arguments[..], &["--connect-timeout", "2"]].concat()));
    job.assert_nowhere(&[PASSWORD, "wrong-password"]);
    assert!(!ended.stderr.contains("panicked"), "{}", ended.stderr);
    job.read("stdout").lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn userinfo(password: &str) -> String {
    let encode = |text: &str| utf8_percent_encode(text, NON_ALPHANUMERIC).to_string();
    format!("{}:{}", encode(USER), encode(password))
}

/// State and suggestion.
fn verdict(found: &Value) -> (&str, Option<&str>) {
    (found["state"].as_str().unwrap(), found["speaks"].as_str())
}

#[test]
fn squid_forwards_and_refuses_to_tunnel_elsewhere() {
    let Some(squid) = Squid::start(&SquidOptions {
        credentials: true,
        connect_only_443: true,
        ..Default::default()
    }) else {
        return;
    };
    let address = squid.address();
    let found = check(&[
        format!("http://{}@{address}", userinfo(PASSWORD)),
        format!("http://{}@{address}", userinfo("wrong-password")),
        format!("socks5h://{address}"),
        format!("https://{address}"),
    ]);
    assert_eq!(verdict(&found[0]), ("works", None), "{}", found[0]);
    assert_eq!(
        (&found[0]["forward"]["ok"], &found[0]["authenticated"]),
        (&true.into(), &true.into())
    );
    assert_eq!(
        (&found[0]["connect"]["ok"], &found[0]["connect"]["status"]),
        (&false.into(), &403.into())
    );
    let added = found[0]["headers"]["added"].as_array().unwrap();
    let names: Vec<&str> = added.iter().map(|field| field["name"].as_str().unwrap()).collect();
    assert!(names.contains(&"Via") && names.contains(&"X-Forwarded-For"), "{names:?}");
    assert_eq!(found[0]["reveals_client"], true);
    assert_eq!(verdict(&found[1]), ("unauthorized", None));
    assert_eq!(verdict(&found[2]), ("wrong_scheme", Some("http")), "{}", found[2]);
    assert_eq!(verdict(&found[3]), ("wrong_scheme", Some("http")), "{}", found[3]);
}

#[test]
fn tinyproxy_adds_its_name_and_closes() {
    let Some(tinyproxy) = Tinyproxy::start(false) else { return };
    let address = tinyproxy.address();
    let found = check(&[
        format!("http://{address}"),
        format!("socks4a://{address}"),
        format!("socks5://{address}"),
    ]);
    assert_eq!(verdict(&found[0]), ("works", None), "{}", found[0]);
    assert_eq!(found[0]["headers"]["added"][0]["name"], "Via");
    for found in &found[1..] {
        assert_eq!(verdict(found), ("wrong_scheme", Some("http")), "{found}");
    }
}

#[test]
fn socks_servers_with_and_without_credentials() {
    let (Some(open), Some(closed)) = (Microsocks::start(false), Microsocks::start(true)) else {
        return;
    };
    let found = check(&[
        format!("socks5h://{}", open.address()),
        format!("socks5://{}@{}", userinfo(PASSWORD), closed.address()),
        format!("socks5h://{}@{}", userinfo("wrong-password"), closed.address()),
        format!("socks5h://{}", closed.address()),
        format!("http://{}", open.address()),
        format!("https://{}", open.address()),
        format!("http://{}@{}", userinfo(PASSWORD), closed.address()),
    ]);
    let verdicts: Vec<_> = found.iter().map(verdict).collect();
    assert_eq!(
        verdicts,
        [
            ("works", None),
            ("works", None),
            ("unauthorized", None),
            ("unauthorized", None),
            ("wrong_scheme", Some("socks5h")),
            ("wrong_scheme", Some("socks5h")),
            ("wrong_scheme", Some("socks5h")),
        ]
    );
    // A tunnel changes nothing, and keeps what the target keeps.
    assert_eq!(found[0]["headers"]["added"], Value::Array(Vec::new()));
    assert_eq!(found[0]["keep_alive"], true);
}

#[test]
fn dante_in_three_versions() {
    let Some(dante) = Dante::start(Method::None) else { return };
    let found =
        check(&[format!("socks5h://{}", dante.address()), format!("http://{}", dante.address())]);
    assert_eq!(verdict(&found[0]), ("works", None), "{}", found[0]);
    assert_eq!(verdict(&found[1]), ("wrong_scheme", Some("socks5h")), "{}", found[1]);
}

#[test]
fn dante_with_accounts() {
    let Some(dante) = Dante::start(Method::Accounts) else { return };
    let found = check(&[
        format!("socks5h://{}@{}", userinfo(PASSWORD), dante.address()),
        format!("socks5://{}@{}", userinfo("wrong-password"), dante.address()),
        format!("socks5://{}", dante.address()),
    ]);
    let verdicts: Vec<_> = found.iter().map(verdict).collect();
    assert_eq!(verdicts, [("works", None), ("unauthorized", None), ("unauthorized", None)]);
    assert_eq!(found[0]["authenticated"], true);
}
