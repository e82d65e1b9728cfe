//! Results as a table and in parts, as other programs read them, through kills and resumptions.

use std::collections::HashSet;
use std::fs;
use std::process::Command;

use longhaul::batch::parts_of;
use longhaul::lab::{Origin, Reply};
use serde_json::Value;

use super::job::Job;
use super::support::nginx::Nginx;
use super::support::require;

/// The rows of tables as Python's `csv` reads them: one JSON object a row.
const READ: &str = "
import csv, json, sys
for name in sys.argv[1:]:
    with open(name, newline='', encoding='utf-8') as file:
        for row in csv.DictReader(file, strict=True):
            print(json.dumps(row))
";

fn rows(job: &Job, names: &[&str]) -> Vec<Value> {
    let python = require("python3").unwrap();
    let paths = names.iter().map(|name| job.path(name));
    let output = Command::new(python).args(["-c", READ]).args(paths).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn a_table_says_what_the_records_say_and_runs_nothing() {
    if require("python3").is_none() {
        return;
    }
    let origin = Origin::builder()
        .handler(|request| match &*request.path {
            "/formula" => Reply::new(500).reason("=HYPERLINK(\"http://evil/\",\"a\")").body("x"),
            "/cut" => Reply::ok("").header("Content-Length", "9").close(),
            _ => Reply::ok("page"),
        })
        .start()
        .unwrap();
    let job = Job::new::<&str>([]);
    let lines: Vec<_> = ["/page", "/formula", "/cut"]
        .iter()
        .map(|path| format!(r#"{{"url":"{}","meta":{{"shop":"a, \"b\""}}}}"#, origin.url(path)))
        .collect();
    job.write("urls.txt", lines.join("\n"));
    let columns = "id,url,status,reason,ok,class,error.kind,attempts,timings.dns_ms,meta.shop,meta";
    let run = ["run", "-i", "urls.txt", "--total", "0", "--no-env"];
    job.end(job.command(&[&run[..], &["-o", "t.csv", "--columns", columns]].concat()))
        .assert_code(1);
    job.end(job.command(&[&run[..], &["-o", "results.jsonl"]].concat())).assert_code(1);

    let table = rows(&job, &["t.csv"]);
    assert_eq!(table.len(), 3);
    for record in job.records() {
        let row = table.iter().find(|row| row["url"] == record["url"]).unwrap();
        let text = |value: &Value| match value {
            Value::Null => String::new(),
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        for name in ["id", "status", "ok", "class"] {
            assert_eq!(row[name].as_str().unwrap(), text(&record[name]), "{row}");
        }
        assert_eq!(row["error.kind"].as_str().unwrap(), text(&record["error"]["kind"]));
        let reason = text(&record["reason"]);
        let guard = if reason.starts_with('=') { "'" } else { "" };
        assert_eq!(row["reason"].as_str().unwrap(), format!("{guard}{reason}"));
        assert_eq!(row["attempts"], "1");
        assert_eq!(row["meta.shop"], "a, \"b\"");
        assert_eq!(row["meta"], "{\"shop\":\"a, \\\"b\\\"\"}");
    }
    let guarded = table.iter().filter(|row| row["reason"].as_str().unwrap().starts_with("'="));
    assert_eq!(guarded.count(), 1);

    // On standard output as well.
    let ended = job.end(job.command(&[&run[..], &["--format", "csv", "-q"]].concat()));
    assert!(ended.stdout.starts_with("id,url,final_url,method,"), "{}", ended.stdout);
}

#[test]
fn killed_and_resumed_a_table_in_parts_is_complete() {
    let (Some(_), Some(nginx)) = (require("python3"), Nginx::start()) else { return };
    let urls: Vec<_> = (0..1500).map(|page| nginx.url(&format!("/small/{page}"))).collect();
    let job = Job::new(&urls);
    let mut flags =
        vec!["run", "-i", "urls.txt", "-o", "t.csv", "--rotate-size", "40K", "--no-env"];
    flags.extend(["-w", "8", "--rate", "1000/s"]);
    for until in [1, 3] {
        let mut running = job.spawn(&flags);
        assert!(super::support::process::eventually(|| {
            parts_of(job.path("t.csv")).unwrap().len() > until
        }));
        running.kill();
        // What a kill in the middle of a write leaves.
        let last = parts_of(job.path("t.csv")).unwrap().pop().unwrap();
        let length = fs::metadata(&last).unwrap().len();
        let file = fs::File::options().append(true).open(&last).unwrap();
        file.set_len(length.saturating_sub(10)).unwrap();
        if !flags.contains(&"--resume") {
            flags.push("--resume");
        }
    }
    job.end(job.command(&flags)).assert_code(0);
    let parts = parts_of(job.path("t.csv")).unwrap();
    let names: Vec<_> =
        parts.iter().map(|part| part.file_name().unwrap().to_str().unwrap()).collect();
    assert!(names.len() > 3 && names[..3] == ["t.csv", "t.1.csv", "t.2.csv"], "{names:?}");
    let rows = rows(&job, &names);
    let found: HashSet<_> = rows.iter().map(|row| row["url"].as_str().unwrap()).collect();
    assert_eq!((rows.len(), found.len()), (urls.len(), urls.len()));
    assert!(rows.iter().all(|row| row["ok"] == "true"));
    // All is done, and a new run is refused.
    job.end(job.command(&flags)).assert_code(0);
    assert_eq!(parts_of(job.path("t.csv")).unwrap().len(), parts.len());
    flags.retain(|flag| *flag != "--resume");
    assert_eq!(job.end(job.command(&flags)).code, 2);
}
