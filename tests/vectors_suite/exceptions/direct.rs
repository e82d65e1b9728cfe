//! The servers of the scenarios without a proxy, in the order of the generator.

use std::io::Write as _;
use std::sync::{LazyLock, Mutex};

use flate2::Compression;
use flate2::write::{DeflateEncoder, GzEncoder};
use http::Method;
use longhaul::lab::{ClosedPort, Origin, Script, SilentPort};
use longhaul::message::Verify;
use longhaul::secs;

use super::scene::{
    After, CERTIFICATES, LONG, OK, Peer, SHORT, Scene, answers, greets, greets_tls, raw, says,
};

const CHUNKED: &str = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
const CUT: &str = "HTTP/1.1 503 X\r\nContent-Length: 50\r\n\r\ncut";

pub(super) fn scene(name: &str) -> Option<Scene> {
    connection(name)
        .or_else(|| head(name))
        .or_else(|| body(name))
        .or_else(|| coding(name))
        .or_else(|| redirect(name))
        .or_else(|| status(name))
        .or_else(|| tls(name))
        .or_else(|| upload(name))
        .or_else(|| mistake(name))
}

fn refused() -> String {
    // Bound and not listening for as long as the process lives.
    static PORT: LazyLock<ClosedPort> = LazyLock::new(|| ClosedPort::new().unwrap());
    format!("http://{}/", PORT.address())
}

fn connection(name: &str) -> Option<Scene> {
    let pause = secs(0.05);
    Some(match name {
        "refused" => Scene::new(refused()),
        "dns_failure" => Scene::new("http://nx.invalid/"),
        "connect_timeout_full_backlog" => {
            let port = SilentPort::new().unwrap();
            Scene::new(format!("http://{}/", port.address()))
                .behind(Peer::Silent(port))
                .connect(SHORT)
        }
        "connect_timeout_two_addresses" => {
            let port = SilentPort::new().unwrap();
            Scene::new(format!("http://two.invalid:{}/", port.address().port()))
                .behind(Peer::Silent(port))
                .connect(SHORT)
        }
        "accept_close" => greets(Script::new().fin()),
        "accept_close_unread" => greets(Script::new().pause(pause).close()),
        "read_head_then_close" => raw(""),
        "reset_at_accept" => greets(Script::new().recv().pause(pause).rst()),
        "reset_after_head" => answers("", After::Reset),
        "silent" => answers("", After::Hold).read(SHORT),
        "first_two_close_then_ok" => {
            let origin = Origin::builder().handler(|request| match request.connection {
                1 | 2 => Script::new().fin(),
                _ => Script::send(OK).fin(),
            });
            Scene::to(origin.start().unwrap())
        }
        "keepalive_closed_before_second_request" => {
            Scene { calls: 2, leaves_between: true, ..raw(OK) }
        }
        "keepalive_dropped_on_second_request" => {
            let origin = Origin::builder().handler(|_| Script::send(OK).next_request().fin());
            Scene { calls: 2, ..Scene::to(origin.start().unwrap()) }
        }
        _ => return None,
    })
}

fn head(name: &str) -> Option<Scene> {
    let ok = |head: &str| raw(format!("HTTP/1.1 200 OK\r\n{head}Content-Length: 2\r\n\r\nok"));
    let empty = |line: &str| raw(format!("{line}\r\nContent-Length: 0\r\n\r\n"));
    let many = |count| (0..count).map(|n| format!("X-{n}: y\r\n")).collect::<String>();
    let half = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nX-Ha";
    Some(match name {
        "half_status_line_close" => raw("HTTP/1.1 2"),
        "half_status_line_silent" => answers("HTTP/1.1 2", After::Hold).read(SHORT),
        "half_headers_close" => raw(half),
        "half_headers_close_no_length" => raw("HTTP/1.1 200 OK\r\nX-Ha"),
        "headers_complete_line_but_no_blank_line_close" => raw("HTTP/1.1 200 OK\r\nX-A: 1\r\n"),
        "slow_head_byte_by_byte" => {
            // No gap is longer than the read timeout, and the whole is.
            let origin = Origin::builder().handler(|_| {
                let (head, rest) = OK.split_at(OK.len() - 6);
                Script::new().drip(head, secs(0.05)).then_send(rest).fin()
            });
            Scene::to(origin.start().unwrap()).read(LONG)
        }
        "slow_body_byte_by_byte" => {
            let origin = Origin::builder().handler(|_| {
                let head = Script::send("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\n");
                head.pause(secs(0.3)).drip("abcd", secs(0.3)).fin()
            });
            Scene::to(origin.start().unwrap()).read(LONG)
        }
        "half_headers_silent" => answers(half, After::Hold).read(SHORT),
        "half_headers_reset" => answers("HTTP/1.1 200 OK\r\nX-Ha", After::Reset),
        "bad_status_line_garbage" => raw("garbage\r\n\r\n"),
        "empty_status_line" => raw("\r\n\r\n"),
        "http09_body_only" => raw("<html>hi</html>\n"),
        "status_not_a_number" => empty("HTTP/1.1 abc OK"),
        "status_99" => empty("HTTP/1.1 99 Low"),
        "status_1000" => empty("HTTP/1.1 1000 High"),
        "status_599" => empty("HTTP/1.1 599 Odd"),
        "status_999" => empty("HTTP/1.1 999 Odd"),
        "http2_version" => raw(OK.replace("HTTP/1.1", "HTTP/2")),
        "http_1_2_version" => raw(OK.replace("HTTP/1.1", "HTTP/1.2")),
        "icy_version" => raw(OK.replace("HTTP/1.1", "ICY")),
        "no_reason_phrase" => raw(OK.replace(" OK", "")),
        "lf_only_line_ends" => raw(OK.replace("\r\n", "\n")),
        "headers_100" => ok(&many(99)),
        "headers_101" => ok(&many(100)),
        "header_line_60000" => ok(&format!("X: {}\r\n", "a".repeat(60_000))),
        "header_line_70000" => ok(&format!("X: {}\r\n", "a".repeat(70_000))),
        "status_line_70000" => raw(OK.replace("OK", &"a".repeat(70_000))),
        "header_without_colon" => ok("nocolon\r\n"),
        "header_folded" => ok("X-A: 1\r\n  2\r\n"),
        "header_space_before_colon" => raw(OK.replace("Length:", "Length :")),
        "continue_100_then_200" => raw("HTTP/1.1 100 Continue\r\n\r\n".repeat(3) + OK),
        "early_hints_103_then_200" => {
            raw("HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n".to_owned() + OK)
        }
        "switching_101" => raw("HTTP/1.1 101 Switching\r\nUpgrade: x\r\n\r\n"),
        _ => return None,
    })
}

fn body(name: &str) -> Option<Scene> {
    let framed = |fields: &str, body: &str| format!("HTTP/1.1 200 OK\r\n{fields}\r\n{body}");
    let length = |length: &str, body: &str| framed(&format!("Content-Length: {length}\r\n"), body);
    let chunked = |rest: &str| raw(format!("{CHUNKED}{rest}"));
    Some(match name {
        "content_length_too_long_close" => raw(length("10", "ok")),
        "content_length_too_long_silent" => answers(length("10", "ok"), After::Hold).read(LONG),
        "content_length_too_long_reset" => answers(length("10", "ok"), After::Reset),
        "content_length_too_short" => raw(length("2", "ok_and_more")),
        "content_length_garbage" => raw(length("abc", "ok")),
        "content_length_negative" => raw(length("-5", "ok")),
        "content_length_twice_same" => raw(length("2\r\nContent-Length: 2", "ok")),
        "content_length_twice_differs" => raw(length("2\r\nContent-Length: 3", "ok")),
        "content_length_and_chunked" => {
            raw(length("99\r\nTransfer-Encoding: chunked", "2\r\nok\r\n0\r\n\r\n"))
        }
        "no_length_close" => raw(framed("", "ok")),
        "no_length_reset" => answers(framed("", "ok"), After::Reset),
        "status_204_with_body" => raw(OK.replace("200 OK", "204 No")),
        "chunked_ok" => chunked("2\r\nok\r\n0\r\n\r\n"),
        "chunked_truncated" => chunked("5\r\nok"),
        "chunked_no_terminator" => chunked("2\r\nok\r\n"),
        "chunked_missing_final_crlf" => chunked("2\r\nok\r\n0\r\n"),
        "chunked_bad_size" => chunked("zz\r\nok\r\n0\r\n\r\n"),
        "chunked_negative_size" => chunked("-2\r\nok\r\n0\r\n\r\n"),
        "chunked_extension" => chunked("2;a=b\r\nok\r\n0\r\nTrailer: x\r\n\r\n"),
        "chunked_silent" => answers(format!("{CHUNKED}2\r\nok\r\n"), After::Hold).read(LONG),
        "chunked_bad_data_crlf" => chunked("2\r\nokXX0\r\n\r\n"),
        "transfer_encoding_unknown" => raw(framed("Transfer-Encoding: foo\r\n", "ok")),
        _ => return None,
    })
}

fn gzip(plain: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::new(9));
    encoder.write_all(plain).unwrap();
    encoder.finish().unwrap()
}

fn coding(name: &str) -> Option<Scene> {
    let coded = |coding: &str, body: &[u8]| {
        let length = body.len();
        let head = format!("Content-Encoding: {coding}\r\nContent-Length: {length}\r\n");
        raw([format!("HTTP/1.1 200 OK\r\n{head}\r\n").as_bytes(), body].concat())
    };
    Some(match name {
        "gzip_bad" => coded("gzip", b"this is not gzip"),
        "gzip_truncated" => {
            let whole = gzip("hello".repeat(500).as_bytes());
            coded("gzip", &whole[..whole.len() - 12])
        }
        "gzip_crc_wrong" => {
            let mut whole = gzip("hello".repeat(500).as_bytes());
            let at = whole.len() - 8;
            whole[at] ^= 255;
            coded("gzip", &whole)
        }
        "gzip_trailing_garbage" => coded("gzip", &[&*gzip(b"hello"), b"junk"].concat()),
        "gzip_two_members" => coded("gzip", &[gzip(b"hel"), gzip(b"lo")].concat()),
        "gzip_empty_body" => coded("gzip", b""),
        "deflate_raw" => {
            let mut encoder = DeflateEncoder::new(Vec::new(), Compression::new(6));
            encoder.write_all(b"hello").unwrap();
            coded("deflate", &encoder.finish().unwrap())
        }
        "deflate_bad" => coded("deflate", b"not deflate at all"),
        "brotli_bad" => coded("br", b"\xff\xff\xff not brotli"),
        "encoding_unknown" => coded("wat", b"plain"),
        "gzip_chain_of_6" => {
            let body = (0..6).fold(b"x".to_vec(), |body, _| gzip(&body));
            coded("gzip, gzip, gzip, gzip, gzip, gzip", &body)
        }
        _ => return None,
    })
}

fn redirect(name: &str) -> Option<Scene> {
    let to = |location: &[u8]| {
        let head = b"HTTP/1.1 302 Found\r\nLocation: ";
        let rest = b"\r\nContent-Length: 0\r\n\r\n";
        answers([&head[..], location, &rest[..]].concat(), After::Keep)
    };
    // Sends on from `/p`, and never to the end of the body.
    let unfinished = |after: After| {
        let origin = Origin::builder().handler(move |request| {
            let body = "Location: /ok\r\nContent-Length: 50\r\n\r\ncut";
            match request.path.as_str() {
                "/p" => super::scene::script(format!("HTTP/1.1 302 Found\r\n{body}"), after),
                _ => Script::send(OK),
            }
        });
        Scene::to(origin.start().unwrap())
    };
    Some(match name {
        "redirect_loop" => to(b"/p"),
        "redirect_hop_gets_fresh_retry_budget" => {
            let seen = Mutex::new([0; 2]);
            let origin = Origin::builder().handler(move |request| {
                let second = request.path == "/q";
                let mut seen = seen.lock().unwrap();
                seen[usize::from(second)] += 1;
                match (seen[usize::from(second)], second) {
                    (1 | 2, _) => "HTTP/1.1 503 X\r\nContent-Length: 0\r\n\r\n".into(),
                    (_, false) => {
                        "HTTP/1.1 302 X\r\nLocation: /q\r\nContent-Length: 0\r\n\r\n".into()
                    }
                    (_, true) => Script::send(OK),
                }
            });
            Scene::to(origin.start().unwrap())
        }
        "redirect_bad_schema" => to(b"ftp://127.0.0.1/x"),
        "redirect_no_host" => to(b"https://"),
        "redirect_bad_port" => to(b"http://127.0.0.1:99999/"),
        "redirect_bad_ipv6" => to(b"http://[::1/"),
        "redirect_latin1" => to(b"/\xe9"),
        "redirect_to_refused" => to(refused().as_bytes()),
        "redirect_without_location" => {
            answers("HTTP/1.1 302 Found\r\nContent-Length: 0\r\n\r\n", After::Keep)
        }
        "redirect_body_truncated" => unfinished(After::Close),
        "redirect_body_silent" => unfinished(After::Hold).read(LONG),
        "post_307_body_is_sent_again" => {
            let origin = Origin::builder().handler(|request| match request.path.as_str() {
                "/p" => "HTTP/1.1 307 X\r\nLocation: /q\r\nContent-Length: 0\r\n\r\n".into(),
                _ if *request.body == *b"x=1" => Script::send(OK),
                _ => Script::new().fin(),
            });
            Scene { method: Some(Method::POST), ..Scene::to(origin.start().unwrap()) }
        }
        _ => return None,
    })
}

fn status(name: &str) -> Option<Scene> {
    let answer = |code: u16, field: &str| {
        let head = format!("HTTP/1.1 {code} X\r\n{field}Content-Length: 0\r\n\r\n");
        answers(head, After::Keep)
    };
    Some(match name {
        "status_503_always" => answer(503, ""),
        "status_503_retry_after_0" => answer(503, "Retry-After: 0\r\n"),
        "status_503_retry_after_1" => answer(503, "Retry-After: 1\r\n"),
        "status_503_retry_after_garbage" => answer(503, "Retry-After: soon\r\n"),
        "status_500_retry_after_garbage" => answer(500, "Retry-After: soon\r\n"),
        "status_503_retry_after_empty" => answer(503, "Retry-After:\r\n"),
        "status_429_retry_after_year_99999" => {
            answer(429, "Retry-After: Fri, 31 Dec 99999 23:59:59 GMT\r\n")
        }
        "status_503_body_truncated" => raw(CUT),
        "status_503_body_silent" => answers(CUT, After::Hold).read(LONG),
        "status_407_direct" => answer(407, "Proxy-Authenticate: Basic realm=x\r\n"),
        _ => return None,
    })
}

fn tls(name: &str) -> Option<Scene> {
    let held = &*CERTIFICATES;
    let secure = |issued, bytes: &str, after| {
        Scene::to(says(bytes, after).certificate(issued).start().unwrap())
    };
    // A socket that is closed and not ended, so that nobody says close_notify.
    let torn = |bytes: &str| {
        let script = Script::send(bytes).close();
        let origin = Origin::builder().certificate(&held.good).handler(move |_| script.clone());
        Scene::to(origin.start().unwrap())
    };
    // What a server says that cannot agree: a fatal alert of this number.
    let alert =
        |number| greets_tls(Script::new().recv().then_send([21, 3, 1, 0, 2, 2, number]).fin());
    let refusal = "HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n";
    Some(match name {
        "tls_ok" => secure(&held.good, OK, After::Close),
        "tls_to_plain_port" => {
            greets_tls(Script::new().recv().then_send(refusal).pause(secs(0.05)).close())
        }
        "tls_to_plain_port_that_waits" => {
            let mut scene = raw(OK).connect(SHORT);
            scene.url = scene.url.replace("http:", "https:");
            Scene { odd_heads: true, ..scene }
        }
        // OpenSSL leaves a request in the clear unread, and the kernel makes a reset of that.
        "plain_to_tls_port" => greets(Script::new().pause(secs(0.05)).close()),
        "tls_self_signed" => secure(&held.untrusted, OK, After::Close),
        "tls_self_signed_verify_false" => {
            Scene { verify: Verify::Off, ..secure(&held.untrusted, OK, After::Close) }
        }
        "tls_wrong_host" => secure(&held.other_host, OK, After::Close),
        "tls_expired" => secure(&held.expired, OK, After::Close),
        // protocol_version, and handshake_failure.
        "tls_only_tls10" => alert(70),
        "tls_client_cert_required" => alert(40),
        "tls_silent_handshake" => greets_tls(Script::new().hold()).connect(SHORT),
        "tls_close_at_accept" => greets_tls(Script::new().recv().fin()),
        "tls_reset_in_handshake" => greets_tls(Script::new().recv().rst()),
        "tls_no_close_notify_mid_body" => torn("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nok"),
        "tls_no_close_notify_no_length" => torn("HTTP/1.1 200 OK\r\n\r\nok"),
        "tls_silent_after_handshake" => secure(&held.good, "", After::Hold).read(SHORT),
        "tls_missing_ca_file" => Scene {
            verify: Verify::Bundle("/nonexistent/ca.pem".into()),
            ..secure(&held.good, OK, After::Close)
        },
        _ => return None,
    })
}

fn upload(name: &str) -> Option<Scene> {
    let refusal = "HTTP/1.1 413 Too big\r\nContent-Length: 2\r\nConnection: close\r\n\r\nno";
    let scene = match name {
        "upload_8mb_server_closes_without_reading" => {
            greets(Script::new().recv().pause(secs(0.05)).rst())
        }
        "upload_8mb_early_413_then_close" => greets(Script::new().recv().then_send(refusal).fin()),
        "upload_8mb_server_never_reads" => {
            greets(Script::new().recv().pause(secs(3.0)).close()).read(LONG)
        }
        _ => return None,
    };
    Some(Scene { method: Some(Method::POST), body: vec![b'x'; 8_000_000], ..scene })
}

fn mistake(name: &str) -> Option<Scene> {
    let header = |value| Scene { headers: vec![("X-A", value)], ..raw(OK) };
    Some(match name {
        "url_no_scheme" => Scene::new("127.0.0.1/x"),
        "url_no_host" => Scene::new("http:///x"),
        "url_ftp" => Scene::new("ftp://127.0.0.1/x"),
        "url_bad_port" => Scene::new("http://127.0.0.1:99999/x"),
        "header_value_with_newline" => header("a\nb"),
        "header_leading_space" => header(" a"),
        _ => return None,
    })
}
