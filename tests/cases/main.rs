//! The failures that people met in the field, by their ids, each on every road that it can take.
//!
//! A test is named after its case (`c20_…`) and asserts what the case calls right: kinds, phases,
//! faults and counts. Beside the failure that was reported stand its siblings: the other statuses,
//! the other positions, the other places to break off.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "tests")]

mod a_backoff;
mod a_retry;
mod a_retry_after;
mod answers;
mod b_clocks;
mod b_names;
mod b_reuse;
mod b_uploads;
mod c_bodies;
mod c_framing;
mod c_heads;
mod d_codings;
mod d_text;
mod e_bodies;
mod e_dead_ends;
mod e_hops;
mod e_locations;
mod f_cookies;
mod g_choosing;
mod h_http_proxies;
mod i_socks;
mod identities;
mod ids;
mod j_credentials;
mod j_requests;
mod k_pool;
mod k_records;
mod roads;
mod said;
mod storm;
mod unchecked;
