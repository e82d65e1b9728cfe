//! The built command in its main job: lists of URLs against servers and proxies that nobody here
//! wrote, and what has to hold when they fail, when it is killed, and when it is told nonsense. So
//! has what the library alone does with the files of such servers.
//!
//! What happened is read from what the servers logged and what stands in the results file, not
//! from what the command says of itself. Each test prints its figures; `--nocapture` shows them.
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

mod adaptive;
mod check;
mod cookies;
mod credentials;
mod demo;
mod digest;
mod disk;
mod downloads;
mod get;
mod https_proxies;
mod input;
mod job;
mod kill;
mod memory;
mod names;
mod openssl;
mod proxies;
mod resume;
mod signals;
mod tables;
mod throttle;
mod tls;
mod warc;
