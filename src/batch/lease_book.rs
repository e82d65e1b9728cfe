//! Which leases a run holds, and when each has to be extended.
//!
//! A URL can wait for hours: a backoff, a host that cools down, a later pass. Its lease lasts for a
//! minute, perhaps. So every lease is extended at half of its time, whatever its job is doing, and
//! an extension that fails is tried again at half of what is left: a source that is away for a
//! moment costs nothing, and a lease is given up only when its time is over.
//!
//! The book knows no clock and talks to nobody. It is told what happened and when, and says whom it
//! is time for.

use super::job_source::{Lease, LeaseId};
use std::collections::{BTreeSet, HashMap};
use std::time::{Duration, Instant};

/// Two tries to extend a lease are at least this far apart.
const LEAST_PAUSE: Duration = Duration::from_millis(500);

/// The leases that are held.
#[derive(Debug, Default)]
pub(super) struct LeaseBook {
    held: HashMap<LeaseId, Option<Times>>,
    /// Those that run out, by when they are to be extended.
    due: BTreeSet<(Instant, LeaseId)>,
}

#[derive(Debug, Clone, Copy)]
struct Times {
    lasts: Duration,
    until: Instant,
    due: Instant,
}

impl Times {
    /// Of a lease that lasts from now on; `None` where that is beyond all times.
    fn from(now: Instant, lasts: Duration) -> Option<Self> {
        let until = now.checked_add(lasts)?;
        Some(Self { lasts, until, due: now.checked_add(lasts / 2)? })
    }
}

impl LeaseBook {
    /// Notes a lease that was handed out now; whether it is one more. Where one of this name is held
    /// already, it begins anew.
    pub(super) fn note(&mut self, lease: &Lease, now: Instant) -> bool {
        let is_more = !self.release(&lease.id);
        let times = lease.lasts.and_then(|lasts| Times::from(now, lasts));
        if let Some(times) = times {
            self.due.insert((times.due, lease.id.clone()));
        }
        self.held.insert(lease.id.clone(), times);
        is_more
    }

    pub(super) fn holds(&self, id: &LeaseId) -> bool {
        self.held.contains_key(id)
    }

    /// Strikes a lease out: its job is settled, or it is lost. Whether it was held.
    pub(super) fn release(&mut self, id: &LeaseId) -> bool {
        match self.held.remove(id) {
            None => false,
            Some(times) => {
                if let Some(times) = times {
                    self.due.remove(&(times.due, id.clone()));
                }
                true
            }
        }
    }

    /// The leases that have to be extended now, at most so many. Each is due again at half of what
    /// is left of it, unless it is [`extended`](Self::extended) before.
    pub(super) fn due(&mut self, now: Instant, most: usize) -> Vec<LeaseId> {
        let mut found = Vec::new();
        while found.len() < most
            && self.due.first().is_some_and(|(due, _)| *due <= now)
            && let Some((_, id)) = self.due.pop_first()
        {
            if let Some(Some(times)) = self.held.get_mut(&id) {
                let left = times.until.saturating_duration_since(now);
                times.due = now.checked_add((left / 2).max(LEAST_PAUSE)).unwrap_or(now);
                self.due.insert((times.due, id.clone()));
            }
            found.push(id);
        }
        found
    }

    /// The source has extended this lease.
    pub(super) fn extended(&mut self, id: &LeaseId, now: Instant) {
        let Some(held) = self.held.get_mut(id) else { return };
        let Some(times) = held.take() else { return };
        self.due.remove(&(times.due, id.clone()));
        *held = Times::from(now, times.lasts);
        if let Some(times) = held {
            self.due.insert((times.due, id.clone()));
        }
    }

    /// Strikes those of these leases out whose time is over.
    pub(super) fn expire(&mut self, ids: &[LeaseId], now: Instant) -> usize {
        let is_over = |id: &LeaseId| {
            self.held.get(id).copied().flatten().is_some_and(|times| times.until <= now)
        };
        let over: Vec<_> = ids.iter().filter(|id| is_over(id)).collect();
        over.into_iter().filter(|id| self.release(id)).count()
    }

    /// All of them, in the order of their names.
    pub(super) fn all(&self) -> Vec<LeaseId> {
        let mut all: Vec<_> = self.held.keys().cloned().collect();
        all.sort_unstable();
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::{Clock, SimClock, secs};
    use proptest::prelude::*;

    fn id(number: usize) -> LeaseId {
        format!("{number:02}").into()
    }

    fn lease(number: usize, lasts: f64) -> Lease {
        Lease::new(id(number)).lasts(secs(lasts))
    }

    #[test]
    fn due_at_half_of_its_time_and_again_at_half_of_what_is_left() {
        let (start, mut book) = (SimClock::default().now(), LeaseBook::default());
        let at = |seconds| start + secs(seconds);
        assert!(book.note(&lease(1, 60.0), start));
        for (seconds, due) in [
            (0.0, false),
            (29.9, false),
            (30.0, true),
            // Nobody answered.
            (30.0, false),
            (44.9, false),
            (45.0, true),
            (52.4, false),
            (52.5, true),
            (59.5, true),
            (59.9, false),
            (60.0, true),
            (60.4, false),
        ] {
            let wanted = if due { vec![id(1)] } else { Vec::new() };
            assert_eq!(book.due(at(seconds), 9), wanted, "{seconds}");
        }
        book.extended(&id(1), at(60.4));
        assert!(book.due(at(90.3), 9).is_empty());
        assert_eq!(book.due(at(90.4), 9), [id(1)]);
        assert_eq!(book.expire(&[id(1)], at(120.3)), 0);
        assert_eq!(book.expire(&[id(1), id(1), id(2)], at(120.4)), 1);
        assert!(!book.holds(&id(1)) && book.due(at(999.0), 9).is_empty());
    }

    #[test]
    fn the_most_urgent_first_and_only_so_many() {
        let (start, mut book) = (SimClock::default().now(), LeaseBook::default());
        for (number, lasts) in [(1, 90.0), (2, 30.0), (3, 60.0)] {
            book.note(&lease(number, lasts), start);
        }
        let later = start + secs(50.0);
        assert_eq!(book.due(later, 2), [id(2), id(3)]);
        assert_eq!(book.due(later, 2), [id(1)]);
    }

    #[test]
    fn some_never_run_out_and_some_for_longer_than_time_lasts() {
        let (start, mut book) = (SimClock::default().now(), LeaseBook::default());
        book.note(&Lease::new("a"), start);
        book.note(&Lease::new("b").lasts(Duration::MAX), start);
        assert!(book.due(start + secs(1e9), 9).is_empty());
        assert_eq!(book.expire(&["a".into(), "b".into()], start + secs(1e9)), 0);
        book.extended(&"a".into(), start);
        book.extended(&"unknown".into(), start);
        assert_eq!(book.all(), ["a".into(), "b".into()]);
        assert!(book.release(&"a".into()) && !book.release(&"a".into()));
    }

    #[test]
    fn a_lease_of_the_same_name_begins_anew() {
        let (start, mut book) = (SimClock::default().now(), LeaseBook::default());
        assert!(book.note(&lease(1, 60.0), start));
        assert!(!book.note(&lease(1, 60.0), start + secs(20.0)));
        assert!(book.due(start + secs(49.0), 9).is_empty());
        assert_eq!(book.due(start + secs(50.0), 9), [id(1)]);
    }

    /// What happens in one step of a simulated night.
    #[derive(Debug, Clone)]
    struct Step {
        /// Milliseconds since the last step; a run looks up at least so often.
        after: u64,
        claims: Option<(usize, u64)>,
        settles: Option<usize>,
        /// Whether the source answers.
        answers: bool,
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let step = (
            0..1000_u64,
            prop::option::weighted(0.3, (0..20_usize, 8..120_u64)),
            prop::option::weighted(0.1, 0..20_usize),
            prop::bool::weighted(0.7),
        );
        let step = step.prop_map(|(after, claims, settles, answers)| Step {
            after,
            claims,
            settles,
            answers,
        });
        prop::collection::vec(step, 1..1000)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(48))]

        /// A lease that the source lets be extended never runs out, and one is not extended before
        /// half of its time; where the source is away, only what it was asked for to the end is
        /// given up.
        #[test]
        fn what_can_be_extended_does_not_run_out(steps in steps()) {
            let start = SimClock::default().now();
            let (mut book, mut now) = (LeaseBook::default(), start);
            // By their names: how long they last, since when, and since when nobody has answered.
            let mut held: HashMap<LeaseId, (Duration, Instant, Option<Instant>)> = HashMap::new();
            for step in steps {
                now += Duration::from_millis(step.after);
                if let Some((number, lasts)) = step.claims {
                    let lasts = Duration::from_secs(lasts);
                    let fresh = book.note(&Lease::new(id(number)).lasts(lasts), now);
                    prop_assert_eq!(fresh, held.insert(id(number), (lasts, now, None)).is_none());
                }
                if let Some(number) = step.settles {
                    let was_held = held.remove(&id(number)).is_some();
                    prop_assert_eq!(book.release(&id(number)), was_held);
                }
                let due = book.due(now, 1000);
                let is_late = |(id, (lasts, since, unanswered)): (_, &(Duration, Instant, Option<_>))| {
                    now >= *since + *lasts / 2 && unanswered.is_none() && !due.contains(id)
                };
                prop_assert!(!held.iter().any(is_late), "a lease was forgotten");
                for id in &due {
                    let (lasts, since, _) = held[id];
                    prop_assert!(now >= since + lasts / 2, "{id} is asked for too early");
                }
                if step.answers {
                    for id in &due {
                        book.extended(id, now);
                        let (_, since, unanswered) = held.get_mut(id).unwrap();
                        (*since, *unanswered) = (now, None);
                    }
                } else {
                    let mut gone = 0;
                    for id in &due {
                        let (lasts, since, unanswered) = held.get_mut(id).unwrap();
                        let asked = *unanswered.get_or_insert(now);
                        if now >= *since + *lasts {
                            prop_assert!(asked < *since + *lasts, "{id} is given up without a try");
                            held.remove(id);
                            gone += 1;
                        }
                    }
                    prop_assert_eq!(book.expire(&due, now), gone);
                }
                prop_assert!(held.keys().all(|id| book.holds(id)));
                prop_assert_eq!(book.all().len(), held.len());
            }
        }
    }
}
