//! A response.
//!
//! By default its body was read and decoded before anybody saw it, so a failure of the body was
//! retried like any other, and what is left to do cannot fail for the network's sake. In `stream`
//! mode the body is still to come: [`text`](Response::text), [`json`](Response::json) and
//! [`bytes`](Response::bytes) read it once and keep it, as requests' `content`;
//! [`into_reader`](Response::into_reader), [`chunks`](Response::chunks) and
//! [`lines`](Response::lines) hand it on without keeping it.

use super::decode::names_unknown_coding;
use super::encoding::{apparent_encoding, decode_text, encoding_of};
use super::links::{Link, parse_links};
use super::prepare::Prepared;
use super::read::{BodyReader, Chunks, Lines, Spent, Split, save, unwritten};
use super::redirect::is_redirect;
use super::validators::Validators;
use crate::error::{Attempt, Error, ErrorKind, Fault, Phase};
use crate::proxy::Identity;
use bytes::Bytes;
use http::{HeaderMap, Method, header};
use serde::de::DeserializeOwned;
use std::fmt;
use std::io::{self, Read, Write};
use std::net::SocketAddr;
use std::path::Path;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;
use url::Url;

/// How long each phase of the last attempt took; `None` where a phase did not happen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Timings {
    /// Lookup of the name that was dialled.
    pub dns: Option<Duration>,
    /// TCP.
    pub connect: Option<Duration>,
    /// CONNECT or SOCKS.
    pub proxy: Option<Duration>,
    /// TLS.
    pub tls: Option<Duration>,
    /// From the start of the attempt to the response head.
    pub first_byte: Option<Duration>,
    /// The whole attempt, body included.
    pub total: Duration,
}

/// The connection that carried the response.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct ConnectionFacts {
    /// Whether it was a kept-alive one.
    pub reused: bool,
    /// Own address.
    pub local: Option<SocketAddr>,
    /// The peer: the target, or the proxy.
    pub peer: Option<SocketAddr>,
    /// Direct or the proxy's; `None` for a scripted transport.
    pub identity: Option<Identity>,
    /// TLS version and cipher suite, where there is TLS.
    pub tls: Option<String>,
    /// Bytes of the request on this connection, head and body, before TLS.
    pub sent_bytes: u64,
    /// Bytes of the response on this connection, after TLS: heads, interim ones included, body
    /// and its framing, not decoded. In a streamed response what had come by its head.
    pub received_bytes: u64,
}

/// What a flight makes a response of.
pub struct ResponseParts {
    /// The method of the last hop.
    pub method: Method,
    /// The final URL, with its fragment.
    pub url: Url,
    /// The status.
    pub status: u16,
    /// The reason phrase as it came.
    pub reason: String,
    /// Fields, in order per name.
    pub headers: HeaderMap,
    /// The body: read already, or to be read.
    pub body: ResponseBody,
    /// Body bytes that came off the wire.
    pub wire_bytes: u64,
    /// Every hop before this one.
    pub history: Vec<Response>,
    /// Every attempt.
    pub attempts: Vec<Attempt>,
    /// From the first attempt to the end, waits included.
    pub elapsed: Duration,
    /// Phases of the last attempt.
    pub timings: Timings,
    /// The connection of the last attempt.
    pub connection: ConnectionFacts,
    /// The proxy of the last attempt, redacted.
    pub proxy: Option<Arc<str>>,
}

/// A body that is there, or still to come.
#[non_exhaustive]
pub enum ResponseBody {
    /// Read and decoded.
    Bytes(Bytes),
    /// Decoded while it is read.
    Reader(Mutex<Box<dyn Read + Send>>),
}

/// The answer to a request.
pub struct Response {
    kept: Box<Kept>,
    /// A streamed body, once it was read as a whole.
    read: OnceLock<Bytes>,
}

/// The parts, and what only a flight knows.
struct Kept {
    parts: ResponseParts,
    request: Option<Prepared>,
    next: Option<Box<Prepared>>,
}

impl Response {
    /// Puts a response together.
    pub fn from_parts(parts: ResponseParts) -> Self {
        Self { kept: Box::new(Kept { parts, request: None, next: None }), read: OnceLock::new() }
    }

    /// Takes it apart; a streamed body that was read is there as bytes.
    pub fn into_parts(self) -> ResponseParts {
        let mut parts = self.kept.parts;
        if let Some(bytes) = self.read.into_inner() {
            parts.body = ResponseBody::Bytes(bytes);
        }
        parts
    }

    /// The status code.
    pub fn status(&self) -> u16 {
        self.kept.parts.status
    }

    /// The reason phrase as it came; may be empty.
    pub fn reason(&self) -> &str {
        &self.kept.parts.reason
    }

    /// Whether the status is below 400, as requests' `ok`: a redirect that was not followed is
    /// ok too.
    pub fn ok(&self) -> bool {
        self.kept.parts.status < 400
    }

    /// Whether it asks for another URL: 301, 302, 303, 307 or 308 with a Location.
    pub fn is_redirect(&self) -> bool {
        is_redirect(self.kept.parts.status, &self.kept.parts.headers)
    }

    /// Whether it is one of the permanent redirects: 301 or 308 with a Location.
    pub fn is_permanent_redirect(&self) -> bool {
        self.is_redirect() && matches!(self.kept.parts.status, 301 | 308)
    }

    /// The fields.
    pub fn headers(&self) -> &HeaderMap {
        &self.kept.parts.headers
    }

    /// The value of a field as text; several lines of it joined by commas, as in requests.
    ///
    /// A byte beyond ASCII is the character of the same number (latin-1), so that no value is lost
    /// for its bytes. [`headers`](Self::headers) has each line by itself, which matters for
    /// `Set-Cookie`, and the bytes.
    ///
    /// # Examples
    /// ```
    /// # use longhaul::Session;
    /// # use longhaul::time::SimClock;
    /// # use longhaul::transport::{Play, Script};
    /// # let play = Play::status(200).header("Via", "1.1 a").header("Via", "1.1 b");
    /// # let script = Script::new(std::sync::Arc::new(SimClock::default()), [play]);
    /// # let session = Session::builder().transport(move || script.clone()).build()?;
    /// let response = session.get("https://example.com/").send()?;
    /// assert_eq!(response.header("via").as_deref(), Some("1.1 a, 1.1 b"));
    /// # Ok::<(), longhaul::Error>(())
    /// ```
    pub fn header(&self, name: &str) -> Option<String> {
        let mut lines = self.kept.parts.headers.get_all(name).iter();
        let text = |value: &header::HeaderValue| -> String {
            value.as_bytes().iter().map(|byte| char::from(*byte)).collect()
        };
        let mut joined = text(lines.next()?);
        for line in lines {
            joined.push_str(", ");
            joined.push_str(&text(line));
        }
        Some(joined)
    }

    /// Whether the body is as it came because `Content-Encoding` names a coding that is unknown
    /// here, or whose feature is off.
    pub fn is_undecoded(&self) -> bool {
        names_unknown_coding(&self.kept.parts.headers)
    }

    /// The value of `Content-Type` as it came.
    pub fn content_type(&self) -> Option<&str> {
        self.kept.parts.headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok())
    }

    /// Its validators, for [`if_changed`](crate::RequestBuilder::if_changed) of a later request.
    pub fn validators(&self) -> Validators {
        Validators::of(&self.kept.parts.headers)
    }

    /// Whether it says that nothing has changed (304). Its body is empty, and [`ok`](Self::ok) is
    /// true, as in requests.
    pub fn not_modified(&self) -> bool {
        self.kept.parts.status == 304
    }

    /// The names of the cookies that it sets, in order, without their values.
    pub fn set_cookie_names(&self) -> impl Iterator<Item = String> {
        self.kept.parts.headers.get_all(header::SET_COOKIE).iter().map(|value| {
            let pair = value.as_bytes().split(|byte| *byte == b';').next().unwrap_or_default();
            let name = pair.split(|byte| *byte == b'=').next().unwrap_or_default();
            String::from_utf8_lossy(name.trim_ascii()).into_owned()
        })
    }

    /// The links of its `Link` fields (RFC 8288), parsed as requests does.
    pub fn links(&self) -> Vec<Link> {
        let values = self.kept.parts.headers.get_all(header::LINK).iter();
        values.flat_map(|value| parse_links(&String::from_utf8_lossy(value.as_bytes()))).collect()
    }

    /// The target of the first link with this relation, made absolute: `link("next")`.
    pub fn link(&self, rel: &str) -> Option<Url> {
        let links = self.links();
        let link = links.iter().find(|link| link.has_rel(rel))?;
        self.kept.parts.url.join(&link.url).ok()
    }

    /// The final URL.
    pub fn url(&self) -> &Url {
        &self.kept.parts.url
    }

    /// The method of the last hop.
    pub fn method(&self) -> &Method {
        &self.kept.parts.method
    }

    /// The request that it answers, as it was sent: with the cookies of its attempt and what hooks
    /// made of it. `None` for a response that no session received.
    pub fn request(&self) -> Option<&Prepared> {
        self.kept.request.as_ref()
    }

    /// The request that a redirect asks for and nobody followed, for
    /// [`Session::send_prepared`](crate::Session::send_prepared); requests' `next`.
    ///
    /// `None` where redirects are followed, and where it is none.
    pub fn next(&self) -> Option<&Prepared> {
        self.kept.next.as_deref()
    }

    /// Every hop before this one.
    pub fn history(&self) -> &[Response] {
        &self.kept.parts.history
    }

    /// Every attempt that was made, oldest first.
    pub fn attempts(&self) -> &[Attempt] {
        &self.kept.parts.attempts
    }

    pub(crate) fn last_attempt_mut(&mut self) -> Option<&mut Attempt> {
        self.kept.parts.attempts.last_mut()
    }

    /// The proxy of the last attempt, without credentials.
    pub fn proxy(&self) -> Option<&str> {
        self.kept.parts.proxy.as_deref()
    }

    /// Phases of the last attempt.
    pub fn timings(&self) -> Timings {
        self.kept.parts.timings
    }

    /// From the first attempt to the end, waits included.
    pub fn elapsed(&self) -> Duration {
        self.kept.parts.elapsed
    }

    /// The connection of the last attempt.
    pub fn connection(&self) -> &ConnectionFacts {
        &self.kept.parts.connection
    }

    /// Body bytes that came off the wire; for a streamed body those that had come with the head.
    pub fn wire_bytes(&self) -> u64 {
        self.kept.parts.wire_bytes
    }

    /// The body as far as it is in memory; empty where it is streamed and was not read.
    pub fn body(&self) -> &[u8] {
        match &self.kept.parts.body {
            ResponseBody::Bytes(bytes) => bytes,
            ResponseBody::Reader(_) => self.read.get().map_or(&[], |bytes| bytes),
        }
    }

    /// The whole body; reads it where it is streamed, and keeps it (requests' `content`).
    ///
    /// # Errors
    /// Those of reading the body: `ReadTimeout`, `IncompleteBody`, `ContentDecoding`, `TooLarge` …
    /// with phase `Body`; `Io` for a streamed body that [`copy_to`](Self::copy_to) handed on.
    pub fn bytes(&self) -> Result<Bytes, Error> {
        let reader = match &self.kept.parts.body {
            ResponseBody::Bytes(bytes) => return Ok(bytes.clone()),
            ResponseBody::Reader(reader) => reader,
        };
        let mut reader = reader.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(bytes) = self.read.get() {
            return Ok(bytes.clone());
        }
        let mut body = Vec::new();
        let mut taken = std::mem::replace(&mut *reader, Box::new(Spent));
        if let Err(error) = taken.read_to_end(&mut body) {
            // It answers the next reading, too.
            *reader = taken;
            return Err(self.body_error(error));
        }
        Ok(self.read.get_or_init(|| body.into()).clone())
    }

    /// The label of the charset by the fields (requests' `encoding`); `None` where detection has
    /// to decide.
    pub fn encoding(&self) -> Option<String> {
        encoding_of(self.content_type_bytes())
    }

    /// The charset that the bytes themselves suggest (requests' `apparent_encoding`).
    ///
    /// # Errors
    /// Those of [`bytes`](Self::bytes).
    pub fn apparent_encoding(&self) -> Result<&'static str, Error> {
        Ok(apparent_encoding(&self.bytes()?))
    }

    /// The text by the charset rules; reads the body where it is streamed.
    ///
    /// # Errors
    /// Those of reading the body; never for a charset.
    pub fn text(&self) -> Result<String, Error> {
        Ok(decode_text(&self.bytes()?, self.content_type_bytes()))
    }

    /// The body as JSON: UTF-8, else UTF-16 or UTF-32 where its first bytes say so, else by the
    /// charset of the fields.
    ///
    /// # Errors
    /// `InvalidJson` where it is none or does not fit `T`; those of [`bytes`](Self::bytes).
    pub fn json<T: DeserializeOwned>(&self) -> Result<T, Error> {
        let bytes = self.bytes()?;
        let result = match super::encoding::json_text(&bytes, self.content_type_bytes()) {
            None => serde_json::from_slice(&bytes),
            Some(text) => serde_json::from_str(&text),
        };
        result.map_err(|error| {
            let text = format!("the body is not the JSON it should be: {error}");
            Error::new(ErrorKind::InvalidJson, Phase::Body, Fault::Target, text)
                .with_url(self.shown_url())
                .with_source(error)
        })
    }

    /// The body as a reader; a streamed one is not kept in memory.
    ///
    /// Errors of the reader carry an [`Error`] that [`std::io::Error::downcast`] takes out.
    pub fn into_reader(self) -> BodyReader {
        BodyReader::new(self.into_parts().body)
    }

    /// The body in pieces of `size` bytes, the last one shorter (requests' `iter_content`). A piece
    /// is given once it is full; [`into_reader`](Self::into_reader) gives bytes as they come.
    pub fn chunks(self, size: usize) -> Chunks {
        Chunks::new(self.into_reader(), size)
    }

    /// The body line by line, without line ends (LF, CR LF or CR), as text of the charset that the
    /// fields name, else UTF-8 (requests' `iter_lines` with `decode_unicode`).
    pub fn lines(self) -> Lines {
        let label = self.encoding();
        Lines::new(self.into_reader(), label.as_deref())
    }

    /// The body in pieces that end with `delimiter`, given without it (requests' `iter_lines` with a
    /// delimiter). Behind the last one there is a piece only if it is not empty; an empty delimiter
    /// never occurs.
    pub fn split(self, delimiter: impl Into<Vec<u8>>) -> Split {
        Split::new(self.into_reader(), delimiter.into())
    }

    /// Writes the body to `writer` and says how many bytes it was.
    ///
    /// A streamed body that was not read yet is written as it comes and not kept: it can be had
    /// once.
    ///
    /// # Errors
    /// Those of [`bytes`](Self::bytes), and `Io` with fault `Local` where `writer` fails.
    pub fn copy_to(&self, writer: &mut (impl Write + ?Sized)) -> Result<u64, Error> {
        self.copy(writer, |error| {
            let text = format!("the body cannot be written: {error}");
            Error::new(ErrorKind::Io, Phase::Body, Fault::Local, text).with_source(error)
        })
    }

    /// Copies the body; `local` makes an error of what the writer says.
    fn copy(
        &self,
        writer: &mut (impl Write + ?Sized),
        local: impl Fn(io::Error) -> Error,
    ) -> Result<u64, Error> {
        let have = self.body();
        if let ResponseBody::Reader(reader) = &self.kept.parts.body
            && self.read.get().is_none()
        {
            let mut reader = reader.lock().unwrap_or_else(PoisonError::into_inner);
            let mut reader = std::mem::replace(&mut *reader, Box::new(Spent));
            let mut buffer = vec![0; 64 * 1024];
            let mut copied = 0;
            loop {
                let count = reader.read(&mut buffer).map_err(|error| self.body_error(error))?;
                let Some(piece) = buffer.get(..count).filter(|piece| !piece.is_empty()) else {
                    return Ok(copied);
                };
                writer.write_all(piece).map_err(&local)?;
                copied += count as u64;
            }
        }
        writer.write_all(have).map_err(local)?;
        Ok(have.len() as u64)
    }

    /// Writes the body to the file `path` and says how many bytes it was.
    ///
    /// The file appears under its name only when it is complete and on disk; until then it is a
    /// hidden neighbour, which a failure removes. A link stays one, and what it leads to is replaced.
    /// What is there and no file (a pipe, `/dev/null`) is written to as it is.
    ///
    /// # Errors
    /// Those of reading the body, as [`bytes`](Self::bytes); `Io` with the path where the file cannot
    /// be made or the disk is full.
    pub fn save_to(&self, path: impl AsRef<Path>) -> Result<u64, Error> {
        let path = path.as_ref();
        save(path, |file| self.copy(file, |error| unwritten(path, error)))
    }

    /// The response itself below 400, an error with the response in it from there on.
    ///
    /// # Errors
    /// `HttpStatus`; [`Error::response`] gives the response back.
    pub fn raise_for_status(self) -> Result<Self, Error> {
        let who = match self.kept.parts.status {
            400..500 => "Client",
            500..600 => "Server",
            _ => return Ok(self),
        };
        let text = format!("{} {who} Error: {}", self.kept.parts.status, self.kept.parts.reason);
        let error = Error::new(ErrorKind::HttpStatus, Phase::Headers, Fault::Target, text)
            .with_url(self.shown_url())
            .with_proxy(self.proxy())
            .with_attempts(self.kept.parts.attempts.clone());
        Err(error.with_response(self))
    }

    pub(crate) fn with_request(mut self, request: Prepared) -> Self {
        self.kept.request = Some(request);
        self
    }

    pub(crate) fn with_next(mut self, next: Prepared) -> Self {
        self.kept.next = Some(Box::new(next));
        self
    }

    /// The hops and the attempts before it, which are given on.
    pub(crate) fn course(&mut self) -> (&mut Vec<Self>, &mut Vec<Attempt>) {
        (&mut self.kept.parts.history, &mut self.kept.parts.attempts)
    }

    fn content_type_bytes(&self) -> Option<&[u8]> {
        self.kept.parts.headers.get(header::CONTENT_TYPE).map(header::HeaderValue::as_bytes)
    }

    fn body_error(&self, error: io::Error) -> Error {
        Error::from_io(error, Phase::Body, Fault::Target)
            .with_url(self.shown_url())
            .with_proxy(self.proxy())
    }

    fn shown_url(&self) -> &str {
        // Userinfo never gets into a prepared URL.
        self.kept.parts.url.as_str()
    }
}

impl Error {
    /// The response that came with the failure, where there is one: the last of an exhausted
    /// retry, or the one that [`raise_for_status`](Response::raise_for_status) rejected.
    pub fn response(&self) -> Option<&Response> {
        self.payload().and_then(|payload| payload.downcast_ref())
    }

    /// Takes the response out of the error.
    pub fn into_response(self) -> Option<Response> {
        self.into_payload().and_then(|payload| payload.downcast().ok()).map(|boxed| *boxed)
    }

    pub(crate) fn with_response(self, response: Response) -> Self {
        self.with_payload(Box::new(response))
    }
}

impl fmt::Debug for Response {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Response({} {})", self.kept.parts.status, self.kept.parts.url)
    }
}

#[cfg(test)]
#[path = "response_tests.rs"]
mod tests;
