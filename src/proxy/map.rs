//! requests' `proxies` dictionary.
//!
//! A key names targets: by scheme and host, by scheme, by host, or all of them. The most specific
//! key wins. requests looks keys up as they are, so a key in another case, with a port or with a
//! wildcard is kept and never found; here such a key is put right where it can be, and refused
//! where it cannot, because an entry that never matches is a request that goes direct.
//!
//! * `DIFFERENCE(map-key-case)`: keys are compared without regard to case.
//! * `DIFFERENCE(map-key-brackets)`: `http://[::1]` and `http://::1` are the same key.
//! * `DIFFERENCE(map-key-refused)`: keys that can never match are an error.
//! * `DIFFERENCE(proxy-url-errors)`: a value that is no proxy is `InvalidProxyUrl` when the map is
//!   made; requests raises `InvalidURL` or `InvalidProxyURL` when it is used.

use super::{NoProxy, ProxyUrl};
use crate::error::Error;
use std::net::Ipv6Addr;
use std::sync::Arc;
use url::{Host, Url};

/// Proxies by `scheme://host`, `scheme`, `all://host` and `all`, looked up in this order.
///
/// A host matches exactly, not its sub-domains. The key `no_proxy` holds a [`NoProxy`] list that
/// takes the place of the environment's own, as in requests.
///
/// # Examples
/// ```
/// use longhaul::ProxyMap;
///
/// let map = ProxyMap::from_pairs([
///     ("https", "http://proxy.example:3128"),
///     ("https://intranet.example", ""), // direct
/// ])?;
/// assert!(matches!(map.select(&"https://a.example/".parse().unwrap()), Some(Some(_))));
/// assert!(matches!(map.select(&"https://intranet.example/".parse().unwrap()), Some(None)));
/// assert!(matches!(map.select(&"http://a.example/".parse().unwrap()), None));
/// # Ok::<(), longhaul::Error>(())
/// ```
#[derive(Debug, Clone, Default)]
pub struct ProxyMap {
    // A handful at most, so a scan beats hashing and needs no key to be built.
    entries: Vec<(Key, Entry)>,
    no_proxy: Option<NoProxy>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Key {
    /// `None` is `all`.
    scheme: Option<String>,
    /// Lower case, an A-label, without brackets.
    host: Option<String>,
}

/// What a key stands for.
#[derive(Debug, Clone)]
pub(super) enum Entry {
    Proxy(Arc<ProxyUrl>),
    Direct,
    Unset,
}

/// How specific a key is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Rank {
    SchemeAndHost,
    Scheme,
    Host,
    All,
}

impl Rank {
    /// The most specific first.
    pub(super) const ORDER: [Self; 4] = [Self::SchemeAndHost, Self::Scheme, Self::Host, Self::All];
}

impl ProxyMap {
    /// A map without entries.
    pub fn new() -> Self {
        Self::default()
    }

    /// One proxy for everything.
    pub fn all(proxy: ProxyUrl) -> Self {
        let key = Key { scheme: None, host: None };
        Self { entries: vec![(key, Entry::Proxy(Arc::new(proxy)))], no_proxy: None }
    }

    /// A map of these entries; see [`insert`](Self::insert).
    ///
    /// # Errors
    /// As [`insert`](Self::insert).
    pub fn from_pairs<K: AsRef<str>, V: AsRef<str>>(
        pairs: impl IntoIterator<Item = (K, V)>,
    ) -> Result<Self, Error> {
        let mut map = Self::new();
        for (key, proxy) in pairs {
            map.insert(key.as_ref(), proxy.as_ref())?;
        }
        Ok(map)
    }

    /// Adds an entry; an empty `proxy` means direct.
    ///
    /// # Errors
    /// `Config` for a key of another form, `InvalidProxyUrl` for the proxy.
    pub fn insert(&mut self, key: &str, proxy: &str) -> Result<(), Error> {
        if matches!(key.trim(), "no_proxy" | "no") {
            self.no_proxy = Some(NoProxy::parse(proxy));
            return Ok(());
        }
        let parsed = Key::parse(key)?;
        let entry = if proxy.trim().is_empty() {
            Entry::Direct
        } else {
            let place = format!("the entry `{}` of the proxies", key.trim());
            Entry::Proxy(Arc::new(ProxyUrl::parse_at(proxy, place)?))
        };
        self.put(parsed, entry);
        Ok(())
    }

    /// Takes the key back, also from what the map is laid over: requests' `None`.
    ///
    /// In the proxies of a request, the session's and the environment's entry of this key do not
    /// count; less specific keys still do. For a definite "direct", insert an empty value.
    ///
    /// # Errors
    /// `Config` for a key of another form.
    pub fn unset(&mut self, key: &str) -> Result<(), Error> {
        self.put(Key::parse(key)?, Entry::Unset);
        Ok(())
    }

    fn put(&mut self, key: Key, entry: Entry) {
        self.entries.retain(|(known, _)| *known != key);
        self.entries.push((key, entry));
    }

    /// The entry that covers `url`: `Some(None)` is an explicit "direct".
    ///
    /// `None` where no key covers it, and where the most specific one that does is
    /// [`unset`](Self::unset): as in requests, a map by itself does not look further then.
    pub fn select(&self, url: &Url) -> Option<Option<&Arc<ProxyUrl>>> {
        match Rank::ORDER.into_iter().find_map(|rank| self.entry(rank, url))? {
            Entry::Proxy(proxy) => Some(Some(proxy)),
            Entry::Direct => Some(None),
            Entry::Unset => None,
        }
    }

    /// Whether there is no entry.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty() && self.no_proxy.is_none()
    }

    /// The list that replaces the environment's `NO_PROXY`.
    pub fn no_proxy(&self) -> Option<&NoProxy> {
        self.no_proxy.as_ref()
    }

    /// The entry of exactly this rank.
    pub(super) fn entry(&self, rank: Rank, url: &Url) -> Option<&Entry> {
        let host = url.host_str().map(unbracketed);
        self.entries
            .iter()
            .find(|(key, _)| key.rank() == rank && key.matches(url.scheme(), host))
            .map(|(_, entry)| entry)
    }
}

impl Key {
    fn rank(&self) -> Rank {
        match (&self.scheme, &self.host) {
            (Some(_), Some(_)) => Rank::SchemeAndHost,
            (Some(_), None) => Rank::Scheme,
            (None, Some(_)) => Rank::Host,
            (None, None) => Rank::All,
        }
    }

    fn matches(&self, scheme: &str, host: Option<&str>) -> bool {
        self.scheme.as_deref().is_none_or(|wanted| wanted == scheme)
            && self.host.as_deref().is_none_or(|wanted| Some(wanted) == host)
    }

    fn parse(key: &str) -> Result<Self, Error> {
        let key = key.trim();
        let (scheme, host) = match key.split_once("://") {
            Some((scheme, host)) => (scheme, Some(host.strip_suffix('/').unwrap_or(host))),
            None => (key, None),
        };
        let refuse = |why: &str| {
            // What stands here by mistake may well be a proxy with its password.
            let shown = if is_showable(scheme, host) { key } else { "***" };
            Error::config(format!("the key `{shown}` of the proxies cannot match: {why}"))
        };
        let scheme = scheme.to_ascii_lowercase();
        if scheme.starts_with("socks") {
            return Err(refuse("a key names the scheme of the target; SOCKS belongs to the proxy"));
        }
        // ftp, ws and wss stand in dictionaries that are handed around, and do no harm.
        if !matches!(scheme.as_str(), "all" | "http" | "https" | "ftp" | "ws" | "wss") {
            return Err(refuse(
                "it is neither http, https or all nor one of them with ://host; for a host under \
                 every scheme write all://host",
            ));
        }
        let host = match host {
            None => None,
            Some(host) => Some(parse_host(host).map_err(refuse)?),
        };
        Ok(Self { scheme: Some(scheme).filter(|scheme| scheme != "all"), host })
    }
}

fn parse_host(host: &str) -> Result<String, &'static str> {
    if let Ok(address) = host.parse::<Ipv6Addr>() {
        return Ok(address.to_string());
    }
    if host.contains('@') {
        return Err("it looks like a proxy; the key comes first and the proxy second");
    }
    if host.starts_with(['.', '*']) {
        return Err("a host matches exactly, without wildcards");
    }
    match Host::parse(host) {
        Ok(Host::Domain(name)) => Ok(name),
        Ok(Host::Ipv4(address)) => Ok(address.to_string()),
        Ok(Host::Ipv6(address)) => Ok(address.to_string()),
        Err(_) if host.contains(':') => Err("a host stands without a port"),
        Err(_) => Err("its host is neither a name nor an address"),
    }
}

fn is_showable(scheme: &str, host: Option<&str>) -> bool {
    let plain = |text: &str| text.chars().all(|c| c.is_alphanumeric() || "._-*[]".contains(c));
    // A port may be shown, credentials after it may not.
    plain(scheme)
        && host.is_none_or(|host| match host.rsplit_once(':') {
            Some((host, port)) => plain(host) && port.parse::<u16>().is_ok(),
            None => plain(host),
        })
}

fn unbracketed(host: &str) -> &str {
    host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorKind;

    fn host_chosen(map: &ProxyMap, url: &str) -> Option<Option<String>> {
        let url: Url = url.parse().unwrap();
        map.select(&url).map(|proxy| proxy.map(|proxy| proxy.host().to_owned()))
    }

    #[test]
    fn the_most_specific_key_wins() {
        let map = ProxyMap::from_pairs([
            ("all", "p4:1"),
            ("all://x.test", "p3:1"),
            ("https", "p1:1"),
            ("https://Shop.test", "p2:1"),
            ("http://intern.test", " "),
            ("http://[2001:DB8::1]/", "p6:1"),
        ])
        .unwrap();
        let table = [
            ("https://shop.test:8443/x", Some("p2")),
            ("https://SHOP.test/", Some("p2")),
            ("https://a.shop.test/", Some("p1")),
            ("https://x.test/", Some("p1")),
            ("http://x.test/", Some("p3")),
            ("http://shop.test/", Some("p4")),
            ("http://intern.test/", None),
            ("http://[2001:db8::1]:99/", Some("p6")),
            ("ftp://other.test/", Some("p4")),
            ("file:///x", Some("p4")),
        ];
        for (url, wanted) in table {
            assert_eq!(host_chosen(&map, url), Some(wanted.map(str::to_owned)), "{url}");
        }
    }

    #[test]
    fn what_no_key_covers_is_not_covered() {
        let map = ProxyMap::from_pairs([("http", "p1:1")]).unwrap();
        assert_eq!(host_chosen(&map, "https://e.test/"), None);
        assert!(!map.is_empty());
        assert_eq!(host_chosen(&ProxyMap::new(), "https://e.test/"), None);
        assert!(ProxyMap::new().is_empty());
        let all = ProxyMap::all("p:1".parse().unwrap());
        assert_eq!(host_chosen(&all, "https://e.test/"), Some(Some("p".into())));
    }

    #[test]
    fn a_later_entry_replaces_an_earlier_one() {
        let mut map = ProxyMap::from_pairs([("http", "p1:1"), ("HTTP", "p2:1")]).unwrap();
        assert_eq!(host_chosen(&map, "http://e.test/"), Some(Some("p2".into())));
        map.unset("http").unwrap();
        assert_eq!(host_chosen(&map, "http://e.test/"), None);
        map.insert("http", "").unwrap();
        assert_eq!(host_chosen(&map, "http://e.test/"), Some(None));
    }

    #[test]
    fn keys_that_cannot_match_are_refused() {
        let table = [
            ("example.com", "`example.com`", "all://host"),
            ("socks5", "`socks5`", "SOCKS belongs to the proxy"),
            ("http://e.com:8080", "`http://e.com:8080`", "without a port"),
            ("all://.example.com", "`all://.example.com`", "without wildcards"),
            ("https://*.example.com", "`https://*.example.com`", "without wildcards"),
            ("http://", "`http://`", "neither a name nor an address"),
            ("", "``", "all://host"),
            ("http://user:secret@10.0.0.1:80", "`***`", "the key comes first"),
            ("10.0.0.1:80:user:secret", "`***`", "all://host"),
            ("http://10.0.0.1:80:user:secret", "`***`", "without a port"),
        ];
        for (key, shown, why) in table {
            let error = ProxyMap::new().insert(key, "p:1").unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Config, "{key}");
            let message = error.to_string();
            assert!(message.contains(shown) && message.contains(why), "{key}: {message}");
            assert!(!message.contains("secret"), "{message}");
        }
    }

    #[test]
    fn a_bad_proxy_names_its_key() {
        let error = ProxyMap::new().insert("https", "http://u:secret@10.0.0.1:x").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidProxyUrl);
        assert_eq!(
            error.to_string(),
            "the entry `https` of the proxies: the proxy `http://***@10.0.0.1:***` cannot be used: \
             its port is not a number from 1 to 65535; if that is a password, the host is missing"
        );
    }

    #[test]
    fn nothing_shown_holds_credentials() {
        let map = ProxyMap::from_pairs([("all", "user:secret@p:1")]).unwrap();
        let shown = format!("{map:?}");
        assert!(shown.contains("http://***@p:1") && !shown.contains("secret"), "{shown}");
    }
}
