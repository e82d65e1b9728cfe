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
    for vector in vectors(include_str!("../vectors/no_proxy.jsonl")) {
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
        ("DIFFERENCE(whatwg-url)", authority.is_empty()),
        (
            "DIFFERENCE(no-proxy-trailing-dot)",
            entries.iter().any(|entry| entry.ends_with('.'))
                || written.split(':').next().is_some_and(|host| host.ends_with('.')),
        ),
        ("DIFFERENCE(whatwg-url)", is_address && !written.starts_with(host)),
        (
            "DIFFERENCE(no-proxy-ipv6)",
            host.starts_with('[')
                && entries.iter().any(|entry| entry.starts_with('[') || entry.contains("::/")),
        ),
        (
            "DIFFERENCE(no-proxy-ip-port)",
            entries.iter().filter_map(|entry| entry.split_once(':')).any(|(address, port)| {
                address.parse::<IpAddr>().is_ok() && port.parse() == Ok(url_port(&url))
            }),
        ),
        ("DIFFERENCE(no-proxy-zero-prefix)", entries.iter().any(|entry| entry.ends_with("/0"))),
        ("DIFFERENCE(no-proxy-star-anywhere)", list.len() > 1 && entries.contains(&"*")),
        (
            "DIFFERENCE(no-proxy-default-port)",
            url.port().is_none()
                && entries.iter().any(|entry| entry.ends_with(&format!(":{}", url_port(&url)))),
        ),
        ("DIFFERENCE(no-proxy-idna)", !list.is_ascii() && host.contains("xn--")),
        (
            "DIFFERENCE(no-proxy-ip-suffix)",
            is_address
                && entries.iter().any(|entry| {
                    host.trim_matches(['[', ']']).ends_with(entry) && entry.len() < host.len()
                }),
        ),
        // urllib's suffix rule sees the brackets of an address and its pieces.
        (
            "DIFFERENCE(no-proxy-ip-suffix)",
            is_address && entries.iter().any(|entry| entry.ends_with(':')),
        ),
    ];
    rules.iter().find(|(_, applies)| *applies).map(|(name, _)| *name)
}

fn url_port(url: &Url) -> u16 {
    url.port_or_known_default().unwrap_or_default()
}

// ---- Choosing a proxy

#[test]
fn proxy_select_by_one_map() {
    let mut score = Score::default();
    for vector in vectors(include_str!("../vectors/proxy_select.jsonl")) {
        let given = &vector["in"];
        let url: Url = text(given, "url").parse().unwrap();
        let ours = match map_of(&given["call_proxies"]).select(&url) {
            Some(Some(proxy)) => Some(proxy.as_ref().clone()),
            Some(None) | None => None,
        };
        let wanted = proxy_of(&vector["out"]["select_only"]);
        score.add(ours == wanted, map_rule(given), || {
            format!("{}: {ours:?}, not {wanted:?}: {given}", vector["id"])
        });
    }
    score.finish("proxy_select, select_only", 20);
}

#[test]
fn proxy_select_with_session_and_environment() {
    let mut score = Score::default();
    for vector in vectors(include_str!("../vectors/proxy_select.jsonl")) {
        let given = &vector["in"];
        let url: Url = text(given, "url").parse().unwrap();
        let (ours, wanted) = (choose(given, &url), proxy_of(&vector["out"]["chosen"]));
        score.add(ours == wanted, choice_rule(&vector, &url), || {
            format!("{}: {ours:?}, not {wanted:?}: {given}", vector["id"])
        });
    }
    score.finish("proxy_select, chosen", 50);
}

#[test]
fn proxy_select_after_a_redirect() {
    let mut score = Score::default();
    for vector in vectors(include_str!("../vectors/proxy_select.jsonl")) {
        let given = &vector["in"];
        let Some(url) = given["redirect_url"].as_str() else { continue };
        let url: Url = url.parse().unwrap();
        let wanted = proxy_of(&vector["out"]["redirect_chosen"]);
        let ours = choose(given, &url);
        let rule = choice_rule(&vector, &url).or_else(|| hop_rule(given));
        score.add(ours == wanted, rule, || {
            format!("{}: {ours:?}, not {wanted:?}: {given}", vector["id"])
        });
    }
    score.finish("proxy_select, redirect_chosen", 30);
}

fn choose(given: &Value, url: &Url) -> Option<ProxyUrl> {
    let (request, session) = (map_of(&given["call_proxies"]), map_of(&given["session_proxies"]));
    let env = given["trust_env"].as_bool().unwrap().then(|| env_of(given));
    match resolve_proxy(url, Some(&request), &session, env.as_ref()) {
        Chosen::Proxy(proxy) => Some(proxy.as_ref().clone()),
        Chosen::Direct | Chosen::Uncovered => None,
    }
}

fn env_of(given: &Value) -> EnvProxies {
    let env = object(&given["env"]);
    EnvProxies::read(|name| env.get(name).map(|value| value.as_str().unwrap().to_owned())).unwrap()
}

fn object(value: &Value) -> &Map<String, Value> {
    value.as_object().unwrap()
}

/// Keys that requests keeps and never finds are refused by us, and so cannot change an answer.
fn map_of(value: &Value) -> ProxyMap {
    let mut map = ProxyMap::new();
    for (key, value) in object(value) {
        let done = match value.as_str() {
            Some(proxy) => map.insert(key, proxy),
            None => map.unset(key),
        };
        if let Err(error) = done {
            // DIFFERENCE(map-key-refused): never one that requests could have found.
            assert_eq!(error.kind(), ErrorKind::Config, "{error}");
            let scheme = key.split_once("://").map_or("", |(scheme, _)| scheme);
            let host = key.strip_prefix(scheme).unwrap_or(key).trim_start_matches("://");
            let findable = !host.contains(':') && !host.starts_with('.') && !scheme.is_empty();
            assert!(!findable || key == "no_proxy", "{error}");
        }
    }
    map
}

fn proxy_of(value: &Value) -> Option<ProxyUrl> {
    value.as_str().filter(|proxy| !proxy.is_empty()).map(|proxy| proxy.parse().unwrap())
}

/// The difference in how a key is read.
fn map_rule(maps: &Value) -> Option<&'static str> {
    let maps = [&maps["call_proxies"], &maps["session_proxies"]];
    let mut keys = maps.iter().flat_map(|map| object(map).keys());
    if keys.clone().any(|key| key.contains(|c: char| c.is_ascii_uppercase())) {
        return Some("DIFFERENCE(map-key-case)");
    }
    keys.any(|key| key.contains('[')).then_some("DIFFERENCE(map-key-brackets)")
}

/// The difference in what is asked, and in which order.
fn choice_rule(vector: &Value, url: &Url) -> Option<&'static str> {
    let given = &vector["in"];
    let env = object(&given["env"]);
    // Not a difference: here requests itself answers by the order of the environment block.
    if vector["out"]["env_order_dependent"] == true {
        return Some("environment-order");
    }
    let covers = |map: &Value| map_of(map).select(url).is_some();
    let trusted = given["trust_env"] == true && !env.is_empty();
    if trusted && (covers(&given["call_proxies"]) || covers(&given["session_proxies"])) {
        return Some("DIFFERENCE(session-over-environment)");
    }
    let mixed = |name: &String| *name != name.to_lowercase() && *name != name.to_uppercase();
    if trusted && env.keys().any(mixed) {
        return Some("DIFFERENCE(env-exact-case)");
    }
    if trusted && url.scheme() == "ftp" && env.keys().any(|name| name.starts_with("FTP_")) {
        return Some("DIFFERENCE(env-http-only)");
    }
    if trusted && object(&given["session_proxies"]).contains_key("no_proxy") {
        return Some("DIFFERENCE(session-no-proxy)");
    }
    map_rule(given)
}

/// The difference in what is asked again for the next hop.
fn hop_rule(given: &Value) -> Option<&'static str> {
    let named = |name: &str| name.eq_ignore_ascii_case("no_proxy");
    let in_env = object(&given["env"]).keys().any(|name| named(name));
    let in_request = object(&given["call_proxies"]).keys().any(|name| named(name));
    (in_env || in_request).then_some("DIFFERENCE(no-proxy-per-hop)")
}
