//! tinyproxy as HTTP proxy.

use std::net::SocketAddr;

use super::process::Program;
use super::{PASSWORD, USER, require};

/// A running tinyproxy.
pub(crate) struct Tinyproxy {
    program: Program,
}

impl Tinyproxy {
    /// With `credentials`, [`USER`] and [`PASSWORD`] are demanded.
    pub(crate) fn start(credentials: bool) -> Option<Self> {
        let tinyproxy = require("tinyproxy")?;
        let program = Program::start(&tinyproxy, 1, |ground| {
            let (log, pid) = (ground.place("tinyproxy.log"), ground.place("tinyproxy.pid"));
            // Written by nobody else, and its writer may have given up root by then.
            ground.write("tinyproxy.log", "");
            let auth =
                if credentials { format!("BasicAuth {USER} {PASSWORD}\n") } else { String::new() };
            let configuration = format!(
                "Port {}\nListen 127.0.0.1\nAllow 127.0.0.1\nTimeout 60\nMaxClients 1000\n\
                 LogFile \"{log}\"\nLogLevel Connect\nPidFile \"{pid}\"\n{auth}",
                ground.ports[0]
            );
            // -d: in the foreground.
            vec!["-d".into(), "-c".into(), ground.write("tinyproxy.conf", configuration)]
        });
        Some(Self { program })
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.program.address(0)
    }

    /// Its log, with the lines `Request (file descriptor N): METHOD URI VERSION`.
    pub(crate) fn access_log(&self) -> String {
        self.program.log("tinyproxy.log")
    }

    pub(crate) fn program(&self) -> &Program {
        &self.program
    }
}
