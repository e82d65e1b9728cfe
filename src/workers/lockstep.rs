//! A worker pool in lock-step: everything of a pool but its threads' freedom.
//!
//! The scheduler, the worker's step, the job that answers once, the permits, the stop and its rule
//! are the real ones, and so is whatever the steps do. What is replaced is time, and who runs when:
//! each worker has a thread, but only one of them, or the conductor, runs at any moment. A worker
//! whose transport lets time pass hands over to the conductor, which goes on to whatever is next:
//! another worker, a wait that ends, a deed of the test. So a whole run is one sequence of events in
//! the order of time, it repeats itself from a seed, and nothing in it is known too early.

use super::builder::{Checked, WorkerPoolBuilder};
use super::dispatch::{Event, Job, Shared, hear};
use super::feeder::{Feeder, Results};
use super::lane::{Output, Polled, lane};
use super::run::Run;
use super::scheduler::{Action, Ending, JobId, Scheduler};
use super::stage::Source;
use super::stats::PoolStats;
use super::stop::{Control, Hook, StopReason, Stopper};
use super::task::{Finished, FlightTask};
use super::worker::{self, MakeContext};
use crate::error::WaitReason;
use crate::message::{IntoRequest, Request};
use crate::time::{Clock, SimClock};
use crossbeam_channel::{Receiver, Sender, unbounded};
use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

type Boxed = Box<Job<FlightTask>>;

/// What a worker is told.
enum Order {
    Step(Boxed),
    GoOn,
}

/// What a worker says, after which it is silent.
enum Word {
    /// Its transport lets time pass.
    Sleeps(Instant),
    Landed(Event<FlightTask>),
}

/// The worker's end.
struct Line {
    orders: Receiver<Order>,
    words: Sender<Word>,
    cut: Arc<AtomicBool>,
}

thread_local! {
    static LINE: RefCell<Option<Line>> = const { RefCell::new(None) };
}

/// The clock of the transports: whoever sleeps on it hands over to the conductor.
#[derive(Debug)]
pub(crate) struct Latency(pub(crate) Arc<SimClock>);

impl Clock for Latency {
    fn now(&self) -> Instant {
        self.0.now()
    }

    fn wall(&self) -> SystemTime {
        self.0.wall()
    }

    fn sleep_until(&self, until: Instant) {
        LINE.with_borrow(|line| {
            let line = line.as_ref().expect("a worker");
            if until > self.now() && !line.cut.load(Ordering::Relaxed) {
                let _ = line.words.send(Word::Sleeps(until));
                // Where the test has failed meanwhile, nobody is left to wait for.
                let _ = line.orders.recv();
            }
        });
    }
}

/// The clock of everything else: a worker that sleeps on it breaks the first promise there is.
#[derive(Debug)]
pub(crate) struct Sleepless {
    pub(crate) clock: Arc<SimClock>,
    pub(crate) slept: AtomicBool,
}

impl Clock for Sleepless {
    fn now(&self) -> Instant {
        self.clock.now()
    }

    fn wall(&self) -> SystemTime {
        self.clock.wall()
    }

    fn sleep_until(&self, _: Instant) {
        self.slept.store(true, Ordering::Relaxed);
    }
}

/// What is done at its time, from outside.
pub(crate) type Deed = Box<dyn FnOnce(&LockStep)>;

/// What was come across.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Counts {
    /// Waits behind a limit.
    pub(crate) at_limits: u64,
    /// Of them those that come after an attempt of the same step.
    pub(crate) interrupted: u64,
    /// Jobs that ended by their deadline while no worker had them.
    pub(crate) expired: u64,
}

/// The pool.
pub(crate) struct LockStep {
    shared: Arc<Shared<FlightTask>>,
    clock: Arc<SimClock>,
    sleepless: Arc<Sleepless>,
    cut: Arc<AtomicBool>,
    permits: usize,
    /// Whether fresh jobs go behind all due ones, whatever the hosts bear.
    hosts_are_free: bool,
    /// Whether a worker that idles while a job is ready is a mistake.
    is_unlimited: bool,
    state: RefCell<State>,
}

struct State {
    scheduler: Scheduler<Boxed>,
    inbox: Receiver<Event<FlightTask>>,
    crew: Vec<(Sender<Order>, Receiver<Word>)>,
    idle: Vec<usize>,
    /// Workers whose transport lets time pass, in the order of time.
    asleep: BTreeMap<(Instant, u64), usize>,
    naps: u64,
    agenda: BTreeMap<(Instant, u64), Deed>,
    /// The waits that have begun.
    waits: HashMap<JobId, Instant>,
    counts: Counts,
}

impl LockStep {
    /// A pool with these settings, whose recipe has [`Latency`] in its transports; `ended` is told of
    /// each worker whose step is over.
    pub(crate) fn new(
        pool: &WorkerPoolBuilder,
        sleepless: Arc<Sleepless>,
        cut: Arc<AtomicBool>,
        ended: &(impl Fn(usize) + Clone + Send + 'static),
    ) -> Self {
        let checked = pool.checked().expect("settings that can work");
        let scheduler = checked.scheduler();
        let hosts_are_free = !checked
            .limits
            .as_ref()
            .is_some_and(|limits| limits.lock().expect("nobody panics within").knows_hosts());
        let is_unlimited = checked.limits.is_none();
        let Checked { session, workers, permits, rule, .. } = checked;
        let session = session.clock(Arc::clone(&sleepless) as Arc<dyn Clock>);
        let cutting = Arc::clone(&cut);
        let hook = Hook(Arc::new(move || cutting.store(true, Ordering::Relaxed)));
        let clock = Arc::clone(&sleepless) as Arc<dyn Clock>;
        let (shared, inbox) = Shared::new(Control::new(Some(hook)), clock, rule);
        let make = Arc::new(MakeContext(Box::new(move || session.build())));
        let crew = (0..workers).map(|number| {
            let (orders, to_worker) = unbounded();
            let (words, from_worker) = unbounded();
            let line = Line { orders: to_worker, words, cut: Arc::clone(&cut) };
            let (shared, make, ended) = (Arc::clone(&shared), Arc::clone(&make), ended.clone());
            thread::spawn(move || work(number, line, &shared, &make, &ended));
            (orders, from_worker)
        });
        let state = State {
            scheduler,
            inbox,
            crew: crew.collect(),
            idle: (0..workers).rev().collect(),
            asleep: BTreeMap::new(),
            naps: 0,
            agenda: BTreeMap::new(),
            waits: HashMap::new(),
            counts: Counts::default(),
        };
        let clock = Arc::clone(&sleepless.clock);
        let state = RefCell::new(state);
        Self { shared, clock, sleepless, cut, permits, hosts_are_free, is_unlimited, state }
    }

    /// Puts a deed onto the agenda.
    pub(crate) fn plan(&self, at: Instant, deed: Deed) {
        let mut state = self.state.borrow_mut();
        let number = state.agenda.len() as u64;
        state.agenda.insert((at, number), deed);
    }

    pub(crate) fn stopper(&self) -> Stopper {
        Stopper::new(Arc::clone(&self.shared))
    }

    pub(crate) fn stats(&self) -> PoolStats {
        self.shared.counters.snapshot()
    }

    pub(crate) fn stop_reason(&self) -> Option<StopReason> {
        self.shared.control.reason()
    }

    pub(crate) fn counts(&self) -> Counts {
        self.state.borrow().counts
    }

    /// Whether every job has answered.
    pub(crate) fn is_idle(&self) -> bool {
        let state = self.state.borrow();
        state.scheduler.is_idle() && state.asleep.is_empty()
    }

    /// Runs jobs to their end. `dawdles` says whether results are left lying for now.
    pub(crate) fn drive<I>(
        &self,
        jobs: I,
        dawdles: &mut dyn FnMut() -> bool,
        take: &mut dyn FnMut(Option<Finished>),
    ) where
        I: Iterator,
        I::Item: IntoRequest,
    {
        let (input, output) = lane(&self.shared, self.permits);
        let feeder = Feeder::new(input, self.stopper());
        let before = self.stats().fed;
        let mut run = Run::new(jobs, feeder, Results::new(output));
        let (mut taken, mut turns) = (0_u64, 0_u32);
        loop {
            turns += 1;
            assert!(turns < 1_000_000, "no end in sight");
            let must = !dawdles() || !self.turn();
            if !must {
                continue;
            }
            match Source::poll(&mut run) {
                Polled::Ready(finished) => {
                    taken += 1;
                    take(Some(finished));
                }
                Polled::Finished => return,
                Polled::Pending => {
                    take(None);
                    assert!(self.turn(), "everything waits for something else: {:?}", self.stats());
                }
            }
            let held = self.stats().fed - before - taken;
            assert!(held <= self.permits as u64, "{held} held at {} permits", self.permits);
        }
    }

    /// A lane of its own, beside those that are driven: its jobs can be given up one by one.
    pub(crate) fn beside(&self, requests: Vec<Request>) -> (Vec<JobId>, Lane) {
        let (input, output) = lane(&self.shared, requests.len().max(1));
        let ids = (0..).zip(requests).map(|(index, request)| {
            input.reserve().expect("a permit for each");
            input.feed(FlightTask::new(request, index))
        });
        (ids.collect(), Lane(output))
    }

    /// The owner of a job gives it up.
    pub(crate) fn cancel(&self, id: JobId) {
        self.shared.tell(Event::Cancel(id));
    }

    /// Lets the next thing happen; false where there is none.
    pub(crate) fn turn(&self) -> bool {
        assert!(!self.sleepless.slept.load(Ordering::Relaxed), "a worker slept");
        let mut state = self.state.borrow_mut();
        if self.act(&mut state) {
            return true;
        }
        if self.cut.load(Ordering::Relaxed)
            && let Some((_, worker)) = state.asleep.pop_first()
        {
            self.go_on(&mut state, worker, Order::GoOn);
            return true;
        }
        let next = [
            state.asleep.first_key_value().map(|(key, _)| key.0),
            state.agenda.first_key_value().map(|(key, _)| key.0),
            state.scheduler.next_wake(),
        ];
        let Some(next) = next.into_iter().flatten().min() else { return false };
        self.clock.sleep_until(next);
        let now = self.clock.now();
        if let Some(entry) = state.agenda.first_entry().filter(|entry| entry.key().0 <= now) {
            let deed = entry.remove();
            drop(state);
            deed(self);
            return true;
        }
        if let Some(entry) = state.asleep.first_entry().filter(|entry| entry.key().0 <= now) {
            let worker = entry.remove();
            self.go_on(&mut state, worker, Order::GoOn);
        }
        true
    }

    /// What the thread of the scheduler does; false where there was nothing to do.
    fn act(&self, state: &mut State) -> bool {
        let now = self.clock.now();
        let mut did = self.hear_all(state, now);
        while let Some(action) = state.scheduler.poll(now) {
            did = true;
            match action {
                Action::End(job, ending) => {
                    state.waits.remove(&job.id);
                    state.counts.expired += u64::from(ending == Ending::Expired);
                    job.end(ending);
                }
                Action::Step(job) => {
                    self.look_at_waits(state, job.id, now);
                    let most = state.scheduler.most_flying();
                    let flying = state.crew.len() - state.idle.len() + 1;
                    assert!(flying <= most, "{flying} fly where {most} may");
                    assert!(!self.shared.control.is_stopping(), "{:?} after the stop", job.id);
                    let worker = state.idle.pop().expect("no more steps than workers");
                    self.go_on(state, worker, Order::Step(job));
                    self.hear_all(state, now);
                }
            }
        }
        let gauges = state.scheduler.gauges();
        let most = state.scheduler.most_flying();
        let flying = state.crew.len() - state.idle.len();
        if self.is_unlimited && state.inbox.is_empty() {
            assert!(gauges.ready == 0 || flying >= most, "{gauges:?}, and only {flying} fly");
        }
        self.shared.counters.publish(&gauges);
        did
    }

    /// No step before its wait is over, and none of a fresh job before one that is due.
    fn look_at_waits(&self, state: &mut State, id: JobId, now: Instant) {
        match state.waits.remove(&id) {
            Some(until) => {
                let early = until.saturating_duration_since(now);
                assert!(early.is_zero(), "{id:?} is stepped {early:?} before its wait is over");
            }
            None => {
                let due = state.waits.iter().find(|(_, until)| **until <= now);
                assert!(
                    due.is_none() || !self.hosts_are_free,
                    "{id:?} is fresh, and goes before {due:?}"
                );
            }
        }
    }

    fn hear_all(&self, state: &mut State, now: Instant) -> bool {
        let mut heard = false;
        while let Ok(event) = state.inbox.try_recv() {
            self.heard(state, event, now);
            heard = true;
        }
        heard
    }

    fn heard(&self, state: &mut State, event: Event<FlightTask>, now: Instant) {
        if let Event::Wait { job, wish } = &event {
            state.waits.insert(job.id, wish.until);
            let at_limit = wish.reason == WaitReason::Limit;
            state.counts.at_limits += u64::from(at_limit);
            state.counts.interrupted += u64::from(at_limit && wish.came.attempted);
            let late = wish.deadline.is_some_and(|deadline| wish.until >= deadline);
            assert!(!late, "{:?} begins a wait that ends after its deadline", job.id);
        }
        if let Event::Done { id, .. } = &event {
            state.waits.remove(id);
        }
        hear(&mut state.scheduler, event, now);
    }

    /// Lets a worker go on, until it is silent again.
    fn go_on(&self, state: &mut State, worker: usize, order: Order) {
        let (orders, words) = &state.crew[worker];
        orders.send(order).expect("the worker listens");
        match words.recv_timeout(Duration::from_secs(60)).expect("the worker says something") {
            Word::Sleeps(until) => {
                state.naps += 1;
                state.asleep.insert((until, state.naps), worker);
            }
            Word::Landed(event) => {
                state.idle.push(worker);
                self.shared.tell(event);
            }
        }
    }
}

/// The body of a worker's thread.
fn work(
    number: usize,
    line: Line,
    shared: &Arc<Shared<FlightTask>>,
    make: &MakeContext<FlightTask>,
    ended: &impl Fn(usize),
) {
    let (orders, words) = (line.orders.clone(), line.words.clone());
    LINE.set(Some(line));
    NUMBER.set(number);
    let mut context = None;
    while let Ok(Order::Step(job)) = orders.recv() {
        let event = if shared.control.is_stopping() {
            Event::Untouched(job)
        } else {
            worker::step(shared, make, &mut context, job)
        };
        ended(number);
        if words.send(Word::Landed(event)).is_err() {
            return;
        }
    }
}

thread_local! {
    static NUMBER: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

/// The number of the worker whose thread this is.
pub(crate) fn worker_number() -> usize {
    NUMBER.get()
}

/// The taking end of a lane beside.
pub(crate) struct Lane(Output<FlightTask>);

impl Lane {
    /// What results there are.
    pub(crate) fn taken(&self) -> Vec<Finished> {
        let next = || match self.0.poll() {
            Polled::Ready(finished) => Some(finished),
            Polled::Pending | Polled::Finished => None,
        };
        std::iter::from_fn(next).collect()
    }
}
