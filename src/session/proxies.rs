//! The forms in which a recipe takes its proxies.

use crate::proxy::{ProxyMap, ProxyPool, ProxyUrl};

/// A pool to rotate, a map by scheme and host, or one proxy for everything.
#[non_exhaustive]
#[derive(Debug, Clone)]
pub enum Proxies {
    /// Rotated, with health.
    Pool(ProxyPool),
    /// Looked up by scheme and host.
    Map {
        /// The map.
        map: ProxyMap,
        /// Whether a URL that it does not cover is an error.
        required: bool,
    },
}

impl From<ProxyPool> for Proxies {
    fn from(pool: ProxyPool) -> Self {
        Self::Pool(pool)
    }
}

impl From<ProxyMap> for Proxies {
    fn from(map: ProxyMap) -> Self {
        Self::Map { map, required: false }
    }
}

impl From<ProxyUrl> for Proxies {
    fn from(proxy: ProxyUrl) -> Self {
        Self::Map { map: ProxyMap::all(proxy), required: true }
    }
}
