//! A blocking HTTP client that holds for a long run.
#![cfg_attr(docsrs, feature(doc_cfg))]

pub mod batch;
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
