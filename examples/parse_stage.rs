//! When you parse pages as well as fetch them: `then` parses on rayon's threads, one a core,
//! so that a slow page never keeps a worker from its next request.

use longhaul::lab::{Origin, Received, Reply};
use longhaul::workers::Finished;
use longhaul::{Session, WorkerPool};
use std::collections::BTreeMap;

fn site(request: &Received) -> Reply {
    let page: usize = request.path.trim_start_matches('/').parse().unwrap_or(0);
    Reply::ok("the longest haul is the one that nobody watches ".repeat(page % 50 + 1))
}

/// How often each word stands in the page.
fn words(done: Finished) -> Result<BTreeMap<String, usize>, longhaul::Error> {
    let text = done.result?.text()?;
    let mut counts = BTreeMap::new();
    for word in text.split_whitespace() {
        *counts.entry(word.to_owned()).or_default() += 1;
    }
    Ok(counts)
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let origin = Origin::builder().handler(site).start()?;
    let urls: Vec<String> = (0..200).map(|page| origin.url(&format!("/{page}"))).collect();
    let pool = WorkerPool::builder(Session::builder()).workers(8).build()?;

    let mut total = BTreeMap::<String, usize>::new();
    for counted in pool.run(urls).then(words) {
        // The outer result is that of the closure itself: a panic in it is an error, not an end.
        for (word, count) in counted?? {
            *total.entry(word).or_default() += count;
        }
    }
    println!("{total:?}");
    assert_eq!(total.get("haul"), Some(&(4 * (1..=50).sum::<usize>())));
    Ok(())
}
