//! The grammar of proxy addresses, as people write them.
//!
//! A URL parser is the wrong tool here. `http://user:p#ss@10.0.0.1:80` is, to the letter of RFC
//! 3986, the host `user` with a fragment, and a client that believes it asks the resolver for the
//! user name. What people mean is nearly always plain, so the text is split by what they mean: the
//! last `@` ends the credentials, unless the text begins with a whole `host:port`, which only the
//! spelling `host:port:user:password` does. Where two readings are left, that is an error with the
//! remedy, since the wrong guess would send a piece of a password to a name server.
//!
//! Nor may an error repeat what it could not parse. [`Mistake`] shows an *outline*: the scheme if it
//! is a known one, an address only if it is an IP literal or `localhost`, and stars for the rest.

use super::url::{ProxyScheme, ProxyUrl};
use percent_encoding::percent_decode_str;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use url::Host;

/// Why a text is not a proxy; safe to show.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Mistake {
    outline: String,
    cause: String,
}

impl fmt::Display for Mistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the proxy `{}` cannot be used: {}", self.outline, self.cause)
    }
}

const AMBIGUOUS: &str = "it can be read in two ways; write user:password@host:port with `@`, `:`, \
                         `/`, `?` and `#` of the password percent-encoded (`@` as %40)";
const SWAPPED: &str = "the credentials stand after the address; write user:password@host:port or \
                       host:port:user:password";
const ORDER: &str = "the order is host:port:user:password";
const PATH: &str = "a path, query or fragment follows the host; `/`, `?` and `#` of a password are \
                    written %2F, %3F and %23, and the address of a PAC script is not a proxy";
const PORT: &str = "its port is not a number from 1 to 65535; if that is a password, the host is \
                    missing";
const NO_PORT: &str = "the port after the colon is missing";
const NO_HOST: &str = "the host is missing";
const NO_PASSWORD: &str = "the password is missing; write host:port:user: for an empty one";
const BRACKETS: &str = "an IPv6 address stands in brackets: [::1]:8080";
const HOST: &str = "its host is neither a name nor an address";
const SLASHES: &str = "two slashes belong after the scheme: http://host:port";
const CONTROL: &str = "it holds a control character; one proxy stands on one line";
const EMPTY: &str = "it is empty";
const SOCKS_LENGTH: &str = "SOCKS5 takes a user and a password of at most 255 bytes each";

/// Parses any spelling.
pub(super) fn parse(text: &str) -> Result<ProxyUrl, Mistake> {
    let text = text.trim();
    parse_trimmed(text).map_err(|cause| Mistake { outline: outline(text), cause })
}

fn parse_trimmed(text: &str) -> Result<ProxyUrl, String> {
    if text.is_empty() {
        return Err(EMPTY.to_owned());
    }
    if text.contains(char::is_control) {
        return Err(CONTROL.to_owned());
    }
    let (scheme, rest) = split_scheme(text)?;
    let scheme = scheme.unwrap_or(ProxyScheme::Http);
    let (credentials, endpoint) = split_credentials(rest)?;
    let (host, port) = parse_endpoint(endpoint)?;
    let credentials = credentials.map(|(user, password)| (decode(user), decode(password)));
    if let Some((user, password)) = &credentials
        && matches!(scheme, ProxyScheme::Socks5 | ProxyScheme::Socks5h)
        && user.len().max(password.len()) > 255
    {
        return Err(SOCKS_LENGTH.to_owned());
    }
    Ok(ProxyUrl::from_parts(scheme, host, port.unwrap_or(scheme.default_port()), credentials))
}

fn decode(text: &str) -> Vec<u8> {
    percent_decode_str(text).collect()
}

fn split_scheme(text: &str) -> Result<(Option<ProxyScheme>, &str), String> {
    if let Some((name, rest)) = text.split_once("://")
        && is_scheme_token(name)
    {
        return match ProxyScheme::from_name(name) {
            Some(scheme) => Ok((Some(scheme), rest)),
            None => Err(format!(
                "its scheme {}is none of http, https, socks4, socks4a, socks5 and socks5h",
                // Longer ones are no typing mistakes, and might be anything.
                if name.len() <= 10 { format!("`{name}` ") } else { String::new() }
            )),
        };
    }
    match text.split_once(':') {
        Some((name, rest)) if rest.starts_with('/') && ProxyScheme::from_name(name).is_some() => {
            Err(SLASHES.to_owned())
        }
        _ => Ok((None, text)),
    }
}

/// RFC 3986, section 3.1.
fn is_scheme_token(name: &str) -> bool {
    name.starts_with(|first: char| first.is_ascii_alphabetic())
        && name.chars().all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c))
}

type Credentials<'a> = Option<(&'a str, &'a str)>;

/// Takes user and password off, in front or behind.
fn split_credentials(rest: &str) -> Result<(Credentials<'_>, &str), &'static str> {
    let at_last = rest.rsplit_once('@');
    if let Some((endpoint, after)) = leading_endpoint(rest) {
        // The text begins with something that is by all looks a whole proxy already.
        let tail_is_proxy = at_last.is_some_and(|(_, tail)| is_whole(tail));
        match (after.chars().next(), at_last) {
            (None, _) => return Ok((None, endpoint)),
            (Some('@'), Some((_, tail)))
                if starts_with_address(endpoint) && !looks_like_host(host_of(tail)) =>
            {
                return Err(SWAPPED);
            }
            (Some(':'), Some(_)) if tail_is_proxy => return Err(AMBIGUOUS),
            (Some(':'), _) => return Ok((Some(colon_credentials(after)?), endpoint)),
            (Some('/' | '?' | '#'), Some(_)) => return Err(AMBIGUOUS),
            _ => {}
        }
    }
    if let Some((userinfo, tail)) = at_last {
        let (user, password) = userinfo.split_once(':').unwrap_or((userinfo, ""));
        return Ok((Some((user, password)), tail));
    }
    if rest.parse::<Ipv6Addr>().is_ok() {
        return Err(BRACKETS);
    }
    // `proxy:3128:user:password`: a single-label host is known by its port.
    let fields: Vec<&str> = rest.splitn(4, ':').collect();
    match fields.as_slice() {
        [host, port, third, fourth] if !host.starts_with('[') => {
            let fourth_is_port = parse_port(fourth).is_some();
            let host_is_third = fourth_is_port && looks_like_host(third) && !looks_like_host(host);
            if host_is_third || (fourth_is_port && parse_port(port).is_none()) {
                return Err(ORDER);
            }
            let endpoint_length = host.len() + 1 + port.len();
            let endpoint = rest.get(..endpoint_length).unwrap_or(rest);
            Ok((Some((third, fourth)), endpoint))
        }
        [host, _, _] if !host.starts_with('[') => Err(NO_PASSWORD),
        _ => Ok((None, rest)),
    }
}

/// `:user:password`.
fn colon_credentials(after: &str) -> Result<(&str, &str), &'static str> {
    after.strip_prefix(':').and_then(|fields| fields.split_once(':')).ok_or(NO_PASSWORD)
}

/// `host:port` at the beginning, and what follows it, where the host is one beyond doubt: an
/// address, `localhost` or a name with a dot.
fn leading_endpoint(rest: &str) -> Option<(&str, &str)> {
    let host = host_of(rest);
    if !looks_like_host(host) {
        return None;
    }
    let after_colon = rest.get(host.len()..)?.strip_prefix(':')?;
    let digits = after_colon.find(|c: char| !c.is_ascii_digit()).unwrap_or(after_colon.len());
    let (port, after) = after_colon.split_at_checked(digits)?;
    parse_port(port)?;
    let ends = after.is_empty() || after.starts_with([':', '/', '?', '#', '@']);
    let endpoint = rest.get(..rest.len().checked_sub(after.len())?)?;
    // A lone slash at the end belongs to the URI spelling.
    let after = if after == "/" { "" } else { after };
    ends.then_some((endpoint, after))
}

/// The text up to what ends a host, brackets included.
fn host_of(text: &str) -> &str {
    let end = if text.starts_with('[') {
        text.find(']').map(|at| at + 1)
    } else {
        text.find([':', '/', '?', '#', '@'])
    };
    text.get(..end.unwrap_or(text.len())).unwrap_or(text)
}

fn looks_like_host(host: &str) -> bool {
    is_address_or_localhost(host)
        || (host.contains('.')
            && host.split('.').all(|label| !label.is_empty())
            && host.chars().all(|c| c.is_alphanumeric() || "._-".contains(c)))
}

fn is_address_or_localhost(host: &str) -> bool {
    let bare = host.strip_prefix('[').and_then(|inner| inner.strip_suffix(']'));
    match bare {
        Some(inner) => inner.parse::<Ipv6Addr>().is_ok(),
        None => host.parse::<Ipv4Addr>().is_ok() || host.eq_ignore_ascii_case("localhost"),
    }
}

fn starts_with_address(endpoint: &str) -> bool {
    is_address_or_localhost(host_of(endpoint))
}

/// Whether the text is a host with a port, or a host beyond doubt.
fn is_whole(text: &str) -> bool {
    let text = text.strip_suffix('/').unwrap_or(text);
    match text.strip_prefix(host_of(text)) {
        Some("") => looks_like_host(text),
        Some(after) => after.strip_prefix(':').and_then(parse_port).is_some(),
        None => false,
    }
}

fn parse_port(text: &str) -> Option<u16> {
    // `parse` alone would take a sign.
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    digits.then(|| text.parse().ok()).flatten().filter(|port| *port != 0)
}

fn parse_endpoint(endpoint: &str) -> Result<(String, Option<u16>), &'static str> {
    let endpoint = endpoint.strip_suffix('/').unwrap_or(endpoint);
    if endpoint.contains(['/', '?', '#']) {
        return Err(PATH);
    }
    let host = host_of(endpoint);
    let port = match endpoint.get(host.len()..).unwrap_or_default() {
        "" => None,
        ":" => return Err(NO_PORT),
        after => match after.strip_prefix(':') {
            Some(_) if endpoint.parse::<Ipv6Addr>().is_ok() => return Err(BRACKETS),
            Some(port) => Some(parse_port(port).ok_or(PORT)?),
            None => return Err(HOST),
        },
    };
    if host.is_empty() {
        return Err(NO_HOST);
    }
    // Percent-decoding is part of WHATWG's host parser, and no spelling of a proxy.
    if host.contains('%') {
        return Err(HOST);
    }
    match Host::parse(host).map_err(|_| HOST)? {
        // WHATWG lets `direct;` and `a,b` pass; no resolver knows such a name.
        Host::Domain(name)
            if !name.bytes().all(|b| b.is_ascii_alphanumeric() || b"._-".contains(&b)) =>
        {
            Err(HOST)
        }
        Host::Domain(name) => Ok((name, port)),
        Host::Ipv4(address) => Ok((IpAddr::from(address).to_string(), port)),
        Host::Ipv6(address) => Ok((IpAddr::from(address).to_string(), port)),
    }
}

/// The text with stars for all that might be a secret, also where the grammar was misunderstood.
fn outline(text: &str) -> String {
    if text.is_empty() {
        return String::new();
    }
    let (scheme, rest) = match text.split_once("://") {
        Some((name, rest)) if is_scheme_token(name) => match ProxyScheme::from_name(name) {
            Some(scheme) => (scheme.as_str(), rest),
            None => ("***", rest),
        },
        _ => ("", text),
    };
    let separator = if scheme.is_empty() { "" } else { "://" };
    let (stars, tail) = rest.rsplit_once('@').map_or(("", rest), |(_, tail)| ("***@", tail));
    let host = host_of(tail);
    // Names may be a piece of a password that holds an `@`; addresses are not.
    let (host, after) = if is_address_or_localhost(host) {
        (host, tail.get(host.len()..).unwrap_or_default())
    } else {
        ("***", "")
    };
    let after = if after.is_empty() { "" } else { ":***" };
    format!("{scheme}{separator}{stars}{host}{after}")
}
