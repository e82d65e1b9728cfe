//! Cookies that one request brings along: requests' `cookies=`.
//!
//! They go with the request and are not put into the jar. DIFFERENCE(request-cookies): in requests
//! such a cookie has no domain, so a redirect carries it to every host, and one of the same name in
//! the jar is sent beside it. Here it stays with the origin that it was given for, as credentials
//! do, and takes the place of the jar's.

use crate::error::{Error, ErrorKind};
use std::fmt;

/// Names and values, in the order in which they were given; shows the names alone.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct OwnCookies(Vec<(Vec<u8>, Vec<u8>)>);

impl OwnCookies {
    /// No cookies.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets a cookie, in the place of another of this name.
    pub fn insert(&mut self, name: impl Into<Vec<u8>>, value: impl Into<Vec<u8>>) {
        let (name, value) = (name.into(), value.into());
        match self.0.iter_mut().find(|(have, _)| *have == name) {
            Some((_, have)) => *have = value,
            None => self.0.push((name, value)),
        }
    }

    /// Each name with its value.
    pub fn iter(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        self.0.iter().map(|(name, value)| (name.as_slice(), value.as_slice()))
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Refuses what would be another cookie, or another field, on the wire.
    pub(crate) fn check(&self) -> Result<(), Error> {
        let bad = |byte: &u8| *byte == b';' || (byte.is_ascii_control() && *byte != b'\t');
        for (name, value) in self.iter() {
            if name.is_empty() || name.contains(&b'=') || name.iter().chain(value).any(bad) {
                // Not shown: a value in the wrong place may be a session's.
                let text = "a cookie of the request has an empty name, a name with `=`, or a \
                            semicolon or control character in it; encode the value";
                return Err(Error::local(ErrorKind::InvalidHeader, text));
            }
        }
        Ok(())
    }

    /// The Cookie field: what the jar says, but for the names that stand here, and then these.
    pub(crate) fn over(&self, jar: Option<Vec<u8>>) -> Option<Vec<u8>> {
        if self.is_empty() {
            return jar;
        }
        let is_own = |pair: &[u8]| {
            let name = pair.split(|byte| *byte == b'=').next().unwrap_or_default();
            self.0.iter().any(|(own, _)| own == name)
        };
        let mut field: Vec<u8> = Vec::new();
        let separate = |field: &mut Vec<u8>| {
            if !field.is_empty() {
                field.extend_from_slice(b"; ");
            }
        };
        // No value of a cookie holds a semicolon.
        let pairs = jar.iter().flat_map(|jar| jar.split(|byte| *byte == b';'));
        for pair in pairs.map(|pair| pair.strip_prefix(b" ").unwrap_or(pair)) {
            if !is_own(pair) {
                separate(&mut field);
                field.extend_from_slice(pair);
            }
        }
        for (name, value) in self.iter() {
            separate(&mut field);
            field.extend_from_slice(name);
            field.push(b'=');
            field.extend_from_slice(value);
        }
        Some(field)
    }
}

impl fmt::Debug for OwnCookies {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter().map(|(name, _)| String::from_utf8_lossy(name))).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn own(pairs: &[(&str, &str)]) -> OwnCookies {
        let mut own = OwnCookies::new();
        pairs.iter().for_each(|(name, value)| own.insert(*name, *value));
        own
    }

    #[test]
    fn own_cookies_take_the_place_of_the_jars() {
        let table = [
            (None, &[][..], None),
            (Some("a=1; b=2"), &[], Some("a=1; b=2")),
            (None, &[("a", "9")], Some("a=9")),
            (Some("a=1; b=2"), &[("a", "9")], Some("b=2; a=9")),
            (Some("a=1"), &[("a", "9"), ("c", "")], Some("a=9; c=")),
            (Some("a=x=y; A=1; nameless"), &[("A", "2")], Some("a=x=y; nameless; A=2")),
        ];
        for (jar, pairs, wanted) in table {
            let field = own(pairs).over(jar.map(|jar| jar.as_bytes().to_vec()));
            let text = field.map(|field| String::from_utf8(field).unwrap());
            assert_eq!(text.as_deref(), wanted, "{jar:?} {pairs:?}");
        }
    }

    #[test]
    fn what_is_no_cookie_is_refused_and_not_shown() {
        assert!(own(&[("a", "b=c d, \"e\"\t")]).check().is_ok());
        for (name, value) in
            [("", "s3cret"), ("a=b", "s3cret"), ("a", "s3cret;b"), ("a", "s3cret\n")]
        {
            let error = own(&[(name, value)]).check().unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidHeader, "{name:?}");
            assert!(!format!("{error:?}").contains("s3cret"));
        }
        assert_eq!(format!("{:?}", own(&[("sid", "s3cret")])), "[\"sid\"]");
    }
}
