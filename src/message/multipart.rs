//! requests' `files=`: `multipart/form-data`, byte for byte as urllib3 writes it.
//!
//! A form is described as a [`Multipart`] and becomes a body once a boundary is drawn for it. The
//! boundary stays with the body, so a retry or a redirect sends the same bytes. requests reads every
//! file into memory and joins them; here a form of texts and bytes is joined, while a form with a
//! file or a reader in it is put together while it is sent. Its length is the sum of its parts where
//! each of them has one, and it is sent in chunks otherwise.
//!
//! Names and file names are UTF-8, with line ends and quotes percent-encoded, as browsers and
//! urllib3 2 write them.
//!
//! Where we differ from requests:
//! - DIFFERENCE(part-fields): what would break out of a field of a part is `InvalidHeader`, and
//!   `Content-Disposition` cannot be given by hand; requests writes the first into the body and
//!   drops the second without a word. A `Content-Type` among the fields is the type of the part.

use super::body::{Body, OpenBody, measure_file, open_file_later, unopened};
use super::headers::checked;
use crate::error::{Error, ErrorKind};
use crate::rng::Rng;
use bytes::Bytes;
use memchr::memmem;
use std::collections::VecDeque;
use std::fmt;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A form: fields as text (requests' `data=`) and files (its `files=`).
///
/// Fields come first on the wire, then the parts, each in the order in which they were added. A text
/// that has to stand among the parts is a [`Part`] without a file name.
///
/// # Examples
/// ```
/// use longhaul::message::{Multipart, Part};
///
/// let form = Multipart::new()
///     .field("title", "Holidays")
///     .part(Part::new("note", "a text").file_name("note.txt").content_type("text/plain"))
///     .file("photo", "/srv/photos/beach.jpg");
/// ```
#[derive(Debug, Clone, Default)]
#[must_use]
pub struct Multipart {
    fields: Vec<(String, Bytes)>,
    parts: Vec<Part>,
}

impl Multipart {
    /// A form without fields and parts.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a field: a part that has a name and a value only.
    pub fn field(mut self, name: impl Into<String>, value: impl Into<Vec<u8>>) -> Self {
        self.fields.push((name.into(), Bytes::from(value.into())));
        self
    }

    /// Adds a file under its own name.
    pub fn file(self, name: impl Into<String>, path: impl Into<PathBuf>) -> Self {
        self.part(Part::file(name, path))
    }

    /// Adds a part.
    pub fn part(mut self, part: Part) -> Self {
        self.parts.push(part);
        self
    }

    /// The form as a body, with a boundary that none of its texts and bytes contains, and the
    /// `Content-Type` that names it.
    ///
    /// [`RequestBuilder::multipart`](crate::RequestBuilder::multipart) does it with the generator of
    /// its session.
    ///
    /// # Errors
    /// `InvalidHeader` for a field of a part that cannot be sent.
    pub fn into_body(self, rng: &mut Rng) -> Result<(Body, String), Error> {
        let boundary = loop {
            let boundary = format!("{:016x}{:016x}", rng.bits(), rng.bits());
            if !self.holds(boundary.as_bytes()) {
                break boundary;
            }
        };
        self.with_boundary(&boundary)
    }

    /// The form as a body with a boundary of the caller's, who knows that no part contains it.
    ///
    /// # Errors
    /// As [`into_body`](Self::into_body), and `InvalidHeader` for a boundary that is none: 1 to 70
    /// characters from letters, digits and `'()+_,-./:=?`.
    pub fn with_boundary(self, boundary: &str) -> Result<(Body, String), Error> {
        let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"'()+_,-./:=?".contains(&byte);
        if !(1..=70).contains(&boundary.len()) || !boundary.bytes().all(fits) {
            let text = format!(
                "the boundary {boundary:?} is not 1 to 70 letters, digits or any of '()+_,-./:=?"
            );
            return Err(Error::local(ErrorKind::InvalidHeader, text));
        }
        let fields = self.fields.into_iter().map(|(name, value)| Part::new(name, value));
        let mut pieces = Pieces { boundary, text: Vec::new(), done: Vec::new() };
        for part in fields.chain(self.parts) {
            pieces.push(part)?;
        }
        // What a parameter may hold bare is a token; urllib3's own boundaries always are.
        let is_token = boundary.bytes().all(|byte| !b"(),/:=?".contains(&byte));
        let quote = if is_token { "" } else { "\"" };
        let content_type = format!("multipart/form-data; boundary={quote}{boundary}{quote}");
        Ok((pieces.into_body(), content_type))
    }

    /// Whether a text or a body in memory contains this; what is not in memory cannot be asked.
    fn holds(&self, needle: &[u8]) -> bool {
        let holds = |bytes: &[u8]| memmem::find(bytes, needle).is_some();
        self.fields.iter().any(|(name, value)| holds(name.as_bytes()) || holds(value))
            || self.parts.iter().any(|part| {
                matches!(&part.body, Body::Bytes(bytes) if holds(bytes))
                    || holds(part.name.as_bytes())
                    || part.file_name.as_ref().is_some_and(|name| holds(name.as_bytes()))
            })
    }
}

/// One part of a [`Multipart`] form.
#[derive(Debug, Clone)]
#[must_use]
pub struct Part {
    name: String,
    body: Body,
    file_name: Option<String>,
    content_type: Option<String>,
    headers: Vec<(String, Vec<u8>)>,
}

impl Part {
    /// A part with this content: text, bytes, or any other [`Body`].
    ///
    /// A reader without a length makes the whole form one that is sent in chunks; one that can be
    /// read once makes it a form that can be sent once. It has neither a file name nor a type.
    pub fn new(name: impl Into<String>, body: impl Into<Body>) -> Self {
        Self {
            name: name.into(),
            body: body.into(),
            file_name: None,
            content_type: None,
            headers: Vec::new(),
        }
    }

    /// A file, under the last component of its path. It is opened when its turn comes, for each
    /// attempt anew, and is not read into memory.
    ///
    /// It has no type, as in requests: give one by [`content_type`](Self::content_type), or have it
    /// [guessed](Self::guess_content_type).
    pub fn file(name: impl Into<String>, path: impl Into<PathBuf>) -> Self {
        let path = path.into();
        let file_name = path.file_name().map(|name| name.to_string_lossy().into_owned());
        Self { file_name, ..Self::new(name, Body::file(path)) }
    }

    /// The name of the file, which makes the part one for servers. Default: none, or that of a
    /// [`file`](Self::file).
    pub fn file_name(mut self, name: impl Into<String>) -> Self {
        self.file_name = Some(name.into());
        self
    }

    /// The media type of the part. Default: none.
    pub fn content_type(mut self, media_type: impl Into<String>) -> Self {
        self.content_type = Some(media_type.into());
        self
    }

    /// The media type that the extension of the file name suggests, else
    /// `application/octet-stream`, as urllib3 does for its `fields=`.
    pub fn guess_content_type(self) -> Self {
        let guess = self.file_name.as_ref().map(Path::new);
        let guess = guess.and_then(|name| mime_guess::from_path(name).first_raw());
        self.content_type(guess.unwrap_or("application/octet-stream"))
    }

    /// A further field of the part, behind its type; one with an empty value is left out.
    pub fn header(mut self, name: impl Into<String>, value: impl Into<Vec<u8>>) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }

    /// Writes the boundary and the fields.
    fn write_head(&mut self, out: &mut Vec<u8>, boundary: &str) -> Result<(), Error> {
        out.extend_from_slice(b"--");
        out.extend_from_slice(boundary.as_bytes());
        out.extend_from_slice(b"\r\nContent-Disposition: form-data; name=");
        write_quoted(out, &self.name);
        if let Some(name) = &self.file_name {
            out.extend_from_slice(b"; filename=");
            write_quoted(out, name);
        }
        out.extend_from_slice(b"\r\n");
        let mut lines = Vec::with_capacity(self.headers.len() + 1);
        let mut content_type = self.content_type.take().map(String::into_bytes);
        for (name, value) in self.headers.drain(..) {
            if name.eq_ignore_ascii_case("content-disposition") {
                let text = format!(
                    "the part {:?} cannot be given a {name} field: it is made of name and file name",
                    self.name
                );
                return Err(Error::local(ErrorKind::InvalidHeader, text));
            }
            if name.eq_ignore_ascii_case("content-type") {
                content_type = Some(value);
            } else {
                lines.push((name, value));
            }
        }
        let content_type = content_type.map(|value| ("Content-Type".to_owned(), value));
        for (name, value) in content_type.into_iter().chain(lines) {
            let (name, value) = checked(name, value)?;
            if !value.is_empty() {
                for piece in [name.as_bytes(), b": ", &value, b"\r\n"] {
                    out.extend_from_slice(piece);
                }
            }
        }
        out.extend_from_slice(b"\r\n");
        Ok(())
    }
}

/// The HTML standard's way, which is urllib3's: what would end the value is percent-encoded.
fn write_quoted(out: &mut Vec<u8>, value: &str) {
    out.push(b'"');
    for byte in value.bytes() {
        match byte {
            b'\n' => out.extend_from_slice(b"%0A"),
            b'\r' => out.extend_from_slice(b"%0D"),
            b'"' => out.extend_from_slice(b"%22"),
            byte => out.push(byte),
        }
    }
    out.push(b'"');
}

/// A form on its way to a body: text is gathered until something that is not in memory comes.
struct Pieces<'a> {
    boundary: &'a str,
    text: Vec<u8>,
    done: Vec<Piece>,
}

enum Piece {
    Bytes(Bytes),
    /// The content of the part of this name.
    Body(Body, String),
}

impl Pieces<'_> {
    fn push(&mut self, mut part: Part) -> Result<(), Error> {
        part.write_head(&mut self.text, self.boundary)?;
        match part.body {
            Body::Empty => {}
            Body::Bytes(bytes) => self.text.extend_from_slice(&bytes),
            body => {
                self.done.push(Piece::Bytes(std::mem::take(&mut self.text).into()));
                self.done.push(Piece::Body(body, part.name));
            }
        }
        self.text.extend_from_slice(b"\r\n");
        Ok(())
    }

    fn into_body(mut self) -> Body {
        self.text.extend_from_slice(format!("--{}--\r\n", self.boundary).as_bytes());
        if self.done.is_empty() {
            return self.text.into();
        }
        self.done.push(Piece::Bytes(self.text.into()));
        Body::Multipart(Arc::new(MultipartBody(self.done)))
    }
}

/// A form of which a part is not in memory; made by [`Multipart::into_body`].
pub struct MultipartBody(Vec<Piece>);

impl MultipartBody {
    pub(super) fn is_replayable(&self) -> bool {
        self.0.iter().all(|piece| match piece {
            Piece::Bytes(_) => true,
            Piece::Body(body, _) => body.is_replayable(),
        })
    }

    /// Opens it for one attempt. Files are only measured, and opened when their turn comes: a form
    /// of a thousand of them takes one descriptor.
    pub(super) fn open(&self) -> Result<OpenBody, Error> {
        let mut sources = VecDeque::with_capacity(self.0.len());
        let mut total = Some(0_u64);
        for piece in &self.0 {
            let (source, length) = match piece {
                Piece::Bytes(bytes) => (Source::Bytes(bytes.clone(), 0), Some(bytes.len() as u64)),
                Piece::Body(body, name) => open_part(body, name)?,
            };
            total = total.zip(length).and_then(|(total, length)| total.checked_add(length));
            sources.push_back(source);
        }
        Ok(OpenBody::Reader(Box::new(PartsReader(sources)), total))
    }
}

impl fmt::Debug for MultipartBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} pieces", self.0.len())
    }
}

fn open_part(body: &Body, name: &str) -> Result<(Source, Option<u64>), Error> {
    if let Body::File(path) = body
        && let Some(length) = measure_file(path).map_err(unopened)?
    {
        return Ok((Source::File(Arc::clone(path), length), Some(length)));
    }
    Ok(match body.open()? {
        OpenBody::Empty => (Source::Bytes(Bytes::new(), 0), Some(0)),
        OpenBody::Bytes(bytes) => {
            let length = bytes.len() as u64;
            (Source::Bytes(bytes, 0), Some(length))
        }
        OpenBody::Reader(reader, length) => {
            (Source::Reader { reader, left: length, name: name.to_owned() }, length)
        }
    })
}

/// What a form is read from, in its order.
enum Source {
    /// With how many of them were read.
    Bytes(Bytes, usize),
    /// To be opened, with the length that it was measured with.
    File(Arc<Path>, u64),
    /// With what is left of its promised length, and the name of its part.
    Reader { reader: Box<dyn Read + Send>, left: Option<u64>, name: String },
}

struct PartsReader(VecDeque<Source>);

impl Read for PartsReader {
    /// Fills on over the ends of texts, so that the head of a part leaves with its content.
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let mut filled = 0;
        while let Some(source) = self.0.front_mut() {
            let space = buf.get_mut(filled..).unwrap_or_default();
            if space.is_empty() {
                break;
            }
            match source {
                Source::Bytes(bytes, begin) => {
                    let count = bytes.get(*begin..).unwrap_or_default().read(space)?;
                    (*begin, filled) = (*begin + count, filled + count);
                    if count == 0 {
                        self.0.pop_front();
                    }
                }
                Source::File(path, length) => {
                    let (reader, left) = (open_file_later(path, *length)?, Some(*length));
                    *source = Source::Reader { reader, left, name: String::new() };
                }
                Source::Reader { reader, left, name } => {
                    let room = left.map_or(u64::MAX, |left| left).min(space.len() as u64);
                    let room = usize::try_from(room).unwrap_or(space.len());
                    let count = match room {
                        0 => 0,
                        room => reader.read(space.get_mut(..room).unwrap_or_default())?,
                    };
                    match left {
                        Some(missing @ 1..) if count == 0 => {
                            return Err(io::Error::other(format!(
                                "the part {name:?} ended {missing} bytes before the length that \
                                 was given for it"
                            )));
                        }
                        Some(left) => *left -= count as u64,
                        None => {}
                    }
                    if count > 0 {
                        // The reader may take its time with more.
                        return Ok(filled + count);
                    }
                    self.0.pop_front();
                }
            }
        }
        Ok(filled)
    }
}

#[cfg(test)]
#[path = "multipart_tests.rs"]
mod tests;
