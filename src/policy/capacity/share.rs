//! A part of a whole, exact for the numbers that people write.

use super::BILLION;
use crate::error::Error;
use std::fmt;
use std::str::FromStr;

/// A part of a whole: from none to all, in billionths, so that 2 % of 40 000 is 800 and nothing
/// else.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Share(u32);

impl Share {
    /// Nothing.
    pub const NONE: Self = Self(0);

    /// One of two.
    pub const HALF: Self = Self(500_000_000);

    /// Everything.
    pub const ALL: Self = Self(1_000_000_000);

    /// From a number between 0 and 1; nine decimals count.
    ///
    /// # Errors
    /// `Config` for anything else.
    pub fn new(part: f64) -> Result<Self, Error> {
        if (0.0..=1.0).contains(&part) {
            return Ok(Self((part * BILLION as f64).round() as u32));
        }
        Err(refused(&part.to_string()))
    }

    /// As a number between 0 and 1.
    pub fn as_f64(self) -> f64 {
        f64::from(self.0) / BILLION as f64
    }

    /// In billionths.
    pub(in crate::policy) fn parts(self) -> u128 {
        self.0.into()
    }

    /// What is not in it, in billionths.
    pub(super) fn rest(self) -> u128 {
        BILLION - self.parts()
    }
}

impl FromStr for Share {
    type Err = Error;

    /// `0.02`, `2%` or `2 %`.
    fn from_str(text: &str) -> Result<Self, Error> {
        let text = text.trim();
        let (number, scale) = match text.strip_suffix('%') {
            Some(percent) => (percent.trim_end(), 100.0),
            None => (text, 1.0),
        };
        // Infinity and NaN have spellings that parse.
        let digits = number.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
        number
            .parse::<f64>()
            .ok()
            .filter(|_| digits)
            .and_then(|number| Self::new(number / scale).ok())
            .ok_or_else(|| refused(text))
    }
}

fn refused(given: &str) -> Error {
    Error::config(format!(
        "`{given}` is not a share: give a number from 0 to 1, or from 0% to 100%"
    ))
}

impl fmt::Display for Share {
    /// `2 %`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} %", f64::from(self.0) / 1e7)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spellings() {
        for (text, parts) in [
            ("0", 0),
            ("0.02", 20_000_000),
            ("2%", 20_000_000),
            (" 2 % ", 20_000_000),
            ("0.7%", 7_000_000),
            ("33.3 %", 333_000_000),
            ("1", 1_000_000_000),
            ("100%", 1_000_000_000),
            (".5", 500_000_000),
        ] {
            assert_eq!(text.parse::<Share>().unwrap().0, parts, "{text}");
        }
        for wrong in ["", "%", "-0.1", "1.1", "101%", "NaN", "inf", "1e-3", "two", "0.0.2"] {
            let error = wrong.parse::<Share>().unwrap_err();
            assert!(error.message().contains(&format!("`{wrong}`")), "{error}");
        }
        for wrong in [f64::NAN, f64::INFINITY, -0.001, 1.001] {
            Share::new(wrong).unwrap_err();
        }
        assert_eq!(Share::new(0.02).unwrap().to_string(), "2 %");
        assert_eq!(Share::new(0.005).unwrap().to_string(), "0.5 %");
        assert_eq!(Share::new(0.25).unwrap().as_f64(), 0.25);
    }
}
