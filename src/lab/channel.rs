//! A buffered connection, plain or TLS, and the little of HTTP/1.1 framing that a server needs.
//!
//! The reader is tolerant on purpose: it is there to show what a client sent, not to judge it.

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, poll};
use rustls::{HandshakeKind, ServerConfig, ServerConnection, StreamOwned};

use super::server::Shared;

/// Longest head that is read.
pub(super) const HEAD_LIMIT: usize = 256 * 1024;

/// Longest body that is kept.
pub(super) const BODY_LIMIT: usize = 256 * 1024 * 1024;

/// Longest chunk-size or trailer line.
const LINE_LIMIT: usize = 16 * 1024;

/// How long a connection that was ended in order waits for the peer to fall silent.
const LINGER: Duration = Duration::from_secs(1);

/// How much is still read from a peer after the end.
const LINGER_BYTES: usize = 256 * 1024 * 1024;

/// A socket whose bytes are counted.
#[derive(Debug)]
pub(super) struct Socket {
    stream: Arc<TcpStream>,
    shared: Arc<Shared>,
}

impl Read for Socket {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = (&*self.stream).read(buffer)?;
        self.shared.bytes_in.fetch_add(count as u64, Ordering::Relaxed);
        Ok(count)
    }
}

impl Write for Socket {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        let count = (&*self.stream).write(buffer)?;
        self.shared.bytes_out.fetch_add(count as u64, Ordering::Relaxed);
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[derive(Debug)]
enum Wire {
    Plain(Socket),
    Tls(Box<StreamOwned<ServerConnection, Socket>>),
}

/// How the end of a message body is found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Framing {
    Length(u64),
    Chunked,
    UntilClose,
}

/// A piece of a message body on its way through.
#[derive(Debug, Clone, Copy)]
pub(super) enum Piece<'a> {
    /// Chunk sizes, their line ends, and trailers.
    Frame(&'a [u8]),
    /// What the body consists of.
    Data(&'a [u8]),
}

impl<'a> Piece<'a> {
    pub(super) fn raw(self) -> &'a [u8] {
        match self {
            Self::Frame(bytes) | Self::Data(bytes) => bytes,
        }
    }
}

/// One connection with what was read from it ahead.
#[derive(Debug)]
pub(super) struct Channel {
    wire: Wire,
    stream: Arc<TcpStream>,
    buffer: Vec<u8>,
    start: usize,
    /// Whom the answer is for: when it leaves, waiting for the answer ends.
    audience: Option<Arc<TcpStream>>,
}

impl Channel {
    pub(super) fn plain(stream: &Arc<TcpStream>, shared: &Arc<Shared>) -> Self {
        let socket = Socket { stream: Arc::clone(stream), shared: Arc::clone(shared) };
        Self::over(Wire::Plain(socket), stream)
    }

    /// Takes the TLS handshake to its end.
    pub(super) fn tls(
        stream: &Arc<TcpStream>,
        shared: &Arc<Shared>,
        config: Arc<ServerConfig>,
    ) -> io::Result<Self> {
        let mut socket = Socket { stream: Arc::clone(stream), shared: Arc::clone(shared) };
        let mut connection = ServerConnection::new(config).map_err(io::Error::other)?;
        while connection.is_handshaking() {
            connection.complete_io(&mut socket)?;
        }
        let tls = StreamOwned::new(connection, socket);
        Ok(Self::over(Wire::Tls(Box::new(tls)), stream))
    }

    fn over(wire: Wire, stream: &Arc<TcpStream>) -> Self {
        let stream = Arc::clone(stream);
        Self { wire, stream, buffer: Vec::new(), start: 0, audience: None }
    }

    /// Makes reads fail as soon as this peer has left, as a proxy gives up a request whose
    /// client is gone.
    pub(super) fn on_behalf_of(mut self, audience: &Arc<TcpStream>) -> Self {
        self.audience = Some(Arc::clone(audience));
        self
    }

    pub(super) fn stream(&self) -> &Arc<TcpStream> {
        &self.stream
    }

    /// The name that the client asked for in its TLS handshake.
    pub(super) fn sni(&self) -> Option<String> {
        match &self.wire {
            Wire::Plain(_) => None,
            Wire::Tls(tls) => tls.conn.server_name().map(str::to_owned),
        }
    }

    pub(super) fn is_tls(&self) -> bool {
        matches!(self.wire, Wire::Tls(_))
    }

    /// Whether the TLS handshake took up an earlier session.
    pub(super) fn resumed(&self) -> bool {
        match &self.wire {
            Wire::Plain(_) => false,
            Wire::Tls(tls) => tls.conn.handshake_kind() == Some(HandshakeKind::Resumed),
        }
    }

    /// The certificate that the client has shown.
    pub(super) fn client_certificate(&self) -> Option<Arc<[u8]>> {
        match &self.wire {
            Wire::Plain(_) => None,
            Wire::Tls(tls) => Some(Arc::from(tls.conn.peer_certificates()?.first()?.as_ref())),
        }
    }

    /// What was read ahead and not yet taken.
    pub(super) fn ahead(&self) -> &[u8] {
        self.buffer.get(self.start..).unwrap_or_default()
    }

    pub(super) fn take(&mut self, count: usize) {
        self.start = (self.start + count).min(self.buffer.len());
    }

    /// Reads once more; 0 is the end.
    pub(super) fn fill(&mut self) -> io::Result<usize> {
        if let Some(audience) = &self.audience {
            wait_before(&self.stream, audience)?;
        }
        self.buffer.drain(..self.start);
        self.start = 0;
        let before = self.buffer.len();
        self.buffer.resize(before + 16 * 1024, 0);
        let space = self.buffer.get_mut(before..).unwrap_or_default();
        let outcome = loop {
            match read_wire(&mut self.wire, space) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                outcome => break outcome,
            }
        };
        self.buffer.truncate(before + outcome.as_ref().copied().unwrap_or(0));
        outcome
    }

    /// Reads exactly this many bytes.
    pub(super) fn exactly(&mut self, count: usize) -> io::Result<Vec<u8>> {
        loop {
            if let Some(bytes) = self.ahead().get(..count) {
                let bytes = bytes.to_vec();
                self.take(count);
                return Ok(bytes);
            }
            if self.fill()? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
    }

    /// Reads up to and with `end`, at most `limit` bytes.
    pub(super) fn until(&mut self, end: u8, limit: usize) -> io::Result<Vec<u8>> {
        let mut looked = 0;
        loop {
            let ahead = self.ahead();
            if let Some(at) = ahead.iter().skip(looked).position(|byte| *byte == end) {
                let line = ahead.get(..=looked + at).unwrap_or_default().to_vec();
                self.take(line.len());
                return Ok(line);
            }
            looked = ahead.len();
            if looked > limit {
                return Err(io::Error::new(io::ErrorKind::InvalidData, "a line without end"));
            }
            if self.fill()? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
    }

    /// Reads a message head up to and with its blank line; `None` is an end between messages.
    ///
    /// An end inside of a head is `UnexpectedEof`, and what had come stays [ahead](Self::ahead).
    pub(super) fn head(&mut self) -> io::Result<Option<Vec<u8>>> {
        let mut looked: usize = 0;
        loop {
            let blank = self.ahead().iter().take_while(|byte| matches!(byte, b'\r' | b'\n'));
            if looked == 0 {
                let blank = blank.count();
                self.take(blank);
            }
            if let Some(length) = head_end(self.ahead(), looked) {
                let head = self.ahead().get(..length).unwrap_or_default().to_vec();
                self.take(length);
                return Ok(Some(head));
            }
            looked = self.ahead().len();
            if looked > HEAD_LIMIT {
                return Err(io::Error::new(io::ErrorKind::InvalidData, "a head without end"));
            }
            if self.fill()? == 0 {
                return match looked {
                    0 => Ok(None),
                    _ => Err(io::ErrorKind::UnexpectedEof.into()),
                };
            }
        }
    }

    /// Takes a message body piece by piece as it comes.
    pub(super) fn body(
        &mut self,
        framing: Framing,
        mut take: impl FnMut(Piece<'_>) -> io::Result<()>,
    ) -> io::Result<()> {
        match framing {
            Framing::Length(length) => self.data(length, &mut take),
            Framing::UntilClose => loop {
                take(Piece::Data(self.ahead()))?;
                self.take(usize::MAX / 2);
                if self.fill()? == 0 {
                    return Ok(());
                }
            },
            Framing::Chunked => loop {
                let line = self.until(b'\n', LINE_LIMIT)?;
                take(Piece::Frame(&line))?;
                let size = chunk_size(&line)?;
                if size > 0 {
                    self.data(size, &mut take)?;
                    let end = self.until(b'\n', LINE_LIMIT)?;
                    take(Piece::Frame(&end))?;
                    continue;
                }
                loop {
                    let trailer = self.until(b'\n', LINE_LIMIT)?;
                    take(Piece::Frame(&trailer))?;
                    if matches!(&*trailer, b"\n" | b"\r\n") {
                        return Ok(());
                    }
                }
            },
        }
    }

    fn data(
        &mut self,
        mut missing: u64,
        take: &mut impl FnMut(Piece<'_>) -> io::Result<()>,
    ) -> io::Result<()> {
        while missing > 0 {
            if self.ahead().is_empty() && self.fill()? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            let count = self.ahead().len().min(usize::try_from(missing).unwrap_or(usize::MAX));
            take(Piece::Data(self.ahead().get(..count).unwrap_or_default()))?;
            self.take(count);
            missing -= count as u64;
        }
        Ok(())
    }

    /// Reads whatever comes, for as long as something comes.
    pub(super) fn swallow(&mut self, limit: usize) -> io::Result<()> {
        let mut swallowed = 0;
        while swallowed < limit {
            self.take(usize::MAX / 2);
            match self.fill()? {
                0 => return Ok(()),
                count => swallowed += count,
            }
        }
        Ok(())
    }

    pub(super) fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        match &mut self.wire {
            Wire::Plain(socket) => socket.write_all(bytes),
            Wire::Tls(tls) => {
                tls.write_all(bytes)?;
                tls.flush()
            }
        }
    }

    /// Says that nothing more will be sent: close_notify under TLS, then FIN.
    pub(super) fn end_sending(&mut self) -> io::Result<()> {
        if let Wire::Tls(tls) = &mut self.wire {
            tls.conn.send_close_notify();
            tls.flush()?;
        }
        self.stream.shutdown(Shutdown::Write)
    }

    /// Ends the stream in order and lets the peer read it to its end.
    pub(super) fn finish(mut self) -> io::Result<()> {
        self.end_sending()?;
        self.stream.set_read_timeout(Some(LINGER))?;
        self.swallow(LINGER_BYTES)
    }

    /// Makes the close of the socket a reset.
    pub(super) fn reset(self) -> io::Result<()> {
        reset(&self.stream)
    }

    /// One read that does not wait, for the relay.
    pub(super) fn try_read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let ahead = self.ahead();
        if ahead.is_empty() {
            return read_wire(&mut self.wire, into);
        }
        let count = ahead.len().min(into.len());
        for (to, from) in into.iter_mut().zip(ahead) {
            *to = *from;
        }
        self.take(count);
        Ok(count)
    }

    /// One write that does not wait, for the relay.
    pub(super) fn try_write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.wire {
            Wire::Plain(socket) => socket.write(bytes),
            Wire::Tls(tls) => tls.write(bytes),
        }
    }

    /// Whether TLS records wait to be written.
    pub(super) fn wants_write(&self) -> bool {
        match &self.wire {
            Wire::Plain(_) => false,
            Wire::Tls(tls) => tls.conn.wants_write(),
        }
    }

    /// Writes waiting TLS records as far as that goes without waiting.
    pub(super) fn try_flush(&mut self) -> io::Result<()> {
        if let Wire::Tls(tls) = &mut self.wire {
            while tls.conn.wants_write() {
                tls.conn.write_tls(&mut tls.sock)?;
            }
        }
        Ok(())
    }
}

/// Makes the close of a socket a reset.
pub(super) fn reset(stream: &TcpStream) -> io::Result<()> {
    socket2::SockRef::from(stream).set_linger(Some(Duration::ZERO))
}

/// Waits until there is something to read, or until the audience has left.
fn wait_before(stream: &TcpStream, audience: &TcpStream) -> io::Result<()> {
    let mut patient = true;
    loop {
        let mut waiting = vec![PollFd::new(stream, PollFlags::IN)];
        if patient {
            waiting.push(PollFd::new(audience, PollFlags::IN));
        }
        match poll(&mut waiting, None) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        let [first, rest @ ..] = &*waiting else { return Ok(()) };
        if !first.revents().is_empty() {
            return Ok(());
        }
        if rest.iter().any(|audience| !audience.revents().is_empty()) {
            match audience.peek(&mut [0]) {
                Ok(0) | Err(_) => return Err(io::ErrorKind::ConnectionAborted.into()),
                // The next request is here already, so this peer says nothing about leaving.
                Ok(_) => patient = false,
            }
        }
    }
}

fn read_wire(wire: &mut Wire, into: &mut [u8]) -> io::Result<usize> {
    match wire {
        Wire::Plain(socket) => socket.read(into),
        Wire::Tls(tls) => match tls.read(into) {
            // A peer that leaves without close_notify has left all the same.
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(0),
            outcome => outcome,
        },
    }
}

/// The length of a head with its blank line, searched from shortly before `looked`.
fn head_end(bytes: &[u8], looked: usize) -> Option<usize> {
    let from = looked.saturating_sub(3);
    bytes.iter().enumerate().skip(from).find_map(|(at, byte)| {
        let rest = bytes.get(at + 1..)?;
        match byte {
            b'\n' if rest.starts_with(b"\r\n") => Some(at + 3),
            b'\n' if rest.starts_with(b"\n") => Some(at + 2),
            _ => None,
        }
    })
}

fn chunk_size(line: &[u8]) -> io::Result<u64> {
    let text = String::from_utf8_lossy(line);
    let digits = text.split(';').next().unwrap_or_default().trim();
    u64::from_str_radix(digits, 16)
        .ok()
        .filter(|_| digits.bytes().all(|byte| byte.is_ascii_hexdigit()))
        .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "no chunk size"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ends_of_heads() {
        for (bytes, looked, wanted) in [
            (&b"GET / HTTP/1.1\r\nA: b\r\n\r\nbody"[..], 0, Some(24)),
            (b"GET / HTTP/1.1\nA: b\n\nbody", 0, Some(21)),
            (b"GET / HTTP/1.1\r\n\r", 0, None),
            (b"GET / HTTP/1.1\r\n\r\n", 17, Some(18)),
            (b"", 0, None),
        ] {
            assert_eq!(head_end(bytes, looked), wanted, "{}", bytes.escape_ascii());
        }
    }

    #[test]
    fn sizes_of_chunks() {
        for (line, wanted) in [
            (&b"5\r\n"[..], Some(5)),
            (b"1F ; name=value\r\n", Some(31)),
            (b"0\n", Some(0)),
            (b"+5\r\n", None),
            (b"-5\r\n", None),
            (b"\r\n", None),
            (b"FFFFFFFFFFFFFFFFFF\r\n", None),
        ] {
            assert_eq!(chunk_size(line).ok(), wanted, "{}", line.escape_ascii());
        }
    }
}
