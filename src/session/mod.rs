//! `requests.Session`, and the flight of one URL.

mod builder;
mod cookies;
mod flight;

pub use builder::{
    RequestBuilder, Session, SessionBuilder, delete, get, head, options, patch, post, put,
};
pub use cookies::{Cookie, CookieJar};
pub use flight::{Flight, Step};
