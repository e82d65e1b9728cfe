//! Hooks: which responses and attempts they see, and what follows from their word.

use crate::{fields, location, plays, redirect, scripted, with_parts};
use http::Method;
use longhaul::error::{Fault, Phase};
use longhaul::message::{Hooks, ResponseBody};
use longhaul::transport::Play;
use longhaul::{
    Error, ErrorKind, ProxyPool, Request, Response, Retry, Session, SessionBuilder, WorkerPool,
    secs,
};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

/// What hooks wrote down.
#[derive(Debug, Clone, Default)]
struct Notes(Arc<Mutex<Vec<String>>>);

impl Notes {
    fn add(&self, text: impl Into<String>) {
        self.0.lock().unwrap().push(text.into());
    }

    fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock().unwrap())
    }

    /// Hooks that note the status of each response under this name.
    fn of_responses(&self, name: &'static str) -> Hooks {
        let notes = self.clone();
        Hooks::new().response(move |response| {
            notes.add(format!("{name} {}", response.status()));
            Ok(response)
        })
    }
}

#[test]
fn every_response_of_the_chain_is_seen_and_none_that_is_retried() {
    let notes = Notes::default();
    let (recipe, script) = plays(vec![
        Play::status(503),
        redirect("/b"),
        Play::error(ErrorKind::Connection, Phase::Headers, Fault::Target),
        Play::status(404).body("gone"),
    ]);
    let recipe = recipe.retry(Retry::long_run()).hooks(notes.of_responses("session"));
    let response = recipe.build().unwrap().get("http://h.test/a").send().unwrap();
    assert_eq!((response.status(), response.history().len()), (404, 1));
    assert_eq!((response.attempts().len(), script.attempts()), (4, 4));
    assert_eq!(notes.take(), ["session 302", "session 404"]);
}

#[test]
fn a_hook_finds_the_body_read_or_at_its_head() {
    let notes = Notes::default();
    let (recipe, _) = plays(vec![redirect("/b"), Play::status(200).body("text")]);
    let seen = notes.clone();
    let session = recipe
        .response_hook(move |response| {
            seen.add(format!("{:?}", String::from_utf8_lossy(response.body())));
            Ok(response)
        })
        .build()
        .unwrap();
    assert_eq!(session.get("http://h.test/").send().unwrap().text().unwrap(), "text");
    assert_eq!(session.get("http://h.test/").stream(true).send().unwrap().text().unwrap(), "text");
    assert_eq!(notes.take(), [r#""""#, r#""text""#, r#""""#]);
}

/// requests' `merge_hooks`, event by event.
#[test]
fn the_hooks_of_a_request_take_the_place_of_the_sessions_of_that_event() {
    let notes = Notes::default();
    let (recipe, _) = plays(vec![Play::status(200)]);
    let attempt = notes.clone();
    let session = recipe
        .hooks(notes.of_responses("session").attempt(move |next| {
            attempt.add(format!("attempt {}", next.number));
            Ok(())
        }))
        .build()
        .unwrap();
    let get = || session.get("http://h.test/");
    let own = |notes: &Notes| {
        let notes = notes.clone();
        move |response: Response| {
            notes.add("own");
            Ok(response)
        }
    };
    get().send().unwrap();
    assert_eq!(notes.take(), ["attempt 1", "session 200"]);
    get().response_hook(own(&notes)).response_hook(own(&notes)).send().unwrap();
    assert_eq!(notes.take(), ["attempt 1", "own", "own"]);
    get().attempt_hook(|_| Ok(())).send().unwrap();
    assert_eq!(notes.take(), ["session 200"]);
    get().no_hooks().send().unwrap();
    assert_eq!(notes.take(), Vec::<String>::new());
}

#[test]
fn what_a_hook_returns_counts() {
    // A redirect that is none any more is the answer, with the course so far.
    let (recipe, script) = plays(vec![redirect("/b"), redirect("/c"), Play::status(200)]);
    let session = recipe
        .response_hook(|response| {
            let last = response.url().path() == "/b";
            Ok(if last { with_parts(response, |parts| parts.status = 200) } else { response })
        })
        .build()
        .unwrap();
    let response = session.get("http://h.test/a").send().unwrap();
    assert_eq!((response.status(), response.url().path()), (200, "/b"));
    assert_eq!((response.history().len(), response.attempts().len()), (1, 2));
    assert_eq!(script.attempts(), 2);

    // An answer that has become a redirect is followed, and so is one that leads elsewhere.
    for first in [Play::status(401), redirect("/wrong"), redirect("mailto:nobody@h.test")] {
        let (recipe, script) = plays(vec![first, Play::status(200)]);
        let session = recipe
            .response_hook(|response| {
                let first = response.url().path() == "/a";
                Ok(if first { with_parts(response, location("/b")) } else { response })
            })
            .build()
            .unwrap();
        let response = session.get("http://h.test/a").send().unwrap();
        assert_eq!((response.status(), response.url().path()), (200, "/b"));
        assert_eq!((response.history().len(), response.attempts().len()), (1, 2));
        assert_eq!(script.attempts(), 2);
    }

    // The text of the body can be another.
    let (recipe, _) = plays(vec![Play::status(200).body("a")]);
    let session = recipe
        .response_hook(|response| {
            Ok(with_parts(response, |parts| parts.body = ResponseBody::Bytes("b".into())))
        })
        .build()
        .unwrap();
    assert_eq!(session.get("http://h.test/").send().unwrap().text().unwrap(), "b");
}

#[test]
fn redirects_that_hooks_make_are_bounded_too() {
    let (recipe, script) = plays(vec![Play::status(200)]);
    let session = recipe
        .max_redirects(3)
        .response_hook(|response| Ok(with_parts(response, location("/again"))))
        .build()
        .unwrap();
    let error = session.get("http://h.test/").send().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TooManyRedirects);
    assert_eq!((error.response().unwrap().history().len(), error.attempts().len()), (3, 4));
    assert_eq!(script.attempts(), 4);
}

#[test]
fn the_redirect_budget_is_charged_once_for_each_hop() {
    for (first, ends) in [
        // Seen by the budget before the hook led it elsewhere, and after a hook made it.
        (redirect("/wrong"), [Ok(200), Err(ErrorKind::TooManyRedirects)]),
        (Play::status(401), [Ok(200), Err(ErrorKind::TooManyRedirects)]),
    ] {
        for (then, end) in [Play::status(200), redirect("/c")].into_iter().zip(ends) {
            let (recipe, _) = plays(vec![first.clone(), then, Play::status(200)]);
            let session = recipe
                .retry(Retry::urllib3().redirect(1))
                .response_hook(|response| {
                    let first = response.url().path() == "/a";
                    Ok(if first { with_parts(response, location("/b")) } else { response })
                })
                .build()
                .unwrap();
            let result = session.get("http://h.test/a").send();
            assert_eq!(result.map(|one| one.status()).map_err(|error| error.kind()), end);
        }
    }
}

#[test]
fn the_redirect_that_is_one_too_many_is_seen_and_raised() {
    let notes = Notes::default();
    let (recipe, _) = plays(vec![redirect("/b")]);
    let session = recipe.max_redirects(1).hooks(notes.of_responses("hook")).build().unwrap();
    let error = session.get("http://h.test/a").send().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TooManyRedirects);
    assert_eq!(notes.take(), ["hook 302", "hook 302"]);
}

#[test]
fn an_error_of_a_hook_ends_it_and_keeps_its_kind() {
    let (recipe, script) = plays(vec![Play::status(404).body("no")]);
    let recipe = recipe.retry(Retry::long_run());
    let session = recipe.clone().response_hook(Response::raise_for_status).build().unwrap();
    let error = session.get("http://h.test/").send().unwrap_err();
    assert_eq!((error.kind(), error.requests_name()), (ErrorKind::HttpStatus, "HTTPError"));
    assert_eq!(error.response().unwrap().text().unwrap(), "no");
    assert_eq!((error.attempts().len(), script.attempts()), (1, 1));

    let session = recipe
        .response_hook(|_| {
            let source = "seven".parse::<u8>().unwrap_err();
            let error = Error::new(ErrorKind::Hook, Phase::Body, Fault::Target, "no number");
            Err(error.with_source(source))
        })
        .build()
        .unwrap();
    let error = session.get("http://h.test/").send().unwrap_err();
    assert_eq!(
        (error.kind(), error.phase(), error.fault()),
        (ErrorKind::Hook, Phase::Body, Fault::Target)
    );
    assert!(std::error::Error::source(&error).unwrap().is::<std::num::ParseIntError>());
    assert_eq!((error.url(), error.attempts().len()), (Some("http://h.test/"), 1));
    assert_eq!(script.attempts(), 2, "no kind of a hook's error is retried");
}

#[test]
fn each_attempt_is_seen_with_its_number_its_cookies_and_its_way() {
    let notes = Notes::default();
    let (recipe, script) = plays(vec![
        Play::status(503).header("Set-Cookie", "sid=1"),
        redirect("/b"),
        Play::stale(),
        Play::status(200),
    ]);
    let seen = notes.clone();
    let session = recipe
        .retry(Retry::long_run())
        .proxies(ProxyPool::parse("http://anna:s3cret@proxy.test:8000").unwrap())
        .attempt_hook(move |next| {
            let cookie = next.headers.get("cookie").map(String::from_utf8_lossy);
            let proxy = next.proxy.unwrap_or("direct");
            seen.add(format!("{} {} {cookie:?} {proxy}", next.number, next.url.path()));
            assert!(!next.headers.contains("X-Attempt"), "a change is for one attempt");
            next.headers.insert("X-Attempt", next.number.to_string())
        })
        .build()
        .unwrap();
    let response = session.get("http://h.test/a").send().unwrap();
    let lines = notes.take();
    let ways: Vec<_> = lines.iter().map(|line| line.rsplit_once(' ').unwrap()).collect();
    let firsts: Vec<_> = ways.iter().map(|(first, _)| *first).collect();
    let with_cookie = r#"Some("sid=1")"#;
    assert_eq!(
        firsts,
        [
            "1 /a None".to_owned(),
            format!("2 /a {with_cookie}"),
            format!("3 /b {with_cookie}"),
            format!("4 /b {with_cookie}"),
        ]
    );
    for (_, proxy) in ways {
        assert!(proxy.contains("proxy.test:8000") && !proxy.contains("s3cret"), "{proxy}");
    }
    assert_eq!(fields(&script, "x-attempt"), ["1", "2", "3", "4"]);
    assert_eq!(response.attempts().len(), 4);
    assert_eq!(response.request().unwrap().headers.get("x-attempt"), Some(&b"4"[..]));
}

#[test]
fn a_hook_may_change_the_body_of_an_attempt() {
    let (recipe, script) = plays(vec![Play::status(503), Play::status(200)]);
    let retry = Retry::long_run().allowed_methods([Method::POST]);
    let session = recipe.retry(retry).build().unwrap();
    let response = session
        .post("http://h.test/")
        .body("plain")
        .attempt_hook(|next| {
            *next.body = format!("signed {}", next.number).into();
            Ok(())
        })
        .send()
        .unwrap();
    let bodies: Vec<_> = script.asked().into_iter().map(|one| one.body).collect();
    assert_eq!(bodies, [b"signed 1", b"signed 2"]);
    let sent = &response.request().unwrap().body;
    assert_eq!(format!("{sent:?}"), "Bytes(8)");
}

#[test]
fn an_attempt_that_a_hook_refuses_is_not_made() {
    let (recipe, script) = plays(vec![Play::status(503)]);
    let recipe = recipe
        .retry(Retry::long_run())
        .proxies(ProxyPool::parse("http://proxy.test:8000").unwrap())
        .attempt_hook(|next| match next.number {
            // A kind that would be retried if it were the network's.
            2 => Err(Error::new(ErrorKind::ReadTimeout, Phase::Headers, Fault::Target, "enough")),
            _ => Ok(()),
        });
    let error = recipe.build().unwrap().get("http://h.test/").send().unwrap_err();
    assert_eq!((error.kind(), error.message()), (ErrorKind::ReadTimeout, "enough"));
    assert_eq!((error.attempts().len(), script.attempts()), (1, 1));
    let stats = &recipe.proxy_stats()[0];
    assert_eq!((stats.in_flight, stats.bad), (0, 0), "the proxy is given back, and not to blame");
}

#[test]
fn a_panic_of_a_hook_leaves_a_session_and_is_a_result_of_a_run() {
    let (recipe, _) = scripted(|asked, _| match asked.url.path() {
        "/panic" => Play::status(500),
        _ => Play::status(200),
    });
    let recipe = recipe.timeout(secs(5.0)).response_hook(|response| {
        assert!(response.status() != 500, "the hook gave up");
        Ok(response)
    });
    let session = recipe.build().unwrap();
    let send = |path: &str| {
        let request = Request::new(Method::GET, format!("http://h.test{path}"));
        std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| session.send(request)))
    };
    assert!(send("/panic").is_err());
    assert_eq!(send("/").unwrap().unwrap().status(), 200, "the session goes on");

    let pool = WorkerPool::builder(recipe.retry(Retry::none())).workers(1).build().unwrap();
    let urls = ["http://h.test/1", "http://h.test/panic", "http://h.test/2"];
    let mut ends: Vec<_> = pool
        .run(urls)
        .map(|done| {
            let kind =
                done.result.as_ref().map_or_else(|error| Err(error.kind()), |one| Ok(one.status()));
            if let Err(error) = &done.result {
                assert!(error.message().contains("the hook gave up"), "{error}");
            }
            (done.url, kind)
        })
        .collect();
    ends.sort_by(|one, other| one.0.cmp(&other.0));
    let kinds: Vec<_> = ends.into_iter().map(|(_, kind)| kind).collect();
    assert_eq!(kinds, [Ok(200), Ok(200), Err(ErrorKind::Internal)]);
}

/// The session of the thread, which a hook can come back to.
#[test]
fn a_session_that_is_used_within_its_own_hook_is_an_error() {
    static RECIPE: OnceLock<SessionBuilder> = OnceLock::new();
    fn again() -> Option<Error> {
        let send = |session: &Session| session.get("http://h.test/again").send().err();
        RECIPE.get().unwrap().local(send).unwrap()
    }
    let (recipe, script) = plays(vec![Play::status(200)]);
    RECIPE.set(recipe.response_hook(|_| Err(again().unwrap()))).unwrap();
    let error = again().unwrap();
    assert_eq!((error.kind(), script.attempts()), (ErrorKind::Config, 1));
    assert!(error.message().contains("another session"), "{error}");
    // It was an error and not a panic, so the session goes on.
    assert_eq!((again().unwrap().kind(), script.attempts()), (ErrorKind::Config, 2));
}

#[test]
fn the_hooks_of_a_recipe_are_those_of_all_its_sessions() {
    let (recipe, _) = plays(vec![Play::status(200)]);
    let count = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&count);
    let recipe = recipe.response_hook(move |response| {
        counted.fetch_add(1, Ordering::SeqCst);
        Ok(response)
    });
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let send = |session: &Session| session.get("http://h.test/").send().map(drop);
                recipe.local(send).unwrap().unwrap();
            });
        }
    });
    assert_eq!(count.load(Ordering::SeqCst), 4);
}
