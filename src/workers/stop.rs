//! How a pool ends before its work does.
//!
//! There are two stages. *Close* takes no more: what flies finishes its attempt, everything else
//! that was fed ends as [`Cancelled`](ErrorKind::Cancelled), so that a journal knows it as not
//! done. *Abort* cuts the sockets of what flies as well. Both are for good. The first reason given
//! is the one that is kept: a second signal makes a stop faster, it does not change its cause.

use super::dispatch::{Shared, Task};
use crate::error::{Error, ErrorKind};
use crossbeam_channel::Receiver;
use crossbeam_channel::Sender;
use std::borrow::Cow;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// Why a pool was stopped.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum StopReason {
    /// [`Stopper::close`] was called, or the pool was dropped.
    Closed,
    /// [`Stopper::abort`] was called.
    Aborted,
    /// A result that no further work can mend: the proxies refuse the credentials, the own
    /// address leaks, and whatever [`stop_on`](super::WorkerPoolBuilder::stop_on) names.
    Failure {
        /// The kind of its error.
        kind: ErrorKind,
        /// Its sentence, without credentials.
        message: String,
    },
    /// A rule of the user's, in his words.
    Rule(Cow<'static, str>),
}

impl StopReason {
    /// A result that no further work can mend.
    pub fn failure(error: &Error) -> Self {
        Self::Failure { kind: error.kind(), message: error.to_string() }
    }

    /// A rule of the user's: one short clause that says what it found.
    pub fn rule(cause: impl Into<Cow<'static, str>>) -> Self {
        Self::Rule(cause.into())
    }
}

impl fmt::Display for StopReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Closed => f.write_str("the pool was closed"),
            Self::Aborted => f.write_str("the pool was aborted"),
            Self::Failure { message, .. } => f.write_str(message),
            Self::Rule(cause) => f.write_str(cause),
        }
    }
}

/// Stops a pool from another thread, from a stop rule or after a signal.
///
/// Clones stop the same pool. A stopper of a pool that is gone does nothing.
#[derive(Clone)]
pub struct Stopper(Arc<dyn Stop>);

impl Stopper {
    pub(crate) fn new<T: Task>(shared: Arc<Shared<T>>) -> Self {
        Self(shared)
    }

    /// Takes no more: what flies finishes its attempt, what waits or is queued ends as
    /// [`Cancelled`](ErrorKind::Cancelled).
    ///
    /// A flight whose attempt would be followed by a wait ends as `Cancelled` too, with its
    /// history. The call returns at once.
    pub fn close(&self) {
        self.0.stop(Stage::Closing, StopReason::Closed);
    }

    /// As [`close`](Self::close), with a cause that is named in every cancelled result.
    pub fn close_because(&self, reason: StopReason) {
        self.0.stop(Stage::Closing, reason);
    }

    /// Ends everything now: as [`close`](Self::close), and the sockets of what flies are cut.
    ///
    /// A flight that fails from then on ends as [`Cancelled`](ErrorKind::Cancelled), since the
    /// failure may be of our own making; one that succeeds has succeeded.
    pub fn abort(&self) {
        self.0.stop(Stage::Aborting, StopReason::Aborted);
    }

    /// Why the pool was stopped; `None` while it runs.
    pub fn reason(&self) -> Option<StopReason> {
        self.0.reason()
    }
}

impl fmt::Debug for Stopper {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stopper").field("reason", &self.reason()).finish()
    }
}

/// What a [`Stopper`] needs of a pool, whatever its tasks are.
pub(crate) trait Stop: Send + Sync {
    fn stop(&self, stage: Stage, reason: StopReason);
    fn reason(&self) -> Option<StopReason>;
}

/// How far a stop has gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Stage {
    Running = 0,
    Closing = 1,
    Aborting = 2,
}

/// What an abort calls to cut the sockets of what flies.
pub(crate) struct Hook(pub(crate) Arc<dyn Fn() + Send + Sync>);

impl fmt::Debug for Hook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Hook")
    }
}

/// The state of a stop, shared by all threads of a pool.
#[derive(Debug)]
pub(crate) struct Control {
    stage: AtomicU8,
    reason: OnceLock<StopReason>,
    hook: Option<Hook>,
    /// Held while the pool runs. A feeder that waits for a permit listens at the other end, so
    /// that a stop wakes it.
    running: Mutex<Option<Sender<()>>>,
    stopped: Receiver<()>,
}

impl Control {
    pub(crate) fn new(hook: Option<Hook>) -> Self {
        let (running, stopped) = crossbeam_channel::bounded(0);
        Self {
            stage: AtomicU8::new(Stage::Running as u8),
            reason: OnceLock::new(),
            hook,
            running: Mutex::new(Some(running)),
            stopped,
        }
    }

    /// Goes on to this stage, unless the stop has gone that far already.
    pub(crate) fn enter(&self, stage: Stage, reason: StopReason) {
        // The reason first: who sees the stage finds it.
        let _ = self.reason.set(reason);
        let before = self.stage.fetch_max(stage as u8, Ordering::AcqRel);
        drop(self.running.lock().unwrap_or_else(PoisonError::into_inner).take());
        if stage == Stage::Aborting
            && before < Stage::Aborting as u8
            && let Some(hook) = &self.hook
            && catch_unwind(AssertUnwindSafe(|| (hook.0)())).is_err()
        {
            log::error!(
                target: "longhaul::workers",
                "the closure given to on_abort panicked; open sockets end by themselves"
            );
        }
    }

    pub(crate) fn is_stopping(&self) -> bool {
        self.stage.load(Ordering::Acquire) >= Stage::Closing as u8
    }

    pub(crate) fn is_aborting(&self) -> bool {
        self.stage.load(Ordering::Acquire) >= Stage::Aborting as u8
    }

    /// The reason of the stop; `None` while the pool runs.
    pub(crate) fn reason(&self) -> Option<StopReason> {
        if self.is_stopping() { self.reason.get().cloned() } else { None }
    }

    /// The reason for a job that ends because of the stop.
    pub(crate) fn cause(&self) -> StopReason {
        self.reason.get().cloned().unwrap_or(StopReason::Closed)
    }

    /// A channel that is disconnected as soon as the pool is stopped.
    pub(crate) fn stopped(&self) -> &Receiver<()> {
        &self.stopped
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicUsize;

    #[test]
    fn the_first_reason_stays_and_the_hook_runs_once() {
        let calls = Arc::new(AtomicUsize::new(0));
        let seen = Arc::clone(&calls);
        let control = Control::new(Some(Hook(Arc::new(move || {
            seen.fetch_add(1, Ordering::Relaxed);
        }))));
        assert_eq!(control.reason(), None);
        control.enter(Stage::Closing, StopReason::rule("enough"));
        assert!(control.is_stopping() && !control.is_aborting());
        assert_eq!(calls.load(Ordering::Relaxed), 0);
        control.enter(Stage::Aborting, StopReason::Aborted);
        control.enter(Stage::Aborting, StopReason::Aborted);
        control.enter(Stage::Closing, StopReason::Closed);
        assert!(control.is_aborting());
        assert_eq!(calls.load(Ordering::Relaxed), 1);
        assert_eq!(control.reason(), Some(StopReason::rule("enough")));
        assert_eq!(
            control.stopped().try_recv(),
            Err(crossbeam_channel::TryRecvError::Disconnected)
        );
    }

    #[test]
    fn a_hook_that_panics_is_contained() {
        let control = Control::new(Some(Hook(Arc::new(|| panic!("hook")))));
        control.enter(Stage::Aborting, StopReason::Aborted);
        assert!(control.is_aborting());
    }
}
