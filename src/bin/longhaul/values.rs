//! The values of flags as people write them.
//!
//! Each parser gives back a type that cannot hold a wrong value, and on failure one sentence that
//! repeats the value and says what would be right. Where the library has a parser for it (durations,
//! budgets, statuses, methods), that one is used, so that the command and a program read `1m30s` or
//! `429,500-504` alike; what is here belongs to the command alone.

use http::{HeaderName, HeaderValue, Method};
use longhaul::policy::{Latency, Package, Share, parse_duration};
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::num::{NonZeroU32, NonZeroUsize};
use std::str::FromStr;
use std::time::Duration;

/// A timeout: above zero, or `none`.
pub(crate) fn timeout(text: &str) -> Result<Limit, String> {
    parse_duration(text).map(Limit).map_err(|error| error.message().to_owned())
}

/// A duration or nothing; a type of its own, since clap reads `Option` as "may be left out".
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Limit(pub(crate) Option<Duration>);

/// A wait: zero or more, never endless.
pub(crate) fn wait(text: &str) -> Result<Duration, String> {
    if text.trim().trim_end_matches('s').trim_end().parse::<f64>() == Ok(0.0) {
        return Ok(Duration::ZERO);
    }
    match parse_duration(text) {
        Ok(Some(wait)) => Ok(wait),
        Ok(None) | Err(_) => {
            Err(format!("'{text}' is not a wait; give seconds from 0 such as 0.6, 30 or 2m"))
        }
    }
}

/// An address of this machine.
pub(crate) fn address(text: &str) -> Result<IpAddr, String> {
    let word = text.trim();
    let word = word.strip_prefix('[').and_then(|word| word.strip_suffix(']')).unwrap_or(word);
    word.parse().map_err(|_| {
        format!("'{text}' is no IP address; give one such as 192.0.2.1 that this machine has")
    })
}

/// A count, in a type that has no zero.
pub(crate) fn count<N: FromStr>(text: &str) -> Result<N, String> {
    text.trim().parse().map_err(|_| format!("'{text}' is not a count; give 1 or more"))
}

/// A span of time: above zero, and with an end.
pub(crate) fn span(text: &str) -> Result<Duration, String> {
    match parse_duration(text) {
        Ok(Some(span)) => Ok(span),
        Ok(None) | Err(_) => {
            Err(format!("'{text}' is not a time; give seconds above 0, or such as 90m or 2h"))
        }
    }
}

/// Where to listen: a port of this machine alone, or an address with its port.
pub(crate) fn metrics_address(text: &str) -> Result<SocketAddr, String> {
    let port = text.strip_prefix(':').or(text.strip_prefix("localhost:")).unwrap_or(text);
    match port.parse::<u16>() {
        Ok(port) => Ok(SocketAddr::from((Ipv4Addr::LOCALHOST, port))),
        Err(_) => text.parse().map_err(|_| {
            format!("'{text}' is no address; give a port such as 9100, or 127.0.0.1:9100")
        }),
    }
}

/// A latency: `0.8`, or three percentiles `0.5,2,9` that do not fall.
pub(crate) fn latency(text: &str) -> Result<Latency, String> {
    let wrong = || {
        format!(
            "'{text}' is not a latency; give one time such as 0.8, or the 50th, 95th and 99th \
             percentile such as 0.5,2,9"
        )
    };
    let times: Result<Vec<Duration>, String> = text.split(',').map(span).collect();
    match times.map_err(|_| wrong())?[..] {
        [each] => Latency::fixed(each).map_err(|_| wrong()),
        [p50, p95, p99] => Latency::quantiles(p50, p95, p99).map_err(|_| wrong()),
        _ => Err(wrong()),
    }
}

/// A share of a whole: `0.02`, `2%`.
pub(crate) fn share(text: &str) -> Result<Share, String> {
    text.parse().map_err(|_| format!("'{text}' is not a share; give 0 to 1 such as 0.02, or 2%"))
}

/// A bandwidth in bits per second: `100M`, `1G`, `8000`; the units are powers of 1000, as lines are
/// sold.
pub(crate) fn bandwidth(text: &str) -> Result<u64, String> {
    let wrong = || format!("'{text}' is not a bandwidth; give bits per second such as 100M or 1G");
    let trimmed = text.trim();
    let (number, factor) = match trimmed.char_indices().next_back() {
        Some((at, 'k' | 'K')) => (trimmed.get(..at), 1e3),
        Some((at, 'm' | 'M')) => (trimmed.get(..at), 1e6),
        Some((at, 'g' | 'G')) => (trimmed.get(..at), 1e9),
        _ => (Some(trimmed), 1.0),
    };
    let number: f64 = number.unwrap_or_default().trim_end().parse().map_err(|_| wrong())?;
    let bits = number * factor;
    if !(8.0..9e15).contains(&bits) {
        return Err(wrong());
    }
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "checked above")]
    let bits = bits as u64;
    Ok(bits)
}

/// A method, as it is written: methods are told apart by their case.
pub(crate) fn method(text: &str) -> Result<Method, String> {
    let wrong =
        |_| format!("'{}' is no method; give one word such as GET or POST", text.escape_debug());
    Method::from_bytes(text.as_bytes()).map_err(wrong)
}

/// Where a name is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Pin {
    /// The name.
    pub(crate) host: String,
    /// At least one address.
    pub(crate) addresses: Vec<IpAddr>,
}

/// A name and its addresses: `shop.example:10.0.0.1,::1`.
pub(crate) fn pin(text: &str) -> Result<Pin, String> {
    let remedy = "give it as HOST:ADDRESS, such as shop.example:10.0.0.1";
    let shown = text.escape_debug();
    let (host, list) = match text.split_once(':') {
        Some((host, list)) if !host.is_empty() => (host, list),
        _ => return Err(format!("'{shown}' is no name with an address; {remedy}")),
    };
    let address = |word: &str| word.trim_matches(['[', ']']).parse().ok();
    if let Some(addresses) = list.split(',').map(address).collect() {
        return Ok(Pin { host: host.to_owned(), addresses });
    }
    // curl wants the port there, for which nobody here has a use.
    match list.split_once(':') {
        Some((port, list)) if port.parse::<u16>().is_ok() => {
            Err(format!("'{shown}' holds a port; give it without: {host}:{}", list.escape_debug()))
        }
        _ => Err(format!("'{}' is no address; {remedy}", list.escape_debug())),
    }
}

/// A number of worker threads.
pub(crate) fn workers(text: &str) -> Result<NonZeroUsize, String> {
    match text.trim().parse::<NonZeroUsize>() {
        Ok(workers) if workers.get() <= MAX_WORKERS => Ok(workers),
        _ => Err(format!("'{text}' is not a number of workers; give 1 to {MAX_WORKERS}")),
    }
}

/// How many workers a run has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Workers {
    /// So many.
    Count(NonZeroUsize),
    /// As many as the other side bears, and so many at most.
    Auto(NonZeroUsize),
}

impl Workers {
    pub(crate) fn most(self) -> usize {
        let (Self::Count(workers) | Self::Auto(workers)) = self;
        workers.get()
    }
}

/// A number of worker threads, `auto`, or `auto:N`.
pub(crate) fn pool(text: &str) -> Result<Workers, String> {
    let wrong = || {
        format!(
            "'{text}' is not a number of workers; give 1 to {MAX_WORKERS}, auto, or such as auto:200"
        )
    };
    let Some(ceiling) = text.trim().strip_prefix("auto") else {
        return workers(text).map(Workers::Count).map_err(|_| wrong());
    };
    let ceiling = match ceiling.strip_prefix(':') {
        Some(number) => workers(number).ok(),
        None if ceiling.is_empty() => NonZeroUsize::new(USUAL_WORKERS),
        None => None,
    };
    ceiling.map(Workers::Auto).ok_or_else(wrong)
}

/// What an ordinary proxy package allows.
#[allow(clippy::cast_possible_truncation, reason = "a thousand")]
const USUAL_WORKERS: usize = Package::USUAL as usize;

/// More threads than this are a mistyped number, not a wish.
const MAX_WORKERS: usize = 10_000;

/// A number of passes.
pub(crate) fn passes(text: &str) -> Result<NonZeroU32, String> {
    text.trim().parse().map_err(|_| {
        format!("'{text}' is not a number of passes; give 1 for one pass, 2 for a second one")
    })
}

/// Names of columns, with commas between.
pub(crate) fn columns(text: &str) -> Result<longhaul::batch::Columns, String> {
    text.parse().map_err(|error: longhaul::Error| error.message().to_owned())
}

/// A size in bytes: `512`, `64K`, `10M`, `1GiB`. K, M and G are powers of 1024, with or without
/// `iB`; `kB`, `MB` and `GB` are powers of 1000.
pub(crate) fn size(text: &str) -> Result<u64, String> {
    let wrong = || format!("'{text}' is not a size; give bytes above 0 such as 65536, 512K or 10M");
    let trimmed = text.trim();
    let digits = trimmed.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(trimmed.len());
    let (number, unit) = trimmed.split_at_checked(digits).ok_or_else(wrong)?;
    let factor: u64 = match unit.trim().to_ascii_lowercase().as_str() {
        "" | "b" => 1,
        "k" | "ki" | "kib" => 1 << 10,
        "m" | "mi" | "mib" => 1 << 20,
        "g" | "gi" | "gib" => 1 << 30,
        "kb" => 1_000,
        "mb" => 1_000_000,
        "gb" => 1_000_000_000,
        _ => return Err(wrong()),
    };
    let bytes = match number.parse::<u64>() {
        Ok(whole) => whole.checked_mul(factor).ok_or_else(wrong)?,
        Err(_) => {
            let fraction: f64 = number.parse().map_err(|_| wrong())?;
            #[allow(clippy::cast_precision_loss, reason = "factors are small")]
            let bytes = fraction * factor as f64;
            if !(bytes.is_finite() && bytes < 9e15) {
                return Err(wrong());
            }
            #[allow(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "checked above; the sign cannot occur"
            )]
            let whole = bytes.ceil() as u64;
            whole
        }
    };
    if bytes == 0 { Err(wrong()) } else { Ok(bytes) }
}

/// A rate over all workers.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Rate {
    /// Requests per second.
    pub(crate) per_second: f64,
}

/// A rate: `5/s`, `5`, `300/min`, `1000/h`.
pub(crate) fn rate(text: &str) -> Result<Rate, String> {
    let wrong =
        || format!("'{text}' is not a rate; give requests per time such as 5/s, 300/min or 1000/h");
    let (number, unit) = text.split_once('/').unwrap_or((text, "s"));
    let seconds = match unit.trim().to_ascii_lowercase().as_str() {
        "s" | "sec" | "second" => 1.0,
        "m" | "min" | "minute" => 60.0,
        "h" | "hour" => 3600.0,
        _ => return Err(wrong()),
    };
    let number: f64 = number.trim().parse().map_err(|_| wrong())?;
    let per_second = number / seconds;
    if per_second.is_finite() && per_second > 0.0 { Ok(Rate { per_second }) } else { Err(wrong()) }
}

/// `--slow-lane`: how often, or not at all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Lane(pub(crate) Option<NonZeroU32>);

/// A number of times, or `off`.
pub(crate) fn lane(text: &str) -> Result<Lane, String> {
    match text.trim() {
        "off" => Ok(Lane(None)),
        number => number.parse().map(|times| Lane(Some(times))).map_err(|_| {
            format!("'{}' is not a number of times; give 1 or more, or off", text.escape_debug())
        }),
    }
}

/// A field of every request; without a value it is removed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct HeaderArg {
    /// The name as it was typed.
    pub(crate) name: String,
    /// The value; `None` removes the field.
    pub(crate) value: Option<String>,
}

/// What nobody may see.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Secret(pub(crate) String);

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

/// Anything that is not empty.
pub(crate) fn secret(text: &str) -> Result<Secret, String> {
    match text {
        "" => Err("it is empty; give a value, or leave the flag out".to_owned()),
        text => Ok(Secret(text.to_owned())),
    }
}

/// A field: `Name: value`, or `Name:` to remove it. The value may be a secret, so no message
/// repeats it.
pub(crate) fn header(text: &str) -> Result<HeaderArg, String> {
    let remedy = "give it as 'Name: value', or as 'Name:' to remove the field";
    let Some((name, value)) = text.split_once(':') else {
        return Err(format!("the field has no colon; {remedy}"));
    };
    let name = name.trim();
    if HeaderName::from_bytes(name.as_bytes()).is_err() {
        return Err(format!("'{}' is not a field name; {remedy}", name.escape_debug()));
    }
    let value = value.trim();
    if HeaderValue::from_bytes(value.as_bytes()).is_err() {
        return Err(format!("the value of '{name}' has a control character; {remedy}"));
    }
    let value = (!value.is_empty()).then(|| value.to_owned());
    Ok(HeaderArg { name: name.to_owned(), value })
}

#[cfg(test)]
mod tests {
    use super::*;
    use longhaul::secs;

    #[test]
    fn sizes() {
        for (text, wanted) in [
            ("1", Some(1)),
            ("512K", Some(524_288)),
            ("512k", Some(524_288)),
            ("10M", Some(10_485_760)),
            ("10 MiB", Some(10_485_760)),
            ("10MB", Some(10_000_000)),
            ("1GiB", Some(1_073_741_824)),
            ("1.5K", Some(1536)),
            ("0", None),
            ("0.0M", None),
            ("-1", None),
            ("", None),
            ("K", None),
            ("10X", None),
            ("1e3", None),
            ("1.2.3K", None),
            ("99999999999999999999", None),
            ("18446744073709551615G", None),
            ("99999999999999.9G", None),
        ] {
            assert_eq!(size(text).ok(), wanted, "{text}");
        }
    }

    #[test]
    fn addresses() {
        for text in ["127.0.0.2", " ::1 ", "[::1]"] {
            assert!(address(text).is_ok(), "{text}");
        }
        for text in ["localhost", "127.0.0.1:80", "", "eth0"] {
            assert!(address(text).is_err(), "{text}");
        }
    }

    #[test]
    fn rates() {
        for (text, wanted) in [
            ("5/s", Some(5.0)),
            ("5", Some(5.0)),
            ("0.5/s", Some(0.5)),
            ("300/min", Some(5.0)),
            ("300 / m", Some(5.0)),
            ("3600/h", Some(1.0)),
            ("0/s", None),
            ("-1/s", None),
            ("NaN/s", None),
            ("inf", None),
            ("5/day", None),
            ("/s", None),
            ("", None),
        ] {
            assert_eq!(rate(text).ok().map(|rate| rate.per_second), wanted, "{text}");
        }
    }

    #[test]
    fn shares_latencies_and_bandwidths() {
        assert_eq!(share("2%"), Ok(Share::new(0.02).unwrap()));
        assert!(share("2").is_err());
        assert_eq!(latency("0.8"), Ok(Latency::fixed(secs(0.8)).unwrap()));
        let three = Latency::quantiles(secs(0.5), secs(2.0), secs(9.0)).unwrap();
        assert_eq!(latency("500ms,2,9s"), Ok(three));
        for wrong in ["", "0", "none", "1,2", "1,2,3,4", "3,2,1", "1,,3", "soon"] {
            assert!(latency(wrong).is_err(), "{wrong}");
        }
        for (text, wanted) in [
            ("8000", Some(8000)),
            ("100M", Some(100_000_000)),
            ("2.5 g", Some(2_500_000_000)),
            ("64k", Some(64_000)),
            ("0", None),
            ("7", None),
            ("M", None),
            ("-1M", None),
            ("NaN", None),
            ("inf", None),
            ("1e300G", None),
            ("100MB", None),
        ] {
            assert_eq!(bandwidth(text).ok(), wanted, "{text}");
        }
    }

    #[test]
    fn names_and_where_they_are() {
        let pair = |text: &str| {
            let pin = pin(text).ok()?;
            Some((pin.host, pin.addresses.iter().map(IpAddr::to_string).collect::<Vec<_>>()))
        };
        let some = |addresses: &[&str]| {
            Some(("a.test".to_owned(), addresses.iter().map(ToString::to_string).collect()))
        };
        assert_eq!(pair("a.test:10.0.0.1"), some(&["10.0.0.1"]));
        assert_eq!(pair("a.test:10.0.0.1,::1,[::2]"), some(&["10.0.0.1", "::1", "::2"]));
        assert_eq!(pair("a.test:2001:db8::1"), some(&["2001:db8::1"]));
        for wrong in ["a.test", ":1.2.3.4", "a.test:", "a.test:b.test", "a.test:443:1.2.3.4"] {
            assert_eq!(pair(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn headers_and_their_removal() {
        let pair = |text: &str| header(text).ok().map(|header| (header.name, header.value));
        let some = |name: &str, value: &str| Some((name.to_owned(), Some(value.to_owned())));
        assert_eq!(pair("X-Key: a: b"), some("X-Key", "a: b"));
        assert_eq!(pair("accept:text/html "), some("accept", "text/html"));
        assert_eq!(pair("User-Agent:"), Some(("User-Agent".to_owned(), None)));
        assert_eq!(pair("X-Name: köln"), some("X-Name", "köln"));
        for wrong in ["no colon", "bad name: x", ": x", "X: a\nb", "X: a\r\nY: b", "X: \0"] {
            assert_eq!(pair(wrong), None, "{wrong:?}");
        }
        let secret = header("Authorization: hunter2\n2").err();
        assert!(secret.is_some_and(|message| !message.contains("hunter2")));
    }

    #[test]
    fn waits_may_be_zero_and_timeouts_may_not() {
        assert_eq!(wait("0"), Ok(Duration::ZERO));
        assert_eq!(wait("0s"), Ok(Duration::ZERO));
        assert_eq!(wait("0 s"), Ok(Duration::ZERO));
        assert_eq!(wait("0.6"), Ok(secs(0.6)));
        assert!(wait("none").is_err());
        assert!(wait("-1").is_err());
        assert_eq!(timeout("5"), Ok(Limit(Some(secs(5.0)))));
        assert_eq!(timeout("none"), Ok(Limit(None)));
        for wrong in ["0", "-1", "soon", "NaN", "inf", ""] {
            assert!(timeout(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn every_message_has_a_remedy() {
        let messages = [
            wait("x").err(),
            address("localhost").err(),
            count::<NonZeroUsize>("0").err(),
            span("none").err(),
            latency("9,2,1").err(),
            share("2").err(),
            bandwidth("fast").err(),
            workers("0").err(),
            workers("10001").err(),
            passes("0").err(),
            method("G T").err(),
            pin("shop.example").err(),
            pin("shop.example:443:10.0.0.1").err(),
            pin("shop.example:10.0.0").err(),
            lane("0").err(),
            lane("on").err(),
            size("x").err(),
            rate("x").err(),
            header("x").err(),
            secret("").err(),
        ];
        for message in messages {
            let message = message.unwrap_or_default();
            let (what, remedy) = message.split_once("; ").unwrap_or_default();
            assert!(!what.is_empty() && remedy.starts_with("give"), "{message}");
        }
    }
}
