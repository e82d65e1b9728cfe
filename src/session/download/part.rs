//! The file that grows beside its name, and the note of what it is a part of.
//!
//! `PATH.part` holds the bytes, `PATH.part.json` says of which state of which URL they are, and how
//! many of them are on disk: after a power cut a file may have its length and not its content. So
//! the bytes are forced to disk every [`CHECKPOINT`] and when the download ends early, and only what
//! the note counts is gone on from. The URL is kept as a digest, since URLs carry tokens. A note that
//! is missing, torn or about another URL makes the part worthless, and the download begins anew; it
//! is never an error.

use super::plan::Plan;
use crate::error::Error;
use crate::message::unwritten;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use std::ffi::OsString;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};
use url::Url;

/// How many bytes the end of the program or of the power may cost.
const CHECKPOINT: u64 = 16 << 20;

/// What stands beside a part.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Note {
    /// SHA-256 of the URL that was asked for.
    url: String,
    validator: String,
    length: Option<u64>,
    /// How many bytes are on disk.
    have: u64,
}

/// The part of one download, locked as long as this lives.
#[derive(Debug)]
pub(super) struct Part {
    file: File,
    target: PathBuf,
    path: PathBuf,
    note: PathBuf,
    url: String,
    /// How many bytes were written, and what stands beside them once it was begun.
    have: u64,
    noted: Option<Note>,
    /// Whether the part has its name.
    done: bool,
}

impl Part {
    /// Opens or makes the part for `target`, and says what can be resumed of it.
    pub(super) fn open(target: &Path, url: &Url, resume: bool) -> Result<(Self, Plan), Error> {
        let name = target.file_name().ok_or_else(|| {
            Error::config(format!("{} does not end in a file name", target.display()))
        })?;
        if fs::metadata(target).is_ok_and(|found| !found.is_file()) {
            // The complete part would take its place, and `/dev/null` would be a file from then on.
            let text = "it is no regular file, so nothing can be gone on with; name one";
            return Err(unwritten(target, io::Error::new(io::ErrorKind::InvalidInput, text)));
        }
        let beside = |suffix: &str| {
            let mut name = OsString::from(name);
            name.push(suffix);
            target.with_file_name(name)
        };
        let (path, note) = (beside(".part"), beside(".part.json"));
        let file = open_locked(&path)?;
        let url = digest(url);
        let target = target.to_owned();
        let mut part = Self { file, target, path, note, url, have: 0, noted: None, done: false };
        let mut plan = Plan::default();
        if resume {
            let there = part.file.metadata().map_err(|error| part.failed(error))?.len();
            if let Some(note) = part.read_note().filter(|note| {
                let fits = (1..=note.length.unwrap_or(u64::MAX)).contains(&note.have);
                note.url == part.url && fits && note.have <= there
            }) {
                part.have = note.have;
                plan.have = note.have;
                plan.length = note.length;
                plan.validator = Some(note.validator);
            }
        }
        Ok((part, plan))
    }

    fn read_note(&self) -> Option<Note> {
        serde_json::from_slice(&fs::read(&self.note).ok()?).ok()
    }

    /// Cuts the part to what the plan has, and notes what it is a part of.
    pub(super) fn begin(&mut self, plan: &Plan) -> Result<(), Error> {
        // What is on disk of it: of a part that was opened all that its note counted, of one that
        // this download has written what it has forced there.
        let on_disk = self.noted.take().map_or(self.have, |note| note.have).min(plan.have);
        // The old note first: never may it stand beside the bytes of another file.
        self.remove_note()?;
        self.file
            .set_len(plan.have)
            .and_then(|()| self.file.seek(SeekFrom::Start(plan.have)))
            .map_err(|error| self.failed(error))?;
        self.have = plan.have;
        let Some(validator) = plan.validator.clone() else { return Ok(()) };
        let url = self.url.clone();
        self.put_note(Note { url, validator, length: plan.length, have: on_disk })
    }

    pub(super) fn write(&mut self, bytes: &[u8]) -> Result<(), Error> {
        self.file.write_all(bytes).map_err(|error| self.failed(error))?;
        self.have = self.have.saturating_add(bytes.len() as u64);
        match &self.noted {
            Some(note) if self.have - note.have.min(self.have) >= CHECKPOINT => self.checkpoint(),
            _ => Ok(()),
        }
    }

    /// Forces to disk what was written, and counts it.
    fn checkpoint(&mut self) -> Result<(), Error> {
        let Some(note) = self.noted.take() else { return Ok(()) };
        self.file.sync_data().map_err(|error| self.failed(error))?;
        self.put_note(Note { have: self.have, ..note })
    }

    fn put_note(&mut self, note: Note) -> Result<(), Error> {
        let text = serde_json::to_vec(&note).unwrap_or_default();
        self.noted = Some(note);
        fs::write(&self.note, text).map_err(|error| unwritten(&self.note, error))
    }

    /// Gives the complete file its name, once it is on disk.
    pub(super) fn finish(mut self) -> Result<(), Error> {
        self.file.sync_all().map_err(|error| self.failed(error))?;
        fs::rename(&self.path, &self.target).map_err(|error| unwritten(&self.target, error))?;
        self.done = true;
        // A note without its part means nothing, so it goes last.
        self.remove_note()?;
        sync_folder(&self.target).map_err(|error| unwritten(&self.target, error))
    }

    fn remove_note(&self) -> Result<(), Error> {
        match fs::remove_file(&self.note) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(unwritten(&self.note, error))
            }
            _ => Ok(()),
        }
    }

    fn failed(&self, error: io::Error) -> Error {
        unwritten(&self.path, error)
    }
}

/// An attempt that brought nothing leaves nothing, and one that brought something counts it.
impl Drop for Part {
    fn drop(&mut self) {
        if self.done {
            return;
        }
        // Whoever comes later begins anew where this fails; there is nobody to tell it to.
        if self.file.metadata().is_ok_and(|metadata| metadata.len() == 0) {
            // Whoever holds the lock may remove it, and whoever waited for it opens another.
            let _ = self.remove_note();
            let _ = fs::remove_file(&self.path);
        } else {
            let _ = self.checkpoint();
        }
    }
}

/// Opens or makes the file, and locks it against other downloads.
fn open_locked(path: &Path) -> Result<File, Error> {
    loop {
        let mut options = OpenOptions::new();
        let file = options
            .write(true)
            .create(true)
            .truncate(false)
            .open(path)
            .map_err(|error| unwritten(path, error))?;
        match file.try_lock() {
            Ok(()) if !is_still(path, &file) => {}
            Ok(()) => return Ok(file),
            Err(TryLockError::WouldBlock) => {
                return Err(Error::config(format!(
                    "{} is being written by another download; wait for it, or choose another path",
                    path.display()
                )));
            }
            Err(TryLockError::Error(error)) => {
                log::warn!(
                    target: "longhaul::download",
                    "{} cannot be locked: {error}", path.display()
                );
                return Ok(file);
            }
        }
    }
}

/// Whether the path still names this file: another download may have finished or removed it
/// between the opening and the lock.
#[cfg(unix)]
fn is_still(path: &Path, file: &File) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    let of = |metadata: fs::Metadata| (metadata.dev(), metadata.ino());
    fs::metadata(path).is_ok_and(|named| file.metadata().is_ok_and(|open| of(named) == of(open)))
}

#[cfg(not(unix))]
fn is_still(path: &Path, _: &File) -> bool {
    path.exists()
}

/// A rename is on disk once its folder is.
#[cfg(unix)]
fn sync_folder(path: &Path) -> io::Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    File::open(folder.unwrap_or(Path::new(".")))?.sync_all()
}

#[cfg(not(unix))]
fn sync_folder(_: &Path) -> io::Result<()> {
    Ok(())
}

fn digest(url: &Url) -> String {
    let text = url.as_str();
    let text = text.split_once('#').map_or(text, |(before, _)| before);
    Sha256::digest(text).iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorKind;

    fn url(text: &str) -> Url {
        Url::parse(text).unwrap()
    }

    fn plan() -> Plan {
        Plan { have: 0, length: Some(9), validator: Some("\"a\"".into()) }
    }

    /// A folder with the first five bytes of a file of nine.
    fn interrupted() -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("file.bin");
        let (mut part, nothing) =
            Part::open(&target, &url("http://h/f?token=s3cret"), true).unwrap();
        assert_eq!(nothing, Plan::default());
        part.begin(&plan()).unwrap();
        part.write(b"12345").unwrap();
        (folder, target)
    }

    fn left(target: &Path, url_text: &str, resume: bool) -> Plan {
        Part::open(target, &url(url_text), resume).unwrap().1
    }

    #[test]
    fn what_is_left_is_known_again_and_nothing_else_is() {
        let (_folder, target) = interrupted();
        let known = Plan { have: 5, ..plan() };
        assert_eq!(left(&target, "http://h/f?token=s3cret#other", true), known);
        assert_eq!(left(&target, "http://h/f?token=s3cret", false), Plan::default());
        assert_eq!(left(&target, "http://h/f?token=other", true), Plan::default());
        let note = fs::read_to_string(target.with_file_name("file.bin.part.json")).unwrap();
        assert!(!note.contains("s3cret"), "{note}");
    }

    #[test]
    fn a_note_that_cannot_be_is_no_note() {
        let address = url("http://h/f?token=s3cret");
        let note = |have: u64| {
            let (url, validator) = (digest(&address), "\"a\"".to_owned());
            serde_json::to_string(&Note { url, validator, length: Some(9), have }).unwrap()
        };
        for (note, have) in [
            (Some(note(5)), 5),
            (Some(note(4)), 4),
            (Some(note(0)), 0),
            // More than there are, and more than the file has.
            (Some(note(6)), 0),
            (Some(note(10)), 0),
            (Some("{\"url\":".to_owned()), 0),
            (Some("[]".to_owned()), 0),
            (None, 0),
        ] {
            let (_folder, target) = interrupted();
            let file = target.with_file_name("file.bin.part.json");
            match &note {
                Some(note) => fs::write(file, note).unwrap(),
                None => fs::remove_file(file).unwrap(),
            }
            assert_eq!(left(&target, address.as_str(), true).have, have, "{note:?}");
        }
    }

    #[test]
    fn what_is_not_known_to_be_on_disk_is_fetched_again() {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("file.bin");
        let address = url("http://h/f");
        let long = Plan { have: 0, length: None, validator: Some("\"a\"".into()) };
        let (mut part, _) = Part::open(&target, &address, true).unwrap();
        part.begin(&long).unwrap();
        let piece = vec![7; 1 << 20];
        let counted = |part: &Part| part.read_note().unwrap().have;
        for megabytes in 1..=20 {
            part.write(&piece).unwrap();
            assert_eq!(counted(&part), if megabytes < 16 { 0 } else { CHECKPOINT });
        }
        // Going on within the same download counts nothing that is not there.
        part.begin(&Plan { have: 20 << 20, ..long.clone() }).unwrap();
        assert_eq!(counted(&part), CHECKPOINT);
        // The end of the program, which drops nothing.
        std::mem::forget(part);
        let note = fs::read(target.with_file_name("file.bin.part.json")).unwrap();
        let copy = folder.path().join("copy.bin");
        fs::copy(target.with_file_name("file.bin.part"), copy.with_file_name("copy.bin.part"))
            .unwrap();
        fs::write(copy.with_file_name("copy.bin.part.json"), note).unwrap();
        let (mut part, plan) = Part::open(&copy, &address, true).unwrap();
        assert_eq!(plan, Plan { have: CHECKPOINT, ..long });
        part.begin(&plan).unwrap();
        assert_eq!(part.file.metadata().unwrap().len(), CHECKPOINT);
        part.write(b"end").unwrap();
        drop(part);
        assert_eq!(Part::open(&copy, &address, true).unwrap().1.have, CHECKPOINT + 3);
    }

    #[cfg(unix)]
    #[test]
    fn what_is_no_file_does_not_become_one() {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("socket");
        let _listening = std::os::unix::net::UnixListener::bind(&target).unwrap();
        let error = Part::open(&target, &url("http://h/f"), false).unwrap_err();
        assert!(error.message().contains("it is no regular file"), "{error}");
        assert!(!target.with_file_name("socket.part").exists());
    }

    #[test]
    fn two_downloads_do_not_write_one_file() {
        let (_folder, target) = interrupted();
        let held = Part::open(&target, &url("http://h/f"), true).unwrap();
        let error = Part::open(&target, &url("http://h/f"), true).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Config);
        assert!(error.message().contains("file.bin.part"), "{error}");
        drop(held);
        Part::open(&target, &url("http://h/f"), true).unwrap();
    }

    #[test]
    fn a_part_without_a_validator_leaves_no_note() {
        let (folder, target) = interrupted();
        let (mut part, _) = Part::open(&target, &url("http://h/f"), true).unwrap();
        part.begin(&Plan::default()).unwrap();
        assert!(!folder.path().join("file.bin.part.json").exists());
        assert_eq!(fs::read(folder.path().join("file.bin.part")).unwrap(), b"");
    }

    #[test]
    fn the_finished_file_stands_alone_also_where_an_old_one_stood() {
        let (folder, target) = interrupted();
        fs::write(&target, "old").unwrap();
        let (mut part, plan) = Part::open(&target, &url("http://h/f?token=s3cret"), true).unwrap();
        part.begin(&plan).unwrap();
        part.write(b"6789").unwrap();
        assert_eq!(fs::read(&target).unwrap(), b"old");
        part.finish().unwrap();
        assert_eq!(fs::read(&target).unwrap(), b"123456789");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }
}
