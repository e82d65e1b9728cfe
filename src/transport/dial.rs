//! From a name and a port to a connected socket, all inside the connect budget.
//!
//! Addresses are raced as RFC 8305 says: families interleaved, a new attempt every 250 ms as long
//! as none has succeeded, and at once when one fails. A name whose first address is a black hole
//! therefore costs a quarter of a second and not the whole budget, and a good last address is
//! always reached. The family that worked is tried first the next time.

use super::cutter::Cutter;
use super::hosts::Hosts;
use super::resolve::{Resolve, ResolveError};
use super::socket::{Socket, timespec};
use super::trace::{Event, Peer, Trace};
use super::wait::Wait;
use crate::error::{Error, ErrorKind, Fault, Phase};
use crate::message::Timings;
use rustix::event::{PollFd, PollFlags, poll};
use socket2::{Domain, Protocol, SockAddr, TcpKeepalive, Type};
use std::io;
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// RFC 8305, section 5: the recommended delay before the next address.
const STAGGER: Duration = Duration::from_millis(250);
/// How often a connect that is under way looks whether all connections were cut.
const SLICE: Duration = Duration::from_millis(100);
/// Silence after which the operating system asks whether the peer is still there: often enough
/// that no address translator on the way forgets a server that thinks for long.
const KEEPALIVE: Duration = Duration::from_secs(60);
/// How long it waits for an answer before it asks again.
const KEEPALIVE_AGAIN: Duration = Duration::from_secs(15);
/// How many unanswered questions end the connection.
const KEEPALIVE_PROBES: u32 = 4;

/// What connecting needs besides the host.
#[derive(Clone, Copy)]
pub(super) struct Dialer<'a> {
    pub(super) resolver: &'a dyn Resolve,
    pub(super) source: Option<IpAddr>,
    pub(super) cutter: &'a Arc<Cutter>,
    pub(super) hosts: &'a Hosts,
    pub(super) wait: &'a Wait<'a>,
    pub(super) trace: &'a Trace,
    /// Whom to blame: the target, or the proxy that is dialled.
    pub(super) fault: Fault,
}

/// Refuses an own address that no socket can be bound to, before anything depends on it.
///
/// # Errors
/// `Config` where no interface of this machine has it.
pub(super) fn check_source(source: IpAddr) -> Result<(), Error> {
    let address = SocketAddr::new(source, 0);
    let bound = socket2::Socket::new(Domain::for_address(address), Type::STREAM, None)
        .and_then(|socket| socket.bind(&SockAddr::from(address)));
    match bound {
        Err(error) if error.kind() == io::ErrorKind::AddrNotAvailable => {
            Err(Error::config(format!(
                "the source address {source} is none of this machine's; give one that an interface \
                 here has, or leave it out"
            )))
        }
        // Anything else is for the one who dials to tell, with the target.
        _ => Ok(()),
    }
}

impl Dialer<'_> {
    /// Connects to the first address of `host` that answers.
    pub(super) fn dial(
        &self,
        host: &str,
        port: u16,
        timings: &mut Timings,
    ) -> Result<Socket, Error> {
        let begun = self.wait.now();
        let mut addresses = self.addresses(host, timings)?;
        let connecting = self.wait.now();
        let has_both =
            addresses.iter().any(IpAddr::is_ipv4) && addresses.iter().any(IpAddr::is_ipv6);
        if has_both && let Some(v4) = self.hosts.prefers_v4(host, connecting) {
            addresses.sort_by_key(|address| address.is_ipv4() != v4);
        }
        let result = self.race(&interleave(&addresses, port));
        let connected = self.wait.now();
        timings.connect = Some(connected.saturating_duration_since(connecting));
        let stream = result.map_err(|failure| self.failed(failure, host, port, begun))?;
        if has_both && let Ok(peer) = stream.peer_addr() {
            self.hosts.worked(host, peer.is_ipv4(), connected);
        }
        self.trace.tell(|| Event::Connected {
            peer: if self.fault == Fault::Proxy { Peer::Proxy } else { Peer::Target },
            local: stream.local_addr().ok(),
            address: stream.peer_addr().ok(),
            took: connected.saturating_duration_since(connecting),
        });
        let stream = Arc::new(stream);
        let registration = self.cutter.register(&stream);
        Ok(Socket::new(stream, registration))
    }

    /// The addresses of a host; a literal one is not looked up.
    pub(super) fn addresses(
        &self,
        host: &str,
        timings: &mut Timings,
    ) -> Result<Vec<IpAddr>, Error> {
        if let Ok(address) = host.parse() {
            return Ok(vec![address]);
        }
        let begun = self.wait.now();
        let budget = self
            .wait
            .bound()
            .map_err(|error| super::map_error::timeout(&error, Phase::Dns, self.fault))?;
        let answer = self.resolver.resolve_while(host, budget.left, &|| !self.cutter.is_cut());
        // Two names may be needed: the proxy's and, for some SOCKS proxies, the target's.
        let took = self.wait.now().saturating_duration_since(begun);
        timings.dns = Some(timings.dns.unwrap_or(Duration::ZERO) + took);
        if self.cutter.is_cut() {
            return Err(super::map_error::cancelled(Phase::Dns));
        }
        let what = if self.fault == Fault::Proxy { "the proxy's name" } else { "the name" };
        let (kind, message, source) = match answer {
            Ok(addresses) if addresses.is_empty() => {
                let reason = format!("{what} {host} has no address");
                (ErrorKind::NameNotFound, reason, ResolveError::NotFound(String::new()))
            }
            Ok(addresses) => {
                self.trace.tell(|| Event::Resolved { host, addresses: &addresses, took });
                return Ok(addresses);
            }
            Err(ResolveError::TimedOut) if budget.left.is_some() => {
                return Err(super::map_error::timeout(&budget.expired(), Phase::Dns, self.fault)
                    .with_source(ResolveError::TimedOut));
            }
            Err(error @ ResolveError::NotFound(_)) => {
                let reason = format!("{what} {host} does not exist: {error}");
                (ErrorKind::NameNotFound, reason, error)
            }
            Err(error) => {
                let reason = format!("{what} {host} cannot be looked up for now: {error}");
                (ErrorKind::NameLookup, reason, error)
            }
        };
        // Which of the two it is matters for a URL. A proxy without an address is unreachable.
        let kind = if self.fault == Fault::Proxy { ErrorKind::ProxyUnreachable } else { kind };
        Err(Error::new(kind, Phase::Dns, self.fault, message).with_source(source))
    }

    fn race(&self, addresses: &[SocketAddr]) -> Result<TcpStream, Failure> {
        let clock = self.wait;
        let mut waiting = addresses.iter();
        let mut racing: Vec<socket2::Socket> = Vec::new();
        let mut failed: Option<io::Error> = None;
        let mut next_start: Option<Instant> = None;
        let begun = clock.now();
        let allowed = clock.bound().map_err(Failure::Expired)?;
        // Counted beside the clock, so that one which a test moves by hand cannot turn a silent
        // address into a wait without end.
        let mut slept = Duration::ZERO;
        loop {
            if self.cutter.is_cut() {
                return Err(Failure::Cut);
            }
            let bound = clock.bound().map_err(Failure::Expired)?;
            if allowed.left.is_some_and(|left| left <= slept) {
                return Err(Failure::Expired(allowed.expired()));
            }
            let now = begun.checked_add(slept).map_or(clock.now(), |soon| soon.max(clock.now()));
            if racing.is_empty() || next_start.is_none_or(|start| start <= now) {
                match waiting.next() {
                    Some(address) => {
                        match self.start(*address) {
                            Ok((socket, true)) => return blocking(socket).map_err(Failure::Io),
                            Ok((socket, false)) => {
                                racing.push(socket);
                                next_start = now.checked_add(STAGGER);
                            }
                            Err(error) if is_exhausted(&error) => {
                                return Err(Failure::Local(error));
                            }
                            Err(error) => keep_telling(&mut failed, error),
                        }
                        continue;
                    }
                    None if racing.is_empty() => {
                        let error = failed.unwrap_or_else(|| {
                            io::Error::new(
                                io::ErrorKind::AddrNotAvailable,
                                "no address of the family of the own address",
                            )
                        });
                        return Err(Failure::Io(error));
                    }
                    None => next_start = None,
                }
            }

            let stagger = match next_start {
                Some(start) if waiting.len() > 0 => start.saturating_duration_since(now),
                _ => SLICE,
            };
            let rest = allowed.left.map_or(SLICE, |left| left.saturating_sub(slept));
            let pause = stagger.min(SLICE).min(bound.left.unwrap_or(SLICE)).min(rest);
            let ready: Vec<bool> = {
                let mut fds: Vec<PollFd<'_>> =
                    racing.iter().map(|socket| PollFd::new(socket, PollFlags::OUT)).collect();
                match poll(&mut fds, timespec(Some(pause)).as_ref()) {
                    Ok(0) => slept += pause,
                    Ok(_) | Err(rustix::io::Errno::INTR) => {}
                    Err(error) => return Err(Failure::Local(error.into())),
                }
                fds.iter().map(|fd| !fd.revents().is_empty()).collect()
            };
            let mut still = Vec::with_capacity(racing.len());
            for (socket, ready) in racing.into_iter().zip(ready) {
                if !ready {
                    still.push(socket);
                    continue;
                }
                match socket.take_error() {
                    // `poll` may wake early; who has a peer is connected.
                    Ok(None) if socket.peer_addr().is_ok() => {
                        return blocking(socket).map_err(Failure::Io);
                    }
                    Ok(None) => still.push(socket),
                    Ok(Some(error)) | Err(error) => {
                        keep_telling(&mut failed, error);
                        // The next one need not wait for its turn.
                        next_start = None;
                    }
                }
            }
            racing = still;
        }
    }

    /// Begins to connect; whether the socket is connected already.
    fn start(&self, address: SocketAddr) -> io::Result<(socket2::Socket, bool)> {
        let socket =
            socket2::Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
        if let Some(source) = self.source {
            if source.is_ipv4() != address.is_ipv4() {
                return Err(io::Error::new(
                    io::ErrorKind::AddrNotAvailable,
                    format!("{address} is of another family than the own address {source}"),
                ));
            }
            socket.bind(&SockAddr::from(SocketAddr::new(source, 0)))?;
        }
        socket.set_nonblocking(true)?;
        match socket.connect(&SockAddr::from(address)) {
            Ok(()) => Ok((socket, true)),
            Err(error) if is_under_way(&error) => Ok((socket, false)),
            Err(error) => Err(error),
        }
    }

    fn failed(&self, failure: Failure, host: &str, port: u16, begun: Instant) -> Error {
        let (what, kind) = if self.fault == Fault::Proxy {
            ("the proxy", ErrorKind::ProxyUnreachable)
        } else {
            ("the server", ErrorKind::Connection)
        };
        match failure {
            Failure::Cut => super::map_error::cancelled(Phase::Connect),
            Failure::Expired(error) => {
                let took = self.wait.now().saturating_duration_since(begun);
                log::debug!(
                    target: "longhaul::connection",
                    "no connection to {host}:{port} after {took:?}"
                );
                super::map_error::timeout(&error, Phase::Connect, self.fault)
            }
            Failure::Local(error) => Error::new(
                ErrorKind::Io,
                Phase::Connect,
                Fault::Local,
                format!(
                    "no socket could be opened: {error}; fewer workers or a higher `ulimit -n` help"
                ),
            )
            .with_source(error),
            // What is missing is on this side: the wanted address, or a free port of any.
            Failure::Io(error) if error.kind() == io::ErrorKind::AddrNotAvailable => {
                let message = match self.source {
                    Some(source) => {
                        format!("the source address {source} cannot reach {host}:{port}: {error}")
                    }
                    None => format!("no address or port to reach {host}:{port} from: {error}"),
                };
                Error::new(ErrorKind::Io, Phase::Connect, Fault::Local, message).with_source(error)
            }
            Failure::Io(error) => {
                let message = format!("{what} at {host}:{port} cannot be connected to: {error}");
                Error::new(kind, Phase::Connect, self.fault, message).with_source(error)
            }
        }
    }
}

enum Failure {
    Cut,
    Expired(io::Error),
    Local(io::Error),
    Io(io::Error),
}

/// Alternates between the families, beginning with that of the first address.
fn interleave(addresses: &[IpAddr], port: u16) -> Vec<SocketAddr> {
    let leading = addresses.first().is_some_and(IpAddr::is_ipv4);
    let of = |v4: bool| addresses.iter().filter(move |address| address.is_ipv4() == v4);
    let (mut first, mut second) = (of(leading), of(!leading));
    let mut order = Vec::with_capacity(addresses.len());
    loop {
        let pair = [first.next(), second.next()];
        if pair == [None, None] {
            return order;
        }
        order.extend(pair.into_iter().flatten().map(|address| SocketAddr::new(*address, port)));
    }
}

/// Of several failures the one that says most: a refusal says more than a missing route.
fn keep_telling(kept: &mut Option<io::Error>, error: io::Error) {
    if kept.as_ref().is_none_or(|kept| kept.kind() != io::ErrorKind::ConnectionRefused) {
        *kept = Some(error);
    }
}

fn blocking(socket: socket2::Socket) -> io::Result<TcpStream> {
    socket.set_nonblocking(false)?;
    // Both are wishes: without them the connection works all the same.
    let _ = socket.set_tcp_nodelay(true);
    let _ = socket.set_tcp_keepalive(&keepalive());
    Ok(socket.into())
}

fn keepalive() -> TcpKeepalive {
    let keepalive = TcpKeepalive::new().with_time(KEEPALIVE);
    #[cfg(not(any(target_os = "openbsd", target_os = "haiku", target_os = "vita")))]
    let keepalive = keepalive.with_interval(KEEPALIVE_AGAIN);
    #[cfg(not(any(
        target_os = "openbsd",
        target_os = "haiku",
        target_os = "vita",
        target_os = "windows"
    )))]
    let keepalive = keepalive.with_retries(KEEPALIVE_PROBES);
    keepalive
}

fn is_under_way(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::WouldBlock
        || error.raw_os_error() == Some(rustix::io::Errno::INPROGRESS.raw_os_error())
        // Interrupted by a signal, the connect goes on in the background.
        || error.kind() == io::ErrorKind::Interrupted
}

/// Whether this machine is out of descriptors or memory: no other address would do better.
fn is_exhausted(error: &io::Error) -> bool {
    use rustix::io::Errno;
    let code = error.raw_os_error();
    [Errno::MFILE, Errno::NFILE, Errno::NOBUFS, Errno::NOMEM]
        .iter()
        .any(|errno| code == Some(errno.raw_os_error()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::{Clock, SimClock, SystemClock, secs};
    use crate::transport::AttemptLimits;
    use std::net::TcpListener;

    #[derive(Debug)]
    struct Fixed(Vec<IpAddr>);

    impl Resolve for Fixed {
        fn resolve(&self, _: &str, _: Option<Duration>) -> Result<Vec<IpAddr>, ResolveError> {
            Ok(self.0.clone())
        }
    }

    fn dial(addresses: &[&str], port: u16, connect: f64) -> Result<Socket, Error> {
        dial_with(&Hosts::default(), &SystemClock, addresses, port, connect)
    }

    fn dial_with(
        hosts: &Hosts,
        clock: &dyn Clock,
        addresses: &[&str],
        port: u16,
        connect: f64,
    ) -> Result<Socket, Error> {
        let addresses = addresses.iter().map(|address| address.parse().unwrap()).collect();
        let limits = AttemptLimits { connect: Some(secs(connect)), ..Default::default() };
        let cutter = Arc::default();
        let wait = Wait::connect(clock, clock.now(), &limits);
        let dialer = Dialer {
            resolver: &Fixed(addresses),
            source: None,
            cutter: &cutter,
            hosts,
            wait: &wait,
            trace: &Trace::default(),
            fault: Fault::Target,
        };
        dialer.dial("name.test", port, &mut Timings::default())
    }

    #[test]
    fn families_alternate_from_the_first_one() {
        let parse =
            |list: &[&str]| list.iter().map(|a| a.parse().unwrap()).collect::<Vec<IpAddr>>();
        let order = interleave(&parse(&["::1", "::2", "::3", "1.1.1.1", "2.2.2.2"]), 80);
        let order: Vec<String> = order.iter().map(|address| address.ip().to_string()).collect();
        assert_eq!(order, ["::1", "1.1.1.1", "::2", "2.2.2.2", "::3"]);
        assert!(interleave(&[], 80).is_empty());
    }

    #[test]
    fn a_refused_address_gives_way_to_the_next() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let socket = dial(&["127.0.0.9", "127.0.0.8", "127.0.0.1"], port, 5.0).unwrap();
        assert_eq!(socket.peer().unwrap().ip().to_string(), "127.0.0.1");
    }

    /// A listener whose queue is full: who connects hears nothing.
    fn black_hole(address: SocketAddr) -> (socket2::Socket, Vec<socket2::Socket>) {
        let listener = socket2::Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
        listener.bind(&address.into()).unwrap();
        listener.listen(0).unwrap();
        let queue = (0..8).map(|_| {
            let socket = socket2::Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
            socket.set_nonblocking(true).unwrap();
            let _ = socket.connect(&address.into());
            socket
        });
        let queue = queue.collect();
        (listener, queue)
    }

    #[test]
    fn a_black_hole_costs_its_stagger_and_not_the_budget() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let _hole = black_hole(SocketAddr::new("127.0.0.7".parse().unwrap(), port));
        let start = SystemClock.now();
        let socket = dial(&["127.0.0.7", "127.0.0.1"], port, 30.0).unwrap();
        assert_eq!(socket.peer().unwrap().ip().to_string(), "127.0.0.1");
        // The operating system alone would give up after minutes, the budget after half of one.
        assert!(SystemClock.now() - start < secs(10.0));

        let error = dial(&["127.0.0.7"], port, 0.3).unwrap_err();
        assert_eq!((error.kind(), error.phase()), (ErrorKind::ConnectTimeout, Phase::Connect));
    }

    #[test]
    fn the_family_that_worked_goes_first_for_a_while() {
        let v4 = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = v4.local_addr().unwrap().port();
        let clock = SimClock::default();
        let hosts = Hosts::default();
        let family = || {
            let socket = dial_with(&hosts, &clock, &["::1", "127.0.0.1"], port, 5.0).unwrap();
            if socket.peer().unwrap().is_ipv4() { 4 } else { 6 }
        };
        assert_eq!(family(), 4, "nobody listens on ::1");
        let Ok(_v6) = TcpListener::bind(("::1", port)) else {
            // A machine without IPv6, or with somebody else on the port.
            return;
        };
        assert_eq!(family(), 4, "what worked is tried first");
        clock.advance(secs(600.0));
        assert_eq!(family(), 6, "and then the order of the resolver again");
        drop(v4);
        assert_eq!(family(), 6);
    }

    #[test]
    fn a_clock_that_stands_still_does_not_wait_for_a_black_hole_for_ever() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let _hole = black_hole(SocketAddr::new("127.0.0.6".parse().unwrap(), port));
        let clock = SimClock::default();
        let error = dial_with(&Hosts::default(), &clock, &["127.0.0.6"], port, 0.25).unwrap_err();
        assert_eq!((error.kind(), error.phase()), (ErrorKind::ConnectTimeout, Phase::Connect));
        let socket =
            dial_with(&Hosts::default(), &clock, &["127.0.0.6", "127.0.0.1"], port, 5.0).unwrap();
        assert_eq!(socket.peer().unwrap().ip().to_string(), "127.0.0.1");
    }

    #[test]
    fn sockets_are_kept_alive_and_do_not_delay() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let cutter = Arc::default();
        let wait = Wait::connect(&SystemClock, SystemClock.now(), &AttemptLimits::default());
        let dialer = Dialer {
            resolver: &Fixed(Vec::new()),
            source: None,
            cutter: &cutter,
            hosts: &Hosts::default(),
            wait: &wait,
            trace: &Trace::default(),
            fault: Fault::Target,
        };
        let Ok(stream) = dialer.race(&[listener.local_addr().unwrap()]) else { panic!("refused") };
        let socket = socket2::SockRef::from(&stream);
        assert!(socket.keepalive().unwrap() && socket.tcp_nodelay().unwrap());
        #[cfg(target_os = "linux")]
        {
            assert_eq!(socket.tcp_keepalive_time().unwrap(), KEEPALIVE);
            assert_eq!(socket.tcp_keepalive_interval().unwrap(), KEEPALIVE_AGAIN);
            assert_eq!(socket.tcp_keepalive_retries().unwrap(), KEEPALIVE_PROBES);
        }
    }

    #[test]
    fn all_refused_is_a_connection_error_of_the_target() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        drop(listener);
        let error = dial(&["127.0.0.1", "::1"], port, 5.0).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Connection);
        assert_eq!((error.phase(), error.fault()), (Phase::Connect, Fault::Target));
        assert!(error.is_unsent());
        assert!(error.to_string().contains("refused"), "{error}");
    }
}
