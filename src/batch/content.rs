//! What of a results file can be read: its lines, and what a crash left behind them.
//!
//! A resumption and a report read the same files, also while a run still writes them. Plain lines are
//! read as they stand. Under zstd the whole frames are found first, so that a torn frame at the end is
//! told from damage, and their lines are read.

#[cfg(feature = "zstd")]
use super::frames;
use super::sink::io_error;
#[cfg(feature = "zstd")]
use super::torn::Rest;
use crate::error::{Error, ErrorKind};
use std::fs::File;
use std::io::{self, BufRead, BufReader, Seek, SeekFrom};
use std::path::Path;

/// The bytes of a results file, and what is behind those that can be read.
pub(super) struct Content<'a> {
    pub(super) reader: Box<dyn BufRead + Send + 'a>,
    /// Where they end in the file, under zstd.
    pub(super) end: Option<u64>,
    pub(super) torn: u64,
    pub(super) damaged: bool,
}

impl<'a> Content<'a> {
    /// Of a file; `packed` is under zstd.
    pub(super) fn of(file: &'a File, packed: bool, path: &Path) -> Result<Self, Error> {
        let wrong = |error| unreadable(path, error);
        #[cfg(feature = "zstd")]
        if packed {
            let found = frames::look_through(file).map_err(wrong)?;
            let reader = frames::lines(file, found.end).map_err(wrong)?;
            return Ok(Self {
                reader,
                end: Some(found.end),
                torn: if let Rest::Torn(bytes) = found.rest { bytes } else { 0 },
                damaged: found.rest == Rest::Damaged,
            });
        }
        #[cfg(not(feature = "zstd"))]
        let _: bool = packed;
        let mut reader = BufReader::with_capacity(64 * 1024, file);
        reader.seek(SeekFrom::Start(0)).map_err(wrong)?;
        Ok(Self { reader: Box::new(reader), end: None, torn: 0, damaged: false })
    }

    /// What is wrong behind the whole frames; `None` where nothing is.
    pub(super) fn damage(&self) -> Option<Error> {
        self.damaged.then(|| {
            let at = self.end.unwrap_or_default();
            let text = format!("no whole frame of zstd, at byte {at} of the file");
            Error::local(ErrorKind::InvalidJson, text)
        })
    }
}

/// Whether the name says that the file is under zstd.
pub(super) fn is_packed(path: &Path) -> Result<bool, Error> {
    let packed = path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("zst"));
    if packed && cfg!(not(feature = "zstd")) {
        return Err(Error::config(format!(
            "{} is to be compressed, and zstd is not built in; build with the feature zstd, or name \
             a file that does not end in .zst",
            path.display()
        )));
    }
    Ok(packed)
}

pub(super) fn unreadable(path: &Path, error: io::Error) -> Error {
    io_error(format!("{} cannot be read: {error}", path.display()), error)
}
