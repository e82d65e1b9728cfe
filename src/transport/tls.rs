//! TLS: one set of roots for the process, one set of tickets for each identity.
//!
//! Reading some 140 root certificates for every engine of every worker would cost more than the
//! requests, so a verifier is made once for each combination of settings and shared. What must
//! *not* be shared are session tickets: a ticket that one exit got and another presents tells the
//! server that both are the same client. Each identity has its own store, and the stores are kept
//! in a bounded LRU, since gateways make an identity of every user name.
//!
//! A client certificate is shown to targets and to no proxy, so an identity has a store for each
//! where there is one: what a target gave to a client that it knows is not presented elsewhere.
//!
//! The crypto provider is handed in explicitly and is never the process default, which belongs to
//! the application.

mod client_cert;
mod failure;
mod roots;

pub(super) use client_cert::Asked;
pub(super) use failure::{Failure, refused_late};

use super::map_error;
use super::stream::{Stream, receive, transmit};
use super::wait::{Expired, Wait};
use crate::error::{Error, ErrorKind, Fault, Phase};
use crate::message::{TlsSettings, TlsVersion, Verify};
use crate::proxy::Identity;
use client_cert::Wallet;
use rustls::client::Resumption;
use rustls::client::danger::ServerCertVerifier;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, SupportedProtocolVersion, version};
use std::collections::HashMap;
use std::io;
use std::sync::{Arc, OnceLock};

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
    is_checked: bool,
    versions: Vec<&'static SupportedProtocolVersion>,
    /// For proxies, and for targets where no certificate is set.
    nothing: Arc<Wallet>,
    /// With the client certificate.
    own: Option<Arc<Wallet>>,
    clients: HashMap<Identity, Client>,
    used: u64,
}

#[derive(Debug, Default)]
struct Client {
    nameless: Option<Arc<ClientConfig>>,
    with_cert: Option<Arc<ClientConfig>>,
    used: u64,
}

impl TlsClients {
    /// With these settings; their files are read here.
    pub(super) fn new(settings: &TlsSettings) -> Result<Self, Error> {
        settings.validate()?;
        // No `..`: a new setting has to be decided on here.
        let TlsSettings { verify, extra_roots, cert, min_version: _, max_version: _ } = settings;
        let versions = [(TlsVersion::Tls13, &version::TLS13), (TlsVersion::Tls12, &version::TLS12)]
            .into_iter()
            .filter_map(|(number, version)| settings.allows(number).then_some(version))
            .collect();
        Ok(Self {
            verifier: roots::verifier(verify, extra_roots)?,
            is_checked: *verify != Verify::Off,
            versions,
            nothing: Arc::default(),
            own: cert.as_ref().map(Wallet::with).transpose()?.map(Arc::new),
            clients: HashMap::new(),
            used: 0,
        })
    }

    /// How many identities have tickets here.
    pub(super) fn len(&self) -> usize {
        self.clients.len()
    }

    /// Whether certificates are checked.
    pub(super) fn is_checked(&self) -> bool {
        self.is_checked
    }

    /// Forgets the tickets of this identity.
    pub(super) fn forget(&mut self, identity: Identity) {
        self.clients.remove(&identity);
    }

    /// Does a TLS handshake over `below` with the host of this name or address: the target, or the
    /// proxy, as `fault` says.
    pub(super) fn handshake(
        &mut self,
        below: Stream,
        host: &str,
        identity: Identity,
        fault: Fault,
        wait: &Wait<'_>,
    ) -> Result<Stream, Error> {
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
            })?;
        let wallet = Arc::clone(match &self.own {
            Some(own) if fault != Fault::Proxy => own,
            _ => &self.nothing,
        });
        let session = self
            .config(identity, &wallet)
            .and_then(|config| ClientConnection::new(config, name))
            .map_err(|error| {
                let text = format!("TLS cannot be begun: {error}");
                Error::new(ErrorKind::Ssl, Phase::Tls, fault, text).with_source(error)
            })?;
        let mut stream = Stream::tls(session, below, fault);
        wallet.close();
        let result = drive(&mut stream, wait);
        stream.set_asked(wallet.asked());
        match result {
            Ok(()) => Ok(stream),
            Err(_) if stream.is_cut() => Err(map_error::cancelled(Phase::Tls)),
            Err(error) if Expired::of(&error).is_some() => {
                Err(map_error::timeout(&error, Phase::Tls, fault))
            }
            Err(error) => Err(failure::in_handshake(error, fault, &stream, &self.versions)),
        }
    }

    fn config(
        &mut self,
        identity: Identity,
        wallet: &Arc<Wallet>,
    ) -> Result<Arc<ClientConfig>, rustls::Error> {
        self.used += 1;
        if self.clients.len() >= IDENTITIES && !self.clients.contains_key(&identity) {
            let oldest = self.clients.iter().min_by_key(|(_, client)| client.used);
            if let Some(oldest) = oldest.map(|(identity, _)| *identity) {
                self.clients.remove(&oldest);
            }
        }
        let client = self.clients.entry(identity).or_default();
        client.used = self.used;
        let place = if wallet.is_empty() { &mut client.nameless } else { &mut client.with_cert };
        if let Some(config) = place {
            return Ok(Arc::clone(config));
        }
        let mut config = ClientConfig::builder_with_provider(provider())
            .with_protocol_versions(&self.versions)?
            .dangerous()
            .with_custom_certificate_verifier(Arc::clone(&self.verifier))
            .with_client_cert_resolver(Arc::clone(wallet) as _);
        config.resumption = Resumption::in_memory_sessions(SERVERS * TICKETS);
        // urllib3 offers the same; some servers turn away clients that offer nothing.
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Arc::clone(place.insert(Arc::new(config))))
    }
}

fn drive(stream: &mut Stream, wait: &Wait<'_>) -> io::Result<()> {
    let Some((session, below, fault)) = stream.session() else { return Ok(()) };
    while session.is_handshaking() {
        transmit(session, below, wait, false)?;
        if !session.is_handshaking() {
            break;
        }
        match receive(session, below, fault, wait) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(_) => {}
            Err(error) => {
                if Failure::of(&error).is_some() {
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
    let (session, _, _) = stream.session()?;
    let version = session.protocol_version()?.as_str()?.replace('_', ".");
    let suite = session.negotiated_cipher_suite()?.suite();
    Some(format!("{version} {}", suite.as_str().unwrap_or("unknown suite")))
}

fn provider() -> Arc<CryptoProvider> {
    static PROVIDER: OnceLock<Arc<CryptoProvider>> = OnceLock::new();
    Arc::clone(PROVIDER.get_or_init(|| Arc::new(rustls::crypto::ring::default_provider())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identities_are_bounded_and_do_not_share_tickets() {
        let settings = TlsSettings { verify: Verify::Off, ..TlsSettings::default() };
        let mut clients = TlsClients::new(&settings).unwrap();
        let nothing = Arc::clone(&clients.nothing);
        let direct = clients.config(Identity::DIRECT, &nothing).unwrap();
        assert!(Arc::ptr_eq(&direct, &clients.config(Identity::DIRECT, &nothing).unwrap()));
        clients.forget(Identity::DIRECT);
        assert!(!Arc::ptr_eq(&direct, &clients.config(Identity::DIRECT, &nothing).unwrap()));
        assert_eq!(clients.len(), 1);
        for number in 0..10_000 {
            let proxy = format!("http://user-{number}:p@proxy.test:8000").parse().unwrap();
            clients.config(Identity::of(&proxy), &nothing).unwrap();
            assert!(clients.len() <= IDENTITIES);
        }
        assert_eq!(clients.len(), IDENTITIES);
    }

    #[test]
    fn bounds_choose_the_versions_and_an_empty_range_is_refused() {
        for (min, max, wanted) in [
            (None, None, 2),
            (Some(TlsVersion::Tls13), None, 1),
            (None, Some(TlsVersion::Tls12), 1),
            (Some(TlsVersion::Tls12), Some(TlsVersion::Tls13), 2),
        ] {
            let settings =
                TlsSettings { min_version: min, max_version: max, ..TlsSettings::default() };
            assert_eq!(TlsClients::new(&settings).unwrap().versions.len(), wanted);
        }
        let settings = TlsSettings {
            min_version: Some(TlsVersion::Tls13),
            max_version: Some(TlsVersion::Tls12),
            ..TlsSettings::default()
        };
        assert_eq!(TlsClients::new(&settings).unwrap_err().kind(), ErrorKind::Config);
    }
}
