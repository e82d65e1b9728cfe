//! URLs as they are prepared, and requests as a redirect rewrites them.

use std::fmt;

use http::{HeaderMap, HeaderValue, Method};
use longhaul::message::{
    Headers, Prepared, RedirectRules, Request, Settings, follow, prepare, prepare_url,
};
use longhaul::{Error, ErrorKind};
use serde::de::{MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use url::Url;

use crate::verdict::{Vector, Verdict, text, wire};

/// Python's `str` of a parameter value, once per element of a list; `None` vanishes.
fn texts(value: &Value) -> Vec<String> {
    match value {
        Value::Null => Vec::new(),
        Value::Array(list) => list.iter().flat_map(texts).collect(),
        Value::String(text) => vec![text.clone()],
        Value::Bool(true) => vec!["True".to_owned()],
        Value::Bool(false) => vec!["False".to_owned()],
        other => vec![other.to_string()],
    }
}

/// Pairs in the order of the text, which [`Value`] loses for objects.
#[derive(Default)]
struct Params(Vec<(String, Value)>);

impl<'de> Deserialize<'de> for Params {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Pairs;
        impl<'de> Visitor<'de> for Pairs {
            type Value = Params;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("parameters")
            }
            fn visit_unit<E>(self) -> Result<Params, E> {
                Ok(Params::default())
            }
            fn visit_str<E>(self, _raw: &str) -> Result<Params, E> {
                Ok(Params::default())
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Params, A::Error> {
                let mut pairs = Vec::new();
                while let Some(pair) = map.next_entry()? {
                    pairs.push(pair);
                }
                Ok(Params(pairs))
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Params, A::Error> {
                let mut pairs = Vec::new();
                while let Some(pair) = list.next_element()? {
                    pairs.push(pair);
                }
                Ok(Params(pairs))
            }
        }
        deserializer.deserialize_any(Pairs)
    }
}

fn params(line: &str) -> Vec<(String, String)> {
    #[derive(Deserialize)]
    struct Line {
        r#in: In,
    }
    #[derive(Deserialize)]
    struct In {
        params: Params,
    }
    let line: Line = serde_json::from_str(line).unwrap();
    let pairs = line.r#in.params.0.into_iter();
    pairs
        .flat_map(|(name, value)| texts(&value).into_iter().map(move |text| (name.clone(), text)))
        .collect()
}

/// Raw parameters are not part of the interface; a user writes them into the URL.
fn with_raw_params(url: &str, raw: &str) -> String {
    if raw.is_empty() {
        return url.to_owned();
    }
    let (head, fragment) = url.split_at(url.find('#').unwrap_or(url.len()));
    let separator = match head.split_once('?') {
        None => "?",
        Some((_, "")) => "",
        Some(_) => "&",
    };
    format!("{head}{separator}{raw}{fragment}")
}

fn without_userinfo(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else { return url.to_owned() };
    let (authority, tail) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
    format!("{scheme}://{}{tail}", authority.rsplit('@').next().unwrap_or_default())
}

fn host_of(url: &str) -> String {
    let rest = url.split_once("://").map_or("", |(_, rest)| rest);
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    authority.rsplit('@').next().unwrap_or_default().to_owned()
}

fn is_http(url: &str) -> bool {
    let scheme = url.split(':').next().unwrap_or_default();
    scheme.eq_ignore_ascii_case("http") || scheme.eq_ignore_ascii_case("https")
}

fn url_rule(given: &str, wanted: Option<&str>, ours: &Result<Url, Error>) -> Option<&'static str> {
    let host = host_of(given);
    match (wanted, ours) {
        (_, _) if given.trim_end() != given => Some("trailing-whitespace"),
        (Some(wanted), Ok(ours)) if is_canonical_form(wanted, ours) => Some(canonical_rule(wanted)),
        (Some(_), Err(_)) if host.ends_with(":0") => Some("port-zero"),
        (Some(_), Err(_)) if host.to_lowercase().contains("xn--") => Some("idna"),
        (Some(_), Err(_)) if !is_usable(&host) => Some("host-characters"),
        (Some(wanted), Ok(ours))
            if !host.is_ascii() && ours.host_str() != Some(&host_of(wanted)) =>
        {
            Some("idna")
        }
        (None, Ok(_)) if !host.is_ascii() => Some("idna"),
        _ => None,
    }
}

pub(crate) fn url_prepare(vector: &Vector) -> Option<Verdict> {
    let (given, out) = (&vector.given, &vector.out);
    let raw = text(&given["params"]);
    let url = with_raw_params(text(&given["url"]), raw);
    let ours = prepare_url(&url, &params(&vector.line));
    let wanted = out["url"].as_str().map(without_userinfo);
    let same = match (&wanted, &ours) {
        (Some(wanted), Ok(ours)) => ours.as_str() == wanted,
        // requests lets other schemes through and finds no adapter for them in `send`.
        (Some(wanted), Err(error)) => !is_http(wanted) && error.kind() == ErrorKind::InvalidScheme,
        (None, Err(error)) => error.requests_name() == text(&out["error"]),
        (None, Ok(_)) => false,
    };
    let rule = match url_rule(&url, wanted.as_deref(), &ours) {
        // There a bad escape makes requests escape the whole URL again, `#` is data, and brackets
        // stay as they are.
        None if raw.contains(['%', '#', '[', ']']) => Some("raw-params"),
        rule => rule,
    };
    Verdict::new(same, rule, || format!("{url:?} -> {ours:?}, requests {out}"))
}

fn value(headers: &Headers, name: &str) -> Option<String> {
    headers.get(name).map(|value| String::from_utf8_lossy(value).into_owned())
}

/// Whether the standard's parser makes `ours` of what requests sends.
fn is_canonical_form(theirs: &str, ours: &Url) -> bool {
    let parts = |url: &Url| {
        let (path, query) = (url.path().to_owned(), url.query().unwrap_or("").to_owned());
        (url.origin(), path, query)
    };
    Url::parse(theirs).is_ok_and(|theirs| parts(&theirs) == parts(ours))
}

/// A path that still holds a dot segment is more than another spelling.
fn canonical_rule(theirs: &str) -> &'static str {
    let path = theirs.split(['?', '#']).next().unwrap_or_default();
    let is_dots =
        |segment: &str| matches!(&*segment.to_lowercase().replace("%2e", "."), "." | "..");
    match path.split('/').any(is_dots) {
        true => "dot-segments",
        false => "canonical-url",
    }
}

/// Whether a resolver could find this host, a port behind it aside.
fn is_usable(host: &str) -> bool {
    let (name, port) = host.rsplit_once(':').unwrap_or((host, ""));
    let name = if port.bytes().all(|byte| byte.is_ascii_digit()) { name } else { host };
    let is_label = |label: &str| (1..=63).contains(&label.len());
    let mut labels = name.trim_end_matches('.').split('.');
    // A host whose last label is a number is an address, or nothing.
    let last_is_number =
        labels.clone().next_back().is_some_and(|label| label.parse::<u64>().is_ok());
    (!last_is_number || name.parse::<std::net::Ipv4Addr>().is_ok())
        && labels.all(is_label)
        && !name.contains(|c: char| " %\\<>^|`{}\"\x7f".contains(c) || c.is_control())
}

fn redirect(given: &Value) -> Result<(Prepared, Option<Prepared>), Error> {
    let method = Method::from_bytes(text(&given["method"]).as_bytes()).unwrap();
    let mut request = Request::new(method, text(&given["url"]));
    for (name, value) in given["headers"].as_object().unwrap() {
        request = request.header(name, text(value));
    }
    if let Some(body) = given["body"].as_str() {
        request = request.body(body);
    }
    let mut settings = Settings::default();
    settings.headers = Headers::new();
    let first = prepare(&settings, &request)?;
    let mut headers = HeaderMap::new();
    if let Some(location) = given["location"].as_str() {
        headers.insert("Location", HeaderValue::from_bytes(&wire(location)).unwrap());
    }
    let status = u16::try_from(given["status"].as_u64().unwrap()).unwrap();
    let next = follow(&first, status, &headers, RedirectRules::default())?;
    Ok((first, next))
}

/// Where `next` is not what requests makes of it.
fn unlike(given: &Value, out: &Value, first: &Prepared, next: &Prepared) -> Option<String> {
    let connect = &out["next_connect"];
    let target = match next.url.query() {
        Some(query) => format!("{}?{query}", next.url.path()),
        None => next.url.path().to_owned(),
    };
    let host = next.url.host_str().unwrap_or_default().trim_matches(['[', ']']);
    let port = next.url.port_or_known_default().map(u64::from);
    let fragment = text(&out["next_url"]).split_once('#').map(|(_, fragment)| fragment);
    let mut unlike = [
        ("method", next.method.as_str() == text(&out["next_method"])),
        ("scheme", next.url.scheme() == text(&connect["scheme"])),
        ("host", host == text(&connect["host"])),
        ("port", port == connect["port"].as_u64()),
        ("target", target == text(&out["next_target"])),
        ("fragment", next.url.fragment() == fragment),
        // An empty body is none for us, and none is what requests sends.
        (
            "body",
            given["body"] == ""
                || out["body_dropped"].as_bool().is_none_or(|gone| gone == next.body.is_empty()),
        ),
    ]
    .into_iter()
    .find(|(_, same)| !same)
    .map(|(name, _)| name.to_owned());
    for (name, wanted) in out["headers"].as_object().into_iter().flatten() {
        let before = value(&first.headers, name);
        let after = value(&next.headers, name);
        // requests lets userinfo beat the field; either way it is there before.
        let both_auth = name == "Authorization" && given["url"].as_str().unwrap().contains('@');
        let same = match name.as_str() {
            // Framing belongs to the transport, cookies of the jar to the flight.
            "Content-Length" => true,
            "Cookie" => after.is_none(),
            _ if both_auth => after.is_some() == wanted["after"].is_string(),
            _ => {
                before.as_deref() == wanted["before"].as_str()
                    && after.as_deref() == wanted["after"].as_str()
            }
        };
        if !same {
            unlike = unlike.or_else(|| Some(name.clone()));
        }
    }
    unlike
}

pub(crate) fn redirect_rewrite(vector: &Vector) -> Option<Verdict> {
    let (given, out) = (&vector.given, &vector.out);
    if HeaderValue::from_bytes(&wire(text(&given["location"]))).is_err() {
        // No field can hold it, and so none that was received does.
        return None;
    }
    let ours = redirect(given);
    let kind = ours.as_ref().err().map(Error::kind);
    let seen = || format!("{given} -> {ours:?}, requests {out}");
    let location = text(&given["location"]);
    if let Some(error) = out["error"].as_str() {
        let rule = match &ours {
            Ok((_, Some(_))) if error == "UnicodeDecodeError" => Some("location-bytes"),
            Err(_) if out["is_requests_exception"] == false => Some("location-error"),
            // requests fails on 304 in a place of its own; it is no redirect.
            Ok((_, None)) if given["status"] == 304 => Some("location-error"),
            _ => None,
        };
        return Verdict::new(false, rule, seen);
    }
    match (&ours, out["next_connect"]["error"].as_str()) {
        (Ok((_, next)), _) if out["followed"] == false => Verdict::new(next.is_none(), None, seen),
        (_, Some("InvalidSchema")) => {
            Verdict::new(kind == Some(ErrorKind::InvalidScheme), None, seen)
        }
        // A host or a port that the next request would have tripped over.
        (_, Some("LocationValueError" | "LocationParseError" | "InvalidURL")) => {
            Verdict::new(kind == Some(ErrorKind::InvalidUrl), None, seen)
        }
        (Ok((first, Some(next))), None) => {
            let unlike = unlike(given, out, first, next);
            let rule = match unlike.as_deref() {
                Some("host") if !location.is_ascii() || location.starts_with("////") => {
                    Some("location-host")
                }
                Some("host" | "target") if is_canonical_form(text(&out["next_url"]), &next.url) => {
                    Some(canonical_rule(text(&out["next_url"])))
                }
                Some("target") if location == "?" || location.starts_with("?#") => {
                    Some("location-query")
                }
                Some("Host") => Some("explicit-host"),
                _ => None,
            };
            Verdict::new(unlike.is_none(), rule, || format!("{unlike:?}: {}", seen()))
        }
        (Err(error), None) if error.kind() == ErrorKind::InvalidUrl => {
            let host = host_of(location);
            let rule = match host.strip_suffix(":0") {
                Some(_) => Some("port-zero"),
                None if !is_usable(&host) => Some("location-host"),
                None => None,
            };
            Verdict::new(false, rule, seen)
        }
        _ => Verdict::new(false, None, seen),
    }
}
