//! The usual script of requests, the same run as a program and as one command: against the same
//! faults, with what each URL came to and how often its page was asked for.
//!
//! `docs/from-requests-script.md` shows all three and has a table of the counts; both are held here.
//! The three run at the same time, each in a world of its own.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::thread;

use longhaul::lab::{Received, Reply, Script};
use serde_json::Value;

use crate::blocks::root;
use crate::support::{httpbin, skip};
use crate::world::{Ended, World};

const PAGE: &str = include_str!("../../docs/from-requests-script.md");
const SCRIPT: &str = include_str!("usual_script.py");
const PROGRAM: &str = include_str!("../../examples/from_requests.rs");

/// The pages that misbehave, by path. Ten that do not are in the list as well.
const PAGES: [&str; 8] = [
    "/busy",
    "/overloaded",
    "/limited",
    "/missing",
    "/forbidden",
    "/broken-off",
    "/reset",
    "/moved",
];

/// What a URL came to, and how often its page was asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Outcome {
    ok: bool,
    status: Option<u64>,
    asked: usize,
}

/// Runs over the list in this folder of this world.
type Way = Box<dyn Fn(&World, &Path) -> Ended + Send>;

/// The outcomes of a run, by path.
type Outcomes = BTreeMap<String, Outcome>;

#[test]
fn the_page_shows_the_script_and_the_program() {
    let shows = |language: &str, text: &str| PAGE.contains(&format!("```{language}\n{text}```\n"));
    assert!(shows("python", SCRIPT), "the page does not show tests/command_lines/usual_script.py");
    let (_, code) = PROGRAM.split_once("\n\n").unwrap();
    assert!(shows("rust,no_run", code), "the page does not show examples/from_requests.rs");
    assert!((55..=65).contains(&SCRIPT.lines().count()), "a usual script has some sixty lines");
}

#[test]
fn script_program_and_command_come_to_what_the_page_says() {
    let Some(python) = httpbin::python("requests") else {
        return skip("no Python with requests");
    };
    let program = example();
    let command = PAGE.lines().find(|line| line.starts_with("longhaul run ")).unwrap();
    let ways: [(&str, Way); 3] = [
        (
            "script",
            Box::new(move |world, folder| {
                fs::write(folder.join("usual_script.py"), SCRIPT).unwrap();
                world.end(world.command(folder).arg(&python).arg("usual_script.py"))
            }),
        ),
        ("program", Box::new(move |world, folder| world.end(world.command(folder).arg(&program)))),
        ("command", Box::new(|world, folder| world.run(folder, command))),
    ];
    let started: Vec<_> = ways
        .into_iter()
        .map(|(name, way)| (name, thread::spawn(move || outcomes(name, &*way))))
        .collect();
    let found: Vec<(&str, Option<Outcomes>)> =
        started.into_iter().map(|(name, started)| (name, started.join().unwrap())).collect();
    let all: Option<Vec<&Outcomes>> = found.iter().map(|(_, found)| found.as_ref()).collect();
    let Some(all) = all else { return };
    let [script, program, command] = all[..] else { panic!("three ways") };
    assert_eq!(program, command);

    // What becomes of each URL is the same in all; how often it is asked for is in the page's table.
    let kept = |outcomes: &Outcomes| -> Vec<_> {
        outcomes.iter().map(|(path, found)| (path.clone(), found.ok, found.status)).collect()
    };
    assert_eq!(kept(script), kept(command));
    let table = table();
    for (path, found) in script {
        let counts = table.get(path.as_str()).copied().unwrap_or((1, 1));
        assert_eq!((found.asked, command[path].asked), counts, "{path}: script, longhaul");
    }
    assert_eq!(table.len(), PAGES.len(), "a row for each page that misbehaves");
}

/// How often the script and longhaul ask for a page, by its path, as the page says.
fn table() -> HashMap<&'static str, (usize, usize)> {
    let rows = PAGE.lines().skip_while(|line| !line.starts_with("| page |")).skip(2);
    rows.take_while(|line| line.starts_with('|'))
        .map(|line| {
            let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
            let path = cells[0].trim_matches('`');
            (path, (cells[2].parse().unwrap(), cells[3].parse().unwrap()))
        })
        .collect()
}

/// The example, built; nothing is left to do where the tests were built as a whole.
fn example() -> PathBuf {
    let itself = env::current_exe().unwrap();
    let target = itself.ancestors().nth(3).unwrap();
    let mut command = Command::new(env!("CARGO"));
    // What cargo tells this test of itself would make it build dependencies anew that ask for it.
    for (name, _) in env::vars_os() {
        let name = name.to_string_lossy().into_owned();
        if ["CARGO_PKG_", "CARGO_MANIFEST_", "CARGO_CRATE_"].iter().any(|of| name.starts_with(of)) {
            command.env_remove(name);
        }
    }
    let output = command
        .args(["build", "--quiet", "--offline", "--all-features", "--example", "from_requests"])
        .arg("--target-dir")
        .arg(target)
        .current_dir(root())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    target.join("debug/examples/from_requests")
}

/// Runs one of the three in a world of its own, with the list in its folder.
fn outcomes(name: &str, way: &dyn Fn(&World, &Path) -> Ended) -> Option<Outcomes> {
    let seen: Arc<Mutex<HashMap<String, usize>>> = Arc::default();
    let counts = Arc::clone(&seen);
    let hosts = BTreeSet::from(["shop.test".to_owned(), "www.example.org".to_owned()]);
    let world = World::with(hosts, move |request| {
        let mut counts = counts.lock().unwrap();
        let times = counts.entry(request.path.clone()).or_default();
        *times += 1;
        answer(request, *times)
    })?;
    let folder = tempfile::tempdir().unwrap();
    let fine = (0..10).map(|number| format!("/fine/{number}"));
    let paths: Vec<String> = fine.chain(PAGES.map(str::to_owned)).collect();
    let urls: String = paths
        .iter()
        .enumerate()
        .map(|(place, path)| match (&**path, place % 2) {
            // Where a proxy forwards, it answers for a target that resets.
            ("/reset", _) | (_, 0) => format!("https://shop.test{path}\n"),
            _ => format!("http://www.example.org{path}\n"),
        })
        .collect();
    fs::write(folder.path().join("urls.txt"), urls).unwrap();
    let ended = way(&world, folder.path());
    assert_eq!(ended.code, 1, "{name}: {}", ended.output);
    let found = if name == "script" { of_csv(folder.path()) } else { of_records(folder.path()) };
    let seen = seen.lock().unwrap();
    let outcomes: Outcomes = found
        .into_iter()
        .map(|(url, ok, status)| {
            let path = url.splitn(4, '/').last().unwrap();
            let path = format!("/{path}");
            let asked = seen.get(&path).copied().unwrap_or_default();
            (path, Outcome { ok, status, asked })
        })
        .collect();
    assert_eq!(outcomes.len(), paths.len(), "{name}: {outcomes:?}");
    println!("{name}: {outcomes:?}");
    Some(outcomes)
}

/// What a page answers when it is asked for the nth time.
fn answer(request: &Received, times: usize) -> Script {
    let page = || Reply::ok("a page\n").into();
    match &*request.path {
        "/busy" if times <= 2 => Reply::new(503).into(),
        "/overloaded" => Reply::new(500).into(),
        "/limited" if times == 1 => Reply::new(429).header("Retry-After", "1").into(),
        "/missing" => Reply::new(404).into(),
        "/forbidden" => Reply::new(403).into(),
        "/broken-off" if times == 1 => {
            Script::send("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf").fin()
        }
        "/reset" if times == 1 => Script::new().rst(),
        "/moved" if times == 1 => Reply::redirect(302, "/moved?to=here").into(),
        _ => page(),
    }
}

/// URL, success and status of each line of the script.
fn of_csv(folder: &Path) -> Vec<(String, bool, Option<u64>)> {
    let text = fs::read_to_string(folder.join("results.csv")).unwrap();
    let row = |line: &str| {
        let mut cells = line.splitn(3, ',');
        let (url, status) = (cells.next().unwrap().to_owned(), cells.next().unwrap().parse().ok());
        let ok = cells.next().unwrap().bytes().all(|byte| byte.is_ascii_digit());
        (url, ok, status)
    };
    text.lines().map(row).collect()
}

/// The same of each record.
fn of_records(folder: &Path) -> Vec<(String, bool, Option<u64>)> {
    let text = fs::read_to_string(folder.join("results.jsonl")).unwrap();
    let record = |line: &str| {
        let record: Value = serde_json::from_str(line).unwrap();
        let url = record["url"].as_str().unwrap().to_owned();
        // Half a body is retried at once and not left to the second pass, as the page says.
        assert!(!url.ends_with("/broken-off") || record["pass"] == 1, "{record}");
        (url, record["ok"] == true, record["status"].as_u64())
    };
    text.lines().map(record).collect()
}
