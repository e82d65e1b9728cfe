//! A request in flight: a value that is stepped, not a function that sleeps.
//!
//! [`Flight::step`] makes one attempt, with the redirects that follow it at once (as far as the
//! limits of a run leave slots for them), and answers [`Step::Done`], [`Step::Wait`] or
//! [`Step::Failed`]. Who steps it decides how to wait: [`Session::send`] sleeps, a worker hands the
//! flight to the delay heap and takes the next URL. It is the same code, so a retry means the same
//! in both.
//!
//! The order within a step is that of the architecture: the slots under the limits, the way (proxy
//! pool, map or direct, with the cool-down of the host), the attempt, the verdict on the proxy,
//! redirects, the retry policy.

mod answer;
mod attempt;
mod course;
mod credentials;
mod pause;
mod refused;
mod state;

use super::Session;
use crate::error::{Attempt, Error, ErrorKind, Fault, Phase, WaitReason};
use crate::message::{Prepared, Request, Response};
use state::Running;
use std::sync::Arc;
use std::time::Instant;

/// What came of a step.
#[allow(clippy::exhaustive_enums, reason = "the three answers there are")]
#[derive(Debug)]
pub enum Step {
    /// The response.
    Done(Response),
    /// Step again at `until`, in this session or in another of the same recipe.
    Wait {
        /// Not before this time.
        until: Instant,
        /// Why.
        reason: WaitReason,
    },
    /// It failed for good; the error holds the history.
    Failed(Error),
}

/// Of a step whose first slots were taken before.
struct HandedOut<'a> {
    /// The host that was counted.
    counted: Option<&'a str>,
}

/// A request on its way through attempts, redirects and waits. `Send`: any worker may go on.
#[derive(Debug)]
pub struct Flight {
    request: Request,
    /// What is sent first, where that was prepared before.
    prepared: Option<Box<Prepared>>,
    item: u64,
    running: Option<Box<Running>>,
}

impl Flight {
    /// A flight that has not begun. `item` tells it from the others of a run.
    pub fn new(request: Request, item: u64) -> Self {
        Self { request, prepared: None, item, running: None }
    }

    /// A flight of a request that is sent as it stands.
    pub(super) fn of_prepared(mut prepared: Prepared, item: u64) -> Self {
        let mut request = Request::new(prepared.method.clone(), prepared.url.as_str());
        request.overrides = std::mem::take(&mut prepared.overrides);
        Self { request, prepared: Some(Box::new(prepared)), item, running: None }
    }

    /// The request as it was given.
    pub fn request(&self) -> &Request {
        &self.request
    }

    /// The number given to [`new`](Self::new).
    pub fn item(&self) -> u64 {
        self.item
    }

    /// The host that the next attempt goes to, for per-host limits; `None` before the first step.
    pub fn host(&self) -> Option<&str> {
        self.running.as_ref().and_then(|running| running.current.url.host_str())
    }

    /// The attempts so far, oldest first.
    pub fn attempts(&self) -> &[Attempt] {
        self.running.as_ref().map_or(&[], |running| &running.attempts)
    }

    /// When the first attempt began; `None` before it.
    pub fn started(&self) -> Option<Instant> {
        self.running.as_ref().map(|running| running.started)
    }

    /// When it ends, whatever it waits for; `None` before the first step, and without a deadline.
    ///
    /// A step at or after that time makes no attempt. Who steps late can end the flight by
    /// [`fail`](Self::fail) instead.
    pub fn deadline(&self) -> Option<Instant> {
        self.running.as_ref().and_then(|running| running.deadline)
    }

    /// Makes one attempt, with the redirects that follow it at once.
    ///
    /// After `Done` or `Failed` the flight is over; a further step fails with
    /// [`ErrorKind::Internal`].
    pub fn step(&mut self, session: &Session) -> Step {
        let step = self.advance(session, None);
        let visits = self.take_visits();
        session.recipe().leave(&visits);
        step
    }

    /// As [`step`](Self::step), for who has taken the slots of its first attempt under the limits of
    /// the recipe, counted at the host `counted`, and ends its [visits](Self::take_visits).
    ///
    /// Where that is another than the attempt goes to, as of a scheme that only the session knows,
    /// none is made: the answer is to hand it out again at once, for its [host](Self::host).
    pub(crate) fn step_handed_out(&mut self, session: &Session, counted: Option<&str>) -> Step {
        self.advance(session, Some(HandedOut { counted }))
    }

    /// The hosts that the last step arrived at beside the one that it was handed out for, each to
    /// be left once.
    pub(crate) fn take_visits(&mut self) -> Vec<Arc<str>> {
        self.running.as_mut().map(|running| running.visits.take_further()).unwrap_or_default()
    }

    fn advance(&mut self, session: &Session, handed_out: Option<HandedOut<'_>>) -> Step {
        let mut core = match session.try_core() {
            Ok(core) => core,
            Err(error) => return Step::Failed(self.fail(error)),
        };
        if self.running.is_none() {
            match Running::start(session, &mut core, &self.request, self.prepared.take()) {
                Ok(running) => self.running = Some(Box::new(running)),
                Err(error) => return Step::Failed(error),
            }
        }
        match &mut self.running {
            Some(running) if !running.over => {
                let step = match handed_out {
                    Some(HandedOut { counted }) if running.is_miscounted(session, counted) => {
                        running.not_before_its_slot(core.now())
                    }
                    by => running.step(session, &mut core, &self.request, self.item, by.is_some()),
                };
                if let Step::Wait { until, reason } = &step {
                    log::debug!(
                        target: "longhaul::wait",
                        "{} waits {:.1} s: {}",
                        running.shown_url,
                        until.saturating_duration_since(core.now()).as_secs_f64(),
                        reason.name(),
                    );
                }
                step
            }
            _ => Step::Failed(Error::new(
                ErrorKind::Internal,
                Phase::Prepare,
                Fault::Local,
                "a flight was stepped after its end",
            )),
        }
    }

    /// Goes on with another request after `response` was handed out in stream mode: within the same
    /// budgets, deadline and history. A `failure` is one of the body of that response, and is
    /// charged as any other; the answer is then how long to wait before the next step.
    pub(super) fn go_on(
        &mut self,
        session: &Session,
        request: Request,
        response: Response,
        failure: Option<Error>,
    ) -> Result<Option<Instant>, Error> {
        let attempts = response.into_parts().attempts;
        self.request = request;
        let mut core = session.core();
        match &mut self.running {
            Some(running) => running.go_on(session, &mut core, &self.request, attempts, failure),
            None => Ok(None),
        }
    }

    /// Ends the flight from outside, keeping its history: stopped, cancelled, panicked.
    pub fn fail(&mut self, error: Error) -> Error {
        let attempts = self.running.take().map(|running| running.attempts).unwrap_or_default();
        error.with_attempts(attempts)
    }
}
