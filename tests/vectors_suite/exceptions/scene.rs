//! A scenario as a value: what is asked for, who answers it, and which clock it runs into.

use std::io::Read as _;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpStream};
use std::sync::LazyLock;
use std::time::Duration;

use http::Method;
use longhaul::lab::{
    Ca, ClosedPort, HttpProxy, Issued, Origin, OriginBuilder, Script, SilentPort, SocksProxy,
};
use longhaul::message::Verify;
use longhaul::secs;

/// What no scenario outlasts that runs into no clock.
pub(super) const PATIENT: Duration = Duration::from_secs(30);

/// Enough for a silence that begins with the connection.
pub(super) const SHORT: Duration = Duration::from_millis(250);

/// Enough for a silence before which a head has to arrive on a busy machine.
pub(super) const LONG: Duration = Duration::from_millis(1000);

pub(super) const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

/// Certificates of the authority that the client trusts, and one that it does not.
pub(super) struct Certificates {
    pub(super) root: tempfile::NamedTempFile,
    pub(super) good: Issued,
    pub(super) other_host: Issued,
    pub(super) expired: Issued,
    pub(super) untrusted: Issued,
}

pub(super) static CERTIFICATES: LazyLock<Certificates> = LazyLock::new(|| {
    let ca = Ca::new().unwrap();
    let root = tempfile::NamedTempFile::new().unwrap();
    ca.write_pem(root.path()).unwrap();
    let here = ["127.0.0.1", "localhost"];
    Certificates {
        root,
        good: ca.issue(here).unwrap(),
        other_host: ca.issue(["other.example"]).unwrap(),
        expired: ca.issue_expired(here).unwrap(),
        untrusted: Ca::new().unwrap().issue(here).unwrap(),
    }
});

/// Who stands on the other side.
pub(super) enum Peer {
    Origin(Origin),
    Http(HttpProxy),
    Socks(SocksProxy),
    Closed(ClosedPort),
    Silent(SilentPort),
}

impl Peer {
    pub(super) fn address(&self) -> SocketAddr {
        match self {
            Self::Origin(it) => it.address(),
            Self::Http(it) => it.address(),
            Self::Socks(it) => it.address(),
            Self::Closed(it) => it.address(),
            Self::Silent(it) => it.address(),
        }
    }

    /// Connections accepted and HTTP heads read, once every connection has ended.
    fn counts(&self) -> Option<(u64, u64)> {
        let (counts, requests) = match self {
            Self::Origin(it) => {
                assert!(it.wait_until_idle(PATIENT));
                let counts = it.counts();
                (counts, counts.requests)
            }
            Self::Http(it) => {
                assert!(it.wait_until_idle(PATIENT));
                let counts = it.counts();
                (counts, counts.requests)
            }
            Self::Socks(it) => {
                assert!(it.wait_until_idle(PATIENT));
                (it.counts(), 0)
            }
            Self::Closed(_) => return None,
            Self::Silent(_) => return Some((0, 0)),
        };
        Some((counts.accepted, requests))
    }

    /// Comes to the end of the queue of connections, after all that the client has made.
    fn queue(&self) {
        if matches!(self, Self::Closed(_) | Self::Silent(_)) {
            return;
        }
        let mut last = TcpStream::connect(self.address()).unwrap();
        last.set_read_timeout(Some(PATIENT)).unwrap();
        last.shutdown(std::net::Shutdown::Write).unwrap();
        // Whatever is said to it, and however it ends: it was accepted.
        let _ = last.read_to_end(&mut Vec::new());
    }
}

/// What is asked for, of whom, and how.
pub(super) struct Scene {
    pub(super) url: String,
    /// The proxies by their keys.
    pub(super) proxy: Option<String>,
    /// The first is the one that the client is to meet, the others stand behind it.
    pub(super) peers: Vec<Peer>,
    /// Where `two.invalid` is; nobody knows any other name.
    pub(super) addresses: Vec<IpAddr>,
    pub(super) connect: Duration,
    pub(super) read: Duration,
    pub(super) verify: Verify,
    pub(super) headers: Vec<(&'static str, &'static str)>,
    /// How often the same session asks; between two calls it waits for the server to leave where
    /// the server leaves.
    pub(super) calls: usize,
    pub(super) leaves_between: bool,
    /// Where a scenario makes sense with one method alone.
    pub(super) method: Option<Method>,
    pub(super) body: Vec<u8>,
    /// What is counted there as a request, and is none: the ClientHello that waits for the end of
    /// a head.
    pub(super) odd_heads: bool,
}

impl Scene {
    pub(super) fn new(url: impl Into<String>) -> Self {
        Self {
            url: url.into(),
            proxy: None,
            peers: Vec::new(),
            addresses: vec![IpAddr::V4(Ipv4Addr::LOCALHOST); 2],
            connect: PATIENT,
            read: PATIENT,
            verify: Verify::On,
            headers: Vec::new(),
            calls: 1,
            leaves_between: false,
            method: None,
            body: b"x=1".to_vec(),
            odd_heads: false,
        }
    }

    /// Straight to an origin.
    pub(super) fn to(origin: Origin) -> Self {
        Self::new(origin.url("/p")).behind(Peer::Origin(origin))
    }

    pub(super) fn behind(mut self, peer: Peer) -> Self {
        self.peers.push(peer);
        self
    }

    /// Through a proxy, which comes to stand before everybody else.
    pub(super) fn through(mut self, scheme: &str, userinfo: &str, proxy: Peer) -> Self {
        self.proxy = Some(format!("{scheme}://{userinfo}{}", proxy.address()));
        self.peers.insert(0, proxy);
        self
    }

    /// Runs into the connect timeout.
    pub(super) fn connect(self, connect: Duration) -> Self {
        Self { connect, ..self }
    }

    /// Runs into the read timeout.
    pub(super) fn read(self, read: Duration) -> Self {
        Self { read, ..self }
    }

    /// Connections at the first server and HTTP heads at all of them; nothing where none of the
    /// servers can count.
    pub(super) fn counts(&self) -> Option<(u64, u64)> {
        let first = self.peers.first()?;
        first.queue();
        let (connections, _) = first.counts()?;
        let waits = !matches!(first, Peer::Silent(_));
        let connections = connections - u64::from(waits);
        let requests: u64 =
            self.peers.iter().filter_map(Peer::counts).map(|(_, requests)| requests).sum();
        Some((connections, if self.odd_heads { connections } else { requests }))
    }
}

/// How a server goes on after what it has said.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum After {
    Close,
    Reset,
    Hold,
    Keep,
}

pub(super) fn script(bytes: impl AsRef<[u8]>, after: After) -> Script {
    let script = Script::send(bytes);
    match after {
        After::Close => script.fin(),
        After::Reset => script.pause(secs(0.02)).rst(),
        After::Hold => script.hold(),
        After::Keep => script,
    }
}

/// An origin that says these bytes to every request.
pub(super) fn says(bytes: impl AsRef<[u8]>, after: After) -> OriginBuilder {
    let script = script(bytes, after);
    Origin::builder().handler(move |_| script.clone())
}

pub(super) fn raw(bytes: impl AsRef<[u8]>) -> Scene {
    answers(bytes, After::Close)
}

pub(super) fn answers(bytes: impl AsRef<[u8]>, after: After) -> Scene {
    Scene::to(says(bytes, after).start().unwrap())
}

/// An origin that does this on every connection, whatever it is spoken to.
pub(super) fn greets(script: Script) -> Scene {
    Scene::to(Origin::builder().on_accept(move |_| Some(script.clone())).start().unwrap())
}

/// The same where TLS is expected of it.
pub(super) fn greets_tls(script: Script) -> Scene {
    let mut scene = greets(script);
    scene.url = scene.url.replace("http:", "https:");
    scene
}
