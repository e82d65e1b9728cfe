//! One file of results: what it holds, and how it is made ready for more.

use super::done::Counting;
use super::files::{lock, open, sync_folder};
use super::rows::{Row, Rows};
use super::{Existing, Found};
use crate::batch::Key;
use crate::batch::content::Content;
use crate::batch::format::Format;
#[cfg(feature = "zstd")]
use crate::batch::frames::frame;
use crate::batch::record::Record;
use crate::error::Error;
use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

/// A file of results, locked.
#[derive(Debug)]
pub(super) struct Part {
    pub(super) path: PathBuf,
    pub(super) file: File,
    pub(super) regular: bool,
    /// Made when it was opened: to be taken away again if the run does not begin.
    pub(super) fresh: bool,
    /// Under zstd.
    pub(super) packed: bool,
    /// Where the last complete object ends, its line feed included or not; or else the last frame.
    complete: u64,
    /// Whether the last line feed is missing; under zstd, or the last line is torn.
    is_ragged: bool,
    /// How many records are to be removed.
    again: u64,
}

impl Part {
    pub(super) fn open(path: &Path, packed: bool) -> Result<Self, Error> {
        let (file, regular, fresh) = open(path)?;
        Ok(Self {
            path: path.to_path_buf(),
            file,
            regular,
            fresh,
            packed: packed && regular,
            complete: 0,
            is_ragged: false,
            again: 0,
        })
    }

    pub(super) fn is_empty(&self) -> bool {
        self.file.metadata().is_ok_and(|metadata| metadata.len() == 0)
    }

    /// Reads what is done.
    pub(super) fn read(
        &mut self,
        format: &Format,
        retry_failed: bool,
        counting: &mut Counting,
        found: &mut Found,
    ) -> Result<(), Error> {
        let content = self.content()?;
        let (damage, Content { reader, end, torn, .. }) = (content.damage(), content);
        let mut rows = Rows::new(reader, &self.path, format);
        let mut again = 0;
        while let Some(row) = rows.read()? {
            let Row::Record(head) = row else { continue };
            if head.is_again(retry_failed) {
                again += 1;
                continue;
            }
            *(if head.ok { &mut found.ok } else { &mut found.failed }) += 1;
            counting.add(Key::of_id(&head.id));
        }
        if let Some(damage) = damage {
            return Err(rows.wrong(&damage));
        }
        found.torn += rows.torn + torn;
        found.again += again;
        let (complete, is_ragged) = match end {
            Some(end) => (end, rows.line_feed_missing || rows.torn > 0),
            None => (rows.complete, rows.line_feed_missing),
        };
        drop(rows);
        (self.complete, self.is_ragged, self.again) = (complete, is_ragged, again);
        Ok(())
    }

    /// Reads all records again, those included that are to be removed.
    pub(super) fn each_record(&self, each: &mut dyn FnMut(&Record)) -> Result<(), Error> {
        let mut rows = Rows::new(self.content()?.reader, &self.path, &Format::JsonLines);
        while let Some(row) = rows.read()? {
            if let Row::Record(_) = row {
                each(&Record::parse(rows.text()).map_err(|error| rows.wrong(&error))?);
            }
        }
        Ok(())
    }

    /// Makes it ready for more records: the file, and how long it is.
    pub(super) fn ready(&self, existing: Existing, format: &Format) -> io::Result<(File, u64)> {
        let Existing::Resume { retry_failed } = existing else {
            let file = self.file.try_clone()?;
            file.set_len(0)?;
            return Ok((file, 0));
        };
        if self.again > 0 || self.packed && self.is_ragged {
            return self.rewrite(format, retry_failed);
        }
        let file = self.file.try_clone()?;
        let mut length = self.complete;
        file.set_len(length)?;
        if self.is_ragged {
            (&file).write_all(b"\n")?;
            length += 1;
        }
        // Whoever killed the run before did not wait for it, and from now on what stands here counts
        // as done.
        file.sync_data()?;
        Ok((file, length))
    }

    /// What is to be read as lines.
    fn content(&self) -> Result<Content<'_>, Error> {
        Content::of(&self.file, self.packed, &self.path)
    }

    /// Writes the records that stay into a file beside, and puts it in place of the old one.
    fn rewrite(&self, format: &Format, retry_failed: bool) -> io::Result<(File, u64)> {
        // The file that a link points to, and not the link, is what has to be replaced.
        let target = fs::canonicalize(&self.path)?;
        let mut beside: OsString = target.clone().into();
        beside.push(".rewriting");
        let beside = PathBuf::from(beside);
        let file = OpenOptions::new().read(true).append(true).create(true).open(&beside)?;
        // Locked before it has the name, so there is no moment at which a second writer gets in.
        lock(&file, &beside).map_err(io::Error::other)?;
        file.set_len(0)?;
        file.set_permissions(self.file.metadata()?.permissions())?;
        let copied = self.copy(&file, format, retry_failed).and_then(|length| {
            file.sync_all()?;
            fs::rename(&beside, &target)?;
            sync_folder(&target)?;
            Ok(length)
        });
        match copied {
            Ok(length) => Ok((file, length)),
            Err(error) => {
                let _gone = fs::remove_file(&beside);
                Err(error)
            }
        }
    }

    fn copy(&self, to: &File, format: &Format, retry_failed: bool) -> io::Result<u64> {
        let mut out = Copy { out: BufWriter::new(to), lines: Vec::new(), length: 0 };
        let content = self.content().map_err(io::Error::other)?;
        let mut rows = Rows::new(content.reader, &self.path, format);
        while let Some(row) = rows.read().map_err(io::Error::other)? {
            match row {
                Row::Blank => continue,
                Row::Record(head) if head.is_again(retry_failed) => continue,
                Row::Record(_) | Row::Names => {}
            }
            let line = rows.buffer.strip_suffix(b"\n").unwrap_or(&rows.buffer);
            out.lines.extend_from_slice(line);
            out.lines.push(b'\n');
            if out.lines.len() >= 64 * 1024 {
                out.end(self.packed)?;
            }
        }
        out.end(self.packed)?;
        out.out.flush()?;
        Ok(out.length)
    }
}

/// Lines on their way into a new file.
struct Copy<'a> {
    out: BufWriter<&'a File>,
    lines: Vec<u8>,
    length: u64,
}

impl Copy<'_> {
    /// Writes the lines so far, as a frame where that is the form.
    fn end(&mut self, packed: bool) -> io::Result<()> {
        let framed = if packed { frame(&self.lines)? } else { Vec::new() };
        let bytes = if packed { &framed } else { &self.lines };
        self.out.write_all(bytes)?;
        self.length += bytes.len() as u64;
        self.lines.clear();
        Ok(())
    }
}

#[cfg(not(feature = "zstd"))]
fn frame(_: &[u8]) -> io::Result<Vec<u8>> {
    Err(io::ErrorKind::Unsupported.into())
}
