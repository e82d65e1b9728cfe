//! Request bodies: those that can be sent again, and those that cannot.
//!
//! A retry or a 307 sends the body a second time. Whether that is possible is a property of the
//! body and not of the moment, so it is in the type: bytes and openers can be sent as often as
//! needed, a reader once. The second attempt with a reader is an error that says so, because an
//! empty or half-read resend would look like a success.

mod file;

use super::multipart::MultipartBody;
use crate::error::{Error, ErrorKind, Fault, Phase};
use bytes::Bytes;
use std::fmt;
use std::fs::File;
use std::io::{self, Read, Seek as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

pub(super) use file::{measure as measure_file, open_later as open_file_later};

/// The body of a request.
#[derive(Clone, Default)]
#[non_exhaustive]
pub enum Body {
    /// None.
    #[default]
    Empty,
    /// In memory; sent again byte for byte.
    Bytes(Bytes),
    /// The bytes of a file, opened anew for each attempt.
    File(Arc<Path>),
    /// Can be opened as often as needed. The length is sent where it is known.
    #[allow(clippy::type_complexity, reason = "one closure, written once; users call `replayable`")]
    Replayable(Arc<dyn Fn() -> io::Result<(Box<dyn Read + Send>, Option<u64>)> + Send + Sync>),
    /// Can be read once. An attempt after one that read of it is `BodyNotReplayable`, never an
    /// empty resend. Cloning shares the one reader.
    OneShot(Arc<Mutex<Option<Box<dyn Read + Send>>>>, Option<u64>),
    /// The parts of a form; can be sent again where each of them can.
    Multipart(Arc<MultipartBody>),
}

/// The body of one attempt, opened.
#[non_exhaustive]
pub enum OpenBody {
    /// None.
    Empty,
    /// In memory.
    Bytes(Bytes),
    /// To be read to its end, with its length where that is known.
    Reader(Box<dyn Read + Send>, Option<u64>),
}

impl Body {
    /// The bytes of a file, opened anew for each attempt.
    ///
    /// Nothing is opened before the request is sent; a missing file is an `Io` error then. Its
    /// length is sent, and a file that changes it while it is sent is an `Io` error too: such a
    /// body never arrives as a complete one. Pipes and devices are sent in chunks.
    pub fn file(path: impl Into<PathBuf>) -> Self {
        Self::File(path.into().into())
    }

    /// A body that `open` produces for each attempt: a reader, and its length where it is known.
    ///
    /// The same bytes have to come each time. Where a length is given, that many bytes are sent:
    /// a reader that ends before is an `Io` error, and what it has beyond is not read.
    pub fn replayable(
        open: impl Fn() -> io::Result<(Box<dyn Read + Send>, Option<u64>)> + Send + Sync + 'static,
    ) -> Self {
        Self::Replayable(Arc::new(open))
    }

    /// A body that can be read once; chunked where `length` is `None`.
    ///
    /// Where a length is given, that many bytes are sent: a reader that ends before is an `Io`
    /// error, and what it has beyond is not read.
    pub fn reader(reader: impl Read + Send + 'static, length: Option<u64>) -> Self {
        Self::OneShot(Arc::new(Mutex::new(Some(Box::new(reader)))), length)
    }

    /// Opens the body for one attempt.
    ///
    /// # Errors
    /// `BodyNotReplayable` for a one-shot body that was read from; `Io` where a replayable one
    /// cannot be opened.
    pub fn open(&self) -> Result<OpenBody, Error> {
        match self {
            Self::Empty => Ok(OpenBody::Empty),
            Self::Bytes(bytes) => Ok(OpenBody::Bytes(bytes.clone())),
            Self::File(path) => opened(file::open(path)),
            Self::Replayable(open) => opened(open()),
            Self::Multipart(form) => form.open(),
            Self::OneShot(reader, length) => {
                let lent = Lent::of(reader).ok_or_else(|| {
                    Error::local(
                        ErrorKind::BodyNotReplayable,
                        "the body is a reader and was read already; give bytes or \
                         Body::replayable to let it be sent again",
                    )
                })?;
                Ok(OpenBody::Reader(Box::new(lent), *length))
            }
        }
    }

    /// Whether a further attempt can send the same bytes: always, but for a reader, and for a
    /// form with one among its parts.
    pub fn is_replayable(&self) -> bool {
        match self {
            Self::OneShot(..) => false,
            Self::Multipart(form) => form.is_replayable(),
            Self::Empty | Self::Bytes(_) | Self::File(_) | Self::Replayable(_) => true,
        }
    }

    /// Whether the next attempt can send it: not where it can be read once and was.
    pub(crate) fn can_be_sent(&self) -> bool {
        match self {
            Self::OneShot(home, _) => home.lock().unwrap_or_else(PoisonError::into_inner).is_some(),
            body => body.is_replayable(),
        }
    }

    /// Whether there is nothing to send.
    pub fn is_empty(&self) -> bool {
        matches!(self, Self::Empty)
    }
}

fn opened(result: io::Result<file::Opened>) -> Result<OpenBody, Error> {
    match result {
        Ok((reader, length)) => Ok(OpenBody::Reader(reader, length)),
        Err(error) => Err(unopened(error)),
    }
}

/// The error of a body that cannot be opened.
pub(super) fn unopened(error: io::Error) -> Error {
    let text = format!("the body cannot be opened: {error}");
    Error::new(ErrorKind::Io, Phase::Prepare, Fault::Local, text).with_source(error)
}

type Reader = Box<dyn Read + Send>;

/// A one-shot reader on its way through one attempt. Where nobody read of it, because no
/// connection came about, it goes back for the next attempt.
struct Lent {
    reader: Option<Reader>,
    home: Arc<Mutex<Option<Reader>>>,
    read: bool,
}

impl Lent {
    fn of(home: &Arc<Mutex<Option<Reader>>>) -> Option<Self> {
        let reader = home.lock().unwrap_or_else(PoisonError::into_inner).take()?;
        Some(Self { reader: Some(reader), home: Arc::clone(home), read: false })
    }
}

impl Read for Lent {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        self.read = true;
        self.reader.as_mut().map_or(Ok(0), |reader| reader.read(buf))
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        if !self.read {
            *self.home.lock().unwrap_or_else(PoisonError::into_inner) = self.reader.take();
        }
    }
}

impl From<Bytes> for Body {
    fn from(bytes: Bytes) -> Self {
        Self::Bytes(bytes)
    }
}

impl From<Vec<u8>> for Body {
    fn from(bytes: Vec<u8>) -> Self {
        Self::Bytes(bytes.into())
    }
}

impl From<String> for Body {
    fn from(text: String) -> Self {
        Self::Bytes(text.into())
    }
}

impl From<&[u8]> for Body {
    fn from(bytes: &[u8]) -> Self {
        Self::Bytes(Bytes::copy_from_slice(bytes))
    }
}

impl From<&str> for Body {
    fn from(text: &str) -> Self {
        text.as_bytes().into()
    }
}

impl From<File> for Body {
    /// What is left of the file from its current position on, as in requests.
    ///
    /// A regular file is read again from there for each attempt, and its cursor is left where it
    /// is; it must not change meanwhile, as for [`Body::file`]. A pipe or a device can be read
    /// once and is sent in chunks.
    fn from(mut file: File) -> Self {
        let found = file.metadata().and_then(|found| Ok((found, file.stream_position()?)));
        match found {
            Ok((found, position)) if found.is_file() && found.len() > 0 => {
                let (file, length) = (Arc::new(file), found.len().saturating_sub(position));
                Self::replayable(move || {
                    let rest = file::Rest { file: Arc::clone(&file), position };
                    let rest: Box<dyn Read + Send> = match length {
                        0 => Box::new(rest),
                        _ => Box::new(file::Fixed::new(rest, length, None)),
                    };
                    Ok((rest, Some(length)))
                })
            }
            _ => Self::reader(file, None),
        }
    }
}

impl fmt::Debug for Body {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => f.write_str("Empty"),
            Self::Bytes(bytes) => write!(f, "Bytes({})", bytes.len()),
            Self::File(path) => write!(f, "File({})", path.display()),
            Self::Replayable(_) => f.write_str("Replayable"),
            Self::Multipart(form) => write!(f, "Multipart({form:?})"),
            Self::OneShot(_, length) => write!(f, "OneShot({length:?})"),
        }
    }
}

impl fmt::Debug for OpenBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => f.write_str("Empty"),
            Self::Bytes(bytes) => write!(f, "Bytes({})", bytes.len()),
            Self::Reader(_, length) => write!(f, "Reader({length:?})"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(body: &Body) -> Result<(Vec<u8>, Option<u64>), Error> {
        Ok(match body.open()? {
            OpenBody::Empty => (Vec::new(), Some(0)),
            OpenBody::Bytes(bytes) => (bytes.to_vec(), Some(bytes.len() as u64)),
            OpenBody::Reader(mut reader, length) => {
                let mut bytes = Vec::new();
                reader.read_to_end(&mut bytes).unwrap();
                (bytes, length)
            }
        })
    }

    #[test]
    fn replayable_bodies_give_the_same_bytes_each_time() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("body");
        std::fs::write(&path, b"payload").unwrap();
        let opener = || Ok((Box::new(&b"payload"[..]) as Box<dyn Read + Send>, None));
        for (body, length) in [
            (Body::from("payload"), Some(7)),
            (Body::from(b"payload".to_vec()), Some(7)),
            (Body::file(&path), Some(7)),
            (Body::replayable(opener), None),
        ] {
            assert!(body.is_replayable());
            for _ in 0..2 {
                assert_eq!(read(&body).unwrap(), (b"payload".to_vec(), length), "{body:?}");
            }
        }
    }

    #[test]
    fn a_reader_is_never_sent_twice_not_even_through_a_clone() {
        let body = Body::reader(&b"once"[..], Some(4));
        let clone = body.clone();
        assert!(!body.is_replayable());
        assert_eq!(read(&body).unwrap(), (b"once".to_vec(), Some(4)));
        for again in [&body, &clone] {
            assert_eq!(again.open().unwrap_err().kind(), ErrorKind::BodyNotReplayable);
        }
    }

    #[test]
    fn a_reader_that_nobody_read_can_be_opened_again() {
        let body = Body::reader(&b"once"[..], Some(4));
        for _ in 0..3 {
            drop(body.open().unwrap());
            assert!(body.can_be_sent());
        }
        let both = (body.open(), body.clone().open());
        assert!(both.0.is_ok() && both.1.is_err(), "it is lent to one at a time");
        drop(both);
        assert_eq!(read(&body).unwrap(), (b"once".to_vec(), Some(4)));
        assert!(!body.can_be_sent() && Body::from("x").can_be_sent());
        assert_eq!(body.open().unwrap_err().kind(), ErrorKind::BodyNotReplayable);
    }

    #[test]
    fn a_missing_file_is_named() {
        let error = Body::file("/nonexistent/body.bin").open().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Io);
        assert!(error.message().contains("/nonexistent/body.bin"), "{error}");
    }

    #[test]
    fn an_open_file_is_sent_from_where_it_stands_and_each_time_from_there() {
        let mut file = tempfile::tempfile().unwrap();
        io::Write::write_all(&mut file, b"head and rest").unwrap();
        for (position, rest) in [(0, &b"head and rest"[..]), (9, b"rest"), (13, b""), (20, b"")] {
            let mut file = file.try_clone().unwrap();
            file.seek(io::SeekFrom::Start(position)).unwrap();
            let body = Body::from(file);
            assert!(body.is_replayable());
            for _ in 0..2 {
                let length = Some(rest.len() as u64);
                assert_eq!(read(&body).unwrap(), (rest.to_vec(), length), "{position}");
            }
        }
    }

    #[test]
    fn an_open_file_that_changes_is_an_error() {
        let mut file = tempfile::tempfile().unwrap();
        io::Write::write_all(&mut file, b"payload").unwrap();
        file.rewind().unwrap();
        let body = Body::from(file.try_clone().unwrap());
        file.set_len(3).unwrap();
        let OpenBody::Reader(mut reader, Some(7)) = body.open().unwrap() else { panic!() };
        let error = reader.read_to_end(&mut Vec::new()).unwrap_err().to_string();
        assert!(error.contains("became shorter"), "{error}");
    }
}
