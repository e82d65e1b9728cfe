//! What a response head leads to: another hop, a wait, or an answer with its body.

use super::Step;
use super::attempt::{Facts, Lost, verdict_on_proxy};
use super::course::Seen;
use super::credentials::Challenge;
use super::state::{Running, Verdict as WaitVerdict, exhausted};
use crate::error::{AttemptError, Error, ErrorKind, Fault, Phase, Truncated};
use crate::message::{
    ConnectionFacts, DecodeLimits, Decoded, Prepared, RedirectRules, Request, Response,
    ResponseBody, ResponseParts, Timings, decode, follow, undecoded,
};
use crate::policy::{Decision, Exhausted, Outcome, RetryAfter};
use crate::proxy::{Route, Verdict};
use crate::session::live::{Core, Session};
use crate::transport::Incoming;
use bytes::Bytes;
use http::{HeaderMap, Method, header};
use std::io::Read;
use std::sync::Mutex;
use std::time::{Duration, Instant};
use url::Url;

/// What is drained of a response that is not handed out, so that its connection can be kept.
const DRAIN_BYTES: u64 = 64 * 1024;
/// How long draining may take.
///
/// DIFFERENCE(redirect-bodies): the body of a redirect is waited for no longer than this, and only
/// where its connection could be kept; requests reads it to its end, and fails with it.
pub(super) const DRAIN_TIME: Duration = Duration::from_millis(100);

/// What follows a response head.
pub(super) enum Next {
    Hop {
        same_way: bool,
    },
    /// The same request on the same way, with other credentials.
    Again,
    Step(Step, Verdict),
}

impl Running {
    /// What a response head leads to.
    #[allow(clippy::too_many_arguments, reason = "the facts of one attempt, used once")]
    pub(super) fn answered(
        &mut self,
        session: &Session,
        core: &mut Core,
        request: &Request,
        route: &Route,
        incoming: Incoming,
        began: Instant,
        resend: bool,
        copy: Lost,
    ) -> Next {
        let settings = session.settings();
        let (now, wall) = (core.now(), core.wall());
        core.jars.of(route.identity).0.store(&self.current.url, &incoming.headers, wall);
        let status = incoming.status;
        let refusal = match self.heed_challenge(core, route, &incoming, copy) {
            Challenge::None => None,
            Challenge::Refused(why) => Some(why),
            Challenge::Answered(how) => {
                let reused = incoming.connection.reused;
                let facts = Facts { status: Some(status), error: None, reused };
                self.record(route, began, now, &facts, resend);
                self.note(how);
                if session.recipe().limits.is_some()
                    && incoming.headers.contains_key(header::SET_COOKIE)
                {
                    let url = self.current.url.clone();
                    self.challenges.push((route.identity, url, incoming.headers.clone()));
                }
                incoming.drain(DRAIN_BYTES, now.checked_add(self.drain_time_after(copy)));
                return Next::Again;
            }
        };
        let facts = Facts { status: Some(status), error: None, reused: incoming.connection.reused };
        let asked = RetryAfter::of(&incoming.headers, wall);
        let host = self.current.url.host_str().unwrap_or_default();
        let wait = asked.filter(|_| self.retry.respects_retry_after()).unwrap_or_default();
        session.recipe().note_answer(host, route.identity, status, wait, now);
        session.recipe().restraint.note_status(host, status, now);

        if let Some(refusals) = session.recipe().refusals.as_deref() {
            self.blocked = refusals.in_head(status, &incoming.headers);
        }
        if self.blocked.is_some() {
            // Neither followed nor retried: the place it leads to is the refusal.
            return self.hand_out(
                session, core, request, route, incoming, began, resend, refusal, None, false,
            );
        }

        if self.follow_redirects {
            let rules = RedirectRules::of(settings, &request.overrides, &self.retry);
            match follow(&self.current, status, &incoming.headers, rules) {
                Ok(Some(next)) => {
                    let spent = self.redirects >= settings.max_redirects;
                    let decision = self.state.redirect(None);
                    if spent || !matches!(decision, Decision::Retry { .. }) {
                        let raise = spent || self.retry.raises_on_redirect();
                        let remark = Some("the redirect budget is used up");
                        return if raise {
                            self.record(route, began, core.now(), &facts, resend);
                            self.too_many_redirects(session, core, request, route, incoming)
                        } else {
                            self.hand_out(
                                session, core, request, route, incoming, began, resend, remark,
                                None, false,
                            )
                        };
                    }
                    self.record(route, began, core.now(), &facts, resend);
                    return self.redirected(session, core, request, route, incoming, next);
                }
                Ok(None) => {}
                Err(error) => {
                    self.record(route, began, core.now(), &facts, resend);
                    let (incoming, content) = at_hand(incoming, &self.current.method, core.now());
                    let response = self.response(core, route, incoming, content);
                    return match self.hooked(session, request, response) {
                        Ok(Seen { response, moved: false }) => {
                            Next::Step(self.end(error.with_response(response)), Verdict::Good)
                        }
                        Ok(Seen { response, moved: true }) => {
                            self.replaced(session, request, route, response, false)
                        }
                        Err(error) => Next::Step(self.end(error), Verdict::Good),
                    };
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

        let remark = remark.or(refusal);
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
            wire: request.overrides.max_wire_bytes.over(settings.max_wire_bytes.as_ref()).copied(),
            decoded: request
                .overrides
                .max_body_bytes
                .over(settings.max_body_bytes.as_ref())
                .copied(),
        };
        let decoder = match request.overrides.decode_content {
            Some(false) => undecoded,
            _ => decode,
        };
        let read = if stream {
            Content::Stream(limits, decoder)
        } else {
            // What is raised is raised for its status, and its body is a courtesy.
            let headless = raise.then(|| headless(&incoming));
            let read = read_body(incoming, limits, decoder, &self.current.method);
            match read.or_else(|error| headless.map(|head| (head, Bytes::new(), 0)).ok_or(error)) {
                Ok((mut incoming, body, wire)) => {
                    incoming.count_received();
                    if let (Some(told), Some(exchange)) =
                        (&session.recipe().on_exchange, &self.exchange)
                    {
                        told(exchange);
                    }
                    self.record(route, began, core.now(), &facts, resend);
                    let remark =
                        remark.or_else(|| misaddressed(&self.current.url, incoming.status, &body));
                    if let Some(remark) = remark {
                        self.note(remark);
                    }
                    let response = self.response(core, route, incoming, Content::Done(body, wire));
                    return self.conclude(session, core, request, route, response, raise, wanted);
                }
                Err(error) => {
                    if let (ErrorKind::TooLarge, Some(exchange)) = (error.kind(), &self.exchange) {
                        exchange.cut_response(Truncated::Length);
                    }
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
        self.conclude(session, core, request, route, response, raise, wanted)
    }

    /// Raises a redirect that is one too many, with as much of its body as comes at once.
    fn too_many_redirects(
        &mut self,
        session: &Session,
        core: &mut Core,
        request: &Request,
        route: &Route,
        incoming: Incoming,
    ) -> Next {
        self.note("the redirect budget is used up");
        let until = core.now().checked_add(DRAIN_TIME).unwrap_or_else(|| core.now());
        let (incoming, content) = at_hand(incoming, &self.current.method, until);
        let response = self.response(core, route, incoming, content);
        match self.hooked(session, request, response) {
            Ok(Seen { response, moved: false }) => {
                Next::Step(self.one_redirect_too_many(response), Verdict::Good)
            }
            Ok(Seen { response, moved: true }) => {
                self.replaced(session, request, route, response, false)
            }
            Err(error) => Next::Step(self.end(error), Verdict::Good),
        }
    }

    /// Goes on to the next hop of a redirect that was charged.
    fn redirected(
        &mut self,
        session: &Session,
        core: &mut Core,
        request: &Request,
        route: &Route,
        incoming: Incoming,
        next: Prepared,
    ) -> Next {
        let (incoming, content) = if can_follow(&next) {
            let headless = headless(&incoming);
            incoming.drain(DRAIN_BYTES, core.now().checked_add(DRAIN_TIME));
            (headless, Content::Nothing)
        } else {
            at_hand(incoming, &self.current.method, core.now())
        };
        // A hop has no history of its own; that of the chain goes to its last response.
        let (hops, attempts) = (std::mem::take(&mut self.hops), std::mem::take(&mut self.attempts));
        let response = self.response(core, route, incoming, content);
        (self.hops, self.attempts) = (hops, attempts);
        match self.hooked(session, request, response) {
            Ok(Seen { response, moved: false }) => self.hop(route, next, response),
            Ok(Seen { response, moved: true }) => {
                self.replaced(session, request, route, response, true)
            }
            Err(error) => Next::Step(self.end(error), Verdict::Good),
        }
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
            Content::Stream(limits, decoder) => {
                let reader: Box<dyn Read + Send> =
                    if bodyless(&self.current.method, incoming.status) {
                        Box::new(std::io::empty())
                    } else {
                        Box::new(decoder(incoming.body, &incoming.headers, limits))
                    };
                (ResponseBody::Reader(Mutex::new(reader)), 0)
            }
        };
        let asked = self.sent.take().unwrap_or_else(|| self.current.clone());
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
        .with_request(asked)
    }
}

/// Whether what a redirect asks for can be sent.
pub(super) fn can_follow(next: &Prepared) -> bool {
    next.body.is_replayable() || next.body.is_empty()
}

/// How much of the body is there.
enum Content {
    Nothing,
    Done(Bytes, u64),
    Stream(DecodeLimits, Decoder),
}

/// What makes the body of a response of its bytes.
type Decoder = fn(Box<dyn Read + Send>, &HeaderMap, DecodeLimits) -> Decoded;

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

/// What a 400 means that a server gave because of TLS, and what would help: servers say it in the
/// body alone, since it is their answer to something that was no request to them.
fn misaddressed(url: &Url, status: u16, body: &[u8]) -> Option<&'static str> {
    /// What nginx, Apache and Go say.
    const PLAIN: [&str; 3] = [
        "plain HTTP request was sent to HTTPS port",
        "speaking plain HTTP to an SSL-enabled server port",
        "Client sent an HTTP request to an HTTPS server",
    ];
    if status != 400 {
        return None;
    }
    let text = String::from_utf8_lossy(body.get(..1024).unwrap_or(body));
    match url.scheme() {
        "http" if PLAIN.iter().any(|phrase| text.contains(phrase)) => {
            Some("this port is meant for https; write https:// in the URL")
        }
        "https" if text.contains("No required SSL certificate was sent") => {
            Some("the server demands a client certificate; give one with `cert` (--cert, --key)")
        }
        "https" if text.contains("The SSL certificate error") => {
            Some("the server does not accept the client certificate; name another")
        }
        _ => None,
    }
}

/// The response of a redirect that is raised, with its body where that is there by `until`: the
/// body is a courtesy, and the head is what counts.
fn at_hand(incoming: Incoming, method: &Method, until: Instant) -> (Incoming, Content) {
    let limits = DecodeLimits { wire: Some(DRAIN_BYTES), decoded: Some(DRAIN_BYTES) };
    let headless = headless(&incoming);
    incoming.hasten(Some(until));
    match read_body(incoming, limits, decode, method) {
        Ok((incoming, body, wire)) => (incoming, Content::Done(body, wire)),
        Err(_) => (headless, Content::Nothing),
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
    decoder: Decoder,
    method: &Method,
) -> Result<(Incoming, Bytes, u64), Error> {
    let raw = std::mem::replace(&mut incoming.body, Box::new(std::io::empty()));
    if bodyless(method, incoming.status) {
        return Ok((incoming, Bytes::new(), 0));
    }
    let mut decoded = decoder(raw, &incoming.headers, limits);
    let mut body = Vec::with_capacity(expected_length(&incoming.headers));
    decoded
        .read_to_end(&mut body)
        .map_err(|error| Error::from_io(error, Phase::Body, Fault::Target))?;
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
