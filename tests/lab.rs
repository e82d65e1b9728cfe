//! The servers of the lab, seen by clients that know nothing of longhaul.
#![cfg(feature = "lab")]
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "helpers of tests fail by panicking, as tests do"
)]

#[path = "lab/http_proxy.rs"]
mod http_proxy;
#[path = "lab/origin.rs"]
mod origin;
#[path = "support/raw.rs"]
mod raw;
#[path = "lab/socks_proxy.rs"]
mod socks_proxy;
