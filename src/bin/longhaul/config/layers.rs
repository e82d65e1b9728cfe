//! Which source has the last word.
//!
//! Flag before variable before profile before file before default, and within each of them what was
//! said for one command before what was said for all. The highest that says anything about a flag
//! says all of it: a list of headers on the command line stands in place of the file's. It also
//! settles what answers the same question: who types `--bearer` has not contradicted the `user` of
//! the file, but overruled it. Two that contradict each other within one source are a mistake, for
//! the command to tell.

use super::document::Table;
use super::flags::Section;
use super::value::{Entry, Setting};
use crate::usage::UsageError;
use std::collections::{BTreeMap, BTreeSet};

/// One source, or a part of it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Layer<'a> {
    /// What it says.
    pub(super) table: &'a Table,
    /// Whether it speaks to every command, and so only of what all of them mean alike.
    pub(super) is_shared: bool,
}

/// What holds for a command, by key. `lower` begins with the highest below what was typed, and has no
/// say in what is `settled` by other means.
///
/// # Errors
/// A layer that says a switch and its opposite.
pub(super) fn choose(
    section: &Section,
    typed: Layer<'_>,
    lower: &[Layer<'_>],
    mut settled: BTreeSet<String>,
) -> Result<BTreeMap<String, Entry>, UsageError> {
    let mut chosen = BTreeMap::new();
    settled.append(&mut choose_from(section, typed, &BTreeSet::new(), &mut chosen)?);
    for layer in lower {
        let mut now = choose_from(section, *layer, &settled, &mut chosen)?;
        settled.append(&mut now);
    }
    Ok(chosen)
}

/// Adds what one layer says, and gives back what it settles.
fn choose_from(
    section: &Section,
    layer: Layer<'_>,
    settled: &BTreeSet<String>,
    chosen: &mut BTreeMap<String, Entry>,
) -> Result<BTreeSet<String>, UsageError> {
    let mut now = BTreeSet::new();
    for flag in section.flags.iter().filter(|flag| flag.shared || !layer.is_shared) {
        let Some(entry) = layer.table.get(&flag.key) else { continue };
        let is_on = entry.setting != Setting::TakenBack;
        let other = layer.table.get(&flag.opposite).filter(|_| flag.has_visible_opposite);
        if is_on && other.is_some_and(|other| other.setting == entry.setting) {
            let text = format!("contradicts {}; leave one of them out", flag.opposite);
            return Err(UsageError::new(entry.origin.place(&flag.key), text));
        }
        if settled.contains(&flag.key) {
            continue;
        }
        now.insert(flag.key.clone());
        if flag.has_visible_opposite {
            now.insert(flag.opposite.clone());
        }
        // What is not there answers no question.
        if is_on {
            now.extend(flag.rivals.iter().cloned());
        }
        chosen.insert(flag.key.clone(), entry.clone());
    }
    Ok(now)
}
