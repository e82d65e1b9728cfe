//! The built command on one URL: what is on which stream, exit codes, secrets, Ctrl-C.
#![cfg(feature = "cli")]
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "helpers of tests fail by panicking, as tests do"
)]

use longhaul::lab::{Ca, ClosedPort, HttpProxy, Origin, Received, Reply, Script, SocksProxy};
use longhaul::secs;
use serde_json::Value;
use std::fs;
use std::io::{Read as _, Write as _};
use std::path::Path;
use std::process::{Command, Output, Stdio};

fn command(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_longhaul"));
    for name in ["http_proxy", "https_proxy", "all_proxy", "no_proxy", "RUST_LOG"] {
        command.env_remove(name).env_remove(name.to_uppercase());
    }
    command.current_dir(folder).arg("get").args(arguments).stdin(Stdio::null());
    command
}

/// What came of it, without a wait between two attempts.
fn get(arguments: &[&str]) -> Output {
    let folder = tempfile::tempdir().unwrap();
    get_in(folder.path(), arguments)
}

fn get_in(folder: &Path, arguments: &[&str]) -> Output {
    command(folder, &[arguments, &["--backoff-factor", "0"]].concat()).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

fn ended(output: &Output) -> (Option<i32>, String, String) {
    (output.status.code(), text(&output.stdout), text(&output.stderr))
}

#[track_caller]
fn assert_has(text: &str, parts: &[&str]) {
    let mut rest = text;
    for part in parts {
        let Some(at) = rest.find(part) else { panic!("{part:?} does not follow in:\n{text}") };
        rest = &rest[at + part.len()..];
    }
}

fn origin() -> Origin {
    Origin::builder().handler(answer).start().unwrap()
}

fn answer(request: &Received) -> Reply {
    match request.path.as_str() {
        "/page" => Reply::ok("a page\n"),
        "/moved" => Reply::redirect(302, "/page").header("Set-Cookie", "id=hunter3; Path=/"),
        "/gone" => Reply::new(410).body("no more\n"),
        "/busy" => Reply::new(503).body("later\n"),
        "/binary" => Reply::ok([b'P', b'K', 0, 1]),
        "/echo" => Reply::ok(request.body.clone())
            .header("X-Method", request.method.as_bytes())
            .header("X-Type", request.header("Content-Type").unwrap_or("none"))
            .header("X-Accept", request.header("Accept").unwrap_or("none"))
            .header("X-Agent", request.header("User-Agent").unwrap_or("none")),
        _ => Reply::new(404),
    }
}

#[test]
fn the_body_and_nothing_else() {
    let origin = origin();
    for (path, body) in [("/page", "a page\n"), ("/moved", "a page\n"), ("/gone", "no more\n")] {
        let output = get(&[&origin.url(path)]);
        assert_eq!(ended(&output), (Some(0), body.into(), String::new()), "{path}");
    }
    // A pipe takes what a terminal would not.
    assert_eq!(get(&[&origin.url("/binary")]).stdout, [b'P', b'K', 0, 1]);
}

#[test]
fn heads_as_they_came() {
    // No program that parses fields could give these back.
    let odd = "HTTP/1.1 200 Just  Fine\r\nServer:x\r\nx-LOWER: a\r\nSet-Cookie: id=hunter2\r\n\
               Content-Length: 2\r\n\r\n";
    let origin = Origin::builder()
        .handler(move |request: &Received| match request.path.as_str() {
            "/hop" => {
                Script::send("HTTP/1.1 302 There\r\nLocation: /\r\nContent-Length: 0\r\n\r\n")
            }
            _ if request.method == "HEAD" => Script::send(odd),
            _ => Script::send(format!("HTTP/1.1 103 Hints\r\n\r\n{odd}ok")),
        })
        .start()
        .unwrap();
    let output = get(&[&origin.url("/hop"), "-i"]);
    assert_eq!(ended(&output), (Some(0), format!("{odd}ok"), String::new()));
    let (code, out, _) = ended(&get(&[&origin.url("/hop"), "-i", "-v"]));
    let hop = "HTTP/1.1 302 There\r\nLocation: /\r\nContent-Length: 0\r\n\r\n";
    assert_eq!((code, out), (Some(0), format!("{hop}{odd}ok")));
    assert_eq!(ended(&get(&[&origin.url("/"), "-I"])).1, odd);
    // A HEAD is not redirected, as in requests.
    assert_eq!(ended(&get(&[&origin.url("/hop"), "-I"])).1, hop);
    assert_eq!(ended(&get(&[&origin.url("/hop"), "-i", "--redirect", "off"])).1, hop);
}

#[test]
fn every_step_and_no_secret() {
    let origin = origin();
    let proxy = HttpProxy::builder().credentials("anna", "hunter2").start().unwrap();
    let url = origin.url("/moved").replace("http://", "http://user:hunter2@");
    let through = format!("http://anna:hunter2@{}", proxy.address());
    let output = get(&[
        &url,
        "-v",
        "-x",
        &through,
        "-H",
        "Cookie: me=hunter2",
        "-H",
        "X-Api-Key: hunter2",
        "-H",
        "X-Seen: yes",
    ]);
    let (code, out, said) = ended(&output);
    assert_eq!((code, out.as_str()), (Some(0), "a page\n"));
    assert!(!said.contains("hunter"), "{said}");
    let (from, to) = (origin.url("/moved"), origin.url("/page"));
    let at = proxy.address().to_string();
    assert_has(
        &said,
        &[
            &format!("* GET {from} through http://***@{at}\n"),
            "* connected to the proxy, 127.0.0.1:",
            &format!(" to {at} ("),
            &format!("> GET {from} HTTP/1.1\n> Host: {}\n", origin.address()),
            "> Cookie: me=***\n",
            "> X-Api-Key: ***\n",
            "> X-Seen: yes\n",
            "> Authorization: Basic ***\n",
            "> Proxy-Authorization: Basic ***\n>\n",
            "< HTTP/1.1 302 Found\n",
            "< Set-Cookie: id=***; Path=/\n",
            "<\n",
            &format!("* GET {to} through http://***@{at}\n"),
            "* on the kept connection 127.0.0.1:",
            "< HTTP/1.1 200 OK\n",
            &format!("* 302 {from}: connect "),
            ", first byte ",
            ", total ",
            &format!("* 200 {to}: first byte "),
            "* reused connection, 127.0.0.1:",
            " bytes sent\n",
            "* 200 OK, 7 bytes, in ",
        ],
    );
}

#[test]
fn the_words_that_are_exchanged_with_a_proxy() {
    let folder = tempfile::tempdir().unwrap();
    let ca = Ca::new().unwrap();
    ca.write_pem(folder.path().join("ca.pem")).unwrap();
    let origin = Origin::builder().tls(&ca).handler(answer).start().unwrap();
    let proxy = HttpProxy::builder().credentials("anna", "hunter2").start().unwrap();
    let url = format!("https://localhost:{}/page", origin.address().port());
    let through = |password: &str| format!("http://anna:{password}@{}", proxy.address());
    let tunnel = ["-v", "--cacert", "ca.pem", "--proxy-header", "X-Zone: de", "-x"];
    let good = through("hunter2");
    let output = get_in(folder.path(), &[&[&*url], &tunnel[..], &[&good]].concat());
    let (code, out, said) = ended(&output);
    assert_eq!((code, out.as_str()), (Some(0), "a page\n"), "{said}");
    assert!(!said.contains("hunter2"), "{said}");
    assert_has(
        &said,
        &[
            &format!("> CONNECT localhost:{} HTTP/1.1\n", origin.address().port()),
            "> Proxy-Authorization: Basic ***\n> X-Zone: de\n>\n",
            "< HTTP/1.1 200 ",
            "<\n* TLS with the target localhost: TLSv1.3 TLS13_",
            "> GET /page HTTP/1.1\n",
            ": connect ",
            ", proxy ",
            ", tls ",
            ", TLSv1.3 TLS13_",
        ],
    );

    // A refusal is an error that says what to do, and its own exit code.
    let bad = through("hunter3");
    let output = get_in(folder.path(), &[&[&*url], &tunnel[..], &[&bad]].concat());
    let (code, out, said) = ended(&output);
    assert_eq!((code, out.as_str()), (Some(3), ""), "{said}");
    assert!(!said.contains("hunter3"), "{said}");
    assert_has(
        &said,
        &[
            "< HTTP/1.1 407 ",
            "< Proxy-Authenticate: Basic ",
            "longhaul: failed: the proxy does not accept the credentials: 407 ",
            "longhaul: proxy_auth in phase proxy, by the proxy; in requests ProxyError\n",
            "longhaul: correct user and password in -x ",
        ],
    );

    let socks = SocksProxy::builder().start().unwrap();
    let through = format!("socks5h://{}", socks.address());
    let (code, _, said) =
        ended(&get_in(folder.path(), &[&url, "-v", "--cacert", "ca.pem", "-x", &through]));
    assert_eq!(code, Some(0), "{said}");
    let asked = format!("* the proxy has connected to localhost:{} (", origin.address().port());
    assert_has(&said, &["* connected to the proxy, ", &asked, "* TLS with the target localhost: "]);
}

#[test]
fn what_was_in_vain_is_told_with_its_wait() {
    let origin = origin();
    let url = origin.url("/busy");
    let flags = ["--status", "2", "--backoff-factor", "0.02"];
    let folder = tempfile::tempdir().unwrap();
    let run = |more: &[&str]| {
        ended(&command(folder.path(), &[&[&*url], &flags[..], more].concat()).output().unwrap())
    };
    let (code, out, said) = run(&[]);
    // The last answer is one, whatever its status.
    assert_eq!((code, out.as_str()), (Some(0), "later\n"));
    assert_eq!(
        said,
        "longhaul: attempt 1: status 503; again in 20 ms\n\
         longhaul: attempt 2: status 503; again in 40 ms\n"
    );
    assert_eq!(run(&["-q"]), (Some(0), "later\n".into(), String::new()));
    assert_eq!(origin.counts().requests, 6);
    let (_, _, said) = run(&["-v"]);
    assert_has(
        &said,
        &[
            &format!("* attempt 1: GET {url}: status 503 after "),
            ", then 20.0 ms of backoff\n* attempt 2: ",
            ", then 40.0 ms of backoff\n* attempt 3: ",
            " (status is used up)\n* 503 ",
        ],
    );
    let (code, out, said) = run(&["--fail", "--total", "0"]);
    assert_eq!((code, out.as_str()), (Some(1), ""));
    assert_eq!(said, format!("longhaul: failed: 503 Service Unavailable ({url})\n"));
    assert_eq!(get(&[&origin.url("/page"), "-f"]).status.code(), Some(0));
}

#[test]
fn failures_say_what_to_do() {
    let nobody = ClosedPort::new().unwrap();
    let url = format!("http://{}/", nobody.address());
    let (code, out, said) = ended(&get(&[&url, "--total", "1"]));
    assert_eq!((code, out.as_str()), (Some(1), ""));
    assert_has(
        &said,
        &[
            "longhaul: attempt 1: the server at ",
            "longhaul: failed: the server at ",
            &format!(" ({url})\n"),
            "longhaul: connection in phase connect, by the target; in requests ConnectionError; \
             2 attempts\n",
            "longhaul: nobody listens there, or a firewall refuses; look at host and port\n",
        ],
    );
    let (code, _, said) = ended(&get(&["http://no.such.name.invalid/"]));
    assert_eq!(code, Some(1));
    assert_has(&said, &["name_not_found in phase dns", "look at the spelling of the host\n"]);

    // It waits for the end of a head that TLS never sends.
    let plain = origin();
    let url = plain.url("/").replace("http", "https");
    let (code, _, said) = ended(&get(&[&url, "--total", "0", "--connect-timeout", "0.2"]));
    assert_eq!(code, Some(1));
    assert_has(&said, &["connect_timeout in phase tls, by the target", "try http://\n"]);

    // A body that breaks off is not complete, however much of it was printed.
    let short = Origin::builder()
        .handler(|_: &Received| {
            Script::send("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf").close()
        })
        .start()
        .unwrap();
    let folder = tempfile::tempdir().unwrap();
    let (code, out, said) = ended(&get_in(folder.path(), &[&short.url("/")]));
    assert_eq!((code, out.as_str()), (Some(1), "half"));
    assert_has(&said, &["incomplete_body in phase body, by the target"]);
    let (code, out, _) = ended(&get_in(folder.path(), &[&short.url("/"), "-o", "page"]));
    assert_eq!((code, out.as_str()), (Some(1), ""));
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0, "nothing is left behind");
}

#[test]
fn into_a_file() {
    let origin = origin();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("page");
    fs::write(&file, "an older and longer page\n").unwrap();
    let output = get_in(folder.path(), &[&origin.url("/moved"), "-o", "page", "-i"]);
    let (code, out, _) = ended(&output);
    assert_eq!(code, Some(0));
    assert!(out.starts_with("HTTP/1.1 200 OK\r\n") && out.ends_with("\r\n\r\n"), "{out}");
    assert_eq!(fs::read_to_string(&file).unwrap(), "a page\n");
    // With --fail what was there stays.
    let output = get_in(folder.path(), &[&origin.url("/gone"), "-o", "page", "-f"]);
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(fs::read_to_string(&file).unwrap(), "a page\n");
    assert_eq!(get_in(folder.path(), &[&origin.url("/page"), "-o", "-"]).stdout, b"a page\n");
}

#[test]
fn methods_bodies_and_fields() {
    let origin = origin();
    let url = origin.url("/echo");
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("body"), b"a\r\nb\0\n").unwrap();
    for (arguments, wanted) in [
        (&["-d", "a=1", "-d", "b=2"][..], ["POST", "application/x-www-form-urlencoded", "a=1&b=2"]),
        (&["-d", "@body", "-X", "PUT"], ["PUT", "application/x-www-form-urlencoded", "a\r\nb\0\n"]),
        (&["-d", "x", "-H", "content-type: text/x"], ["POST", "text/x", "x"]),
        (&["--json", "{ \"a\":1}"], ["POST", "application/json", "{ \"a\":1}"]),
        (&["-X", "DELETE"], ["DELETE", "none", ""]),
    ] {
        let arguments = [&[&*url, "-i"], arguments].concat();
        let (code, out, said) = ended(&get_in(folder.path(), &arguments));
        assert_eq!(code, Some(0), "{said}");
        let (head, body) = out.split_once("\r\n\r\n").unwrap();
        let [method, media, sent] = wanted;
        assert_eq!(body, sent);
        for line in [format!("X-Method: {method}"), format!("X-Type: {media}")] {
            assert!(head.lines().any(|have| have == line), "{head} lacks {line}");
        }
    }
    let (_, out, _) = ended(&get(&[&url, "-i", "--json", "1"]));
    assert_has(&out, &["X-Accept: application/json\r\n"]);
    let (_, out, _) = ended(&get(&[&url, "-i", "-H", "User-Agent:"]));
    assert_has(&out, &["X-Agent: none\r\n"]);

    let mut child = command(folder.path(), &[&url, "-d", "@-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(b"from a pipe").unwrap();
    assert_eq!(child.wait_with_output().unwrap().stdout, b"from a pipe");
}

#[test]
fn what_broke_off_is_gone_on_with() {
    const PAGE: &str = "0123456789abcdefghijklmnopqrstuvwxyz";
    let origin = Origin::builder()
        .handler(|request: &Received| {
            let from = request.header("Range").and_then(|range| {
                range.strip_prefix("bytes=")?.strip_suffix('-')?.parse::<usize>().ok()
            });
            let (status, from) = from.map_or((200, 0), |from| (206, from));
            let end = PAGE.len() - 1;
            Script::send(format!(
                "HTTP/1.1 {status} OK\r\nETag: \"one\"\r\nContent-Length: {}\r\n\
                 Content-Range: bytes {from}-{end}/{}\r\n\r\n{}",
                PAGE.len() - from,
                PAGE.len(),
                // Ten bytes at most, and then the end.
                PAGE.get(from..from + 10).unwrap_or(&PAGE[from..])
            ))
            .close()
        })
        .start()
        .unwrap();
    let folder = tempfile::tempdir().unwrap();
    let url = origin.url("/");
    let go = |more: &[&str]| {
        ended(&get_in(folder.path(), &[&[&*url, "--continue", "-o", "page"], more].concat()))
    };
    let (code, out, said) = go(&["--read", "1"]);
    assert_eq!((code, out.as_str()), (Some(1), ""));
    assert_has(&said, &["longhaul: failed: ", "incomplete_body in phase body"]);
    let page = folder.path().join("page");
    assert!(!page.exists());
    assert_eq!(fs::read_to_string(folder.path().join("page.part")).unwrap(), PAGE[..20]);
    let (code, _, said) = go(&["-v"]);
    assert_eq!(code, Some(0), "{said}");
    assert_has(&said, &["> Range: bytes=20-\n", "> Range: bytes=30-\n"]);
    assert_has(&said, &["* 36 bytes, 20 of them from before, in "]);
    assert_eq!(fs::read_to_string(&page).unwrap(), PAGE);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
}

#[test]
fn the_body_as_it_was_coded() {
    let coded = b"\x1f\x8b\x08\0\0\0\0\0\0\xffKT(HLO\xe5\x02\0";
    let coded = [&coded[..], &[0xe9, 0x46, 0x8e, 0x78, 0x07, 0, 0, 0]].concat();
    let served = coded.clone();
    let origin = Origin::builder()
        .handler(move |_: &Received| Reply::ok(served.clone()).header("Content-Encoding", "gzip"))
        .start()
        .unwrap();
    assert_eq!(ended(&get(&[&origin.url("/")])), (Some(0), "a page\n".into(), String::new()));
    let output = get(&[&origin.url("/"), "--raw"]);
    assert_eq!((output.status.code(), output.stdout), (Some(0), coded));
}

#[test]
fn cookies_of_a_file_and_into_one() {
    let origin = origin();
    let folder = tempfile::tempdir().unwrap();
    let (code, _, said) =
        ended(&get_in(folder.path(), &[&origin.url("/moved"), "-b", "jar", "-c", "jar", "-v"]));
    assert_eq!(code, Some(0), "{said}");
    assert_has(&said, &["< Set-Cookie: id=***", "> Cookie: id=***\n"]);
    let (_, _, said) = ended(&get_in(folder.path(), &[&origin.url("/page"), "-b", "jar", "-v"]));
    assert_has(&said, &["> Cookie: id=***\n"]);
}

#[test]
fn a_challenge_and_its_answer_are_told_without_the_credentials() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("user"), "anna:hunter2\n").unwrap();
    let origin = Origin::builder()
        .handler(|request| match request.header("authorization") {
            Some(field) if field.starts_with("Digest ") => Reply::ok("welcome\n"),
            _ => Reply::new(401).header("WWW-Authenticate", "Digest realm=r, nonce=n, qop=auth"),
        })
        .start()
        .unwrap();
    let url = origin.url("/");
    let output = get_in(folder.path(), &[&url, "--user-file", "user", "--digest", "-v"]);
    let (code, body, told) = ended(&output);
    assert_eq!((code, body.as_str()), (Some(0), "welcome\n"), "{told}");
    assert_has(
        &told,
        &["< HTTP/1.1 401 ", "> Authorization: Digest ***\n", "challenge was answered"],
    );
    for secret in ["anna", "hunter2", "response="] {
        assert!(!told.contains(secret), "{told}");
    }
    let (code, _, told) = ended(&get(&[&url, "--digest"]));
    assert_eq!(code, Some(2));
    assert_has(&told, &["--digest: there is no user to answer with; add --user"]);
}

#[test]
fn a_name_is_where_it_is_said_to_be() {
    let folder = tempfile::tempdir().unwrap();
    let ca = Ca::new().unwrap();
    ca.write_pem(folder.path().join("ca.pem")).unwrap();
    let shop = ca.issue(["shop.invalid"]).unwrap();
    let origin = Origin::builder().certificate(&shop).handler(answer).start().unwrap();
    let url = format!("https://shop.invalid:{}/page", origin.address().port());
    let tell = ["--cacert", "ca.pem", "-v", "--total", "0"];
    let pin = ["--resolve", "Shop.invalid:127.0.0.9,127.0.0.1"];
    let (code, out, said) =
        ended(&get_in(folder.path(), &[&[&*url], &tell[..], &pin[..]].concat()));
    assert_eq!((code, out.as_str()), (Some(0), "a page\n"), "{said}");
    assert_has(&said, &["* shop.invalid is 127.0.0.9, 127.0.0.1 (", "* TLS with the target shop."]);
    let (code, _, said) = ended(&get_in(folder.path(), &[&[&*url], &tell[..]].concat()));
    assert_eq!(code, Some(1));
    assert_has(&said, &["name_not_found"]);
}

#[test]
fn the_record_of_a_run() {
    let origin = origin();
    let folder = tempfile::tempdir().unwrap();
    let url = origin.url("/moved");
    let (code, out, said) =
        ended(&get_in(folder.path(), &[&url, "--json-result", "-o", "page", "--no-env"]));
    assert_eq!((code, said.as_str()), (Some(0), ""));
    assert_eq!(fs::read_to_string(folder.path().join("page")).unwrap(), "a page\n");
    let run = Command::new(env!("CARGO_BIN_EXE_longhaul"))
        .args(["run", &url, "-q", "--no-env"])
        .output()
        .unwrap();
    let steady = |line: &str| {
        let mut record: Value = serde_json::from_str(line).unwrap();
        // The helper asks for no backoff, and so less is promised.
        for field in ["elapsed_ms", "timings", "at", "attempts", "promised_ms"] {
            assert!(!record[field].is_null(), "{record}");
            record[field] = Value::Null;
        }
        record
    };
    assert_eq!(steady(&out), steady(&text(&run.stdout)));

    let nobody = format!("http://{}/", ClosedPort::new().unwrap().address());
    let (code, out, _) = ended(&get(&[&nobody, "--json-result", "--total", "0"]));
    let record: Value = serde_json::from_str(&out).unwrap();
    assert_eq!((code, &record["error"]["kind"]), (Some(1), &"connection".into()));
}

#[test]
fn head_takes_what_it_wants() {
    let endless = Origin::builder()
        .handler(|_: &Received| {
            Script::send("HTTP/1.1 200 OK\r\n\r\n")
                .repeat("x".repeat(65536), 4096, secs(0.0))
                .close()
        })
        .start()
        .unwrap();
    let folder = tempfile::tempdir().unwrap();
    let mut child = command(folder.path(), &[&endless.url("/")])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut out = child.stdout.take().unwrap();
    out.read_exact(&mut [0; 10]).unwrap();
    drop(out);
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), text(&output.stderr).as_str()), (Some(0), ""));
}

/// The most memory that the process `id` ever had, in KiB.
#[cfg(target_os = "linux")]
fn peak(id: u32) -> usize {
    let status = fs::read_to_string(format!("/proc/{id}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

#[test]
#[cfg(target_os = "linux")]
fn half_a_gigabyte_takes_no_more_memory_than_its_beginning() {
    const PIECE: usize = 64 * 1024;
    const PIECES: usize = 8192;
    let large = Origin::builder()
        .handler(|_: &Received| {
            let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", PIECE * PIECES);
            Script::send(head).repeat("x".repeat(PIECE), PIECES, secs(0.0))
        })
        .start()
        .unwrap();
    let folder = tempfile::tempdir().unwrap();
    let mut child =
        command(folder.path(), &[&large.url("/")]).stdout(Stdio::piped()).spawn().unwrap();
    let mut out = child.stdout.take().unwrap();
    let mut piece = vec![0; PIECE];
    let mut peak_after = |pieces: usize| {
        for _ in 0..pieces {
            out.read_exact(&mut piece).unwrap();
        }
        peak(child.id())
    };
    let beginning = peak_after(64);
    // The last piece is left in the pipe, so that there is a process to look at.
    let end = peak_after(PIECES - 64 - 1);
    drop(out);
    assert_eq!(child.wait().unwrap().code(), Some(0));
    println!("peak: {beginning} KiB after 4 MiB, {end} KiB after 512 MiB");
    assert!(end <= beginning + 1024, "{beginning} KiB, then {end} KiB");
}

#[test]
#[cfg(target_os = "linux")]
fn a_full_disk_is_told() {
    let origin = origin();
    let full = fs::File::options().write(true).open("/dev/full").unwrap();
    let folder = tempfile::tempdir().unwrap();
    let output = command(folder.path(), &[&origin.url("/page")]).stdout(full).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert_has(&text(&output.stderr), &["longhaul: failed: the body cannot be written: No space"]);
}

#[cfg(unix)]
mod terminal {
    use super::*;
    use rustix::process::{Pid, Signal, kill_process};
    use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

    #[test]
    fn nothing_binary_goes_to_a_terminal() {
        let origin = origin();
        let folder = tempfile::tempdir().unwrap();
        let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&master).unwrap();
        unlockpt(&master).unwrap();
        let name = ptsname(&master, Vec::new()).unwrap().into_string().unwrap();
        let terminal = || fs::File::options().read(true).write(true).open(&name).unwrap();
        // Held open, so that what is written stays there to be read.
        let _held = terminal();
        let mut master = fs::File::from(master);
        let mut shown = |length: usize| {
            let mut shown = vec![0; length];
            master.read_exact(&mut shown).unwrap();
            shown
        };

        let run = |path: &str, more: &[&str]| {
            let url = origin.url(path);
            let arguments = [&[&*url], more].concat();
            command(folder.path(), &arguments).stdout(terminal()).output().unwrap()
        };
        let output = run("/binary", &[]);
        assert_eq!(output.status.code(), Some(1));
        assert_has(&text(&output.stderr), &["the body is binary", "-o FILE", "-o -\n"]);
        // What comes out first is this, so nothing of it went before.
        assert_eq!(run("/page", &[]).status.code(), Some(0));
        assert_eq!(shown(8), b"a page\r\n");
        assert_eq!(run("/binary", &["-o", "-"]).status.code(), Some(0));
        assert_eq!(shown(4), [b'P', b'K', 0, 1]);
    }

    #[test]
    fn the_first_signal_cuts() {
        let silent = Origin::builder()
            .handler(|request: &Received| match request.path.as_str() {
                "/body" => Script::send("HTTP/1.1 200 OK\r\n\r\nbeginning").hold(),
                "/wait" => Script::new().then_reply(Reply::new(503)),
                _ => Script::new().hold(),
            })
            .start()
            .unwrap();
        for (number, (path, flags)) in [
            ("/head", &["--read-timeout", "600"][..]),
            ("/body", &["--read-timeout", "600"]),
            ("/body", &["--read-timeout", "600", "-o", "page"]),
            ("/wait", &["--backoff-factor", "600", "--backoff-max", "600", "--deadline", "none"]),
        ]
        .into_iter()
        .enumerate()
        {
            let folder = tempfile::tempdir().unwrap();
            let child = command(folder.path(), &[&[&*silent.url(path)], flags].concat())
                .stdout(Stdio::piped())
                .stderr(Stdio::piped())
                .spawn()
                .unwrap();
            assert!(silent.wait_for_requests(number as u64 + 1, secs(30.0)));
            kill_process(Pid::from_child(&child), Signal::INT).unwrap();
            let output = child.wait_with_output().unwrap();
            assert_eq!(output.status.code(), Some(130), "{path}: {}", text(&output.stderr));
            assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0, "{path} {flags:?}");
        }
    }
}
