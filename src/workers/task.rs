//! A flight as a task of the pool, and what comes of it.

use super::dispatch::{Failure, Outcome, Stepped, Task};
use super::stats::Made;
use super::stop::StopReason;
use crate::error::{Attempt, Error, ErrorKind};
use crate::message::{Request, Response, prepare_url, shown_url};
use crate::policy::Echo;
use crate::session::{Flight, Session, Step};
use crate::time::Clock;
use http::Method;
use std::cell::OnceCell;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// One finished job.
#[non_exhaustive]
pub struct Finished {
    /// Its place in the input, from 0.
    pub index: u64,
    /// The caller's name for it.
    pub id: Option<String>,
    /// The URL as it was given.
    pub url: String,
    /// The method as it was given.
    pub method: Method,
    /// What came of it.
    pub result: Result<Response, Error>,
    /// From its first attempt to its end; zero where there was none.
    pub elapsed: Duration,
}

impl Finished {
    /// What came of a request that no pool sent, for a record of it; `elapsed` is from its first
    /// attempt to its end.
    pub fn of(request: &Request, result: Result<Response, Error>, elapsed: Duration) -> Self {
        Self {
            index: 0,
            id: request.id.clone(),
            url: request.url.clone(),
            method: request.method.clone(),
            result,
            elapsed,
        }
    }

    /// Every attempt that was made, oldest first, of a response and of an error alike.
    pub fn attempts(&self) -> &[Attempt] {
        match &self.result {
            Ok(response) => response.attempts(),
            Err(error) => error.attempts(),
        }
    }

    /// Whether it was ended by a stop or by its owner rather than by its own outcome. It is not
    /// done, and a later run would ask again.
    pub fn is_cancelled(&self) -> bool {
        self.result.as_ref().is_err_and(|error| error.kind() == ErrorKind::Cancelled)
    }

    /// The end of input that describes no request.
    pub(crate) fn of_bad_input(index: u64, error: Error) -> Self {
        Self {
            index,
            id: None,
            url: error.url().unwrap_or_default().to_owned(),
            method: Method::GET,
            result: Err(error),
            elapsed: Duration::ZERO,
        }
    }

    /// The end of a request that never became a job.
    pub(crate) fn of_unfed(index: u64, request: Request, failure: Failure) -> Self {
        Self {
            index,
            id: request.id,
            url: request.url,
            method: request.method,
            result: Err(failure.into_error()),
            elapsed: Duration::ZERO,
        }
    }
}

/// The URL without credentials.
impl fmt::Debug for Finished {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Finished")
            .field("index", &self.index)
            .field("id", &self.id)
            .field("url", &shown_url(&self.url))
            .field("method", &self.method)
            .field("result", &self.result)
            .field("elapsed", &self.elapsed)
            .finish()
    }
}

/// A flight with what its result needs to say.
#[derive(Debug)]
pub(crate) struct FlightTask {
    flight: Flight,
    index: u64,
    id: Option<String>,
    url: String,
    method: Method,
    /// The host of the first attempt, as far as the URL alone tells: it knows nothing of schemes
    /// that a session was given, and the flight says so when it is handed out for this one.
    guess: OnceCell<Option<Arc<str>>>,
    /// When the first attempt was begun.
    began: Option<Instant>,
    /// Attempts that were counted.
    attempts: usize,
}

impl FlightTask {
    /// A flight that has not begun.
    pub(crate) fn new(request: Request, index: u64) -> Self {
        Self {
            index,
            id: request.id.clone(),
            url: request.url.clone(),
            method: request.method.clone(),
            flight: Flight::new(request, index),
            guess: OnceCell::new(),
            began: None,
            attempts: 0,
        }
    }

    fn finish(&mut self, result: Result<Response, Error>, now: Instant) -> Finished {
        Finished {
            index: self.index,
            id: self.id.take(),
            url: std::mem::take(&mut self.url),
            method: self.method.clone(),
            result,
            elapsed: self
                .began
                .map_or(Duration::ZERO, |began| now.saturating_duration_since(began)),
        }
    }

    /// Counts the attempts up to `total`; the number of new ones.
    fn count(&mut self, total: usize) -> usize {
        let new = total.saturating_sub(self.attempts);
        self.attempts = self.attempts.max(total);
        new
    }
}

impl Task for FlightTask {
    type Context = Session;
    type Output = Finished;

    fn host(&self) -> Option<Arc<str>> {
        // A flight that has not begun need not have looked at its URL yet.
        let guess = || prepare_url(&self.url, &[]).ok()?.host_str().map(Arc::from);
        match self.flight.host() {
            Some(host) => Some(Arc::from(host)),
            None => self.guess.get_or_init(guess).clone(),
        }
    }

    fn deadline(&self) -> Option<Instant> {
        self.flight.deadline()
    }

    fn step(&mut self, session: &Session, clock: &dyn Clock) -> Stepped<Finished> {
        let before = clock.now();
        let counted = self.host();
        let step = self.flight.step_handed_out(session, counted.as_deref());
        let history = match &step {
            Step::Done(response) => response.attempts(),
            Step::Failed(error) if !error.attempts().is_empty() => error.attempts(),
            Step::Failed(_) | Step::Wait { .. } => self.flight.attempts(),
        };
        let (total, last) = (history.len(), history.last().and_then(Echo::of));
        let made = Made::of(history.iter().skip(self.attempts));
        let new = self.count(total);
        let echo = last.filter(|_| new > 0);
        if new > 0 {
            self.began.get_or_insert(before);
        }
        let outcome = match step {
            Step::Done(response) => Outcome::Done(self.finish(Ok(response), clock.now())),
            Step::Failed(error) => Outcome::Failed(self.finish(Err(error), clock.now())),
            Step::Wait { until, reason } => Outcome::Wait { until, reason },
        };
        Stepped { made, echo, outcome }
    }

    fn take_visits(&mut self) -> Vec<Arc<str>> {
        self.flight.take_visits()
    }

    fn fail(&mut self, failure: Failure, now: Instant) -> Finished {
        if let Failure::Panicked(_) = failure {
            // The step that would have noted it did not come to its end.
            self.began = self.began.or(self.flight.started());
        }
        let error = failure.into_error();
        // The flight may be in any state after a panic, so its history is kept where it can be.
        let (kind, message) = (error.kind(), error.message().to_owned());
        let flight = &mut self.flight;
        let error = catch_unwind(AssertUnwindSafe(|| flight.fail(error)))
            .unwrap_or_else(|_| Error::local(kind, message));
        self.finish(Err(error), now)
    }

    fn cut(finished: Finished, reason: &StopReason) -> Finished {
        let result = finished.result.map_err(|error| match error.kind() {
            ErrorKind::Cancelled => error,
            _ => cancelled_for(error, reason),
        });
        Finished { result, ..finished }
    }
}

/// A failure that an abort may have caused, as one that it did cause.
fn cancelled_for(error: Error, reason: &StopReason) -> Error {
    let mut cut = Failure::Stopped(reason.clone())
        .into_error()
        .with_attempts(error.attempts().to_vec())
        .with_proxy(error.proxy());
    if let Some(url) = error.url() {
        cut = cut.with_url(url);
    }
    cut.with_source(error)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::{Fault, Phase};
    use crate::time::{SimClock, secs};
    use std::error::Error as _;

    fn attempt(method: Method) -> Attempt {
        Attempt {
            method,
            url: Arc::from("http://host.test/"),
            proxy: None,
            exit: None,
            status: Some(503),
            error: None,
            elapsed: secs(0.1),
            wait: None,
            reused: false,
            resend: false,
            note: None,
            refusal: None,
            exchange: None,
        }
    }

    #[test]
    fn a_failure_that_an_abort_may_have_caused_is_a_cancellation_with_its_history() {
        let finished = |kind| {
            let error = Error::new(kind, Phase::Body, Fault::Target, "cut off")
                .with_url("http://host.test/")
                .with_attempts(vec![attempt(Method::GET)]);
            Finished { elapsed: secs(2.0), ..Finished::of_bad_input(4, error) }
        };
        let cut = FlightTask::cut(finished(ErrorKind::Connection), &StopReason::Aborted);
        assert!(cut.is_cancelled());
        assert_eq!((cut.index, cut.elapsed, cut.attempts().len()), (4, secs(2.0), 1));
        let error = cut.result.expect_err("cancelled");
        assert_eq!(
            error.to_string(),
            "not finished, since the pool was aborted (http://host.test/)"
        );
        let source = error.source().expect("the failure").to_string();
        assert_eq!(source, "cut off (http://host.test/)");
        let cut = FlightTask::cut(finished(ErrorKind::Cancelled), &StopReason::Aborted);
        assert_eq!(cut.result.expect_err("as it was").message(), "cut off");
    }

    #[test]
    fn a_panic_in_the_first_step_leaves_the_time_that_it_took() {
        use crate::transport::{Play, Script};
        let clock = Arc::new(SimClock::default());
        let script = Script::with(Arc::clone(&clock) as Arc<dyn Clock>, |_, nth| match nth {
            0 => Play::status(302).header("Location", "/b").after(secs(2.0)),
            _ => std::panic::resume_unwind(Box::new("scripted")),
        });
        let recipe =
            Session::builder().trust_env(false).clock(Arc::clone(&clock) as Arc<dyn Clock>);
        let session = recipe.transport(move || script.clone()).build().expect("a session");
        let mut task = FlightTask::new(Request::new(Method::GET, "http://host.test/a"), 0);
        let step = AssertUnwindSafe(|| task.step(&session, &*clock).made.attempts);
        assert!(catch_unwind(step).is_err());
        let finished = task.fail(Failure::Panicked("scripted".to_owned()), clock.now());
        assert_eq!((finished.elapsed, finished.attempts().len()), (secs(2.0), 1));
    }

    #[test]
    fn a_scheme_that_only_the_session_knows_is_counted_at_its_host() {
        use crate::policy::{Limiter, Slots, Visit};
        use crate::transport::{Play, Script};
        use std::num::NonZeroUsize;
        use std::sync::Mutex;

        let clock = Arc::new(SimClock::default());
        let script = Script::with(Arc::clone(&clock) as Arc<dyn Clock>, |_, _| Play::status(200));
        let limiter =
            Limiter::new(Slots::new(1.0 / 60.0, 1), Slots::new(1.0, 1), NonZeroUsize::new(1));
        let limits = Arc::new(Mutex::new(limiter.expect("limits")));
        let (played, shared) = (script.clone(), script.clone());
        let recipe = Session::builder()
            .trust_env(false)
            .clock(Arc::clone(&clock) as Arc<dyn Clock>)
            .transport(move || shared.clone())
            .mount("mock://", move || script.clone())
            .limited(Some(Arc::clone(&limits)));
        let session = recipe.deadline(secs(5.0)).build().expect("a session");

        // Nothing is sent for the slots of no host; it comes back at once, and names its own.
        let mut task = FlightTask::new(Request::new(Method::GET, "mock://shop/a"), 0);
        assert_eq!(task.host(), None);
        let stepped = task.step(&session, &*clock);
        let now = clock.now();
        assert!(matches!(stepped.outcome, Outcome::Wait { until, .. } if until == now));
        assert_eq!((stepped.made.attempts, played.attempts()), (0, 0));
        assert_eq!((task.host().as_deref(), task.deadline()), (Some("shop"), None));
        clock.advance(secs(60.0));
        let host = task.host();
        let visit = Visit { host: host.as_ref(), arrives: true };
        let _slots = limits.lock().expect("whole").take(visit, clock.now()).expect("slots");
        let stepped = task.step(&session, &*clock);
        assert!(matches!(stepped.outcome, Outcome::Done(_)));
        assert_eq!(task.take_visits(), []);

        // What the URL alone tells is right of http, and costs no second handing out.
        let mut task = FlightTask::new(Request::new(Method::GET, "http://SHOP.test:80/a"), 1);
        assert_eq!(task.host().as_deref(), Some("shop.test"));
        assert!(matches!(task.step(&session, &*clock).outcome, Outcome::Done(_)));
    }

    #[test]
    fn a_task_that_fails_from_outside_keeps_its_names() {
        let clock = SimClock::default();
        let mut request = Request::new(Method::PUT, "http://host.test/a");
        request.id = Some("seven".to_owned());
        let mut task = FlightTask::new(request, 7);
        assert_eq!((task.count(2), task.count(2), task.count(3)), (2, 0, 1));
        task.began = Some(clock.now());
        clock.advance(secs(1.5));
        let failure = Failure::Panicked("index out of bounds".to_owned());
        let finished = task.fail(failure, clock.now());
        assert_eq!((finished.index, finished.id.as_deref()), (7, Some("seven")));
        assert_eq!((finished.url.as_str(), finished.method), ("http://host.test/a", Method::PUT));
        assert_eq!(finished.elapsed, secs(1.5));
        let error = finished.result.expect_err("a panic");
        assert_eq!(error.kind(), ErrorKind::Internal);
        assert_eq!(error.message(), "a panic ended this request: index out of bounds");
    }
}
