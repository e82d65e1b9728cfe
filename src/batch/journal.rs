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
//! Under zstd the same is true of frames. A torn frame is cut off, and its records with it; what is
//! no frame is reported with the line that it would begin with.
//!
//! **One writer.** The file is locked as long as the run has it, and a second run is refused. On a
//! file system without locks this is left to the user, with a warning.

use super::Key;
use super::content::{Content, is_packed, unreadable};
#[cfg(feature = "zstd")]
use super::frames::frame;
use super::keyset::KeySet;
use super::record::{Record, VERSION, is_of_the_run, newer_version, not_a_record};
use super::sink::io_error;
use super::writer::RecordWriter;
use crate::error::{Error, ErrorKind};
use serde::Deserialize;
use std::borrow::Cow;
use std::collections::HashMap;
use std::ffi::OsString;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, BufRead, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

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
///
/// A clone shares them. They take 12 to 18 bytes an item.
#[derive(Debug, Clone, Default)]
pub struct Done(Arc<Counts>);

#[derive(Debug, Default)]
struct Counts {
    keys: KeySet,
    /// How often beyond the first time; only where repeated lines were asked for.
    more: HashMap<Key, u32>,
}

impl Done {
    /// Whether there is a record of this item.
    pub fn contains(&self, key: Key) -> bool {
        self.0.keys.find(key).is_some()
    }

    /// How many records there are of this item.
    pub fn count(&self, key: Key) -> u32 {
        match self.0.more.get(&key) {
            Some(more) => more.saturating_add(1),
            None => self.contains(key).into(),
        }
    }

    /// How many different items there are.
    pub fn len(&self) -> usize {
        self.0.keys.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub(super) fn keys(&self) -> &KeySet {
        &self.0.keys
    }

    /// How often each item that stands there repeatedly does so beyond the first time.
    pub(super) fn more(&self) -> &HashMap<Key, u32> {
        &self.0.more
    }
}

impl FromIterator<Key> for Done {
    /// One record for each key.
    fn from_iter<I: IntoIterator<Item = Key>>(records: I) -> Self {
        let mut counting = Counting::default();
        records.into_iter().for_each(|key| counting.add(key));
        counting.done()
    }
}

/// [`Done`] while it is counted.
#[derive(Debug, Default)]
struct Counting {
    keys: KeySet,
    more: HashMap<Key, u32>,
}

impl Counting {
    fn add(&mut self, key: Key) {
        if !self.keys.insert(key) {
            let more = self.more.entry(key).or_default();
            *more = more.saturating_add(1);
        }
    }

    fn done(self) -> Done {
        Done(Arc::new(Counts { keys: self.keys, more: self.more }))
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
    /// Under zstd.
    packed: bool,
    /// Made by this journal: to be taken away again if the run does not begin.
    fresh: bool,
    begun: bool,
    done: Done,
    found: Found,
    /// Where the last complete object ends, its line feed included or not; or else the last frame.
    complete: u64,
    /// Whether the last line feed is missing; under zstd, or the last line is torn.
    is_ragged: bool,
}

impl Journal {
    /// Opens and locks the file, and reads what is done. Nothing in it is changed.
    ///
    /// # Errors
    /// `Io` where it cannot be opened. `Config` for results that would be lost, for a second
    /// writer, for a resumption of what is no file, and for a name in `.zst` without the feature
    /// `zstd`. `InvalidJson`, with the line, for what is no record.
    pub fn open(path: impl AsRef<Path>, existing: Existing) -> Result<Self, Error> {
        let path = path.as_ref();
        let packed = is_packed(path)?;
        let (file, regular, fresh) = open(path)?;
        let mut journal = Self {
            path: path.to_path_buf(),
            file,
            existing,
            regular,
            packed: packed && regular,
            fresh,
            begun: false,
            done: Done::default(),
            found: Found::default(),
            complete: 0,
            is_ragged: false,
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

    /// Makes the file ready and hands it to a writer. From here on it is changed.
    ///
    /// # Errors
    /// `Io`; the file is then as it was, or ready already.
    pub fn begin(mut self) -> Result<RecordWriter, Error> {
        self.begun = true;
        let name = self.path.display().to_string();
        let wrong = |error: io::Error| {
            io_error(format!("{name} cannot be written: {error}; name another file"), error)
        };
        let file = self.file.try_clone().map_err(wrong)?;
        if !self.regular {
            return Ok(RecordWriter::stream(name, file));
        }
        let (file, length) = match self.existing {
            Existing::Resume { .. } if self.found.again > 0 || self.packed && self.is_ragged => {
                self.rewrite().map_err(wrong)?
            }
            Existing::Resume { .. } => {
                let mut length = self.complete;
                file.set_len(length).map_err(wrong)?;
                if self.is_ragged {
                    (&file).write_all(b"\n").map_err(wrong)?;
                    length += 1;
                }
                (file, length)
            }
            Existing::Refuse | Existing::Overwrite => {
                file.set_len(0).map_err(wrong)?;
                (file, 0)
            }
        };
        let sink = RecordWriter::output(name, Box::new(file), length);
        #[cfg(feature = "zstd")]
        if self.packed {
            return Ok(sink.in_frames());
        }
        Ok(sink)
    }

    /// Reads all records again, those included that are to be removed.
    pub(super) fn each_record(&self, mut each: impl FnMut(&Record)) -> Result<(), Error> {
        if !matches!(self.existing, Existing::Resume { .. }) {
            return Ok(());
        }
        let mut lines = Lines::new(self.content()?.reader, &self.path);
        while let Some(entry) = lines.read()? {
            if entry.is_none() {
                continue;
            }
            let text = lines.buffer.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&lines.buffer);
            each(&Record::parse(text).map_err(|error| lines.wrong(&error))?);
        }
        Ok(())
    }

    fn retries_failed(&self) -> bool {
        self.existing == Existing::Resume { retry_failed: true }
    }

    fn read(&mut self) -> Result<(), Error> {
        let retry_failed = self.retries_failed();
        let (mut counting, mut found) = (Counting::default(), Found::default());
        let content = self.content()?;
        let (damage, Content { reader, end, torn, .. }) = (content.damage(), content);
        let mut lines = Lines::new(reader, &self.path);
        while let Some(entry) = lines.read()? {
            let Some(head) = entry else { continue };
            if head.is_again(retry_failed) {
                found.again += 1;
                continue;
            }
            *(if head.ok { &mut found.ok } else { &mut found.failed }) += 1;
            counting.add(Key::of_id(&head.id));
        }
        if let Some(damage) = damage {
            return Err(lines.wrong(&damage));
        }
        found.torn = lines.torn + torn;
        let (complete, is_ragged) = match end {
            Some(end) => (end, lines.line_feed_missing || lines.torn > 0),
            None => (lines.complete, lines.line_feed_missing),
        };
        drop(lines);
        (self.complete, self.is_ragged) = (complete, is_ragged);
        (self.found, self.done) = (found, counting.done());
        Ok(())
    }

    /// What is to be read as lines.
    fn content(&self) -> Result<Content<'_>, Error> {
        Content::of(&self.file, self.packed, &self.path)
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
        let mut out = Copy { out: BufWriter::new(to), lines: Vec::new(), length: 0 };
        let content = self.content().map_err(io::Error::other)?;
        let mut lines = Lines::new(content.reader, &self.path);
        while let Some(entry) = lines.read().map_err(io::Error::other)? {
            if entry.is_none_or(|head| head.is_again(retry_failed)) {
                continue;
            }
            let line = lines.buffer.strip_suffix(b"\n").unwrap_or(&lines.buffer);
            out.lines.extend_from_slice(line);
            out.lines.push(b'\n');
            if out.lines.len() >= 64 * 1024 {
                out.end(self.packed)?;
            }
        }
        out.end(self.packed)?;
        out.out.flush()?;
        Ok(out.length)
    }
}

/// Lines on their way into a new file.
struct Copy<'a> {
    out: BufWriter<&'a File>,
    lines: Vec<u8>,
    length: u64,
}

impl Copy<'_> {
    /// Writes the lines so far, as a frame where that is the form.
    fn end(&mut self, packed: bool) -> io::Result<()> {
        let framed = if packed { frame(&self.lines)? } else { Vec::new() };
        let bytes = if packed { &framed } else { &self.lines };
        self.out.write_all(bytes)?;
        self.length += bytes.len() as u64;
        self.lines.clear();
        Ok(())
    }
}

#[cfg(not(feature = "zstd"))]
fn frame(_: &[u8]) -> io::Result<Vec<u8>> {
    Err(io::ErrorKind::Unsupported.into())
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
    reader: Box<dyn BufRead + Send + 'a>,
    buffer: Vec<u8>,
    number: u64,
    complete: u64,
    line_feed_missing: bool,
    torn: u64,
}

impl<'a> Lines<'a> {
    fn new(reader: Box<dyn BufRead + Send + 'a>, path: &'a Path) -> Self {
        Self {
            path,
            reader,
            buffer: Vec::new(),
            number: 0,
            complete: 0,
            line_feed_missing: false,
            torn: 0,
        }
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
                target: "longhaul::results",
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
