use super::*;
use crate::policy::{Backoff, Methods};
use crate::rng::Rng;
use crate::time::secs;
use proptest::prelude::*;

fn error(category: Category) -> Outcome {
    Outcome::Error { category, permanent: false, retry_after: None }
}

fn status(status: u16, retry_after: Option<f64>) -> Outcome {
    Outcome::Status { status, retry_after: retry_after.map(secs) }
}

fn waits(wait: f64, source: WaitSource) -> Decision {
    Decision::Retry { wait: secs(wait), source }
}

fn exhausted(reason: Exhausted, raise: bool) -> Decision {
    Decision::Exhausted { reason, raise }
}

/// The decisions for a GET that meets `outcomes` one after the other.
fn run(retry: &Retry, outcomes: &[Outcome]) -> Vec<Decision> {
    let (mut state, mut rng) = (retry.start(), Rng::seeded(1));
    outcomes.iter().map(|outcome| state.decide(&Method::GET, outcome, &mut rng)).collect()
}

#[test]
fn total_2_is_three_attempts_and_the_last_response_comes_back() {
    let retry = Retry::long_run().total(2);
    assert_eq!(
        run(&retry, &[status(503, None); 3]),
        [
            waits(0.6, WaitSource::Backoff),
            waits(1.2, WaitSource::Backoff),
            exhausted(Exhausted::Total, false),
        ]
    );
    let raising = retry.raise_on_status(true);
    assert_eq!(run(&raising, &[status(503, None); 3])[2], exhausted(Exhausted::Total, true));
}

#[test]
fn the_kind_whose_budget_ends_first_is_named() {
    for (category, reason) in [
        (Category::Connect, Exhausted::Connect),
        (Category::Read, Exhausted::Read),
        (Category::Other, Exhausted::Other),
    ] {
        let retry = Retry::urllib3().connect(0).read(0).other(0);
        assert_eq!(run(&retry, &[error(category)]), [exhausted(reason, true)]);
        let both = retry.total(0);
        assert_eq!(run(&both, &[error(category)]), [exhausted(Exhausted::Total, true)]);
    }
    assert_eq!(Exhausted::Status.to_string(), "the retry budget `status` is used up");
    assert_eq!(
        Exhausted::RetryAfter(secs(3600.0)).to_string(),
        "Retry-After asks for 1 h, more than the policy waits"
    );
}

#[test]
fn off_is_final_where_zero_is_exhausted() {
    let connect = [error(Category::Connect)];
    assert_eq!(run(&Retry::urllib3().connect(false), &connect), [Decision::Final]);
    assert_eq!(run(&Retry::urllib3().total(false), &connect), [Decision::Final]);
    let read = [error(Category::Read)];
    assert_eq!(run(&Retry::urllib3().read(false), &read), [Decision::Final]);
    let other = [error(Category::Other)];
    assert_eq!(
        run(&Retry::urllib3().other(false), &other),
        [exhausted(Exhausted::Other, true)],
        "urllib3 has no special meaning for other=False"
    );
}

#[test]
fn a_post_is_resent_only_when_nothing_can_have_arrived() {
    let retry = Retry::urllib3().status_forcelist([503]);
    let decide =
        |retry: &Retry, outcome| retry.start().decide(&Method::POST, &outcome, &mut Rng::seeded(1));
    assert_eq!(decide(&retry, error(Category::Read)), Decision::Final);
    assert_eq!(decide(&retry, status(503, Some(1.0))), Decision::Final);
    assert_eq!(decide(&retry, error(Category::Connect)), waits(0.0, WaitSource::None));
    let any = retry.clone().allowed_methods(Methods::Any);
    assert_eq!(decide(&any, error(Category::Read)), waits(0.0, WaitSource::None));
    let none = retry.allowed_methods(Methods::Only(Vec::new()));
    assert_eq!(run(&none, &[error(Category::Read)]), [Decision::Final]);
}

#[test]
fn permanent_failures_and_407_are_outside_every_budget() {
    let retry = Retry::urllib3().status_forcelist([407, 503]).allowed_methods(Methods::Any);
    let mut state = retry.start();
    let permanent =
        Outcome::Error { category: Category::Connect, permanent: true, retry_after: None };
    for outcome in [permanent, status(407, None), status(407, Some(3.0))] {
        let decision = state.decide(&Method::GET, &outcome, &mut Rng::seeded(1));
        assert_eq!(decision, Decision::Final);
    }
    assert_eq!((state.charged(), state.counters().total), (0, Budget::Times(10)));
}

#[test]
fn retry_after_triggers_413_429_503_by_itself() {
    let retry = Retry::from_total(3);
    for code in [413, 429, 503] {
        assert_eq!(run(&retry, &[status(code, Some(2.0))]), [waits(2.0, WaitSource::RetryAfter)]);
        assert_eq!(run(&retry, &[status(code, Some(0.0))]), [waits(0.0, WaitSource::None)]);
        assert_eq!(run(&retry, &[status(code, None)]), [Decision::Final]);
    }
    for code in [200, 301, 404, 500, 502] {
        assert_eq!(run(&retry, &[status(code, Some(2.0))]), [Decision::Final]);
    }
    let deaf = retry.clone().respect_retry_after_header(false);
    assert_eq!(run(&deaf, &[status(429, Some(2.0))]), [Decision::Final]);
    let forced = deaf.status_forcelist([429]).backoff(Backoff::constant(secs(0.5)));
    assert_eq!(run(&forced, &[status(429, Some(2.0))]), [waits(0.5, WaitSource::Backoff)]);
    for total in [Budget::Times(0), Budget::Unlimited, Budget::Off] {
        assert_eq!(run(&retry.clone().total(total), &[status(429, Some(2.0))]), [Decision::Final]);
    }
}

#[test]
fn a_wait_that_has_passed_leaves_the_ordinary_backoff() {
    assert_eq!(
        run(&Retry::long_run(), &[status(429, Some(0.0)); 2]),
        [waits(0.6, WaitSource::Backoff), waits(1.2, WaitSource::Backoff)]
    );
}

#[test]
fn the_three_answers_to_a_long_wait() {
    let retry = Retry::long_run();
    let asked = |seconds| [status(503, Some(seconds))];
    let parked = run(&retry, &asked(599.0));
    assert_eq!(parked, [waits(599.0, WaitSource::RetryAfter)]);
    let beyond = exhausted(Exhausted::RetryAfter(secs(601.0)), false);
    assert_eq!(run(&retry, &asked(601.0)), [beyond]);

    let clamped = retry.clone().long_wait(LongWait::Clamp);
    assert_eq!(run(&clamped, &asked(1e9)), [waits(60.0, WaitSource::RetryAfter)]);
    let none = clamped.retry_after_max(Duration::ZERO);
    assert_eq!(run(&none, &asked(1e9)), [waits(0.6, WaitSource::Backoff)]);

    let failing = retry.long_wait(LongWait::Fail).raise_on_status(true);
    assert_eq!(run(&failing, &asked(60.0)), [waits(60.0, WaitSource::RetryAfter)]);
    let too_long = exhausted(Exhausted::RetryAfter(secs(61.0)), true);
    assert_eq!(run(&failing, &asked(61.0)), [too_long]);
}

#[test]
fn redirects_restart_the_backoff_and_spend_their_own_budget() {
    let retry = Retry::long_run().redirect(2);
    let (mut state, mut rng) = (retry.start(), Rng::seeded(1));
    let mut fail =
        |state: &mut RetryState| state.decide(&Method::GET, &status(500, None), &mut rng);
    assert_eq!(fail(&mut state), waits(0.6, WaitSource::Backoff));
    assert_eq!(fail(&mut state), waits(1.2, WaitSource::Backoff));
    assert_eq!(state.redirect(None), waits(0.0, WaitSource::None));
    assert_eq!(fail(&mut state), waits(0.6, WaitSource::Backoff));
    assert_eq!((state.charged(), state.consecutive()), (4, 1));
    assert_eq!(state.redirect(None), exhausted(Exhausted::Total, true));

    let mut alone = retry.clone().total(None).start();
    assert_eq!(alone.redirect(Some(secs(3.0))), waits(3.0, WaitSource::RetryAfter));
    assert_eq!(alone.redirect(Some(Duration::ZERO)), waits(0.0, WaitSource::None));
    assert_eq!(alone.redirect(None), exhausted(Exhausted::Redirect, true));

    let off = exhausted(Exhausted::Redirect, false);
    assert_eq!(retry.redirect(false).start().redirect(None), off);
}

#[test]
fn without_retries_redirects_are_still_followed() {
    let mut state = Retry::none().start();
    for _ in 0..30 {
        assert_eq!(state.redirect(None), waits(0.0, WaitSource::None));
    }
    assert_eq!(state.counters().total, Budget::Times(0));
    assert_eq!(run(&Retry::none(), &[status(503, Some(1.0))]), [Decision::Final]);
    assert_eq!(run(&Retry::none(), &[error(Category::Read)]), [Decision::Final]);
}

#[test]
fn a_proxy_that_asks_for_a_wait_gets_it() {
    let asked = Outcome::Error {
        category: Category::Connect,
        permanent: false,
        retry_after: Some(secs(7.0)),
    };
    assert_eq!(run(&Retry::long_run(), &[asked]), [waits(7.0, WaitSource::RetryAfter)]);
    let deaf = Retry::long_run().respect_retry_after_header(false);
    assert_eq!(run(&deaf, &[asked]), [waits(0.6, WaitSource::Backoff)]);
}

fn any_budget() -> impl Strategy<Value = Budget> {
    prop_oneof![Just(Budget::Unlimited), (0_u32..6).prop_map(Budget::Times), Just(Budget::Off)]
}

/// An outcome, or `None` for a redirect to be followed.
fn any_outcome() -> impl Strategy<Value = Option<Outcome>> {
    let categories =
        prop_oneof![Just(Category::Connect), Just(Category::Read), Just(Category::Other)];
    let asked = proptest::option::of((0_u64..100_000).prop_map(Duration::from_secs));
    let codes = prop_oneof![Just(200_u16), Just(404), Just(407), Just(429), Just(500), Just(503)];
    prop_oneof![
        (categories, asked.clone()).prop_map(|(category, retry_after)| {
            Some(Outcome::Error { category, permanent: false, retry_after })
        }),
        (codes, asked.clone())
            .prop_map(|(status, retry_after)| Some(Outcome::Status { status, retry_after })),
        asked.prop_map(|retry_after| {
            Some(Outcome::UnfollowedRedirect { status: 302, retry_after })
        }),
        Just(None),
    ]
}

fn fell(before: Budget, after: Budget) -> bool {
    match (before, after) {
        (Budget::Times(before), Budget::Times(after)) => after <= before,
        (before, after) => before == after,
    }
}

proptest! {
    #[test]
    fn any_stream_of_outcomes_ends_within_total_plus_one_attempts(
        total in 0_u32..8,
        budgets in proptest::array::uniform5(any_budget()),
        outcomes in proptest::collection::vec(any_outcome(), 12),
        seed in any::<u64>(),
        (any_method, long_wait) in (any::<bool>(), 0..3),
    ) {
        let [connect, read, redirect, status, other] = budgets;
        let methods = if any_method { Methods::Any } else { Methods::idempotent() };
        let long_wait = match long_wait {
            0 => LongWait::Clamp,
            1 => LongWait::Fail,
            _ => LongWait::Park(secs(50_000.0)),
        };
        let retry = Retry::urllib3()
            .total(total)
            .connect(connect)
            .read(read)
            .redirect(redirect)
            .status(status)
            .other(other)
            .allowed_methods(methods)
            .status_forcelist([302, 500])
            .long_wait(long_wait);
        let (mut state, mut rng) = (retry.start(), Rng::seeded(seed));
        let mut attempts = 0;
        let mut before = state.counters();
        for outcome in &outcomes {
            attempts += 1;
            let decision = match outcome {
                Some(outcome) => state.decide(&Method::GET, outcome, &mut rng),
                None => state.redirect(None),
            };
            let after = state.counters();
            prop_assert!(fell(before.total, after.total) && fell(before.connect, after.connect));
            prop_assert!(fell(before.read, after.read) && fell(before.redirect, after.redirect));
            prop_assert!(fell(before.status, after.status) && fell(before.other, after.other));
            before = after;
            match decision {
                Decision::Retry { wait, .. } => {
                    prop_assert!(wait <= retry.longest_retry_after().max(retry.backoff_shape().max()));
                }
                _ => break,
            }
        }
        prop_assert!(attempts <= total + 1);
        prop_assert!(state.charged() <= total);
    }
}
