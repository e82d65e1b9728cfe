//! One proxy in any spelling; what is shown holds no credentials.
#![no_main]

use longhaul::proxy::ProxyUrl;

libfuzzer_sys::fuzz_target!(|text: &str| {
    match text.parse::<ProxyUrl>() {
        Ok(proxy) => {
            let shown = format!("{proxy} {proxy:?}");
            let Some((_, password)) = proxy.credentials() else { return };
            // A short secret may stand in a host by chance.
            if let Ok(password) = std::str::from_utf8(password)
                && password.len() > 12
            {
                assert!(!shown.contains(password), "{shown}");
            }
        }
        Err(error) => drop(error.to_string()),
    }
});
