//! Counters along time, of any span, in a bounded number of steps.
//!
//! Nobody knows beforehand whether a file tells of a minute or of a month, and it is read once. So the
//! steps begin narrow and become wider when there are too many of them. Each width is a multiple of
//! the one before, and steps begin at multiples of their width, so nothing is counted anew and the
//! edges are whole minutes and hours.

use std::collections::BTreeMap;

/// The widths in seconds; beyond the last one they double.
const WIDTHS: [u64; 13] = [1, 5, 10, 30, 60, 300, 600, 1800, 3600, 10_800, 21_600, 43_200, 86_400];

/// How many steps there may be.
pub(super) const MOST_STEPS: u64 = 240;

/// Counters that can be put together.
pub(super) trait Join: Default {
    /// Adds those of another step.
    fn join(&mut self, other: Self);
}

/// Counters along time; times are seconds since 1970.
#[derive(Debug, Clone)]
pub(super) struct Series<V> {
    width: u64,
    steps: BTreeMap<u64, V>,
}

impl<V: Join> Series<V> {
    /// Steps of at least so many seconds, which has to be one of the widths.
    pub(super) fn from_width(width: u64) -> Self {
        Self { width, steps: BTreeMap::new() }
    }

    /// The counters of the step that this second is in.
    pub(super) fn at(&mut self, second: u64) -> &mut V {
        while !self.fits(second / self.width) {
            self.widen();
        }
        self.steps.entry(second / self.width).or_default()
    }

    /// How wide a step is, in seconds.
    pub(super) fn width(&self) -> u64 {
        self.width
    }

    /// The first second of each step, with its counters; steps without any are there as well.
    pub(super) fn iter(&self) -> impl Iterator<Item = (u64, Option<&V>)> {
        let (first, after) = match (self.steps.first_key_value(), self.steps.last_key_value()) {
            (Some((first, _)), Some((last, _))) => (*first, last.saturating_add(1)),
            _ => (0, 0),
        };
        (first..after).map(|step| (step.saturating_mul(self.width), self.steps.get(&step)))
    }

    fn fits(&self, step: u64) -> bool {
        let first = self.steps.first_key_value().map_or(step, |(first, _)| step.min(*first));
        let last = self.steps.last_key_value().map_or(step, |(last, _)| step.max(*last));
        last - first < MOST_STEPS
    }

    fn widen(&mut self) {
        let wider = WIDTHS.iter().copied().find(|width| *width > self.width);
        let wider = wider.unwrap_or(self.width.saturating_mul(2));
        for (step, counters) in std::mem::take(&mut self.steps) {
            self.steps.entry(step * self.width / wider).or_default().join(counters);
        }
        self.width = wider;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Join for u64 {
        fn join(&mut self, other: Self) {
            *self += other;
        }
    }

    fn steps(series: &Series<u64>) -> Vec<(u64, u64)> {
        series.iter().map(|(from, count)| (from, count.copied().unwrap_or_default())).collect()
    }

    #[test]
    fn each_width_is_a_multiple_of_the_one_before() {
        for pair in WIDTHS.windows(2) {
            assert_eq!(pair[1] % pair[0], 0, "{pair:?}");
        }
    }

    #[test]
    fn steps_widen_and_lose_nothing() {
        let mut series = Series::from_width(1);
        assert_eq!(steps(&series), []);
        for second in [1000, 1000, 1001, 1239] {
            *series.at(second) += 1;
        }
        assert_eq!((series.width(), steps(&series).len()), (1, 240));
        *series.at(1240) += 1;
        assert_eq!(series.width(), 5);
        let nonempty: Vec<_> = steps(&series).into_iter().filter(|step| step.1 > 0).collect();
        assert_eq!(nonempty, [(1000, 3), (1235, 1), (1240, 1)]);
    }

    #[test]
    fn any_order_and_any_span_come_to_the_same() {
        let times = [86_400, 5, 7, 10_000_000, 3, 86_399, 9_999_999, 0, u64::MAX / 4];
        let mut there = Series::<u64>::from_width(1);
        let mut back = Series::<u64>::from_width(1);
        times.iter().for_each(|second| *there.at(*second) += 1);
        times.iter().rev().for_each(|second| *back.at(*second) += 1);
        assert_eq!((there.width(), steps(&there)), (back.width(), steps(&back)));
        assert!(there.iter().count() as u64 <= MOST_STEPS);
        assert_eq!(steps(&there).iter().map(|step| step.1).sum::<u64>(), times.len() as u64);
    }
}
