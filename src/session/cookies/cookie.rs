//! One cookie, and the `Set-Cookie` line that it came from.

use super::date;
use super::domain::{self, Named, is_address};
use crate::error::Error;
use cookie_store::{CookieDomain, CookiePath};
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};
use url::Url;

/// RFC 6265bis 5.5: no cookie lives longer than this.
const LONGEST_LIFE: Duration = Duration::from_secs(400 * 86_400);
/// RFC 6265bis 5.6: a longer name with value is ignored.
const LONGEST_PAIR: usize = 4096;
/// RFC 6265bis 5.6: a longer attribute is ignored.
const LONGEST_ATTRIBUTE: usize = 1024;

/// A cookie of a [`CookieJar`](super::CookieJar), with name and value byte for byte.
pub struct Cookie {
    pub(super) name: Vec<u8>,
    pub(super) value: Vec<u8>,
    pub(super) domain: CookieDomain,
    pub(super) path: CookiePath,
    pub(super) secure: bool,
    pub(super) http_only: bool,
    pub(super) expires: Option<SystemTime>,
    /// Order of creation; a replaced cookie keeps it.
    pub(super) created: u64,
    /// Order of use. Atomic because sending a cookie changes nothing but this.
    pub(super) used: AtomicU64,
}

impl Cookie {
    /// A cookie of one's own: for the path `/` and below, for http and https, until the session
    /// ends.
    ///
    /// A `domain` with a leading dot is for that domain and all hosts below it, one without for
    /// that host alone.
    ///
    /// # Errors
    /// `Config` for a name or value that no server could set (controls, `;`, blanks around it,
    /// more than 4096 bytes), and for a domain that is no host, or whose hosts belong to different
    /// owners (`.co.uk`). The value is not shown.
    pub fn new(
        name: impl Into<Vec<u8>>,
        value: impl Into<Vec<u8>>,
        domain: &str,
    ) -> Result<Self, Error> {
        let (host, below) = match domain.strip_prefix('.') {
            Some(host) => (host, true),
            None => (domain, false),
        };
        let found = Named::of(host, below);
        let found = found.ok_or_else(|| {
            let why = if host.is_empty() { "names no host" } else { "is no host" };
            Error::config(format!(
                "cookie domain {domain:?} {why}; give a host, or .example.com for all below it"
            ))
        })?;
        if found.is_shared {
            let text = format!(
                "cookie domain {domain:?} is one under which unrelated sites live; name one of them"
            );
            return Err(Error::config(text));
        }
        let cookie = Self::bare(name.into(), value.into(), found);
        let fault = if cookie.name.is_empty() { Some("has no name") } else { cookie.fault() };
        match fault {
            // Not with its name: a value in the wrong place may be a session's.
            Some(why) => Err(Error::config(format!("a cookie for {domain:?} {why}"))),
            None => Ok(cookie),
        }
    }

    /// The same for this path and those below it.
    ///
    /// # Errors
    /// `Config` for a path that does not begin with `/`.
    pub fn with_path(mut self, path: &str) -> Result<Self, Error> {
        let has_control = path.bytes().any(|byte| byte.is_ascii_control());
        let found = CookiePath::parse(path).filter(|_| !has_control && !path.contains(';'));
        self.path = found.ok_or_else(|| {
            Error::config(format!("cookie path {path:?} is none; give one such as / or /shop"))
        })?;
        Ok(self)
    }

    /// The same for https alone, or for both.
    #[must_use]
    pub fn with_secure(mut self, secure: bool) -> Self {
        self.secure = secure;
        self
    }

    /// The same, hidden from the scripts of browsers or not; it matters in files only.
    #[must_use]
    pub fn with_http_only(mut self, http_only: bool) -> Self {
        self.http_only = http_only;
        self
    }

    /// The same until then; `None` is the end of the session.
    #[must_use]
    pub fn with_expires(mut self, expires: impl Into<Option<SystemTime>>) -> Self {
        self.expires = expires.into();
        self
    }

    /// With no attribute but its domain.
    pub(super) fn bare(name: Vec<u8>, value: Vec<u8>, of: Named) -> Self {
        Self {
            name,
            value,
            domain: of.domain,
            path: of.path,
            secure: false,
            http_only: false,
            expires: None,
            created: 0,
            used: AtomicU64::new(0),
        }
    }

    /// Why no server could have set this name and value, where none could.
    pub(super) fn fault(&self) -> Option<&'static str> {
        let bad = |byte: &u8| *byte == b';' || (byte.is_ascii_control() && *byte != b'\t');
        let is_blank = |byte: Option<&u8>| matches!(byte, Some(b' ' | b'\t'));
        let outer = [self.name.first(), self.name.last(), self.value.first(), self.value.last()];
        if self.name.is_empty() && self.value.is_empty() {
            Some("has neither a name nor a value")
        } else if self.name.len() + self.value.len() > LONGEST_PAIR {
            Some("has a name and value of more than 4096 bytes")
        } else if self.name.contains(&b'=') || self.name.iter().chain(&self.value).any(bad) {
            Some("has a character in its name or value that no cookie can have")
        } else if outer.into_iter().any(is_blank) {
            Some("has a blank at an end of its name or value; remove it")
        } else {
            None
        }
    }

    /// Why it does not keep what its name promises, where it does not.
    pub(super) fn broken_promise(&self) -> Option<&'static str> {
        (!self.keeps_its_prefix(true)).then_some(
            "breaks the promise of its name: __Secure- is for https alone, and __Host- also for \
             one host and the path /",
        )
    }

    /// The name, as the server wrote it; empty for a cookie without one.
    pub fn name(&self) -> &[u8] {
        &self.name
    }

    /// The value, as the server wrote it.
    pub fn value(&self) -> &[u8] {
        &self.value
    }

    /// The host, or the domain whose hosts all get it; see [`is_host_only`](Self::is_host_only).
    pub fn domain(&self) -> &str {
        match &self.domain {
            CookieDomain::HostOnly(domain) | CookieDomain::Suffix(domain) => domain,
            CookieDomain::NotPresent | CookieDomain::Empty => "",
        }
    }

    /// Whether only the host that set it gets it.
    pub fn is_host_only(&self) -> bool {
        matches!(self.domain, CookieDomain::HostOnly(_))
    }

    /// The path at and below which it is sent.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Whether it is sent over https only.
    pub fn is_secure(&self) -> bool {
        self.secure
    }

    /// Whether scripts of a browser would not see it.
    pub fn is_http_only(&self) -> bool {
        self.http_only
    }

    /// The end of its life; `None` is the end of the session.
    pub fn expires(&self) -> Option<SystemTime> {
        self.expires
    }

    /// The domain as a file writes it, with a dot where the hosts below it get the cookie too; of an
    /// address there are none, although a server may name one as a domain.
    pub(super) fn dotted_domain(&self) -> String {
        let alone = self.is_host_only() || is_address(self.domain());
        format!("{}{}", if alone { "" } else { "." }, self.domain())
    }

    pub(super) fn is_expired(&self, now: SystemTime) -> bool {
        self.expires.is_some_and(|end| end <= now)
    }

    pub(super) fn matches(&self, url: &Url) -> bool {
        (!self.secure || url.scheme() == "https")
            && self.domain.matches(url)
            && self.path.matches(url)
    }

    /// RFC 6265bis 5.7, the steps that depend on this cookie and its origin alone.
    pub(super) fn parse(line: &[u8], url: &Url, now: SystemTime) -> Option<Self> {
        // 5.6, step 1; a tab is the one control character that a cookie may hold.
        if line.iter().any(|byte| byte.is_ascii_control() && *byte != b'\t') {
            return None;
        }
        let mut pieces = line.split(|byte| *byte == b';');
        let pair = pieces.next()?;
        let (name, value) = match split_at_equals(pair) {
            Some((name, value)) => (name.trim_ascii(), value.trim_ascii()),
            None => (&b""[..], pair.trim_ascii()),
        };
        if (name.is_empty() && value.is_empty()) || name.len() + value.len() > LONGEST_PAIR {
            return None;
        }
        let mut cookie = Self {
            name: name.to_vec(),
            value: value.to_vec(),
            domain: CookieDomain::host_only(url).ok()?,
            path: CookiePath::default_path(url),
            secure: false,
            http_only: false,
            expires: None,
            created: 0,
            used: AtomicU64::new(0),
        };
        let mut domain = None;
        let mut path = None;
        let mut expires = None;
        let mut max_age = None;
        // The last attribute of a name wins.
        for piece in pieces {
            let (name, value) = split_at_equals(piece).unwrap_or((piece, b""));
            let (name, value) = (name.trim_ascii(), value.trim_ascii());
            if value.len() > LONGEST_ATTRIBUTE {
                continue;
            }
            if name.eq_ignore_ascii_case(b"domain") {
                domain = Some(value);
            } else if name.eq_ignore_ascii_case(b"path") {
                path = Some(value);
            } else if name.eq_ignore_ascii_case(b"expires") {
                expires = date::parse(value).or(expires);
            } else if name.eq_ignore_ascii_case(b"max-age") {
                max_age = parse_max_age(value, now).or(max_age);
            } else if name.eq_ignore_ascii_case(b"secure") {
                cookie.secure = true;
            } else if name.eq_ignore_ascii_case(b"httponly") {
                cookie.http_only = true;
            }
        }
        let longest = now.checked_add(LONGEST_LIFE);
        cookie.expires = max_age.or(expires).map(|end| longest.map_or(end, |most| end.min(most)));
        let path = path.map(String::from_utf8_lossy);
        if let Some(path) = path.as_deref().and_then(CookiePath::parse) {
            cookie.path = path;
        }
        if let Some(domain) = domain.filter(|domain| !domain.is_empty()) {
            cookie.domain = domain::allowed(domain, url)?;
        }
        if cookie.secure && url.scheme() != "https" {
            return None;
        }
        cookie.keeps_its_prefix(path.is_some()).then_some(cookie)
    }

    /// RFC 6265bis 4.1.3 and 5.7: names that promise how they were set.
    fn keeps_its_prefix(&self, path_given: bool) -> bool {
        let has = |text: &[u8], prefix: &[u8]| {
            text.get(..prefix.len()).is_some_and(|start| start.eq_ignore_ascii_case(prefix))
        };
        if self.name.is_empty() {
            // What is sent would look like the prefixed name.
            return !has(&self.value, b"__Secure-") && !has(&self.value, b"__Host-");
        }
        let host = !has(&self.name, b"__Host-")
            || (self.secure && self.is_host_only() && path_given && self.path() == "/");
        host && (!has(&self.name, b"__Secure-") || self.secure)
    }

    /// Whether `other` takes the place of this one.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        // As text: a `CookiePath` also knows whether it was given, and two that differ only in
        // that would both be sent.
        self.name == other.name && self.domain == other.domain && self.path() == other.path()
    }

    /// Appends it as it stands in a Cookie field.
    pub(super) fn push(&self, field: &mut Vec<u8>) {
        field.extend_from_slice(&self.name);
        if !self.name.is_empty() {
            field.push(b'=');
        }
        field.extend_from_slice(&self.value);
    }
}

impl Clone for Cookie {
    fn clone(&self) -> Self {
        Self {
            name: self.name.clone(),
            value: self.value.clone(),
            domain: self.domain.clone(),
            path: self.path.clone(),
            secure: self.secure,
            http_only: self.http_only,
            expires: self.expires,
            created: self.created,
            used: AtomicU64::new(self.used.load(Ordering::Relaxed)),
        }
    }
}

/// Without the value: it may be a session.
impl fmt::Debug for Cookie {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = String::from_utf8_lossy(&self.name);
        write!(f, "Cookie({name} for {}{})", self.domain(), self.path())
    }
}

fn split_at_equals(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let at = text.iter().position(|byte| *byte == b'=')?;
    Some((text.get(..at)?, text.get(at + 1..)?))
}

/// RFC 6265bis 5.6.2; `None` for what is no number, so that the attribute is ignored.
fn parse_max_age(value: &[u8], now: SystemTime) -> Option<SystemTime> {
    let digits = value.strip_prefix(b"-").unwrap_or(value);
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    if digits.len() < value.len() {
        return Some(SystemTime::UNIX_EPOCH);
    }
    let seconds = digits.iter().fold(0_u64, |number, digit| {
        number.saturating_mul(10).saturating_add(u64::from(digit - b'0'))
    });
    // Zero is over at once.
    now.checked_add(Duration::from_secs(seconds).min(LONGEST_LIFE))
}
