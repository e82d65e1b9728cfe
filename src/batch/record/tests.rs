use super::*;
use crate::error::{ErrorKind, Fault, Phase, WaitReason};
use crate::message::{ConnectionFacts, ResponseBody, ResponseParts};
use crate::time::{Clock, SimClock};
use http::{HeaderValue, Method};
use proptest::prelude::*;

/// The least that a record can be.
pub(in crate::batch) const SMALL: &str = concat!(
    r#"{"v":1,"id":"7","url":"http://h/","final_url":"http://h/","method":"GET","status":200,"#,
    r#""reason":"OK","ok":true,"class":"ok","error":null,"#,
    r#""attempts":[{"n":1,"elapsed_ms":1.0}],"#,
    r#""proxy":null,"exit":null,"bytes_wire":2,"bytes_body":2,"body_file":null,"#,
    r#""elapsed_ms":1.0,"timings":{"total_ms":1.0},"pass":1,"at":"2025-06-15T15:06:40.000Z"}"#
);

pub(in crate::batch) fn response(status: u16, attempts: Vec<Attempt>) -> Response {
    Response::from_parts(ResponseParts {
        method: Method::GET,
        url: Url::parse("http://h/final#f").unwrap(),
        status,
        reason: String::new(),
        headers: HeaderMap::new(),
        body: ResponseBody::Bytes("body".into()),
        wire_bytes: 3,
        history: Vec::new(),
        attempts,
        elapsed: Duration::from_micros(1500),
        timings: Timings { total: Duration::from_micros(1250), ..Timings::default() },
        connection: ConnectionFacts::default(),
        proxy: Some("http://***@p:1".into()),
    })
}

pub(in crate::batch) fn attempt(url: &str) -> Attempt {
    Attempt {
        method: Method::GET,
        url: url.into(),
        proxy: Some("http://***@p:1".into()),
        exit: None,
        status: Some(200),
        error: None,
        elapsed: Duration::from_micros(1250),
        wait: None,
        reused: false,
        resend: false,
        note: None,
        refusal: None,
        exchange: None,
    }
}

pub(in crate::batch) fn finished(url: &str, result: Result<Response, Error>) -> Finished {
    Finished {
        index: 0,
        id: None,
        url: url.to_owned(),
        method: Method::GET,
        result,
        elapsed: Duration::from_micros(2345),
    }
}

fn of(finished: &Finished) -> Record {
    Record::of(finished, "7", 1, SimClock::default().wall())
}

fn json(record: &Record) -> String {
    serde_json::to_string(record).unwrap()
}

#[test]
fn a_response_to_the_letter() {
    let mut first = attempt("http://h/");
    first.status = None;
    first.error = Some(AttemptError {
        kind: ErrorKind::ReadTimeout,
        phase: Phase::Headers,
        fault: Fault::Target,
        message: "no byte for 25 s".to_owned(),
    });
    first.wait = Some((Duration::from_millis(600), WaitReason::Backoff));
    let mut second = attempt("http://h/final");
    second.proxy = None;
    second.reused = true;
    let record = of(&finished("http://h", Ok(response(200, vec![first, second]))));
    let wanted = concat!(
        r#"{"v":1,"id":"7","url":"http://h","final_url":"http://h/final#f","method":"GET","#,
        r#""status":200,"reason":"","ok":true,"class":"ok","error":null,"attempts":["#,
        r#"{"n":1,"proxy":"http://***@p:1","error":{"kind":"read_timeout","#,
        r#""requests_name":"ReadTimeout","phase":"headers","fault":"target","#,
        r#""message":"no byte for 25 s"},"elapsed_ms":1.25,"wait_ms":600.0,"#,
        r#""wait_reason":"backoff"},"#,
        r#"{"n":2,"url":"http://h/final","status":200,"elapsed_ms":1.25,"reused":true}],"#,
        r#""proxy":"http://***@p:1","exit":null,"bytes_wire":3,"bytes_body":4,"#,
        r#""body_file":null,"elapsed_ms":2.345,"timings":{"total_ms":1.25},"pass":1,"#,
        r#""at":"2025-06-15T15:06:40.000Z"}"#
    );
    assert_eq!(json(&record), wanted);
    assert_eq!(Record::parse(wanted.as_bytes()).unwrap(), record);
    assert_eq!(record.ended(), Some(SimClock::default().wall()));
}

#[test]
fn an_error_with_and_without_a_response() {
    let error = Error::new(ErrorKind::IncompleteBody, Phase::Body, Fault::Target, "3 of 9 bytes")
        .with_received_bytes(3)
        .with_attempts(vec![attempt("http://h/")]);
    let record = of(&finished("http://h/", Err(error)));
    assert_eq!((record.status, record.final_url.as_deref(), record.bytes_wire), (None, None, 3));
    assert_eq!((record.ok, record.proxy.as_deref()), (false, Some("http://***@p:1")));
    let error = record.error.unwrap();
    assert_eq!((&*error.kind, &*error.requests_name), ("incomplete_body", "ChunkedEncodingError"));

    let error = Error::new(ErrorKind::RetriesExhausted, Phase::Headers, Fault::Target, "503")
        .with_attempts(vec![attempt("http://h/"), attempt("http://h/")])
        .with_response(response(503, Vec::new()));
    let record = of(&finished("http://h/", Err(error)));
    assert_eq!((record.status, &*record.class), (Some(503), "retryable"));
    assert_eq!(record.attempts_made(), 2);
}

#[test]
fn classes() {
    let status = |status| class_of(&finished("http://h/", Ok(response(status, Vec::new()))));
    assert_eq!(status(200), Class::Ok);
    assert_eq!(status(403), Class::Refused);
    assert_eq!(status(404), Class::Permanent);
    assert_eq!(status(407), Class::Permanent);
    assert_eq!(status(503), Class::Retryable);
    let error = Error::new(ErrorKind::ProxyAuth, Phase::Proxy, Fault::Proxy, "407");
    let record = of(&finished("http://h/", Err(error)));
    assert_eq!((&*record.class, record.is_of_the_run()), ("proxy_auth", true));
    assert!(!of(&finished("http://h/", Ok(response(403, Vec::new())))).is_of_the_run());
}

#[test]
fn what_tells_of_a_refusal() {
    let mut parts = response(403, Vec::new()).into_parts();
    for (name, value) in [
        ("server", b"cloud\xff".as_slice()),
        ("cf-ray", b"8a"),
        ("via", b"1.1 a"),
        ("via", b"1.1 b"),
        ("retry-after", b"120"),
        ("set-cookie", b"__cf_bm=SECRET; Path=/"),
        ("set-cookie", b"flag; HttpOnly"),
        ("authorization", b"SECRET"),
    ] {
        let value = HeaderValue::from_bytes(value).unwrap();
        parts.headers.append(http::HeaderName::from_static(name), value);
    }
    let record = of(&finished("http://h/", Ok(Response::from_parts(parts))));
    let refused = RefusedRecord {
        matched: None,
        server: Some("cloud\u{fffd}".to_owned()),
        cf_ray: Some("8a".to_owned()),
        x_cache: None,
        via: Some("1.1 a, 1.1 b".to_owned()),
        retry_after: Some("120".to_owned()),
        set_cookie_names: vec!["__cf_bm".to_owned(), "flag".to_owned()],
        lossy: true,
    };
    assert_eq!(record.refused, Some(refused));
    let text = json(&record);
    assert!(!text.contains("SECRET"), "{text}");
    assert_eq!(Record::parse(text.as_bytes()).unwrap(), record);
    assert_eq!(of(&finished("http://h/", Ok(response(404, Vec::new())))).refused, None);
}

#[test]
fn a_url_is_said_once_as_long_as_it_stays() {
    let urls = |given: &str, of_attempts: &[&str]| -> Vec<Option<String>> {
        let attempts = of_attempts.iter().map(|url| attempt(url)).collect();
        let record = of(&finished(given, Ok(response(200, attempts))));
        record.attempts.into_iter().map(|attempt| attempt.url).collect()
    };
    let b = || Some("http://b/".to_owned());
    assert_eq!(urls("http://a", &["http://a/", "http://a/"]), [None, None]);
    assert_eq!(urls("http://a/", &["http://b/", "http://b/"]), [b(), None]);
    assert_eq!(
        urls("http://a/x y", &["http://a/x%20y", "http://b/", "http://b/"]),
        [None, b(), None]
    );
    let back = Some("http://a/".to_owned());
    assert_eq!(urls("http://a/", &["http://a/", "http://b/", "http://a/"]), [None, b(), back]);
}

#[test]
fn passes_are_numbered_through_and_long_histories_are_cut_in_the_middle() {
    let many = |count| vec![attempt("http://h/"); count];
    let first = of(&finished("http://h/", Ok(response(503, many(3)))));
    let second = finished("http://h/", Ok(response(200, many(2))));
    let second = Record::of(&second, "7", 2, SimClock::default().wall()).after(first.attempts);
    let numbers: Vec<_> = second.attempts.iter().map(|one| (one.n, one.pass)).collect();
    assert_eq!(numbers, [(1, 1), (2, 1), (3, 1), (4, 2), (5, 2)]);
    assert_eq!(Record::parse(json(&second).as_bytes()).unwrap(), second);

    let long = of(&finished("http://h/", Ok(response(503, many(1000)))));
    assert_eq!((long.attempts.len(), long.attempts_made()), (64, 1000));
    assert_eq!((long.attempts[31].n, long.attempts[32].n), (32, 969));
    let longer = of(&finished("http://h/", Ok(response(200, many(10))))).after(long.attempts);
    assert_eq!((longer.attempts.len(), longer.attempts_made()), (64, 1010));
}

#[test]
fn a_newer_version_is_not_guessed_at() {
    let error = Record::parse(SMALL.replace("\"v\":1", "\"v\":2").as_bytes()).unwrap_err();
    assert_eq!(error.to_string(), "a record of version 2; this longhaul reads versions up to 1");
    let more = SMALL.replace("\"v\":1", "\"v\":1,\"new\":[1]");
    assert_eq!(json(&Record::parse(more.as_bytes()).unwrap()), SMALL);
}

proptest! {
    #[test]
    fn no_record_shows_a_password(
        scheme in "(http|https|HTTP)",
        before in "[a-z:@%]{0,4}",
        after in "[a-z:@%]{0,4}",
        fails: bool,
    ) {
        let url = format!("{scheme}://user:{before}S3CRET{after}@h.example:81/path");
        let proxy = format!("http://user:{before}S3CRET{after}@proxy:3128");
        let mut one = attempt(&url);
        one.proxy = Some(proxy.as_str().into());
        let result = if fails {
            let text = format!("{url} cannot be used");
            let error = Error::new(ErrorKind::InvalidUrl, Phase::Prepare, Fault::Local, text);
            Err(error.with_attempts(vec![one]))
        } else {
            let mut parts = response(200, vec![one]).into_parts();
            if let Ok(url) = Url::parse(&url) {
                parts.url = url;
            }
            parts.proxy = Some(proxy.into());
            Ok(Response::from_parts(parts))
        };
        let text = json(&of(&finished(&url, result)));
        prop_assert!(!text.contains("S3CRET"), "{}", text);
    }
}

/// A record with a value in every field. Without `..`, so that a new field fails here first.
pub(in crate::batch) fn full() -> Record {
    let error = || ErrorRecord {
        kind: "read_timeout".into(),
        requests_name: "ReadTimeout".into(),
        phase: "headers".into(),
        fault: "target".into(),
        message: "m".into(),
    };
    let text = || Some("x".to_owned());
    Record {
        v: VERSION,
        id: "7".into(),
        url: "http://h/".into(),
        final_url: text(),
        method: "GET".into(),
        status: Some(429),
        reason: text(),
        ok: false,
        class: "retryable".into(),
        error: Some(error()),
        attempts: vec![AttemptRecord {
            n: 1,
            pass: 2,
            method: text(),
            url: text(),
            proxy: text(),
            exit: text(),
            status: Some(429),
            error: Some(error()),
            elapsed_ms: 1.0,
            wait_ms: Some(1.0),
            wait_reason: Some("backoff".into()),
            reused: true,
            resend: true,
            note: Some("n".into()),
            refused: Some(RefusedRecord { server: text(), ..RefusedRecord::default() }),
        }],
        proxy: text(),
        exit: text(),
        bytes_wire: 1,
        bytes_body: 1,
        body_file: text(),
        warc_file: text(),
        warc_offset: Some(1),
        warc_length: Some(1),
        elapsed_ms: 1.0,
        timings: Some(TimingsRecord {
            dns_ms: Some(1.0),
            connect_ms: Some(1.0),
            proxy_ms: Some(1.0),
            tls_ms: Some(1.0),
            first_byte_ms: Some(1.0),
            total_ms: 1.0,
        }),
        pass: 2,
        at: "2025-06-15T15:06:40.000Z".into(),
        promised_ms: Some(1.0),
        refused: Some(RefusedRecord {
            matched: text(),
            server: text(),
            cf_ray: text(),
            x_cache: text(),
            via: text(),
            retry_after: text(),
            set_cookie_names: vec!["c".into()],
            lossy: true,
        }),
        meta: Some("[1]".parse().unwrap()),
    }
}

const PAGE: &str = include_str!("../../../docs/results.md");

/// The first cells of the table under this heading, and whether the second says "may be absent".
fn table(heading: &str) -> Vec<(String, bool)> {
    let (_, section) = PAGE.split_once(&format!("\n## {heading}\n")).unwrap();
    let section = section.split("\n## ").next().unwrap();
    let rows = section.lines().filter_map(|line| line.strip_prefix("| `"));
    rows.map(|row| {
        let (name, rest) = row.split_once("` | ").unwrap();
        (name.to_owned(), rest.split(" | ").next().unwrap().contains("may be absent"))
    })
    .collect()
}

/// The names of a JSON object in the order of its text.
fn names(object: &serde_json::value::RawValue) -> Vec<String> {
    struct Names(Vec<String>);
    impl<'de> Deserialize<'de> for Names {
        fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
            struct InOrder;
            impl<'de> serde::de::Visitor<'de> for InOrder {
                type Value = Names;
                fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                    f.write_str("an object")
                }
                fn visit_map<A: serde::de::MapAccess<'de>>(
                    self,
                    mut map: A,
                ) -> Result<Names, A::Error> {
                    let mut names = Vec::new();
                    while let Some((name, serde::de::IgnoredAny)) = map.next_entry()? {
                        names.push(name);
                    }
                    Ok(Names(names))
                }
            }
            deserializer.deserialize_map(InOrder)
        }
    }
    serde_json::from_str::<Names>(object.get()).unwrap().0
}

fn raw(value: &impl Serialize) -> Box<serde_json::value::RawValue> {
    serde_json::value::to_raw_value(value).unwrap()
}

#[test]
fn the_page_lists_exactly_the_fields_that_are_written() {
    let full = full();
    assert_eq!(Record::parse(json(&full).as_bytes()).unwrap(), full);
    let small = Record::parse(SMALL.as_bytes()).unwrap();
    let bare = RefusedRecord::default();
    let none = error_names(&full);
    for (heading, all, least) in [
        ("The record", names(&raw(&full)), names(&raw(&small))),
        ("Errors", none.clone(), none),
        ("Attempts", names(&raw(&full.attempts[0])), names(&raw(&small.attempts[0]))),
        ("Timings", names(&raw(&full.timings)), names(&raw(&small.timings))),
        ("Refusals", names(&raw(&full.refused)), names(&raw(&bare))),
    ] {
        let wanted: Vec<_> =
            all.into_iter().map(|name| (name.clone(), !least.contains(&name))).collect();
        assert_eq!(table(heading), wanted, "{heading}");
    }
}

fn error_names(record: &Record) -> Vec<String> {
    names(&raw(&record.error))
}

#[test]
fn the_page_names_every_class_phase_and_fault_and_its_example_is_a_record() {
    let classes: Vec<_> = table("Classes").into_iter().map(|(name, _)| name).collect();
    let all = [
        Class::Ok,
        Class::Retryable,
        Class::Permanent,
        Class::Refused,
        Class::ProxyAuth,
        Class::Input,
    ];
    assert_eq!(classes, all.map(Class::name));
    let (_, errors) = PAGE.split_once("\n## Errors\n").unwrap();
    for phase in [
        Phase::Prepare,
        Phase::Dns,
        Phase::Connect,
        Phase::Proxy,
        Phase::Tls,
        Phase::Send,
        Phase::Headers,
        Phase::Body,
    ] {
        assert!(errors.contains(&format!("`{phase}`")), "{phase}");
    }
    for fault in [Fault::Target, Fault::Proxy, Fault::Local] {
        assert!(errors.contains(&format!("`{fault}`")), "{fault}");
    }
    let (_, example) = PAGE.split_once("```json\n").unwrap();
    let example = example.lines().next().unwrap();
    assert_eq!(json(&Record::parse(example.as_bytes()).unwrap()), example);
}
