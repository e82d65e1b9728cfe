//! The course of a night: workers, waits and what becomes known, in the order of time.
//!
//! A discrete-event simulation with three kinds of events: a step ends, something that a step
//! showed becomes known, and whatever the scheduler wants to be woken for. A step is made when it
//! begins, in one go, on the clock of its worker; that clock then tells when it ends. Since steps
//! begin in the order of time, and what they show becomes known in the order of time, no decision
//! is made with knowledge of what has not happened yet.

use super::origin::{Origin, World};
use super::report::{Load, Report, Tally};
use super::{Happening, Moment, Simulation};
use crate::error::Error;
use crate::message::Request;
use crate::policy::{Bound, WorstCase};
use crate::rng::Rng;
use crate::session::{Lesson, Lessons, Session, SessionBuilder};
use crate::time::{Clock, SimClock};
use crate::workers::Finished;
use crate::workers::builder::Checked;
use crate::workers::delay::DelayHeap;
use crate::workers::dispatch::{Failure, Outcome, Rule, Stepped, Task};
use crate::workers::scheduler::{Action, Came, Ending, JobId, LaneId, Scheduler, Wish};
use crate::workers::stop::StopReason;
use crate::workers::task::FlightTask;
use http::Method;
use std::sync::Arc;
use std::time::Instant;

/// All jobs belong to one run.
const LANE: LaneId = LaneId(0);

/// Runs the night.
pub(super) fn run(
    plan: &Simulation,
    checked: Checked,
    watch: &mut dyn FnMut(Moment<'_>),
) -> Result<Report, Error> {
    let scheduler = checked.scheduler();
    let Checked { session, workers, permits, rule, .. } = checked;
    let lessons = Arc::new(Lessons::default());
    let recipe = session.seed(plan.seed).apart(Arc::clone(&lessons));
    let proxies = recipe.proxy_stats().len();
    let world = Arc::new(World::new(plan.faults.clone(), plan.seed, plan.urls, proxies));
    let clock = SimClock::default();
    let crew = (0..workers)
        .map(|_| Worker::new(&recipe, &clock, &world))
        .collect::<Result<Vec<_>, Error>>()?;
    let settings = recipe.settings();
    let worst = WorstCase::of(&settings.retry, &settings.timeouts);
    let promised = if plan.faults.throttles() { worst.with_retry_after() } else { worst.exact() };
    let start = clock.now();
    let night = Night {
        start,
        now: start,
        end: start.checked_add(plan.horizon),
        hosts: plan.hosts,
        urls: plan.urls as u64,
        permits,
        fed: 0,
        held: 0,
        scheduler,
        events: DelayHeap::new(),
        idle: (0..workers).rev().collect(),
        crew,
        tally: Tally::new(plan.bucket, plan.urls, settings.timeouts.deadline()),
        // Beside those of the workers.
        rng: Rng::stream(plan.seed, u64::MAX - 1),
        lessons,
        recipe,
        rule,
        stopped: None,
        watch,
    };
    Ok(night.pass(plan, promised))
}

struct Worker {
    session: Session,
    clock: Arc<SimClock>,
}

impl Worker {
    fn new(recipe: &SessionBuilder, clock: &SimClock, world: &Arc<World>) -> Result<Self, Error> {
        let clock = Arc::new(clock.fork());
        let shared: Arc<dyn Clock> = Arc::<SimClock>::clone(&clock);
        let (of_origin, world) = (Arc::clone(&shared), Arc::clone(world));
        let recipe = recipe
            .clone()
            .clock(shared)
            .transport(move || Origin { world: Arc::clone(&world), clock: Arc::clone(&of_origin) });
        Ok(Self { session: recipe.build()?, clock })
    }
}

struct Job {
    number: u64,
    task: FlightTask,
}

enum Event {
    Learnt(Lesson),
    Landed(Landed),
}

/// A step that has ended.
struct Landed {
    worker: usize,
    job: Box<Job>,
    began: Instant,
    attempts: u64,
    came: Came,
    outcome: Outcome<Box<Finished>>,
}

struct Night<'a> {
    start: Instant,
    now: Instant,
    /// When it is broken off.
    end: Option<Instant>,
    hosts: usize,
    urls: u64,
    permits: usize,
    fed: u64,
    held: usize,
    scheduler: Scheduler<Box<Job>>,
    events: DelayHeap<Event>,
    /// The workers that have nothing to do; the last of them is next.
    idle: Vec<usize>,
    crew: Vec<Worker>,
    tally: Tally,
    rng: Rng,
    lessons: Arc<Lessons>,
    recipe: SessionBuilder,
    rule: Option<Arc<dyn Rule<Finished>>>,
    stopped: Option<StopReason>,
    watch: &'a mut dyn FnMut(Moment<'_>),
}

impl Night<'_> {
    fn pass(mut self, plan: &Simulation, promised: Bound) -> Report {
        self.lessons.come_to(self.now);
        loop {
            self.feed();
            while let Some(action) = self.scheduler.poll(self.now) {
                match action {
                    Action::Step(job) => self.step(job),
                    Action::End(job, ending) => self.give_up(job, ending),
                }
            }
            if self.held == 0 && (self.fed == self.urls || self.stopped.is_some()) {
                break;
            }
            let next = [self.events.next_due(), self.scheduler.next_wake()];
            let Some(next) = next.into_iter().flatten().min() else { break };
            if self.stopped.is_none() && self.end.is_some_and(|end| next > end) {
                let days = plan.horizon.as_secs_f64() / 86_400.0;
                self.stop(StopReason::rule(format!("the night was longer than {days} days")));
                continue;
            }
            self.go_on_to(next);
        }
        let stopped = self.stopped.map(|reason| reason.to_string());
        let found = self.scheduler.gauges().found;
        self.tally.close(plan.seed, self.crew.len(), found, promised, stopped)
    }

    /// Feeds as far as permits go: a result is taken as soon as it is there.
    fn feed(&mut self) {
        while self.fed < self.urls && self.held < self.permits && self.stopped.is_none() {
            let number = self.fed;
            let request = Request::new(Method::GET, World::url(number, self.hosts));
            let task = FlightTask::new(request, number);
            self.fed += 1;
            self.held += 1;
            let host = task.host();
            self.scheduler.feed(JobId(number), LANE, host, Box::new(Job { number, task }));
        }
    }

    /// Lets time pass, and happen what is due.
    fn go_on_to(&mut self, next: Instant) {
        let waiting = self.scheduler.gauges();
        let load = Load {
            in_flight: self.crew.len() - self.idle.len(),
            waiting: waiting.waiting.total(),
            ready: waiting.ready,
        };
        self.now = self.now.max(next);
        self.tally.pass(self.now - self.start, load);
        self.lessons.come_to(self.now);
        while let Some(event) = self.events.pop_due(self.now) {
            match event {
                Event::Learnt(lesson) => self.recipe.learn(lesson, &mut self.rng),
                Event::Landed(landed) => self.land(landed),
            }
        }
    }

    /// Makes the step of a job that a worker takes now; its end is an event to come.
    fn step(&mut self, mut job: Box<Job>) {
        let free = self.idle.pop();
        let Some((number, worker)) = free.and_then(|number| Some((number, self.crew.get(number)?)))
        else {
            // The scheduler never has more in flight than there are workers.
            debug_assert!(false, "a step without a worker");
            return;
        };
        worker.clock.sleep_until(self.now);
        let stepped = job.task.step(&worker.session, &*worker.clock);
        let came = stepped.came(job.task.take_visits());
        let Stepped { made, outcome, .. } = stepped;
        let attempts = made.attempts;
        let ends = worker.clock.now();
        let outcome = match outcome {
            Outcome::Done(finished) => Outcome::Done(Box::new(finished)),
            Outcome::Failed(finished) => Outcome::Failed(Box::new(finished)),
            Outcome::Wait { until, reason } => Outcome::Wait { until, reason },
        };
        if attempts > 0 {
            self.tell(job.number, Happening::Began { worker: number });
        }
        for lesson in self.lessons.take() {
            self.events.set(lesson.at, Event::Learnt(lesson));
        }
        let landed = Landed { worker: number, job, began: self.now, attempts, came, outcome };
        self.events.set(ends, Event::Landed(landed));
    }

    fn land(&mut self, landed: Landed) {
        let Landed { worker, job, began, attempts, came, outcome } = landed;
        self.idle.push(worker);
        self.tally.landed(self.now - began, attempts);
        let id = JobId(job.number);
        let attempted = came.attempted;
        match outcome {
            Outcome::Done(finished) | Outcome::Failed(finished) => {
                self.scheduler.done(id, &came, self.now);
                let reason = self.rule.as_ref().and_then(|rule| rule(&finished));
                self.finish(job.number, &finished);
                if let Some(reason) = reason {
                    self.stop(reason);
                }
            }
            Outcome::Wait { until, reason } => {
                self.tally.waits(reason, until.saturating_duration_since(self.now));
                let waits = Happening::Waits { until: until - self.start, reason, attempted };
                self.tell(job.number, waits);
                let (host, deadline) = (job.task.host(), job.task.deadline());
                let wish = Wish { until, reason, host, came, deadline };
                self.scheduler.wait(id, job, wish, self.now);
            }
        }
    }

    fn stop(&mut self, reason: StopReason) {
        self.scheduler.stop();
        self.stopped.get_or_insert(reason);
    }

    /// Ends a job without a further attempt.
    fn give_up(&mut self, mut job: Box<Job>, ending: Ending) {
        let failure = match (ending, &self.stopped) {
            (Ending::Stopped, Some(reason)) => Failure::Stopped(reason.clone()),
            (Ending::Expired, _) => Failure::Expired,
            _ => Failure::Cancelled,
        };
        let finished = job.task.fail(failure, self.now);
        self.finish(job.number, &finished);
    }

    fn finish(&mut self, number: u64, finished: &Finished) {
        self.held -= 1;
        self.tally.ended(finished);
        self.tell(number, Happening::Ended(finished));
    }

    fn tell(&mut self, url: u64, what: Happening<'_>) {
        (self.watch)(Moment { at: self.now - self.start, url, what });
    }
}
