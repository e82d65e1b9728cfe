//! What the fuzz targets reach of the wire. Compiled under `--cfg fuzzing` alone: the parsers are
//! no part of the public interface.
//!
//! Each function takes hostile bytes in pieces and panics where a promise of the parser is broken.

#![allow(clippy::panic, clippy::missing_panics_doc, reason = "a broken promise has to stop a run")]

use super::dechunk::Dechunk;
use super::head::{self, Scan, Scanner};

/// Looks for a response head in bytes that arrive in pieces of `piece`, and parses it.
///
/// Promises: the pieces change nothing, and what the engine is shown is a head that a strict
/// parser takes, with the same status.
pub fn response_head(bytes: &[u8], piece: usize, bodyless: bool) {
    let whole = scan(bytes, bytes.len());
    assert_eq!(scan(bytes, piece), whole, "the pieces changed where the head ends");
    let Some((start, length, lines)) = whole else { return };
    let found = bytes.get(start..start + length).unwrap_or_default();
    let Ok(head) = head::parse(found, lines, bodyless) else { return };
    let mut shown = Vec::new();
    head.write_for_engine(&mut shown);
    let mut fields = [httparse::EMPTY_HEADER; 4];
    let mut strict = httparse::Response::new(&mut fields);
    let parsed = strict.parse(&shown);
    assert_eq!(parsed, Ok(httparse::Status::Complete(shown.len())), "the engine's head");
    assert_eq!(strict.code, Some(head.status), "the engine's status");
}

/// Where the head begins, how long it is and how many lines it has.
fn scan(bytes: &[u8], piece: usize) -> Option<(usize, usize, usize)> {
    let mut scanner = Scanner::default();
    let (mut start, mut seen) = (0, 0);
    loop {
        match scanner.scan(bytes.get(start..seen).unwrap_or_default()) {
            Scan::Skip(blank) => start += blank,
            Scan::Complete(length) => return Some((start, length, scanner.lines())),
            Scan::NotHttp => return None,
            Scan::Partial if seen == bytes.len() => return None,
            Scan::Partial => seen = (seen + piece.max(1)).min(bytes.len()),
        }
    }
}

/// Puts a chunked body in order that arrives in pieces of `piece`: what is left of it, and why it
/// is malformed where it is.
///
/// Promise: the pieces change nothing.
pub fn chunked_body(bytes: &[u8], piece: usize) -> (Vec<u8>, Option<String>) {
    let whole = tidy(bytes, bytes.len());
    assert_eq!(tidy(bytes, piece), whole, "the pieces changed the body");
    whole
}

fn tidy(bytes: &[u8], piece: usize) -> (Vec<u8>, Option<String>) {
    let mut filter = Dechunk::default();
    let mut out = Vec::new();
    for piece in bytes.chunks(piece.max(1)) {
        let mut piece = piece.to_vec();
        let kept = filter.tidy(&mut piece);
        piece.truncate(kept);
        out.append(&mut piece);
    }
    (out, filter.failure().map(str::to_owned))
}
