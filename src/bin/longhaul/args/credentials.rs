//! The flags about credentials for the targets.

use crate::values::{self, Secret};
use clap::Args;
use std::path::PathBuf;

/// Who the targets are told that we are.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct CredentialArgs {
    /// User and password for every target, as Basic credentials. Without the password it is that
    /// of the variable LONGHAUL_PASSWORD, which other users of this computer do not see. Default:
    /// those of each URL, else those of .netrc.
    #[arg(short, long, value_name = "USER[:PASSWORD]", value_parser = values::secret, help_heading = "Credentials")]
    pub(crate) user: Option<Secret>,

    /// The same from a file of one line, USER:PASSWORD. Default: none.
    #[arg(long, value_name = "FILE", help_heading = "Credentials")]
    pub(crate) user_file: Option<PathBuf>,

    /// Answer Digest challenges with these instead of sending them as Basic. Default: off.
    #[arg(long, help_heading = "Credentials")]
    pub(crate) digest: bool,

    /// A bearer token for every target; other users of this computer can see it here. Default:
    /// none.
    #[arg(long, value_name = "TOKEN", value_parser = values::secret, help_heading = "Credentials")]
    pub(crate) bearer: Option<Secret>,

    /// The same from a file of one line. Default: none.
    #[arg(long, value_name = "FILE", help_heading = "Credentials")]
    pub(crate) bearer_file: Option<PathBuf>,

    /// Credentials by host from this file, also with --no-env. Default: that of the variable NETRC,
    /// else ~/.netrc.
    #[arg(long, value_name = "FILE", help_heading = "Credentials")]
    pub(crate) netrc_file: Option<PathBuf>,

    /// Read no .netrc. Default: read it, as requests does.
    #[arg(long, help_heading = "Credentials")]
    pub(crate) no_netrc: bool,
}
