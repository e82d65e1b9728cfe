//! requests' `PreparedRequest`: what goes onto the wire.

use super::{Body, Headers, Request, Settings};
use crate::error::Error;
use http::Method;
use url::Url;

/// A request with the session's settings applied; may be looked at and changed.
#[derive(Debug, Clone)]
pub struct Prepared {
    /// The method.
    pub method: Method,
    /// The URL; may still carry its fragment, never userinfo (that became `Authorization`).
    pub url: Url,
    /// The fields in wire order, with `Host` left to the transport unless the user set one.
    /// Neither Cookie from the jar nor framing fields (Content-Length, Transfer-Encoding): the
    /// flight adds the first, the transport the second.
    pub headers: Headers,
    /// The body.
    pub body: Body,
}

/// The URL as requests would send it: trimmed, percent-encoded, IDNA, parameters appended.
///
/// # Errors
/// `MissingScheme`, `InvalidScheme`, `InvalidUrl`.
pub fn prepare_url(url: &str, params: &[(String, String)]) -> Result<Url, Error> {
    let _ = (url, params);
    unimplemented!()
}

/// Applies the settings: session defaults ⊕ request.
///
/// # Errors
/// As [`prepare_url`], and `InvalidHeader`.
pub fn prepare(settings: &Settings, request: &Request) -> Result<Prepared, Error> {
    let _ = (settings, request);
    unimplemented!()
}
