//! A value before its flag has read it, with where it stands.

use super::flags::{Flag, Kind};
use std::ffi::{OsStr, OsString};
use std::fmt;

/// What a source says about one flag.
#[derive(Clone, PartialEq, Eq)]
pub(super) enum Setting {
    /// That it is not given: a switch that is false, a `--no-…` of the command line.
    TakenBack,
    /// That it is given without a value, so often.
    Times(u8),
    /// That it is given with these, in this order.
    Values(Vec<OsString>),
}

impl Setting {
    /// The arguments that say the same on a command line.
    pub(super) fn arguments(&self, flag: &Flag) -> Vec<OsString> {
        let name = format!("--{}", flag.key);
        match self {
            // The opposite is a flag of its own where the default is "on".
            Self::TakenBack if flag.has_visible_opposite && flag.kind == Kind::Switch => {
                vec![format!("--{}", flag.opposite).into()]
            }
            Self::TakenBack => Vec::new(),
            Self::Times(times) => vec![name.into(); usize::from(*times)],
            Self::Values(values) => values.iter().map(|value| with_value(&name, value)).collect(),
        }
    }
}

fn with_value(name: &str, value: &OsStr) -> OsString {
    // With the sign, a value may begin with a dash.
    let mut argument = OsString::from(name);
    argument.push("=");
    argument.push(value);
    argument
}

/// Values may be secret, and are shown by `--print-config` alone, which knows which.
impl fmt::Debug for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TakenBack => f.write_str("TakenBack"),
            Self::Times(times) => write!(f, "Times({times})"),
            Self::Values(values) => write!(f, "Values({} of them)", values.len()),
        }
    }
}

/// Where a value stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Origin {
    /// On the command line.
    Typed,
    /// In a variable of the environment.
    Variable(String),
    /// In a file.
    File {
        /// Its path, as it was found.
        path: String,
        /// From 1.
        line: usize,
        /// From 1, in characters.
        column: usize,
        /// The profile that it belongs to.
        profile: Option<String>,
    },
    /// In a profile that comes with the program.
    BuiltIn {
        /// Its name.
        profile: String,
    },
}

impl Origin {
    /// How an error calls the place.
    pub(super) fn place(&self, key: &str) -> String {
        match self {
            Self::Typed => format!("--{key}"),
            Self::Variable(name) => name.clone(),
            Self::File { path, line, column, .. } => format!("{path}:{line}:{column}: {key}"),
            Self::BuiltIn { profile } => format!("profile {profile} (built in): {key}"),
        }
    }
}

/// How `--print-config` calls it.
impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Typed => f.write_str("flag"),
            Self::Variable(name) => f.write_str(name),
            Self::File { path, line, profile: None, .. } => write!(f, "{path}:{line}"),
            Self::File { path, line, profile: Some(profile), .. } => {
                write!(f, "profile {profile}, {path}:{line}")
            }
            Self::BuiltIn { profile } => write!(f, "profile {profile} (built in)"),
        }
    }
}

/// A setting and its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Entry {
    /// What is said.
    pub(super) setting: Setting,
    /// Where.
    pub(super) origin: Origin,
}
