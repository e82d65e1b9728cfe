//! The world that the documents speak of: their hosts, proxies and files.
//!
//! A command line is run as it stands, letter for letter. What makes that possible is a library of a
//! hundred lines that is loaded into every program of the line (`elsewhere.c`): a name that a document
//! makes up leads to a server of the lab, so does the address of a proxy, and everything else is
//! refused, so that nothing leaves the machine. Its clock says eleven in the evening, when long runs
//! begin.

use std::collections::{BTreeSet, HashMap};
use std::fs;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::UNIX_EPOCH;

use longhaul::lab::{Ca, HttpProxy, Origin, Received, Reply, Script, SocksProxy, reflect};
use longhaul::time::{Clock as _, SystemClock};
use tempfile::TempDir;

use crate::support::httpbin;
use crate::support::lookups::compile;

const SOURCE: &str = include_str!("elsewhere.c");

/// The user and the password of all proxies.
const USER: &str = "anna";
const PASSWORD: &str = "secret";

/// The second of the day that the clock says.
const EVENING: u64 = 23 * 3600;

/// How long a line may take on a loaded machine, in seconds.
const PATIENCE: &str = "300";

/// What a line has left behind.
#[derive(Debug)]
pub(crate) struct Ended {
    /// 124 where it did not end.
    pub(crate) code: i32,
    /// Standard output and standard error, in the order in which they came.
    pub(crate) output: String,
}

/// Servers, programs and trust; as long as the lines run.
pub(crate) struct World {
    plain: Origin,
    secure: Origin,
    proxies: [HttpProxy; 2],
    socks: SocksProxy,
    ca: Ca,
    folder: TempDir,
}

impl World {
    /// A world whose origin answers as [`page`] does; `None` without a C compiler.
    pub(crate) fn new(hosts: BTreeSet<String>) -> Option<Self> {
        Self::with(hosts, |request| page(request).into())
    }

    /// A world with these hosts, which all answer in this way.
    pub(crate) fn with(
        hosts: BTreeSet<String>,
        handler: impl Fn(&Received) -> Script + Clone + Send + Sync + 'static,
    ) -> Option<Self> {
        let folder = tempfile::Builder::new().prefix("longhaul-").tempdir().unwrap();
        compile(folder.path(), "elsewhere", SOURCE)?;
        let programs = folder.path().join("bin");
        fs::create_dir(&programs).unwrap();
        symlink(env!("CARGO_BIN_EXE_longhaul"), programs.join("longhaul")).unwrap();

        let ca = Ca::new().unwrap();
        ca.write_pem(folder.path().join("ca.pem")).unwrap();
        let origin = Origin::builder().handler(handler);
        let plain = origin.clone().start().unwrap();
        let secure = origin.tls(&ca).start().unwrap();
        // The proxies look nothing up and are told where each host is.
        let names: HashMap<String, SocketAddr> = hosts
            .into_iter()
            .flat_map(|host| {
                let ports = [(80, plain.address()), (443, secure.address())];
                ports.map(move |(port, address)| (format!("{host}:{port}"), address))
            })
            .collect();
        // Each leaves by an address of its own, which is not that of who asks directly.
        let exit = |number| [IpAddr::V4(Ipv4Addr::new(127, 0, 0, number))];
        let proxies = [2, 3].map(|number| {
            let proxy = HttpProxy::builder().credentials(USER, PASSWORD).exits(exit(number));
            proxy.names(&names).start().unwrap()
        });
        let socks = SocksProxy::builder().credentials(USER, PASSWORD).exits(exit(4));
        let socks = socks.names(&names).start().unwrap();
        Some(Self { plain, secure, proxies, socks, ca, folder })
    }

    /// The certificate authority of its TLS servers.
    pub(crate) fn ca(&self) -> &Ca {
        &self.ca
    }

    /// Runs this line in this folder, by bash, until it ends.
    pub(crate) fn run(&self, folder: &Path, line: &str) -> Ended {
        let mut command = self.command(folder);
        // The pipe keeps the order of both, and a failure in front of a `|` is one.
        command.args(["bash", "-o", "pipefail", "-c", &format!("exec 2>&1; {line}")]);
        self.end(&mut command)
    }

    /// Runs this command of ours until it ends.
    pub(crate) fn end(&self, command: &mut Command) -> Ended {
        let output = command.output().unwrap();
        Ended {
            code: output.status.code().unwrap_or(-1),
            output: String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned(),
        }
    }

    /// A command that does not run for ever, in this folder and this world; its arguments are those of
    /// `timeout`.
    pub(crate) fn command(&self, folder: &Path) -> Command {
        let mut command = Command::new("timeout");
        let variables = [
            "http_proxy",
            "https_proxy",
            "all_proxy",
            "no_proxy",
            "rust_log",
            "netrc",
            "request_method",
            "curl_ca_bundle",
            "columns",
        ];
        for name in variables {
            command.env_remove(name).env_remove(name.to_uppercase());
        }
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("LONGHAUL_") {
                command.env_remove(name);
            }
        }
        let path = std::env::var_os("PATH").unwrap_or_default();
        let path = std::env::join_paths(
            [self.folder.path().join("bin"), httpbin::environment().join("bin")]
                .into_iter()
                .chain(std::env::split_paths(&path)),
        );
        let places = [
            ("10.0.0.1:8000".to_owned(), self.proxies[0].address()),
            ("10.0.0.2:8000".to_owned(), self.proxies[1].address()),
            (":8000".to_owned(), self.proxies[0].address()),
            (":1080".to_owned(), self.socks.address()),
            (":80".to_owned(), self.plain.address()),
            (":443".to_owned(), self.secure.address()),
        ];
        let places = places.map(|(from, to)| format!("{from}={}", to.port())).join(" ");
        // Cargo's own things stay where they are.
        let home = std::env::var_os("HOME").unwrap_or_default();
        for (name, place) in [("CARGO_HOME", ".cargo"), ("RUSTUP_HOME", ".rustup")] {
            if std::env::var_os(name).is_none() {
                command.env(name, Path::new(&home).join(place));
            }
        }
        let bundle = self.folder.path().join("ca.pem");
        command
            .arg(PATIENCE)
            .current_dir(folder)
            .stdin(Stdio::null())
            .env("PATH", path.unwrap())
            .env("HOME", folder)
            .env("XDG_CONFIG_HOME", folder.join(".config"))
            .env("CARGO_NET_OFFLINE", "true")
            .env("TZ", "UTC")
            .env("LC_ALL", "C.UTF-8")
            .env("REQUESTS_CA_BUNDLE", &bundle)
            .env("SSL_CERT_FILE", &bundle)
            .env("LD_PRELOAD", self.folder.path().join("elsewhere.so"))
            .env("ELSEWHERE", places)
            .env("ELSEWHERE_LATER", until_evening().to_string());
        command
    }
}

/// The seconds until the next evening.
fn until_evening() -> u64 {
    let now = SystemClock.wall().duration_since(UNIX_EPOCH).unwrap().as_secs();
    (24 * 3600 + EVENING - now % (24 * 3600)) % (24 * 3600)
}

/// What every host of the documents answers.
///
/// A host that begins with `echo.` says who asks; `camera.test` wants Digest credentials; the rest are
/// pages, files and an interface, by path and host.
fn page(request: &Received) -> Reply {
    let host = request.host();
    if host.starts_with("echo.") || host.starts_with("api.ipify.") {
        return reflect(request);
    }
    let is_digest = |value: &str| value.starts_with("Digest ");
    if host == "camera.test" && !request.header("Authorization").is_some_and(is_digest) {
        let challenge = "Digest realm=\"camera\", nonce=\"4f2a\", qop=\"auth\", algorithm=SHA-256";
        return Reply::new(401).header("WWW-Authenticate", challenge).body("who is it?");
    }
    if request.path == "/gone" {
        return Reply::new(410).body("no more of it\n");
    }
    if host.starts_with("api.") {
        return Reply::ok("{\"id\": 7}").header("Content-Type", "application/json");
    }
    if request.path.ends_with(".csv") {
        let rows = "7,a name\n".repeat(500);
        return Reply::ok(rows).header("Content-Type", "text/csv").header("ETag", "\"a1\"");
    }
    let text = "<!doctype html><title>A page</title>".to_owned() + &"<p>text".repeat(170) + "\n";
    let cookie = "visit=1; Max-Age=86400; Path=/";
    Reply::ok(text).header("Content-Type", "text/html").header("Set-Cookie", cookie)
}

#[test]
fn what_has_no_place_here_is_refused_and_leaves_nothing() {
    let Some(world) = World::new(BTreeSet::new()) else { return };
    let folder = tempfile::tempdir().unwrap();
    for target in ["http://example.com:81/", "http://192.0.2.7:81/", "http://[2001:db8::1]/"] {
        let ended = world.run(folder.path(), &format!("longhaul get '{target}' --total 0"));
        assert_eq!(ended.code, 1, "{}", ended.output);
        assert!(ended.output.contains("Connection refused"), "{target}: {}", ended.output);
    }
    let ended = world.run(folder.path(), "longhaul get http://example.com/; date -u +%H");
    assert!(ended.output.ends_with("23\n"), "{}", ended.output);
}
