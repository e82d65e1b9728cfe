//! The two ends below a decoder: the counted wire, and a buffer that can be looked into.

use super::WireBytes;
use crate::error::{Error, ErrorKind, Fault, Phase};
use std::io::{self, BufRead, Read};

/// The raw body, counted and held to its ceiling; every error above it is the decoder's.
pub(super) struct Wire {
    inner: Box<dyn Read + Send>,
    count: WireBytes,
    limit: Option<u64>,
    /// Content-Length; it may describe a body that never comes (HEAD), so it counts only once a
    /// byte has come.
    declared: Option<u64>,
}

impl Wire {
    pub(super) fn new(
        inner: Box<dyn Read + Send>,
        count: WireBytes,
        limit: Option<u64>,
        declared: Option<u64>,
    ) -> Self {
        Self { inner, count, limit, declared }
    }

    fn too_large(&self, text: String) -> io::Error {
        Error::new(ErrorKind::TooLarge, Phase::Body, Fault::Target, text)
            .with_received_bytes(self.count.get())
            .into_io()
    }
}

impl Read for Wire {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let left = self.limit.map_or(u64::MAX, |limit| limit.saturating_sub(self.count.get()));
        let room = usize::try_from(left.saturating_add(1)).unwrap_or(usize::MAX).min(buf.len());
        let buf = buf.get_mut(..room).unwrap_or_default();
        let count = loop {
            match self.inner.read(buf) {
                Ok(count) => break count as u64,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => {
                    return Err(Error::from_io(error, Phase::Body, Fault::Target).into_io());
                }
            }
        };
        self.count.add(count);
        if let Some(limit) = self.limit
            && count > 0
        {
            if let Some(declared) = self.declared.filter(|declared| *declared > limit) {
                let text = format!(
                    "the body declares {declared} bytes, more than the ceiling of {limit} bytes \
                     on the wire"
                );
                return Err(self.too_large(text));
            }
            if count > left {
                let text = format!(
                    "the body is longer than the ceiling of {limit} bytes on the wire ({} bytes \
                     had come)",
                    self.count.get()
                );
                return Err(self.too_large(text));
            }
        }
        usize::try_from(count).map_err(io::Error::other)
    }
}

/// What a decoder reads from at a time.
const BUFFER: usize = 16 * 1024;

/// A buffered reader that can be asked for the next few bytes without taking them.
pub(super) struct Source {
    inner: Box<dyn Read + Send>,
    buffer: Vec<u8>,
    begin: usize,
    end: usize,
}

impl Source {
    pub(super) fn new(inner: Box<dyn Read + Send>) -> Self {
        Self { inner, buffer: Vec::new(), begin: 0, end: 0 }
    }

    fn buffered(&self) -> &[u8] {
        self.buffer.get(self.begin..self.end).unwrap_or_default()
    }

    /// The next `count` bytes, or fewer where the body ends before them.
    pub(super) fn peek(&mut self, count: usize) -> io::Result<&[u8]> {
        while self.end - self.begin < count {
            if self.buffer.is_empty() {
                // Here and not in `new`: most bodies of redirects and 304 are never read.
                self.buffer = vec![0; BUFFER];
            }
            self.buffer.copy_within(self.begin..self.end, 0);
            (self.begin, self.end) = (0, self.end - self.begin);
            let free = self.buffer.get_mut(self.end..).unwrap_or_default();
            let read = self.inner.read(free)?;
            if read == 0 {
                break;
            }
            self.end += read;
        }
        let buffered = self.buffered();
        Ok(buffered.get(..count).unwrap_or(buffered))
    }
}

impl Read for Source {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let mut buffered = self.fill_buf()?;
        let count = buffered.read(buf)?;
        self.consume(count);
        Ok(count)
    }
}

impl BufRead for Source {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        self.peek(1)?;
        Ok(self.buffered())
    }

    fn consume(&mut self, count: usize) {
        self.begin = self.end.min(self.begin + count);
    }
}
