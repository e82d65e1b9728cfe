//! A relay that counts, and cuts: what a program is asked that keeps no log of it, and what it never
//! breaks off by itself.

use std::io::{self, Read};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

/// Passes bytes on to an address, both ways, until the process ends.
pub(crate) struct Relay {
    address: SocketAddr,
    accepted: Arc<AtomicUsize>,
}

impl Relay {
    pub(crate) fn to(target: SocketAddr) -> Self {
        Self::cutting(target, &[])
    }

    /// The n-th connection ends after so many bytes from the target; those beyond go on.
    pub(crate) fn cutting(target: SocketAddr, after: &[u64]) -> Self {
        let after = after.to_vec();
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let address = listener.local_addr().unwrap();
        let accepted = Arc::new(AtomicUsize::new(0));
        let counter = Arc::clone(&accepted);
        thread::spawn(move || {
            for client in listener.incoming() {
                let number = counter.fetch_add(1, Ordering::SeqCst);
                let most = after.get(number).copied().unwrap_or(u64::MAX);
                let (client, server) = (client.unwrap(), TcpStream::connect(target).unwrap());
                let (back_to, back_from) =
                    (client.try_clone().unwrap(), server.try_clone().unwrap());
                thread::spawn(move || pass_on(client, server, u64::MAX));
                thread::spawn(move || pass_on(back_from, back_to, most));
            }
        });
        Self { address, accepted }
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Connections so far.
    pub(crate) fn accepted(&self) -> usize {
        self.accepted.load(Ordering::SeqCst)
    }
}

fn pass_on(from: TcpStream, mut to: TcpStream, most: u64) {
    let _ = io::copy(&mut from.take(most), &mut to);
    // Whoever has nothing to say any more may still be listening.
    let _ = to.shutdown(if most == u64::MAX { Shutdown::Write } else { Shutdown::Both });
}
