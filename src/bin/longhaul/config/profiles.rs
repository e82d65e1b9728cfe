//! Profiles: values for a kind of job, under a name.
//!
//! Two come with the program, since two kinds of jobs are what people do: a *wide* one sends as much
//! at once as it can, where every retry costs a worker and what failed is better gone over again in
//! the end; one of the *night* has time, and nobody who would start it again. They are text in the
//! form of the file, so that a file's own section of the same name changes them key by key.

use super::document::Document;
use super::file::File;
use super::flags::Catalogue;
use super::nearest::nearest;
use super::value::Origin;
use crate::usage::UsageError;
use std::collections::BTreeMap;

/// Those that come with the program.
pub(super) const BUILT_IN: &str = include_str!("profiles.toml");

/// One profile of one file.
#[derive(Debug, Clone, Default)]
pub(super) struct Profile {
    /// What it says.
    pub(super) document: Document,
    /// The profile that holds where it says nothing, and where that stands.
    pub(super) inherits: Option<(String, Origin)>,
}

/// The profiles of one file.
#[derive(Debug, Clone, Default)]
pub(super) struct Profiles(BTreeMap<String, Profile>);

impl Profiles {
    pub(super) fn insert(&mut self, name: &str, profile: Profile) {
        self.0.insert(name.to_owned(), profile);
    }

    /// Every profile that was said to be inherited is there, and none inherits itself.
    ///
    /// # Errors
    /// The first one that is not so.
    pub(super) fn check(&self, below: &Self) -> Result<(), UsageError> {
        self.0.keys().try_for_each(|name| self.chain(name, below, "").map(|_| ()))
    }

    /// What holds under a profile, the first of them before the others: its own section, that of the
    /// same name among those `below`, and so on with those that they inherit.
    ///
    /// # Errors
    /// No profile of this name, asked for at `place`; a circle.
    pub(super) fn chain<'a>(
        &'a self,
        name: &str,
        below: &'a Self,
        place: &str,
    ) -> Result<Vec<&'a Document>, UsageError> {
        let (mut documents, mut seen) = (Vec::new(), Vec::<String>::new());
        let mut next = Some((name.to_owned(), place.to_owned()));
        while let Some((name, place)) = next.take() {
            if seen.contains(&name) {
                let circle = seen.join(", ");
                let text =
                    format!("profile {name} inherits itself by way of {circle}; end it there");
                return Err(UsageError::new(place, text));
            }
            let found: Vec<&Profile> =
                [self.0.get(&name), below.0.get(&name)].into_iter().flatten().collect();
            if found.is_empty() {
                return Err(UsageError::new(place, self.unknown(&name, below)));
            }
            for profile in found {
                documents.push(&profile.document);
                if let (Some((parent, origin)), None) = (&profile.inherits, &next) {
                    next = Some((parent.clone(), origin.place("inherits")));
                }
            }
            seen.push(name);
        }
        Ok(documents)
    }

    fn unknown(&self, name: &str, below: &Self) -> String {
        let mut known: Vec<&str> =
            self.0.keys().chain(below.0.keys()).map(String::as_str).collect();
        known.sort_unstable();
        known.dedup();
        match nearest(name, known.iter().copied()) {
            Some(meant) => format!("there is no profile '{name}'; did you mean {meant}?"),
            None => format!("there is no profile '{name}'; give one of {}", known.join(", ")),
        }
    }

    /// Every profile's entries.
    pub(super) fn documents(&self) -> impl Iterator<Item = &Document> {
        self.0.values().map(|profile| &profile.document)
    }
}

/// The profiles that come with the program.
///
/// # Errors
/// None, as a test holds.
pub(super) fn built_in(catalogue: &Catalogue) -> Result<Profiles, UsageError> {
    File::parse(BUILT_IN, None, catalogue).map(|file| file.profiles)
}
