//! Challenges of a server, one a line behind the name of a user, and the Digest credentials that
//! answer them.
#![no_main]

use http::{HeaderMap, HeaderValue, header};
use longhaul::message::{Body, build_digest_header};
use url::Url;

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    let mut lines = input.split(|byte| *byte == b'\n');
    let user = String::from_utf8_lossy(lines.next().unwrap_or_default());
    let mut headers = HeaderMap::new();
    for line in lines {
        if let Ok(value) = HeaderValue::from_bytes(line) {
            headers.append(header::WWW_AUTHENTICATE, value);
        }
    }
    let url = Url::parse("http://example.com/a?b=c").expect("it is one");
    let asked = ("POST", &url, &Body::from("body"));
    let answer = build_digest_header(&headers, (&user, "password"), asked, "0a4f113b", 0);
    let Some(field) = answer.expect("this body can be read") else { return };
    assert!(field.starts_with(b"Digest username"));
    // Only the name of the user can make it one that cannot be sent.
    let is_plain = !user.chars().any(char::is_control);
    assert!(!is_plain || HeaderValue::from_bytes(&field).is_ok(), "{field:?}");
});
