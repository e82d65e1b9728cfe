//! Where the records go: a JSON Lines file, or a stream such as standard output.
//!
//! A URL counts as done when its line stands completely in the results, so that is the one thing
//! that is taken care of here. A record is written with one call, whole with its line feed, by one
//! thread: lines never interleave, and a run that is killed leaves at most one torn line at the
//! end. Where a write fails (the disk is full, say), the part of the line that did arrive is cut
//! off again: what is in the file is true.
//!
//! How much a crash of the machine itself can take is a matter of `fsync`, which is far too slow to
//! call for every record. A file is synced with every 1000th record, with the first record that is
//! written a second or more after the last sync, and at the end. A killed process loses nothing
//! that was written.

use super::record::Record;
use crate::error::{Error, ErrorKind, Fault, Phase};
use std::fmt;
use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use std::time::{Duration, Instant};

const SYNC_RECORDS: u32 = 1000;
const SYNC_AFTER: Duration = Duration::from_secs(1);

/// Something that takes bytes and can be cut and synced, as a file can.
pub trait Output: Write + Send {
    /// Forgets everything after the first `length` bytes.
    ///
    /// # Errors
    /// Those of the system.
    fn cut(&mut self, length: u64) -> io::Result<()>;

    /// Returns once everything written will survive a crash of the machine.
    ///
    /// # Errors
    /// Those of the system.
    fn sync(&mut self) -> io::Result<()>;
}

impl Output for File {
    fn cut(&mut self, length: u64) -> io::Result<()> {
        self.set_len(length)
    }

    fn sync(&mut self) -> io::Result<()> {
        self.sync_data()
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

    fn sync(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Why a record was not written.
#[non_exhaustive]
#[derive(Debug)]
pub enum SinkError {
    /// The reader at the other end has gone: a pipe to `head`, say. Not a failure.
    Closed,
    /// The disk is full or the quota used up.
    Full(Error),
    /// The file or stream failed otherwise.
    Failed(Error),
}

impl SinkError {
    pub(super) fn of_bodies(error: io::Error, folder: &Path) -> Self {
        match Self::of(error, &format!("the folder of bodies {}", folder.display())) {
            // A folder has no reader that could have gone.
            Self::Closed => Self::Failed(Error::local(ErrorKind::Io, "a body cannot be written")),
            other => other,
        }
    }

    pub(super) fn of(error: io::Error, name: &str) -> Self {
        let text = |remedy: &str| format!("{name} cannot be written: {error}; {remedy}");
        match error.kind() {
            io::ErrorKind::BrokenPipe => Self::Closed,
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
                Self::Full(io_error(text("free some space and resume"), error))
            }
            _ => Self::Failed(io_error(text("what was written before is complete"), error)),
        }
    }
}

impl fmt::Display for SinkError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Closed => f.write_str("the reader of the results has gone"),
            Self::Full(error) | Self::Failed(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for SinkError {}

pub(super) fn io_error(text: String, error: io::Error) -> Error {
    Error::new(ErrorKind::Io, Phase::Prepare, Fault::Local, text).with_source(error)
}

/// Writes records, one a line.
pub struct Sink {
    out: Box<dyn Output>,
    name: String,
    /// Up to where the output consists of complete lines.
    complete: u64,
    line: Vec<u8>,
    unsynced: u32,
    synced: Option<Instant>,
    written: u64,
}

impl Sink {
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
            complete,
            line: Vec::new(),
            unsynced: 0,
            synced: None,
            written: 0,
        }
    }

    /// Writes one record; `now` is for the time between two syncs.
    ///
    /// # Errors
    /// The record does not stand in the output. After [`SinkError::Full`] and
    /// [`SinkError::Failed`] no part of it does, as far as the output can be cut.
    pub fn write(&mut self, record: &Record, now: Instant) -> Result<(), SinkError> {
        let due = self.is_sync_due(now);
        self.line.clear();
        serde_json::to_writer(&mut self.line, record)
            .map_err(|error| SinkError::of(error.into(), &self.name))?;
        self.line.push(b'\n');
        if let Err(error) = self.out.write_all(&self.line).and_then(|()| self.out.flush()) {
            if let Err(failed) = self.out.cut(self.complete) {
                log::warn!("{}: a torn line is left at its end: {failed}", self.name);
            }
            return Err(SinkError::of(error, &self.name));
        }
        self.complete += self.line.len() as u64;
        self.written += 1;
        self.unsynced += 1;
        if due {
            self.sync(now)?;
        }
        Ok(())
    }

    /// Whether the next record will be followed by a sync.
    pub fn is_sync_due(&mut self, now: Instant) -> bool {
        let since = *self.synced.get_or_insert(now);
        self.unsynced + 1 >= SYNC_RECORDS || now.saturating_duration_since(since) >= SYNC_AFTER
    }

    /// Returns once every record so far will survive a crash of the machine.
    ///
    /// # Errors
    /// [`SinkError::Full`] and [`SinkError::Failed`]: how much is on the disk is not known.
    pub fn sync(&mut self, now: Instant) -> Result<(), SinkError> {
        if self.unsynced > 0 {
            self.out.sync().map_err(|error| SinkError::of(error, &self.name))?;
        }
        self.unsynced = 0;
        self.synced = Some(now);
        Ok(())
    }

    /// How many records were written.
    pub fn written(&self) -> u64 {
        self.written
    }
}

impl fmt::Debug for Sink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Sink({}, {} written)", self.name, self.written)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::{Clock, SimClock, secs};
    use std::sync::{Arc, Mutex};

    /// A disk that can be looked at, and that has an end.
    #[derive(Clone, Default)]
    struct Disk(Arc<Mutex<State>>);

    #[derive(Default)]
    struct State {
        bytes: Vec<u8>,
        calls: Vec<usize>,
        syncs: Vec<usize>,
        room: Option<usize>,
        error: Option<io::ErrorKind>,
    }

    impl Write for Disk {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let mut state = self.0.lock().unwrap();
            let room = state.room.map_or(usize::MAX, |room| room - state.bytes.len());
            if room == 0 {
                return Err(state.error.unwrap_or(io::ErrorKind::StorageFull).into());
            }
            let taken = bytes.len().min(room);
            state.bytes.extend_from_slice(&bytes[..taken]);
            state.calls.push(taken);
            Ok(taken)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    impl Output for Disk {
        fn cut(&mut self, length: u64) -> io::Result<()> {
            self.0.lock().unwrap().bytes.truncate(length.try_into().unwrap());
            Ok(())
        }

        fn sync(&mut self) -> io::Result<()> {
            let mut state = self.0.lock().unwrap();
            let length = state.bytes.len();
            state.syncs.push(length);
            Ok(())
        }
    }

    fn sink(disk: &Disk) -> Sink {
        Sink::output("results.jsonl", Box::new(disk.clone()), 0)
    }

    fn record() -> Record {
        Record::parse(super::super::record::tests::SMALL.as_bytes()).unwrap()
    }

    #[test]
    fn one_call_and_one_complete_line_a_record() {
        let (disk, clock) = (Disk::default(), SimClock::default());
        let mut sink = sink(&disk);
        for _ in 0..3 {
            sink.write(&record(), clock.now()).unwrap();
        }
        let state = disk.0.lock().unwrap();
        assert_eq!(state.calls.len(), 3);
        let lines: Vec<_> = state.bytes.split_inclusive(|byte| *byte == b'\n').collect();
        assert_eq!(lines.len(), 3);
        assert!(lines.iter().all(|line| Record::parse(line).unwrap() == record()));
    }

    #[test]
    fn a_full_disk_keeps_complete_lines_and_nothing_else() {
        let (disk, clock) = (Disk::default(), SimClock::default());
        let mut sink = sink(&disk);
        sink.write(&record(), clock.now()).unwrap();
        let whole = disk.0.lock().unwrap().bytes.clone();
        for room in 0..whole.len() {
            disk.0.lock().unwrap().room = Some(whole.len() + room);
            let error = sink.write(&record(), clock.now()).unwrap_err();
            assert!(matches!(error, SinkError::Full(_)), "{error:?}");
            assert_eq!(
                error.to_string(),
                "results.jsonl cannot be written: no storage space; free some space and resume"
            );
            assert_eq!(disk.0.lock().unwrap().bytes, whole, "{room}");
        }
        disk.0.lock().unwrap().room = None;
        sink.write(&record(), clock.now()).unwrap();
        assert_eq!(disk.0.lock().unwrap().bytes.len(), 2 * whole.len());
        assert_eq!(sink.written(), 2);
    }

    #[test]
    fn a_gone_reader_is_told_from_a_failure() {
        let (disk, clock) = (Disk::default(), SimClock::default());
        disk.0.lock().unwrap().room = Some(0);
        for (kind, closed) in [
            (io::ErrorKind::BrokenPipe, true),
            (io::ErrorKind::QuotaExceeded, false),
            (io::ErrorKind::Other, false),
        ] {
            disk.0.lock().unwrap().error = Some(kind);
            let error = sink(&disk).write(&record(), clock.now()).unwrap_err();
            assert_eq!(matches!(error, SinkError::Closed), closed, "{kind:?}");
        }
    }

    #[test]
    fn synced_by_number_by_time_and_at_the_end() {
        let (disk, clock) = (Disk::default(), SimClock::default());
        let mut sink = sink(&disk);
        let syncs = || disk.0.lock().unwrap().syncs.len();
        for _ in 0..999 {
            sink.write(&record(), clock.now()).unwrap();
        }
        assert_eq!(syncs(), 0);
        sink.write(&record(), clock.now()).unwrap();
        assert_eq!(syncs(), 1);
        clock.advance(secs(0.999));
        sink.write(&record(), clock.now()).unwrap();
        assert_eq!(syncs(), 1);
        clock.advance(secs(0.001));
        sink.write(&record(), clock.now()).unwrap();
        assert_eq!(syncs(), 2);
        sink.sync(clock.now()).unwrap();
        assert_eq!(syncs(), 2, "nothing new");
        sink.write(&record(), clock.now()).unwrap();
        sink.sync(clock.now()).unwrap();
        let state = disk.0.lock().unwrap();
        assert_eq!(state.syncs.last(), Some(&state.bytes.len()));
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn the_full_device_is_full() {
        let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        let error = Sink::stream("/dev/full", full)
            .write(&record(), SimClock::default().now())
            .unwrap_err();
        assert!(matches!(error, SinkError::Full(_)), "{error:?}");
    }
}
