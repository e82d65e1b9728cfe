//! One line of the input, parsed into a request.
//!
//! A line is a URL, or a JSON object for everything that a URL cannot say. Objects are read
//! strictly: an unknown field is an error, since a misspelt `"methd"` that is ignored sends ten
//! thousand wrong requests. What belongs to the user alone goes under `meta` and comes back in the
//! record as it was.

use super::Key;
use super::redact;
use crate::error::{Error, ErrorKind};
use crate::message::{Body, Request};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::{HeaderName, HeaderValue, Method};
use serde::de::{Error as _, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

/// Where in the input an item stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// The file as it was named, `standard input` or `argument`.
    pub source: Arc<str>,
    /// The line, or the number of the argument, from 1.
    pub line: u64,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if &*self.source == super::source::ARGUMENT {
            write!(f, "{} {}", self.source, self.line)
        } else {
            write!(f, "{}:{}", self.source, self.line)
        }
    }
}

/// A JSON value of the user's, carried from the input into the record byte for byte.
#[derive(Debug, Clone)]
pub struct Meta(Box<RawValue>);

impl Meta {
    /// The JSON text.
    pub fn as_str(&self) -> &str {
        self.0.get()
    }
}

impl FromStr for Meta {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        serde_json::from_str(text).map(Self).map_err(|error| {
            Error::local(ErrorKind::InvalidJson, format!("meta is not JSON: {error}"))
        })
    }
}

impl PartialEq for Meta {
    fn eq(&self, other: &Self) -> bool {
        self.as_str() == other.as_str()
    }
}

impl Serialize for Meta {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Meta {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Box::<RawValue>::deserialize(deserializer).map(Self)
    }
}

/// One request of the input.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Item {
    /// Where it stands.
    pub place: Place,
    /// What it is recognised by.
    pub key: Key,
    /// The request; its `id` is the one that the line brought.
    pub request: Request,
    /// What the line brought under `meta`.
    pub meta: Option<Meta>,
}

impl Item {
    /// The id that stands in the record: the one that the line brought, or else the key.
    pub fn id(&self) -> String {
        self.request.id.clone().unwrap_or_else(|| self.key.to_string())
    }

    /// Parses one line; `None` for a blank line and for a comment, which starts with `#`.
    ///
    /// # Errors
    /// `InvalidJson`, `InvalidHeader` or `Config`, with the place and what to do about it. Whether
    /// the URL can be used is not looked at here.
    pub fn parse(line: &str, place: Place) -> Result<Option<Self>, Error> {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            return Ok(None);
        }
        if line.starts_with('{') {
            return match object(line) {
                Ok((request, meta)) => Ok(Some(Self::new(request, place).meta(meta))),
                Err(error) => Err(at(&place, &error)),
            };
        }
        Ok(Some(Self::new(Request::new(Method::GET, line), place)))
    }

    /// This request, recognised by its id, or else by method, URL and body.
    pub fn new(request: Request, place: Place) -> Self {
        let key = match (&request.id, &request.body) {
            (Some(id), _) => Key::of_id(id),
            (None, Body::Bytes(body)) => Key::of_request(&request.method, &request.url, body),
            (None, _) => Key::of_request(&request.method, &request.url, b""),
        };
        Self { place, key, request, meta: None }
    }

    /// What comes back in the record as it is.
    #[must_use]
    pub fn meta(mut self, meta: impl Into<Option<Meta>>) -> Self {
        self.meta = meta.into();
        self
    }
}

/// `error` about the URL of an item, with its place in front.
pub(super) fn at_url(place: &Place, url: &str, error: &Error) -> Error {
    let shown = redact::shown(url);
    if url.is_empty() || shown == url {
        return at(place, error);
    }
    // Whoever wrote the sentence has redacted what it knows as a password; this is all of it.
    let text = error.message().replace(url, &shown);
    at(place, &Error::new(error.kind(), error.phase(), error.fault(), text))
}

/// `error` with its place in front and the remedy behind.
pub(super) fn at(place: &Place, error: &Error) -> Error {
    Error::new(
        error.kind(),
        error.phase(),
        error.fault(),
        format!("{place}: {}; correct or remove this line", error.message().trim_end_matches('.')),
    )
}

/// The fields of an object, as they are written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Fields {
    url: String,
    #[serde(default)]
    method: Option<String>,
    #[serde(default)]
    headers: HeaderList,
    #[serde(default)]
    body: Option<String>,
    #[serde(default)]
    body_base64: Option<String>,
    #[serde(default, deserialize_with = "present")]
    json: Option<Box<RawValue>>,
    #[serde(default)]
    id: Option<Id>,
    #[serde(default)]
    meta: Option<Meta>,
}

/// `"json": null` is a body (`null`), a missing `json` is none.
fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Box<RawValue>>, D::Error> {
    Box::<RawValue>::deserialize(deserializer).map(Some)
}

fn object(line: &str) -> Result<(Request, Option<Meta>), Error> {
    let fields: Fields = serde_json::from_str(line).map_err(|error| {
        // serde_json counts lines within the text that it was given, which is always the first.
        let text = error.to_string().replace(" at line 1 column ", " at column ");
        Error::local(ErrorKind::InvalidJson, format!("not a request as JSON: {text}"))
    })?;
    let method = match &fields.method {
        None => Method::GET,
        Some(name) => {
            Method::from_bytes(name.to_ascii_uppercase().as_bytes()).map_err(|_invalid| {
                Error::config(format!("method {name:?} is not a token such as GET or POST"))
            })?
        }
    };
    let mut request = Request::new(method, fields.url.trim());
    if request.url.is_empty() {
        return Err(Error::local(ErrorKind::InvalidUrl, "url is empty"));
    }
    for (name, value) in fields.headers.0 {
        request.headers.push(header(name, value)?);
    }
    let (body, media_type) = body(fields.body, fields.body_base64, fields.json)?;
    request.body = body;
    if let Some(media_type) = media_type {
        let set = |(name, _): &(String, _)| name.eq_ignore_ascii_case("content-type");
        if !request.headers.iter().any(set) {
            let value = Some(media_type.as_bytes().to_vec());
            request.headers.push(("Content-Type".to_owned(), value));
        }
    }
    request.id = fields.id.map(|id| id.0);
    Ok((request, fields.meta))
}

fn header(name: String, value: Option<String>) -> Result<(String, Option<Vec<u8>>), Error> {
    if HeaderName::from_bytes(name.as_bytes()).is_err() {
        let text = format!("header name {name:?} is not a token such as Accept-Language");
        return Err(Error::local(ErrorKind::InvalidHeader, text));
    }
    // The value may be a credential, so it is not shown.
    if value.as_ref().is_some_and(|value| HeaderValue::from_bytes(value.as_bytes()).is_err()) {
        let text = format!("the value of header {name} holds a line break or a control character");
        return Err(Error::local(ErrorKind::InvalidHeader, text));
    }
    Ok((name, value.map(String::into_bytes)))
}

fn body(
    text: Option<String>,
    base64: Option<String>,
    json: Option<Box<RawValue>>,
) -> Result<(Body, Option<&'static str>), Error> {
    match (text, base64, json) {
        (None, None, None) => Ok((Body::Empty, None)),
        (Some(text), None, None) => Ok((Body::Bytes(text.into_bytes().into()), None)),
        (None, Some(base64), None) => {
            let bytes = STANDARD.decode(base64).map_err(|error| {
                let text = format!("body_base64 is not base64 with padding: {error}");
                Error::local(ErrorKind::Config, text)
            })?;
            Ok((Body::Bytes(bytes.into()), None))
        }
        (None, None, Some(json)) => {
            let bytes = json.get().as_bytes().to_vec();
            Ok((Body::Bytes(bytes.into()), Some("application/json")))
        }
        _ => Err(Error::config("only one of body, body_base64 and json can be given")),
    }
}

/// A name of the user's; a number is taken as its digits.
struct Id(String);

impl<'de> Deserialize<'de> for Id {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Names;
        impl Visitor<'_> for Names {
            type Value = Id;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string or an integer as id")
            }
            fn visit_str<E>(self, text: &str) -> Result<Id, E> {
                Ok(Id(text.to_owned()))
            }
            fn visit_u64<E>(self, number: u64) -> Result<Id, E> {
                Ok(Id(number.to_string()))
            }
            fn visit_i64<E>(self, number: i64) -> Result<Id, E> {
                Ok(Id(number.to_string()))
            }
        }
        deserializer.deserialize_any(Names)
    }
}

/// Fields in the order of the text, which a map type would lose; `null` removes one.
#[derive(Default)]
struct HeaderList(Vec<(String, Option<String>)>);

impl<'de> Deserialize<'de> for HeaderList {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct InOrder;
        impl<'de> Visitor<'de> for InOrder {
            type Value = HeaderList;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("headers as an object of strings or a list of [name, value]")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<HeaderList, A::Error> {
                let mut list: Vec<(String, Option<String>)> = Vec::new();
                while let Some((name, value)) = map.next_entry::<String, Option<String>>()? {
                    if list.iter().any(|(have, _)| have.eq_ignore_ascii_case(&name)) {
                        let text = format!("header {name} twice; use a list of [name, value]");
                        return Err(A::Error::custom(text));
                    }
                    list.push((name, value));
                }
                Ok(HeaderList(list))
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<HeaderList, A::Error> {
                let mut pairs = Vec::new();
                while let Some(pair) = list.next_element()? {
                    pairs.push(pair);
                }
                Ok(HeaderList(pairs))
            }
        }
        deserializer.deserialize_any(InOrder)
    }
}

/// The URL of an item as it may be shown.
pub(super) fn shown_url(request: &Request) -> String {
    redact::shown(&request.url).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Option<Item>, Error> {
        Item::parse(line, Place { source: "list".into(), line: 7 })
    }

    fn item(line: &str) -> Item {
        parse(line).unwrap().unwrap()
    }

    #[test]
    fn a_plain_line_is_a_get() {
        let item = item("\t http://h/a#b \r");
        assert_eq!(item.request.url, "http://h/a#b");
        assert_eq!(item.request.method, Method::GET);
        assert_eq!(item.id(), Key::of_request(&Method::GET, "http://h/a#b", b"").to_string());
        for nothing in ["", "   ", "# http://h/", "  # x"] {
            assert!(parse(nothing).unwrap().is_none(), "{nothing:?}");
        }
    }

    #[test]
    fn an_object_says_everything_else() {
        let item = item(
            r#"{"id":7,"url":" http://h/ ","method":"post","meta":{"b":1,"a":1.0e99,"b":2},
                "headers":{"X-Z":"1","x-A":null,"Accept":"ü"},"body":"a=b"}"#,
        );
        assert_eq!(item.request.id.as_deref(), Some("7"));
        assert_eq!((item.id(), item.key), ("7".to_owned(), Key::of_id("7")));
        assert_eq!(item.request.url, "http://h/");
        assert_eq!(item.request.method, Method::POST);
        assert_eq!(item.meta.unwrap().as_str(), r#"{"b":1,"a":1.0e99,"b":2}"#);
        let headers = [("X-Z", Some("1")), ("x-A", None), ("Accept", Some("ü"))];
        let headers = headers
            .map(|(name, value)| (name.to_owned(), value.map(|value| value.as_bytes().to_vec())));
        assert_eq!(item.request.headers, headers);
        assert!(matches!(&item.request.body, Body::Bytes(body) if body == "a=b"));
    }

    #[test]
    fn the_three_bodies() {
        for (line, body, media_type) in [
            (r#"{"url":"u","body_base64":"AP8="}"#, b"\0\xff".as_slice(), None),
            (r#"{"url":"u","body":""}"#, b"", None),
            (
                r#"{"url":"u","json":{"b": 1,"a":[]}}"#,
                br#"{"b": 1,"a":[]}"#,
                Some("application/json"),
            ),
            (r#"{"url":"u","json":null}"#, b"null", Some("application/json")),
            (r#"{"url":"u","json":1,"headers":[["content-type","x/y"]]}"#, b"1", Some("x/y")),
        ] {
            let item = item(line);
            assert!(matches!(&item.request.body, Body::Bytes(have) if have == body), "{line}");
            let types: Vec<_> =
                item.request.headers.iter().map(|(_, value)| value.clone()).collect();
            let wanted: Vec<_> =
                media_type.map(|text| Some(text.as_bytes().to_vec())).into_iter().collect();
            assert_eq!(types, wanted, "{line}");
        }
        assert!(item(r#"{"url":"u"}"#).request.body.is_empty());
    }

    #[test]
    fn pairs_keep_a_name_that_is_given_twice() {
        let item = item(r#"{"url":"u","headers":[["A","1"],["a","2"]]}"#);
        assert_eq!(item.request.headers.len(), 2);
    }

    #[test]
    fn what_is_wrong_is_named_with_its_place() {
        for (line, message) in [
            (
                r#"{"url":"u","methd":"GET"}"#,
                "list:7: not a request as JSON: unknown field `methd`, expected one of `url`, \
                 `method`, `headers`, `body`, `body_base64`, `json`, `id`, `meta` at column 18; \
                 correct or remove this line",
            ),
            (
                r#"{"id":1}"#,
                "list:7: not a request as JSON: missing field `url` at column 8; correct or remove this line",
            ),
            (r#"{"url":" "}"#, "list:7: url is empty; correct or remove this line"),
            (
                r#"{"url":"u","method":"G T"}"#,
                "list:7: method \"G T\" is not a token such as GET or POST; correct or remove this line",
            ),
            (
                r#"{"url":"u","headers":{"a b":"c"}}"#,
                "list:7: header name \"a b\" is not a token such as Accept-Language; correct or remove this line",
            ),
            (
                r#"{"url":"u","headers":{"a":"secret\r\nb: c"}}"#,
                "list:7: the value of header a holds a line break or a control character; correct or remove this line",
            ),
            (
                r#"{"url":"u","headers":{"a":"1","A":"2"}}"#,
                "list:7: not a request as JSON: header A twice; use a list of [name, value] at column 38; correct or remove this line",
            ),
            (
                r#"{"url":"u","body":"a","json":1}"#,
                "list:7: only one of body, body_base64 and json can be given; correct or remove this line",
            ),
        ] {
            assert_eq!(parse(line).unwrap_err().to_string(), message, "{line}");
        }
        for line in [
            r#"{"url":"u","id":1.5}"#,
            r#"{"url":"u","id":[]}"#,
            r#"{"url":"u","headers":3}"#,
            r#"{"url":"u","headers":{"a":3}}"#,
            r#"{"url":"u","body_base64":"?"}"#,
            r#"{"url":"u""#,
            r#"{"url":"u"} x"#,
        ] {
            let error = parse(line).unwrap_err().to_string();
            assert!(error.starts_with("list:7: "), "{error}");
        }
    }
}
