//! The numbers of a finished run: what [`Analysis`](super::Analysis) comes to.
//!
//! `docs/report.md` describes them field by field. Whoever shows them (a terminal, a page) shows these
//! and computes no others, so that two views of one file never disagree.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The version of the report's own schema, in each as `report`.
pub const REPORT_VERSION: u32 = 1;

/// All that the records of a run tell.
///
/// # Units
/// Times are milliseconds, sizes bytes, rates per second. Moments are RFC 3339 in UTC.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Report {
    /// The version of this schema: [`REPORT_VERSION`].
    pub report: u32,
    /// What was read, as it was named.
    pub source: String,
    /// URLs: the records.
    pub urls: u64,
    /// Of these, of class `ok`.
    pub ok: u64,
    /// Of these, of any other class.
    pub failed: u64,
    /// Of `ok`, those with an attempt that had to be repeated.
    pub recovered: u64,
    /// Attempts, those that records do not list included.
    pub attempts: u64,
    /// Of these, those that records do not list, and of which nothing but the number is known.
    pub attempts_unlisted: u64,
    /// When the first URL began; `None` where no record tells a time.
    pub began: Option<String>,
    /// When the last URL ended.
    pub ended: Option<String>,
    /// From the one to the other.
    pub span_ms: f64,
    /// URLs per second over this span; zero where it is none.
    pub rate: f64,
    /// Body bytes that came off the wire.
    pub bytes_wire: u64,
    /// Body bytes after decoding.
    pub bytes_body: u64,
    /// URLs by class.
    pub classes: BTreeMap<String, u64>,
    /// URLs by the status of their last response.
    pub statuses: BTreeMap<u16, u64>,
    /// Failed URLs by the name of the exception in a `requests` log.
    pub exceptions: BTreeMap<String, u64>,
    /// What ended when.
    pub over_time: OverTime,
    /// Failed attempts by hour and exception.
    pub exceptions_by_hour: ExceptionsByHour,
    /// How long each phase took, and the URLs as a whole.
    pub latency: Vec<PhaseTimes>,
    /// How many URLs took how many attempts.
    pub attempts_per_url: Vec<AttemptsPerUrl>,
    /// What was waited for between attempts.
    pub waits: Vec<Waits>,
    /// Where attempts came out.
    pub exits: ExitsSeen,
    /// The numbers of each host.
    pub hosts: Rows,
    /// The numbers of each proxy, `direct` among them.
    pub proxies: Rows,
    /// Who refused.
    pub refusals: Refusals,
    /// The URLs that took longest, the slowest first.
    pub slowest: Vec<SlowUrl>,
    /// The promised worst case against what was seen.
    pub promise: Promise,
    /// What the records do not tell, and what was left out; each a sentence.
    pub notes: Vec<String>,
}

/// What ended when, in steps of one width.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[non_exhaustive]
pub struct OverTime {
    /// How wide a step is.
    pub width_s: u64,
    /// The steps, empty ones between others included.
    pub steps: Vec<Step>,
}

/// A step of [`OverTime`].
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Step {
    /// When it begins.
    pub from: String,
    /// URLs that ended in it.
    pub urls: u64,
    /// These by class.
    pub classes: BTreeMap<String, u64>,
    /// Their body bytes off the wire.
    pub bytes_wire: u64,
    /// Exits that were met first in it.
    pub new_exits: u64,
}

/// Failed attempts by hour and exception.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ExceptionsByHour {
    /// How wide a step is: an hour, or more where there would be too many.
    pub width_s: u64,
    /// The steps, empty ones between others included.
    pub steps: Vec<Hour>,
}

/// A step of [`ExceptionsByHour`].
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Hour {
    /// When it begins.
    pub from: String,
    /// Failed attempts by the name of the exception in a `requests` log.
    pub exceptions: BTreeMap<String, u64>,
}

/// How long something took: right to 0.1 %, the longest exactly.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Percentiles {
    /// Half did not take longer.
    pub p50_ms: f64,
    /// 95 % did not.
    pub p95_ms: f64,
    /// 99 % did not.
    pub p99_ms: f64,
    /// The longest.
    pub longest_ms: f64,
}

/// How long a phase took.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[non_exhaustive]
pub struct PhaseTimes {
    /// `dns`, `connect`, `proxy`, `tls`, `first_byte`, `body`, `attempt` or `url`.
    pub phase: String,
    /// How often it happened.
    pub count: u64,
    /// How long that took.
    #[serde(flatten)]
    pub times: Percentiles,
}

/// How many URLs took so many attempts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[non_exhaustive]
pub struct AttemptsPerUrl {
    /// Attempts.
    pub attempts: u64,
    /// Whether those with more attempts are in here too.
    pub or_more: bool,
    /// URLs.
    pub urls: u64,
}

/// The waits of one reason.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Waits {
    /// The name of the [`WaitReason`](crate::error::WaitReason); `unknown` where records name none.
    pub reason: String,
    /// How often it was waited.
    pub count: u64,
    /// All of it together.
    pub total_ms: f64,
    /// How long that took.
    #[serde(flatten)]
    pub times: Percentiles,
}

/// Where attempts came out.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ExitsSeen {
    /// Attempts whose exit is known.
    pub known: u64,
    /// Attempts whose exit is not known.
    pub unknown: u64,
    /// Different exits.
    pub distinct: u64,
    /// Whether there were more: so many are told apart.
    pub or_more: bool,
    /// Share of the ten busiest in the attempts whose exit is known, from 0 to 1; `None` where none is.
    pub top_ten_share: Option<f64>,
    /// The ten busiest.
    pub top_ten: Vec<Row>,
}

/// A table by name, the busiest first.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Rows {
    /// One row a name.
    pub rows: Vec<Row>,
    /// What those add up to that came after so many different ones; `None` where none did.
    pub others: Option<Row>,
}

/// The numbers of a host, a proxy or an exit.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Row {
    /// Its name.
    pub name: String,
    /// URLs: of a host, those that name it; of a proxy or an exit, those whose last attempt it was.
    pub urls: u64,
    /// Of these, of class `ok`.
    pub ok: u64,
    /// Attempts.
    pub attempts: u64,
    /// Of these, those that brought a response.
    pub answered: u64,
    /// Of these, those that failed without one.
    pub failed: u64,
    /// Responses that refused: 403, and what the run took for a block page.
    pub refused: u64,
    /// Responses that throttled: 429 and 503.
    pub throttled: u64,
    /// How long an attempt took on average that brought a response; `None` where none did.
    pub mean_ms: Option<f64>,
    /// How long the longest attempt took.
    pub longest_ms: f64,
    /// Body bytes of these URLs off the wire.
    pub bytes_wire: u64,
}

/// Who refused.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Refusals {
    /// Responses with something that tells of a refusal.
    pub count: u64,
    /// What they have in common, the most frequent kind first.
    pub kinds: Vec<Refusal>,
    /// Refusals of kinds that are not listed.
    pub others: u64,
}

/// Refusals with the same status, server, rule and cookies.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Refusal {
    /// How many.
    pub count: u64,
    /// Their status.
    pub status: Option<u16>,
    /// What made them a block page, where they were one.
    pub matched: Option<String>,
    /// `Server`.
    pub server: Option<String>,
    /// The names of the cookies that they set.
    pub set_cookie_names: Vec<String>,
    /// `Cf-Ray`.
    pub cf_ray: Sign,
    /// `X-Cache`.
    pub x_cache: Sign,
    /// `Via`.
    pub via: Sign,
    /// `Retry-After`.
    pub retry_after: Sign,
}

/// A field that differs from response to response.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Sign {
    /// How many responses had it.
    pub count: u64,
    /// The first.
    pub first: Option<String>,
}

/// A URL that took long.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[non_exhaustive]
pub struct SlowUrl {
    /// Its id.
    pub id: String,
    /// The URL.
    pub url: String,
    /// Its class.
    pub class: String,
    /// How many attempts it took, over all passes.
    pub attempts: u64,
    /// How long its last pass took.
    pub elapsed_ms: f64,
    /// When it ended, as its record has it.
    pub at: String,
}

/// The promised worst case against what was seen.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Promise {
    /// URLs whose record says what was promised.
    pub told: u64,
    /// The largest promise; `None` where no record names one.
    pub promised_ms: Option<f64>,
    /// The smallest; another than the largest where runs of several policies wrote the file.
    pub smallest_ms: Option<f64>,
    /// The URL that took longest, of all; `None` where nothing was attempted.
    pub longest: Option<SlowUrl>,
    /// URLs that took longer than was promised.
    pub broken: u64,
    /// By how much at most.
    pub worst_excess_ms: f64,
}

impl Report {
    /// Whether every URL kept its promise; `None` where no record names one.
    pub fn promise_kept(&self) -> Option<bool> {
        self.promise.promised_ms.map(|_| self.promise.broken == 0)
    }
}
