//! The numbers of a run, for Prometheus: served while it goes on, and gone with it.
//!
//! A thread of its own answers; what it reads are counters that the thread of the results moves, so
//! a scrape holds nothing up, and nobody counts on the way of a request. The states of the proxies are
//! looked up when somebody asks.

mod numbers;
mod server;

use crate::usage::UsageError;
use longhaul::session::SessionBuilder;
pub(crate) use numbers::Numbers;
use server::Server;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;

/// The server of a run; it ends when this is dropped.
#[derive(Debug)]
pub(crate) struct Served {
    numbers: Arc<Numbers>,
    server: Server,
}

impl Served {
    /// Listens at `address` from now on.
    ///
    /// # Errors
    /// An address that is not one of this machine, or is taken.
    pub(crate) fn at(address: SocketAddr) -> Result<Self, UsageError> {
        let wrong = |why: String| UsageError::new("--metrics", why);
        let listener = TcpListener::bind(address).map_err(|error| {
            wrong(format!("cannot listen at {address}: {error}; give another address or port"))
        })?;
        let numbers = Numbers::new()
            .map(Arc::new)
            .map_err(|error| wrong(format!("the numbers cannot be kept: {error}")))?;
        let asked = Arc::clone(&numbers);
        let server = Server::start(listener, move || asked.text())
            .map_err(|error| wrong(format!("nothing can be served at {address}: {error}")))?;
        Ok(Self { numbers, server })
    }

    /// Where they are.
    pub(crate) fn url(&self) -> String {
        format!("http://{}/metrics", self.server.address())
    }

    /// What the run tells its numbers to; the sessions of `recipe` know the proxies.
    pub(crate) fn numbers(&self, recipe: SessionBuilder) -> Arc<Numbers> {
        self.numbers.watch_proxies(recipe);
        Arc::clone(&self.numbers)
    }
}
