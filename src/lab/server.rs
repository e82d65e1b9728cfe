//! The part that all servers of the lab share: accept, one thread per connection, stop, join.
//!
//! A server that cannot be stopped at once turns every failing test into a hanging one. So
//! nothing here polls: stopping sets a flag, wakes the pauses, connects to the own port to wake
//! the accept, and shuts down every registered socket to wake the reads and writes. Whoever drops
//! a server waits until its last connection has ended.

use std::any::Any;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::fmt;
use std::io;
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use super::channel::Channel;
use super::play::{NoCast, play};
use super::script::Script;
use crate::error::{Error, ErrorKind};

/// What can be asked of every server, for one that holds a `server` and a `log`.
macro_rules! watched {
    () => {
        /// Where it listens.
        pub fn address(&self) -> std::net::SocketAddr {
            self.server.address()
        }

        /// Forgets the requests seen; the counts stay.
        pub fn clear_log(&self) {
            self.log.clear();
        }

        /// Waits until this many requests have come in all; `false` when `timeout` passes first.
        pub fn wait_for_requests(&self, count: u64, timeout: std::time::Duration) -> bool {
            self.server.shared().wait_requests(count, timeout)
        }

        /// Waits until no connection is open; `false` when `timeout` passes first.
        pub fn wait_until_idle(&self, timeout: std::time::Duration) -> bool {
            self.server.shared().wait_idle(timeout)
        }

        /// Stops, waits for every connection to end, and goes on with the panic of a handler if
        /// there was one.
        pub fn join(self) {
            self.server.join();
        }
    };
}
pub(super) use watched;

/// What can be set up for every server, for a builder that holds a `setup`.
macro_rules! greets {
    () => {
        /// Is asked first, with the number of the connection from 1, when a connection has been
        /// accepted and before TLS or anything else is read; `None` leaves it to the server, and
        /// so does a script that leaves the connection open.
        ///
        /// There is neither a request nor a target yet: [`Step::Next`](super::Step::Next) and
        /// [`Step::Tunnel`](super::Step::Tunnel) end the connection.
        pub fn on_accept(
            mut self,
            greet: impl Fn(u64) -> Option<super::Script> + Send + Sync + 'static,
        ) -> Self {
            self.setup.greet = Some(std::sync::Arc::new(greet));
            self
        }
    };
}
pub(super) use greets;

/// Enough for a TLS handshake in a build without optimisation, with room for a user's handler.
const STACK: usize = 512 * 1024;

/// What a server has counted so far.
#[non_exhaustive]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Connections accepted.
    pub accepted: u64,
    /// Connections open now.
    pub open: u64,
    /// The most connections that were open at one time.
    pub most_open: u64,
    /// Requests that were read and logged, malformed ones excluded.
    pub requests: u64,
    /// Heads that were not HTTP or SOCKS, and TLS handshakes that failed.
    pub malformed: u64,
    /// Bytes read from sockets.
    pub bytes_in: u64,
    /// Bytes written to sockets.
    pub bytes_out: u64,
}

/// How a server is set up, whatever it speaks.
#[derive(Clone)]
pub(super) struct Setup {
    pub(super) address: SocketAddr,
    pub(super) max_connections: usize,
    pub(super) keep: usize,
    pub(super) greet: Option<Greet>,
}

type Greet = Arc<dyn Fn(u64) -> Option<Script> + Send + Sync>;

impl Default for Setup {
    fn default() -> Self {
        Self {
            address: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
            max_connections: 1024,
            keep: 10_000,
            greet: None,
        }
    }
}

impl fmt::Debug for Setup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Setup")
            .field("address", &self.address)
            .field("max_connections", &self.max_connections)
            .field("keep", &self.keep)
            .finish_non_exhaustive()
    }
}

/// A connection that was just accepted.
#[derive(Debug)]
pub(super) struct Incoming {
    pub(super) stream: Arc<TcpStream>,
    /// Counted from 1.
    pub(super) number: u64,
    pub(super) peer: SocketAddr,
}

/// A listening socket with its accept thread; dropping it stops and waits.
#[derive(Debug)]
pub(super) struct Server {
    address: SocketAddr,
    shared: Arc<Shared>,
    acceptor: Option<JoinHandle<()>>,
}

impl Server {
    pub(super) fn start(
        name: &str,
        setup: &Setup,
        shared: Arc<Shared>,
        serve: impl Fn(Incoming) + Send + Sync + 'static,
    ) -> Result<Self, Error> {
        let wanted = setup.address;
        let failed = |error: &io::Error| {
            let message = format!("the {name} of the lab cannot listen on {wanted}: {error}");
            Error::local(ErrorKind::Io, message)
        };
        let listener = TcpListener::bind(wanted).map_err(|error| failed(&error))?;
        let address = listener.local_addr().map_err(|error| failed(&error))?;
        let acceptor = {
            let (shared, limit) = (Arc::clone(&shared), setup.max_connections.max(1));
            let thread = format!("lab-{name}");
            let (greet, greeter) = (setup.greet.clone(), Arc::clone(&shared));
            let serve = move |incoming: Incoming| {
                if greeted(greet.as_ref(), &incoming, &greeter) {
                    serve(incoming);
                }
            };
            Builder::new()
                .name(thread.clone())
                .stack_size(STACK)
                .spawn(move || accept(&thread, &listener, &shared, limit, &Arc::new(serve)))
                .map_err(|error| failed(&error))?
        };
        Ok(Self { address, shared, acceptor: Some(acceptor) })
    }

    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }

    pub(super) fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    /// Ends everything and waits for it.
    pub(super) fn stop(&mut self) {
        self.shared.stop();
        if let Some(acceptor) = self.acceptor.take() {
            // Whether the connection succeeds does not matter: either it wakes the accept, or
            // the thread has already left.
            let wake = if self.address.ip().is_unspecified() {
                SocketAddr::from((Ipv4Addr::LOCALHOST, self.address.port()))
            } else {
                self.address
            };
            drop(TcpStream::connect_timeout(&wake, Duration::from_secs(1)));
            self.shared.note_panic(acceptor.join().err());
        }
        self.shared.wait_empty();
    }

    /// Stops, then goes on with the first panic of a handler where there was one.
    pub(super) fn join(mut self) {
        self.stop();
        self.resume();
    }

    fn resume(&self) {
        let payload = self.shared.lock().panic.take();
        if let Some(payload) = payload {
            resume_unwind(payload);
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop();
        if !std::thread::panicking() {
            self.resume();
        }
    }
}

/// Plays what comes before everything else; whether the connection is still open.
fn greeted(greet: Option<&Greet>, incoming: &Incoming, shared: &Arc<Shared>) -> bool {
    let Some(script) = greet.and_then(|greet| greet(incoming.number)) else { return true };
    let channel = Channel::plain(&incoming.stream, shared);
    // A connection that breaks ends its thread and nothing else.
    matches!(play(&script, channel, shared, None, None, &mut NoCast), Ok(Some(_)))
}

fn accept<S: Fn(Incoming) + Send + Sync + 'static>(
    name: &str,
    listener: &TcpListener,
    shared: &Arc<Shared>,
    limit: usize,
    serve: &Arc<S>,
) {
    while shared.wait_for_room(limit) {
        let (stream, peer) = match listener.accept() {
            Ok(accepted) => accepted,
            // The process has no descriptor left, or the peer was gone again: neither ends the
            // server, but neither may spin.
            Err(_) if shared.rest(Duration::from_millis(10)) => continue,
            Err(_) => return,
        };
        let stream = Arc::new(stream);
        let _ = stream.set_nodelay(true);
        let Some(ticket) = shared.enter(&stream) else { return };
        let number = shared.accepted.fetch_add(1, Ordering::Relaxed) + 1;
        let serve = Arc::clone(serve);
        let incoming = Incoming { stream, number, peer };
        // Without a thread the closure is dropped, and with it the ticket and the connection.
        let _ = Builder::new().name(name.to_owned()).stack_size(STACK).spawn(move || {
            let outcome = catch_unwind(AssertUnwindSafe(|| serve(incoming)));
            ticket.shared.note_panic(outcome.err());
            // What the handler holds is let go before anybody hears that the connection ended.
            drop(serve);
            drop(ticket);
        });
    }
}

/// What the threads of one server share.
pub(super) struct Shared {
    state: Mutex<State>,
    /// Wakes whoever pauses; signalled by the stop only.
    stopped: Condvar,
    /// Wakes whoever waits for connections to end or requests to come.
    changed: Condvar,
    accepted: AtomicU64,
    malformed: AtomicU64,
    pub(super) bytes_in: AtomicU64,
    pub(super) bytes_out: AtomicU64,
}

#[derive(Default)]
struct State {
    stopping: bool,
    /// Connections of clients, which the limit counts; `sockets` also holds those to targets.
    open: usize,
    most_open: usize,
    sockets: HashMap<u64, Arc<TcpStream>>,
    tickets: u64,
    requests: u64,
    per_connection: BTreeMap<u64, u64>,
    panic: Option<Box<dyn Any + Send>>,
}

impl Shared {
    pub(super) fn new() -> Arc<Self> {
        Arc::new(Self {
            state: Mutex::default(),
            stopped: Condvar::new(),
            changed: Condvar::new(),
            accepted: AtomicU64::new(0),
            malformed: AtomicU64::new(0),
            bytes_in: AtomicU64::new(0),
            bytes_out: AtomicU64::new(0),
        })
    }

    /// Waits; `false` when the server stops.
    pub(super) fn rest(&self, duration: Duration) -> bool {
        let state = self.lock();
        let (state, _) = self
            .stopped
            .wait_timeout_while(state, duration, |state| !state.stopping)
            .unwrap_or_else(PoisonError::into_inner);
        !state.stopping
    }

    /// Puts a client's socket within reach of the stop; `None` when it has come too late.
    fn enter(self: &Arc<Self>, stream: &Arc<TcpStream>) -> Option<Ticket> {
        self.register(stream, true)
    }

    /// Puts a socket to a target within reach of the stop.
    pub(super) fn watch(self: &Arc<Self>, stream: &Arc<TcpStream>) -> Option<Ticket> {
        self.register(stream, false)
    }

    fn register(self: &Arc<Self>, stream: &Arc<TcpStream>, client: bool) -> Option<Ticket> {
        let mut state = self.lock();
        if state.stopping {
            return None;
        }
        state.tickets += 1;
        let number = state.tickets;
        state.sockets.insert(number, Arc::clone(stream));
        if client {
            state.open += 1;
            state.most_open = state.most_open.max(state.open);
        }
        Some(Ticket { shared: Arc::clone(self), number, client })
    }

    fn stop(&self) {
        let mut state = self.lock();
        state.stopping = true;
        for socket in state.sockets.values() {
            let _ = socket.shutdown(Shutdown::Both);
        }
        drop(state);
        self.stopped.notify_all();
        self.changed.notify_all();
    }

    fn wait_for_room(&self, limit: usize) -> bool {
        let state = self.lock();
        let state = self
            .changed
            .wait_while(state, |state| !state.stopping && state.open >= limit)
            .unwrap_or_else(PoisonError::into_inner);
        !state.stopping
    }

    fn wait_empty(&self) {
        let state = self.lock();
        drop(
            self.changed
                .wait_while(state, |state| !state.sockets.is_empty())
                .unwrap_or_else(PoisonError::into_inner),
        );
    }

    /// Waits until no connection is open; `false` when `timeout` passes first.
    pub(super) fn wait_idle(&self, timeout: Duration) -> bool {
        let state = self.lock();
        let (state, _) = self
            .changed
            .wait_timeout_while(state, timeout, |state| state.open > 0)
            .unwrap_or_else(PoisonError::into_inner);
        state.open == 0
    }

    /// Waits until this many requests have come; `false` when `timeout` passes first.
    pub(super) fn wait_requests(&self, wanted: u64, timeout: Duration) -> bool {
        let state = self.lock();
        let (state, _) = self
            .changed
            .wait_timeout_while(state, timeout, |state| state.requests < wanted)
            .unwrap_or_else(PoisonError::into_inner);
        state.requests >= wanted
    }

    /// Counts a request; whoever waits for it finds it in the log already.
    pub(super) fn count_request(&self, connection: u64) {
        let mut state = self.lock();
        state.requests += 1;
        *state.per_connection.entry(connection).or_default() += 1;
        drop(state);
        self.changed.notify_all();
    }

    pub(super) fn count_malformed(&self) {
        self.malformed.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn requests_per_connection(&self) -> BTreeMap<u64, u64> {
        self.lock().per_connection.clone()
    }

    pub(super) fn counts(&self) -> Counts {
        let state = self.lock();
        Counts {
            accepted: self.accepted.load(Ordering::Relaxed),
            open: state.open as u64,
            most_open: state.most_open as u64,
            requests: state.requests,
            malformed: self.malformed.load(Ordering::Relaxed),
            bytes_in: self.bytes_in.load(Ordering::Relaxed),
            bytes_out: self.bytes_out.load(Ordering::Relaxed),
        }
    }

    fn note_panic(&self, payload: Option<Box<dyn Any + Send>>) {
        if let Some(payload) = payload {
            self.lock().panic.get_or_insert(payload);
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared").field("counts", &self.counts()).finish_non_exhaustive()
    }
}

/// A socket within reach of the stop, until this is dropped.
#[derive(Debug)]
pub(super) struct Ticket {
    shared: Arc<Shared>,
    number: u64,
    client: bool,
}

impl Drop for Ticket {
    fn drop(&mut self) {
        let mut state = self.shared.lock();
        // The last handle closes the socket here, before anybody hears that it has gone.
        drop(state.sockets.remove(&self.number));
        if self.client {
            state.open -= 1;
        }
        drop(state);
        self.shared.changed.notify_all();
    }
}

/// The last requests that a server saw, oldest first, at most `keep` of them.
#[derive(Debug)]
pub(super) struct Log<T> {
    keep: usize,
    entries: Mutex<VecDeque<T>>,
}

impl<T: Clone> Log<T> {
    pub(super) fn new(keep: usize) -> Self {
        Self { keep, entries: Mutex::default() }
    }

    pub(super) fn push(&self, entry: &T) {
        if self.keep == 0 {
            return;
        }
        let mut entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        if entries.len() == self.keep {
            entries.pop_front();
        }
        entries.push_back(entry.clone());
    }

    pub(super) fn all(&self) -> Vec<T> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned().collect()
    }

    pub(super) fn clear(&self) {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }
}
