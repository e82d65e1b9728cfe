//! Proxies from the environment, the one place of this layer that reads it.

use super::ProxyUrl;
use crate::error::Error;
use std::sync::Arc;
use url::Url;

/// What HTTP_PROXY, HTTPS_PROXY, ALL_PROXY and NO_PROXY say.
#[derive(Debug, Clone, Default)]
pub struct EnvProxies {
    _todo: (),
}

impl EnvProxies {
    /// Reads the variables through `var`.
    ///
    /// # Errors
    /// `InvalidProxyUrl` that names the variable; never silently direct.
    pub fn read(var: impl Fn(&str) -> Option<String>) -> Result<Self, Error> {
        let _ = var("");
        unimplemented!()
    }
    /// Reads the environment of the process.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub fn from_env() -> Result<Self, Error> {
        unimplemented!()
    }
    /// The proxy for `url`, NO_PROXY considered; `None` is direct.
    pub fn select(&self, url: &Url) -> Option<&Arc<ProxyUrl>> {
        let _ = url;
        unimplemented!()
    }
}
