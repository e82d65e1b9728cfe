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
//! - DIFFERENCE(mounted-scheme): a URL of a scheme that a transport is mounted for is prepared like
//!   any other; requests leaves it as it is and drops the parameters.
//! - DIFFERENCE(framing): Content-Length and Transfer-Encoding given by hand are ignored, since
//!   the body decides them.

use super::quote;
use super::{Auth, Body, Headers, Overrides, OwnCookies, Request, Settings};
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
    /// The request's own cookies, for this origin; where `headers` hold a `Cookie` field it goes
    /// in their place.
    pub cookies: OwnCookies,
    /// What differs from the session that sends it.
    pub overrides: Overrides,
}

impl Prepared {
    /// Path and query, as they stand in the request line.
    ///
    /// # Examples
    /// ```
    /// use http::Method;
    /// use longhaul::message::{Request, Settings, prepare};
    ///
    /// let request = Request::new(Method::GET, "http://h.test/a b#c").param("q", "1");
    /// let prepared = prepare(&Settings::default(), &request)?;
    /// assert_eq!(prepared.path_url(), "/a%20b?q=1");
    /// # Ok::<(), longhaul::Error>(())
    /// ```
    pub fn path_url(&self) -> &str {
        // A prepared URL has a path; what comes before it ends where the path begins.
        let text = &self.url[url::Position::BeforePath..url::Position::AfterQuery];
        if text.is_empty() { "/" } else { text }
    }

    /// Brings what a user may have changed back to what is sent.
    pub(crate) fn settle(&mut self) -> Result<(), Error> {
        if !self.url.username().is_empty() || self.url.password().is_some() {
            // Nobody may read them in a history; whoever wants them sent says so in a field.
            let text = "a prepared URL has a user name or password; send them as Authorization";
            return Err(Error::local(ErrorKind::InvalidUrl, text));
        }
        check_host(&self.url).map_err(|why| invalid_url(self.url.as_str(), why))?;
        self.cookies.check()
    }
}

/// The URL as requests would send it: trimmed, percent-encoded, IDNA, parameters appended.
///
/// User name and password are not part of the result; [`prepare`] makes `Authorization` of them.
///
/// # Errors
/// `MissingScheme` for a text without one, `InvalidScheme` for another than http and https,
/// `InvalidUrl` for what has no usable host or port. Each shows the URL without credentials.
pub fn prepare_url(url: &str, params: &[(String, String)]) -> Result<Url, Error> {
    Ok(split_url(url, &[params], &[])?.0)
}

/// Applies the settings: session defaults ⊕ request.
///
/// # Errors
/// As [`prepare_url`], and `InvalidHeader` for a field or cookie that cannot be sent.
pub fn prepare(settings: &Settings, request: &Request) -> Result<Prepared, Error> {
    let mut prepared = assemble(settings, request)?;
    prepared.overrides = request.overrides.clone();
    Ok(prepared)
}

/// As [`prepare`], for who has the overrides at hand: they are not copied.
pub(crate) fn assemble(settings: &Settings, request: &Request) -> Result<Prepared, Error> {
    let params: [&[(String, String)]; 2] = [&settings.params, &request.params];
    let (url, userinfo) = split_url(&request.url, &params, &settings.mounts)?;
    request.cookies.check()?;
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
    Ok(Prepared {
        method: request.method.clone(),
        url,
        headers,
        body: request.body.clone(),
        cookies: request.cookies.clone(),
        auth: each_time,
        overrides: Overrides::default(),
    })
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
///
/// `mounts` are prefixes, in lower case, that transports other than those for http and https take.
fn split_url(
    given: &str,
    params: &[&[(String, String)]],
    mounts: &[String],
) -> Result<(Url, Option<Auth>), Error> {
    let text = given.trim();
    let pieces = Pieces::of(text, mounts)?;
    let invalid = |why: &str| invalid_url(text, why);
    let (userinfo, host_port) = match pieces.authority.rsplit_once('@') {
        Some((userinfo, host_port)) => (Some(userinfo), host_port),
        None => (None, pieces.authority),
    };
    let is_web = is_web(pieces.scheme);
    if is_web && (host_port.is_empty() || host_port.starts_with([':', '*', '.'])) {
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
    fn of(text: &'a str, mounts: &[String]) -> Result<Self, Error> {
        let Some((scheme, rest)) = text.split_once(':').filter(|(s, _)| !s.starts_with('/')) else {
            let text = format!(
                "the URL {:?} has no scheme; perhaps https://{} is meant",
                quote::shown(text),
                quote::shown(text.trim_start_matches('/')),
            );
            return Err(Error::local(ErrorKind::MissingScheme, text));
        };
        if !is_web(scheme) && !mounts.iter().any(|prefix| is_under(text, prefix)) {
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

/// Whether it is a scheme that the engine speaks.
pub(crate) fn is_web(scheme: &str) -> bool {
    scheme.eq_ignore_ascii_case("http") || scheme.eq_ignore_ascii_case("https")
}

/// Whether a URL begins with a prefix that is in lower case; requests' rule for adapters.
pub(crate) fn is_under(url: &str, prefix: &str) -> bool {
    url.as_bytes()
        .get(..prefix.len())
        .is_some_and(|start| start.eq_ignore_ascii_case(prefix.as_bytes()))
}

fn cut<'a>(text: &'a str, at: &[char]) -> (&'a str, &'a str) {
    text.split_at(text.find(at).unwrap_or(text.len()))
}

#[cfg(test)]
#[path = "prepare_tests.rs"]
mod tests;
