//! The heap of everything that waits for a time.
//!
//! A wait costs one entry here and nothing else: no thread, no socket, no worker. Entries come out
//! in the order of their due time, and in the order of their arrival where those are equal, so a
//! simulation repeats itself. Setting and firing cost O(log n). A cancelled entry stays in the heap
//! as a husk until it comes to the top or until husks outnumber the living; both keep cancelling
//! at O(log n) on average, and memory within twice the number of living entries.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::time::Instant;

/// Names one wait, so that it can be taken back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Timer(u64);

/// What waits, by due time.
#[derive(Debug)]
pub(crate) struct DelayHeap<T> {
    order: BinaryHeap<Reverse<(Instant, Timer)>>,
    living: HashMap<Timer, T>,
    next: u64,
}

impl<T> DelayHeap<T> {
    /// An empty heap.
    pub(crate) fn new() -> Self {
        Self { order: BinaryHeap::new(), living: HashMap::new(), next: 0 }
    }

    /// Lets `value` wait until `due`.
    pub(crate) fn set(&mut self, due: Instant, value: T) -> Timer {
        let timer = Timer(self.next);
        self.next += 1;
        self.order.push(Reverse((due, timer)));
        self.living.insert(timer, value);
        timer
    }

    /// Takes a wait back; `None` where it has fired or was cancelled before.
    pub(crate) fn cancel(&mut self, timer: Timer) -> Option<T> {
        let value = self.living.remove(&timer)?;
        if self.order.len() > 2 * self.living.len() + 64 {
            let living = &self.living;
            self.order.retain(|Reverse((_, timer))| living.contains_key(timer));
        }
        self.drop_husks();
        Some(value)
    }

    /// The next entry whose time has come, the longest due first.
    pub(crate) fn pop_due(&mut self, now: Instant) -> Option<T> {
        if self.next_due()? > now {
            return None;
        }
        let Reverse((_, timer)) = self.order.pop()?;
        let value = self.living.remove(&timer);
        self.drop_husks();
        value
    }

    /// When the next entry is due.
    pub(crate) fn next_due(&self) -> Option<Instant> {
        self.order.peek().map(|Reverse((due, _))| *due)
    }

    /// How many entries wait.
    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.living.len()
    }

    /// Keeps the top a living entry, so that `next_due` never names a cancelled one.
    fn drop_husks(&mut self) {
        while let Some(Reverse((_, timer))) = self.order.peek() {
            if self.living.contains_key(timer) {
                break;
            }
            self.order.pop();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;
    use crate::time::{Clock, SimClock};
    use std::time::Duration;

    fn at(start: Instant, ms: u64) -> Instant {
        start + Duration::from_millis(ms)
    }

    #[test]
    fn due_order_then_arrival_order() {
        let start = SimClock::default().now();
        let mut heap = DelayHeap::new();
        for (ms, name) in [(30, "c"), (10, "a"), (20, "b1"), (20, "b2"), (0, "now")] {
            heap.set(at(start, ms), name);
        }
        assert_eq!(heap.next_due(), Some(start));
        assert_eq!(heap.pop_due(start), Some("now"));
        assert_eq!(heap.pop_due(at(start, 9)), None);
        assert_eq!(heap.pop_due(at(start, 25)), Some("a"));
        assert_eq!(heap.pop_due(at(start, 25)), Some("b1"));
        assert_eq!(heap.pop_due(at(start, 25)), Some("b2"));
        assert_eq!(heap.pop_due(at(start, 25)), None);
        assert_eq!(heap.pop_due(at(start, 30)), Some("c"));
        assert_eq!((heap.next_due(), heap.len()), (None, 0));
    }

    #[test]
    fn cancelled_is_gone_once_and_never_named_as_next() {
        let start = SimClock::default().now();
        let mut heap = DelayHeap::new();
        let first = heap.set(at(start, 1), 'x');
        heap.set(at(start, 2), 'y');
        assert_eq!(heap.cancel(first), Some('x'));
        assert_eq!(heap.cancel(first), None);
        assert_eq!(heap.next_due(), Some(at(start, 2)));
        assert_eq!(heap.pop_due(at(start, 5)), Some('y'));
    }

    #[test]
    fn husks_stay_bounded() {
        let start = SimClock::default().now();
        let mut heap = DelayHeap::new();
        heap.set(start, 0);
        for n in 0..10_000_u64 {
            let timer = heap.set(at(start, n + 1), n);
            heap.cancel(timer);
        }
        assert_eq!(heap.len(), 1);
        assert!(heap.order.len() <= 67, "{}", heap.order.len());
    }

    #[test]
    fn agrees_with_a_sorted_list_over_many_seeds() {
        for seed in 0..200 {
            let mut rng = Rng::seeded(seed);
            let start = SimClock::default().now();
            let mut heap = DelayHeap::new();
            let mut model: Vec<(Instant, u64, Timer)> = Vec::new();
            let mut now = start;
            for step in 0..300_u64 {
                match rng.below(4) {
                    0 | 1 => {
                        let due = now + Duration::from_millis(rng.below(50) as u64);
                        let timer = heap.set(due, step);
                        model.push((due, step, timer));
                    }
                    2 if !model.is_empty() => {
                        let (_, value, timer) = model.remove(rng.below(model.len()));
                        assert_eq!(heap.cancel(timer), Some(value));
                    }
                    _ => {
                        now += Duration::from_millis(rng.below(20) as u64);
                        model.sort();
                        let wanted = match model.first() {
                            Some((due, ..)) if *due <= now => Some(model.remove(0).1),
                            _ => None,
                        };
                        assert_eq!(heap.pop_due(now), wanted, "seed {seed} step {step}");
                    }
                }
                assert_eq!(heap.next_due(), model.iter().map(|entry| entry.0).min());
                assert_eq!(heap.len(), model.len());
            }
        }
    }
}
