//! The messages of SOCKS 4, 4a and 5 as a server reads them.

use std::fmt;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Instant;

use super::channel::Channel;
use super::received::latin1;

/// How a SOCKS client named its target.
#[non_exhaustive]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum AddressKind {
    /// An IPv4 address, looked up by the client.
    Ipv4,
    /// An IPv6 address, looked up by the client.
    Ipv6,
    /// A name, left to the proxy.
    Domain,
}

/// What a SOCKS client asked for.
#[non_exhaustive]
#[derive(Clone, PartialEq, Eq)]
pub struct SocksRequest {
    /// 4 or 5; a 4a request is version 4 with a [`Domain`](AddressKind::Domain).
    pub version: u8,
    /// 1 is CONNECT.
    pub command: u8,
    /// How the target was named.
    pub kind: AddressKind,
    /// The target's name or address.
    pub host: String,
    /// The target's port.
    pub port: u16,
    /// The user id (version 4) or user name (version 5), where one was given.
    pub user: Option<String>,
    /// The authentication methods that a version 5 client offered.
    pub methods: Vec<u8>,
    /// The number of the connection at this proxy, from 1.
    pub connection: u64,
    /// Where the connection came from.
    pub peer: SocketAddr,
    /// When the request was complete.
    pub arrived: Instant,
}

/// The user name is left out.
impl fmt::Debug for SocksRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SocksRequest")
            .field("version", &self.version)
            .field("command", &self.command)
            .field("kind", &self.kind)
            .field("host", &self.host)
            .field("port", &self.port)
            .field("user", &self.user.as_ref().map(|_| "<redacted>"))
            .field("connection", &self.connection)
            .finish_non_exhaustive()
    }
}

/// The reply of a granted or refused request, with an empty bound address.
pub(super) fn reply(version: u8, granted: bool, code: u8) -> Vec<u8> {
    match version {
        4 => vec![0, if granted { 0x5a } else { 0x5b }, 0, 0, 0, 0, 0, 0],
        _ => vec![5, code, 0, 1, 0, 0, 0, 0, 0, 0],
    }
}

/// The part of a version 4 request after its version byte: command, target, user.
pub(super) fn read_v4(channel: &mut Channel) -> io::Result<(u8, Target, Option<String>)> {
    let [command, p1, p2, a, b, c, d] = array(channel)?;
    let user = string(channel.until(0, 1024)?);
    let port = u16::from_be_bytes([p1, p2]);
    let target = if [a, b, c] == [0, 0, 0] && d != 0 {
        Target { kind: AddressKind::Domain, host: string(channel.until(0, 1024)?), port }
    } else {
        Target { kind: AddressKind::Ipv4, host: Ipv4Addr::new(a, b, c, d).to_string(), port }
    };
    Ok((command, target, (!user.is_empty()).then_some(user)))
}

/// The methods that a version 5 client offers, after its version byte.
pub(super) fn read_methods(channel: &mut Channel) -> io::Result<Vec<u8>> {
    let [count] = array(channel)?;
    channel.exactly(usize::from(count))
}

/// User name and password of RFC 1929.
pub(super) fn read_login(channel: &mut Channel) -> io::Result<(String, String)> {
    let [1, length] = array(channel)? else { return Err(strange("version of the login")) };
    let user = latin1(&channel.exactly(usize::from(length))?);
    let [length] = array(channel)?;
    let password = latin1(&channel.exactly(usize::from(length))?);
    Ok((user, password))
}

/// A version 5 request: command and target.
pub(super) fn read_v5(channel: &mut Channel) -> io::Result<(u8, Target)> {
    let [5, command, _reserved, kind] = array(channel)? else {
        return Err(strange("version of the request"));
    };
    let (kind, host) = match kind {
        1 => (AddressKind::Ipv4, IpAddr::from(array::<4>(channel)?).to_string()),
        4 => (AddressKind::Ipv6, IpAddr::V6(Ipv6Addr::from(array::<16>(channel)?)).to_string()),
        3 => {
            let [length] = array(channel)?;
            (AddressKind::Domain, latin1(&channel.exactly(usize::from(length))?))
        }
        _ => return Err(strange("address type")),
    };
    let port = u16::from_be_bytes(array(channel)?);
    Ok((command, Target { kind, host, port }))
}

/// Where a client wants to go.
pub(super) struct Target {
    pub(super) kind: AddressKind,
    pub(super) host: String,
    pub(super) port: u16,
}

pub(super) fn array<const N: usize>(channel: &mut Channel) -> io::Result<[u8; N]> {
    channel.exactly(N)?.try_into().map_err(|_| io::ErrorKind::UnexpectedEof.into())
}

fn string(mut bytes: Vec<u8>) -> String {
    bytes.pop();
    latin1(&bytes)
}

fn strange(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("not SOCKS: the {what}"))
}
