//! A response.

use crate::error::{Attempt, Error};
use crate::proxy::Identity;
use bytes::Bytes;
use http::{HeaderMap, Method};
use std::fmt;
use std::io::Read;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use url::Url;

/// How long each phase of the last attempt took; `None` where a phase did not happen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Timings {
    /// Lookup of the name that was dialled.
    pub dns: Option<Duration>,
    /// TCP.
    pub connect: Option<Duration>,
    /// CONNECT or SOCKS.
    pub proxy: Option<Duration>,
    /// TLS.
    pub tls: Option<Duration>,
    /// From the start of the attempt to the response head.
    pub first_byte: Option<Duration>,
    /// The whole attempt, body included.
    pub total: Duration,
}

/// The connection that carried the response.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct ConnectionFacts {
    /// Whether it was a kept-alive one.
    pub reused: bool,
    /// Own address.
    pub local: Option<SocketAddr>,
    /// The peer: the target, or the proxy.
    pub peer: Option<SocketAddr>,
    /// Direct or the proxy's; `None` for a scripted transport.
    pub identity: Option<Identity>,
    /// TLS version and cipher suite, where there is TLS.
    pub tls: Option<String>,
}

/// What a flight makes a response of.
pub struct ResponseParts {
    /// The method of the last hop.
    pub method: Method,
    /// The final URL, with its fragment.
    pub url: Url,
    /// The status.
    pub status: u16,
    /// The reason phrase as it came.
    pub reason: String,
    /// Fields, in order per name.
    pub headers: HeaderMap,
    /// The body: read already, or to be read.
    pub body: ResponseBody,
    /// Body bytes that came off the wire.
    pub wire_bytes: u64,
    /// Every hop before this one.
    pub history: Vec<Response>,
    /// Every attempt.
    pub attempts: Vec<Attempt>,
    /// From the first attempt to the end, waits included.
    pub elapsed: Duration,
    /// Phases of the last attempt.
    pub timings: Timings,
    /// The connection of the last attempt.
    pub connection: ConnectionFacts,
    /// The proxy of the last attempt, redacted.
    pub proxy: Option<Arc<str>>,
}

/// A body that is there, or still to come.
#[non_exhaustive]
pub enum ResponseBody {
    /// Read and decoded.
    Bytes(Bytes),
    /// Decoded while it is read.
    Reader(Mutex<Box<dyn Read + Send>>),
}

/// The answer to a request.
pub struct Response(Box<ResponseParts>);

impl Response {
    /// Puts a response together.
    pub fn from_parts(parts: ResponseParts) -> Self {
        Self(Box::new(parts))
    }
    /// Takes it apart.
    pub fn into_parts(self) -> ResponseParts {
        *self.0
    }
    /// The status code.
    pub fn status(&self) -> u16 {
        self.0.status
    }
    /// The fields.
    pub fn headers(&self) -> &HeaderMap {
        &self.0.headers
    }
    /// The final URL.
    pub fn url(&self) -> &Url {
        &self.0.url
    }
    /// Every attempt that was made, oldest first.
    pub fn attempts(&self) -> &[Attempt] {
        &self.0.attempts
    }
    /// The proxy of the last attempt, without credentials.
    pub fn proxy(&self) -> Option<&str> {
        self.0.proxy.as_deref()
    }
    /// Phases of the last attempt.
    pub fn timings(&self) -> Timings {
        self.0.timings
    }
    /// From the first attempt to the end, waits included.
    pub fn elapsed(&self) -> Duration {
        self.0.elapsed
    }
    /// The method of the last hop.
    pub fn method(&self) -> &Method {
        &self.0.method
    }
    /// The body; empty where it is streamed and was not read.
    pub fn body(&self) -> &[u8] {
        match &self.0.body {
            ResponseBody::Bytes(bytes) => bytes,
            ResponseBody::Reader(_) => &[],
        }
    }
    /// Body bytes that came off the wire.
    pub fn wire_bytes(&self) -> u64 {
        self.0.wire_bytes
    }
    /// The connection of the last attempt.
    pub fn connection(&self) -> &ConnectionFacts {
        &self.0.connection
    }
    /// Every hop before this one.
    pub fn history(&self) -> &[Response] {
        &self.0.history
    }
    /// The text by the charset rules; reads the body where it is streamed.
    ///
    /// # Errors
    /// Those of reading the body; never for a charset.
    pub fn text(&self) -> Result<String, Error> {
        unimplemented!()
    }
    // Also: reason, ok, is_redirect, json, bytes(self)->Result<Bytes>, reader(self)->impl Read, lines, copy_to,
    // encoding, links, raise_for_status(self) -> Result<Self, Error>, content_type.
}

impl Error {
    /// The response that came with the failure, where there is one: the last of an exhausted
    /// retry, or the one that [`raise_for_status`](Response::raise_for_status) rejected.
    pub fn response(&self) -> Option<&Response> {
        self.payload().and_then(|payload| payload.downcast_ref())
    }

    /// Takes the response out of the error.
    pub fn into_response(self) -> Option<Response> {
        self.into_payload().and_then(|payload| payload.downcast().ok()).map(|boxed| *boxed)
    }

    pub(crate) fn with_response(self, response: Response) -> Self {
        self.with_payload(Box::new(response))
    }
}

impl fmt::Debug for Response {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Response({} {})", self.0.status, self.0.url)
    }
}
