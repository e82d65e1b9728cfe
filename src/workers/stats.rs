//! Live numbers, counted without locks.
//!
//! What is counted where it happens (fed, begun, finished, attempts) is exact the moment it has
//! happened: whoever holds a result finds it counted. What is a matter of the scheduler (ready,
//! waiting) is published by it before it acts. Each number is right by itself; a sum over several
//! may be off by what moved between two reads.

use crate::error::{Attempt, WaitReason};
use crate::policy::{Found, LENGTHS, WaitLengths};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Live numbers of a pool.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct PoolStats {
    /// Jobs fed so far.
    pub fed: u64,
    /// Jobs ended, in whatever way.
    pub finished: u64,
    /// Jobs being stepped right now.
    pub in_flight: u64,
    /// Jobs in the heap, until a time; see [`waiting_for`](Self::waiting_for).
    pub waiting: u64,
    /// Jobs in the queue, for a worker or behind a limit.
    pub ready: u64,
    /// Attempts so far, retries included.
    pub attempts: u64,
    /// Of these, those whose connection did not come about, broke or fell silent; see
    /// [`ErrorKind::is_disconnect`](crate::ErrorKind::is_disconnect).
    pub disconnects: u64,
    /// Of these, those that were refused: 403, and what the user calls a block page.
    pub refusals: u64,
    /// When the last of the waits that have been begun is over; `None` where nothing waits.
    pub last_wait_ends: Option<Instant>,
    /// Jobs that ended as a panic ([`Internal`](crate::ErrorKind::Internal)).
    pub panics: u64,
    /// How many attempts may be under way at once now: the workers, or what
    /// [`Concurrency::Adaptive`](crate::policy::Concurrency::Adaptive) has found.
    pub concurrency: u64,
    /// The most of that which was borne without refusals for a while, 0 until there is one; the
    /// workers, where it is fixed.
    pub most_concurrency: u64,
    /// How often it was lowered.
    pub back_offs: u64,
    pub(crate) by_reason: ByReason,
    pub(crate) waits_begun: WaitLengths,
}

impl PoolStats {
    /// How many jobs wait for this reason.
    pub fn waiting_for(&self, reason: WaitReason) -> u64 {
        self.by_reason.of(reason)
    }
}

/// A number for each reason to wait.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct ByReason {
    backoff: u64,
    retry_after: u64,
    cooldown: u64,
    limit: u64,
    no_proxy: u64,
    refused: u64,
}

impl ByReason {
    pub(crate) fn add(&mut self, reason: WaitReason, count: u64) {
        let field = self.field(reason);
        *field = field.saturating_add(count);
    }

    pub(crate) fn remove(&mut self, reason: WaitReason, count: u64) {
        let field = self.field(reason);
        *field = field.saturating_sub(count);
    }

    pub(crate) fn of(mut self, reason: WaitReason) -> u64 {
        *self.field(reason)
    }

    pub(crate) fn total(&self) -> u64 {
        let Self { backoff, retry_after, cooldown, limit, no_proxy, refused } = self;
        backoff + retry_after + cooldown + limit + no_proxy + refused
    }

    fn field(&mut self, reason: WaitReason) -> &mut u64 {
        match reason {
            WaitReason::Backoff => &mut self.backoff,
            WaitReason::RetryAfter => &mut self.retry_after,
            WaitReason::Cooldown => &mut self.cooldown,
            WaitReason::Limit => &mut self.limit,
            WaitReason::NoProxy => &mut self.no_proxy,
            WaitReason::Refused => &mut self.refused,
        }
    }
}

/// What a step attempted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Made {
    /// None where it only found that it has to wait.
    pub(crate) attempts: u64,
    pub(crate) disconnects: u64,
    pub(crate) refusals: u64,
}

impl Made {
    /// These attempts.
    pub(crate) fn of<'a>(attempts: impl Iterator<Item = &'a Attempt>) -> Self {
        attempts.fold(Self::default(), |made, attempt| {
            let broken = attempt.error.as_ref().is_some_and(|error| error.kind.is_disconnect());
            let refused = attempt.refusal.is_some() || attempt.status == Some(403);
            Self {
                attempts: made.attempts + 1,
                disconnects: made.disconnects + u64::from(broken),
                refusals: made.refusals + u64::from(refused),
            }
        })
    }
}

/// What the scheduler knows about its queues.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Gauges {
    pub(crate) ready: u64,
    pub(crate) waiting: ByReason,
    pub(crate) found: Found,
}

/// The counters behind [`PoolStats`].
#[derive(Debug, Default)]
pub(crate) struct Counters {
    pub(crate) fed: AtomicU64,
    finished: AtomicU64,
    pub(crate) in_flight: AtomicU64,
    attempts: AtomicU64,
    disconnects: AtomicU64,
    refusals: AtomicU64,
    /// What the times of waits are counted from.
    origin: OnceLock<Instant>,
    /// The end of the last wait in nanoseconds from there, and one more; 0 where there was none.
    last_wait: AtomicU64,
    waits_begun: [AtomicU64; LENGTHS],
    pub(crate) panics: AtomicU64,
    concurrency: AtomicU64,
    most_concurrency: AtomicU64,
    back_offs: AtomicU64,
    ready: AtomicU64,
    backoff: AtomicU64,
    retry_after: AtomicU64,
    cooldown: AtomicU64,
    limit: AtomicU64,
    no_proxy: AtomicU64,
    refused: AtomicU64,
}

impl Counters {
    /// Takes over the numbers of the scheduler.
    pub(crate) fn publish(&self, gauges: &Gauges) {
        let Gauges { ready, waiting, found } = gauges;
        let Found { limit: concurrency, most, back_offs } = found;
        let ByReason { backoff, retry_after, cooldown, limit, no_proxy, refused } = waiting;
        for (counter, value) in [
            (&self.concurrency, concurrency),
            (&self.most_concurrency, most),
            (&self.back_offs, back_offs),
            (&self.ready, ready),
            (&self.backoff, backoff),
            (&self.retry_after, retry_after),
            (&self.cooldown, cooldown),
            (&self.limit, limit),
            (&self.no_proxy, no_proxy),
            (&self.refused, refused),
        ] {
            counter.store(*value, Ordering::Relaxed);
        }
    }

    /// Counts what a step attempted.
    pub(crate) fn count_attempts(&self, made: Made) {
        let Made { attempts, disconnects, refusals } = made;
        for (counter, count) in [
            (&self.attempts, attempts),
            (&self.disconnects, disconnects),
            (&self.refusals, refusals),
        ] {
            if count > 0 {
                counter.fetch_add(count, Ordering::Relaxed);
            }
        }
    }

    /// Counts a wait that is begun.
    pub(crate) fn count_wait(&self, until: Instant, now: Instant) {
        let origin = self.origin.get_or_init(|| until);
        let nanos = until.saturating_duration_since(*origin).as_nanos();
        let nanos = u64::try_from(nanos).unwrap_or(u64::MAX).saturating_add(1);
        self.last_wait.fetch_max(nanos, Ordering::Relaxed);
        let place = WaitLengths::place(until.saturating_duration_since(now));
        if let Some(counter) = self.waits_begun.get(place) {
            counter.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn last_wait_ends(&self) -> Option<Instant> {
        let nanos = self.last_wait.load(Ordering::Relaxed).checked_sub(1)?;
        self.origin.get()?.checked_add(Duration::from_nanos(nanos))
    }

    /// Counts an ended job.
    pub(crate) fn count_finished(&self) {
        self.finished.fetch_add(1, Ordering::Release);
    }

    /// Counts a job that ended before it was one: its input describes no request.
    pub(crate) fn count_unstepped(&self) {
        self.fed.fetch_add(1, Ordering::Relaxed);
        self.count_finished();
    }

    /// The numbers now.
    pub(crate) fn snapshot(&self) -> PoolStats {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let by_reason = ByReason {
            backoff: read(&self.backoff),
            retry_after: read(&self.retry_after),
            cooldown: read(&self.cooldown),
            limit: read(&self.limit),
            no_proxy: read(&self.no_proxy),
            refused: read(&self.refused),
        };
        PoolStats {
            // Read before `fed` and in that order for every thread, so that a progress bar never
            // shows more ended than fed.
            finished: self.finished.load(Ordering::Acquire),
            fed: read(&self.fed),
            in_flight: read(&self.in_flight),
            waiting: by_reason.total(),
            ready: read(&self.ready),
            attempts: read(&self.attempts),
            disconnects: read(&self.disconnects),
            refusals: read(&self.refusals),
            last_wait_ends: self.last_wait_ends().filter(|_| by_reason.total() > 0),
            panics: read(&self.panics),
            concurrency: read(&self.concurrency),
            most_concurrency: read(&self.most_concurrency),
            back_offs: read(&self.back_offs),
            by_reason,
            waits_begun: WaitLengths(self.waits_begun.each_ref().map(read)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::{Clock, SimClock, secs};

    #[test]
    fn every_reason_has_its_own_number() {
        let reasons = [
            WaitReason::Backoff,
            WaitReason::RetryAfter,
            WaitReason::Cooldown,
            WaitReason::Limit,
            WaitReason::NoProxy,
            WaitReason::Refused,
        ];
        let mut waiting = ByReason::default();
        for (count, reason) in (1..).zip(reasons) {
            waiting.add(reason, count);
        }
        let counters = Counters::default();
        let found = Found { limit: 40, most: 48, back_offs: 3 };
        counters.publish(&Gauges { ready: 7, waiting, found });
        let stats = counters.snapshot();
        assert_eq!(reasons.map(|reason| stats.waiting_for(reason)), [1, 2, 3, 4, 5, 6]);
        assert_eq!((stats.waiting, stats.ready), (21, 7));
        let found = (stats.concurrency, stats.most_concurrency, stats.back_offs);
        assert_eq!(found, (40, 48, 3));
        waiting.remove(WaitReason::Backoff, 5);
        assert_eq!(waiting.total(), 20);
    }

    #[test]
    fn the_last_of_the_waits_is_known_while_anything_waits() {
        let start = SimClock::default().now();
        let after = |seconds: f64| start + secs(seconds);
        let counters = Counters::default();
        let mut gauges = Gauges::default();
        gauges.waiting.add(WaitReason::Backoff, 1);
        counters.publish(&gauges);
        assert_eq!(counters.snapshot().last_wait_ends, None);
        for (until, now) in [(10.0, 9.0), (3.0, 2.0), (70.0, 10.0), (11.0, 10.0)] {
            counters.count_wait(after(until), after(now));
        }
        let stats = counters.snapshot();
        assert_eq!(stats.last_wait_ends, Some(after(70.0)));
        let longer: Vec<_> = stats.waits_begun.descending().map(|(_, longer)| longer).collect();
        assert_eq!((longer.first(), longer.last()), (Some(&1), Some(&4)));
        counters.publish(&Gauges::default());
        assert_eq!(counters.snapshot().last_wait_ends, None);
    }
}
