//! Charsets, text and JSON of a body.

use base64::Engine as _;
use http::{HeaderMap, HeaderName, HeaderValue, Method};
use longhaul::Response;
use longhaul::message::{ResponseBody, ResponseParts, decode_text, encoding_of};
use serde_json::Value;
use url::Url;

use crate::verdict::{Vector, Verdict, text};

fn response(content_type: Option<&str>, body: Vec<u8>) -> Response {
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

pub(crate) fn encoding(vector: &Vector) -> Option<Verdict> {
    let (given, out) = (&vector.given, &vector.out);
    let content_type = given["content_type"].as_str();
    let body = base64::engine::general_purpose::STANDARD.decode(text(&given["body_b64"]));
    let body = body.unwrap();
    let label = encoding_of(content_type.map(str::as_bytes));
    let decoded = decode_text(&body, content_type.map(str::as_bytes));
    let json = response(content_type, body.clone()).json::<Value>().ok();
    let same_label = label.as_deref() == out["encoding"].as_str();
    let same_text = out["text_is_detected"] == true
        || out["text"].as_str() == Some(decoded.as_str())
        || out["text"].is_null();
    let wanted_json = out.get("json").filter(|json| json.get("error").is_none());
    let same_json = json.as_ref() == wanted_json;
    let charset = content_type.is_some_and(|value| value.contains("charset"));
    let has_mark = [&b"\xef\xbb\xbf"[..], b"\xff\xfe", b"\xfe\xff"];
    let has_mark = has_mark.iter().any(|mark| body.starts_with(mark));
    let rule = match label.as_deref() {
        _ if !same_label => None,
        Some(label) if ONLY_PYTHON.contains(&label) || ONLY_WEB.contains(&label) => {
            Some("charset-names")
        }
        _ if has_mark => Some("bom"),
        _ if body == b"NaN" => Some("json-unicode"),
        _ if !charset && !same_json && body.contains(&0) => Some("json-unicode"),
        None if std::str::from_utf8(&body).is_err() => Some("detection"),
        _ => None,
    };
    Verdict::new(same_label && same_text && same_json, rule, || {
        format!("{content_type:?} {body:?}: {label:?} {decoded:?} {json:?}, requests {out}")
    })
}
