//! The gzip members of a WARC file, and how much of it is whole.
//!
//! Each record is a member of its own, so that whoever has its place can read it alone. Members are
//! written at once and carry a checksum: what a kill leaves torn is the last one.

use crate::batch::torn::{Begins, Pieces, Rest};
use flate2::bufread::GzDecoder;
use flate2::{Compress, Compression, Crc, FlushCompress, Status};
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};

/// How each member begins that is written here: deflate, no time, no name, no system. Other programs
/// write the same, and a body that is gzip stands in its record as it is.
const MAGIC: [u8; 10] = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff];
/// How each record begins.
const RECORD: &[u8; 5] = b"WARC/";
const BLOCK: usize = 128 * 1024;

/// Bytes that were compressed to be the middle of a member.
///
/// Deflate can be cut between two bytes and put together again, and so can its checksum.
pub(super) struct Part {
    deflated: Vec<u8>,
    crc: Crc,
}

impl Part {
    pub(super) fn of(parts: &[&[u8]]) -> io::Result<Self> {
        let mut part = Self { deflated: Vec::new(), crc: Crc::new() };
        deflate(&mut part.deflated, parts, FlushCompress::Sync)?;
        parts.iter().for_each(|bytes| part.crc.update(bytes));
        Ok(part)
    }
}

/// Adds a member of these bytes; how long it became.
pub(super) fn add(out: &mut Vec<u8>, parts: &[&[u8]]) -> io::Result<u64> {
    let (before, mut crc) = (out.len(), Crc::new());
    out.extend_from_slice(&MAGIC);
    deflate(out, parts, FlushCompress::Finish)?;
    parts.iter().for_each(|bytes| crc.update(bytes));
    end(out, &crc);
    Ok((out.len() - before) as u64)
}

/// Adds a member with a part in its middle; how long it became.
pub(super) fn add_around(
    out: &mut Vec<u8>,
    before: &[&[u8]],
    part: &Part,
    after: &[u8],
) -> io::Result<u64> {
    let (from, mut crc) = (out.len(), Crc::new());
    out.extend_from_slice(&MAGIC);
    deflate(out, before, FlushCompress::Sync)?;
    before.iter().for_each(|bytes| crc.update(bytes));
    out.extend_from_slice(&part.deflated);
    crc.combine(&part.crc);
    deflate(out, &[after], FlushCompress::Finish)?;
    crc.update(after);
    end(out, &crc);
    Ok((out.len() - from) as u64)
}

fn end(out: &mut Vec<u8>, crc: &Crc) {
    out.extend_from_slice(&crc.sum().to_le_bytes());
    out.extend_from_slice(&crc.amount().to_le_bytes());
}

/// Compresses these bytes, to the end of the stream or to a place where another may follow.
fn deflate(out: &mut Vec<u8>, parts: &[&[u8]], last: FlushCompress) -> io::Result<()> {
    let mut compress = Compress::new(Compression::default(), false);
    let none: &[u8] = &[];
    let steps = parts.iter().map(|part| (*part, FlushCompress::None));
    for (mut input, flush) in steps.chain([(none, last)]) {
        loop {
            out.reserve(1024 + input.len() / 2);
            let before = compress.total_in();
            let status = compress.compress_vec(input, out, flush).map_err(io::Error::other)?;
            // No more than there was, so it fits.
            let taken = (compress.total_in() - before) as usize;
            input = input.get(taken..).unwrap_or_default();
            let has_room = out.len() < out.capacity();
            let is_done = match flush {
                FlushCompress::Finish => status == Status::StreamEnd,
                FlushCompress::None => input.is_empty(),
                _ => has_room,
            };
            if is_done {
                break;
            }
        }
    }
    Ok(())
}

/// Looks through the members of a file, and checks them.
pub(super) fn look_through(file: &File) -> io::Result<Pieces> {
    let mut reader = BufReader::with_capacity(BLOCK, file);
    reader.seek(SeekFrom::Start(0))?;
    let mut end = 0;
    while !reader.fill_buf()?.is_empty() {
        let mut member = GzDecoder::new(&mut reader);
        // What the system has to say of the file is no matter of its content.
        match io::copy(&mut member, &mut io::sink()) {
            Ok(_) => end = reader.stream_position()?,
            Err(error) if error.raw_os_error().is_some() => return Err(error),
            Err(_) => break,
        }
    }
    let begins = Begins { magic: &MAGIC, is_piece: &|at| is_record(file, at) };
    let rest = Rest::of(file, end, false, &begins)?;
    Ok(Pieces { end, rest })
}

/// Whether a whole record stands here.
fn is_record(file: &File, at: u64) -> io::Result<bool> {
    let mut reader = BufReader::new(file);
    reader.seek(SeekFrom::Start(at))?;
    let (mut member, mut begin) = (GzDecoder::new(reader), [0; RECORD.len()]);
    let read = member.read_exact(&mut begin).and_then(|()| match &begin == RECORD {
        true => io::copy(&mut member, &mut io::sink()).map(|_| true),
        false => Ok(false),
    });
    match read {
        Err(error) if error.raw_os_error().is_some() => Err(error),
        read => Ok(read.unwrap_or(false)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use sha2::{Digest, Sha256};
    use std::io::Write;

    fn file(parts: &[&[u8]]) -> File {
        let mut file = tempfile::tempfile().unwrap();
        parts.iter().for_each(|part| file.write_all(part).unwrap());
        file
    }

    fn member(text: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        add(&mut out, &[text]).unwrap();
        assert!(out.starts_with(&MAGIC));
        out
    }

    #[test]
    fn a_file_cut_at_any_byte_ends_with_its_last_whole_member() {
        let first = member(b"WARC/1.1\r\n\r\none");
        let second = member("two ".repeat(40).as_bytes());
        let whole = [&first[..], &second].concat();
        for cut in 0..=whole.len() {
            let file = file(&[&whole[..cut]]);
            let end = match cut {
                cut if cut == whole.len() => cut,
                cut if cut >= first.len() => first.len(),
                _ => 0,
            };
            let torn = (cut - end) as u64;
            let rest = if torn == 0 { Rest::Nothing } else { Rest::Torn(torn) };
            assert_eq!(look_through(&file).unwrap(), Pieces { end: end as u64, rest }, "{cut}");
        }
    }

    /// As servers send them that are written in Go: the body begins as the members here do.
    #[test]
    fn a_record_with_a_body_of_gzip_is_torn_at_any_byte() {
        let noise: Vec<u8> = (0..3000_u64).map(|n| Sha256::digest(n.to_le_bytes())[0]).collect();
        let whole = member(&noise);
        let body = [&b"WARC/1.1\r\nWARC-Type: response\r\n\r\n"[..], &whole].concat();
        let (first, last) = (member(b"WARC/1.1\r\n\r\none"), member(&body));
        assert_eq!(memchr::memmem::find_iter(&last, &MAGIC).count(), 2, "the body is not packed");
        let end = first.len() as u64;
        for cut in 1..last.len() {
            let rest = Rest::Torn(cut as u64);
            let found = look_through(&file(&[&first, &last[..cut]])).unwrap();
            assert_eq!(found, Pieces { end, rest }, "{cut}");
        }
        // Where it is broken and another one stands behind, it is damage as ever.
        let mut broken = last.clone();
        let at = broken.len() - 6;
        broken[at] ^= 0x40;
        let found = look_through(&file(&[&first, &broken, &first])).unwrap();
        assert_eq!(found, Pieces { end, rest: Rest::Damaged });
    }

    #[test]
    fn damage_is_told_from_what_a_crash_leaves() {
        let part = member(&[&b"WARC/1.1\r\n"[..], &[b'x'; 3000]].concat());
        let end = part.len() as u64;
        let mut flipped = part.clone();
        let middle = flipped.len() - 6;
        flipped[middle] ^= 0x40;
        let large = vec![0; 3 * BLOCK];
        for (rest, wanted) in [
            (&[0; 5000][..], Rest::Torn(5000)),
            (&large, Rest::Torn(3 * BLOCK as u64)),
            (&part[..3], Rest::Torn(3)),
            (&flipped, Rest::Torn(end)),
            (&[&flipped[..], &part].concat(), Rest::Damaged),
            (&[&large[..], &part].concat(), Rest::Damaged),
            (b"WARC/1.1\r\nWARC-Type: warcinfo\r\n", Rest::Damaged),
        ] {
            let file = file(&[&part, rest]);
            assert_eq!(look_through(&file).unwrap(), Pieces { end, rest: wanted });
        }
    }

    /// What gzip makes of it, which other tools read.
    fn plain(member: &[u8]) -> Vec<u8> {
        let (mut plain, mut rest) = (Vec::new(), Vec::new());
        let mut decoder = GzDecoder::new(member);
        decoder.read_to_end(&mut plain).unwrap();
        decoder.into_inner().read_to_end(&mut rest).unwrap();
        assert!(rest.is_empty(), "one member");
        plain
    }

    proptest! {
        #[test]
        fn members_hold_what_was_put_in(
            texts in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..400), 3),
            times in 1..300usize,
        ) {
            let middle = texts[1].repeat(times);
            let whole = [&texts[0][..], &middle, &texts[2]].concat();
            let (mut at_once, mut around) = (Vec::new(), Vec::new());
            let length = add(&mut at_once, &[&texts[0], &middle, &texts[2]]).unwrap();
            prop_assert_eq!(length, at_once.len() as u64);
            prop_assert!(plain(&at_once) == whole);
            let part = Part::of(&[&middle]).unwrap();
            let length = add_around(&mut around, &[&texts[0]], &part, &texts[2]).unwrap();
            prop_assert_eq!(length, around.len() as u64);
            prop_assert!(around.starts_with(&MAGIC) && plain(&around) == whole);
        }

        #[test]
        fn a_torn_tail_is_cut_wherever_it_is_torn(
            texts in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..300), 1..6),
            at in any::<prop::sample::Index>(),
        ) {
            let members: Vec<_> = texts.iter().map(|text| member(text)).collect();
            let whole = members.concat();
            let cut = at.index(whole.len() + 1);
            let mut end = 0;
            for member in &members {
                if end + member.len() <= cut {
                    end += member.len();
                } else {
                    break;
                }
            }
            let found = look_through(&file(&[&whole[..cut]])).unwrap();
            prop_assert_eq!(found.end, end as u64);
            prop_assert_ne!(found.rest, Rest::Damaged);
        }
    }
}
