//! The session that a recipe makes, and what it changes while it works.

use super::builder::SessionBuilder;
use super::flight::{Flight, Step};
use super::identity::Jars;
use super::router::lock;
use super::{CookieJar, RequestBuilder};
use crate::error::Error;
use crate::message::digest::Spaces;
use crate::message::{Overrides, Request, Response, Settings, TlsSettings};
use crate::proxy::{Identity, Route};
use crate::rng::Rng;
use crate::time::Clock;
use crate::transport::Transport;
use http::Method;
use std::cell::{RefCell, RefMut};
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Instant, SystemTime};

/// A session: cookies, connections and defaults for one thread. `Send`, not `Sync`.
///
/// ```compile_fail
/// fn share<T: Sync>(_: T) {}
/// share(longhaul::Session::builder().build().unwrap());
/// ```
pub struct Session {
    recipe: SessionBuilder,
    core: RefCell<Core>,
    items: AtomicU64,
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session").field("settings", self.settings()).finish_non_exhaustive()
    }
}

/// What a session changes while it works.
#[derive(Debug)]
pub(super) struct Core {
    clock: Arc<dyn Clock>,
    transport: Box<dyn Transport>,
    /// Transports for requests with other TLS settings than the session's, the most recently used
    /// last; hardly ever more than one.
    others: Vec<(TlsSettings, Box<dyn Transport>)>,
    pub(super) jars: Jars,
    /// Where Digest credentials can be sent ahead; no identity uses the nonce of another.
    pub(super) spaces: HashMap<Identity, Spaces>,
    pub(super) rng: Rng,
    /// Of user names that are templates, where each session has its own.
    pub(super) number: Option<u64>,
}

/// How many transports a session keeps for requests with TLS settings of their own.
const MOST_OTHERS: usize = 8;

impl Core {
    pub(super) fn now(&self) -> Instant {
        self.clock.now()
    }

    pub(super) fn wall(&self) -> SystemTime {
        self.clock.wall()
    }

    /// The transport with the TLS settings that the request wants. Connections and tickets belong
    /// to one transport, so none is used under settings that it was not made under.
    pub(super) fn transport(
        &mut self,
        session: &Session,
        overrides: &Overrides,
    ) -> Result<&mut dyn Transport, Error> {
        let own = &session.settings().tls;
        let wanted = own.overridden(overrides).map(|tls| session.recipe.under_environment(tls));
        let Some(wanted) = wanted.filter(|wanted| wanted != own) else {
            return Ok(self.transport.as_mut());
        };
        let kept = match self.others.iter().position(|(have, _)| *have == wanted) {
            Some(at) => self.others.remove(at),
            None => {
                let transport = session.recipe.make(&wanted)?;
                if self.others.len() >= MOST_OTHERS {
                    self.others.remove(0);
                }
                (wanted, transport)
            }
        };
        self.others.push(kept);
        match self.others.last_mut() {
            Some((_, transport)) => Ok(transport.as_mut()),
            None => Ok(self.transport.as_mut()),
        }
    }

    /// Tells every transport that an identity is gone.
    pub(super) fn forget(&mut self, identity: Identity) {
        self.spaces.remove(&identity);
        self.transports().for_each(|transport| transport.forget(identity));
    }

    fn transports(&mut self) -> impl Iterator<Item = &mut Box<dyn Transport>> {
        let others = self.others.iter_mut().map(|(_, transport)| transport);
        std::iter::once(&mut self.transport).chain(others)
    }
}

impl Session {
    /// Puts a session together.
    pub(super) fn of(
        recipe: SessionBuilder,
        transport: Box<dyn Transport>,
        jars: Jars,
        rng: Rng,
    ) -> Self {
        let clock = Arc::clone(&recipe.clock);
        let (others, spaces) = (Vec::new(), HashMap::new());
        let core = Core { clock, transport, others, jars, spaces, rng, number: None };
        Self { recipe, core: RefCell::new(core), items: AtomicU64::new(0) }
    }

    /// The recipe with the defaults.
    pub fn builder() -> SessionBuilder {
        SessionBuilder::default()
    }

    /// A session with the defaults.
    ///
    /// # Errors
    /// As [`SessionBuilder::build`].
    pub fn new() -> Result<Self, Error> {
        SessionBuilder::default().build()
    }

    /// The settings in force, the environment included.
    pub fn settings(&self) -> &Settings {
        &self.recipe.settings
    }

    /// The recipe that this session was made from.
    pub(super) fn recipe(&self) -> &SessionBuilder {
        &self.recipe
    }

    pub(super) fn core(&self) -> RefMut<'_, Core> {
        self.core.borrow_mut()
    }

    /// Whether a credential other than that of `route` is still accepted.
    pub(super) fn other_credentials(&self, route: &Route) -> bool {
        route.member.is_some()
            && self.recipe.pool.as_ref().is_some_and(|pool| lock(pool).credentials_left() > 0)
    }

    /// Whether a retry may take another proxy.
    pub(super) fn has_other_proxies(&self) -> bool {
        self.recipe.pool.as_ref().is_some_and(|pool| lock(pool).len() > 1)
    }

    /// Sends a request, sleeping through its waits.
    ///
    /// # Errors
    /// The failure with its history; by kind in the guide to errors.
    pub fn send(&self, request: Request) -> Result<Response, Error> {
        self.drive(&mut self.flight(request))
    }

    /// A flight of this session that has not begun.
    pub(super) fn flight(&self, request: Request) -> Flight {
        Flight::new(request, self.items.fetch_add(1, Ordering::Relaxed))
    }

    /// Steps a flight to its end, sleeping through its waits.
    pub(super) fn drive(&self, flight: &mut Flight) -> Result<Response, Error> {
        loop {
            match flight.step(self) {
                Step::Done(response) => return Ok(response),
                Step::Failed(error) => return Err(error),
                Step::Wait { until, .. } => self.sleep_until(until),
            }
        }
    }

    pub(super) fn sleep_until(&self, until: Instant) {
        self.recipe.clock.sleep_until(until);
    }

    /// Closes the connections that wait for their next request, as requests' `close`; the session
    /// stays usable. Dropping a session does the same.
    pub fn close(&self) {
        self.core().transports().for_each(|transport| transport.close());
    }

    /// Works with the cookies of the direct identity, as `requests.Session.cookies`.
    pub fn with_cookies<T>(&self, work: impl FnOnce(&mut CookieJar) -> T) -> T {
        self.with_cookies_of(Identity::DIRECT, work)
    }

    /// Works with the cookies of an identity.
    pub fn with_cookies_of<T>(
        &self,
        identity: Identity,
        work: impl FnOnce(&mut CookieJar) -> T,
    ) -> T {
        work(self.core().jars.of(identity).0)
    }

    /// A request of any method.
    pub fn request(&self, method: Method, url: impl Into<String>) -> RequestBuilder<'_> {
        RequestBuilder::new(Some(self), Request::new(method, url))
    }
}

macro_rules! verbs {
    ($($name:ident $method:ident),*) => {
        impl Session {$(
            #[doc = concat!("A `", stringify!($method), "` request.")]
            pub fn $name(&self, url: impl Into<String>) -> RequestBuilder<'_> {
                self.request(Method::$method, url)
            }
        )*}

        $(
            #[doc = concat!("A `", stringify!($method), "` request in a session of its own, as `requests.", stringify!($name), "`.")]
            pub fn $name(url: impl Into<String>) -> RequestBuilder<'static> {
                RequestBuilder::new(None, Request::new(Method::$method, url))
            }
        )*
    };
}
verbs!(get GET, post POST, put PUT, patch PATCH, delete DELETE, head HEAD, options OPTIONS);
