//! Request fields in the order and the case that the user gave.

/// An ordered list of fields; names compare without case, and are sent as they were written.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Headers(Vec<(String, Vec<u8>)>);

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
    // insert (replaces in place, one line, keeps position), append, remove, contains; all validate:
    // `Err(InvalidHeader)` for names that are not tokens and values with CR, LF or NUL.
}
