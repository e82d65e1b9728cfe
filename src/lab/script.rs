//! What a server of the lab does on a connection, written down as a value.
//!
//! A behaviour is a list of steps rather than a closure over a socket: it can be named, kept in a
//! table, cloned for a thousand connections and printed when a test fails. A script that comes to
//! its end leaves the connection open for the next request; whatever shall end it says how.

use std::sync::Arc;
use std::time::Duration;

/// One thing that a server does on a connection.
#[non_exhaustive]
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// Writes these bytes at once.
    Send(Arc<[u8]>),
    /// Writes one byte, waits `every`, and so on: slow, yet never silent for long.
    Drip {
        /// What is written.
        bytes: Arc<[u8]>,
        /// The wait after each byte.
        every: Duration,
    },
    /// Writes the same bytes many times, with a wait after each: a flood or an endless page.
    Repeat {
        /// What is written each time.
        bytes: Arc<[u8]>,
        /// How often.
        times: usize,
        /// The wait after each write; zero floods.
        every: Duration,
    },
    /// Writes a well-formed response, without its body where the request was a HEAD.
    Reply(Reply),
    /// Says nothing for this long.
    Pause(Duration),
    /// Reads this many bytes at most, waits `every`, and so on until the body of the request has
    /// been read: the slow reader of an upload. Only where the handler ran before the body was
    /// read; elsewhere nothing is left to read and the step does nothing.
    Sip {
        /// How many bytes are read each time.
        bytes: usize,
        /// The wait after each read.
        every: Duration,
    },
    /// Waits until the peer has sent something, whatever it is, and drops it: the ClientHello of a
    /// peer that is about to meet no TLS, one message of a handshake, the beginning of an upload.
    Recv,
    /// Waits for the next request on this connection, which is counted and logged.
    Next,
    /// Ends the stream in order: close_notify under TLS, FIN, then reads what the peer still
    /// sends, so that no reset overtakes the reply.
    Fin,
    /// Closes the socket, with no close_notify under TLS. Where unread bytes wait, the kernel
    /// makes a reset of it, as for a server that answers an upload early and leaves.
    Close,
    /// Resets the connection.
    Rst,
    /// Keeps the connection and stays silent until the peer leaves or the server stops.
    Hold,
    /// Connects to the target and passes bytes both ways until both sides have ended. Proxies
    /// only; an origin closes the connection here.
    Tunnel,
}

/// A list of [`Step`]s.
///
/// Written as a chain, it fits a line:
///
/// ```
/// use longhaul::lab::Script;
/// use longhaul::secs;
///
/// let torn = Script::send("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nabc")
///     .pause(secs(0.05))
///     .rst();
/// assert_eq!(torn.steps().len(), 3);
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Script {
    steps: Vec<Step>,
}

impl Script {
    /// A script without a step: the request gets no answer, and the next one is read.
    pub fn new() -> Self {
        Self::default()
    }

    /// A script that begins with these bytes.
    pub fn send(bytes: impl AsRef<[u8]>) -> Self {
        Self::new().then_send(bytes)
    }

    /// Appends a step.
    pub fn then(mut self, step: Step) -> Self {
        self.steps.push(step);
        self
    }

    /// Appends [`Step::Send`].
    pub fn then_send(self, bytes: impl AsRef<[u8]>) -> Self {
        self.then(Step::Send(bytes.as_ref().into()))
    }

    /// Appends [`Step::Reply`].
    pub fn then_reply(self, reply: Reply) -> Self {
        self.then(Step::Reply(reply))
    }

    /// Appends [`Step::Drip`].
    pub fn drip(self, bytes: impl AsRef<[u8]>, every: Duration) -> Self {
        self.then(Step::Drip { bytes: bytes.as_ref().into(), every })
    }

    /// Appends [`Step::Repeat`].
    pub fn repeat(self, bytes: impl AsRef<[u8]>, times: usize, every: Duration) -> Self {
        self.then(Step::Repeat { bytes: bytes.as_ref().into(), times, every })
    }

    /// Appends [`Step::Pause`].
    pub fn pause(self, duration: Duration) -> Self {
        self.then(Step::Pause(duration))
    }

    /// Appends [`Step::Sip`].
    pub fn sip(self, bytes: usize, every: Duration) -> Self {
        self.then(Step::Sip { bytes, every })
    }

    /// Appends [`Step::Recv`].
    pub fn recv(self) -> Self {
        self.then(Step::Recv)
    }

    /// Appends [`Step::Next`]; not called `next`, so as not to look like an iterator's.
    pub fn next_request(self) -> Self {
        self.then(Step::Next)
    }

    /// Appends [`Step::Fin`].
    pub fn fin(self) -> Self {
        self.then(Step::Fin)
    }

    /// Appends [`Step::Close`].
    pub fn close(self) -> Self {
        self.then(Step::Close)
    }

    /// Appends [`Step::Rst`].
    pub fn rst(self) -> Self {
        self.then(Step::Rst)
    }

    /// Appends [`Step::Hold`].
    pub fn hold(self) -> Self {
        self.then(Step::Hold)
    }

    /// Appends [`Step::Tunnel`].
    pub fn tunnel(self) -> Self {
        self.then(Step::Tunnel)
    }

    /// The steps, in order.
    pub fn steps(&self) -> &[Step] {
        &self.steps
    }
}

impl From<Step> for Script {
    fn from(step: Step) -> Self {
        Self { steps: vec![step] }
    }
}

impl From<Vec<Step>> for Script {
    fn from(steps: Vec<Step>) -> Self {
        Self { steps }
    }
}

impl From<Reply> for Script {
    fn from(reply: Reply) -> Self {
        let close = reply.close;
        let script = Self::from(Step::Reply(reply));
        if close { script.fin() } else { script }
    }
}

/// Raw bytes, as they stand.
impl From<&str> for Script {
    fn from(bytes: &str) -> Self {
        Self::send(bytes)
    }
}

/// A well-formed response.
///
/// `Content-Length` is added unless the body is [chunked](Reply::chunked), the status allows no
/// body, or a header of that name was given: a length that lies is a matter of one line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reply {
    status: u16,
    reason: Option<String>,
    headers: Vec<(String, Vec<u8>)>,
    body: Arc<[u8]>,
    chunk: Option<usize>,
    close: bool,
}

impl Reply {
    /// A response of this status, with its usual reason and an empty body.
    pub fn new(status: u16) -> Self {
        Self {
            status,
            reason: None,
            headers: Vec::new(),
            body: Arc::from([]),
            chunk: None,
            close: false,
        }
    }

    /// 200 with this body.
    pub fn ok(body: impl AsRef<[u8]>) -> Self {
        Self::new(200).body(body)
    }

    /// A redirect of this status to `location`.
    pub fn redirect(status: u16, location: impl AsRef<[u8]>) -> Self {
        Self::new(status).header("Location", location)
    }

    /// Replaces the reason phrase.
    pub fn reason(mut self, reason: impl Into<String>) -> Self {
        self.reason = Some(reason.into());
        self
    }

    /// Appends a header; the value goes out byte for byte.
    pub fn header(mut self, name: impl Into<String>, value: impl AsRef<[u8]>) -> Self {
        self.headers.push((name.into(), value.as_ref().to_vec()));
        self
    }

    /// Replaces the body.
    pub fn body(mut self, body: impl AsRef<[u8]>) -> Self {
        self.body = body.as_ref().into();
        self
    }

    /// Replaces the body by one that is shared rather than copied.
    pub fn shared_body(mut self, body: Arc<[u8]>) -> Self {
        self.body = body;
        self
    }

    /// Sends the body in chunks of this many bytes (at least one) instead of with a length.
    pub fn chunked(mut self, size: usize) -> Self {
        self.chunk = Some(size.max(1));
        self
    }

    /// Adds `Connection: close`, and ends the connection after it.
    pub fn close(mut self) -> Self {
        self.close = true;
        self
    }

    /// The status.
    pub fn status(&self) -> u16 {
        self.status
    }

    /// The bytes on the wire; `head` leaves the body out, as the answer to a HEAD must.
    pub fn render(&self, head: bool) -> Vec<u8> {
        let reason = self.reason.as_deref().unwrap_or_else(|| {
            http::StatusCode::from_u16(self.status)
                .ok()
                .and_then(|status| status.canonical_reason())
                .unwrap_or("Unknown")
        });
        let bodiless = self.status < 200 || matches!(self.status, 204 | 304);
        let mut out = Vec::with_capacity(128 + self.body.len());
        out.extend_from_slice(format!("HTTP/1.1 {} {reason}\r\n", self.status).as_bytes());
        let mut framed = bodiless;
        for (name, value) in &self.headers {
            framed |= name.eq_ignore_ascii_case("content-length")
                || name.eq_ignore_ascii_case("transfer-encoding");
            out.extend_from_slice(name.as_bytes());
            out.extend_from_slice(b": ");
            out.extend_from_slice(value);
            out.extend_from_slice(b"\r\n");
        }
        if self.close {
            out.extend_from_slice(b"Connection: close\r\n");
        }
        match self.chunk {
            _ if framed => {}
            Some(_) => out.extend_from_slice(b"Transfer-Encoding: chunked\r\n"),
            None => {
                let length = format!("Content-Length: {}\r\n", self.body.len());
                out.extend_from_slice(length.as_bytes());
            }
        }
        out.extend_from_slice(b"\r\n");
        if head || bodiless {
            return out;
        }
        match self.chunk {
            None => out.extend_from_slice(&self.body),
            Some(size) => {
                for chunk in self.body.chunks(size) {
                    out.extend_from_slice(format!("{:x}\r\n", chunk.len()).as_bytes());
                    out.extend_from_slice(chunk);
                    out.extend_from_slice(b"\r\n");
                }
                out.extend_from_slice(b"0\r\n\r\n");
            }
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::secs;

    fn wire(reply: &Reply, head: bool) -> String {
        String::from_utf8(reply.render(head)).unwrap()
    }

    #[test]
    fn replies_on_the_wire() {
        for (reply, head, wanted) in [
            (Reply::ok("ok"), false, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"),
            (Reply::ok("ok"), true, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n"),
            (Reply::new(204), false, "HTTP/1.1 204 No Content\r\n\r\n"),
            (Reply::new(304).body("x"), false, "HTTP/1.1 304 Not Modified\r\n\r\n"),
            (
                Reply::ok("hello").chunked(3),
                false,
                "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n\
                 3\r\nhel\r\n2\r\nlo\r\n0\r\n\r\n",
            ),
            (
                Reply::new(429).reason("Slow").header("Retry-After", "2"),
                false,
                "HTTP/1.1 429 Slow\r\nRetry-After: 2\r\nContent-Length: 0\r\n\r\n",
            ),
            (
                Reply::ok("abc").header("content-length", "100"),
                false,
                "HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nabc",
            ),
            (
                Reply::new(999).close(),
                false,
                "HTTP/1.1 999 Unknown\r\nConnection: close\r\nContent-Length: 0\r\n\r\n",
            ),
        ] {
            assert_eq!(wire(&reply, head), wanted);
        }
    }

    #[test]
    fn a_closing_reply_ends_the_connection_and_others_do_not() {
        assert_eq!(Script::from(Reply::ok("a")).steps().len(), 1);
        let closing = Script::from(Reply::ok("a").close());
        assert_eq!(closing.steps().last(), Some(&Step::Fin));
        let chain = Script::send("x").pause(secs(1.0)).next_request().hold();
        assert_eq!(
            chain.steps(),
            [Step::Send(b"x"[..].into()), Step::Pause(secs(1.0)), Step::Next, Step::Hold]
        );
    }
}
