//! Where a pool begins to look, and when that place moves.
//!
//! Rotation is one number, the member that the walk over the pool starts with. Round robin moves it
//! with every pick; the sticky kinds move it only when the member they stick to is at fault for this
//! URL or is not fit for any. A member at its limit of parallel attempts is passed over for once.

use std::collections::HashMap;

/// When another proxy is taken.
#[non_exhaustive]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Rotation {
    /// For every request, round robin.
    #[default]
    Request,
    /// Only on a retry; sticky until a fault.
    Retry,
    /// One proxy per host, until a fault.
    Host,
    /// At random.
    Random,
}

/// More hosts than this are forgotten, and assigned anew.
const MOST_HOMES: usize = 65_536;

#[derive(Debug, Clone, Default)]
pub(super) struct Wheel {
    rotation: Rotation,
    /// The member whose turn it is; for [`Rotation::Host`], for the next new host.
    next: usize,
    homes: HashMap<u64, usize>,
}

impl Wheel {
    pub(super) fn new(rotation: Rotation) -> Self {
        Self { rotation, ..Self::default() }
    }

    pub(super) fn rotation(&self) -> Rotation {
        self.rotation
    }

    /// The member to begin with.
    pub(super) fn start(&self, host: u64, members: usize) -> usize {
        let start = match self.rotation {
            Rotation::Host => self.homes.get(&host).copied().unwrap_or(self.next),
            Rotation::Request | Rotation::Retry | Rotation::Random => self.next,
        };
        if start < members { start } else { 0 }
    }

    /// `chosen` was taken; `start_is_fit` says whether the start was usable but for its limit.
    pub(super) fn turn(&mut self, host: u64, chosen: usize, start_is_fit: bool, members: usize) {
        let following = if chosen + 1 < members { chosen + 1 } else { 0 };
        match self.rotation {
            Rotation::Request => self.next = following,
            Rotation::Retry if start_is_fit => {}
            Rotation::Retry => self.next = chosen,
            Rotation::Host => match self.homes.get_mut(&host) {
                Some(_) if start_is_fit => {}
                Some(home) => *home = chosen,
                None => {
                    if self.homes.len() >= MOST_HOMES {
                        self.homes.clear();
                    }
                    self.homes.insert(host, chosen);
                    self.next = following;
                }
            },
            Rotation::Random => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn homes_are_bounded() {
        let mut wheel = Wheel::new(Rotation::Host);
        for host in 0..100_000 {
            let start = wheel.start(host, 7);
            assert_eq!(start, usize::try_from(host % 7).unwrap());
            wheel.turn(host, start, true, 7);
            assert!(wheel.homes.len() <= MOST_HOMES);
        }
    }

    #[test]
    fn an_empty_pool_has_a_start() {
        assert_eq!(Wheel::default().start(1, 0), 0);
    }
}
