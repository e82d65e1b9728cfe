use super::*;
use crate::policy::{
    Backoff, Budget, Category, Decision, Exhausted, LongWait, Methods, Outcome, Retry, Shape,
    WaitSource,
};
use crate::rng::Rng;
use crate::time::secs;
use http::Method;
use proptest::prelude::*;

fn timeouts() -> Timeouts {
    Timeouts::from((secs(5.0), secs(25.0)))
}

fn at(seconds: f64) -> Bound {
    Bound::At(secs(seconds))
}

/// Our engine without its drain, for figures that are known from elsewhere.
fn undrained(retry: &Retry) -> WorstCase {
    WorstCase::compute(&WorstCaseInput::new(retry, &timeouts()).drain(Duration::ZERO))
}

#[test]
fn the_known_figures() {
    let run = undrained(&Retry::long_run());
    assert_eq!(run.formula(), at(159.0));
    assert_eq!(run.exact(), at(159.0));
    assert_eq!(run.connect_only(), at(24.2));
    assert_eq!(run.read_only(), at(91.8));
    assert_eq!(run.status_only(), at(124.2));
    assert_eq!(run.occupied(), at(150.0));
    assert_eq!(run.enforced(), None);

    let series = Retry::long_run().backoff(Backoff::urllib3(secs(0.6)));
    let urllib3 = undrained(&series);
    assert_eq!((urllib3.formula(), urllib3.exact()), (at(158.4), at(158.4)));

    let deadline = timeouts().with_deadline(secs(60.0)).unwrap();
    let enforced = WorstCase::of(&Retry::long_run(), &deadline);
    assert_eq!(enforced.enforced(), Some(secs(60.0)));
    assert_eq!(enforced.formula(), at(159.0));

    assert_eq!(WorstCase::of(&Retry::none(), &timeouts()).exact(), at(30.0));
    assert_eq!(undrained(&Retry::wide()).exact(), at(91.8));
}

#[test]
fn our_engine_drains_while_the_wait_runs() {
    let worst = WorstCase::of(&Retry::long_run(), &timeouts());
    // The waits outlast the draining, so it makes no difference what is answered.
    assert_eq!(worst.exact(), at(159.0));
    let shown = |worst: &WorstCase| -> Vec<_> {
        let seconds = |time: Duration| time.as_secs_f64();
        let steps = worst.sequence().iter();
        steps
            .map(|step| (step.outcome, seconds(step.cost), seconds(step.wait), step.times))
            .collect()
    };
    assert_eq!(
        shown(&worst),
        [
            (WorstOutcome::Status, 30.0, 0.6, 1),
            (WorstOutcome::Status, 30.0, 1.2, 1),
            (WorstOutcome::Read, 30.0, 2.4, 1),
            (WorstOutcome::Read, 30.0, 4.8, 1),
            (WorstOutcome::Final, 30.0, 0.0, 1),
        ]
    );
    // Where there is no wait, draining takes its 100 ms.
    let series = Retry::long_run().backoff(Backoff::urllib3(secs(0.6)));
    let worst = WorstCase::of(&series, &timeouts());
    assert_eq!(worst.exact(), at(158.5));
    assert_eq!(shown(&worst)[0], (WorstOutcome::Status, 30.1, 0.0, 1));
    assert_eq!(WorstCase::of(&Retry::long_run(), &timeouts()).occupied(), at(150.5));
    // urllib3 drains first and waits then.
    let input = WorstCaseInput::new(&Retry::long_run(), &timeouts()).urllib3_engine(true);
    assert_eq!(WorstCase::compute(&input).exact(), at(159.3));
}

#[test]
fn a_proxy_may_ask_for_waits_as_well() {
    let input = WorstCaseInput::new(&Retry::long_run(), &timeouts());
    let worst = WorstCase::compute(&input.clone());
    assert_eq!(worst.with_retry_after(), at(150.0 + 3.0 * 600.0 + 4.8));
    let proxied = WorstCase::compute(&input.proxied(true));
    assert_eq!(proxied.exact(), at(159.0));
    assert_eq!(proxied.with_retry_after(), at(4.0 * 30.0 + 5.0 + 4.0 * 600.0));
}

#[test]
fn retry_after_goes_where_the_own_wait_is_least() {
    let retry = Retry::long_run().retry_after_max(secs(2.0)).long_wait(LongWait::Clamp);
    let worst = undrained(&retry);
    assert_eq!(worst.exact(), at(159.0));
    // 2, 2, 2.4 (its own), 4.8
    assert_eq!(worst.with_retry_after(), at(161.2));
    let parked = undrained(&Retry::long_run());
    assert_eq!(parked.with_retry_after(), at(150.0 + 3.0 * 600.0 + 4.8));
    let capped = WorstCaseInput::new(&Retry::long_run(), &timeouts())
        .drain(Duration::ZERO)
        .retry_after_cap(secs(60.0));
    assert_eq!(WorstCase::compute(&capped).with_retry_after(), at(150.0 + 180.0 + 4.8));
    let deaf = undrained(&retry.respect_retry_after_header(false));
    assert_eq!(deaf.with_retry_after(), at(159.0));
}

#[test]
fn redirects_share_the_total_or_add_to_it() {
    let none = undrained(&Retry::none().redirect(2));
    assert_eq!((none.exact(), none.with_redirects()), (at(30.0), at(90.0)));
    let urllib3 = WorstCaseInput::new(&Retry::none().redirect(2), &timeouts())
        .drain(Duration::ZERO)
        .urllib3_engine(true);
    let redirected = WorstCase::compute(&urllib3).with_redirects();
    assert_eq!(redirected, at(90.0 + 2.0 * 21_600.0));
    let session = WorstCaseInput::new(&Retry::none(), &timeouts())
        .drain(Duration::ZERO)
        .retry_after_cap(Duration::ZERO);
    assert_eq!(WorstCase::compute(&session).with_redirects(), at(31.0 * 30.0));
    let unlimited = WorstCase::compute(&session.max_redirects(None));
    assert_eq!(
        unlimited.with_redirects().to_string(),
        "unbounded, because redirects are followed without limit: set `redirect` or `max_redirects`"
    );
    assert_eq!(unlimited.exact(), at(30.0));
}

#[test]
fn a_status_that_only_retry_after_makes_an_end_leaves_some_of_the_total() {
    // Two redirects and the end drain; a third would leave a total under which nothing triggers.
    let retry = Retry::urllib3()
        .total(3)
        .status(0)
        .raise_on_redirect(false)
        .retry_after_max(Duration::ZERO)
        .allowed_methods(Methods::Any);
    let input = WorstCaseInput::new(&retry, &timeouts()).drain(secs(1.0));
    let worst = WorstCase::compute(&input);
    // Four attempts that reach the server, three of which drain.
    assert_eq!(worst.with_redirects(), at(4.0 * 30.0 + 3.0));
    let zero = Timeouts::from(Duration::ZERO);
    let instant = WorstCaseInput::new(&retry, &zero).drain(secs(1.0)).max_redirects(None);
    assert_eq!(WorstCase::compute(&instant).with_redirects(), at(3.0));
}

#[test]
fn what_has_no_bound_says_why() {
    let of = |retry: Retry, timeouts: Timeouts| WorstCase::of(&retry, &timeouts);
    let open = of(Retry::long_run().total(None).read(None), timeouts());
    assert_eq!(
        open.exact().to_string(),
        "unbounded, because neither `total` nor `read` has a limit"
    );
    assert_eq!(open.formula().to_string(), "unbounded, because `total` has no limit");
    assert_eq!(open.sequence(), []);
    assert_eq!(open.connect_only(), at(24.2));

    let patient = of(Retry::long_run(), timeouts().with_read(None).unwrap());
    assert_eq!(patient.exact().to_string(), "unbounded, because no read timeout is set");
    assert_eq!(patient.connect_only(), at(24.2));
    let lost = of(Retry::long_run(), Timeouts::unlimited());
    assert_eq!(lost.exact().to_string(), "unbounded, because no connect timeout is set");

    // No failure of this engine counts as `other`, so the other budgets are enough: three
    // connects, five that reach the server, the end, and eight waits.
    let closed = Retry::long_run().total(None);
    assert_eq!(undrained(&closed).exact(), at(15.0 + 150.0 + 30.0 + 153.0));
    let urllib3 = WorstCaseInput::new(&closed, &timeouts()).urllib3_engine(true);
    assert_eq!(
        WorstCase::compute(&urllib3).exact().to_string(),
        "unbounded, because neither `total` nor `other` has a limit"
    );
    // One more that reaches the server, three of them drained, and a wait that is capped.
    let urllib3 = WorstCaseInput::new(&closed.other(1), &timeouts()).urllib3_engine(true);
    assert_eq!(WorstCase::compute(&urllib3).exact(), at(15.0 + 180.3 + 30.0 + 153.0 + 120.0));
}

#[test]
fn bodies_need_a_size_and_a_rate() {
    let retry = Retry::long_run().retry_after_max(Duration::ZERO).long_wait(LongWait::Clamp);
    let input = WorstCaseInput::new(&retry, &timeouts()).drain(Duration::ZERO);
    let body = |input: &WorstCaseInput| WorstCase::compute(input).to_last_byte().to_string();
    assert_eq!(body(&input), "unbounded, because no size ceiling is set for bodies");
    let input = input.max_body(10_000_000);
    assert_eq!(body(&input), "unbounded, because a body may arrive at any rate, however low");
    let input = input.lowest_rate(100_000);
    // 159 s, and the last byte of two broken bodies and of the whole one.
    assert_eq!(WorstCase::compute(&input).to_last_byte(), at(159.0 + 300.0));
}

#[test]
fn budgets_beyond_all_sense_take_no_longer_to_compute() {
    let huge = Retry::long_run()
        .total(u32::MAX)
        .connect(u32::MAX)
        .read(None)
        .status(u32::MAX)
        .backoff_max(Duration::MAX);
    let worst = WorstCase::of(&huge, &Timeouts::from(Duration::MAX));
    assert_eq!(worst.exact(), Bound::At(Duration::MAX));
    assert_eq!(worst.exact().to_string(), "more than 100 years");

    let million = Retry::from_total(1_000_000).backoff(Backoff::exponential(secs(0.6)));
    // 0.6 + 1.2 + … + 76.8 = 153, then the cap of 120 s.
    let waits = 153.0 + 120.0 * (1_000_000.0 - 8.0);
    assert_eq!(undrained(&million).exact(), at(30.0 * 1_000_001.0 + waits));
    assert!(undrained(&million).sequence().len() < 12);
}

/// An exhaustive search over the budgets, as simple as can be.
struct Search<'a> {
    input: &'a WorstCaseInput,
    backoff: Backoff,
    connect: Duration,
    answered: Duration,
    body: Duration,
}

#[derive(Clone, Copy)]
struct Left {
    total: Option<u32>,
    /// Connect, read, status, other, redirect.
    kinds: [Option<u32>; 5],
    /// How many were followed.
    redirects: u32,
}

impl Search<'_> {
    /// After one of this kind; `None` where a budget is used up.
    fn less(left: Left, kind: usize, in_total: bool) -> Option<Left> {
        let mut left = left;
        if let Some(count) = &mut left.kinds[kind] {
            *count = count.checked_sub(1)?;
        }
        if let (true, Some(total)) = (in_total, &mut left.total) {
            *total = total.checked_sub(1)?;
        }
        Some(left)
    }

    fn longest(&self, left: Left, consecutive: u32) -> Duration {
        let input = self.input;
        let retry = &input.retry;
        let own = self.backoff.longest(consecutive + 1);
        let drained = self.answered + input.drain;
        let handed_out = self.answered + self.body;
        let asked = own.max(input.retry_after_cap);
        // Draining comes before the wait in urllib3, and runs beside it here.
        let (status, beside) =
            if input.urllib3 { (drained, Duration::ZERO) } else { (self.answered, input.drain) };
        let mut best = handed_out;
        let mut failures = vec![(0, self.connect, own)];
        if input.urllib3 {
            failures.push((3, self.answered, own));
        }
        if input.proxied && retry.respects_retry_after() {
            failures.push((0, self.connect, asked));
        }
        if input.method_retryable {
            failures.push((1, handed_out, own));
            if input.forced_status {
                failures.push((2, status, own.max(beside)));
            }
            let triggers = input.forced_status || left.total.is_some_and(|total| total > 0);
            if retry.respects_retry_after() && triggers {
                failures.push((2, status, asked.max(beside)));
            }
        }
        for (kind, cost, wait) in failures {
            best = best.max(match Self::less(left, kind, true) {
                Some(left) => cost + wait + self.longest(left, consecutive + 1),
                None if kind == 2 && !(input.urllib3 && retry.raises_on_status()) => handed_out,
                None => cost,
            });
        }
        if input.follow_redirects {
            let in_total = retry.counts_redirects_in_total();
            let wait = if input.urllib3 { input.retry_after_cap } else { Duration::ZERO };
            let by_session = input.max_redirects == Some(left.redirects);
            best = best.max(match Self::less(left, 4, in_total) {
                _ if by_session => drained,
                Some(left) => {
                    let left = Left { redirects: left.redirects + 1, ..left };
                    drained + wait + self.longest(left, 0)
                }
                None if retry.raises_on_redirect() => drained,
                None => handed_out,
            });
        }
        best
    }
}

fn small_budget(most: u32) -> impl Strategy<Value = Budget> {
    prop_oneof![
        1 => Just(Budget::Unlimited),
        6 => (0..most).prop_map(Budget::Times),
    ]
}

fn small_limit() -> impl Strategy<Value = Option<u32>> {
    proptest::option::of(0_u32..3)
}

fn millis(most: u64) -> impl Strategy<Value = Duration> {
    prop_oneof![Just(0), 1..most].prop_map(Duration::from_millis)
}

prop_compose! {
    fn any_input()(
        total in small_budget(4),
        budgets in proptest::array::uniform5(small_budget(3)),
        (connect, read, drain) in (millis(3000), millis(3000), millis(3000)),
        (factor, cap, retry_after) in (millis(1000), millis(4000), millis(4000)),
        shape in prop_oneof![
            Just(Backoff::exponential(secs(1.0))),
            Just(Backoff::urllib3(secs(1.0))),
            Just(Backoff::constant(secs(1.0))),
            Just(Backoff::decorrelated(secs(1.0))),
        ],
        flags in proptest::array::uniform7(any::<bool>()),
        (proxied, urllib3, max_redirects) in (any::<bool>(), any::<bool>(), small_limit()),
        (phases, addresses) in (1_u32..4, 1_u32..3),
    ) -> WorstCaseInput {
        let [connects, reads, redirects, statuses, others] = budgets;
        let [respect, in_total, raise_status, raise_redirect, follow, retryable, forced] = flags;
        let retry = Retry::urllib3()
            .total(total)
            .connect(connects)
            .read(reads)
            .redirect(redirects)
            .status(statuses)
            .other(others)
            .backoff(shape.with_factor(factor).with_max(cap))
            .respect_retry_after_header(respect)
            .retry_after_max(retry_after)
            .redirects_count_in_total(in_total)
            .raise_on_status(raise_status)
            .raise_on_redirect(raise_redirect);
        WorstCaseInput::new(&retry, &Timeouts::from((connect, read)))
            .phases(phases)
            .addresses(addresses)
            .drain(drain)
            .follow_redirects(follow)
            .max_redirects(max_redirects)
            .method_retryable(retryable)
            .forced_status(forced)
            .proxied(proxied)
            .urllib3_engine(urllib3)
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn an_exhaustive_search_finds_nothing_longer_and_nothing_shorter(
        input in any_input(),
        body in 0_u64..3000,
    ) {
        let input = input.max_body(body).lowest_rate(1000);
        let worst = WorstCase::compute(&input);
        let (Bound::At(head), Bound::At(whole)) = (worst.with_redirects(), worst.to_last_byte())
        else {
            return Ok(());
        };
        let retry = &input.retry;
        let limits = [
            retry.connect_budget(),
            retry.read_budget(),
            retry.status_budget(),
            retry.other_budget(),
            retry.redirect_budget(),
        ];
        let (connect, read) = input.attempt_timeouts().unwrap();
        let search = |body| Search {
            body,
            input: &input,
            backoff: *retry.backoff_shape(),
            connect: connect * input.addresses,
            answered: connect * (input.phases + input.addresses - 1) + read,
        };
        let left = Left {
            total: retry.total_budget().limit(),
            kinds: limits.map(Budget::limit),
            redirects: 0,
        };
        prop_assert_eq!(head, search(Duration::ZERO).longest(left, 0));
        prop_assert_eq!(whole, search(Duration::from_millis(body)).longest(left, 0));
    }

    #[test]
    fn the_answers_are_ordered_and_their_sequences_add_up(input in any_input()) {
        let worst = WorstCase::compute(&input);
        let bounds = [worst.exact(), worst.with_retry_after(), worst.with_redirects()];
        let known: Vec<_> = bounds.iter().map_while(Bound::duration).collect();
        prop_assert!(known.is_sorted());
        for kind in [worst.connect_only(), worst.read_only(), worst.status_only()] {
            if let (Some(kind), Some(all)) = (kind.duration(), worst.exact().duration()) {
                prop_assert!(kind <= all);
            }
        }
        for (bound, steps) in [
            (worst.exact(), worst.sequence()),
            (worst.with_redirects(), worst.sequence_with_redirects()),
        ] {
            if let Some(bound) = bound.duration() {
                prop_assert_eq!(bound, steps.iter().map(WorstStep::sum).sum::<Duration>());
                prop_assert_eq!(steps.last().map(|step| step.outcome), Some(WorstOutcome::Final));
            }
        }
    }
}

/// What an adversary plays for a step; `asked` is what a Retry-After says, where there is one.
fn outcome_of(step: WorstOutcome, asked: Duration) -> Option<Outcome> {
    let error = |category, retry_after| Outcome::Error { category, permanent: false, retry_after };
    let status = |retry_after| Outcome::Status { status: 503, retry_after };
    Some(match step {
        WorstOutcome::Connect => error(Category::Connect, None),
        WorstOutcome::ConnectRetryAfter => error(Category::Connect, Some(asked)),
        WorstOutcome::Read => error(Category::Read, None),
        WorstOutcome::Other => error(Category::Other, None),
        WorstOutcome::Status => status(None),
        WorstOutcome::StatusRetryAfter => status(Some(asked)),
        WorstOutcome::Redirect | WorstOutcome::RedirectRetryAfter | WorstOutcome::Final => {
            return None;
        }
    })
}

fn for_real(input: &WorstCaseInput) -> WorstCaseInput {
    // What the engine of the policy itself decides, rather than the input.
    let methods = if input.method_retryable { Methods::Any } else { Methods::Only(Vec::new()) };
    let retry = input.retry.clone().allowed_methods(methods);
    let retry = if input.forced_status { retry.status_forcelist([503]) } else { retry };
    WorstCaseInput { retry, phases: 1, addresses: 1, ..input.clone() }
}

/// Plays the worst sequence to the counters; `false` where they decide otherwise.
fn walk(input: &WorstCaseInput) -> Result<(), String> {
    let worst = WorstCase::compute(input);
    let (mut state, mut rng) = (input.retry.start(), Rng::seeded(1));
    for step in worst.sequence_with_redirects() {
        // Who wants the own wait, because it is longer, asks for none.
        let cap = input.retry_after_cap;
        let asked = if step.wait > cap { Duration::ZERO } else { cap };
        for _ in 0..step.times {
            let decision = match step.outcome {
                WorstOutcome::Final => break,
                WorstOutcome::Redirect => state.redirect(None),
                WorstOutcome::RedirectRetryAfter => state.redirect(Some(asked)),
                other => match outcome_of(other, asked) {
                    Some(outcome) => state.decide(&Method::GET, &outcome, &mut rng),
                    None => return Err(format!("{step:?} is nothing to play")),
                },
            };
            if !matches!(decision, Decision::Retry { wait, .. } if wait == step.wait) {
                return Err(format!("{step:?}: {decision:?}"));
            }
        }
    }
    Ok(())
}

#[test]
fn a_retry_after_below_the_own_wait_is_not_what_takes_longest() {
    // The first status asks for nothing, so that the own wait of 184 ms applies, and not 1 ms.
    let ms = Duration::from_millis;
    let retry = Retry::urllib3()
        .total(2)
        .backoff(Backoff::exponential(ms(184)).with_max(ms(368)))
        .retry_after_max(ms(1))
        .allowed_methods(Methods::Any);
    let input = WorstCaseInput::new(&retry, &Timeouts::from(Duration::ZERO)).drain(ms(1));
    for urllib3 in [false, true] {
        assert_eq!(walk(&input.clone().urllib3_engine(urllib3)), Ok(()));
    }
    let worst = WorstCase::compute(&input);
    assert_eq!(worst.exact(), Bound::At(ms(184 + 368)));
}

proptest! {
    #[test]
    fn the_engine_of_retries_walks_the_worst_sequence(
        input in any_input().prop_map(|input| for_real(&input)),
    ) {
        // The longest draws of a jittered shape cannot be had on demand.
        if input.retry.backoff_shape().shape() != Shape::Decorrelated {
            prop_assert_eq!(walk(&input), Ok(()));
        }
    }

    #[test]
    fn no_adversary_gets_beyond_the_worst_case(
        input in any_input().prop_map(|input| for_real(&input)),
        moves in proptest::collection::vec((0_usize..8, 0_u64..5000), 30),
        seed in any::<u64>(),
    ) {
        let Bound::At(bound) = WorstCase::compute(&input).with_redirects() else {
            return Ok(());
        };
        let (connect, read) = input.attempt_timeouts().unwrap();
        let (mut state, mut rng) = (input.retry.start(), Rng::seeded(seed));
        let (mut spent, mut redirects) = (Duration::ZERO, 0);
        for (kind, asked) in moves {
            let kind = [
                WorstOutcome::Connect,
                WorstOutcome::ConnectRetryAfter,
                WorstOutcome::Read,
                WorstOutcome::Other,
                WorstOutcome::Status,
                WorstOutcome::StatusRetryAfter,
                WorstOutcome::Redirect,
                WorstOutcome::RedirectRetryAfter,
            ][kind];
            let needless = match kind {
                WorstOutcome::ConnectRetryAfter => !input.proxied,
                WorstOutcome::Other => !input.urllib3,
                _ => false,
            };
            if needless {
                continue;
            }
            let asked = Duration::from_millis(asked);
            let is_redirect =
                matches!(kind, WorstOutcome::Redirect | WorstOutcome::RedirectRetryAfter);
            let by_session = input.max_redirects == Some(redirects);
            let decision = match kind {
                _ if is_redirect && !input.follow_redirects => Decision::Final,
                _ if is_redirect && by_session => {
                    Decision::Exhausted { reason: Exhausted::Redirect, raise: true }
                }
                WorstOutcome::RedirectRetryAfter if input.urllib3 => state.redirect(Some(asked)),
                _ if is_redirect => state.redirect(None),
                other => {
                    let outcome = outcome_of(other, asked).unwrap();
                    state.decide(&Method::GET, &outcome, &mut rng)
                }
            };
            redirects += u32::from(is_redirect);
            let connects =
                matches!(kind, WorstOutcome::Connect | WorstOutcome::ConnectRetryAfter);
            spent += if connects { connect } else { connect + read };
            let has_head =
                !connects && !matches!(kind, WorstOutcome::Read | WorstOutcome::Other);
            let drain = if has_head { input.drain } else { Duration::ZERO };
            match decision {
                Decision::Retry { wait, source } => {
                    prop_assert_eq!(wait.is_zero(), source == WaitSource::None);
                    let beside = !input.urllib3 && !is_redirect;
                    spent += if beside { wait.max(drain) } else { wait + drain };
                }
                Decision::Exhausted { raise: true, .. } if is_redirect || input.urllib3 => {
                    spent += drain;
                    break;
                }
                _ => break,
            }
        }
        prop_assert!(spent <= bound, "{spent:?} {bound:?}");
    }
}
