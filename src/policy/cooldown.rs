//! Hosts that asked for quiet.

use crate::rng::Rng;
use std::time::{Duration, Instant};

/// Which (host, identity) pairs and which hosts are to be left alone, and until when.
///
/// A 429 speaks to this client: the host as seen from that identity cools down. A 503 speaks of a
/// resource: the host only when at least half of its last 20 answers were throttles.
#[derive(Debug, Default)]
pub struct Cooldown {
    _todo: (),
}

impl Cooldown {
    /// Notes the answer `status` of `host` to `identity`, with the wait it asks for.
    pub fn note(&mut self, host: &str, identity: &str, status: u16, wait: Duration, now: Instant) {
        let _ = (host, identity, status, wait, now);
        unimplemented!()
    }
    /// When `host` may be asked again from `identity`, with a jitter on top so that not all that
    /// wait wake at once; `None` is now.
    pub fn until(
        &self,
        host: &str,
        identity: &str,
        now: Instant,
        rng: &mut Rng,
    ) -> Option<Instant> {
        let _ = (host, identity, now, rng);
        unimplemented!()
    }
}
