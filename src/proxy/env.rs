//! Proxies from the environment, the one place of this layer that reads it.
//!
//! The variables are those of requests and curl, and so are the rules between them. What differs is
//! what happens to a value that makes no sense: it is an error that names the variable. A client
//! that passes over it goes direct, and so shows the address that the proxy was to hide.
//!
//! * `DIFFERENCE(env-malformed)`: a value that is no proxy is an error, not a failed request.
//! * `DIFFERENCE(env-exact-case)`: only the all-lower and the all-upper spelling are read, not
//!   `Http_Proxy`.
//! * `DIFFERENCE(env-http-only)`: `FTP_PROXY` and its like are not read.

use super::{NoProxy, ProxyUrl};
use crate::error::{Error, ErrorKind};
use std::env;
use std::ffi::OsString;
use std::sync::Arc;
use url::Url;

/// What HTTP_PROXY, HTTPS_PROXY, ALL_PROXY and NO_PROXY say.
///
/// * Each is read in lower and upper case. The lower-case one wins if it is set at all: empty, it
///   takes the upper-case one back. (`no_proxy` wins only if it is not empty, as in requests.)
/// * An empty value is none, and surrounding whitespace does not count.
/// * `HTTP_PROXY` in upper case is ignored where `REQUEST_METHOD` is set: under CGI, a client can
///   set it with a header `Proxy`.
/// * The variable of the URL's scheme wins over `ALL_PROXY`; `HTTP_PROXY` says nothing of https.
#[derive(Debug, Clone, Default)]
pub struct EnvProxies {
    http: Option<Arc<ProxyUrl>>,
    https: Option<Arc<ProxyUrl>>,
    all: Option<Arc<ProxyUrl>>,
    no_proxy: NoProxy,
}

impl EnvProxies {
    /// Reads the variables through `var`.
    ///
    /// # Errors
    /// `InvalidProxyUrl` that names the variable; never silently direct.
    pub fn read(var: impl Fn(&str) -> Option<String>) -> Result<Self, Error> {
        Self::read_os(|name| var(name).map(OsString::from))
    }

    /// Reads the environment of the process.
    ///
    /// # Errors
    /// As [`read`](Self::read), and for a proxy that is not Unicode.
    pub fn from_env() -> Result<Self, Error> {
        // Where names have no case, a header can reach the lower-case variable too.
        let cgi_without_case = cfg!(windows) && env::var_os("REQUEST_METHOD").is_some();
        Self::read_os(|name| {
            if cgi_without_case && name == "http_proxy" { None } else { env::var_os(name) }
        })
    }

    fn read_os(var: impl Fn(&str) -> Option<OsString>) -> Result<Self, Error> {
        let proxy = |lower: &'static str, upper: &'static str| {
            let (name, value) = match var(lower) {
                Some(value) => (lower, value),
                None if upper == "HTTP_PROXY" && var("REQUEST_METHOD").is_some() => {
                    return Ok(None);
                }
                None => (upper, var(upper).unwrap_or_default()),
            };
            let Some(value) = value.to_str() else {
                let message = format!("{name}: its value is not Unicode; correct it or unset it");
                return Err(Error::local(ErrorKind::InvalidProxyUrl, message));
            };
            if value.trim().is_empty() {
                return Ok(None);
            }
            ProxyUrl::parse_at(value, name).map(|proxy| Some(Arc::new(proxy)))
        };
        let no_proxy = var("no_proxy").filter(|list| !list.is_empty()).or_else(|| var("NO_PROXY"));
        Ok(Self {
            http: proxy("http_proxy", "HTTP_PROXY")?,
            https: proxy("https_proxy", "HTTPS_PROXY")?,
            all: proxy("all_proxy", "ALL_PROXY")?,
            no_proxy: NoProxy::parse(&no_proxy.unwrap_or_default().to_string_lossy()),
        })
    }

    /// The proxy for `url`, NO_PROXY considered; `None` is direct.
    pub fn select(&self, url: &Url) -> Option<&Arc<ProxyUrl>> {
        let proxy = self.for_scheme(url).or(self.for_all());
        proxy.filter(|_| !self.no_proxy.matches(url))
    }

    /// Whether no proxy is named.
    pub fn is_empty(&self) -> bool {
        self.http.is_none() && self.https.is_none() && self.all.is_none()
    }

    /// The proxies that are named, each once.
    pub fn proxies(&self) -> impl Iterator<Item = &ProxyUrl> {
        let all = [&self.http, &self.https, &self.all].map(Option::as_deref);
        (0..all.len()).filter_map(move |at| {
            let proxy = (*all.get(at)?)?;
            let before = all.get(..at)?;
            (!before.contains(&Some(proxy))).then_some(proxy)
        })
    }

    /// The hosts that go direct.
    pub fn no_proxy(&self) -> &NoProxy {
        &self.no_proxy
    }

    /// What the variable of the URL's scheme says, NO_PROXY left aside.
    pub(super) fn for_scheme(&self, url: &Url) -> Option<&Arc<ProxyUrl>> {
        match url.scheme() {
            "http" => self.http.as_ref(),
            "https" => self.https.as_ref(),
            _ => None,
        }
    }

    /// What ALL_PROXY says, NO_PROXY left aside.
    pub(super) fn for_all(&self) -> Option<&Arc<ProxyUrl>> {
        self.all.as_ref()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(pairs: &[(&str, &str)]) -> Result<EnvProxies, Error> {
        EnvProxies::read(|name| {
            pairs.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
        })
    }

    #[test]
    fn precedence() {
        type Case<'a> = (&'a [(&'a str, &'a str)], &'a str, Option<&'a str>);
        let table: &[Case<'_>] = &[
            (&[("ALL_PROXY", "dead:1"), ("HTTP_PROXY", "live:1")], "http://e.test", Some("live")),
            (&[("HTTP_PROXY", "dead:1"), ("http_proxy", "live:1")], "http://e.test", Some("live")),
            (&[("HTTPS_PROXY", "dead:1"), ("HTTP_PROXY", "live:1")], "http://e.test", Some("live")),
            (&[("HTTP_PROXY", "live:1")], "https://e.test", None),
            (&[("HTTP_PROXY", "a:1"), ("all_proxy", "b:1")], "https://e.test", Some("b")),
            (&[("HTTP_PROXY", "")], "http://e.test", None),
            (&[("HTTP_PROXY", " \n")], "http://e.test", None),
            (&[("HTTP_PROXY", ""), ("ALL_PROXY", "b:1")], "http://e.test", Some("b")),
            // A lower-case empty one takes the upper-case one back.
            (&[("http_proxy", ""), ("HTTP_PROXY", "a:1")], "http://e.test", None),
            (&[("HTTP_PROXY", "127.0.0.1:1 ")], "http://e.test", Some("127.0.0.1")),
            // CGI.
            (&[("HTTP_PROXY", "a:1"), ("REQUEST_METHOD", "")], "http://e.test", None),
            (&[("http_proxy", "a:1"), ("REQUEST_METHOD", "GET")], "http://e.test", Some("a")),
            (&[("HTTPS_PROXY", "a:1"), ("REQUEST_METHOD", "GET")], "https://e.test", Some("a")),
            // NO_PROXY.
            (&[("HTTP_PROXY", "a:1"), ("NO_PROXY", "e.test")], "http://e.test", None),
            (&[("HTTP_PROXY", "a:1"), ("no_proxy", "e.test")], "http://sub.e.test", None),
            (&[("HTTP_PROXY", "a:1"), ("NO_PROXY", "f.test")], "http://e.test", Some("a")),
            (
                &[("ALL_PROXY", "a:1"), ("no_proxy", "f.test"), ("NO_PROXY", "e.test")],
                "http://e.test",
                Some("a"),
            ),
            (
                &[("ALL_PROXY", "a:1"), ("no_proxy", ""), ("NO_PROXY", "e.test")],
                "http://e.test",
                None,
            ),
            (&[], "http://e.test", None),
        ];
        for (pairs, url, wanted) in table {
            let proxies = read(pairs).unwrap();
            let chosen = proxies.select(&url.parse().unwrap()).map(|proxy| proxy.host());
            assert_eq!(chosen, *wanted, "{pairs:?} {url}");
        }
    }

    #[test]
    fn malformed_values_name_their_variable() {
        let table = [
            ("HTTPS_PROXY", "foo://x"),
            ("http_proxy", "http://user:secret"),
            ("ALL_PROXY", "http://user:secret@10.0.0.1:x"),
        ];
        for (name, value) in table {
            let error = read(&[(name, value)]).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidProxyUrl);
            let message = error.to_string();
            assert!(message.starts_with(&format!("{name}: the proxy `")), "{message}");
            assert!(!message.contains("secret"), "{message}");
        }
        // One that is not in force is not read.
        assert!(read(&[("HTTP_PROXY", "foo://x"), ("http_proxy", "a:1")]).is_ok());
        assert!(read(&[("HTTP_PROXY", "foo://x"), ("REQUEST_METHOD", "GET")]).is_ok());
        // A spelling of proxy lists works here too.
        let proxies = read(&[("HTTP_PROXY", "10.0.0.1:8000:user:pass")]).unwrap();
        let chosen = proxies.select(&"http://e.test".parse().unwrap()).unwrap();
        assert_eq!(chosen.credentials(), Some((&b"user"[..], &b"pass"[..])));
    }

    #[cfg(unix)]
    #[test]
    fn values_that_are_not_unicode() {
        use std::os::unix::ffi::OsStringExt;
        let read = |wanted: &'static str| {
            EnvProxies::read_os(move |name| {
                (name == wanted).then(|| OsString::from_vec(b"e.test,\xff".to_vec()))
            })
        };
        let error = read("ALL_PROXY").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidProxyUrl);
        assert!(error.to_string().starts_with("ALL_PROXY: its value is not Unicode"), "{error}");
        // Junk in a list is passed over.
        let proxies = read("NO_PROXY").unwrap();
        assert!(proxies.no_proxy().matches(&"http://e.test".parse().unwrap()));
    }

    #[test]
    fn emptiness() {
        assert!(read(&[("NO_PROXY", "*")]).unwrap().is_empty());
        assert!(!read(&[("ALL_PROXY", "a:1")]).unwrap().is_empty());
    }
}
