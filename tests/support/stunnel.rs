//! stunnel in front of another proxy, which makes an https proxy of it.

use std::net::SocketAddr;

use longhaul::lab::Ca;

use super::process::Program;
use super::require;

/// A running stunnel.
pub(crate) struct Stunnel {
    program: Program,
}

impl Stunnel {
    /// Speaks TLS for what listens at `address`, with a certificate of this authority.
    pub(crate) fn in_front_of(address: SocketAddr, ca: &Ca) -> Option<Self> {
        let stunnel = require("stunnel")?;
        let program = Program::start(&stunnel, 1, |ground| {
            let (certificate, key) = (ground.place("cert.pem"), ground.place("key.pem"));
            ca.issue(["localhost", "127.0.0.1"]).unwrap().write_pem(&certificate, &key).unwrap();
            let configuration = format!(
                "foreground = yes\n\
                 pid =\n\
                 debug = info\n\
                 output = {log}\n\
                 [proxy]\n\
                 accept = 127.0.0.1:{port}\n\
                 connect = {address}\n\
                 cert = {certificate}\n\
                 key = {key}\n\
                 sslVersionMin = TLSv1.2\n",
                log = ground.place("stunnel.log"),
                port = ground.ports[0],
            );
            vec![ground.write("stunnel.conf", configuration)]
        });
        Some(Self { program })
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.program.address(0)
    }

    /// Its log; each handshake that succeeded has a line with `TLS accepted`.
    pub(crate) fn access_log(&self) -> String {
        self.program.log("stunnel.log")
    }

    pub(crate) fn program(&self) -> &Program {
        &self.program
    }
}
