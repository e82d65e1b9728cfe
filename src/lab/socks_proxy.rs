//! The SOCKS proxy of the lab: versions 4, 4a and 5 on one port.
//!
//! What a client reveals is recorded (an address it looked up itself, or the name), and what it
//! gets is either the real thing or a script, decided by a handler per request. The handshake is
//! its own, so that the client under test is checked against something else than itself; a test
//! drives it with an independent client.

use std::collections::HashMap;
use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::channel::Channel;
use super::dial::Dialer;
use super::play::{Cast, play};
use super::received::{Received, latin1};
use super::relay::relay;
use super::script::{Script, Step};
use super::server::{Counts, Incoming, Log, Server, Setup, Shared, greets, watched};
use super::socks_wire::{SocksRequest, array, read_login, read_methods, read_v4, read_v5, reply};
use crate::error::Error;
use crate::time::{Clock, SystemClock};

type Handler = Arc<dyn Fn(&SocksRequest) -> Option<Script> + Send + Sync>;

/// What a [`SocksProxy`] has counted beyond its [`Counts`].
#[non_exhaustive]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SocksCounts {
    /// Handshakes refused for want of the right credentials.
    pub unauthorized: u64,
    /// Tunnels opened.
    pub tunnels: u64,
    /// Connections made to targets.
    pub dialed: u64,
    /// Bytes passed through tunnels that have ended, both directions together.
    pub tunnelled_bytes: u64,
}

/// A loopback SOCKS proxy.
///
/// It looks no name up: `.name("shop.test", address)` says where a name leads, loopback addresses
/// are dialed as they stand, and everything else is answered "host unreachable" unless
/// [`elsewhere`](SocksProxyBuilder::elsewhere) was given. Stops when dropped.
#[derive(Debug)]
pub struct SocksProxy {
    server: Server,
    log: Arc<Log<SocksRequest>>,
    tally: Arc<Tally>,
}

impl SocksProxy {
    /// A proxy that lets everybody through.
    pub fn builder() -> SocksProxyBuilder {
        SocksProxyBuilder {
            handler: Arc::new(|_| None),
            credentials: None,
            dialer: Dialer::default(),
            setup: Setup::default(),
        }
    }

    /// Its URL without credentials, with this scheme: `socks5h` gives `socks5h://127.0.0.1:PORT`.
    pub fn url(&self, scheme: &str) -> String {
        format!("{scheme}://{}", self.address())
    }

    /// What it has counted on its clients' side.
    pub fn counts(&self) -> Counts {
        self.server.shared().counts()
    }

    /// What it has counted as a proxy.
    pub fn socks_counts(&self) -> SocksCounts {
        let Tally { unauthorized, tunnels, dialed, tunnelled_bytes } = &*self.tally;
        SocksCounts {
            unauthorized: unauthorized.load(Ordering::Relaxed),
            tunnels: tunnels.load(Ordering::Relaxed),
            dialed: dialed.load(Ordering::Relaxed),
            tunnelled_bytes: tunnelled_bytes.load(Ordering::Relaxed),
        }
    }

    /// The requests seen, oldest first; handshakes that failed before one are not among them.
    pub fn log(&self) -> Vec<SocksRequest> {
        self.log.all()
    }

    watched!();
}

/// How a [`SocksProxy`] is set up.
#[derive(Clone)]
pub struct SocksProxyBuilder {
    handler: Handler,
    credentials: Option<(String, String)>,
    dialer: Dialer,
    setup: Setup,
}

impl SocksProxyBuilder {
    /// Is asked about every request, once the client has shown its credentials; its script begins
    /// where the reply would stand. `None` leaves the request to the proxy.
    pub fn handler<S: Into<Script>>(
        mut self,
        handler: impl Fn(&SocksRequest) -> Option<S> + Send + Sync + 'static,
    ) -> Self {
        self.handler = Arc::new(move |request| handler(request).map(Into::into));
        self
    }

    /// Demands user name and password of a version 5 client, and the user id of a version 4 one,
    /// which has no password.
    pub fn credentials(mut self, user: &str, password: &str) -> Self {
        self.credentials = Some((latin1(user.as_bytes()), latin1(password.as_bytes())));
        self
    }

    /// Leaves by these local addresses, connection by connection in turn: `127.0.0.2` and its
    /// neighbours make a gateway with several exits that a target sees as peer addresses. Linux
    /// has them all; elsewhere they must be configured first.
    pub fn exits(mut self, addresses: impl IntoIterator<Item = IpAddr>) -> Self {
        self.dialer.exits = addresses.into_iter().collect();
        self
    }

    /// Says where a `host` or `host:port` leads.
    pub fn name(mut self, name: &str, address: SocketAddr) -> Self {
        self.dialer.add_name(name, address);
        self
    }

    /// As [`name`](Self::name), for many.
    pub fn names(mut self, names: &HashMap<String, SocketAddr>) -> Self {
        for (name, address) in names {
            self.dialer.add_name(name, *address);
        }
        self
    }

    /// Says where every name leads that has no place of its own.
    pub fn elsewhere(mut self, address: SocketAddr) -> Self {
        self.dialer.elsewhere = Some(address);
        self
    }

    greets!();

    /// Listens here instead of on a free port of 127.0.0.1.
    pub fn address(mut self, address: SocketAddr) -> Self {
        self.setup.address = address;
        self
    }

    /// Keeps the last `count` requests in the log, 10 000 unless told otherwise; 0 keeps none.
    pub fn keep(mut self, count: usize) -> Self {
        self.setup.keep = count;
        self
    }

    /// Accepts no further connection while this many are open, 1024 unless told otherwise.
    pub fn max_connections(mut self, count: usize) -> Self {
        self.setup.max_connections = count;
        self
    }

    /// Listens.
    ///
    /// # Errors
    /// [`ErrorKind::Io`](crate::ErrorKind::Io) when the address cannot be listened on.
    pub fn start(self) -> Result<SocksProxy, Error> {
        let Self { handler, credentials, dialer, setup } = self;
        let (shared, log) = (Shared::new(), Arc::new(Log::new(setup.keep)));
        let tally = Arc::new(Tally::default());
        let office = Office {
            shared: Arc::clone(&shared),
            log: Arc::clone(&log),
            tally: Arc::clone(&tally),
            handler,
            credentials,
            dialer,
        };
        let server = Server::start("socks-proxy", &setup, shared, move |incoming| {
            // A connection that breaks ends its thread and nothing else.
            if let Err(error) = office.serve(&incoming)
                && error.kind() == io::ErrorKind::InvalidData
            {
                office.shared.count_malformed();
            }
        })?;
        Ok(SocksProxy { server, log, tally })
    }
}

/// The credentials are left out.
impl fmt::Debug for SocksProxyBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SocksProxyBuilder")
            .field("credentials", &self.credentials.is_some())
            .field("setup", &self.setup)
            .finish_non_exhaustive()
    }
}

#[derive(Debug, Default)]
struct Tally {
    unauthorized: AtomicU64,
    tunnels: AtomicU64,
    dialed: AtomicU64,
    tunnelled_bytes: AtomicU64,
}

struct Office {
    shared: Arc<Shared>,
    log: Arc<Log<SocksRequest>>,
    tally: Arc<Tally>,
    handler: Handler,
    credentials: Option<(String, String)>,
    dialer: Dialer,
}

impl Office {
    fn serve(&self, incoming: &Incoming) -> io::Result<()> {
        let mut channel = Channel::plain(&incoming.stream, &self.shared);
        let Some(request) = self.handshake(&mut channel, incoming)? else {
            return channel.finish();
        };
        let script = match (self.handler)(&request) {
            Some(script) => script,
            None => self.open(&request, incoming, &mut channel)?,
        };
        let target = self.dialer.find(&request.host, request.port);
        let mut cast = SocksCast { office: self, incoming, target };
        match play(&script, channel, &self.shared, None, None, &mut cast)? {
            Some(open) => open.finish(),
            None => Ok(()),
        }
    }

    /// Everything up to the request; `None` where the credentials were not the right ones.
    fn handshake(
        &self,
        channel: &mut Channel,
        incoming: &Incoming,
    ) -> io::Result<Option<SocksRequest>> {
        let [version] = array(channel)?;
        let (command, target, user, methods) = match version {
            4 => {
                let (command, target, user) = read_v4(channel)?;
                let right = self
                    .credentials
                    .as_ref()
                    .is_none_or(|(wanted, _)| user.as_deref().is_some_and(|given| given == wanted));
                if !right {
                    self.tally.unauthorized.fetch_add(1, Ordering::Relaxed);
                    // 93: the user id is not the one that was expected.
                    channel.send(&[0, 0x5d, 0, 0, 0, 0, 0, 0])?;
                    return Ok(None);
                }
                (command, target, user, Vec::new())
            }
            5 => {
                let methods = read_methods(channel)?;
                let Some(user) = self.authenticate(channel, &methods)? else { return Ok(None) };
                let (command, target) = read_v5(channel)?;
                (command, target, user, methods)
            }
            other => {
                let message = format!("not SOCKS: version {other}");
                return Err(io::Error::new(io::ErrorKind::InvalidData, message));
            }
        };
        let request = SocksRequest {
            version,
            command,
            kind: target.kind,
            host: target.host,
            port: target.port,
            user,
            methods,
            connection: incoming.number,
            peer: incoming.peer,
            arrived: SystemClock.now(),
        };
        self.log.push(&request);
        self.shared.count_request(incoming.number);
        Ok(Some(request))
    }

    /// The user, if one had to be named; the outer `None` is a refusal.
    fn authenticate(
        &self,
        channel: &mut Channel,
        methods: &[u8],
    ) -> io::Result<Option<Option<String>>> {
        const NONE: u8 = 0;
        const LOGIN: u8 = 2;
        let Some((user, password)) = &self.credentials else {
            if methods.contains(&NONE) {
                channel.send(&[5, NONE])?;
                return Ok(Some(None));
            }
            channel.send(&[5, 0xff])?;
            return Ok(None);
        };
        if !methods.contains(&LOGIN) {
            self.tally.unauthorized.fetch_add(1, Ordering::Relaxed);
            channel.send(&[5, 0xff])?;
            return Ok(None);
        }
        channel.send(&[5, LOGIN])?;
        let (given_user, given_password) = read_login(channel)?;
        if (&given_user, &given_password) != (user, password) {
            self.tally.unauthorized.fetch_add(1, Ordering::Relaxed);
            channel.send(&[1, 1])?;
            return Ok(None);
        }
        channel.send(&[1, 0])?;
        Ok(Some(Some(given_user)))
    }

    /// What the proxy does by itself: it connects first and answers accordingly.
    fn open(
        &self,
        request: &SocksRequest,
        incoming: &Incoming,
        channel: &mut Channel,
    ) -> io::Result<Script> {
        let refusal = |code| Script::send(reply(request.version, false, code)).fin();
        if request.command != 1 {
            return Ok(refusal(7));
        }
        let Some(address) = self.dialer.find(&request.host, request.port) else {
            return Ok(refusal(4));
        };
        let stream = match self.dialer.connect(address, incoming.number) {
            Ok(stream) => stream,
            Err(error) => {
                let refused = error.kind() == io::ErrorKind::ConnectionRefused;
                return Ok(refusal(if refused { 5 } else { 4 }));
            }
        };
        self.tally.dialed.fetch_add(1, Ordering::Relaxed);
        let Some(_ticket) = self.shared.watch(&stream) else { return Ok(Step::Close.into()) };
        channel.send(&reply(request.version, true, 0))?;
        self.tally.tunnels.fetch_add(1, Ordering::Relaxed);
        relay(channel, &stream, &self.tally.tunnelled_bytes)?;
        Ok(Step::Close.into())
    }
}

struct SocksCast<'a> {
    office: &'a Office,
    incoming: &'a Incoming,
    target: Option<SocketAddr>,
}

impl Cast for SocksCast<'_> {
    /// There is one request on a SOCKS connection.
    fn next(&mut self, _channel: &mut Channel) -> io::Result<Option<Received>> {
        Ok(None)
    }

    fn tunnel(&mut self, channel: &mut Channel) -> io::Result<()> {
        let Some(target) = self.target else { return Ok(()) };
        let office = self.office;
        let stream = office.dialer.connect(target, self.incoming.number)?;
        office.tally.dialed.fetch_add(1, Ordering::Relaxed);
        let Some(_ticket) = office.shared.watch(&stream) else { return Ok(()) };
        office.tally.tunnels.fetch_add(1, Ordering::Relaxed);
        relay(channel, &stream, &office.tally.tunnelled_bytes)
    }
}
