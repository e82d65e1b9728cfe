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

fn sink(disk: &Disk) -> RecordWriter {
    RecordWriter::output("results.jsonl", Box::new(disk.clone()), 0)
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
fn a_body_is_synced_with_the_record_that_names_it() {
    let (disk, clock) = (Disk::default(), SimClock::default());
    let mut sink = sink(&disk);
    // It is not there, so syncing it fails.
    sink.rely_on(&mut vec![PathBuf::from("/nonexistent/ab/cd.html")]).unwrap();
    sink.write(&record(), clock.now()).unwrap();
    let error = sink.sync(clock.now()).unwrap_err();
    assert!(error.to_string().starts_with("/nonexistent/ab/cd.html cannot be"), "{error}");
    assert_eq!((sink.durable, sink.written()), (0, 1));
}

#[test]
fn the_files_that_records_on_a_stream_name_are_synced_too() {
    let clock = SimClock::default();
    let gone = || vec![PathBuf::from("/nonexistent/x-00000.warc.gz")];
    let is_told = |error: SinkError| {
        assert!(error.to_string().starts_with("/nonexistent/x-00000.warc.gz cannot be"), "{error}");
    };
    // At the end.
    let mut sink = RecordWriter::stream("a stream", Vec::new());
    sink.write(&record(), clock.now()).unwrap();
    sink.sync(clock.now()).unwrap();
    assert_eq!(sink.durable, 1, "there is nothing to sync");
    sink.rely_on(&mut gone()).unwrap();
    sink.write(&record(), clock.now()).unwrap();
    is_told(sink.sync(clock.now()).unwrap_err());
    assert_eq!((sink.durable, sink.written()), (1, 2));
    // And while it goes on, beside the writing.
    let mut sink = RecordWriter::stream("a stream", Vec::new());
    sink.rely_on(&mut gone()).unwrap();
    sink.write(&record(), clock.now()).unwrap();
    clock.advance(SYNC_AFTER);
    sink.tick(clock.now()).unwrap();
    is_told(sink.hear(true).unwrap_err());
    assert_eq!(sink.durable, 0);
    // Where they are there, the records are durable.
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("x-00000.warc.gz");
    std::fs::write(&file, "x").unwrap();
    let mut sink = RecordWriter::stream("a stream", Vec::new());
    sink.rely_on(&mut vec![file]).unwrap();
    sink.write(&record(), clock.now()).unwrap();
    sink.sync(clock.now()).unwrap();
    assert_eq!(sink.durable, 1);
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
    let error = RecordWriter::stream("/dev/full", full)
        .write(&record(), SimClock::default().now())
        .unwrap_err();
    assert!(matches!(error, SinkError::Full(_)), "{error:?}");
}
