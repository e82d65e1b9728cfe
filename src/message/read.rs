//! The ways of handing a body on: as a reader, in pieces, by lines, into a file.

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
/// After an error there is no further item.
#[derive(Debug)]
pub struct Lines {
    source: Option<LineSource>,
    label: String,
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
        Self { source: Some(source), label }
    }

    fn line(&mut self) -> Result<Option<String>, io::Error> {
        if let Some(LineSource::Whole(reader)) = &mut self.source {
            let mut body = Vec::new();
            reader.read_to_end(&mut body)?;
            let lines: Vec<_> = with_label(&body, &self.label).lines().map(str::to_owned).collect();
            self.source = Some(LineSource::Text(lines.into_iter()));
        }
        match &mut self.source {
            Some(LineSource::Bytes(reader)) => {
                let mut line = Vec::new();
                if reader.read_until(b'\n', &mut line)? == 0 {
                    return Ok(None);
                }
                let line = line.strip_suffix(b"\n").unwrap_or(&line);
                let line = line.strip_suffix(b"\r").unwrap_or(line);
                Ok(Some(with_label(line, &self.label)))
            }
            Some(LineSource::Text(lines)) => Ok(lines.next()),
            _ => Ok(None),
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

/// Fills a neighbour of `path` and gives it the name once it is on disk.
pub(super) fn save(
    path: &Path,
    fill: impl FnOnce(&mut File) -> Result<u64, Error>,
) -> Result<u64, Error> {
    let failed = |error: io::Error| {
        let text = format!("{} cannot be written: {error}", path.display());
        Error::new(ErrorKind::Io, Phase::Body, Fault::Local, text).with_source(error)
    };
    let neighbour = neighbour(path).map_err(failed)?;
    let mut file =
        OpenOptions::new().write(true).create_new(true).open(&neighbour).map_err(failed)?;
    let result = fill(&mut file).and_then(|count| {
        file.sync_all().and_then(|()| fs::rename(&neighbour, path)).map_err(failed)?;
        Ok(count)
    });
    if result.is_err() {
        // The failure that is reported matters more than one of cleaning up.
        let _ = fs::remove_file(&neighbour);
    }
    result
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
