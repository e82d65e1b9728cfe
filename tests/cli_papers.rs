//! What `longhaul completions` and `longhaul man` print, read by those whom it is for: real shells and
//! the real programs of the manual.
#![cfg(feature = "cli")]
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "helpers of tests fail by panicking, as tests do"
)]

mod support;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

fn longhaul(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_longhaul"));
    command.args(arguments).stdin(Stdio::null()).output().unwrap()
}

/// What is printed, with nothing on standard error.
fn printed(arguments: &[&str]) -> String {
    let output = longhaul(arguments);
    let error = String::from_utf8(output.stderr).unwrap();
    assert_eq!((output.status.code(), error.as_str()), (Some(0), ""), "{arguments:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// The completions for a shell, as a file.
fn completions(folder: &Path, shell: &str) -> PathBuf {
    let path = folder.join(shell);
    fs::write(&path, printed(&["completions", shell])).unwrap();
    path
}

/// What a program prints; it has to succeed and to complain of nothing.
fn said(program: &Path, arguments: &[&str], folder: &Path) -> String {
    let mut command = Command::new(program);
    // A home without a configuration of anybody's.
    command.env("HOME", folder).env("LC_ALL", "C.UTF-8").env("MANWIDTH", "100");
    let output = command.current_dir(folder).args(arguments).stdin(Stdio::null()).output().unwrap();
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && error.is_empty(), "{program:?} {arguments:?}: {error}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Words to be completed, what has to be among the answers, and what must not be.
const COMPLETED: &[(&[&str], &[&str], &[&str])] = &[
    (&["ru"], &["run"], &["get"]),
    (&["run", "--per-h"], &["--per-host"], &["--rate"]),
    (&["run", "--no-"], &["--no-env", "--no-config"], &["--no-rate"]),
    (&["run", "--rotate", ""], &["request", "retry", "host", "random"], &["--rate"]),
    (&["get", "--json-r"], &["--json-result"], &["--json-progress"]),
];

fn check(answers: &str, words: &[&str], wanted: &[&str], unwanted: &[&str]) {
    let answers: Vec<&str> = answers.split_whitespace().collect();
    for word in wanted {
        assert!(answers.contains(word), "{words:?}: {answers:?} lack {word}");
    }
    for word in unwanted {
        assert!(!answers.contains(word), "{words:?}: {answers:?} hold {word}");
    }
}

#[test]
fn bash_completes_commands_flags_and_values() {
    let Some(bash) = support::require("bash") else { return };
    let folder = tempfile::tempdir().unwrap();
    let file = completions(folder.path(), "bash");
    for (words, wanted, unwanted) in COMPLETED {
        let quoted: Vec<String> = words.iter().map(|word| format!("'{word}'")).collect();
        let (last, before) = (words[words.len() - 1], words.len().checked_sub(2));
        let before = before.map_or("longhaul", |at| words[at]);
        let script = format!(
            "source '{}'; COMP_WORDS=(longhaul {}); COMP_CWORD={}; \
             _longhaul longhaul '{last}' '{before}'; printf '%s\\n' \"${{COMPREPLY[@]}}\"",
            file.display(),
            quoted.join(" "),
            words.len(),
        );
        let answers = said(&bash, &["--norc", "-c", &script], folder.path());
        check(&answers, words, wanted, unwanted);
    }
}

#[test]
fn fish_completes_commands_flags_and_values() {
    let Some(fish) = support::require("fish") else { return };
    let folder = tempfile::tempdir().unwrap();
    let file = completions(folder.path(), "fish");
    for (words, wanted, unwanted) in COMPLETED {
        let line = format!("longhaul {}", words.join(" "));
        let script = format!("source '{}'; complete -C '{line}'", file.display());
        let answers = said(&fish, &["--no-config", "-c", &script], folder.path());
        // Each answer has its help behind a tab.
        let answers: Vec<&str> =
            answers.lines().filter_map(|line| line.split('\t').next()).collect();
        check(&answers.join(" "), words, wanted, unwanted);
    }
}

#[test]
fn zsh_reads_its_completions() {
    let Some(zsh) = support::require("zsh") else { return };
    let folder = tempfile::tempdir().unwrap();
    let file = completions(folder.path(), "zsh");
    said(&zsh, &["-f", "-n", file.to_str().unwrap()], folder.path());
    let script = "autoload -U compinit; compinit -u; source ./zsh; print $_comps[longhaul]";
    assert_eq!(said(&zsh, &["-f", "-c", script], folder.path()).trim(), "_longhaul");
}

#[test]
fn other_shells_have_theirs() {
    for shell in ["elvish", "powershell"] {
        assert!(printed(&["completions", shell]).contains("--per-host"), "{shell}");
    }
    let output = longhaul(&["completions", "basch"]);
    let line = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(line.contains("there is no 'basch'; did you mean bash? There are bash, "), "{line}");
}

#[test]
fn the_manual_is_one_without_complaints() {
    let (Some(man), Some(groff)) = (support::require("man"), support::require("groff")) else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    assert_eq!(printed(&["man", "--dir", folder.path().to_str().unwrap()]), "");
    let mut pages: Vec<String> = fs::read_dir(folder.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    pages.sort();
    let commands = ["check", "completions", "demo", "get", "man", "plan", "report", "run"];
    let wanted: Vec<String> =
        commands.iter().map(|command| format!("longhaul-{command}.1")).collect();
    assert_eq!(pages[..pages.len() - 1], wanted);
    assert_eq!(pages[pages.len() - 1], "longhaul.1");
    for page in &pages {
        // Each prints its warnings on standard error.
        said(&groff, &["-ww", "-man", "-Tutf8", "-z", page], folder.path());
        let shown = said(&man, &["--warnings=w", "-l", page], folder.path());
        let title = page.trim_end_matches(".1").to_uppercase();
        assert!(shown.starts_with(&format!("{title}(1)")), "{page}: {shown}");
        assert!(shown.contains("SEE ALSO"), "{page}");
        let name = page.trim_end_matches(".1");
        let command = name.strip_prefix("longhaul-").unwrap_or(name);
        let file = fs::read_to_string(folder.path().join(page)).unwrap();
        assert_eq!(printed(&["man", command]), file, "{page}");
    }
    let run = said(&man, &["-l", "longhaul-run.1"], folder.path());
    for part in ["--per-host <N>", "PROXIES", "--print-config", "random: At random"] {
        assert!(run.contains(part), "{part}: {run}");
    }
    assert_eq!(printed(&["man"]), fs::read_to_string(folder.path().join("longhaul.1")).unwrap());
}

#[test]
fn a_page_that_there_is_not_and_a_folder_that_there_is_not() {
    for (arguments, part) in [
        (&["man", "fly"][..], "COMMAND: there is no command 'fly'; give one of longhaul, run, get"),
        (&["man", "--dir", "/gone/folder"], "--dir: /gone/folder/longhaul.1 cannot be written"),
        (&["man", "run", "--dir", "."], "contradicts"),
    ] {
        let output = longhaul(arguments);
        let line = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{line}");
        assert!(line.contains(part) && line.lines().count() == 1, "{line}");
    }
}
