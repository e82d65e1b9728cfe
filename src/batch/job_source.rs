//! Where the jobs come from, and who answers for them.
//!
//! A list of lines is read once, by one process, and what is done stands in the results. A queue
//! that several processes share is another matter: whoever takes a job takes it for a time (a
//! lease), says that it is still at it, and at the end that the job is done; and where it dies, the
//! job goes to somebody else, with a count of how often that has happened. [`JobSource`] is that
//! whole way, and the input of every run is one: lines are jobs without a lease, for which nothing
//! has to be said.
//!
//! **Two threads.** A run claims on one thread and settles on another, since a claim may wait for
//! hours while jobs end that have to be acknowledged. So the methods take `&self` and a source is
//! `Sync`: a client of a distant queue keeps one connection for claims, which block, and one for
//! everything else. What a source of lines has to lock for this, it locks once for many lines.

use super::Key;
use super::item::{Item, Place};
use super::source::Entry;
use crate::error::Error;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// A list or queue of jobs. `docs/batches.md` has one as an example.
///
/// A run claims on one thread and says everything else on another, at the same time.
///
/// # What a run promises
/// - A job is acknowledged once its record is durable in the [`Sink`](super::Sink), never before.
/// - It is then acknowledged or dead-lettered exactly once, unless the source fails.
/// - Leases are extended at half of their time, as long as the job waits for its turn, flies, waits
///   between two attempts or for another pass, or has ended and is not durable yet.
/// - What has not ended when the run is over (a stop, an abort) is given back. Where the process is
///   killed, nothing is said, and the leases run out.
/// - A job whose lease is lost is somebody else's: if it has no record yet, it gets none here, for
///   the other one writes it. Where the loss shows only when the job is acknowledged, its record
///   stands, and the job may have a second one elsewhere: that is the *at least once* of every queue.
/// - A job that was handed out too often is not tried again, since it may be what kills the process
///   ([`max_deliveries`](super::BatchBuilder::max_deliveries)). It gets its record, and goes to the
///   dead letters; as does one that describes no request.
pub trait JobSource: Send + Sync {
    /// Adds up to `most` jobs to `jobs`, waiting while there is none.
    ///
    /// With at least one it returns rather than wait for more: those that it has are held back as
    /// long as it does not. Jobs that other consumers could take meanwhile should not be claimed
    /// beyond `most`. Returning none and [`Supply::More`] is fine, once in a while.
    ///
    /// Where it waits, it asks `is_over` several times a second, and returns soon after that has
    /// become true; what it adds then is given back.
    ///
    /// # Errors
    /// The source cannot be read on, and is not asked again: what was added before is done, and the
    /// run ends as [`Stopped::SourceFailed`](super::Stopped::SourceFailed). A source that can be
    /// reached again after a while waits for that itself.
    fn claim(
        &self,
        most: usize,
        jobs: &mut Vec<Claimed>,
        is_over: &dyn Fn() -> bool,
    ) -> Result<Supply, Error>;

    /// Extends leases by their length, counted from now; gives those that are lost.
    ///
    /// # Errors
    /// It cannot be told. It is tried again, and where it goes on until leases run out, these are
    /// taken as lost and the run ends as
    /// [`Stopped::SourceFailed`](super::Stopped::SourceFailed).
    fn extend(&self, leases: &[LeaseId]) -> Result<Lost, Error>;

    /// These jobs are done, and their records durable. Gives those whose lease was lost before; they
    /// must not be acknowledged in the name of whoever has them now.
    ///
    /// # Errors
    /// None of them may be taken as acknowledged. It is tried again after a second, and at the end
    /// of the run; a job for which this fails to the end is done again by somebody. So acknowledging
    /// one twice must do no harm.
    fn acknowledge(&self, leases: &[LeaseId]) -> Result<Lost, Error>;

    /// These jobs have not ended, and somebody else may have them at once. That is no failure of
    /// theirs, so a source that can should not count the delivery.
    ///
    /// # Errors
    /// They are left to run out.
    fn give_back(&self, leases: &[LeaseId]) -> Result<(), Error>;

    /// This job is of no use: it describes no request, or was handed out too often. Its record says
    /// so and is durable. The job is put where somebody will look at it, and never handed out again.
    ///
    /// # Errors
    /// As [`acknowledge`](Self::acknowledge).
    fn dead_letter(&self, lease: &LeaseId, reason: &str) -> Result<Lost, Error>;

    /// How many jobs were left out so far because they repeat another one.
    ///
    /// # Defaults
    /// None.
    fn repeated(&self) -> u64 {
        0
    }
}

impl<S: JobSource + ?Sized> JobSource for Arc<S> {
    fn claim(
        &self,
        most: usize,
        jobs: &mut Vec<Claimed>,
        is_over: &dyn Fn() -> bool,
    ) -> Result<Supply, Error> {
        (**self).claim(most, jobs, is_over)
    }

    fn extend(&self, leases: &[LeaseId]) -> Result<Lost, Error> {
        (**self).extend(leases)
    }

    fn acknowledge(&self, leases: &[LeaseId]) -> Result<Lost, Error> {
        (**self).acknowledge(leases)
    }

    fn give_back(&self, leases: &[LeaseId]) -> Result<(), Error> {
        (**self).give_back(leases)
    }

    fn dead_letter(&self, lease: &LeaseId, reason: &str) -> Result<Lost, Error> {
        (**self).dead_letter(lease, reason)
    }

    fn repeated(&self) -> u64 {
        (**self).repeated()
    }
}

/// Whether a source may have more jobs.
#[allow(clippy::exhaustive_enums, reason = "there are more or there are none")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Supply {
    /// Now or later.
    More,
    /// Never again, in this run.
    Ended,
}

/// A job that was handed out.
#[derive(Debug)]
pub struct Claimed {
    pub(super) job: Job,
    pub(super) lease: Option<Lease>,
}

/// What a job asks for.
#[derive(Debug)]
#[allow(clippy::large_enum_variant, reason = "items are the rule, and moved twice")]
pub(super) enum Job {
    Item(Item),
    Bad { error: Error, id: String, text: String },
}

impl Claimed {
    /// A job that has to be answered for; without this, nothing is ever said of it.
    #[must_use]
    pub fn under(mut self, lease: Lease) -> Self {
        self.lease = Some(lease);
        self
    }

    /// The job that a line describes, as in a file of lines: a URL or a JSON object. `None` for a
    /// blank line and for a comment. A line that describes no request is a job too: its record says
    /// what is wrong with it.
    pub fn line(line: &str, place: Place) -> Option<Self> {
        Entry::of_line(line, place).and_then(|entry| match entry {
            Entry::Item(item) => Some(item.into()),
            Entry::Bad { error, key, text, .. } => Some(Self::of_bad(error, key, text)),
            Entry::Broken(_) => None,
        })
    }

    /// The lease under which it was handed out.
    pub fn lease(&self) -> Option<&Lease> {
        self.lease.as_ref()
    }

    /// A job that describes no request; the id stands in its record.
    pub fn bad(id: impl Into<String>, error: Error) -> Self {
        Self { job: Job::Bad { error, id: id.into(), text: String::new() }, lease: None }
    }

    pub(super) fn of_bad(error: Error, key: Key, text: String) -> Self {
        Self { job: Job::Bad { error, id: key.to_string(), text }, lease: None }
    }

    pub(super) fn key(&self) -> Key {
        match &self.job {
            Job::Item(item) => item.key,
            Job::Bad { id, .. } => Key::of_id(id),
        }
    }
}

impl From<Item> for Claimed {
    fn from(item: Item) -> Self {
        Self { job: Job::Item(item), lease: None }
    }
}

/// The right to a job, for a time.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Lease {
    /// By which the source knows it.
    pub id: LeaseId,
    /// How long it lasts from the moment at which it was handed out, and from each extension on;
    /// `None` where it never runs out.
    pub lasts: Option<Duration>,
    /// How often the job was handed out, this time included: 1 for a fresh one.
    pub deliveries: u32,
}

impl Lease {
    /// A first lease that never runs out.
    pub fn new(id: impl Into<LeaseId>) -> Self {
        Self { id: id.into(), lasts: None, deliveries: 1 }
    }

    /// How long it lasts, each time. It is extended at half of this, by the thread that writes the
    /// records, so half a minute is little and a few seconds are too few: a slow disk can hold that
    /// thread up.
    #[must_use]
    pub fn lasts(mut self, time: impl Into<Option<Duration>>) -> Self {
        self.lasts = time.into();
        self
    }

    /// How often the job was handed out, this time included.
    #[must_use]
    pub fn deliveries(mut self, count: u32) -> Self {
        self.deliveries = count;
        self
    }
}

/// The name of a lease, of the source's making.
///
/// A source may call the leases of one job by the same name (its id in the queue, say). A job that a
/// run has under a name, and gets once more under the same name, is taken as that job, and its lease
/// as extended.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LeaseId(Arc<str>);

impl LeaseId {
    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl<T: Into<Arc<str>>> From<T> for LeaseId {
    fn from(name: T) -> Self {
        Self(name.into())
    }
}

impl fmt::Display for LeaseId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The leases that somebody else has by now. The others of the same call are as they should be.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[must_use]
pub struct Lost(Vec<LeaseId>);

impl Lost {
    /// All are still held.
    pub fn none() -> Self {
        Self::default()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The leases.
    pub fn ids(&self) -> &[LeaseId] {
        &self.0
    }
}

impl FromIterator<LeaseId> for Lost {
    fn from_iter<I: IntoIterator<Item = LeaseId>>(lost: I) -> Self {
        Self(lost.into_iter().collect())
    }
}
