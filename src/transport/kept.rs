//! The request of an exchange that is kept.
//!
//! A body that is read while it is sent exists nowhere else, so it is kept piece by piece as it goes
//! out, in its chunks where it has any. What a server that answered early did not take is cut off
//! again: the exchange holds what was sent.

use super::engine::shown;
use super::request_head::write_kept_head;
use super::stream::Written;
use super::{Outgoing, OutgoingBody};
use crate::error::{Error, Exchange, Message, Truncated};
use std::net::IpAddr;
use std::sync::Arc;
use std::time::SystemTime;

/// A request on its way out.
pub(super) struct Request {
    at: SystemTime,
    url: String,
    head: Vec<u8>,
    body: Vec<u8>,
    chunked: bool,
    /// Of each body at most so much.
    most: u64,
    /// How long the body is, as far as it was handed over.
    length: u64,
}

impl Request {
    /// Before it is sent, in the form that it has for a proxy that fetches, or for the target.
    pub(super) fn new(
        outgoing: &Outgoing<'_>,
        forwarded: bool,
        at: SystemTime,
        most: u64,
    ) -> Result<Self, Error> {
        let mut head = Vec::new();
        write_kept_head(&mut head, outgoing, forwarded)?;
        let mut request = Self {
            at,
            url: shown(outgoing.url),
            head,
            body: Vec::new(),
            chunked: matches!(outgoing.body, OutgoingBody::Reader(_, None)),
            most,
            length: 0,
        };
        if let OutgoingBody::Bytes(bytes) = outgoing.body {
            request.add(bytes);
        }
        Ok(request)
    }

    /// Adds a piece of the body as it is about to be sent.
    pub(super) fn add(&mut self, piece: &[u8]) {
        self.length += piece.len() as u64;
        let room = usize::try_from(self.most).unwrap_or(usize::MAX).saturating_sub(self.body.len());
        self.body.extend_from_slice(piece.get(..room).unwrap_or(piece));
    }

    /// The exchange that begins with it, once so many bytes of its body were sent.
    pub(super) fn sent(
        mut self,
        written: Written,
        body: u64,
        address: Option<IpAddr>,
    ) -> Arc<Exchange> {
        let is_long = self.length > self.most;
        self.body.truncate(usize::try_from(body).unwrap_or(usize::MAX));
        let mut message = Message::new(&self.head, &self.body, self.chunked);
        if written == Written::Answered {
            message = message.cut_short(Truncated::Unspecified);
        } else if is_long {
            message = message.cut_short(Truncated::Length);
        }
        Arc::new(Exchange::new(self.at, self.url, address, message, self.most))
    }
}
