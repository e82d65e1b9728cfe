//! How many attempts at once the other side bears, found by trying.
//!
//! The right number is nobody's to know in advance: too low wastes the night, too high is answered
//! with 429, 503 and refused connections, or with pages that take ten times as long. So the number
//! walks: up while all is well, down by a factor when it is not, as TCP does with its window, and
//! for the same reason. What is particular here:
//!
//! - *Windows are made of answers, not of time.* A slow site gets as many answers to judge by as a
//!   fast one. Only attempts that were begun under the present number count: what was sent before a
//!   decrease says nothing about it, and cannot cause a second one.
//! - *A wall is remembered.* After a decrease the number goes back to nine tenths of where it was
//!   refused, stays there, and tries one more only after some quiet windows; after each try that is
//!   refused, later. Twice as many just to see would be refused again and again.
//! - *Latency is compared with the lowest that was seen*, by the median of a window, smoothed. A site
//!   that is slow in itself is slow from the first window on, so it holds nothing back.
//! - *A decrease that does not help is taken back.* If the latency stays, or the refusals do, when
//!   less is sent, they do not come of how much is sent: the site has become slower, or a share of
//!   its pages is broken. That is remembered as ordinary.
//! - *It grows only where it is used.* A run that is held by another limit says nothing about this.
//!
//! A 403 is no refusal in this sense: it speaks of the shape of a request, and fewer at once do not
//! mend it. What a proxy refuses is a matter of its health, and of the limits of the proxy pool.

use crate::error::{Attempt, ErrorKind, Fault, Phase};
use std::time::Duration;

/// How many attempts are made at once.
#[non_exhaustive]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Concurrency {
    /// As many as there are workers.
    #[default]
    Fixed,
    /// As many as the other side bears, and as many as there are workers at most.
    ///
    /// It begins with 8, grows by half while nothing is refused and the median latency is below
    /// twice the lowest that was seen, and goes back by 15 % (refusals: 429, 503, refused
    /// connections) or 30 % (latency) otherwise. What it finds is in
    /// [`PoolStats`](crate::workers::PoolStats).
    Adaptive,
}

/// Where the walk begins.
const START: f64 = 8.0;
/// Growth while no wall is known.
const GROWTH: f64 = 1.5;
/// What refusals leave of the number.
const AFTER_REFUSALS: f64 = 0.85;
/// What a risen latency leaves of it; more, so that its fall can be told from chance.
const AFTER_LATENCY: f64 = 0.7;
/// Where it stays below a wall.
const BELOW_WALL: f64 = 0.9;
/// How many quiet windows come before one more is tried there; twice as many each time that it is
/// refused, up to the second.
const PATIENCE: u32 = 4;
const MOST_PATIENCE: u32 = 32;
/// From which on the tries go no further than the one before.
const MOST_TRIES: u32 = 6;
/// A new figure counts by one part of so many.
const SMOOTH: u32 = 4;
/// How far beyond a wall it is gone.
const BEYOND_WALL: f64 = 1.25;
/// The least answers of a window, before a wall is known and after.
const LEAST_ANSWERS: (f64, f64) = (48.0, 100.0);
/// How many times the lowest latency is too long.
const TOO_LONG: u32 = 2;
/// Below this, latencies are a matter of the own machine.
const LEAST_LATENCY: Duration = Duration::from_millis(5);
/// The share of refusals that is ordinary until more is known to be.
const ORDINARY: f64 = 0.005;
/// The share of throttled answers up to which it can be ordinary. Above, somebody counts requests.
const MOST_ORDINARY: f64 = 0.1;

/// What an attempt says about how much the other side bears.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Echo {
    /// Neither 429 nor 503: an answer, or a failure on the way, after so long.
    Heard(Duration),
    /// 429 or 503.
    Throttled,
    /// The target refused the connection.
    Refused,
}

impl Echo {
    /// Of an attempt; `None` where it says nothing about its target.
    pub(crate) fn of(attempt: &Attempt) -> Option<Self> {
        match (&attempt.error, attempt.status) {
            (Some(error), _) => match (error.fault, error.kind, error.phase) {
                (Fault::Target, ErrorKind::Connection, Phase::Connect) => Some(Self::Refused),
                (Fault::Target, ErrorKind::NameNotFound | ErrorKind::NameLookup, _) => None,
                (Fault::Target, ..) => Some(Self::Heard(attempt.elapsed)),
                _ => None,
            },
            (None, Some(429 | 503)) => Some(Self::Throttled),
            (None, Some(_)) => Some(Self::Heard(attempt.elapsed)),
            (None, None) => None,
        }
    }
}

/// Between which two changes of the number an attempt was begun.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Era(u64);

/// What was found so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Found {
    /// How many at once at present.
    pub(crate) limit: u64,
    /// The most that a whole window bore without objection.
    pub(crate) most: u64,
    /// How often it was too many.
    pub(crate) back_offs: u64,
}

/// The number, and why it is what it is.
#[derive(Debug, Clone)]
pub(crate) struct Walk {
    /// Fractions accumulate.
    limit: f64,
    ceiling: f64,
    era: Era,
    window: Window,
    /// The lowest median of a window, smoothed.
    base: Option<Duration>,
    /// The share of refusals that comes of no number.
    ordinary: f64,
    /// The last number that went well.
    good: Option<f64>,
    /// The last number that did not.
    wall: Option<f64>,
    /// How many quiet windows there are between two tries below a wall.
    rest: u32,
    /// How many of them are left.
    patience: u32,
    /// How many tries below this wall went well.
    tries: u32,
    /// A decrease that has yet to show whether it helps.
    on_trial: Option<Decrease>,
    most: f64,
    back_offs: u64,
}

#[derive(Debug, Clone, Default)]
struct Window {
    throttled: u32,
    refused: u32,
    times: Vec<Duration>,
    /// Whether another attempt would have been made, had the number been larger.
    pressed: bool,
}

/// What a window came to.
#[derive(Debug, Clone, Copy)]
struct Seen {
    answers: f64,
    throttled: f64,
    refused: f64,
    median: Option<Duration>,
}

#[derive(Debug, Clone, Copy)]
struct Decrease {
    because: Because,
    from: f64,
    wall: Option<f64>,
    seen: Seen,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Because {
    Refusals,
    Latency,
}

impl Walk {
    /// From the start towards `ceiling`.
    pub(crate) fn new(ceiling: usize) -> Self {
        let ceiling = (ceiling as f64).max(1.0);
        Self {
            limit: START.min(ceiling),
            ceiling,
            era: Era::default(),
            window: Window::default(),
            base: None,
            ordinary: ORDINARY,
            good: None,
            wall: None,
            rest: PATIENCE,
            patience: PATIENCE,
            tries: 0,
            on_trial: None,
            most: 0.0,
            back_offs: 0,
        }
    }

    /// How many attempts may be under way.
    pub(crate) fn limit(&self) -> usize {
        // Never below 1 nor above the ceiling, and `as` saturates.
        self.limit as usize
    }

    /// What was found so far.
    pub(crate) fn found(&self) -> Found {
        let most = self.most as u64;
        Found { limit: self.limit as u64, most, back_offs: self.back_offs }
    }

    /// There are no more workers than this.
    pub(crate) fn cap(&mut self, workers: usize) {
        self.ceiling = (workers as f64).max(1.0);
        self.set(self.limit);
    }

    /// The era of an attempt that begins now.
    pub(crate) fn era(&self) -> Era {
        self.era
    }

    /// Notes that more attempts would have been made.
    pub(crate) fn press(&mut self) {
        self.window.pressed = true;
    }

    /// Notes what an attempt that was begun in `era` came to.
    pub(crate) fn hear(&mut self, era: Era, echo: Echo) {
        if era != self.era {
            return;
        }
        match echo {
            Echo::Heard(took) => self.window.times.push(took),
            Echo::Throttled => self.window.throttled += 1,
            Echo::Refused => self.window.refused += 1,
        }
        let size = self.window_size();
        let too_many = self.window.refusals() > bearable(size * self.ordinary);
        if too_many || self.window.answers() >= size {
            let (seen, pressed) = self.window.close();
            self.judge(seen, too_many, pressed);
        }
    }

    /// Twice what is under way, so that every place has answered under the present load.
    fn window_size(&self) -> f64 {
        let least = if self.wall.is_some() { LEAST_ANSWERS.1 } else { LEAST_ANSWERS.0 };
        (2.0 * self.limit).max(least)
    }

    fn judge(&mut self, seen: Seen, too_many: bool, pressed: bool) {
        if let Some(decrease) = self.on_trial.take()
            && !decrease.helps(&seen)
        {
            self.take_back(decrease, &seen);
            return;
        }
        if too_many {
            self.back_off(Because::Refusals, seen);
            return;
        }
        if let Some(median) = seen.median {
            // The median of a window is a matter of luck too, and the lowest of many most of all.
            let base = self
                .base
                .map_or(median, |base| base.saturating_sub(base.saturating_sub(median) / SMOOTH));
            self.base = Some(base);
            if median > base.max(LEAST_LATENCY).saturating_mul(TOO_LONG) {
                self.back_off(Because::Latency, seen);
                return;
            }
        }
        self.learn_ordinary(&seen);
        let is_quiet = seen.refusals() <= seen.answers * self.ordinary;
        if is_quiet && pressed {
            self.grow();
        }
    }

    /// Well below the wall, or before there is one, refusals that are few come of no number.
    fn learn_ordinary(&mut self, seen: &Seen) {
        if self.wall.is_none_or(|wall| self.limit <= wall * BELOW_WALL) {
            let toward = seen.ordinary() - self.ordinary;
            self.ordinary = (self.ordinary + toward / f64::from(SMOOTH)).max(ORDINARY);
        }
    }

    fn grow(&mut self) {
        self.good = Some(self.limit);
        self.most = self.most.max(self.limit);
        let next = match self.wall.map(|wall| wall * BELOW_WALL) {
            None => self.limit * GROWTH,
            Some(below) if self.limit < below => {
                (self.limit + ((below - self.limit) / 2.0).max(1.0)).min(below)
            }
            Some(_) => {
                let tries = self.tries;
                if tries > 0 {
                    self.rest = PATIENCE;
                }
                self.patience = self.patience.saturating_sub(1);
                if self.patience > 0 {
                    return;
                }
                // After each try that went well the next one goes twice as far, and comes sooner.
                self.tries = (tries + 1).min(MOST_TRIES);
                self.patience = PATIENCE / 2;
                (self.limit + (self.limit / 50.0).max(1.0) * f64::from(1_u32 << tries)).floor()
            }
        };
        if self.wall.is_some_and(|wall| next > wall * BEYOND_WALL + 1.0) {
            (self.wall, self.tries, self.rest) = (None, 0, PATIENCE);
        }
        self.set(next);
    }

    fn back_off(&mut self, because: Because, seen: Seen) {
        let from = self.limit;
        let mut to = match because {
            Because::Refusals => from * AFTER_REFUSALS,
            Because::Latency => from * AFTER_LATENCY,
        };
        // The first steps are wide, and there is nothing to be learnt between the last two.
        if let (None, Some(good)) = (self.wall, self.good) {
            to = to.min(good);
        }
        self.on_trial = Some(Decrease { because, from, wall: self.wall, seen });
        if self.wall.is_some() {
            self.rest = (self.rest * 2).min(MOST_PATIENCE);
        }
        self.tries = 0;
        self.wall = Some(from.floor());
        self.good = None;
        self.patience = self.rest;
        self.back_offs += 1;
        self.set(to);
    }

    fn take_back(&mut self, decrease: Decrease, seen: &Seen) {
        match decrease.because {
            Because::Refusals => {
                self.ordinary = self.ordinary.max(seen.ordinary());
            }
            Because::Latency => self.base = seen.median.or(self.base),
        }
        self.wall = decrease.wall;
        self.set(decrease.from);
    }

    fn set(&mut self, limit: f64) {
        self.limit = limit.clamp(1.0, self.ceiling);
        self.era = Era(self.era.0 + 1);
        self.window.close();
    }
}

impl Decrease {
    fn helps(&self, after: &Seen) -> bool {
        match self.because {
            Because::Refusals => {
                let share = after.share_of(after.refusals());
                let before = self.seen.share_of(self.seen.refusals());
                share <= before / 2.0 || after.share_of(after.throttled) > MOST_ORDINARY
            }
            // It has to fall by a third of what a queue would let it fall by.
            Because::Latency => match (self.seen.median, after.median) {
                (Some(before), Some(after)) => {
                    after.as_secs_f64()
                        <= before.as_secs_f64() * (1.0 - (1.0 - AFTER_LATENCY) / 3.0)
                }
                _ => true,
            },
        }
    }
}

impl Window {
    fn refusals(&self) -> f64 {
        f64::from(self.throttled) + f64::from(self.refused)
    }

    fn answers(&self) -> f64 {
        self.refusals() + self.times.len() as f64
    }

    /// What it came to; the next one begins.
    fn close(&mut self) -> (Seen, bool) {
        let (answers, middle) = (self.answers(), self.times.len() / 2);
        let median = (!self.times.is_empty())
            .then(|| *self.times.select_nth_unstable(middle).1)
            .filter(|_| self.times.len() as f64 >= LEAST_ANSWERS.0 / 2.0);
        let seen = Seen {
            answers,
            throttled: f64::from(self.throttled),
            refused: f64::from(self.refused),
            median,
        };
        // The room for the times is kept.
        self.times.clear();
        (self.throttled, self.refused) = (0, 0);
        (seen, std::mem::take(&mut self.pressed))
    }
}

impl Seen {
    fn refusals(&self) -> f64 {
        self.throttled + self.refused
    }

    /// The share of refusals, as far as it can be ordinary.
    fn ordinary(&self) -> f64 {
        self.share_of(self.throttled).min(MOST_ORDINARY) + self.share_of(self.refused)
    }

    fn share_of(&self, count: f64) -> f64 {
        if self.answers > 0.0 { count / self.answers } else { 0.0 }
    }
}

/// How many refusals chance may bring where so many are ordinary: three deviations more, and one.
fn bearable(ordinary: f64) -> f64 {
    1.0 + ordinary + 3.0 * ordinary.sqrt()
}

#[cfg(test)]
#[path = "concurrency_tests.rs"]
mod tests;
