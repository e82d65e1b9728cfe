//! What a proxy really is, found out before a run depends on it.
//!
//! A list of proxies says how each is to be spoken to, and is often wrong: a SOCKS port sold as
//! http, a TLS port addressed in the clear, a password that was changed. In a run all of that looks
//! like a bad night. So each proxy is put to the test alone, with single attempts that nothing
//! retries, and every answer is kept apart: is it there, does it take the credentials, does it
//! forward, does it tunnel, by which address does it leave and does that change, what does it add
//! to a request, does it keep its connection, how long does each phase take.
//!
//! Where a proxy does not answer in the protocol that its scheme names, the others are tried on the
//! same port, and the one that gets an answer is suggested.
//!
//! What it costs: for each proxy a request per way (forward and CONNECT, or SOCKS), one more on the
//! kept connection, and one over a new connection for each exit that is asked for; and *one request
//! without a proxy* for all of them, which shows the own address to the endpoint. Each request
//! takes at most the connect and the read timeout together.

mod echo;
mod probe;

pub use echo::{Field, HeaderChanges};

use super::parallel;
use super::record::{ErrorRecord, TimingsRecord};
use super::sink::io_error;
use crate::error::{Error, ErrorKind};
use crate::proxy::{ProxyScheme, ProxyUrl, add_proxy_header};
use crate::session::SessionBuilder;
use probe::{Endpoint, Manner, probe};
use serde::{Serialize, Serializer};
use std::fmt;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::net::IpAddr;
use std::path::Path;
use std::sync::Arc;
use url::Url;

/// How many proxies are asked at the same time, unless told otherwise.
const WORKERS: usize = 16;
/// How many exits are asked for.
const REQUESTS: u32 = 4;

/// What a proxy turned out to be.
#[non_exhaustive]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ProxyState {
    /// The endpoint answered through it.
    Works,
    /// The endpoint answered, and saw the own address.
    Leaks,
    /// It is spoken to in the wrong protocol; [`CheckedProxy::speaks`] has the right one.
    WrongScheme,
    /// It does not accept the credentials, or wants some.
    Unauthorized,
    /// It answers, and refuses.
    Refuses,
    /// Nothing listens there, or the name does not exist.
    Unreachable,
    /// It is there, and what it says makes no sense in any protocol.
    Broken,
}

impl fmt::Display for ProxyState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Works => "works",
            Self::Leaks => "leaks",
            Self::WrongScheme => "wrong scheme",
            Self::Unauthorized => "unauthorized",
            Self::Refuses => "refuses",
            Self::Unreachable => "unreachable",
            Self::Broken => "broken",
        })
    }
}

/// When the exit changes.
#[non_exhaustive]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Rotates {
    /// Not in the requests that were made.
    Sticky,
    /// With the connection: a kept-alive one keeps its exit.
    PerConnection,
    /// With the request, on one connection too.
    PerRequest,
}

/// One way of using a proxy, tried.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct WayCheck {
    /// Whether the answer was the endpoint's.
    pub ok: bool,
    /// The status, where a response came; in a refused CONNECT the proxy's.
    pub status: Option<u16>,
    /// The failure, where one came.
    pub error: Option<ErrorRecord>,
    /// How long each phase took, where a response came.
    pub timings: Option<TimingsRecord>,
}

/// An address that was seen, and how often.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ExitCount {
    /// The address.
    pub address: IpAddr,
    /// On how many connections.
    pub times: u32,
}

/// What was found out about one proxy. No credential is in it.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct CheckedProxy {
    /// Its place in the list, from 1.
    pub n: usize,
    /// The proxy, redacted.
    pub proxy: String,
    /// What it turned out to be.
    pub state: ProxyState,
    /// Whether a run may use it as it stands.
    pub usable: bool,
    /// Whether something listens there.
    pub reachable: bool,
    /// Whether it took the credentials; `None` where it has none to take or that was not reached.
    pub authenticated: Option<bool>,
    /// A request in absolute form; only for http and https proxies, and an http endpoint.
    pub forward: Option<WayCheck>,
    /// A tunnel by CONNECT; only for http and https proxies.
    pub connect: Option<WayCheck>,
    /// A tunnel by SOCKS; only for SOCKS proxies.
    pub socks: Option<WayCheck>,
    /// The scheme that it does speak, where the given one is wrong.
    #[serde(serialize_with = "scheme_name")]
    pub speaks: Option<ProxyScheme>,
    /// The addresses seen, the most frequent first.
    pub exits: Vec<ExitCount>,
    /// On how many connections the exit was asked for, and on how many it was told.
    pub asked: u32,
    /// See [`asked`](Self::asked).
    pub told: u32,
    /// When the exit changes; `None` where it was told less than twice.
    pub rotates: Option<Rotates>,
    /// Whether a second request went over the connection of the first.
    pub keep_alive: Option<bool>,
    /// What it does to the fields of a request; `None` where the endpoint does not reflect them.
    pub headers: Option<HeaderChanges>,
    /// Whether a field that it adds names the own address.
    pub reveals_client: Option<bool>,
    /// The failure that decided, where one did.
    pub error: Option<ErrorRecord>,
    /// How long all of it took, in milliseconds.
    pub elapsed_ms: f64,
}

fn scheme_name<S: Serializer>(
    scheme: &Option<ProxyScheme>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    scheme.map(ProxyScheme::as_str).serialize(serializer)
}

/// What was found out about a list.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ProxyChecks {
    /// The own address as the endpoint sees it; `None` where it is not known.
    pub direct: Option<IpAddr>,
    /// One entry for each proxy, in the order of the list.
    pub proxies: Vec<CheckedProxy>,
    good: Vec<ProxyUrl>,
}

impl ProxyChecks {
    /// The proxies that a run may use.
    pub fn good(&self) -> &[ProxyUrl] {
        &self.good
    }

    /// Writes the usable proxies into a file, one URI a line, in the order of the list.
    ///
    /// The file **holds the credentials**, since a list without them is of no use. On Unix it can
    /// be read and written by its owner only (mode 0600), whatever its mode was before.
    ///
    /// # Errors
    /// `Io` where it cannot be written.
    pub fn write_good(&self, path: &Path) -> Result<(), Error> {
        let list: String = self.good.iter().map(|proxy| proxy.exposed() + "\n").collect();
        private_file(path).and_then(|mut file| file.write_all(list.as_bytes())).map_err(|error| {
            let name = path.display();
            io_error(format!("the list {name} cannot be written: {error}; name another"), error)
        })
    }
}

/// An empty file that only its owner can read.
fn private_file(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
        let file = options.mode(0o600).open(path)?;
        // A file that was there keeps its mode; a pipe or a terminal is nobody's to change.
        if file.metadata()?.is_file() {
            file.set_permissions(PermissionsExt::from_mode(0o600))?;
        }
        Ok(file)
    }
    #[cfg(not(unix))]
    options.open(path)
}

type OnChecked = dyn Fn(&CheckedProxy) + Send + Sync;

/// Checks proxies against an endpoint that reflects requests.
///
/// # Examples
/// ```no_run
/// use longhaul::batch::ProxyCheck;
/// use longhaul::{ProxyPool, Session};
///
/// # fn main() -> Result<(), longhaul::Error> {
/// let list = ProxyPool::parse("10.0.0.1:8000:anna:secret\nsocks5h://10.0.0.2:1080\n")?;
/// let found = ProxyCheck::new(Session::builder(), "http://echo.example/")?.run(list.proxies())?;
/// for proxy in &found.proxies {
///     println!("{} {} {:?}", proxy.proxy, proxy.state, proxy.exits);
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
#[must_use]
pub struct ProxyCheck {
    recipe: SessionBuilder,
    url: Url,
    requests: u32,
    workers: usize,
    always_connect: bool,
    proxy_headers: Arc<[(String, String)]>,
    told: Option<Arc<OnChecked>>,
}

impl ProxyCheck {
    /// A check with the timeouts, certificates and fields of this recipe. Its proxies, retries and
    /// cookies play no part.
    ///
    /// `url` answers with the address that it sees and, if it can, with the fields of the request:
    /// see [`address_in`](super::address_in). An http URL tries both ways of http proxies, an https
    /// URL only CONNECT, which many proxies refuse to ports other than 443.
    ///
    /// # Errors
    /// `InvalidUrl` for what is no http or https URL.
    pub fn new(recipe: SessionBuilder, url: &str) -> Result<Self, Error> {
        let url = match Url::parse(url.trim()) {
            Ok(url) if matches!(url.scheme(), "http" | "https") && url.has_host() => url,
            _ => {
                let text = "the endpoint of a check is no http or https URL; give one that answers \
                            with the address that it sees";
                return Err(Error::local(ErrorKind::InvalidUrl, text));
            }
        };
        Ok(Self {
            recipe,
            url,
            requests: REQUESTS,
            workers: WORKERS,
            always_connect: false,
            proxy_headers: Arc::default(),
            told: None,
        })
    }

    /// On how many connections the exit of each proxy is asked for; 0 counts as 1. Default: 4.
    pub fn requests(mut self, requests: u32) -> Self {
        self.requests = requests.max(1);
        self
    }

    /// How many proxies are checked at the same time; 0 counts as 1. Default: 16.
    pub fn workers(mut self, workers: usize) -> Self {
        self.workers = workers.max(1);
        self
    }

    /// Whether http and https proxies are tried by CONNECT alone, as a run with `always_connect` uses
    /// them. Default: both ways are tried.
    pub fn always_connect(mut self, always_connect: bool) -> Self {
        self.always_connect = always_connect;
        self
    }

    /// Adds a field that the proxies see and the endpoint does not, as
    /// [`ProxyPool::proxy_header`](crate::ProxyPool::proxy_header).
    ///
    /// # Errors
    /// `InvalidHeader` for a name that is no token, and for a value with a line break or NUL.
    pub fn proxy_header(mut self, name: &str, value: &str) -> Result<Self, Error> {
        self.proxy_headers = add_proxy_header(&self.proxy_headers, name, value)?;
        Ok(self)
    }

    /// Is told of each proxy as soon as it is done, on the thread that checked it.
    pub fn on_checked(mut self, told: impl Fn(&CheckedProxy) + Send + Sync + 'static) -> Self {
        self.told = Some(Arc::new(told));
        self
    }

    /// Checks each of these proxies; templates with the first session number.
    ///
    /// # Errors
    /// Those of [`SessionBuilder::build`], and `Config` where the endpoint answers without a proxy
    /// and its answer is of no use. A proxy that fails is no error.
    pub fn run<'p>(
        &self,
        proxies: impl IntoIterator<Item = &'p ProxyUrl>,
    ) -> Result<ProxyChecks, Error> {
        let given: Vec<&ProxyUrl> = proxies.into_iter().collect();
        let manner = Manner {
            requests: self.requests,
            always_connect: self.always_connect || self.recipe.settings().always_connect,
            proxy_headers: Arc::clone(&self.proxy_headers),
        };
        let endpoint = Endpoint::look(self.recipe.resolved()?, self.url.clone(), manner)?;
        let make = || endpoint.transport();
        let proxies = parallel::each(&given, self.workers, make, |transport, at, proxy| {
            let concrete =
                if proxy.has_template_user() { proxy.with_session(1) } else { (*proxy).clone() };
            let checked = probe(&endpoint, &mut **transport, at + 1, &concrete);
            if let Some(told) = &self.told {
                told(&checked);
            }
            checked
        })?;
        let usable = given.iter().zip(&proxies).filter(|(_, checked)| checked.usable);
        let good = usable.map(|(proxy, _)| (*proxy).clone()).collect();
        Ok(ProxyChecks { direct: endpoint.direct_address(), proxies, good })
    }
}

impl fmt::Debug for ProxyCheck {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ProxyCheck")
            .field("requests", &self.requests)
            .field("workers", &self.workers)
            .finish_non_exhaustive()
    }
}
