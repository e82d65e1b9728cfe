//! The wait before a retry.

/// The shape of the waits between attempts.
#[derive(Debug, Clone, PartialEq)]
pub struct Backoff {
    _todo: (),
}
