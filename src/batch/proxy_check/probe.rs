//! One proxy, put to the test.

use super::echo::{Fields, changes, fields, reflected};
use super::{CheckedProxy, ExitCount, ProxyState, Rotates, WayCheck};
use crate::batch::address_in;
use crate::batch::record::{ErrorRecord, TimingsRecord, millis};
use crate::error::{Error, ErrorKind, Fault, Phase};
use crate::message::{DecodeLimits, Headers, Timings, decode};
use crate::proxy::{ProxyScheme, ProxyUrl, Route};
use crate::session::SessionBuilder;
use crate::transport::{AttemptLimits, Outgoing, Transport};
use http::Method;
use std::collections::BTreeMap;
use std::io::Read;
use std::net::IpAddr;
use std::sync::Arc;
use url::Url;

/// What is read of an answer.
const LONGEST_ANSWER: u64 = 256 * 1024;

/// What the endpoint answered.
#[derive(Debug)]
struct Echo {
    status: u16,
    address: Option<IpAddr>,
    fields: Option<Fields>,
    reused: bool,
    timings: Timings,
}

/// How proxies are asked.
#[derive(Debug)]
pub(super) struct Manner {
    pub(super) requests: u32,
    pub(super) always_connect: bool,
    pub(super) proxy_headers: Arc<[(String, String)]>,
}

/// The endpoint, how it is asked, and what it answers without a proxy.
#[derive(Debug)]
pub(super) struct Endpoint {
    recipe: SessionBuilder,
    url: Url,
    headers: Headers,
    manner: Manner,
    direct: Option<Echo>,
}

impl Endpoint {
    /// Asks the endpoint without a proxy.
    pub(super) fn look(recipe: SessionBuilder, url: Url, manner: Manner) -> Result<Self, Error> {
        let headers = recipe.settings().headers.clone();
        let mut endpoint = Self { recipe, url, headers, manner, direct: None };
        let mut transport = endpoint.transport()?;
        match endpoint.ask(&mut *transport, &Route::direct()) {
            Ok(echo) if !(200..300).contains(&echo.status) => {
                let text = format!(
                    "the endpoint answers with status {} without a proxy; name one that answers \
                     with the address that it sees",
                    echo.status
                );
                Err(Error::new(ErrorKind::Config, Phase::Headers, Fault::Target, text))
            }
            Ok(echo) => {
                endpoint.direct = Some(echo);
                Ok(endpoint)
            }
            Err(error) if error.fault() == Fault::Local => Err(error),
            Err(error) => {
                // A network whose only way out is a proxy has no own address to leak.
                log::warn!(target: "longhaul::exits", "the own address is not known: {error}");
                Ok(endpoint)
            }
        }
    }

    pub(super) fn transport(&self) -> Result<Box<dyn Transport>, Error> {
        self.recipe.bare_transport()
    }

    pub(super) fn direct_address(&self) -> Option<IpAddr> {
        self.direct.as_ref().and_then(|direct| direct.address)
    }

    fn ask(&self, transport: &mut dyn Transport, route: &Route) -> Result<Echo, Error> {
        let clock = self.recipe.time();
        let begun = clock.now();
        let timeouts = &self.recipe.settings().timeouts;
        let sum = timeouts.connect().zip(timeouts.read());
        let longest = timeouts.deadline().or(sum.map(|(a, b)| a.saturating_add(b)));
        let limits = AttemptLimits {
            connect: timeouts.connect(),
            read: timeouts.read(),
            deadline: longest.and_then(|longest| begun.checked_add(longest)),
        };
        let outgoing = Outgoing::new(&Method::GET, &self.url, &self.headers);
        let incoming = transport.attempt(outgoing, route, &limits)?;
        let (status, mut timings) = (incoming.status, incoming.timings);
        let reused = incoming.connection.reused;
        let limits = DecodeLimits { wire: Some(LONGEST_ANSWER), decoded: Some(LONGEST_ANSWER) };
        let mut body = Vec::new();
        decode(incoming.body, &incoming.headers, limits)
            .read_to_end(&mut body)
            .map_err(|error| Error::from_io(error, Phase::Body, Fault::Target))?;
        timings.total = clock.now().saturating_duration_since(begun);
        let text = String::from_utf8_lossy(&body);
        let (address, fields) = (address_in(&text), reflected(&text));
        Ok(Echo { status, address, fields, reused, timings })
    }

    /// Whether an answer is the endpoint's and not one that the proxy made.
    fn is_own(&self, echo: &Echo) -> bool {
        let tells = self.direct.as_ref().is_none_or(|direct| direct.address.is_some());
        (200..300).contains(&echo.status) && (echo.address.is_some() || !tells)
    }

    /// What was sent, and what of it arrives without a proxy.
    fn sent(&self) -> (Fields, Fields) {
        let text = |value: &[u8]| String::from_utf8_lossy(value).into_owned();
        let ours = self.headers.iter().map(|(name, value)| (name, text(value)));
        let host = self.url.host_str().map(|host| match self.url.port() {
            Some(port) => format!("{host}:{port}"),
            None => host.to_owned(),
        });
        let sent = fields(ours.chain(host.map(|host| ("Host", host))));
        let base = self.direct.as_ref().and_then(|direct| direct.fields.clone());
        let base = base.unwrap_or_else(|| sent.clone());
        (sent, base)
    }
}

/// A way of using a proxy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    Forward,
    Connect,
    Socks,
}

/// What came of a way.
#[derive(Debug)]
struct Tried {
    way: Way,
    result: Result<Echo, Error>,
    ok: bool,
}

impl Tried {
    fn error(&self) -> Option<&Error> {
        self.result.as_ref().err()
    }

    fn check(&self) -> WayCheck {
        let echo = self.result.as_ref().ok();
        let refusal = self.error().and_then(Error::proxy_reply).filter(|reply| !reply.socks);
        WayCheck {
            ok: self.ok,
            status: echo.map(|echo| echo.status).or(refusal.map(|reply| reply.code)),
            error: self.error().map(record),
            timings: echo.map(|echo| TimingsRecord::of(&echo.timings)),
        }
    }

    /// Whether nothing more can be learnt at this port.
    fn is_final(&self) -> bool {
        self.error()
            .is_some_and(|error| is_unreached(error) || error.kind() == ErrorKind::ProxyAuth)
    }

    /// How sure it is that the proxy was spoken to in its own protocol.
    fn evidence(&self) -> Evidence {
        match &self.result {
            Ok(_) if self.ok => Evidence::Answers,
            // An http server, and as such it speaks HTTP; a TLS port says 400 to plain text.
            Ok(echo) if echo.status != 400 => Evidence::Refuses,
            Ok(_) => Evidence::None,
            Err(error) if error.kind() == ErrorKind::ProxyAuth => Evidence::WantsCredentials,
            Err(error) if error.kind() == ErrorKind::Certificate && error.is_proxy() => {
                Evidence::Refuses
            }
            Err(error) => match error.proxy_reply() {
                Some(reply) if reply.socks || reply.code != 400 => Evidence::Refuses,
                _ => Evidence::None,
            },
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Evidence {
    None,
    Refuses,
    WantsCredentials,
    Answers,
}

/// Finds out what there is to know about one proxy.
pub(super) fn probe(
    endpoint: &Endpoint,
    transport: &mut dyn Transport,
    n: usize,
    proxy: &ProxyUrl,
) -> CheckedProxy {
    let begun = endpoint.recipe.time().now();
    let mut probe = Probe { endpoint, transport, proxy };
    let tried = probe.ways(proxy);
    let mut checked = probe.judge(n, &tried);
    if let Some(first) = tried.iter().find(|tried| tried.ok) {
        probe.look_closer(first, &mut checked);
    } else if checked.state == ProxyState::Broken {
        probe.look_for_another_scheme(&mut checked);
    }
    checked.usable = checked.state == ProxyState::Works;
    let elapsed = endpoint.recipe.time().now().saturating_duration_since(begun);
    checked.elapsed_ms = millis(elapsed);
    checked
}

struct Probe<'a> {
    endpoint: &'a Endpoint,
    transport: &'a mut dyn Transport,
    proxy: &'a ProxyUrl,
}

impl Probe<'_> {
    /// Tries each way that the scheme has.
    fn ways(&mut self, proxy: &ProxyUrl) -> Vec<Tried> {
        let ways: &[Way] = match (proxy.scheme().is_socks(), self.endpoint.url.scheme()) {
            (true, _) => &[Way::Socks],
            (false, "http") if !self.endpoint.manner.always_connect => {
                &[Way::Forward, Way::Connect]
            }
            (false, _) => &[Way::Connect],
        };
        let mut tried: Vec<Tried> = Vec::new();
        for way in ways {
            if tried.iter().any(Tried::is_final) {
                break;
            }
            tried.push(self.go(proxy, *way));
        }
        tried
    }

    fn go(&mut self, proxy: &ProxyUrl, way: Way) -> Tried {
        let route = self.route(proxy, way);
        let result = self.endpoint.ask(self.transport, &route);
        let ok = result.as_ref().is_ok_and(|echo| self.endpoint.is_own(echo));
        Tried { way, result, ok }
    }

    fn route(&self, proxy: &ProxyUrl, way: Way) -> Route {
        let always_connect = way == Way::Connect;
        let proxy_headers = Arc::clone(&self.endpoint.manner.proxy_headers);
        Route { always_connect, proxy_headers, ..Route::through(Arc::new(proxy.clone())) }
    }

    /// What the first answers say.
    fn judge(&self, n: usize, tried: &[Tried]) -> CheckedProxy {
        let of = |way| tried.iter().find(|tried| tried.way == way).map(Tried::check);
        let best = tried.iter().max_by_key(|tried| tried.evidence());
        let evidence = best.map_or(Evidence::None, Tried::evidence);
        let reachable = !tried.iter().filter_map(Tried::error).any(is_unreached);
        let state = match evidence {
            Evidence::Answers => ProxyState::Works,
            Evidence::WantsCredentials => ProxyState::Unauthorized,
            Evidence::Refuses => ProxyState::Refuses,
            Evidence::None if !reachable => ProxyState::Unreachable,
            Evidence::None => ProxyState::Broken,
        };
        let error = best.filter(|best| !best.ok).map(|best| match &best.result {
            Err(error) => record(error),
            Ok(echo) => record(&self.not_the_endpoint(echo)),
        });
        CheckedProxy {
            n,
            proxy: self.proxy.redacted(),
            state,
            usable: false,
            reachable,
            authenticated: match evidence {
                Evidence::WantsCredentials => Some(false),
                Evidence::Answers if self.proxy.credentials().is_some() => Some(true),
                _ => None,
            },
            forward: of(Way::Forward),
            connect: of(Way::Connect),
            socks: of(Way::Socks),
            speaks: None,
            exits: Vec::new(),
            asked: 0,
            told: 0,
            rotates: None,
            keep_alive: None,
            headers: None,
            reveals_client: None,
            error,
            elapsed_ms: 0.0,
        }
    }

    fn not_the_endpoint(&self, echo: &Echo) -> Error {
        let text = match echo.status {
            status @ 200..300 => {
                format!("what came with status {status} is not the answer of the endpoint")
            }
            status => format!("the answer was status {status}, and the endpoint says otherwise"),
        };
        Error::new(ErrorKind::ProxyRefused, Phase::Headers, Fault::Proxy, text)
            .with_proxy(Some(self.proxy.redacted()))
    }

    /// Exits, keep-alive and fields of a proxy that works.
    fn look_closer(&mut self, first: &Tried, checked: &mut CheckedProxy) {
        let Ok(seen) = &first.result else { return };
        let kept = self.go(self.proxy, first.way);
        let kept = kept.result.ok().filter(|echo| echo.reused);
        checked.keep_alive = Some(kept.is_some());

        let alone = Route { fresh: true, keep_alive: false, ..self.route(self.proxy, first.way) };
        let mut counts: BTreeMap<IpAddr, u32> = BTreeMap::new();
        let mut count = |address: Option<IpAddr>| {
            if let Some(address) = address {
                *counts.entry(address).or_default() += 1;
            }
        };
        count(seen.address);
        for _ in 1..self.endpoint.manner.requests {
            let echo = self.endpoint.ask(self.transport, &alone).ok();
            count(echo.filter(|echo| self.endpoint.is_own(echo)).and_then(|echo| echo.address));
        }
        checked.asked = self.endpoint.manner.requests;
        checked.told = counts.values().sum();
        let changed_on_kept = kept
            .and_then(|kept| kept.address)
            .zip(seen.address)
            .is_some_and(|(kept, first)| kept != first);
        checked.rotates = match (changed_on_kept, counts.len(), checked.told) {
            (true, _, _) => Some(Rotates::PerRequest),
            (false, 2.., _) => Some(Rotates::PerConnection),
            (false, 1, 2..) => Some(Rotates::Sticky),
            _ => None,
        };
        let direct = self.endpoint.direct_address();
        if let Some(own) = direct.filter(|own| !own.is_loopback())
            && counts.contains_key(&own)
        {
            checked.state = ProxyState::Leaks;
            let text = format!("the endpoint sees the own address {own} through this proxy");
            let leak = Error::new(ErrorKind::ExitLeak, Phase::Body, Fault::Proxy, text);
            checked.error = Some(record(&leak));
        }
        checked.exits =
            counts.into_iter().map(|(address, times)| ExitCount { address, times }).collect();
        checked.exits.sort_by_key(|exit| std::cmp::Reverse(exit.times));

        if let Some(arrived) = &seen.fields {
            let (sent, base) = self.endpoint.sent();
            let for_proxies = &self.endpoint.manner.proxy_headers;
            let changes = changes(&sent, &base, arrived, self.proxy, for_proxies);
            checked.reveals_client = direct.map(|own| {
                let mut values = changes.added.iter().chain(&changes.changed);
                values.any(|field| names_address(&field.value, own))
            });
            checked.headers = Some(changes);
        }
    }

    /// Speaks to the port in the other protocols.
    fn look_for_another_scheme(&mut self, checked: &mut CheckedProxy) {
        let mut best = (Evidence::None, None);
        for scheme in others(self.proxy.scheme()) {
            let proxy = self.proxy.clone().with_scheme(*scheme);
            let tried = self.ways(&proxy);
            let evidence = tried.iter().map(Tried::evidence).max().unwrap_or(Evidence::None);
            if evidence > best.0 {
                best = (evidence, Some(*scheme));
            }
            if evidence >= Evidence::WantsCredentials {
                checked.state = ProxyState::WrongScheme;
                break;
            }
        }
        checked.speaks = best.1;
    }
}

/// The schemes that are mistaken for this one, the likeliest first.
const fn others(scheme: ProxyScheme) -> &'static [ProxyScheme] {
    use ProxyScheme::{Http, Https, Socks4a, Socks5h};
    match scheme {
        Http => &[Socks5h, Https, Socks4a],
        Https => &[Http, Socks5h, Socks4a],
        ProxyScheme::Socks5 | Socks5h => &[Http, Https, Socks4a],
        ProxyScheme::Socks4 | Socks4a => &[Socks5h, Http, Https],
    }
}

/// Whether it failed before anything was said to the proxy.
fn is_unreached(error: &Error) -> bool {
    matches!(error.phase(), Phase::Prepare | Phase::Dns | Phase::Connect)
}

fn record(error: &Error) -> ErrorRecord {
    ErrorRecord::of(&error.into(), "", "")
}

/// Whether the text holds this address, as a word of its own.
fn names_address(text: &str, address: IpAddr) -> bool {
    text.split(|c: char| c.is_whitespace() || ",;\"=[]".contains(c)).any(|word| {
        let parsed =
            word.parse().or_else(|_| word.parse().map(|socket: std::net::SocketAddr| socket.ip()));
        parsed.is_ok_and(|found: IpAddr| found.to_canonical() == address)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_found_as_words() {
        let own: IpAddr = "192.0.2.1".parse().unwrap();
        for (text, wanted) in [
            ("192.0.2.1", true),
            ("unknown, 192.0.2.1", true),
            ("for=192.0.2.1;proto=http", true),
            ("for=\"192.0.2.1:4711\"", true),
            ("::ffff:192.0.2.1", true),
            ("192.0.2.10", false),
            ("1.1 squid", false),
            ("", false),
        ] {
            assert_eq!(names_address(text, own), wanted, "{text}");
        }
    }
}
