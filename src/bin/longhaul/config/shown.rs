//! What may be shown of a value.

use super::flags::{Flag, Secrecy};
use super::value::Setting;
use longhaul::ProxyUrl;
use std::ffi::OsStr;
use url::Url;

/// A value for the eyes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Shown {
    /// With stars where it has to.
    pub(super) text: String,
    /// Whether it is all of the value.
    pub(super) is_whole: bool,
}

impl Shown {
    fn whole(text: &str) -> Self {
        Self { text: text.to_owned(), is_whole: true }
    }

    fn part(text: impl Into<String>) -> Self {
        Self { text: text.into(), is_whole: false }
    }
}

/// What of this value of a flag may be shown.
pub(super) fn shown(flag: &Flag, value: &OsStr) -> Shown {
    let Some(text) = value.to_str() else { return Shown::part(value.to_string_lossy()) };
    match flag.secrecy {
        Secrecy::Secret => Shown::part("***"),
        // A form or an object that logs in; the name of a file is no secret.
        Secrecy::Content if !text.starts_with('@') => Shown::part("***"),
        Secrecy::Field => field(text),
        Secrecy::Proxy => match text.parse::<ProxyUrl>() {
            Ok(proxy) if proxy.credentials().is_none() => Shown::whole(text),
            Ok(proxy) => Shown::part(proxy.to_string()),
            Err(_) => Shown::part("***"),
        },
        Secrecy::Content | Secrecy::Open => match text.parse::<Url>() {
            Ok(mut url) if !url.username().is_empty() || url.password().is_some() => {
                // A URL with a user has a host, so both of them succeed.
                let _ = url.set_password(None);
                let _ = url.set_username("***");
                Shown::part(url)
            }
            _ => Shown::whole(text),
        },
    }
}

/// Whether a setting holds what may not be shown.
pub(super) fn holds_secret(flag: &Flag, setting: &Setting) -> bool {
    match setting {
        Setting::TakenBack | Setting::Times(_) => false,
        Setting::Values(values) => values.iter().any(|value| !shown(flag, value).is_whole),
    }
}

/// A field, by its name: words that stand for secrets hide more than they have to, which costs a
/// look into the file, while one that is missing costs a password.
fn field(text: &str) -> Shown {
    const SECRET: [&str; 8] =
        ["auth", "cookie", "token", "secret", "password", "key", "session", "credential"];
    let (name, value) = text.split_once(':').unwrap_or(("", text));
    let lower = name.to_ascii_lowercase();
    let is_secret = name.is_empty()
        || SECRET.iter().any(|word| lower.contains(word))
        // A Referer may hold a URL with credentials.
        || value.contains('@');
    match is_secret && !value.trim().is_empty() {
        true => Shown::part(format!("{name}: ***")),
        false => Shown::whole(text),
    }
}
