//! One chosen way, and the identity that it belongs to.

use super::ProxyUrl;
use std::sync::Arc;

/// The proxy in use, or direct: cookies, sockets and TLS tickets belong to it and never leave it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Identity(u64);

impl Identity {
    /// Without a proxy.
    pub const DIRECT: Self = Self(0);

    /// The identity of this proxy with these credentials.
    pub fn of(proxy: &ProxyUrl) -> Self {
        // Zero is taken by `DIRECT`.
        Self(proxy.key().max(1))
    }

    /// The number behind it, for keys of maps.
    pub const fn value(self) -> u64 {
        self.0
    }
}

/// The way that one attempt takes.
#[derive(Debug, Clone)]
pub struct Route {
    /// The proxy; `None` is direct.
    pub proxy: Option<Arc<ProxyUrl>>,
    /// What cookies, sockets and tickets belong to.
    pub identity: Identity,
    /// CONNECT also for http targets.
    pub always_connect: bool,
    /// Fields sent to the proxy only: in CONNECT, or added to a forwarded request.
    pub proxy_headers: Arc<[(String, String)]>,
    /// Do not use a kept-alive connection for this attempt.
    pub fresh: bool,
    /// Keep the connection for later requests.
    pub keep_alive: bool,
    /// The proxy as it may be shown; shared by the attempts of a history.
    pub shown: Option<Arc<str>>,
    /// Index in the [`ProxyPool`](super::ProxyPool) that chose it, to report back to.
    pub member: Option<usize>,
}

impl Route {
    /// Without a proxy.
    pub fn direct() -> Self {
        Self {
            proxy: None,
            identity: Identity::DIRECT,
            always_connect: false,
            proxy_headers: Arc::from([]),
            fresh: false,
            keep_alive: true,
            shown: None,
            member: None,
        }
    }

    /// Through this proxy.
    pub fn through(proxy: Arc<ProxyUrl>) -> Self {
        let identity = Identity::of(&proxy);
        let shown = Some(Arc::from(proxy.redacted()));
        Self { proxy: Some(proxy), identity, shown, ..Self::direct() }
    }
}
