//! Which way a request goes.

mod env;
mod health;
mod map;
mod no_proxy;
mod pool;
mod route;
mod select;
mod spelling;
mod url;

pub use env::EnvProxies;
pub use health::Verdict;
pub use map::ProxyMap;
pub use no_proxy::NoProxy;
pub use pool::{Pick, PickRequest, ProxyPool, ProxyStats, Rotation};
pub use route::{Identity, Route};
pub use select::{Chosen, resolve_proxy};
pub use url::{ProxyScheme, ProxyUrl};
