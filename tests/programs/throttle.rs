//! URLs that ask for a pause do not hold up those that do not.

use std::collections::{HashMap, HashSet};
use std::sync::Mutex;

use longhaul::lab::{Origin, Reply};
use longhaul::secs;
use longhaul::time::{Clock, SystemClock};

use super::job::Job;

const GOOD: usize = 2000;
const BUSY: usize = 50;

#[test]
fn fifty_busy_urls_among_two_thousand_good_ones() {
    let seen = Mutex::new(HashSet::new());
    // nginx cannot answer the first time otherwise than the second.
    let origin = Origin::builder()
        .handler(move |request| {
            let first = seen.lock().unwrap().insert(request.path.clone());
            if first && request.path.starts_with("/busy/") {
                return Reply::new(503).header("Retry-After", "2");
            }
            Reply::ok("page")
        })
        .start()
        .unwrap();
    let every = GOOD / BUSY;
    let job = Job::new((0..GOOD).flat_map(|page| {
        let busy = (page % every == 0).then(|| origin.url(&format!("/busy/{}", page / every)));
        busy.into_iter().chain([origin.url(&format!("/good/{page}"))])
    }));
    let start = SystemClock.now();
    let ended = job.run(&["-w", "2"]);
    let took = SystemClock.now() - start;
    ended.assert_code(0);
    let records = job.all_ok_once();
    assert_eq!(records.len(), GOOD + BUSY);

    for record in &records {
        let attempts = record["attempts"].as_array().unwrap();
        if record["url"].as_str().unwrap().contains("/busy/") {
            assert_eq!(attempts.len(), 2, "{record}");
            assert_eq!(attempts[0]["status"], 503);
            assert_eq!(attempts[0]["wait_reason"], "retry_after");
            assert!(attempts[0]["wait_ms"].as_f64().unwrap() >= 2000.0, "{record}");
        } else {
            assert_eq!(attempts.len(), 1, "{record}");
        }
    }

    // How many URLs waited at once, and how many good ones had come before the first of them was
    // due, in the order in which the origin saw it. A worker that sleeps through a Retry-After
    // could never have more of them wait than there are workers.
    let log = origin.log();
    assert_eq!(log.len(), GOOD + 2 * BUSY);
    let mut visits: HashMap<&str, usize> = HashMap::new();
    let (mut waiting, mut most_waiting, mut good_before) = (0_usize, 0_usize, None);
    for (number, request) in log.iter().enumerate() {
        let visit = visits.entry(&request.path).or_default();
        *visit += 1;
        match (*visit, request.path.starts_with("/busy/")) {
            (1, true) => waiting += 1,
            (_, true) => {
                good_before.get_or_insert(number - most_waiting);
                waiting -= 1;
            }
            _ => {}
        }
        most_waiting = most_waiting.max(waiting);
    }
    assert!(most_waiting > 2, "{most_waiting} waited at once");
    // Fifty pauses of two seconds on two workers take fifty seconds.
    assert!(took < secs(15.0), "{took:?}");
    println!(
        "{took:.2?} in all; {most_waiting} of {BUSY} waited at once, {} good ones came first",
        good_before.unwrap()
    );
}
