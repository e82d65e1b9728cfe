//! What is said on standard error: pure functions from what happened to text.

use longhaul::Response;
use longhaul::error::{Attempt, Error, ErrorKind, Phase, WaitReason};
use longhaul::message::{ConnectionFacts, Timings};
use longhaul::policy::format_duration;
use longhaul::session::Downloaded;
use longhaul::transport::TracedHead;
use std::fmt::Write as _;
use std::time::Duration;

/// The line before a wait: what was in vain, and until when nothing happens.
pub(super) fn waiting(made: &[Attempt], left: Duration, reason: WaitReason) -> String {
    // What is left of it is a millisecond less, which is neither here nor there.
    let wait = made.last().and_then(|last| last.wait).map_or(left, |(wait, _)| wait);
    let wait = format_duration(wait);
    let reason = match reason {
        WaitReason::Backoff => "",
        WaitReason::RetryAfter => ", as Retry-After asks",
        WaitReason::Cooldown => ", as the host cools down",
        WaitReason::Limit => ", as a limit is reached",
        WaitReason::NoProxy => ", as no proxy is usable",
        WaitReason::Refused => ", as it was refused",
        _ => ", for a reason of its own",
    };
    match made.last() {
        Some(last) => {
            let outcome = outcome(last);
            format!("longhaul: attempt {}: {outcome}; again in {wait}{reason}", made.len())
        }
        None => format!("longhaul: waiting for {wait}{reason}"),
    }
}

/// What came of an attempt.
fn outcome(attempt: &Attempt) -> String {
    match (&attempt.error, attempt.status) {
        (Some(error), _) => error.message.clone(),
        (None, Some(status)) => format!("status {status}"),
        (None, None) => "nothing came of it".to_owned(),
    }
}

/// The failure, and what can be done about it.
pub(super) fn failure(error: &Error) -> String {
    let mut text = format!("longhaul: failed: {error}\n");
    let _ = write!(
        text,
        "longhaul: {} in phase {}, {}; in requests {}",
        error.kind(),
        error.phase(),
        match error.fault().name() {
            "local" => "on this side".to_owned(),
            who => format!("by the {who}"),
        },
        error.requests_name()
    );
    let made = error.attempts().len();
    if made > 1 {
        let _ = write!(text, "; {made} attempts");
    }
    if let Some(advice) = advice(error) {
        let _ = write!(text, "\nlonghaul: {advice}");
    }
    text
}

/// What the proxy had to say, as far as it is kept.
pub(super) fn reply_of_proxy(error: &Error) -> Option<String> {
    let reply = error.proxy_reply().filter(|reply| !reply.body.is_empty())?;
    let lines = TracedHead::new(&reply.body).lines().map(|line| format!("* | {line}"));
    Some(
        ["* what the proxy says:".to_owned()]
            .into_iter()
            .chain(lines)
            .collect::<Vec<_>>()
            .join("\n"),
    )
}

/// What to try next; `docs/errors.md` has more words.
fn advice(error: &Error) -> Option<&'static str> {
    Some(match error.kind() {
        ErrorKind::ConnectTimeout if error.phase() == Phase::Tls && !error.is_proxy() => {
            "raise --connect-timeout; or there is no TLS at this port, try http://"
        }
        ErrorKind::ConnectTimeout if error.is_proxy() => {
            "the proxy or its exit is slow; raise --connect-timeout, or ask `longhaul check`"
        }
        ErrorKind::ConnectTimeout => {
            "raise --connect-timeout, or look whether a firewall swallows the packets"
        }
        ErrorKind::ReadTimeout => "raise --read-timeout if the server thinks for so long",
        ErrorKind::Deadline => "raise --deadline, or take it away with --deadline none",
        ErrorKind::NameNotFound => "look at the spelling of the host",
        ErrorKind::NameLookup => "the resolver of this machine has no answer now; ask again later",
        ErrorKind::Connection if error.is_unsent() => {
            "nobody listens there, or a firewall refuses; look at host and port"
        }
        ErrorKind::Connection => "the other end closed; -v shows what it was sent",
        ErrorKind::ProxyUnreachable => {
            "look at host, port and scheme of the proxy; `longhaul check` finds the right scheme"
        }
        ErrorKind::ProxyRefused => "the proxy does not want this target; -v shows its reply",
        ErrorKind::ProxyAuth => "correct user and password in -x user:password@host:port",
        ErrorKind::NoProxyAlive => {
            "no proxy is left; `longhaul check` tells what is wrong with them"
        }
        ErrorKind::ProxyRequired => "give a proxy for this scheme with -x",
        ErrorKind::Certificate => {
            "give the authority with --cacert FILE, or look the other way with --insecure"
        }
        ErrorKind::Ssl => "perhaps there is no TLS at this port; try http://",
        ErrorKind::Protocol => "perhaps this port speaks TLS, try https://; or it is no web server",
        ErrorKind::TooLarge => "raise --max-body",
        ErrorKind::TooManyRedirects => {
            "raise --total and --redirect, or look at the redirect itself with --redirect off -i"
        }
        ErrorKind::IncompleteBody => "what came is not complete; ask again",
        _ => return None,
    })
}

/// What is told at the end with `-v`: every hop with its phases, and the attempts, where there was
/// more than one.
pub(super) fn summary(response: &Response, body: u64, reading: Duration) -> String {
    let mut text = String::new();
    for hop in response.history() {
        let _ = writeln!(text, "* {} {}: {}", hop.status(), hop.url(), phases(&hop.timings()));
    }
    let mut timings = response.timings();
    timings.total += reading;
    let _ = writeln!(text, "* {} {}: {}", response.status(), response.url(), phases(&timings));
    let _ = writeln!(text, "* {}", connection(response.connection()));
    text.push_str(&attempts(response.attempts()));
    let _ = write!(
        text,
        "* {} {}, {body} bytes, in {}",
        response.status(),
        response.reason(),
        milliseconds(response.elapsed() + reading)
    );
    text
}

/// The same of a file that was fetched with `--continue`.
pub(super) fn downloaded(file: &Downloaded, took: Duration) -> String {
    let (bytes, before) = (file.bytes, file.resumed_from);
    let history = attempts(&file.attempts);
    let before = match before {
        0 => String::new(),
        _ => format!(", {before} of them from before"),
    };
    format!("{history}* {} bytes{before}, in {}", bytes, milliseconds(took))
}

/// The history, where it is more than one line.
pub(super) fn attempts(made: &[Attempt]) -> String {
    let mut text = String::new();
    if made.len() < 2 {
        return text;
    }
    for (number, attempt) in made.iter().enumerate() {
        let _ = write!(text, "* attempt {}: {} {}", number + 1, attempt.method, attempt.url);
        if let Some(proxy) = &attempt.proxy {
            let _ = write!(text, " through {proxy}");
        }
        let _ = write!(text, ": {} after {}", outcome(attempt), milliseconds(attempt.elapsed));
        if let Some((wait, reason)) = attempt.wait {
            let _ = write!(text, ", then {} of {}", milliseconds(wait), reason.name());
        }
        if let Some(note) = attempt.note {
            let _ = write!(text, " ({note})");
        }
        text.push('\n');
    }
    text
}

fn phases(timings: &Timings) -> String {
    let phases = [
        ("dns", timings.dns),
        ("connect", timings.connect),
        ("proxy", timings.proxy),
        ("tls", timings.tls),
        ("first byte", timings.first_byte),
        ("total", Some(timings.total)),
    ];
    let shown =
        phases.iter().filter_map(|(name, took)| Some(format!("{name} {}", milliseconds((*took)?))));
    shown.collect::<Vec<_>>().join(", ")
}

fn connection(facts: &ConnectionFacts) -> String {
    let mut text = if facts.reused { "reused" } else { "new" }.to_owned();
    text.push_str(" connection");
    if let (Some(local), Some(peer)) = (facts.local, facts.peer) {
        let _ = write!(text, ", {local} to {peer}");
    }
    if let Some(tls) = &facts.tls {
        let _ = write!(text, ", {tls}");
    }
    let _ = write!(text, ", {} bytes sent", facts.sent_bytes);
    text
}

fn milliseconds(time: Duration) -> String {
    format!("{:.1} ms", time.as_secs_f64() * 1000.0)
}
