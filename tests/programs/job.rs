//! One job of the command in a folder of its own, and what it leaves there.

use std::collections::HashMap;
use std::fs::{self, File};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tempfile::TempDir;

use super::support::process::eventually;

/// A list of URLs and its results.
pub(crate) struct Job {
    folder: TempDir,
}

impl Job {
    pub(crate) fn new<U: AsRef<str>>(urls: impl IntoIterator<Item = U>) -> Self {
        let job = Self { folder: tempfile::tempdir().unwrap() };
        let lines: String = urls.into_iter().map(|url| format!("{}\n", url.as_ref())).collect();
        job.write("urls.txt", lines);
        job
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, content: impl AsRef<[u8]>) {
        fs::write(self.path(name), content).unwrap();
    }

    pub(crate) fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap()
    }

    /// `longhaul` with these arguments, in this folder and with a bare environment.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_longhaul"));
        for name in ["http_proxy", "https_proxy", "all_proxy", "no_proxy", "rust_log"] {
            command.env_remove(name).env_remove(name.to_uppercase());
        }
        command
            .current_dir(self.folder.path())
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(File::create(self.path("stdout")).unwrap())
            .stderr(File::create(self.path("stderr")).unwrap());
        command
    }

    /// `longhaul run` over the list, into `results.jsonl`.
    pub(crate) fn over_list(&self, flags: &[&str]) -> Command {
        let over = ["run", "-i", "urls.txt", "-o", "results.jsonl", "--no-env"];
        self.command(&[&over[..], flags].concat())
    }

    /// Runs over the list, to the end.
    pub(crate) fn run(&self, flags: &[&str]) -> Ended {
        self.end(self.over_list(flags))
    }

    /// Runs this command of ours to its end.
    pub(crate) fn end(&self, mut command: Command) -> Ended {
        self.ended(&mut Running(command.spawn().unwrap()))
    }

    /// Waits for the end of what was started.
    pub(crate) fn ended(&self, running: &mut Running) -> Ended {
        let code = running.wait();
        Ended { code, stdout: self.read("stdout"), stderr: self.read("stderr") }
    }

    pub(crate) fn start(&self, flags: &[&str]) -> Running {
        Running(self.over_list(flags).spawn().unwrap())
    }

    /// `longhaul run` over what is written into the pipe that comes with it, in place of the list.
    pub(crate) fn start_piped(&self, flags: &[&str]) -> (Running, ChildStdin) {
        self.start_piped_in(&[], flags)
    }

    /// The same, with these variables added to the environment.
    pub(crate) fn start_piped_in(
        &self,
        environment: &[(&str, &str)],
        flags: &[&str],
    ) -> (Running, ChildStdin) {
        let over = ["run", "-i", "-", "-o", "results.jsonl", "--no-env"];
        let mut command = self.command(&[&over[..], flags].concat());
        command.envs(environment.iter().copied());
        let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
        let input = child.stdin.take().unwrap();
        (Running(child), input)
    }

    /// Waits until standard error has this in it.
    pub(crate) fn wait_for_words(&self, words: &str) {
        let is_there = || self.read("stderr").contains(words);
        assert!(eventually(is_there), "no word of {words:?}: {}", self.read("stderr"));
    }

    /// Starts this command of ours.
    pub(crate) fn spawn(&self, arguments: &[&str]) -> Running {
        Running(self.command(arguments).spawn().unwrap())
    }

    /// Complete lines in the results so far.
    pub(crate) fn lines(&self) -> usize {
        let bytes = fs::read(self.path("results.jsonl")).unwrap_or_default();
        bytes.iter().filter(|byte| **byte == b'\n').count()
    }

    pub(crate) fn wait_for_lines(&self, count: usize) {
        assert!(eventually(|| self.lines() >= count), "{} lines", self.lines());
    }

    /// The records of `results.jsonl`.
    pub(crate) fn records(&self) -> Vec<Value> {
        records(&self.read("results.jsonl"))
    }

    /// The records, after a check that each line of the list stands there exactly once, as ok.
    pub(crate) fn all_ok_once(&self) -> Vec<Value> {
        let records = self.records();
        let mut found: HashMap<&str, usize> = HashMap::new();
        for record in &records {
            assert_eq!((&record["ok"], &record["class"]), (&true.into(), &"ok".into()), "{record}");
            *found.entry(record["url"].as_str().unwrap()).or_default() += 1;
        }
        let list = self.read("urls.txt");
        let wanted: HashMap<&str, usize> = list.lines().map(|url| (url, 1)).collect();
        assert_eq!(wanted.len(), list.lines().count(), "the list repeats itself");
        assert_eq!(found, wanted);
        records
    }

    /// Asserts that none of these texts stands in any file of this job but its list.
    pub(crate) fn assert_nowhere(&self, secrets: &[&str]) {
        for entry in fs::read_dir(self.folder.path()).unwrap() {
            let path = entry.unwrap().path();
            let bytes = fs::read(&path).unwrap();
            let text = String::from_utf8_lossy(&bytes);
            for secret in secrets {
                let line = text.lines().find(|line| line.contains(secret));
                assert_eq!(line, None, "{secret} in {}", path.display());
            }
        }
    }
}

pub(crate) fn records(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Attempts beyond the first one of each URL.
pub(crate) fn retries(records: &[Value]) -> usize {
    records.iter().map(|record| record["attempts"].as_array().unwrap().len() - 1).sum()
}

/// What came of a run.
pub(crate) struct Ended {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Ended {
    pub(crate) fn assert_code(&self, code: i32) {
        assert_eq!(self.code, code, "{}", self.stderr);
    }

    /// The row `run` of the summary's table of times, for the figures that a test prints.
    pub(crate) fn took(&self) -> &str {
        let row = self.stderr.lines().find_map(|line| line.trim_start().strip_prefix("run "));
        row.unwrap_or("no summary").trim()
    }
}

/// A command that has not ended; killed when dropped.
pub(crate) struct Running(Child);

impl Running {
    pub(crate) fn new(child: Child) -> Self {
        Self(child)
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.0), signal).unwrap();
    }

    pub(crate) fn id(&self) -> u32 {
        self.0.id()
    }

    pub(crate) fn kill(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }

    /// The exit code.
    ///
    /// # Panics
    /// When it does not end, or is ended by a signal.
    pub(crate) fn wait(&mut self) -> i32 {
        let mut status = None;
        // Several times the ordinary patience: thousands of URLs on a machine that is busy.
        let ended = (0..6).any(|_| {
            eventually(|| {
                status = self.0.try_wait().unwrap();
                status.is_some()
            })
        });
        assert!(ended, "it does not end");
        status.unwrap().code().expect("ended by a signal")
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
