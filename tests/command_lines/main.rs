//! Every command line of the documents and of `--help` is run, and does what they say.
//!
//! A line that somebody copies out of a document and that fails is worse than no line. So each is run
//! as it stands, in a folder with the files that its user would have, against servers on this machine
//! that stand for the hosts and proxies of the documents (`world.rs`). It has to end with the code that
//! the document says, which is 0 where it says nothing, and what the document shows as its output has
//! to be in it (`blocks.rs` has the rules, `shape.rs` the comparison). What cannot be run is in a table
//! with what holds it instead (`held.rs`).
#![cfg(all(feature = "cli", target_os = "linux"))]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "helpers of tests fail by panicking, as tests do"
)]

#[path = "../support/mod.rs"]
mod support;

mod blocks;
mod from_requests;
mod held;
mod shape;
mod stock;
mod world;

use std::collections::{BTreeSet, HashMap};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use blocks::{Line, documents, lines_of, root};
use shape::{Closeness, missing};
use tempfile::TempDir;
use world::World;

#[test]
fn every_command_line_of_the_documents() {
    let (all, wrong): (Vec<Vec<Line>>, Vec<Vec<String>>) =
        documents().iter().map(|document| lines_of(document)).unzip();
    let mut wrong = wrong.concat();
    let Some(world) = World::new(hosts(all.iter().flatten())) else { return };
    let (mut run, mut held) = (0, 0);
    for lines in &all {
        let folder = Folder::new();
        for line in lines {
            held::assert_names_exist(line);
            if held::is_held(line) {
                held += 1;
                continue;
            }
            run += 1;
            wrong.extend(fault(&world, &folder.path(), line));
        }
    }
    println!("{run} command lines were run, {held} are held elsewhere");
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n\n"));
    assert!(run >= 28, "only {run} command lines were found");
}

#[test]
fn every_example_of_the_help() {
    let lines: Vec<Line> = commands().iter().flat_map(|command| examples_of(command)).collect();
    let Some(world) = World::new(hosts(&lines)) else { return };
    let folder = Folder::new();
    let wrong: Vec<String> =
        lines.iter().filter_map(|line| fault(&world, &folder.path(), line)).collect();
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n\n"));
}

/// The commands that `longhaul --help` lists.
fn commands() -> Vec<String> {
    let help = help_of(&["--help"]);
    let listed = help.lines().skip_while(|line| *line != "Commands:").skip(1);
    let names = listed.map_while(|line| line.split_whitespace().next());
    names.filter(|name| *name != "help").map(str::to_owned).collect()
}

fn help_of(arguments: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_longhaul"))
        .args(arguments)
        .env("COLUMNS", "200")
        .output()
        .unwrap();
    assert!(output.status.success(), "longhaul {arguments:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// The lines below `Examples:` in the help of a command, which has to have some.
fn examples_of(command: &str) -> Vec<Line> {
    let help = help_of(&[command, "--help"]);
    let lines: Vec<Line> = help
        .lines()
        .skip_while(|line| *line != "Examples:")
        .skip(1)
        .map_while(|line| line.strip_prefix("  "))
        .map(|line| Line {
            place: format!("longhaul {command} --help"),
            text: line.to_owned(),
            shown: None,
        })
        .collect();
    assert!(!lines.is_empty(), "longhaul {command} --help has no examples");
    let starts = format!("longhaul {command}");
    assert!(lines.iter().all(|line| line.text.contains(&starts)), "{lines:?}");
    lines
}

/// The hosts that the lines name, and those of the list.
fn hosts<'a>(lines: impl IntoIterator<Item = &'a Line>) -> BTreeSet<String> {
    let mut found: BTreeSet<String> = stock::HOSTS.iter().map(|host| (*host).to_owned()).collect();
    for line in lines {
        for rest in line.text.split("://").skip(1) {
            let end = rest.find(|character: char| {
                !(character.is_ascii_alphanumeric() || matches!(character, '.' | '-'))
            });
            found.insert(rest[..end.unwrap_or(rest.len())].to_owned());
        }
    }
    found
}

/// The folder that lines are typed in; those beside it are its own, too.
struct Folder {
    around: TempDir,
}

impl Folder {
    fn new() -> Self {
        let around = tempfile::tempdir().unwrap();
        fs::create_dir(around.path().join("here")).unwrap();
        Self { around }
    }

    fn path(&self) -> PathBuf {
        self.around.path().join("here")
    }
}

/// What is wrong with this line, run in this folder.
fn fault(world: &World, folder: &Path, line: &Line) -> Option<String> {
    let Line { place, text, shown } = line;
    if !line.programs().iter().all(|program| is_there(program)) {
        return None;
    }
    stock::fill(folder, line, world);
    let ended = world.run(folder, text);
    let output = &ended.output;
    if ended.code != line.exit_code() {
        return Some(format!(
            "{place}: `{text}` ended with {} and not with {}:\n{output}",
            ended.code,
            line.exit_code()
        ));
    }
    if ["secret", "password"].iter().any(|word| output.contains(word)) {
        return Some(format!("{place}: `{text}` shows a password:\n{output}"));
    }
    // Nothing varies in a plan that is not simulated, and in what is not run.
    let is_plan = text.starts_with("longhaul plan") && !text.contains("--simulate");
    let is_exact = is_plan || text.contains("--print-config");
    let closeness = if is_exact { Closeness::Letters } else { Closeness::Shape };
    let absent = missing(shown.as_deref()?, output, closeness)?;
    Some(format!("{place}: `{text}` does not say\n  {absent}\nbut\n{output}"))
}

/// Whether a program of a line is installed; a test that demands all fails without it.
fn is_there(program: &str) -> bool {
    let from_pypi = support::httpbin::programs().join(program);
    program == "longhaul" || from_pypi.exists() || support::require(program).is_some()
}

/// What stands in the midst of a text is not run, but a flag that it names with a command is one of the
/// command, and what it names for cargo is there.
#[test]
fn every_flag_behind_a_command_in_the_text() {
    let mut helps: HashMap<String, String> = HashMap::new();
    for document in documents() {
        let text = fs::read_to_string(root().join(&document)).unwrap();
        let is_line = |span: &&str| span.contains("cargo ") && !span.contains('\n');
        for span in text.split('`').filter(is_line) {
            let place = document.display().to_string();
            held::assert_names_exist(&Line { place, text: span.to_owned(), shown: None });
        }
        for span in text.split('`').filter(|span| span.starts_with("longhaul ")) {
            let line = span.split('|').next().unwrap_or_default();
            let words: Vec<&str> = line.split_whitespace().collect();
            let Some(command) = words.get(1).filter(|word| !word.starts_with('-')) else {
                continue;
            };
            let help = helps
                .entry((*command).to_owned())
                .or_insert_with(|| help_of(&[*command, "--help"]));
            for flag in words.iter().filter(|word| word.starts_with('-')) {
                let flag = flag.trim_end_matches(['.', ',', ';']);
                let is_there = help.split([' ', ',', '\n', '.']).any(|word| word == flag);
                assert!(is_there, "{}: `{span}`: there is no {flag}", document.display());
            }
        }
    }
}
