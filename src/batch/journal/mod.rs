//! Resumption: the results file tells what is done.
//!
//! There is no second file to keep in step with the results. A URL is done when its record stands
//! in the results, so the results are the journal, and `kill -9` at any byte leaves one of three
//! things at the end of the file: nothing, a complete line, or a line without its end. A torn line
//! is cut off and its URL done again; a complete object whose line feed is missing gets it and
//! counts. Anything else that is no record is not repaired but reported, with its line: then
//! somebody else has written into the file, and guessing would lose results.
//!
//! **Every URL exactly once.** A URL that did not end (stopped, cancelled, or waiting for another
//! pass) has no record. Failed URLs have one and are left alone, unless they are asked for again:
//! then the file is first rewritten without their records, beside itself, synced and renamed over,
//! so that a crash leaves either the old file or the new one. The same happens to the records of
//! failures that are none of the URL's: credentials of the proxy refused, no proxy left, a leak.
//!
//! A table of CSV is held to the same: its rows are what lines are here, and it needs the columns that
//! tell what is done. Results that are spread over parts are read as one.
//!
//! Under zstd the same is true of frames. A torn frame is cut off, and its records with it; what is
//! no frame is reported with the line that it would begin with.
//!
//! **One writer.** The file is locked as long as the run has it, and a second run is refused. On a
//! file system without locks this is left to the user, with a warning.

mod done;
mod files;
mod part;
mod rows;

pub use done::Done;
pub(super) use files::lock;

use super::content::{is_packed, unreadable};
use super::format::Format;
use super::parts::{gap_behind, parts_of};
use super::record::Record;
use super::sink::io_error;
use super::writer::RecordWriter;
use crate::error::{Error, ErrorKind};
use done::Counting;
use part::Part;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// What to do with results that are there already.
#[non_exhaustive]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Existing {
    /// Refuse to begin; an empty file is fine. The default, since nothing may be lost.
    #[default]
    Refuse,
    /// Throw them away.
    Overwrite,
    /// Go on behind them.
    Resume {
        /// Do failed URLs again.
        retry_failed: bool,
    },
}

/// What the results hold, as far as they stay.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Found {
    /// Records of success.
    pub ok: u64,
    /// Records of failure that stay.
    pub failed: u64,
    /// Records that are removed so that their URLs are done again.
    pub again: u64,
    /// Bytes of a torn last line, which are cut off.
    pub torn: u64,
}

/// The results of a run, locked and understood, but not changed yet: a file, and its
/// [parts](super::parts_of).
#[derive(Debug)]
pub struct Journal {
    parts: Vec<Part>,
    format: Format,
    existing: Existing,
    /// From how many bytes on another part begins.
    part_size: Option<u64>,
    begun: bool,
    done: Done,
    found: Found,
}

impl Journal {
    /// Opens and locks the file, and reads what is done. Nothing in it is changed. Its form is the one
    /// that its name asks for.
    ///
    /// # Errors
    /// `Io` where it cannot be opened. `Config` for results that would be lost, for a second
    /// writer, for a resumption of what is no file, and for a name in `.zst` without the feature
    /// `zstd`. `InvalidJson`, with the line, for what is no record.
    pub fn open(path: impl AsRef<Path>, existing: Existing) -> Result<Self, Error> {
        let format = Format::of_name(path.as_ref());
        Self::open_as(path, existing, format)
    }

    /// The same with results in this form.
    ///
    /// # Errors
    /// Those of [`open`](Self::open), and `Config` for a table with other columns, or without those
    /// that tell what is done.
    pub fn open_as(
        path: impl AsRef<Path>,
        existing: Existing,
        format: Format,
    ) -> Result<Self, Error> {
        let path = path.as_ref();
        let packed = is_packed(path)?;
        let mut parts = vec![Part::open(path, packed)?];
        if parts.iter().all(|part| part.regular) {
            let others = parts_of(path).map_err(|error| unreadable(path, error))?;
            for other in others.iter().skip(1) {
                parts.push(Part::open(other, packed)?);
            }
        }
        let gap = find_gap(path, &parts).map_err(|error| unreadable(path, error))?;
        let mut journal = Self {
            parts,
            format,
            existing,
            part_size: None,
            begun: false,
            done: Done::default(),
            found: Found::default(),
        };
        if let Some((missing, behind)) = gap {
            return Err(Error::config(format!(
                "{} is missing, and {} is there, which holds results behind it; put it back, or move \
                 those behind it away",
                missing.display(),
                behind.display()
            )));
        }
        match existing {
            Existing::Refuse | Existing::Overwrite if !journal.is_regular() => {}
            Existing::Refuse => {
                if let Some(part) = journal.parts.iter().find(|part| !part.is_empty()) {
                    return Err(Error::config(format!(
                        "{} already holds results; resume the run, overwrite them on purpose, or \
                         name another file",
                        part.path.display()
                    )));
                }
            }
            Existing::Overwrite => {}
            Existing::Resume { .. } if !journal.is_regular() => {
                let name = path.display();
                let text = format!("{name} is not a file, so nothing tells what is done");
                return Err(Error::config(text));
            }
            Existing::Resume { retry_failed } => journal.read(retry_failed)?,
        }
        Ok(journal)
    }

    /// From how many bytes on the next record goes into another part: `results.1.jsonl` for
    /// `results.jsonl`, and so on. The results of a stream have none.
    ///
    /// # Defaults
    /// Never: there is one file.
    #[must_use]
    pub fn part_size(mut self, bytes: impl Into<Option<u64>>) -> Self {
        self.part_size = bytes.into();
        self
    }

    /// The items that need not be done.
    pub fn done(&self) -> &Done {
        &self.done
    }

    /// What the results hold.
    pub fn found(&self) -> Found {
        self.found
    }

    /// The files.
    pub(super) fn paths(&self) -> impl Iterator<Item = &Path> {
        self.parts.iter().map(|part| part.path.as_path())
    }

    /// Makes the files ready and hands them to a writer. From here on they are changed.
    ///
    /// # Errors
    /// `Io`; a file is then as it was, or ready already.
    pub fn begin(mut self) -> Result<RecordWriter, Error> {
        self.begun = true;
        let mut parts = std::mem::take(&mut self.parts);
        let wrong = |path: &Path, error: io::Error| {
            let text = format!("{} cannot be written: {error}; name another file", path.display());
            io_error(text, error)
        };
        if !matches!(self.existing, Existing::Resume { .. }) && parts.iter().all(|one| one.regular)
        {
            // From the last one on, so that a crash leaves parts without a gap. Where nothing is to be
            // thrown away they are empty.
            while parts.len() > 1 {
                let Some(part) = parts.pop() else { break };
                fs::remove_file(&part.path).map_err(|error| wrong(&part.path, error))?;
            }
        }
        let (mut ready, mut lock) = (None, None);
        let (mut paths, count) = (Vec::new(), parts.len());
        for (number, part) in parts.iter().enumerate() {
            let path = &part.path;
            if !part.regular {
                let file = part.file.try_clone().map_err(|error| wrong(path, error))?;
                let name = path.display().to_string();
                return Ok(RecordWriter::stream(name, file).format(self.format.clone()));
            }
            let made =
                part.ready(self.existing, &self.format).map_err(|error| wrong(path, error))?;
            if number == 0 {
                lock = Some(made.0.try_clone().map_err(|error| wrong(path, error))?);
            }
            paths.push(path.clone());
            // The last one goes on.
            ready = Some((number as u32, made)).filter(|_| number + 1 == count).or(ready);
        }
        let (Some((number, (file, length))), Some(lock)) = (ready, lock) else {
            return Err(Error::local(ErrorKind::Internal, "results without a file"));
        };
        #[cfg(feature = "zstd")]
        let packed = parts.iter().all(|part| part.packed);
        let first = parts.swap_remove(0).path;
        let name = paths.last().unwrap_or(&first).display().to_string();
        let mut writer =
            RecordWriter::output(name, Box::new(file), length).format(self.format.clone());
        writer = writer.in_parts(first, number, self.part_size, lock);
        #[cfg(feature = "zstd")]
        if packed {
            return Ok(writer.in_frames());
        }
        Ok(writer)
    }

    /// Reads all records again, those included that are to be removed.
    pub(super) fn each_record(&self, mut each: impl FnMut(&Record)) -> Result<(), Error> {
        if !matches!(self.existing, Existing::Resume { .. }) {
            return Ok(());
        }
        if self.format != Format::JsonLines {
            return Err(Error::config(
                "the failed attempts of a run before stand in JSON Lines and not in a table; leave \
                 the tally out, or begin anew",
            ));
        }
        self.parts.iter().try_for_each(|part| part.each_record(&mut each))
    }

    fn is_regular(&self) -> bool {
        self.parts.iter().all(|part| part.regular)
    }

    fn read(&mut self, retry_failed: bool) -> Result<(), Error> {
        let (mut counting, mut found) = (Counting::default(), Found::default());
        for part in &mut self.parts {
            part.read(&self.format, retry_failed, &mut counting, &mut found)?;
        }
        (self.found, self.done) = (found, counting.done());
        Ok(())
    }
}

/// A part that is missing before one that is there.
fn find_gap(path: &Path, parts: &[Part]) -> io::Result<Option<(PathBuf, PathBuf)>> {
    match parts {
        // It was not there until now, and others are.
        [first, second, ..] if first.fresh => Ok(Some((first.path.clone(), second.path.clone()))),
        parts if parts.iter().all(|part| part.regular) => gap_behind(path, parts.len() as u32),
        _ => Ok(None),
    }
}

impl Drop for Journal {
    /// An empty file that nobody asked for is litter.
    fn drop(&mut self) {
        let fresh = self.parts.iter().filter(|part| part.fresh && part.is_empty());
        for part in fresh.filter(|_| !self.begun) {
            let _gone = fs::remove_file(&part.path);
        }
    }
}

#[cfg(test)]
mod tests;
