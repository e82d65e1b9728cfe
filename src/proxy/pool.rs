//! Many proxies: rotation, health, revival. Pure; a driver holds it under a lock.

use super::{ProxyUrl, Route, Verdict};
use crate::error::Error;
use crate::rng::Rng;
use std::time::Instant;

/// When another proxy is taken.
#[non_exhaustive]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Rotation {
    /// For every request, round robin.
    #[default]
    Request,
    /// Only on a retry; sticky until a fault.
    Retry,
    /// One proxy per host, until a fault.
    Host,
    /// At random.
    Random,
}

/// What a pick depends on.
#[derive(Debug, Clone, Copy)]
pub struct PickRequest<'a> {
    /// The host of the target.
    pub host: &'a str,
    /// Members that this URL has tried already.
    pub tried: &'a [usize],
    /// Whether this is a retry.
    pub retry: bool,
}

/// What the pool answers.
#[non_exhaustive]
#[derive(Debug, Clone)]
pub enum Pick {
    /// Go this way, and `report` afterwards exactly once.
    Use(Route),
    /// None is usable before this time.
    NotBefore(Instant),
    /// None will be usable: all retired by their credentials, or the pool is empty.
    Never {
        /// Whether it was the credentials.
        auth: bool,
    },
}

/// The numbers of one member.
#[derive(Debug, Clone, Default)]
pub struct ProxyStats {
    /// Redacted.
    pub proxy: String,
    /// Picks so far.
    pub picks: u64,
    /// Good verdicts.
    pub good: u64,
    /// Bad and doubtful verdicts.
    pub bad: u64,
    /// Whether its credentials were refused.
    pub auth_refused: bool,
    /// `unchecked`, `good`, `cooling`, `dead`.
    pub state: &'static str,
}

/// A rotating set of proxies.
#[derive(Debug, Clone)]
pub struct ProxyPool {
    _todo: (),
}

impl ProxyPool {
    /// A list of one proxy a line, with comments, blank lines, BOM, CRLF and duplicates.
    ///
    /// # Errors
    /// `InvalidProxyUrl` with the line number, the (redacted) line and the likely mistake.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let _ = text;
        unimplemented!()
    }
    /// These proxies.
    pub fn new(proxies: impl IntoIterator<Item = ProxyUrl>) -> Self {
        let _ = proxies.into_iter().count();
        unimplemented!()
    }
    /// When another proxy is taken. Default: [`Rotation::Request`].
    pub fn rotation(self, rotation: Rotation) -> Self {
        let _ = rotation;
        unimplemented!()
    }
    // Also setters: always_connect(bool), fresh_exit(bool), keep_alive(bool), parallel_per_proxy(Option<usize>),
    // proxy_header(name, value).
    /// How many members there are.
    pub fn len(&self) -> usize {
        unimplemented!()
    }
    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// Chooses the way of an attempt.
    pub fn pick(&mut self, request: PickRequest<'_>, now: Instant, rng: &mut Rng) -> Pick {
        let _ = (request, now, rng);
        unimplemented!()
    }
    /// Tells what came of the attempt; `host` and `item` guard against one bad URL killing a proxy.
    pub fn report(
        &mut self,
        member: usize,
        verdict: Verdict,
        host: &str,
        item: u64,
        now: Instant,
        rng: &mut Rng,
    ) {
        let _ = (member, verdict, host, item, now, rng);
        unimplemented!()
    }
    /// How many distinct credentials are still accepted.
    pub fn credentials_left(&self) -> usize {
        unimplemented!()
    }
    /// The numbers of each member, in order.
    pub fn stats(&self) -> Vec<ProxyStats> {
        unimplemented!()
    }
}
