//! When so much goes wrong that going on makes no sense.
//!
//! A site that has changed its mind, a provider whose line is down, a login that has run out: each
//! makes a list of forty thousand URLs fail one by one, and the run that goes on to the end of it
//! has burnt the night, the account and the good name of the address. The last URLs tell: when too
//! large a share of them failed, a run is better stopped, and resumed once somebody has looked.

use super::Share;
use std::collections::VecDeque;
use std::fmt;
use std::num::NonZeroU32;
use std::str::FromStr;

/// A share of failures among the last so many URLs, at which a run is stopped.
///
/// # Examples
/// ```
/// use longhaul::policy::FailureShare;
///
/// let rule: FailureShare = "50%/200".parse()?;
/// assert_eq!(rule.to_string(), "50%/200");
/// # Ok::<(), String>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FailureShare {
    share: f64,
    last: NonZeroU32,
}

impl FailureShare {
    /// The most URLs that can be looked back on.
    pub const MOST: u32 = 100_000;

    /// At this share, from above 0 to 1, of the last so many URLs; `None` for another share, and
    /// for more URLs than [`MOST`](Self::MOST).
    pub fn new(share: f64, last: NonZeroU32) -> Option<Self> {
        (share > 0.0 && share <= 1.0 && last.get() <= Self::MOST).then_some(Self { share, last })
    }

    /// The least number of failures among the last URLs that is too many.
    fn too_many(self) -> u32 {
        // A share of at most 1 of a number that fits.
        let count = (self.share * f64::from(self.last.get())).ceil();
        (count as u32).clamp(1, self.last.get())
    }
}

impl FromStr for FailureShare {
    type Err = String;

    /// Reads `50%/200`, or `0.5/200`.
    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || {
            let most = Self::MOST;
            let shown = text.escape_debug();
            format!(
                "'{shown}' is not a share of failures; give one such as 50%/200, of the last {most} URLs at most"
            )
        };
        let (share, last) = text.split_once('/').ok_or_else(wrong)?;
        let share: Share = share.trim().parse().map_err(|_| wrong())?;
        let last = last.trim().parse().map_err(|_| wrong())?;
        Self::new(share.as_f64(), last).ok_or_else(wrong)
    }
}

impl fmt::Display for FailureShare {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Rounded, so that 0.07 does not become 7.000000000000001 %.
        write!(f, "{}%/{}", (self.share * 1e6).round() / 1e4, self.last)
    }
}

/// The outcomes of the last URLs of a run, under a [`FailureShare`].
#[derive(Debug, Clone)]
pub struct LastOutcomes {
    rule: FailureShare,
    failed: VecDeque<bool>,
    failures: u32,
}

impl LastOutcomes {
    /// Nothing has ended yet.
    pub fn new(rule: FailureShare) -> Self {
        Self { rule, failed: VecDeque::new(), failures: 0 }
    }

    /// The rule.
    pub fn rule(&self) -> FailureShare {
        self.rule
    }

    /// A URL has ended. The number of failures among the last URLs where it is too many, which it
    /// never is before there were so many URLs.
    pub fn note(&mut self, failed: bool) -> Option<u32> {
        let last = self.rule.last.get() as usize;
        self.failed.push_back(failed);
        self.failures += u32::from(failed);
        if self.failed.len() > last {
            self.failures -= u32::from(self.failed.pop_front() == Some(true));
        }
        (self.failed.len() == last && self.failures >= self.rule.too_many())
            .then_some(self.failures)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn rule(text: &str) -> FailureShare {
        text.parse().unwrap()
    }

    #[test]
    fn only_a_full_window_tells() {
        let mut last = LastOutcomes::new(rule("50%/4"));
        let mut note = |failed| last.note(failed);
        assert_eq!([true, true, true].map(&mut note), [None; 3]);
        assert_eq!(note(false), Some(3));
        assert_eq!([false, false].map(&mut note), [Some(2), None]);
        assert_eq!([true, true].map(&mut note), [None, Some(2)]);
    }

    #[test]
    fn spellings() {
        for (text, shown) in [
            ("50%/200", "50%/200"),
            (" 0.5 / 200 ", "50%/200"),
            ("7%/3", "7%/3"),
            ("100%/1", "100%/1"),
        ] {
            assert_eq!(rule(text).to_string(), shown);
        }
        for text in ["", "50%", "50%/0", "0%/9", "101%/9", "50/200", "50%/100001", "x/9", "NaN/9"] {
            let error = text.parse::<FailureShare>().unwrap_err();
            assert!(error.starts_with(&format!("'{text}' is not a share")), "{error}");
        }
    }

    proptest! {
        #[test]
        fn agrees_with_counting(
            outcomes in proptest::collection::vec(any::<bool>(), 0..60),
            share in 0.01_f64..=1.0,
            last in 1_u32..20,
        ) {
            let rule = FailureShare::new(share, NonZeroU32::new(last).unwrap()).unwrap();
            let mut ring = LastOutcomes::new(rule);
            for end in 1..=outcomes.len() {
                let said = ring.note(outcomes[end - 1]);
                let window = &outcomes[end.saturating_sub(last as usize)..end];
                let failures = window.iter().filter(|failed| **failed).count();
                let full = window.len() == last as usize;
                let wanted = full && failures as f64 >= share * f64::from(last);
                prop_assert_eq!(said, wanted.then_some(failures as u32));
            }
        }
    }
}
