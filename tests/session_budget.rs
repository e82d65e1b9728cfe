//! The retry budget of a run and the circuit per host, through sessions on a scripted transport.

#![allow(clippy::unwrap_used, reason = "helpers of tests are tests")]

use longhaul::error::{Attempt, ErrorKind, Fault, Phase};
use longhaul::policy::{Backoff, HostCircuit, RetryBudget, Share};
use longhaul::time::SimClock;
use longhaul::transport::{Play, Script};
use longhaul::{Retry, Session, SessionBuilder, secs};
use std::sync::Arc;

/// A recipe on a script that answers by the path: `/200` is a page, `/503` is a throttle, `/dead`
/// is a host that breaks off, `/proxy` a proxy that does.
fn recipe() -> (SessionBuilder, Script, Arc<SimClock>) {
    let clock = Arc::new(SimClock::default());
    let script = Script::with(clock.clone(), |asked, _| match asked.url.path() {
        "/dead" => Play::error(ErrorKind::Connection, Phase::Headers, Fault::Target),
        "/proxy" => Play::error(ErrorKind::Connection, Phase::Connect, Fault::Proxy),
        path => Play::status(path.get(1..).and_then(|code| code.parse().ok()).unwrap_or(200)),
    });
    let plays = script.clone();
    let builder = Session::builder()
        .trust_env(false)
        .clock(clock.clone())
        .retry(Retry::long_run().backoff(Backoff::constant(secs(0.1))))
        .transport(move || plays.clone());
    (builder, script, clock)
}

fn url(path: &str) -> String {
    format!("http://a.test/{path}")
}

/// The history of a URL, whatever became of it.
fn history(session: &Session, url: &str) -> Vec<Attempt> {
    match session.get(url).send() {
        Ok(response) => response.attempts().to_vec(),
        Err(error) => error.attempts().to_vec(),
    }
}

fn notes(attempts: &[Attempt]) -> Vec<Option<&'static str>> {
    attempts.iter().map(|attempt| attempt.note).collect()
}

const USED_UP: Option<&str> = Some("the retry budget of the run is used up");
const OPEN: Option<&str> = Some("the circuit of this host is open");

fn fifth() -> RetryBudget {
    RetryBudget::new(Share::new(0.2).unwrap()).per_second(0)
}

#[test]
fn without_a_budget_the_policy_alone_decides() {
    let session = recipe().0.build().unwrap();
    assert_eq!(notes(&history(&session, &url("503")))[3], Some("status is used up"));
}

#[test]
fn a_budget_spans_the_sessions_of_a_recipe() {
    let (builder, script, clock) = recipe();
    let builder = builder.retry_budget(fifth());
    let (one, two) = (builder.build().unwrap(), builder.clone().build().unwrap());
    for _ in 0..4 {
        assert_eq!(notes(&history(&one, &url("200"))), [None]);
    }
    // The fifth request, so one retry is a fifth.
    let attempts = history(&two, &url("503"));
    assert_eq!(notes(&attempts), [None, USED_UP]);
    assert_eq!(attempts[0].wait.map(|(wait, _)| wait), Some(secs(0.1)));
    assert_eq!(attempts[1].wait, None);
    assert_eq!(notes(&history(&one, &url("dead"))), [USED_UP]);
    assert_eq!(script.attempts(), 7);

    // The window moves on, and nothing was saved up.
    clock.advance(secs(60.0));
    for path in ["dead", "503", "503", "503"] {
        assert_eq!(notes(&history(&one, &url(path))), [USED_UP]);
    }
    assert_eq!(notes(&history(&two, &url("dead"))), [None, USED_UP]);
}

#[test]
fn what_is_refused_ends_as_if_the_budgets_were_used_up() {
    let (builder, ..) = recipe();
    let session = builder.clone().retry_budget(fifth()).build().unwrap();
    let response = session.get(url("503")).send().unwrap();
    assert_eq!((response.status(), response.attempts().len()), (503, 1));
    let error = session.get(url("dead")).send().unwrap_err();
    assert_eq!((error.kind(), error.attempts().len()), (ErrorKind::Connection, 1));

    let raising = builder.retry(Retry::long_run().raise_on_status(true)).retry_budget(fifth());
    let error = raising.build().unwrap().get(url("503")).send().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::RetriesExhausted);
    assert_eq!(error.response().unwrap().status(), 503);
}

#[test]
fn a_wait_that_the_deadline_forbids_takes_nothing_out_of_the_budget() {
    let (builder, ..) = recipe();
    let builder = builder.retry_budget(fifth());
    let hasty = builder.clone().deadline(secs(0.05)).build().unwrap();
    let session = builder.build().unwrap();
    for _ in 0..4 {
        let late = Some("the deadline leaves no room for the wait");
        assert_eq!(notes(&history(&hasty, &url("503"))), [late]);
    }
    // Another recipe, as another deadline is, shares the budget of the one it was made from.
    assert_eq!(notes(&history(&session, &url("503"))), [None, USED_UP]);
}

#[test]
fn the_circuit_of_a_host_that_only_fails_spares_its_retries() {
    let (builder, script, clock) = recipe();
    let session = builder.host_circuit(HostCircuit::default()).build().unwrap();
    // Read failures have two retries, so the tenth failure is the fourth URL's first.
    for _ in 0..3 {
        assert_eq!(history(&session, &url("dead")).len(), 3);
    }
    for _ in 0..20 {
        assert_eq!(notes(&history(&session, &url("dead"))), [OPEN]);
    }
    assert_eq!(script.attempts(), 29);
    assert_eq!(history(&session, "http://b.test/dead").len(), 3, "another host");

    // After the rest the next URL's first attempt shows that nothing has changed.
    clock.advance(secs(31.0));
    assert_eq!(notes(&history(&session, &url("dead"))), [OPEN]);
    clock.advance(secs(31.0));
    // A page closes the circuit.
    assert_eq!(notes(&history(&session, &url("200"))), [None]);
    assert_eq!(history(&session, &url("dead")).len(), 3);
}

#[test]
fn what_proxies_fail_at_opens_no_circuit_and_neither_do_answers() {
    let (builder, ..) = recipe();
    let session = builder.host_circuit(HostCircuit::default()).build().unwrap();
    for _ in 0..10 {
        assert_eq!(history(&session, &url("proxy")).len(), 4);
        assert_eq!(history(&session, &url("404")).len(), 1);
    }
    assert_eq!(history(&session, &url("dead")).len(), 3);
}
