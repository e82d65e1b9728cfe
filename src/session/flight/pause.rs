//! What a flight takes along to another session.
//!
//! A step is interrupted between two of its attempts where a limit leaves no slot for the next. A
//! hop, the answer to a challenge and a copy of a lost request belong to the attempt before them:
//! they go the same way, with the cookies that it set and what is left of its clocks. Whoever goes on
//! later may be another worker with another session, so all of that is packed up here: the way, the
//! clocks, the nonce, and the answers whose cookies the next session has to see. The cookies of a
//! chain go along with the retry of a hop as well: a site that set one and looks whether it comes
//! back would send the URL around for ever.

use super::Step;
use super::attempt::Lost;
use super::state::Running;
use crate::error::WaitReason;
use crate::message::Auth;
use crate::message::digest::Space;
use crate::proxy::{Identity, Route};
use crate::session::live::Core;
use std::time::Instant;

/// What an interrupted step goes on with.
#[derive(Debug, Default)]
pub(super) struct Interrupted {
    /// Whether the next attempt is the copy of one that was lost.
    pub(super) resend: bool,
    /// What copies before it took of its clocks.
    pub(super) lost: Option<Lost>,
    /// The way that it goes on.
    pub(super) way: Option<Route>,
    /// By whom the attempt before was made, where there was one.
    pub(super) identity: Option<Identity>,
    /// Where it answers a challenge to that one.
    space: Option<Space>,
    /// Whether another session may go on, which has not seen the answers so far.
    packed: bool,
}

impl Interrupted {
    /// Whether there is nothing that could be gone on with.
    pub(super) fn is_empty(&self) -> bool {
        self.identity.is_none() && !self.packed
    }
}

impl Running {
    /// What the step goes on with: nothing, where the last one came to its end.
    pub(super) fn resume(&mut self) -> Interrupted {
        match self.interrupted.take() {
            Some(interrupted) => *interrupted,
            None => {
                self.answers = 0;
                Interrupted::default()
            }
        }
    }

    /// Interrupts the step until a limit leaves a slot.
    pub(super) fn interrupt(
        &mut self,
        core: &mut Core,
        mut interrupted: Interrupted,
        until: Instant,
        reason: WaitReason,
        now: Instant,
    ) -> Step {
        if self.deadline.is_some_and(|deadline| until >= deadline) {
            return self.too_late();
        }
        if let (Some(identity), Some(Auth::Digest(user, password))) =
            (interrupted.identity.filter(|_| self.answers > 0), &self.current.auth)
            && let Some(spaces) = core.spaces.get_mut(&identity)
            && let Some(space) = spaces.take(&self.current.url, user, password)
        {
            // Out of this session: two that count the uses of one nonce would repeat each other.
            interrupted.space = Some(space);
        }
        interrupted.packed = true;
        let wait = until.saturating_duration_since(now);
        if let Some(last) = self.attempts.last_mut().filter(|_| !wait.is_zero()) {
            last.wait.get_or_insert((wait, reason));
        }
        self.interrupted = Some(Box::new(interrupted));
        Step::Wait { until, reason }
    }

    /// Packs up the cookies of a chain, one hop of which is to be tried again.
    pub(super) fn kept_for_later(&mut self, step: Step) -> Step {
        if matches!(step, Step::Wait { .. }) && !self.hops.is_empty() {
            // Another attempt, with answers and clocks of its own.
            self.answers = 0;
            let cookies = Interrupted { packed: true, ..Interrupted::default() };
            self.interrupted = Some(Box::new(cookies));
        }
        step
    }

    /// Unpacks in a session what `route`'s identity was told in the course so far; no other is shown
    /// it.
    pub(super) fn unpack(&self, core: &mut Core, route: &Route, interrupted: &mut Interrupted) {
        if !std::mem::take(&mut interrupted.packed) {
            return;
        }
        let own = Some(route.identity);
        let wall = core.wall();
        let (jar, gone) = core.jars.of(route.identity);
        for hop in self.hops.iter().filter(|hop| hop.connection().identity == own) {
            jar.store(hop.url(), hop.headers(), wall);
        }
        for (_, url, headers) in self.challenges.iter().filter(|(to, ..)| Some(*to) == own) {
            jar.store(url, headers, wall);
        }
        if let Some(gone) = gone {
            core.forget(gone);
        }
        if let Some(space) = interrupted.space.take().filter(|_| interrupted.identity == own) {
            core.spaces.entry(route.identity).or_default().put(space);
        }
    }
}

#[cfg(test)]
#[path = "pause_tests.rs"]
mod tests;
