//! The switch that ends every connection at once.
//!
//! A run that is told to stop *now* (the second Ctrl-C, an aborted worker pool) must not wait for
//! read timeouts. Every socket registers itself here when it is made and leaves when it is closed,
//! so the list is as long as there are live sockets, however many requests they carry. Shutting a
//! socket down wakes whoever is blocked on it.

use std::collections::HashMap;
use std::fmt;
use std::net::{Shutdown, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// Cuts the connections of every engine that was made with it.
///
/// Cut once, it stays cut: running attempts and all later ones fail with
/// [`ErrorKind::Cancelled`](crate::ErrorKind::Cancelled).
#[derive(Default)]
pub struct Cutter {
    cut: AtomicBool,
    live: Mutex<Live>,
}

#[derive(Default)]
struct Live {
    next: u64,
    sockets: HashMap<u64, Weak<TcpStream>>,
}

impl Cutter {
    /// A switch that nobody has thrown.
    pub fn new() -> Self {
        Self::default()
    }

    /// Shuts every socket down, idle or in use, and lets no attempt begin any more.
    ///
    /// A lookup or a connect that is under way ends within a tenth of a second, or with its
    /// budget, whichever comes first; a lookup by a [`Resolve`](super::Resolve) that cannot be
    /// given up early ends with its budget.
    pub fn cut(&self) {
        // Order matters: who registers after the flag is set sees it, who registered before is in
        // the list.
        self.cut.store(true, Ordering::SeqCst);
        let sockets = std::mem::take(&mut self.lock().sockets);
        for socket in sockets.into_values().filter_map(|weak| weak.upgrade()) {
            // An error means that the socket is shut down already.
            let _ = socket.shutdown(Shutdown::Both);
        }
    }

    /// Whether the switch was thrown.
    pub fn is_cut(&self) -> bool {
        self.cut.load(Ordering::Relaxed)
    }

    /// How many sockets are alive, idle ones included.
    pub fn live_sockets(&self) -> usize {
        self.lock().sockets.len()
    }

    /// Puts a socket on the list, until the registration is dropped.
    pub(super) fn register(self: &Arc<Self>, socket: &Arc<TcpStream>) -> Registration {
        let mut live = self.lock();
        let id = live.next;
        live.next += 1;
        live.sockets.insert(id, Arc::downgrade(socket));
        drop(live);
        if self.cut.load(Ordering::SeqCst) {
            let _ = socket.shutdown(Shutdown::Both);
        }
        Registration { id, cutter: Arc::clone(self) }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Live> {
        self.live.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Cutter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cutter").field("cut", &self.is_cut()).finish_non_exhaustive()
    }
}

/// A place on the list of live sockets.
pub(super) struct Registration {
    id: u64,
    cutter: Arc<Cutter>,
}

impl Registration {
    /// Whether the switch was thrown.
    pub(super) fn is_cut(&self) -> bool {
        self.cutter.is_cut()
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        self.cutter.lock().sockets.remove(&self.id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;
    use std::net::TcpListener;

    #[test]
    fn a_registration_ends_with_its_owner_and_a_cut_wakes_the_reader() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let connect = || Arc::new(TcpStream::connect(listener.local_addr().unwrap()).unwrap());
        let cutter = Arc::new(Cutter::new());
        for _ in 0..10 {
            let socket = connect();
            let _registration = cutter.register(&socket);
            assert_eq!(cutter.live_sockets(), 1);
        }
        assert_eq!(cutter.live_sockets(), 0);

        let socket = connect();
        let registration = cutter.register(&socket);
        let reader = Arc::clone(&socket);
        let blocked = std::thread::spawn(move || (&*reader).read(&mut [0; 1]).unwrap_or(0));
        cutter.cut();
        assert_eq!(blocked.join().unwrap(), 0);
        assert!(registration.is_cut());

        let late = connect();
        let _late = cutter.register(&late);
        assert_eq!((&*late).read(&mut [0; 1]).unwrap_or(0), 0);
    }
}
