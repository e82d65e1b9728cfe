//! Charsets, text and JSON of a body.

use base64::Engine as _;
use http::{HeaderMap, HeaderName, HeaderValue, Method};
use longhaul::Response;
use longhaul::message::{ResponseBody, ResponseParts, decode_text, encoding_of};
use serde_json::Value;
use url::Url;

use crate::verdict::{Vector, Verdict, text};

pub(crate) fn response(content_type: Option<&str>, body: Vec<u8>) -> Response {
    let mut headers = HeaderMap::new();
    if let Some(value) = content_type {
        let name = HeaderName::from_static("content-type");
        headers.insert(name, HeaderValue::from_str(value).unwrap());
    }
    Response::from_parts(ResponseParts {
        method: Method::GET,
        url: Url::parse("http://h/").unwrap(),
        status: 200,
        reason: String::new(),
        headers,
        body: ResponseBody::Bytes(body.into()),
        wire_bytes: 0,
        history: Vec::new(),
        attempts: Vec::new(),
        elapsed: std::time::Duration::ZERO,
        timings: longhaul::message::Timings::default(),
        connection: longhaul::message::ConnectionFacts::default(),
        proxy: None,
    })
}

/// Charsets that Python knows and browsers do not, and the other way round.
const ONLY_PYTHON: &[&str] =
    &["idna", "punycode", "utf-7", "unicode_escape", "raw_unicode_escape", "undefined", "utf-32"];
const ONLY_WEB: &[&str] = &["x-sjis", "x-user-defined", "iso-8859-8-i", "windows-31j"];

/// Charsets that every library has to read alike.
fn is_common(label: &str) -> bool {
    let label = label.to_ascii_lowercase().replace('_', "-");
    matches!(&*label, "utf-8" | "utf8" | "iso-8859-1" | "latin-1" | "latin1" | "us-ascii" | "ascii")
}

/// Whether a text holds what a decoder puts where there is no character: the replacement, a
/// control character, or one of private use.
fn has_invalid(text: &str) -> bool {
    text.contains(|c| matches!(c, '\u{fffd}' | '\u{80}'..='\u{9f}' | '\u{e000}'..='\u{f8ff}'))
}

/// The difference in what a label means.
fn charset_rule(label: &str, ours: &str, theirs: &str) -> Option<&'static str> {
    if ONLY_PYTHON.contains(&label) || ONLY_WEB.contains(&label) {
        return Some("charset-names");
    }
    if is_common(label) {
        return None;
    }
    match has_invalid(ours) || has_invalid(theirs) {
        true => Some("invalid-bytes"),
        false => Some("charset-names"),
    }
}

/// Equal as Python compares: it has one zero, and no limit to a number.
fn same_json(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Number(one), Value::Number(other)) => one.as_f64() == other.as_f64(),
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len()
                && one.iter().zip(other).all(|(one, other)| same_json(one, other))
        }
        (Value::Object(one), Value::Object(other)) => {
            one.len() == other.len()
                && one
                    .iter()
                    .all(|(key, one)| other.get(key).is_some_and(|other| same_json(one, other)))
        }
        _ => one == other,
    }
}

pub(crate) fn encoding(vector: &Vector) -> Option<Verdict> {
    let (given, out) = (&vector.given, &vector.out);
    let content_type = given["content_type"].as_str();
    let body = base64::engine::general_purpose::STANDARD.decode(text(&given["body_b64"])).unwrap();
    let label = encoding_of(content_type.map(str::as_bytes));
    let decoded = decode_text(&body, content_type.map(str::as_bytes));
    let json = response(content_type, body.clone()).json::<Value>().ok();

    let same_label = label.as_deref() == out["encoding"].as_str();
    // What was detected is a guess there and here, and an error is not ours to have.
    let same_text = out["text_is_detected"] == true
        || out["text"].as_str().is_none_or(|wanted| wanted == decoded);
    let wanted_json = out.get("json").filter(|json| json.get("error").is_none());
    let alike = match (&json, wanted_json) {
        (Some(json), Some(wanted)) => same_json(json, wanted),
        (json, wanted) => json.is_none() && wanted.is_none(),
    };

    let is_named = content_type.is_some_and(|value| {
        let named = |label: &String| value.to_lowercase().contains(&label.to_lowercase());
        label.as_ref().is_some_and(named)
    });
    let has_mark = [&b"\xef\xbb\xbf"[..], b"\xff\xfe", b"\xfe\xff"];
    let has_mark = has_mark.iter().any(|mark| body.starts_with(mark));
    let rule = match label.as_deref() {
        _ if !same_label => None,
        _ if has_mark => Some("bom"),
        _ if [&b"NaN"[..], b"Infinity", b"-Infinity"].contains(&&body[..]) => Some("json-unicode"),
        _ if same_text && !alike && !is_named => match std::str::from_utf8(&body) {
            Ok(_) => Some("json-unicode"),
            Err(_) => Some("detection"),
        },
        Some(label) if is_named => charset_rule(label, &decoded, text(&out["text"])),
        _ => None,
    };
    Verdict::new(same_label && same_text && alike, rule, || {
        format!("{content_type:?} {body:?}: {label:?} {decoded:?} {json:?}, requests {out}")
    })
}
