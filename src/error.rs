//! One error type, sorted by the names that a `requests` log would show.
//!
//! An [`Error`] answers three questions that a long run asks of every failure: *what* happened
//! ([`ErrorKind`]), *when* in the attempt ([`Phase`]) and *who* is to blame ([`Fault`]). The last
//! two are recorded in the transport where the failure happens; they are never guessed from a
//! message, and the retry settings never change them. Nothing in an error prints a credential:
//! URLs and proxies are redacted before they get here.

use std::any::Any;
use std::error::Error as StdError;
use std::fmt;
use std::io;
use std::sync::Arc;
use std::time::Duration;

/// What kind of failure it was.
///
/// The kinds follow `requests.exceptions` where it has a name, and split it where a run has to act
/// differently; [`requests_name`](ErrorKind::requests_name) gives the name in a `requests` log.
#[non_exhaustive]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ErrorKind {
    /// The connect budget ran out: DNS, TCP, proxy handshake and TLS share it.
    ConnectTimeout,
    /// No byte arrived for as long as the read timeout.
    ReadTimeout,
    /// The deadline of the URL passed.
    Deadline,
    /// The name does not exist; asking again will not change that.
    NameNotFound,
    /// The resolver failed for now.
    NameLookup,
    /// The target could not be connected to, or the connection broke.
    Connection,
    /// The proxy could not be reached, or broke off the handshake.
    ProxyUnreachable,
    /// The proxy answered and refused this request.
    ProxyRefused,
    /// The proxy does not accept the credentials (407, or the SOCKS equivalent).
    ProxyAuth,
    /// No proxy of the pool is usable, and the request must not go direct.
    NoProxyAlive,
    /// The settings demand a proxy, and none covers this URL.
    ProxyRequired,
    /// The TLS handshake failed, though not because of a certificate.
    Ssl,
    /// A certificate was not accepted; asking again will not change that.
    Certificate,
    /// The peer does not speak HTTP as it should.
    Protocol,
    /// The body ended before it was complete, or its chunks were malformed.
    IncompleteBody,
    /// The body could not be decoded as its `Content-Encoding` says.
    ContentDecoding,
    /// A ceiling of the settings was exceeded: wire bytes, decoded bytes or header size.
    TooLarge,
    /// The redirect budget is used up.
    TooManyRedirects,
    /// The retry budget is used up by statuses, and `raise_on_status` is on.
    RetriesExhausted,
    /// `raise_for_status` met a 4xx or 5xx.
    HttpStatus,
    /// The URL cannot be used.
    InvalidUrl,
    /// The URL has no scheme.
    MissingScheme,
    /// The URL has a scheme that longhaul does not speak.
    InvalidScheme,
    /// A header name or value cannot be sent.
    InvalidHeader,
    /// A proxy URL cannot be used.
    InvalidProxyUrl,
    /// The body is not the JSON it should be.
    InvalidJson,
    /// A one-shot body would have to be sent a second time.
    BodyNotReplayable,
    /// The address seen by the world is the own one although a proxy is in use.
    ExitLeak,
    /// The work was given up on purpose: by a stop of the run or by its owner.
    Cancelled,
    /// A setting, flag or file of the user's is wrong.
    Config,
    /// A local file or stream failed.
    Io,
    /// A bug in longhaul or in a closure of the user's.
    Internal,
}

impl ErrorKind {
    /// The name of the exception that `requests` raises in this case.
    ///
    /// Where `requests` has nothing like it, the name of its closest relative.
    pub const fn requests_name(self) -> &'static str {
        match self {
            Self::ConnectTimeout => "ConnectTimeout",
            Self::ReadTimeout => "ReadTimeout",
            Self::Deadline => "Timeout",
            Self::NameNotFound | Self::NameLookup | Self::Connection | Self::Protocol => {
                "ConnectionError"
            }
            Self::ProxyUnreachable | Self::ProxyRefused | Self::ProxyAuth | Self::NoProxyAlive => {
                "ProxyError"
            }
            Self::ProxyRequired | Self::InvalidProxyUrl => "InvalidProxyURL",
            Self::Ssl | Self::Certificate => "SSLError",
            Self::IncompleteBody => "ChunkedEncodingError",
            Self::ContentDecoding => "ContentDecodingError",
            Self::TooManyRedirects => "TooManyRedirects",
            Self::RetriesExhausted => "RetryError",
            Self::HttpStatus => "HTTPError",
            Self::InvalidUrl => "InvalidURL",
            Self::MissingScheme => "MissingSchema",
            Self::InvalidScheme => "InvalidSchema",
            Self::InvalidHeader => "InvalidHeader",
            Self::InvalidJson => "InvalidJSONError",
            Self::BodyNotReplayable => "UnrewindableBodyError",
            Self::TooLarge
            | Self::ExitLeak
            | Self::Cancelled
            | Self::Config
            | Self::Io
            | Self::Internal => "RequestException",
        }
    }

    /// A stable lower-case name, as it stands in records: `connect_timeout`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::ConnectTimeout => "connect_timeout",
            Self::ReadTimeout => "read_timeout",
            Self::Deadline => "deadline",
            Self::NameNotFound => "name_not_found",
            Self::NameLookup => "name_lookup",
            Self::Connection => "connection",
            Self::ProxyUnreachable => "proxy_unreachable",
            Self::ProxyRefused => "proxy_refused",
            Self::ProxyAuth => "proxy_auth",
            Self::NoProxyAlive => "no_proxy_alive",
            Self::ProxyRequired => "proxy_required",
            Self::Ssl => "ssl",
            Self::Certificate => "certificate",
            Self::Protocol => "protocol",
            Self::IncompleteBody => "incomplete_body",
            Self::ContentDecoding => "content_decoding",
            Self::TooLarge => "too_large",
            Self::TooManyRedirects => "too_many_redirects",
            Self::RetriesExhausted => "retries_exhausted",
            Self::HttpStatus => "http_status",
            Self::InvalidUrl => "invalid_url",
            Self::MissingScheme => "missing_scheme",
            Self::InvalidScheme => "invalid_scheme",
            Self::InvalidHeader => "invalid_header",
            Self::InvalidProxyUrl => "invalid_proxy_url",
            Self::InvalidJson => "invalid_json",
            Self::BodyNotReplayable => "body_not_replayable",
            Self::ExitLeak => "exit_leak",
            Self::Cancelled => "cancelled",
            Self::Config => "config",
            Self::Io => "io",
            Self::Internal => "internal",
        }
    }

    /// Every kind, in the order of their declaration.
    pub const ALL: &'static [Self] = &[
        Self::ConnectTimeout,
        Self::ReadTimeout,
        Self::Deadline,
        Self::NameNotFound,
        Self::NameLookup,
        Self::Connection,
        Self::ProxyUnreachable,
        Self::ProxyRefused,
        Self::ProxyAuth,
        Self::NoProxyAlive,
        Self::ProxyRequired,
        Self::Ssl,
        Self::Certificate,
        Self::Protocol,
        Self::IncompleteBody,
        Self::ContentDecoding,
        Self::TooLarge,
        Self::TooManyRedirects,
        Self::RetriesExhausted,
        Self::HttpStatus,
        Self::InvalidUrl,
        Self::MissingScheme,
        Self::InvalidScheme,
        Self::InvalidHeader,
        Self::InvalidProxyUrl,
        Self::InvalidJson,
        Self::BodyNotReplayable,
        Self::ExitLeak,
        Self::Cancelled,
        Self::Config,
        Self::Io,
        Self::Internal,
    ];
}

impl fmt::Display for ErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// When in an attempt it happened.
#[non_exhaustive]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Phase {
    /// Before anything was dialled: preparing, routing, waiting.
    Prepare,
    /// Looking up the name that is dialled.
    Dns,
    /// Connecting the TCP socket, to the target or to the proxy.
    Connect,
    /// Speaking CONNECT or SOCKS with the proxy.
    Proxy,
    /// The TLS handshake with the target (or with an https proxy).
    Tls,
    /// Sending head and body of the request.
    Send,
    /// Waiting for and reading the response head.
    Headers,
    /// Reading the response body.
    Body,
}

impl Phase {
    /// A stable lower-case name, as it stands in records.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Prepare => "prepare",
            Self::Dns => "dns",
            Self::Connect => "connect",
            Self::Proxy => "proxy",
            Self::Tls => "tls",
            Self::Send => "send",
            Self::Headers => "headers",
            Self::Body => "body",
        }
    }

    /// Whether no byte of the request can have reached the target in this phase.
    pub const fn is_before_send(self) -> bool {
        matches!(self, Self::Prepare | Self::Dns | Self::Connect | Self::Proxy | Self::Tls)
    }
}

impl fmt::Display for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Who failed.
#[non_exhaustive]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Fault {
    /// The server behind the URL, or the way to it.
    Target,
    /// The proxy, or the way to it.
    Proxy,
    /// This machine, its settings or its user.
    Local,
}

impl Fault {
    /// A stable lower-case name, as it stands in records.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Target => "target",
            Self::Proxy => "proxy",
            Self::Local => "local",
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The reply of a proxy that refused, kept as it came.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProxyReply {
    /// The HTTP status, or for SOCKS the reply code (`REP`, or `CD` of SOCKS4).
    pub code: u16,
    /// Whether `code` is a SOCKS reply.
    pub socks: bool,
    /// The reason phrase or the meaning of the SOCKS code.
    pub reason: String,
    /// The header fields, in order.
    pub headers: http::HeaderMap,
    /// At most the first KiB of the body.
    pub body: bytes::Bytes,
}

/// The error of every fallible call.
///
/// One pointer wide, so that a `Result` stays small on the paved path.
pub struct Error(Box<Inner>);

struct Inner {
    kind: ErrorKind,
    phase: Phase,
    fault: Fault,
    message: String,
    url: Option<String>,
    proxy: Option<String>,
    /// Nothing of the request can have been acted on.
    unsent: bool,
    /// A kept-alive connection died before the first byte of the response.
    stale: bool,
    /// The attempt used a kept-alive connection.
    reused: bool,
    proxy_reply: Option<ProxyReply>,
    retry_after: Option<Duration>,
    received_bytes: Option<u64>,
    attempts: Vec<Attempt>,
    /// The response that came with the failure; its type lives in a later layer.
    response: Option<Box<dyn Any + Send + Sync>>,
    source: Option<Arc<dyn StdError + Send + Sync>>,
}

impl Error {
    /// An error of this kind; `message` is one sentence without credentials.
    pub(crate) fn new(
        kind: ErrorKind,
        phase: Phase,
        fault: Fault,
        message: impl Into<String>,
    ) -> Self {
        Self(Box::new(Inner {
            kind,
            phase,
            fault,
            message: message.into(),
            url: None,
            proxy: None,
            unsent: phase.is_before_send(),
            stale: false,
            reused: false,
            proxy_reply: None,
            retry_after: None,
            received_bytes: None,
            attempts: Vec::new(),
            response: None,
            source: None,
        }))
    }

    /// A mistake in what the user gave.
    pub(crate) fn local(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self::new(kind, Phase::Prepare, Fault::Local, message)
    }

    /// A wrong setting, flag or file.
    pub(crate) fn config(message: impl Into<String>) -> Self {
        Self::local(ErrorKind::Config, message)
    }

    /// What kind of failure it was.
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// When in the attempt it happened.
    pub fn phase(&self) -> Phase {
        self.0.phase
    }

    /// Who failed.
    pub fn fault(&self) -> Fault {
        self.0.fault
    }

    /// The sentence without URL, proxy and source.
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// The URL of the attempt, without credentials.
    pub fn url(&self) -> Option<&str> {
        self.0.url.as_deref()
    }

    /// The proxy in use, without credentials.
    pub fn proxy(&self) -> Option<&str> {
        self.0.proxy.as_deref()
    }

    /// The refusal of the proxy, where one came.
    pub fn proxy_reply(&self) -> Option<&ProxyReply> {
        self.0.proxy_reply.as_ref()
    }

    /// The wait that the server or proxy asked for.
    pub fn retry_after(&self) -> Option<Duration> {
        self.0.retry_after
    }

    /// How many bytes of the body had arrived.
    pub fn received_bytes(&self) -> Option<u64> {
        self.0.received_bytes
    }

    /// Every attempt that was made, oldest first.
    pub fn attempts(&self) -> &[Attempt] {
        &self.0.attempts
    }

    /// The name of the exception in a `requests` log.
    pub fn requests_name(&self) -> &'static str {
        self.0.kind.requests_name()
    }

    /// Whether time ran out: connect, read or deadline.
    pub fn is_timeout(&self) -> bool {
        matches!(
            self.0.kind,
            ErrorKind::ConnectTimeout | ErrorKind::ReadTimeout | ErrorKind::Deadline
        )
    }

    /// Whether the proxy is what failed or refused.
    pub fn is_proxy(&self) -> bool {
        self.0.fault == Fault::Proxy
    }

    /// Whether no byte of the request can have reached the target.
    pub fn is_unsent(&self) -> bool {
        self.0.unsent
    }

    /// Whether a kept-alive connection died before the first byte of a response.
    pub fn is_stale(&self) -> bool {
        self.0.stale
    }

    pub(crate) fn with_url(mut self, url: impl Into<String>) -> Self {
        self.0.url = Some(url.into());
        self
    }

    pub(crate) fn with_proxy(mut self, proxy: Option<impl Into<String>>) -> Self {
        self.0.proxy = proxy.map(Into::into);
        self
    }

    pub(crate) fn with_source(mut self, source: impl StdError + Send + Sync + 'static) -> Self {
        self.0.source = Some(Arc::new(source));
        self
    }

    pub(crate) fn with_unsent(mut self, unsent: bool) -> Self {
        self.0.unsent = unsent;
        self
    }

    pub(crate) fn with_stale(mut self, stale: bool) -> Self {
        self.0.stale = stale;
        self
    }

    /// Whether the attempt used a kept-alive connection.
    pub(crate) fn is_reused(&self) -> bool {
        self.0.reused
    }

    pub(crate) fn with_reused(mut self, reused: bool) -> Self {
        self.0.reused = reused;
        self
    }

    pub(crate) fn with_proxy_reply(mut self, reply: ProxyReply) -> Self {
        self.0.proxy_reply = Some(reply);
        self
    }

    pub(crate) fn with_retry_after(mut self, wait: Option<Duration>) -> Self {
        self.0.retry_after = wait;
        self
    }

    pub(crate) fn with_received_bytes(mut self, bytes: u64) -> Self {
        self.0.received_bytes = Some(bytes);
        self
    }

    pub(crate) fn with_attempts(mut self, attempts: Vec<Attempt>) -> Self {
        self.0.attempts = attempts;
        self
    }

    pub(crate) fn with_payload(mut self, response: Box<dyn Any + Send + Sync>) -> Self {
        self.0.response = Some(response);
        self
    }

    pub(crate) fn payload(&self) -> Option<&(dyn Any + Send + Sync)> {
        self.0.response.as_deref()
    }

    pub(crate) fn into_payload(self) -> Option<Box<dyn Any + Send + Sync>> {
        self.0.response
    }

    /// Wraps the error for an [`io::Read`] interface; [`Error::from_io`] takes it out again.
    pub(crate) fn into_io(self) -> io::Error {
        let kind = if self.is_timeout() { io::ErrorKind::TimedOut } else { io::ErrorKind::Other };
        io::Error::new(kind, self)
    }

    /// The longhaul error inside of an I/O error, or the I/O error as a new one.
    pub(crate) fn from_io(error: io::Error, phase: Phase, fault: Fault) -> Self {
        match error.downcast::<Self>() {
            Ok(inner) => inner,
            Err(error) => {
                Self::new(ErrorKind::Io, phase, fault, error.to_string()).with_source(error)
            }
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.message)?;
        if let Some(url) = &self.0.url {
            write!(f, " ({url}")?;
            if let Some(proxy) = &self.0.proxy {
                write!(f, " through {proxy}")?;
            }
            f.write_str(")")?;
        } else if let Some(proxy) = &self.0.proxy {
            write!(f, " (through {proxy})")?;
        }
        Ok(())
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Error")
            .field("kind", &self.0.kind)
            .field("phase", &self.0.phase)
            .field("fault", &self.0.fault)
            .field("message", &self.0.message)
            .field("url", &self.0.url)
            .field("proxy", &self.0.proxy)
            .field("attempts", &self.0.attempts.len())
            .finish_non_exhaustive()
    }
}

impl StdError for Error {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.0.source.as_deref().map(|source| source as &(dyn StdError + 'static))
    }
}

/// Why a wait was begun.
#[non_exhaustive]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum WaitReason {
    /// The own backoff between two attempts.
    Backoff,
    /// The wait that a server or proxy asked for.
    RetryAfter,
    /// The host cools down as seen from this identity.
    Cooldown,
    /// A rate or concurrency limit.
    Limit,
    /// No proxy is usable right now.
    NoProxy,
    /// Refused (403): later, slower, through another identity.
    Refused,
}

impl WaitReason {
    /// A stable lower-case name, as it stands in records.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Backoff => "backoff",
            Self::RetryAfter => "retry_after",
            Self::Cooldown => "cooldown",
            Self::Limit => "limit",
            Self::NoProxy => "no_proxy",
            Self::Refused => "refused",
        }
    }
}

/// One entry of the history: one attempt, what came of it and what it was followed by.
#[derive(Debug, Clone, PartialEq)]
pub struct Attempt {
    /// The method of this attempt (a redirect may change it).
    pub method: http::Method,
    /// The URL of this attempt, without credentials; shared with the other attempts on it.
    pub url: Arc<str>,
    /// The proxy, without credentials; `None` is direct.
    pub proxy: Option<Arc<str>>,
    /// The address the world saw, where it is known.
    pub exit: Option<Arc<str>>,
    /// The status, where a response came.
    pub status: Option<u16>,
    /// The failure, where none came.
    pub error: Option<AttemptError>,
    /// How long the attempt took, up to the end of the body or the failure.
    pub elapsed: Duration,
    /// The wait that followed it and its reason, where one did.
    pub wait: Option<(Duration, WaitReason)>,
    /// Whether the attempt used a kept-alive connection.
    pub reused: bool,
    /// Whether this attempt was the free resend after a stale connection.
    pub resend: bool,
    /// Why no further retry was made, where the policy forbade it.
    pub note: Option<&'static str>,
}

/// The failure of one attempt, in the history.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AttemptError {
    /// What kind of failure it was.
    pub kind: ErrorKind,
    /// When in the attempt it happened.
    pub phase: Phase,
    /// Who failed.
    pub fault: Fault,
    /// The sentence.
    pub message: String,
}

impl From<&Error> for AttemptError {
    fn from(error: &Error) -> Self {
        Self {
            kind: error.kind(),
            phase: error.phase(),
            fault: error.fault(),
            message: error.message().to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_kinds_are_distinct_and_complete() {
        let mut names: Vec<_> = ErrorKind::ALL.iter().map(|kind| kind.name()).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), ErrorKind::ALL.len());
        assert_eq!(ErrorKind::Internal as usize + 1, ErrorKind::ALL.len());
    }

    #[test]
    fn an_error_is_one_pointer_and_survives_an_io_interface() {
        assert_eq!(size_of::<Error>(), size_of::<usize>());
        let error = Error::new(ErrorKind::ReadTimeout, Phase::Body, Fault::Target, "silence");
        let back = Error::from_io(error.into_io(), Phase::Headers, Fault::Local);
        assert_eq!((back.kind(), back.phase()), (ErrorKind::ReadTimeout, Phase::Body));
    }
}
