//! One attempt: the way, the transport, the verdict, redirects and the body.

use super::Step;
use super::answer::Next;
use super::state::Running;
use crate::error::{Attempt, AttemptError, Error, ErrorKind, Phase};
use crate::message::{OpenBody, Request};
use crate::proxy::{Route, Verdict};
use crate::session::live::{Core, Session};
use crate::session::numbers::Held;
use crate::session::router::{Ask, Lease, Way};
use crate::transport::{AttemptLimits, Incoming, Outgoing, OutgoingBody};
use http::Method;
use std::time::{Duration, Instant};

impl Running {
    /// One attempt and the redirects that follow it.
    pub(super) fn step(
        &mut self,
        session: &Session,
        core: &mut Core,
        request: &Request,
        item: u64,
    ) -> Step {
        let mut resend = false;
        let mut lost = None;
        // A redirect stays on the way it came: the hop belongs to the same visit.
        let mut held: Option<(Route, Lease)> = None;
        loop {
            let now = core.now();
            if self.deadline.is_some_and(|deadline| now >= deadline) {
                return self.too_late();
            }
            let (mut route, lease) = match held.take() {
                Some(way) => way,
                None => match self.way(session, core, request, item, now) {
                    Ok(way) => way,
                    Err(step) => return step,
                },
            };
            if let Some(member) = route.member
                && !self.tried.contains(&member)
            {
                self.tried.push(member);
            }
            route.fresh |= resend;
            self.exit = session.recipe().exit_of(route.identity);
            let began = core.now();
            let outcome = self.attempt(session, core, request, &route, lost);
            let spent = core.now().saturating_duration_since(began);
            // The copy before this one, if there was one, counts to the same attempt.
            let before = lost.take();
            match outcome {
                // RFC 9110, 15.5.9: the server closed what it took for idle, while the request was on
                // its way. The answer is to a silence and not to the request.
                Ok(incoming)
                    if incoming.status == 408
                        && incoming.connection.reused
                        && !resend
                        && self.may_resend(Lost { sent: true, spent }) =>
                {
                    let facts = Facts { status: Some(408), error: None, reused: true };
                    self.record(&route, began, core.now(), &facts, resend);
                    self.note("the kept connection had timed out; sent again on a fresh one");
                    (resend, lost) = (true, Some(Lost { sent: true, spent }));
                    held = Some((route, lease));
                }
                Ok(incoming) => {
                    match self.answered(session, core, request, &route, incoming, began, resend) {
                        Next::Hop { same_way: true } => {
                            resend = false;
                            route.fresh = false;
                            held = Some((route, lease));
                        }
                        Next::Hop { same_way: false } => {
                            resend = false;
                            lease.report(Verdict::Good, &mut core.rng);
                        }
                        Next::Step(step, verdict) => {
                            lease.report(verdict, &mut core.rng);
                            return step;
                        }
                    }
                }
                Err(error) => {
                    let facts = Facts::of(&error);
                    self.record(&route, began, core.now(), &facts, resend);
                    let copy = Lost { sent: !error.is_unsent(), spent };
                    if error.is_stale() && !resend && self.may_resend(copy) {
                        self.note("the kept connection had died; sent again on a fresh one");
                        (resend, lost) = (true, Some(copy));
                        held = Some((route, lease));
                        continue;
                    }
                    let host = self.current.url.host_str().unwrap_or_default();
                    session.recipe().restraint.note_error(host, &error, now);
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
                        resend = false;
                        continue;
                    }
                    let arrived = before.is_some_and(|copy| copy.sent);
                    return self.failed(session, core, error, arrived);
                }
            }
        }
    }

    /// Asks the router.
    fn way(
        &mut self,
        session: &Session,
        core: &mut Core,
        request: &Request,
        item: u64,
        now: Instant,
    ) -> Result<(Route, Lease), Step> {
        let ask = Ask {
            url: &self.current.url,
            overrides: &request.overrides,
            tried: &self.tried,
            retry: self.retrying,
            item,
            now,
        };
        let mut held = Held { worker: &mut core.number, url: &mut self.number };
        match session.recipe().route(&ask, &mut held, &mut core.rng) {
            Way::Go(route, lease) => Ok((route, lease)),
            Way::NotBefore(until, reason) => {
                if self.deadline.is_some_and(|deadline| until >= deadline) {
                    return Err(match reason {
                        crate::error::WaitReason::NoProxy => self.end(Error::new(
                            ErrorKind::NoProxyAlive,
                            Phase::Prepare,
                            crate::error::Fault::Proxy,
                            "no proxy of the pool is usable before the deadline",
                        )),
                        _ => self.too_late(),
                    });
                }
                Err(Step::Wait { until, reason })
            }
            Way::None(error) => Err(self.end(error)),
        }
    }

    /// Sends the request over the route; `lost` is a copy that was lost in the same attempt.
    fn attempt(
        &mut self,
        session: &Session,
        core: &mut Core,
        request: &Request,
        route: &Route,
        lost: Option<Lost>,
    ) -> Result<Incoming, Error> {
        let wall = core.wall();
        let (jar, gone) = core.jars.of(route.identity);
        let cookies = if self.current.headers.get("cookie").is_some() {
            None
        } else {
            jar.header(&self.current.url, wall)
        };
        if let Some(gone) = gone {
            core.forget(gone);
        }
        let with_cookies;
        let headers = match cookies {
            None => &self.current.headers,
            Some(value) => {
                let mut headers = self.current.headers.clone();
                headers.append("Cookie", value)?;
                with_cookies = headers;
                &with_cookies
            }
        };
        let mut limits = AttemptLimits {
            connect: self.timeouts.connect(),
            read: self.timeouts.read(),
            deadline: self.deadline,
        };
        if let Some(Lost { sent, spent }) = lost {
            let clock = if sent { &mut limits.read } else { &mut limits.connect };
            *clock = clock.map(|limit| limit.saturating_sub(spent));
        }
        let mut opened = self.current.body.open()?;
        let mut outgoing = Outgoing::new(&self.current.method, &self.current.url, headers);
        outgoing.body = match &mut opened {
            OpenBody::Bytes(bytes) => OutgoingBody::Bytes(bytes),
            OpenBody::Reader(reader, length) => OutgoingBody::Reader(reader.as_mut(), *length),
            OpenBody::Empty => OutgoingBody::Empty,
        };
        core.transport(session, request.overrides.verify.as_ref())?
            .attempt(outgoing, route, &limits)
    }

    /// Whether a request may be sent again although the first copy was lost with its connection.
    ///
    /// Resending is free of charge, so it must not be free of limits: what it took to lose the
    /// first copy comes off the clock of the second, and both together take no longer than one
    /// attempt may.
    fn may_resend(&self, lost: Lost) -> bool {
        let clock = if lost.sent { self.timeouts.read() } else { self.timeouts.connect() };
        if clock.is_some_and(|limit| lost.spent >= limit) {
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

    /// Adds an attempt to the history.
    pub(super) fn record(
        &mut self,
        route: &Route,
        began: Instant,
        now: Instant,
        facts: &Facts,
        resend: bool,
    ) {
        self.attempts.push(Attempt {
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
        });
    }
}

/// A copy of the request that was lost with a kept connection.
#[derive(Debug, Clone, Copy)]
struct Lost {
    /// Whether some of it may have arrived.
    sent: bool,
    spent: Duration,
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
