//! How long one URL can take at most, exactly.

use super::{Retry, Timeouts};
use std::time::Duration;

/// A bound, or the reason why there is none.
#[allow(clippy::exhaustive_enums, reason = "bounded or not")]
#[derive(Debug, Clone, PartialEq)]
pub enum Bound {
    /// At most this long.
    At(Duration),
    /// No bound exists.
    Unbounded {
        /// Because of this.
        because: String,
    },
}

/// The facts beside the policy that the worst case depends on.
#[derive(Debug, Clone, PartialEq)]
pub struct WorstCaseInput {
    _todo: (),
}

/// The answers for one policy.
#[derive(Debug, Clone, PartialEq)]
pub struct WorstCase {
    _todo: (),
}

impl WorstCase {
    /// The answers for this policy with these timeouts under ordinary assumptions.
    pub fn of(retry: &Retry, timeouts: &Timeouts) -> Self {
        let _ = (retry, timeouts);
        unimplemented!()
    }
    /// The well-known formula.
    pub fn formula(&self) -> Bound {
        unimplemented!()
    }
    /// The tight maximum to the response head.
    pub fn exact(&self) -> Bound {
        unimplemented!()
    }
    /// `exact` with Retry-After at its cap wherever a server may send it.
    pub fn with_retry_after(&self) -> Bound {
        unimplemented!()
    }
    /// What the deadline guarantees.
    pub fn enforced(&self) -> Option<Duration> {
        unimplemented!()
    }
}
