//! Sessions and their recipe.

use crate::error::Error;
use crate::message::{Request, Response, Settings};
use crate::policy::{Bound, Retry, Timeouts, WorstCase};
use crate::proxy::{ProxyPool, ProxyStats};
use http::Method;
use std::cell::Cell;
use std::marker::PhantomData;

/// The recipe of sessions: `Clone + Send + Sync`, so that each worker makes its own from it.
///
/// Clones share what has to be one for a run: the proxy pool with its health, the hosts that cool
/// down, the resolver and the trust store.
#[derive(Debug, Clone)]
pub struct SessionBuilder {
    settings: Settings,
}

impl SessionBuilder {
    /// The settings so far.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }
    /// The retry policy.
    pub fn retry(mut self, retry: Retry) -> Self {
        self.settings.retry = retry;
        self
    }
    /// Timeouts.
    pub fn timeout(mut self, timeouts: impl Into<Timeouts>) -> Self {
        self.settings.timeouts = timeouts.into();
        self
    }
    /// Proxies: a pool, a map or one URL.
    pub fn proxies(self, pool: ProxyPool) -> Self {
        let _ = pool;
        self
    }
    /// Checks the settings and makes a session.
    ///
    /// # Errors
    /// `Config` and `InvalidProxyUrl` for settings that cannot work.
    pub fn build(&self) -> Result<Session, Error> {
        unimplemented!()
    }
    /// The worst case of one URL under these settings.
    pub fn worst_case(&self) -> Bound {
        WorstCase::of(&self.settings.retry, &self.settings.timeouts).exact()
    }
    /// The numbers of each proxy of the pool.
    pub fn proxy_stats(&self) -> Vec<ProxyStats> {
        unimplemented!()
    }
    /// The session of this recipe that belongs to the calling thread; made on the first call.
    ///
    /// # Errors
    /// As [`build`](Self::build).
    pub fn local<T>(&self, work: impl FnOnce(&Session) -> T) -> Result<T, Error> {
        let _ = work;
        unimplemented!()
    }
}

/// A session: cookies, connections and defaults for one thread. `Send`, not `Sync`.
#[derive(Debug)]
pub struct Session {
    _not_sync: PhantomData<Cell<()>>,
}

impl Session {
    /// The recipe with the defaults.
    pub fn builder() -> SessionBuilder {
        unimplemented!()
    }
    /// Sends a request, sleeping through its waits.
    ///
    /// # Errors
    /// The failure with its history.
    pub fn send(&self, request: Request) -> Result<Response, Error> {
        let _ = request;
        unimplemented!()
    }
    /// GET.
    pub fn get(&self, url: &str) -> RequestBuilder<'_> {
        RequestBuilder { session: Some(self), request: Request::new(Method::GET, url) }
    }
}

/// A request that is being described.
#[derive(Debug)]
#[must_use]
pub struct RequestBuilder<'a> {
    session: Option<&'a Session>,
    request: Request,
}

impl RequestBuilder<'_> {
    /// Sends it.
    ///
    /// # Errors
    /// As [`Session::send`].
    pub fn send(self) -> Result<Response, Error> {
        let _ = (self.session, self.request);
        unimplemented!()
    }
}

macro_rules! verb {
    ($($name:ident $method:ident),*) => {$(
        /// A request of this method in a session of its own.
        pub fn $name(url: &str) -> RequestBuilder<'static> {
            RequestBuilder { session: None, request: Request::new(Method::$method, url) }
        }
    )*};
}
verb!(get GET, post POST, put PUT, patch PATCH, delete DELETE, head HEAD, options OPTIONS);
