//! `NO_PROXY`: which hosts the environment's proxies leave alone.
//!
//! There is no standard for this variable, only programs that differ. The rules here are those of
//! requests, with the gaps closed where requests accepts a spelling without ever matching it: an
//! entry that its author wrote down and that silently does nothing sends traffic to a proxy that
//! was meant to stay inside. Entries that mean nothing to anybody are passed over, and no name is
//! ever looked up to decide.
//!
//! Differences from requests, each with a test over the recorded answers of the real library:
//!
//! * `DIFFERENCE(no-proxy-trailing-dot)`: one trailing dot is ignored on either side.
//! * `DIFFERENCE(no-proxy-ipv6)`: `[::1]`, `[::1]:8080` and IPv6 CIDR blocks match.
//! * `DIFFERENCE(no-proxy-ip-port)`: `10.1.2.3:8080` matches that port, as it does for names.
//! * `DIFFERENCE(no-proxy-default-port)`: `example.com:80` also matches a URL that leaves 80 out.
//! * `DIFFERENCE(no-proxy-zero-prefix)`: `0.0.0.0/0` is every IPv4 address.
//! * `DIFFERENCE(no-proxy-star-anywhere)`: `*` counts wherever it stands in the list.
//! * `DIFFERENCE(no-proxy-idna)`: U-labels and A-labels of one name are equal.
//! * `DIFFERENCE(no-proxy-ip-suffix)`: an address is no name, so `2.3` does not cover `10.1.2.3`.
//! * `DIFFERENCE(whatwg-url)`: the host is what the WHATWG parser makes of the URL, so `0x7f.1` is
//!   127.0.0.1, the address that is dialled.

use ipnet::IpNet;
use std::net::{IpAddr, Ipv6Addr};
use url::{Host, Url};

/// The hosts that go direct.
///
/// A comma-separated list of: `*` (every host); a name, which also covers its sub-domains, with or
/// without leading dots; an IPv4 or IPv6 address, the latter with or without brackets; a CIDR block
/// of either family. A name and an address may carry a `:port`, an IPv6 address then in brackets.
/// Case and spaces do not matter.
///
/// # Examples
/// ```
/// use longhaul::proxy::NoProxy;
///
/// let list = NoProxy::parse("internal.example, 10.0.0.0/8, [::1]:8080");
/// assert!(list.matches(&"http://db.internal.example/".parse().unwrap()));
/// assert!(list.matches(&"http://10.1.2.3/".parse().unwrap()));
/// assert!(!list.matches(&"http://notinternal.example/".parse().unwrap()));
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NoProxy {
    everything: bool,
    rules: Vec<Rule>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Rule {
    hosts: Hosts,
    port: Option<u16>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Hosts {
    Block(IpNet),
    /// This name and those below it; lower case, without a dot at either end.
    Domain(String),
}

impl NoProxy {
    /// Parses the value of the variable; junk is ignored.
    pub fn parse(value: &str) -> Self {
        let mut list = Self::default();
        // requests drops spaces wherever they stand.
        for entry in value.replace(' ', "").split(',') {
            match entry.trim() {
                "*" => list.everything = true,
                entry => list.rules.extend(Rule::parse(entry)),
            }
        }
        list
    }

    /// Whether `url` goes direct. Never resolves a name.
    ///
    /// A URL without a host matches, as in requests: there is nothing to ask a proxy for.
    pub fn matches(&self, url: &Url) -> bool {
        let Some(host) = url.host() else {
            return true;
        };
        if self.everything {
            return true;
        }
        let port = url.port_or_known_default();
        self.rules.iter().any(|rule| {
            (rule.port.is_none() || rule.port == port)
                && match host {
                    Host::Domain(name) => rule.covers_name(name),
                    Host::Ipv4(address) => rule.covers_address(address.into()),
                    Host::Ipv6(address) => rule.covers_address(address.into()),
                }
        })
    }

    /// Whether no host goes direct.
    pub fn is_empty(&self) -> bool {
        !self.everything && self.rules.is_empty()
    }
}

impl Rule {
    fn parse(entry: &str) -> Option<Self> {
        if let Some((address, length)) = entry.split_once('/') {
            let block = IpNet::new(parse_address(address)?, length.parse().ok()?).ok()?;
            return Some(Self { hosts: Hosts::Block(block.trunc()), port: None });
        }
        if let Ok(address) = entry.parse::<Ipv6Addr>() {
            return Some(Self {
                hosts: Hosts::Block(IpNet::from(IpAddr::from(address))),
                port: None,
            });
        }
        let (host, port) = match entry.rsplit_once(':') {
            Some((host, port)) if !entry.ends_with(']') => (host, Some(port.parse().ok()?)),
            _ => (entry, None),
        };
        if let Some(address) = parse_address(host.strip_suffix('.').unwrap_or(host)) {
            return Some(Self { hosts: Hosts::Block(IpNet::from(address)), port });
        }
        let name = host.trim_start_matches('.');
        match Host::parse(name.strip_suffix('.').unwrap_or(name)) {
            // No host that is dialled holds a star: `*.example.com` is no spelling of requests'.
            Ok(Host::Domain(name)) if !name.contains('*') && !name.ends_with('.') => {
                Some(Self { hosts: Hosts::Domain(name), port })
            }
            _ => None,
        }
    }

    fn covers_name(&self, host: &str) -> bool {
        let host = host.strip_suffix('.').unwrap_or(host);
        match &self.hosts {
            Hosts::Domain(name) => host.strip_suffix(name.as_str()).is_some_and(|before| {
                // The suffix begins at a dot, or is the whole.
                before.is_empty() || before.ends_with('.')
            }),
            Hosts::Block(_) => false,
        }
    }

    fn covers_address(&self, address: IpAddr) -> bool {
        match &self.hosts {
            // `::ffff:10.1.2.3` is a way to dial 10.1.2.3.
            Hosts::Block(block) => {
                block.contains(&address) || block.contains(&address.to_canonical())
            }
            Hosts::Domain(_) => false,
        }
    }
}

/// An address in any of the spellings that a URL may hold: IPv6 with or without brackets, IPv4 as
/// `inet_aton` reads it.
fn parse_address(text: &str) -> Option<IpAddr> {
    if let Ok(address) = text.parse::<Ipv6Addr>() {
        return Some(address.into());
    }
    match Host::parse(text).ok()? {
        Host::Ipv4(address) => Some(address.into()),
        Host::Ipv6(address) => Some(address.into()),
        Host::Domain(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn table() {
        let table: &[(&str, &str, bool)] = &[
            ("example.test", "http://sub.example.test/", true),
            ("example.test", "http://example.test/", true),
            (".example.test", "http://example.test/", true),
            ("..example.test", "http://a.example.test/", true),
            ("ple.test", "http://example.test/", false),
            ("EXAMPLE.TEST", "http://example.test/", true),
            ("example.test", "http://EXAMPLE.test/", true),
            ("a.test, example.test", "http://example.test/", true),
            ("a.test,\texample.test\n", "http://example.test/", true),
            ("example.test:8080", "http://example.test:8080/", true),
            ("example.test:8080", "http://sub.example.test:8080/", true),
            ("example.test:8080", "http://example.test:9090/", false),
            ("example.test:443", "https://example.test/", true),
            ("example.test:443", "http://example.test/", false),
            ("example.test:port", "http://example.test/", false),
            ("127.0.0.0/8", "http://127.9.9.9:80/", true),
            ("127.0.0.0/8", "http://128.0.0.1/", false),
            ("127.0.0.1", "http://127.0.0.1:99/", true),
            ("127.0.0.1.", "http://127.0.0.1/", true),
            ("127.0.0.1:99", "http://127.0.0.1:99/", true),
            ("127.0.0.1:99", "http://127.0.0.1/", false),
            ("10.1.2.3/08", "http://10.9.9.9/", true),
            ("10.1.2.3/33", "http://10.1.2.3/", false),
            ("::1", "http://[::1]/", true),
            ("[::1]", "http://[::1]/", true),
            ("[::1]:80", "http://[::1]/", true),
            ("[::1]:81", "http://[::1]/", false),
            ("fe80::/10", "http://[fe80::1]/", true),
            ("[fe80::]/10", "http://[fe80::1]/", true),
            ("fe80::/10", "http://[fec0::1]/", false),
            ("fe80::/129", "http://[fe80::1]/", false),
            ("2001:DB8::1", "http://[2001:db8::1]/", true),
            ("0.0.0.0/0", "http://10.1.2.3/", true),
            ("0.0.0.0/0", "http://[::1]/", false),
            ("0.0.0.0/0", "http://example.test/", false),
            ("::/0", "http://[::1]/", true),
            ("10.0.0.0/8", "http://[::ffff:10.1.2.3]/", true),
            ("example.test.", "http://example.test/", true),
            ("example.test", "http://example.test./", true),
            ("example.test..", "http://example.test/", false),
            ("*", "http://anything.example/", true),
            ("a.test,*", "http://[::1]/", true),
            ("a.test, * ,b", "http://anything.example/", true),
            ("192.168.*", "http://192.168.1.1/", false),
            ("*.example.test", "http://a.example.test/", false),
            ("http://example.test", "http://example.test/", false),
            ("example.test/path", "http://example.test/", false),
            ("2.3", "http://10.1.2.3/", false),
            (".1.2.3", "http://10.1.2.3/", false),
            ("localhost", "http://127.0.0.1/", false),
            ("127.0.0.1", "http://localhost/", false),
            ("b\u{fc}cher.example", "http://xn--bcher-kva.example/", true),
            ("xn--bcher-kva.example", "http://b\u{fc}cher.example/", true),
            (",,", "http://example.test/", false),
            ("", "http://example.test/", false),
            (".", "http://example.test./", false),
            (":8080", "http://example.test:8080/", false),
            ("[]", "http://example.test/", false),
            ("[::1", "http://[::1]/", false),
            ("example.test", "http://user:pw@example.test/", true),
            ("example.test", "http://example.test@evil.org/", false),
            ("", "file:///etc/hosts", true),
        ];
        for (list, url, wanted) in table {
            let url: Url = url.parse().unwrap();
            assert_eq!(NoProxy::parse(list).matches(&url), *wanted, "{list:?} {url}");
        }
    }

    #[test]
    fn junk_leaves_nothing() {
        for junk in ["", " ", ",,", ".", "..", ":", "[]", "/", "a b/8", "*.x", "http://x", "%%%"] {
            assert!(NoProxy::parse(junk).is_empty(), "{junk:?}");
        }
        assert!(!NoProxy::parse("x,*").is_empty());
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn never_panics(list in "\\PC{0,80}", near in "[a1.:/*\\[\\], ]{0,30}") {
            for url in ["http://a.example/", "http://10.1.2.3:81/", "http://[::1]/", "file:///x"] {
                let url: Url = url.parse().unwrap();
                NoProxy::parse(&list).matches(&url);
                NoProxy::parse(&near).matches(&url);
            }
        }

        #[test]
        fn more_entries_never_match_less(a in "[a-c.*:1,/]{0,20}", b in "[a-c.*:1,/]{0,20}") {
            let url: Url = "http://a.b.c:1/".parse().unwrap();
            let both = NoProxy::parse(&format!("{a},{b}")).matches(&url);
            let either = NoProxy::parse(&a).matches(&url) || NoProxy::parse(&b).matches(&url);
            prop_assert_eq!(both, either);
        }
    }
}
