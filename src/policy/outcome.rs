//! What came of one attempt, in the words of the retry policy.

use crate::error::{ErrorKind, Phase};
use std::time::Duration;

/// Which budget an outcome is charged to (besides `total`).
#[non_exhaustive]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Category {
    /// Nothing of the request can have arrived: DNS, TCP, proxy handshake, TLS.
    Connect,
    /// From the first byte of the request on; the method gate applies.
    Read,
    /// A redirect that is about to be followed.
    Redirect,
    /// A status of the forcelist, or one that Retry-After triggers.
    Status,
    /// Anything else.
    Other,
}

/// What came of one attempt.
#[non_exhaustive]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// The attempt failed without a usable response.
    Error {
        /// The budget it is charged to; [`Category::Connect`], [`Category::Read`] or
        /// [`Category::Other`].
        category: Category,
        /// Outside every budget: a refused certificate, 407, a name that does not exist.
        permanent: bool,
        /// The wait that the proxy asked for, where it did.
        retry_after: Option<Duration>,
    },
    /// A response head arrived (and its body, where it is read within the attempt).
    Status {
        /// The status.
        status: u16,
        /// The wait that Retry-After asks for; `None` where it is absent or unusable,
        /// `Some(ZERO)` where it names no time ahead.
        retry_after: Option<Duration>,
    },
}

impl Outcome {
    /// The outcome of an attempt that failed with this kind in this phase.
    pub fn of_error(kind: ErrorKind, phase: Phase, retry_after: Option<Duration>) -> Self {
        let _ = (kind, phase, retry_after);
        unimplemented!()
    }
}

/// The class of a finished URL, as a run counts it.
#[non_exhaustive]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Class {
    /// 1xx to 3xx that are handed out, and 2xx.
    Ok,
    /// 408, 425, 429, 5xx and failures that may pass: worth a second pass.
    Retryable,
    /// 400, 401, 404, 410 and the other 4xx: asking again changes nothing.
    Permanent,
    /// 403: about the shape of the request; later, slower, through another identity.
    Refused,
    /// 407: stops the run.
    ProxyAuth,
    /// The input itself is wrong.
    Input,
}

impl Class {
    /// The class of a response with this status.
    pub fn of_status(status: u16) -> Self {
        let _ = status;
        unimplemented!()
    }

    /// The class of a URL that ended with this kind of error.
    pub fn of_error(kind: ErrorKind) -> Self {
        let _ = kind;
        unimplemented!()
    }

    /// A stable lower-case name, as it stands in records.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Retryable => "retryable",
            Self::Permanent => "permanent",
            Self::Refused => "refused",
            Self::ProxyAuth => "proxy_auth",
            Self::Input => "input",
        }
    }
}
