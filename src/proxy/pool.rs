//! Many proxies: rotation, health, revival. Pure; a driver holds it under a lock.
//!
//! A pool answers one question, *which way does this attempt go*, and learns from one message, *what
//! came of it*. Each [`pick`](ProxyPool::pick) that answers [`Pick::Use`] takes a lease, and its
//! [`report`](ProxyPool::report) gives it back. Between the two the pool decides by four rules, in
//! this order:
//!
//! 1. A refused credential is never used again, on whichever member it stands.
//! 2. A member that is dead or asked for quiet is left alone until its time; then one attempt shows
//!    whether it is back. When nothing else is left, the pool says from when on to ask again. It
//!    never says "direct".
//! 3. A URL does not go through a member that it has tried while a healthy one is untried, not even
//!    if that one is busy.
//! 4. Members below the success floor stay out while at least a tenth of the pool is above it.
//!
//! Within these the [`Rotation`] decides. The work is linear in the number of members, without
//! allocation: what a member's [`Route`] needs is made once.

mod list;
mod rotation;
mod survey;

pub use rotation::Rotation;

use self::rotation::Wheel;
use super::health::{Evidence, Health, Standing};
use super::{ProxyUrl, Route, SessionPer, Verdict, add_proxy_header};
use crate::error::Error;
use crate::policy::RateLimit;
use crate::rng::Rng;
use std::collections::{HashMap, HashSet};
use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use std::time::Instant;

/// What a pick depends on.
#[derive(Debug, Clone, Copy)]
pub struct PickRequest<'a> {
    /// The host of the target.
    pub host: &'a str,
    /// Members that this URL has tried already.
    pub tried: &'a [usize],
    /// Whether this is a retry.
    pub retry: bool,
}

/// What the pool answers.
#[non_exhaustive]
#[derive(Debug, Clone)]
pub enum Pick {
    /// Go this way, and `report` afterwards exactly once.
    Use(Route),
    /// None is usable before this time.
    NotBefore(Instant),
    /// None has room before this time: those that are usable are at a limit of rate or of parallel
    /// attempts.
    AtLimit(Instant),
    /// None will be usable: all retired by their credentials, or the pool is empty.
    Never {
        /// Whether it was the credentials.
        auth: bool,
    },
}

/// The numbers of one member.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ProxyStats {
    /// Redacted.
    pub proxy: String,
    /// Picks so far.
    pub picks: u64,
    /// Good verdicts.
    pub good: u64,
    /// Bad and doubtful verdicts.
    pub bad: u64,
    /// Picks that have not been reported yet.
    pub in_flight: usize,
    /// Whether its credentials were refused.
    pub auth_refused: bool,
    /// `unchecked`, `good`, `cooling`, `dead`.
    pub state: &'static str,
}

/// A rotating set of proxies.
///
/// # Examples
/// ```
/// use longhaul::ProxyPool;
/// use longhaul::proxy::Rotation;
///
/// let pool = ProxyPool::parse("# Frankfurt\n10.0.0.1:8000:anna:secret\nsocks5h://10.0.0.2:1080\n")?
///     .rotation(Rotation::Host)
///     .parallel_per_proxy(Some(8));
/// assert_eq!(pool.len(), 2);
/// # Ok::<(), longhaul::Error>(())
/// ```
#[derive(Clone)]
pub struct ProxyPool {
    members: Vec<Member>,
    credentials: Vec<Credential>,
    wheel: Wheel,
    fresh_exit: bool,
    per_proxy: Option<usize>,
    per_credential: Option<usize>,
    sessions: Option<SessionPer>,
    /// What was said when credentials were refused first.
    refusal: Option<String>,
}

#[derive(Debug, Clone)]
struct Member {
    /// As it is handed out, but for `fresh`.
    route: Route,
    /// Index into the pool's credentials.
    credential: usize,
    health: Health,
    leases: usize,
    rate: Option<RateLimit>,
    picks: u64,
    good: u64,
    bad: u64,
}

/// A user with a password, wherever it stands; a member without any counts as one of its own.
#[derive(Debug, Clone, Default)]
struct Credential {
    refused: bool,
    leases: usize,
    rate: Option<RateLimit>,
}

impl ProxyPool {
    /// A list of one proxy a line, with comments, blank lines, BOM, CRLF and duplicates.
    ///
    /// Every spelling of [`ProxyUrl`] will do. A `#` begins a comment at the start of a line and
    /// after whitespace. What stands there twice counts once.
    ///
    /// # Errors
    /// `InvalidProxyUrl` with the line number, the (redacted) line and the likely mistake; `Config`
    /// for a list without any proxy.
    pub fn parse(text: &str) -> Result<Self, Error> {
        list::parse(text).map(Self::new)
    }

    /// These proxies, each once.
    pub fn new(proxies: impl IntoIterator<Item = ProxyUrl>) -> Self {
        let mut pool = Self {
            members: Vec::new(),
            credentials: Vec::new(),
            wheel: Wheel::default(),
            fresh_exit: true,
            per_proxy: None,
            per_credential: None,
            sessions: None,
            refusal: None,
        };
        let mut seen = HashSet::new();
        let mut by_credential: HashMap<(Vec<u8>, Vec<u8>), usize> = HashMap::new();
        for proxy in proxies {
            if !seen.insert(proxy.clone()) {
                continue;
            }
            let fresh_index = pool.credentials.len();
            let credential = match proxy.credentials() {
                Some((user, password)) => {
                    *by_credential.entry((user.to_vec(), password.to_vec())).or_insert(fresh_index)
                }
                None => fresh_index,
            };
            if credential == fresh_index {
                pool.credentials.push(Credential::default());
            }
            let route =
                Route { member: Some(pool.members.len()), ..Route::through(Arc::new(proxy)) };
            pool.members.push(Member {
                route,
                credential,
                health: Health::new(),
                leases: 0,
                rate: None,
                picks: 0,
                good: 0,
                bad: 0,
            });
        }
        pool
    }

    /// When another proxy is taken. Default: [`Rotation::Request`].
    pub fn rotation(mut self, rotation: Rotation) -> Self {
        self.wheel = Wheel::new(rotation);
        self
    }

    /// Whether a retry goes over a new connection, so that a gateway which picks the exit per
    /// connection really takes another. Default: on.
    pub fn fresh_exit(mut self, fresh_exit: bool) -> Self {
        self.fresh_exit = fresh_exit;
        self
    }

    /// Whether connections are kept for later requests. Default: on.
    ///
    /// Off, every request through a gateway that rotates by itself leaves from another exit, at the
    /// price of a handshake each.
    pub fn keep_alive(self, keep_alive: bool) -> Self {
        self.each_route(|route| route.keep_alive = keep_alive)
    }

    /// Whether http targets go through CONNECT too, for proxies that forward nothing. Default: off.
    pub fn always_connect(self, always_connect: bool) -> Self {
        self.each_route(|route| route.always_connect = always_connect)
    }

    /// Adds a field that the proxies see and the targets do not.
    ///
    /// # Errors
    /// `InvalidHeader` for a name that is no token, and for a value with a line break or NUL.
    pub fn proxy_header(self, name: &str, value: &str) -> Result<Self, Error> {
        let given = self.members.first().map(|member| Arc::clone(&member.route.proxy_headers));
        let headers = add_proxy_header(given.as_deref().unwrap_or_default(), name, value)?;
        Ok(self.each_route(|route| route.proxy_headers = Arc::clone(&headers)))
    }

    /// How many attempts may be under way through one proxy at a time; 0 counts as 1. Default: any
    /// number.
    pub fn parallel_per_proxy(mut self, limit: Option<usize>) -> Self {
        self.per_proxy = limit.map(|limit| limit.max(1));
        self
    }

    /// How many attempts may be under way with one user and password, over all proxies; 0 counts as
    /// 1. Default: any number.
    pub fn parallel_per_credential(mut self, limit: Option<usize>) -> Self {
        self.per_credential = limit.map(|limit| limit.max(1));
        self
    }

    /// How many attempts per second may begin through one proxy, evenly spaced, retries, the
    /// hops of redirects and exit checks included. Default: any number.
    ///
    /// # Errors
    /// `Config` for what is no rate above 0.
    pub fn rate_per_proxy(mut self, per_second: Option<f64>) -> Result<Self, Error> {
        let rate = checked_rate("rate_per_proxy", per_second)?;
        self.members.iter_mut().for_each(|member| member.rate.clone_from(&rate));
        Ok(self)
    }

    /// How many attempts per second may begin with one user and password, over all proxies; else as
    /// [`rate_per_proxy`](Self::rate_per_proxy). Default: any number.
    ///
    /// # Errors
    /// `Config` for what is no rate above 0.
    pub fn rate_per_credential(mut self, per_second: Option<f64>) -> Result<Self, Error> {
        let rate = checked_rate("rate_per_credential", per_second)?;
        self.credentials.iter_mut().for_each(|credential| credential.rate.clone_from(&rate));
        Ok(self)
    }

    /// Takes `{n}` in user names and passwords for the place of a number, and says who gets one of
    /// their own; see [`SessionPer`]. Default: `None`, and `{n}` is sent as it stands.
    ///
    /// A retry that leaves by another exit ([`fresh_exit`](Self::fresh_exit)) takes a new number.
    pub fn sessions(mut self, per: Option<SessionPer>) -> Self {
        self.sessions = per;
        self
    }

    /// Who gets a number of their own.
    pub fn session_per(&self) -> Option<SessionPer> {
        self.sessions
    }

    fn each_route(mut self, change: impl Fn(&mut Route)) -> Self {
        self.members.iter_mut().for_each(|member| change(&mut member.route));
        self
    }

    /// How many members there are.
    pub fn len(&self) -> usize {
        self.members.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.members.is_empty()
    }

    /// Chooses the way of an attempt.
    ///
    /// The times of [`Pick::NotBefore`] and [`Pick::AtLimit`] lie in the future: the revival of the
    /// first member, the next slot of a rate, or shortly after `now` where members are merely busy.
    pub fn pick(&mut self, request: PickRequest<'_>, now: Instant, rng: &mut Rng) -> Pick {
        let host = hash(request.host);
        let start = self.wheel.start(host, self.members.len());
        let survey = self.survey(request, start, now);
        let Some(chosen) = survey.choose(self.wheel.rotation(), rng, |place, seat| {
            self.nth_of(place, seat, request, start, now)
        }) else {
            return survey.refusal(now, rng);
        };
        let start_is_fit = self.members.get(start).is_some_and(|member| {
            !request.tried.contains(&start)
                && member.health.standing(now) == Standing::Healthy
                && !self.is_refused(member)
        });
        self.wheel.turn(host, chosen, start_is_fit, self.members.len());
        self.lease(chosen, request.retry, now)
    }

    /// Tells what came of the attempt; `host` and `item` guard against one bad URL killing a proxy.
    pub fn report(
        &mut self,
        member: usize,
        verdict: Verdict,
        host: &str,
        item: u64,
        now: Instant,
        rng: &mut Rng,
    ) {
        let Some(member) = self.members.get_mut(member) else {
            return;
        };
        member.leases = member.leases.saturating_sub(1);
        match verdict {
            Verdict::Good => member.good += 1,
            Verdict::Bad | Verdict::Doubtful => member.bad += 1,
            _ => {}
        }
        member.health.record(verdict, Evidence { host: hash(host), item }, now, rng);
        if let Some(credential) = self.credentials.get_mut(member.credential) {
            credential.leases = credential.leases.saturating_sub(1);
            credential.refused |= verdict == Verdict::Auth;
        }
    }

    /// Keeps what was said when credentials were refused first.
    pub(crate) fn note_refusal(&mut self, words: &str) {
        self.refusal.get_or_insert_with(|| words.to_owned());
    }

    /// What was said when credentials were refused first.
    pub(crate) fn refusal(&self) -> Option<&str> {
        self.refusal.as_deref()
    }

    /// How many distinct credentials are still accepted.
    ///
    /// A credential is a user with a password; a member without one counts as one of its own.
    pub fn credentials_left(&self) -> usize {
        self.credentials.iter().filter(|credential| !credential.refused).count()
    }

    /// How many members are neither dead nor retired.
    pub fn alive(&self) -> usize {
        self.members
            .iter()
            .filter(|member| !member.health.is_dead() && !self.is_refused(member))
            .count()
    }

    /// The proxies, in the order of the list.
    pub fn proxies(&self) -> impl Iterator<Item = &ProxyUrl> {
        self.members.iter().filter_map(|member| member.route.proxy.as_deref())
    }

    /// The proxies as an attempt meets them: templates with the first number, where numbers are
    /// given out at all.
    pub fn first_identities(&self) -> impl Iterator<Item = ProxyUrl> {
        self.proxies().map(|proxy| match self.sessions {
            Some(_) => proxy.with_session(1),
            None => proxy.clone(),
        })
    }

    /// Gives a way through a member's address what all ways through the members have: fields for
    /// the proxy, CONNECT, keep-alive. A way past them stays as it is, since the fields are secret.
    pub(crate) fn dress(&self, route: &mut Route) {
        let Some(proxy) = &route.proxy else { return };
        let address = |proxy: &ProxyUrl| (proxy.scheme(), proxy.host().to_owned(), proxy.port());
        let wanted = address(proxy);
        let mut routes = self.members.iter().map(|member| &member.route);
        let known = routes.find(|known| known.proxy.as_ref().is_some_and(|p| address(p) == wanted));
        if let Some(known) = known {
            route.always_connect = known.always_connect;
            route.keep_alive = known.keep_alive;
            route.proxy_headers = Arc::clone(&known.proxy_headers);
        }
    }

    /// Whether a retry goes over a new connection.
    pub(crate) fn is_fresh_exit(&self) -> bool {
        self.fresh_exit
    }

    /// The numbers of each member, in order.
    pub fn stats(&self) -> Vec<ProxyStats> {
        self.members
            .iter()
            .map(|member| ProxyStats {
                proxy: member.route.shown.as_deref().unwrap_or_default().to_owned(),
                picks: member.picks,
                good: member.good,
                bad: member.bad,
                in_flight: member.leases,
                auth_refused: self.is_refused(member),
                state: member.health.name(),
            })
            .collect()
    }

    /// The state of a member, as in [`ProxyStats`].
    pub(crate) fn state(&self, member: usize) -> Option<&'static str> {
        let member = self.members.get(member)?;
        Some(if self.is_refused(member) { "credentials refused" } else { member.health.name() })
    }

    /// What a member is called, without credentials.
    pub(crate) fn name(&self, member: usize) -> Option<Arc<str>> {
        self.members.get(member)?.route.shown.clone()
    }

    fn is_refused(&self, member: &Member) -> bool {
        self.credentials.get(member.credential).is_some_and(|credential| credential.refused)
    }

    fn is_busy(&self, member: &Member) -> bool {
        let credential = self.credentials.get(member.credential);
        let full = |leases: usize, limit: Option<usize>| limit.is_some_and(|limit| leases >= limit);
        full(member.leases, self.per_proxy)
            || credential.is_some_and(|credential| full(credential.leases, self.per_credential))
    }

    /// When the rates of this member have a slot.
    fn paced_until(&self, member: &Member, now: Instant) -> Option<Instant> {
        let credential = self.credentials.get(member.credential);
        let rates = [member.rate.as_ref(), credential.and_then(|of| of.rate.as_ref())];
        rates.into_iter().flatten().map(|rate| rate.free(now)).max().filter(|free| *free > now)
    }

    /// Counts one more attempt on the way of a lease: a hop, or a request that is sent again.
    ///
    /// # Errors
    /// Until when its rates have no slot; nothing is counted.
    pub(crate) fn charge(&mut self, index: usize, now: Instant) -> Result<(), Instant> {
        let Some(member) = self.members.get(index) else { return Ok(()) };
        match self.paced_until(member, now) {
            Some(until) => Err(until),
            None => {
                self.take_slots(index, now);
                Ok(())
            }
        }
    }

    fn take_slots(&mut self, member: usize, now: Instant) {
        let Some(member) = self.members.get_mut(member) else { return };
        let credential = self.credentials.get_mut(member.credential);
        let rates = [member.rate.as_mut(), credential.and_then(|of| of.rate.as_mut())];
        for rate in rates.into_iter().flatten() {
            rate.reserve(now);
        }
    }

    /// Gives the slots back that a lease took at `now`, where no attempt is made on it after all.
    pub(crate) fn give_slots_back(&mut self, index: usize, now: Instant) {
        let Some(member) = self.members.get_mut(index) else { return };
        let credential = self.credentials.get_mut(member.credential);
        let rates = [member.rate.as_mut(), credential.and_then(|of| of.rate.as_mut())];
        for rate in rates.into_iter().flatten() {
            // One that was taken later was spaced by this one, which is lost then.
            if rate.due() == now.checked_add(rate.interval()) {
                rate.undo();
            }
        }
    }

    /// Leases a member again for a visit that was interrupted; `None` where it is not what it was.
    ///
    /// # Errors
    /// Until when it is at a limit.
    pub(crate) fn rejoin(
        &mut self,
        index: usize,
        now: Instant,
        rng: &mut Rng,
    ) -> Option<Result<(), Instant>> {
        let member = self.members.get(index)?;
        let standing = member.health.standing(now);
        if self.is_refused(member) || matches!(standing, Standing::Down(_) | Standing::Probing) {
            return None;
        }
        Some(self.room(member, now, rng).map(|()| drop(self.lease(index, false, now))))
    }

    /// Counts an attempt through a proxy that was asked for by its name, whatever its health;
    /// `None` where it is no member.
    ///
    /// # Errors
    /// Until when it is at a limit.
    pub(crate) fn borrow(
        &mut self,
        proxy: &ProxyUrl,
        now: Instant,
        rng: &mut Rng,
    ) -> Option<Result<usize, Instant>> {
        let is_it = |own: &ProxyUrl| {
            own == proxy || self.sessions.is_some() && own.with_session(1) == *proxy
        };
        let is_member = |member: &Member| member.route.proxy.as_deref().is_some_and(is_it);
        let index = self.members.iter().position(is_member)?;
        let room = self.room(self.members.get(index)?, now, rng);
        Some(room.map(|()| {
            self.take_slots(index, now);
            self.occupy(index);
            index
        }))
    }

    /// Whether this member has room for one more attempt, or when it may have.
    fn room(&self, member: &Member, now: Instant, rng: &mut Rng) -> Result<(), Instant> {
        if self.is_busy(member) {
            return Err(survey::soon(now, rng));
        }
        self.paced_until(member, now).map_or(Ok(()), Err)
    }

    fn occupy(&mut self, member: usize) {
        let Some(member) = self.members.get_mut(member) else { return };
        member.leases += 1;
        if let Some(credential) = self.credentials.get_mut(member.credential) {
            credential.leases += 1;
        }
    }

    fn lease(&mut self, chosen: usize, retry: bool, now: Instant) -> Pick {
        self.take_slots(chosen, now);
        self.occupy(chosen);
        let Some(member) = self.members.get_mut(chosen) else {
            return Pick::Never { auth: false };
        };
        if member.health.standing(now) == Standing::Due {
            member.health.begin_probe(now);
        }
        member.picks += 1;
        Pick::Use(Route { fresh: self.fresh_exit && retry, ..member.route.clone() })
    }
}

impl fmt::Debug for ProxyPool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ProxyPool")
            .field("rotation", &self.wheel.rotation())
            .field("members", &self.stats())
            .finish_non_exhaustive()
    }
}

fn checked_rate(what: &str, given: Option<f64>) -> Result<Option<RateLimit>, Error> {
    let Some(per_second) = given else { return Ok(None) };
    RateLimit::new(per_second, 1).map(Some).ok_or_else(|| {
        Error::config(format!(
            "{what} is {per_second} a second, which is no rate; give a number above 0, or leave it out"
        ))
    })
}

/// Tells hosts apart without keeping them.
fn hash(host: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    host.hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests;
