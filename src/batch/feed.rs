//! What goes into the worker pool, and what is remembered of it while it flies.
//!
//! The pool is fed by an iterator that reads the input as the pool asks for more, so the number of
//! items that are remembered is the number of the pool's permits, however long the input is.

use super::exit_sample::SamplePlan;
use super::item::{Item, Meta, shown_url};
use super::record::AttemptRecord;
use super::source::{Entry, Items};
use crate::error::Error;
use crate::message::{IntoRequest, Request, Setting};
use crate::policy::{Retry, Timeouts};
use http::Method;
use std::collections::HashMap;
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
    /// Whether the line described no request.
    pub(super) bad: bool,
    /// The attempts of earlier passes.
    pub(super) earlier: Vec<AttemptRecord>,
    /// Whether it is a sample of the exits and no URL of the input.
    pub(super) sample: bool,
}

/// What the feeding and the taking side share.
#[derive(Debug, Default)]
pub(super) struct Shared {
    flying: HashMap<u64, Flying>,
    pub(super) done: u64,
    pub(super) repeated: u64,
    pub(super) broken: Option<Error>,
    /// Set where results can no longer be kept: then nothing more is fed.
    pub(super) ended: bool,
}

/// A handle on [`Shared`].
#[derive(Debug, Clone, Default)]
pub(super) struct Board(Arc<Mutex<Shared>>);

impl Board {
    pub(super) fn lock(&self) -> MutexGuard<'_, Shared> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the item with this index off the board.
    pub(super) fn take(&self, index: u64) -> Option<Flying> {
        self.lock().flying.remove(&index)
    }
}

#[derive(Debug)]
enum From {
    Items(Box<Items>),
    Held(std::vec::IntoIter<Flying>),
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
    pub(super) fn input(items: Items, board: Board, keep: bool) -> Self {
        Self {
            from: From::Items(Box::new(items)),
            board,
            index: 0,
            keep,
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
            From::Items(items) => Self::next_of_input(items, &self.board, self.keep),
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
                }
                Some((flying, Fed(Ok(request))))
            }
        }
    }

    fn next_of_input(items: &mut Items, board: &Board, keep: bool) -> Option<(Flying, Fed)> {
        let entry = items.next();
        let mut shared = board.lock();
        shared.done = items.skipped_done();
        shared.repeated = items.skipped_repeated();
        match entry? {
            Entry::Item(item) => Some(Self::of_item(item, keep)),
            Entry::Bad { error, key, text, .. } => {
                let flying = Flying {
                    id: key.to_string(),
                    url: text,
                    method: Method::GET,
                    meta: None,
                    request: None,
                    bad: true,
                    earlier: Vec::new(),
                    sample: false,
                };
                Some((flying, Fed(Err(error))))
            }
            Entry::Broken(error) => {
                shared.broken = Some(error);
                None
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
            bad: false,
            earlier: Vec::new(),
            sample: true,
        };
        (flying, Fed(Ok(request)))
    }

    fn of_item(item: Item, keep: bool) -> (Flying, Fed) {
        let flying = Flying {
            id: item.id(),
            url: shown_url(&item.request),
            method: item.request.method.clone(),
            meta: item.meta,
            request: keep.then(|| item.request.clone()),
            bad: false,
            earlier: Vec::new(),
            sample: false,
        };
        (flying, Fed(Ok(item.request)))
    }
}

impl Iterator for Feed {
    type Item = Fed;

    fn next(&mut self) -> Option<Fed> {
        if self.board.lock().ended {
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
