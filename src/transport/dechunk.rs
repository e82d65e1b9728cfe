//! Chunk framing put in order before ureq decodes it.
//!
//! ureq takes a size line for malformed once it is longer than 20 bytes, which is less than many
//! a chunk extension, and it accepts `+5` as a size. This filter follows the framing over the raw
//! bytes and leaves out what ureq does not need: extensions, all but one of the leading zeros, and
//! trailers. Each byte stays or goes as it comes, so the filter works in place and a line may
//! arrive in any number of pieces. What is malformed ends the body here, with an error that names
//! it.

/// The longest size line, and the longest trailer section: more is a flood.
const MAX_LINE: usize = 16 * 1024;
/// How far the framing of a whole body may outgrow what it frames. Lines that are long but within
/// their limit would otherwise carry a flood in chunks of one byte.
const MAX_OVERHEAD: usize = 16 * 1024;
/// What a chunk of one byte may cost before it counts as overhead: a padded size, an extension.
const FREE_LINE: usize = 16;

/// Where in the framing the next byte belongs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum At {
    /// In the digits of a size, of which so many count.
    Size(u8),
    /// In white space behind the digits.
    Space,
    /// In a chunk extension.
    Extension,
    /// Behind the CR of a size line.
    SizeEnd,
    /// In the data of a chunk, with so many bytes to come.
    Data(u64),
    /// Behind the data.
    DataCr,
    /// Behind the CR that follows the data.
    DataLf,
    /// At the start of a line behind the last chunk.
    TrailerStart,
    /// In a trailer field.
    Trailer,
    /// Behind the CR of a trailer field.
    TrailerLf,
    /// Behind the CR of the empty line.
    EndLf,
    /// Behind the message: bytes pass as they are, for ureq to find that there are too many.
    Done,
    /// In a body that is malformed.
    Failed,
}

/// The filter of one body.
#[derive(Debug)]
pub(super) struct Dechunk {
    at: At,
    size: u64,
    line: usize,
    /// Bytes of size lines beyond what the chunks so far account for.
    overhead: usize,
    /// Bytes that came behind the message.
    beyond: usize,
    failure: Option<String>,
}

impl Default for Dechunk {
    fn default() -> Self {
        Self { at: At::Size(0), size: 0, line: 0, overhead: 0, beyond: 0, failure: None }
    }
}

impl Dechunk {
    /// Rewrites the bytes in place; how many of them are left, at the front.
    pub(super) fn tidy(&mut self, bytes: &mut [u8]) -> usize {
        let (mut from, mut to) = (0, 0);
        while let Some(byte) = bytes.get(from).copied() {
            match self.at {
                At::Failed => return to,
                At::Done | At::Data(_) => {
                    let here = bytes.len() - from;
                    let amount = match self.at {
                        // No more than what the slice holds, so it fits.
                        At::Data(left) => left.min(here as u64) as usize,
                        _ => here,
                    };
                    if from != to {
                        bytes.copy_within(from..from + amount, to);
                    }
                    (from, to) = (from + amount, to + amount);
                    if self.at == At::Done {
                        self.beyond += amount;
                    }
                    if let At::Data(left) = self.at {
                        let left = left - amount as u64;
                        self.at = if left > 0 { At::Data(left) } else { At::DataCr };
                    }
                }
                _ => {
                    from += 1;
                    if self.step(byte)
                        && let Some(place) = bytes.get_mut(to)
                    {
                        *place = byte;
                        to += 1;
                    }
                }
            }
        }
        to
    }

    /// Why no more can follow, once everything before it has been read.
    pub(super) fn failure(&self) -> Option<&str> {
        self.failure.as_deref()
    }

    /// How many bytes came behind the message; `None` before its end.
    pub(super) fn beyond(&self) -> Option<usize> {
        (self.at == At::Done).then_some(self.beyond)
    }

    /// What is missing where the stream ends now, if the body is complete all the same.
    ///
    /// The zero-sized chunk completes it (RFC 9112, section 8); some servers forget the empty line
    /// behind it.
    pub(super) fn end(&mut self) -> Option<&'static [u8]> {
        let missing: &[u8] = match self.at {
            At::TrailerStart | At::Trailer | At::TrailerLf => b"\r\n",
            At::EndLf => b"\n",
            _ => return None,
        };
        self.at = At::Done;
        Some(missing)
    }

    /// Takes one byte of the framing; whether it stays.
    fn step(&mut self, byte: u8) -> bool {
        self.line += 1;
        if self.line > MAX_LINE {
            return self
                .fail(format!("a chunk's size line or the trailers exceed {MAX_LINE} bytes"));
        }
        let (at, keep) = match (self.at, byte) {
            (At::Size(digits), b'0'..=b'9' | b'a'..=b'f' | b'A'..=b'F') if digits < 15 => {
                let digit = char::from(byte).to_digit(16).unwrap_or_default();
                self.size = self.size * 16 + u64::from(digit);
                // Zeros in front count as one digit: there is a size, and they do not make it
                // larger.
                let zero = self.size == 0;
                (At::Size(if zero { 1 } else { digits + 1 }), !zero || digits == 0)
            }
            (At::Size(1..) | At::Space | At::Extension, b'\r') => (At::SizeEnd, true),
            (At::Size(1..) | At::Space, b';') => (At::Extension, false),
            (At::Size(1..) | At::Space, b' ' | b'\t') => (At::Space, false),
            (At::Extension, byte) if byte != b'\n' => (At::Extension, false),
            (At::SizeEnd, b'\n') => {
                let line = std::mem::take(&mut self.line);
                let size = std::mem::take(&mut self.size);
                // As Go's reader: a long line is forgiven when a long chunk follows it.
                let free = usize::try_from(size).unwrap_or(usize::MAX).saturating_mul(2);
                let free = free.saturating_add(FREE_LINE);
                self.overhead = (self.overhead + line).saturating_sub(free);
                if self.overhead > MAX_OVERHEAD {
                    return self.fail(format!(
                        "the size lines outgrow the chunks by more than {MAX_OVERHEAD} bytes"
                    ));
                }
                (if size == 0 { At::TrailerStart } else { At::Data(size) }, true)
            }
            (At::DataCr, b'\r') => (At::DataLf, true),
            (At::DataLf, b'\n') => {
                self.line = 0;
                (At::Size(0), true)
            }
            (At::TrailerStart, b'\r') => (At::EndLf, true),
            (At::Trailer, b'\r') => (At::TrailerLf, false),
            (At::TrailerStart | At::Trailer, byte) if byte != b'\n' => (At::Trailer, false),
            (At::TrailerLf, b'\n') => (At::TrailerStart, false),
            (At::EndLf, b'\n') => (At::Done, true),
            (At::DataCr | At::DataLf, _) => {
                return self.fail("a chunk is longer than its size says".to_owned());
            }
            (At::TrailerStart | At::Trailer | At::TrailerLf | At::EndLf, _) => {
                return self.fail("a line of the trailers does not end with CR LF".to_owned());
            }
            (_, byte) => {
                return self.fail(format!("a chunk's size line holds {:?}", char::from(byte)));
            }
        };
        self.at = at;
        keep
    }

    fn fail(&mut self, reason: String) -> bool {
        self.at = At::Failed;
        self.failure = Some(reason);
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// What is left of a body that comes in pieces of this size.
    fn tidy(body: &[u8], piece: usize) -> (Vec<u8>, Option<String>) {
        let mut filter = Dechunk::default();
        let mut out = Vec::new();
        for piece in body.chunks(piece) {
            let mut piece = piece.to_vec();
            let kept = filter.tidy(&mut piece);
            out.extend_from_slice(&piece[..kept]);
        }
        (out, filter.failure)
    }

    #[test]
    fn lines_become_what_ureq_accepts() {
        for (body, wanted) in [
            ("5\r\nhello\r\n0\r\n\r\n", "5\r\nhello\r\n0\r\n\r\n"),
            ("5;name=\"value-of-an-extension\"\r\nhello\r\n0\r\n\r\n", "5\r\nhello\r\n0\r\n\r\n"),
            ("000000000000000000000005\r\nhello\r\n000\r\n\r\n", "05\r\nhello\r\n0\r\n\r\n"),
            ("5 \t;x\r\nhello\r\n0\r\n\r\n", "5\r\nhello\r\n0\r\n\r\n"),
            ("A\r\n0123456789\r\n0\r\nX: y\r\nZ: w\r\n\r\n", "A\r\n0123456789\r\n0\r\n\r\n"),
            ("0\r\n\r\nrest", "0\r\n\r\nrest"),
        ] {
            assert_eq!(tidy(body.as_bytes(), 1000), (wanted.into(), None), "{body:?}");
        }
    }

    #[test]
    fn what_is_malformed_fails_behind_what_is_good() {
        let good = "3\r\nabc\r\n";
        for bad in [
            "+5\r\n",
            "-5\r\n",
            "0x5\r\n",
            "5\nhello",
            "\r\n",
            "g\r\n",
            "FFFFFFFFFFFFFFFF\r\n",
            "5 5\r\n",
        ] {
            let (left, failure) = tidy(format!("{good}{bad}").as_bytes(), 1000);
            assert!(left.starts_with(good.as_bytes()), "{bad:?}");
            assert!(!left.ends_with(b"\n") || left == good.as_bytes(), "{bad:?}");
            assert!(failure.unwrap().contains("size line"), "{bad:?}");
        }
        let (left, failure) = tidy(b"3\r\nabcdef\r\n", 1000);
        assert_eq!(left, b"3\r\nabc");
        assert_eq!(failure.unwrap(), "a chunk is longer than its size says");
        let flood = format!("5;{}", "x".repeat(MAX_LINE));
        assert!(tidy(flood.as_bytes(), 1000).1.unwrap().contains("16384 bytes"));
    }

    #[test]
    fn extensions_may_be_long_but_must_not_carry_a_flood() {
        let chunk = |extension: usize| format!("1;{}\r\nx\r\n", "e".repeat(extension));
        let fails = |body: String| tidy(body.as_bytes(), 1000).1;
        assert_eq!(fails(chunk(8000) + &chunk(8000) + "0\r\n\r\n"), None);
        // Short ones never add up, however many.
        assert_eq!(fails(chunk(10).repeat(5000) + "0\r\n\r\n"), None);
        assert!(fails(chunk(8000).repeat(3)).unwrap().contains("outgrow the chunks by more than"));
        assert!(fails(chunk(100).repeat(400)).unwrap().contains("16384 bytes"));
    }

    proptest! {
        #[test]
        fn pieces_do_not_matter(
            chunks in prop::collection::vec((0..9usize, prop::collection::vec(any::<u8>(), 1..40)), 0..5),
            piece in 1..50usize,
        ) {
            let mut body = Vec::new();
            let mut wanted = Vec::new();
            for (zeros, data) in &chunks {
                let line = format!("{}{:X};e\r\n", "0".repeat(*zeros), data.len());
                body.extend_from_slice(line.as_bytes());
                let zero = if *zeros > 0 { "0" } else { "" };
                wanted.extend_from_slice(format!("{zero}{:X}\r\n", data.len()).as_bytes());
                for out in [&mut body, &mut wanted] {
                    out.extend_from_slice(data);
                    out.extend_from_slice(b"\r\n");
                }
            }
            body.extend_from_slice(b"0\r\nT: x\r\n\r\n");
            wanted.extend_from_slice(b"0\r\n\r\n");
            prop_assert_eq!(tidy(&body, piece), (wanted, None));
        }

        #[test]
        fn no_bytes_break_it(body in prop::collection::vec(any::<u8>(), 0..200), piece in 1..9usize) {
            prop_assert!(tidy(&body, piece).0.len() <= body.len());
        }
    }
}
