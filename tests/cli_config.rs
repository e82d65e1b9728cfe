//! `longhaul.toml`, profiles and variables, as the built command takes them.
#![cfg(feature = "cli")]
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "helpers of tests fail by panicking, as tests do"
)]

use longhaul::lab::{Origin, Received, Reply};
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};

/// An address where nobody listens, so that nothing leaves this machine if a refusal is missed.
const NOBODY: &str = "http://127.0.0.1:9/";

/// The command in a folder, without any settings but those that are given here.
fn command(folder: &Path, line: &str, variables: &[(&str, &str)]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_longhaul"));
    for (name, _) in std::env::vars_os() {
        let lower = name.to_string_lossy().to_ascii_lowercase();
        if lower.starts_with("longhaul_") || lower.ends_with("_proxy") || lower == "rust_log" {
            command.env_remove(name);
        }
    }
    command.env("HOME", folder).env_remove("XDG_CONFIG_HOME").envs(variables.iter().copied());
    command.current_dir(folder).args(line.split_whitespace()).stdin(Stdio::null());
    command
}

fn longhaul(folder: &Path, line: &str, variables: &[(&str, &str)]) -> Output {
    command(folder, line, variables).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// Exit code, standard output, standard error.
fn ended(output: &Output) -> (Option<i32>, String, String) {
    (output.status.code(), text(&output.stdout), text(&output.stderr))
}

/// A folder with a file of settings.
fn folder(settings: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("longhaul.toml"), settings).unwrap();
    folder
}

#[test]
fn a_run_is_what_its_file_says() {
    let of_the_shop = |request: &Received| match request.header("X-Shop") {
        Some("7") => Reply::ok("a page"),
        _ => Reply::new(404),
    };
    let origin = Origin::builder().handler(of_the_shop).start().unwrap();
    let folder = folder(
        "header = 'X-Shop: 7'\n[run]\ninput = 'urls.txt'\noutput = 'out.jsonl'\nno-env = true\n\
         [get]\noutput = 'page.html'\n[profile.wrong]\nheader = 'X-Shop: 8'\n",
    );
    let at = |name: &str| folder.path().join(name);
    fs::write(at("urls.txt"), format!("{0}a\n{0}b\n", origin.url("/"))).unwrap();

    let (code, _, error) = ended(&longhaul(folder.path(), "run", &[("LONGHAUL_WORKERS", "3")]));
    assert_eq!(code, Some(0), "{error}");
    assert!(error.contains("  settings longhaul.toml, LONGHAUL_WORKERS\n"), "{error}");
    assert!(error.contains("  workers  3\n"), "{error}");
    let records = fs::read_to_string(at("out.jsonl")).unwrap();
    let statuses: Vec<Value> = records
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap()["status"].clone())
        .collect();
    assert_eq!(statuses, [200, 200]);

    // The same file, for another command.
    let line = format!("get {} -q --profile wrong --fail", origin.url("/"));
    assert_eq!(longhaul(folder.path(), &line, &[]).status.code(), Some(1));
    let line = format!("get {} -q", origin.url("/"));
    assert_eq!(
        ended(&longhaul(folder.path(), &line, &[])),
        (Some(0), String::new(), String::new())
    );
    assert_eq!(fs::read_to_string(at("page.html")).unwrap(), "a page");

    // Without the file, nothing of it.
    let line = format!("get {} --no-config --fail", origin.url("/"));
    assert_eq!(longhaul(folder.path(), &line, &[]).status.code(), Some(1));
}

#[test]
fn nothing_is_run_for_a_printout_and_it_can_be_given_back() {
    let folder = folder("workers = 24\n[profile.night]\nstop-at = 06:00:00\n");
    let line = "run -i gone.txt -o out.jsonl --profile night --print-config";
    let (code, first, error) = ended(&longhaul(folder.path(), line, &[("LONGHAUL_RATE", "5/s")]));
    assert_eq!((code, error.as_str()), (Some(0), ""), "{first}");
    for part in [
        "# What `longhaul run` goes by; file: longhaul.toml, profile: night.\n[run]\n",
        "input = \"gone.txt\"                        # flag\n",
        "workers = 24                              # longhaul.toml:1\n",
        "rate = \"5/s\"                              # LONGHAUL_RATE\n",
        "total = 8                                 # profile night (built in)\n",
        "stop-at = \"06:00:00\"                      # profile night, longhaul.toml:3\n",
        "# backoff-max: 120 (urllib3)              # default\n",
    ] {
        assert!(first.contains(part), "{first} lacks {part}");
    }
    fs::write(folder.path().join("kept.toml"), &first).unwrap();
    let line = "run --config kept.toml --print-config";
    let (code, second, _) = ended(&longhaul(folder.path(), line, &[]));
    assert_eq!(code, Some(0), "{second}");
    let values = |text: &str| -> Vec<String> {
        let lines = text.lines().filter(|line| !line.starts_with('#'));
        lines.map(|line| line.split("  # ").next().unwrap().trim().to_owned()).collect()
    };
    assert_eq!(values(&second), values(&first));
    // The URL that `get` cannot do without is not asked for.
    assert_eq!(longhaul(folder.path(), "get --print-config", &[]).status.code(), Some(0));
    // Nobody has to read to the end.
    let mut child = command(folder.path(), "run --print-config", &[]);
    let mut child = child.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    drop(child.stdout.take());
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

#[test]
fn mistakes_are_one_line_with_the_place_and_exit_code_2() {
    for (settings, line, wanted) in [
        (
            "per-hots = 4",
            "run",
            "longhaul.toml:1:1: per-hots: there is no such key; did you mean per-host?",
        ),
        (
            "\n\nworkers = 0",
            "get http://127.0.0.1:9/",
            "longhaul.toml:3:11: workers: '0' is not a number of workers",
        ),
        ("rotate = 'host'", "run http://127.0.0.1:9/", "longhaul.toml:1:10: rotate: "),
        (
            "sync = true",
            "run http://127.0.0.1:9/",
            "longhaul.toml:1:8: sync: standard output cannot be synced",
        ),
        ("cacert = 'gone.pem'", "run http://127.0.0.1:9/", "longhaul.toml:1:10: cacert: "),
        ("", "plan --profile nihgt", "--profile: there is no profile 'nihgt'; did you mean night?"),
        ("= 1", "run", "longhaul.toml:1:1: "),
    ] {
        let folder = folder(settings);
        let (code, out, error) = ended(&longhaul(folder.path(), line, &[]));
        assert_eq!((code, out.as_str()), (Some(2), ""), "{settings}: {error}");
        assert!(error.starts_with(&format!("longhaul: error: {wanted}")), "{settings}: {error}");
        assert_eq!(error.lines().count(), 1, "{error}");
    }
    // Help and papers need no file, whatever it holds.
    let folder = folder("per-hots = 4");
    for line in
        ["run --help", "--version", "completions bash", "man", "run --no-config --print-config"]
    {
        assert_eq!(longhaul(folder.path(), line, &[]).status.code(), Some(0), "{line}");
    }
    fs::remove_file(folder.path().join("longhaul.toml")).unwrap();
    fs::create_dir(folder.path().join("longhaul.toml")).unwrap();
    let (code, _, error) = ended(&longhaul(folder.path(), "run", &[]));
    assert_eq!(code, Some(2));
    assert!(error.contains("longhaul.toml: cannot be read: "), "{error}");
}

#[test]
#[cfg(unix)]
fn what_is_not_meant_is_told_as_a_warning() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = folder("\nuser = 'anna:hunter2'\n");
    let file = folder.path().join("longhaul.toml");
    let variables = [("LONGHAUL_PRE_HOST", "4"), ("LONGHAUL_PASSWORD", "x")];
    for (mode, is_told) in [(0o644, true), (0o640, true), (0o600, false)] {
        fs::set_permissions(&file, fs::Permissions::from_mode(mode)).unwrap();
        let (_, out, error) = ended(&longhaul(folder.path(), "run --print-config", &variables));
        let warning = "longhaul.toml:2:8: user: is secret, and other users can read it; chmod 600 longhaul.toml";
        assert_eq!(error.contains(warning), is_told, "{mode:o}: {error}");
        let unknown =
            "LONGHAUL_PRE_HOST: no flag has this variable; did you mean LONGHAUL_PER_HOST?";
        assert!(error.contains(unknown) && !error.contains("LONGHAUL_PASSWORD"), "{error}");
        assert!(!out.contains("hunter2") && !error.contains("hunter2"), "{out}{error}");
    }
    // Who wants no words gets none.
    let line = format!("run {NOBODY} -q --total 0");
    let (_, _, error) = ended(&longhaul(folder.path(), &line, &variables));
    assert_eq!(error, "");
}

#[test]
fn a_profile_is_what_the_plan_is_made_of() {
    let folder = folder("");
    let total = |line: &str, variables: &[(&str, &str)]| -> Value {
        let output = longhaul(folder.path(), &format!("plan --json {line}"), variables);
        serde_json::from_slice::<Value>(&output.stdout).unwrap()["policy"]["total"].clone()
    };
    assert_eq!(total("", &[]), 4);
    assert_eq!(total("--profile night", &[]), 8);
    assert_eq!(total("", &[("LONGHAUL_PROFILE", "wide")]), 2);
    assert_eq!(total("--profile night --no-total", &[]), 4);
    assert_eq!(total("--profile night", &[("LONGHAUL_TOTAL", "5")]), 5);
    assert_eq!(total("--profile night --total 6", &[("LONGHAUL_TOTAL", "5")]), 6);
}
