//! What an attempt carried over its connection, byte for byte.
//!
//! A response tells what a message meant: decoded, its fields in a map, its framing gone. An archive
//! is made of what was said, so the bytes of both heads and bodies are kept beside it where the
//! recipe asks for it ([`SessionBuilder::keep_wire`](crate::SessionBuilder::keep_wire)): with the
//! chunks and the content coding that they came in. They are kept in memory, by the attempt that they
//! belong to, and grow while the body is read; what is never read is never kept.
//!
//! What speaks to a proxy alone (CONNECT, SOCKS, the proxy's credentials and fields) is not part of
//! the exchange. The request's own credentials are: whoever writes it down decides what becomes of
//! them. Neither prints.

use std::any::Any;
use std::fmt;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::SystemTime;

/// A request and the response to it, as they went over one connection.
pub struct Exchange {
    at: SystemTime,
    url: String,
    address: Option<IpAddr>,
    request: Message,
    response: Mutex<Receiving>,
    /// What whoever keeps exchanges has made of it.
    note: OnceLock<Box<dyn Any + Send + Sync>>,
}

/// One message: its head and as much of its body as was kept.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct Message {
    bytes: Vec<u8>,
    head: usize,
    chunked: bool,
    truncated: Option<Truncated>,
}

/// Why a message is not whole.
#[non_exhaustive]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Truncated {
    /// It is longer than what is kept, or than what may be read.
    Length,
    /// A timeout or the deadline ended it.
    Time,
    /// The connection broke.
    Disconnect,
    /// Nobody read on, or it was malformed.
    Unspecified,
}

impl Truncated {
    /// Its name in a WARC file.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Length => "length",
            Self::Time => "time",
            Self::Disconnect => "disconnect",
            Self::Unspecified => "unspecified",
        }
    }
}

impl Message {
    /// A whole message of this head, its empty line included, and this body, its framing included;
    /// `chunked` tells whether the body consists of chunks.
    pub fn new(head: &[u8], body: &[u8], chunked: bool) -> Self {
        Self { bytes: [head, body].concat(), head: head.len(), chunked, truncated: None }
    }

    /// The same, of which the end is missing.
    #[must_use]
    pub fn cut_short(mut self, why: Truncated) -> Self {
        self.truncated = Some(why);
        self
    }

    /// Head and body.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The head with its empty line.
    pub fn head(&self) -> &[u8] {
        self.bytes.get(..self.head).unwrap_or_default()
    }

    /// The body as it was framed and coded.
    pub fn body(&self) -> &[u8] {
        self.bytes.get(self.head..).unwrap_or_default()
    }

    /// Whether the body consists of chunks.
    pub fn is_chunked(&self) -> bool {
        self.chunked
    }

    /// Why its end is missing; `None` for a whole message.
    pub fn truncated(&self) -> Option<Truncated> {
        self.truncated
    }
}

impl fmt::Debug for Message {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Message({} + {} bytes", self.head, self.body().len())?;
        match self.truncated {
            Some(why) => write!(f, ", cut short: {})", why.name()),
            None => f.write_str(")"),
        }
    }
}

/// How far a response has come.
#[derive(Debug, PartialEq, Eq)]
struct Receiving {
    /// Shared with whoever looks at it, so that nobody holds the lock for long.
    message: Arc<Message>,
    /// How many bytes of the body are still to come, where that is known.
    left: Option<u64>,
    /// How many bytes of the body may still be kept.
    room: u64,
    /// Whether its end was seen.
    ended: bool,
}

impl Exchange {
    /// A request that left at this time for this URL, which is without credentials and fragment, and
    /// of whose response nothing has come; of its body at most `most` bytes are kept.
    ///
    /// `address` is that of the server; `None` where a proxy spoke to it.
    pub fn new(
        at: SystemTime,
        url: impl Into<String>,
        address: Option<IpAddr>,
        request: Message,
        most: u64,
    ) -> Self {
        let message = Message::default().cut_short(Truncated::Unspecified);
        let response =
            Receiving { message: Arc::new(message), left: None, room: most, ended: false };
        Self {
            at,
            url: url.into(),
            address,
            request,
            response: Mutex::new(response),
            note: OnceLock::new(),
        }
    }

    /// When the attempt began.
    pub fn at(&self) -> SystemTime {
        self.at
    }

    /// The URL that was asked for, without credentials and fragment.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// The address of the server; `None` where a proxy spoke to it.
    pub fn address(&self) -> Option<IpAddr> {
        self.address
    }

    /// The request as it was sent, **with the credentials in it**, but without what was for a proxy
    /// alone. What a proxy fetches has its URL in absolute form.
    pub fn request(&self) -> &Message {
        &self.request
    }

    /// The response as far as it has come; empty before its head has. Interim responses are left out.
    /// What comes later is in later answers.
    pub fn response(&self) -> Arc<Message> {
        Arc::clone(&self.lock().message)
    }

    /// Begins the response with its head. `length` is that of the body, where it is known.
    pub fn begin_response(&self, head: &[u8], length: Option<u64>, chunked: bool) {
        let mut response = self.lock();
        let message = Message::new(head, &[], chunked).cut_short(Truncated::Unspecified);
        response.message = Arc::new(message);
        response.left = length;
        if length == Some(0) {
            response.end();
        }
    }

    /// Adds bytes of the body, with their framing. What is beyond its length does not belong to it.
    pub fn receive(&self, bytes: &[u8]) {
        let mut response = self.lock();
        if response.ended {
            return;
        }
        let length = bytes.len() as u64;
        let belongs = response.left.map_or(length, |left| left.min(length));
        let kept = belongs.min(response.room);
        // No more than there are, so it fits.
        let kept_bytes = bytes.get(..kept as usize).unwrap_or_default();
        let message = Arc::make_mut(&mut response.message);
        message.bytes.extend_from_slice(kept_bytes);
        if kept < belongs {
            message.truncated = Some(Truncated::Length);
        }
        response.room -= kept;
        if let Some(left) = &mut response.left {
            *left -= belongs;
            if *left == 0 {
                response.end();
            }
        }
    }

    /// Says that the response is complete, and that the last `beyond` bytes are none of it.
    pub fn end_response(&self, beyond: usize) {
        let mut response = self.lock();
        if response.ended {
            return;
        }
        if response.message.truncated != Some(Truncated::Length) {
            let message = Arc::make_mut(&mut response.message);
            let whole = message.bytes.len().saturating_sub(beyond);
            message.bytes.truncate(whole.max(message.head));
        }
        response.end();
    }

    /// Says why no more of the response comes; the first reason counts.
    pub fn cut_response(&self, why: Truncated) {
        let mut response = self.lock();
        if !response.ended {
            response.ended = true;
            if response.message.truncated == Some(Truncated::Unspecified) {
                Arc::make_mut(&mut response.message).truncated = Some(why);
            }
        }
    }

    /// Leaves something for whoever looks at it later; the first counts.
    pub(crate) fn note(&self, note: impl Any + Send + Sync) {
        let _ = self.note.set(Box::new(note));
    }

    /// What was left.
    pub(crate) fn noted<T: Any>(&self) -> Option<&T> {
        self.note.get()?.downcast_ref()
    }

    fn lock(&self) -> MutexGuard<'_, Receiving> {
        self.response.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Receiving {
    fn end(&mut self) {
        self.ended = true;
        if self.message.truncated == Some(Truncated::Unspecified) {
            Arc::make_mut(&mut self.message).truncated = None;
        }
    }
}

impl PartialEq for Exchange {
    fn eq(&self, other: &Self) -> bool {
        std::ptr::eq(self, other)
            || (self.at, &self.url, self.address) == (other.at, &other.url, other.address)
                && self.request == other.request
                && self.response() == other.response()
    }
}

impl fmt::Debug for Exchange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Exchange")
            .field("url", &self.url)
            .field("request", &self.request)
            .field("response", &self.response())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn exchange(most: u64) -> Exchange {
        let request = Message::new(b"GET / HTTP/1.1\r\nAuthorization: hunter2\r\n\r\n", b"", false);
        Exchange::new(SystemTime::UNIX_EPOCH, "http://a.test/", None, request, most)
    }

    #[test]
    fn a_response_ends_where_its_framing_says() {
        let known = exchange(u64::MAX);
        known.begin_response(b"H\r\n\r\n", Some(5), false);
        known.receive(b"abc");
        assert_eq!(known.response().truncated(), Some(Truncated::Unspecified));
        known.receive(b"defgh");
        known.receive(b"more");
        known.cut_response(Truncated::Time);
        assert_eq!(known.response().body(), b"abcde");
        assert_eq!(known.response().truncated(), None);

        let chunked = exchange(u64::MAX);
        chunked.begin_response(b"H\r\n\r\n", None, true);
        chunked.receive(b"0\r\n\r\nHTTP");
        chunked.end_response(4);
        assert_eq!(chunked.response().bytes(), b"H\r\n\r\n0\r\n\r\n");
        assert_eq!(chunked.response().truncated(), None);

        let none = exchange(u64::MAX);
        none.begin_response(b"H\r\n\r\n", Some(0), false);
        none.receive(b"x");
        assert_eq!((none.response().body(), none.response().truncated()), (&b""[..], None));
    }

    #[test]
    fn what_is_missing_has_a_reason_and_the_first_counts() {
        let cut = exchange(u64::MAX);
        cut.begin_response(b"H\r\n\r\n", None, false);
        cut.receive(b"abc");
        cut.cut_response(Truncated::Disconnect);
        cut.cut_response(Truncated::Time);
        cut.end_response(0);
        assert_eq!(cut.response().truncated(), Some(Truncated::Disconnect));

        let long = exchange(2);
        long.begin_response(b"H\r\n\r\n", None, false);
        long.receive(b"abc");
        long.receive(b"d");
        long.end_response(1);
        assert_eq!(long.response().body(), b"ab");
        assert_eq!(long.response().truncated(), Some(Truncated::Length));
    }

    #[test]
    fn nothing_secret_prints() {
        let text = format!("{:?}", exchange(9));
        assert!(text.contains("a.test") && !text.contains("hunter2"), "{text}");
    }
}
