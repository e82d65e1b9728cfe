//! When you want requests answered by something else than a socket: a cache, a recording, another
//! engine. Retries, redirects, cookies and deadlines stay longhaul's; a transport makes one attempt.

use longhaul::error::{ErrorKind, Fault, Phase};
use longhaul::proxy::Route;
use longhaul::transport::{AttemptLimits, Incoming, Outgoing, Transport};
use longhaul::{Error, Retry, Session, secs};
use std::collections::HashMap;
use std::io::Cursor;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// Answers out of memory, and fails on every first attempt to show who retries.
#[derive(Debug)]
struct Memory {
    pages: HashMap<&'static str, (u16, &'static str)>,
    attempts: Arc<AtomicU32>,
}

impl Transport for Memory {
    fn attempt(
        &mut self,
        outgoing: Outgoing<'_>,
        _route: &Route,
        _limits: &AttemptLimits,
    ) -> Result<Incoming, Error> {
        if self.attempts.fetch_add(1, Ordering::Relaxed) == 0 {
            let text = "the memory was busy";
            return Err(Error::new(ErrorKind::Connection, Phase::Connect, Fault::Target, text));
        }
        let (status, text) = self.pages.get(outgoing.url.path()).copied().unwrap_or((404, "gone"));
        let mut headers = http::HeaderMap::new();
        if status == 302 {
            headers.insert("location", http::HeaderValue::from_static(text));
        }
        Ok(Incoming::new(status, "", headers, Box::new(Cursor::new(text))))
    }
}

fn main() -> Result<(), Error> {
    let attempts = Arc::new(AtomicU32::new(0));
    let counted = Arc::clone(&attempts);
    let session = Session::builder()
        .retry(Retry::long_run().backoff_factor(secs(0.01)))
        // The recipe makes one for each session, so one for each worker.
        .transport(move || Memory {
            pages: HashMap::from([("/old", (302, "/new")), ("/new", (200, "the page"))]),
            attempts: Arc::clone(&counted),
        })
        .build()?;

    let response = session.get("http://memory.test/old").send()?;
    println!(
        "{} at {} after {} attempts: {}",
        response.status(),
        response.url(),
        response.attempts().len(),
        response.text()?,
    );
    assert_eq!(response.text()?, "the page");
    assert_eq!((response.history().len(), attempts.load(Ordering::Relaxed)), (1, 3));
    Ok(())
}
