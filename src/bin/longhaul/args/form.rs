//! The flags of the form of results.

use crate::values;
use clap::{Args, ValueEnum};

/// How results are written.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct FormArgs {
    /// The form of the results. Default: that of the name in `-o` (.csv, .csv.zst), else jsonl.
    #[arg(long, value_name = "FORM", help_heading = "Input and results")]
    pub(crate) format: Option<Form>,

    /// The columns of a CSV file, with commas between, such as id,url,status,error.kind,meta.shop.
    /// Default: 19 of them, from id to at.
    #[arg(long, value_name = "NAMES", value_parser = values::columns, help_heading = "Input and results")]
    pub(crate) columns: Option<longhaul::batch::Columns>,

    /// Go on in another results file from this size on: results.1.jsonl, results.2.jsonl and so on.
    /// Default: one file.
    #[arg(long, value_name = "SIZE", value_parser = values::size, help_heading = "Input and results")]
    pub(crate) rotate_size: Option<u64>,
}

/// The forms there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Form {
    /// One JSON object a line.
    Jsonl,
    /// A table with a row of names.
    Csv,
}
