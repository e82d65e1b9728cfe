//! A request in flight: a value that is stepped, not a function that sleeps.

use super::Session;
use crate::error::{Error, WaitReason};
use crate::message::{Request, Response};
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

/// A request on its way through attempts, redirects and waits. `Send`: any worker may go on.
#[derive(Debug)]
pub struct Flight {
    request: Request,
    item: u64,
}

impl Flight {
    /// A flight that has not begun. `item` tells it from the others of a run.
    pub fn new(request: Request, item: u64) -> Self {
        Self { request, item }
    }
    /// The request as it was given.
    pub fn request(&self) -> &Request {
        &self.request
    }
    /// The number given to [`new`](Self::new).
    pub fn item(&self) -> u64 {
        self.item
    }
    /// The host that the next attempt goes to, for per-host limits; `None` before the URL parsed.
    pub fn host(&self) -> Option<&str> {
        None
    }
    /// How many attempts were made.
    pub fn attempts(&self) -> usize {
        0
    }
    /// Makes one attempt (and the redirects that follow it at once).
    pub fn step(&mut self, session: &Session) -> Step {
        let _ = session;
        unimplemented!()
    }
    /// Ends the flight from outside, keeping its history: stopped, cancelled, panicked.
    pub fn fail(&mut self, error: Error) -> Error {
        error
    }
}
