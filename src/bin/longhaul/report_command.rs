//! `longhaul report`: what the results of a run tell, and how two runs differ.
//!
//! The numbers are the library's ([`Report`], [`Comparison`]); nothing is computed here. Three views
//! show them: tables for a terminal ([`terminal`]), a page with drawings for a browser ([`page`]), and
//! the object for programs, which is the numbers themselves. Each number of the page carries its
//! place in that object, so that a test can hold the one against the other.

mod page;
mod plots;
mod terminal;
mod words;

use crate::args::ReportArgs;
use crate::exit::Exit;
use crate::output;
use crate::plan_command;
use crate::usage::UsageError;
use crate::world::{RealWorld, World};
use longhaul::batch::{Analysis, Comparison, Report};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::fs;
use std::io;
use std::path::Path;

/// `longhaul report`.
///
/// # Errors
/// Results that cannot be read or are none, and a page that cannot be written.
pub(crate) fn command(args: &ReportArgs) -> Result<Exit, UsageError> {
    let ReportArgs { results, other, html, json } = args;
    if let Some(path) = html {
        output::can_be_made("--html", path)?;
        for source in [Some(results), other.as_ref()].into_iter().flatten() {
            refuse_to_overwrite(path, source)?;
        }
    }
    if other.as_deref().is_some_and(is_stdin) && is_stdin(results) {
        return Err(UsageError::new("RESULTS2", "standard input can be read once; name a file"));
    }
    let told = Told::of(read(results)?, other.as_deref().map(read).transpose()?);
    if let Some(path) = html {
        fs::write(path, page::render(&told)).map_err(|error| {
            let text = format!("{} cannot be written: {error}; name another file", path.display());
            UsageError::new("--html", text)
        })?;
    }
    if *json {
        return output::print(&told.json()?);
    }
    let colours = RealWorld.stdout_is_terminal()
        && RealWorld.var("NO_COLOR").is_none_or(|value| value.is_empty());
    let width = plan_command::width(&RealWorld);
    output::print(&terminal::render(&told.printable()?, width, colours))
}

/// What is told: one run, or two and their differences.
#[derive(Debug)]
pub(crate) enum Told {
    One(Box<Report>),
    Two(Box<Comparison>),
}

/// A run of those that are told, with where its numbers stand in the object.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Run<'a> {
    pub(crate) report: &'a Report,
    /// `A` or `B`; empty where there is only one.
    pub(crate) letter: &'static str,
    /// The beginning of the JSON pointers of its numbers.
    pub(crate) pointer: &'static str,
}

impl Told {
    fn of(first: Report, second: Option<Report>) -> Self {
        match second {
            None => Self::One(Box::new(first)),
            Some(second) => Self::Two(Box::new(Comparison::of(first, second))),
        }
    }

    /// The runs in their order.
    pub(crate) fn runs(&self) -> Vec<Run<'_>> {
        match self {
            Self::One(report) => vec![Run { report, letter: "", pointer: "" }],
            Self::Two(both) => vec![
                Run { report: &both.a, letter: "A", pointer: "/a" },
                Run { report: &both.b, letter: "B", pointer: "/b" },
            ],
        }
    }

    /// What the second run has other than the first.
    pub(crate) fn comparison(&self) -> Option<&Comparison> {
        match self {
            Self::One(_) => None,
            Self::Two(comparison) => Some(comparison),
        }
    }

    /// The same without what would steer a terminal: texts in results come from outside.
    fn printable(&self) -> Result<Self, UsageError> {
        Ok(match self {
            Self::One(report) => Self::One(Box::new(printable(report.as_ref())?)),
            Self::Two(both) => Self::Two(Box::new(printable(both.as_ref())?)),
        })
    }

    fn json(&self) -> Result<String, UsageError> {
        let text = match self {
            Self::One(report) => serde_json::to_string(report),
            Self::Two(comparison) => serde_json::to_string(comparison),
        };
        text.map_err(|error| UsageError::new("--json", format!("{error}; leave it out")))
    }
}

/// With each text made printable, whichever field it stands in.
fn printable<T: Serialize + DeserializeOwned>(told: &T) -> Result<T, UsageError> {
    fn walk(value: &mut Value) {
        match value {
            Value::String(text) => *text = words::printable(text),
            Value::Array(list) => list.iter_mut().for_each(walk),
            Value::Object(fields) => {
                for (name, mut value) in std::mem::take(fields) {
                    walk(&mut value);
                    fields.insert(words::printable(&name), value);
                }
            }
            _ => {}
        }
    }
    let told = serde_json::to_value(told).and_then(|mut value| {
        walk(&mut value);
        serde_json::from_value(value)
    });
    told.map_err(|error| UsageError::new("RESULTS", format!("{error}; use --json")))
}

fn is_stdin(path: &Path) -> bool {
    path == Path::new("-")
}

fn read(path: &Path) -> Result<Report, UsageError> {
    let analysis = if is_stdin(path) {
        Analysis::read("standard input", io::BufReader::new(io::stdin()))
    } else {
        Analysis::read_file(path)
    };
    Ok(analysis.map_err(|error| UsageError::from_library(&error))?.report())
}

/// Results are not there to be lost.
fn refuse_to_overwrite(page: &Path, results: &Path) -> Result<(), UsageError> {
    let same = match (fs::canonicalize(page), fs::canonicalize(results)) {
        (Ok(page), Ok(results)) => page == results,
        _ => false,
    };
    if same {
        let text = format!("{} holds the results; name another file", page.display());
        return Err(UsageError::new("--html", text));
    }
    Ok(())
}
