//! `longhaul.toml`, read into entries.
//!
//! All of it is read and held against the flags, whatever the command and the profile: a mistake in
//! the profile for the night is to be found by day. A value may be written as TOML's own (`5`, `0.6`,
//! `true`, `22:00:00`) or as a string, and comes to the flag's own parser either way, so that a file
//! is told the same as a command line, with the line and the column in front.

use super::definition::names_of_settings;
use super::document::{Document, Table};
use super::flags::{Catalogue, Flag, Kind, Section};
use super::nearest::nearest;
use super::profiles::{Profile, Profiles};
use super::value::{Origin, Setting};
use crate::usage::UsageError;
use std::ffi::OsString;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// The table that holds the profiles.
const PROFILE: &str = "profile";
/// The key that names the profile below a profile.
const INHERITS: &str = "inherits";

/// A file of settings.
#[derive(Debug, Clone, Default)]
pub(super) struct File {
    /// What holds without a profile.
    pub(super) document: Document,
    /// The profiles that stand in it.
    pub(super) profiles: Profiles,
}

impl File {
    /// Reads a text; `path` is what its errors call it, and nothing for what comes with the program.
    ///
    /// # Errors
    /// The first mistake, with its place.
    pub(super) fn parse(
        text: &str,
        path: Option<&str>,
        catalogue: &Catalogue,
    ) -> Result<Self, UsageError> {
        let mut reader = Reader { text, path, catalogue, profile: None };
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        reader.text = text;
        let root = DeTable::parse(text).map_err(|error| reader.syntax(&error))?;
        let mut file = Self::default();
        file.document = reader.document(root.get_ref(), |reader, key, value| {
            if key.get_ref() != PROFILE {
                return Ok(false);
            }
            let DeValue::Table(profiles) = value.get_ref() else {
                let text = "is a table; write [profile.night], and choose it with --profile";
                return Err(reader.wrong(value, PROFILE, text));
            };
            for (name, value) in in_order(profiles) {
                let DeValue::Table(table) = value.get_ref() else {
                    let text = "is no profile; write it as [profile.NAME]";
                    return Err(reader.wrong(name, name.get_ref(), text));
                };
                let mut inner = Reader { profile: Some(name.get_ref().to_string()), ..*reader };
                let profile = inner.profile(table)?;
                file.profiles.insert(name.get_ref(), profile);
            }
            Ok(true)
        })?;
        Ok(file)
    }
}

struct Reader<'a> {
    text: &'a str,
    path: Option<&'a str>,
    catalogue: &'a Catalogue,
    profile: Option<String>,
}

impl Reader<'_> {
    fn profile(&mut self, table: &DeTable<'_>) -> Result<Profile, UsageError> {
        let mut inherits = None;
        let document = self.document(table, |reader, key, value| {
            if key.get_ref() != INHERITS {
                return Ok(false);
            }
            let DeValue::String(name) = value.get_ref() else {
                return Err(reader.wrong(
                    value,
                    INHERITS,
                    "takes the name of a profile, in quotes",
                ));
            };
            inherits = Some((name.to_string(), reader.origin(value.span().start)));
            Ok(true)
        })?;
        Ok(Profile { document, inherits })
    }

    /// The keys and the sections of a table; `special` takes what is neither.
    fn document(
        &self,
        table: &DeTable<'_>,
        mut special: impl FnMut(
            &Self,
            &Spanned<std::borrow::Cow<'_, str>>,
            &Spanned<DeValue<'_>>,
        ) -> Result<bool, UsageError>,
    ) -> Result<Document, UsageError> {
        let mut document = Document::default();
        for (key, value) in in_order(table) {
            if special(self, key, value)? {
                continue;
            }
            let name = key.get_ref().as_ref();
            match (value.get_ref(), self.catalogue.section(name)) {
                (DeValue::Table(table), Some(section)) => {
                    let table = self.section(section, table)?;
                    document.sections.insert(name.to_owned(), table);
                }
                (DeValue::Table(_), None) if self.catalogue.commands_with(name).is_empty() => {
                    return Err(self.wrong(key, name, &self.no_section(name)));
                }
                (_, Some(_)) => {
                    let text = format!("is a section and no key; write [{name}]");
                    return Err(self.wrong(key, name, &text));
                }
                (_, None) => {
                    let Some(flag) = self.catalogue.shared(name) else {
                        return Err(self.wrong(key, name, &self.no_shared_key(name)));
                    };
                    self.entry(&mut document.shared, flag, value)?;
                }
            }
        }
        Ok(document)
    }

    fn section(&self, section: &Section, table: &DeTable<'_>) -> Result<Table, UsageError> {
        let mut entries = Table::default();
        for (key, value) in in_order(table) {
            let name = key.get_ref().as_ref();
            let Some(flag) = section.flag(name) else {
                return Err(self.wrong(key, name, &self.no_key_of(section, name)));
            };
            self.entry(&mut entries, flag, value)?;
        }
        Ok(entries)
    }

    fn entry(
        &self,
        table: &mut Table,
        flag: &Flag,
        value: &Spanned<DeValue<'_>>,
    ) -> Result<(), UsageError> {
        let setting =
            setting(flag, value.get_ref()).map_err(|text| self.wrong(value, &flag.key, &text))?;
        let origin = self.origin(value.span().start);
        flag.check(&setting).map_err(|error| error.at_place(origin.place(&flag.key)))?;
        table.insert(&flag.key, setting, origin);
        Ok(())
    }

    fn no_section(&self, name: &str) -> String {
        let mut known: Vec<&str> =
            self.catalogue.sections.iter().map(|section| section.name.as_str()).collect();
        if self.profile.is_none() {
            known.push(PROFILE);
        }
        match nearest(name, known.iter().copied()) {
            Some(meant) => format!("there is no such section; did you mean [{meant}]?"),
            None => format!("there is no such section; there are {}", known.join(", ")),
        }
    }

    fn no_shared_key(&self, name: &str) -> String {
        if names_of_settings().contains(name) {
            return "says where values come from; give it on the command line".to_owned();
        }
        let commands = self.catalogue.commands_with(name);
        if !commands.is_empty() {
            let sections: Vec<String> =
                commands.iter().map(|command| format!("[{command}]")).collect();
            let sections = sections.join(" or ");
            return format!("means something else in each command; put it into {sections}");
        }
        let mut known = self.catalogue.shared_keys();
        if self.profile.is_some() {
            known.insert(INHERITS);
        }
        no_key(name, known)
    }

    fn no_key_of(&self, section: &Section, name: &str) -> String {
        match self.catalogue.commands_with(name)[..] {
            [] => no_key(name, section.flags.iter().map(|flag| flag.key.as_str())),
            ref others => {
                let (who, others) = (&section.name, others.join(", "));
                format!("`longhaul {who}` has no such flag; put it where it is for {others}")
            }
        }
    }

    fn origin(&self, offset: usize) -> Origin {
        let profile = self.profile.clone();
        match self.path {
            None => Origin::BuiltIn { profile: profile.unwrap_or_default() },
            Some(path) => {
                let before = self.text.get(..offset).unwrap_or(self.text);
                let line = before.rsplit('\n').next().unwrap_or_default();
                Origin::File {
                    path: path.to_owned(),
                    line: before.matches('\n').count() + 1,
                    column: line.chars().count() + 1,
                    profile,
                }
            }
        }
    }

    fn wrong<T>(&self, at: &Spanned<T>, key: &str, text: &str) -> UsageError {
        UsageError::new(self.origin(at.span().start).place(key), text)
    }

    /// What is no TOML at all.
    fn syntax(&self, error: &toml::de::Error) -> UsageError {
        let offset = error.span().map_or(0, |span| span.start);
        let place = self.origin(offset).place("");
        let text = error.message().replace('\n', "; ");
        UsageError::new(place.trim_end_matches(": "), format!("{text}; correct it there"))
    }
}

/// As they stand in the file, so that the first mistake is the one that is told.
fn in_order<'a, 'b>(
    table: &'a DeTable<'b>,
) -> Vec<(&'a Spanned<std::borrow::Cow<'b, str>>, &'a Spanned<DeValue<'b>>)> {
    let mut pairs: Vec<_> = table.iter().collect();
    pairs.sort_by_key(|(key, _)| key.span().start);
    pairs
}

fn no_key<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    match nearest(name, known) {
        Some(meant) => format!("there is no such key; did you mean {meant}?"),
        None => "there is no such key; see `longhaul run --help` for those there are".to_owned(),
    }
}

/// A value as its flag takes it.
fn setting(flag: &Flag, value: &DeValue<'_>) -> Result<Setting, String> {
    let wanted = || match flag.placeholder.as_str() {
        "" => "a value".to_owned(),
        name => format!("a value ({name})"),
    };
    match (flag.kind, value) {
        (Kind::Switch | Kind::Count, DeValue::Boolean(false)) => Ok(Setting::TakenBack),
        (Kind::Switch | Kind::Count | Kind::Optional, DeValue::Boolean(true)) => {
            Ok(Setting::Times(1))
        }
        (Kind::Switch, other) => {
            Err(format!("{} is neither true nor false; give one of them", shown(other)))
        }
        (Kind::Count, other) => match scalar(other).and_then(|text| text.parse().ok()) {
            Some(0) => Ok(Setting::TakenBack),
            Some(times) => Ok(Setting::Times(times)),
            None => Err(format!("{} is not a number of times; give 0 to 255", shown(other))),
        },
        (Kind::Many | Kind::List, DeValue::Array(values)) => {
            let values: Option<Vec<String>> =
                values.iter().map(|value| scalar(value.get_ref())).collect();
            match (values, flag.kind) {
                (Some(values), Kind::List) => {
                    Ok(Setting::Values(vec![OsString::from(values.join(","))]))
                }
                (Some(values), _) => {
                    Ok(Setting::Values(values.into_iter().map(OsString::from).collect()))
                }
                (None, _) => Err(format!("holds what is no value; give each as {}", wanted())),
            }
        }
        (_, DeValue::Array(_)) => Err(format!("takes one value; give {} alone", wanted())),
        (_, other) => match scalar(other) {
            Some(text) => Ok(Setting::Values(vec![OsString::from(text)])),
            None => Err(format!("{} is no value of it; give {}", shown(other), wanted())),
        },
    }
}

fn scalar(value: &DeValue<'_>) -> Option<String> {
    match value {
        DeValue::String(text) => Some(text.to_string()),
        DeValue::Integer(number) if number.radix() == 10 => Some(number.as_str().to_owned()),
        DeValue::Integer(number) => {
            let whole = i128::from_str_radix(number.as_str(), number.radix()).ok()?;
            Some(whole.to_string())
        }
        DeValue::Float(number) => Some(number.as_str().to_owned()),
        DeValue::Datetime(time) => Some(time.to_string()),
        DeValue::Boolean(_) | DeValue::Array(_) | DeValue::Table(_) => None,
    }
}

/// A value that is of the wrong type. It is no secret, since those are strings where one is wanted.
fn shown(value: &DeValue<'_>) -> String {
    match value {
        DeValue::Boolean(value) => value.to_string(),
        DeValue::Array(_) => "an array".to_owned(),
        DeValue::Table(_) => "a table".to_owned(),
        other => format!("'{}'", scalar(other).unwrap_or_default()),
    }
}
