//! Client certificates: shown to targets that ask, and what happens where they are missing, wrong
//! or refused.

use crate::tls::{Ca, answer_all, assert_tls, head, secure, url};
use crate::{Client, through};
use longhaul::error::{ErrorKind, Fault, Phase};
use longhaul::message::Cert;
use longhaul::transport::{Engine, EngineConfig};
use rustls::server::WebPkiClientVerifier;
use rustls::version::{TLS12, TLS13};
use rustls::{RootCertStore, SupportedProtocolVersion};
use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use tempfile::TempDir;

const VERSIONS: [&[&SupportedProtocolVersion]; 2] = [&[&TLS13], &[&TLS12]];

/// A client's certificate in files.
struct Files {
    folder: TempDir,
}

impl Files {
    fn of(ca: &Ca) -> Self {
        Self::with(ca, |_| {})
    }

    fn with(ca: &Ca, change: impl FnOnce(&mut rcgen::CertificateParams)) -> Self {
        let (certificate, key) = ca.issue(change);
        let files = Self { folder: tempfile::tempdir().unwrap() };
        files.write("client.crt", &certificate.pem());
        files.write("client.key", &key.serialize_pem());
        files.write("both.pem", &(key.serialize_pem() + &certificate.pem()));
        files
    }

    fn write(&self, name: &str, text: &str) {
        std::fs::write(self.path(name), text).unwrap();
    }

    fn path(&self, name: &str) -> std::path::PathBuf {
        self.folder.path().join(name)
    }

    fn pair(&self) -> Cert {
        Cert::with_key(self.path("client.crt"), self.path("client.key"))
    }
}

fn demanding(
    servers: &Ca,
    clients: &Ca,
    versions: &[&'static SupportedProtocolVersion],
) -> Arc<rustls::ServerConfig> {
    let mut roots = RootCertStore::empty();
    roots.add(clients.der()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let verifier =
        WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider).build().unwrap();
    let (certificate, key) = servers.issue(|_| {});
    Ca::serve(versions, certificate.der(), &key, Some(verifier))
}

fn client(ca: &Ca, cert: Option<Cert>) -> Client {
    Client::with(|config| {
        config.tls.extra_roots = vec![ca.path().to_owned()];
        config.tls.cert = cert;
    })
}

#[test]
fn a_certificate_is_shown_from_one_file_and_from_two() {
    let (ca, clients) = (Ca::new(), Ca::new());
    let files = Files::of(&clients);
    for versions in VERSIONS {
        let (server, _) = secure(demanding(&ca, &clients, versions), answer_all);
        for cert in [files.pair(), Cert::new(files.path("both.pem"))] {
            let mut client = client(&ca, Some(cert));
            for _ in 0..2 {
                assert_eq!(client.get(&url(&server)).unwrap().1, "ok");
            }
        }
        assert_eq!(server.connections(), 2);
    }
}

#[test]
fn a_certificate_that_is_demanded_and_missing() {
    let ca = Ca::new();
    for versions in VERSIONS {
        let (server, _) = secure(demanding(&ca, &Ca::new(), versions), answer_all);
        let error = client(&ca, None).get(&url(&server)).unwrap_err();
        let what = "the server demands a client certificate and none is set; give one with `cert`";
        assert_tls(&error, ErrorKind::Certificate, Fault::Target, what);
        assert_eq!(error.requests_name(), "SSLError");
    }
}

#[test]
fn a_certificate_that_the_server_refuses() {
    let (ca, clients) = (Ca::new(), Ca::new());
    let strange = Files::of(&Ca::new());
    let old = Files::with(&clients, |params| {
        params.not_before = rcgen::date_time_ymd(2001, 1, 1);
        params.not_after = rcgen::date_time_ymd(2002, 1, 1);
    });
    for versions in VERSIONS {
        let (server, _) = secure(demanding(&ca, &clients, versions), answer_all);
        for (files, what) in [
            (&strange, "says that the client certificate was issued by nobody known there"),
            (&old, "says that the client certificate has expired; name another"),
        ] {
            let error = client(&ca, Some(files.pair())).get(&url(&server)).unwrap_err();
            assert_tls(&error, ErrorKind::Certificate, Fault::Target, what);
        }
    }
}

/// The request is written to a server that has stopped listening; what it said counts.
#[test]
fn a_refusal_is_told_also_where_much_is_being_sent() {
    let ca = Ca::new();
    let (server, _) = secure(demanding(&ca, &Ca::new(), &[&TLS13]), answer_all);
    let mut client = client(&ca, None);
    let url = url::Url::parse(&url(&server)).unwrap();
    let body = vec![b'x'; 4 << 20];
    let mut outgoing =
        longhaul::transport::Outgoing::new(&http::Method::POST, &url, &client.headers);
    outgoing.body = longhaul::transport::OutgoingBody::Bytes(&body);
    let error = longhaul::transport::Transport::attempt(
        &mut client.engine,
        outgoing,
        &longhaul::proxy::Route::direct(),
        &crate::ample(),
    )
    .unwrap_err();
    assert_tls(&error, ErrorKind::Certificate, Fault::Target, "none is set");
}

#[test]
fn a_proxy_is_shown_none() {
    let ca = Ca::new();
    let files = Files::of(&ca);
    let (origin, _) = secure(demanding(&ca, &ca, &[&TLS13]), answer_all);
    let (proxy, _) = secure(ca.config(|_| {}), {
        let to = origin.addr;
        move |stream| crate::tls::serve_tunnels(stream, to)
    });
    // The target gets it, through the proxy that speaks TLS too.
    let route = through(&format!("https://{}", proxy.addr));
    let mut client = client(&ca, Some(files.pair()));
    assert_eq!(client.fetch("https://a.test/", &route).unwrap().1, "ok");

    for versions in VERSIONS {
        let (proxy, _) = secure(demanding(&ca, &ca, versions), |stream| {
            while head(stream).is_some() {
                stream.write_all(crate::peer::OK.as_bytes()).unwrap();
            }
        });
        let route = through(&format!("https://{}", proxy.addr));
        for target in ["http://a.test/", "https://a.test/"] {
            let error = client.fetch(target, &route).unwrap_err();
            let what = "the proxy demands a client certificate";
            assert_tls(&error, ErrorKind::Certificate, Fault::Proxy, what);
            assert_eq!(error.requests_name(), "ProxyError");
        }
    }
}

#[test]
fn files_that_cannot_be_used_are_named_with_a_remedy() {
    let ca = Ca::new();
    let (files, other) = (Files::of(&ca), Files::of(&ca));
    let (crt, key) = (files.path("client.crt"), files.path("client.key"));
    files.write("empty.pem", "");
    files.write(
        "encrypted.key",
        "-----BEGIN ENCRYPTED PRIVATE KEY-----\nMIIB\n-----END ENCRYPTED PRIVATE KEY-----\n",
    );
    files.write(
        "old.key",
        "-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,00\n\nMIIB\n\
         -----END RSA PRIVATE KEY-----\n",
    );
    files.write("damaged.key", "-----BEGIN PRIVATE KEY-----\nMIIB\n-----END PRIVATE KEY-----\n");
    files.write("torn.crt", "-----BEGIN CERTIFICATE-----\nMIIB");
    std::fs::write(files.path("client.p12"), b"\x30\x82\x01\x00").unwrap();
    let pair = |crt: &Path, key: &str| Cert::with_key(crt, files.path(key));
    for (cert, parts) in [
        (Cert::new(files.path("gone.pem")), &["gone.pem cannot be read", "name a PEM file"][..]),
        (pair(&crt, "gone.key"), &["the private key", "gone.key cannot be read", "PEM file"]),
        (Cert::new(&crt), &["client.crt holds a certificate but no private key", "add the key"]),
        (Cert::new(&key), &["client.key holds no certificate", "name the PEM file"]),
        (pair(&crt, "client.crt"), &["no private key; add the key"]),
        (pair(&crt, "empty.pem"), &["empty.pem holds no private key in PEM form", "name the file"]),
        (Cert::new(files.path("client.p12")), &["not in PEM form", "openssl pkcs12"]),
        (pair(&crt, "encrypted.key"), &["encrypted.key is encrypted", "openssl pkey -in"]),
        (pair(&crt, "old.key"), &["old.key is encrypted", "openssl pkey -in"]),
        (
            pair(&crt, "damaged.key"),
            &["damaged.key is of a kind that cannot be used", "RSA from 2048"],
        ),
        (pair(&files.path("torn.crt"), "client.key"), &["torn.crt", "name"]),
        (
            Cert::with_key(&crt, other.path("client.key")),
            &["client.key does not fit the certificate in", "client.crt", "name the key"],
        ),
    ] {
        let mut config = EngineConfig::default();
        config.tls.cert = Some(cert);
        let error = Engine::new(&config).unwrap_err();
        assert_eq!((error.kind(), error.phase()), (ErrorKind::Config, Phase::Prepare), "{error}");
        for part in parts {
            assert!(error.message().contains(part), "{error} lacks {part}");
        }
        // No piece of a key.
        assert!(!error.to_string().contains("MIIB"), "{error}");
    }
}
