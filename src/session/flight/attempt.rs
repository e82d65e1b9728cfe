//! One attempt: the way, the transport, the verdict, redirects and the body.

use super::Step;
use super::answer::{DRAIN_TIME, Next};
use super::pause::Interrupted;
use super::state::Running;
use crate::error::{Attempt, AttemptError, Error, ErrorKind, Phase, WaitReason};
use crate::message::{Hooks, NextAttempt, OpenBody, Request, Timings};
use crate::policy::Busy;
use crate::proxy::{Route, Verdict};
use crate::rng::Rng;
use crate::session::limits::{Slots, Visits};
use crate::session::live::{Core, Session};
use crate::session::numbers::Held;
use crate::session::router::{Ask, Lease, Way};
use crate::transport::{AttemptLimits, Incoming, Outgoing, OutgoingBody};
use http::Method;
use std::fmt;
use std::time::{Duration, Instant};

impl Running {
    /// One attempt and the redirects that follow it.
    pub(super) fn step(
        &mut self,
        session: &Session,
        core: &mut Core,
        request: &Request,
        item: u64,
        handed_out: bool,
    ) -> Step {
        let recipe = session.recipe();
        if recipe.limits.is_some() {
            let home = self.current.url.host_str().filter(|_| handed_out);
            self.visits = Visits::from(home);
        }
        if std::mem::take(&mut self.put_off) {
            self.begin(core.now());
        }
        let mut course = self.resume();
        // A redirect stays on the way it came: the hop belongs to the same visit.
        let mut held: Option<(Route, Lease)> = None;
        let mut has_slots = handed_out;
        loop {
            let now = core.now();
            if self.deadline.is_some_and(|deadline| now >= deadline) {
                return self.too_late();
            }
            let slots = if std::mem::take(&mut has_slots) {
                Slots::default()
            } else {
                let host = self.current.url.host_str();
                match recipe.take_slots(host, &mut self.visits, now) {
                    Ok(slots) => slots,
                    Err(busy) => {
                        self.put_off_unbegun(handed_out);
                        // The lease ends here, and without a verdict: the visit is not over.
                        course.way = held.take().map(|(route, _)| route).or(course.way);
                        let until = free_again(busy, handed_out, now, &mut core.rng);
                        return self.interrupt(core, course, until, WaitReason::Limit, now);
                    }
                }
            };
            let way = match held.take() {
                Some((route, lease)) => match lease.charge(now) {
                    Ok(()) => Way::Go(route, lease),
                    Err(until) => {
                        course.way = Some(route);
                        Way::NotBefore(until, WaitReason::Limit)
                    }
                },
                None => self.ask_way(session, core, request, item, course.way.as_ref(), now),
            };
            let (mut route, lease) = match way {
                Way::Go(route, lease) => (route, lease),
                other => {
                    recipe.give_slots_back(&slots);
                    if matches!(other, Way::NotBefore(_, WaitReason::Limit)) {
                        self.put_off_unbegun(handed_out);
                    }
                    return self.no_way(session, core, course, other, now);
                }
            };
            course.way = None;
            self.lane_place = None;
            self.unpack(core, &route, &mut course);
            course.identity = Some(route.identity);
            if let Some(member) = route.member
                && !self.tried.contains(&member)
            {
                self.tried.push(member);
            }
            route.fresh |= course.resend;
            self.exit = session.recipe().exit_of(route.identity);
            let began = core.now();
            let outcome = match self.dress(core, &route) {
                Ok(()) => {
                    if let Err(error) = self.show(session, request, &route) {
                        return self.end(error);
                    }
                    self.attempt(session, core, request, &route, course.lost)
                }
                Err(error) => Err(error),
            };
            let spent = core.now().saturating_duration_since(began);
            self.exchange = outcome.as_ref().ok().and_then(|incoming| incoming.exchange.clone());
            // The copy before this one, if there was one, counts to the same attempt.
            let before = course.lost.take();
            match outcome {
                // RFC 9110, 15.5.9: the server closed what it took for idle, while the request was on
                // its way. The answer is to a silence and not to the request.
                Ok(incoming)
                    if incoming.status == 408
                        && incoming.connection.reused
                        && !course.resend
                        && self.may_resend(Lost::of(true, spent).after(before)) =>
                {
                    let facts = Facts { status: Some(408), error: None, reused: true };
                    self.record(&route, began, core.now(), &facts, course.resend);
                    self.note("the kept connection had timed out; sent again on a fresh one");
                    course.resend = true;
                    course.lost = Some(Lost::of(true, spent).after(before));
                    held = Some((route, lease));
                }
                Ok(incoming) => {
                    let timings = incoming.timings;
                    let copy = Lost::answered(&timings, spent).after(before);
                    let resend = std::mem::take(&mut course.resend);
                    match self
                        .answered(session, core, request, &route, incoming, began, resend, copy)
                    {
                        Next::Hop { same_way: true } => {
                            route.fresh = false;
                            held = Some((route, lease));
                        }
                        Next::Again => {
                            route.fresh = false;
                            // Draining it took time as well.
                            let spent = core.now().saturating_duration_since(began);
                            course.lost = Some(Lost::answered(&timings, spent).after(before));
                            held = Some((route, lease));
                        }
                        Next::Hop { same_way: false } => {
                            lease.report(Verdict::Good, &mut core.rng);
                        }
                        Next::Step(step, verdict) => {
                            lease.report(verdict, &mut core.rng);
                            return self.kept_for_later(step);
                        }
                    }
                }
                Err(error) => {
                    let facts = Facts::of(&error);
                    let resend = std::mem::take(&mut course.resend);
                    self.record(&route, began, core.now(), &facts, resend);
                    let copy = Lost::of(!error.is_unsent(), spent).after(before);
                    if error.is_stale() && !resend && self.may_resend(copy) {
                        self.note("the kept connection had died; sent again on a fresh one");
                        (course.resend, course.lost) = (true, Some(copy));
                        held = Some((route, lease));
                        continue;
                    }
                    let host = self.current.url.host_str().unwrap_or_default();
                    session.recipe().restraint.note_error(host, &error, now);
                    lease.note_refusal(&error);
                    lease.report(verdict_on_proxy(&error), &mut core.rng);
                    if error.kind() == ErrorKind::ProxyAuth && session.other_credentials(&route) {
                        if !self.current.body.can_be_sent() {
                            self.note("the body cannot be sent again");
                            return self.end(error);
                        }
                        // The credential is retired for all; this URL goes on through another, and
                        // as each can be retired once only, that is bounded.
                        self.note("the credentials of this proxy were refused; on through another");
                        self.retrying = true;
                        continue;
                    }
                    let arrived = before.is_some_and(Lost::is_read);
                    let step = self.failed(session, core, error, arrived);
                    return self.kept_for_later(step);
                }
            }
        }
    }

    /// Asks the router, for the way of an interrupted step first.
    fn ask_way(
        &mut self,
        session: &Session,
        core: &mut Core,
        request: &Request,
        item: u64,
        before: Option<&Route>,
        now: Instant,
    ) -> Way {
        let ask = Ask {
            url: &self.current.url,
            overrides: &request.overrides,
            tried: &self.tried,
            retry: self.retrying,
            item,
            now,
        };
        let again = before.and_then(|route| session.recipe().rejoin(route, &ask, &mut core.rng));
        let mut held = Held { worker: &mut core.number, url: &mut self.number };
        again.unwrap_or_else(|| session.recipe().route(&ask, &mut held, &mut core.rng))
    }

    /// What becomes of a step for whose next attempt there is no way now.
    fn no_way(
        &mut self,
        session: &Session,
        core: &mut Core,
        course: Interrupted,
        way: Way,
        now: Instant,
    ) -> Step {
        let (until, reason) = match way {
            Way::NotBefore(until, reason) => (until, reason),
            Way::None(error) => return self.end(error),
            Way::Go(..) => (now, WaitReason::Limit),
        };
        if self.deadline.is_some_and(|deadline| until >= deadline) {
            return match reason {
                WaitReason::NoProxy => self.end(Error::new(
                    ErrorKind::NoProxyAlive,
                    Phase::Prepare,
                    crate::error::Fault::Proxy,
                    "no proxy of the pool is usable before the deadline",
                )),
                _ => self.too_late(),
            };
        }
        let (until, reason) = match reason {
            WaitReason::Cooldown if self.lanes > 0 => {
                (self.turn_after(session, until, now), WaitReason::Refused)
            }
            reason => (until, reason),
        };
        if course.is_empty() {
            return Step::Wait { until, reason };
        }
        self.interrupt(core, course, until, reason, now)
    }

    /// Makes what the next attempt sends: the prepared request with cookies and credentials.
    fn dress(&mut self, core: &mut Core, route: &Route) -> Result<(), Error> {
        self.sent = None;
        let wall = core.wall();
        let (jar, gone) = core.jars.of(route.identity);
        let cookies = if self.current.headers.get("cookie").is_some() {
            None
        } else {
            self.current.cookies.over(jar.header(&self.current.url, wall))
        };
        if let Some(gone) = gone {
            core.forget(gone);
        }
        self.sent = self.with_credentials(core, route)?;
        if let Some(value) = cookies {
            let sent = self.sent.get_or_insert_with(|| self.current.clone());
            sent.headers.append("Cookie", value)?;
        }
        Ok(())
    }

    /// Shows the hooks what the next attempt sends.
    fn show(&mut self, session: &Session, request: &Request, route: &Route) -> Result<(), Error> {
        let (ours, its) = (&session.settings().hooks, &request.overrides.hooks);
        if !Hooks::see_attempts(ours, its) {
            return Ok(());
        }
        let sent = self.sent.get_or_insert_with(|| self.current.clone());
        let mut attempt = NextAttempt {
            method: &self.current.method,
            url: &self.current.url,
            headers: &mut sent.headers,
            body: &mut sent.body,
            number: self.attempts.len() + 1,
            proxy: route.shown.as_deref(),
        };
        Hooks::on_attempt(ours, its, &mut attempt)
    }

    /// Sends what was [dressed](Self::dress) over the route; `lost` is a copy that was lost in the
    /// same attempt.
    fn attempt(
        &mut self,
        session: &Session,
        core: &mut Core,
        request: &Request,
        route: &Route,
        lost: Option<Lost>,
    ) -> Result<Incoming, Error> {
        let current = self.sent.as_ref().unwrap_or(&self.current);
        let mut limits = AttemptLimits {
            connect: self.timeouts.connect(),
            read: self.timeouts.read(),
            deadline: self.deadline,
        };
        if let Some(Lost { connecting, waiting, .. }) = lost {
            limits.connect = limits.connect.map(|limit| limit.saturating_sub(connecting));
            limits.read = limits.read.map(|limit| limit.saturating_sub(waiting));
        }
        let mut opened = current.body.open()?;
        let mut outgoing = Outgoing::new(&current.method, &current.url, &current.headers);
        outgoing.body = match &mut opened {
            OpenBody::Bytes(bytes) => OutgoingBody::Bytes(bytes),
            OpenBody::Reader(reader, length) => OutgoingBody::Reader(reader.as_mut(), *length),
            OpenBody::Empty => OutgoingBody::Empty,
        };
        core.transport(session, &current.url, &request.overrides)?.attempt(outgoing, route, &limits)
    }

    /// Whether a request may be sent again although the first copy was lost with its connection.
    ///
    /// DIFFERENCE(free-resend): urllib3 charges it to the policy, and a session without retries
    /// fails.
    ///
    /// Resending is free of charge, so it must not be free of limits: what it took to lose the
    /// first copy comes off the clock of the second, and both together take no longer than one
    /// attempt may.
    fn may_resend(&self, lost: Lost) -> bool {
        if !self.has_time_after(lost) {
            return false;
        }
        // RFC 9110 9.2.2: the idempotent methods.
        let method = &self.current.method;
        let idempotent = [
            Method::GET,
            Method::HEAD,
            Method::OPTIONS,
            Method::TRACE,
            Method::PUT,
            Method::DELETE,
        ];
        (!lost.sent || idempotent.contains(method)) && self.current.body.is_replayable()
    }

    /// Whether the clocks of the attempt leave something for a further copy.
    pub(super) fn has_time_after(&self, lost: Lost) -> bool {
        let is_left =
            |limit: Option<Duration>, spent| limit.is_none_or(|limit: Duration| spent < limit);
        is_left(self.timeouts.connect(), lost.connecting)
            && is_left(self.timeouts.read(), lost.waiting)
    }

    /// What a body may be drained for, so that a further copy still has time.
    pub(super) fn drain_time_after(&self, lost: Lost) -> Duration {
        let left = self.timeouts.read().map(|limit| limit.saturating_sub(lost.waiting));
        left.map_or(DRAIN_TIME, |left| DRAIN_TIME.min(left / 2))
    }

    /// Adds an attempt to the history.
    pub(super) fn record(
        &mut self,
        route: &Route,
        began: Instant,
        now: Instant,
        facts: &Facts,
        resend: bool,
    ) {
        let attempt = Attempt {
            method: self.current.method.clone(),
            url: self.shown_url.clone(),
            proxy: route.shown.clone(),
            exit: self.exit.clone(),
            status: facts.status,
            error: facts.error.clone(),
            elapsed: now.saturating_duration_since(began),
            wait: None,
            reused: facts.reused,
            resend,
            note: None,
            refusal: None,
            exchange: self.exchange.clone(),
        };
        log::debug!(target: "longhaul::attempt", "{}", Told(&attempt));
        self.attempts.push(attempt);
    }
}

/// An attempt on one line, as in the history: without credentials.
struct Told<'a>(&'a Attempt);

impl fmt::Display for Told<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Attempt { method, url, proxy, status, error, elapsed, reused, .. } = self.0;
        write!(f, "{method} {url}")?;
        if let Some(proxy) = proxy {
            write!(f, " through {proxy}")?;
        }
        match (error, status) {
            (Some(error), _) => write!(f, ": {} ({}): {}", error.kind, error.phase, error.message)?,
            (None, Some(status)) => write!(f, ": {status}")?,
            (None, None) => f.write_str(": no answer")?,
        }
        let again = if *reused { ", kept-alive connection" } else { "" };
        write!(f, " in {:.1} ms{again}", elapsed.as_secs_f64() * 1000.0)
    }
}

/// When to ask again where a limit is hit.
fn free_again(busy: Busy, handed_out: bool, now: Instant, rng: &mut Rng) -> Instant {
    /// Visits end unannounced.
    const SOON: (Duration, Duration) = (Duration::from_millis(50), Duration::from_millis(100));
    match busy {
        Busy::Run(until) | Busy::HostRate(until) => until,
        // Who hands steps out keeps it until a visit ends.
        Busy::Host if handed_out => now,
        Busy::Host => now.checked_add(rng.between(SOON.0, SOON.1)).unwrap_or(now),
    }
}

/// Copies of the request that this attempt has sent in vain: lost with a kept connection, or
/// answered by a challenge.
#[derive(Debug, Clone, Copy)]
pub(super) struct Lost {
    /// Whether one may have been acted on.
    sent: bool,
    /// What they took of the clock for connecting.
    connecting: Duration,
    /// What they took of the clock for reading.
    waiting: Duration,
}

impl Lost {
    /// A copy that was lost; what it took comes off the clock of the phase that it came to.
    fn of(sent: bool, spent: Duration) -> Self {
        let (connecting, waiting) =
            if sent { (Duration::ZERO, spent) } else { (spent, Duration::ZERO) };
        Self { sent, connecting, waiting }
    }

    /// A copy that a response turned down, so that it was not acted on.
    fn answered(timings: &Timings, spent: Duration) -> Self {
        let phases = [timings.dns, timings.connect, timings.proxy, timings.tls];
        let connecting: Duration = phases.into_iter().flatten().sum();
        Self { sent: false, connecting, waiting: spent.saturating_sub(connecting) }
    }

    /// Whether they came further than connecting, and so are no matter of that budget.
    fn is_read(self) -> bool {
        self.sent || !self.waiting.is_zero()
    }

    fn after(self, before: Option<Self>) -> Self {
        let Some(before) = before else { return self };
        Self {
            sent: self.sent || before.sent,
            connecting: self.connecting.saturating_add(before.connecting),
            waiting: self.waiting.saturating_add(before.waiting),
        }
    }
}

/// What an attempt leaves in the history.
pub(super) struct Facts {
    pub(super) status: Option<u16>,
    pub(super) error: Option<AttemptError>,
    pub(super) reused: bool,
}

impl Facts {
    fn of(error: &Error) -> Self {
        Self { status: None, error: Some(AttemptError::from(error)), reused: error.is_reused() }
    }
}

/// What the failure of an attempt says of the proxy it went through.
pub(super) fn verdict_on_proxy(error: &Error) -> Verdict {
    if error.kind() == ErrorKind::ProxyAuth {
        return Verdict::Auth;
    }
    if !error.is_proxy() {
        // The target failed, or a way on which nobody can tell who did.
        return Verdict::Unknown;
    }
    match error.proxy_reply().map(|reply| (reply.socks, reply.code)) {
        Some((false, 429 | 503)) => Verdict::Cool(error.retry_after()),
        Some((false, 403)) => Verdict::Unknown,
        Some((false, 500..=599)) => Verdict::Doubtful,
        _ => Verdict::Bad,
    }
}
