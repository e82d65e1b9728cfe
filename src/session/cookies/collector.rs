//! What the sessions of a run leave behind, as one jar.
//!
//! A run has many jars: each worker's session has its own, and in it each identity. A file has
//! room for one. Cookies of one site belong together (a session and the token of its forms), so
//! they are taken site by site and never mixed: of several jars that a site has spoken to, its
//! cookies are those of the jar that it spoke to last. What no site has changed is as it was at the
//! start.

use super::{CookieJar, Site};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

/// Gathers the cookies of all sessions of a recipe as they end, for
/// [`SessionBuilder::cookie_collector`](crate::SessionBuilder::cookie_collector).
///
/// Clones gather into the same jar.
///
/// # Examples
/// ```no_run
/// use longhaul::session::{CookieCollector, CookieJar};
/// use longhaul::{Session, WorkerPool};
/// use std::time::SystemTime;
///
/// # fn main() -> Result<(), longhaul::Error> {
/// let collector = CookieCollector::new();
/// let recipe = Session::builder()
///     .cookies(CookieJar::load("cookies.txt", SystemTime::now())?)
///     .cookie_collector(&collector);
/// let pool = WorkerPool::builder(recipe).build()?;
/// for done in pool.run(["https://example.com/a", "https://example.com/b"]) {
///     println!("{}", done.url);
/// }
/// drop(pool);
/// collector.cookies().save("cookies.txt", SystemTime::now())?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Default)]
pub struct CookieCollector(Arc<Mutex<Gathered>>);

#[derive(Debug, Default)]
struct Gathered {
    /// What the sessions began with, once there was one.
    jar: Option<CookieJar>,
    /// When the sites that were begun with and have no cookie any more said so; no more than the
    /// jar of the beginning had.
    emptied: HashMap<Box<str>, Option<SystemTime>>,
}

impl CookieCollector {
    /// With nothing gathered.
    pub fn new() -> Self {
        Self::default()
    }

    /// What the sessions that ended so far have left, on top of what they began with.
    ///
    /// For each site the cookies of one jar: that which the site set a cookie in last.
    pub fn cookies(&self) -> CookieJar {
        self.lock().jar.clone().unwrap_or_default()
    }

    /// Notes what all sessions begin with.
    pub(in crate::session) fn begin(&self, start: &CookieJar) {
        self.lock().jar.get_or_insert_with(|| start.clone());
    }

    /// Takes what became of `start` in a jar that ends.
    pub(in crate::session) fn collect(&self, jar: &CookieJar, start: &CookieJar) {
        let mut gathered = self.lock();
        let gone = start.owners.keys().filter(|owner| !jar.owners.contains_key(*owner));
        for owner in gone {
            gathered.take(owner, None, jar.changed);
        }
        for (owner, site) in &jar.owners {
            if !start.owners.get(owner).is_some_and(|before| before.has_the_same(site)) {
                gathered.take(owner, Some(site), site.changed);
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, Gathered> {
        // Each site is taken as a whole, so a panic elsewhere leaves the rest usable.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Gathered {
    /// The word of one jar on a site, unless a later one is known.
    fn take(&mut self, owner: &str, site: Option<&Site>, changed: Option<SystemTime>) {
        let jar = self.jar.get_or_insert_default();
        let known = match jar.owners.get(owner) {
            Some(have) => have.changed,
            None => self.emptied.get(owner).copied().flatten(),
        };
        if changed < known {
            return;
        }
        jar.remove_site(owner);
        match site {
            Some(site) => {
                self.emptied.remove(owner);
                jar.take_site(owner, site);
            }
            None => {
                self.emptied.insert(owner.into(), changed);
            }
        }
    }
}

impl Site {
    fn has_the_same(&self, other: &Self) -> bool {
        self.cookies.len() == other.cookies.len()
            && self.cookies.iter().zip(&other.cookies).all(|(a, b)| {
                let facts =
                    |cookie: &super::Cookie| (cookie.secure, cookie.http_only, cookie.expires);
                a.is_same(b) && a.value == b.value && facts(a) == facts(b)
            })
    }
}

impl CookieJar {
    fn remove_site(&mut self, owner: &str) {
        if let Some(site) = self.owners.remove(owner) {
            self.count -= site.cookies.len();
        }
    }

    /// The cookies of a site, as the newest of this jar.
    fn take_site(&mut self, owner: &str, site: &Site) {
        let mut cookies: Vec<_> = site.cookies.iter().collect();
        cookies.sort_unstable_by_key(|cookie| cookie.created);
        for cookie in cookies {
            self.put(owner, cookie.clone(), false, SystemTime::UNIX_EPOCH);
        }
        if let Some(have) = self.owners.get_mut(owner) {
            have.changed = site.changed;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::{HeaderMap, HeaderValue, header};
    use std::time::Duration;
    use url::Url;

    fn at(seconds: u64) -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_secs(seconds)
    }

    fn visit(jar: &mut CookieJar, host: &str, lines: &[&str], second: u64) {
        let mut headers = HeaderMap::new();
        for line in lines {
            headers.append(header::SET_COOKIE, HeaderValue::from_str(line).unwrap());
        }
        jar.store(&Url::parse(&format!("https://{host}/")).unwrap(), &headers, at(second));
    }

    fn start() -> CookieJar {
        let mut jar = CookieJar::new();
        for (name, host) in [("login", "a.test"), ("form", "a.test"), ("kept", "b.test")] {
            jar.set(name, "start", host, "/").unwrap();
        }
        jar
    }

    /// `host: name=value; name=value` of each site, in order.
    fn shown(jar: &CookieJar) -> Vec<String> {
        let mut lines: Vec<String> = jar
            .iter()
            .map(|cookie| {
                let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
                format!("{}: {}={}", cookie.domain(), text(cookie.name()), text(cookie.value()))
            })
            .collect();
        lines.sort();
        assert_eq!(jar.len(), lines.len());
        lines
    }

    /// What is gathered of jars that began with [`start`], in both orders of their ends.
    fn gathered(jars: &[&CookieJar]) -> Vec<String> {
        let start = start();
        let [one, other] = [false, true].map(|turned| {
            let collector = CookieCollector::new();
            collector.begin(&start);
            let mut jars = jars.to_vec();
            if turned {
                jars.reverse();
            }
            for jar in jars {
                collector.collect(jar, &start);
            }
            shown(&collector.cookies())
        });
        assert_eq!(one, other, "the order of the ends decides nothing");
        one
    }

    #[test]
    fn sites_are_never_mixed_and_the_last_word_of_each_counts() {
        let (mut first, mut second) = (start(), start());
        visit(&mut first, "a.test", &["login=1", "form=1"], 10);
        visit(&mut first, "c.test", &["new=1"], 10);
        visit(&mut second, "a.test", &["login=2"], 20);
        visit(&mut second, "c.test", &["new=2", "more=2"], 5);
        let wanted =
            ["a.test: form=start", "a.test: login=2", "b.test: kept=start", "c.test: new=1"];
        assert_eq!(gathered(&[&first, &second, &start()]), wanted);
    }

    #[test]
    fn what_a_site_took_away_stays_away_until_it_gives_it_again() {
        let (mut out, mut again) = (start(), start());
        let over = &["login=; Max-Age=0", "form=; Max-Age=0"];
        visit(&mut out, "a.test", over, 20);
        assert_eq!(gathered(&[&out]), ["b.test: kept=start"]);
        visit(&mut again, "a.test", &["login=late"], 30);
        let wanted = ["a.test: form=start", "a.test: login=late", "b.test: kept=start"];
        assert_eq!(gathered(&[&out, &again]), wanted);
        let mut early = start();
        visit(&mut early, "a.test", &["login=early"], 10);
        assert_eq!(gathered(&[&out, &early]), ["b.test: kept=start"]);
    }

    #[test]
    fn without_a_visit_all_is_as_it_was() {
        assert_eq!(gathered(&[]), shown(&start()));
        assert_eq!(gathered(&[&start(), &start()]), shown(&start()));
        assert!(CookieCollector::new().cookies().is_empty());
        // The same again is no change.
        let mut same = start();
        visit(&mut same, "b.test", &["kept=start"], 10);
        assert_eq!(gathered(&[&same]), shown(&start()));
    }

    #[test]
    fn what_is_gathered_is_bounded() {
        let collector = CookieCollector::new();
        for worker in 0..10 {
            let mut jar = CookieJar::new();
            for host in 0..1000 {
                visit(&mut jar, &format!("w{worker}h{host}.test"), &["a=1"], 10);
            }
            collector.collect(&jar, &CookieJar::new());
        }
        assert!(collector.cookies().len() <= super::super::IN_ALL);
        assert!(collector.lock().emptied.is_empty());
    }
}
