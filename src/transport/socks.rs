//! SOCKS 4, 4a and 5: the messages, pure, and the short conversation that they make.
//!
//! ureq's own SOCKS refuses an empty password and a reserved byte that is not zero, drops the user
//! id of SOCKS4, and turns each reply into a text. Who failed is what a run has to know: replies
//! 3 to 6 of SOCKS5 say that the *target* cannot be reached and leave the proxy its good name, the
//! others speak of the proxy.
//!
//! Where the scheme lets the proxy look names up (`socks4a`, `socks5h`) the name is sent and
//! nothing is asked of the local resolver. Where it does not (`socks4`, `socks5`), one address of
//! the name is handed in.

use super::connect::handshake_failed;
use super::stream::Stream;
use super::wait::Wait;
use crate::error::{Error, ErrorKind, Fault, Phase, ProxyReply};
use crate::proxy::{ProxyScheme, ProxyUrl};
use std::io;
use std::net::{IpAddr, SocketAddr};

/// Where a SOCKS proxy is asked to connect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Destination<'h> {
    /// An address.
    Address(IpAddr),
    /// A name that the proxy looks up.
    Name(&'h str),
}

impl Destination<'_> {
    /// `host:port`, with brackets around an IPv6 address.
    pub(super) fn authority(self, port: u16) -> String {
        match self {
            Self::Address(address) => SocketAddr::from((address, port)).to_string(),
            Self::Name(name) => format!("{name}:{port}"),
        }
    }
}

/// Asks the proxy on this stream for a connection to the destination.
pub(super) fn connect(
    stream: &mut Stream,
    destination: Destination<'_>,
    port: u16,
    proxy: &ProxyUrl,
    wait: &Wait<'_>,
) -> Result<(), Error> {
    let mut talk = Talk { stream, wait };
    match proxy.scheme() {
        ProxyScheme::Socks4 | ProxyScheme::Socks4a => {
            let user = proxy.credentials().map(|(user, _)| user).unwrap_or_default();
            talk.say(&request4(destination, port, user)?)?;
            reply4(talk.hear()?)
        }
        _ => {
            let credentials = proxy.credentials();
            talk.say(&greeting5(credentials.is_some()))?;
            match method5(talk.hear()?, credentials.is_some())? {
                Method::Nothing => {}
                Method::Password => {
                    let (user, password) = credentials.unwrap_or_default();
                    talk.say(&password5(user, password)?)?;
                    password_reply5(talk.hear()?)?;
                }
            }
            talk.say(&request5(destination, port)?)?;
            let left = reply5(talk.hear()?)?;
            talk.skip(left)
        }
    }
}

/// The two sides of a handshake.
struct Talk<'a, 'w> {
    stream: &'a mut Stream,
    wait: &'a Wait<'w>,
}

impl Talk<'_, '_> {
    fn say(&mut self, message: &[u8]) -> Result<(), Error> {
        match self.stream.write_all(&[message], self.wait, false, &mut 0) {
            Ok(_) => Ok(()),
            Err(error) => Err(handshake_failed(error, self.stream)),
        }
    }

    /// Reads so many bytes and not one more: what follows is the target's.
    fn hear<const N: usize>(&mut self) -> Result<[u8; N], Error> {
        let mut message = [0; N];
        self.fill(&mut message)?;
        Ok(message)
    }

    /// Reads past the address that a reply ends with.
    fn skip(&mut self, left: Left) -> Result<(), Error> {
        let left = match left {
            Left::Bytes(left) => left,
            Left::Counted => usize::from(u8::from_be_bytes(self.hear()?)) + 2,
        };
        let mut rest = [0; 255 + 2];
        self.fill(rest.get_mut(..left).unwrap_or_default())
    }

    fn fill(&mut self, mut rest: &mut [u8]) -> Result<(), Error> {
        while !rest.is_empty() {
            let amount = match self.stream.read(rest, self.wait) {
                Ok(0) => {
                    let error = io::Error::from(io::ErrorKind::UnexpectedEof);
                    return Err(handshake_failed(error, self.stream));
                }
                Ok(amount) => amount,
                Err(error) => return Err(handshake_failed(error, self.stream)),
            };
            rest = rest.get_mut(amount..).unwrap_or_default();
        }
        Ok(())
    }
}

/// How a SOCKS5 proxy wants to be convinced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Method {
    Nothing,
    Password,
}

/// What of a SOCKS5 reply is still to be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Left {
    Bytes(usize),
    /// A length in one byte, so many bytes, and two more.
    Counted,
}

/// RFC 1928, section 3: version, and the methods that would do.
fn greeting5(with_password: bool) -> Vec<u8> {
    if with_password { vec![5, 2, 0, 2] } else { vec![5, 1, 0] }
}

fn method5([version, method]: [u8; 2], with_password: bool) -> Result<Method, Error> {
    if version != 5 {
        return Err(not_socks(5, version));
    }
    match method {
        0 => Ok(Method::Nothing),
        2 if with_password => Ok(Method::Password),
        0xFF if with_password => {
            Err(auth(0xFF, "the proxy takes neither no credentials nor a password"))
        }
        0xFF | 2 => Err(auth(method, "the proxy wants credentials and its URL has none")),
        other => Err(auth(other, &format!("the proxy chose method {other}, which nobody offered"))),
    }
}

/// RFC 1929. An empty password is sent as one.
fn password5(user: &[u8], password: &[u8]) -> Result<Vec<u8>, Error> {
    let mut message = vec![1];
    for (what, text) in [("user name", user), ("password", password)] {
        let length = u8::try_from(text.len()).map_err(|_| {
            Error::local(
                ErrorKind::InvalidProxyUrl,
                format!(
                    "the {what} for the proxy has {} bytes, but SOCKS5 carries at most 255",
                    text.len()
                ),
            )
        })?;
        message.push(length);
        message.extend_from_slice(text);
    }
    Ok(message)
}

fn password_reply5([_, status]: [u8; 2]) -> Result<(), Error> {
    match status {
        0 => Ok(()),
        status => Err(auth(status, "the proxy does not accept the user name and password")),
    }
}

/// RFC 1928, section 4.
fn request5(destination: Destination<'_>, port: u16) -> Result<Vec<u8>, Error> {
    let mut message = vec![5, 1, 0];
    match destination {
        Destination::Address(IpAddr::V4(address)) => {
            message.push(1);
            message.extend_from_slice(&address.octets());
        }
        Destination::Address(IpAddr::V6(address)) => {
            message.push(4);
            message.extend_from_slice(&address.octets());
        }
        Destination::Name(name) => {
            let length = u8::try_from(name.len()).map_err(|_| {
                Error::local(
                    ErrorKind::InvalidUrl,
                    format!(
                        "the host name has {} bytes, but SOCKS5 carries at most 255",
                        name.len()
                    ),
                )
            })?;
            message.extend_from_slice(&[3, length]);
            message.extend_from_slice(name.as_bytes());
        }
    }
    message.extend_from_slice(&port.to_be_bytes());
    Ok(message)
}

/// RFC 1928, section 6. The reserved byte is anything; an address type of zero, which some
/// proxies send, is an IPv4 address of zeros.
fn reply5([version, code, _, kind]: [u8; 4]) -> Result<Left, Error> {
    if version != 5 {
        return Err(not_socks(5, version));
    }
    if code != 0 {
        return Err(refused5(code));
    }
    match kind {
        0 | 1 => Ok(Left::Bytes(4 + 2)),
        3 => Ok(Left::Counted),
        4 => Ok(Left::Bytes(16 + 2)),
        other => Err(broken(format!("the proxy replied with an address of unknown type {other}"))),
    }
}

fn refused5(code: u8) -> Error {
    let (target, reason) = match code {
        1 => (false, "general failure"),
        2 => (false, "not allowed by its rules"),
        3 => (true, "network unreachable"),
        4 => (true, "host unreachable"),
        5 => (true, "connection refused"),
        6 => (true, "time to live expired"),
        7 => (false, "command not supported"),
        8 => (false, "address type not supported"),
        _ => (false, "unknown reply"),
    };
    let (kind, fault, message) = if target {
        let message = format!("the proxy cannot reach the target: {reason} (SOCKS5 reply {code})");
        (ErrorKind::Connection, Fault::Target, message)
    } else {
        let message = format!("the proxy refused the connection: {reason} (SOCKS5 reply {code})");
        (ErrorKind::ProxyRefused, Fault::Proxy, message)
    };
    Error::new(kind, Phase::Proxy, fault, message).with_proxy_reply(reply(code, reason))
}

/// SOCKS 4 and 4a: the user id ends with a zero byte, and so does the name behind it.
fn request4(destination: Destination<'_>, port: u16, user: &[u8]) -> Result<Vec<u8>, Error> {
    let (address, name) = match destination {
        Destination::Address(IpAddr::V4(address)) => (address.octets(), None),
        Destination::Address(IpAddr::V6(address)) => {
            return Err(Error::local(
                ErrorKind::InvalidUrl,
                format!("SOCKS4 carries no IPv6 address such as {address}; socks5 does"),
            ));
        }
        // An address that no host has tells the proxy to look for a name.
        Destination::Name(name) => ([0, 0, 0, 1], Some(name)),
    };
    if user.contains(&0) {
        return Err(Error::local(
            ErrorKind::InvalidProxyUrl,
            "the user name for the proxy holds a zero byte, which would end it in SOCKS4",
        ));
    }
    let mut message = vec![4, 1];
    message.extend_from_slice(&port.to_be_bytes());
    message.extend_from_slice(&address);
    message.extend_from_slice(user);
    message.push(0);
    if let Some(name) = name {
        message.extend_from_slice(name.as_bytes());
        message.push(0);
    }
    Ok(message)
}

fn reply4([version, code, ..]: [u8; 8]) -> Result<(), Error> {
    // Zero by the book; some answer with their own version.
    if version != 0 && version != 4 {
        return Err(not_socks(4, version));
    }
    match code {
        90 => Ok(()),
        92 => Err(auth(code, "the proxy could not ask who its client is (identd)")),
        93 => Err(auth(code, "the proxy was told of another user than the one in its URL")),
        _ => {
            let reason = if code == 91 { "rejected or failed" } else { "unknown reply" };
            let message =
                format!("the proxy refused the connection: {reason} (SOCKS4 reply {code})");
            Err(Error::new(ErrorKind::ProxyRefused, Phase::Proxy, Fault::Proxy, message)
                .with_proxy_reply(reply(code, reason)))
        }
    }
}

fn auth(code: u8, reason: &str) -> Error {
    Error::new(ErrorKind::ProxyAuth, Phase::Proxy, Fault::Proxy, reason)
        .with_proxy_reply(reply(code, reason))
}

fn reply(code: u8, reason: &str) -> ProxyReply {
    ProxyReply {
        code: u16::from(code),
        socks: true,
        reason: reason.to_owned(),
        headers: http::HeaderMap::new(),
        body: bytes::Bytes::new(),
    }
}

fn not_socks(wanted: u8, version: u8) -> Error {
    let hint = if version == b'H' { "; it looks like an HTTP proxy" } else { "" };
    broken(format!("the proxy does not speak SOCKS{wanted}: it answered with {version}{hint}"))
}

fn broken(message: String) -> Error {
    Error::new(ErrorKind::ProxyUnreachable, Phase::Proxy, Fault::Proxy, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn socks5_messages() {
        assert_eq!(greeting5(false), [5, 1, 0]);
        assert_eq!(greeting5(true), [5, 2, 0, 2]);
        assert_eq!(password5(b"me", b"").unwrap(), b"\x01\x02me\x00");
        assert_eq!(
            request5(Destination::Name("a.test"), 443).unwrap(),
            b"\x05\x01\x00\x03\x06a.test\x01\xbb"
        );
        let address = |text: &str| Destination::Address(text.parse().unwrap());
        assert_eq!(request5(address("1.2.3.4"), 80).unwrap(), [5, 1, 0, 1, 1, 2, 3, 4, 0, 80]);
        let v6 = request5(address("::1"), 80).unwrap();
        assert_eq!((v6.len(), v6[3], v6[19]), (22, 4, 1));
    }

    #[test]
    fn socks4_messages() {
        let address = Destination::Address("1.2.3.4".parse().unwrap());
        assert_eq!(request4(address, 80, b"me").unwrap(), b"\x04\x01\x00\x50\x01\x02\x03\x04me\0");
        assert_eq!(
            request4(Destination::Name("a.test"), 80, b"").unwrap(),
            b"\x04\x01\x00\x50\x00\x00\x00\x01\0a.test\0"
        );
        let v6 = request4(Destination::Address("::1".parse().unwrap()), 80, b"").unwrap_err();
        assert_eq!(v6.kind(), ErrorKind::InvalidUrl);
        assert!(v6.to_string().contains("SOCKS4 carries no IPv6"), "{v6}");
        assert!(request4(address, 80, b"a\0b").is_err());
    }

    #[test]
    fn what_does_not_fit_is_said_without_being_shown() {
        let secret = [b's'; 256];
        let error = password5(b"me", &secret).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidProxyUrl);
        assert!(error.to_string().contains("256 bytes"), "{error}");
        assert!(!error.to_string().contains("sss"), "{error}");
        assert!(request5(Destination::Name(&"a".repeat(256)), 1).is_err());
    }

    #[test]
    fn methods() {
        assert_eq!(method5([5, 0], false).unwrap(), Method::Nothing);
        assert_eq!(method5([5, 0], true).unwrap(), Method::Nothing);
        assert_eq!(method5([5, 2], true).unwrap(), Method::Password);
        for (reply, with) in
            [([5, 0xFF], true), ([5, 0xFF], false), ([5, 2], false), ([5, 1], true)]
        {
            let error = method5(reply, with).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::ProxyAuth, "{reply:?}");
            assert_eq!(error.proxy_reply().unwrap().code, u16::from(reply[1]));
        }
        let error = method5(*b"HT", false).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ProxyUnreachable);
        assert!(error.to_string().contains("HTTP proxy"), "{error}");
    }

    #[test]
    fn replies_of_socks5_tell_who_failed() {
        for (code, kind, fault) in [
            (1, ErrorKind::ProxyRefused, Fault::Proxy),
            (2, ErrorKind::ProxyRefused, Fault::Proxy),
            (3, ErrorKind::Connection, Fault::Target),
            (4, ErrorKind::Connection, Fault::Target),
            (5, ErrorKind::Connection, Fault::Target),
            (6, ErrorKind::Connection, Fault::Target),
            (7, ErrorKind::ProxyRefused, Fault::Proxy),
            (8, ErrorKind::ProxyRefused, Fault::Proxy),
            (99, ErrorKind::ProxyRefused, Fault::Proxy),
        ] {
            let error = reply5([5, code, 0, 1]).unwrap_err();
            assert_eq!((error.kind(), error.fault()), (kind, fault), "{code}");
            assert_eq!(error.phase(), Phase::Proxy);
            assert!(error.is_unsent());
            let reply = error.proxy_reply().unwrap();
            assert!(reply.socks && reply.code == u16::from(code));
        }
        assert_eq!(reply5([5, 0, 7, 1]).unwrap(), Left::Bytes(6));
        assert_eq!(reply5([5, 0, 0, 0]).unwrap(), Left::Bytes(6));
        assert_eq!(reply5([5, 0, 0, 3]).unwrap(), Left::Counted);
        assert_eq!(reply5([5, 0, 0, 4]).unwrap(), Left::Bytes(18));
        assert!(reply5([5, 0, 0, 9]).is_err());
    }

    #[test]
    fn replies_of_socks4() {
        let reply = |version, code| reply4([version, code, 0, 0, 0, 0, 0, 0]);
        assert!(reply(0, 90).is_ok());
        assert!(reply(4, 90).is_ok());
        assert_eq!(reply(0, 91).unwrap_err().kind(), ErrorKind::ProxyRefused);
        assert_eq!(reply(0, 93).unwrap_err().kind(), ErrorKind::ProxyAuth);
        assert_eq!(reply(b'H', 90).unwrap_err().kind(), ErrorKind::ProxyUnreachable);
    }
}
