//! The name by which a run recognises a line of its input again.
//!
//! A position in the input is no name: people sort, extend and shorten their lists between a run
//! and its resumption. So an item is known by the id that it brought, or else by what it asks for:
//! method, URL and body. Both become 128 bits, which a run over millions of lines can hold in
//! memory, and of which two different lines share one with a probability below 10⁻²³ even at a
//! hundred million lines.

use sha2::{Digest, Sha256};
use std::fmt;

/// 128 bits that stand for one item of the input.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Key([u8; 16]);

impl Key {
    /// The key of an item that brought this id.
    ///
    /// An id of 32 lower-case hexadecimal digits is the key itself: that is how a record shows the
    /// key of an item without an id, so that reading a record gives back the key of its item.
    pub fn of_id(id: &str) -> Self {
        if let Some(key) = Self::from_hex(id) {
            return key;
        }
        let mut digest = Sha256::new();
        digest.update(b"id\0");
        digest.update(id.as_bytes());
        Self::cut(digest)
    }

    /// The key of an item without an id.
    ///
    /// The URL counts as it is written, credentials included. A body counts by its SHA-256.
    pub fn of_request(method: &http::Method, url: &str, body: &[u8]) -> Self {
        let mut digest = Sha256::new();
        digest.update(b"request\0");
        digest.update(method.as_str().as_bytes());
        digest.update(b"\0");
        digest.update(url.as_bytes());
        digest.update(b"\0");
        digest.update(Sha256::digest(body));
        Self::cut(digest)
    }

    fn cut(digest: Sha256) -> Self {
        let mut key = [0; 16];
        for (to, from) in key.iter_mut().zip(digest.finalize()) {
            *to = from;
        }
        Self(key)
    }

    pub(super) fn bits(self) -> u128 {
        u128::from_be_bytes(self.0)
    }

    fn from_hex(text: &str) -> Option<Self> {
        let lower = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
        if text.len() != 32 || !text.bytes().all(lower) {
            return None;
        }
        u128::from_str_radix(text, 16).ok().map(|number| Self(number.to_be_bytes()))
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.bits())
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Key({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::Method;

    #[test]
    fn a_shown_key_is_read_back_as_itself() {
        for key in [Key::of_id("7"), Key::of_request(&Method::GET, "http://h/", b""), Key([0; 16])]
        {
            assert_eq!(Key::of_id(&key.to_string()), key);
        }
    }

    #[test]
    fn method_url_and_body_all_count_and_do_not_run_together() {
        let keys = [
            Key::of_request(&Method::GET, "http://h/a", b""),
            Key::of_request(&Method::POST, "http://h/a", b""),
            Key::of_request(&Method::GET, "http://h/", b"a"),
            Key::of_request(&Method::GET, "http://h/A", b""),
            Key::of_request(&Method::GET, "http://u:p@h/a", b""),
            Key::of_id("http://h/a"),
            Key::of_id(""),
        ];
        for (at, key) in keys.iter().enumerate() {
            assert!(!keys[..at].contains(key), "{at}");
        }
    }

    #[test]
    fn only_lower_case_hex_of_full_length_is_a_key() {
        let digits = "0123456789abcdef0123456789abcdef";
        assert_eq!(Key::of_id(digits).to_string(), digits);
        for other in [&digits.to_uppercase(), &digits[1..], "+123456789abcdef0123456789abcdef"] {
            assert_ne!(Key::of_id(other).to_string(), other.to_lowercase());
        }
    }
}
