//! The flags of the commands that print what other programs read.

use clap::Args;
use clap_complete::Shell;
use std::path::PathBuf;

/// `longhaul completions`.
#[derive(Debug, Clone, Args)]
#[command(after_help = "The file of zsh is _longhaul, in a folder of $fpath.\n\n\
                  Examples:\n  \
                  longhaul completions bash > ~/.local/share/bash-completion/completions/longhaul\n  \
                  longhaul completions zsh > ~/.zfunc/_longhaul\n  \
                  longhaul completions fish > ~/.config/fish/completions/longhaul.fish")]
pub(crate) struct CompletionsArgs {
    /// The shell. Default: none; it has to be there.
    #[arg(value_name = "SHELL")]
    pub(crate) shell: Shell,
}

/// `longhaul man`.
#[derive(Debug, Clone, Args)]
#[command(after_help = "Examples:\n  longhaul man run > longhaul-run.1\n  \
                  longhaul man --dir ~/.local/share/man/man1")]
pub(crate) struct ManArgs {
    /// The command whose page is printed. Default: that of longhaul itself, which names the others.
    #[arg(value_name = "COMMAND")]
    pub(crate) command: Option<String>,

    /// Write the pages of all commands into this folder instead, as longhaul.1, longhaul-run.1 and so
    /// on. Default: print one.
    #[arg(long, value_name = "DIR", conflicts_with = "command")]
    pub(crate) dir: Option<PathBuf>,
}
