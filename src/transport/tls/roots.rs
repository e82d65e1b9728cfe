//! Who is trusted: the roots, read once for the process, and the check against them.
//!
//! webpki holds a server's certificate to the rules for servers, which is right for everything
//! that an authority issues. Two answers of it are put right for what people make themselves.
//! `openssl req -x509` marks its certificate as one of an authority; where the user names that
//! very certificate as trusted, OpenSSL, and so requests, believes a server that presents it, and
//! so it is here. And "unknown issuer" is told apart from "issued by itself", since the first
//! wants a CA file and the second a second look.

use super::{IDENTITIES, provider};
use crate::error::Error;
use crate::message::Verify;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{WebPkiServerVerifier, verify_server_name};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{CertificateError, DigitallySignedStruct, OtherError, RootCertStore, SignatureScheme};
use std::collections::HashMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::SystemTime;

/// What a verifier is made of; a file that changes makes another one.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Roots {
    verify: Verify,
    files: Vec<(PathBuf, Option<SystemTime>)>,
}

/// The verifier of these settings, shared by all that have the same.
///
/// # Errors
/// `Config` where a file cannot be read or holds no certificate.
pub(super) fn verifier(
    verify: &Verify,
    extra: &[PathBuf],
) -> Result<Arc<dyn ServerCertVerifier>, Error> {
    static VERIFIERS: OnceLock<Mutex<HashMap<Roots, Arc<dyn ServerCertVerifier>>>> =
        OnceLock::new();

    if *verify == Verify::Off {
        return Ok(Arc::new(AcceptAnything(provider())));
    }
    let bundle = match verify {
        Verify::Bundle(path) => Some(path),
        _ => None,
    };
    let modified = |path: &PathBuf| std::fs::metadata(path).and_then(|data| data.modified()).ok();
    let files = bundle.into_iter().chain(extra).map(|path| (path.clone(), modified(path)));
    let roots = Roots { verify: verify.clone(), files: files.collect() };
    // Held while the roots are read, so that 24 workers that start at once read them once.
    let mut verifiers =
        VERIFIERS.get_or_init(Mutex::default).lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(verifier) = verifiers.get(&roots) {
        return Ok(Arc::clone(verifier));
    }

    let mut named = Vec::new();
    for path in bundle.into_iter().chain(extra) {
        named.extend(read_named(path)?);
    }
    let mut store = RootCertStore::empty();
    match verify {
        Verify::On => store.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned()),
        #[cfg(feature = "native-roots")]
        Verify::Native => add_native(&mut store)?,
        Verify::Off | Verify::Bundle(_) => {}
    }
    // A bundle may hold roots of a kind that webpki cannot use; the others still count.
    store.add_parsable_certificates(named.iter().cloned());
    let webpki = WebPkiServerVerifier::builder_with_provider(Arc::new(store), provider())
        .build()
        .map_err(|error| {
        Error::config(format!("the trusted certificates cannot be used: {error}; name others"))
    })?;
    // Only files that keep changing could make this grow.
    if verifiers.len() >= IDENTITIES {
        verifiers.clear();
    }
    let verifier: Arc<dyn ServerCertVerifier> = Arc::new(Checked { webpki, named });
    verifiers.insert(roots, Arc::clone(&verifier));
    Ok(verifier)
}

/// The certificates of a PEM file, or of every file of a folder.
fn read_named(path: &Path) -> Result<Vec<CertificateDer<'static>>, Error> {
    let unreadable = |error: &dyn fmt::Display| {
        Error::config(format!(
            "the CA certificates of {} cannot be read: {error}; name a PEM file or a folder of them",
            path.display()
        ))
    };
    let mut found = Vec::new();
    if path.is_dir() {
        for entry in std::fs::read_dir(path).map_err(|error| unreadable(&error))? {
            let file = entry.map_err(|error| unreadable(&error))?.path();
            // As OpenSSL does: what in the folder is no certificate is passed over.
            if file.is_file()
                && let Ok(certificates) = CertificateDer::pem_file_iter(&file)
            {
                found.extend(certificates.flatten());
            }
        }
        // `c_rehash` makes a link to each file, and some systems add a bundle of all.
        found.sort_unstable_by(|a, b| a.as_ref().cmp(b.as_ref()));
        found.dedup();
    } else {
        for certificate in
            CertificateDer::pem_file_iter(path).map_err(|error| unreadable(&error))?
        {
            found.push(certificate.map_err(|error| unreadable(&error))?);
        }
    }
    if found.is_empty() {
        return Err(Error::config(format!(
            "{} holds no CA certificate in PEM form; name a file or folder that does",
            path.display()
        )));
    }
    Ok(found)
}

#[cfg(feature = "native-roots")]
fn add_native(store: &mut RootCertStore) -> Result<(), Error> {
    let found = rustls_native_certs::load_native_certs();
    for error in &found.errors {
        log::debug!(
            target: "longhaul::tls",
            "some certificates of this system are passed over: {error}"
        );
    }
    if store.add_parsable_certificates(found.certs).0 > 0 {
        return Ok(());
    }
    let why = found.errors.first().map(|error| format!(" ({error})")).unwrap_or_default();
    Err(Error::config(format!(
        "this system has no certificates that can be used{why}; install them (ca-certificates), or \
         name a CA file"
    )))
}

/// The check against the roots, with two answers of webpki put right.
#[derive(Debug)]
struct Checked {
    webpki: Arc<WebPkiServerVerifier>,
    /// What the user has named, certificate by certificate.
    named: Vec<CertificateDer<'static>>,
}

impl ServerCertVerifier for Checked {
    fn verify_server_cert(
        &self,
        presented: &CertificateDer<'_>,
        chain: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        let error = match self.webpki.verify_server_cert(presented, chain, name, ocsp, now) {
            Ok(verified) => return Ok(verified),
            Err(error) => error,
        };
        let is_authority = is_authority(&error);
        // The dates have been found right: webpki looks at them before it looks for the mark.
        if is_authority && self.named.iter().any(|named| named == presented) {
            verify_server_name(&ParsedCertificate::try_from(presented)?, name)?;
            return Ok(ServerCertVerified::assertion());
        }
        let is_unknown =
            matches!(error, rustls::Error::InvalidCertificate(CertificateError::UnknownIssuer));
        if (is_authority || is_unknown) && is_self_signed(presented) {
            return Err(CertificateError::Other(OtherError(Arc::new(SelfSigned))).into());
        }
        Err(error)
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.webpki.verify_tls12_signature(message, certificate, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.webpki.verify_tls13_signature(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.webpki.supported_verify_schemes()
    }
}

/// A certificate that nobody but itself vouches for.
#[derive(Debug)]
pub(super) struct SelfSigned;

impl fmt::Display for SelfSigned {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the certificate is self-signed")
    }
}

impl std::error::Error for SelfSigned {}

/// Whether a server's certificate was refused because it is marked as one of an authority.
fn is_authority(error: &rustls::Error) -> bool {
    let rustls::Error::InvalidCertificate(CertificateError::Other(OtherError(reason))) = error
    else {
        return false;
    };
    matches!(reason.downcast_ref(), Some(webpki::Error::CaUsedAsEndEntity))
}

fn is_self_signed(certificate: &CertificateDer<'_>) -> bool {
    webpki::EndEntityCert::try_from(certificate)
        .is_ok_and(|parsed| parsed.issuer() == parsed.subject())
}

/// The verifier of [`Verify::Off`]: whoever answers is believed.
///
/// Not even the signature of the handshake is checked. It would only prove that the peer owns the
/// key of a certificate that it may have made up a second ago, and checking it would turn away
/// the very servers (odd or ancient certificates) for which people switch verification off.
#[derive(Debug)]
struct AcceptAnything(Arc<CryptoProvider>);

impl ServerCertVerifier for AcceptAnything {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorKind;

    #[test]
    fn the_default_roots_are_read_once() {
        let first = verifier(&Verify::On, &[]).unwrap();
        let second = verifier(&Verify::On, &[]).unwrap();
        assert!(Arc::ptr_eq(&first, &second));
    }

    #[test]
    fn a_bundle_that_cannot_be_used_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let missing = folder.path().join("missing.pem");
        let error = verifier(&Verify::Bundle(missing), &[]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Config);
        assert!(error.to_string().contains("missing.pem"), "{error}");

        let empty = folder.path().join("empty.pem");
        std::fs::write(&empty, "no certificate here\n").unwrap();
        let error = verifier(&Verify::On, &[empty]).unwrap_err();
        assert!(error.to_string().contains("holds no CA certificate"), "{error}");
        let error = verifier(&Verify::Bundle(folder.path().to_owned()), &[]).unwrap_err();
        assert!(error.to_string().contains("holds no CA certificate"), "{error}");
    }
}
