//! From the counters to the numbers that are told.

use super::moments::moment;
use super::report::{
    AttemptsPerUrl, ExceptionsByHour, ExitsSeen, Hour, OverTime, Promise, REPORT_VERSION, Report,
    Rows, Step, Waits,
};
use super::spread::rounded;
use super::table::Table;
use super::{Analysis, MOST_ATTEMPTS, ways};
use crate::batch::record::millis;
use std::collections::BTreeMap;
use std::time::Duration;

/// What everything beyond the names that are told apart is called.
const OTHERS: &str = "(others)";

impl Analysis {
    /// What all of it comes to.
    pub fn report(&self) -> Report {
        let span = match (self.began, self.ended) {
            (Some(began), Some(ended)) => ended.saturating_sub(began),
            _ => Duration::ZERO,
        };
        let rate = if span.is_zero() { 0.0 } else { self.urls as f64 / span.as_secs_f64() };
        let mut report = Report {
            report: REPORT_VERSION,
            source: self.source.clone(),
            urls: self.urls,
            ok: self.ok,
            failed: self.urls - self.ok,
            recovered: self.recovered,
            attempts: self.attempts,
            attempts_unlisted: self.attempts.saturating_sub(self.listed),
            began: self.began.map(moment),
            ended: self.ended.map(moment),
            span_ms: millis(span),
            rate: rounded(rate),
            bytes_wire: self.bytes_wire,
            bytes_body: self.bytes_body,
            classes: words(&self.classes),
            statuses: self.statuses.clone(),
            exceptions: words(&self.exceptions),
            over_time: self.over_time(),
            exceptions_by_hour: ExceptionsByHour {
                width_s: self.hours.width(),
                steps: self
                    .hours
                    .iter()
                    .map(|(from, failed)| Hour {
                        from: moment(Duration::from_secs(from)),
                        exceptions: failed.map(|failed| words(&failed.0)).unwrap_or_default(),
                    })
                    .collect(),
            },
            latency: self.phases.told(),
            attempts_per_url: self
                .attempts_per_url
                .iter()
                .map(|(attempts, urls)| AttemptsPerUrl {
                    attempts: *attempts,
                    or_more: *attempts == MOST_ATTEMPTS,
                    urls: *urls,
                })
                .collect(),
            waits: self.waits(),
            exits: self.exits(),
            hosts: ways::rows(&self.hosts),
            proxies: ways::rows(&self.proxies),
            refusals: self.refusals.told(),
            slowest: self.slowest.iter().map(|(_, slow)| slow.clone()).collect(),
            promise: Promise {
                promised_ms: self.promised.map(|(_, most)| most),
                smallest_ms: self.promised.map(|(least, _)| least),
                longest: self.slowest.first().map(|(_, slow)| slow.clone()),
                worst_excess_ms: rounded(self.promises.worst_excess_ms),
                ..self.promises.clone()
            },
            notes: Vec::new(),
        };
        report.notes = self.notes(&report);
        report
    }

    fn over_time(&self) -> OverTime {
        let width_s = self.steps.width();
        let mut new_exits: BTreeMap<u64, u64> = BTreeMap::new();
        for (_, way) in self.exits.iter() {
            if let Some(first) = way.first {
                *new_exits.entry(first / width_s * width_s).or_default() += 1;
            }
        }
        let mut steps: Vec<Step> = Vec::new();
        for (from, ended) in self.steps.iter() {
            // An exit may have been met before the first URL ended.
            let later = new_exits.split_off(&(from + width_s));
            let new_exits = std::mem::replace(&mut new_exits, later).into_values().sum();
            steps.push(Step {
                from: moment(Duration::from_secs(from)),
                urls: ended.map_or(0, |ended| ended.urls),
                classes: ended.map(|ended| words(&ended.classes)).unwrap_or_default(),
                bytes_wire: ended.map_or(0, |ended| ended.bytes_wire),
                new_exits,
            });
        }
        OverTime { width_s, steps }
    }

    fn waits(&self) -> Vec<Waits> {
        let others = self.waits.others().map(|spread| (OTHERS, spread));
        let mut waits: Vec<Waits> = self
            .waits
            .iter()
            .chain(others)
            .filter_map(|(reason, spread)| {
                Some(Waits {
                    reason: reason.to_owned(),
                    count: spread.count(),
                    total_ms: spread.total_ms(),
                    times: spread.percentiles()?,
                })
            })
            .collect();
        waits.sort_by(|a, b| b.total_ms.total_cmp(&a.total_ms).then(a.reason.cmp(&b.reason)));
        waits
    }

    fn exits(&self) -> ExitsSeen {
        let Rows { mut rows, others } = ways::rows(&self.exits);
        let known = rows.iter().chain(&others).map(|row| row.attempts).sum();
        let distinct = rows.len() as u64;
        rows.truncate(10);
        let busiest: u64 = rows.iter().map(|row| row.attempts).sum();
        let share = (known > 0).then(|| (1e6 * busiest as f64 / known as f64).round() / 1e6);
        ExitsSeen {
            known,
            unknown: self.listed - known,
            distinct,
            or_more: others.is_some(),
            top_ten_share: share,
            top_ten: rows,
        }
    }
}

fn words(table: &Table<u64>) -> BTreeMap<String, u64> {
    let others = table.others().map(|count| (OTHERS, count));
    table.iter().chain(others).map(|(word, count)| (word.to_owned(), *count)).collect()
}
