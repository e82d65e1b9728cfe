//! The recipe of sessions, and the session itself.
//!
//! requests can only warn that a session must not be shared between threads. Here the session
//! itself cannot be shared (it is not `Sync`), and what can be shared is the [`SessionBuilder`]:
//! a recipe from which each thread makes its own session. What has to be one for a whole run (the
//! health of the proxies, the hosts that cool down, the resolver and the trust store) belongs to
//! the recipe and is common to its clones.

use super::identity::Jars;
use super::lessons::Lessons;
use super::limits::SharedLimiter;
use super::numbers::Numbers;
use super::refusals::Refusals;
use super::restraint::Restraint;
use super::router::{SharedCooldown, lock};
use super::{CookieCollector, CookieJar, Proxies, Session, environment};
use crate::error::{Error, ErrorKind, Exchange};
use crate::message::{
    Auth, Cert, Hooks, Netrc, NextAttempt, Response, Settings, TlsSettings, TlsVersion, Verify,
};
use crate::policy::{Bound, HostCircuit, Retry, RetryBudget, Timeouts, WorstCase};
use crate::proxy::{EnvProxies, ExitBook, Identity, ProxyPool, ProxyStats};
use crate::rng::Rng;
use crate::time::{Clock, SystemClock};
use crate::transport::{
    Cutter, Engine, EngineConfig, Event, IntoTransport, Resolve, Trace, Transport,
};
use std::cell::RefCell;
use std::fmt;
use std::net::IpAddr;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

type OnExchange = dyn Fn(&Exchange) + Send + Sync;

pub(super) type MakeTransport = dyn Fn() -> Result<Box<dyn Transport>, Error> + Send + Sync;

/// The recipe of sessions: `Clone + Send + Sync`, so that each worker makes its own from it.
///
/// Clones share what has to be one for a run: the proxy pool with its health, the hosts that cool
/// down, the budget of retries, the resolver and the trust store.
///
/// # Defaults
/// Those of requests (no retries, 30 redirects, the environment is trusted), but for the timeouts:
/// connect 5 s and read 25 s, where requests has none.
#[derive(Clone)]
pub struct SessionBuilder {
    pub(super) settings: Arc<Settings>,
    pub(super) pool: Option<Arc<Mutex<ProxyPool>>>,
    pub(super) cooldown: Option<SharedCooldown>,
    pub(super) restraint: Restraint,
    /// What attempts take slots of; of a run only.
    pub(super) limits: Option<SharedLimiter>,
    /// What counts as a refusal; of a run only.
    pub(super) refusals: Option<Arc<Refusals>>,
    pub(super) env: Option<Arc<EnvProxies>>,
    /// What the environment says instead of [`Verify::On`].
    pub(super) bundle: Option<Verify>,
    /// What the environment holds; read for the first session, so that a file that cannot be used
    /// is one warning and not one for each worker.
    netrc: Arc<OnceLock<Option<Arc<Netrc>>>>,
    pub(super) clock: Arc<dyn Clock>,
    /// Of user names that are templates.
    pub(super) numbers: Arc<Numbers>,
    pub(super) exits: Arc<KnownExits>,
    /// Where what is learnt is kept back; of a simulation only.
    pub(super) lessons: Option<Arc<Lessons>>,
    engine: EngineConfig,
    /// Is shown each exchange that was received as a whole, on the thread that received it.
    pub(super) on_exchange: Option<Arc<OnExchange>>,
    make_transport: Option<Arc<MakeTransport>>,
    /// Beside the prefixes of the settings.
    pub(super) mounts: Vec<Arc<MakeTransport>>,
    cookies: CookieJar,
    cookie_collector: Option<CookieCollector>,
    seed: Option<u64>,
    pub(super) streams: Arc<AtomicU64>,
    /// Whether a retry policy was chosen; a run has another default than a session.
    retry_chosen: bool,
    /// Whether `pool_connections` was chosen; likewise.
    hosts_chosen: bool,
    /// The first value that cannot work, told by `build` so that a chain needs no `?` within.
    mistake: Option<(ErrorKind, String)>,
    id: u64,
}

/// What was seen of the exits, for all sessions of a recipe.
#[derive(Debug, Default)]
pub(super) struct KnownExits {
    /// Most runs never look, and an attempt of theirs takes no lock.
    any: AtomicBool,
    book: Mutex<ExitBook>,
}

impl fmt::Debug for SessionBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SessionBuilder").field("settings", &self.settings).finish_non_exhaustive()
    }
}

impl Default for SessionBuilder {
    fn default() -> Self {
        Self {
            settings: Arc::new(Settings::default()),
            pool: None,
            cooldown: None,
            restraint: Restraint::default(),
            limits: None,
            refusals: None,
            env: None,
            bundle: None,
            netrc: Arc::default(),
            clock: Arc::new(SystemClock),
            numbers: Arc::default(),
            exits: Arc::default(),
            lessons: None,
            engine: EngineConfig::default(),
            on_exchange: None,
            make_transport: None,
            mounts: Vec::new(),
            cookies: CookieJar::default(),
            cookie_collector: None,
            seed: None,
            streams: Arc::default(),
            retry_chosen: false,
            hosts_chosen: false,
            mistake: None,
            id: next_recipe(),
        }
    }
}

/// Recipes are told apart, so that a thread can keep one session for each.
fn next_recipe() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

impl SessionBuilder {
    pub(super) fn set(mut self, change: impl FnOnce(&mut Settings)) -> Self {
        change(Arc::make_mut(&mut self.settings));
        self.changed()
    }

    /// Keeps the first mistake for `build`.
    fn refuse(mut self, error: &Error) -> Self {
        self.mistake.get_or_insert_with(|| (error.kind(), error.message().to_owned()));
        self
    }

    /// A changed recipe is another recipe for [`local`](Self::local).
    pub(super) fn changed(mut self) -> Self {
        self.id = next_recipe();
        self
    }

    /// The settings so far.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// The retry policy. Default: [`Retry::none`], as requests; a
    /// [`WorkerPool`](crate::WorkerPool) that is given a recipe without one uses
    /// [`Retry::long_run`].
    pub fn retry(mut self, retry: impl Into<Retry>) -> Self {
        let retry = retry.into();
        self.retry_chosen = true;
        self.set(|settings| settings.retry = retry)
    }

    /// Connect and read timeouts, and the deadline. Default: 5 s, 25 s, none.
    pub fn timeout(self, timeouts: impl Into<Timeouts>) -> Self {
        let timeouts = timeouts.into();
        self.set(|settings| settings.timeouts = timeouts)
    }

    /// The deadline alone, beside the timeouts there are: wall clock for a whole URL, retries,
    /// waits and redirects included. Default: none.
    pub fn deadline(self, deadline: impl Into<Option<Duration>>) -> Self {
        match self.settings.timeouts.with_deadline(deadline) {
            Ok(timeouts) => self.set(|settings| settings.timeouts = timeouts),
            Err(error) => self.refuse(&error),
        }
    }

    /// Proxies: a [`ProxyPool`] to rotate, a [`ProxyMap`](crate::ProxyMap) by scheme and host, or
    /// one [`ProxyUrl`](crate::ProxyUrl) for everything.
    ///
    /// A pool and a single proxy make proxies required: nothing leaves by the own address by
    /// accident. A map leaves what it does not cover to the environment, or direct, as requests.
    pub fn proxies(mut self, proxies: impl Into<Proxies>) -> Self {
        match proxies.into() {
            Proxies::Pool(pool) => {
                self.pool = Some(Arc::new(Mutex::new(pool)));
                // Another run of proxies is another run of numbers.
                self.numbers = Arc::default();
                self.set(|settings| settings.proxies_required = true)
            }
            Proxies::Map { map, required } => {
                self.pool = None;
                self.set(|settings| {
                    settings.proxies = map;
                    settings.proxies_required = required;
                })
            }
        }
    }

    /// Whether a URL that no proxy covers is an error rather than direct. Default: as
    /// [`proxies`](Self::proxies) says.
    pub fn proxies_required(self, required: bool) -> Self {
        self.set(|settings| settings.proxies_required = required)
    }

    /// Whether http targets go through CONNECT too, for proxies that forward nothing: those given
    /// here, those of a request and those of the environment alike. Default: off, as requests.
    ///
    /// [`ProxyPool::always_connect`] says it for a pool alone.
    pub fn always_connect(self, always_connect: bool) -> Self {
        self.set(|settings| settings.always_connect = always_connect)
    }

    /// Whether the environment is consulted for proxies, `.netrc` and CA bundles; default on.
    ///
    /// The `.netrc` is read for the first session of a recipe and its clones. One that cannot be
    /// used is a warning.
    pub fn trust_env(self, trust: bool) -> Self {
        self.set(|settings| settings.trust_env = trust)
    }

    /// A default field, in place of another of this name. What cannot be sent is told by
    /// [`build`](Self::build).
    pub fn header(mut self, name: &str, value: impl Into<Vec<u8>>) -> Self {
        match Arc::make_mut(&mut self.settings).headers.insert(name, value) {
            Ok(_) => self.changed(),
            Err(error) => self.refuse(&error),
        }
    }

    /// Leaves out a default field.
    pub fn without_header(self, name: &str) -> Self {
        self.set(|settings| {
            settings.headers.remove(name);
        })
    }

    /// A default query parameter.
    pub fn param(self, name: impl Into<String>, value: impl Into<String>) -> Self {
        let param = (name.into(), value.into());
        self.set(|settings| settings.params.push(param))
    }

    /// Default credentials for targets.
    pub fn auth(self, auth: Auth) -> Self {
        self.set(|settings| settings.auth = Some(auth))
    }

    /// The credentials by host, whatever the environment says. [`Netrc::default`] holds none, so
    /// that no file is read. Default: the file that `NETRC` names, or `~/.netrc`, where the
    /// environment is trusted.
    pub fn netrc(self, netrc: Netrc) -> Self {
        self.set(|settings| settings.netrc = Some(Arc::new(netrc)))
    }

    /// requests' `max_redirects`. Default: 30.
    pub fn max_redirects(self, most: u32) -> Self {
        self.set(|settings| settings.max_redirects = most)
    }

    /// Whether redirects are followed. Default: on, for every method but HEAD.
    pub fn allow_redirects(self, allow: bool) -> Self {
        self.set(|settings| settings.allow_redirects = allow)
    }

    /// A further field that does not leave the origin on a redirect.
    pub fn secret_header(self, name: impl Into<String>) -> Self {
        let name = name.into();
        self.set(|settings| settings.secret_headers.push(name))
    }

    /// Ceiling of decoded body bytes; more is an error of kind `TooLarge`. Default: none.
    pub fn max_body_bytes(self, most: impl Into<Option<u64>>) -> Self {
        let most = most.into();
        self.set(|settings| settings.max_body_bytes = most)
    }

    /// Ceiling of body bytes on the wire; more is an error of kind `TooLarge`. Default: none.
    pub fn max_wire_bytes(self, most: impl Into<Option<u64>>) -> Self {
        let most = most.into();
        self.set(|settings| settings.max_wire_bytes = most)
    }

    /// Hands out responses at their head, and leaves reading to the caller. Default: off.
    pub fn stream(self, stream: bool) -> Self {
        self.set(|settings| settings.stream = stream)
    }

    /// Whether and against what certificates are checked. Default: the built-in roots, or
    /// `REQUESTS_CA_BUNDLE`, `CURL_CA_BUNDLE`, `SSL_CERT_FILE` where the environment is trusted.
    ///
    /// DIFFERENCE(verify-over-environment): what is given here wins over those variables; requests
    /// lets them overrule `session.verify`, also where it is off.
    pub fn verify(self, verify: Verify) -> Self {
        self.set(|settings| settings.tls.verify = verify)
    }

    /// Further roots (a PEM file, or a folder of them) beside those of [`verify`](Self::verify): a
    /// private CA.
    pub fn extra_roots(self, file: impl Into<PathBuf>) -> Self {
        let file = file.into();
        self.set(|settings| settings.tls.extra_roots.push(file))
    }

    /// The client certificate, shown to every target that asks for one, redirects included: one
    /// file with certificate and key, or a pair of files. Default: none.
    ///
    /// The files are read by [`build`](Self::build). A proxy is never shown it, as in urllib3.
    pub fn cert(self, cert: impl Into<Cert>) -> Self {
        let cert = cert.into();
        self.set(|settings| settings.tls.cert = Some(cert))
    }

    /// The lowest TLS version that is spoken. Default: 1.2, below which there is none.
    pub fn tls_min_version(self, version: impl Into<Option<TlsVersion>>) -> Self {
        let version = version.into();
        self.set(|settings| settings.tls.min_version = version)
    }

    /// The highest TLS version that is spoken. Default: 1.3, above which there is none.
    pub fn tls_max_version(self, version: impl Into<Option<TlsVersion>>) -> Self {
        let version = version.into();
        self.set(|settings| settings.tls.max_version = version)
    }

    /// Everything about TLS at once, in place of what was said before.
    pub fn tls(self, tls: TlsSettings) -> Self {
        self.set(|settings| settings.tls = tls)
    }

    /// Hosts whose connections are kept, the least recently used going first; urllib3's
    /// `pool_connections`. A proxy that forwards counts as one host, however many are behind it.
    ///
    /// # Defaults
    /// 10, as requests; in a [`WorkerPool`](crate::WorkerPool) 64 for each worker, or fewer where
    /// many workers would hold more than 512 idle connections together.
    pub fn pool_connections(mut self, hosts: usize) -> Self {
        self.hosts_chosen = true;
        self.engine.pool_connections = hosts;
        self.changed()
    }

    /// Idle connections kept per host; urllib3's `pool_maxsize`. Default: 10.
    pub fn pool_maxsize(mut self, connections: usize) -> Self {
        self.engine.pool_maxsize = connections;
        self.changed()
    }

    /// Whether `pool_maxsize` is how many connections to a host there may be at all, those in use
    /// among them; urllib3's `block`. Default: off.
    ///
    /// A request that finds all in use waits until one is given back: until a streamed response is
    /// read to its end or dropped, on whichever thread that is. The wait is a part of the connect
    /// timeout and ends with it, as `NoFreeConnection`, or with the deadline; without both it has
    /// no end. Hosts are counted for each session and identity by themselves.
    pub fn pool_block(mut self, block: bool) -> Self {
        self.engine.pool_block = block;
        self.changed()
    }

    /// The own address to dial from. Default: as the operating system chooses.
    ///
    /// One that is none of this machine's is told by [`build`](Self::build).
    pub fn source_address(mut self, address: IpAddr) -> Self {
        self.engine.source_address = Some(address);
        self.changed()
    }

    /// Who looks names up. Default: the operating system, on a few threads that the process
    /// shares.
    pub fn resolver(mut self, resolver: Arc<dyn Resolve>) -> Self {
        self.engine.resolver = resolver;
        self.changed()
    }

    /// Who is told of each step of every attempt while it is made: names, addresses, TLS, proxies,
    /// heads. Default: nobody.
    ///
    /// For finding out why a server or a proxy does not like a request; an [`Event`] prints itself as
    /// `curl -v` does, without credentials. Another [`transport`](Self::transport) than sockets
    /// tells nothing. In a pool the workers tell at the same time, each on its own thread.
    ///
    /// ```
    /// # fn main() -> Result<(), longhaul::Error> {
    /// let session = longhaul::Session::builder().trace(|event| eprint!("{event}")).build()?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn trace(mut self, listener: impl Fn(&Event<'_>) + Send + Sync + 'static) -> Self {
        self.engine.trace = Trace::new(listener);
        self.changed()
    }

    /// Keeps what goes over the wire: the bytes of each request and response, with their framing and
    /// coding, in [`Attempt::exchange`](crate::error::Attempt::exchange) of every attempt that was
    /// answered. Of each body at most `most` bytes are kept.
    ///
    /// They are kept in memory, beside the decoded body, as long as the response or the error. What
    /// speaks to a proxy alone is left out; the credentials of the request are not. Another
    /// [`transport`](Self::transport) than sockets keeps nothing. The body of a redirect is waited for
    /// as long where its connection ends with it as where that could be used again.
    ///
    /// # Defaults
    /// Nothing is kept, and it costs nothing.
    ///
    /// # Units
    /// Bytes as they came, before decoding.
    pub fn keep_wire(mut self, most: u64) -> Self {
        self.engine.keep_wire = Some(most);
        self.changed()
    }

    /// Shows each exchange whose response was read to its end to this closure, on the thread that read
    /// it.
    pub(crate) fn on_exchange(mut self, seen: impl Fn(&Exchange) + Send + Sync + 'static) -> Self {
        self.on_exchange = Some(Arc::new(seen));
        self.changed()
    }

    /// Cookies that every identity starts with: each gets a copy, and what becomes of it stays its
    /// own. Default: none.
    ///
    /// Through proxies this shows one login to a site by many exits, which some sites take for
    /// theft; that is why no cookie is ever carried from one identity to another by itself.
    pub fn cookies(mut self, jar: CookieJar) -> Self {
        self.cookies = jar;
        self.changed()
    }

    /// Who gathers the cookies of the sessions as they end, also of the workers of a pool or a
    /// batch. Default: nobody, and they end with their session.
    pub fn cookie_collector(mut self, collector: &CookieCollector) -> Self {
        self.cookie_collector = Some(collector.clone());
        self.changed()
    }

    /// The recipe for requests beside the run, whose cookies are nobody's.
    pub(crate) fn without_cookies(mut self) -> Self {
        self.cookies = CookieJar::default();
        self.cookie_collector = None;
        self.changed()
    }

    /// Whether a host that throttles is left alone by all sessions of this recipe until its
    /// Retry-After is over. Default: off; a [`WorkerPool`](crate::WorkerPool) turns it on.
    pub fn host_cooldown(mut self, on: bool) -> Self {
        self.cooldown = on.then(SharedCooldown::default);
        self.changed()
    }

    /// A budget of retries over all sessions of this recipe: beyond it a retry that the policy
    /// permits is refused, with a note in the history. Default: none.
    pub fn retry_budget(mut self, budget: impl Into<Option<RetryBudget>>) -> Self {
        self.restraint.set_budget(budget.into());
        self.changed()
    }

    /// A circuit per host over all sessions of this recipe: a host whose answers are mostly
    /// failures gets no retries for a while, with a note in the history. Default: none.
    pub fn host_circuit(mut self, circuit: impl Into<Option<HostCircuit>>) -> Self {
        self.restraint.set_circuit(circuit.into());
        self.changed()
    }

    /// Where the time comes from. Default: the machine.
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.engine.clock = Arc::clone(&clock);
        self.clock = clock;
        self.changed()
    }

    /// Makes jitter and rotation repeat themselves. Default: seeded by the operating system.
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = Some(seed);
        self.changed()
    }

    /// Another transport than sockets: a [`Script`](crate::transport::Script), or one's own.
    ///
    /// It takes every http and https URL that no [`mount`](Self::mount) does.
    pub fn transport<T>(mut self, make: impl Fn() -> T + Send + Sync + 'static) -> Self
    where
        T: IntoTransport,
    {
        self.make_transport = Some(Arc::new(move || make().into_transport()));
        self.changed()
    }

    /// A hook for every response of a chain; requests' event `response`. See
    /// [`Hooks::response`].
    pub fn response_hook(
        self,
        hook: impl Fn(Response) -> Result<Response, Error> + Send + Sync + 'static,
    ) -> Self {
        self.set(|settings| settings.hooks = std::mem::take(&mut settings.hooks).response(hook))
    }

    /// A hook before each attempt; see [`Hooks::attempt`].
    pub fn attempt_hook(
        self,
        hook: impl Fn(&mut NextAttempt<'_>) -> Result<(), Error> + Send + Sync + 'static,
    ) -> Self {
        self.set(|settings| settings.hooks = std::mem::take(&mut settings.hooks).attempt(hook))
    }

    /// These hooks, in the place of those so far. Default: none.
    pub fn hooks(self, hooks: Hooks) -> Self {
        self.set(|settings| settings.hooks = hooks)
    }

    /// The switch that cuts every socket of this recipe's sessions at once.
    pub fn cutter(&self) -> Arc<Cutter> {
        Arc::clone(&self.engine.cutter)
    }

    /// The recipe as a run uses it: [`Retry::long_run`] where no policy was chosen, and hosts that
    /// throttle are left alone by all workers.
    pub(crate) fn for_runs(mut self, workers: usize) -> Self {
        if !self.retry_chosen {
            self = self.retry(Retry::long_run());
        }
        if self.cooldown.is_none() {
            self = self.host_cooldown(true);
        }
        if !self.hosts_chosen {
            // Each worker has a connection pool of its own; together they must stay well below
            // the usual limit of 1024 open files.
            self.engine.pool_connections = (512 / workers.max(1)).clamp(4, 64);
        }
        self
    }

    /// Checks the settings and makes a session.
    ///
    /// # Errors
    /// `Config` for timeouts of zero, certificates and keys that cannot be used, a range of TLS
    /// versions with nothing in it and a source address of another machine, `InvalidHeader` for a
    /// field that cannot be sent, `InvalidProxyUrl` for a proxy variable of the environment that
    /// cannot be used.
    pub fn build(&self) -> Result<Session, Error> {
        let recipe = self.resolved()?;
        let seed = recipe.seed;
        let stream = recipe.streams.fetch_add(1, Ordering::Relaxed);
        let rng = seed.map_or_else(Rng::from_os, |seed| Rng::stream(seed, stream));
        let transport = recipe.bare_transport()?;
        let jars = Jars::new(recipe.cookies.clone(), recipe.cookie_collector.clone());
        Ok(Session::of(recipe, transport, jars, rng))
    }

    /// The recipe with the environment looked at, and nothing wrong in it.
    pub(crate) fn resolved(&self) -> Result<Self, Error> {
        if let Some((kind, message)) = &self.mistake {
            return Err(Error::local(*kind, message.clone()));
        }
        let mut recipe = self.clone();
        recipe.settings.timeouts.validate()?;
        recipe.settings.tls.validate()?;
        if recipe.settings.trust_env {
            recipe.read_environment()?;
        }
        Ok(recipe)
    }

    /// A transport of its own, for single attempts that no session makes.
    pub(crate) fn bare_transport(&self) -> Result<Box<dyn Transport>, Error> {
        self.make(&self.settings.tls)
    }

    /// Where the time of this recipe comes from.
    pub(crate) fn time(&self) -> &dyn Clock {
        &*self.clock
    }

    /// Notes by which exit a new connection of `identity` was seen to come.
    pub(crate) fn note_exit(&self, identity: Identity, exit: IpAddr) {
        lock(&self.exits.book).note(identity, exit);
        self.exits.any.store(true, Ordering::Relaxed);
    }

    /// The exit of `identity`, where it is known.
    pub(super) fn exit_of(&self, identity: Identity) -> Option<Arc<str>> {
        self.exits.any.load(Ordering::Relaxed).then(|| lock(&self.exits.book).of(identity))?
    }

    fn read_environment(&mut self) -> Result<(), Error> {
        if self.env.is_none() {
            self.env = Some(Arc::new(EnvProxies::from_env()?));
        }
        self.bundle = environment::ca_bundle();
        if self.bundle.is_some() && self.settings.tls.verify == Verify::On {
            let settings = Arc::make_mut(&mut self.settings);
            settings.tls.verify = self.bundle.clone().unwrap_or_default();
        }
        if self.settings.netrc.is_none()
            && let Some(netrc) = self.netrc.get_or_init(|| environment::netrc().map(Arc::new))
        {
            Arc::make_mut(&mut self.settings).netrc = Some(Arc::clone(netrc));
        }
        Ok(())
    }

    /// A request's settings, with what [`Verify::On`] means in this environment.
    pub(super) fn under_environment(&self, mut tls: TlsSettings) -> TlsSettings {
        if tls.verify == Verify::On
            && let Some(bundle) = &self.bundle
        {
            tls.verify = bundle.clone();
        }
        tls
    }

    pub(super) fn make(&self, tls: &TlsSettings) -> Result<Box<dyn Transport>, Error> {
        match &self.make_transport {
            Some(make) => make(),
            None => {
                let mut config = self.engine.clone();
                config.tls = tls.clone();
                Ok(Box::new(Engine::new(&config)?))
            }
        }
    }

    /// The worst case of one URL under these settings: the tight maximum up to the response head.
    ///
    /// [`WorstCase::of`] has the other answers.
    pub fn worst_case(&self) -> Bound {
        WorstCase::of(&self.settings.retry, &self.settings.timeouts).exact()
    }

    /// The numbers of each proxy of the pool, in the order of the list; empty without a pool.
    pub fn proxy_stats(&self) -> Vec<ProxyStats> {
        self.pool.as_ref().map(|pool| lock(pool).stats()).unwrap_or_default()
    }

    /// Runs `work` with the session of this recipe that belongs to the calling thread, which is
    /// made on the first call.
    ///
    /// For threads of one's own, or rayon's: cookies and connections stay with the thread.
    ///
    /// # Errors
    /// As [`build`](Self::build).
    pub fn local<T>(&self, work: impl FnOnce(&Session) -> T) -> Result<T, Error> {
        /// A thread that goes through many recipes keeps the last few sessions.
        const KEPT: usize = 4;
        thread_local! {
            static SESSIONS: RefCell<Vec<(u64, Rc<Session>)>> = const { RefCell::new(Vec::new()) };
        }
        let known = SESSIONS.with_borrow(|sessions| {
            sessions.iter().find(|(id, _)| *id == self.id).map(|(_, session)| Rc::clone(session))
        });
        let session = match known {
            Some(session) => session,
            None => {
                let session = Rc::new(self.build()?);
                SESSIONS.with_borrow_mut(|sessions| {
                    if sessions.len() >= KEPT {
                        sessions.remove(0);
                    }
                    sessions.push((self.id, Rc::clone(&session)));
                });
                session
            }
        };
        Ok(work(&session))
    }
}
