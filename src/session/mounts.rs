//! Which transport takes a URL: requests' adapters.
//!
//! The prefixes stand in the settings, where preparing a URL asks for them, and what makes a
//! transport stands in the recipe under the same number. A session makes those that it needs.

use super::builder::{MakeTransport, SessionBuilder};
use super::live::Session;
use crate::error::{Error, ErrorKind};
use crate::message::{Settings, is_under, is_web};
use crate::transport::{IntoTransport, Transport};
use std::sync::Arc;
use url::Url;

impl SessionBuilder {
    /// A transport for the URLs that begin with `prefix`; requests' `mount`, `make` being what
    /// makes the adapter of each session.
    ///
    /// The longest prefix that fits decides, without regard to case; `http://` and `https://`
    /// stand for the engine, or for [`transport`](Self::transport), until something is mounted
    /// there. A prefix is compared as text: end it with a slash, since `http://a.test` takes
    /// `http://a.test.evil.example/` too. A prefix of another scheme makes the session speak it,
    /// for whoever names such a URL: a redirect from http never leads there.
    ///
    /// Cookies, credentials, hooks, retries and redirects are the session's as ever, and proxies
    /// are chosen and handed on; TLS is the transport's own. An [`Engine`] that is mounted has the
    /// clock and the switch of its own configuration: give it the recipe's
    /// [`cutter`](Self::cutter) where a stop should reach it.
    ///
    /// [`Engine`]: crate::transport::Engine
    ///
    /// # Ordering
    /// A later transport takes the place of an earlier one under the same prefix.
    ///
    /// # Examples
    /// ```
    /// use longhaul::time::SimClock;
    /// use longhaul::transport::{Play, Script};
    /// use longhaul::{ErrorKind, Session};
    /// use std::sync::Arc;
    ///
    /// let script = Script::with(Arc::new(SimClock::default()), |asked, _| {
    ///     Play::status(200).body(asked.url.path().to_owned())
    /// });
    /// let session = Session::builder().mount("mock://", move || script.clone()).build()?;
    /// assert_eq!(session.get("mock://shop/basket").send()?.text()?, "/basket");
    /// let error = session.get("ftp://shop/").send().unwrap_err();
    /// assert_eq!(error.kind(), ErrorKind::InvalidScheme);
    /// # Ok::<(), longhaul::Error>(())
    /// ```
    pub fn mount<T>(mut self, prefix: &str, make: impl Fn() -> T + Send + Sync + 'static) -> Self
    where
        T: IntoTransport,
    {
        let prefix = mount_prefix(prefix);
        let make: Arc<MakeTransport> = Arc::new(move || make().into_transport());
        let prefixes = &mut Arc::make_mut(&mut self.settings).mounts;
        if let Some(place) = prefixes.iter().position(|have| *have == prefix) {
            prefixes.remove(place);
            self.mounts.remove(place);
        }
        let longer = prefixes.iter().take_while(|have| have.len() >= prefix.len()).count();
        prefixes.insert(longer, prefix);
        self.mounts.insert(longer, make);
        self.changed()
    }

    /// The same without what was mounted.
    pub(super) fn unmounted(mut self) -> Self {
        self.mounts.clear();
        self.set(|settings| settings.mounts.clear())
    }

    /// The transport of the mount at this place.
    pub(super) fn make_mounted(&self, place: usize) -> Result<Box<dyn Transport>, Error> {
        match self.mounts.get(place) {
            Some(make) => make(),
            None => self.bare_transport(),
        }
    }
}

impl Session {
    /// The prefix of the transport that takes a URL, as requests' `get_adapter` finds the adapter:
    /// the longest one that the URL begins with, without regard to case.
    ///
    /// # Errors
    /// `InvalidScheme` where there is none.
    pub fn get_adapter(&self, url: &Url) -> Result<&str, Error> {
        let settings = self.settings();
        let own = if url.scheme() == "https" { "https://" } else { "http://" };
        let place = mount_of(settings, url)?;
        Ok(place.and_then(|place| settings.mounts.get(place)).map_or(own, String::as_str))
    }
}

/// The place of the longest prefix that a URL lies under; `None` where the engine's own, `http://`
/// and `https://`, are longer.
pub(super) fn mount_of(settings: &Settings, url: &Url) -> Result<Option<usize>, Error> {
    let own = if is_web(url.scheme()) { url.scheme().len() + "://".len() } else { 0 };
    let fits = |prefix: &String| prefix.len() >= own && is_under(url.as_str(), prefix);
    match settings.mounts.iter().position(fits) {
        None if own == 0 => {
            let text = format!(
                "no transport is mounted for {}; SessionBuilder::mount takes one",
                shown(url)
            );
            Err(Error::local(ErrorKind::InvalidScheme, text))
        }
        place => Ok(place),
    }
}

/// Scheme and host: what may be shown of a URL that nobody has prepared.
fn shown(url: &Url) -> String {
    format!("{}://{}", url.scheme(), url.host_str().unwrap_or_default())
}

/// A prefix as it is compared: in lower case, and without a default port, since no prepared URL
/// has one.
fn mount_prefix(prefix: &str) -> String {
    let prefix = prefix.to_ascii_lowercase();
    for (scheme, port) in [("http://", ":80"), ("https://", ":443")] {
        let host = prefix.strip_prefix(scheme).and_then(|rest| rest.split_once('/'));
        if let Some((host, path)) = host
            && let Some(host) = host.strip_suffix(port)
        {
            return format!("{scheme}{host}/{path}");
        }
    }
    prefix
}
