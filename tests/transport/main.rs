//! The transport against servers that do what they are told, byte by byte, over loopback.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "tests")]

mod client_certs;
mod direct;
mod failures;
mod kept;
mod peer;
mod proxies;
mod socks;
mod tls;
mod tls_failures;
mod trace;
mod upload;

use longhaul::message::Headers;
use longhaul::proxy::Route;
use longhaul::transport::{
    AttemptLimits, Engine, EngineConfig, Incoming, Outgoing, Resolve, ResolveError, Transport,
};
use longhaul::{Error, ProxyUrl};
use std::io::Read;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use url::Url;

/// Limits that no test comes near.
fn ample() -> AttemptLimits {
    limits(20.0, 20.0)
}

fn limits(connect: f64, read: f64) -> AttemptLimits {
    AttemptLimits {
        connect: Some(longhaul::secs(connect)),
        read: Some(longhaul::secs(read)),
        deadline: None,
    }
}

/// A resolver that finds everything at home and remembers what it was asked.
#[derive(Debug, Default)]
struct Watched(Mutex<Vec<String>>);

impl Resolve for Watched {
    fn resolve(&self, host: &str, _: Option<Duration>) -> Result<Vec<IpAddr>, ResolveError> {
        self.0.lock().unwrap().push(host.to_owned());
        match host {
            "missing.test" => Err(ResolveError::NotFound("no such name".to_owned())),
            "later.test" => Err(ResolveError::Temporary("try again".to_owned())),
            "slow.test" => Err(ResolveError::TimedOut),
            _ => Ok(vec![IpAddr::V4(Ipv4Addr::LOCALHOST)]),
        }
    }
}

struct Client {
    engine: Engine,
    asked: Arc<Watched>,
    config: EngineConfig,
    headers: Headers,
    limits: AttemptLimits,
}

impl Client {
    fn new() -> Self {
        Self::with(|_| {})
    }

    fn with(change: impl FnOnce(&mut EngineConfig)) -> Self {
        let asked = Arc::new(Watched::default());
        let mut config = EngineConfig::default();
        config.resolver = asked.clone();
        config.cutter = Arc::default();
        change(&mut config);
        let engine = Engine::new(&config).unwrap();
        Self { engine, asked, config, headers: Headers::new(), limits: ample() }
    }

    /// The head alone.
    fn open(&mut self, url: &str, route: &Route) -> Result<Incoming, Error> {
        let url = Url::parse(url).unwrap();
        let method = http::Method::GET;
        self.engine.attempt(Outgoing::new(&method, &url, &self.headers), route, &self.limits)
    }

    /// Status and body.
    fn fetch(&mut self, url: &str, route: &Route) -> Result<(u16, String), Error> {
        let mut incoming = self.open(url, route)?;
        let body = read(&mut incoming)?;
        Ok((incoming.status, body))
    }

    fn get(&mut self, url: &str) -> Result<(u16, String), Error> {
        self.fetch(url, &Route::direct())
    }
}

/// The whole body, or the error inside of the I/O error.
fn read(incoming: &mut Incoming) -> Result<String, Error> {
    let mut body = Vec::new();
    match incoming.body.read_to_end(&mut body) {
        Ok(_) => Ok(String::from_utf8_lossy(&body).into_owned()),
        Err(error) => Err(error.downcast::<Error>().unwrap()),
    }
}

fn through(proxy: &str) -> Route {
    Route::through(Arc::new(proxy.parse::<ProxyUrl>().unwrap()))
}
