//! The worst case against the code that runs: flights on a scripted transport and a simulated
//! clock, played to by an adversary.
//!
//! No adversary may get beyond what was computed, and the one that plays the worst sequence has to
//! arrive there. It takes every clock to its last nanosecond, so what it reaches may fall short of
//! the bound by two of them per attempt.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "helpers of tests fail by panicking, as tests do"
)]

use longhaul::error::{ErrorKind, Fault, Phase};
use longhaul::message::Auth;
use longhaul::policy::{
    Backoff, Bound, Budget, LongWait, Methods, WorstCase, WorstCaseInput, WorstOutcome, WorstStep,
};
use longhaul::rng::Rng;
use longhaul::session::{Flight, Step};
use longhaul::time::{Clock, SimClock};
use longhaul::transport::{Play, Script};
use longhaul::{Request, Retry, Session, Timeouts};
use proptest::prelude::*;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

const TICK: Duration = Duration::from_nanos(1);

/// What a body may take that nobody waits for.
const DRAIN: Duration = Duration::from_millis(100);

fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// A policy and what surrounds it.
#[derive(Debug, Clone)]
struct World {
    retry: Retry,
    connect: Duration,
    read: Duration,
    max_redirects: u32,
    follow: bool,
}

impl World {
    fn timeouts(&self) -> Timeouts {
        Timeouts::from((self.connect, self.read))
    }

    fn input(&self) -> WorstCaseInput {
        WorstCaseInput::new(&self.retry, &self.timeouts())
            .max_redirects(self.max_redirects)
            .follow_redirects(self.follow)
            .proxied(true)
    }

    fn worst(&self) -> WorstCase {
        WorstCase::compute(&self.input())
    }

    /// Flies one URL through what `play` answers to the n-th attempt, and tells how long it took
    /// and how many attempts it made.
    fn fly(&self, mut play: impl FnMut(usize) -> Play + Send + 'static) -> (Duration, usize) {
        let clock = Arc::new(SimClock::default());
        let script = Script::with(clock.clone(), move |_, attempt| play(attempt));
        let plays = script.clone();
        let session = Session::builder()
            .trust_env(false)
            .clock(clock.clone())
            .seed(1)
            // A challenge may be answered, within the attempt that met it.
            .auth(Auth::Digest("user".to_owned(), "password".to_owned()))
            .retry(self.retry.clone())
            .timeout(self.timeouts())
            .max_redirects(self.max_redirects)
            .allow_redirects(self.follow)
            // The worst case is to the head, so no body is read that is handed out.
            .stream(true)
            .transport(move || plays.clone())
            .build()
            .unwrap();
        let mut flight = Flight::new(Request::new(http::Method::GET, "http://a.test/"), 0);
        while let Step::Wait { until, .. } = flight.step(&session) {
            clock.sleep_until(until);
        }
        (clock.elapsed(), script.attempts())
    }

    /// The longest play of a step of the worst sequence that is followed by this wait.
    fn play(&self, outcome: WorstOutcome, wait: Duration) -> Play {
        let cap = self.retry.longest_retry_after();
        // Who wants the own wait, because it is longer, asks for none.
        let asked = if wait > cap { Duration::ZERO } else { cap };
        let answer = |play: Play| {
            play.connecting(self.connect - TICK).after(self.read - TICK).body_after(DRAIN)
        };
        match outcome {
            WorstOutcome::Connect => Play::black_hole(),
            WorstOutcome::ConnectRetryAfter => {
                asking(Play::proxy_refusal(503), asked).after(self.connect - TICK)
            }
            WorstOutcome::Read => Play::silence().connecting(self.connect - TICK),
            WorstOutcome::Status => answer(Play::status(500)),
            WorstOutcome::StatusRetryAfter => answer(asking(Play::status(503), asked)),
            WorstOutcome::Redirect => answer(Play::status(302).header("Location", "/")),
            // Whatever ends it: what is not retried, after all that an attempt can take.
            _ => Play::error(ErrorKind::TooLarge, Phase::Headers, Fault::Target)
                .connecting(self.connect - TICK)
                .after(self.read - TICK),
        }
    }

    /// What comes of playing this sequence. Behind a redirect that ends it stands nothing.
    fn walk(&self, steps: &[WorstStep], last: Option<Play>) -> (Duration, usize) {
        let mut plays: VecDeque<_> = steps
            .iter()
            .flat_map(|step| {
                std::iter::repeat_n(self.play(step.outcome, step.wait), step.times as usize)
            })
            .collect();
        if let (Some(last), Some(end)) = (last, plays.back_mut()) {
            *end = last;
        }
        let count = plays.len();
        let (took, attempts) = self.fly(move |_| plays.pop_front().unwrap());
        assert_eq!(attempts, count, "the flight ends where the sequence does");
        (took, attempts)
    }

    /// Whether playing the sequence arrives at its bound, but for the last nanoseconds.
    fn reaches(&self, bound: &Bound, steps: &[WorstStep]) -> Result<(), TestCaseError> {
        let Bound::At(bound) = *bound else { return Ok(()) };
        let end = steps.last().map(|step| step.cost).unwrap_or_default();
        // An end that is drained is a redirect too many.
        let last = (end > self.connect + self.read)
            .then(|| self.play(WorstOutcome::Redirect, Duration::ZERO));
        let (took, attempts) = self.walk(steps, last);
        prop_assert!(took <= bound, "{took:?} is beyond {bound:?}");
        let short = TICK * 2 * attempts as u32;
        prop_assert!(took + short >= bound, "{took:?} of {bound:?} by {steps:?}");
        Ok(())
    }
}

fn challenge() -> Play {
    Play::status(401).header("WWW-Authenticate", "Digest realm=r, nonce=n, qop=auth, stale=true")
}

fn asking(play: Play, wait: Duration) -> Play {
    // Digit by digit: a float would be a nanosecond off.
    play.header("Retry-After", &format!("{}.{:09}", wait.as_secs(), wait.subsec_nanos()))
}

fn budget(most: u32) -> impl Strategy<Value = Budget> {
    prop_oneof![
        1 => Just(Budget::Unlimited),
        1 => Just(Budget::Off),
        6 => (0..most).prop_map(Budget::Times),
    ]
}

prop_compose! {
    fn any_world()(
        total in prop_oneof![4 => (0_u32..6).prop_map(Budget::Times), 1 => Just(Budget::Unlimited)],
        budgets in proptest::array::uniform4(budget(4)),
        // One silence of a body is no longer than the read timeout, and it has to last for the drain.
        (connect, read) in (1_u64..5000, 101_u64..5000),
        (factor, cap, retry_after, park) in (0_u64..1000, 0_u64..4000, 0_u64..4000, 0_u64..8000),
        shape in prop_oneof![
            Just(Backoff::exponential(ms(1))),
            Just(Backoff::urllib3(ms(1))),
            Just(Backoff::constant(ms(1))),
            Just(Backoff::full_jitter(ms(1))),
            Just(Backoff::equal_jitter(ms(1))),
            Just(Backoff::decorrelated(ms(1))),
        ],
        jitter in prop_oneof![3 => Just(0), 1 => 1_u64..500],
        long_wait in 0_u8..3,
        flags in proptest::array::uniform7(any::<bool>()),
        max_redirects in 0_u32..4,
    ) -> World {
        let [connects, reads, redirects, statuses] = budgets;
        let [respect, in_total, raise_status, raise_redirect, follow, any_method, forced] = flags;
        let retry = Retry::urllib3()
            .total(total)
            .connect(connects)
            .read(reads)
            .redirect(redirects)
            .status(statuses)
            .backoff(shape.with_factor(ms(factor)).with_max(ms(cap)).with_jitter(ms(jitter)))
            .respect_retry_after_header(respect)
            .retry_after_max(ms(retry_after))
            .long_wait(match long_wait {
                0 => LongWait::Clamp,
                1 => LongWait::Fail,
                _ => LongWait::Park(ms(park)),
            })
            .redirects_count_in_total(in_total)
            .raise_on_status(raise_status)
            .raise_on_redirect(raise_redirect)
            .allowed_methods(if any_method { Methods::Any } else { Methods::Only(Vec::new()) });
        let retry = if forced { retry.status_forcelist([500, 503]) } else { retry };
        World { retry, connect: ms(connect), read: ms(read), max_redirects, follow }
    }
}

/// Whether there is a bound to be reached, and the longest draws of its waits can be had: those of
/// a jittered shape cannot.
fn can_be_reached(world: &World) -> bool {
    let backoff = world.retry.backoff_shape();
    let plain = [Backoff::exponential(ms(1)), Backoff::urllib3(ms(1)), Backoff::constant(ms(1))];
    world.worst().exact().duration().is_some()
        && backoff.jitter().is_zero()
        && plain.iter().any(|shape| shape.shape() == backoff.shape())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn no_adversary_gets_beyond_the_worst_case(world in any_world(), seed in any::<u64>()) {
        let worst = world.worst();
        let redirects = world.follow;
        for (bound, retry_after, redirects) in [
            (worst.exact(), false, false),
            (worst.with_retry_after(), true, false),
            (worst.with_redirects(), true, redirects),
        ] {
            let Bound::At(bound) = bound else { continue };
            let mut rng = Rng::seeded(seed);
            let limits = (world.connect, world.read);
            // The body of a status that is raised is read, and that has no bound.
            let body = !world.retry.raises_on_status();
            let (took, _) = world.fly(move |_| {
                any_play(&mut rng, limits, retry_after, redirects, body)
            });
            prop_assert!(took <= bound, "{took:?} is beyond {bound:?}");
        }
    }

    #[test]
    fn some_adversary_reaches_the_worst_case(world in any_world().prop_filter("no bound, or jitter", can_be_reached)) {
        let worst = world.worst();
        world.reaches(&worst.exact(), worst.sequence())?;
        world.reaches(&worst.with_redirects(), worst.sequence_with_redirects())?;
    }
}

/// Anything that can happen to an attempt, often at the last moment.
fn any_play(
    rng: &mut Rng,
    (connect, read): (Duration, Duration),
    retry_after: bool,
    redirects: bool,
    body: bool,
) -> Play {
    fn up_to(rng: &mut Rng, limit: Duration) -> Duration {
        match rng.below(3) {
            0 => limit - TICK,
            1 => limit,
            _ => rng.between(Duration::ZERO, limit * 2),
        }
    }
    let asks = retry_after && rng.below(2) == 0;
    let wait = ms(rng.below(5000) as u64);
    let play = match rng.below(10) {
        0 => Play::black_hole(),
        1 => Play::silence(),
        2 => Play::error(ErrorKind::Connection, Phase::Connect, Fault::Target),
        3 => Play::error(ErrorKind::Ssl, Phase::Tls, Fault::Target),
        4 => Play::error(ErrorKind::Connection, Phase::Headers, Fault::Target),
        // A kept-alive connection that dies as late as it can: the resend is part of the attempt.
        5 => return Play::stale().after(up_to(rng, read)),
        6 if redirects => Play::status(302).header("Location", "/x"),
        6 => Play::proxy_refusal(503),
        7 | 8 => challenge(),
        _ => Play::status([500, 503, 429, 413][rng.below(4)]),
    };
    let play = if asks { asking(play, wait) } else { play };
    let play = if body { play.body_after(up_to(rng, DRAIN)) } else { play };
    play.connecting(up_to(rng, connect)).after(up_to(rng, read))
}

/// The policy for runs with 5 s and 25 s.
fn known() -> World {
    World {
        retry: Retry::long_run(),
        connect: ms(5000),
        read: ms(25_000),
        max_redirects: 30,
        follow: true,
    }
}

#[test]
fn a_stale_connection_costs_no_more_than_an_attempt() {
    let world = known();
    // Each attempt meets a kept-alive connection that dies a second before the silence is over,
    // and the resend has that second left.
    let (took, attempts) = world.fly(|attempt| match attempt % 2 {
        0 => Play::stale().after(ms(24_000)),
        _ => Play::silence().connecting(ms(5000) - TICK),
    });
    assert_eq!((took, attempts), (ms(3 * 30_000 + 600 + 1200) - TICK * 3, 6));
    assert!(Bound::At(took).duration() < world.worst().read_only().duration());
    // With nothing left there is no resend.
    let (took, attempts) = world.fly(|_| Play::stale().after(ms(25_000)));
    assert_eq!((took, attempts), (ms(3 * 25_000 + 600 + 1200), 3));
}

#[test]
fn a_challenge_costs_no_more_than_an_attempt() {
    let world = known();
    // Connecting twice and a silence in two pieces, the drain of the first body included.
    let (took, attempts) = world.fly(|attempt| match attempt % 2 {
        0 => challenge().connecting(ms(2000)).after(ms(20_000)).body_after(DRAIN * 2),
        _ => Play::silence().connecting(ms(3000) - TICK),
    });
    assert_eq!((took, attempts), (ms(3 * 30_000 + 600 + 1200) - TICK * 3, 6));
    // Two challenges are the most that one attempt answers, and each took of both clocks.
    let (took, attempts) = world.fly(|attempt| match attempt % 3 {
        0 | 1 => challenge().connecting(ms(2000)).after(ms(10_000)),
        _ => Play::black_hole(),
    });
    assert_eq!((took, attempts), (ms(3 * 25_000 + 600 + 1200), 9));
    // A failure to connect behind a challenge is charged as the reading that went before.
    let (took, attempts) = world.fly(|attempt| match attempt % 2 {
        0 => challenge().connecting(ms(2000)).after(ms(20_000)),
        _ => Play::black_hole(),
    });
    assert_eq!((took, attempts), (ms(3 * 25_000 + 600 + 1200), 6));
}

#[test]
fn the_known_policy_is_walked_to_its_159_seconds() {
    let world = known();
    let (took, attempts) = world.walk(world.worst().sequence(), None);
    let ticks = Duration::from_secs(159).checked_sub(took).unwrap();
    assert!(attempts == 5 && ticks <= TICK * 10, "{took:?}");
}
