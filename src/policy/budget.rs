//! One of urllib3's counters.
//!
//! urllib3 writes three meanings into one argument: `None` for no limit, a number, and `False` for
//! "raise as it is". They are three variants here, because `False` and `0` are not the same: with
//! `connect=0` a failed connection uses up the budget and is reported as such, with
//! `connect=False` it never was a matter of retries.

use crate::error::Error;
use std::fmt;
use std::str::FromStr;

/// One of urllib3's counters: no limit (`None`), a number, or off (`False`).
#[allow(clippy::exhaustive_enums, reason = "urllib3 has exactly these three meanings")]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Budget {
    /// No limit of its own.
    Unlimited,
    /// At most this many retries.
    Times(u32),
    /// Never retried; for `total` and `redirect` see their setters.
    Off,
}

impl Budget {
    /// How many retries it permits; `None` is no limit.
    pub const fn limit(self) -> Option<u32> {
        match self {
            Self::Unlimited => None,
            Self::Times(times) => Some(times),
            Self::Off => Some(0),
        }
    }

    /// Whether one more retry is permitted.
    pub const fn has_room(self) -> bool {
        !matches!(self, Self::Times(0) | Self::Off)
    }

    /// What is left after one retry.
    pub(super) const fn less_one(self) -> Self {
        match self {
            Self::Times(times) => Self::Times(times.saturating_sub(1)),
            other => other,
        }
    }
}

impl From<u32> for Budget {
    fn from(times: u32) -> Self {
        Self::Times(times)
    }
}

impl From<Option<u32>> for Budget {
    /// `None` is urllib3's `None`: no limit.
    fn from(times: Option<u32>) -> Self {
        times.map_or(Self::Unlimited, Self::Times)
    }
}

impl From<bool> for Budget {
    /// `false` is [`Off`](Self::Off), and `true` no limit, as urllib3 reads it.
    fn from(on: bool) -> Self {
        if on { Self::Unlimited } else { Self::Off }
    }
}

impl FromStr for Budget {
    type Err = Error;

    /// A number, `none` (no limit) or `off`.
    fn from_str(text: &str) -> Result<Self, Error> {
        let text = text.trim();
        if text.eq_ignore_ascii_case("none") {
            return Ok(Self::Unlimited);
        }
        if text.eq_ignore_ascii_case("off") {
            return Ok(Self::Off);
        }
        text.parse().map(Self::Times).map_err(|_| {
            Error::config(format!(
                "`{text}` is not a retry budget: give a number from 0 on, `none` for no limit, or `off`"
            ))
        })
    }
}

impl fmt::Display for Budget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unlimited => f.write_str("none"),
            Self::Times(times) => write!(f, "{times}"),
            Self::Off => f.write_str("off"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spellings_round_trip() {
        for (text, budget) in [
            ("4", Budget::Times(4)),
            ("0", Budget::Times(0)),
            ("none", Budget::Unlimited),
            ("off", Budget::Off),
        ] {
            assert_eq!(text.parse::<Budget>().unwrap(), budget);
            assert_eq!(budget.to_string(), text);
        }
        for wrong in ["", "-1", "1.5", "many", "4294967296"] {
            let error = wrong.parse::<Budget>().unwrap_err();
            assert!(error.message().contains(&format!("`{wrong}`")), "{error}");
        }
    }

    #[test]
    fn conversions_keep_urllib3s_meanings() {
        assert_eq!(Budget::from(3), Budget::Times(3));
        assert_eq!(Budget::from(None), Budget::Unlimited);
        assert_eq!(Budget::from(Some(0)), Budget::Times(0));
        assert_eq!(Budget::from(false), Budget::Off);
        assert_eq!(Budget::from(true), Budget::Unlimited);
    }
}
