//! A step that is interrupted between two of its attempts, since a limit leaves no slot for the next.
//!
//! A hop, the answer to a challenge and a copy of a lost request belong to the attempt before them:
//! they go the same way, with the cookies that it set and what is left of its clocks. Whoever goes on
//! later may be another worker with another session, so all of that is packed up here: the way, the
//! clocks, the nonce, and the answers whose cookies the next session has to see.

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
    /// Whose cookies it has.
    pub(super) identity: Option<Identity>,
    /// Where it answers a challenge.
    space: Option<Space>,
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
        let wait = until.saturating_duration_since(now);
        if let Some(last) = self.attempts.last_mut().filter(|_| !wait.is_zero()) {
            last.wait.get_or_insert((wait, reason));
        }
        self.interrupted = Some(Box::new(interrupted));
        Step::Wait { until, reason }
    }

    /// Unpacks in a session what the course so far has of `route`'s identity.
    pub(super) fn unpack(&self, core: &mut Core, route: &Route, interrupted: &mut Interrupted) {
        let identity = interrupted.identity.take().filter(|identity| *identity == route.identity);
        let space = interrupted.space.take();
        let Some(identity) = identity else { return };
        let wall = core.wall();
        let (jar, gone) = core.jars.of(identity);
        self.hops.iter().for_each(|hop| jar.store(hop.url(), hop.headers(), wall));
        self.challenges.iter().for_each(|(url, headers)| jar.store(url, headers, wall));
        if let Some(gone) = gone {
            core.forget(gone);
        }
        if let Some(space) = space {
            core.spaces.entry(identity).or_default().put(space);
        }
    }
}

#[cfg(test)]
#[path = "pause_tests.rs"]
mod tests;
