//! Where a command puts what it was asked for: standard output, or a file.

use crate::exit::Exit;
use crate::usage::UsageError;
use std::io::{self, Write};
use std::path::Path;

/// Prints `text` and a line break.
///
/// # Errors
/// Standard output that cannot be written; but a reader who has left is none, as behind `head`.
pub(crate) fn print(text: &str) -> Result<Exit, UsageError> {
    let mut out = io::stdout().lock();
    match writeln!(out, "{text}").and_then(|()| out.flush()) {
        Ok(()) => Ok(Exit::SUCCESS),
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(Exit::SUCCESS),
        Err(error) => Err(UsageError::new(
            "standard output",
            format!("cannot be written: {error}; send it elsewhere"),
        )),
    }
}

/// Whether a file can be made there; a wrong folder is told before the work and not after it.
///
/// # Errors
/// A folder, and a file in one that is none.
pub(crate) fn can_be_made(place: &str, path: &Path) -> Result<(), UsageError> {
    if path.is_dir() {
        let text = format!("{} is a folder; name a file in it", path.display());
        return Err(UsageError::new(place, text));
    }
    match path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        Some(folder) if !folder.is_dir() => {
            let text = format!("{} is no folder; make it, or name another file", folder.display());
            Err(UsageError::new(place, text))
        }
        _ => Ok(()),
    }
}
