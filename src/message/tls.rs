//! What a session says about TLS: whom it believes, who it is, and which versions it speaks.
//!
//! All of it is one value, [`TlsSettings`], because all of it decides together whether a
//! connection may be used for a request: one that was made without a client certificate must not
//! carry a request that is to be made with one, nor one whose peer nobody checked a request that
//! wants it checked. So whoever keeps connections keeps them by this value.
//!
//! Nothing is read here. Files are named, and the transport reads them when it is made.

use super::{Overrides, Setting};
use crate::error::Error;
use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// Whether and against what certificates are checked: requests' `verify`.
#[non_exhaustive]
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub enum Verify {
    /// Against the default roots: those of Mozilla, built in, or the bundle that the environment
    /// names.
    #[default]
    On,
    /// Not at all: whoever answers is believed. A log line says so once for each recipe.
    Off,
    /// Against the PEM certificates of this file or folder instead of the default roots.
    ///
    /// Of a folder every file counts that holds certificates, whatever its name; so a folder for
    /// `c_rehash` works, and one that was never seen by it. A server that presents one of these
    /// very certificates is believed too, even where it is marked as one of an authority, as
    /// `openssl req -x509` makes them.
    Bundle(PathBuf),
    /// Against the roots that this system trusts: those of its administrator.
    ///
    /// On Linux they are found as OpenSSL finds them, which includes the variables `SSL_CERT_FILE`
    /// and `SSL_CERT_DIR`, also in a session that does not trust the environment.
    #[cfg(feature = "native-roots")]
    Native,
}

/// A client certificate with its private key, as files in PEM form: requests' `cert`.
///
/// One file may hold both. The first certificate is the client's own; what follows are those that
/// lead to an authority. The key is PKCS #8, PKCS #1 or SEC1, and not encrypted.
///
/// # Examples
/// ```
/// use longhaul::message::Cert;
///
/// let both = Cert::from("client.pem");
/// let pair = Cert::from(("client.crt", "client.key"));
/// assert_eq!(both.key_file(), both.file());
/// assert_ne!(pair.key_file(), pair.file());
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Cert {
    file: PathBuf,
    key: Option<PathBuf>,
}

impl Cert {
    /// Certificate and key in one file.
    pub fn new(file: impl Into<PathBuf>) -> Self {
        Self { file: file.into(), key: None }
    }

    /// Certificate and key in a file each.
    pub fn with_key(file: impl Into<PathBuf>, key: impl Into<PathBuf>) -> Self {
        Self { file: file.into(), key: Some(key.into()) }
    }

    /// The file with the certificate.
    pub fn file(&self) -> &Path {
        &self.file
    }

    /// The file with the private key; that of the certificate where no other was named.
    pub fn key_file(&self) -> &Path {
        self.key.as_deref().unwrap_or(&self.file)
    }
}

impl From<&str> for Cert {
    fn from(file: &str) -> Self {
        Self::new(file)
    }
}

impl From<String> for Cert {
    fn from(file: String) -> Self {
        Self::new(file)
    }
}

impl From<&Path> for Cert {
    fn from(file: &Path) -> Self {
        Self::new(file)
    }
}

impl From<PathBuf> for Cert {
    fn from(file: PathBuf) -> Self {
        Self::new(file)
    }
}

impl<C: Into<PathBuf>, K: Into<PathBuf>> From<(C, K)> for Cert {
    fn from((file, key): (C, K)) -> Self {
        Self::with_key(file, key)
    }
}

/// A version of TLS that can be spoken.
///
/// Older ones have known holes, and no code for them is here.
#[non_exhaustive]
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TlsVersion {
    /// TLS 1.2, RFC 5246.
    Tls12,
    /// TLS 1.3, RFC 8446.
    Tls13,
}

impl FromStr for TlsVersion {
    type Err = Error;

    /// `1.2` or `1.3`, also with `TLS` or `TLSv` before it.
    fn from_str(text: &str) -> Result<Self, Error> {
        let word = text.trim();
        let number = word.get(..3).filter(|start| start.eq_ignore_ascii_case("tls"));
        let number = number.and_then(|start| word.strip_prefix(start)).unwrap_or(word);
        match number.trim_start_matches(['v', 'V', ' ']) {
            "1.2" => Ok(Self::Tls12),
            "1.3" => Ok(Self::Tls13),
            _ => Err(Error::config(format!("'{text}' is no TLS version; give 1.2 or 1.3"))),
        }
    }
}

impl fmt::Display for TlsVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Tls12 => "1.2",
            Self::Tls13 => "1.3",
        })
    }
}

/// All that decides what a TLS connection is; connections of different settings are never mixed.
///
/// It holds for the target and for a proxy that is spoken to over TLS alike, but for
/// [`cert`](Self::cert).
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub struct TlsSettings {
    /// Whether and against what certificates are checked; default [`Verify::On`].
    pub verify: Verify,
    /// Further roots beside those of `verify`, as files or folders; default none.
    pub extra_roots: Vec<PathBuf>,
    /// Shown to every target that asks for a certificate, and to no proxy (as urllib3); default
    /// none.
    pub cert: Option<Cert>,
    /// The lowest version that is spoken; default 1.2, below which there is none.
    pub min_version: Option<TlsVersion>,
    /// The highest version that is spoken; default 1.3, above which there is none.
    pub max_version: Option<TlsVersion>,
}

impl TlsSettings {
    /// Checks what can be checked without reading a file.
    ///
    /// # Errors
    /// `Config` where no version is left between the bounds.
    pub fn validate(&self) -> Result<(), Error> {
        match (self.min_version, self.max_version) {
            (Some(min), Some(max)) if min > max => Err(Error::config(format!(
                "the lowest TLS version {min} is above the highest, {max}; leave one of them out, \
                 or give a lowest that is not above the highest"
            ))),
            _ => Ok(()),
        }
    }

    /// Whether this version lies between the bounds.
    pub fn allows(&self, version: TlsVersion) -> bool {
        self.min_version.is_none_or(|min| min <= version)
            && self.max_version.is_none_or(|max| version <= max)
    }

    /// The settings of a request that changes some; `None` where it changes none, which is what
    /// nearly every request does.
    pub(crate) fn overridden(&self, by: &Overrides) -> Option<Self> {
        // No `..`: a new setting has to be decided on here.
        let Overrides { verify, cert, tls_min_version, tls_max_version, .. } = by;
        let untouched = verify.is_none()
            && matches!(cert, Setting::Inherit)
            && matches!(tls_min_version, Setting::Inherit)
            && matches!(tls_max_version, Setting::Inherit);
        if untouched {
            return None;
        }
        Some(Self {
            verify: verify.as_ref().unwrap_or(&self.verify).clone(),
            extra_roots: self.extra_roots.clone(),
            cert: cert.over(self.cert.as_ref()).cloned(),
            min_version: tls_min_version.over(self.min_version.as_ref()).copied(),
            max_version: tls_max_version.over(self.max_version.as_ref()).copied(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use TlsVersion::{Tls12, Tls13};

    #[test]
    fn versions_are_read_as_people_write_them() {
        for (text, wanted) in [
            ("1.2", Some(Tls12)),
            (" 1.3 ", Some(Tls13)),
            ("TLSv1.3", Some(Tls13)),
            ("tls 1.2", Some(Tls12)),
            ("TLS1.2", Some(Tls12)),
            ("1.1", None),
            ("1.4", None),
            ("13", None),
            ("", None),
            ("ä1.2", None),
        ] {
            assert_eq!(text.parse().ok(), wanted, "{text}");
        }
        let error = "1.1".parse::<TlsVersion>().unwrap_err();
        assert_eq!(error.message(), "'1.1' is no TLS version; give 1.2 or 1.3");
    }

    #[test]
    fn a_range_without_a_version_is_refused() {
        for (min, max, works) in [
            (None, None, true),
            (Some(Tls12), Some(Tls13), true),
            (Some(Tls13), None, true),
            (Some(Tls13), Some(Tls13), true),
            (None, Some(Tls12), true),
            (Some(Tls13), Some(Tls12), false),
        ] {
            let settings =
                TlsSettings { min_version: min, max_version: max, ..TlsSettings::default() };
            assert_eq!(settings.validate().is_ok(), works, "{min:?} {max:?}");
            assert_eq!(settings.allows(Tls12) || settings.allows(Tls13), works);
        }
    }

    #[test]
    fn a_request_changes_sets_and_takes_away() {
        let mut session = TlsSettings { cert: Some("own.pem".into()), ..TlsSettings::default() };
        session.max_version = Some(Tls12);
        let mut by = Overrides::default();
        assert_eq!(session.overridden(&by), None);
        by.cert = Setting::Unset;
        by.tls_max_version = Setting::Unset;
        by.tls_min_version = Setting::Set(Tls13);
        let changed = session.overridden(&by).unwrap();
        assert_eq!(
            (changed.cert, changed.min_version, changed.max_version),
            (None, Some(Tls13), None)
        );
        by = Overrides { cert: Setting::Set(("a", "b").into()), ..Overrides::default() };
        let changed = session.overridden(&by).unwrap();
        assert_eq!(changed.cert, Some(Cert::with_key("a", "b")));
        assert_eq!((changed.max_version, changed.verify), (Some(Tls12), Verify::On));
    }
}
