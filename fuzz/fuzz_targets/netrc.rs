//! A `.netrc`; errors show no word of it.
#![no_main]

use longhaul::message::Netrc;
use url::Url;

libfuzzer_sys::fuzz_target!(|text: &str| {
    let url = Url::parse("http://example.com/").expect("it is one");
    match Netrc::parse(text) {
        Ok(netrc) => drop(netrc.auth(&url)),
        Err(error) => drop(error.to_string()),
    }
});
