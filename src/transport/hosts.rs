//! What was learnt of hosts on the way, for all engines of a configuration.
//!
//! Two things are worth remembering. A host whose IPv6 addresses lead nowhere costs a quarter of a
//! second for each new connection, and the family that worked last time saves it (RFC 8305,
//! section 4, calls this history). And a server that puts a PHP warning between its fields does so
//! on every page, which is worth one line in the log and not a million.
//!
//! Most hosts have neither, so most hosts have no entry, and there is a limit to the rest.

use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Hosts that are remembered; beyond that all are forgotten, which costs a stagger or a line each.
const MOST: usize = 4096;
/// How long a family is preferred before the order of the resolver counts again: networks change.
const PREFERRED: Duration = Duration::from_secs(600);

#[derive(Default)]
pub(super) struct Hosts {
    known: Mutex<HashMap<Box<str>, Known>>,
    /// Whether it was said that certificates are not checked.
    unchecked: AtomicBool,
}

#[derive(Default)]
struct Known {
    /// Whether IPv4 worked (or else IPv6), and since when that is known.
    family: Option<(bool, Instant)>,
    /// Whether its malformed fields were told of.
    told: bool,
}

impl Hosts {
    /// Whether to begin with IPv4; `None` where nothing is known.
    pub(super) fn prefers_v4(&self, host: &str, now: Instant) -> Option<bool> {
        let (v4, since) = self.lock().get(host)?.family?;
        (now.saturating_duration_since(since) < PREFERRED).then_some(v4)
    }

    /// Remembers which of two families worked.
    pub(super) fn worked(&self, host: &str, v4: bool, now: Instant) {
        let mut hosts = self.lock();
        let known = entry(&mut hosts, host);
        let is_known = known.family.is_some_and(|(have, since)| {
            have == v4 && now.saturating_duration_since(since) < PREFERRED
        });
        // Not refreshed, or a busy host would never try its other family again.
        if !is_known {
            known.family = Some((v4, now));
        }
    }

    /// Whether this is the first time that malformed fields of the host are to be told of.
    pub(super) fn is_news(&self, host: &str) -> bool {
        let mut hosts = self.lock();
        !std::mem::replace(&mut entry(&mut hosts, host).told, true)
    }

    /// Whether nobody has said yet that certificates are not checked.
    pub(super) fn is_first_unchecked(&self) -> bool {
        !self.unchecked.swap(true, Ordering::Relaxed)
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Box<str>, Known>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn entry<'h>(hosts: &'h mut HashMap<Box<str>, Known>, host: &str) -> &'h mut Known {
    if hosts.len() >= MOST && !hosts.contains_key(host) {
        hosts.clear();
    }
    hosts.entry(host.into()).or_default()
}

impl fmt::Debug for Hosts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Hosts({})", self.lock().len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::{Clock, SimClock, secs};

    #[test]
    fn a_family_is_preferred_for_a_while_and_not_longer_by_being_used() {
        let clock = SimClock::default();
        let hosts = Hosts::default();
        assert_eq!(hosts.prefers_v4("a.test", clock.now()), None);
        hosts.worked("a.test", true, clock.now());
        clock.advance(secs(599.0));
        hosts.worked("a.test", true, clock.now());
        assert_eq!(hosts.prefers_v4("a.test", clock.now()), Some(true));
        clock.advance(secs(1.0));
        assert_eq!(hosts.prefers_v4("a.test", clock.now()), None);
        hosts.worked("a.test", false, clock.now());
        assert_eq!(hosts.prefers_v4("a.test", clock.now()), Some(false));
    }

    #[test]
    fn memory_is_bounded() {
        let hosts = Hosts::default();
        for number in 0..10 * MOST {
            assert!(hosts.is_news(&format!("{number}.test")));
            assert!(hosts.lock().len() <= MOST);
        }
        assert!(!hosts.is_news(&format!("{}.test", 10 * MOST - 1)));
    }
}
