//! One TCP socket under the clocks of an attempt, with as few system calls as it takes.
//!
//! A read is one `recv` under `SO_RCVTIMEO`, and the timeout is set only when it has to change: a
//! read timeout is the same for each read, and for a deadline that creeps nearer half of what is
//! left is set, so that a body of many reads sets it a handful of times. The timeout of a socket is
//! counted in ticks of the kernel, up to ten milliseconds each; what is left in the end is waited
//! for with a `poll`, which is exact. A write is one `send`
//! that does not block; only when the peer is slow a `poll` follows, which also notices an answer
//! that arrives while we are still sending.

use super::cutter::Registration;
use super::wait::Wait;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::{RecvFlags, SendAncillaryBuffer, SendFlags, recv, send, sendmsg};
use std::fmt;
use std::io::{self, IoSlice, Read};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::Duration;

#[cfg(not(any(target_vendor = "apple", target_os = "solaris")))]
const SEND: SendFlags = SendFlags::DONTWAIT.union(SendFlags::NOSIGNAL);
// There the socket itself was told to raise no signal when it was made.
#[cfg(any(target_vendor = "apple", target_os = "solaris"))]
const SEND: SendFlags = SendFlags::DONTWAIT;

/// Below this the ticks of a socket's own timeout are too coarse for a deadline.
const COARSE: Duration = Duration::from_millis(40);
/// Sockets do not take a timeout of zero.
const SHORTEST: Duration = Duration::from_millis(1);

pub(super) struct Socket {
    stream: Arc<TcpStream>,
    /// The read timeout that the socket has now.
    armed: Option<Duration>,
    registration: Registration,
    local: Option<SocketAddr>,
    peer: Option<SocketAddr>,
}

impl Socket {
    /// Takes over a connected, blocking socket.
    pub(super) fn new(stream: Arc<TcpStream>, registration: Registration) -> Self {
        let (local, peer) = (stream.local_addr().ok(), stream.peer_addr().ok());
        Self { stream, armed: None, registration, local, peer }
    }

    pub(super) fn local(&self) -> Option<SocketAddr> {
        self.local
    }

    pub(super) fn peer(&self) -> Option<SocketAddr> {
        self.peer
    }

    /// Whether the owner has cut all connections.
    pub(super) fn is_cut(&self) -> bool {
        self.registration.is_cut()
    }

    /// Reads at least one byte; zero is the end of the stream.
    pub(super) fn read(&mut self, buf: &mut [u8], wait: &Wait<'_>) -> io::Result<usize> {
        let bound = wait.bound()?;
        let begun = wait.now();
        // Counted in wake-ups beside the clock, so that a clock which a test moves by hand cannot
        // turn a timeout into a wait without end.
        let mut slept = Duration::ZERO;
        loop {
            let want = match bound.left {
                None => None,
                Some(left) => match left.checked_sub(slept) {
                    Some(rest) if !rest.is_zero() => Some(rest),
                    _ => return Err(bound.expired()),
                },
            };
            let (result, turn) = match want {
                Some(want) if !bound.steady && want <= COARSE => {
                    (self.read_within(buf, want), want)
                }
                _ => {
                    self.arm(want, bound.steady)?;
                    ((&*self.stream).read(buf), self.armed.unwrap_or(SHORTEST))
                }
            };
            match result {
                Err(error) if is_wake_up(&error) => slept += turn,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                done => return done,
            }
            // The ticks of the kernel make most turns longer than they were to be.
            slept = slept.max(wait.now().saturating_duration_since(begun));
        }
    }

    /// Reads what comes within this time; `WouldBlock` where nothing does.
    fn read_within(&mut self, buf: &mut [u8], time: Duration) -> io::Result<usize> {
        let mut fds = [PollFd::new(&*self.stream, PollFlags::IN)];
        match poll(&mut fds, timespec(Some(time)).as_ref()) {
            Ok(0) => Err(io::ErrorKind::WouldBlock.into()),
            Ok(_) => self.read_now(buf),
            Err(error) => Err(error.into()),
        }
    }

    /// Sees that no read blocks much longer than `want`.
    fn arm(&mut self, want: Option<Duration>, steady: bool) -> io::Result<()> {
        let next = match (self.armed, want) {
            (armed, want) if armed == want => return Ok(()),
            // A shorter one only costs an early wake-up.
            (Some(armed), Some(want)) if armed < want && armed >= want / 4 => return Ok(()),
            (_, Some(want)) if steady => Some(want.max(SHORTEST)),
            (_, Some(want)) => Some((want / 2).max(SHORTEST)),
            (_, None) => None,
        };
        self.stream.set_read_timeout(next)?;
        self.armed = next;
        Ok(())
    }

    /// Writes what the socket takes of the slices, at least one byte.
    ///
    /// With `watch`, an answer of the peer ends the waiting for a slow one: then the error is of
    /// kind [`WouldBlock`](io::ErrorKind::WouldBlock).
    pub(super) fn write(
        &mut self,
        slices: &[IoSlice<'_>],
        wait: &Wait<'_>,
        watch: bool,
    ) -> io::Result<usize> {
        loop {
            let sent = match slices {
                [one] => send(&*self.stream, one, SEND),
                many => sendmsg(&*self.stream, many, &mut SendAncillaryBuffer::default(), SEND),
            };
            match sent {
                Ok(amount) => return Ok(amount),
                Err(rustix::io::Errno::INTR) => {}
                Err(rustix::io::Errno::AGAIN) => {
                    let bound = wait.bound()?;
                    let flags = if watch { PollFlags::OUT | PollFlags::IN } else { PollFlags::OUT };
                    let mut fds = [PollFd::new(&*self.stream, flags)];
                    match poll(&mut fds, timespec(bound.left).as_ref()) {
                        Ok(0) => return Err(bound.expired()),
                        Err(rustix::io::Errno::INTR) => {}
                        Err(error) => return Err(error.into()),
                        Ok(_) => {
                            let [fd] = fds;
                            let ready = fd.revents();
                            if ready.contains(PollFlags::IN) && !ready.contains(PollFlags::OUT) {
                                return Err(io::ErrorKind::WouldBlock.into());
                            }
                        }
                    }
                }
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Reads what is there and does not wait: `WouldBlock` where nothing is.
    pub(super) fn read_now(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        self.receive(buf, RecvFlags::DONTWAIT)
    }

    /// Looks at what is there and leaves it: `WouldBlock` where nothing is.
    pub(super) fn peek_now(&mut self) -> io::Result<usize> {
        self.receive(&mut [0; 1], RecvFlags::DONTWAIT | RecvFlags::PEEK)
    }

    /// Whether there is something to read, or an end, before this time is over.
    pub(super) fn is_readable_within(&self, time: Duration) -> bool {
        let mut fds = [PollFd::new(&*self.stream, PollFlags::IN)];
        // An interrupted wait counts as a silent one.
        poll(&mut fds, timespec(Some(time)).as_ref()).is_ok_and(|ready| ready > 0)
    }

    fn receive(&mut self, buf: &mut [u8], flags: RecvFlags) -> io::Result<usize> {
        loop {
            match recv(&*self.stream, &mut *buf, flags) {
                Ok((amount, _)) => return Ok(amount),
                Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
}

/// Whether a read only woke because its timeout was over.
///
/// Unix says so with "would block". Its "timed out" is another matter: the peer has not
/// acknowledged anything for so long that the connection is dead, and whoever reads on is told
/// that the stream ended in order.
fn is_wake_up(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::WouldBlock
        || (cfg!(windows) && error.kind() == io::ErrorKind::TimedOut)
}

/// A duration for `poll`; what does not fit is without end.
pub(super) fn timespec(duration: Option<Duration>) -> Option<Timespec> {
    // A millisecond more, since a wake-up before the end would only lead to another round.
    duration.and_then(|duration| Timespec::try_from(duration.max(SHORTEST)).ok())
}

impl fmt::Debug for Socket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Socket({:?} to {:?})", self.local, self.peer)
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use rustix::io::Errno;

    #[test]
    fn a_dead_connection_is_not_taken_for_a_read_timeout() {
        for (errno, wakes, breaks) in [
            (Errno::AGAIN, true, false),
            (Errno::TIMEDOUT, false, true),
            (Errno::CONNRESET, false, true),
            (Errno::HOSTUNREACH, false, true),
            (Errno::NETUNREACH, false, true),
            (Errno::NETDOWN, false, true),
            (Errno::MFILE, false, false),
        ] {
            let error = io::Error::from(errno);
            assert_eq!(is_wake_up(&error), wakes, "{error}");
            assert_eq!(super::super::stream::is_broken(&error), breaks, "{error}");
        }
    }
}
