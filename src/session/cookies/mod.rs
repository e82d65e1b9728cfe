//! The cookie jar of one identity, by RFC 6265bis.
//!
//! A server's session hangs on getting back what it set, so name and value are kept and sent byte
//! for byte, whatever they are. Who gets them is decided more strictly than in Python's
//! `http.cookiejar`, on which requests builds, because in a run over many sites a cookie that
//! spreads too far is a leak:
//! - DIFFERENCE(host-only): a cookie without `Domain` goes to its host alone; there it also goes to
//!   the hosts below.
//! - DIFFERENCE(public-suffix): no cookie for `co.uk`; there only for single labels.
//! - DIFFERENCE(cookie-domain): a single-label host (`localhost`) may name itself, an IP address
//!   matches exactly, and an empty `Domain` is ignored; there the cookie is lost, or too wide.
//! - DIFFERENCE(cookie-path): a `Path` that does not begin with `/` is ignored, and paths compare
//!   as they are written.
//! - DIFFERENCE(cookie-attributes): the last attribute of a name wins, a `Max-Age` that is no
//!   number is ignored, as are those that only Python knows (`Port`, `Version`).
//! - DIFFERENCE(cookie-dates): dates are parsed by RFC 6265bis 5.1.1, and no life is longer than
//!   400 days.
//! - DIFFERENCE(secure-origin): plain http cannot set a `Secure` cookie, nor replace one, and the
//!   promises of `__Secure-` and `__Host-` are kept.
//! - DIFFERENCE(cookie-sequence): the lines of one answer count in their order, so that the last
//!   word on a cookie holds; there a line that removes one comes before those that set it.
//! - DIFFERENCE(cookie-order): longer paths are sent first, then older cookies; there one domain
//!   after the other.
//! - DIFFERENCE(domainless-cookie): a cookie of one's own names its domain; without one it goes to
//!   every host there.
//! - DIFFERENCE(nameless): `=v` is a cookie without a name.
//!
//! The jar is bounded: 50 cookies for one domain, 3000 in all, least recently used ones and expired
//! ones gone first. A lookup touches only cookies of the request's own
//! registrable domain, so its cost does not grow with the run.
//!
//! cookie_store gives the matching of domains and paths; its store cannot be used, since it reads
//! the machine's clock, keeps everything for ever and walks all domains on each request.

mod access;
mod collector;
mod cookie;
mod date;
mod domain;
mod file;
mod json;
mod netscape;

pub use collector::CookieCollector;
pub use cookie::Cookie;

use http::{HeaderMap, header};
use std::cmp::Reverse;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::SystemTime;
use url::Url;

/// How many cookies are kept for one domain (RFC 6265bis 6.1).
const PER_DOMAIN: usize = 50;
/// How many cookies are kept in all (RFC 6265bis 6.1).
const IN_ALL: usize = 3000;

/// Cookies of one identity, per RFC 6265bis with the public suffix list; bounded.
///
/// requests' `RequestsCookieJar`. A session has one for each identity (a proxy with its
/// credentials, or direct) and takes from every answer what it sets; cookies of one's own come by
/// [`set`](Self::set) or from a file by [`load`](Self::load), and into a session by
/// [`SessionBuilder::cookies`](super::SessionBuilder::cookies) or
/// [`Session::with_cookies`](super::Session::with_cookies).
///
/// # Defaults
/// At most 50 cookies for one domain, 3000 in all, 4096 bytes of name and value together; what is
/// least recently used goes first.
#[derive(Debug, Default)]
pub struct CookieJar {
    /// By registrable domain, or by host where there is none.
    owners: HashMap<Box<str>, Site>,
    count: usize,
    /// When a server last spoke of cookies.
    changed: Option<SystemTime>,
    /// Counts storing and sending, which is all the time that eviction needs.
    ticks: AtomicU64,
}

/// The cookies of one owner.
#[derive(Debug, Clone, Default)]
struct Site {
    cookies: Vec<Cookie>,
    /// When a server last spoke of them.
    changed: Option<SystemTime>,
}

impl CookieJar {
    /// A jar without cookies.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes what a response sets. What may not be set is ignored, as the RFC asks.
    pub fn store(&mut self, url: &Url, headers: &HeaderMap, now: SystemTime) {
        for value in headers.get_all(header::SET_COOKIE) {
            match Cookie::parse(value.as_bytes(), url, now) {
                Some(cookie) => {
                    let owner = domain::owner(url);
                    self.put(owner, cookie, url.scheme() != "https", now);
                    self.note(owner, now);
                }
                // Neither name nor value: they came from outside and may be a session's.
                None => {
                    log::debug!(
                        target: "longhaul::cookies",
                        "a cookie of {} was ignored",
                        url.host_str().unwrap_or("")
                    );
                }
            }
        }
    }

    /// The value of the Cookie field for a request to `url`; `None` where none applies.
    ///
    /// Longer paths come first, then older cookies (RFC 6265bis 5.8.3).
    pub fn header(&self, url: &Url, now: SystemTime) -> Option<Vec<u8>> {
        if self.count == 0 {
            return None;
        }
        let site = self.owners.get(domain::owner(url))?;
        let mut sent: Vec<&Cookie> =
            site.cookies.iter().filter(|one| !one.is_expired(now) && one.matches(url)).collect();
        sent.sort_by_key(|one| (Reverse(one.path().len()), one.created));
        let tick = self.tick();
        let mut field = Vec::new();
        for cookie in sent {
            cookie.used.store(tick, Ordering::Relaxed);
            if !field.is_empty() {
                field.extend_from_slice(b"; ");
            }
            cookie.push(&mut field);
        }
        (!field.is_empty()).then_some(field)
    }

    fn tick(&self) -> u64 {
        self.ticks.fetch_add(1, Ordering::Relaxed)
    }

    /// RFC 6265bis 5.7 from the step on that looks at the store.
    fn put(&mut self, owner: &str, mut cookie: Cookie, is_plain: bool, now: SystemTime) {
        let tick = self.tick();
        let expired = cookie.is_expired(now);
        let Some(site) = self.owners.get_mut(owner) else {
            if !expired {
                (cookie.created, cookie.used) = (tick, AtomicU64::new(tick));
                self.owners.insert(owner.into(), Site { cookies: vec![cookie], changed: None });
                self.count += 1;
                self.bound(now);
            }
            return;
        };
        let cookies = &mut site.cookies;
        let before = cookies.len();
        // "Leave secure cookies alone": plain http must not put a twin beside a secure one.
        let shadows = |have: &Cookie| {
            have.secure
                && have.name == cookie.name
                && (is_below(have.domain(), cookie.domain())
                    || is_below(cookie.domain(), have.domain()))
                && is_under(cookie.path(), have.path())
        };
        if is_plain && cookies.iter().any(|have| !have.is_expired(now) && shadows(have)) {
            return;
        }
        let place = cookies.iter().position(|have| have.is_same(&cookie));
        cookie.created = place.and_then(|at| cookies.get(at)).map_or(tick, |have| have.created);
        cookie.used = AtomicU64::new(tick);
        match place.and_then(|at| cookies.get_mut(at)) {
            Some(have) => *have = cookie,
            None => cookies.push(cookie),
        }
        cookies.retain(|have| !have.is_expired(now));
        evict_in(cookies);
        let after = cookies.len();
        if after == 0 {
            self.owners.remove(owner);
        }
        self.count = self.count + after - before;
        self.bound(now);
    }

    /// Notes that a server has spoken of the cookies of `owner`.
    fn note(&mut self, owner: &str, now: SystemTime) {
        self.changed = Some(now);
        if let Some(site) = self.owners.get_mut(owner) {
            site.changed = self.changed;
        }
    }

    /// Over the bound a tenth goes at once, so that its cost is spread over many cookies.
    fn bound(&mut self, now: SystemTime) {
        if self.count <= IN_ALL {
            return;
        }
        let keep = IN_ALL - IN_ALL / 10;
        for site in self.owners.values_mut() {
            site.cookies.retain(|cookie| !cookie.is_expired(now));
        }
        let all = self.owners.values().flat_map(|site| &site.cookies);
        let mut uses: Vec<u64> = all.map(|cookie| cookie.used.load(Ordering::Relaxed)).collect();
        if uses.len() > keep {
            let excess = uses.len() - keep;
            let (_, last, _) = uses.select_nth_unstable(excess - 1);
            let last = *last;
            for site in self.owners.values_mut() {
                site.cookies.retain(|cookie| cookie.used.load(Ordering::Relaxed) > last);
            }
        }
        self.recount();
    }

    /// After cookies were taken out of sites.
    fn recount(&mut self) {
        self.owners.retain(|_, site| !site.cookies.is_empty());
        self.count = self.owners.values().map(|site| site.cookies.len()).sum();
    }
}

impl Clone for CookieJar {
    fn clone(&self) -> Self {
        Self {
            owners: self.owners.clone(),
            count: self.count,
            changed: self.changed,
            ticks: AtomicU64::new(self.ticks.load(Ordering::Relaxed)),
        }
    }
}

/// Whether `host` is `domain` or lies under it.
fn is_below(host: &str, domain: &str) -> bool {
    host.strip_suffix(domain).is_some_and(|head| head.is_empty() || head.ends_with('.'))
}

/// Whether `path` is `top` or lies under it (RFC 6265bis 5.1.4).
fn is_under(path: &str, top: &str) -> bool {
    path.strip_prefix(top)
        .is_some_and(|rest| rest.is_empty() || top.ends_with('/') || rest.starts_with('/'))
}

/// Brings the last cookie's domain under its bound: those that are not secure go first, then those
/// least recently used.
fn evict_in(cookies: &mut Vec<Cookie>) {
    let Some(newest) = cookies.last() else { return };
    let same = |have: &Cookie| have.domain() == newest.domain();
    if cookies.iter().filter(|have| same(have)).count() <= PER_DOMAIN {
        return;
    }
    let newest_tick = newest.used.load(Ordering::Relaxed);
    let victim = cookies
        .iter()
        .enumerate()
        .filter(|(_, have)| same(have) && have.used.load(Ordering::Relaxed) != newest_tick)
        .min_by_key(|(_, have)| (have.secure, have.used.load(Ordering::Relaxed)))
        .map(|(index, _)| index);
    if let Some(index) = victim {
        cookies.remove(index);
    }
}

#[cfg(test)]
mod tests;
