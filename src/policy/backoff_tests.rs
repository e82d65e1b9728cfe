use super::*;
use crate::rng::Rng;
use crate::time::secs;
use proptest::prelude::*;

fn series(backoff: Backoff, count: u32) -> Vec<Duration> {
    let mut rng = Rng::seeded(1);
    let mut previous = backoff.first_previous();
    (1..=count)
        .map(|number| {
            previous = backoff.wait(number, previous, &mut rng);
            previous
        })
        .collect()
}

fn seconds(waits: &[f64]) -> Vec<Duration> {
    waits.iter().copied().map(secs).collect()
}

#[test]
fn both_exponential_series() {
    let factor = secs(0.6);
    assert_eq!(series(Backoff::exponential(factor), 4), seconds(&[0.6, 1.2, 2.4, 4.8]));
    assert_eq!(series(Backoff::urllib3(factor), 4), seconds(&[0.0, 1.2, 2.4, 4.8]));
    assert_eq!(series(Backoff::constant(factor), 3), seconds(&[0.6, 0.6, 0.6]));
    assert_eq!(series(Backoff::none(), 3), seconds(&[0.0, 0.0, 0.0]));
    assert_eq!(
        series(Backoff::exponential(factor).with_max(secs(2.0)), 4),
        seconds(&[0.6, 1.2, 2.0, 2.0])
    );
}

#[test]
fn counts_and_factors_beyond_all_sense_give_the_cap() {
    let cap = secs(120.0);
    for number in [9, 31, 32, 33, 63, 64, 65, 1024, 100_000, u32::MAX] {
        for factor in [secs(1.0), secs(1e300), Duration::MAX] {
            for shape in [Shape::Exponential, Shape::Urllib3] {
                let backoff = Backoff::new(shape, factor);
                let wait = backoff.wait(number, Duration::ZERO, &mut Rng::seeded(1));
                assert_eq!((wait, backoff.longest(number)), (cap, cap), "{number} {factor:?}");
            }
            assert_eq!(Backoff::decorrelated(factor).longest(number), cap);
        }
    }
    for nonsense in [f64::NAN, -1.0, f64::NEG_INFINITY] {
        assert_eq!(Backoff::exponential(secs(nonsense)).longest(64), Duration::ZERO);
    }
    let uncapped = Backoff::exponential(secs(1.0)).with_max(Duration::MAX);
    assert_eq!(uncapped.longest(u32::MAX), Duration::MAX);
}

#[test]
fn the_first_wait_of_urllib3s_series_has_no_jitter_and_the_cap_covers_it() {
    let backoff = Backoff::urllib3(secs(1.0)).with_jitter(secs(5.0)).with_max(secs(4.0));
    let mut rng = Rng::seeded(2);
    assert_eq!(backoff.wait(1, Duration::ZERO, &mut rng), Duration::ZERO);
    assert_eq!(backoff.longest(1), Duration::ZERO);
    assert_eq!(backoff.longest(2), secs(4.0));
    for _ in 0..10_000 {
        let wait = backoff.wait(2, Duration::ZERO, &mut rng);
        assert!((secs(2.0)..=secs(4.0)).contains(&wait), "{wait:?}");
    }
}

/// Bounds, and the mean within one percent of the whole range.
fn check_spread(backoff: Backoff, number: u32, previous: f64, low: f64, high: f64) {
    const DRAWS: u32 = 100_000;
    let mut rng = Rng::seeded(u64::from(number) + 17);
    let (mut sum, mut least, mut most) = (0.0, f64::INFINITY, 0.0_f64);
    for _ in 0..DRAWS {
        let wait = backoff.wait(number, secs(previous), &mut rng).as_secs_f64();
        sum += wait;
        least = least.min(wait);
        most = most.max(wait);
    }
    let (mean, range) = (sum / f64::from(DRAWS), high - low);
    assert!(least >= low - 1e-9 && most <= high + 1e-9, "{backoff:?}: {least} to {most}");
    assert!((mean - f64::midpoint(low, high)).abs() <= 0.01 * range, "{backoff:?}: mean {mean}");
    assert!(least <= low + 0.01 * range && most >= high - 0.01 * range, "{backoff:?}: narrow");
}

#[test]
fn jitter_spreads_over_its_whole_range() {
    let factor = secs(0.6);
    check_spread(Backoff::full_jitter(factor), 3, 0.0, 0.0, 2.4);
    check_spread(Backoff::equal_jitter(factor), 3, 0.0, 1.2, 2.4);
    check_spread(Backoff::decorrelated(secs(1.0)), 2, 4.0, 1.0, 12.0);
    check_spread(Backoff::exponential(factor).with_jitter(secs(1.0)), 2, 0.0, 1.2, 2.2);
    check_spread(Backoff::full_jitter(secs(1.0)).with_max(secs(8.0)), 90, 0.0, 0.0, 8.0);
}

#[test]
fn decorrelated_jitter_stays_between_base_and_cap() {
    let backoff = Backoff::decorrelated(secs(1.0)).with_max(secs(60.0));
    let mut rng = Rng::seeded(3);
    for previous in [0.0, 0.2, 1.0, 1000.0] {
        for _ in 0..10_000 {
            let wait = backoff.wait(2, secs(previous), &mut rng);
            assert!((secs(1.0)..=secs(60.0)).contains(&wait), "{previous}: {wait:?}");
        }
    }
    assert_eq!(backoff.wait(2, Duration::ZERO, &mut rng), secs(1.0), "an empty range is its base");
    let low_cap = Backoff::decorrelated(secs(5.0)).with_max(secs(2.0));
    assert_eq!(low_cap.wait(1, secs(5.0), &mut rng), secs(2.0));
    assert_eq!(backoff.longest(1), secs(3.0));
    assert_eq!(backoff.longest(3), secs(27.0));
    assert_eq!(backoff.longest(4), secs(60.0));
}

/// The jittered series, each with the range of one of its waits.
fn jittered() -> [(Backoff, f64, f64); 4] {
    [
        (Backoff::full_jitter(secs(0.6)), 0.0, 2.4),
        (Backoff::equal_jitter(secs(0.6)), 1.2, 2.4),
        (Backoff::decorrelated(secs(1.0)), 1.0, 12.0),
        (Backoff::exponential(secs(0.6)).with_jitter(secs(1.0)), 2.4, 3.4),
    ]
}

/// The third wait of a series, so many times, in seconds.
fn draws(backoff: Backoff, stream: u64, count: usize) -> Vec<f64> {
    let mut rng = Rng::stream(42, stream);
    (0..count).map(|_| backoff.wait(3, secs(4.0), &mut rng).as_secs_f64()).collect()
}

#[test]
fn no_part_of_the_range_is_preferred() {
    const DRAWS: usize = 100_000;
    for (backoff, low, high) in jittered() {
        let mut slots = [0_u32; 20];
        for wait in draws(backoff, 5, DRAWS) {
            slots[(((wait - low) / (high - low) * 20.0) as usize).min(19)] += 1;
        }
        let expected = DRAWS as f64 / 20.0;
        let chi: f64 =
            slots.iter().map(|count| (f64::from(*count) - expected).powi(2) / expected).sum();
        // Nineteen degrees of freedom: one in a hundred thousand is above 58.
        assert!(chi < 58.0, "{backoff:?}: {chi} {slots:?}");
    }
}

#[test]
fn workers_of_one_seed_do_not_wait_alike() {
    const DRAWS: usize = 100_000;
    for (backoff, ..) in jittered() {
        let one = draws(backoff, 0, DRAWS);
        assert_eq!(one[..1000], draws(backoff, 0, 1000));
        for stream in [1, 2, 1000] {
            // Pearson's coefficient of independent draws of this number stays within four sigma.
            let two = draws(backoff, stream, DRAWS);
            let mean = |values: &[f64]| values.iter().sum::<f64>() / DRAWS as f64;
            let (mean_one, mean_two) = (mean(&one), mean(&two));
            let covariance: f64 =
                one.iter().zip(&two).map(|(a, b)| (a - mean_one) * (b - mean_two)).sum::<f64>();
            let deviation = |values: &[f64], mean: f64| {
                values.iter().map(|value| (value - mean).powi(2)).sum::<f64>().sqrt()
            };
            let correlation = covariance / (deviation(&one, mean_one) * deviation(&two, mean_two));
            assert!(correlation.abs() < 4.0 / (DRAWS as f64).sqrt(), "{backoff:?}: {correlation}");
        }
    }
}

#[test]
fn the_decorrelated_series_grows_to_its_cap_and_not_at_once() {
    // Over many series: each wait is drawn from what the one before it was.
    let backoff = Backoff::decorrelated(secs(1.0)).with_max(secs(60.0));
    let mut rng = Rng::seeded(11);
    let mut sums = [0.0; 8];
    for _ in 0..100_000 {
        let mut previous = backoff.first_previous();
        for (number, sum) in (1..).zip(&mut sums) {
            previous = backoff.wait(number, previous, &mut rng);
            *sum += previous.as_secs_f64() / 100_000.0;
        }
    }
    // E(next) = (1 + 3 · E(previous)) / 2, as long as the cap has no say.
    assert!((sums[0] - 2.0).abs() < 0.02 && (sums[1] - 3.5).abs() < 0.05, "{sums:?}");
    assert!((sums[2] - 5.75).abs() < 0.1, "{sums:?}");
    assert!(sums.is_sorted() && sums[7] < 60.0, "{sums:?}");
}

fn any_backoff() -> impl Strategy<Value = Backoff> {
    let shapes = prop_oneof![
        Just(Shape::Exponential),
        Just(Shape::Urllib3),
        Just(Shape::FullJitter),
        Just(Shape::EqualJitter),
        Just(Shape::Decorrelated),
        Just(Shape::Constant),
    ];
    let time = prop_oneof![
        (0_u64..20_000).prop_map(Duration::from_millis),
        any::<u64>().prop_map(Duration::from_nanos),
        Just(Duration::MAX),
        Just(Duration::ZERO),
    ];
    (shapes, time.clone(), time.clone(), time).prop_map(|(shape, factor, cap, jitter)| {
        Backoff::new(shape, factor).with_max(cap).with_jitter(jitter)
    })
}

proptest! {
    #[test]
    fn waits_never_exceed_their_longest_which_grows_to_the_cap(
        backoff in any_backoff(),
        seed in any::<u64>(),
        jump in any::<u32>(),
    ) {
        let mut rng = Rng::seeded(seed);
        let mut previous = backoff.first_previous();
        let mut longest = Duration::ZERO;
        for number in 1..40 {
            previous = backoff.wait(number, previous, &mut rng);
            prop_assert!(previous <= backoff.longest(number));
            prop_assert!(longest <= backoff.longest(number));
            prop_assert!(backoff.longest(number) <= backoff.max());
            longest = backoff.longest(number);
        }
        prop_assert!(backoff.longest(jump.max(40)) >= longest);
        prop_assert!(backoff.wait(jump, previous, &mut rng) <= backoff.max());
    }

    #[test]
    fn the_plain_series_never_falls_and_ends_at_the_cap(
        factor in 1_u64..10_000_000_000,
        cap in 0_u64..1_000_000_000_000,
        first_is_none in any::<bool>(),
    ) {
        let (factor, cap) = (Duration::from_nanos(factor), Duration::from_nanos(cap));
        let shape = if first_is_none { Shape::Urllib3 } else { Shape::Exponential };
        let waits = series(Backoff::new(shape, factor).with_max(cap), 64);
        prop_assert!(waits.is_sorted());
        prop_assert_eq!(waits.last(), Some(&cap));
        for pair in waits.windows(2).skip(1) {
            prop_assert_eq!(pair[1], (pair[0] * 2).min(cap), "it doubles until then");
        }
    }
}
