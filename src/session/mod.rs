//! `requests.Session`, and the flight of one URL.
//!
//! [`Session`] is for one thread and sleeps through the waits of its retries; [`SessionBuilder`]
//! is the recipe from which every worker of a run makes its own. Both drive the same [`Flight`].

mod builder;
mod cookies;
mod download;
mod environment;
mod flight;
mod identity;
mod lessons;
mod limits;
mod live;
mod mounts;
mod numbers;
mod proxies;
mod refusals;
mod request_builder;
mod restraint;
mod router;

pub use builder::SessionBuilder;
pub use cookies::{Cookie, CookieCollector, CookieJar};
pub use download::{Download, Downloaded, Progress};
pub use flight::{Flight, Step};
pub(crate) use lessons::{Lesson, Lessons};
pub(crate) use limits::SharedLimiter;
pub use live::{Session, delete, get, head, options, patch, post, put};
pub use proxies::Proxies;
pub(crate) use refusals::Refusals;
pub use request_builder::RequestBuilder;
