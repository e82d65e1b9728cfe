//! Section B: bodies that are on their way when something happens.

use crate::roads::{Road, World, assert_is, each, until_deadline};
use longhaul::error::{Fault, Phase};
use longhaul::lab::{Origin, Script};
use longhaul::message::Body;
use longhaul::{ErrorKind, secs};
use std::io::Read;

/// So many bytes without a body of that size in memory.
fn zeros(length: u64) -> Body {
    Body::reader(std::io::repeat(b'z').take(length), Some(length))
}

#[test]
fn c32_an_upload_to_a_slow_reader_ends_at_the_deadline() {
    each(Road::ALL, World::hostile, |world, road| {
        let session = world.recipe(road).timeout(until_deadline()).build().unwrap();
        let url = world.url(road, "/b/slow-reader");
        for body in [
            // More than all the buffers on the way take.
            Body::from(vec![b'z'; 60_000_000]),
            zeros(60_000_000),
            Body::reader(std::io::repeat(b'z').take(60_000_000), None),
        ] {
            let error = session.post(&url).body(body).send().unwrap_err();
            assert_is(&error, ErrorKind::Deadline, Phase::Send, Fault::Target);
            assert!(!error.is_unsent());
        }
    });
}

#[test]
fn c32_a_peer_that_takes_nothing_runs_into_the_read_timeout() {
    let world = || World::new(Origin::builder().on_head(|_| Some(Script::new().pause(secs(20.0)))));
    each(Road::TWO, world, |world, road| {
        let session = world.recipe(road).timeout((secs(20.0), secs(0.3))).build().unwrap();
        let error = session.post(world.url(road, "/")).body(zeros(50_000_000)).send().unwrap_err();
        assert_is(&error, ErrorKind::ReadTimeout, Phase::Send, Fault::Target);
    });
}

#[test]
fn c34_an_early_answer_to_an_upload_is_the_response() {
    for name in ["early-413-close", "early-413-rst"] {
        each(Road::ALL, World::hostile, |world, road| {
            let session = world.session(road);
            let url = world.url(road, &format!("/b/{name}"));
            for body in [
                Body::from(vec![b'z'; 30_000_000]),
                zeros(30_000_000),
                Body::reader(std::io::repeat(b'z').take(30_000_000), None),
            ] {
                let response = session.post(&url).body(body).send().unwrap();
                assert_eq!((response.status(), response.text().unwrap().as_str()), (413, "big"));
                assert_eq!(response.attempts().len(), 1);
                assert!(response.attempts()[0].error.is_none());
                assert!(response.connection().sent_bytes < 30_000_000);
            }
            // None of these connections is in a state to be used again.
            assert_eq!(world.origin(road).counts().accepted, 3);
        });
    }
}

#[test]
fn c34_whatever_the_early_answer_is_and_however_it_is_framed() {
    for (status, head) in [
        (200, "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nbig"),
        (401, "HTTP/1.1 401 Who\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nbig\r\n0\r\n\r\n"),
        (403, "HTTP/1.1 103 Hints\r\n\r\nHTTP/1.1 403 No\r\nContent-Length: 3\r\n\r\nbig"),
        (503, "HTTP/1.1 503 Busy\r\nConnection: close\r\n\r\nbig"),
    ] {
        // It goes on to read nothing, or leaves.
        for stays in [true, false] {
            let answer = Script::send(head);
            let answer =
                if stays && status != 503 { answer.pause(secs(20.0)) } else { answer.close() };
            let world = || {
                let answer = answer.clone();
                World::new(Origin::builder().on_head(move |_| Some(answer.clone())))
            };
            each(Road::TWO, world, |world, road| {
                // The end of a body that the close delimits is lost with a reset, so its sibling
                // is judged by the status alone.
                let stream = status == 503;
                let response = world
                    .session(road)
                    .put(world.url(road, "/"))
                    .body(zeros(50_000_000))
                    .stream(stream)
                    .send()
                    .unwrap();
                assert_eq!(response.status(), status);
                if !stream {
                    assert_eq!(response.text().unwrap(), "big", "{status}");
                }
            });
        }
    }
}
