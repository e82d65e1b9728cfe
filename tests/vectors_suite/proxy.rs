//! Which proxy, and when none.

use std::net::{IpAddr, Ipv6Addr};

use longhaul::ErrorKind;
use longhaul::proxy::{Chosen, EnvProxies, NoProxy, ProxyMap, ProxyUrl, resolve_proxy};
use serde_json::{Map, Value};
use url::{Host, Url};

use crate::verdict::{Vector, Verdict, text};

pub(crate) fn no_proxy(vector: &Vector) -> Option<Verdict> {
    let (list, given) = (text(&vector.given["no_proxy"]), text(&vector.given["url"]));
    let wanted = vector.out["bypass"].as_bool();
    let ours = Url::parse(given).ok().map(|url| NoProxy::parse(list).matches(&url));
    Verdict::new(ours == wanted, no_proxy_rule(list, given), || {
        format!("{list:?} {given}: {ours:?}, not {wanted:?}")
    })
}

/// The difference that may explain another answer, by what list and URL look like.
fn no_proxy_rule(list: &str, given: &str) -> Option<&'static str> {
    let Ok(url) = Url::parse(given) else {
        return Some("whatwg-url");
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
                && entries.iter().any(|entry| {
                    let is_literal = entry.parse::<Ipv6Addr>().is_ok();
                    entry.starts_with('[') || entry.contains("::/") || is_literal
                }),
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
            // Also where the port of the entry is written otherwise, as `080`.
            (url.port().is_none() || entries.iter().any(|entry| entry.contains(":0")))
                && entries
                    .iter()
                    .filter_map(|entry| entry.rsplit_once(':'))
                    .any(|(_, port)| port.parse() == Ok(url_port(&url))),
        ),
        ("no-proxy-idna", !(list.is_ascii() && given.is_ascii()) && host.contains("xn--")),
        (
            "no-proxy-ip-suffix",
            is_address
                && entries.iter().any(|entry| {
                    host.trim_matches(['[', ']']).ends_with(entry) && entry.len() < host.len()
                }),
        ),
        // urllib's suffix rule sees the brackets of an address and its pieces.
        ("no-proxy-ip-suffix", is_address && entries.iter().any(|entry| entry.ends_with(':'))),
        ("whatwg-url", is_address && entries.iter().any(|entry| is_odd_ipv4(entry))),
    ];
    rules.iter().find(|(_, applies)| *applies).map(|(name, _)| *name)
}

/// A spelling of an IPv4 address that is none to Python: `127.1`, `0x7f.1`.
fn is_odd_ipv4(entry: &str) -> bool {
    let host = Url::parse(&format!("http://{entry}/"));
    let host = host.ok().and_then(|url| url.host().map(|host| host.to_owned()));
    matches!(host, Some(Host::Ipv4(address)) if address.to_string() != entry)
}

fn url_port(url: &Url) -> u16 {
    url.port_or_known_default().unwrap_or_default()
}

// ---- Choosing a proxy

pub(crate) fn by_one_map(vector: &Vector) -> Option<Verdict> {
    let given = &vector.given;
    let url: Url = text(&given["url"]).parse().unwrap();
    let ours = match map_of(&given["call_proxies"]).select(&url) {
        Some(Some(proxy)) => Some(proxy.as_ref().clone()),
        Some(None) | None => None,
    };
    let wanted = proxy_of(&vector.out["select_only"]);
    Verdict::new(ours == wanted, map_rule(given), || format!("{ours:?}, not {wanted:?}: {given}"))
}

/// Where requests itself answers by the order of the environment block, there is no answer.
fn is_answered(vector: &Vector) -> bool {
    vector.out["env_order_dependent"] != true
}

pub(crate) fn chosen(vector: &Vector) -> Option<Verdict> {
    if !is_answered(vector) {
        return None;
    }
    let given = &vector.given;
    let url: Url = text(&given["url"]).parse().unwrap();
    let (ours, wanted) = (choose(given, &url), proxy_of(&vector.out["chosen"]));
    Verdict::new(ours == wanted, choice_rule(given, &url), || {
        format!("{ours:?}, not {wanted:?}: {given}")
    })
}

pub(crate) fn after_a_redirect(vector: &Vector) -> Option<Verdict> {
    let given = &vector.given;
    if !is_answered(vector) {
        return None;
    }
    let url: Url = given["redirect_url"].as_str()?.parse().unwrap();
    let (ours, wanted) = (choose(given, &url), proxy_of(&vector.out["redirect_chosen"]));
    let rule = choice_rule(given, &url).or_else(|| hop_rule(given));
    Verdict::new(ours == wanted, rule, || format!("{ours:?}, not {wanted:?}: {given}"))
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
            let no_host = host.contains([':', '*']) || host.starts_with('.');
            let findable = !no_host && !scheme.is_empty();
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
        return Some("map-key-case");
    }
    keys.any(|key| key.contains('[')).then_some("map-key-brackets")
}

/// The difference in what is asked, and in which order.
fn choice_rule(given: &Value, url: &Url) -> Option<&'static str> {
    let env = object(&given["env"]);
    let (request, session) = (map_of(&given["call_proxies"]), map_of(&given["session_proxies"]));
    let trusted = given["trust_env"] == true && !env.is_empty();
    let own = resolve_proxy(url, Some(&request), &session, None);
    if trusted && own != Chosen::Uncovered {
        return Some("session-over-environment");
    }
    let mixed = |name: &String| *name != name.to_lowercase() && *name != name.to_uppercase();
    if trusted && env.keys().any(mixed) {
        return Some("env-exact-case");
    }
    if trusted && url.scheme() == "ftp" && env.keys().any(|name| name.starts_with("FTP_")) {
        return Some("env-http-only");
    }
    if trusted && object(&given["session_proxies"]).contains_key("no_proxy") {
        return Some("session-no-proxy");
    }
    // The lists are read as `no_proxy` vectors are.
    let lists = env.iter().filter(|(name, _)| name.eq_ignore_ascii_case("no_proxy"));
    let list =
        lists.filter(|_| trusted).find_map(|(_, list)| no_proxy_rule(text(list), url.as_str()));
    map_rule(given).or(list)
}

/// The difference in what is asked again for the next hop.
fn hop_rule(given: &Value) -> Option<&'static str> {
    let named = |name: &str| name.eq_ignore_ascii_case("no_proxy");
    let in_env = object(&given["env"]).keys().any(|name| named(name));
    let in_request = object(&given["call_proxies"]).keys().any(|name| named(name));
    (in_env || in_request).then_some("no-proxy-per-hop")
}
