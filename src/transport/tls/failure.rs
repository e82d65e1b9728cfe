//! What went wrong in TLS, and what would help, in words.
//!
//! TLS says much with few words, and what it says is about one of two peers: inside of TLS to a
//! proxy there may be TLS to the target. So a [`Failure`] carries whom it is about from the layer
//! where it happened, and the words follow from the reason, from whether the peer had asked for a
//! client certificate, and from the versions that were offered.

use super::Asked;
use super::roots::SelfSigned;
use crate::error::{Error, ErrorKind, Fault, Phase};
use crate::transport::stream::Stream;
use rustls::{AlertDescription as Alert, CertificateError, PeerIncompatible};
use rustls::{ProtocolVersion, SupportedProtocolVersion};
use std::fmt;
use std::io;

/// How many names of a certificate are shown; some hold hundreds.
const NAMES: usize = 5;

/// What TLS complained about, and with whom it was spoken.
#[derive(Debug)]
pub(in crate::transport) struct Failure {
    pub(in crate::transport) reason: rustls::Error,
    pub(in crate::transport) fault: Fault,
}

impl Failure {
    /// As an I/O error, for the streams.
    pub(in crate::transport) fn io(reason: rustls::Error, fault: Fault) -> io::Error {
        io::Error::new(io::ErrorKind::InvalidData, Self { reason, fault })
    }

    /// The failure inside of an I/O error.
    pub(in crate::transport) fn of(error: &io::Error) -> Option<&Self> {
        error.get_ref()?.downcast_ref()
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.reason.fmt(f)
    }
}

impl std::error::Error for Failure {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.reason)
    }
}

/// The error of a handshake that failed.
pub(super) fn in_handshake(
    error: io::Error,
    fault: Fault,
    stream: &Stream,
    offered: &[&SupportedProtocolVersion],
) -> Error {
    if let Some(refusal) = refused_late(&error, stream) {
        return refusal.with_source(error);
    }
    // The layer below may have failed: the proxy's, under the handshake with the target.
    let fault = Failure::of(&error).map_or(fault, |failure| failure.fault);
    let who = name(fault);
    let (kind, message) = match Failure::of(&error).map(|failure| &failure.reason) {
        Some(rustls::Error::InvalidCertificate(reason)) => {
            (ErrorKind::Certificate, certificate(who, reason))
        }
        Some(rustls::Error::NoCertificatesPresented) => {
            (ErrorKind::Certificate, format!("{who} presented no certificate"))
        }
        Some(rustls::Error::InvalidMessage(_)) => (
            ErrorKind::Ssl,
            format!(
                "{who} does not speak TLS on this port; it may be meant for http: write http:// {}",
                if fault == Fault::Proxy { "in front of the proxy" } else { "in the URL" }
            ),
        ),
        Some(rustls::Error::AlertReceived(Alert::ProtocolVersion)) => {
            (ErrorKind::Ssl, no_common_version(who, offered))
        }
        Some(rustls::Error::AlertReceived(alert)) => (ErrorKind::Ssl, broken_off(who, *alert)),
        Some(rustls::Error::PeerIncompatible(reason)) => {
            use PeerIncompatible as P;
            let message = match reason {
                P::ServerDoesNotSupportTls12Or13
                | P::ServerTlsVersionIsDisabledByOurConfig
                | P::Tls12NotOffered
                | P::Tls12NotOfferedOrEnabled => no_common_version(who, offered),
                other => {
                    format!("{who} and this client have too little of TLS in common: {other:?}")
                }
            };
            (ErrorKind::Ssl, message)
        }
        Some(other) => (ErrorKind::Ssl, format!("the TLS handshake with {who} failed: {other}")),
        None if error.kind() == io::ErrorKind::UnexpectedEof => (
            ErrorKind::Ssl,
            format!(
                "{who} closed the connection in the TLS handshake; it may not speak TLS on this \
                 port, or refuse this client"
            ),
        ),
        // requests, too, keeps a reset apart from what TLS has to complain about.
        None => (
            if fault == Fault::Proxy { ErrorKind::ProxyUnreachable } else { ErrorKind::Connection },
            format!("the connection broke in the TLS handshake with {who}: {error}"),
        ),
    };
    Error::new(kind, Phase::Tls, fault, message).with_source(error)
}

/// The error of a peer that refuses the client's certificate, or that there is none.
///
/// With TLS 1.3 a client's handshake is over before the server has looked at its certificate, so
/// the refusal comes when the response is read. It is one of the handshake all the same: a server
/// that sends it has not looked at the request.
pub(in crate::transport) fn refused_late(error: &io::Error, stream: &Stream) -> Option<Error> {
    let failure = Failure::of(error)?;
    let rustls::Error::AlertReceived(alert) = failure.reason else { return None };
    let message = refusal(alert, stream.asked(failure.fault), failure.fault)?;
    Some(Error::new(ErrorKind::Certificate, Phase::Tls, failure.fault, message))
}

fn refusal(alert: Alert, asked: Asked, fault: Fault) -> Option<String> {
    let is_about_one = matches!(
        alert,
        Alert::CertificateRequired
            | Alert::NoCertificate
            | Alert::BadCertificate
            | Alert::UnsupportedCertificate
            | Alert::CertificateRevoked
            | Alert::CertificateExpired
            | Alert::CertificateUnknown
            | Alert::UnknownCA
            | Alert::AccessDenied
            | Alert::DecryptError
            // With TLS 1.2 this is all that OpenSSL says of a certificate that is missing.
            | Alert::HandshakeFailure
    );
    match (asked, fault) {
        (Asked::No, _) if alert != Alert::CertificateRequired => None,
        _ if !is_about_one => None,
        (_, Fault::Proxy) => Some(format!(
            "the proxy demands a client certificate ({alert:?}), and those are shown to targets \
             only; use another proxy, or a stunnel of your own in front of it"
        )),
        (Asked::Shown, _) => {
            let reason = match alert {
                Alert::CertificateExpired => "has expired".to_owned(),
                Alert::CertificateRevoked => "has been revoked".to_owned(),
                Alert::UnknownCA => "was issued by nobody known there (or the file lacks the \
                                     certificates that lead to the issuer)"
                    .to_owned(),
                other => format!("is not accepted ({other:?})"),
            };
            Some(format!("the server says that the client certificate {reason}; name another"))
        }
        _ => Some(
            "the server demands a client certificate and none is set; give one with `cert` \
             (--cert, --key)"
                .to_owned(),
        ),
    }
}

fn broken_off(who: &str, alert: Alert) -> String {
    let hint = match alert {
        Alert::HandshakeFailure | Alert::InsufficientSecurity => {
            "; it may have no cipher suite in common with this client"
        }
        Alert::UnrecognisedName => "; it has no host of this name",
        _ => "",
    };
    format!("{who} broke the TLS handshake off with {alert:?}{hint}")
}

fn no_common_version(who: &str, offered: &[&SupportedProtocolVersion]) -> String {
    let has = |version| offered.iter().any(|offer| offer.version == version);
    match (has(ProtocolVersion::TLSv1_2), has(ProtocolVersion::TLSv1_3)) {
        (true, false) => format!(
            "{who} has no TLS version in common with this client, which may speak 1.2 alone; \
             raise `tls_max_version` (--tls-max)"
        ),
        (false, true) => format!(
            "{who} has no TLS version in common with this client, which may speak 1.3 alone; \
             lower `tls_min_version` (--tls-min)"
        ),
        _ => format!(
            "{who} has no TLS version in common with this client: it speaks neither 1.2 nor 1.3, \
             and older ones are not safe"
        ),
    }
}

fn certificate(who: &str, reason: &CertificateError) -> String {
    use CertificateError as E;
    match reason {
        E::Expired | E::ExpiredContext { .. } => {
            format!("the certificate of {who} has expired (or the clock of this machine is wrong)")
        }
        E::NotValidYet | E::NotValidYetContext { .. } => format!(
            "the certificate of {who} is not valid yet (or the clock of this machine is wrong)"
        ),
        E::UnknownIssuer => format!(
            "the certificate of {who} was issued by nobody known here; a private issuer has to be \
             named with a CA file (`verify`, --cacert)"
        ),
        E::NotValidForName => format!("the certificate of {who} is for another host"),
        E::NotValidForNameContext { expected, presented } => format!(
            "the certificate of {who} is not for {} but for {}",
            expected.to_str(),
            names(presented)
        ),
        E::Revoked => format!("the certificate of {who} has been revoked"),
        E::BadSignature => format!("the certificate of {who} has a wrong signature"),
        E::BadEncoding => format!("the certificate of {who} is malformed"),
        E::Other(other) if other.0.is::<SelfSigned>() => format!(
            "the certificate of {who} is self-signed: nobody vouches for it; if it is the one you \
             expect, name it as CA file (`verify`, --cacert)"
        ),
        E::Other(other)
            if matches!(other.0.downcast_ref(), Some(webpki::Error::UnsupportedCertVersion)) =>
        {
            format!(
                "the certificate of {who} is not of version 3 of X.509, as certificates of today \
                 are; its owner has to make a new one"
            )
        }
        E::Other(other) => format!("the certificate of {who} was not accepted: {}", other.0),
        other => format!("the certificate of {who} was not accepted: {other}"),
    }
}

/// A few of the names that a certificate is for, as people write them.
fn names(presented: &[String]) -> String {
    if presented.is_empty() {
        return "no name at all".to_owned();
    }
    let plain = |name: &String| {
        let inner = name.strip_prefix("DnsName(\"").and_then(|name| name.strip_suffix("\")"));
        let inner = inner.or_else(|| name.strip_prefix("IpAddress(")?.strip_suffix(')'));
        inner.unwrap_or(name).to_owned()
    };
    let mut list: Vec<String> = presented.iter().take(NAMES).map(plain).collect();
    if presented.len() > NAMES {
        list.push(format!("{} more", presented.len() - NAMES));
    }
    list.join(", ")
}

fn name(fault: Fault) -> &'static str {
    if fault == Fault::Proxy { "the proxy" } else { "the server" }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_list_of_names_is_cut_short() {
        assert_eq!(names(&[]), "no name at all");
        let list: Vec<String> = (0..7).map(|n| format!("DnsName(\"{n}.test\")")).collect();
        assert_eq!(names(&list), "0.test, 1.test, 2.test, 3.test, 4.test, 2 more");
    }

    #[test]
    fn alerts_speak_of_a_client_certificate_only_where_one_was_asked_for() {
        let target = |alert, asked| refusal(alert, asked, Fault::Target).unwrap_or_default();
        assert_eq!(target(Alert::HandshakeFailure, Asked::No), "");
        assert_eq!(target(Alert::InternalError, Asked::Shown), "");
        assert!(target(Alert::CertificateRequired, Asked::No).contains("none is set"));
        assert!(target(Alert::HandshakeFailure, Asked::InVain).contains("none is set"));
        assert!(target(Alert::CertificateExpired, Asked::Shown).contains("has expired"));
        assert!(target(Alert::UnknownCA, Asked::Shown).contains("nobody known there"));
        assert!(target(Alert::AccessDenied, Asked::Shown).contains("AccessDenied"));
        let proxy = refusal(Alert::CertificateRequired, Asked::InVain, Fault::Proxy).unwrap();
        assert!(proxy.contains("the proxy demands"), "{proxy}");
    }
}
