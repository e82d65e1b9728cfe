//! The hashes of Digest credentials.

use crate::error::{Error, ErrorKind, Fault, Phase};
use crate::message::{Body, OpenBody};
use md5::Md5;
use sha2::{Digest, Sha256, Sha512, Sha512_256};
use std::io;

/// A hash; the stronger, the greater.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Hash {
    Md5,
    Sha256,
    Sha512Of256,
    /// In no RFC, but requests and httpbin know it.
    Sha512,
}

/// A hash, and whether it is that of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Algorithm {
    pub(super) hash: Hash,
    /// `-sess`: nonce and client nonce are part of the secret.
    pub(super) session: bool,
}

impl Algorithm {
    /// The algorithm of a challenge that names none.
    pub(super) const DEFAULT: Self = Self { hash: Hash::Md5, session: false };

    /// Of the parameter `algorithm`; `None` for one that is not known.
    pub(super) fn parse(name: &[u8]) -> Option<Self> {
        let name = name.to_ascii_uppercase();
        let (hash, session) = match name.strip_suffix(b"-SESS") {
            Some(hash) => (hash, true),
            None => (name.as_slice(), false),
        };
        let hash = match hash {
            b"MD5" => Hash::Md5,
            b"SHA-256" => Hash::Sha256,
            b"SHA-512-256" => Hash::Sha512Of256,
            b"SHA-512" => Hash::Sha512,
            _ => return None,
        };
        Some(Self { hash, session })
    }
}

impl Hash {
    /// The hash of these parts with colons between them, in lower-case hexadecimal.
    pub(super) fn of(self, parts: &[&[u8]]) -> String {
        match self {
            Self::Md5 => joined::<Md5>(parts),
            Self::Sha256 => joined::<Sha256>(parts),
            Self::Sha512Of256 => joined::<Sha512_256>(parts),
            Self::Sha512 => joined::<Sha512>(parts),
        }
    }

    /// The hash of a body that can be read again afterwards.
    pub(super) fn of_body(self, body: &Body) -> Result<String, Error> {
        match self {
            Self::Md5 => read::<Md5>(body),
            Self::Sha256 => read::<Sha256>(body),
            Self::Sha512Of256 => read::<Sha512_256>(body),
            Self::Sha512 => read::<Sha512>(body),
        }
    }
}

fn joined<D: Digest>(parts: &[&[u8]]) -> String {
    let mut digest = D::new();
    for (index, part) in parts.iter().enumerate() {
        if index > 0 {
            digest.update(b":");
        }
        digest.update(part);
    }
    hex(&digest.finalize())
}

fn read<D: Digest>(body: &Body) -> Result<String, Error> {
    /// Hands what is copied on to a hash.
    struct Into<'a, D>(&'a mut D);
    impl<D: Digest> io::Write for Into<'_, D> {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.update(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    if !body.is_replayable() {
        return Err(Error::local(
            ErrorKind::BodyNotReplayable,
            "the server wants the hash of the body in the Digest credentials (qop=auth-int), and \
             the body is a reader; give bytes or Body::replayable",
        ));
    }
    let mut digest = D::new();
    match body.open()? {
        OpenBody::Empty => {}
        OpenBody::Bytes(bytes) => digest.update(&bytes),
        OpenBody::Reader(mut reader, _) => {
            io::copy(&mut reader, &mut Into(&mut digest)).map_err(|error| {
                let text = format!("the body cannot be read for its Digest credentials: {error}");
                Error::new(ErrorKind::Io, Phase::Prepare, Fault::Local, text).with_source(error)
            })?;
        }
    }
    Ok(hex(&digest.finalize()))
}

fn hex(bytes: &[u8]) -> String {
    let digit = |half: u8| char::from_digit(half.into(), 16).unwrap_or_default();
    bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_compared_without_case_and_the_stronger_is_the_greater() {
        let of = |name: &str| Algorithm::parse(name.as_bytes());
        assert_eq!(of("md5-Sess"), Some(Algorithm { hash: Hash::Md5, session: true }));
        assert_eq!(of("sha-512-256"), Some(Algorithm { hash: Hash::Sha512Of256, session: false }));
        for unknown in ["", "SHA", "SHA-1", "token", "-sess", "MD5-sess-sess"] {
            assert_eq!(of(unknown), None, "{unknown}");
        }
        let mut by_strength = [Hash::Sha512, Hash::Md5, Hash::Sha512Of256, Hash::Sha256];
        by_strength.sort_unstable();
        assert_eq!(by_strength, [Hash::Md5, Hash::Sha256, Hash::Sha512Of256, Hash::Sha512]);
    }

    #[test]
    fn parts_are_joined_by_colons() {
        // RFC 1321 A.5: the empty text, and "abc"; FIPS 180 for the others, of "a:b".
        assert_eq!(Hash::Md5.of(&[]), "d41d8cd98f00b204e9800998ecf8427e");
        assert_eq!(Hash::Md5.of(&[b"abc"]), "900150983cd24fb0d6963f7d28e17f72");
        for hash in [Hash::Md5, Hash::Sha256, Hash::Sha512Of256, Hash::Sha512] {
            assert_eq!(hash.of(&[b"a", b"", b"b"]), hash.of(&[b"a::b"]));
        }
        assert_eq!(
            Hash::Sha512Of256.of(&[b"abc"]),
            "53048e2681941ef99b2e29b76b4c7dabe4c2d0c634fc6d46e0e2f13107e7af23"
        );
    }

    #[test]
    fn a_body_is_hashed_as_it_is_sent_and_one_that_is_gone_by_then_is_refused() {
        let wanted = Hash::Sha256.of(&[b"payload"]);
        let opener = || Ok((Box::new(&b"payload"[..]) as Box<dyn io::Read + Send>, None));
        for body in [Body::from("payload"), Body::replayable(opener)] {
            assert_eq!(Hash::Sha256.of_body(&body).unwrap(), wanted, "{body:?}");
        }
        assert_eq!(Hash::Md5.of_body(&Body::Empty).unwrap(), Hash::Md5.of(&[]));
        let once = Body::reader(&b"payload"[..], Some(7));
        let error = Hash::Sha256.of_body(&once).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::BodyNotReplayable);
        assert!(once.open().is_ok(), "it was left alone");
    }
}
