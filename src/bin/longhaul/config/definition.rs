//! The arguments, with the flags that have to do with values from elsewhere.
//!
//! The commands are defined without them and need not know that there are any.

use crate::args::{Cli, SettingsArgs};
use clap::{Arg, ArgAction, Args, Command, CommandFactory};
use std::collections::BTreeSet;

/// Commands that send nothing and decide nothing, and so have nothing to be configured.
const NOT_CONFIGURED: &[&str] = &["completions", "man"];

/// The arguments with those that say where values come from, as the help shows them.
pub(crate) fn definition() -> Command {
    Cli::command().mut_subcommands(|command| match is_configured(&command) {
        true => {
            let about = command.get_about().cloned().unwrap_or_default();
            SettingsArgs::augment_args(command).about(about)
        }
        false => command,
    })
}

/// The definition with the flags that take others back: `--no-rate`, `--netrc` for `--no-netrc`. They
/// are the same for every flag, and so are told in one sentence instead of in the help.
pub(super) fn with_opposites(command: Command) -> Command {
    command.mut_subcommands(|mut command| {
        if !is_configured(&command) {
            return command;
        }
        let settings = names_of_settings();
        let own: Vec<(String, String)> = command
            .get_arguments()
            .filter_map(|arg| Some((arg.get_id().to_string(), arg.get_long()?.to_owned())))
            .collect();
        let known: BTreeSet<&String> = own.iter().map(|(_, long)| long).collect();
        for (id, long) in &own {
            let opposite = opposite_of(long);
            if !settings.contains(long) && !known.contains(&opposite) {
                let arg = Arg::new(opposite.clone()).long(opposite);
                command = command.arg(arg.action(ArgAction::SetTrue).overrides_with(id).hide(true));
            }
        }
        command
    })
}

/// Whether values of this command can come from elsewhere.
pub(super) fn is_configured(command: &Command) -> bool {
    !NOT_CONFIGURED.contains(&command.get_name())
}

/// The flags that say where values come from cannot come from there themselves.
pub(super) fn names_of_settings() -> BTreeSet<String> {
    let command = SettingsArgs::augment_args(Command::new(""));
    command.get_arguments().filter_map(Arg::get_long).map(ToOwned::to_owned).collect()
}

/// The flag that takes another back.
pub(super) fn opposite_of(long: &str) -> String {
    match long.strip_prefix("no-") {
        Some(positive) => positive.to_owned(),
        None => format!("no-{long}"),
    }
}
