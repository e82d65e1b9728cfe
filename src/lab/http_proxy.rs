//! The HTTP proxy of the lab: absolute-form forwarding, CONNECT tunnels, and any other behaviour.
//!
//! It is a small proxy and an honest one: heads pass byte for byte but for the hop-by-hop proxy
//! fields, bodies pass as they come, and the way in which a target fails (a reset, a torn body)
//! reaches the client. What a particular request shall meet instead is decided by a handler that
//! sees the request as it came.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::channel::{Channel, Framing, reset};
use super::dial::Dialer;
use super::origin::Desk;
use super::play::{Cast, play};
use super::received::{Received, has_token, latin1, origin_form};
use super::relay::relay;
use super::script::{Reply, Script, Step};
use super::server::{Counts, Incoming, Log, Server, Setup, Shared, Ticket, greets, watched};
use super::tls::{Ca, Holds, Issued};
use crate::error::Error;

type Handler = Arc<dyn Fn(&Received) -> Option<Script> + Send + Sync>;

/// What an [`HttpProxy`] has counted beyond its [`Counts`].
#[non_exhaustive]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ProxyCounts {
    /// CONNECT requests.
    pub connects: u64,
    /// All other requests.
    pub forwards: u64,
    /// Requests answered with 407 for want of the right credentials.
    pub unauthorized: u64,
    /// Tunnels opened.
    pub tunnels: u64,
    /// Connections made to targets.
    pub dialed: u64,
    /// Bytes passed through tunnels that have ended, both directions together.
    pub tunnelled_bytes: u64,
}

/// A loopback HTTP proxy.
///
/// It looks no name up: `.name("shop.test", address)` says where a name leads, loopback addresses
/// are dialed as they stand, and everything else is answered with 502 unless
/// [`elsewhere`](HttpProxyBuilder::elsewhere) was given. Stops when dropped.
#[derive(Debug)]
pub struct HttpProxy {
    server: Server,
    log: Arc<Log<Received>>,
    tally: Arc<Tally>,
    tls: bool,
}

impl HttpProxy {
    /// A proxy that lets everybody through.
    pub fn builder() -> HttpProxyBuilder {
        HttpProxyBuilder {
            handler: Arc::new(|_| None),
            credentials: None,
            label: None,
            dialer: Dialer::default(),
            holds: None,
            setup: Setup::default(),
        }
    }

    /// Its URL without credentials: `http://127.0.0.1:PORT`, or https where it speaks TLS.
    pub fn url(&self) -> String {
        format!("{}://{}", if self.tls { "https" } else { "http" }, self.address())
    }

    /// What it has counted on its clients' side.
    pub fn counts(&self) -> Counts {
        self.server.shared().counts()
    }

    /// What it has counted as a proxy.
    pub fn proxy_counts(&self) -> ProxyCounts {
        self.tally.counts()
    }

    /// How many requests came on each connection, by the connection's number.
    pub fn requests_per_connection(&self) -> BTreeMap<u64, u64> {
        self.server.shared().requests_per_connection()
    }

    /// The requests seen, oldest first, as the client sent them.
    pub fn log(&self) -> Vec<Received> {
        self.log.all()
    }

    watched!();
}

/// How an [`HttpProxy`] is set up.
#[derive(Clone)]
pub struct HttpProxyBuilder {
    handler: Handler,
    credentials: Option<String>,
    label: Option<String>,
    dialer: Dialer,
    holds: Option<Holds>,
    setup: Setup,
}

impl HttpProxyBuilder {
    /// Is asked about every request before anything else, credentials included; `None` leaves it
    /// to the proxy. [`Step::Tunnel`](super::Step::Tunnel) in its script opens the way to the
    /// target.
    pub fn handler<S: Into<Script>>(
        mut self,
        handler: impl Fn(&Received) -> Option<S> + Send + Sync + 'static,
    ) -> Self {
        self.handler = Arc::new(move |request| handler(request).map(Into::into));
        self
    }

    /// Demands these Basic credentials and answers 407 without them.
    pub fn credentials(mut self, user: &str, password: &str) -> Self {
        self.credentials = Some(STANDARD.encode(format!("{user}:{password}")));
        self
    }

    /// Adds `X-Exit: label` to forwarded requests, so that a target can say through whom it was
    /// asked. A tunnel cannot be added to; see [`exits`](Self::exits).
    pub fn label(mut self, label: impl Into<String>) -> Self {
        self.label = Some(label.into());
        self
    }

    /// Leaves by these local addresses, connection by connection in turn: `127.0.0.2` and its
    /// neighbours make a gateway with several exits that a target sees as peer addresses. Linux
    /// has them all; elsewhere they must be configured first.
    pub fn exits(mut self, addresses: impl IntoIterator<Item = IpAddr>) -> Self {
        self.dialer.exits = addresses.into_iter().collect();
        self
    }

    /// Says where a `host` or `host:port` leads.
    pub fn name(mut self, name: &str, address: SocketAddr) -> Self {
        self.dialer.add_name(name, address);
        self
    }

    /// As [`name`](Self::name), for many.
    pub fn names(mut self, names: &HashMap<String, SocketAddr>) -> Self {
        for (name, address) in names {
            self.dialer.add_name(name, *address);
        }
        self
    }

    /// Says where every name leads that has no place of its own.
    pub fn elsewhere(mut self, address: SocketAddr) -> Self {
        self.dialer.elsewhere = Some(address);
        self
    }

    /// Speaks TLS to its clients, with a certificate of this authority.
    pub fn tls(mut self, ca: &Ca) -> Self {
        self.holds = Some(Holds::Anything(ca.clone()));
        self
    }

    /// Speaks TLS to its clients, with this certificate.
    pub fn certificate(mut self, issued: &Issued) -> Self {
        self.holds = Some(Holds::One(issued.clone()));
        self
    }

    greets!();

    /// Listens here instead of on a free port of 127.0.0.1.
    pub fn address(mut self, address: SocketAddr) -> Self {
        self.setup.address = address;
        self
    }

    /// Keeps the last `count` requests in the log, 10 000 unless told otherwise; 0 keeps none.
    pub fn keep(mut self, count: usize) -> Self {
        self.setup.keep = count;
        self
    }

    /// Accepts no further connection while this many are open, 1024 unless told otherwise.
    pub fn max_connections(mut self, count: usize) -> Self {
        self.setup.max_connections = count;
        self
    }

    /// Listens.
    ///
    /// # Errors
    /// [`ErrorKind::Io`](crate::ErrorKind::Io) when the address cannot be listened on.
    pub fn start(self) -> Result<HttpProxy, Error> {
        let Self { handler, credentials, label, dialer, holds, setup } = self;
        let config = holds.as_ref().map(|holds| holds.config(None)).transpose()?;
        let tls = config.is_some();
        let (shared, log) = (Shared::new(), Arc::new(Log::new(setup.keep)));
        let tally = Arc::new(Tally::default());
        let desk = Desk { shared: Arc::clone(&shared), log: Arc::clone(&log), config };
        let office =
            Office { desk, handler, credentials, label, dialer, tally: Arc::clone(&tally) };
        let server = Server::start("http-proxy", &setup, shared, move |incoming| {
            // A connection that breaks ends its thread and nothing else.
            let _ = office.serve(&incoming);
        })?;
        Ok(HttpProxy { server, log, tally, tls })
    }
}

/// The credentials are left out.
impl fmt::Debug for HttpProxyBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpProxyBuilder")
            .field("credentials", &self.credentials.is_some())
            .field("label", &self.label)
            .field("tls", &self.holds.is_some())
            .field("setup", &self.setup)
            .finish_non_exhaustive()
    }
}

#[derive(Debug, Default)]
struct Tally {
    connects: AtomicU64,
    forwards: AtomicU64,
    unauthorized: AtomicU64,
    tunnels: AtomicU64,
    dialed: AtomicU64,
    tunnelled_bytes: AtomicU64,
}

impl Tally {
    fn counts(&self) -> ProxyCounts {
        let Self { connects, forwards, unauthorized, tunnels, dialed, tunnelled_bytes } = self;
        ProxyCounts {
            connects: connects.load(Ordering::Relaxed),
            forwards: forwards.load(Ordering::Relaxed),
            unauthorized: unauthorized.load(Ordering::Relaxed),
            tunnels: tunnels.load(Ordering::Relaxed),
            dialed: dialed.load(Ordering::Relaxed),
            tunnelled_bytes: tunnelled_bytes.load(Ordering::Relaxed),
        }
    }
}

/// A connection to a target, kept for the next request of the same client to the same place.
struct Upstream {
    address: SocketAddr,
    channel: Channel,
    _ticket: Ticket,
}

/// A connection to a target within reach of the stop.
type Way = (Arc<TcpStream>, Ticket);

struct Office {
    desk: Desk,
    handler: Handler,
    credentials: Option<String>,
    label: Option<String>,
    dialer: Dialer,
    tally: Arc<Tally>,
}

impl Office {
    fn serve(&self, incoming: &Incoming) -> io::Result<()> {
        let mut channel = self.desk.open(incoming)?;
        let mut upstream = None;
        let mut seen = 0;
        while let Some(mut request) = self.desk.head(&mut channel, incoming, &mut seen)? {
            let connect = request.method == "CONNECT";
            let read = if connect { Ok(()) } else { self.desk.body(&mut channel, &mut request) };
            self.desk.note(&request);
            read?;
            let kind = if connect { &self.tally.connects } else { &self.tally.forwards };
            kind.fetch_add(1, Ordering::Relaxed);
            let mut way = None;
            let script = match (self.handler)(&request) {
                Some(script) => self.reachable(script, &request),
                None if !self.admits(&request) => {
                    self.tally.unauthorized.fetch_add(1, Ordering::Relaxed);
                    Reply::new(407)
                        .header("Proxy-Authenticate", "Basic realm=\"lab\"")
                        .body("credentials wanted\n")
                        .into()
                }
                None if connect => {
                    way = self.find(&request).and_then(|at| self.dial(at, incoming).ok());
                    match &way {
                        Some(_) => {
                            Script::send("HTTP/1.1 200 Connection established\r\n\r\n").tunnel()
                        }
                        None => bad_gateway(&request).into(),
                    }
                }
                None => match self.forward(&request, incoming, &mut channel, &mut upstream)? {
                    true => continue,
                    false => return channel.finish(),
                },
            };
            let keep = request.keeps_alive();
            let target = self.find(&request);
            let mut cast = ProxyCast { office: self, incoming, seen: &mut seen, target, way };
            let next = Some(request);
            match play(&script, channel, &self.desk.shared, next, None, &mut cast)? {
                Some(open) if keep => channel = open,
                Some(open) => return open.finish(),
                None => return Ok(()),
            }
        }
        Ok(())
    }

    /// Where the target of a request is.
    fn find(&self, request: &Received) -> Option<SocketAddr> {
        let port = if request.method == "CONNECT" { 443 } else { 80 };
        self.dialer.find(request.host(), request.port().unwrap_or(port))
    }

    fn admits(&self, request: &Received) -> bool {
        let Some(wanted) = &self.credentials else { return true };
        request.header("Proxy-Authorization").and_then(|value| value.split_once(' ')).is_some_and(
            |(scheme, given)| scheme.eq_ignore_ascii_case("basic") && given.trim() == wanted,
        )
    }

    /// Exchanges a script that would open a way to nowhere for a refusal.
    fn reachable(&self, script: Script, request: &Received) -> Script {
        let tunnels = script.steps().contains(&Step::Tunnel);
        match self.find(request) {
            None if tunnels => bad_gateway(request).into(),
            _ => script,
        }
    }

    fn dial(&self, address: SocketAddr, incoming: &Incoming) -> io::Result<Way> {
        let stream = self.dialer.connect(address, incoming.number)?;
        self.tally.dialed.fetch_add(1, Ordering::Relaxed);
        let ticket = self.desk.shared.watch(&stream).ok_or(io::ErrorKind::ConnectionAborted)?;
        Ok((stream, ticket))
    }

    /// Passes a request on and its response back; whether the client's connection stays open.
    fn forward(
        &self,
        request: &Received,
        incoming: &Incoming,
        client: &mut Channel,
        kept: &mut Option<Upstream>,
    ) -> io::Result<bool> {
        let Some(address) = self.find(request) else { return self.refuse(request, client) };
        let message = self.message(request);
        let mut reused = kept.take().filter(|upstream| upstream.address == address);
        loop {
            let again = reused.is_some();
            let mut upstream = match reused.take() {
                Some(upstream) => upstream,
                None => match self.dial(address, incoming) {
                    Ok((stream, ticket)) => {
                        let channel = Channel::plain(&stream, &self.desk.shared)
                            .on_behalf_of(client.stream());
                        Upstream { address, channel, _ticket: ticket }
                    }
                    Err(_) => return self.refuse(request, client),
                },
            };
            let first = upstream.channel.send(&message).and_then(|()| upstream.channel.fill());
            match first {
                Ok(1..) => {}
                Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => {
                    return Err(error);
                }
                // The target has closed a kept connection: a new one is no second attempt.
                Ok(0) | Err(_) if again => continue,
                Ok(0) | Err(_) => return self.refuse(request, client),
            }
            let keep = pass_response(request, &mut upstream.channel, client)?;
            if keep {
                *kept = Some(upstream);
            }
            return Ok(keep && request.keeps_alive());
        }
    }

    fn refuse(&self, request: &Received, client: &mut Channel) -> io::Result<bool> {
        let head = request.method == "HEAD";
        client.send(&bad_gateway(request).render(head))?;
        Ok(request.keeps_alive())
    }

    /// The request in origin form, with the proxy's own fields taken out and its label put in.
    fn message(&self, request: &Received) -> Vec<u8> {
        let mut message = Vec::with_capacity(request.head.len() + request.body.len() + 64);
        let first = format!("{} {} HTTP/1.1", request.method, origin_form(&request.target));
        message.extend(first.chars().map(|char| u8::try_from(u32::from(char)).unwrap_or(b'?')));
        message.extend_from_slice(b"\r\n");
        let mut skipped = false;
        for line in request.head.split_inclusive(|byte| *byte == b'\n').skip(1) {
            if matches!(line, b"\r\n" | b"\n") {
                break;
            }
            // A folded line belongs to the field before it.
            let folded = matches!(line.first(), Some(b' ' | b'\t'));
            if !folded {
                let name = latin1(line.split(|byte| *byte == b':').next().unwrap_or_default());
                skipped = ["proxy-authorization", "proxy-connection", "connection", "expect"]
                    .iter()
                    .chain(["transfer-encoding", "content-length"].iter())
                    .any(|skip| name.trim().eq_ignore_ascii_case(skip));
            }
            if !skipped {
                message.extend_from_slice(line);
            }
        }
        if let Some(label) = &self.label {
            message.extend_from_slice(format!("X-Exit: {label}\r\n").as_bytes());
        }
        // The body was read to its end, so its length is known now, however it came.
        let framed = ["content-length", "transfer-encoding"];
        if framed.iter().any(|name| request.header(name).is_some()) {
            let length = format!("Content-Length: {}\r\n", request.body.len());
            message.extend_from_slice(length.as_bytes());
        }
        message.extend_from_slice(b"\r\n");
        message.extend_from_slice(&request.body);
        message
    }
}

struct ProxyCast<'a> {
    office: &'a Office,
    incoming: &'a Incoming,
    seen: &'a mut u64,
    target: Option<SocketAddr>,
    /// The connection to the target, where the proxy made it before it answered.
    way: Option<Way>,
}

impl Cast for ProxyCast<'_> {
    fn next(&mut self, channel: &mut Channel) -> io::Result<Option<Received>> {
        let desk = &self.office.desk;
        let next = desk.head(channel, self.incoming, self.seen)?;
        let Some(mut request) = next else { return Ok(None) };
        let read = desk.body(channel, &mut request);
        desk.note(&request);
        self.target = self.office.find(&request);
        read.map(|()| Some(request))
    }

    fn tunnel(&mut self, channel: &mut Channel) -> io::Result<()> {
        let tally = &self.office.tally;
        // A script promises before it dials, so a target that refuses ends the connection then.
        let (stream, _ticket) = match (self.way.take(), self.target) {
            (Some(way), _) => way,
            (None, Some(target)) => self.office.dial(target, self.incoming)?,
            (None, None) => return Ok(()),
        };
        tally.tunnels.fetch_add(1, Ordering::Relaxed);
        relay(channel, &stream, &tally.tunnelled_bytes)
    }
}

/// Passes a response through as it comes; whether both connections may be used again.
fn pass_response(request: &Received, from: &mut Channel, to: &mut Channel) -> io::Result<bool> {
    let outcome = loop {
        let head = match from.head() {
            Ok(Some(head)) => head,
            // No HTTP: what came goes on, and so does the end.
            Ok(None) => break Ok(false),
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                to.send(from.ahead())?;
                break Ok(false);
            }
            Err(error) => break Err(error),
        };
        to.send(&head)?;
        let (status, framing, keep) = response_framing(request, &head);
        if (100..200).contains(&status) && status != 101 {
            continue;
        }
        let Some(framing) = framing else { break Ok(keep) };
        let mut failed = None;
        let body = from.body(framing, |piece| {
            to.send(piece.raw()).inspect_err(|error| failed = Some(error.kind()))
        });
        break match body {
            _ if failed.is_some() => Ok(false),
            Ok(()) => Ok(keep && framing != Framing::UntilClose),
            // A torn or malformed body stays what it is: the rest goes on as it comes.
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                to.send(from.ahead()).map(|()| false)
            }
            Err(error) if error.kind() == io::ErrorKind::InvalidData => {
                from.body(Framing::UntilClose, |piece| to.send(piece.raw())).map(|()| false)
            }
            Err(error) => Err(error),
        };
    };
    if outcome.is_err() {
        let _ = reset(to.stream());
    }
    outcome
}

/// Status, framing and whether the target keeps its connection.
fn response_framing(request: &Received, head: &[u8]) -> (u16, Option<Framing>, bool) {
    let text = latin1(head);
    let mut lines = text.lines();
    let first = lines.next().unwrap_or_default();
    let status = first.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0);
    let mut framing = Framing::UntilClose;
    let mut keep = !first.starts_with("HTTP/1.0");
    for (name, value) in lines.filter_map(|line| line.split_once(':')) {
        let (name, value) = (name.trim(), value.trim());
        if name.eq_ignore_ascii_case("transfer-encoding") && has_token(value, "chunked") {
            framing = Framing::Chunked;
        } else if name.eq_ignore_ascii_case("content-length") && framing != Framing::Chunked {
            if let Ok(length) = value.parse() {
                framing = Framing::Length(length);
            }
        } else if name.eq_ignore_ascii_case("connection") && has_token(value, "close") {
            keep = false;
        }
    }
    let bodiless = request.method == "HEAD" || status < 200 || matches!(status, 204 | 304);
    (status, (!bodiless).then_some(framing), keep)
}

fn bad_gateway(request: &Received) -> Reply {
    let host = request.host();
    Reply::new(502).header("X-Lab-Error", "unreachable").body(format!("{host} is not reachable\n"))
}
