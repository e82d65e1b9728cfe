//! One worker: takes a job, makes one step, tells what came of it.
//!
//! A worker never sleeps and never decides. Its context (the session) is made on its own thread
//! when the first job comes, so a thousand workers on five URLs make five sessions. After a panic
//! the context may be in any state: it is thrown away, and the next job gets a new one.

use super::crew::Called;
use super::dispatch::{Event, Failure, Job, Outcome, Shared, Task, words};
use super::scheduler::{Came, Wish};
use crate::error::Error;
use crossbeam_channel::Receiver;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Makes the context of a worker.
pub(crate) struct MakeContext<T: Task>(
    pub(crate) Box<dyn Fn() -> Result<T::Context, Error> + Send + Sync>,
);

/// The body of the worker thread of this number; returns when the queue is closed.
pub(crate) fn work<T: Task>(
    shared: &Arc<Shared<T>>,
    make: &MakeContext<T>,
    jobs: &Receiver<Box<Job<T>>>,
    number: usize,
    called: &Called,
) {
    let mut context = None;
    loop {
        if !called.includes(number) {
            // With the session go its connections.
            throw_away(context.take());
            called.rest(number);
        }
        let Ok(job) = jobs.recv() else { return };
        if shared.control.is_stopping() {
            shared.tell(Event::Untouched(job));
            continue;
        }
        let event = step(shared, make, &mut context, job);
        shared.tell(event);
    }
}

/// One step of a job, and what is to be told of it.
pub(crate) fn step<T: Task>(
    shared: &Shared<T>,
    make: &MakeContext<T>,
    context: &mut Option<T::Context>,
    mut job: Box<Job<T>>,
) -> Event<T> {
    let id = job.id;
    let counters = &shared.counters;
    counters.in_flight.fetch_add(1, Ordering::Relaxed);
    let stepped = catch_unwind(AssertUnwindSafe(|| {
        let context = match context {
            Some(context) => context,
            None => context.insert((make.0)()?),
        };
        Ok(job.task.step(context, &*shared.clock))
    }));
    counters.in_flight.fetch_sub(1, Ordering::Relaxed);
    let visited = job.task.take_visits();
    match stepped {
        Ok(Ok(stepped)) => {
            let came = stepped.came(visited);
            counters.count_attempts(stepped.made);
            match stepped.outcome {
                Outcome::Done(output) => job.finish(output),
                Outcome::Failed(output) if shared.control.is_aborting() => {
                    job.finish(T::cut(output, &shared.control.cause()));
                }
                Outcome::Failed(output) => job.finish(output),
                Outcome::Wait { until, reason } => {
                    counters.count_wait(until, shared.clock.now());
                    let (host, deadline) = (job.task.host(), job.task.deadline());
                    let wish = Wish { until, reason, host, came, deadline };
                    return Event::Wait { job, wish };
                }
            }
            Event::Done { id, came }
        }
        Ok(Err(error)) => {
            job.fail(Failure::NoContext(error));
            Event::Done { id, came: Came::UNATTEMPTED }
        }
        Err(panic) => {
            counters.panics.fetch_add(1, Ordering::Relaxed);
            job.fail(Failure::Panicked(words(&*panic).to_owned()));
            throw_away(context.take());
            // Whether an attempt was begun is unknown: the slot counts as used.
            Event::Done { id, came: Came { visited, ..Came::ATTEMPTED } }
        }
    }
}

fn throw_away<C>(context: Option<C>) {
    if catch_unwind(AssertUnwindSafe(|| drop(context))).is_err() {
        log::error!(target: "longhaul::workers", "a session panicked while it was thrown away");
    }
}
