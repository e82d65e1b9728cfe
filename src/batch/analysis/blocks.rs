//! A file of lines in blocks of whole lines.

use super::super::content::unreadable;
use crate::error::{Error, ErrorKind};
use std::io::{BufRead, Read};
use std::path::Path;

/// How much is read at once.
const BLOCK: u64 = 1 << 20;

/// The longest line that is read. A record has a bounded length but for what the input brought as
/// `meta`; a file without any line feed is none of ours.
const LONGEST_LINE: u64 = 64 << 20;

/// Some lines that follow each other.
#[derive(Debug)]
pub(super) struct Block {
    /// The number of its first line, from 1.
    pub(super) first_line: u64,
    pub(super) bytes: Vec<u8>,
}

impl Block {
    /// The lines with their numbers; the last one of a file may lack its line feed.
    pub(super) fn lines(&self) -> impl Iterator<Item = (u64, &[u8])> {
        let bom = if self.first_line == 1 { &b"\xef\xbb\xbf"[..] } else { &[] };
        let bytes = self.bytes.strip_prefix(bom).unwrap_or(&self.bytes);
        (self.first_line..).zip(bytes.split_inclusive(|byte| *byte == b'\n'))
    }
}

/// The blocks of a file.
pub(super) struct Blocks<'a> {
    name: &'a Path,
    reader: Box<dyn BufRead + Send + 'a>,
    number: u64,
    line: u64,
    is_over: bool,
}

impl<'a> Blocks<'a> {
    pub(super) fn of(reader: Box<dyn BufRead + Send + 'a>, name: &'a Path) -> Self {
        Self { name, reader, number: 0, line: 1, is_over: false }
    }

    /// The line that comes next.
    pub(super) fn line(&self) -> u64 {
        self.line
    }

    /// The number of the next block, from 0, and the block; `None` at the end, and after an error.
    ///
    /// # Errors
    /// `Io`, and `InvalidJson` for a line that is too long.
    pub(super) fn read(&mut self) -> Option<(u64, Result<Block, Error>)> {
        if self.is_over {
            return None;
        }
        let number = self.number;
        self.number += 1;
        let block = self.block();
        self.is_over = !matches!(block, Ok(Some(_)));
        block.transpose().map(|block| (number, block))
    }

    fn block(&mut self) -> Result<Option<Block>, Error> {
        let wrong = |error| unreadable(self.name, error);
        let mut bytes = Vec::with_capacity(BLOCK as usize + 4096);
        self.reader.by_ref().take(BLOCK).read_to_end(&mut bytes).map_err(wrong)?;
        let mut lines = memchr::memchr_iter(b'\n', &bytes).count() as u64;
        if !bytes.is_empty() && !bytes.ends_with(b"\n") {
            let rest = self.reader.by_ref().take(LONGEST_LINE).read_until(b'\n', &mut bytes);
            let rest = rest.map_err(wrong)?;
            if rest as u64 == LONGEST_LINE && !bytes.ends_with(b"\n") {
                let (name, line) = (self.name.display(), self.line.saturating_add(lines));
                let text = format!("{name}:{line}: a line of more than 64 MiB is no record");
                return Err(Error::local(ErrorKind::InvalidJson, text));
            }
            lines += 1;
        }
        if bytes.is_empty() {
            return Ok(None);
        }
        let block = Block { first_line: self.line, bytes };
        self.line = self.line.saturating_add(lines);
        Ok(Some(block))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{BufReader, Cursor, repeat};

    fn blocks(text: &str) -> Vec<Block> {
        let reader = Box::new(Cursor::new(text.as_bytes().to_vec()));
        let mut blocks = Blocks::of(reader, Path::new("x"));
        let read = std::iter::from_fn(|| blocks.read());
        (0..)
            .zip(read)
            .map(|(at, (number, block))| {
                assert_eq!(number, at);
                block.unwrap()
            })
            .collect()
    }

    #[test]
    fn blocks_end_with_lines_and_lose_nothing() {
        assert!(blocks("").is_empty());
        let long = "y".repeat(BLOCK as usize - 3);
        for text in [
            "a".to_owned(),
            "a\nb\n\nc".to_owned(),
            format!("{long}\nbb\ncc\n"),
            format!("{long}bb\n\ncc"),
            format!("a\n{long}{long}\n{long}\nd"),
        ] {
            let blocks = blocks(&text);
            let joined: Vec<u8> = blocks.iter().flat_map(|block| block.bytes.clone()).collect();
            assert_eq!(String::from_utf8(joined).unwrap(), text);
            let lines: Vec<_> = blocks.iter().flat_map(Block::lines).collect();
            let wanted: Vec<_> = text.split_inclusive('\n').map(str::as_bytes).collect();
            assert_eq!(lines, (1..).zip(wanted).collect::<Vec<_>>());
        }
    }

    #[test]
    fn a_mark_of_order_is_no_part_of_the_first_line() {
        let blocks = blocks("\u{feff}a\nb");
        let lines: Vec<_> = blocks.iter().flat_map(Block::lines).collect();
        assert_eq!(lines, [(1, &b"a\n"[..]), (2, b"b")]);
    }

    #[test]
    fn a_line_without_end_does_not_fill_the_memory() {
        let mut blocks = Blocks::of(Box::new(BufReader::new(repeat(b'x'))), Path::new("zero"));
        let (_, block) = blocks.read().unwrap();
        let error = block.unwrap_err();
        assert_eq!(error.message(), "zero:1: a line of more than 64 MiB is no record");
        assert!(blocks.read().is_none());
    }
}
