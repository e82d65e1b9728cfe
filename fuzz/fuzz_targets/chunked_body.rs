//! Chunked bodies: what is put in order decodes to what stood there, wherever the pieces break.
#![no_main]

use longhaul::transport::fuzz::chunked_body;

libfuzzer_sys::fuzz_target!(|input: (u8, &[u8])| {
    let (piece, bytes) = input;
    let (tidied, failure) = chunked_body(bytes, usize::from(piece));
    if failure.is_none() {
        let (plain, original) = (decoded(&tidied), decoded(bytes));
        assert_eq!(plain, original);
    }
});

/// The data as far as it is there, by the grammar of RFC 9112, section 7.1, extensions left out.
fn decoded(mut rest: &[u8]) -> Vec<u8> {
    let mut data = Vec::new();
    while let Some(end) = rest.windows(2).position(|pair| pair == b"\r\n") {
        let line = &rest[..end];
        let digits = line.iter().take_while(|byte| byte.is_ascii_hexdigit()).count();
        let size = line[..digits]
            .iter()
            .fold(0_u64, |size, digit| size << 4 | u64::from((*digit as char).to_digit(16).unwrap()));
        rest = &rest[end + 2..];
        let here = usize::try_from(size).unwrap().min(rest.len());
        if here == 0 {
            break;
        }
        data.extend_from_slice(&rest[..here]);
        rest = rest.get(here + 2..).unwrap_or_default();
    }
    data
}
