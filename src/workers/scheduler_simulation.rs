//! Whole runs under a hand-moved clock: any mix of waits, limits, cancellations, panics and
//! stops, over many seeds, with every promise checked at each decision.

use super::{Action, Came, Ending, JobId, LaneId, Scheduler, Wish, host, ms, start};
use crate::error::WaitReason;
use crate::rng::Rng;
use crate::workers::limits::Limits;
use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

/// What the world knows of a job.
#[derive(Debug, Clone, PartialEq)]
enum State {
    Fresh,
    Flying { began: Instant, lands: Instant },
    Waiting { until: Instant, deadline: Option<Instant> },
}

#[derive(Debug, Clone)]
struct Known {
    host: String,
    lane: u64,
    state: State,
    given_up: bool,
}

struct World {
    seed: u64,
    rng: Rng,
    now: Instant,
    capacity: usize,
    per_host: Option<usize>,
    rate: Option<f64>,
    host_rate: Option<f64>,
    permits: usize,
    scheduler: Scheduler<u64>,
    /// Those that have not ended.
    jobs: BTreeMap<u64, Known>,
    to_feed: u64,
    ended: BTreeSet<u64>,
    untaken: usize,
    stopped: bool,
    expired: usize,
    attempts: Vec<(Instant, String)>,
    most_held: usize,
}

const RATE_BURST: u32 = 2;
const HOSTS: usize = 5;

impl World {
    fn new(seed: u64) -> Self {
        let mut rng = Rng::seeded(seed);
        let capacity = 1 + rng.below(12);
        let per_host = (rng.below(2) == 0).then(|| 1 + rng.below(4));
        let rate = (rng.below(3) == 0).then(|| rng.uniform(20.0, 2000.0));
        let host_rate = (rng.below(3) == 0).then(|| rng.uniform(10.0, 500.0));
        let limits = Limits {
            rate,
            burst: rate.map(|_| RATE_BURST),
            host_rate,
            host_burst: host_rate.map(|_| RATE_BURST),
            per_host,
        };
        let limits = limits.counted().expect("limits");
        Self {
            seed,
            now: start(),
            capacity,
            per_host,
            rate,
            host_rate,
            permits: 1 + rng.below(60),
            scheduler: Scheduler::new(capacity, limits),
            jobs: BTreeMap::new(),
            to_feed: 40 + rng.below(160) as u64,
            ended: BTreeSet::new(),
            untaken: 0,
            stopped: false,
            expired: 0,
            attempts: Vec::new(),
            most_held: 0,
            rng,
        }
    }

    fn run(mut self) -> Self {
        let total = self.to_feed;
        let mut turns = 0;
        while self.ended.len() < total as usize || self.untaken > 0 {
            turns += 1;
            assert!(turns < 200_000, "seed {}: no end in sight", self.seed);
            self.feed(total);
            self.interfere();
            self.act();
            self.land();
            // Results lie about for a while before they are taken.
            self.untaken -= self.rng.below(self.untaken + 1);
            self.go_on();
        }
        self.settle(total);
        self
    }

    fn held(&self) -> usize {
        self.jobs.len() + self.untaken
    }

    fn feed(&mut self, total: u64) {
        while self.to_feed > 0 && self.held() < self.permits && self.rng.below(4) > 0 {
            let id = total - self.to_feed;
            self.to_feed -= 1;
            let name = format!("h{}", self.rng.below(HOSTS));
            let name = if self.rng.below(20) == 0 { String::new() } else { name };
            let lane = self.rng.below(2) as u64;
            self.scheduler.feed(JobId(id), LaneId(lane), host(&name), id);
            let known = Known { host: name, lane, state: State::Fresh, given_up: false };
            self.jobs.insert(id, known);
            self.most_held = self.most_held.max(self.held());
        }
    }

    /// Cancels something, or stops everything.
    fn interfere(&mut self) {
        match self.rng.below(2000) {
            0 => {
                self.scheduler.stop();
                self.stopped = true;
            }
            1..10 => {
                let lane = self.rng.below(2) as u64;
                self.scheduler.cancel_lane(LaneId(lane));
                for job in self.jobs.values_mut().filter(|job| job.lane == lane) {
                    job.given_up = true;
                }
            }
            10..60 if !self.jobs.is_empty() => {
                let place = self.rng.below(self.jobs.len());
                let id = *self.jobs.keys().nth(place).expect("one of them");
                self.scheduler.cancel(JobId(id));
                self.jobs.get_mut(&id).expect("fed").given_up = true;
            }
            _ => {}
        }
    }

    fn act(&mut self) {
        while let Some(action) = self.scheduler.poll(self.now) {
            match action {
                Action::Step(id) => self.begin(id),
                Action::End(id, ending) => {
                    let job = &self.jobs[&id];
                    assert!(!matches!(job.state, State::Flying { .. }), "seed {}", self.seed);
                    match ending {
                        Ending::Stopped => assert!(self.stopped, "seed {}", self.seed),
                        Ending::Cancelled => assert!(job.given_up, "seed {}", self.seed),
                        Ending::Expired => {
                            let State::Waiting { deadline: Some(deadline), .. } = job.state else {
                                panic!("seed {}: {id} has no deadline", self.seed);
                            };
                            assert!(deadline <= self.now, "seed {}", self.seed);
                            self.expired += 1;
                        }
                    }
                    self.end(id);
                }
            }
        }
        // Nobody idles while there is something to do. (A rate is a reason to idle.)
        if self.rate.is_none() && self.host_rate.is_none() && !self.stopped {
            assert!(self.flying().count() == self.capacity || !self.has_ready(), "{}", self.seed);
        }
    }

    fn begin(&mut self, id: u64) {
        let seed = self.seed;
        let job = self.jobs[&id].clone();
        assert!(!self.stopped && !job.given_up, "seed {seed}: {job:?}");
        match job.state {
            State::Fresh => assert!(
                self.host_rate.is_some() || !self.has_ready_due(),
                "seed {seed}: fresh {id} before a due one"
            ),
            State::Waiting { until, deadline } => {
                assert!(until <= self.now, "seed {seed}: {id} early");
                let late = deadline.is_some_and(|deadline| deadline <= self.now);
                assert!(!late, "seed {seed}: {id} after its deadline");
            }
            State::Flying { .. } => panic!("seed {seed}: {id} stepped while it flies"),
        }
        assert!(self.flying().count() < self.capacity, "seed {seed}");
        if let Some(limit) = self.per_host.filter(|_| !job.host.is_empty()) {
            let there = self.flying().filter(|other| other.host == job.host).count();
            assert!(there < limit, "seed {seed}: {} over its limit", job.host);
        }
        let lands = self.now + ms(self.rng.below(40) as u64);
        let job = self.jobs.get_mut(&id).expect("fed");
        job.state = State::Flying { began: self.now, lands };
    }

    /// What lands now comes back in one way or another.
    fn land(&mut self) {
        let landing: Vec<u64> = self
            .jobs
            .iter()
            .filter(
                |(_, job)| matches!(job.state, State::Flying { lands, .. } if lands <= self.now),
            )
            .map(|(id, _)| *id)
            .collect();
        for id in landing {
            let name = self.jobs[&id].host.clone();
            let State::Flying { began, .. } = self.jobs[&id].state else { continue };
            match self.rng.below(10) {
                // Done, failed, or a panic: the scheduler need not know which.
                0..5 => {
                    self.attempts.push((began, name));
                    self.scheduler.done(JobId(id), &Came::ATTEMPTED, self.now);
                    self.end(id);
                }
                5 if self.stopped => {
                    self.scheduler.untouched(JobId(id), id, self.now);
                    self.jobs.get_mut(&id).expect("fed").state = State::Fresh;
                }
                kind => {
                    let attempted = kind < 9;
                    if attempted {
                        self.attempts.push((began, name.clone()));
                    }
                    // Some follow a redirect to another host first.
                    let next = if self.rng.below(8) == 0 {
                        format!("h{}", self.rng.below(HOSTS))
                    } else {
                        name
                    };
                    let until = self.now + ms(self.rng.below(300) as u64);
                    let reason = WaitReason::Backoff;
                    let deadline =
                        (self.rng.below(4) == 0).then(|| until + ms(1 + self.rng.below(30) as u64));
                    let came = Came { attempted, ..Came::UNATTEMPTED };
                    let wish = Wish { until, reason, host: host(&next), came, deadline };
                    self.scheduler.wait(JobId(id), id, wish, self.now);
                    let job = self.jobs.get_mut(&id).expect("fed");
                    job.host = next;
                    job.state = State::Waiting { until, deadline };
                }
            }
        }
    }

    /// To the next moment at which something happens, or a little.
    fn go_on(&mut self) {
        let lands = self.flying().filter_map(|job| match job.state {
            State::Flying { lands, .. } => Some(lands),
            _ => None,
        });
        let next = lands.chain(self.scheduler.next_wake()).min();
        match next {
            Some(next) if self.rng.below(4) > 0 => self.now = self.now.max(next),
            _ => self.now += ms(self.rng.below(5) as u64),
        }
    }

    fn end(&mut self, id: u64) {
        assert!(self.jobs.remove(&id).is_some(), "seed {}: {id} ended twice", self.seed);
        assert!(self.ended.insert(id), "seed {}: {id} came back", self.seed);
        self.untaken += 1;
    }

    fn settle(&mut self, total: u64) {
        assert_eq!(self.ended.len(), total as usize);
        assert!(self.scheduler.is_idle(), "seed {}", self.seed);
        assert!(self.most_held <= self.permits, "seed {}", self.seed);
        let gauges = self.scheduler.gauges();
        assert_eq!((gauges.ready, gauges.waiting.total()), (0, 0), "seed {}", self.seed);
        while let Some(next) = self.scheduler.next_wake() {
            self.now = self.now.max(next);
            assert!(self.scheduler.poll(self.now).is_none());
        }
        assert_eq!(self.scheduler.hosts(), 0, "seed {}", self.seed);
        self.attempts.sort();
        let times = |name: Option<&str>| -> Vec<Instant> {
            let picked = |at: &&(Instant, String)| match name {
                Some(name) => at.1 == name,
                None => true,
            };
            self.attempts.iter().filter(picked).map(|attempt| attempt.0).collect()
        };
        if let Some(rate) = self.rate {
            self.check_rate(rate, &times(None));
        }
        if let Some(rate) = self.host_rate {
            for host in 0..HOSTS {
                self.check_rate(rate, &times(Some(&format!("h{host}"))));
            }
        }
    }

    /// In any stretch: what the rate gives, and its burst.
    fn check_rate(&self, rate: f64, times: &[Instant]) {
        let allowed = f64::from(RATE_BURST);
        let Some(begin) = times.first().copied() else { return };
        // Attempts made before a stretch, less what the rate gave until then: the lowest so far.
        let mut lowest = f64::INFINITY;
        for (before, at) in times.iter().enumerate() {
            let given = (*at - begin).as_secs_f64() * rate;
            lowest = lowest.min(before as f64 - given);
            let over = before as f64 + 1.0 - given - lowest;
            assert!(over <= allowed + 1e-3, "seed {}: {over} over {rate}", self.seed);
        }
    }

    fn flying(&self) -> impl Iterator<Item = &Known> {
        self.jobs.values().filter(|job| matches!(job.state, State::Flying { .. }))
    }

    fn is_open(&self, job: &Known) -> bool {
        let there = self.flying().filter(|other| other.host == job.host).count();
        job.host.is_empty() || self.per_host.is_none_or(|limit| there < limit)
    }

    fn has_ready_due(&self) -> bool {
        self.jobs.values().any(|job| {
            matches!(job.state, State::Waiting { until, .. } if until <= self.now)
                && !job.given_up
                && self.is_open(job)
        })
    }

    fn has_ready(&self) -> bool {
        let fresh = |job: &Known| job.state == State::Fresh && !job.given_up && self.is_open(job);
        self.has_ready_due() || self.jobs.values().any(fresh)
    }
}

#[test]
fn every_promise_holds_over_many_seeds() {
    let (mut stopped, mut ran_through, mut expired) = (0, 0, 0);
    for seed in 0..400 {
        let world = World::new(seed).run();
        if world.stopped {
            stopped += 1;
        } else {
            ran_through += 1;
        }
        expired += world.expired;
    }
    // The dice leave enough of both.
    assert!(stopped > 25 && ran_through > 100, "{stopped} {ran_through}");
    assert!(expired > 100, "{expired}");
}

#[test]
fn one_seed_repeats() {
    // Instants differ from run to run, their distances do not.
    let trace = |seed| -> Vec<(Duration, String)> {
        let world = World::new(seed).run();
        let begin = world.attempts[0].0;
        world.attempts.iter().map(|(at, name)| (*at - begin, name.clone())).collect()
    };
    assert_eq!(trace(5), trace(5));
    assert_ne!(trace(5), trace(6));
}
