//! The threads, with tasks that need no socket. Nothing here sleeps: what has to happen before
//! something else is waited for on a channel.

use super::*;
use crate::rng::Rng;
use crate::time::{SimClock, SystemClock, secs};
use crate::workers::lane::{Input, Output, Polled, Refusal, lane};
use crate::workers::stop::{Hook, Stopper};
use crossbeam_channel::bounded;
use std::collections::BTreeMap;
use std::sync::atomic::AtomicUsize;
use std::sync::{Barrier, Mutex};
use std::thread;

/// How a fake task ended.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum How {
    Done,
    Failed,
    Cut,
    Stopped(String),
    Cancelled,
    Expired,
    Panicked(String),
    NoContext,
    Lost,
}

/// What a script sees of its step.
struct View<'a> {
    context: usize,
    clock: &'a dyn Clock,
    step: usize,
}

enum Next {
    Done,
    Failed,
    Wait(Duration),
}

struct Fake {
    name: u64,
    step: usize,
    deadline: Option<Instant>,
    echo: Option<Echo>,
    script: Box<dyn FnMut(View<'_>) -> Next + Send>,
}

impl Fake {
    fn new(name: u64, script: impl FnMut(View<'_>) -> Next + Send + 'static) -> Self {
        Self { name, step: 0, deadline: None, echo: None, script: Box::new(script) }
    }

    fn done(name: u64) -> Self {
        Self::new(name, |_| Next::Done)
    }
}

impl Task for Fake {
    type Context = usize;
    type Output = (u64, How);

    fn host(&self) -> Option<Arc<str>> {
        Some(Arc::from("host"))
    }

    fn deadline(&self) -> Option<Instant> {
        self.deadline
    }

    fn step(&mut self, context: &usize, clock: &dyn Clock) -> Stepped<(u64, How)> {
        let view = View { context: *context, clock, step: self.step };
        self.step += 1;
        let outcome = match (self.script)(view) {
            Next::Done => Outcome::Done((self.name, How::Done)),
            Next::Failed => Outcome::Failed((self.name, How::Failed)),
            Next::Wait(wait) => {
                Outcome::Wait { until: clock.now() + wait, reason: WaitReason::Backoff }
            }
        };
        let made = Made { attempts: 1, ..Made::default() };
        Stepped { made, echo: self.echo, outcome }
    }

    fn fail(&mut self, failure: Failure, _: Instant) -> (u64, How) {
        let how = match failure {
            Failure::Stopped(reason) => How::Stopped(reason.to_string()),
            Failure::Cancelled => How::Cancelled,
            Failure::Expired => How::Expired,
            Failure::Panicked(words) => How::Panicked(words),
            Failure::NoContext(_) => How::NoContext,
            Failure::Lost => How::Lost,
        };
        (self.name, how)
    }

    fn cut((name, _): (u64, How), _: &StopReason) -> (u64, How) {
        (name, How::Cut)
    }
}

/// Settings of a core for a test.
struct Setup {
    workers: usize,
    adaptive: bool,
    clock: Arc<dyn Clock>,
    context: worker::MakeContext<Fake>,
    rule: Option<Arc<dyn Rule<(u64, How)>>>,
    hook: Option<Hook>,
}

impl Setup {
    /// The context of each worker is a number, which tells how many were made before it.
    fn new(workers: usize) -> Self {
        let made = AtomicUsize::new(0);
        Self {
            workers,
            adaptive: false,
            clock: Arc::new(SystemClock),
            context: worker::MakeContext(Box::new(
                move || Ok(made.fetch_add(1, Ordering::Relaxed)),
            )),
            rule: None,
            hook: None,
        }
    }

    fn start(self) -> Core<Fake> {
        let scheduler = Scheduler::new(self.workers, None);
        Core::start(Plan {
            scheduler: if self.adaptive { scheduler.adaptive() } else { scheduler },
            stack_bytes: 512 * 1024,
            name: "test".to_owned(),
            clock: self.clock,
            context: self.context,
            rule: self.rule,
            control: Control::new(self.hook),
        })
        .expect("threads")
    }
}

fn feed(input: &Input<Fake>, task: Fake) -> JobId {
    input.reserve().expect("a permit");
    input.feed(task)
}

fn next(output: &Output<Fake>) -> Option<(u64, How)> {
    let ended = output.wait()?;
    output.give_back();
    Some(ended)
}

/// All that comes, sorted by name; each name once.
fn drain(output: &Output<Fake>) -> BTreeMap<u64, How> {
    let mut all = BTreeMap::new();
    while let Some((name, how)) = next(output) {
        assert_eq!(all.insert(name, how), None, "{name} ended twice");
    }
    all
}

fn stopped(cause: &str) -> How {
    How::Stopped(cause.to_owned())
}

#[test]
fn every_job_ends_once_under_64_threads_waits_and_panics() {
    const JOBS: u64 = 5000;
    let core = Setup::new(64).start();
    let (input, output) = lane(&core.shared, 37);
    let all = thread::scope(|scope| {
        scope.spawn(move || {
            let mut rng = Rng::seeded(11);
            for name in 0..JOBS {
                let waits = rng.below(4);
                let end = name % 10;
                let script = move |view: View<'_>| match view.step {
                    step if step < waits => Next::Wait(Duration::ZERO),
                    _ if end == 0 => panic!("job {name}"),
                    _ if end == 1 => Next::Failed,
                    _ => Next::Done,
                };
                feed(&input, Fake::new(name, script));
            }
        });
        drain(&output)
    });
    assert_eq!(all.len() as u64, JOBS);
    for (name, how) in &all {
        let wanted = match name % 10 {
            0 => How::Panicked(format!("job {name}")),
            1 => How::Failed,
            _ => How::Done,
        };
        assert_eq!(*how, wanted, "{name}");
    }
    let stats = core.shared.counters.snapshot();
    assert_eq!((stats.fed, stats.finished, stats.panics), (JOBS, JOBS, JOBS / 10));
    assert_eq!((stats.in_flight, stats.ready, stats.waiting), (0, 0, 0));
}

#[test]
fn one_permit_is_enough_to_feed_and_drain() {
    for (workers, permits) in [(1, 1), (4, 1), (2, 3)] {
        let core = Setup::new(workers).start();
        let (input, output) = lane(&core.shared, permits);
        let all = thread::scope(|scope| {
            scope.spawn(move || {
                for name in 0..500 {
                    feed(&input, Fake::done(name));
                }
            });
            drain(&output)
        });
        assert_eq!(all.len(), 500, "{workers} {permits}");
    }
}

#[test]
fn permits_are_taken_by_feeding_and_given_back_by_taking() {
    let core = Setup::new(2).start();
    let (input, output) = lane(&core.shared, 2);
    feed(&input, Fake::done(0));
    feed(&input, Fake::done(1));
    let first = output.wait().expect("a result");
    // It is there, but not taken yet.
    assert_eq!(input.try_reserve(), Err(Refusal::Full));
    output.give_back();
    assert_eq!(input.try_reserve(), Ok(()));
    input.feed(Fake::done(first.0 + 10));
    drop(input);
    output.give_back();
    assert_eq!(drain(&output).len(), 2);
}

/// Fifty URLs that answer 503 with `Retry-After: 2` among two thousand good ones, two workers.
#[test]
fn jobs_that_wait_delay_nobody() {
    let clock = Arc::new(SimClock::default());
    let core = Setup { clock: Arc::clone(&clock) as Arc<dyn Clock>, ..Setup::new(2) }.start();
    let (input, output) = lane(&core.shared, 2050);
    for name in 0..2050 {
        let slow = name % 41 == 0;
        let script = move |view: View<'_>| {
            if slow && view.step == 0 { Next::Wait(secs(2.0)) } else { Next::Done }
        };
        feed(&input, Fake::new(name, script));
    }
    drop(input);
    // The clock stands still, so none of the fifty can come; each of the others does.
    for _ in 0..2000 {
        let (name, how) = next(&output).expect("a good one");
        assert_eq!((name % 41 == 0, how), (false, How::Done));
    }
    assert!(matches!(output.poll(), Polled::Pending));
    clock.advance(secs(2.0));
    core.shared.tell(Event::Tick);
    let late = drain(&output);
    assert_eq!(late.len(), 50);
    assert!(late.keys().all(|name| name % 41 == 0));
    assert_eq!(core.shared.counters.snapshot().attempts, 2100);
}

#[test]
fn a_stop_while_everything_waits_ends_everything() {
    for (abort, cause) in [(false, "the pool was closed"), (true, "the pool was aborted")] {
        let core = Setup::new(3).start();
        let (input, output) = lane(&core.shared, 100);
        let (stepped, steps) = unbounded();
        for name in 0..30 {
            let stepped = stepped.clone();
            feed(
                &input,
                Fake::new(name, move |_| {
                    stepped.send(()).expect("the test listens");
                    Next::Wait(secs(3600.0))
                }),
            );
        }
        for _ in 0..30 {
            steps.recv().expect("a step");
        }
        let stopper = Stopper::new(Arc::clone(&core.shared));
        if abort {
            stopper.abort();
        } else {
            stopper.close();
        }
        assert_eq!(input.reserve(), Err(Refusal::Stopped));
        drop(input);
        let all = drain(&output);
        assert_eq!(all.len(), 30);
        assert!(all.values().all(|how| *how == stopped(cause)), "{all:?}");
    }
}

/// A task that flies until the test lets it land.
fn held(name: u64, next: fn() -> Next) -> (Fake, Receiver<()>, Sender<()>) {
    let (begun, begins) = bounded(1);
    let (land, landing) = bounded(1);
    let script = move |_: View<'_>| {
        begun.send(()).expect("the test listens");
        landing.recv().expect("the test lets it land");
        next()
    };
    (Fake::new(name, script), begins, land)
}

#[test]
fn a_deadline_ends_a_job_while_no_worker_is_free() {
    let clock = Arc::new(SimClock::default());
    let core = Setup { clock: Arc::clone(&clock) as Arc<dyn Clock>, ..Setup::new(1) }.start();
    let (input, output) = lane(&core.shared, 10);
    let deadline = Some(clock.now() + secs(15.0));
    feed(&input, Fake { deadline, ..Fake::new(0, |_| Next::Wait(secs(10.0))) });
    let (task, begins, land) = held(1, || Next::Done);
    feed(&input, task);
    drop(input);
    // There is one worker, so the other waits by now.
    begins.recv().expect("it flies");
    clock.advance(secs(15.0));
    core.shared.tell(Event::Tick);
    assert_eq!(next(&output), Some((0, How::Expired)));
    land.send(()).expect("it listens");
    assert_eq!(drain(&output), BTreeMap::from([(1, How::Done)]));
}

#[test]
fn a_close_lets_what_flies_finish_its_attempt() {
    for (next, wanted) in [
        ((|| Next::Done) as fn() -> Next, How::Done),
        (|| Next::Failed, How::Failed),
        (|| Next::Wait(Duration::ZERO), stopped("the pool was closed")),
    ] {
        let core = Setup::new(1).start();
        let (input, output) = lane(&core.shared, 10);
        let (task, begins, land) = held(0, next);
        feed(&input, task);
        begins.recv().expect("it flies");
        feed(&input, Fake::done(1));
        Stopper::new(Arc::clone(&core.shared)).close();
        drop(input);
        // What is queued ends while the other still flies.
        assert_eq!(output.wait(), Some((1, stopped("the pool was closed"))));
        land.send(()).expect("it listens");
        assert_eq!(drain(&output), BTreeMap::from([(0, wanted)]));
    }
}

#[test]
fn an_abort_cuts_what_flies() {
    let (cut, cuts) = bounded(1);
    let hook = Hook(Arc::new(move || cut.send(()).expect("the task listens")));
    let core = Setup { hook: Some(hook), ..Setup::new(1) }.start();
    let (input, output) = lane(&core.shared, 10);
    let (begun, begins) = bounded(1);
    let script = move |_: View<'_>| {
        begun.send(()).expect("the test listens");
        // The socket of this fake is cut by the hook.
        cuts.recv().expect("the hook");
        Next::Failed
    };
    feed(&input, Fake::new(0, script));
    begins.recv().expect("it flies");
    let stopper = Stopper::new(Arc::clone(&core.shared));
    stopper.close_because(StopReason::rule("first signal"));
    stopper.abort();
    drop(input);
    assert_eq!(drain(&output), BTreeMap::from([(0, How::Cut)]));
    assert_eq!(stopper.reason(), Some(StopReason::rule("first signal")));
}

#[test]
fn a_feeder_that_waits_for_a_permit_is_woken_by_a_stop_and_by_the_loss_of_its_taker() {
    for stop in [true, false] {
        let core = Setup::new(1).start();
        let (input, output) = lane(&core.shared, 1);
        feed(&input, Fake::new(0, |_| Next::Wait(secs(3600.0))));
        let (ready, go) = bounded(1);
        thread::scope(|scope| {
            let feeding = scope.spawn(move || {
                ready.send(()).expect("the test listens");
                input.reserve()
            });
            go.recv().expect("it is about to wait");
            if stop {
                Stopper::new(Arc::clone(&core.shared)).close();
                assert_eq!(feeding.join().expect("no panic"), Err(Refusal::Stopped));
            } else {
                drop(output);
                assert_eq!(feeding.join().expect("no panic"), Err(Refusal::Abandoned));
            }
        });
    }
}

#[test]
fn cancelling_ends_a_job_where_it_is() {
    let core = Setup::new(1).start();
    let (input, output) = lane(&core.shared, 10);
    let (stepped, steps) = bounded(1);
    let waiting = feed(
        &input,
        Fake::new(0, move |_| {
            stepped.send(()).expect("the test listens");
            Next::Wait(secs(3600.0))
        }),
    );
    steps.recv().expect("a step");
    core.shared.tell(Event::Cancel(waiting));
    assert_eq!(next(&output), Some((0, How::Cancelled)));
    let (task, begins, land) = held(1, || Next::Done);
    let flying = feed(&input, task);
    begins.recv().expect("it flies");
    let queued = feed(&input, Fake::done(2));
    core.shared.tell(Event::Cancel(queued));
    assert_eq!(next(&output), Some((2, How::Cancelled)));
    // A result that comes is a result, cancelled or not.
    core.shared.tell(Event::Cancel(flying));
    land.send(()).expect("it listens");
    assert_eq!(next(&output), Some((1, How::Done)));
    drop(input);
    assert_eq!(next(&output), None);
}

#[test]
fn a_lane_that_is_dropped_frees_the_workers_for_the_others() {
    let core = Setup::new(1).start();
    let (input, output) = lane(&core.shared, 1000);
    let ran = Arc::new(AtomicUsize::new(0));
    let (task, begins, land) = held(0, || Next::Wait(Duration::ZERO));
    feed(&input, task);
    begins.recv().expect("it flies");
    for name in 1..1000 {
        let ran = Arc::clone(&ran);
        let script = move |_: View<'_>| {
            ran.fetch_add(1, Ordering::Relaxed);
            Next::Done
        };
        feed(&input, Fake::new(name, script));
    }
    drop(output);
    let (other, results) = lane(&core.shared, 1);
    feed(&other, Fake::done(7));
    land.send(()).expect("it listens");
    assert_eq!(next(&results), Some((7, How::Done)));
    assert_eq!(ran.load(Ordering::Relaxed), 0);
    assert_eq!(input.try_reserve(), Err(Refusal::Abandoned));
}

#[test]
fn a_panic_costs_the_worker_its_context_and_nobody_else_anything() {
    let core = Setup::new(1).start();
    let (input, output) = lane(&core.shared, 10);
    let seen = Arc::new(Mutex::new(Vec::new()));
    for name in 0..5 {
        let seen = Arc::clone(&seen);
        let script = move |view: View<'_>| {
            seen.lock().expect("unpoisoned").push(view.context);
            assert!(name != 1 && name != 3, "as planned");
            let _ = view.clock;
            Next::Done
        };
        feed(&input, Fake::new(name, script));
    }
    drop(input);
    let all = drain(&output);
    let panicked = || How::Panicked("as planned".to_owned());
    let wanted = [How::Done, panicked(), How::Done, panicked(), How::Done];
    assert_eq!(all, (0..).zip(wanted).collect());
    assert_eq!(*seen.lock().expect("unpoisoned"), [0, 0, 1, 1, 2]);
}

#[test]
fn a_worker_without_a_context_says_so_and_tries_again() {
    let tries = AtomicUsize::new(0);
    let context =
        worker::MakeContext(Box::new(move || match tries.fetch_add(1, Ordering::Relaxed) {
            0 => Err(Error::config("no certificates")),
            1 => panic!("a bad recipe"),
            tries => Ok(tries),
        }));
    let core = Setup { context, ..Setup::new(1) }.start();
    let (input, output) = lane(&core.shared, 10);
    for name in 0..4 {
        feed(&input, Fake::done(name));
    }
    drop(input);
    let panicked = How::Panicked("a bad recipe".to_owned());
    let wanted = [How::NoContext, panicked, How::Done, How::Done];
    assert_eq!(drain(&output), (0..).zip(wanted).collect());
    assert_eq!(core.shared.counters.snapshot().attempts, 2);
}

#[test]
fn a_rule_stops_the_run_before_its_result_is_seen() {
    let rule = |(_, how): &(u64, How)| {
        (*how == How::Failed).then(|| StopReason::rule("407 from the only proxy"))
    };
    let core = Setup { rule: Some(Arc::new(rule)), ..Setup::new(4) }.start();
    let (input, output) = lane(&core.shared, 1000);
    let stepped = Arc::new(AtomicUsize::new(0));
    for name in 0..1000 {
        let stepped = Arc::clone(&stepped);
        let script = move |_: View<'_>| {
            stepped.fetch_add(1, Ordering::Relaxed);
            Next::Failed
        };
        if input.reserve().is_err() {
            break;
        }
        input.feed(Fake::new(name, script));
    }
    drop(input);
    let mut all = BTreeMap::new();
    while let Some((name, how)) = next(&output) {
        if how == How::Failed {
            assert!(core.shared.control.reason().is_some());
        }
        assert_eq!(all.insert(name, how), None);
    }
    let failed = all.values().filter(|how| **how == How::Failed).count();
    assert_eq!(failed, stepped.load(Ordering::Relaxed));
    assert!((1..=4).contains(&failed), "{failed}");
    let rest = stopped("407 from the only proxy");
    assert!(all.values().all(|how| *how == How::Failed || *how == rest));
}

#[test]
fn a_rule_that_panics_stops_nothing() {
    let rule = |_: &(u64, How)| panic!("a bad rule");
    let core = Setup { rule: Some(Arc::new(rule)), ..Setup::new(2) }.start();
    let (input, output) = lane(&core.shared, 100);
    for name in 0..100 {
        feed(&input, Fake::done(name));
    }
    drop(input);
    assert!(drain(&output).values().all(|how| *how == How::Done));
    assert_eq!(core.shared.control.reason(), None);
}

#[test]
fn a_dropped_pool_answers_for_all_it_was_fed_and_for_what_comes_late() {
    let core = Setup::new(2).start();
    let (input, output) = lane(&core.shared, 100);
    for name in 0..50 {
        feed(&input, Fake::new(name, |_| Next::Wait(secs(3600.0))));
    }
    drop(core);
    // Its permit was taken before; the threads are gone.
    input.feed(Fake::done(50));
    drop(input);
    let all = drain(&output);
    assert_eq!(all.len(), 51);
    assert!(all.values().all(|how| *how == stopped("the pool was closed")), "{all:?}");
}

#[test]
fn threads_have_names_that_count() {
    let core = Setup::new(3).start();
    let names = core.threads.names();
    assert_eq!(names, ["test-worker-00", "test-worker-01", "test-worker-02", "test-scheduler"]);
}

#[test]
fn three_thousand_workers_work_at_once_and_end() {
    let core = Setup::new(3000).start();
    let (input, output) = lane(&core.shared, 3000);
    let all_are_here = Arc::new(Barrier::new(3000));
    for name in 0..3000 {
        let all_are_here = Arc::clone(&all_are_here);
        feed(
            &input,
            Fake::new(name, move |_| {
                all_are_here.wait();
                Next::Done
            }),
        );
    }
    drop(input);
    assert_eq!(drain(&output).len(), 3000);
    assert_eq!(core.threads.len(), 3001);
    drop(core);
}

#[test]
fn workers_are_made_when_they_are_needed_and_rest_when_they_are_too_many() {
    let setup = Setup { adaptive: true, ..Setup::new(1000) };
    let core = setup.start();
    assert_eq!(core.threads.len(), 9, "the scheduler and those that begin");
    let (input, output) = lane(&core.shared, 8);
    let go = |names: std::ops::Range<u64>, echo| {
        for name in names {
            feed(&input, Fake { echo: Some(echo), ..Fake::done(name) });
            assert!(next(&output).is_some());
        }
    };
    // One at a time presses for nothing.
    go(0..500, Echo::Heard(Duration::ZERO));
    assert_eq!(core.threads.len(), 9);
    go(500..600, Echo::Throttled);
    // All but a few rest, and the pool goes on.
    go(600..1000, Echo::Heard(Duration::ZERO));
    let stats = core.shared.counters.snapshot();
    assert!(stats.concurrency < 8 && stats.back_offs > 0, "{stats:?}");
    assert_eq!(stats.finished, 1000);
}

#[test]
fn the_words_of_a_panic() {
    assert_eq!(words(&"static"), "static");
    assert_eq!(words(&"owned".to_owned()), "owned");
    assert_eq!(words(&7), "without a message");
}
