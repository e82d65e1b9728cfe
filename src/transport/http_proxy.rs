//! CONNECT: asking an HTTP proxy for a tunnel.
//!
//! A refusal is kept as it came (status, reason, fields, the beginning of its body), since what to
//! do about it depends on it: 407 stops a batch, 429 and 503 cool the proxy down, 502 says that
//! this exit cannot reach the target, 403 that it will not. Any 2xx opens the tunnel, and the
//! fields `Content-Length` and `Transfer-Encoding` of such a reply mean nothing (RFC 9110, 9.3.6).
//!
//! The request tells the proxy where to connect and who asks, and nothing else: the `User-Agent`
//! of the request that will follow, the credentials, and the fields that are meant for it.

use super::connect::{Target, handshake_failed};
use super::head::{self, Head, MAX_HEAD, MAX_INTERIM, Scan, Scanner};
use super::request_head::{write_field, write_proxy_fields};
use super::stream::Stream;
use super::trace::{Event, Trace, TracedHead};
use super::wait::Wait;
use crate::error::{Error, ErrorKind, Fault, Phase, ProxyReply};
use crate::policy::RetryAfter;
use crate::proxy::{ProxyUrl, Route};
use http::header::CONTENT_LENGTH;
use std::io;
use std::time::{Duration, SystemTime};

/// How much of a refusal's body is kept.
const REFUSAL: usize = 1024;
/// How long the body of a refusal is waited for.
const REFUSAL_WAIT: Duration = Duration::from_millis(200);

/// Opens a tunnel to the target on a stream to the proxy.
pub(super) fn connect(
    stream: &mut Stream,
    target: &Target<'_>,
    route: &Route,
    user_agent: Option<&[u8]>,
    wait: &Wait<'_>,
    trace: &Trace,
) -> Result<(), Error> {
    let mut request = Vec::with_capacity(256);
    let authority = target.authority();
    request.extend_from_slice(b"CONNECT ");
    request.extend_from_slice(authority.as_bytes());
    request.extend_from_slice(b" HTTP/1.1\r\n");
    write_field(&mut request, "Host", authority.as_bytes())?;
    if let Some(user_agent) = user_agent {
        write_field(&mut request, "User-Agent", user_agent)?;
    }
    write_proxy_fields(&mut request, route)?;
    request.extend_from_slice(b"\r\n");
    trace.tell(|| Event::Connect(TracedHead::new(&request)));
    if let Err(error) = stream.write_all(&[&request], wait, false, &mut 0) {
        return Err(handshake_failed(error, stream));
    }

    let (head, rest) = read_reply(stream, wait, trace)?;
    if (200..300).contains(&head.status) {
        // The target may have spoken already.
        stream.unread(&rest);
        return Ok(());
    }
    let body = read_refusal(stream, &head, rest, wait);
    Err(refused(head, body, route, Phase::Proxy, wait.wall()))
}

/// Reads the final reply; what was read beyond it comes with it.
fn read_reply(
    stream: &mut Stream,
    wait: &Wait<'_>,
    trace: &Trace,
) -> Result<(Head, Vec<u8>), Error> {
    let mut bytes = Vec::new();
    let mut scanner = Scanner::default();
    let mut interim = 0;
    loop {
        match scanner.scan(&bytes) {
            Scan::Skip(blank) => drop(bytes.drain(..blank)),
            Scan::NotHttp => {
                let error = head::not_http(&bytes, true);
                return Err(match error.fault() {
                    Fault::Proxy => unreachable(error.message().to_owned()),
                    _ => broken_reply(&error),
                });
            }
            Scan::Complete(length) if length > MAX_HEAD => return Err(flood()),
            Scan::Complete(length) => {
                let rest = bytes.split_off(length);
                trace.tell(|| Event::ConnectReply(TracedHead::new(&bytes)));
                let head = head::parse(&bytes, scanner.lines(), true)
                    .map_err(|error| broken_reply(&error))?;
                // 101 would be a tunnel of another kind; here it is one more interim reply.
                if !(100..200).contains(&head.status) {
                    return Ok((head, rest));
                }
                interim += 1;
                if interim > MAX_INTERIM {
                    let what = format!("more than {MAX_INTERIM} interim replies came first");
                    return Err(unreachable(format!("the proxy's reply does not come: {what}")));
                }
                bytes = rest;
                scanner = Scanner::default();
            }
            Scan::Partial => {
                if bytes.len() > MAX_HEAD {
                    return Err(flood());
                }
                let mut piece = [0; 2048];
                match stream.read(&mut piece, wait) {
                    Ok(0) => {
                        let error = io::Error::from(io::ErrorKind::UnexpectedEof);
                        return Err(handshake_failed(error, stream));
                    }
                    Ok(amount) => bytes.extend_from_slice(piece.get(..amount).unwrap_or_default()),
                    Err(error) => return Err(handshake_failed(error, stream)),
                }
            }
        }
    }
}

/// The beginning of a refusal's body, as far as it comes at once.
fn read_refusal(stream: &mut Stream, head: &Head, start: Vec<u8>, wait: &Wait<'_>) -> Vec<u8> {
    let length = head.headers.get(CONTENT_LENGTH);
    let length = length.and_then(|value| value.to_str().ok()?.trim().parse::<usize>().ok());
    let most = length.map_or(REFUSAL, |length| length.min(REFUSAL));
    let wait = wait.at_most(REFUSAL_WAIT);
    let mut body = start;
    while body.len() < most {
        let mut piece = [0; REFUSAL];
        match stream.read(&mut piece, &wait) {
            Ok(0) | Err(_) => break,
            Ok(amount) => body.extend_from_slice(piece.get(..amount).unwrap_or_default()),
        }
    }
    body.truncate(most);
    body
}

/// The error of a refusal, also for a 407 to a request that the proxy was to fetch.
///
/// Some proxies (tinyproxy) answer credentials that are wrong, rather than absent, with 401. To a
/// CONNECT nobody but the proxy can answer, so there a 401 is a 407 by another name. To a forwarded
/// request it could as well be the word of the target, and stays a response.
pub(super) fn refused(
    head: Head,
    body: Vec<u8>,
    route: &Route,
    phase: Phase,
    wall: SystemTime,
) -> Error {
    let proxy = route.proxy.as_deref();
    let line = match proxy {
        Some(proxy) if proxy.gives_away(&head.reason) => format!("{} ***", head.status),
        _ => format!("{} {}", head.status, head.reason),
    };
    let line = line.trim_end();
    let is_auth = head.status == 407 || (head.status == 401 && phase == Phase::Proxy);
    let has_credentials = proxy.and_then(ProxyUrl::credentials).is_some();
    let (kind, what) = match (is_auth, has_credentials) {
        (true, true) => (ErrorKind::ProxyAuth, "does not accept the credentials"),
        (true, false) => (ErrorKind::ProxyAuth, "wants credentials and its URL has none"),
        (false, _) => (ErrorKind::ProxyRefused, "refused the tunnel"),
    };
    let message = format!("the proxy {what}: {line}");
    let retry_after = RetryAfter::of(&head.headers, wall);
    Error::new(kind, phase, Fault::Proxy, message)
        // Whatever the proxy was asked, the target has seen nothing of it.
        .with_unsent(true)
        .with_retry_after(retry_after)
        .with_proxy_reply(ProxyReply {
            code: head.status,
            socks: false,
            reason: head.reason,
            headers: head.headers,
            body: body.into(),
        })
}

fn broken_reply(error: &Error) -> Error {
    let reason = error.message().replacen("the response is", "the reply is", 1);
    unreachable(format!("the proxy does not speak HTTP as it should: {reason}"))
}

fn flood() -> Error {
    let most = MAX_HEAD / 1024;
    unreachable(format!("the proxy's reply to CONNECT is longer than {most} KiB"))
}

fn unreachable(message: String) -> Error {
    Error::new(ErrorKind::ProxyUnreachable, Phase::Proxy, Fault::Proxy, message)
}
