//! Passes bytes between a client and a target until both have ended.
//!
//! One thread for both directions, because a TLS connection cannot be split between two. Each
//! direction has a bounded buffer, a half-closed side is half-closed on the other, and a reset is
//! handed on as a reset, after what was said before it: a proxy that turned it into an orderly end
//! would hide the failure that a test is about.

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::event::{PollFd, PollFlags, poll};

use super::channel::{Channel, reset};

const ROOM: usize = 64 * 1024;

/// Relays; `passed` counts the bytes of both directions.
pub(super) fn relay(
    client: &mut Channel,
    target: &Arc<TcpStream>,
    passed: &AtomicU64,
) -> io::Result<()> {
    client.stream().set_nonblocking(true)?;
    target.set_nonblocking(true)?;
    let outcome = run(client, target, passed);
    if outcome.is_err() {
        let _ = reset(client.stream());
        let _ = reset(target);
    }
    outcome
}

fn run(client: &mut Channel, target: &TcpStream, passed: &AtomicU64) -> io::Result<()> {
    let mut up = Pipe::new();
    let mut down = Pipe::new();
    loop {
        // Everything that goes without waiting, until nothing moves any more.
        while up.pull(|room| client.try_read(room))?
            | push_up(&mut up, target)?
            | down.pull(|room| (&mut &*target).read(room))?
            | push_down(&mut down, client)?
        {}
        if up.closed && down.closed {
            passed.fetch_add(up.passed + down.passed, Ordering::Relaxed);
            return Ok(());
        }
        let mut client_wants = PollFlags::empty();
        let mut target_wants = PollFlags::empty();
        client_wants.set(PollFlags::IN, up.has_room());
        client_wants.set(PollFlags::OUT, !down.is_empty() || client.wants_write());
        target_wants.set(PollFlags::IN, down.has_room());
        target_wants.set(PollFlags::OUT, !up.is_empty());
        let stream = Arc::clone(client.stream());
        let mut waiting = Vec::with_capacity(2);
        if !client_wants.is_empty() {
            waiting.push(PollFd::new(&*stream, client_wants));
        }
        if !target_wants.is_empty() {
            waiting.push(PollFd::new(target, target_wants));
        }
        match poll(&mut waiting, None) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

/// A target that takes no more may have said why: what it sent is still passed on, and then the
/// way in which it left.
fn push_up(up: &mut Pipe, target: &TcpStream) -> io::Result<bool> {
    let pushed = up.push(|bytes| (&mut &*target).write(bytes), || target.shutdown(Shutdown::Write));
    match pushed {
        Err(error)
            if matches!(
                error.kind(),
                io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset
            ) =>
        {
            up.give_up();
            Ok(true)
        }
        other => other,
    }
}

fn push_down(down: &mut Pipe, client: &mut Channel) -> io::Result<bool> {
    match client.try_flush() {
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
        outcome => outcome?,
    }
    if down.eof && down.is_empty() && !down.closed {
        down.closed = true;
        client.end_sending().or_else(gone)?;
        return Ok(true);
    }
    down.push(|bytes| client.try_write(bytes), || Ok(()))
}

/// One direction.
struct Pipe {
    buffer: Vec<u8>,
    start: usize,
    /// The source has ended.
    eof: bool,
    /// The sink has been told so.
    closed: bool,
    passed: u64,
}

impl Pipe {
    fn new() -> Self {
        Self { buffer: Vec::new(), start: 0, eof: false, closed: false, passed: 0 }
    }

    fn is_empty(&self) -> bool {
        self.start == self.buffer.len()
    }

    /// Takes nothing more in, and throws away what it holds.
    fn give_up(&mut self) {
        (self.eof, self.closed) = (true, true);
        self.buffer.clear();
        self.start = 0;
    }

    fn has_room(&self) -> bool {
        !self.eof && self.is_empty()
    }

    /// Reads once from the source; whether something moved.
    fn pull(&mut self, read: impl FnOnce(&mut [u8]) -> io::Result<usize>) -> io::Result<bool> {
        if !self.has_room() {
            return Ok(false);
        }
        self.buffer.resize(ROOM, 0);
        self.start = 0;
        let outcome = read(&mut self.buffer);
        self.buffer.truncate(outcome.as_ref().copied().unwrap_or(0));
        match outcome {
            Ok(0) => {
                self.eof = true;
                Ok(true)
            }
            Ok(_) => Ok(true),
            Err(error) if later(&error) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Writes once to the sink, or tells it the end; whether something moved.
    fn push(
        &mut self,
        write: impl FnOnce(&[u8]) -> io::Result<usize>,
        close: impl FnOnce() -> io::Result<()>,
    ) -> io::Result<bool> {
        if self.is_empty() {
            if !self.eof || self.closed {
                return Ok(false);
            }
            self.closed = true;
            return close().or_else(gone).map(|()| true);
        }
        match write(self.buffer.get(self.start..).unwrap_or_default()) {
            Ok(count) => {
                self.start += count;
                self.passed += count as u64;
                Ok(count > 0)
            }
            Err(error) if later(&error) => Ok(false),
            Err(error) => Err(error),
        }
    }
}

fn later(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)
}

/// A side that is gone already needs not be told the end.
fn gone(error: io::Error) -> io::Result<()> {
    match error.kind() {
        io::ErrorKind::NotConnected | io::ErrorKind::BrokenPipe | io::ErrorKind::WouldBlock => {
            Ok(())
        }
        _ => Err(error),
    }
}
