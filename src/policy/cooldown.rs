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
//! A refusal (403) speaks of the request: the host is left alone by everybody, for longer the more
//! of its last answers were refusals, and the refused URLs get their turns one by one.
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
    /// Likewise, where it was a refusal.
    refusals: u32,
    /// The next turn of a refused URL that nobody has.
    turn: Option<Instant>,
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
        }
        let Some(known) = self.known(host, now) else { return };
        known.throttles = (known.throttles << 1 | u32::from(throttle)) & ((1 << WINDOW) - 1);
        known.refusals = (known.refusals << 1) & ((1 << WINDOW) - 1);
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

    /// Notes that the answer of `host` noted last is a refusal: everybody leaves the host alone,
    /// for the whole `pause` when all of its last 20 answers were refusals, and for that share of
    /// it where others were good.
    pub fn note_refusal(&mut self, host: &str, pause: Duration, now: Instant) {
        let Some(known) = self.known(host, now) else { return };
        known.refusals |= 1;
        let pause = pause.saturating_mul(known.refusals.count_ones()) / WINDOW;
        // As many as there are workers may try their luck when it is over; spread as far as after
        // a throttle, each would meet the refusal of the one before.
        let spread = (pause / 10).min(Duration::from_secs(1));
        let quiet = Quiet::new(now, pause).map(|quiet| Quiet { spread, ..quiet });
        if let Some(quiet) = quiet.filter(|_| !pause.is_zero()) {
            known.all = Some(known.all.map_or(quiet, |old| old.later(quiet)));
        }
    }

    /// A turn for a refused URL of `host`: not before `from`, and `spacing` after the turn that was
    /// given before it. `None`, and nothing taken, where it would be as late as `before`.
    pub fn take_turn(
        &mut self,
        host: &str,
        from: Instant,
        spacing: Duration,
        before: Option<Instant>,
        now: Instant,
    ) -> Option<Instant> {
        let known = self.known(host, now)?;
        let turn = known.turn.map_or(from, |turn| turn.max(from));
        if before.is_some_and(|before| turn >= before) {
            return None;
        }
        known.turn = turn.checked_add(spacing);
        Some(turn)
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

    /// What is remembered of a host, from now on at the latest.
    fn known(&mut self, host: &str, now: Instant) -> Option<&mut Host> {
        // Most answers are of hosts that are known, and cost no copy of the name.
        if !self.hosts.contains_key(host) {
            let keep = |host: &Host| (host.is_cooling(now), host.heard);
            forget::make_room(&mut self.hosts, MAX_HOSTS, keep);
            let fresh = Host {
                all: None,
                identities: HashMap::new(),
                throttles: 0,
                refusals: 0,
                turn: None,
                heard: now,
            };
            self.hosts.insert(host.into(), fresh);
        }
        let known = self.hosts.get_mut(host)?;
        known.heard = now;
        Some(known)
    }
}

impl Host {
    fn is_cooling(&self, now: Instant) -> bool {
        self.turn.is_some_and(|turn| turn > now)
            || self.all.iter().chain(self.identities.values()).any(|quiet| quiet.until > now)
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
    fn refusals_quieten_a_host_by_their_share() {
        let (mut cooldown, now) = (Cooldown::default(), SimClock::default().now());
        let mut answer = |refused: bool, now: Instant| {
            cooldown.note("a.example", 1, if refused { 403 } else { 200 }, Duration::ZERO, now);
            if refused {
                cooldown.note_refusal("a.example", secs(20.0), now);
            }
            let quiet = cooldown.hosts.get("a.example").and_then(|known| known.all);
            quiet.map_or(Duration::ZERO, |quiet| quiet.until.saturating_duration_since(now))
        };
        assert_eq!(answer(false, now), Duration::ZERO);
        let mut at = now;
        for count in 1..=25_u32 {
            at += secs(100.0);
            assert_eq!(answer(true, at), secs(f64::from(count.min(20))), "{count}");
        }
        for _ in 0..19 {
            at += secs(100.0);
            assert_eq!(answer(false, at), Duration::ZERO);
        }
        at += secs(100.0);
        assert_eq!(answer(true, at), secs(1.0), "one among good ones");
        assert!(until(&cooldown, "a.example", 1, at).is_some());
        assert!(until(&cooldown, "a.example", 2, at).is_some(), "it is left alone by everybody");
        assert_eq!(until(&cooldown, "b.example", 1, at), None);
    }

    #[test]
    fn turns_are_apart_and_none_is_taken_in_vain() {
        let (mut cooldown, now) = (Cooldown::default(), SimClock::default().now());
        let mut turn = |from: f64, before: Option<f64>| {
            let before = before.map(|before| now + secs(before));
            let turn = cooldown.take_turn("a.example", now + secs(from), secs(5.0), before, now);
            turn.map(|turn| turn - now)
        };
        assert_eq!(turn(20.0, None), Some(secs(20.0)));
        assert_eq!(turn(20.5, None), Some(secs(25.0)));
        assert_eq!(turn(21.0, Some(30.0)), None);
        assert_eq!(turn(21.0, Some(30.1)), Some(secs(30.0)));
        assert_eq!(turn(100.0, None), Some(secs(100.0)));
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
