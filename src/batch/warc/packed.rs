//! A response, compressed and digested where it was received.
//!
//! Records are written on one thread, and compressing a page takes longer than fetching it may: on that
//! thread a few hundred pages a second would be the most. So the worker that received an answer does
//! the work, and leaves the result with the exchange. What is a copy of another answer is not
//! compressed at all. An exchange without such a result (one that failed, the hop of a redirect) is
//! packed when it is written.

use super::group::Seen;
use super::members::Part;
use super::payload::{Digest, payload};
use crate::error::{Exchange, Message};
use std::io;

/// What is to be known of a response before its record is put together.
pub(super) struct Packed {
    /// Of the payload; `None` where it is empty or not whole.
    pub(super) payload: Option<Digest>,
    /// Of head and body.
    pub(super) block: Digest,
    /// Head and body; `None` where the payload was seen before.
    pub(super) part: Option<Part>,
}

impl Packed {
    pub(super) fn of(response: &Message, seen: &Seen) -> io::Result<Self> {
        let payload = payload(response)
            .filter(|payload| !payload.is_empty())
            .map(|payload| Digest::of(&[&payload]));
        let block = Digest::of(&[response.bytes()]);
        let part = match payload {
            Some(digest) if seen.contains(digest) => None,
            _ => Some(Part::of(&[response.bytes()])?),
        };
        Ok(Self { payload, block, part })
    }

    /// Leaves it with the exchange.
    pub(super) fn leave(exchange: &Exchange, seen: &Seen) {
        // A failure shows when the record is written.
        if let Ok(packed) = Self::of(&exchange.response(), seen) {
            exchange.note(packed);
        }
    }
}
