//! A bar and records on the same terminal: what somebody sees in the end.

use longhaul::lab::{Origin, Received, Reply, Script};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};
use serde_json::Value;
use std::fs::File;
use std::io::Read;
use std::os::fd::OwnedFd;
use std::thread::{self, JoinHandle};

use super::job::{Job, Running};

/// More rows than are ever needed, so that nothing is scrolled away.
const ROWS: u16 = 4000;

/// A terminal, and what has been written to it.
struct Terminal {
    name: String,
    master: OwnedFd,
    reading: JoinHandle<Vec<u8>>,
}

impl Terminal {
    fn new(columns: u16) -> Self {
        let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&master).unwrap();
        unlockpt(&master).unwrap();
        let name = ptsname(&master, Vec::new()).unwrap().into_string().unwrap();
        let mut reader = File::from(master.try_clone().unwrap());
        // Reading fails once nobody holds the other end any more.
        let reading = thread::spawn(move || {
            let (mut all, mut piece) = (Vec::new(), [0; 65536]);
            while let Ok(length @ 1..) = reader.read(&mut piece) {
                all.extend_from_slice(&piece[..length]);
            }
            all
        });
        let terminal = Self { name, master, reading };
        terminal.resize(columns);
        terminal
    }

    fn resize(&self, columns: u16) {
        let size = Winsize { ws_row: ROWS, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
        tcsetwinsize(&self.master, size).unwrap();
    }

    fn open(&self) -> File {
        File::options().read(true).write(true).open(&self.name).unwrap()
    }

    fn bytes(self) -> Vec<u8> {
        self.reading.join().unwrap()
    }
}

/// What a terminal of so many columns shows of these bytes.
fn shown(bytes: &[u8], columns: u16) -> String {
    let mut parser = vt100::Parser::new(ROWS, columns, 0);
    parser.process(bytes);
    parser.screen().contents()
}

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
