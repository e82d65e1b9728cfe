//! A transport without sockets: for tests of policies, and for users who test their own.
//!
//! What a policy does over a night of throttles and silences is decided by outcomes and by the
//! clock, so both are scripted: each attempt gets the next [`Play`], and a play *takes time* on
//! the clock it was given. Under a [`SimClock`](crate::time::SimClock) hours pass at once, and the
//! limits of the attempt cut a play short exactly as they would cut a real one.

use super::wire::Gauge;
use super::{AttemptLimits, Incoming, Outgoing, OutgoingBody, Transport, map_error};
use crate::error::{Error, ErrorKind, Fault, Phase, ProxyReply};
use crate::message::Headers;
use crate::policy::RetryAfter;
use crate::proxy::{Identity, Route};
use crate::time::Clock;
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use std::collections::VecDeque;
use std::fmt;
use std::io::{self, Read};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use url::Url;

/// One answer of a script, and the time that it takes.
///
/// # Examples
/// ```
/// use longhaul::error::{ErrorKind, Fault, Phase};
/// use longhaul::secs;
/// use longhaul::transport::Play;
///
/// let throttled = Play::status(429).header("Retry-After", "7").after(secs(0.2));
/// let refused = Play::error(ErrorKind::Connection, Phase::Connect, Fault::Target);
/// let silent = Play::silence();
/// ```
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Play {
    outcome: Outcome,
    connecting: Duration,
    after: Duration,
    body_after: Duration,
    reused: bool,
}

#[derive(Debug, Clone)]
enum Outcome {
    Response {
        status: u16,
        headers: HeaderMap,
        body: Bytes,
        whole: bool,
    },
    Failure {
        kind: ErrorKind,
        phase: Phase,
        fault: Fault,
        stale: bool,
        unsent: bool,
        reply: Option<ProxyReply>,
    },
    /// Nothing happens until a clock runs out.
    Silence(Phase, Fault),
}

impl Play {
    fn new(outcome: Outcome) -> Self {
        let zero = Duration::ZERO;
        Self { outcome, connecting: zero, after: zero, body_after: zero, reused: false }
    }

    fn failure(kind: ErrorKind, phase: Phase, fault: Fault) -> Self {
        let unsent = phase.is_before_send();
        Self::new(Outcome::Failure { kind, phase, fault, stale: false, unsent, reply: None })
    }

    /// A response with this status and no body.
    pub fn status(status: u16) -> Self {
        let (headers, body) = (HeaderMap::new(), Bytes::new());
        Self::new(Outcome::Response { status, headers, body, whole: true })
    }

    /// A failure of this kind, in this phase, by the fault of this side.
    pub fn error(kind: ErrorKind, phase: Phase, fault: Fault) -> Self {
        Self::failure(kind, phase, fault)
    }

    /// Silence after the request: takes the read timeout, or the time to the deadline.
    ///
    /// Where the attempt has neither, the error is of kind `Internal`: a script cannot wait for
    /// ever.
    pub fn silence() -> Self {
        Self::new(Outcome::Silence(Phase::Headers, Fault::Target))
    }

    /// A peer that cannot be connected to and does not say so: takes the connect timeout.
    pub fn black_hole() -> Self {
        Self::new(Outcome::Silence(Phase::Connect, Fault::Target))
    }

    /// As [`black_hole`](Self::black_hole), where the peer is the proxy and to blame.
    pub fn dead_proxy() -> Self {
        Self::new(Outcome::Silence(Phase::Connect, Fault::Proxy))
    }

    /// A kept-alive connection that was closed before the first byte of the response.
    pub fn stale() -> Self {
        let mut play = Self::failure(ErrorKind::Connection, Phase::Headers, Fault::Target);
        if let Outcome::Failure { stale, .. } = &mut play.outcome {
            *stale = true;
        }
        play.reused = true;
        play
    }

    /// As [`stale`](Self::stale), where not one byte of the request was taken.
    pub fn stale_unsent() -> Self {
        let mut play = Self::stale();
        if let Outcome::Failure { phase, unsent, .. } = &mut play.outcome {
            (*phase, *unsent) = (Phase::Send, true);
        }
        play
    }

    /// A proxy that refuses the tunnel with this status: 407 and 401 are `ProxyAuth`, all else
    /// `ProxyRefused`.
    pub fn proxy_refusal(status: u16) -> Self {
        let kind = match status {
            407 | 401 => ErrorKind::ProxyAuth,
            _ => ErrorKind::ProxyRefused,
        };
        let mut play = Self::failure(kind, Phase::Proxy, Fault::Proxy);
        if let Outcome::Failure { reply, .. } = &mut play.outcome {
            *reply = Some(ProxyReply {
                code: status,
                socks: false,
                reason: reason(status),
                headers: HeaderMap::new(),
                body: Bytes::new(),
            });
        }
        play
    }

    /// Adds a field to the response, or to the refusal of the proxy; what is no field is left out.
    pub fn header(mut self, name: &str, value: &str) -> Self {
        let headers = match &mut self.outcome {
            Outcome::Response { headers, .. } => Some(headers),
            Outcome::Failure { reply: Some(reply), .. } => Some(&mut reply.headers),
            _ => None,
        };
        let field = (HeaderName::try_from(name), HeaderValue::try_from(value));
        if let (Some(headers), (Ok(name), Ok(value))) = (headers, field) {
            headers.append(name, value);
        }
        self
    }

    /// The body of the response.
    pub fn body(mut self, bytes: impl Into<Bytes>) -> Self {
        if let Outcome::Response { body, .. } = &mut self.outcome {
            *body = bytes.into();
        }
        self
    }

    /// Breaks the connection off behind the body, which is then incomplete.
    pub fn truncated(mut self) -> Self {
        if let Outcome::Response { whole, .. } = &mut self.outcome {
            *whole = false;
        }
        self
    }

    /// How long it takes to get a connection, before all else. Default: no time.
    ///
    /// What takes as long as the connect timeout becomes a `ConnectTimeout`.
    pub fn connecting(mut self, duration: Duration) -> Self {
        self.connecting = duration;
        self
    }

    /// How long the attempt takes to the response head or to the failure, once there is a
    /// connection. Default: no time.
    ///
    /// A response that takes longer than the read timeout becomes a `ReadTimeout`, and nothing
    /// outlasts the deadline.
    pub fn after(mut self, duration: Duration) -> Self {
        self.after = duration;
        self
    }

    /// How long the body takes behind the head, as one silence before its first byte.
    pub fn body_after(mut self, duration: Duration) -> Self {
        self.body_after = duration;
        self
    }

    /// Says that the connection was a kept-alive one.
    pub fn reused(mut self) -> Self {
        self.reused = true;
        self
    }

    /// Takes its time on `clock` under these limits, and answers a request of this method.
    pub(crate) fn perform(
        self,
        clock: &Arc<dyn Clock>,
        method: &Method,
        limits: &AttemptLimits,
    ) -> Result<Incoming, Error> {
        let Self { outcome, connecting, mut after, body_after, reused } = self;
        let began = clock.now();
        let limits = *limits;
        let pause = Pause { clock: &**clock, limits, fault: Fault::Target };
        match &outcome {
            // One clock for all that comes before the request.
            Outcome::Failure { phase, .. } if phase.is_before_send() => after += connecting,
            Outcome::Silence(phase, _) if phase.is_before_send() => {}
            _ if connecting.is_zero() => {}
            _ => pause.take(connecting, Phase::Connect)?,
        }
        match outcome {
            Outcome::Silence(phase, fault) => {
                Err(Pause { fault, ..pause }.until_expiry(phase, method))
            }
            Outcome::Failure { kind, phase, fault, stale, unsent, reply } => {
                // A failure after a silence is only met by who was still listening.
                pause.take(after, phase)?;
                let message = match &reply {
                    Some(reply) => format!("scripted refusal: {} {}", reply.code, reply.reason),
                    None => format!("scripted failure: {kind}"),
                };
                let error =
                    Error::new(kind, phase, fault, message).with_stale(stale).with_unsent(unsent);
                Err(match reply {
                    Some(reply) => error
                        .with_retry_after(RetryAfter::of(&reply.headers, clock.wall()))
                        .with_proxy_reply(reply),
                    None => error,
                })
            }
            Outcome::Response { status, headers, body, whole } => {
                pause.take(after, Phase::Headers)?;
                let first_byte = clock.now().saturating_duration_since(began);
                let bodyless = *method == Method::HEAD || matches!(status, 204 | 304);
                let gauge = Gauge::default();
                let reader = Body {
                    gauge: gauge.clone(),
                    bytes: if bodyless { Bytes::new() } else { body },
                    read: 0,
                    pause: Some(body_after).filter(|pause| !pause.is_zero()),
                    failure: if whole || bodyless { None } else { Some(Phase::Body) },
                    clock: Arc::clone(clock),
                    limits,
                    expired: None,
                };
                let mut incoming = Incoming::new(status, reason(status), headers, Box::new(reader));
                incoming.timings.connect = (!connecting.is_zero()).then_some(connecting);
                incoming.timings.first_byte = Some(first_byte);
                incoming.timings.total = first_byte;
                incoming.connection.reused = reused;
                incoming.gauge = Some(gauge);
                Ok(incoming)
            }
        }
    }
}

/// What a script was asked for in one attempt.
#[derive(Clone)]
#[non_exhaustive]
pub struct Asked {
    /// When, on the script's clock.
    pub at: Instant,
    /// The method.
    pub method: Method,
    /// The URL.
    pub url: Url,
    /// The fields, in order.
    pub headers: Headers,
    /// The body; empty where there was none.
    pub body: Vec<u8>,
    /// The proxy, redacted.
    pub proxy: Option<Arc<str>>,
    /// Whom the attempt belongs to.
    pub identity: Identity,
    /// Whether a kept-alive connection was ruled out.
    pub fresh: bool,
    /// The clocks of the attempt.
    pub limits: AttemptLimits,
}

/// The body is left out: it may be a form with a password.
impl fmt::Debug for Asked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Asked")
            .field("at", &self.at)
            .field("method", &self.method)
            .field("url", &self.url.as_str())
            .field("headers", &self.headers)
            .field("body", &format_args!("{} bytes", self.body.len()))
            .field("proxy", &self.proxy)
            .field("identity", &self.identity)
            .field("fresh", &self.fresh)
            .field("limits", &self.limits)
            .finish()
    }
}

type Director = dyn FnMut(&Asked, usize) -> Option<Play> + Send;

/// Plays answers in order, or by a function of the request, on a clock.
///
/// Clones share the plays and the record of what was asked, so that every session of a recipe
/// can be given the same script.
///
/// # Examples
/// ```
/// use longhaul::secs;
/// use longhaul::time::SimClock;
/// use longhaul::transport::{Play, Script};
/// use std::sync::Arc;
///
/// let clock = Arc::new(SimClock::default());
/// let in_order = Script::new(clock.clone(), [Play::status(503), Play::status(200)]);
/// let by_url = Script::with(clock, |asked, attempt| match asked.url.path() {
///     "/slow" => Play::silence(),
///     _ if attempt % 10 == 0 => Play::status(429).header("Retry-After", "2"),
///     _ => Play::status(200).body("ok").after(secs(0.1)),
/// });
/// ```
#[derive(Clone)]
pub struct Script {
    clock: Arc<dyn Clock>,
    state: Arc<Mutex<State>>,
}

struct State {
    director: Box<Director>,
    asked: Vec<Asked>,
    forgotten: Vec<Identity>,
}

impl Script {
    /// These plays in this order; an attempt after the last one fails with kind `Internal`.
    pub fn new(clock: Arc<dyn Clock>, plays: impl IntoIterator<Item = Play>) -> Self {
        let mut plays: VecDeque<Play> = plays.into_iter().collect();
        Self::directed(clock, Box::new(move |_, _| plays.pop_front()))
    }

    /// What this function says for each request and the number of the attempt, counted from 0
    /// over all requests.
    pub fn with(
        clock: Arc<dyn Clock>,
        mut play: impl FnMut(&Asked, usize) -> Play + Send + 'static,
    ) -> Self {
        Self::directed(clock, Box::new(move |asked, attempt| Some(play(asked, attempt))))
    }

    fn directed(clock: Arc<dyn Clock>, director: Box<Director>) -> Self {
        let state = State { director, asked: Vec::new(), forgotten: Vec::new() };
        Self { clock, state: Arc::new(Mutex::new(state)) }
    }

    /// What was asked so far, in order.
    pub fn asked(&self) -> Vec<Asked> {
        self.lock().asked.clone()
    }

    /// How many attempts were made so far.
    pub fn attempts(&self) -> usize {
        self.lock().asked.len()
    }

    /// The identities that were to be forgotten, in order.
    pub fn forgotten(&self) -> Vec<Identity> {
        self.lock().forgotten.clone()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Transport for Script {
    fn attempt(
        &mut self,
        outgoing: Outgoing<'_>,
        route: &Route,
        limits: &AttemptLimits,
    ) -> Result<Incoming, Error> {
        let url = outgoing.url;
        let mut asked = Asked {
            at: self.clock.now(),
            method: outgoing.method.clone(),
            url: url.clone(),
            headers: outgoing.headers.clone(),
            body: Vec::new(),
            proxy: route.shown.clone(),
            identity: route.identity,
            fresh: route.fresh,
            limits: *limits,
        };
        let result = read_body(outgoing.body, &mut asked.body).and_then(|()| {
            let mut state = self.lock();
            let attempt = state.asked.len();
            let play = (state.director)(&asked, attempt);
            state.asked.push(asked.clone());
            drop(state);
            match play {
                Some(play) => play.perform(&self.clock, outgoing.method, limits),
                None => Err(Error::new(
                    ErrorKind::Internal,
                    Phase::Prepare,
                    Fault::Local,
                    format!("the script has no play for attempt {attempt}; give it one more"),
                )),
            }
        });
        let shown = super::engine::shown(url);
        result.map_err(|error| error.with_url(shown).with_proxy(route.shown.as_deref()))
    }

    fn forget(&mut self, identity: Identity) {
        self.lock().forgotten.push(identity);
    }
}

impl fmt::Debug for Script {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Script({} attempts)", self.attempts())
    }
}

fn reason(status: u16) -> String {
    let known = StatusCode::from_u16(status).ok().and_then(|status| status.canonical_reason());
    known.unwrap_or_default().to_owned()
}

fn read_body(body: OutgoingBody<'_>, into: &mut Vec<u8>) -> Result<(), Error> {
    match body {
        OutgoingBody::Empty => Ok(()),
        OutgoingBody::Bytes(bytes) => {
            into.extend_from_slice(bytes);
            Ok(())
        }
        OutgoingBody::Reader(reader, _) => match reader.read_to_end(into) {
            Ok(_) => Ok(()),
            Err(error) => Err(Error::from_io(error, Phase::Send, Fault::Local)),
        },
    }
}

/// Time that passes under the limits of an attempt.
struct Pause<'a> {
    clock: &'a dyn Clock,
    limits: AttemptLimits,
    /// Who is to blame where time runs out.
    fault: Fault,
}

impl Pause<'_> {
    /// Lets so much time pass, or as much as the limits allow.
    fn take(&self, wanted: Duration, phase: Phase) -> Result<(), Error> {
        let now = self.clock.now();
        let (budget, kind) = match phase.is_before_send() {
            true => (self.limits.connect, ErrorKind::ConnectTimeout),
            false => (self.limits.read, ErrorKind::ReadTimeout),
        };
        let (ended, kind) = match budget {
            Some(budget) if budget <= wanted => (budget, Some(kind)),
            _ => (wanted, None),
        };
        let left = self.limits.deadline.map(|end| end.saturating_duration_since(now));
        let (ended, kind) = match left {
            Some(left) if left < ended || (left == ended && kind.is_none() && left.is_zero()) => {
                (left, Some(ErrorKind::Deadline))
            }
            _ => (ended, kind),
        };
        if let Some(until) = now.checked_add(ended) {
            self.clock.sleep_until(until);
        }
        match kind {
            None => Ok(()),
            Some(kind) => {
                let expiry = match kind {
                    ErrorKind::ConnectTimeout => super::wait::Expiry::Connect,
                    ErrorKind::ReadTimeout => super::wait::Expiry::Read,
                    _ => super::wait::Expiry::Deadline,
                };
                let error = super::wait::Expired(expiry).into();
                Err(map_error::timeout(&error, phase, self.fault))
            }
        }
    }

    fn until_expiry(&self, phase: Phase, method: &Method) -> Error {
        match self.take(Duration::MAX, phase) {
            Err(error) => error,
            Ok(()) => Error::new(
                ErrorKind::Internal,
                phase,
                Fault::Local,
                format!("{method} would wait for ever: the attempt has no timeout"),
            ),
        }
    }
}

/// A body that may be late or break off.
struct Body {
    /// What whoever drains it wants.
    gauge: Gauge,
    bytes: Bytes,
    read: u64,
    pause: Option<Duration>,
    failure: Option<Phase>,
    clock: Arc<dyn Clock>,
    limits: AttemptLimits,
    /// The clock that ran out, to be told each time.
    expired: Option<ErrorKind>,
}

impl Read for Body {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        if let Some(pause) = self.pause.take() {
            let nearest = [self.limits.deadline, self.gauge.until()].into_iter().flatten().min();
            let limits = AttemptLimits { deadline: nearest, ..self.limits };
            let time = Pause { clock: &*self.clock, limits, fault: Fault::Target };
            if let Err(error) = time.take(pause, Phase::Body) {
                self.expired = Some(error.kind());
            }
        }
        if let Some(kind) = self.expired {
            let message = format!("scripted failure: {kind}");
            let error = Error::new(kind, Phase::Body, Fault::Target, message);
            return Err(error.with_received_bytes(self.read).into_io());
        }
        let amount = self.bytes.len().min(buf.len());
        if let (0, Some(phase), false) = (amount, self.failure, buf.is_empty()) {
            let message = "the connection was closed before the body was complete";
            let error = Error::new(ErrorKind::IncompleteBody, phase, Fault::Target, message);
            return Err(error.with_received_bytes(self.read).into_io());
        }
        for (to, from) in buf.iter_mut().zip(self.bytes.split_to(amount)) {
            *to = from;
        }
        self.read += amount as u64;
        self.gauge.count(amount);
        Ok(amount)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::{SimClock, secs};

    struct Stage {
        clock: Arc<SimClock>,
        script: Script,
        limits: AttemptLimits,
    }

    impl Stage {
        fn new(plays: impl IntoIterator<Item = Play>) -> Self {
            let clock = Arc::new(SimClock::default());
            let script = Script::new(clock.clone(), plays);
            let limits = AttemptLimits {
                connect: Some(secs(5.0)),
                read: Some(secs(25.0)),
                deadline: Some(clock.now() + secs(60.0)),
            };
            Self { clock, script, limits }
        }

        fn get(&mut self) -> Result<Incoming, Error> {
            let (url, headers) = (Url::parse("http://u:p@a.test/#f").unwrap(), Headers::new());
            let outgoing = Outgoing::new(&Method::GET, &url, &headers);
            self.script.attempt(outgoing, &Route::direct(), &self.limits)
        }
    }

    fn facts(error: &Error) -> (ErrorKind, Phase, Fault) {
        (error.kind(), error.phase(), error.fault())
    }

    #[test]
    fn plays_take_their_time_and_limits_cut_them() {
        let mut stage = Stage::new([
            Play::status(200).header("X", "y").body("hello").after(secs(1.0)).body_after(secs(2.0)),
            Play::silence(),
            Play::black_hole(),
            Play::status(200).after(secs(30.0)),
            Play::status(200).after(secs(24.0)),
        ]);
        let mut incoming = stage.get().unwrap();
        assert_eq!(incoming.headers["x"], "y");
        assert_eq!(stage.clock.elapsed(), secs(1.0));
        let mut body = String::new();
        incoming.body.read_to_string(&mut body).unwrap();
        assert_eq!((body.as_str(), stage.clock.elapsed()), ("hello", secs(3.0)));

        let error = stage.get().unwrap_err();
        assert_eq!(facts(&error), (ErrorKind::ReadTimeout, Phase::Headers, Fault::Target));
        assert_eq!((stage.clock.elapsed(), error.url()), (secs(28.0), Some("http://a.test/")));
        let error = stage.get().unwrap_err();
        assert_eq!(facts(&error), (ErrorKind::ConnectTimeout, Phase::Connect, Fault::Target));
        assert_eq!((stage.clock.elapsed(), error.is_unsent()), (secs(33.0), true));
        assert_eq!(stage.get().unwrap_err().kind(), ErrorKind::ReadTimeout);
        assert_eq!(stage.clock.elapsed(), secs(58.0));
        assert_eq!(stage.get().unwrap_err().kind(), ErrorKind::Deadline);
        assert_eq!(stage.clock.elapsed(), secs(60.0));
        let error = stage.get().unwrap_err();
        assert!(error.to_string().contains("no play for attempt 5"), "{error}");
    }

    #[test]
    fn connecting_and_answering_have_a_clock_each() {
        let nearly = |seconds| secs(seconds) - Duration::from_nanos(1);
        let mut stage = Stage::new([
            Play::status(200).connecting(nearly(5.0)).after(nearly(25.0)),
            Play::status(200).connecting(secs(5.0)).after(secs(1.0)),
            Play::error(ErrorKind::Connection, Phase::Tls, Fault::Target)
                .connecting(secs(3.0))
                .after(secs(3.0)),
        ]);
        stage.get().unwrap();
        assert_eq!(stage.clock.elapsed(), secs(30.0) - Duration::from_nanos(2));
        assert_eq!(stage.get().unwrap_err().kind(), ErrorKind::ConnectTimeout);
        assert_eq!(stage.get().unwrap_err().kind(), ErrorKind::ConnectTimeout);
        assert_eq!(stage.clock.elapsed(), secs(40.0) - Duration::from_nanos(2));
    }

    #[test]
    fn draining_ends_when_it_is_to() {
        let mut stage = Stage::new([Play::status(503).body("abc").body_after(secs(20.0))]);
        let until = stage.clock.now() + secs(0.1);
        stage.get().unwrap().drain(65_536, Some(until));
        assert_eq!(stage.clock.elapsed(), secs(0.1));
    }

    #[test]
    fn bodies_break_off_or_stall_and_stay_that_way() {
        let mut stage = Stage::new([
            Play::status(200).body("abc").truncated(),
            Play::status(200).body("abc").body_after(secs(26.0)),
        ]);
        for (received, kind) in [(3, ErrorKind::IncompleteBody), (0, ErrorKind::ReadTimeout)] {
            let mut incoming = stage.get().unwrap();
            for _ in 0..2 {
                let error = incoming.body.read_to_end(&mut Vec::new()).unwrap_err();
                let error = error.downcast::<Error>().unwrap();
                assert_eq!(facts(&error), (kind, Phase::Body, Fault::Target));
                assert_eq!(error.received_bytes(), Some(received));
            }
        }
    }

    #[test]
    fn failures_and_what_was_asked() {
        let mut stage = Stage::new([
            Play::stale(),
            Play::proxy_refusal(407).header("Proxy-Authenticate", "Basic"),
            Play::error(ErrorKind::NameNotFound, Phase::Dns, Fault::Target),
            Play::dead_proxy(),
        ]);
        assert!(stage.get().unwrap_err().is_stale());
        let error = stage.get().unwrap_err();
        assert_eq!(facts(&error), (ErrorKind::ProxyAuth, Phase::Proxy, Fault::Proxy));
        assert_eq!(error.proxy_reply().unwrap().headers["proxy-authenticate"], "Basic");
        assert!(stage.get().unwrap_err().is_unsent());
        let error = stage.get().unwrap_err();
        assert_eq!(facts(&error), (ErrorKind::ConnectTimeout, Phase::Connect, Fault::Proxy));
        stage.script.clone().forget(Identity::DIRECT);
        assert_eq!(stage.script.forgotten(), [Identity::DIRECT]);
        assert_eq!(stage.script.attempts(), 4);
        assert_eq!(stage.script.asked()[2].url.path(), "/");
    }
}
