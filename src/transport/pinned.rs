//! Names whose addresses somebody has said; all others are looked up as ever.
//!
//! To ask one machine behind a name that has many, or a server whose name does not lead there yet,
//! is to say where the name is. Changing the URL instead would change `Host` and the name that the
//! certificate is checked for.

use super::resolve::{Resolve, ResolveError};
use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

/// A [`Resolve`] with an answer of its own for some names, as `curl --resolve`.
///
/// It says where a name is that is looked up *here*: a target's on the direct way and through
/// `socks4` and `socks5` proxies, and that of a proxy. What the proxy looks up (HTTP proxies,
/// `socks4a`, `socks5h`) it does not touch.
///
/// ```
/// use longhaul::transport::{Pinned, SystemResolver};
/// use std::sync::Arc;
///
/// # fn main() -> Result<(), longhaul::Error> {
/// let names = Pinned::new(SystemResolver::shared()).name("shop.example", ["127.0.0.1".parse().unwrap()]);
/// let session = longhaul::Session::builder().resolver(Arc::new(names)).build()?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct Pinned {
    names: HashMap<String, Vec<IpAddr>>,
    rest: Arc<dyn Resolve>,
}

impl Pinned {
    /// No names yet; `rest` looks up all that are not said.
    pub fn new(rest: Arc<dyn Resolve>) -> Self {
        Self { names: HashMap::new(), rest }
    }

    /// Says where a name is: these addresses, tried in this order. A name that was said before is
    /// there as well.
    ///
    /// Names are compared as DNS does, without regard to case or a dot at the end.
    pub fn name(mut self, host: &str, addresses: impl IntoIterator<Item = IpAddr>) -> Self {
        self.names.entry(key(host)).or_default().extend(addresses);
        self
    }

    fn said(&self, host: &str) -> Option<Vec<IpAddr>> {
        self.names.get(&key(host)).filter(|addresses| !addresses.is_empty()).cloned()
    }
}

impl Resolve for Pinned {
    fn resolve(&self, host: &str, budget: Option<Duration>) -> Result<Vec<IpAddr>, ResolveError> {
        self.said(host).map_or_else(|| self.rest.resolve(host, budget), Ok)
    }

    fn resolve_while(
        &self,
        host: &str,
        budget: Option<Duration>,
        go_on: &dyn Fn() -> bool,
    ) -> Result<Vec<IpAddr>, ResolveError> {
        self.said(host).map_or_else(|| self.rest.resolve_while(host, budget, go_on), Ok)
    }
}

fn key(host: &str) -> String {
    host.strip_suffix('.').unwrap_or(host).to_ascii_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug)]
    struct Nobody;

    impl Resolve for Nobody {
        fn resolve(&self, host: &str, _: Option<Duration>) -> Result<Vec<IpAddr>, ResolveError> {
            Err(ResolveError::NotFound(host.to_owned()))
        }
    }

    #[test]
    fn what_is_said_is_not_looked_up() {
        let [one, two]: [IpAddr; 2] = ["10.0.0.1", "::1"].map(|text| text.parse().unwrap());
        let names = Pinned::new(Arc::new(Nobody)).name("A.test", [one]).name("a.test.", [two]);
        let names = names.name("none.test", []);
        for host in ["a.test", "A.TEST", "a.test."] {
            assert_eq!(names.resolve(host, None).unwrap(), [one, two], "{host}");
            assert_eq!(names.resolve_while(host, None, &|| true).unwrap(), [one, two], "{host}");
        }
        for host in ["b.test", "none.test", ""] {
            assert!(names.resolve(host, None).is_err(), "{host}");
            assert!(names.resolve_while(host, None, &|| true).is_err(), "{host}");
        }
    }
}
