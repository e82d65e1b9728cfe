//! Proxy addresses in every spelling that people hold them in, redacted whenever shown.

use crate::error::Error;
use std::fmt;
use std::str::FromStr;

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

/// One proxy. `Display` and `Debug` never show the password; nor the user.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct ProxyUrl {
    scheme: ProxyScheme,
    host: String,
    port: u16,
    user: Option<Vec<u8>>,
    password: Option<Vec<u8>>,
}

impl ProxyUrl {
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
        let user = self.user.as_deref()?;
        Some((user, self.password.as_deref().unwrap_or_default()))
    }
    /// Whether names of targets are looked up by the proxy.
    pub fn resolves_remotely(&self) -> bool {
        unimplemented!()
    }
    /// `http://***@host:port`, or without the stars where there are no credentials.
    pub fn redacted(&self) -> String {
        unimplemented!()
    }
    /// A key that tells this proxy *with these credentials* from every other, for identities and
    /// connection pools. Not to be shown.
    pub fn key(&self) -> u64 {
        unimplemented!()
    }
}

impl FromStr for ProxyUrl {
    type Err = Error;
    fn from_str(text: &str) -> Result<Self, Error> {
        let _ = text;
        unimplemented!()
    }
}

impl fmt::Display for ProxyUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.redacted())
    }
}

impl fmt::Debug for ProxyUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.redacted())
    }
}
