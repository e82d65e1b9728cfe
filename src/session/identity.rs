//! One identity, one world: the cookie jars of a session, one per identity, in a bounded LRU.
//!
//! Sockets and TLS tickets live in the transport, keyed by the same identity. A million rotating
//! user names are a million identities, so what is not used for long is forgotten, and the
//! transport is told to forget it too.

use super::{CookieCollector, CookieJar};
use crate::proxy::Identity;
use std::collections::{HashMap, VecDeque};

/// How many identities a session remembers.
pub(super) const MAX_IDENTITIES: usize = 256;

/// The jars of a session.
#[derive(Debug)]
pub(super) struct Jars {
    jars: HashMap<Identity, CookieJar>,
    /// Least recently used first; short enough that a scan costs less than a linked list.
    order: VecDeque<Identity>,
    /// What every new jar starts from.
    template: CookieJar,
    /// Who wants the jars when they end.
    collector: Option<CookieCollector>,
}

impl Jars {
    pub(super) fn new(template: CookieJar, collector: Option<CookieCollector>) -> Self {
        if let Some(collector) = &collector {
            collector.begin(&template);
        }
        Self { jars: HashMap::new(), order: VecDeque::new(), template, collector }
    }

    /// The jar of `identity`, and the identity that had to go for it.
    pub(super) fn of(&mut self, identity: Identity) -> (&mut CookieJar, Option<Identity>) {
        let mut gone = None;
        if self.order.back() != Some(&identity) {
            if let Some(at) = self.order.iter().position(|have| *have == identity) {
                self.order.remove(at);
            } else if self.order.len() >= MAX_IDENTITIES {
                gone = self.order.pop_front();
                let jar = gone.and_then(|gone| self.jars.remove(&gone));
                if let (Some(jar), Some(collector)) = (jar, &self.collector) {
                    collector.collect(&jar, &self.template);
                }
            }
            self.order.push_back(identity);
        }
        let template = &self.template;
        (self.jars.entry(identity).or_insert_with(|| template.clone()), gone)
    }
}

impl Drop for Jars {
    fn drop(&mut self) {
        let Some(collector) = &self.collector else { return };
        // The least recently used first, so that of two that changed at once the later one counts.
        for jar in self.order.iter().filter_map(|identity| self.jars.get(identity)) {
            collector.collect(jar, &self.template);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Session;
    use crate::proxy::{ProxyPool, ProxyUrl, SessionPer};
    use crate::time::SimClock;
    use crate::transport::{Play, Script};
    use std::collections::HashSet;
    use std::sync::Arc;

    #[test]
    fn the_least_recently_used_identity_goes() {
        let mut jars = Jars::new(CookieJar::default(), None);
        let identities: Vec<_> = (0..=MAX_IDENTITIES)
            .map(|n| {
                let url: ProxyUrl = format!("http://user-{n}:p@proxy.test:8000").parse().unwrap();
                Identity::of(&url)
            })
            .collect();
        for identity in &identities[..MAX_IDENTITIES] {
            assert_eq!(jars.of(*identity).1, None);
        }
        // Used again, so the second is now the oldest.
        jars.of(identities[0]);
        assert_eq!(jars.of(identities[MAX_IDENTITIES]).1, Some(identities[1]));
        assert_eq!(jars.jars.len(), MAX_IDENTITIES);
    }

    #[test]
    fn a_number_for_every_request_takes_bounded_memory() {
        let clock = Arc::new(SimClock::default());
        let script = Script::with(clock.clone(), |_, _| {
            Play::status(200).header("Set-Cookie", "seen=1; Path=/")
        });
        let shared = script.clone();
        let pool = ProxyPool::parse("h:1:u-session-{n}:p").unwrap();
        let session = Session::builder()
            .trust_env(false)
            .clock(clock)
            .proxies(pool.sessions(Some(SessionPer::Request)))
            .transport(move || shared.clone())
            .build()
            .unwrap();
        let requests = 4 * MAX_IDENTITIES;
        for _ in 0..requests {
            session.get("http://a.test/").send().unwrap();
        }
        let asked = script.asked();
        let identities: HashSet<Identity> = asked.iter().map(|asked| asked.identity).collect();
        assert_eq!(identities.len(), requests);
        // No cookie of one number is ever shown under another.
        assert!(asked.iter().all(|asked| asked.headers.get("cookie").is_none()));
        assert_eq!(session.core().jars.jars.len(), MAX_IDENTITIES);
        assert_eq!(session.core().jars.order.len(), MAX_IDENTITIES);
        assert_eq!(script.forgotten().len(), requests - MAX_IDENTITIES);
    }

    #[test]
    fn a_hundred_thousand_rotating_users_leave_few_jars_and_are_told_to_go() {
        let mut jars = Jars::new(CookieJar::default(), None);
        let mut gone = 0;
        for number in 0..100_000 {
            let url: ProxyUrl = format!("http://user-{number}:p@proxy.test:8000").parse().unwrap();
            gone += usize::from(jars.of(Identity::of(&url)).1.is_some());
            assert!(jars.jars.len() <= MAX_IDENTITIES && jars.order.len() == jars.jars.len());
        }
        // Each is forgotten in the transport too, whose stores go by the same identities.
        assert_eq!(gone, 100_000 - MAX_IDENTITIES);
    }
}
