//! requests' `PreparedRequest`: what goes onto the wire.
//!
//! A URL as people write it is not a URL as servers take it. requests repairs a good deal (outer
//! blanks, raw UTF-8, stray percent signs), and a run over a list of scraped links depends on
//! that. So the text is split by the rules of RFC 3986, repaired piece by piece as requests does,
//! and only then given to the WHATWG parser, whose own repairs (a backslash becomes a slash, tabs
//! vanish, `http:x` and `http:///x` find a host) would send the request elsewhere than requests.
//!
//! Where we differ from requests:
//! - DIFFERENCE(trailing-whitespace): blanks at the end go, as those at the start do; requests
//!   sends them as `%20`.
//! - DIFFERENCE(canonical-url): the URL is shown and sent in its canonical form: a default port is
//!   left out, an IPv4 number (`127.1`) is written in four parts, and `'` in a query is `%27`.
//! - DIFFERENCE(dot-segments): a dot segment that was written as `%2e` is removed too.
//! - DIFFERENCE(idna): hosts are mapped by UTS 46, so `ｅxample.com` is `example.com`; requests
//!   refuses some of what browsers map.
//! - DIFFERENCE(host-characters): a host that no resolver can find (`a%20b.com`, a label of more
//!   than 63 bytes, an IPv6 zone) is `InvalidUrl` at once, not a failure of the lookup.
//! - DIFFERENCE(port-zero): port 0 is `InvalidUrl`; requests silently uses the default port.
//! - DIFFERENCE(raw-params): parameters are pairs; a query that is ready made is written into the
//!   URL, and escaped as the URL is.
//! - DIFFERENCE(framing): Content-Length and Transfer-Encoding given by hand are ignored, since
//!   the body decides them.

use super::quote;
use super::{Auth, Body, Headers, Request, Settings};
use crate::error::{Error, ErrorKind};
use http::Method;
use std::borrow::Cow;
use url::{Host, Url};

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
    /// Credentials that each attempt makes anew: Digest and custom ones. Others are among the
    /// fields already.
    pub auth: Option<Auth>,
}

/// The URL as requests would send it: trimmed, percent-encoded, IDNA, parameters appended.
///
/// User name and password are not part of the result; [`prepare`] makes `Authorization` of them.
///
/// # Errors
/// `MissingScheme` for a text without one, `InvalidScheme` for another than http and https,
/// `InvalidUrl` for what has no usable host or port. Each shows the URL without credentials.
pub fn prepare_url(url: &str, params: &[(String, String)]) -> Result<Url, Error> {
    Ok(split_url(url, &[params])?.0)
}

/// Applies the settings: session defaults ⊕ request.
///
/// # Errors
/// As [`prepare_url`], and `InvalidHeader`.
pub fn prepare(settings: &Settings, request: &Request) -> Result<Prepared, Error> {
    let (url, userinfo) = split_url(&request.url, &[&settings.params, &request.params])?;
    let mut headers = merged(&settings.headers, &request.headers)?;
    headers.remove("Content-Length");
    headers.remove("Transfer-Encoding");
    if let Some(media_type) = &request.content_type
        && !headers.contains("Content-Type")
    {
        headers.insert("Content-Type", media_type.as_bytes())?;
    }
    let explicit = request.overrides.auth.over(settings.auth.as_ref());
    let mut each_time = None;
    if let Some(auth) = explicit {
        match auth.header()? {
            Some(value) => headers.insert("Authorization", value)?,
            None => each_time = Some(auth.clone()),
        }
        if matches!(auth, Auth::Digest(..)) {
            headers.remove("Authorization");
        }
    } else if !headers.contains("Authorization") {
        let netrc = || {
            // `Setting::Unset` means no credentials that the request did not name itself.
            let wanted = request.overrides.auth != super::Setting::Unset;
            settings.netrc.as_ref().filter(|_| wanted).and_then(|netrc| netrc.auth(&url))
        };
        if let Some(auth) = userinfo.or_else(netrc)
            && let Some(value) = auth.header()?
        {
            headers.insert("Authorization", value)?;
        }
    }
    let (method, body) = (request.method.clone(), request.body.clone());
    Ok(Prepared { method, url, headers, body, auth: each_time })
}

/// requests' `merge_setting`: a request's field takes the place of the session's, `None` removes.
fn merged(session: &Headers, request: &[(String, Option<Vec<u8>>)]) -> Result<Headers, Error> {
    let mut headers = session.clone();
    for (index, (name, value)) in request.iter().enumerate() {
        let earlier = request.get(..index).unwrap_or_default();
        let repeated =
            earlier.iter().any(|(have, value)| value.is_some() && have.eq_ignore_ascii_case(name));
        match value {
            None => {
                headers.remove(name);
            }
            // Two values of one name within the request are two lines.
            Some(value) if repeated => headers.append(name.as_str(), value.as_slice())?,
            Some(value) => headers.insert(name.as_str(), value.as_slice())?,
        }
    }
    Ok(headers)
}

/// The prepared URL, and the credentials that stood in it.
fn split_url(given: &str, params: &[&[(String, String)]]) -> Result<(Url, Option<Auth>), Error> {
    let text = given.trim();
    let pieces = Pieces::of(text)?;
    let invalid = |why: &str| invalid_url(text, why);
    let (userinfo, host_port) = match pieces.authority.rsplit_once('@') {
        Some((userinfo, host_port)) => (Some(userinfo), host_port),
        None => (None, pieces.authority),
    };
    if host_port.is_empty() || host_port.starts_with([':', '*', '.']) {
        return Err(invalid("has no usable host"));
    }
    let path = quote::component(pieces.path, &quote::PATH).map_or(pieces.path.into(), Cow::from);
    let query = pieces.query.unwrap_or_default();
    let query = quote::component(query, &quote::QUERY).map_or(query.into(), Cow::from);
    let fragment = pieces.fragment.unwrap_or_default();
    let fragment = quote::component(fragment, &quote::QUERY).map_or(fragment.into(), Cow::from);

    let mut out = String::with_capacity(text.len() + 16);
    out.push_str(pieces.scheme);
    out.push_str("://");
    out.push_str(host_port);
    if !path.starts_with('/') {
        out.push('/');
    }
    out.push_str(&path);
    let params = params.iter().filter(|pairs| !pairs.is_empty());
    if !query.is_empty() || params.clone().next().is_some() {
        out.push('?');
        out.push_str(&query);
        let mut separate = !query.is_empty();
        for pairs in params {
            quote::push_form(&mut out, pairs, separate);
            separate = true;
        }
    }
    if !fragment.is_empty() {
        out.push('#');
        out.push_str(&fragment);
    }
    if host_port.contains(char::is_whitespace) || host_port.contains(char::is_control) {
        // The parser would drop tabs and line ends without a word.
        return Err(invalid("has white space in its host"));
    }
    let url = Url::parse(&out).map_err(|error| invalid(&format!("cannot be used: {error}")))?;
    check_host(&url).map_err(invalid)?;
    Ok((url, userinfo.and_then(credentials)))
}

/// The error for a URL of http or https that cannot be used.
pub(super) fn invalid_url(url: &str, why: &str) -> Error {
    Error::local(ErrorKind::InvalidUrl, format!("the URL {:?} {why}", quote::shown(url)))
}

/// The error for a scheme that is not spoken.
pub(super) fn invalid_scheme(url: &str) -> Error {
    let text = format!("the URL {:?} does not begin with http:// or https://", quote::shown(url));
    Error::local(ErrorKind::InvalidScheme, text)
}

/// What the parser lets through although no resolver can find it.
pub(super) fn check_host(url: &Url) -> Result<(), &'static str> {
    if url.port() == Some(0) {
        return Err("names port 0");
    }
    let Some(Host::Domain(domain)) = url.host() else { return Ok(()) };
    // As requests refuses in the text, where characters that count for nothing can hide it.
    if domain.starts_with('*') {
        return Err("has no usable host");
    }
    let labels = domain.strip_suffix('.').unwrap_or(domain);
    if labels.len() > 253 {
        return Err("has a host of more than 253 bytes");
    }
    if labels.split('.').any(|label| label.is_empty() || label.len() > 63) {
        return Err("has an empty label in its host, or one of more than 63 bytes");
    }
    Ok(())
}

/// requests' `get_auth_from_url`: a user without a password is no credentials.
fn credentials(userinfo: &str) -> Option<Auth> {
    let (user, password) = userinfo.split_once(':')?;
    if user.is_empty() && password.is_empty() {
        return None;
    }
    Some(Auth::Basic(quote::decoded(user), quote::decoded(password)))
}

/// A URL cut at its delimiters, nothing decoded.
struct Pieces<'a> {
    scheme: &'a str,
    authority: &'a str,
    path: &'a str,
    query: Option<&'a str>,
    fragment: Option<&'a str>,
}

impl<'a> Pieces<'a> {
    fn of(text: &'a str) -> Result<Self, Error> {
        let Some((scheme, rest)) = text.split_once(':').filter(|(s, _)| !s.starts_with('/')) else {
            let text = format!(
                "the URL {:?} has no scheme; perhaps https://{} is meant",
                quote::shown(text),
                quote::shown(text.trim_start_matches('/')),
            );
            return Err(Error::local(ErrorKind::MissingScheme, text));
        };
        if !scheme.eq_ignore_ascii_case("http") && !scheme.eq_ignore_ascii_case("https") {
            return Err(invalid_scheme(text));
        }
        let Some(rest) = rest.strip_prefix("//") else {
            return Err(invalid_url(text, "has no // after its scheme"));
        };
        // As urllib3 does, a backslash ends the authority: `http://a\@b/` goes to `a`.
        let (authority, rest) = cut(rest, &['/', '\\', '?', '#']);
        let (rest, fragment) = match rest.split_once('#') {
            Some((rest, fragment)) => (rest, Some(fragment)),
            None => (rest, None),
        };
        let (path, query) = match rest.split_once('?') {
            Some((path, query)) => (path, Some(query)),
            None => (rest, None),
        };
        Ok(Self { scheme, authority, path, query, fragment })
    }
}

fn cut<'a>(text: &'a str, at: &[char]) -> (&'a str, &'a str) {
    text.split_at(text.find(at).unwrap_or(text.len()))
}

#[cfg(test)]
#[path = "prepare_tests.rs"]
mod tests;
