//! The answers of the real libraries against ours; see `tests/vectors/README.md`.

mod message;
mod policy;
mod proxy;
