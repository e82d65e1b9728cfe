//! The flags that say where values come from that were not typed.

use clap::Args;
use std::path::PathBuf;

/// Which file, which profile; every command that can be configured takes them.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct SettingsArgs {
    /// Take what is not typed from this file. Default: that of the variable LONGHAUL_CONFIG, else
    /// longhaul.toml in the current folder, else longhaul/longhaul.toml in the user's folder of
    /// configurations.
    #[arg(long, value_name = "FILE", help_heading = "Settings")]
    pub(crate) config: Option<PathBuf>,

    /// Read no such file. Default: read it where there is one.
    #[arg(long, conflicts_with = "config", help_heading = "Settings")]
    pub(crate) no_config: bool,

    /// Take the values of this profile: night, wide, or one of the file. Default: that of the variable
    /// LONGHAUL_PROFILE, else none.
    #[arg(long, value_name = "NAME", help_heading = "Settings")]
    pub(crate) profile: Option<String>,

    /// Print every value with where it comes from, in the form of the file, and do nothing else.
    /// Default: off.
    #[arg(long, help_heading = "Settings")]
    pub(crate) print_config: bool,
}
