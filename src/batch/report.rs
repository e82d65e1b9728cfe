//! What a run says of itself: while it goes on, and at its end.
//!
//! Both are plain data. How they look on a terminal is the business of whoever shows them.

use super::exit_sample::ExitSamples;
use super::record::millis;
use super::source::Checked;
use super::tally::{Longest, Tally, Way};
use crate::error::WaitReason;
use crate::policy::Bound;
use crate::workers::{ByReason, PoolStats};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::time::Duration;

/// How far a run is.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
#[non_exhaustive]
pub struct Progress {
    /// Since the run began.
    pub elapsed: Duration,
    /// URLs that this run has to do; `None` where the input was not counted.
    pub total: Option<u64>,
    /// Ended well.
    pub ok: u64,
    /// Ended otherwise.
    pub failed: u64,
    /// Waiting: for a retry, a limit, a proxy.
    pub waiting: u64,
    /// Waiting for another pass.
    pub held: u64,
    /// Being attempted right now.
    pub in_flight: u64,
    /// How many may be attempted at once now; see
    /// [`PoolStats::concurrency`](crate::workers::PoolStats::concurrency).
    pub concurrency: u64,
    /// In the queue, for a worker or behind a limit.
    pub ready: u64,
    /// Attempts so far.
    pub attempts: u64,
    /// Of these, those that were refused: 403, and block pages.
    pub refusals: u64,
    /// Of these, those whose connection did not come about, broke or fell silent.
    pub disconnects: u64,
    /// The share of them lately, from 0 to 1, as [`DisconnectAlarm`](crate::policy::DisconnectAlarm)
    /// sees it; `None` until there were enough.
    pub disconnect_share: Option<f64>,
    /// Whether it is above what it was before, by enough to say so.
    pub alarm: bool,
    /// Different addresses that the world has seen, as far as they are known.
    pub exits: u64,
    /// URLs that ended or were held back, per second, lately: within the last tenth of the run, but at
    /// least a minute and at most ten.
    pub recent_rate: f64,
    /// The pass, from 1.
    pub pass: u32,
    /// How long it is until the run may begin; `None` once it has.
    pub starts_in: Option<Duration>,
    pub(super) waits: ByReason,
    pub(super) eta: Option<Duration>,
}

impl Progress {
    /// URLs that have ended.
    pub fn done(&self) -> u64 {
        self.ok.saturating_add(self.failed)
    }

    /// How many of those that wait do so for this reason.
    pub fn waiting_for(&self, reason: WaitReason) -> u64 {
        self.waits.of(reason)
    }

    /// Ended URLs per second; zero before any time has passed.
    pub fn rate(&self) -> f64 {
        rate(self.done(), self.elapsed)
    }

    /// How long the rest takes: what is left at the rate of lately, the waits that have been begun, the
    /// slowest of the last URLs, and the passes to come; `None` where nobody can tell.
    ///
    /// At half of a run it is right to a quarter in nine cases of ten.
    pub fn eta(&self) -> Option<Duration> {
        self.eta
    }

    pub(super) fn with_stats(mut self, stats: PoolStats) -> Self {
        self.waiting = stats.waiting;
        self.waits = stats.by_reason;
        self.in_flight = stats.in_flight;
        self.concurrency = stats.concurrency;
        self.ready = stats.ready;
        self.attempts = stats.attempts;
        self.refusals = stats.refusals;
        self.disconnects = stats.disconnects;
        self
    }
}

fn rate(count: u64, elapsed: Duration) -> f64 {
    if elapsed.is_zero() { 0.0 } else { count as f64 / elapsed.as_secs_f64() }
}

/// How many attempts at once the other side bore, as
/// [`Concurrency::Adaptive`](crate::policy::Concurrency::Adaptive) found it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[non_exhaustive]
pub struct FoundConcurrency {
    /// At the end of the run.
    pub last: u64,
    /// The most that was borne without refusals for a while; 0 where the run was too short to tell.
    pub most: u64,
    /// How often it was too many.
    pub back_offs: u64,
}

impl FoundConcurrency {
    pub(super) fn of(stats: &PoolStats) -> Self {
        let (last, most) = (stats.concurrency, stats.most_concurrency);
        Self { last, most, back_offs: stats.back_offs }
    }
}

/// What a run came to.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Summary {
    /// URLs that ended in this run: its records.
    pub urls: u64,
    /// Of these, of class `ok`.
    pub ok: u64,
    /// Of these, of any other class.
    pub failed: u64,
    /// Of `ok`, those with an attempt that had to be repeated.
    pub recovered: u64,
    /// URLs that have no record because the run was stopped: all that are left where the input was
    /// counted, else those that were begun.
    pub unfinished: u64,
    /// URLs that the results held before, as ok.
    pub ok_before: u64,
    /// URLs that the results held before, as failed.
    pub failed_before: u64,
    /// Input lines left out because they repeat another one.
    pub repeated: u64,
    /// Of `failed`, jobs that went to the dead letters of their queue.
    #[serde(default)]
    pub dead_lettered: u64,
    /// Jobs whose lease was lost to another consumer of their queue; most have no record here.
    #[serde(default)]
    pub leases_lost: u64,
    /// Passes that were begun.
    pub passes: u32,
    /// URLs by class.
    pub classes: BTreeMap<String, u64>,
    /// URLs by the status of their last response.
    pub statuses: BTreeMap<u16, u64>,
    /// Failed URLs by the name of the exception in a `requests` log.
    pub exceptions: BTreeMap<String, u64>,
    /// Attempts.
    pub attempts: u64,
    /// The numbers of each proxy, `direct` among them.
    pub proxies: BTreeMap<String, Way>,
    /// The numbers of each exit that is known.
    pub exits: BTreeMap<String, Way>,
    /// What the samples of the exits say; `None` where none were taken.
    #[serde(default)]
    pub exit_samples: Option<ExitSamples>,
    /// What adaptive concurrency has found; `None` where it was fixed.
    #[serde(default)]
    pub concurrency: Option<FoundConcurrency>,
    /// Time per URL that half of them did not exceed, in milliseconds.
    pub p50_ms: Option<f64>,
    /// Time per URL that 95 % of them did not exceed.
    pub p95_ms: Option<f64>,
    /// Time per URL that 99 % of them did not exceed.
    pub p99_ms: Option<f64>,
    /// The URL that took longest.
    pub longest: Option<Longest>,
    /// The promise: how long one URL can take at most in one pass; `None` where there is no bound.
    pub promised_ms: Option<f64>,
    /// Body bytes that came off the wire.
    pub bytes_wire: u64,
    /// Body bytes after decoding.
    pub bytes_body: u64,
    /// How long the run took.
    pub elapsed_ms: f64,
    /// URLs per second.
    pub rate: f64,
    /// Why the run was stopped; `None` where it came to its end.
    pub stopped: Option<String>,
}

impl Summary {
    /// The summary of these numbers; what a tally does not know is zero.
    pub fn of(tally: &Tally, promised: Option<&Bound>, elapsed: Duration) -> Self {
        let percentile = |share| tally.percentile(share).map(millis);
        Self {
            urls: tally.urls(),
            ok: tally.ok(),
            failed: tally.failed(),
            recovered: tally.recovered(),
            classes: tally.classes().clone(),
            statuses: tally.statuses().clone(),
            exceptions: tally.exceptions().clone(),
            attempts: tally.attempts(),
            proxies: tally.proxies().clone(),
            exits: tally.exits().clone(),
            p50_ms: percentile(0.5),
            p95_ms: percentile(0.95),
            p99_ms: percentile(0.99),
            longest: tally.longest().cloned(),
            promised_ms: match promised {
                Some(Bound::At(bound)) => Some(millis(*bound)),
                Some(Bound::Unbounded { .. }) | None => None,
            },
            bytes_wire: tally.bytes_wire(),
            bytes_body: tally.bytes_body(),
            elapsed_ms: millis(elapsed),
            rate: (rate(tally.urls(), elapsed) * 1000.0).round() / 1000.0,
            ..Self::default()
        }
    }

    /// Whether the longest URL kept the promise; `None` where there is nothing to compare.
    pub fn promise_kept(&self) -> Option<bool> {
        Some(self.longest.as_ref()?.elapsed_ms <= self.promised_ms?)
    }
}

/// What a run is about to do.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Plan {
    /// What the input holds.
    pub input: Checked,
    /// What the results hold.
    pub found: super::journal::Found,
    /// How long one URL can take at most in one pass: the deadline where there is one, or else the
    /// worst case of the policy up to the response head.
    pub promised: Bound,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::batch::record::Record;

    #[test]
    fn a_summary_survives_json_and_compares_with_the_promise() {
        let mut tally = Tally::new();
        tally.add(&Record::parse(crate::batch::record::tests::SMALL.as_bytes()).unwrap());
        let bound = Bound::At(Duration::from_millis(2));
        let summary = Summary::of(&tally, Some(&bound), Duration::from_secs(2));
        assert_eq!((summary.rate, summary.promised_ms), (0.5, Some(2.0)));
        assert_eq!(summary.promise_kept(), Some(true));
        let text = serde_json::to_string(&summary).unwrap();
        assert_eq!(serde_json::from_str::<Summary>(&text).unwrap(), summary);
        let unbounded = Bound::Unbounded { because: "no read timeout".into() };
        let summary = Summary::of(&tally, Some(&unbounded), Duration::ZERO);
        assert_eq!((summary.promise_kept(), summary.rate), (None, 0.0));
    }
}
