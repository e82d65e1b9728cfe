use super::*;
use crate::rng::Rng;
use crate::time::{Clock, SimClock};
use proptest::prelude::*;

struct Bench {
    health: Health,
    clock: SimClock,
    rng: Rng,
    item: u64,
}

impl Bench {
    fn new() -> Self {
        Self { health: Health::new(), clock: SimClock::default(), rng: Rng::seeded(1), item: 0 }
    }

    /// A verdict of an item of its own.
    fn tell(&mut self, verdict: Verdict) -> &mut Self {
        self.item += 1;
        self.tell_of(verdict, self.item)
    }

    fn tell_of(&mut self, verdict: Verdict, item: u64) -> &mut Self {
        let now = self.clock.now();
        self.health.record(verdict, Evidence { host: 1, item }, now, &mut self.rng);
        self
    }

    fn tell_often(&mut self, verdict: Verdict, times: usize) -> &mut Self {
        for _ in 0..times {
            self.tell(verdict);
        }
        self
    }

    fn wait(&mut self, seconds: f64) -> &mut Self {
        self.clock.advance(Duration::from_secs_f64(seconds));
        self
    }

    fn standing(&self) -> Standing {
        self.health.standing(self.clock.now())
    }

    /// How long it is down from now.
    fn down_for(&self) -> f64 {
        match self.standing() {
            Standing::Down(until) => (until - self.clock.now()).as_secs_f64(),
            other => panic!("{other:?} is not down"),
        }
    }

    /// Waits for the revival and begins the probe.
    fn probe(&mut self) -> &mut Self {
        let wait = self.down_for();
        // Rounding of the wait must not leave a nanosecond.
        self.wait(wait + 0.001);
        assert_eq!(self.standing(), Standing::Due);
        self.health.begin_probe(self.clock.now());
        assert_eq!(self.standing(), Standing::Probing);
        self
    }
}

#[test]
fn a_fresh_proxy_is_unchecked_and_a_good_one_good() {
    let mut bench = Bench::new();
    assert_eq!((bench.health.name(), bench.standing()), ("unchecked", Standing::Healthy));
    assert_eq!(bench.health.rate(bench.clock.now()), 1.0);
    bench.tell(Verdict::Unknown);
    assert_eq!(bench.health.name(), "unchecked");
    bench.tell(Verdict::Good);
    assert_eq!((bench.health.name(), bench.standing()), ("good", Standing::Healthy));
}

#[test]
fn two_items_kill_a_fresh_proxy_and_one_does_not() {
    let mut bench = Bench::new();
    for _ in 0..100 {
        bench.tell_of(Verdict::Bad, 7);
    }
    assert_eq!((bench.health.name(), bench.standing()), ("unchecked", Standing::Healthy));
    assert_eq!(bench.health.rate(bench.clock.now()), 0.5);
    bench.tell_of(Verdict::Bad, 8);
    assert_eq!(bench.health.name(), "dead");
    assert!((7.5..=12.5).contains(&bench.down_for()), "{}", bench.down_for());
}

#[test]
fn two_hosts_kill_where_items_have_no_numbers() {
    let mut bench = Bench::new();
    let now = bench.clock.now();
    for host in [1, 2] {
        bench.health.record(Verdict::Bad, Evidence { host, item: 0 }, now, &mut bench.rng);
    }
    assert_eq!(bench.health.name(), "dead");
}

#[test]
fn a_proven_proxy_takes_more_to_fall() {
    let mut bench = Bench::new();
    bench.tell_often(Verdict::Good, 100).tell_often(Verdict::Bad, 10);
    assert_eq!((bench.health.name(), bench.standing()), ("good", Standing::Healthy));
    bench.tell_often(Verdict::Bad, 10);
    assert_eq!(bench.health.name(), "dead");
}

#[test]
fn a_proxy_that_fails_more_often_than_not_is_benched_and_comes_back() {
    let mut bench = Bench::new();
    // Doubts never kill.
    bench.tell_often(Verdict::Doubtful, 50);
    assert_eq!((bench.health.name(), bench.standing()), ("unchecked", Standing::Benched));
    assert!(bench.health.rate(bench.clock.now()) < FLOOR);
    // 50 doubts weigh 4.6, which fades to 1 in log2(4.6) half-lives.
    bench.wait(655.0);
    assert_eq!(bench.standing(), Standing::Benched);
    bench.wait(10.0);
    assert_eq!(bench.standing(), Standing::Healthy);
    assert!(bench.health.rate(bench.clock.now()) >= FLOOR);
}

#[test]
fn one_doubtful_item_is_one_doubt() {
    let mut bench = Bench::new();
    for _ in 0..100 {
        bench.tell_of(Verdict::Doubtful, 7);
    }
    assert_eq!(bench.health.rate(bench.clock.now()), 1.0 / 1.25);
}

#[test]
fn cool_downs_double_up_to_a_ceiling_and_a_success_ends_them() {
    let mut bench = Bench::new();
    bench.tell_often(Verdict::Bad, 2);
    let mut nominal = 10.0;
    for _ in 0..10 {
        let range = nominal * 0.75..=nominal * 1.25;
        assert!(range.contains(&bench.down_for()), "{nominal} {}", bench.down_for());
        // Those that were still under way do not lengthen it.
        let before = bench.standing();
        bench.tell(Verdict::Bad);
        assert_eq!(bench.standing(), before);
        bench.probe().tell(Verdict::Bad);
        nominal = f64::min(nominal * 2.0, 600.0);
    }
    bench.probe().tell(Verdict::Good);
    assert_eq!((bench.health.name(), bench.standing()), ("good", Standing::Healthy));
    // Falling again at once, it stays down for as long as before.
    bench.tell_often(Verdict::Bad, 3);
    assert!(bench.down_for() >= 450.0, "{}", bench.down_for());
    // Steady for a while, it starts anew.
    bench.probe().tell_often(Verdict::Good, 5).tell_often(Verdict::Bad, 10);
    assert!(bench.down_for() <= 12.5, "{}", bench.down_for());
}

#[test]
fn a_probe_that_says_nothing_leaves_the_way_for_the_next() {
    let mut bench = Bench::new();
    bench.tell_often(Verdict::Bad, 2).probe().tell(Verdict::Unknown);
    assert_eq!(bench.standing(), Standing::Due);
    bench.health.begin_probe(bench.clock.now());
    bench.wait(299.0);
    assert_eq!(bench.standing(), Standing::Probing);
    bench.wait(1.0);
    assert_eq!(bench.standing(), Standing::Due);
}

#[test]
fn a_probe_that_is_answered_by_502_shows_that_the_proxy_is_there() {
    let mut bench = Bench::new();
    bench.tell_often(Verdict::Bad, 2).probe().tell(Verdict::Doubtful);
    assert_eq!((bench.health.name(), bench.standing()), ("unchecked", Standing::Healthy));
}

#[test]
fn a_success_under_way_revives_the_dead() {
    let mut bench = Bench::new();
    bench.tell_often(Verdict::Bad, 2).tell(Verdict::Good);
    assert_eq!((bench.health.name(), bench.standing()), ("good", Standing::Healthy));
}

#[test]
fn quiet_is_kept_for_as_long_as_was_asked() {
    let mut bench = Bench::new();
    bench.tell(Verdict::Good).tell(Verdict::Cool(Some(Duration::from_secs(120))));
    assert_eq!(bench.health.name(), "cooling");
    assert!((120.0..=125.0).contains(&bench.down_for()), "{}", bench.down_for());
    // Neither an earlier success nor a shorter wish ends it.
    bench.tell(Verdict::Good).tell(Verdict::Cool(Some(Duration::from_secs(1))));
    assert!(bench.down_for() >= 120.0);
    bench.probe().tell(Verdict::Good);
    assert_eq!((bench.health.name(), bench.standing()), ("good", Standing::Healthy));
    assert_eq!(bench.health.rate(bench.clock.now()), 1.0);
}

#[test]
fn quiet_without_a_time_doubles() {
    let mut bench = Bench::new();
    let mut nominal = 5.0;
    for _ in 0..8 {
        bench.tell(Verdict::Cool(None));
        assert!((nominal..=nominal + 5.0).contains(&bench.down_for()), "{}", bench.down_for());
        bench.probe();
        nominal = f64::min(nominal * 2.0, 300.0);
    }
    bench.tell(Verdict::Good).tell(Verdict::Cool(None));
    assert!(bench.down_for() <= 5.5);
}

#[test]
fn endless_waits_do_not_overflow() {
    let mut bench = Bench::new();
    bench.tell(Verdict::Cool(Some(Duration::MAX)));
    assert!(bench.down_for() >= 86_400.0);
}

#[test]
fn one_failure_after_quiet_is_one_failure() {
    let mut bench = Bench::new();
    bench.tell(Verdict::Good).tell(Verdict::Cool(None)).probe().tell(Verdict::Bad);
    assert_eq!((bench.health.name(), bench.standing()), ("good", Standing::Healthy));
}

fn any_of(verdicts: &'static [Verdict]) -> impl Strategy<Value = Verdict> {
    prop::sample::select(verdicts)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn one_item_never_kills(
        told in prop::collection::vec((any::<bool>(), any_of(&[Verdict::Bad, Verdict::Unknown])), 0..99),
    ) {
        let mut bench = Bench::new();
        for (other, verdict) in told {
            if other {
                bench.tell(Verdict::Doubtful);
            }
            bench.tell_of(verdict, 7).wait(1.0);
            prop_assert!(!bench.health.is_dead());
            prop_assert!(bench.health.rate(bench.clock.now()) <= 1.0);
        }
    }

    #[test]
    fn without_bad_verdicts_nothing_dies(
        told in prop::collection::vec(
            (
                any_of(&[Verdict::Good, Verdict::Doubtful, Verdict::Unknown, Verdict::Cool(None)]),
                0..9u64,
            ),
            0..200,
        ),
    ) {
        let mut bench = Bench::new();
        for (verdict, item) in told {
            bench.tell_of(verdict, item);
            prop_assert!(!bench.health.is_dead());
        }
    }

    #[test]
    fn the_bench_ends_where_the_rate_reaches_the_floor(
        verdicts in prop::collection::vec(
            any_of(&[Verdict::Good, Verdict::Doubtful, Verdict::Bad]),
            1..60,
        ),
        later in 0.0..2000.0f64,
    ) {
        let mut bench = Bench::new();
        for verdict in verdicts {
            bench.tell(verdict).wait(0.1);
        }
        bench.wait(later);
        let rate = bench.health.rate(bench.clock.now());
        if !bench.health.is_dead() && (rate - FLOOR).abs() > 1e-6 {
            prop_assert_eq!(bench.standing() == Standing::Benched, rate < FLOOR);
        }
    }
}

#[test]
fn the_page_on_proxies_names_these_constants() {
    let page = include_str!("../../../docs/proxies.md");
    let seconds = |duration: Duration| format!("{} s", duration.as_secs());
    let range = |(first, last)| format!("{} to {}", seconds(first), seconds(last));
    for (constant, value) in [
        ("success rate below", FLOOR.to_string()),
        ("evidence that is left", format!("{KEEP}, so about the last {:.0}", 1.0 / (1.0 - KEEP))),
        ("time after which half", seconds(HALF_LIFE)),
        ("weight of a 502 or 504", DOUBT.to_string()),
        ("pause of a dead proxy", range(DEATH)),
        ("pause after 429 or 503", range(QUIET)),
        ("time after which a revival", seconds(PROBE_PATIENCE)),
    ] {
        let line = page.lines().find(|line| line.starts_with('|') && line.contains(constant));
        let line = line.unwrap_or_else(|| panic!("{constant} is missing"));
        assert!(line.contains(&format!("| {value}")), "{line} lacks {value}");
    }
}
