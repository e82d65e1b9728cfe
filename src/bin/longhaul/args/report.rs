//! The flags of `longhaul report`.

use clap::Args;
use std::path::PathBuf;

/// `longhaul report`.
#[derive(Debug, Clone, Default, Args)]
#[command(
    after_help = "Reads what `longhaul run` wrote, plain or compressed (.zst), also while a run \
                  still writes it.\n\
                  Exit codes: 0 the report is made, 2 the results or the page cannot be read or \
                  written.\n\n\
                  Examples:\n  \
                  longhaul report results.jsonl\n  \
                  longhaul report results.jsonl --html report.html\n  \
                  longhaul report monday.jsonl tuesday.jsonl --json"
)]
pub(crate) struct ReportArgs {
    /// The results of a run; `-` is standard input. Default: none, one has to be given.
    #[arg(value_name = "RESULTS")]
    pub(crate) results: PathBuf,

    /// The results of another run, which is compared with the first. Default: no comparison.
    #[arg(value_name = "RESULTS2")]
    pub(crate) other: Option<PathBuf>,

    /// Write one page with tables and drawings into this file, for any browser and without a
    /// network. Default: no page.
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub(crate) html: Option<PathBuf>,

    /// Print all numbers as one JSON object. Default: tables.
    #[arg(long, help_heading = "Output")]
    pub(crate) json: bool,
}
