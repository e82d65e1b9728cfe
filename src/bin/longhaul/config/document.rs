//! What one source of values says, sorted by whom it is for.

use super::value::{Entry, Origin, Setting};
use std::collections::BTreeMap;

/// Keys with their entries.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Table(BTreeMap<String, Entry>);

impl Table {
    pub(super) fn insert(&mut self, key: &str, setting: Setting, origin: Origin) {
        self.0.insert(key.to_owned(), Entry { setting, origin });
    }

    pub(super) fn get(&self, key: &str) -> Option<&Entry> {
        self.0.get(key)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&str, &Entry)> {
        self.0.iter().map(|(key, entry)| (key.as_str(), entry))
    }
}

/// A file, a profile, or the environment.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Document {
    /// For every command that means the same.
    pub(super) shared: Table,
    /// For one command alone.
    pub(super) sections: BTreeMap<String, Table>,
}

impl Document {
    /// Every entry, with the command that it is for where it is for one alone.
    pub(super) fn entries(&self) -> impl Iterator<Item = (Option<&str>, &str, &Entry)> {
        let sections = self.sections.iter().flat_map(|(command, table)| {
            table.iter().map(move |(key, entry)| (Some(command.as_str()), key, entry))
        });
        self.shared.iter().map(|(key, entry)| (None, key, entry)).chain(sections)
    }
}
