//! What the engine does, told while it does it.
//!
//! A response and an error say afterwards how an attempt went. Whoever wants to know why one proxy
//! refuses, which address was dialled, or what the head looked like that a server did not like, has
//! to see the steps themselves. They are told to a closure of the recipe
//! ([`SessionBuilder::trace`](crate::session::SessionBuilder::trace)) as [`Event`]s: what
//! `http.client` prints with `debuglevel`, and `curl` with `-v`. An event prints itself in curl's
//! form, and a credential in a head cannot get out by accident: the head shows stars in its place,
//! and only [`TracedHead::exposed`] has the bytes.
//!
//! Without a closure nothing is collected, and a step costs the look whether there is one.

use http::Method;
use std::borrow::Cow;
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

/// A step of an attempt.
///
/// Printed, it is one line that begins with `* `, or a head whose lines begin with `> ` and `< `,
/// each with its line break.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub enum Event<'a> {
    /// An attempt begins.
    Attempt {
        /// Its method.
        method: &'a Method,
        /// Its URL, without credentials.
        url: &'a str,
        /// The proxy, redacted; `None` is direct.
        proxy: Option<&'a str>,
    },
    /// A kept-alive connection carries it.
    Reused {
        /// Own address.
        local: Option<SocketAddr>,
        /// The other end: the target, or the proxy.
        peer: Option<SocketAddr>,
        /// TLS version and cipher suite, where there is TLS.
        tls: Option<&'a str>,
    },
    /// A name was looked up.
    Resolved {
        /// The name: the target's or the proxy's.
        host: &'a str,
        /// What it stands for, in the order of the resolver.
        addresses: &'a [IpAddr],
        /// How long it took.
        took: Duration,
    },
    /// A socket is connected.
    Connected {
        /// The target, or the proxy.
        peer: Peer,
        /// Own address.
        local: Option<SocketAddr>,
        /// The other end.
        address: Option<SocketAddr>,
        /// How long it took.
        took: Duration,
    },
    /// A SOCKS proxy has connected to the target.
    Socks {
        /// What it was asked for: `host:port`.
        destination: &'a str,
        /// How long it took.
        took: Duration,
    },
    /// TLS is agreed on.
    Secured {
        /// With whom.
        peer: Peer,
        /// The name that the certificate was checked for.
        host: &'a str,
        /// Version and cipher suite.
        tls: &'a str,
        /// How long it took.
        took: Duration,
    },
    /// A CONNECT is handed to the proxy.
    Connect(TracedHead<'a>),
    /// The head of the proxy's reply to it, interim ones (1xx) included.
    ConnectReply(TracedHead<'a>),
    /// The head of the request is handed to the connection: for the target, or for the proxy that is
    /// to fetch it.
    Sent(TracedHead<'a>),
    /// A response head has come, interim ones (1xx) included.
    Received(TracedHead<'a>),
}

/// Who is spoken to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Peer {
    /// The server behind the URL, directly or through a tunnel.
    Target,
    /// The proxy.
    Proxy,
}

impl fmt::Display for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Target => "the target",
            Self::Proxy => "the proxy",
        })
    }
}

/// A head as it went over the wire; shown without what is secret in it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct TracedHead<'a>(&'a [u8]);

impl<'a> TracedHead<'a> {
    /// The head in these bytes, with its empty line or without.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    /// The bytes as they went over the wire, **with the credentials in them**.
    pub fn exposed(self) -> &'a [u8] {
        self.0
    }

    /// The bytes as they may be written down: the lines of fields that [`lines`](Self::lines) would
    /// hide something of, as those do, and every other byte as it is.
    pub fn redacted(self) -> Vec<u8> {
        let mut out = Vec::with_capacity(self.0.len());
        let mut secret_goes_on = false;
        for (number, line) in self.0.split_inclusive(|byte| *byte == b'\n').enumerate() {
            let text = line.strip_suffix(b"\n").unwrap_or(line);
            let text = text.strip_suffix(b"\r").unwrap_or(text);
            let end = line.get(text.len()..).unwrap_or_default();
            let folded = number > 0 && matches!(text, [b' ' | b'\t', ..]);
            let mut halves = text.splitn(2, |byte| *byte == b':');
            let name = halves.next().filter(|_| number > 0 && !folded).unwrap_or_default();
            let hidden = halves.next().filter(|_| !name.is_empty()).and_then(|value| {
                let (name, value) = (printable(name), printable(value));
                Some(format!("{name}: {}", hide(name.trim_end(), value.trim())?))
            });
            if !folded {
                secret_goes_on = hidden.is_some();
            }
            match hidden {
                Some(hidden) => out.extend_from_slice(hidden.as_bytes()),
                None if folded && secret_goes_on => out.extend_from_slice(b" ***"),
                None => out.extend_from_slice(text),
            }
            out.extend_from_slice(end);
        }
        out
    }

    /// The lines, without their ends and without the empty one, as they may be shown.
    ///
    /// Of the fields that hold credentials (`Authorization`, `Proxy-Authorization`, and those whose
    /// names end in `token`, `secret`, `password` or `api-key`) the value is replaced by `***`,
    /// after a scheme that everybody knows; of cookies it is their values, and of a URL in `Location`
    /// its user and password. Bytes that are not UTF-8
    /// and control characters are escaped.
    pub fn lines(self) -> impl Iterator<Item = String> + 'a {
        let mut secret_goes_on = false;
        let lines = self.0.split(|byte| *byte == b'\n').map(|line| {
            let line = line.strip_suffix(b"\r").unwrap_or(line);
            printable(line)
        });
        lines.enumerate().filter(|(_, line)| !line.is_empty()).map(move |(number, line)| {
            // A folded line belongs to the field before it.
            if number > 0 && line.starts_with([' ', '\t']) {
                return if secret_goes_on { " ***".to_owned() } else { line };
            }
            match line.split_once(':').filter(|_| number > 0) {
                Some((name, value)) => {
                    let hidden = hide(name.trim_end(), value.trim());
                    secret_goes_on = hidden.is_some();
                    hidden.map_or(line.clone(), |hidden| format!("{name}: {hidden}"))
                }
                None => line,
            }
        })
    }
}

impl fmt::Debug for TracedHead<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.lines()).finish()
    }
}

impl fmt::Display for Event<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Attempt { method, url, proxy: None } => writeln!(f, "* {method} {url}"),
            Self::Attempt { method, url, proxy: Some(proxy) } => {
                writeln!(f, "* {method} {url} through {proxy}")
            }
            Self::Reused { local, peer, tls } => {
                let tls = tls.map(|tls| format!(", {tls}")).unwrap_or_default();
                writeln!(f, "* on the kept connection {}{tls}", Ends { local, peer })
            }
            Self::Resolved { host, addresses, took } => {
                let list: Vec<String> = addresses.iter().map(IpAddr::to_string).collect();
                writeln!(f, "* {host} is {} ({})", list.join(", "), Ms(took))
            }
            Self::Connected { peer, local, address, took } => {
                let ends = Ends { local, peer: address };
                writeln!(f, "* connected to {peer}, {ends} ({})", Ms(took))
            }
            Self::Socks { destination, took } => {
                writeln!(f, "* the proxy has connected to {destination} ({})", Ms(took))
            }
            Self::Secured { peer, host, tls, took } => {
                writeln!(f, "* TLS with {peer} {host}: {tls} ({})", Ms(took))
            }
            Self::Connect(head) | Self::Sent(head) => print_head(f, '>', head),
            Self::ConnectReply(head) | Self::Received(head) => print_head(f, '<', head),
        }
    }
}

fn print_head(f: &mut fmt::Formatter<'_>, mark: char, head: TracedHead<'_>) -> fmt::Result {
    for line in head.lines() {
        writeln!(f, "{mark} {line}")?;
    }
    writeln!(f, "{mark}")
}

/// The two ends of a connection.
struct Ends {
    local: Option<SocketAddr>,
    peer: Option<SocketAddr>,
}

impl fmt::Display for Ends {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = |end: Option<SocketAddr>| {
            end.map_or(Cow::Borrowed("an address unknown"), |end| end.to_string().into())
        };
        write!(f, "{} to {}", text(self.local), text(self.peer))
    }
}

/// Milliseconds with their tenths.
struct Ms(Duration);

impl fmt::Display for Ms {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.1} ms", self.0.as_secs_f64() * 1000.0)
    }
}

/// Who is told of the steps of attempts; nobody by default.
#[derive(Clone, Default)]
pub struct Trace(Option<Arc<Listener>>);

type Listener = dyn Fn(&Event<'_>) + Send + Sync;

impl Trace {
    /// This closure, on the thread that makes the attempt, and at once: what it takes, the attempt
    /// takes.
    pub fn new(listener: impl Fn(&Event<'_>) + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(listener)))
    }

    /// Tells of an event, which is put together only where somebody listens.
    pub(super) fn tell<'a>(&self, event: impl FnOnce() -> Event<'a>) {
        if let Some(listener) = &self.0 {
            listener(&event());
        }
    }

    /// Whether somebody listens, for what has to be prepared before an event.
    pub(super) fn listens(&self) -> bool {
        self.0.is_some()
    }
}

impl fmt::Debug for Trace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.listens() { "Trace(on)" } else { "Trace(off)" })
    }
}

/// The value of this field as it may be shown; `None` where nothing of it is secret.
fn hide(name: &str, value: &str) -> Option<String> {
    let name = name.to_ascii_lowercase();
    match &*name {
        "authorization" | "proxy-authorization" => Some(hide_credentials(value)),
        "cookie" => Some(value.split(';').map(hide_pair).collect::<Vec<_>>().join(";")),
        "set-cookie" => Some(match value.split_once(';') {
            Some((pair, attributes)) => format!("{};{attributes}", hide_pair(pair)),
            None => hide_pair(value),
        }),
        "location" | "content-location" | "referer" => hide_userinfo(value),
        _ => is_secret(&name).then(|| "***".to_owned()),
    }
}

/// Whether a field of this name, in lower case, holds what gives access. Servers and gateways have a
/// name of their own for it, so words decide. A mistake hides a value that could be shown, or shows
/// one that could not, and the second is the worse one.
fn is_secret(name: &str) -> bool {
    const WITHIN: [&str; 6] = ["auth", "credential", "passw", "secret", "session", "token"];
    // They ask for credentials, or name something else than access.
    const OPEN: [&str; 7] = [
        "www-authenticate",
        "proxy-authenticate",
        "authentication-info",
        "proxy-authentication-info",
        "idempotency-key",
        "surrogate-key",
        "sec-websocket-key",
    ];
    if OPEN.contains(&name) || name.ends_with("cache-key") {
        return false;
    }
    WITHIN.iter().any(|word| name.contains(word)) || name.ends_with("key")
}

/// `Basic ***`: which scheme it is, is half of every mistake with it.
fn hide_credentials(value: &str) -> String {
    const SCHEMES: [&str; 5] = ["basic", "bearer", "digest", "negotiate", "ntlm"];
    match value.split_once(' ') {
        Some((scheme, _)) if SCHEMES.iter().any(|known| scheme.eq_ignore_ascii_case(known)) => {
            format!("{scheme} ***")
        }
        _ => "***".to_owned(),
    }
}

/// `http://***@host/`; `None` for a URL without user and password.
fn hide_userinfo(value: &str) -> Option<String> {
    let (scheme, rest) = value.split_once("//")?;
    let authority = rest.split(['/', '?', '#']).next()?;
    let (userinfo, _) = authority.rsplit_once('@')?;
    Some(format!("{scheme}//***{}", rest.get(userinfo.len()..)?))
}

/// `name=***`, and nothing at all of what has no name.
fn hide_pair(pair: &str) -> String {
    pair.split_once('=').map_or_else(|| "***".to_owned(), |(name, _)| format!("{name}=***"))
}

fn printable(line: &[u8]) -> String {
    let mut text = String::with_capacity(line.len());
    for chunk in line.utf8_chunks() {
        for letter in chunk.valid().chars() {
            if letter.is_control() && letter != '\t' {
                text.extend(letter.escape_default());
            } else {
                text.push(letter);
            }
        }
        for byte in chunk.invalid() {
            text.push_str(&format!("\\x{byte:02x}"));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn shown(head: &str) -> String {
        Event::Sent(TracedHead::new(head.as_bytes())).to_string()
    }

    #[test]
    fn no_credential_is_shown_and_everything_else_is() {
        for (line, wanted) in [
            ("Accept: */*", "Accept: */*"),
            ("X-Odd:no space", "X-Odd:no space"),
            ("no field at all", "no field at all"),
            ("Authorization: Basic aHVudGVyMg==", "Authorization: Basic ***"),
            ("AUTHORIZATION : bearer hunter2", "AUTHORIZATION : bearer ***"),
            ("Authorization: hunter2", "Authorization: ***"),
            ("Authorization: hunter2 hunter2", "Authorization: ***"),
            ("Proxy-Authorization:Digest response=\"hunter2\"", "Proxy-Authorization: Digest ***"),
            ("Cookie: a=hunter2; b=hunter2=; hunter2", "Cookie: a=***; b=***;***"),
            ("Set-Cookie: id=hunter2; Path=/; HttpOnly", "Set-Cookie: id=***; Path=/; HttpOnly"),
            ("set-cookie: hunter2", "set-cookie: ***"),
            ("X-Auth-Token: hunter2", "X-Auth-Token: ***"),
            ("X-Api-Key: hunter2", "X-Api-Key: ***"),
            ("X-Auth-Key: hunter2", "X-Auth-Key: ***"),
            ("Ocp-Apim-Subscription-Key: hunter2", "Ocp-Apim-Subscription-Key: ***"),
            ("X-Session: hunter2", "X-Session: ***"),
            ("X-Auth: hunter2", "X-Auth: ***"),
            ("X-Amz-Credential-Id: hunter2", "X-Amz-Credential-Id: ***"),
            ("Surrogate-Key: shop", "Surrogate-Key: shop"),
            ("X-Cache-Key: /a", "X-Cache-Key: /a"),
            ("Idempotency-Key: 7", "Idempotency-Key: 7"),
            ("Location: http://me:hunter2@a.test/@?b", "Location: http://***@a.test/@?b"),
            ("Location: /a@b", "Location: /a@b"),
            ("Location: //a.test/a@b", "Location: //a.test/a@b"),
            ("WWW-Authenticate: Basic realm=\"shop\"", "WWW-Authenticate: Basic realm=\"shop\""),
            ("X-Colour: \u{1b}[31mred", "X-Colour: \\u{1b}[31mred"),
            ("X-Name: köln", "X-Name: köln"),
        ] {
            let head = format!("GET /a:b HTTP/1.1\r\n{line}\r\n\r\n");
            let redacted = String::from_utf8(TracedHead::new(head.as_bytes()).redacted()).unwrap();
            let kept = if wanted.contains("***") { wanted } else { line };
            assert_eq!(redacted, format!("GET /a:b HTTP/1.1\r\n{kept}\r\n\r\n"));
            assert_eq!(shown(&head), format!("> GET /a:b HTTP/1.1\n> {wanted}\n>\n"));
        }
        // A name with a space before its colon is no known field to anybody else; the value is
        // hidden all the same, and a fold cannot smuggle it out.
        let folded = "HTTP/1.1 200 OK\r\nSet-Cookie: a=b;\r\n hunter2\r\nX: y\r\n z\r\n\r\n";
        assert_eq!(
            Event::Received(TracedHead::new(folded.as_bytes())).to_string(),
            "< HTTP/1.1 200 OK\n< Set-Cookie: a=***;\n<  ***\n< X: y\n<  z\n<\n"
        );
        let latin = TracedHead::new(b"HTTP/1.1 200 OK\nX: \xe9\n\n");
        assert_eq!(latin.lines().last().as_deref(), Some("X: \\xe9"));
        let debug = format!("{:?}", TracedHead::new(b"GET / HTTP/1.1\nCookie: a=hunter2\n"));
        assert!(debug.contains("a=***") && !debug.contains("hunter2"), "{debug}");
    }

    proptest! {
        #[test]
        fn whatever_comes_is_printed_line_by_line(
            head in prop::collection::vec(any::<u8>(), 0..200),
            name in prop::sample::select(vec!["Cookie", "set-cookie", "AUTHORIZATION"]),
            secret in "[a-z]{12}",
        ) {
            let head = [&head[..], b"\r\n", name.as_bytes(), b": ", secret.as_bytes(), b"\r\n\r\n"];
            let head = head.concat();
            let redacted = TracedHead::new(&head).redacted();
            prop_assert!(!redacted.windows(12).any(|window| window == secret.as_bytes()));
            for line in TracedHead::new(&head).lines() {
                prop_assert!(!line.chars().any(|letter| letter.is_control() && letter != '\t'));
                prop_assert!(!line.contains(&secret), "{line}");
            }
        }
    }

    #[test]
    fn steps_are_lines() {
        let (near, far) = ("10.0.0.1:5".parse().ok(), "10.0.0.2:80".parse().ok());
        let took = Duration::from_micros(1250);
        for (event, wanted) in [
            (
                Event::Attempt { method: &Method::GET, url: "http://a.test/", proxy: None },
                "* GET http://a.test/\n",
            ),
            (
                Event::Attempt {
                    method: &Method::HEAD,
                    url: "http://a.test/",
                    proxy: Some("http://***@p:1"),
                },
                "* HEAD http://a.test/ through http://***@p:1\n",
            ),
            (
                Event::Resolved {
                    host: "a.test",
                    addresses: &["::1".parse().unwrap(), "127.0.0.1".parse().unwrap()],
                    took,
                },
                "* a.test is ::1, 127.0.0.1 (1.2 ms)\n",
            ),
            (
                Event::Connected { peer: Peer::Proxy, local: near, address: far, took },
                "* connected to the proxy, 10.0.0.1:5 to 10.0.0.2:80 (1.2 ms)\n",
            ),
            (
                Event::Socks { destination: "a.test:443", took },
                "* the proxy has connected to a.test:443 (1.2 ms)\n",
            ),
            (
                Event::Secured { peer: Peer::Target, host: "a.test", tls: "TLSv1.3 X", took },
                "* TLS with the target a.test: TLSv1.3 X (1.2 ms)\n",
            ),
            (
                Event::Reused { local: near, peer: far, tls: Some("TLSv1.3 X") },
                "* on the kept connection 10.0.0.1:5 to 10.0.0.2:80, TLSv1.3 X\n",
            ),
        ] {
            assert_eq!(event.to_string(), wanted);
        }
    }
}
