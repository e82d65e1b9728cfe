//! A request as it stood on the wire.
//!
//! Nothing is tidied: the order, the case and the repetitions of headers are what many tests are
//! about. Bytes outside ASCII appear as the characters of the same number (latin-1), so nothing
//! is lost, and [`Received::head`] keeps the bytes themselves.

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Instant;

use super::channel::Framing;

/// One request that a server of the lab has read.
#[non_exhaustive]
#[derive(Clone)]
pub struct Received {
    /// The method.
    pub method: String,
    /// The target of the request line: `/path?query`, `http://host/path` or `host:port`.
    pub target: String,
    /// The path of the target, without query; empty for CONNECT.
    pub path: String,
    /// The query of the target, without its question mark.
    pub query: Option<String>,
    /// The version of the request line: `HTTP/1.1`.
    pub version: String,
    /// Name and value of each header line, in order, in the case in which they came.
    pub headers: Vec<(String, String)>,
    /// The request line and the headers, byte for byte, with the blank line.
    pub head: Arc<[u8]>,
    /// The body with its chunking undone; empty where the handler ran before it was read.
    pub body: Arc<[u8]>,
    /// The number of the connection at this server, from 1.
    pub connection: u64,
    /// The number of the request on its connection, from 1.
    pub request: u64,
    /// Where the connection came from.
    pub peer: SocketAddr,
    /// When the head was complete.
    pub arrived: Instant,
    /// Whether it came over TLS.
    pub tls: bool,
    /// The name that the client asked for in the TLS handshake.
    pub sni: Option<String>,
    /// Whether the TLS handshake took up an earlier session.
    pub resumed: bool,
    /// The certificate that the client has shown, in binary form.
    pub client_certificate: Option<Arc<[u8]>>,
}

impl Received {
    /// Parses a head; `None` when it has no request line of three words.
    pub(super) fn parse(head: &[u8], peer: SocketAddr, arrived: Instant) -> Option<Self> {
        let text = latin1(head);
        let mut lines = text.split('\n').map(|line| line.strip_suffix('\r').unwrap_or(line));
        let line = lines.next()?;
        let (method, rest) = line.split_once(' ')?;
        // The target may hold blanks that should have been encoded; the version holds none.
        let (target, version) = rest.rsplit_once(' ')?;
        if method.is_empty() || target.is_empty() || !version.starts_with("HTTP/") {
            return None;
        }
        let headers = lines
            .take_while(|line| !line.is_empty())
            .map(|line| match line.split_once(':') {
                Some((name, value)) => {
                    (name.to_owned(), value.trim_matches([' ', '\t']).to_owned())
                }
                None => (line.to_owned(), String::new()),
            })
            .collect();
        let (path, query) = path_and_query(method, target);
        Some(Self {
            method: method.to_owned(),
            target: target.to_owned(),
            path: path.to_owned(),
            query: query.map(str::to_owned),
            version: version.to_owned(),
            headers,
            head: head.into(),
            body: Arc::from([]),
            connection: 0,
            request: 0,
            peer,
            arrived,
            tls: false,
            sni: None,
            resumed: false,
            client_certificate: None,
        })
    }

    /// The first header of this name, whatever its case.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers_named(name).next()
    }

    /// Every header of this name, whatever its case, in order.
    pub fn headers_named<'a>(&'a self, name: &str) -> impl Iterator<Item = &'a str> {
        self.headers
            .iter()
            .filter(move |(key, _)| key.eq_ignore_ascii_case(name))
            .map(|(_, value)| value.as_str())
    }

    /// The host and port that the request is for: from the target where it names one, else from
    /// the `Host` header.
    pub fn authority(&self) -> &str {
        if self.method == "CONNECT" {
            return &self.target;
        }
        match split_absolute(&self.target) {
            Some((_, rest)) => {
                let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
                let authority = rest.get(..end).unwrap_or_default();
                authority.rsplit_once('@').map_or(authority, |(_, host)| host)
            }
            None => self.header("Host").unwrap_or_default(),
        }
    }

    /// The host of [`authority`](Self::authority), without brackets.
    pub fn host(&self) -> &str {
        split_authority(self.authority()).0
    }

    /// The port of [`authority`](Self::authority).
    pub fn port(&self) -> Option<u16> {
        split_authority(self.authority()).1
    }

    /// How the body is framed; `None` where there is none.
    pub(super) fn framing(&self) -> Option<Framing> {
        if self.headers_named("Transfer-Encoding").any(|value| has_token(value, "chunked")) {
            return Some(Framing::Chunked);
        }
        match self.header("Content-Length")?.parse().ok()? {
            0 => None,
            length => Some(Framing::Length(length)),
        }
    }

    /// Whether the connection stays open after the response.
    pub(super) fn keeps_alive(&self) -> bool {
        let mentions = |token| {
            ["Connection", "Proxy-Connection"]
                .iter()
                .flat_map(|name| self.headers_named(name))
                .any(|value| has_token(value, token))
        };
        match self.version.as_str() {
            "HTTP/1.0" => mentions("keep-alive"),
            _ => !mentions("close"),
        }
    }
}

/// Values of headers that carry credentials or cookies are left out, and so is the userinfo of
/// an absolute target.
impl fmt::Debug for Received {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const SECRET: [&str; 3] = ["authorization", "proxy-authorization", "cookie"];
        let headers: Vec<(&str, &str)> = self
            .headers
            .iter()
            .map(|(name, value)| {
                let secret = SECRET.iter().any(|secret| name.eq_ignore_ascii_case(secret));
                (name.as_str(), if secret { "<redacted>" } else { value.as_str() })
            })
            .collect();
        let target = match split_absolute(&self.target) {
            Some((scheme, rest)) => format!(
                "{scheme}://{}{}",
                self.authority(),
                rest.find(['/', '?', '#']).and_then(|at| rest.get(at..)).unwrap_or_default()
            ),
            None => self.target.clone(),
        };
        f.debug_struct("Received")
            .field("method", &self.method)
            .field("target", &target)
            .field("version", &self.version)
            .field("headers", &headers)
            .field("body", &format_args!("{} bytes", self.body.len()))
            .field("connection", &self.connection)
            .field("request", &self.request)
            .field("peer", &self.peer)
            .field("sni", &self.sni)
            .finish_non_exhaustive()
    }
}

/// Every byte as the character of its number.
pub(super) fn latin1(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| char::from(*byte)).collect()
}

pub(super) fn has_token(value: &str, token: &str) -> bool {
    value.split(',').any(|part| part.trim().eq_ignore_ascii_case(token))
}

/// Host without brackets, and port.
pub(super) fn split_authority(authority: &str) -> (&str, Option<u16>) {
    if let Some(rest) = authority.strip_prefix('[') {
        let (host, rest) = rest.split_once(']').unwrap_or((rest, ""));
        return (host, rest.strip_prefix(':').and_then(|port| port.parse().ok()));
    }
    match authority.split_once(':') {
        Some((host, port)) => (host, port.parse().ok()),
        None => (authority, None),
    }
}

/// Scheme and rest of an absolute target; a URL within a path or a query makes none.
fn split_absolute(target: &str) -> Option<(&str, &str)> {
    target.split_once("://").filter(|(scheme, _)| !scheme.contains(['/', '?']))
}

/// What stands in an absolute target after its authority, at least `/`.
pub(super) fn origin_form(target: &str) -> String {
    let Some((_, rest)) = split_absolute(target) else { return target.to_owned() };
    let rest = rest.find(['/', '?', '#']).and_then(|at| rest.get(at..)).unwrap_or_default();
    if rest.starts_with('/') { rest.to_owned() } else { format!("/{rest}") }
}

fn path_and_query<'a>(method: &str, target: &'a str) -> (&'a str, Option<&'a str>) {
    if method == "CONNECT" {
        return ("", None);
    }
    let rest = match split_absolute(target) {
        Some((_, rest)) => rest.find(['/', '?', '#']).and_then(|at| rest.get(at..)).unwrap_or("/"),
        None => target,
    };
    match rest.split_once('?') {
        Some((path, query)) => (path, Some(query)),
        None => (rest, None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::{Clock, SystemClock};

    fn parse(head: &[u8]) -> Option<Received> {
        Received::parse(head, SocketAddr::from(([127, 0, 0, 1], 9)), SystemClock.now())
    }

    #[test]
    fn targets_in_all_forms() {
        for (line, path, query, host, port, origin) in [
            ("GET /a?b=c HTTP/1.1", "/a", Some("b=c"), "h.test", Some(81), "/a?b=c"),
            ("GET http://u:p@x.test:82/a HTTP/1.1", "/a", None, "x.test", Some(82), "/a"),
            ("GET http://x.test?q HTTP/1.1", "", Some("q"), "x.test", None, "/?q"),
            ("GET http://x.test HTTP/1.1", "/", None, "x.test", None, "/"),
            ("CONNECT [::1]:443 HTTP/1.1", "", None, "::1", Some(443), "[::1]:443"),
            (
                "GET /a?u=http://x/ HTTP/1.1",
                "/a",
                Some("u=http://x/"),
                "h.test",
                Some(81),
                "/a?u=http://x/",
            ),
            ("GET /http://x/y HTTP/1.1", "/http://x/y", None, "h.test", Some(81), "/http://x/y"),
            (
                "GET http://x.test/?http://y/ HTTP/1.1",
                "/",
                Some("http://y/"),
                "x.test",
                None,
                "/?http://y/",
            ),
            ("GET /with blank HTTP/1.1", "/with blank", None, "h.test", Some(81), "/with blank"),
        ] {
            let got = parse(format!("{line}\r\nHost: h.test:81\r\n\r\n").as_bytes()).unwrap();
            assert_eq!((got.path.as_str(), got.query.as_deref()), (path, query), "{line}");
            assert_eq!((got.host(), got.port()), (host, port), "{line}");
            assert_eq!(origin_form(&got.target), origin, "{line}");
        }
        for junk in ["", "GET /", "GET  HTTP/1.1", "\u{16}\u{3}\u{1}"] {
            assert!(parse(format!("{junk}\r\n\r\n").as_bytes()).is_none(), "{junk:?}");
        }
    }

    #[test]
    fn headers_keep_order_case_repetition_and_bytes() {
        let got = parse(b"GET / HTTP/1.1\r\nx-B: 1\r\nX-a:2\r\nX-b: caf\xe9 \r\n\r\n").unwrap();
        assert_eq!(
            got.headers,
            [("x-B", "1"), ("X-a", "2"), ("X-b", "caf\u{e9}")]
                .map(|(name, value)| (name.to_owned(), value.to_owned()))
        );
        assert_eq!(got.headers_named("X-B").collect::<Vec<_>>(), ["1", "caf\u{e9}"]);
    }

    #[test]
    fn no_credential_is_printed() {
        let got = parse(
            b"GET http://user:hunter2@x.test/ HTTP/1.1\r\nProxy-Authorization: Basic aHVudGVyMg==\r\n\
              Cookie: hunter2\r\n\r\n",
        )
        .unwrap();
        let shown = format!("{got:?}");
        assert!(shown.contains("http://x.test/"), "{shown}");
        assert!(!shown.contains("hunter2") && !shown.contains("aHVudGVyMg"), "{shown}");
    }

    #[test]
    fn keeping_the_connection() {
        for (version, line, wanted) in [
            ("HTTP/1.1", "A: b", true),
            ("HTTP/1.1", "Connection: Close", false),
            ("HTTP/1.1", "connection: TE, close", false),
            ("HTTP/1.0", "A: b", false),
            ("HTTP/1.0", "Connection: keep-alive", true),
            ("HTTP/1.0", "Proxy-Connection: Keep-Alive", true),
        ] {
            let got = parse(format!("GET / {version}\r\n{line}\r\n\r\n").as_bytes()).unwrap();
            assert_eq!(got.keeps_alive(), wanted, "{version} {line}");
        }
    }
}
