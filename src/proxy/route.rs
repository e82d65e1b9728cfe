//! One chosen way, and the identity that it belongs to.

use super::ProxyUrl;
use crate::error::{Error, ErrorKind};
use std::fmt;
use std::sync::Arc;

/// The proxy in use, or direct: cookies, sockets and TLS tickets belong to it and never leave it.
///
/// `Debug` shows `direct` or `proxy`: the number behind it is made from a password too.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
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

impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if *self == Self::DIRECT { "direct" } else { "proxy" })
    }
}

/// The way that one attempt takes.
///
/// `Debug` shows the names of the proxy's fields, not their values.
#[derive(Clone)]
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
            proxy_headers: Arc::default(),
            fresh: false,
            keep_alive: true,
            shown: None,
            member: None,
        }
    }

    /// Through this proxy.
    pub fn through(proxy: Arc<ProxyUrl>) -> Self {
        let identity = Identity::of(&proxy);
        let shown = Some(Arc::clone(proxy.shown()));
        Self { proxy: Some(proxy), identity, shown, ..Self::direct() }
    }
}

/// These fields for proxies and one more.
///
/// # Errors
/// `InvalidHeader` for a name that is no token, and for a value with a line break or NUL.
pub(crate) fn add_proxy_header(
    given: &[(String, String)],
    name: &str,
    value: &str,
) -> Result<Arc<[(String, String)]>, Error> {
    // RFC 9110, section 5.6.2.
    let is_token = !name.is_empty()
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b));
    if !is_token {
        let message = format!("the proxy header {name:?} has a name that cannot be sent");
        return Err(Error::local(ErrorKind::InvalidHeader, message));
    }
    if value.contains(['\r', '\n', '\0']) {
        let message = format!("the proxy header `{name}` has a value with a line break or NUL");
        return Err(Error::local(ErrorKind::InvalidHeader, message));
    }
    Ok(given.iter().cloned().chain([(name.to_owned(), value.to_owned())]).collect())
}

impl fmt::Debug for Route {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.proxy_headers.iter().map(|(name, _)| name.as_str()).collect();
        f.debug_struct("Route")
            .field("proxy", &self.proxy)
            .field("always_connect", &self.always_connect)
            .field("proxy_headers", &names)
            .field("fresh", &self.fresh)
            .field("keep_alive", &self.keep_alive)
            .field("member", &self.member)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_identity_is_a_proxy_with_its_credentials() {
        let of = |text: &str| Identity::of(&text.parse().unwrap());
        assert_eq!(of("u:p@h:1"), of("http://u:p@H:1/"));
        assert_ne!(of("u:p@h:1"), of("u:q@h:1"));
        assert_ne!(of("h:1"), Identity::DIRECT);
        assert_eq!(format!("{:?} {:?}", of("h:1"), Identity::DIRECT), "proxy direct");
    }

    #[test]
    fn debug_shows_no_secret() {
        let mut route = Route::through(Arc::new("u:secret@h:1".parse().unwrap()));
        route.proxy_headers = Arc::from([("X-Key".to_owned(), "secret".to_owned())]);
        let shown = format!("{route:?}");
        assert!(shown.contains("X-Key") && shown.contains("http://***@h:1"), "{shown}");
        assert!(!shown.contains("secret"), "{shown}");
    }
}
