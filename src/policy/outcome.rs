//! What came of one attempt, in the words of the retry policy.
//!
//! A failure is sorted by *when* it happened and not by what the error calls itself: before the
//! first byte of the request went out nothing can have been acted on, and every method may be sent
//! again; after that the method decides. Some failures are no matter of retries at all, because
//! the answer to the same question will be the same.
//!
//! The same knowledge, seen from the end of a URL rather than of an attempt, is its [`Class`]:
//! what a run counts, and what it does with a URL that failed.

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
    /// Anything else. No failure of longhaul's own transport is; urllib3 puts TLS failures and
    /// refused CONNECTs here.
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
    /// A redirect with a Location that is not going to be followed. As
    /// [`Status`](Self::Status), except that urllib3 charges it to `redirect` where the forcelist
    /// makes it retried.
    UnfollowedRedirect {
        /// The status.
        status: u16,
        /// As in [`Status`](Self::Status).
        retry_after: Option<Duration>,
    },
}

impl Outcome {
    /// The outcome of an attempt that failed with this kind in this phase.
    ///
    /// DIFFERENCE(permanent-failures): a refused certificate, 407 and a name that does not exist
    /// are permanent; urllib3 retries the first two as `other` and the last as `connect`.
    /// DIFFERENCE(category-by-phase): before the first byte of the request `connect`, after it
    /// `read`; urllib3 goes by the class of the exception.
    /// DIFFERENCE(body-failures-are-read-errors): a body that breaks off, stalls or cannot be
    /// decoded is a failure of its attempt; requests reads bodies after its retries are over.
    pub fn of_error(kind: ErrorKind, phase: Phase, retry_after: Option<Duration>) -> Self {
        let before_send = phase.is_before_send()
            || matches!(kind, ErrorKind::ConnectTimeout | ErrorKind::ProxyRefused);
        let category = if before_send { Category::Connect } else { Category::Read };
        Self::Error { category, permanent: is_permanent(kind), retry_after }
    }
}

/// Whether the next attempt would meet the same failure for certain.
fn is_permanent(kind: ErrorKind) -> bool {
    match kind {
        ErrorKind::ConnectTimeout
        | ErrorKind::ReadTimeout
        | ErrorKind::NameLookup
        | ErrorKind::Connection
        | ErrorKind::NoFreeConnection
        | ErrorKind::ProxyUnreachable
        | ErrorKind::ProxyRefused
        | ErrorKind::Ssl
        | ErrorKind::Protocol
        | ErrorKind::IncompleteBody
        | ErrorKind::ContentDecoding => false,
        // The world as it is.
        ErrorKind::NameNotFound
        | ErrorKind::Certificate
        | ErrorKind::ProxyAuth
        | ErrorKind::NoProxyAlive
        | ErrorKind::TooLarge
        | ErrorKind::ExitLeak
        // Ends that were decided already.
        | ErrorKind::Deadline
        | ErrorKind::Cancelled
        | ErrorKind::TooManyRedirects
        | ErrorKind::RetriesExhausted
        | ErrorKind::HttpStatus
        // What the user gave, and this machine.
        | ErrorKind::ProxyRequired
        | ErrorKind::InvalidUrl
        | ErrorKind::MissingScheme
        | ErrorKind::InvalidScheme
        | ErrorKind::InvalidHeader
        | ErrorKind::InvalidProxyUrl
        | ErrorKind::InvalidJson
        | ErrorKind::BodyNotReplayable
        | ErrorKind::Hook
        | ErrorKind::Config
        | ErrorKind::Io
        | ErrorKind::Internal => true,
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
    /// All there are.
    pub const ALL: &'static [Self] =
        &[Self::Ok, Self::Retryable, Self::Permanent, Self::Refused, Self::ProxyAuth, Self::Input];

    /// The class of a response with this status.
    ///
    /// A 407 that came out of a TLS tunnel is the target's word and stops nothing; whoever knows
    /// that it did counts it as [`Permanent`](Self::Permanent).
    pub fn of_status(status: u16) -> Self {
        match status {
            0..=399 => Self::Ok,
            403 => Self::Refused,
            407 => Self::ProxyAuth,
            408 | 425 | 429 | 500..=599 => Self::Retryable,
            _ => Self::Permanent,
        }
    }

    /// The class of a URL that ended with this kind of error.
    ///
    /// An error that carries a response ([`ErrorKind::HttpStatus`]) belongs to the class of its
    /// status; without one it is permanent.
    pub fn of_error(kind: ErrorKind) -> Self {
        match kind {
            ErrorKind::ConnectTimeout
            | ErrorKind::ReadTimeout
            | ErrorKind::Deadline
            | ErrorKind::NameLookup
            | ErrorKind::Connection
            | ErrorKind::NoFreeConnection
            | ErrorKind::ProxyUnreachable
            | ErrorKind::ProxyRefused
            | ErrorKind::NoProxyAlive
            | ErrorKind::Ssl
            | ErrorKind::Protocol
            | ErrorKind::IncompleteBody
            | ErrorKind::ContentDecoding
            | ErrorKind::RetriesExhausted
            // The URL is not to blame for a run that was stopped.
            | ErrorKind::ExitLeak
            | ErrorKind::Cancelled => Self::Retryable,
            ErrorKind::NameNotFound
            | ErrorKind::Certificate
            | ErrorKind::TooLarge
            | ErrorKind::TooManyRedirects
            | ErrorKind::HttpStatus
            | ErrorKind::InvalidJson
            | ErrorKind::BodyNotReplayable
            | ErrorKind::Hook
            | ErrorKind::Io
            | ErrorKind::Internal => Self::Permanent,
            ErrorKind::ProxyAuth => Self::ProxyAuth,
            ErrorKind::ProxyRequired
            | ErrorKind::InvalidUrl
            | ErrorKind::MissingScheme
            | ErrorKind::InvalidScheme
            | ErrorKind::InvalidHeader
            | ErrorKind::InvalidProxyUrl
            | ErrorKind::Config => Self::Input,
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_phase_decides_the_budget() {
        use ErrorKind as K;
        for (kind, phase, category) in [
            (K::NameLookup, Phase::Dns, Category::Connect),
            (K::Connection, Phase::Connect, Category::Connect),
            (K::ConnectTimeout, Phase::Tls, Category::Connect),
            (K::ReadTimeout, Phase::Proxy, Category::Connect),
            (K::ProxyUnreachable, Phase::Connect, Category::Connect),
            (K::ProxyRefused, Phase::Proxy, Category::Connect),
            (K::Ssl, Phase::Tls, Category::Connect),
            (K::Connection, Phase::Send, Category::Read),
            (K::ReadTimeout, Phase::Headers, Category::Read),
            (K::Protocol, Phase::Headers, Category::Read),
            (K::Ssl, Phase::Headers, Category::Read),
            (K::IncompleteBody, Phase::Body, Category::Read),
            (K::ContentDecoding, Phase::Body, Category::Read),
        ] {
            let wanted = Outcome::Error { category, permanent: false, retry_after: None };
            assert_eq!(Outcome::of_error(kind, phase, None), wanted, "{kind} {phase}");
        }
    }

    #[test]
    fn what_asking_again_cannot_change_is_permanent() {
        use ErrorKind as K;
        for kind in [K::Certificate, K::ProxyAuth, K::NameNotFound, K::Config, K::InvalidUrl] {
            let outcome = Outcome::of_error(kind, Phase::Tls, None);
            assert!(matches!(outcome, Outcome::Error { permanent: true, .. }), "{kind}");
        }
    }

    #[test]
    fn permanent_failures_are_never_worth_a_second_pass_unless_the_run_was_to_blame() {
        use ErrorKind as K;
        let blameless =
            [K::NoProxyAlive, K::ExitLeak, K::Deadline, K::Cancelled, K::RetriesExhausted];
        for kind in K::ALL.iter().copied() {
            let retryable = Class::of_error(kind) == Class::Retryable;
            assert_eq!(retryable, !is_permanent(kind) || blameless.contains(&kind), "{kind}");
        }
    }

    #[test]
    fn classes_of_statuses() {
        for (status, class) in [
            (200, Class::Ok),
            (204, Class::Ok),
            (304, Class::Ok),
            (400, Class::Permanent),
            (401, Class::Permanent),
            (403, Class::Refused),
            (404, Class::Permanent),
            (407, Class::ProxyAuth),
            (408, Class::Retryable),
            (410, Class::Permanent),
            (425, Class::Retryable),
            (429, Class::Retryable),
            (500, Class::Retryable),
            (599, Class::Retryable),
            (600, Class::Permanent),
        ] {
            assert_eq!(Class::of_status(status), class, "{status}");
        }
    }
}
