//! A run over a queue: what is said to it, and when.

use super::*;
use crate::batch::input::Input;
use crate::batch::job_source::{Claimed, JobSource, Lease, LeaseId, Lost, Supply};
use crate::batch::journal::Done;
use crate::batch::key::Key;
use crate::batch::memory_queue::MemoryQueue;
use crate::batch::record::tests::{attempt, response};
use crate::batch::source::Known;
use crate::error::{Error, ErrorKind};
use crate::message::{IntoRequest, Response};
use crate::time::{SimClock, secs};
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

/// What becomes of a URL: how many seconds it takes, and what comes then.
type Played = (u32, Result<Response, Error>);

/// A pool without threads, in which each job takes its time.
struct Crew<'a> {
    clock: Arc<SimClock>,
    play: Box<dyn Fn(&str) -> Played + 'a>,
    asked: RefCell<Vec<String>>,
    closed: RefCell<Option<String>>,
    stop_after: Option<usize>,
}

impl<'a> Crew<'a> {
    fn new(clock: &Arc<SimClock>, play: impl Fn(&str) -> Played + 'a) -> Self {
        Self {
            clock: Arc::clone(clock),
            play: Box::new(play),
            asked: RefCell::default(),
            closed: RefCell::default(),
            stop_after: None,
        }
    }

    fn asked(&self) -> Vec<String> {
        self.asked.borrow().clone()
    }
}

impl Jobs for Crew<'_> {
    fn run(&self, jobs: Feed, take: &mut dyn FnMut(Option<Finished>)) {
        let mut jobs = jobs.enumerate();
        while self.closed.borrow().is_none()
            && let Some((index, job)) = jobs.next()
        {
            let cancelled = || Error::local(ErrorKind::Cancelled, "stopped");
            let (url, method, (seconds, result)) = match job.into_request() {
                Err(error) => (String::new(), http::Method::GET, (0, Err(error))),
                Ok(request) => {
                    let asked = self.asked.borrow().len();
                    if self.stop_after == Some(asked) {
                        *self.closed.borrow_mut() = Some("enough".to_owned());
                    }
                    let played = if self.closed.borrow().is_some() {
                        (0, Err(cancelled()))
                    } else {
                        self.asked.borrow_mut().push(request.url.clone());
                        (self.play)(&request.url)
                    };
                    (request.url, request.method, played)
                }
            };
            for _ in 0..seconds {
                self.clock.advance(secs(1.0));
                take(None);
            }
            let (index, elapsed) = (index as u64, Duration::from_secs(seconds.into()));
            take(Some(Finished { index, id: None, url, method, result, elapsed }));
        }
    }

    fn stats(&self) -> PoolStats {
        PoolStats::default()
    }

    fn abort(&self) {
        self.close("aborted".to_owned());
    }

    fn close(&self, cause: String) {
        self.closed.borrow_mut().get_or_insert(cause);
    }

    fn stopped(&self) -> Option<Stopped> {
        self.closed.borrow().as_ref().map(|cause| Stopped::Rule(cause.clone()))
    }
}

fn ok(url: &str) -> Played {
    (0, Ok(response(200, vec![attempt(url)])))
}

/// The records of all consumers, and what of them is durable.
#[derive(Clone, Default)]
struct Ledger(Arc<Mutex<Pages>>);

#[derive(Default)]
struct Pages {
    durable: Vec<Record>,
    written: Vec<Record>,
}

impl Ledger {
    fn urls(&self) -> Vec<String> {
        self.0.lock().unwrap().durable.iter().map(|record| record.url.clone()).collect()
    }

    fn holds(&self, url: &str) -> bool {
        self.0.lock().unwrap().durable.iter().any(|record| record.url == url)
    }
}

/// How a sink makes its records durable.
#[derive(Clone, Copy, Debug)]
enum Syncs {
    Each,
    /// After so many.
    Every(u64),
    AtTheEnd,
    /// It fails.
    Never,
    /// The record with this number, from 1, cannot be written.
    FailsAt(u64),
}

/// The sink of one consumer.
struct Page {
    ledger: Ledger,
    killed: Arc<AtomicBool>,
    syncs: Syncs,
    written: u64,
    durable: u64,
}

impl Page {
    fn of(consumer: &Consumer, syncs: Syncs) -> Box<Self> {
        let (ledger, killed) = (consumer.ledger.clone(), Arc::clone(&consumer.killed));
        Box::new(Self { ledger, killed, syncs, written: 0, durable: 0 })
    }

    fn broken() -> SinkError {
        SinkError::Failed(Error::local(ErrorKind::Io, "the page is torn"))
    }
}

impl Sink for Page {
    fn write(
        &mut self,
        record: &Record,
        _: Option<&Response>,
        now: Instant,
    ) -> Result<(), SinkError> {
        let fails = matches!(self.syncs, Syncs::FailsAt(at) if at == self.written + 1);
        if fails || self.killed.load(Ordering::Relaxed) {
            return Err(Self::broken());
        }
        self.ledger.0.lock().unwrap().written.push(record.clone());
        self.written += 1;
        match self.syncs {
            Syncs::Each => self.sync(now),
            Syncs::Every(count) if self.written.is_multiple_of(count) => self.sync(now),
            _ => Ok(()),
        }
    }

    fn sync(&mut self, _: Instant) -> Result<(), SinkError> {
        if matches!(self.syncs, Syncs::Never) || self.killed.load(Ordering::Relaxed) {
            return Err(Self::broken());
        }
        let mut pages = self.ledger.0.lock().unwrap();
        let written = std::mem::take(&mut pages.written);
        pages.durable.extend(written);
        self.durable = self.written;
        Ok(())
    }

    fn durable(&self) -> u64 {
        self.durable
    }
}

impl Drop for Page {
    /// What a killed process had not made durable is gone.
    fn drop(&mut self) {
        self.ledger.0.lock().unwrap().written.clear();
    }
}

/// One consumer of a queue. What it says is noted, and is the truth: a job that it acknowledges has
/// a record that is durable.
#[derive(Clone)]
struct Consumer {
    queue: MemoryQueue,
    ledger: Ledger,
    said: Arc<Mutex<Vec<(&'static str, String)>>>,
    /// Nothing that it says is heard any more.
    killed: Arc<AtomicBool>,
    /// So many calls fail.
    deaf: Arc<AtomicU32>,
}

impl Consumer {
    fn of(queue: &MemoryQueue, ledger: &Ledger) -> Self {
        Self {
            queue: queue.clone(),
            ledger: ledger.clone(),
            said: Arc::default(),
            killed: Arc::default(),
            deaf: Arc::default(),
        }
    }

    fn jobs(&self) -> input::Jobs {
        self.jobs_after(Done::default())
    }

    fn jobs_after(&self, done: Done) -> input::Jobs {
        Input::from(self.clone()).jobs(Known::of(done), Arc::new(|| false))
    }

    /// What was said of which job.
    fn said(&self, what: &str) -> Vec<String> {
        let said = self.said.lock().unwrap();
        said.iter().filter(|(how, _)| *how == what).map(|(_, job)| job.clone()).collect()
    }

    /// The number of the job, or nothing where nobody hears.
    fn say(&self, what: &'static str, leases: &[LeaseId]) -> Result<(), Error> {
        if self.killed.load(Ordering::Relaxed) {
            return Err(Error::local(ErrorKind::Io, "killed"));
        }
        let hears = |calls: u32| calls.checked_sub(1);
        if self.deaf.fetch_update(Ordering::Relaxed, Ordering::Relaxed, hears).is_ok() {
            return Err(Error::local(ErrorKind::Io, "the queue is away"));
        }
        for lease in leases {
            let job = lease.as_str().split_once('.').unwrap().0.to_owned();
            self.said.lock().unwrap().push((what, job));
        }
        Ok(())
    }
}

impl JobSource for Consumer {
    fn claim(
        &self,
        most: usize,
        jobs: &mut Vec<Claimed>,
        is_over: &dyn Fn() -> bool,
    ) -> Result<Supply, Error> {
        // Alone on its thread, it must not wait for what it has to acknowledge itself.
        if self.queue.waiting() == 0 {
            return Ok(Supply::Ended);
        }
        self.queue.claim(most, jobs, is_over)
    }

    fn extend(&self, leases: &[LeaseId]) -> Result<Lost, Error> {
        self.say("extend", leases)?;
        self.queue.extend(leases)
    }

    fn acknowledge(&self, leases: &[LeaseId]) -> Result<Lost, Error> {
        self.say("acknowledge", leases)?;
        for lease in leases {
            let url = url_of(lease.as_str().split_once('.').unwrap().0);
            assert!(self.ledger.holds(&url), "{url} is not durable");
        }
        self.queue.acknowledge(leases)
    }

    fn give_back(&self, leases: &[LeaseId]) -> Result<(), Error> {
        self.say("give back", leases)?;
        self.queue.give_back(leases)
    }

    fn dead_letter(&self, lease: &LeaseId, reason: &str) -> Result<Lost, Error> {
        self.say("dead letter", std::slice::from_ref(lease))?;
        self.queue.dead_letter(lease, reason)
    }
}

fn url_of(number: &str) -> String {
    format!("http://h/{number}")
}

const LEASE: Duration = Duration::from_secs(60);

/// A closed queue of so many URLs, which are called by their numbers, from 1.
fn queue(clock: &Arc<SimClock>, count: u32) -> MemoryQueue {
    let queue = MemoryQueue::new(clock.clone()).lease(LEASE);
    (1..=count).for_each(|number| queue.push(url_of(&number.to_string())));
    queue.close();
    queue
}

fn run<'a>(jobs: &'a Crew<'a>, sink: Box<dyn Sink>) -> Run<'a, Crew<'a>> {
    Run {
        jobs,
        clock: jobs.clock.clone(),
        sink,
        sync_each: false,
        max_deliveries: 5,
        keep: Keep::Nothing,
        passes: 1,
        pass_settings: PassSettings::default(),
        most_held: MOST_HELD,
        most_leased: MOST_HELD,
        total: None,
        deadline: None,
        sampling: None,
        window: Window::default(),
        stop_on_failures: None,
        on_progress: None,
        on_record: None,
        watched: Wanted::default(),
    }
}

fn numbers(range: std::ops::RangeInclusive<u32>) -> Vec<String> {
    range.map(|number| number.to_string()).collect()
}

#[test]
fn a_job_is_acknowledged_when_its_record_is_durable_and_then_once() {
    for (syncs, acknowledged_by_the_8th) in
        [(Syncs::Each, 7), (Syncs::Every(3), 6), (Syncs::AtTheEnd, 0)]
    {
        let (clock, ledger) = (Arc::default(), Ledger::default());
        let queue = queue(&clock, 8);
        let before = RefCell::new(0);
        let crew = Crew::new(&clock, |url| {
            *before.borrow_mut() = queue.acknowledged();
            ok(url)
        });
        let consumer = Consumer::of(&queue, &ledger);
        let ended = run(&crew, Page::of(&consumer, syncs)).run(consumer.jobs());
        assert!(ended.stopped.is_none());
        assert_eq!(*before.borrow(), acknowledged_by_the_8th, "{syncs:?}");
        assert_eq!(consumer.said("acknowledge"), numbers(1..=8), "{syncs:?}");
        assert_eq!((queue.acknowledged(), queue.handed_out(), queue.waiting()), (8, 0, 0));
        assert_eq!((ended.lost, ended.dead_lettered, consumer.said("give back").len()), (0, 0, 0));
    }
}

#[test]
fn what_is_not_durable_is_given_back_and_not_acknowledged() {
    for (syncs, acknowledged) in [(Syncs::Never, 0), (Syncs::FailsAt(4), 3)] {
        let (clock, ledger) = (Arc::default(), Ledger::default());
        let queue = queue(&clock, 6);
        let crew = Crew::new(&clock, ok);
        let consumer = Consumer::of(&queue, &ledger);
        let ended = run(&crew, Page::of(&consumer, syncs)).run(consumer.jobs());
        assert!(matches!(ended.stopped, Some(Stopped::SinkFailed(_))), "{ended:?}");
        assert_eq!(queue.acknowledged(), acknowledged, "{syncs:?}");
        assert_eq!(ledger.urls().len() as u64, acknowledged);
        assert_eq!((queue.handed_out(), queue.waiting() as u64), (0, 6 - acknowledged));
        // To be given back is no failure of the job's.
        let mut again = Vec::new();
        queue.claim(9, &mut again, &|| false).unwrap();
        assert!(again.iter().all(|job| job.lease.as_ref().unwrap().deliveries == 1), "{again:?}");
    }
}

#[test]
fn what_did_not_end_is_given_back() {
    let (clock, ledger) = (Arc::default(), Ledger::default());
    let queue = queue(&clock, 100);
    let play = |url: &str| match url {
        "http://h/1" => (0, Ok(response(503, vec![attempt(url)]))),
        _ => ok(url),
    };
    let mut crew = Crew::new(&clock, play);
    crew.stop_after = Some(4);
    let consumer = Consumer::of(&queue, &ledger);
    let mut run = run(&crew, Page::of(&consumer, Syncs::Each));
    run.passes = 2;
    let ended = run.run(consumer.jobs());
    // The first is held back for a pass that never comes, and the rest was not begun.
    assert_eq!(consumer.said("acknowledge"), numbers(2..=4));
    assert_eq!((queue.acknowledged(), queue.handed_out(), queue.waiting()), (3, 0, 97));
    assert_eq!(ended.unfinished, 2);
}

#[test]
fn what_failed_by_the_run_is_given_back_with_a_record_that_a_resumption_drops() {
    use crate::error::{Fault, Phase};
    for kind in [ErrorKind::ProxyAuth, ErrorKind::NoProxyAlive, ErrorKind::ExitLeak] {
        let (clock, ledger) = (Arc::default(), Ledger::default());
        let queue = queue(&clock, 5);
        let mut crew = Crew::new(&clock, |url| match url {
            "http://h/2" => (0, Err(Error::new(kind, Phase::Proxy, Fault::Proxy, "no"))),
            _ => ok(url),
        });
        crew.stop_after = Some(2);
        let consumer = Consumer::of(&queue, &ledger);
        let ended = run(&crew, Page::of(&consumer, Syncs::Each)).run(consumer.jobs());
        assert_eq!((ledger.urls().len(), ended.tally.urls()), (2, 2), "{kind:?}");
        assert_eq!(consumer.said("acknowledge"), numbers(1..=1), "{kind:?}");
        assert!(consumer.said("give back").contains(&"2".to_owned()), "{kind:?}");
        assert_eq!((queue.handed_out(), queue.waiting()), (0, 4), "{kind:?}");
        // Whoever comes next does what is left, and the queue is empty.
        let (crew, next) = (Crew::new(&clock, ok), Consumer::of(&queue, &ledger));
        run(&crew, Page::of(&next, Syncs::Each)).run(next.jobs());
        let asked: BTreeSet<_> = crew.asked().into_iter().collect();
        assert_eq!(asked, ["2", "3", "4", "5"].map(url_of).into(), "{kind:?}");
        assert_eq!((queue.acknowledged(), queue.waiting()), (5, 0), "{kind:?}");
    }
}

#[test]
fn what_describes_no_request_is_a_dead_letter_with_a_record() {
    let (clock, ledger) = (Arc::<SimClock>::default(), Ledger::default());
    let queue = MemoryQueue::new(clock.clone()).lease(LEASE);
    for line in [r#"{"url":"http://u:secret@h/","methd":1}"#, "http://h/2", "# nothing"] {
        queue.push(line);
    }
    queue.close();
    let crew = Crew::new(&clock, ok);
    let consumer = Consumer::of(&queue, &ledger);
    let ended = run(&crew, Page::of(&consumer, Syncs::Every(2))).run(consumer.jobs());
    let dead = queue.dead_letters();
    assert_eq!((ended.dead_lettered, dead.len(), queue.acknowledged()), (2, 2, 1));
    assert!(dead[0].reason.starts_with("queue:1: not a request as JSON: unknown field `methd`"));
    assert_eq!(dead[1].reason, "this job is a blank line; queue a URL or an object");
    let pages = ledger.0.lock().unwrap();
    let classes: Vec<_> = pages.durable.iter().map(|record| &*record.class).collect();
    assert_eq!(classes, ["input", "ok", "input"]);
    assert_eq!(crew.asked(), ["http://h/2"]);
}

#[test]
fn what_kills_everybody_is_not_tried_for_ever() {
    let (clock, ledger) = (Arc::default(), Ledger::default());
    let queue = queue(&clock, 3);
    let mut deaths = 0;
    let last = loop {
        let consumer = Consumer::of(&queue, &ledger);
        let killed = Arc::clone(&consumer.killed);
        let crew = Crew::new(&clock, |url| {
            if url == "http://h/2" {
                killed.store(true, Ordering::Relaxed);
            }
            ok(url)
        });
        let ended = run(&crew, Page::of(&consumer, Syncs::AtTheEnd)).run(consumer.jobs());
        if !consumer.killed.load(Ordering::Relaxed) {
            break ended;
        }
        deaths += 1;
        clock.advance(LEASE);
    };
    // Its neighbours come as often, since they were claimed with it.
    assert_eq!((deaths, last.dead_lettered, queue.dead_letters().len()), (5, 3, 3));
    let letters = queue.dead_letters();
    assert!(letters.iter().all(|letter| letter.deliveries == 6), "{letters:?}");
    let pages = ledger.0.lock().unwrap();
    let record = pages.durable.iter().find(|record| record.url == "http://h/2").unwrap();
    assert_eq!((record.url.as_str(), record.attempts.len()), ("http://h/2", 0));
    let error = record.error.as_ref().unwrap();
    assert_eq!(error.kind, "internal");
    assert!(error.message.starts_with("this job was handed out 5 times before"), "{error:?}");
}

#[test]
fn leases_are_extended_for_hours_while_a_job_waits_and_while_it_is_held() {
    let (clock, ledger) = (Arc::default(), Ledger::default());
    let queue = queue(&clock, 3);
    let asked = RefCell::new(BTreeMap::<String, u32>::new());
    let thief = queue.clone();
    let crew = Crew::new(&clock, |url| {
        // Nothing ever runs out, so nobody else gets anything.
        assert_eq!(thief.waiting(), 0);
        let times = *asked.borrow_mut().entry(url.to_owned()).and_modify(|n| *n += 1).or_insert(1);
        match (url, times) {
            ("http://h/1", 1) => (0, Ok(response(503, vec![attempt(url)]))),
            _ => (7200, Ok(response(200, vec![attempt(url)]))),
        }
    });
    let consumer = Consumer::of(&queue, &ledger);
    let mut run = run(&crew, Page::of(&consumer, Syncs::AtTheEnd));
    run.passes = 2;
    let ended = run.run(consumer.jobs());
    assert_eq!((queue.acknowledged(), ended.lost, ledger.urls().len()), (3, 0, 3));
    assert_eq!(ended.elapsed, secs(3.0 * 7200.0));
    // At half of a minute, each of the three over six hours, and not more often.
    let extended = consumer.said("extend").len();
    assert!((3 * 700..=3 * 720).contains(&extended), "{extended}");
}

#[test]
fn no_more_is_held_back_under_leases_than_may_be() {
    let (clock, ledger) = (Arc::default(), Ledger::default());
    let queue = queue(&clock, 40);
    // In hand are those of one claim, and what is held for the second pass.
    let most = Cell::new(0);
    let crew = Crew::new(&clock, |url| {
        most.set(queue.handed_out().max(most.get()));
        (0, Ok(response(503, vec![attempt(url)])))
    });
    let consumer = Consumer::of(&queue, &ledger);
    let mut run = run(&crew, Page::of(&consumer, Syncs::Each));
    (run.passes, run.most_leased) = (2, 3);
    let ended = run.run(consumer.jobs().within(2));
    assert!(most.get() <= 3 + 2, "{most:?}");
    assert_eq!((crew.asked().len(), ended.unfinished, ended.lost), (43, 0, 0));
    let pages = ledger.0.lock().unwrap();
    let passes: Vec<_> = pages.durable.iter().map(|record| record.pass).collect();
    assert_eq!(passes, [vec![1; 37], vec![2; 3]].concat());
    assert_eq!((queue.acknowledged(), queue.handed_out()), (40, 0));
}

#[test]
fn a_lost_lease_leaves_the_record_to_whoever_has_the_job() {
    let (clock, ledger) = (Arc::default(), Ledger::default());
    let queue = queue(&clock, 3);
    let stolen = RefCell::new(Vec::new());
    let crew = Crew::new(&clock, |url| {
        if url == "http://h/1" {
            // The machine slept for an hour, and somebody took what was there.
            clock.advance(secs(3600.0));
            queue.claim(2, &mut stolen.borrow_mut(), &|| false).unwrap();
        }
        ok(url)
    });
    let consumer = Consumer::of(&queue, &ledger);
    let ended = run(&crew, Page::of(&consumer, Syncs::Each)).run(consumer.jobs());
    let urls: Vec<_> = stolen.borrow().iter().map(|job| job.lease.clone().unwrap()).collect();
    assert!(urls.iter().all(|lease| lease.deliveries == 2), "{urls:?}");
    // The third came back, and was handed out to this run once more.
    assert_eq!(crew.asked(), ["http://h/1", "http://h/3"]);
    assert_eq!((ledger.urls(), ended.unfinished), (vec![url_of("3")], 0));
    assert_eq!((ended.lost, queue.acknowledged(), queue.handed_out()), (3, 1, 2));
}

#[test]
fn a_loss_that_shows_when_the_job_is_acknowledged_is_counted() {
    struct Loses(Consumer);
    impl JobSource for Loses {
        fn claim(
            &self,
            most: usize,
            jobs: &mut Vec<Claimed>,
            is_over: &dyn Fn() -> bool,
        ) -> Result<Supply, Error> {
            self.0.claim(most, jobs, is_over)
        }
        fn extend(&self, leases: &[LeaseId]) -> Result<Lost, Error> {
            self.0.extend(leases)
        }
        fn acknowledge(&self, leases: &[LeaseId]) -> Result<Lost, Error> {
            let _none = self.0.acknowledge(leases)?;
            Ok(leases.iter().take(1).cloned().collect())
        }
        fn give_back(&self, leases: &[LeaseId]) -> Result<(), Error> {
            self.0.give_back(leases)
        }
        fn dead_letter(&self, lease: &LeaseId, reason: &str) -> Result<Lost, Error> {
            self.0.dead_letter(lease, reason)
        }
    }
    let (clock, ledger) = (Arc::default(), Ledger::default());
    let queue = queue(&clock, 4);
    let crew = Crew::new(&clock, ok);
    let consumer = Consumer::of(&queue, &ledger);
    let jobs = Input::from(Loses(consumer.clone()));
    let jobs = jobs.jobs(Known::default(), Arc::new(|| false));
    let ended = run(&crew, Page::of(&consumer, Syncs::AtTheEnd)).run(jobs);
    assert_eq!((ended.lost, ended.tally.urls(), ended.stopped.is_none()), (1, 4, true));
}

#[test]
fn a_queue_that_is_away_for_a_while_costs_nothing() {
    let (clock, ledger) = (Arc::default(), Ledger::default());
    let queue = queue(&clock, 3);
    let consumer = Consumer::of(&queue, &ledger);
    let deaf = Arc::clone(&consumer.deaf);
    let crew = Crew::new(&clock, |url| {
        // Two attempts to extend fail, then one to acknowledge.
        deaf.store(if url == "http://h/2" { 1 } else { 2 }, Ordering::Relaxed);
        (59, Ok(response(200, vec![attempt(url)])))
    });
    let ended = run(&crew, Page::of(&consumer, Syncs::Each)).run(consumer.jobs());
    assert!(ended.stopped.is_none(), "{ended:?}");
    assert_eq!((queue.acknowledged(), ended.lost), (3, 0));
    assert_eq!(consumer.said("acknowledge"), numbers(1..=3));
}

#[test]
fn a_queue_that_does_not_come_back_ends_the_run() {
    let (clock, ledger) = (Arc::default(), Ledger::default());
    let queue = queue(&clock, 40);
    let consumer = Consumer::of(&queue, &ledger);
    let deaf = Arc::clone(&consumer.deaf);
    let crew = Crew::new(&clock, |url| {
        if url == "http://h/3" {
            deaf.store(u32::MAX, Ordering::Relaxed);
        }
        (20, Ok(response(200, vec![attempt(url)])))
    });
    let ended = run(&crew, Page::of(&consumer, Syncs::Each)).run(consumer.jobs());
    let Some(Stopped::SourceFailed(error)) = &ended.stopped else { panic!("{ended:?}") };
    assert_eq!(error.message(), "the queue is away");
    assert_eq!(consumer.said("acknowledge"), numbers(1..=2));
    // One lease lasts; when it had run out, nothing more was begun.
    assert!((3..=6).contains(&crew.asked().len()), "{:?}", crew.asked());
    assert_eq!(queue.waiting(), 38);
}

#[test]
fn what_has_a_record_from_before_is_acknowledged_and_not_asked_for() {
    let (clock, ledger) = (Arc::default(), Ledger::default());
    let queue = queue(&clock, 4);
    queue.push(url_of("2"));
    let key = |number| Key::of_request(&http::Method::GET, &url_of(number), b"");
    // Of the second there is one record, and two jobs.
    let done: Done = ["2", "4"].map(key).into_iter().collect();
    let consumer = Consumer::of(&queue, &ledger);
    for number in ["2", "4"] {
        let record = Record::parse(crate::batch::record::tests::SMALL.as_bytes()).unwrap();
        let record = Record { url: url_of(number), ..record };
        ledger.0.lock().unwrap().durable.push(record);
    }
    let crew = Crew::new(&clock, ok);
    // Known to the ledger by the number of its job.
    let record = ledger.0.lock().unwrap().durable[0].clone();
    ledger.0.lock().unwrap().durable.push(Record { url: url_of("5"), ..record });
    let ended = run(&crew, Page::of(&consumer, Syncs::AtTheEnd)).run(consumer.jobs_after(done));
    assert_eq!(crew.asked(), ["1", "3", "2"].map(url_of));
    let said: BTreeSet<_> = consumer.said("acknowledge").into_iter().collect();
    assert_eq!(said.len(), 5);
    assert_eq!((queue.acknowledged(), ended.tally.urls()), (5, 3));
}

/// Calls each lease by the name of its job, as queues do that have no other name.
struct ByJob(Consumer);

impl ByJob {
    fn with<T>(&self, leases: &[LeaseId], call: impl Fn(&[LeaseId]) -> T) -> T {
        // The second handing out is the one that counts.
        let full = |id: &LeaseId| LeaseId::from(format!("{id}.{id}"));
        call(&leases.iter().map(full).collect::<Vec<_>>())
    }
}

impl JobSource for ByJob {
    fn claim(
        &self,
        most: usize,
        jobs: &mut Vec<Claimed>,
        is_over: &dyn Fn() -> bool,
    ) -> Result<Supply, Error> {
        let supply = self.0.claim(most, jobs, is_over)?;
        let again: Vec<_> = jobs
            .drain(..)
            .flat_map(|job| {
                let lease = job.lease.clone().unwrap();
                let number = lease.id.as_str().split_once('.').unwrap().0;
                let of = |deliveries| {
                    let lease = Lease::new(number).lasts(lease.lasts).deliveries(deliveries);
                    let place = crate::batch::Place { source: "q".into(), line: 1 };
                    Claimed::line(&url_of(number), place).unwrap().under(lease)
                };
                [of(1), of(2)]
            })
            .collect();
        jobs.extend(again);
        Ok(supply)
    }
    fn extend(&self, leases: &[LeaseId]) -> Result<Lost, Error> {
        self.with(leases, |leases| self.0.extend(leases))
    }
    fn acknowledge(&self, leases: &[LeaseId]) -> Result<Lost, Error> {
        self.with(leases, |leases| self.0.acknowledge(leases))
    }
    fn give_back(&self, leases: &[LeaseId]) -> Result<(), Error> {
        self.with(leases, |leases| self.0.give_back(leases))
    }
    fn dead_letter(&self, lease: &LeaseId, reason: &str) -> Result<Lost, Error> {
        self.with(std::slice::from_ref(lease), |some| self.0.dead_letter(&some[0], reason))
    }
}

#[test]
fn a_job_that_comes_again_while_the_run_has_it_is_done_once() {
    let (clock, ledger) = (Arc::default(), Ledger::default());
    let queue = queue(&clock, 5);
    let crew = Crew::new(&clock, ok);
    let consumer = Consumer::of(&queue, &ledger);
    let jobs = Input::from(ByJob(consumer.clone()));
    let jobs = jobs.jobs(Known::default(), Arc::new(|| false));
    let ended = run(&crew, Page::of(&consumer, Syncs::Every(2))).run(jobs);
    assert_eq!((crew.asked().len(), ledger.urls().len(), ended.lost), (5, 5, 0));
    assert_eq!((queue.acknowledged(), consumer.said("acknowledge")), (5, numbers(1..=5)));
}

/// What happens to one consumer after the other.
#[derive(Clone, Debug)]
struct Fate {
    syncs: Syncs,
    dies_at: Option<usize>,
    passes: u32,
    slow: u32,
    deaf: u32,
}

fn fates() -> impl proptest::strategy::Strategy<Value = Vec<Fate>> {
    use proptest::prelude::*;
    let syncs = prop_oneof![
        Just(Syncs::Each),
        (1..9_u64).prop_map(Syncs::Every),
        Just(Syncs::AtTheEnd),
        Just(Syncs::Never),
        (1..20_u64).prop_map(Syncs::FailsAt),
    ];
    let fate = (syncs, prop::option::of(0..30_usize), 1..3_u32, 0..40_u32, 0..4_u32);
    let fate = fate.prop_map(|(syncs, dies_at, passes, slow, deaf)| Fate {
        syncs,
        dies_at,
        passes,
        slow,
        deaf,
    });
    proptest::collection::vec(fate, 1..6)
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig::with_cases(64))]

    /// However the consumers end, the queue is empty at last, nothing is acknowledged that is not
    /// durable (asserted where it is said), and nothing is done for good twice.
    #[test]
    fn every_job_ends_exactly_once_whoever_dies(fates in fates()) {
        let (clock, ledger) = (Arc::<SimClock>::default(), Ledger::default());
        let queue = queue(&clock, 40);
        queue.push("{");
        let ends = Fate { syncs: Syncs::Every(7), dies_at: None, passes: 2, slow: 1, deaf: 0 };
        let mut settled = Vec::new();
        for fate in fates.iter().chain([&ends]) {
            let consumer = Consumer::of(&queue, &ledger);
            consumer.deaf.store(fate.deaf, Ordering::Relaxed);
            let killed = Arc::clone(&consumer.killed);
            let (asked, dies_at) = (RefCell::new(0), fate.dies_at);
            let crew = Crew::new(&clock, |url| {
                *asked.borrow_mut() += 1;
                if dies_at.is_some_and(|at| *asked.borrow() > at) {
                    killed.store(true, Ordering::Relaxed);
                }
                let status = if url.ends_with('7') { 503 } else { 200 };
                (fate.slow, Ok(response(status, vec![attempt(url)])))
            });
            let mut run = run(&crew, Page::of(&consumer, fate.syncs));
            run.passes = fate.passes;
            run.max_deliveries = u32::MAX;
            run.run(consumer.jobs());
            settled.extend(consumer.said("acknowledge"));
            settled.extend(consumer.said("dead letter"));
            clock.advance(LEASE);
        }
        settled.sort_unstable();
        let count = settled.len();
        settled.dedup();
        proptest::prop_assert_eq!((count, settled.len()), (41, 41));
        proptest::prop_assert_eq!((queue.acknowledged(), queue.dead_letters().len()), (40, 1));
        proptest::prop_assert_eq!((queue.waiting(), queue.handed_out()), (0, 0));
    }
}
