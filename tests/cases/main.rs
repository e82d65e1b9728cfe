//! The failures that people met in the field, by their ids, each on every road that it can take.
//!
//! A test is named after its case (`c20_…`) and asserts what the case calls right: kinds, phases,
//! faults and counts. Beside the failure that was reported stand its siblings: the other statuses,
//! the other positions, the other places to break off.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "tests")]

mod b_connections;
mod c_framing;
mod f_cookies;
mod g_choosing;
mod h_http_proxies;
mod i_socks;
mod identities;
mod j_credentials;
mod j_requests;
mod roads;
mod said;
mod storm;
