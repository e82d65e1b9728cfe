//! `longhaul demo`: its numbers add up, whatever the seed.

use std::collections::HashSet;
use std::fs;
use std::sync::{Mutex, PoisonError};

use super::job::{Job, records};

/// Runs the demo and holds its file against its list, its table and its promise.
fn demo(urls: usize, seed: u32) {
    // One at a time: several would starve each other, and a page that comes late is retried.
    static ALONE: Mutex<()> = Mutex::new(());
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let job = Job::new([""; 0]);
    let (count, number) = (urls.to_string(), seed.to_string());
    let mut command = job.command(&["demo", "--urls", &count, "--seed", &number]);
    let temporary = tempfile::tempdir().unwrap();
    command.env("TMPDIR", temporary.path());
    let ended = job.end(command);
    ended.assert_code(0);
    assert_eq!(ended.stdout, "");
    let verdict = format!("demo: {urls} URLs, every outcome as expected");
    assert!(ended.stderr.contains(&verdict), "{}", ended.stderr);

    let folders: Vec<_> = fs::read_dir(temporary.path()).unwrap().collect();
    assert_eq!(folders.len(), 1, "{folders:?}");
    let folder = folders[0].as_ref().unwrap().path();
    let results = folder.join("results.jsonl");
    assert!(ended.stderr.contains(results.to_str().unwrap()), "{}", ended.stderr);
    let list = fs::read_to_string(folder.join("urls.txt")).unwrap();
    let wanted: HashSet<&str> = list.lines().collect();
    assert_eq!(wanted.len(), urls);
    let records = records(&fs::read_to_string(results).unwrap());
    let found: HashSet<&str> =
        records.iter().map(|record| record["url"].as_str().unwrap()).collect();
    assert_eq!((records.len(), found), (urls, wanted));

    // The table of outcomes, counted again.
    let rows: Vec<String> = ended
        .stderr
        .lines()
        .map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "))
        .collect();
    let row = |start: &str| {
        let row = rows.iter().find_map(|row| row.strip_prefix(start));
        let number = row.and_then(|rest| rest.split(' ').next()).unwrap_or("0");
        number.parse::<usize>().unwrap()
    };
    let of_class = |class| records.iter().filter(|record| record["class"] == class).count();
    for class in ["ok", "permanent", "retryable", "refused"] {
        assert_eq!(row(&format!("{class} ")), of_class(class), "{class}");
    }
    assert_eq!(row("all "), urls);
    let attempts = records.iter().map(|record| record["attempts"].as_array().unwrap().len());
    assert_eq!(row("attempts "), attempts.sum::<usize>());

    // No URL took longer than the plan promised.
    let promised = rows.iter().find_map(|row| row.strip_prefix("one URL at most ")).unwrap();
    let promised: f64 = promised.split(' ').next().unwrap().parse().unwrap();
    let elapsed = |record: &serde_json::Value| record["elapsed_ms"].as_f64().unwrap() / 1000.0;
    let longest = records.iter().map(elapsed).fold(0.0, f64::max);
    assert!(longest <= promised, "{longest} s, promised {promised} s");
    println!(
        "demo, seed {seed}: {urls} URLs, {} ok, longest {longest:.3} s of {promised} s; {}",
        of_class("ok"),
        ended.took()
    );
}

#[test]
fn in_full() {
    demo(1200, 1);
}

#[test]
fn other_seeds() {
    for seed in 2..=4 {
        demo(200, seed);
    }
}
