//! One message on one connection, as ureq sees it.
//!
//! By the time that ureq is asked, the request is with the operating system: the engine has
//! written it, since case and order of fields, the absolute form and an answer that comes in the
//! middle of an upload are no matters that ureq leaves to others. [`Wire`] is the ureq
//! [`Transport`](ureq::unversioned::transport::Transport) for what remains. It swallows the head
//! of the stand-in request that ureq writes, reads the response head itself (see
//! [`head`](super::head)), and shows ureq a short one that says the same about the body. From
//! there on ureq counts and decodes, and decides when the message is complete.
//!
//! Then ureq asks `is_open`, once, and drops the transport: that is the sign that the connection
//! can carry another request, and the drop gives it back to the pool. Dropped without being asked,
//! it closes.
//!
//! An error is made here, where phase, fault and byte counts are known, and travels inside of
//! [`ureq::Error::Other`]. As an I/O error it would look to ureq like the end of the stream, and
//! a body that a reset cut short would pass for complete.

use super::cutter::Cutter;
use super::dechunk::Dechunk;
use super::engine::Slot;
use super::head::{self, Framing, Head, MAX_HEAD, MAX_INTERIM, Scan, Scanner};
use super::idle::{Conn, IdlePool};
use super::trace::{Event, Trace, TracedHead};
use super::wait::Wait;
use super::{AttemptLimits, map_error};
use crate::error::{Error, ErrorKind, Exchange, Fault, Phase, Truncated};
use crate::time::Clock;
use std::fmt;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};
use ureq::unversioned::transport::{Buffers, NextTimeout, Transport};

/// The first size of a read buffer; it grows to what a head of the greatest length needs.
const BUFFER: usize = 16 * 1024;
/// The stand-in request is 45 bytes long.
const OUTPUT: usize = 128;
/// How long the body of a refusal is waited for.
const REFUSAL_WAIT: Duration = Duration::from_millis(200);

/// What the engine and its wires share.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) idle: IdlePool,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) cutter: Arc<Cutter>,
    pub(super) trace: Trace,
    pub(super) slot: Slot,
}

pub(super) struct Wire {
    /// Taken out when the wire is dropped.
    conn: Option<Conn>,
    shared: Arc<Shared>,
    limits: AttemptLimits,
    /// What the engine knows of the request.
    pub(super) request: Sent,
    input: Input,
    scanner: Scanner,
    dechunk: Option<Dechunk>,
    interim: usize,
    stage: Stage,
    /// Whether the connection may be kept, going by the fields of request and response.
    keep: bool,
    /// Whether ureq has found the message complete.
    complete: bool,
    /// What whoever holds the response knows and wants of the rest.
    gauge: Gauge,
    /// Where what comes is kept.
    exchange: Option<Arc<Exchange>>,
    /// Whether the end of the stream is that of the body.
    ends_with_stream: bool,
}

/// What is shared with whoever holds the response.
#[derive(Debug, Clone, Default)]
pub(super) struct Gauge(Arc<Readings>);

#[derive(Debug, Default)]
struct Readings {
    /// A deadline that is set when the body is read already: for draining what nobody needs.
    brake: OnceLock<Instant>,
    /// Bytes of the response so far.
    received: AtomicU64,
}

impl Gauge {
    /// Reads of the body fail from now on once this time has come. Only the first call counts.
    pub(super) fn brake(&self, until: Instant) {
        let _ = self.0.brake.set(until);
    }

    /// When reads of the body are to fail.
    pub(super) fn until(&self) -> Option<Instant> {
        self.0.brake.get().copied()
    }

    /// How many bytes of the response were read so far.
    pub(super) fn received(&self) -> u64 {
        self.0.received.load(Ordering::Relaxed)
    }

    pub(super) fn count(&self, amount: usize) {
        // One thread reads; the others only look.
        self.0.received.store(self.received() + amount as u64, Ordering::Relaxed);
    }
}

/// A request that was written.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sent {
    /// The answer to HEAD has no body.
    pub(super) head: bool,
    /// A proxy fetches it for us.
    pub(super) forwarded: bool,
    /// The connection had carried a request before.
    pub(super) reused: bool,
    /// Bytes of head and body that were written.
    pub(super) bytes: u64,
    /// Route and request allow to keep the connection.
    pub(super) keep: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Head,
    Body,
}

struct Input {
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    /// The head for ureq; it comes before the buffer.
    engine_head: Vec<u8>,
    progress: bool,
    output: [u8; OUTPUT],
}

impl Wire {
    pub(super) fn new(
        conn: Conn,
        shared: Arc<Shared>,
        limits: AttemptLimits,
        request: Sent,
        exchange: Option<Arc<Exchange>>,
    ) -> Self {
        let mut buffer = shared.idle.buffer();
        if buffer.len() < BUFFER {
            buffer.resize(BUFFER, 0);
        }
        let input = Input {
            buffer,
            start: 0,
            end: 0,
            engine_head: Vec::new(),
            progress: false,
            output: [0; OUTPUT],
        };
        Self {
            conn: Some(conn),
            shared,
            limits,
            request,
            input,
            scanner: Scanner::default(),
            dechunk: None,
            interim: 0,
            stage: Stage::Head,
            keep: false,
            complete: false,
            gauge: Gauge::default(),
            exchange,
            ends_with_stream: false,
        }
    }

    /// Where what comes is kept.
    pub(super) fn exchange(&self) -> Option<Arc<Exchange>> {
        self.exchange.clone()
    }

    /// The gauge of this message.
    pub(super) fn gauge(&self) -> Gauge {
        self.gauge.clone()
    }

    /// Reads until the head of the final response is there.
    fn await_head(&mut self) -> Result<(), Error> {
        loop {
            match self.scanner.scan(self.input.filled()) {
                Scan::Skip(blank) => self.input.start += blank,
                // Whether the end of a head that is too long came with the same read is chance.
                Scan::Complete(length) if length > MAX_HEAD => return Err(head::too_long()),
                Scan::Complete(length) => {
                    let bytes = self.input.filled().get(..length).unwrap_or_default();
                    self.shared.trace.tell(|| Event::Received(TracedHead::new(bytes)));
                    let head = head::parse(bytes, self.scanner.lines(), self.request.head)?;
                    if let Some(exchange) = self.exchange.as_ref().filter(|_| !head.is_interim()) {
                        keep_head(exchange, bytes, &head);
                    }
                    self.input.start += length;
                    self.scanner = Scanner::default();
                    if !head.is_interim() {
                        self.begin_body(head);
                        return Ok(());
                    }
                    self.interim += 1;
                    if self.interim > MAX_INTERIM {
                        return Err(Error::new(
                            ErrorKind::Protocol,
                            Phase::Headers,
                            Fault::Target,
                            format!("more than {MAX_INTERIM} interim responses came first"),
                        ));
                    }
                }
                Scan::NotHttp => {
                    // On a connection that was kept these bytes were on their way before the
                    // request was: the end of a body that was longer than announced, as a rule.
                    return Err(head::not_http(self.input.filled(), self.request.forwarded)
                        .with_stale(self.request.reused && self.interim == 0));
                }
                Scan::Partial => {
                    if self.input.filled().len() > MAX_HEAD {
                        return Err(head::too_long());
                    }
                    match self.fill(MAX_HEAD + BUFFER) {
                        Ok(0) => return Err(self.ended()),
                        Ok(_) => {}
                        Err(error) => return Err(self.broken(error, Phase::Headers)),
                    }
                }
            }
        }
    }

    fn begin_body(&mut self, head: Head) {
        self.stage = Stage::Body;
        self.keep = self.request.keep && head.keep_alive;
        self.ends_with_stream = head.framing == Framing::Close;
        head.write_for_engine(&mut self.input.engine_head);
        if let Some(exchange) = &self.exchange {
            exchange.receive(self.input.filled());
        }
        if head.framing == Framing::Chunked {
            let mut dechunk = Dechunk::default();
            // What came with the head has to be put in order as well; a mistake in it shows when
            // the body is read.
            self.input.tidy(&mut dechunk, 0);
            self.dechunk = Some(dechunk);
            self.note_end();
        }
        if self.request.forwarded
            && head.status == 407
            && let Some(until) = self.shared.clock.now().checked_add(REFUSAL_WAIT)
        {
            self.gauge.brake(until);
        }
        if let Some(conn) = &self.conn {
            let received = self.gauge.received();
            self.shared.slot.arrived(head, conn, self.request, received, self.shared.clock.now());
        }
    }

    /// Tells the exchange of the last chunk.
    fn note_end(&self) {
        if let Some(exchange) = &self.exchange
            && let Some(beyond) = self.dechunk.as_ref().and_then(Dechunk::beyond)
        {
            exchange.end_response(beyond);
        }
    }

    /// Reads a piece of the body, and tells the exchange how it ends.
    fn await_body(&mut self) -> Result<bool, Error> {
        let awaited = self.read_body();
        if let Some(exchange) = &self.exchange {
            match &awaited {
                Ok(true) => self.note_end(),
                // Without a length the end of the stream is that of the body.
                Ok(false) if self.ends_with_stream => exchange.end_response(0),
                Ok(false) => exchange.cut_response(Truncated::Disconnect),
                // Malformed: whether the connection still stands is beside the point.
                Err(_)
                    if self.dechunk.as_ref().is_some_and(|dechunk| dechunk.failure().is_some()) =>
                {
                    exchange.cut_response(Truncated::Unspecified);
                }
                Err(error) => exchange.cut_response(reason(error)),
            }
        }
        awaited
    }

    /// Reads a piece of the body; `false` at the orderly end of the stream.
    fn read_body(&mut self) -> Result<bool, Error> {
        loop {
            if let Some(reason) = self.dechunk.as_ref().and_then(Dechunk::failure) {
                let message = format!("the body is malformed: {reason}");
                return Err(Error::new(
                    ErrorKind::IncompleteBody,
                    Phase::Body,
                    Fault::Target,
                    message,
                ));
            }
            let settled = self.input.filled().len();
            match self.fill(MAX_HEAD) {
                Ok(0) if self.is_cut() => return Err(map_error::cancelled(Phase::Body)),
                Ok(0) => {
                    self.keep = false;
                    let missing = self.dechunk.as_mut().and_then(Dechunk::end);
                    return Ok(missing.is_some_and(|missing| self.input.append(missing)));
                }
                Ok(_) => {}
                Err(error) => return Err(self.broken(error, Phase::Body)),
            }
            let Some(dechunk) = &mut self.dechunk else { return Ok(true) };
            // ureq takes a call that adds nothing for the end.
            if self.input.tidy(dechunk, settled) > 0 {
                return Ok(true);
            }
        }
    }

    /// Reads once; `most` is what the buffer may grow to.
    fn fill(&mut self, most: usize) -> io::Result<usize> {
        let mut limits = self.limits;
        if let Some(until) = self.gauge.until() {
            limits.deadline = Some(limits.deadline.map_or(until, |deadline| deadline.min(until)));
        }
        let wait = Wait::exchange(&*self.shared.clock, &limits);
        let Some(conn) = &mut self.conn else { return Ok(0) };
        let space = self.input.space(most);
        if space.is_empty() {
            return Err(io::Error::new(
                io::ErrorKind::InvalidData,
                "a line between two chunks does not end",
            ));
        }
        let amount = conn.stream.read(space, &wait)?;
        self.input.end += amount;
        self.gauge.count(amount);
        if self.stage == Stage::Body
            && let Some(exchange) = &self.exchange
        {
            let came = self.input.end - amount..self.input.end;
            exchange.receive(self.input.buffer.get(came).unwrap_or_default());
        }
        Ok(amount)
    }

    /// The error of a stream that ended in the head.
    fn ended(&self) -> Error {
        if self.is_cut() {
            return map_error::cancelled(Phase::Headers);
        }
        let received = self.gauge.received();
        let message = if received == 0 {
            "the connection was closed without a response".to_owned()
        } else {
            format!("the connection was closed {received} bytes into the response head")
        };
        Error::new(ErrorKind::Connection, Phase::Headers, Fault::Target, message)
            .with_stale(self.is_stale())
    }

    /// The error of a read that failed.
    fn broken(&self, error: io::Error, phase: Phase) -> Error {
        if self.is_cut() {
            return map_error::cancelled(phase);
        }
        if phase == Phase::Headers
            && !self.request.reused
            && self.gauge.received() == 0
            && let Some(conn) = &self.conn
            && let Some(refusal) = super::tls::refused_late(&error, &conn.stream)
        {
            return refusal.with_source(error);
        }
        let stale = self.is_stale() && super::stream::is_broken(&error);
        map_error::exchange(error, phase).with_stale(stale)
    }

    fn is_stale(&self) -> bool {
        self.request.reused && self.gauge.received() == 0
    }

    fn is_cut(&self) -> bool {
        self.conn.as_ref().is_some_and(|conn| conn.stream.is_cut())
    }
}

fn keep_head(exchange: &Exchange, bytes: &[u8], head: &Head) {
    let length = match head.framing {
        Framing::None => Some(0),
        Framing::Length(length) => Some(length),
        Framing::Chunked | Framing::Close => None,
    };
    exchange.begin_response(bytes, length, head.framing == Framing::Chunked);
}

/// Why a body ended before its end.
fn reason(error: &Error) -> Truncated {
    match error.kind() {
        ErrorKind::ReadTimeout | ErrorKind::Deadline => Truncated::Time,
        ErrorKind::Connection | ErrorKind::IncompleteBody if error.phase() == Phase::Body => {
            Truncated::Disconnect
        }
        _ => Truncated::Unspecified,
    }
}

impl Transport for Wire {
    fn buffers(&mut self) -> &mut dyn Buffers {
        &mut self.input
    }

    fn transmit_output(&mut self, _: usize, _: NextTimeout) -> Result<(), ureq::Error> {
        // The stand-in request; the real one has long left.
        Ok(())
    }

    fn await_input(&mut self, _: NextTimeout) -> Result<bool, ureq::Error> {
        if self.stage == Stage::Head {
            self.await_head().map_err(|error| ureq::Error::Other(error.into()))?;
            return Ok(true);
        }
        self.await_body().map_err(|error| ureq::Error::Other(error.into()))
    }

    fn is_open(&mut self) -> bool {
        self.complete = self.keep;
        self.complete
    }

    fn is_tls(&self) -> bool {
        self.conn.as_ref().is_some_and(|conn| conn.stream.is_tls())
    }
}

impl Drop for Wire {
    fn drop(&mut self) {
        let Some(conn) = self.conn.take() else { return };
        // A buffer that grew for one odd head is not worth keeping.
        if self.input.buffer.len() == BUFFER {
            self.shared.idle.leave_buffer(std::mem::take(&mut self.input.buffer));
        }
        if self.complete && !conn.stream.is_cut() {
            self.shared.idle.give_back(conn, self.shared.clock.now());
        }
    }
}

impl fmt::Debug for Wire {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Wire({:?}, {:?})", self.conn, self.stage)
    }
}

impl Input {
    fn filled(&self) -> &[u8] {
        self.buffer.get(self.start..self.end).unwrap_or_default()
    }

    /// Room for more, made where there is none.
    fn space(&mut self, most: usize) -> &mut [u8] {
        if self.start == self.end {
            (self.start, self.end) = (0, 0);
        } else if self.end == self.buffer.len() && self.start > 0 {
            self.buffer.copy_within(self.start..self.end, 0);
            (self.start, self.end) = (0, self.end - self.start);
        }
        if self.end == self.buffer.len() && self.buffer.len() < most {
            self.buffer.resize((self.buffer.len() * 2).min(most), 0);
        }
        self.buffer.get_mut(self.end..).unwrap_or_default()
    }

    /// Adds a few bytes that the peer has left out; whether they fit.
    fn append(&mut self, bytes: &[u8]) -> bool {
        let Some(place) = self.space(MAX_HEAD).get_mut(..bytes.len()) else { return false };
        place.copy_from_slice(bytes);
        self.end += bytes.len();
        true
    }

    /// Puts the chunk framing of everything after the first `settled` bytes in order; how many
    /// bytes that adds.
    fn tidy(&mut self, dechunk: &mut Dechunk, settled: usize) -> usize {
        let fresh = self.buffer.get_mut(self.start + settled..self.end).unwrap_or_default();
        let kept = dechunk.tidy(fresh);
        self.end = self.start + settled + kept;
        kept
    }
}

impl Buffers for Input {
    fn output(&mut self) -> &mut [u8] {
        &mut self.output
    }

    fn input(&self) -> &[u8] {
        if self.engine_head.is_empty() { self.filled() } else { &self.engine_head }
    }

    fn input_append_buf(&mut self) -> &mut [u8] {
        self.space(MAX_HEAD)
    }

    fn input_appended(&mut self, amount: usize) {
        self.end = (self.end + amount).min(self.buffer.len());
    }

    fn input_consume(&mut self, amount: usize) {
        self.progress = amount > 0;
        if self.engine_head.is_empty() {
            self.start = (self.start + amount).min(self.end);
        } else {
            self.engine_head.drain(..amount.min(self.engine_head.len()));
        }
    }

    fn tmp_and_output(&mut self) -> (&mut [u8], &mut [u8]) {
        // For request bodies, which ureq is never given.
        (&mut [], &mut self.output)
    }

    fn can_use_input(&self) -> bool {
        !self.input().is_empty() && self.progress
    }
}
