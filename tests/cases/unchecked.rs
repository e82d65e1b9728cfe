//! Certificates that nobody checks are said once, and not for every page of a night.

use crate::said;
use longhaul::Session;
use longhaul::lab::{Ca, Origin};
use longhaul::message::Verify;
use longhaul::transport::{Resolve, ResolveError};
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::time::Duration;

/// Every name is at home.
#[derive(Debug)]
struct Home;

impl Resolve for Home {
    fn resolve(&self, _: &str, _: Option<Duration>) -> Result<Vec<IpAddr>, ResolveError> {
        Ok(vec![Ipv4Addr::LOCALHOST.into()])
    }
}

#[test]
fn verification_that_is_off_is_one_line_for_a_recipe() {
    said::listen();
    let origin = Origin::builder().tls(&Ca::new().unwrap()).start().unwrap();
    let plain = Origin::builder().start().unwrap();
    let port = origin.address().port();
    let url = |host: &str| format!("https://{host}.unchecked.test:{port}/");
    let lines = || said::with(".unchecked.test");
    let recipe = || Session::builder().trust_env(false).resolver(Arc::new(Home));

    // Without TLS there is nothing to check.
    let off = recipe().verify(Verify::Off);
    let session = off.build().unwrap();
    let http = format!("http://plain.unchecked.test:{}/", plain.address().port());
    assert_eq!(session.get(http).send().unwrap().status(), 200);
    assert!(lines().is_empty(), "{:?}", lines());

    for session in [session, off.build().unwrap()] {
        for host in ["one", "two", "one"] {
            assert_eq!(session.get(url(host)).send().unwrap().status(), 200);
        }
    }
    let said = lines();
    assert_eq!(said.len(), 1, "{said:?}");
    assert!(said[0].starts_with("certificates are not checked: whoever answers as one."));

    // A request that goes unchecked in a session that checks is another recipe's line.
    let session = recipe().build().unwrap();
    for _ in 0..2 {
        session.get(url("three")).verify(Verify::Off).send().unwrap();
    }
    assert_eq!(lines().len(), 2);
}
