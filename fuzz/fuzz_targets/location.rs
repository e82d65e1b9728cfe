//! A redirect: where it leads, and what it takes along.
#![no_main]

use http::{HeaderMap, HeaderValue, Method, header};
use longhaul::message::{RedirectRules, Request, Settings, follow, prepare};

libfuzzer_sys::fuzz_target!(|input: (&[u8], u8)| {
    let (location, status) = input;
    let Ok(value) = HeaderValue::from_bytes(location) else { return };
    let mut headers = HeaderMap::new();
    headers.insert(header::LOCATION, value);
    let request = Request::new(Method::POST, "http://example.com/a/b?c#d")
        .header("Authorization", "Bearer secret")
        .body("x");
    let first = prepare(&Settings::default(), &request).expect("it is a request");
    let status = 300 + u16::from(status % 10);
    if let Ok(Some(next)) = follow(&first, status, &headers, RedirectRules::default()) {
        assert!(matches!(next.url.scheme(), "http" | "https"), "{}", next.url);
        assert!(next.url.username().is_empty() && next.url.password().is_none());
        if next.url.host_str() != Some("example.com") {
            assert!(!next.headers.contains("Authorization"), "{}", next.url);
        }
    }
});
