//! Section D: from bytes to text.

use crate::answers::{answer, get, scripted};
use crate::roads::{Road, each};
use longhaul::Response;
use longhaul::lab::{Reply, Script};
use longhaul::secs;
use longhaul::time::{Clock, SystemClock};

/// A page of these bytes under this `Content-Type`, or under none.
fn page(content_type: Option<&[u8]>, body: &[u8]) -> Script {
    let reply = Reply::ok(body);
    match content_type {
        Some(value) => reply.header("Content-Type", value),
        None => reply,
    }
    .into()
}

fn response(content_type: &str, body: &[u8]) -> Response {
    let head = format!("Content-Type: {content_type}\r\nContent-Length: {}", body.len());
    answer([format!("HTTP/1.1 200 OK\r\n{head}\r\n\r\n").as_bytes(), body].concat()).unwrap()
}

/// Content-Type, body, the label that it comes to, the text.
const REPORTED: &[(&str, &[u8], Option<&str>, &str)] = &[
    // Without a charset text is ISO-8859-1, whatever a meta tag in it says: as requests.
    (
        "text/html",
        b"<meta charset=utf-8>caf\xc3\xa9",
        Some("ISO-8859-1"),
        "<meta charset=utf-8>caf\u{c3}\u{a9}",
    ),
    ("text/html; charset=\"UTF-8\"", b"caf\xc3\xa9", Some("UTF-8"), "caf\u{e9}"),
    ("text/html; charset='utf-8'", b"caf\xc3\xa9", Some("utf-8"), "caf\u{e9}"),
    ("text/html; charset=utf8; foo", b"caf\xc3\xa9", Some("utf8"), "caf\u{e9}"),
    ("text/html; Charset=ISO-8859-1", b"caf\xe9", Some("ISO-8859-1"), "caf\u{e9}"),
    ("text/html", b"\xff\xfec\0a\0f\0\xe9\0", Some("ISO-8859-1"), "caf\u{e9}"),
    ("text/html; charset=none", b"caf\xc3\xa9", Some("none"), "caf\u{e9}"),
    ("text/html; charset=iso-8559-1", b"caf\xc3\xa9\xff", Some("iso-8559-1"), "caf\u{e9}\u{fffd}"),
    ("text/html; charset=utf-8", b"caf\xe9!", Some("utf-8"), "caf\u{fffd}!"),
];

#[test]
fn c68_the_reported_ones() {
    let scripts: Vec<_> = REPORTED
        .iter()
        .map(|(content_type, body, ..)| page(Some(content_type.as_bytes()), body))
        .collect();
    each(
        &[Road::Plain, Road::Forward, Road::TlsTunnel],
        || scripted(scripts.clone()),
        |world, road| {
            let session = world.session(road);
            for (number, (content_type, body, label, text)) in REPORTED.iter().enumerate() {
                let response = get(world, road, &session, &format!("/{number}")).unwrap();
                assert_eq!(response.encoding().as_deref(), *label, "{content_type}");
                assert_eq!(response.text().unwrap(), *text, "{content_type}");
                // The bytes are there whatever the text is.
                assert_eq!(response.bytes().unwrap(), *body);
                let url = world.url(road, &format!("/{number}"));
                let streamed = session.get(url).stream(true).send().unwrap();
                assert_eq!(streamed.text().unwrap(), *text);
            }
        },
    );
}

#[test]
fn c68_every_spelling_of_the_parameter() {
    let cafe = "caf\u{e9}";
    for content_type in [
        "text/html;charset=utf-8",
        "text/html; CHARSET=UTF-8",
        "text/html ; charset = utf-8",
        "text/html;;charset=utf-8;",
        "text/html; a=b; charset=utf-8",
        "text/html; charset=latin1; charset=utf-8",
        "text/html; charset=\"utf-8\"; x=\"y\"",
        "text/html; charset=utf_8",
        "text/html; charset=UTF8",
        "text/html; \"charset\"=utf-8",
        "TEXT/HTML; charset=utf-8",
        "image/png; charset=utf-8",
        "; charset=utf-8",
        "charset=utf-8; charset=utf-8",
    ] {
        assert_eq!(response(content_type, cafe.as_bytes()).text().unwrap(), cafe, "{content_type}");
    }
    // What names none.
    for content_type in ["text/html; charset", "text/html; charset;", "text/html; xcharset=utf-8"] {
        let text = response(content_type, cafe.as_bytes()).text().unwrap();
        assert_eq!(text, "caf\u{c3}\u{a9}", "{content_type}");
    }
    let text = response("text/html; charset=", cafe.as_bytes()).text().unwrap();
    assert_eq!(text, cafe, "an empty label is unknown, and so lossy UTF-8");
}

#[test]
fn c68_charsets_that_the_web_writes() {
    for (label, body, text) in [
        ("windows-1252", &b"\x80 \x93q\x94"[..], "\u{20ac} \u{201c}q\u{201d}"),
        // As in Python, and unlike in browsers.
        ("iso-8859-1", b"\x80", "\u{80}"),
        ("us-ascii", b"a\x80", "a\u{fffd}"),
        ("iso-8859-2", b"\xb3\xf3d\xbc", "\u{142}\u{f3}d\u{17a}"),
        ("windows-1251", b"\xcc\xe8\xf0", "\u{41c}\u{438}\u{440}"),
        ("koi8-r", b"\xed\xc9\xd2", "\u{41c}\u{438}\u{440}"),
        ("shift_jis", b"\x93\xfa\x96\x7b", "\u{65e5}\u{672c}"),
        ("euc-jp", b"\xc6\xfc\xcb\xdc", "\u{65e5}\u{672c}"),
        ("iso-2022-jp", b"\x1b$BF|K\\\x1b(B", "\u{65e5}\u{672c}"),
        ("gb2312", b"\xd6\xd0", "\u{4e2d}"),
        ("gbk", b"\xd6\xd0", "\u{4e2d}"),
        ("big5", b"\xa4\xa4", "\u{4e2d}"),
        ("euc-kr", b"\xc7\xd1", "\u{d55c}"),
        ("utf-16", b"h\0i\0", "hi"),
        ("utf-16le", b"h\0i\0", "hi"),
        ("utf-16be", b"\0h\0i", "hi"),
    ] {
        let response = response(&format!("text/plain; charset={label}"), body);
        assert_eq!(response.text().unwrap(), text, "{label}");
    }
}

#[test]
fn c68_byte_order_marks() {
    let marked: [(&[u8], &str); 3] = [
        (b"\xef\xbb\xbfh\xc3\xa9", "UTF-8"),
        (b"\xff\xfeh\0\xe9\0", "UTF-16LE"),
        (b"\xfe\xff\0h\0\xe9", "UTF-16BE"),
    ];
    for (body, name) in marked {
        // Where the field says nothing the mark decides, and it is no part of the text.
        for content_type in ["text/html", "application/octet-stream", "text/plain; q=1"] {
            let response = response(content_type, body);
            assert_eq!(response.text().unwrap(), "h\u{e9}", "{content_type} {name}");
            assert_eq!(response.apparent_encoding().unwrap(), name);
        }
        let own = response(&format!("text/html; charset={name}"), body);
        assert_eq!(own.text().unwrap(), "h\u{e9}", "{name}");
    }
    // What the field says counts for more.
    let latin = response("text/html; charset=iso-8859-1", b"\xef\xbb\xbfh");
    assert_eq!(latin.text().unwrap(), "\u{ef}\u{bb}\u{bf}h");
    // Nothing but a mark, and less than one.
    for (body, text) in [(&b"\xef\xbb\xbf"[..], ""), (b"\xff\xfe", ""), (b"", "")] {
        assert_eq!(response("text/html", body).text().unwrap(), text, "{body:?}");
    }
}

#[test]
fn c68_without_a_type_the_bytes_decide() {
    let russian = "\u{41f}\u{440}\u{438}\u{432}\u{435}\u{442}, \u{43c}\u{438}\u{440}! ".repeat(20);
    let (windows, _, _) = encoding_rs::WINDOWS_1251.encode(&russian);
    let bodies: [(&[u8], &str); 3] =
        [(russian.as_bytes(), &russian), (&windows, &russian), (b"plain", "plain")];
    let scripts: Vec<_> = bodies
        .iter()
        .flat_map(|(body, _)| [page(None, body), page(Some(b"application/x-unknown"), body)])
        .collect();
    let world = scripted(scripts);
    let session = world.session(Road::Plain);
    for (number, (_, text)) in bodies.iter().enumerate() {
        for variant in [0, 1] {
            let path = format!("/{}", 2 * number + variant);
            let response = get(&world, Road::Plain, &session, &path).unwrap();
            assert_eq!(response.encoding(), None);
            assert_eq!(response.text().unwrap(), *text, "{path}");
        }
    }
}

#[test]
fn c68_no_label_and_no_body_can_make_text_fail() {
    let all: Vec<u8> = (0..=255).collect();
    let mut labels: Vec<Vec<u8>> =
        ["x-user-defined", "replacement", "hz-gb-2312", "utf-7", "\"", "'"]
            .iter()
            .map(|label| label.as_bytes().to_vec())
            .collect();
    // Bytes that are no text themselves.
    labels.extend([b"\xff\xfe".to_vec(), b"utf-8\xe9".to_vec(), vec![b'x'; 5000]]);
    let scripts: Vec<_> = labels
        .iter()
        .map(|label| page(Some(&[b"text/html; charset=", &label[..]].concat()), &all))
        .collect();
    let count = scripts.len();
    let world = scripted(scripts);
    let session = world.session(Road::Plain);
    for number in 0..count {
        let response = get(&world, Road::Plain, &session, &format!("/{number}")).unwrap();
        assert!(!response.text().unwrap().is_empty(), "{number}");
        assert_eq!(response.bytes().unwrap(), all);
        let lines = response.lines().map(Result::unwrap).count();
        assert!(lines > 0, "{number}");
    }
}

#[test]
fn c68_lines_and_json_under_a_charset() {
    let lines = |content_type: &str, body: &[u8]| -> Vec<String> {
        response(content_type, body).lines().map(Result::unwrap).collect()
    };
    assert_eq!(
        lines("text/plain; charset=windows-1251", b"\xcc\r\n\xe8\n"),
        ["\u{41c}", "\u{438}"]
    );
    assert_eq!(lines("text/plain; charset=utf-16le", b"a\0\n\0\x0a\x01\n\0"), ["a", "\u{10a}"]);
    assert_eq!(lines("text/plain; charset=utf-8", b"a\xff\nb"), ["a\u{fffd}", "b"]);
    let json = |content_type: &str, body: &[u8]| -> String {
        response(content_type, body).json().unwrap()
    };
    for (content_type, body) in [
        ("application/json", &b"\"caf\xc3\xa9\""[..]),
        ("application/json", b"\xef\xbb\xbf\"caf\xc3\xa9\""),
        ("application/json; charset=iso-8859-1", b"\"caf\xe9\""),
        ("application/json", b"\"\0c\0a\0f\0\xe9\0\"\0"),
        ("text/html", b"\"caf\xc3\xa9\""),
    ] {
        assert_eq!(json(content_type, body), "caf\u{e9}", "{content_type} {body:?}");
    }
}

#[test]
fn c69_detection_looks_at_the_beginning_only() {
    let begin = vec![b'a'; 64 * 1024];
    // Behind the sample stands what would decide otherwise.
    let other: Vec<u8> = [&begin[..], &b"\xcf\xf0\xe8\xe2\xe5\xf2 ".repeat(1000)].concat();
    let scripts = vec![
        page(Some(b"application/octet-stream"), &begin),
        page(Some(b"application/octet-stream"), &other),
        page(Some(b"application/octet-stream"), &other[begin.len()..]),
    ];
    let world = scripted(scripts);
    let session = world.session(Road::Plain);
    let [of_begin, of_other, of_rest] = ["/0", "/1", "/2"].map(|path| {
        let response = get(&world, Road::Plain, &session, path).unwrap();
        response.apparent_encoding().unwrap()
    });
    assert_eq!(of_begin, of_other);
    assert_ne!(of_begin, of_rest);
}

#[test]
fn c69_text_of_a_large_binary_body_takes_no_minutes() {
    // All bytes there are, in no order that means anything.
    let noise: Vec<u8> =
        (0..4_u32 << 20).map(|n| (n.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    let world = scripted(vec![page(Some(b"application/octet-stream"), &noise)]);
    let session = world.recipe(Road::Plain).build().unwrap();
    let response = get(&world, Road::Plain, &session, "/0").unwrap();
    assert_eq!(response.body().len(), noise.len());
    let begun = SystemClock.now();
    assert!(response.text().unwrap().len() > 1 << 20);
    response.apparent_encoding().unwrap();
    // It takes a second without optimisation; what is quadratic would take hours.
    assert!(SystemClock.now() - begun < secs(60.0));
}
