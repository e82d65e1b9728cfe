//! Every kind of body on the wire: once, again, and where it cannot go again.

#![cfg(feature = "lab")]
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "helpers of tests are tests"
)]

use longhaul::lab::{Origin, Received, Reply, Script};
use longhaul::message::{Body, Multipart, Part};
use longhaul::time::SimClock;
use longhaul::{ErrorKind, RequestBuilder, Retry, Session, secs};
use serde_json::json;
use std::fs::{self, File, OpenOptions};
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

const TEXT: &str = "the body that is sent";

fn session() -> Session {
    let any = longhaul::policy::Methods::Any;
    Session::builder()
        .trust_env(false)
        .seed(1)
        .clock(Arc::new(SimClock::default()))
        .timeout((secs(5.0), secs(5.0)))
        .retry(Retry::long_run().allowed_methods(any))
        .build()
        .unwrap()
}

/// An origin that answers the n-th request (from 0) by `answer(n)`.
fn numbered<S: Into<Script>>(
    answer: impl Fn(usize, &Received) -> S + Send + Sync + 'static,
) -> Origin {
    let count = AtomicUsize::new(0);
    Origin::builder()
        .handler(move |request| answer(count.fetch_add(1, Ordering::SeqCst), request))
        .start()
        .unwrap()
}

fn opener(length: Option<u64>) -> Body {
    Body::replayable(move || Ok((Box::new(TEXT.as_bytes()) as Box<dyn Read + Send>, length)))
}

fn reader(length: Option<u64>) -> Body {
    Body::reader(TEXT.as_bytes(), length)
}

/// A kind of body: its name, how it gets into a request, and what has to arrive.
struct Kind {
    name: &'static str,
    put: Box<dyn for<'a> Fn(RequestBuilder<'a>) -> RequestBuilder<'a>>,
    /// The text that has to be in the body, all of it where `whole`.
    text: &'static str,
    whole: bool,
    content_type: &'static str,
    chunked: bool,
}

fn kind(
    name: &'static str,
    put: impl for<'a> Fn(RequestBuilder<'a>) -> RequestBuilder<'a> + 'static,
) -> Kind {
    Kind { name, put: Box::new(put), text: TEXT, whole: true, content_type: "", chunked: false }
}

/// The kinds that can be sent again.
fn replayable(path: &Path) -> Vec<Kind> {
    let of_path: PathBuf = path.into();
    let by_path = of_path.clone();
    let form = |name, part: fn(PathBuf) -> Part| {
        let path = of_path.clone();
        let put = kind(name, move |request| {
            request.multipart(Multipart::new().field("a", "1").part(part(path.clone())))
        });
        Kind { whole: false, content_type: "multipart/form-data; boundary=", ..put }
    };
    vec![
        kind("bytes", |request| request.body(TEXT)),
        Kind {
            text: "a=1&b=%C3%BC",
            content_type: "application/x-www-form-urlencoded",
            ..kind("form", |request| request.form([("a", "1"), ("b", "ü")]))
        },
        Kind {
            text: r#"{"a":1}"#,
            content_type: "application/json",
            ..kind("json", |request| request.json(&json!({"a": 1})))
        },
        kind("opener", |request| request.body(opener(Some(TEXT.len() as u64)))),
        Kind { chunked: true, ..kind("opener in chunks", |request| request.body(opener(None))) },
        kind("file", move |request| request.body(Body::file(&by_path))),
        kind("open file", {
            let path = of_path.clone();
            move |request| request.body(File::open(&path).unwrap())
        }),
        Kind {
            text: "that is sent",
            ..kind("open file, read in part", {
                let path = of_path.clone();
                move |request| {
                    let mut file = File::open(&path).unwrap();
                    file.seek(SeekFrom::Start(9)).unwrap();
                    request.body(file)
                }
            })
        },
        form("multipart", |_| Part::new("f", TEXT)),
        form("multipart of a file", |path| Part::file("f", path)),
        Kind { chunked: true, ..form("multipart in chunks", |_| Part::new("f", opener(None))) },
    ]
}

/// The kinds that cannot.
fn one_shot() -> Vec<Kind> {
    vec![
        kind("reader", |request| request.body(reader(Some(TEXT.len() as u64)))),
        Kind { chunked: true, ..kind("reader in chunks", |request| request.body(reader(None))) },
        Kind {
            whole: false,
            chunked: true,
            content_type: "multipart/form-data; boundary=",
            ..kind("multipart of a reader", |request| {
                request.multipart(Multipart::new().part(Part::new("f", reader(None))))
            })
        },
    ]
}

fn file() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("body.txt");
    fs::write(&path, TEXT).unwrap();
    (folder, path)
}

fn check(kind: &Kind, request: &Received) {
    let body = String::from_utf8(request.body.to_vec()).unwrap();
    let name = kind.name;
    if kind.whole {
        assert_eq!(body, kind.text, "{name}");
    } else {
        assert!(body.contains(&format!("\r\n\r\n{}\r\n--", kind.text)), "{name}: {body}");
        let boundary = request.header("content-type").unwrap().rsplit('=').next().unwrap();
        assert!(body.ends_with(&format!("\r\n--{boundary}--\r\n")), "{name}: {body}");
    }
    let content_type = request.header("content-type").unwrap_or_default();
    assert!(content_type.starts_with(kind.content_type), "{name}: {content_type}");
    assert_eq!(kind.content_type.is_empty(), content_type.is_empty(), "{name}: {content_type}");
    if kind.chunked {
        assert_eq!(request.header("transfer-encoding"), Some("chunked"), "{name}");
        assert_eq!(request.header("content-length"), None, "{name}");
    } else {
        assert_eq!(request.header("content-length"), Some(&*body.len().to_string()), "{name}");
        assert_eq!(request.header("transfer-encoding"), None, "{name}");
    }
}

#[test]
fn the_same_bytes_go_again_after_a_status_a_loss_and_a_redirect() {
    let (_folder, path) = file();
    for kind in replayable(&path) {
        let origin = numbered(|n, _| match n {
            0 => Reply::new(503).into(),
            // The connection ends where the answer should begin.
            1 => Script::new().rst(),
            2 => Reply::redirect(307, "/elsewhere").into(),
            3 => Reply::redirect(308, "/at-last").into(),
            _ => Reply::ok("there").into(),
        });
        let session = session();
        let response = (kind.put)(session.post(origin.url("/"))).send().unwrap();
        assert_eq!(response.text().unwrap(), "there", "{}", kind.name);
        let log = origin.log();
        assert_eq!(log.len(), 5, "{}", kind.name);
        for request in &log {
            check(&kind, request);
            assert_eq!(request.body, log[0].body, "{}", kind.name);
            assert_eq!(request.method, "POST");
        }
    }
}

#[test]
fn a_redirect_that_changes_the_method_leaves_the_body_behind() {
    let (_folder, path) = file();
    for kind in replayable(&path).into_iter().chain(one_shot()) {
        let origin = numbered(|n, _| match n {
            0 => Reply::redirect(303, "/elsewhere"),
            _ => Reply::ok("there"),
        });
        let response = (kind.put)(session().post(origin.url("/"))).send().unwrap();
        assert_eq!(response.status(), 200, "{}", kind.name);
        let log = origin.log();
        check(&kind, &log[0]);
        assert_eq!((&*log[1].method, log[1].body.len()), ("GET", 0), "{}", kind.name);
        for field in ["content-type", "content-length", "transfer-encoding"] {
            assert_eq!(log[1].header(field), None, "{}", kind.name);
        }
    }
}

#[test]
fn a_reader_goes_once_and_never_empty() {
    for kind in one_shot() {
        let origin = numbered(|_, _| Reply::new(503).body("busy"));
        let response = (kind.put)(session().post(origin.url("/"))).send().unwrap();
        assert_eq!((response.status(), response.attempts().len()), (503, 1), "{}", kind.name);
        assert_eq!(response.attempts()[0].note, Some("the body cannot be sent again"));
        check(&kind, &origin.log()[0]);

        let origin = numbered(|_, _| Reply::redirect(307, "/again"));
        let error = (kind.put)(session().post(origin.url("/"))).send().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::BodyNotReplayable, "{}", kind.name);
        assert_eq!(origin.counts().requests, 1, "{}", kind.name);

        let origin = numbered(|_, _| Script::new().rst());
        let error = (kind.put)(session().post(origin.url("/"))).send().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Connection, "{}", kind.name);
        assert_eq!(origin.counts().requests, 1, "{}", kind.name);
    }
}

#[test]
fn an_answer_before_the_body_is_the_answer_of_every_kind() {
    let (_folder, path) = file();
    // Far more than the buffers of both sides take.
    File::options().write(true).open(&path).unwrap().set_len(64 << 20).unwrap();
    let large = vec![
        kind("bytes", |request| request.body(vec![7; 64 << 20])),
        kind("file", {
            let path = path.clone();
            move |request| request.body(Body::file(&path))
        }),
        kind("reader", |request| request.body(Body::reader(std::io::repeat(7), None))),
        kind("multipart", move |request| request.multipart(Multipart::new().file("f", &path))),
    ];
    for kind in large {
        let origin = Origin::builder()
            .on_head(|_| Some(Reply::new(413).body("too much").close().into()))
            .start()
            .unwrap();
        let response = (kind.put)(session().post(origin.url("/"))).send().unwrap();
        let answer = (response.status(), response.text().unwrap());
        assert_eq!(answer, (413, "too much".to_owned()), "{}", kind.name);
        assert_eq!(origin.counts().requests, 1, "{}", kind.name);
    }
}

#[test]
fn a_file_that_changes_while_it_is_sent_never_arrives_as_a_complete_one() {
    const LENGTH: u64 = 64 << 20;
    for (length, how) in [(LENGTH + 1, "became longer"), (LENGTH / 2, "became shorter")] {
        for multipart in [false, true] {
            let (_folder, path) = file();
            let file = OpenOptions::new().write(true).open(&path).unwrap();
            file.set_len(LENGTH).unwrap();
            let complete = Arc::new(AtomicUsize::new(0));
            let count = Arc::clone(&complete);
            let origin = Origin::builder()
                // While most of it has not been read yet.
                .on_head(move |request| {
                    if request.path == "/file" {
                        file.set_len(length).unwrap();
                    }
                    None
                })
                .handler(move |request| {
                    count.fetch_add(usize::from(request.path == "/file"), Ordering::SeqCst);
                    Reply::ok("")
                })
                .start()
                .unwrap();
            let session = session();
            let request = session.post(origin.url("/file"));
            let request = match multipart {
                false => request.body(Body::file(&path)),
                true => request.multipart(Multipart::new().file("f", &path)),
            };
            let error = request.send().unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Io, "{error}");
            assert!(error.message().contains(how), "{error}");
            assert!(error.message().contains("body.txt"), "{error}");
            let next = session.get(origin.url("/next")).send().unwrap();
            assert!(!next.connection().reused, "{how}: half a request is on the kept connection");
            assert_eq!(complete.load(Ordering::SeqCst), 0, "{how}");
        }
    }
}

#[test]
fn a_length_that_lies_costs_the_connection() {
    let origin = numbered(|_, _| Reply::ok(""));
    let session = session();
    session.get(origin.url("/")).send().unwrap();
    let short = session.post(origin.url("/")).body(reader(Some(1000)));
    let error = short.send().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Io);
    assert!(error.message().contains("ended 979 bytes before the length"), "{error}");
    assert!(!session.get(origin.url("/")).send().unwrap().connection().reused);
    // What a reader has beyond its length is not read, so the connection is in order.
    let long = session.post(origin.url("/")).body(reader(Some(8)));
    assert!(long.send().unwrap().connection().reused);
    assert!(session.get(origin.url("/")).send().unwrap().connection().reused);
    assert_eq!(&*origin.log().last().unwrap().path, "/");
    let bodies: Vec<_> = origin.log().iter().map(|request| request.body.to_vec()).collect();
    assert!(bodies.contains(&b"the body".to_vec()), "{bodies:?}");
}

#[test]
fn what_cannot_be_opened_is_told_before_anything_is_dialled() {
    let origin = numbered(|_, _| Reply::ok(""));
    for body in [Body::file("/nonexistent/a.bin"), Body::file("/")] {
        let error = session().post(origin.url("/")).body(body).send().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Io, "{error}");
    }
    let form = Multipart::new().part(Part::new("p", "").header("X", "a\r\nb"));
    let error = session().post(origin.url("/")).multipart(form).send().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidHeader);
    assert_eq!(origin.counts().accepted, 0);
}

#[test]
fn a_session_with_a_seed_repeats_its_boundaries() {
    let boundaries = || {
        let origin = numbered(|_, _| Reply::ok(""));
        let session = session();
        for _ in 0..2 {
            session.post(origin.url("/")).multipart(Multipart::new()).send().unwrap();
        }
        let log = origin.log();
        let types = log.iter().map(|request| request.header("content-type").unwrap().to_owned());
        types.collect::<Vec<_>>()
    };
    let first = boundaries();
    assert_eq!(first, boundaries());
    assert_ne!(first[0], first[1]);
}
