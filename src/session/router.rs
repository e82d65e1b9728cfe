//! Which way the next attempt goes: the proxy pool, the maps and the environment, asked in the
//! order of requests' precedence.
//!
//! The pool is one for all sessions of a recipe, so it sits behind a lock here and nowhere below.
//! A [`Lease`] is the right to use a member of it; it gives itself back when it is dropped, with
//! no verdict, so neither a panic nor a lost flight keeps a proxy occupied.

use super::SessionBuilder;
use super::lessons::{Lesson, Lessons};
use super::numbers::Held as Numbers;
use crate::error::{Error, ErrorKind, WaitReason};
use crate::message::Overrides;
use crate::policy::Cooldown;
use crate::proxy::{
    Chosen, Identity, Pick, PickRequest, ProxyPool, ProxyUrl, Route, Verdict, resolve_proxy,
};
use crate::rng::Rng;
use crate::time::Clock;
use log::Level;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;
use url::Url;

/// How many members of the pool are looked at to find one that the host is not tired of.
const COOL_PICKS: usize = 4;

/// What the router answers.
pub(super) enum Way {
    /// Go this way.
    Go(Route, Lease),
    /// Not before this time.
    NotBefore(Instant, WaitReason),
    /// No way at all.
    None(Error),
}

/// The right to use a member of the proxy pool, or nothing where no pool is in use.
pub(super) struct Lease(Option<Held>);

struct Held {
    pool: Arc<Mutex<ProxyPool>>,
    member: usize,
    host: String,
    item: u64,
    /// Whether the limits alone are to know of it.
    counts_only: bool,
    clock: Arc<dyn Clock>,
    lessons: Option<Arc<Lessons>>,
}

impl Lease {
    /// Of a way without a pool.
    pub(super) const fn none() -> Self {
        Self(None)
    }

    /// Keeps the words of a refusal of credentials, for those that find every proxy refused: whose
    /// failure is heard of first is a matter of luck, and each has to tell the cause.
    pub(super) fn note_refusal(&self, error: &Error) {
        if let Some(held) = self.0.as_ref().filter(|_| error.kind() == ErrorKind::ProxyAuth) {
            lock(&held.pool).note_refusal(error.message());
        }
    }

    /// Gives the lease back with what the attempt says of the proxy.
    pub(super) fn report(mut self, verdict: Verdict, rng: &mut Rng) {
        self.give_back(verdict, rng);
    }

    /// Counts one more attempt on this way.
    ///
    /// # Errors
    /// Until when there is no slot for it.
    pub(super) fn charge(&self, now: Instant) -> Result<(), Instant> {
        match &self.0 {
            Some(held) => lock(&held.pool).charge(held.member, now),
            None => Ok(()),
        }
    }

    /// Gives back the slots that it took at `now`: no attempt is made on this way.
    fn uncount(&self, now: Instant) {
        if let Some(held) = &self.0 {
            lock(&held.pool).give_slots_back(held.member, now);
        }
    }

    fn give_back(&mut self, verdict: Verdict, rng: &mut Rng) {
        let Some(held) = self.0.take() else { return };
        let now = held.clock.now();
        let Held { pool, member, host, item, counts_only, lessons, .. } = held;
        let verdict = if counts_only { Verdict::Unknown } else { verdict };
        match ahead(lessons.as_ref(), now) {
            Some(lessons) => lessons.keep(Lesson::of_proxy(now, member, verdict, host, item)),
            None => {
                let mut pool = lock(&pool);
                let before = pool.state(member);
                pool.report(member, verdict, &host, item, now, rng);
                let after = pool.state(member);
                let name = (before != after).then(|| pool.name(member)).flatten();
                drop(pool);
                if let (Some(name), Some(before), Some(after)) = (name, before, after) {
                    let level = if after == "good" { Level::Debug } else { Level::Info };
                    log::log!(
                        target: "longhaul::proxy",
                        level,
                        "{name} went from {before} to {after}"
                    );
                }
            }
        }
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        if self.0.is_some() {
            // `Unknown` draws nothing, so the seed does not matter.
            self.give_back(Verdict::Unknown, &mut Rng::seeded(0));
        }
    }
}

impl std::fmt::Debug for Lease {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Lease").field(&self.0.as_ref().map(|held| held.member)).finish()
    }
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    // The guarded values are updated in one call each, so a panic elsewhere leaves them whole.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What an attempt asks the router.
pub(super) struct Ask<'a> {
    pub(super) url: &'a Url,
    pub(super) overrides: &'a Overrides,
    pub(super) tried: &'a [usize],
    pub(super) retry: bool,
    pub(super) item: u64,
    pub(super) now: Instant,
}

impl SessionBuilder {
    /// The way of the next attempt.
    pub(super) fn route(&self, ask: &Ask<'_>, numbers: &mut Numbers<'_>, rng: &mut Rng) -> Way {
        if let Some(map) = &ask.overrides.proxies
            && let Some(entry) = map.select(ask.url)
        {
            let mut route = entry.map_or_else(Route::direct, |p| Route::through(p.clone()));
            let Some(pool) = &self.pool else {
                return self.cooled(self.tunnelled(route), ask, rng);
            };
            lock(pool).dress(&mut route);
            return match self.cooled(self.tunnelled(route), ask, rng) {
                Way::Go(route, _) => self.counted(pool, route, ask, rng),
                other => other,
            };
        }
        if let Some(pool) = &self.pool {
            return self.route_by_pool(pool, ask, numbers, rng);
        }
        let chosen = resolve_proxy(ask.url, None, &self.settings.proxies, self.env.as_deref());
        let route = match chosen {
            Chosen::Proxy(proxy) => Route::through(proxy),
            Chosen::Direct => Route::direct(),
            Chosen::Uncovered if self.settings.proxies_required => {
                return Way::None(Error::local(
                    ErrorKind::ProxyRequired,
                    format!(
                        "no proxy covers {} URLs and proxies are required; add one for them, or allow direct requests",
                        ask.url.scheme()
                    ),
                ));
            }
            Chosen::Uncovered => Route::direct(),
        };
        self.cooled(self.tunnelled(route), ask, rng)
    }

    /// A way that was asked for by its name: where it leads through a member of the pool, the limits
    /// of that member count it.
    fn counted(
        &self,
        pool: &Arc<Mutex<ProxyPool>>,
        route: Route,
        ask: &Ask<'_>,
        rng: &mut Rng,
    ) -> Way {
        let known = route.proxy.as_ref().and_then(|proxy| lock(pool).borrow(proxy, ask.now, rng));
        match known {
            None => Way::Go(route, Lease::none()),
            Some(Ok(member)) => {
                let mut lease = self.lease(pool, member, ask);
                if let Some(held) = &mut lease.0 {
                    held.counts_only = true;
                }
                Way::Go(route, lease)
            }
            Some(Err(until)) => Way::NotBefore(until, WaitReason::Limit),
        }
    }

    /// The way that an interrupted step was on; `None` where it leads nowhere any more.
    pub(super) fn rejoin(&self, route: &Route, ask: &Ask<'_>, rng: &mut Rng) -> Option<Way> {
        let route = match self.cooled(route.clone(), ask, rng) {
            Way::Go(route, _) => route,
            other => return Some(other),
        };
        let Some(member) = route.member else {
            // Named by the URL, as the way of the attempt before was.
            return Some(match &self.pool {
                Some(pool) => self.counted(pool, route, ask, rng),
                None => Way::Go(route, Lease::none()),
            });
        };
        let pool = self.pool.as_ref()?;
        let again = lock(pool).rejoin(member, ask.now, rng)?;
        Some(match again {
            Ok(()) => Way::Go(route, self.lease(pool, member, ask)),
            Err(until) => Way::NotBefore(until, WaitReason::Limit),
        })
    }

    /// The lease of a member that the pool has counted.
    fn lease(&self, pool: &Arc<Mutex<ProxyPool>>, member: usize, ask: &Ask<'_>) -> Lease {
        Lease(Some(Held {
            pool: Arc::clone(pool),
            member,
            host: ask.url.host_str().unwrap_or_default().to_owned(),
            item: ask.item,
            counts_only: false,
            clock: Arc::clone(&self.clock),
            lessons: self.lessons.clone(),
        }))
    }

    /// Whose way a URL will go, where that can be said before the flight.
    pub(super) fn foreseen(&self, url: &Url, overrides: &Overrides) -> Option<Identity> {
        let of = |proxy: Option<&Arc<ProxyUrl>>| {
            proxy.map_or(Identity::DIRECT, |proxy| Identity::of(proxy))
        };
        if let Some(entry) = overrides.proxies.as_ref().and_then(|map| map.select(url)) {
            return Some(of(entry));
        }
        if self.pool.is_some() {
            return None;
        }
        match resolve_proxy(url, None, &self.settings.proxies, self.env.as_deref()) {
            Chosen::Proxy(proxy) => Some(of(Some(&proxy))),
            Chosen::Direct => Some(Identity::DIRECT),
            Chosen::Uncovered => (!self.settings.proxies_required).then_some(Identity::DIRECT),
        }
    }

    fn route_by_pool(
        &self,
        pool: &Arc<Mutex<ProxyPool>>,
        ask: &Ask<'_>,
        numbers: &mut Numbers<'_>,
        rng: &mut Rng,
    ) -> Way {
        let host = ask.url.host_str().unwrap_or_default();
        let mut avoid = ask.tried.to_vec();
        let mut soonest: Option<Instant> = None;
        for _ in 0..COOL_PICKS {
            let request = PickRequest { host, tried: &avoid, retry: ask.retry };
            let mut locked = lock(pool);
            let picked = locked.pick(request, ask.now, rng);
            let (per, may_renew) = (locked.session_per(), locked.is_fresh_exit());
            drop(locked);
            match picked {
                Pick::Use(route) => {
                    let route = self.tunnelled(route);
                    let lease = match route.member {
                        Some(member) => self.lease(pool, member, ask),
                        None => Lease::none(),
                    };
                    let template = route.clone();
                    let route = self.numbers.place(route, per, numbers, false);
                    let Some(until) = self.cools_until(host, route.identity, ask.now, rng) else {
                        return Way::Go(route, lease);
                    };
                    if may_renew && route.identity != template.identity {
                        // The host is tired of this exit, and the gateway has others.
                        let before = (*numbers.worker, *numbers.url);
                        let other = self.numbers.place(template, per, numbers, true);
                        if self.cools_until(host, other.identity, ask.now, rng).is_none() {
                            return Way::Go(other, lease);
                        }
                        (*numbers.worker, *numbers.url) = before;
                    }
                    // A host that is left alone must not use up the rates of the proxies.
                    lease.uncount(ask.now);
                    soonest = Some(soonest.map_or(until, |have| have.min(until)));
                    match route.member {
                        // The pool falls back to what was tried when nothing else is left.
                        Some(member) if !avoid.contains(&member) => avoid.push(member),
                        _ => break,
                    }
                }
                Pick::NotBefore(_) | Pick::AtLimit(_) if soonest.is_some() => break,
                Pick::NotBefore(until) => return Way::NotBefore(until, WaitReason::NoProxy),
                Pick::AtLimit(until) => return Way::NotBefore(until, WaitReason::Limit),
                Pick::Never { auth: true } => {
                    let every = "every proxy has refused its credentials";
                    let text = match lock(pool).refusal() {
                        Some(first) => format!("{first}; {every}"),
                        None => every.to_owned(),
                    };
                    return Way::None(Error::new(
                        ErrorKind::ProxyAuth,
                        crate::error::Phase::Prepare,
                        crate::error::Fault::Proxy,
                        text,
                    ));
                }
                Pick::Never { auth: false } => {
                    return Way::None(Error::new(
                        ErrorKind::NoProxyAlive,
                        crate::error::Phase::Prepare,
                        crate::error::Fault::Proxy,
                        "no proxy of the pool is usable",
                    ));
                }
            }
        }
        match soonest {
            Some(until) => Way::NotBefore(until, WaitReason::Cooldown),
            None => Way::NotBefore(ask.now, WaitReason::NoProxy),
        }
    }

    /// The way under the session's `always_connect`, which adds to what a pool says of its own.
    fn tunnelled(&self, mut route: Route) -> Route {
        route.always_connect |= self.settings.always_connect;
        route
    }

    fn cooled(&self, route: Route, ask: &Ask<'_>, rng: &mut Rng) -> Way {
        let host = ask.url.host_str().unwrap_or_default();
        match self.cools_until(host, route.identity, ask.now, rng) {
            Some(until) => Way::NotBefore(until, WaitReason::Cooldown),
            None => Way::Go(route, Lease::none()),
        }
    }

    fn cools_until(
        &self,
        host: &str,
        identity: Identity,
        now: Instant,
        rng: &mut Rng,
    ) -> Option<Instant> {
        let cooldown = self.cooldown.as_ref()?;
        lock(cooldown).until(host, identity.value(), now, rng)
    }

    /// Notes a throttling answer for all sessions of this recipe.
    pub(super) fn note_answer(
        &self,
        host: &str,
        identity: Identity,
        status: u16,
        wait: std::time::Duration,
        now: Instant,
    ) {
        let Some(cooldown) = &self.cooldown else { return };
        match ahead(self.lessons.as_ref(), now) {
            Some(lessons) => lessons.keep(Lesson::of_answer(now, host, identity, status, wait)),
            None => lock(cooldown).note(host, identity.value(), status, wait, now),
        }
    }
}

/// Where that is to be kept which is learnt at a time that has not come yet.
pub(super) fn ahead(lessons: Option<&Arc<Lessons>>, now: Instant) -> Option<&Arc<Lessons>> {
    lessons.filter(|lessons| lessons.is_ahead(now))
}

/// One for all sessions of a recipe.
pub(super) type SharedCooldown = Arc<Mutex<Cooldown>>;
