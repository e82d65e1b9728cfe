//! `NO_PROXY` and a URL.
#![no_main]

use longhaul::message::prepare_url;
use longhaul::proxy::NoProxy;

libfuzzer_sys::fuzz_target!(|input: (&str, &str)| {
    let (list, url) = input;
    let list = NoProxy::parse(list);
    if let Ok(url) = prepare_url(url, &[]) {
        let _ = list.matches(&url);
        assert!(NoProxy::parse("*").matches(&url));
    }
});
