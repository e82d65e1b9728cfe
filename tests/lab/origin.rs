use std::io::{Read, Write};
use std::net::Shutdown;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc;
use std::thread;

use longhaul::lab::{Ca, ClosedPort, Origin, Reply, Script, SilentPort, Step, hostile};
use longhaul::secs;

use crate::raw::{SOON, client_config, connect, exchange, expect, get, tls, to_end, to_failure};

const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

#[test]
fn requests_are_numbered_logged_and_counted() {
    let origin = Origin::builder().handler(|_| Reply::ok("ok")).start().unwrap();
    let mut first = connect(origin.address());
    for path in ["/a?x=1", "/b"] {
        write!(first, "GET {path} HTTP/1.1\r\nHost: h.test\r\nX-Mixed: Case\r\n\r\n").unwrap();
        expect(&mut first, OK);
    }
    let second = get(origin.address(), "/c");
    assert_eq!(second, OK);

    let log = origin.log();
    let seen: Vec<_> = log
        .iter()
        .map(|request| (request.path.as_str(), request.connection, request.request))
        .collect();
    assert_eq!(seen, [("/a", 1, 1), ("/b", 1, 2), ("/c", 2, 1)]);
    assert_eq!(log[0].query.as_deref(), Some("x=1"));
    assert_eq!(log[0].headers[1], ("X-Mixed".to_owned(), "Case".to_owned()));
    assert_eq!(log[0].peer, first.local_addr().unwrap());
    assert!(log[0].arrived <= log[1].arrived);
    assert_eq!(origin.requests_per_connection().into_iter().collect::<Vec<_>>(), [(1, 2), (2, 1)]);
    let counts = origin.counts();
    assert_eq!((counts.accepted, counts.requests, counts.malformed), (2, 3, 0));
    assert_eq!(counts.bytes_out, 3 * OK.len() as u64);
    drop(first);
    assert!(origin.wait_until_idle(SOON));
    assert_eq!(origin.counts().open, 0);
    origin.clear_log();
    assert!(origin.log().is_empty());
    origin.join();
}

#[test]
fn the_log_is_bounded_and_can_be_off() {
    for (keep, wanted) in [(2, vec!["/2", "/3"]), (0, vec![])] {
        let origin = Origin::builder().keep(keep).start().unwrap();
        for path in ["/1", "/2", "/3"] {
            get(origin.address(), path);
        }
        let log = origin.log();
        assert_eq!(log.iter().map(|request| &*request.path).collect::<Vec<_>>(), wanted);
        assert_eq!(origin.counts().requests, 3);
    }
}

#[test]
fn bodies_are_read_whatever_their_framing() {
    let origin = Origin::builder().handler(|request| Reply::ok(&request.body)).start().unwrap();
    for (head, body, wanted) in [
        ("Content-Length: 5\r\n", "hello", "hello"),
        (
            "Transfer-Encoding: chunked\r\n",
            "5;a=b\r\nhello\r\n1\r\n!\r\n0\r\nT: x\r\n\r\n",
            "hello!",
        ),
        ("Transfer-Encoding: gzip, Chunked\r\n", "0\r\n\r\n", ""),
        ("Content-Length: 0\r\n", "", ""),
        ("", "", ""),
    ] {
        let request = format!("POST / HTTP/1.1\r\n{head}Connection: close\r\n\r\n{body}");
        let answer = exchange(origin.address(), request);
        assert!(answer.ends_with(&format!("\r\n\r\n{wanted}")), "{head}: {answer}");
    }
    let mut stream = connect(origin.address());
    write!(stream, "PUT / HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n").unwrap();
    expect(&mut stream, "HTTP/1.1 100 Continue\r\n\r\n");
    stream.write_all(b"ok").unwrap();
    expect(&mut stream, OK);
}

#[test]
fn replies_to_head_have_no_body() {
    let origin = Origin::builder().handler(|_| Reply::ok("ok")).start().unwrap();
    let answer = exchange(origin.address(), "HEAD / HTTP/1.1\r\nConnection: close\r\n\r\n");
    assert_eq!(answer, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n");
}

#[test]
fn steps_follow_one_another() {
    let script = Script::send("a")
        .drip("bc", secs(0.0))
        .repeat("d", 3, secs(0.0))
        .pause(secs(0.001))
        .then(Step::Reply(Reply::new(204)))
        .next_request()
        .then_send("e")
        .fin();
    let origin = Origin::builder().handler(move |_| script.clone()).start().unwrap();
    let mut stream = connect(origin.address());
    stream.write_all(b"GET /1 HTTP/1.1\r\n\r\n").unwrap();
    expect(&mut stream, "abcdddHTTP/1.1 204 No Content\r\n\r\n");
    stream.write_all(b"GET /2 HTTP/1.1\r\n\r\n").unwrap();
    assert_eq!(to_end(&mut stream), "e");
    let log = origin.log();
    assert_eq!((log.len(), log[1].path.as_str(), log[1].request), (2, "/2", 2));
}

#[test]
fn each_end_of_a_connection_is_what_it_says() {
    use std::io::ErrorKind::ConnectionReset;
    for (step, wanted) in [
        (Step::Fin, None),
        (Step::Close, None),
        (Step::Rst, Some(ConnectionReset)),
        (Step::Tunnel, None),
    ] {
        let script = Script::send("x").pause(secs(0.02)).then(step.clone());
        let origin = Origin::builder().handler(move |_| script.clone()).start().unwrap();
        let mut stream = connect(origin.address());
        stream.write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap();
        expect(&mut stream, "x");
        assert_eq!(to_failure(&mut stream), (String::new(), wanted), "{step:?}");
    }
}

#[test]
fn a_server_that_stops_wakes_whatever_it_waits_in() {
    let origin = Origin::builder()
        .handler(|request| match &*request.path {
            "/hold" => Script::send("x").hold(),
            "/pause" => Script::send("x").pause(secs(3600.0)),
            "/drip" => Script::send("x").drip("yy", secs(3600.0)),
            "/flood" => Script::send("x").repeat(vec![b'z'; 1 << 20], 1 << 20, secs(0.0)),
            _ => Script::send("x").next_request(),
        })
        .start()
        .unwrap();
    let mut streams = Vec::new();
    for path in ["/hold", "/pause", "/drip", "/flood", "/next"] {
        let mut stream = connect(origin.address());
        write!(stream, "GET {path} HTTP/1.1\r\n\r\n").unwrap();
        expect(&mut stream, "x");
        streams.push(stream);
    }
    // One that never says a word.
    streams.push(connect(origin.address()));
    let (done, joined) = mpsc::channel();
    thread::spawn(move || {
        origin.join();
        done.send(()).unwrap();
    });
    joined.recv_timeout(SOON).unwrap();
}

#[test]
fn a_panic_of_a_handler_comes_out_of_join_and_of_drop() {
    let start = || {
        let origin = Origin::builder()
            .handler(|request| -> Reply { panic!("no answer for {}", request.path) })
            .start()
            .unwrap();
        assert_eq!(get(origin.address(), "/x"), "");
        origin
    };
    let (joined, dropped) = (start(), start());
    for outcome in [
        catch_unwind(AssertUnwindSafe(|| joined.join())),
        catch_unwind(AssertUnwindSafe(|| drop(dropped))),
    ] {
        let words = *outcome.unwrap_err().downcast::<String>().unwrap();
        assert_eq!(words, "no answer for /x");
    }
}

#[test]
fn what_a_handler_holds_is_free_after_join() {
    let held = std::sync::Arc::new(());
    let copy = std::sync::Arc::clone(&held);
    let origin = Origin::builder()
        .handler(move |_| {
            let _ = &copy;
            Reply::ok("ok")
        })
        .start()
        .unwrap();
    get(origin.address(), "/");
    origin.join();
    assert_eq!(std::sync::Arc::strong_count(&held), 1);
}

#[test]
fn many_connections_at_once_and_one_after_another() {
    let origin = Origin::builder().handler(|_| Reply::ok("ok")).keep(0).start().unwrap();
    let address = origin.address();
    let (ready, all_ready) = mpsc::channel();
    let clients: Vec<_> = (0..64)
        .map(|_| {
            let (ready, (go, start)) = (ready.clone(), mpsc::channel::<()>());
            let client = thread::spawn(move || {
                let mut stream = connect(address);
                for turn in 0..50 {
                    stream.write_all(b"GET / HTTP/1.1\r\nHost: h\r\n\r\n").unwrap();
                    expect(&mut stream, OK);
                    if turn == 0 {
                        ready.send(()).unwrap();
                        start.recv().unwrap();
                    }
                }
            });
            (client, go)
        })
        .collect();
    for _ in 0..64 {
        all_ready.recv_timeout(SOON).unwrap();
    }
    assert_eq!(origin.counts().open, 64);
    for (_, go) in &clients {
        go.send(()).unwrap();
    }
    for (client, _) in clients {
        client.join().unwrap();
    }
    assert!(origin.wait_until_idle(SOON));
    let counts = origin.counts();
    assert_eq!((counts.accepted, counts.most_open, counts.requests), (64, 64, 64 * 50));
}

#[test]
fn the_limit_of_connections_makes_the_next_one_wait() {
    let origin = Origin::builder().handler(|_| Reply::ok("ok")).max_connections(1).start().unwrap();
    let mut first = connect(origin.address());
    let mut second = connect(origin.address());
    second.write_all(b"GET /2 HTTP/1.1\r\nConnection: close\r\n\r\n").unwrap();
    first.write_all(b"GET /1 HTTP/1.1\r\nConnection: close\r\n\r\n").unwrap();
    assert_eq!(to_end(&mut first), OK);
    drop(first);
    assert_eq!(to_end(&mut second), OK);
    let log = origin.log();
    assert_eq!([&*log[0].path, &*log[1].path], ["/1", "/2"]);
    assert_eq!(origin.counts().most_open, 1);
}

#[test]
fn junk_is_counted_and_answered() {
    let origin = Origin::builder().start().unwrap();
    let answer = exchange(origin.address(), "no http at all\r\n\r\n");
    assert!(answer.starts_with("HTTP/1.1 400 Bad Request\r\n"), "{answer}");
    assert_eq!((origin.counts().malformed, origin.counts().requests), (1, 0));
}

#[test]
fn tls_by_name_with_resumption() {
    let ca = Ca::new().unwrap();
    let origin = Origin::builder().handler(|_| Reply::ok("ok")).tls(&ca).start().unwrap();
    assert!(origin.url("/x").starts_with("https://127.0.0.1:"));
    let config = client_config(&ca);
    for name in ["shop.test", "127.0.0.1", "localhost", "shop.test"] {
        let mut stream = tls(&config, name, connect(origin.address()));
        stream.write_all(b"GET / HTTP/1.1\r\nConnection: close\r\n\r\n").unwrap();
        assert_eq!(to_end(&mut stream), OK);
    }
    let seen: Vec<_> = origin.log().into_iter().map(|seen| (seen.sni, seen.resumed)).collect();
    let named = |name: &str| Some(name.to_owned());
    assert_eq!(
        seen,
        [
            (named("shop.test"), false),
            (None, false),
            (named("localhost"), false),
            (named("shop.test"), true)
        ]
    );

    // Another authority is not trusted, and the server hears of it.
    let stranger = client_config(&Ca::new().unwrap());
    let mut stream = tls(&stranger, "shop.test", connect(origin.address()));
    assert!(stream.write_all(b"GET / HTTP/1.1\r\n\r\n").and_then(|()| stream.flush()).is_err());
    drop(stream);
    assert!(origin.wait_until_idle(SOON));
    assert_eq!(origin.counts().malformed, 1);
}

#[test]
fn certificates_that_are_wrong_on_purpose() {
    let ca = Ca::new().unwrap();
    let config = client_config(&ca);
    for (issued, wanted) in [
        (ca.issue(["other.test"]).unwrap(), "NotValidForName"),
        (ca.issue_expired(["shop.test"]).unwrap(), "Expired"),
    ] {
        let origin = Origin::builder().certificate(&issued).start().unwrap();
        let mut stream = tls(&config, "shop.test", connect(origin.address()));
        let error = stream.write_all(b"x").and_then(|()| stream.flush()).unwrap_err();
        assert!(format!("{error:?}").contains(wanted), "{error:?}");
    }
    let error = ca.issue(["caf\u{e9}"]).unwrap_err();
    assert_eq!(error.kind(), longhaul::ErrorKind::Config);
}

#[test]
fn the_authority_and_its_certificates_as_files() {
    let folder = tempfile::tempdir().unwrap();
    let [root, certificate, key] =
        ["ca.pem", "cert.pem", "key.pem"].map(|name| folder.path().join(name));
    let ca = Ca::new().unwrap();
    ca.write_pem(&root).unwrap();
    ca.issue(["localhost", "127.0.0.1"]).unwrap().write_pem(&certificate, &key).unwrap();
    for (path, wanted) in
        [(&root, "CERTIFICATE"), (&certificate, "CERTIFICATE"), (&key, "PRIVATE KEY")]
    {
        let pem = std::fs::read_to_string(path).unwrap();
        assert!(pem.starts_with(&format!("-----BEGIN {wanted}-----")), "{pem}");
    }
    let error = ca.write_pem(folder.path().join("none/ca.pem")).unwrap_err();
    assert_eq!(error.kind(), longhaul::ErrorKind::Io);
}

#[test]
fn an_address_in_use_is_an_error_that_names_it() {
    let origin = Origin::builder().start().unwrap();
    let error = Origin::builder().address(origin.address()).start().unwrap_err();
    assert!(error.to_string().contains(&origin.address().to_string()), "{error}");
    // A server that has gone can come back to where it was.
    let address = origin.address();
    get(address, "/");
    origin.join();
    let again = Origin::builder().address(address).handler(|_| Reply::ok("ok")).start().unwrap();
    assert_eq!(get(again.address(), "/"), OK);
}

#[test]
fn ports_where_nobody_answers() {
    let closed = ClosedPort::new().unwrap();
    let error = std::net::TcpStream::connect(closed.address()).unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::ConnectionRefused);
    if cfg!(target_os = "linux") {
        let silent = SilentPort::new().unwrap();
        let error = std::net::TcpStream::connect_timeout(&silent.address(), secs(0.2)).unwrap_err();
        assert_eq!(error.kind(), std::io::ErrorKind::TimedOut);
    }
}

#[test]
fn an_early_answer_comes_while_the_body_is_on_its_way() {
    let origin =
        Origin::builder().on_head(hostile::early).handler(hostile::origin).start().unwrap();
    let mut stream = connect(origin.address());
    let length = 30_000_000;
    write!(stream, "POST /b/early-413-close HTTP/1.1\r\nContent-Length: {length}\r\n\r\n").unwrap();
    assert!(stream.write_all(&vec![b'x'; length]).is_err());
    let (answer, _) = to_failure(&mut stream);
    assert!(answer.starts_with("HTTP/1.1 413 Too Large\r\n"), "{answer}");

    let mut stream = connect(origin.address());
    write!(stream, "POST /b/slow-reader HTTP/1.1\r\nContent-Length: 3000\r\n\r\n").unwrap();
    stream.write_all(&[b'x'; 3000]).unwrap();
    expect(&mut stream, OK);
    write!(stream, "GET /b/ok HTTP/1.1\r\n\r\n").unwrap();
    expect(&mut stream, OK);
}

#[test]
fn every_hostile_behaviour_can_be_met_and_left() {
    let origin =
        Origin::builder().on_head(hostile::early).handler(hostile::origin).start().unwrap();
    for name in hostile::ORIGIN {
        let mut stream = connect(origin.address());
        write!(stream, "GET /b/{name} HTTP/1.1\r\nHost: lab\r\n\r\n").unwrap();
        if matches!(*name, "never-answer" | "fin" | "rst") {
            continue;
        }
        let mut first = [0];
        assert_eq!(stream.read(&mut first).unwrap(), 1, "{name}");
        stream.shutdown(Shutdown::Both).unwrap();
    }
    assert!(origin.wait_until_idle(SOON));
    assert_eq!(origin.counts().requests, hostile::ORIGIN.len() as u64);
    assert!(get(origin.address(), "/b/unknown").starts_with("HTTP/1.1 404 "));
    let redirect = get(origin.address(), "/b/r-abs");
    assert!(redirect.contains("\r\nLocation: http://lab/b/ok\r\n"), "{redirect}");
}

#[test]
fn a_greeting_comes_before_tls_and_requests_and_may_leave_the_rest_to_the_server() {
    let greet = |number| match number {
        1 => Some(Script::send("220 smtp\r\n").recv().then_send("bye").fin()),
        2 => Some(Script::new().recv().rst()),
        // Says nothing, and so goes on.
        3 => Some(Script::new()),
        _ => None,
    };
    for secure in [false, true] {
        let ca = Ca::new().unwrap();
        let origin = Origin::builder().on_accept(greet).handler(|_| Script::send(OK).fin());
        let origin = if secure { origin.tls(&ca) } else { origin }.start().unwrap();
        assert_eq!(exchange(origin.address(), "HELO"), "220 smtp\r\nbye");
        let mut reset = connect(origin.address());
        reset.write_all(b"HELO").unwrap();
        let kind = reset.read(&mut [0]).unwrap_err().kind();
        assert_eq!(kind, std::io::ErrorKind::ConnectionReset);
        for _ in 3..=4 {
            let mut stream = connect(origin.address());
            let request = b"GET / HTTP/1.1\r\n\r\n";
            let answer = if secure {
                let mut stream = tls(&client_config(&ca), "lab.test", stream);
                stream.write_all(request).unwrap();
                to_end(&mut stream)
            } else {
                stream.write_all(request).unwrap();
                to_end(&mut stream)
            };
            assert_eq!(answer, OK);
        }
        let counts = origin.counts();
        assert_eq!((counts.accepted, counts.requests, counts.malformed), (4, 2, 0));
    }
}

#[test]
fn there_is_no_request_and_no_target_behind_a_greeting() {
    for step in [Step::Next, Step::Tunnel] {
        let greeting = Script::from(step).then_send("never");
        let origin = Origin::builder().on_accept(move |_| Some(greeting.clone())).start().unwrap();
        assert_eq!(to_failure(&mut connect(origin.address())).0, "");
        assert_eq!(origin.counts().requests, 0);
    }
}
