//! What a proxy has shown of itself, and what that entitles it to.
//!
//! Three questions are kept apart. *How reliable is it?* A success rate whose evidence fades, by
//! count and by time, so that a proxy is judged by its last twenty or so attempts and is forgiven
//! after some minutes. *Is it down?* Only if it fell below the floor by failures of its own on at
//! least two hosts or items: a single bad URL that is tried again and again through the same proxy
//! is one piece of evidence, however often it fails. *When is it asked again?* After a jittered
//! cool-down that doubles with every failed revival, by one attempt at a time; nothing is
//! forgotten for good.
//!
//! What the target answers is no evidence at all. The rest is arithmetic: a proxy starts with one
//! good attempt in its favour, so that a single failure leaves it at the floor and two put it below.

use crate::rng::Rng;
use std::time::{Duration, Instant};

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

/// The success rate below which a proxy is out of the draw while enough others are left.
pub(super) const FLOOR: f64 = 0.5;
/// How much of the evidence is left after each further attempt: a window of twenty.
const KEEP: f64 = 0.95;
/// After how long half of the evidence is left.
const HALF_LIFE: Duration = Duration::from_secs(300);
/// What a doubtful verdict weighs against a bad one.
const DOUBT: f64 = 0.25;
/// How many distinct failures are remembered, so that each counts once.
const REMEMBERED: usize = 8;
/// The good weight at which earlier deaths no longer lengthen the next.
const STEADY: f64 = 3.0;
/// The first cool-down of a dead proxy, and the longest.
const DEATH: (Duration, Duration) = (Duration::from_secs(10), Duration::from_secs(600));
/// The same for a proxy that asks for quiet and does not say for how long.
const QUIET: (Duration, Duration) = (Duration::from_secs(5), Duration::from_secs(300));
/// A probe that nobody reported by then is taken for lost.
const PROBE_PATIENCE: Duration = Duration::from_secs(300);
/// Stands for waits that the clock cannot hold.
const FAR: Duration = Duration::from_secs(30 * 86_400);

/// Whose failure it was: two numbers that tell hosts and items apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Evidence {
    pub(super) host: u64,
    pub(super) item: u64,
}

/// What a proxy may be used for now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Standing {
    /// Anything.
    Healthy,
    /// Below the floor: only if too few others are left.
    Benched,
    /// One attempt that shows whether it is back.
    Due,
    /// Nothing, until that attempt has been reported.
    Probing,
    /// Nothing, until then.
    Down(Instant),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Down {
    Dead,
    Cooling,
}

/// The health of one proxy.
#[derive(Debug, Clone)]
pub(super) struct Health {
    /// Whether it has ever carried a request.
    proven: bool,
    good: f64,
    bad: f64,
    /// When the two were last faded.
    weighed: Option<Instant>,
    /// Bad verdicts since the last success, each once.
    failures: Distinct,
    /// The same of doubtful ones, which never kill.
    doubts: Distinct,
    benched_until: Option<Instant>,
    down: Option<(Down, Instant)>,
    probe: Option<Instant>,
    /// Cool-downs in a row, which double the next.
    deaths: u32,
    silences: u32,
}

impl Health {
    pub(super) const fn new() -> Self {
        Self {
            proven: false,
            good: 0.0,
            bad: 0.0,
            weighed: None,
            failures: Distinct(Vec::new()),
            doubts: Distinct(Vec::new()),
            benched_until: None,
            down: None,
            probe: None,
            deaths: 0,
            silences: 0,
        }
    }

    pub(super) fn standing(&self, now: Instant) -> Standing {
        match self.down {
            Some((_, until)) if until > now => Standing::Down(until),
            Some(_) => match self.probe {
                Some(since) if now.saturating_duration_since(since) < PROBE_PATIENCE => {
                    Standing::Probing
                }
                _ => Standing::Due,
            },
            None if self.benched_until.is_some_and(|until| until > now) => Standing::Benched,
            None => Standing::Healthy,
        }
    }

    /// The attempt of [`Standing::Due`] begins.
    pub(super) fn begin_probe(&mut self, now: Instant) {
        self.probe = Some(now);
    }

    pub(super) fn record(
        &mut self,
        verdict: Verdict,
        evidence: Evidence,
        now: Instant,
        rng: &mut Rng,
    ) {
        // A report of an attempt that began before the fall is not the probe's, unless the two
        // overlap; then it may well answer for it.
        let probed = self.probe.is_some() && verdict != Verdict::Unknown;
        self.probe = None;
        match verdict {
            Verdict::Good => self.succeed(probed, now),
            Verdict::Bad => self.fail(probed, evidence, now, rng),
            Verdict::Doubtful => {
                if probed {
                    // It answered, so it is there.
                    self.revive();
                }
                if self.doubts.add(evidence) {
                    self.weigh(0.0, DOUBT, now);
                }
            }
            Verdict::Cool(wait) => self.silence(wait, now, rng),
            // Credentials are retired by the pool: they may be shared.
            Verdict::Auth | Verdict::Unknown => {}
        }
    }

    fn succeed(&mut self, probed: bool, now: Instant) {
        match self.down {
            // Quiet was asked for; what was under way before changes nothing.
            Some((Down::Cooling, _)) if !probed => {}
            Some(_) => self.revive(),
            None => {}
        }
        self.proven = true;
        self.forget_failures();
        self.weigh(1.0, 0.0, now);
        if self.down.is_none() {
            self.silences = 0;
        }
        if self.good >= STEADY {
            self.deaths = 0;
        }
    }

    fn fail(&mut self, probed: bool, evidence: Evidence, now: Instant, rng: &mut Rng) {
        if self.failures.add(evidence) {
            self.weigh(0.0, 1.0, now);
        }
        match self.down {
            Some((Down::Dead, _)) if probed => self.die(now, rng),
            // Those that were under way when it fell.
            Some((Down::Dead, _)) => {}
            Some((Down::Cooling, _)) | None => {
                if self.failures.0.len() >= 2 && self.rate(now) < FLOOR {
                    self.die(now, rng);
                } else if probed {
                    self.down = None;
                }
            }
        }
    }

    fn forget_failures(&mut self) {
        self.failures.0.clear();
        self.doubts.0.clear();
    }

    fn die(&mut self, now: Instant, rng: &mut Rng) {
        let wait = doubled(DEATH, self.deaths);
        self.deaths = self.deaths.saturating_add(1);
        let wait = rng.between(wait.mul_f64(0.75), wait.mul_f64(1.25));
        self.down = Some((Down::Dead, later(now, wait)));
    }

    fn silence(&mut self, asked: Option<Duration>, now: Instant, rng: &mut Rng) {
        let wait = asked.unwrap_or_else(|| doubled(QUIET, self.silences));
        self.silences = self.silences.saturating_add(1);
        // Never below what the proxy asked for, and not all at the same instant.
        let slack = (wait / 10).min(Duration::from_secs(5));
        let mut until = later(now, wait.saturating_add(rng.between(Duration::ZERO, slack)));
        if let Some((Down::Cooling, earlier)) = self.down {
            until = until.max(earlier);
        }
        self.down = Some((Down::Cooling, until));
    }

    /// Back, with a clean sheet; only the length of the next cool-down remembers.
    fn revive(&mut self) {
        self.down = None;
        self.benched_until = None;
        self.forget_failures();
        (self.good, self.bad) = (0.0, 0.0);
    }

    fn weigh(&mut self, good: f64, bad: f64, now: Instant) {
        let faded = self.fading(now) * KEEP;
        self.good = self.good * faded + good;
        self.bad = self.bad * faded + bad;
        self.weighed = Some(now);
        // The rate reaches the floor again when the surplus of bad evidence has faded to one.
        let surplus = self.bad - self.good;
        self.benched_until = (surplus > 1.0).then(|| later(now, HALF_LIFE.mul_f64(surplus.log2())));
    }

    fn fading(&self, now: Instant) -> f64 {
        let age = self.weighed.map_or(Duration::ZERO, |then| now.saturating_duration_since(then));
        (-age.as_secs_f64() / HALF_LIFE.as_secs_f64()).exp2()
    }

    /// The share of good attempts, between 0 and 1; 1 before there is any evidence.
    pub(super) fn rate(&self, now: Instant) -> f64 {
        let fading = self.fading(now);
        let (good, bad) = (self.good * fading, self.bad * fading);
        (1.0 + good) / (1.0 + good + bad)
    }

    pub(super) fn is_dead(&self) -> bool {
        matches!(self.down, Some((Down::Dead, _)))
    }

    pub(super) fn name(&self) -> &'static str {
        match (self.down, self.proven) {
            (Some((Down::Dead, _)), _) => "dead",
            (Some((Down::Cooling, _)), _) => "cooling",
            (None, true) => "good",
            (None, false) => "unchecked",
        }
    }
}

/// The latest few pieces of evidence, none twice.
#[derive(Debug, Clone)]
struct Distinct(Vec<Evidence>);

impl Distinct {
    /// Whether it is a new one.
    fn add(&mut self, evidence: Evidence) -> bool {
        if self.0.contains(&evidence) {
            return false;
        }
        if self.0.len() >= REMEMBERED {
            self.0.remove(0);
        }
        self.0.push(evidence);
        true
    }
}

fn doubled((first, longest): (Duration, Duration), times: u32) -> Duration {
    first.saturating_mul(2u32.saturating_pow(times)).min(longest)
}

fn later(now: Instant, wait: Duration) -> Instant {
    now.checked_add(wait).unwrap_or(now + FAR)
}

#[cfg(test)]
mod tests;
