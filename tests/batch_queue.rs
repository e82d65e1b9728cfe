//! Runs that share a queue, with threads and files: what one of them leaves, another one does.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may end in a panic")]

use longhaul::batch::{
    Batch, BatchBuilder, Claimed, Existing, FnSink, IterSource, JobSource, LeaseId, Lost,
    MemoryQueue, Outcome, Place, Record, SinkError, Stopped, Supply,
};
use longhaul::error::{Fault, Phase};
use longhaul::time::SimClock;
use longhaul::transport::{Play, Script};
use longhaul::{Error, ErrorKind, Session, secs};
use std::collections::BTreeSet;
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Barrier, Mutex};
use std::thread;

/// A closed queue of so many URLs, whose leases last for a minute.
fn queue(clock: &Arc<SimClock>, count: usize) -> MemoryQueue {
    let queue = MemoryQueue::new(clock.clone()).lease(secs(60.0));
    (0..count).for_each(|number| queue.push(format!("http://h.test/{number}")));
    queue.close();
    queue
}

/// Notes every record with the name of who wrote it.
type Notes = Arc<Mutex<Vec<(&'static str, String)>>>;

fn noting(notes: Notes, who: &'static str) -> impl FnMut(&Record) -> Result<(), SinkError> {
    move |record| {
        notes.lock().unwrap().push((who, record.url.clone()));
        Ok(())
    }
}

fn urls(notes: &Notes, who: Option<&str>) -> Vec<String> {
    let notes = notes.lock().unwrap();
    let of = notes.iter().filter(|(name, _)| who.is_none_or(|who| who == *name));
    of.map(|(_, url)| url.clone()).collect()
}

/// A run whose requests are answered by `answer`, and counted.
fn batch(
    clock: &Arc<SimClock>,
    answer: impl Fn(usize) -> Play + Send + Sync + 'static,
) -> (BatchBuilder, Arc<AtomicUsize>) {
    let asked = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&asked);
    let script =
        Script::with(clock.clone(), move |_, _| answer(count.fetch_add(1, Ordering::SeqCst)));
    let session = Session::builder().trust_env(false).transport(move || script.clone());
    (Batch::builder(session).clock(clock.clone()).workers(2).permits(4), asked)
}

fn run(batch: BatchBuilder) -> Outcome {
    batch.build().unwrap().run().unwrap()
}

/// A consumer that can be killed: from then on nobody hears what it says.
#[derive(Clone)]
struct Mortal {
    queue: MemoryQueue,
    killed: Arc<AtomicBool>,
    /// How often each of the jobs that it got had been handed out.
    deliveries: Arc<Mutex<BTreeSet<u32>>>,
}

impl Mortal {
    fn of(queue: &MemoryQueue) -> Self {
        Self { queue: queue.clone(), killed: Arc::default(), deliveries: Arc::default() }
    }

    fn lives(&self) -> Result<(), Error> {
        match self.killed.load(Ordering::SeqCst) {
            true => Err(Error::new(ErrorKind::Io, Phase::Prepare, Fault::Local, "killed")),
            false => Ok(()),
        }
    }
}

impl JobSource for Mortal {
    fn claim(
        &self,
        most: usize,
        jobs: &mut Vec<Claimed>,
        is_over: &dyn Fn() -> bool,
    ) -> Result<Supply, Error> {
        self.lives()?;
        let supply = self.queue.claim(most, jobs, is_over)?;
        let mut seen = self.deliveries.lock().unwrap();
        seen.extend(jobs.iter().filter_map(Claimed::lease).map(|lease| lease.deliveries));
        Ok(supply)
    }

    fn extend(&self, leases: &[LeaseId]) -> Result<Lost, Error> {
        self.lives()?;
        self.queue.extend(leases)
    }

    fn acknowledge(&self, leases: &[LeaseId]) -> Result<Lost, Error> {
        self.lives()?;
        self.queue.acknowledge(leases)
    }

    fn give_back(&self, leases: &[LeaseId]) -> Result<(), Error> {
        self.lives()?;
        self.queue.give_back(leases)
    }

    fn dead_letter(&self, lease: &LeaseId, reason: &str) -> Result<Lost, Error> {
        self.lives()?;
        self.queue.dead_letter(lease, reason)
    }
}

#[test]
fn two_runs_share_a_queue() {
    let clock = Arc::new(SimClock::default());
    let (queue, notes) = (queue(&clock, 300), Notes::default());
    // Each begins only when the other one has begun, too.
    let both = Arc::new(Barrier::new(2));
    thread::scope(|scope| {
        for who in ["a", "b"] {
            let (queue, clock, both) = (queue.clone(), Arc::clone(&clock), Arc::clone(&both));
            let mut note = noting(notes.clone(), who);
            scope.spawn(move || {
                let (batch, _) = batch(&clock, move |count| {
                    if count == 0 {
                        both.wait();
                    }
                    Play::status(200)
                });
                let sink = FnSink::new(move |record, _| note(record));
                let outcome = run(batch.source(queue).sink(sink));
                assert!(outcome.stopped.is_none(), "{outcome:?}");
                assert_eq!((outcome.summary.leases_lost, outcome.summary.dead_lettered), (0, 0));
            });
        }
    });
    let all = urls(&notes, None);
    assert_eq!((all.len(), all.iter().collect::<BTreeSet<_>>().len()), (300, 300));
    assert!(["a", "b"].iter().all(|who| !urls(&notes, Some(who)).is_empty()));
    assert_eq!((queue.acknowledged(), queue.waiting(), queue.handed_out()), (300, 0, 0));
}

#[test]
fn what_a_killed_run_had_goes_to_another_when_its_leases_run_out() {
    let clock = Arc::new(SimClock::default());
    let (queue, notes) = (queue(&clock, 100), Notes::default());
    let first = Mortal::of(&queue);
    let (killed, mut note) = (Arc::clone(&first.killed), noting(notes.clone(), "first"));
    let mut count = 0;
    let sink = FnSink::new(move |record, _| {
        count += 1;
        // Its 21st record dies with it.
        if count > 20 {
            killed.store(true, Ordering::SeqCst);
            return Err(SinkError::Closed);
        }
        note(record)
    });
    let outcome = run(batch(&clock, |_| Play::status(200)).0.source(first).sink(sink));
    assert!(matches!(outcome.stopped, Some(Stopped::SinkClosed)), "{outcome:?}");
    let (acknowledged, left) = (queue.acknowledged(), queue.handed_out());
    // Each was acknowledged with the next result at the latest.
    assert_eq!((acknowledged, queue.waiting() + left), (20, 80));
    assert!(left > 0, "it has held some to the end");

    let live = Mortal::of(&queue);
    let deliveries = Arc::clone(&live.deliveries);
    let mut note = noting(notes.clone(), "second");
    let sink = FnSink::new(move |record, _| note(record));
    clock.advance(secs(60.0));
    assert_eq!((queue.waiting(), queue.handed_out()), (80, 0));
    let outcome = run(batch(&clock, |_| Play::status(200)).0.source(live).sink(sink));
    assert!(outcome.stopped.is_none(), "{outcome:?}");
    assert_eq!(*deliveries.lock().unwrap(), [1, 2].into());
    assert_eq!((queue.acknowledged(), queue.waiting(), queue.handed_out()), (100, 0, 0));
    let all = urls(&notes, None);
    assert_eq!((all.len(), all.iter().collect::<BTreeSet<_>>().len()), (100, 100));
}

#[test]
fn a_stop_gives_back_what_did_not_end() {
    let clock = Arc::new(SimClock::default());
    let (queue, notes) = (queue(&clock, 100), Notes::default());
    let mut note = noting(notes.clone(), "a");
    let (batch, _) = self::batch(&clock, |_| Play::status(200));
    let stopper = Arc::new(Mutex::new(None::<longhaul::workers::Stopper>));
    let stops = Arc::clone(&stopper);
    let sink = FnSink::new(move |record, _| {
        if let Some(stopper) = stops.lock().unwrap().as_ref() {
            stopper.close();
        }
        note(record)
    });
    let batch = batch.source(queue.clone()).sink(sink).build().unwrap();
    *stopper.lock().unwrap() = Some(batch.stopper());
    let outcome = batch.run().unwrap();
    assert!(matches!(outcome.stopped, Some(Stopped::Interrupted)), "{outcome:?}");
    let done = urls(&notes, None).len();
    assert!((1..100).contains(&done), "{done}");
    assert_eq!((queue.acknowledged(), queue.handed_out()), (done as u64, 0));
    assert_eq!(queue.waiting(), 100 - done);
}

#[test]
fn a_resumption_acknowledges_what_has_its_record_and_asks_for_the_rest() {
    let clock = Arc::new(SimClock::default());
    let queue = queue(&clock, 60);
    let folder = tempfile::tempdir().unwrap();
    let results = folder.path().join("results.jsonl");
    let first = Mortal::of(&queue);
    let (killed, mut count) = (Arc::clone(&first.killed), 0);
    let (batch, asked) = batch(&clock, |_| Play::status(200));
    let outcome = run(batch.source(first).output(&results).on_record(move |_| {
        count += 1;
        killed.store(count > 30, Ordering::SeqCst);
    }));
    // It could not be read on, and nothing that was written was acknowledged: it was not durable
    // by then.
    assert!(matches!(outcome.stopped, Some(Stopped::SourceFailed(_))), "{outcome:?}");
    assert_eq!(queue.acknowledged(), 0);
    let written = fs::read_to_string(&results).unwrap().lines().count();
    assert!((31..=60).contains(&written), "{written}");
    assert_eq!(asked.load(Ordering::SeqCst), written);

    clock.advance(secs(60.0));
    let (batch, asked) = self::batch(&clock, |_| Play::status(200));
    let resume = Existing::Resume { retry_failed: false };
    // Durable with each: the clock that a sync would wait for stands still.
    let batch = batch.source(queue.clone()).output(&results).existing(resume).sync_each(true);
    let outcome = run(batch);
    assert!(outcome.stopped.is_none(), "{outcome:?}");
    assert_eq!(asked.load(Ordering::SeqCst), 60 - written);
    assert_eq!((queue.acknowledged(), queue.waiting(), queue.handed_out()), (60, 0, 0));
    let ids = fs::read(&results).unwrap();
    let ids: Vec<_> =
        ids.split_inclusive(|byte| *byte == b'\n').map(|l| Record::parse(l).unwrap().id).collect();
    assert_eq!((ids.len(), ids.iter().collect::<BTreeSet<_>>().len()), (60, 60));
}

#[test]
fn a_panic_is_a_result_and_its_job_is_acknowledged() {
    let clock = Arc::new(SimClock::default());
    let (queue, classes) = (queue(&clock, 10), Arc::new(Mutex::new(Vec::new())));
    let seen = Arc::clone(&classes);
    let sink = FnSink::new(move |record, _| {
        seen.lock().unwrap().push(record.error.as_ref().map(|error| error.kind.to_string()));
        Ok(())
    });
    let (batch, _) = batch(&clock, |count| match count {
        3 => panic!("the fourth"),
        _ => Play::status(200),
    });
    let outcome = run(batch.source(queue.clone()).sink(sink));
    assert_eq!((outcome.summary.ok, outcome.summary.failed), (9, 1));
    let failed: Vec<_> = classes.lock().unwrap().iter().flatten().cloned().collect();
    assert_eq!(failed, ["internal"]);
    assert_eq!((queue.acknowledged(), queue.dead_letters().len()), (10, 0));
}

#[test]
fn an_iterator_may_block_and_may_be_endless() {
    let clock = Arc::new(SimClock::default());
    let (batch, _) = batch(&clock, |_| Play::status(200));
    let (send, lines) = std::sync::mpsc::channel::<String>();
    let (told, heard) = std::sync::mpsc::channel();
    let sink = FnSink::new(move |record, response| {
        assert_eq!(response.unwrap().status(), 200);
        told.send(record.url.clone()).unwrap();
        Ok(())
    });
    let batch = batch.source(IterSource::new(lines)).sink(sink).build().unwrap();
    let outcome = thread::scope(|scope| {
        let running = scope.spawn(|| batch.run().unwrap());
        // Each is answered before the next one is there.
        for number in 0..20 {
            send.send(format!("http://h.test/{number}")).unwrap();
            assert_eq!(heard.recv().unwrap(), format!("http://h.test/{number}"));
        }
        drop(send);
        running.join().unwrap()
    });
    assert_eq!((outcome.summary.ok, outcome.stopped.is_none()), (20, true));

    let (batch, _) = self::batch(&clock, |_| Play::status(200));
    let endless = (0_u64..).map(|number| format!("http://h.test/{number}"));
    let mut left = 50;
    let stopper = Arc::new(Mutex::new(None::<longhaul::workers::Stopper>));
    let stops = Arc::clone(&stopper);
    let sink = FnSink::new(move |_, _| {
        left -= 1;
        if left == 0 {
            stops.lock().unwrap().as_ref().unwrap().close();
        }
        Ok(())
    });
    let batch = batch.source(IterSource::new(endless)).sink(sink).build().unwrap();
    *stopper.lock().unwrap() = Some(batch.stopper());
    let outcome = batch.run().unwrap();
    assert!(outcome.summary.ok >= 50, "{outcome:?}");
}

/// Gives one job, and then waits until the run is over.
struct Patient(AtomicBool);

impl JobSource for Patient {
    fn claim(
        &self,
        _: usize,
        jobs: &mut Vec<Claimed>,
        is_over: &dyn Fn() -> bool,
    ) -> Result<Supply, Error> {
        if !self.0.swap(true, Ordering::SeqCst) {
            let place = Place { source: "patient".into(), line: 1 };
            jobs.extend(Claimed::line("http://h.test/1", place));
            return Ok(Supply::More);
        }
        while !is_over() {
            thread::yield_now();
        }
        Ok(Supply::Ended)
    }

    fn extend(&self, _: &[LeaseId]) -> Result<Lost, Error> {
        Ok(Lost::default())
    }

    fn acknowledge(&self, _: &[LeaseId]) -> Result<Lost, Error> {
        Ok(Lost::default())
    }

    fn give_back(&self, _: &[LeaseId]) -> Result<(), Error> {
        Ok(())
    }

    fn dead_letter(&self, _: &LeaseId, _: &str) -> Result<Lost, Error> {
        Ok(Lost::default())
    }
}

#[test]
fn a_panic_of_who_is_told_goes_on_though_the_source_waits_for_jobs() {
    type Told = fn(BatchBuilder) -> BatchBuilder;
    let told: [Told; 3] = [
        |batch| batch.on_record(|_| panic!("mine")),
        |batch| batch.on_pass_end(|_| panic!("mine")),
        |batch| batch.sink(FnSink::new(|_, _| panic!("mine"))),
    ];
    for panics in told {
        let (batch, _) = batch(&Arc::default(), |_| Play::status(200));
        let batch = batch.sink(FnSink::new(|_, _| Ok(()))).source(Patient(AtomicBool::default()));
        let batch = panics(batch).build().unwrap();
        let caught = catch_unwind(AssertUnwindSafe(|| batch.run())).unwrap_err();
        assert_eq!(caught.downcast_ref(), Some(&"mine"));
    }
}
