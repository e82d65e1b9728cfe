//! A request that is being described, on the way to a session.

use super::Session;
use crate::error::Error;
use crate::message::{
    Auth, Body, Cert, Multipart, NextAttempt, Prepared, Request, Response, TlsVersion, Validators,
    Verify,
};
use crate::policy::{Retry, Timeouts};
use crate::proxy::ProxyMap;
use crate::rng::Rng;
use serde::Serialize;

/// Describes a request of a [`Session`], or of a session of its own.
///
/// Each method mirrors the argument of that name in requests, and overrides the session for this
/// request alone.
#[derive(Debug)]
#[must_use = "nothing is sent before `send`"]
pub struct RequestBuilder<'a> {
    session: Option<&'a Session>,
    /// The first mistake in the description; told by `send`, so that a chain needs no `?` within.
    request: Result<Request, Error>,
}

impl<'a> RequestBuilder<'a> {
    pub(super) fn new(session: Option<&'a Session>, request: Request) -> Self {
        Self { session, request: Ok(request) }
    }

    fn map(mut self, change: impl FnOnce(Request) -> Request) -> Self {
        self.request = self.request.map(change);
        self
    }

    /// A field, in place of the session's of this name.
    pub fn header(self, name: impl Into<String>, value: impl Into<Vec<u8>>) -> Self {
        self.map(|request| request.header(name, value))
    }

    /// A further line of a field that may stand more than once.
    pub fn add_header(self, name: impl Into<String>, value: impl Into<Vec<u8>>) -> Self {
        self.map(|request| request.add_header(name, value))
    }

    /// Leaves out a field that the session would send; `None` in requests.
    pub fn remove_header(self, name: impl Into<String>) -> Self {
        self.map(|request| request.remove_header(name))
    }

    /// A query parameter, after those of the URL and of the session.
    pub fn param(self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.map(|request| request.param(name, value))
    }

    /// Query parameters.
    pub fn params<N, V>(self, pairs: impl IntoIterator<Item = (N, V)>) -> Self
    where
        N: Into<String>,
        V: Into<String>,
    {
        self.map(|request| request.params(pairs))
    }

    /// A form as the body (`application/x-www-form-urlencoded`).
    pub fn form<N, V>(self, pairs: impl IntoIterator<Item = (N, V)>) -> Self
    where
        N: Into<String>,
        V: Into<String>,
    {
        self.map(|request| request.form(pairs))
    }

    /// JSON as the body. What cannot be serialised fails in [`send`](Self::send) with
    /// `InvalidJson`.
    pub fn json(mut self, value: &(impl Serialize + ?Sized)) -> Self {
        self.request = self.request.and_then(|request| request.json(value));
        self
    }

    /// A form with files as the body (`multipart/form-data`; requests' `files=`).
    ///
    /// Its boundary is drawn from the generator of the session, so a session with a seed repeats
    /// it. A field of a part that cannot be sent fails in [`send`](Self::send) with
    /// `InvalidHeader`.
    pub fn multipart(mut self, form: Multipart) -> Self {
        self.request = self.request.and_then(|request| match self.session {
            Some(session) => request.multipart(form, &mut session.core().rng),
            None => request.multipart(form, &mut Rng::from_os()),
        });
        self
    }

    /// The body: bytes, text, a file, a reader.
    pub fn body(self, body: impl Into<Body>) -> Self {
        self.map(|request| request.body(body))
    }

    /// Basic credentials for the target.
    pub fn basic_auth(self, user: impl Into<String>, password: impl Into<String>) -> Self {
        self.map(|request| request.basic_auth(user, password))
    }

    /// Digest credentials for the target.
    pub fn digest_auth(self, user: impl Into<String>, password: impl Into<String>) -> Self {
        self.map(|request| request.digest_auth(user, password))
    }

    /// A bearer token for the target.
    pub fn bearer(self, token: impl Into<String>) -> Self {
        self.map(|request| request.bearer(token))
    }

    /// Credentials for the target.
    pub fn auth(self, auth: Auth) -> Self {
        self.map(|request| request.auth(auth))
    }

    /// Sends neither the session's credentials nor those of `.netrc`.
    pub fn no_auth(self) -> Self {
        self.map(Request::no_auth)
    }

    /// A cookie besides those of the jar, for this request alone; see [`Request::cookie`].
    pub fn cookie(self, name: impl Into<Vec<u8>>, value: impl Into<Vec<u8>>) -> Self {
        self.map(|request| request.cookie(name, value))
    }

    /// Timeouts and deadline.
    pub fn timeout(self, timeouts: impl Into<Timeouts>) -> Self {
        self.map(|request| request.timeout(timeouts))
    }

    /// The retry policy.
    pub fn retry(self, retry: impl Into<Retry>) -> Self {
        self.map(|request| request.retry(retry.into()))
    }

    /// Whether redirects are followed.
    pub fn allow_redirects(self, allow: bool) -> Self {
        self.map(|request| request.allow_redirects(allow))
    }

    /// Hands out the response at its head.
    pub fn stream(self, stream: bool) -> Self {
        self.map(|request| request.stream(stream))
    }

    /// Proxies for this request, over the session's and the environment's.
    pub fn proxies(self, proxies: ProxyMap) -> Self {
        self.map(|request| request.proxies(proxies))
    }

    /// Whether and against what certificates are checked.
    pub fn verify(self, verify: Verify) -> Self {
        self.map(|request| request.verify(verify))
    }

    /// The client certificate: one file with certificate and key, or a pair of files. A
    /// connection that was made without it is not used.
    pub fn cert(self, cert: impl Into<Cert>) -> Self {
        self.map(|request| request.cert(cert))
    }

    /// Shows no client certificate, whatever the session says; `None` in requests.
    pub fn no_cert(self) -> Self {
        self.map(Request::no_cert)
    }

    /// The lowest TLS version that is spoken; `None` takes the session's away.
    pub fn tls_min_version(self, version: impl Into<Option<TlsVersion>>) -> Self {
        self.map(|request| request.tls_min_version(version))
    }

    /// The highest TLS version that is spoken; `None` takes the session's away.
    pub fn tls_max_version(self, version: impl Into<Option<TlsVersion>>) -> Self {
        self.map(|request| request.tls_max_version(version))
    }

    /// Ceiling of decoded body bytes; `None` takes the session's away.
    pub fn max_body_bytes(self, most: impl Into<Option<u64>>) -> Self {
        self.map(|request| request.max_body_bytes(most))
    }

    /// Ceiling of body bytes on the wire; `None` takes the session's away.
    pub fn max_wire_bytes(self, most: impl Into<Option<u64>>) -> Self {
        self.map(|request| request.max_wire_bytes(most))
    }

    /// A hook for every response of the chain, in the place of the session's; see
    /// [`Hooks::response`](crate::message::Hooks::response).
    pub fn response_hook(
        self,
        hook: impl Fn(Response) -> Result<Response, Error> + Send + Sync + 'static,
    ) -> Self {
        self.map(|request| request.response_hook(hook))
    }

    /// A hook before each attempt, in the place of the session's; see
    /// [`Hooks::attempt`](crate::message::Hooks::attempt).
    pub fn attempt_hook(
        self,
        hook: impl Fn(&mut NextAttempt<'_>) -> Result<(), Error> + Send + Sync + 'static,
    ) -> Self {
        self.map(|request| request.attempt_hook(hook))
    }

    /// Calls none of the session's hooks.
    pub fn no_hooks(self) -> Self {
        self.map(Request::no_hooks)
    }

    /// Whether content codings are undone; default on. Off gives the bytes as they came, which is
    /// `response.raw` in requests; `Content-Encoding` says what they are.
    pub fn decode_content(self, decode: bool) -> Self {
        self.map(|request| request.decode_content(decode))
    }

    /// Asks for the body only if it has changed: `If-None-Match` and `If-Modified-Since` of an
    /// earlier response, which [`Response::validators`] gives. An unchanged resource is answered by
    /// 304, see [`Response::not_modified`]. Without validators the request stays as it is.
    pub fn if_changed(self, validators: &Validators) -> Self {
        self.map(|request| request.if_changed(validators))
    }

    /// Session and request.
    pub(super) fn into_parts(self) -> (Option<&'a Session>, Result<Request, Error>) {
        (self.session, self.request)
    }

    /// The request, for a pool or a batch.
    ///
    /// # Errors
    /// The first mistake in the description.
    pub fn into_request(self) -> Result<Request, Error> {
        self.request
    }

    /// The request as the session would send it, to be looked at, changed and given to
    /// [`Session::send_prepared`].
    ///
    /// # Errors
    /// As [`Session::prepare_request`], and the first mistake in the description.
    pub fn prepare(self) -> Result<Prepared, Error> {
        let request = self.request?;
        match self.session {
            Some(session) => session.prepare_request(request),
            None => Session::new()?.prepare_request(request),
        }
    }

    /// Sends it.
    ///
    /// # Errors
    /// As [`Session::send`], and the first mistake in the description.
    pub fn send(self) -> Result<Response, Error> {
        let request = self.request?;
        match self.session {
            Some(session) => session.send(request),
            None => Session::new()?.send(request),
        }
    }
}
