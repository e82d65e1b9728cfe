//! The numbers for Prometheus: what is served is what the page says, and others can read it.

use longhaul::lab::{Origin, Received, Reply, Script};
use longhaul::{Session, secs};
use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Command, Stdio};

use super::job::{Job, Running};
use super::page::table;
use super::support::{find, httpbin, process::eventually, skip};

const PAGE: &str = include_str!("../../docs/metrics.md");

/// Nine pages of three kinds, and one that keeps the run going. Connections are not kept, so that none
/// is cut that was used before, which would be worth a further attempt.
fn site() -> Origin {
    let page = |request: &Received| -> Script {
        match request.path.as_str() {
            "/hold" => Script::new().hold(),
            path if path.starts_with("/refused") => Reply::new(403).close().into(),
            path if path.starts_with("/cut") => Script::new().rst(),
            _ => Reply::ok("a page").close().into(),
        }
    };
    Origin::builder().handler(page).start().unwrap()
}

fn started(origin: &Origin) -> (Job, Running, String) {
    let paths =
        ["/hold", "/1", "/2", "/3", "/4", "/5", "/refused/1", "/refused/2", "/cut/1", "/cut/2"];
    let job = Job::new(paths.map(|path| origin.url(path)));
    let running = job.start(&[
        "--metrics",
        "0",
        "--read-timeout",
        "600",
        "--slow-lane",
        "off",
        "--read",
        "1",
        "--backoff-factor",
        "0",
        "-w",
        "4",
    ]);
    let address = || {
        let said = job.read("stderr");
        let line = said.lines().find_map(|line| line.trim().strip_prefix("metrics  "));
        line.map(str::to_owned)
    };
    assert!(eventually(|| address().is_some()), "{}", job.read("stderr"));
    let url = address().unwrap();
    (job, running, url)
}

fn session() -> Session {
    Session::builder().trust_env(false).timeout(secs(30.0)).build().unwrap()
}

/// The text, once nine URLs have a record.
fn scraped(session: &Session, url: &str) -> String {
    let mut text = String::new();
    let done = |text: &str| -> f64 {
        let of_urls = text.lines().filter(|line| line.starts_with("longhaul_urls_total{"));
        of_urls.map(|line| line.rsplit(' ').next().unwrap().parse::<f64>().unwrap()).sum()
    };
    assert!(
        eventually(|| {
            text = session.get(url).send().unwrap().text().unwrap();
            done(&text) == 9.0 && text.contains("\nlonghaul_urls_in_flight 1\n")
        }),
        "{text}"
    );
    text
}

#[test]
fn what_is_served_is_what_the_page_says() {
    let origin = site();
    let (_job, mut running, url) = started(&origin);
    let session = session();
    let text = scraped(&session, &url);

    let mut help = BTreeMap::new();
    let mut types = BTreeMap::new();
    let mut labels: BTreeMap<&str, &str> = BTreeMap::new();
    for line in text.lines() {
        if let Some((name, text)) = line.strip_prefix("# HELP ").and_then(|l| l.split_once(' ')) {
            help.insert(name, text);
        } else if let Some((name, kind)) =
            line.strip_prefix("# TYPE ").and_then(|l| l.split_once(' '))
        {
            types.insert(name, kind);
        } else if let Some((name, rest)) = line.split_once('{') {
            let label = rest.split('=').next().unwrap();
            let name =
                types.keys().find(|known| name.strip_suffix("_bucket").unwrap_or(name) == **known);
            if let (Some(name), true) = (name, label != "le") {
                labels.insert(name, label);
            }
        }
    }
    let served: Vec<_> = types
        .iter()
        .map(|(name, kind)| {
            let label = labels.get(name).map(|label| format!("`{label}`")).unwrap_or_default();
            [format!("`{name}`"), (*kind).to_owned(), label, help[name].to_owned()]
        })
        .collect();
    let rows = table(PAGE, "| name | type | labels | meaning |");
    assert_eq!(served.len(), rows.len());
    for (served, row) in served.iter().zip(rows) {
        assert_eq!(served[..], row);
    }
    for line in [
        "longhaul_urls_planned 10",
        "longhaul_urls_total{class=\"ok\"} 5",
        "longhaul_urls_total{class=\"refused\"} 2",
        "longhaul_urls_total{class=\"retryable\"} 2",
        "longhaul_urls_total{class=\"input\"} 0",
        "longhaul_attempts_total{outcome=\"2xx\"} 5",
        "longhaul_attempts_total{outcome=\"4xx\"} 2",
        "longhaul_attempts_total{outcome=\"connection\"} 4",
        "longhaul_attempt_seconds_count 11",
        "longhaul_phase_seconds_count{phase=\"total\"} 7",
        "longhaul_url_seconds_count 9",
        "longhaul_received_bytes_total 30",
        "longhaul_refusals_total 2",
        "longhaul_disconnects_total 4",
        "longhaul_concurrency 4",
        "longhaul_pass 1",
        "longhaul_urls_waiting{reason=\"backoff\"} 0",
        "longhaul_disconnect_ratio NaN",
        "longhaul_disconnect_alarm 0",
        "longhaul_proxies{state=\"good\"} 0",
    ] {
        assert!(text.lines().any(|served| served == line), "{line} is not in\n{text}");
    }

    let root = url.strip_suffix("/metrics").unwrap();
    let response = session.get(&url).send().unwrap();
    assert_eq!(
        response.header("content-type").as_deref(),
        Some("text/plain; version=0.0.4; charset=utf-8")
    );
    for (path, status) in [("/", 404), ("/metrics/x", 404), ("/metrics?x=1", 200)] {
        assert_eq!(session.get(format!("{root}{path}")).send().unwrap().status(), status, "{path}");
    }
    let posted = session.post(&url).send().unwrap();
    assert_eq!((posted.status(), posted.header("allow").as_deref()), (405, Some("GET, HEAD")));
    assert_eq!(session.head(&url).send().unwrap().status(), 200);

    // With the site goes what keeps the run going.
    drop(origin);
    assert_eq!(running.wait(), 1);
    assert!(session.get(&url).send().is_err(), "it is served beyond the run");
}

/// It announces a body, sends none and stays.
#[test]
fn a_client_that_hangs_stops_neither_the_numbers_nor_the_end() {
    let origin = site();
    let (_job, mut running, url) = started(&origin);
    let address = url.strip_prefix("http://").and_then(|rest| rest.split('/').next()).unwrap();
    let mut hanging = Vec::new();
    for _ in 0..2 {
        let mut client = TcpStream::connect(address).unwrap();
        let head = b"GET /metrics HTTP/1.1\r\nHost: h\r\nContent-Length: 5000\r\n\r\n";
        client.write_all(head).unwrap();
        // It was answered, so a thread is at it.
        let mut byte = [0];
        client.read_exact(&mut byte).unwrap();
        hanging.push(client);
    }
    scraped(&session(), &url);
    drop(origin);
    assert_eq!(running.wait(), 1);
    drop(hanging);
}

/// As the Prometheus client of Python reads it, line by line.
#[test]
fn a_parser_of_the_format_reads_it() {
    let Some(python) = httpbin::python("prometheus_client") else {
        return skip("no parser of the format");
    };
    let origin = site();
    let (_job, _running, url) = started(&origin);
    let text = scraped(&session(), &url);
    let script = "import sys\n\
        from prometheus_client.parser import text_string_to_metric_families as families\n\
        for f in families(sys.stdin.read()):\n  print(f.name, f.type, len(f.samples))";
    let mut child = Command::new(python)
        .args(["-c", script])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success());
    let read = String::from_utf8(output.stdout).unwrap();
    let rows = table(PAGE, "| name | type | labels | meaning |");
    assert_eq!(read.lines().count(), rows.len(), "{read}");
    for row in rows {
        // It leaves off what every counter ends in.
        let name = row[0].trim_matches('`').trim_end_matches("_total");
        let line = format!("{name} {} ", row[1]);
        assert!(read.lines().any(|read| read.starts_with(&line)), "{line} is not in\n{read}");
    }
}

/// As Prometheus' own tool reads it, which also knows how names and types belong together. It comes
/// with a server that is too large to be asked for.
#[test]
fn the_tool_of_prometheus_has_no_complaint() {
    let Some(promtool) = find("promtool") else {
        return skip("promtool is not installed");
    };
    let origin = site();
    let (job, _running, url) = started(&origin);
    job.write("metrics.txt", scraped(&session(), &url));
    let text = std::fs::File::open(job.path("metrics.txt")).unwrap();
    let output = Command::new(promtool).args(["check", "metrics"]).stdin(text).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && said.is_empty(), "{said}");
}

#[test]
fn an_address_that_cannot_be_is_told_before_the_run() {
    let origin = site();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = taken.local_addr().unwrap().to_string();
    let job = Job::new([origin.url("/1")]);
    for (address, wanted) in [
        (taken.as_str(), format!("--metrics: cannot listen at {taken}: ")),
        ("192.0.2.1:9100", "--metrics: cannot listen at 192.0.2.1:9100: ".to_owned()),
        ("here:9100", "--metrics: 'here:9100' is no address; give a port such as 9100".to_owned()),
        ("99999", "--metrics: '99999' is no address; give a port".to_owned()),
    ] {
        let ended = job.run(&["--metrics", address]);
        ended.assert_code(2);
        assert!(ended.stderr.contains(&wanted), "{}", ended.stderr);
        assert_eq!(ended.stderr.lines().count(), 1, "{}", ended.stderr);
    }
    assert_eq!(origin.counts().requests, 0);
    assert!(!job.path("results.jsonl").exists());
}
