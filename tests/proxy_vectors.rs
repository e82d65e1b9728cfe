//! Answers of the real requests about proxies, against ours.
//!
//! A vector passes, or it is set aside by a rule that names the difference and looks at what the
//! vector says, never at its id. A rule is asked only where the answers differ.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "helpers of tests, outside of `#[test]`"
)]

use longhaul::ErrorKind;
use longhaul::proxy::{Chosen, EnvProxies, NoProxy, ProxyMap, ProxyUrl, resolve_proxy};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::net::IpAddr;
use url::{Host, Url};

/// Counts, and what is printed of them.
#[derive(Default)]
struct Score {
    passed: usize,
    set_aside: BTreeMap<&'static str, usize>,
    failed: Vec<String>,
}

impl Score {
    fn add(&mut self, agrees: bool, rule: Option<&'static str>, story: impl FnOnce() -> String) {
        match (agrees, rule) {
            (true, _) => self.passed += 1,
            (false, Some(rule)) => *self.set_aside.entry(rule).or_default() += 1,
            (false, None) => self.failed.push(story()),
        }
    }

    fn finish(self, file: &str, most_set_aside: usize) {
        let aside: usize = self.set_aside.values().sum();
        println!("{file}: {} passed, {aside} set aside {:?}", self.passed, self.set_aside);
        assert!(self.failed.is_empty(), "{file}:\n{}", self.failed.join("\n"));
        assert!(aside <= most_set_aside, "{aside} of {file} are set aside");
    }
}

fn vectors(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().unwrap()
}

// ---- NO_PROXY

#[test]
fn no_proxy() {
    let mut score = Score::default();
    for vector in vectors(include_str!("vectors/no_proxy.jsonl")) {
        let (list, given) = (text(&vector["in"], "no_proxy"), text(&vector["in"], "url"));
        let wanted = vector["out"]["bypass"].as_bool();
        let ours = Url::parse(given).ok().map(|url| NoProxy::parse(list).matches(&url));
        score.add(ours == wanted, no_proxy_rule(list, given), || {
            format!("{}: {list:?} {given}: {ours:?}, not {wanted:?}", vector["id"])
        });
    }
    score.finish("no_proxy", 40);
}

/// The difference that may explain another answer, by what list and URL look like.
fn no_proxy_rule(list: &str, given: &str) -> Option<&'static str> {
    let Ok(url) = Url::parse(given) else {
        return Some("DIFFERENCE(whatwg-url)");
    };
    let after_scheme = given.split_once("://").map_or("", |(_, rest)| rest);
    let authority = after_scheme.split(['/', '?', '#']).next().unwrap_or_default();
    let written = authority.rsplit('@').next().unwrap_or_default().to_lowercase();
    let host = url.host_str().unwrap_or_default();
    let is_address = !matches!(url.host(), Some(Host::Domain(_)));
    let entries: Vec<&str> = list.split(',').map(str::trim).collect();
    let rules = [
        ("whatwg-url", authority.is_empty()),
        (
            "no-proxy-trailing-dot",
            entries.iter().any(|entry| entry.ends_with('.'))
                || written.split(':').next().is_some_and(|host| host.ends_with('.')),
        ),
        ("whatwg-url", is_address && !written.starts_with(host)),
        (
            "no-proxy-ipv6",
            host.starts_with('[')
                && entries.iter().any(|entry| entry.starts_with('[') || entry.contains("::/")),
        ),
        (
            "no-proxy-ip-port",
            entries.iter().filter_map(|entry| entry.split_once(':')).any(|(address, port)| {
                address.parse::<IpAddr>().is_ok() && port.parse() == Ok(url_port(&url))
            }),
        ),
        ("no-proxy-zero-prefix", entries.iter().any(|entry| entry.ends_with("/0"))),
        ("no-proxy-star-anywhere", list.len() > 1 && entries.contains(&"*")),
        (
            "no-proxy-default-port",
            url.port().is_none()
                && entries.iter().any(|entry| entry.ends_with(&format!(":{}", url_port(&url)))),
        ),
        ("no-proxy-idna", !list.is_ascii() && host.contains("xn--")),
        (
            "no-proxy-ip-suffix",
            is_address
                && entries.iter().any(|entry| {
                    host.trim_matches(['[', ']']).ends_with(entry) && entry.len() < host.len()
                }),
        ),
        // urllib's suffix rule sees the brackets of an address and its pieces.
        ("no-proxy-ip-suffix", is_address && entries.iter().any(|entry| entry.ends_with(':'))),
    ];
    rules.iter().find(|(_, applies)| *applies).map(|(name, _)| match *name {
        "whatwg-url" => "DIFFERENCE(whatwg-url)",
        "no-proxy-trailing-dot" => "DIFFERENCE(no-proxy-trailing-dot)",
        "no-proxy-ipv6" => "DIFFERENCE(no-proxy-ipv6)",
        "no-proxy-ip-port" => "DIFFERENCE(no-proxy-ip-port)",
        "no-proxy-zero-prefix" => "DIFFERENCE(no-proxy-zero-prefix)",
        "no-proxy-star-anywhere" => "DIFFERENCE(no-proxy-star-anywhere)",
        "no-proxy-default-port" => "DIFFERENCE(no-proxy-default-port)",
        "no-proxy-idna" => "DIFFERENCE(no-proxy-idna)",
        _ => "DIFFERENCE(no-proxy-ip-suffix)",
    })
}

fn url_port(url: &Url) -> u16 {
    url.port_or_known_default().unwrap()
}
