//! What a run has shown of itself so far: how fast it is, how long its URLs take, what is left.
//!
//! The estimate of the rest is a pure function of facts ([`Remaining`]); here they are gathered, on
//! the thread that takes the results. The rate is one of *lately*: what lies further back than a
//! tenth of the run, but at least a minute and at most ten, counts less and less. A run of a night
//! is not judged by its last minute, and one that has just been throttled not by its first hour.

use crate::policy::{Later, Remaining, Took};
use crate::workers::{Finished, PoolStats};
use hdrhistogram::Histogram;
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

/// Exits that are told apart; beyond that the number stands still.
const MOST_EXITS: usize = 100_000;

/// Percentiles are looked up no more often than this.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// Within which part of the run, and at least and at most which time, things are *lately*.
const LATELY: f64 = 0.1;
const LATELY_LEAST: f64 = 60.0;
const LATELY_MOST: f64 = 600.0;

/// A number of events per second, the recent ones counting more.
#[derive(Debug, Clone, Copy)]
struct Recent {
    began: Instant,
    at: Instant,
    events: f64,
    time: f64,
    new: u64,
}

impl Recent {
    fn new(now: Instant) -> Self {
        Self { began: now, at: now, events: 0.0, time: 0.0, new: 0 }
    }

    /// Events per second by now; 0 before any time has passed.
    fn rate(&mut self, now: Instant) -> f64 {
        let passed = now.saturating_duration_since(self.at).as_secs_f64();
        if passed > 0.0 {
            let run = now.saturating_duration_since(self.began).as_secs_f64();
            let span = (LATELY * run).clamp(LATELY_LEAST, LATELY_MOST);
            let kept = (-passed / span).exp();
            // What came between is spread evenly over the time between.
            let weight = span * (1.0 - kept);
            self.events = self.events * kept + self.new as f64 * weight / passed;
            self.time = self.time * kept + weight;
            (self.at, self.new) = (now, 0);
        }
        if self.time > 0.0 { self.events / self.time } else { 0.0 }
    }
}

/// What a run is allowed and has yet to do.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Bounds {
    /// Attempts per second at most.
    pub(super) most_attempts: Option<f64>,
    /// Passes at most.
    pub(super) passes: u32,
}

/// URLs that failed in a way that another pass may mend.
#[derive(Debug, Clone, Copy, Default)]
struct Failing {
    urls: u64,
    attempts: u64,
    worked: Duration,
    took: Duration,
}

/// Gathers the facts.
#[derive(Debug)]
pub(super) struct Pace {
    bounds: Bounds,
    /// URLs of this pass; `None` where they were not counted.
    size: Option<u64>,
    pass: u32,
    recent: Recent,
    /// URLs of this pass that ended or were held back, and the latter alone.
    passed: u64,
    held: u64,
    /// Of the whole run, ends of passes and their attempts.
    ends: u64,
    attempts: u64,
    failing: Failing,
    took: Option<Histogram<u64>>,
    looked: Option<(Instant, Took)>,
    exits: BTreeSet<Box<str>>,
}

impl Pace {
    /// Nothing has ended; `size` URLs are to be done.
    pub(super) fn new(size: Option<u64>, bounds: Bounds, now: Instant) -> Self {
        Self {
            bounds,
            size,
            pass: 1,
            recent: Recent::new(now),
            passed: 0,
            held: 0,
            ends: 0,
            attempts: 0,
            failing: Failing::default(),
            // From a millisecond to a day, to two digits; the bounds are valid.
            took: Histogram::new_with_bounds(1, 24 * 3600 * 1000, 2).ok(),
            looked: None,
            exits: BTreeSet::new(),
        }
    }

    /// Another pass begins, over so many URLs. It is over others than the last one, so its rate is
    /// one of its own.
    pub(super) fn begin_pass(&mut self, size: usize, now: Instant) {
        self.size = Some(size as u64);
        self.pass += 1;
        self.recent = Recent::new(now);
        (self.passed, self.held) = (0, 0);
    }

    /// A URL has come to the end of its pass; `held` is whether it is held back for another.
    pub(super) fn note(&mut self, finished: &Finished, held: bool) {
        let attempts = finished.attempts();
        self.recent.new += 1;
        self.passed += 1;
        self.ends += 1;
        self.attempts += attempts.len() as u64;
        if !attempts.is_empty()
            && let Some(took) = &mut self.took
        {
            let millis = u64::try_from(finished.elapsed.as_millis()).unwrap_or(u64::MAX);
            took.saturating_record(millis.max(1));
        }
        if held {
            self.held += 1;
            self.failing.urls += 1;
            self.failing.attempts += attempts.len() as u64;
            self.failing.took = self.failing.took.saturating_add(finished.elapsed);
            for attempt in attempts {
                self.failing.worked = self.failing.worked.saturating_add(attempt.elapsed);
            }
        }
        for exit in attempts.iter().filter_map(|attempt| attempt.exit.as_deref()) {
            self.note_exit(exit);
        }
    }

    /// The world was seen from this address.
    pub(super) fn note_exit(&mut self, exit: &str) {
        if self.exits.len() < MOST_EXITS && !self.exits.contains(exit) {
            self.exits.insert(exit.into());
        }
    }

    /// Different addresses that the world has seen, as far as they are known.
    pub(super) fn exits(&self) -> u64 {
        self.exits.len() as u64
    }

    /// URLs that ended or were held back, per second, lately; and how long the rest takes, where
    /// that can be said.
    pub(super) fn look(&mut self, stats: &PoolStats, now: Instant) -> (f64, Option<Duration>) {
        let rate = self.recent.rate(now);
        let Some(size) = self.size else { return (rate, None) };
        let is_again = self.pass > 1;
        let each = |sum: Duration| match u32::try_from(self.failing.urls) {
            Ok(urls) if urls > 0 => sum / urls,
            _ => Duration::ZERO,
        };
        let per = |count: u64, all: u64| if all == 0 { 0.0 } else { count as f64 / all as f64 };
        let later = Later {
            passes: self.bounds.passes.saturating_sub(self.pass),
            held: self.held,
            share: per(self.held, self.passed),
            is_again,
            worked_each: each(self.failing.worked),
            attempts_each: per(self.failing.attempts, self.failing.urls),
            took_each: each(self.failing.took),
            at_once: stats.concurrency,
        };
        let expected = match later.worked_each.as_secs_f64() {
            // Nothing of this pass has ended, but what it is over has been met before.
            worked if is_again && self.passed == 0 && worked > 0.0 => {
                stats.concurrency as f64 / worked
            }
            _ => rate,
        };
        let remaining = Remaining {
            left: size.saturating_sub(self.passed),
            waiting: stats.waiting,
            in_flight: stats.in_flight,
            rate: expected,
            attempts_each: per(self.attempts, self.ends),
            most_attempts: self.bounds.most_attempts,
            last_wait: stats.last_wait_ends.map(|ends| ends.saturating_duration_since(now)),
            took: self.took(now),
            waits: stats.waits_begun,
            attempts: stats.attempts,
            later,
        };
        (rate, remaining.eta())
    }

    fn took(&mut self, now: Instant) -> Took {
        if let Some((_, took)) =
            self.looked.filter(|(looked, _)| now.saturating_duration_since(*looked) < LOOK_EVERY)
        {
            return took;
        }
        let Some(times) = self.took.as_ref().filter(|times| !times.is_empty()) else {
            return Took::default();
        };
        let at = |share| Duration::from_millis(times.value_at_quantile(share));
        let took =
            Took { p50: at(0.5), p90: at(0.9), p99: at(0.99), p999: at(0.999), most: at(1.0) };
        self.looked = Some((now, took));
        took
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::batch::record::tests::attempt;
    use crate::error::Error;
    use crate::time::{Clock, SimClock, secs};

    fn finished(seconds: f64) -> Finished {
        Finished {
            elapsed: secs(seconds),
            ..Finished::of_bad_input(0, Error::config("nothing was attempted"))
        }
    }

    #[test]
    fn a_steady_rate_is_told_from_the_beginning_on() {
        let start = SimClock::default().now();
        let mut recent = Recent::new(start);
        assert_eq!(recent.rate(start), 0.0);
        for second in 1..2000_u64 {
            recent.new += 7;
            let rate = recent.rate(start + secs(second as f64));
            assert!((rate - 7.0).abs() < 1e-6, "{second}: {rate}");
        }
    }

    #[test]
    fn what_lies_back_counts_less_and_less() {
        let start = SimClock::default().now();
        let mut recent = Recent::new(start);
        let mut rate = 0.0;
        for second in 1..=120_u64 {
            recent.new += if second <= 60 { 10 } else { 0 };
            rate = recent.rate(start + secs(second as f64));
        }
        // Over the whole run it would be 5.
        assert!(rate > 2.0 && rate < 3.0, "{rate}");
        // However rarely it is asked for.
        let mut seldom = Recent::new(start);
        seldom.new = 600;
        seldom.rate(start + secs(60.0));
        assert!((seldom.rate(start + secs(120.0)) - rate).abs() < 0.01);
    }

    #[test]
    fn nothing_is_said_before_anything_is_known() {
        let now = SimClock::default().now();
        let after = |seconds| now + secs(seconds);
        let stats = PoolStats { concurrency: 8, ..PoolStats::default() };
        let mut pace = Pace::new(None, Bounds { most_attempts: None, passes: 2 }, now);
        pace.note(&finished(1.0), false);
        assert_eq!(pace.look(&stats, after(1.0)), (1.0, None));
        let mut pace = Pace::new(Some(10), Bounds { most_attempts: None, passes: 2 }, now);
        assert_eq!(pace.look(&stats, after(1.0)), (0.0, None));
        pace.note(&finished(1.0), false);
        let (rate, eta) = pace.look(&stats, after(2.0));
        assert!((rate - 0.5).abs() < 0.01, "{rate}");
        assert!((eta.unwrap().as_secs_f64() - 18.0).abs() < 0.2, "{eta:?}");
    }

    /// A URL whose only attempt took so long, and which then waited as long again.
    fn attempted(seconds: f64) -> Finished {
        let mut attempt = attempt("http://a.test/");
        attempt.elapsed = secs(seconds);
        attempt.exit = Some("192.0.2.1".into());
        let error = Error::config("cut").with_attempts(vec![attempt]);
        Finished { elapsed: secs(2.0 * seconds), ..Finished::of_bad_input(0, error) }
    }

    #[test]
    fn the_passes_to_come_are_told_from_what_was_held_back() {
        let now = SimClock::default().now();
        let after = |seconds| now + secs(seconds);
        let stats = PoolStats { concurrency: 2, ..PoolStats::default() };
        let mut pace = Pace::new(Some(20), Bounds { most_attempts: None, passes: 3 }, now);
        for number in 0..10 {
            pace.note(&attempted(4.0), number % 2 == 0);
        }
        // Ten more at one a second, the last of which may take its 8 s; five of them will be held back,
        // and then ten are twice worked on for 4 s each by two workers.
        let (_, eta) = pace.look(&stats, after(10.0));
        let eta = eta.unwrap().as_secs_f64();
        assert!((50.0..58.0).contains(&eta), "{eta}");
        // Before anything of the second pass has ended, it costs what it cost before.
        pace.begin_pass(10, after(20.0));
        let (_, eta) = pace.look(&stats, after(20.0));
        let eta = eta.unwrap().as_secs_f64();
        assert!((20.0..30.0).contains(&eta), "{eta}");
        assert_eq!(pace.exits(), 1);
    }
}
