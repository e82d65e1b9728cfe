//! What the command prints, takes and refuses.

use super::support::terminal::{Terminal, shown};
use super::{Desk, synthetic};
use serde_json::{Value, json};
use std::fs::{self, File};
use std::process::Stdio;

fn rows(text: &str) -> Vec<String> {
    text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect()
}

fn small() -> Vec<Value> {
    synthetic::records(500, 5).collect()
}

#[test]
fn the_tables_tell_the_numbers_of_the_object() {
    let desk = Desk::new();
    desk.write("r.jsonl", &small());
    let (object, printed) = (desk.json(&["r.jsonl"]), desk.report(&["r.jsonl"]));
    assert!(printed.lines().all(|line| line.chars().count() <= 110), "{printed}");
    assert!(!printed.contains('\u{1b}'), "colours only on a terminal");
    let rows = rows(&printed);
    let mut wanted = vec![
        "URLs 500".to_owned(),
        format!("recovered by a retry {} ", object["recovered"]),
        format!("attempts {} ", object["attempts"]),
        "promised at most 334.80 s kept by every URL".to_owned(),
    ];
    for (class, count) in object["classes"].as_object().unwrap() {
        wanted.push(format!("{class} {count} "));
    }
    for line in object["attempts_per_url"].as_array().unwrap() {
        wanted.push(format!("{} {} ", line["attempts"], line["urls"]));
    }
    for waits in object["waits"].as_array().unwrap() {
        wanted.push(format!("{} {} ", waits["reason"].as_str().unwrap(), waits["count"]));
    }
    for row in &object["hosts"]["rows"].as_array().unwrap()[..10] {
        let counts = ["urls", "ok", "attempts", "failed", "refused", "throttled"];
        let counts = counts.map(|count| row[count].to_string()).join(" ");
        wanted.push(format!("{} {counts} ", row["name"].as_str().unwrap()));
    }
    for row in wanted {
        assert!(rows.iter().any(|line| format!("{line} ").starts_with(&row)), "{row}: {rows:#?}");
    }
}

#[test]
fn two_runs_are_told_side_by_side() {
    let desk = Desk::new();
    let few = small();
    desk.write("a.jsonl", &few);
    let bad = |record: &Value| {
        let mut record = record.clone();
        let changes = json!({"ok": false, "class": "permanent", "status": 404});
        record.as_object_mut().unwrap().extend(changes.as_object().unwrap().clone());
        record
    };
    let worse: Vec<Value> = few.iter().map(bad).collect();
    desk.write("b.jsonl", &worse);
    let rows = rows(&desk.report(&["a.jsonl", "b.jsonl"]));
    let well = rows.iter().find(|row| row.starts_with("ended well")).unwrap();
    assert!(well.contains("0.0 % ▼ −") && well.ends_with("worse"), "{well}");
    assert!(rows.iter().any(|row| row == "URLs 500 500 0 +0.0 % same"), "{rows:#?}");
    assert!(rows.iter().any(|row| row == "A is a.jsonl"), "{rows:#?}");
    let object = desk.json(&["a.jsonl", "b.jsonl"]);
    let one = desk.json(&["b.jsonl"]);
    assert_eq!(object["b"], one);
    let difference = |key: &str| {
        let list = object["differences"].as_array().unwrap();
        list.iter().find(|difference| difference["key"] == key).unwrap().clone()
    };
    let share = difference("ok_share");
    assert_eq!((&share["b"], &share["verdict"]), (&json!(0.0), &json!("worse")));
    assert_eq!(difference("url_p50_ms")["verdict"], "same");
    assert_eq!(difference("exits_distinct")["unit"], "count");
}

#[test]
fn colours_are_for_a_terminal_that_wants_them() {
    let desk = Desk::new();
    desk.write("r.jsonl", &small());
    let plain = desk.report(&["r.jsonl"]);
    for wanted in [true, false] {
        let terminal = Terminal::new(110);
        let mut command = desk.command(&["r.jsonl"]);
        command.env_remove("COLUMNS").stdout(terminal.open());
        if !wanted {
            command.env("NO_COLOR", "1");
        }
        assert_eq!(command.status().unwrap().code(), Some(0));
        // It holds the terminal open.
        drop(command);
        let bytes = terminal.bytes();
        assert_eq!(bytes.contains(&0x1b), wanted, "{}", String::from_utf8_lossy(&bytes));
        assert_eq!(rows(&shown(&bytes, 110)).join("\n").trim(), rows(&plain).join("\n").trim());
    }
}

#[test]
fn standard_input_is_read_too() {
    let desk = Desk::new();
    desk.write("r.jsonl", &small());
    let mut command = desk.command(&["-", "--json"]);
    command.stdin(Stdio::from(File::open(desk.path("r.jsonl")).unwrap()));
    let output = command.output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let mut object: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(object["source"], "standard input");
    object["source"] = json!("r.jsonl");
    assert_eq!(object, desk.json(&["r.jsonl"]));
}

#[test]
fn a_torn_end_is_told_and_garbage_named() {
    let desk = Desk::new();
    let lines: String = small().iter().map(|record| format!("{record}\n")).collect();
    fs::write(desk.path("torn.jsonl"), &lines[..lines.len() - 40]).unwrap();
    let printed = desk.report(&["torn.jsonl"]);
    assert!(rows(&printed).iter().any(|row| row.contains("bytes are torn")), "{printed}");
    assert_eq!(desk.json(&["torn.jsonl"])["urls"], 499);
    fs::write(desk.path("bad.jsonl"), format!("{lines}garbage\n{lines}")).unwrap();
    let error = desk.refused(&["bad.jsonl"]);
    assert!(error.starts_with("longhaul: error: bad.jsonl:501: not a record: "), "{error}");
    assert_eq!(error.lines().count(), 1);
}

#[test]
fn mistakes_are_refused_in_one_line() {
    let desk = Desk::new();
    desk.write("r.jsonl", &small());
    fs::create_dir(desk.path("folder")).unwrap();
    for (arguments, words) in [
        (&["none.jsonl"][..], "none.jsonl cannot be read: "),
        (&["r.jsonl", "--html", "none/page.html"], "--html: none is no folder; make it"),
        (&["r.jsonl", "--html", "folder"], "--html: folder is a folder; name a file in it"),
        (&["r.jsonl", "--html", "./r.jsonl"], "--html: ./r.jsonl holds the results; name another"),
        (&["r.jsonl", "r.jsonl", "--html", "r.jsonl"], "--html: r.jsonl holds the results"),
        (&["-", "-"], "RESULTS2: standard input can be read once; name a file"),
        (&[], "RESULTS: is missing; see `longhaul report --help`"),
        (&["r.jsonl", "r.jsonl", "r.jsonl"], "nothing of this kind is taken here"),
    ] {
        let error = desk.refused(arguments);
        assert!(error.contains(words) && error.lines().count() == 1, "{error}");
    }
    assert_eq!(desk.json(&["r.jsonl"])["urls"], 500, "the results are still there");
}

#[test]
fn an_empty_file_is_a_run_of_no_urls() {
    let desk = Desk::new();
    desk.write("r.jsonl", &[]);
    assert!(desk.report(&["r.jsonl", "--html", "page.html"]).contains("URLs"));
    let object = desk.json(&["r.jsonl"]);
    assert_eq!((&object["urls"], &object["notes"]), (&json!(0), &json!([])));
    let page = fs::read_to_string(desk.path("page.html")).unwrap();
    assert!(page.contains("There is nothing to draw."));
    desk.report(&["r.jsonl", "r.jsonl"]);
}

#[test]
fn the_parts_of_a_run_are_one_report() {
    let desk = Desk::new();
    let records = small();
    desk.write("whole.jsonl", &records);
    for (name, part) in ["r.jsonl", "r.1.jsonl", "r.2.jsonl"].iter().zip(records.chunks(200)) {
        desk.write(name, part);
    }
    // No part of it: one is missing before it.
    desk.write("r.4.jsonl", &records);
    let (mut parts, mut whole) = (desk.json(&["r.jsonl"]), desk.json(&["whole.jsonl"]));
    for (object, name) in [(&mut parts, "r.jsonl"), (&mut whole, "whole.jsonl")] {
        let source = object.as_object_mut().unwrap().remove("source").unwrap();
        assert_eq!(source, name);
    }
    assert_eq!(parts, whole);
    fs::write(desk.path("r.1.jsonl"), "junk\n").unwrap();
    let refused = desk.refused(&["r.jsonl"]);
    assert!(refused.contains("r.1.jsonl:1: "), "{refused}");
}

#[test]
fn a_table_is_refused_with_the_reason() {
    let desk = Desk::new();
    fs::write(desk.path("r.csv"), "id,url\n").unwrap();
    let refused = desk.refused(&["r.csv"]);
    let wanted =
        "r.csv is a table, which has not all that a report tells; name results in JSON Lines";
    assert!(refused.contains(wanted), "{refused}");
}
