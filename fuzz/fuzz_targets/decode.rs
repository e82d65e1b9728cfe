//! Content codings: within their ceilings, and as an error rather than a wrong end.
#![no_main]

use std::io::{Cursor, Read};

use http::{HeaderMap, HeaderValue, header};
use longhaul::message::{DecodeLimits, decode};

const CODINGS: &[&str] = &["gzip", "deflate", "br", "zstd", "gzip, deflate", "identity", "x"];
const CEILING: u64 = 1 << 16;

libfuzzer_sys::fuzz_target!(|input: (u8, &[u8])| {
    let (coding, body) = input;
    let coding = CODINGS[usize::from(coding) % CODINGS.len()];
    let mut headers = HeaderMap::new();
    headers.insert(header::CONTENT_ENCODING, HeaderValue::from_static(coding));
    let mut limits = DecodeLimits::default();
    limits.decoded = Some(CEILING);
    let mut bytes = Vec::new();
    let body = Box::new(Cursor::new(body.to_vec()));
    let _ = decode(body, &headers, limits).read_to_end(&mut bytes);
    assert!(bytes.len() as u64 <= CEILING);
});
