//! `Set-Cookie` lines, and the Cookie field that comes of them.
#![no_main]

use std::time::{Duration, SystemTime};

use http::{HeaderMap, HeaderValue, header};
use longhaul::session::CookieJar;
use url::Url;

libfuzzer_sys::fuzz_target!(|input: (Vec<&[u8]>, u32)| {
    let (lines, second) = input;
    let now = SystemTime::UNIX_EPOCH + Duration::from_secs(second.into());
    let mut fields = HeaderMap::new();
    for line in &lines {
        if let Ok(value) = HeaderValue::from_bytes(line) {
            fields.append(header::SET_COOKIE, value);
        }
    }
    let mut jar = CookieJar::new();
    for url in ["http://www.example.co.uk/a/b", "https://example.co.uk/", "http://[::1]/"] {
        let url = Url::parse(url).expect("it is one");
        jar.store(&url, &fields, now);
        if let Some(field) = jar.header(&url, now) {
            assert!(HeaderValue::from_bytes(&field).is_ok(), "{field:?}");
        }
    }
    assert!(jar.len() <= 3 * lines.len());
});
