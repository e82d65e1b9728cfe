//! The numbers of a run, counted from its records.
//!
//! A run counts what it writes, and a report counts what it reads, so both count the same
//! [`Record`]s with this. Memory is bounded whatever comes in: latencies go into a histogram of a
//! fixed size, and tables whose keys come from outside (proxies, exits) take so many keys and then
//! put the rest under one name.

use super::record::{AttemptRecord, Record};
use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io::{self, Write};
use std::time::{Duration, SystemTime};

/// Keys that a table takes before the rest is put together.
const MOST_KEYS: usize = 10_000;

/// What the rest is called.
const OTHERS: &str = "(others)";

/// The first line of the table of exceptions.
const COLUMNS: &str = "hour\texception\texit\tcount";

/// What going without a proxy is called.
const DIRECT: &str = "direct";

/// Values beyond this count as this: a day in microseconds.
const LONGEST_MICROS: u64 = 24 * 3600 * 1_000_000;

/// The numbers of one proxy or one exit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Way {
    /// Attempts.
    pub attempts: u64,
    /// Attempts that brought a response.
    pub answered: u64,
    /// Attempts that failed without one.
    pub failed: u64,
    /// Of these answers, those that refused (403, or a block page).
    #[serde(default)]
    pub refused: u64,
    /// URLs whose last attempt went this way and that ended well.
    pub ok: u64,
}

/// The URL that took longest.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Longest {
    /// Its id.
    pub id: String,
    /// The URL, without user and password.
    pub url: String,
    /// How long it took, in milliseconds.
    pub elapsed_ms: f64,
}

/// Counts records.
#[derive(Debug, Clone)]
pub struct Tally {
    urls: u64,
    ok: u64,
    attempts: u64,
    recovered: u64,
    bytes_wire: u64,
    bytes_body: u64,
    classes: BTreeMap<String, u64>,
    statuses: BTreeMap<u16, u64>,
    /// Of URLs, by the name in a `requests` log.
    exceptions: BTreeMap<String, u64>,
    proxies: BTreeMap<String, Way>,
    exits: BTreeMap<String, Way>,
    latency: Option<Histogram<u64>>,
    longest: Option<Longest>,
    hours: Exceptions,
}

impl Default for Tally {
    fn default() -> Self {
        Self::new()
    }
}

impl Tally {
    /// Nothing yet.
    pub fn new() -> Self {
        Self {
            urls: 0,
            ok: 0,
            attempts: 0,
            recovered: 0,
            bytes_wire: 0,
            bytes_body: 0,
            classes: BTreeMap::new(),
            statuses: BTreeMap::new(),
            exceptions: BTreeMap::new(),
            proxies: BTreeMap::new(),
            exits: BTreeMap::new(),
            // Three digits: a percentile is right to 0.1 %. The bounds are constants that are
            // valid, so this is always there.
            latency: Histogram::new_with_bounds(1, LONGEST_MICROS, 3).ok(),
            longest: None,
            hours: Exceptions::default(),
        }
    }

    /// Counts one record.
    pub fn add(&mut self, record: &Record) {
        self.urls += 1;
        self.ok += u64::from(record.ok);
        self.attempts += record.attempts_made();
        self.bytes_wire += record.bytes_wire;
        self.bytes_body += record.bytes_body;
        bump(&mut self.classes, &record.class);
        if let Some(status) = record.status {
            *self.statuses.entry(status).or_default() += 1;
        }
        if let Some(error) = &record.error {
            bump(&mut self.exceptions, &error.requests_name);
        }
        self.count_attempts(record);
        self.count_time(record);
    }

    fn count_attempts(&mut self, record: &Record) {
        let mut failed = false;
        let by_page = record.refused.as_ref().is_some_and(|refused| refused.matched.is_some());
        let last = record.attempts.len().saturating_sub(1);
        for (n, attempt) in record.attempts.iter().enumerate() {
            let refused =
                attempt.status == Some(403) || attempt.refused.is_some() || by_page && n == last;
            let proxy = way(&mut self.proxies, attempt.proxy.as_deref().unwrap_or(DIRECT));
            count(proxy, attempt, refused);
            if let Some(exit) = &attempt.exit {
                count(way(&mut self.exits, exit), attempt, refused);
            }
            failed |= attempt.error.is_some();
        }
        // The attempts of a refusing status are retries as well, so the first attempt tells.
        if record.ok && (failed || record.attempts.iter().any(|one| one.wait_ms.is_some())) {
            self.recovered += 1;
        }
        if record.ok {
            way(&mut self.proxies, record.proxy.as_deref().unwrap_or(DIRECT)).ok += 1;
            if let Some(exit) = &record.exit {
                way(&mut self.exits, exit).ok += 1;
            }
        }
        self.hours.add(record);
    }

    fn count_time(&mut self, record: &Record) {
        // A record that ended before anything was attempted says nothing of latency.
        if record.attempts.is_empty() {
            return;
        }
        let micros = (record.elapsed_ms * 1000.0).max(0.0) as u64;
        if let Some(latency) = &mut self.latency {
            latency.saturating_record(micros.max(1));
        }
        let longest = self.longest.as_ref().map_or(-1.0, |longest| longest.elapsed_ms);
        if record.elapsed_ms > longest {
            self.longest = Some(Longest {
                id: record.id.clone(),
                url: record.url.clone(),
                elapsed_ms: record.elapsed_ms,
            });
        }
    }

    /// URLs.
    pub fn urls(&self) -> u64 {
        self.urls
    }

    /// URLs of class `ok`.
    pub fn ok(&self) -> u64 {
        self.ok
    }

    /// URLs of any other class.
    pub fn failed(&self) -> u64 {
        self.urls - self.ok
    }

    /// URLs that ended well after an attempt that did not.
    pub fn recovered(&self) -> u64 {
        self.recovered
    }

    /// Attempts, those that records leave out included.
    pub fn attempts(&self) -> u64 {
        self.attempts
    }

    /// Body bytes that came off the wire.
    pub fn bytes_wire(&self) -> u64 {
        self.bytes_wire
    }

    /// Body bytes after decoding.
    pub fn bytes_body(&self) -> u64 {
        self.bytes_body
    }

    /// URLs by class.
    pub fn classes(&self) -> &BTreeMap<String, u64> {
        &self.classes
    }

    /// URLs by the status of their last response.
    pub fn statuses(&self) -> &BTreeMap<u16, u64> {
        &self.statuses
    }

    /// Failed URLs by the name of the exception in a `requests` log.
    pub fn exceptions(&self) -> &BTreeMap<String, u64> {
        &self.exceptions
    }

    /// The numbers of each proxy, `direct` among them.
    pub fn proxies(&self) -> &BTreeMap<String, Way> {
        &self.proxies
    }

    /// The numbers of each exit that is known.
    pub fn exits(&self) -> &BTreeMap<String, Way> {
        &self.exits
    }

    /// The time that this share of the URLs did not exceed, from first attempt to end, to 0.1 %.
    ///
    /// `None` while nothing was attempted. Times beyond a day count as a day.
    pub fn percentile(&self, share: f64) -> Option<Duration> {
        let latency = self.latency.as_ref().filter(|latency| !latency.is_empty())?;
        Some(Duration::from_micros(latency.value_at_quantile(share)))
    }

    /// The URL that took longest.
    pub fn longest(&self) -> Option<&Longest> {
        self.longest.as_ref()
    }

    /// Failed attempts by hour, exception and exit.
    pub fn hours(&self) -> &Exceptions {
        &self.hours
    }
}

fn bump(table: &mut BTreeMap<String, u64>, key: &str) {
    match table.get_mut(key) {
        Some(count) => *count += 1,
        None => {
            table.insert(key.to_owned(), 1);
        }
    }
}

fn way<'a>(table: &'a mut BTreeMap<String, Way>, key: &str) -> &'a mut Way {
    let key = if table.len() < MOST_KEYS || table.contains_key(key) { key } else { OTHERS };
    table.entry(key.to_owned()).or_default()
}

fn count(way: &mut Way, attempt: &AttemptRecord, refused: bool) {
    way.attempts += 1;
    way.refused += u64::from(refused);
    if attempt.error.is_some() {
        way.failed += 1;
    } else {
        way.answered += 1;
    }
}

/// Failed attempts by hour (UTC), exception and exit: the table that shows at which hour which exit
/// began to fail.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Exceptions(BTreeMap<(u64, String, String), u64>);

impl Exceptions {
    /// Counts the failed attempts of a record.
    ///
    /// The exit is the address that the world saw, where it is known, or else the proxy. The hour
    /// is that of the attempt: a record tells when its URL ended, and its attempts tell how long
    /// before that each of them was. Attempts of an earlier pass count into the hour in which the
    /// last pass began, since the pause between two passes is not known.
    pub fn add(&mut self, record: &Record) {
        let Some(ended) = record.ended() else { return };
        let ended = ended.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let began = ended.saturating_sub(from_millis(record.elapsed_ms));
        let mut passed = Duration::ZERO;
        for attempt in &record.attempts {
            if attempt.pass == record.pass {
                passed = passed.saturating_add(from_millis(attempt.elapsed_ms));
            }
            if let Some(error) = &attempt.error {
                let at = began.saturating_add(passed).min(ended);
                let exit = attempt.exit.as_deref().or(attempt.proxy.as_deref()).unwrap_or(DIRECT);
                let key = (at.as_secs() / 3600, error.requests_name.to_string(), exit.to_owned());
                self.bump(key);
            }
            if attempt.pass == record.pass {
                passed = passed.saturating_add(from_millis(attempt.wait_ms.unwrap_or_default()));
            }
        }
    }

    fn bump(&mut self, mut key: (u64, String, String)) {
        if self.0.len() >= MOST_KEYS && !self.0.contains_key(&key) {
            OTHERS.clone_into(&mut key.2);
        }
        *self.0.entry(key).or_default() += 1;
    }

    /// Each hour (as its start), exception, exit and count, in order.
    pub fn iter(&self) -> impl Iterator<Item = (SystemTime, &str, &str, u64)> {
        self.0.iter().map(|((hour, exception, exit), count)| {
            let start = SystemTime::UNIX_EPOCH + Duration::from_secs(hour * 3600);
            (start, exception.as_str(), exit.as_str(), *count)
        })
    }

    /// Writes the table as tab-separated values under a line of column names: `hour`,
    /// `exception`, `exit`, `count`.
    ///
    /// # Errors
    /// Those of writing.
    pub fn write_tsv(&self, mut out: impl Write) -> io::Result<()> {
        writeln!(out, "{COLUMNS}")?;
        for (hour, exception, exit, count) in self.iter() {
            let hour = humantime::format_rfc3339_seconds(hour);
            let exit: String = exit.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
            writeln!(out, "{hour}\t{exception}\t{exit}\t{count}")?;
        }
        out.flush()
    }

    /// Reads what [`write_tsv`](Self::write_tsv) wrote; nothing at all is an empty table. Else the
    /// number of the line that is wrong, and why.
    pub(super) fn parse_tsv(text: &str) -> Result<Self, (usize, String)> {
        let mut table = BTreeMap::new();
        for (line, number) in text.lines().zip(1..) {
            if number == 1 {
                if line != COLUMNS {
                    let wrong = "not a tally, whose first line names the columns hour, exception, \
                                 exit and count; name another file";
                    return Err((number, wrong.to_owned()));
                }
                continue;
            }
            let (key, count) = parse_line(line).ok_or_else(|| {
                let wrong = "not an hour, an exception, an exit and a count with tabs between; remove \
                             this line, or name another file";
                (number, wrong.to_owned())
            })?;
            *table.entry(key).or_default() += count;
        }
        Ok(Self(table))
    }

    /// Takes the higher count of each line.
    pub(super) fn raise_to(&mut self, other: &Self) {
        for (key, count) in &other.0 {
            let own = self.0.entry(key.clone()).or_default();
            *own = (*own).max(*count);
        }
    }
}

fn parse_line(line: &str) -> Option<((u64, String, String), u64)> {
    let mut cells = line.split('\t');
    let (hour, exception, exit, count) =
        (cells.next()?, cells.next()?, cells.next()?, cells.next()?);
    let since = humantime::parse_rfc3339(hour).ok()?.duration_since(SystemTime::UNIX_EPOCH).ok()?;
    let key = (since.as_secs() / 3600, exception.to_owned(), exit.to_owned());
    let is_whole = cells.next().is_none() && !exception.is_empty() && !exit.is_empty();
    Some((key, count.parse().ok()?)).filter(|_| is_whole)
}

fn from_millis(millis: f64) -> Duration {
    crate::time::secs(millis / 1000.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::batch::record::tests::SMALL;
    use proptest::prelude::*;

    fn record(id: u32, elapsed_ms: f64) -> Record {
        let mut record = Record::parse(SMALL.as_bytes()).unwrap();
        record.id = id.to_string();
        record.elapsed_ms = elapsed_ms;
        record
    }

    fn failing(at: &str, attempts: &str) -> Record {
        let error = r#"{"kind":"read_timeout","requests_name":"ReadTimeout","phase":"headers",
            "fault":"target","message":"silence"}"#;
        let attempts = attempts.replace("ERROR", error);
        let text = SMALL
            .replace(
                "\"attempts\":[{\"n\":1,\"elapsed_ms\":1.0}]",
                &format!("\"attempts\":{attempts}"),
            )
            .replace("2025-06-15T15:06:40.000Z", at);
        Record::parse(text.as_bytes()).unwrap()
    }

    #[test]
    fn percentiles_of_a_thousand() {
        let mut tally = Tally::new();
        assert_eq!((tally.percentile(0.5), tally.longest()), (None, None));
        for number in 1..=1000 {
            tally.add(&record(number, f64::from(number)));
        }
        for (share, millis) in [(0.5, 500), (0.95, 950), (0.99, 990), (1.0, 1000)] {
            let have = tally.percentile(share).unwrap().as_secs_f64() * 1000.0;
            let wanted = f64::from(millis);
            assert!((have - wanted).abs() <= wanted / 1000.0, "{share}: {have}");
        }
        assert_eq!(tally.longest().unwrap().id, "1000");
        assert_eq!((tally.urls(), tally.ok(), tally.attempts()), (1000, 1000, 1000));
    }

    #[test]
    fn absurd_times_do_not_break_it() {
        let mut tally = Tally::new();
        for elapsed in [-1.0, 0.0, f64::NAN, f64::INFINITY, 1e300] {
            tally.add(&record(1, elapsed));
        }
        assert!(tally.percentile(1.0).unwrap() <= Duration::from_secs(24 * 3600 + 60));
    }

    #[test]
    fn ways_and_recoveries() {
        let mut tally = Tally::new();
        let record = failing(
            "2025-06-15T15:06:40.000Z",
            r#"[{"n":1,"proxy":"http://a:1","exit":"192.0.2.1","error":ERROR,"elapsed_ms":1,"wait_ms":2,"wait_reason":"backoff"},
                {"n":2,"elapsed_ms":1,"status":200}]"#,
        );
        tally.add(&record);
        let failed = Way { attempts: 1, failed: 1, ..Way::default() };
        let good = Way { attempts: 1, answered: 1, ok: 1, ..Way::default() };
        assert_eq!(
            tally.proxies().iter().map(|(key, way)| (key.as_str(), *way)).collect::<Vec<_>>(),
            [("direct", good), ("http://a:1", failed)]
        );
        assert_eq!(tally.exits().get("192.0.2.1"), Some(&failed));
        assert_eq!((tally.recovered(), tally.ok(), tally.failed()), (1, 1, 0));
        assert!(tally.exceptions().is_empty());
    }

    #[test]
    fn keys_from_outside_are_bounded() {
        let mut tally = Tally::new();
        for number in 0..MOST_KEYS as u32 + 50 {
            let mut record = record(number, 1.0);
            record.attempts[0].exit = Some(format!("exit {number}"));
            tally.add(&record);
        }
        assert_eq!(tally.exits().len(), MOST_KEYS + 1);
        assert_eq!(tally.exits()[OTHERS].attempts, 50);
    }

    #[test]
    fn exceptions_count_into_the_hour_of_their_attempt() {
        let mut hours = Exceptions::default();
        // Ended 15:00:01 after 2 s: an attempt of 0.5 s, a wait of 1 s, one of 0.5 s.
        let mut record = failing(
            "2025-06-15T15:00:01.000Z",
            r#"[{"n":1,"exit":"192.0.2.1","error":ERROR,"elapsed_ms":500,"wait_ms":1000},
                {"n":2,"proxy":"http://a:1","error":ERROR,"elapsed_ms":500}]"#,
        );
        record.elapsed_ms = 2000.0;
        hours.add(&record);
        hours.add(&record);
        let mut out = Vec::new();
        hours.write_tsv(&mut out).unwrap();
        assert_eq!(
            String::from_utf8(out).unwrap(),
            "hour\texception\texit\tcount\n\
             2025-06-15T14:00:00Z\tReadTimeout\t192.0.2.1\t2\n\
             2025-06-15T15:00:00Z\tReadTimeout\thttp://a:1\t2\n"
        );
        let mut out = Vec::new();
        hours.write_tsv(&mut out).unwrap();
        let mut read = Exceptions::parse_tsv(std::str::from_utf8(&out).unwrap()).unwrap();
        assert_eq!(read, hours);
        hours.add(&record);
        read.raise_to(&hours);
        assert_eq!(read, hours);
        assert_eq!(Exceptions::parse_tsv(""), Ok(Exceptions::default()));
    }

    proptest! {
        #[test]
        fn a_table_reads_back_whatever_is_in_it(
            lines in proptest::collection::vec((0_u64..500_000, "[A-Z][a-z]{1,8}", "\\PC{1,12}", 1_u64..1000), 0..20),
            noise in "[\\PC\t\n]{0,60}",
        ) {
            let mut table = Exceptions::default();
            for (hour, exception, exit, count) in lines {
                *table.0.entry((hour, exception, exit)).or_default() += count;
            }
            let mut text = Vec::new();
            table.write_tsv(&mut text).unwrap();
            let text = String::from_utf8(text).unwrap();
            prop_assert_eq!(Exceptions::parse_tsv(&text), Ok(table));
            // And what is no table is told, not met with a panic.
            let _ = Exceptions::parse_tsv(&noise);
            let _ = Exceptions::parse_tsv(&(text + &noise));
        }
    }
}
