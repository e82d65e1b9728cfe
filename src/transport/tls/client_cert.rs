//! The client certificate: read, checked against its key, and shown to who asks.
//!
//! A pair that cannot work is found when a session is made, with the file and the remedy, and not
//! by a server that says `handshake_failure`. Whether a server asked is remembered for each
//! handshake: it tells "you have to show one" from all other reasons to break off.

use super::provider;
use crate::error::Error;
use crate::message::Cert;
use rustls::client::ResolvesClientCert;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::CertifiedKey;
use rustls::{CertificateError, InconsistentKeys, SignatureScheme};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Whether the peer has asked for a client certificate, and what it got.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(in crate::transport) enum Asked {
    /// It has not asked.
    #[default]
    No,
    /// It asked, and there was none to show.
    InVain,
    /// It asked and was shown one.
    Shown,
}

/// What can be shown.
#[derive(Debug, Default)]
pub(super) struct Wallet {
    key: Option<Arc<CertifiedKey>>,
    /// One thread does one handshake at a time.
    opened: AtomicBool,
}

impl Wallet {
    /// With this certificate.
    ///
    /// # Errors
    /// `Config` where a file cannot be read, holds something else, or key and certificate do not
    /// belong together.
    pub(super) fn with(cert: &Cert) -> Result<Self, Error> {
        Ok(Self { key: Some(Arc::new(load(cert)?)), opened: AtomicBool::new(false) })
    }

    pub(super) fn is_empty(&self) -> bool {
        self.key.is_none()
    }

    /// Before a handshake: nobody has asked yet.
    pub(super) fn close(&self) {
        self.opened.store(false, Ordering::Relaxed);
    }

    pub(super) fn asked(&self) -> Asked {
        match (self.opened.load(Ordering::Relaxed), self.is_empty()) {
            (false, _) => Asked::No,
            (true, true) => Asked::InVain,
            (true, false) => Asked::Shown,
        }
    }
}

impl ResolvesClientCert for Wallet {
    fn resolve(&self, _: &[&[u8]], _: &[SignatureScheme]) -> Option<Arc<CertifiedKey>> {
        self.opened.store(true, Ordering::Relaxed);
        self.key.clone()
    }

    fn has_certs(&self) -> bool {
        !self.is_empty()
    }
}

fn load(cert: &Cert) -> Result<CertifiedKey, Error> {
    let (file, key_file) = (cert.file(), cert.key_file());
    let apart = file != key_file;
    let bytes = read("client certificate", file)?;
    let chain: Vec<CertificateDer<'static>> =
        CertificateDer::pem_slice_iter(&bytes).collect::<Result<_, _>>().map_err(|error| {
            Error::config(format!(
                "the client certificate in {} is damaged: {error}; name an intact PEM file",
                file.display()
            ))
        })?;
    if chain.is_empty() {
        let what = if looks_like_der(&bytes) {
            "is not in PEM form but in DER or PKCS #12; convert it with `openssl x509 -inform DER`, \
             or with `openssl pkcs12 -nodes`"
        } else {
            "holds no certificate; name the PEM file with the client's own certificate"
        };
        return Err(Error::config(format!("{} {what}", file.display())));
    }
    let key_bytes = if apart { read("private key", key_file)? } else { bytes };
    let key = private_key(&key_bytes, key_file, apart)?;
    let key = provider().key_provider.load_private_key(key).map_err(|error| {
        let shown = key_file.display();
        Error::config(format!(
            "the private key in {shown} is of a kind that cannot be used; RSA from 2048 bits on, \
             P-256, P-384 and Ed25519 can"
        ))
        .with_source(error)
    })?;
    let certified = CertifiedKey::new(chain, key);
    match certified.keys_match() {
        // Keys that cannot be compared, and certificates that no server of today would show but
        // that a server may accept (version 1): it is the server that judges them.
        Ok(())
        | Err(
            rustls::Error::InconsistentKeys(InconsistentKeys::Unknown)
            | rustls::Error::InvalidCertificate(CertificateError::Other(_)),
        ) => Ok(certified),
        Err(error) => {
            let (file, key_file) = (file.display(), key_file.display());
            Err(Error::config(match error {
                rustls::Error::InconsistentKeys(_) if apart => format!(
                    "the private key in {key_file} does not fit the certificate in {file}; name \
                     the key that the certificate was made for, and see that the client's own \
                     certificate comes first"
                ),
                rustls::Error::InconsistentKeys(_) => format!(
                    "the private key and the first certificate in {file} do not fit each other; \
                     put the client's own certificate first, with its key"
                ),
                error => format!(
                    "the client certificate in {file} cannot be used: {error}; name an intact one"
                ),
            }))
        }
    }
}

fn private_key(bytes: &[u8], file: &Path, apart: bool) -> Result<PrivateKeyDer<'static>, Error> {
    let shown = file.display();
    // Told first: to a PEM parser an encrypted key is either none or a damaged one.
    let text = String::from_utf8_lossy(bytes);
    if text.contains("-----BEGIN ENCRYPTED PRIVATE KEY-----") || text.contains("4,ENCRYPTED") {
        return Err(Error::config(format!(
            "the private key in {shown} is encrypted, and passwords of keys are not asked for, as \
             in requests; decrypt it with `openssl pkey -in FILE -out PLAIN` and protect the file"
        )));
    }
    PrivateKeyDer::from_pem_slice(bytes).map_err(|error| {
        Error::config(match error {
            rustls::pki_types::pem::Error::NoItemsFound if !apart => format!(
                "{shown} holds a certificate but no private key; add the key to it, or name the \
                 key's own file besides"
            ),
            rustls::pki_types::pem::Error::NoItemsFound => format!(
                "{shown} holds no private key in PEM form; name the file with `BEGIN PRIVATE KEY`"
            ),
            error => format!("the private key in {shown} is damaged: {error}; name an intact one"),
        })
    })
}

fn read(what: &str, file: &Path) -> Result<Vec<u8>, Error> {
    std::fs::read(file).map_err(|error| {
        let shown = file.display();
        Error::config(format!("the {what} {shown} cannot be read: {error}; name a PEM file"))
    })
}

/// Whether this begins as every certificate, key and PKCS #12 file does in binary form.
fn looks_like_der(bytes: &[u8]) -> bool {
    matches!(bytes, [0x30, 0x80..=0x84, ..])
}
