//! The ways of handing a body on: as a reader, in pieces, by lines, into a file.
//!
//! Where we differ from requests:
//! - DIFFERENCE(line-ends): CR, LF and CR LF end a line, wherever a chunk of the body ends; requests
//!   sees an empty line where it ends within CR LF, and with `decode_unicode` it cuts at eight further
//!   characters (form feed, U+2028 …).
//! - DIFFERENCE(delimiter-at-the-end): a delimiter ends a piece, and behind the last one there is
//!   none; requests gives an empty piece wherever a chunk of the body ends with the delimiter.

use super::encoding::{is_cut_at_line_ends, with_label};
use super::response::ResponseBody;
use crate::error::{Error, ErrorKind, Fault, Phase};
use std::fmt;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::sync::PoisonError;
use std::sync::atomic::{AtomicU64, Ordering};

/// The body of a response as a reader; made by [`Response::into_reader`](super::Response::into_reader).
pub struct BodyReader(Box<dyn Read + Send>);

impl BodyReader {
    pub(super) fn new(body: ResponseBody) -> Self {
        Self(match body {
            ResponseBody::Bytes(bytes) => Box::new(io::Cursor::new(bytes)),
            ResponseBody::Reader(reader) => {
                reader.into_inner().unwrap_or_else(PoisonError::into_inner)
            }
        })
    }
}

impl Read for BodyReader {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        self.0.read(buf)
    }
}

impl fmt::Debug for BodyReader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("BodyReader")
    }
}

/// What stands in the place of a streamed body that was handed on: a second reading must not look
/// like an empty body.
pub(super) struct Spent;

impl Read for Spent {
    fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
        let text = "the streamed body was read already; call bytes() first to keep it";
        Err(Error::new(ErrorKind::Io, Phase::Body, Fault::Local, text).into_io())
    }
}

fn body_error(error: io::Error) -> Error {
    Error::from_io(error, Phase::Body, Fault::Target)
}

/// An iterator over pieces of a body; made by [`Response::chunks`](super::Response::chunks).
///
/// Every piece but the last is full. After an error there is no further item.
#[derive(Debug)]
pub struct Chunks {
    reader: Option<BodyReader>,
    size: usize,
}

impl Chunks {
    pub(super) fn new(reader: BodyReader, size: usize) -> Self {
        Self { reader: Some(reader), size: size.max(1) }
    }
}

impl Iterator for Chunks {
    type Item = Result<Vec<u8>, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        let reader = self.reader.as_mut()?;
        let mut piece = Vec::new();
        let limit = u64::try_from(self.size).unwrap_or(u64::MAX);
        match reader.take(limit).read_to_end(&mut piece) {
            Ok(count) if count > 0 => Some(Ok(piece)),
            Ok(_) => {
                self.reader = None;
                None
            }
            Err(error) => {
                self.reader = None;
                Some(Err(body_error(error)))
            }
        }
    }
}

/// An iterator over the lines of a body; made by [`Response::lines`](super::Response::lines).
///
/// A line is given as soon as its end has come; the last one needs none. After an error there is no
/// further item.
#[derive(Debug)]
pub struct Lines {
    source: Option<LineSource>,
    label: String,
    /// The last line ended with CR, so a LF that follows belongs to it.
    after_cr: bool,
}

#[derive(Debug)]
enum LineSource {
    Bytes(BufReader<BodyReader>),
    /// A charset like UTF-16, where a byte 0x0A ends no line: the text as a whole, on first use.
    Whole(BodyReader),
    Text(std::vec::IntoIter<String>),
}

impl Lines {
    pub(super) fn new(reader: BodyReader, label: Option<&str>) -> Self {
        let label = label.unwrap_or("utf-8").to_owned();
        let source = if is_cut_at_line_ends(&label) {
            LineSource::Bytes(BufReader::new(reader))
        } else {
            LineSource::Whole(reader)
        };
        Self { source: Some(source), label, after_cr: false }
    }

    fn line(&mut self) -> Result<Option<String>, io::Error> {
        if let Some(LineSource::Whole(reader)) = &mut self.source {
            let mut body = Vec::new();
            reader.read_to_end(&mut body)?;
            let text = with_label(&body, &self.label).replace("\r\n", "\n").replace('\r', "\n");
            let lines: Vec<_> = text.lines().map(str::to_owned).collect();
            self.source = Some(LineSource::Text(lines.into_iter()));
        }
        match &mut self.source {
            Some(LineSource::Bytes(reader)) => {
                let line = bytes_of_line(reader, &mut self.after_cr)?;
                Ok(line.map(|line| with_label(&line, &self.label)))
            }
            Some(LineSource::Text(lines)) => Ok(lines.next()),
            _ => Ok(None),
        }
    }
}

/// The next line without its end; `None` at the end of the body.
fn bytes_of_line(
    reader: &mut BufReader<BodyReader>,
    after_cr: &mut bool,
) -> io::Result<Option<Vec<u8>>> {
    let mut line = Vec::new();
    loop {
        let bytes = reader.fill_buf()?;
        if bytes.is_empty() {
            return Ok(Some(line).filter(|line| !line.is_empty()));
        }
        let begin = usize::from(std::mem::take(after_cr) && bytes.starts_with(b"\n"));
        let bytes = bytes.get(begin..).unwrap_or_default();
        let end = memchr::memchr2(b'\n', b'\r', bytes);
        line.extend_from_slice(bytes.get(..end.unwrap_or(bytes.len())).unwrap_or_default());
        *after_cr = end.is_some_and(|end| bytes.get(end) == Some(&b'\r'));
        let taken = begin + end.map_or(bytes.len(), |end| end + 1);
        reader.consume(taken);
        if end.is_some() {
            return Ok(Some(line));
        }
    }
}

impl Iterator for Lines {
    type Item = Result<String, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        let line = self.line().transpose();
        if !matches!(line, Some(Ok(_))) {
            self.source = None;
        }
        line.map(|line| line.map_err(body_error))
    }
}

/// An iterator over the pieces of a body between delimiters; made by
/// [`Response::split`](super::Response::split).
///
/// After an error there is no further item.
#[derive(Debug)]
pub struct Split {
    reader: Option<BodyReader>,
    delimiter: Vec<u8>,
    /// What was read and not given.
    rest: Vec<u8>,
}

impl Split {
    pub(super) fn new(reader: BodyReader, delimiter: Vec<u8>) -> Self {
        Self { reader: Some(reader), delimiter, rest: Vec::new() }
    }

    fn piece(&mut self) -> io::Result<Option<Vec<u8>>> {
        // How much is known to hold no delimiter.
        let mut searched = 0;
        loop {
            let new = self.rest.get(searched..).unwrap_or_default();
            if !self.delimiter.is_empty()
                && let Some(at) = memchr::memmem::find(new, &self.delimiter)
            {
                let rest = self.rest.split_off(searched + at + self.delimiter.len());
                let mut piece = std::mem::replace(&mut self.rest, rest);
                piece.truncate(searched + at);
                return Ok(Some(piece));
            }
            searched = (self.rest.len() + 1).saturating_sub(self.delimiter.len().max(1));
            let Some(reader) = self.reader.as_mut() else { return Ok(None) };
            let end = self.rest.len();
            self.rest.resize(end + 8 * 1024, 0);
            let read = reader.read(self.rest.get_mut(end..).unwrap_or_default());
            self.rest.truncate(end + read.as_ref().map_or(0, |count| *count));
            if read? == 0 {
                self.reader = None;
                return Ok(Some(std::mem::take(&mut self.rest)).filter(|last| !last.is_empty()));
            }
        }
    }
}

impl Iterator for Split {
    type Item = Result<Vec<u8>, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        let piece = self.piece().transpose();
        if matches!(piece, Some(Err(_))) {
            self.reader = None;
            self.rest = Vec::new();
        }
        piece.map(|piece| piece.map_err(body_error))
    }
}

/// Fills a neighbour of `path` and gives it the name once it is on disk. What a link leads to is
/// replaced, and not the link; what is no file (a pipe, `/dev/null`) must not become one, and is
/// written to.
pub(super) fn save(
    path: &Path,
    fill: impl FnOnce(&mut File) -> Result<u64, Error>,
) -> Result<u64, Error> {
    let failed = |error: io::Error| unwritten(path, error);
    let target = match fs::metadata(path) {
        Ok(found) if found.is_file() => fs::canonicalize(path).map_err(failed)?,
        Ok(found) if !found.is_dir() => {
            return fill(&mut OpenOptions::new().write(true).open(path).map_err(failed)?);
        }
        // A folder, and what cannot be looked up, is told of below.
        _ => path.to_path_buf(),
    };
    let neighbour = neighbour(&target).map_err(failed)?;
    let mut file =
        OpenOptions::new().write(true).create_new(true).open(&neighbour).map_err(failed)?;
    let result = fill(&mut file).and_then(|count| {
        file.sync_all().and_then(|()| fs::rename(&neighbour, &target)).map_err(failed)?;
        Ok(count)
    });
    if result.is_err() {
        // The failure that is reported matters more than one of cleaning up.
        let _ = fs::remove_file(&neighbour);
    }
    result
}

/// The error of a file that cannot be written.
pub(crate) fn unwritten(path: &Path, error: io::Error) -> Error {
    let text = format!("{} cannot be written: {error}", path.display());
    Error::new(ErrorKind::Io, Phase::Body, Fault::Local, text).with_source(error)
}

/// In the same folder, since a rename is atomic only within a file system.
fn neighbour(path: &Path) -> io::Result<PathBuf> {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let name = path.file_name().ok_or_else(|| {
        io::Error::new(io::ErrorKind::InvalidInput, "the path does not end in a file name")
    })?;
    let mut hidden = std::ffi::OsString::from(".");
    hidden.push(name);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    hidden.push(format!(".{}-{count}.part", std::process::id()));
    Ok(path.with_file_name(hidden))
}
