//! Redirects by requests' rules.
//!
//! Deciding the next hop is a pure function of the hop before and the response's head, so that the
//! flight can follow at once, without waiting for a body that nobody reads. A `Location` comes
//! from whoever answered: it is taken as bytes, repaired as requests does, and whatever cannot be
//! a target for us is a typed error, never a guess at another host.
//!
//! Where we differ from requests:
//! - DIFFERENCE(location-bytes): a Location that is not UTF-8 is escaped byte by byte; requests
//!   fails with a `UnicodeDecodeError`.
//! - DIFFERENCE(location-host): the host of a Location is decoded and mapped by IDNA, and what
//!   remains unusable is `InvalidUrl`; requests sends it to the resolver as `b%C3%BCcher.example`.
//!   `////x` names no host here, and the host `x` there.
//! - DIFFERENCE(location-error): an unusable Location is `InvalidUrl` or `InvalidScheme` before
//!   anything is sent; requests lets bare `ValueError`s out.
//! - DIFFERENCE(location-query): `?` alone takes the query away (RFC 3986 5.2.2); requests keeps it.
//! - DIFFERENCE(explicit-host): a `Host` field given by hand stays with the origin that it was
//!   given for; requests sends it to the next one.
//! - DIFFERENCE(mounted-redirect): no redirect leads from http or https to another scheme, even if
//!   a transport is mounted for it; requests follows to every adapter.
//! - The forms named in [`prepare_url`](super::prepare_url) (`canonical-url`, `dot-segments`).

use super::prepare::{check_host, invalid_scheme, invalid_url, is_web};
use super::{Body, Netrc, Overrides, OwnCookies, Prepared, Setting, Settings, quote};
use crate::error::{Error, Fault, Phase};
use crate::policy::Retry;
use http::{HeaderMap, Method, header};
use url::Url;

/// What a redirect must not carry on, and what it may find at the next host.
#[derive(Debug, Clone, Copy, Default)]
#[non_exhaustive]
pub struct RedirectRules<'a> {
    /// Fields (besides Authorization and Cookie) removed when the origin changes.
    pub secret_headers: &'a [String],
    /// Those that the retry policy names: urllib3's `remove_headers_on_redirect`.
    pub removed_by_retry: &'a [String],
    /// Where credentials for the next host may stand, once those of the hop before are gone.
    pub netrc: Option<&'a Netrc>,
}

impl<'a> RedirectRules<'a> {
    /// The rules of a request in a session.
    pub fn of(settings: &'a Settings, overrides: &Overrides, retry: &'a Retry) -> Self {
        let netrc = settings.netrc.as_deref().filter(|_| overrides.auth != Setting::Unset);
        Self {
            secret_headers: &settings.secret_headers,
            removed_by_retry: retry.headers_removed_on_redirect(),
            netrc,
        }
    }
}

/// Whether a response asks for another URL: 301, 302, 303, 307 or 308 with a Location.
pub fn is_redirect(status: u16, headers: &HeaderMap) -> bool {
    matches!(status, 301 | 302 | 303 | 307 | 308) && headers.contains_key(header::LOCATION)
}

/// The next hop of a response, or `None` where the response is not a redirect to follow (no
/// usable Location, 300, 304, 305 …).
///
/// Method, body and fields change as in requests: 303 becomes GET (HEAD stays), so does 302, and
/// 301 for POST alone; 307 and 308 keep method and body. Credentials stay on the same origin and
/// from http to https on default ports, and so do the request's own cookies. Cookie and Proxy-Authorization are always dropped: the
/// flight adds the cookies of the jar, the transport what the next proxy needs.
///
/// # Errors
/// `InvalidUrl` and `InvalidScheme` for a Location that cannot be followed.
pub fn follow(
    previous: &Prepared,
    status: u16,
    headers: &HeaderMap,
    rules: RedirectRules<'_>,
) -> Result<Option<Prepared>, Error> {
    let location = headers.get(header::LOCATION).map_or(&b""[..], |value| value.as_bytes());
    if !is_redirect(status, headers) || location.is_empty() {
        return Ok(None);
    }
    let url = target(&previous.url, location)?;
    let mut next = previous.clone();
    next.method = method(&previous.method, status);
    if !matches!(status, 307 | 308) {
        next.body = Body::Empty;
        next.headers.remove("Content-Type");
        for field in ["Content-Length", "Transfer-Encoding", "Expect"] {
            next.headers.remove(field);
        }
    }
    next.headers.remove("Cookie");
    next.headers.remove("Proxy-Authorization");
    if leaves_origin(&previous.url, &url) {
        next.headers.remove("Authorization");
        next.auth = None;
        next.cookies = OwnCookies::new();
        for field in rules.secret_headers.iter().chain(rules.removed_by_retry) {
            next.headers.remove(field);
        }
    }
    if previous.url.host_str() != url.host_str()
        || previous.url.port_or_known_default() != url.port_or_known_default()
    {
        next.headers.remove("Host");
    }
    if let Some(auth) = rules.netrc.and_then(|netrc| netrc.auth(&url))
        && !next.headers.contains("Authorization")
        && next.auth.is_none()
        && let Some(value) = auth.header()?
    {
        next.headers.insert("Authorization", value)?;
    }
    next.url = url;
    Ok(Some(next))
}

/// requests' `rebuild_method`.
fn method(method: &Method, status: u16) -> Method {
    match status {
        302 | 303 if method != Method::HEAD => Method::GET,
        301 if method == Method::POST => Method::GET,
        _ => method.clone(),
    }
}

/// requests' `should_strip_auth`.
fn leaves_origin(from: &Url, to: &Url) -> bool {
    let upgraded = from.scheme() == "http"
        && to.scheme() == "https"
        && from.port_or_known_default() == Some(80)
        && to.port_or_known_default() == Some(443);
    let same =
        from.scheme() == to.scheme() && from.port_or_known_default() == to.port_or_known_default();
    from.host_str() != to.host_str() || !(same || upgraded)
}

/// The absolute URL that a Location means, seen from `base`.
fn target(base: &Url, location: &[u8]) -> Result<Url, Error> {
    // As Python's `urlsplit`: leading controls and blanks, and tabs anywhere, are not part of it.
    let begin = location.iter().position(|byte| *byte > b' ').unwrap_or(location.len());
    let mut bytes = location.get(begin..).unwrap_or_default().to_vec();
    bytes.retain(|byte| !matches!(byte, b'\t' | b'\r' | b'\n'));
    let text = quote::requote(&bytes);

    let (scheme, rest) = split_scheme(&text);
    // A mounted scheme may redirect within itself; nobody else is led to it.
    if let Some(scheme) = scheme
        && !is_web(scheme)
        && !scheme.eq_ignore_ascii_case(base.scheme())
    {
        return Err(of_target(&invalid_scheme(&text)));
    }
    let own_scheme = scheme.is_none_or(|scheme| scheme.eq_ignore_ascii_case(base.scheme()));
    let authority = rest.strip_prefix("//").unwrap_or("");
    let authority = authority.split(['/', '?', '#']).next().unwrap_or("");
    let joined = if !authority.is_empty() {
        Url::parse(&format!("{}:{rest}", scheme.unwrap_or(base.scheme())))
    } else if own_scheme {
        // `///path` and `http:path` name no host, so they are paths here (the second from the root,
        // as requests has it). The parser for browsers would take `path` for a host.
        let path = rest.strip_prefix("//").unwrap_or(rest);
        let rootless = scheme.is_some() && !path.is_empty() && !path.starts_with(['/', '?', '#']);
        base.join(&if rootless { format!("/{path}") } else { relative(path) })
    } else {
        return Err(unusable(&text, "names another scheme and no host"));
    };
    let mut url = joined.map_err(|error| unusable(&text, &format!("cannot be used: {error}")))?;
    check_host(&url).map_err(|why| unusable(&text, why))?;
    // Credentials in a Location are the server's words, not the user's: requests ignores them.
    let _ = url.set_username("");
    let _ = url.set_password(None);
    if url.query() == Some("") {
        url.set_query(None);
    }
    if url.fragment().unwrap_or("").is_empty() {
        url.set_fragment(base.fragment());
    }
    Ok(url)
}

/// A reference that the parser cannot take for anything but a path, query or fragment.
fn relative(text: &str) -> String {
    // `//` at the start, or a colon in the first segment, would mean a host or a scheme.
    match text {
        text if text.starts_with("//") => format!("/.{text}"),
        text if text.starts_with(['/', '?', '#']) || text.is_empty() => text.to_owned(),
        text => format!("./{text}"),
    }
}

fn split_scheme(text: &str) -> (Option<&str>, &str) {
    let is_scheme = |scheme: &str| {
        scheme.starts_with(|char: char| char.is_ascii_alphabetic())
            && scheme.bytes().all(|b| b.is_ascii_alphanumeric() || b"+-.".contains(&b))
    };
    match text.split_once(':') {
        Some((scheme, rest)) if is_scheme(scheme) => (Some(scheme), rest),
        _ => (None, text),
    }
}

fn unusable(location: &str, why: &str) -> Error {
    of_target(&invalid_url(location, why))
}

/// It was the target's word, after it had been sent to, and not the user's.
fn of_target(error: &Error) -> Error {
    let text = error.message().replacen("the URL", "the Location", 1);
    Error::new(error.kind(), Phase::Headers, Fault::Target, text)
}

#[cfg(test)]
#[path = "redirect_tests.rs"]
mod tests;
