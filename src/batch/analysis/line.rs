//! What a report reads of a record.
//!
//! A report of a million records is read in seconds or not at all, so a line is not turned into a
//! [`Record`] with a string for each of its names. What is wanted is borrowed from the line, and the
//! rest (messages, bodies, meta) is passed over. What takes its time and needs nobody else is done
//! here too, beside the counting: the host of the URL and the time of its end.

use super::super::record::{AttemptRecord, Record, RefusedRecord};
use serde::Deserialize;
use std::borrow::Cow;
use std::time::{Duration, SystemTime};
use url::Url;

/// What the host of something that is no URL is called.
const NO_HOST: &str = "(no URL)";

/// A record with what is told apart from it.
#[derive(Debug)]
pub(super) struct Decoded<'a> {
    pub(super) line: Line<'a>,
    /// Host and port of the URL; the port only where it is not the usual one.
    pub(super) host: String,
    /// When it ended, since 1970; `None` where that is no time.
    pub(super) ended: Option<Duration>,
}

impl<'a> Decoded<'a> {
    pub(super) fn of(line: Line<'a>) -> Self {
        let host = host(&line.url);
        let ended = humantime::parse_rfc3339(&line.at).ok();
        let ended = ended.and_then(|at| at.duration_since(SystemTime::UNIX_EPOCH).ok());
        Self { line, host, ended }
    }
}

/// The host that a URL asks, as its requests name it.
pub(super) fn host(url: &str) -> String {
    let parsed = Url::parse(url).ok();
    let host = parsed.as_ref().and_then(|url| Some((url.host_str()?, url.port())));
    match host {
        Some((host, Some(port))) => format!("{host}:{port}"),
        Some((host, None)) => host.to_owned(),
        None => NO_HOST.to_owned(),
    }
}

/// A text that is borrowed where its line has it as it is.
#[derive(Debug, Deserialize)]
#[serde(transparent)]
pub(super) struct Text<'a>(#[serde(borrow)] Cow<'a, str>);

impl std::ops::Deref for Text<'_> {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl<'a> From<&'a str> for Text<'a> {
    fn from(text: &'a str) -> Self {
        Self(Cow::Borrowed(text))
    }
}

/// A record.
#[derive(Debug, Deserialize)]
pub(super) struct Line<'a> {
    pub(super) v: u32,
    #[serde(borrow)]
    pub(super) id: Text<'a>,
    #[serde(borrow)]
    pub(super) url: Text<'a>,
    pub(super) status: Option<u16>,
    pub(super) ok: bool,
    #[serde(borrow)]
    pub(super) class: Text<'a>,
    #[serde(borrow)]
    pub(super) error: Option<LineError<'a>>,
    #[serde(borrow)]
    pub(super) attempts: Vec<LineAttempt<'a>>,
    #[serde(borrow)]
    pub(super) proxy: Option<Text<'a>>,
    #[serde(borrow)]
    pub(super) exit: Option<Text<'a>>,
    pub(super) bytes_wire: u64,
    pub(super) bytes_body: u64,
    pub(super) elapsed_ms: f64,
    pub(super) timings: Option<LineTimings>,
    pub(super) pass: u32,
    #[serde(borrow)]
    pub(super) at: Text<'a>,
    pub(super) promised_ms: Option<f64>,
    #[serde(borrow)]
    pub(super) refused: Option<LineRefused<'a>>,
}

/// A failure.
#[derive(Debug, Deserialize)]
pub(super) struct LineError<'a> {
    #[serde(borrow)]
    pub(super) requests_name: Text<'a>,
}

/// An attempt.
#[derive(Debug, Deserialize)]
pub(super) struct LineAttempt<'a> {
    pub(super) n: u32,
    #[serde(default = "first_pass")]
    pub(super) pass: u32,
    #[serde(borrow)]
    pub(super) url: Option<Text<'a>>,
    #[serde(borrow)]
    pub(super) proxy: Option<Text<'a>>,
    #[serde(borrow)]
    pub(super) exit: Option<Text<'a>>,
    pub(super) status: Option<u16>,
    #[serde(borrow)]
    pub(super) error: Option<LineError<'a>>,
    pub(super) elapsed_ms: f64,
    pub(super) wait_ms: Option<f64>,
    #[serde(borrow)]
    pub(super) wait_reason: Option<Text<'a>>,
    #[serde(borrow)]
    pub(super) refused: Option<LineRefused<'a>>,
}

/// The phases of an attempt.
#[derive(Debug, Clone, Copy, Deserialize)]
pub(super) struct LineTimings {
    pub(super) dns_ms: Option<f64>,
    pub(super) connect_ms: Option<f64>,
    pub(super) proxy_ms: Option<f64>,
    pub(super) tls_ms: Option<f64>,
    pub(super) first_byte_ms: Option<f64>,
    pub(super) total_ms: f64,
}

/// What tells of a refusal.
#[derive(Debug, Deserialize)]
pub(super) struct LineRefused<'a> {
    #[serde(borrow)]
    pub(super) matched: Option<Text<'a>>,
    #[serde(borrow)]
    pub(super) server: Option<Text<'a>>,
    #[serde(borrow)]
    pub(super) cf_ray: Option<Text<'a>>,
    #[serde(borrow)]
    pub(super) x_cache: Option<Text<'a>>,
    #[serde(borrow)]
    pub(super) via: Option<Text<'a>>,
    #[serde(borrow)]
    pub(super) retry_after: Option<Text<'a>>,
    #[serde(borrow)]
    pub(super) set_cookie_names: Vec<Text<'a>>,
}

fn first_pass() -> u32 {
    1
}

fn text(text: &Option<String>) -> Option<Text<'_>> {
    text.as_deref().map(Text::from)
}

impl<'a> From<&'a Record> for Line<'a> {
    fn from(record: &'a Record) -> Self {
        Self {
            v: record.v,
            id: Text::from(&*record.id),
            url: Text::from(&*record.url),
            status: record.status,
            ok: record.ok,
            class: Text::from(&*record.class),
            error: record
                .error
                .as_ref()
                .map(|error| LineError { requests_name: Text::from(&*error.requests_name) }),
            attempts: record.attempts.iter().map(LineAttempt::from).collect(),
            proxy: text(&record.proxy),
            exit: text(&record.exit),
            bytes_wire: record.bytes_wire,
            bytes_body: record.bytes_body,
            elapsed_ms: record.elapsed_ms,
            timings: record.timings.as_ref().map(|timings| LineTimings {
                dns_ms: timings.dns_ms,
                connect_ms: timings.connect_ms,
                proxy_ms: timings.proxy_ms,
                tls_ms: timings.tls_ms,
                first_byte_ms: timings.first_byte_ms,
                total_ms: timings.total_ms,
            }),
            pass: record.pass,
            at: Text::from(&*record.at),
            promised_ms: record.promised_ms,
            refused: record.refused.as_ref().map(LineRefused::from),
        }
    }
}

impl<'a> From<&'a AttemptRecord> for LineAttempt<'a> {
    fn from(attempt: &'a AttemptRecord) -> Self {
        Self {
            n: attempt.n,
            pass: attempt.pass,
            url: text(&attempt.url),
            proxy: text(&attempt.proxy),
            exit: text(&attempt.exit),
            status: attempt.status,
            error: attempt
                .error
                .as_ref()
                .map(|error| LineError { requests_name: Text::from(&*error.requests_name) }),
            elapsed_ms: attempt.elapsed_ms,
            wait_ms: attempt.wait_ms,
            wait_reason: attempt.wait_reason.as_deref().map(Text::from),
            refused: attempt.refused.as_ref().map(LineRefused::from),
        }
    }
}

impl<'a> From<&'a RefusedRecord> for LineRefused<'a> {
    fn from(refused: &'a RefusedRecord) -> Self {
        Self {
            matched: text(&refused.matched),
            server: text(&refused.server),
            cf_ray: text(&refused.cf_ray),
            x_cache: text(&refused.x_cache),
            via: text(&refused.via),
            retry_after: text(&refused.retry_after),
            set_cookie_names: refused
                .set_cookie_names
                .iter()
                .map(|name| (&**name).into())
                .collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_of_urls() {
        for (url, wanted) in [
            ("http://Example.com/a", "example.com"),
            ("https://example.com:443/", "example.com"),
            ("http://[::1]:8080/?q", "[::1]:8080"),
            ("http://münchen.example/", "xn--mnchen-3ya.example"),
            ("not a URL", NO_HOST),
            ("data:,x", NO_HOST),
        ] {
            assert_eq!(host(url), wanted, "{url}");
        }
    }
}
