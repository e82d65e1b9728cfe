//! Against another count of the same records, and against files as a crash leaves them.

use super::*;
use crate::batch::Tally;
use crate::batch::record::tests::SMALL;
use crate::rng::Rng;
use serde_json::{Value, json};
use std::io::{Cursor, Write};
use std::time::SystemTime;

fn read(text: &str) -> Result<Analysis, Error> {
    Analysis::read("x.jsonl", Cursor::new(text.to_owned()))
}

fn report(records: &[Value]) -> Report {
    let text: String = records.iter().map(|record| format!("{record}\n")).collect();
    read(&text).unwrap().report()
}

fn small() -> Value {
    serde_json::from_str(SMALL).unwrap()
}

fn with(changes: Value) -> Value {
    let mut record = small();
    let (Some(fields), Value::Object(changes)) = (record.as_object_mut(), changes) else {
        panic!("{record}");
    };
    fields.extend(changes);
    record
}

fn error(requests_name: &str) -> Value {
    json!({"kind": "read_timeout", "requests_name": requests_name, "phase": "headers",
        "fault": "target", "message": "silence"})
}

/// Records with everything that a table or a step can be about.
fn mixed(count: u64) -> Vec<Value> {
    let mut rng = Rng::seeded(7);
    // To the microsecond, as records are.
    let ms = |rng: &mut Rng, low, high| rounded(rng.uniform(low, high));
    (0..count)
        .map(|n| {
            let attempts: Vec<Value> = (1..=1 + rng.below(4))
                .map(|n| {
                    let mut attempt = json!({"n": n, "elapsed_ms": ms(&mut rng, 0.5, 9000.0)});
                    let fields = attempt.as_object_mut().unwrap();
                    if rng.unit() < 0.7 {
                        let proxy = format!("http://***@p{}:1", rng.below(5));
                        fields.insert("proxy".into(), json!(proxy));
                        fields.insert("exit".into(), json!(format!("192.0.2.{}", rng.below(30))));
                    }
                    if rng.unit() < 0.3 {
                        let names = ["ReadTimeout", "ConnectionError", "ProxyError"];
                        fields.insert("error".into(), error(names[rng.below(3)]));
                    } else {
                        let statuses = [200, 200, 403, 429, 503];
                        fields.insert("status".into(), json!(statuses[rng.below(5)]));
                    }
                    if rng.unit() < 0.5 {
                        fields.insert("wait_ms".into(), json!(ms(&mut rng, 0.0, 5000.0)));
                        fields.insert("wait_reason".into(), json!("backoff"));
                    }
                    attempt
                })
                .collect();
            let last = attempts.last().unwrap().clone();
            let ok = last["status"] == 200;
            let at = SystemTime::UNIX_EPOCH + Duration::from_millis(1_760_000_000_000 + n * 4321);
            with(json!({
                "id": n.to_string(), "ok": ok, "class": if ok { "ok" } else { "retryable" },
                "status": last["status"], "error": last["error"], "attempts": attempts,
                "proxy": last["proxy"], "exit": last["exit"],
                "elapsed_ms": ms(&mut rng, 1.0, 60_000.0),
                "at": humantime::format_rfc3339_millis(at).to_string(),
            }))
        })
        .collect()
}

#[test]
fn a_report_and_the_tally_of_the_run_agree() {
    let records = mixed(3000);
    let report = report(&records);
    let mut tally = Tally::new();
    let mut added = Analysis::new();
    for record in &records {
        let record = Record::parse(record.to_string().as_bytes()).unwrap();
        tally.add(&record);
        added.add(&record);
    }
    assert_eq!((report.urls, report.ok, report.failed), (3000, tally.ok(), tally.failed()));
    assert_eq!((report.recovered, report.attempts), (tally.recovered(), tally.attempts()));
    assert_eq!(&report.classes, tally.classes());
    assert_eq!(&report.statuses, tally.statuses());
    assert_eq!(&report.exceptions, tally.exceptions());
    for (rows, ways) in [(&report.proxies, tally.proxies())] {
        assert_eq!(rows.rows.len(), ways.len());
        for row in &rows.rows {
            let way = ways[&row.name];
            let counts = (row.attempts, row.answered, row.failed, row.refused, row.ok);
            assert_eq!(counts, (way.attempts, way.answered, way.failed, way.refused, way.ok));
        }
    }
    assert_eq!(report.exits.distinct, tally.exits().len() as u64);
    for exit in &report.exits.top_ten {
        assert_eq!(exit.attempts, tally.exits()[&exit.name].attempts);
    }
    let url = &report.latency.iter().find(|times| times.phase == "url").unwrap().times;
    for (share, ms) in [(0.5, url.p50_ms), (0.95, url.p95_ms), (0.99, url.p99_ms)] {
        assert_eq!(super::super::record::millis(tally.percentile(share).unwrap()), ms);
    }
    assert_eq!(url.longest_ms, tally.longest().unwrap().elapsed_ms);
    let mut hours: BTreeMap<(String, String), u64> = BTreeMap::new();
    for (hour, exception, _, count) in tally.hours().iter() {
        let hour = humantime::format_rfc3339_seconds(hour).to_string();
        *hours.entry((hour, exception.to_owned())).or_default() += count;
    }
    let mut told: BTreeMap<(String, String), u64> = BTreeMap::new();
    assert_eq!(report.exceptions_by_hour.width_s, HOUR);
    for step in &report.exceptions_by_hour.steps {
        for (exception, count) in &step.exceptions {
            told.insert((step.from.clone(), exception.clone()), *count);
        }
    }
    assert_eq!(told, hours);
    // One by one comes to the same as from a file.
    let mut added = added.report();
    added.source.clone_from(&report.source);
    assert_eq!(added, report);
}

#[test]
fn many_blocks_count_as_one_after_the_other() {
    // Some 4 MB, so that each thread has several blocks.
    let records = mixed(8000);
    let text: String = records.iter().map(|record| format!("{record}\n")).collect();
    assert!(text.len() > 3 << 20, "{}", text.len());
    let mut one_by_one = Analysis::new();
    for record in &records {
        one_by_one.add(&Record::parse(record.to_string().as_bytes()).unwrap());
    }
    let mut wanted = one_by_one.report();
    wanted.source = "x.jsonl".to_owned();
    assert_eq!(read(&text).unwrap().report(), wanted);
    // Of two broken lines the first is told, whichever thread is quicker.
    let lines: Vec<&str> = text.lines().collect();
    let broken = [&lines[..3000], &["{}"], &lines[3000..7000], &["[]"], &lines[7000..]].concat();
    for _ in 0..5 {
        let error = read(&(broken.join("\n") + "\n")).unwrap_err();
        assert!(error.message().starts_with("x.jsonl:3001: not a record: "), "{error}");
    }
}

#[test]
fn a_torn_end_is_left_out_and_told() {
    let line = small().to_string();
    for cut in 1..line.len() {
        let report = read(&format!("{line}\n{}", &line[..cut])).unwrap().report();
        assert_eq!(report.urls, 1, "{cut}");
        let note = format!("The last {cut} bytes are torn,");
        assert!(report.notes.iter().any(|have| have.starts_with(&note)), "{:?}", report.notes);
    }
    // Whole, but for its line feed.
    assert_eq!(read(&format!("\u{feff}{line}\n\n{line}")).unwrap().report().urls, 2);
}

#[test]
fn garbage_is_told_with_its_line() {
    let line = small().to_string();
    for (text, wanted) in [
        (format!("{line}\nnonsense\n{line}\n"), "x.jsonl:2: not a record: "),
        (format!("{line}\n\n{{\"v\":1}}\n"), "x.jsonl:3: not a record: missing field `id`"),
        (line.replace("\"v\":1", "\"v\":2") + "\n", "x.jsonl:1: a record of version 2;"),
    ] {
        let error = read(&text).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidJson);
        assert!(error.message().starts_with(wanted), "{error}");
        let remedy = "; repair or remove this line, or name another file";
        assert!(error.message().ends_with(remedy), "{error}");
    }
}

#[test]
fn files_are_read_plain_and_packed() {
    let folder = tempfile::tempdir().unwrap();
    let lines = format!("{}\n", small()).repeat(3);
    let plain = folder.path().join("results.jsonl");
    std::fs::write(&plain, &lines).unwrap();
    assert_eq!(Analysis::read_file(&plain).unwrap().report().urls, 3);
    let missing = Analysis::read_file(folder.path().join("none")).unwrap_err();
    assert!(missing.message().contains("none cannot be read: "), "{missing}");
    #[cfg(feature = "zstd")]
    {
        let frame = super::super::frames::frame(lines.as_bytes()).unwrap();
        let packed = folder.path().join("results.jsonl.zst");
        let write = |parts: &[&[u8]]| std::fs::write(&packed, parts.concat()).unwrap();
        write(&[&frame, &frame]);
        assert_eq!(Analysis::read_file(&packed).unwrap().report().urls, 6);
        write(&[&frame, &frame[..20]]);
        let report = Analysis::read_file(&packed).unwrap().report();
        assert_eq!(report.urls, 3);
        assert!(report.notes[0].starts_with("The last 20 bytes are torn"), "{:?}", report.notes);
        write(&[&frame, b"{\"v\":1}\n"]);
        let error = Analysis::read_file(&packed).unwrap_err();
        assert!(error.message().contains("results.jsonl.zst:4: no whole frame"), "{error}");
    }
}

#[test]
fn attempts_count_for_the_host_that_was_asked() {
    let report = report(&[with(json!({
        "url": "http://a.test/",
        "attempts": [
            {"n": 1, "status": 302, "elapsed_ms": 10},
            {"n": 2, "url": "http://b.test:8080/x", "status": 503, "elapsed_ms": 20, "wait_ms": 1},
            {"n": 3, "status": 200, "elapsed_ms": 40},
            {"n": 4, "pass": 2, "status": 200, "elapsed_ms": 50}
        ]
    }))]);
    let rows: Vec<_> = report.hosts.rows.iter().map(|row| (&*row.name, row)).collect();
    let (name, row) = rows[1];
    assert_eq!((name, row.attempts, row.urls, row.throttled), ("b.test:8080", 2, 0, 1));
    assert_eq!((row.mean_ms, row.longest_ms), (Some(30.0), 40.0));
    let (name, row) = rows[0];
    assert_eq!((name, row.attempts, row.urls, row.ok), ("a.test", 2, 1, 1));
}

#[test]
fn promises_are_compared_one_by_one() {
    let of = |elapsed: f64, promised: Value| {
        with(json!({"elapsed_ms": elapsed, "promised_ms": promised}))
    };
    let records = [of(10.0, json!(20.0)), of(30.5, json!(30.0)), of(99.0, Value::Null)];
    let report = report(&records);
    let promise = &report.promise;
    assert_eq!((promise.told, promise.broken, promise.worst_excess_ms), (2, 1, 0.5));
    assert_eq!((promise.smallest_ms, promise.promised_ms), (Some(20.0), Some(30.0)));
    assert_eq!(promise.longest.as_ref().unwrap().elapsed_ms, 99.0);
    assert_eq!(report.promise_kept(), Some(false));
    let note = "2 of 3 URLs that were attempted tell what was promised.";
    assert!(report.notes.iter().any(|have| have == note), "{:?}", report.notes);
    let silent = super::tests::report(&[small()]);
    assert_eq!(silent.promise_kept(), None);
    assert!(silent.notes.iter().any(|note| note.starts_with("No record tells what was promised")));
}

#[test]
fn refusals_are_grouped_by_who_sent_them() {
    let refused = |server: &str, ray: &str, cookies: &[&str]| {
        with(json!({"status": 403, "ok": false, "class": "refused", "refused": {
            "server": server, "cf_ray": ray, "x_cache": null, "via": null, "retry_after": null,
            "set_cookie_names": cookies,
        }}))
    };
    let report = report(&[
        refused("nginx", "a", &[]),
        refused("cloudflare", "b", &["__cf_bm"]),
        refused("cloudflare", "c", &["__cf_bm"]),
        refused("cloudflare", "d", &[]),
    ]);
    let kinds: Vec<_> = report
        .refusals
        .kinds
        .iter()
        .map(|kind| (kind.count, kind.server.as_deref(), kind.cf_ray.first.as_deref()))
        .collect();
    let [nginx, cloudflare] = [Some("nginx"), Some("cloudflare")];
    assert_eq!(
        kinds,
        [(2, cloudflare, Some("b")), (1, nginx, Some("a")), (1, cloudflare, Some("d"))]
    );
    assert_eq!((report.refusals.count, report.refusals.others), (4, 0));
}

#[test]
fn names_from_outside_are_bounded_and_told() {
    let mut analysis = Analysis::new();
    let mut record = Record::parse(SMALL.as_bytes()).unwrap();
    for n in 0..MOST_NAMES + 50 {
        record.url = format!("http://h{n}.test/");
        record.attempts[0].exit = Some(n.to_string());
        record.class = n.to_string().into();
        analysis.add(&record);
    }
    let report = analysis.report();
    assert_eq!(report.hosts.rows.len(), MOST_NAMES);
    assert_eq!(report.hosts.others.as_ref().map(|row| (row.urls, row.attempts)), Some((50, 50)));
    assert_eq!((report.exits.distinct, report.exits.or_more), (MOST_NAMES as u64, true));
    assert_eq!(report.classes.len(), MOST_WORDS + 1);
    assert_eq!(report.classes.values().sum::<u64>(), report.urls);
    for note in ["There are more hosts than 10000;", "There are more exits than 10000;"] {
        assert!(report.notes.iter().any(|have| have.starts_with(note)), "{:?}", report.notes);
    }
}

#[test]
fn what_is_not_known_is_said() {
    let report = report(&[
        with(json!({"at": "yesterday"})),
        with(json!({"at": "2026-01-01T00:00:00Z"})),
        with(json!({
            "at": "2026-01-01T08:00:00Z", "pass": 2,
            "attempts": [{"n": 1, "elapsed_ms": 1}, {"n": 90, "pass": 2, "elapsed_ms": 1}],
        })),
    ]);
    for note in [
        "1 of 3 records tell no time; nothing along time has them.",
        "Nothing ended for 7 h 55 min from 2026-01-01T00:05:00Z on; \
         the URLs per second count this time too.",
        "88 of 92 attempts are not listed, since a record lists 64 at most; tables, waits and \
         exceptions are without them.",
        "Attempts made in passes before the last one of their URL: 1. When they were is not known; \
         they count as made when the last pass began.",
        "The exit is not known of 4 of 4 attempts.",
    ] {
        assert!(report.notes.iter().any(|have| have == note), "{:#?}", report.notes);
    }
}

#[test]
fn absurd_records_break_nothing() {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    for record in [
        with(json!({"elapsed_ms": 1e308, "promised_ms": -5, "at": "9999-12-31T23:59:59Z"})),
        with(json!({"elapsed_ms": -1e308, "at": "1970-01-01T00:00:00Z", "bytes_wire": u64::MAX})),
        with(json!({"bytes_wire": u64::MAX, "url": "", "attempts": [], "class": ""})),
        with(json!({"timings": {"total_ms": -1, "first_byte_ms": 1e300}})),
    ] {
        writeln!(file, "{record}").unwrap();
    }
    let report = Analysis::read_file(file.path()).unwrap().report();
    assert_eq!((report.urls, report.bytes_wire), (4, u64::MAX));
    assert!(report.over_time.steps.len() as u64 <= series::MOST_STEPS);
    let text = serde_json::to_string(&report).unwrap();
    assert_eq!(serde_json::from_str::<Report>(&text).unwrap(), report);
}

#[test]
fn two_runs_are_compared_figure_by_figure() {
    let run = |ok: u64, elapsed: f64| {
        let records: Vec<Value> = (0..10)
            .map(|n| {
                let ok = n < ok;
                with(json!({"ok": ok, "class": if ok { "ok" } else { "retryable" },
                    "elapsed_ms": elapsed, "error": (!ok).then(|| error("ReadTimeout"))}))
            })
            .collect();
        report(&records)
    };
    let comparison = Comparison::of(run(8, 1000.0), run(9, 2000.0));
    let figure = |key: &str| {
        let found = comparison.differences.iter().find(|figure| figure.key == key);
        let Difference { a, b, change, percent, verdict, .. } = found.unwrap().clone();
        (a, b, change, percent, verdict)
    };
    for (key, wanted) in [
        ("urls", (Some(10.0), Some(10.0), Some(0.0), Some(0.0), Verdict::Same)),
        ("ok_share", (Some(0.8), Some(0.9), Some(0.1), Some(12.5), Verdict::Better)),
        ("class_retryable_share", (Some(0.2), Some(0.1), Some(-0.1), Some(-50.0), Verdict::Better)),
        ("url_longest_ms", (Some(1000.0), Some(2000.0), Some(1000.0), Some(100.0), Verdict::Worse)),
        (
            "exception_ReadTimeout",
            (Some(200.0), Some(100.0), Some(-100.0), Some(-50.0), Verdict::Better),
        ),
        ("promised_ms", (None, None, None, None, Verdict::Neither)),
        ("wait_per_url_ms", (Some(0.0), Some(0.0), Some(0.0), None, Verdict::Same)),
    ] {
        assert_eq!(figure(key), wanted, "{key}");
    }
    let keys: std::collections::BTreeSet<_> =
        comparison.differences.iter().map(|figure| &figure.key).collect();
    assert_eq!(keys.len(), comparison.differences.len(), "each figure has a key of its own");
}
