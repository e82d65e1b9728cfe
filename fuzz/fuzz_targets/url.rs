//! URLs as they are typed and scraped; what was prepared stays as it is.
#![no_main]

use longhaul::message::prepare_url;

libfuzzer_sys::fuzz_target!(|input: (&str, Vec<(String, String)>)| {
    let (text, params) = input;
    match prepare_url(text, &params) {
        Ok(url) => {
            assert!(matches!(url.scheme(), "http" | "https"));
            assert!(url.as_str().is_ascii());
            let again = prepare_url(url.as_str(), &[]).expect("it was prepared");
            assert_eq!(again, url);
        }
        Err(error) => drop(error.to_string()),
    }
});
