//! Tables for each decision; what holds over many seeds is in `simulation`.

use super::*;
use crate::time::{Clock, SimClock, secs};
use crate::workers::limits::Limits;
use std::collections::BTreeMap;
use std::time::Duration;

#[path = "scheduler_simulation.rs"]
mod simulation;

const LANE: LaneId = LaneId(0);
const NONE: [u64; 0] = [];

fn host(name: &str) -> Option<Arc<str>> {
    (!name.is_empty()).then(|| Arc::from(name))
}

fn start() -> Instant {
    SimClock::default().now()
}

fn ms(count: u64) -> Duration {
    Duration::from_millis(count)
}

fn unlimited(capacity: usize) -> Scheduler<u64> {
    Scheduler::new(capacity, None)
}

fn per_host(capacity: usize, limit: usize) -> Scheduler<u64> {
    under(capacity, Limits { per_host: Some(limit), ..Limits::default() })
}

fn under(capacity: usize, limits: Limits) -> Scheduler<u64> {
    Scheduler::new(capacity, limits.counted().expect("limits"))
}

fn feed(scheduler: &mut Scheduler<u64>, jobs: impl IntoIterator<Item = (u64, &'static str)>) {
    for (job, name) in jobs {
        scheduler.feed(JobId(job), LANE, host(name), job);
    }
}

fn holds_nothing(scheduler: &Scheduler<u64>) -> bool {
    let gauges = scheduler.gauges();
    gauges.ready == 0 && gauges.waiting.total() == 0
}

fn wish(until: Instant, name: &str) -> Wish {
    let host = host(name);
    Wish { until, reason: WaitReason::Backoff, host, came: Came::ATTEMPTED, deadline: None }
}

/// All that is to be done now: the jobs to step, and those that end.
fn polled(scheduler: &mut Scheduler<u64>, now: Instant) -> (Vec<u64>, Vec<(u64, Ending)>) {
    let (mut steps, mut ends) = (Vec::new(), Vec::new());
    while let Some(action) = scheduler.poll(now) {
        match action {
            Action::Step(job) => steps.push(job),
            Action::End(job, ending) => ends.push((job, ending)),
        }
    }
    (steps, ends)
}

fn steps(scheduler: &mut Scheduler<u64>, now: Instant) -> Vec<u64> {
    let (steps, ends) = polled(scheduler, now);
    assert_eq!(ends, []);
    steps
}

#[test]
fn no_more_jobs_than_workers_and_in_the_order_they_came() {
    let now = start();
    let mut scheduler = unlimited(2);
    feed(&mut scheduler, [(0, "a"), (1, "b"), (2, "c")]);
    assert_eq!(steps(&mut scheduler, now), [0, 1]);
    scheduler.done(JobId(1), &Came::ATTEMPTED, now);
    assert_eq!(steps(&mut scheduler, now), [2]);
    scheduler.done(JobId(0), &Came::ATTEMPTED, now);
    scheduler.done(JobId(2), &Came::ATTEMPTED, now);
    assert!(scheduler.is_idle());
    assert_eq!((scheduler.hosts(), scheduler.next_wake()), (0, None));
}

#[test]
fn a_wait_ends_at_its_time_and_goes_before_the_fresh() {
    let now = start();
    let mut scheduler = unlimited(1);
    feed(&mut scheduler, [(0, "a"), (1, "a"), (2, "b"), (3, "c")]);
    assert_eq!(steps(&mut scheduler, now), [0]);
    scheduler.wait(JobId(0), 0, wish(now + ms(10), "a"), now);
    assert_eq!(scheduler.next_wake(), Some(now + ms(10)));
    assert_eq!(scheduler.gauges().waiting.total(), 1);
    assert_eq!(steps(&mut scheduler, now + ms(9)), [2]);
    scheduler.done(JobId(2), &Came::ATTEMPTED, now + ms(10));
    // It is the turn of c; the job whose wait ended goes first.
    assert_eq!(steps(&mut scheduler, now + ms(10)), [0]);
    assert_eq!(scheduler.gauges().waiting.total(), 0);
    scheduler.done(JobId(0), &Came::ATTEMPTED, now + ms(11));
    assert_eq!(steps(&mut scheduler, now + ms(11)), [3]);
}

#[test]
fn waits_that_end_together_go_in_the_order_of_their_times() {
    let now = start();
    let mut scheduler = unlimited(3);
    feed(&mut scheduler, [(0, "a"), (1, "b"), (2, "c")]);
    assert_eq!(steps(&mut scheduler, now).len(), 3);
    for (job, name, wait) in [(0, "a", 30), (1, "b", 10), (2, "c", 20)] {
        scheduler.wait(JobId(job), job, wish(now + ms(wait), name), now);
    }
    assert_eq!(steps(&mut scheduler, now + ms(40)), [1, 2, 0]);
}

#[test]
fn hosts_take_turns() {
    for (fed, wanted) in [
        (vec!["a", "a", "a", "b", "c"], vec![0, 3, 4, 1, 2]),
        (vec!["a", "b", "a", "b"], vec![0, 1, 2, 3]),
        (vec!["a", "a", "b", "b", "b"], vec![0, 2, 1, 3, 4]),
        (vec!["", "", "a", "a"], vec![0, 2, 1, 3]),
    ] {
        let now = start();
        let mut scheduler = unlimited(1);
        feed(&mut scheduler, (0..).zip(fed.clone()));
        let mut order = Vec::new();
        while let [job] = steps(&mut scheduler, now)[..] {
            order.push(job);
            scheduler.done(JobId(job), &Came::ATTEMPTED, now);
        }
        assert_eq!(order, wanted, "{fed:?}");
    }
}

#[test]
fn a_host_at_its_limit_blocks_nobody() {
    let now = start();
    let mut scheduler = per_host(8, 2);
    feed(&mut scheduler, (0..1000).map(|job| (job, "slow")));
    feed(&mut scheduler, (1000..1003).map(|job| (job, "fast")));
    assert_eq!(steps(&mut scheduler, now), [0, 1000, 1, 1001]);
    scheduler.done(JobId(1000), &Came::ATTEMPTED, now);
    assert_eq!(steps(&mut scheduler, now), [1002]);
    scheduler.done(JobId(0), &Came::ATTEMPTED, now);
    assert_eq!(steps(&mut scheduler, now), [2]);
    // A redirect led job 1 to the other host, where it waits its turn like all.
    scheduler.wait(JobId(1), 1, wish(now, "fast"), now);
    assert_eq!(steps(&mut scheduler, now), [3]);
    scheduler.done(JobId(1001), &Came::ATTEMPTED, now);
    assert_eq!(steps(&mut scheduler, now), [1]);
}

#[test]
fn jobs_without_a_host_have_no_limit() {
    let mut scheduler = per_host(3, 1);
    feed(&mut scheduler, [(0, ""), (1, ""), (2, "")]);
    assert_eq!(steps(&mut scheduler, start()), [0, 1, 2]);
}

/// C157: 1000 URLs of a host in a cool-down of 60 s, then 1000 of others.
#[test]
fn a_host_that_cools_down_holds_no_worker() {
    let now = start();
    let mut scheduler = unlimited(8);
    feed(&mut scheduler, (0..1000).map(|job| (job, "cooling")));
    feed(&mut scheduler, (1000..2000).map(|job| (job, "other")));
    let mut finished = 0;
    loop {
        let jobs = steps(&mut scheduler, now);
        if jobs.is_empty() {
            break;
        }
        for job in jobs {
            if job < 1000 {
                let reason = WaitReason::Cooldown;
                let wish =
                    Wish { reason, came: Came::UNATTEMPTED, ..wish(now + secs(60.0), "cooling") };
                scheduler.wait(JobId(job), job, wish, now);
            } else {
                finished += 1;
                scheduler.done(JobId(job), &Came::ATTEMPTED, now);
            }
        }
    }
    assert_eq!(finished, 1000);
    assert_eq!(scheduler.gauges().waiting.total(), 1000);
    assert_eq!(scheduler.next_wake(), Some(now + secs(60.0)));
}

fn rated(capacity: usize, rate: Option<f64>, host_rate: Option<f64>) -> Scheduler<u64> {
    let limits = Limits { rate, burst: rate.map(|_| 1), host_rate, ..Limits::default() };
    under(capacity, limits)
}

#[test]
fn a_rate_that_is_hit_is_one_wait_however_many_stand_behind_it() {
    let now = start();
    let mut scheduler = rated(8, Some(2.0), None);
    feed(&mut scheduler, (0..100).map(|job| (job, "a")));
    assert_eq!(steps(&mut scheduler, now), [0]);
    assert_eq!(scheduler.next_wake(), Some(now + secs(0.5)));
    assert_eq!(scheduler.heap.len(), 1);
    assert_eq!(steps(&mut scheduler, now + secs(0.4)), NONE);
    assert_eq!(steps(&mut scheduler, now + secs(0.5)), [1]);
    // A retry stands before the fresh ones, behind the same rate.
    scheduler.wait(JobId(0), 0, wish(now + secs(0.6), "a"), now + secs(0.5));
    assert_eq!(steps(&mut scheduler, now + secs(0.9)), NONE);
    assert_eq!(steps(&mut scheduler, now + secs(1.0)), [0]);
}

#[test]
fn the_rate_of_one_host_lets_the_others_pass_and_is_forgotten() {
    let now = start();
    let mut scheduler = rated(8, None, Some(1.0));
    feed(&mut scheduler, [(0, "a"), (1, "a"), (2, "a"), (3, "b"), (4, "c")]);
    assert_eq!(steps(&mut scheduler, now), [0, 3, 4]);
    for job in [0, 3, 4] {
        scheduler.done(JobId(job), &Came::ATTEMPTED, now + ms(1));
    }
    assert_eq!(steps(&mut scheduler, now + ms(999)), NONE);
    assert_eq!(scheduler.next_wake(), Some(now + secs(1.0)));
    assert_eq!(steps(&mut scheduler, now + secs(1.0)), [1]);
    assert_eq!(scheduler.hosts(), 1);
    scheduler.done(JobId(1), &Came::ATTEMPTED, now + secs(1.1));
    assert_eq!(steps(&mut scheduler, now + secs(2.5)), [2]);
    scheduler.done(JobId(2), &Came::ATTEMPTED, now + secs(2.6));
    assert_eq!(steps(&mut scheduler, now + secs(3.5)), NONE);
    assert_eq!((scheduler.hosts(), scheduler.next_wake()), (0, None));
}

#[test]
fn a_host_that_is_only_remembered_is_not_held() {
    let now = start();
    let mut scheduler =
        under(8, Limits { host_rate: Some(1.0), host_burst: Some(2), ..Limits::default() });
    for job in [0, 1] {
        feed(&mut scheduler, [(job, "a")]);
        assert_eq!(steps(&mut scheduler, now), [job]);
        scheduler.done(JobId(job), &Came::ATTEMPTED, now);
        assert_eq!(scheduler.hosts(), 0);
    }
    feed(&mut scheduler, [(2, "a")]);
    assert_eq!(steps(&mut scheduler, now), NONE);
    assert_eq!(steps(&mut scheduler, now + secs(1.0)), [2]);
    scheduler.done(JobId(2), &Came::ATTEMPTED, now + secs(1.0));
    assert_eq!(steps(&mut scheduler, now + secs(3.0)), NONE);
    assert_eq!((scheduler.hosts(), scheduler.next_wake()), (0, None));
}

#[test]
fn a_step_without_an_attempt_uses_up_no_slot() {
    for (rate, host_rate) in [(Some(1.0), None), (None, Some(1.0)), (Some(1.0), Some(1.0))] {
        let now = start();
        let mut scheduler = rated(4, rate, host_rate);
        feed(&mut scheduler, (0..50).map(|job| (job, "cooling")));
        for job in 0..49 {
            assert_eq!(steps(&mut scheduler, now), [job], "{rate:?} {host_rate:?}");
            let wish = Wish { came: Came::UNATTEMPTED, ..wish(now + secs(60.0), "cooling") };
            scheduler.wait(JobId(job), job, wish, now);
        }
        assert_eq!(steps(&mut scheduler, now), [49]);
        scheduler.done(JobId(49), &Came::ATTEMPTED, now);
        assert_eq!(scheduler.gauges().waiting.total(), 49);
    }
}

/// A job in each place: 0 flies, 1 is queued, 2 waits.
#[test]
fn a_slot_that_a_step_gives_back_is_there_for_the_next() {
    for of_run in [true, false] {
        let (hourly, two) = (Some(1.0 / 3600.0), Some(2));
        let now = start();
        let mut scheduler = under(
            4,
            if of_run {
                Limits { rate: hourly, burst: two, ..Limits::default() }
            } else {
                Limits { host_rate: hourly, host_burst: two, ..Limits::default() }
            },
        );
        feed(&mut scheduler, [(0, "a")]);
        assert_eq!(steps(&mut scheduler, now), [0]);
        // The flight takes the other slot for a hop.
        let limits = scheduler.limits.clone().expect("limits");
        let name = host("a");
        let further = Visit { host: name.as_ref(), arrives: false };
        let taken = lock(&limits).take(further, now).expect("the second");
        feed(&mut scheduler, [(1, "a"), (2, "a")]);
        assert_eq!(steps(&mut scheduler, now), NONE);
        assert_eq!(scheduler.next_wake(), Some(now + secs(3600.0)));
        // There is no way for it after all.
        lock(&limits).give_back(name.as_ref(), taken);
        scheduler.wait(JobId(0), 0, wish(now + secs(60.0), "a"), now);
        assert_eq!(steps(&mut scheduler, now), [1], "{of_run}");
    }
}

fn in_each_place(now: Instant) -> Scheduler<u64> {
    let mut scheduler = unlimited(1);
    feed(&mut scheduler, [(2, "a")]);
    assert_eq!(steps(&mut scheduler, now), [2]);
    scheduler.wait(JobId(2), 2, wish(now + secs(9.0), "a"), now);
    feed(&mut scheduler, [(0, "a"), (1, "a")]);
    assert_eq!(steps(&mut scheduler, now), [0]);
    scheduler
}

#[test]
fn a_cancelled_job_ends_where_it_is() {
    let now = start();
    let mut scheduler = in_each_place(now);
    for job in [1, 2, 0, 77] {
        scheduler.cancel(JobId(job));
    }
    let gone = [(1, Ending::Cancelled), (2, Ending::Cancelled)];
    assert_eq!(polled(&mut scheduler, now), (vec![], gone.to_vec()));
    assert!(holds_nothing(&scheduler));
    assert_eq!(scheduler.next_wake(), None);
    // The one that flew begins no further wait.
    scheduler.wait(JobId(0), 0, wish(now + ms(1), "a"), now);
    assert_eq!(polled(&mut scheduler, now), (vec![], vec![(0, Ending::Cancelled)]));
    assert!(scheduler.is_idle());
    assert_eq!(scheduler.hosts(), 0);
}

#[test]
fn a_deadline_ends_a_job_that_nobody_takes_and_no_other() {
    let now = start();
    let until = |seconds: f64, deadline: f64| Wish {
        deadline: Some(now + secs(deadline)),
        ..wish(now + secs(seconds), "a")
    };
    let mut scheduler = per_host(4, 1);
    feed(&mut scheduler, [(0, "a")]);
    assert_eq!(steps(&mut scheduler, now), [0]);
    scheduler.wait(JobId(0), 0, until(1.0, 5.0), now);
    feed(&mut scheduler, [(1, "a")]);
    assert_eq!(steps(&mut scheduler, now), [1]);
    // Due, and behind the limit of its host.
    assert_eq!(steps(&mut scheduler, now + secs(1.0)), NONE);
    assert_eq!(scheduler.next_wake(), Some(now + secs(5.0)));
    assert_eq!(polled(&mut scheduler, now + ms(4999)), (vec![], vec![]));
    let over = now + secs(5.0);
    assert_eq!(polled(&mut scheduler, over), (vec![], vec![(0, Ending::Expired)]));
    assert!(holds_nothing(&scheduler));
    assert_eq!(scheduler.next_wake(), None);
    // What flies is not touched, what was taken in time neither.
    scheduler.wait(JobId(1), 1, until(6.0, 9.0), over);
    assert_eq!(steps(&mut scheduler, now + secs(6.0)), [1]);
    assert_eq!(scheduler.next_wake(), None);
    assert_eq!(polled(&mut scheduler, now + secs(99.0)), (vec![], vec![]));
    scheduler.done(JobId(1), &Came::ATTEMPTED, now + secs(99.0));
    assert!(scheduler.is_idle());
    assert_eq!(scheduler.hosts(), 0);
}

#[test]
fn a_lane_that_is_given_up_leaves_the_others_alone() {
    let now = start();
    let mut scheduler = in_each_place(now);
    scheduler.feed(JobId(3), LaneId(1), host("a"), 3);
    scheduler.cancel_lane(LANE);
    let gone = [(1, Ending::Cancelled), (2, Ending::Cancelled)];
    assert_eq!(polled(&mut scheduler, now), (vec![], gone.to_vec()));
    scheduler.wait(JobId(0), 0, wish(now + ms(1), "a"), now);
    assert_eq!(polled(&mut scheduler, now), (vec![3], vec![(0, Ending::Cancelled)]));
}

#[test]
fn after_a_stop_nothing_is_stepped_and_everything_ends() {
    let now = start();
    for outcome in ["done", "wait", "untouched"] {
        let mut scheduler = in_each_place(now);
        scheduler.stop();
        let gone = [(1, Ending::Stopped), (2, Ending::Stopped)];
        assert_eq!(polled(&mut scheduler, now), (vec![], gone.to_vec()));
        feed(&mut scheduler, [(4, "a")]);
        assert_eq!(polled(&mut scheduler, now), (vec![], vec![(4, Ending::Stopped)]));
        assert!(!scheduler.is_idle());
        let wanted = match outcome {
            "done" => {
                scheduler.done(JobId(0), &Came::ATTEMPTED, now);
                vec![]
            }
            "wait" => {
                scheduler.wait(JobId(0), 0, wish(now, "a"), now);
                vec![(0, Ending::Stopped)]
            }
            _ => {
                scheduler.untouched(JobId(0), 0, now);
                vec![(0, Ending::Stopped)]
            }
        };
        assert_eq!(polled(&mut scheduler, now), (vec![], wanted), "{outcome}");
        assert!(scheduler.is_idle());
        assert_eq!(scheduler.hosts(), 0);
    }
}

#[test]
fn feeding_and_cancelling_behind_a_limit_leaves_nothing_behind() {
    let now = start();
    let mut scheduler = per_host(1, 1);
    feed(&mut scheduler, [(0, "a")]);
    assert_eq!(steps(&mut scheduler, now), [0]);
    for job in 1..1000 {
        for name in ["a", "b"] {
            scheduler.feed(JobId(job), LANE, host(name), job);
            scheduler.cancel(JobId(job));
            assert_eq!(polled(&mut scheduler, now), (vec![], vec![(job, Ending::Cancelled)]));
        }
    }
    scheduler.done(JobId(0), &Came::ATTEMPTED, now);
    assert_eq!(steps(&mut scheduler, now), NONE);
    assert_eq!((scheduler.hosts(), scheduler.gauges().ready), (0, 0));
}

#[test]
fn what_flies_at_once_follows_the_answers_and_nothing_more_flies_meanwhile() {
    let now = start();
    let mut scheduler = unlimited(100).adaptive();
    feed(&mut scheduler, (0..1000).map(|id| (id, "one")));
    let mut flying: VecDeque<u64> = steps(&mut scheduler, now).into();
    assert_eq!(flying.len(), 8);
    let heard = |echo| Came { echo: Some(echo), ..Came::ATTEMPTED };
    for _ in 0..48 {
        let id = flying.pop_front().expect("some fly");
        scheduler.done(JobId(id), &heard(Echo::Heard(ms(100))), now);
        flying.extend(steps(&mut scheduler, now));
    }
    assert_eq!((flying.len(), scheduler.most_flying()), (12, 12));
    // Seven of these were begun before, and say nothing about twelve.
    for _ in 0..10 {
        assert_eq!((flying.len(), scheduler.most_flying()), (12, 12));
        let id = flying.pop_front().expect("some fly");
        scheduler.done(JobId(id), &heard(Echo::Throttled), now);
        flying.extend(steps(&mut scheduler, now));
    }
    assert_eq!((flying.len(), scheduler.most_flying()), (11, 8));
    for id in std::mem::take(&mut flying) {
        scheduler.done(JobId(id), &heard(Echo::Throttled), now);
    }
    assert_eq!(scheduler.gauges().found, Found { limit: 8, most: 8, back_offs: 1 });
    assert_eq!(steps(&mut scheduler, now).len(), 8);
}

/// When the last of 1000 jobs of a host in good health is done, at eight workers and 100 ms each,
/// with or without another one beside it that has 1000 too and asks everybody for a minute's quiet.
fn good_host_is_done(beside_a_throttling_one: bool) -> Duration {
    let begin = start();
    let mut scheduler = unlimited(8);
    for id in 0..1000 {
        if beside_a_throttling_one {
            feed(&mut scheduler, [(2 * id, "tired")]);
        }
        feed(&mut scheduler, [(2 * id + 1, "good")]);
    }
    let mut quiet_until = begin;
    let mut landings: BTreeMap<(Instant, u64), bool> = BTreeMap::new();
    let (mut now, mut done) = (begin, 0);
    while done < 1000 {
        while let Some(action) = scheduler.poll(now) {
            let Action::Step(id) = action else { panic!("nothing ends by itself") };
            // Who finds the host cooling down makes no attempt and takes no time.
            let attempts = id % 2 == 1 || now >= quiet_until;
            landings.insert((if attempts { now + ms(100) } else { now }, id), attempts);
        }
        let woken = scheduler.next_wake();
        let landed = landings.first_key_value().map(|((at, _), _)| *at);
        now = [woken, landed].into_iter().flatten().min().expect("something happens").max(now);
        while let Some(entry) = landings.first_entry().filter(|entry| entry.key().0 <= now) {
            let ((_, id), attempted) = entry.remove_entry();
            if id % 2 == 1 {
                scheduler.done(JobId(id), &Came::ATTEMPTED, now);
                done += 1;
                continue;
            }
            if attempted {
                quiet_until = now + secs(60.0);
            }
            let came = Came { attempted, ..Came::UNATTEMPTED };
            let wish = Wish { came, reason: WaitReason::Cooldown, ..wish(quiet_until, "tired") };
            scheduler.wait(JobId(id), id, wish, now);
        }
    }
    now - begin
}

#[test]
fn beside_a_host_in_cooldown_another_is_done_as_if_alone() {
    let alone = good_host_is_done(false);
    assert_eq!(alone, secs(12.5));
    // The first round of the throttling one is all that it costs.
    let beside = good_host_is_done(true);
    assert!(beside <= alone + ms(100), "{beside:?} instead of {alone:?}");
}
