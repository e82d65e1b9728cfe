//! How long waits were meant to be when they were begun.
//!
//! The waits that have ended say too little: in the first minutes of a run those of a minute have
//! not. So each is counted when it begins, by its length in half octaves from 1/16 s to an hour,
//! which tells it to a fifth and takes one number each.

use crate::time::secs;
use std::time::Duration;

/// Half octaves.
pub(crate) const LENGTHS: usize = 32;

/// The shortest that is told apart, as a part of a second.
const SHORTEST: f64 = 1.0 / 16.0;

/// How many waits of which length were begun.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct WaitLengths(pub(crate) [u64; LENGTHS]);

impl WaitLengths {
    /// The place of a wait of this length.
    pub(crate) fn place(length: Duration) -> usize {
        let half_octaves = 2.0 * (length.as_secs_f64() / SHORTEST).log2();
        // What is too short becomes 0, what is too long the last.
        (half_octaves.max(0.0) as usize).min(LENGTHS - 1)
    }

    /// Each length, the longest first, and how many waits were at least as long.
    pub(crate) fn descending(&self) -> impl Iterator<Item = (Duration, u64)> {
        let longer = self.0.iter().enumerate().rev().scan(0_u64, |longer, (place, count)| {
            *longer = longer.saturating_add(*count);
            let middle = (place as f64 + 0.5) / 2.0;
            Some((secs(SHORTEST * middle.exp2()), *longer))
        });
        longer.filter(|(_, longer)| *longer > 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_length_is_told_to_a_fifth() {
        for milliseconds in [63_u64, 100, 600, 1200, 20_000, 60_000, 600_000, 3_600_000] {
            let mut lengths = WaitLengths::default();
            let length = Duration::from_millis(milliseconds);
            lengths.0[WaitLengths::place(length)] += 1;
            let told: Vec<_> = lengths.descending().collect();
            let (first, count) = told[0];
            let ratio = first.as_secs_f64() / length.as_secs_f64();
            assert!((0.8..1.2).contains(&ratio), "{milliseconds}: {first:?}");
            assert!(told.iter().all(|(_, longer)| *longer == count && count == 1));
        }
    }

    #[test]
    fn beyond_both_ends() {
        for (length, place) in
            [(Duration::ZERO, 0), (Duration::from_nanos(1), 0), (Duration::MAX, LENGTHS - 1)]
        {
            assert_eq!(WaitLengths::place(length), place, "{length:?}");
        }
        assert_eq!(WaitLengths::default().descending().next(), None);
    }
}
