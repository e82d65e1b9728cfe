//! What a run takes for a refusal, and whether a refused URL is sent again.
//!
//! A session alone knows nothing of this, as requests: a 403 is a response like any other. A run
//! gives its recipe the rules, and a flight that meets a refusal asks for a turn in the slow lane.
//! Hosts and turns are kept with the cool-downs, one for all sessions of the recipe.

use super::SessionBuilder;
use super::lessons::Lesson;
use super::router::{ahead, lock};
use crate::message::Response;
use crate::policy::{BlockPage, SlowLane};
use http::HeaderMap;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// A rule of the user's: what of the response makes it a refusal.
pub(crate) type BlockRule = dyn Fn(&Response) -> Option<String> + Send + Sync;

/// The rules of a run.
#[derive(Clone, Default)]
pub(crate) struct Refusals {
    pub(crate) lane: Option<SlowLane>,
    pub(crate) page: BlockPage,
    pub(crate) rule: Option<Arc<BlockRule>>,
    /// How many URLs may wait in the slow lanes of all hosts together; of a run only, where each of
    /// them holds a permit.
    pub(crate) most_waiting: Option<usize>,
    /// How many do.
    pub(crate) waiting: Arc<AtomicUsize>,
}

/// A place among the URLs that wait in slow lanes, given back when it is dropped.
#[derive(Debug)]
pub(super) struct LanePlace(Arc<AtomicUsize>);

impl Drop for LanePlace {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Refusals {
    /// What of a block page the head has.
    pub(super) fn in_head(&self, status: u16, headers: &HeaderMap) -> Option<String> {
        self.page.find_in_head(status, headers)
    }

    /// What of a block page the response has, its head aside.
    pub(super) fn in_response(&self, response: &Response) -> Option<String> {
        let by_rule = || self.rule.as_ref().and_then(|rule| rule(response));
        self.page.find_in_body(response.body()).or_else(by_rule)
    }
}

impl fmt::Debug for Refusals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Refusals")
            .field("lane", &self.lane)
            .field("page", &self.page)
            .finish_non_exhaustive()
    }
}

impl SessionBuilder {
    /// The recipe of a run that heeds refusals.
    pub(crate) fn heeding(mut self, refusals: Refusals) -> Self {
        let Refusals { lane, page, rule, most_waiting: _, waiting: _ } = &refusals;
        let any = lane.is_some() || rule.is_some() || !page.is_empty();
        self.refusals = any.then(|| Arc::new(refusals));
        self
    }

    /// Notes for all sessions of this recipe that `host` refused, and is to be left alone.
    pub(super) fn note_refusal(&self, host: &str, pause: Duration, now: Instant) {
        let Some(cooldown) = &self.cooldown else { return };
        match ahead(self.lessons.as_ref(), now) {
            Some(lessons) => lessons.keep(Lesson::of_refusal(now, host, pause)),
            None => lock(cooldown).note_refusal(host, pause, now),
        }
    }

    /// Takes a place in the slow lanes; `None` where as many are taken as may be.
    pub(super) fn lane_place(&self) -> Option<LanePlace> {
        let Refusals { most_waiting, waiting, .. } = self.refusals.as_deref()?;
        let most = most_waiting.unwrap_or(usize::MAX);
        let one_more = |taken| if taken < most { Some(taken + 1) } else { None };
        waiting.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_more).ok()?;
        Some(LanePlace(Arc::clone(waiting)))
    }

    /// A turn in the slow lane of `host`, from `from` on and before `before`.
    ///
    /// Taken when it is asked for, also in a simulation: a turn is the knowledge of the lane, and
    /// tells nobody of an answer that is still to come.
    pub(super) fn take_turn(
        &self,
        host: &str,
        from: Instant,
        spacing: Duration,
        before: Option<Instant>,
        now: Instant,
    ) -> Option<Instant> {
        lock(self.cooldown.as_ref()?).take_turn(host, from, spacing, before, now)
    }
}
