//! The usual script of requests (session, adapter, `Retry`, thread pool, second pass) as a program;
//! `docs/from-requests-script.md` has both side by side.

use longhaul::batch::{Batch, Source};
use longhaul::policy::SlowLane;
use longhaul::{ProxyPool, Retry, Session, secs};
use std::process::ExitCode;

fn main() -> Result<ExitCode, longhaul::Error> {
    let session = Session::builder()
        .proxies(ProxyPool::parse("http://anna:secret@10.0.0.1:8000")?)
        .header("User-Agent", "price-watch/1.0")
        .timeout((secs(5.0), secs(25.0)))
        .retry(Retry::long_run());
    let outcome = Batch::builder(session)
        .source(Source::file("urls.txt"))
        .output("results.jsonl")
        .workers(24)
        .passes(2)
        .slow_lane(SlowLane::default().pause(secs(5.0)))
        .on_record(|record| {
            if let Some(error) = &record.error {
                eprintln!("{}: {} ({})", record.url, error.message, error.requests_name);
            }
        })
        .build()?
        .run()?;
    let summary = &outcome.summary;
    println!("{} of {} URLs in {:.1} s", summary.ok, summary.urls, summary.elapsed_ms / 1000.0);
    Ok(outcome.exit_code().into())
}
