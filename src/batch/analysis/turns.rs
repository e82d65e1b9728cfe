//! Reading on all cores, counting in the order of the file.
//!
//! To decode a record costs several times what it costs to count it. So each thread takes the next
//! block of lines, decodes it by itself, and waits for its turn to count: blocks are counted in the
//! order in which they stand in the file. With that the same file gives the same numbers on any
//! machine, also where only so many names are told apart, and of two broken lines the first is told.
//! Each thread has one block at a time, so memory does not depend on the file.

use super::Analysis;
use super::blocks::{Block, Blocks};
use super::line::{Decoded, Line};
use crate::batch::record::{VERSION, newer_version, not_a_record};
use crate::error::{Error, ErrorKind};
use std::path::Path;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// More threads than this would only wait for their turn.
const MOST_THREADS: usize = 8;

/// Counts all lines of the blocks; the bytes of a torn last line are given back.
///
/// # Errors
/// That of the first block that cannot be read or that has a line which is no record.
pub(super) fn count(
    analysis: Analysis,
    mut blocks: Blocks<'_>,
    name: &Path,
) -> Result<(Analysis, u64, u64), Error> {
    let counted = Counted { analysis, torn: 0, next: 0, is_over: false, broken: None };
    let shared = Shared { counted: Mutex::new(counted), turn: Condvar::new(), name };
    let threads = std::thread::available_parallelism().map_or(1, usize::from).min(MOST_THREADS);
    let source = Mutex::new(&mut blocks);
    std::thread::scope(|scope| {
        for _ in 1..threads {
            scope.spawn(|| shared.work(&source));
        }
        shared.work(&source);
    });
    let counted = shared.counted.into_inner().unwrap_or_else(PoisonError::into_inner);
    match counted.broken {
        Some(error) => Err(error),
        None => Ok((counted.analysis, counted.torn, blocks.line())),
    }
}

struct Shared<'a> {
    counted: Mutex<Counted>,
    turn: Condvar,
    name: &'a Path,
}

/// What the threads add to, one after the other.
struct Counted {
    analysis: Analysis,
    torn: u64,
    /// The block whose turn it is.
    next: u64,
    is_over: bool,
    broken: Option<Error>,
}

impl Shared<'_> {
    /// Takes blocks until there are no more.
    fn work(&self, source: &Mutex<&mut Blocks<'_>>) {
        let mut leaving = Leaving { shared: self, is_in_order: false };
        loop {
            if self.lock().is_over {
                break;
            }
            // Given back at once, so that the next thread reads while this one decodes.
            let block = source.lock().unwrap_or_else(PoisonError::into_inner).read();
            let Some((number, block)) = block else { break };
            match block {
                Ok(block) => self.take(number, decode(&block, self.name)),
                Err(error) => self.take(number, Err(error)),
            }
        }
        leaving.is_in_order = true;
    }

    /// Counts the lines of this block when it is its turn.
    fn take(&self, number: u64, lines: Result<Lines<'_>, Error>) {
        let mut counted = self.lock();
        while counted.next != number && !counted.is_over {
            counted = self.turn.wait(counted).unwrap_or_else(PoisonError::into_inner);
        }
        if counted.is_over {
            return;
        }
        match lines {
            Ok(Lines { decoded, torn }) => {
                decoded.iter().for_each(|line| counted.analysis.count(line));
                counted.torn += torn;
                counted.next += 1;
            }
            Err(error) => {
                counted.broken.get_or_insert(error);
                counted.is_over = true;
            }
        }
        self.turn.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, Counted> {
        self.counted.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A thread that panics must not leave the others waiting for its turn.
struct Leaving<'a> {
    shared: &'a Shared<'a>,
    is_in_order: bool,
}

impl Drop for Leaving<'_> {
    fn drop(&mut self) {
        if !self.is_in_order {
            let text = "a thread of the report panicked";
            let mut counted = self.shared.lock();
            counted.broken.get_or_insert_with(|| Error::local(ErrorKind::Internal, text));
            counted.is_over = true;
            self.shared.turn.notify_all();
        }
    }
}

struct Lines<'a> {
    decoded: Vec<Decoded<'a>>,
    /// Bytes of a last line that was cut off.
    torn: u64,
}

fn decode<'a>(block: &'a Block, name: &Path) -> Result<Lines<'a>, Error> {
    let mut lines = Lines { decoded: Vec::new(), torn: 0 };
    for (number, text) in block.lines() {
        if text.iter().all(u8::is_ascii_whitespace) {
            continue;
        }
        let wrong = |error: &Error| {
            let text = format!(
                "{}:{number}: {}; repair or remove this line, or name another file",
                name.display(),
                error.message()
            );
            Error::local(ErrorKind::InvalidJson, text)
        };
        match serde_json::from_slice::<Line<'_>>(text) {
            Ok(line) if line.v > VERSION => return Err(wrong(&newer_version(line.v))),
            Ok(line) => lines.decoded.push(Decoded::of(line)),
            // A line without an end is the last one, and torn; one with an end never was.
            Err(_) if !text.ends_with(b"\n") => lines.torn = text.len() as u64,
            Err(error) => return Err(wrong(&not_a_record(&error))),
        }
    }
    Ok(lines)
}
