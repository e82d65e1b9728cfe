//! One attempt over one route; the only layer that names the HTTP engine.
//!
//! A [`Transport`] makes one attempt: it neither retries nor redirects, knows no cookies, and
//! decodes nothing. What it owes to the layers above is *where* an attempt failed and by whose
//! fault, since nobody can find out later. [`Engine`] is the one that speaks to the world,
//! [`Script`] the one that plays what a test wants to see.
//!
//! ureq reads the responses: it knows when a message is complete, decodes chunks, and says when a
//! connection can be used again. Around it stands what a long run through proxies needs and ureq
//! leaves to its connector and transport seam:
//!
//! ```text
//! Engine ── idle ──────────── a kept-alive connection of this identity, or
//!   │       connect ───────── dial (resolve, race of addresses) ─ tls ─ http_proxy | socks ─ tls
//!   ├────── request_head ──── the head as the session prepared it, written with the body
//!   └────── ureq ── wire ──── the response: head, dechunk, then body
//! ```
//!
//! All of it runs under the clocks of [`AttemptLimits`], and every socket hangs on
//! the [`Cutter`] of its configuration.

mod body;
mod connect;
mod crowd;
mod cutter;
mod dechunk;
mod dial;
mod engine;
#[cfg(fuzzing)]
pub mod fuzz;
mod head;
mod hosts;
mod http_proxy;
mod idle;
mod kept;
mod map_error;
mod pinned;
mod request_head;
mod resolve;
mod script;
mod socket;
mod socks;
mod stream;
mod tls;
mod trace;
mod upload;
mod wait;
mod wire;

pub use cutter::Cutter;
pub use engine::{Engine, EngineConfig, Kept};
pub use pinned::Pinned;
pub use resolve::{Resolve, ResolveError, SystemResolver};
pub use script::{Asked, Play, Script};
pub use trace::{Event, Peer, Trace, TracedHead};

use crate::error::{Error, Exchange};
use crate::message::{ConnectionFacts, Headers, Timings};
use crate::proxy::{Identity, Route};
use http::{HeaderMap, Method};
use std::fmt;
use std::io::{self, Read};
use std::sync::Arc;
use std::time::{Duration, Instant};
use url::Url;

/// What is sent in one attempt.
#[derive(Debug)]
#[non_exhaustive]
pub struct Outgoing<'a> {
    /// The method.
    pub method: &'a Method,
    /// The target; its fragment is not sent.
    pub url: &'a Url,
    /// Fields in wire order, Cookie included; Host is put first unless it is among them, and
    /// framing fields are added.
    pub headers: &'a Headers,
    /// The body.
    pub body: OutgoingBody<'a>,
}

impl<'a> Outgoing<'a> {
    /// An attempt without a body.
    pub fn new(method: &'a Method, url: &'a Url, headers: &'a Headers) -> Self {
        Self { method, url, headers, body: OutgoingBody::Empty }
    }
}

/// The body of one attempt.
#[non_exhaustive]
pub enum OutgoingBody<'a> {
    /// None.
    Empty,
    /// In memory: sent with Content-Length.
    Bytes(&'a [u8]),
    /// Read to its end: with Content-Length where the length is known, chunked otherwise.
    Reader(&'a mut (dyn Read + Send), Option<u64>),
}

impl fmt::Debug for OutgoingBody<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => f.write_str("Empty"),
            Self::Bytes(bytes) => write!(f, "Bytes({})", bytes.len()),
            Self::Reader(_, length) => write!(f, "Reader({length:?})"),
        }
    }
}

/// The clocks of one attempt.
#[derive(Debug, Clone, Copy, Default)]
pub struct AttemptLimits {
    /// DNS, TCP, proxy handshake and TLS together.
    pub connect: Option<Duration>,
    /// The longest silence.
    pub read: Option<Duration>,
    /// The end of everything, body included.
    pub deadline: Option<Instant>,
}

/// A response head, with its body to be read.
#[non_exhaustive]
pub struct Incoming {
    /// The status.
    pub status: u16,
    /// The reason phrase.
    pub reason: String,
    /// Fields.
    pub headers: HeaderMap,
    /// The raw body, not decoded. Its errors carry a [`longhaul::Error`](Error) with phase
    /// [`Body`](crate::error::Phase::Body). Dropping it before its end closes the connection.
    pub body: Box<dyn Read + Send>,
    /// Phases up to the head.
    pub timings: Timings,
    /// The connection.
    pub connection: ConnectionFacts,
    /// What went over the wire, where it is kept; it grows while the body is read.
    pub exchange: Option<Arc<Exchange>>,
    /// Counts and hastens the reading of the body.
    gauge: Option<wire::Gauge>,
    /// How many bytes at least stand between here and a connection that can be used again; `None`
    /// where it cannot be used again, whatever is read.
    rest: Option<u64>,
}

impl fmt::Debug for Incoming {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Incoming({} {})", self.status, self.reason)
    }
}

impl Incoming {
    /// A response with facts that nobody measured.
    pub fn new(
        status: u16,
        reason: impl Into<String>,
        headers: HeaderMap,
        body: Box<dyn Read + Send>,
    ) -> Self {
        Self {
            status,
            reason: reason.into(),
            headers,
            body,
            timings: Timings::default(),
            connection: ConnectionFacts::default(),
            exchange: None,
            gauge: None,
            rest: Some(0),
        }
    }

    /// Brings [`received_bytes`](ConnectionFacts::received_bytes) up to what was read by now.
    pub fn count_received(&mut self) {
        if let Some(gauge) = &self.gauge {
            self.connection.received_bytes = gauge.received();
        }
    }

    /// Lets every read of the body fail once this time has come; only the first call counts.
    pub(crate) fn hasten(&self, until: Option<Instant>) {
        if let (Some(gauge), Some(until)) = (&self.gauge, until) {
            gauge.brake(until);
        }
    }

    /// Reads what is left of the body and throws it away, so that the connection can be used
    /// again; closes the connection where that would take more than `most` bytes or past `until`.
    ///
    /// Where it is known from the head that it would, or that the connection ends with its body,
    /// nothing is read: waiting could gain nothing, unless what comes is kept.
    pub fn drain(mut self, most: u64, until: Option<Instant>) {
        if self.exchange.is_none() && self.rest.is_none_or(|rest| rest > most) {
            return;
        }
        self.hasten(until);
        // A failure closes the connection, which is what is wanted then.
        let _ = io::copy(&mut (&mut self.body).take(most), &mut io::sink());
    }
}

/// Makes one attempt: no retry, no redirect, no cookie.
pub trait Transport: fmt::Debug + Send {
    /// Sends the request over the route and reads the response head.
    ///
    /// # Errors
    /// One error with its phase and fault as they were at the failure, with `url` and `proxy` set
    /// and redacted; `is_unsent` and `is_stale` are true to the wire.
    fn attempt(
        &mut self,
        outgoing: Outgoing<'_>,
        route: &Route,
        limits: &AttemptLimits,
    ) -> Result<Incoming, Error>;

    /// Closes every idle connection of this identity and forgets its TLS tickets.
    fn forget(&mut self, identity: Identity) {
        let _ = identity;
    }

    /// Closes every idle connection.
    fn close(&mut self) {}
}

/// What makes a transport may fail: [`Engine::new`] reads certificates.
pub trait IntoTransport {
    /// The transport.
    ///
    /// # Errors
    /// Those of making it.
    fn into_transport(self) -> Result<Box<dyn Transport>, Error>;
}

impl<T: Transport + 'static> IntoTransport for T {
    fn into_transport(self) -> Result<Box<dyn Transport>, Error> {
        Ok(Box::new(self))
    }
}

impl<T: Transport + 'static> IntoTransport for Result<T, Error> {
    fn into_transport(self) -> Result<Box<dyn Transport>, Error> {
        self.map(|transport| Box::new(transport) as Box<dyn Transport>)
    }
}
