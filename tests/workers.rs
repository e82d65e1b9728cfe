//! A pool against a server on loopback: sessions, retries and limits as a user meets them.

#![allow(clippy::unwrap_used, reason = "a helper of a test fails its test")]

use longhaul::error::WaitReason;
use longhaul::policy::Concurrency;
use longhaul::workers::StopReason;
use longhaul::{ErrorKind, Retry, Session, WorkerPool};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::thread;
use std::time::Duration;

/// Answers `/ok/N` with 200, `/flaky/N` with 503 and then 200, `/gone/N` with 404, and `/crowd/N`
/// with 200 after a while, but with 503 at once where more than [`CROWD`] come at a time.
struct Server {
    base: String,
    seen: Arc<Seen>,
}

const CROWD: usize = 12;

#[derive(Default)]
struct Seen {
    requests: Mutex<HashMap<String, usize>>,
    open: AtomicUsize,
    most_open: AtomicUsize,
}

impl Server {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let base = format!("http://{}", listener.local_addr().unwrap());
        let seen = Arc::new(Seen::default());
        let shared = Arc::clone(&seen);
        // It ends with the process of this test.
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let seen = Arc::clone(&shared);
                thread::spawn(move || seen.serve(&stream));
            }
        });
        Self { base, seen }
    }

    fn urls(&self, kind: &str, count: usize) -> Vec<String> {
        (0..count).map(|n| format!("{}/{kind}/{n}", self.base)).collect()
    }
}

impl Seen {
    fn serve(&self, stream: &TcpStream) {
        let mut lines = BufReader::new(stream).lines().map_while(Result::ok);
        while let Some(first) = lines.next() {
            let path = first.split(' ').nth(1).unwrap_or_default().to_owned();
            if lines.by_ref().take_while(|line| !line.is_empty()).count() == 0 {
                return;
            }
            let open = self.open.fetch_add(1, Ordering::SeqCst) + 1;
            self.most_open.fetch_max(open, Ordering::SeqCst);
            let times = {
                let mut requests = self.requests.lock().unwrap();
                let times = requests.entry(path.clone()).or_default();
                *times += 1;
                *times
            };
            let status = match path.split('/').nth(1) {
                Some("flaky") if times == 1 => "503 Service Unavailable",
                Some("gone") => "404 Not Found",
                Some("crowd") if open > CROWD => "503 Service Unavailable",
                Some("crowd") => {
                    // Nobody says anything, so this takes as long as it may.
                    let (_open, silence) = mpsc::channel::<()>();
                    let _ = silence.recv_timeout(Duration::from_millis(5));
                    "200 OK"
                }
                _ => "200 OK",
            };
            let reply = format!("HTTP/1.1 {status}\r\nContent-Length: 2\r\n\r\nok");
            self.open.fetch_sub(1, Ordering::SeqCst);
            if (&*stream).write_all(reply.as_bytes()).is_err() {
                return;
            }
        }
    }
}

#[test]
fn every_url_once_with_its_place_and_its_attempts() {
    let server = Server::start();
    let urls = server.urls("ok", 500);
    let pool = WorkerPool::builder(Session::builder()).workers(8).build().unwrap();
    let mut places = BTreeSet::new();
    for done in pool.run(urls.iter().map(String::as_str)) {
        assert_eq!(done.url, urls[done.index as usize]);
        assert_eq!(done.attempts().len(), 1);
        assert_eq!(done.result.unwrap().status(), 200);
        assert!(places.insert(done.index));
    }
    assert_eq!(places.len(), 500);
    let stats = pool.stats();
    assert_eq!((stats.fed, stats.finished, stats.attempts), (500, 500, 500));
    assert!(server.seen.requests.lock().unwrap().values().all(|times| *times == 1));
}

#[test]
fn a_url_that_waits_comes_back_with_its_history() {
    let server = Server::start();
    let mut urls = server.urls("flaky", 20);
    urls.extend(server.urls("ok", 200));
    let session = Session::builder().retry(Retry::long_run());
    let pool = WorkerPool::builder(session).workers(2).build().unwrap();
    let mut recovered = 0;
    for done in pool.run(urls) {
        if done.index < 20 {
            let [first, second] = done.attempts() else { panic!("{:?}", done.attempts()) };
            assert_eq!((first.status, second.status), (Some(503), Some(200)));
            assert_eq!(first.wait.map(|(_, reason)| reason), Some(WaitReason::Backoff));
            recovered += 1;
        } else {
            assert_eq!(done.attempts().len(), 1, "{}", done.url);
        }
        assert_eq!(done.result.unwrap().status(), 200);
    }
    assert_eq!(recovered, 20);
    assert_eq!(pool.stats().attempts, 240);
}

#[test]
fn a_host_never_has_more_than_its_share() {
    let server = Server::start();
    let pool = WorkerPool::builder(Session::builder()).workers(8).per_host(2).build().unwrap();
    assert_eq!(pool.run(server.urls("ok", 300)).filter(|done| done.result.is_ok()).count(), 300);
    assert!(server.seen.most_open.load(Ordering::SeqCst) <= 2);
}

#[test]
fn adaptive_concurrency_finds_what_a_server_bears() {
    let server = Server::start();
    let retry = Retry::long_run().backoff_factor(longhaul::secs(0.05));
    let pool = WorkerPool::builder(Session::builder().trust_env(false).retry(retry))
        .concurrency(Concurrency::Adaptive)
        .workers(64)
        .build()
        .unwrap();
    assert_eq!((pool.workers(), pool.stats().concurrency), (64, 8));
    let mut attempts = 0;
    for done in pool.run(server.urls("crowd", 3000)) {
        attempts += done.attempts().len();
        assert_eq!(done.result.unwrap().status(), 200);
    }
    let stats = pool.stats();
    assert!((6..=20).contains(&stats.concurrency), "{stats:?}");
    assert!((8..=20).contains(&stats.most_concurrency), "{stats:?}");
    assert!(stats.back_offs > 0, "{stats:?}");
    // A fixed number of 64 has most of its attempts refused.
    assert!(attempts < 3300, "{attempts} attempts");
}

#[test]
fn a_rule_ends_the_run_and_names_the_cause() {
    let server = Server::start();
    let mut urls = server.urls("gone", 1);
    urls.extend(server.urls("ok", 100));
    let pool = WorkerPool::builder(Session::builder())
        .workers(1)
        .stop_when(|done| {
            let status = done.result.as_ref().ok()?.status();
            (status == 404).then(|| StopReason::rule("the first page is gone"))
        })
        .build()
        .unwrap();
    let all: BTreeMap<_, _> = pool.run(urls).map(|done| (done.index, done.result)).collect();
    assert_eq!(all[&0].as_ref().unwrap().status(), 404);
    for (index, result) in all.iter().skip(1) {
        let error = result.as_ref().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Cancelled, "{index}");
        assert_eq!(error.message(), "not finished, since the first page is gone");
    }
    assert_eq!(pool.stop_reason(), Some(StopReason::rule("the first page is gone")));
    assert_eq!(server.seen.requests.lock().unwrap().len(), 1);
}

#[test]
fn tickets_and_stages_hold_the_response() {
    let server = Server::start();
    let pool = WorkerPool::builder(Session::builder()).workers(4).build().unwrap();
    let ticket = pool.submit(format!("{}/ok/ticket", server.base));
    assert_eq!(ticket.wait().result.unwrap().body(), b"ok");
    let lengths: Vec<_> = pool
        .run(server.urls("ok", 50))
        .then(|done| done.result.map_or(0, |response| response.body().len()))
        .map(Result::unwrap)
        .collect();
    assert_eq!(lengths, [2; 50]);
}

#[test]
fn what_cannot_be_reached_fails_alone() {
    // Bound, and closed again: nobody listens there.
    let nobody = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let server = Server::start();
    let pool = WorkerPool::builder(Session::builder()).workers(2).build().unwrap();
    let urls = [format!("http://{nobody}/"), format!("{}/ok/1", server.base), "nonsense".into()];
    let results: Vec<_> = pool.run_ordered(urls).map(|done| done.result).collect();
    assert_eq!(results[0].as_ref().unwrap_err().kind(), ErrorKind::Connection);
    assert_eq!(results[1].as_ref().unwrap().status(), 200);
    assert_eq!(results[2].as_ref().unwrap_err().kind(), ErrorKind::MissingScheme);
    assert_eq!(pool.stop_reason(), None);
}

#[test]
fn settings_that_cannot_work_are_refused_with_their_remedy() {
    let pool = || WorkerPool::builder(Session::builder());
    for (builder, wanted) in [
        (pool().workers(0), "workers is 0; give a number from 1 to 10000"),
        (pool().workers(10_001), "workers is 10001; give a number from 1 to 10000"),
        (pool().permits(0), "permits is 0; give a number from 1 to 10000000"),
        (
            pool().per_host(0),
            "per_host is 0, with which nothing would ever be sent; give at least 1",
        ),
        (
            pool().rate(0.0),
            "rate is 0 a second, which is no rate; give a number above 0, or leave it out",
        ),
        (
            pool().host_rate(f64::NAN),
            "host_rate is NaN a second, which is no rate; give a number above 0, or leave it out",
        ),
        (
            pool().stack_bytes(1000),
            "stack_bytes is 1000, which is too small for TLS; give at least 65536",
        ),
        (pool().name("a\0b"), "the name of the pool holds a NUL; leave it out"),
    ] {
        let error = builder.build().unwrap_err();
        assert_eq!((error.kind(), error.message()), (ErrorKind::Config, wanted));
    }
}
