//! A list of proxies as a file holds it.
#![no_main]

use longhaul::ProxyPool;

libfuzzer_sys::fuzz_target!(|text: &str| {
    if let Err(error) = ProxyPool::parse(text) {
        drop(error.to_string());
    }
});
