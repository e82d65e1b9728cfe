//! Whose a cookie is: domains that servers, people and files name, and the public suffix list.

use cookie_store::{CookieDomain, CookiePath};
use std::net::{Ipv4Addr, Ipv6Addr};
use url::{Host, Url};

/// The domain of a `Domain` attribute, where the host may set cookies for it.
pub(super) fn allowed(domain: &[u8], url: &Url) -> Option<CookieDomain> {
    let domain = std::str::from_utf8(domain).ok().filter(|domain| domain.is_ascii())?;
    let domain = CookieDomain::try_from(domain).ok()?;
    let CookieDomain::Suffix(suffix) = &domain else {
        return CookieDomain::host_only(url).ok();
    };
    if is_public_suffix(suffix, url) {
        // A public suffix may set a cookie for itself.
        let own = CookieDomain::host_only(url).ok()?;
        return own.host_is_identical(url).then_some(own).filter(|_| domain.host_is_identical(url));
    }
    domain.matches(url).then_some(domain)
}

/// A domain that a person or a file names.
pub(super) struct Named {
    pub(super) domain: CookieDomain,
    /// The root, as if by default.
    pub(super) path: CookiePath,
    /// Whether the hosts below were meant, and belong to different owners. The domain is the one
    /// host then, as where a server does this (RFC 6265bis 5.7).
    pub(super) is_shared: bool,
}

impl Named {
    /// The host alone, or the hosts `below` it too; `None` for what is no host.
    pub(super) fn of(host: &str, below: bool) -> Option<Self> {
        let bracketed;
        let inner = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
        let host = match inner.unwrap_or(host).parse::<Ipv6Addr>() {
            Ok(address) => {
                bracketed = format!("[{address}]");
                &bracketed
            }
            Err(_) => host,
        };
        let have = Host::parse(host).ok()?.to_string();
        // The parser finds a host in `127.1` and `%68.test` too, which are probably none.
        if host.is_ascii() && !have.eq_ignore_ascii_case(host) {
            return None;
        }
        // Nor is one with an empty label; a dot may stand at its end.
        if have.strip_suffix('.').unwrap_or(&have).split('.').any(str::is_empty) {
            return None;
        }
        let url = Url::parse(&format!("https://{have}/")).ok()?;
        let own = CookieDomain::host_only(&url).ok()?;
        let is_name = matches!(url.host(), Some(Host::Domain(_)));
        let is_shared = below && is_public_suffix(&have, &url);
        let domain = match own {
            CookieDomain::HostOnly(name) if below && is_name && !is_shared => {
                CookieDomain::Suffix(name)
            }
            own => own,
        };
        Some(Self { domain, path: CookiePath::default_path(&url), is_shared })
    }

    /// The host, as a cookie spells it.
    pub(super) fn into_host(self) -> String {
        match self.domain {
            CookieDomain::HostOnly(host) | CookieDomain::Suffix(host) => host,
            CookieDomain::NotPresent | CookieDomain::Empty => String::new(),
        }
    }
}

/// Whether unrelated sites live under `domain`; every single label counts as one.
fn is_public_suffix(domain: &str, url: &Url) -> bool {
    matches!(url.host(), Some(Host::Domain(_)))
        && psl::suffix_str(domain).is_none_or(|suffix| suffix == domain)
}

/// What the jar is sorted by: the domain that one owner has, or the host.
pub(super) fn owner(url: &Url) -> &str {
    match url.host() {
        Some(Host::Domain(host)) => psl::domain_str(host).unwrap_or(host),
        _ => url.host_str().unwrap_or_default(),
    }
}

/// The same of a cookie's domain.
pub(super) fn owner_of(domain: &str) -> &str {
    if is_address(domain) { domain } else { psl::domain_str(domain).unwrap_or(domain) }
}

pub(super) fn is_address(domain: &str) -> bool {
    domain.starts_with('[') || domain.parse::<Ipv4Addr>().is_ok()
}
