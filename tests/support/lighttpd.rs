//! lighttpd as an origin that checks Digest credentials.

use std::net::SocketAddr;

use md5::Md5;
use rustix::process::{Pid, Signal, kill_process};
use sha2::{Digest, Sha256};

use super::process::{Ground, Program};
use super::{PASSWORD, USER, require};

/// A user whose name is not ASCII; the password is the same.
pub(crate) const UMLAUT: &str = "j\u{f6}rg";

/// A running lighttpd.
///
/// `/open/page` for everybody; `/md5/page`, `/sha256/page`, `/both/page` and `/userhash/page` (with
/// SHA-256) for [`USER`](super::USER) and [`UMLAUT`]. Each realm is called like its folder, and so
/// is the page. `/md5/length` answers with the length of the body that it was sent.
pub(crate) struct Lighttpd {
    program: Program,
}

const REALMS: [&str; 4] = ["md5", "sha256", "both", "userhash"];

impl Lighttpd {
    pub(crate) fn start() -> Option<Self> {
        let lighttpd = require("lighttpd")?;
        let program = Program::start(&lighttpd, 1, |ground| {
            // -D: in the foreground.
            vec!["-D".into(), "-f".into(), configuration(ground)]
        });
        Some(Self { program })
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.program.address(0)
    }

    /// `http://127.0.0.1:PORT` and a path.
    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address())
    }

    /// The lines `METHOD TARGET STATUS USER AUTHORIZATION`, once there are so many.
    pub(crate) fn access_log(&self, lines: usize) -> Vec<String> {
        let process = i32::try_from(self.program.process_id()).ok().and_then(Pid::from_raw);
        let log = self.program.wait_for_log("access.log", |log| {
            // It keeps its log to itself for seconds, unless it is told to begin a new one.
            kill_process(process.unwrap(), Signal::HUP).unwrap();
            log.lines().count() >= lines
        });
        log.lines().map(ToOwned::to_owned).collect()
    }

    pub(crate) fn program(&self) -> &Program {
        &self.program
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The passwords as `htdigest` writes them, with a hashed name behind those of `userhash`.
fn passwords() -> String {
    let mut lines = String::new();
    for realm in REALMS {
        for user in [USER, UMLAUT] {
            let (name, secret) = (format!("{user}:{realm}"), format!("{user}:{realm}:{PASSWORD}"));
            lines += &format!("{name}:{}\n", hex(&Md5::digest(&secret)));
            let hashed = hex(&Sha256::digest(&name));
            lines += &format!("{name}:{}:{hashed}\n", hex(&Sha256::digest(&secret)));
        }
    }
    lines
}

fn configuration(ground: &Ground) -> String {
    for folder in REALMS.iter().chain(&["open"]) {
        ground.write(&format!("www/{folder}/page"), folder);
    }
    let script = "printf 'Content-Type: text/plain\\r\\n\\r\\n'\nwc -c\n";
    ground.write("www/md5/length", script);
    let users = ground.write("users", passwords());
    let port = ground.ports[0];
    let [root, pid, error, access] =
        ["www", "lighttpd.pid", "error.log", "access.log"].map(|name| ground.place(name));
    let rules: String = [
        ("md5", "MD5", ""),
        ("sha256", "SHA-256", ""),
        ("both", "MD5|SHA-256", ""),
        ("userhash", "SHA-256", "\"userhash\" => \"enable\", "),
    ]
    .iter()
    .map(|(realm, algorithm, more)| {
        format!(
            "    \"/{realm}/\" => (\"method\" => \"digest\", \"realm\" => \"{realm}\", \
             \"algorithm\" => \"{algorithm}\", {more}\"require\" => \"valid-user\"),\n"
        )
    })
    .collect();
    ground.write(
        "lighttpd.conf",
        format!(
            r#"
server.modules = ("mod_auth", "mod_authn_file", "mod_accesslog", "mod_cgi")
server.document-root = "{root}"
server.bind = "127.0.0.1"
server.port = {port}
server.pid-file = "{pid}"
server.errorlog = "{error}"
server.max-keep-alive-requests = 100000
accesslog.filename = "{access}"
accesslog.format = "%m %U%q %s %u %{{Authorization}}i"
mimetype.assign = ("" => "text/plain")
cgi.assign = ("/length" => "/bin/sh")
auth.backend = "htdigest"
auth.backend.htdigest.userfile = "{users}"
auth.require = (
{rules})
"#
        ),
    )
}
