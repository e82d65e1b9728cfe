//! TLS as a session and a request say it, against servers of the lab.

#![cfg(feature = "lab")]
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "helpers of tests are tests")]

use longhaul::error::{ErrorKind, Fault, Phase};
use longhaul::lab::{Ca, HttpProxy, Origin, Received, Reply};
use longhaul::message::{Cert, TlsVersion, Verify};
use longhaul::{ProxyMap, ProxyPool, ProxyUrl, Retry, Session, SessionBuilder};
use std::path::PathBuf;
use std::sync::Arc;
use tempfile::TempDir;

/// Authorities, and what clients have of them in files.
struct World {
    ca: Ca,
    folder: TempDir,
}

impl World {
    fn new() -> Self {
        let world = Self { ca: Ca::new().unwrap(), folder: tempfile::tempdir().unwrap() };
        world.ca.write_pem(world.path("ca.pem")).unwrap();
        world
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// A client's certificate with its key, and how a server sees it.
    fn client(&self, name: &str) -> (Cert, Arc<[u8]>) {
        let issued = self.ca.issue([name]).unwrap();
        let (file, key) = (self.path(&format!("{name}.crt")), self.path(&format!("{name}.key")));
        issued.write_pem(&file, &key).unwrap();
        (Cert::with_key(file, key), issued.certificate_der().into())
    }

    fn recipe(&self) -> SessionBuilder {
        Session::builder().trust_env(false).extra_roots(self.path("ca.pem"))
    }

    /// An origin that demands a certificate.
    fn demanding(&self) -> Origin {
        Origin::builder().tls(&self.ca).client_ca(&self.ca).start().unwrap()
    }
}

fn local(origin: &Origin) -> String {
    format!("https://localhost:{}/", origin.address().port())
}

/// A connection belongs to who made it: none is used under another certificate, nor under none.
#[test]
fn a_certificate_of_a_request_never_meets_a_connection_made_without_it() {
    let world = World::new();
    let origin = world.demanding();
    let url = local(&origin);
    let ((anna, as_anna), (bert, as_bert)) = (world.client("anna"), world.client("bert"));
    let session = world.recipe().cert(anna.clone()).build().unwrap();
    session.get(&url).send().unwrap();
    session.get(&url).cert(bert.clone()).send().unwrap();
    session.get(&url).send().unwrap();
    session.get(&url).cert(bert).send().unwrap();
    session.get(&url).cert(anna).send().unwrap();
    let error = session.get(&url).no_cert().send().unwrap_err();
    assert_eq!((error.kind(), error.phase()), (ErrorKind::Certificate, Phase::Tls), "{error}");
    assert!(error.message().contains("none is set"), "{error}");

    let seen: Vec<(u64, Arc<[u8]>)> = origin
        .log()
        .into_iter()
        .map(|request| (request.connection, request.client_certificate.unwrap()))
        .collect();
    let wanted = [(1, &as_anna), (2, &as_bert), (1, &as_anna), (2, &as_bert), (1, &as_anna)];
    assert_eq!(seen, wanted.map(|(connection, who)| (connection, who.clone())));
}

#[test]
fn a_session_keeps_a_few_certificates_and_forgets_the_rest() {
    let world = World::new();
    let origin = world.demanding();
    let recipe = world.recipe();
    let session = recipe.build().unwrap();
    for number in 0..20 {
        let (cert, der) = world.client(&format!("client-{number}"));
        session.get(local(&origin)).cert(cert).send().unwrap();
        assert_eq!(origin.log().pop().unwrap().client_certificate, Some(der));
    }
    // Those that were forgotten have closed what they held.
    assert_eq!(recipe.cutter().live_sockets(), 8);
}

#[test]
fn each_request_may_check_otherwise() {
    let world = World::new();
    let stranger = Origin::builder().tls(&Ca::new().unwrap()).start().unwrap();
    let origin = Origin::builder().tls(&world.ca).start().unwrap();
    let session = world.recipe().build().unwrap();
    let refused = |result: Result<longhaul::Response, longhaul::Error>| {
        let error = result.unwrap_err();
        assert_eq!((error.kind(), error.requests_name()), (ErrorKind::Certificate, "SSLError"));
    };
    refused(session.get(local(&stranger)).send());
    assert_eq!(session.get(local(&stranger)).verify(Verify::Off).send().unwrap().status(), 200);
    // The connection that nobody checked is not used by who wants it checked.
    refused(session.get(local(&stranger)).send());
    assert_eq!(session.get(local(&origin)).send().unwrap().status(), 200);
    let bundle = Verify::Bundle(world.path("ca.pem"));
    let other = Session::builder().trust_env(false).build().unwrap();
    refused(other.get(local(&origin)).send());
    assert_eq!(other.get(local(&origin)).verify(bundle.clone()).send().unwrap().status(), 200);
    let strict = Session::builder().trust_env(false).verify(Verify::Off).build().unwrap();
    assert_eq!(strict.get(local(&stranger)).send().unwrap().status(), 200);
    refused(strict.get(local(&stranger)).verify(bundle).send());
    refused(strict.get(local(&stranger)).verify(Verify::On).send());
}

#[test]
fn versions_are_bounded_by_session_and_request() {
    let world = World::new();
    let origin = Origin::builder().tls(&world.ca).start().unwrap();
    let version = |response: &longhaul::Response| {
        response.connection().tls.as_deref().unwrap().split(' ').next().unwrap().to_owned()
    };
    let session = world.recipe().tls_max_version(TlsVersion::Tls12).build().unwrap();
    assert_eq!(version(&session.get(local(&origin)).send().unwrap()), "TLSv1.2");
    let newest = session.get(local(&origin)).tls_max_version(None).send().unwrap();
    assert_eq!(version(&newest), "TLSv1.3");
    let error = session.get(local(&origin)).tls_min_version(TlsVersion::Tls13).send().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Config);
    assert!(error.message().contains("the lowest TLS version 1.3 is above the highest, 1.2"));
    let error = world
        .recipe()
        .tls_min_version(TlsVersion::Tls13)
        .tls_max_version(TlsVersion::Tls12)
        .build()
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Config);
}

#[test]
fn a_certificate_that_cannot_be_read_is_told_when_the_session_is_made() {
    let world = World::new();
    let error = world.recipe().cert("gone.pem").build().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Config);
    assert!(error.message().contains("gone.pem cannot be read"), "{error}");
    let session = world.recipe().build().unwrap();
    let error = session.get("https://localhost:1/").cert("gone.pem").send().unwrap_err();
    assert_eq!((error.kind(), error.phase()), (ErrorKind::Config, Phase::Prepare), "{error}");
}

#[cfg(feature = "native-roots")]
#[test]
fn the_roots_of_the_system_do_not_know_the_lab() {
    let world = World::new();
    let origin = Origin::builder().tls(&world.ca).start().unwrap();
    let session = match Session::builder().trust_env(false).verify(Verify::Native).build() {
        Ok(session) => session,
        // A system without any is told so, and what to do.
        Err(error) => return assert!(error.message().contains("ca-certificates"), "{error}"),
    };
    let error = session.get(local(&origin)).send().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Certificate, "{error}");
    let session = world.recipe().verify(Verify::Native).build().unwrap();
    assert_eq!(session.get(local(&origin)).send().unwrap().status(), 200);
}

#[test]
fn another_proxy_is_tried_where_one_has_a_certificate_that_nobody_trusts() {
    let world = World::new();
    let origin = Origin::builder().start().unwrap();
    let strange = HttpProxy::builder().tls(&Ca::new().unwrap()).start().unwrap();
    let good = HttpProxy::builder().tls(&world.ca).start().unwrap();
    let list = format!("{}\n{}\n", strange.url(), good.url());
    let recipe = world.recipe().proxies(ProxyPool::parse(&list).unwrap());
    let session = recipe
        .clone()
        .retry(Retry::long_run().backoff_factor(longhaul::secs(0.0)))
        .build()
        .unwrap();
    let response = session.get(origin.url("/")).send().unwrap();
    let failed = response.attempts()[0].error.clone().unwrap();
    assert_eq!((failed.kind, failed.fault), (ErrorKind::Certificate, Fault::Proxy));
    assert_eq!(response.attempts().len(), 2);

    // Where there is no other, asking again changes nothing.
    let alone = ProxyPool::parse(&strange.url()).unwrap();
    let session = recipe.proxies(alone).retry(Retry::long_run()).build().unwrap();
    let error = session.get(origin.url("/")).send().unwrap_err();
    assert_eq!((error.kind(), error.fault()), (ErrorKind::Certificate, Fault::Proxy), "{error}");
    assert_eq!((error.attempts().len(), error.requests_name()), (1, "ProxyError"));
}

#[test]
fn connections_leave_from_the_source_address() {
    let seen = |request: &Received| Reply::ok(request.peer.ip().to_string());
    let origin = Origin::builder().handler(seen).start().unwrap();
    let recipe = Session::builder().trust_env(false);
    let session = recipe.clone().source_address([127, 0, 0, 2].into()).build().unwrap();
    assert_eq!(session.get(origin.url("/")).send().unwrap().text().unwrap(), "127.0.0.2");
    let error = recipe.source_address([192, 0, 2, 1].into()).build().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Config);
    let text = "the source address 192.0.2.1 is none of this machine's; give one that";
    assert!(error.message().starts_with(text), "{error}");
}

#[test]
fn always_connect_holds_for_a_map_a_proxy_a_pool_and_a_request() {
    let origin = Origin::builder().start().unwrap();
    let proxy = HttpProxy::builder().start().unwrap();
    let url: ProxyUrl = proxy.url().parse().unwrap();
    let map = || ProxyMap::from_pairs([("http", proxy.url())]).unwrap();
    let recipe = Session::builder().trust_env(false);
    for (recipe, of_request) in [
        (recipe.clone().proxies(map()), None),
        (recipe.clone().proxies(url.clone()), None),
        (recipe.clone().proxies(ProxyPool::new([url])), None),
        (recipe, Some(map())),
    ] {
        for (always, wanted) in [(false, "GET"), (true, "CONNECT")] {
            let session = recipe.clone().always_connect(always).build().unwrap();
            let mut request = session.get(origin.url("/"));
            if let Some(map) = &of_request {
                request = request.proxies(map.clone());
            }
            assert_eq!(request.send().unwrap().status(), 200);
            assert_eq!(proxy.log().pop().unwrap().method, wanted);
        }
    }
}

/// Servers say in the body of a 400 that they were spoken to in the wrong way.
#[test]
fn a_400_that_speaks_of_tls_is_explained() {
    let plain = [
        "<center>The plain HTTP request was sent to HTTPS port</center>",
        "Reason: You're speaking plain HTTP to an SSL-enabled server port.<br />",
        "Client sent an HTTP request to an HTTPS server.\n",
    ];
    let world = World::new();
    let of_client = [
        ("<center>No required SSL certificate was sent</center>", "demands a client certificate"),
        ("<center>The SSL certificate error</center>", "does not accept the client certificate"),
    ];
    let told = |tls: bool, status: u16, body: &'static str| {
        let mut origin = Origin::builder().handler(move |_| Reply::new(status).body(body));
        if tls {
            origin = origin.tls(&world.ca);
        }
        let origin = origin.start().unwrap();
        let url = if tls { local(&origin) } else { origin.url("/") };
        let response = world.recipe().build().unwrap().get(url).send().unwrap();
        assert_eq!((response.status(), response.text().unwrap()), (status, body.to_owned()));
        response.attempts()[0].note.unwrap_or_default()
    };
    for body in plain {
        assert!(told(false, 400, body).contains("write https:// in the URL"), "{body}");
        assert_eq!((told(false, 200, body), told(true, 400, body)), ("", ""));
    }
    for (body, what) in of_client {
        assert!(told(true, 400, body).contains(what), "{body}");
        assert_eq!(told(false, 400, body), "");
    }
    assert_eq!(told(false, 400, "Bad Request"), "");
}
