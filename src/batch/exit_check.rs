//! Whether the world sees the proxy, or us.
//!
//! A proxy that is a mere forwarder on the own machine, a routing rule, a mistyped map: each lets a
//! run of a night leave by the own address, and nothing in the responses tells. So before the run
//! an endpoint that echoes the address of its client is asked directly and through each proxy.
//! The same answer twice is a leak, and the run does not start.

use super::parallel;
use crate::error::{Error, ErrorKind, Fault, Phase};
use crate::message::{Request, Response};
use crate::proxy::{Identity, ProxyMap, ProxyUrl};
use crate::session::{Session, SessionBuilder};
use http::Method;
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv6Addr};

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
/// # Errors
/// Those of [`Exits::verdict`], those of making a session, and that of the direct request where
/// it failed after it was sent.
pub fn exit_check(
    recipe: &SessionBuilder,
    url: &str,
    proxies: &[ProxyUrl],
) -> Result<Exits, Error> {
    check_exits(recipe, url, proxies, AT_ONCE)
}

/// As [`exit_check`], with at most so many at the same time.
pub(super) fn check_exits(
    recipe: &SessionBuilder,
    url: &str,
    proxies: &[ProxyUrl],
    at_once: usize,
) -> Result<Exits, Error> {
    // The endpoint is none of the run's sites: it is shown no cookie, and leaves none.
    let bare = recipe.clone().without_cookies();
    let session = bare.build()?;
    let mut map = ProxyMap::new();
    map.insert("all", "")?;
    let direct = match ask(url, map, |request| session.send(request)) {
        Ok(address) => Some(address),
        Err(error) if error.is_unsent() && error.fault() != Fault::Local => {
            log::warn!(target: "longhaul::exits", "the own address is not known: {error}");
            None
        }
        Err(error) => return Err(error),
    };

    let make = || Ok((bare.build()?, bare.build()?));
    let answers =
        parallel::each(proxies, at_once.min(AT_ONCE), make, |(session, other), _, proxy| {
            let through =
                |session: &Session| ask(url, ProxyMap::all(proxy.clone()), |r| session.send(r));
            let first = through(session)?;
            recipe.note_exit(Identity::of(proxy), first);
            // Another session has no connection yet: whether the exit is the same on a second one
            // tells whether the records can name it.
            if let Ok(second) = through(other) {
                recipe.note_exit(Identity::of(proxy), second);
            }
            Ok(first)
        })?;
    let seen = proxies.iter().map(ProxyUrl::redacted).zip(answers).collect();
    Exits { direct, seen }.verdict()
}

fn ask(
    url: &str,
    proxies: ProxyMap,
    send: impl FnOnce(Request) -> Result<Response, Error>,
) -> Result<IpAddr, Error> {
    let mut request = Request::new(Method::GET, url);
    request.overrides.proxies = Some(proxies);
    read_address(&send(request)?)
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
mod tests {
    use super::*;

    fn address(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn addresses_as_endpoints_write_them() {
        for (text, wanted) in [
            ("192.0.2.7\n", Some("192.0.2.7")),
            (r#"{"origin": "192.0.2.7, 198.51.100.1"}"#, Some("192.0.2.7")),
            (r#"{"dns":"198.51.100.1","ip":"192.0.2.7"}"#, Some("192.0.2.7")),
            (r#"{"ip":"2001:db8::1"}"#, Some("2001:db8::1")),
            ("::ffff:192.0.2.7", Some("192.0.2.7")),
            ("2001:DB8::1", Some("2001:db8::1")),
            ("[2001:db8::1]:443", Some("2001:db8::1")),
            ("REMOTE_ADDR = 192.0.2.7:51234", Some("192.0.2.7")),
            ("ip:192.0.2.7", Some("192.0.2.7")),
            ("Your address is 192.0.2.7.", Some("192.0.2.7")),
            ("<html><b>192.0.2.7</b></html>", Some("192.0.2.7")),
            ("std::net 1.2.3 at 12:30", None),
            (r#"{"ip":null}"#, None),
            ("999.1.1.1", None),
            ("", None),
        ] {
            assert_eq!(address_in(text), wanted.map(address), "{text}");
        }
    }

    fn exits(direct: Option<&str>, seen: &[Option<&str>]) -> Exits {
        let gone =
            || Error::new(ErrorKind::ProxyUnreachable, Phase::Connect, Fault::Proxy, "refused");
        let seen = (1..)
            .zip(seen)
            .map(|(n, seen)| (format!("http://p{n}:1"), seen.map(address).ok_or_else(gone)))
            .collect();
        Exits { direct: direct.map(address), seen }
    }

    #[test]
    fn equal_addresses_are_a_leak() {
        let leak = exits(Some("192.0.2.1"), &[Some("192.0.2.2"), Some("192.0.2.1"), None])
            .verdict()
            .unwrap_err();
        assert_eq!(leak.kind(), ErrorKind::ExitLeak);
        assert_eq!(
            leak.to_string(),
            "the world sees the own address 192.0.2.1 through http://p2:1; no request was sent, \
             check where this proxy leads"
        );
    }

    #[test]
    fn a_silent_proxy_is_none_but_silence_everywhere_shows_nothing() {
        let fine = exits(Some("192.0.2.1"), &[None, Some("192.0.2.2"), Some("192.0.2.2")]);
        let fine = fine.verdict().unwrap();
        assert_eq!(fine.shared(), BTreeMap::from([(address("192.0.2.2"), 2)]));
        let silent = exits(Some("192.0.2.1"), &[None, None]).verdict().unwrap_err();
        assert_eq!(silent.kind(), ErrorKind::ProxyUnreachable);
        assert!(exits(None, &[Some("192.0.2.1")]).verdict().is_ok());
        assert!(exits(Some("192.0.2.1"), &[]).verdict().is_ok());
    }

    #[test]
    fn every_question_takes_its_slots_of_the_run_and_of_its_proxy() {
        use crate::policy::{Limiter, Slots};
        use crate::time::{Clock, SimClock};
        use crate::transport::{Play, Script};
        use crate::{ProxyPool, Session};
        use std::sync::{Arc, Mutex};

        let clock = Arc::new(SimClock::default());
        let script = Script::with(Arc::clone(&clock) as Arc<dyn Clock>, |asked, _| {
            Play::status(200).body(if asked.proxy.is_some() { "192.0.2.7" } else { "192.0.2.1" })
        });
        let limiter = Limiter::new(Slots::new(1.0, 1), None, None).expect("a rate");
        let played = script.clone();
        let recipe = |pool: ProxyPool| {
            let script = script.clone();
            Session::builder()
                .trust_env(false)
                .clock(Arc::clone(&clock) as Arc<dyn Clock>)
                .transport(move || script.clone())
                .proxies(pool)
        };
        let gaps = |from: usize| -> Vec<f64> {
            let times: Vec<_> = played.asked()[from..].iter().map(|asked| asked.at).collect();
            times.windows(2).map(|pair| (pair[1] - pair[0]).as_secs_f64()).collect()
        };
        let list = "a:1\nb:1";
        let proxies: Vec<ProxyUrl> = ["a:1", "b:1"].iter().map(|p| p.parse().unwrap()).collect();

        let run = recipe(ProxyPool::parse(list).unwrap());
        let run = run.limited(Some(Arc::new(Mutex::new(limiter))));
        check_exits(&run, "http://echo.test/", &proxies, 1).unwrap();
        assert_eq!(gaps(0), [1.0; 4]);

        // Each proxy is asked twice, by its own rate.
        let slow = ProxyPool::parse(list).and_then(|pool| pool.rate_per_proxy(Some(0.5))).unwrap();
        check_exits(&recipe(slow), "http://echo.test/", &proxies, 1).unwrap();
        assert_eq!(gaps(5), [0.0, 2.0, 0.0, 2.0]);
    }
}
