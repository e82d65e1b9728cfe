//! What is sent and what comes back.

mod auth;
mod body;
mod decode;
mod encoding;
mod headers;
mod prepare;
mod redirect;
mod request;
mod response;
mod settings;

pub use auth::{Auth, Netrc};
pub use body::Body;
pub use decode::{DecodeLimits, decode};
pub use encoding::{decode_text, encoding_of};
pub use headers::Headers;
pub use prepare::{Prepared, prepare, prepare_url};
pub use redirect::{RedirectRules, follow};
pub use request::{IntoRequest, Request};
pub use response::{ConnectionFacts, Response, ResponseBody, ResponseParts, Timings};
pub use settings::{Overrides, Setting, Settings, Verify};
