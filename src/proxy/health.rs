//! What a proxy has shown of itself.

use std::time::Duration;

/// What an attempt says of the proxy that it went through.
#[non_exhaustive]
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Verdict {
    /// It carried the request: any answer of the target counts.
    Good,
    /// It could not be reached or broke the handshake.
    Bad,
    /// 502 or 504 of the proxy, or a SOCKS reply about the target: a small penalty.
    Doubtful,
    /// 429 or 503 of the proxy: it wants quiet for so long.
    Cool(Option<Duration>),
    /// It rejects the credentials: retired for good.
    Auth,
    /// Says nothing of the proxy.
    Unknown,
}
