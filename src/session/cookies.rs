//! The cookie jar.

use http::HeaderMap;
use std::time::SystemTime;
use url::Url;

/// Cookies of one identity, per RFC 6265bis with the public suffix list; bounded.
#[derive(Debug, Clone, Default)]
pub struct CookieJar {
    _todo: (),
}

impl CookieJar {
    /// Takes what a response sets.
    pub fn store(&mut self, url: &Url, headers: &HeaderMap, now: SystemTime) {
        let _ = (url, headers, now);
        unimplemented!()
    }
    /// The value of the Cookie field for a request to `url`; `None` where none applies.
    pub fn header(&self, url: &Url, now: SystemTime) -> Option<Vec<u8>> {
        let _ = (url, now);
        unimplemented!()
    }
    // Also: insert(name, value, domain, path), iter, clear, len, is_empty.
}
