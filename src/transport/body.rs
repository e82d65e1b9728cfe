//! The raw body of a response.
//!
//! It gives the bytes as they were framed, not decoded, and it never lets a failure pass for an
//! end: ureq's reader answers "end" to whoever asks again after an error, so the error is kept
//! here and told each time.

use super::engine::shown;
use super::head::{Framing, Head};
use super::map_error;
use crate::error::{Error, ErrorKind, Fault, Phase};
use crate::proxy::Route;
use std::fmt;
use std::io::{self, Read};
use std::sync::Arc;
use url::Url;

pub(super) struct BodyReader {
    /// Gone once the end or a failure was met; with it goes the connection.
    inner: Option<ureq::BodyReader<'static>>,
    /// The length, where it was announced.
    length: Option<u64>,
    received: u64,
    failure: Option<Failure>,
    url: Url,
    proxy: Option<Arc<str>>,
}

/// What is needed to tell of an error again.
struct Failure {
    kind: ErrorKind,
    phase: Phase,
    fault: Fault,
    message: String,
}

impl BodyReader {
    pub(super) fn new(
        inner: ureq::BodyReader<'static>,
        head: &Head,
        url: &Url,
        route: &Route,
    ) -> Self {
        let length = match head.framing {
            Framing::None => Some(0),
            Framing::Length(length) => Some(length),
            Framing::Chunked | Framing::Close => None,
        };
        let mut body = Self {
            inner: Some(inner),
            length,
            received: 0,
            failure: None,
            url: url.clone(),
            proxy: route.shown.clone(),
        };
        body.release();
        body
    }

    /// Lets the connection go as soon as the last byte is there, not at the read after it.
    fn release(&mut self) {
        if self.length == Some(self.received)
            && let Some(mut inner) = self.inner.take()
        {
            // ureq gives a connection back when it is asked for more than there is. No byte can
            // come of it, and none is waited for.
            let _ = inner.read(&mut [0]);
        }
    }

    fn fail(&mut self, error: Error) -> io::Error {
        self.inner = None;
        self.failure = Some(Failure {
            kind: error.kind(),
            phase: error.phase(),
            fault: error.fault(),
            message: error.message().to_owned(),
        });
        self.decorated(error)
    }

    fn decorated(&self, error: Error) -> io::Error {
        error
            .with_received_bytes(self.received)
            .with_url(shown(&self.url))
            .with_proxy(self.proxy.as_deref())
            .into_io()
    }
}

impl Read for BodyReader {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        if let Some(Failure { kind, phase, fault, message }) = &self.failure {
            return Err(self.decorated(Error::new(*kind, *phase, *fault, message.clone())));
        }
        let Some(inner) = &mut self.inner else { return Ok(0) };
        if buf.is_empty() {
            return Ok(0);
        }
        match inner.read(buf) {
            Ok(0) => {
                self.inner = None;
                Ok(0)
            }
            Ok(amount) => {
                self.received += amount as u64;
                self.release();
                Ok(amount)
            }
            Err(error) => {
                let error = map_error::from_body(error);
                Err(self.fail(error))
            }
        }
    }
}

impl fmt::Debug for BodyReader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "BodyReader({} of {:?} bytes)", self.received, self.length)
    }
}
