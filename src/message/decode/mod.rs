//! Content codings, and the ceilings of a body.
//!
//! A body is decoded while it is read, so that a ceiling stops a bomb at the ceiling and not after
//! it. Two ceilings are kept apart because they protect different things: wire bytes are what the
//! line carries, decoded bytes what memory and disk take. Both are errors with the numbers; a
//! silently shortened page is worse than a failed one.
//!
//! Servers label bodies loosely, so this side is lenient where browsers and requests are: names in
//! any case, `x-gzip`, lists, `identity` among them, raw deflate, members after members, padding
//! after the last one. A coding that nobody here knows leaves the bytes as they came, and the
//! response's fields say which it was. More than [`MAX_CODINGS`] in a chain is an attack.
//!
//! Where we differ from requests:
//! - DIFFERENCE(coding-list): `gzip, identity` is decoded; requests fails.
//! - DIFFERENCE(cut-coding): a coded stream that ends early is `ContentDecoding`; requests returns
//!   what it has.
//! - DIFFERENCE(bodyless-coding): no coding is looked at where no body is possible; requests refuses
//!   a chain that is too long in the answer to HEAD as well.

mod coding;
mod source;

use crate::error::{Error, ErrorKind, Fault, Phase};
use coding::{Coding, Layer};
use http::{HeaderMap, header};
use source::Wire;
use std::fmt;
use std::io::{self, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The longest chain of codings that is decoded; urllib3's limit.
pub const MAX_CODINGS: usize = 5;

/// Ceilings of a body.
#[derive(Debug, Clone, Copy, Default)]
pub struct DecodeLimits {
    /// Bytes as they come off the wire.
    pub wire: Option<u64>,
    /// Bytes after decoding.
    pub decoded: Option<u64>,
}

/// A reader of the decoded body: chains up to 5, any case, ceilings as errors (`TooLarge`,
/// `ContentDecoding`, through [`io::Error`]).
///
/// Nothing is read before the reader is. A body without a byte decodes to nothing, whatever its
/// fields say, as do those of HEAD, 204 and 304.
pub fn decode(body: Box<dyn Read + Send>, headers: &HeaderMap, limits: DecodeLimits) -> Decoded {
    reader(body, headers, limits, codings(headers))
}

/// A reader of the body as it came, coded or not, under the same ceilings.
pub fn undecoded(body: Box<dyn Read + Send>, headers: &HeaderMap, limits: DecodeLimits) -> Decoded {
    let (codings, unknown) = codings(headers);
    reader(body, headers, limits, (Vec::new(), unknown || !codings.is_empty()))
}

fn reader(
    body: Box<dyn Read + Send>,
    headers: &HeaderMap,
    limits: DecodeLimits,
    (codings, unknown): (Vec<Coding>, bool),
) -> Decoded {
    let declared = headers.get(header::CONTENT_LENGTH).and_then(|value| value.to_str().ok());
    let count = WireBytes::default();
    let wire = Wire::new(
        body,
        count.clone(),
        limits.wire,
        declared.and_then(|text| text.trim().parse().ok()),
    );
    let mut failure = None;
    let mut reader: Box<dyn Read + Send> = Box::new(wire);
    if codings.len() > MAX_CODINGS {
        let text = format!(
            "the body has {} content codings, and {MAX_CODINGS} is the most that is decoded",
            codings.len()
        );
        failure = Some((ErrorKind::ContentDecoding, text));
    } else if !unknown {
        // The last one named was applied last, so it comes off first.
        for coding in codings.into_iter().rev() {
            reader = Box::new(Layer::new(reader, coding));
        }
    }
    Decoded { reader, wire: count, limit: limits.decoded, decoded: 0, unknown, failure }
}

/// The codings in the order in which they were applied, and whether one of them is unknown.
fn codings(headers: &HeaderMap) -> (Vec<Coding>, bool) {
    let mut codings = Vec::new();
    let mut unknown = false;
    for value in headers.get_all(header::CONTENT_ENCODING) {
        for name in value.as_bytes().split(|byte| *byte == b',') {
            match name.trim_ascii() {
                b"" => {}
                name if name.eq_ignore_ascii_case(b"identity") => {}
                name => match Coding::named(name) {
                    Some(coding) => codings.push(coding),
                    None => unknown = true,
                },
            }
        }
    }
    (codings, unknown)
}

/// Whether the fields name a coding that is unknown here, so that a body stays as it came.
pub(super) fn names_unknown_coding(headers: &HeaderMap) -> bool {
    codings(headers).1
}

/// The body as it is decoded; made by [`decode()`].
pub struct Decoded {
    reader: Box<dyn Read + Send>,
    wire: WireBytes,
    limit: Option<u64>,
    decoded: u64,
    unknown: bool,
    /// Once failed, it fails: a second read must not look like the end of the body.
    failure: Option<(ErrorKind, String)>,
}

impl Decoded {
    /// How many bytes have come off the wire so far.
    pub fn wire_bytes(&self) -> u64 {
        self.wire.get()
    }

    /// A handle on [`wire_bytes`](Self::wire_bytes) that outlives a move of the reader.
    pub fn wire(&self) -> WireBytes {
        self.wire.clone()
    }

    /// Whether the bytes are coded, as they came: a coding is unknown, or none was to be undone.
    pub fn is_undecoded(&self) -> bool {
        self.unknown
    }

    fn error(&self, kind: ErrorKind, text: &str) -> io::Error {
        Error::new(kind, Phase::Body, Fault::Target, text)
            .with_received_bytes(self.wire_bytes())
            .into_io()
    }
}

impl Read for Decoded {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        if let Some((kind, text)) = &self.failure {
            return Err(self.error(*kind, text));
        }
        // One byte more than allowed tells "exactly at the ceiling" from "beyond it".
        let room = self.limit.map_or(u64::MAX, |limit| (limit - self.decoded).saturating_add(1));
        let room = usize::try_from(room).unwrap_or(usize::MAX).min(buf.len());
        let result = self.reader.read(buf.get_mut(..room).unwrap_or_default());
        match (result, self.limit) {
            (Ok(count), Some(limit)) if count as u64 > limit - self.decoded => {
                let text = format!(
                    "the body is longer than the ceiling of {limit} decoded bytes ({} bytes had \
                     come off the wire)",
                    self.wire_bytes()
                );
                self.failure = Some((ErrorKind::TooLarge, text.clone()));
                Err(self.error(ErrorKind::TooLarge, &text))
            }
            (Ok(count), _) => {
                self.decoded += count as u64;
                Ok(count)
            }
            (Err(error), _) => {
                let mut error = Error::from_io(error, Phase::Body, Fault::Target);
                if error.received_bytes().is_none() {
                    error = error.with_received_bytes(self.wire_bytes());
                }
                self.failure = Some((error.kind(), error.message().to_owned()));
                Err(error.into_io())
            }
        }
    }
}

impl fmt::Debug for Decoded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Decoded")
            .field("wire_bytes", &self.wire_bytes())
            .field("decoded_bytes", &self.decoded)
            .finish_non_exhaustive()
    }
}

/// A shared count of the bytes that came off the wire.
#[derive(Debug, Clone, Default)]
pub struct WireBytes(Arc<AtomicU64>);

impl WireBytes {
    /// How many so far.
    pub fn get(&self) -> u64 {
        // A count that orders nothing.
        self.0.load(Ordering::Relaxed)
    }

    fn add(&self, count: u64) {
        self.0.fetch_add(count, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests;
