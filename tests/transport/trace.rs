//! What is told of the steps of an attempt, over each way.

use crate::{Client, through};
use longhaul::lab::{Ca, HttpProxy, Origin, Reply, SocksProxy};
use longhaul::message::Verify;
use longhaul::proxy::Route;
use longhaul::transport::{Event, Trace};
use std::sync::{Arc, Mutex};

/// What was told: for people, and the heads with everything in them.
#[derive(Debug, Clone, Default)]
struct Told(Arc<Mutex<(String, Vec<Vec<u8>>)>>);

impl Told {
    fn trace(&self) -> Trace {
        let told = self.clone();
        Trace::new(move |event| {
            let mut told = told.0.lock().unwrap();
            told.0.push_str(&event.to_string());
            if let Event::Connect(head)
            | Event::ConnectReply(head)
            | Event::Sent(head)
            | Event::Received(head) = event
            {
                told.1.push(head.exposed().to_vec());
            }
        })
    }

    /// The lines since the last call, without what differs from run to run, and the heads.
    fn take(&self) -> (Vec<String>, Vec<Vec<u8>>) {
        let (text, heads) = std::mem::take(&mut *self.0.lock().unwrap());
        let steady = |line: &str| match line.rsplit_once(" (") {
            Some((line, took)) if took.ends_with(" ms)") => line.to_owned(),
            _ => line.to_owned(),
        };
        (text.lines().map(steady).collect(), heads)
    }
}

fn client(told: &Told, ca: &std::path::Path) -> Client {
    let mut client = Client::with(|config| {
        config.trace = told.trace();
        config.tls.verify = Verify::Bundle(ca.to_owned());
    });
    client.headers.append("Cookie", "id=hunter2").unwrap();
    client
}

/// What begins each line, so that addresses of the own side need not be known.
fn assert_lines(lines: &[String], wanted: &[String]) {
    assert_eq!(lines.len(), wanted.len(), "{lines:#?}");
    for (line, wanted) in lines.iter().zip(wanted) {
        let parts: Vec<&str> = wanted.split('…').collect();
        let fits = line.starts_with(parts[0]) && line.ends_with(parts[parts.len() - 1]);
        assert!(fits, "{line} is not {wanted}");
    }
}

fn lines<const N: usize>(lines: [&str; N]) -> Vec<String> {
    lines.map(str::to_owned).into()
}

#[test]
fn each_step_through_a_tunnel_and_none_of_the_secrets() {
    let folder = tempfile::tempdir().unwrap();
    let bundle = folder.path().join("ca.pem");
    let ca = Ca::new().unwrap();
    ca.write_pem(&bundle).unwrap();
    let origin = Origin::builder()
        .tls(&ca)
        .handler(|_| Reply::ok("page").header("Set-Cookie", "id=hunter3; Path=/"))
        .start()
        .unwrap();
    let proxy = HttpProxy::builder().credentials("anna", "hunter2").start().unwrap();
    let url = format!("https://localhost:{}/a?b", origin.address().port());
    let told = Told::default();
    let mut client = client(&told, &bundle);
    let route = through(&format!("http://anna:hunter2@{}", proxy.address()));
    client.fetch(&url, &route).unwrap();
    let (found, heads) = told.take();
    let port = origin.address().port();
    let wanted = [
        format!("* GET {url} through http://***@{}", proxy.address()),
        format!("* connected to the proxy, 127.0.0.1:… to {}", proxy.address()),
        format!("> CONNECT localhost:{port} HTTP/1.1"),
        format!("> Host: localhost:{port}"),
        "> Proxy-Authorization: Basic ***".into(),
        ">".into(),
        "< HTTP/1.1 200 …".into(),
        "<".into(),
        "* TLS with the target localhost: TLSv1.3 TLS13_…".into(),
        "> GET /a?b HTTP/1.1".into(),
        format!("> Host: localhost:{port}"),
        "> Cookie: id=***".into(),
        ">".into(),
        "< HTTP/1.1 200 OK".into(),
    ];
    assert_lines(&found[..wanted.len()], &wanted);
    assert!(found.contains(&"< Set-Cookie: id=***; Path=/".to_owned()), "{found:#?}");
    assert_eq!(found.last().map(String::as_str), Some("<"));
    // Who asks for the bytes gets them as they went.
    let heads: Vec<String> = heads.into_iter().map(|h| String::from_utf8(h).unwrap()).collect();
    assert_eq!(heads.len(), 4);
    assert!(heads[0].contains("\r\nProxy-Authorization: Basic YW5uYTpodW50ZXIy\r\n"));
    assert!(heads[2].ends_with("\r\nCookie: id=hunter2\r\n\r\n"));
    assert!(heads[3].contains("\r\nSet-Cookie: id=hunter3; Path=/\r\n"));

    client.fetch(&url, &route).unwrap();
    let (found, _) = told.take();
    let kept = format!("* on the kept connection 127.0.0.1:… to {}, TLSv1.3 ", proxy.address());
    assert!(found[1].starts_with(kept.split('…').next().unwrap()), "{found:#?}");
    assert!(found[1].contains(", TLSv1.3 ") && found[2] == "> GET /a?b HTTP/1.1", "{found:#?}");
}

#[test]
fn tls_in_tls_says_with_whom() {
    let folder = tempfile::tempdir().unwrap();
    let bundle = folder.path().join("ca.pem");
    let ca = Ca::new().unwrap();
    ca.write_pem(&bundle).unwrap();
    let origin = Origin::builder().tls(&ca).handler(|_| Reply::ok("page")).start().unwrap();
    let proxy = HttpProxy::builder().tls(&ca).start().unwrap();
    let told = Told::default();
    let mut client = client(&told, &bundle);
    let route = through(&format!("https://localhost:{}", proxy.address().port()));
    let url = format!("https://localhost:{}/", origin.address().port());
    client.fetch(&url, &route).unwrap();
    let (found, _) = told.take();
    let steps: Vec<&String> = found.iter().filter(|line| line.starts_with("* ")).collect();
    assert!(steps[3].starts_with("* TLS with the proxy localhost: TLSv1.3 "), "{steps:#?}");
    assert!(steps[4].starts_with("* TLS with the target localhost: TLSv1.3 "), "{steps:#?}");
    let place = |start: &str| found.iter().position(|line| line.starts_with(start)).unwrap();
    assert!(place("* TLS with the proxy") < place("> CONNECT "));
    assert!(place("< HTTP/1.1 200") < place("* TLS with the target"));
}

#[test]
fn a_refusal_is_told_before_it_is_an_error() {
    let proxy = HttpProxy::builder().credentials("anna", "hunter2").start().unwrap();
    let told = Told::default();
    let mut client = Client::with(|config| config.trace = told.trace());
    let route = through(&format!("http://anna:hunter3@{}", proxy.address()));
    client.fetch("https://a.test/", &route).unwrap_err();
    let (found, _) = told.take();
    assert!(found.iter().any(|line| line.starts_with("< HTTP/1.1 407 ")), "{found:#?}");
    assert!(found.iter().all(|line| !line.contains("hunter")), "{found:#?}");
}

#[test]
fn names_socks_and_interim_responses() {
    let origin = longhaul::lab::Origin::builder()
        .handler(|_: &longhaul::lab::Received| {
            longhaul::lab::Script::send(
                "HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\nHTTP/1.1 204 Odd  words\r\nX-A: b\r\n\r\n",
            )
        })
        .start()
        .unwrap();
    let told = Told::default();
    let mut client = Client::with(|config| config.trace = told.trace());
    let url = format!("http://far.test:{}/", origin.address().port());
    client.fetch(&url, &Route::direct()).unwrap();
    let (found, heads) = told.take();
    let wanted = [
        format!("* GET {url}"),
        "* far.test is 127.0.0.1".to_owned(),
        format!("* connected to the target, 127.0.0.1:… to {}", origin.address()),
    ];
    assert_lines(&found[..3], &wanted);
    let came = ["< HTTP/1.1 103 Early Hints", "< Link: </x>", "<", "< HTTP/1.1 204 Odd  words"];
    assert_eq!(found[6..], lines([came[0], came[1], came[2], came[3], "< X-A: b", "<"]));
    assert_eq!(heads[2], b"HTTP/1.1 204 Odd  words\r\nX-A: b\r\n\r\n");

    let proxy = SocksProxy::builder().name("far.test", origin.address()).start().unwrap();
    client.fetch(&url, &through(&format!("socks5h://{}", proxy.address()))).unwrap();
    let (found, _) = told.take();
    let wanted = [
        format!("* GET {url} through socks5h://{}", proxy.address()),
        format!("* connected to the proxy, 127.0.0.1:… to {}", proxy.address()),
        format!("* the proxy has connected to far.test:{}", origin.address().port()),
        "> GET / HTTP/1.1".to_owned(),
    ];
    assert_lines(&found[..4], &wanted);
}
