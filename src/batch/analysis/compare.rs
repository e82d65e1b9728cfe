//! Two runs beside each other.
//!
//! Two runs are seldom of the same size, so what is compared are shares, rates and percentiles, and
//! counts only per so many URLs or attempts. Each figure knows which direction is the better one, or
//! that none is: more URLs are neither.

use super::report::{Percentiles, Report};
use super::spread::rounded;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// Figures that differ by less than this share are the same: no two runs are quite alike, and
/// percentiles are right to 0.1 %.
const SAME: f64 = 0.01;

/// Two reports, and how the second differs from the first.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Comparison {
    /// The first.
    pub a: Report,
    /// The second.
    pub b: Report,
    /// Each figure in both.
    pub differences: Vec<Difference>,
}

/// One figure in two runs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Difference {
    /// Its stable name.
    pub key: String,
    /// Its name for people.
    pub name: String,
    /// What it is measured in.
    pub unit: Unit,
    /// In the first run; `None` where it has none.
    pub a: Option<f64>,
    /// In the second.
    pub b: Option<f64>,
    /// By how much the second is larger; negative where it is smaller, `None` where one is missing.
    pub change: Option<f64>,
    /// The same in percent of the first; `None` also where the first is zero.
    pub percent: Option<f64>,
    /// Whether that is good.
    pub verdict: Verdict,
}

/// What a figure is measured in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Unit {
    /// A number of things.
    Count,
    /// A part of a whole, from 0 to 1.
    Share,
    /// Milliseconds.
    Millis,
    /// Things per second.
    PerSecond,
    /// Things per 1000 URLs.
    PerThousandUrls,
    /// Things per 1000 attempts.
    PerThousandAttempts,
    /// Attempts per URL.
    PerUrl,
    /// Bytes.
    Bytes,
}

/// Whether the second run did better in a figure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Verdict {
    /// It did.
    Better,
    /// It did not.
    Worse,
    /// They differ by less than 1 %, which says nothing.
    Same,
    /// Neither direction is the better one, or a run lacks the figure.
    Neither,
}

/// Which direction is the better one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Good {
    More,
    Less,
    Neither,
}

impl Comparison {
    /// Compares the second with the first.
    pub fn of(a: Report, b: Report) -> Self {
        let mut list = List { a: &a, b: &b, differences: Vec::new() };
        list.outcomes();
        list.times();
        list.exceptions();
        list.ways();
        let differences = list.differences;
        Self { a, b, differences }
    }
}

/// The figures while they are put together.
struct List<'a> {
    a: &'a Report,
    b: &'a Report,
    differences: Vec<Difference>,
}

impl List<'_> {
    fn add(
        &mut self,
        (key, name): (impl Into<String>, impl Into<String>),
        unit: Unit,
        good: Good,
        figure: impl Fn(&Report) -> Option<f64>,
    ) {
        let precise = |value: f64| (value * 1e6).round() / 1e6;
        let (a, b) = (figure(self.a).map(precise), figure(self.b).map(precise));
        let change = a.zip(b).map(|(a, b)| precise(b - a));
        let percent =
            change.zip(a.filter(|a| *a != 0.0)).map(|(change, a)| rounded(100.0 * change / a));
        let blur = SAME * a.unwrap_or_default().abs().max(b.unwrap_or_default().abs());
        let verdict = match (change, good) {
            (Some(change), _) if change.abs() <= blur => Verdict::Same,
            (None, _) | (_, Good::Neither) => Verdict::Neither,
            (Some(change), good) if (change > 0.0) == (good == Good::More) => Verdict::Better,
            (Some(_), _) => Verdict::Worse,
        };
        let (key, name) = (key.into(), name.into());
        self.differences.push(Difference { key, name, unit, a, b, change, percent, verdict });
    }

    fn outcomes(&mut self) {
        let count = |count: u64| Some(count as f64);
        self.add(("urls", "URLs"), Unit::Count, Good::Neither, |run| count(run.urls));
        self.add(("ok_share", "ended well"), Unit::Share, Good::More, |run| {
            ratio(run.ok, run.urls)
        });
        self.add(("recovered_share", "recovered by a retry"), Unit::Share, Good::Neither, |run| {
            ratio(run.recovered, run.urls)
        });
        for class in words(self.a, self.b, |run| run.classes.keys().collect()) {
            if class != "ok" {
                let names = (format!("class_{class}_share"), format!("ended {class}"));
                self.add(names, Unit::Share, Good::Less, |run| {
                    ratio(run.classes.get(&class).copied().unwrap_or_default(), run.urls)
                });
            }
        }
        self.add(("attempts_per_url", "attempts a URL"), Unit::PerUrl, Good::Less, |run| {
            ratio(run.attempts, run.urls)
        });
        self.add(("rate", "URLs per second"), Unit::PerSecond, Good::More, |run| {
            (run.span_ms > 0.0).then_some(run.rate)
        });
        self.add(("span_ms", "from first to last"), Unit::Millis, Good::Neither, |run| {
            (run.span_ms > 0.0).then_some(run.span_ms)
        });
        self.add(
            ("bytes_wire_per_url", "bytes a URL, on the wire"),
            Unit::Bytes,
            Good::Neither,
            |run| ratio(run.bytes_wire, run.urls),
        );
    }

    fn times(&mut self) {
        for (phase, name) in PHASES {
            let times = |run: &Report| {
                run.latency.iter().find(|times| times.phase == phase).map(|found| found.times)
            };
            if times(self.a).is_none() && times(self.b).is_none() {
                continue;
            }
            let mut point = |key: &str, which: &str, figure: fn(&Percentiles) -> f64| {
                let names = (format!("{phase}_{key}_ms"), format!("{name}, {which}"));
                self.add(names, Unit::Millis, Good::Less, |run| times(run).as_ref().map(figure));
            };
            point("p50", "median", |times| times.p50_ms);
            point("p95", "95 %", |times| times.p95_ms);
            point("p99", "99 %", |times| times.p99_ms);
            point("longest", "longest", |times| times.longest_ms);
        }
        self.add(("wait_per_url_ms", "waited a URL"), Unit::Millis, Good::Less, |run| {
            let total: f64 = run.waits.iter().map(|waits| waits.total_ms).sum();
            (run.urls > 0).then(|| total / run.urls as f64)
        });
        self.add(("promised_ms", "promised at most"), Unit::Millis, Good::Neither, |run| {
            run.promise.promised_ms
        });
        self.add(("promise_broken", "promises broken"), Unit::Count, Good::Less, |run| {
            run.promise.promised_ms.map(|_| run.promise.broken as f64)
        });
    }

    fn exceptions(&mut self) {
        for name in words(self.a, self.b, |run| run.exceptions.keys().collect()) {
            let names = (format!("exception_{name}"), format!("URLs that ended in {name}"));
            self.add(names, Unit::PerThousandUrls, Good::Less, |run| {
                let count = run.exceptions.get(&name).copied().unwrap_or_default();
                ratio(count, run.urls).map(|share| 1000.0 * share)
            });
        }
    }

    fn ways(&mut self) {
        self.add(("refusals", "refusals"), Unit::PerThousandAttempts, Good::Less, |run| {
            ratio(run.refusals.count, run.attempts).map(|share| 1000.0 * share)
        });
        self.add(
            ("failed_attempts", "failed attempts"),
            Unit::PerThousandAttempts,
            Good::Less,
            |run| {
                let ways = run.proxies.rows.iter().chain(&run.proxies.others);
                let failed: u64 = ways.map(|way| way.failed).sum();
                ratio(failed, run.attempts - run.attempts_unlisted).map(|share| 1000.0 * share)
            },
        );
        let known = |run: &Report| run.exits.known > 0;
        self.add(("exits_distinct", "different exits"), Unit::Count, Good::Neither, |run| {
            known(run).then_some(run.exits.distinct as f64)
        });
        self.add(("exits_top_ten_share", "share of ten exits"), Unit::Share, Good::Less, |run| {
            run.exits.top_ten_share
        });
    }
}

/// The phases with their names for people.
const PHASES: [(&str, &str); 8] = [
    ("url", "a URL"),
    ("attempt", "an attempt"),
    ("dns", "name lookup"),
    ("connect", "connecting"),
    ("proxy", "proxy handshake"),
    ("tls", "TLS"),
    ("first_byte", "first byte"),
    ("body", "body"),
];

fn ratio(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}

/// The names that occur in one of them.
fn words<'a>(
    a: &'a Report,
    b: &'a Report,
    of: impl Fn(&'a Report) -> Vec<&'a String>,
) -> Vec<String> {
    let all: BTreeSet<&String> = of(a).into_iter().chain(of(b)).collect();
    all.into_iter().cloned().collect()
}
