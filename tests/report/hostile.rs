//! Records with what servers, or whoever wrote the list, would like to have executed.

use super::support::chromium::Chromium;
use super::{Desk, synthetic};
use serde_json::{Value, json};
use std::fs;

const INJECTIONS: [&str; 5] = [
    "<script>window.harmed=1</script>",
    "\"><img src=x onerror=window.harmed=1>",
    "'--></style></title></svg><svg onload=window.harmed=1>",
    "javascript:window.harmed=1",
    "]]>&lt;b&gt;\u{202e}\u{0}\u{1b}[31m",
];

/// A record with the text wherever a record has one.
fn record(text: &str, number: usize) -> Value {
    let mut record = synthetic::records(1, 1).next().unwrap();
    let error = json!({"kind": text, "requests_name": text, "phase": text, "fault": text,
        "message": text});
    let refused = json!({"matched": text, "server": text, "cf_ray": text, "x_cache": text,
        "via": text, "retry_after": text, "set_cookie_names": [text]});
    let changes = json!({
        "id": format!("{text}{number}"), "url": format!("http://h{number}.test/{text}"),
        "final_url": text, "method": text, "reason": text, "class": text, "error": error,
        "attempts": [
            {"n": 1, "proxy": text, "exit": text, "url": text, "status": 403, "elapsed_ms": 1,
                "wait_ms": 1, "wait_reason": text, "refused": refused, "error": error},
            {"n": 2, "proxy": text, "exit": text, "error": error, "elapsed_ms": 90_000}
        ],
        "proxy": text, "exit": text, "body_file": text, "refused": refused, "ok": false,
        "status": 403, "elapsed_ms": 90_001, "promised_ms": 5,
    });
    record.as_object_mut().unwrap().extend(changes.as_object().unwrap().clone());
    record
}

fn desk() -> Desk {
    let desk = Desk::new();
    let records: Vec<Value> =
        INJECTIONS.iter().enumerate().map(|(at, text)| record(text, at)).collect();
    desk.write("<i>bad.jsonl", &records);
    desk
}

#[test]
fn nothing_of_a_record_becomes_part_of_the_page() {
    let desk = desk();
    let file = "<i>bad.jsonl";
    desk.report(&[file, "--html", "page.html"]);
    desk.report(&[file, file, "--html", "two.html"]);
    let page = fs::read_to_string(desk.path("page.html")).unwrap();
    for piece in ["<script>window", "<img", "<i>bad", "<b>", "<svg onload"] {
        assert!(!page.contains(piece), "{piece}");
    }
    assert!(page.contains("&lt;script&gt;window.harmed=1&lt;/script&gt;"));
    let Some(mut browser) = Chromium::start() else { return };
    for name in ["page.html", "two.html"] {
        browser.screen(1280, false);
        browser.open(&desk.path(name));
        assert_eq!(browser.complaints(), [&json!(null); 0], "{name}");
        assert_eq!(browser.requests().len(), 1, "{name}");
        let found = browser.evaluate(
            "[typeof window.harmed, document.scripts.length, document.images.length, \
              document.querySelectorAll('[onerror], [onload], a:not([href^=\"#\"]), i, b').length]",
        );
        assert_eq!(found, json!(["undefined", 1, 0, 0]), "{name}");
        // It is there all the same, as text.
        let text = browser.evaluate("document.querySelector('main').textContent");
        for injection in &INJECTIONS[..4] {
            assert!(text.as_str().unwrap().contains(injection), "{name} hides {injection}");
        }
        browser.screen(360, true);
        browser.open(&desk.path(name));
        let wide = browser.evaluate("document.documentElement.scrollWidth");
        assert!(wide.as_u64().unwrap() <= 360, "{name} is {wide} wide");
    }
}

#[test]
fn nothing_of_a_record_steers_the_terminal() {
    let desk = desk();
    let file = "<i>bad.jsonl";
    for arguments in [&[file][..], &[file, file]] {
        let printed = desk.report(arguments);
        let steering = |c: &char| c.is_control() && *c != '\n';
        assert_eq!(printed.chars().find(steering), None, "{printed:?}");
    }
}
