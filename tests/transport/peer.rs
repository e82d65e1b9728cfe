//! The other side of a connection.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

/// A server that hands each connection to a function, on a thread of its own.
pub(crate) struct Server {
    pub(crate) addr: SocketAddr,
    state: Arc<State>,
}

#[derive(Default)]
struct State {
    seen: Mutex<Seen>,
    released: Condvar,
}

#[derive(Default)]
struct Seen {
    connections: usize,
    heads: Vec<String>,
    /// The test is over, and nobody need hold a connection any longer.
    over: bool,
}

impl Server {
    pub(crate) fn new(serve: impl Fn(&mut Peer, usize) + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let addr = listener.local_addr().unwrap();
        let state = Arc::new(State::default());
        let shared = (Arc::new(serve), Arc::clone(&state));
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let (serve, state) = shared.clone();
                let mut seen = state.seen.lock().unwrap();
                if seen.over {
                    return;
                }
                let number = seen.connections;
                seen.connections += 1;
                drop(seen);
                std::thread::spawn(move || {
                    let stream = BufReader::new(stream.unwrap());
                    serve(&mut Peer { stream, state }, number);
                });
            }
        });
        Self { addr, state }
    }

    /// The same bytes for every request.
    pub(crate) fn answering(bytes: impl Into<Vec<u8>>) -> Self {
        let bytes = bytes.into();
        Self::new(move |peer, _| {
            while peer.head().is_some() {
                peer.send(&bytes);
            }
        })
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.addr)
    }

    pub(crate) fn connections(&self) -> usize {
        self.state.seen.lock().unwrap().connections
    }

    /// Request heads in the order of their arrival.
    pub(crate) fn heads(&self) -> Vec<String> {
        self.state.seen.lock().unwrap().heads.clone()
    }

    pub(crate) fn last_head(&self) -> String {
        self.heads().pop().unwrap()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.state.seen.lock().unwrap().over = true;
        self.state.released.notify_all();
        let _ = TcpStream::connect(self.addr);
    }
}

/// What a server does with a connection.
pub(crate) type Serve = fn(&mut Peer);

/// One connection.
pub(crate) struct Peer {
    pub(crate) stream: BufReader<TcpStream>,
    state: Arc<State>,
}

impl Peer {
    /// The next request head; `None` once the client has gone.
    pub(crate) fn head(&mut self) -> Option<String> {
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            match self.stream.read_line(&mut head) {
                Ok(amount) if amount > 0 => {}
                _ => return None,
            }
        }
        self.state.seen.lock().unwrap().heads.push(head.clone());
        Some(head)
    }

    pub(crate) fn take(&mut self, amount: usize) -> Vec<u8> {
        let mut bytes = vec![0; amount];
        self.stream.read_exact(&mut bytes).unwrap();
        bytes
    }

    pub(crate) fn send(&mut self, bytes: &[u8]) {
        // The client may have left on purpose.
        let _ = self.stream.get_mut().write_all(bytes);
    }

    /// One byte at a time, until it is done or the client has gone.
    pub(crate) fn drip(&mut self, bytes: &[u8], every: Duration) {
        for byte in bytes {
            if self.stream.get_mut().write_all(&[*byte]).is_err() {
                return;
            }
            self.pause(every);
        }
    }

    /// Keeps the connection open and silent until the test is over.
    pub(crate) fn hold(&mut self) {
        let mut seen = self.state.seen.lock().unwrap();
        while !seen.over {
            seen = self.state.released.wait(seen).unwrap();
        }
    }

    fn pause(&mut self, time: Duration) {
        let seen = self.state.seen.lock().unwrap();
        let _ = self.state.released.wait_timeout_while(seen, time, |seen| !seen.over).unwrap();
    }

    /// Closes with a reset.
    pub(crate) fn reset(&mut self) {
        let socket = socket2::SockRef::from(self.stream.get_ref());
        socket.set_linger(Some(Duration::ZERO)).unwrap();
    }

    /// Ends the sending side and waits for the client to go.
    pub(crate) fn finish(&mut self) {
        let _ = self.stream.get_ref().shutdown(Shutdown::Write);
        let _ = std::io::copy(&mut self.stream, &mut std::io::sink());
    }

    /// Carries bytes both ways between the client and another server.
    pub(crate) fn tunnel(&mut self, to: SocketAddr) {
        let target = TcpStream::connect(to).unwrap();
        let (mut up, mut down) = (target.try_clone().unwrap(), target);
        let mut client = self.stream.get_ref().try_clone().unwrap();
        let back = std::thread::spawn(move || {
            let _ = std::io::copy(&mut down, &mut client);
            let _ = client.shutdown(Shutdown::Write);
        });
        let _ = std::io::copy(&mut self.stream, &mut up);
        let _ = up.shutdown(Shutdown::Write);
        back.join().unwrap();
    }
}

pub(crate) const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
