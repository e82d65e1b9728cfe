//! A transport without sockets: for tests of policies, and for users who test their own.

use super::{AttemptLimits, Incoming, Outgoing, Transport};
use crate::error::Error;
use crate::proxy::Route;

/// One answer of a script.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Play {
    _todo: (),
}

/// Plays answers in order (or by a function of the request) under a simulated clock.
#[derive(Debug)]
pub struct Script {
    _todo: (),
}

impl Transport for Script {
    fn attempt(
        &mut self,
        outgoing: Outgoing<'_>,
        route: &Route,
        limits: &AttemptLimits,
    ) -> Result<Incoming, Error> {
        let _ = (outgoing, route, limits);
        unimplemented!()
    }
}
