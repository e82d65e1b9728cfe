//! What the records of a run tell, over any number of them.
//!
//! A run leaves a line for each URL. Somebody has to judge it afterwards, also after a month and on
//! another machine, and has nothing but the file: how much failed, when it began to fail, what took
//! so long, who refused, and whether what was promised was kept. An [`Analysis`] reads the file once,
//! in bounded memory, and comes to a [`Report`] of numbers.
//!
//! What it decides: which moment an attempt belongs to, which names are told apart ([`table`]), how wide
//! the steps of time are ([`series`]), and what is said about what records leave out. How the numbers
//! look is the business of whoever shows them.
//!
//! **Nothing is made up.** Where records lack something, the report counts how often, and says so.

mod blocks;
mod compare;
mod line;
mod moments;
mod notes;
mod phases;
mod refusals;
mod report;
mod series;
mod spread;
mod table;
#[cfg(test)]
mod tests;
mod told;
mod turns;
mod ways;

pub use compare::{Comparison, Difference, Unit, Verdict};
pub use report::{
    AttemptsPerUrl, ExceptionsByHour, ExitsSeen, Hour, OverTime, Percentiles, PhaseTimes, Promise,
    REPORT_VERSION, Refusal, Refusals, Report, Row, Rows, Sign, SlowUrl, Step, Waits,
};

use super::content::{Content, is_packed, unreadable};
use super::format::Format;
use super::parts::parts_of;
use super::record::Record;
use crate::error::{Error, ErrorKind};
use blocks::Blocks;
use line::{Decoded, Line, host};
use moments::{Moments, from_millis};
use phases::Phases;
use refusals::Kinds;
use series::{Join, Series};
use spread::{Spread, rounded, time};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::BufRead;
use std::path::Path;
use std::time::Duration;
use table::Table;
use ways::{MOST_NAMES, Way};

/// Names of classes, exceptions and reasons that are told apart; there are a dozen of each.
const MOST_WORDS: usize = 64;

/// URLs with more attempts than this are counted together.
const MOST_ATTEMPTS: u64 = 64;

/// How many of the slowest URLs are told.
const SLOWEST: usize = 20;

/// What going without a proxy is called.
const DIRECT: &str = "direct";

const HOUR: u64 = 3600;

/// Counts records, read from a file or one by one.
///
/// # Units
/// Memory: some 20 MB, and up to 200 bytes for each of at most 10 000 hosts, proxies and exits.
///
/// # Examples
/// ```
/// use longhaul::batch::Analysis;
///
/// # fn main() -> Result<(), longhaul::Error> {
/// let lines: &[u8] = b"";
/// let report = Analysis::read("results.jsonl", lines)?.report();
/// println!("{} of {} URLs ended well", report.ok, report.urls);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct Analysis {
    source: String,
    torn_bytes: u64,
    urls: u64,
    ok: u64,
    recovered: u64,
    attempts: u64,
    listed: u64,
    /// Records whose end is no time.
    timeless: u64,
    /// Records with phases.
    timed: u64,
    /// Attempts of passes before the last, of which nobody knows when they were.
    earlier: u64,
    began: Option<Duration>,
    ended: Option<Duration>,
    bytes_wire: u64,
    bytes_body: u64,
    classes: Table<u64>,
    statuses: BTreeMap<u16, u64>,
    exceptions: Table<u64>,
    steps: Series<Ended>,
    hours: Series<Failed>,
    phases: Phases,
    attempts_per_url: BTreeMap<u64, u64>,
    waits: Table<Spread>,
    exits: Table<Way>,
    hosts: Table<Way>,
    proxies: Table<Way>,
    refusals: Kinds,
    slowest: Vec<(u64, SlowUrl)>,
    promised: Option<(f64, f64)>,
    promises: Promise,
}

impl Default for Analysis {
    fn default() -> Self {
        Self::new()
    }
}

/// What ended in a step.
#[derive(Debug, Clone)]
struct Ended {
    urls: u64,
    classes: Table<u64>,
    bytes_wire: u64,
}

impl Default for Ended {
    fn default() -> Self {
        Self { urls: 0, classes: Table::of(MOST_WORDS), bytes_wire: 0 }
    }
}

impl Join for Ended {
    fn join(&mut self, other: Self) {
        self.urls += other.urls;
        self.bytes_wire += other.bytes_wire;
        self.classes.join(&other.classes);
    }
}

/// What failed in a step.
#[derive(Debug, Clone)]
struct Failed(Table<u64>);

impl Default for Failed {
    fn default() -> Self {
        Self(Table::of(MOST_WORDS))
    }
}

impl Join for Failed {
    fn join(&mut self, other: Self) {
        self.0.join(&other.0);
    }
}

impl Analysis {
    /// Nothing yet.
    pub fn new() -> Self {
        Self {
            source: String::new(),
            torn_bytes: 0,
            urls: 0,
            ok: 0,
            recovered: 0,
            attempts: 0,
            listed: 0,
            timeless: 0,
            timed: 0,
            earlier: 0,
            began: None,
            ended: None,
            bytes_wire: 0,
            bytes_body: 0,
            classes: Table::of(MOST_WORDS),
            statuses: BTreeMap::new(),
            exceptions: Table::of(MOST_WORDS),
            steps: Series::from_width(1),
            hours: Series::from_width(HOUR),
            phases: Phases::default(),
            attempts_per_url: BTreeMap::new(),
            waits: Table::of(MOST_WORDS),
            exits: Table::of(MOST_NAMES),
            hosts: Table::of(MOST_NAMES),
            proxies: Table::of(MOST_NAMES),
            refusals: Kinds::default(),
            slowest: Vec::new(),
            promised: None,
            promises: Promise::default(),
        }
    }

    /// Reads the results of a run, plain or under zstd (`….zst`), on all cores; also while a run writes
    /// them. Their [parts](super::parts_of) are read with the first file.
    ///
    /// What a crash left torn at its end is left out, and told in [`Report::notes`].
    ///
    /// # Errors
    /// `Io` where it cannot be read. `InvalidJson`, with the line, for what is no record or one of a
    /// newer version. `Config` for a name in `.zst` without the feature `zstd`, and for one in `.csv`: a
    /// table has not all that a report tells.
    pub fn read_file(path: impl AsRef<Path>) -> Result<Self, Error> {
        let path = path.as_ref();
        if Format::of_name(path) != Format::JsonLines {
            let name = path.display();
            let text = format!(
                "{name} is a table, which has not all that a report tells; name results in JSON Lines"
            );
            return Err(Error::config(text));
        }
        let parts = parts_of(path).map_err(|error| unreadable(path, error))?;
        let analysis = parts.iter().try_fold(Self::new(), |sum, part| sum.and_file(part))?;
        Ok(Self { source: path.display().to_string(), ..analysis })
    }

    /// The same with the records of one more file.
    fn and_file(self, path: &Path) -> Result<Self, Error> {
        let packed = is_packed(path)?;
        let file = File::open(path).map_err(|error| unreadable(path, error))?;
        if file.metadata().is_ok_and(|data| !data.is_file()) {
            // A pipe can neither be looked through nor read from its beginning.
            return Ok(self.and_lines(path, Box::new(std::io::BufReader::new(file)))?.0);
        }
        let content = Content::of(&file, packed, path)?;
        let (damage, torn) = (content.damage(), content.torn);
        let (mut analysis, line) = self.and_lines(path, content.reader)?;
        analysis.torn_bytes += torn;
        match damage {
            None => Ok(analysis),
            Some(damage) => {
                let text = format!("{}:{line}: {}", path.display(), damage.message());
                Err(Error::local(ErrorKind::InvalidJson, text))
            }
        }
    }

    /// Reads plain lines; `name` stands for them in messages.
    ///
    /// # Errors
    /// As [`read_file`](Self::read_file).
    pub fn read(name: &str, reader: impl BufRead + Send) -> Result<Self, Error> {
        let (analysis, _) = Self::new().and_lines(Path::new(name), Box::new(reader))?;
        Ok(Self { source: name.to_owned(), ..analysis })
    }

    /// With these lines too, and the number of the line behind them.
    fn and_lines(
        self,
        name: &Path,
        reader: Box<dyn BufRead + Send + '_>,
    ) -> Result<(Self, u64), Error> {
        let torn_before = self.torn_bytes;
        let blocks = Blocks::of(reader, name);
        let (mut analysis, torn, line) = turns::count(self, blocks, name)?;
        analysis.torn_bytes = torn_before + torn;
        Ok((analysis, line))
    }

    /// Counts one record.
    pub fn add(&mut self, record: &Record) {
        self.count(&Decoded::of(Line::from(record)));
    }

    fn count(&mut self, decoded: &Decoded<'_>) {
        let line = &decoded.line;
        self.urls += 1;
        self.ok += u64::from(line.ok);
        self.bytes_wire = self.bytes_wire.saturating_add(line.bytes_wire);
        self.bytes_body = self.bytes_body.saturating_add(line.bytes_body);
        *self.classes.at(&line.class) += 1;
        if let Some(status) = line.status {
            *self.statuses.entry(status).or_default() += 1;
        }
        if let Some(error) = &line.error {
            *self.exceptions.at(&error.requests_name) += 1;
        }
        self.hosts.at(&decoded.host).url(line.ok, line.bytes_wire);
        let proxy = line.proxy.as_deref().unwrap_or(DIRECT);
        self.proxies.at(proxy).url(line.ok, line.bytes_wire);
        if let Some(exit) = &line.exit {
            self.exits.at(exit).url(line.ok, line.bytes_wire);
        }
        if let Some(refused) = &line.refused {
            self.refusals.add(line.status, refused);
        }
        self.count_end(decoded);
        self.count_attempts(decoded);
        self.count_time(line);
    }

    /// When it was.
    fn count_end(&mut self, decoded: &Decoded<'_>) {
        let Some(ended) = decoded.ended else {
            self.timeless += 1;
            return;
        };
        let began = ended.saturating_sub(from_millis(decoded.line.elapsed_ms));
        self.began = Some(self.began.map_or(began, |first| first.min(began)));
        self.ended = Some(self.ended.map_or(ended, |last| last.max(ended)));
        let step = self.steps.at(ended.as_secs());
        step.urls += 1;
        step.bytes_wire = step.bytes_wire.saturating_add(decoded.line.bytes_wire);
        *step.classes.at(&decoded.line.class) += 1;
    }

    fn count_attempts(&mut self, decoded: &Decoded<'_>) {
        let line = &decoded.line;
        let made = line.attempts.last().map_or(0, |attempt| u64::from(attempt.n));
        self.attempts += made;
        self.listed += line.attempts.len() as u64;
        *self.attempts_per_url.entry(made.min(MOST_ATTEMPTS)).or_default() += 1;
        let by_page = line.refused.as_ref().is_some_and(|refused| refused.matched.is_some());
        let last = line.attempts.len().saturating_sub(1);
        let mut moments = Moments::of(decoded);
        let mut elsewhere: Option<String> = None;
        let (mut repeated, mut pass) = (false, 1);
        for (at, attempt) in line.attempts.iter().enumerate() {
            let refused =
                attempt.status == Some(403) || attempt.refused.is_some() || by_page && at == last;
            // Each pass begins with the URL of the record.
            if attempt.pass != std::mem::replace(&mut pass, attempt.pass) {
                elsewhere = None;
            }
            if let Some(url) = &attempt.url {
                elsewhere = Some(host(url));
            }
            let asked = elsewhere.as_deref().unwrap_or(&decoded.host);
            self.hosts.at(asked).attempt(attempt, refused);
            self.proxies.at(attempt.proxy.as_deref().unwrap_or(DIRECT)).attempt(attempt, refused);
            let second = moments.next(attempt, line.pass);
            self.earlier += u64::from(attempt.pass != line.pass);
            if let Some(exit) = &attempt.exit {
                let way = self.exits.at(exit);
                way.attempt(attempt, refused);
                way.first = way.first.into_iter().chain(second).min();
            }
            if let (Some(error), Some(second)) = (&attempt.error, second) {
                *self.hours.at(second).0.at(&error.requests_name) += 1;
            }
            if let Some(refused) = &attempt.refused {
                self.refusals.add(attempt.status, refused);
            }
            if let Some(wait) = attempt.wait_ms {
                self.waits.at(attempt.wait_reason.as_deref().unwrap_or("unknown")).add(wait);
            }
            repeated |= attempt.error.is_some() || attempt.wait_ms.is_some();
            self.phases.attempt.add(attempt.elapsed_ms);
        }
        self.recovered += u64::from(line.ok && repeated);
    }

    fn count_time(&mut self, line: &Line<'_>) {
        if let Some(timings) = &line.timings {
            self.timed += 1;
            self.phases.add(timings);
        }
        // A record that ended before anything was attempted says nothing of time.
        if line.attempts.is_empty() {
            return;
        }
        let elapsed = time(line.elapsed_ms);
        self.phases.url.add(elapsed);
        self.rank(line, elapsed);
        if let Some(promised) = line.promised_ms.map(time) {
            self.promises.told += 1;
            let (least, most) = self.promised.unwrap_or((promised, promised));
            self.promised = Some((least.min(promised), most.max(promised)));
            if elapsed > promised {
                self.promises.broken += 1;
                let excess = self.promises.worst_excess_ms.max(elapsed - promised);
                self.promises.worst_excess_ms = excess;
            }
        }
    }

    /// Puts it among the slowest, behind those that took as long.
    fn rank(&mut self, line: &Line<'_>, elapsed: f64) {
        let micros = (elapsed * 1000.0) as u64;
        let place = self.slowest.partition_point(|(other, _)| *other >= micros);
        if place < SLOWEST {
            let slow = SlowUrl {
                id: line.id.to_string(),
                url: line.url.to_string(),
                class: line.class.to_string(),
                attempts: line.attempts.last().map_or(0, |attempt| u64::from(attempt.n)),
                elapsed_ms: rounded(elapsed),
                at: line.at.to_string(),
            };
            self.slowest.insert(place, (micros, slow));
            self.slowest.truncate(SLOWEST);
        }
    }
}
