//! The records of a results file, one after the other: lines of JSON, or rows of a table.
//!
//! A row of a table may hold line feeds between quotes, so its end is the first line feed with an even
//! number of quotes before it. A row without an end is torn. A quote that somebody has put into the
//! middle of the file would make all that follows such a row; therefore what is torn must not hold
//! lines that are rows.

use crate::batch::columns::{Columns, unguarded};
use crate::batch::content::unreadable;
use crate::batch::format::Format;
use crate::batch::record::{VERSION, is_of_the_run, newer_version, not_a_record};
use crate::error::{Error, ErrorKind};
use serde::Deserialize;
use std::borrow::Cow;
use std::io::BufRead;
use std::path::Path;

/// What a resumption wants to know of a record.
#[derive(Deserialize)]
pub(super) struct Head<'a> {
    v: u32,
    #[serde(borrow)]
    pub(super) id: Cow<'a, str>,
    pub(super) ok: bool,
    #[serde(borrow)]
    class: Cow<'a, str>,
    #[serde(borrow)]
    error: Option<HeadError<'a>>,
}

#[derive(Deserialize)]
struct HeadError<'a> {
    #[serde(borrow)]
    kind: Cow<'a, str>,
}

impl Head<'_> {
    pub(super) fn is_again(&self, retry_failed: bool) -> bool {
        let kind = self.error.as_ref().map(|error| &*error.kind);
        !self.ok && (retry_failed || is_of_the_run(&self.class, kind))
    }
}

/// The records of a results file.
pub(super) struct Rows<'a> {
    path: &'a Path,
    reader: Box<dyn BufRead + Send + 'a>,
    format: &'a Format,
    /// Of a table, once its first row was read.
    table: Option<Table>,
    /// The bytes of the record that was read last, with its line feed.
    pub(super) buffer: Vec<u8>,
    /// Lines that were read.
    lines: u64,
    /// The line on which that record begins.
    number: u64,
    /// Up to where the file is whole.
    pub(super) complete: u64,
    pub(super) line_feed_missing: bool,
    pub(super) torn: u64,
}

/// Where a table has what a resumption wants to know.
#[derive(Debug, Clone, Copy)]
struct Table {
    width: usize,
    id: usize,
    ok: usize,
    class: usize,
    kind: usize,
}

/// What stands at the place that was read.
pub(super) enum Row<'a> {
    Record(Head<'a>),
    /// The names of a table.
    Names,
    Blank,
}

impl<'a> Rows<'a> {
    pub(super) fn new(
        reader: Box<dyn BufRead + Send + 'a>,
        path: &'a Path,
        format: &'a Format,
    ) -> Self {
        Self {
            path,
            reader,
            format,
            table: None,
            buffer: Vec::new(),
            lines: 0,
            number: 0,
            complete: 0,
            line_feed_missing: false,
            torn: 0,
        }
    }

    /// The next one; `None` at the end, which may be torn.
    pub(super) fn read(&mut self) -> Result<Option<Row<'_>>, Error> {
        match self.format {
            Format::JsonLines => self.read_json(),
            Format::Csv(wanted) => self.read_row(wanted),
        }
    }

    fn read_json(&mut self) -> Result<Option<Row<'_>>, Error> {
        self.buffer.clear();
        self.number = self.lines + 1;
        let length = self.read_line()?;
        if length == 0 {
            return Ok(None);
        }
        let ended = self.buffer.ends_with(b"\n");
        let text = without_mark(&self.buffer, self.number);
        if text.iter().all(u8::is_ascii_whitespace) {
            self.complete += length;
            return Ok(Some(Row::Blank));
        }
        match serde_json::from_slice::<Head<'_>>(text) {
            Ok(head) if head.v > VERSION => Err(self.wrong(&newer_version(head.v))),
            Ok(head) => {
                self.complete += length;
                self.line_feed_missing = !ended;
                Ok(Some(Row::Record(head)))
            }
            // A line without an end is the last one, and torn; one with an end never was.
            Err(_) if !ended => {
                self.torn = length;
                Ok(None)
            }
            Err(error) => Err(self.wrong(&not_a_record(&error))),
        }
    }

    fn read_row(&mut self, wanted: &Columns) -> Result<Option<Row<'_>>, Error> {
        self.buffer.clear();
        self.number = self.lines + 1;
        let mut quotes = 0;
        loop {
            let from = self.buffer.len();
            let length = self.read_line()?;
            let line = self.buffer.get(from..).unwrap_or_default();
            quotes += line.iter().filter(|byte| **byte == b'"').count();
            if length > 0 && line.ends_with(b"\n") {
                if quotes % 2 == 0 {
                    break;
                }
            } else if self.buffer.is_empty() {
                return Ok(None);
            } else {
                self.look_for_rows_in_the_torn()?;
                self.torn = self.buffer.len() as u64;
                return Ok(None);
            }
        }
        self.complete += self.buffer.len() as u64;
        if self.text().iter().all(u8::is_ascii_whitespace) {
            return Ok(Some(Row::Blank));
        }
        let cells = cells(self.text());
        let Some(table) = self.table else {
            self.table = Some(self.table_of(&cells, wanted)?);
            return Ok(Some(Row::Names));
        };
        if cells.len() != table.width {
            let text =
                format!("a row of {} cells, where there are {} columns", cells.len(), table.width);
            return Err(self.wrong(&Error::local(ErrorKind::InvalidJson, text)));
        }
        let cell = |at: usize| cells.get(at).map(|cell| unguarded(cell)).unwrap_or_default();
        let kind = Some(cell(table.kind)).filter(|kind| !kind.is_empty());
        Ok(Some(Row::Record(Head {
            v: VERSION,
            id: Cow::Owned(cell(table.id).to_owned()),
            ok: cell(table.ok) == "true",
            class: Cow::Owned(cell(table.class).to_owned()),
            error: kind.map(|kind| HeadError { kind: Cow::Owned(kind.to_owned()) }),
        })))
    }

    /// The first row names the columns, and has to have those that tell what is done.
    fn table_of(&self, names: &[String], wanted: &Columns) -> Result<Table, Error> {
        let path = self.path.display();
        let place = |name: &str| {
            names.iter().position(|column| column == name).ok_or_else(|| {
                Error::config(format!(
                    "{path} has no column {name}, so nothing tells what is done; a table that is to be \
                     resumed needs the columns id, ok, class and error.kind: begin another one"
                ))
            })
        };
        let table = Table {
            width: names.len(),
            id: place("id")?,
            ok: place("ok")?,
            class: place("class")?,
            kind: place("error.kind")?,
        };
        if !wanted.names().eq(names.iter().map(String::as_str)) {
            let held = names.join(",");
            return Err(Error::config(format!(
                "{path} has other columns than those that are to be written: give {held}"
            )));
        }
        Ok(table)
    }

    fn look_for_rows_in_the_torn(&self) -> Result<(), Error> {
        let Some(Table { width, .. }) = self.table.filter(|table| table.width > 1) else {
            return Ok(());
        };
        let lines = self.buffer.split_inclusive(|byte| *byte == b'\n').skip(1);
        for line in lines.filter(|line| line.ends_with(b"\n")) {
            if cells(line).len() == width {
                let text = "a quote that does not end, with whole rows behind it".to_owned();
                return Err(self.wrong(&Error::local(ErrorKind::InvalidJson, text)));
            }
        }
        Ok(())
    }

    fn read_line(&mut self) -> Result<u64, Error> {
        self.lines += 1;
        let read = self.reader.read_until(b'\n', &mut self.buffer);
        Ok(read.map_err(|error| unreadable(self.path, error))? as u64)
    }

    /// The record, without a byte order mark.
    pub(super) fn text(&self) -> &[u8] {
        without_mark(&self.buffer, self.number)
    }

    /// The error of the record that was read last.
    pub(super) fn wrong(&self, error: &Error) -> Error {
        let (name, line) = (self.path.display(), self.number.max(1));
        let text = format!(
            "{name}:{line}: {}; nothing was changed: repair or remove this line, or name another \
             file",
            error.message()
        );
        Error::local(ErrorKind::InvalidJson, text)
    }
}

/// What stands on this line, without a byte order mark.
fn without_mark(text: &[u8], line: u64) -> &[u8] {
    if line == 1 { text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text) } else { text }
}

/// The cells of one row.
fn cells(row: &[u8]) -> Vec<String> {
    let mut reader = csv::ReaderBuilder::new()
        .has_headers(false)
        .flexible(true)
        .buffer_capacity(row.len().max(1))
        .from_reader(row);
    let mut record = csv::ByteRecord::new();
    match reader.read_byte_record(&mut record) {
        Ok(true) => record.iter().map(|cell| String::from_utf8_lossy(cell).into_owned()).collect(),
        _ => Vec::new(),
    }
}
