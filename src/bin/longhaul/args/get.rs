//! The flags of `longhaul get`.

use super::connection::ConnectionArgs;
use super::cookies::CookieArgs;
use super::credentials::CredentialArgs;
use super::proxies::ProxyListArgs;
use super::shared::{CeilingArgs, PolicyArgs};
use crate::values::{self, HeaderArg, Pin};
use clap::{ArgAction, Args};
use http::Method;
use std::path::PathBuf;

/// `longhaul get`.
#[derive(Debug, Clone, Default, Args)]
#[command(
    after_help = "Exit codes: 0 there was an answer (with --fail: below 400), 1 there was none, \
                  2 usage, 3 a proxy refused the credentials or none is left, 130 interrupted.\n\
                  Timeouts and retries are those of a run: --total 0 tries once, --redirect off \
                  shows a redirect.\n\
                  What begins with @ in -d and --json is the name of a file; @- is standard input.\n\n\
                  Examples:\n  \
                  longhaul get https://example.com/ -x 10.0.0.1:8000:anna:secret --total 0 -v\n  \
                  longhaul get https://example.com/list.csv -o list.csv --continue --deadline none\n  \
                  longhaul get https://api.example/items --json @item.json -H 'Accept: text/csv'"
)]
pub(crate) struct GetArgs {
    /// The URL. Default: none; it has to be there.
    #[arg(value_name = "URL")]
    pub(crate) url: String,

    /// The method. Default: GET; POST with a body, HEAD with -I.
    #[arg(short = 'X', long = "request", value_name = "METHOD", value_parser = values::method, help_heading = "Requests")]
    pub(crate) method: Option<Method>,

    /// A body, sent as a form unless -H names its Content-Type; several are joined by &.
    /// Default: none.
    #[arg(short, long, value_name = "DATA|@FILE", help_heading = "Requests")]
    pub(crate) data: Vec<String>,

    /// A body of JSON, sent byte for byte, with Content-Type and Accept. Default: none.
    #[arg(long, value_name = "JSON|@FILE", help_heading = "Requests")]
    pub(crate) json: Option<String>,

    /// A field of every request, 'Name: value'; 'Name:' removes one; may be given several times.
    /// Default: the four fields that requests sends.
    #[arg(short = 'H', long = "header", value_name = "NAME: VALUE", value_parser = values::header, help_heading = "Requests")]
    pub(crate) headers: Vec<HeaderArg>,

    /// Where a name is that is looked up on this computer, such as shop.example:10.0.0.1; several
    /// addresses are separated by commas; may be given several times. Default: as the system says.
    #[arg(long, value_name = "HOST:ADDRESS", value_parser = values::pin, help_heading = "Requests")]
    pub(crate) resolve: Vec<Pin>,

    #[command(flatten)]
    pub(crate) ceiling: CeilingArgs,

    #[command(flatten)]
    pub(crate) cookies: CookieArgs,

    #[command(flatten)]
    pub(crate) credentials: CredentialArgs,

    #[command(flatten)]
    pub(crate) connection: ConnectionArgs,

    /// Where the body goes: a file appears when it is complete. Default: standard output, but
    /// nothing binary to a terminal; - is standard output whatever it is.
    #[arg(short, long, value_name = "FILE", help_heading = "Output")]
    pub(crate) output: Option<PathBuf>,

    /// Go on where an earlier download into the file of -o broke off, and go on after each break
    /// within this one. Default: off.
    #[arg(long = "continue", help_heading = "Output")]
    pub(crate) go_on: bool,

    /// Print the body as it was coded for the transfer. Default: undo the content coding.
    #[arg(long, help_heading = "Output")]
    pub(crate) raw: bool,

    /// Print the head of the answer before the body, as it came; with -v those of all answers on the
    /// way to it. Default: the body alone.
    #[arg(short, long, help_heading = "Output")]
    pub(crate) include: bool,

    /// Ask for the head alone, and print it. Default: off.
    #[arg(short = 'I', long, help_heading = "Output")]
    pub(crate) head: bool,

    /// Print the record that a run would write instead of the body. Default: off.
    #[arg(long, help_heading = "Output")]
    pub(crate) json_result: bool,

    /// Exit with 1 and print no body where the status is 400 or above. Default: any answer is one.
    #[arg(short, long, help_heading = "Output")]
    pub(crate) fail: bool,

    #[command(flatten)]
    pub(crate) proxy_list: ProxyListArgs,

    /// Tunnel http targets with CONNECT too, for proxies that forward nothing. Default: off, as
    /// requests.
    #[arg(long, help_heading = "Proxies")]
    pub(crate) always_connect: bool,

    /// A field that the proxies see and the targets do not, 'Name: value'; may be given several
    /// times. Default: none.
    #[arg(long = "proxy-header", value_name = "NAME: VALUE", value_parser = values::header, help_heading = "Proxies")]
    pub(crate) proxy_headers: Vec<HeaderArg>,

    /// Ignore the environment: proxies, NO_PROXY, .netrc, CA bundles. Default: heed it, as
    /// requests does.
    #[arg(long, help_heading = "Proxies")]
    pub(crate) no_env: bool,

    #[command(flatten)]
    pub(crate) policy: PolicyArgs,

    /// Say nothing but errors. Default: what was tried in vain, too.
    #[arg(short, long, help_heading = "Messages")]
    pub(crate) quiet: bool,

    /// Tell every step, and how long each phase took; twice: the log, too; three times: all of it.
    /// RUST_LOG, where set, decides what is in the log. Default: what was tried in vain.
    #[arg(short, long, action = ArgAction::Count, help_heading = "Messages")]
    pub(crate) verbose: u8,
}
