//! Section D: bodies under a content coding, and the ceilings of what comes out of one.

use crate::answers::{answer, each_of, get, scripted};
use crate::roads::{Road, World, assert_is, each};
use flate2::Compression;
use flate2::write::{DeflateEncoder, GzEncoder, ZlibEncoder};
use http::Method;
use longhaul::error::{ErrorKind, Fault, Phase};
use longhaul::lab::{Origin, Received, Reply, Script, Step, hostile};
use longhaul::time::SimClock;
use longhaul::{Retry, Session, secs};
use std::io::{Read, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// What the bodies are about.
const TEXT: &[u8] = b"hello gzip";
/// Under brotli, as the reference implementation writes it.
const BROTLI: &[u8] = b"\x8f\x04\x80hello gzip\x03";
/// One frame of one raw block (RFC 8878).
const ZSTD: &[u8] = b"\x28\xb5\x2f\xfd\x20\x0a\x51\0\0hello gzip";

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn zlib(bytes: &[u8], level: u32) -> Vec<u8> {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::new(level));
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn deflate(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = DeflateEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// The codings that this build knows, each with [`TEXT`] under it.
fn known() -> Vec<(&'static str, Vec<u8>)> {
    let mut known = vec![
        ("gzip", gzip(TEXT)),
        ("x-gzip", gzip(TEXT)),
        ("deflate", zlib(TEXT, 6)),
        ("deflate", deflate(TEXT)),
    ];
    if cfg!(feature = "brotli") {
        known.push(("br", BROTLI.to_vec()));
    }
    if cfg!(feature = "zstd") {
        known.push(("zstd", ZSTD.to_vec()));
    }
    known
}

/// A response of this body under this coding, with a length.
fn under(coding: &str, body: &[u8]) -> Script {
    Reply::ok(body).header("Content-Encoding", coding).into()
}

/// The same in chunks of this size.
fn in_chunks(coding: &str, body: &[u8], size: usize) -> Script {
    Reply::ok(body).header("Content-Encoding", coding).chunked(size).into()
}

/// The same until the connection ends.
fn to_the_end(coding: &str, body: &[u8]) -> Script {
    let head = format!("HTTP/1.1 200 OK\r\nContent-Encoding: {coding}\r\n\r\n");
    Script::send([head.as_bytes(), body].concat()).fin()
}

#[test]
fn c60_where_no_body_is_possible_there_is_nothing_to_decode() {
    each(Road::EVERY, World::hostile, |world, road| {
        let session = world.session(road);
        for (number, (method, name, status)) in [
            (Method::HEAD, "gz", 200),
            (Method::GET, "gz-204", 204),
            (Method::GET, "gz-304", 304),
            (Method::GET, "gz-empty-body", 200),
            (Method::HEAD, "gz-bomb", 200),
            (Method::HEAD, "ce-many", 200),
        ]
        .into_iter()
        .enumerate()
        {
            let url = world.url(road, &format!("/b/{name}"));
            let response = session.request(method.clone(), &url).send().unwrap();
            assert_eq!((response.status(), response.text().unwrap().as_str()), (status, ""));
            assert_eq!(response.connection().reused, number > 0, "{method} {name}");
            // Also where the caller reads it.
            let streamed = || session.request(method.clone(), &url).stream(true).send().unwrap();
            assert_eq!(streamed().bytes().unwrap().len(), 0, "{method} {name}");
            assert_eq!(streamed().chunks(10).count(), 0);
            assert_eq!(streamed().lines().count(), 0);
            assert_eq!(streamed().into_reader().read(&mut [0; 10]).unwrap(), 0);
        }
    });
}

#[test]
fn c60_under_every_coding_and_every_framing() {
    let codings = ["gzip", "x-gzip", "deflate", "br", "zstd", "gzip, deflate", "rot13", "identity"];
    let mut scripts = Vec::new();
    for coding in codings {
        let head = |status: &str, rest: &str| {
            Script::send(format!("HTTP/1.1 {status} X\r\nContent-Encoding: {coding}\r\n{rest}\r\n"))
        };
        scripts.extend([
            head("204", ""),
            // A length that speaks of the body of a GET, or of nothing.
            head("304", "Content-Length: 500\r\n"),
            head("200", "Content-Length: 0\r\n"),
            head("200", "Transfer-Encoding: chunked\r\n").then_send("0\r\n\r\n"),
            head("404", "Content-Length: 0\r\n"),
            head("200", "").fin(),
        ]);
    }
    each_of(Road::FOUR, &scripts, |number, result| {
        let response = result.unwrap();
        assert_eq!(response.text().unwrap(), "", "{number}");
        assert_eq!(response.attempts().len(), 1);
    });
}

#[test]
fn c61_what_follows_the_coded_stream_is_ignored() {
    each(Road::EVERY, World::hostile, |world, road| {
        let session = world.session(road);
        for (number, name) in
            ["gz-trail-garbage", "gz-trail-zero", "gz-members", "gz"].iter().enumerate()
        {
            let response = get(world, road, &session, &format!("/b/{name}")).unwrap();
            assert_eq!(response.text().unwrap(), "hello gzip", "{name}");
            // It was read to its end all the same, so its connection is good.
            assert_eq!(response.connection().reused, number > 0, "{name}");
        }
    });
}

#[test]
fn c61_whatever_it_is_behind_every_coding_and_in_every_framing() {
    let tails = [
        b"g".to_vec(),
        b"\r\n".to_vec(),
        b"\0".to_vec(),
        vec![0; 40_000],
        b"<!-- served in 3 ms -->".to_vec(),
        // The beginning of a member, and then something else.
        b"\x1f".to_vec(),
        b"\x1f garbage".to_vec(),
        // More than is worth reading for the sake of the connection.
        vec![b'x'; 200_000],
    ];
    let mut scripts = Vec::new();
    for (coding, body) in known() {
        for tail in &tails {
            let whole = [&body[..], tail].concat();
            scripts.push(under(coding, &whole));
            scripts.push(to_the_end(coding, &whole));
            // The tail begins a chunk, and shares one.
            scripts.push(in_chunks(coding, &whole, body.len()));
            scripts.push(in_chunks(coding, &whole, 7));
        }
    }
    each_of(Road::TWO, &scripts, |number, result| {
        let response = result.unwrap();
        assert_eq!(response.bytes().unwrap(), TEXT, "{number}");
    });
}

#[test]
fn c61_members_are_one_text_and_a_cut_one_is_no_text() {
    let members = |bytes: &[u8]| [gzip(b"hello "), gzip(bytes)].concat();
    let none = gzip(b"");
    for body in [
        members(b"gzip"),
        [&none[..], &members(b"gzip"), &none].concat(),
        [gzip(b"h"), gzip(b"e"), gzip(b"llo"), gzip(b" gzip")].concat(),
    ] {
        for script in [under("gzip", &body), in_chunks("gzip", &body, 1)] {
            let world = scripted(vec![script]);
            let session = world.session(Road::Plain);
            let response = get(&world, Road::Plain, &session, "/0").unwrap();
            assert_eq!(response.bytes().unwrap(), TEXT);
        }
    }
    // What was begun has to be ended: half a page must not pass for one.
    let whole = members(b"gzip");
    let first = gzip(b"hello ").len();
    for cut in (1..first).chain(first + 2..whole.len()) {
        let world = scripted(vec![under("gzip", &whole[..cut])]);
        let session = world.session(Road::Plain);
        let error = get(&world, Road::Plain, &session, "/0").unwrap_err();
        assert_is(&error, ErrorKind::ContentDecoding, Phase::Body, Fault::Target);
    }
}

#[test]
fn c61_a_cut_or_broken_stream_is_retried_like_other_failures_of_a_body() {
    each(Road::FOUR, World::hostile, |world, road| {
        let session = world.reading_twice(road).build().unwrap();
        let error = get(world, road, &session, "/b/gz-cut").unwrap_err();
        assert_is(&error, ErrorKind::ContentDecoding, Phase::Body, Fault::Target);
        assert_eq!(error.requests_name(), "ContentDecodingError");
        assert_eq!(error.attempts().len(), 2);
    });
}

#[test]
fn c64_names_of_codings() {
    each(Road::EVERY, World::hostile, |world, road| {
        let session = world.session(road);
        for name in ["gz", "gz-upper", "gz-x", "gz-list", "gz-twice"] {
            let response = get(world, road, &session, &format!("/b/{name}")).unwrap();
            assert_eq!(response.text().unwrap(), "hello gzip", "{name}");
            assert!(!response.is_undecoded());
        }
        // What nobody here knows stays as it is, and says so.
        let response = get(world, road, &session, "/b/ce-unknown").unwrap();
        assert_eq!(response.bytes().unwrap(), &b"uryyb"[..]);
        assert_eq!(response.headers()["content-encoding"], "rot13");
        assert!(response.is_undecoded());
    });
}

/// What a session makes of this body under these fields.
fn body_under(fields: &str, body: &[u8]) -> (Vec<u8>, bool) {
    let head = format!("HTTP/1.1 200 OK\r\n{fields}\r\nContent-Length: {}\r\n\r\n", body.len());
    let response = answer([head.as_bytes(), body].concat()).unwrap();
    (response.bytes().unwrap().to_vec(), response.is_undecoded())
}

#[test]
fn c64_lists_lines_and_case() {
    let (once, twice) = (gzip(TEXT), gzip(&gzip(TEXT)));
    for (fields, body) in [
        ("Content-Encoding: GZip", &once),
        ("content-encoding:gzip", &once),
        ("Content-Encoding:  gzip  ", &once),
        ("Content-Encoding: X-GZIP", &once),
        ("Content-Encoding: identity, gzip", &once),
        ("Content-Encoding: gzip,identity,IDENTITY", &once),
        ("Content-Encoding: gzip,", &once),
        ("Content-Encoding: , ,gzip", &once),
        ("Content-Encoding: gzip,gzip", &twice),
        ("Content-Encoding: gzip, x-gzip", &twice),
        ("Content-Encoding: gzip\r\nContent-Encoding: gzip", &twice),
        ("Content-Encoding: identity\r\nContent-Encoding: gzip", &once),
        ("Content-Encoding:\r\n gzip", &once),
        // The last one named was applied last.
        ("Content-Encoding: deflate, gzip", &gzip(&deflate(TEXT))),
        ("Content-Encoding: gzip, deflate", &zlib(&once, 6)),
    ] {
        assert_eq!(body_under(fields, body), (TEXT.to_vec(), false), "{fields:?}");
    }
    for (coding, body) in known() {
        let fields = format!("Content-Encoding: {}", coding.to_uppercase());
        assert_eq!(body_under(&fields, &body), (TEXT.to_vec(), false), "{coding}");
        // In a chain with each other one.
        for (outer, wrap) in [("gzip", gzip as fn(&[u8]) -> Vec<u8>), ("deflate", deflate)] {
            let fields = format!("Content-Encoding: {coding}, {outer}");
            assert_eq!(body_under(&fields, &wrap(&body)).0, TEXT, "{fields}");
        }
    }
}

#[test]
fn c64_what_is_no_coding_leaves_the_page_alone() {
    // Servers write charsets, media types and more into this field.
    for value in
        ["utf-8", "UTF8", "none", "binary", "text/html", "8bit", "ISO-8859-1", "null", "\"gzip\""]
    {
        let found = body_under(&format!("Content-Encoding: {value}"), TEXT);
        assert_eq!(found, (TEXT.to_vec(), true), "{value}");
    }
    for value in ["identity", "", "Identity"] {
        let found = body_under(&format!("Content-Encoding: {value}"), TEXT);
        assert_eq!(found, (TEXT.to_vec(), false), "{value}");
    }
    // One that is unknown hides those beside it: taking off a part would make garbage of it.
    for value in ["gzip, rot13", "rot13, gzip", "gzip;q=1", "compress", "aws-chunked", "gzip rot13"]
    {
        let found = body_under(&format!("Content-Encoding: {value}"), &gzip(TEXT));
        assert_eq!(found, (gzip(TEXT), true), "{value}");
    }
}

#[test]
fn c65_both_kinds_of_deflate() {
    each(Road::EVERY, World::hostile, |world, road| {
        let session = world.session(road);
        for name in ["deflate-zlib", "deflate-raw"] {
            let response = get(world, road, &session, &format!("/b/{name}")).unwrap();
            assert_eq!(response.text().unwrap(), "hello deflate", "{name}");
            // Nothing is offered that is not undone.
            let request = world.origin(road).log().pop().unwrap();
            let offered = request.header("Accept-Encoding").unwrap();
            let known: Vec<_> = known().into_iter().map(|(coding, _)| coding).collect();
            assert!(offered.split(", ").all(|coding| known.contains(&coding)), "{offered}");
        }
        // Whatever was offered: servers send it all the same.
        let url = world.url(road, "/b/deflate-raw");
        let response = session.get(url).header("Accept-Encoding", "identity").send().unwrap();
        assert_eq!(response.text().unwrap(), "hello deflate");
    });
}

#[test]
fn c65_every_level_size_and_window() {
    let noise: Vec<u8> =
        (0..70_000_u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    for bytes in [&b""[..], b"x", TEXT, &[7; 70_000], &noise] {
        for level in 0..=9 {
            let body = zlib(bytes, level);
            assert!(body_under("Content-Encoding: deflate", &body).0 == bytes, "{level}");
        }
        assert!(body_under("Content-Encoding: deflate", &deflate(bytes)).0 == bytes);
    }
    // RFC 1950 2.2: windows from 256 bytes to 32 KiB, with a check of the two bytes.
    let stored = |method: u8| {
        let flags = 31 - (u16::from(method) << 8) % 31;
        let mut sum = flate2::Crc::new();
        sum.update(TEXT);
        let adler = TEXT.iter().fold((1_u32, 0_u32), |(a, b), byte| {
            let a = (a + u32::from(*byte)) % 65_521;
            (a, (b + a) % 65_521)
        });
        let length = u16::try_from(TEXT.len()).unwrap();
        let mut body = vec![method, u8::try_from(flags).unwrap(), 1];
        body.extend(length.to_le_bytes());
        body.extend((!length).to_le_bytes());
        body.extend(TEXT);
        body.extend(((adler.1 << 16) | adler.0).to_be_bytes());
        body
    };
    for window in 0..=7_u8 {
        let body = stored(window << 4 | 8);
        assert_eq!(body_under("Content-Encoding: deflate", &body).0, TEXT, "{window}");
    }
    // A raw stream of one stored block.
    let raw = stored(0x78)[2..].to_vec();
    assert_eq!(body_under("Content-Encoding: deflate", &raw[..raw.len() - 4]).0, TEXT);
}

/// How much the bomb unpacks to, at most, and with which ceiling.
const CEILING: u64 = 1_000_000;

#[test]
fn c66_a_bomb_stops_at_the_ceiling() {
    each(Road::EVERY, World::hostile, |world, road| {
        let session = world
            .recipe(road)
            .max_body_bytes(CEILING)
            .retry(Retry::long_run())
            .clock(Arc::new(SimClock::default()))
            .build()
            .unwrap();
        let error = get(world, road, &session, "/b/gz-bomb").unwrap_err();
        assert_is(&error, ErrorKind::TooLarge, Phase::Body, Fault::Target);
        assert!(error.message().contains("1000000 decoded bytes"), "{error}");
        assert!(error.received_bytes().unwrap() < 65_000, "{error}");
        // The same would come again.
        assert_eq!(error.attempts().len(), 1);

        // Also where the caller reads: as much as allowed, then the error, again and again.
        let url = world.url(road, "/b/gz-bomb");
        let mut reader = session.get(url).stream(true).send().unwrap().into_reader();
        let mut read = Vec::new();
        let error = reader.read_to_end(&mut read).unwrap_err();
        assert!(error.to_string().contains("1000000 decoded bytes"), "{error}");
        assert!(read.len() as u64 <= CEILING && read.len() as u64 > CEILING / 2, "{}", read.len());
        assert!(reader.read(&mut [0; 10]).is_err());
    });
}

#[test]
fn c66_a_bomb_costs_no_more_memory_than_its_ceiling() {
    let world = World::hostile();
    let session = world.recipe(Road::Plain).max_body_bytes(CEILING).build().unwrap();
    // The first request of a session makes what all of them share.
    get(&world, Road::Plain, &session, "/b/ok").unwrap();
    let url = world.url(Road::Plain, "/b/gz-bomb");
    let info = allocation_counter::measure(|| {
        let error = session.get(&url).send().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::TooLarge);
    });
    // A growing buffer holds its old half while it is copied.
    assert!(info.bytes_max < 4 * CEILING, "{} bytes", info.bytes_max);
}

#[test]
fn c66_bombs_in_bombs_and_under_other_codings() {
    let layered = |layers: usize| {
        let zeros = vec![0; 2 << 20];
        (0..layers).fold(zeros, |body, _| gzip(&body))
    };
    let run = |bytes: u8, mebibytes: u32| {
        // A frame of blocks of one repeated byte: four bytes for each 128 KiB.
        let mut frame = b"\x28\xb5\x2f\xfd\0\x38".to_vec();
        let blocks = mebibytes * 8;
        for block in 0..blocks {
            let header = (128 << 10 << 3) | 1 << 1 | u32::from(block + 1 == blocks);
            frame.extend(&header.to_le_bytes()[..3]);
            frame.push(bytes);
        }
        frame
    };
    let mut bombs = vec![
        ("gzip", layered(1)),
        ("gzip, gzip", layered(2)),
        ("gzip, gzip, gzip", layered(3)),
        ("deflate", zlib(&vec![0; 2 << 20], 9)),
        ("deflate", deflate(&vec![0; 2 << 20])),
    ];
    if cfg!(feature = "zstd") {
        bombs.push(("zstd", run(0, 2)));
    }
    for (coding, body) in bombs {
        let world = scripted(vec![under(coding, &body)]);
        let recipe = world.recipe(Road::Plain);
        let session = recipe.clone().max_body_bytes(CEILING).build().unwrap();
        let error = get(&world, Road::Plain, &session, "/0").unwrap_err();
        assert_is(&error, ErrorKind::TooLarge, Phase::Body, Fault::Target);
        // Within the ceiling it is a body like others.
        let session = recipe.max_body_bytes(2 << 20).build().unwrap();
        let response = get(&world, Road::Plain, &session, "/0").unwrap();
        assert_eq!(response.body().len(), 2 << 20, "{coding}");
    }
}

#[test]
fn c66_the_ceiling_on_the_wire_is_another_one() {
    let scripts = vec![
        under("gzip", &gzip(TEXT)),
        in_chunks("gzip", &gzip(TEXT), 5),
        to_the_end("gzip", &gzip(TEXT)),
    ];
    let wire = gzip(TEXT).len() as u64;
    each(
        Road::FOUR,
        || scripted(scripts.clone()),
        |world, road| {
            for number in 0..scripts.len() {
                for (wire_ceiling, ceiling, fits) in
                    [(wire, 10, true), (wire - 1, 10, false), (wire, 9, false), (0, 10, false)]
                {
                    let recipe = world.recipe(road).max_wire_bytes(wire_ceiling);
                    let session = recipe.max_body_bytes(ceiling).build().unwrap();
                    match get(world, road, &session, &format!("/{number}")) {
                        Ok(response) => assert!(fits && response.wire_bytes() == wire),
                        Err(error) => {
                            assert!(!fits, "{error}");
                            assert_is(&error, ErrorKind::TooLarge, Phase::Body, Fault::Target);
                        }
                    }
                }
            }
        },
    );
}

#[test]
fn c66_chains_of_codings_are_bounded() {
    each(Road::EVERY, World::hostile, |world, road| {
        let session = world.session(road);
        let error = get(world, road, &session, "/b/ce-many").unwrap_err();
        assert_is(&error, ErrorKind::ContentDecoding, Phase::Body, Fault::Target);
        assert!(error.message().contains("200 content codings"), "{error}");
    });
    let chain = |count: usize| {
        let body = (0..count).fold(TEXT.to_vec(), |body, _| gzip(&body));
        let lines = "Content-Encoding: gzip\r\n".repeat(count);
        let length = body.len();
        let head = format!("HTTP/1.1 200 OK\r\n{lines}Content-Length: {length}\r\n\r\n");
        answer([head.as_bytes(), &body].concat())
    };
    assert_eq!(chain(5).unwrap().bytes().unwrap(), TEXT);
    assert_eq!(chain(6).unwrap_err().kind(), ErrorKind::ContentDecoding);
}

#[test]
fn c66_what_nobody_reads_is_not_decoded() {
    // A bomb, a broken body and a chain too long: under a redirect and under a status that is
    // retried, they are drained as they are.
    for name in ["gz-bomb", "gz-cut", "ce-many"] {
        let world = || {
            let asked = AtomicUsize::new(0);
            World::new(Origin::builder().handler(move |request: &Received| {
                let bytes = match hostile::origin_script(name, "").unwrap().steps() {
                    [Step::Reply(reply)] => reply.render(false),
                    steps => panic!("{steps:?}"),
                };
                let text: Vec<u8> = match request.path.as_str() {
                    "/hop" => [b"HTTP/1.1 302 Found\r\nLocation: /end", &bytes[15..]].concat(),
                    "/busy" if asked.fetch_add(1, Ordering::SeqCst) == 0 => {
                        [b"HTTP/1.1 503 Busy", &bytes[15..]].concat()
                    }
                    _ => return Reply::ok("there").into(),
                };
                Script::send(text)
            }))
        };
        each(Road::FOUR, world, |world, road| {
            for path in ["/hop", "/busy"] {
                let session = world
                    .recipe(road)
                    .max_body_bytes(1000)
                    .max_wire_bytes(1000)
                    .retry(Retry::long_run())
                    .clock(Arc::new(SimClock::default()))
                    .build()
                    .unwrap();
                let response = get(world, road, &session, path).unwrap();
                assert_eq!(response.text().unwrap(), "there", "{name} {path}");
                assert!(response.attempts().iter().all(|attempt| attempt.error.is_none()));
                assert_eq!(response.attempts().len(), 2);
            }
        });
    }
}

#[test]
fn c66_a_redirect_too_many_hands_out_no_bomb() {
    let bomb = hostile::origin_script("gz-bomb", "").unwrap();
    let [Step::Reply(reply)] = bomb.steps() else { panic!("{bomb:?}") };
    let bytes = reply.render(false);
    let bytes = [b"HTTP/1.1 302 Found\r\nLocation: /0", &bytes[15..]].concat();
    let world = scripted(vec![Script::send(bytes)]);
    let session: Session = world.recipe(Road::Plain).max_redirects(2).build().unwrap();
    let error = get(&world, Road::Plain, &session, "/0").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TooManyRedirects);
    assert!(error.response().unwrap().body().len() <= 64 * 1024);
    assert!(error.response().unwrap().elapsed() < secs(20.0));
}
