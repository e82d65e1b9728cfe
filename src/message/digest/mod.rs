//! Digest credentials (RFC 7616, 2617 and 2069): from a challenge to the `Authorization` field.
//!
//! Pure but for the reading of a body that has to be hashed: the client nonce is handed in, and a
//! [`Space`] counts how often its nonce was used. The session keeps the spaces it knows
//! ([`Spaces`]), so that a request sends its credentials ahead instead of running into a 401 first.
//!
//! A client nonce lives as long as the nonce it was drawn for. RFC 7616 3.4.2 makes the first pair
//! part of the secret of a `-sess` algorithm, while most servers calculate with the pair of each
//! request; with one pair both are right.
//!
//! Where we differ from requests:
//! - DIFFERENCE(digest-algorithms): SHA-512-256, `-sess` of every hash and `qop=auth-int` are
//!   spoken; `SHA`, which is in no RFC, is not. requests sends the request again without
//!   credentials there.
//! - DIFFERENCE(digest-challenge): each challenge of each field is read by itself, and the
//!   strongest is answered; requests mixes the parameters of all of them. One without realm or
//!   nonce is a 401 like others; requests raises a bare `KeyError`.
//! - DIFFERENCE(digest-fields): `algorithm` and `qop` are not quoted, quotes in other values are
//!   escaped, and an empty `opaque` comes back, as RFC 7616 3.4 has it.
//! - DIFFERENCE(digest-charset): realm and nonce come back byte by byte, and a user name that is
//!   not ASCII is `username*` for servers that say `charset=UTF-8`; `userhash` is honoured.
//! - DIFFERENCE(digest-spaces): a nonce counts for the origin (and `domain`) that gave it; requests
//!   has one for all hosts.

mod algorithm;
mod challenge;
mod spaces;

pub(crate) use challenge::{Challenge, Offer};
pub(crate) use spaces::Spaces;

use super::Body;
use crate::error::Error;
use challenge::Qop;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use std::fmt;
use url::{Position, Url};

/// Whether a challenge is answered, after so many answers within the same attempt.
///
/// As in requests once. DIFFERENCE(digest-stale): and once more where the server says that only
/// the nonce was too old; requests gives up.
pub(crate) fn is_answered(answers: u8, stale: bool) -> bool {
    answers == 0 || (answers == 1 && stale)
}

/// A protection space: one user at the realm of an origin, under the nonce that it gave last.
pub(crate) struct Space {
    /// Scheme, host and port.
    origin: String,
    user: String,
    password: String,
    challenge: Challenge,
    /// `H(A1)`: all that is secret.
    secret: String,
    cnonce: String,
    /// How often the nonce was used.
    used: u32,
}

/// Shows the origin alone.
impl fmt::Debug for Space {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Space({})", self.origin)
    }
}

impl Space {
    pub(crate) fn new(
        url: &Url,
        user: &str,
        password: &str,
        challenge: Challenge,
        cnonce: String,
    ) -> Self {
        let hash = challenge.algorithm.hash;
        let mut secret = hash.of(&[user.as_bytes(), &challenge.realm, password.as_bytes()]);
        if challenge.algorithm.session {
            secret = hash.of(&[secret.as_bytes(), &challenge.nonce, cnonce.as_bytes()]);
        }
        Self {
            origin: origin(url).to_owned(),
            user: user.to_owned(),
            password: password.to_owned(),
            challenge,
            secret,
            cnonce,
            used: 0,
        }
    }

    /// Whether credentials for `url` may be sent ahead.
    fn covers(&self, url: &Url, user: &str, password: &str) -> bool {
        self.origin == origin(url)
            && self.user == user
            && self.password == password
            && (self.challenge.domain.is_empty() || self.is_in_domain(url))
    }

    /// RFC 7616 3.3: every URL that begins with one of the list, here of this origin alone.
    fn is_in_domain(&self, url: &Url) -> bool {
        self.challenge
            .domain
            .iter()
            .filter_map(|place| url.join(place).ok())
            .any(|place| url.as_str().starts_with(place.as_str()))
    }

    /// The `Authorization` field for one more use of the nonce; `None` where it was used as often
    /// as can be counted.
    ///
    /// # Errors
    /// `BodyNotReplayable` and `Io` for a body that has to be hashed and cannot.
    pub(crate) fn authorization(
        &mut self,
        method: &str,
        url: &Url,
        body: &Body,
    ) -> Result<Option<Vec<u8>>, Error> {
        let Some(used) = self.used.checked_add(1) else { return Ok(None) };
        self.used = used;
        let Self { challenge, secret, cnonce, .. } = &*self;
        let hash = challenge.algorithm.hash;
        // What the origin sees, also where a proxy is sent the whole URL.
        let target = target(url);
        let count = format!("{used:08x}");
        let qop = match challenge.qop {
            Qop::None => None,
            Qop::Auth => Some("auth"),
            Qop::AuthInt => Some("auth-int"),
        };
        let a2 = match challenge.qop {
            Qop::None | Qop::Auth => hash.of(&[method.as_bytes(), target.as_bytes()]),
            Qop::AuthInt => {
                let content = hash.of_body(body)?;
                hash.of(&[method.as_bytes(), target.as_bytes(), content.as_bytes()])
            }
        };
        let [secret, count, cnonce, a2] = [secret, &count, cnonce, &a2].map(String::as_bytes);
        let nonce = challenge.nonce.as_slice();
        let response = match qop {
            None => hash.of(&[secret, nonce, a2]),
            Some(qop) => hash.of(&[secret, nonce, count, cnonce, qop.as_bytes(), a2]),
        };

        let mut field = Field(b"Digest ".to_vec());
        self.write_user(&mut field);
        field.quoted("realm", &challenge.realm);
        field.quoted("nonce", nonce);
        field.quoted("uri", target.as_bytes());
        field.quoted("response", response.as_bytes());
        if let Some(opaque) = &challenge.opaque {
            field.quoted("opaque", opaque);
        }
        if let Some(algorithm) = &challenge.spelled {
            field.plain("algorithm", algorithm);
        }
        if let Some(qop) = qop {
            field.plain("qop", qop.as_bytes());
            field.plain("nc", count);
        }
        // Without it nobody could calculate the secret of a session.
        if qop.is_some() || challenge.algorithm.session {
            field.quoted("cnonce", cnonce);
        }
        if challenge.userhash {
            field.plain("userhash", b"true");
        }
        Ok(Some(field.0))
    }

    fn write_user(&self, field: &mut Field) {
        /// RFC 8187 3.2.1: all but `attr-char`.
        const ESCAPED: &AsciiSet = &NON_ALPHANUMERIC
            .remove(b'!')
            .remove(b'#')
            .remove(b'$')
            .remove(b'&')
            .remove(b'+')
            .remove(b'-')
            .remove(b'.')
            .remove(b'^')
            .remove(b'_')
            .remove(b'`')
            .remove(b'|')
            .remove(b'~');
        if self.challenge.userhash {
            let hash = self.challenge.algorithm.hash;
            let user = hash.of(&[self.user.as_bytes(), &self.challenge.realm]);
            field.quoted("username", user.as_bytes());
        } else if self.challenge.utf8 && !self.user.is_ascii() {
            let user = format!("UTF-8''{}", utf8_percent_encode(&self.user, ESCAPED));
            field.plain("username*", user.as_bytes());
        } else {
            field.quoted("username", self.user.as_bytes());
        }
    }
}

/// Scheme, host and port, of a URL without userinfo.
fn origin(url: &Url) -> &str {
    &url[..Position::BeforePath]
}

/// Path and query.
fn target(url: &Url) -> &str {
    &url[Position::BeforePath..Position::AfterQuery]
}

/// A field that is being written.
struct Field(Vec<u8>);

impl Field {
    fn name(&mut self, name: &str) {
        if !self.0.ends_with(b" ") {
            self.0.extend_from_slice(b", ");
        }
        self.0.extend_from_slice(name.as_bytes());
        self.0.push(b'=');
    }

    fn plain(&mut self, name: &str, value: &[u8]) {
        self.name(name);
        self.0.extend_from_slice(value);
    }

    fn quoted(&mut self, name: &str, value: &[u8]) {
        self.name(name);
        self.0.push(b'"');
        for byte in value {
            if matches!(byte, b'"' | b'\\') {
                self.0.push(b'\\');
            }
            self.0.push(*byte);
        }
        self.0.push(b'"');
    }
}

/// The `Authorization` field that answers the challenges of `headers`; requests'
/// `build_digest_header`. For comparisons and fuzzing: a session does this by itself.
///
/// `None` where no challenge can be answered. `uses` is how often the nonce was used before.
///
/// # Errors
/// As [`Auth::Digest`](super::Auth::Digest).
#[doc(hidden)]
pub fn build_digest_header(
    headers: &http::HeaderMap,
    (user, password): (&str, &str),
    (method, url, body): (&str, &Url, &Body),
    cnonce: &str,
    uses: u32,
) -> Result<Option<Vec<u8>>, Error> {
    let Offer::Usable(challenge) = Offer::of(headers) else { return Ok(None) };
    let mut space = Space::new(url, user, password, *challenge, cnonce.to_owned());
    space.used = uses;
    space.authorization(method, url, body)
}

#[cfg(test)]
mod tests;
