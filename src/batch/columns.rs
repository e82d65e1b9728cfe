//! Results as a table: the columns of a CSV file, and how a record becomes a row of them (RFC 4180).
//!
//! A table is for spreadsheets and for tools that know no JSON; it has the record's plain fields, each
//! under the path that it has in [`Record`], and not the list of
//! attempts. What a row cannot hold is in JSON Lines.
//!
//! **Formulas.** A spreadsheet runs what begins with `=`, `+`, `-` or `@`, and some cells hold words of
//! servers (reason phrases, header fields, messages). So a text that begins with one of these, or with a
//! tab, a carriage return or an apostrophe, gets an apostrophe in front, which spreadsheets take for
//! "this is text". One apostrophe is taken off again when the file is read back, so nothing is lost.

use super::record::Record;
use crate::error::Error;
use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

/// Beginnings that are guarded.
const GUARDED: [char; 7] = ['=', '+', '-', '@', '\t', '\r', '\''];

/// The columns of a table of results, in order.
///
/// # Defaults
/// `id`, `url`, `final_url`, `method`, `status`, `reason`, `ok`, `class`, `error.kind`,
/// `error.message`, `attempts`, `proxy`, `exit`, `bytes_wire`, `bytes_body`, `body_file`,
/// `elapsed_ms`, `pass` and `at`.
///
/// # Examples
/// ```
/// use longhaul::batch::Columns;
///
/// let columns: Columns = "id,url,ok,class,error.kind,meta.shop".parse()?;
/// assert_eq!(columns.to_string(), "id,url,ok,class,error.kind,meta.shop");
/// let error = "id,url,kind".parse::<Columns>().unwrap_err();
/// assert!(error.to_string().contains("did you mean error.kind?"));
/// # Ok::<(), longhaul::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Columns(Vec<Column>);

#[derive(Debug, Clone, PartialEq, Eq)]
enum Column {
    /// Its place in [`KNOWN`].
    Known(usize),
    /// A member of the object that the item brought as `meta`.
    Meta(String),
}

/// What stands in a cell; only text is guarded.
enum Cell<'a> {
    Text(Cow<'a, str>),
    Plain(Cow<'a, str>),
    Nothing,
}

type Get = for<'r> fn(&'r Record) -> Cell<'r>;

/// Every column but those of `meta`, with where its cell comes from.
const KNOWN: &[(&str, Get)] = &[
    ("v", |r| plain(r.v)),
    ("id", |r| text(&r.id)),
    ("url", |r| text(&r.url)),
    ("final_url", |r| some(r.final_url.as_deref())),
    ("method", |r| text(&r.method)),
    ("status", |r| r.status.map_or(Cell::Nothing, plain)),
    ("reason", |r| some(r.reason.as_deref())),
    ("ok", |r| plain(r.ok)),
    ("class", |r| text(&r.class)),
    ("error.kind", |r| some(r.error.as_ref().map(|error| &*error.kind))),
    ("error.requests_name", |r| some(r.error.as_ref().map(|error| &*error.requests_name))),
    ("error.phase", |r| some(r.error.as_ref().map(|error| &*error.phase))),
    ("error.fault", |r| some(r.error.as_ref().map(|error| &*error.fault))),
    ("error.message", |r| some(r.error.as_ref().map(|error| &*error.message))),
    ("attempts", |r| plain(r.attempts_made())),
    ("proxy", |r| some(r.proxy.as_deref())),
    ("exit", |r| some(r.exit.as_deref())),
    ("bytes_wire", |r| plain(r.bytes_wire)),
    ("bytes_body", |r| plain(r.bytes_body)),
    ("body_file", |r| some(r.body_file.as_deref())),
    ("warc_file", |r| some(r.warc_file.as_deref())),
    ("warc_offset", |r| r.warc_offset.map_or(Cell::Nothing, plain)),
    ("warc_length", |r| r.warc_length.map_or(Cell::Nothing, plain)),
    ("elapsed_ms", |r| plain(r.elapsed_ms)),
    ("timings.dns_ms", |r| time(r.timings.as_ref().and_then(|timings| timings.dns_ms))),
    ("timings.connect_ms", |r| time(r.timings.as_ref().and_then(|timings| timings.connect_ms))),
    ("timings.proxy_ms", |r| time(r.timings.as_ref().and_then(|timings| timings.proxy_ms))),
    ("timings.tls_ms", |r| time(r.timings.as_ref().and_then(|timings| timings.tls_ms))),
    ("timings.first_byte_ms", |r| {
        time(r.timings.as_ref().and_then(|timings| timings.first_byte_ms))
    }),
    ("timings.total_ms", |r| time(r.timings.as_ref().map(|timings| timings.total_ms))),
    ("pass", |r| plain(r.pass)),
    ("at", |r| text(&r.at)),
    ("promised_ms", |r| time(r.promised_ms)),
    ("refused.matched", |r| {
        some(r.refused.as_ref().and_then(|refused| refused.matched.as_deref()))
    }),
    ("refused.server", |r| some(r.refused.as_ref().and_then(|refused| refused.server.as_deref()))),
    ("refused.cf_ray", |r| some(r.refused.as_ref().and_then(|refused| refused.cf_ray.as_deref()))),
    ("refused.x_cache", |r| {
        some(r.refused.as_ref().and_then(|refused| refused.x_cache.as_deref()))
    }),
    ("refused.via", |r| some(r.refused.as_ref().and_then(|refused| refused.via.as_deref()))),
    ("refused.retry_after", |r| {
        some(r.refused.as_ref().and_then(|refused| refused.retry_after.as_deref()))
    }),
    ("refused.set_cookie_names", |r| {
        let names = r.refused.as_ref().map(|refused| refused.set_cookie_names.join(" "));
        names.map_or(Cell::Nothing, |names| Cell::Text(names.into()))
    }),
    ("refused.lossy", |r| r.refused.as_ref().map_or(Cell::Nothing, |refused| plain(refused.lossy))),
    ("meta", |r| some(r.meta.as_ref().map(super::item::Meta::as_str))),
];

/// The columns where none are chosen.
const USUAL: &str = "id,url,final_url,method,status,reason,ok,class,error.kind,error.message,attempts,\
                     proxy,exit,bytes_wire,bytes_body,body_file,elapsed_ms,pass,at";

impl Columns {
    /// The names, in order.
    pub fn names(&self) -> impl Iterator<Item = Cow<'_, str>> {
        self.0.iter().map(Column::name)
    }

    /// Adds the row of their names.
    pub(super) fn write_header(&self, out: &mut Vec<u8>) -> csv::Result<()> {
        write_row(out, self.names().map(|name| name.into_owned().into_bytes()))
    }

    /// Adds the row of a record.
    pub(super) fn write(&self, out: &mut Vec<u8>, record: &Record) -> csv::Result<()> {
        write_row(out, self.0.iter().map(|column| column.cell(record).into_bytes()))
    }
}

impl Default for Columns {
    fn default() -> Self {
        // Each of them is known; a test holds that.
        USUAL.parse().unwrap_or(Self(Vec::new()))
    }
}

impl FromStr for Columns {
    type Err = Error;

    /// Reads names with commas between them.
    ///
    /// # Errors
    /// `Config` for a column that there is not, with the one that may be meant, for one that is given
    /// twice, and for none at all.
    fn from_str(text: &str) -> Result<Self, Error> {
        let mut columns = Vec::new();
        for name in text.split(',').map(str::trim).filter(|name| !name.is_empty()) {
            let known = KNOWN.iter().position(|(known, _)| *known == name);
            let member = name.strip_prefix("meta.").filter(|member| !member.is_empty());
            let column = match (known, member) {
                (Some(at), _) => Column::Known(at),
                (None, Some(member)) => Column::Meta(member.to_owned()),
                (None, None) => return Err(unknown(name)),
            };
            if columns.contains(&column) {
                return Err(Error::config(format!(
                    "the column {name} is given twice; leave one out"
                )));
            }
            columns.push(column);
        }
        if columns.is_empty() {
            return Err(Error::config("there is no column; give some, such as id,url,status,ok"));
        }
        Ok(Self(columns))
    }
}

impl fmt::Display for Columns {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, name) in self.names().enumerate() {
            let comma = if at == 0 { "" } else { "," };
            write!(f, "{comma}{name}")?;
        }
        Ok(())
    }
}

impl Column {
    fn name(&self) -> Cow<'_, str> {
        match self {
            Self::Known(at) => KNOWN.get(*at).map_or(Cow::Borrowed(""), |(name, _)| (*name).into()),
            Self::Meta(member) => Cow::Owned(format!("meta.{member}")),
        }
    }

    fn cell(&self, record: &Record) -> String {
        let cell = match self {
            Self::Known(at) => KNOWN.get(*at).map_or(Cell::Nothing, |(_, get)| get(record)),
            Self::Meta(member) => member_of(record, member),
        };
        match cell {
            Cell::Nothing => String::new(),
            Cell::Plain(plain) => plain.into_owned(),
            Cell::Text(text) if text.starts_with(GUARDED) => format!("'{text}"),
            Cell::Text(text) => text.into_owned(),
        }
    }
}

/// What a cell held before it was guarded.
pub(super) fn unguarded(cell: &str) -> &str {
    cell.strip_prefix('\'').unwrap_or(cell)
}

fn member_of<'a>(record: &Record, member: &str) -> Cell<'a> {
    let object = record
        .meta
        .as_ref()
        .and_then(|meta| serde_json::from_str::<serde_json::Value>(meta.as_str()).ok());
    match object.as_ref().and_then(|object| object.get(member)) {
        None | Some(serde_json::Value::Null) => Cell::Nothing,
        Some(serde_json::Value::String(value)) => Cell::Text(value.clone().into()),
        Some(value @ (serde_json::Value::Bool(_) | serde_json::Value::Number(_))) => plain(value),
        Some(value) => Cell::Text(value.to_string().into()),
    }
}

fn text(text: &str) -> Cell<'_> {
    Cell::Text(Cow::Borrowed(text))
}

fn some(text: Option<&str>) -> Cell<'_> {
    text.map_or(Cell::Nothing, |text| Cell::Text(Cow::Borrowed(text)))
}

fn time<'a>(millis: Option<f64>) -> Cell<'a> {
    millis.map_or(Cell::Nothing, plain)
}

#[allow(clippy::needless_pass_by_value, reason = "numbers, by whatever closure has them")]
fn plain<'a>(value: impl ToString) -> Cell<'a> {
    Cell::Plain(value.to_string().into())
}

fn write_row(out: &mut Vec<u8>, cells: impl Iterator<Item = Vec<u8>>) -> csv::Result<()> {
    let mut writer = csv::WriterBuilder::new()
        .terminator(csv::Terminator::CRLF)
        .buffer_capacity(1024)
        .from_writer(out);
    writer.write_record(cells)?;
    Ok(writer.flush()?)
}

fn unknown(name: &str) -> Error {
    let near = KNOWN
        .iter()
        .map(|(known, _)| (distance(name, known), *known))
        .filter(|(distance, known)| *distance <= 1 + known.len() / 4)
        .min();
    // `kind` is the end of `error.kind`.
    let end = KNOWN.iter().map(|(known, _)| *known).find(|known| {
        known.rsplit_once('.').is_some_and(|(_, last)| last.eq_ignore_ascii_case(name))
    });
    let hint = match end.or(near.map(|(_, known)| known)) {
        Some(known) => format!("did you mean {known}?"),
        None => "docs/results.md lists them".to_owned(),
    };
    Error::config(format!("there is no column {name:?}; {hint}"))
}

/// How many letters have to be put in, taken out or changed.
fn distance(one: &str, other: &str) -> usize {
    let other: Vec<char> = other.chars().collect();
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (at, letter) in one.chars().enumerate() {
        let mut diagonal = at;
        let mut left = at + 1;
        for (cell, same) in row.iter_mut().skip(1).zip(other.iter().map(|other| *other == letter)) {
            let up = *cell;
            let changed = diagonal + usize::from(!same);
            left = changed.min(up + 1).min(left + 1);
            (diagonal, *cell) = (up, left);
        }
        if let Some(first) = row.first_mut() {
            *first = at + 1;
        }
    }
    row.last().copied().unwrap_or_default()
}

#[cfg(test)]
mod tests;
