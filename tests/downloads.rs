//! Downloads that break off at every byte and end with the right file, or with an error and a part.

#![cfg(feature = "lab")]
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "helpers of tests are tests"
)]

use flate2::{Compression, write::GzEncoder};
use longhaul::error::{Fault, Phase};
use longhaul::lab::{Origin, Received, Reply, Script};
use longhaul::policy::Timeouts;
use longhaul::session::Progress;
use longhaul::time::SimClock;
use longhaul::transport::{Play, Script as Scripted};
use longhaul::{Error, ErrorKind, Retry, Session, SessionBuilder, secs};
use std::fs;
use std::io::Write as _;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

const FILE: &[u8] = b"A file of which every byte is a place to break off at.";

fn recipe() -> (SessionBuilder, Arc<SimClock>) {
    let clock = Arc::new(SimClock::default());
    let builder = Session::builder()
        .trust_env(false)
        .seed(1)
        .clock(clock.clone())
        .timeout((secs(5.0), secs(5.0)));
    (builder, clock)
}

fn session() -> Session {
    recipe().0.build().unwrap()
}

fn patient() -> Session {
    recipe().0.retry(Retry::long_run()).build().unwrap()
}

/// A folder, and the path of the file to be made in it.
fn place() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file.bin");
    (folder, path)
}

fn names(folder: &tempfile::TempDir) -> Vec<String> {
    let entries = fs::read_dir(folder.path()).unwrap();
    let mut names: Vec<_> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// An origin that answers the n-th request (from 0) by `answer(n)`.
fn numbered(answer: impl Fn(usize, &Received) -> Script + Send + Sync + 'static) -> Origin {
    let count = AtomicUsize::new(0);
    Origin::builder()
        .handler(move |request| answer(count.fetch_add(1, Ordering::SeqCst), request))
        .start()
        .unwrap()
}

/// A server as it should be: ranges, and `If-Range` before them. The response as bytes.
fn serve(file: &[u8], tag: &str, request: &Received) -> Vec<u8> {
    let reply = |status: u16| Reply::new(status).header("ETag", tag);
    let range = request.header("range").map(|range| {
        range.strip_prefix("bytes=").and_then(|range| range.strip_suffix('-')).unwrap().to_owned()
    });
    let wanted = request.header("if-range").is_none_or(|validator| validator == tag);
    let reply = match range.filter(|_| wanted).map(|from| from.parse::<usize>().unwrap()) {
        None => reply(200).body(file),
        Some(from) if from < file.len() => reply(206)
            .header("Content-Range", format!("bytes {from}-{}/{}", file.len() - 1, file.len()))
            .body(&file[from..]),
        Some(_) => reply(416).header("Content-Range", format!("bytes */{}", file.len())),
    };
    reply.render(false)
}

/// The first bytes of a response: its head, and `count` bytes of its body.
fn cut(response: &[u8], count: usize) -> &[u8] {
    let head = response.windows(4).position(|window| window == b"\r\n\r\n").unwrap() + 4;
    &response[..head + count]
}

/// A server that breaks its first response off after so many bytes of the file.
fn breaking_off(at: usize) -> Origin {
    numbered(move |n, request| {
        let response = serve(FILE, "\"v1\"", request);
        match n {
            0 => Script::send(cut(&response, at)).fin(),
            _ => Script::send(response),
        }
    })
}

/// Leaves the first `count` bytes of the file behind, as a download that broke off.
fn broken_off(session: &Session, origin: &Origin, path: &PathBuf) -> Error {
    session.get(origin.url("/file")).download(path).send().unwrap_err()
}

#[test]
fn a_break_at_every_byte_is_resumed_there_within_one_call() {
    let session = patient();
    for at in 0..FILE.len() {
        let origin = breaking_off(at);
        let (folder, path) = place();
        let file = session.get(origin.url("/file")).download(&path).send().unwrap();
        assert_eq!(fs::read(&path).unwrap(), FILE, "{at}");
        assert_eq!((file.bytes, file.resumed_from), (FILE.len() as u64, 0), "{at}");
        assert_eq!(names(&folder), ["file.bin"], "{at}");
        let log = origin.log();
        assert_eq!(log.len(), 2, "{at}");
        assert_eq!((log[0].header("range"), log[0].header("if-range")), (None, None));
        assert_eq!(log[0].header("accept-encoding"), Some("identity"));
        let range = (at > 0).then(|| format!("bytes={at}-"));
        assert_eq!(log[1].header("range"), range.as_deref());
        assert_eq!(log[1].header("if-range"), range.as_ref().map(|_| "\"v1\""), "{at}");
        let kinds: Vec<_> =
            file.attempts.iter().map(|a| a.error.as_ref().map(|error| error.kind)).collect();
        assert_eq!(kinds, [Some(ErrorKind::IncompleteBody), None], "{at}");
    }
}

#[test]
fn a_part_that_any_break_has_left_is_gone_on_with_by_the_next_call() {
    let session = session();
    for at in 1..FILE.len() {
        let origin = breaking_off(at);
        let (folder, path) = place();
        let error = broken_off(&session, &origin, &path);
        assert_eq!(error.kind(), ErrorKind::IncompleteBody);
        assert_eq!(names(&folder), ["file.bin.part", "file.bin.part.json"], "{at}");
        let file = session.get(origin.url("/file")).download(&path).send().unwrap();
        assert_eq!(fs::read(&path).unwrap(), FILE, "{at}");
        assert_eq!((file.bytes, file.resumed_from), (FILE.len() as u64, at as u64));
        assert_eq!(names(&folder), ["file.bin"], "{at}");
    }
}

#[test]
fn many_resets_one_after_the_other_lose_nothing() {
    let budget = Retry::long_run().read(60).total(60);
    let session = recipe().0.retry(budget).build().unwrap();
    let origin = numbered(|n, request| {
        let response = serve(FILE, "\"v1\"", request);
        let body = cut(&response, 0).len();
        // One byte each time; a reset may take it back, and then it is asked for again.
        match response.len() - body {
            left if left > 1 && n % 2 == 0 => Script::send(cut(&response, 1)).fin(),
            left if left > 1 && n < 40 => Script::send(cut(&response, 1)).rst(),
            _ => Script::send(response),
        }
    });
    let (_folder, path) = place();
    let file = session.get(origin.url("/file")).download(&path).send().unwrap();
    assert_eq!(fs::read(&path).unwrap(), FILE);
    assert!(file.attempts.len() > 20, "{}", file.attempts.len());
}

#[test]
fn a_file_that_changed_in_between_is_fetched_anew() {
    const OTHER: &[u8] = b"Another file of the same length, but with another tag!";
    const { assert!(OTHER.len() == FILE.len()) };
    /// What the server does about the range of a file that it no longer has.
    type Careless = fn(&Received) -> Reply;
    let ranges: [(&str, Option<Careless>); 4] = [
        ("whole file", None),
        (
            "other tag",
            Some(|_| {
                let range = format!("bytes 7-{}/{}", OTHER.len() - 1, OTHER.len());
                Reply::new(206)
                    .header("ETag", "\"v2\"")
                    .header("Content-Range", range)
                    .body(&OTHER[7..])
            }),
        ),
        (
            "other total",
            Some(|_| {
                let range = format!("bytes 7-{}/{}", OTHER.len(), OTHER.len() + 1);
                Reply::new(206).header("Content-Range", range).body(&OTHER[7..])
            }),
        ),
        ("nothing there", Some(|_| Reply::new(416).header("Content-Range", "bytes */3"))),
    ];
    for (name, careless) in ranges {
        let origin = numbered(move |n, request| match (n, careless) {
            (0, _) => Script::send(cut(&serve(FILE, "\"v1\"", request), 7)).fin(),
            (1, Some(careless)) => careless(request).into(),
            _ => Script::send(serve(OTHER, "\"v2\"", request)),
        });
        let (folder, path) = place();
        let session = session();
        broken_off(&session, &origin, &path);
        let file = session.get(origin.url("/file")).download(&path).send().unwrap();
        assert_eq!(fs::read(&path).unwrap(), OTHER, "{name}");
        assert_eq!(file.resumed_from, 0, "{name}");
        assert_eq!(file.validators().etag(), Some("\"v2\""), "{name}");
        assert_eq!(names(&folder), ["file.bin"], "{name}");
        // What could not be used is asked for once more, without a range.
        let ranges: Vec<_> =
            origin.log().iter().map(|request| request.header("range").is_some()).collect();
        let wanted = [false, true, false];
        assert_eq!(ranges, wanted[..if careless.is_some() { 3 } else { 2 }], "{name}");
    }
}

#[test]
fn without_a_strong_validator_nothing_is_joined() {
    const MODIFIED: &str = "Sun, 15 Jun 2025 15:06:40 GMT";
    const LATER: &str = "Sun, 15 Jun 2025 15:08:40 GMT";
    for (fields, resumes) in [
        (&[][..], false),
        (&[("ETag", "W/\"v1\"")], false),
        (&[("ETag", "v1")], false),
        (&[("Last-Modified", MODIFIED)], false),
        (&[("Last-Modified", MODIFIED), ("Date", MODIFIED)], false),
        (&[("Last-Modified", MODIFIED), ("Date", LATER), ("ETag", "W/\"v1\"")], false),
        (&[("Last-Modified", MODIFIED), ("Date", LATER)], true),
        (&[("ETag", "\"v1\""), ("Accept-Ranges", "none")], true),
    ] {
        let origin = numbered(move |n, _| {
            // This one knows no ranges.
            let reply = Reply::ok(FILE);
            let reply =
                fields.iter().fold(reply, |reply, (name, value)| reply.header(*name, value));
            let response = reply.render(false);
            match n {
                0 => Script::send(cut(&response, 9)).fin(),
                _ => Script::send(response),
            }
        });
        let (_folder, path) = place();
        let file = patient().get(origin.url("/file")).download(&path).send().unwrap();
        assert_eq!(fs::read(&path).unwrap(), FILE, "{fields:?}");
        assert_eq!((file.bytes, file.resumed_from), (FILE.len() as u64, 0));
        let log = origin.log();
        assert_eq!(log[1].header("range"), resumes.then_some("bytes=9-"), "{fields:?}");
    }
}

#[test]
fn what_is_coded_all_the_same_is_decoded_and_never_resumed() {
    let mut coder = GzEncoder::new(Vec::new(), Compression::default());
    coder.write_all(FILE).unwrap();
    let coded = coder.finish().unwrap();
    let origin = numbered(move |n, _| {
        let reply = Reply::ok(&coded).header("Content-Encoding", "gzip").header("ETag", "\"v1\"");
        let response = reply.render(false);
        match n {
            0 => Script::send(cut(&response, 30)).fin(),
            _ => Script::send(response),
        }
    });
    let (_folder, path) = place();
    let file = patient().get(origin.url("/file")).download(&path).send().unwrap();
    assert_eq!(fs::read(&path).unwrap(), FILE);
    assert_eq!(file.bytes, FILE.len() as u64);
    assert_eq!(origin.log()[1].header("range"), None);
}

#[test]
fn a_part_that_is_whole_already_is_recognised() {
    // Without a length nobody knows that nothing is missing but the end.
    let origin = numbered(|n, request| match n {
        0 => {
            let reply = Reply::ok(FILE).header("ETag", "\"v1\"").chunked(10);
            let response = reply.render(false);
            Script::send(&response[..response.len() - 5]).fin()
        }
        _ => Script::send(serve(FILE, "\"v1\"", request)),
    });
    let (folder, path) = place();
    let session = session();
    broken_off(&session, &origin, &path);
    assert_eq!(fs::read(folder.path().join("file.bin.part")).unwrap(), FILE);
    let file = session.get(origin.url("/file")).download(&path).send().unwrap();
    assert_eq!(fs::read(&path).unwrap(), FILE);
    assert_eq!((file.bytes, file.resumed_from), (FILE.len() as u64, FILE.len() as u64));
    assert_eq!(names(&folder), ["file.bin"]);
    assert_eq!(origin.counts().requests, 2);
}

#[test]
fn bytes_beyond_the_end_make_all_of_them_doubtful() {
    let origin = numbered(|n, request| match n {
        0 => Script::send(cut(&serve(FILE, "\"v1\"", request), 9)).fin(),
        1 => {
            let range = format!("bytes 9-{}/{}", FILE.len() - 1, FILE.len());
            // Chunks hide how many come.
            let reply = Reply::new(206).header("Content-Range", range).chunked(4);
            reply.body([&FILE[9..], b"and more"].concat()).into()
        }
        _ => Script::send(serve(FILE, "\"v1\"", request)),
    });
    let (_folder, path) = place();
    let file = patient().get(origin.url("/file")).download(&path).send().unwrap();
    assert_eq!(fs::read(&path).unwrap(), FILE);
    assert_eq!((file.bytes, file.attempts.len()), (FILE.len() as u64, 3));
    assert_eq!(origin.log()[2].header("range"), None);
}

#[test]
fn a_range_that_is_shorter_than_it_says_is_gone_on_with() {
    let origin = numbered(|n, request| {
        let response = serve(FILE, "\"v1\"", request);
        match n {
            0 => Script::send(cut(&response, 9)).fin(),
            1 => {
                let range = format!("bytes 9-{}/{}", FILE.len() - 1, FILE.len());
                Reply::new(206).header("Content-Range", range).body(&FILE[9..20]).into()
            }
            _ => Script::send(response),
        }
    });
    let (_folder, path) = place();
    patient().get(origin.url("/file")).download(&path).send().unwrap();
    assert_eq!(fs::read(&path).unwrap(), FILE);
    assert_eq!(origin.log()[2].header("range"), Some("bytes=20-"));
}

#[test]
fn a_redirect_is_asked_again_because_its_target_may_have_expired() {
    let origin = numbered(|n, request| match (&*request.path, n) {
        ("/latest", _) => Reply::redirect(302, format!("/signed-{n}")).into(),
        (_, 1) => Script::send(cut(&serve(FILE, "\"v1\"", request), 9)).fin(),
        _ => Script::send(serve(FILE, "\"v1\"", request)),
    });
    let (_folder, path) = place();
    let file = patient().get(origin.url("/latest")).download(&path).send().unwrap();
    assert_eq!(fs::read(&path).unwrap(), FILE);
    assert_eq!(file.url.path(), "/signed-2");
    let paths: Vec<_> = origin.log().iter().map(|request| request.path.clone()).collect();
    assert_eq!(paths, ["/latest", "/signed-0", "/latest", "/signed-2"]);
    assert_eq!(origin.log()[3].header("range"), Some("bytes=9-"));
}

/// A script that gives three bytes of the file at a time and breaks off.
fn dripping(clock: &Arc<SimClock>) -> Scripted {
    Scripted::with(clock.clone(), |asked, _| {
        let range = asked.headers.get("range").map(|range| {
            let text = std::str::from_utf8(range).unwrap();
            text["bytes=".len()..text.len() - 1].parse::<usize>().unwrap()
        });
        let from = range.unwrap_or_default();
        let to = (from + 3).min(FILE.len());
        let play = match range {
            None => Play::status(200).header("Content-Length", &FILE.len().to_string()),
            Some(_) => Play::status(206).header(
                "Content-Range",
                &format!("bytes {from}-{}/{}", FILE.len() - 1, FILE.len()),
            ),
        };
        play.header("ETag", "\"v1\"").body(&FILE[from..to]).truncated().after(secs(1.0))
    })
}

#[test]
fn each_break_is_charged_to_the_read_budget_and_waits_as_a_retry_does() {
    let (builder, clock) = recipe();
    let script = dripping(&clock);
    let own = script.clone();
    let session = builder.retry(Retry::long_run()).transport(move || own.clone()).build().unwrap();
    let (folder, path) = place();
    let error = session.get("http://h/f").download(&path).send().unwrap_err();
    assert_eq!((error.kind(), error.phase()), (ErrorKind::IncompleteBody, Phase::Body));
    assert_eq!(error.fault(), Fault::Target);
    // `read` allows two retries: after 0.6 and 1.2 s, of attempts that take one each.
    assert_eq!(error.attempts().len(), 3);
    assert_eq!(error.attempts()[2].note, Some("read is used up"));
    assert_eq!(clock.elapsed(), secs(3.0 + 1.8));
    assert_eq!(fs::read(folder.path().join("file.bin.part")).unwrap(), &FILE[..9]);
    // What came is not lost: the next call goes on there.
    session.get("http://h/f").download(&path).send().unwrap_err();
    assert_eq!(script.asked()[3].headers.get("range"), Some(&b"bytes=9-"[..]));
    assert_eq!(fs::read(folder.path().join("file.bin.part")).unwrap(), &FILE[..18]);
}

#[test]
fn the_deadline_covers_all_of_it() {
    let (builder, clock) = recipe();
    let script = dripping(&clock);
    let limits = Timeouts::from((secs(5.0), secs(5.0))).with_deadline(secs(10.0)).unwrap();
    let own = script.clone();
    let session = builder
        .retry(Retry::long_run().read(100).total(100))
        .timeout(limits)
        .transport(move || own.clone())
        .build()
        .unwrap();
    let (_folder, path) = place();
    session.get("http://h/f").download(&path).send().unwrap_err();
    // One second each, with 0.6, 1.2 and 2.4 s between: the next wait would end after 13 s.
    assert_eq!(script.attempts(), 4);
    assert!(clock.elapsed() <= secs(10.0), "{:?}", clock.elapsed());
}

#[test]
fn statuses_on_the_way_are_retried_by_their_own_budget() {
    let origin = numbered(|n, request| {
        let response = serve(FILE, "\"v1\"", request);
        match n {
            0 | 2 => Reply::new(503).header("Retry-After", "1").into(),
            1 => Script::send(cut(&response, 9)).fin(),
            _ => Script::send(response),
        }
    });
    let (_folder, path) = place();
    let file = patient().get(origin.url("/file")).download(&path).send().unwrap();
    assert_eq!(fs::read(&path).unwrap(), FILE);
    assert_eq!(file.attempts.len(), 4);
    // A 503 in between is no reason to lose the part.
    assert_eq!(origin.log()[3].header("range"), Some("bytes=9-"));
}

#[test]
fn what_is_no_file_is_an_error_with_its_response_and_leaves_nothing() {
    for status in [204, 304, 404, 500] {
        let origin = numbered(move |_, _| Reply::new(status).body("why").into());
        let (folder, path) = place();
        let error = session().get(origin.url("/file")).download(&path).send().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::HttpStatus);
        let response = error.into_response().unwrap();
        assert_eq!(response.status(), status);
        if status >= 400 {
            assert_eq!(response.text().unwrap(), "why");
        }
        assert!(names(&folder).is_empty(), "{status}");
    }
}

#[test]
fn what_stood_there_stays_until_the_file_is_complete() {
    let origin = numbered(|n, request| {
        let response = serve(FILE, "\"v1\"", request);
        match n {
            0 => Script::send(cut(&response, 9)).fin(),
            _ => Script::send(response),
        }
    });
    let (folder, path) = place();
    fs::write(&path, "old").unwrap();
    let session = session();
    broken_off(&session, &origin, &path);
    assert_eq!(fs::read(&path).unwrap(), b"old");
    let anew = session.get(origin.url("/file")).download(&path).resume(false).send().unwrap();
    assert_eq!(anew.resumed_from, 0);
    assert_eq!(origin.log()[1].header("range"), None);
    assert_eq!(fs::read(&path).unwrap(), FILE);
    assert_eq!(names(&folder), ["file.bin"]);
}

#[test]
fn progress_is_told_after_each_piece() {
    let large: Vec<u8> = (0..300_000_u32).map(|n| n as u8).collect();
    let file = large.clone();
    let origin = numbered(move |n, request| {
        let response = serve(&file, "\"v1\"", request);
        match n {
            0 => Script::send(cut(&response, 100_000)).fin(),
            _ => Script::send(response),
        }
    });
    let (_folder, path) = place();
    let session = session();
    broken_off(&session, &origin, &path);
    let mut seen: Vec<Progress> = Vec::new();
    let download = session.get(origin.url("/file")).download(&path);
    download.on_progress(|progress| seen.push(progress)).send().unwrap();
    assert_eq!(fs::read(&path).unwrap(), large);
    assert!(seen.len() >= 4 && seen.is_sorted_by_key(|progress| progress.have));
    assert!(seen.iter().all(|progress| progress.resumed_from == 100_000));
    let last = seen.last().unwrap();
    assert_eq!((last.have, last.total), (300_000, Some(300_000)));
    assert!(seen[0].have > 100_000);
}

#[test]
fn a_file_beyond_the_ceiling_is_refused_before_it_is_written() {
    let origin = numbered(|n, request| {
        let response = serve(FILE, "\"v1\"", request);
        match n {
            0 => Script::send(cut(&response, 9)).fin(),
            _ => Script::send(response),
        }
    });
    let (_folder, path) = place();
    let session = session();
    broken_off(&session, &origin, &path);
    // What is left would be within the ceiling, and the file is not.
    let download = session.get(origin.url("/file")).max_body_bytes(50).download(&path);
    let error = download.send().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TooLarge);
    assert!(error.message().contains("54 bytes") && error.message().contains("50"), "{error}");
}

#[test]
fn mistakes_are_told_before_anything_is_sent() {
    let origin = numbered(|_, _| Reply::ok("").into());
    let (folder, path) = place();
    let session = session();
    let url = origin.url("/");
    for (download, wanted) in [
        (session.post(&url).download(&path), "POST"),
        (session.get(&url).header("range", "bytes=0-1").download(&path), "range"),
        (session.get(&url).download("/"), "file name"),
    ] {
        let error = download.send().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Config, "{error}");
        assert!(error.message().contains(wanted), "{error}");
    }
    let nowhere = folder.path().join("missing/file.bin");
    let error = session.get(&url).download(&nowhere).send().unwrap_err();
    assert_eq!((error.kind(), error.fault()), (ErrorKind::Io, Fault::Local));
    assert!(error.message().contains("missing/file.bin.part"), "{error}");
    assert_eq!(origin.counts().accepted, 0);
}
