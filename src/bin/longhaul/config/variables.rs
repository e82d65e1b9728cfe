//! The variables of the environment, `LONGHAUL_PER_HOST` for `--per-host`.
//!
//! They are the command's own and have nothing to do with those that requests heeds: `--no-env` does
//! not switch them off, and a library never sees them. An empty variable counts as none, so that a
//! script can take one back. One that no flag has is told and passed over, since the environment
//! belongs to others too.

use super::document::Document;
use super::flags::{Catalogue, Flag, Kind};
use super::nearest::nearest;
use super::value::{Origin, Setting};
use crate::usage::UsageError;
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};

/// What all of them begin with.
pub(super) const PREFIX: &str = "LONGHAUL_";

/// Where the file is.
pub(super) const CONFIG: &str = "LONGHAUL_CONFIG";
/// That none is read.
pub(super) const NO_CONFIG: &str = "LONGHAUL_NO_CONFIG";
/// Which profile holds.
pub(super) const PROFILE: &str = "LONGHAUL_PROFILE";

/// Where the user's folder of configurations is; the name is not ours.
pub(super) const XDG_CONFIG_HOME: &str = "XDG_CONFIG_HOME";
/// Where it is in, when nobody says.
pub(super) const HOME: &str = "HOME";

/// Variables that mean something, and are no flag's.
const OTHERS: &[&str] = &[
    CONFIG,
    NO_CONFIG,
    PROFILE,
    // The password that `--user` leaves out.
    "LONGHAUL_PASSWORD",
    // Of the tests of longhaul itself, whose shells run the command too.
    "LONGHAUL_HTTPBIN",
    "LONGHAUL_ITEMS",
    "LONGHAUL_KILLS",
    "LONGHAUL_PICTURES",
    "LONGHAUL_REQUIRE_PROGRAMS",
    "LONGHAUL_SIM_SEED",
    "LONGHAUL_SIM_SEEDS",
    "LONGHAUL_VECTORS",
];

/// The environment, as far as it is ours.
#[derive(Clone, Default)]
pub(crate) struct Variables(BTreeMap<String, OsString>);

impl Variables {
    /// Those that are set to something.
    pub(crate) fn new(all: impl IntoIterator<Item = (OsString, OsString)>) -> Self {
        let ours = all.into_iter().filter_map(|(name, value)| {
            let name = name.into_string().ok()?;
            let is_ours = name.starts_with(PREFIX) || name == XDG_CONFIG_HOME || name == HOME;
            (is_ours && !value.is_empty()).then_some((name, value))
        });
        Self(ours.collect())
    }

    /// The value of one.
    pub(super) fn get(&self, name: &str) -> Option<&OsStr> {
        self.0.get(name).map(OsString::as_os_str)
    }

    /// Whether one of yes and no says yes.
    ///
    /// # Errors
    /// It says neither.
    pub(super) fn says_yes(&self, name: &str) -> Result<bool, UsageError> {
        match self.get(name) {
            None => Ok(false),
            Some(value) => yes_or_no(value).map_err(|text| UsageError::new(name, text)),
        }
    }

    /// What they say about flags, and warnings about those that say nothing.
    ///
    /// # Errors
    /// A value that its flag does not take.
    pub(super) fn document(
        &self,
        catalogue: &Catalogue,
    ) -> Result<(Document, Vec<String>), UsageError> {
        let known = names(catalogue);
        let (mut document, mut warnings) = (Document::default(), Vec::new());
        for (name, value) in self.0.iter().filter(|(name, _)| name.starts_with(PREFIX)) {
            let Some((command, flag)) = known.get(name) else {
                if !OTHERS.contains(&name.as_str()) {
                    let all = known.keys().map(String::as_str).chain(OTHERS.iter().copied());
                    // What all of them have in common makes none of them alike.
                    let remedy = match nearest(
                        name.trim_start_matches(PREFIX),
                        all.map(|name| name.trim_start_matches(PREFIX)),
                    ) {
                        Some(meant) => format!("did you mean {PREFIX}{meant}?"),
                        None => "docs/configuration.md tells how they are called".to_owned(),
                    };
                    warnings.push(format!("{name}: no flag has this variable; {remedy}"));
                }
                continue;
            };
            let setting = read(flag, value).map_err(|text| UsageError::new(name, text))?;
            flag.check(&setting).map_err(|error| error.at_place(name))?;
            let table = match command {
                Some(command) => document.sections.entry((*command).to_owned()).or_default(),
                None => &mut document.shared,
            };
            table.insert(&flag.key, setting, Origin::Variable(name.clone()));
        }
        Ok((document, warnings))
    }
}

/// Each variable with its flag, and the command that it is for where it is for one alone.
fn names(catalogue: &Catalogue) -> BTreeMap<String, (Option<&str>, &Flag)> {
    let mut names = BTreeMap::new();
    for section in &catalogue.sections {
        for flag in &section.flags {
            names.insert(flag.variable_of(&section.name), (Some(section.name.as_str()), flag));
            if flag.shared {
                names.insert(flag.variable(), (None, flag));
            }
        }
    }
    names
}

fn read(flag: &Flag, value: &OsStr) -> Result<Setting, String> {
    match flag.kind {
        Kind::Switch => Ok(switch(yes_or_no(value)?)),
        Kind::Count => match value.to_str().and_then(|text| text.trim().parse().ok()) {
            Some(0) => Ok(Setting::TakenBack),
            Some(times) => Ok(Setting::Times(times)),
            None => Ok(switch(yes_or_no(value)?)),
        },
        Kind::One | Kind::Optional | Kind::List => Ok(Setting::Values(vec![value.to_owned()])),
        // Fields hold commas, and no value holds a line break.
        Kind::Many => Ok(Setting::Values(match value.to_str() {
            Some(text) => {
                let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
                lines.map(OsString::from).collect()
            }
            None => vec![value.to_owned()],
        })),
    }
}

fn switch(is_on: bool) -> Setting {
    if is_on { Setting::Times(1) } else { Setting::TakenBack }
}

fn yes_or_no(value: &OsStr) -> Result<bool, String> {
    let text = value.to_string_lossy();
    match text.trim().to_ascii_lowercase().as_str() {
        "1" | "true" | "yes" | "on" => Ok(true),
        "0" | "false" | "no" | "off" => Ok(false),
        _ => Err(format!("'{text}' is neither true nor false; give 1 or 0")),
    }
}
