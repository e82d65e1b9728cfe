//! The transport that speaks HTTP/1.1 over sockets.
//!
//! One attempt takes four steps: a connection is found or made ([`connect`](super::connect)), the
//! request is written, ureq reads the response through our [`Wire`], and the body is left to be
//! read. Nothing here retries, redirects or decodes.
//!
//! ureq gets a stand-in request without a body: the connector hands it the connection on which
//! the real request has already been written. Its own pool, proxy, redirects, timeouts and
//! automatic fields are switched off one by one below.

use super::body::BodyReader;
use super::connect::{Connector, Target, Way};
use super::crowd::{Admission, Place};
use super::cutter::Cutter;
use super::head::Head;
use super::hosts::Hosts;
use super::idle::{Conn, GOODBYE, IdlePool};
use super::kept;
use super::request_head::write_head;
use super::resolve::{Resolve, SystemResolver};
use super::stream::{Written, is_broken};
use super::tls::{self, TlsClients};
use super::trace::{Event, Trace, TracedHead};
use super::upload::Upload;
use super::wait::Wait;
use super::wire::{Sent, Shared, Wire};
use super::{
    AttemptLimits, Incoming, Outgoing, OutgoingBody, Transport, dial, http_proxy, map_error,
};
use crate::error::{Error, ErrorKind, Fault, Phase};
use crate::message::{ConnectionFacts, Timings, TlsSettings};
use crate::proxy::{Identity, Route};
use crate::time::{Clock, SystemClock};
use http::Method;
use std::fmt;
use std::io::Read;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use url::Url;

/// How much of a refusal's body is kept.
const REFUSAL: u64 = 1024;

/// What engines are made of; cheap to clone, and the clones share resolver, roots and the switch.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct EngineConfig {
    /// Certificates and versions.
    pub tls: TlsSettings,
    /// Hosts whose connections are kept (LRU); urllib3's `pool_connections`, default 10.
    pub pool_connections: usize,
    /// Idle connections kept per host; urllib3's `pool_maxsize`, default 10.
    pub pool_maxsize: usize,
    /// Whether `pool_maxsize` bounds the connections in use as well; default off.
    pub pool_block: bool,
    /// The own address to dial from.
    pub source_address: Option<IpAddr>,
    /// The clock.
    pub clock: Arc<dyn Clock>,
    /// Who looks names up. Default: [`SystemResolver::shared`].
    pub resolver: Arc<dyn Resolve>,
    /// The switch that cuts the connections of all engines made from this and its clones.
    pub cutter: Arc<Cutter>,
    /// Who is told of each step. Default: nobody.
    pub trace: Trace,
    /// Whether what goes over the wire is kept, and how much of each body at most. Default: `None`,
    /// nothing.
    pub keep_wire: Option<u64>,
    /// What the engines made from this and its clones have learnt of hosts.
    pub(super) hosts: Arc<Hosts>,
}

/// What an [`Engine`] keeps between attempts.
#[non_exhaustive]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Kept {
    /// Idle connections.
    pub connections: usize,
    /// Hosts, or proxies that fetch, that have a place for idle connections.
    pub hosts: usize,
    /// Identities with TLS tickets.
    pub tls_identities: usize,
}

impl Default for EngineConfig {
    fn default() -> Self {
        Self {
            tls: TlsSettings::default(),
            pool_connections: 10,
            pool_maxsize: 10,
            pool_block: false,
            source_address: None,
            clock: Arc::new(SystemClock),
            resolver: SystemResolver::shared(),
            cutter: Arc::default(),
            trace: Trace::default(),
            keep_wire: None,
            hosts: Arc::default(),
        }
    }
}

/// One engine belongs to one session (one thread).
///
/// A kept-alive request costs two system calls, one `send` and one `recv`, and a third where the
/// connection was idle for a millisecond or longer and has to be probed.
///
/// # Differences from requests
/// - DIFFERENCE(one-connect-budget): the connect timeout covers lookup, all addresses, the proxy
///   handshake and TLS together; urllib3 grants it anew to each address and lets handshakes have
///   the read timeout.
/// - DIFFERENCE(tls-truncation): a body that ends with its connection is complete only where TLS
///   said so (`close_notify`); urllib3 takes any end.
/// - DIFFERENCE(truncated-head): a head needs its empty line; `http.client` takes the end of the
///   connection for it.
/// - DIFFERENCE(head-limits): 200 fields and 64 KiB, and what exceeds them is `TooLarge` and final;
///   `http.client` stops at 100 fields and at a line of 64 KiB, and requests asks again.
/// - DIFFERENCE(length-junk): a Content-Length that is no length, or are two, is a `Protocol` error,
///   as RFC 9112 section 6.3 demands; `http.client` reads on to the end of the connection, and
///   urllib3 raises `InvalidHeader` where two differ.
/// - DIFFERENCE(malformed-fields): a malformed field line is passed over and the fields behind it
///   are kept; `http.client` drops all of them.
/// - DIFFERENCE(chunk-ends): a chunk ends with an end of line; urllib3 skips what stands there.
/// - DIFFERENCE(left-over-bytes): a connection on which more came than the response is not used
///   again; `http.client` may have the rest in a buffer that nobody looks into.
/// - DIFFERENCE(interim): every interim response is passed over; requests returns a 103.
/// - DIFFERENCE(connect-2xx): any 2xx opens a tunnel (RFC 9110 section 9.3.6); `http.client`
///   accepts 200 alone.
/// - DIFFERENCE(tunnel-bytes): what comes together with the reply to a CONNECT belongs to the
///   tunnel; `http.client` loses it, and TLS waits for what has come.
/// - DIFFERENCE(forwarded-407): a 407 to a forwarded request is an error of kind `ProxyAuth`
///   that keeps the reply; requests returns it as a response.
/// - DIFFERENCE(send-timeout): a peer that takes no bytes is a `ReadTimeout` in phase `Send`;
///   requests calls it a broken connection.
pub struct Engine {
    agent: ureq::Agent,
    connector: Connector,
    shared: Arc<Shared>,
    keep_wire: Option<u64>,
    /// Memory that every attempt needs and none keeps.
    key: Vec<u8>,
    head: Vec<u8>,
    piece: Vec<u8>,
}

impl Engine {
    /// An engine with its own connection pool.
    ///
    /// # Errors
    /// `Config` for certificates and keys that cannot be used, for a source address that is none of
    /// this machine's, and for `pool_block` with no connection at all.
    pub fn new(config: &EngineConfig) -> Result<Self, Error> {
        let EngineConfig {
            tls,
            pool_connections,
            pool_maxsize,
            pool_block,
            source_address,
            clock,
            resolver,
            cutter,
            trace,
            keep_wire,
            hosts,
        } = config;
        if let Some(source) = source_address {
            dial::check_source(*source)?;
        }
        if *pool_block && *pool_maxsize == 0 {
            let text = "pool_block permits pool_maxsize connections to a host, and that is 0";
            return Err(Error::config(text));
        }
        let shared = Arc::new(Shared {
            idle: IdlePool::new(*pool_connections, *pool_maxsize, *pool_block),
            clock: Arc::clone(clock),
            cutter: Arc::clone(cutter),
            trace: trace.clone(),
            slot: Slot::default(),
        });
        let connector = Connector {
            tls: TlsClients::new(tls)?,
            resolver: Arc::clone(resolver),
            source: *source_address,
            hosts: Arc::clone(hosts),
            trace: trace.clone(),
        };
        let agent =
            ureq::Agent::with_parts(engine_config(), HandOver(Arc::clone(&shared)), NoResolver);
        let (key, head, piece) = (Vec::new(), Vec::new(), Vec::new());
        Ok(Self { agent, connector, shared, keep_wire: *keep_wire, key, head, piece })
    }

    /// What is kept between attempts; all of it is bounded, whatever a run meets.
    pub fn kept(&self) -> Kept {
        let (connections, hosts) = self.shared.idle.kept();
        Kept { connections, hosts, tls_identities: self.connector.tls.len() }
    }

    fn make(
        &mut self,
        outgoing: Outgoing<'_>,
        route: &Route,
        limits: &AttemptLimits,
    ) -> Result<Incoming, Error> {
        let begun = self.shared.clock.now();
        if self.shared.cutter.is_cut() {
            return Err(map_error::cancelled(Phase::Prepare));
        }
        if self.shared.trace.listens() {
            let (method, url) = (outgoing.method, &*shown(outgoing.url));
            let proxy = route.shown.as_deref();
            self.shared.trace.tell(|| Event::Attempt { method, url, proxy });
        }
        let target = Target::of(outgoing.url)?;
        let way = Way::of(&target, route);
        let user_agent = outgoing.headers.get("user-agent");
        let says_close = outgoing.headers.get("connection").is_some_and(|value| {
            value
                .split(|byte| *byte == b',')
                .any(|word| word.trim_ascii().eq_ignore_ascii_case(b"close"))
        });

        self.head.clear();
        let forwarded = way == Way::Forward;
        write_head(&mut self.head, &outgoing, route, forwarded)?;
        self.key.clear();
        way.write_key(&mut self.key, &target, route);
        let mut timings = Timings::default();
        let wait = Wait::connect(&*self.shared.clock, begun, limits);
        let listen = listen(&outgoing, begun, limits);
        let mut conn = match self.place(&target, route, listen, begun, &wait)? {
            Start::Kept(conn) => {
                self.shared.trace.tell(|| Event::Reused {
                    local: conn.stream.local(),
                    peer: conn.stream.peer(),
                    tls: conn.tls.as_deref(),
                });
                conn
            }
            Start::New(place) => {
                let mut conn = self.connector.connect(
                    way,
                    &target,
                    route,
                    user_agent,
                    Arc::from(self.key.as_slice()),
                    &self.shared.cutter,
                    &wait,
                    &mut timings,
                )?;
                conn.place = place;
                conn
            }
        };

        let request = Sent {
            head: *outgoing.method == Method::HEAD,
            forwarded,
            reused: conn.idle_since.is_some(),
            bytes: 0,
            keep: route.keep_alive && !says_close,
        };
        self.shared.trace.tell(|| Event::Sent(TracedHead::new(&self.head)));
        let mut kept = match self.keep_wire {
            Some(most) => {
                let wall = self.shared.clock.wall();
                Some(kept::Request::new(&outgoing, forwarded, wall, most)?)
            }
            None => None,
        };
        let (written, bytes) =
            self.send(&mut conn, outgoing.body, request, limits, kept.as_mut())?;
        let request = Sent { keep: request.keep && written == Written::All, bytes, ..request };
        let exchange = kept.map(|kept| {
            let body = bytes.saturating_sub(self.head.len() as u64);
            // Of a proxy it would be the proxy's.
            let peer = conn.stream.peer().filter(|_| route.proxy.is_none());
            kept.sent(written, body, peer.map(|peer| peer.ip()))
        });
        let wire = Wire::new(conn, Arc::clone(&self.shared), *limits, request, exchange);
        self.receive(wire, outgoing.url, route, begun, timings)
    }

    /// A connection that is kept, or the right to make one, where that is limited.
    fn place(
        &self,
        target: &Target<'_>,
        route: &Route,
        listen: Option<Duration>,
        begun: Instant,
        wait: &Wait<'_>,
    ) -> Result<Start, Error> {
        let idle = &self.shared.idle;
        let mut now = begun;
        loop {
            let seen = idle.crowd().map(|crowd| crowd.moves());
            if route.fresh {
                idle.close(&self.key);
            } else if let Some(conn) = idle.take(&self.key, now, listen) {
                return Ok(Start::Kept(conn));
            }
            let (Some(crowd), Some(seen)) = (idle.crowd(), seen) else {
                return Ok(Start::New(None));
            };
            let cutter = &self.shared.cutter;
            match crowd.admit(&self.key, target.host, seen, wait, cutter)? {
                Admission::Place(place) => return Ok(Start::New(Some(place))),
                Admission::Moved => now = wait.now(),
            }
        }
    }

    /// Writes head and body; also how many bytes went.
    fn send(
        &mut self,
        conn: &mut Conn,
        body: OutgoingBody<'_>,
        request: Sent,
        limits: &AttemptLimits,
        kept: Option<&mut kept::Request>,
    ) -> Result<(Written, u64), Error> {
        let wait = Wait::exchange(&*self.shared.clock, limits);
        let mut upload = Upload::new(&mut conn.stream, &wait);
        let result = match body {
            OutgoingBody::Empty => upload.head(&self.head),
            OutgoingBody::Bytes(bytes) => upload.bytes(&self.head, bytes),
            OutgoingBody::Reader(reader, length) => {
                upload.reader(&self.head, reader, length, &mut self.piece, kept)
            }
        };
        let sent = upload.sent;
        result.map(|written| (written, sent)).map_err(|error| {
            if conn.stream.is_cut() {
                return map_error::cancelled(Phase::Send);
            }
            if !request.reused
                && let Some(refusal) = tls::refused_late(&error, &conn.stream)
            {
                return refusal.with_source(error);
            }
            let stale = request.reused && is_broken(&error);
            map_error::exchange(error, Phase::Send)
                .with_unsent(sent == 0)
                .with_stale(stale)
                .with_reused(request.reused)
        })
    }

    /// Has ureq read the response.
    fn receive(
        &mut self,
        wire: Wire,
        url: &Url,
        route: &Route,
        begun: Instant,
        mut timings: Timings,
    ) -> Result<Incoming, Error> {
        let (Sent { forwarded, reused, keep, .. }, gauge) = (wire.request, wire.gauge());
        let exchange = wire.exchange();
        self.shared.slot.put(wire);
        let mut stand_in = http::Request::new(());
        *stand_in.uri_mut() = http::Uri::from_static("http://in-flight.invalid/");
        let response = self.agent.run(stand_in);
        let arrived = self.shared.slot.take_arrived();
        let response = response
            .map_err(|error| map_error::from_ureq(error, Phase::Headers).with_reused(reused))?;
        let Some(Arrived { head, facts, at }) = arrived else {
            let message = "the engine returned a response that never came";
            return Err(Error::new(ErrorKind::Internal, Phase::Headers, Fault::Local, message));
        };
        if let Some(line) = &head.malformed
            && let Some(host) = url.host_str()
            && self.connector.hosts.is_news(host)
        {
            log::warn!(
                target: "longhaul::connection",
                "{host} sends malformed header fields, which are passed over; the first is {line}"
            );
        }
        timings.first_byte = Some(at.saturating_duration_since(begun));
        timings.total = at.saturating_duration_since(begun);
        let body = BodyReader::new(response.into_body().into_reader(), &head, url, route);
        if forwarded && head.status == 407 {
            // What can be had of the body explains the refusal; it is not worth an error of its
            // own.
            let mut start = Vec::new();
            let _ = body.take(REFUSAL).read_to_end(&mut start);
            let wall = self.shared.clock.wall();
            return Err(http_proxy::refused(head, start, route, Phase::Headers, wall));
        }
        let rest = head.rest().filter(|_| keep);
        let Head { status, reason, headers, .. } = head;
        let mut incoming = Incoming::new(status, reason, headers, Box::new(body));
        incoming.timings = timings;
        incoming.connection = facts;
        incoming.exchange = exchange;
        incoming.gauge = Some(gauge);
        incoming.rest = rest;
        Ok(incoming)
    }
}

/// What an attempt begins with.
enum Start {
    Kept(Conn),
    New(Option<Place>),
}

impl Transport for Engine {
    fn attempt(
        &mut self,
        outgoing: Outgoing<'_>,
        route: &Route,
        limits: &AttemptLimits,
    ) -> Result<Incoming, Error> {
        let url = outgoing.url;
        self.make(outgoing, route, limits)
            .map_err(|error| error.with_url(shown(url)).with_proxy(route.shown.as_deref()))
    }

    fn forget(&mut self, identity: Identity) {
        self.shared.idle.forget(identity);
        self.connector.tls.forget(identity);
    }

    fn close(&mut self) {
        self.shared.idle.clear();
    }
}

/// How long to listen whether a kept connection ends, where this request cannot be sent twice.
fn listen(outgoing: &Outgoing<'_>, begun: Instant, limits: &AttemptLimits) -> Option<Duration> {
    if outgoing.method.is_idempotent() && !matches!(outgoing.body, OutgoingBody::Reader(..)) {
        return None;
    }
    let left = limits.deadline.map(|deadline| deadline.saturating_duration_since(begun));
    Some(left.map_or(GOODBYE, |left| left.min(GOODBYE)))
}

impl fmt::Debug for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Engine").field("idle", &self.shared.idle).finish_non_exhaustive()
    }
}

/// A URL as it may be shown: without credentials, and without what never leaves.
pub(super) fn shown(url: &Url) -> String {
    if url.username().is_empty() && url.password().is_none() {
        let text = url.as_str();
        return text.split_once('#').map_or(text, |(before, _)| before).to_owned();
    }
    let mut url = url.clone();
    // Both succeed for a URL that has a host.
    let _ = (url.set_username(""), url.set_password(None));
    url.set_fragment(None);
    url.into()
}

/// Everything that ureq would do on its own account, switched off.
fn engine_config() -> ureq::config::Config {
    use ureq::config::AutoHeaderValue::None as Nothing;
    ureq::config::Config::builder()
        .proxy(None)
        .http_status_as_error(false)
        .max_redirects(0)
        .max_redirects_will_error(false)
        .user_agent(Nothing)
        .accept(Nothing)
        .accept_encoding(Nothing)
        .allow_non_standard_methods(true)
        .max_idle_connections(0)
        .max_idle_connections_per_host(0)
        // The clocks are those of `wait`; the last of these has a default.
        .timeout_global(None)
        .timeout_await_100(None)
        .max_idle_age(Duration::MAX)
        .build()
}

/// Gives ureq the connection on which the request was written.
#[derive(Debug)]
struct HandOver(Arc<Shared>);

impl ureq::unversioned::transport::Connector for HandOver {
    type Out = Wire;

    fn connect(
        &self,
        _: &ureq::unversioned::transport::ConnectionDetails<'_>,
        _: Option<()>,
    ) -> Result<Option<Wire>, ureq::Error> {
        Ok(self.0.slot.take_wire())
    }
}

/// Looks nothing up: what is dialled is known only below, and often it is a proxy.
#[derive(Debug)]
struct NoResolver;

impl ureq::unversioned::resolver::Resolver for NoResolver {
    fn resolve(
        &self,
        _: &http::Uri,
        _: &ureq::config::Config,
        _: ureq::unversioned::transport::NextTimeout,
    ) -> Result<ureq::unversioned::resolver::ResolvedSocketAddrs, ureq::Error> {
        Ok(self.empty())
    }
}

/// Where the engine and the wire that ureq holds leave things for each other.
///
/// One thread uses it at a time: a lock that nobody else wants.
#[derive(Debug, Default)]
pub(super) struct Slot(Mutex<Handed>);

#[derive(Debug, Default)]
struct Handed {
    wire: Option<Wire>,
    arrived: Option<Arrived>,
}

/// A response head, and the connection that it came on.
#[derive(Debug)]
struct Arrived {
    head: Head,
    facts: ConnectionFacts,
    at: Instant,
}

impl Slot {
    fn put(&self, wire: Wire) {
        let mut handed = self.lock();
        handed.wire = Some(wire);
        handed.arrived = None;
    }

    fn take_wire(&self) -> Option<Wire> {
        self.lock().wire.take()
    }

    /// Called by the wire once the head is there.
    pub(super) fn arrived(
        &self,
        head: Head,
        conn: &Conn,
        request: Sent,
        received: u64,
        at: Instant,
    ) {
        let facts = ConnectionFacts {
            reused: request.reused,
            local: conn.stream.local(),
            peer: conn.stream.peer(),
            identity: Some(conn.identity),
            tls: conn.tls.as_deref().map(str::to_owned),
            sent_bytes: request.bytes,
            received_bytes: received,
        };
        self.lock().arrived = Some(Arrived { head, facts, at });
    }

    fn take_arrived(&self) -> Option<Arrived> {
        self.lock().arrived.take()
    }

    fn lock(&self) -> MutexGuard<'_, Handed> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
