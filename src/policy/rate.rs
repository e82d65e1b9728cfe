//! A smooth limit of events per second.

use std::time::{Duration, Instant};

/// At most `per_second` events, evenly spaced rather than in bursts (GCRA).
#[derive(Debug, Clone)]
pub struct RateLimit {
    _todo: (),
}

impl RateLimit {
    /// A limit with room for `burst` events at once (1 is perfectly smooth).
    pub fn new(per_second: f64, burst: u32) -> Option<Self> {
        let _ = (per_second, burst);
        unimplemented!()
    }
    /// Takes a slot now, or says when the next one is free.
    ///
    /// # Errors
    /// The earliest time at which a slot is free; nothing is taken.
    pub fn check(&mut self, now: Instant) -> Result<(), Instant> {
        let _ = now;
        unimplemented!()
    }
    /// Takes the next free slot, now or later, and says when it is.
    pub fn reserve(&mut self, now: Instant) -> Instant {
        let _ = now;
        unimplemented!()
    }
    /// The mean distance of two events.
    pub fn interval(&self) -> Duration {
        unimplemented!()
    }
}
