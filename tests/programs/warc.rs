//! WARC files as warcio reads them: what a run was sent, to the byte.

use std::collections::HashMap;
use std::fs;
use std::path::PathBuf;

use longhaul::lab::{HttpProxy, Origin, Reply, Script};
use serde_json::Value;

use super::job::Job;
use super::support::nginx::{Nginx, PAGE};
use super::support::warcio::{WarcRecord, Warcio};

/// The WARC files of a job, in order.
fn files(job: &Job) -> Vec<PathBuf> {
    let mut files: Vec<_> = fs::read_dir(job.path(""))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.to_str().unwrap().ends_with(".warc.gz"))
        .collect();
    files.sort();
    files
}

fn of_kind<'a>(records: &'a [WarcRecord], kind: &str) -> Vec<&'a WarcRecord> {
    records.iter().filter(|record| record.kind() == kind).collect()
}

/// Asserts that each record of the results names a record of an answer, by the index of warcio.
fn assert_named(warcio: &Warcio, files: &[PathBuf], results: &[Value]) {
    let index: HashMap<(String, String), Value> = warcio
        .index(files)
        .into_iter()
        .map(|entry| {
            let text = |name: &str| entry[name].as_str().unwrap().to_owned();
            ((text("filename"), text("offset")), entry)
        })
        .collect();
    for result in results {
        let offset = result["warc_offset"].as_u64().unwrap().to_string();
        let entry = &index[&(result["warc_file"].as_str().unwrap().to_owned(), offset)];
        let length = result["warc_length"].as_u64().unwrap().to_string();
        assert_eq!(entry["length"], length.as_str(), "{entry}");
        assert_eq!(entry["warc-target-uri"], result["final_url"], "{result}");
        assert_eq!(entry["http:status"], result["status"].to_string().as_str(), "{result}");
        assert!(matches!(entry["warc-type"].as_str(), Some("response" | "revisit")), "{entry}");
    }
}

#[test]
fn a_run_over_nginx_is_read_and_checked_by_warcio() {
    let (Some(warcio), Some(nginx)) = (Warcio::find(), Nginx::start()) else { return };
    let job = Job::new::<&str>([]);
    let mut lines: Vec<String> = (0..20).map(|n| nginx.url(&format!("/page/{n}"))).collect();
    lines.extend(["/small/7", "/large/1", "/moved", "/nowhere", "/gone"].map(|at| nginx.url(at)));
    lines.push(nginx.tls_url("/small/9"));
    lines.push(format!(r#"{{"url":"{}","method":"HEAD"}}"#, nginx.url("/page/1")));
    lines.push(format!(r#"{{"url":"{}","method":"POST","body":"a=b"}}"#, nginx.url("/echo")));
    job.write("urls.txt", lines.join("\n"));
    job.write("ca.pem", nginx.ca().pem());
    job.run(&["--warc", "p.warc.gz", "--cacert", "ca.pem", "-w", "4"]).assert_code(1);

    let files = files(&job);
    warcio.check(&files);
    let results = job.records();
    assert_eq!(results.len(), lines.len());
    assert_named(&warcio, &files, &results);
    let records = warcio.read(&files);

    // Each page was compressed on its way, in chunks, and is the page.
    let pages: Vec<_> = of_kind(&records, "response")
        .into_iter()
        .filter(|record| record.url().contains("/page/") && !record.payload().is_empty())
        .collect();
    assert_eq!(pages.len(), 1, "the others are revisits");
    assert_eq!(pages[0].http("Content-Encoding"), Some("gzip"));
    assert_eq!(pages[0].http("Transfer-Encoding"), Some("chunked"));
    assert_eq!(pages[0].content().len(), PAGE);
    assert_eq!(pages[0].field("WARC-IP-Address"), Some("127.0.0.1"));
    let revisits = of_kind(&records, "revisit");
    assert!(revisits.len() >= 19, "{}", revisits.len());
    for revisit in revisits.iter().filter(|record| record.url().contains("/page/")) {
        assert_eq!(revisit.field("WARC-Refers-To"), Some(pages[0].id()));
        assert_eq!(revisit.field("WARC-Refers-To-Target-URI"), Some(pages[0].url()));
        assert_eq!(revisit.field("WARC-Refers-To-Date"), pages[0].field("WARC-Date"));
        assert_eq!(revisit.line(), "HTTP/1.1 200 OK");
        assert!(revisit.payload().is_empty());
    }

    // Both sides of the redirect, the answer without a body, and what was sent.
    let hop = records.iter().find(|record| record.url().ends_with("/moved")).unwrap();
    assert_eq!(hop.http("Location").map(|to| to.ends_with("/small/1")), Some(true));
    let heads = of_kind(&records, "request");
    assert_eq!(heads.len(), lines.len() + 1);
    assert!(heads.iter().any(|record| record.line().starts_with("HEAD /page/1 ")));
    let post = heads.iter().find(|record| record.line().starts_with("POST /echo ")).unwrap();
    assert_eq!(post.payload(), b"a=b");
    assert!(records.iter().any(|record| record.url() == nginx.tls_url("/small/9")));

    // The records of the results, each behind its answer.
    let metadata = of_kind(&records, "metadata");
    let mut told: Vec<_> = metadata.iter().map(|record| record.payload()).collect();
    let text = job.read("results.jsonl");
    let mut lines: Vec<_> = text.lines().map(|line| line.as_bytes().to_vec()).collect();
    told.sort();
    lines.sort();
    assert_eq!(told, lines);
}

#[test]
fn odd_messages_stand_there_to_the_byte() {
    let Some(warcio) = Warcio::find() else { return };
    let sent: [(&str, &[u8], Option<&str>); 8] = [
        ("/length", b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc", None),
        (
            "/chunks",
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n03;x=y\r\nabC\r\n0\r\nT: 1\r\n\r\n",
            None,
        ),
        ("/to-the-end", b"HTTP/1.0 200 OK\r\nX-Odd : \xe9\r\n\r\nup to the end", None),
        ("/line-feeds", b"HTTP/1.1 200 OK\nX-A: b\n\nunix", None),
        ("/none", b"HTTP/1.1 204 No Content\r\n\r\n", None),
        ("/identity", b"HTTP/1.1 404 Gone\r\nContent-Length: 5\r\nETag: \"x\"\r\n\r\n\0\x01\r\n\xff", None),
        (
            "/cut",
            b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc",
            Some("disconnect"),
        ),
        (
            "/cut-chunks",
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n9\r\nabc",
            Some("disconnect"),
        ),
    ];
    let answers: HashMap<String, Vec<u8>> =
        sent.iter().map(|(path, bytes, _)| ((*path).to_owned(), bytes.to_vec())).collect();
    let origin = Origin::builder()
        .handler(move |request| Script::send(&answers[&request.path]).fin())
        .start()
        .unwrap();
    let job = Job::new(sent.map(|(path, _, _)| origin.url(path)));
    job.run(&["--warc", "p.warc.gz", "--total", "0"]).assert_code(1);

    let files = files(&job);
    warcio.check(&files);
    let bytes = fs::read(&files[0]).unwrap();
    let records = warcio.read(&files);
    for (path, sent, truncated) in sent {
        let record = records
            .iter()
            .find(|record| record.kind() == "response" && record.url() == origin.url(path))
            .unwrap_or_else(|| panic!("{path}"));
        assert_eq!(record.field("WARC-Truncated"), truncated, "{path}");
        let wanted = [sent, b"\r\n\r\n"].concat();
        assert!(inflated(&bytes, record.offset()).ends_with(&wanted), "{path}");
    }
    let failed: Vec<_> =
        job.records().into_iter().filter(|record| !record["error"].is_null()).collect();
    assert_eq!(failed.len(), 2);
    assert!(failed.iter().all(|record| record["warc_offset"].is_u64()), "what came is named");
}

/// The record that begins here.
fn inflated(file: &[u8], offset: u64) -> Vec<u8> {
    use std::io::Read as _;
    let mut record = Vec::new();
    let member = &file[usize::try_from(offset).unwrap()..];
    flate2::bufread::GzDecoder::new(member).read_to_end(&mut record).unwrap();
    record
}

#[test]
fn every_attempt_that_was_answered_is_there_and_no_secret_is() {
    let Some(warcio) = Warcio::find() else { return };
    let origin = Origin::builder()
        .handler(|request| match (&*request.path, request.request) {
            ("/late", 1) => Reply::new(503).header("Retry-After", "0").body("later"),
            ("/late", _) => Reply::ok("now").header("Set-Cookie", "id=1"),
            _ => Reply::new(500).body("never"),
        })
        .start()
        .unwrap();
    let proxy = HttpProxy::builder().credentials("me", "hunter2").start().unwrap();
    let through = format!("http://me:hunter2@{}", proxy.address());
    let list = [origin.url("/late"), origin.url("/never")];
    let flags = ["-w", "1", "--total", "1", "--backoff-factor", "0.01", "--passes", "2"];
    for (extra, secret) in [(None, false), (Some("--warc-credentials"), true)] {
        let job = Job::new(&list);
        let mut flags =
            [&flags[..], &["-x", &through, "--bearer", "hunter2", "--warc", "p.warc.gz"]].concat();
        flags.extend(extra);
        job.run(&flags).assert_code(1);
        let files = files(&job);
        warcio.check(&files);
        let records = warcio.read(&files);
        let answers: Vec<_> = records
            .iter()
            .filter(|record| matches!(record.kind(), "response" | "revisit"))
            .map(|record| (record.line().to_owned(), record.url().to_owned()))
            .collect();
        let never = answers.iter().filter(|(_, url)| *url == list[1]).count();
        assert_eq!(never, 4, "two attempts in each of two passes: {answers:?}");
        for request in of_kind(&records, "request") {
            assert!(request.line().starts_with("GET http://"), "as the proxy got it");
            assert_eq!(request.http("Proxy-Authorization"), None);
            assert_eq!(request.field("WARC-IP-Address"), None);
            let wanted = if secret { "Bearer hunter2" } else { "Bearer ***" };
            assert_eq!(request.http("Authorization"), Some(wanted));
        }
        if !secret {
            let text = String::from_utf8_lossy(&records_of(&files)).into_owned();
            assert!(!text.contains("hunter2"), "{text}");
        }
    }
}

/// All records of these files, decompressed.
fn records_of(files: &[PathBuf]) -> Vec<u8> {
    use std::io::Read as _;
    let mut records = Vec::new();
    for file in files {
        let bytes = fs::read(file).unwrap();
        flate2::bufread::MultiGzDecoder::new(&bytes[..]).read_to_end(&mut records).unwrap();
    }
    records
}

#[test]
fn killed_and_resumed_the_files_are_whole_and_turn_by_their_size() {
    let (Some(warcio), Some(nginx)) = (Warcio::find(), Nginx::start()) else { return };
    let job = Job::new((0..1500).map(|page| nginx.url(&format!("/small/{page}"))));
    let mut flags =
        vec!["--warc", "p.warc.gz", "--warc-size", "100K", "-w", "8", "--rate", "1000/s"];
    for until in [200, 500] {
        let mut running = job.start(&flags);
        job.wait_for_lines(until);
        running.kill();
        // What a kill in the middle of a write leaves.
        let last = files(&job).pop().unwrap();
        let length = fs::metadata(&last).unwrap().len();
        let file = fs::File::options().append(true).open(&last).unwrap();
        file.set_len(length - 1).unwrap();
        if !flags.contains(&"--resume") {
            flags.push("--resume");
        }
    }
    job.run(&flags).assert_code(0);
    job.all_ok_once();
    let files = files(&job);
    assert!(files.len() > 3, "{files:?}");
    warcio.check(&files);
    let records = warcio.read(&files);
    assert_eq!(of_kind(&records, "warcinfo").len(), files.len());
    // One record at most went with each torn tail, and the results do not name it.
    let offsets: Vec<(String, u64)> = warcio
        .index(&files)
        .iter()
        .map(|entry| {
            let text = |name: &str| entry[name].as_str().unwrap();
            (text("filename").to_owned(), text("offset").parse().unwrap())
        })
        .collect();
    for result in job.records() {
        let place = (
            result["warc_file"].as_str().unwrap().to_owned(),
            result["warc_offset"].as_u64().unwrap(),
        );
        assert!(offsets.contains(&place), "{result}");
    }

    // Without --resume nothing is written over.
    let other = ["run", "-i", "urls.txt", "-o", "other.jsonl", "--warc", "p.warc.gz"];
    let ended = job.end(job.command(&other));
    assert_eq!(ended.code, 2, "{}", ended.stderr);
    assert!(ended.stderr.contains(".warc.gz is there already"), "{}", ended.stderr);
}
