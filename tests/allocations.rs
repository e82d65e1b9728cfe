//! A retry decision allocates nothing; what is kept of it is one entry of the history. A file is
//! sent without being held.

#![allow(clippy::unwrap_used, reason = "helpers of tests are tests")]

use allocation_counter::measure;
use http::{HeaderMap, HeaderValue, Method};
use longhaul::Session;
use longhaul::error::{Attempt, WaitReason};
use longhaul::message::Multipart;
use longhaul::policy::{
    Backoff, Category, Cooldown, Decision, HostCircuit, Outcome, RetryAfter, RetryBudget, Share,
};
use longhaul::rng::Rng;
use longhaul::time::{Clock, SimClock};
use longhaul::{Retry, secs};
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

fn outcomes() -> [Outcome; 6] {
    let error = |category| Outcome::Error { category, permanent: false, retry_after: None };
    let status = |retry_after| Outcome::Status { status: 503, retry_after };
    [
        error(Category::Connect),
        error(Category::Read),
        error(Category::Other),
        status(None),
        status(Some(secs(7.0))),
        Outcome::Error { category: Category::Read, permanent: true, retry_after: None },
    ]
}

#[test]
fn a_decision_allocates_nothing() {
    let shapes = [
        Backoff::exponential(secs(0.6)),
        Backoff::full_jitter(secs(0.6)),
        Backoff::decorrelated(secs(0.6)).with_jitter(secs(0.1)),
    ];
    for backoff in shapes {
        let (retry, mut rng) = (Retry::long_run().backoff(backoff), Rng::seeded(1));
        for outcome in outcomes() {
            let info = measure(|| {
                let mut state = retry.start();
                // Up to the end of every budget.
                for _ in 0..6 {
                    state.decide(&Method::GET, &outcome, &mut rng);
                    state.redirect(Some(secs(1.0)));
                }
            });
            assert_eq!(info.count_total, 0, "{outcome:?}");
        }
    }
}

#[test]
fn the_history_takes_one_entry_and_shares_the_rest() {
    let (retry, mut rng) = (Retry::long_run(), Rng::seeded(1));
    let url: Arc<str> = Arc::from("http://a.test/");
    let mut history = Vec::with_capacity(1);
    let mut state = retry.start();
    let mut decide_and_record = || {
        let Decision::Retry { wait, .. } = state.decide(&Method::GET, &outcomes()[3], &mut rng)
        else {
            return;
        };
        history.push(Attempt {
            method: Method::GET,
            url: Arc::clone(&url),
            proxy: None,
            exit: None,
            status: Some(503),
            error: None,
            elapsed: Duration::ZERO,
            wait: Some((wait, WaitReason::Backoff)),
            reused: false,
            resend: false,
            note: None,
            refusal: None,
            exchange: None,
        });
    };
    assert_eq!(measure(&mut decide_and_record).count_total, 0, "the entry had a place");
    assert_eq!(measure(&mut decide_and_record).count_total, 1, "the entry needs a place");
    assert_eq!(history.len(), 2);
}

#[test]
fn neither_do_the_brakes_of_a_run() {
    let now = SimClock::default().now();
    let mut rng = Rng::seeded(1);
    let mut budget = RetryBudget::new(Share::HALF);
    let mut circuit = HostCircuit::default();
    let mut cooldown = Cooldown::default();
    // The first news of a host is kept.
    circuit.note("a.test", true, now);
    cooldown.note("a.test", 0, 429, secs(1.0), now);
    let info = measure(|| {
        for seconds in 0..100 {
            let now = now + Duration::from_secs(seconds);
            budget.note_request(now);
            budget.take_retry(now);
            circuit.note("a.test", seconds % 2 == 0, now);
            circuit.may_retry("a.test", now);
            circuit.may_retry("b.test", now);
            cooldown.note("a.test", 0, 429, secs(1.0), now);
            cooldown.until("a.test", 0, now, &mut rng);
        }
    });
    assert_eq!(info.count_total, 0);
}

#[test]
fn seconds_are_read_where_they_are() {
    let mut headers = HeaderMap::new();
    for value in [None, Some("120"), Some("0.5"), Some("soon")] {
        if let Some(value) = value {
            headers.insert("retry-after", HeaderValue::from_static(value));
        }
        let info = measure(|| {
            RetryAfter::of(&headers, SystemTime::UNIX_EPOCH);
        });
        assert_eq!(info.count_total, 0, "{value:?}");
    }
}

#[test]
fn a_file_of_200_megabytes_is_sent_as_a_part_within_a_few_hundred_kilobytes() {
    const LENGTH: u64 = 200 * 1000 * 1000;
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    // Takes the body and throws it away, which no server of the lab does.
    let server = std::thread::spawn(move || {
        let mut stream = BufReader::new(listener.accept().unwrap().0);
        let mut length = 0;
        loop {
            let mut line = String::new();
            stream.read_line(&mut line).unwrap();
            if let Some(value) = line.strip_prefix("Content-Length: ") {
                length = value.trim().parse().unwrap();
            }
            if line.trim().is_empty() {
                break;
            }
        }
        let taken = io::copy(&mut (&mut stream).take(length), &mut io::sink()).unwrap();
        stream.get_mut().write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").unwrap();
        taken
    });
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("large.bin");
    File::create(&path).unwrap().set_len(LENGTH).unwrap();
    let session = Session::builder().trust_env(false).build().unwrap();
    let mut status = 0;
    let info = measure(|| {
        let form = Multipart::new().field("a", "1").file("f", &path);
        status = session.post(url).multipart(form).send().unwrap().status();
    });
    assert_eq!(status, 200);
    assert!(server.join().unwrap() > LENGTH);
    assert!(info.bytes_max < 500_000, "{} bytes at once", info.bytes_max);
    assert!(info.count_total < 1000, "{} allocations", info.count_total);
}

#[cfg(feature = "lab")]
#[test]
fn c146_a_request_allocates_the_same_beside_ten_hosts_and_beside_two_hundred() {
    use longhaul::lab::{Origin, Reply};
    let everywhere = std::net::SocketAddr::from(([0, 0, 0, 0], 0));
    let origin =
        Origin::builder().address(everywhere).handler(|_| Reply::ok("page")).start().unwrap();
    // Of the third round: by then every connection and every buffer is there.
    let each = |hosts: u8| {
        let session = Session::builder().trust_env(false).pool_connections(200).build().unwrap();
        let mut info = measure(|| {});
        for _ in 0..3 {
            info = measure(|| {
                for host in 1..=hosts {
                    let url = format!("http://127.0.4.{host}:{}/", origin.address().port());
                    let response = session.get(url).send().unwrap();
                    assert_eq!(response.status(), 200);
                }
            });
        }
        (info.count_total / u64::from(hosts), info.bytes_total / u64::from(hosts))
    };
    let ((few, few_bytes), (many, many_bytes)) = (each(10), each(200));
    // A figure more in an address is a byte more in a text here and there.
    assert!(many <= few + 1, "{few} allocations beside 10 hosts, {many} beside 200");
    assert!(many_bytes <= few_bytes + 64, "{few_bytes} bytes beside 10 hosts, {many_bytes}");
}
