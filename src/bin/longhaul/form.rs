//! The form of results, settled before anything is done.

use crate::args::{Form, FormArgs};
use crate::usage::UsageError;
use longhaul::batch::Format;
use std::path::Path;

/// The form that the flags and the name of the results ask for.
pub(crate) fn resolve(args: &FormArgs, output: Option<&Path>) -> Result<Format, UsageError> {
    let FormArgs { format, columns, rotate_size } = args;
    if rotate_size.is_some() && output.is_none() {
        let text = "standard output has no size; name the results file with -o";
        return Err(UsageError::new("--rotate-size", text));
    }
    let of_name = output.map_or(Format::JsonLines, Format::of_name);
    let format = match (format, columns) {
        (Some(Form::Jsonl), Some(_)) => {
            let text = "JSON Lines have everything; leave --columns out, or give --format csv";
            return Err(UsageError::new("--columns", text));
        }
        (Some(Form::Jsonl), None) => Format::JsonLines,
        (Some(Form::Csv), columns) => Format::Csv(columns.clone().unwrap_or_default()),
        (None, Some(columns)) if matches!(of_name, Format::Csv(_)) => Format::Csv(columns.clone()),
        (None, Some(_)) => {
            let text =
                "JSON Lines have no columns; add --format csv, or name a file in .csv with -o";
            return Err(UsageError::new("--columns", text));
        }
        (None, None) => of_name,
    };
    Ok(format)
}
