//! A certificate authority that lives as long as the test.
//!
//! A client that is to trust the lab gets [`Ca::pem`] as an extra root; nothing is ever installed
//! on the machine. The TLS ports of the lab issue a certificate for whatever name the client asks
//! for, unless they were told which names to hold: that is how a wrong certificate is made.

use std::collections::HashMap;
use std::fmt;
use std::fs;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair, KeyUsagePurpose,
    date_time_ymd,
};
use rustls::crypto::ring;
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::server::danger::ClientCertVerifier;
use rustls::server::{ClientHello, ResolvesServerCert, WebPkiClientVerifier};
use rustls::sign::CertifiedKey;
use rustls::{RootCertStore, ServerConfig};

use crate::error::{Error, ErrorKind};

/// Names that stand in every certificate issued to a client that sends no name.
const LOOPBACK: [&str; 3] = ["localhost", "127.0.0.1", "::1"];

/// How many certificates a port keeps ready; the names come from clients.
const KEPT: usize = 1024;

/// A certificate authority made on the spot.
///
/// Clones are the same authority.
#[derive(Clone)]
pub struct Ca {
    issuer: Arc<CertifiedIssuer<'static, KeyPair>>,
}

impl Ca {
    /// Makes a key and a self-signed root.
    ///
    /// # Errors
    /// [`ErrorKind::Internal`] when the machine has no randomness to give.
    pub fn new() -> Result<Self, Error> {
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, "longhaul lab");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        let key = KeyPair::generate().map_err(failed)?;
        let issuer = CertifiedIssuer::self_signed(params, key).map_err(failed)?;
        Ok(Self { issuer: Arc::new(issuer) })
    }

    /// The root certificate, as a client's trust store takes it.
    pub fn pem(&self) -> String {
        self.issuer.pem()
    }

    /// Writes [`pem`](Ca::pem) to a file, for programs that want a path.
    ///
    /// # Errors
    /// [`ErrorKind::Io`] when the file cannot be written.
    pub fn write_pem(&self, path: impl AsRef<Path>) -> Result<(), Error> {
        write(path.as_ref(), &self.pem())
    }

    /// A certificate for these host names and addresses, signed by this authority.
    ///
    /// # Errors
    /// [`ErrorKind::Config`] when a name cannot stand in a certificate.
    pub fn issue<N: Into<String>>(
        &self,
        names: impl IntoIterator<Item = N>,
    ) -> Result<Issued, Error> {
        self.sign(names, |_| {})
    }

    /// As [`issue`](Ca::issue), but valid in the year 2001 only.
    ///
    /// # Errors
    /// [`ErrorKind::Config`] when a name cannot stand in a certificate.
    pub fn issue_expired<N: Into<String>>(
        &self,
        names: impl IntoIterator<Item = N>,
    ) -> Result<Issued, Error> {
        self.sign(names, |params| {
            params.not_before = date_time_ymd(2001, 1, 1);
            params.not_after = date_time_ymd(2001, 12, 31);
        })
    }

    fn sign<N: Into<String>>(
        &self,
        names: impl IntoIterator<Item = N>,
        adjust: impl FnOnce(&mut CertificateParams),
    ) -> Result<Issued, Error> {
        let names: Vec<String> = names.into_iter().map(Into::into).collect();
        let wrong = |error: rcgen::Error| {
            Error::config(format!("no certificate can be issued for {names:?}: {error}"))
        };
        let mut params = CertificateParams::new(names.clone()).map_err(wrong)?;
        params.distinguished_name.push(DnType::CommonName, "longhaul lab server");
        adjust(&mut params);
        let key = KeyPair::generate().map_err(failed)?;
        let certificate = params.signed_by(&key, &self.issuer).map_err(wrong)?;
        Ok(Issued {
            certificate_pem: certificate.pem(),
            key_pem: key.serialize_pem(),
            certificate: certificate.der().to_vec(),
            key: key.serialize_der(),
        })
    }
}

impl fmt::Debug for Ca {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ca").finish_non_exhaustive()
    }
}

/// A certificate of a server, or of a client, with its key.
#[derive(Clone)]
pub struct Issued {
    certificate_pem: String,
    key_pem: String,
    certificate: Vec<u8>,
    key: Vec<u8>,
}

impl Issued {
    /// The certificate.
    pub fn certificate_pem(&self) -> &str {
        &self.certificate_pem
    }

    /// The certificate in binary form, as [`Received`](super::Received) has it of a client.
    pub fn certificate_der(&self) -> &[u8] {
        &self.certificate
    }

    /// The private key, PKCS #8.
    pub fn key_pem(&self) -> &str {
        &self.key_pem
    }

    /// Writes certificate and key to two files, for programs that want paths.
    ///
    /// # Errors
    /// [`ErrorKind::Io`] when a file cannot be written.
    pub fn write_pem(
        &self,
        certificate: impl AsRef<Path>,
        key: impl AsRef<Path>,
    ) -> Result<(), Error> {
        write(certificate.as_ref(), &self.certificate_pem)?;
        write(key.as_ref(), &self.key_pem)
    }

    fn certified(&self) -> Result<CertifiedKey, Error> {
        let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(self.key.clone()));
        let key = ring::sign::any_supported_type(&key).map_err(failed)?;
        Ok(CertifiedKey::new(vec![self.certificate.clone().into()], key))
    }
}

impl fmt::Debug for Issued {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Issued").finish_non_exhaustive()
    }
}

/// Which certificates a TLS port holds.
#[derive(Debug, Clone)]
pub(super) enum Holds {
    /// One for each name that a client asks for.
    Anything(Ca),
    /// This one, whatever is asked.
    One(Issued),
}

impl Holds {
    /// The configuration of a TLS port: 1.2 and 1.3, tickets on, no ALPN; clients have to show a
    /// certificate of this authority where there is one.
    pub(super) fn config(&self, clients: Option<&Ca>) -> Result<Arc<ServerConfig>, Error> {
        let resolver: Arc<dyn ResolvesServerCert> = match self {
            Self::Anything(ca) => Arc::new(ByName {
                ca: ca.clone(),
                nameless: Arc::new(ca.issue(LOOPBACK)?.certified()?),
                issued: Mutex::default(),
            }),
            Self::One(issued) => Arc::new(Fixed(Arc::new(issued.certified()?))),
        };
        let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(failed)?
            .with_client_cert_verifier(client_verifier(clients)?)
            .with_cert_resolver(resolver);
        config.ticketer = ring::Ticketer::new().map_err(failed)?;
        Ok(Arc::new(config))
    }
}

fn client_verifier(clients: Option<&Ca>) -> Result<Arc<dyn ClientCertVerifier>, Error> {
    let Some(ca) = clients else { return Ok(WebPkiClientVerifier::no_client_auth()) };
    let mut roots = RootCertStore::empty();
    roots.add(ca.issuer.der().clone()).map_err(failed)?;
    let provider = Arc::new(ring::default_provider());
    WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider).build().map_err(failed)
}

#[derive(Debug)]
struct ByName {
    ca: Ca,
    nameless: Arc<CertifiedKey>,
    issued: Mutex<HashMap<String, Arc<CertifiedKey>>>,
}

impl ResolvesServerCert for ByName {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        let Some(name) = hello.server_name().filter(|name| *name != "localhost") else {
            return Some(Arc::clone(&self.nameless));
        };
        let mut issued = self.issued.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = issued.get(name) {
            return Some(Arc::clone(known));
        }
        let fresh = Arc::new(self.ca.issue([name]).ok()?.certified().ok()?);
        if issued.len() < KEPT {
            issued.insert(name.to_owned(), Arc::clone(&fresh));
        }
        Some(fresh)
    }
}

#[derive(Debug)]
struct Fixed(Arc<CertifiedKey>);

impl ResolvesServerCert for Fixed {
    fn resolve(&self, _hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(Arc::clone(&self.0))
    }
}

fn write(path: &Path, pem: &str) -> Result<(), Error> {
    fs::write(path, pem).map_err(|error| {
        let message = format!("{} cannot be written: {error}", path.display());
        Error::local(ErrorKind::Io, message)
    })
}

fn failed(error: impl fmt::Display) -> Error {
    Error::local(ErrorKind::Internal, format!("the certificate authority of the lab: {error}"))
}
