//! squid as HTTP proxy.

use std::net::SocketAddr;
use std::path::Path;

use super::process::{Ground, Program};
use super::{require, skip};

/// [`PASSWORD`](super::PASSWORD) of [`USER`](super::USER), as the helper of squid reads it.
const PASSWORDS: &str = "lab:$apr1$longhaul$cohxpIjrhXtfom6UQK/KO.\n";

/// How squid is set up.
#[derive(Debug, Clone, Default)]
pub(crate) struct SquidOptions {
    /// Demand the credentials of [`USER`](super::USER), checked by squid's own helper.
    pub(crate) credentials: bool,
    /// Keep the rule that squid is shipped with, by which CONNECT is for port 443 alone.
    pub(crate) connect_only_443: bool,
    /// Names that only this proxy knows, all at 127.0.0.1.
    pub(crate) names: Vec<&'static str>,
}

/// A running squid, without a cache.
pub(crate) struct Squid {
    program: Program,
}

impl Squid {
    pub(crate) fn start(options: &SquidOptions) -> Option<Self> {
        let squid = require("squid")?;
        let helper = ["/usr/lib/squid", "/usr/lib64/squid", "/usr/libexec/squid"]
            .map(|folder| Path::new(folder).join("basic_ncsa_auth"))
            .into_iter()
            .find(|helper| helper.exists());
        if options.credentials && helper.is_none() {
            let required =
                std::env::var_os("LONGHAUL_REQUIRE_PROGRAMS").is_some_and(|value| value == "1");
            assert!(!required, "squid has no basic_ncsa_auth, which this test demands");
            skip("squid has no basic_ncsa_auth");
            return None;
        }
        let program = Program::start(&squid, 1, |ground| {
            let configuration = configuration(ground, options, helper.as_deref());
            // -N: in the foreground, one process; -d 1: complaints to stderr.
            vec!["-N".into(), "-d".into(), "1".into(), "-f".into(), configuration]
        });
        Some(Self { program })
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.program.address(0)
    }

    /// The lines `PORT METHOD URI STATUS USER`, with the port from which the client came; the URI
    /// of a CONNECT is `host:port`.
    pub(crate) fn access_log(&self) -> String {
        self.program.log("access.log")
    }

    pub(crate) fn program(&self) -> &Program {
        &self.program
    }
}

fn configuration(ground: &Ground, options: &SquidOptions, helper: Option<&Path>) -> String {
    let port = ground.ports[0];
    let names: String = options.names.iter().map(|name| format!("127.0.0.1 {name}\n")).collect();
    let hosts = ground.write("hosts", format!("127.0.0.1 localhost\n{names}"));
    let passwords = ground.write("passwords", PASSWORDS);
    let [pid, access, cache] =
        ["squid.pid", "access.log", "cache.log"].map(|name| ground.place(name));
    let connect = if options.connect_only_443 {
        "http_access deny CONNECT !SSL_ports"
    } else {
        "# CONNECT to any port: the TLS port of a test is no 443."
    };
    let access_rule = match helper.filter(|_| options.credentials) {
        Some(helper) => format!(
            "auth_param basic program {} {passwords}\n\
             auth_param basic children 2 startup=1\n\
             auth_param basic realm lab\n\
             acl known proxy_auth REQUIRED\n\
             http_access allow localhost known",
            helper.display()
        ),
        None => "http_access allow localhost".to_owned(),
    };
    ground.write(
        "squid.conf",
        format!(
            "http_port 127.0.0.1:{port}\n\
             visible_hostname localhost\n\
             pid_filename {pid}\n\
             shutdown_lifetime 0 seconds\n\
             hosts_file {hosts}\n\
             acl SSL_ports port 443\n\
             acl Safe_ports port 80 443 1025-65535\n\
             http_access deny !Safe_ports\n\
             {connect}\n\
             {access_rule}\n\
             http_access deny all\n\
             cache deny all\n\
             cache_mem 0 MB\n\
             memory_pools off\n\
             max_filedescriptors 8192\n\
             pinger_enable off\n\
             logformat lab %>p %rm %ru %>Hs %un\n\
             acl asked has request\n\
             access_log stdio:{access} lab asked\n\
             cache_log {cache}\n\
             cache_store_log none\n\
             buffered_logs off\n\
             netdb_filename none\n\
             coredump_dir {}\n",
            ground.folder.path().display()
        ),
    )
}
