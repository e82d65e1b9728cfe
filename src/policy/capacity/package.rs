//! The ceiling of a proxy package.

use super::at_least_one;
use crate::error::Error;

/// A proxy package and its ceiling of parallel connections.
///
/// Packages do not add up: an account that has two may have as many connections open as the larger
/// allows. Addresses that are bound to it share the ceiling, so one of two has half of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Package {
    connections: u64,
    bindings: u64,
}

impl Package {
    /// Parallel connections of an ordinary package.
    pub const USUAL: u64 = 1000;

    /// Parallel connections of the largest.
    pub const LARGEST: u64 = 3000;

    /// A package of so many parallel connections, bound to one address.
    ///
    /// # Errors
    /// `Config` for none, and for more than the largest package has.
    pub fn new(connections: u64) -> Result<Self, Error> {
        at_least_one("parallel connections of a package", connections)?;
        if connections > Self::LARGEST {
            return Err(Error::config(format!(
                "a package of {connections} parallel connections does not exist: the largest has {}, and two do not add up",
                Self::LARGEST
            )));
        }
        Ok(Self { connections, bindings: 1 })
    }

    /// How many addresses are bound to it.
    ///
    /// # Errors
    /// `Config` for none, and for more than there are connections.
    pub fn bindings(self, addresses: u64) -> Result<Self, Error> {
        at_least_one("bound addresses", addresses)?;
        if addresses > self.connections {
            return Err(Error::config(format!(
                "{addresses} bound addresses share {} connections, which leaves none for each: bind fewer",
                self.connections
            )));
        }
        Ok(Self { bindings: addresses, ..self })
    }

    /// How many connections one of the bound addresses may have open.
    pub fn parallel(&self) -> u64 {
        self.connections / self.bindings
    }
}

impl Default for Package {
    /// The usual one, bound to one address.
    fn default() -> Self {
        Self { connections: Self::USUAL, bindings: 1 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bound_addresses_share_the_ceiling() {
        assert_eq!(Package::default().parallel(), 1000);
        for (bindings, parallel) in [(1, 1000), (2, 500), (3, 333)] {
            let package = Package::new(1000).unwrap().bindings(bindings).unwrap();
            assert_eq!(package.parallel(), parallel);
        }
        assert_eq!(Package::new(3000).unwrap().parallel(), 3000);
        for wrong in [0, 3001] {
            Package::new(wrong).unwrap_err();
        }
        for wrong in [0, 11] {
            Package::new(10).unwrap().bindings(wrong).unwrap_err();
        }
    }
}
