//! Whether every URL of the demo came out as its fault demands.
//!
//! It reads the results file as a user's own script would, and holds each record against
//! [`expected`]. A run that reports itself is no witness; the file is.

use super::pages::{Budgets, Page, expected};
use longhaul::batch::Record;
use std::collections::BTreeMap;
use std::time::Duration;
use url::Url;

/// Everything in `results` that is not as it has to be, a sentence each.
///
/// `urls` is what the run was given, and `promised` the longest that one of them may take.
pub(crate) fn deviations(
    results: &str,
    urls: &[String],
    budgets: Budgets,
    promised: Option<Duration>,
) -> Vec<String> {
    let mut wrong = Vec::new();
    let mut records: BTreeMap<String, u32> = BTreeMap::new();
    for (line, number) in results.lines().zip(1_u64..) {
        let record: Record = match serde_json::from_str(line) {
            Ok(record) => record,
            Err(error) => {
                wrong.push(format!("line {number} is no record: {error}"));
                continue;
            }
        };
        let seen = records.entry(record.url.clone()).or_default();
        *seen = seen.saturating_add(1);
        wrong.extend(of_record(&record, budgets, promised));
    }
    for url in urls {
        match records.remove(url) {
            Some(1) => {}
            Some(times) => wrong.push(format!("{url}: recorded {times} times instead of once")),
            None => wrong.push(format!("{url}: not recorded")),
        }
    }
    wrong.extend(records.into_keys().map(|url| format!("{url}: recorded, though nobody asked")));
    wrong
}

fn of_record(record: &Record, budgets: Budgets, promised: Option<Duration>) -> Vec<String> {
    let page: Page = match Url::parse(&record.url).map(|url| url.path().parse()) {
        Ok(Ok(page)) => page,
        _ => return vec![format!("{}: no URL of this demo", record.url)],
    };
    let wanted = expected(&page, budgets);
    let mut wrong = Vec::new();
    let mut note = |what: String| wrong.push(format!("{}: {what}", record.url));
    if record.class != wanted.class.name() {
        let error = record.error.as_ref().map_or("", |error| &error.message);
        note(format!("is {} instead of {}. {error}", record.class, wanted.class.name()));
    }
    if let Some(error) = &record.error {
        if !wanted.kinds.contains(&&*error.kind) {
            note(format!("failed by {} instead of {:?}", error.kind, wanted.kinds));
        }
    } else if !record.status.is_some_and(|status| wanted.status.contains(&status)) {
        note(format!("has status {:?} instead of {:?}", record.status, wanted.status));
    }
    let attempts = record.attempts.len();
    if !u32::try_from(attempts).is_ok_and(|attempts| wanted.attempts.contains(&attempts)) {
        note(format!("took {attempts} attempts instead of {:?}", wanted.attempts));
    }
    if let Some(bytes) = wanted.bytes
        && record.ok
        && usize::try_from(record.bytes_body) != Ok(bytes)
    {
        note(format!("has {} bytes instead of {bytes}", record.bytes_body));
    }
    if let Some(promised) = promised
        && record.elapsed_ms > promised.as_secs_f64() * 1000.0
    {
        note(format!("took {} ms, more than the promised {promised:?}", record.elapsed_ms));
    }
    if record.proxy.is_none() {
        note("went direct, past the proxies".to_owned());
    }
    wrong
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    const BUDGETS: Budgets = Budgets { total: 4, read: 2, status: 3 };

    fn record(path: &str) -> Value {
        json!({
            "v": 1, "id": "1", "url": format!("http://h{path}"), "final_url": null,
            "method": "GET", "status": 200, "reason": "OK", "ok": true, "class": "ok",
            "error": null, "attempts": [{"n": 1, "elapsed_ms": 1.0}], "proxy": "http://p:1",
            "exit": null, "bytes_wire": 9, "bytes_body": 9, "body_file": null,
            "elapsed_ms": 5.0, "timings": null, "pass": 1, "at": "2025-06-15T00:00:00.000Z",
        })
    }

    fn with(mut record: Value, changes: Value) -> Value {
        if let (Some(record), Value::Object(changes)) = (record.as_object_mut(), changes) {
            record.extend(changes);
        }
        record
    }

    fn check(records: &[Value], urls: &[&str]) -> Vec<String> {
        let lines: Vec<String> = records.iter().map(ToString::to_string).collect();
        let urls: Vec<String> = urls.iter().map(|path| format!("http://h{path}")).collect();
        deviations(&lines.join("\n"), &urls, BUDGETS, Some(Duration::from_secs(1)))
    }

    #[test]
    fn a_record_as_it_has_to_be() {
        let fine = record("/1/fine-always/plain/9");
        let failed = json!({
            "status": null, "ok": false, "class": "retryable", "bytes_body": 0,
            "error": {"kind": "read_timeout", "requests_name": "ReadTimeout", "phase": "headers",
                "fault": "target", "message": "silence"},
            "attempts": [{"n": 1, "elapsed_ms": 1.0}, {"n": 2, "elapsed_ms": 1.0},
                {"n": 3, "elapsed_ms": 1.0}],
        });
        let silent = with(record("/2/silent-always/plain/9"), failed);
        let urls = ["/1/fine-always/plain/9", "/2/silent-always/plain/9"];
        assert_eq!(check(&[fine, silent], &urls), Vec::<String>::new());
    }

    #[test]
    fn every_deviation_is_named() {
        let path = "/1/fine-always/plain/9";
        for (change, wanted) in [
            (json!({"class": "permanent"}), "is permanent instead of ok"),
            (json!({"status": 404}), "has status Some(404) instead of [200]"),
            (json!({"attempts": []}), "took 0 attempts instead of 1..=1"),
            (json!({"bytes_body": 8}), "has 8 bytes instead of 9"),
            (json!({"elapsed_ms": 1001.0}), "more than the promised 1s"),
            (json!({"proxy": null}), "went direct"),
            (json!({"url": "http://h/other"}), "no URL of this demo"),
            (json!({"v": "x"}), "line 1 is no record"),
        ] {
            let wrong = check(&[with(record(path), change.clone())], &[path]);
            assert!(wrong.iter().any(|text| text.contains(wanted)), "{change}: {wrong:?}");
        }
    }

    #[test]
    fn every_url_exactly_once() {
        let [one, two, three] = [1, 2, 3].map(|index| format!("/{index}/fine-always/plain/9"));
        let records = [record(&one), record(&one), record(&three)];
        assert_eq!(
            check(&records, &[&one, &two]),
            [
                format!("http://h{one}: recorded 2 times instead of once"),
                format!("http://h{two}: not recorded"),
                format!("http://h{three}: recorded, though nobody asked"),
            ]
        );
    }
}
