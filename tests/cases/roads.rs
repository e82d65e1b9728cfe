//! The roads from a session to an origin, with everything that stands along them.

use longhaul::error::{Error, ErrorKind, Fault, Phase};
use longhaul::lab::{Ca, HttpProxy, Origin, OriginBuilder, SocksProxy, hostile};
use longhaul::policy::Timeouts;
use longhaul::time::{Clock, SimClock, SystemClock};
use longhaul::transport::{Resolve, ResolveError};
use longhaul::{ProxyPool, ProxyUrl, Retry, Session, SessionBuilder, secs};
use std::net::{IpAddr, Ipv4Addr};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

/// How an origin is reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Road {
    /// Nothing in between.
    Plain,
    /// TLS.
    Tls,
    /// In the clear through a proxy that asks for us.
    Forward,
    /// In the clear through a tunnel that CONNECT opens.
    Tunnel,
    /// TLS through such a tunnel.
    TlsTunnel,
    /// TLS through a tunnel of a proxy that is spoken to in TLS.
    TlsInTls,
    /// In the clear through a SOCKS proxy that looks the name up.
    Socks,
    /// TLS through such a proxy.
    TlsSocks,
}

impl Road {
    /// Those on which the bytes of the origin arrive as they are.
    pub(crate) const ALL: &[Self] = &[
        Self::Plain,
        Self::Tls,
        Self::Tunnel,
        Self::TlsTunnel,
        Self::TlsInTls,
        Self::Socks,
        Self::TlsSocks,
    ];

    /// All of them; to a proxy that asks for us the request and what it does on a connection are
    /// its own, so what is about connections is not asked of it.
    pub(crate) const EVERY: &[Self] = &[
        Self::Plain,
        Self::Tls,
        Self::Forward,
        Self::Tunnel,
        Self::TlsTunnel,
        Self::TlsInTls,
        Self::Socks,
        Self::TlsSocks,
    ];

    /// One of each kind, for what takes its time.
    pub(crate) const FOUR: &[Self] = &[Self::Plain, Self::Tls, Self::TlsTunnel, Self::Socks];

    /// In the clear, or through TLS.
    pub(crate) const TWO: &[Self] = &[Self::Plain, Self::Tls];

    pub(crate) fn is_tls(self) -> bool {
        matches!(self, Self::Tls | Self::TlsTunnel | Self::TlsInTls | Self::TlsSocks)
    }

    pub(crate) fn is_direct(self) -> bool {
        matches!(self, Self::Plain | Self::Tls)
    }
}

/// An origin on a plain and a TLS port, and the proxies that lead to it.
pub(crate) struct World {
    pub(crate) plain: Origin,
    pub(crate) secure: Origin,
    pub(crate) proxy: HttpProxy,
    pub(crate) secure_proxy: HttpProxy,
    pub(crate) socks: SocksProxy,
    root: tempfile::NamedTempFile,
}

/// The name that the proxies know the origin by; nobody else does.
pub(crate) const NAME: &str = "origin.test";

impl World {
    pub(crate) fn new(origin: OriginBuilder) -> Self {
        let ca = ca();
        let root = tempfile::NamedTempFile::new().unwrap();
        ca.write_pem(root.path()).unwrap();
        let plain = origin.clone().start().unwrap();
        let secure = origin.tls(ca).start().unwrap();
        let (http, https) = (format!("{NAME}:80"), format!("{NAME}:443"));
        let proxy =
            || HttpProxy::builder().name(&http, plain.address()).name(&https, secure.address());
        let socks = SocksProxy::builder()
            .name(&http, plain.address())
            .name(&https, secure.address())
            .start()
            .unwrap();
        let secure_proxy = proxy().tls(ca).start().unwrap();
        let proxy = proxy().start().unwrap();
        Self { plain, secure, proxy, secure_proxy, socks, root }
    }

    /// With an origin that misbehaves by name: `/b/NAME`.
    pub(crate) fn hostile() -> Self {
        Self::new(Origin::builder().on_head(hostile::early).handler(hostile::origin))
    }

    pub(crate) fn origin(&self, road: Road) -> &Origin {
        if road.is_tls() { &self.secure } else { &self.plain }
    }

    pub(crate) fn url(&self, road: Road, path: &str) -> String {
        if road.is_direct() {
            return self.origin(road).url(path);
        }
        format!("{}://{NAME}{path}", if road.is_tls() { "https" } else { "http" })
    }

    /// A recipe that takes this road, retries nothing and asks nobody about names.
    pub(crate) fn recipe(&self, road: Road) -> SessionBuilder {
        let recipe = recipe().extra_roots(self.root.path());
        let url = |text: String| text.parse::<ProxyUrl>().unwrap();
        match road {
            Road::Plain | Road::Tls => recipe,
            Road::Tunnel => {
                recipe.proxies(ProxyPool::new([url(self.proxy.url())]).always_connect(true))
            }
            Road::Forward | Road::TlsTunnel => recipe.proxies(url(self.proxy.url())),
            Road::TlsInTls => recipe.proxies(url(self.secure_proxy.url())),
            Road::Socks | Road::TlsSocks => recipe.proxies(url(self.socks.url("socks5h"))),
        }
    }

    /// One that reads once more after a failure, and does not wait for it.
    pub(crate) fn reading_twice(&self, road: Road) -> SessionBuilder {
        self.recipe(road).clock(Arc::new(SimClock::default())).retry(Retry::long_run().read(1u32))
    }

    pub(crate) fn session(&self, road: Road) -> Session {
        self.recipe(road).build().unwrap()
    }
}

/// A recipe that takes nothing from the environment.
pub(crate) fn recipe() -> SessionBuilder {
    Session::builder()
        .trust_env(false)
        .seed(1)
        .timeout((secs(20.0), secs(20.0)))
        .resolver(Arc::new(NoNames::default()))
}

/// Limits of which only the deadline can run out: no gap of a drip comes near the read timeout.
pub(crate) fn until_deadline() -> Timeouts {
    Timeouts::from((secs(20.0), secs(10.0))).with_deadline(secs(2.0)).unwrap()
}

/// The authority behind every certificate of these tests.
pub(crate) fn ca() -> &'static Ca {
    static CA: OnceLock<Ca> = OnceLock::new();
    CA.get_or_init(|| Ca::new().unwrap())
}

/// Goes down each road at the same time, in a world of its own.
pub(crate) fn each(
    roads: &[Road],
    world: impl Fn() -> World + Sync,
    go: impl Fn(&World, Road) + Sync,
) {
    std::thread::scope(|scope| {
        for road in roads {
            scope.spawn(|| {
                let _sign = Sign(*road);
                go(&world(), *road);
            });
        }
    });
}

/// Says which road it was when a test fails on it.
struct Sign(Road);

impl Drop for Sign {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("... on the road {:?}", self.0);
        }
    }
}

/// A resolver that knows no name, and remembers which it was asked for.
#[derive(Debug, Default)]
pub(crate) struct NoNames(Mutex<Vec<String>>);

impl NoNames {
    pub(crate) fn asked(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }
}

impl Resolve for NoNames {
    fn resolve(&self, host: &str, _: Option<Duration>) -> Result<Vec<IpAddr>, ResolveError> {
        self.0.lock().unwrap().push(host.to_owned());
        Err(ResolveError::NotFound("no such name".to_owned()))
    }
}

/// A resolver that gives the same answer for every name.
#[derive(Debug)]
pub(crate) struct Always(pub(crate) Result<Vec<IpAddr>, ResolveError>);

impl Always {
    pub(crate) fn home() -> Arc<Self> {
        Arc::new(Self(Ok(vec![IpAddr::V4(Ipv4Addr::LOCALHOST)])))
    }
}

impl Resolve for Always {
    fn resolve(&self, _: &str, _: Option<Duration>) -> Result<Vec<IpAddr>, ResolveError> {
        self.0.clone()
    }
}

#[track_caller]
pub(crate) fn assert_is(error: &Error, kind: ErrorKind, phase: Phase, fault: Fault) {
    let facts = (error.kind(), error.phase(), error.fault());
    assert_eq!(facts, (kind, phase, fault), "{error}");
}

/// Waits until it is so, and fails where it never is.
#[track_caller]
pub(crate) fn until(is_so: impl Fn() -> bool) {
    let end = SystemClock.now() + secs(20.0);
    while !is_so() {
        assert!(SystemClock.now() < end, "it never came to be");
        std::thread::yield_now();
    }
}
