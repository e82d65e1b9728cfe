//! `longhaul report`: its numbers against a second count, its page in a real browser.
#![cfg(all(feature = "cli", unix))]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "helpers of tests fail by panicking, as tests do"
)]

#[path = "../support/mod.rs"]
mod support;
#[allow(dead_code, reason = "its main is for the example")]
#[path = "../../examples/synthetic_results.rs"]
mod synthetic;

mod command;
mod documents;
mod hostile;
mod page;
mod recount;

use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use tempfile::TempDir;

/// A folder with results, in which the command is run.
struct Desk {
    folder: TempDir,
}

impl Desk {
    fn new() -> Self {
        Self { folder: tempfile::Builder::new().prefix("longhaul-").tempdir().unwrap() }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Writes records, one a line.
    fn write(&self, name: &str, records: &[Value]) {
        let lines: String = records.iter().map(|record| format!("{record}\n")).collect();
        fs::write(self.path(name), lines).unwrap();
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_longhaul"));
        command.env("COLUMNS", "110").env_remove("NO_COLOR").env_remove("RUST_LOG");
        command.current_dir(self.folder.path()).arg("report").args(arguments);
        command.stdin(Stdio::null());
        command
    }

    fn run(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().unwrap()
    }

    /// What a report prints that is made.
    fn report(&self, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        let errors = String::from_utf8(output.stderr).unwrap();
        assert_eq!((output.status.code(), errors.as_str()), (Some(0), ""), "{arguments:?}");
        String::from_utf8(output.stdout).unwrap()
    }

    fn json(&self, arguments: &[&str]) -> Value {
        serde_json::from_str(&self.report(&[arguments, &["--json"]].concat())).unwrap()
    }

    /// The error of a report that is not made.
    fn refused(&self, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        let errors = String::from_utf8(output.stderr).unwrap();
        assert_eq!((output.status.code(), output.stdout.as_slice()), (Some(2), &[][..]));
        errors
    }
}

/// Writes the records as a run with a name in .zst does.
fn write_packed(path: &Path, records: &[Value]) {
    let frames = records.chunks(1000).map(|records| {
        let lines: String = records.iter().map(|record| format!("{record}\n")).collect();
        zstd::bulk::compress(lines.as_bytes(), 3).unwrap()
    });
    fs::write(path, frames.collect::<Vec<_>>().concat()).unwrap();
}
