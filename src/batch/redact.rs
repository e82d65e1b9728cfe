//! URLs as they may be shown.
//!
//! A list of URLs may hold `http://user:password@host/`; what is written to a file or a terminal
//! must not. This works on the text as given, since a URL that cannot be parsed has to be shown as
//! well, and just there a password is most likely to stand in an odd place.

use std::borrow::Cow;
use url::Url;

/// What stands in place of user and password.
const STARS: &str = "***";

/// `text` without user and password; the text itself where it holds none.
pub(super) fn shown(text: &str) -> Cow<'_, str> {
    match Url::parse(text.trim()) {
        Ok(url) if matches!(url.scheme(), "http" | "https") => parsed(text, url),
        _ => unparsed(text),
    }
}

/// A proxy without user and password. Proxies arrive redacted; this is the second lock.
pub(super) fn proxy(text: &str) -> Cow<'_, str> {
    match text.rsplit_once('@') {
        Some((before, _)) if before.rsplit("://").next() != Some(STARS) => unparsed(text),
        _ => Cow::Borrowed(text),
    }
}

fn parsed(text: &str, mut url: Url) -> Cow<'_, str> {
    if url.username().is_empty() && url.password().is_none() {
        return Cow::Borrowed(text);
    }
    if url.set_password(None).is_err() || url.set_username(STARS).is_err() {
        return unparsed(text);
    }
    Cow::Owned(url.into())
}

/// Whatever precedes the last `@` may be a password: a slash in it is what made the URL unusable.
fn unparsed(text: &str) -> Cow<'_, str> {
    let Some((before, after)) = text.rsplit_once('@') else { return Cow::Borrowed(text) };
    let scheme = before.split_once("://").map_or("", |(scheme, _)| scheme);
    let separator = if scheme.is_empty() { "" } else { "://" };
    Cow::Owned(format!("{scheme}{separator}{STARS}@{after}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_is_shown() {
        for (given, wanted) in [
            ("http://h/a?b#c", "http://h/a?b#c"),
            ("http://h", "http://h"),
            ("https://medium.com/@someone/x", "https://medium.com/@someone/x"),
            ("http://u:secret@h", "http://***@h/"),
            ("http://u:sec@ret@h/p@q", "http://***@h/p@q"),
            ("http:u:secret@h/", "http://***@h/"),
            ("HTTP:\\\\u:secret@h/", "http://***@h/"),
            ("  http://u:secret@h/", "http://***@h/"),
            ("http://u:sec/ret@h/", "http://***@h/"),
            ("u:secret@h/", "***@h/"),
            ("ftp://u:secret@h/", "ftp://***@h/"),
            ("not a url", "not a url"),
            ("", ""),
        ] {
            assert_eq!(shown(given), wanted, "{given}");
        }
    }

    proptest! {
        #[test]
        fn a_password_is_never_shown(
            scheme in "(http|https|ftp|socks5|)",
            slashes in "(://|:/|:|//|:\\\\)",
            tail in "[/?#]?[a-z0-9/]{0,8}",
            noise in "[:@% ]{0,3}",
        ) {
            let text = format!("{scheme}{slashes}user:{noise}S3CRET{noise}@host{tail}");
            prop_assert!(!shown(&text).contains("S3CRET"), "{} -> {}", text, shown(&text));
        }
    }
}
