//! Credentials for the target.

use url::Url;

/// Credentials of a request.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Auth {
    /// Basic, UTF-8 (RFC 7617).
    Basic(String, String),
    /// `Authorization: Bearer`.
    Bearer(String),
}

impl std::fmt::Debug for Auth {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Basic(..) => "Basic(***)",
            Self::Bearer(..) => "Bearer(***)",
        })
    }
}

/// A parsed `.netrc`.
#[derive(Debug, Clone, Default)]
pub struct Netrc {
    _todo: (),
}

impl Netrc {
    /// Parses the text of the file, as Python's `netrc` module does.
    ///
    /// # Errors
    /// The line and what is wrong with it.
    pub fn parse(text: &str) -> Result<Self, crate::Error> {
        let _ = text;
        unimplemented!()
    }
    /// User and password for the exact host of `url`, or those of `default`.
    pub fn auth(&self, url: &Url) -> Option<Auth> {
        let _ = url;
        unimplemented!()
    }
}
