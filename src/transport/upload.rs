//! Writing a request, with an ear for the answer.
//!
//! A server may answer before it has read the body (413, 401, a redirect), and then goes on to
//! read nothing, or leaves. Who only writes would wait for a peer that has long said its last
//! word, or meet a broken pipe and lose the response. So the peer is listened to whenever it is
//! slow to take more. What it says is either the response, which ends the writing, or an interim
//! one (`100 Continue`, `103`), which is passed over, and the writing goes on.

use super::head::{self, MAX_HEAD, MAX_INTERIM, Scan, Scanner};
use super::kept::Request;
use super::stream::{Stream, Written};
use super::wait::Wait;
use crate::error::{Error, ErrorKind, Fault, Phase};
use std::io::{self, Read};

/// A piece of a streamed body: what one chunk carries and one write takes.
const PIECE: usize = 16 * 1024;
/// Room in front of a piece for its chunk size.
const SIZE_LINE: usize = 10;

/// A request that is being written.
pub(super) struct Upload<'a> {
    stream: &'a mut Stream,
    wait: &'a Wait<'a>,
    /// Bytes that left.
    pub(super) sent: u64,
    /// What the peer has said so far, without interim responses.
    heard: Vec<u8>,
    scanner: Scanner,
    interim: usize,
}

impl<'a> Upload<'a> {
    /// Nothing was written yet.
    pub(super) fn new(stream: &'a mut Stream, wait: &'a Wait<'a>) -> Self {
        Self { stream, wait, sent: 0, heard: Vec::new(), scanner: Scanner::default(), interim: 0 }
    }

    /// Writes a head that no body follows.
    pub(super) fn head(&mut self, head: &[u8]) -> io::Result<Written> {
        self.stream.write_all(&[head], self.wait, false, &mut self.sent)
    }

    /// Writes head and body.
    pub(super) fn bytes(&mut self, head: &[u8], body: &[u8]) -> io::Result<Written> {
        let written = self.push(head, body)?;
        self.finish();
        Ok(written)
    }

    /// Writes the head and a body that is read while it is sent; `left` is its length, where it
    /// is known, `piece` memory to be used, and `kept` where the body is kept.
    pub(super) fn reader(
        &mut self,
        mut head: &[u8],
        reader: &mut (dyn Read + Send),
        left: Option<u64>,
        piece: &mut Vec<u8>,
        kept: Option<&mut Request>,
    ) -> io::Result<Written> {
        let mut kept = kept;
        let mut pieces = Pieces { reader, left, piece };
        let written = loop {
            let (piece, last) = pieces.next()?;
            // A reader may take its time, which no socket notices.
            self.wait.bound()?;
            if let Some(kept) = &mut kept {
                kept.add(piece);
            }
            let written = self.push(head, piece)?;
            if last || written == Written::Answered {
                break written;
            }
            head = &[];
        };
        self.finish();
        Ok(written)
    }

    /// Writes both, unless the peer gives its answer before.
    fn push(&mut self, mut first: &[u8], mut second: &[u8]) -> io::Result<Written> {
        loop {
            let before = self.sent;
            let written =
                self.stream.write_all(&[first, second], self.wait, true, &mut self.sent)?;
            if written == Written::All || self.hear()? {
                return Ok(written);
            }
            let went = usize::try_from(self.sent - before).unwrap_or(usize::MAX);
            second = second.get(went.saturating_sub(first.len())..).unwrap_or_default();
            first = first.get(went..).unwrap_or_default();
        }
    }

    /// Listens to what is there; whether it is more than an interim response.
    fn hear(&mut self) -> io::Result<bool> {
        let mut piece = [0; 2048];
        let has_ended = loop {
            match self.stream.read_now(&mut piece) {
                Ok(0) => break true,
                Ok(amount) => {
                    self.heard.extend_from_slice(piece.get(..amount).unwrap_or_default());
                    if self.heard.len() > MAX_HEAD {
                        break true;
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break false,
                // The next read meets it again, and says so.
                Err(_) => break true,
            }
        };
        loop {
            match self.scanner.scan(&self.heard) {
                Scan::Partial => return Ok(has_ended),
                Scan::NotHttp => return Ok(true),
                Scan::Skip(blank) => drop(self.heard.drain(..blank)),
                Scan::Complete(length) => {
                    let head = self.heard.get(..length).unwrap_or_default();
                    let parsed = head::parse(head, self.scanner.lines(), false);
                    // What is malformed is for the reader of the response to refuse.
                    self.interim += 1;
                    if !parsed.is_ok_and(|head| head.is_interim()) || self.interim > MAX_INTERIM {
                        return Ok(true);
                    }
                    self.heard.drain(..length);
                    self.scanner = Scanner::default();
                }
            }
        }
    }

    /// Leaves what was heard to whoever reads the response.
    fn finish(&mut self) {
        self.stream.unread(&self.heard);
        self.heard.clear();
    }
}

/// A body in pieces that fit the wire.
struct Pieces<'a> {
    reader: &'a mut (dyn Read + Send),
    /// What is still to come, where the length is known.
    left: Option<u64>,
    piece: &'a mut Vec<u8>,
}

impl Pieces<'_> {
    /// The next bytes for the wire, and whether they are the last.
    fn next(&mut self) -> io::Result<(&[u8], bool)> {
        self.piece.resize(SIZE_LINE + PIECE + 2, 0);
        let room = match self.left {
            Some(left) => left.min(PIECE as u64) as usize,
            None => PIECE,
        };
        let space = self.piece.get_mut(SIZE_LINE..SIZE_LINE + room).unwrap_or_default();
        let amount = if space.is_empty() { 0 } else { read_some(self.reader, space)? };
        match &mut self.left {
            Some(0) => Ok((&[], true)),
            Some(left) if amount == 0 => Err(local(
                ErrorKind::Io,
                format!("the body ended {left} bytes before the length that was given for it"),
            )),
            Some(left) => {
                *left -= amount as u64;
                let last = *left == 0;
                Ok((self.piece.get(SIZE_LINE..SIZE_LINE + amount).unwrap_or_default(), last))
            }
            None if amount == 0 => Ok((b"0\r\n\r\n", true)),
            None => {
                let line = format!("{amount:x}\r\n");
                let start = SIZE_LINE - line.len();
                let end = SIZE_LINE + amount;
                put(self.piece, start, line.as_bytes());
                put(self.piece, end, b"\r\n");
                Ok((self.piece.get(start..end + 2).unwrap_or_default(), false))
            }
        }
    }
}

fn read_some(reader: &mut (dyn Read + Send), space: &mut [u8]) -> io::Result<usize> {
    loop {
        match reader.read(space) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => {
                let message = format!("the body could not be read: {error}");
                return Err(match error.downcast::<Error>() {
                    Ok(ours) => ours.into_io(),
                    Err(error) => Error::new(ErrorKind::Io, Phase::Send, Fault::Local, message)
                        .with_source(error)
                        .into_io(),
                });
            }
            done => return done,
        }
    }
}

fn local(kind: ErrorKind, message: String) -> io::Error {
    Error::new(kind, Phase::Send, Fault::Local, message).into_io()
}

fn put(bytes: &mut [u8], at: usize, what: &[u8]) {
    if let Some(place) = bytes.get_mut(at..at + what.len()) {
        place.copy_from_slice(what);
    }
}
