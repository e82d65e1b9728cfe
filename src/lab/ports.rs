//! Addresses where nobody answers, each in its own way.

use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpStream};

use socket2::{Domain, SockAddr, Socket, Type};

use crate::error::{Error, ErrorKind};

/// A loopback port that refuses every connection.
///
/// The port stays bound without listening, so no other program can take it in the meantime, as it
/// can with a port that was merely free a moment ago.
#[derive(Debug)]
pub struct ClosedPort {
    _socket: Socket,
    address: SocketAddr,
}

impl ClosedPort {
    /// Takes a port.
    ///
    /// # Errors
    /// [`ErrorKind::Io`] when the machine has no port to give.
    pub fn new() -> Result<Self, Error> {
        let (socket, address) = bound().map_err(|error| no_port(&error))?;
        Ok(Self { _socket: socket, address })
    }

    /// The address that refuses.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

/// A loopback port on which a connection attempt gets no answer at all, as behind a firewall.
///
/// It listens with a full queue and never accepts, so Linux drops further attempts without a
/// word. Other systems may refuse them instead.
#[derive(Debug)]
pub struct SilentPort {
    _socket: Socket,
    _queued: Vec<TcpStream>,
    address: SocketAddr,
}

impl SilentPort {
    /// Takes a port and fills its queue.
    ///
    /// # Errors
    /// [`ErrorKind::Io`] when the machine has no port to give.
    pub fn new() -> Result<Self, Error> {
        Self::open().map_err(|error| no_port(&error))
    }

    fn open() -> io::Result<Self> {
        let (socket, address) = bound()?;
        socket.listen(0)?;
        let target = SockAddr::from(address);
        let mut queued = Vec::new();
        // A queue of length zero still holds one connection; a second one keeps it full for good.
        for _ in 0..2 {
            let client = Socket::new(Domain::IPV4, Type::STREAM, None)?;
            client.set_nonblocking(true)?;
            match client.connect(&target) {
                Ok(()) => {}
                Err(error) if in_progress(&error) => {}
                Err(error) => return Err(error),
            }
            queued.push(client.into());
        }
        Ok(Self { _socket: socket, _queued: queued, address })
    }

    /// The address that stays silent.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

fn bound() -> io::Result<(Socket, SocketAddr)> {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None)?;
    socket.bind(&SockAddr::from(SocketAddr::from((Ipv4Addr::LOCALHOST, 0))))?;
    let address = socket
        .local_addr()?
        .as_socket()
        .ok_or_else(|| io::Error::other("a bound socket without an address"))?;
    Ok((socket, address))
}

fn in_progress(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::WouldBlock
        || error.raw_os_error() == Some(rustix::io::Errno::INPROGRESS.raw_os_error())
}

fn no_port(error: &io::Error) -> Error {
    Error::local(ErrorKind::Io, format!("no loopback port can be taken: {error}"))
}
