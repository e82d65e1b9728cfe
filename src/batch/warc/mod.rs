//! WARC 1.1: what a run was sent, in the form that archives keep and tools read.
//!
//! A folder of bodies has the pages; a WARC file has the messages: request and response as they went
//! over the wire, with heads, chunks and content coding, each hop of a redirect and each attempt that
//! was answered, and the record of the run beside them. `warcio`, `pywb` and their relatives index and
//! replay it.
//!
//! What is decided here:
//!
//! - **One gzip member a record**, so that a place (`warc_file`, `warc_offset`, `warc_length` of the
//!   results) can be read without the rest of the file.
//! - **A file is only ever appended to.** The records of a URL are written with one call, before the
//!   record of the results that names them, and both are synced in this order. What a kill leaves torn
//!   is the last member, and a resumption cuts it off ([`torn`](super::torn)). Then it begins a file of
//!   its own, so that each file tells of one run.
//! - **The user's credentials stay out.** Archives are passed on; the values of `Authorization`,
//!   `Cookie` and their like in requests are written as `***`, unless they are asked for. Responses stay
//!   as they came, to the byte.
//! - **Equal payloads are written once**, the later ones as *revisit* records ([`group`]). A resumption
//!   remembers none of before.
//!
//! The crate `warc` writes records, but compresses none by itself, computes no digest and knows nothing
//! of revisits or of places; what it would have saved is [`fields`], with chrono, nom and an old uuid in
//! exchange.

mod fields;
mod group;
mod members;
mod packed;
mod payload;

use super::Record;
use super::journal::{Existing, lock};
use super::sink::{SinkError, io_error};
use super::syncing::sync_bodies;
use super::torn::Rest;
use crate::error::{Attempt, Error, ErrorKind};
use crate::rng::Rng;
use crate::session::SessionBuilder;
use fields::Id;
use group::{Group, Seen, write_info};
use packed::Packed;
use std::fmt;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

/// The end of each name.
const SUFFIX: &str = ".warc.gz";
/// From this size on the next URL goes into a new file; what the standard recommends.
const SIZE: u64 = 1024 * 1024 * 1024;

/// Where WARC files go, before any of them is touched.
#[derive(Debug)]
pub struct WarcFiles {
    names: Names,
    size: u64,
    credentials: bool,
    existing: Existing,
    seen: Arc<Seen>,
    /// The last file that is there, locked, and up to where it is whole.
    last: Option<(PathBuf, File, u64)>,
    /// Those that are there.
    found: Vec<u32>,
}

/// The names of the files: `prefix-00000.warc.gz` and so on.
#[derive(Debug, Clone)]
struct Names {
    folder: PathBuf,
    prefix: String,
}

/// Writes WARC files.
pub struct Warc {
    names: Names,
    size: u64,
    credentials: bool,
    rng: Rng,
    file: File,
    path: PathBuf,
    number: u32,
    /// The record that tells of the file.
    info: Id,
    /// Up to where it consists of whole records.
    complete: u64,
    /// Whether a URL stands in it.
    used: bool,
    seen: Arc<Seen>,
    unsynced: Vec<PathBuf>,
}

/// Packs answers on the threads that receive them, for files that are opened later.
#[derive(Debug, Clone, Default)]
pub(super) struct Packer(Arc<Seen>);

impl Packer {
    /// A recipe whose sessions keep their messages and pack them.
    pub(super) fn of(&self, session: SessionBuilder) -> SessionBuilder {
        let seen = Arc::clone(&self.0);
        // As much as is read: the ceilings of the session are those of what is kept.
        session.keep_wire(u64::MAX).on_exchange(move |exchange| Packed::leave(exchange, &seen))
    }
}

impl WarcFiles {
    /// Files `prefix-00000.warc.gz`, `prefix-00001.warc.gz` and so on for the name `prefix.warc.gz`,
    /// which may have a folder. Nothing is changed yet.
    ///
    /// # Errors
    /// `Config` for another kind of name, and for files that are there and would be lost. `Io` for a
    /// folder that cannot be read. When resuming, `Config` for a last file that another run writes,
    /// and `Io` for one that cannot be read or is damaged in its middle, with the byte.
    pub fn open(name: impl AsRef<Path>, existing: Existing) -> Result<Self, Error> {
        let names = Names::of(name.as_ref())?;
        let found = names.found()?;
        let mut files = Self {
            names,
            size: SIZE,
            credentials: false,
            existing,
            seen: Arc::default(),
            last: None,
            found,
        };
        match (existing, files.found.last()) {
            (_, None) | (Existing::Overwrite, _) => {}
            (Existing::Refuse, Some(last)) => {
                return Err(Error::config(format!(
                    "{} is there already; resume the run, overwrite it on purpose, or name other \
                     WARC files",
                    files.names.path(*last).display()
                )));
            }
            (Existing::Resume { .. }, Some(last)) => {
                files.last = Some(look_at(files.names.path(*last))?);
            }
        }
        Ok(files)
    }

    /// From which size on the next URL goes into a new file.
    ///
    /// # Defaults
    /// 1 GiB. A file is longer than that by the records of one URL.
    #[must_use]
    pub fn size(mut self, bytes: u64) -> Self {
        self.size = bytes;
        self
    }

    /// Whether the values of `Authorization`, `Cookie` and other fields of requests that hold
    /// credentials are written as they were sent.
    ///
    /// # Defaults
    /// No: `***` stands in their place.
    #[must_use]
    pub fn credentials(mut self, written: bool) -> Self {
        self.credentials = written;
        self
    }

    /// Has answers packed by these sessions as they are received.
    pub(super) fn packed_by(mut self, packer: &Packer) -> Self {
        self.seen = Arc::clone(&packer.0);
        self
    }

    /// How many bytes of a torn record are to be cut off.
    pub fn torn(&self) -> u64 {
        let length = |file: &File| file.metadata().map_or(0, |metadata| metadata.len());
        self.last.as_ref().map_or(0, |(_, file, end)| length(file).saturating_sub(*end))
    }

    /// Cuts off what is torn and begins a file. From here on files are changed.
    ///
    /// # Errors
    /// `Io`.
    pub fn begin(self, now: SystemTime) -> Result<Warc, Error> {
        let Self { names, size, credentials, existing, seen, last, found } = self;
        let wrong = |path: &Path, error: io::Error| {
            let text =
                format!("{} cannot be written: {error}; name other WARC files", path.display());
            io_error(text, error)
        };
        let mut number = found.last().map_or(0, |last| last.saturating_add(1));
        if existing == Existing::Overwrite {
            for number in found {
                let path = names.path(number);
                fs::remove_file(&path).map_err(|error| wrong(&path, error))?;
            }
            number = 0;
        }
        if let Some((path, file, end)) = last {
            file.set_len(end).map_err(|error| wrong(&path, error))?;
            if end == 0 {
                fs::remove_file(&path).map_err(|error| wrong(&path, error))?;
                number = number.saturating_sub(1);
            }
        }
        let path = names.path(number);
        let mut rng = Rng::from_os();
        let opened = begin_file(&path, &mut rng, now).map_err(|error| wrong(&path, error))?;
        lock(&opened.file, &path)?;
        Ok(Warc {
            names,
            size,
            credentials,
            rng,
            file: opened.file,
            unsynced: vec![path.clone()],
            path,
            number,
            info: opened.info,
            complete: opened.length,
            used: false,
            seen,
        })
    }
}

impl Warc {
    /// Writes what these attempts carried: of each that was answered the response and the request.
    /// Their recipe has to [keep it](crate::SessionBuilder::keep_wire).
    ///
    /// With a record, the place of the last answer is put into it, and it is written as metadata of
    /// that.
    ///
    /// # Errors
    /// [`SinkError::Full`] and [`SinkError::Failed`]: nothing of it stands in the file then, as far as
    /// that can be cut.
    pub fn store(
        &mut self,
        attempts: &[Attempt],
        mut record: Option<&mut Record>,
        now: SystemTime,
    ) -> Result<(), SinkError> {
        let mut exchanges =
            attempts.iter().filter_map(|attempt| attempt.exchange.as_deref()).peekable();
        if exchanges.peek().is_none() {
            return Ok(());
        }
        if self.used && self.complete >= self.size {
            self.turn(now).map_err(|error| self.failed(error))?;
        }
        let mut group = Group::new(&mut self.rng, self.info, self.credentials);
        let (path, complete) = (self.path.display().to_string(), self.complete);
        let failed = |error: io::Error| SinkError::of(error, &path);
        for exchange in exchanges {
            group.add(exchange, &self.seen).map_err(failed)?;
        }
        if let Some(record) = &mut record {
            let answered = attempts.last().is_some_and(|last| last.exchange.is_some());
            if let Some(answer) = group.last().filter(|_| answered) {
                record.warc_file = self.path.file_name().map(|name| name.to_string_lossy().into());
                record.warc_offset = Some(complete + answer.offset);
                record.warc_length = Some(answer.length);
            }
            group.add_metadata(record, now).map_err(failed)?;
        }
        if let Err(error) = self.file.write_all(&group.bytes) {
            if let Err(error) = self.file.set_len(self.complete) {
                log::warn!(target: "longhaul::results", "{path}: a torn record is left at its end: {error}");
            }
            return Err(failed(error));
        }
        self.complete += group.bytes.len() as u64;
        self.seen.add(group.into_new());
        self.used = true;
        if self.unsynced.last() != Some(&self.path) {
            self.unsynced.push(self.path.clone());
        }
        Ok(())
    }

    /// The file that is written to.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns once every record so far will survive a crash of the machine.
    ///
    /// # Errors
    /// [`SinkError::Full`] and [`SinkError::Failed`], with the file.
    pub fn sync(&mut self) -> Result<(), SinkError> {
        sync_bodies(&std::mem::take(&mut self.unsynced))
    }

    /// The files that are not synced yet; whoever takes them has to.
    pub(super) fn unsynced(&mut self) -> &mut Vec<PathBuf> {
        &mut self.unsynced
    }

    /// Goes on in the next file.
    fn turn(&mut self, now: SystemTime) -> io::Result<()> {
        let number = self.number.saturating_add(1);
        let path = self.names.path(number);
        let opened = begin_file(&path, &mut self.rng, now)?;
        // It is new, so nobody else can have it.
        let _locked = opened.file.try_lock();
        (self.file, self.info, self.complete) = (opened.file, opened.info, opened.length);
        (self.path, self.number, self.used) = (path, number, false);
        Ok(())
    }

    fn failed(&self, error: io::Error) -> SinkError {
        SinkError::of(error, &self.path.display().to_string())
    }
}

impl fmt::Debug for Warc {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Warc({}, {} bytes)", self.path.display(), self.complete)
    }
}

impl Names {
    fn of(name: &Path) -> Result<Self, Error> {
        let prefix = name
            .file_name()
            .and_then(|text| text.to_str())
            .and_then(|text| text.strip_suffix(SUFFIX))
            .filter(|prefix| !prefix.is_empty());
        let Some(prefix) = prefix else {
            let shown = name.display();
            return Err(Error::config(format!(
                "{shown} is no name for WARC files, which are compressed record by record; name \
                 PREFIX{SUFFIX}"
            )));
        };
        let folder = name.parent().unwrap_or(Path::new("")).to_path_buf();
        Ok(Self { folder, prefix: prefix.to_owned() })
    }

    fn path(&self, number: u32) -> PathBuf {
        self.folder.join(format!("{}-{number:05}{SUFFIX}", self.prefix))
    }

    /// The numbers of the files that are there, in order.
    fn found(&self) -> Result<Vec<u32>, Error> {
        let folder = if self.folder.as_os_str().is_empty() { Path::new(".") } else { &self.folder };
        let wrong = |error: io::Error| {
            let text = format!(
                "the folder {} for WARC files cannot be read: {error}; make it, or name another",
                folder.display()
            );
            io_error(text, error)
        };
        let mut numbers = Vec::new();
        for entry in fs::read_dir(folder).map_err(wrong)? {
            let name = entry.map_err(wrong)?.file_name();
            let number: Option<u32> = name
                .to_str()
                .and_then(|name| name.strip_prefix(&self.prefix)?.strip_prefix('-'))
                .and_then(|rest| rest.strip_suffix(SUFFIX))
                .filter(|digits| {
                    digits.len() >= 5 && digits.bytes().all(|byte| byte.is_ascii_digit())
                })
                .and_then(|digits| digits.parse().ok());
            numbers.extend(number);
        }
        numbers.sort_unstable();
        Ok(numbers)
    }
}

/// A file with its first record.
struct Opened {
    file: File,
    info: Id,
    length: u64,
}

fn begin_file(path: &Path, rng: &mut Rng, now: SystemTime) -> io::Result<Opened> {
    let mut file = OpenOptions::new().append(true).create_new(true).open(path)?;
    let info = Id::random(rng);
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let mut bytes = Vec::new();
    write_info(&mut bytes, info, &name, now)?;
    file.write_all(&bytes)?;
    Ok(Opened { file, info, length: bytes.len() as u64 })
}

/// The last file of a run that is resumed, locked, and up to where it is whole.
fn look_at(path: PathBuf) -> Result<(PathBuf, File, u64), Error> {
    let unreadable =
        |error: io::Error| io_error(format!("{} cannot be read: {error}", path.display()), error);
    let file = OpenOptions::new().read(true).append(true).open(&path).map_err(unreadable)?;
    lock(&file, &path)?;
    let found = members::look_through(&file).map_err(unreadable)?;
    if found.rest == Rest::Damaged {
        let text = format!(
            "{} holds no whole record at byte {}, and more behind it; nothing was changed: name \
             other WARC files",
            path.display(),
            found.end
        );
        return Err(Error::local(ErrorKind::Io, text));
    }
    Ok((path, file, found.end))
}

#[cfg(test)]
mod tests;
