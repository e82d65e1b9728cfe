//! Code of the user's on the way of a request: requests' hooks, and one that requests has not.
//!
//! requests knows the event `response`: its hooks see every response of a chain, redirects
//! included, and may put another in its place or raise. Retries happen below them, so a response
//! that is retried is seen by none. The second event is ours: before each attempt the fields and
//! the body may still be changed, which is where a signature with a time in it belongs, or the
//! number of the attempt. What the way was chosen by, method and URL, stands by then.
//!
//! Hooks are shared by all sessions of a recipe, so they are `Fn + Send + Sync`. The session that
//! calls one is at work meanwhile; a hook that sends something itself needs another. A panic of a hook
//! is its caller's: it leaves [`Session::send`](crate::Session::send), and in a
//! [`WorkerPool`](crate::WorkerPool) it is the result of that URL, of kind `Internal`.

use super::{Body, Headers, Response, Setting};
use crate::error::Error;
use http::Method;
use std::fmt;
use std::sync::Arc;
use url::Url;

type OnResponse = dyn Fn(Response) -> Result<Response, Error> + Send + Sync;
type OnAttempt = dyn Fn(&mut NextAttempt<'_>) -> Result<(), Error> + Send + Sync;

/// The hooks of a session or of a request, by event; those of one event are called in order.
///
/// # Examples
/// ```
/// use longhaul::message::Hooks;
///
/// let hooks = Hooks::new()
///     .response(|response| response.raise_for_status())
///     .attempt(|attempt| attempt.headers.insert("X-Attempt", attempt.number.to_string()));
/// assert_eq!(format!("{hooks:?}"), "Hooks { response: 1, attempt: 1 }");
/// ```
#[derive(Clone, Default)]
pub struct Hooks {
    response: Vec<Arc<OnResponse>>,
    attempt: Vec<Arc<OnAttempt>>,
}

/// An attempt that is about to be made, as the hooks before it see it.
#[non_exhaustive]
#[derive(Debug)]
pub struct NextAttempt<'a> {
    /// The method; the way was chosen by it.
    pub method: &'a Method,
    /// The URL; the way was chosen by it.
    pub url: &'a Url,
    /// The fields in wire order, `Cookie` included; `Host` and the framing are the transport's.
    /// Changes are for this attempt alone.
    pub headers: &'a mut Headers,
    /// The body. Changes are for this attempt alone.
    pub body: &'a mut Body,
    /// Which attempt of its URL it is, hops and silent resends counted, from 1.
    pub number: usize,
    /// The proxy, without credentials; `None` is direct.
    pub proxy: Option<&'a str>,
}

impl Hooks {
    /// No hooks.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a hook for every response of a chain; requests' event `response`.
    ///
    /// It gets redirects that are followed, at their head and without their body, and the response
    /// that is handed out: read, or at its head where it is streamed. What it returns counts in
    /// the place of what it was given, also for whether there is a redirect to follow.
    ///
    /// # Errors
    /// An error of the hook ends the flight of its URL, without a retry, and keeps its kind: that
    /// of [`raise_for_status`](Response::raise_for_status), or one of [`Error::new`].
    pub fn response(
        mut self,
        hook: impl Fn(Response) -> Result<Response, Error> + Send + Sync + 'static,
    ) -> Self {
        self.response.push(Arc::new(hook));
        self
    }

    /// Adds a hook before each attempt: retries, hops and silent resends included.
    ///
    /// # Errors
    /// An error of the hook ends the flight of its URL before the attempt is made.
    pub fn attempt(
        mut self,
        hook: impl Fn(&mut NextAttempt<'_>) -> Result<(), Error> + Send + Sync + 'static,
    ) -> Self {
        self.attempt.push(Arc::new(hook));
        self
    }

    /// Whether there is no hook.
    pub fn is_empty(&self) -> bool {
        self.response.is_empty() && self.attempt.is_empty()
    }

    /// requests' `merge_hooks`: the request's hooks of an event take the place of the session's.
    pub(crate) fn merged(session: &Self, request: &Setting<Self>) -> Self {
        let mut merged = session.clone();
        match request {
            Setting::Inherit => {}
            Setting::Unset => merged = Self::default(),
            Setting::Set(own) => {
                if !own.response.is_empty() {
                    merged.response.clone_from(&own.response);
                }
                if !own.attempt.is_empty() {
                    merged.attempt.clone_from(&own.attempt);
                }
            }
        }
        merged
    }

    /// Whether a response is seen by a hook.
    pub(crate) fn see_responses(session: &Self, request: &Setting<Self>) -> bool {
        !Self::in_force(session, request, |hooks| &hooks.response).is_empty()
    }

    /// Gives a response to each hook in force, in turn.
    pub(crate) fn on_response(
        session: &Self,
        request: &Setting<Self>,
        response: Response,
    ) -> Result<Response, Error> {
        let hooks = Self::in_force(session, request, |hooks| &hooks.response);
        hooks.iter().try_fold(response, |response, hook| hook(response))
    }

    /// Whether an attempt is seen by a hook.
    pub(crate) fn see_attempts(session: &Self, request: &Setting<Self>) -> bool {
        !Self::in_force(session, request, |hooks| &hooks.attempt).is_empty()
    }

    /// Shows an attempt to each hook in force, in turn.
    pub(crate) fn on_attempt(
        session: &Self,
        request: &Setting<Self>,
        attempt: &mut NextAttempt<'_>,
    ) -> Result<(), Error> {
        let hooks = Self::in_force(session, request, |hooks| &hooks.attempt);
        hooks.iter().try_for_each(|hook| hook(attempt))
    }

    /// As [`merged`](Self::merged), for one event and without a copy.
    fn in_force<'h, T>(
        session: &'h Self,
        request: &'h Setting<Self>,
        event: impl Fn(&'h Self) -> &'h Vec<T>,
    ) -> &'h [T] {
        match request {
            Setting::Set(own) if !event(own).is_empty() => event(own),
            Setting::Unset => &[],
            Setting::Inherit | Setting::Set(_) => event(session),
        }
    }
}

impl fmt::Debug for Hooks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hooks")
            .field("response", &self.response.len())
            .field("attempt", &self.attempt.len())
            .finish()
    }
}
