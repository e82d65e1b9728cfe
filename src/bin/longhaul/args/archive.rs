//! The flags of WARC files.

use crate::values;
use clap::Args;
use std::path::PathBuf;

/// What becomes of the messages themselves.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct ArchiveArgs {
    /// Keep what goes over the wire in WARC 1.1 files PREFIX-00000.warc.gz and so on, in place of
    /// --bodies. Default: not kept.
    #[arg(long, value_name = "PREFIX.warc.gz", help_heading = "Input and results")]
    pub(crate) warc: Option<PathBuf>,

    /// With --warc: begin another file from this size on, such as 500M. Default: 1G.
    #[arg(long, value_name = "SIZE", value_parser = values::size, help_heading = "Input and results")]
    pub(crate) warc_size: Option<u64>,

    /// With --warc: write passwords, tokens and cookies of requests as they were sent. Default:
    /// `***` in their place.
    #[arg(long, help_heading = "Input and results")]
    pub(crate) warc_credentials: bool,
}
