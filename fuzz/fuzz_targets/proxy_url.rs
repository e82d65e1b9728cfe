//! One proxy in any spelling; what is shown does not depend on the credentials.
#![no_main]

use longhaul::proxy::ProxyUrl;

libfuzzer_sys::fuzz_target!(|text: &str| {
    match text.parse::<ProxyUrl>() {
        Ok(proxy) => {
            let shown = format!("{proxy} {proxy:?} {}", proxy.redacted());
            if proxy.credentials().is_some() {
                let other = proxy.clone().with_credentials("other", "secret");
                assert_eq!(shown, format!("{other} {other:?} {}", other.redacted()));
            }
        }
        Err(error) => drop(error.to_string()),
    }
});
