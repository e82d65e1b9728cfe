//! Section B: names, and the addresses that they stand for.

use crate::roads::{Always, NAME, assert_is, recipe};
use longhaul::error::{Fault, Phase};
use longhaul::lab::{Origin, Reply, SilentPort};
use longhaul::policy::Timeouts;
use longhaul::time::{Clock, SimClock, SystemClock};
use longhaul::transport::{Resolve, ResolveError, SystemResolver};
use longhaul::{ErrorKind, ProxyPool, Retry, secs};
use std::collections::HashSet;
use std::net::{IpAddr, SocketAddr, TcpListener};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

/// Addresses for every name.
fn leading_to(addresses: &[&str]) -> Arc<Always> {
    Arc::new(Always(Ok(addresses.iter().map(|address| address.parse().unwrap()).collect())))
}

#[test]
fn c28_a_black_hole_costs_a_stagger_and_an_unreachable_address_nothing() {
    let hole = SilentPort::new().unwrap();
    let port = hole.address().port();
    let other = SocketAddr::from(([127, 0, 0, 2], port));
    let origin = Origin::builder().address(other).handler(|_| Reply::ok("there")).start().unwrap();
    for addresses in [
        &["127.0.0.1", "127.0.0.2"][..],
        // Documentation addresses: without a route refused at once, with one a black hole.
        &["2001:db8::1", "127.0.0.2"],
        &["2001:db8::1", "2001:db8::2", "127.0.0.1", "127.0.0.2"],
    ] {
        let session = recipe()
            .resolver(leading_to(addresses))
            .timeout((secs(30.0), secs(20.0)))
            .build()
            .unwrap();
        let begun = SystemClock.now();
        let response = session.get(format!("http://{NAME}:{port}/")).send().unwrap();
        assert_eq!(response.connection().peer, Some(other));
        // A budget of 30 s in equal parts would take seven or more.
        assert!(SystemClock.now() - begun < secs(5.0), "{addresses:?}");
    }
    assert_eq!(origin.counts().requests, 3);
    // Nothing but the hole is a connect timeout.
    let session = recipe()
        .resolver(leading_to(&["127.0.0.1"]))
        .timeout((secs(0.3), secs(20.0)))
        .build()
        .unwrap();
    let error = session.get(format!("http://{NAME}:{port}/")).send().unwrap_err();
    assert_is(&error, ErrorKind::ConnectTimeout, Phase::Connect, Fault::Target);
}

#[test]
fn c28_the_family_that_worked_is_remembered_for_the_host_by_all_sessions() {
    let origin = Origin::builder().start().unwrap();
    let port = origin.address().port();
    let recipe = recipe().resolver(leading_to(&["::1", "127.0.0.1"]));
    let family = |host: &str| {
        let session = recipe.build().unwrap();
        let response = session.get(format!("http://{host}:{port}/")).send().unwrap();
        if response.connection().peer.unwrap().is_ipv4() { 4 } else { 6 }
    };
    assert_eq!(family("one.test"), 4, "nobody listens on ::1");
    let at_home = SocketAddr::from((std::net::Ipv6Addr::LOCALHOST, port));
    let Ok(_six) = Origin::builder().address(at_home).start() else {
        eprintln!("no IPv6 on this machine");
        return;
    };
    assert_eq!(family("one.test"), 4, "as before");
    assert_eq!(family("two.test"), 6, "of another host nothing is known");
}

#[test]
fn c28_all_addresses_of_a_dead_host_are_tried_within_one_budget() {
    let closed = longhaul::lab::ClosedPort::new().unwrap();
    let port = closed.address().port();
    let session = recipe()
        .resolver(leading_to(&["127.0.0.1", "127.0.0.2", "127.0.0.3", "127.0.0.4"]))
        .build()
        .unwrap();
    let error = session.get(format!("http://{NAME}:{port}/")).send().unwrap_err();
    assert_is(&error, ErrorKind::Connection, Phase::Connect, Fault::Target);
    assert!(error.is_unsent() && error.to_string().contains("refused"), "{error}");
}

#[test]
fn c29_lookups_that_hang_end_with_the_budget_and_cost_few_threads() {
    let (release, released) = mpsc::channel::<()>();
    let released = Mutex::new(released);
    let threads = Arc::new(Mutex::new(HashSet::new()));
    let lookups = Arc::new(AtomicUsize::new(0));
    let (seen, count) = (threads.clone(), lookups.clone());
    let resolver = Arc::new(SystemResolver::around(move |_| {
        seen.lock().unwrap().insert(std::thread::current().id());
        count.fetch_add(1, Ordering::SeqCst);
        // Until the sender is dropped.
        let _ = released.lock().unwrap().recv();
        Err(ResolveError::Temporary("hung".to_owned()))
    }));
    let recipe = recipe()
        .resolver(resolver)
        .timeout((secs(0.05), secs(20.0)))
        .retry(Retry::from_total(3).backoff_factor(Duration::ZERO));
    std::thread::scope(|scope| {
        for worker in 0..24 {
            let session = recipe.build().unwrap();
            scope.spawn(move || {
                // Some names are the same for all workers, some are not.
                for host in ["same.test".to_owned(), format!("{worker}.test")] {
                    let error = session.get(format!("http://{host}/")).send().unwrap_err();
                    assert_is(&error, ErrorKind::ConnectTimeout, Phase::Dns, Fault::Target);
                    assert_eq!(error.attempts().len(), 4);
                }
            });
        }
    });
    assert!(threads.lock().unwrap().len() <= 6, "{threads:?}");
    // Only who has a thread asks, and each hangs: 192 attempts, six questions.
    assert!(lookups.load(Ordering::SeqCst) <= 6);
    drop(release);
}

#[test]
fn c29_a_deadline_ends_a_lookup_too_and_a_cut_does_so_at_once() {
    let (release, released) = mpsc::channel::<()>();
    let released = Mutex::new(released);
    let (begun, has_begun) = mpsc::channel::<()>();
    let resolver = Arc::new(SystemResolver::around(move |_| {
        let _ = begun.send(());
        let _ = released.lock().unwrap().recv();
        Err(ResolveError::Temporary("hung".to_owned()))
    }));
    let recipe = recipe().resolver(resolver);
    let session = recipe.build().unwrap();
    let limits = Timeouts::unlimited().with_deadline(secs(0.1)).unwrap();
    let error = session.get("http://one.test/").timeout(limits).send().unwrap_err();
    assert_is(&error, ErrorKind::Deadline, Phase::Dns, Fault::Target);

    has_begun.recv().unwrap();
    std::thread::scope(|scope| {
        let asker = scope.spawn(|| {
            let session = recipe.build().unwrap();
            session.get("http://two.test/").timeout(Timeouts::unlimited()).send().unwrap_err()
        });
        has_begun.recv().unwrap();
        recipe.cutter().cut();
        let error = asker.join().unwrap();
        assert_is(&error, ErrorKind::Cancelled, Phase::Dns, Fault::Local);
    });
    drop(release);
}

#[test]
fn c30_a_name_that_does_not_exist_is_final_and_one_that_cannot_be_asked_for_is_not() {
    for (answer, kind, attempts) in [
        (ResolveError::NotFound("no such name".to_owned()), ErrorKind::NameNotFound, 1),
        (ResolveError::Temporary("try again".to_owned()), ErrorKind::NameLookup, 4),
    ] {
        let session = recipe()
            .resolver(Arc::new(Always(Err(answer))))
            .clock(Arc::new(SimClock::default()))
            .retry(Retry::long_run())
            .build()
            .unwrap();
        let error = session.get("http://does-not-exist.test/").send().unwrap_err();
        assert_is(&error, kind, Phase::Dns, Fault::Target);
        assert_eq!(error.attempts().len(), attempts);
        assert_eq!(error.requests_name(), "ConnectionError");
        assert!(error.to_string().contains("does-not-exist.test"), "{error}");
    }
    // No address at all is no name.
    let session = recipe().resolver(Arc::new(Always(Ok(Vec::new())))).build().unwrap();
    let error = session.get("http://empty.test/").send().unwrap_err();
    assert_is(&error, ErrorKind::NameNotFound, Phase::Dns, Fault::Target);
}

#[test]
fn c30_a_missing_name_is_not_held_against_the_proxy() {
    let socks = longhaul::lab::SocksProxy::builder().start().unwrap();
    let list = socks.url("socks5");
    let recipe = recipe().proxies(ProxyPool::parse(&list).unwrap());
    let session = recipe.build().unwrap();
    for _ in 0..5 {
        let error = session.get("http://does-not-exist.test/").send().unwrap_err();
        assert_is(&error, ErrorKind::NameNotFound, Phase::Dns, Fault::Target);
    }
    let stats = recipe.proxy_stats();
    assert_eq!((stats[0].bad, stats[0].in_flight), (0, 0));
    assert_eq!(socks.counts().accepted, 0);
    // The name of the proxy itself is another matter.
    let recipe = self::recipe().proxies(ProxyPool::parse("http://gone.test:8000").unwrap());
    let error = recipe.build().unwrap().get("http://a.test/").send().unwrap_err();
    assert_is(&error, ErrorKind::ProxyUnreachable, Phase::Dns, Fault::Proxy);
    assert_eq!(recipe.proxy_stats()[0].bad, 1);
}

#[test]
fn a_resolver_may_be_of_ones_own() {
    let origin = Origin::builder().start().unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    drop(listener);
    #[derive(Debug)]
    struct Pinned;
    impl Resolve for Pinned {
        fn resolve(&self, host: &str, _: Option<Duration>) -> Result<Vec<IpAddr>, ResolveError> {
            assert_eq!(host, "pinned.test");
            Ok(vec![IpAddr::from([127, 0, 0, 1])])
        }
    }
    let session = recipe().resolver(Arc::new(Pinned)).build().unwrap();
    let url = format!("http://pinned.test:{}/", origin.address().port());
    assert_eq!(session.get(url).send().unwrap().status(), 200);
}
