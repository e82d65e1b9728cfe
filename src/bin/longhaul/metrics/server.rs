//! One page over HTTP, on a few threads.
//!
//! The server below knows no timeouts: a client that announces a body and sends none holds the thread
//! that answers it for as long as it stays connected. So there are several, and the end of the run
//! waits only shortly for them. A scrape is a convenience, and never what a run hangs on.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread::{self, JoinHandle};
use std::time::Duration;
use tiny_http::{Header, Method, Request, Response};

/// The media type of the text format.
const TEXT: &str = "text/plain; version=0.0.4; charset=utf-8";
/// So many clients can hang before nobody else is answered.
const THREADS: usize = 4;
/// How long the end waits for answers that are under way.
const END_WAIT: Duration = Duration::from_secs(1);

/// A server of one page.
pub(super) struct Server {
    address: SocketAddr,
    http: Arc<tiny_http::Server>,
    is_over: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
    /// Disconnected once every thread has ended.
    ended: Receiver<()>,
}

impl Server {
    /// Answers `GET /metrics` with what `page` says.
    pub(super) fn start(
        listener: TcpListener,
        page: impl Fn() -> Result<String, String> + Send + Sync + 'static,
    ) -> io::Result<Self> {
        let address = listener.local_addr()?;
        let http = tiny_http::Server::from_listener(listener, None).map_err(io::Error::other)?;
        let (alive, ended) = mpsc::channel();
        // Where a thread cannot be started, dropping this ends those before it.
        let mut server = Self {
            address,
            http: Arc::new(http),
            is_over: Arc::default(),
            threads: Vec::with_capacity(THREADS),
            ended,
        };
        let page = Arc::new(page);
        for _ in 0..THREADS {
            let (http, is_over) = (Arc::clone(&server.http), Arc::clone(&server.is_over));
            let (page, alive) = (Arc::clone(&page), alive.clone());
            server.threads.push(thread::Builder::new().name("longhaul-metrics".into()).spawn(
                move || {
                    let _alive = alive;
                    serve(&http, &is_over, &*page);
                },
            )?);
        }
        Ok(server)
    }

    /// Where it listens.
    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }
}

/// Answers one client after the other, until the end.
fn serve(
    http: &tiny_http::Server,
    is_over: &AtomicBool,
    page: &dyn Fn() -> Result<String, String>,
) {
    while !is_over.load(Ordering::Acquire) {
        match http.recv() {
            Ok(request) => answer(request, page),
            // What wakes it at the end looks like an error, too.
            Err(_) if is_over.load(Ordering::Acquire) => {}
            // Those that are connected are still answered.
            Err(error) => log::warn!(
                target: "longhaul::metrics",
                "no further client can connect for the numbers: {error}"
            ),
        }
    }
}

fn answer(request: Request, page: &dyn Fn() -> Result<String, String>) {
    let path = request.url().split('?').next().unwrap_or_default();
    let (status, text, header) = if path != "/metrics" {
        (404, "the numbers are at /metrics\n".to_owned(), None)
    } else if !matches!(request.method(), Method::Get | Method::Head) {
        (405, "the numbers can only be read\n".to_owned(), Some(("Allow", "GET, HEAD")))
    } else {
        match page() {
            Ok(text) => (200, text, Some(("Content-Type", TEXT))),
            Err(error) => (500, error + "\n", None),
        }
    };
    let mut response = Response::from_string(text).with_status_code(status);
    if let Some(header) =
        header.and_then(|(name, value)| Header::from_bytes(name.as_bytes(), value.as_bytes()).ok())
    {
        response.add_header(header);
    }
    // Who asked may have left.
    if let Err(error) = request.respond(response) {
        log::debug!(target: "longhaul::metrics", "an answer did not arrive: {error}");
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Release);
        self.threads.iter().for_each(|_| self.http.unblock());
        if self.ended.recv_timeout(END_WAIT) == Err(RecvTimeoutError::Timeout) {
            log::debug!(
                target: "longhaul::metrics",
                "a client still holds the answer that it asked for, and is left to itself"
            );
            return;
        }
        for thread in self.threads.drain(..) {
            if thread.join().is_err() {
                log::error!(target: "longhaul::metrics", "a thread that serves numbers panicked");
            }
        }
    }
}

impl std::fmt::Debug for Server {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Server").field("address", &self.address).finish_non_exhaustive()
    }
}
