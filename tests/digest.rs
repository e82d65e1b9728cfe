//! Digest and custom credentials in a session: against servers of the lab that check them, and on
//! a script where the clocks matter. `tests/programs` has a server that nobody here wrote.

#![cfg(feature = "lab")]
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "helpers of tests are tests"
)]

use http::Method;
use longhaul::error::{Attempt, Phase};
use longhaul::lab::{HttpProxy, Origin, Received, Reply};
use longhaul::message::{Auth, AuthBase, Body, Prepared, Request};
use longhaul::policy::Timeouts;
use longhaul::proxy::Route;
use longhaul::time::SimClock;
use longhaul::transport::{AttemptLimits, Incoming, Outgoing, Play, Script, Transport};
use longhaul::{ErrorKind, ProxyPool, Retry, Session, SessionBuilder, secs};
use md5::{Digest as _, Md5};
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

const ANSWERED: Option<&str> = Some("its challenge was answered");
const REFUSED: Option<&str> = Some("the credentials were refused");

fn recipe() -> (SessionBuilder, Arc<SimClock>) {
    let clock = Arc::new(SimClock::default());
    let builder = Session::builder()
        .trust_env(false)
        .seed(1)
        .clock(clock.clone())
        .timeout((secs(5.0), secs(5.0)));
    (builder, clock)
}

fn known() -> Auth {
    Auth::Digest("lab".to_owned(), "right".to_owned())
}

fn md5(text: &str) -> String {
    Md5::digest(text).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The parameters of the Digest credentials of a request.
fn given(request: &Received) -> Option<HashMap<String, String>> {
    let field = request.header("authorization")?.strip_prefix("Digest ")?;
    let pair = |part: &str| {
        let (name, value) = part.split_once('=').unwrap();
        (name.to_owned(), value.trim_matches('"').to_owned())
    };
    Some(field.split(", ").map(pair).collect())
}

/// The nonce and its count, where the credentials are those of lab:right.
fn right(request: &Received) -> Option<(String, String)> {
    let given = given(request)?;
    let seen = match &request.query {
        Some(query) => format!("{}?{query}", request.path),
        None => request.path.clone(),
    };
    assert_eq!(given["uri"], seen);
    let secret = md5(&format!("lab:{}:right", given["realm"]));
    let [nonce, nc, cnonce] = ["nonce", "nc", "cnonce"].map(|name| given[name].clone());
    let asked = match given["qop"].as_str() {
        "auth" => md5(&format!("{}:{seen}", request.method)),
        "auth-int" => {
            let body = String::from_utf8(request.body.to_vec()).unwrap();
            md5(&format!("{}:{seen}:{}", request.method, md5(&body)))
        }
        other => panic!("qop {other}"),
    };
    let wanted = md5(&format!("{secret}:{nonce}:{nc}:{cnonce}:{}:{asked}", given["qop"]));
    (given["username"] == "lab" && given["response"] == wanted).then_some((nonce, nc))
}

fn challenge(nonce: &str) -> Reply {
    let value = format!("Digest realm=\"lab\", nonce=\"{nonce}\", qop=\"auth\"");
    Reply::new(401).header("WWW-Authenticate", value).body("who are you?")
}

/// A server that takes one nonce, and answers `ok` to right credentials.
fn guarded() -> Origin {
    Origin::builder()
        .handler(|request| match right(request) {
            Some(_) => Reply::ok("ok"),
            None => challenge("n1").header("Set-Cookie", "seen=1"),
        })
        .start()
        .unwrap()
}

fn notes(attempts: &[Attempt]) -> Vec<(Option<u16>, Option<&'static str>)> {
    attempts.iter().map(|attempt| (attempt.status, attempt.note)).collect()
}

fn counts(origin: &Origin) -> Vec<Option<String>> {
    origin.log().iter().map(|request| Some(given(request)?["nc"].clone())).collect()
}

fn some(count: u32) -> Option<String> {
    Some(format!("{count:08x}"))
}

#[test]
fn a_challenge_is_answered_within_the_attempt_and_later_requests_go_ahead() {
    let origin = guarded();
    // No retries at all: the answer is free of charge.
    let session = recipe().0.auth(known()).build().unwrap();
    let response = session.get(origin.url("/a?b=c d&e=\"")).send().unwrap();
    assert_eq!((response.status(), response.text().unwrap().as_str()), (200, "ok"));
    assert_eq!(notes(response.attempts()), [(Some(401), ANSWERED), (Some(200), None)]);
    assert!(!response.attempts()[1].resend && response.attempts()[1].reused);
    // requests has the 401 in `history`, where only redirects stand here.
    assert!(response.history().is_empty());
    for _ in 0..2 {
        let response = session.post(origin.url("/b")).body("x").send().unwrap();
        assert_eq!(notes(response.attempts()), [(Some(200), None)]);
    }
    assert_eq!(counts(&origin), [None, some(1), some(2), some(3)]);
    // What the 401 set is sent with the answer.
    assert_eq!(origin.log()[1].header("cookie"), Some("seen=1"));
    assert_eq!(origin.counts().accepted, 1);
}

#[test]
fn wrong_credentials_cost_two_requests_and_are_not_sent_ahead() {
    let origin = guarded();
    let session = recipe().0.retry(Retry::long_run()).build().unwrap();
    for _ in 0..2 {
        let response = session.get(origin.url("/")).digest_auth("lab", "wrong").send().unwrap();
        assert_eq!(response.status(), 401);
        assert_eq!(response.text().unwrap(), "who are you?");
        assert_eq!(notes(response.attempts()), [(Some(401), ANSWERED), (Some(401), REFUSED)]);
    }
    assert_eq!(counts(&origin), [None, some(1), None, some(1)]);
}

#[test]
fn a_nonce_that_was_too_old_is_no_refusal() {
    // Each nonce is good for one use, and `n0` for none.
    let given_out = Arc::new(AtomicUsize::new(0));
    let counter = given_out.clone();
    let origin = Origin::builder()
        .handler(move |request| {
            let number = counter.load(Ordering::SeqCst);
            match right(request) {
                Some((nonce, nc))
                    if number > 0 && nonce == format!("n{number}") && nc == "00000001" =>
                {
                    Reply::ok("ok")
                }
                None => challenge(&format!("n{number}")),
                Some(_) => {
                    let value = format!(
                        "Digest realm=\"lab\", nonce=\"n{}\", qop=\"auth\", stale=TRUE",
                        number + 1
                    );
                    counter.store(number + 1, Ordering::SeqCst);
                    Reply::new(401).header("WWW-Authenticate", value)
                }
            }
        })
        .start()
        .unwrap();
    let session = recipe().0.auth(known()).build().unwrap();
    let renewed = (Some(401), Some("its nonce was too old; answered with the new one"));
    let response = session.get(origin.url("/")).send().unwrap();
    assert_eq!(notes(response.attempts()), [(Some(401), ANSWERED), renewed, (Some(200), None)]);
    // Sent ahead, the nonce is too old at once.
    let response = session.get(origin.url("/")).send().unwrap();
    assert_eq!(notes(response.attempts()), [renewed, (Some(200), None)]);
    assert_eq!(given_out.load(Ordering::SeqCst), 2);
}

#[test]
fn a_server_that_finds_every_nonce_too_old_is_left() {
    let origin = Origin::builder()
        .handler(|_| {
            Reply::new(401).header("WWW-Authenticate", "Digest realm=r, nonce=n, stale=true")
        })
        .start()
        .unwrap();
    let session = recipe().0.auth(known()).build().unwrap();
    let response = session.get(origin.url("/")).send().unwrap();
    assert_eq!(response.status(), 401);
    assert_eq!(notes(response.attempts())[2], (Some(401), REFUSED));
    assert_eq!(origin.counts().requests, 3);
}

#[test]
fn the_next_nonce_is_used_from_its_first_count_on() {
    let origin = Origin::builder()
        .handler(|request| match right(request) {
            Some((nonce, nc)) => {
                assert_eq!(nc, "00000001");
                Reply::ok(nonce.clone())
                    .header("Authentication-Info", format!("nextnonce=\"{nonce}+\""))
            }
            None => challenge("n"),
        })
        .start()
        .unwrap();
    let session = recipe().0.auth(known()).build().unwrap();
    for nonce in ["n", "n+", "n++"] {
        assert_eq!(session.get(origin.url("/")).send().unwrap().text().unwrap(), nonce);
    }
    assert_eq!(origin.counts().requests, 4);
}

#[test]
fn a_body_that_can_be_read_only_once_is_not_sent_again() {
    let origin = guarded();
    let session = recipe().0.auth(known()).build().unwrap();
    let once = || Body::reader(&b"once"[..], Some(4));
    let response = session.post(origin.url("/")).body(once()).send().unwrap();
    let note = "its challenge cannot be answered, as the body can be read only once";
    assert_eq!(notes(response.attempts()), [(Some(401), Some(note))]);
    // The challenge was learnt from all the same, so the next one goes ahead.
    let response = session.post(origin.url("/")).body(once()).send().unwrap();
    assert_eq!(response.text().unwrap(), "ok");
    // And what can be read again is sent again, byte for byte.
    let fresh = recipe().0.auth(known()).build().unwrap();
    let again = Body::replayable(|| Ok((Box::new(&b"again"[..]), None)));
    let response = fresh.put(origin.url("/")).body(again).send().unwrap();
    assert_eq!(response.text().unwrap(), "ok");
    let bodies: Vec<Vec<u8>> = origin.log().iter().map(|seen| seen.body.to_vec()).collect();
    assert_eq!(bodies, [&b"once"[..], b"once", b"again", b"again"]);
}

#[test]
fn the_hash_of_the_body_is_sent_where_the_server_wants_it() {
    let origin = Origin::builder()
        .handler(|request| match right(request) {
            Some(_) => Reply::ok("ok"),
            None => Reply::new(401)
                .header("WWW-Authenticate", "Digest realm=r, nonce=n, qop=\"auth-int\""),
        })
        .start()
        .unwrap();
    let session = recipe().0.auth(known()).build().unwrap();
    for body in [Body::from("text"), Body::replayable(|| Ok((Box::new(&b"text"[..]), None)))] {
        let response = session.post(origin.url("/")).body(body).send().unwrap();
        assert_eq!(response.status(), 200);
    }
    let requests = origin.counts().requests;
    let body = Body::reader(&b"text"[..], None);
    let error = session.post(origin.url("/")).body(body).send().unwrap_err();
    assert_eq!((error.kind(), error.phase()), (ErrorKind::BodyNotReplayable, Phase::Prepare));
    assert!(error.message().contains("auth-int"), "{error}");
    assert_eq!(origin.counts().requests, requests, "nothing was sent");
}

#[test]
fn credentials_stay_with_their_origin() {
    let other = Origin::builder()
        .handler(|request| match &*request.path {
            "/challenge" => challenge("theirs"),
            _ => Reply::ok("other"),
        })
        .start()
        .unwrap();
    let [away, trap] = ["/", "/challenge"].map(|path| other.url(path));
    let origin = Origin::builder()
        .handler(move |request| match (&*request.path, right(request)) {
            (_, None) => challenge("n"),
            ("/within", _) => Reply::redirect(302, "/end"),
            ("/away", _) => Reply::redirect(302, &away),
            ("/trap", _) => Reply::redirect(307, &trap),
            _ => Reply::ok("ok"),
        })
        .start()
        .unwrap();
    let session = recipe().0.auth(known()).build().unwrap();
    let response = session.get(origin.url("/within")).send().unwrap();
    assert_eq!(response.text().unwrap(), "ok");
    let statuses: Vec<_> = response.attempts().iter().map(|attempt| attempt.status).collect();
    assert_eq!(statuses, [Some(401), Some(302), Some(200)]);

    assert_eq!(session.get(origin.url("/away")).send().unwrap().text().unwrap(), "other");
    // Not even when it is asked for.
    let response = session.get(origin.url("/trap")).send().unwrap();
    assert_eq!(response.status(), 401);
    assert!(other.log().iter().all(|request| request.header("authorization").is_none()));
    assert_eq!(other.counts().requests, 2);
}

#[test]
fn a_nonce_belongs_to_the_origin_that_gave_it() {
    let origins = [guarded(), guarded()];
    let session = recipe().0.auth(known()).build().unwrap();
    for origin in [&origins[0], &origins[1], &origins[0]] {
        assert_eq!(session.get(origin.url("/")).send().unwrap().text().unwrap(), "ok");
    }
    assert_eq!(counts(&origins[0]), [None, some(1), some(2)]);
    assert_eq!(counts(&origins[1]), [None, some(1)]);
}

#[test]
fn no_identity_uses_the_nonce_of_another() {
    let origin = guarded();
    let proxies: Vec<HttpProxy> = (0..2).map(|_| HttpProxy::builder().start().unwrap()).collect();
    let list: Vec<String> = proxies.iter().map(HttpProxy::url).collect();
    let pool = ProxyPool::parse(&list.join("\n")).unwrap();
    let session = recipe().0.auth(known()).proxies(pool).build().unwrap();
    for _ in 0..4 {
        assert_eq!(session.get(origin.url("/a?b")).send().unwrap().text().unwrap(), "ok");
    }
    for proxy in &proxies {
        // The origin sees the path alone, and so that is what the credentials are for.
        let log = proxy.log();
        assert!(log.iter().all(|request| request.target == origin.url("/a?b")));
        let seen: Vec<_> = log.iter().map(|r| Some(given(r)?["nc"].clone())).collect();
        assert_eq!(seen, [None, some(1), some(2)]);
    }
}

#[test]
fn through_a_tunnel_as_well() {
    let origin = guarded();
    let proxy = HttpProxy::builder().start().unwrap();
    let pool = ProxyPool::parse(&proxy.url()).unwrap().always_connect(true);
    let session = recipe().0.auth(known()).proxies(pool).build().unwrap();
    assert_eq!(session.get(origin.url("/a?b")).send().unwrap().text().unwrap(), "ok");
    assert_eq!(counts(&origin), [None, some(1)]);
}

#[test]
fn the_strongest_challenge_is_answered_and_others_are_told_apart() {
    let session = recipe().0.auth(known()).build().unwrap();
    for (fields, algorithm, note) in [
        (
            &[
                "Digest realm=r, nonce=a, qop=auth, algorithm=MD5, Digest realm=r, nonce=b, qop=auth, algorithm=SHA-256",
            ][..],
            Some("SHA-256"),
            REFUSED,
        ),
        (
            &[
                "Digest realm=r, nonce=a, qop=auth, algorithm=SHA-512-256-sess",
                "Digest realm=r, nonce=b, qop=auth, algorithm=MD5",
            ],
            Some("SHA-512-256-sess"),
            REFUSED,
        ),
        (
            &["Basic realm=b, Digest realm=r, nonce=a, qop=auth, algorithm=MD5"],
            Some("MD5"),
            REFUSED,
        ),
        (&["Digest nonce=a, qop=auth"], None, Some("nobody can answer its Digest challenge")),
        (&["Basic realm=b"], None, Some("it asks for other credentials than Digest")),
    ] {
        let lines: Vec<String> = fields.iter().map(ToString::to_string).collect();
        let origin = Origin::builder()
            .handler(move |_| {
                lines
                    .iter()
                    .fold(Reply::new(401), |reply, line| reply.header("WWW-Authenticate", line))
            })
            .start()
            .unwrap();
        let response = session.get(origin.url("/")).send().unwrap();
        assert_eq!(response.status(), 401);
        assert_eq!(response.attempts().last().unwrap().note, note, "{fields:?}");
        let last = origin.log().pop().unwrap();
        assert_eq!(given(&last).map(|given| given["algorithm"].clone()).as_deref(), algorithm);
    }
}

#[test]
fn only_a_401_is_answered() {
    for status in [400, 403, 429, 503] {
        let origin = Origin::builder()
            .handler(move |_| {
                Reply::new(status).header("WWW-Authenticate", "Digest realm=r, nonce=n")
            })
            .start()
            .unwrap();
        let session = recipe().0.auth(known()).build().unwrap();
        assert_eq!(session.get(origin.url("/")).send().unwrap().status(), status);
        assert_eq!(origin.counts().requests, 1, "{status}");
    }
}

#[test]
fn a_streamed_response_is_the_one_behind_the_challenge() {
    let origin = guarded();
    let session = recipe().0.auth(known()).build().unwrap();
    let response = session.get(origin.url("/")).stream(true).send().unwrap();
    assert_eq!(response.text().unwrap(), "ok");
    assert_eq!(origin.counts().accepted, 1, "the 401 was drained");
}

/// A session on a script that is told each attempt.
fn scripted(plays: impl IntoIterator<Item = Play>) -> (SessionBuilder, Script, Arc<SimClock>) {
    let (builder, clock) = recipe();
    let script = Script::new(clock.clone(), plays);
    let shared = script.clone();
    (builder.transport(move || shared.clone()).auth(known()), script, clock)
}

fn refusal() -> Play {
    Play::status(401).header("WWW-Authenticate", "Digest realm=r, nonce=n, qop=auth")
}

#[test]
fn both_halves_together_take_no_longer_than_one_attempt_may() {
    let (builder, script, clock) =
        scripted([refusal().connecting(secs(2.0)).after(secs(3.0)), Play::silence()]);
    let session = builder.build().unwrap();
    let error = session.get("http://a.test/").send().unwrap_err();
    assert_eq!((error.kind(), error.phase()), (ErrorKind::ReadTimeout, Phase::Headers));
    assert_eq!(clock.elapsed(), secs(7.0), "2 s to connect, and 5 s of silence in two pieces");
    let limits = script.asked()[1].limits;
    assert_eq!((limits.connect, limits.read), (Some(secs(3.0)), Some(secs(2.0))));
    assert_eq!(error.attempts().len(), 2);
    assert!(clock.elapsed() <= secs(10.0), "what the worst case of one attempt says");
}

/// A head that comes in many pieces, none of them late, and takes longer than one silence may.
#[derive(Debug)]
struct Dripping(Arc<SimClock>);

impl Transport for Dripping {
    fn attempt(
        &mut self,
        _: Outgoing<'_>,
        _: &Route,
        limits: &AttemptLimits,
    ) -> Result<Incoming, longhaul::Error> {
        self.0.advance(limits.read.unwrap());
        let mut headers = http::HeaderMap::new();
        headers.insert("www-authenticate", "Digest realm=r, nonce=n".parse().unwrap());
        Ok(Incoming::new(401, "", headers, Box::new(std::io::empty())))
    }
}

#[test]
fn a_challenge_that_took_all_the_time_is_the_response() {
    let (builder, clock) = recipe();
    let builder = builder.auth(known()).transport(move || Dripping(clock.clone()));
    let response = builder.build().unwrap().get("http://a.test/").send().unwrap();
    let note = "the clocks of the attempt leave no time for an answer";
    assert_eq!(notes(response.attempts()), [(Some(401), Some(note))]);
}

#[test]
fn an_answer_is_no_retry_and_a_retry_goes_ahead() {
    let plays = [refusal(), Play::status(503), Play::silence(), refusal(), Play::status(200)];
    let (builder, script, clock) = scripted(plays);
    let retry = Retry::long_run().total(2).status(1).read(1);
    let response = builder.retry(retry).build().unwrap().get("http://a.test/").send().unwrap();
    assert_eq!(response.status(), 200);
    let ahead: Vec<bool> =
        script.asked().iter().map(|asked| asked.headers.contains("Authorization")).collect();
    assert_eq!(ahead, [false, true, true, true, true]);
    // 0.6 s and 1.2 s of backoff, and the silence: as if there had been no challenges.
    assert_eq!(clock.elapsed(), secs(0.6 + 5.0 + 1.2));
}

#[test]
fn a_failure_behind_a_challenge_is_a_read_error() {
    use longhaul::error::Fault;
    let refused = || Play::error(ErrorKind::Connection, Phase::Connect, Fault::Target);
    let (builder, script, _) = scripted([refusal().after(secs(1.0)), refused(), Play::status(200)]);
    // `connect` would allow more retries than `read` does.
    let retry = Retry::long_run().read(0);
    let session = builder.retry(retry).build().unwrap();
    let error = session.get("http://a.test/").send().unwrap_err();
    assert_eq!(error.attempts().last().unwrap().note, Some("read is used up"));
    assert_eq!(script.attempts(), 2);
}

#[test]
fn the_deadline_spans_the_challenge() {
    let (builder, _, clock) = scripted([refusal().after(secs(2.0)), Play::silence()]);
    let timeouts = Timeouts::from((secs(5.0), secs(5.0))).with_deadline(secs(3.0)).unwrap();
    let session = builder.timeout(timeouts).build().unwrap();
    let error = session.get("http://a.test/").send().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Deadline);
    assert_eq!(clock.elapsed(), secs(3.0));
}

/// A token that the server wants renewed now and then.
struct Renewed(AtomicUsize);

impl AuthBase for Renewed {
    fn apply(
        &self,
        request: &mut Prepared,
    ) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
        let token = format!("Token t{}", self.0.load(Ordering::SeqCst));
        request.headers.insert("Authorization", token)?;
        request.headers.insert("X-Path", request.url.path().to_owned())?;
        Ok(())
    }

    fn handle_401(&self, request: &Prepared, status: u16, headers: &http::HeaderMap) -> bool {
        assert!(!request.headers.contains("X-Path"), "what an attempt got stays with it");
        let renew = status == 401 && headers.contains_key("x-expired");
        self.0.fetch_add(usize::from(renew), Ordering::SeqCst);
        renew
    }
}

#[test]
fn custom_credentials_are_asked_for_each_attempt_and_may_ask_for_one_more() {
    let other = Origin::builder().start().unwrap();
    let away = other.url("/");
    let origin = Origin::builder()
        .handler(move |request| match (&*request.path, request.header("authorization")) {
            ("/never", _) | (_, Some("Token t0")) => Reply::new(401).header("X-Expired", "1"),
            ("/plain", _) => Reply::new(401),
            ("/away", _) => Reply::redirect(302, &away),
            ("/within", _) => Reply::redirect(302, "/end"),
            _ => Reply::ok(request.header("x-path").unwrap_or("none")),
        })
        .start()
        .unwrap();
    let auth = Auth::custom(Renewed(AtomicUsize::new(0)));
    let session = recipe().0.auth(auth).build().unwrap();
    let response = session.get(origin.url("/within")).send().unwrap();
    assert_eq!(response.text().unwrap(), "/end");
    let again = (Some(401), Some("sent again, as its credentials asked"));
    assert_eq!(notes(response.attempts()), [again, (Some(302), None), (Some(200), None)]);

    let response = session.get(origin.url("/never")).send().unwrap();
    assert_eq!(notes(response.attempts()), [again, (Some(401), REFUSED)]);
    let response = session.get(origin.url("/plain")).send().unwrap();
    assert_eq!(notes(response.attempts()), [(Some(401), None)]);
    let once = Body::reader(&b"once"[..], None);
    let response = session.post(origin.url("/never")).body(once).send().unwrap();
    assert_eq!(notes(response.attempts()), [(Some(401), None)]);

    session.get(origin.url("/away")).send().unwrap();
    let seen = other.log().pop().unwrap();
    assert_eq!((seen.header("authorization"), seen.header("x-path")), (None, None));
    assert!(!format!("{session:?}").contains("Token"));
}

#[test]
fn what_cannot_be_credentials_ends_the_request_before_it_is_sent() {
    struct Broken;
    impl AuthBase for Broken {
        fn apply(&self, _: &mut Prepared) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
            Err("the key store is locked".into())
        }
    }
    let origin = Origin::builder().start().unwrap();
    let session = recipe().0.retry(Retry::long_run()).build().unwrap();
    for (auth, kind, part) in [
        (Auth::custom(Broken), ErrorKind::Config, "the key store is locked"),
        (Auth::Bearer("hunter2\n".to_owned()), ErrorKind::InvalidHeader, "bearer token"),
        (Auth::Bearer(String::new()), ErrorKind::InvalidHeader, "is empty"),
    ] {
        let request = Request::new(Method::GET, origin.url("/")).auth(auth);
        let error = session.send(request).unwrap_err();
        assert_eq!(error.kind(), kind);
        assert!(error.to_string().contains(part) && !error.to_string().contains("hunter2"));
    }
    assert_eq!(origin.counts().requests, 0);
    // A user that cannot be written is told once there is somebody to write to.
    let origin = guarded();
    let error = session.get(origin.url("/")).digest_auth("a\nhunter2", "b").send().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidHeader);
    assert!(!error.to_string().contains("hunter2"));
}
