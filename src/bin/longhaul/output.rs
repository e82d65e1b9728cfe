//! Standard output, for what a command was asked to tell.

use crate::exit::Exit;
use crate::usage::UsageError;
use std::io::{self, Write};

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
