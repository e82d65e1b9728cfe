//! How the proxies of the lab reach a target: by a map, never by a lookup.

use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use socket2::{Domain, SockAddr, Socket, Type};

/// Long enough for a loaded machine, short enough for a test that aims at a silent port.
const CONNECT: Duration = Duration::from_secs(10);

/// Where the names lead, and from which address they are reached.
#[derive(Debug, Clone, Default)]
pub(super) struct Dialer {
    pub(super) names: HashMap<String, SocketAddr>,
    pub(super) elsewhere: Option<SocketAddr>,
    pub(super) exits: Vec<IpAddr>,
}

impl Dialer {
    pub(super) fn add_name(&mut self, name: &str, address: SocketAddr) {
        self.names.insert(name.to_ascii_lowercase(), address);
    }

    /// The address for a host and port: `host:port` in the map, then `host`, then a loopback
    /// literal as it stands, then the place for everything else.
    pub(super) fn find(&self, host: &str, port: u16) -> Option<SocketAddr> {
        let host = host.to_ascii_lowercase();
        let host = host.strip_suffix('.').unwrap_or(&host);
        if let Some(address) =
            self.names.get(&format!("{host}:{port}")).or_else(|| self.names.get(host))
        {
            return Some(*address);
        }
        let literal = match host {
            "localhost" => Some(IpAddr::V4(Ipv4Addr::LOCALHOST)),
            _ => host.parse().ok(),
        };
        literal
            .filter(IpAddr::is_loopback)
            .map(|address| SocketAddr::new(address, port))
            .or(self.elsewhere)
    }

    /// Connects; connection number n leaves by the nth of the exit addresses, round and round.
    pub(super) fn connect(&self, target: SocketAddr, number: u64) -> io::Result<Arc<TcpStream>> {
        let socket = Socket::new(Domain::for_address(target), Type::STREAM, None)?;
        let count = self.exits.len().max(1) as u64;
        let turn = usize::try_from(number.saturating_sub(1) % count).unwrap_or(0);
        if let Some(exit) = self.exits.get(turn)
            && exit.is_ipv4() == target.is_ipv4()
        {
            socket.bind(&SockAddr::from(SocketAddr::new(*exit, 0)))?;
        }
        socket.connect_timeout(&SockAddr::from(target), CONNECT)?;
        let stream = TcpStream::from(socket);
        stream.set_nodelay(true)?;
        Ok(Arc::new(stream))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_lead_where_the_map_says_and_nowhere_else() {
        let at = |port| SocketAddr::from(([127, 0, 0, 1], port));
        let mut dialer = Dialer::default();
        dialer.add_name("Shop.test", at(1));
        dialer.add_name("shop.test:444", at(2));
        for (host, port, wanted) in [
            ("shop.test", 80, Some(at(1))),
            ("SHOP.TEST.", 444, Some(at(2))),
            ("other.test", 80, None),
            ("127.0.0.1", 8080, Some(at(8080))),
            ("localhost", 8080, Some(at(8080))),
            ("192.0.2.1", 80, None),
        ] {
            assert_eq!(dialer.find(host, port), wanted, "{host}:{port}");
        }
        dialer.elsewhere = Some(at(3));
        assert_eq!(dialer.find("other.test", 80), Some(at(3)));
        assert_eq!(dialer.find("192.0.2.1", 80), Some(at(3)));
    }
}
