//! Hosts that are down.
//!
//! A host that fails on every URL costs each of them its whole worst case, and they are all the
//! same case. Its first attempts have to be made anyway, since every URL is owed one; what can be
//! spared is their retries. So the circuit of a host whose answers are mostly failures opens, and no
//! URL of that host is retried for a while; the URL fails as it is, and a second pass may find the
//! host up again.
//!
//! It closes by itself: every first attempt shows how the host is, and when none comes, one retry
//! is let through after the rest, to find out.

use super::{Share, forget};
use crate::error::Error;
use std::collections::HashMap;
use std::time::{Duration, Instant};

/// How many hosts are remembered.
const MAX_HOSTS: usize = 4096;

/// How many answers of a host are looked back on.
const WINDOW: u32 = 20;

/// How many there have to be before they say anything.
const LEAST: u32 = 10;

/// How long an open circuit stays so before a retry is let through.
const REST: Duration = Duration::from_secs(30);

/// Whether a host is worth retrying, from its last 20 answers.
///
/// Failures are a connection that the host does not give or breaks, its silence, 408, 425, 429 and
/// 5xx. What a proxy fails at says nothing about the host.
///
/// # Defaults
/// Opens when half of the answers, and of ten at least, are failures; rests for 30 s.
#[derive(Debug, Clone)]
pub struct HostCircuit {
    share: Share,
    rest: Duration,
    hosts: HashMap<Box<str>, Host>,
}

#[derive(Debug, Clone, Copy)]
struct Host {
    /// Newest in the lowest bit; set where it was a failure.
    failures: u32,
    known: u32,
    /// Until when no retry is let through; `None` where the circuit is closed.
    open_until: Option<Instant>,
    heard: Instant,
}

impl HostCircuit {
    /// Opens at this share of failures, and rests for so long.
    ///
    /// # Errors
    /// `Config` for no share and no rest.
    pub fn new(share: Share, rest: Duration) -> Result<Self, Error> {
        if share == Share::NONE || rest.is_zero() {
            return Err(Error::config(
                "a circuit that opens at no failure, or for no time, does nothing: give both",
            ));
        }
        Ok(Self { share, rest, hosts: HashMap::new() })
    }

    /// The same circuit that knows of no host.
    pub(crate) fn anew(&self) -> Self {
        Self { hosts: HashMap::new(), ..*self }
    }

    /// Notes an answer of `host`, or that it failed.
    pub fn note(&mut self, host: &str, failed: bool, now: Instant) {
        if !self.hosts.contains_key(host) {
            // Of a host that never failed there is nothing to remember.
            if !failed {
                return;
            }
            forget::make_room(&mut self.hosts, MAX_HOSTS, |host| (host.open_until, host.heard));
            let fresh = Host { failures: 0, known: 0, open_until: None, heard: now };
            self.hosts.insert(host.into(), fresh);
        }
        let (share, rest) = (self.share, self.rest);
        let Some(known) = self.hosts.get_mut(host) else { return };
        known.heard = now;
        known.failures = (known.failures << 1 | u32::from(failed)) & ((1 << WINDOW) - 1);
        known.known = (known.known + 1).min(WINDOW);
        match known.open_until {
            // It is up again, whatever came before.
            Some(until) if now >= until && !failed => {
                (known.failures, known.known, known.open_until) = (0, 0, None);
            }
            _ if !known.fails(share) => known.open_until = None,
            Some(until) if now < until => {}
            _ => known.open_until = now.checked_add(rest),
        }
    }

    /// Whether `host` may be asked once more; where its rest is over, one retry may, to find out.
    pub fn may_retry(&mut self, host: &str, now: Instant) -> bool {
        let rest = self.rest;
        let Some(until) = self.hosts.get_mut(host).and_then(|host| host.open_until.as_mut()) else {
            return true;
        };
        if now < *until {
            return false;
        }
        // The next one has to wait for what this one finds out.
        *until = now.checked_add(rest).unwrap_or(now);
        true
    }

    /// How many hosts are remembered; for figures, and to see that it is bounded.
    pub fn hosts(&self) -> usize {
        self.hosts.len()
    }
}

impl Default for HostCircuit {
    fn default() -> Self {
        Self { share: Share::HALF, rest: REST, hosts: HashMap::new() }
    }
}

impl Host {
    fn fails(&self, share: Share) -> bool {
        let failures = u128::from(self.failures.count_ones()) * super::capacity::BILLION;
        self.known >= LEAST && failures >= u128::from(self.known) * share.parts()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::{Clock, SimClock, secs};

    const HOST: &str = "a.example";

    fn after(failures: usize, now: Instant) -> HostCircuit {
        let mut circuit = HostCircuit::default();
        (0..failures).for_each(|_| circuit.note(HOST, true, now));
        circuit
    }

    #[test]
    fn it_opens_at_half_of_at_least_ten() {
        let now = SimClock::default().now();
        assert!(after(9, now).may_retry(HOST, now));
        let mut open = after(10, now);
        assert!(!open.may_retry(HOST, now) && !open.may_retry(HOST, now + secs(29.9)));
        assert!(open.may_retry("b.example", now));

        let mut mixed = after(1, now);
        for number in 0..30 {
            mixed.note(HOST, number % 3 == 0, now);
            assert!(mixed.may_retry(HOST, now), "a third fails");
        }
        let mut half = after(5, now);
        (0..5).for_each(|_| half.note(HOST, false, now));
        assert!(!half.may_retry(HOST, now));
        half.note(HOST, false, now);
        assert!(half.may_retry(HOST, now), "five of eleven");
    }

    #[test]
    fn after_its_rest_one_retry_finds_out() {
        let now = SimClock::default().now();
        let later = now + secs(30.0);
        let mut circuit = after(10, now);
        assert!(circuit.may_retry(HOST, later) && !circuit.may_retry(HOST, later));
        circuit.note(HOST, true, later + secs(5.0));
        assert!(!circuit.may_retry(HOST, later + secs(29.0)));
        // Nobody told what came of the retry, so another one may go.
        assert!(circuit.may_retry(HOST, later + secs(30.0)));
    }

    #[test]
    fn one_good_answer_after_the_rest_closes_it() {
        let now = SimClock::default().now();
        let mut circuit = after(20, now);
        circuit.note(HOST, false, now + secs(1.0));
        assert!(!circuit.may_retry(HOST, now + secs(1.0)), "one of twenty says little");
        circuit.note(HOST, false, now + secs(30.0));
        assert!(circuit.may_retry(HOST, now + secs(30.0)));
        (0..9).for_each(|_| circuit.note(HOST, true, now + secs(31.0)));
        assert!(circuit.may_retry(HOST, now + secs(31.0)), "what was before is forgotten");
    }

    #[test]
    fn memory_is_bounded_and_open_circuits_are_kept_longest() {
        let now = SimClock::default().now();
        let mut circuit = after(10, now);
        for number in 0..20_000_u32 {
            let now = now + Duration::from_millis(u64::from(number));
            circuit.note(&format!("{number}.example"), true, now);
            circuit.note(&format!("good-{number}.example"), false, now);
            assert!(circuit.hosts() <= MAX_HOSTS);
        }
        assert!(!circuit.may_retry(HOST, now));
        assert_eq!(circuit.anew().hosts(), 0);
    }

    #[test]
    fn nothing_is_no_circuit() {
        let half = Share::new(0.5).unwrap();
        HostCircuit::new(Share::NONE, secs(1.0)).unwrap_err();
        HostCircuit::new(half, Duration::ZERO).unwrap_err();
        HostCircuit::new(half, Duration::MAX).unwrap();
    }
}
