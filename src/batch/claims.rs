//! The jobs that were claimed and are not fed yet.
//!
//! A claim brings a handful, since asking a distant queue for each job costs a journey each. What is
//! in hand is under a lease like everything else: it is extended while it waits, and given back
//! where the run ends first.

use super::done_before::{Before, DoneBefore};
use super::feed::Board;
use super::input::Jobs;
use super::job_source::{Claimed, Supply};
use crate::time::Clock;
use std::fmt;
use std::sync::Arc;

/// The jobs of a source, one by one.
pub(super) struct Claims {
    jobs: Jobs,
    board: Board,
    clock: Arc<dyn Clock>,
    /// The next one last.
    ready: Vec<Claimed>,
    ended: bool,
}

impl Claims {
    pub(super) fn new(jobs: Jobs, board: Board, clock: Arc<dyn Clock>) -> Self {
        Self { jobs, board, clock, ready: Vec::new(), ended: false }
    }

    fn claim(&mut self) {
        let Self { jobs, board, .. } = self;
        let is_over = || (jobs.is_over)() || board.is_ended();
        match jobs.source.claim(jobs.at_once, &mut self.ready, &is_over) {
            Ok(Supply::More) => {}
            Ok(Supply::Ended) => self.ended = true,
            Err(error) => {
                self.ended = true;
                board.lock().broken = Some(error);
            }
        }
        if self.ready.iter().any(|claimed| claimed.lease.is_some()) {
            let now = self.clock.now();
            board.has_leases();
            let mut shared = board.lock();
            // What the run has already is not done twice at a time.
            self.ready.retain(|claimed| {
                claimed.lease.as_ref().is_none_or(|lease| shared.leases.note(lease, now))
            });
        }
        self.ready.reverse();
    }

    /// Whether it is still to be done, by this run.
    fn is_wanted(&mut self, claimed: &Claimed) -> bool {
        let lease = claimed.lease.as_ref();
        if lease.is_some_and(|lease| !self.board.lock().leases.holds(&lease.id)) {
            return false;
        }
        if !self.jobs.done.as_mut().is_some_and(|done| is_done(done, claimed)) {
            return true;
        }
        // Its record is durable, and the run that wrote it did not come to say so.
        if let Some(lease) = lease {
            self.board.lock().done_before.push(lease.id.clone());
        }
        false
    }
}

fn is_done(done: &mut DoneBefore, claimed: &Claimed) -> bool {
    let key = claimed.key();
    match done.meet(key) {
        Before::Never => false,
        Before::Done => true,
        Before::Met => done.meet_further(key),
    }
}

impl Iterator for Claims {
    type Item = Claimed;

    fn next(&mut self) -> Option<Claimed> {
        loop {
            while let Some(claimed) = self.ready.pop() {
                if self.is_wanted(&claimed) {
                    return Some(claimed);
                }
            }
            if self.ended || (self.jobs.is_over)() || self.board.is_ended() {
                return None;
            }
            self.claim();
        }
    }
}

impl Drop for Claims {
    /// What was not fed has not ended.
    fn drop(&mut self) {
        let leases = self.ready.drain(..).filter_map(|claimed| claimed.lease);
        let unfed: Vec<_> = leases.map(|lease| lease.id).collect();
        if !unfed.is_empty() {
            self.board.lock().unfed.extend(unfed);
        }
    }
}

impl fmt::Debug for Claims {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Claims")
            .field("ready", &self.ready.len())
            .field("ended", &self.ended)
            .finish_non_exhaustive()
    }
}
