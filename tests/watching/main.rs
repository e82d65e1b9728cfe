//! What the built command lets be seen of a run while it goes on: progress, tally, metrics, log.
#![cfg(all(feature = "cli", unix))]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "helpers of tests fail by panicking, as tests do"
)]

#[path = "../support/mod.rs"]
mod support;

#[allow(dead_code, reason = "the tests of `programs` use all of it")]
#[path = "../programs/job.rs"]
mod job;

mod logs;
mod metrics;
mod progress;
mod tally;
mod terminal;

/// The cells of each row of the first table that starts with `header`.
fn table<'a>(text: &'a str, header: &str) -> Vec<Vec<&'a str>> {
    text.lines()
        .skip_while(|line| !line.starts_with(header))
        .skip(2)
        .take_while(|line| line.starts_with('|'))
        .map(|line| line.trim_matches('|').split('|').map(str::trim).collect())
        .collect()
}
