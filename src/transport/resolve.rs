//! Looking names up, with a bound on everything: time, threads, memory.
//!
//! `getaddrinfo` blocks for as long as the resolver pleases and cannot be interrupted. A thread
//! for each lookup (what ureq does as soon as a timeout is set) means that a name server which
//! stops answering turns a long run into thousands of threads. Here a few threads, started when
//! they are needed and shared by the whole process, do all lookups; who asks for a name that is
//! being looked up already waits for the same answer; and who waits leaves when his own budget
//! ends, without taking the lookup with him. Answers are kept for a minute.
//!
//! "No such name" and "no answer for now" are told apart by the code of `getaddrinfo`, since one
//! is final for a URL and the other is worth a retry.

use crate::time::{Clock, SystemClock};
use dns_lookup::LookupErrorKind;
use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::net::IpAddr;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

/// Threads that look up; each blocks in `getaddrinfo` for one name.
const THREADS: usize = 6;
/// How often who waits for an answer looks whether it is still wanted.
const SLICE: Duration = Duration::from_millis(100);
/// How long a thread stays that has nothing to do.
const IDLE: Duration = Duration::from_secs(20);
/// How long an answer is used.
const KEEP: Duration = Duration::from_secs(60);
/// Answers that are kept.
const KEPT: usize = 4096;
/// Names that may wait for a thread.
const WAITING: usize = 4096;

/// Finds the addresses of a host.
///
/// The default, [`SystemResolver::shared`], asks the operating system. Another one serves to pin
/// names to addresses, or to watch in a test what is looked up.
pub trait Resolve: fmt::Debug + Send + Sync {
    /// The addresses of `host` in the order in which they should be tried; never none.
    ///
    /// Blocks no longer than `budget`, where there is one.
    ///
    /// # Errors
    /// What kept the name from being found.
    fn resolve(&self, host: &str, budget: Option<Duration>) -> Result<Vec<IpAddr>, ResolveError>;

    /// The same, and given up within a tenth of a second once `go_on` says no: then
    /// [`ResolveError::TimedOut`].
    ///
    /// What a transport calls, so that cutting its connections ends lookups too. The default
    /// lookup of this trait cannot be given up early.
    ///
    /// # Errors
    /// As [`resolve`](Self::resolve).
    fn resolve_while(
        &self,
        host: &str,
        budget: Option<Duration>,
        go_on: &dyn Fn() -> bool,
    ) -> Result<Vec<IpAddr>, ResolveError> {
        let _ = go_on;
        self.resolve(host, budget)
    }
}

/// Why a name was not found.
#[non_exhaustive]
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ResolveError {
    /// There is no such name, or it has no address: final.
    NotFound(String),
    /// The resolver failed for now.
    Temporary(String),
    /// No answer within the budget.
    TimedOut,
}

impl fmt::Display for ResolveError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotFound(reason) | Self::Temporary(reason) => f.write_str(reason),
            Self::TimedOut => f.write_str("no answer within the budget"),
        }
    }
}

impl std::error::Error for ResolveError {}

type Answer = Result<Vec<IpAddr>, ResolveError>;
type LookUp = dyn Fn(&str) -> Answer + Send + Sync;

/// The resolver of the operating system, on a few threads.
///
/// # Defaults
/// Six threads, answers kept for a minute, failures not kept.
#[derive(Clone)]
pub struct SystemResolver(Arc<Inner>);

struct Inner {
    look_up: Box<LookUp>,
    state: Mutex<State>,
    /// Told when a name is waiting for a thread.
    waiting: Condvar,
    /// Told when a lookup is done.
    done: Condvar,
}

#[derive(Default)]
struct State {
    kept: HashMap<Box<str>, Kept>,
    lookups: HashMap<Box<str>, Lookup>,
    queue: VecDeque<Box<str>>,
    threads: usize,
    idle: usize,
}

struct Kept {
    addresses: Vec<IpAddr>,
    until: Instant,
}

#[derive(Default)]
struct Lookup {
    askers: usize,
    answer: Option<Answer>,
}

impl SystemResolver {
    /// A resolver with threads and answers of its own.
    pub fn new() -> Self {
        Self::around(system)
    }

    /// The one that everything in this process shares.
    pub fn shared() -> Arc<dyn Resolve> {
        static SHARED: OnceLock<SystemResolver> = OnceLock::new();
        Arc::new(SHARED.get_or_init(Self::new).clone())
    }

    /// Puts the bounds of this resolver around another way to look names up, which may block for
    /// as long as it likes.
    pub fn around(
        look_up: impl Fn(&str) -> Result<Vec<IpAddr>, ResolveError> + Send + Sync + 'static,
    ) -> Self {
        Self(Arc::new(Inner {
            look_up: Box::new(look_up),
            state: Mutex::default(),
            waiting: Condvar::new(),
            done: Condvar::new(),
        }))
    }
}

impl Default for SystemResolver {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for SystemResolver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.0.lock();
        write!(f, "SystemResolver({} threads, {} names kept)", state.threads, state.kept.len())
    }
}

impl Resolve for SystemResolver {
    fn resolve(&self, host: &str, budget: Option<Duration>) -> Answer {
        self.resolve_while(host, budget, &|| true)
    }

    fn resolve_while(
        &self,
        host: &str,
        budget: Option<Duration>,
        go_on: &dyn Fn() -> bool,
    ) -> Answer {
        let clock = SystemClock;
        let start = clock.now();
        let mut state = self.0.lock();
        match state.kept.get(host) {
            Some(kept) if kept.until > start => return Ok(kept.addresses.clone()),
            Some(_) => drop(state.kept.remove(host)),
            None => {}
        }
        if let Some(lookup) = state.lookups.get_mut(host) {
            lookup.askers += 1;
        } else {
            if state.queue.len() >= WAITING {
                let reason = "too many names are waiting for an answer of the resolver";
                return Err(ResolveError::Temporary(reason.to_owned()));
            }
            state.lookups.insert(host.into(), Lookup { askers: 1, answer: None });
            state.queue.push_back(host.into());
            self.0.staff(&mut state)?;
        }

        let end = budget.and_then(|budget| start.checked_add(budget));
        loop {
            let answer = state.lookups.get(host).and_then(|lookup| lookup.answer.clone());
            if answer.is_some() {
                return leave(&mut state, host, answer);
            }
            let left = end.map_or(SLICE, |end| end.saturating_duration_since(clock.now()));
            if left.is_zero() || !go_on() {
                return leave(&mut state, host, None);
            }
            let waited = self.0.done.wait_timeout(state, left.min(SLICE));
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

/// One asker less; the last one takes the lookup with him once it is answered.
fn leave(state: &mut State, host: &str, answer: Option<Answer>) -> Answer {
    if let Some(lookup) = state.lookups.get_mut(host) {
        lookup.askers -= 1;
        if lookup.askers == 0 && lookup.answer.is_some() {
            state.lookups.remove(host);
        }
    }
    answer.unwrap_or(Err(ResolveError::TimedOut))
}

impl Inner {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sees that somebody takes the name that was just queued.
    fn staff(self: &Arc<Self>, state: &mut State) -> Result<(), ResolveError> {
        if state.idle > 0 {
            self.waiting.notify_one();
            return Ok(());
        }
        if state.threads >= THREADS {
            return Ok(());
        }
        let inner = Arc::clone(self);
        let thread = std::thread::Builder::new()
            .name(format!("longhaul-dns-{}", state.threads))
            .spawn(move || inner.work());
        match thread {
            Ok(_) => state.threads += 1,
            // With others at work the name is only later.
            Err(_) if state.threads > 0 => {}
            Err(error) => {
                if let Some(host) = state.queue.pop_back() {
                    state.lookups.remove(&host);
                }
                return Err(ResolveError::Temporary(format!("no thread for the lookup: {error}")));
            }
        }
        Ok(())
    }

    fn work(&self) {
        let mut state = self.lock();
        loop {
            let Some(host) = state.queue.pop_front() else {
                state.idle += 1;
                let (back, waited) =
                    self.waiting.wait_timeout(state, IDLE).unwrap_or_else(PoisonError::into_inner);
                state = back;
                state.idle -= 1;
                if waited.timed_out() && state.queue.is_empty() {
                    state.threads -= 1;
                    return;
                }
                continue;
            };
            // Nobody waits any more: a stalled resolver is not asked for the backlog, too.
            if state.lookups.get(&host).is_none_or(|lookup| lookup.askers == 0) {
                state.lookups.remove(&host);
                continue;
            }
            drop(state);
            // Whatever a foreign library does, those who wait get an answer.
            let look_up = std::panic::AssertUnwindSafe(|| (self.look_up)(&host));
            let answer = std::panic::catch_unwind(look_up).unwrap_or_else(|_| {
                Err(ResolveError::Temporary("the resolver panicked".to_owned()))
            });
            let now = SystemClock.now();
            state = self.lock();
            if let Ok(addresses) = &answer {
                state.keep(&host, addresses.clone(), now);
            }
            match state.lookups.get_mut(&host) {
                Some(lookup) if lookup.askers > 0 => lookup.answer = Some(answer),
                _ => drop(state.lookups.remove(&host)),
            }
            self.done.notify_all();
        }
    }
}

impl State {
    fn keep(&mut self, host: &str, addresses: Vec<IpAddr>, now: Instant) {
        if self.kept.len() >= KEPT {
            self.kept.retain(|_, kept| kept.until > now);
        }
        if self.kept.len() >= KEPT {
            self.kept.clear();
        }
        if let Some(until) = now.checked_add(KEEP) {
            self.kept.insert(host.into(), Kept { addresses, until });
        }
    }
}

/// One lookup by the operating system, with the order of RFC 6724.
fn system(host: &str) -> Answer {
    match dns_lookup::lookup_host(host) {
        Ok(found) => {
            let mut addresses: Vec<IpAddr> = Vec::new();
            for address in found {
                if !addresses.contains(&address) {
                    addresses.push(address);
                }
            }
            if addresses.is_empty() {
                return Err(ResolveError::NotFound("the name has no address".to_owned()));
            }
            Ok(addresses)
        }
        Err(error) => {
            let kind = error.kind();
            let reason = std::io::Error::from(error).to_string();
            Err(match kind {
                LookupErrorKind::NoName | LookupErrorKind::NoData => ResolveError::NotFound(reason),
                _ => ResolveError::Temporary(reason),
            })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::secs;
    use std::sync::Barrier;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::sync::mpsc;

    const HOME: IpAddr = IpAddr::V4(std::net::Ipv4Addr::LOCALHOST);

    #[test]
    fn localhost_is_found_and_an_invalid_name_is_final() {
        let resolver = SystemResolver::new();
        assert!(resolver.resolve("localhost", Some(secs(20.0))).unwrap().contains(&HOME));
        // A label of more than 63 bytes never leaves the machine.
        let name = format!("{}.test", "a".repeat(70));
        let error = resolver.resolve(&name, Some(secs(20.0))).unwrap_err();
        assert_ne!(error, ResolveError::TimedOut);
    }

    #[test]
    fn identical_lookups_are_joined_and_answers_are_kept() {
        let calls = Arc::new(AtomicUsize::new(0));
        let (release, released) = mpsc::channel::<()>();
        let released = Mutex::new(released);
        let counter = Arc::clone(&calls);
        let resolver = SystemResolver::around(move |_| {
            counter.fetch_add(1, Ordering::SeqCst);
            released.lock().unwrap().recv().unwrap();
            Ok(vec![HOME])
        });
        let start = Arc::new(Barrier::new(9));
        let askers: Vec<_> = (0..8)
            .map(|_| {
                let (resolver, start) = (resolver.clone(), Arc::clone(&start));
                std::thread::spawn(move || {
                    start.wait();
                    resolver.resolve("one.test", None)
                })
            })
            .collect();
        start.wait();
        while resolver.0.lock().lookups.get("one.test").is_none_or(|lookup| lookup.askers < 8) {
            std::thread::yield_now();
        }
        release.send(()).unwrap();
        for asker in askers {
            assert_eq!(asker.join().unwrap(), Ok(vec![HOME]));
        }
        assert_eq!(resolver.resolve("one.test", None), Ok(vec![HOME]));
        assert_eq!(calls.load(Ordering::SeqCst), 1);
        assert!(resolver.0.lock().lookups.is_empty());
    }

    #[test]
    fn who_no_longer_wants_an_answer_does_not_wait_for_it() {
        let (release, released) = mpsc::channel::<()>();
        let released = Mutex::new(released);
        let resolver = SystemResolver::around(move |_| {
            let _ = released.lock().unwrap().recv();
            Ok(vec![HOME])
        });
        let stop = std::sync::atomic::AtomicBool::new(false);
        std::thread::scope(|scope| {
            let asker = scope.spawn(|| {
                resolver.resolve_while("one.test", None, &|| !stop.load(Ordering::SeqCst))
            });
            while resolver.0.lock().lookups.is_empty() {
                std::thread::yield_now();
            }
            stop.store(true, Ordering::SeqCst);
            assert_eq!(asker.join().unwrap(), Err(ResolveError::TimedOut));
        });
        drop(release);
    }

    #[test]
    fn a_resolver_that_hangs_costs_no_more_than_its_threads() {
        let (release, released) = mpsc::channel::<()>();
        let released = Mutex::new(released);
        let resolver = SystemResolver::around(move |_| {
            // Ends when the sender is dropped.
            let _ = released.lock().unwrap().recv();
            Err(ResolveError::Temporary("hung".to_owned()))
        });
        for index in 0..50 {
            let answer = resolver.resolve(&format!("{index}.test"), Some(secs(0.001)));
            assert_eq!(answer, Err(ResolveError::TimedOut));
        }
        assert_eq!(resolver.0.lock().threads, THREADS);
        drop(release);
        // The backlog that nobody waits for is dropped, and the next name is answered.
        let answer = resolver.resolve("late.test", None);
        assert_eq!(answer, Err(ResolveError::Temporary("hung".to_owned())));
        assert!(resolver.0.lock().queue.is_empty());
    }
}
