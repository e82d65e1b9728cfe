//! The built command on proxies: `longhaul check`, and what `longhaul run` does with them.
#![cfg(feature = "cli")]
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "helpers of tests fail by panicking, as tests do"
)]

use longhaul::lab::{ClosedPort, HttpProxy, Origin, Received, Reply, SocksProxy, reflect};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};

fn longhaul(folder: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_longhaul"));
    for name in ["http_proxy", "https_proxy", "all_proxy", "no_proxy", "RUST_LOG"] {
        command.env_remove(name).env_remove(name.to_uppercase());
    }
    command.current_dir(folder).args(arguments).stdin(Stdio::null()).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

fn lines(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// The cells of the lines that begin with a number.
fn rows(table: &str) -> Vec<Vec<String>> {
    let words = |line: &str| {
        line.split("  ").map(str::trim).filter(|cell| !cell.is_empty()).map(str::to_owned).collect()
    };
    let is_row = |line: &&str| line.trim_start().starts_with(|c: char| c.is_ascii_digit());
    table.lines().take_while(|line| !line.trim().is_empty()).filter(is_row).map(words).collect()
}

fn endpoint() -> Origin {
    Origin::builder().handler(reflect).start().unwrap()
}

#[test]
fn a_table_for_people_and_a_list_for_the_run() {
    let folder = tempfile::tempdir().unwrap();
    let endpoint = endpoint();
    let good = HttpProxy::builder().credentials("anna", "hunter2").label("x").start().unwrap();
    let socks = SocksProxy::builder().start().unwrap();
    let dead = ClosedPort::new().unwrap();
    let list = format!(
        "# ours\n{}:anna:hunter2\n{}\n{}\n{}:anna:hunter3\n",
        good.address(),
        dead.address(),
        socks.address(),
        good.address(),
    );
    fs::write(folder.path().join("proxies.txt"), list).unwrap();
    let url = endpoint.url("/");
    let arguments = ["check", "--proxies", "proxies.txt", "--url", &url, "--good", "good.txt"];
    let output = longhaul(folder.path(), &[&arguments[..], &["--connect-timeout", "2"]].concat());
    let (table, messages) = (text(&output.stdout), text(&output.stderr));
    assert_eq!(output.status.code(), Some(0), "{table}{messages}");
    for secret in ["hunter2", "hunter3", "anna"] {
        assert!(!table.contains(secret) && !messages.contains(secret), "{table}{messages}");
    }
    let rows = rows(&table);
    let of = |at: usize, cells: usize| rows[at][..cells].join("|");
    assert_eq!(
        of(0, 7),
        format!("1|http://***@{}|works|forward ok, connect ok|127.0.0.1|no|yes", good.address())
    );
    assert_eq!(
        of(1, 4),
        format!("2|http://{}|unreachable|forward proxy unreachable", dead.address())
    );
    assert_eq!(of(2, 3), format!("3|http://{}|wrong scheme", socks.address()));
    assert_eq!(of(3, 4), format!("4|http://***@{}|unauthorized|forward 407", good.address()));
    for part in [
        "it speaks socks5h; write socks5h:// in front of it",
        "it adds X-Exit",
        "the proxy does not accept the credentials",
        "1 of 4 work; the own address is 127.0.0.1",
    ] {
        assert!(table.contains(part), "{table} lacks {part}");
    }

    let path = folder.path().join("good.txt");
    assert_eq!(
        fs::read_to_string(&path).unwrap(),
        format!("http://anna:hunter2@{}\n", good.address())
    );
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    }
    let run = longhaul(folder.path(), &["run", &url, "--proxies", "good.txt", "-q"]);
    assert_eq!(run.status.code(), Some(0), "{}", text(&run.stderr));
}

#[test]
fn json_for_scripts_and_an_exit_code_that_tells() {
    let folder = tempfile::tempdir().unwrap();
    let endpoint = endpoint();
    let exits = ["127.0.0.2", "127.0.0.3"].map(|exit| exit.parse().unwrap());
    let proxy = HttpProxy::builder().exits(exits).start().unwrap();
    let dead = format!("http://{}", ClosedPort::new().unwrap().address());
    let (url, proxy) = (endpoint.url("/"), proxy.url());
    let output = longhaul(
        folder.path(),
        &["check", "-x", &proxy, "-x", &dead, "--url", &url, "--json", "-n", "6"],
    );
    assert_eq!(output.status.code(), Some(0));
    let found = lines(&text(&output.stdout));
    assert_eq!((&found[0]["n"], &found[0]["proxy"]), (&1.into(), &proxy.as_str().into()));
    assert_eq!(found[0]["state"], "works");
    assert_eq!((&found[0]["asked"], &found[0]["rotates"]), (&6.into(), &"per_connection".into()));
    assert!(found[0]["forward"]["timings"]["connect_ms"].is_number());
    assert_eq!((&found[1]["state"], &found[1]["usable"]), (&"unreachable".into(), &false.into()));
    assert_eq!(found[1]["error"]["kind"], "proxy_unreachable");

    let none = longhaul(folder.path(), &["check", "-x", &dead, "--url", &url]);
    assert_eq!(none.status.code(), Some(1));
    assert!(text(&none.stdout).contains("0 of 1 work"));
}

#[test]
fn the_built_in_endpoint_says_for_whom_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let proxy = HttpProxy::builder().label("x").start().unwrap();
    let output = longhaul(folder.path(), &["check", "-x", &proxy.url()]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert!(text(&output.stderr).contains("only proxies on this computer can reach it"));
    assert!(text(&output.stdout).contains("it adds X-Exit"));
}

#[test]
fn mistakes_are_told_before_anything_is_asked() {
    let folder = tempfile::tempdir().unwrap();
    let missing = Origin::builder().handler(|_| Reply::new(404)).start().unwrap();
    let url = missing.url("/");
    for (arguments, parts) in [
        (&["check"][..], &["-x", "no proxy to check"][..]),
        (&["check", "-x", "ftp://u:hunter2@h:1"], &["-x", "ftp"]),
        (&["check", "-x", "h:1", "--url", "nonsense"], &["--url", "no http or https URL"]),
        (&["check", "-x", "h:1", "--url", &url], &["--url", "status 404 without a proxy"]),
        (&["check", "-x", "h:1", "--good", "gone/good.txt"], &["--good", "gone is no folder"]),
        (&["check", "-x", "h:1", "--good", "."], &["--good", "is a folder"]),
        (&["check", "-x", "h:1", "-n", "0"], &["--requests", "0"]),
        (&["run", &url, "--exit-sample", "5", "-x", "h:1"], &["--exit-sample", "--exit-check"]),
        (&["run", &url, "--session-per", "url", "-x", "h:1:u:p"], &["--session-per", "{n}"]),
        (&["run", &url, "--always-connect"], &["--always-connect", "-x or --proxies"]),
        (&["run", &url, "--proxy-header", "A: b"], &["--proxy-header", "-x or --proxies"]),
        (&["run", &url, "--parallel-per-proxy", "2"], &["--parallel-per-proxy", "-x"]),
    ] {
        let output = longhaul(folder.path(), arguments);
        let line = text(&output.stderr).lines().last().unwrap_or_default().to_owned();
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {line}");
        assert_eq!(text(&output.stdout), "", "{arguments:?}");
        for part in parts {
            assert!(line.contains(part), "{arguments:?}: {line} lacks {part}");
        }
        assert!(!line.contains("hunter2"), "{line}");
    }
}

/// A target that says nothing, and an endpoint at `/echo`.
fn target() -> Origin {
    let answer = |request: &Received| match request.path.as_str() {
        "/echo" => reflect(request),
        path => Reply::ok(path),
    };
    Origin::builder().handler(answer).start().unwrap()
}

fn urls(folder: &Path, target: &Origin, count: usize) {
    let list: String = (0..count).map(|n| target.url(&format!("/{n}\n"))).collect();
    fs::write(folder.join("urls.txt"), list).unwrap();
}

#[test]
fn exits_are_sampled_during_a_run_and_named_where_they_are_known() {
    let folder = tempfile::tempdir().unwrap();
    let target = target();
    urls(folder.path(), &target, 20);
    let echo = target.url("/echo");
    let sticky = HttpProxy::builder().exits(["127.0.0.9".parse().unwrap()]).start().unwrap();
    let rotating = HttpProxy::builder()
        .exits((2..8).map(|n| format!("127.0.0.{n}").parse().unwrap()))
        .start()
        .unwrap();
    let run = |proxy: &HttpProxy| {
        let arguments = ["run", "-i", "urls.txt", "--no-env", "-w", "1", "--exit-check", &echo];
        let proxy = proxy.url();
        let more = ["--exit-sample", "5", "-x", &proxy];
        let output = longhaul(folder.path(), &[&arguments[..], &more].concat());
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
        (lines(&text(&output.stdout)), text(&output.stderr))
    };
    let (records, summary) = run(&sticky);
    assert_eq!(records.len(), 20);
    for record in &records {
        assert_eq!(record["exit"], "127.0.0.9", "{record}");
        assert_eq!(record["attempts"][0]["exit"], "127.0.0.9");
        assert_ne!(record["url"], echo.as_str());
    }
    let words: Vec<&str> = summary.split_whitespace().collect();
    let summary = words.join(" ");
    for part in [
        "exits checked now and after every 5 URLs",
        "127.0.0.9 20 20 0 0 20",
        "samples 4 failed 0 different addresses 1 repeated 75.0 % by the most frequent 100.0 % \
         127.0.0.9",
    ] {
        assert!(summary.contains(part), "{summary} lacks {part}");
    }

    let (records, _) = run(&rotating);
    assert!(records.iter().all(|record| record["exit"].is_null()), "{records:?}");
}

#[test]
fn the_own_address_in_the_middle_of_a_run_stops_it() {
    let folder = tempfile::tempdir().unwrap();
    let target = target();
    urls(folder.path(), &target, 200);
    let echo = target.url("/echo");
    // By another address for the check before the run, and by the own one from then on.
    let exits = ["127.0.0.9", "127.0.0.9", "127.0.0.1"].map(|exit| exit.parse().unwrap());
    let proxy = HttpProxy::builder().exits(exits).start().unwrap();
    let proxy = proxy.url();
    let arguments = ["run", "-i", "urls.txt", "--no-env", "-w", "1", "-q", "-x", &proxy];
    let more = ["--exit-check", &echo, "--exit-sample", "10"];
    let output = longhaul(folder.path(), &[&arguments[..], &more].concat());
    let messages = text(&output.stderr);
    assert_eq!(output.status.code(), Some(3), "{messages}");
    assert!(messages.contains("saw the own address 127.0.0.1"), "{messages}");
    let records = lines(&text(&output.stdout));
    assert!((10..200).contains(&records.len()), "{}", records.len());
}

/// The user names that a proxy was shown.
fn users(proxy: &HttpProxy) -> BTreeSet<String> {
    use base64::Engine as _;
    let decode = |request: &Received| {
        let value = request.header("Proxy-Authorization")?.strip_prefix("Basic ")?.to_owned();
        let pair = base64::engine::general_purpose::STANDARD.decode(value).ok()?;
        Some(String::from_utf8(pair).ok()?.split(':').next()?.to_owned())
    };
    proxy.log().iter().filter_map(decode).collect()
}

#[test]
fn numbers_in_user_names_and_fields_for_the_proxy_reach_the_wire() {
    let folder = tempfile::tempdir().unwrap();
    let target = target();
    urls(folder.path(), &target, 12);
    let run = |flags: &[&str]| {
        let proxy = HttpProxy::builder().start().unwrap();
        let gateway = format!("{}:anna-session-{{n}}:hunter2", proxy.address());
        let arguments = ["run", "-i", "urls.txt", "--no-env", "-w", "3", "-q", "-x", &gateway];
        let output = longhaul(folder.path(), &[&arguments[..], flags].concat());
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
        assert!(!text(&output.stdout).contains("anna"));
        proxy
    };
    let named = |range: std::ops::RangeInclusive<u32>| -> BTreeSet<String> {
        range.map(|n| format!("anna-session-{n}")).collect()
    };
    assert!(users(&run(&[])).is_subset(&named(1..=3)));
    assert!(users(&run(&["--session-per", "worker"])).is_subset(&named(1..=3)));
    assert_eq!(users(&run(&["--session-per", "url"])), named(1..=12));
    let proxy =
        run(&["--session-per", "request", "--always-connect", "--proxy-header", "X-Key: k"]);
    assert_eq!(users(&proxy), named(1..=12));
    for request in proxy.log() {
        assert_eq!((request.method.as_str(), request.header("X-Key")), ("CONNECT", Some("k")));
    }
    assert!(target.log().iter().all(|request| request.header("X-Key").is_none()));
}
