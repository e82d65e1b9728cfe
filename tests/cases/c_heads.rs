//! Section C: heads as servers write them.

use crate::answers::{answer, each_of, get, scripted};
use crate::roads::{Road, World, assert_is, each};
use crate::said;
use longhaul::batch::{Batch, RecordWriter, Source};
use longhaul::error::{ErrorKind, Fault, Phase};
use longhaul::lab::{Origin, Script};
use longhaul::message::MAX_CODINGS;
use longhaul::{Session, secs};
use std::fmt::Write as _;

const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
const LIMIT: usize = 64 * 1024;

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
    warned(&World::hostile());
    let lines = said::here(text);
    assert_eq!(lines.len(), 1, "{lines:?}");
    assert!(lines[0].contains("the first is \"nocolonhere\""), "{lines:?}");
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
        each_of(Road::TWO, &scripts, |number, result| {
            assert_eq!(result.is_ok(), passes, "{length} {number}");
        });
    }
}

/// What the page of errors says of the limits: how many, and the kind beyond them.
fn documented(of: &str) -> (usize, String) {
    let page = include_str!("../../docs/errors.md");
    let row = page.lines().find(|line| line.starts_with(&format!("| {of} |"))).unwrap();
    let cells: Vec<&str> = row.trim_matches('|').split('|').map(str::trim).collect();
    let (number, unit) = cells[1].split_once(' ').unwrap_or((cells[1], ""));
    let factor = if unit == "KiB" { 1024 } else { 1 };
    (number.parse::<usize>().unwrap() * factor, cells[2].trim_matches('`').to_owned())
}

#[test]
fn c51_every_limit_is_documented_as_it_is() {
    let head = |fields: &str| format!("HTTP/1.1 200 OK\r\n{fields}\r\n");
    let chunked = |body: &str| head("Transfer-Encoding: chunked\r\n") + body;
    let empty = "Content-Length: 0\r\n";
    // A response with so much of it, ends of lines included.
    let long_head = |length: usize| {
        let frame = head(&format!("X: \r\n{empty}")).len();
        head(&format!("X: {}\r\n{empty}", "x".repeat(length - frame)))
    };
    let fields = |count: usize| head(&("A: b\r\n".repeat(count - 1) + empty));
    let interim = |count: usize| "HTTP/1.1 103 Hints\r\n\r\n".repeat(count) + OK;
    let size_line =
        |length: usize| chunked(&format!("1;{}\r\nx\r\n0\r\n\r\n", "x".repeat(length - 4)));
    let trailers =
        |length: usize| chunked(&format!("1\r\nx\r\n0\r\nT:{}\r\n\r\n", "x".repeat(length - 6)));
    let responses: [(&str, &dyn Fn(usize) -> String); 5] = [
        ("a response head", &long_head),
        ("header fields", &fields),
        ("interim responses", &interim),
        ("the size line of a chunk, with its extensions", &size_line),
        ("the trailers", &trailers),
    ];
    for (of, response) in responses {
        let (limit, kind) = documented(of);
        assert!(answer(response(limit)).is_ok(), "{of}: {limit}");
        let error = answer(response(limit + 1)).unwrap_err();
        assert_eq!(error.kind().name(), kind, "{of}: {}", limit + 1);
    }
    // Those below have tests of their own.
    let codings = documented("content codings in a chain");
    assert_eq!(codings, (MAX_CODINGS, ErrorKind::ContentDecoding.name().to_owned()));
    let redirects = documented("redirects in a chain (`max_redirects`)");
    let most = Session::new().unwrap().settings().max_redirects as usize;
    assert_eq!(redirects, (most, ErrorKind::TooManyRedirects.name().to_owned()));
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
    // As text a byte is the character of its number, and lines are joined as in requests.
    let cookies = "a=1, b=caf\u{e9}, c=3";
    assert_eq!(response.header("Set-Cookie").as_deref(), Some(cookies));
    assert_eq!(response.header("x-two").as_deref(), Some("2, 1"));
    assert_eq!((response.header("x-none"), response.header("no name")), (None, None));
    // Every byte that a value may hold goes through.
    let bytes: Vec<u8> = (0x21..=0xff).filter(|byte| *byte != 0x7f).collect();
    let head =
        [&b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nX: "[..], &bytes, b"\r\n\r\nok"].concat();
    assert_eq!(answer(head).unwrap().headers()["x"].as_bytes(), bytes);
}

#[test]
fn c54_a_record_names_each_cookie_that_was_set() {
    let refusal =
        b"HTTP/1.1 403 No\r\nSet-Cookie: a=1\r\nset-cookie: b=caf\xe9\r\nSET-COOKIE: a=2\r\n\
        Server: caf\xe9\r\nVia: 1.1 a\r\nVia: 1.1 b\r\nContent-Length: 0\r\n\r\n";
    let world = scripted(vec![Script::send(refusal)]);
    let out = tempfile::NamedTempFile::new().unwrap();
    Batch::builder(world.recipe(Road::Plain))
        .source(Source::urls([world.url(Road::Plain, "/0")]))
        .sink(RecordWriter::stream("the test", out.reopen().unwrap()))
        .slow_lane(None)
        .build()
        .unwrap()
        .run()
        .unwrap();
    let line = std::fs::read_to_string(out.path()).unwrap();
    let record: serde_json::Value = serde_json::from_str(&line).unwrap();
    let refused = &record["refused"];
    assert_eq!(refused["set_cookie_names"], serde_json::json!(["a", "b", "a"]), "{line}");
    assert_eq!(refused["via"], "1.1 a, 1.1 b");
    assert_eq!((&refused["server"], &refused["lossy"]), (&"caf\u{fffd}".into(), &true.into()));
}
