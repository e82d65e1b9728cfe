//! The flags about cookies.

use clap::Args;
use std::path::PathBuf;

/// Which cookies a run begins with, and where they go.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct CookieArgs {
    /// Cookies that every worker and every proxy begins with, each with a copy: a file in
    /// Netscape's format (curl, wget, exporters of browsers) or JSON. Default: none.
    #[arg(short = 'b', long = "cookies", value_name = "FILE", help_heading = "Requests")]
    pub(crate) from: Option<PathBuf>,

    /// Where the cookies go at the end, for each site those of the worker and proxy that the site
    /// set one for last: JSON where the name ends in .json, else Netscape's format. May be the
    /// file of --cookies. Default: nowhere.
    #[arg(short = 'c', long, value_name = "FILE", help_heading = "Requests")]
    pub(crate) cookie_jar: Option<PathBuf>,
}
