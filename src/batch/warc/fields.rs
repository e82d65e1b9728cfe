//! One record of a WARC file: its named fields, and the block behind them.

use super::members::{self, Part};
use super::payload::Digest;
use crate::rng::Rng;
use std::fmt::{self, Write as _};
use std::io;
use std::time::SystemTime;

/// What stands behind each block.
const BLOCK_END: &[u8] = b"\r\n\r\n";

/// The name of a record, unlike every other: a random UUID.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Id(uuid::Uuid);

impl Id {
    pub(super) fn random(rng: &mut Rng) -> Self {
        let bits = u128::from(rng.bits()) << 64 | u128::from(rng.bits());
        Self(uuid::Builder::from_random_bytes(bits.to_be_bytes()).into_uuid())
    }
}

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "<{}>", self.0.urn())
    }
}

/// A moment as it stands in a record: WARC 1.1 allows fractions of a second.
pub(super) fn date(at: SystemTime) -> String {
    humantime::format_rfc3339_millis(at).to_string()
}

/// The fields of a record, as they are put together.
pub(super) struct Fields(String);

impl Fields {
    pub(super) fn new(kind: &str, id: Id, date: &str) -> Self {
        let text = format!(
            "WARC/1.1\r\nWARC-Type: {kind}\r\nWARC-Record-ID: {id}\r\nWARC-Date: {date}\r\n"
        );
        Self(text)
    }

    /// Adds a field; what would break out of its line is left out of the value.
    pub(super) fn add(mut self, name: &str, value: impl fmt::Display) -> Self {
        let from = self.0.len() + name.len();
        // Writing to a string does not fail.
        let _ = write!(self.0, "{name}: {value}");
        if self.0.get(from..).is_some_and(|value| value.contains(['\r', '\n'])) {
            let value = self.0.split_off(from).replace(['\r', '\n'], "");
            self.0.push_str(&value);
        }
        self.0.push_str("\r\n");
        self
    }

    /// Adds a field where there is a value.
    pub(super) fn add_some(self, name: &str, value: Option<impl fmt::Display>) -> Self {
        match value {
            Some(value) => self.add(name, value),
            None => self,
        }
    }

    /// Writes the record with this block behind the others; how many bytes it takes.
    pub(super) fn write(
        self,
        out: &mut Vec<u8>,
        media_type: &str,
        block: &[&[u8]],
    ) -> io::Result<u64> {
        let length: usize = block.iter().map(|part| part.len()).sum();
        let fields = self.end(media_type, Digest::of(block), length);
        let parts = [&[fields.as_bytes()], block, &[BLOCK_END]].concat();
        members::add(out, &parts)
    }

    /// The same with a block that was compressed before, of this length and with this digest.
    pub(super) fn write_packed(
        self,
        out: &mut Vec<u8>,
        media_type: &str,
        block: &Part,
        length: usize,
        digest: Digest,
    ) -> io::Result<u64> {
        let fields = self.end(media_type, digest, length);
        members::add_around(out, &[fields.as_bytes()], block, BLOCK_END)
    }

    fn end(self, media_type: &str, digest: Digest, length: usize) -> String {
        let mut fields = self
            .add("WARC-Block-Digest", digest.text())
            .add("Content-Type", media_type)
            .add("Content-Length", length);
        fields.0.push_str("\r\n");
        fields.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;

    #[test]
    fn a_record_is_what_the_standard_says() {
        let id = Id::random(&mut Rng::seeded(1));
        let text = id.to_string();
        assert!(text.starts_with("<urn:uuid:") && text.ends_with('>'), "{text}");
        assert_eq!((text.as_bytes()[24], text.len()), (b'4', 47), "{text}");

        let date = date(SystemTime::UNIX_EPOCH);
        let mut out = b"before".to_vec();
        let fields = Fields::new("metadata", id, &date)
            .add("WARC-Target-URI", "http://a.test/\r\nX: y")
            .add_some("WARC-IP-Address", None::<&str>);
        let length = fields.write(&mut out, "text/plain", &[b"a", b"bc"]).unwrap();
        assert_eq!(length as usize + 6, out.len());
        let mut record = String::new();
        flate2::read::GzDecoder::new(&out[6..]).read_to_string(&mut record).unwrap();
        let wanted = format!(
            "WARC/1.1\r\nWARC-Type: metadata\r\nWARC-Record-ID: {id}\r\n\
             WARC-Date: 1970-01-01T00:00:00.000Z\r\nWARC-Target-URI: http://a.test/X: y\r\n\
             WARC-Block-Digest: sha1:VGMT4NSHA2AWVOR6EVYXQUGCNSONBWE5\r\n\
             Content-Type: text/plain\r\nContent-Length: 3\r\n\r\nabc\r\n\r\n"
        );
        assert_eq!(record, wanted);
    }
}
