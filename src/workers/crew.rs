//! The worker threads: made when they are first needed, and put to rest when they are too many.
//!
//! Where the number of attempts at once is found out, the pool may have a thousand workers and need
//! forty. Threads that were never needed are never made. Those that are too many after a decrease
//! must not take turns with the others: each has a session with connections of its own, and a
//! server that counts connections would go on counting all of them. So the workers of the highest
//! numbers rest, and give their sessions up.

use super::dispatch::{Job, Shared, Task};
use super::worker::{self, MakeContext};
use crate::error::{Error, ErrorKind, Fault, Phase};
use crossbeam_channel::Receiver;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle, Thread};

/// The threads of a pool, to be joined at its end.
#[derive(Clone, Default)]
pub(crate) struct Threads(Arc<Mutex<Vec<JoinHandle<()>>>>);

impl Threads {
    pub(crate) fn len(&self) -> usize {
        self.lock().len()
    }

    /// In the order in which they were started.
    #[cfg(test)]
    pub(crate) fn names(&self) -> Vec<String> {
        let name = |handle: &JoinHandle<()>| handle.thread().name().unwrap_or_default().to_owned();
        self.lock().iter().map(name).collect()
    }

    /// Starts a thread.
    ///
    /// # Errors
    /// `Io` where the system gives none.
    pub(crate) fn spawn(
        &self,
        name: &str,
        stack_bytes: usize,
        body: impl FnOnce() + Send + 'static,
    ) -> Result<Thread, Error> {
        let named = thread::Builder::new().name(name.to_owned()).stack_size(stack_bytes);
        let handle = named.spawn(body).map_err(|error| {
            let count = self.len();
            let message = format!(
                "cannot start the thread {name} beside {count} others: {error}; set fewer workers"
            );
            Error::new(ErrorKind::Io, Phase::Prepare, Fault::Local, message).with_source(error)
        })?;
        let thread = handle.thread().clone();
        self.lock().push(handle);
        Ok(thread)
    }

    /// Waits until every thread has ended, but for the one that asks.
    pub(crate) fn join(&self) {
        let own = thread::current().id();
        // Those that are begun meanwhile stand behind: the one that begins them is among these.
        loop {
            let Some(handle) = self.lock().pop() else { return };
            // The last owner of a pool may be a closure that one of its own threads runs.
            if handle.thread().id() != own && handle.join().is_err() {
                log::error!(target: "longhaul::workers", "a thread of the worker pool panicked");
            }
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<JoinHandle<()>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// How many workers are to work; those with higher numbers rest.
#[derive(Clone, Default)]
pub(crate) struct Called(Arc<AtomicUsize>);

impl Called {
    /// Whether the worker of this number is to work.
    pub(crate) fn includes(&self, number: usize) -> bool {
        number < self.0.load(Ordering::Acquire)
    }

    /// Rests until the worker of this number is to work, or the pool ends.
    pub(crate) fn rest(&self, number: usize) {
        while !self.includes(number) {
            // Whoever is called between the look and this returns at once.
            thread::park();
        }
    }
}

/// The workers of a pool.
pub(crate) struct Crew<T: Task> {
    pub(crate) shared: Arc<Shared<T>>,
    pub(crate) context: Arc<MakeContext<T>>,
    pub(crate) jobs: Receiver<Box<Job<T>>>,
    pub(crate) stack_bytes: usize,
    pub(crate) name: String,
    pub(crate) threads: Threads,
    workers: Vec<Thread>,
    called: Called,
    count: usize,
}

impl<T: Task> Crew<T> {
    pub(crate) fn new(
        shared: Arc<Shared<T>>,
        context: Arc<MakeContext<T>>,
        jobs: Receiver<Box<Job<T>>>,
        stack_bytes: usize,
        name: String,
        threads: Threads,
    ) -> Self {
        let (workers, called) = (Vec::new(), Called::default());
        Self { shared, context, jobs, stack_bytes, name, threads, workers, called, count: 0 }
    }

    /// Lets so many workers work, and the others rest.
    ///
    /// # Errors
    /// `Io` where the system gives no further thread; those that there are work.
    pub(crate) fn call(&mut self, count: usize) -> Result<(), Error> {
        if count == self.count {
            return Ok(());
        }
        let before = std::mem::replace(&mut self.count, count);
        self.called.0.store(count, Ordering::Release);
        self.workers.iter().take(count).skip(before).for_each(Thread::unpark);
        for number in self.workers.len()..count {
            let (shared, context) = (Arc::clone(&self.shared), Arc::clone(&self.context));
            let (jobs, called) = (self.jobs.clone(), self.called.clone());
            let body = move || worker::work(&shared, &context, &jobs, number, &called);
            let name = format!("{}-worker-{number:02}", self.name);
            self.workers.push(self.threads.spawn(&name, self.stack_bytes, body)?);
        }
        Ok(())
    }

    /// How many workers were made.
    pub(crate) fn made(&self) -> usize {
        self.workers.len()
    }
}

/// Whoever rests finds out that there is nothing more to do.
impl<T: Task> Drop for Crew<T> {
    fn drop(&mut self) {
        self.called.0.store(usize::MAX, Ordering::Release);
        self.workers.iter().for_each(Thread::unpark);
    }
}
