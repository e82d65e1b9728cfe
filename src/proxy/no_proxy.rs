//! `NO_PROXY`.

use url::Url;

/// The hosts that go direct.
#[derive(Debug, Clone, Default)]
pub struct NoProxy {
    _todo: (),
}

impl NoProxy {
    /// Parses the value of the variable; junk is ignored.
    pub fn parse(value: &str) -> Self {
        let _ = value;
        unimplemented!()
    }
    /// Whether `url` goes direct. Never resolves a name.
    pub fn matches(&self, url: &Url) -> bool {
        let _ = url;
        unimplemented!()
    }
}
