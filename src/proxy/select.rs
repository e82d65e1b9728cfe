//! Which proxy a URL gets: request over session over environment.
//!
//! requests merges three dictionaries into one, and the environment's keys land on top of the
//! session's. So a `session.proxies` that somebody set on purpose is silently overruled by a
//! variable that a login script exported. Here, what was written in the program is asked first, and
//! the environment only about URLs that the program says nothing of.
//!
//! * `DIFFERENCE(session-over-environment)`: an entry of the request or the session that covers a
//!   URL, however general its key, wins over every variable.
//! * `DIFFERENCE(session-no-proxy)`: the key `no_proxy` counts in the session's map too.
//! * `DIFFERENCE(no-proxy-per-hop)`: `NO_PROXY` is asked again for each redirect; requests carries
//!   along what it chose for the first URL.
//!
//! Between request and session it is requests' rule: the two are laid over each other key by key,
//! and the most specific key of the result wins.

use super::map::{Entry, Rank};
use super::{EnvProxies, ProxyMap, ProxyUrl};
use std::sync::Arc;
use url::Url;

/// The way that the settings demand for one URL.
#[allow(clippy::exhaustive_enums, reason = "the three answers there are")]
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Chosen {
    /// Without a proxy, because somebody said so: an empty entry, or `NO_PROXY`.
    Direct,
    /// Through this one.
    Proxy(Arc<ProxyUrl>),
    /// Nothing covers the URL: direct, or an error where proxies are required.
    Uncovered,
}

/// Chooses the proxy for `url`; to be asked anew for every hop of a redirect.
///
/// `env` is `None` where the environment is not trusted. `NO_PROXY` filters only what came from the
/// environment; a `no_proxy` entry of the request, or else of the session, takes its place.
pub fn resolve_proxy(
    url: &Url,
    request: Option<&ProxyMap>,
    session: &ProxyMap,
    env: Option<&EnvProxies>,
) -> Chosen {
    let asked = |rank| request.and_then(|map| map.entry(rank, url));
    for rank in Rank::ORDER {
        match asked(rank).or_else(|| session.entry(rank, url)) {
            Some(Entry::Proxy(proxy)) => return Chosen::Proxy(Arc::clone(proxy)),
            Some(Entry::Direct) => return Chosen::Direct,
            Some(Entry::Unset) | None => {}
        }
    }
    let Some(env) = env else {
        return Chosen::Uncovered;
    };
    let kept = |rank| !matches!(asked(rank), Some(Entry::Unset));
    let by_scheme = env.for_scheme(url).filter(|_| kept(Rank::Scheme));
    let Some(proxy) = by_scheme.or_else(|| env.for_all().filter(|_| kept(Rank::All))) else {
        return Chosen::Uncovered;
    };
    let no_proxy =
        request.and_then(ProxyMap::no_proxy).or(session.no_proxy()).unwrap_or(env.no_proxy());
    if no_proxy.matches(url) { Chosen::Direct } else { Chosen::Proxy(Arc::clone(proxy)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Pairs<'a> = &'a [(&'a str, &'a str)];

    fn map(pairs: Pairs<'_>) -> ProxyMap {
        let mut map = ProxyMap::new();
        for (key, value) in pairs {
            match *value {
                "unset" => map.unset(key).unwrap(),
                value => map.insert(key, value).unwrap(),
            }
        }
        map
    }

    fn chosen(url: &str, request: Pairs<'_>, session: Pairs<'_>, env: Option<Pairs<'_>>) -> String {
        let env = env.map(|pairs| {
            let find = |name: &str| pairs.iter().find(|(known, _)| *known == name);
            EnvProxies::read(|name| find(name).map(|(_, value)| (*value).to_owned())).unwrap()
        });
        let url = url.parse().unwrap();
        match resolve_proxy(&url, Some(&map(request)), &map(session), env.as_ref()) {
            Chosen::Direct => "direct".to_owned(),
            Chosen::Uncovered => "uncovered".to_owned(),
            Chosen::Proxy(proxy) => proxy.host().to_owned(),
        }
    }

    #[test]
    fn request_over_session_over_environment() {
        let env: Option<Pairs<'_>> = Some(&[("http_proxy", "e:1"), ("all_proxy", "ea:1")]);
        type Case<'a> = (Pairs<'a>, Pairs<'a>, Option<Pairs<'a>>, &'a str);
        let table: &[Case<'_>] = &[
            (&[("http", "r:1")], &[("http", "s:1")], env, "r"),
            (&[], &[("http", "s:1")], env, "s"),
            (&[], &[("all", "s:1")], env, "s"),
            (&[("all", "r:1")], &[], env, "r"),
            (&[], &[], env, "e"),
            (&[], &[], None, "uncovered"),
            (&[], &[("https", "s:1")], None, "uncovered"),
            (&[], &[("https", "s:1")], env, "e"),
            // Laid over each other key by key.
            (&[("all", "r:1")], &[("http", "s:1")], None, "s"),
            (&[("http", "r:1")], &[("http://x.test", "s:1")], None, "s"),
            // Empty is direct, and definite.
            (&[("http", "")], &[("http", "s:1")], env, "direct"),
            (&[], &[("http", "")], env, "direct"),
            // Unset takes away one key, everywhere.
            (&[("http", "unset")], &[("http", "s:1")], None, "uncovered"),
            (&[("http", "unset")], &[("http", "s:1"), ("all", "sa:1")], None, "sa"),
            (&[("http", "unset")], &[], env, "ea"),
            (&[("http", "unset"), ("all", "unset")], &[], env, "uncovered"),
            (&[], &[("http", "unset")], env, "e"),
        ];
        for (request, session, env, wanted) in table {
            let got = chosen("http://x.test/", request, session, *env);
            assert_eq!(got, *wanted, "{request:?} {session:?} {env:?}");
        }
    }

    #[test]
    fn no_proxy_filters_the_environment_alone() {
        let env: Option<Pairs<'_>> = Some(&[("http_proxy", "e:1"), ("no_proxy", "x.test")]);
        let only_list: Option<Pairs<'_>> = Some(&[("no_proxy", "x.test")]);
        type Case<'a> = (Pairs<'a>, Pairs<'a>, Option<Pairs<'a>>, &'a str);
        let table: &[Case<'_>] = &[
            (&[], &[], env, "direct"),
            (&[], &[], only_list, "uncovered"),
            (&[], &[("http", "s:1")], env, "s"),
            (&[("no_proxy", "y.test")], &[], env, "e"),
            (&[("no_proxy", "")], &[], env, "e"),
            (&[], &[("no_proxy", "y.test")], env, "e"),
            (&[("no_proxy", "x.test")], &[("no_proxy", "y.test")], env, "direct"),
        ];
        for (request, session, env, wanted) in table {
            let got = chosen("http://x.test/", request, session, *env);
            assert_eq!(got, *wanted, "{request:?} {session:?} {env:?}");
        }
    }

    #[test]
    fn the_choice_is_made_anew_per_hop() {
        let env: Option<Pairs<'_>> =
            Some(&[("http_proxy", "h:1"), ("https_proxy", "s:1"), ("no_proxy", "in.test")]);
        assert_eq!(chosen("http://a.test/", &[], &[], env), "h");
        assert_eq!(chosen("https://a.test/", &[], &[], env), "s");
        assert_eq!(chosen("https://in.test/", &[], &[], env), "direct");
    }
}
