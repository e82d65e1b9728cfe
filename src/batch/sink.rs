//! Where the records go.
//!
//! A run needs four things of it: that it takes a record, that it says how many of those that it has
//! taken would survive a crash of the machine, that it can be asked to make all of them survive, and
//! that it tells a full disk from a reader who has gone. The second is what everything else hangs
//! on: a job is acknowledged where it came from only when its record is durable, so a sink that
//! promises too early loses URLs, and one that never promises only has them done again.
//!
//! [`RecordWriter`](super::RecordWriter) is the sink of files and streams. [`FnSink`] makes one of a
//! closure, for programs that keep the results themselves.

use super::record::Record;
use super::syncing::sync_bodies;
use crate::error::{Error, ErrorKind, Fault, Phase};
use crate::message::Response;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// Takes the records of a run, on one thread and one after the other.
///
/// # Examples
/// A sink that keeps the records in a database, a transaction for each hundred of them:
/// ```
/// use longhaul::Response;
/// use longhaul::batch::{Record, Sink, SinkError};
/// use std::time::Instant;
///
/// # struct Database;
/// # impl Database {
/// #     fn insert(&mut self, _: &str, _: &[u8]) -> Result<(), longhaul::Error> { Ok(()) }
/// #     fn commit(&mut self) -> Result<(), longhaul::Error> { Ok(()) }
/// # }
/// struct Rows {
///     database: Database,
///     written: u64,
///     durable: u64,
/// }
///
/// impl Sink for Rows {
///     fn write(
///         &mut self,
///         record: &Record,
///         response: Option<&Response>,
///         now: Instant,
///     ) -> Result<(), SinkError> {
///         let body = response.map_or(&[][..], |response| response.body());
///         self.database.insert(&record.url, body).map_err(SinkError::Failed)?;
///         self.written += 1;
///         if self.written - self.durable >= 100 { self.sync(now) } else { Ok(()) }
///     }
///
///     fn sync(&mut self, _: Instant) -> Result<(), SinkError> {
///         self.database.commit().map_err(SinkError::Failed)?;
///         self.durable = self.written;
///         Ok(())
///     }
///
///     fn durable(&self) -> u64 {
///         self.durable
///     }
/// }
/// ```
pub trait Sink: Send {
    /// Takes one record, with the response where one came: of the last attempt, its body included.
    ///
    /// # Errors
    /// The record was not taken. The run ends with the first of them.
    fn write(
        &mut self,
        record: &Record,
        response: Option<&Response>,
        now: Instant,
    ) -> Result<(), SinkError>;

    /// Is told that time goes on while nothing is written, about ten times a second.
    ///
    /// # Defaults
    /// Does nothing.
    ///
    /// # Errors
    /// As [`write`](Self::write), of records taken before.
    fn tick(&mut self, _now: Instant) -> Result<(), SinkError> {
        Ok(())
    }

    /// Returns once every record so far will survive a crash of the machine. It is called at the
    /// end of the run, however that comes about.
    ///
    /// # Errors
    /// What [`durable`](Self::durable) does not count may be lost.
    fn sync(&mut self, now: Instant) -> Result<(), SinkError>;

    /// How many of the records, in the order in which they were taken, will survive a crash of the
    /// machine. It never falls.
    fn durable(&self) -> u64;

    /// Is told of files (kept bodies) that the next record names, and takes them out of the list.
    /// The record must not count as durable before they are.
    ///
    /// # Defaults
    /// Syncs them here and now.
    ///
    /// # Errors
    /// As [`write`](Self::write).
    fn rely_on(&mut self, files: &mut Vec<PathBuf>) -> Result<(), SinkError> {
        sync_bodies(&std::mem::take(files))
    }
}

impl<S: Sink + ?Sized> Sink for Box<S> {
    fn write(
        &mut self,
        record: &Record,
        response: Option<&Response>,
        now: Instant,
    ) -> Result<(), SinkError> {
        (**self).write(record, response, now)
    }

    fn tick(&mut self, now: Instant) -> Result<(), SinkError> {
        (**self).tick(now)
    }

    fn sync(&mut self, now: Instant) -> Result<(), SinkError> {
        (**self).sync(now)
    }

    fn durable(&self) -> u64 {
        (**self).durable()
    }

    fn rely_on(&mut self, files: &mut Vec<PathBuf>) -> Result<(), SinkError> {
        (**self).rely_on(files)
    }
}

/// A closure as a sink. What it returned from counts as durable.
///
/// # Examples
/// ```
/// use longhaul::batch::FnSink;
///
/// let (send, results) = std::sync::mpsc::channel();
/// let sink = FnSink::new(move |record, response| {
///     let title = response.and_then(|response| response.text().ok());
///     let _nobody_reads_on = send.send((record.url.clone(), title));
///     Ok(())
/// });
/// # let _ = (sink, results);
/// ```
pub struct FnSink<F> {
    take: F,
    taken: u64,
}

impl<F> FnSink<F>
where
    F: FnMut(&Record, Option<&Response>) -> Result<(), SinkError> + Send,
{
    /// Gives each record to `take`, with the response where one came.
    pub fn new(take: F) -> Self {
        Self { take, taken: 0 }
    }
}

impl<F> Sink for FnSink<F>
where
    F: FnMut(&Record, Option<&Response>) -> Result<(), SinkError> + Send,
{
    fn write(
        &mut self,
        record: &Record,
        response: Option<&Response>,
        _: Instant,
    ) -> Result<(), SinkError> {
        (self.take)(record, response)?;
        self.taken += 1;
        Ok(())
    }

    fn sync(&mut self, _: Instant) -> Result<(), SinkError> {
        Ok(())
    }

    fn durable(&self) -> u64 {
        self.taken
    }
}

impl<F> fmt::Debug for FnSink<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "FnSink({} taken)", self.taken)
    }
}

/// Why a record was not written.
#[non_exhaustive]
#[derive(Debug)]
pub enum SinkError {
    /// The reader at the other end has gone: a pipe to `head`, say. Not a failure.
    Closed,
    /// The disk is full or the quota used up.
    Full(Error),
    /// The file or stream failed otherwise.
    Failed(Error),
}

impl SinkError {
    pub(super) fn of_bodies(error: io::Error, folder: &Path) -> Self {
        match Self::of(error, &format!("the folder of bodies {}", folder.display())) {
            // A folder has no reader that could have gone.
            Self::Closed => Self::Failed(Error::local(ErrorKind::Io, "a body cannot be written")),
            other => other,
        }
    }

    pub(super) fn of(error: io::Error, name: &str) -> Self {
        let text = |remedy: &str| format!("{name} cannot be written: {error}; {remedy}");
        match error.kind() {
            io::ErrorKind::BrokenPipe => Self::Closed,
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
                Self::Full(io_error(text("free some space and resume"), error))
            }
            _ => Self::Failed(io_error(text("what was written before is complete"), error)),
        }
    }
}

#[cfg(feature = "zstd")]
impl SinkError {
    /// That so many records went with a frame.
    pub(super) fn and_lost(self, records: u64) -> Self {
        let with = |error: Error| {
            let text = format!(
                "{}; the last {records} records are not in it, and a resumption does them again",
                error.message()
            );
            Error::new(error.kind(), Phase::Prepare, Fault::Local, text).with_source(error)
        };
        match self {
            Self::Closed => Self::Closed,
            Self::Full(error) => Self::Full(with(error)),
            Self::Failed(error) => Self::Failed(with(error)),
        }
    }
}

impl fmt::Display for SinkError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Closed => f.write_str("the reader of the results has gone"),
            Self::Full(error) | Self::Failed(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for SinkError {}

pub(super) fn io_error(text: String, error: io::Error) -> Error {
    Error::new(ErrorKind::Io, Phase::Prepare, Fault::Local, text).with_source(error)
}
