//! The built command on runs: exit codes, what is on which stream, signals, resumption, secrets.
#![cfg(feature = "cli")]
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "helpers of tests fail by panicking, as tests do"
)]

use longhaul::lab::{HttpProxy, Origin, Received, Reply, Script, SocksProxy};
use longhaul::secs;
use serde_json::Value;
use std::collections::HashMap;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

fn command(folder: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_longhaul"));
    for name in ["http_proxy", "https_proxy", "all_proxy", "no_proxy", "RUST_LOG"] {
        command.env_remove(name).env_remove(name.to_uppercase());
    }
    command.current_dir(folder).stdin(Stdio::null());
    command
}

fn run(folder: &Path, arguments: &[&str]) -> Output {
    command(folder).arg("run").args(arguments).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

fn records(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// How often each URL stands in the results, all of them as ok.
fn ok_urls(path: &Path) -> HashMap<String, usize> {
    let mut urls = HashMap::new();
    for record in records(&fs::read_to_string(path).unwrap()) {
        assert_eq!(record["ok"], true, "{record}");
        *urls.entry(record["url"].as_str().unwrap().to_owned()).or_default() += 1;
    }
    urls
}

/// Says the path, with the status that the path begins with.
fn echo(request: &Received) -> Reply {
    let status = request.path.get(1..4).and_then(|digits| digits.parse().ok()).unwrap_or(200);
    Reply::new(status).body(request.path.clone())
}

#[test]
fn records_go_to_standard_output_and_everything_else_to_standard_error() {
    let folder = tempfile::tempdir().unwrap();
    let origin = Origin::builder().handler(echo).start().unwrap();
    let (one, two) = (origin.url("/200/one"), origin.url("/200/two"));
    let output = run(folder.path(), &[&one, &two, "--no-env"]);
    let messages = text(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{messages}");
    let mut urls: Vec<String> = records(&text(&output.stdout))
        .iter()
        .map(|record| {
            assert_eq!((&record["status"], &record["class"]), (&200.into(), &"ok".into()));
            record["url"].as_str().unwrap().to_owned()
        })
        .collect();
    urls.sort();
    assert_eq!(urls, [one, two]);
    for part in ["2 URLs from the command line", "at most 334.8 s, enforced", "promised at most"] {
        assert!(messages.contains(part), "{messages} lacks {part}");
    }
}

#[test]
fn exit_codes_tell_what_became_of_the_urls() {
    let folder = tempfile::tempdir().unwrap();
    let origin = Origin::builder().handler(echo).start().unwrap();
    for (paths, flags, wanted) in [
        (&["/200", "/204"][..], &[][..], 0),
        (&["/200", "/404"], &[], 1),
        (&["/403"], &["--slow-lane", "off"], 1),
        (&["/500"], &["--total", "0"], 1),
    ] {
        let urls: Vec<String> = paths.iter().map(|path| origin.url(path)).collect();
        let mut arguments: Vec<&str> = urls.iter().map(String::as_str).collect();
        arguments.extend(["-q", "--no-env"]);
        arguments.extend(flags);
        let output = run(folder.path(), &arguments);
        assert_eq!(output.status.code(), Some(wanted), "{paths:?}");
        assert_eq!(text(&output.stderr), "", "{paths:?}");
        assert_eq!(records(&text(&output.stdout)).len(), paths.len());
    }
}

#[test]
fn later_passes_try_as_often_as_they_are_told() {
    let folder = tempfile::tempdir().unwrap();
    let origin = Origin::builder().handler(echo).start().unwrap();
    let url = origin.url("/503/always");
    let flags =
        "--no-env --backoff-factor 0 --passes 3 --total 0 --pass-total 2 --pass-deadline 10m";
    let output = run(folder.path(), &[vec![url.as_str()], flags.split(' ').collect()].concat());
    assert_eq!(output.status.code(), Some(1));
    // One in the first, three in each of the others.
    assert_eq!(origin.log().len(), 1 + 3 + 3);
    let record = &records(&text(&output.stdout))[0];
    assert_eq!((&record["pass"], record["attempts"].as_array().unwrap().len()), (&3.into(), 7));
    // What is promised is the longest of all passes.
    let messages = text(&output.stderr);
    let promised = messages.lines().find(|line| line.contains("promised at most")).unwrap();
    assert!(promised.contains("10 min"), "{messages}");
}

#[test]
fn fields_and_policy_of_the_flags_reach_the_wire() {
    let folder = tempfile::tempdir().unwrap();
    let origin = Origin::builder().handler(echo).start().unwrap();
    let url = origin.url("/503/always");
    let flags = [
        "-q",
        "--no-env",
        "--status",
        "1",
        "--backoff-factor",
        "0",
        "-H",
        "X-Job: 7",
        "-H",
        "Accept:",
    ];
    let output = run(folder.path(), &[&[url.as_str()], &flags[..]].concat());
    assert_eq!(output.status.code(), Some(1));
    let seen = origin.log();
    assert_eq!(seen.len(), 2);
    for request in seen {
        assert_eq!(request.header("x-job"), Some("7"));
        assert_eq!(request.header("accept"), None);
    }
    let record = &records(&text(&output.stdout))[0];
    assert_eq!((&record["status"], &record["class"]), (&503.into(), &"retryable".into()));
    assert_eq!(record["attempts"].as_array().unwrap().len(), 2);
}

#[test]
fn credentials_reach_the_targets_and_are_shown_nowhere() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();
    write("user", "lab:hun:ter2\n");
    write("token", "hunter2\r\n");
    write("netrc", "machine 127.0.0.1 login n password hunter2");
    let origin = Origin::builder()
        .handler(|request| match request.header("authorization") {
            None => Reply::new(401).header("WWW-Authenticate", "Digest realm=r, nonce=n, qop=auth"),
            Some(_) => echo(request),
        })
        .start()
        .unwrap();
    let url = origin.url("/200");
    for (flags, sent) in [
        (&["-u", "lab:hun:ter2"][..], "Basic bGFiOmh1bjp0ZXIy"),
        (&["--user-file", "user"], "Basic bGFiOmh1bjp0ZXIy"),
        (&["--user", "lab"], "Basic bGFiOmh1bnRlcjI="),
        (&["--user", "lab", "--digest"], "Digest username=\"lab\", realm=\"r\", nonce=\"n\", "),
        (&["--bearer", "hunter2"], "Bearer hunter2"),
        (&["--bearer-file", "token"], "Bearer hunter2"),
        (&["--netrc-file", "netrc"], "Basic bjpodW50ZXIy"),
    ] {
        for plan_only in [true, false] {
            let seen = origin.log().len();
            let mut command = command(folder.path());
            command.args(["run", &url, "--no-env", "-vv"]).args(flags);
            command.env("LONGHAUL_PASSWORD", "hunter2").env("RUST_LOG", "trace");
            if plan_only {
                command.arg("--plan-only");
            }
            let output = command.output().unwrap();
            let told = text(&output.stdout) + &text(&output.stderr);
            assert_eq!(output.status.code(), Some(0), "{told}");
            for secret in ["ter2", "bGFi", "bnRlcjI", "bjpo", "response="] {
                assert!(!told.contains(secret), "{flags:?}: {told}");
            }
            match plan_only {
                true => assert_eq!(origin.log().len(), seen, "{flags:?}"),
                false => {
                    let last = origin.log().pop().unwrap();
                    let field = last.header("authorization").unwrap();
                    assert!(field.starts_with(sent), "{flags:?}: {field}");
                }
            }
        }
    }
    // A .netrc of the environment is left alone where that is asked for.
    for (flags, status) in [(&[][..], 200), (&["--no-netrc"], 401)] {
        let mut command = command(folder.path());
        command.args(["run", &url, "-q"]).args(flags).env("NETRC", folder.path().join("netrc"));
        let output = command.output().unwrap();
        assert_eq!(records(&text(&output.stdout))[0]["status"], status, "{flags:?}");
    }
}

#[test]
fn a_wrong_password_stops_the_run_and_is_shown_nowhere() {
    let folder = tempfile::tempdir().unwrap();
    let origin = Origin::builder().handler(echo).start().unwrap();
    let http = HttpProxy::builder().credentials("user", "right").start().unwrap();
    let socks = SocksProxy::builder().credentials("user", "right").start().unwrap();
    let urls: Vec<String> = (0..500).map(|page| origin.url(&format!("/200/{page}"))).collect();
    fs::write(folder.path().join("urls.txt"), urls.join("\n")).unwrap();
    for (scheme, address) in [("http", http.address()), ("socks5h", socks.address())] {
        let proxy = format!("{scheme}://user:hunter2@{address}");
        let results = format!("{scheme}.jsonl");
        let output = run(
            folder.path(),
            &["-i", "urls.txt", "-o", &results, "-x", &proxy, "-w", "4", "-vv", "--no-env"],
        );
        let messages = text(&output.stderr);
        assert_eq!(output.status.code(), Some(3), "{messages}");
        assert!(messages.contains("stopped: "), "{messages}");
        let written = fs::read_to_string(folder.path().join(&results)).unwrap();
        for shown in [&messages, &text(&output.stdout), &written] {
            assert!(!shown.contains("hunter2"), "{shown}");
            assert!(!shown.contains("dXNlcjpodW50ZXIy"), "{shown}");
        }
    }
    assert!(http.proxy_counts().unauthorized <= 8, "{:?}", http.proxy_counts());
    assert!(socks.socks_counts().unauthorized <= 8, "{:?}", socks.socks_counts());
    assert_eq!(origin.counts().requests, 0);
}

#[test]
fn progress_for_programs() {
    let folder = tempfile::tempdir().unwrap();
    let origin = Origin::builder().handler(echo).start().unwrap();
    let output = run(folder.path(), &[&origin.url("/200"), "-q", "--json-progress", "--no-env"]);
    let last = records(&text(&output.stderr)).pop().unwrap();
    assert_eq!((&last["total"], &last["done"], &last["ok"]), (&1.into(), &1.into(), &1.into()));
}

#[test]
fn a_reader_that_leaves_is_no_failure() {
    let folder = tempfile::tempdir().unwrap();
    let origin = Origin::builder().handler(echo).start().unwrap();
    let urls: Vec<String> = (0..2000).map(|page| origin.url(&format!("/404/{page}"))).collect();
    fs::write(folder.path().join("urls.txt"), urls.join("\n")).unwrap();
    let mut child = command(folder.path())
        .args(["run", "-i", "urls.txt", "-q", "--no-env"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert!(origin.counts().requests < 2000);
}

#[test]
fn urls_from_standard_input() {
    let folder = tempfile::tempdir().unwrap();
    let origin = Origin::builder().handler(echo).start().unwrap();
    let mut child = command(folder.path())
        .args(["run", "-q", "--no-env"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    // The middle line is found when it comes: what can be read only once is not held back.
    writeln!(
        input,
        "{}\nnonsense\n{{\"url\":\"{}\",\"id\":7}}",
        origin.url("/200"),
        origin.url("/201")
    )
    .unwrap();
    drop(input);
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let mut classes: Vec<(String, String)> = records(&text(&output.stdout))
        .iter()
        .map(|record| {
            let field = |name: &str| record[name].as_str().unwrap().to_owned();
            (field("class"), field("id"))
        })
        .collect();
    classes.sort();
    let names: Vec<&str> = classes.iter().map(|(class, _)| class.as_str()).collect();
    assert_eq!(names, ["input", "ok", "ok"]);
    assert!(classes.iter().any(|(_, id)| id == "7"));
}

#[test]
fn the_demo_ends_as_its_faults_demand() {
    let folder = tempfile::tempdir().unwrap();
    let output = command(folder.path())
        .args(["demo", "--urls", "80", "--seed", "5", "-o", "demo.jsonl"])
        .output()
        .unwrap();
    let messages = text(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{messages}");
    assert!(messages.contains("demo: 80 URLs, every outcome as expected"), "{messages}");
    assert!(!messages.contains("p@ss") && !messages.contains("p%40ss"), "{messages}");
    let results = fs::read_to_string(folder.path().join("demo.jsonl")).unwrap();
    assert_eq!(records(&results).len(), 80);
}

/// Starts a run over `urls.txt` and waits until the origin has seen so many requests.
fn start_over(folder: &Path, origin: &Origin, count: u64, flags: &[&str]) -> Child {
    let child = command(folder)
        .args(["run", "-i", "urls.txt", "-o", "out.jsonl", "-q", "--no-env", "-w", "4"])
        .args(flags)
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    assert!(origin.wait_for_requests(count, secs(30.0)));
    child
}

fn slow_origin(folder: &Path, pages: usize) -> (Origin, Vec<String>) {
    let slow = |request: &Received| Script::new().pause(secs(0.01)).then_reply(echo(request));
    let origin = Origin::builder().handler(slow).start().unwrap();
    let urls: Vec<String> = (0..pages).map(|page| origin.url(&format!("/200/{page}"))).collect();
    fs::write(folder.join("urls.txt"), urls.join("\n")).unwrap();
    (origin, urls)
}

#[test]
#[cfg(unix)]
fn killed_again_and_again_every_url_stands_there_once() {
    let folder = tempfile::tempdir().unwrap();
    let (origin, urls) = slow_origin(folder.path(), 400);
    let mut flags: &[&str] = &[];
    for killed_after in [20, 90, 200] {
        let mut child = start_over(folder.path(), &origin, killed_after, flags);
        child.kill().unwrap();
        child.wait().unwrap();
        flags = &["--resume"];
    }
    // A kill can tear the last line anywhere; here it certainly is.
    let mut file =
        fs::OpenOptions::new().append(true).open(folder.path().join("out.jsonl")).unwrap();
    file.write_all(b"{\"v\":1,\"id\":\"caf\xc3").unwrap();
    let output = start_over(folder.path(), &origin, 201, &["--resume"]).wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let found = ok_urls(&folder.path().join("out.jsonl"));
    assert_eq!(found, urls.into_iter().map(|url| (url, 1)).collect());
}

#[test]
#[cfg(unix)]
fn the_first_signal_ends_in_order_and_a_resumption_goes_on() {
    for signal in ["-INT", "-TERM"] {
        let folder = tempfile::tempdir().unwrap();
        let (origin, urls) = slow_origin(folder.path(), 300);
        let child = start_over(folder.path(), &origin, 40, &[]);
        let id = child.id().to_string();
        assert!(Command::new("kill").args([signal, &id]).status().unwrap().success());
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(130), "{}", text(&output.stderr));
        let seen = origin.counts().requests;
        let found = ok_urls(&folder.path().join("out.jsonl"));
        // What flew has finished and is recorded: nothing was fetched in vain.
        assert_eq!(found.len() as u64, seen, "{signal}");
        assert!(seen < 300, "{signal}");
        let flags = ["-i", "urls.txt", "-o", "out.jsonl", "-q", "--no-env", "--resume"];
        assert_eq!(run(folder.path(), &flags).status.code(), Some(0), "{signal}");
        let found = ok_urls(&folder.path().join("out.jsonl"));
        assert_eq!(found, urls.into_iter().map(|url| (url, 1)).collect(), "{signal}");
        assert_eq!(origin.counts().requests, 300, "{signal}");
    }
}

#[test]
#[cfg(unix)]
fn the_second_signal_cuts_what_never_answers() {
    let folder = tempfile::tempdir().unwrap();
    let origin = Origin::builder().handler(|_| Script::new().hold()).start().unwrap();
    fs::write(folder.path().join("urls.txt"), origin.url("/1") + "\n").unwrap();
    let child = start_over(folder.path(), &origin, 1, &["--read-timeout", "600"]);
    let mut child = child;
    let mut messages = BufReader::new(child.stderr.take().unwrap());
    let id = child.id().to_string();
    let kill = || assert!(Command::new("kill").args(["-INT", &id]).status().unwrap().success());
    kill();
    let mut line = String::new();
    messages.read_line(&mut line).unwrap();
    assert!(line.contains("again to cut it short"), "{line}");
    kill();
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert_eq!(fs::read_to_string(folder.path().join("out.jsonl")).unwrap(), "");
}

#[test]
fn a_run_whose_time_is_up_leaves_the_rest_for_a_resumption() {
    let folder = tempfile::tempdir().unwrap();
    let busy = |request: &Received| match request.path.as_str() {
        "/good" => Reply::ok("page"),
        _ => Reply::new(503).header("Retry-After", "600"),
    };
    let origin = Origin::builder().handler(busy).start().unwrap();
    let urls = ["/good", "/1", "/2"].map(|path| origin.url(path));
    fs::write(folder.path().join("urls.txt"), urls.join("\n")).unwrap();
    let flags = ["-i", "urls.txt", "-o", "out.jsonl", "--no-env", "--retry-after-max", "700"];
    // The start has long been: nothing is waited for.
    let hours = ["--start-at", "2020-01-01T00:00:00Z", "--max-time", "0.5"];
    let output = run(folder.path(), &[&flags[..], &hours].concat());
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(4), "{said}");
    assert!(said.contains("stopped: the longest time of 500 ms is over"), "{said}");
    assert!(said.contains("not finished"), "{said}");
    assert_eq!(ok_urls(&folder.path().join("out.jsonl")).len(), 1);
    // Nothing is left of what can be had.
    fs::write(folder.path().join("urls.txt"), &urls[0]).unwrap();
    let again = [&flags[..], &["--resume", "--max-time", "60"]].concat();
    assert_eq!(run(folder.path(), &again).status.code(), Some(0));
    assert_eq!(origin.counts().requests, 3);
}

#[test]
#[cfg(unix)]
fn before_its_time_nothing_is_sent_and_a_signal_ends_the_wait() {
    let folder = tempfile::tempdir().unwrap();
    let origin = Origin::builder().handler(echo).start().unwrap();
    let url = origin.url("/200");
    let check = origin.url("/address");
    let flags = ["run", &url, "--no-env", "--start-at", "2126-01-01T00:00:00Z", "-o", "out.jsonl"];
    let mut child = command(folder.path())
        .args(flags)
        .args(["--exit-check", &check, "-x", "http://127.0.0.1:9"])
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let messages = BufReader::new(child.stderr.take().unwrap());
    let id = child.id().to_string();
    let mut said = String::new();
    for line in messages.lines().map(Result::unwrap) {
        said += &line;
        if line.contains("longhaul: starts in ") {
            assert!(Command::new("kill").args(["-INT", &id]).status().unwrap().success());
        }
    }
    assert_eq!(child.wait().unwrap().code(), Some(130), "{said}");
    assert!(said.contains("hours") && said.contains("from "), "{said}");
    assert_eq!(origin.counts().accepted, 0);
    assert_eq!(fs::read_to_string(folder.path().join("out.jsonl")).unwrap(), "");
}

#[test]
fn block_pages_and_stop_rules_of_the_flags() {
    let folder = tempfile::tempdir().unwrap();
    let origin = Origin::builder()
        .handler(|request: &Received| match request.path.as_str() {
            "/away" => Reply::redirect(302, "/login"),
            "/shield" => Reply::ok("x").header("Server", "Shield 2"),
            "/robot" => Reply::ok("<p>are you a robot?"),
            _ => Reply::ok("page"),
        })
        .start()
        .unwrap();
    let urls = ["/away", "/shield", "/robot", "/page"].map(|path| origin.url(path));
    let flags = "-q --no-env -w 1 --slow-lane off --block-status 302 --block-body robot";
    let header = ["--block-header", "server: shield"];
    let flags: Vec<&str> =
        urls.iter().map(String::as_str).chain(flags.split(' ')).chain(header).collect();
    let output = run(folder.path(), &flags);
    assert_eq!(output.status.code(), Some(1));
    let mut seen = Vec::new();
    for record in records(&text(&output.stdout)) {
        let matched = record["refused"]["matched"].as_str().map(str::to_owned);
        seen.push((record["class"].as_str().unwrap().to_owned(), matched));
    }
    let refused = |matched: &str| ("refused".to_owned(), Some(matched.to_owned()));
    let wanted = [
        refused("status: 302"),
        refused("header: server: shield"),
        refused("body: robot"),
        ("ok".to_owned(), None),
    ];
    assert_eq!(seen, wanted);
    // Two of the last two are too many.
    let output = run(folder.path(), &[&flags[..], &["--stop-on-failures", "100%/2"]].concat());
    assert_eq!(output.status.code(), Some(3));
    let said = text(&output.stderr);
    assert!(said.contains("stopped: 2 of the last URLs failed"), "{said}");
    assert!(records(&text(&output.stdout)).len() < 4);
}
