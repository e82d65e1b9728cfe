//! One attempt: the way, the transport, the verdict, redirects and the body.

use super::Step;
use super::state::{Running, Verdict as WaitVerdict, exhausted};
use crate::error::{Attempt, AttemptError, Error, ErrorKind, Phase};
use crate::message::{
    ConnectionFacts, DecodeLimits, OpenBody, RedirectRules, Request, Response, ResponseBody,
    ResponseParts, Timings, decode, follow,
};
use crate::policy::{Decision, Exhausted, Outcome, RetryAfter};
use crate::proxy::{Route, Verdict};
use crate::session::builder::{Core, Session};
use crate::session::numbers::Held;
use crate::session::router::{Ask, Lease, Way};
use crate::transport::{AttemptLimits, Incoming, Outgoing, OutgoingBody};
use bytes::Bytes;
use http::{HeaderMap, Method, header};
use std::io::Read;
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// What is drained of a response that is not handed out, so that its connection can be kept.
const DRAIN_BYTES: u64 = 64 * 1024;
/// How long draining may take.
const DRAIN_TIME: Duration = Duration::from_millis(100);

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

    /// What a response head leads to.
    #[allow(clippy::too_many_arguments, reason = "the facts of one attempt, used once")]
    fn answered(
        &mut self,
        session: &Session,
        core: &mut Core,
        request: &Request,
        route: &Route,
        incoming: Incoming,
        began: Instant,
        resend: bool,
    ) -> Next {
        let settings = session.settings();
        let (now, wall) = (core.now(), core.wall());
        core.jars.of(route.identity).0.store(&self.current.url, &incoming.headers, wall);
        let status = incoming.status;
        let facts = Facts { status: Some(status), error: None, reused: incoming.connection.reused };
        let asked = RetryAfter::of(&incoming.headers, wall);
        if self.retry.respects_retry_after() {
            let host = self.current.url.host_str().unwrap_or_default();
            session.recipe().note_answer(
                host,
                route.identity,
                status,
                asked.unwrap_or_default(),
                now,
            );
        }

        let host = self.current.url.host_str().unwrap_or_default();
        session.recipe().restraint.note_status(host, status, now);

        if self.follow_redirects {
            let rules = RedirectRules::of(settings, &request.overrides);
            match follow(&self.current, status, &incoming.headers, rules) {
                Ok(Some(next)) => {
                    let spent = self.redirects >= settings.max_redirects;
                    let decision = self.state.redirect(None);
                    if spent || !matches!(decision, Decision::Retry { .. }) {
                        let raise = spent || self.retry.raises_on_redirect();
                        let remark = Some("the redirect budget is used up");
                        return if raise {
                            self.record(route, began, core.now(), &facts, resend);
                            Next::Step(
                                self.too_many_redirects(core, route, incoming),
                                Verdict::Good,
                            )
                        } else {
                            self.hand_out(
                                session, core, request, route, incoming, began, resend, remark,
                                None, false,
                            )
                        };
                    }
                    self.record(route, began, core.now(), &facts, resend);
                    return self.redirected(core, route, incoming, next);
                }
                Ok(None) => {}
                Err(error) => {
                    self.record(route, began, core.now(), &facts, resend);
                    let response = self.response(core, route, incoming, Content::Nothing);
                    return Next::Step(self.end(error.with_response(response)), Verdict::Good);
                }
            }
        }

        let outcome = Outcome::Status { status, retry_after: asked };
        let decision = self.state.decide(&self.current.method, &outcome, &mut core.rng);
        let replayable = self.current.body.is_replayable();
        let mut raise = false;
        let mut wanted = None;
        let mut remark = None;
        if let Decision::Retry { wait, source } = decision {
            if replayable {
                self.record(route, began, core.now(), &facts, resend);
                match self.wait(session, now, wait, source) {
                    WaitVerdict::Wait(step) => {
                        incoming.drain(DRAIN_BYTES, now.checked_add(DRAIN_TIME));
                        return Next::Step(step, Verdict::Good);
                    }
                    // The response at hand is the answer.
                    WaitVerdict::Refused(why) => {
                        self.attempts.pop();
                        remark = Some(why);
                        wanted = Some(wait);
                        raise = self.retry.raises_on_status();
                    }
                }
            } else {
                remark = Some("the body cannot be sent again");
            }
        }
        if let Decision::Exhausted { reason, raise: wants } = decision {
            raise = wants;
            remark = Some(exhausted(reason));
            if let Exhausted::RetryAfter(wait) = reason {
                wanted = Some(wait);
            }
        }

        self.hand_out(session, core, request, route, incoming, began, resend, remark, wanted, raise)
    }

    /// Reads the response and hands it out, or raises it.
    #[allow(clippy::too_many_arguments, reason = "the facts of one attempt, used once")]
    fn hand_out(
        &mut self,
        session: &Session,
        core: &mut Core,
        request: &Request,
        route: &Route,
        incoming: Incoming,
        began: Instant,
        resend: bool,
        remark: Option<&'static str>,
        wanted: Option<Duration>,
        raise: bool,
    ) -> Next {
        let settings = session.settings();
        let mut facts = Facts {
            status: Some(incoming.status),
            error: None,
            reused: incoming.connection.reused,
        };
        let stream = request.overrides.stream.unwrap_or(settings.stream) && !raise;
        let limits = DecodeLimits {
            wire: settings.max_wire_bytes,
            decoded: request
                .overrides
                .max_body_bytes
                .over(settings.max_body_bytes.as_ref())
                .copied(),
        };
        let read = if stream {
            Content::Stream(limits)
        } else {
            match read_body(incoming, limits, &self.current.method) {
                Ok((mut incoming, body, wire)) => {
                    incoming.count_received();
                    self.record(route, began, core.now(), &facts, resend);
                    if let Some(remark) = remark {
                        self.note(remark);
                    }
                    let response = self.response(core, route, incoming, Content::Done(body, wire));
                    return Next::Step(self.finish(response, raise, wanted), Verdict::Good);
                }
                Err(error) => {
                    let error = error.with_url(&*self.shown_url).with_proxy(route.shown.as_deref());
                    facts.error = Some(AttemptError::from(&error));
                    let now = core.now();
                    self.record(route, began, now, &facts, resend);
                    let host = self.current.url.host_str().unwrap_or_default();
                    session.recipe().restraint.note_error(host, &error, now);
                    let verdict = verdict_on_proxy(&error);
                    return Next::Step(self.failed(session, core, error, true), verdict);
                }
            }
        };
        self.record(route, began, core.now(), &facts, resend);
        if let Some(remark) = remark {
            self.note(remark);
        }
        let response = self.response(core, route, incoming, read);
        Next::Step(self.finish(response, raise, wanted), Verdict::Good)
    }

    /// Raises a redirect that is one too many, with as much of its body as comes at once.
    fn too_many_redirects(&mut self, core: &mut Core, route: &Route, incoming: Incoming) -> Step {
        self.note("the redirect budget is used up");
        let count = self.redirects;
        let limits = DecodeLimits { wire: Some(DRAIN_BYTES), decoded: Some(DRAIN_BYTES) };
        let headless = headless(&incoming);
        incoming.hasten(core.now().checked_add(DRAIN_TIME));
        // The body of a redirect is a courtesy; its head is what counts.
        let response = match read_body(incoming, limits, &self.current.method) {
            Ok((incoming, body, wire)) => {
                self.response(core, route, incoming, Content::Done(body, wire))
            }
            Err(_) => self.response(core, route, headless, Content::Nothing),
        };
        let error = Error::new(
            ErrorKind::TooManyRedirects,
            Phase::Headers,
            crate::error::Fault::Target,
            format!("more than {count} redirects"),
        );
        self.end(error.with_response(response))
    }

    /// Goes on to the next hop of a redirect that was charged.
    fn redirected(
        &mut self,
        core: &mut Core,
        route: &Route,
        incoming: Incoming,
        next: crate::message::Prepared,
    ) -> Next {
        if !next.body.is_replayable() && !next.body.is_empty() {
            let error = Error::new(
                ErrorKind::BodyNotReplayable,
                Phase::Send,
                crate::error::Fault::Local,
                format!(
                    "status {} asks for the body again, and it can be read only once",
                    incoming.status
                ),
            );
            return Next::Step(self.end(error), Verdict::Good);
        }
        let headless = headless(&incoming);
        incoming.drain(DRAIN_BYTES, core.now().checked_add(DRAIN_TIME));
        // A hop has no history of its own; that of the chain goes to its last response.
        let (hops, attempts) = (std::mem::take(&mut self.hops), std::mem::take(&mut self.attempts));
        let response = self.response(core, route, headless, Content::Nothing);
        (self.hops, self.attempts) = (hops, attempts);
        self.hop_to(next, response);
        // Maps and the environment are asked again for each hop; a member of the pool covers all.
        Next::Hop { same_way: route.member.is_some() }
    }

    /// Hands the response out, or raises it.
    fn finish(&mut self, response: Response, raise: bool, wanted: Option<Duration>) -> Step {
        if !raise {
            self.over = true;
            return Step::Done(response);
        }
        let error = Error::new(
            ErrorKind::RetriesExhausted,
            Phase::Headers,
            crate::error::Fault::Target,
            format!("too many {} error responses", response.status()),
        );
        self.end(error.with_retry_after(wanted).with_response(response))
    }

    /// A response with the history so far.
    fn response(
        &mut self,
        core: &Core,
        route: &Route,
        incoming: Incoming,
        read: Content,
    ) -> Response {
        let elapsed = core.now().saturating_duration_since(self.started);
        let total = self.attempts.last().map_or(elapsed, |last| last.elapsed);
        let (body, wire_bytes) = match read {
            Content::Nothing => (ResponseBody::Bytes(Bytes::new()), 0),
            Content::Done(body, wire) => (ResponseBody::Bytes(body), wire),
            Content::Stream(limits) => {
                let reader: Box<dyn Read + Send> =
                    if bodyless(&self.current.method, incoming.status) {
                        Box::new(std::io::empty())
                    } else {
                        Box::new(decode(incoming.body, &incoming.headers, limits))
                    };
                (ResponseBody::Reader(Mutex::new(reader)), 0)
            }
        };
        let connection = ConnectionFacts { identity: Some(route.identity), ..incoming.connection };
        Response::from_parts(ResponseParts {
            method: self.current.method.clone(),
            url: self.current.url.clone(),
            status: incoming.status,
            reason: incoming.reason,
            headers: incoming.headers,
            body,
            wire_bytes,
            history: std::mem::take(&mut self.hops),
            attempts: std::mem::take(&mut self.attempts),
            elapsed,
            timings: Timings { total, ..incoming.timings },
            connection,
            proxy: route.shown.clone(),
        })
    }

    /// Adds an attempt to the history.
    fn record(&mut self, route: &Route, began: Instant, now: Instant, facts: &Facts, resend: bool) {
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

/// What follows a response head.
enum Next {
    Hop { same_way: bool },
    Step(Step, Verdict),
}

/// How much of the body is there.
enum Content {
    Nothing,
    Done(Bytes, u64),
    Stream(DecodeLimits),
}

/// What an attempt leaves in the history.
struct Facts {
    status: Option<u16>,
    error: Option<AttemptError>,
    reused: bool,
}

impl Facts {
    fn of(error: &Error) -> Self {
        Self { status: None, error: Some(AttemptError::from(error)), reused: error.is_reused() }
    }
}

/// The response without its body.
fn headless(incoming: &Incoming) -> Incoming {
    let mut headless = Incoming::new(
        incoming.status,
        incoming.reason.clone(),
        incoming.headers.clone(),
        Box::new(std::io::empty()),
    );
    headless.timings = incoming.timings;
    headless.connection = incoming.connection.clone();
    headless
}

/// What the failure of an attempt says of the proxy it went through.
fn verdict_on_proxy(error: &Error) -> Verdict {
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

/// Whether no body is possible (RFC 9110 6.4.1).
fn bodyless(method: &Method, status: u16) -> bool {
    *method == Method::HEAD || matches!(status, 100..=199 | 204 | 304)
}

/// Reads and decodes the whole body.
fn read_body(
    mut incoming: Incoming,
    limits: DecodeLimits,
    method: &Method,
) -> Result<(Incoming, Bytes, u64), Error> {
    let raw = std::mem::replace(&mut incoming.body, Box::new(std::io::empty()));
    if bodyless(method, incoming.status) {
        return Ok((incoming, Bytes::new(), 0));
    }
    let mut decoded = decode(raw, &incoming.headers, limits);
    let mut body = Vec::with_capacity(expected_length(&incoming.headers));
    decoded
        .read_to_end(&mut body)
        .map_err(|error| Error::from_io(error, Phase::Body, crate::error::Fault::Target))?;
    let wire = decoded.wire_bytes();
    Ok((incoming, Bytes::from(body), wire))
}

/// A first capacity for the body: what the server promises, within reason.
fn expected_length(headers: &HeaderMap) -> usize {
    const MOST: usize = 1 << 20;
    headers
        .get(header::CONTENT_LENGTH)
        .and_then(|value| value.to_str().ok())
        .and_then(|text| text.parse::<usize>().ok())
        .map_or(0, |length| length.saturating_add(1).min(MOST))
}
