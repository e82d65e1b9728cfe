//! When each attempt of a record was.

use super::line::{Decoded, LineAttempt};
use super::spread::time;
use std::time::{Duration, SystemTime};

/// Goes through the attempts of a record. A record tells when its URL ended, and its attempts tell how
/// long before that each of them was. Those of earlier passes count as made when the last pass began,
/// since the pause between two passes is not known.
pub(super) struct Moments {
    began: Option<Duration>,
    ended: Duration,
    passed: Duration,
}

impl Moments {
    pub(super) fn of(decoded: &Decoded<'_>) -> Self {
        let ended = decoded.ended.unwrap_or_default();
        let elapsed = from_millis(decoded.line.elapsed_ms);
        let began = decoded.ended.map(|ended| ended.saturating_sub(elapsed));
        Self { began, ended, passed: Duration::ZERO }
    }

    /// The second in which this attempt ended; `None` where the record tells no time.
    pub(super) fn next(&mut self, attempt: &LineAttempt<'_>, pass: u32) -> Option<u64> {
        let counts = attempt.pass == pass;
        if counts {
            self.passed = self.passed.saturating_add(from_millis(attempt.elapsed_ms));
        }
        let at = self.began?.saturating_add(self.passed).min(self.ended);
        if counts {
            let wait = from_millis(attempt.wait_ms.unwrap_or_default());
            self.passed = self.passed.saturating_add(wait);
        }
        Some(at.as_secs())
    }
}

pub(super) fn from_millis(ms: f64) -> Duration {
    crate::time::secs(time(ms) / 1000.0)
}

/// A moment since 1970 as records have them; to the second where it is a whole one.
pub(super) fn moment(since: Duration) -> String {
    // Beyond what can be written is beyond all that records can hold.
    let most = Duration::from_secs(253_402_300_799);
    let at = SystemTime::UNIX_EPOCH + since.min(most);
    match since.subsec_nanos() {
        0 => humantime::format_rfc3339_seconds(at).to_string(),
        _ => humantime::format_rfc3339_millis(at).to_string(),
    }
}
