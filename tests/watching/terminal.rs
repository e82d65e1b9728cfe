//! A bar and records on the same terminal: what somebody sees in the end.

use longhaul::lab::{Origin, Received, Reply, Script};
use serde_json::Value;

use super::job::{Job, Running};
use super::support::terminal::{Terminal, shown};

fn site() -> Origin {
    let page = |request: &Received| -> Script {
        if request.path.ends_with('3') { Reply::new(503).into() } else { Reply::ok("page").into() }
    };
    Origin::builder().handler(page).start().unwrap()
}

/// Runs over 120 URLs with standard output and error on a terminal; what came to it. `on_start` can
/// do something to the terminal while it runs.
fn run(flags: &[&str], term: &str, columns: u16, on_start: impl FnOnce(&Terminal)) -> Vec<u8> {
    let origin = site();
    let job = Job::new((0..120).map(|number| origin.url(&format!("/{number}"))));
    let terminal = Terminal::new(columns);
    let arguments =
        ["run", "-i", "urls.txt", "--no-env", "--rate", "80/s", "--backoff-factor", "0"];
    let mut command = job.command(&[&arguments[..], flags].concat());
    command.env("TERM", term).stdout(terminal.open()).stderr(terminal.open());
    let mut running = Running::new(command.spawn().unwrap());
    // The command holds the other end of the terminal, too.
    drop(command);
    on_start(&terminal);
    assert_eq!(running.wait(), 1);
    terminal.bytes()
}

/// All records of the run, each whole on its line.
fn assert_records(screen: &str) {
    let records: Vec<Value> = screen
        .lines()
        .filter(|line| line.contains("\"attempts\""))
        .map(|line| serde_json::from_str(line).unwrap_or_else(|_| panic!("garbled: {line}")))
        .collect();
    assert_eq!(records.len(), 120, "{screen}");
    assert!(!screen.contains("/120 "), "a bar was left behind:\n{screen}");
    assert!(screen.contains("promised at most"), "{screen}");
}

#[test]
fn records_go_above_the_bar_and_the_bar_goes_away() {
    for columns in [200, 60] {
        let bytes = run(&[], "xterm", columns, |_| ());
        let text = String::from_utf8_lossy(&bytes);
        assert!(text.contains("/120 ") && text.contains("/s, "), "there was no bar");
        assert!(!text.contains("\x1b[3") && !text.contains("\x1b[1m"), "there was colour");
        assert_records(&shown(&bytes, columns));
    }
}

#[test]
fn a_terminal_that_becomes_narrower() {
    // Shown at the width of before: what was drawn then is not drawn again by the terminal.
    let bytes = run(&[], "xterm", 200, |terminal| terminal.resize(50));
    assert_records(&shown(&bytes, 200));
}

#[test]
fn warnings_go_above_the_bar_too() {
    let bytes = run(&["-vv"], "xterm", 200, |_| ());
    let screen = shown(&bytes, 200);
    assert_records(&screen);
    let attempts = screen.lines().filter(|line| line.contains("longhaul::attempt] GET http://"));
    let whole = attempts.filter(|line| line.starts_with('[') && line.contains(" ms")).count();
    // 108 URLs once, and twelve that are tried four times.
    assert_eq!(whole, 108 + 12 * 4, "{screen}");
}

#[test]
fn a_dumb_terminal_gets_lines() {
    let bytes = run(&["--progress-every", "0.2"], "dumb", 200, |_| ());
    let text = String::from_utf8_lossy(&bytes);
    assert!(!text.contains('\x1b'), "{text}");
    let lines =
        text.lines().filter(|line| line.starts_with("longhaul: ") && line.contains("/120 after "));
    assert!(lines.count() >= 3, "{text}");
    let records = text.lines().filter(|line| line.starts_with('{'));
    assert_eq!(records.filter(|line| serde_json::from_str::<Value>(line).is_ok()).count(), 120);
}
