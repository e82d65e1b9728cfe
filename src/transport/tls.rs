//! TLS: one set of roots for the process, one set of tickets for each identity.
//!
//! Reading some 140 root certificates for every engine of every worker would cost more than the
//! requests, so a verifier is made once for each combination of settings and shared. What must
//! *not* be shared are session tickets: a ticket that one exit got and another presents tells the
//! server that both are the same client. Each identity has its own store, and the stores are kept
//! in a bounded LRU, since gateways make an identity of every user name.
//!
//! The crypto provider is handed in explicitly and is never the process default, which belongs to
//! the application.

use super::stream::{Stream, receive, transmit};
use super::wait::{Expired, Wait};
use crate::error::{Error, ErrorKind, Fault, Phase};
use crate::message::Verify;
use crate::proxy::Identity;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{Resumption, WebPkiServerVerifier};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{CertificateError, ClientConfig, ClientConnection, DigitallySignedStruct};
use rustls::{RootCertStore, SignatureScheme};
use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::SystemTime;

/// Identities whose tickets an engine keeps.
const IDENTITIES: usize = 64;
/// Servers whose tickets an identity keeps: as many as a worker talks to in turn, as a rule.
const SERVERS: usize = 32;
/// Tickets of one server; the store of rustls counts these.
const TICKETS: usize = 8;

/// The TLS side of one engine.
#[derive(Debug)]
pub(super) struct TlsClients {
    verifier: Arc<dyn ServerCertVerifier>,
    clients: HashMap<Identity, Client>,
    used: u64,
}

#[derive(Debug)]
struct Client {
    config: Arc<ClientConfig>,
    used: u64,
}

impl TlsClients {
    /// With the roots of these settings.
    pub(super) fn new(verify: &Verify, extra_roots: &[PathBuf]) -> Result<Self, Error> {
        Ok(Self { verifier: verifier(verify, extra_roots)?, clients: HashMap::new(), used: 0 })
    }

    /// How many identities have tickets here.
    pub(super) fn len(&self) -> usize {
        self.clients.len()
    }

    /// Forgets the tickets of this identity.
    pub(super) fn forget(&mut self, identity: Identity) {
        self.clients.remove(&identity);
    }

    /// Does a TLS handshake over `below` with the host of this name or address.
    pub(super) fn handshake(
        &mut self,
        below: Stream,
        host: &str,
        identity: Identity,
        fault: Fault,
        wait: &Wait<'_>,
    ) -> Result<Stream, io::Error> {
        // The final dot of a fully qualified name is no part of the name in a certificate.
        let name =
            ServerName::try_from(host.trim_end_matches('.').to_owned()).map_err(|error| {
                Error::new(
                    ErrorKind::InvalidUrl,
                    Phase::Tls,
                    fault,
                    format!("the host {host:?} cannot stand in a certificate"),
                )
                .with_source(error)
                .into_io()
            })?;
        let session = ClientConnection::new(self.config(identity)?, name).map_err(invalid)?;
        let mut stream = Stream::tls(session, below);
        drive(&mut stream, wait)?;
        Ok(stream)
    }

    fn config(&mut self, identity: Identity) -> io::Result<Arc<ClientConfig>> {
        self.used += 1;
        let used = self.used;
        if let Some(client) = self.clients.get_mut(&identity) {
            client.used = used;
            return Ok(Arc::clone(&client.config));
        }
        if self.clients.len() >= IDENTITIES {
            let oldest = self.clients.iter().min_by_key(|(_, client)| client.used);
            if let Some(oldest) = oldest.map(|(identity, _)| *identity) {
                self.clients.remove(&oldest);
            }
        }
        let mut config = ClientConfig::builder_with_provider(provider())
            .with_safe_default_protocol_versions()
            .map_err(invalid)?
            .dangerous()
            .with_custom_certificate_verifier(Arc::clone(&self.verifier))
            .with_no_client_auth();
        config.resumption = Resumption::in_memory_sessions(SERVERS * TICKETS);
        // urllib3 offers the same; some servers turn away clients that offer nothing.
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        let config = Arc::new(config);
        self.clients.insert(identity, Client { config: Arc::clone(&config), used });
        Ok(config)
    }
}

fn drive(stream: &mut Stream, wait: &Wait<'_>) -> io::Result<()> {
    let Some((session, below)) = stream.session() else { return Ok(()) };
    while session.is_handshaking() {
        transmit(session, below, wait, false)?;
        if !session.is_handshaking() {
            break;
        }
        match receive(session, below, wait) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(_) => {}
            Err(error) => {
                if tls_error(&error).is_some() {
                    // The alert that says why; nobody waits for it.
                    let _ = transmit(session, below, wait, false);
                }
                return Err(error);
            }
        }
    }
    transmit(session, below, wait, false)
}

/// What TLS version and cipher suite a stream uses: `TLSv1.3 TLS13_AES_128_GCM_SHA256`.
pub(super) fn describe(stream: &mut Stream) -> Option<String> {
    let (session, _) = stream.session()?;
    let version = session.protocol_version()?.as_str()?.replace('_', ".");
    let suite = session.negotiated_cipher_suite()?.suite();
    Some(format!("{version} {}", suite.as_str().unwrap_or("unknown suite")))
}

/// The TLS error inside of an I/O error.
pub(super) fn tls_error(error: &io::Error) -> Option<&rustls::Error> {
    error.get_ref()?.downcast_ref()
}

/// The error of a handshake that failed.
pub(super) fn handshake_error(error: io::Error, fault: Fault) -> Error {
    debug_assert!(Expired::of(&error).is_none(), "timeouts are told apart before");
    let who = if fault == Fault::Proxy { "the proxy" } else { "the server" };
    let (kind, message) = match tls_error(&error) {
        Some(rustls::Error::InvalidCertificate(reason)) => {
            (ErrorKind::Certificate, certificate_message(who, reason))
        }
        Some(rustls::Error::NoCertificatesPresented) => {
            (ErrorKind::Certificate, format!("{who} presented no certificate"))
        }
        Some(rustls::Error::InvalidMessage(_)) => (
            ErrorKind::Ssl,
            format!("{who} does not speak TLS on this port; it may be meant for http"),
        ),
        Some(rustls::Error::AlertReceived(alert)) => {
            (ErrorKind::Ssl, format!("{who} broke the TLS handshake off with {alert:?}"))
        }
        Some(rustls::Error::PeerIncompatible(reason)) => {
            (ErrorKind::Ssl, format!("{who} has no TLS 1.2 or 1.3 in common with us: {reason:?}"))
        }
        Some(other) => (ErrorKind::Ssl, format!("the TLS handshake with {who} failed: {other}")),
        None if error.kind() == io::ErrorKind::UnexpectedEof => {
            (ErrorKind::Ssl, format!("{who} closed the connection in the TLS handshake"))
        }
        // requests, too, keeps a reset apart from what TLS has to complain about.
        None => (
            if fault == Fault::Proxy { ErrorKind::ProxyUnreachable } else { ErrorKind::Connection },
            format!("the connection broke in the TLS handshake with {who}: {error}"),
        ),
    };
    Error::new(kind, Phase::Tls, fault, message).with_source(error)
}

fn certificate_message(who: &str, reason: &CertificateError) -> String {
    use CertificateError as E;
    match reason {
        E::Expired | E::ExpiredContext { .. } => {
            format!("the certificate of {who} has expired (or the clock of this machine is wrong)")
        }
        E::NotValidYet | E::NotValidYetContext { .. } => format!(
            "the certificate of {who} is not valid yet (or the clock of this machine is wrong)"
        ),
        E::UnknownIssuer => format!(
            "the certificate of {who} was issued by nobody known here; a private issuer has to be \
             named with a CA file"
        ),
        E::NotValidForName => format!("the certificate of {who} is for another host"),
        E::NotValidForNameContext { expected, presented } => format!(
            "the certificate of {who} is not for {} but for {}",
            expected.to_str(),
            if presented.is_empty() { "no name at all".to_owned() } else { presented.join(", ") }
        ),
        E::Revoked => format!("the certificate of {who} has been revoked"),
        E::BadSignature => format!("the certificate of {who} has a wrong signature"),
        other => format!("the certificate of {who} was not accepted: {other}"),
    }
}

fn invalid(error: rustls::Error) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, error)
}

fn provider() -> Arc<CryptoProvider> {
    static PROVIDER: OnceLock<Arc<CryptoProvider>> = OnceLock::new();
    Arc::clone(PROVIDER.get_or_init(|| Arc::new(rustls::crypto::ring::default_provider())))
}

/// What a verifier is made of; a file that changes makes another one.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Roots {
    verify: Verify,
    files: Vec<(PathBuf, Option<SystemTime>)>,
}

fn verifier(verify: &Verify, extra: &[PathBuf]) -> Result<Arc<dyn ServerCertVerifier>, Error> {
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

    let mut store = RootCertStore::empty();
    match bundle {
        Some(path) => add_roots(&mut store, path)?,
        None => store.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned()),
    }
    for path in extra {
        add_roots(&mut store, path)?;
    }
    let verifier =
        WebPkiServerVerifier::builder_with_provider(Arc::new(store), provider()).build().map_err(
            |error| Error::config(format!("the trusted certificates cannot be used: {error}")),
        )?;
    // Only files that keep changing could make this grow.
    if verifiers.len() >= IDENTITIES {
        verifiers.clear();
    }
    let verifier: Arc<dyn ServerCertVerifier> = verifier;
    verifiers.insert(roots, Arc::clone(&verifier));
    Ok(verifier)
}

/// Adds the certificates of a PEM file, or of every file of a folder.
fn add_roots(store: &mut RootCertStore, path: &Path) -> Result<(), Error> {
    let unreadable = |path: &Path, error: &dyn std::fmt::Display| {
        Error::config(format!("cannot read the CA certificates of {}: {error}", path.display()))
    };
    let before = store.len();
    if path.is_dir() {
        let entries = std::fs::read_dir(path).map_err(|error| unreadable(path, &error))?;
        for entry in entries {
            let file = entry.map_err(|error| unreadable(path, &error))?.path();
            // As OpenSSL does: what in the folder is no certificate is passed over.
            if file.is_file()
                && let Ok(certificates) = CertificateDer::pem_file_iter(&file)
            {
                store.add_parsable_certificates(certificates.flatten());
            }
        }
    } else {
        let certificates =
            CertificateDer::pem_file_iter(path).map_err(|error| unreadable(path, &error))?;
        for certificate in certificates {
            let certificate = certificate.map_err(|error| unreadable(path, &error))?;
            // A bundle may hold roots of a kind that webpki cannot use; the others still count.
            store.add_parsable_certificates([certificate]);
        }
    }
    if store.len() == before {
        return Err(Error::config(format!(
            "{} holds no CA certificate in PEM form",
            path.display()
        )));
    }
    Ok(())
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
        let error = TlsClients::new(&Verify::Bundle(missing), &[]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Config);
        assert!(error.to_string().contains("missing.pem"), "{error}");

        let empty = folder.path().join("empty.pem");
        std::fs::write(&empty, "no certificate here\n").unwrap();
        let error = TlsClients::new(&Verify::On, &[empty]).unwrap_err();
        assert!(error.to_string().contains("holds no CA certificate"), "{error}");
    }

    #[test]
    fn identities_are_bounded_and_do_not_share_tickets() {
        let mut clients = TlsClients::new(&Verify::Off, &[]).unwrap();
        let direct = clients.config(Identity::DIRECT).unwrap();
        assert!(Arc::ptr_eq(&direct, &clients.config(Identity::DIRECT).unwrap()));
        clients.forget(Identity::DIRECT);
        assert!(!Arc::ptr_eq(&direct, &clients.config(Identity::DIRECT).unwrap()));
        assert_eq!(clients.len(), 1);
        for number in 0..10_000 {
            let proxy = format!("http://user-{number}:p@proxy.test:8000").parse().unwrap();
            clients.config(Identity::of(&proxy)).unwrap();
            assert!(clients.len() <= IDENTITIES);
        }
        assert_eq!(clients.len(), IDENTITIES);
    }
}
