//! One cookie, and the `Set-Cookie` line that it came from.

use super::date;
use cookie_store::{CookieDomain, CookiePath};
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};
use url::{Host, Url};

/// RFC 6265bis 5.5: no cookie lives longer than this.
const LONGEST_LIFE: Duration = Duration::from_secs(400 * 86_400);
/// RFC 6265bis 5.6: a longer name with value is ignored.
const LONGEST_PAIR: usize = 4096;
/// RFC 6265bis 5.6: a longer attribute is ignored.
const LONGEST_ATTRIBUTE: usize = 1024;

/// A cookie of a [`CookieJar`](super::CookieJar).
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
            cookie.domain = allowed_domain(domain, url)?;
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

/// The domain of a `Domain` attribute, where the host may set cookies for it.
pub(super) fn allowed_domain(domain: &[u8], url: &Url) -> Option<CookieDomain> {
    let domain = std::str::from_utf8(domain).ok().filter(|domain| domain.is_ascii())?;
    let domain = CookieDomain::try_from(domain).ok()?;
    let CookieDomain::Suffix(suffix) = &domain else {
        return CookieDomain::host_only(url).ok();
    };
    if is_public_suffix(suffix, url) {
        // A public suffix may set a cookie for itself.
        let own = CookieDomain::host_only(url).ok()?;
        return own.host_is_identical(url).then_some(own).filter(|_| domain.host_is_identical(url));
    }
    domain.matches(url).then_some(domain)
}

/// Whether unrelated sites live under `domain`; every single label counts as one.
fn is_public_suffix(domain: &str, url: &Url) -> bool {
    matches!(url.host(), Some(Host::Domain(_)))
        && psl::suffix_str(domain).is_none_or(|suffix| suffix == domain)
}

/// What the jar is sorted by: the domain that one owner has, or the host.
pub(super) fn owner(url: &Url) -> &str {
    match url.host() {
        Some(Host::Domain(host)) => psl::domain_str(host).unwrap_or(host),
        _ => url.host_str().unwrap_or_default(),
    }
}
