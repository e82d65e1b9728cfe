//! Cookies as JSON, under the names that tools for browsers use.
//!
//! ```json
//! {"cookies": [{"name": "id", "value": "4f2a", "domain": ".example.com", "path": "/",
//!               "expires": 1767225600, "secure": true, "httpOnly": true}]}
//! ```
//!
//! Read are also a bare list, `expiry` (WebDriver) and `expirationDate` (exporters of browsers) for
//! `expires`, and `hostOnly`. What is not known is passed over. JSON is read as values and not into
//! types, because the errors of the latter quote what they found, which may be a session.

use super::Cookie;
use super::domain::Named;
use super::file::{Faulty, seconds, time_of};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Serialize;
use serde_json::{Map, Value};
use std::time::SystemTime;

/// The cookies of a file, in their order.
pub(super) fn parse(text: &[u8]) -> Result<Vec<Cookie>, Faulty> {
    let value: Value = serde_json::from_slice(text).map_err(|error| {
        // What is wrong with the syntax: it quotes nothing.
        Faulty::at_line(error.line(), format!("is no JSON: {error}"))
    })?;
    let list = match value {
        Value::Array(list) => list,
        Value::Object(mut object) => match object.remove("cookies") {
            Some(Value::Array(list)) => list,
            _ => return Err(Faulty::of_file("has no list `cookies` of objects")),
        },
        _ => return Err(Faulty::of_file("is neither a list of cookies nor an object with one")),
    };
    let mut cookies = Vec::with_capacity(list.len());
    for (index, item) in list.iter().enumerate() {
        let Value::Object(item) = item else {
            return Err(Faulty::at_cookie(index + 1, "is no object"));
        };
        cookies.push(cookie(item).map_err(|why| Faulty::at_cookie(index + 1, why))?);
    }
    Ok(cookies)
}

fn cookie(item: &Map<String, Value>) -> Result<Cookie, String> {
    let name = bytes(item, "name", "nameBase64")?;
    let value = bytes(item, "value", "valueBase64")?;
    let Some(Value::String(domain)) = item.get("domain") else {
        return Err("has no text as its `domain`".to_owned());
    };
    let host = domain.strip_prefix('.').unwrap_or(domain);
    let host_only = flag(item, "hostOnly")?.unwrap_or(host.len() == domain.len());
    let named = Named::of(host, !host_only).ok_or_else(|| {
        format!("has the domain {domain:?}, which is no host such as example.com")
    })?;
    let path = match item.get("path") {
        None | Some(Value::Null) => "/",
        Some(Value::String(path)) => path,
        Some(_) => return Err("has a `path` that is no text".to_owned()),
    };
    let mut cookie = Cookie::bare(name, value, named)
        .with_path(path)
        .map_err(|_| format!("has the path {path:?}, which does not begin with /"))?
        .with_secure(flag(item, "secure")?.unwrap_or(false))
        .with_http_only(flag(item, "httpOnly")?.unwrap_or(false));
    cookie.expires = end_of_life(item)?;
    match cookie.fault().or(cookie.broken_promise()) {
        Some(why) => Err(why.to_owned()),
        None => Ok(cookie),
    }
}

fn bytes(item: &Map<String, Value>, text: &str, coded: &str) -> Result<Vec<u8>, String> {
    match (item.get(text), item.get(coded)) {
        (Some(Value::String(text)), None) => Ok(text.as_bytes().to_vec()),
        (None, Some(Value::String(text))) => {
            STANDARD.decode(text).map_err(|_| format!("has a `{coded}` that is no Base64"))
        }
        (Some(_), Some(_)) => Err(format!("has both `{text}` and `{coded}`; leave one out")),
        _ => Err(format!("has no text as its `{text}`, nor as `{coded}`")),
    }
}

fn flag(item: &Map<String, Value>, key: &str) -> Result<Option<bool>, String> {
    match item.get(key) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::Bool(flag)) => Ok(Some(*flag)),
        Some(_) => Err(format!("has a `{key}` that is neither true nor false")),
    }
}

fn end_of_life(item: &Map<String, Value>) -> Result<Option<SystemTime>, String> {
    for key in ["expires", "expiry", "expirationDate"] {
        let number = match item.get(key) {
            None | Some(Value::Null) => continue,
            Some(Value::Number(number)) => number,
            Some(_) => return Err(format!("has an `{key}` that is no number of seconds")),
        };
        // -1 is how some say that it ends with the session; a fraction of a second counts nothing.
        let end = number.as_u64().or_else(|| number.as_f64().map(|end| end as u64)).unwrap_or(0);
        return Ok((end > 0).then(|| time_of(end)));
    }
    Ok(None)
}

#[derive(Serialize)]
struct File<'a> {
    cookies: Vec<Item<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Item<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    name_base64: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    value: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    value_base64: Option<String>,
    domain: String,
    path: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    expires: Option<u64>,
    secure: bool,
    http_only: bool,
}

/// The file of these cookies.
pub(super) fn render<'a>(cookies: impl Iterator<Item = &'a Cookie>) -> String {
    let text = |bytes: &'a [u8]| match str::from_utf8(bytes) {
        Ok(text) => (Some(text), None),
        Err(_) => (None, Some(STANDARD.encode(bytes))),
    };
    let items = cookies.map(|cookie| {
        let (name, name_base64) = text(cookie.name());
        let (value, value_base64) = text(cookie.value());
        Item {
            name,
            name_base64,
            value,
            value_base64,
            domain: cookie.dotted_domain(),
            path: cookie.path(),
            expires: cookie.expires().map(seconds),
            secure: cookie.is_secure(),
            http_only: cookie.is_http_only(),
        }
    });
    let file = File { cookies: items.collect() };
    // Texts, numbers and flags: it cannot fail.
    let mut out = serde_json::to_string_pretty(&file).unwrap_or_default();
    out.push('\n');
    out
}
