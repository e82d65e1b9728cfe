//! `longhaul plan` and `longhaul run --plan-only`: the figures that people know, the drawing, the
//! object for programs, and that nothing is sent or made.
#![cfg(feature = "cli")]
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "helpers of tests fail by panicking, as tests do"
)]

use serde_json::{Value, json};
use std::fs;
use std::net::TcpListener;
use std::path::Path;
use std::process::{Command, Output, Stdio};

fn longhaul(folder: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_longhaul"));
    for name in ["http_proxy", "https_proxy", "all_proxy", "no_proxy", "RUST_LOG"] {
        command.env_remove(name).env_remove(name.to_uppercase());
    }
    command.env("COLUMNS", "100");
    command.current_dir(folder).args(arguments).stdin(Stdio::null()).output().unwrap()
}

/// What a plan prints; `line` is split at spaces.
fn plan(line: &str) -> String {
    let arguments: Vec<&str> = ["plan"].into_iter().chain(line.split_whitespace()).collect();
    let output = longhaul(Path::new("."), &arguments);
    let errors = String::from_utf8(output.stderr).unwrap();
    assert_eq!((output.status.code(), errors.as_str()), (Some(0), ""), "{line}");
    String::from_utf8(output.stdout).unwrap()
}

fn object(line: &str) -> Value {
    serde_json::from_str(&plan(&format!("{line} --json"))).unwrap()
}

/// The lines without the spaces that put them in order.
fn rows(text: &str) -> Vec<String> {
    text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect()
}

const KNOWN: &str = "--total 4 --connect-timeout 5 --read-timeout 25 --backoff-factor 0.6";

#[test]
fn the_figures_that_people_know() {
    let rows = rows(&plan(KNOWN));
    for row in [
        "formula 159 s 2 min 39 s (4 + 1) · (5 + 25) + 0.6 + 1.2 + 2.4 + 4.8",
        "exact 159 s 2 min 39 s over all that the budgets permit",
        "no connection, each time 24.2 s",
        "silence, each time 91.8 s",
        "a bad status, each time 124.2 s",
        "with Retry-After 334.8 s 1 min wherever a server may ask for it",
        "to the last byte unbounded because no size ceiling is set for bodies;",
        "enforced 334.8 s the deadline, whatever happens",
        // A worst sequence, attempt by attempt.
        "1 a status of the list, as late as possible 30 s 0.6 s 30.6 s",
        "2 a status of the list, as late as possible 30 s 1.2 s 61.8 s",
        "3 silence until the read timeout 30 s 2.4 s 94.2 s",
        "4 silence until the read timeout 30 s 4.8 s 129 s",
        "5 the answer, or the last failure 30 s 159 s",
    ] {
        assert!(rows.iter().any(|line| line == row), "{row} is not in {rows:#?}");
    }
}

#[test]
fn drains_that_no_wait_covers_are_named() {
    let rows = rows(&plan("--backoff-factor 0"));
    for row in [
        "formula 150 s 2 min 30 s (4 + 1) · (5 + 25)",
        "exact 150.3 s over all that the budgets permit, with 3",
        "drains of 0.1 s",
    ] {
        assert!(rows.iter().any(|line| line == row), "{row} is not in {rows:#?}");
    }
    // Where the first wait is long enough, the drain is over before it is.
    assert_eq!(object("")["worst_case"]["exact"]["seconds"], 159.0);
}

#[test]
fn what_has_no_bound_says_why() {
    let object = object("--read-timeout none");
    let figures = &object["worst_case"];
    for (figure, because) in [
        ("formula", json!("no read timeout is set")),
        ("exact", json!("no read timeout is set")),
        ("connect_only", Value::Null),
    ] {
        assert_eq!(figures[figure]["unbounded"], because, "{figure}");
    }
    assert_eq!(figures["connect_only"]["seconds"], 24.2);
    // No promise, so no deadline: nothing is invented.
    assert_eq!((&object["enforced_s"], &object["sequence"]), (&Value::Null, &json!([])));
    let rows = rows(&plan("--total none --redirect none"));
    let formula = "formula unbounded because `total` has no limit";
    assert!(rows.iter().any(|line| line == formula), "{rows:#?}");
}

#[test]
fn a_size_and_a_rate_bound_the_last_byte() {
    let last_byte = |line: &str| object(line)["worst_case"]["to_last_byte"].clone();
    assert_eq!(
        last_byte("--max-body 10MB"),
        json!({"seconds": null, "unbounded": "a body may arrive at any rate, however low"})
    );
    let bounded = last_byte("--retry-after-max 0 --max-body 10MB --lowest-rate 100kB");
    // 159 s, the bodies of two attempts that break off at their end, and the whole one.
    assert_eq!(bounded, json!({"seconds": 459.0, "unbounded": null}));
}

#[test]
fn what_failures_do_to_a_run() {
    let rows =
        rows(&plan("--urls 40000 --workers 24 --failure-rate 0.02 --package 1000 --bindings 2"));
    for row in [
        "that fail 800 159 s each: 5 attempts of 150 s together, and",
        "they hold workers for 120000 s 1 d 9 h 20 min all together",
        "they cost the run 5000 s 1 h 23 min 20 s shared among the workers",
        "in threads that sleep 5300 s 1 h 28 min 20 s where a wait holds a worker, as around",
        "ceiling 500 at a time: the parallel connections of the",
    ] {
        assert!(rows.iter().any(|line| line == row), "{row} is not in {rows:#?}");
    }
    let run = object("--urls 40000 -w 24 --failure-rate 2% --latency 1.2 --within 1h");
    assert_eq!(run["run"]["run_s"], 6960.0);
    assert_eq!(run["run"]["limited_by"], "workers");
    assert_eq!(run["run"]["within"]["workers"], 47);
    // A deadline cuts what a failure costs.
    let cut = object("--urls 40000 -w 24 --failure-rate 2% --deadline 60");
    assert_eq!(cut["run"]["failures"]["each_s"], 60.0);
    assert_eq!(cut["run"]["run_s"], Value::Null);
}

#[test]
fn a_ceiling_needs_no_run() {
    for (line, wanted) in [
        ("--package 1000 --bindings 2", json!({"connections": 500, "by": "package"})),
        ("--package 1000 --package 3000", json!({"connections": 3000, "by": "package"})),
        ("--per-host 4 --hosts 20 --package 1000", json!({"connections": 80, "by": "per_host"})),
        ("", Value::Null),
    ] {
        assert_eq!(object(line)["ceiling"], wanted, "{line}");
    }
}

/// The keys of an object, sorted.
fn keys(value: &Value) -> Vec<&str> {
    value.as_object().unwrap().keys().map(String::as_str).collect()
}

/// The object has the keys that the page tells, and no other.
#[test]
fn the_object_is_the_documented_one() {
    let page = include_str!("../docs/cli.md");
    let section = page.split("### The object of --json").nth(1).unwrap();
    let documented = |key: &str| {
        let row = section.lines().find(|line| line.starts_with(&format!("| `{key}` |"))).unwrap();
        let mut words: Vec<String> = row.split('`').skip(3).step_by(2).map(str::to_owned).collect();
        words.sort_unstable();
        words.dedup();
        words
    };
    let object = object(
        "--urls 100 --hosts 2 --latency 0.5 --failure-rate 0.1 --within 60 --package 9 --simulate 1",
    );
    assert_eq!(
        keys(&object),
        ["ceiling", "enforced_s", "policy", "run", "sequence", "simulation", "worst_case"]
    );
    let mut policy = keys(&object["policy"]);
    policy.push("\"off\"");
    policy.sort_unstable();
    assert_eq!(policy, documented("policy"));
    let mut figures = keys(&object["worst_case"]);
    figures.extend(keys(&object["worst_case"]["exact"]));
    figures.push("exact");
    figures.sort_unstable();
    figures.dedup();
    assert_eq!(figures, documented("worst_case"));
    let run = &object["run"];
    let mut all = keys(run);
    all.extend(keys(&run["failures"]));
    all.extend(keys(&run["within"]));
    all.sort_unstable();
    all.dedup();
    assert_eq!(all, documented("run"));
    for step in object["sequence"].as_array().unwrap() {
        assert_eq!(keys(step), ["outcome", "takes_s", "times", "wait_s"]);
        assert!(documented("sequence").contains(&step["outcome"].as_str().unwrap().to_owned()));
    }
    assert_eq!(object["simulation"]["urls"], 100);
    assert_eq!(object["policy"]["redirect"], Value::Null);
    assert_eq!(self::object("--read off")["policy"]["read"], "off");
}

#[test]
fn the_same_seed_is_the_same_night() {
    let line = "--urls 2000 -w 24 --failure-rate 1% --latency 0.2,0.5,2 --hosts 9 --simulate 7";
    let (once, again) = (object(line), object(line));
    assert_eq!(once, again);
    let night = &once["simulation"];
    // Those that fail are held for three attempts of 30 s, and nothing takes longer.
    let failed = night["endings"]["read_timeout"].as_u64().unwrap();
    assert_eq!(night["endings"]["200"].as_u64().unwrap() + failed, 2000);
    assert_eq!(night["attempts"].as_u64().unwrap(), 2000 + 2 * failed);
    assert_eq!(night["longest_path"], 91.8);
    // Arithmetic and simulation agree but for the last few pages.
    let time = |key: &str| night[key].as_f64().unwrap();
    let (simulated, calculated) = (time("run_time"), time("calculated_run_time"));
    assert!((0.8..1.5).contains(&(simulated / calculated)), "{simulated} against {calculated}");
    for field in ["amplification", "p50", "p95", "p99", "longest", "timeline", "waits"] {
        assert!(!night[field].is_null(), "{field}");
    }
    let text = plan(line);
    assert!(text.contains("a simulated night, seed 7"), "{text}");
}

#[test]
fn the_drawing() {
    let drawing = |line: &str, columns: &str| {
        let output = Command::new(env!("CARGO_BIN_EXE_longhaul"))
            .args(["plan", "--timeline"])
            .args(line.split_whitespace())
            .env("COLUMNS", columns)
            .output()
            .unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        let (_, drawing) = text.split_once("The worst sequence: ").unwrap();
        drawing.trim_end().lines().map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(
        drawing("--total 2 --backoff-factor 10 --deadline none", "46"),
        [
            "█ an attempt, ░ the wait behind it",
            "",
            "      0 s                                120 s",
            "1     ██████████░░░",
            "2                  ██████████░░░░░░░",
            "3                                   ██████████",
        ]
    );
    assert_eq!(
        drawing("--total 1 --backoff-factor 0 --deadline 15", "46")[3..],
        [
            "1     ████████████████████",
            "2                         ████████████████████",
            "                ▲",
            "the deadline of 15 s ends it here",
        ]
    );
    for columns in [40_usize, 80, 132] {
        for line in drawing("", &columns.to_string()) {
            assert!(line.chars().count() <= columns, "{columns}: {line}");
        }
    }
    // A thousand bars are no drawing: those that are alike share one.
    let many = drawing("--total 1000 --read none --status off", "80");
    assert!(many.len() < 20, "{many:#?}");
    assert!(many.iter().any(|line| line.starts_with("9–1000 ")), "{many:#?}");
}

#[test]
fn mistakes_are_one_line_with_place_value_and_remedy() {
    for (line, parts) in [
        ("--failure-rate 2", &["--failure-rate: '2' is not a share; give 0 to 1"][..]),
        ("--failure-rate -0.1", &["--failure-rate: '-0.1' is not a share"]),
        ("--bindings 0", &["--bindings: '0' is not a count; give 1 or more"]),
        ("--bindings 2", &["--bindings: there is no package to share; add --package N"]),
        ("--package 10 --bindings 11", &["--bindings: ", "11", "10", "bind fewer"]),
        ("--package 5000", &["--package: ", "5000", "3000"]),
        ("--urls 0", &["--urls: '0' is not a count; give"]),
        ("--urls 5", &["--urls: ", "add --latency, or --failure-rate"]),
        ("--latency 1", &["--latency: there is no run", "add --urls"]),
        ("--latency 3,2,1 --urls 5", &["--latency: '3,2,1' is not a latency; give"]),
        ("--bandwidth fast --urls 5", &["--bandwidth: 'fast' is not a bandwidth; give"]),
        ("--within none --urls 5", &["--within: 'none' is not a time; give"]),
        ("--simulate 1", &["--simulate: there is no run to simulate; add --urls"]),
        ("--simulate 1 --urls 5 --failure-rate 1", &["--simulate: ", "add --latency"]),
        ("--read-timeout none --urls 9 --failure-rate 1", &["--failure-rate: ", "no read timeout"]),
        ("--total many", &["--total: ", "many", "none", "off"]),
        ("--connect-timeout 0", &["--connect-timeout: ", "0"]),
        ("--xyz", &["--xyz: there is no such flag; see `longhaul plan --help`"]),
        (
            "http://a/",
            &["http://a/: nothing of this kind is taken here; see `longhaul plan --help`"],
        ),
    ] {
        let arguments: Vec<&str> = ["plan"].into_iter().chain(line.split_whitespace()).collect();
        let output = longhaul(Path::new("."), &arguments);
        let text = String::from_utf8(output.stderr).unwrap();
        assert_eq!((output.status.code(), output.stdout.len()), (Some(2), 0), "{line}: {text}");
        assert!(text.starts_with("longhaul: error: "), "{line}: {text}");
        assert_eq!(text.lines().count(), 1, "{line}: {text}");
        for part in parts {
            assert!(text.contains(part), "{line}: {text} lacks {part}");
        }
    }
}

#[test]
fn a_run_tells_its_own_plan_and_sends_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let here = format!("http://{}/", listener.local_addr().unwrap());
    fs::write(folder.path().join("urls.txt"), format!("{here}a\n{here}b\n{here}a\n")).unwrap();
    let arguments = [
        "run",
        "-i",
        "urls.txt",
        "-o",
        "out.jsonl",
        "--bodies",
        "kept",
        "--total",
        "2",
        "--plan-only",
    ];
    let output = longhaul(folder.path(), &arguments);
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(String::from_utf8(output.stderr).unwrap(), "");
    let text = String::from_utf8(output.stdout).unwrap();
    let told = rows(&text);
    for row in [
        "input 2 URLs from urls.txt, 1 repeated lines left out",
        "results in out.jsonl, bodies in kept",
        "formula 91.8 s (2 + 1) · (5 + 25) + 0.6 + 1.2",
    ] {
        assert!(told.iter().any(|line| line == row), "{row} is not in {told:#?}");
    }
    // The tables are those of a plan with the same flags.
    let same = plan("--total 2");
    assert!(text.ends_with(&same), "{text}\nis not the end of\n{same}");
    assert!(listener.accept().is_err(), "something was sent");
    let left: Vec<_> =
        fs::read_dir(folder.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert_eq!(left, ["urls.txt"]);

    // The mistakes of a run are found as well.
    let output = longhaul(folder.path(), &["run", "-i", "gone.txt", "--plan-only"]);
    assert_eq!(output.status.code(), Some(2));
}

#[test]
fn what_is_recorded_is_left_out_and_the_results_stay_as_they_were() {
    let folder = tempfile::tempdir().unwrap();
    let (urls, results) = (folder.path().join("urls.txt"), folder.path().join("old.jsonl"));
    // An address where nobody listens.
    fs::write(&urls, "http://127.0.0.1:9/a\n").unwrap();
    let arguments = ["run", "-i", "urls.txt", "-o", "old.jsonl", "--total", "0", "-q"];
    assert_eq!(longhaul(folder.path(), &arguments).status.code(), Some(1));
    let recorded = fs::read_to_string(&results).unwrap();
    fs::write(&urls, "http://127.0.0.1:9/a\nhttp://127.0.0.1:9/b\n").unwrap();
    let arguments = ["run", "-i", "urls.txt", "-o", "old.jsonl", "--resume", "--plan-only"];
    let output = longhaul(folder.path(), &arguments);
    assert_eq!(output.status.code(), Some(0));
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("1 URL from urls.txt, 1 recorded already"), "{text}");
    assert_eq!(fs::read_to_string(&results).unwrap(), recorded);
}

#[test]
fn nobody_has_to_read_to_the_end() {
    use std::io::Read as _;
    let mut child = Command::new(env!("CARGO_BIN_EXE_longhaul"))
        .args(["plan", "--json"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let mut errors = String::new();
    child.stderr.take().unwrap().read_to_string(&mut errors).unwrap();
    assert_eq!((child.wait().unwrap().code(), errors.as_str()), (Some(0), ""));
}
