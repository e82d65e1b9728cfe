//! What went wrong below, in the words of [`Error`].
//!
//! Phase and fault are handed in by whoever was at work; nothing is read out of a message. The
//! errors of our own transport travel through ureq inside of [`ureq::Error::Other`] and are taken
//! out unchanged. What is left to map is what ureq itself has to say: that a message is malformed,
//! or that it ended too soon.

use super::stream::is_broken;
use super::tls::Failure;
use super::wait::{Expired, Expiry};
use crate::error::{Error, ErrorKind, Fault, Phase};
use std::io;

/// The error of a wait that ran out.
pub(super) fn timeout(error: &io::Error, phase: Phase, fault: Fault) -> Error {
    let (kind, message) = match (Expired::of(error), phase) {
        (Some(Expiry::Connect), Phase::Dns) => {
            (ErrorKind::ConnectTimeout, "the name was not looked up within the connect timeout")
        }
        (Some(Expiry::Connect), Phase::Proxy) => (
            ErrorKind::ConnectTimeout,
            "the handshake with the proxy did not end within the connect timeout",
        ),
        (Some(Expiry::Connect), Phase::Tls) => {
            (ErrorKind::ConnectTimeout, "the TLS handshake did not end within the connect timeout")
        }
        (Some(Expiry::Connect), _) => {
            (ErrorKind::ConnectTimeout, "no connection within the connect timeout")
        }
        (Some(Expiry::Read), Phase::Send) => {
            (ErrorKind::ReadTimeout, "the peer took no byte of the request within the read timeout")
        }
        (Some(Expiry::Read), Phase::Body) => {
            (ErrorKind::ReadTimeout, "no further byte of the body within the read timeout")
        }
        (Some(Expiry::Read), _) => {
            (ErrorKind::ReadTimeout, "no byte of the response within the read timeout")
        }
        (Some(Expiry::Deadline) | None, Phase::Prepare) => {
            (ErrorKind::Deadline, "the deadline had passed before the attempt")
        }
        (Some(Expiry::Deadline) | None, Phase::Dns | Phase::Connect) => {
            (ErrorKind::Deadline, "the deadline passed before a connection stood")
        }
        (Some(Expiry::Deadline) | None, Phase::Proxy) => {
            (ErrorKind::Deadline, "the deadline passed in the handshake with the proxy")
        }
        (Some(Expiry::Deadline) | None, Phase::Tls) => {
            (ErrorKind::Deadline, "the deadline passed in the TLS handshake")
        }
        (Some(Expiry::Deadline) | None, Phase::Send) => {
            (ErrorKind::Deadline, "the deadline passed while the request was sent")
        }
        (Some(Expiry::Deadline) | None, Phase::Headers) => {
            (ErrorKind::Deadline, "the deadline passed before the response")
        }
        (Some(Expiry::Deadline) | None, Phase::Body) => {
            (ErrorKind::Deadline, "the deadline passed in the middle of the body")
        }
    };
    Error::new(kind, phase, fault, message)
}

/// The error of connections that were cut on purpose.
pub(super) fn cancelled(phase: Phase) -> Error {
    Error::new(ErrorKind::Cancelled, phase, Fault::Local, "all connections were cut by a stop")
}

/// The error of a call on a connection that stood.
pub(super) fn exchange(error: io::Error, phase: Phase) -> Error {
    if Expired::of(&error).is_some() {
        return timeout(&error, phase, Fault::Target);
    }
    if error.get_ref().is_some_and(<dyn std::error::Error + Send + Sync>::is::<Error>) {
        return Error::from_io(error, phase, Fault::Target);
    }
    let failure = Failure::of(&error);
    let kind = match phase {
        Phase::Body => ErrorKind::IncompleteBody,
        _ if failure.is_some() => ErrorKind::Ssl,
        _ => ErrorKind::Connection,
    };
    let what = match phase {
        Phase::Send => "while the request was sent",
        Phase::Headers => "before the response was complete",
        _ => "in the middle of the body",
    };
    let fault = failure.map_or(Fault::Target, |failure| failure.fault);
    let message = match failure {
        Some(reason) => format!("TLS failed {what}: {reason}"),
        None if error.kind() == io::ErrorKind::UnexpectedEof => {
            format!("the connection ended {what} without the word of TLS that it should")
        }
        None if is_broken(&error) => format!("the connection broke {what}: {error}"),
        None => format!("the connection failed {what}: {error}"),
    };
    Error::new(kind, phase, fault, message).with_source(error)
}

/// What ureq says of a response, or what our transport said through it.
pub(super) fn from_ureq(error: ureq::Error, phase: Phase) -> Error {
    let error = match error {
        ureq::Error::Other(inner) => match inner.downcast::<Error>() {
            Ok(ours) => return *ours,
            Err(inner) => ureq::Error::Other(inner),
        },
        other => other,
    };
    let body = phase == Phase::Body;
    let (kind, message) = match &error {
        ureq::Error::Io(io) if io.kind() == io::ErrorKind::UnexpectedEof && body => (
            ErrorKind::IncompleteBody,
            "the connection was closed before the body was complete".to_owned(),
        ),
        ureq::Error::BodyStalled => {
            (ErrorKind::IncompleteBody, "the body ends in the middle of a chunk".to_owned())
        }
        ureq::Error::Protocol(reason) if body => {
            (ErrorKind::IncompleteBody, format!("the body is malformed: {reason}"))
        }
        ureq::Error::Protocol(reason) => {
            (ErrorKind::Protocol, format!("the response is malformed: {reason}"))
        }
        other => (ErrorKind::Internal, format!("the engine failed: {other}")),
    };
    let fault = if kind == ErrorKind::Internal { Fault::Local } else { Fault::Target };
    Error::new(kind, phase, fault, message).with_source(error)
}

/// What came out of a body reader of ureq.
pub(super) fn from_body(error: io::Error) -> Error {
    match error.downcast::<ureq::Error>() {
        Ok(error) => from_ureq(error, Phase::Body),
        Err(error) => from_ureq(ureq::Error::Io(error), Phase::Body),
    }
}
