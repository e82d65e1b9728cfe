//! Opening, locking and syncing results files.

use crate::batch::sink::io_error;
use crate::error::Error;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io;
use std::path::Path;

/// The file, whether it is a regular one, and whether it was made now.
pub(super) fn open(path: &Path) -> Result<(File, bool, bool), Error> {
    let wrong = |error: io::Error| {
        let text = format!(
            "{} cannot be opened for writing: {error}; name a file in a folder that is there and \
             may be written to",
            path.display()
        );
        io_error(text, error)
    };
    if fs::metadata(path).is_ok_and(|metadata| !metadata.is_file()) {
        let file = OpenOptions::new().write(true).open(path).map_err(wrong)?;
        return Ok((file, false, false));
    }
    loop {
        let mut options = OpenOptions::new();
        options.read(true).append(true);
        let (file, fresh) = match options.clone().create_new(true).open(path) {
            Ok(file) => (file, true),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                (options.create(true).open(path).map_err(wrong)?, false)
            }
            Err(error) => return Err(wrong(error)),
        };
        lock(&file, path)?;
        // Between opening and locking, another run may have renamed a new file over this one.
        if is_still_at(&file, path) {
            return Ok((file, true, fresh));
        }
    }
}

pub(in crate::batch) fn lock(file: &File, path: &Path) -> Result<(), Error> {
    match file.try_lock() {
        Ok(()) => Ok(()),
        Err(TryLockError::WouldBlock) => Err(Error::config(format!(
            "{} is being written by another run; wait for its end, or name another file",
            path.display()
        ))),
        Err(TryLockError::Error(error)) => {
            log::warn!(
                target: "longhaul::results",
                "{} cannot be locked ({error}); see to it that only one run writes it",
                path.display()
            );
            Ok(())
        }
    }
}

#[cfg(unix)]
fn is_still_at(file: &File, path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    match (file.metadata(), fs::metadata(path)) {
        (Ok(open), Ok(named)) => (open.dev(), open.ino()) == (named.dev(), named.ino()),
        _ => false,
    }
}

/// A file that is open cannot be renamed over here.
#[cfg(not(unix))]
fn is_still_at(_: &File, _: &Path) -> bool {
    true
}

#[cfg(unix)]
pub(super) fn sync_folder(path: &Path) -> io::Result<()> {
    path.parent().map_or(Ok(()), |folder| File::open(folder)?.sync_all())
}

#[cfg(not(unix))]
pub(super) fn sync_folder(_: &Path) -> io::Result<()> {
    Ok(())
}
