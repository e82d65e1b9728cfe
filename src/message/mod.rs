//! What is sent and what comes back.
//!
//! Everything between the words of a user and the bytes of a connection: a [`Request`] with the
//! [`Settings`] of its session becomes a [`Prepared`] one, a redirect makes the next of it
//! ([`follow`]), a body is decoded ([`decode`](decode())), its text is found
//! ([`decode_text`]), and a [`Response`] holds what came. Nothing here opens a socket, sleeps or
//! looks at a clock; the only I/O is that of bodies.

mod auth;
mod body;
mod decode;
pub(crate) mod digest;
mod encoding;
mod headers;
mod hooks;
mod links;
mod multipart;
mod netrc;
mod own_cookies;
mod prepare;
mod quote;
mod read;
mod redirect;
mod request;
mod response;
mod settings;
mod tls;
mod validators;

pub(crate) use auth::apply;
pub use auth::{Auth, AuthBase};
pub use body::{Body, OpenBody};
pub use decode::{DecodeLimits, Decoded, MAX_CODINGS, WireBytes, decode, undecoded};
#[doc(hidden)]
pub use digest::build_digest_header;
pub use encoding::{apparent_encoding, decode_text, encoding_of};
pub use headers::Headers;
pub use hooks::{Hooks, NextAttempt};
pub use links::Link;
pub use multipart::{Multipart, MultipartBody, Part};
pub use netrc::Netrc;
pub use own_cookies::OwnCookies;
pub use prepare::{Prepared, prepare, prepare_url};
pub(crate) use prepare::{assemble, is_under, is_web};
pub(crate) use quote::shown as shown_url;
pub(crate) use read::unwritten;
pub use read::{BodyReader, Chunks, Lines, Split};
pub use redirect::{RedirectRules, follow, is_redirect};
pub use request::{IntoRequest, Request};
pub use response::{ConnectionFacts, Response, ResponseBody, ResponseParts, Timings};
pub use settings::{Overrides, Setting, Settings};
pub use tls::{Cert, TlsSettings, TlsVersion, Verify};
pub use validators::Validators;
