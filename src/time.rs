//! The one place that reads the clock and sleeps.
//!
//! Everything else receives `now`. A policy that cannot look at the time is a policy whose night
//! of retries runs in milliseconds, so [`SimClock`] stands in for [`SystemClock`] wherever a driver
//! holds an `Arc<dyn Clock>`.

use std::fmt;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};

/// A source of time that can also wait.
///
/// Two times are kept apart on purpose: [`now`](Clock::now) is monotonic and decides waits and
/// deadlines, [`wall`](Clock::wall) is for timestamps and for comparing HTTP dates.
pub trait Clock: fmt::Debug + Send + Sync {
    /// The monotonic time.
    fn now(&self) -> Instant;

    /// The wall-clock time.
    fn wall(&self) -> SystemTime;

    /// Returns once `now()` has reached `until`.
    fn sleep_until(&self, until: Instant);
}

/// The clock of the machine.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

#[allow(clippy::disallowed_methods, reason = "this is the place")]
impl Clock for SystemClock {
    fn now(&self) -> Instant {
        Instant::now()
    }

    fn wall(&self) -> SystemTime {
        SystemTime::now()
    }

    fn sleep_until(&self, until: Instant) {
        let mut now = Instant::now();
        while now < until {
            std::thread::sleep(until - now);
            now = Instant::now();
        }
    }
}

/// A clock that moves only when it is told to, or when somebody sleeps on it.
///
/// `sleep_until` jumps to the wanted time at once, so a single-threaded driver runs through hours
/// of waits without waiting.
#[derive(Debug)]
pub struct SimClock {
    origin: Instant,
    origin_wall: SystemTime,
    elapsed: Mutex<Duration>,
}

impl SimClock {
    /// A clock that starts at `wall`.
    pub fn new(wall: SystemTime) -> Self {
        Self { origin: SystemClock.now(), origin_wall: wall, elapsed: Mutex::new(Duration::ZERO) }
    }

    /// A clock that shows the same times as this one and moves by itself from now on.
    ///
    /// The times of both can be compared, so that one thread can be in several places at
    /// different times: a simulated worker each.
    pub fn fork(&self) -> Self {
        Self {
            origin: self.origin,
            origin_wall: self.origin_wall,
            elapsed: Mutex::new(self.elapsed()),
        }
    }

    /// Moves the clock forward by `by`.
    pub fn advance(&self, by: Duration) {
        let mut elapsed = self.elapsed.lock().unwrap_or_else(PoisonError::into_inner);
        *elapsed = elapsed.saturating_add(by);
    }

    /// How far the clock has moved since it was made.
    pub fn elapsed(&self) -> Duration {
        *self.elapsed.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Default for SimClock {
    /// Starts at the Unix epoch plus 1 750 000 000 s (15 June 2025), a date of no significance.
    fn default() -> Self {
        Self::new(SystemTime::UNIX_EPOCH + Duration::from_secs(1_750_000_000))
    }
}

impl Clock for SimClock {
    fn now(&self) -> Instant {
        self.origin + self.elapsed()
    }

    fn wall(&self) -> SystemTime {
        self.origin_wall + self.elapsed()
    }

    fn sleep_until(&self, until: Instant) {
        let missing = until.saturating_duration_since(self.now());
        self.advance(missing);
    }
}

/// Seconds as a [`Duration`], for constants that read like their unit: `secs(0.6)`.
///
/// Negative and non-finite values give zero, values beyond the range of `Duration` its maximum.
pub fn secs(seconds: f64) -> Duration {
    if seconds.is_nan() || seconds <= 0.0 {
        return Duration::ZERO;
    }
    Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sim_clock_jumps_on_sleep_and_never_backwards() {
        let clock = SimClock::default();
        let start = clock.now();
        clock.sleep_until(start + secs(3600.0));
        assert_eq!(clock.now() - start, secs(3600.0));
        clock.sleep_until(start);
        assert_eq!(clock.elapsed(), secs(3600.0));
    }

    #[test]
    fn a_forked_clock_has_the_same_origin_and_moves_by_itself() {
        let clock = SimClock::default();
        clock.advance(secs(2.0));
        let other = clock.fork();
        assert_eq!((other.now(), other.wall()), (clock.now(), clock.wall()));
        other.advance(secs(1.0));
        assert_eq!((clock.elapsed(), other.elapsed()), (secs(2.0), secs(3.0)));
        assert_eq!(other.now() - clock.now(), secs(1.0));
    }

    #[test]
    fn secs_never_panics() {
        for (given, wanted) in [
            (f64::NAN, Duration::ZERO),
            (-1.0, Duration::ZERO),
            (f64::INFINITY, Duration::MAX),
            (1e300, Duration::MAX),
            (0.6, Duration::from_millis(600)),
        ] {
            assert_eq!(secs(given), wanted, "{given}");
        }
    }
}
