//! Response heads: wherever the pieces break, and never a head that the engine could not read.
#![no_main]

use longhaul::transport::fuzz::response_head;

libfuzzer_sys::fuzz_target!(|input: (u8, bool, &[u8])| {
    let (piece, bodyless, bytes) = input;
    response_head(bytes, usize::from(piece), bodyless);
});
