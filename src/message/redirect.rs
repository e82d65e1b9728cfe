//! Redirects by requests' rules.

use super::Prepared;
use crate::error::Error;
use http::HeaderMap;

/// What a redirect must not carry on.
#[derive(Debug, Clone, Copy)]
pub struct RedirectRules<'a> {
    /// Fields (besides Authorization and Cookie) removed when the origin changes.
    pub secret_headers: &'a [String],
}

/// The next hop of a response, or `None` where the response is not a redirect to follow (no
/// usable Location, 300, 304, 305 …).
///
/// Whatever Authorization or Cookie field the next hop has is right for its URL, except that
/// cookies of the jar are added by the flight.
///
/// # Errors
/// `InvalidUrl` and `InvalidScheme` for a Location that cannot be followed.
pub fn follow(
    previous: &Prepared,
    status: u16,
    headers: &HeaderMap,
    rules: RedirectRules<'_>,
) -> Result<Option<Prepared>, Error> {
    let _ = (previous, status, headers, rules);
    unimplemented!()
}
