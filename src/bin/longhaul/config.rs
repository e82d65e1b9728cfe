//! Values that were not typed: `longhaul.toml`, profiles, variables.
//!
//! A file of settings is a command line that need not be typed again, and nothing else. So it is made
//! into one: what the sources say is put in front of what was typed, as flags, and the whole is
//! parsed as ever. No command learns where a value came from, no flag has to be told of files, and
//! a wrong value is refused by the same parser in the same words. Beforehand each entry is held
//! against its flag alone, so that a mistake is told with its line even where a flag overrules it.
//!
//! The order is *flag, variable, profile, file, default* ([`layers`]). The list of keys is the
//! definition of the arguments ([`flags`]).

use crate::args::{Cli, SettingsArgs};
use crate::usage::UsageError;
use clap::error::ErrorKind;
use clap::{ArgMatches, FromArgMatches as _};
use std::collections::BTreeMap;
use std::ffi::OsString;

mod definition;
mod document;
mod file;
mod find;
mod flags;
mod layers;
mod nearest;
mod print;
mod profiles;
mod shown;
mod value;
mod variables;

pub(crate) use definition::definition;
pub(crate) use find::Read;
pub(crate) use variables::Variables;

use document::{Document, Table};
use file::File;
use find::Found;
use flags::{Catalogue, Section};
use layers::Layer;
use profiles::Profiles;
use value::{Entry, Origin};

/// What there is to do.
#[derive(Debug)]
pub(crate) enum Settled {
    /// A command, with all its values.
    Command(Box<Cli>, Sources),
    /// A text, for standard output.
    Print(String, Sources),
}

/// Why nothing is done.
#[derive(Debug)]
pub(crate) enum Refusal {
    /// The command line is no good, or asks for help.
    CommandLine(clap::Error),
    /// A file, a variable, or what all sources come to.
    Usage(UsageError),
}

impl From<UsageError> for Refusal {
    fn from(error: UsageError) -> Self {
        Self::Usage(error)
    }
}

/// Where the values of a command came from.
#[derive(Debug, Clone, Default)]
pub(crate) struct Sources {
    section: Option<Section>,
    origins: BTreeMap<String, Origin>,
    /// What is no mistake, but not meant either.
    pub(crate) warnings: Vec<String>,
    /// The file and the profile that values were taken from, for the plan.
    pub(crate) summary: Option<String>,
}

impl Sources {
    /// The error with the place where the value stands, if it was not typed, and with the flag that
    /// leaves it out for once.
    pub(crate) fn locate(&self, error: UsageError) -> UsageError {
        let place = error.place().to_owned();
        let (name, rest) = place.split_once(' ').unwrap_or((&place, ""));
        let flag = self.section.as_ref().and_then(|section| section.named(name));
        let found = flag.and_then(|flag| Some((flag, self.origins.get(&flag.key)?)));
        match found {
            None | Some((_, Origin::Typed)) => error,
            Some((flag, elsewhere)) => {
                let place = format!("{} {rest}", elsewhere.place(&flag.key));
                let remedy = format!("; or leave it out with --{}", flag.opposite);
                error.at_place(place.trim_end()).or(&remedy)
            }
        }
    }
}

/// Puts together what was typed and what was not.
///
/// # Errors
/// A mistake, wherever it stands; or the wish for help, which clap treats as one.
pub(crate) fn settle(
    arguments: Vec<OsString>,
    variables: &Variables,
    read: Read<'_>,
) -> Result<Settled, Refusal> {
    let command = definition::with_opposites(definition());
    let typed = match command.clone().try_get_matches_from(&arguments) {
        Ok(matches) => matches,
        // It may be among what is not typed; if it is nowhere, the second reading tells.
        Err(error) if error.kind() == ErrorKind::MissingRequiredArgument => command
            .clone()
            .ignore_errors(true)
            .try_get_matches_from(&arguments)
            .map_err(Refusal::CommandLine)?,
        Err(error) => return Err(Refusal::CommandLine(error)),
    };
    let catalogue = Catalogue::of(&command);
    let named = typed
        .subcommand()
        .and_then(|(name, matches)| catalogue.section(name).map(|section| (section, matches)));
    let Some((section, matches)) = named else {
        let cli = Cli::from_arg_matches(&typed).map_err(Refusal::CommandLine)?;
        return Ok(Settled::Command(Box::new(cli), Sources::default()));
    };
    let settings = SettingsArgs::from_arg_matches(matches).map_err(Refusal::CommandLine)?;

    let built_in = profiles::built_in(&catalogue)?;
    let found = find::find(&settings, variables, read)?;
    let file = found.as_ref().map(|found| parse(found, &built_in, &catalogue)).transpose()?;
    let file = file.unwrap_or_default();
    let (environment, mut warnings) = variables.document(&catalogue)?;
    warnings.extend(found.as_ref().and_then(|found| exposed(found, &file, &catalogue)));
    let profile = profile(&settings, variables);
    let chain = match &profile {
        Some((name, place)) => file.profiles.chain(name, &built_in, place)?,
        None => Vec::new(),
    };

    let by_hand = by_hand(section, matches);
    let documents: Vec<&Document> =
        [&environment].into_iter().chain(chain).chain([&file.document]).collect();
    let mut layers = Vec::new();
    for document in documents {
        let own = document.sections.get(&section.name);
        layers.extend(own.map(|table| Layer { table, is_shared: false }));
        layers.push(Layer { table: &document.shared, is_shared: true });
    }
    let typed = Layer { table: &by_hand, is_shared: false };
    let chosen = layers::choose(section, typed, &layers, section.settled_by_values(matches))?;

    let path = found.as_ref().map(|found| found.path.display().to_string());
    let profile = profile.map(|(name, _)| name);
    let sources = Sources {
        section: Some(section.clone()),
        origins: chosen.iter().map(|(key, entry)| (key.clone(), entry.origin.clone())).collect(),
        warnings,
        summary: summary(&chosen, path.as_deref(), profile.as_deref()),
    };
    if settings.print_config {
        let from = format!(
            "file: {}, profile: {}",
            path.as_deref().unwrap_or("none"),
            profile.as_deref().unwrap_or("none")
        );
        return Ok(Settled::Print(print::print(section, &chosen, &from), sources));
    }
    let arguments = with_chosen(arguments, section, &chosen);
    let parsed =
        command.try_get_matches_from(arguments).and_then(|matches| Cli::from_arg_matches(&matches));
    match parsed {
        Ok(cli) => Ok(Settled::Command(Box::new(cli), sources)),
        Err(error) => Err(match UsageError::from_clap(&error) {
            Some(mistake) => Refusal::Usage(sources.locate(mistake)),
            None => Refusal::CommandLine(error),
        }),
    }
}

fn parse(found: &Found, built_in: &Profiles, catalogue: &Catalogue) -> Result<File, UsageError> {
    let path = found.path.display().to_string();
    let file = File::parse(&found.text, Some(&path), catalogue)?;
    file.profiles.check(built_in)?;
    Ok(file)
}

/// The profile that was asked for, and where.
fn profile(settings: &SettingsArgs, variables: &Variables) -> Option<(String, String)> {
    let typed = settings.profile.as_ref().map(|name| (name.clone(), "--profile".to_owned()));
    typed.or_else(|| {
        let name = variables.get(variables::PROFILE)?;
        Some((name.to_string_lossy().into_owned(), variables::PROFILE.to_owned()))
    })
}

/// What was typed, as one more source.
fn by_hand(section: &Section, matches: &ArgMatches) -> Table {
    let mut table = Table::default();
    for flag in &section.flags {
        if let Some(setting) = flag.typed(matches) {
            table.insert(&flag.key, setting, Origin::Typed);
        }
    }
    table
}

/// The command line with the values that were not typed behind the command's name. Flags stand there
/// alone, since the definition has none before it but those that ask for help.
fn with_chosen(
    arguments: Vec<OsString>,
    section: &Section,
    chosen: &BTreeMap<String, Entry>,
) -> Vec<OsString> {
    let mut rest = arguments.into_iter();
    let mut line: Vec<OsString> = rest.by_ref().take(2).collect();
    for flag in &section.flags {
        match chosen.get(&flag.key) {
            Some(entry) if entry.origin != Origin::Typed => {
                line.extend(entry.setting.arguments(flag));
            }
            _ => {}
        }
    }
    line.extend(rest);
    line
}

/// A secret that others can read.
fn exposed(found: &Found, file: &File, catalogue: &Catalogue) -> Option<String> {
    let documents = [&file.document].into_iter().chain(file.profiles.documents());
    let mut entries = documents.flat_map(Document::entries);
    let (_, key, entry) = entries.find(|(command, key, entry)| {
        let flag = match command {
            Some(command) => catalogue.section(command).and_then(|section| section.flag(key)),
            None => catalogue.shared(key),
        };
        flag.is_some_and(|flag| shown::holds_secret(flag, &entry.setting))
    })?;
    find::is_readable_by_others(&found.path).then(|| {
        let (place, path) = (entry.origin.place(key), found.path.display());
        format!("{place}: is secret, and other users can read it; chmod 600 {path}")
    })
}

/// The sources that had a say, in one line.
fn summary(
    chosen: &BTreeMap<String, Entry>,
    path: Option<&str>,
    profile: Option<&str>,
) -> Option<String> {
    let has = |is_meant: fn(&Origin) -> bool| chosen.values().any(|entry| is_meant(&entry.origin));
    let mut parts = Vec::new();
    if has(|origin| matches!(origin, Origin::File { .. })) {
        parts.extend(path.map(ToOwned::to_owned));
    }
    parts.extend(profile.map(|name| format!("profile {name}")));
    let variables = chosen.values().filter_map(|entry| match &entry.origin {
        Origin::Variable(name) => Some(name.clone()),
        _ => None,
    });
    parts.extend(variables);
    (!parts.is_empty()).then(|| parts.join(", "))
}

#[cfg(test)]
mod tests;
