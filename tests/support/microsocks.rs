//! microsocks as SOCKS 5 proxy with credentials.

use std::net::SocketAddr;

use super::process::Program;
use super::{PASSWORD, USER, require};

/// A running microsocks.
pub(crate) struct Microsocks {
    program: Program,
}

impl Microsocks {
    /// With `credentials`, [`USER`] and [`PASSWORD`] are demanded.
    pub(crate) fn start(credentials: bool) -> Option<Self> {
        Self::start_in(credentials, &[])
    }

    pub(crate) fn start_in(credentials: bool, environment: &[(String, String)]) -> Option<Self> {
        let microsocks = require("microsocks")?;
        let program = Program::start_in(&microsocks, environment, 1, |ground| {
            let port = ground.ports[0].to_string();
            let mut arguments =
                vec!["-i".to_owned(), "127.0.0.1".to_owned(), "-p".to_owned(), port];
            if credentials {
                arguments.extend(["-u", USER, "-P", PASSWORD].map(str::to_owned));
            }
            arguments
        });
        Some(Self { program })
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.program.address(0)
    }

    /// Its log, with the lines `client[N] ADDRESS: connected to HOST:PORT`.
    pub(crate) fn access_log(&self) -> String {
        self.program.log("output.log")
    }

    pub(crate) fn program(&self) -> &Program {
        &self.program
    }
}
