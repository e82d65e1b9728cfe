//! Percent-encoding as requests and urllib3 do it, and URLs that may be shown.
//!
//! Two rules are at work, and both are kept because servers see the difference. The URL that a
//! user gives is encoded component by component: escapes are kept if *every* `%` of the component
//! begins one, else each `%` is data. A `Location` is encoded as a whole: its escapes are kept
//! unless one of them is malformed. In both, escapes of unreserved characters are undone.

use std::borrow::Cow;
use std::fmt::Write as _;
use url::Url;

const fn table(more: &[u8]) -> [bool; 256] {
    let mut table = [false; 256];
    let mut byte = 0;
    while byte < 128 {
        #[allow(clippy::indexing_slicing, reason = "byte < 128 < 256")]
        {
            table[byte] = (byte as u8).is_ascii_alphanumeric();
        }
        byte += 1;
    }
    let mut index = 0;
    while index < more.len() {
        #[allow(clippy::indexing_slicing, reason = "index < len, and a u8 is below 256")]
        {
            table[more[index] as usize] = true;
        }
        index += 1;
    }
    table
}

/// RFC 3986 2.3.
static UNRESERVED: [bool; 256] = table(b"-._~");
/// RFC 3986 3.3, with `/`.
pub(super) static PATH: [bool; 256] = table(b"-._~!$&'()*+,;=:@/");
/// RFC 3986 3.4 and 3.5.
pub(super) static QUERY: [bool; 256] = table(b"-._~!$&'()*+,;=:@/?");
/// What `urllib.parse.quote` leaves alone in requests' `requote_uri`.
static REQUOTE: [bool; 256] = table(b"-._~!#$%&'()*+,/:;=?@[]");
/// What `urllib.parse.urlencode` leaves alone.
static FORM: [bool; 256] = table(b"-._~");

fn has(table: &[bool; 256], byte: u8) -> bool {
    table.get(usize::from(byte)).copied().unwrap_or(false)
}

fn push_escape(out: &mut String, byte: u8) {
    // Writing to a String cannot fail.
    let _ = write!(out, "%{byte:02X}");
}

/// The value of the escape that begins `bytes`, where one does.
fn escape(bytes: &[u8]) -> Option<u8> {
    let [b'%', high, low, ..] = bytes else { return None };
    let digit = |byte: &u8| char::from(*byte).to_digit(16);
    u8::try_from(digit(high)? * 16 + digit(low)?).ok()
}

/// A component of a URL that a user gave; `None` where nothing has to change.
pub(super) fn component(text: &str, allowed: &[bool; 256]) -> Option<String> {
    let bytes = text.as_bytes();
    if bytes.iter().all(|byte| has(allowed, *byte)) {
        return None;
    }
    let all_escapes = (0..bytes.len())
        .filter(|at| bytes.get(*at) == Some(&b'%'))
        .all(|at| bytes.get(at..).and_then(escape).is_some());
    let mut out = String::with_capacity(bytes.len() + 16);
    let mut rest = bytes;
    while let Some((&byte, tail)) = rest.split_first() {
        rest = tail;
        if byte == b'%' && all_escapes {
            // `all_escapes` promises that two digits follow.
            let value = escape(&[b'%', *tail.first()?, *tail.get(1)?])?;
            rest = tail.get(2..)?;
            if has(&UNRESERVED, value) {
                out.push(char::from(value));
            } else {
                push_escape(&mut out, value);
            }
        } else if has(allowed, byte) {
            out.push(char::from(byte));
        } else {
            push_escape(&mut out, byte);
        }
    }
    Some(out)
}

/// requests' `requote_uri`, over bytes: what is not ASCII is escaped byte by byte.
pub(super) fn requote(bytes: &[u8]) -> String {
    // requests looks for two alphanumeric characters after each `%`; if they are not hexadecimal,
    // no `%` of the whole text begins an escape.
    let malformed = |at: usize| {
        let pair = bytes.get(at + 1..at + 3);
        pair.is_some_and(|pair| pair.iter().all(u8::is_ascii_alphanumeric))
            && bytes.get(at..).and_then(escape).is_none()
    };
    let keep_percent = !(0..bytes.len()).any(|at| bytes.get(at) == Some(&b'%') && malformed(at));
    let mut out = String::with_capacity(bytes.len() + 16);
    let mut rest = bytes;
    while let Some((&byte, tail)) = rest.split_first() {
        let unescaped = escape(rest).filter(|value| keep_percent && has(&UNRESERVED, *value));
        rest = tail;
        if let Some(value) = unescaped {
            out.push(char::from(value));
            rest = tail.get(2..).unwrap_or_default();
        } else if has(&REQUOTE, byte) && (byte != b'%' || keep_percent) {
            out.push(char::from(byte));
        } else {
            push_escape(&mut out, byte);
        }
    }
    out
}

/// Appends `name=value` pairs as `application/x-www-form-urlencoded` (requests' `urlencode`).
pub(super) fn push_form(out: &mut String, pairs: &[(String, String)], mut separate: bool) {
    for (name, value) in pairs {
        if separate {
            out.push('&');
        }
        separate = true;
        push_form_text(out, name);
        out.push('=');
        push_form_text(out, value);
    }
}

fn push_form_text(out: &mut String, text: &str) {
    for byte in text.bytes() {
        if has(&FORM, byte) {
            out.push(char::from(byte));
        } else if byte == b' ' {
            out.push('+');
        } else {
            push_escape(out, byte);
        }
    }
}

/// Percent-decodes credentials; bytes that are not UTF-8 become U+FFFD, as in `unquote`.
pub(super) fn decoded(text: &str) -> String {
    percent_encoding::percent_decode_str(text).decode_utf8_lossy().into_owned()
}

/// The longest piece of a URL that an error shows.
const SHOWN: usize = 200;

/// A URL, however broken, as it may be shown: without credentials, on one line, bounded.
pub(crate) fn shown(url: &str) -> String {
    let text = without_credentials(url);
    let mut out = String::new();
    for (count, char) in text.chars().enumerate() {
        if count == SHOWN {
            out.push('…');
            break;
        }
        if char.is_control() {
            out.extend(char.escape_default());
        } else {
            out.push(char);
        }
    }
    out
}

/// What a user wrote in place of a URL holds its credentials in odd places: `http:///user:pass@h`
/// has them all the same, and a slash in the password is why `http://user:pa/ss@h` has no host.
fn without_credentials(url: &str) -> Cow<'_, str> {
    let (before, rest) = url.split_at(start_of_authority(url));
    let end = rest.find(['/', '\\', '?', '#']).unwrap_or(rest.len());
    let (authority, _) = rest.split_at(end);
    let usable = Url::parse(url).is_ok_and(|url| matches!(url.scheme(), "http" | "https"));
    let at = match rest.rsplit_once('@') {
        Some((secret, _)) if !usable && secret.contains(':') => Some(secret.len()),
        _ => authority.rfind('@'),
    };
    match at {
        Some(at) => format!("{before}***{}", rest.split_at(at).1).into(),
        None => url.into(),
    }
}

/// Behind the scheme and its slashes, of which http takes any number.
fn start_of_authority(url: &str) -> usize {
    let is_http = |scheme: &str| {
        let scheme = scheme.trim_start();
        scheme.eq_ignore_ascii_case("http") || scheme.eq_ignore_ascii_case("https")
    };
    match url.split_once(':') {
        Some((scheme, rest)) if rest.starts_with("//") || is_http(scheme) => {
            url.len() - rest.trim_start_matches(['/', '\\']).len()
        }
        _ => url.len() - url.trim_start_matches(['/', '\\']).len(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn components_keep_escapes_only_if_all_are_well_formed() {
        for (given, wanted) in [
            ("/a b", "/a%20b"),
            ("/%7Euser%2f", "/~user%2F"),
            ("/a%E4%", "/a%25E4%25"),
            ("/%zz", "/%25zz"),
            ("/é", "/%C3%A9"),
            ("/a%00b", "/a%00b"),
        ] {
            assert_eq!(component(given, &PATH).as_deref(), Some(wanted), "{given}");
        }
        assert_eq!(component("/plain;a=b@c", &PATH), None);
    }

    #[test]
    fn a_location_is_requoted_as_a_whole() {
        for (given, wanted) in [
            (&b"/a b|{}"[..], "/a%20b%7C%7B%7D"),
            (b"/%41%7E%2f", "/A~%2f"),
            (b"/%41/%zz", "/%2541/%25zz"),
            (b"/100%", "/100%"),
            (b"/caf\xc3\xa9", "/caf%C3%A9"),
            (b"/caf\xe9", "/caf%E9"),
            (b"\\\\evil\\x", "%5C%5Cevil%5Cx"),
        ] {
            assert_eq!(requote(given), wanted, "{given:?}");
        }
    }

    #[test]
    fn what_is_shown_holds_no_credentials() {
        for (given, wanted) in [
            ("http://u:p@h/x?a@b", "http://***@h/x?a@b"),
            ("http://u:p@w@h", "http://***@h"),
            ("u:p@h/x", "***@h/x"),
            ("http://h/a\nb", "http://h/a\\nb"),
            ("https://h.test/@me", "https://h.test/@me"),
            ("h.test/@me", "h.test/@me"),
            ("http:///u:p@h/x@y", "http:///***@h/x@y"),
            (" HTTP:\\\\u:p@h\\x", " HTTP:\\\\***@h\\x"),
            ("http:u:p@h/", "http:***@h/"),
            // A slash in the password: no port, no host.
            ("http://u:p/w@h/", "http://***@h/"),
            ("u:p/w@h/", "***@h/"),
            ("http//u:p@h/", "***@h/"),
            ("ftp://u:p?w@h/", "ftp://***@h/"),
        ] {
            assert_eq!(shown(given), wanted, "{given}");
        }
        assert_eq!(shown(&"x".repeat(500)).chars().count(), SHOWN + 1);
    }

    proptest! {
        #[test]
        fn a_password_is_never_shown(
            scheme in "(http|https|ftp|socks5|)",
            slashes in "(://|:///|:/|:|//|:\\\\\\\\)",
            tail in "[/?#]?[a-z0-9/]{0,8}",
            noise in "[:@% ]{0,3}",
        ) {
            let text = format!("{scheme}{slashes}user:{noise}S3CRET{noise}@host{tail}");
            prop_assert!(!shown(&text).contains("S3CRET"), "{} -> {}", text, shown(&text));
        }

        #[test]
        fn encoding_leaves_only_allowed_bytes_and_is_stable(text in ".{0,40}|[%a-f0-9z/]{0,20}") {
            let once = component(&text, &PATH).unwrap_or(text);
            prop_assert!(once.bytes().all(|byte| byte == b'%' || has(&PATH, byte)));
            prop_assert_eq!(component(&once, &PATH).unwrap_or_else(|| once.clone()), once);
        }

        #[test]
        fn requoting_any_bytes_gives_ascii(bytes in proptest::collection::vec(any::<u8>(), 0..60)) {
            prop_assert!(requote(&bytes).is_ascii());
        }
    }
}
