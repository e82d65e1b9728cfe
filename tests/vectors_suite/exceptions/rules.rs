//! Which difference explains another answer, by what came out on both sides.

use http::Method;
use longhaul::error::{Fault, Phase};
use longhaul::policy::{Category, Decision, Outcome};
use longhaul::rng::Rng;
use longhaul::{ErrorKind, Retry};
use serde_json::Value;

use super::{End, Seen};
use crate::verdict::text;

/// The innermost exception that was wrapped, without what only caused it.
fn cause(out: &Value) -> &str {
    let mut wrapped = out["wrapped"].as_array().into_iter().flatten().map(text);
    wrapped.rfind(|name| !name.starts_with("cause:")).unwrap_or_default()
}

/// What may stand here for the exception within an exception; nothing where there was none.
///
/// Without this, one name of requests would cover a lookup, a reset and a page that is no HTTP.
pub(super) fn kinds_of(out: &Value) -> Option<&'static [ErrorKind]> {
    use ErrorKind as K;
    Some(match cause(out) {
        "NameResolutionError" => &[K::NameNotFound],
        "NewConnectionError" => &[K::Connection, K::ProxyUnreachable],
        "ConnectTimeoutError" => &[K::ConnectTimeout],
        "ReadTimeoutError" => &[K::ReadTimeout],
        "RemoteDisconnected" | "ConnectionResetError" => &[K::Connection, K::IncompleteBody],
        "BadStatusLine" => &[K::Protocol, K::Connection],
        "UnknownProtocol" => &[K::Protocol],
        "SSLCertVerificationError" => &[K::Certificate],
        "SSLError" | "SSLEOFError" => &[K::Ssl],
        "IncompleteRead" | "InvalidChunkLength" | "ProtocolError" => &[K::IncompleteBody],
        "DecodeError" | "error" => &[K::ContentDecoding],
        "ResponseError" => &[K::RetriesExhausted],
        // "Tunnel connection failed".
        "OSError" => &[K::ProxyRefused, K::ProxyAuth],
        "LocationValueError" | "ValueError" => &[K::InvalidUrl],
        _ => return None,
    })
}

/// Why something else came out.
pub(super) fn of_the_outcome(given: &Value, out: &Value, seen: &Seen) -> Option<&'static str> {
    let scenario = text(&given["scenario"]);
    let redirects = scenario.starts_with("redirect") || scenario.starts_with("post_307");
    match (&seen.end, text(&out["result"])) {
        // The counters of a policy hold for redirects too, and `total=False` permits none.
        (End::Response { status, .. }, _)
            if given["retries"] == "totalFalse" && redirects && (300..400).contains(status) =>
        {
            Some("budgets-span-redirects")
        }
        (End::Response { .. }, "response") => other_response(scenario, out),
        (End::Error { kind, phase, .. }, "response") => {
            error_for_response(scenario, out, *kind, *phase)
        }
        (End::Response { status, .. }, _) => response_for_exception(scenario, out, *status),
        (End::Error { kind, phase, fault, .. }, _) => other_exception(out, *kind, *phase, *fault),
    }
}

fn other_response(scenario: &str, out: &Value) -> Option<&'static str> {
    match scenario {
        _ if out["status"] == 103 => Some("interim"),
        // Listed, and so retried there.
        _ if out["status"] == 407 => Some("permanent-failures"),
        "keepalive_dropped_on_second_request" => Some("left-over-bytes"),
        "redirect_hop_gets_fresh_retry_budget" => Some("budgets-span-redirects"),
        _ => None,
    }
}

fn error_for_response(
    scenario: &str,
    out: &Value,
    kind: ErrorKind,
    phase: Phase,
) -> Option<&'static str> {
    use ErrorKind as K;
    match (kind, phase) {
        (K::Connection, Phase::Headers) => Some("truncated-head"),
        (K::Protocol, Phase::Headers) if scenario.contains("length") => Some("length-junk"),
        (K::IncompleteBody, _) if scenario.starts_with("tls_") => Some("tls-truncation"),
        (K::IncompleteBody, _) if scenario.starts_with("chunked_") => Some("chunk-ends"),
        (K::IncompleteBody, _) if out["redirects"] != 0 => Some("budgets-span-redirects"),
        (K::ContentDecoding, _) => Some("cut-coding"),
        (K::ConnectTimeout, _) => Some("one-connect-budget"),
        (K::ProxyAuth, Phase::Headers) if out["status"] == 407 => Some("forwarded-407"),
        (K::RetriesExhausted, _) if out["redirects"] != 0 => Some("budgets-span-redirects"),
        _ => None,
    }
}

fn response_for_exception(scenario: &str, out: &Value, status: u16) -> Option<&'static str> {
    match (text(&out["exception"]), cause(out)) {
        // Listed, and so retried there until it raises.
        ("RetryError", _) if status == 407 => Some("permanent-failures"),
        (_, "HTTPException") => Some("head-limits"),
        ("InvalidHeader", _) if scenario.starts_with("content_length") => Some("length-junk"),
        ("ContentDecodingError", _) => Some("bodyless-coding"),
        (_, "RemoteDisconnected") if scenario.starts_with("keepalive") => Some("free-resend"),
        (_, "ReadTimeoutError") if scenario.starts_with("redirect") => Some("redirect-bodies"),
        ("InvalidHeader" | "ValueError", _) if scenario.contains("retry_after") => {
            Some("unreadable-retry-after")
        }
        _ => None,
    }
}

fn other_exception(
    out: &Value,
    kind: ErrorKind,
    phase: Phase,
    fault: Fault,
) -> Option<&'static str> {
    use ErrorKind as K;
    Some(match (text(&out["exception"]), cause(out), kind) {
        ("UnicodeDecodeError", _, K::TooManyRedirects) => "location-bytes",
        ("ValueError", _, K::InvalidUrl) => "location-error",
        ("ValueError", _, K::RetriesExhausted) => "unreadable-retry-after",
        ("InvalidHeader", _, K::RetriesExhausted) => "unreadable-retry-after",
        _ if out["module"] != "requests" => "bare-exceptions",
        ("InvalidHeader", _, K::Protocol) => "length-junk",
        ("InvalidURL", _, K::InvalidProxyUrl) => "proxy-url-errors",
        ("RetryError", _, K::ProxyAuth) => "forwarded-407",
        (_, "LineTooLong", K::TooLarge) => "head-limits",
        (_, "TimeoutError" | "ProtocolError", K::ReadTimeout) if phase == Phase::Send => {
            "send-timeout"
        }
        ("ConnectionError", "ReadTimeoutError", K::ReadTimeout) => "steady-kinds",
        ("ProxyError", _, K::ConnectTimeout | K::Ssl | K::Certificate) if fault == Fault::Proxy => {
            "proxy-fault"
        }
        ("ProxyError", "OSError", K::ConnectTimeout) if phase == Phase::Tls => "connect-2xx",
        ("ProxyError", "RemoteDisconnected", K::Connection) => "behind-the-proxy",
        (_, "ReadTimeoutError", K::ConnectTimeout) => "one-connect-budget",
        (_, "ReadTimeoutError", K::Ssl) => "tunnel-bytes",
        ("ConnectionError", _, K::ProxyUnreachable | K::ProxyRefused | K::ProxyAuth) => {
            "proxy-handshake"
        }
        ("ChunkedEncodingError", _, K::Connection) if phase == Phase::Headers => "truncated-head",
        _ => return None,
    })
}

/// Why the server saw another number of attempts.
///
/// Of a failure the policy itself says how many there have to be, and a rule holds only where it
/// was that many.
pub(super) fn of_the_attempts(
    given: &Value,
    out: &Value,
    seen: &Seen,
    policy: &Retry,
    method: &Method,
    whole: bool,
) -> Option<&'static str> {
    let answer = of_the_outcome(given, out, seen);
    let End::Error { kind, phase, .. } = seen.end else { return answer };
    let (connections, _) = seen.counts?;
    if matches!(kind, ErrorKind::RetriesExhausted | ErrorKind::TooManyRedirects)
        || answer == Some("budgets-span-redirects")
    {
        return answer;
    }
    let outcome = Outcome::of_error(kind, phase, None);
    // In stream mode nobody is left to retry what happens in a body.
    let once = !whole && phase == Phase::Body;
    if connections != if once { 1 } else { attempts(policy, method, &outcome) } {
        return None;
    }
    match outcome {
        Outcome::Error { permanent: true, .. } => match kind {
            ErrorKind::TooLarge => Some("head-limits"),
            ErrorKind::ProxyAuth if phase == Phase::Headers => Some("forwarded-407"),
            _ => Some("permanent-failures"),
        },
        _ if whole && phase == Phase::Body => Some("body-failures-are-read-errors"),
        Outcome::Error { category, .. }
            if out["result"] != "response" && category != urllib3s_category(out) =>
        {
            Some("category-by-phase")
        }
        _ => answer.filter(|name| !NAMES_ALONE.contains(name)),
    }
}

/// Differences in what a failure is called, which change no number of attempts.
const NAMES_ALONE: &[&str] = &[
    "bare-exceptions",
    "behind-the-proxy",
    "proxy-fault",
    "proxy-handshake",
    "proxy-url-errors",
    "send-timeout",
    "steady-kinds",
];

/// How many attempts a policy makes where each ends like this.
fn attempts(policy: &Retry, method: &Method, outcome: &Outcome) -> u64 {
    let (mut state, mut attempts) = (policy.start(), 1);
    while let Decision::Retry { .. } = state.decide(method, outcome, &mut Rng::seeded(0)) {
        attempts += 1;
    }
    attempts
}

/// What urllib3 charges the exception to: connecting by its class, reading where it is a
/// `ProtocolError` or a timeout, and all else to `other`.
fn urllib3s_category(out: &Value) -> Category {
    match cause(out) {
        "NewConnectionError" | "NameResolutionError" | "ConnectTimeoutError" => Category::Connect,
        _ if out["exception"] == "ProxyError" || out["exception"] == "SSLError" => Category::Other,
        _ => Category::Read,
    }
}
