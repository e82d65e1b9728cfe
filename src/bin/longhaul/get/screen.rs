//! Standard output as the place of a body that nobody knows beforehand.
//!
//! It may be binary, which makes a terminal unusable; and whoever reads it may leave early, as
//! `head` does. Both end the copying, and neither is a failure of the answer, so they are
//! remembered here rather than guessed from an error.

use std::io::{self, Write};

/// Writes to `out`, piece by piece as it comes.
#[derive(Debug)]
pub(super) struct Screen<W> {
    out: W,
    /// Whether the beginning of the body is still to be looked at.
    guarded: bool,
    /// How the writing ended, where it ended early.
    pub(super) end: Option<End>,
}

/// Why no more can be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    /// The body is binary, and nothing of it was written.
    Binary,
    /// Nobody reads any more.
    Left,
}

impl<W: Write> Screen<W> {
    /// `guarded` refuses what is binary.
    pub(super) fn new(out: W, guarded: bool) -> Self {
        Self { out, guarded, end: None }
    }

    /// Writes something that is no body.
    pub(super) fn aside(&mut self, bytes: &[u8]) -> io::Result<()> {
        let written = self.out.write_all(bytes).and_then(|()| self.out.flush());
        written.inspect_err(|error| self.note(error))
    }

    fn note(&mut self, error: &io::Error) {
        if error.kind() == io::ErrorKind::BrokenPipe {
            self.end = Some(End::Left);
        }
    }
}

impl<W: Write> Write for Screen<W> {
    fn write(&mut self, piece: &[u8]) -> io::Result<usize> {
        // As curl: a NUL stands in no text, and at the beginning of nearly all that is none.
        if std::mem::take(&mut self.guarded) && piece.contains(&0) {
            self.end = Some(End::Binary);
            return Err(io::Error::other("binary output to a terminal"));
        }
        // What drips shall be seen to drip, so nothing waits for the end of its line.
        self.aside(piece)?;
        Ok(piece.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn binary_goes_to_files_and_pipes_only() {
        for (guarded, body, end) in [
            (true, &b"text\n"[..], None),
            (true, b"PK\x03\x04\0", Some(End::Binary)),
            (false, b"PK\x03\x04\0", None),
        ] {
            let mut screen = Screen::new(Vec::new(), guarded);
            screen.aside(b"HTTP/1.1 200 OK\r\n\r\n").unwrap();
            assert_eq!(screen.write_all(body).is_err(), end.is_some());
            assert_eq!(screen.end, end);
            assert_eq!(screen.out.ends_with(body), end.is_none());
        }
        // A terminal that took text for so long is not saved by stopping now.
        let mut screen = Screen::new(Vec::new(), true);
        screen.write_all(b"text").unwrap();
        screen.write_all(b"\0").unwrap();
        assert_eq!(screen.end, None);
    }

    #[test]
    fn a_reader_who_leaves_is_told_from_a_full_disk() {
        struct Failing(io::ErrorKind);
        impl Write for Failing {
            fn write(&mut self, _: &[u8]) -> io::Result<usize> {
                Err(self.0.into())
            }
            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        for (kind, end) in
            [(io::ErrorKind::BrokenPipe, Some(End::Left)), (io::ErrorKind::StorageFull, None)]
        {
            let mut screen = Screen::new(Failing(kind), false);
            assert_eq!(screen.write_all(b"x").unwrap_err().kind(), kind);
            assert_eq!(screen.end, end);
        }
    }
}
