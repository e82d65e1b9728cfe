//! What goes wrong with TLS most often, each with what it is called and what the error advises.

use crate::peer::Server;
use crate::tls::{Ca, answer_all, assert_tls, secure, tunnel_to, url};
use crate::{Client, limits, through};
use longhaul::Error;
use longhaul::error::{ErrorKind, Fault, Phase};
use longhaul::message::{TlsVersion, Verify};
use longhaul::proxy::Route;
use rcgen::{BasicConstraints, CertificateParams, IsCa, KeyPair, date_time_ymd};
use rustls::version::{TLS12, TLS13};
use rustls::{ServerConfig, SupportedProtocolVersion};
use std::sync::Arc;

/// What a client that trusts this authority is told of a server with this configuration.
#[track_caller]
fn refused(ca: &Ca, config: Arc<ServerConfig>, what: &str) -> Error {
    let (server, _) = secure(config, answer_all);
    let error = ca.client().get(&url(&server)).unwrap_err();
    assert_tls(&error, ErrorKind::Certificate, Fault::Target, what);
    assert_eq!(error.requests_name(), "SSLError");
    // Who does not check, does not care.
    let mut trusting = Client::with(|config| config.tls.verify = Verify::Off);
    assert_eq!(trusting.get(&url(&server)).unwrap().1, "ok");
    error
}

#[test]
fn an_expired_certificate() {
    let ca = Ca::new();
    let config = ca.config(|params| {
        params.not_before = date_time_ymd(2001, 1, 1);
        params.not_after = date_time_ymd(2002, 1, 1);
    });
    refused(&ca, config, "of the server has expired (or the clock of this machine is wrong)");
}

#[test]
fn a_certificate_that_is_not_valid_yet() {
    let ca = Ca::new();
    let config = ca.config(|params| params.not_before = date_time_ymd(4000, 1, 1));
    refused(&ca, config, "of the server is not valid yet");
}

#[test]
fn a_certificate_for_another_host() {
    let ca = Ca::new();
    let names = ["other.test", "*.example.test"].map(str::to_owned);
    let config = ca.config(|params| *params = CertificateParams::new(names).unwrap());
    refused(&ca, config, "is not for 127.0.0.1 but for other.test, *.example.test");
}

#[test]
fn an_unknown_issuer() {
    let config = Ca::new().config(|_| {});
    let what = "was issued by nobody known here; a private issuer has to be named with a CA file";
    refused(&Ca::new(), config, what);
}

/// A certificate that its owner has signed, as a server's and as text.
fn self_signed(change: impl FnOnce(&mut CertificateParams)) -> (Arc<ServerConfig>, String) {
    let mut params = CertificateParams::new(vec!["127.0.0.1".into()]).unwrap();
    change(&mut params);
    let key = KeyPair::generate().unwrap();
    let certificate = params.self_signed(&key).unwrap();
    (Ca::serve(&[&TLS13, &TLS12], certificate.der(), &key, None), certificate.pem())
}

fn as_authority(params: &mut CertificateParams) {
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
}

#[test]
fn a_self_signed_certificate() {
    let what = "is self-signed: nobody vouches for it; if it is the one you expect, name it";
    let (config, _) = self_signed(|_| {});
    refused(&Ca::new(), config, what);
    // As `openssl req -x509` makes them.
    let (config, _) = self_signed(as_authority);
    refused(&Ca::new(), config, what);
}

#[test]
fn a_self_signed_certificate_is_believed_where_it_is_named_and_right() {
    let bundle = tempfile::NamedTempFile::new().unwrap();
    let ask = |config, pem: String, host: &str| {
        std::fs::write(bundle.path(), pem).unwrap();
        let (server, _) = secure(config, answer_all);
        // A file of its own, since a file with the same time of change is not read again.
        let own = tempfile::NamedTempFile::new().unwrap();
        std::fs::copy(bundle.path(), own.path()).unwrap();
        let verify = Verify::Bundle(own.path().to_owned());
        let mut client = Client::with(|config| config.tls.verify = verify);
        client.get(&format!("https://{host}:{}/", server.addr.port()))
    };
    let (config, pem) = self_signed(|_| {});
    assert_eq!(ask(config, pem, "127.0.0.1").unwrap().1, "ok");
    let (config, pem) = self_signed(as_authority);
    assert_eq!(ask(config, pem, "127.0.0.1").unwrap().1, "ok");
    // Its name and its dates count all the same.
    let (config, pem) = self_signed(as_authority);
    let error = ask(config, pem, "a.test").unwrap_err();
    assert_tls(
        &error,
        ErrorKind::Certificate,
        Fault::Target,
        "is not for a.test but for 127.0.0.1",
    );
    let (config, pem) = self_signed(|params| {
        as_authority(params);
        params.not_before = date_time_ymd(2001, 1, 1);
        params.not_after = date_time_ymd(2002, 1, 1);
    });
    let error = ask(config, pem, "127.0.0.1").unwrap_err();
    assert_tls(&error, ErrorKind::Certificate, Fault::Target, "has expired");
    // The key behind it is what counts, not the names in it.
    let (config, _) = self_signed(as_authority);
    let (_, pem) = self_signed(as_authority);
    let error = ask(config, pem, "127.0.0.1").unwrap_err();
    assert_tls(&error, ErrorKind::Certificate, Fault::Target, "is self-signed");
}

#[test]
fn tls_on_a_plain_port() {
    let server = Server::new(|peer, _| {
        peer.take(5);
        peer.send(b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n");
        peer.finish();
    });
    let error = Client::new().get(&url(&server)).unwrap_err();
    let what = "the server does not speak TLS on this port; it may be meant for http: write http:// \
                in the URL";
    assert_tls(&error, ErrorKind::Ssl, Fault::Target, what);
    assert_eq!(error.requests_name(), "SSLError");

    let route = through(&format!("https://{}", server.addr));
    let error = Client::new().fetch("http://a.test/", &route).unwrap_err();
    assert_tls(&error, ErrorKind::Ssl, Fault::Proxy, "write http:// in front of the proxy");
    assert_eq!(error.requests_name(), "ProxyError");

    // Through a tunnel it is the target that speaks no TLS.
    let proxy = tunnel_to(&server);
    let route = through(&format!("http://{}", proxy.addr));
    let error = Client::new().fetch("https://a.test/", &route).unwrap_err();
    assert_tls(&error, ErrorKind::Ssl, Fault::Target, what);
}

#[test]
fn plain_http_on_a_tls_port() {
    // What OpenSSL says to it: a fatal alert.
    let server = Server::new(|peer, _| {
        peer.head();
        peer.send(b"\x15\x03\x01\x00\x02\x02\x46");
        peer.finish();
    });
    let error = Client::new().get(&server.url("/")).unwrap_err();
    assert_eq!((error.kind(), error.phase()), (ErrorKind::Protocol, Phase::Headers), "{error}");
    assert_eq!((error.fault(), error.requests_name()), (Fault::Target, "ConnectionError"));
    assert!(error.message().ends_with("meant for https; write https:// in the URL"), "{error}");

    let route = through(&format!("http://{}", server.addr));
    for target in ["http://a.test/", "https://a.test/"] {
        let error = Client::new().fetch(target, &route).unwrap_err();
        assert_eq!(error.fault(), Fault::Proxy, "{error}");
        assert!(
            error.message().ends_with("answers in TLS; write https:// in front of it"),
            "{error}"
        );
    }
    // A server of rustls.
    let (server, _) = secure(Ca::new().config(|_| {}), answer_all);
    let error = Client::new().get(&server.url("/")).unwrap_err();
    assert_eq!((error.phase(), error.fault()), (Phase::Headers, Fault::Target));
    assert!(matches!(error.kind(), ErrorKind::Protocol | ErrorKind::Connection), "{error}");
}

#[test]
fn no_common_version() {
    let ca = Ca::new();
    let ask = |versions: &[&'static SupportedProtocolVersion], min, max| {
        let (server, _) = secure(ca.versions(versions, |_| {}), answer_all);
        let mut client = Client::with(|config| {
            config.tls.extra_roots = vec![ca.path().to_owned()];
            (config.tls.min_version, config.tls.max_version) = (min, max);
        });
        let answer = client.get(&url(&server));
        let mut old = ca.client();
        assert_eq!(old.get(&url(&server)).unwrap().1, "ok");
        answer
    };
    let error = ask(&[&TLS12], Some(TlsVersion::Tls13), None).unwrap_err();
    let what = "may speak 1.3 alone; lower `tls_min_version` (--tls-min)";
    assert_tls(&error, ErrorKind::Ssl, Fault::Target, what);
    let error = ask(&[&TLS13], None, Some(TlsVersion::Tls12)).unwrap_err();
    let what = "may speak 1.2 alone; raise `tls_max_version` (--tls-max)";
    assert_tls(&error, ErrorKind::Ssl, Fault::Target, what);
    assert_eq!(error.requests_name(), "SSLError");
    assert_eq!(ask(&[&TLS12], None, Some(TlsVersion::Tls12)).unwrap().1, "ok");
    assert_eq!(ask(&[&TLS13], Some(TlsVersion::Tls13), None).unwrap().1, "ok");
    let both = (Some(TlsVersion::Tls12), Some(TlsVersion::Tls13));
    assert_eq!(ask(&[&TLS12], both.0, both.1).unwrap().1, "ok");

    // A server that knows TLS 1.0 alone, by the alert and by its own hello.
    for answer in [
        &b"\x15\x03\x01\x00\x02\x02\x46"[..],
        b"\x16\x03\x01\x00\x2a\x02\x00\x00\x26\x03\x01\
          aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\x00\x00\x2f\x00",
    ] {
        let server = Server::new(move |peer, _| {
            peer.take(5);
            peer.send(answer);
            peer.hold();
        });
        let error = Client::new().get(&url(&server)).unwrap_err();
        assert_tls(&error, ErrorKind::Ssl, Fault::Target, "it speaks neither 1.2 nor 1.3");
    }
}

#[test]
fn a_handshake_that_is_cut() {
    let server = Server::new(|peer, _| {
        peer.take(5);
        peer.send(b"\x16\x03\x03\x00\x7a\x02\x00");
        peer.finish();
    });
    let error = Client::new().get(&url(&server)).unwrap_err();
    let what = "the server closed the connection in the TLS handshake; it may not speak TLS on";
    assert_tls(&error, ErrorKind::Ssl, Fault::Target, what);
    let route = through(&format!("https://{}", server.addr));
    let error = Client::new().fetch("https://a.test/", &route).unwrap_err();
    assert_tls(&error, ErrorKind::Ssl, Fault::Proxy, "the proxy closed the connection in the TLS");
}

/// Two that can be wrong: the error says which.
#[test]
fn the_certificate_of_the_proxy_and_that_of_the_target() {
    let (ca, other) = (Ca::new(), Ca::new());
    for (proxys, targets, fault, who, name) in [
        (&other, &ca, Fault::Proxy, "the certificate of the proxy was issued", "ProxyError"),
        (&ca, &other, Fault::Target, "the certificate of the server was issued", "SSLError"),
    ] {
        let (origin, _) = secure(targets.config(|_| {}), answer_all);
        let (proxy, _) = secure(proxys.config(|_| {}), {
            let to = origin.addr;
            move |stream| crate::tls::serve_tunnels(stream, to)
        });
        let route = through(&format!("https://{}", proxy.addr));
        let error = ca.client().fetch("https://a.test/", &route).unwrap_err();
        assert_tls(&error, ErrorKind::Certificate, fault, who);
        assert_eq!(error.requests_name(), name);
    }
    // In a plain tunnel there is only the target's.
    let (origin, _) = secure(other.config(|_| {}), answer_all);
    let proxy = tunnel_to(&origin);
    let error = ca.client().fetch("https://a.test/", &through(&format!("http://{}", proxy.addr)));
    let what = "the certificate of the server was issued";
    assert_tls(&error.unwrap_err(), ErrorKind::Certificate, Fault::Target, what);
}

#[test]
fn a_folder_of_certificates_with_any_names() {
    let (ca, other) = (Ca::new(), Ca::new());
    let folder = tempfile::tempdir().unwrap();
    let place = |name: &str| folder.path().join(name);
    std::fs::copy(ca.path(), place("authority.crt")).unwrap();
    std::fs::copy(other.path(), place("b.pem")).unwrap();
    // As `c_rehash` does it, and what else is found in such folders.
    std::os::unix::fs::symlink("authority.crt", place("5a5e3f1c.0")).unwrap();
    std::os::unix::fs::symlink("gone.pem", place("00000000.0")).unwrap();
    std::fs::write(place("README"), "not a certificate").unwrap();
    std::fs::create_dir(place("private")).unwrap();
    for ca in [&ca, &other] {
        let (server, _) = secure(ca.config(|_| {}), answer_all);
        let verify = Verify::Bundle(folder.path().to_owned());
        let mut client = Client::with(|config| config.tls.verify = verify);
        assert_eq!(client.get(&url(&server)).unwrap().1, "ok");
    }
}

/// A slow server must not become one without TLS.
#[test]
fn silence_in_the_handshake_is_a_timeout() {
    let server = Server::new(|peer, _| {
        peer.take(5);
        peer.hold();
    });
    let mut client = Client::new();
    client.limits = limits(0.4, 20.0);
    let error = client.fetch(&url(&server), &Route::direct()).unwrap_err();
    assert_tls(&error, ErrorKind::ConnectTimeout, Fault::Target, "within the connect timeout");
}
