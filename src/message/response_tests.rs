use super::*;
use http::HeaderValue;

fn parts(status: u16, fields: &[(&str, &str)], body: ResponseBody) -> ResponseParts {
    let mut headers = HeaderMap::new();
    for (name, value) in fields {
        let name = http::HeaderName::from_bytes(name.as_bytes()).unwrap();
        headers.append(name, HeaderValue::from_bytes(value.as_bytes()).unwrap());
    }
    ResponseParts {
        method: Method::GET,
        url: Url::parse("http://h.test/a/b?x#top").unwrap(),
        status,
        reason: if status == 404 { "Not Found" } else { "OK" }.to_owned(),
        headers,
        body,
        wire_bytes: 3,
        history: Vec::new(),
        attempts: Vec::new(),
        elapsed: Duration::ZERO,
        timings: Timings::default(),
        connection: ConnectionFacts::default(),
        proxy: None,
    }
}

fn whole(status: u16, fields: &[(&str, &str)], body: &[u8]) -> Response {
    Response::from_parts(parts(status, fields, ResponseBody::Bytes(Bytes::copy_from_slice(body))))
}

fn streamed(body: impl Read + Send + 'static) -> Response {
    let body = ResponseBody::Reader(Mutex::new(Box::new(body)));
    Response::from_parts(parts(200, &[("Content-Type", "text/plain; charset=utf-8")], body))
}

/// Some bytes, then a failure, then silence that would look like an end.
struct Broken(u8);

impl Read for Broken {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        self.0 += 1;
        match (self.0, buf) {
            (1, [first, ..]) => {
                *first = b'x';
                Ok(1)
            }
            _ => {
                Err(Error::new(ErrorKind::IncompleteBody, Phase::Body, Fault::Target, "cut")
                    .into_io())
            }
        }
    }
}

#[test]
fn response_can_be_shared_between_threads() {
    fn check<T: Send + Sync>() {}
    check::<Response>();
    check::<Error>();
}

#[test]
fn raise_for_status_keeps_the_response() {
    assert!(whole(399, &[], b"").raise_for_status().is_ok());
    let error = whole(404, &[], b"gone").raise_for_status().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::HttpStatus);
    assert_eq!(error.message(), "404 Client Error: Not Found");
    assert_eq!(error.to_string(), "404 Client Error: Not Found (http://h.test/a/b?x#top)");
    assert_eq!(error.response().unwrap().body(), b"gone");
    assert_eq!(error.into_response().unwrap().status(), 404);
    let error = whole(503, &[], b"").raise_for_status().unwrap_err();
    assert_eq!(error.message(), "503 Server Error: OK");
    assert!(whole(600, &[], b"").raise_for_status().is_ok());
}

#[test]
fn what_the_head_says() {
    let fields = [
        ("Location", "/n"),
        ("Set-Cookie", "sid=s3cret; Path=/"),
        ("Set-Cookie", " b = 2"),
        ("Link", "<?page=2>; rel=\"next\", </z>; rel=last"),
        ("Link", "<http://o.test/>; rel=up"),
        ("Content-Type", "text/html"),
    ];
    let response = whole(301, &fields, b"");
    assert!(response.ok() && response.is_redirect() && response.is_permanent_redirect());
    assert!(!whole(301, &[], b"").is_redirect() && !whole(404, &[], b"").ok());
    assert_eq!(response.set_cookie_names().collect::<Vec<_>>(), ["sid", "b"]);
    assert_eq!(response.links().len(), 3);
    assert_eq!(response.link("next").unwrap().as_str(), "http://h.test/a/b?page=2");
    assert_eq!(response.link("prev"), None);
    assert_eq!(response.content_type(), Some("text/html"));
    assert_eq!(response.encoding().as_deref(), Some("ISO-8859-1"));
}

#[test]
fn json_in_every_unicode_form() {
    let utf16 = |bom: bool, big: bool| {
        let units = bom.then_some(0xfeff).into_iter().chain("{\"a\":\"é\"}".encode_utf16());
        units.flat_map(|u| if big { u.to_be_bytes() } else { u.to_le_bytes() }).collect::<Vec<_>>()
    };
    let utf32 = |bom: bool| {
        let chars = bom.then_some('\u{feff}').into_iter().chain("{\"a\":\"é\"}".chars());
        chars.flat_map(|c| u32::from(c).to_be_bytes()).collect::<Vec<_>>()
    };
    for body in [
        "{\"a\":\"é\"}".as_bytes().to_vec(),
        "\u{feff}{\"a\":\"é\"}".as_bytes().to_vec(),
        utf16(true, true),
        utf16(true, false),
        utf16(false, true),
        utf16(false, false),
        utf32(true),
        utf32(false),
    ] {
        let value: serde_json::Value = whole(200, &[], &body).json().unwrap();
        assert_eq!(value, serde_json::json!({"a": "é"}), "{body:?}");
    }
    let latin = whole(200, &[("Content-Type", "text/plain; charset=latin1")], b"\"\xe9\"");
    assert_eq!(latin.json::<String>().unwrap(), "é");
    // One bad byte in a string is replaced where the charset was named, as in requests.
    let named = [("content-type", "application/json; charset=utf-8")];
    assert_eq!(whole(200, &named, b"\"a\xff\"").json::<String>().unwrap(), "a\u{fffd}");
    let error = whole(200, &[], b"<html>").json::<String>().unwrap_err();
    assert_eq!((error.kind(), error.phase()), (ErrorKind::InvalidJson, Phase::Body));
}

#[test]
fn a_streamed_body_is_read_once_and_kept() {
    let response = streamed(&b"h\xc3\xa9"[..]);
    assert_eq!(response.body(), b"");
    assert_eq!(response.text().unwrap(), "hé");
    assert_eq!(response.text().unwrap(), "hé");
    assert_eq!(response.body(), "hé".as_bytes());
    assert!(matches!(response.into_parts().body, ResponseBody::Bytes(_)));
}

#[test]
fn a_body_that_was_handed_on_does_not_look_empty() {
    let response = streamed(&b"abc"[..]);
    let mut out = Vec::new();
    assert_eq!(response.copy_to(&mut out).unwrap(), 3);
    assert_eq!(out, b"abc");
    let error = response.bytes().unwrap_err();
    assert_eq!((error.kind(), error.fault()), (ErrorKind::Io, Fault::Local));
}

#[test]
fn a_broken_body_stays_broken() {
    let response = streamed(Broken(0));
    for _ in 0..2 {
        let error = response.bytes().unwrap_err();
        assert_eq!((error.kind(), error.phase()), (ErrorKind::IncompleteBody, Phase::Body));
        assert_eq!(error.url(), Some("http://h.test/a/b?x#top"));
    }
    let mut lines = streamed((&b"one\ntw"[..]).chain(Broken(1))).lines();
    assert_eq!(lines.next().unwrap().unwrap(), "one");
    assert_eq!(lines.next().unwrap().unwrap_err().kind(), ErrorKind::IncompleteBody);
    assert!(lines.next().is_none());
    let mut chunks = streamed((&b"onetw"[..]).chain(Broken(1))).chunks(3);
    assert_eq!(chunks.next().unwrap().unwrap(), b"one");
    assert!(chunks.next().unwrap().is_err() && chunks.next().is_none());
}

#[test]
fn pieces_and_lines() {
    let pieces: Result<Vec<_>, _> = whole(200, &[], b"abcdefg").chunks(3).collect();
    assert_eq!(pieces.unwrap(), [&b"abc"[..], b"def", b"g"]);
    let lines = |content_type: &str, body: &[u8]| {
        let response = whole(200, &[("Content-Type", content_type)], body);
        response.lines().collect::<Result<Vec<_>, _>>().unwrap()
    };
    assert_eq!(lines("application/json", b"a\r\n\n\xc3\xa9"), ["a", "", "é"]);
    assert_eq!(lines("text/plain; charset=latin1", b"\xe9\nb\n"), ["é", "b"]);
    assert_eq!(lines("text/plain; charset=utf-16le", b"\x0a\x01a\0\n\0b\0"), ["Ċa", "b"]);
    assert_eq!(lines("text/plain", b""), Vec::<String>::new());
}

/// A body that comes in pieces, as from a wire.
fn pieces(pieces: &[&[u8]]) -> Response {
    struct Pieces(std::collections::VecDeque<Vec<u8>>);
    impl Read for Pieces {
        fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
            let Some(mut piece) = self.0.pop_front() else { return Ok(0) };
            let count = piece.as_slice().read(buf)?;
            if count < piece.len() {
                self.0.push_front(piece.split_off(count));
            }
            Ok(count)
        }
    }
    streamed(Pieces(pieces.iter().map(|piece| piece.to_vec()).collect()))
}

#[test]
fn lines_are_the_same_wherever_a_piece_ends() {
    for (text, wanted) in [
        ("a\r\n\r\nb\r\n", &["a", "", "b"][..]),
        ("a\n\nb", &["a", "", "b"]),
        ("a\rb\r\r\nc", &["a", "b", "", "c"]),
        ("\n", &[""]),
        ("\r\n\n\r", &["", "", ""]),
        ("\u{c}é\u{2028}\n", &["\u{c}é\u{2028}"]),
        ("", &[]),
    ] {
        for at in 0..=text.len() {
            let (one, other) = text.as_bytes().split_at(at);
            let got: Result<Vec<_>, _> = pieces(&[one, other]).lines().collect();
            // An empty piece is an end.
            if !one.is_empty() {
                assert_eq!(got.unwrap(), wanted, "{text:?} {at}");
            }
        }
    }
    let utf16: Vec<u8> = "a\r\nb\rc\n".encode_utf16().flat_map(u16::to_le_bytes).collect();
    let response = whole(200, &[("Content-Type", "text/plain; charset=utf-16le")], &utf16);
    assert_eq!(response.lines().collect::<Result<Vec<_>, _>>().unwrap(), ["a", "b", "c"]);
}

#[test]
fn a_line_is_given_before_the_next_byte_is_waited_for() {
    // What stands behind the line is an error here, and silence on a wire.
    let mut lines = streamed((&b"one\r"[..]).chain(Broken(1))).lines();
    assert_eq!(lines.next().unwrap().unwrap(), "one");
    assert!(lines.next().unwrap().is_err() && lines.next().is_none());
}

#[test]
fn delimiters_are_found_wherever_a_piece_ends() {
    for (body, delimiter, wanted) in [
        ("a--b----c", "--", &["a", "b", "", "c"][..]),
        ("a--", "--", &["a"]),
        ("--a", "--", &["", "a"]),
        ("a-b", "--", &["a-b"]),
        ("aXYXZaXYZ", "XYZ", &["aXYXZa"]),
        ("abc", "", &["abc"]),
        ("", "--", &[]),
    ] {
        for at in 1..body.len() {
            let (one, other) = body.as_bytes().split_at(at);
            let got: Vec<_> = pieces(&[one, other]).split(delimiter).map(Result::unwrap).collect();
            let wanted: Vec<_> = wanted.iter().map(|piece| piece.as_bytes()).collect();
            assert_eq!(got, wanted, "{body:?} {at}");
        }
    }
    let long = "x".repeat(20_000);
    let got: Vec<_> = whole(200, &[], format!("{long}--{long}").as_bytes()).split("--").collect();
    assert!(got.len() == 2 && got.iter().all(|piece| piece.as_ref().unwrap() == long.as_bytes()));
    let mut split = streamed((&b"a-b"[..]).chain(Broken(1))).split("-");
    assert_eq!(split.next().unwrap().unwrap(), b"a");
    assert!(split.next().unwrap().is_err() && split.next().is_none());
}

#[cfg(unix)]
#[test]
fn a_pipe_and_a_link_stay_what_they_are() {
    use std::os::unix::fs::FileTypeExt;
    let folder = tempfile::tempdir().unwrap();
    let pipe = folder.path().join("pipe");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let reader = std::thread::spawn({
        let pipe = pipe.clone();
        move || std::fs::read(pipe).unwrap()
    });
    assert_eq!(whole(200, &[], b"a page").save_to(&pipe).unwrap(), 6);
    assert_eq!(reader.join().unwrap(), b"a page");
    assert!(std::fs::metadata(&pipe).unwrap().file_type().is_fifo());

    let (file, link) = (folder.path().join("file"), folder.path().join("link"));
    std::fs::write(&file, "old").unwrap();
    std::os::unix::fs::symlink("file", &link).unwrap();
    whole(200, &[], b"new").save_to(&link).unwrap();
    assert!(std::fs::symlink_metadata(&link).unwrap().is_symlink());
    assert_eq!(std::fs::read(&file).unwrap(), b"new");
}

#[test]
fn a_file_that_stood_there_is_replaced_as_a_whole_or_stays() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("page.html");
    std::fs::write(&path, "old").unwrap();
    streamed((&b"half of the new"[..]).chain(Broken(1))).save_to(&path).unwrap_err();
    assert_eq!(std::fs::read(&path).unwrap(), b"old");
    streamed(&b"new"[..]).save_to(&path).unwrap();
    assert_eq!(std::fs::read(&path).unwrap(), b"new");
    // A folder of that name is in the way of the rename alone.
    let taken = folder.path().join("taken");
    std::fs::create_dir(&taken).unwrap();
    let error = whole(200, &[], b"x").save_to(&taken).unwrap_err();
    assert!(error.kind() == ErrorKind::Io && error.message().contains("taken"), "{error}");
    let error = whole(200, &[], b"x").save_to("/").unwrap_err();
    assert!(error.message().contains("file name"), "{error}");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 2);
}

#[test]
fn a_file_appears_whole_or_not_at_all() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("page.html");
    let names = || std::fs::read_dir(folder.path()).unwrap().count();
    let error = streamed(Broken(0)).save_to(&path).unwrap_err();
    assert_eq!((error.kind(), names()), (ErrorKind::IncompleteBody, 0));
    assert_eq!(streamed(&b"new"[..]).save_to(&path).unwrap(), 3);
    assert_eq!((std::fs::read(&path).unwrap(), names()), (b"new".to_vec(), 1));
    let error = whole(200, &[], b"x").save_to(folder.path().join("no/such")).unwrap_err();
    assert_eq!((error.kind(), error.fault()), (ErrorKind::Io, Fault::Local));
    assert!(error.message().contains("no/such"), "{error}");
}
