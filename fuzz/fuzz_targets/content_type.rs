//! A Content-Type and a body, as text.
#![no_main]

use longhaul::message::{apparent_encoding, decode_text, encoding_of};

libfuzzer_sys::fuzz_target!(|input: (Option<&[u8]>, &[u8])| {
    let (content_type, body) = input;
    let _ = encoding_of(content_type);
    let _ = decode_text(body, content_type);
    let _ = apparent_encoding(body);
});
