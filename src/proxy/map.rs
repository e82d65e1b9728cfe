//! requests' `proxies` map.

use super::ProxyUrl;
use crate::error::Error;
use std::sync::Arc;
use url::Url;

/// Proxies by `scheme://host`, `scheme`, `all://host` and `all`, looked up in this order.
#[derive(Debug, Clone, Default)]
pub struct ProxyMap {
    _todo: (),
}

/// What the map says of a URL; `None` from [`ProxyMap::select`] is "nothing".
impl ProxyMap {
    /// A map without entries.
    pub fn new() -> Self {
        Self::default()
    }
    /// One proxy for everything.
    pub fn all(proxy: ProxyUrl) -> Self {
        let _ = proxy;
        unimplemented!()
    }
    /// Adds an entry; an empty `proxy` means direct.
    ///
    /// # Errors
    /// `Config` for a key of another form, `InvalidProxyUrl` for the proxy.
    pub fn insert(&mut self, key: &str, proxy: &str) -> Result<(), Error> {
        let _ = (key, proxy);
        unimplemented!()
    }
    /// The entry that covers `url`: `Some(None)` is an explicit "direct".
    pub fn select(&self, url: &Url) -> Option<Option<&Arc<ProxyUrl>>> {
        let _ = url;
        unimplemented!()
    }
    /// Whether there is no entry.
    pub fn is_empty(&self) -> bool {
        unimplemented!()
    }
}
