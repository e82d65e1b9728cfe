//! Credentials for the target.
//!
//! Four places can name credentials, and the nearest to the request wins: the request's or
//! session's [`Auth`], an `Authorization` field, the user name in the URL, and last the `.netrc`.
//! requests lets `.netrc` beat an `Authorization` field that the user wrote down, which surprises
//! everybody who meets it: DIFFERENCE(auth-precedence).

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use std::fmt;

/// Credentials of a request.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Auth {
    /// Basic: user and password in UTF-8 (RFC 7617; requests: latin-1, DIFFERENCE(basic-utf8)).
    Basic(String, String),
    /// `Authorization: Bearer` (RFC 6750).
    Bearer(String),
}

impl Auth {
    /// The value of the `Authorization` field.
    pub(crate) fn header(&self) -> String {
        match self {
            Self::Basic(user, password) => {
                format!("Basic {}", STANDARD.encode(format!("{user}:{password}")))
            }
            Self::Bearer(token) => format!("Bearer {token}"),
        }
    }
}

impl fmt::Debug for Auth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Basic(..) => "Basic(***)",
            Self::Bearer(..) => "Bearer(***)",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn basic_is_utf8() {
        assert_eq!(Auth::Basic("ü".into(), "p:w".into()).header(), "Basic w7w6cDp3");
    }
}
