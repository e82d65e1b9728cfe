//! Lines and objects on standard error.

use longhaul::lab::{Origin, Received, Reply, Script};
use serde_json::Value;
use std::collections::BTreeSet;

use super::job::Job;
use super::page::table;

const PAGE: &str = include_str!("../../docs/progress.md");

/// Pages of which every tenth is refused, and every tenth throttled once.
fn site() -> Origin {
    let page = |request: &Received| -> Script {
        match request.path.as_str() {
            path if path.ends_with('3') => Reply::new(403).into(),
            path if path.ends_with('7') => Reply::new(503).into(),
            _ => Reply::ok("page").into(),
        }
    };
    Origin::builder().handler(page).start().unwrap()
}

fn job(origin: &Origin, urls: usize) -> Job {
    Job::new((0..urls).map(|number| origin.url(&format!("/{number}"))))
}

const QUICK: [&str; 6] =
    ["--slow-lane-pause", "0.2", "--slow-lane-spacing", "0.01", "--backoff-factor", "0.1"];

#[test]
fn each_object_has_the_fields_of_the_page() {
    let origin = site();
    let job = job(&origin, 100);
    let flags = ["--json-progress", "-q", "--progress-every", "0.1", "--rate", "200/s"];
    let ended = job.run(&[&flags[..], &QUICK].concat());
    ended.assert_code(1);
    let wanted: BTreeSet<String> = table(PAGE, "| field | type | meaning |")
        .iter()
        .map(|row| row[0].trim_matches('`').to_owned())
        .collect();
    let objects: Vec<Value> =
        ended.stderr.lines().map(|line| serde_json::from_str(line).expect(line)).collect();
    assert!(objects.len() >= 3, "{}", ended.stderr);
    for object in &objects {
        let fields: BTreeSet<String> = object.as_object().unwrap().keys().cloned().collect();
        assert_eq!(fields, wanted);
        let number = |name: &str| object[name].as_u64().unwrap();
        assert_eq!(number("done"), number("ok") + number("failed"));
        assert_eq!(number("total"), 100);
    }
    let last = objects.last().unwrap();
    assert_eq!((&last["done"], &last["eta_s"], &last["ok"]), (&100.into(), &0.into(), &80.into()));
    assert!(last["refusals"].as_u64().unwrap() >= 10, "{last}");
    // Before the end it is known how long it takes: the input was counted, and URLs have ended.
    let told = objects.iter().filter(|object| object["eta_s"].is_u64() && object["done"] != 100);
    assert!(told.count() >= 1, "{}", ended.stderr);
    // Time does not go back, and what is done does not get less.
    for pair in objects.windows(2) {
        for field in ["elapsed_s", "done", "attempts"] {
            assert!(pair[1][field].as_f64() >= pair[0][field].as_f64(), "{field}: {pair:?}");
        }
    }
}

#[test]
fn lines_off_a_terminal() {
    let origin = site();
    let job = job(&origin, 60);
    for (flags, lines) in [
        (&["--progress", "plain", "--progress-every", "0.1", "--rate", "100/s"][..], 3..100),
        (&[][..], 1..3),
        (&["-q", "--progress", "plain"], 1..3),
        (&["--progress", "none"], 0..1),
        (&["-q"], 0..1),
    ] {
        let ended = job.run(&[flags, &["--slow-lane", "off", "--backoff-factor", "0.1"]].concat());
        ended.assert_code(1);
        let said: Vec<_> = ended.stderr.lines().filter(|line| line.contains(" after ")).collect();
        assert!(lines.contains(&said.len()), "{flags:?}: {}", ended.stderr);
        if let Some(last) = said.last() {
            assert!(last.starts_with("longhaul: 60/60 after "), "{last}");
            assert!(
                last.contains(", ok 48, failed 12, in flight 0, waiting 0, refusals 6"),
                "{last}"
            );
        }
        assert!(!ended.stderr.contains('\x1b') && !ended.stderr.contains('\r'));
        if flags.contains(&"-q") {
            assert_eq!(ended.stderr.lines().count(), said.len());
        }
        std::fs::remove_file(job.path("results.jsonl")).unwrap();
    }
}
