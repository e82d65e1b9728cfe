//! The connections that wait for their next request: the pool below ureq.
//!
//! ureq's own pool scans every host and every idle connection twice for each request, which at a
//! few hundred hosts costs more than the request. It is switched off, and this one stands below:
//! the connector takes from it, and a transport whose response was read to its end gives itself
//! back. Every step takes the same time for one host as for a thousand.
//!
//! The key holds the identity, so what one exit has opened another never uses.
//!
//! Some servers and proxies (tinyproxy) close after each response without a word of it in the
//! response. Whoever asks again at once writes into a connection whose end is on its way. A request
//! that may be sent twice survives that. One that may not is given a connection that has kept
//! before, or one that a moment of listening finds silent.

use super::connect::host_of;
use super::crowd::{Crowd, Place};
use super::stream::Stream;
use crate::proxy::Identity;
use slab::Slab;
use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

mod slab;

/// Below the time after which address translators and balancers forget a silent connection.
const MAX_IDLE: Duration = Duration::from_secs(15);
/// A connection that was busy so recently, and has kept before, needs no probe: the answer would
/// be as old.
const FRESH: Duration = Duration::from_millis(1);
/// How long after its first response the end of a connection may take to arrive, before a request
/// that cannot be sent twice trusts it.
pub(super) const GOODBYE: Duration = Duration::from_millis(5);
/// How often a thrown-away connection is worth a warning.
const WARN_EVERY: Duration = Duration::from_secs(60);
/// The end of the list.
const NONE: usize = usize::MAX;
/// Read buffers kept for the next connection that wakes up; an idle one holds none.
const SPARE_BUFFERS: usize = 2;

/// A connection that stands, with everything that was set up on it.
#[derive(Debug)]
pub(super) struct Conn {
    pub(super) stream: Stream,
    pub(super) key: Arc<[u8]>,
    pub(super) identity: Identity,
    /// TLS version and cipher suite.
    pub(super) tls: Option<Arc<str>>,
    /// When it was last given back; `None` for one that has carried no request yet.
    pub(super) idle_since: Option<Instant>,
    /// How often it was given back; above one, its other end has shown that it keeps connections.
    pub(super) returns: u32,
    /// Its place among those that there may be, where that is limited.
    pub(super) place: Option<Place>,
}

/// The idle connections of one engine.
pub(super) struct IdlePool {
    hosts: usize,
    per_host: usize,
    crowd: Option<Arc<Crowd>>,
    state: Mutex<State>,
}

/// Hosts in the order of their last use, as a list through a slab.
struct State {
    index: HashMap<Arc<[u8]>, usize>,
    slab: Slab<Host>,
    free: Vec<usize>,
    newest: usize,
    oldest: usize,
    buffers: Vec<Vec<u8>>,
    warned: Option<Instant>,
}

struct Host {
    key: Arc<[u8]>,
    identity: Identity,
    /// Oldest first; the youngest is used first, so that surplus ones age away.
    conns: Vec<Conn>,
    newer: usize,
    older: usize,
}

impl IdlePool {
    /// A pool for the connections of so many hosts, and so many of each; `block` counts those in
    /// use, too.
    pub(super) fn new(hosts: usize, per_host: usize, block: bool) -> Self {
        let state = State {
            index: HashMap::new(),
            slab: Slab::default(),
            free: Vec::new(),
            newest: NONE,
            oldest: NONE,
            buffers: Vec::new(),
            warned: None,
        };
        let crowd = block.then(|| Crowd::new(per_host));
        Self { hosts, per_host, crowd, state: Mutex::new(state) }
    }

    /// The count of all connections, where they are limited.
    pub(super) fn crowd(&self) -> Option<&Arc<Crowd>> {
        self.crowd.as_ref()
    }

    /// Takes a connection that is alive as far as one can tell.
    ///
    /// `listen` is for a request that cannot be sent twice: how long to listen for the end of a
    /// connection that has not kept before, since it was given back.
    pub(super) fn take(&self, key: &[u8], now: Instant, listen: Option<Duration>) -> Option<Conn> {
        loop {
            let mut state = self.lock();
            let slot = *state.index.get(key)?;
            let host = state.slab.get_mut(slot)?;
            let mut conn = host.conns.pop()?;
            let idle = conn.idle_since.map_or(FRESH, |since| now.saturating_duration_since(since));
            if idle >= MAX_IDLE {
                // The others of this host are older still.
                let aged = std::mem::take(&mut host.conns);
                drop(state);
                drop(aged);
                return None;
            }
            state.touch(slot);
            drop(state);
            let is_alive = match (conn.returns > 1, listen) {
                (true, None) if idle < FRESH => true,
                (false, Some(listen)) => conn.stream.stays_quiet(listen.saturating_sub(idle)),
                _ => conn.stream.is_quiet(),
            };
            if is_alive {
                return Some(conn);
            }
            log::debug!(
                target: "longhaul::connection",
                "a kept-alive connection has gone: {:?}",
                conn.stream
            );
        }
    }

    /// Keeps a connection for its next request.
    pub(super) fn give_back(&self, mut conn: Conn, now: Instant) {
        if self.hosts == 0 || self.per_host == 0 {
            return;
        }
        conn.idle_since = Some(now);
        conn.returns = conn.returns.saturating_add(1);
        let mut state = self.lock();
        let slot = match state.index.get(&conn.key) {
            Some(slot) => *slot,
            None => state.insert(&conn),
        };
        state.touch(slot);
        let aged = state.aged(slot, now);
        let oldest = state.oldest;
        let crowded = state.index.len() > self.hosts;
        let evicted = if crowded { state.remove(oldest) } else { Vec::new() };
        let mut surplus = None;
        if let Some(host) = state.slab.get_mut(slot) {
            if host.conns.len() < self.per_host {
                host.conns.push(conn);
            } else {
                surplus = Some(conn);
            }
        }
        let warning = surplus.as_ref().and_then(|conn| state.warning(conn, self.per_host, now));
        // Closing takes system calls, and a log may take its time; nobody should wait for them.
        drop(state);
        drop((aged, evicted, surplus));
        if let Some(warning) = warning {
            log::warn!(target: "longhaul::connection", "{warning}");
        }
        if let Some(crowd) = &self.crowd {
            crowd.note_idle();
        }
    }

    /// Closes the idle connections of an identity.
    pub(super) fn forget(&self, identity: Identity) {
        let mut state = self.lock();
        let slots: Vec<usize> = state
            .index
            .values()
            .copied()
            .filter(|slot| state.slab.get(*slot).is_some_and(|host| host.identity == identity))
            .collect();
        let closed: Vec<_> = slots.into_iter().map(|slot| state.remove(slot)).collect();
        drop(state);
        drop(closed);
    }

    /// Closes all idle connections.
    pub(super) fn clear(&self) {
        let mut state = self.lock();
        let slots: Vec<usize> = state.index.values().copied().collect();
        let closed: Vec<_> = slots.into_iter().map(|slot| state.remove(slot)).collect();
        drop(state);
        drop(closed);
    }

    /// Closes the idle connections under a key: an attempt that asks for a fresh one has no use
    /// for those that stand, and keeping both would add one with every such attempt.
    pub(super) fn close(&self, key: &[u8]) {
        let mut state = self.lock();
        let closed = state.index.get(key).copied().map(|slot| state.remove(slot));
        drop(state);
        drop(closed);
    }

    /// How many connections are kept, and for how many hosts there is a place.
    pub(super) fn kept(&self) -> (usize, usize) {
        let state = self.lock();
        (state.slab.iter().map(|host| host.conns.len()).sum(), state.index.len())
    }

    /// A read buffer that another connection has left.
    pub(super) fn buffer(&self) -> Vec<u8> {
        self.lock().buffers.pop().unwrap_or_default()
    }

    /// Leaves a read buffer for the next connection.
    pub(super) fn leave_buffer(&self, buffer: Vec<u8>) {
        let mut state = self.lock();
        if state.buffers.len() < SPARE_BUFFERS {
            state.buffers.push(buffer);
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn insert(&mut self, conn: &Conn) -> usize {
        let host = Host {
            key: Arc::clone(&conn.key),
            identity: conn.identity,
            conns: Vec::new(),
            newer: NONE,
            older: NONE,
        };
        let slot = match self.free.pop() {
            Some(slot) => {
                if let Some(place) = self.slab.get_mut(slot) {
                    *place = host;
                }
                slot
            }
            None => self.slab.push(host),
        };
        self.index.insert(Arc::clone(&conn.key), slot);
        self.link(slot);
        slot
    }

    /// Makes a host the most recently used one.
    fn touch(&mut self, slot: usize) {
        if self.newest != slot {
            self.unlink(slot);
            self.link(slot);
        }
    }

    fn link(&mut self, slot: usize) {
        let second = std::mem::replace(&mut self.newest, slot);
        if let Some(host) = self.slab.get_mut(slot) {
            host.newer = NONE;
            host.older = second;
        }
        match self.slab.get_mut(second) {
            Some(host) => host.newer = slot,
            None => self.oldest = slot,
        }
    }

    fn unlink(&mut self, slot: usize) {
        let Some(host) = self.slab.get(slot) else { return };
        let (newer, older) = (host.newer, host.older);
        match self.slab.get_mut(newer) {
            Some(host) => host.older = older,
            None => self.newest = older,
        }
        match self.slab.get_mut(older) {
            Some(host) => host.newer = newer,
            None => self.oldest = newer,
        }
    }

    fn remove(&mut self, slot: usize) -> Vec<Conn> {
        let Some(host) = self.slab.get_mut(slot) else { return Vec::new() };
        let conns = std::mem::take(&mut host.conns);
        let key = Arc::clone(&host.key);
        self.index.remove(&key);
        self.unlink(slot);
        self.free.push(slot);
        conns
    }

    /// The connections of the host that was left alone longest, where they are too old to use.
    ///
    /// One host at each return is enough: no more can have been added since. Hosts without a
    /// connection stand in the way of those behind them and go along. `current` is spared.
    fn aged(&mut self, current: usize, now: Instant) -> Vec<Conn> {
        loop {
            let oldest = self.oldest;
            let Some(host) = self.slab.get(oldest).filter(|_| oldest != current) else {
                return Vec::new();
            };
            let Some(youngest) = host.conns.last() else {
                self.remove(oldest);
                continue;
            };
            let aged = youngest
                .idle_since
                .is_some_and(|since| now.saturating_duration_since(since) >= MAX_IDLE);
            return if aged { self.remove(oldest) } else { Vec::new() };
        }
    }

    /// What to say of a connection that is thrown away, once in a while.
    fn warning(&mut self, conn: &Conn, per_host: usize, now: Instant) -> Option<String> {
        let due = self.warned.is_none_or(|at| now.saturating_duration_since(at) >= WARN_EVERY);
        if !due {
            return None;
        }
        self.warned = Some(now);
        let peer = conn.stream.peer();
        let host = match (host_of(&conn.key), peer) {
            (Some(host), _) => host,
            (None, Some(proxy)) => format!("the proxy {proxy}"),
            (None, None) => "the proxy".to_owned(),
        };
        Some(format!(
            "a connection to {host} is thrown away, since {per_host} idle ones are kept already; \
             a higher pool_maxsize keeps more"
        ))
    }
}

impl fmt::Debug for IdlePool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (conns, hosts) = self.kept();
        write!(f, "IdlePool({conns} connections to {hosts} hosts)")
    }
}

#[cfg(test)]
mod tests;
