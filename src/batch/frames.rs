//! Results under zstd: whole frames, one after the other.
//!
//! Several frames in a row are a valid file of zstd, so `zstd -d` reads it. Each frame is
//! compressed at once, holds complete lines, carries a checksum and is written with one call: what a
//! crash leaves torn is the last frame, and it is cut off as a torn line is. That costs some of the
//! ratio, since a frame knows nothing of those before it.

use super::torn::{Begins, Pieces, Rest};
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};
use zstd::stream::raw::{CParameter, Decoder, InBuffer, Operation, OutBuffer};

/// zstd's own default.
const LEVEL: i32 = zstd::DEFAULT_COMPRESSION_LEVEL;
const MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];
const BLOCK: usize = 128 * 1024;

/// Lines as a frame of its own.
pub(super) fn frame(lines: &[u8]) -> io::Result<Vec<u8>> {
    let mut compressor = zstd::bulk::Compressor::new(LEVEL)?;
    compressor.set_parameter(CParameter::ChecksumFlag(true))?;
    compressor.compress(lines)
}

/// Looks through the frames of a file, and checks them.
pub(super) fn look_through(file: &File) -> io::Result<Pieces> {
    let mut reader = BufReader::with_capacity(BLOCK, file);
    reader.seek(SeekFrom::Start(0))?;
    let mut decoder = Decoder::new()?;
    let mut plain = vec![0; BLOCK];
    let (mut at, mut end, mut full) = (0, 0, false);
    let whole = loop {
        let input = reader.fill_buf()?;
        if input.is_empty() && !full {
            break true;
        }
        let (mut from, mut to) = (InBuffer::around(input), OutBuffer::around(plain.as_mut_slice()));
        let Ok(wanted) = decoder.run(&mut from, &mut to) else { break false };
        let read = from.pos();
        full = wanted > 0 && to.pos() == BLOCK;
        reader.consume(read);
        at += read as u64;
        if wanted == 0 {
            end = at;
            decoder.reinit()?;
        }
    };
    let begins = Begins { magic: &MAGIC, is_piece: &|_| Ok(true) };
    let rest = Rest::of(file, end, whole, &begins)?;
    Ok(Pieces { end, rest })
}

/// The lines of the whole frames.
pub(super) fn lines(mut file: &File, end: u64) -> io::Result<Box<dyn BufRead + Send + '_>> {
    if end == 0 {
        // No frame at all is an error to the decoder.
        return Ok(Box::new(io::empty()));
    }
    file.seek(SeekFrom::Start(0))?;
    let reader = zstd::Decoder::with_buffer(BufReader::with_capacity(BLOCK, file.take(end)))?;
    Ok(Box::new(BufReader::with_capacity(BLOCK, reader)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn file(parts: &[&[u8]]) -> File {
        let mut file = tempfile::tempfile().unwrap();
        parts.iter().for_each(|part| file.write_all(part).unwrap());
        file
    }

    fn text(file: &File, end: u64) -> String {
        let mut text = String::new();
        lines(file, end).unwrap().read_to_string(&mut text).unwrap();
        text
    }

    #[test]
    fn a_file_cut_at_any_byte_ends_with_its_last_whole_frame() {
        let (first, second) = (frame(b"one\ntwo\n").unwrap(), frame(b"three\n").unwrap());
        for cut in 0..second.len() {
            let file = file(&[&first, &second[..cut]]);
            let rest = if cut == 0 { Rest::Nothing } else { Rest::Torn(cut as u64) };
            let end = first.len() as u64;
            assert_eq!(look_through(&file).unwrap(), Pieces { end, rest }, "{cut}");
            assert_eq!(text(&file, end), "one\ntwo\n");
        }
        let whole = file(&[&first, &second]);
        let end = (first.len() + second.len()) as u64;
        assert_eq!(look_through(&whole).unwrap(), Pieces { end, rest: Rest::Nothing });
        assert_eq!(text(&whole, end), "one\ntwo\nthree\n");
    }

    #[test]
    fn frames_of_any_size_are_told_apart() {
        let mut numbers = String::new();
        for number in 0..60_000 {
            numbers += &format!("{number}\n");
        }
        for length in [0, 1, BLOCK - 1, BLOCK, BLOCK + 1, 2 * BLOCK, numbers.len()] {
            let part = frame(&numbers.as_bytes()[..length]).unwrap();
            let file = file(&[&part, &part]);
            let wanted = Pieces { end: 2 * part.len() as u64, rest: Rest::Nothing };
            assert_eq!(look_through(&file).unwrap(), wanted, "{length}");
        }
    }

    #[test]
    fn damage_is_told_from_what_a_crash_leaves() {
        let part = frame("a line that is long enough\n".repeat(9).as_bytes()).unwrap();
        let end = part.len() as u64;
        let mut flipped = part.clone();
        let middle = flipped.len() - 5;
        flipped[middle] ^= 0x40;
        for (rest, wanted) in [
            (&[0; 5000][..], Rest::Torn(5000)),
            (&part[..3], Rest::Torn(3)),
            (&flipped, Rest::Torn(end)),
            (&[&flipped[..], &part].concat(), Rest::Damaged),
            (b"{\"v\":1}\n", Rest::Damaged),
            (&[&[0; 50][..], &part].concat(), Rest::Damaged),
        ] {
            let file = file(&[&part, rest]);
            assert_eq!(look_through(&file).unwrap(), Pieces { end, rest: wanted });
        }
    }
}
