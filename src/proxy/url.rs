//! Proxy addresses: how a proxy is spoken to, where it is, and with which credentials.
//!
//! Lists of proxies, environment variables and settings hold an address in half a dozen spellings
//! (see [`ProxyUrl`]), and nearly always with a password in it. So this type does two things: it is
//! the only way to hold such an address, and it cannot show what is secret. Every path from here to
//! a log, a record or an error message goes through [`ProxyUrl::redacted`].

use super::spelling;
use crate::error::{Error, ErrorKind};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_encode};
use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::str::FromStr;
use std::sync::Arc;

/// How a proxy is spoken to.
#[non_exhaustive]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ProxyScheme {
    /// HTTP in the clear: forward for http targets, CONNECT for https ones.
    Http,
    /// The same inside TLS.
    Https,
    /// SOCKS4: addresses only, looked up here.
    Socks4,
    /// SOCKS4a: names are looked up by the proxy.
    Socks4a,
    /// SOCKS5: names are looked up here.
    Socks5,
    /// SOCKS5: names are looked up by the proxy.
    Socks5h,
}

impl ProxyScheme {
    /// The scheme in lower case, as it stands in a URI.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::Https => "https",
            Self::Socks4 => "socks4",
            Self::Socks4a => "socks4a",
            Self::Socks5 => "socks5",
            Self::Socks5h => "socks5h",
        }
    }

    /// The port where none is given: 80, 443, and 1080 for SOCKS.
    ///
    /// requests' values; curl takes 1080 for every kind of proxy.
    pub const fn default_port(self) -> u16 {
        match self {
            Self::Http => 80,
            Self::Https => 443,
            Self::Socks4 | Self::Socks4a | Self::Socks5 | Self::Socks5h => 1080,
        }
    }

    /// Whether SOCKS is spoken, of whichever version.
    pub const fn is_socks(self) -> bool {
        !matches!(self, Self::Http | Self::Https)
    }

    /// By its name in any case; `socks` is `socks5`.
    pub(super) fn from_name(name: &str) -> Option<Self> {
        const NAMES: [(&str, ProxyScheme); 7] = [
            ("http", ProxyScheme::Http),
            ("https", ProxyScheme::Https),
            ("socks4", ProxyScheme::Socks4),
            ("socks4a", ProxyScheme::Socks4a),
            ("socks5", ProxyScheme::Socks5),
            ("socks", ProxyScheme::Socks5),
            ("socks5h", ProxyScheme::Socks5h),
        ];
        NAMES.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, scheme)| *scheme)
    }
}

impl fmt::Display for ProxyScheme {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// One proxy. `Display` and `Debug` never show the password; nor the user.
///
/// Parsed from any of these spellings, surrounding whitespace ignored:
///
/// | spelling | remark |
/// |---|---|
/// | `scheme://host:port` | scheme http, https, socks4, socks4a, socks5, socks5h; `socks` is `socks5` |
/// | `scheme://user:password@host:port` | the last `@` splits |
/// | `host:port`, `user:password@host:port` | an http proxy |
/// | `host:port:user:password` | an http proxy, or with `scheme://` before it another |
/// | `[2001:db8::1]:8080` | IPv6 stands in brackets, in every spelling |
///
/// Credentials are percent-decoded once; a `%` without two hexadecimal digits stands for itself. A
/// password that holds `@`, `#`, `/` or `?` as it is works wherever the reading is unambiguous,
/// since the last `@` splits; percent-encoding it always works. `user:@` is an empty password, and
/// so is `user@`. International names become their A-label.
///
/// # Defaults
/// Ports as [`ProxyScheme::default_port`]; no scheme means http, as in requests.
///
/// # Errors
/// Parsing fails with `InvalidProxyUrl`, which shows the parts that cannot be secret and names the
/// likely mistake.
///
/// # Examples
/// ```
/// let proxy: longhaul::ProxyUrl = "socks5h://anna:p%40ss@proxy.example:1080".parse()?;
/// assert_eq!(proxy.credentials(), Some((&b"anna"[..], &b"p@ss"[..])));
/// assert_eq!(proxy.to_string(), "socks5h://***@proxy.example:1080");
/// # Ok::<(), longhaul::Error>(())
/// ```
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct ProxyUrl {
    scheme: ProxyScheme,
    host: String,
    port: u16,
    /// An empty user with an empty password is the same as none.
    credentials: Option<(Vec<u8>, Vec<u8>)>,
    // Derived from the above, and asked for on every request.
    shown: Arc<str>,
    key: u64,
}

impl ProxyUrl {
    pub(super) fn from_parts(
        scheme: ProxyScheme,
        host: String,
        port: u16,
        credentials: Option<(Vec<u8>, Vec<u8>)>,
    ) -> Self {
        let credentials = credentials.filter(|(user, password)| {
            // Browsers and curl treat `http://@host` and `http://:@host` as bare hosts.
            !(user.is_empty() && password.is_empty())
        });
        let stars = if credentials.is_some() { "***@" } else { "" };
        let (open, close) = if host.contains(':') { ("[", "]") } else { ("", "") };
        let shown = Arc::from(format!("{scheme}://{stars}{open}{host}{close}:{port}"));
        let mut hasher = DefaultHasher::new();
        (scheme, &host, port, &credentials).hash(&mut hasher);
        Self { scheme, host, port, credentials, shown, key: hasher.finish() }
    }

    /// The same proxy with these credentials, taken as they are: nothing is percent-decoded.
    pub fn with_credentials(self, user: impl Into<Vec<u8>>, password: impl Into<Vec<u8>>) -> Self {
        let credentials = Some((user.into(), password.into()));
        Self::from_parts(self.scheme, self.host, self.port, credentials)
    }

    /// The same proxy spoken to in another way, at the same port.
    #[must_use]
    pub fn with_scheme(self, scheme: ProxyScheme) -> Self {
        Self::from_parts(scheme, self.host, self.port, self.credentials)
    }

    /// The URI with its credentials, percent-encoded; it parses to the same proxy.
    ///
    /// This is the one way on which a password leaves this type, for a list that has to hold it.
    /// Whatever it is written to holds a secret from then on.
    pub fn exposed(&self) -> String {
        // RFC 3986, section 2.3.
        const SECRET: &AsciiSet =
            &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');
        let userinfo = self.credentials().map_or_else(String::new, |(user, password)| {
            format!("{}:{}@", percent_encode(user, SECRET), percent_encode(password, SECRET))
        });
        let (open, close) = if self.host.contains(':') { ("[", "]") } else { ("", "") };
        format!("{}://{userinfo}{open}{}{close}:{}", self.scheme, self.host, self.port)
    }

    /// How the proxy is spoken to.
    pub fn scheme(&self) -> ProxyScheme {
        self.scheme
    }

    /// Name or address, without brackets, lower case.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// The port.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// User and password, percent-decoded; the password is empty where only a user is given.
    pub fn credentials(&self) -> Option<(&[u8], &[u8])> {
        self.credentials.as_ref().map(|(user, password)| (user.as_slice(), password.as_slice()))
    }

    /// Whether names of targets are looked up by the proxy.
    ///
    /// True for all but socks4 and socks5, as in requests.
    pub fn resolves_remotely(&self) -> bool {
        !matches!(self.scheme, ProxyScheme::Socks4 | ProxyScheme::Socks5)
    }

    /// `http://***@host:port`, or without the stars where there are no credentials.
    pub fn redacted(&self) -> String {
        self.shown.as_ref().to_owned()
    }

    /// [`redacted`](Self::redacted), shared instead of copied.
    pub fn shown(&self) -> &Arc<str> {
        &self.shown
    }

    /// Whether a text that came from the other side holds user or password, or both as Basic
    /// credentials: proxies like to say whom they do not know, and some pass on what they were
    /// told. What is found must not be shown.
    pub(crate) fn gives_away(&self, text: &str) -> bool {
        let Some((user, password)) = &self.credentials else { return false };
        let pair = [user.as_slice(), b":", password].concat();
        let words = [user, password].map(|word| String::from_utf8_lossy(word).into_owned());
        let mut secrets = words.into_iter().chain([STANDARD.encode(pair)]);
        secrets.any(|secret| !secret.is_empty() && text.contains(&secret))
    }

    /// A key that tells this proxy *with these credentials* from every other, for identities and
    /// connection pools. Not to be shown.
    ///
    /// Stable within one process, and not beyond it.
    pub fn key(&self) -> u64 {
        self.key
    }

    /// Parses; the error's sentence begins with `place`, such as `HTTP_PROXY` or `line 3`.
    pub(super) fn parse_at(text: &str, place: impl fmt::Display) -> Result<Self, Error> {
        spelling::parse(text).map_err(|mistake| {
            Error::local(ErrorKind::InvalidProxyUrl, format!("{place}: {mistake}"))
        })
    }
}

impl FromStr for ProxyUrl {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        spelling::parse(text)
            .map_err(|mistake| Error::local(ErrorKind::InvalidProxyUrl, mistake.to_string()))
    }
}

impl fmt::Display for ProxyUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.shown)
    }
}

impl fmt::Debug for ProxyUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.shown)
    }
}

#[cfg(test)]
mod tests;
