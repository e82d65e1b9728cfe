//! What happened, when, and who failed.
//!
//! In requests the name of an exception hangs on the retry settings, on the library that failed and
//! on whether a proxy was in use. Here a kind says what happened and nothing else:
//!
//! - DIFFERENCE(steady-kinds): a read timeout is one in the body too, and after retries, where
//!   requests makes `ConnectionError` of it.
//! - DIFFERENCE(bare-exceptions): every failure has a kind; exceptions of urllib3 and of Python
//!   itself come out of requests for chunks of negative size, for a CA file that is missing and
//!   under `total=False`.
//! - DIFFERENCE(proxy-handshake): what goes wrong between this side and the proxy is a kind of the
//!   proxy's; requests says `ConnectionError` of a CONNECT that breaks off and of all that SOCKS
//!   refuses.
//! - DIFFERENCE(proxy-fault): timeouts and TLS keep their kinds on the way to a proxy, and the fault
//!   is the proxy's; requests says `ProxyError` of some and `ConnectTimeout` of others.
//! - DIFFERENCE(behind-the-proxy): behind the handshake a connection that breaks is the target's;
//!   requests says `ProxyError` of it, even out of a tunnel.

use std::fmt;

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
    /// All connections to this host that `pool_block` permits are in use, and none came free in
    /// time.
    NoFreeConnection,
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
    /// `raise_for_status` met a 4xx or 5xx, or a download a status that is no file.
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
    /// A hook of the user's refused the request or the response.
    Hook,
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
            Self::NameNotFound
            | Self::NameLookup
            | Self::Connection
            | Self::NoFreeConnection
            | Self::Protocol => "ConnectionError",
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
            | Self::Hook
            | Self::Cancelled
            | Self::Config
            | Self::Io
            | Self::Internal => "RequestException",
        }
    }

    /// The same, where it is known who failed: urllib3 makes a `ProxyError` of everything up to the
    /// tunnel.
    pub(crate) const fn requests_name_by(self, fault: Fault) -> &'static str {
        match (self, fault) {
            (Self::Ssl | Self::Certificate, Fault::Proxy) => "ProxyError",
            _ => self.requests_name(),
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
            Self::NoFreeConnection => "no_free_connection",
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
            Self::Hook => "hook",
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
        Self::NoFreeConnection,
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
        Self::Hook,
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
