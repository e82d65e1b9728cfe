//! The record: what is written about one URL, on one line.
//!
//! A record has to answer, months later and without the program, what happened to a URL: what it
//! ended as, through which proxy, after which attempts, and how long it all took. `docs/results.md`
//! describes it field by field, and a test compares that page with what is written here. Records
//! are read back as well: by a resumption, which asks what is done, and by reports. So each type
//! here can be read as it can be written; unknown fields are ignored, and a higher [`VERSION`] is
//! refused.
//!
//! Nothing secret goes in: URLs without user and password, proxies redacted, of cookies only names.

use super::item::Meta;
use super::redact;
use crate::error::{Attempt, AttemptError, Error};
use crate::message::{Response, Timings};
use crate::policy::Class;
use crate::workers::Finished;
use http::HeaderMap;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::time::{Duration, SystemTime};
use url::Url;

/// The version of the schema, in each record as `v`. It changes only when a field changes its
/// meaning or goes away, not when one is added.
pub const VERSION: u32 = 1;

/// How many attempts a record lists; of more, the first and the last half.
const ATTEMPTS_LISTED: usize = 64;

/// How many characters of a header value are kept.
const LONGEST_VALUE: usize = 512;

/// What became of one URL.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Record {
    /// The version of the schema: [`VERSION`].
    pub v: u32,
    /// The id that the item brought, or else 32 hexadecimal digits made of method, URL and body.
    pub id: String,
    /// The URL as it was given, without user and password.
    pub url: String,
    /// The URL that answered, after redirects; `None` where no response came.
    pub final_url: Option<String>,
    /// The method as it was given.
    pub method: String,
    /// The status of the last response.
    pub status: Option<u16>,
    /// Its reason phrase as it came.
    pub reason: Option<String>,
    /// Whether the class is `ok`.
    pub ok: bool,
    /// The name of the [`Class`].
    pub class: Cow<'static, str>,
    /// The failure; `None` where a response was handed out, whatever its status.
    pub error: Option<ErrorRecord>,
    /// Every attempt in order, those of earlier passes included.
    pub attempts: Vec<AttemptRecord>,
    /// The proxy of the last attempt, redacted; `None` is direct.
    pub proxy: Option<String>,
    /// The address that the world saw in the last attempt, where it is known.
    pub exit: Option<String>,
    /// Body bytes that came off the wire.
    pub bytes_wire: u64,
    /// Body bytes after decoding.
    pub bytes_body: u64,
    /// Where the body is kept, relative to the folder of bodies.
    pub body_file: Option<String>,
    /// The WARC file that has the answer, without its folder; absent where none was written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub warc_file: Option<String>,
    /// Where in it the record of the answer begins, in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub warc_offset: Option<u64>,
    /// How many bytes of the file it takes, compressed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub warc_length: Option<u64>,
    /// Milliseconds from the first attempt of the last pass to the end, waits included.
    pub elapsed_ms: f64,
    /// The phases of the last attempt; `None` where no response came.
    pub timings: Option<TimingsRecord>,
    /// The pass in which it ended, from 1.
    pub pass: u32,
    /// When it ended: RFC 3339, UTC, milliseconds.
    pub at: String,
    /// How long its last pass could take at most, in milliseconds: the deadline of the pass, or of the
    /// URL where it has timeouts of its own. `None` where there was no deadline, or nothing was
    /// attempted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub promised_ms: Option<f64>,
    /// What tells of a refusal; only for 403, 429, 503 and block pages.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused: Option<RefusedRecord>,
    /// What the item brought as `meta`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
}

/// A failure.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ErrorRecord {
    /// The name of the [`ErrorKind`](crate::ErrorKind).
    pub kind: Cow<'static, str>,
    /// The name of the exception in a `requests` log.
    pub requests_name: Cow<'static, str>,
    /// When in the attempt: the name of the [`Phase`](crate::error::Phase).
    pub phase: Cow<'static, str>,
    /// Who failed: the name of the [`Fault`](crate::error::Fault).
    pub fault: Cow<'static, str>,
    /// The sentence.
    pub message: String,
}

/// One attempt.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct AttemptRecord {
    /// Its number, from 1 over all passes. A gap shows that attempts were left out.
    pub n: u32,
    /// Its pass; only from the second on.
    #[serde(default = "first_pass", skip_serializing_if = "is_first_pass")]
    pub pass: u32,
    /// The method; only where it is not that of the record.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub method: Option<String>,
    /// The URL; only where it is not that of the attempt before (of the record, for the first).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// The proxy, redacted; absent for direct.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proxy: Option<String>,
    /// The address that the world saw, where it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit: Option<String>,
    /// The status, where a response came.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// The failure, where one came.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<ErrorRecord>,
    /// Milliseconds up to the end of the body or the failure.
    pub elapsed_ms: f64,
    /// Milliseconds of the wait that followed; absent where none did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wait_ms: Option<f64>,
    /// The name of the [`WaitReason`](crate::error::WaitReason).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wait_reason: Option<Cow<'static, str>>,
    /// Whether the connection was a kept-alive one; absent for `false`.
    #[serde(default, skip_serializing_if = "is_false")]
    pub reused: bool,
    /// Whether it was the free resend after a stale connection; absent for `false`.
    #[serde(default, skip_serializing_if = "is_false")]
    pub resend: bool,
    /// Why no further retry was made, where the policy forbade it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<Cow<'static, str>>,
    /// What tells of a refusal that another attempt followed; that of the last attempt is
    /// [`Record::refused`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused: Option<RefusedRecord>,
}

/// How many milliseconds each phase took; a phase that did not happen is absent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct TimingsRecord {
    /// Lookup of the name that was dialled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dns_ms: Option<f64>,
    /// TCP.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connect_ms: Option<f64>,
    /// CONNECT or SOCKS.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proxy_ms: Option<f64>,
    /// TLS.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tls_ms: Option<f64>,
    /// From the start of the attempt to the response head.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_byte_ms: Option<f64>,
    /// The whole attempt, body included.
    pub total_ms: f64,
}

/// The fields of a refusing response that tell who refused, and why.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[non_exhaustive]
pub struct RefusedRecord {
    /// What the response has of what the user calls a block page; absent for another refusal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub matched: Option<String>,
    /// `Server`.
    pub server: Option<String>,
    /// `Cf-Ray`.
    pub cf_ray: Option<String>,
    /// `X-Cache`.
    pub x_cache: Option<String>,
    /// `Via`.
    pub via: Option<String>,
    /// `Retry-After`.
    pub retry_after: Option<String>,
    /// The names of the cookies that it set, without values.
    pub set_cookie_names: Vec<String>,
    /// Whether bytes that are not UTF-8 were replaced by U+FFFD; absent for `false`.
    #[serde(default, skip_serializing_if = "is_false")]
    pub lossy: bool,
}

impl Record {
    /// The record of a finished job that ended in this pass, at this time.
    ///
    /// `id` is what tells it from the others; [`meta`](Self::meta), [`body_file`](Self::body_file) and
    /// [`promised_ms`](Self::promised_ms) are left to be set, and so is the place in a WARC file.
    pub fn of(finished: &Finished, id: &str, pass: u32, at: SystemTime) -> Self {
        let (response, error) = match &finished.result {
            Ok(response) => (Some(response), None),
            Err(error) => (error.response(), Some(error)),
        };
        let history = response.map(Response::attempts).filter(|list| !list.is_empty());
        let history = history.or(error.map(Error::attempts)).unwrap_or_default();
        let last = history.last();
        let class = class_of(finished);
        let url = redact::shown(&finished.url).into_owned();
        Self {
            v: VERSION,
            id: id.to_owned(),
            final_url: response.map(|response| redact::shown(response.url().as_str()).into()),
            method: finished.method.to_string(),
            status: response.map(Response::status),
            reason: response.map(|response| response.reason().to_owned()),
            ok: class == Class::Ok,
            class: Cow::Borrowed(class.name()),
            error: error.map(|error| ErrorRecord::of(&error.into(), &finished.url, &url)),
            attempts: attempts_of(history, finished, &url, pass),
            proxy: response
                .and_then(Response::proxy)
                .or(last.and_then(|attempt| attempt.proxy.as_deref()))
                .map(|proxy| redact::proxy(proxy).into_owned()),
            exit: last.and_then(|attempt| attempt.exit.as_deref()).map(str::to_owned),
            bytes_wire: response
                .map(Response::wire_bytes)
                .or(error.and_then(Error::received_bytes))
                .unwrap_or_default(),
            bytes_body: response.map_or(0, |response| response.body().len() as u64),
            body_file: None,
            warc_file: None,
            warc_offset: None,
            warc_length: None,
            elapsed_ms: millis(finished.elapsed),
            timings: response.map(|response| TimingsRecord::of(&response.timings())),
            pass,
            at: humantime::format_rfc3339_millis(at).to_string(),
            promised_ms: None,
            refused: response
                .filter(|response| {
                    let blocked = last.is_some_and(|attempt| attempt.refusal.is_some());
                    blocked || matches!(response.status(), 403 | 429 | 503)
                })
                .map(|response| RefusedRecord {
                    matched: last.and_then(matched),
                    ..RefusedRecord::of(response.headers())
                }),
            meta: None,
            url,
        }
    }

    /// Puts the attempts of earlier passes in front, and numbers all of them.
    #[must_use]
    pub fn after(mut self, mut earlier: Vec<AttemptRecord>) -> Self {
        if !earlier.is_empty() {
            let made = earlier.last().map_or(0, |attempt| attempt.n);
            for attempt in &mut self.attempts {
                attempt.n = attempt.n.saturating_add(made);
            }
            earlier.append(&mut self.attempts);
            self.attempts = earlier;
            shorten(&mut self.attempts);
        }
        self
    }

    /// How many attempts were made, those that are not listed included.
    pub fn attempts_made(&self) -> u64 {
        self.attempts.last().map_or(0, |attempt| u64::from(attempt.n))
    }

    /// Whether the failure is one of the run and says nothing of the URL: refused credentials of
    /// the proxy, no proxy left, a leak. A resumption takes such a URL again.
    pub fn is_of_the_run(&self) -> bool {
        is_of_the_run(&self.class, self.error.as_ref().map(|error| &*error.kind))
    }

    /// When it ended; `None` where [`at`](Self::at) is no time.
    pub fn ended(&self) -> Option<SystemTime> {
        humantime::parse_rfc3339(&self.at).ok()
    }

    /// Reads a record from its line.
    ///
    /// # Errors
    /// `InvalidJson` for what is no record, and for one of a newer version.
    pub fn parse(line: &[u8]) -> Result<Self, Error> {
        let record: Self = serde_json::from_slice(line).map_err(|error| not_a_record(&error))?;
        match record.v {
            0..=VERSION => Ok(record),
            newer => Err(newer_version(newer)),
        }
    }
}

pub(super) fn not_a_record(error: &serde_json::Error) -> Error {
    let text = error.to_string().replace(" at line 1 column ", " at column ");
    Error::local(crate::ErrorKind::InvalidJson, format!("not a record: {text}"))
}

pub(super) fn newer_version(v: u32) -> Error {
    let text = format!("a record of version {v}; this longhaul reads versions up to {VERSION}");
    Error::local(crate::ErrorKind::InvalidJson, text)
}

pub(super) fn is_of_the_run(class: &str, kind: Option<&str>) -> bool {
    use crate::ErrorKind::{Cancelled, ExitLeak, NoProxyAlive};
    let of_the_run = [Cancelled, ExitLeak, NoProxyAlive];
    class == Class::ProxyAuth.name()
        || kind.is_some_and(|kind| of_the_run.iter().any(|other| other.name() == kind))
}

/// The class of a finished job.
pub fn class_of(finished: &Finished) -> Class {
    let response = match &finished.result {
        Ok(response) => response,
        Err(error) => match (error.kind(), error.response()) {
            (crate::ErrorKind::RetriesExhausted | crate::ErrorKind::HttpStatus, Some(response)) => {
                response
            }
            _ => return Class::of_error(error.kind()),
        },
    };
    if finished.attempts().last().is_some_and(|attempt| attempt.refusal.is_some()) {
        return Class::Refused;
    }
    match response.status() {
        // The proxy's own 407 is an error; one that is handed out came from the target, through a
        // tunnel or directly, and concerns this URL alone.
        407 => Class::Permanent,
        status => Class::of_status(status),
    }
}

fn attempts_of(
    history: &[Attempt],
    finished: &Finished,
    url: &str,
    pass: u32,
) -> Vec<AttemptRecord> {
    let mut before: Cow<'_, str> =
        Url::parse(url).map_or(Cow::Borrowed(url), |url| Cow::Owned(url.into()));
    let mut list = Vec::with_capacity(history.len());
    // What the last response says of its refusal is in the record.
    let told = match &finished.result {
        Ok(_) => history.len(),
        Err(error) => error.response().map_or(0, |_| history.len()),
    };
    for (n, attempt) in (1..).zip(history) {
        let shown = redact::shown(&attempt.url);
        // The first may be spelt as it was given; a later one that comes back to it is said.
        let other = shown != before && (n > 1 || shown != url);
        list.push(AttemptRecord {
            n,
            pass,
            method: (attempt.method != finished.method).then(|| attempt.method.to_string()),
            url: other.then(|| shown.to_string()),
            proxy: attempt.proxy.as_deref().map(|proxy| redact::proxy(proxy).into_owned()),
            exit: attempt.exit.as_deref().map(str::to_owned),
            status: attempt.status,
            error: attempt.error.as_ref().map(|error| ErrorRecord::of(error, &finished.url, url)),
            elapsed_ms: millis(attempt.elapsed),
            wait_ms: attempt.wait.map(|(wait, _)| millis(wait)),
            wait_reason: attempt.wait.map(|(_, reason)| Cow::Borrowed(reason.name())),
            reused: attempt.reused,
            resend: attempt.resend,
            note: attempt.note.map(Cow::Borrowed),
            refused: attempt.refusal.as_deref().filter(|_| n as usize != told).map(|refusal| {
                RefusedRecord { matched: matched(attempt), ..RefusedRecord::of(&refusal.headers) }
            }),
        });
        before = shown;
    }
    shorten(&mut list);
    list
}

/// What of a block page the answer to this attempt had, as long as other values are kept.
fn matched(attempt: &Attempt) -> Option<String> {
    let matched = attempt.refusal.as_deref()?.matched.as_deref()?;
    Some(matched.chars().take(LONGEST_VALUE).collect())
}

fn shorten(list: &mut Vec<AttemptRecord>) {
    if list.len() > ATTEMPTS_LISTED {
        let half = ATTEMPTS_LISTED / 2;
        list.drain(half..list.len() - half);
    }
}

impl ErrorRecord {
    pub(super) fn of(error: &AttemptError, given: &str, shown: &str) -> Self {
        let message = if given == shown || given.is_empty() {
            error.message.clone()
        } else {
            error.message.replace(given.trim(), shown)
        };
        Self {
            kind: Cow::Borrowed(error.kind.name()),
            requests_name: Cow::Borrowed(error.kind.requests_name_by(error.fault)),
            phase: Cow::Borrowed(error.phase.name()),
            fault: Cow::Borrowed(error.fault.name()),
            message,
        }
    }
}

impl TimingsRecord {
    pub(super) fn of(timings: &Timings) -> Self {
        Self {
            dns_ms: timings.dns.map(millis),
            connect_ms: timings.connect.map(millis),
            proxy_ms: timings.proxy.map(millis),
            tls_ms: timings.tls.map(millis),
            first_byte_ms: timings.first_byte.map(millis),
            total_ms: millis(timings.total),
        }
    }
}

impl RefusedRecord {
    fn of(headers: &HeaderMap) -> Self {
        let mut lossy = false;
        let mut text = |bytes: &[u8]| {
            let text = String::from_utf8_lossy(bytes);
            lossy |= matches!(text, Cow::Owned(_));
            text.chars().take(LONGEST_VALUE).collect::<String>()
        };
        let mut values = |name: &str| {
            let all: Vec<_> =
                headers.get_all(name).iter().map(|value| text(value.as_bytes())).collect();
            (!all.is_empty()).then(|| all.join(", "))
        };
        let (server, cf_ray, x_cache) = (values("server"), values("cf-ray"), values("x-cache"));
        let (via, retry_after) = (values("via"), values("retry-after"));
        let cookies = headers.get_all("set-cookie").iter();
        let set_cookie_names = cookies
            .map(|value| value.as_bytes().split(|byte| matches!(byte, b'=' | b';')).next())
            .map(|name| text(name.unwrap_or_default()).trim().to_owned())
            .collect();
        let matched = None;
        Self { matched, server, cf_ray, x_cache, via, retry_after, set_cookie_names, lossy }
    }
}

/// Milliseconds with the microseconds as decimals.
pub(super) fn millis(duration: Duration) -> f64 {
    duration.as_micros() as f64 / 1000.0
}

fn is_false(flag: &bool) -> bool {
    !flag
}

fn first_pass() -> u32 {
    1
}

fn is_first_pass(pass: &u32) -> bool {
    *pass == 1
}

#[cfg(test)]
pub(super) mod tests;
