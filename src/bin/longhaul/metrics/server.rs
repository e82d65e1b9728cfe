//! One page over HTTP, on a thread.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use tiny_http::{Header, Method, Request, Response};

/// The media type of the text format.
const TEXT: &str = "text/plain; version=0.0.4; charset=utf-8";

/// A server of one page.
pub(super) struct Server {
    address: SocketAddr,
    http: Arc<tiny_http::Server>,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    /// Answers `GET /metrics` with what `page` says.
    pub(super) fn start(
        listener: TcpListener,
        page: impl Fn() -> Result<String, String> + Send + 'static,
    ) -> io::Result<Self> {
        let address = listener.local_addr()?;
        let http = tiny_http::Server::from_listener(listener, None).map_err(io::Error::other)?;
        let http = Arc::new(http);
        let serving = Arc::clone(&http);
        let thread = thread::Builder::new().name("longhaul-metrics".into()).spawn(move || {
            for request in serving.incoming_requests() {
                answer(request, &page);
            }
        })?;
        Ok(Self { address, http, thread: Some(thread) })
    }

    /// Where it listens.
    pub(super) fn address(&self) -> SocketAddr {
        self.address
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
        self.http.unblock();
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            log::error!(target: "longhaul::metrics", "the thread that serves numbers panicked");
        }
    }
}

impl std::fmt::Debug for Server {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Server").field("address", &self.address).finish_non_exhaustive()
    }
}
