//! When you leave a list for the night and something will interrupt it: the results file is the
//! journal, and the same run with `Existing::Resume` does what is left, each URL once.

use longhaul::batch::{Existing, Outcome, Source};
use longhaul::lab::{Origin, Reply};
use longhaul::workers::Stopper;
use longhaul::{Batch, Session};
use std::path::Path;
use std::sync::{Arc, OnceLock};

const URLS: u64 = 500;

fn run(
    folder: &Path,
    existing: Existing,
    interrupt_after: u64,
) -> Result<Outcome, longhaul::Error> {
    let stopper = Arc::new(OnceLock::<Stopper>::new());
    let (at_hand, mut written) = (Arc::clone(&stopper), 0);
    let batch = Batch::builder(Session::builder())
        .source(Source::file(folder.join("urls.txt")))
        .output(folder.join("results.jsonl"))
        .existing(existing)
        .workers(8)
        // Stands for Ctrl-C: no more is taken, and what flies finishes.
        .on_record(move |_| {
            written += 1;
            if let Some(stopper) = at_hand.get().filter(|_| written == interrupt_after) {
                stopper.close();
            }
        })
        .build()?;
    let _ = stopper.set(batch.stopper());
    batch.run()
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let origin = Origin::builder().handler(|request| Reply::ok(&request.path)).start()?;
    let folder = tempfile::tempdir()?;
    let list: String = (0..URLS).map(|page| origin.url(&format!("/{page}\n"))).collect();
    std::fs::write(folder.path().join("urls.txt"), list)?;

    let first = run(folder.path(), Existing::Refuse, 200)?;
    println!(
        "{} done, then: {}",
        first.summary.ok,
        first.stopped.map_or("".into(), |why| why.to_string())
    );
    let second = run(folder.path(), Existing::Resume { retry_failed: true }, 0)?;
    println!("{} before, {} now", second.summary.ok_before, second.summary.ok);

    assert!(first.summary.ok >= 200 && first.summary.unfinished > 0);
    assert_eq!(first.summary.ok + second.summary.ok, URLS);
    let records = std::fs::read_to_string(folder.path().join("results.jsonl"))?;
    assert_eq!((records.lines().count() as u64, origin.counts().requests), (URLS, URLS));
    Ok(())
}
