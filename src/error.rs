//! One error type, sorted by the names that a `requests` log would show.
//!
//! An [`Error`] answers three questions that a long run asks of every failure: *what* happened
//! ([`ErrorKind`]), *when* in the attempt ([`Phase`]) and *who* is to blame ([`Fault`]). The last
//! two are recorded in the transport where the failure happens; they are never guessed from a
//! message, and the retry settings never change them. Nothing in an error prints a credential:
//! URLs and proxies are redacted before they get here.

mod exchange;
mod history;
mod kind;

pub use exchange::{Exchange, Message, Truncated};
pub use history::{Attempt, AttemptError, Refusal, WaitReason};
pub use kind::{ErrorKind, Fault, Phase};

use std::any::Any;
use std::error::Error as StdError;
use std::fmt;
use std::io;
use std::sync::Arc;
use std::time::Duration;

/// The reply of a proxy that refused, kept as it came.
#[derive(Clone, PartialEq, Eq)]
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

/// The words of the proxy are left out: it may repeat the credentials that it refused.
impl fmt::Debug for ProxyReply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.headers.keys().map(http::HeaderName::as_str).collect();
        f.debug_struct("ProxyReply")
            .field("code", &self.code)
            .field("socks", &self.socks)
            .field("headers", &names)
            .field("body", &format_args!("{} bytes", self.body.len()))
            .finish_non_exhaustive()
    }
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
    ///
    /// For hooks, and for transports of one's own: `phase` and `fault` decide what it is charged
    /// to and who is to blame.
    ///
    /// # Examples
    /// ```
    /// use longhaul::error::{Error, ErrorKind, Fault, Phase};
    ///
    /// let text = "the page is the form for logging in";
    /// let error = Error::new(ErrorKind::Hook, Phase::Body, Fault::Target, text);
    /// assert_eq!(error.to_string(), text);
    /// ```
    pub fn new(kind: ErrorKind, phase: Phase, fault: Fault, message: impl Into<String>) -> Self {
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

    /// The name of the exception in a `requests` log: that of the kind, but `ProxyError` where TLS
    /// with the proxy failed and not with the target.
    pub fn requests_name(&self) -> &'static str {
        self.0.kind.requests_name_by(self.0.fault)
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

    /// The cause, as [`source`](StdError::source) gives it back.
    pub fn with_source(mut self, source: impl StdError + Send + Sync + 'static) -> Self {
        self.0.source = Some(Arc::new(source));
        self
    }

    /// Sets [`is_unsent`](Self::is_unsent), which goes by the phase unless it is set.
    pub fn with_unsent(mut self, unsent: bool) -> Self {
        self.0.unsent = unsent;
        self
    }

    /// Sets [`is_stale`](Self::is_stale).
    pub fn with_stale(mut self, stale: bool) -> Self {
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
    fn the_words_of_a_proxy_are_not_printed() {
        let mut headers = http::HeaderMap::new();
        headers.insert("x-given", http::HeaderValue::from_static("secret"));
        let (reason, body) = ("no secret".to_owned(), bytes::Bytes::from("secret"));
        let reply = ProxyReply { code: 407, socks: false, reason, headers, body };
        let shown = format!("{reply:?}");
        assert!(shown.contains("407") && shown.contains("x-given"), "{shown}");
        assert!(!shown.contains("secret"), "{shown}");
    }

    #[test]
    fn an_error_is_one_pointer_and_survives_an_io_interface() {
        assert_eq!(size_of::<Error>(), size_of::<usize>());
        let error = Error::new(ErrorKind::ReadTimeout, Phase::Body, Fault::Target, "silence");
        let back = Error::from_io(error.into_io(), Phase::Headers, Fault::Local);
        assert_eq!((back.kind(), back.phase()), (ErrorKind::ReadTimeout, Phase::Body));
    }
}
