//! The request head, byte for byte as it goes out.
//!
//! Some sites look at the case and the order of fields, so they leave as the session prepared
//! them, `Host` first. What is decided here is what only the route can know: origin or absolute
//! form, the fields that are for the proxy alone, and the framing, which has to agree with the
//! body whatever the user wrote into `Content-Length`.

use super::{Outgoing, OutgoingBody};
use crate::error::{Error, ErrorKind};
use crate::proxy::{ProxyUrl, Route};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use http::Method;
use std::io::Write as _;
use url::Url;

/// Writes the head of a request to the target; `forwarded` is the form for a proxy that fetches.
pub(super) fn write_head(
    out: &mut Vec<u8>,
    outgoing: &Outgoing<'_>,
    route: &Route,
    forwarded: bool,
) -> Result<(), Error> {
    let credentials = route.proxy.as_deref().and_then(ProxyUrl::credentials);
    // Never to an origin; and what the proxy's own URL says goes before.
    write_start(out, outgoing, forwarded, forwarded && credentials.is_none())?;
    if forwarded {
        write_proxy_fields(out, route)?;
    }
    out.extend_from_slice(b"\r\n");
    Ok(())
}

/// Writes the same head without what is for the proxy alone, to be kept.
pub(super) fn write_kept_head(
    out: &mut Vec<u8>,
    outgoing: &Outgoing<'_>,
    forwarded: bool,
) -> Result<(), Error> {
    write_start(out, outgoing, forwarded, false)?;
    out.extend_from_slice(b"\r\n");
    Ok(())
}

/// Writes the request line and the fields of the request; `proxy_auth` is whether credentials for a
/// proxy among them go out.
fn write_start(
    out: &mut Vec<u8>,
    outgoing: &Outgoing<'_>,
    forwarded: bool,
    proxy_auth: bool,
) -> Result<(), Error> {
    let url = outgoing.url;
    out.extend_from_slice(outgoing.method.as_str().as_bytes());
    out.push(b' ');
    if forwarded {
        out.extend_from_slice(url.scheme().as_bytes());
        out.extend_from_slice(b"://");
        write_authority(out, url);
    }
    out.extend_from_slice(url.path().as_bytes());
    if let Some(query) = url.query() {
        out.push(b'?');
        out.extend_from_slice(query.as_bytes());
    }
    out.extend_from_slice(b" HTTP/1.1\r\n");

    if outgoing.headers.get("host").is_none() {
        out.extend_from_slice(b"Host: ");
        write_authority(out, url);
        out.extend_from_slice(b"\r\n");
    }
    let mut framed = false;
    for (name, value) in outgoing.headers.iter() {
        if name.eq_ignore_ascii_case("proxy-authorization") {
            if !proxy_auth {
                continue;
            }
        } else if name.eq_ignore_ascii_case("content-length")
            || name.eq_ignore_ascii_case("transfer-encoding")
        {
            if !framed {
                framed = write_framing(out, outgoing, Some(name));
            }
            continue;
        }
        write_field(out, name, value)?;
    }
    if !framed {
        write_framing(out, outgoing, None);
    }
    Ok(())
}

/// Writes what only the proxy may see: the extra fields of the route and the credentials.
pub(super) fn write_proxy_fields(out: &mut Vec<u8>, route: &Route) -> Result<(), Error> {
    if let Some((user, password)) = route.proxy.as_deref().and_then(ProxyUrl::credentials) {
        let pair = [user, b":", password].concat();
        // An encoding of base64 is ASCII, and writing to a vector does not fail.
        let _ = write!(out, "Proxy-Authorization: Basic {}\r\n", BASE64_STANDARD.encode(pair));
    }
    for (name, value) in route.proxy_headers.iter() {
        write_field(out, name, value.as_bytes())?;
    }
    Ok(())
}

/// `host` or `host:port`, without the port where it is the default of the scheme.
pub(super) fn write_authority(out: &mut Vec<u8>, url: &Url) {
    out.extend_from_slice(url.host_str().unwrap_or_default().as_bytes());
    if let Some(port) = url.port() {
        let _ = write!(out, ":{port}");
    }
}

/// A field on its line; what would break out of the line is refused.
pub(super) fn write_field(out: &mut Vec<u8>, name: &str, value: &[u8]) -> Result<(), Error> {
    let breaks = |byte: &u8| matches!(byte, b'\r' | b'\n' | 0);
    if name.is_empty() || name.bytes().any(|byte| breaks(&byte)) || value.iter().any(breaks) {
        return Err(Error::local(
            ErrorKind::InvalidHeader,
            format!("the header {name:?} cannot be sent: its value must not hold a line break"),
        ));
    }
    out.extend_from_slice(name.as_bytes());
    out.extend_from_slice(b": ");
    out.extend_from_slice(value);
    out.extend_from_slice(b"\r\n");
    Ok(())
}

/// Writes the one framing field there has to be, in the case the user gave it where he did.
fn write_framing(out: &mut Vec<u8>, outgoing: &Outgoing<'_>, given: Option<&str>) -> bool {
    let length = match &outgoing.body {
        // As requests: a method that may carry a body says that it carries none.
        OutgoingBody::Empty => match *outgoing.method {
            Method::GET | Method::HEAD => return true,
            _ => Some(0),
        },
        OutgoingBody::Bytes(bytes) => Some(bytes.len() as u64),
        OutgoingBody::Reader(_, length) => *length,
    };
    let wanted = if length.is_some() { "Content-Length" } else { "Transfer-Encoding" };
    let name = given.filter(|given| given.eq_ignore_ascii_case(wanted)).unwrap_or(wanted);
    let _ = match length {
        Some(length) => write!(out, "{name}: {length}\r\n"),
        None => write!(out, "{name}: chunked\r\n"),
    };
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::Headers;

    fn head<'a>(method: &'a Method, url: &str, body: OutgoingBody<'a>, forwarded: bool) -> String {
        // As long-lived as the caller's body, whose lifetime all fields share.
        let url: &'static Url = Box::leak(Box::new(Url::parse(url).unwrap()));
        let headers: &'static Headers = Box::leak(Box::default());
        let mut outgoing = Outgoing::new(method, url, headers);
        outgoing.body = body;
        let mut out = Vec::new();
        write_head(&mut out, &outgoing, &Route::direct(), forwarded).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn targets_and_hosts() {
        let get = |url, forwarded| head(&Method::GET, url, OutgoingBody::Empty, forwarded);
        for (url, forwarded, wanted) in [
            ("http://a.test", false, "GET / HTTP/1.1\r\nHost: a.test\r\n\r\n"),
            ("http://A.test:80/x?y=1#z", false, "GET /x?y=1 HTTP/1.1\r\nHost: a.test\r\n\r\n"),
            ("http://a.test:81/?", false, "GET /? HTTP/1.1\r\nHost: a.test:81\r\n\r\n"),
            ("http://[::1]:8080/x", false, "GET /x HTTP/1.1\r\nHost: [::1]:8080\r\n\r\n"),
            ("http://a.test/x", true, "GET http://a.test/x HTTP/1.1\r\nHost: a.test\r\n\r\n"),
            (
                "http://u:p@[::1]:81/x#f",
                true,
                "GET http://[::1]:81/x HTTP/1.1\r\nHost: [::1]:81\r\n\r\n",
            ),
        ] {
            assert_eq!(get(url, forwarded), wanted, "{url}");
        }
    }

    #[test]
    fn framing_agrees_with_the_body() {
        fn framing<'a>(method: &'a Method, body: OutgoingBody<'a>) -> String {
            let head = head(method, "http://a.test/", body, false);
            head.split("\r\n").nth(2).unwrap().to_owned()
        }
        assert_eq!(framing(&Method::GET, OutgoingBody::Empty), "");
        assert_eq!(framing(&Method::POST, OutgoingBody::Empty), "Content-Length: 0");
        assert_eq!(framing(&Method::GET, OutgoingBody::Bytes(b"abc")), "Content-Length: 3");
        let (mut one, mut other) = (std::io::empty(), std::io::empty());
        let known = OutgoingBody::Reader(&mut one, Some(7));
        assert_eq!(framing(&Method::PUT, known), "Content-Length: 7");
        let unknown = OutgoingBody::Reader(&mut other, None);
        assert_eq!(framing(&Method::PUT, unknown), "Transfer-Encoding: chunked");
    }

    #[test]
    fn a_value_cannot_break_out_of_its_line() {
        for value in [&b"a\r\nX: y"[..], b"a\n", b"\0"] {
            let error = write_field(&mut Vec::new(), "X", value).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidHeader);
        }
        assert!(write_field(&mut Vec::new(), "X\r\nY", b"").is_err());
    }
}
