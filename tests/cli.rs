//! The built command against bad input: one line that names place and remedy, exit code 2, and
//! nothing lost.
#![cfg(feature = "cli")]
#![allow(clippy::unwrap_used, reason = "helpers of tests fail by panicking, as tests do")]

use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};

/// An address where nobody listens, so that nothing leaves this machine if a refusal is missed.
const NOBODY: &str = "http://127.0.0.1:9/";

fn longhaul(folder: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_longhaul"));
    for name in ["http_proxy", "https_proxy", "all_proxy", "no_proxy", "RUST_LOG"] {
        command.env_remove(name).env_remove(name.to_uppercase());
    }
    command.current_dir(folder).args(arguments).stdin(Stdio::null()).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// The one line that a refusal prints.
fn refusal(folder: &Path, arguments: &[&str]) -> String {
    let output = longhaul(folder, arguments);
    let line = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{arguments:?}: {line}");
    assert_eq!(text(&output.stdout), "", "{arguments:?}");
    assert_eq!(line.lines().count(), 1, "{arguments:?}: {line}");
    assert!(line.starts_with("longhaul: error: "), "{arguments:?}: {line}");
    line
}

#[test]
fn bad_flags_and_files() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();
    write("urls.txt", &format!("{NOBODY}\n").repeat(3));
    write("bad-line.txt", &format!("{}nonsense\n{NOBODY}b\n", "# note\n".repeat(6)));
    write("bad-json.txt", &format!("{NOBODY}\n{{\"url\":\"{NOBODY}\",\"methd\":\"PUT\"}}\n"));
    write("proxies.txt", "127.0.0.1:1\n127.0.0.1:2\nftp://user:hunter2@127.0.0.1:3\n");
    write("old.jsonl", "{}\n");
    fs::create_dir(folder.path().join("folder")).unwrap();

    for (arguments, parts) in [
        (&["run", "-i", "gone.txt"][..], &["gone.txt", "cannot be read"][..]),
        (&["run", "-i", "folder"], &["folder is a folder", "name a file"]),
        (&["run", "-i", "bad-line.txt"], &["bad-line.txt:7", "nonsense"]),
        (&["run", "-i", "bad-json.txt"], &["bad-json.txt:2", "methd"]),
        (&["run", NOBODY, "--proxies", "proxies.txt"], &["proxies.txt", "line 3", "ftp"]),
        (&["run", NOBODY, "-x", "ftp://127.0.0.1:3"], &["-x", "ftp"]),
        (&["run", NOBODY, "--connect-timeout", "0"], &["--connect-timeout", "0"]),
        (&["run", NOBODY, "--read-timeout", "-1"], &["--read-timeout", "-1"]),
        (&["run", NOBODY, "-w", "0"], &["--workers", "1 to 10000"]),
        (&["run", NOBODY, "--rotate", "host"], &["--rotate", "-x or --proxies"]),
        (&["run", NOBODY, "--retry-failed"], &["--retry-failed", "--resume"]),
        (&["run", NOBODY, "--resume"], &["--resume", "-o"]),
        (&["run", NOBODY, "-o", "folder"], &["-o", "folder is a folder"]),
        (&["run", NOBODY, "-o", "gone/new.jsonl"], &["-o", "gone is no folder"]),
        (&["run", NOBODY, "-o", "old.jsonl"], &["-o", "old.jsonl", "--resume"]),
        (&["run", NOBODY, "--max-body", "much"], &["--max-body", "much", "10M"]),
        (&["run", NOBODY, "--cacert", "urls.txt"], &["--cacert", "urls.txt", "PEM"]),
        (&["run", NOBODY, "-H", "nonsense"], &["--header", "Name: value"]),
        (&["run", NOBODY, "--totl", "3"], &["--totl", "--total"]),
        (&["run", "ftp://127.0.0.1/"], &["argument 1", "ftp"]),
        (&["get", NOBODY, "-o", "folder"], &["-o", "folder is a folder"]),
        (&["get", NOBODY, "-o", "gone/x"], &["-o", "gone is no folder"]),
        (&["get", NOBODY, "-q", "-v"], &["-q", "-v"]),
        (&["get", NOBODY, "-i", "--json-result"], &["-i", "--json-result"]),
        (&["get", NOBODY, "-d", "@gone.txt"], &["-d", "gone.txt", "behind the @"]),
        (&["get", NOBODY, "--cacert", "urls.txt"], &["--cacert", "urls.txt", "PEM"]),
        (&["get", NOBODY, "-x", "ftp://u:hunter2@h:3"], &["-x", "ftp"]),
        (&["get", NOBODY, "--resolve", "a:443:127.0.0.1"], &["--resolve", "a:127.0.0.1"]),
        (&["get", NOBODY, "--continue"], &["--continue", "-o"]),
        (&["get", NOBODY, "--continue", "-o", "x", "-d", "y"], &["--continue", "POST"]),
        (&["get", NOBODY, "--continue", "-o", "x", "--raw"], &["--continue", "--raw"]),
        (&["get", NOBODY, "--key", "gone.pem"], &["--key", "--cert"]),
        (&["get", NOBODY, "-b", "gone.txt"], &["--cookies", "gone.txt"]),
        (&["get", "ftp://127.0.0.1/"], &["URL", "http:// or https://"]),
        (&["get", "127.0.0.1/x"], &["URL", "https://127.0.0.1/x"]),
        (&["get", NOBODY, NOBODY], &[NOBODY]),
        (&["fly"], &["fly", "longhaul --help"]),
    ] {
        let line = refusal(folder.path(), arguments);
        for part in parts {
            assert!(line.contains(part), "{line} lacks {part}");
        }
        assert!(!line.contains("hunter2"), "{line}");
    }
    assert_eq!(fs::read_to_string(folder.path().join("old.jsonl")).unwrap(), "{}\n");
}

#[test]
#[cfg(unix)]
fn results_that_cannot_be_written() {
    let folder = tempfile::tempdir().unwrap();
    let line = refusal(folder.path(), &["run", NOBODY, "-o", "/dev/null/results.jsonl"]);
    assert!(line.contains("-o: ") && line.contains("name another"), "{line}");
}

#[test]
fn a_broken_variable_of_the_environment() {
    let folder = tempfile::tempdir().unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_longhaul"))
        .current_dir(folder.path())
        .args(["run", NOBODY])
        .env("http_proxy", "ftp://user:hunter2@127.0.0.1:3")
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let line = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{line}");
    assert!(line.contains("http_proxy") && !line.contains("hunter2"), "{line}");
}

#[test]
fn help_goes_to_standard_output() {
    let folder = tempfile::tempdir().unwrap();
    for arguments in [
        &["--help"][..],
        &["run", "--help"],
        &["get", "--help"],
        &["plan", "--help"],
        &["check", "--help"],
        &["demo", "--help"],
        &["completions", "--help"],
        &["man", "--help"],
        &["--version"],
    ] {
        let output = longhaul(folder.path(), arguments);
        assert_eq!(output.status.code(), Some(0), "{arguments:?}");
        assert!(text(&output.stdout).contains("longhaul"), "{arguments:?}");
        assert_eq!(text(&output.stderr), "", "{arguments:?}");
    }
}

/// Every flag of `--help` stands in `docs/cli.md`, and every flag there is one.
#[test]
fn the_page_and_the_help_know_the_same_flags() {
    let folder = tempfile::tempdir().unwrap();
    let page = include_str!("../docs/cli.md");
    let sections: Vec<&str> = page.split("\n## ").collect();
    let section = |name: &str| {
        sections.iter().find(|section| section.starts_with(name)).copied().unwrap_or_default()
    };
    let (run, demo) = (section("longhaul run"), section("longhaul demo"));
    // Every command takes these, and one section tells of them.
    let settings = long_flags_of_page(section("Settings"));
    let long_flags_of_help = |folder: &Path, command: &str| -> Vec<String> {
        let (of_settings, own): (Vec<String>, Vec<String>) = long_flags_of_help(folder, command)
            .into_iter()
            .partition(|flag| settings.contains(flag));
        assert_eq!(of_settings, settings, "{command}");
        own
    };
    assert_eq!(long_flags_of_help(folder.path(), "run"), long_flags_of_page(run));
    let mut of_check = long_flags_of_page(section("longhaul check"));
    of_check.push("--help".to_owned());
    of_check.sort_unstable();
    assert_eq!(long_flags_of_help(folder.path(), "check"), of_check);
    let mut of_report = long_flags_of_page(section("longhaul report"));
    of_report.push("--help".to_owned());
    of_report.sort_unstable();
    assert_eq!(long_flags_of_help(folder.path(), "report"), of_report);
    let mut of_demo = long_flags_of_page(demo);
    // The sentence below the table refers to the table of `run` for the rest.
    of_demo.extend(
        ["--help", "--progress", "--progress-every", "--json-progress", "--quiet", "--verbose"]
            .map(str::to_owned),
    );
    of_demo.sort_unstable();
    of_demo.dedup();
    assert_eq!(long_flags_of_help(folder.path(), "demo"), of_demo);
    let sections_of_run: Vec<&str> = run.split("\n### ").collect();
    let of_run = |names: &[&str]| -> Vec<String> {
        let is_meant = |part: &&&str| names.iter().any(|name| part.starts_with(name));
        let parts = sections_of_run.iter().filter(is_meant);
        parts.flat_map(|part| long_flags_of_page(part)).collect()
    };
    // The sentence below the table refers to the sections of `run`, and names what it takes of the
    // one about proxies.
    let mut of_get = long_flags_of_page(section("longhaul get"));
    of_get.extend(of_run(&["Timeouts", "Retries", "Requests", "Credentials", "Connections"]));
    let proxies = "--proxy --proxies --always-connect --proxy-header --no-env --help";
    of_get.extend(proxies.split_whitespace().map(str::to_owned));
    of_get.sort_unstable();
    assert_eq!(long_flags_of_help(folder.path(), "get"), of_get);
    // As the page says, a plan takes those flags of a run that the figures depend on.
    let mut of_plan = long_flags_of_page(section("longhaul plan"));
    of_plan.extend(of_run(&["Timeouts", "Retries"]));
    let limits = "--workers --rate --burst --host-rate --host-burst --per-host";
    of_plan.extend(limits.split_whitespace().map(str::to_owned));
    of_plan.extend(["--help", "--max-body"].map(str::to_owned));
    of_plan.sort_unstable();
    assert_eq!(long_flags_of_help(folder.path(), "plan"), of_plan);
}

fn long_flags_of_help(folder: &Path, command: &str) -> Vec<String> {
    let help = text(&longhaul(folder, &[command, "--help"]).stdout);
    let definitions = help.lines().map(str::trim_start).filter(|line| line.starts_with('-'));
    let mut flags: Vec<String> = definitions
        .flat_map(|line| line.split([' ', ',', '.']).take(3))
        .filter(|word| word.starts_with("--"))
        .map(str::to_owned)
        .collect();
    flags.sort_unstable();
    flags.dedup();
    flags
}

/// The flags in the first cells of the tables.
fn long_flags_of_page(section: &str) -> Vec<String> {
    let cells = section.lines().filter_map(|line| line.strip_prefix("| `")?.split(" | ").next());
    let mut flags: Vec<String> = cells
        .flat_map(|cell| cell.split(['`', ' ', ',']))
        .filter(|word| word.starts_with("--"))
        .map(str::to_owned)
        .collect();
    flags.sort_unstable();
    flags.dedup();
    flags
}
