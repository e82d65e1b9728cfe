//! What goes wrong in a simulated night, and for how long.
//!
//! What a URL meets depends on the seed and on its number alone, not on when it is asked or by
//! which worker. So two policies, two numbers of workers or two lists of limits can be compared on
//! the very same night.

use super::latency::LatencyModel;
use crate::error::Error;
use crate::rng::Rng;
use std::fmt;
use std::time::Duration;

/// One kind of fault.
#[non_exhaustive]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Trouble {
    /// Nobody answers the connect: takes the connect timeout.
    ConnectTimeout,
    /// The connection is refused, as fast as an answer would come.
    ConnectRefused,
    /// The server takes the request and says nothing: takes the read timeout.
    Silence,
    /// The connection stands in the last moment of the connect timeout, and then there is silence:
    /// takes both timeouts, the most that an attempt can take.
    Stall,
    /// The connection is reset instead of an answer.
    Reset,
    /// The body ends before it is complete.
    Truncated,
    /// An answer with this status.
    Status(u16),
    /// An answer with this status and a Retry-After.
    Throttle(u16),
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ConnectTimeout => f.write_str("connect timeout"),
            Self::ConnectRefused => f.write_str("connection refused"),
            Self::Silence => f.write_str("silence"),
            Self::Stall => f.write_str("late connection and silence"),
            Self::Reset => f.write_str("reset"),
            Self::Truncated => f.write_str("truncated body"),
            Self::Status(status) => write!(f, "{status}"),
            Self::Throttle(status) => write!(f, "{status} with Retry-After"),
        }
    }
}

/// For how long a URL that is in trouble stays so.
#[non_exhaustive]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Persistence {
    /// Its first attempt fails, the second meets a server in good health.
    Once,
    /// So many attempts fail.
    Attempts(u32),
    /// Every attempt fails.
    Always,
}

/// What happens to attempts that are more at once than the servers bear.
#[non_exhaustive]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Overload {
    /// Those that are too many are answered with this status, in a tenth of the usual time.
    Refuse(u16),
    /// All that begin take longer, by as much as they are more: a queue.
    Slow,
}

/// What goes wrong, how often and for how long, and how long an answer takes.
///
/// # Defaults
/// Nothing goes wrong, and each answer takes half a second. Trouble lasts for one attempt. A
/// Retry-After names 2 s and is true.
///
/// # Examples
/// ```
/// use longhaul::secs;
/// use longhaul::workers::simulation::{FaultModel, LatencyModel, Persistence, Trouble};
///
/// let faults = FaultModel::none()
///     .latency(LatencyModel::lognormal(secs(0.4), secs(2.0))?)
///     .share(Trouble::Silence, 0.005)
///     .share(Trouble::Status(503), 0.01)
///     .share(Trouble::Status(404), 0.02)
///     .persistence(Persistence::Attempts(2))
///     .retry_after(secs(5.0));
/// # Ok::<(), longhaul::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
#[must_use]
pub struct FaultModel {
    shares: Vec<(Trouble, f64)>,
    pub(super) persistence: Persistence,
    pub(super) latency: LatencyModel,
    pub(super) retry_after: Duration,
    pub(super) honest: bool,
    pub(super) dead_proxies: usize,
    pub(super) overload: Option<(usize, Overload)>,
}

impl FaultModel {
    /// A night without any fault.
    pub fn none() -> Self {
        Self {
            shares: Vec::new(),
            persistence: Persistence::Once,
            latency: LatencyModel::fixed(Duration::from_millis(500)),
            retry_after: Duration::from_secs(2),
            honest: true,
            dead_proxies: 0,
            overload: None,
        }
    }

    /// The share of URLs that meet this trouble, from 0 to 1, in place of the one given before.
    ///
    /// A URL meets one trouble at most, so all shares together make 1 at most. 404 and other
    /// statuses that are no failure of the moment had better be
    /// [`Always`](Persistence::Always); with another persistence they are what they are only as
    /// long as it lasts, which for those that are never retried makes no difference.
    pub fn share(mut self, trouble: Trouble, share: f64) -> Self {
        self.shares.retain(|(have, _)| *have != trouble);
        self.shares.push((trouble, share));
        self
    }

    /// For how long a URL stays in trouble. Default: [`Persistence::Once`].
    ///
    /// A [`Throttle`](Trouble::Throttle) that tells the truth lasts for as long as it says.
    pub fn persistence(mut self, persistence: Persistence) -> Self {
        self.persistence = persistence;
        self
    }

    /// How long an answer takes, and whatever else is not decided by a timeout. Default: half a
    /// second, always.
    pub fn latency(mut self, latency: impl Into<LatencyModel>) -> Self {
        self.latency = latency.into();
        self
    }

    /// The wait that a [`Throttle`](Trouble::Throttle) names. Default: 2 s.
    pub fn retry_after(mut self, wait: Duration) -> Self {
        self.retry_after = wait;
        self
    }

    /// Whether that wait is true. Default: on.
    ///
    /// A server that tells the truth throttles the URL until the time that its first answer named,
    /// each further answer naming what is left, and is in good health then. One that lies names
    /// the same wait each time and goes by the [`persistence`](Self::persistence).
    pub fn honest_retry_after(mut self, honest: bool) -> Self {
        self.honest = honest;
        self
    }

    /// How many members of the proxy pool are dead all night, drawn by the seed: nobody answers
    /// there, so an attempt takes the connect timeout. Default: none.
    pub fn dead_proxies(mut self, dead: usize) -> Self {
        self.dead_proxies = dead;
        self
    }

    /// What happens when more than `parallel` attempts are under way, over all hosts. Default:
    /// nothing.
    ///
    /// With this, what a URL meets depends on when it is asked too.
    pub fn overload(mut self, parallel: usize, overload: Overload) -> Self {
        self.overload = Some((parallel, overload));
        self
    }

    /// The shares, in the order in which they were given.
    pub fn shares(&self) -> &[(Trouble, f64)] {
        &self.shares
    }

    /// The share of URLs that meet any trouble.
    pub fn failure_rate(&self) -> f64 {
        self.shares.iter().map(|(_, share)| share).sum()
    }

    /// The same night, but every URL meets this trouble.
    pub(super) fn only(&self, trouble: Trouble) -> Self {
        Self { shares: vec![(trouble, 1.0)], ..self.clone() }
    }

    /// Whether any server names a wait.
    pub(super) fn throttles(&self) -> bool {
        self.has(|trouble| matches!(trouble, Trouble::Throttle(_)))
    }

    /// Whether some URL meets such a trouble.
    pub(super) fn has(&self, such: impl Fn(Trouble) -> bool) -> bool {
        self.shares.iter().any(|(trouble, share)| *share > 0.0 && such(*trouble))
    }

    /// What a URL meets.
    pub(super) fn draw(&self, rng: &mut Rng) -> Option<Trouble> {
        let mut left = rng.unit();
        for (trouble, share) in &self.shares {
            if left < *share {
                return Some(*trouble);
            }
            left -= share;
        }
        None
    }

    /// Whether the values can be used; [`Simulation::run`](super::Simulation::run) calls it.
    ///
    /// # Errors
    /// `Config` for shares that are none or make more than 1, for a status that is no failure
    /// (or is 407, which is the word of a proxy), for trouble that lasts for no attempt, and for a
    /// Retry-After of zero.
    pub fn validate(&self) -> Result<(), Error> {
        for (trouble, share) in &self.shares {
            if !(0.0..=1.0).contains(share) {
                return Err(Error::config(format!(
                    "the share {share} of `{trouble}` is no share; give 0 to 1, such as 0.02"
                )));
            }
            if let Trouble::Status(status) | Trouble::Throttle(status) = trouble
                && (!(400..=599).contains(status) || *status == 407)
            {
                return Err(Error::config(format!(
                    "the status {status} is no fault of a server; give one of 400 to 599 other than 407"
                )));
            }
        }
        let all = self.failure_rate();
        // Ten times a tenth is a little more than one.
        if all > 1.0 + 1e-9 {
            return Err(Error::config(format!(
                "the shares of all faults make {all}; give 1 at most, since a URL meets one only"
            )));
        }
        if self.persistence == Persistence::Attempts(0) {
            return Err(Error::config(
                "faults that last for 0 attempts are none; give at least 1, or a share of 0",
            ));
        }
        if self.throttles() && self.retry_after.is_zero() {
            return Err(Error::config(
                "a Retry-After of zero asks for nothing; give a positive wait, or the status without it",
            ));
        }
        Ok(())
    }
}

impl Default for FaultModel {
    fn default() -> Self {
        Self::none()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_is_refused_by_name() {
        let none = FaultModel::none;
        for (faults, words) in [
            (none().share(Trouble::Reset, -0.1), "the share -0.1 of `reset`"),
            (none().share(Trouble::Status(503), f64::NAN), "the share NaN of `503`"),
            (none().share(Trouble::Throttle(200), 0.1), "the status 200"),
            (none().share(Trouble::Status(407), 0.1), "the status 407"),
            (none().share(Trouble::Reset, 0.7).share(Trouble::Silence, 0.4), "make 1.1"),
            (none().persistence(Persistence::Attempts(0)), "0 attempts"),
            (
                none().share(Trouble::Throttle(429), 0.1).retry_after(Duration::ZERO),
                "a Retry-After of zero",
            ),
        ] {
            let error = faults.validate().unwrap_err();
            assert!(error.message().contains(words), "{error}");
        }
        let tenths = (0..10).fold(none(), |faults, n| faults.share(Trouble::Status(500 + n), 0.1));
        tenths.validate().unwrap();
    }

    #[test]
    fn shares_are_drawn_as_they_are_given() {
        let faults = FaultModel::none()
            .share(Trouble::Reset, 0.5)
            .share(Trouble::Silence, 0.2)
            .share(Trouble::Reset, 0.1);
        let mut rng = Rng::seeded(2);
        let mut counts = [0; 3];
        for _ in 0..100_000 {
            let place = match faults.draw(&mut rng) {
                Some(Trouble::Silence) => 0,
                Some(_) => 1,
                None => 2,
            };
            counts[place] += 1;
        }
        for (count, share) in counts.into_iter().zip([0.2, 0.1, 0.7]) {
            let have = f64::from(count) / 100_000.0;
            assert!((have - share).abs() < 0.005, "{counts:?}");
        }
        assert_eq!(faults.shares(), [(Trouble::Silence, 0.2), (Trouble::Reset, 0.1)]);
    }
}
