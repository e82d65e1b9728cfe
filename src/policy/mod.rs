//! Pure decisions: they receive the time, the randomness and the facts, and return what to do.

mod backoff;
mod cooldown;
mod outcome;
mod rate;
mod retry;
mod retry_after;
mod timeouts;
mod worst_case;

pub use backoff::Backoff;
pub use cooldown::Cooldown;
pub use outcome::{Category, Class, Outcome};
pub use rate::RateLimit;
pub use retry::{Budget, Decision, Exhausted, Methods, Retry, RetryState, Statuses, WaitSource};
pub use retry_after::{LongWait, RetryAfter};
pub use timeouts::{Timeouts, parse_duration};
pub use worst_case::{Bound, WorstCase, WorstCaseInput};
