//! The session that a recipe makes, and what it changes while it works.

use super::builder::SessionBuilder;
use super::flight::{Flight, Step};
use super::identity::Jars;
use super::mounts::mount_of;
use super::router::lock;
use super::{CookieJar, RequestBuilder};
use crate::error::Error;
use crate::message::digest::Spaces;
use crate::message::{
    Hooks, Overrides, Prepared, Request, Response, Setting, Settings, TlsSettings, prepare,
};
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
use url::Url;

/// A session: cookies, connections and defaults for one thread. `Send`, not `Sync`.
///
/// Two threads cannot have one session:
///
/// ```compile_fail,E0277
/// let session = longhaul::Session::builder().build().unwrap();
/// std::thread::scope(|scope| {
///     scope.spawn(|| session.get("http://h.test/"));
/// });
/// ```
///
/// They can have one recipe, and a session each:
///
/// ```
/// let recipe = longhaul::Session::builder();
/// std::thread::scope(|scope| {
///     scope.spawn(|| recipe.build().map(drop));
///     scope.spawn(|| recipe.local(|session| drop(session.get("http://h.test/"))));
/// });
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
    /// Those that were mounted, by the place of their prefix in the settings; made when needed.
    mounted: Vec<Option<Box<dyn Transport>>>,
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
    /// to one transport, so none is used under settings that it was not made under. One that was
    /// mounted for the URL sees to its settings itself.
    pub(super) fn transport(
        &mut self,
        session: &Session,
        url: &Url,
        overrides: &Overrides,
    ) -> Result<&mut dyn Transport, Error> {
        if let Some(place) = mount_of(session.settings(), url)? {
            if self.mounted.len() <= place {
                self.mounted.resize_with(place + 1, || None);
            }
            if let Some(mounted) = self.mounted.get_mut(place) {
                return Ok(match mounted {
                    Some(mounted) => mounted.as_mut(),
                    None => mounted.insert(session.recipe.make_mounted(place)?).as_mut(),
                });
            }
        }
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
        let mounted = self.mounted.iter_mut().flatten();
        std::iter::once(&mut self.transport).chain(others).chain(mounted)
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
        let mounted = Vec::new();
        let core = Core { clock, transport, others, mounted, jars, spaces, rng, number: None };
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

    /// As [`core`](Self::core), for who may come from within: a hook finds its session at work.
    pub(super) fn try_core(&self) -> Result<RefMut<'_, Core>, Error> {
        self.core.try_borrow_mut().map_err(|_| {
            let text = "a session was used from within one of its hooks, or of with_cookies; make \
                        another session there";
            Error::config(text)
        })
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

    /// The request as this session would send it: settings, credentials and hooks applied; to be
    /// looked at, changed, and given to [`send_prepared`](Self::send_prepared).
    ///
    /// A `Cookie` field holds the cookies of the jar and those of the request, where the way is
    /// known before the flight: direct, or the proxy of a map. Which member of a
    /// [`ProxyPool`](crate::ProxyPool) it will be nobody knows yet, and a jar belongs to one way:
    /// there the flight adds the cookies.
    ///
    /// # Errors
    /// Those of [`prepare`](crate::message::prepare()), and `InvalidProxyUrl` as for a request
    /// that is sent.
    ///
    /// # Examples
    /// ```
    /// use http::Method;
    /// use longhaul::time::SimClock;
    /// use longhaul::transport::{Play, Script};
    /// use longhaul::{Request, Session};
    /// use std::sync::Arc;
    ///
    /// let script = Script::new(Arc::new(SimClock::default()), [Play::status(200)]);
    /// let played = script.clone();
    /// let session = Session::builder().transport(move || script.clone()).build()?;
    /// let request = Request::new(Method::POST, "http://h.test/a b").body("text");
    /// let mut prepared = session.prepare_request(request)?;
    /// assert_eq!(prepared.path_url(), "/a%20b");
    /// prepared.headers.remove("Accept-Encoding");
    /// prepared.body = "other text".into();
    /// session.send_prepared(prepared)?;
    /// assert_eq!(played.asked()[0].body, b"other text");
    /// # Ok::<(), longhaul::Error>(())
    /// ```
    pub fn prepare_request(&self, request: Request) -> Result<Prepared, Error> {
        let settings = self.settings();
        let mut prepared = prepare(settings, &request)?;
        prepared.overrides = request.overrides;
        let hooks = Hooks::merged(&settings.hooks, &prepared.overrides.hooks);
        // None is a decision, too: another session's would not be asked for.
        prepared.overrides.hooks =
            if hooks.is_empty() { Setting::Unset } else { Setting::Set(hooks) };
        if !prepared.headers.contains("Cookie")
            && let Some(identity) = self.recipe.foreseen(&prepared.url, &prepared.overrides)
        {
            let mut core = self.try_core()?;
            let wall = core.wall();
            let (jar, gone) = core.jars.of(identity);
            let cookies = prepared.cookies.over(jar.header(&prepared.url, wall));
            if let Some(gone) = gone {
                core.forget(gone);
            }
            if let Some(cookies) = cookies {
                prepared.headers.append("Cookie", cookies)?;
            }
        }
        Ok(prepared)
    }

    /// Sends a prepared request as it stands, sleeping through its waits; requests' `send`.
    ///
    /// No setting is merged again. What is not in it (timeouts, retries, proxies, redirects) comes
    /// from its [`overrides`](Prepared::overrides), else from this session. A `Cookie` field goes
    /// as it is; without one, and for each redirect, cookies are added as for any request.
    ///
    /// # Errors
    /// As [`send`](Self::send); `InvalidUrl` for a URL with a user name or password in it.
    pub fn send_prepared(&self, prepared: Prepared) -> Result<Response, Error> {
        let item = self.items.fetch_add(1, Ordering::Relaxed);
        self.drive(&mut Flight::of_prepared(prepared, item))
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
