//! Answers to Digest challenges.
//!
//! What is compared are the parameters in their order. That requests quotes `algorithm` and `qop`
//! is one of our differences, and would set nearly everything aside.

use http::{HeaderMap, HeaderValue, header};
use longhaul::message::{Body, build_digest_header, prepare_url};
use serde_json::Value;

use crate::verdict::{Vector, Verdict, text, wire};

pub(crate) fn digest(vector: &Vector) -> Option<Verdict> {
    let (given, out) = (&vector.given, &vector.out);
    let ours = answer(given);
    let theirs = out["authorization"].as_str().map(str::to_owned);
    let same = out["error"].is_null()
        && ours.as_deref().map(parameters) == theirs.as_deref().map(parameters);
    Verdict::new(same, rule(given), || format!("{given} -> {ours:?}, requests {out}"))
}

fn answer(given: &Value) -> Option<String> {
    let mut headers = HeaderMap::new();
    for line in given["challenges"].as_array().unwrap() {
        let value = HeaderValue::from_bytes(&wire(text(line))).unwrap();
        headers.append(header::WWW_AUTHENTICATE, value);
    }
    let url = prepare_url(text(&given["url"]), &[]).unwrap();
    let field = build_digest_header(
        &headers,
        (text(&given["user"]), text(&given["password"])),
        (text(&given["method"]), &url, &Body::Empty),
        text(&given["cnonce"]),
        u32::try_from(given["uses"].as_u64().unwrap()).unwrap(),
    );
    // One character is one byte, as in the vectors.
    Some(field.unwrap()?.iter().map(|byte| char::from(*byte)).collect())
}

/// Names and values, without quotes.
fn parameters(field: &str) -> Vec<(String, String)> {
    let field = field.strip_prefix("Digest ").unwrap();
    let mut rest = field;
    let mut found = Vec::new();
    while let Some((name, after)) = rest.split_once('=') {
        let (value, tail) = match after.strip_prefix('"') {
            Some(quoted) => quoted.split_once('"').unwrap(),
            None => after.split_at(after.find(", ").unwrap_or(after.len())),
        };
        found.push((name.to_owned(), value.to_owned()));
        rest = tail.strip_prefix(", ").unwrap_or(tail);
    }
    found
}

/// Why the answers may differ, by what was asked.
fn rule(given: &Value) -> Option<&'static str> {
    let lines: Vec<&str> = given["challenges"].as_array().unwrap().iter().map(text).collect();
    let line = lines.join(", ");
    let lower = line.to_lowercase();
    let user = text(&given["user"]);
    let value = |name: &str| {
        let rest = lower.split_once(&format!("{name}="))?.1;
        let end = match rest.strip_prefix('"') {
            Some(quoted) => return quoted.split('"').next(),
            None => rest.find([',', ' ', '\t']).unwrap_or(rest.len()),
        };
        rest.get(..end)
    };
    // One of the realms is called that.
    let schemes = lower.replace("\"digest realm\"", "").matches("digest ").count();
    if lines.len() > 1 || schemes > 1 {
        return Some("digest-challenge");
    }
    if value("realm").is_none() || value("nonce").is_none() {
        return Some("digest-challenge");
    }
    // What requests calculates, and the list that it understands.
    let spoken = [None, Some("md5"), Some("md5-sess"), Some("sha-256"), Some("sha-512")];
    let qop = value("qop").unwrap_or_default();
    if !spoken.contains(&value("algorithm"))
        || !(qop.is_empty() || line.contains("qop") && auth_is_listed(&line))
    {
        return Some("digest-algorithms");
    }
    if !user.is_ascii() || !line.is_ascii() || lower.contains("userhash") {
        return Some("digest-charset");
    }
    let in_session_alone = value("algorithm") == Some("md5-sess") && qop.is_empty();
    if user.contains(['"', '\\'])
        || line.contains('\\')
        || lower.contains("opaque=\"\"")
        || in_session_alone
    {
        return Some("digest-fields");
    }
    None
}

/// Whether requests finds `auth` in the list: it compares with case, and cuts at commas alone.
fn auth_is_listed(line: &str) -> bool {
    let rest = line.split_once("qop=").map_or("", |(_, rest)| rest);
    let list = match rest.strip_prefix('"') {
        Some(quoted) => quoted.split('"').next().unwrap_or_default(),
        None => rest.split([',', ' ', '\t']).next().unwrap_or_default(),
    };
    list.split(',').any(|word| word == "auth")
}
