//! The connections of a session: counted, closed, and outliving it.

use longhaul::lab::{Origin, Reply};
use longhaul::{ErrorKind, Response, Session, SessionBuilder, secs};
use std::io::Read;
use std::sync::mpsc;

fn origin() -> Origin {
    Origin::builder().handler(|request| Reply::ok(request.path.clone())).start().unwrap()
}

fn recipe() -> SessionBuilder {
    Session::builder().trust_env(false).timeout(secs(20.0))
}

/// At most so many connections at all, and no patience.
fn blocking(most: usize) -> SessionBuilder {
    recipe().timeout((secs(0.02), secs(20.0))).pool_maxsize(most).pool_block(true)
}

#[test]
fn all_connections_in_use_are_waited_for_within_the_connect_timeout() {
    let origin = origin();
    let session = blocking(2).build().unwrap();
    let get = |path: &str| session.get(origin.url(path)).stream(true).send();
    let (one, two) = (get("/1").unwrap(), get("/2").unwrap());
    let error = get("/3").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NoFreeConnection);
    assert_eq!(error.requests_name(), "ConnectionError");
    assert!(error.is_unsent() && error.message().contains("2 connections to 127.0.0.1"), "{error}");
    assert_eq!(origin.counts().accepted, 2);
    // Read to its end, a connection is there for the next; dropped unread, its place is.
    assert_eq!(one.text().unwrap(), "/1");
    assert!(get("/4").unwrap().connection().reused);
    drop(two);
    assert_eq!(get("/5").unwrap().text().unwrap(), "/5");
    // Another host has places of its own: here, another name of it.
    let (_one, _two) = (get("/6").unwrap(), get("/7").unwrap());
    let other = origin.url("/8").replace("127.0.0.1", "localhost");
    assert_eq!(session.get(other).send().unwrap().text().unwrap(), "/8");
    assert_eq!(get("/9").unwrap_err().kind(), ErrorKind::NoFreeConnection);
}

#[test]
fn the_deadline_ends_the_wait_too() {
    let origin = origin();
    let session = blocking(1).timeout(secs(20.0)).build().unwrap();
    let _held = session.get(origin.url("/1")).stream(true).send().unwrap();
    let timeouts = longhaul::Timeouts::unlimited().with_deadline(secs(0.02)).unwrap();
    let error = session.get(origin.url("/2")).timeout(timeouts).send().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Deadline);
}

#[test]
fn another_thread_gives_the_connection_back() {
    let origin = origin();
    let session = blocking(1).timeout(secs(20.0)).build().unwrap();
    for read in [true, false] {
        let held = session.get(origin.url("/held")).stream(true).send().unwrap();
        let (begin, begun) = mpsc::channel::<()>();
        let text = std::thread::scope(|scope| {
            scope.spawn(move || {
                // Not before the other one is about to wait; whoever comes first, it must work.
                begun.recv().unwrap();
                if read {
                    assert_eq!(held.text().unwrap(), "/held");
                } else {
                    drop(held);
                }
            });
            begin.send(()).unwrap();
            session.get(origin.url("/next")).send().unwrap().text().unwrap()
        });
        assert_eq!(text, "/next");
    }
}

#[test]
fn ordinary_requests_never_wait_for_themselves() {
    let origin = Origin::builder()
        .handler(|request| match request.path.as_str() {
            "/a" => Reply::redirect(302, "/b"),
            "/closes" => Reply::ok("x").close(),
            _ => Reply::ok("x"),
        })
        .start()
        .unwrap();
    let session = blocking(1).build().unwrap();
    for path in ["/a", "/closes", "/a", "/b", "/closes", "/closes"] {
        assert_eq!(session.get(origin.url(path)).send().unwrap().status(), 200, "{path}");
    }
}

#[test]
fn without_it_there_are_as_many_as_are_read_at_once() {
    let origin = origin();
    let session = recipe().pool_maxsize(1).build().unwrap();
    let get = || session.get(origin.url("/")).stream(true).send().unwrap();
    let held = [get(), get(), get()];
    assert_eq!(origin.counts().accepted, 3);
    drop(held);
}

#[test]
fn no_connection_at_all_is_refused() {
    let error = recipe().pool_maxsize(0).pool_block(true).build().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Config);
    assert!(error.message().contains("pool_block"), "{error}");
}

#[test]
fn a_session_that_was_closed_goes_on_with_new_connections() {
    let origin = origin();
    let session = recipe().build().unwrap();
    let get = || session.get(origin.url("/")).send().unwrap().connection().reused;
    assert_eq!((get(), get()), (false, true));
    session.close();
    assert_eq!((get(), get()), (false, true));
    assert_eq!(origin.counts().accepted, 2);
}

#[test]
fn a_streamed_response_owns_its_connection_and_outlives_its_session() {
    let origin = Origin::builder()
        .handler(|_| Reply::ok("a".repeat(100_000)).chunked(1000))
        .start()
        .unwrap();
    let session = recipe().build().unwrap();
    let response: Response = session.get(origin.url("/")).stream(true).send().unwrap();
    drop(session);
    let text = std::thread::spawn(move || {
        let mut text = String::new();
        response.into_reader().read_to_string(&mut text).map(|_| text)
    });
    assert_eq!(text.join().unwrap().unwrap().len(), 100_000);
}
