//! The items that the results hold already.

use crate::batch::Key;
use crate::batch::keyset::KeySet;
use std::collections::HashMap;
use std::sync::Arc;

/// The items that the results hold already, each with how often.
///
/// A clone shares them. They take 12 to 18 bytes an item.
#[derive(Debug, Clone, Default)]
pub struct Done(Arc<Counts>);

#[derive(Debug, Default)]
struct Counts {
    keys: KeySet,
    /// How often beyond the first time; only where repeated lines were asked for.
    more: HashMap<Key, u32>,
}

impl Done {
    /// Whether there is a record of this item.
    pub fn contains(&self, key: Key) -> bool {
        self.0.keys.find(key).is_some()
    }

    /// How many records there are of this item.
    pub fn count(&self, key: Key) -> u32 {
        match self.0.more.get(&key) {
            Some(more) => more.saturating_add(1),
            None => self.contains(key).into(),
        }
    }

    /// How many different items there are.
    pub fn len(&self) -> usize {
        self.0.keys.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub(in crate::batch) fn keys(&self) -> &KeySet {
        &self.0.keys
    }

    /// How often each item that stands there repeatedly does so beyond the first time.
    pub(in crate::batch) fn more(&self) -> &HashMap<Key, u32> {
        &self.0.more
    }
}

impl FromIterator<Key> for Done {
    /// One record for each key.
    fn from_iter<I: IntoIterator<Item = Key>>(records: I) -> Self {
        let mut counting = Counting::default();
        records.into_iter().for_each(|key| counting.add(key));
        counting.done()
    }
}

/// [`Done`] while it is counted.
#[derive(Debug, Default)]
pub(super) struct Counting {
    keys: KeySet,
    more: HashMap<Key, u32>,
}

impl Counting {
    pub(super) fn add(&mut self, key: Key) {
        if !self.keys.insert(key) {
            let more = self.more.entry(key).or_default();
            *more = more.saturating_add(1);
        }
    }

    pub(super) fn done(self) -> Done {
        Done(Arc::new(Counts { keys: self.keys, more: self.more }))
    }
}
