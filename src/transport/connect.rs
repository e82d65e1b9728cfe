//! From a route to a connection on which the request can be written.
//!
//! Whatever lies between is done here in order, each step on the stream of the one before, and
//! all of them inside one connect budget: the socket, TLS to an https proxy, CONNECT or SOCKS,
//! TLS to the target. Each step knows its phase and whom to blame, and says so in its error.

use super::cutter::Cutter;
use super::dial::Dialer;
use super::hosts::Hosts;
use super::idle::Conn;
use super::resolve::Resolve;
use super::socks::{self, Destination};
use super::stream::Stream;
use super::tls::{self, TlsClients};
use super::trace::{Event, Peer, Trace};
use super::wait::{Expired, Wait};
use super::{http_proxy, map_error};
use crate::error::{Error, ErrorKind, Fault, Phase};
use crate::message::Timings;
use crate::proxy::{Identity, ProxyScheme, ProxyUrl, Route};
use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;
use url::Url;

/// Addresses of a target that a SOCKS proxy is asked to try, each on a connection of its own.
const MOST_ADDRESSES: usize = 4;

/// The server behind a URL.
#[derive(Debug, Clone, Copy)]
pub(super) struct Target<'u> {
    pub(super) tls: bool,
    /// Name or address, without brackets.
    pub(super) host: &'u str,
    pub(super) port: u16,
}

impl<'u> Target<'u> {
    /// The server that this URL names.
    pub(super) fn of(url: &'u Url) -> Result<Self, Error> {
        let tls = match url.scheme() {
            "http" => false,
            "https" => true,
            other => {
                return Err(Error::local(
                    ErrorKind::InvalidScheme,
                    format!("only http and https can be requested, not {other}"),
                ));
            }
        };
        let host = url.host_str().unwrap_or_default();
        let host = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
        if host.is_empty() {
            return Err(Error::local(ErrorKind::InvalidUrl, "the URL names no host"));
        }
        let port = url.port().unwrap_or(if tls { 443 } else { 80 });
        Ok(Self { tls, host, port })
    }

    /// `host:port`, with brackets around an IPv6 address.
    pub(super) fn authority(&self) -> String {
        if self.host.contains(':') {
            format!("[{}]:{}", self.host, self.port)
        } else {
            format!("{}:{}", self.host, self.port)
        }
    }
}

/// How the target is reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    /// By a connection of our own.
    Direct,
    /// A proxy is asked to fetch it.
    Forward,
    /// Through a tunnel that CONNECT opens.
    Tunnel,
    /// Through a SOCKS proxy.
    Socks,
}

impl Way {
    /// The way to this target by this route.
    pub(super) fn of(target: &Target<'_>, route: &Route) -> Self {
        match route.proxy.as_deref().map(ProxyUrl::scheme) {
            None => Self::Direct,
            Some(ProxyScheme::Http | ProxyScheme::Https) => {
                if target.tls || route.always_connect {
                    Self::Tunnel
                } else {
                    Self::Forward
                }
            }
            Some(_) => Self::Socks,
        }
    }

    /// Writes what connections have in common that can stand in for each other.
    pub(super) fn write_key(self, key: &mut Vec<u8>, target: &Target<'_>, route: &Route) {
        key.extend_from_slice(&route.identity.value().to_ne_bytes());
        if self == Self::Forward {
            // The proxy fetches for any target on one connection.
            key.push(b'f');
            return;
        }
        key.push(match (self, target.tls) {
            (_, true) => b's',
            (Self::Tunnel, false) => b't',
            (_, false) => b'p',
        });
        key.extend_from_slice(&target.port.to_ne_bytes());
        key.extend_from_slice(target.host.as_bytes());
    }
}

/// The host in a key of [`Way::write_key`]; `None` where a proxy fetches for any host.
pub(super) fn host_of(key: &[u8]) -> Option<String> {
    let (kind, rest) = key.get(size_of::<u64>()..)?.split_first()?;
    let host = rest.get(size_of::<u16>()..).filter(|host| *kind != b'f' && !host.is_empty())?;
    Some(String::from_utf8_lossy(host).into_owned())
}

/// Makes connections.
#[derive(Debug)]
pub(super) struct Connector {
    pub(super) tls: TlsClients,
    pub(super) resolver: Arc<dyn Resolve>,
    pub(super) source: Option<IpAddr>,
    pub(super) hosts: Arc<Hosts>,
    pub(super) trace: Trace,
}

impl Connector {
    /// A connection to the target by this route.
    #[allow(clippy::too_many_arguments, reason = "the facts of an attempt, used nowhere else")]
    pub(super) fn connect(
        &mut self,
        way: Way,
        target: &Target<'_>,
        route: &Route,
        user_agent: Option<&[u8]>,
        key: Arc<[u8]>,
        cutter: &Arc<Cutter>,
        wait: &Wait<'_>,
        timings: &mut Timings,
    ) -> Result<Conn, Error> {
        let resolver = Arc::clone(&self.resolver);
        let fault = if route.proxy.is_some() { Fault::Proxy } else { Fault::Target };
        let (hosts, trace) = (Arc::clone(&self.hosts), self.trace.clone());
        let source = self.source;
        let (hosts, trace) = (&*hosts, &trace);
        let dialer = Dialer { resolver: &*resolver, source, cutter, hosts, wait, trace, fault };
        let (host, port) = match route.proxy.as_deref() {
            Some(proxy) => (proxy.host(), proxy.port()),
            None => (target.host, target.port),
        };
        let destinations = match route.proxy.as_deref() {
            Some(proxy) if way == Way::Socks => {
                // A name that is looked up here is the target's, whoever is dialled.
                let names = Dialer { fault: Fault::Target, ..dialer };
                destinations(target.host, proxy, &names, timings)?
            }
            _ => Vec::new(),
        };
        let mut stream = Stream::plain(dialer.dial(host, port, timings)?);

        if let Some(proxy) = route.proxy.as_deref() {
            if proxy.scheme() == ProxyScheme::Https {
                stream = self.secure(stream, host, route.identity, fault, &dialer, timings)?;
            }
            let begun = wait.now();
            if way == Way::Tunnel {
                http_proxy::connect(&mut stream, target, route, user_agent, wait, trace)?;
            }
            let mut destinations = destinations.iter().peekable();
            while let Some(destination) = destinations.next() {
                match socks::connect(&mut stream, *destination, target.port, proxy, wait) {
                    Ok(()) => {
                        let took = wait.now().saturating_duration_since(begun);
                        if trace.listens() {
                            let destination = &*destination.authority(target.port);
                            trace.tell(|| Event::Socks { destination, took });
                        }
                        break;
                    }
                    // The proxy cannot reach this address; it closes after such a reply.
                    Err(error)
                        if error.fault() == Fault::Target && destinations.peek().is_some() =>
                    {
                        stream = Stream::plain(dialer.dial(host, port, timings)?);
                    }
                    Err(error) => return Err(error),
                }
            }
            if way != Way::Forward {
                timings.proxy = Some(wait.now().saturating_duration_since(begun));
            }
        }
        if target.tls {
            stream =
                self.secure(stream, target.host, route.identity, Fault::Target, &dialer, timings)?;
        }
        let tls = tls::describe(&mut stream).map(Arc::from);
        Ok(Conn {
            stream,
            key,
            identity: route.identity,
            tls,
            idle_since: None,
            returns: 0,
            place: None,
        })
    }

    fn secure(
        &mut self,
        stream: Stream,
        host: &str,
        identity: Identity,
        fault: Fault,
        dialer: &Dialer<'_>,
        timings: &mut Timings,
    ) -> Result<Stream, Error> {
        let wait = dialer.wait;
        let begun = wait.now();
        if !self.tls.is_checked() && self.hosts.is_first_unchecked() {
            log::warn!(
                target: "longhaul::connection",
                "certificates are not checked: whoever answers as {host}, or as any other host, is \
                 believed (said once)"
            );
        }
        let mut result = self.tls.handshake(stream, host, identity, fault, wait);
        let took = wait.now().saturating_duration_since(begun);
        timings.tls = Some(timings.tls.unwrap_or(Duration::ZERO) + took);
        if dialer.trace.listens()
            && let Ok(stream) = &mut result
        {
            let tls = &*tls::describe(stream).unwrap_or_default();
            let peer = if fault == Fault::Proxy { Peer::Proxy } else { Peer::Target };
            dialer.trace.tell(|| Event::Secured { peer, host, tls, took });
        }
        result
    }
}

/// What a SOCKS proxy is asked to connect to, in the order in which it should be tried.
fn destinations<'h>(
    host: &'h str,
    proxy: &ProxyUrl,
    names: &Dialer<'_>,
    timings: &mut Timings,
) -> Result<Vec<Destination<'h>>, Error> {
    if let Ok(address) = host.parse() {
        return Ok(vec![Destination::Address(address)]);
    }
    let only_v4 = match proxy.scheme() {
        ProxyScheme::Socks4a | ProxyScheme::Socks5h => return Ok(vec![Destination::Name(host)]),
        scheme => scheme == ProxyScheme::Socks4,
    };
    let mut addresses = names.addresses(host, timings)?;
    if only_v4 && addresses.iter().any(IpAddr::is_ipv4) {
        addresses.retain(IpAddr::is_ipv4);
    }
    addresses.truncate(MOST_ADDRESSES);
    Ok(addresses.into_iter().map(Destination::Address).collect())
}

/// The error of an I/O call in a handshake with the proxy.
pub(super) fn handshake_failed(error: io::Error, stream: &Stream) -> Error {
    if stream.is_cut() {
        return map_error::cancelled(Phase::Proxy);
    }
    if Expired::of(&error).is_some() {
        return map_error::timeout(&error, Phase::Proxy, Fault::Proxy);
    }
    if let Some(refusal) = tls::refused_late(&error, stream) {
        return refusal.with_source(error);
    }
    let message = if error.kind() == io::ErrorKind::UnexpectedEof {
        "the proxy closed the connection in the middle of the handshake".to_owned()
    } else {
        format!("the connection to the proxy broke in the handshake: {error}")
    };
    Error::new(ErrorKind::ProxyUnreachable, Phase::Proxy, Fault::Proxy, message).with_source(error)
}
