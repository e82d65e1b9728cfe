//! The built command and single connections: certificates, versions, the own address, proxies that
//! are always tunnelled through.
#![cfg(feature = "cli")]
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "helpers of tests fail by panicking, as tests do"
)]

use longhaul::lab::{Ca, HttpProxy, Origin, Received, Reply, reflect};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use tempfile::TempDir;

const VARIABLES: [&str; 4] = ["http_proxy", "https_proxy", "all_proxy", "no_proxy"];

struct World {
    ca: Ca,
    folder: TempDir,
}

impl World {
    /// A folder with an authority's `ca.pem` and the pair of a client.
    fn new() -> Self {
        let world = Self { ca: Ca::new().unwrap(), folder: tempfile::tempdir().unwrap() };
        world.ca.write_pem(world.path("ca.pem")).unwrap();
        let client = world.ca.issue(["client"]).unwrap();
        client.write_pem(world.path("client.crt"), world.path("client.key")).unwrap();
        std::fs::write(
            world.path("both.pem"),
            client.certificate_pem().to_owned() + client.key_pem(),
        )
        .unwrap();
        world
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn command(&self, environment: &[(&str, &Path)], arguments: &[&str]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_longhaul"));
        for name in VARIABLES {
            command.env_remove(name).env_remove(name.to_uppercase());
        }
        for name in ["RUST_LOG", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "SSL_CERT_FILE"] {
            command.env_remove(name);
        }
        command.envs(environment.iter().copied()).current_dir(self.folder.path());
        command.args(arguments).stdin(Stdio::null()).output().unwrap()
    }

    /// The one record of a run with these flags, and what was said.
    fn run(&self, environment: &[(&str, &Path)], url: &str, flags: &[&str]) -> (Value, String) {
        let arguments = [&["run", url, "--total", "0"][..], flags].concat();
        let output = self.command(environment, &arguments);
        let (records, said) = (text(&output.stdout), text(&output.stderr));
        let record = serde_json::from_str(records.lines().next().unwrap_or_default());
        (record.unwrap_or_else(|error| panic!("{error}: {records}{said}")), said)
    }

    /// The line on which a command ends that was asked for something impossible.
    fn refusal(&self, arguments: &[&str]) -> String {
        let output = self.command(&[], arguments);
        assert_eq!(output.status.code(), Some(2), "{}", text(&output.stderr));
        let said = text(&output.stderr);
        said.strip_prefix("longhaul: error: ").unwrap_or_else(|| panic!("{said}")).to_owned()
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

fn local(origin: &Origin) -> String {
    format!("https://localhost:{}/", origin.address().port())
}

#[test]
fn a_client_certificate_from_one_file_and_from_two() {
    let world = World::new();
    let origin = Origin::builder().tls(&world.ca).client_ca(&world.ca).start().unwrap();
    for flags in [&["--cert", "client.crt", "--key", "client.key"][..], &["--cert", "both.pem"]] {
        let (record, said) =
            world.run(&[], &local(&origin), &[flags, &["--cacert", "ca.pem"]].concat());
        assert_eq!(record["status"], 200, "{record}{said}");
        assert!(origin.log().pop().unwrap().client_certificate.is_some());
    }
    let (record, _) = world.run(&[], &local(&origin), &["--cacert", "ca.pem"]);
    let error = &record["error"];
    assert_eq!((&error["kind"], &error["phase"]), (&"certificate".into(), &"tls".into()));
    assert!(error["message"].as_str().unwrap().contains("none is set; give one with"), "{record}");

    // So does a check of proxies.
    let echo = Origin::builder().tls(&world.ca).client_ca(&world.ca).handler(reflect);
    let echo = echo.start().unwrap();
    let proxy = HttpProxy::builder().start().unwrap();
    let output = world.command(
        &[],
        &[
            "check",
            "-x",
            &proxy.url(),
            "--url",
            &local(&echo),
            "--cacert",
            "ca.pem",
            "--cert",
            "both.pem",
            "--json",
        ],
    );
    let record: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(record["state"], "works", "{record}{}", text(&output.stderr));
}

#[test]
fn what_cannot_be_used_is_told_before_anything_is_sent() {
    let world = World::new();
    let other = world.ca.issue(["other"]).unwrap();
    other.write_pem(world.path("other.crt"), world.path("other.key")).unwrap();
    for (flags, parts) in [
        (&["--key", "client.key"][..], &["--key: there is no certificate that it belongs to"][..]),
        (&["--cert", "gone.pem"], &["--cert: gone.pem cannot be read", "name a PEM file"]),
        (&["--cert", "client.crt", "--key", "gone"], &["--key: gone cannot be read"]),
        (&["--cert", "client.crt"], &["--cert: client.crt holds a certificate but no private key"]),
        (
            &["--cert", "client.crt", "--key", "other.key"],
            &["--cert: the private key in other.key does not fit the certificate in client.crt"],
        ),
        (&["--tls-min", "1.3", "--tls-max", "1.2"], &["--tls-min: 1.3 is above the 1.2 of --tls-"]),
        (&["--tls-max", "1.1"], &["--tls-max: '1.1' is no TLS version; give 1.2 or 1.3"]),
        (
            &["--source-address", "192.0.2.1"],
            &["--source-address: the source address 192.0.2.1 is none of this machine's"],
        ),
        (&["--native-roots", "--insecure"], &["--insecure: makes --native-roots pointless"]),
        (&["--native-roots", "--cacert", "ca.pem"], &["--native-roots: makes --cacert pointless"]),
    ] {
        for command in [
            &["run", "http://localhost:1/"][..],
            &["run", "http://localhost:1/", "--plan-only"],
            &["check", "-x", "localhost:1", "--url", "http://localhost:1/"],
        ] {
            let line = world.refusal(&[command, flags].concat());
            for part in parts {
                assert!(line.contains(part), "{command:?}: {line} lacks {part}");
            }
        }
    }
}

#[test]
fn versions_authorities_and_the_own_address() {
    let world = World::new();
    let handler = |request: &Received| Reply::ok(request.peer.ip().to_string());
    let origin = Origin::builder().tls(&world.ca).handler(handler).start().unwrap();
    let url = local(&origin);
    std::fs::create_dir(world.path("folder")).unwrap();
    std::fs::copy(world.path("ca.pem"), world.path("folder/any-name")).unwrap();
    let flags = ["--tls-min", "1.2", "--tls-max", "1.2", "--bodies", "."];
    for trust in [&["--cacert", "folder"][..], &["--cacert", "ca.pem"]] {
        let flags = [trust, &flags, &["--source-address", "127.0.0.3"]].concat();
        let (record, said) = world.run(&[], &url, &flags);
        assert_eq!(record["status"], 200, "{record}{said}");
        assert_eq!(origin.log().pop().unwrap().peer.ip().to_string(), "127.0.0.3");
    }
    let (record, _) = world.run(&[], &url, &["--native-roots"]);
    assert_eq!(record["error"]["kind"], "certificate", "{record}");
    // On Linux this variable says where the system keeps its roots.
    let roots = world.path("ca.pem");
    let system = [("SSL_CERT_FILE", &*roots)];
    let (record, said) = world.run(&system, &url, &["--native-roots", "--no-env"]);
    assert_eq!(record["status"], 200, "{record}{said}");
    let (record, said) = world.run(&[], &url, &["--insecure"]);
    assert_eq!(record["status"], 200);
    assert_eq!(said.matches("certificates are not checked: whoever").count(), 1, "{said}");
}

#[test]
fn bundles_of_the_environment_count_where_nothing_else_is_said() {
    let world = World::new();
    let origin = Origin::builder().tls(&world.ca).start().unwrap();
    let url = local(&origin);
    let (ours, other) = (world.path("ca.pem"), world.path("other.pem"));
    Ca::new().unwrap().write_pem(&other).unwrap();
    for name in ["REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "SSL_CERT_FILE"] {
        assert_eq!(world.run(&[(name, &ours)], &url, &[]).0["status"], 200, "{name}");
    }
    let both = [("SSL_CERT_FILE", &*ours), ("REQUESTS_CA_BUNDLE", &*other)];
    assert_eq!(world.run(&both, &url, &[]).0["error"]["kind"], "certificate");
    let (record, _) = world.run(&[("REQUESTS_CA_BUNDLE", &ours)], &url, &["--no-env"]);
    assert_eq!(record["error"]["kind"], "certificate");
    let gone = world.path("gone.pem");
    let output = world.command(&[("REQUESTS_CA_BUNDLE", &gone)], &["run", &url]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("gone.pem cannot be read"), "{}", text(&output.stderr));
}

/// DIFFERENCE(verify-over-environment)
#[test]
fn what_is_said_about_certificates_wins_over_the_environment() {
    let world = World::new();
    let origin = Origin::builder().tls(&world.ca).start().unwrap();
    let other = world.path("other.pem");
    Ca::new().unwrap().write_pem(&other).unwrap();
    let environment = [("REQUESTS_CA_BUNDLE", &*other)];
    for flags in [&["--cacert", "ca.pem"][..], &["--insecure"]] {
        let (record, said) = world.run(&environment, &local(&origin), flags);
        assert_eq!(record["status"], 200, "{record}{said}");
    }
}

#[test]
fn proxies_of_the_environment_can_be_tunnelled_through() {
    let world = World::new();
    let origin = Origin::builder().start().unwrap();
    let proxy = HttpProxy::builder().start().unwrap();
    let address = PathBuf::from(proxy.url());
    for (flags, wanted) in [(&[][..], "GET"), (&["--always-connect"], "CONNECT")] {
        let (record, _) = world.run(&[("http_proxy", &address)], &origin.url("/"), flags);
        assert_eq!(record["status"], 200, "{record}");
        assert_eq!(proxy.log().pop().unwrap().method, wanted);
    }
}

#[test]
fn a_check_speaks_to_proxies_as_the_run_will() {
    let world = World::new();
    let echo = Origin::builder().handler(reflect).start().unwrap();
    let proxy = HttpProxy::builder().start().unwrap();
    let (url, proxy_url) = (echo.url("/"), proxy.url());
    let check = ["check", "-x", &proxy_url, "--url", &url, "--json"];
    let flags = ["--proxy-header", "X-Key: hunter2", "--always-connect"];
    let output = world.command(&[], &[&check[..], &flags].concat());
    let record: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&record["state"], &record["forward"]), (&"works".into(), &Value::Null), "{record}");
    assert_eq!(record["connect"]["ok"], true);
    let asked = proxy.log();
    assert!(!asked.is_empty());
    for request in asked {
        assert_eq!(
            (request.method.as_str(), request.header("X-Key")),
            ("CONNECT", Some("hunter2"))
        );
    }
    assert!(echo.log().iter().all(|request| request.header("X-Key").is_none()));

    // Forwarded, it reaches the proxy too; where that hands it on, its value is not shown.
    let output = world.command(&[], &[&check[..], &flags[..2]].concat());
    assert!(!text(&output.stdout).contains("hunter2"), "{}", text(&output.stdout));
    let get = proxy.log().into_iter().find(|request| request.method == "GET").unwrap();
    assert_eq!(get.header("X-Key"), Some("hunter2"));
    let line = world.refusal(&[&check[..], &["--proxy-header", "nothing"]].concat());
    assert!(line.starts_with("--proxy-header: the field has no colon"), "{line}");
}
