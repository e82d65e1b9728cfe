//! The answers of the real libraries against ours.
//!
//! Every `*.jsonl` of a folder is read (`tests/vectors`, or the one that the variable
//! `LONGHAUL_VECTORS` names), and the beginning of its name says what it asks. For each file and
//! each way of reading it one line is printed: how many vectors passed, how many are set aside
//! under which DIFFERENCE, how many failed. None may fail.
//!
//! A vector is set aside by a rule on its content, never by its id, and a rule is asked only
//! where the answers differ: so other vectors of the same makers are judged by the same rules.
//! `docs/requests-compat.md` explains the differences and shows the figures of this run.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a vector that is not as described fails the test"
)]

mod cookies;
mod differences;
mod digest;
mod document;
mod encoding;
mod exceptions;
mod message;
mod multipart;
mod netrc;
mod policy;
mod proxy;
mod retry_trace;
mod verdict;
mod worst_case;

use std::collections::BTreeMap;
use std::fs;
use std::io::Write as _;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use verdict::{Tally, Vector, Verdict};

/// One question that a kind of file asks.
struct Reading {
    /// What the names of its files begin with.
    stem: &'static str,
    /// What is asked, where a file asks several things.
    what: &'static str,
    /// `None` where a vector does not ask this.
    judge: fn(&Vector) -> Option<Verdict>,
}

const READINGS: &[Reading] = &[
    Reading { stem: "retry_trace", what: "", judge: retry_trace::by_urllib3s_categories },
    Reading { stem: "retry_trace", what: "our categories", judge: retry_trace::by_our_categories },
    Reading { stem: "retry_after", what: "", judge: policy::retry_after },
    Reading { stem: "worst_case", what: "", judge: worst_case::worst_case },
    Reading { stem: "worst_case", what: "as a session", judge: worst_case::as_requests },
    Reading { stem: "worst_case", what: "formula", judge: worst_case::formula },
    Reading { stem: "proxy_select", what: "one map", judge: proxy::by_one_map },
    Reading { stem: "proxy_select", what: "chosen", judge: proxy::chosen },
    Reading { stem: "proxy_select", what: "after a redirect", judge: proxy::after_a_redirect },
    Reading { stem: "no_proxy", what: "", judge: proxy::no_proxy },
    Reading { stem: "netrc", what: "", judge: netrc::netrc },
    Reading { stem: "digest", what: "", judge: digest::digest },
    Reading { stem: "redirect_rewrite", what: "", judge: message::redirect_rewrite },
    Reading { stem: "url_prepare", what: "", judge: message::url_prepare },
    Reading { stem: "cookies", what: "sent", judge: cookies::sent },
    Reading { stem: "cookies", what: "jar", judge: cookies::jar },
    Reading { stem: "encoding", what: "", judge: encoding::encoding },
    Reading { stem: "multipart", what: "", judge: multipart::multipart },
    Reading { stem: "exceptions", what: "", judge: exceptions::raised },
    Reading { stem: "exceptions", what: "attempts", judge: exceptions::attempts },
    Reading { stem: "exceptions", what: "streamed", judge: exceptions::raised_in_stream_mode },
    Reading {
        stem: "exceptions",
        what: "streamed, attempts",
        judge: exceptions::attempts_in_stream_mode,
    },
];

/// Most of the time the vectors with servers wait for a clock.
const THREADS: usize = 32;

fn built_in() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/vectors")
}

/// The files of a folder by their stem, in the order of their names.
fn files(folder: &Path) -> BTreeMap<String, PathBuf> {
    let entries = fs::read_dir(folder).unwrap_or_else(|error| panic!("{folder:?}: {error}"));
    entries
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "jsonl"))
        .map(|path| (path.file_stem().unwrap().to_string_lossy().into_owned(), path))
        .collect()
}

/// The vectors that come with the package and ask this.
fn built_in_vectors(question: &str) -> impl Iterator<Item = (String, Vec<Vector>)> {
    files(&built_in())
        .into_iter()
        .filter(move |(stem, _)| stem.starts_with(question))
        .map(|(stem, path)| (stem, read(&path)))
}

fn read(path: &Path) -> Vec<Vector> {
    let text = fs::read_to_string(path).unwrap_or_else(|error| panic!("{path:?}: {error}"));
    text.lines().map(Vector::parse).collect()
}

fn judge(file: &str, reading: &Reading, vectors: &[Vector]) -> Tally {
    let (next, verdicts) = (AtomicUsize::new(0), Mutex::new(BTreeMap::new()));
    let take = || {
        let at = next.fetch_add(1, Ordering::Relaxed);
        vectors.get(at).map(|vector| (at, vector))
    };
    let work = || {
        while let Some((at, vector)) = take() {
            // One that brings the code down is a failure like others, told by its id.
            let verdict = catch_unwind(AssertUnwindSafe(|| (reading.judge)(vector)))
                .unwrap_or_else(|_| Some(Verdict::Failed(format!("panicked: {}", vector.line))));
            verdicts.lock().unwrap().insert(at, verdict);
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(work);
        }
    });
    let mut tally = Tally::new(file, reading.what);
    for (at, verdict) in verdicts.into_inner().unwrap() {
        if let Some(verdict) = verdict {
            tally.add(&vectors[at].id, verdict);
        }
    }
    tally
}

/// The tallies of all files of a folder, and the files that nobody can read yet.
fn judge_all(folder: &Path) -> (Vec<Tally>, Vec<String>) {
    let (mut tallies, mut not_covered) = (Vec::new(), Vec::new());
    for (stem, path) in files(folder) {
        let readings: Vec<_> =
            READINGS.iter().filter(|reading| stem.starts_with(reading.stem)).collect();
        if readings.is_empty() {
            not_covered.push(stem);
            continue;
        }
        let vectors = read(&path);
        tallies.extend(readings.iter().map(|reading| judge(&stem, reading, &vectors)));
    }
    (tallies, not_covered)
}

#[test]
fn every_vector_passes_or_is_set_aside_by_name() {
    let folder = std::env::var_os("LONGHAUL_VECTORS").map_or_else(built_in, PathBuf::from);
    let (tallies, not_covered) = judge_all(&folder);
    let mut report = format!("\nvectors of {}\n", folder.display());
    for tally in &tallies {
        report += &format!("{tally}\n");
    }
    for stem in &not_covered {
        report += &format!("{stem}: not covered\n");
    }
    let failures: Vec<&str> = tallies.iter().flat_map(Tally::failures).collect();
    for failure in failures.iter().take(50) {
        report += &format!("FAILED {failure}\n");
    }
    // Past the capture of the test harness: the figures are for whoever runs this.
    std::io::stdout().lock().write_all(report.as_bytes()).unwrap();
    assert!(!tallies.is_empty(), "no vectors in {}", folder.display());
    assert!(failures.is_empty(), "{} vectors failed", failures.len());
}

#[test]
fn the_figures_of_the_document_are_those_of_the_run() {
    let (tallies, not_covered) = judge_all(&built_in());
    assert!(not_covered.is_empty(), "{not_covered:?}");
    document::shows_the_figures(&tallies);
}

#[test]
fn a_name_that_sets_aside_stands_in_the_document() {
    let known = document::documented();
    for tally in judge_all(&built_in()).0 {
        for name in tally.names() {
            assert!(known.contains(name), "{name} of {}", tally.title());
        }
    }
}
