//! dante as SOCKS proxy, versions 4 and 5.

use std::net::SocketAddr;

use super::process::Program;
use super::require;

/// Who may use dante.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Method {
    /// Everybody.
    None,
    /// Accounts of this machine with their passwords. The tests make no accounts, so this is a
    /// proxy that refuses whatever credentials it gets, as a real one refuses wrong ones.
    Username,
}

/// A running danted.
pub(crate) struct Dante {
    program: Program,
}

impl Dante {
    pub(crate) fn start(method: Method) -> Option<Self> {
        Self::start_in(method, &[])
    }

    pub(crate) fn start_in(method: Method, environment: &[(String, String)]) -> Option<Self> {
        let danted = require("danted")?;
        let program = Program::start_in(&danted, environment, 1, |ground| {
            let method = match method {
                Method::None => "none",
                Method::Username => "username",
            };
            let configuration = format!(
                "logoutput: {log}\n\
                 internal: 127.0.0.1 port = {port}\n\
                 external: 127.0.0.1\n\
                 clientmethod: none\n\
                 socksmethod: {method}\n\
                 {users}\
                 timeout.negotiate: 30\n\
                 client pass {{\nfrom: 127.0.0.0/8 to: 0.0.0.0/0\nlog: error\n}}\n\
                 socks pass {{\nfrom: 127.0.0.0/8 to: 0.0.0.0/0\ncommand: connect\n\
                 log: connect disconnect error\n}}\n",
                log = ground.place("danted.log"),
                port = ground.ports[0],
                // Only root can read the passwords, and only root can become somebody else.
                users = if rustix::process::geteuid().is_root() {
                    "user.privileged: root\nuser.unprivileged: nobody\n"
                } else {
                    ""
                },
            );
            let pid = ground.place("danted.pid");
            vec!["-f".into(), ground.write("danted.conf", configuration), "-p".into(), pid]
        });
        Some(Self { program })
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.program.address(0)
    }

    /// Its log; each connection has a line with `[: pass(1): tcp/connect`.
    pub(crate) fn access_log(&self) -> String {
        self.program.log("danted.log")
    }

    pub(crate) fn program(&self) -> &Program {
        &self.program
    }
}
