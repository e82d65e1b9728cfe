//! The form of results: JSON Lines, or a table.

use super::columns::Columns;
use super::record::Record;
use std::ffi::OsStr;
use std::io;
use std::path::Path;

/// The form of results.
#[non_exhaustive]
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Format {
    /// One JSON object a line, with everything.
    #[default]
    JsonLines,
    /// CSV (RFC 4180) with a row of names and these columns.
    Csv(Columns),
}

impl Format {
    /// What the name asks for: CSV with the usual columns for `.csv` and `.csv.zst`, else JSON Lines.
    pub fn of_name(path: &Path) -> Self {
        let name = path.file_name().unwrap_or_default();
        let unpacked = match Path::new(name).extension() {
            Some(extension) if extension.eq_ignore_ascii_case("zst") => path.file_stem(),
            _ => Some(name),
        };
        let extension = unpacked.map(Path::new).and_then(Path::extension).map(OsStr::to_owned);
        match extension.is_some_and(|extension| extension.eq_ignore_ascii_case("csv")) {
            true => Self::Csv(Columns::default()),
            false => Self::JsonLines,
        }
    }

    /// Adds a record to its line; `first` is whether it is the first of a file.
    pub(super) fn write(&self, out: &mut Vec<u8>, record: &Record, first: bool) -> io::Result<()> {
        match self {
            Self::JsonLines => {
                serde_json::to_writer(&mut *out, record)?;
                out.push(b'\n');
            }
            Self::Csv(columns) => {
                if first {
                    columns.write_header(out).map_err(io::Error::other)?;
                }
                columns.write(out, record).map_err(io::Error::other)?;
            }
        }
        Ok(())
    }
}
