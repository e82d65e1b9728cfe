//! The cookie file of Netscape, which curl, wget, Python's `MozillaCookieJar` and the exporters of
//! browsers write and read.
//!
//! Seven fields a line, separated by tabs: domain, whether the hosts below get it (`TRUE`), path,
//! whether it is for https alone (`TRUE`), the end of its life in seconds since 1970, name, value.
//! What the programs disagree about:
//! - A cookie for the session has 0 as its end, as curl writes it. Python writes nothing there,
//!   which is read too; but curl would lose a field by it, so a 0 is written, and Python has to be
//!   told that it is not the year 1970 (the guide to cookies has the lines).
//! - `#HttpOnly_` before the domain hides a cookie from scripts. Every other `#` is a comment.
//! - The second field says whether the hosts below get it, and a leading dot of the domain says
//!   nothing (curl). Written are both, so that Python, which insists, can read it.
//! - Python writes `localhost` as `localhost.local`.

use super::Cookie;
use super::domain::Named;
use super::file::{Faulty, seconds, time_of};
use std::time::SystemTime;

const HEAD: &str = "# Netscape HTTP Cookie File\n\
                    # Written by longhaul. Whoever can read it can take over the sessions in it.\n\n";
const HTTP_ONLY: &[u8] = b"#HttpOnly_";
const FIELDS: &str = "domain, TRUE or FALSE for the hosts below, path, TRUE or FALSE for https \
                      alone, the end in seconds since 1970 or 0, name, value";

/// The cookies of a file, in their order.
pub(super) fn parse(text: &[u8]) -> Result<Vec<Cookie>, Faulty> {
    let mut cookies = Vec::new();
    for (index, line) in text.split(|byte| *byte == b'\n').enumerate() {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        let (line, http_only) = match line.strip_prefix(HTTP_ONLY) {
            Some(rest) => (rest, true),
            None => (line, false),
        };
        let begin = line.trim_ascii_start();
        if !http_only && (begin.is_empty() || begin.starts_with(b"#")) {
            continue;
        }
        let cookie = cookie(line).map_err(|why| Faulty::at_line(index + 1, why))?;
        cookies.push(cookie.with_http_only(http_only));
    }
    Ok(cookies)
}

fn cookie(line: &[u8]) -> Result<Cookie, String> {
    let fields: Vec<&[u8]> = line.splitn(7, |byte| *byte == b'\t').collect();
    let (domain, below, path, secure, end, name, value) = match fields[..] {
        [domain, below, path, secure, end, name, value] => {
            (domain, below, path, secure, end, name, value)
        }
        // curl reads it so: an editor that cuts blanks at the ends of lines cut an empty value.
        [domain, below, path, secure, end, name] => {
            (domain, below, path, secure, end, name, &b""[..])
        }
        _ => {
            return Err(format!(
                "has {} of the seven fields of a cookie, which are separated by tabs: {FIELDS}",
                fields.len()
            ));
        }
    };
    let below = flag(below).ok_or("has neither TRUE nor FALSE in its second field")?;
    let secure = flag(secure).ok_or("has neither TRUE nor FALSE in its fourth field")?;
    let domain = str::from_utf8(domain).unwrap_or_default();
    let host = domain.strip_prefix('.').unwrap_or(domain);
    let host = if host.eq_ignore_ascii_case("localhost.local") { "localhost" } else { host };
    let named = Named::of(host, below).ok_or_else(|| {
        format!("has the domain {domain:?}, which is no host such as example.com")
    })?;
    let path = str::from_utf8(path).map_err(|_| "has a path that is not UTF-8")?;
    let end = end_of_life(end).ok_or(
        "has an end of life that is no number of seconds since 1970; 0 is the end of the session",
    )?;
    let mut cookie = Cookie::bare(trimmed(name), trimmed(value), named)
        .with_path(path)
        .map_err(|_| format!("has the path {path:?}, which does not begin with /"))?
        .with_secure(secure);
    cookie.expires = end;
    match cookie.fault().or(cookie.broken_promise()) {
        Some(why) => Err(why.to_owned()),
        None => Ok(cookie),
    }
}

/// Without the blanks around it, which no cookie has and editors leave behind.
fn trimmed(text: &[u8]) -> Vec<u8> {
    let is_blank = |byte: &u8| matches!(byte, b' ' | b'\t');
    let begin = text.iter().position(|byte| !is_blank(byte)).unwrap_or(text.len());
    let end = text.iter().rposition(|byte| !is_blank(byte)).map_or(begin, |last| last + 1);
    text.get(begin..end).unwrap_or_default().to_vec()
}

fn flag(text: &[u8]) -> Option<bool> {
    if text.eq_ignore_ascii_case(b"true") {
        return Some(true);
    }
    text.eq_ignore_ascii_case(b"false").then_some(false)
}

/// `None` in `Some` is the end of the session.
fn end_of_life(text: &[u8]) -> Option<Option<SystemTime>> {
    let text = str::from_utf8(text).ok()?.trim();
    // Exporters of browsers write fractions; a life is counted in whole seconds.
    let (whole, fraction) = text.split_once('.').unwrap_or((text, "0"));
    if whole.is_empty() && text.is_empty() {
        return Some(None);
    }
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    if !is_number(whole) || !is_number(fraction) {
        return None;
    }
    // More digits than a u64 has are the far future.
    let end = whole.parse().unwrap_or(u64::MAX);
    Some((end > 0).then(|| time_of(end)))
}

/// The file of these cookies; what it cannot hold is left out with a warning.
pub(super) fn render<'a>(cookies: impl Iterator<Item = &'a Cookie>) -> Vec<u8> {
    let mut file = HEAD.as_bytes().to_vec();
    let mut left_out = 0;
    for cookie in cookies {
        let has_tab = |text: &[u8]| text.contains(&b'\t');
        if [cookie.name(), cookie.value(), cookie.path().as_bytes()].into_iter().any(has_tab) {
            left_out += 1;
            continue;
        }
        if cookie.is_http_only() {
            file.extend_from_slice(HTTP_ONLY);
        }
        let domain = cookie.dotted_domain();
        let below = if domain.starts_with('.') { "TRUE" } else { "FALSE" };
        let secure = if cookie.is_secure() { "TRUE" } else { "FALSE" };
        let end = cookie.expires().map_or(0, seconds);
        let line = format!("{domain}\t{below}\t{}\t{secure}\t{end}\t", cookie.path());
        file.extend_from_slice(line.as_bytes());
        file.extend_from_slice(cookie.name());
        file.push(b'\t');
        file.extend_from_slice(cookie.value());
        file.push(b'\n');
    }
    if left_out > 0 {
        log::warn!(
            target: "longhaul::cookies",
            "{left_out} cookies hold a tab and are left out of the file; JSON can hold them"
        );
    }
    file
}
