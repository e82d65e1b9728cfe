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
//! **One writer.** The file is locked as long as the run has it, and a second run is refused. On a
//! file system without locks this is left to the user, with a warning.

use super::Key;
use super::record::{VERSION, is_of_the_run, newer_version, not_a_record};
use super::sink::{Sink, io_error};
use crate::error::{Error, ErrorKind};
use serde::Deserialize;
use std::borrow::Cow;
use std::collections::HashMap;
use std::ffi::OsString;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, BufRead, BufReader, BufWriter, Seek, SeekFrom, Write};
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

/// The items that the results hold already, each with how often.
#[derive(Debug, Clone, Default)]
pub struct Done(HashMap<Key, u32>);

impl Done {
    /// Counts one more record of this item.
    pub fn add(&mut self, key: Key) {
        let count = self.0.entry(key).or_default();
        *count = count.saturating_add(1);
    }

    /// Takes one record of this item off; whether there was one.
    pub fn take(&mut self, key: Key) -> bool {
        match self.0.get_mut(&key) {
            None => false,
            Some(1) => self.0.remove(&key).is_some(),
            Some(count) => {
                *count -= 1;
                true
            }
        }
    }

    /// How many different items there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
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

/// A results file, locked and understood, but not changed yet.
#[derive(Debug)]
pub struct Journal {
    path: PathBuf,
    file: File,
    existing: Existing,
    regular: bool,
    /// Made by this journal: to be taken away again if the run does not begin.
    fresh: bool,
    begun: bool,
    done: Done,
    found: Found,
    /// Where the last complete object ends, its line feed included or not.
    complete: u64,
    line_feed_missing: bool,
}

impl Journal {
    /// Opens and locks the file, and reads what is done. Nothing in it is changed.
    ///
    /// # Errors
    /// `Io` where it cannot be opened. `Config` for results that would be lost, for a second
    /// writer, and for a resumption of what is no file. `InvalidJson`, with the line, for what is
    /// no record.
    pub fn open(path: impl AsRef<Path>, existing: Existing) -> Result<Self, Error> {
        let path = path.as_ref();
        let (file, regular, fresh) = open(path)?;
        let mut journal = Self {
            path: path.to_path_buf(),
            file,
            existing,
            regular,
            fresh,
            begun: false,
            done: Done::default(),
            found: Found::default(),
            complete: 0,
            line_feed_missing: false,
        };
        let name = path.display();
        match existing {
            Existing::Refuse | Existing::Overwrite if !regular => {}
            Existing::Refuse => {
                if journal.file.metadata().is_ok_and(|metadata| metadata.len() > 0) {
                    return Err(Error::config(format!(
                        "{name} already holds results; resume the run, overwrite them on purpose, \
                         or name another file"
                    )));
                }
            }
            Existing::Overwrite => {}
            Existing::Resume { .. } if !regular => {
                let text = format!("{name} is not a file, so nothing tells what is done");
                return Err(Error::config(text));
            }
            Existing::Resume { .. } => journal.read()?,
        }
        Ok(journal)
    }

    /// The items that need not be done.
    pub fn done(&self) -> &Done {
        &self.done
    }

    /// What the results hold.
    pub fn found(&self) -> Found {
        self.found
    }

    /// Makes the file ready and hands it to a sink. From here on it is changed.
    ///
    /// # Errors
    /// `Io`; the file is then as it was, or ready already.
    pub fn begin(mut self) -> Result<Sink, Error> {
        self.begun = true;
        let name = self.path.display().to_string();
        let wrong = |error: io::Error| {
            io_error(format!("{name} cannot be written: {error}; name another file"), error)
        };
        let file = self.file.try_clone().map_err(wrong)?;
        if !self.regular {
            return Ok(Sink::stream(name, file));
        }
        match self.existing {
            Existing::Resume { .. } if self.found.again > 0 => {
                let (file, length) = self.rewrite().map_err(wrong)?;
                Ok(Sink::output(name, Box::new(file), length))
            }
            Existing::Resume { .. } => {
                let mut length = self.complete;
                file.set_len(length).map_err(wrong)?;
                if self.line_feed_missing {
                    (&file).write_all(b"\n").map_err(wrong)?;
                    length += 1;
                }
                Ok(Sink::output(name, Box::new(file), length))
            }
            Existing::Refuse | Existing::Overwrite => {
                file.set_len(0).map_err(wrong)?;
                Ok(Sink::output(name, Box::new(file), 0))
            }
        }
    }

    fn retries_failed(&self) -> bool {
        self.existing == Existing::Resume { retry_failed: true }
    }

    fn read(&mut self) -> Result<(), Error> {
        let retry_failed = self.retries_failed();
        let mut lines = Lines::new(&self.file, &self.path)?;
        while let Some(entry) = lines.read()? {
            let Some(head) = entry else { continue };
            if head.is_again(retry_failed) {
                self.found.again += 1;
                continue;
            }
            *(if head.ok { &mut self.found.ok } else { &mut self.found.failed }) += 1;
            self.done.add(Key::of_id(&head.id));
        }
        self.complete = lines.complete;
        self.line_feed_missing = lines.line_feed_missing;
        self.found.torn = lines.torn;
        Ok(())
    }

    /// Writes the records that stay into a file beside, and puts it in place of the old one.
    fn rewrite(&self) -> io::Result<(File, u64)> {
        // The file that a link points to, and not the link, is what has to be replaced.
        let target = fs::canonicalize(&self.path)?;
        let mut beside: OsString = target.clone().into();
        beside.push(".rewriting");
        let beside = PathBuf::from(beside);
        let file = OpenOptions::new().read(true).append(true).create(true).open(&beside)?;
        // Locked before it has the name, so there is no moment at which a second writer gets in.
        lock(&file, &beside).map_err(io::Error::other)?;
        file.set_len(0)?;
        file.set_permissions(self.file.metadata()?.permissions())?;
        let copied = self.copy(&file).and_then(|length| {
            file.sync_all()?;
            fs::rename(&beside, &target)?;
            sync_folder(&target)?;
            Ok(length)
        });
        match copied {
            Ok(length) => Ok((file, length)),
            Err(error) => {
                let _gone = fs::remove_file(&beside);
                Err(error)
            }
        }
    }

    fn copy(&self, to: &File) -> io::Result<u64> {
        let retry_failed = self.retries_failed();
        let mut out = BufWriter::new(to);
        let mut length = 0;
        let mut lines = Lines::new(&self.file, &self.path).map_err(io::Error::other)?;
        while let Some(entry) = lines.read().map_err(io::Error::other)? {
            if entry.is_none_or(|head| head.is_again(retry_failed)) {
                continue;
            }
            let line = lines.buffer.strip_suffix(b"\n").unwrap_or(&lines.buffer);
            out.write_all(line)?;
            out.write_all(b"\n")?;
            length += line.len() as u64 + 1;
        }
        out.flush()?;
        Ok(length)
    }
}

impl Drop for Journal {
    /// An empty file that nobody asked for is litter.
    fn drop(&mut self) {
        if self.fresh && !self.begun && self.file.metadata().is_ok_and(|data| data.len() == 0) {
            let _gone = fs::remove_file(&self.path);
        }
    }
}

/// What a resumption wants to know of a record.
#[derive(Deserialize)]
struct Head<'a> {
    v: u32,
    #[serde(borrow)]
    id: Cow<'a, str>,
    ok: bool,
    #[serde(borrow)]
    class: Cow<'a, str>,
    #[serde(borrow)]
    error: Option<HeadError<'a>>,
}

#[derive(Deserialize)]
struct HeadError<'a> {
    #[serde(borrow)]
    kind: Cow<'a, str>,
}

impl Head<'_> {
    fn is_again(&self, retry_failed: bool) -> bool {
        let kind = self.error.as_ref().map(|error| &*error.kind);
        !self.ok && (retry_failed || is_of_the_run(&self.class, kind))
    }
}

/// The lines of a results file.
struct Lines<'a> {
    path: &'a Path,
    reader: BufReader<&'a File>,
    buffer: Vec<u8>,
    number: u64,
    complete: u64,
    line_feed_missing: bool,
    torn: u64,
}

impl<'a> Lines<'a> {
    fn new(file: &'a File, path: &'a Path) -> Result<Self, Error> {
        let mut reader = BufReader::with_capacity(64 * 1024, file);
        reader.seek(SeekFrom::Start(0)).map_err(|error| unreadable(path, error))?;
        Ok(Self {
            path,
            reader,
            buffer: Vec::new(),
            number: 0,
            complete: 0,
            line_feed_missing: false,
            torn: 0,
        })
    }

    /// The next record; `Some(None)` for a blank line.
    fn read(&mut self) -> Result<Option<Option<Head<'_>>>, Error> {
        self.buffer.clear();
        self.number += 1;
        let length = self
            .reader
            .read_until(b'\n', &mut self.buffer)
            .map_err(|error| unreadable(self.path, error))? as u64;
        if length == 0 {
            return Ok(None);
        }
        let ended = self.buffer.ends_with(b"\n");
        let mut text = self.buffer.as_slice();
        if self.number == 1 {
            text = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text);
        }
        if text.iter().all(u8::is_ascii_whitespace) {
            self.complete += length;
            return Ok(Some(None));
        }
        match serde_json::from_slice::<Head<'_>>(text) {
            Ok(head) if head.v > VERSION => Err(self.wrong(&newer_version(head.v))),
            Ok(head) => {
                self.complete += length;
                self.line_feed_missing = !ended;
                Ok(Some(Some(head)))
            }
            // A line without an end is the last one, and torn; one with an end never was.
            Err(_) if !ended => {
                self.torn = length;
                Ok(None)
            }
            Err(error) => Err(self.wrong(&not_a_record(&error))),
        }
    }

    fn wrong(&self, error: &Error) -> Error {
        let (name, line) = (self.path.display(), self.number);
        let text = format!(
            "{name}:{line}: {}; nothing was changed: repair or remove this line, or name another \
             file",
            error.message()
        );
        Error::local(ErrorKind::InvalidJson, text)
    }
}

fn unreadable(path: &Path, error: io::Error) -> Error {
    io_error(format!("{} cannot be read: {error}", path.display()), error)
}

/// The file, whether it is a regular one, and whether it was made now.
fn open(path: &Path) -> Result<(File, bool, bool), Error> {
    let wrong = |error: io::Error| {
        let text = format!(
            "{} cannot be opened for writing: {error}; name a file in a folder that is there and \
             may be written to",
            path.display()
        );
        io_error(text, error)
    };
    if fs::metadata(path).is_ok_and(|metadata| !metadata.is_file()) {
        let file = OpenOptions::new().write(true).open(path).map_err(wrong)?;
        return Ok((file, false, false));
    }
    loop {
        let mut options = OpenOptions::new();
        options.read(true).append(true);
        let (file, fresh) = match options.clone().create_new(true).open(path) {
            Ok(file) => (file, true),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                (options.create(true).open(path).map_err(wrong)?, false)
            }
            Err(error) => return Err(wrong(error)),
        };
        lock(&file, path)?;
        // Between opening and locking, another run may have renamed a new file over this one.
        if is_still_at(&file, path) {
            return Ok((file, true, fresh));
        }
    }
}

fn lock(file: &File, path: &Path) -> Result<(), Error> {
    match file.try_lock() {
        Ok(()) => Ok(()),
        Err(TryLockError::WouldBlock) => Err(Error::config(format!(
            "{} is being written by another run; wait for its end, or name another file",
            path.display()
        ))),
        Err(TryLockError::Error(error)) => {
            log::warn!(
                "{} cannot be locked ({error}); see to it that only one run writes it",
                path.display()
            );
            Ok(())
        }
    }
}

#[cfg(unix)]
fn is_still_at(file: &File, path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    match (file.metadata(), fs::metadata(path)) {
        (Ok(open), Ok(named)) => (open.dev(), open.ino()) == (named.dev(), named.ino()),
        _ => false,
    }
}

/// A file that is open cannot be renamed over here.
#[cfg(not(unix))]
fn is_still_at(_: &File, _: &Path) -> bool {
    true
}

#[cfg(unix)]
fn sync_folder(path: &Path) -> io::Result<()> {
    path.parent().map_or(Ok(()), |folder| File::open(folder)?.sync_all())
}

#[cfg(not(unix))]
fn sync_folder(_: &Path) -> io::Result<()> {
    Ok(())
}
