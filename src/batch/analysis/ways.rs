//! The numbers of each host, proxy and exit.

use super::line::LineAttempt;
use super::report::{Row, Rows};
use super::spread::{rounded, time};
use super::table::Table;
use std::cmp::Reverse;

/// Names that are told apart in each table.
pub(super) const MOST_NAMES: usize = 10_000;

/// What came of the attempts and URLs of one name.
#[derive(Debug, Clone, Default)]
pub(super) struct Way {
    attempts: u64,
    answered: u64,
    refused: u64,
    throttled: u64,
    urls: u64,
    ok: u64,
    bytes_wire: u64,
    answered_ms: f64,
    longest_ms: f64,
    /// The second in which it was met first; `None` where no attempt tells its time.
    pub(super) first: Option<u64>,
}

impl Way {
    pub(super) fn attempt(&mut self, attempt: &LineAttempt<'_>, refused: bool) {
        let ms = time(attempt.elapsed_ms);
        self.attempts += 1;
        if attempt.error.is_none() {
            self.answered += 1;
            self.answered_ms += ms;
        }
        self.refused += u64::from(refused);
        self.throttled += u64::from(matches!(attempt.status, Some(429 | 503)));
        self.longest_ms = self.longest_ms.max(ms);
    }

    pub(super) fn url(&mut self, ok: bool, bytes_wire: u64) {
        self.urls += 1;
        self.ok += u64::from(ok);
        self.bytes_wire = self.bytes_wire.saturating_add(bytes_wire);
    }

    pub(super) fn row(&self, name: &str) -> Row {
        Row {
            name: name.to_owned(),
            urls: self.urls,
            ok: self.ok,
            attempts: self.attempts,
            answered: self.answered,
            failed: self.attempts - self.answered,
            refused: self.refused,
            throttled: self.throttled,
            mean_ms: (self.answered > 0).then(|| rounded(self.answered_ms / self.answered as f64)),
            longest_ms: rounded(self.longest_ms),
            bytes_wire: self.bytes_wire,
        }
    }
}

/// The rows of a table, the busiest first.
pub(super) fn rows(table: &Table<Way>) -> Rows {
    let mut rows: Vec<Row> = table.iter().map(|(name, way)| way.row(name)).collect();
    rows.sort_by(|a, b| {
        (Reverse((a.attempts, a.urls)), &a.name).cmp(&(Reverse((b.attempts, b.urls)), &b.name))
    });
    Rows { rows, others: table.others().map(|way| way.row("(others)")) }
}
