//! Standard error, which a bar, messages, log lines and perhaps the records share.
//!
//! A bar is a line that is drawn again and again. Whatever else is written has to wait until it is
//! taken away, and the bar comes back below it; so everything that this program writes to a terminal
//! goes through here.

use indicatif::{MultiProgress, ProgressBar};
use std::io::{self, Write};
use std::sync::LazyLock;

static SCREEN: LazyLock<MultiProgress> = LazyLock::new(MultiProgress::new);

/// Puts a bar on the screen, where there is a terminal.
pub(super) fn add(bar: ProgressBar) -> ProgressBar {
    SCREEN.add(bar)
}

/// Takes a bar away.
pub(super) fn remove(bar: &ProgressBar) {
    bar.finish_and_clear();
    SCREEN.remove(bar);
}

/// Prints a line to standard error without tearing a bar. Nobody may be there to read it any more,
/// which is no reason to stop.
pub(crate) fn print(text: &str) {
    SCREEN.suspend(|| {
        let _ = writeln!(io::stderr().lock(), "{text}");
    });
}

/// Standard error for the logger, so that its lines go above the bar.
#[derive(Debug)]
pub(crate) struct LogTarget;

impl Write for LogTarget {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        SCREEN.suspend(|| io::stderr().lock().write(bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        io::stderr().lock().flush()
    }
}

/// Standard output on the terminal of the bar, for records, each of which is written at once and whole.
#[derive(Debug)]
pub(crate) struct AboveTheBar;

impl Write for AboveTheBar {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        SCREEN.suspend(|| {
            let mut out = io::stdout().lock();
            out.write_all(bytes)?;
            out.flush()?;
            Ok(bytes.len())
        })
    }

    fn flush(&mut self) -> io::Result<()> {
        io::stdout().lock().flush()
    }
}
