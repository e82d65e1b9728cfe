//! The payload of a response, which is what tells two of them apart.
//!
//! The standard's payload is the body without its transfer coding and with its content coding
//! (WARC 1.1, 6.3.2): the same page in other chunks is the same payload, and compressed it is another.

use crate::error::Message;
use data_encoding::BASE32;
use sha1::{Digest as _, Sha1};
use std::borrow::Cow;

/// A SHA-1, as WARC files have always had it: an index over several archives compares them. It finds
/// what is the same and proves nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Digest([u8; 20]);

impl Digest {
    pub(super) fn of(parts: &[&[u8]]) -> Self {
        let mut digest = Sha1::new();
        for part in parts {
            digest.update(part);
        }
        Self(digest.finalize().into())
    }

    /// As it stands in a record.
    pub(super) fn text(&self) -> String {
        format!("sha1:{}", BASE32.encode(&self.0))
    }
}

/// The body of a message without its chunks; `None` where they are not whole.
pub(super) fn payload(message: &Message) -> Option<Cow<'_, [u8]>> {
    if message.truncated().is_some() {
        return None;
    }
    if !message.is_chunked() {
        return Some(Cow::Borrowed(message.body()));
    }
    let (mut rest, mut payload) = (message.body(), Vec::with_capacity(message.body().len()));
    loop {
        let line_end = rest.iter().position(|byte| *byte == b'\n')?;
        let (line, behind) = rest.split_at_checked(line_end + 1)?;
        let digits = line.split(|byte| !byte.is_ascii_hexdigit()).next()?;
        let size = usize::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?;
        if size == 0 {
            return Some(Cow::Owned(payload));
        }
        payload.extend_from_slice(behind.get(..size)?);
        rest = behind.get(size..)?.strip_prefix(b"\r\n")?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Truncated;

    fn of(body: &str, chunked: bool) -> Option<String> {
        let message = Message::new(b"HTTP/1.1 200 OK\r\n\r\n", body.as_bytes(), chunked);
        payload(&message).map(|payload| String::from_utf8(payload.into_owned()).unwrap())
    }

    #[test]
    fn payloads_are_bodies_without_chunks() {
        for (body, chunked, wanted) in [
            ("abc", false, Some("abc")),
            ("0\r\n\r\n", true, Some("")),
            ("3\r\nabc\r\n0\r\n\r\n", true, Some("abc")),
            ("01;x=\"y\"\r\na\r\n2 \r\nbc\r\n0\r\nT: 1\r\n\r\n", true, Some("abc")),
            ("1\r\na\r\n0\r\n", true, Some("a")),
            ("3\r\nab", true, None),
            ("3\r\nabcd\r\n0\r\n\r\n", true, None),
            ("x\r\n", true, None),
            ("ffffffffffffffffffff\r\n", true, None),
            ("", true, None),
        ] {
            assert_eq!(of(body, chunked).as_deref(), wanted, "{body}");
        }
        let cut = Message::new(b"\r\n", b"abc", false).cut_short(Truncated::Time);
        assert_eq!(payload(&cut), None);
    }

    #[test]
    fn digests_are_those_of_other_tools() {
        // `warcio` and `sha1sum | xxd -r -p | base32`.
        assert_eq!(Digest::of(&[b""]).text(), "sha1:3I42H3S6NNFQ2MSVX7XZKYAYSCX5QBYJ");
        assert_eq!(Digest::of(&[b"a", b"bc"]).text(), "sha1:VGMT4NSHA2AWVOR6EVYXQUGCNSONBWE5");
    }
}
