//! What the plan may ask about the machine it runs on.
//!
//! A trait of few questions, so that the plan's refusals are tested without a file system, an
//! environment or a terminal.

use jiff::Timestamp;
use jiff::tz::TimeZone;
use longhaul::time::{Clock as _, SystemClock};
use std::fs;
use std::io::{self, IsTerminal};
use std::path::Path;

/// What a path leads to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A regular file.
    File,
    /// A folder.
    Folder,
    /// A pipe, a device.
    Other,
}

/// Files, environment and terminal.
pub(crate) trait World {
    /// A variable of the environment; `None` also where it is not UTF-8.
    fn var(&self, name: &str) -> Option<String>;

    /// What is at `path`.
    fn kind(&self, path: &Path) -> io::Result<Kind>;

    /// Whether the file at `path` has no bytes.
    fn is_empty(&self, path: &Path) -> bool;

    /// The text of a small file.
    fn read(&self, path: &Path) -> io::Result<String>;

    /// The bytes of a small file.
    fn read_bytes(&self, path: &Path) -> io::Result<Vec<u8>>;

    /// Whether somebody types into standard input.
    fn stdin_is_terminal(&self) -> bool;

    /// Whether somebody watches standard error.
    fn stderr_is_terminal(&self) -> bool;

    /// Whether somebody watches standard output.
    fn stdout_is_terminal(&self) -> bool;

    /// How wide the terminal is that shows standard output; `None` where it is none.
    fn columns(&self) -> Option<usize>;

    /// What time it is.
    fn now(&self) -> Timestamp;

    /// The time zone of this machine.
    fn zone(&self) -> TimeZone;
}

/// This machine.
#[derive(Debug)]
pub(crate) struct RealWorld;

impl World for RealWorld {
    fn var(&self, name: &str) -> Option<String> {
        std::env::var(name).ok()
    }

    fn kind(&self, path: &Path) -> io::Result<Kind> {
        let kind = fs::metadata(path)?.file_type();
        Ok(match (kind.is_file(), kind.is_dir()) {
            (true, _) => Kind::File,
            (_, true) => Kind::Folder,
            _ => Kind::Other,
        })
    }

    fn is_empty(&self, path: &Path) -> bool {
        fs::metadata(path).is_ok_and(|metadata| metadata.len() == 0)
    }

    fn read(&self, path: &Path) -> io::Result<String> {
        fs::read_to_string(path)
    }

    fn read_bytes(&self, path: &Path) -> io::Result<Vec<u8>> {
        fs::read(path)
    }

    fn stdin_is_terminal(&self) -> bool {
        io::stdin().is_terminal()
    }

    fn stderr_is_terminal(&self) -> bool {
        io::stderr().is_terminal()
    }

    fn stdout_is_terminal(&self) -> bool {
        io::stdout().is_terminal()
    }

    fn columns(&self) -> Option<usize> {
        let (width, _) = terminal_size::terminal_size_of(io::stdout())?;
        Some(width.0.into())
    }

    fn now(&self) -> Timestamp {
        // A clock beyond all calendars is one that was never set.
        Timestamp::try_from(SystemClock.wall()).unwrap_or(Timestamp::UNIX_EPOCH)
    }

    fn zone(&self) -> TimeZone {
        TimeZone::system()
    }
}
