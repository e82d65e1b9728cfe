//! The settings of a session, and what a request changes of them.
//!
//! requests merges both by one rule: what the request names wins, `None` takes a setting away,
//! what it leaves out comes from the session. The three states are a type here, so that "not
//! given" and "taken away" cannot be confused.

use super::{Auth, Cert, Headers, Hooks, Netrc, TlsSettings, TlsVersion, Verify};
use crate::policy::{Retry, Timeouts};
use crate::proxy::ProxyMap;
use std::sync::Arc;

/// requests' three states of a per-request argument: left out, given, or `None`.
#[allow(clippy::exhaustive_enums, reason = "the three states there are")]
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Setting<T> {
    /// What the session says.
    #[default]
    Inherit,
    /// This instead.
    Set(T),
    /// Nothing, whatever the session says.
    Unset,
}

impl<T> Setting<T> {
    /// The value in force, given the session's.
    pub fn over<'a>(&'a self, session: Option<&'a T>) -> Option<&'a T> {
        match self {
            Self::Inherit => session,
            Self::Set(value) => Some(value),
            Self::Unset => None,
        }
    }
}

/// What a session holds for all its requests.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Settings {
    /// Default fields. Default: requests' four, with `User-Agent: longhaul/<version>`.
    pub headers: Headers,
    /// Default query parameters.
    pub params: Vec<(String, String)>,
    /// Default credentials.
    pub auth: Option<Auth>,
    /// Default 5 s, 25 s, no deadline.
    pub timeouts: Timeouts,
    /// Default none, as requests.
    pub retry: Retry,
    /// requests' `max_redirects`; default 30.
    pub max_redirects: u32,
    /// Whether redirects are followed; default on (for HEAD too where set per request only).
    pub allow_redirects: bool,
    /// Further field names that do not leave the origin (`X-Api-Key`).
    pub secret_headers: Vec<String>,
    /// Ceiling of decoded body bytes, as an error; default none.
    pub max_body_bytes: Option<u64>,
    /// Ceiling of body bytes on the wire, as an error; default none.
    pub max_wire_bytes: Option<u64>,
    /// Hand out the response at its head, and leave reading to the caller; default off.
    pub stream: bool,
    /// Certificates and versions; requests' `verify` and `cert`.
    pub tls: TlsSettings,
    /// The session's own proxies.
    pub proxies: ProxyMap,
    /// Whether http targets go through CONNECT too, whatever proxy is in use; default off, as
    /// requests.
    pub always_connect: bool,
    /// Whether the environment is consulted: proxies, .netrc, CA bundles; default on.
    pub trust_env: bool,
    /// An uncovered URL is an error rather than direct; default off (on in pools with proxies).
    pub proxies_required: bool,
    /// The credentials file, once it was read; default none.
    pub netrc: Option<Arc<Netrc>>,
    /// requests' `hooks`; default none.
    pub hooks: Hooks,
    /// The prefixes that transports are mounted under, longest first; default none.
    pub mounts: Vec<String>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            headers: default_headers(),
            params: Vec::new(),
            auth: None,
            timeouts: Timeouts::default(),
            retry: Retry::default(),
            max_redirects: 30,
            allow_redirects: true,
            secret_headers: Vec::new(),
            max_body_bytes: None,
            max_wire_bytes: None,
            stream: false,
            tls: TlsSettings::default(),
            proxies: ProxyMap::new(),
            always_connect: false,
            trust_env: true,
            proxies_required: false,
            netrc: None,
            hooks: Hooks::new(),
            mounts: Vec::new(),
        }
    }
}

/// requests' `default_headers`, in its order, with the codings that this build decodes.
fn default_headers() -> Headers {
    let mut codings = String::from("gzip, deflate");
    if cfg!(feature = "brotli") {
        codings.push_str(", br");
    }
    if cfg!(feature = "zstd") {
        codings.push_str(", zstd");
    }
    let mut headers = Headers::new();
    for (name, value) in [
        ("User-Agent", concat!("longhaul/", env!("CARGO_PKG_VERSION"))),
        ("Accept-Encoding", codings.as_str()),
        ("Accept", "*/*"),
        ("Connection", "keep-alive"),
    ] {
        let inserted = headers.append(name, value);
        debug_assert!(inserted.is_ok(), "{name}");
    }
    headers
}

/// What one request changes of its session's settings.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Overrides {
    /// Credentials.
    pub auth: Setting<Auth>,
    /// Timeouts and deadline.
    pub timeouts: Setting<Timeouts>,
    /// Retries.
    pub retry: Setting<Retry>,
    /// Whether redirects are followed.
    pub allow_redirects: Option<bool>,
    /// Streaming.
    pub stream: Option<bool>,
    /// Proxies of this call; over the session's.
    pub proxies: Option<ProxyMap>,
    /// Certificates.
    pub verify: Option<Verify>,
    /// The client certificate.
    pub cert: Setting<Cert>,
    /// The lowest TLS version.
    pub tls_min_version: Setting<TlsVersion>,
    /// The highest TLS version.
    pub tls_max_version: Setting<TlsVersion>,
    /// Whether content codings are undone; default on.
    pub decode_content: Option<bool>,
    /// Ceiling of decoded body bytes.
    pub max_body_bytes: Setting<u64>,
    /// Ceiling of body bytes on the wire.
    pub max_wire_bytes: Setting<u64>,
    /// Hooks; those of an event take the place of the session's of that event.
    pub hooks: Setting<Hooks>,
}
