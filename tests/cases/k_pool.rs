//! Section K: a pool of proxies under a run, what stops a run, and who has to wait.

use crate::roads::recipe;
use longhaul::batch::{Batch, BatchBuilder, Outcome, Record, RecordWriter, Source, Stopped};
use longhaul::error::{ErrorKind, WaitReason};
use longhaul::lab::{ClosedPort, HttpProxy, Origin, Received, Reply, Script};
use longhaul::policy::SlowLane;
use longhaul::workers::Stopper;
use longhaul::{ProxyPool, Retry, SessionBuilder, WorkerPool, secs};
use std::collections::{BTreeMap, BTreeSet};
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

fn batch(recipe: SessionBuilder, urls: Vec<String>) -> BatchBuilder {
    Batch::builder(recipe)
        .source(Source::urls(urls))
        .sink(RecordWriter::stream("nowhere", std::io::sink()))
        .workers(8)
}

/// Runs it; its records as they were written.
fn run(builder: BatchBuilder) -> (Outcome, Vec<Record>) {
    let records: Arc<Mutex<Vec<Record>>> = Arc::default();
    let kept = Arc::clone(&records);
    let told = move |record: &Record| kept.lock().unwrap().push(record.clone());
    let outcome = builder.on_record(told).build().unwrap().run().unwrap();
    let records = std::mem::take(&mut *records.lock().unwrap());
    (outcome, records)
}

fn pages(prefix: &str, count: usize) -> Vec<String> {
    (0..count).map(|number| format!("{prefix}/{number}")).collect()
}

fn list(proxies: &[HttpProxy]) -> ProxyPool {
    let lines: Vec<String> = proxies.iter().map(HttpProxy::url).collect();
    ProxyPool::parse(&lines.join("\n")).unwrap()
}

/// An origin on an address of its own, and so a host of its own.
fn origin_at(last: u8, handler: impl Fn(&Received) -> Reply + Send + Sync + 'static) -> Origin {
    let address = SocketAddr::from((Ipv4Addr::new(127, 0, 0, last), 0));
    Origin::builder().address(address).handler(handler).start().unwrap()
}

/// Three proxies that nobody listens at.
fn dead_pool() -> ([ClosedPort; 3], ProxyPool) {
    let ports = std::array::from_fn(|_| ClosedPort::new().unwrap());
    let lines: Vec<String> =
        ports.iter().map(|port: &ClosedPort| format!("http://{}", port.address())).collect();
    (ports, ProxyPool::parse(&lines.join("\n")).unwrap())
}

#[test]
fn c140_with_all_proxies_dead_every_item_fails_in_time_and_none_goes_direct() {
    let origin = Origin::builder().start().unwrap();
    let (_ports, pool) = dead_pool();
    let recipe = recipe().proxies(pool).retry(Retry::none()).deadline(secs(2.0));
    let workers = WorkerPool::builder(recipe.clone()).workers(8).build().unwrap();
    let mut kinds = BTreeMap::new();
    for done in workers.run(pages(&origin.url(""), 100)) {
        let error = done.result.unwrap_err();
        assert!(done.elapsed < secs(10.0), "a bounded wait: {error}");
        *kinds.entry(error.kind().name()).or_insert(0) += 1;
    }
    // The first ones find out that the proxies are dead, the others that none is left.
    let known: BTreeSet<&str> =
        [ErrorKind::ProxyUnreachable, ErrorKind::NoProxyAlive].map(ErrorKind::name).into();
    assert!(kinds.keys().all(|kind| known.contains(kind)), "{kinds:?}");
    assert!(kinds["no_proxy_alive"] >= 60, "{kinds:?}");
    assert_eq!(kinds.values().sum::<i32>(), 100);

    // A batch stops with the first of them, since the others would fail likewise.
    let (_ports, pool) = dead_pool();
    let (outcome, _) = run(batch(recipe.proxies(pool), pages(&origin.url(""), 100)));
    let Some(Stopped::Failure { kind, .. }) = outcome.stopped else { panic!("{outcome:?}") };
    assert_eq!((kind, outcome.exit_code(), outcome.summary.ok), (ErrorKind::NoProxyAlive, 3, 0));
    assert_eq!(origin.counts().accepted, 0, "nothing goes past the proxies");
}

#[test]
fn c140_a_stop_ends_the_wait_for_a_proxy() {
    let origin = Origin::builder().start().unwrap();
    let (_ports, pool) = dead_pool();
    let stopper: Arc<OnceLock<Stopper>> = Arc::default();
    let from_progress = Arc::clone(&stopper);
    let recipe = recipe().proxies(pool).retry(Retry::none());
    let built = batch(recipe, pages(&origin.url(""), 100))
        .on_progress(move |now| {
            if now.waiting_for(WaitReason::NoProxy) > 50 {
                from_progress.get().unwrap().close();
            }
        })
        .build()
        .unwrap();
    stopper.set(built.stopper()).unwrap();
    let outcome = built.run().unwrap();
    assert!(matches!(outcome.stopped, Some(Stopped::Interrupted)), "{outcome:?}");
    assert_eq!(outcome.exit_code(), 130);
    assert!(outcome.summary.unfinished > 50, "what waited has no record: {outcome:?}");
    assert_eq!(origin.counts().accepted, 0);
}

#[test]
fn c142_no_answer_of_a_target_makes_a_proxy_worse_and_no_url_drains_the_pool() {
    let origin = Origin::builder()
        .handler(|request: &Received| match request.path.trim_start_matches('/').parse() {
            Ok(0_usize) => Script::new().rst(),
            Ok(number) => match number % 4 {
                0 => Reply::new(404).into(),
                1 => Reply::new(500).into(),
                2 => Reply::new(302).into(),
                _ => Reply::new(403).into(),
            },
            Err(_) => Reply::new(400).into(),
        })
        .start()
        .unwrap();
    let proxies: [HttpProxy; 5] =
        std::array::from_fn(|_| HttpProxy::builder().elsewhere(origin.address()).start().unwrap());
    let dead = ClosedPort::new().unwrap();
    let lines: Vec<String> = proxies.iter().map(HttpProxy::url).collect();
    let lines = format!("{}\nhttp://{}", lines.join("\n"), dead.address());
    let pool = ProxyPool::parse(&lines).unwrap().always_connect(true);
    let recipe = recipe().proxies(pool).retry(Retry::long_run().backoff_factor(secs(0.001)));
    let lane = SlowLane::default().pause(secs(0.01)).spacing(secs(0.001));
    let urls = pages("http://origin.test", 100);
    let (outcome, records) = run(batch(recipe.clone(), urls).slow_lane(lane));
    assert!(outcome.stopped.is_none(), "{outcome:?}");
    assert_eq!(records.len(), 100);
    let stats = recipe.proxy_stats();
    let (good, bad) = stats.split_at(5);
    for proxy in good {
        assert_eq!((proxy.state, proxy.bad), ("good", 0), "{proxy:?}");
        assert!(proxy.good > 10, "{proxy:?}");
    }
    // What is no answer of the target, and what several URLs met, is the proxy's own.
    assert_eq!(bad[0].state, "dead", "{bad:?}");
    let reset = records.iter().find(|record| record.url.ends_with("/0")).unwrap();
    let tried: BTreeSet<_> = reset.attempts.iter().filter_map(|one| one.proxy.clone()).collect();
    assert!(tried.len() >= 3, "each retry of it went through another proxy: {tried:?}");
}

#[test]
fn c143_never_above_the_limit_none_starved_and_each_retry_elsewhere() {
    // Every seventh page fails once, and one of the proxies leads to an origin that is slow.
    let asked: Arc<Mutex<BTreeSet<String>>> = Arc::default();
    let origin = |pause| {
        let asked = Arc::clone(&asked);
        let handler = move |request: &Received| {
            let number: u32 = request.path.trim_start_matches('/').parse().unwrap();
            let is_first = asked.lock().unwrap().insert(request.path.clone());
            let status = if number.is_multiple_of(7) && is_first { 503 } else { 200 };
            Script::new().pause(pause).then_reply(Reply::new(status))
        };
        Origin::builder().handler(handler).start().unwrap()
    };
    let origins = [origin(secs(0.03)), origin(secs(0.002)), origin(secs(0.002))];
    let proxies = origins
        .each_ref()
        .map(|origin| HttpProxy::builder().elsewhere(origin.address()).start().unwrap());
    let pool = list(&proxies).parallel_per_proxy(Some(3));
    let recipe =
        recipe().proxies(pool).retry(Retry::long_run().total(1).backoff_factor(secs(0.001)));
    let most: Arc<AtomicU64> = Arc::default();
    let (seen, look) = (Arc::clone(&most), recipe.clone());
    let builder = batch(recipe, pages("http://origin.test", 210)).workers(9);
    let (outcome, records) = run(builder.on_progress(move |_| {
        let busiest = look.proxy_stats().iter().map(|proxy| proxy.in_flight).max();
        seen.fetch_max(busiest.unwrap_or(0) as u64, Ordering::Relaxed);
    }));
    assert_eq!((outcome.summary.ok, records.len()), (210, 210), "{outcome:?}");
    assert!(most.load(Ordering::Relaxed) <= 3, "{most:?}");
    // How many a slow proxy gets is a matter of the machine; that it is used to its limit, and again
    // when it is done, is not.
    for proxy in &proxies {
        let counts = proxy.counts();
        assert!(counts.most_open >= 3 && counts.requests > 3, "{counts:?}");
    }
    for record in records {
        let number: u32 = record.url.rsplit('/').next().unwrap().parse().unwrap();
        let by: Vec<_> = record.attempts.iter().map(|one| one.proxy.clone().unwrap()).collect();
        assert_eq!(record.proxy.as_ref(), by.last(), "the proxy in use is in the record");
        assert_eq!(by.len(), if number.is_multiple_of(7) { 2 } else { 1 }, "{record:?}");
        assert_eq!(by.iter().collect::<BTreeSet<_>>().len(), by.len(), "another one on a retry");
    }
}

#[test]
fn c155_a_407_of_one_proxy_retires_it_and_stops_nothing() {
    let origin = Origin::builder().handler(|_| Reply::ok("page")).start().unwrap();
    let proxies: [HttpProxy; 10] = std::array::from_fn(|number| {
        let proxy = HttpProxy::builder().elsewhere(origin.address());
        if number == 4 { proxy.credentials("user", "right") } else { proxy }.start().unwrap()
    });
    // Each has a credential of its own, and one of them is wrong.
    let lines: Vec<String> = (0..)
        .zip(&proxies)
        .map(|(number, proxy)| format!("http://user{number}:wrong@{}", proxy.address()))
        .collect();
    let recipe = recipe().proxies(ProxyPool::parse(&lines.join("\n")).unwrap());
    let (outcome, records) = run(batch(recipe.clone(), pages("http://origin.test", 200)));
    assert_eq!((outcome.exit_code(), records.len()), (0, 200), "{outcome:?}");
    let retired: Vec<bool> = recipe.proxy_stats().iter().map(|one| one.auth_refused).collect();
    assert_eq!(retired.iter().filter(|refused| **refused).count(), 1);
    assert!(retired[4]);
    assert!(
        (1..=8).contains(&proxies[4].proxy_counts().unauthorized),
        "one for each worker at most"
    );

    // The only one there is stops the run.
    let one = ProxyPool::parse(&lines[4]).unwrap();
    let (outcome, _) = run(batch(recipe.proxies(one), pages("http://origin.test", 200)));
    assert!(
        matches!(outcome.stopped, Some(Stopped::Failure { kind: ErrorKind::ProxyAuth, .. })),
        "{outcome:?}"
    );
    assert_eq!(outcome.exit_code(), 3);
}

#[test]
fn c155_a_hundred_refusals_of_one_host_pause_the_host_and_not_the_run() {
    let refuses = origin_at(2, |_| Reply::new(403).header("Server", "shield"));
    let answers = origin_at(3, |_| Reply::ok("page"));
    let urls = [pages(&refuses.url(""), 100), pages(&answers.url(""), 300)].concat();
    let lane = SlowLane::default().pause(secs(0.03)).spacing(secs(0.001));
    let (outcome, records) = run(batch(recipe(), urls).slow_lane(lane));
    assert!(outcome.stopped.is_none(), "{outcome:?}");
    assert_eq!((outcome.summary.ok, outcome.exit_code()), (300, 1));
    assert_eq!(outcome.summary.classes["refused"], 100);
    assert_eq!(outcome.summary.proxies["direct"].refused, refuses.counts().requests);
    // The other host was through before the refused ones had their turns.
    let last_ok = records.iter().rposition(|record| record.ok).unwrap();
    let before = records[..last_ok].iter().filter(|record| !record.ok).count();
    assert!(before < 50, "{before} refusals ended before the last of the other host");
    for record in records.iter().filter(|record| !record.ok) {
        let [first, last] = &record.attempts[..] else { panic!("{record:?}") };
        assert_eq!(first.wait_reason.as_deref(), Some("refused"));
        assert!(first.wait_ms.unwrap() >= 30.0);
        let told = first.refused.as_ref().unwrap();
        assert_eq!((told.server.as_deref(), &told.matched), (Some("shield"), &None));
        assert_eq!(last.note.as_deref(), Some("refused again in the slow lane"));
        assert_eq!(record.refused.as_ref(), Some(told));
    }
}

#[test]
fn c157_a_host_that_cools_down_holds_no_worker() {
    let cools = origin_at(4, |_| Reply::new(429).header("Retry-After", "60"));
    let answers = origin_at(5, |_| Reply::ok("page"));
    let urls = [pages(&cools.url(""), 1000), pages(&answers.url(""), 1000)].concat();
    let stopper: Arc<OnceLock<Stopper>> = Arc::default();
    let when_done = Arc::clone(&stopper);
    let mut ok = 0;
    let built = batch(recipe(), urls)
        .on_record(move |record| {
            assert!(record.ok, "{record:?}");
            ok += 1;
            if ok == 1000 {
                when_done.get().unwrap().close();
            }
        })
        .build()
        .unwrap();
    stopper.set(built.stopper()).unwrap();
    let outcome = built.run().unwrap();
    // All of the other host, in a fraction of the minute.
    assert_eq!((outcome.summary.ok, outcome.summary.unfinished), (1000, 1000));
    assert!(outcome.summary.elapsed_ms < 50_000.0, "{outcome:?}");
    let asked = cools.counts().requests;
    assert!((1..=8).contains(&asked), "{asked}: one for each worker at most");
}
