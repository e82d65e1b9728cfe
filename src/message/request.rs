//! A request as the user describes it, before the session's settings are applied.
//!
//! It is a plain value with public fields, so that a source of jobs can fill it from a file as
//! well as a program from code. Nothing is checked before the request is prepared: a list with one
//! bad line then has one failed result, and not a program that stops.

use super::{
    Auth, Body, Cert, Hooks, Multipart, NextAttempt, Overrides, OwnCookies, Response, Setting,
    TlsVersion, Validators, Verify, quote,
};
use crate::error::{Error, ErrorKind};
use crate::policy::{Retry, Timeouts};
use crate::proxy::ProxyMap;
use crate::rng::Rng;
use http::Method;
use serde::Serialize;
use std::borrow::Cow;
use std::fmt;
use url::Url;

/// Method, URL, fields, parameters and body, with what differs from the session.
#[derive(Clone)]
#[must_use]
pub struct Request {
    /// The method.
    pub method: Method,
    /// The URL as it was written; prepared later.
    pub url: String,
    /// Fields over the session's; `None` removes one. Two values of one name are two lines.
    pub headers: Vec<(String, Option<Vec<u8>>)>,
    /// Parameters after those of the URL and of the session.
    pub params: Vec<(String, String)>,
    /// Cookies besides those of the jar, for this request alone.
    pub cookies: OwnCookies,
    /// The body.
    pub body: Body,
    /// The media type of the body, sent unless a `Content-Type` field is given.
    pub content_type: Option<Cow<'static, str>>,
    /// What differs from the session.
    pub overrides: Overrides,
    /// The caller's name for it, carried into results.
    pub id: Option<String>,
}

impl Request {
    /// A request without fields and body.
    pub fn new(method: Method, url: impl Into<String>) -> Self {
        Self {
            method,
            url: url.into(),
            headers: Vec::new(),
            params: Vec::new(),
            cookies: OwnCookies::new(),
            body: Body::Empty,
            content_type: None,
            overrides: Overrides::default(),
            id: None,
        }
    }

    /// Makes `name` one line with this value, over the session's.
    pub fn header(mut self, name: impl Into<String>, value: impl Into<Vec<u8>>) -> Self {
        let name = name.into();
        self.headers.retain(|(have, _)| !have.eq_ignore_ascii_case(&name));
        self.headers.push((name, Some(value.into())));
        self
    }

    /// Adds a line besides those that this request has for `name`.
    pub fn add_header(mut self, name: impl Into<String>, value: impl Into<Vec<u8>>) -> Self {
        self.headers.push((name.into(), Some(value.into())));
        self
    }

    /// Sends no field `name`, whatever the session says (requests' `None`).
    pub fn remove_header(mut self, name: impl Into<String>) -> Self {
        let name = name.into();
        self.headers.retain(|(have, _)| !have.eq_ignore_ascii_case(&name));
        self.headers.push((name, None));
        self
    }

    /// Appends a query parameter.
    pub fn param(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.params.push((name.into(), value.into()));
        self
    }

    /// Appends query parameters, in order.
    pub fn params<N, V>(mut self, pairs: impl IntoIterator<Item = (N, V)>) -> Self
    where
        N: Into<String>,
        V: Into<String>,
    {
        self.params.extend(pairs.into_iter().map(|(name, value)| (name.into(), value.into())));
        self
    }

    /// Sends a cookie besides those of the jar, and in the place of one of its name.
    ///
    /// It is for this request and stays with its origin; the session does not keep it (requests'
    /// `cookies=`). A `Cookie` field given by hand goes in the place of both.
    pub fn cookie(mut self, name: impl Into<Vec<u8>>, value: impl Into<Vec<u8>>) -> Self {
        self.cookies.insert(name, value);
        self
    }

    /// Sends these pairs as `application/x-www-form-urlencoded` (requests' `data=` with a map).
    pub fn form<N, V>(mut self, pairs: impl IntoIterator<Item = (N, V)>) -> Self
    where
        N: Into<String>,
        V: Into<String>,
    {
        let pairs: Vec<_> = pairs.into_iter().map(|(n, v)| (n.into(), v.into())).collect();
        let mut body = String::new();
        quote::push_form(&mut body, &pairs, false);
        self.body = body.into();
        self.content_type = Some("application/x-www-form-urlencoded".into());
        self
    }

    /// Sends `value` as JSON.
    ///
    /// # Errors
    /// `InvalidJson` where the value cannot be written as JSON: a map whose keys are not strings.
    pub fn json(mut self, value: &(impl Serialize + ?Sized)) -> Result<Self, Error> {
        let bytes = serde_json::to_vec(value).map_err(|error| {
            let text = format!("the body cannot be written as JSON: {error}");
            Error::local(ErrorKind::InvalidJson, text).with_source(error)
        })?;
        self.body = bytes.into();
        self.content_type = Some("application/json".into());
        Ok(self)
    }

    /// Sends a form with files (requests' `files=`); its boundary is drawn from `rng`.
    ///
    /// # Errors
    /// `InvalidHeader` for a field of a part that cannot be sent.
    pub fn multipart(mut self, form: Multipart, rng: &mut Rng) -> Result<Self, Error> {
        let (body, content_type) = form.into_body(rng)?;
        self.body = body;
        self.content_type = Some(content_type.into());
        Ok(self)
    }

    /// The body; its type is for a `Content-Type` field to say.
    pub fn body(mut self, body: impl Into<Body>) -> Self {
        self.body = body.into();
        self.content_type = None;
        self
    }

    /// Asks for the body only if it has changed since a response with these validators.
    pub fn if_changed(mut self, validators: &Validators) -> Self {
        if let Some(tag) = validators.etag() {
            self = self.header("If-None-Match", tag);
        }
        if let Some(date) = validators.last_modified() {
            self = self.header("If-Modified-Since", date);
        }
        self
    }

    /// Basic credentials; they win over every other place that could name some.
    pub fn basic_auth(self, user: impl Into<String>, password: impl Into<String>) -> Self {
        self.auth(Auth::Basic(user.into(), password.into()))
    }

    /// Digest credentials; they win over every other place that could name some.
    pub fn digest_auth(self, user: impl Into<String>, password: impl Into<String>) -> Self {
        self.auth(Auth::Digest(user.into(), password.into()))
    }

    /// A bearer token; it wins over every other place that could name credentials.
    pub fn bearer(self, token: impl Into<String>) -> Self {
        self.auth(Auth::Bearer(token.into()))
    }

    /// Credentials; they win over every other place that could name some.
    pub fn auth(mut self, auth: Auth) -> Self {
        self.overrides.auth = Setting::Set(auth);
        self
    }

    /// Sends neither the session's credentials nor those of `.netrc`.
    pub fn no_auth(mut self) -> Self {
        self.overrides.auth = Setting::Unset;
        self
    }

    /// Timeouts and deadline of this request.
    pub fn timeout(mut self, timeouts: impl Into<Timeouts>) -> Self {
        self.overrides.timeouts = Setting::Set(timeouts.into());
        self
    }

    /// The retry policy of this request.
    pub fn retry(mut self, retry: Retry) -> Self {
        self.overrides.retry = Setting::Set(retry);
        self
    }

    /// Whether redirects are followed.
    pub fn allow_redirects(mut self, allow: bool) -> Self {
        self.overrides.allow_redirects = Some(allow);
        self
    }

    /// Whether the response is handed out at its head, its body still to be read.
    pub fn stream(mut self, stream: bool) -> Self {
        self.overrides.stream = Some(stream);
        self
    }

    /// Proxies of this request, over the session's.
    pub fn proxies(mut self, proxies: ProxyMap) -> Self {
        self.overrides.proxies = Some(proxies);
        self
    }

    /// How certificates are checked.
    pub fn verify(mut self, verify: Verify) -> Self {
        self.overrides.verify = Some(verify);
        self
    }

    /// The client certificate of this request.
    pub fn cert(mut self, cert: impl Into<Cert>) -> Self {
        self.overrides.cert = Setting::Set(cert.into());
        self
    }

    /// Shows no client certificate, whatever the session says.
    pub fn no_cert(mut self) -> Self {
        self.overrides.cert = Setting::Unset;
        self
    }

    /// The lowest TLS version that is spoken; `None` takes the session's away.
    pub fn tls_min_version(mut self, version: impl Into<Option<TlsVersion>>) -> Self {
        self.overrides.tls_min_version = version.into().map_or(Setting::Unset, Setting::Set);
        self
    }

    /// The highest TLS version that is spoken; `None` takes the session's away.
    pub fn tls_max_version(mut self, version: impl Into<Option<TlsVersion>>) -> Self {
        self.overrides.tls_max_version = version.into().map_or(Setting::Unset, Setting::Set);
        self
    }

    /// The ceiling of decoded body bytes; `None` takes the session's away.
    pub fn max_body_bytes(mut self, most: impl Into<Option<u64>>) -> Self {
        self.overrides.max_body_bytes = ceiling(most.into());
        self
    }

    /// The ceiling of body bytes on the wire; `None` takes the session's away.
    pub fn max_wire_bytes(mut self, most: impl Into<Option<u64>>) -> Self {
        self.overrides.max_wire_bytes = ceiling(most.into());
        self
    }

    /// A hook for every response of the chain, in the place of the session's; see
    /// [`Hooks::response`].
    pub fn response_hook(
        self,
        hook: impl Fn(Response) -> Result<Response, Error> + Send + Sync + 'static,
    ) -> Self {
        self.with_hooks(|hooks| hooks.response(hook))
    }

    /// A hook before each attempt, in the place of the session's; see [`Hooks::attempt`].
    pub fn attempt_hook(
        self,
        hook: impl Fn(&mut NextAttempt<'_>) -> Result<(), Error> + Send + Sync + 'static,
    ) -> Self {
        self.with_hooks(|hooks| hooks.attempt(hook))
    }

    fn with_hooks(mut self, add: impl FnOnce(Hooks) -> Hooks) -> Self {
        let have = match self.overrides.hooks {
            Setting::Set(hooks) => hooks,
            Setting::Inherit | Setting::Unset => Hooks::new(),
        };
        self.overrides.hooks = Setting::Set(add(have));
        self
    }

    /// Calls none of the session's hooks.
    pub fn no_hooks(mut self) -> Self {
        self.overrides.hooks = Setting::Unset;
        self
    }

    /// Whether content codings are undone (urllib3's `decode_content`); default on.
    pub fn decode_content(mut self, decode: bool) -> Self {
        self.overrides.decode_content = Some(decode);
        self
    }

    /// The caller's name for it, carried into results.
    pub fn id(mut self, id: impl Into<String>) -> Self {
        self.id = Some(id.into());
        self
    }
}

/// The URL without credentials, and of the fields the names: any value may be one.
impl fmt::Debug for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.headers.iter().map(|(name, _)| name.as_str()).collect();
        f.debug_struct("Request")
            .field("method", &self.method)
            .field("url", &quote::shown(&self.url))
            .field("headers", &names)
            .field("params", &self.params)
            .field("cookies", &self.cookies)
            .field("body", &self.body)
            .field("content_type", &self.content_type)
            .field("overrides", &self.overrides)
            .field("id", &self.id)
            .finish()
    }
}

fn ceiling(most: Option<u64>) -> Setting<u64> {
    most.map_or(Setting::Unset, Setting::Set)
}

/// What a pool or batch can be fed with.
///
/// A `Result` is one too: its error becomes the result of that item, so that a source which fails
/// on one line does not stop the run.
pub trait IntoRequest {
    /// The request.
    ///
    /// # Errors
    /// `Config` or `InvalidUrl` for input that describes none.
    fn into_request(self) -> Result<Request, Error>;
}

impl IntoRequest for Request {
    fn into_request(self) -> Result<Request, Error> {
        Ok(self)
    }
}

impl IntoRequest for &str {
    fn into_request(self) -> Result<Request, Error> {
        Ok(Request::new(Method::GET, self))
    }
}

impl IntoRequest for String {
    fn into_request(self) -> Result<Request, Error> {
        Ok(Request::new(Method::GET, self))
    }
}

impl IntoRequest for &String {
    fn into_request(self) -> Result<Request, Error> {
        self.as_str().into_request()
    }
}

impl IntoRequest for Url {
    fn into_request(self) -> Result<Request, Error> {
        Ok(Request::new(Method::GET, self))
    }
}

impl<R: IntoRequest> IntoRequest for Result<R, Error> {
    fn into_request(self) -> Result<Request, Error> {
        self.and_then(R::into_request)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    #[test]
    fn a_source_may_yield_errors_as_items() {
        let item: Result<&str, Error> = Err(Error::config("line 7 is no URL"));
        assert_eq!(item.into_request().unwrap_err().kind(), ErrorKind::Config);
        let item: Result<&str, Error> = Ok("http://h/");
        assert_eq!(item.into_request().unwrap().url, "http://h/");
        let url = Url::parse("http://h/").unwrap();
        assert_eq!(url.into_request().unwrap().method, Method::GET);
    }

    #[test]
    fn a_value_that_is_no_json_is_an_error() {
        let map = BTreeMap::from([(vec![1], 2)]);
        let error = Request::new(Method::POST, "http://h/").json(&map).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidJson);
    }

    #[test]
    fn no_value_of_a_field_or_cookie_is_shown() {
        let request = Request::new(Method::GET, "http://anna:s3cret@h/")
            .header("X-Api-Key", "s3cret")
            .cookie("sid", "s3cret")
            .basic_auth("anna", "s3cret")
            .body("s3cret");
        let bytes = format!("{:?}", b"s3cret");
        let shown = format!("{request:?}");
        assert!(!shown.contains("s3cret") && !shown.contains(bytes.trim_matches(['[', ']'])));
        assert!(["X-Api-Key", "sid"].iter().all(|name| shown.contains(name)), "{shown}");
    }

    #[test]
    fn header_replaces_and_add_header_adds() {
        let request = Request::new(Method::GET, "http://h/")
            .header("A", "1")
            .header("a", "2")
            .add_header("A", "3")
            .remove_header("B");
        let names: Vec<_> =
            request.headers.iter().map(|(n, v)| (n.as_str(), v.is_some())).collect();
        assert_eq!(names, [("a", true), ("A", true), ("B", false)]);
    }
}
