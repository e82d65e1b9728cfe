//! Which records of an earlier run an input has met again.
//!
//! An item that stands in the results twice was done twice, so it stands for two of the input: one
//! record accounts for one item.

use super::Key;
use super::journal::Done;
use super::keyset::Met;
use std::collections::HashMap;

/// What was done before, as far as the input has met it.
#[derive(Debug)]
pub(super) struct DoneBefore {
    done: Done,
    met: Met,
    /// Records of items that stand in the results more than once, as far as not met.
    more: HashMap<Key, u32>,
}

/// What the results say of an item.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Before {
    /// There is no record of it.
    Never,
    /// A record accounts for it.
    Done,
    /// There is a record, which an earlier item of the input has met.
    Met,
}

impl DoneBefore {
    pub(super) fn new(done: Done) -> Self {
        Self { met: Met::none_of(done.keys()), more: done.more().clone(), done }
    }

    /// How many items have a record.
    pub(super) fn len(&self) -> usize {
        self.done.len()
    }

    /// What the results say of the next item with this key.
    pub(super) fn meet(&mut self, key: Key) -> Before {
        match self.done.keys().find(key) {
            None => Before::Never,
            Some(place) if self.met.is_first(place) => Before::Done,
            Some(_) => Before::Met,
        }
    }

    /// Whether a further record accounts for an item whose first one was met.
    pub(super) fn meet_further(&mut self, key: Key) -> bool {
        match self.more.get_mut(&key) {
            Some(more) if *more > 0 => {
                *more -= 1;
                true
            }
            _ => false,
        }
    }
}
