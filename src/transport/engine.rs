//! The transport that speaks HTTP/1.1 over sockets.

use super::{AttemptLimits, Incoming, Outgoing, Transport};
use crate::error::Error;
use crate::message::Verify;
use crate::proxy::Route;
use crate::time::{Clock, SystemClock};
use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::Arc;

/// What engines are made of; cheap to clone, and the clones share resolver, roots and the switch.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct EngineConfig {
    /// Certificates.
    pub verify: Verify,
    /// Further roots (PEM) beside those of `verify`.
    pub extra_roots: Vec<PathBuf>,
    /// Hosts whose connections are kept (LRU); urllib3's `pool_connections`, default 10.
    pub pool_connections: usize,
    /// Idle connections kept per host; urllib3's `pool_maxsize`, default 10.
    pub pool_maxsize: usize,
    /// The own address to dial from.
    pub source_address: Option<IpAddr>,
    /// The clock.
    pub clock: Arc<dyn Clock>,
}

impl Default for EngineConfig {
    fn default() -> Self {
        Self {
            verify: Verify::On,
            extra_roots: Vec::new(),
            pool_connections: 10,
            pool_maxsize: 10,
            source_address: None,
            clock: Arc::new(SystemClock),
        }
    }
}

/// One engine belongs to one session (one thread).
#[derive(Debug)]
pub struct Engine {
    _todo: (),
}

impl Engine {
    /// An engine with its own connection pool.
    ///
    /// # Errors
    /// `Config` for roots that cannot be read.
    pub fn new(config: &EngineConfig) -> Result<Self, Error> {
        let _ = config;
        unimplemented!()
    }
}

impl Transport for Engine {
    fn attempt(
        &mut self,
        outgoing: Outgoing<'_>,
        route: &Route,
        limits: &AttemptLimits,
    ) -> Result<Incoming, Error> {
        let _ = (outgoing, route, limits);
        unimplemented!()
    }
}
