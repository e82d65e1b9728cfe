//! `--print-config`: every value with where it comes from.
//!
//! It is a file of settings itself, so that what a run was started with can be kept and given to the
//! next one. Where a value comes from stands behind it as a comment; what is a default, and what may
//! not be shown, is a comment altogether.

use super::flags::{Flag, Kind, Section};
use super::shown::shown;
use super::value::{Entry, Setting};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use toml_writer::TomlStringBuilder;

/// The text, for one command; `from` tells of file and profile.
pub(super) fn print(section: &Section, chosen: &BTreeMap<String, Entry>, from: &str) -> String {
    let name = &section.name;
    let mut text = format!("# What `longhaul {name}` goes by; {from}.\n[{name}]\n");
    let mut headings: Vec<&str> = Vec::new();
    for flag in &section.flags {
        if !headings.contains(&flag.heading.as_str()) {
            headings.push(&flag.heading);
        }
    }
    for heading in headings {
        let _ = writeln!(text, "\n# {heading}");
        for flag in section.flags.iter().filter(|flag| flag.heading == heading) {
            let (line, origin) = line(flag, chosen.get(&flag.key));
            let _ = writeln!(text, "{line:<40}  # {origin}");
        }
    }
    text
}

fn line(flag: &Flag, entry: Option<&Entry>) -> (String, String) {
    let key = &flag.key;
    let default = match flag.default.as_str() {
        "" => "off",
        words => words,
    };
    let Some(Entry { setting, origin }) = entry else {
        return (format!("# {key}: {default}"), "default".to_owned());
    };
    match (setting, flag.kind) {
        (Setting::TakenBack, Kind::Switch | Kind::Count) => {
            (format!("{key} = false"), origin.to_string())
        }
        (Setting::TakenBack, _) => (format!("# {key}: {default}"), format!("default, by {origin}")),
        (Setting::Times(times), Kind::Count) => (format!("{key} = {times}"), origin.to_string()),
        (Setting::Times(_), _) => (format!("{key} = true"), origin.to_string()),
        (Setting::Values(values), _) => {
            let values: Vec<_> = values.iter().map(|value| shown(flag, value)).collect();
            let literals: Vec<String> = values.iter().map(|value| literal(&value.text)).collect();
            let line = match &literals[..] {
                [one] if flag.kind != Kind::Many => format!("{key} = {one}"),
                all => format!("{key} = [{}]", all.join(", ")),
            };
            match values.iter().all(|value| value.is_whole) {
                true => (line, origin.to_string()),
                false => (format!("# {line}"), format!("{origin}; not all of it may be shown")),
            }
        }
    }
}

/// A number as one where it is written as TOML would, else a string.
fn literal(text: &str) -> String {
    let is_whole = text.parse::<i64>().is_ok_and(|number| number.to_string() == text);
    let is_fraction =
        text.contains('.') && text.parse::<f64>().is_ok_and(|number| format!("{number:?}") == text);
    if is_whole || is_fraction {
        return text.to_owned();
    }
    let builder = TomlStringBuilder::new(text);
    match text.contains('\n') {
        true => toml(builder.as_basic()),
        false => toml(builder.as_default()),
    }
}

fn toml(string: toml_writer::TomlString<'_>) -> String {
    use toml_writer::WriteTomlValue as _;
    let mut text = String::new();
    // Memory takes whatever is written to it.
    let _ = string.write_toml_value(&mut text);
    text
}
