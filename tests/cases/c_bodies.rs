//! Section C: bodies that end where they should not, and chunks.

use crate::answers::{answer, each_of, get, scripted};
use crate::roads::{Road, World, assert_is, each};
use longhaul::error::{ErrorKind, Fault, Phase};
use longhaul::lab::Script;
use longhaul::secs;
use std::io::Read;

const CHUNKED: &str = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";

#[test]
fn c40_a_body_that_a_reset_ends_is_no_page() {
    each(Road::ALL, World::hostile, |world, road| {
        let session = world.reading_twice(road).build().unwrap();
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
    each_of(Road::ALL, &scripts, |_, result| {
        let error = result.unwrap_err();
        assert_is(&error, ErrorKind::IncompleteBody, Phase::Body, Fault::Target);
        assert_eq!(error.received_bytes(), Some(0));
    });
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
            let session =
                world.reading_twice(road).timeout((secs(20.0), secs(0.4))).build().unwrap();
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
        each_of(Road::TWO, &scripts, |cut, result| {
            let error = result.unwrap_err();
            assert_eq!(error.fault(), Fault::Target, "{:?}", &whole[..cut]);
            let kinds = [ErrorKind::Connection, ErrorKind::IncompleteBody];
            assert!(kinds.contains(&error.kind()), "{:?}: {error}", &whole[..cut]);
        });
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
