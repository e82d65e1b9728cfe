//! What a crash leaves at the end of a file that consists of whole pieces: frames of zstd, members of
//! gzip.
//!
//! Pieces are written with one call each, so a killed process leaves at most the beginning of one,
//! and a crash of the machine zeros where one was to be. Both are cut off. A piece that is broken and
//! has others behind it is another matter: somebody has written into the file, and cutting would lose
//! what is whole.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Seek, SeekFrom};

const BLOCK: usize = 128 * 1024;

/// What a file consists of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Pieces {
    /// Where the last whole one ends.
    pub(super) end: u64,
    pub(super) rest: Rest,
}

/// What stands behind the whole pieces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Rest {
    Nothing,
    /// The beginning of a piece, or zeros.
    Torn(u64),
    /// Something else.
    Damaged,
}

impl Rest {
    /// What stands there from `end` on; each piece begins with the bytes of `begins`. `at_end` is
    /// whether a piece that may be whole so far met the end of the file.
    pub(super) fn of(file: &File, end: u64, at_end: bool, begins: &Begins<'_>) -> io::Result<Self> {
        Ok(match file.metadata()?.len().saturating_sub(end) {
            0 => Self::Nothing,
            torn if at_end || is_torn(file, end, begins)? => Self::Torn(torn),
            _ => Self::Damaged,
        })
    }
}

/// How the beginning of a piece is known.
pub(super) struct Begins<'a> {
    pub(super) magic: &'a [u8],
    /// Whether a piece does begin at this place, where those bytes stand. They may stand within a
    /// piece, too.
    pub(super) is_piece: &'a dyn Fn(u64) -> io::Result<bool>,
}

/// Whether what begins here and is no whole piece is what a crash leaves: nothing but zeros, or a
/// piece behind which no other one begins.
fn is_torn(mut file: &File, from: u64, of: &Begins<'_>) -> io::Result<bool> {
    let magic = of.magic;
    file.seek(SeekFrom::Start(from))?;
    let mut reader = BufReader::with_capacity(BLOCK, file);
    let (mut window, mut begins, mut zeros) = (Vec::with_capacity(BLOCK + magic.len()), None, true);
    // Where the window begins in the file.
    let mut at = from;
    loop {
        let block = reader.fill_buf()?;
        if block.is_empty() {
            return Ok(true);
        }
        let read = block.len();
        zeros &= block.iter().all(|byte| *byte == 0);
        window.extend_from_slice(block);
        reader.consume(read);
        let begins_here = window.len() >= magic.len();
        // At the first place it is the piece itself.
        let skip = usize::from(begins.is_none());
        if begins.is_none() && begins_here {
            begins = Some(window.starts_with(magic));
        }
        if begins == Some(false) && !zeros {
            return Ok(false);
        }
        if begins.is_none() {
            continue;
        }
        let searched = window.get(skip.min(window.len())..).unwrap_or_default();
        for found in memchr::memmem::find_iter(searched, magic) {
            if (of.is_piece)(at + (skip + found) as u64)? {
                return Ok(false);
            }
        }
        // Whoever looked at a piece has moved the place in the file; all that was read is in the window.
        file.seek(SeekFrom::Start(at + window.len() as u64))?;
        let settled = window.len().saturating_sub(magic.len() - 1);
        window.drain(..settled);
        at += settled as u64;
    }
}
