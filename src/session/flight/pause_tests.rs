//! Further attempts of a step under limits: each takes its slot, and one that finds none goes on
//! later as if nothing had come between.

use crate::error::{ErrorKind, WaitReason};
use crate::message::{Auth, Request};
use crate::policy::{Limiter, Retry, Slots, Visit};
use crate::proxy::ProxyMap;
use crate::session::{Flight, SessionBuilder, SharedLimiter, Step};
use crate::time::{Clock, SimClock, secs};
use crate::transport::{Asked, Play, Script};
use crate::{ProxyPool, Session};
use http::Method;
use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// A recipe under limits, on a scripted transport.
struct Stage {
    clock: Arc<SimClock>,
    script: Script,
    limits: SharedLimiter,
    recipe: SessionBuilder,
}

impl Stage {
    fn new(limiter: Limiter, play: impl FnMut(&Asked, usize) -> Play + Send + 'static) -> Self {
        let clock = Arc::new(SimClock::default());
        let script = Script::with(Arc::clone(&clock) as Arc<dyn Clock>, play);
        let limits: SharedLimiter = Arc::new(Mutex::new(limiter));
        let shared = script.clone();
        let recipe = Session::builder()
            .trust_env(false)
            .clock(Arc::clone(&clock) as Arc<dyn Clock>)
            .transport(move || shared.clone())
            .limited(Some(Arc::clone(&limits)));
        Self { clock, script, limits, recipe }
    }

    /// Takes the slots of a first attempt, as who hands it out does.
    fn hand_out(&self) {
        let visit = Visit { host: None, arrives: true };
        let _slots = self.limits.lock().unwrap().take(visit, self.clock.now()).expect("a slot");
    }

    /// When each attempt was made, and to what.
    fn times(&self) -> Vec<(f64, String)> {
        let begin = self.clock.now() - self.clock.elapsed();
        let asked = self.script.asked();
        asked
            .iter()
            .map(|asked| ((asked.at - begin).as_secs_f64(), asked.url.as_str().to_owned()))
            .collect()
    }

    /// Steps as a worker does, each step in another session.
    fn fly(
        &self,
        url: &str,
        deadline: Option<Duration>,
    ) -> (Result<u16, ErrorKind>, Vec<WaitReason>) {
        let recipe = self.recipe.clone().deadline(deadline);
        let mut flight = Flight::new(Request::new(Method::GET, url), 0);
        let mut reasons = Vec::new();
        loop {
            let session = recipe.build().expect("a session");
            let counted = counted_host(&flight);
            let step = flight.step_handed_out(&session, counted.as_deref());
            for host in flight.take_visits() {
                self.limits.lock().unwrap().leave(&host, self.clock.now());
            }
            match step {
                Step::Done(response) => return (Ok(response.status()), reasons),
                Step::Failed(error) => return (Err(error.kind()), reasons),
                Step::Wait { until, reason } => {
                    reasons.push(reason);
                    self.clock.sleep_until(until);
                    // As the scheduler does, before it hands the job out.
                    let host = flight.host().map(Arc::from);
                    let visit = Visit { host: host.as_ref(), arrives: true };
                    let mut limits = self.limits.lock().unwrap();
                    let _slots = limits.take(visit, self.clock.now()).expect("a slot");
                    host.iter().for_each(|host| limits.leave(host, self.clock.now()));
                }
            }
        }
    }
}

/// The host that is counted for the next step, the first included.
fn counted_host(flight: &Flight) -> Option<String> {
    let url = flight.request().url.parse::<url::Url>().expect("a URL");
    flight.host().or(url.host_str()).map(str::to_owned)
}

fn rate(per_second: f64) -> Limiter {
    Limiter::new(Slots::new(per_second, 1), None, None).expect("a rate")
}

fn redirect(to: &str) -> Play {
    Play::status(302).header("Location", to)
}

#[test]
fn every_hop_takes_a_slot_of_the_run_and_of_its_host() {
    let hops = |asked: &Asked, _: usize| match asked.url.path() {
        "/a" => redirect("/b"),
        "/b" => redirect("http://other.test/c"),
        _ => Play::status(200),
    };
    let stage = Stage::new(rate(2.0), hops);
    let session = stage.recipe.build().unwrap();
    assert_eq!(session.get("http://one.test/a").send().unwrap().status(), 200);
    let times: Vec<f64> = stage.times().iter().map(|(at, _)| *at).collect();
    assert_eq!(times, [0.0, 0.5, 1.0]);

    let by_host = Limiter::new(None, Slots::new(2.0, 1), None).expect("a rate");
    let stage = Stage::new(by_host, hops);
    let session = stage.recipe.build().unwrap();
    let response = session.get("http://one.test/a").send().unwrap();
    let times: Vec<f64> = stage.times().iter().map(|(at, _)| *at).collect();
    assert_eq!(times, [0.0, 0.5, 0.5]);
    let waits: Vec<_> = response.attempts().iter().map(|attempt| attempt.wait).collect();
    assert_eq!(waits, [Some((secs(0.5), WaitReason::Limit)), None, None]);
}

#[test]
fn a_hop_with_a_slot_is_made_at_once_and_one_without_waits_in_the_heap() {
    let hops = |asked: &Asked, _: usize| match asked.url.path() {
        "/a" => redirect("/b"),
        _ => Play::status(200),
    };
    let two = Limiter::new(Slots::new(1.0, 2), None, None).expect("a rate");
    let stage = Stage::new(two, hops);
    assert_eq!(stage.fly("http://one.test/a", None), (Ok(200), vec![]));
    // The slot of the first attempt is taken by who hands it out, so one was left.
    assert_eq!(stage.fly("http://one.test/a", None), (Ok(200), vec![]));
    assert_eq!(stage.fly("http://one.test/a", None), (Ok(200), vec![WaitReason::Limit]));
}

#[test]
fn cookies_of_the_chain_go_along_to_another_session() {
    let stage = Stage::new(rate(1.0), |asked, _| {
        let cookie = asked.headers.get("cookie").map(<[u8]>::to_vec);
        match (asked.url.path(), cookie.as_deref()) {
            ("/a", _) => redirect("/b").header("Set-Cookie", "seen=yes"),
            ("/b", Some(b"seen=yes")) => redirect("/c"),
            ("/c", Some(b"seen=yes")) => Play::status(200),
            // As sites do that set a cookie and look whether it comes back.
            _ => redirect("/a"),
        }
    });
    stage.hand_out();
    let wanted = (Ok(200), vec![WaitReason::Limit; 2]);
    assert_eq!(stage.fly("http://one.test/a", None), wanted);
    assert_eq!(stage.script.attempts(), 3);
}

#[test]
fn cookies_of_the_chain_go_along_with_the_retry_of_a_hop() {
    let stage = Stage::new(rate(1000.0), |asked, nth| match (asked.url.path(), nth) {
        ("/a", _) => redirect("/b").header("Set-Cookie", "seen=yes"),
        (_, 1) => Play::status(503),
        _ if asked.headers.get("cookie") == Some(b"seen=yes") => Play::status(200),
        _ => redirect("/a"),
    });
    let stage = Stage { recipe: stage.recipe.clone().retry(Retry::long_run()), ..stage };
    let (result, reasons) = stage.fly("http://one.test/a", None);
    assert_eq!((result, stage.script.attempts()), (Ok(200), 3));
    assert!(reasons.contains(&WaitReason::Backoff), "{reasons:?}");
}

#[test]
fn the_answer_to_a_challenge_takes_a_slot_and_its_nonce_goes_along() {
    let stage = Stage::new(rate(1.0), |asked, _| match asked.headers.get("authorization") {
        None => Play::status(401)
            .header("WWW-Authenticate", r#"Digest realm="r", nonce="n", qop="auth""#)
            .header("Set-Cookie", "node=7"),
        Some(_) if asked.headers.get("cookie") == Some(b"node=7") => Play::status(200),
        Some(_) => Play::status(401),
    });
    let stage = Stage {
        recipe: stage.recipe.clone().auth(Auth::Digest("u".to_owned(), "p".to_owned())),
        ..stage
    };
    stage.hand_out();
    assert_eq!(stage.fly("http://one.test/", None), (Ok(200), vec![WaitReason::Limit]));
    let times: Vec<f64> = stage.times().iter().map(|(at, _)| *at).collect();
    assert_eq!(times, [0.0, 1.0]);
}

#[test]
fn a_copy_of_a_lost_request_takes_a_slot_and_stays_the_same_attempt() {
    let stage = Stage::new(rate(1.0), |_, nth| match nth {
        0 => Play::stale(),
        _ => Play::status(200),
    });
    let session = stage.recipe.build().unwrap();
    let response = session.get("http://one.test/").send().unwrap();
    let resends: Vec<bool> = response.attempts().iter().map(|attempt| attempt.resend).collect();
    assert_eq!(resends, [false, true]);
    assert_eq!(stage.times()[1].0, 1.0);
    assert!(stage.script.asked()[1].fresh);
}

#[test]
fn a_hop_stays_with_its_proxy_over_the_wait() {
    let stage = Stage::new(rate(1.0), |asked, _| match asked.url.path() {
        "/a" => redirect("/b"),
        _ => Play::status(200),
    });
    let pool = ProxyPool::parse("p0:1\np1:1\np2:1").unwrap();
    let recipe = stage.recipe.clone().proxies(pool).limited(Some(Arc::clone(&stage.limits)));
    let stage = Stage { recipe, ..stage };
    stage.hand_out();
    assert_eq!(stage.fly("http://one.test/a", None), (Ok(200), vec![WaitReason::Limit]));
    let asked = stage.script.asked();
    assert_eq!(asked[0].proxy, asked[1].proxy);
    let stats = stage.recipe.proxy_stats();
    assert!(stats.iter().all(|proxy| proxy.in_flight == 0), "{stats:?}");
}

#[test]
fn a_rate_of_a_proxy_counts_hops_and_is_a_limit() {
    let stage = Stage::new(rate(1000.0), |asked, _| match asked.url.path() {
        "/a" => redirect("/b"),
        _ => Play::status(200),
    });
    let pool = ProxyPool::parse("p0:1").and_then(|pool| pool.rate_per_proxy(Some(2.0))).unwrap();
    let stage = Stage { recipe: stage.recipe.clone().proxies(pool), ..stage };
    assert_eq!(stage.fly("http://one.test/a", None), (Ok(200), vec![WaitReason::Limit]));
    // The next one waits for its turn, and not for want of a proxy.
    assert_eq!(stage.fly("http://one.test/c", None), (Ok(200), vec![WaitReason::Limit]));
    let times: Vec<f64> = stage.times().iter().map(|(at, _)| *at).collect();
    assert_eq!(times, [0.0, 0.5, 1.0]);
    // Nor does the run stop for want of one where the deadline comes before the slot.
    let late = stage.fly("http://one.test/a", Some(secs(0.4)));
    assert_eq!(late, (Err(ErrorKind::Deadline), vec![]));
}

#[test]
fn a_visit_by_a_hop_counts_at_its_host_until_the_step_ends() {
    let per_host = Limiter::new(None, None, NonZeroUsize::new(1)).expect("a limit");
    let limits: SharedLimiter = Arc::new(Mutex::new(per_host));
    let seen = Arc::clone(&limits);
    let clock = Arc::new(SimClock::default());
    let now = clock.now();
    let other: Arc<str> = Arc::from("other.test");
    let script = Script::with(clock, move |asked, _| {
        let visit = Visit { host: Some(&other), arrives: true };
        match asked.url.path() {
            "/a" => redirect("http://other.test/b"),
            // While it is there nobody else gets in.
            _ if seen.lock().unwrap().look(visit, now).is_err() => Play::status(200),
            _ => Play::status(500),
        }
    });
    let recipe = Session::builder()
        .trust_env(false)
        .transport(move || script.clone())
        .limited(Some(Arc::clone(&limits)));
    let mut flight = Flight::new(Request::new(Method::GET, "http://one.test/a"), 0);
    let step = flight.step_handed_out(&recipe.build().unwrap(), Some("one.test"));
    assert!(matches!(step, Step::Done(response) if response.status() == 200));
    assert_eq!(flight.take_visits(), [Arc::from("other.test")]);
    assert_eq!(flight.take_visits(), []);
}

#[test]
fn a_hop_to_a_full_host_comes_back_at_once_and_is_kept_until_there_is_room() {
    let per_host = Limiter::new(None, None, NonZeroUsize::new(1)).expect("a limit");
    let stage = Stage::new(per_host, |asked, _| match asked.url.path() {
        "/a" => redirect("http://other.test/b"),
        _ => Play::status(200),
    });
    let other: Arc<str> = Arc::from("other.test");
    let (now, visit) = (stage.clock.now(), Visit { host: Some(&other), arrives: true });
    let _slots = stage.limits.lock().unwrap().take(visit, now).expect("room");
    let session = stage.recipe.build().unwrap();
    let mut flight = Flight::new(Request::new(Method::GET, "http://one.test/a"), 0);
    let step = flight.step_handed_out(&session, Some("one.test"));
    assert!(
        matches!(step, Step::Wait { until, reason: WaitReason::Limit } if until == now),
        "{step:?}"
    );
    assert_eq!((flight.host(), stage.script.attempts()), (Some("other.test"), 1));
    // Who drives itself asks again a little later.
    let step = flight.step(&session);
    assert!(matches!(step, Step::Wait { until, .. } if until > now), "{step:?}");
    stage.limits.lock().unwrap().leave(&other, now);
    assert!(matches!(flight.step(&session), Step::Done(_)));
    assert!(stage.limits.lock().unwrap().look(visit, now).is_ok(), "it has left");
}

#[test]
fn a_deadline_begins_with_the_first_attempt_where_nobody_took_its_slots() {
    let stage = Stage::new(rate(1.0 / 3600.0), |asked, _| match asked.url.path() {
        "/a" => redirect("/b"),
        _ => Play::status(200),
    });
    let session = stage.recipe.clone().deadline(secs(10.0)).build().unwrap();
    stage.hand_out();
    let mut flight = Flight::new(Request::new(Method::GET, "http://one.test/c"), 0);
    let until = stage.clock.now() + secs(3600.0);
    let step = flight.step(&session);
    assert!(matches!(step, Step::Wait { until: at, .. } if at == until), "{step:?}");
    assert_eq!(flight.deadline(), None);
    stage.clock.sleep_until(until + secs(100.0));
    assert!(matches!(flight.step(&session), Step::Done(_)));
    assert_eq!(flight.started(), Some(until + secs(100.0)));

    // A hop comes after the first attempt.
    let late = session.get("http://one.test/a").send().unwrap_err();
    assert_eq!((late.kind(), late.attempts().len()), (ErrorKind::Deadline, 1));
}

#[test]
fn a_proxy_that_a_url_names_counts_the_further_copies_as_well() {
    let stage = Stage::new(rate(1.0), |asked, _| match asked.url.path() {
        "/a" => redirect("/b"),
        _ => Play::status(200),
    });
    let pool = ProxyPool::parse("p0:1").and_then(|pool| pool.rate_per_proxy(Some(0.1))).unwrap();
    let recipe = stage.recipe.clone().proxies(pool).limited(Some(Arc::clone(&stage.limits)));
    let mut request = Request::new(Method::GET, "http://one.test/a");
    request.overrides.proxies = Some(ProxyMap::all("p0:1".parse().unwrap()));
    let session = recipe.build().unwrap();
    assert_eq!(session.send(request).unwrap().status(), 200);
    let times: Vec<f64> = stage.times().iter().map(|(at, _)| *at).collect();
    assert_eq!(times, [0.0, 10.0]);
    let stats = recipe.proxy_stats();
    assert!(stats.iter().all(|proxy| proxy.in_flight == 0), "{stats:?}");
}

#[test]
fn a_host_that_is_left_alone_uses_up_no_slot_of_a_proxy() {
    let stage = Stage::new(rate(1000.0), |asked, _| match asked.url.host_str() {
        Some("tired.test") => Play::status(429).header("Retry-After", "60"),
        _ => Play::status(200),
    });
    let pool = ProxyPool::parse("u:p@p0:1")
        .and_then(|pool| pool.rate_per_proxy(Some(0.1)))
        .and_then(|pool| pool.rate_per_credential(Some(0.1)))
        .unwrap();
    let session = stage.recipe.clone().host_cooldown(true).proxies(pool).build().unwrap();
    let step = |url: &str| Flight::new(Request::new(Method::GET, url), 0).step(&session);
    assert!(!matches!(step("http://tired.test/a"), Step::Failed(_)));
    stage.clock.advance(secs(10.0));
    for _ in 0..5 {
        let answer = step("http://tired.test/b");
        assert!(matches!(answer, Step::Wait { reason: WaitReason::Cooldown, .. }), "{answer:?}");
    }
    // The slot is there for whom it can serve, and once only.
    assert!(matches!(step("http://other.test/"), Step::Done(_)));
    assert!(matches!(step("http://other.test/"), Step::Wait { reason: WaitReason::Limit, .. }));
    assert_eq!(stage.script.attempts(), 2);
}
