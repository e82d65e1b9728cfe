//! What the answers say, and how the questions are asked under the limits of a run.

use super::*;
use crate::batch::{Batch, FnSink, MemoryQueue, Stopped};
use crate::policy::{Limiter, Slots};
use crate::time::{Clock, SimClock, secs};
use crate::transport::{Play, Script};
use crate::workers::Stopper;
use crate::{ProxyPool, Session};
use std::sync::{Arc, Mutex};

fn address(text: &str) -> IpAddr {
    text.parse().unwrap()
}

#[test]
fn addresses_as_endpoints_write_them() {
    for (text, wanted) in [
        ("192.0.2.7\n", Some("192.0.2.7")),
        (r#"{"origin": "192.0.2.7, 198.51.100.1"}"#, Some("192.0.2.7")),
        (r#"{"dns":"198.51.100.1","ip":"192.0.2.7"}"#, Some("192.0.2.7")),
        (r#"{"ip":"2001:db8::1"}"#, Some("2001:db8::1")),
        ("::ffff:192.0.2.7", Some("192.0.2.7")),
        ("2001:DB8::1", Some("2001:db8::1")),
        ("[2001:db8::1]:443", Some("2001:db8::1")),
        ("REMOTE_ADDR = 192.0.2.7:51234", Some("192.0.2.7")),
        ("ip:192.0.2.7", Some("192.0.2.7")),
        ("Your address is 192.0.2.7.", Some("192.0.2.7")),
        ("<html><b>192.0.2.7</b></html>", Some("192.0.2.7")),
        ("std::net 1.2.3 at 12:30", None),
        (r#"{"ip":null}"#, None),
        ("999.1.1.1", None),
        ("", None),
    ] {
        assert_eq!(address_in(text), wanted.map(address), "{text}");
    }
}

fn exits(direct: Option<&str>, seen: &[Option<&str>]) -> Exits {
    let gone = || Error::new(ErrorKind::ProxyUnreachable, Phase::Connect, Fault::Proxy, "refused");
    let seen = (1..)
        .zip(seen)
        .map(|(n, seen)| (format!("http://p{n}:1"), seen.map(address).ok_or_else(gone)))
        .collect();
    Exits { direct: direct.map(address), seen }
}

#[test]
fn equal_addresses_are_a_leak() {
    let leak = exits(Some("192.0.2.1"), &[Some("192.0.2.2"), Some("192.0.2.1"), None])
        .verdict()
        .unwrap_err();
    assert_eq!(leak.kind(), ErrorKind::ExitLeak);
    assert_eq!(
        leak.to_string(),
        "the world sees the own address 192.0.2.1 through http://p2:1; no request was sent, \
         check where this proxy leads"
    );
}

#[test]
fn a_silent_proxy_is_none_but_silence_everywhere_shows_nothing() {
    let fine = exits(Some("192.0.2.1"), &[None, Some("192.0.2.2"), Some("192.0.2.2")]);
    let fine = fine.verdict().unwrap();
    assert_eq!(fine.shared(), BTreeMap::from([(address("192.0.2.2"), 2)]));
    let silent = exits(Some("192.0.2.1"), &[None, None]).verdict().unwrap_err();
    assert_eq!(silent.kind(), ErrorKind::ProxyUnreachable);
    assert!(exits(None, &[Some("192.0.2.1")]).verdict().is_ok());
    assert!(exits(Some("192.0.2.1"), &[]).verdict().is_ok());
}

/// An endpoint behind proxies, on a clock of its own.
struct Echo {
    clock: Arc<SimClock>,
    script: Script,
}

impl Echo {
    fn new() -> Self {
        let clock = Arc::new(SimClock::default());
        let script = Script::with(Arc::clone(&clock) as Arc<dyn Clock>, |asked, _| {
            Play::status(200).body(if asked.proxy.is_some() { "192.0.2.7" } else { "192.0.2.1" })
        });
        Self { clock, script }
    }

    fn recipe(&self) -> SessionBuilder {
        let script = self.script.clone();
        Session::builder()
            .trust_env(false)
            .clock(Arc::clone(&self.clock) as Arc<dyn Clock>)
            .transport(move || script.clone())
    }

    /// The recipe of a run with at most so many attempts per second.
    fn limited(&self, per_second: f64) -> SessionBuilder {
        let limiter = Limiter::new(Slots::new(per_second, 1), None, None).expect("a rate");
        self.recipe().limited(Some(Arc::new(Mutex::new(limiter))))
    }

    /// The seconds between two attempts.
    fn gaps(&self, from: usize) -> Vec<f64> {
        let times: Vec<_> = self.script.asked()[from..].iter().map(|asked| asked.at).collect();
        times.windows(2).map(|pair| (pair[1] - pair[0]).as_secs_f64()).collect()
    }
}

const URL: &str = "http://echo.test/";
const LIST: &str = "a:1\nb:1";

fn proxies() -> Vec<ProxyUrl> {
    LIST.lines().map(|proxy| proxy.parse().unwrap()).collect()
}

fn check(recipe: &SessionBuilder) -> Result<Exits, Error> {
    check_exits(recipe, URL, &proxies(), 1, &|| false)
}

#[test]
fn every_question_takes_its_slots_of_the_run_and_of_its_proxy() {
    let echo = Echo::new();
    check(&echo.limited(1.0).proxies(ProxyPool::parse(LIST).unwrap())).unwrap();
    assert_eq!(echo.gaps(0), [1.0; 4]);

    // Each proxy is asked twice, by its own rate.
    let slow = ProxyPool::parse(LIST).and_then(|pool| pool.rate_per_proxy(Some(0.5))).unwrap();
    check(&echo.recipe().proxies(slow)).unwrap();
    assert_eq!(echo.gaps(5), [0.0, 2.0, 0.0, 2.0]);
}

#[test]
fn a_deadline_shorter_than_the_wait_for_a_slot_leaves_no_proxy_unasked() {
    for per_second in [1.0 / 60.0, 1.0 / 3600.0] {
        let echo = Echo::new();
        let exits = check(&echo.limited(per_second).deadline(secs(10.0))).unwrap();
        assert_eq!(exits.direct, Some(address("192.0.2.1")));
        assert_eq!(exits.shared(), BTreeMap::from([(address("192.0.2.7"), 2)]));
        assert_eq!(echo.script.attempts(), 5);

        let slow = ProxyPool::parse(LIST).and_then(|pool| pool.rate_per_proxy(Some(per_second)));
        let exits = check(&echo.recipe().proxies(slow.unwrap()).deadline(secs(10.0))).unwrap();
        assert_eq!(exits.shared(), BTreeMap::from([(address("192.0.2.7"), 2)]));
        assert_eq!(echo.script.attempts(), 10);
    }
}

#[test]
fn a_proxy_that_was_never_asked_is_not_taken_for_a_silent_one() {
    let echo = Echo::new();
    let failing = |name: Option<&'static str>| {
        echo.recipe().attempt_hook(move |attempt| match (attempt.proxy, name) {
            (None, None) => Err(Error::config("the hook fails")),
            (Some(proxy), Some(name)) if proxy.contains(name) => {
                Err(Error::config("the hook fails"))
            }
            _ => Ok(()),
        })
    };
    for name in [None, Some("a:1"), Some("b:1")] {
        let error = check(&failing(name)).unwrap_err();
        assert_eq!(error.message(), "the hook fails", "{name:?}");
    }
}

#[test]
fn a_stop_is_heard_while_a_question_waits_for_its_slot() {
    let echo = Echo::new();
    let is_stopped = || echo.clock.elapsed() >= secs(30.0);
    let recipe = echo.limited(1.0 / 3600.0);
    let error = check_exits(&recipe, URL, &proxies(), 1, &is_stopped).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Cancelled);
    assert_eq!(echo.script.attempts(), 1);
    assert!(echo.clock.elapsed() < secs(31.0), "{:?}", echo.clock.elapsed());
}

#[test]
fn a_run_that_is_stopped_in_its_check_ends_as_interrupted_and_sends_nothing() {
    let mut echo = Echo::new();
    let stopper = Arc::new(Mutex::new(None::<Stopper>));
    let stops = Arc::clone(&stopper);
    echo.script = Script::with(Arc::clone(&echo.clock) as Arc<dyn Clock>, move |_, _| {
        stops.lock().unwrap().iter().for_each(Stopper::close);
        Play::status(200).body("192.0.2.1")
    });
    let queue = MemoryQueue::new(Arc::clone(&echo.clock) as Arc<dyn Clock>);
    queue.push("http://site.test/");
    queue.close();
    let batch = Batch::builder(echo.recipe())
        .clock(Arc::clone(&echo.clock) as Arc<dyn Clock>)
        .source(queue)
        .sink(FnSink::new(|_, _| Ok(())))
        .rate(1.0 / 3600.0)
        .exit_check(URL, proxies())
        .build()
        .unwrap();
    *stopper.lock().unwrap() = Some(batch.stopper());
    let outcome = batch.run().unwrap();
    assert!(matches!(outcome.stopped, Some(Stopped::Interrupted)), "{outcome:?}");
    // The direct question alone.
    assert_eq!(echo.script.attempts(), 1);
}
