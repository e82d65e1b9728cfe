//! The command `longhaul`: what was typed becomes a plan, and the plan a run.
//!
//! The binary uses the public interface of the library alone, and holds nothing that a program of a
//! user's would have to copy. Results go to standard output or into a file, everything else to
//! standard error.

mod args;
mod check;
mod connection;
mod cookies;
mod credentials;
mod demo;
mod exit;
mod get;
mod metrics;
mod open_files;
mod output;
mod plan;
mod plan_command;
mod policy;
mod progress;
mod proxies;
mod refusals;
mod run;
mod signals;
mod summary;
mod tables;
mod usage;
mod values;
mod voice;
mod window;
mod world;

use args::{Cli, Command};
use clap::Parser;
use exit::Exit;
use std::process::ExitCode;
use usage::UsageError;

fn main() -> ExitCode {
    open_files::allow_all();
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
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
    let outcome = match &cli.command {
        Command::Run(args) => {
            start_log(args.voice.quiet, args.voice.verbose);
            run::command(args)
        }
        Command::Check(args) => {
            start_log(false, args.verbose);
            check::command(args)
        }
        Command::Get(args) => {
            // The first -v is for the steps, which say more than the log.
            start_log(args.quiet, if args.verbose < 2 { 0 } else { args.verbose });
            get::command(args)
        }
        Command::Plan(args) => plan_command::command(args),
        Command::Demo(args) => {
            start_log(args.voice.quiet, args.voice.verbose);
            demo::command(args)
        }
    };
    match outcome {
        Ok(exit) => exit.into(),
        Err(usage) => refuse(&usage),
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
