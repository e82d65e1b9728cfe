//! A blocking HTTP client that holds for a long run: the sessions, retries and exceptions of
//! Python's requests and urllib3, proxies that rotate, a pool of threads that never sleep, and a
//! batch that can be killed and resumed.
//!
//! ```no_run
//! # fn main() -> Result<(), longhaul::Error> {
//! let response = longhaul::get("https://example.com/").send()?;
//! println!("{} {}", response.status(), response.text()?);
//! # Ok(())
//! # }
//! ```
//!
//! # Where to start
//!
//! - One thread: [`Session`], with cookies, connections and defaults. It cannot be shared between
//!   threads; its recipe, the [`SessionBuilder`], can.
//! - Many URLs: [`WorkerPool`] makes one session per thread and yields results as they complete.
//!   A URL that waits occupies no worker.
//! - A list into a file, with resume: [`Batch`], which is what the command `longhaul run` drives.
//! - How often, after what, how long: [`Retry`] and [`Timeouts`]; how long that can take at most:
//!   [`policy::WorstCase`].
//! - Which way: [`ProxyMap`] by scheme and host as in requests, [`ProxyPool`] to rotate.
//! - What went wrong, when and by whose fault: [`Error`], with requests' names.
//!
//! # Features
//!
//! None is on by default. `brotli` and `zstd` decode these content codings (gzip and deflate always
//! are). `native-roots` lets a session trust the certificates of the system. `lab` has loopback servers that misbehave on purpose, to test a policy of your own. `cli`
//! is the command.
//!
//! # What the public interface is made of
//!
//! Types of the crates `http` and `url` stand in it, and of no other dependency but `bytes`.

pub mod batch;
#[cfg(doctest)]
mod doc_tests;
pub mod error;
#[cfg(feature = "lab")]
pub mod lab;
pub mod message;
pub mod policy;
pub mod proxy;
pub mod rng;
pub mod session;
pub mod time;
pub mod transport;
pub mod workers;

pub use batch::Batch;
pub use error::{Error, ErrorKind};
pub use message::{Request, Response};
pub use policy::{Retry, Timeouts};
pub use proxy::{ProxyMap, ProxyPool, ProxyUrl};
pub use session::{
    RequestBuilder, Session, SessionBuilder, delete, get, head, options, patch, post, put,
};
pub use time::secs;
pub use workers::WorkerPool;
