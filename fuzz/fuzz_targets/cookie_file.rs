//! A file of cookies in either format, and both files that are made of what was read.
#![no_main]

use std::time::{Duration, SystemTime};

use http::HeaderValue;
use longhaul::session::CookieJar;
use url::Url;

libfuzzer_sys::fuzz_target!(|file: &[u8]| {
    let now = SystemTime::UNIX_EPOCH + Duration::from_secs(1_750_000_000);
    let jar = match CookieJar::parse(file, now) {
        Ok(jar) => jar,
        Err(error) => return drop(error.to_string()),
    };
    assert!(jar.len() <= 3000 && jar.len() == jar.iter().count());
    let json = jar.to_json(now);
    let again = CookieJar::parse(json.as_bytes(), now).expect("it is ours");
    assert_eq!(again.to_json(now), json);
    let netscape = jar.to_netscape(now);
    let again = CookieJar::parse(&netscape, now).expect("it is ours");
    assert_eq!(again.to_netscape(now), netscape);
    for cookie in jar.iter() {
        let Ok(url) = Url::parse(&format!("https://{}{}", cookie.domain(), cookie.path())) else {
            continue;
        };
        if let Some(field) = jar.header(&url, now) {
            assert!(HeaderValue::from_bytes(&field).is_ok(), "{field:?}");
        }
    }
});
