//! What a user holds: runs, stages, channels and tickets. The workers have no session here, so
//! every request that reaches one ends with the error that says so; what comes of requests is a
//! matter of the integration tests.

use super::dispatch::{Plan, Rule};
use super::scheduler::Scheduler;
use super::stop::Control;
use super::worker::MakeContext;
use super::*;
use crate::error::{Error, ErrorKind};
use crate::message::Request;
use crate::time::SystemClock;
use crossbeam_channel::unbounded;
use std::collections::BTreeSet;
use std::sync::Mutex;
use std::time::Duration;

fn pool(workers: usize, permits: usize) -> WorkerPool {
    with_context(workers, permits, None, || Err(Error::config("no session")))
}

fn with_context(
    workers: usize,
    permits: usize,
    rule: Option<Arc<dyn Rule<Finished>>>,
    context: impl Fn() -> Result<crate::Session, Error> + Send + Sync + 'static,
) -> WorkerPool {
    let core = Core::start(Plan {
        scheduler: Scheduler::new(workers, None),
        stack_bytes: 512 * 1024,
        name: "test".to_owned(),
        clock: Arc::new(SystemClock),
        context: MakeContext(Box::new(context)),
        rule,
        control: Control::new(None),
    })
    .expect("threads");
    WorkerPool::new(core, workers, permits, None)
}

/// A pool whose only worker is held until the sender is used or dropped.
fn held_pool(permits: usize) -> (WorkerPool, Sender<()>) {
    let (open, gate) = unbounded();
    let pool = with_context(1, permits, None, move || {
        // A dropped sender opens for good.
        let _ = gate.recv();
        Err(Error::config("no session"))
    });
    (pool, open)
}

fn urls(count: u64) -> impl Iterator<Item = String> {
    (0..count).map(|n| format!("http://host{}.test/{n}", n % 7))
}

fn assert_unsent(finished: &Finished) {
    let error = finished.result.as_ref().expect_err("there is no session");
    assert_eq!((error.kind(), error.message()), (ErrorKind::Config, "no session"));
    let index = finished.index;
    assert_eq!(finished.url, format!("http://host{}.test/{index}", index % 7));
    assert_eq!(finished.elapsed, Duration::ZERO);
    assert!(finished.attempts().is_empty());
}

#[test]
fn types_that_threads_share() {
    fn shared<T: Send + Sync>() {}
    fn sent<T: Send>() {}
    shared::<WorkerPool>();
    shared::<Stopper>();
    shared::<WorkerPoolBuilder>();
    sent::<Feeder>();
    sent::<Results>();
    sent::<Ticket>();
    sent::<Finished>();
    sent::<Returned>();
}

#[test]
fn a_run_yields_every_job_once_for_any_workers_and_permits() {
    for (workers, permits, jobs) in
        [(1, 1, 50), (2, 1, 100), (8, 3, 500), (4, 1024, 500), (3, 5, 0)]
    {
        let pool = pool(workers, permits);
        let mut indexes = BTreeSet::new();
        for finished in pool.run(urls(jobs)) {
            assert_unsent(&finished);
            assert!(indexes.insert(finished.index));
        }
        assert_eq!(indexes, (0..jobs).collect());
        let stats = pool.stats();
        assert_eq!((stats.fed, stats.finished, stats.in_flight), (jobs, jobs, 0));
    }
}

#[test]
fn urls_of_a_mounted_scheme_are_under_the_limit_of_their_host() {
    use crate::policy::{Busy, Visit};
    use crate::session::SharedLimiter;
    use crate::transport::{Play, Script};
    use std::sync::OnceLock;

    let limits: Arc<OnceLock<SharedLimiter>> = Arc::default();
    let seen = Arc::clone(&limits);
    let script = Script::with(Arc::new(SystemClock), move |asked, _| {
        let host = asked.url.host_str().map(Arc::from);
        let visit = Visit { host: host.as_ref(), arrives: true };
        let limits = seen.get().expect("limits").lock().expect("whole");
        // Each attempt is the only visit that its host may have.
        let is_counted = limits.look(visit, asked.at) == Err(Busy::Host);
        Play::status(if is_counted { 200 } else { 500 })
    });
    let session = crate::Session::builder().trust_env(false);
    let pool = WorkerPool::builder(session.mount("mock://", move || script.clone()))
        .workers(4)
        .per_host(1)
        .build()
        .expect("threads");
    assert!(limits.set(pool.limits().expect("limits")).is_ok());
    let urls = (0..40).map(|n| format!("mock://shop{}/{n}", n % 3));
    let statuses: Vec<u16> =
        pool.run(urls).map(|done| done.result.expect("a response").status()).collect();
    assert_eq!(statuses, [200; 40]);
}

#[test]
fn a_run_pulls_no_more_than_its_permits() {
    let (pool, open) = held_pool(4);
    let pulled = Mutex::new(0);
    let input = urls(100).inspect(|_| {
        let mut pulled = pulled.lock().expect("unpoisoned");
        *pulled += 1;
        // With the last permit in use, the worker is let go.
        if *pulled == 4 {
            open.send(()).expect("the pool listens");
        }
    });
    let mut run = pool.run(input);
    assert_eq!(*pulled.lock().expect("unpoisoned"), 0);
    assert!(run.next().is_some());
    assert_eq!(*pulled.lock().expect("unpoisoned"), 4);
    drop(run);
    drop(open);
}

#[test]
fn the_input_may_borrow_and_need_not_be_sendable() {
    let text = "http://host0.test/0\nhttp://host1.test/1\n".to_owned();
    let here = std::rc::Rc::new(());
    let pool = pool(2, 10);
    let lines = text.lines().inspect(|_| drop(here.clone()));
    assert_eq!(pool.run(lines).count(), 2);
}

#[test]
fn a_run_in_order_is_in_order() {
    for permits in [1, 2, 7, 1024] {
        let pool = pool(6, permits);
        let indexes: Vec<_> = pool.run_ordered(urls(300)).map(|finished| finished.index).collect();
        assert_eq!(indexes, (0..300).collect::<Vec<_>>(), "{permits}");
    }
}

/// Input that describes no request every third time.
struct Line(u64);

impl IntoRequest for Line {
    fn into_request(self) -> Result<Request, Error> {
        if self.0.is_multiple_of(3) {
            return Err(Error::config(format!("line {} is no URL", self.0)));
        }
        format!("http://host{}.test/{}", self.0 % 7, self.0).into_request()
    }
}

#[test]
fn bad_input_has_its_place_and_its_error() {
    let pool = pool(2, 4);
    let check = |all: Vec<Finished>| {
        assert_eq!(all.len(), 60);
        for finished in all {
            let wanted = match finished.index % 3 {
                0 => format!("line {} is no URL", finished.index),
                _ => "no session".to_owned(),
            };
            assert_eq!(finished.result.expect_err("nothing is sent").message(), wanted);
        }
    };
    check(pool.run((0..60).map(Line)).collect());
    check(pool.run_ordered((0..60).map(Line)).collect());
    check(pool.run_scoped((0..60).map(Line), Iterator::collect));
    let ticket = pool.submit(Line(0));
    assert_eq!(ticket.wait().result.expect_err("bad").message(), "line 0 is no URL");
    assert_eq!((pool.stats().fed, pool.stats().finished), (181, 181));
}

#[test]
fn a_stopped_run_leaves_what_it_did_not_pull() {
    let (pool, open) = held_pool(5);
    let mut input = urls(100).enumerate().map(|(place, url)| {
        // With the last permit in use, the worker is let go.
        if place == 4 {
            open.send(()).expect("the pool listens");
        }
        url
    });
    let mut run = pool.run(input.by_ref());
    let first = run.next().expect("a result");
    assert!(!first.is_cancelled());
    pool.stopper().close_because(StopReason::rule("enough"));
    open.send(()).expect("the pool listens");
    let rest: Vec<_> = run.collect();
    // Five permits, one of which was free again when the stop came.
    assert_eq!(rest.len(), 4);
    let cancelled: Vec<_> = rest.iter().filter(|finished| finished.is_cancelled()).collect();
    // The worker may have taken up one more.
    assert!((3..=4).contains(&cancelled.len()), "{rest:?}");
    for finished in cancelled {
        let error = finished.result.as_ref().expect_err("cancelled");
        assert_eq!(error.message(), "not finished, since enough");
    }
    assert_eq!(input.count(), 95);
    assert_eq!(pool.run(urls(3)).count(), 0);
    assert_eq!(pool.stop_reason(), Some(StopReason::rule("enough")));
}

#[test]
fn a_dropped_run_gives_its_jobs_up() {
    let (pool, open) = held_pool(1000);
    let mut run = pool.run(urls(1000));
    open.send(()).expect("the pool listens");
    assert!(run.next().is_some());
    drop(run);
    drop(open);
    // The next run does not stand behind the thousand.
    assert_eq!(pool.run(urls(5)).count(), 5);
    assert!(pool.stats().fed <= 1005);
}

#[test]
fn two_runs_on_one_pool_do_not_starve_each_other() {
    let pool = pool(2, 3);
    let mut first = pool.run(urls(50));
    assert!(first.next().is_some());
    // The results of the first lie untaken while the second runs through.
    assert_eq!(pool.run(urls(50)).count(), 50);
    assert_eq!(first.count(), 49);
}

#[test]
fn a_channel_feeds_and_takes_on_two_threads() {
    let pool = pool(4, 2);
    let (mut feeder, results) = pool.channel();
    let all: BTreeSet<_> = thread::scope(|scope| {
        scope.spawn(move || {
            for url in urls(400) {
                feeder.feed(url.into_request().expect("a URL")).expect("the pool runs");
            }
            feeder.done();
        });
        results.inspect(assert_unsent).map(|finished| finished.index).collect()
    });
    assert_eq!(all, (0..400).collect());
}

#[test]
fn a_feeder_gives_back_what_is_not_taken() {
    let (pool, open) = held_pool(1);
    let (mut feeder, mut results) = pool.channel();
    let request = |path: &str| format!("http://host.test/{path}").into_request().expect("a URL");
    feeder.try_feed(request("a")).expect("a permit is free");
    let returned = feeder.try_feed(request("b")).expect_err("none is left");
    assert!(returned.is_full() && returned.stop_reason().is_none());
    assert_eq!(returned.to_string(), "not taken, since all permits of the pool are in use");
    assert_eq!(returned.into_request().url, "http://host.test/b");
    assert!(results.try_next().is_none() && !results.is_finished());
    drop(open);
    assert_eq!(results.next().expect("a result").index, 0);
    pool.close();
    assert!(feeder.is_stopped());
    let returned = feeder.feed(request("c")).expect_err("stopped");
    assert_eq!(returned.stop_reason(), Some(&StopReason::Closed));
    assert_eq!(returned.to_string(), "not taken, since the pool was closed");
    drop(feeder);
    assert!(results.next_timeout(Duration::from_secs(60)).is_none() && results.is_finished());

    let other = self::pool(1, 1);
    let (mut feeder, results) = other.channel();
    drop(results);
    let returned = feeder.feed(request("d")).expect_err("nobody listens");
    assert_eq!(returned.to_string(), "not taken, since nobody takes the results");
    assert!(!returned.is_full());
}

#[test]
fn a_scoped_run_may_leave_early() {
    let pool = pool(2, 3);
    let first = pool.run_scoped(urls(u64::MAX), |mut results| results.next());
    assert!(first.is_some());
    let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        let input = urls(10).inspect(|url| assert!(!url.ends_with("/5"), "bad input"));
        pool.run_scoped(input, Iterator::count)
    }));
    assert!(panicked.is_err());
    assert_eq!(pool.run(urls(3)).count(), 3);
}

#[test]
fn a_stage_works_on_every_result_and_contains_its_panics() {
    let pool = pool(4, 8);
    let work = |finished: Finished| {
        assert!(finished.index % 10 != 3, "three");
        finished.index * 2
    };
    let check = |all: Vec<Result<u64, Error>>| {
        let (done, failed): (Vec<_>, Vec<_>) = all.into_iter().partition(Result::is_ok);
        let mut done: Vec<_> = done.into_iter().flatten().collect();
        done.sort_unstable();
        let wanted: Vec<_> = (0..200).filter(|n| n % 10 != 3).map(|n| n * 2).collect();
        assert_eq!(done, wanted);
        let mut words: Vec<_> = failed
            .into_iter()
            .map(|failed| failed.expect_err("a panic"))
            .map(|error| {
                assert_eq!(error.kind(), ErrorKind::Internal);
                error.message().to_owned()
            })
            .collect();
        words.sort_unstable();
        assert_eq!(words.len(), 20);
        assert_eq!(words[0], "the work on result 103 panicked: three");
    };
    check(pool.run(urls(200)).then(work).collect());
    check(pool.run_scoped(urls(200), |results| results.then(work).collect()));
    // On a thread of rayon's, waiting for rayon could wait for itself.
    let (done, finished) = bounded(1);
    let pool = Arc::new(pool);
    rayon::spawn(move || {
        let all: Vec<_> = pool.run(urls(200)).then(work).collect();
        done.send(all).expect("the test listens");
    });
    check(finished.recv().expect("no panic"));
}

#[test]
fn a_stage_holds_no_more_than_two_for_each_thread_of_rayon() {
    let pool = pool(4, 1024);
    let most = 2 * rayon::current_num_threads() as u64;
    let (begun, begins) = unbounded();
    let (open, gate) = unbounded::<()>();
    let work = move |finished: Finished| {
        begun.send(finished.index).expect("the test listens");
        let _ = gate.recv();
        finished.index
    };
    let pulled = Mutex::new(0_u64);
    let taken = || *pulled.lock().expect("unpoisoned");
    let results = pool.run(urls(100)).inspect(|_| *pulled.lock().expect("unpoisoned") += 1);
    let indexes = thread::scope(|scope| {
        scope.spawn(|| {
            // One of them is let go once the threads of rayon are full.
            for _ in 0..rayon::current_num_threads() {
                begins.recv().expect("the work begins");
            }
            open.send(()).expect("the work listens");
            drop(open);
        });
        let mut stage = Stage::new(Box::new(Inspected(results)), work);
        let first = stage.next().expect("an item").expect("no panic");
        assert!(taken() <= most, "{} over {most}", taken());
        let rest = stage.map(|item| item.expect("no panic"));
        std::iter::once(first).chain(rest).collect::<BTreeSet<_>>()
    });
    assert_eq!(indexes, (0..100).collect());
}

/// Shows what a stage takes out of its run.
struct Inspected<I>(I);

impl<I: Iterator<Item = Finished>> stage::Source for Inspected<I> {
    fn poll(&mut self) -> lane::Polled<Finished> {
        match self.0.next() {
            Some(finished) => lane::Polled::Ready(finished),
            None => lane::Polled::Finished,
        }
    }

    fn receiver(&self) -> &Receiver<Finished> {
        unreachable!("it is never pending")
    }
}

#[test]
fn a_ticket_is_waited_for_in_every_way() {
    let (pool, open) = held_pool(10);
    let ticket = pool.submit("http://host0.test/0");
    assert!(!ticket.is_finished());
    let ticket = ticket.try_wait().expect_err("it is held");
    let ticket = ticket.wait_timeout(Duration::ZERO).expect_err("it is held");
    let second = pool.submit("http://host1.test/1");
    assert_eq!((ticket.index(), second.index()), (0, 1));
    second.cancel();
    let cancelled = second.wait();
    assert!(cancelled.is_cancelled());
    assert_eq!(cancelled.result.expect_err("cancelled").message(), "given up by its owner");
    drop(open);
    assert_unsent(&ticket.wait_timeout(Duration::from_secs(60)).expect("it is free"));
    pool.close();
    let late = pool.submit("http://host.test/");
    assert!(late.is_finished());
    late.cancel();
    let late = late.try_wait().expect("at once");
    assert_eq!(late.result.expect_err("late").message(), "not finished, since the pool was closed");
}

#[test]
fn tickets_that_nobody_waits_for_hold_no_permits() {
    let pool = pool(2, 1);
    let tickets: Vec<_> = urls(200).map(|url| pool.submit(url)).collect();
    for ticket in tickets {
        assert_unsent(&ticket.wait());
    }
    for url in urls(200) {
        drop(pool.submit(url));
    }
}

#[test]
fn a_ticket_outlives_its_pool() {
    let (pool, open) = held_pool(10);
    let tickets: Vec<_> = urls(5).map(|url| pool.submit(url)).collect();
    pool.close();
    drop(open);
    drop(pool);
    assert_eq!(tickets.into_iter().map(Ticket::wait).count(), 5);
}
