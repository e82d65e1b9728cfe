//! What is said to the source of a job: that it is being worked on, that it is done, or that it is
//! not.
//!
//! A job that has ended waits here until its record is durable; only then is it acknowledged, and
//! many together. A source that cannot be reached is asked again: the jobs stay under their leases,
//! so nothing is lost while those can be extended, and nothing but time where they cannot.

use super::feed::{Board, What};
use super::job_source::{JobSource, LeaseId, Lost};
use super::record::Record;
use crate::error::Error;
use std::collections::{HashSet, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Of how many leases a source is told at once.
const AT_ONCE: usize = 1000;
/// After so long a source that failed is told again.
const PAUSE: Duration = Duration::from_secs(1);

/// How a job with a record leaves its source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Ending {
    Acknowledge,
    /// With the reason.
    DeadLetter(String),
}

impl Ending {
    /// That of a job with this record.
    pub(super) fn of(what: What, record: &Record) -> Self {
        match (what, &record.error) {
            (What::Bad | What::Poison, Some(error)) => Self::DeadLetter(error.message.clone()),
            _ => Self::Acknowledge,
        }
    }
}

/// A job whose record was written.
#[derive(Debug)]
struct Written {
    /// The number of its record, from 1: durable once the sink counts so many.
    number: u64,
    lease: LeaseId,
    ending: Ending,
}

/// Answers for the jobs of a run.
pub(super) struct Settling {
    source: Arc<dyn JobSource>,
    board: Board,
    written: u64,
    waiting: VecDeque<Written>,
    to_give_back: Vec<LeaseId>,
    /// Not to be told of endings before.
    quiet_until: Option<Instant>,
    /// Jobs whose lease was lost.
    lost: u64,
    dead_lettered: u64,
}

impl Settling {
    pub(super) fn new(source: Arc<dyn JobSource>, board: Board) -> Self {
        Self {
            source,
            board,
            written: 0,
            waiting: VecDeque::new(),
            to_give_back: Vec::new(),
            quiet_until: None,
            lost: 0,
            dead_lettered: 0,
        }
    }

    pub(super) fn lost(&self) -> u64 {
        self.lost
    }

    pub(super) fn dead_lettered(&self) -> u64 {
        self.dead_lettered
    }

    pub(super) fn repeated(&self) -> u64 {
        self.source.repeated()
    }

    /// Whether the job of this lease is still this run's.
    pub(super) fn holds(&self, lease: Option<&LeaseId>) -> bool {
        lease.is_none_or(|id| self.board.lock().leases.holds(id))
    }

    /// A record was written; where there is a lease, its job has to be answered for.
    pub(super) fn wrote(&mut self, lease: Option<LeaseId>, ending: Ending) {
        self.written += 1;
        if let Some(lease) = lease {
            self.waiting.push_back(Written { number: self.written, lease, ending });
        }
    }

    /// A job did not end.
    pub(super) fn drop_job(&mut self, lease: Option<LeaseId>) {
        self.to_give_back.extend(lease);
    }

    /// Extends what has to be extended.
    ///
    /// # Errors
    /// The source cannot be reached, and leases have run out for it.
    pub(super) fn extend(&mut self, now: Instant) -> Result<(), Error> {
        if !self.board.is_leased() {
            return Ok(());
        }
        let due = self.board.lock().leases.due(now, AT_ONCE);
        if due.is_empty() {
            return Ok(());
        }
        match self.source.extend(&due) {
            Ok(lost) => {
                let lost: HashSet<_> = lost.ids().iter().collect();
                let mut shared = self.board.lock();
                for id in &due {
                    if !lost.contains(id) {
                        shared.leases.extended(id, now);
                    } else if shared.leases.release(id) {
                        self.lost += 1;
                        log::warn!(
                            target: "longhaul::source",
                            "the lease of job {id} is lost; another consumer has it"
                        );
                    }
                }
                Ok(())
            }
            Err(error) => {
                log::warn!(
                    target: "longhaul::source",
                    "{} leases cannot be extended: {error}",
                    due.len()
                );
                let over = self.board.lock().leases.expire(&due, now);
                self.lost += over as u64;
                if over == 0 { Ok(()) } else { Err(error) }
            }
        }
    }

    /// Tells the source what has ended and is durable, and what will not end.
    pub(super) fn settle(&mut self, durable: u64, now: Instant) {
        if !self.board.is_leased() || self.quiet_until.is_some_and(|until| now < until) {
            return;
        }
        if let Err(error) = self.tell(durable) {
            log::warn!(
                target: "longhaul::source",
                "jobs that are done cannot be acknowledged yet: {error}"
            );
            self.quiet_until = now.checked_add(PAUSE);
        }
    }

    /// As [`settle`](Self::settle), at the end: what is not settled by then is given back.
    ///
    /// # Errors
    /// Of jobs that are done and cannot be acknowledged.
    pub(super) fn finish(&mut self, durable: u64) -> Result<(), Error> {
        if !self.board.is_leased() {
            return Ok(());
        }
        let told = self.tell(durable);
        let left = self.board.lock().leases.all();
        self.give_back(&left);
        told
    }

    fn tell(&mut self, durable: u64) -> Result<(), Error> {
        let (done_before, unfed) = {
            let mut shared = self.board.lock();
            (std::mem::take(&mut shared.done_before), std::mem::take(&mut shared.unfed))
        };
        for lease in done_before {
            self.waiting.push_front(Written { number: 0, lease, ending: Ending::Acknowledge });
        }
        self.to_give_back.extend(unfed);
        let freed = std::mem::take(&mut self.to_give_back);
        self.give_back(&freed);
        while self.waiting.front().is_some_and(|written| written.number <= durable) {
            self.tell_some(durable)?;
        }
        Ok(())
    }

    /// The first of them, as far as they end in the same way.
    fn tell_some(&mut self, durable: u64) -> Result<(), Error> {
        let mut done = Vec::new();
        while done.len() < AT_ONCE
            && self.waiting.front().is_some_and(|written| written.number <= durable)
            && let Some(written) = self.waiting.pop_front()
        {
            match written.ending {
                _ if !self.holds(Some(&written.lease)) => {}
                Ending::Acknowledge => done.push(written.lease),
                Ending::DeadLetter(reason) => {
                    match self.source.dead_letter(&written.lease, &reason) {
                        Ok(lost) => {
                            self.dead_lettered += u64::from(lost.is_empty());
                            self.settled(&[written.lease], &lost);
                        }
                        Err(error) => {
                            let ending = Ending::DeadLetter(reason);
                            self.waiting.push_front(Written { number: 0, ending, ..written });
                            self.keep(done);
                            return Err(error);
                        }
                    }
                }
            }
        }
        if done.is_empty() {
            return Ok(());
        }
        match self.source.acknowledge(&done) {
            Ok(lost) => {
                self.settled(&done, &lost);
                Ok(())
            }
            Err(error) => {
                self.keep(done);
                Err(error)
            }
        }
    }

    /// To be told again.
    fn keep(&mut self, done: Vec<LeaseId>) {
        for lease in done.into_iter().rev() {
            self.waiting.push_front(Written { number: 0, lease, ending: Ending::Acknowledge });
        }
    }

    fn settled(&mut self, leases: &[LeaseId], lost: &Lost) {
        let mut shared = self.board.lock();
        for id in leases {
            shared.leases.release(id);
        }
        for id in lost.ids() {
            self.lost += 1;
            log::warn!(
                target: "longhaul::source",
                "the lease of job {id} was lost before it was acknowledged; it may have a second \
                 record, from another consumer"
            );
        }
    }

    fn give_back(&self, leases: &[LeaseId]) {
        let held: Vec<_> = {
            let mut shared = self.board.lock();
            leases.iter().filter(|id| shared.leases.release(id)).cloned().collect()
        };
        for some in held.chunks(AT_ONCE) {
            if let Err(error) = self.source.give_back(some) {
                log::warn!(
                    target: "longhaul::source",
                    "{} jobs cannot be given back: {error}",
                    some.len()
                );
            }
        }
    }
}
