//! A request as the user describes it, before the session's settings are applied.

use super::{Body, Headers, Overrides};
use crate::error::Error;
use http::Method;

/// Method, URL, fields, parameters and body, with what differs from the session.
#[derive(Debug, Clone)]
pub struct Request {
    /// The method.
    pub method: Method,
    /// The URL as it was written; prepared later.
    pub url: String,
    /// Fields over the session's; `None` removes one.
    pub headers: Vec<(String, Option<Vec<u8>>)>,
    /// Parameters after those of the URL and of the session.
    pub params: Vec<(String, String)>,
    /// The body.
    pub body: Body,
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
            body: Body::Empty,
            overrides: Overrides::default(),
            id: None,
        }
    }
}

/// What a pool or batch can be fed with.
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

#[allow(unused)]
fn _uses(_: Headers) {}
