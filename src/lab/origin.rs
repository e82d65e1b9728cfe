//! The server of the lab that stands for a target.

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use rustls::ServerConfig;

use super::channel::{BODY_LIMIT, Channel, Piece};
use super::play::{Cast, play};
use super::received::Received;
use super::script::{Reply, Script};
use super::server::{Counts, Incoming, Log, Server, Setup, Shared, greets, watched};
use super::tls::{Ca, Holds, Issued};
use crate::error::Error;
use crate::time::{Clock, SystemClock};

type Handler = Arc<dyn Fn(&Received) -> Script + Send + Sync>;
type HeadHandler = Arc<dyn Fn(&Received) -> Option<Script> + Send + Sync>;

/// A loopback server that answers each request with a script.
///
/// Stops and waits for its connections when dropped; a handler that panicked makes the drop, or
/// [`join`](Origin::join), panic with its words.
#[derive(Debug)]
pub struct Origin {
    server: Server,
    log: Arc<Log<Received>>,
    tls: bool,
}

impl Origin {
    /// An origin that answers everything with an empty 200, until told otherwise.
    pub fn builder() -> OriginBuilder {
        OriginBuilder {
            handler: Arc::new(|_| Reply::new(200).into()),
            on_head: None,
            holds: None,
            clients: None,
            setup: Setup::default(),
        }
    }

    /// The URL of a path: `http://127.0.0.1:PORT/path`, or https where it speaks TLS.
    pub fn url(&self, path: &str) -> String {
        let scheme = if self.tls { "https" } else { "http" };
        let slash = if path.starts_with('/') { "" } else { "/" };
        format!("{scheme}://{}{slash}{path}", self.address())
    }

    /// What it has counted so far.
    pub fn counts(&self) -> Counts {
        self.server.shared().counts()
    }

    /// How many requests came on each connection, by the connection's number.
    pub fn requests_per_connection(&self) -> BTreeMap<u64, u64> {
        self.server.shared().requests_per_connection()
    }

    /// The requests seen, oldest first; see [`OriginBuilder::keep`].
    pub fn log(&self) -> Vec<Received> {
        self.log.all()
    }

    watched!();
}

/// How an [`Origin`] is set up; can be started several times, for a plain and a TLS port that
/// behave alike.
#[derive(Clone)]
pub struct OriginBuilder {
    handler: Handler,
    on_head: Option<HeadHandler>,
    holds: Option<Holds>,
    clients: Option<Ca>,
    setup: Setup,
}

impl OriginBuilder {
    /// Answers each request, once its body has been read.
    pub fn handler<S: Into<Script>>(
        mut self,
        handler: impl Fn(&Received) -> S + Send + Sync + 'static,
    ) -> Self {
        self.handler = Arc::new(move |request| handler(request).into());
        self
    }

    /// Is asked first, when the head has come and before the body is read; `None` leaves the
    /// request to the [`handler`](Self::handler).
    ///
    /// What an early script leaves of the body is read after its last step, unless it has ended
    /// the connection.
    pub fn on_head(
        mut self,
        handler: impl Fn(&Received) -> Option<Script> + Send + Sync + 'static,
    ) -> Self {
        self.on_head = Some(Arc::new(handler));
        self
    }

    /// Speaks TLS, with a certificate of this authority for whatever name is asked for.
    pub fn tls(mut self, ca: &Ca) -> Self {
        self.holds = Some(Holds::Anything(ca.clone()));
        self
    }

    /// Speaks TLS with this certificate, whatever name is asked for.
    pub fn certificate(mut self, issued: &Issued) -> Self {
        self.holds = Some(Holds::One(issued.clone()));
        self
    }

    /// Demands a certificate of this authority from clients; only where TLS is spoken.
    pub fn client_ca(mut self, ca: &Ca) -> Self {
        self.clients = Some(ca.clone());
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
    pub fn start(self) -> Result<Origin, Error> {
        let Self { handler, on_head, holds, clients, setup } = self;
        let config = holds.as_ref().map(|holds| holds.config(clients.as_ref())).transpose()?;
        let tls = config.is_some();
        let (shared, log) = (Shared::new(), Arc::new(Log::new(setup.keep)));
        let desk = Desk { shared: Arc::clone(&shared), log: Arc::clone(&log), config };
        let server = Server::start("origin", &setup, shared, move |incoming| {
            // A connection that breaks ends its thread and nothing else.
            let _ = serve(&desk, &incoming, &handler, on_head.as_ref());
        })?;
        Ok(Origin { server, log, tls })
    }
}

impl fmt::Debug for OriginBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OriginBuilder")
            .field("tls", &self.holds.is_some())
            .field("setup", &self.setup)
            .finish_non_exhaustive()
    }
}

/// Where requests are read, counted and logged; the HTTP proxy uses it too.
#[derive(Debug)]
pub(super) struct Desk {
    pub(super) shared: Arc<Shared>,
    pub(super) log: Arc<Log<Received>>,
    pub(super) config: Option<Arc<ServerConfig>>,
}

impl Desk {
    /// The channel of a new connection, after its TLS handshake where there is one.
    pub(super) fn open(&self, incoming: &Incoming) -> io::Result<Channel> {
        match &self.config {
            None => Ok(Channel::plain(&incoming.stream, &self.shared)),
            Some(config) => Channel::tls(&incoming.stream, &self.shared, Arc::clone(config))
                .inspect_err(|_| self.shared.count_malformed()),
        }
    }

    /// Reads and dates the next head; `seen` numbers the requests of the connection.
    pub(super) fn head(
        &self,
        channel: &mut Channel,
        incoming: &Incoming,
        seen: &mut u64,
    ) -> io::Result<Option<Received>> {
        let Some(head) = channel.head()? else { return Ok(None) };
        let Some(mut request) = Received::parse(&head, incoming.peer, SystemClock.now()) else {
            self.shared.count_malformed();
            channel.send(&Reply::new(400).header("Connection", "close").render(false))?;
            return Ok(None);
        };
        request.connection = incoming.number;
        request.tls = channel.is_tls();
        request.sni = channel.sni();
        request.resumed = channel.resumed();
        request.client_certificate = channel.client_certificate();
        *seen += 1;
        request.request = *seen;
        Ok(Some(request))
    }

    /// Logs and counts a request that is about to be answered.
    pub(super) fn note(&self, request: &Received) {
        self.log.push(request);
        self.shared.count_request(request.connection);
    }

    /// Reads the body of a request, asking for it where the client waits to be asked.
    pub(super) fn body(&self, channel: &mut Channel, request: &mut Received) -> io::Result<()> {
        let Some(framing) = request.framing() else { return Ok(()) };
        if request.header("Expect").is_some_and(|value| value.eq_ignore_ascii_case("100-continue"))
        {
            channel.send(b"HTTP/1.1 100 Continue\r\n\r\n")?;
        }
        let mut body = Vec::new();
        channel.body(framing, |piece| {
            if let Piece::Data(bytes) = piece {
                if body.len() + bytes.len() > BODY_LIMIT {
                    return Err(io::Error::other("a body beyond every use"));
                }
                body.extend_from_slice(bytes);
            }
            Ok(())
        })?;
        request.body = body.into();
        Ok(())
    }
}

struct OriginCast<'a> {
    desk: &'a Desk,
    incoming: &'a Incoming,
    seen: &'a mut u64,
}

impl Cast for OriginCast<'_> {
    fn next(&mut self, channel: &mut Channel) -> io::Result<Option<Received>> {
        let next = self.desk.head(channel, self.incoming, self.seen)?;
        let Some(mut request) = next else { return Ok(None) };
        let read = self.desk.body(channel, &mut request);
        self.desk.note(&request);
        read.map(|()| Some(request))
    }

    fn tunnel(&mut self, _channel: &mut Channel) -> io::Result<()> {
        Ok(())
    }
}

fn serve(
    desk: &Desk,
    incoming: &Incoming,
    handler: &Handler,
    on_head: Option<&HeadHandler>,
) -> io::Result<()> {
    let mut channel = desk.open(incoming)?;
    let mut seen = 0;
    while let Some(mut request) = desk.head(&mut channel, incoming, &mut seen)? {
        let early = on_head.and_then(|handler| handler(&request));
        let unread = early.as_ref().and_then(|_| request.framing());
        if early.is_none() {
            let read = desk.body(&mut channel, &mut request);
            desk.note(&request);
            read?;
        } else {
            desk.note(&request);
        }
        let script = early.unwrap_or_else(|| handler(&request));
        let keep = request.keeps_alive();
        let mut cast = OriginCast { desk, incoming, seen: &mut seen };
        match play(&script, channel, &desk.shared, Some(request), unread, &mut cast)? {
            Some(open) if keep => channel = open,
            Some(open) => return open.finish(),
            None => return Ok(()),
        }
    }
    Ok(())
}
