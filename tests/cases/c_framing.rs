//! Section C: heads as servers write them, and bodies that end where they should not.

use crate::roads::{Road, World, assert_is, each};
use crate::said;
use http::Method;
use longhaul::error::{Error, ErrorKind, Fault, Phase};
use longhaul::lab::{Origin, Received, Script};
use longhaul::time::SimClock;
use longhaul::{Response, Retry, Session, secs};
use std::fmt::Write as _;
use std::io::Read;
use std::sync::Arc;

const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
const CHUNKED: &str = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
const LIMIT: usize = 64 * 1024;

/// An origin that answers every request by one of these scripts: `/0`, `/1` …
fn scripted(scripts: Vec<Script>) -> World {
    World::new(Origin::builder().handler(move |request: &Received| {
        let number: usize = request.path.trim_start_matches('/').parse().unwrap();
        scripts[number].clone()
    }))
}

/// The same bytes for each request, as they stand.
fn sending(bytes: impl AsRef<[u8]>) -> World {
    let script = Script::send(bytes);
    World::new(Origin::builder().handler(move |_: &Received| script.clone()))
}

fn get(world: &World, road: Road, session: &Session, path: &str) -> Result<Response, Error> {
    session.get(world.url(road, path)).send()
}

/// What a session makes of a response of these bytes, in the clear; the peer leaves after them.
fn answer(bytes: impl AsRef<[u8]>) -> Result<Response, Error> {
    let script = Script::send(bytes).fin();
    let world = scripted(vec![script]);
    let session = world.session(Road::Plain);
    get(&world, Road::Plain, &session, "/0")
}

#[test]
fn c40_a_body_that_a_reset_ends_is_no_page() {
    each(Road::ALL, World::hostile, |world, road| {
        let session = world
            .recipe(road)
            .clock(Arc::new(SimClock::default()))
            .retry(Retry::long_run().read(1u32))
            .build()
            .unwrap();
        let error = get(world, road, &session, "/b/close-delim-rst").unwrap_err();
        assert_is(&error, ErrorKind::IncompleteBody, Phase::Body, Fault::Target);
        assert_eq!(error.received_bytes(), Some(3));
        assert_eq!(error.requests_name(), "ChunkedEncodingError");
        // A failure of its attempt, and so retried.
        assert_eq!(error.attempts().len(), 2);
        assert!(error.attempts().iter().all(|attempt| attempt.status == Some(200)));

        let response = get(world, road, &session, "/b/close-delim-fin").unwrap();
        assert_eq!(response.text().unwrap(), "abc");
    });
}

#[test]
fn c40_a_reset_right_behind_the_head_is_no_empty_page() {
    let pause = secs(0.02);
    let scripts = vec![
        Script::send("HTTP/1.1 200 OK\r\n\r\n").pause(pause).rst(),
        Script::send("HTTP/1.0 200 OK\r\nServer: old\r\n\r\n").pause(pause).rst(),
        Script::send("HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n").pause(pause).rst(),
    ];
    let count = scripts.len();
    each(
        Road::ALL,
        || scripted(scripts.clone()),
        |world, road| {
            let session = world.session(road);
            for number in 0..count {
                let error = get(world, road, &session, &format!("/{number}")).unwrap_err();
                assert_is(&error, ErrorKind::IncompleteBody, Phase::Body, Fault::Target);
                assert_eq!(error.received_bytes(), Some(0));
            }
        },
    );
}

#[test]
fn c40_under_tls_the_end_needs_the_word_of_tls() {
    let open = "HTTP/1.1 200 OK\r\n\r\nabc";
    let scripts = vec![Script::send(open).fin(), Script::send(open).close()];
    let roads = [Road::Tls, Road::TlsTunnel, Road::TlsInTls, Road::TlsSocks];
    each(
        &roads,
        || scripted(scripts.clone()),
        |world, road| {
            let session = world.session(road);
            assert_eq!(get(world, road, &session, "/0").unwrap().text().unwrap(), "abc");
            let error = get(world, road, &session, "/1").unwrap_err();
            assert_is(&error, ErrorKind::IncompleteBody, Phase::Body, Fault::Target);
            assert!(error.to_string().contains("without the word of TLS"), "{error}");
            assert_eq!(error.received_bytes(), Some(3));
        },
    );
    // In the clear there is no such word, and the close is all there is.
    let world = scripted(scripts);
    let session = world.session(Road::Plain);
    assert_eq!(get(&world, Road::Plain, &session, "/1").unwrap().text().unwrap(), "abc");
}

#[test]
fn c42_a_body_shorter_than_its_length_is_an_error_with_the_count() {
    for (name, kind) in [
        ("cl-short-fin", ErrorKind::IncompleteBody),
        ("cl-short-rst", ErrorKind::IncompleteBody),
        ("cl-hold", ErrorKind::ReadTimeout),
        ("chunk-short-fin", ErrorKind::IncompleteBody),
        ("chunk-short-rst", ErrorKind::IncompleteBody),
        ("chunk-hold", ErrorKind::ReadTimeout),
    ] {
        each(Road::ALL, World::hostile, |world, road| {
            let session = world
                .recipe(road)
                .clock(Arc::new(SimClock::default()))
                .timeout((secs(20.0), secs(0.4)))
                .retry(Retry::long_run().read(1u32))
                .build()
                .unwrap();
            let path = format!("/b/{name}");
            let error = get(world, road, &session, &path).unwrap_err();
            assert_is(&error, kind, Phase::Body, Fault::Target);
            let received = if name.starts_with("cl") { 3 } else { 5 };
            assert_eq!(error.received_bytes(), Some(received), "{name}");
            assert_eq!(error.attempts().len(), 2, "{name}");
            assert_eq!(error.attempts()[1].note, Some("read is used up"));

            // A POST is sent once.
            let before = world.origin(road).counts().requests;
            session.post(world.url(road, &path)).body("x").send().unwrap_err();
            assert_eq!(world.origin(road).counts().requests, before + 1, "{name}");
        });
    }
}

#[test]
fn c42_who_reads_on_after_the_error_is_told_it_again() {
    for name in ["cl-short-fin", "cl-short-rst", "close-delim-rst", "chunk-short-fin", "chunk-plus"]
    {
        each(Road::FOUR, World::hostile, |world, road| {
            let session = world.recipe(road).stream(true).build().unwrap();
            let response = get(world, road, &session, &format!("/b/{name}")).unwrap();
            let mut reader = response.into_reader();
            let mut body = Vec::new();
            let first = reader.read_to_end(&mut body).unwrap_err();
            for _ in 0..3 {
                let again = reader.read(&mut [0; 16]).unwrap_err();
                assert!(first.to_string().starts_with(&again.to_string()), "{name}: {again}");
            }
        });
    }
}

/// Small responses of each framing, and from where on they are complete.
fn small() -> Vec<(&'static str, usize)> {
    let chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n\
                   3\r\nabc\r\n2;x=y\r\nde\r\n0\r\n\r\n";
    let with_trailer = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n\
                        3\r\nabc\r\n0\r\nT: 1\r\n\r\n";
    let length = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nabcde";
    let interim = "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx";
    let empty = "HTTP/1.1 204 No Content\r\nServer: x\r\n\r\n";
    let to_the_end = "HTTP/1.1 200 OK\r\nServer: x\r\n\r\nabcde";
    vec![
        (length, length.len()),
        // RFC 9112, section 8: complete with the zero-sized chunk, whatever becomes of the rest.
        (chunked, chunked.len() - "\r\n".len()),
        (with_trailer, with_trailer.len() - "T: 1\r\n\r\n".len()),
        (interim, interim.len()),
        (empty, empty.len()),
        (to_the_end, to_the_end.find("abcde").unwrap()),
    ]
}

#[test]
fn c42_every_place_to_break_off_is_an_error_and_never_a_page() {
    for (whole, complete) in small() {
        let cuts: Vec<usize> = (0..complete).collect();
        let scripts: Vec<Script> =
            cuts.iter().map(|cut| Script::send(&whole[..*cut]).fin()).collect();
        each(
            Road::FOUR,
            || scripted(scripts.clone()),
            |world, road| {
                let session = world.session(road);
                for cut in &cuts {
                    let error = match get(world, road, &session, &format!("/{cut}")) {
                        Ok(response) => panic!("{:?} is a page: {response:?}", &whole[..*cut]),
                        Err(error) => error,
                    };
                    let head_ends = whole.rfind("HTTP/1.1").unwrap();
                    let head_ends = head_ends + whole[head_ends..].find("\r\n\r\n").unwrap() + 4;
                    let (kind, phase) = if *cut < head_ends {
                        (ErrorKind::Connection, Phase::Headers)
                    } else {
                        (ErrorKind::IncompleteBody, Phase::Body)
                    };
                    assert_is(&error, kind, phase, Fault::Target);
                }
            },
        );
        // Nor is a page more than it says where the end comes late.
        for cut in complete..=whole.len() {
            let response = answer(&whole[..cut]).unwrap();
            let body = response.text().unwrap();
            assert!("abcde".starts_with(&body) || body == "x", "{:?}", &whole[..cut]);
        }
    }
}

#[test]
fn c42_every_place_for_a_reset_is_an_error_and_never_a_page() {
    for (whole, complete) in small() {
        let scripts: Vec<Script> =
            (0..complete).map(|cut| Script::send(&whole[..cut]).pause(secs(0.005)).rst()).collect();
        let count = scripts.len();
        each(
            Road::TWO,
            || scripted(scripts.clone()),
            |world, road| {
                let session = world.session(road);
                for cut in 0..count {
                    let error = get(world, road, &session, &format!("/{cut}")).unwrap_err();
                    assert_eq!(error.fault(), Fault::Target, "{:?}", &whole[..cut]);
                    let kinds = [ErrorKind::Connection, ErrorKind::IncompleteBody];
                    assert!(kinds.contains(&error.kind()), "{:?}: {error}", &whole[..cut]);
                }
            },
        );
    }
    // And where only the close delimits, every reset in the body is one too.
    let whole = "HTTP/1.1 200 OK\r\nServer: x\r\n\r\nabcde";
    let head = whole.find("abcde").unwrap();
    for cut in head..=whole.len() {
        let world = scripted(vec![Script::send(&whole[..cut]).pause(secs(0.005)).rst()]);
        let session = world.session(Road::Plain);
        let error = get(&world, Road::Plain, &session, "/0").unwrap_err();
        assert_is(&error, ErrorKind::IncompleteBody, Phase::Body, Fault::Target);
        assert_eq!(error.received_bytes(), Some((cut - head) as u64));
    }
}

#[test]
fn c44_chunk_extensions_and_padded_sizes() {
    each(Road::ALL, World::hostile, |world, road| {
        let session = world.session(road);
        for (number, name) in
            ["chunk-ext-short", "chunk-ext-long", "chunk-zero-padded"].iter().enumerate()
        {
            let response = get(world, road, &session, &format!("/b/{name}")).unwrap();
            assert_eq!(response.text().unwrap(), "hello", "{name}");
            assert_eq!(response.connection().reused, number > 0, "{name}");
        }
    });
    for extension in [
        ";",
        ";a",
        "; a = b",
        "\t;a=\"x y\"",
        ";a=b;c=d",
        ";a=\"quoted \\\" ; quote\"",
        ";\u{e9}",
        " ",
    ] {
        let body = format!("{CHUNKED}5{extension}\r\nhello\r\n0{extension}\r\n\r\n");
        assert_eq!(answer(&body).unwrap().text().unwrap(), "hello", "{extension:?}");
    }
}

#[test]
fn c44_extensions_are_bounded_each_and_in_all() {
    let chunk = |length: usize| format!("1;{}\r\nx\r\n", "e".repeat(length));
    let page = |chunks: String| answer(format!("{CHUNKED}{chunks}0\r\n\r\n"));
    assert_eq!(page(chunk(16_000)).unwrap().text().unwrap(), "x");
    assert_eq!(page(chunk(12).repeat(3000)).unwrap().text().unwrap().len(), 3000);
    for flood in [chunk(17_000), chunk(9_000).repeat(2), chunk(60).repeat(1000)] {
        let error = page(flood).unwrap_err();
        assert_is(&error, ErrorKind::IncompleteBody, Phase::Body, Fault::Target);
        assert!(error.to_string().contains("16384 bytes"), "{error}");
    }
    let zeros = "0".repeat(17_000);
    assert_eq!(page(format!("{zeros}1\r\nx\r\n")).unwrap_err().kind(), ErrorKind::IncompleteBody);
}

#[test]
fn c45_sizes_that_are_none_are_errors() {
    each(Road::ALL, World::hostile, |world, road| {
        let session = world.session(road);
        for name in ["chunk-plus", "chunk-neg", "chunk-huge", "chunk-hex", "chunk-lf-only"] {
            let error = get(world, road, &session, &format!("/b/{name}")).unwrap_err();
            assert_is(&error, ErrorKind::IncompleteBody, Phase::Body, Fault::Target);
            assert!(error.to_string().contains("the body is malformed"), "{name}: {error}");
        }
    });
    for bad in [
        "",
        " 5",
        "g",
        "5g",
        "5 5",
        "5,5",
        "٥",
        "5\r",
        "\r\n5",
        "10000000000000000",
        "7FFFFFFFFFFFFFFF0",
        "-0",
        "+0",
        "0x0",
        "5.0",
        "\"5\"",
        "\0",
        "5\0",
    ] {
        let error = answer(format!("{CHUNKED}2\r\nab\r\n{bad}\r\nhello\r\n0\r\n\r\n")).unwrap_err();
        assert_is(&error, ErrorKind::IncompleteBody, Phase::Body, Fault::Target);
        assert_eq!(error.received_bytes(), Some(2), "{bad:?}: what was good was delivered");
    }
    // The largest size is a promise that nobody keeps, and costs no memory.
    let error = answer(format!("{CHUNKED}FFFFFFFFFFFFFFF\r\nhello")).unwrap_err();
    assert_is(&error, ErrorKind::IncompleteBody, Phase::Body, Fault::Target);
    assert_eq!(error.received_bytes(), Some(5));
    // Data that is longer or shorter than its size.
    for bad in ["5\r\nhell\r\n0\r\n\r\n", "5\r\nhello!\r\n0\r\n\r\n", "5\r\nhello0\r\n\r\n"] {
        let error = answer(format!("{CHUNKED}{bad}")).unwrap_err();
        assert_is(&error, ErrorKind::IncompleteBody, Phase::Body, Fault::Target);
    }
}

#[test]
fn c48_folded_lines_are_one_line() {
    each(Road::ALL, World::hostile, |world, road| {
        let session = world.session(road);
        let response = get(world, road, &session, "/b/fold").unwrap();
        assert_eq!(response.headers()["x-fold"], "a b");
        assert_eq!(response.text().unwrap(), "ok");
    });
    for (field, name, value) in [
        ("X: a\r\n\tb", "x", "a b"),
        ("X: a\r\n   b\r\n \t c", "x", "a b c"),
        ("X:\r\n a", "x", "a"),
        ("X: a\r\n ", "x", "a"),
        ("X: a\n b", "x", "a b"),
        ("X: a \r\n b ", "x", "a b"),
        ("X: a\r\n b: c", "x", "a b: c"),
        ("Y: 1\r\nX: a\r\n b\r\nZ: 2", "z", "2"),
    ] {
        let head = format!("HTTP/1.1 200 OK\r\n{field}\r\nContent-Length: 2\r\n\r\nok");
        let response = answer(head).unwrap();
        assert_eq!(response.headers()[name], value, "{field:?}");
        assert_eq!(response.text().unwrap(), "ok", "{field:?}");
    }
    // Folded framing frames.
    let response = answer("HTTP/1.1 200 OK\r\nContent-Length:\r\n 2\r\n\r\nokNO").unwrap();
    assert_eq!(response.text().unwrap(), "ok");
    let chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding:\r\n\tchunked\r\n\r\n1\r\nx\r\n0\r\n\r\n";
    assert_eq!(answer(chunked).unwrap().text().unwrap(), "x");
}

/// Lines that are no fields.
const JUNK: &[&str] = &[
    "PHP Warning: x",
    "PHP Warning:  include(): in /var/www/a.php on line 1",
    "nocolonhere",
    ": v",
    ":",
    "X-N: a\0b",
    "X\0: a",
    "<br />",
    "X(Y): 1",
    "X-\u{e9}: 1",
    "X-C: a\rb",
    "X-D: \u{7f}",
    "X-E: \u{1}",
    "HTTP/1.1 200 OK",
    "{\"a\": 1}",
    "=?utf-8?q?x?=: 1",
];

#[test]
fn c49_a_malformed_line_costs_itself_alone() {
    each(Road::ALL, World::hostile, |world, road| {
        let session = world.session(road);
        for (name, kept) in [
            ("space-in-name", None),
            ("space-before-colon", Some(("x-a", "1"))),
            ("no-colon", None),
            ("empty-name", None),
            ("nul-value", None),
        ] {
            let response = get(world, road, &session, &format!("/b/{name}")).unwrap();
            assert_eq!(response.text().unwrap(), "ok", "{name}");
            assert_eq!(response.headers()["content-length"], "2", "{name}");
            assert_eq!(response.headers().len(), 1 + usize::from(kept.is_some()), "{name}");
            if let Some((field, value)) = kept {
                assert_eq!(response.headers()[field], value);
            }
        }
    });
}

#[test]
fn c49_whatever_the_line_and_wherever_it_stands() {
    let mut scripts = Vec::new();
    let mut wanted = Vec::new();
    for junk in JUNK {
        let fields = ["A: 1", "Content-Length: 2", "B: 2"];
        for place in 0..=fields.len() {
            for line_end in ["\r\n", "\n"] {
                let mut lines = vec!["HTTP/1.1 200 OK"];
                lines.extend(&fields[..place]);
                lines.push(junk);
                lines.extend(&fields[place..]);
                let head = lines.join(line_end);
                scripts.push(Script::send(format!("{head}{line_end}{line_end}ok")).fin());
                wanted.push(head);
            }
        }
    }
    each(
        Road::TWO,
        || scripted(scripts.clone()),
        |world, road| {
            let session = world.session(road);
            for (number, head) in wanted.iter().enumerate() {
                let response = get(world, road, &session, &format!("/{number}")).unwrap();
                let fields: Vec<_> =
                    response.headers().keys().map(http::HeaderName::as_str).collect();
                assert_eq!(fields, ["a", "content-length", "b"], "{head:?}");
                assert_eq!(response.text().unwrap(), "ok", "{head:?}");
            }
        },
    );
}

#[test]
fn c49_a_line_that_only_looks_odd_is_kept() {
    for (field, name, value) in [
        ("X-A : 1", "x-a", &b"1"[..]),
        ("X-A\t: 1", "x-a", b"1"),
        ("X-A:1", "x-a", b"1"),
        ("X-A:  1  ", "x-a", b"1"),
        ("X-A:", "x-a", b""),
        ("x!#$%&'*+-.^_`|~9: 1", "x!#$%&'*+-.^_`|~9", b"1"),
        ("X-A: a:b::c", "x-a", b"a:b::c"),
        ("X-A: a\tb", "x-a", b"a\tb"),
    ] {
        let head = format!("HTTP/1.1 200 OK\r\n{field}\r\nContent-Length: 2\r\n\r\nok");
        let response = answer(head).unwrap();
        assert_eq!(response.headers()[name].as_bytes(), value, "{field:?}");
    }
    // A space before the colon does not hide the framing.
    for framing in ["Content-Length : 2", "CONTENT-LENGTH:2"] {
        let response = answer(format!("HTTP/1.1 200 OK\r\n{framing}\r\n\r\nokNO")).unwrap();
        assert_eq!(response.text().unwrap(), "ok");
    }
}

#[test]
fn c49_a_host_that_sends_them_is_named_once() {
    said::listen();
    let warned = |world: &World| {
        let road = Road::Tunnel;
        // All sessions of a run together, and each host by itself.
        let recipe = world.recipe(road);
        for _ in 0..3 {
            let session = recipe.build().unwrap();
            for path in ["/b/no-colon", "/b/space-in-name", "/b/no-colon", "/b/fold"] {
                get(world, road, &session, path).unwrap();
            }
        }
    };
    let text = "origin.test sends malformed header fields";
    let before = said::with(text).len();
    warned(&World::hostile());
    let lines = said::with(text);
    assert_eq!(lines.len(), before + 1, "{lines:?}");
    assert!(lines.last().unwrap().contains("the first is \"nocolonhere\""), "{lines:?}");
}

#[test]
fn c50_status_lines() {
    each(Road::ALL, World::hostile, |world, road| {
        let session = world.session(road);
        for (name, status) in
            [("no-reason", 200), ("lf-only", 200), ("leading-crlf", 200), ("status-999", 999)]
        {
            let response = get(world, road, &session, &format!("/b/{name}")).unwrap();
            assert_eq!(response.status(), status, "{name}");
            assert_eq!(response.text().unwrap(), "ok", "{name}");
        }
        for name in
            ["http09", "icy", "http2-line", "leading-junk", "status-099", "status-1000", "html"]
        {
            let session = world.session(road);
            let error = get(world, road, &session, &format!("/b/{name}")).unwrap_err();
            assert_is(&error, ErrorKind::Protocol, Phase::Headers, Fault::Target);
        }
    });
    for (line, status, reason) in [
        ("HTTP/1.0 200 OK", 200, "OK"),
        ("HTTP/1.1 200 ", 200, ""),
        ("HTTP/1.1 404 Nicht gefunden!", 404, "Nicht gefunden!"),
        ("HTTP/1.1 599 x", 599, "x"),
        ("HTTP/1.1 600 x", 600, "x"),
        ("HTTP/1.1  200  OK", 200, "OK"),
    ] {
        let response = answer(format!("{line}\r\nContent-Length: 2\r\n\r\nok")).unwrap();
        assert_eq!((response.status(), response.reason()), (status, reason), "{line:?}");
    }
    for line in [
        "HTTP/1.1",
        "HTTP/1.1 ",
        "HTTP/1.1 2",
        "HTTP/1.1 20",
        "HTTP/1.1 2000",
        "HTTP/1.1 -20",
        "HTTP/1.1 abc",
        "HTTP/1.1 000 x",
        "HTTP/2.0 200 OK",
        "HTTP/3 200",
        "HTTP/1.11 200 OK",
        "HTTP/11 200 OK",
        "http/1.1 200 OK",
        "HTTPS/1.1 200 OK",
        "HTTP 200 OK",
        "200 OK",
        "SSH-2.0-OpenSSH_9",
        "220 mail ready",
        "\u{feff}HTTP/1.1 200 OK",
    ] {
        let error = answer(format!("{line}\r\nContent-Length: 2\r\n\r\nok")).unwrap_err();
        assert_is(&error, ErrorKind::Protocol, Phase::Headers, Fault::Target);
    }
}

#[test]
fn c51_limits_of_a_head_and_what_is_beyond_them() {
    each(Road::ALL, World::hostile, |world, road| {
        let session = world.session(road);
        for name in ["headers-100", "headers-150", "head-60k"] {
            let response = get(world, road, &session, &format!("/b/{name}")).unwrap();
            assert_eq!(response.text().unwrap(), "ok", "{name}");
        }
        for name in ["head-70k", "head-endless"] {
            let error = get(world, road, &session, &format!("/b/{name}")).unwrap_err();
            assert_is(&error, ErrorKind::TooLarge, Phase::Headers, Fault::Target);
            assert!(error.to_string().contains("longer than 64 KiB"), "{error}");
        }
    });
    let fields = |count: usize| {
        let fields = (0..count).fold(String::new(), |mut fields, number| {
            write!(fields, "X-{number}: v\r\n").unwrap();
            fields
        });
        answer(format!("HTTP/1.1 204 OK\r\n{fields}\r\n"))
    };
    assert_eq!(fields(200).unwrap().headers().len(), 200);
    let error = fields(201).unwrap_err();
    assert_is(&error, ErrorKind::TooLarge, Phase::Headers, Fault::Target);
    assert!(error.to_string().contains("200 header fields"), "{error}");
    // The same name counts each time.
    let same = answer(format!("HTTP/1.1 204 OK\r\n{}\r\n", "A: b\r\n".repeat(201)));
    assert_eq!(same.unwrap_err().kind(), ErrorKind::TooLarge);
}

#[test]
fn c51_the_limit_is_exact_however_the_bytes_arrive() {
    let frame = "HTTP/1.1 204 OK\r\nX: \r\n\r\n".len();
    let head =
        |length: usize| format!("HTTP/1.1 204 OK\r\nX: {}\r\n\r\n", "a".repeat(length - frame));
    for (length, passes) in
        [(LIMIT - 1, true), (LIMIT, true), (LIMIT + 1, false), (LIMIT + 9, false)]
    {
        let whole = head(length);
        let mut scripts = vec![Script::send(&whole).fin()];
        for piece in [100, LIMIT / 2, LIMIT - 1, length - 1] {
            let (first, second) = whole.split_at(piece);
            scripts.push(Script::send(first).pause(secs(0.01)).then_send(second).fin());
        }
        let count = scripts.len();
        each(
            Road::TWO,
            || scripted(scripts.clone()),
            |world, road| {
                let session = world.session(road);
                for number in 0..count {
                    let result = get(world, road, &session, &format!("/{number}"));
                    assert_eq!(result.is_ok(), passes, "{length} {number}");
                }
            },
        );
    }
}

#[test]
fn c52_interim_responses_are_passed_over() {
    each(Road::ALL, World::hostile, |world, road| {
        let session = world.session(road);
        for name in ["100-unsolicited", "100-with-headers", "103-then-200"] {
            let response = get(world, road, &session, &format!("/b/{name}")).unwrap();
            assert_eq!(
                (response.status(), response.text().unwrap().as_str()),
                (200, "ok"),
                "{name}"
            );
            assert!(!response.headers().contains_key("link"), "{name}");
            assert_eq!(response.history().len(), 0);
        }
        let response = get(world, road, &session, "/b/103-then-big-burst").unwrap();
        assert_eq!(response.bytes().unwrap().len(), 200_000);
        let error = get(world, road, &session, "/b/100-endless").unwrap_err();
        assert_is(&error, ErrorKind::Protocol, Phase::Headers, Fault::Target);
        assert!(error.to_string().contains("more than 16 interim responses"), "{error}");
    });
}

#[test]
fn c52_sixteen_of_any_kind_and_not_one_more() {
    for interim in [
        "HTTP/1.1 100 Continue\r\n\r\n",
        "HTTP/1.1 102 Processing\r\nX: y\r\n\r\n",
        "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\nLink: </b>\r\n\r\n",
        "HTTP/1.1 199 Whatever\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n",
        "HTTP/1.0 100\n\n",
        "HTTP/1.1 100 Continue\r\nPHP Warning: x\r\n fold\r\n\r\n",
    ] {
        let response = answer(format!("{}{OK}", interim.repeat(16))).unwrap();
        assert_eq!((response.status(), response.text().unwrap().as_str()), (200, "ok"));
        let error = answer(format!("{}{OK}", interim.repeat(17))).unwrap_err();
        assert_is(&error, ErrorKind::Protocol, Phase::Headers, Fault::Target);
    }
    // 101 is final, and nothing of HTTP follows it.
    let response = answer("HTTP/1.1 101 Switching\r\nUpgrade: x\r\n\r\njunk").unwrap();
    assert_eq!(response.status(), 101);
    // An interim response and nothing else is no response.
    let error = answer("HTTP/1.1 103 Early Hints\r\n\r\n").unwrap_err();
    assert_is(&error, ErrorKind::Connection, Phase::Headers, Fault::Target);
}

#[test]
fn c52_an_interim_response_in_the_middle_of_an_upload() {
    let continues = Script::send("HTTP/1.1 100 Continue\r\nServer: x\r\n\r\n");
    let world = || {
        let script = continues.clone().sip(1 << 20, secs(0.0)).then_send(OK);
        World::new(Origin::builder().on_head(move |_| Some(script.clone())))
    };
    each(Road::FOUR, world, |world, road| {
        let session = world.session(road);
        for body in [vec![b'z'; 100], vec![b'z'; 20_000_000]] {
            let post = session.post(world.url(road, "/")).body(body);
            let response = post.header("Expect", "100-continue").send().unwrap();
            assert_eq!((response.status(), response.text().unwrap().as_str()), (200, "ok"));
        }
    });
}

#[test]
fn c54_values_are_bytes_and_lines_stay_lines() {
    each(Road::ALL, World::hostile, |world, road| {
        let session = world.session(road);
        let response = get(world, road, &session, "/b/latin1-value").unwrap();
        assert_eq!(response.headers()["x-n"].as_bytes(), b"caf\xe9");
    });
    let cookies = b"HTTP/1.1 200 OK\r\nSet-Cookie: a=1\r\nX-Two: 2\r\nset-cookie: b=caf\xe9\r\n\
        X-Two: 1\r\nSET-COOKIE: c=3\r\nContent-Type: text/html; charset=\xfc\r\nContent-Length: 2\r\n\r\nok";
    let response = answer(cookies).unwrap();
    let all = |name: &str| -> Vec<Vec<u8>> {
        response.headers().get_all(name).iter().map(|value| value.as_bytes().to_vec()).collect()
    };
    assert_eq!(all("set-cookie"), [&b"a=1"[..], b"b=caf\xe9", b"c=3"]);
    assert_eq!(all("x-two"), [b"2", b"1"]);
    assert_eq!(response.text().unwrap(), "ok");
    // Every byte that a value may hold goes through.
    let bytes: Vec<u8> = (0x21..=0xff).filter(|byte| *byte != 0x7f).collect();
    let head =
        [&b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nX: "[..], &bytes, b"\r\n\r\nok"].concat();
    assert_eq!(answer(head).unwrap().headers()["x"].as_bytes(), bytes);
}

#[test]
fn c55_trailers_are_passed_over_and_the_connection_is_kept() {
    let trailers = [
        "",
        "X-T: 1\r\n",
        "X-T: 1\r\nX-U: 2\r\n",
        "Content-Length: 5\r\n",
        "Set-Cookie: a=b\r\n",
        "nocolon\r\n",
        " fold\r\n",
        "X: caf\u{e9}\r\n",
        "Transfer-Encoding: chunked\r\n",
        "HTTP/1.1 200 OK\r\n",
    ];
    let scripts: Vec<Script> = trailers
        .iter()
        .map(|trailer| Script::send(format!("{CHUNKED}5\r\nhello\r\n0\r\n{trailer}\r\n")))
        .collect();
    each(
        Road::ALL,
        || scripted(scripts.clone()),
        |world, road| {
            let session = world.session(road);
            for (number, trailer) in trailers.iter().enumerate() {
                let response = get(world, road, &session, &format!("/{number}")).unwrap();
                assert_eq!(response.text().unwrap(), "hello");
                assert_eq!(response.headers().len(), 1, "{trailer:?}");
                assert_eq!(response.connection().reused, number > 0, "{trailer:?}");
            }
            assert_eq!(world.origin(road).counts().accepted, 1);
        },
    );
    let long = |length: usize| {
        answer(format!("{CHUNKED}1\r\nx\r\n0\r\nT: {}\r\n\r\n", "t".repeat(length)))
    };
    assert_eq!(long(16_000).unwrap().text().unwrap(), "x");
    let error = long(17_000).unwrap_err();
    assert_is(&error, ErrorKind::IncompleteBody, Phase::Body, Fault::Target);
    let many = "T: x\r\n".repeat(4000);
    let error = answer(format!("{CHUNKED}1\r\nx\r\n0\r\n{many}\r\n")).unwrap_err();
    assert!(error.to_string().contains("trailers exceed 16384 bytes"), "{error}");
}

/// Length and coding as the standard resolves them where they disagree.
#[test]
fn framing_that_is_said_twice_or_badly() {
    for (fields, body, wanted) in [
        ("Content-Length: 2\r\nContent-Length: 2", "okNO", Some("ok")),
        ("Content-Length: 2, 2", "okNO", Some("ok")),
        ("Content-Length: 2\r\nTransfer-Encoding: chunked", "1\r\nx\r\n0\r\n\r\n", Some("x")),
        ("Transfer-Encoding: chunked\r\nContent-Length: 900", "1\r\nx\r\n0\r\n\r\n", Some("x")),
        ("Transfer-Encoding: Chunked", "1\r\nx\r\n0\r\n\r\n", Some("x")),
        ("Transfer-Encoding: identity\r\nContent-Length: 2", "okNO", Some("ok")),
        ("Transfer-Encoding: identity, chunked", "1\r\nx\r\n0\r\n\r\n", Some("x")),
        ("Transfer-Encoding:\r\nContent-Length: 2", "okNO", Some("ok")),
        ("Content-Length:", "all of it", Some("all of it")),
        ("Content-Length: 2\r\nContent-Length: 3", "okay", None),
        ("Content-Length: 2, 3", "okay", None),
        ("Content-Length: +2", "ok", None),
        ("Content-Length: -1", "ok", None),
        ("Content-Length: 0x2", "ok", None),
        ("Content-Length: 2 2", "ok", None),
        ("Content-Length: 2;", "ok", None),
        ("Content-Length: 99999999999999999999", "ok", None),
        ("Content-Length: ok", "ok", None),
    ] {
        match (answer(format!("HTTP/1.1 200 OK\r\n{fields}\r\n\r\n{body}")), wanted) {
            (Ok(response), Some(wanted)) => {
                assert_eq!(response.text().unwrap(), wanted, "{fields}");
            }
            (Err(error), None) => {
                assert_is(&error, ErrorKind::Protocol, Phase::Headers, Fault::Target);
            }
            (result, _) => panic!("{fields}: {result:?}"),
        }
    }
    // Both at once is believed this time, and the connection not a second time.
    let both = "HTTP/1.1 200 OK\r\nContent-Length: 6\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n";
    each(
        Road::FOUR,
        || sending(both),
        |world, road| {
            let session = world.session(road);
            for _ in 0..2 {
                assert_eq!(get(world, road, &session, "/").unwrap().text().unwrap(), "x");
            }
            assert_eq!(world.origin(road).counts().accepted, 2);
        },
    );
}

#[test]
fn no_body_where_none_is_possible_and_the_next_response_is_the_next() {
    each(Road::ALL, World::hostile, |world, road| {
        let session = world.session(road);
        let response = get(world, road, &session, "/b/304-cl").unwrap();
        assert_eq!((response.status(), response.body()), (304, &b""[..]));
        let response = get(world, road, &session, "/b/304-cl").unwrap();
        assert_eq!((response.status(), response.text().unwrap().as_str()), (200, "ok"));
        for method in [Method::HEAD, Method::GET, Method::HEAD] {
            let url = world.url(road, "/b/ok");
            let response = session.request(method.clone(), url).send().unwrap();
            let length = if method == Method::HEAD { 0 } else { 2 };
            assert_eq!(response.body().len(), length);
            assert!(response.connection().reused);
        }
    });
}

#[test]
fn what_must_not_be_kept_is_closed() {
    for (bytes, kept) in [
        (OK, true),
        ("HTTP/1.1 200 OK\r\nConnection: keep-alive\r\nContent-Length: 2\r\n\r\nok", true),
        ("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok", false),
        ("HTTP/1.1 200 OK\r\nConnection: Upgrade, CLOSE\r\nContent-Length: 2\r\n\r\nok", false),
        ("HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok", false),
        ("HTTP/1.0 200 OK\r\nConnection: Keep-Alive\r\nContent-Length: 2\r\n\r\nok", true),
        ("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok and more", false),
        ("HTTP/1.1 204 No\r\nContent-Length: 5\r\n\r\nhello", false),
    ] {
        each(
            Road::FOUR,
            || sending(bytes),
            |world, road| {
                let session = world.session(road);
                for _ in 0..2 {
                    get(world, road, &session, "/").unwrap();
                }
                let accepted = world.origin(road).counts().accepted;
                assert_eq!(accepted, if kept { 1 } else { 2 }, "{bytes:?}");
            },
        );
    }
}

/// A script that lets the client read what comes before the split by itself.
fn split(whole: &[u8], at: usize) -> Script {
    Script::send(&whole[..at]).pause(secs(0.001)).then_send(&whole[at..])
}

#[test]
fn heads_and_bodies_in_two_pieces_wherever_they_break() {
    let whole = b"\r\nHTTP/1.1 103 Hints\r\nLink: x\r\n\r\nHTTP/1.1 200 OK\r\nX-Fold: a\r\n b\r\n\
        no colon\r\nTransfer-Encoding: chunked\r\n\r\n00A;e=\"f\"\r\n0123456789\r\n5\r\nhello\r\n\
        0\r\nT: 1\r\n\r\n";
    let scripts: Vec<Script> = (0..=whole.len()).map(|at| split(whole, at)).collect();
    each(
        Road::FOUR,
        || scripted(scripts.clone()),
        |world, road| {
            let session = world.session(road);
            for at in 0..=whole.len() {
                let response = get(world, road, &session, &format!("/{at}")).unwrap();
                assert_eq!(response.text().unwrap(), "0123456789hello", "{at}");
                assert_eq!(response.headers()["x-fold"], "a b", "{at}");
                assert_eq!(response.headers().len(), 2, "{at}");
                assert_eq!(response.connection().reused, at > 0, "{at}");
            }
        },
    );
}

#[test]
fn a_response_in_pieces_of_one_byte() {
    for (whole, _) in small() {
        let script = Script::new().drip(whole, secs(0.0005)).fin();
        each(
            Road::FOUR,
            || scripted(vec![script.clone()]),
            |world, road| {
                let session = world.session(road);
                let response = get(world, road, &session, "/0").unwrap();
                let text = response.text().unwrap();
                assert!(["abcde", "abc", "x", ""].contains(&text.as_str()), "{text:?}");
                let whole_body = whole.contains("Length: 5") || whole.contains("2;x=y");
                assert!(!whole_body || text == "abcde");
            },
        );
    }
}
