//! Section K: one line for each item of a run, whatever became of it.

use crate::roads::recipe;
use longhaul::batch::{Batch, Record, RecordWriter, Source};
use longhaul::lab::{ClosedPort, Origin, Received, Reply, Script};
use longhaul::policy::SlowLane;
use longhaul::proxy::ProxyMap;
use longhaul::{Retry, secs};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// A status line, a field and a body that are no UTF-8.
const FOREIGN: &[u8] =
    b"HTTP/1.1 403 Verbot\xe4n\r\nServer: sch\xfctz\xff\r\nContent-Length: 3\r\n\r\n\xff\xfe\xc3";
const PIECES: &[u8] = b"\xff\xfe\xc3 page";
const SECRET: &str = "S3CRET";

fn answer(request: &Received) -> Script {
    match request.path.split('/').nth(1).unwrap_or_default() {
        "silent" => Script::new().hold(),
        "foreign" => Script::send(FOREIGN),
        "forbidden" => Reply::new(403).into(),
        "gone" => Reply::new(404).into(),
        "large" => Reply::ok(vec![b'x'; 5000]).into(),
        "pieces" => Reply::ok(PIECES).into(),
        "moved" => Reply::redirect(302, "/pieces/end").into(),
        _ => Reply::ok("page").into(),
    }
}

/// What stands in the record: class, kind of the error, status, whether there is a final URL.
type Told = (&'static str, Option<&'static str>, Option<u64>, bool);

#[test]
fn c154_each_item_is_one_whole_line_that_tells_everything_and_no_secret() {
    let origin = Origin::builder().handler(answer).start().unwrap();
    let address = origin.address();
    let dead = ClosedPort::new().unwrap();
    let mut map = ProxyMap::new();
    let proxy = format!("http://user:{SECRET}@{}", dead.address());
    map.insert("http://proxied.test", &proxy).unwrap();
    let recipe = recipe()
        .proxies(map)
        .retry(Retry::none())
        .timeout((secs(5.0), secs(0.3)))
        .max_body_bytes(1000)
        .response_hook(|response| {
            if response.url().path().starts_with("/panic") {
                // As a panic, without a word on standard error.
                std::panic::resume_unwind(Box::new("a hook that does not hold"));
            }
            Ok(response)
        });
    let site = format!("http://{address}");
    let with_user = format!("http://user:{SECRET}@{address}");
    let kinds: [(&str, String, Told); 12] = [
        ("fine", format!("{site}/fine"), ("ok", None, Some(200), true)),
        ("user", format!("{with_user}/fine"), ("ok", None, Some(200), true)),
        ("moved", format!("{site}/moved"), ("ok", None, Some(200), true)),
        ("pieces", format!("{site}/pieces"), ("ok", None, Some(200), true)),
        ("gone", format!("{site}/gone"), ("permanent", None, Some(404), true)),
        ("forbidden", format!("{site}/forbidden"), ("refused", None, Some(403), true)),
        ("foreign", format!("{site}/foreign"), ("refused", None, Some(403), true)),
        ("silent", format!("{site}/silent"), ("retryable", Some("read_timeout"), None, false)),
        ("large", format!("{site}/large"), ("permanent", Some("too_large"), None, false)),
        ("panic", format!("{site}/panic"), ("permanent", Some("internal"), None, false)),
        (
            "proxied",
            "http://proxied.test/fine".to_owned(),
            ("retryable", Some("proxy_unreachable"), None, false),
        ),
        (
            "bad",
            format!("htp://user:{SECRET}@nowhere.test/page"),
            ("input", Some("invalid_scheme"), None, false),
        ),
    ];
    let mut lines = String::new();
    for round in 0..20 {
        for (name, url, _) in &kinds {
            writeln!(lines, r#"{{"id":"{name}-{round}","url":"{url}/{round}"}}"#).unwrap();
        }
    }
    let folder = tempfile::tempdir().unwrap();
    let (results, bodies) = (folder.path().join("results.jsonl"), folder.path().join("bodies"));
    let batch = Batch::builder(recipe)
        .source(Source::new().add_reader("pipe", std::io::Cursor::new(lines)))
        .output(&results)
        .bodies(&bodies)
        .workers(24)
        .slow_lane(None::<SlowLane>);
    let outcome = batch.build().unwrap().run().unwrap();
    assert_eq!((outcome.summary.urls, outcome.summary.unfinished), (240, 0), "{outcome:?}");

    let text = std::fs::read(&results).unwrap();
    let text = String::from_utf8(text).expect("a file of JSON is UTF-8");
    assert!(!text.contains(SECRET));
    let mut found: BTreeMap<String, Value> = BTreeMap::new();
    for line in text.lines() {
        Record::parse(line.as_bytes()).unwrap();
        let record: Value = serde_json::from_str(line).unwrap();
        let earlier = found.insert(record["id"].as_str().unwrap().to_owned(), record);
        assert_eq!(earlier, None, "one line for each");
    }
    assert_eq!(found.len(), 240);
    for (name, url, (class, kind, status, is_final)) in &kinds {
        for round in 0..20 {
            let record = &found[&format!("{name}-{round}")];
            let shown = url.replace(&format!("user:{SECRET}@"), "***@");
            assert_eq!(record["url"], format!("{shown}/{round}"), "{record}");
            assert_eq!(record["class"], *class, "{record}");
            assert_eq!(record["error"]["kind"].as_str(), *kind, "{record}");
            assert_eq!(record["status"].as_u64(), *status, "{record}");
            assert_eq!(record["final_url"].is_string(), *is_final, "{record}");
            assert!(record["elapsed_ms"].is_number() && record["at"].is_string(), "{record}");
            let is_sent = !matches!(*name, "bad" | "panic");
            assert_eq!(record["attempts"].as_array().unwrap().is_empty(), !is_sent, "{record}");
        }
    }
    let proxy = format!("http://***@{}", dead.address());
    assert_eq!(found["proxied-0"]["proxy"], proxy);
    assert_eq!(found["moved-0"]["final_url"], format!("{site}/pieces/end"));
    // Bytes stay what they are in a file of their own; in the record they are text.
    let kept = found["pieces-0"]["body_file"].as_str().unwrap();
    assert_eq!(std::fs::read(bodies.join(kept)).unwrap(), PIECES);
    let foreign = &found["foreign-0"];
    assert!(foreign["reason"].as_str().unwrap().starts_with("Verbot"), "{foreign}");
    assert!(foreign["refused"]["server"].as_str().unwrap().starts_with("sch"), "{foreign}");
}

/// Lines that are written one by one, and how far the origin was ahead of them.
struct Behind {
    origin: Arc<Origin>,
    written: u64,
    most: Arc<AtomicU64>,
}

impl Write for Behind {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        // Nothing is written before as much as can be has ended.
        assert!(self.origin.wait_for_requests(HELD, secs(60.0)));
        let ahead = self.origin.counts().requests - self.written;
        self.most.fetch_max(ahead, Ordering::Relaxed);
        self.written += bytes.iter().filter(|byte| **byte == b'\n').count() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// How many URLs a run of few workers holds.
const HELD: u64 = 1024;

#[test]
fn c149_what_has_ended_and_is_not_written_is_no_more_than_is_held() {
    let origin = Origin::builder().handler(answer).start().unwrap();
    let urls: Vec<_> = (0..3000).map(|number| origin.url(&format!("/fine/{number}"))).collect();
    let (origin, most) = (Arc::new(origin), Arc::new(AtomicU64::new(0)));
    let behind = Behind { origin: Arc::clone(&origin), written: 0, most: Arc::clone(&most) };
    let batch = Batch::builder(recipe())
        .source(Source::urls(urls))
        .sink(RecordWriter::stream("behind", behind))
        .workers(8);
    let outcome = batch.build().unwrap().run().unwrap();
    assert_eq!((outcome.summary.ok, origin.counts().requests), (3000, 3000), "{outcome:?}");
    // And the one that is being written.
    let most = most.load(Ordering::Relaxed);
    assert!((HELD..=HELD + 1).contains(&most), "{most}");
}
