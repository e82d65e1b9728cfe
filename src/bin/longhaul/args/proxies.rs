//! The flags about proxies.

use crate::values::{self, HeaderArg, Rate};
use clap::{Args, ValueEnum};
use std::num::{NonZeroU64, NonZeroUsize};
use std::path::PathBuf;

/// Which proxies there are.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct ProxyListArgs {
    /// A proxy, such as http://user:pass@host:port, socks5h://host:port or host:port:user:pass;
    /// may be given several times. Default: those of the environment, else none.
    #[arg(short = 'x', long = "proxy", value_name = "PROXY", help_heading = "Proxies")]
    pub(crate) proxies: Vec<String>,

    /// A list of proxies, one a line. Default: none.
    #[arg(long = "proxies", value_name = "FILE", help_heading = "Proxies")]
    pub(crate) proxy_file: Option<PathBuf>,
}

/// How a run uses its proxies.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct ProxyUseArgs {
    /// When another proxy is taken. Default: request. A retry always takes another one.
    #[arg(long, value_name = "WHEN", help_heading = "Proxies")]
    pub(crate) rotate: Option<Rotate>,

    /// Who gets a number of their own where {n} stands in a user name, and so an exit of their own.
    /// Default: worker, where a user name has {n}.
    #[arg(long, value_name = "WHO", help_heading = "Proxies")]
    pub(crate) session_per: Option<SessionWho>,

    /// Retry over a new connection, and under a new number where user names have one, so that a
    /// gateway takes another exit. Default: on.
    #[arg(long, overrides_with = "no_fresh_exit", help_heading = "Proxies")]
    pub(crate) fresh_exit: bool,

    /// Retry over the kept connection and under the same number. Default: off.
    #[arg(long, overrides_with = "fresh_exit", help_heading = "Proxies")]
    pub(crate) no_fresh_exit: bool,

    /// Tunnel http targets with CONNECT too, for proxies that forward nothing. Default: off, as
    /// requests.
    #[arg(long, help_heading = "Proxies")]
    pub(crate) always_connect: bool,

    /// A field that the proxies see and the targets do not, 'Name: value'; may be given several
    /// times. Default: none.
    #[arg(long = "proxy-header", value_name = "NAME: VALUE", value_parser = values::header, help_heading = "Proxies")]
    pub(crate) proxy_headers: Vec<HeaderArg>,

    /// Requests in flight through one proxy at most. Default: no limit but the workers.
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = values::count::<NonZeroUsize>, help_heading = "Proxies")]
    pub(crate) parallel_per_proxy: Option<NonZeroUsize>,

    /// Requests in flight with one user and password at most, over all proxies. Default: no limit
    /// but the workers.
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = values::count::<NonZeroUsize>, help_heading = "Proxies")]
    pub(crate) parallel_per_credential: Option<NonZeroUsize>,

    /// Requests per time through one proxy, evenly spaced, such as 5/s or 300/min. Default: no
    /// limit.
    #[arg(long, value_name = "N/s", allow_negative_numbers = true, value_parser = values::rate, help_heading = "Proxies")]
    pub(crate) rate_per_proxy: Option<Rate>,

    /// Requests per time with one user and password, over all proxies. Default: no limit.
    #[arg(long, value_name = "N/s", allow_negative_numbers = true, value_parser = values::rate, help_heading = "Proxies")]
    pub(crate) rate_per_credential: Option<Rate>,

    /// A URL that answers with the address it sees: the run starts only if no proxy shows the own
    /// one. Default: no check.
    #[arg(long, value_name = "URL", help_heading = "Proxies")]
    pub(crate) exit_check: Option<String>,

    /// Ask the URL of --exit-check again after every N URLs: the summary tells how many exits there
    /// were, and the own address stops the run. Default: no samples.
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = values::count::<NonZeroU64>, help_heading = "Proxies")]
    pub(crate) exit_sample: Option<NonZeroU64>,
}

/// `--rotate`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Rotate {
    /// For every request, round robin.
    Request,
    /// Only on a retry.
    Retry,
    /// One proxy per host, until it fails.
    Host,
    /// At random.
    Random,
}

/// `--session-per`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum SessionWho {
    /// Each worker, until a retry has to leave its exit.
    Worker,
    /// Each URL, with its redirects.
    Url,
    /// Each request.
    Request,
}
