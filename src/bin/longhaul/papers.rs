//! Completions and manual pages, from the definition that the arguments are parsed by.

use crate::args::{CompletionsArgs, ManArgs};
use crate::config;
use crate::exit::Exit;
use crate::output;
use crate::usage::UsageError;
use clap::{Arg, Command, ValueHint};
use clap_mangen::Man;
use std::any::TypeId;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// What the program is called in a shell.
const NAME: &str = "longhaul";

/// `longhaul completions`.
///
/// # Errors
/// Standard output takes nothing.
pub(crate) fn completions(args: &CompletionsArgs) -> Result<Exit, UsageError> {
    let mut text = Vec::new();
    clap_complete::generate(args.shell, &mut with_hints(config::definition()), NAME, &mut text);
    output::print(String::from_utf8_lossy(&text).trim_end())
}

/// `longhaul man`.
///
/// # Errors
/// A command that there is not, a folder that takes nothing.
pub(crate) fn man(args: &ManArgs) -> Result<Exit, UsageError> {
    let pages = pages().map_err(|error| UsageError::new("", error.to_string()))?;
    match (&args.command, &args.dir) {
        (_, Some(folder)) => {
            for page in &pages {
                write(folder, page)?;
            }
            Ok(Exit::SUCCESS)
        }
        (None, None) => output::print(pages.first().map_or("", |page| page.text.trim_end())),
        (Some(name), None) => match pages.iter().find(|page| page.command == *name) {
            Some(page) => output::print(page.text.trim_end()),
            None => {
                let names: Vec<&str> = pages.iter().map(|page| page.command.as_str()).collect();
                let text =
                    format!("there is no command '{name}'; give one of {}", names.join(", "));
                Err(UsageError::new("COMMAND", text))
            }
        },
    }
}

fn write(folder: &Path, page: &Page) -> Result<(), UsageError> {
    let path = folder.join(&page.file);
    fs::write(&path, &page.text).map_err(|error| {
        let text = format!("{} cannot be written: {error}; name a folder", path.display());
        UsageError::new("--dir", text)
    })
}

/// A page of the manual.
struct Page {
    command: String,
    file: String,
    text: String,
}

/// That of longhaul, then those of its commands.
fn pages() -> io::Result<Vec<Page>> {
    let mut command = config::definition().disable_help_subcommand(true);
    command.build();
    let commands = [&command].into_iter().chain(command.get_subcommands());
    commands.map(page).collect()
}

fn page(command: &Command) -> io::Result<Page> {
    let man = Man::new(command.clone());
    let mut raw = Vec::new();
    man.render(&mut raw)?;
    let file = man.get_filename();
    let title = file.trim_end_matches(".1").to_uppercase();
    let version = env!("CARGO_PKG_VERSION");
    let mut text = String::new();
    for line in String::from_utf8_lossy(&raw).lines() {
        // An empty date is left out there, and what stands behind it takes its place.
        let line = match line.starts_with(".TH ") {
            true => &format!(".TH {title} 1 \"\" \"longhaul {version}\" \"User Commands\""),
            false => line.trim_end(),
        };
        text.push_str(line);
        text.push('\n');
    }
    // Two breaks around an empty line are one space between paragraphs.
    let mut text = text.replace(".br\n\n.br\n", ".sp\n");
    text.push_str(if command.get_name() == NAME {
        include_str!("papers/longhaul.roff")
    } else {
        SEE
    });
    Ok(Page { command: command.get_name().to_owned(), file, text })
}

/// The end of a command's page.
const SEE: &str = ".SH SEE ALSO\n\\fBlonghaul\\fR(1)\n";

/// What takes a path completes to files or folders, as its type says.
fn with_hints(command: Command) -> Command {
    let command = command.mut_args(|arg: Arg| {
        let is_path = arg.get_value_parser().type_id() == TypeId::of::<PathBuf>();
        let names = arg.get_value_names().unwrap_or_default();
        match (is_path, names.iter().any(|name| name == "DIR")) {
            (false, _) => arg,
            (true, true) => arg.value_hint(ValueHint::DirPath),
            (true, false) => arg.value_hint(ValueHint::AnyPath),
        }
    });
    command.mut_subcommands(with_hints)
}
