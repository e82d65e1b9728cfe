//! The jar as people know it from requests: set, get, remove, go through, merge.

use super::domain::{Named, owner_of};
use super::{Cookie, CookieJar};
use crate::error::Error;
use std::fmt::Write as _;
use std::time::SystemTime;

/// How many of several cookies of one name an error lists.
const SHOWN: usize = 4;

impl CookieJar {
    /// Sets a cookie of one's own, for http and https alike and until the session ends; in place
    /// of one of the same name, domain and path.
    ///
    /// A `domain` with a leading dot is for that domain and all hosts below it, one without for
    /// that host alone. [`set_cookie`](Self::set_cookie) takes the other attributes.
    ///
    /// # Errors
    /// `Config`, as [`Cookie::new`] and [`Cookie::with_path`]; the value is not shown.
    ///
    /// # Examples
    /// ```
    /// use longhaul::session::CookieJar;
    ///
    /// let mut jar = CookieJar::new();
    /// jar.set("session", "4f2a", ".example.com", "/")?;
    /// let cookie = jar.get("session", None, None)?.unwrap();
    /// assert_eq!(cookie.value(), b"4f2a");
    /// # Ok::<(), longhaul::Error>(())
    /// ```
    pub fn set(
        &mut self,
        name: impl Into<Vec<u8>>,
        value: impl Into<Vec<u8>>,
        domain: &str,
        path: &str,
    ) -> Result<(), Error> {
        self.set_cookie(Cookie::new(name, value, domain)?.with_path(path)?)
    }

    /// Sets a cookie of one's own, in place of one of the same name, domain and path.
    ///
    /// # Errors
    /// `Config` for a name that begins with `__Secure-` or `__Host-` where the cookie does not keep
    /// what that promises.
    pub fn set_cookie(&mut self, cookie: Cookie) -> Result<(), Error> {
        if let Some(why) = cookie.broken_promise() {
            return Err(Error::config(format!("{cookie:?} {why}")));
        }
        self.take(cookie, SystemTime::UNIX_EPOCH);
        Ok(())
    }

    /// Puts a cookie in that nobody has to be asked about.
    pub(super) fn take(&mut self, cookie: Cookie, now: SystemTime) {
        let owner: Box<str> = owner_of(cookie.domain()).into();
        self.put(&owner, cookie, false, now);
    }

    /// Whether `cookie` would take the place of one.
    pub(super) fn holds(&self, cookie: &Cookie) -> bool {
        let site = self.owners.get(owner_of(cookie.domain()));
        site.is_some_and(|site| site.cookies.iter().any(|have| have.is_same(cookie)))
    }

    /// The cookie of this name; of several the one of this domain and path, where they are given.
    ///
    /// A domain with a leading dot means cookies for the hosts below it, one without any.
    ///
    /// # Errors
    /// `Config` where several remain, requests' `CookieConflictError`: which one is meant decides
    /// about a login, so none is taken by chance.
    pub fn get(
        &self,
        name: impl AsRef<[u8]>,
        domain: Option<&str>,
        path: Option<&str>,
    ) -> Result<Option<&Cookie>, Error> {
        let name = name.as_ref();
        let wanted = Wanted::new(name, domain, path);
        let mut found = self.iter().filter(|cookie| wanted.is(cookie));
        let first = found.next();
        let others: Vec<&Cookie> = found.collect();
        let (Some(first), false) = (first, others.is_empty()) else { return Ok(first) };
        let mut text = format!(
            "{} cookies are named {:?}: for ",
            1 + others.len(),
            String::from_utf8_lossy(name)
        );
        for (index, cookie) in [first].into_iter().chain(others).enumerate() {
            if index == SHOWN {
                text.push_str(" …");
                break;
            }
            let comma = if index == 0 { "" } else { ", " };
            // Writing to a String cannot fail.
            let _ = write!(text, "{comma}{}{}", cookie.dotted_domain(), cookie.path());
        }
        text.push_str("; name the domain and the path");
        Err(Error::config(text))
    }

    /// Removes the cookies of this name, of all domains and paths where none is given; tells how
    /// many there were.
    pub fn remove(
        &mut self,
        name: impl AsRef<[u8]>,
        domain: Option<&str>,
        path: Option<&str>,
    ) -> usize {
        let before = self.len();
        let wanted = Wanted::new(name.as_ref(), domain, path);
        self.retain(|cookie| !wanted.is(cookie));
        before - self.len()
    }

    /// Keeps the cookies that `keep` says yes to: those that outlive the session, for instance, by
    /// `retain(|cookie| cookie.expires().is_some())`.
    pub fn retain(&mut self, mut keep: impl FnMut(&Cookie) -> bool) {
        for site in self.owners.values_mut() {
            site.cookies.retain(&mut keep);
        }
        self.recount();
    }

    /// Removes what is over; it would not be sent either.
    pub fn remove_expired(&mut self, now: SystemTime) {
        self.retain(|cookie| !cookie.is_expired(now));
    }

    /// Removes every cookie.
    pub fn clear(&mut self) {
        self.retain(|_| false);
    }

    /// Every cookie, the oldest first; expired ones that nobody met yet are among them.
    pub fn iter(&self) -> impl Iterator<Item = &Cookie> {
        let all = self.owners.values().flat_map(|site| &site.cookies);
        let mut all: Vec<&Cookie> = all.collect();
        all.sort_unstable_by_key(|cookie| cookie.created);
        all.into_iter()
    }

    /// Name and value of every cookie, the oldest first.
    pub fn items(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        self.iter().map(|cookie| (cookie.name(), cookie.value()))
    }

    /// Takes the cookies of `other` over, each in place of one of the same name, domain and path.
    pub fn update(&mut self, other: &Self) {
        for cookie in other.iter() {
            self.take(cookie.clone(), SystemTime::UNIX_EPOCH);
        }
    }

    /// How many cookies there are, expired ones that nobody met yet among them.
    pub fn len(&self) -> usize {
        self.count
    }

    /// Whether there is no cookie.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }
}

/// Which cookies are meant.
struct Wanted<'a> {
    name: &'a [u8],
    domain: Option<String>,
    below: bool,
    path: Option<&'a str>,
}

impl<'a> Wanted<'a> {
    fn new(name: &'a [u8], domain: Option<&str>, path: Option<&'a str>) -> Self {
        let below = domain.is_some_and(|domain| domain.starts_with('.'));
        // As the jar spells hosts; what is no host is nobody's domain.
        let domain = domain.map(|domain| {
            let host = domain.strip_prefix('.').unwrap_or(domain);
            Named::of(host, false).map_or_else(String::new, Named::into_host)
        });
        Self { name, domain, below, path }
    }

    fn is(&self, cookie: &Cookie) -> bool {
        cookie.name() == self.name
            && self.domain.as_deref().is_none_or(|domain| domain == cookie.domain())
            && !(self.below && cookie.is_host_only())
            && self.path.is_none_or(|path| path == cookie.path())
    }
}

#[cfg(test)]
#[path = "access_tests.rs"]
mod tests;
