//! CPU-bound work on results, on rayon's threads.
//!
//! Workers are many and mostly wait for the network; parsing on them would make the slow pages of
//! one host hold up the fetches of all. Rayon's global pool has a thread per core, which is what
//! parsing wants. The stage keeps a bounded number of results there and pulls the run behind it
//! from the same thread that takes what is worked on.

use super::dispatch::words;
use super::lane::Polled;
use super::task::Finished;
use crate::error::{Error, ErrorKind};
use crossbeam_channel::{Receiver, Select, Sender, unbounded};
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

/// Where a stage gets its results from.
pub(crate) trait Source {
    /// The next result, without waiting for one.
    fn poll(&mut self) -> Polled<Finished>;
    /// Ready as soon as [`poll`](Self::poll) has something new to say.
    fn receiver(&self) -> &Receiver<Finished>;
}

/// The results of a run, worked on; [`Run::then`](super::Run::then) makes it.
pub struct Stage<'a, T> {
    source: Box<dyn Source + 'a>,
    source_is_finished: bool,
    work: Arc<dyn Fn(Finished) -> T + Send + Sync>,
    to_worked: Sender<Result<T, Error>>,
    worked: Receiver<Result<T, Error>>,
    in_work: usize,
    at_once: usize,
}

impl<'a, T: Send + 'static> Stage<'a, T> {
    pub(crate) fn new<F>(source: Box<dyn Source + 'a>, work: F) -> Self
    where
        F: Fn(Finished) -> T + Send + Sync + 'static,
    {
        let (to_worked, worked) = unbounded();
        Self {
            source,
            source_is_finished: false,
            work: Arc::new(work),
            to_worked,
            worked,
            in_work: 0,
            at_once: 2 * rayon::current_num_threads().max(1),
        }
    }

    fn start(&mut self, finished: Finished) {
        let work = Arc::clone(&self.work);
        let to_worked = self.to_worked.clone();
        self.in_work += 1;
        let job = move || {
            let index = finished.index;
            let result = catch_unwind(AssertUnwindSafe(|| work(finished))).map_err(|panic| {
                let words = words(&*panic);
                let message = format!("the work on result {index} panicked: {words}");
                Error::local(ErrorKind::Internal, message)
            });
            // A stage that is gone wants no answer.
            let _ = to_worked.send(result);
        };
        // On a rayon thread, waiting for rayon could wait for itself.
        if rayon::current_thread_index().is_some() { job() } else { rayon::spawn(job) }
    }
}

impl<T: Send + 'static> Iterator for Stage<'_, T> {
    type Item = Result<T, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Ok(result) = self.worked.try_recv() {
                self.in_work -= 1;
                return Some(result);
            }
            let has_room = self.in_work < self.at_once && !self.source_is_finished;
            if has_room {
                match self.source.poll() {
                    Polled::Ready(finished) => {
                        self.start(finished);
                        continue;
                    }
                    Polled::Finished => {
                        self.source_is_finished = true;
                        continue;
                    }
                    Polled::Pending => {}
                }
            }
            if self.source_is_finished && self.in_work == 0 {
                return None;
            }
            let mut select = Select::new();
            select.recv(&self.worked);
            if has_room {
                select.recv(self.source.receiver());
            }
            select.ready();
        }
    }
}

impl<T> fmt::Debug for Stage<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stage").field("in_work", &self.in_work).finish_non_exhaustive()
    }
}
