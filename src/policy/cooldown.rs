//! Hosts that asked for quiet.
//!
//! One URL that is throttled is a matter of its own retries; a host that throttles is a matter of
//! all URLs on it. Without a shared memory every worker has to collect its own 429 before it
//! believes it, and they all come back in the same instant, to collect the next.
//!
//! Who has to wait depends on whom the answer speaks to. A 429 means *this client*, and a client
//! is what the host sees: other exits go on. A 503 means *this resource*; only when at least half
//! of a host's last answers are throttles is it the host that is in trouble.
//!
//! Memory is bounded however many hosts and identities a run meets: what is not cooling and was
//! not heard of for long goes first.

use super::forget;
use crate::rng::Rng;
use std::collections::HashMap;
use std::time::{Duration, Instant};

/// How many hosts are remembered.
const MAX_HOSTS: usize = 4096;

/// How many cooling identities are remembered per host.
const MAX_IDENTITIES: usize = 256;

/// How many answers of a host are looked back on.
const WINDOW: u32 = 20;

/// The longest spread of wake-ups.
const MAX_SPREAD: Duration = Duration::from_secs(10);

/// Which (host, identity) pairs and which hosts are to be left alone, and until when.
///
/// A 429 speaks to this client: the host as seen from that identity cools down. A 503 speaks of a
/// resource: the host only when at least half of its last 20 answers were throttles.
#[derive(Debug, Default)]
pub struct Cooldown {
    hosts: HashMap<Box<str>, Host>,
}

#[derive(Debug)]
struct Host {
    /// For everybody.
    all: Option<Quiet>,
    /// As seen from one identity.
    identities: HashMap<u64, Quiet>,
    /// The last answers, newest in the lowest bit; set where it was a throttle.
    throttles: u32,
    heard: Instant,
}

/// A time to be left alone, and how far wake-ups are spread behind it.
#[derive(Debug, Clone, Copy)]
struct Quiet {
    until: Instant,
    spread: Duration,
}

impl Cooldown {
    /// Notes the answer `status` of `host` to `identity`, with the wait it asks for.
    ///
    /// Every answer is to be noted, also the good ones: they are what tells a host in trouble from
    /// a resource in trouble.
    pub fn note(&mut self, host: &str, identity: u64, status: u16, wait: Duration, now: Instant) {
        let throttle = matches!(status, 429 | 503);
        if !self.hosts.contains_key(host) {
            // Of a host that never throttled there is nothing to remember.
            if !throttle {
                return;
            }
            self.make_room(now);
            let fresh = Host { all: None, identities: HashMap::new(), throttles: 0, heard: now };
            self.hosts.insert(host.into(), fresh);
        }
        let Some(known) = self.hosts.get_mut(host) else { return };
        known.heard = now;
        known.throttles = (known.throttles << 1 | u32::from(throttle)) & ((1 << WINDOW) - 1);
        if !throttle || wait.is_zero() {
            return;
        }
        let Some(quiet) = Quiet::new(now, wait) else { return };
        if status == 429 {
            known.quieten_identity(identity, quiet, now);
        } else if known.throttles.count_ones() >= WINDOW / 2 {
            known.all = Some(known.all.map_or(quiet, |old| old.later(quiet)));
        }
    }

    /// When `host` may be asked again from `identity`, with a jitter on top so that not all that
    /// wait wake at once; `None` is now.
    pub fn until(&self, host: &str, identity: u64, now: Instant, rng: &mut Rng) -> Option<Instant> {
        let known = self.hosts.get(host)?;
        let quiet = match (known.all, known.identities.get(&identity).copied()) {
            (Some(all), Some(own)) => all.later(own),
            (all, own) => all.or(own)?,
        };
        (quiet.until > now).then(|| {
            let jitter = rng.between(Duration::ZERO, quiet.spread);
            quiet.until.checked_add(jitter).unwrap_or(quiet.until)
        })
    }

    /// How many hosts are remembered; for figures, and to see that it is bounded.
    pub fn hosts(&self) -> usize {
        self.hosts.len()
    }

    fn make_room(&mut self, now: Instant) {
        forget::make_room(&mut self.hosts, MAX_HOSTS, |host| (host.is_cooling(now), host.heard));
    }
}

impl Host {
    fn is_cooling(&self, now: Instant) -> bool {
        self.all.iter().chain(self.identities.values()).any(|quiet| quiet.until > now)
    }

    fn quieten_identity(&mut self, identity: u64, quiet: Quiet, now: Instant) {
        if let Some(old) = self.identities.get_mut(&identity) {
            *old = old.later(quiet);
            return;
        }
        if self.identities.len() >= MAX_IDENTITIES {
            self.identities.retain(|_, quiet| quiet.until > now);
        }
        forget::make_room(&mut self.identities, MAX_IDENTITIES, |quiet| quiet.until);
        self.identities.insert(identity, quiet);
    }
}

impl Quiet {
    fn new(now: Instant, wait: Duration) -> Option<Self> {
        let until = now.checked_add(wait)?;
        Some(Self { until, spread: (wait / 2).min(MAX_SPREAD) })
    }

    fn later(self, other: Self) -> Self {
        if other.until > self.until { other } else { self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::{Clock, SimClock, secs};

    fn until(cooldown: &Cooldown, host: &str, identity: u64, now: Instant) -> Option<Instant> {
        cooldown.until(host, identity, now, &mut Rng::seeded(1))
    }

    #[test]
    fn a_429_quietens_the_host_for_one_identity() {
        let (mut cooldown, now) = (Cooldown::default(), SimClock::default().now());
        cooldown.note("a.example", 1, 429, secs(2.0), now);
        let wake = until(&cooldown, "a.example", 1, now).unwrap();
        assert!((secs(2.0)..=secs(3.0)).contains(&(wake - now)));
        assert_eq!(until(&cooldown, "a.example", 2, now), None);
        assert_eq!(until(&cooldown, "b.example", 1, now), None);
        assert_eq!(until(&cooldown, "a.example", 1, now + secs(2.0)), None);
    }

    #[test]
    fn a_shorter_wait_never_cuts_a_longer_one() {
        let (mut cooldown, now) = (Cooldown::default(), SimClock::default().now());
        cooldown.note("a.example", 0, 429, secs(60.0), now);
        cooldown.note("a.example", 0, 429, secs(1.0), now);
        cooldown.note("a.example", 0, 200, Duration::ZERO, now);
        assert!(until(&cooldown, "a.example", 0, now + secs(59.0)).is_some());
    }

    #[test]
    fn a_503_quietens_the_host_only_when_half_of_its_answers_are_throttles() {
        let (mut cooldown, now) = (Cooldown::default(), SimClock::default().now());
        let mut note = |status| {
            cooldown.note("a.example", 1, status, secs(5.0), now);
            until(&cooldown, "a.example", 2, now)
        };
        for _ in 0..9 {
            assert_eq!(note(503), None, "fewer than half of 20");
        }
        for _ in 0..11 {
            assert_eq!(note(200), None);
        }
        for _ in 0..9 {
            assert_eq!(note(503), None, "the older ones have left the window");
        }
        assert!(note(503).is_some());
    }

    #[test]
    fn an_answer_without_a_wait_quietens_nobody() {
        let (mut cooldown, now) = (Cooldown::default(), SimClock::default().now());
        cooldown.note("a.example", 0, 429, Duration::ZERO, now);
        cooldown.note("a.example", 0, 403, secs(9.0), now);
        cooldown.note("a.example", 0, 429, Duration::MAX, now);
        assert_eq!(until(&cooldown, "a.example", 0, now), None);
    }

    #[test]
    fn wake_ups_are_spread_and_never_early() {
        let (mut cooldown, now) = (Cooldown::default(), SimClock::default().now());
        cooldown.note("a.example", 0, 429, secs(2.0), now);
        let mut slots = [0; 10];
        for worker in 0..50 {
            let mut rng = Rng::stream(7, worker);
            let wake = cooldown.until("a.example", 0, now, &mut rng).unwrap() - now;
            let behind = wake.checked_sub(secs(2.0)).unwrap();
            slots[(behind.as_millis() / 100) as usize] += 1;
        }
        assert!(slots.iter().all(|count| *count <= 15), "{slots:?}");
        assert!(slots.iter().filter(|count| **count > 0).count() >= 8, "{slots:?}");
    }

    #[test]
    fn memory_is_bounded_and_what_cools_is_kept_longest() {
        let (mut cooldown, start) = (Cooldown::default(), SimClock::default().now());
        cooldown.note("cooling.example", 0, 429, secs(86_400.0), start);
        for number in 0..50_000_u32 {
            let now = start + Duration::from_millis(u64::from(number));
            cooldown.note(&format!("{number}.example"), 0, 503, Duration::ZERO, now);
            cooldown.note(&format!("good-{number}.example"), 0, 200, Duration::ZERO, now);
            assert!(cooldown.hosts() <= MAX_HOSTS);
        }
        assert!(until(&cooldown, "cooling.example", 0, start).is_some());
        for number in 1..=5000_u32 {
            let wait = secs(60.0 + f64::from(number));
            cooldown.note("cooling.example", u64::from(number), 429, wait, start);
        }
        let known = &cooldown.hosts["cooling.example"];
        assert!(known.identities.len() <= MAX_IDENTITIES);
        assert!(known.identities.contains_key(&0) && known.identities.contains_key(&5000));
    }
}
