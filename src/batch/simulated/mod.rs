//! Whole runs over many seeds, with everything that can go wrong at once.
//!
//! What runs is real: the loop of a batch with its passes, its input, its records and its journal,
//! the scheduler, the steps of the workers, the flights with their policies, the proxies. It runs in
//! [lock-step](crate::workers::lockstep), on a clock that jumps, against an [`origin`] that shares no
//! code with it and counts what it sees. A [`plan`] decides by a seed how it is set, what fails, and
//! when it is stopped, aborted, killed or cut off from power; after that it is resumed from what has
//! survived, until every URL has its record.
//!
//! What must hold, after every event: each job ends once; no limit is exceeded, of rates with their
//! bursts and of what is under way, by run, host, proxy and credential; no worker sleeps; no wait
//! ends early; what is due goes before what is fresh; the permits bound what is held; no attempt is
//! made after the deadline, and nothing ends later. And in the end: one record for each URL, none of
//! them fetched again, none lost.
//!
//! `LONGHAUL_SIM_SEEDS=20000` runs more seeds, `LONGHAUL_SIM_SEED=17` one of them.

mod origin;
mod plan;

use self::origin::{CUT, ECHO, Origin, State, World, name_of};
use self::plan::{Blow, Plan};
use super::exit_sample::Sampling;
use super::feed::{Feed, PassSettings};
use super::journal::{Done, Existing, Journal};
use super::keep::Keep;
use super::run::{Ended, Jobs, Run};
use super::source::{Known, Source};
use super::stop::Stopped;
use super::watch::Wanted;
use super::window::Window;
use super::writer::{Output, RecordWriter};
use super::{Durable, Input, Record};
use crate::message::Request;
use crate::rng::Rng;
use crate::time::{Clock, SimClock, secs};
use crate::workers::lockstep::{Lane, Latency, LockStep, Sleepless};
use crate::workers::{Finished, PoolStats, StopReason};
use http::Method;
use std::cell::{Cell, RefCell};
use std::collections::{BTreeSet, HashSet};
use std::fs;
use std::io::{self, Write};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread;
use std::time::{Duration, Instant};
use url::Url;

/// A file in memory that knows what of it would survive.
#[derive(Clone, Default)]
struct Page(Arc<Mutex<Bytes>>);

#[derive(Default)]
struct Bytes {
    written: Vec<u8>,
    synced: usize,
    /// What was there before.
    base: usize,
}

impl Page {
    fn lock(&self) -> MutexGuard<'_, Bytes> {
        self.0.lock().expect("nobody panics within")
    }
}

impl Write for Page {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.lock().written.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Output for Page {
    fn cut(&mut self, length: u64) -> io::Result<()> {
        self.lock().written.truncate(length as usize);
        Ok(())
    }

    fn durable(&self) -> io::Result<Option<Box<dyn Durable>>> {
        Ok(Some(Box::new(self.clone())))
    }
}

impl Durable for Page {
    fn sync(&mut self) -> io::Result<()> {
        let mut bytes = self.lock();
        bytes.synced = bytes.written.len();
        Ok(())
    }
}

/// The pool as the loop of a batch sees it.
struct Pool {
    steps: Rc<LockStep>,
    world: Arc<World>,
    rng: RefCell<Rng>,
    deadline: Option<Duration>,
    crashed: Rc<Cell<bool>>,
}

impl Jobs for Pool {
    fn run(&self, jobs: Feed, take: &mut dyn FnMut(Option<Finished>)) {
        let mut indices = HashSet::new();
        let lying = self.rng.borrow_mut().below(4);
        let mut dawdles = || self.rng.borrow_mut().below(4) < lying;
        self.steps.drive(jobs, &mut dawdles, &mut |finished| {
            if let Some(finished) = &finished {
                assert!(indices.insert(finished.index), "{} ended twice", finished.index);
                self.check(finished);
            }
            let wrong = std::mem::take(&mut self.world.lock().wrong);
            assert!(wrong.is_empty(), "{wrong:#?}");
            take(finished);
        });
    }

    fn stats(&self) -> PoolStats {
        self.steps.stats()
    }

    fn abort(&self) {
        self.steps.stopper().abort();
    }

    fn close(&self, cause: String) {
        self.steps.stopper().close_because(StopReason::rule(cause));
    }

    fn stopped(&self) -> Option<Stopped> {
        self.steps.stop_reason().map(|reason| Stopped::Rule(reason.to_string()))
    }
}

impl Pool {
    fn check(&self, finished: &Finished) {
        let late = self.deadline.is_some_and(|deadline| finished.elapsed > deadline);
        assert!(!late, "{finished:?} ended after its deadline of {:?}", self.deadline);
        let made: Duration = finished.attempts().iter().map(|attempt| attempt.elapsed).sum();
        assert!(made <= finished.elapsed, "{finished:?} attempted for longer than it took");
    }
}

/// What one life of a run left behind.
struct Left {
    results: Vec<u8>,
    /// Whether nothing is left to be done.
    complete: bool,
}

/// The seeds that came across what the simulation is for.
#[derive(Debug, Clone, Copy, Default)]
struct Seen {
    lives: u64,
    attempts: u64,
    blows: u64,
    cancelled: u64,
    panics: u64,
    /// Waits behind a limit, and of them those in the middle of a step.
    at_limits: u64,
    interrupted: u64,
    /// By their deadline, while no worker had them.
    expired: u64,
}

impl Seen {
    fn add(&mut self, other: Self) {
        self.lives += other.lives;
        self.attempts += other.attempts;
        self.blows += other.blows;
        self.cancelled += other.cancelled;
        self.panics += other.panics;
        self.at_limits += other.at_limits;
        self.interrupted += other.interrupted;
        self.expired += other.expired;
    }
}

/// One run from its first life to its last.
fn run_through(seed: u64) -> (Seen, Vec<(Duration, String, Option<usize>)>) {
    let plan = Plan::of(seed);
    let clock = Arc::new(SimClock::default());
    let mut rng = Rng::stream(seed, 2);
    let (mut seen, mut attempts) = (Seen::default(), Vec::new());
    let mut results = Vec::new();
    for life in 0.. {
        assert!(life < 12, "seven lives, and it is not done");
        let left = live(&plan, life, &clock, results, &mut rng, &mut seen, &mut attempts);
        results = left.results;
        seen.lives += 1;
        if left.complete {
            break;
        }
    }
    let records = records(&results);
    let urls: BTreeSet<&str> = records.iter().map(|record| record.url.as_str()).collect();
    let source = plan.source();
    assert_eq!(urls, source.iter().map(String::as_str).collect(), "the URLs with a record");
    assert_eq!(records.len(), source.len(), "one record for each URL");
    let is_cut =
        |record: &&Record| record.error.as_ref().is_some_and(|error| error.message.contains(CUT));
    assert!(records.iter().find(is_cut).is_none(), "a cut is recorded as the word of a server");
    (seen, attempts)
}

fn records(results: &[u8]) -> Vec<Record> {
    let lines = results.split_inclusive(|byte| *byte == b'\n');
    lines.map(|line| Record::parse(line).expect("a record")).collect()
}

/// What a resumption finds: the keys that are done, and the file as it is from then on.
fn resumed(results: &[u8], retry_failed: bool) -> (Done, Vec<u8>) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("results.jsonl");
    fs::write(&path, results).expect("written");
    let journal = Journal::open(&path, Existing::Resume { retry_failed }).expect("results");
    let done = journal.done().clone();
    drop(journal.begin().expect("a file that is ready"));
    (done, fs::read(&path).expect("read"))
}

fn live(
    plan: &Plan,
    life: usize,
    clock: &Arc<SimClock>,
    results: Vec<u8>,
    rng: &mut Rng,
    seen: &mut Seen,
    attempts: &mut Vec<(Duration, String, Option<usize>)>,
) -> Left {
    let (done, results) = match life {
        0 => (Done::default(), results),
        _ => resumed(&results, plan.retry_failed && !plan.is_calm(life)),
    };
    let begin = clock.now();
    let recorded = records(&results);
    let names = recorded.iter().map(|record| name_of(&Url::parse(&record.url).expect("a URL")));
    let world = Arc::new(World::new(plan, life, begin, names.collect()));

    let cut = Arc::new(AtomicBool::new(false));
    let sleepless = Arc::new(Sleepless { clock: Arc::clone(clock), slept: AtomicBool::new(false) });
    let latency = Arc::new(Latency(Arc::clone(clock))) as Arc<dyn Clock>;
    let (of_origin, of_cut) = (Arc::clone(&world), Arc::clone(&cut));
    let recipe = plan.recipe().transport(move || Origin {
        world: Arc::clone(&of_origin),
        clock: Arc::clone(&latency),
        cut: Arc::clone(&of_cut),
    });
    let watched = Arc::clone(&world);
    let ended = move |worker| watched.step_ended(worker);
    let pool = plan.workers(recipe.clone());
    let steps = Rc::new(LockStep::new(&pool, Arc::clone(&sleepless), cut, &ended));

    let page = Page::default();
    *page.lock() = Bytes { written: results.clone(), synced: results.len(), base: results.len() };
    let crashed = Rc::new(Cell::new(false));
    let survivors = Rc::new(RefCell::new(Vec::new()));
    if let Some((after, blow)) = plan.blows.get(life).copied() {
        let (page, crashed) = (page.clone(), Rc::clone(&crashed));
        let (survivors, sync_each) = (Rc::clone(&survivors), plan.sync_each);
        let mut rng = Rng::stream(plan.seed, 50 + life as u64);
        let deed = move |steps: &LockStep| match blow {
            Blow::Close => steps.stopper().close(),
            Blow::Abort => steps.stopper().abort(),
            Blow::Kill | Blow::PowerCut => {
                crashed.set(true);
                *survivors.borrow_mut() = surviving(&page.lock(), blow, sync_each, &mut rng);
                steps.stopper().abort();
            }
        };
        steps.plan(begin + after, Box::new(deed));
    }
    let beside = Beside::new(plan, life, &steps, rng, begin);

    let jobs = Pool {
        steps: Rc::clone(&steps),
        world: Arc::clone(&world),
        rng: RefCell::new(Rng::stream(plan.seed, 200 + life as u64)),
        deadline: plan.timeouts.deadline(),
        crashed: Rc::clone(&crashed),
    };
    let (told, each) = (page.clone(), plan.sync_each);
    let run = Run {
        jobs: &jobs,
        clock: Arc::clone(&sleepless) as Arc<dyn Clock>,
        sink: Box::new(RecordWriter::output("page", Box::new(page.clone()), results.len() as u64)),
        sync_each: plan.sync_each,
        max_deliveries: 5,
        keep: Keep::Nothing,
        passes: plan.passes,
        pass_settings: PassSettings::default(),
        most_held: plan.most_held,
        most_leased: plan.most_held,
        total: None,
        deadline: plan.timeouts.deadline(),
        sampling: plan.samples.map(|every| Sampling::new(ECHO.to_owned(), every, None, recipe)),
        window: Window::default(),
        stop_on_failures: None,
        on_progress: None,
        watched: Wanted::default(),
        on_record: Some(Box::new(move |_| {
            let bytes = told.lock();
            assert!(!each || bytes.synced == bytes.written.len(), "told of, and not durable");
        })),
    };
    let ended =
        run.run(Input::from(Source::urls(plan.source())).jobs(Known::of(done), Arc::new(|| false)));
    while steps.turn() {}
    beside.check(seen);
    assert!(steps.is_idle(), "the run is over, and jobs are left");
    let stats = steps.stats();
    assert_eq!((stats.fed, stats.in_flight), (stats.finished, 0));
    check_end(&ended, &jobs, &world);
    let state = std::mem::take(&mut *world.lock());
    note(seen, &state, &stats, crashed.get() || ended.stopped.is_some());
    let counts = steps.counts();
    seen.at_limits += counts.at_limits;
    seen.interrupted += counts.interrupted;
    seen.expired += counts.expired;
    attempts.extend(state.attempts);
    if crashed.get() {
        return Left { results: survivors.take(), complete: false };
    }
    let results = page.lock().written.clone();
    Left { results, complete: ended.stopped.is_none() && ended.unfinished == 0 }
}

/// What a blow leaves of the results.
fn surviving(bytes: &Bytes, blow: Blow, sync_each: bool, rng: &mut Rng) -> Vec<u8> {
    let written = &bytes.written;
    let length = match blow {
        Blow::PowerCut if sync_each => bytes.synced + rng.below(written.len() - bytes.synced + 1),
        Blow::PowerCut => bytes.base + rng.below(written.len() - bytes.base + 1),
        _ if written.len() == bytes.base || rng.below(2) == 0 => written.len(),
        // In the middle of the last line.
        _ => {
            let before = &written[..written.len() - 1];
            let line = before.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
            line + rng.below(written.len() - line)
        }
    };
    written[..length].to_vec()
}

fn check_end(ended: &Ended, jobs: &Pool, world: &World) {
    let wrong = std::mem::take(&mut world.lock().wrong);
    assert!(wrong.is_empty(), "{wrong:#?}");
    if jobs.crashed.get() {
        return;
    }
    if ended.stopped.is_none() {
        assert_eq!(ended.unfinished, 0, "{ended:?}");
    }
}

fn note(seen: &mut Seen, state: &State, stats: &PoolStats, blown: bool) {
    seen.attempts += state.attempts.len() as u64;
    seen.panics += stats.panics;
    seen.blows += u64::from(blown);
}

/// Jobs in a lane of their own, some of which are given up while the batch runs.
struct Beside {
    count: usize,
    lane: Rc<RefCell<Option<Lane>>>,
    dropped: Rc<Cell<bool>>,
}

impl Beside {
    fn new(plan: &Plan, life: usize, steps: &LockStep, rng: &mut Rng, begin: Instant) -> Self {
        let count = if life == 0 { plan.beside } else { 0 };
        let request = |n| Request::new(Method::GET, format!("http://h0.test/beside{n}"));
        let (ids, lane) = steps.beside((0..count).map(request).collect());
        let lane = Rc::new(RefCell::new(Some(lane)));
        for id in ids {
            if rng.below(3) == 0 {
                let at = begin + secs(rng.uniform(0.0, 20.0));
                steps.plan(at, Box::new(move |steps| steps.cancel(id)));
            }
        }
        let dropped = Rc::new(Cell::new(false));
        if rng.below(4) == 0 {
            let (lane, dropped) = (Rc::clone(&lane), Rc::clone(&dropped));
            let deed = move |_: &LockStep| {
                dropped.set(true);
                lane.borrow_mut().take();
            };
            steps.plan(begin + secs(rng.uniform(0.0, 20.0)), Box::new(deed));
        }
        Self { count, lane, dropped }
    }

    fn check(&self, seen: &mut Seen) {
        let Some(lane) = self.lane.borrow_mut().take() else {
            assert!(self.dropped.get());
            return;
        };
        let results = lane.taken();
        let indices: BTreeSet<u64> = results.iter().map(|finished| finished.index).collect();
        assert_eq!((indices.len(), results.len()), (self.count, self.count), "beside the batch");
        seen.cancelled += results.iter().filter(|finished| finished.is_cancelled()).count() as u64;
    }
}

/// Runs a seed, and says how to run it again where it fails.
fn tried(seed: u64) -> Seen {
    match catch_unwind(AssertUnwindSafe(|| run_through(seed).0)) {
        Ok(seen) => seen,
        Err(panic) => {
            eprintln!(
                "\nseed {seed} fails; this runs it alone:\n    LONGHAUL_SIM_SEED={seed} cargo test \
                 --all-features --lib simulated::every_promise -- --nocapture\n{:?}",
                Plan::of(seed)
            );
            resume_unwind(panic)
        }
    }
}

fn asked_for(variable: &str) -> Option<u64> {
    std::env::var(variable).ok().map(|text| text.parse().expect("a number"))
}

#[test]
fn every_promise_holds_over_a_thousand_seeds() {
    if let Some(seed) = asked_for("LONGHAUL_SIM_SEED") {
        eprintln!("{:?}", tried(seed));
        return;
    }
    let seeds = asked_for("LONGHAUL_SIM_SEEDS").unwrap_or(1000);
    let next = AtomicU64::new(0);
    let threads = thread::available_parallelism().map_or(1, |cores| cores.get().min(8));
    let all = thread::scope(|scope| {
        let run = || {
            let mut all = Seen::default();
            loop {
                let seed = next.fetch_add(1, Ordering::Relaxed);
                if seed >= seeds {
                    return all;
                }
                all.add(tried(seed));
            }
        };
        let runs: Vec<_> = (0..threads).map(|_| scope.spawn(run)).collect();
        let mut all = Seen::default();
        for run in runs {
            match run.join() {
                Ok(seen) => all.add(seen),
                Err(panic) => resume_unwind(panic),
            }
        }
        all
    });
    eprintln!("{seeds} seeds: {all:?}");
    // The dice leave enough of everything.
    if seeds >= 1000 {
        assert!(all.lives > seeds && all.blows > 300 && all.attempts > 30 * seeds, "{all:?}");
        assert!(all.cancelled > 100 && all.panics > 300, "{all:?}");
        assert!(all.interrupted > 500 && all.expired > 10, "{all:?}");
    }
}

#[test]
fn a_seed_repeats_itself() {
    for seed in [3, 4, 5, 6, 7, 8] {
        assert_eq!(run_through(seed).1, run_through(seed).1, "seed {seed}");
    }
}
