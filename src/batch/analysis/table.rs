//! Counters by a name that comes from outside.
//!
//! The names are hosts, proxies, exits and header values: whoever is asked chooses them, and a run of
//! a million URLs may meet a million of them. So a table takes a stated number of names, those that
//! come first, and puts whatever comes after them together. What was put together is told as such and
//! never mixed with a name.

use std::collections::HashMap;

/// Counters of a kind `V`, by name.
#[derive(Debug, Clone)]
pub(super) struct Table<V> {
    rows: HashMap<Box<str>, V>,
    most: usize,
    others: Option<V>,
}

impl<V: Default> Table<V> {
    /// Tells so many names apart.
    pub(super) fn of(most: usize) -> Self {
        Self { rows: HashMap::new(), most, others: None }
    }

    /// The counters of this name; those of the others, where there are names enough.
    pub(super) fn at(&mut self, name: &str) -> &mut V {
        if !self.rows.contains_key(name) {
            if self.rows.len() >= self.most {
                return self.others.get_or_insert_default();
            }
            self.rows.insert(name.into(), V::default());
        }
        match self.rows.get_mut(name) {
            Some(counters) => counters,
            // It was put there above.
            None => self.others.get_or_insert_default(),
        }
    }

    /// Each name with its counters, in no order.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&str, &V)> {
        self.rows.iter().map(|(name, counters)| (&**name, counters))
    }

    /// What the names that came too late add up to; `None` where none did.
    pub(super) fn others(&self) -> Option<&V> {
        self.others.as_ref()
    }
}

impl Table<u64> {
    /// Adds the counts of another table.
    pub(super) fn join(&mut self, other: &Self) {
        for (name, count) in other.iter() {
            *self.at(name) += count;
        }
        if let Some(count) = other.others {
            *self.others.get_or_insert_default() += count;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_come_too_late_are_put_together() {
        let mut table = Table::<u64>::of(2);
        for name in ["a", "b", "c", "a", "d", "b", "c"] {
            *table.at(name) += 1;
        }
        let mut rows: Vec<_> = table.iter().map(|(name, count)| (name, *count)).collect();
        rows.sort_unstable();
        assert_eq!((rows, table.others()), (vec![("a", 2), ("b", 2)], Some(&3)));
    }
}
