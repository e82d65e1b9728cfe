//! Whether the world sees the proxy, or us.
//!
//! A proxy that is a mere forwarder on the own machine, a routing rule, a mistyped map: each lets a
//! run of a night leave by the own address, and nothing in the responses tells. So before the run
//! an endpoint that echoes the address of its client is asked directly and through each proxy.
//! The same answer twice is a leak, and the run does not start.

use super::parallel;
use super::window::NAP;
use crate::error::{Error, ErrorKind, Fault, Phase};
use crate::message::{Request, Response};
use crate::proxy::{Identity, ProxyMap, ProxyUrl};
use crate::session::{Flight, Session, SessionBuilder, Step};
use crate::time::Clock;
use http::Method;
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv6Addr};
use std::time::Instant;

/// How many proxies are asked at the same time.
const AT_ONCE: usize = 16;

/// What is looked at of an answer.
const LONGEST_ANSWER: usize = 64 * 1024;

/// The addresses that the world saw.
#[derive(Debug)]
#[non_exhaustive]
pub struct Exits {
    /// The own address; `None` where the endpoint cannot be reached without a proxy.
    pub direct: Option<IpAddr>,
    /// For each proxy (redacted), its address or why it is not known, in the order given.
    pub seen: Vec<(String, Result<IpAddr, Error>)>,
}

impl Exits {
    /// How many proxies leave by each address.
    pub fn shared(&self) -> BTreeMap<IpAddr, usize> {
        let mut shared = BTreeMap::new();
        for address in self.seen.iter().filter_map(|(_, address)| address.as_ref().ok()) {
            *shared.entry(*address).or_default() += 1;
        }
        shared
    }

    /// Whether the run may start.
    ///
    /// A proxy that does not answer is no leak, and the run will find out about it; but where not
    /// one does, nothing was shown.
    ///
    /// # Errors
    /// `ExitLeak` that names each proxy whose address is the own one. The first proxy's error where
    /// no proxy answered.
    pub fn verdict(mut self) -> Result<Self, Error> {
        let leaks: Vec<&str> = self
            .seen
            .iter()
            .filter(|(_, address)| matches!((address, self.direct), (Ok(seen), Some(own)) if *seen == own))
            .map(|(proxy, _)| proxy.as_str())
            .collect();
        if let (Some(own), false) = (self.direct, leaks.is_empty()) {
            let text = format!(
                "the world sees the own address {own} through {}; no request was sent, check where \
                 this proxy leads",
                leaks.join(", ")
            );
            return Err(Error::new(ErrorKind::ExitLeak, Phase::Prepare, Fault::Proxy, text));
        }
        if !self.seen.is_empty()
            && self.seen.iter().all(|(_, address)| address.is_err())
            && let (_, Err(error)) = self.seen.swap_remove(0)
        {
            return Err(error);
        }
        Ok(self)
    }
}

/// Asks an endpoint that echoes the address of its client, directly and through each proxy.
///
/// Each proxy is asked twice, on two connections. Where both show the same exit, the records of a
/// run that is made from this recipe name it; the exit of a proxy that rotates is nobody's to tell.
///
/// `recipe` gives timeouts, retries and certificates. Where the endpoint cannot even be connected
/// to without a proxy, as in a network that has no other way out, there is no own address that
/// could leak.
///
/// Under the rate of a pool, or of its proxies, each question waits for its slot, however long that
/// takes; its deadline begins with its first attempt.
///
/// # Errors
/// Those of [`Exits::verdict`], those of making a session, and that of the direct request where
/// it failed after it was sent.
pub fn exit_check(
    recipe: &SessionBuilder,
    url: &str,
    proxies: &[ProxyUrl],
) -> Result<Exits, Error> {
    check_exits(recipe, url, proxies, AT_ONCE, &|| false)
}

/// As [`exit_check`], with at most so many at the same time, until it is stopped.
///
/// # Errors
/// Those of [`exit_check`], and `Cancelled` where it was stopped before it was over.
pub(super) fn check_exits(
    recipe: &SessionBuilder,
    url: &str,
    proxies: &[ProxyUrl],
    at_once: usize,
    is_stopped: &(dyn Fn() -> bool + Sync),
) -> Result<Exits, Error> {
    // The endpoint is none of the run's sites: it is shown no cookie, and leaves none.
    let bare = recipe.clone().without_cookies();
    let session = bare.build()?;
    let mut map = ProxyMap::new();
    map.insert("all", "")?;
    let clock = recipe.time();
    let through = |session: &Session, map: ProxyMap| ask(session, url, map, clock, is_stopped);
    let direct = match through(&session, map) {
        Ok(address) => Some(address),
        Err(error) if was_asked(&error) && error.is_unsent() && error.fault() != Fault::Local => {
            log::warn!(target: "longhaul::exits", "the own address is not known: {error}");
            None
        }
        Err(error) => return Err(error),
    };

    let make = || Ok((bare.build()?, bare.build()?));
    let mut answers =
        parallel::each(proxies, at_once.min(AT_ONCE), make, |(session, other), _, proxy| {
            let through = |session: &Session| through(session, ProxyMap::all(proxy.clone()));
            let first = through(session)?;
            recipe.note_exit(Identity::of(proxy), first);
            // Another session has no connection yet: whether the exit is the same on a second one
            // tells whether the records can name it.
            if let Ok(second) = through(other) {
                recipe.note_exit(Identity::of(proxy), second);
            }
            Ok(first)
        })?;
    if is_stopped() {
        return Err(stopped());
    }
    let is_unasked = |answer: &Result<_, Error>| answer.as_ref().is_err_and(|e| !was_asked(e));
    if let Some(at) = answers.iter().position(is_unasked) {
        // Of a proxy that was never asked nothing is known, and it is not for silence.
        answers.swap_remove(at)?;
    }
    let seen = proxies.iter().map(ProxyUrl::redacted).zip(answers).collect();
    Exits { direct, seen }.verdict()
}

/// Whether the endpoint, or the proxy before it, had a chance to answer.
fn was_asked(error: &Error) -> bool {
    // What the endpoint says that is no address comes with its response and not with a history.
    error.phase() == Phase::Body || !error.attempts().is_empty()
}

fn stopped() -> Error {
    Error::local(ErrorKind::Cancelled, "stopped while it asked for exits")
}

fn ask(
    session: &Session,
    url: &str,
    proxies: ProxyMap,
    clock: &dyn Clock,
    is_stopped: &(dyn Fn() -> bool + Sync),
) -> Result<IpAddr, Error> {
    let mut request = Request::new(Method::GET, url);
    request.overrides.proxies = Some(proxies);
    let mut flight = Flight::new(request, 0);
    loop {
        if is_stopped() {
            return Err(flight.fail(stopped()));
        }
        match flight.step(session) {
            Step::Done(response) => return read_address(&response),
            Step::Failed(error) => return Err(error),
            Step::Wait { until, .. } => sleep_until(until, clock, is_stopped),
        }
    }
}

/// Sleeps in naps, so that a stop is heard within an hour's wait too.
fn sleep_until(until: Instant, clock: &dyn Clock, is_stopped: &(dyn Fn() -> bool + Sync)) {
    let mut now = clock.now();
    while now < until && !is_stopped() {
        clock.sleep_until(now.checked_add(NAP).map_or(until, |nap| nap.min(until)));
        now = clock.now();
    }
}

/// The address in the answer of an endpoint that echoes it.
pub(super) fn read_address(response: &Response) -> Result<IpAddr, Error> {
    let wrong = |what: String| {
        let text = format!("the exit check got {what}; name an endpoint that echoes the address");
        Error::new(ErrorKind::Config, Phase::Body, Fault::Target, text)
    };
    if response.status() != 200 {
        return Err(wrong(format!("status {}", response.status())));
    }
    let body = response.body().get(..LONGEST_ANSWER).unwrap_or(response.body());
    address_in(&String::from_utf8_lossy(body)).ok_or_else(|| wrong("no address".to_owned()))
}

/// The address in an answer: the `ip`, `origin`, `query` or `address` of a JSON object, or else the
/// first address in the text.
pub fn address_in(text: &str) -> Option<IpAddr> {
    let json = serde_json::from_str::<serde_json::Map<String, serde_json::Value>>(text).ok();
    let named = json.iter().flat_map(|object| {
        ["ip", "origin", "query", "address"].into_iter().filter_map(|name| object.get(name))
    });
    named
        .filter_map(serde_json::Value::as_str)
        .find_map(first_address)
        .or_else(|| first_address(text))
}

fn first_address(text: &str) -> Option<IpAddr> {
    text.split(|c: char| !(c.is_ascii_hexdigit() || matches!(c, '.' | ':')))
        .map(|word| word.trim_end_matches(['.', ':']))
        .find_map(|word| {
            let address: IpAddr = match word.parse() {
                Ok(address) => address,
                // With a port, or with a label in front of it.
                Err(_) => word.split(':').find_map(|part| part.parse().ok())?,
            };
            // `::` stands in program text, and is nobody's address.
            (address != IpAddr::V6(Ipv6Addr::UNSPECIFIED)).then(|| address.to_canonical())
        })
}

#[cfg(test)]
#[path = "exit_check_tests.rs"]
mod tests;
