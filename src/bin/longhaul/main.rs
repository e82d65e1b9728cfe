//! The command `longhaul`: what was typed becomes a plan, and the plan a run.
//!
//! The binary uses the public interface of the library alone, and holds nothing that a program of a
//! user's would have to copy. Results go to standard output or into a file, everything else to
//! standard error.

mod archive;
mod args;
mod check;
mod config;
mod connection;
mod cookies;
mod credentials;
mod demo;
mod exit;
mod form;
mod get;
mod metrics;
mod open_files;
mod output;
mod papers;
mod plan;
mod plan_command;
mod policy;
mod progress;
mod proxies;
mod refusals;
mod report_command;
mod run;
mod signals;
mod summary;
mod tables;
mod usage;
mod values;
mod voice;
mod window;
mod world;

use args::Command;
use config::{Read, Refusal, Settled, Sources, Variables};
use exit::Exit;
use std::process::ExitCode;
use usage::UsageError;

fn main() -> ExitCode {
    open_files::allow_all();
    let variables = Variables::new(std::env::vars_os());
    let arguments = std::env::args_os().collect();
    let read = Read(&|path| std::fs::read_to_string(path));
    let (cli, sources) = match config::settle(arguments, &variables, read) {
        Ok(Settled::Command(cli, sources)) => (cli, sources),
        Ok(Settled::Print(text, sources)) => {
            start_log(false, 0);
            warn(&sources);
            return end(output::print(text.trim_end()));
        }
        Err(Refusal::Usage(usage)) => return refuse(&usage),
        Err(Refusal::CommandLine(error)) => {
            return match UsageError::from_clap(&error) {
                Some(usage) => refuse(&usage),
                None => {
                    // Nobody to read the help is no failure.
                    let _ = error.print();
                    Exit::SUCCESS.into()
                }
            };
        }
    };
    let (quiet, verbose) = match &cli.command {
        Command::Run(args) => (args.voice.quiet, args.voice.verbose),
        Command::Check(args) => (false, args.verbose),
        // The first -v is for the steps, which say more than the log.
        Command::Get(args) => (args.quiet, if args.verbose < 2 { 0 } else { args.verbose }),
        Command::Plan(_) | Command::Report(_) | Command::Completions(_) | Command::Man(_) => {
            (false, 0)
        }
        Command::Demo(args) => (args.voice.quiet, args.voice.verbose),
    };
    start_log(quiet, verbose);
    warn(&sources);
    let outcome = match cli.command {
        Command::Run(mut args) => {
            args.settings.clone_from(&sources.summary);
            run::command(&args)
        }
        Command::Check(args) => check::command(&args),
        Command::Get(args) => get::command(&args),
        Command::Plan(args) => plan_command::command(&args),
        Command::Report(args) => report_command::command(&args),
        Command::Demo(args) => demo::command(&args),
        Command::Completions(args) => papers::completions(&args),
        Command::Man(args) => papers::man(&args),
    };
    end(outcome.map_err(|usage| sources.locate(usage)))
}

fn end(outcome: Result<Exit, UsageError>) -> ExitCode {
    match outcome {
        Ok(exit) => exit.into(),
        Err(usage) => refuse(&usage),
    }
}

fn warn(sources: &Sources) {
    for warning in &sources.warnings {
        log::warn!(target: "longhaul::command", "{warning}");
    }
}

fn refuse(usage: &UsageError) -> ExitCode {
    progress::print(&usage.to_string());
    Exit::USAGE.into()
}

/// The own records by default, and those of the libraries from warnings on: who asks for more wants to
/// know what the run does. `docs/logging.md` has the targets.
fn start_log(quiet: bool, verbose: u8) {
    let usual = match (quiet, verbose) {
        (true, _) => "error",
        (false, 0) => "warn",
        (false, 1) => "warn,longhaul=info",
        (false, 2) => "warn,longhaul=debug",
        (false, _) => "trace",
    };
    env_logger::Builder::from_env(env_logger::Env::default().default_filter_or(usual))
        .target(env_logger::Target::Pipe(Box::new(progress::LogTarget)))
        .init();
}
