//! A resumption over a list that is not what it was: another order, repeated lines, failures.

use std::collections::HashMap;
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crossbeam_channel::unbounded;
use longhaul::lab::{Origin, Received, Reply};
use longhaul::secs;

use super::job::Job;
use super::kill::Dice;

const ITEMS: usize = 200;
const KILLS: usize = 50;

/// The items: plain URLs, objects that bring an id, and bodies to one URL. Every tenth is gone.
fn item(origin: &Origin, number: usize) -> String {
    let url = |path: &str| origin.url(path);
    match number % 10 {
        0 => url(&format!("/gone/{number}")),
        1 => format!(r#"{{"id":"item {number}","url":"{}"}}"#, url(&format!("/{number}"))),
        2 => format!(r#"{{"url":"{}","method":"POST","body":"{number}"}}"#, url("/post")),
        _ => url(&format!("/{number}")),
    }
}

#[test]
fn c152_with_repeats_failures_and_another_order_each_item_is_there_once() {
    let (asked, paths) = unbounded();
    let is_back = Arc::new(AtomicBool::new(false));
    let now = Arc::clone(&is_back);
    let answer = move |request: &Received| {
        asked.send(request.path.clone()).unwrap();
        let is_gone = request.path.starts_with("/gone/") && !now.load(Ordering::SeqCst);
        if is_gone { Reply::new(404) } else { Reply::ok("page") }
    };
    let origin = Origin::builder().handler(answer).start().unwrap();
    let items: Vec<_> = (0..ITEMS).map(|number| item(&origin, number)).collect();
    let job = Job::new(&items);
    job.write("results.jsonl", "");
    let mut dice = Dice::new(5);
    let flags = ["-w", "2", "--rate", "200/s", "--resume"];
    let mut killed = 0;
    for _ in 0..KILLS {
        if job.lines() + 30 > ITEMS {
            break;
        }
        // Shuffled, and every fifth line twice.
        let mut lines = items.clone();
        lines.extend((0..ITEMS / 5).map(|_| items[dice.below(ITEMS)].clone()));
        for at in (1..lines.len()).rev() {
            lines.swap(at, dice.below(at + 1));
        }
        job.write("urls.txt", lines.join("\n"));
        let mut running = job.start(&flags);
        for _ in 0..1 + dice.below(3) {
            paths.recv_timeout(secs(60.0)).expect("it stands still");
        }
        // While it writes, nobody else does.
        if killed % 10 == 0 {
            let mut other = job.over_list(&flags);
            let other = other.stdout(Stdio::piped()).stderr(Stdio::piped()).output().unwrap();
            let told = String::from_utf8(other.stderr).unwrap();
            assert_eq!(other.status.code(), Some(2), "{told}");
            assert!(told.contains("is being written by another run"), "{told}");
        }
        running.kill();
        paths.try_iter().for_each(drop);
        killed += 1;
    }
    job.run(&flags).assert_code(1);
    let mut classes: HashMap<String, usize> = HashMap::new();
    let mut ids = HashMap::new();
    for record in job.records() {
        *classes.entry(record["class"].as_str().unwrap().to_owned()).or_default() += 1;
        *ids.entry(record["id"].as_str().unwrap().to_owned()).or_insert(0) += 1;
    }
    assert_eq!(classes, HashMap::from([("ok".into(), 180), ("permanent".into(), 20)]));
    assert!(ids.len() == ITEMS && ids.values().all(|count| *count == 1), "{ids:?}");
    assert!(killed >= KILLS / 2, "it was too fast: {killed} kills");

    // What failed is asked for again where that is wanted, and nothing else is.
    paths.try_iter().for_each(drop);
    job.run(&flags).assert_code(1);
    assert_eq!(paths.try_iter().count(), 0);
    is_back.store(true, Ordering::SeqCst);
    job.run(&[&flags[..], &["--retry-failed"]].concat()).assert_code(0);
    let again: Vec<_> = paths.try_iter().collect();
    assert_eq!(again.len(), 20);
    assert!(again.iter().all(|path| path.starts_with("/gone/")), "{again:?}");
    let records = job.records();
    assert_eq!(records.len(), ITEMS);
    assert!(records.iter().all(|record| record["ok"] == true));
    println!("{killed} kills over {ITEMS} items in as many orders");
}
