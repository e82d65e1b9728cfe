use crate::error::{ErrorKind, WaitReason};
use crate::message::{Body, Request, Response};
use crate::policy::{BlockPage, Retry, RetryBudget, Share, SlowLane};
use crate::session::{Flight, Refusals, Session, SessionBuilder, Step};
use crate::time::{Clock, SimClock, secs};
use crate::transport::{Play, Script};
use crate::{Error, ProxyPool};
use http::Method;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// A run's recipe on a script.
struct World {
    clock: Arc<SimClock>,
    script: Script,
    recipe: SessionBuilder,
    began: Instant,
}

fn world(refusals: Refusals, plays: Vec<Play>) -> World {
    let clock = Arc::new(SimClock::default());
    let script = Script::new(Arc::clone(&clock) as Arc<dyn Clock>, plays);
    let transport = script.clone();
    let recipe = Session::builder()
        .clock(Arc::clone(&clock) as Arc<dyn Clock>)
        .trust_env(false)
        .transport(move || transport.clone())
        .for_runs(4)
        .heeding(refusals);
    World { began: clock.now(), clock, script, recipe }
}

fn lane() -> Refusals {
    Refusals { lane: Some(SlowLane::default()), ..Refusals::default() }
}

fn page(page: BlockPage) -> Refusals {
    Refusals { page, ..lane() }
}

impl World {
    /// Flies to the end; the waits, by reason.
    fn fly(&self, request: Request) -> (Result<Response, Error>, Vec<(Duration, WaitReason)>) {
        let session = self.recipe.build().unwrap();
        let mut flight = Flight::new(request, 0);
        let mut waits = Vec::new();
        loop {
            match flight.step(&session) {
                Step::Done(response) => return (Ok(response), waits),
                Step::Failed(error) => return (Err(error), waits),
                Step::Wait { until, reason } => {
                    waits.push((until - self.clock.now(), reason));
                    self.clock.sleep_until(until);
                }
            }
        }
    }

    fn paths(&self) -> Vec<String> {
        self.script.asked().iter().map(|asked| asked.url.path().to_owned()).collect()
    }
}

fn get(path: &str) -> Request {
    Request::new(Method::GET, format!("http://host.test{path}"))
}

fn refusal() -> Play {
    Play::status(403).header("Server", "shield").header("Set-Cookie", "sid=secret; Path=/")
}

/// Why the last attempt was followed by none.
fn note(response: &Response) -> Option<&'static str> {
    response.attempts().last().unwrap().note
}

#[test]
fn a_refused_url_waits_and_goes_once_more() {
    let world = world(lane(), vec![refusal(), Play::status(200).body("ok")]);
    let (result, waits) = world.fly(get("/"));
    let response = result.unwrap();
    assert_eq!((response.status(), response.attempts().len()), (200, 2));
    // Its turn; the host was left alone for a twentieth of that.
    assert_eq!(waits, [(secs(20.0), WaitReason::Refused)]);
    let [first, last] = response.attempts() else { panic!() };
    assert_eq!(first.wait, Some((secs(20.0), WaitReason::Refused)));
    let told = first.refusal.as_ref().unwrap();
    assert_eq!(told.matched, None);
    assert_eq!(told.headers["server"], "shield");
    assert_eq!(told.headers["set-cookie"], "sid");
    assert!(!format!("{first:?}").contains("secret"));
    assert_eq!(last.refusal, None);
}

#[test]
fn a_second_refusal_is_the_end() {
    let world = world(lane(), vec![refusal(), refusal(), Play::status(200)]);
    let (result, waits) = world.fly(get("/"));
    let response = result.unwrap();
    assert_eq!((response.status(), waits.len(), world.script.attempts()), (403, 1, 2));
    assert_eq!(note(&response), Some("refused again in the slow lane"));
    assert!(response.attempts().iter().all(|attempt| attempt.refusal.is_some()));
}

#[test]
fn hooks_see_what_is_handed_out_and_each_attempt() {
    let moved = || Play::status(302).header("Location", "/there");
    let plays = vec![moved(), refusal(), moved(), Play::status(200).body("ok")];
    let mut world = world(lane(), plays);
    let seen: Arc<Mutex<Vec<String>>> = Arc::default();
    let (responses, attempts) = (Arc::clone(&seen), Arc::clone(&seen));
    world.recipe = world
        .recipe
        // It would end the URL at the first refusal, if it saw it.
        .response_hook(move |response| {
            responses.lock().unwrap().push(response.status().to_string());
            response.raise_for_status()
        })
        .attempt_hook(move |next| {
            attempts.lock().unwrap().push(format!("{} {}", next.number, next.url.path()));
            Ok(())
        });
    let (result, waits) = world.fly(get("/"));
    assert_eq!((result.unwrap().status(), waits.len()), (200, 1));
    let seen = std::mem::take(&mut *seen.lock().unwrap());
    // The redirect of each turn, and of the refusals none but one that is the answer.
    assert_eq!(seen, ["1 /", "302", "2 /there", "3 /", "302", "4 /there", "200"]);
    assert_eq!(world.script.attempts(), 4);
}

#[test]
fn a_hook_sees_the_refusal_that_is_the_answer_and_hides_none_from_the_lane() {
    let mut world = world(page(BlockPage::new().body("robot")), {
        let robot = || Play::status(200).body("are you a robot");
        vec![robot(), robot()]
    });
    let seen = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&seen);
    // What it makes of the page is not what is judged.
    world.recipe = world.recipe.response_hook(move |response| {
        count.fetch_add(1, Ordering::Relaxed);
        Ok(response)
    });
    let (result, waits) = world.fly(get("/"));
    assert_eq!((result.unwrap().status(), waits.len()), (200, 1));
    assert_eq!(seen.load(Ordering::Relaxed), 1);
}

#[test]
fn no_lane_no_wait() {
    for refusals in
        [Refusals::default(), Refusals { lane: None, ..page(BlockPage::new().body("x")) }]
    {
        let told = !refusals.page.is_empty();
        let world = world(refusals, vec![refusal()]);
        let (result, waits) = world.fly(get("/"));
        let response = result.unwrap();
        assert_eq!((response.status(), waits.len(), note(&response)), (403, 0, None));
        assert_eq!(response.attempts()[0].refusal.is_some(), told);
    }
}

#[test]
fn what_must_not_be_sent_again_is_not() {
    let body = |method, body: Body| {
        let mut request = Request::new(method, "http://host.test/");
        request.body = body;
        request
    };
    let once = Body::reader(std::io::Cursor::new(b"once".to_vec()), None);
    for (request, why) in [
        (body(Method::POST, Body::Empty), "no slow lane for a method that is not retried"),
        (body(Method::GET, once), "the body cannot be sent again"),
    ] {
        let world = world(lane(), vec![refusal()]);
        let (result, waits) = world.fly(request);
        let response = result.unwrap();
        assert_eq!((response.status(), waits.len(), note(&response)), (403, 0, Some(why)));
    }
}

#[test]
fn no_turn_is_taken_that_outlasts_the_deadline() {
    for (deadline, wanted, why) in
        [(20.0, 403, Some("the deadline leaves no room for the slow lane")), (20.1, 200, None)]
    {
        let mut world = world(lane(), vec![refusal(), Play::status(200)]);
        world.recipe = world.recipe.deadline(secs(deadline));
        let response = world.fly(get("/")).0.unwrap();
        assert_eq!((response.status(), note(&response)), (wanted, why), "{deadline}");
    }
}

#[test]
fn the_lane_of_a_host_is_ten_minutes_long() {
    // Without a pause, so that all of them are refused at once.
    let lane = Some(SlowLane::default().pause(Duration::ZERO));
    let refusals = Refusals { lane, ..Refusals::default() };
    let world = world(refusals, (0..150).map(|_| refusal()).collect());
    let session = world.recipe.build().unwrap();
    let mut turns = Vec::new();
    let mut over = 0;
    for url in 0..150 {
        match Flight::new(get("/"), url).step(&session) {
            Step::Wait { until, reason: WaitReason::Refused } => turns.push(until - world.began),
            Step::Done(response) => {
                over += 1;
                assert_eq!(note(&response), Some("the slow lane of this host is full"));
            }
            other => panic!("{other:?}"),
        }
    }
    let wanted: Vec<_> = (0..120).map(|n| secs(5.0 * f64::from(n))).collect();
    assert_eq!((turns, over), (wanted, 30));
}

#[test]
fn a_full_lane_takes_nothing_out_of_the_budget_of_the_run() {
    // One turn within the ten minutes, for each host.
    let lane = SlowLane::default().pause(Duration::ZERO).spacing(secs(600.0));
    let refusals = Refusals { lane: Some(lane), ..Refusals::default() };
    let mut world = world(refusals, (0..5).map(|_| refusal()).collect());
    let budget = RetryBudget::new(Share::new(0.5).unwrap()).per_second(0);
    world.recipe = world.recipe.retry_budget(budget);
    let session = world.recipe.build().unwrap();
    let mut ends = Vec::new();
    for (url, host) in (0..).zip(["a", "b", "c", "b", "d"]) {
        let request = Request::new(Method::GET, format!("http://{host}.test/"));
        ends.push(match Flight::new(request, url).step(&session) {
            Step::Wait { .. } => None,
            Step::Done(response) => note(&response),
            other => panic!("{other:?}"),
        });
    }
    let (budget, full) =
        ("the retry budget of the run is used up", "the slow lane of this host is full");
    // Half of the requests may be retried; the second of `b` leaves its share to `d`.
    assert_eq!(ends, [Some(budget), None, Some(budget), Some(full), None]);
}

#[test]
fn the_host_is_left_alone_by_others_and_turns_stay_apart() {
    let world = world(lane(), vec![refusal(), refusal(), Play::status(200), Play::status(200)]);
    let session = world.recipe.build().unwrap();
    let wait = |flight: &mut Flight| match flight.step(&session) {
        Step::Wait { until, reason } => (until, reason),
        other => panic!("{other:?}"),
    };
    let (mut first, mut other) = (Flight::new(get("/1"), 1), Flight::new(get("/2"), 2));
    let (turn, reason) = wait(&mut first);
    assert_eq!((turn - world.began, reason), (secs(20.0), WaitReason::Refused));
    let (until, reason) = wait(&mut other);
    assert_eq!(reason, WaitReason::Cooldown);
    assert!((secs(1.0)..=secs(1.5)).contains(&(until - world.began)), "a twentieth, and spread");
    // The other is refused when the turn of the first has almost come.
    world.clock.sleep_until(turn - secs(0.1));
    let (second, reason) = wait(&mut other);
    assert_eq!((second - world.began, reason), (secs(39.9), WaitReason::Refused));
    // So the host is left alone again, and the first gets another turn, behind the second.
    world.clock.sleep_until(turn);
    let (again, reason) = wait(&mut first);
    assert_eq!((again - second, reason), (secs(5.0), WaitReason::Refused));
    world.clock.sleep_until(again);
    assert!(matches!(first.step(&session), Step::Done(_)));
    assert!(matches!(other.step(&session), Step::Done(_)));
}

#[test]
fn another_identity_where_there_is_one() {
    let mut world = world(lane(), vec![refusal(), refusal(), Play::status(200)]);
    let pool = ProxyPool::parse("http://a.test:1\nhttp://b.test:1\nhttp://c.test:1").unwrap();
    let lane = Some(SlowLane::default().times(2));
    world.recipe = world.recipe.proxies(pool).heeding(Refusals { lane, ..Refusals::default() });
    let response = world.fly(get("/")).0.unwrap();
    assert_eq!(response.status(), 200);
    let mut used: Vec<_> = response.attempts().iter().map(|one| one.proxy.clone()).collect();
    used.sort();
    used.dedup();
    assert_eq!(used.len(), 3);
    // The proxies carried what they were given: it is the identity that was refused.
    let stats = world.recipe.proxy_stats();
    assert!(stats.iter().all(|one| (one.good, one.bad) == (1, 0)), "{stats:?}");
}

#[test]
fn block_pages_by_status_field_text_and_rule() {
    let by_rule = Refusals {
        rule: Some(Arc::new(|response: &Response| {
            (response.body().len() < 3).then(|| "an empty page".to_owned())
        })),
        ..lane()
    };
    let ok = || Play::status(200).body("a page");
    for (refusals, play, matched) in [
        (
            page(BlockPage::new().status(429)),
            Play::status(429).header("Retry-After", "1"),
            "status: 429",
        ),
        (
            page(BlockPage::new().header("x-shield: no").unwrap()),
            ok().header("X-Shield", "No!"),
            "header: x-shield: no",
        ),
        (page(BlockPage::new().body("robot")), Play::status(200).body("a robot?"), "body: robot"),
        (by_rule, Play::status(200), "an empty page"),
    ] {
        let world = world(refusals, vec![play, ok()]);
        let (result, waits) = world.fly(get("/"));
        let response = result.unwrap();
        assert_eq!(response.text().unwrap(), "a page", "{matched}");
        assert_eq!(waits, [(secs(20.0), WaitReason::Refused)], "{matched}");
        let refusal = response.attempts()[0].refusal.as_ref().unwrap();
        assert_eq!(refusal.matched.as_deref(), Some(matched));
    }
}

#[test]
fn a_redirect_to_a_block_page_begins_anew_at_the_url_that_was_asked_for() {
    let away = || Play::status(302).header("Location", "/puzzle");
    let plays = vec![away(), Play::status(200).body("robot"), Play::status(200).body("a page")];
    let first = world(page(BlockPage::new().body("robot")), plays);
    let response = first.fly(get("/wanted")).0.unwrap();
    assert_eq!((response.url().path(), response.history().len()), ("/wanted", 0));
    assert_eq!(first.paths(), ["/wanted", "/puzzle", "/wanted"]);
    // Where the redirect itself is the refusal, it is not followed.
    let world = world(page(BlockPage::new().status(302)), vec![away(), Play::status(200)]);
    assert_eq!(world.fly(get("/wanted")).0.unwrap().status(), 200);
    assert_eq!(world.paths(), ["/wanted", "/wanted"]);
}

#[test]
fn a_block_page_behind_used_up_retries_is_a_refusal_too() {
    let busy = || Play::status(503).body("robot");
    let mut world = world(page(BlockPage::new().body("robot")), vec![busy(), busy(), busy()]);
    world.recipe = world.recipe.retry(Retry::long_run().total(1).raise_on_status(true));
    let (result, waits) = world.fly(get("/"));
    let error = result.unwrap_err();
    assert_eq!((error.kind(), error.attempts().len()), (ErrorKind::RetriesExhausted, 3));
    let reasons: Vec<_> = waits.iter().map(|(_, reason)| *reason).collect();
    assert_eq!(reasons, [WaitReason::Backoff, WaitReason::Refused]);
}

#[test]
fn in_stream_mode_the_head_decides() {
    let mut request = get("/");
    request.overrides.stream = Some(true);
    let refusals = page(BlockPage::new().body("robot"));
    let world = world(refusals, vec![refusal(), Play::status(200).body("robot")]);
    let (result, waits) = world.fly(request);
    let response = result.unwrap();
    assert_eq!((waits.len(), response.text().unwrap()), (1, "robot".to_owned()));
    assert_eq!(response.attempts().last().unwrap().refusal, None);
}

#[test]
fn a_place_in_the_lane_is_held_until_the_url_is_sent_again_or_gone() {
    let waiting: Arc<AtomicUsize> = Arc::default();
    let refusals = Refusals { most_waiting: Some(1), waiting: Arc::clone(&waiting), ..lane() };
    let world = world(refusals, vec![refusal(), refusal(), Play::status(200), refusal()]);
    let session = world.recipe.build().unwrap();
    let taken = || waiting.load(Ordering::Relaxed);
    let mut first = Flight::new(get("/first"), 0);
    let Step::Wait { until, .. } = first.step(&session) else { panic!("it waits") };
    assert_eq!(taken(), 1);
    // Beside it there is no room: another one ends with its refusal. Its host rests for a second.
    world.clock.advance(secs(2.0));
    let Step::Done(refused) = Flight::new(get("/second"), 1).step(&session) else {
        panic!("an end")
    };
    let full = "half of what the run may hold waits in slow lanes already";
    assert_eq!((refused.status(), note(&refused)), (403, Some(full)));
    world.clock.sleep_until(until);
    assert!(matches!(first.step(&session), Step::Done(_)));
    assert_eq!(taken(), 0);
    world.clock.advance(secs(60.0));
    let mut last = Flight::new(get("/last"), 2);
    assert!(matches!(last.step(&session), Step::Wait { .. }));
    assert_eq!(taken(), 1);
    drop(last);
    assert_eq!(taken(), 0);
}
