//! What a flight remembers between two steps, and what it decides with it.

use super::Step;
use super::pause::Interrupted;
use crate::error::{Attempt, AttemptError, Error, ErrorKind, Exchange, Fault, Phase, WaitReason};
use crate::message::{Prepared, Request, Response, assemble};
use crate::policy::{
    Category, Decision, Exhausted, Outcome, Retry, RetryState, Timeouts, WaitSource,
};
use crate::proxy::Identity;
use crate::session::limits::Visits;
use crate::session::live::{Core, Session};
use crate::session::refusals::LanePlace;
use http::HeaderMap;
use std::sync::Arc;
use std::time::{Duration, Instant};
use url::Url;

/// A flight that has begun.
#[derive(Debug)]
pub(super) struct Running {
    /// What the next attempt sends.
    pub(super) current: Prepared,
    /// What the last attempt sent, where it was other than `current`.
    pub(super) sent: Option<Prepared>,
    /// The URL of `current` for the history, shared by its entries.
    pub(super) shown_url: Arc<str>,
    pub(super) retry: Retry,
    pub(super) state: RetryState,
    pub(super) timeouts: Timeouts,
    pub(super) started: Instant,
    pub(super) deadline: Option<Instant>,
    /// Whether the deadline begins with the next step, since none has found a slot yet.
    pub(super) put_off: bool,
    pub(super) follow_redirects: bool,
    pub(super) redirects: u32,
    /// The responses that redirected.
    pub(super) hops: Vec<Response>,
    pub(super) attempts: Vec<Attempt>,
    /// How often this attempt has answered a challenge.
    pub(super) answers: u8,
    /// The challenges that set cookies, of a run with limits only.
    pub(super) challenges: Vec<(Identity, Url, HeaderMap)>,
    /// The hosts that the present step sends to.
    pub(super) visits: Visits,
    /// Where the last step was interrupted.
    pub(super) interrupted: Option<Box<Interrupted>>,
    /// Members of the proxy pool that this URL went through.
    pub(super) tried: Vec<usize>,
    /// The exit of the way that is taken, where it is known.
    pub(super) exit: Option<Arc<str>>,
    /// What the attempt at hand carried, where that is kept.
    pub(super) exchange: Option<Arc<Exchange>>,
    /// The session number that this URL went under last.
    pub(super) number: Option<u64>,
    /// How often this URL went into the slow lane.
    pub(super) lanes: u32,
    /// Its place there, until it is sent again.
    pub(super) lane_place: Option<LanePlace>,
    /// What of a block page the head of the answer at hand has.
    pub(super) blocked: Option<String>,
    /// Whether a retry (rather than the first attempt or a hop) comes next.
    pub(super) retrying: bool,
    /// Whether the answer was given.
    pub(super) over: bool,
}

impl Running {
    /// Applies the session's settings and starts the deadline.
    pub(super) fn start(
        session: &Session,
        core: &mut Core,
        request: &Request,
        prepared: Option<Box<Prepared>>,
    ) -> Result<Self, Error> {
        let settings = session.settings();
        let current = match prepared {
            Some(mut prepared) => {
                prepared.settle()?;
                *prepared
            }
            None => assemble(settings, request)?,
        };
        let timeouts =
            *request.overrides.timeouts.over(Some(&settings.timeouts)).unwrap_or(&UNTIMED);
        let retry =
            request.overrides.retry.over(Some(&settings.retry)).cloned().unwrap_or_default();
        let started = core.now();
        session.recipe().restraint.note_request(started);
        Ok(Self {
            shown_url: shown(&current),
            // As requests' verbs. DIFFERENCE(head-redirects): `request` and `send` follow for HEAD
            // there.
            follow_redirects: request
                .overrides
                .allow_redirects
                .unwrap_or(settings.allow_redirects && current.method != http::Method::HEAD),
            state: retry.start(),
            sent: None,
            current,
            retry,
            timeouts,
            started,
            deadline: deadline_from(&timeouts, started),
            put_off: false,
            redirects: 0,
            hops: Vec::new(),
            attempts: Vec::new(),
            answers: 0,
            challenges: Vec::new(),
            visits: Visits::default(),
            interrupted: None,
            tried: Vec::new(),
            exit: None,
            exchange: None,
            number: None,
            lanes: 0,
            lane_place: None,
            blocked: None,
            retrying: false,
            over: false,
        })
    }

    /// Begins the flight now, and its deadline.
    pub(super) fn begin(&mut self, now: Instant) {
        self.started = now;
        self.deadline = deadline_from(&self.timeouts, now);
    }

    /// Lets the deadline of a flight that waits for its first slot begin after that wait.
    ///
    /// A deadline is for what the other side takes. How long the slots of a slow run take is up to
    /// its limits, and a flight that had lost its time to them would say of a site, or of a proxy,
    /// what was never asked. One that was handed out has its first slots.
    pub(super) fn put_off_unbegun(&mut self, handed_out: bool) {
        if !handed_out && self.attempts.is_empty() {
            self.deadline = None;
            self.put_off = true;
        }
    }

    /// Whether slots were taken for another host than the next attempt goes to.
    pub(super) fn is_miscounted(&self, session: &Session, counted: Option<&str>) -> bool {
        self.current.url.host_str() != counted && session.recipe().counts_hosts()
    }

    /// Sends the flight back for the slots that it has not got.
    pub(super) fn not_before_its_slot(&mut self, now: Instant) -> Step {
        self.put_off_unbegun(false);
        Step::Wait { until: now, reason: WaitReason::Limit }
    }

    /// Begins anew with `request`, after the body of a response failed or could not be used; the
    /// budgets, the deadline and the history stay.
    pub(super) fn go_on(
        &mut self,
        session: &Session,
        core: &mut Core,
        request: &Request,
        attempts: Vec<Attempt>,
        failure: Option<Error>,
    ) -> Result<Option<Instant>, Error> {
        self.over = false;
        self.attempts = attempts;
        let mut until = None;
        if let Some(error) = failure {
            if let Some(last) = self.attempts.last_mut() {
                last.error = Some(AttemptError::from(&error));
            }
            let host = self.current.url.host_str().unwrap_or_default();
            session.recipe().restraint.note_error(host, &error, core.now());
            match self.failed(session, core, error, true) {
                Step::Wait { until: time, .. } => until = Some(time),
                Step::Failed(error) => return Err(error),
                Step::Done(_) => {}
            }
        }
        // From the URL that was asked for: where it redirected to may hold for a minute only.
        self.current = assemble(session.settings(), request)?;
        self.sent = None;
        self.shown_url = shown(&self.current);
        Ok(until)
    }

    /// Goes on to the next hop of a redirect.
    pub(super) fn hop_to(&mut self, next: Prepared, response: Response) {
        self.shown_url = shown(&next);
        self.current = next;
        self.sent = None;
        self.redirects += 1;
        self.answers = 0;
        self.hops.push(response);
    }

    /// The wait after a retriable outcome, or why there is none.
    pub(super) fn wait(
        &mut self,
        session: &Session,
        now: Instant,
        wait: Duration,
        source: WaitSource,
    ) -> Verdict {
        const TOO_LATE: Verdict = Verdict::Refused("the deadline leaves no room for the wait");
        let Some(until) = now.checked_add(wait) else { return TOO_LATE };
        if self.deadline.is_some_and(|deadline| until >= deadline) {
            return TOO_LATE;
        }
        let host = self.current.url.host_str().unwrap_or_default();
        if let Some(why) = session.recipe().restraint.refuses_retry(host, now) {
            return Verdict::Refused(why);
        }
        let reason = match source {
            WaitSource::RetryAfter => WaitReason::RetryAfter,
            _ => WaitReason::Backoff,
        };
        if let Some(last) = self.attempts.last_mut() {
            last.wait = Some((wait, reason));
        }
        self.retrying = true;
        Verdict::Wait(Step::Wait { until, reason })
    }

    /// Charges a failed attempt and says what comes next. `arrived` says that the request may have
    /// arrived, whatever failed in the end.
    pub(super) fn failed(
        &mut self,
        session: &Session,
        core: &mut Core,
        error: Error,
        arrived: bool,
    ) -> Step {
        let kind = match error.kind() {
            // Another proxy has another certificate.
            ErrorKind::Certificate if error.is_proxy() && session.has_other_proxies() => {
                ErrorKind::ProxyUnreachable
            }
            kind => kind,
        };
        let mut outcome = Outcome::of_error(kind, error.phase(), error.retry_after());
        if let (true, Outcome::Error { category: category @ Category::Connect, .. }) =
            (arrived, &mut outcome)
        {
            *category = Category::Read;
        }
        if matches!(
            outcome,
            Outcome::Error { permanent: false, category: Category::Read | Category::Other, .. }
        ) && !self.current.body.is_replayable()
        {
            self.note("the body cannot be sent again");
            return self.end(error);
        }
        match self.state.decide(&self.current.method, &outcome, &mut core.rng) {
            Decision::Retry { wait, source } => {
                match self.wait(session, core.now(), wait, source) {
                    Verdict::Wait(step) => step,
                    Verdict::Refused(why) => {
                        self.note(why);
                        self.end(error)
                    }
                }
            }
            Decision::Exhausted { reason, .. } => {
                self.note(exhausted(reason));
                self.end(error)
            }
            Decision::Final => self.end(error),
        }
    }

    /// Ends the flight with an error that holds the history.
    pub(super) fn end(&mut self, error: Error) -> Step {
        self.over = true;
        // A response that comes with the error has taken the history along.
        let attempts = match error.response() {
            Some(response) => response.attempts().to_vec(),
            None => std::mem::take(&mut self.attempts),
        };
        let error = error.with_attempts(attempts);
        Step::Failed(if error.url().is_some() { error } else { error.with_url(&*self.shown_url) })
    }

    /// Ends the flight because its time is over.
    pub(super) fn too_late(&mut self) -> Step {
        let limit = self.timeouts.deadline().unwrap_or_default();
        let last = self.attempts.last().map(describe).unwrap_or_default();
        self.end(Error::new(
            ErrorKind::Deadline,
            Phase::Prepare,
            Fault::Target,
            format!("the deadline of {} s passed{last}", limit.as_secs_f64()),
        ))
    }

    /// Adds a remark to the last attempt of the history.
    pub(super) fn note(&mut self, note: &'static str) {
        if let Some(last) = self.attempts.last_mut() {
            last.note = Some(note);
        }
    }
}

/// Whether there is a retry after all.
pub(super) enum Verdict {
    Wait(Step),
    /// Because of this.
    Refused(&'static str),
}

/// Why no further retry was made.
pub(super) const fn exhausted(reason: Exhausted) -> &'static str {
    match reason {
        Exhausted::Total => "total is used up",
        Exhausted::Connect => "connect is used up",
        Exhausted::Read => "read is used up",
        Exhausted::Redirect => "redirect is used up",
        Exhausted::Status => "status is used up",
        Exhausted::Other => "other is used up",
        Exhausted::RetryAfter(_) => "Retry-After asks for more than the policy waits",
    }
}

fn deadline_from(timeouts: &Timeouts, started: Instant) -> Option<Instant> {
    timeouts.deadline().and_then(|limit| started.checked_add(limit))
}

fn describe(attempt: &Attempt) -> String {
    match (&attempt.error, attempt.status) {
        (Some(AttemptError { message, .. }), _) => format!("; the last attempt: {message}"),
        (None, Some(status)) => format!("; the last attempt: status {status}"),
        (None, None) => String::new(),
    }
}

/// The URL as it may be shown: `Prepared` never holds userinfo; the fragment is no part of a
/// request.
pub(super) fn shown(prepared: &Prepared) -> Arc<str> {
    let text = prepared.url.as_str();
    Arc::from(text.split_once('#').map_or(text, |(before, _)| before))
}

/// What `Setting::Unset` means for timeouts: none at all.
const UNTIMED: Timeouts = Timeouts::unlimited();
