//! Records as JSON Lines in a file, or on a stream such as standard output.
//!
//! A URL counts as done when its line stands completely in the results, so that is the one thing
//! that is taken care of here. A record is written with one call, whole with its line feed, by one
//! thread: lines never interleave, and a run that is killed leaves at most one torn line at the
//! end. Where a write fails (the disk is full, say), the part of the line that did arrive is cut
//! off again: what is in the file is true. Under zstd the same holds of frames of many lines.
//!
//! How much a crash of the machine itself can take is a matter of `fsync`, which is far too slow to
//! call for every record, and too slow to wait for. A sync begins with every 1000th record and where
//! a second has passed since the last one, on a thread of its own, while writing goes on; writing
//! waits only where 10 000 records are not known to be durable. Where none may be lost, a run calls [`RecordWriter::sync`] after each.

use super::format::Format;
use super::parts::part;
use super::record::Record;
use super::sink::{Sink, SinkError};
use super::syncing::{Durable, Syncing, ToSync};
use crate::message::Response;
use std::fmt;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// A sync begins, and a frame ends, with so many records.
const SYNC_RECORDS: u64 = 1000;
/// Or after so long.
const SYNC_AFTER: Duration = Duration::from_secs(1);
/// So many records that are not known to be durable hold the writing up.
const MOST_UNSYNCED: u64 = 10_000;
/// A frame ends with so many bytes, too, since they are held in memory.
const FRAME_BYTES: usize = 1024 * 1024;

/// Something that takes bytes and can be cut and synced, as a file can.
pub trait Output: Write + Send {
    /// Forgets everything after the first `length` bytes.
    ///
    /// # Errors
    /// Those of the system.
    fn cut(&mut self, length: u64) -> io::Result<()>;

    /// A second handle, by which another thread can sync what was written; `None` where there is
    /// nothing to sync.
    ///
    /// # Errors
    /// Those of the system.
    fn durable(&self) -> io::Result<Option<Box<dyn Durable>>>;
}

impl Output for File {
    fn cut(&mut self, length: u64) -> io::Result<()> {
        self.set_len(length)
    }

    fn durable(&self) -> io::Result<Option<Box<dyn Durable>>> {
        Ok(Some(Box::new(self.try_clone()?)))
    }
}

/// A stream can neither be cut nor synced.
struct Stream<W>(W);

impl<W: Write> Write for Stream<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

impl<W: Write + Send> Output for Stream<W> {
    fn cut(&mut self, _: u64) -> io::Result<()> {
        Ok(())
    }

    fn durable(&self) -> io::Result<Option<Box<dyn Durable>>> {
        Ok(None)
    }
}

/// What a stream leaves to be synced.
struct Nothing;

impl Durable for Nothing {
    fn sync(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Writes records, one a line.
pub struct RecordWriter {
    out: Box<dyn Output>,
    name: String,
    format: Format,
    form: Form,
    parts: Option<Parts>,
    /// Up to where the output consists of complete lines or frames.
    complete: u64,
    line: Vec<u8>,
    /// Bodies that the next records name and that are not known to be durable.
    bodies: Vec<PathBuf>,
    /// `None` where there is nothing to sync so far, or the first record is still to come.
    syncing: Option<Syncing>,
    written: u64,
    /// Of them, those that a sync is asked for, and those that are durable.
    asked: u64,
    durable: u64,
    /// When the last sync was asked for.
    asked_at: Option<Instant>,
    /// Asked for, and not begun.
    waiting: bool,
    opened: bool,
}

/// The files that the records go into, one after the other.
struct Parts {
    /// The first one.
    path: PathBuf,
    number: u32,
    /// From how many bytes on there is another; `None`: never.
    size: Option<u64>,
    /// The first one holds the lock.
    _lock: File,
}

/// How lines become bytes.
enum Form {
    Lines,
    #[cfg(feature = "zstd")]
    Frames {
        lines: Vec<u8>,
        records: u64,
    },
}

impl RecordWriter {
    /// Records onto a stream.
    pub fn stream(name: impl Into<String>, stream: impl Write + Send + 'static) -> Self {
        Self::output(name, Box::new(Stream(stream)), 0)
    }

    /// Records onto standard output.
    pub fn stdout() -> Self {
        Self::stream("standard output", io::stdout())
    }

    /// Records behind the first `complete` bytes of an output, which are complete lines.
    pub fn output(name: impl Into<String>, out: Box<dyn Output>, complete: u64) -> Self {
        Self {
            out,
            name: name.into(),
            format: Format::JsonLines,
            form: Form::Lines,
            parts: None,
            complete,
            line: Vec::new(),
            bodies: Vec::new(),
            syncing: None,
            written: 0,
            asked: 0,
            durable: 0,
            asked_at: None,
            waiting: false,
            opened: false,
        }
    }

    /// Writes records in this form. A table begins with the names of its columns, where nothing
    /// stands before.
    ///
    /// # Defaults
    /// [`Format::JsonLines`].
    #[must_use]
    pub fn format(mut self, format: Format) -> Self {
        self.format = format;
        self
    }

    /// Goes on in another file from this size on; `lock` is a handle of the first one, which is locked.
    pub(super) fn in_parts(
        mut self,
        path: PathBuf,
        number: u32,
        size: Option<u64>,
        lock: File,
    ) -> Self {
        self.parts = Some(Parts { path, number, size, _lock: lock });
        self
    }

    /// Compresses the lines, frame by frame.
    #[cfg(feature = "zstd")]
    pub(super) fn in_frames(mut self) -> Self {
        self.form = Form::Frames { lines: Vec::new(), records: 0 };
        self
    }

    /// Writes one record; `now` is for the time between two syncs.
    ///
    /// # Errors
    /// The record does not stand in the output. After [`SinkError::Full`] and
    /// [`SinkError::Failed`] no part of it does, as far as the output can be cut. Where a sync
    /// failed that was under way, it is not known how much is on the disk.
    pub fn write(&mut self, record: &Record, now: Instant) -> Result<(), SinkError> {
        let is_full = |size| self.complete >= size;
        if self.parts.as_ref().and_then(|parts| parts.size).is_some_and(is_full) {
            self.turn(now)?;
        }
        if !self.opened {
            let handle = self.out.durable().map_err(|error| SinkError::of(error, &self.name))?;
            self.syncing = handle.map(|handle| Syncing::new(&self.name, handle));
            self.opened = true;
        }
        self.line.clear();
        let is_first = self.complete == 0 && self.frame_length() == 0;
        self.format
            .write(&mut self.line, record, is_first)
            .map_err(|error| SinkError::of(error, &self.name))?;
        match &mut self.form {
            Form::Lines => {
                Self::append(&mut *self.out, &self.line, &mut self.complete, &self.name)?;
            }
            #[cfg(feature = "zstd")]
            Form::Frames { lines, records } => {
                lines.extend_from_slice(&self.line);
                *records += 1;
            }
        }
        self.written += 1;
        self.settle(now)
    }

    /// Is told that time goes on while nothing is written, so that what is written becomes durable.
    ///
    /// # Errors
    /// Those of [`sync`](Self::sync).
    pub fn tick(&mut self, now: Instant) -> Result<(), SinkError> {
        if self.durable == self.written { Ok(()) } else { self.settle(now) }
    }

    /// Returns once every record so far will survive a crash of the machine.
    ///
    /// # Errors
    /// [`SinkError::Full`] and [`SinkError::Failed`]: how much is on the disk is not known.
    pub fn sync(&mut self, now: Instant) -> Result<(), SinkError> {
        self.end_frame()?;
        self.hear(true)?;
        self.waiting = false;
        self.asked_at = Some(now);
        if self.durable < self.written {
            let batch = self.batch();
            self.durable = match self.syncing_of(&batch) {
                Some(syncing) => syncing.now(batch)?,
                None => batch.records,
            };
        }
        Ok(())
    }

    /// How many records were written.
    pub fn written(&self) -> u64 {
        self.written
    }

    /// How many of them, from the first on, survive a crash of the machine.
    pub fn durable(&self) -> u64 {
        self.durable
    }

    /// Goes on in the next part, once this one is durable: a record never is before those before it.
    fn turn(&mut self, now: Instant) -> Result<(), SinkError> {
        self.sync(now)?;
        let Some(parts) = &mut self.parts else { return Ok(()) };
        let path = part(&parts.path, parts.number.saturating_add(1));
        let name = path.display().to_string();
        let file = OpenOptions::new()
            .read(true)
            .append(true)
            .create_new(true)
            .open(&path)
            .map_err(|error| SinkError::of(error, &name))?;
        parts.number = parts.number.saturating_add(1);
        // The thread that syncs ends with what it has.
        self.syncing = None;
        (self.out, self.name) = (Box::new(file), name);
        (self.complete, self.opened) = (0, false);
        // Its name has to be durable, too.
        self.bodies.push(path);
        Ok(())
    }

    /// Begins what is due, and waits where too much is under way.
    fn settle(&mut self, now: Instant) -> Result<(), SinkError> {
        let since = *self.asked_at.get_or_insert(now);
        let fresh = self.written - self.asked;
        let is_due = fresh >= SYNC_RECORDS
            || self.frame_length() >= FRAME_BYTES
            || now.saturating_duration_since(since) >= SYNC_AFTER;
        if fresh > 0 && is_due {
            self.end_frame()?;
            self.asked = self.written;
            self.asked_at = Some(now);
            self.waiting = true;
        }
        self.hear(false)?;
        self.begin()?;
        while self.written - self.durable >= MOST_UNSYNCED && self.is_busy() {
            self.hear(true)?;
            self.begin()?;
        }
        Ok(())
    }

    /// Begins the sync that was asked for, unless one is under way.
    fn begin(&mut self) -> Result<(), SinkError> {
        if !self.waiting || self.is_busy() {
            return Ok(());
        }
        self.waiting = false;
        let batch = self.batch();
        match self.syncing_of(&batch) {
            Some(syncing) => syncing.begin(batch),
            None => {
                self.durable = batch.records;
                Ok(())
            }
        }
    }

    /// What makes a batch durable; `None` where it has nothing that could be. A stream cannot, but the
    /// files that its records name can.
    fn syncing_of(&mut self, batch: &ToSync) -> Option<&mut Syncing> {
        if self.syncing.is_none() && !batch.bodies.is_empty() {
            self.syncing = Some(Syncing::new(&self.name, Box::new(Nothing)));
        }
        self.syncing.as_mut()
    }

    fn is_busy(&self) -> bool {
        self.syncing.as_ref().is_some_and(Syncing::is_busy)
    }

    /// Notes the sync that has ended, or waits for the one that is under way.
    fn hear(&mut self, wait: bool) -> Result<(), SinkError> {
        if let Some(syncing) = &mut self.syncing
            && let Some(durable) = syncing.ended(wait)?
        {
            self.durable = durable;
        }
        Ok(())
    }

    /// All that stands in the output.
    fn batch(&mut self) -> ToSync {
        let in_frame = match &self.form {
            Form::Lines => 0,
            #[cfg(feature = "zstd")]
            Form::Frames { records, .. } => *records,
        };
        ToSync { bodies: std::mem::take(&mut self.bodies), records: self.written - in_frame }
    }

    fn frame_length(&self) -> usize {
        match &self.form {
            Form::Lines => 0,
            #[cfg(feature = "zstd")]
            Form::Frames { lines, .. } => lines.len(),
        }
    }

    /// Writes the frame that is being filled.
    fn end_frame(&mut self) -> Result<(), SinkError> {
        #[cfg(feature = "zstd")]
        if let Form::Frames { lines, records } = &mut self.form
            && *records > 0
        {
            let framed = super::frames::frame(lines)
                .map_err(|error| SinkError::of(error, &self.name))
                .and_then(|frame| {
                    Self::append(&mut *self.out, &frame, &mut self.complete, &self.name)
                });
            let count = std::mem::take(records);
            lines.clear();
            if let Err(error) = framed {
                self.written -= count;
                self.asked = self.asked.min(self.written);
                return Err(error.and_lost(count));
            }
        }
        Ok(())
    }

    /// Writes all of it, or nothing.
    fn append(
        out: &mut dyn Output,
        bytes: &[u8],
        complete: &mut u64,
        name: &str,
    ) -> Result<(), SinkError> {
        if let Err(error) = out.write_all(bytes).and_then(|()| out.flush()) {
            if let Err(failed) = out.cut(*complete) {
                log::warn!(target: "longhaul::results", "{name}: a torn line is left at its end: {failed}");
            }
            return Err(SinkError::of(error, name));
        }
        *complete += bytes.len() as u64;
        Ok(())
    }
}

impl Sink for RecordWriter {
    fn write(
        &mut self,
        record: &Record,
        _: Option<&Response>,
        now: Instant,
    ) -> Result<(), SinkError> {
        self.write(record, now)
    }

    fn tick(&mut self, now: Instant) -> Result<(), SinkError> {
        self.tick(now)
    }

    fn sync(&mut self, now: Instant) -> Result<(), SinkError> {
        self.sync(now)
    }

    fn durable(&self) -> u64 {
        self.durable
    }

    /// They are synced together with the records that name them.
    fn rely_on(&mut self, files: &mut Vec<PathBuf>) -> Result<(), SinkError> {
        for file in files.drain(..) {
            // A file that many records are in is synced once.
            if self.bodies.last() != Some(&file) {
                self.bodies.push(file);
            }
        }
        Ok(())
    }
}

impl fmt::Debug for RecordWriter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RecordWriter({}, {} written)", self.name, self.written)
    }
}

#[cfg(test)]
mod tests;
