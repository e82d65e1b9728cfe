//! What a simulated night came to, as plain data.

use crate::error::{Attempt, ErrorKind, WaitReason};
use crate::policy::{Bound, Class, Found};
use crate::workers::Finished;
use serde::{Serialize, Serializer};
use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

/// What a simulated night came to.
///
/// # Units
/// Serialised, every duration is a number of seconds.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Report {
    /// With which the night repeats itself.
    pub seed: u64,
    /// How many URLs were fed; each ended exactly once. All of them, unless the night was
    /// [`stopped`](Self::stopped).
    pub urls: u64,
    /// How many workers.
    pub workers: usize,
    /// How many attempts might be under way at once at the end: the workers, or what
    /// [`Concurrency::Adaptive`](crate::policy::Concurrency::Adaptive) had found.
    pub concurrency: u64,
    /// The most of that which was borne without refusals for a while.
    pub most_concurrency: u64,
    /// How often it was lowered.
    pub back_offs: u64,
    /// From the first attempt to the last end.
    #[serde(serialize_with = "seconds")]
    pub run_time: Duration,
    /// All attempts, retries included.
    pub attempts: u64,
    /// Attempts per URL.
    pub amplification: f64,
    /// How many URLs took how many attempts; the place is the number of attempts.
    pub by_attempts: Vec<u64>,
    /// The time of all workers in attempts.
    #[serde(serialize_with = "seconds")]
    pub busy: Duration,
    /// The share of the workers' time that they were in attempts.
    pub occupancy: f64,
    /// URLs by their class (see [`Class`]); those that were not finished are `cancelled`.
    pub classes: BTreeMap<&'static str, u64>,
    /// URLs by what they ended with.
    pub endings: BTreeMap<Ending, u64>,
    /// Attempts by what they ended with.
    pub answers: BTreeMap<Ending, u64>,
    /// The waits between attempts, by their reason.
    pub waits: BTreeMap<&'static str, Waited>,
    /// Half of the URLs took at most so long, from their first attempt to their end.
    #[serde(serialize_with = "seconds")]
    pub p50: Duration,
    /// 95 of 100 took at most so long.
    #[serde(serialize_with = "seconds")]
    pub p95: Duration,
    /// 99 of 100 took at most so long.
    #[serde(serialize_with = "seconds")]
    pub p99: Duration,
    /// The longest of them. It includes what no policy can promise without a deadline: the time
    /// until a worker was free, and until a host or a proxy was back.
    #[serde(serialize_with = "seconds")]
    pub longest: Duration,
    /// The most that the attempts of one URL and the waits of its own took together. Never more
    /// than [`promised`](Self::promised).
    #[serde(serialize_with = "seconds")]
    pub longest_path: Duration,
    /// The worst case of the policy, with Retry-After where the servers send it.
    #[serde(serialize_with = "bound")]
    pub promised: Bound,
    /// The deadline of the policy.
    #[serde(serialize_with = "optional_seconds")]
    pub deadline: Option<Duration>,
    /// How many URLs ended after their deadline; none, if longhaul keeps what it promises.
    pub late: u64,
    /// Why the night ended before its work did, where it did.
    pub stopped: Option<String>,
    /// The width of a bucket of the timeline.
    #[serde(serialize_with = "seconds")]
    pub bucket: Duration,
    /// The course of the night.
    pub timeline: Vec<Bucket>,
}

/// A stretch of the night.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Bucket {
    /// When it begins.
    #[serde(serialize_with = "seconds")]
    pub begins: Duration,
    /// How long it is: the last one ends with the night.
    #[serde(serialize_with = "seconds")]
    pub lasts: Duration,
    /// URLs that ended in it.
    pub done: u64,
    /// Attempts that ended in it.
    pub attempts: u64,
    /// Busy workers, on average.
    pub in_flight: f64,
    /// URLs in the heap, until a time, on average.
    pub waiting: f64,
    /// URLs that were held and ready, for a worker or behind a limit, on average.
    pub ready: f64,
}

/// The waits of one reason.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Waited {
    /// How many were begun.
    pub count: u64,
    /// How long they were to last together.
    #[serde(serialize_with = "seconds")]
    pub total: Duration,
}

/// What a URL or an attempt ended with; shown and serialised as `200` or `read_timeout`.
#[allow(clippy::exhaustive_enums, reason = "a response or a failure")]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Ending {
    /// A response with this status.
    Status(u16),
    /// A failure of this kind.
    Failure(ErrorKind),
}

impl Ending {
    fn of(finished: &Finished) -> Self {
        match &finished.result {
            Ok(response) => Self::Status(response.status()),
            Err(error) => Self::Failure(error.kind()),
        }
    }

    fn of_attempt(attempt: &Attempt) -> Option<Self> {
        match (&attempt.error, attempt.status) {
            (Some(error), _) => Some(Self::Failure(error.kind)),
            (None, status) => status.map(Self::Status),
        }
    }

    fn class(self) -> &'static str {
        match self {
            Self::Failure(ErrorKind::Cancelled) => "cancelled",
            Self::Failure(kind) => Class::of_error(kind).name(),
            Self::Status(status) => Class::of_status(status).name(),
        }
    }
}

impl fmt::Display for Ending {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Status(status) => status.fmt(f),
            Self::Failure(kind) => kind.fmt(f),
        }
    }
}

impl Serialize for Ending {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "the signature that serde asks for")]
fn seconds<S: Serializer>(duration: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64(duration.as_secs_f64())
}

#[allow(clippy::ref_option, reason = "the signature that serde asks for")]
fn optional_seconds<S: Serializer>(
    duration: &Option<Duration>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    duration.map(|duration| duration.as_secs_f64()).serialize(serializer)
}

/// The seconds, or the reason why there is no bound.
fn bound<S: Serializer>(bound: &Bound, serializer: S) -> Result<S::Ok, S::Error> {
    match bound {
        Bound::At(duration) => seconds(duration, serializer),
        Bound::Unbounded { because } => serializer.serialize_str(because),
    }
}

/// The numbers of a night that goes on.
#[derive(Debug)]
pub(super) struct Tally {
    width: Duration,
    now: Duration,
    last_end: Duration,
    attempts: u64,
    by_attempts: Vec<u64>,
    busy: Duration,
    endings: BTreeMap<Ending, u64>,
    answers: BTreeMap<Ending, u64>,
    waits: BTreeMap<WaitReason, Waited>,
    elapsed: Vec<Duration>,
    longest_path: Duration,
    deadline: Option<Duration>,
    late: u64,
    timeline: Vec<Bucket>,
    /// The stretch that is being lived through.
    open: Stretch,
}

/// A bucket whose averages are still sums, in nanoseconds, so that they are exact.
#[derive(Debug, Clone, Copy, Default)]
struct Stretch {
    begins: Duration,
    lasts: Duration,
    done: u64,
    attempts: u64,
    in_flight: u128,
    waiting: u128,
    ready: u128,
}

impl Stretch {
    fn close(self) -> Bucket {
        let Self { begins, lasts, done, attempts, in_flight, waiting, ready } = self;
        let average = |sum: u128| ratio(sum as f64, lasts.as_nanos() as f64);
        let (in_flight, waiting, ready) = (average(in_flight), average(waiting), average(ready));
        Bucket { begins, lasts, done, attempts, in_flight, waiting, ready }
    }
}

/// How many jobs are where.
#[derive(Debug, Clone, Copy)]
pub(super) struct Load {
    pub(super) in_flight: usize,
    pub(super) waiting: u64,
    pub(super) ready: u64,
}

impl Tally {
    pub(super) fn new(width: Duration, urls: usize, deadline: Option<Duration>) -> Self {
        Self {
            width,
            now: Duration::ZERO,
            last_end: Duration::ZERO,
            attempts: 0,
            by_attempts: Vec::new(),
            busy: Duration::ZERO,
            endings: BTreeMap::new(),
            answers: BTreeMap::new(),
            waits: BTreeMap::new(),
            elapsed: Vec::with_capacity(urls),
            longest_path: Duration::ZERO,
            deadline,
            late: 0,
            timeline: Vec::new(),
            open: Stretch::default(),
        }
    }

    /// Time goes on to `until` under this load.
    pub(super) fn pass(&mut self, until: Duration, load: Load) {
        while self.now < until {
            let mut end = self.open.begins.saturating_add(self.width);
            if self.now >= end {
                // Only now, so that what happens at the end of a stretch is part of it.
                self.timeline.push(self.open.close());
                self.open = Stretch { begins: end, ..Stretch::default() };
                end = end.saturating_add(self.width);
            }
            let step = end.min(until) - self.now;
            let nanos = step.as_nanos();
            self.open.lasts += step;
            self.open.in_flight += nanos * load.in_flight as u128;
            self.open.waiting += nanos * u128::from(load.waiting);
            self.open.ready += nanos * u128::from(load.ready);
            self.now += step;
        }
    }

    /// A step has ended that took `took` and made so many attempts.
    pub(super) fn landed(&mut self, took: Duration, attempts: u64) {
        self.busy += took;
        self.attempts += attempts;
        self.open.attempts += attempts;
    }

    /// A wait begins.
    pub(super) fn waits(&mut self, reason: WaitReason, wait: Duration) {
        let waits = self.waits.entry(reason).or_default();
        waits.count += 1;
        waits.total = waits.total.saturating_add(wait);
    }

    /// A URL has ended.
    pub(super) fn ended(&mut self, finished: &Finished) {
        self.last_end = self.now;
        self.open.done += 1;
        *self.endings.entry(Ending::of(finished)).or_default() += 1;
        let attempts = finished.attempts();
        let place = attempts.len();
        if self.by_attempts.len() <= place {
            self.by_attempts.resize(place + 1, 0);
        }
        if let Some(count) = self.by_attempts.get_mut(place) {
            *count += 1;
        }
        let mut path = Duration::ZERO;
        for attempt in attempts {
            if let Some(ending) = Ending::of_attempt(attempt) {
                *self.answers.entry(ending).or_default() += 1;
            }
            path += attempt.elapsed;
            path = path.saturating_add(attempt.wait.map_or(Duration::ZERO, |(wait, _)| wait));
        }
        self.longest_path = self.longest_path.max(path);
        self.elapsed.push(finished.elapsed);
        self.late += u64::from(self.deadline.is_some_and(|limit| finished.elapsed > limit));
    }

    /// The report of a night that is over.
    pub(super) fn close(
        mut self,
        seed: u64,
        workers: usize,
        found: Found,
        promised: Bound,
        stopped: Option<String>,
    ) -> Report {
        self.timeline.push(self.open.close());
        self.elapsed.sort_unstable();
        let urls = self.elapsed.len() as u64;
        let mut classes = BTreeMap::new();
        for (ending, count) in &self.endings {
            *classes.entry(ending.class()).or_default() += count;
        }
        let worker_seconds = self.last_end.as_secs_f64() * workers as f64;
        Report {
            seed,
            urls,
            workers,
            concurrency: found.limit,
            most_concurrency: found.most,
            back_offs: found.back_offs,
            run_time: self.last_end,
            attempts: self.attempts,
            amplification: ratio(self.attempts as f64, urls as f64),
            by_attempts: self.by_attempts,
            busy: self.busy,
            occupancy: ratio(self.busy.as_secs_f64(), worker_seconds),
            classes,
            endings: self.endings,
            answers: self.answers,
            waits: self.waits.into_iter().map(|(reason, waits)| (reason.name(), waits)).collect(),
            p50: percentile(&self.elapsed, 50),
            p95: percentile(&self.elapsed, 95),
            p99: percentile(&self.elapsed, 99),
            longest: self.elapsed.last().copied().unwrap_or_default(),
            longest_path: self.longest_path,
            promised,
            deadline: self.deadline,
            late: self.late,
            stopped,
            bucket: self.width,
            timeline: self.timeline,
        }
    }
}

/// The smallest value that `percent` of 100 do not exceed.
fn percentile(sorted: &[Duration], percent: usize) -> Duration {
    let rank = (sorted.len() * percent).div_ceil(100);
    sorted.get(rank.saturating_sub(1)).copied().unwrap_or_default()
}

fn ratio(part: f64, whole: f64) -> f64 {
    if whole > 0.0 { part / whole } else { 0.0 }
}
