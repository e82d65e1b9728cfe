//! A credential that is refused in the middle of a run.
//!
//! What the proxy sees of it is counted there: a client that goes on asking with a refused
//! password gets its address blocked.

use crate::roads::{ca, recipe};
use longhaul::ProxyPool;
use longhaul::batch::{Batch, RecordWriter, Source, Stopped};
use longhaul::error::ErrorKind;
use longhaul::lab::{HttpProxy, Origin, Received, Reply, Script, SocksProxy};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

const WORKERS: u64 = 24;
/// Requests that the proxy still lets through.
const GOOD: u64 = 300;

/// What a proxy does once the credential has been taken back.
fn refused() -> Script {
    Reply::new(407).header("Proxy-Authenticate", "Basic realm=\"gateway\"").body("expired").into()
}

#[test]
fn one_refused_credential_stops_a_run_of_24_workers_with_one_attempt_each_at_most() {
    for target in ["http", "https"] {
        let secure = target == "https";
        let origin = Origin::builder().handler(|_| Reply::ok("page"));
        let origin = if secure { origin.tls(ca()) } else { origin }.start().unwrap();
        let asked = Arc::new(AtomicU64::new(0));
        let after = Arc::new(AtomicU64::new(0));
        let (count, late) = (asked.clone(), after.clone());
        let proxy = HttpProxy::builder()
            .elsewhere(origin.address())
            .handler(move |_: &Received| {
                (count.fetch_add(1, Ordering::SeqCst) >= GOOD).then(|| {
                    late.fetch_add(1, Ordering::SeqCst);
                    refused()
                })
            })
            .start()
            .unwrap();
        let root = tempfile::NamedTempFile::new().unwrap();
        ca().write_pem(root.path()).unwrap();
        let list = format!("http://user:pass@{}", proxy.address());
        // A tunnel of its own for each URL, or the proxy would not be asked again.
        let pool = ProxyPool::parse(&list).unwrap().keep_alive(!secure);
        let outcome = Batch::builder(recipe().extra_roots(root.path()).proxies(pool))
            .source(Source::urls((0..5000).map(|number| format!("{target}://a.test/{number}"))))
            .sink(RecordWriter::stream("nowhere", std::io::sink()))
            .workers(usize::try_from(WORKERS).unwrap())
            .build()
            .unwrap()
            .run()
            .unwrap();
        let Some(Stopped::Failure { kind, message }) = &outcome.stopped else {
            panic!("{target}: {:?}", outcome.stopped)
        };
        assert_eq!(*kind, ErrorKind::ProxyAuth, "{message}");
        assert_eq!(outcome.exit_code(), 3);
        let after = after.load(Ordering::SeqCst);
        assert!((1..=WORKERS).contains(&after), "{target}: {after} attempts with a dead password");
        assert_eq!(outcome.summary.ok, GOOD, "{target}: what was answered counts");
    }
}

#[test]
fn with_another_credential_left_the_run_goes_on_and_the_dead_one_is_left_alone() {
    let origin = Origin::builder().handler(|_| Reply::ok("page")).start().unwrap();
    let asked = Arc::new(AtomicU64::new(0));
    let count = asked.clone();
    let expiring = HttpProxy::builder()
        .elsewhere(origin.address())
        .handler(move |_: &Received| (count.fetch_add(1, Ordering::SeqCst) >= GOOD).then(refused))
        .start()
        .unwrap();
    let lasting = HttpProxy::builder().elsewhere(origin.address()).start().unwrap();
    let list = format!("http://a:a@{}\nhttp://b:b@{}", expiring.address(), lasting.address());
    let outcome = Batch::builder(recipe().proxies(ProxyPool::parse(&list).unwrap()))
        .source(Source::urls((0..2000).map(|number| format!("http://a.test/{number}"))))
        .sink(RecordWriter::stream("nowhere", std::io::sink()))
        .workers(usize::try_from(WORKERS).unwrap())
        .build()
        .unwrap()
        .run()
        .unwrap();
    assert!(outcome.stopped.is_none(), "{:?}", outcome.stopped);
    assert_eq!((outcome.summary.ok, outcome.exit_code()), (2000, 0));
    let late = asked.load(Ordering::SeqCst).saturating_sub(GOOD);
    assert!((1..=WORKERS).contains(&late), "{late} attempts with a dead password");
}

#[test]
fn socks_credentials_stop_a_run_just_so() {
    let origin = Origin::builder().start().unwrap();
    let proxy = SocksProxy::builder()
        .credentials("user", "right")
        .elsewhere(origin.address())
        .start()
        .unwrap();
    let list = format!("socks5h://user:wrong@{}", proxy.address());
    let outcome = Batch::builder(recipe().proxies(ProxyPool::parse(&list).unwrap()))
        .source(Source::urls((0..1000).map(|number| format!("http://a.test/{number}"))))
        .sink(RecordWriter::stream("nowhere", std::io::sink()))
        .workers(usize::try_from(WORKERS).unwrap())
        .build()
        .unwrap()
        .run()
        .unwrap();
    assert!(
        matches!(outcome.stopped, Some(Stopped::Failure { kind: ErrorKind::ProxyAuth, .. })),
        "{:?}",
        outcome.stopped
    );
    assert_eq!(outcome.exit_code(), 3);
    let refused = proxy.socks_counts().unauthorized;
    assert!((1..=WORKERS).contains(&refused), "{refused}");
    assert_eq!(origin.counts().accepted, 0);
}
