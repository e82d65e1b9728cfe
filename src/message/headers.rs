//! Request fields in the order and the case that the user gave.
//!
//! Some sites look at the order and the spelling of field names, and a user of requests expects
//! both to arrive as they were written. So this is a list and not a map: names compare without
//! case, are sent as written, and replacing one keeps its place. The list is shared until it is
//! changed, because a run clones the session's fields for every URL and changes them for few.

use crate::error::{Error, ErrorKind};
use std::sync::Arc;

/// An ordered list of fields; names compare without case, and are sent as they were written.
///
/// Clones share their fields until one of them changes.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct Headers(Arc<Vec<(String, Vec<u8>)>>);

impl Headers {
    /// No fields.
    pub fn new() -> Self {
        Self::default()
    }

    /// Each name (as written) with its value, in order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &[u8])> {
        self.0.iter().map(|(name, value)| (name.as_str(), value.as_slice()))
    }

    /// The first value of `name`.
    pub fn get(&self, name: &str) -> Option<&[u8]> {
        self.0.iter().find(|(have, _)| have.eq_ignore_ascii_case(name)).map(|(_, v)| v.as_slice())
    }

    /// Every value of `name`, in order.
    pub fn get_all(&self, name: &str) -> impl Iterator<Item = &[u8]> {
        self.0
            .iter()
            .filter(move |(have, _)| have.eq_ignore_ascii_case(name))
            .map(|(_, value)| value.as_slice())
    }

    /// Whether there is a field `name`.
    pub fn contains(&self, name: &str) -> bool {
        self.get(name).is_some()
    }

    /// How many lines there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there is no line.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Makes `name` one line with this value: in the place of its first line, else at the end.
    ///
    /// The spelling of `name` given here is the one that is sent, as in requests'
    /// `CaseInsensitiveDict`.
    ///
    /// # Errors
    /// `InvalidHeader`, as for [`append`](Self::append).
    pub fn insert(
        &mut self,
        name: impl Into<String>,
        value: impl Into<Vec<u8>>,
    ) -> Result<(), Error> {
        let (name, value) = checked(name.into(), value.into())?;
        let same = |have: &str| have.eq_ignore_ascii_case(&name);
        let list = Arc::make_mut(&mut self.0);
        match list.iter().position(|(have, _)| same(have)) {
            None => list.push((name, value)),
            Some(place) => {
                let mut index = 0;
                list.retain(|(have, _)| {
                    index += 1;
                    index - 1 <= place || !same(have)
                });
                if let Some(line) = list.get_mut(place) {
                    *line = (name, value);
                }
            }
        }
        Ok(())
    }

    /// Adds a line at the end, whether or not `name` has one already.
    ///
    /// # Errors
    /// `InvalidHeader` for a name that is not a token (RFC 9110 5.6.2), and for a value that
    /// begins with white space or holds CR, LF or NUL. The value is not shown, since it may be a
    /// credential.
    pub fn append(
        &mut self,
        name: impl Into<String>,
        value: impl Into<Vec<u8>>,
    ) -> Result<(), Error> {
        let line = checked(name.into(), value.into())?;
        Arc::make_mut(&mut self.0).push(line);
        Ok(())
    }

    /// Removes every line of `name`; says whether there was one.
    pub fn remove(&mut self, name: &str) -> bool {
        if !self.contains(name) {
            return false;
        }
        Arc::make_mut(&mut self.0).retain(|(have, _)| !have.eq_ignore_ascii_case(name));
        true
    }
}

/// Shows the names, never the values: any of them may be a credential.
impl std::fmt::Debug for Headers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.0.iter().map(|(name, _)| name)).finish()
    }
}

/// The field, if it can be sent.
pub(super) fn checked(name: String, value: Vec<u8>) -> Result<(String, Vec<u8>), Error> {
    let bad = |text: String| Err(Error::local(ErrorKind::InvalidHeader, text));
    if name.is_empty() || !name.bytes().all(is_token_byte) {
        return bad(format!("header name {name:?} is not a token such as Accept-Language"));
    }
    if value.first().is_some_and(u8::is_ascii_whitespace) {
        return bad(format!("the value of header {name} begins with white space; trim it"));
    }
    if value.iter().any(|byte| matches!(byte, b'\r' | b'\n' | 0)) {
        return bad(format!("the value of header {name} holds CR, LF or NUL; remove them"));
    }
    Ok((name, value))
}

fn is_token_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(headers: &Headers) -> Vec<String> {
        headers.iter().map(|(n, v)| format!("{n}: {}", String::from_utf8_lossy(v))).collect()
    }

    #[test]
    fn replacing_keeps_the_place_and_takes_the_new_spelling() {
        let mut headers = Headers::new();
        headers.append("Accept", "a").unwrap();
        headers.append("X-Id", "1").unwrap();
        headers.append("x-id", "2").unwrap();
        headers.append("Last", "z").unwrap();
        let before = headers.clone();
        headers.insert("X-ID", "3").unwrap();
        assert_eq!(shown(&headers), ["Accept: a", "X-ID: 3", "Last: z"]);
        assert_eq!(shown(&before), ["Accept: a", "X-Id: 1", "x-id: 2", "Last: z"]);
        assert_eq!(before.get_all("X-ID").collect::<Vec<_>>(), [b"1", b"2"]);
        assert!(headers.remove("ACCEPT") && !headers.remove("accept"));
        assert_eq!((headers.len(), headers.contains("last")), (2, true));
    }

    #[test]
    fn what_cannot_be_sent_is_refused_without_showing_the_value() {
        for (name, value) in [
            ("", "x"),
            ("a b", "x"),
            ("a:", "x"),
            ("ä", "x"),
            ("a\n", "x"),
            ("a", "s3cret\r\nb: c"),
            ("a", "s3cret\0"),
            ("a", " s3cret"),
            ("a", "\ts3cret"),
        ] {
            let error = Headers::new().append(name, value).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidHeader, "{name:?} {value:?}");
            assert!(!error.to_string().contains("s3cret"));
        }
        for value in [&b""[..], b"a b ", b"\xff\x80", b"caf\xc3\xa9"] {
            let mut headers = Headers::new();
            headers.insert("X-Raw", value).unwrap();
            assert_eq!(headers.get("x-raw"), Some(value));
        }
    }
}
