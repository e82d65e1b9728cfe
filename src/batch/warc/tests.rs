use super::*;
use crate::batch::record::tests::{attempt, finished, response};
use crate::error::{Exchange, Message, Truncated};
use flate2::read::MultiGzDecoder;
use std::collections::HashMap;
use std::io::Read;
use std::sync::Arc;
use tempfile::TempDir;

const NOW: SystemTime = SystemTime::UNIX_EPOCH;
const RESUME: Existing = Existing::Resume { retry_failed: false };

/// A record as it stands in a file.
#[derive(Debug)]
struct Read1 {
    fields: HashMap<String, String>,
    block: Vec<u8>,
}

impl Read1 {
    fn field(&self, name: &str) -> Option<&str> {
        self.fields.get(name).map(String::as_str)
    }

    fn kind(&self) -> &str {
        self.field("WARC-Type").unwrap()
    }
}

fn records(compressed: &[u8]) -> Vec<Read1> {
    let mut bytes = Vec::new();
    MultiGzDecoder::new(compressed).read_to_end(&mut bytes).unwrap();
    let (mut rest, mut found) = (&bytes[..], Vec::new());
    while !rest.is_empty() {
        let end = memchr::memmem::find(rest, b"\r\n\r\n").unwrap() + 4;
        let head = std::str::from_utf8(&rest[..end]).unwrap();
        let mut lines = head.lines();
        assert_eq!(lines.next(), Some("WARC/1.1"));
        let fields: HashMap<_, _> = lines
            .filter_map(|line| line.split_once(": "))
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .collect();
        let length: usize = fields["Content-Length"].parse().unwrap();
        let block = rest[end..end + length].to_vec();
        rest = rest[end + length..].strip_prefix(b"\r\n\r\n").unwrap();
        found.push(Read1 { fields, block });
    }
    found
}

fn kinds(records: &[Read1]) -> Vec<&str> {
    records.iter().map(Read1::kind).collect()
}

fn exchange(url: &str, body: &[u8], chunked: bool) -> Arc<Exchange> {
    let head = b"GET / HTTP/1.1\r\nHost: a.test\r\nAuthorization: Basic hunter2\r\n\r\n";
    let request = Message::new(head, b"", false);
    let address = Some([192, 0, 2, 1].into());
    let exchange = Exchange::new(NOW, url, address, request, u64::MAX);
    exchange.begin_response(b"HTTP/1.1 200 OK\r\nX: y\r\n\r\n", None, chunked);
    exchange.receive(body);
    exchange.end_response(0);
    Arc::new(exchange)
}

fn answered(url: &str, exchange: &Arc<Exchange>) -> Attempt {
    Attempt { exchange: Some(Arc::clone(exchange)), ..attempt(url) }
}

fn record(attempts: &[Attempt]) -> Record {
    let finished = finished("http://a.test/", Ok(response(200, attempts.to_vec())));
    Record::of(&finished, "7", 1, NOW)
}

struct Place {
    folder: TempDir,
}

impl Place {
    fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn open(&self, existing: Existing) -> Result<WarcFiles, Error> {
        WarcFiles::open(self.path("p.warc.gz"), existing)
    }

    fn warc(&self) -> Warc {
        self.open(Existing::Refuse).unwrap().begin(NOW).unwrap()
    }

    fn names(&self) -> Vec<String> {
        let mut names: Vec<_> = fs::read_dir(self.folder.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    fn records(&self, name: &str) -> Vec<Read1> {
        records(&fs::read(self.path(name)).unwrap())
    }
}

#[test]
fn each_exchange_has_its_records_and_the_results_name_the_last() {
    let place = Place::new();
    let mut warc = place.warc();
    let attempts = [
        answered("http://a.test/1", &exchange("http://a.test/1", b"moved", false)),
        attempt("http://a.test/"),
        answered("http://a.test/2", &exchange("http://a.test/2", b"here", false)),
    ];
    let mut record = record(&attempts);
    warc.store(&attempts, Some(&mut record), NOW).unwrap();
    let file = fs::read(warc.path()).unwrap();
    let all = records(&file);
    let wanted = ["warcinfo", "response", "request", "response", "request", "metadata"];
    assert_eq!(kinds(&all), wanted);

    assert_eq!(record.warc_file.as_deref(), Some("p-00000.warc.gz"));
    let (offset, length) = (record.warc_offset.unwrap(), record.warc_length.unwrap());
    let named = records(&file[offset as usize..][..length as usize]).remove(0);
    assert_eq!(named.block, b"HTTP/1.1 200 OK\r\nX: y\r\n\r\nhere");
    assert_eq!(named.field("WARC-Target-URI"), Some("http://a.test/2"));
    assert_eq!(named.field("WARC-IP-Address"), Some("192.0.2.1"));
    assert_eq!(named.field("WARC-Date"), Some("1970-01-01T00:00:00.000Z"));
    assert_eq!(named.field("WARC-Truncated"), None);
    assert_eq!(named.field("Content-Type"), Some("application/http;msgtype=response"));

    let id = named.field("WARC-Record-ID");
    assert_eq!(all[3].field("WARC-Record-ID"), id);
    assert_eq!(all[4].field("WARC-Concurrent-To"), id);
    assert_eq!(all[5].field("WARC-Concurrent-To"), id);
    assert_eq!(all[5].block, serde_json::to_vec(&record).unwrap());
    assert!(
        all[1..].iter().all(|one| one.field("WARC-Warcinfo-ID") == all[0].field("WARC-Record-ID"))
    );
    let info = String::from_utf8_lossy(&all[0].block).into_owned();
    assert!(info.starts_with("software: longhaul/") && info.contains("robots: none\r\n"), "{info}");
    assert_eq!(all[0].field("WARC-Filename"), Some("p-00000.warc.gz"));
}

#[test]
fn what_was_not_answered_is_in_no_file() {
    let place = Place::new();
    let mut warc = place.warc();
    let unanswered = Exchange::new(NOW, "http://a.test/", None, Message::default(), 9);
    for attempts in [vec![attempt("http://a.test/")], Vec::new()] {
        let mut record = record(&attempts);
        warc.store(&attempts, Some(&mut record), NOW).unwrap();
        assert_eq!(record.warc_file, None);
    }
    let attempts = [answered("http://a.test/", &Arc::new(unanswered))];
    warc.store(&attempts, None, NOW).unwrap();
    // The last attempt failed: what was answered before is kept, and the record names nothing.
    let attempts = [
        answered("http://a.test/", &exchange("http://a.test/", b"503", false)),
        attempt("http://a.test/"),
    ];
    let mut record = record(&attempts);
    warc.store(&attempts, Some(&mut record), NOW).unwrap();
    assert_eq!((record.warc_file, record.warc_offset), (None, None));
    let all = place.records("p-00000.warc.gz");
    assert_eq!(kinds(&all), ["warcinfo", "response", "request", "metadata"]);
}

#[test]
fn a_payload_is_written_once() {
    let place = Place::new();
    let mut warc = place.warc();
    for (url, body, chunked) in [
        ("http://a.test/1", &b"page"[..], false),
        ("http://a.test/2", b"page", false),
        ("http://a.test/3", b"2\r\npa\r\n2\r\nge\r\n0\r\n\r\n", true),
        ("http://a.test/4", b"4\r\nmore\r\n0\r\n\r\n", true),
        ("http://a.test/5", b"more", false),
        ("http://a.test/6", b"", false),
        ("http://a.test/7", b"", false),
    ] {
        let attempts = [answered(url, &exchange(url, body, chunked))];
        warc.store(&attempts, None, NOW).unwrap();
    }
    // Within the records of one URL, too.
    let twice = [
        answered("http://a.test/8", &exchange("http://a.test/8", b"new", false)),
        answered("http://a.test/9", &exchange("http://a.test/9", b"new", false)),
    ];
    warc.store(&twice, None, NOW).unwrap();
    let cut = exchange("http://a.test/10", b"page", false);
    let partial = Exchange::new(NOW, "http://a.test/10", None, cut.request().clone(), 4);
    partial.begin_response(b"H\r\n\r\n", None, false);
    partial.receive(b"page and more");
    let cut = [answered("http://a.test/10", &Arc::new(partial))];
    warc.store(&cut, None, NOW).unwrap();

    let all = place.records("p-00000.warc.gz");
    let answers: Vec<_> =
        all.iter().filter(|record| matches!(record.kind(), "response" | "revisit")).collect();
    let digest = |of: &[u8]| payload::Digest::of(&[of]).text();
    let wanted = [
        ("response", Some(digest(b"page")), None, None),
        ("revisit", Some(digest(b"page")), Some(0), None),
        ("revisit", Some(digest(b"page")), Some(0), None),
        // In chunks: no digest that is right by all readings.
        ("response", None, None, None),
        ("revisit", Some(digest(b"more")), Some(3), None),
        ("response", None, None, None),
        ("response", None, None, None),
        ("response", Some(digest(b"new")), None, None),
        ("revisit", Some(digest(b"new")), Some(7), None),
        ("response", None, None, Some(Truncated::Length.name())),
    ];
    assert_eq!(answers.len(), wanted.len());
    for (answer, (kind, digest, refers, truncated)) in answers.iter().zip(wanted) {
        assert_eq!(answer.kind(), kind);
        assert_eq!(answer.field("WARC-Payload-Digest"), digest.as_deref(), "{answer:?}");
        assert_eq!(answer.field("WARC-Truncated"), truncated);
        let original: Option<&&Read1> = refers.map(|place: usize| &answers[place]);
        let named = |name| original.and_then(|original| original.field(name));
        assert_eq!(answer.field("WARC-Refers-To"), named("WARC-Record-ID"));
        assert_eq!(answer.field("WARC-Refers-To-Target-URI"), named("WARC-Target-URI"));
        assert_eq!(answer.field("WARC-Refers-To-Date"), named("WARC-Date"));
        if kind == "revisit" {
            assert_eq!(answer.block, b"HTTP/1.1 200 OK\r\nX: y\r\n\r\n");
            assert!(answer.field("WARC-Profile").unwrap().ends_with("identical-payload-digest"));
        }
    }
}

#[test]
fn what_was_packed_by_a_worker_is_written_as_what_was_not() {
    let packer = Packer::default();
    let place = Place::new();
    let files = place.open(Existing::Refuse).unwrap().packed_by(&packer);
    let mut warc = files.begin(NOW).unwrap();
    let body = b"a page ".repeat(300);
    for number in 0..2 {
        let url = format!("http://a.test/{number}");
        let exchange = exchange(&url, &body, false);
        Packed::leave(&exchange, &packer.0);
        let packed = exchange.noted::<Packed>().unwrap();
        assert_eq!(packed.part.is_some(), number == 0, "a copy is not worth it");
        warc.store(&[answered(&url, &exchange)], None, NOW).unwrap();
    }
    let all = place.records("p-00000.warc.gz");
    assert_eq!(kinds(&all), ["warcinfo", "response", "request", "revisit", "request"]);
    let block = [&b"HTTP/1.1 200 OK\r\nX: y\r\n\r\n"[..], &body].concat();
    assert_eq!(all[1].block, block);
    let digest = |of: &[u8]| Some(payload::Digest::of(&[of]).text());
    assert_eq!(all[1].field("WARC-Block-Digest").map(str::to_owned), digest(&block));
    assert_eq!(all[1].field("WARC-Payload-Digest").map(str::to_owned), digest(&body));
    assert_eq!(all[3].field("WARC-Refers-To"), all[1].field("WARC-Record-ID"));
}

#[test]
fn credentials_are_written_only_where_they_are_asked_for() {
    for (asked, wanted) in [(false, "Basic ***"), (true, "Basic hunter2")] {
        let place = Place::new();
        let mut warc = place.open(Existing::Refuse).unwrap().credentials(asked).begin(NOW).unwrap();
        let attempts = [answered("http://a.test/", &exchange("http://a.test/", b"x", false))];
        warc.store(&attempts, None, NOW).unwrap();
        let request = place.records("p-00000.warc.gz").remove(2);
        assert_eq!(
            String::from_utf8(request.block).unwrap(),
            format!("GET / HTTP/1.1\r\nHost: a.test\r\nAuthorization: {wanted}\r\n\r\n")
        );
    }
}

#[test]
fn files_turn_by_their_size_and_keep_together_what_belongs_together() {
    let place = Place::new();
    let mut warc = place.open(Existing::Refuse).unwrap().size(1500).begin(NOW).unwrap();
    for number in 0..6u32 {
        let url = format!("http://a.test/{number}");
        let body = number.to_be_bytes().repeat(20);
        let attempts = [answered(&url, &exchange(&url, &body, false))];
        let mut record = record(&attempts);
        warc.store(&attempts, Some(&mut record), NOW).unwrap();
        let name = record.warc_file.unwrap();
        let from = record.warc_offset.unwrap() as usize;
        let to = from + record.warc_length.unwrap() as usize;
        let named = records(&fs::read(place.path(&name)).unwrap()[from..to]).remove(0);
        assert_eq!(named.field("WARC-Target-URI"), Some(&*url));
    }
    let names = place.names();
    assert!(names.len() > 1, "{names:?}");
    assert_eq!(warc.unsynced().len(), names.len());
    for (number, name) in names.iter().enumerate() {
        assert_eq!(*name, format!("p-{number:05}.warc.gz"));
        let all = place.records(name);
        assert_eq!(all[0].field("WARC-Filename"), Some(&**name));
        let rest: Vec<_> = all[1..].iter().map(Read1::kind).collect();
        assert!(rest.chunks(3).all(|group| group == ["response", "request", "metadata"]));
    }
    warc.sync().unwrap();
}

#[test]
fn what_is_there_is_kept_gone_on_with_or_thrown_away() {
    let place = Place::new();
    let attempts = [answered("http://a.test/", &exchange("http://a.test/", b"x", false))];
    let mut warc = place.warc();
    let error = place.open(RESUME).unwrap_err();
    assert!(error.to_string().contains("is being written by another run"), "{error}");
    warc.store(&attempts, None, NOW).unwrap();
    drop(warc);
    // Another prefix, and what is no number.
    for name in ["p-x.warc.gz", "pp-00009.warc.gz", "p-00009.warc", "p-9.warc.gz"] {
        fs::write(place.path(name), "").unwrap();
    }
    let error = place.open(Existing::Refuse).unwrap_err();
    assert!(error.to_string().contains("p-00000.warc.gz is there already"), "{error}");

    let whole = fs::read(place.path("p-00000.warc.gz")).unwrap();
    let torn = &whole[..whole.len() - 3];
    fs::write(place.path("p-00000.warc.gz"), torn).unwrap();
    let files = place.open(RESUME).unwrap();
    let cut = files.torn();
    assert!(cut > 0);
    assert_eq!(fs::read(place.path("p-00000.warc.gz")).unwrap(), torn, "not touched yet");
    let warc = files.begin(NOW).unwrap();
    assert_eq!(warc.path(), place.path("p-00001.warc.gz"));
    let left = fs::read(place.path("p-00000.warc.gz")).unwrap();
    assert_eq!(left.len() as u64, torn.len() as u64 - cut);
    assert_eq!(kinds(&records(&left)), ["warcinfo", "response"]);
    drop(warc);

    // Of a file in which nothing is whole, nothing is left.
    fs::write(place.path("p-00001.warc.gz"), &whole[..20]).unwrap();
    let warc = place.open(RESUME).unwrap().begin(NOW).unwrap();
    assert_eq!(warc.path(), place.path("p-00001.warc.gz"));
    drop(warc);

    let mut damaged = whole.clone();
    damaged[40] ^= 1;
    fs::write(place.path("p-00001.warc.gz"), &damaged).unwrap();
    let error = place.open(RESUME).unwrap_err();
    assert!(error.to_string().contains("no whole record at byte 0"), "{error}");
    assert_eq!(fs::read(place.path("p-00001.warc.gz")).unwrap(), damaged);

    let warc = place.open(Existing::Overwrite).unwrap().begin(NOW).unwrap();
    assert_eq!(warc.path(), place.path("p-00000.warc.gz"));
    let wanted =
        ["p-00000.warc.gz", "p-00009.warc", "p-9.warc.gz", "p-x.warc.gz", "pp-00009.warc.gz"];
    assert_eq!(place.names(), wanted);
}

#[test]
fn names_and_folders_that_do_not_work() {
    for name in ["p.warc", "p", ".warc.gz", "a/..", "p.gz"] {
        let error = WarcFiles::open(name, Existing::Refuse).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Config);
        assert!(error.to_string().contains("PREFIX.warc.gz"), "{error}");
    }
    let place = Place::new();
    let error = WarcFiles::open(place.path("no/p.warc.gz"), Existing::Refuse).unwrap_err();
    assert!(error.to_string().contains("make it, or name another"), "{error}");
}
