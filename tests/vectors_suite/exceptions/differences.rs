//! Each difference of these vectors by itself, where no other test proves it.

use std::sync::Arc;

use http::Method;
use longhaul::error::{Fault, Phase};
use longhaul::lab::{ClosedPort, HttpProxy, Origin, Script};
use longhaul::message::Verify;
use longhaul::time::SimClock;
use longhaul::transport::{Play, Script as Plays};
use longhaul::{ErrorKind, ProxyMap, ProxyUrl, Retry, Session, SessionBuilder, secs};

use super::scene::{After, OK, PATIENT, says, script};

fn recipe() -> SessionBuilder {
    Session::builder().trust_env(false).timeout((PATIENT, PATIENT))
}

#[test]
fn a_read_timeout_is_one_wherever_it_happens() {
    let in_body = || Play::status(200).body("slow").body_after(secs(60.0));
    for (retry, plays, attempts) in [
        (Retry::none(), vec![Play::silence()], 1),
        (Retry::urllib3().total(2), vec![Play::silence(), Play::silence(), Play::silence()], 3),
        (Retry::urllib3().read(0), vec![Play::silence()], 1),
        (Retry::none(), vec![in_body()], 1),
        (Retry::urllib3().total(1), vec![in_body(), in_body()], 2),
    ] {
        let clock = Arc::new(SimClock::default());
        let plays = Plays::new(clock.clone(), plays);
        let recipe = recipe().clock(clock).retry(retry).transport(move || plays.clone());
        let error = recipe.build().unwrap().get("http://a.test/").send().unwrap_err();
        assert_eq!((error.kind(), error.attempts().len()), (ErrorKind::ReadTimeout, attempts));
        assert_eq!(error.requests_name(), "ReadTimeout");
    }
}

#[test]
fn every_failure_has_a_kind() {
    let chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n-2\r\nok\r\n0\r\n\r\n";
    let origin = says(chunked, After::Close).start().unwrap();
    let error = recipe().build().unwrap().get(origin.url("/")).send().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::IncompleteBody);

    let port = ClosedPort::new().unwrap();
    let session = recipe().retry(Retry::urllib3().total(false)).build().unwrap();
    let error = session.get(format!("http://{}/", port.address())).send().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Connection);

    let missing = Verify::Bundle("/nonexistent/ca.pem".into());
    let error = recipe().verify(missing).build().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Config);
    assert!(error.message().contains("/nonexistent/ca.pem"), "{error}");
}

#[test]
fn a_proxy_that_cannot_be_used_is_told_when_it_is_set() {
    for proxy in ["foo://127.0.0.1:1", "http://", "http://127.0.0.1:99999"] {
        let error = ProxyMap::from_pairs([("http", proxy)]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidProxyUrl, "{proxy}");
        assert_eq!(error.requests_name(), "InvalidProxyURL");
    }
}

#[test]
fn the_body_of_a_redirect_is_not_waited_for() {
    let origin = Origin::builder().handler(|request| match request.path.as_str() {
        "/" => {
            let head = "HTTP/1.1 302 Found\r\nLocation: /ok\r\nContent-Length: 50\r\n\r\ncut";
            script(head, After::Hold)
        }
        _ => Script::send(OK),
    });
    let origin = origin.start().unwrap();
    let response = recipe().build().unwrap().get(origin.url("/")).send().unwrap();
    assert_eq!((response.status(), response.history().len()), (200, 1));
}

#[test]
fn no_coding_is_looked_at_without_a_body() {
    let head = "HTTP/1.1 200 OK\r\nContent-Length: 9\r\nContent-Encoding: ";
    let origin = says(format!("{head}{}\r\n\r\n", ["gzip"; 6].join(", ")), After::Close);
    let origin = origin.start().unwrap();
    let session = recipe().build().unwrap();
    assert_eq!(session.request(Method::HEAD, origin.url("/")).send().unwrap().status(), 200);
}

#[test]
fn what_comes_with_the_reply_of_a_proxy_belongs_to_the_tunnel() {
    let opens = script("HTTP/1.1 200 OK\r\n\r\nHTTP/1.1 200 OK\r\n\r\n", After::Hold);
    let proxy = HttpProxy::builder().handler(move |_| Some(opens.clone())).start().unwrap();
    let session = recipe().proxies(proxy.url().parse::<ProxyUrl>().unwrap()).build().unwrap();
    let error = session.get("https://a.test/").send().unwrap_err();
    // At once: this is no TLS, and waiting would not make it so.
    let facts = (error.kind(), error.phase(), error.fault());
    assert_eq!(facts, (ErrorKind::Ssl, Phase::Tls, Fault::Target), "{error}");
}

/// What the servers of the vectors really lead to is what `docs/errors.md` says can happen.
#[test]
fn every_failure_stands_in_the_table_of_errors() {
    let document = include_str!("../../../docs/errors.md");
    let mut failures = 0;
    for (stem, vectors) in crate::built_in_vectors("exceptions") {
        for vector in vectors {
            let Some(seen) = super::seen(&vector, super::Mode::Whole) else { continue };
            let super::End::Error { kind, phase, fault, .. } = seen.end else { continue };
            failures += 1;
            let stands = document.lines().any(|line| {
                let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
                let has = |at: usize, word: &str| {
                    cells.get(at).is_some_and(|cell| {
                        *cell == "any" || cell.split(", ").any(|one| one == word)
                    })
                };
                has(0, &format!("`{kind}`")) && has(1, phase.name()) && has(2, fault.name())
            });
            assert!(stands, "{stem} {}: {kind} in {phase} by {fault}", vector.id);
        }
    }
    assert!(failures > 100, "{failures}");
}
