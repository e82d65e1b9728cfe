//! The wait before a retry.
//!
//! A wait between attempts does two things: it gives the other side time to recover, and it keeps
//! many clients that failed at the same instant from coming back at the same instant. The plain
//! exponential series does only the first, and one can say in advance how long it takes; the
//! jittered shapes do both, and only their longest can be told. Every shape therefore answers two
//! questions, [`wait`](Backoff::wait) and [`longest`](Backoff::longest), and the second is what the
//! worst case is made of.
//!
//! All arithmetic is on whole nanoseconds and saturates at the cap: a run with a hundred thousand
//! retries waits its cap before the last one, never zero and never a panic.

use crate::rng::Rng;
use std::time::Duration;

/// urllib3's `DEFAULT_BACKOFF_MAX`.
const URLLIB3_MAX: Duration = Duration::from_secs(120);

/// How the waits grow from one retry to the next; `factor` and `cap` are those of the [`Backoff`].
#[non_exhaustive]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Shape {
    /// `factor · 2^(k−1)` before retry `k`: 0.6, 1.2, 2.4, 4.8 for a factor of 0.6 s.
    Exponential,
    /// As urllib3 2.x: no wait before the first retry, then as [`Exponential`](Self::Exponential).
    Urllib3,
    /// Anything between zero and the exponential wait.
    FullJitter,
    /// Half of the exponential wait, and anything up to the other half.
    EqualJitter,
    /// Between `factor` and three times the previous wait; `factor` stands for the previous wait
    /// of the first retry.
    Decorrelated,
    /// `factor` before each retry.
    Constant,
}

/// The shape of the waits between attempts.
///
/// # Defaults
/// The cap is 120 s (urllib3's `backoff_max`), the additive jitter zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Backoff {
    shape: Shape,
    factor: Duration,
    cap: Duration,
    jitter: Duration,
}

impl Backoff {
    /// A series of this shape; see the variants of [`Shape`] for what `factor` means to each.
    pub const fn new(shape: Shape, factor: Duration) -> Self {
        Self { shape, factor, cap: URLLIB3_MAX, jitter: Duration::ZERO }
    }

    /// No wait at all; urllib3's default (`backoff_factor=0`).
    pub const fn none() -> Self {
        Self::new(Shape::Urllib3, Duration::ZERO)
    }

    /// `factor · 2^(k−1)` before retry `k`.
    pub const fn exponential(factor: Duration) -> Self {
        Self::new(Shape::Exponential, factor)
    }

    /// urllib3's series: nothing before the first retry, then `factor · 2^(k−1)`.
    pub const fn urllib3(factor: Duration) -> Self {
        Self::new(Shape::Urllib3, factor)
    }

    /// Anything between zero and the exponential wait.
    pub const fn full_jitter(factor: Duration) -> Self {
        Self::new(Shape::FullJitter, factor)
    }

    /// Half of the exponential wait, and anything up to the other half.
    pub const fn equal_jitter(factor: Duration) -> Self {
        Self::new(Shape::EqualJitter, factor)
    }

    /// `min(cap, uniform(base, 3 · previous))`.
    pub const fn decorrelated(base: Duration) -> Self {
        Self::new(Shape::Decorrelated, base)
    }

    /// The same wait before each retry.
    pub const fn constant(wait: Duration) -> Self {
        Self::new(Shape::Constant, wait)
    }

    /// The longest wait, jitter included; urllib3's `backoff_max`.
    #[must_use]
    pub const fn with_max(mut self, cap: Duration) -> Self {
        self.cap = cap;
        self
    }

    /// Adds anything between zero and `jitter` to each wait, below the cap; urllib3's
    /// `backoff_jitter`. The first wait of [`Shape::Urllib3`] stays zero, as there.
    #[must_use]
    pub const fn with_jitter(mut self, jitter: Duration) -> Self {
        self.jitter = jitter;
        self
    }

    /// The same series with another factor; urllib3's `backoff_factor`.
    #[must_use]
    pub const fn with_factor(mut self, factor: Duration) -> Self {
        self.factor = factor;
        self
    }

    /// The shape.
    pub const fn shape(&self) -> Shape {
        self.shape
    }

    /// The factor, base or constant.
    pub const fn factor(&self) -> Duration {
        self.factor
    }

    /// The longest wait.
    pub const fn max(&self) -> Duration {
        self.cap
    }

    /// The additive jitter.
    pub const fn jitter(&self) -> Duration {
        self.jitter
    }

    /// The wait before retry number `retry_number`, counted from 1.
    ///
    /// `previous` is the wait that this series gave before the retry before; only
    /// [`Shape::Decorrelated`] looks at it.
    pub fn wait(&self, retry_number: u32, previous: Duration, rng: &mut Rng) -> Duration {
        if self.waits_nothing(retry_number) {
            return Duration::ZERO;
        }
        let plain = match self.shape {
            Shape::Exponential | Shape::Urllib3 => self.doubled(retry_number),
            Shape::FullJitter => rng.between(Duration::ZERO, self.doubled(retry_number)),
            Shape::EqualJitter => {
                let whole = self.doubled(retry_number);
                rng.between(whole / 2, whole)
            }
            Shape::Decorrelated => {
                rng.between(self.factor, previous.saturating_mul(3).max(self.factor))
            }
            Shape::Constant => self.factor,
        };
        let jitter = rng.between(Duration::ZERO, self.jitter);
        plain.saturating_add(jitter).min(self.cap)
    }

    /// The longest that [`wait`](Self::wait) can give before this retry; never less than before
    /// the one before it.
    pub fn longest(&self, retry_number: u32) -> Duration {
        if self.waits_nothing(retry_number) {
            return Duration::ZERO;
        }
        let plain = match self.shape {
            Shape::Constant => self.factor,
            Shape::Decorrelated => return self.longest_decorrelated(retry_number),
            _ => self.doubled(retry_number),
        };
        plain.saturating_add(self.jitter).min(self.cap)
    }

    /// What stands for the previous wait before the first retry.
    pub(super) const fn first_previous(&self) -> Duration {
        self.factor
    }

    fn waits_nothing(&self, retry_number: u32) -> bool {
        retry_number == 0 || (retry_number == 1 && self.shape == Shape::Urllib3)
    }

    /// Each wait at its highest, so that the next range is at its widest.
    fn longest_decorrelated(&self, retry_number: u32) -> Duration {
        let mut wait = self.factor;
        for _ in 0..retry_number {
            let next = wait.saturating_mul(3).saturating_add(self.jitter).min(self.cap);
            if next == wait {
                break;
            }
            wait = next;
        }
        wait.min(self.cap)
    }

    /// `min(cap, factor · 2^(retry_number − 1))`.
    fn doubled(&self, retry_number: u32) -> Duration {
        let nanos = self.factor.as_nanos();
        let doublings = retry_number.saturating_sub(1);
        if nanos == 0 {
            return Duration::ZERO;
        }
        if doublings >= nanos.leading_zeros() {
            return self.cap;
        }
        let nanos = nanos << doublings;
        if nanos >= self.cap.as_nanos() {
            return self.cap;
        }
        // Below the cap, so both parts fit.
        let seconds = u64::try_from(nanos / 1_000_000_000).unwrap_or(u64::MAX);
        Duration::new(seconds, u32::try_from(nanos % 1_000_000_000).unwrap_or(0))
    }
}

impl Default for Backoff {
    /// No wait, as urllib3.
    fn default() -> Self {
        Self::none()
    }
}

#[cfg(test)]
#[path = "backoff_tests.rs"]
mod tests;
