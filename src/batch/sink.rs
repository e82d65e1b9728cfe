//! Where the records go: a JSON Lines file, or a stream such as standard output.
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
//! waits only where 10 000 records are not known to be durable. Where none may be lost
//! ([`Sink::sync_each`]), a record is durable before it counts as written.

use super::record::Record;
use super::syncing::{Durable, Syncing, ToSync, sync_bodies};
use crate::error::{Error, ErrorKind, Fault, Phase};
use std::fmt;
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
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

#[cfg(feature = "zstd")]
impl SinkError {
    /// That so many records went with a frame.
    fn and_lost(self, records: u64) -> Self {
        let with = |error: Error| {
            let text = format!(
                "{}; the last {records} records are not in it, and a resumption does them again",
                error.message()
            );
            Error::new(error.kind(), Phase::Prepare, Fault::Local, text).with_source(error)
        };
        match self {
            Self::Closed => Self::Closed,
            Self::Full(error) => Self::Full(with(error)),
            Self::Failed(error) => Self::Failed(with(error)),
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
    form: Form,
    /// Up to where the output consists of complete lines or frames.
    complete: u64,
    line: Vec<u8>,
    /// Bodies that the next records name and that are not known to be durable.
    bodies: Vec<PathBuf>,
    /// `None` where there is nothing to sync, or the first record is still to come.
    syncing: Option<Syncing>,
    sync_each: bool,
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

/// How lines become bytes.
enum Form {
    Lines,
    #[cfg(feature = "zstd")]
    Frames {
        lines: Vec<u8>,
        records: u64,
    },
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
            form: Form::Lines,
            complete,
            line: Vec::new(),
            bodies: Vec::new(),
            syncing: None,
            sync_each: false,
            written: 0,
            asked: 0,
            durable: 0,
            asked_at: None,
            waiting: false,
            opened: false,
        }
    }

    /// Compresses the lines, frame by frame.
    #[cfg(feature = "zstd")]
    pub(super) fn in_frames(mut self) -> Self {
        self.form = Form::Frames { lines: Vec::new(), records: 0 };
        self
    }

    /// Whether each record is durable before [`write`](Self::write) returns, and the bodies that it
    /// names before it is written: then a crash of the machine takes none. Default: no.
    #[must_use]
    pub fn sync_each(mut self, each: bool) -> Self {
        self.sync_each = each;
        self
    }

    /// Writes one record; `now` is for the time between two syncs.
    ///
    /// # Errors
    /// The record does not stand in the output. After [`SinkError::Full`] and
    /// [`SinkError::Failed`] no part of it does, as far as the output can be cut. Where a sync
    /// failed that was under way, it is not known how much is on the disk.
    pub fn write(&mut self, record: &Record, now: Instant) -> Result<(), SinkError> {
        if !self.opened {
            let handle = self.out.durable().map_err(|error| SinkError::of(error, &self.name))?;
            self.syncing = handle.map(|handle| Syncing::new(&self.name, handle));
            self.opened = true;
        }
        if self.sync_each {
            // Nothing may name what is not there, not even for a moment.
            sync_bodies(&std::mem::take(&mut self.bodies))?;
        }
        self.line.clear();
        serde_json::to_writer(&mut self.line, record)
            .map_err(|error| SinkError::of(error.into(), &self.name))?;
        self.line.push(b'\n');
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
        if self.sync_each { self.sync(now) } else { self.settle(now) }
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
            self.durable = match &mut self.syncing {
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

    /// Is told of files that the next record names; they are synced before it is.
    pub(super) fn rely_on(&mut self, bodies: &mut Vec<PathBuf>) {
        self.bodies.append(bodies);
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
        match &mut self.syncing {
            Some(syncing) => syncing.begin(batch),
            None => {
                self.durable = batch.records;
                Ok(())
            }
        }
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
                log::warn!("{name}: a torn line is left at its end: {failed}");
            }
            return Err(SinkError::of(error, name));
        }
        *complete += bytes.len() as u64;
        Ok(())
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
    use crossbeam_channel::{Receiver, Sender, unbounded};
    use std::sync::{Arc, Mutex};

    /// A disk that can be looked at, and that has an end.
    #[derive(Clone, Default)]
    struct Disk(Arc<Mutex<State>>, Option<Lamp>);

    /// Shows how long the file was at each sync, which then goes on when it is told to.
    #[derive(Clone)]
    struct Lamp(Sender<usize>, Receiver<io::Result<()>>);

    struct Handle(Disk);

    impl Durable for Handle {
        fn sync(&mut self) -> io::Result<()> {
            let length = self.0.0.lock().unwrap().bytes.len();
            let Some(Lamp(shown, go_on)) = &self.0.1 else { return Ok(()) };
            shown.send(length).unwrap();
            go_on.recv().unwrap()
        }
    }

    /// A disk, what its syncs show, and what lets them go on.
    fn watched() -> (Disk, Receiver<usize>, Sender<io::Result<()>>) {
        let ((shown, syncs), (go_on, told)) = (unbounded(), unbounded());
        (Disk(Arc::default(), Some(Lamp(shown, told))), syncs, go_on)
    }

    #[derive(Default)]
    struct State {
        bytes: Vec<u8>,
        calls: Vec<usize>,
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

        fn durable(&self) -> io::Result<Option<Box<dyn Durable>>> {
            Ok(Some(Box::new(Handle(self.clone()))))
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
        let (disk, syncs, go_on) = watched();
        let clock = SimClock::default();
        let mut sink = sink(&disk);
        let go_on = go_on;
        let length = || disk.0.lock().unwrap().bytes.len();
        for _ in 0..999 {
            sink.write(&record(), clock.now()).unwrap();
        }
        assert_eq!(sink.asked, 0);
        sink.write(&record(), clock.now()).unwrap();
        assert_eq!(syncs.recv().unwrap(), length());
        go_on.send(Ok(())).unwrap();
        sink.hear(true).unwrap();
        assert_eq!(sink.durable, 1000);
        clock.advance(secs(0.999));
        sink.write(&record(), clock.now()).unwrap();
        sink.tick(clock.now()).unwrap();
        assert_eq!(sink.asked, 1000);
        clock.advance(secs(0.001));
        // No further record is needed for it.
        sink.tick(clock.now()).unwrap();
        assert_eq!(syncs.recv().unwrap(), length());
        go_on.send(Ok(())).unwrap();
        sink.sync(clock.now()).unwrap();
        assert!(syncs.is_empty(), "nothing new");
        sink.write(&record(), clock.now()).unwrap();
        go_on.send(Ok(())).unwrap();
        sink.sync(clock.now()).unwrap();
        assert_eq!((syncs.recv().unwrap(), sink.durable), (length(), 1002));
    }

    #[test]
    fn writing_goes_on_beside_a_sync_and_waits_for_it_at_ten_thousand() {
        let (disk, syncs, go_on) = watched();
        let clock = SimClock::default();
        let mut sink = sink(&disk);
        // Dropped before the sink, which waits for what is under way.
        let go_on = go_on;
        for _ in 0..1000 {
            sink.write(&record(), clock.now()).unwrap();
        }
        assert_eq!(syncs.recv().unwrap(), disk.0.lock().unwrap().bytes.len());
        for _ in 1000..MOST_UNSYNCED - 1 {
            sink.write(&record(), clock.now()).unwrap();
        }
        assert!(syncs.is_empty(), "one at a time");
        assert_eq!((sink.written(), sink.durable), (9_999, 0));
        std::thread::scope(|scope| {
            let writing = scope.spawn(|| sink.write(&record(), clock.now()).unwrap());
            assert!(!writing.is_finished());
            // The first sync ends, and so the next begins, with everything up to then.
            go_on.send(Ok(())).unwrap();
            writing.join().unwrap();
        });
        assert_eq!((sink.written(), sink.durable), (10_000, 1_000));
        go_on.send(Ok(())).unwrap();
        sink.hear(true).unwrap();
        assert_eq!(sink.durable, 10_000);
    }

    #[test]
    fn a_sync_that_failed_is_told_by_the_next_record_and_at_the_end() {
        for at_the_end in [false, true] {
            let (disk, syncs, go_on) = watched();
            let clock = SimClock::default();
            let mut sink = sink(&disk);
            let go_on = go_on;
            for _ in 0..SYNC_RECORDS {
                sink.write(&record(), clock.now()).unwrap();
            }
            syncs.recv().unwrap();
            go_on.send(Err(io::ErrorKind::StorageFull.into())).unwrap();
            let error = if at_the_end {
                sink.sync(clock.now()).unwrap_err()
            } else {
                let write = || sink.write(&record(), clock.now());
                std::iter::repeat_with(write).find_map(Result::err).unwrap()
            };
            assert!(matches!(error, SinkError::Full(_)), "{error:?}");
        }
    }

    #[test]
    fn where_none_may_be_lost_each_record_is_durable_before_it_counts() {
        let (disk, syncs, go_on) = watched();
        let clock = SimClock::default();
        let mut sink = sink(&disk).sync_each(true);
        let go_on = go_on;
        for count in 1..=3 {
            go_on.send(Ok(())).unwrap();
            sink.write(&record(), clock.now()).unwrap();
            assert_eq!(syncs.try_recv().unwrap(), disk.0.lock().unwrap().bytes.len());
            assert_eq!(sink.durable, count);
        }
        go_on.send(Err(io::ErrorKind::Other.into())).unwrap();
        assert!(matches!(sink.write(&record(), clock.now()), Err(SinkError::Failed(_))));
    }

    #[test]
    fn a_body_is_synced_before_the_record_that_names_it() {
        let (disk, clock) = (Disk::default(), SimClock::default());
        for each in [false, true] {
            let mut sink = sink(&disk).sync_each(each);
            // It is not there, so syncing it fails.
            sink.rely_on(&mut vec![PathBuf::from("/nonexistent/ab/cd.html")]);
            let written = sink.write(&record(), clock.now());
            let error = if each { written } else { sink.sync(clock.now()) }.unwrap_err();
            assert!(error.to_string().starts_with("/nonexistent/ab/cd.html cannot be"), "{error}");
            assert_eq!((sink.durable, sink.written()), (0, u64::from(!each)));
        }
    }

    #[cfg(feature = "zstd")]
    #[test]
    fn a_frame_ends_with_each_sync_and_is_written_whole_or_not_at_all() {
        let (disk, clock) = (Disk::default(), SimClock::default());
        let mut sink = sink(&disk).in_frames();
        for _ in 0..999 {
            sink.write(&record(), clock.now()).unwrap();
        }
        assert_eq!(disk.0.lock().unwrap().calls.len(), 0);
        sink.write(&record(), clock.now()).unwrap();
        sink.write(&record(), clock.now()).unwrap();
        sink.sync(clock.now()).unwrap();
        let whole = disk.0.lock().unwrap().bytes.clone();
        assert_eq!((disk.0.lock().unwrap().calls.len(), sink.durable), (2, 1001));
        let lines = zstd::decode_all(whole.as_slice()).unwrap();
        assert_eq!(lines.split_inclusive(|byte| *byte == b'\n').count(), 1001);
        disk.0.lock().unwrap().room = Some(whole.len() + 9);
        for _ in 0..3 {
            sink.write(&record(), clock.now()).unwrap();
        }
        let error = sink.sync(clock.now()).unwrap_err();
        assert_eq!(
            error.to_string(),
            "results.jsonl cannot be written: no storage space; free some space and resume; the \
             last 3 records are not in it, and a resumption does them again"
        );
        assert_eq!((disk.0.lock().unwrap().bytes.clone(), sink.written()), (whole, 1001));
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
