//! An origin that bears so many requests at once and refuses the others.

use std::sync::atomic::{AtomicUsize, Ordering};

use crossbeam_channel::bounded;
use longhaul::lab::{Origin, Received, Reply};
use longhaul::secs;

/// Answers `most` at once, each after a tenth of a second, and the others with 503.
pub(crate) fn crowded(most: usize) -> Origin {
    let at_once = AtomicUsize::new(0);
    // Nobody ever rings: a page takes its time.
    let (bell, never) = bounded::<()>(0);
    let answer = move |_: &Received| {
        let before = at_once.fetch_add(1, Ordering::SeqCst);
        let reply = if before < most {
            let _time_is_up = never.recv_timeout(secs(0.1));
            Reply::ok("page")
        } else {
            Reply::new(503)
        };
        at_once.fetch_sub(1, Ordering::SeqCst);
        let _is_held = &bell;
        reply
    };
    Origin::builder().handler(answer).start().unwrap()
}
