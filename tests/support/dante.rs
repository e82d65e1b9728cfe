//! dante as SOCKS proxy, versions 4 and 5.

use std::fs;
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt as _;

use tempfile::TempDir;

use super::process::Program;
use super::{require, require_library};

/// Who may use dante.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Method {
    /// Everybody.
    None,
    /// Accounts of this machine with their passwords. The tests make no accounts, so this is a
    /// proxy that refuses whatever credentials it gets, as a real one refuses wrong ones.
    Username,
    /// The same, on a machine whose only account with a password is [`USER`](super::USER): dante is
    /// shown other account files than those of this machine, by libnss-wrapper.
    Accounts,
}

/// A running danted.
pub(crate) struct Dante {
    program: Program,
    /// The account files, as long as it runs.
    _accounts: Option<TempDir>,
}

/// [`PASSWORD`](super::PASSWORD) of [`USER`](super::USER), as systems keep it: SHA-512 of crypt(3).
const SHADOW: &str = "lab:$6$longhaul$sdHaaU8HaiHGVN2HIAP7LK3iarz.kWKWwNoM5U9dhMwanku.nYWOl1RtIo95z\
                      q7zP8cXNlTunA47/P7cO6d.K/:19000:0:99999:7:::\n";

/// Account files, and the variables by which libnss-wrapper shows them.
fn accounts() -> Option<(TempDir, Vec<(String, String)>)> {
    let library = require_library("libnss_wrapper.so")?;
    let folder = tempfile::Builder::new().prefix("longhaul-").tempdir().unwrap();
    // dante reads them as another user.
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let mut passwd = "root:x:0:0:root:/root:/bin/sh\n\
                      nobody:x:65534:65534:nobody:/nonexistent:/bin/false\n\
                      lab:x:4711:65534:lab:/nonexistent:/bin/false\n"
        .to_owned();
    let me = rustix::process::geteuid().as_raw();
    if ![0, 65534, 4711].contains(&me) {
        passwd.push_str(&format!("me:x:{me}:65534:me:/nonexistent:/bin/false\n"));
    }
    let mut variables = vec![("LD_PRELOAD".to_owned(), library.display().to_string())];
    for (name, content) in
        [("PASSWD", &*passwd), ("GROUP", "root:x:0:\nnogroup:x:65534:\n"), ("SHADOW", SHADOW)]
    {
        let file = folder.path().join(name.to_lowercase());
        fs::write(&file, content).unwrap();
        variables.push((format!("NSS_WRAPPER_{name}"), file.display().to_string()));
    }
    Some((folder, variables))
}

impl Dante {
    pub(crate) fn start(method: Method) -> Option<Self> {
        Self::start_in(method, &[])
    }

    pub(crate) fn start_in(method: Method, environment: &[(String, String)]) -> Option<Self> {
        let danted = require("danted")?;
        let mut environment = environment.to_vec();
        let mut folder = None;
        if method == Method::Accounts {
            let (accounts, variables) = accounts()?;
            environment.extend(variables);
            folder = Some(accounts);
        }
        let program = Program::start_in(&danted, &environment, 1, |ground| {
            let method = match method {
                Method::None => "none",
                Method::Username | Method::Accounts => "username",
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
        Some(Self { program, _accounts: folder })
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
