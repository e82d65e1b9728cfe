//! The other side: servers and proxies that misbehave, and that count who comes.
//!
//! What is counted here is what the servers of a real run would see. It shares no code with the
//! limits: begins of attempts and stretches of time for rates, attempts that are open for what is
//! allowed at once.

use super::plan::{Pace, Plan, credential_of};
use crate::error::{Error, ErrorKind, Fault, Phase};
use crate::proxy::{Identity, Route};
use crate::rng::Rng;
use crate::time::{Clock, secs};
use crate::transport::{AttemptLimits, Incoming, Outgoing, Play, Transport};
use crate::workers::lockstep::worker_number;
use std::collections::{HashMap, HashSet};
use std::fmt;
use std::panic::resume_unwind;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use url::Url;

/// What is said of an attempt that an abort has cut.
pub(super) const CUT: &str = "the connection was cut";

/// Where the address of a client is echoed, for samples.
pub(super) const ECHO: &str = "http://echo.test/";

/// All servers and proxies of one life of a run.
pub(super) struct World {
    plan: Plan,
    calm: bool,
    begin: Instant,
    state: Mutex<State>,
}

/// What the world has seen.
#[derive(Default)]
pub(super) struct State {
    rng: Option<Rng>,
    /// By worker: its attempt that is under way.
    open: HashMap<usize, Open>,
    /// When attempts began, by what they count for.
    begun: HashMap<Counted, Vec<Instant>>,
    /// Until when a host that answered 429 wants no step from an identity.
    quiet: HashMap<(String, Identity), Instant>,
    /// URLs with a record, which must not be asked for again.
    pub(super) done: HashSet<String>,
    /// The last answer to a URL, where it redirected on its host and set a cookie: where to, and
    /// to whom.
    baited: HashMap<String, (String, Identity)>,
    pub(super) attempts: Vec<(Duration, String, Option<usize>)>,
    /// What should not have happened.
    pub(super) wrong: Vec<String>,
}

/// An attempt that is under way, or the step that it belongs to.
#[derive(Debug, Clone)]
struct Open {
    host: String,
    proxy: Option<usize>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Counted {
    Run,
    Host(String),
    Proxy(usize),
    Credential(usize),
}

impl World {
    pub(super) fn new(plan: &Plan, life: usize, begin: Instant, done: HashSet<String>) -> Self {
        let rng = Some(Rng::stream(plan.seed, 100 + life as u64));
        let state = Mutex::new(State { rng, done, ..State::default() });
        Self { plan: plan.clone(), calm: plan.is_calm(life), begin, state }
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A worker has ended its step.
    pub(super) fn step_ended(&self, worker: usize) {
        self.lock().open.remove(&worker);
    }

    /// Counts an attempt, and says what it meets; `None` is a panic.
    fn begins(
        &self,
        outgoing: &Outgoing<'_>,
        route: &Route,
        limits: &AttemptLimits,
        now: Instant,
    ) -> Option<Play> {
        let mut state = self.lock();
        let host = outgoing.url.host_str().unwrap_or_default().to_owned();
        let open = Open { host: host.clone(), proxy: route.member };
        let begins_step = state.open.insert(worker_number(), open).is_none();
        if begins_step
            && state.quiet.get(&(host.clone(), route.identity)).is_some_and(|until| now < *until)
        {
            state.wrong.push(format!("{host} is asked before its Retry-After is over"));
        }
        self.check_parallel(&mut state, &host, route.member);
        self.check_rates(&mut state, &host, route.member, now);
        if limits.deadline.is_some() != self.plan.timeouts.deadline().is_some()
            && host != "echo.test"
        {
            state.wrong.push(format!("{} has no deadline", outgoing.url));
        }
        if limits.deadline.is_some_and(|deadline| now >= deadline) {
            state.wrong.push(format!("{} is asked for after its deadline", outgoing.url));
        }
        let name = name_of(outgoing.url);
        if state.done.contains(&name) {
            state.wrong.push(format!("{name} has a record, and is asked for again"));
        }
        state.attempts.push((now - self.begin, outgoing.url.to_string(), route.member));
        let bait = state.baited.get(&name).filter(|(to, _)| to == outgoing.url.as_str());
        match bait.map(|(_, identity)| *identity) {
            Some(identity) => {
                if identity == route.identity && outgoing.headers.get("cookie").is_none() {
                    state.wrong.push(format!("{} comes without its cookie", outgoing.url));
                }
            }
            None => drop(state.baited.remove(&name)),
        }
        let Some(mut rng) = state.rng.take() else { return Some(Play::status(500)) };
        let act = self.act(&mut state, &mut rng, outgoing, route, now);
        state.rng = Some(rng);
        act
    }

    fn check_parallel(&self, state: &mut State, host: &str, member: Option<usize>) {
        let allowed = &self.plan.allowed;
        let open: Vec<&Open> = state.open.values().collect();
        let to_host = open.iter().filter(|open| open.host == host).count();
        let by_proxy = open.iter().filter(|open| open.proxy == member).count();
        let credential = member.map(credential_of);
        let by_credential =
            open.iter().filter(|open| open.proxy.map(credential_of) == credential).count();
        let mut counts = vec![
            ("in all", Some(self.plan.workers), open.len()),
            ("to the host", allowed.per_host, to_host),
        ];
        if member.is_some() {
            counts.push(("by the proxy", allowed.per_proxy, by_proxy));
            counts.push(("by the credential", allowed.per_credential, by_credential));
        }
        for (what, limit, there) in counts {
            if limit.is_some_and(|limit| there > limit) {
                let text = format!("{there} at once {what} ({host}, {member:?}), above {limit:?}");
                state.wrong.push(text);
            }
        }
    }

    fn check_rates(&self, state: &mut State, host: &str, member: Option<usize>, now: Instant) {
        let allowed = &self.plan.allowed;
        let even = |per_second| Pace { per_second, burst: 1 };
        let mut paces =
            vec![(Counted::Run, allowed.rate), (Counted::Host(host.to_owned()), allowed.host_rate)];
        if let Some(member) = member {
            paces.push((Counted::Proxy(member), allowed.proxy_rate.map(even)));
            let credential = Counted::Credential(credential_of(member));
            paces.push((credential, allowed.credential_rate.map(even)));
        }
        for (what, pace) in paces {
            let Some(Pace { per_second, burst }) = pace else { continue };
            let times = state.begun.entry(what.clone()).or_default();
            times.push(now);
            let too_many = times.iter().rev().zip(1..).any(|(at, count)| {
                let allowed = (now - *at).as_secs_f64() * per_second + f64::from(burst);
                f64::from(count) > allowed + 1e-6
            });
            if too_many {
                let begin = self.begin;
                let tail: Vec<_> = times.iter().rev().take(4).map(|at| *at - begin).collect();
                state.wrong.push(format!("too many for {what:?} at {pace:?}: {tail:?}"));
            }
        }
    }

    fn act(
        &self,
        state: &mut State,
        rng: &mut Rng,
        outgoing: &Outgoing<'_>,
        route: &Route,
        now: Instant,
    ) -> Option<Play> {
        let shares = self.plan.shares;
        let latency = secs(rng.uniform(0.0, 1.5) * [0.1, 1.0, 3.0][rng.below(3)]);
        if !self.calm && rng.unit() < shares.panic {
            return None;
        }
        if let Some(member) = route.member
            && let Some(play) = self.by_proxy(rng, member, now)
        {
            return Some(play.after(latency));
        }
        if outgoing.url.host_str() == Some("echo.test") {
            return Some(Play::status(200).body(format!("192.0.2.{}", 1 + rng.below(9))));
        }
        if self.plan.digest && outgoing.headers.get("authorization").is_none() {
            let challenge = r#"Digest realm="r", nonce="n", qop="auth""#;
            let play = Play::status(401).header("WWW-Authenticate", challenge);
            return Some(play.after(latency));
        }
        let trouble = if self.calm { shares.trouble.min(0.3) } else { shares.trouble };
        let play = if rng.unit() < trouble {
            trouble_of(rng)
        } else if rng.unit() < shares.redirect {
            self.redirect(state, rng, outgoing.url, route)
        } else {
            Play::status(200).body(["a page", "are you a robot?"][usize::from(rng.below(9) == 0)])
        };
        let play = if rng.below(4) == 0 { play.body_after(latency) } else { play };
        let play = if rng.below(4) == 0 { play.connecting(latency / 2) } else { play };
        Some(play.after(latency))
    }

    /// Counts what was answered.
    fn answered(&self, answer: &Incoming, host: &str, identity: Identity, now: Instant) {
        let wait = answer.headers.get("retry-after").filter(|_| answer.status == 429);
        let wait = wait.and_then(|wait| wait.to_str().ok()?.parse().ok()).map(Duration::from_secs);
        if let Some(wait) = wait.filter(|_| self.plan.retry.respects_retry_after()) {
            let mut state = self.lock();
            let until = state.quiet.entry((host.to_owned(), identity)).or_insert(now);
            *until = (*until).max(now + wait);
        }
    }

    /// What a proxy does of its own.
    fn by_proxy(&self, rng: &mut Rng, member: usize, now: Instant) -> Option<Play> {
        let since = now - self.begin;
        let is_refused = |from: Duration| credential_of(member) == 0 && since >= from;
        if !self.calm && self.plan.refused_credential.is_some_and(is_refused) {
            return Some(Play::proxy_refusal(407));
        }
        // Dead for a while every few minutes, each at another time.
        let phase = (since.as_secs() / 30 + member as u64) % 7;
        if self.plan.shares.bad_proxy > 0.3 && phase == 2 {
            return Some(Play::dead_proxy());
        }
        (rng.unit() < self.plan.shares.bad_proxy / 2.0).then(|| match rng.below(5) {
            0 => Play::proxy_refusal(502),
            1 => Play::proxy_refusal(503).header("Retry-After", "2"),
            2 => Play::proxy_refusal(429),
            3 => Play::proxy_refusal(403),
            _ => Play::dead_proxy(),
        })
    }

    fn redirect(&self, state: &mut State, rng: &mut Rng, url: &Url, route: &Route) -> Play {
        let host = match rng.below(2) {
            0 => url.host_str().unwrap_or_default().to_owned(),
            _ => format!("h{}.test", rng.below(self.plan.hosts)),
        };
        let name = name_of(url);
        let depth = url.path().matches("hop").count() + 1;
        let to = format!("http://{host}/{name}/{}", "hop".repeat(depth));
        let status = [301, 302, 307][rng.below(3)];
        let play = Play::status(status).header("Location", &to);
        if rng.below(2) == 0 {
            return play;
        }
        if url.host_str() == Some(&host) {
            state.baited.insert(name, (to, route.identity));
        }
        play.header("Set-Cookie", "seen=1; Path=/")
    }
}

/// The number of a URL, which all hops of its chain have too.
pub(super) fn name_of(url: &Url) -> String {
    url.path().trim_start_matches('/').split('/').next().unwrap_or_default().to_owned()
}

fn trouble_of(rng: &mut Rng) -> Play {
    let failure = |kind, phase| Play::error(kind, phase, Fault::Target);
    match rng.below(17) {
        0 => Play::black_hole(),
        1 => Play::silence(),
        2 => failure(ErrorKind::Connection, Phase::Connect),
        3 => failure(ErrorKind::Connection, Phase::Headers),
        4 => failure(ErrorKind::NameNotFound, Phase::Dns),
        5 => Play::stale(),
        6 => Play::stale_unsent(),
        7 => Play::status(200).body("half a pa").truncated(),
        8 => Play::status(403),
        9 => Play::status(404),
        10 => Play::status(500),
        11 => Play::status(503),
        12 => Play::status(408).reused(),
        13 | 14 => {
            let wait = (1 + rng.below(90)).to_string();
            Play::status(429).header("Retry-After", &wait)
        }
        _ => {
            let wait = (1 + rng.below(20)).to_string();
            Play::status(503).header("Retry-After", &wait)
        }
    }
}

/// What a worker sends through.
pub(super) struct Origin {
    pub(super) world: Arc<World>,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) cut: Arc<AtomicBool>,
}

impl Transport for Origin {
    fn attempt(
        &mut self,
        outgoing: Outgoing<'_>,
        route: &Route,
        limits: &AttemptLimits,
    ) -> Result<Incoming, Error> {
        let act = self.world.begins(&outgoing, route, limits, self.clock.now());
        let result = match act {
            Some(play) => play.perform(&self.clock, outgoing.method, limits),
            // Not by `panic!`, which would tell of each of them.
            None => resume_unwind(Box::new("a scripted panic")),
        };
        let cut =
            |error: Error| error.with_url(outgoing.url.as_str()).with_proxy(route.shown.as_deref());
        if self.cut.load(Ordering::Relaxed) {
            let text = CUT;
            let error = Error::new(ErrorKind::Connection, Phase::Headers, Fault::Target, text);
            return Err(cut(error));
        }
        if let Ok(answer) = &result {
            let host = outgoing.url.host_str().unwrap_or_default();
            self.world.answered(answer, host, route.identity, self.clock.now());
        }
        result.map_err(cut)
    }
}

impl fmt::Debug for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Origin")
    }
}
