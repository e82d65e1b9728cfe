//! What is said when the user asked for something that cannot be done.
//!
//! A mistake is answered with one line that names the *place* (a flag, a file with its line), says
//! *what* is wrong there with the value as it was given, and the *remedy*. A wall of usage
//! text hides all three, so clap's own errors are turned into the same line.

use clap::error::{ContextKind, ContextValue, ErrorKind};
use std::error::Error as _;
use std::fmt;

/// A mistake in arguments, files or environment; ends the program with exit code 2.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct UsageError {
    place: String,
    text: String,
}

impl UsageError {
    /// `text` says what is wrong and what to do about it.
    pub(crate) fn new(place: impl Into<String>, text: impl Into<String>) -> Self {
        Self { place: place.into(), text: text.into() }
    }

    /// The same mistake at another place.
    pub(crate) fn at_place(self, place: impl Into<String>) -> Self {
        Self { place: place.into(), ..self }
    }

    /// The same mistake with one more remedy.
    pub(crate) fn or(self, remedy: &str) -> Self {
        Self { text: self.text + remedy, ..self }
    }

    /// Where it is.
    pub(crate) fn place(&self) -> &str {
        &self.place
    }

    /// A mistake that the library found in what was given at `place`.
    pub(crate) fn at(place: &str, error: &longhaul::Error) -> Self {
        Self::new(place, error.message())
    }

    /// A mistake that the library found, at the place that its sentence names.
    pub(crate) fn from_library(error: &longhaul::Error) -> Self {
        Self::new("", error.message())
    }

    /// The mistake that clap found, or `None` for help and version, which are none.
    pub(crate) fn from_clap(error: &clap::Error) -> Option<Self> {
        let argument = text(error, ContextKind::InvalidArg);
        let value = text(error, ContextKind::InvalidValue);
        Some(match error.kind() {
            ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => return None,
            ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand | ErrorKind::MissingSubcommand => {
                Self::new("", "no command is given; see `longhaul --help`")
            }
            ErrorKind::InvalidSubcommand => {
                let name = text(error, ContextKind::InvalidSubcommand);
                let remedy = match nearest(error, ContextKind::SuggestedSubcommand) {
                    Some(near) => format!("did you mean {near}?"),
                    None => "see `longhaul --help`".to_owned(),
                };
                Self::new("", format!("there is no command '{name}'; {remedy}"))
            }
            ErrorKind::UnknownArgument => {
                let near = nearest(error, ContextKind::SuggestedArg).or_else(|| elsewhere(error));
                let remedy = match near {
                    Some(near) => format!("did you mean {near}?"),
                    None => format!("see `{} --help`", command_of(error)),
                };
                let what = match argument.starts_with('-') {
                    true => "there is no such flag",
                    false => "nothing of this kind is taken here",
                };
                Self::new(argument, format!("{what}; {remedy}"))
            }
            ErrorKind::MissingRequiredArgument => {
                let name = argument.trim_matches(['<', '>']).to_owned();
                Self::new(name, format!("is missing; see `{} --help`", command_of(error)))
            }
            ErrorKind::ArgumentConflict if argument == text(error, ContextKind::PriorArg) => {
                Self::new(flag_of(&argument), "is given twice; leave one of them out")
            }
            ErrorKind::ArgumentConflict => {
                let other = flag_of(&text(error, ContextKind::PriorArg));
                let text = format!("contradicts {other}; leave one of them out");
                Self::new(flag_of(&argument), text)
            }
            ErrorKind::InvalidValue if value.is_empty() => {
                Self::new(flag_of(&argument), format!("has no value; give it as {argument}"))
            }
            ErrorKind::InvalidValue => {
                let valid = text(error, ContextKind::ValidValue);
                let remedy = match nearest(error, ContextKind::SuggestedValue) {
                    Some(near) => format!("did you mean {near}? There are {valid}"),
                    None => format!("give one of {valid}"),
                };
                Self::new(flag_of(&argument), format!("there is no '{value}'; {remedy}"))
            }
            ErrorKind::ValueValidation => {
                let reason = error.source().map(ToString::to_string).unwrap_or_default();
                Self::new(flag_of(&argument), reason)
            }
            _ => {
                let shown = error.to_string();
                let line = shown.lines().next().unwrap_or_default();
                let line = line.trim_start_matches("error: ");
                Self::new("", format!("{line}; see `longhaul --help`"))
            }
        })
    }
}

impl fmt::Display for UsageError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let colon = if self.place.is_empty() { "" } else { ": " };
        let line = format!("longhaul: error: {}{colon}{}", self.place, self.text);
        // A value may hold a line break or an escape sequence; the answer stays one plain line.
        for c in line.chars() {
            if c.is_control() { write!(f, "{}", c.escape_default())? } else { write!(f, "{c}")? }
        }
        Ok(())
    }
}

/// The flag alone, of `--connect-timeout <S>`.
fn flag_of(argument: &str) -> String {
    argument.split_whitespace().next().unwrap_or(argument).trim_end_matches("...").to_owned()
}

/// The command with its subcommand, of `Usage: longhaul plan [OPTIONS]`.
fn command_of(error: &clap::Error) -> String {
    let usage = match error.get(ContextKind::Usage) {
        Some(ContextValue::StyledStr(usage)) => usage.to_string(),
        _ => String::new(),
    };
    let words = usage.split_whitespace().skip_while(|word| *word != "longhaul");
    let words: Vec<&str> = words.take_while(|word| !word.starts_with(['[', '<', '-'])).collect();
    if words.is_empty() { "longhaul".to_owned() } else { words.join(" ") }
}

/// The best of what clap suggests, which it names last.
fn nearest(error: &clap::Error, kind: ContextKind) -> Option<String> {
    match error.get(kind)? {
        ContextValue::String(near) => Some(near.clone()),
        ContextValue::Strings(all) => all.last().cloned(),
        ContextValue::StyledStrs(all) => all.last().map(ToString::to_string),
        _ => None,
    }
}

/// The command that has the flag which stands too early, with the flag: clap says `'run --profile'
/// exists`.
fn elsewhere(error: &clap::Error) -> Option<String> {
    let sentence = nearest(error, ContextKind::Suggested)?;
    let there = sentence.strip_prefix('\'')?.strip_suffix("' exists")?;
    Some(format!("`longhaul {there}`"))
}

fn text(error: &clap::Error, kind: ContextKind) -> String {
    match error.get(kind) {
        Some(ContextValue::String(value)) => value.clone(),
        Some(ContextValue::Strings(values)) => values.join(", "),
        _ => String::new(),
    }
}
