//! Which keys and variables there are: those that the flags make.
//!
//! The definition of the arguments is the only list. A key is the long name of a flag, a variable is
//! `LONGHAUL_` and the same name in capitals, and everything else that a source of values has to know
//! about a flag (whether it is a switch, takes one value or several, holds a secret) is read from its
//! definition. So a new flag is a key, a variable and a line of `--print-config` from the day it is
//! defined.
//!
//! A flag may mean one thing in one command and something else in another: `-o` of a run are its
//! records, `-o` of `get` is a body. Two flags are taken for the same when their help says the same
//! up to the default. What stands outside of any section is what `run` takes, and reaches the other
//! commands only where they mean the same by it.

use super::definition::{is_configured, names_of_settings, opposite_of};
use super::value::Setting;
use crate::usage::UsageError;
use crate::values::{HeaderArg, Secret};
use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches, Command};
use std::any::TypeId;
use std::collections::BTreeSet;

/// The command whose flags may stand outside of any section.
const FIRST: &str = "run";

/// Flags that answer one question between them: where one of them is given, what a lower source says
/// by another is out of place. Those whose definitions contradict each other need not stand here.
const ONE_QUESTION: &[&[&str]] = &[
    // What stands without a flag is called as the help calls it.
    &["URL", "input"],
    &["proxy", "proxies"],
    &["user", "user-file", "bearer", "bearer-file"],
    &["netrc-file", "no-netrc"],
    &["cacert", "native-roots", "insecure"],
    &["quiet", "verbose"],
    &["progress", "json-progress"],
    &["data", "json"],
    &["raw", "json-result", "include", "head"],
];

const COMMAND_LINE: ValueSource = ValueSource::CommandLine;

/// What a flag takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Nothing.
    Switch,
    /// Nothing, and may be given several times.
    Count,
    /// A value.
    One,
    /// A value or none.
    Optional,
    /// A value that is a list with commas.
    List,
    /// A value, and may be given several times.
    Many,
}

/// How much of a value may be shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Secrecy {
    /// All of it, unless it is a URL with credentials.
    Open,
    /// Nothing.
    Secret,
    /// A field, whose name says how secret its value is.
    Field,
    /// A proxy, without its credentials.
    Proxy,
    /// A body that is given as it is; a file of one may be named.
    Content,
}

/// A flag of one command.
#[derive(Debug, Clone)]
pub(super) struct Flag {
    /// The long name, and so the key.
    pub(super) key: String,
    /// `-x`, where it has one.
    short: Option<char>,
    /// What it takes.
    pub(super) kind: Kind,
    /// What may be shown.
    pub(super) secrecy: Secrecy,
    /// How a value is called in the help.
    pub(super) placeholder: String,
    /// Under which heading it stands.
    pub(super) heading: String,
    /// What it means, in the words of its help.
    meaning: String,
    /// What holds without it, in the words of its help.
    pub(super) default: String,
    /// The flag that takes it back.
    pub(super) opposite: String,
    /// Whether that one is a flag of its own right, with a key.
    pub(super) has_visible_opposite: bool,
    /// Whether a value outside of any section is this flag's.
    pub(super) shared: bool,
    /// What answers the same question.
    pub(super) rivals: Vec<String>,
    id: String,
    /// A command with this flag alone, which values are held against.
    alone: Command,
}

/// The flags of one command, in the order of its help.
#[derive(Debug, Clone)]
pub(super) struct Section {
    /// The command.
    pub(super) name: String,
    /// Its flags.
    pub(super) flags: Vec<Flag>,
    /// What stands without a flag: its id, and how the help calls it.
    values: Vec<(String, String)>,
}

/// All that can be configured.
#[derive(Debug, Clone)]
pub(super) struct Catalogue {
    /// By command.
    pub(super) sections: Vec<Section>,
}

impl Catalogue {
    /// Of a definition with opposites.
    pub(super) fn of(command: &Command) -> Self {
        let mut sections: Vec<Section> =
            command.get_subcommands().filter_map(Section::of).collect();
        let meanings: Vec<(String, String, String)> = sections
            .iter()
            .flat_map(|section| {
                let name = &section.name;
                let flags = section.flags.iter();
                flags.map(move |flag| (name.clone(), flag.key.clone(), flag.meaning.clone()))
            })
            .collect();
        for flag in sections.iter_mut().flat_map(|section| &mut section.flags) {
            let same: Vec<_> = meanings.iter().filter(|(_, key, _)| *key == flag.key).collect();
            flag.shared = match same.iter().find(|(command, ..)| command == FIRST) {
                Some((.., meaning)) => *meaning == flag.meaning,
                None => same.iter().all(|(.., meaning)| *meaning == flag.meaning),
            };
        }
        Self { sections }
    }

    /// The flags of a command; `None` for one that cannot be configured.
    pub(super) fn section(&self, command: &str) -> Option<&Section> {
        self.sections.iter().find(|section| section.name == command)
    }

    /// The flag that a key outside of any section stands for.
    pub(super) fn shared(&self, key: &str) -> Option<&Flag> {
        let flags = self.sections.iter().flat_map(|section| &section.flags);
        flags.into_iter().find(|flag| flag.shared && flag.key == key)
    }

    /// Every key that may stand outside of any section, once.
    pub(super) fn shared_keys(&self) -> BTreeSet<&str> {
        let flags = self.sections.iter().flat_map(|section| &section.flags);
        flags.filter(|flag| flag.shared).map(|flag| flag.key.as_str()).collect()
    }

    /// The commands that take a flag of this name, whatever they mean by it.
    pub(super) fn commands_with(&self, key: &str) -> Vec<&str> {
        let has = |section: &&Section| section.flag(key).is_some();
        self.sections.iter().filter(has).map(|section| section.name.as_str()).collect()
    }
}

impl Section {
    fn of(command: &Command) -> Option<Self> {
        if !is_configured(command) {
            return None;
        }
        let settings = names_of_settings();
        let visible = |arg: &&Arg| !arg.is_hide_set() && arg.get_long().is_some();
        let longs: BTreeSet<&str> =
            command.get_arguments().filter(visible).filter_map(Arg::get_long).collect();
        let flags = command
            .get_arguments()
            .filter(visible)
            .filter(|arg| arg.get_long().is_some_and(|long| !settings.contains(long)))
            .filter_map(|arg| Flag::of(arg, command, &longs))
            .collect();
        let name_of = |arg: &Arg| Some(arg.get_value_names()?.first()?.to_string());
        let values = command.get_positionals();
        let values = values.filter_map(|arg| Some((arg.get_id().to_string(), name_of(arg)?)));
        Some(Self { name: command.get_name().to_owned(), flags, values: values.collect() })
    }

    /// The flag of this key.
    pub(super) fn flag(&self, key: &str) -> Option<&Flag> {
        self.flags.iter().find(|flag| flag.key == key)
    }

    /// The keys that are settled by what was typed without a flag.
    pub(super) fn settled_by_values(&self, matches: &ArgMatches) -> BTreeSet<String> {
        let is_typed = |id: &String| matches.value_source(id) == Some(COMMAND_LINE);
        let typed = self.values.iter().filter(|(id, _)| is_typed(id));
        typed.flat_map(|(_, name)| same_question(name)).map(ToOwned::to_owned).collect()
    }

    /// The flag that an error names, by its long name or its short one.
    pub(super) fn named(&self, name: &str) -> Option<&Flag> {
        match name.strip_prefix("--") {
            Some(long) => self.flag(long),
            None => {
                let mut letters = name.strip_prefix('-')?.chars();
                let letter = letters.next().filter(|_| letters.next().is_none())?;
                self.flags.iter().find(|flag| flag.short == Some(letter))
            }
        }
    }
}

impl Flag {
    fn of(arg: &Arg, command: &Command, longs: &BTreeSet<&str>) -> Option<Self> {
        let key = arg.get_long()?.to_owned();
        let help = arg.get_long_help().or(arg.get_help()).map(ToString::to_string);
        let help = help.unwrap_or_default().split_whitespace().collect::<Vec<_>>().join(" ");
        let (meaning, default) = help.split_once("Default: ").unwrap_or((&help, ""));
        let placeholder = arg.get_value_names().and_then(|names| names.first());
        let placeholder = placeholder.map(ToString::to_string).unwrap_or_default();
        let opposite = opposite_of(&key);
        let has_visible_opposite = longs.contains(opposite.as_str());
        let mut rivals: Vec<String> = contradicted(arg, command)
            .into_iter()
            .chain(same_question(&key).map(ToOwned::to_owned))
            .filter(|rival| *rival != key)
            .collect();
        if has_visible_opposite {
            rivals.push(opposite.clone());
        }
        Some(Self {
            kind: kind_of(arg, &placeholder),
            secrecy: secrecy_of(arg, &placeholder),
            short: arg.get_short(),
            placeholder,
            heading: arg.get_help_heading().unwrap_or("Options").to_owned(),
            meaning: meaning.trim().to_owned(),
            default: default.trim().trim_end_matches('.').to_owned(),
            opposite,
            has_visible_opposite,
            shared: false,
            rivals,
            id: arg.get_id().to_string(),
            alone: Command::new("").no_binary_name(true).arg(alone(arg, &key)),
            key,
        })
    }

    /// Holds a value against the parser of the flag.
    ///
    /// # Errors
    /// What the flag would be told on the command line.
    pub(super) fn check(&self, setting: &Setting) -> Result<(), UsageError> {
        for argument in setting.arguments(self) {
            // The opposite is not there, and takes nothing that could be wrong.
            let parsed = match setting {
                Setting::TakenBack => continue,
                _ => self.alone.clone().try_get_matches_from([argument]),
            };
            if let Some(mistake) = parsed.err().as_ref().and_then(UsageError::from_clap) {
                return Err(mistake);
            }
        }
        Ok(())
    }

    /// The variable that holds for every command that means the same.
    pub(super) fn variable(&self) -> String {
        variable(&self.key)
    }

    /// The variable of one command alone.
    pub(super) fn variable_of(&self, command: &str) -> String {
        variable(&format!("{command}-{}", self.key))
    }

    /// What was typed of it; `None` where nothing was.
    pub(super) fn typed(&self, matches: &ArgMatches) -> Option<Setting> {
        let is_typed = |id: &str| matches.value_source(id) == Some(COMMAND_LINE);
        if is_typed(&self.id) {
            return Some(match self.kind {
                Kind::Switch => Setting::Times(1),
                Kind::Count => Setting::Times(matches.get_count(&self.id)),
                Kind::One | Kind::Optional | Kind::List | Kind::Many => {
                    let values = matches.get_raw(&self.id).into_iter().flatten();
                    match values.map(ToOwned::to_owned).collect::<Vec<_>>() {
                        values if values.is_empty() => Setting::Times(1),
                        values => Setting::Values(values),
                    }
                }
            });
        }
        // Those that are visible are flags of their own, under an id that is not their name.
        (!self.has_visible_opposite && is_typed(&self.opposite)).then_some(Setting::TakenBack)
    }
}

/// The flag without what it has to do with others.
fn alone(arg: &Arg, long: &str) -> Arg {
    let mut alone = Arg::new(arg.get_id().clone())
        .long(long.to_owned())
        .action(arg.get_action().clone())
        .value_parser(arg.get_value_parser().clone())
        .value_delimiter(arg.get_value_delimiter());
    if let Some(names) = arg.get_value_names() {
        alone = alone.value_names(names);
    }
    if let Some(range) = arg.get_num_args() {
        alone = alone.num_args(range);
    }
    alone
}

/// The flags that clap refuses beside this one. That holds both ways, and is defined on either side.
fn contradicted(arg: &Arg, command: &Command) -> Vec<String> {
    let mine = command.get_arg_conflicts_with(arg);
    let others = command.get_arguments().filter(|other| {
        let theirs = command.get_arg_conflicts_with(other);
        theirs.iter().any(|one| one.get_id() == arg.get_id())
    });
    mine.into_iter().chain(others).filter_map(Arg::get_long).map(ToOwned::to_owned).collect()
}

/// The flags that answer the same question, itself included.
fn same_question(key: &str) -> impl Iterator<Item = &'static str> {
    let groups = ONE_QUESTION.iter().filter(move |flags| flags.contains(&key));
    groups.flat_map(|flags| flags.iter().copied())
}

/// `LONGHAUL_PER_HOST`, of `per-host`.
fn variable(name: &str) -> String {
    format!("{}{}", super::variables::PREFIX, name.to_ascii_uppercase().replace('-', "_"))
}

fn kind_of(arg: &Arg, placeholder: &str) -> Kind {
    match arg.get_action() {
        ArgAction::Count => Kind::Count,
        ArgAction::Append => Kind::Many,
        ArgAction::Set => match arg.get_num_args() {
            Some(range) if range.min_values() == 0 => Kind::Optional,
            _ if placeholder == "LIST" || placeholder.contains(',') => Kind::List,
            _ => Kind::One,
        },
        _ => Kind::Switch,
    }
}

fn secrecy_of(arg: &Arg, placeholder: &str) -> Secrecy {
    let parsed = arg.get_value_parser().type_id();
    if parsed == TypeId::of::<Secret>() {
        Secrecy::Secret
    } else if parsed == TypeId::of::<HeaderArg>() {
        Secrecy::Field
    } else if placeholder == "PROXY" {
        Secrecy::Proxy
    } else if placeholder.ends_with("|@FILE") {
        Secrecy::Content
    } else {
        Secrecy::Open
    }
}
