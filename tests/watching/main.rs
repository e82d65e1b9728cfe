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

#[path = "../support/page.rs"]
mod page;

mod logs;
mod metrics;
mod progress;
mod tally;
mod terminal;
