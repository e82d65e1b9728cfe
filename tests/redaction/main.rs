//! No credential is ever shown, wherever it was given and whatever goes wrong with it.
//!
//! Credentials of every kind are put into every place that takes some, and then everything that
//! can be printed is: errors with their sources and their history, every public type that may hold
//! one, records, and each line of the log, that of the crates below included.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "tests")]

mod errors;
mod secrets;
mod shown;
