//! TLS: certificates, handshakes, tickets, and bodies that end without a word.

use crate::peer::{OK, Peer, Serve, Server};
use crate::{Client, limits, read, through};
use longhaul::Error;
use longhaul::error::{ErrorKind, Fault, Phase};
use longhaul::message::Verify;
use longhaul::proxy::{Identity, Route};
use longhaul::time::SimClock;
use longhaul::transport::Transport;
use rcgen::{BasicConstraints, Certificate, CertificateParams, DnType, IsCa, Issuer, KeyPair};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::ClientCertVerifier;
use rustls::{HandshakeKind, ServerConfig, ServerConnection, SupportedProtocolVersion};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use tempfile::NamedTempFile;

/// A certificate authority with its certificate in a file.
pub(crate) struct Ca {
    issuer: Issuer<'static, KeyPair>,
    der: CertificateDer<'static>,
    file: NamedTempFile,
}

impl Ca {
    pub(crate) fn new() -> Self {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        // Two authorities of one name would be told apart by their signatures alone.
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let name = format!("authority {}", COUNT.fetch_add(1, Ordering::Relaxed));
        params.distinguished_name.push(DnType::CommonName, name);
        let key = KeyPair::generate().unwrap();
        let root = params.self_signed(&key).unwrap();
        let mut file = NamedTempFile::new().unwrap();
        file.write_all(root.pem().as_bytes()).unwrap();
        Self { issuer: Issuer::new(params, key), der: root.der().clone(), file }
    }

    pub(crate) fn path(&self) -> &Path {
        self.file.path()
    }

    pub(crate) fn der(&self) -> CertificateDer<'static> {
        self.der.clone()
    }

    /// A certificate for the usual names, with its key.
    pub(crate) fn issue(
        &self,
        change: impl FnOnce(&mut CertificateParams),
    ) -> (Certificate, KeyPair) {
        let names = ["127.0.0.1", "a.test", "b.test"].map(str::to_owned);
        let mut params = CertificateParams::new(names).unwrap();
        change(&mut params);
        let key = KeyPair::generate().unwrap();
        (params.signed_by(&key, &self.issuer).unwrap(), key)
    }

    /// A server with this certificate, which may demand one of its clients.
    pub(crate) fn serve(
        versions: &[&'static SupportedProtocolVersion],
        certificate: &CertificateDer<'static>,
        key: &KeyPair,
        clients: Option<Arc<dyn ClientCertVerifier>>,
    ) -> Arc<ServerConfig> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ServerConfig::builder_with_provider(provider)
            .with_protocol_versions(versions)
            .unwrap()
            .with_client_cert_verifier(clients.unwrap_or_else(WebPkiClientVerifier::no_client_auth))
            .with_single_cert(
                vec![certificate.clone()],
                PrivateKeyDer::try_from(key.serialize_der()).unwrap(),
            )
            .unwrap();
        Arc::new(config)
    }

    pub(crate) fn config(&self, change: impl FnOnce(&mut CertificateParams)) -> Arc<ServerConfig> {
        self.versions(rustls::ALL_VERSIONS, change)
    }

    pub(crate) fn versions(
        &self,
        versions: &[&'static SupportedProtocolVersion],
        change: impl FnOnce(&mut CertificateParams),
    ) -> Arc<ServerConfig> {
        let (certificate, key) = self.issue(change);
        Self::serve(versions, certificate.der(), &key, None)
    }

    pub(crate) fn client(&self) -> Client {
        Client::with(|config| config.tls.verify = Verify::Bundle(self.file.path().to_owned()))
    }
}

pub(crate) type Secure<'a> = rustls::Stream<'a, ServerConnection, TcpStream>;
pub(crate) type Kinds = Arc<Mutex<Vec<HandshakeKind>>>;

/// A TLS server that does this with each connection.
pub(crate) fn secure(
    config: Arc<ServerConfig>,
    serve: impl Fn(&mut Secure<'_>) + Send + Sync + 'static,
) -> (Server, Kinds) {
    let kinds: Kinds = Arc::default();
    let seen = Arc::clone(&kinds);
    let server = Server::new(move |peer, _| {
        let mut session = ServerConnection::new(Arc::clone(&config)).unwrap();
        let stream = peer.stream.get_mut();
        let mut secure = rustls::Stream::new(&mut session, stream);
        while secure.conn.is_handshaking() {
            if secure.conn.complete_io(secure.sock).is_err() {
                return;
            }
        }
        seen.lock().unwrap().push(secure.conn.handshake_kind().unwrap());
        serve(&mut secure);
    });
    (server, kinds)
}

pub(crate) fn head(stream: &mut impl Read) -> Option<String> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        match stream.read(&mut byte) {
            Ok(1) => head.push(byte[0]),
            _ => return None,
        }
    }
    Some(String::from_utf8(head).unwrap())
}

pub(crate) fn answer_all(stream: &mut Secure<'_>) {
    while head(stream).is_some() {
        stream.write_all(OK.as_bytes()).unwrap();
    }
}

pub(crate) fn url(server: &Server) -> String {
    format!("https://{}/", server.addr)
}

#[test]
fn a_private_issuer_is_trusted_when_named_and_connections_are_kept() {
    let ca = Ca::new();
    for (versions, wanted) in [
        (&[&rustls::version::TLS13][..], "TLSv1.3 TLS13_"),
        (&[&rustls::version::TLS12], "TLSv1.2 TLS_ECDHE_"),
    ] {
        let (server, _) = secure(ca.versions(versions, |_| {}), answer_all);
        let clock = Arc::new(SimClock::default());
        let mut client = Client::with(|config| {
            config.tls.extra_roots = vec![ca.file.path().to_owned()];
            config.clock = clock.clone();
        });
        for index in 0..3 {
            let mut incoming = client.open(&url(&server), &Route::direct()).unwrap();
            assert_eq!(incoming.connection.reused, index > 0);
            assert_eq!(incoming.timings.tls.is_some(), index == 0);
            let tls = incoming.connection.tls.clone().unwrap();
            assert!(tls.starts_with(wanted), "{tls}");
            assert_eq!(read(&mut incoming).unwrap(), "ok");
            // The probe of an idle connection does not stumble over session tickets.
            clock.advance(longhaul::secs(1.0));
        }
        assert_eq!(server.connections(), 1);
    }
}

#[track_caller]
pub(crate) fn assert_tls(error: &Error, kind: ErrorKind, fault: Fault, what: &str) {
    assert_eq!((error.kind(), error.phase(), error.fault()), (kind, Phase::Tls, fault), "{error}");
    assert!(error.is_unsent());
    assert!(error.to_string().contains(what), "{error}");
}

#[test]
fn handshakes_that_fail() {
    let cases: [(ErrorKind, &str, Serve); 5] = [
        (ErrorKind::Ssl, "may be meant for http", |peer| {
            peer.send(b"HTTP/1.1 400 Bad Request\r\n\r\n");
            peer.hold();
        }),
        (ErrorKind::Ssl, "HandshakeFailure", |peer| {
            peer.send(b"\x15\x03\x03\x00\x02\x02\x28");
            peer.hold();
        }),
        (ErrorKind::Ssl, "closed the connection in the TLS handshake", Peer::finish),
        (ErrorKind::Connection, "broke in the TLS handshake", Peer::reset),
        (ErrorKind::ConnectTimeout, "within the connect timeout", Peer::hold),
    ];
    for (kind, what, serve) in cases {
        let server = Server::new(move |peer, _| {
            peer.take(5);
            serve(peer);
        });
        let mut client = Client::new();
        // Only who hangs is waited for.
        client.limits = limits(if kind == ErrorKind::ConnectTimeout { 0.4 } else { 20.0 }, 20.0);
        let error = client.get(&url(&server)).unwrap_err();
        assert_tls(&error, kind, Fault::Target, what);
        assert_eq!(client.config.cutter.live_sockets(), 0);
    }
}

#[test]
fn the_end_of_a_body_needs_the_word_of_tls() {
    let ca = Ca::new();
    for (fields, start, notify, complete) in [
        ("", "abc", true, true),
        ("", "abc", false, false),
        ("Content-Length: 9\r\n", "abc", true, false),
        ("Content-Length: 9\r\n", "abc", false, false),
        ("Content-Length: 3\r\n", "abc", false, true),
        ("Transfer-Encoding: chunked\r\n", "9\r\nabc", false, false),
    ] {
        let (server, _) = secure(ca.config(|_| {}), move |stream| {
            head(stream);
            stream.write_all(format!("HTTP/1.1 200 OK\r\n{fields}\r\n{start}").as_bytes()).unwrap();
            if notify {
                stream.conn.send_close_notify();
                stream.flush().unwrap();
            }
        });
        let result = ca.client().get(&url(&server));
        match result {
            Ok((_, body)) => assert!(complete && body == "abc", "{fields:?} {notify}"),
            Err(error) => {
                assert!(!complete, "{fields:?} {notify}: {error}");
                assert_eq!(error.kind(), ErrorKind::IncompleteBody, "{error}");
                assert_eq!((error.phase(), error.received_bytes()), (Phase::Body, Some(3)));
            }
        }
    }
}

#[test]
fn tickets_belong_to_their_identity() {
    let ca = Ca::new();
    let (server, kinds) = secure(ca.config(|_| {}), answer_all);
    let proxy = tunnel_to(&server);
    let mut client = ca.client();
    let mut direct = Route::direct();
    direct.fresh = true;
    let mut first = through(&format!("http://a:x@{}", proxy.addr));
    first.fresh = true;
    let mut second = through(&format!("http://b:x@{}", proxy.addr));
    second.fresh = true;
    let url = url(&server);
    for (route, wanted) in [
        (&direct, HandshakeKind::Full),
        (&direct, HandshakeKind::Resumed),
        (&first, HandshakeKind::Full),
        (&second, HandshakeKind::Full),
        (&first, HandshakeKind::Resumed),
        (&second, HandshakeKind::Resumed),
        (&direct, HandshakeKind::Resumed),
    ] {
        client.fetch(&url, route).unwrap();
        assert_eq!(kinds.lock().unwrap().pop(), Some(wanted));
    }
    client.engine.forget(Identity::DIRECT);
    client.fetch(&url, &direct).unwrap();
    assert_eq!(kinds.lock().unwrap().pop(), Some(HandshakeKind::Full));
    client.fetch(&url, &first).unwrap();
    assert_eq!(kinds.lock().unwrap().pop(), Some(HandshakeKind::Resumed));
}

pub(crate) fn tunnel_to(server: &Server) -> Server {
    let to = server.addr;
    Server::new(move |peer, _| {
        if peer.head().is_some() {
            peer.send(b"HTTP/1.1 200 OK\r\n\r\n");
            peer.tunnel(to);
        }
    })
}

#[test]
fn https_through_an_http_proxy() {
    let ca = Ca::new();
    let refusal = "HTTP/1.1 407 Mine\r\nContent-Length: 0\r\n\r\n";
    let (server, _) = secure(ca.config(|_| {}), move |stream| {
        while let Some(head) = head(stream) {
            assert!(!head.to_lowercase().contains("proxy"), "{head}");
            stream.write_all(refusal.as_bytes()).unwrap();
        }
    });
    let proxy = tunnel_to(&server);
    let mut client = ca.client();
    let route = through(&format!("http://me:pw@{}", proxy.addr));
    for _ in 0..3 {
        // What comes out of a tunnel is the target's word.
        assert_eq!(client.fetch("https://a.test/x", &route).unwrap().0, 407);
    }
    client.fetch("https://b.test/", &route).unwrap();
    assert_eq!(proxy.connections(), 2);
    assert!(proxy.heads()[0].starts_with("CONNECT a.test:443 HTTP/1.1\r\nHost: a.test:443\r\n"));
    assert!(client.asked.0.lock().unwrap().is_empty());
    let error = client.fetch("https://c.test/", &route).unwrap_err();
    assert_tls(&error, ErrorKind::Certificate, Fault::Target, "not for c.test");
}

#[test]
fn a_proxy_behind_tls() {
    let ca = Ca::new();
    let (origin, _) = secure(ca.config(|_| {}), answer_all);
    let to = origin.addr;
    let (proxy, _) = secure(ca.config(|_| {}), move |stream| {
        while let Some(head) = head(stream) {
            if head.starts_with("GET http://a.test/ HTTP/1.1\r\n") {
                stream.write_all(OK.as_bytes()).unwrap();
            } else {
                assert!(head.starts_with("CONNECT a.test:443 "), "{head}");
                stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n").unwrap();
                relay(stream, to);
                return;
            }
        }
    });
    let mut client = ca.client();
    let route = through(&format!("https://me:pw@{}", proxy.addr));
    for _ in 0..2 {
        assert_eq!(client.fetch("http://a.test/", &route).unwrap().1, "ok");
        assert_eq!(client.fetch("https://a.test/", &route).unwrap().1, "ok");
    }
    assert_eq!((proxy.connections(), origin.connections()), (2, 1));

    // What is wrong with the proxy's certificate is the proxy's fault.
    let (proxy, _) = secure(Ca::new().config(|_| {}), answer_all);
    let route = through(&format!("https://{}", proxy.addr));
    let error = client.fetch("https://a.test/", &route).unwrap_err();
    assert_tls(&error, ErrorKind::Certificate, Fault::Proxy, "the certificate of the proxy");
    let plain = Server::answering("HTTP/1.1 400 Bad\r\n\r\n");
    let route = through(&format!("https://{}", plain.addr));
    client.limits = limits(0.5, 20.0);
    let error = client.fetch("http://a.test/", &route).unwrap_err();
    assert_eq!((error.phase(), error.fault()), (Phase::Tls, Fault::Proxy), "{error}");
}

/// Opens one tunnel to this address, whatever is asked for.
pub(crate) fn serve_tunnels(stream: &mut Secure<'_>, to: std::net::SocketAddr) {
    if head(stream).is_some() {
        stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n").unwrap();
        relay(stream, to);
    }
}

/// Carries bytes both ways on one thread: each side is asked in turn.
fn relay(stream: &mut Secure<'_>, to: std::net::SocketAddr) {
    let mut target = TcpStream::connect(to).unwrap();
    let turn = Some(std::time::Duration::from_millis(5));
    target.set_read_timeout(turn).unwrap();
    stream.sock.set_read_timeout(turn).unwrap();
    let mut buffer = [0; 4096];
    loop {
        match stream.read(&mut buffer) {
            Ok(0) => return,
            Ok(amount) => target.write_all(&buffer[..amount]).unwrap(),
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {}
            Err(_) => return,
        }
        match target.read(&mut buffer) {
            Ok(0) => return,
            Ok(amount) => stream.write_all(&buffer[..amount]).unwrap(),
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {}
            Err(_) => return,
        }
    }
}
