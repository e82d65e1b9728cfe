//! Pure decisions: they receive the time, the randomness and the facts, and return what to do.
//!
//! Nothing in here reads a clock, an environment or a socket, sleeps, locks or draws luck of its
//! own. That is what lets a night of retries over a thousand proxies run in milliseconds, on the
//! same code that runs for real.

mod backoff;
mod budget;
mod capacity;
mod circuit;
mod concurrency;
mod cooldown;
mod disconnects;
mod duration;
mod eta;
mod failure_share;
mod forget;
mod limiter;
mod mail_date;
mod outcome;
mod rate;
mod refusal;
mod retry;
mod retry_after;
mod retry_budget;
mod retry_state;
mod sets;
mod slots;
mod timeouts;
mod wait_lengths;
mod worst_case;

pub use backoff::{Backoff, Shape};
pub use budget::Budget;
pub use capacity::{
    Capacity, CapacityBuilder, Estimate, FailureBill, FailureCost, Latency, LimitedBy, Package,
    PoolSizes, Share, Waits, Work,
};
pub use circuit::HostCircuit;
pub use concurrency::Concurrency;
pub(crate) use concurrency::{Echo, Era, Found, Walk};
pub use cooldown::Cooldown;
pub use disconnects::{DisconnectAlarm, DisconnectRise};
pub use duration::{format_duration, parse_duration};
pub(crate) use eta::{Later, Remaining, Took};
pub use failure_share::{FailureShare, LastOutcomes};
pub(crate) use limiter::{Busy, Limiter, Taken, Visit};
pub use outcome::{Category, Class, Outcome};
pub use rate::RateLimit;
pub use refusal::{BlockPage, SlowLane};
pub use retry::Retry;
pub use retry_after::{LongWait, RetryAfter};
pub use retry_budget::RetryBudget;
pub use retry_state::{Counters, Decision, Exhausted, RetryState, WaitSource};
pub use sets::{Methods, Statuses};
pub(crate) use slots::Slots;
pub use timeouts::Timeouts;
pub(crate) use wait_lengths::{LENGTHS, WaitLengths};
pub use worst_case::{Bound, WorstCase, WorstCaseInput, WorstOutcome, WorstStep};
