//! The attempts behind a result, and the waits between them.

use super::{Error, ErrorKind, Exchange, Fault, Phase};
use std::sync::Arc;
use std::time::Duration;

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
    /// All there are.
    pub const ALL: &'static [Self] = &[
        Self::Backoff,
        Self::RetryAfter,
        Self::Cooldown,
        Self::Limit,
        Self::NoProxy,
        Self::Refused,
    ];

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
    /// A remark: why no further retry was made where the policy forbade it, what became of a
    /// challenge, or what a refusal means that speaks of TLS.
    pub note: Option<&'static str>,
    /// What tells of a refusal, where a run takes the answer for one.
    pub refusal: Option<Arc<Refusal>>,
    /// What went over the wire, where a response came and the recipe keeps it.
    pub exchange: Option<Arc<Exchange>>,
}

/// What tells of a refusal: who refused, and why it counts as one.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Refusal {
    /// What the response has of what the user calls a block page; `None` for a 403.
    pub matched: Option<String>,
    /// The fields that tell who refused, in the order of their names; of the cookies only names.
    pub headers: http::HeaderMap,
}

impl Refusal {
    /// Of a response with these fields.
    pub(crate) fn of(matched: Option<String>, all: &http::HeaderMap) -> Self {
        let mut headers = http::HeaderMap::new();
        for name in ["server", "cf-ray", "x-cache", "via", "retry-after", "set-cookie"] {
            for value in all.get_all(name) {
                let mut value = value.clone();
                if name == "set-cookie" {
                    let bytes = value.as_bytes();
                    let end = bytes.iter().position(|byte| matches!(byte, b'=' | b';'));
                    let only = http::HeaderValue::from_bytes(
                        bytes.get(..end.unwrap_or(bytes.len())).unwrap_or_default(),
                    );
                    let Ok(only) = only else { continue };
                    value = only;
                }
                headers.append(name, value);
            }
        }
        Self { matched, headers }
    }
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
