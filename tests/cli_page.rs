//! `docs/cli.md` and `--help` say the same: the commands, each flag in its long and its short form, and
//! the defaults that are numbers. That both know the same flags is in `cli.rs`.
#![cfg(feature = "cli")]
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a page that is not as it should be fails the test"
)]

use std::collections::HashMap;
use std::process::Command;

const PAGE: &str = include_str!("../docs/cli.md");

/// A flag with its short form and its default.
#[derive(Debug)]
struct Flag {
    long: String,
    short: Option<String>,
    default: String,
}

#[test]
fn every_command_has_its_section_and_its_line() {
    let commands = commands();
    let sections: Vec<&str> =
        PAGE.lines().filter_map(|line| line.strip_prefix("## longhaul ")).collect();
    let listed: Vec<&str> = PAGE
        .lines()
        .skip_while(|line| !line.starts_with("```text"))
        .skip(1)
        .map_while(|line| line.strip_prefix("longhaul "))
        .filter_map(|line| line.split_whitespace().next())
        .collect();
    for command in &commands {
        assert!(sections.contains(&&**command), "docs/cli.md has no section for {command}");
        assert!(listed.contains(&&**command), "the list of docs/cli.md has no {command}");
    }
    assert_eq!(sections.len(), commands.len(), "{sections:?}");
    assert_eq!(listed.len(), commands.len(), "{listed:?}");
}

#[test]
fn short_forms_and_numbers_are_the_same() {
    let of_run = flags_of_page("run");
    let mut seen = 0;
    for command in commands() {
        let own = flags_of_page(&command);
        for Flag { long, short, default } in flags_of_help(&command) {
            // What a section does not have itself it takes from that of `run`.
            let Some(row) = own.get(&long).or_else(|| of_run.get(&long)) else { continue };
            assert_eq!(row.short, short, "{command} {long}");
            let number = |text: &str| -> Option<String> {
                let word = text.split_whitespace().next()?;
                let word = word.trim_end_matches(['.', ',', ';', ':']);
                word.starts_with(|one: char| one.is_ascii_digit()).then(|| word.to_owned())
            };
            let numbers = (number(&row.default), number(&default));
            if let (Some(page), Some(help)) = numbers {
                assert_eq!(page, help, "the default of {command} {long}: docs/cli.md, --help");
                seen += 1;
            }
        }
    }
    assert!(seen > 25, "only {seen} defaults were compared");
}

fn help_of(arguments: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_longhaul"))
        .args(arguments)
        .env("COLUMNS", "200")
        .output()
        .unwrap();
    String::from_utf8(output.stdout).unwrap()
}

/// The commands that `longhaul --help` lists, but for `help`.
fn commands() -> Vec<String> {
    let help = help_of(&["--help"]);
    help.lines()
        .skip_while(|line| *line != "Commands:")
        .skip(1)
        .take_while(|line| !line.is_empty())
        .filter_map(|line| line.split_whitespace().next())
        .filter(|command| *command != "help")
        .map(str::to_owned)
        .collect()
}

fn flags_of_help(command: &str) -> Vec<Flag> {
    let help = help_of(&[command, "--help"]);
    let mut texts: Vec<String> = Vec::new();
    for line in help.lines() {
        // Flags stand to the left of what is said of them, and what is said at the end to their left.
        let indented = line.len() - line.trim_start().len();
        let line = line.trim();
        match texts.last_mut() {
            _ if line.starts_with('-') && (2..=6).contains(&indented) => {
                texts.push(line.to_owned());
            }
            Some(last) if !line.is_empty() => {
                last.push(' ');
                last.push_str(line);
            }
            _ => {}
        }
    }
    texts
        .into_iter()
        .map(|text| {
            let words: Vec<&str> =
                text.split([' ', ',', '.']).filter(|word| !word.is_empty()).collect();
            let short = (!words[0].starts_with("--")).then(|| words[0].to_owned());
            let long = words.iter().find(|word| word.starts_with("--")).unwrap();
            let default = text.split_once("Default: ").map_or("", |(_, default)| default);
            Flag { long: (*long).to_owned(), short, default: default.to_owned() }
        })
        .collect()
}

/// The rows of a section that stand for one flag each, by their long form.
fn flags_of_page(command: &str) -> HashMap<String, Flag> {
    let heading = format!("longhaul {command}\n");
    let section = PAGE.split("\n## ").find(|section| section.starts_with(&heading)).unwrap();
    let rows = section.lines().filter_map(|line| line.strip_prefix("| `-"));
    rows.filter_map(|row| {
        let mut cells = row.split(" | ");
        let first = format!("-{}", cells.next()?);
        let default = cells.next()?.trim_matches('`').to_owned();
        let names: Vec<&str> =
            first.split(['`', ' ', ',']).filter(|word| word.starts_with('-')).collect();
        let is_long = |name: &&&str| name.starts_with("--");
        let (long, short): (Vec<&str>, Vec<&str>) = names.iter().partition(is_long);
        // A row for two flags, such as `--tls-min` and `--tls-max`, has no short form for either.
        let [long] = long[..] else { return None };
        let flag = Flag {
            long: long.to_owned(),
            short: short.first().map(|short| (*short).to_owned()),
            default,
        };
        Some((long.to_owned(), flag))
    })
    .collect()
}
