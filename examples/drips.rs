//! How far a timeout is overshot when the peer drips, in every phase of an attempt.
//!
//! A peer that sends a byte now and then never lets a read time out, so `connect` and the deadline
//! have to hold by themselves, whatever is being waited for. Each row is a peer that drips (or
//! stays silent) in one phase; a limit of half a second is set, and what is told is by how much
//! the error came late. Prints the table of `docs/timeouts.md`:
//!
//! ```sh
//! cargo run --features lab --example drips
//! ```

use longhaul::lab::{Ca, HttpProxy, Origin, Script, SilentPort, SocksProxy, hostile};
use longhaul::policy::Timeouts;
use longhaul::time::{Clock, SystemClock};
use longhaul::transport::{ResolveError, SystemResolver};
use longhaul::{Error, ProxyUrl, Session, SessionBuilder, secs};
use std::io::Write;
use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// The limit that is set.
const LIMIT: f64 = 0.5;
/// How often each row is measured.
const TIMES: usize = 20;
/// The pace of the drips that are not of the lab.
const DRIP: Duration = Duration::from_millis(20);

type Outcome = Result<(), Box<dyn std::error::Error>>;

fn main() -> Outcome {
    println!("| phase | peer | limit | the error says | late, median | late, worst |");
    println!("|---|---|---|---|---|---|");
    let ca = Ca::new()?;
    let root = tempfile::NamedTempFile::new()?;
    ca.write_pem(root.path())?;
    // What the machine adds to any wait by itself.
    let control =
        (0..TIMES).map(|_| late(|| SystemClock.sleep_until(SystemClock.now() + secs(LIMIT))));
    print("none", "a sleep of that length", "", "", control.collect());
    for row in rows(&ca, root.path())? {
        for (name, limits) in row.limits()? {
            let mut times = Vec::with_capacity(TIMES);
            let mut said = String::new();
            for _ in 0..TIMES {
                let session = row.recipe.clone().timeout(limits).build()?;
                times.push(late(|| said = told(session.get(row.url.as_str()).send().err())));
            }
            print(row.phase, row.peer, name, &said, times);
        }
    }
    Ok(())
}

/// By how much this takes longer than the limit.
fn late(wait: impl FnOnce()) -> Duration {
    let begun = SystemClock.now();
    wait();
    SystemClock.now().saturating_duration_since(begun).saturating_sub(secs(LIMIT))
}

fn print(phase: &str, peer: &str, limit: &str, said: &str, mut times: Vec<Duration>) {
    times.sort_unstable();
    let shown = |time: Option<&Duration>| {
        format!("{:.1} ms", time.copied().unwrap_or_default().as_secs_f64() * 1000.0)
    };
    let (median, worst) = (shown(times.get(TIMES / 2)), shown(times.last()));
    println!("| {phase} | {peer} | {limit} | {said} | {median} | {worst} |");
}

fn told(error: Option<Error>) -> String {
    match error {
        Some(error) => format!("{} in {}", error.kind(), error.phase()),
        None => "nothing: it succeeded".to_owned(),
    }
}

/// A peer that drips in one phase.
struct Row {
    phase: &'static str,
    peer: &'static str,
    recipe: SessionBuilder,
    url: String,
    /// Whether the connect timeout applies.
    connecting: bool,
    /// Lives as long as it is asked.
    _keep: Box<dyn std::any::Any>,
}

impl Row {
    fn limits(&self) -> Result<Vec<(&'static str, Timeouts)>, Error> {
        let deadline = Timeouts::unlimited().with_deadline(secs(LIMIT))?;
        let connect = Timeouts::unlimited().with_connect(secs(LIMIT))?;
        let mut limits = vec![("`deadline`", deadline)];
        if self.connecting {
            limits.insert(0, ("`connect`", connect));
        }
        Ok(limits)
    }
}

fn rows(ca: &Ca, root: &Path) -> Result<Vec<Row>, Box<dyn std::error::Error>> {
    let plain = Session::builder().trust_env(false);
    let trusting = plain.clone().extra_roots(root);
    let mut rows = Vec::new();
    let mut add = |phase, peer, recipe: &SessionBuilder, url: String, connecting, keep| {
        rows.push(Row { phase, peer, recipe: recipe.clone(), url, connecting, _keep: keep });
    };

    let hung = SystemResolver::around(|_| {
        SystemClock.sleep_until(SystemClock.now() + secs(3600.0));
        Err(ResolveError::TimedOut)
    });
    let recipe = plain.clone().resolver(Arc::new(hung));
    add(
        "DNS",
        "a resolver that never answers",
        &recipe,
        "http://a.test/".to_owned(),
        true,
        keep(()),
    );

    let silent = SilentPort::new()?;
    let url = format!("http://{}/", silent.address());
    add("TCP", "a full backlog", &plain, url, true, keep(silent));

    let nowhere = SocketAddr::from(([127, 0, 0, 1], 9));
    for (secure, peer) in [(false, "an http proxy"), (true, "an https proxy")] {
        let proxy = HttpProxy::builder()
            .elsewhere(nowhere)
            .handler(|_| hostile::http_proxy_script("pdrip"));
        let proxy = if secure { proxy.tls(ca) } else { proxy }.start()?;
        let recipe = trusting.clone().proxies(proxy.url().parse::<ProxyUrl>()?);
        add("CONNECT reply", peer, &recipe, "https://a.test/".to_owned(), true, keep(proxy));
    }

    let reply = Script::new().drip([5, 0, 0, 4].repeat(6), Duration::from_millis(100));
    let socks = SocksProxy::builder().handler(move |_| Some(reply.clone())).start()?;
    let recipe = plain.clone().proxies(socks.url("socks5h").parse::<ProxyUrl>()?);
    add("SOCKS reply", "a SOCKS5 proxy", &recipe, "http://a.test/".to_owned(), true, keep(socks));

    // The header of a handshake record, and its bytes one by one.
    let record = [&[0x16, 3, 3, 0x40, 0][..], &[0; 4096]].concat();
    let server = dripping(record.clone())?;
    add("TLS handshake", "a server", &plain, format!("https://{server}/"), true, keep(()));
    let proxy = format!("https://{}", dripping(record)?).parse::<ProxyUrl>()?;
    let recipe = plain.clone().proxies(proxy);
    add("TLS handshake", "an https proxy", &recipe, "https://a.test/".to_owned(), true, keep(()));

    let origin = Origin::builder().on_head(hostile::early).handler(hostile::origin);
    for (secure, peer) in [(false, "a server"), (true, "a server, under TLS")] {
        let origin = origin.clone();
        let origin = Arc::new(if secure { origin.tls(ca) } else { origin }.start()?);
        for (phase, path) in [("head", "/b/drip-head"), ("body", "/b/drip-body")] {
            add(phase, peer, &trusting, origin.url(path), false, keep(Arc::clone(&origin)));
        }
    }
    // Redirects in a circle, each with a body without end, of which a little is drained.
    let circle =
        Script::send("HTTP/1.1 302 Found\r\nLocation: /\r\n\r\n").drip("x".repeat(1000), DRIP);
    let origin = Origin::builder().handler(move |_| circle.clone()).start()?;
    add("drain", "redirects with endless bodies", &plain, origin.url("/"), false, keep(origin));
    Ok(rows)
}

fn keep<T: std::any::Any>(what: T) -> Box<dyn std::any::Any> {
    Box::new(what)
}

/// A port that sends these bytes to everybody, one by one.
fn dripping(bytes: Vec<u8>) -> std::io::Result<SocketAddr> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let address = listener.local_addr()?;
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let bytes = bytes.clone();
            std::thread::spawn(move || {
                let mut stream = stream;
                for byte in bytes {
                    if stream.write_all(&[byte]).is_err() {
                        return;
                    }
                    SystemClock.sleep_until(SystemClock.now() + DRIP);
                }
            });
        }
    });
    Ok(address)
}
