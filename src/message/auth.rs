//! Credentials for the target.
//!
//! Four places can name credentials, and the nearest to the request wins: the request's or
//! session's [`Auth`], an `Authorization` field, the user name in the URL, and last the `.netrc`.
//! requests lets `.netrc` beat an `Authorization` field that the user wrote down, which surprises
//! everybody who meets it: DIFFERENCE(auth-precedence).
//!
//! Basic and Bearer are a field that is the same each time, so they are written when the request is
//! prepared. Digest and credentials of one's own ([`AuthBase`]) depend on the attempt and on what
//! the server said before; the flight makes them anew for each attempt.

use super::Prepared;
use crate::error::{Error, ErrorKind};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::HeaderMap;
use std::error::Error as StdError;
use std::fmt;
use std::io;
use std::sync::Arc;

/// Credentials of a request. Never shown, not by `Debug` either.
///
/// They go to the origin that the request names, and not with a redirect to another one.
#[derive(Clone)]
#[non_exhaustive]
pub enum Auth {
    /// Basic: user and password in UTF-8 (RFC 7617; requests: latin-1, DIFFERENCE(basic-utf8)).
    Basic(String, String),
    /// `Authorization: Bearer` (RFC 6750). A token that is empty, or has a blank or another
    /// character that is not visible ASCII, is `InvalidHeader` before anything is sent.
    Bearer(String),
    /// Digest: user and password (RFC 7616; RFC 2069 where the server names no `qop`).
    ///
    /// A 401 with a Digest challenge is answered once, within the same attempt and its clocks and
    /// free of every retry budget; it stands in the history with a note. The session remembers
    /// the nonce, so that later requests to the same origin send their credentials ahead.
    ///
    /// # Errors
    /// A 401 that cannot be answered (a body that can be read only once, no Digest challenge, an
    /// algorithm or `qop` that nobody knows, wrong credentials) is the response, with a note that
    /// says which. `BodyNotReplayable` where the server is known to want the hash of the body
    /// (`qop=auth-int`) and the body can be read only once; `InvalidHeader` for a user name with
    /// line ends.
    Digest(String, String),
    /// One's own; see [`Auth::custom`].
    Custom(Arc<dyn AuthBase>),
}

impl Auth {
    /// Credentials of one's own making: a signature, a token that has to be renewed.
    ///
    /// # Examples
    /// ```
    /// use longhaul::message::{Auth, AuthBase, Prepared};
    ///
    /// /// Signs the path.
    /// struct Signed(Vec<u8>);
    ///
    /// impl AuthBase for Signed {
    ///     fn apply(
    ///         &self,
    ///         request: &mut Prepared,
    ///     ) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    ///         let sum: u32 = request.url.path().bytes().chain(self.0.clone()).map(u32::from).sum();
    ///         request.headers.insert("X-Signature", sum.to_string())?;
    ///         Ok(())
    ///     }
    /// }
    ///
    /// let session = longhaul::Session::builder().auth(Auth::custom(Signed(b"key".to_vec())));
    /// ```
    pub fn custom(credentials: impl AuthBase + 'static) -> Self {
        Self::Custom(Arc::new(credentials))
    }

    /// The value of the `Authorization` field; `None` where each attempt has its own.
    pub(crate) fn header(&self) -> Result<Option<String>, Error> {
        match self {
            Self::Basic(user, password) => {
                Ok(Some(format!("Basic {}", STANDARD.encode(format!("{user}:{password}")))))
            }
            Self::Bearer(token) => {
                check_token(token)?;
                Ok(Some(format!("Bearer {token}")))
            }
            Self::Digest(..) | Self::Custom(_) => Ok(None),
        }
    }
}

/// Two custom ones are the same only where they are one object.
impl PartialEq for Auth {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Basic(a, b), Self::Basic(c, d)) | (Self::Digest(a, b), Self::Digest(c, d)) => {
                a == c && b == d
            }
            (Self::Bearer(a), Self::Bearer(b)) => a == b,
            (Self::Custom(a), Self::Custom(b)) => Arc::ptr_eq(a, b),
            _ => false,
        }
    }
}

impl Eq for Auth {}

impl fmt::Debug for Auth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Basic(..) => "Basic(***)",
            Self::Bearer(..) => "Bearer(***)",
            Self::Digest(..) => "Digest(***)",
            Self::Custom(..) => "Custom(***)",
        })
    }
}

/// Credentials of one's own: requests' `AuthBase`.
///
/// One object serves all sessions of a recipe, from several threads at once.
pub trait AuthBase: Send + Sync {
    /// Is given the request before each attempt, repetitions and redirects within the origin
    /// included, and changes its fields; requests' `__call__`.
    ///
    /// What it changes holds for this attempt alone and is not shown in the history. The URL may
    /// get another path or query, never another origin: the way there has been chosen already.
    ///
    /// # Errors
    /// Whatever comes ends the request: an [`Error`] of this crate as it is, anything else as
    /// `Config` with its text. The text must not hold the secret.
    fn apply(&self, request: &mut Prepared) -> Result<(), Box<dyn StdError + Send + Sync>>;

    /// Is shown the head of a response by which a server asks for other credentials (401, 403,
    /// 407), and says whether the request is worth sending once more, after another
    /// [`apply`](Self::apply). Default: never.
    ///
    /// It is asked once in an attempt, and not where the body can be read only once. A 407 is
    /// seen here only if the target itself said it; that of a proxy is an error.
    fn handle_401(&self, request: &Prepared, status: u16, headers: &HeaderMap) -> bool {
        let _ = (request, status, headers);
        false
    }
}

/// Applies custom credentials to `request`, and holds them to its origin.
pub(crate) fn apply(credentials: &dyn AuthBase, request: &mut Prepared) -> Result<(), Error> {
    let origin = request.url.origin();
    credentials.apply(request).map_err(|error| match error.downcast::<Error>() {
        Ok(own) => *own,
        Err(other) => {
            let text = format!("the credentials of this request could not be made: {other}");
            Error::config(text).with_source(io::Error::other(other))
        }
    })?;
    if request.url.origin() != origin {
        return Err(Error::config(
            "the credentials of this request changed its URL to another origin; they may change \
             path and query alone",
        ));
    }
    Ok(())
}

/// RFC 6750 allows less, but tokens with other visible characters are in use.
fn check_token(token: &str) -> Result<(), Error> {
    if token.is_empty() {
        let text = "the bearer token is empty; leave it out, or give one";
        return Err(Error::local(ErrorKind::InvalidHeader, text));
    }
    match token.bytes().position(|byte| !byte.is_ascii_graphic()) {
        None => Ok(()),
        Some(at) => Err(Error::local(
            ErrorKind::InvalidHeader,
            format!(
                "the bearer token cannot stand in a field: byte {} of {} is a blank, a line end \
                 or no ASCII; a token that was read from a file often ends with a line end",
                at + 1,
                token.len()
            ),
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::{Request, Settings, prepare};
    use http::Method;

    #[test]
    fn basic_is_utf8() {
        let basic = Auth::Basic("ü".into(), "p:w".into());
        assert_eq!(basic.header().unwrap().as_deref(), Some("Basic w7w6cDp3"));
    }

    #[test]
    fn a_token_that_cannot_stand_in_a_field_is_told_without_it() {
        let good = "a.B-c_d~e+f/g==|:";
        assert_eq!(Auth::Bearer(good.into()).header().unwrap(), Some(format!("Bearer {good}")));
        for (token, part) in [
            ("", "is empty"),
            ("hunter2\n", "byte 8 of 8"),
            ("hun ter2", "byte 4 of 8"),
            ("hunter2\r\nX: y", "byte 8 of 13"),
            ("hünter2", "byte 2 of 8"),
            ("\0hunter2", "byte 1 of 8"),
        ] {
            let error = Auth::Bearer(token.to_owned()).header().unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidHeader, "{token:?}");
            assert!(error.message().contains(part), "{error}");
            assert!(!error.message().contains("ter2"), "{error}");
        }
    }

    /// Does what the test says.
    struct Does(fn(&mut Prepared) -> Result<(), Box<dyn StdError + Send + Sync>>);

    impl AuthBase for Does {
        fn apply(&self, request: &mut Prepared) -> Result<(), Box<dyn StdError + Send + Sync>> {
            (self.0)(request)
        }
    }

    #[test]
    fn custom_credentials_stay_with_the_origin_and_their_errors_keep_their_kind() {
        let request = Request::new(Method::GET, "http://h.test/a");
        let prepared = prepare(&Settings::default(), &request).unwrap();
        let applied = |does| {
            let mut request = prepared.clone();
            apply(&Does(does), &mut request).map(|()| request)
        };
        let signed = applied(|request| {
            request.url.query_pairs_mut().append_pair("sig", "1");
            request.headers.insert("X-Key", "k").map_err(Into::into)
        });
        let signed = signed.unwrap();
        assert_eq!(signed.url.as_str(), "http://h.test/a?sig=1");
        assert_eq!(signed.headers.get("x-key"), Some(&b"k"[..]));

        for (does, kind, part) in [
            (
                (|request| request.headers.insert("X", "a\nb").map_err(Into::into))
                    as fn(&mut Prepared) -> Result<(), Box<dyn StdError + Send + Sync>>,
                ErrorKind::InvalidHeader,
                "",
            ),
            (|_| Err("no token yet".into()), ErrorKind::Config, "no token yet"),
            (
                |request| request.url.set_port(Some(81)).map_err(|()| "no port".into()),
                ErrorKind::Config,
                "another origin",
            ),
        ] {
            let error = applied(does).unwrap_err();
            assert_eq!(error.kind(), kind, "{error}");
            assert!(error.message().contains(part), "{error}");
        }
    }

    #[test]
    fn no_credential_is_shown_and_custom_ones_are_compared_by_identity() {
        let custom = Auth::custom(Does(|_| Ok(())));
        let secret = || "hunter2".to_owned();
        for auth in [
            Auth::Basic(secret(), secret()),
            Auth::Bearer(secret()),
            Auth::Digest(secret(), secret()),
            custom.clone(),
        ] {
            assert!(!format!("{auth:?}").contains("hunter2"), "{auth:?}");
            assert_eq!(auth, auth.clone());
        }
        assert_ne!(custom, Auth::custom(Does(|_| Ok(()))));
        assert_ne!(Auth::Basic(secret(), secret()), Auth::Digest(secret(), secret()));
    }
}
