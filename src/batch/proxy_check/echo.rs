//! What an endpoint that reflects requests says of the one it got.
//!
//! Such endpoints have no standard. The many that there are answer with a JSON object that holds
//! the fields under `headers`, or with the lines of the request as text; the address stands where
//! [`address_in`](crate::batch::address_in) finds it. What a proxy has added is told by comparing
//! two reflections, the direct one and the one through the proxy, so that fields which the
//! endpoint's own front end adds are not laid at the proxy's door.

use crate::proxy::ProxyUrl;
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeMap;

/// How many characters of a value are kept.
const LONGEST_VALUE: usize = 256;

/// Fields that end at each hop (RFC 9110, section 7.6.1): to take them away is what proxies do.
const HOP_BY_HOP: [&str; 4] = ["connection", "keep-alive", "proxy-connection", "te"];

/// A field as the endpoint saw it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Field {
    /// Its name, in the case in which it was shown.
    pub name: String,
    /// Its value, at most 256 characters of it; `***` where it holds a credential.
    pub value: String,
}

/// What a proxy does to the fields of a request.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
#[non_exhaustive]
pub struct HeaderChanges {
    /// Fields that were not sent.
    pub added: Vec<Field>,
    /// Fields that arrived with another value, with that value.
    pub changed: Vec<Field>,
    /// Fields that did not arrive.
    pub removed: Vec<String>,
}

impl HeaderChanges {
    /// Whether the request arrived as it was sent.
    pub fn is_empty(&self) -> bool {
        self.added.is_empty() && self.changed.is_empty() && self.removed.is_empty()
    }
}

/// Fields by their lower-case name: the name as shown, and the values joined by a comma.
pub(super) type Fields = BTreeMap<String, (String, String)>;

/// Puts fields together.
pub(super) fn fields<N: Into<String>>(list: impl IntoIterator<Item = (N, String)>) -> Fields {
    let mut fields = Fields::new();
    for (name, value) in list {
        let name = name.into();
        let (_, values) =
            fields.entry(name.to_ascii_lowercase()).or_insert_with(|| (name, String::new()));
        if !values.is_empty() {
            values.push_str(", ");
        }
        values.push_str(&value);
    }
    fields
}

/// The fields in an answer; `None` where it reflects none.
pub(super) fn reflected(text: &str) -> Option<Fields> {
    if let Ok(Value::Object(object)) = serde_json::from_str::<Value>(text) {
        return match object.get("headers")? {
            Value::Object(headers) => Some(fields(headers.iter().flat_map(|(name, value)| {
                let values = value.as_array().map_or(std::slice::from_ref(value), Vec::as_slice);
                values.iter().map(move |value| (name.as_str(), shown(value)))
            }))),
            Value::Array(pairs) => Some(fields(
                pairs.iter().filter_map(|pair| Some((pair.get(0)?.as_str()?, shown(pair.get(1)?)))),
            )),
            _ => None,
        };
    }
    let lines = text.lines().filter_map(|line| {
        let (name, value) = line.split_once(':')?;
        let is_name =
            !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-');
        is_name.then(|| (name, value.trim().to_owned()))
    });
    // Any text may hold a colon; a request has these two.
    Some(fields(lines))
        .filter(|fields| ["host", "user-agent"].iter().all(|name| fields.contains_key(*name)))
}

fn shown(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// What became of the fields on the way through a proxy.
///
/// `base` is what arrives without the proxy, where that is known, and else what was sent.
pub(super) fn changes(
    sent: &Fields,
    base: &Fields,
    arrived: &Fields,
    proxy: &ProxyUrl,
    for_proxies: &[(String, String)],
) -> HeaderChanges {
    // A key that was meant for the proxy, and that it has handed on.
    let handed_on = |text: &str| {
        let mut keys = for_proxies.iter().map(|(_, key)| key.as_str());
        keys.any(|key| !key.is_empty() && text.contains(key))
    };
    let field = |(name, value): &(String, String)| Field {
        name: name.clone(),
        value: if proxy.gives_away(value) || handed_on(value) {
            "***".to_owned()
        } else {
            value.chars().take(LONGEST_VALUE).collect()
        },
    };
    let added = arrived.iter().filter(|(name, _)| !base.contains_key(*name));
    let ours = || {
        sent.keys()
            .filter(|name| !HOP_BY_HOP.contains(&name.as_str()))
            .filter_map(|name| Some((name, base.get(name)?)))
    };
    HeaderChanges {
        added: added.map(|(_, shown)| field(shown)).collect(),
        changed: ours()
            .filter_map(|(name, (_, before))| arrived.get(name).filter(|now| now.1 != *before))
            .map(field)
            .collect(),
        removed: ours()
            .filter(|(name, _)| !arrived.contains_key(*name))
            .map(|(_, (shown, _))| shown.clone())
            .collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD;

    fn of(list: &[(&str, &str)]) -> Fields {
        fields(list.iter().map(|(name, value)| (*name, (*value).to_owned())))
    }

    #[test]
    fn reflections_as_endpoints_write_them() {
        let wanted = of(&[("Host", "e"), ("User-Agent", "x"), ("Via", "a, b")]);
        for text in [
            r#"{"origin":"192.0.2.1","headers":{"Host":"e","User-Agent":"x","Via":"a, b"}}"#,
            r#"{"headers":{"Host":["e"],"User-Agent":["x"],"Via":["a","b"]}}"#,
            r#"{"headers":[["Host","e"],["User-Agent","x"],["Via","a"],["Via","b"]]}"#,
            "GET / HTTP/1.1\r\nHost: e\r\nUser-Agent: x\r\nVia: a\r\nVia: b\r\n\r\n",
        ] {
            assert_eq!(reflected(text).as_ref(), Some(&wanted), "{text}");
        }
        for text in ["192.0.2.1", r#"{"ip":"192.0.2.1"}"#, r#"{"headers":1}"#, "note: none", ""] {
            assert_eq!(reflected(text), None, "{text}");
        }
    }

    #[test]
    fn what_the_endpoint_adds_is_not_the_proxys() {
        let sent = of(&[("User-Agent", "x"), ("Accept", "*/*"), ("Connection", "keep-alive")]);
        let direct = of(&[("user-agent", "x"), ("accept", "*/*"), ("x-amzn-trace-id", "1")]);
        let through = of(&[
            ("User-Agent", "y"),
            ("X-Amzn-Trace-Id", "2"),
            ("Via", "1.1 cache"),
            ("X-Forwarded-For", "192.0.2.1"),
        ]);
        let proxy: ProxyUrl = "h:1".parse().unwrap();
        let seen = changes(&sent, &direct, &through, &proxy, &[]);
        let field = |name: &str, value: &str| Field { name: name.into(), value: value.into() };
        assert_eq!(seen.added, [field("Via", "1.1 cache"), field("X-Forwarded-For", "192.0.2.1")]);
        assert_eq!(seen.changed, [field("User-Agent", "y")]);
        assert_eq!(seen.removed, ["accept"]);
        assert!(changes(&sent, &direct, &direct, &proxy, &[]).is_empty());
    }

    #[test]
    fn credentials_that_arrive_are_not_shown() {
        let proxy: ProxyUrl = "h:1:anna:hunter2".parse().unwrap();
        let basic = format!("Basic {}", STANDARD.encode("anna:hunter2"));
        let through = of(&[("Proxy-Authorization", &basic), ("X-User", "anna"), ("Via", "x")]);
        let seen = changes(&of(&[]), &of(&[]), &through, &proxy, &[]);
        let values: Vec<&str> = seen.added.iter().map(|field| field.value.as_str()).collect();
        assert_eq!(values, ["***", "x", "***"]);
    }
}
