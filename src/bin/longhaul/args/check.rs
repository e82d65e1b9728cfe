//! The flags of `longhaul check`.

use super::connection::ConnectionArgs;
use super::proxies::ProxyListArgs;
use crate::values::{self, HeaderArg, Limit};
use clap::{ArgAction, Args};
use std::num::{NonZeroU32, NonZeroUsize};
use std::path::PathBuf;

/// `longhaul check`.
#[derive(Debug, Clone, Default, Args)]
#[command(
    after_help = "Exit codes: 0 some proxy works, 1 none does, 2 usage or an endpoint of no use.\n\
                  The endpoint is also asked once without a proxy, and so sees the own address.\n\n\
                  Examples:\n  \
                  longhaul check --proxies proxies.txt --url http://echo.example/ --good good.txt\n  \
                  longhaul check -x 10.0.0.1:8000:anna:secret --url https://echo.example/"
)]
pub(crate) struct CheckArgs {
    #[command(flatten)]
    pub(crate) list: ProxyListArgs,

    /// A URL that answers with the address it sees, and with the fields of the request if it can;
    /// an http URL tries both ways of http proxies. Default: a server on this computer, which only
    /// proxies on this computer can reach.
    #[arg(long, value_name = "ECHO_URL", help_heading = "Check")]
    pub(crate) url: Option<String>,

    /// Connections on which the exit of each proxy is asked for. Default: 4.
    #[arg(short = 'n', long = "requests", value_name = "N", allow_negative_numbers = true, value_parser = values::count::<NonZeroU32>, help_heading = "Check")]
    pub(crate) requests: Option<NonZeroU32>,

    /// Proxies that are checked at the same time. Default: 16.
    #[arg(short, long, value_name = "N", allow_negative_numbers = true, value_parser = values::workers, help_heading = "Check")]
    pub(crate) workers: Option<NonZeroUsize>,

    /// Budget for DNS, TCP, proxy handshake and TLS together, or none. Default: 5.
    #[arg(long, value_name = "S", allow_negative_numbers = true, value_parser = values::timeout, help_heading = "Check")]
    pub(crate) connect_timeout: Option<Limit>,

    /// Longest silence between two bytes, or none. Default: 10, since a proxy that takes longer is
    /// of no use.
    #[arg(long, value_name = "S", allow_negative_numbers = true, value_parser = values::timeout, help_heading = "Check")]
    pub(crate) read_timeout: Option<Limit>,

    /// Tunnel http targets with CONNECT too, for proxies that forward nothing. Default: try both
    /// ways.
    #[arg(long, help_heading = "Check")]
    pub(crate) always_connect: bool,

    /// A field that the proxies see and the targets do not, 'Name: value'; may be given several
    /// times. Default: none.
    #[arg(long = "proxy-header", value_name = "NAME: VALUE", value_parser = values::header, help_heading = "Check")]
    pub(crate) proxy_headers: Vec<HeaderArg>,

    #[command(flatten)]
    pub(crate) connection: ConnectionArgs,

    /// One JSON object per proxy and line instead of the table. Default: the table.
    #[arg(long, help_heading = "Results")]
    pub(crate) json: bool,

    /// Write the proxies that work into this file, with their credentials, readable by its owner
    /// only. Default: no file.
    #[arg(long, value_name = "FILE", help_heading = "Results")]
    pub(crate) good: Option<PathBuf>,

    /// Say more; twice: everything. RUST_LOG, where set, decides instead. Default: warnings.
    #[arg(short, long, action = ArgAction::Count, help_heading = "Results")]
    pub(crate) verbose: u8,
}
