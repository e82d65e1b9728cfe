//! A response that refuses: whether the URL goes into the slow lane, and how it comes out of it.

use super::Step;
use super::answer::Next;
use super::state::{Running, shown};
use crate::error::{Refusal, WaitReason};
use crate::message::{Request, Response, assemble};

use crate::policy::SlowLane;
use crate::proxy::{Route, Verdict};
use crate::session::live::{Core, Session};
use std::sync::Arc;
use std::time::{Duration, Instant};

impl Running {
    /// Hands a response out, or sends its URL into the slow lane where it is a refusal.
    #[allow(clippy::too_many_arguments, reason = "the facts of one attempt, used once")]
    pub(super) fn conclude(
        &mut self,
        session: &Session,
        core: &mut Core,
        request: &Request,
        route: &Route,
        mut response: Response,
        raise: bool,
        wanted: Option<Duration>,
    ) -> Next {
        let Some(refusals) = session.recipe().refusals.as_deref() else {
            return self.finish(session, request, route, response, raise, wanted);
        };
        let matched = self.blocked.take().or_else(|| refusals.in_response(&response));
        if matched.is_none() && response.status() != 403 {
            return self.finish(session, request, route, response, raise, wanted);
        }
        let refusal = Arc::new(Refusal::of(matched, response.headers()));
        let now = core.now();
        if let Some(lane) = refusals.lane {
            let host = self.current.url.host_str().unwrap_or_default();
            session.recipe().note_refusal(host, lane.shortest_wait(), now);
        }
        let entered = match refusals.lane {
            Some(lane) => self.enter(session, request, lane, now),
            None => Err(None),
        };
        if let Some(last) = response.last_attempt_mut() {
            last.refusal = Some(refusal);
            match entered {
                Ok(until) => {
                    let wait = until.saturating_duration_since(now);
                    last.wait = Some((wait, WaitReason::Refused));
                }
                Err(why) => last.note = last.note.or(why),
            }
        }
        match entered {
            Ok(until) => {
                self.attempts = response.into_parts().attempts;
                // The proxy carried what it was given: it is the identity that was refused.
                Next::Step(Step::Wait { until, reason: WaitReason::Refused }, Verdict::Good)
            }
            Err(_) => self.finish(session, request, route, response, raise, wanted),
        }
    }

    /// Takes a turn in the slow lane and begins anew with the URL that was asked for; or why not,
    /// where that is worth a remark.
    fn enter(
        &mut self,
        session: &Session,
        request: &Request,
        lane: SlowLane,
        now: Instant,
    ) -> Result<Instant, Option<&'static str>> {
        if self.lanes >= lane.most_times() {
            return Err((self.lanes > 0).then_some("refused again in the slow lane"));
        }
        // A page that the user takes for a refusal may have acted on the request all the same.
        if !self.retry.methods().contains(&request.method) {
            return Err(Some("no slow lane for a method that is not retried"));
        }
        // From the URL that was asked for: what it redirected to may be the refusal itself.
        let anew = assemble(session.settings(), request).map_err(|_| None)?;
        if !anew.body.is_replayable() {
            return Err(Some("the body cannot be sent again"));
        }
        let host = anew.url.host_str().unwrap_or_default();
        let from = now.checked_add(lane.shortest_wait()).ok_or(None)?;
        let furthest = now.checked_add(SlowLane::FURTHEST);
        let before = [self.deadline, furthest].into_iter().flatten().min();
        if self.deadline.is_some_and(|deadline| from >= deadline) {
            return Err(Some("the deadline leaves no room for the slow lane"));
        }
        const FULL: &str = "half of what the run may hold waits in slow lanes already";
        let place = session.recipe().lane_place().ok_or(Some(FULL))?;
        if let Some(why) = session.recipe().restraint.refuses_retry(host, now) {
            return Err(Some(why));
        }
        let turn = session.recipe().take_turn(host, from, lane.between_two(), before, now);
        let Some(until) = turn else {
            session.recipe().restraint.give_retry_back();
            return Err(Some("the slow lane of this host is full"));
        };
        self.lane_place = Some(place);
        self.lanes += 1;
        self.retrying = true;
        self.hops.clear();
        self.answers = 0;
        self.shown_url = shown(&anew);
        self.current = anew;
        self.sent = None;
        Ok(until)
    }

    /// Another turn for a URL of the slow lane whose host is left alone until `until`: its URLs
    /// must not come all at once when that is over.
    pub(super) fn turn_after(&self, session: &Session, until: Instant, now: Instant) -> Instant {
        let lane = session.recipe().refusals.as_deref().and_then(|refusals| refusals.lane);
        let Some(lane) = lane.filter(|_| self.lanes > 0) else { return until };
        let host = self.current.url.host_str().unwrap_or_default();
        let spacing = lane.between_two();
        session.recipe().take_turn(host, until, spacing, self.deadline, now).unwrap_or(until)
    }
}

#[cfg(test)]
#[path = "refused_tests.rs"]
mod tests;
