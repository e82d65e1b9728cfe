//! Which way a request goes.
//!
//! Three sources name a proxy, and each has its type. A [`ProxyMap`] is what a program says, by
//! scheme and host, as requests' `proxies`. [`EnvProxies`] is what the environment says, filtered by
//! [`NoProxy`]; [`resolve_proxy`] puts the two in order. A [`ProxyPool`] is many proxies of which one
//! is chosen for each attempt, by rotation and health. All of them hold a [`ProxyUrl`], which
//! nothing can print with its credentials, and the choice leaves as a [`Route`].
//!
//! One rule stands over the layer: *nothing goes direct by accident*. A setting that cannot be
//! parsed is an error, a map that says nothing of a URL answers "uncovered" and leaves it to the
//! session what that means, and a pool without a usable member answers "not before" or "never".
//!
//! Everything here is pure but for [`EnvProxies::from_env`]: time and randomness are handed in, and
//! no name is looked up.

mod env;
mod exits;
mod health;
mod map;
mod no_proxy;
mod pool;
mod route;
mod select;
mod sessions;
mod spelling;
mod url;

pub use env::EnvProxies;
pub use exits::ExitBook;
pub use health::Verdict;
pub use map::ProxyMap;
pub use no_proxy::NoProxy;
pub use pool::{Pick, PickRequest, ProxyPool, ProxyStats, Rotation};
pub(crate) use route::add_proxy_header;
pub use route::{Identity, Route};
pub use select::{Chosen, resolve_proxy};
pub use sessions::SessionPer;
pub use url::{ProxyScheme, ProxyUrl};
