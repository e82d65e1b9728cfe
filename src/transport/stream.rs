//! Bytes to and from the peer: over a plain socket, or through TLS over another such stream.
//!
//! The nesting is what an https proxy needs: TLS to the proxy, and inside its tunnel TLS to the
//! target. The layers share one set of clocks, since every wait ends at the one socket below.

use super::socket::Socket;
use super::tls::{Asked, Failure};
use super::wait::Wait;
use crate::error::Fault;
use rustls::ClientConnection;
use std::fmt;
use std::io::{self, BufRead, IoSlice, Read, Write};
use std::net::SocketAddr;
use std::time::Duration;

/// A byte stream that obeys a [`Wait`].
pub(super) struct Stream {
    layer: Layer,
    /// Bytes that a handshake read beyond its own end; they come first.
    pending: Vec<u8>,
}

enum Layer {
    Plain(Socket),
    Tls(Box<Tls>),
}

/// TLS over a stream; the handshake is driven by [`tls`](super::tls).
struct Tls {
    session: ClientConnection,
    below: Stream,
    /// Who is at the other end.
    fault: Fault,
    asked: Asked,
}

/// How writing a request ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Written {
    /// Every byte is with the operating system.
    All,
    /// The peer answered before it had taken everything.
    Answered,
}

impl Stream {
    /// Over this socket.
    pub(super) fn plain(socket: Socket) -> Self {
        Self { layer: Layer::Plain(socket), pending: Vec::new() }
    }

    /// TLS over `below` with the target or the proxy, the handshake still to be done.
    pub(super) fn tls(session: ClientConnection, below: Self, fault: Fault) -> Self {
        let tls = Tls { session, below, fault, asked: Asked::No };
        Self { layer: Layer::Tls(Box::new(tls)), pending: Vec::new() }
    }

    /// Notes whether the peer of the outermost layer has asked for a client certificate.
    pub(super) fn set_asked(&mut self, asked: Asked) {
        if let Layer::Tls(tls) = &mut self.layer {
            tls.asked = asked;
        }
    }

    /// Whether this peer has asked for a client certificate.
    pub(super) fn asked(&self, peer: Fault) -> Asked {
        let mut stream = self;
        while let Layer::Tls(tls) = &stream.layer {
            if tls.fault == peer {
                return tls.asked;
            }
            stream = &tls.below;
        }
        Asked::No
    }

    /// Gives bytes back that belong to whoever reads next.
    pub(super) fn unread(&mut self, bytes: &[u8]) {
        self.pending.splice(0..0, bytes.iter().copied());
    }

    /// Whether the outermost layer is TLS.
    pub(super) fn is_tls(&self) -> bool {
        matches!(self.layer, Layer::Tls(_))
    }

    /// Own address of the socket below.
    pub(super) fn local(&self) -> Option<SocketAddr> {
        self.socket().local()
    }

    /// The other end of the socket below: the target, or the proxy.
    pub(super) fn peer(&self) -> Option<SocketAddr> {
        self.socket().peer()
    }

    /// Whether the owner has cut all connections.
    pub(super) fn is_cut(&self) -> bool {
        self.socket().is_cut()
    }

    /// Reads at least one byte; zero is the orderly end of the stream.
    ///
    /// The end of a TLS stream without its `close_notify` is not orderly: `UnexpectedEof`.
    pub(super) fn read(&mut self, buf: &mut [u8], wait: &Wait<'_>) -> io::Result<usize> {
        if !self.pending.is_empty() {
            return Ok(self.take_pending(buf));
        }
        match &mut self.layer {
            Layer::Plain(socket) => socket.read(buf, wait),
            Layer::Tls(tls) => tls.read(buf, wait),
        }
    }

    /// Writes all slices, counting in `sent` what left this stream's hands.
    ///
    /// With `watch`, an answer that arrives while the peer is slow to take more ends the writing,
    /// and so does a broken connection on which an answer is waiting.
    pub(super) fn write_all(
        &mut self,
        slices: &[&[u8]],
        wait: &Wait<'_>,
        watch: bool,
        sent: &mut u64,
    ) -> io::Result<Written> {
        let result = match &mut self.layer {
            Layer::Plain(socket) => write_plain(socket, slices, wait, watch, sent),
            Layer::Tls(tls) => tls.write_all(slices, wait, watch, sent),
        };
        match result {
            Err(error) if watch && is_broken(&error) => match self.has_answer() {
                Ok(true) => Ok(Written::Answered),
                // The alert says why it broke.
                Err(alert) if Failure::of(&alert).is_some() => Err(alert),
                _ => Err(error),
            },
            other => other,
        }
    }

    /// Whether an idle connection is still alive and silent.
    ///
    /// Bytes on an idle connection (a 408, an end of stream) make it unusable; what TLS sends on
    /// its own account (session tickets, key updates) does not.
    pub(super) fn is_quiet(&mut self) -> bool {
        if !self.pending.is_empty() {
            return false;
        }
        match &mut self.layer {
            Layer::Plain(socket) => {
                matches!(socket.peek_now(), Err(error) if error.kind() == io::ErrorKind::WouldBlock)
            }
            Layer::Tls(tls) => tls.is_quiet(),
        }
    }

    /// Whether it is so still after this time.
    pub(super) fn stays_quiet(&mut self, time: Duration) -> bool {
        // What TLS sends on its own account may end the waiting once.
        for _ in 0..2 {
            let woken = !time.is_zero() && self.socket().is_readable_within(time);
            if !self.is_quiet() {
                return false;
            }
            if !woken {
                break;
            }
        }
        true
    }

    /// Whether bytes of the peer can be read right now.
    fn has_answer(&mut self) -> io::Result<bool> {
        match &mut self.layer {
            Layer::Plain(socket) => socket.peek_now().map(|amount| amount > 0),
            Layer::Tls(tls) => tls.advance_now().map(|plaintext| plaintext > 0),
        }
    }

    /// Reads what is there and does not wait: `WouldBlock` where nothing is.
    pub(super) fn read_now(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        if !self.pending.is_empty() {
            return Ok(self.take_pending(buf));
        }
        match &mut self.layer {
            Layer::Plain(socket) => socket.read_now(buf),
            Layer::Tls(tls) => {
                tls.advance_now()?;
                tls.session.reader().read(buf)
            }
        }
    }

    fn take_pending(&mut self, buf: &mut [u8]) -> usize {
        let amount = self.pending.len().min(buf.len());
        for (to, from) in buf.iter_mut().zip(self.pending.drain(..amount)) {
            *to = from;
        }
        amount
    }

    fn socket(&self) -> &Socket {
        let mut stream = self;
        loop {
            match &stream.layer {
                Layer::Plain(socket) => return socket,
                Layer::Tls(tls) => stream = &tls.below,
            }
        }
    }

    /// The TLS session with the stream below it and who is at its end, for the handshake.
    pub(super) fn session(&mut self) -> Option<(&mut ClientConnection, &mut Self, Fault)> {
        match &mut self.layer {
            Layer::Plain(_) => None,
            Layer::Tls(tls) => Some((&mut tls.session, &mut tls.below, tls.fault)),
        }
    }
}

impl Tls {
    fn read(&mut self, buf: &mut [u8], wait: &Wait<'_>) -> io::Result<usize> {
        loop {
            match self.session.reader().read(buf) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                done => return done,
            }
            receive(&mut self.session, &mut self.below, self.fault, wait)?;
            // Answers to key updates. A peer that has stopped listening may still have something
            // to say, so their failure is left to the next write.
            if self.session.wants_write() {
                let _ = transmit(&mut self.session, &mut self.below, wait, false);
            }
        }
    }

    fn write_all(
        &mut self,
        slices: &[&[u8]],
        wait: &Wait<'_>,
        watch: bool,
        sent: &mut u64,
    ) -> io::Result<Written> {
        for slice in slices {
            let mut rest = *slice;
            while !rest.is_empty() {
                // Bounded by the session's own buffer, so a large body is encrypted in pieces.
                let taken = self.session.writer().write(rest)?;
                rest = rest.get(taken..).unwrap_or_default();
                *sent += taken as u64;
                if !rest.is_empty() && self.flush(wait, watch)? == Written::Answered {
                    return Ok(Written::Answered);
                }
            }
        }
        self.flush(wait, watch)
    }

    fn flush(&mut self, wait: &Wait<'_>, watch: bool) -> io::Result<Written> {
        loop {
            match transmit(&mut self.session, &mut self.below, wait, watch) {
                Ok(()) => return Ok(Written::All),
                // Something came in. A session ticket is no answer; plaintext or an end is.
                Err(error) if watch && error.kind() == io::ErrorKind::WouldBlock => {
                    if self.advance_now()? > 0 || self.is_closed() {
                        return Ok(Written::Answered);
                    }
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Processes what has arrived, without waiting; how much plaintext can be read.
    fn advance_now(&mut self) -> io::Result<usize> {
        loop {
            let state = self
                .session
                .process_new_packets()
                .map_err(|reason| Failure::io(reason, self.fault))?;
            if state.plaintext_bytes_to_read() > 0 || state.peer_has_closed() {
                return Ok(state.plaintext_bytes_to_read());
            }
            match self.session.read_tls(&mut Nonblocking(&mut self.below)) {
                Ok(0) => return Ok(0),
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(0),
                Err(error) => return Err(error),
            }
        }
    }

    fn is_closed(&mut self) -> bool {
        match self.session.reader().fill_buf() {
            Ok(plaintext) => plaintext.is_empty(),
            Err(error) => error.kind() != io::ErrorKind::WouldBlock,
        }
    }

    fn is_quiet(&mut self) -> bool {
        // The common case costs one system call: nothing has arrived, in any layer.
        let quiet = match self.below.layer {
            Layer::Plain(ref mut socket) if self.below.pending.is_empty() => {
                matches!(socket.peek_now(), Err(error) if error.kind() == io::ErrorKind::WouldBlock)
            }
            _ => false,
        };
        let plaintext = match self.session.process_new_packets() {
            Ok(state) if state.peer_has_closed() => return false,
            Ok(state) => state.plaintext_bytes_to_read(),
            Err(_) => return false,
        };
        if plaintext > 0 {
            return false;
        }
        quiet || (matches!(self.advance_now(), Ok(0)) && !self.is_closed())
    }
}

/// Reads TLS records from below and processes them.
pub(super) fn receive(
    session: &mut ClientConnection,
    below: &mut Stream,
    fault: Fault,
    wait: &Wait<'_>,
) -> io::Result<usize> {
    let amount = session.read_tls(&mut Blocking { stream: below, wait, watch: false })?;
    session.process_new_packets().map_err(|reason| Failure::io(reason, fault))?;
    Ok(amount)
}

/// Writes the TLS records that are waiting.
pub(super) fn transmit(
    session: &mut ClientConnection,
    below: &mut Stream,
    wait: &Wait<'_>,
    watch: bool,
) -> io::Result<()> {
    while session.wants_write() {
        session.write_tls(&mut Blocking { stream: below, wait, watch })?;
    }
    Ok(())
}

fn write_plain(
    socket: &mut Socket,
    slices: &[&[u8]],
    wait: &Wait<'_>,
    watch: bool,
    sent: &mut u64,
) -> io::Result<Written> {
    let [first, second] = match slices {
        [] => return Ok(Written::All),
        [one] => [*one, &[]],
        [one, two] => [*one, *two],
        many => {
            for slice in many {
                if write_plain(socket, &[slice], wait, watch, sent)? == Written::Answered {
                    return Ok(Written::Answered);
                }
            }
            return Ok(Written::All);
        }
    };
    let mut slices = [IoSlice::new(first), IoSlice::new(second)];
    let mut rest = &mut slices[..];
    loop {
        IoSlice::advance_slices(&mut rest, 0);
        while let [.., last] = &*rest
            && last.is_empty()
        {
            let shorter = rest.len() - 1;
            rest = std::mem::take(&mut rest).split_at_mut(shorter).0;
        }
        if rest.is_empty() {
            return Ok(Written::All);
        }
        match socket.write(rest, wait, watch) {
            Ok(amount) => {
                *sent += amount as u64;
                IoSlice::advance_slices(&mut rest, amount);
            }
            Err(error) if watch && error.kind() == io::ErrorKind::WouldBlock => {
                return Ok(Written::Answered);
            }
            Err(error) => return Err(error),
        }
    }
}

/// Whether the peer, or something on the way, has closed the connection under us.
///
/// A time that ran out is one of ours, unless it comes from the operating system: then keepalive
/// or retransmission has given the peer up.
pub(super) fn is_broken(error: &io::Error) -> bool {
    let given_up = error.raw_os_error().is_some()
        && matches!(
            error.kind(),
            io::ErrorKind::TimedOut
                | io::ErrorKind::HostUnreachable
                | io::ErrorKind::NetworkUnreachable
                | io::ErrorKind::NetworkDown
        );
    given_up
        || matches!(
            error.kind(),
            io::ErrorKind::BrokenPipe
                | io::ErrorKind::ConnectionReset
                | io::ErrorKind::ConnectionAborted
                | io::ErrorKind::NotConnected
                | io::ErrorKind::UnexpectedEof
        )
}

/// The lower stream as `rustls` wants to see it.
struct Blocking<'s, 'w> {
    stream: &'s mut Stream,
    wait: &'s Wait<'w>,
    watch: bool,
}

impl Read for Blocking<'_, '_> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        self.stream.read(buf, self.wait)
    }
}

impl Write for Blocking<'_, '_> {
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        self.write_vectored(&[IoSlice::new(buf)])
    }

    fn write_vectored(&mut self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        match &mut self.stream.layer {
            Layer::Plain(socket) => socket.write(slices, self.wait, self.watch),
            Layer::Tls(tls) => {
                let Some(slice) = slices.iter().find(|slice| !slice.is_empty()) else {
                    return Ok(0);
                };
                // The outer session's waits are the inner ones; whether an answer has come can
                // only be told by the outer session, so the inner one does not watch.
                tls.write_all(&[slice], self.wait, false, &mut 0)?;
                Ok(slice.len())
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

struct Nonblocking<'s>(&'s mut Stream);

impl Read for Nonblocking<'_> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        self.0.read_now(buf)
    }
}

impl fmt::Debug for Stream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.layer {
            Layer::Plain(socket) => socket.fmt(f),
            Layer::Tls(tls) => write!(f, "Tls({:?})", tls.below),
        }
    }
}
