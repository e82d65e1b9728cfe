//! The table of failed attempts: true at every moment, whatever ends the run.

use longhaul::batch::{Exceptions, Record};
use longhaul::lab::{Origin, Received, Reply, Script};
use std::collections::BTreeMap;
use std::fs;

use super::job::Job;
use super::support::process::eventually;

/// Every eighth page is cut off. Connections are not kept, so that none is cut that was used before,
/// which would be worth a further attempt.
fn site() -> Origin {
    let page = |request: &Received| -> Script {
        let number: u32 = request.path[1..].parse().unwrap();
        match number % 8 {
            0 => Script::new().rst(),
            _ => Reply::ok("page").close().into(),
        }
    };
    Origin::builder().handler(page).start().unwrap()
}

/// The table of these records.
fn recounted(records: &str) -> String {
    let mut table = Exceptions::default();
    for line in records.split_inclusive('\n').filter(|line| line.ends_with('\n')) {
        table.add(&Record::parse(line.as_bytes()).unwrap());
    }
    let mut text = Vec::new();
    table.write_tsv(&mut text).unwrap();
    String::from_utf8(text).unwrap()
}

/// The count of each line, after a check that the table is whole.
fn counts(table: &str) -> BTreeMap<String, u64> {
    let mut lines = table.lines();
    assert_eq!(lines.next(), Some("hour\texception\texit\tcount"));
    assert!(table.ends_with('\n'));
    lines
        .map(|line| {
            let cells: Vec<_> = line.split('\t').collect();
            assert_eq!(cells.len(), 4, "{line}");
            (cells[..3].join("\t"), cells[3].parse().unwrap())
        })
        .collect()
}

fn flags<'a>(more: &[&'a str]) -> Vec<&'a str> {
    let flags = ["--tally", "tally.tsv", "--rate", "400/s", "--backoff-factor", "0.05"];
    [&flags[..], more].concat()
}

#[test]
fn killed_again_and_again_it_is_whole_and_in_the_end_exact() {
    let origin = site();
    let job = Job::new((0..800).map(|number| origin.url(&format!("/{number}"))));
    for (kills, until) in [100, 250, 400, 550].into_iter().enumerate() {
        let resume: &[&str] = if kills == 0 { &[] } else { &["--resume"] };
        let mut running = job.start(&flags(resume));
        job.wait_for_lines(until);
        running.kill();
        // At most a second behind, never ahead, and never torn.
        let records = counts(&recounted(&job.read("results.jsonl")));
        for (line, count) in counts(&job.read("tally.tsv")) {
            assert!(count <= records[&line], "{line}: {count} of {}", records[&line]);
        }
    }
    let ended = job.run(&flags(&["--resume"]));
    ended.assert_code(1);
    let (tally, records) = (job.read("tally.tsv"), job.read("results.jsonl"));
    assert_eq!(tally, recounted(&records));
    // 100 pages that are cut off three times each.
    assert_eq!(counts(&tally).values().sum::<u64>(), 300, "{tally}");
    assert!(
        counts(&tally).keys().all(|line| line.ends_with("\tConnectionError\tdirect")),
        "{tally}"
    );

    // What is done again keeps its lines, and adds to them.
    job.run(&flags(&["--resume", "--retry-failed"])).assert_code(1);
    assert_eq!(counts(&job.read("tally.tsv")).values().sum::<u64>(), 600);
}

#[test]
fn it_is_there_while_the_run_goes_on() {
    let page = |request: &Received| -> Script {
        if request.path == "/hold" { Script::new().hold() } else { Script::new().rst() }
    };
    let origin = Origin::builder().handler(page).start().unwrap();
    let job = Job::new(["/hold", "/1", "/2"].map(|path| origin.url(path)));
    let running = job.start(&[
        "--tally",
        "tally.tsv",
        "--read-timeout",
        "600",
        "--read",
        "1",
        "--backoff-factor",
        "0",
    ]);
    let sum = || -> u64 {
        let table = fs::read_to_string(job.path("tally.tsv")).unwrap_or_default();
        if table.is_empty() { 0 } else { counts(&table).values().sum() }
    };
    assert!(eventually(|| sum() == 4), "{}", job.read("stderr"));
    drop(running);
}

#[test]
fn what_cannot_be_is_told_before_the_run() {
    let origin = site();
    let job = Job::new([origin.url("/1")]);
    job.write("old.tsv", "hour\texception\texit\tcount\n2027-01-31T22:00:00Z\tReadTimeout\n");
    job.write("results.jsonl", "");
    for (file, more, wanted) in [
        ("old.tsv", "-q", "--tally: old.tsv holds something; go on with it by --resume"),
        ("old.tsv", "--resume", "old.tsv:2: not an hour, an exception, an exit and a count"),
        ("urls.txt", "--resume", "urls.txt:1: not a tally, whose first line names the columns"),
        ("none/tally.tsv", "-q", "the folder of the tally none/tally.tsv is not there; make it"),
        ("results.jsonl", "-q", "--tally: results.jsonl is where the records go"),
        ("/dev/null", "-q", "--tally: /dev/null is no regular file; name one"),
    ] {
        let ended = job.run(&["--tally", file, more]);
        ended.assert_code(2);
        assert!(ended.stderr.contains(wanted), "{}", ended.stderr);
        assert_eq!(ended.stderr.lines().count(), 1, "{}", ended.stderr);
    }
    assert_eq!(origin.counts().requests, 0);
}

#[test]
fn it_is_not_written_over_the_results() {
    let origin = site();
    let job = Job::new([origin.url("/1")]);
    job.run(&[]).assert_code(0);
    let before = job.read("results.jsonl");
    std::os::unix::fs::symlink("results.jsonl", job.path("link")).unwrap();
    for tally in ["./results.jsonl", "link"] {
        let ended = job.run(&["--resume", "--tally", tally]);
        ended.assert_code(2);
        let wanted =
            format!("the tally {tally} would take the place of the results in results.jsonl");
        assert!(ended.stderr.contains(&wanted), "{}", ended.stderr);
        assert_eq!(job.read("results.jsonl"), before);
    }
}
