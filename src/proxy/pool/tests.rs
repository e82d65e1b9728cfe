use super::*;
use crate::error::ErrorKind;
use crate::proxy::Identity;
use crate::rng::Rng;
use crate::time::{Clock, SimClock, secs};
use proptest::prelude::*;
use std::time::Duration;

/// A pool under a clock that moves by hand.
struct Bench {
    pool: ProxyPool,
    clock: SimClock,
    rng: Rng,
    item: u64,
}

impl Bench {
    /// So many proxies without credentials.
    fn of(count: usize) -> Self {
        let proxies = (0..count).map(|at| format!("10.0.0.{at}:80").parse().unwrap());
        Self::with(ProxyPool::new(proxies))
    }

    fn with(pool: ProxyPool) -> Self {
        Self { pool, clock: SimClock::default(), rng: Rng::seeded(7), item: 0 }
    }

    fn configure(mut self, change: impl FnOnce(ProxyPool) -> ProxyPool) -> Self {
        self.pool = change(self.pool);
        self
    }

    fn ask(&mut self, host: &str, tried: &[usize]) -> Pick {
        let request = PickRequest { host, tried, retry: !tried.is_empty() };
        self.pool.pick(request, self.clock.now(), &mut self.rng)
    }

    /// The member that is picked, which must be one.
    fn take(&mut self, host: &str, tried: &[usize]) -> usize {
        match self.ask(host, tried) {
            Pick::Use(route) => route.member.unwrap(),
            other => panic!("no member: {other:?}"),
        }
    }

    fn tell_of(&mut self, member: usize, verdict: Verdict, host: &str, item: u64) {
        self.pool.report(member, verdict, host, item, self.clock.now(), &mut self.rng);
    }

    /// A verdict of an item of its own.
    fn tell(&mut self, member: usize, verdict: Verdict) {
        self.item += 1;
        self.tell_of(member, verdict, "a.test", self.item);
    }

    /// One attempt from beginning to end.
    fn round(&mut self, host: &str, tried: &[usize], verdict: Verdict) -> usize {
        let member = self.take(host, tried);
        self.tell(member, verdict);
        member
    }

    fn kill(&mut self, member: usize) {
        while self.state(member) != "dead" {
            self.tell(member, Verdict::Bad);
        }
    }

    fn state(&self, member: usize) -> &'static str {
        self.pool.stats()[member].state
    }

    fn not_before(&mut self, tried: &[usize]) -> f64 {
        match self.ask("a.test", tried) {
            Pick::NotBefore(time) => (time - self.clock.now()).as_secs_f64(),
            other => panic!("not a wait: {other:?}"),
        }
    }

    fn at_limit(&mut self, tried: &[usize]) -> f64 {
        match self.ask("a.test", tried) {
            Pick::AtLimit(time) => (time - self.clock.now()).as_secs_f64(),
            other => panic!("not at a limit: {other:?}"),
        }
    }
}

fn members(count: usize, rounds: usize, mut one: impl FnMut(usize) -> usize) -> Vec<usize> {
    let mut counts = vec![0; count];
    (0..rounds).for_each(|round| counts[one(round)] += 1);
    counts
}

#[test]
fn round_robin_is_fair() {
    let mut bench = Bench::of(3);
    let taken: Vec<_> = (0..7).map(|_| bench.round("a.test", &[], Verdict::Good)).collect();
    assert_eq!(taken, [0, 1, 2, 0, 1, 2, 0]);
}

#[test]
fn a_retry_takes_another_member_while_there_is_one() {
    for rotation in [Rotation::Request, Rotation::Retry, Rotation::Host, Rotation::Random] {
        let mut bench = Bench::of(4).configure(|pool| pool.rotation(rotation));
        for _ in 0..50 {
            let mut tried = Vec::new();
            for _ in 0..4 {
                let member = bench.round("a.test", &tried, Verdict::Good);
                assert!(!tried.contains(&member), "{rotation:?} {tried:?}");
                tried.push(member);
            }
            // All are tried: better a tried one than none.
            bench.round("a.test", &tried, Verdict::Good);
        }
    }
}

#[test]
fn a_retry_waits_for_a_busy_untried_member() {
    let mut bench = Bench::of(2).configure(|pool| pool.parallel_per_proxy(Some(1)));
    assert_eq!((bench.take("a.test", &[]), bench.take("a.test", &[])), (0, 1));
    bench.tell(0, Verdict::Good);
    let wait = bench.at_limit(&[0]);
    assert!((0.05..=0.1).contains(&wait), "{wait}");
    bench.tell(1, Verdict::Good);
    assert_eq!(bench.take("a.test", &[0]), 1);
}

#[test]
fn sticky_until_a_fault() {
    let mut bench = Bench::of(3).configure(|pool| pool.rotation(Rotation::Retry));
    for _ in 0..5 {
        assert_eq!(bench.round("a.test", &[], Verdict::Good), 0);
    }
    // A URL failed through 0: it and those after it go on through 1.
    assert_eq!(bench.round("a.test", &[0], Verdict::Good), 1);
    assert_eq!(bench.round("a.test", &[], Verdict::Good), 1);
    // Another one that was under way through 0 moves nothing further.
    assert_eq!(bench.round("a.test", &[0], Verdict::Good), 1);
    bench.kill(1);
    assert_eq!(bench.round("a.test", &[], Verdict::Good), 2);
    // And not back to 1 when that revives.
    bench.clock.advance(secs(3600.0));
    assert_eq!(bench.round("a.test", &[], Verdict::Good), 2);
}

#[test]
fn sticky_overflows_without_moving() {
    let mut bench =
        Bench::of(3).configure(|pool| pool.rotation(Rotation::Retry).parallel_per_proxy(Some(1)));
    assert_eq!((bench.take("a.test", &[]), bench.take("a.test", &[])), (0, 1));
    bench.tell(0, Verdict::Good);
    assert_eq!(bench.take("a.test", &[]), 0);
}

#[test]
fn one_member_per_host_until_a_fault() {
    let mut bench = Bench::of(3).configure(|pool| pool.rotation(Rotation::Host));
    for _ in 0..3 {
        for (host, member) in [("a", 0), ("b", 1), ("c", 2), ("d", 0)] {
            assert_eq!(bench.round(host, &[], Verdict::Good), member, "{host}");
        }
    }
    bench.kill(0);
    assert_eq!(
        (bench.round("a", &[], Verdict::Good), bench.round("b", &[], Verdict::Good)),
        (1, 1)
    );
    assert_eq!(bench.round("b", &[1], Verdict::Good), 2);
    assert_eq!(
        (bench.round("b", &[], Verdict::Good), bench.round("a", &[], Verdict::Good)),
        (2, 1)
    );
}

#[test]
fn random_reaches_everybody_alike() {
    let mut bench = Bench::of(5).configure(|pool| pool.rotation(Rotation::Random));
    bench.kill(1);
    let counts = members(5, 4000, |_| {
        // The dead stay dead: no time passes.
        bench.round("a.test", &[], Verdict::Good)
    });
    assert_eq!(counts[1], 0);
    for count in [counts[0], counts[2], counts[3], counts[4]] {
        assert!((900..=1100).contains(&count), "{counts:?}");
    }
}

#[test]
fn one_seed_is_one_run() {
    let run = || {
        let mut bench = Bench::of(5).configure(|pool| pool.rotation(Rotation::Random));
        (0..200u32)
            .map(|at| {
                bench.clock.advance(secs(1.0));
                let verdict = if at % 3 == 0 { Verdict::Bad } else { Verdict::Good };
                match bench.ask("a.test", &[]) {
                    Pick::Use(route) => {
                        let member = route.member.unwrap();
                        bench.tell(member, verdict);
                        member
                    }
                    _ => usize::MAX,
                }
            })
            .collect::<Vec<_>>()
    };
    assert_eq!(run(), run());
}

#[test]
fn all_dead_is_a_wait_that_grows_within_bounds_and_never_direct() {
    let mut bench = Bench::of(3);
    let start = bench.clock.now();
    let mut attempts = 0;
    let mut longest = 0.0f64;
    while bench.clock.now() - start < secs(4.0 * 3600.0) {
        match bench.ask("a.test", &[]) {
            Pick::Use(route) => {
                assert!(route.proxy.is_some());
                attempts += 1;
                bench.tell(route.member.unwrap(), Verdict::Bad);
            }
            Pick::NotBefore(time) => {
                assert!(time > bench.clock.now());
                longest = longest.max((time - bench.clock.now()).as_secs_f64());
                bench.clock.sleep_until(time);
            }
            Pick::AtLimit(_) | Pick::Never { .. } => panic!("the dead may come back"),
        }
    }
    // Two attempts each to die, six doublings, then one probe every ten minutes.
    assert!((60..=120).contains(&attempts), "{attempts}");
    assert!((300.0..=750.0).contains(&longest), "{longest}");
    assert_eq!(bench.pool.alive(), 0);
    assert_eq!(bench.pool.credentials_left(), 3);
}

#[test]
fn a_revived_member_is_asked_by_one_attempt_first() {
    let mut bench = Bench::of(1);
    bench.kill(0);
    let wait = bench.not_before(&[]);
    bench.clock.advance(secs(wait + 0.001));
    assert_eq!(bench.take("a.test", &[]), 0);
    let wait = bench.not_before(&[]);
    assert!((0.25..=0.5).contains(&wait), "{wait}");
    assert_eq!((bench.state(0), bench.pool.alive()), ("dead", 0));
    bench.tell(0, Verdict::Good);
    assert_eq!((bench.take("a.test", &[]), bench.take("a.test", &[])), (0, 0));
    assert_eq!((bench.state(0), bench.pool.alive()), ("good", 1));
}

#[test]
fn the_dead_are_asked_again_in_the_middle_of_a_run_but_not_by_retries() {
    let mut bench = Bench::of(3);
    bench.kill(0);
    bench.clock.advance(secs(13.0));
    assert_eq!(bench.round("a.test", &[2], Verdict::Good), 1);
    assert_eq!(bench.round("a.test", &[], Verdict::Good), 2);
    assert_eq!(bench.round("a.test", &[], Verdict::Good), 0);
    assert_eq!(bench.state(0), "good");
}

#[test]
fn failures_of_targets_kill_nobody() {
    let mut bench = Bench::of(5);
    // Every URL is answered by 404, 500, or a redirect without a body.
    for _ in 0..500 {
        bench.round("a.test", &[], Verdict::Good);
    }
    // One URL resets everywhere, with all its retries, and is fed again and again.
    for _ in 0..100 {
        let mut tried = Vec::new();
        for _ in 0..5 {
            let member = bench.take("a.test", &tried);
            bench.tell_of(member, Verdict::Bad, "a.test", 9999);
            tried.push(member);
        }
    }
    // Names that no exit can resolve.
    for _ in 0..100 {
        bench.round("gone.test", &[], Verdict::Doubtful);
    }
    assert_eq!(bench.pool.alive(), 5);
    assert!(bench.pool.stats().iter().all(|member| member.state == "good"));
}

#[test]
fn failures_of_a_proxy_take_it_out() {
    let mut bench = Bench::of(5);
    let counts = members(5, 1000, |_| {
        let member = bench.take("a.test", &[]);
        bench.tell(member, if member == 3 { Verdict::Bad } else { Verdict::Good });
        member
    });
    assert_eq!(counts[3], 2, "{counts:?}");
    assert_eq!((bench.state(3), bench.pool.alive()), ("dead", 4));
}

#[test]
fn those_below_the_floor_are_out_while_enough_are_left() {
    let mut bench = Bench::of(4);
    for member in [0, 1, 2] {
        (0..20).for_each(|_| bench.tell(member, Verdict::Doubtful));
    }
    // One of four is above the floor, and that is a tenth.
    let counts = members(4, 40, |_| bench.round("a.test", &[], Verdict::Unknown));
    assert_eq!(counts, [0, 0, 0, 40]);
    // But a retry rather leaves through one of them than again through the same.
    assert_ne!(bench.round("a.test", &[3], Verdict::Unknown), 3);
    bench.kill(3);
    let counts = members(4, 30, |_| bench.round("a.test", &[], Verdict::Unknown));
    assert_eq!(counts, [10, 10, 10, 0]);
}

#[test]
fn a_tenth_above_the_floor_is_enough() {
    let mut bench = Bench::of(30);
    for member in 3..30 {
        (0..20).for_each(|_| bench.tell(member, Verdict::Doubtful));
    }
    let counts = members(30, 30, |_| bench.round("a.test", &[], Verdict::Unknown));
    assert_eq!(counts[..3], [10, 10, 10]);
    bench.kill(0);
    // Two of thirty are too few to carry everything.
    let counts = members(30, 58, |_| bench.round("a.test", &[], Verdict::Unknown));
    assert_eq!((counts[0], &counts[1..]), (0, &[2; 29][..]));
}

#[test]
fn quiet_is_kept_and_counts_for_that_member_alone() {
    let mut bench = Bench::of(2);
    let first = bench.take("a.test", &[]);
    bench.tell(first, Verdict::Cool(Some(secs(60.0))));
    for _ in 0..59 {
        assert_eq!(bench.round("a.test", &[], Verdict::Good), 1);
        bench.clock.advance(secs(1.0));
    }
    assert_eq!((bench.state(0), bench.pool.alive()), ("cooling", 2));
    bench.tell(1, Verdict::Cool(Some(secs(600.0))));
    let wait = bench.not_before(&[]);
    assert!((1.0..=6.0).contains(&wait), "{wait}");
}

#[test]
fn a_refused_credential_retires_its_members_and_no_others() {
    let list: String = (0..10).fold(String::new(), |list, at| format!("{list}h{at}:80:u{at}:p\n"));
    let mut bench = Bench::with(ProxyPool::parse(&list).unwrap());
    assert_eq!(bench.pool.credentials_left(), 10);
    let first = bench.take("a.test", &[]);
    bench.tell(first, Verdict::Auth);
    assert_eq!((bench.pool.credentials_left(), bench.pool.alive()), (9, 9));
    let counts = members(10, 90, |_| bench.round("a.test", &[], Verdict::Good));
    assert_eq!(counts, [0, 10, 10, 10, 10, 10, 10, 10, 10, 10]);
    // For good: no time brings it back, nor does a late success.
    bench.clock.advance(secs(1e6));
    bench.tell(first, Verdict::Good);
    assert!((0..20).all(|_| bench.round("a.test", &[], Verdict::Good) != first));
    assert!(bench.pool.stats()[first].auth_refused);
}

#[test]
fn a_shared_credential_is_one() {
    let list = "a:1:user:pw\nb:1:user:pw\nc:1:other:pw\nd:1\ne:1";
    let mut bench = Bench::with(ProxyPool::parse(list).unwrap());
    assert_eq!(bench.pool.credentials_left(), 4);
    let member = bench.take("a.test", &[]);
    bench.tell(member, Verdict::Auth);
    assert_eq!(bench.pool.credentials_left(), 3);
    let counts = members(5, 9, |_| bench.round("a.test", &[], Verdict::Good));
    assert_eq!(counts, [0, 0, 3, 3, 3]);
}

#[test]
fn the_only_credential_refused_is_the_end() {
    let list = "a:1:user:pw\nb:1:user:pw";
    let mut bench = Bench::with(ProxyPool::parse(list).unwrap());
    let member = bench.take("a.test", &[]);
    bench.tell(member, Verdict::Auth);
    assert!(matches!(bench.ask("a.test", &[]), Pick::Never { auth: true }));
    assert_eq!((bench.pool.credentials_left(), bench.pool.alive()), (0, 0));
    let mut empty = Bench::of(0);
    assert!(empty.pool.is_empty());
    assert!(matches!(empty.ask("a.test", &[]), Pick::Never { auth: false }));
}

#[test]
fn leases_are_never_exceeded_and_nobody_starves() {
    // Nine workers, three proxies, three leases each; the second proxy is slow.
    let mut bench = Bench::of(3).configure(|pool| pool.parallel_per_proxy(Some(3)));
    let mut flying: Vec<(Instant, usize)> = Vec::new();
    let end = bench.clock.now() + secs(600.0);
    while bench.clock.now() < end {
        let now = bench.clock.now();
        let (done, rest): (Vec<_>, Vec<_>) = flying.into_iter().partition(|(at, _)| *at <= now);
        flying = rest;
        done.into_iter().for_each(|(_, member)| bench.tell(member, Verdict::Good));
        while flying.len() < 9 {
            match bench.ask("a.test", &[]) {
                Pick::Use(route) => {
                    let member = route.member.unwrap();
                    let length = secs(if member == 1 { 5.0 } else { 0.5 });
                    flying.push((now + length, member));
                }
                Pick::AtLimit(time) => {
                    assert!(time > now);
                    break;
                }
                Pick::NotBefore(_) | Pick::Never { .. } => panic!("three healthy members"),
            }
        }
        assert!(bench.pool.stats().iter().all(|member| member.in_flight <= 3));
        bench.clock.advance(secs(0.1));
    }
    let picks: Vec<u64> = bench.pool.stats().iter().map(|member| member.picks).collect();
    assert!(picks[1] >= 300, "{picks:?}");
    assert!(picks[0] >= 3000 && picks[2] >= 3000, "{picks:?}");
}

#[test]
fn leases_of_a_credential_span_its_members() {
    let pool = ProxyPool::parse("a:1:u:p\nb:1:u:p\nc:1:v:p").unwrap();
    let mut bench = Bench::with(pool.parallel_per_credential(Some(1)));
    assert_eq!((bench.take("a.test", &[]), bench.take("a.test", &[])), (0, 2));
    let wait = bench.at_limit(&[]);
    assert!((0.05..=0.1).contains(&wait), "{wait}");
    bench.tell(0, Verdict::Good);
    assert_eq!(bench.take("a.test", &[]), 0);
}

#[test]
fn routes_carry_the_settings() {
    let pool = ProxyPool::parse("socks5h://u:secret@h:1\n10.0.0.1:80").unwrap();
    let mut bench = Bench::with(pool);
    let Pick::Use(route) = bench.ask("a.test", &[]) else { panic!() };
    assert_eq!(route.shown.as_deref(), Some("socks5h://***@h:1"));
    assert_eq!(route.identity, Identity::of(route.proxy.as_ref().unwrap()));
    assert_eq!((route.fresh, route.keep_alive, route.always_connect), (false, true, false));
    let Pick::Use(route) = bench.ask("a.test", &[0]) else { panic!() };
    assert!(route.fresh);

    let mut bench = bench.configure(|pool| {
        let pool = pool.keep_alive(false).always_connect(true).fresh_exit(false);
        pool.proxy_header("X-Country", "de").unwrap().proxy_header("X-Key", "secret").unwrap()
    });
    let Pick::Use(route) = bench.ask("a.test", &[0]) else { panic!() };
    assert_eq!((route.fresh, route.keep_alive, route.always_connect), (false, false, true));
    let headers: Vec<_> = route.proxy_headers.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(headers, ["X-Country", "X-Key"]);
    let shown = format!("{:?} {route:?}", bench.pool);
    assert!(!shown.contains("secret"), "{shown}");
}

#[test]
fn fields_that_would_end_the_line_are_refused() {
    let pool = ProxyPool::parse("h:1").unwrap();
    for (name, value) in [("", "x"), ("a b", "x"), ("a:", "x"), ("a", "x\r\nB: y"), ("a", "\0")] {
        let error = pool.clone().proxy_header(name, value).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidHeader, "{name:?} {value:?}");
    }
}

#[test]
fn duplicates_count_once() {
    let pool = ProxyPool::parse("h:1\nhttp://H:1/\nu:p@h:1\nh:1:u:p\nu:q@h:1").unwrap();
    assert_eq!(pool.len(), 3);
}

#[test]
fn reports_of_strangers_are_passed_over() {
    let mut bench = Bench::of(1);
    bench.tell(5, Verdict::Auth);
    bench.tell(0, Verdict::Good);
    assert_eq!(bench.pool.stats()[0].in_flight, 0);
}

#[derive(Debug, Clone)]
enum Act {
    Pick { tried: Vec<usize>, host: u8 },
    Report { which: usize, verdict: Verdict, item: u64 },
    Wait(f64),
}

fn act() -> impl Strategy<Value = Act> {
    let verdicts = [
        Verdict::Good,
        Verdict::Bad,
        Verdict::Doubtful,
        Verdict::Cool(None),
        Verdict::Cool(Some(secs(30.0))),
        Verdict::Auth,
        Verdict::Unknown,
    ];
    prop_oneof![
        4 => (prop::collection::vec(0..6usize, 0..4), any::<u8>())
            .prop_map(|(tried, host)| Act::Pick { tried, host }),
        4 => (any::<usize>(), prop::sample::select(verdicts.to_vec()), 0..20u64)
            .prop_map(|(which, verdict, item)| Act::Report { which, verdict, item }),
        1 => (0.0..60.0f64).prop_map(Act::Wait),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn whatever_happens_the_rules_hold(
        acts in prop::collection::vec(act(), 0..150),
        rotation in prop::sample::select(
            &[Rotation::Request, Rotation::Retry, Rotation::Host, Rotation::Random][..]
        ),
    ) {
        let list = "a:1:u:p\nb:1:u:p\nc:1:v:p\nd:1\ne:1\nf:1:w:p";
        let pool = ProxyPool::parse(list).unwrap();
        let mut bench = Bench::with(pool.rotation(rotation).parallel_per_proxy(Some(2)));
        let mut flying = Vec::new();
        for act in acts {
            match act {
                Act::Wait(seconds) => bench.clock.advance(secs(seconds)),
                Act::Report { which, verdict, item } if !flying.is_empty() => {
                    let member = flying.swap_remove(which % flying.len());
                    bench.tell_of(member, verdict, "a.test", item);
                }
                Act::Report { .. } => {}
                Act::Pick { tried, host } => {
                    let now = bench.clock.now();
                    let untried_healthy = bench.pool.members.iter().enumerate().any(|(at, member)| {
                        !tried.contains(&at)
                            && !bench.pool.is_refused(member)
                            && member.health.standing(now) == Standing::Healthy
                    });
                    let accepted = bench.pool.credentials_left();
                    match bench.ask(&host.to_string(), &tried) {
                        Pick::Use(route) => {
                            let member = route.member.unwrap();
                            let stats = &bench.pool.stats()[member];
                            prop_assert!(route.proxy.is_some());
                            prop_assert!(!stats.auth_refused && stats.in_flight <= 2);
                            prop_assert!(!untried_healthy || !tried.contains(&member));
                            flying.push(member);
                        }
                        Pick::NotBefore(time) | Pick::AtLimit(time) => prop_assert!(time > now),
                        Pick::Never { auth } => prop_assert!(auth && accepted == 0),
                    }
                }
            }
            let in_flight: usize = bench.pool.stats().iter().map(|member| member.in_flight).sum();
            prop_assert_eq!(in_flight, flying.len());
        }
    }
}

/// No stretch of time sees more picks of a member or of a credential than its rate gives.
#[test]
fn rates_hold_per_proxy_and_per_credential_over_many_seeds() {
    let list = "a:1:anna:pw\nb:1:anna:pw\nc:1:otto:pw\nd:1\n";
    for seed in 0..200 {
        let mut rng = Rng::seeded(seed);
        let (per_proxy, per_credential) = (rng.uniform(0.5, 8.0), rng.uniform(0.5, 8.0));
        let mut pool = ProxyPool::parse(list)
            .and_then(|pool| pool.rate_per_proxy(Some(per_proxy)))
            .and_then(|pool| pool.rate_per_credential(Some(per_credential)))
            .unwrap();
        let begin = SimClock::default().now();
        let mut now = begin;
        let mut picked: Vec<(Instant, usize)> = Vec::new();
        for item in 0..200 {
            let request = PickRequest { host: "h", tried: &[], retry: false };
            match pool.pick(request, now, &mut rng) {
                Pick::Use(route) => {
                    let member = route.member.unwrap();
                    picked.push((now, member));
                    pool.report(member, Verdict::Good, "h", item, now, &mut rng);
                }
                // Never asked to come back before there is a slot.
                Pick::AtLimit(until) => {
                    assert!(until > now, "seed {seed}");
                    now = until;
                }
                Pick::NotBefore(_) | Pick::Never { .. } => panic!("seed {seed}"),
            }
            now += Duration::from_millis(rng.below(300) as u64);
        }
        assert!(picked.len() > 100, "seed {seed}: {}", picked.len());
        for (members, rate) in [
            (&[0][..], per_proxy),
            (&[1], per_proxy),
            (&[2], per_proxy),
            (&[3], per_proxy),
            (&[0, 1], per_credential),
            (&[2], per_credential),
        ] {
            let times: Vec<Instant> = picked
                .iter()
                .filter(|(_, member)| members.contains(member))
                .map(|(at, _)| *at)
                .collect();
            for pair in times.windows(2) {
                let gap = (pair[1] - pair[0]).as_secs_f64();
                assert!(gap >= rate.recip() - 1e-6, "seed {seed}: {gap} at {rate}");
            }
        }
    }
}

#[test]
fn a_further_attempt_on_the_same_way_waits_for_its_slot() {
    let mut rng = Rng::seeded(1);
    let now = SimClock::default().now();
    let mut pool = ProxyPool::parse("a:1").and_then(|pool| pool.rate_per_proxy(Some(2.0))).unwrap();
    let request = PickRequest { host: "h", tried: &[], retry: false };
    let half = now + Duration::from_millis(500);
    assert!(matches!(pool.pick(request, now, &mut rng), Pick::Use(_)));
    assert_eq!(pool.charge(0, now), Err(half));
    assert_eq!(pool.charge(0, half), Ok(()));
    pool.report(0, Verdict::Good, "h", 0, half, &mut rng);
    let Pick::AtLimit(until) = pool.pick(request, half, &mut rng) else { panic!("a slot") };
    assert_eq!(until - now, Duration::from_secs(1));
    for wrong in [0.0, -1.0, f64::NAN] {
        let error = ProxyPool::parse("a:1").unwrap().rate_per_proxy(Some(wrong)).unwrap_err();
        assert!(error.message().contains("rate_per_proxy is"), "{error}");
    }
}

#[test]
fn an_interrupted_visit_goes_on_where_it_was_while_that_is_what_it_was() {
    let mut bench = Bench::of(2).configure(|pool| pool.parallel_per_proxy(Some(1)));
    let now = bench.clock.now();
    let mut rng = Rng::seeded(1);
    assert_eq!(bench.pool.rejoin(0, now, &mut rng), Some(Ok(())));
    // Its place is taken by itself now.
    assert!(matches!(bench.pool.rejoin(0, now, &mut rng), Some(Err(until)) if until > now));
    bench.tell(0, Verdict::Good);
    bench.kill(0);
    assert_eq!(bench.pool.rejoin(0, now, &mut rng), None);
    bench.tell(1, Verdict::Auth);
    assert_eq!(bench.pool.rejoin(1, now, &mut rng), None);
    assert_eq!(bench.pool.rejoin(2, now, &mut rng), None);
}

#[test]
fn what_is_asked_for_by_name_counts_for_its_member() {
    let mut rng = Rng::seeded(1);
    let now = SimClock::default().now();
    let mut pool = ProxyPool::parse("a:1\nb:1")
        .and_then(|pool| pool.rate_per_proxy(Some(1.0)))
        .unwrap()
        .parallel_per_proxy(Some(1));
    let (first, stranger) = ("a:1".parse().unwrap(), "c:1".parse().unwrap());
    assert_eq!(pool.borrow(&stranger, now, &mut rng), None);
    assert_eq!(pool.borrow(&first, now, &mut rng), Some(Ok(0)));
    assert!(matches!(pool.borrow(&first, now, &mut rng), Some(Err(until)) if until > now));
    pool.report(0, Verdict::Unknown, "h", 0, now, &mut rng);
    let later = now + Duration::from_secs(1);
    assert_eq!(pool.borrow(&first, now, &mut rng), Some(Err(later)));
    let request = PickRequest { host: "h", tried: &[], retry: false };
    let Pick::Use(route) = pool.pick(request, now, &mut rng) else { panic!("the other") };
    assert_eq!(route.member, Some(1));
}

#[test]
fn a_wait_for_the_revival_of_one_is_no_limit_of_another_unless_that_is_sooner() {
    let mut bench = Bench::of(2).configure(|pool| pool.parallel_per_proxy(Some(1)));
    bench.kill(0);
    assert_eq!(bench.take("a.test", &[]), 1);
    assert!(bench.at_limit(&[]) <= 0.1);
    bench.tell(1, Verdict::Good);
    bench.kill(1);
    assert!(bench.not_before(&[]) > 0.1);
}
