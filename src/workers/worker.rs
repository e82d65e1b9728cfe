//! One worker: takes a job, makes one step, tells what came of it.
//!
//! A worker never sleeps and never decides. Its context (the session) is made on its own thread
//! when the first job comes, so a thousand workers on five URLs make five sessions. After a panic
//! the context may be in any state: it is thrown away, and the next job gets a new one.

use super::dispatch::{Event, Failure, Job, Outcome, Shared, Task, words};
use super::scheduler::Wish;
use crate::error::Error;
use crossbeam_channel::Receiver;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Makes the context of a worker.
pub(crate) struct MakeContext<T: Task>(
    pub(crate) Box<dyn Fn() -> Result<T::Context, Error> + Send + Sync>,
);

/// The body of a worker thread; returns when the queue is closed.
pub(crate) fn work<T: Task>(
    shared: &Arc<Shared<T>>,
    make: &MakeContext<T>,
    jobs: &Receiver<Box<Job<T>>>,
) {
    let mut context = None;
    for job in jobs {
        if shared.control.is_stopping() {
            shared.tell(Event::Untouched(job));
            continue;
        }
        shared.counters.in_flight.fetch_add(1, Ordering::Relaxed);
        let event = step(shared, make, &mut context, job);
        shared.tell(event);
    }
}

fn step<T: Task>(
    shared: &Shared<T>,
    make: &MakeContext<T>,
    context: &mut Option<T::Context>,
    mut job: Box<Job<T>>,
) -> Event<T> {
    let id = job.id;
    let counters = &shared.counters;
    let stepped = catch_unwind(AssertUnwindSafe(|| {
        let context = match context {
            Some(context) => context,
            None => context.insert((make.0)()?),
        };
        Ok(job.task.step(context, &*shared.clock))
    }));
    counters.in_flight.fetch_sub(1, Ordering::Relaxed);
    match stepped {
        Ok(Ok(stepped)) => {
            let attempted = stepped.attempts > 0;
            counters.attempts.fetch_add(stepped.attempts, Ordering::Relaxed);
            match stepped.outcome {
                Outcome::Done(output) => job.finish(output),
                Outcome::Failed(output) if shared.control.is_aborting() => {
                    job.finish(T::cut(output, &shared.control.cause()));
                }
                Outcome::Failed(output) => job.finish(output),
                Outcome::Wait { until, reason } => {
                    let (host, deadline) = (job.task.host(), job.task.deadline());
                    let wish = Wish { until, reason, host, attempted, deadline };
                    return Event::Wait { job, wish };
                }
            }
            Event::Done { id, attempted }
        }
        Ok(Err(error)) => {
            job.fail(Failure::NoContext(error));
            Event::Done { id, attempted: false }
        }
        Err(panic) => {
            counters.panics.fetch_add(1, Ordering::Relaxed);
            job.fail(Failure::Panicked(words(&*panic).to_owned()));
            let broken = context.take();
            if catch_unwind(AssertUnwindSafe(|| drop(broken))).is_err() {
                log::error!("a session panicked again while it was thrown away after a panic");
            }
            // Whether an attempt was begun is unknown: the slot counts as used.
            Event::Done { id, attempted: true }
        }
    }
}
