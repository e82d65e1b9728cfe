//! What goes into the worker pool, and what is remembered of it while it flies.
//!
//! The pool is fed by an iterator that reads the input as the pool asks for more, so the number of
//! items that are remembered is the number of the pool's permits, however long the input is.

use super::claims::Claims;
use super::exit_sample::SamplePlan;
use super::item::{Meta, shown_url};
use super::job_source::{Claimed, Job, LeaseId};
use super::lease_book::LeaseBook;
use super::record::AttemptRecord;
use crate::error::{Error, ErrorKind};
use crate::message::{IntoRequest, Request, Setting};
use crate::policy::{Retry, Timeouts};
use http::Method;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// One job: a request, or the mistake that stands in its place.
#[derive(Debug)]
pub(super) struct Fed(Result<Request, Error>);

impl IntoRequest for Fed {
    fn into_request(self) -> Result<Request, Error> {
        self.0
    }
}

/// What is remembered of an item.
#[derive(Debug)]
pub(super) struct Flying {
    pub(super) id: String,
    pub(super) url: String,
    pub(super) method: Method,
    pub(super) meta: Option<Meta>,
    /// The request, where it may be needed again.
    pub(super) request: Option<Request>,
    /// What it has of its own in this pass.
    pub(super) timeouts: Setting<Timeouts>,
    pub(super) what: What,
    /// The attempts of earlier passes.
    pub(super) earlier: Vec<AttemptRecord>,
    /// The lease of its job, where it has one.
    pub(super) lease: Option<LeaseId>,
}

/// What flies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum What {
    Request,
    /// A job that describes no request.
    Bad,
    /// A job that was handed out too often.
    Poison,
    /// A sample of the exits, and no job at all.
    Sample,
}

/// What the feeding and the taking side share.
#[derive(Debug, Default)]
pub(super) struct Shared {
    flying: HashMap<u64, Flying>,
    /// Why the input could not be read on.
    pub(super) broken: Option<Error>,
    pub(super) leases: LeaseBook,
    /// Claimed, and not to be fed any more.
    pub(super) unfed: Vec<LeaseId>,
    /// Claimed, and found to have a record already.
    pub(super) done_before: Vec<LeaseId>,
}

/// A handle on [`Shared`].
#[derive(Debug, Clone, Default)]
pub(super) struct Board(Arc<(Mutex<Shared>, Flags)>);

/// What can be asked for each job without a lock.
#[derive(Debug, Default)]
struct Flags {
    ended: AtomicBool,
    leased: AtomicBool,
}

impl Board {
    pub(super) fn lock(&self) -> MutexGuard<'_, Shared> {
        self.0.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the item with this index off the board.
    pub(super) fn take(&self, index: u64) -> Option<Flying> {
        self.lock().flying.remove(&index)
    }

    /// Results can no longer be kept: nothing more is fed.
    pub(super) fn end(&self) {
        self.0.1.ended.store(true, Ordering::Relaxed);
    }

    pub(super) fn is_ended(&self) -> bool {
        self.0.1.ended.load(Ordering::Relaxed)
    }

    /// Somebody has to be answered for jobs.
    pub(super) fn has_leases(&self) {
        self.0.1.leased.store(true, Ordering::Relaxed);
    }

    pub(super) fn is_leased(&self) -> bool {
        self.0.1.leased.load(Ordering::Relaxed)
    }
}

#[derive(Debug)]
enum From {
    Input(Input),
    Held(std::vec::IntoIter<Flying>),
}

/// The input, and what is decided of its jobs before they are fed.
#[derive(Debug)]
pub(super) struct Input {
    pub(super) claims: Claims,
    /// Whether requests have to be kept for another pass.
    pub(super) keep: bool,
    /// A job that was handed out more often is not tried again.
    pub(super) max_deliveries: u32,
}

/// The jobs of one pass, in order; the pool numbers them from 0 as this does.
#[derive(Debug)]
pub(super) struct Feed {
    from: From,
    board: Board,
    index: u64,
    /// Whether requests have to be kept for another pass.
    keep: bool,
    settings: PassSettings,
    samples: Option<SamplePlan>,
}

/// What later passes have of their own.
#[derive(Debug, Clone, Default)]
pub(super) struct PassSettings {
    pub(super) retry: Option<Retry>,
    pub(super) timeouts: Option<Timeouts>,
}

impl Feed {
    /// Puts samples of the exits among the URLs.
    pub(super) fn with_samples(mut self, samples: Option<SamplePlan>) -> Self {
        self.samples = samples;
        self
    }

    /// The first pass: the input.
    pub(super) fn input(input: Input, board: Board) -> Self {
        Self {
            keep: input.keep,
            from: From::Input(input),
            board,
            index: 0,
            settings: PassSettings::default(),
            samples: None,
        }
    }

    /// A later pass: what was held back, with what that pass has of its own.
    pub(super) fn held(
        held: Vec<Flying>,
        board: Board,
        keep: bool,
        settings: PassSettings,
    ) -> Self {
        Self { from: From::Held(held.into_iter()), board, index: 0, keep, settings, samples: None }
    }

    fn next_url(&mut self) -> Option<(Flying, Fed)> {
        match &mut self.from {
            From::Input(input) => input.claims.next().map(|claimed| input.begin(claimed)),
            From::Held(held) => {
                let mut flying = held.next()?;
                let mut request =
                    if self.keep { flying.request.clone() } else { flying.request.take() }?;
                let PassSettings { retry, timeouts } = &self.settings;
                if let Some(retry) = retry {
                    request.overrides.retry = Setting::Set(retry.clone());
                }
                if let Some(timeouts) = timeouts {
                    request.overrides.timeouts = Setting::Set(*timeouts);
                    flying.timeouts = Setting::Set(*timeouts);
                }
                Some((flying, Fed(Ok(request))))
            }
        }
    }

    fn of_sample(request: Request) -> (Flying, Fed) {
        let flying = Flying {
            id: String::new(),
            url: shown_url(&request),
            method: request.method.clone(),
            meta: None,
            request: None,
            timeouts: Setting::Inherit,
            what: What::Sample,
            earlier: Vec::new(),
            lease: None,
        };
        (flying, Fed(Ok(request)))
    }
}

impl Input {
    /// What is remembered of a job, and what is fed.
    fn begin(&self, claimed: Claimed) -> (Flying, Fed) {
        let Claimed { job, lease } = claimed;
        let deliveries = lease.as_ref().map_or(1, |lease| lease.deliveries);
        let lease = lease.map(|lease| lease.id);
        let item = match job {
            Job::Item(item) => item,
            Job::Bad { error, id, text } => {
                let flying = Flying {
                    id,
                    url: text,
                    method: Method::GET,
                    meta: None,
                    request: None,
                    timeouts: Setting::Inherit,
                    what: What::Bad,
                    earlier: Vec::new(),
                    lease,
                };
                return (flying, Fed(Err(error)));
            }
        };
        let is_poison = deliveries > self.max_deliveries;
        let flying = Flying {
            id: item.id(),
            url: shown_url(&item.request),
            method: item.request.method.clone(),
            meta: item.meta,
            request: (self.keep && !is_poison).then(|| item.request.clone()),
            timeouts: item.request.overrides.timeouts.clone(),
            what: if is_poison { What::Poison } else { What::Request },
            earlier: Vec::new(),
            lease,
        };
        let fed = if is_poison { Err(self.poison(deliveries)) } else { Ok(item.request) };
        (flying, Fed(fed))
    }

    fn poison(&self, deliveries: u32) -> Error {
        let before = deliveries.saturating_sub(1);
        let text = format!(
            "this job was handed out {before} times before and came to no end, and max_deliveries is \
             {}; it may be what ends the processes that work on it: look at it before it is queued \
             again",
            self.max_deliveries
        );
        Error::local(ErrorKind::Internal, text)
    }
}

impl Iterator for Feed {
    type Item = Fed;

    fn next(&mut self) -> Option<Fed> {
        if self.board.is_ended() {
            return None;
        }
        let sample = self.samples.as_mut().and_then(SamplePlan::due);
        let (flying, fed) = match sample {
            Some(request) => Self::of_sample(request),
            None => self.next_url()?,
        };
        self.board.lock().flying.insert(self.index, flying);
        self.index += 1;
        Some(fed)
    }
}
