//! Rounds of answers against a walk; whole runs are in `tests/adaptive.rs`.

use super::*;
use crate::rng::Rng;
use crate::time::secs;
use proptest::prelude::*;

const OK: Echo = Echo::Heard(Duration::from_millis(100));

/// Feeds answers of the present era until the number changes or there were `most`.
fn until_it_moves(walk: &mut Walk, most: usize, mut echo: impl FnMut(usize) -> Echo) -> usize {
    let (era, limit) = (walk.era(), walk.limit());
    for nth in 0..most {
        walk.press();
        walk.hear(era, echo(nth));
        if walk.limit() != limit {
            return nth + 1;
        }
    }
    most
}

/// Windows of `latency` at the present number, and refusals where it is above `parallel`.
fn run(walk: &mut Walk, windows: usize, latency: impl Fn(usize) -> Duration, parallel: usize) {
    for _ in 0..windows {
        let limit = walk.limit();
        until_it_moves(walk, 2 * limit + 100, |nth| {
            if nth % limit < parallel { Echo::Heard(latency(limit)) } else { Echo::Throttled }
        });
    }
}

#[test]
fn it_begins_with_eight_and_grows_by_half_up_to_the_ceiling() {
    assert_eq!(Walk::new(3).limit(), 3);
    let mut walk = Walk::new(50);
    let mut seen = vec![walk.limit()];
    for _ in 0..6 {
        until_it_moves(&mut walk, 200, |_| OK);
        seen.push(walk.limit());
    }
    assert_eq!(seen, [8, 12, 18, 27, 40, 50, 50]);
    assert_eq!(walk.found(), Found { limit: 50, most: 50, back_offs: 0 });
}

#[test]
fn a_window_has_two_answers_for_each_place() {
    let mut walk = Walk::new(1000);
    assert_eq!(until_it_moves(&mut walk, 200, |_| OK), 48);
    run(&mut walk, 3, |_| secs(0.1), 1000);
    assert_eq!(walk.limit(), 40);
    assert_eq!(until_it_moves(&mut walk, 200, |_| OK), 81, "twice 40.5");
}

#[test]
fn what_is_not_used_does_not_grow() {
    let mut walk = Walk::new(1000);
    for _ in 0..1000 {
        walk.hear(walk.era(), OK);
    }
    assert_eq!(walk.limit(), 8);
}

#[test]
fn an_answer_of_before_a_decrease_decreases_nothing() {
    let mut walk = Walk::new(1000);
    run(&mut walk, 4, |_| secs(0.1), 1000);
    let (before, era) = (walk.limit(), walk.era());
    until_it_moves(&mut walk, 10, |_| Echo::Throttled);
    let after = walk.limit();
    assert!(after < before);
    for _ in 0..1000 {
        walk.hear(era, Echo::Throttled);
        walk.hear(era, Echo::Heard(secs(60.0)));
    }
    assert_eq!((walk.limit(), walk.found().back_offs), (after, 1));
}

#[test]
fn the_first_refusals_lead_back_to_what_went_well_and_later_ones_by_a_factor() {
    let mut walk = Walk::new(1000);
    run(&mut walk, 5, |_| secs(0.1), 45);
    assert_eq!(walk.limit(), 60);
    until_it_moves(&mut walk, 100, |_| Echo::Refused);
    assert_eq!(walk.limit(), 40);
    let refused: Vec<usize> = (0..2)
        .map(|_| {
            until_it_moves(&mut walk, 200, |_| Echo::Throttled);
            walk.limit()
        })
        .collect();
    assert_eq!(refused, [34, 29]);
}

#[test]
fn a_wall_is_found_and_held_from_below() {
    for parallel in [1, 5, 9, 40, 100, 700] {
        let mut walk = Walk::new(1000);
        run(&mut walk, 60, |_| secs(0.1), parallel);
        let (mut least, mut most, mut refused) = (usize::MAX, 0, walk.found().back_offs);
        for _ in 0..200 {
            run(&mut walk, 1, |_| secs(0.1), parallel);
            (least, most) = (least.min(walk.limit()), most.max(walk.limit()));
        }
        refused = walk.found().back_offs - refused;
        assert!(least * 5 >= parallel * 4 || least + 1 >= parallel, "{parallel}: down to {least}");
        assert!(most * 5 <= parallel * 6 || most <= parallel + 1, "{parallel}: up to {most}");
        assert!(refused <= 40, "{parallel}: refused in {refused} of 200 windows");
    }
}

#[test]
fn a_site_that_is_slow_in_itself_holds_nothing_back() {
    let mut walk = Walk::new(500);
    run(&mut walk, 40, |_| secs(30.0), 1000);
    assert_eq!(walk.found(), Found { limit: 500, most: 500, back_offs: 0 });
}

#[test]
fn a_latency_that_rises_with_the_number_lowers_it() {
    // A queue behind 50 places.
    let queue = |limit: usize| secs(0.1).mul_f64((limit as f64 / 50.0).max(1.0));
    let mut walk = Walk::new(1000);
    run(&mut walk, 60, queue, 1000);
    for _ in 0..100 {
        run(&mut walk, 1, queue, 1000);
        assert!((50..=110).contains(&walk.limit()), "{}", walk.limit());
    }
}

#[test]
fn a_decrease_that_does_not_help_is_taken_back() {
    let mut walk = Walk::new(100);
    run(&mut walk, 20, |_| secs(0.1), 1000);
    assert_eq!(walk.limit(), 100);
    // The site has become slower, whatever is sent.
    run(&mut walk, 1, |_| secs(0.5), 1000);
    assert!(walk.limit() < 100);
    run(&mut walk, 20, |_| secs(0.5), 1000);
    assert_eq!((walk.limit(), walk.found().back_offs), (100, 1));
}

#[test]
fn a_share_of_broken_pages_is_ordinary_once_a_decrease_did_not_help() {
    for echo in [Echo::Throttled, Echo::Refused] {
        let mut walk = Walk::new(200);
        for _ in 0..100 {
            until_it_moves(&mut walk, 500, |nth| if nth % 20 == 19 { echo } else { OK });
        }
        assert_eq!(walk.limit(), 200, "{echo:?} {walk:?}");
    }
}

#[test]
fn a_server_that_counts_requests_is_not_ordinary() {
    let mut walk = Walk::new(200);
    for _ in 0..100 {
        until_it_moves(&mut walk, 500, |nth| if nth % 2 == 0 { Echo::Throttled } else { OK });
    }
    assert!(walk.limit() <= 2, "{}", walk.limit());
}

#[test]
fn what_an_attempt_says() {
    let attempt = |status, error| Attempt {
        method: http::Method::GET,
        url: "http://a.test/".into(),
        proxy: None,
        exit: None,
        status,
        error,
        elapsed: secs(0.3),
        wait: None,
        reused: false,
        resend: false,
        note: None,
        refusal: None,
        exchange: None,
    };
    let failed = |kind, phase, fault| {
        let message = String::new();
        attempt(None, Some(crate::error::AttemptError { kind, phase, fault, message }))
    };
    let heard = Some(Echo::Heard(secs(0.3)));
    for (attempt, echo) in [
        (attempt(Some(200), None), heard),
        (attempt(Some(403), None), heard),
        (attempt(Some(500), None), heard),
        (attempt(Some(429), None), Some(Echo::Throttled)),
        (attempt(Some(503), None), Some(Echo::Throttled)),
        (failed(ErrorKind::Connection, Phase::Connect, Fault::Target), Some(Echo::Refused)),
        (failed(ErrorKind::Connection, Phase::Headers, Fault::Target), heard),
        (failed(ErrorKind::ReadTimeout, Phase::Headers, Fault::Target), heard),
        (failed(ErrorKind::NameNotFound, Phase::Dns, Fault::Target), None),
        (failed(ErrorKind::ProxyUnreachable, Phase::Connect, Fault::Proxy), None),
    ] {
        assert_eq!(Echo::of(&attempt), echo, "{attempt:?}");
    }
}

proptest! {
    #[test]
    fn it_stays_between_one_and_the_ceiling_and_old_answers_move_nothing(
        ceiling in 1_usize..3000,
        seed: u64,
    ) {
        let mut rng = Rng::seeded(seed);
        let mut walk = Walk::new(ceiling);
        let mut eras = vec![walk.era()];
        for _ in 0..5000 {
            if rng.below(3) > 0 {
                walk.press();
            }
            let echo = match rng.below(20) {
                0 => Echo::Throttled,
                1 => Echo::Refused,
                _ => Echo::Heard(secs(rng.uniform(0.0, 3.0))),
            };
            let era = eras[rng.below(eras.len())];
            let before = (walk.limit(), walk.era());
            walk.hear(era, echo);
            prop_assert!((1..=ceiling).contains(&walk.limit()));
            if era != before.1 {
                prop_assert_eq!((walk.limit(), walk.era()), before);
            }
            // Mostly the present one.
            eras.push(walk.era());
            let last = eras.len().saturating_sub(4);
            eras.drain(..last);
        }
    }
}
