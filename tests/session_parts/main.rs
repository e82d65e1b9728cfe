//! What a user hangs into a session or takes out of it: hooks, prepared requests, transports
//! under a prefix, overrides, connections that are counted.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "helpers of tests fail by panicking, as tests do"
)]

mod connections;
mod hooks;
mod mounts;
mod overrides;
mod prepared;

use http::HeaderValue;
use longhaul::message::{Prepared, ResponseParts};
use longhaul::session::Flight;
use longhaul::time::SimClock;
use longhaul::transport::{Asked, Play, Script};
use longhaul::{Request, Response, Session, SessionBuilder};
use std::sync::Arc;

/// A recipe on a script, without the environment and on a clock that costs nothing.
fn scripted(play: impl FnMut(&Asked, usize) -> Play + Send + 'static) -> (SessionBuilder, Script) {
    let clock = Arc::new(SimClock::default());
    let script = Script::with(clock.clone(), play);
    let shared = script.clone();
    let recipe =
        Session::builder().trust_env(false).seed(1).clock(clock).transport(move || shared.clone());
    (recipe, script)
}

/// These plays in their order; the last one goes on.
fn plays(plays: Vec<Play>) -> (SessionBuilder, Script) {
    scripted(move |_, attempt| plays[attempt.min(plays.len() - 1)].clone())
}

fn redirect(location: &str) -> Play {
    Play::status(302).header("Location", location)
}

/// The field of each attempt, as text; `-` where there was none.
fn fields(script: &Script, name: &str) -> Vec<String> {
    let text = |value: &[u8]| String::from_utf8(value.to_vec()).unwrap();
    script.asked().iter().map(|one| one.headers.get(name).map_or("-".to_owned(), text)).collect()
}

/// The same response with other parts.
fn with_parts(response: Response, change: impl FnOnce(&mut ResponseParts)) -> Response {
    let mut parts = response.into_parts();
    change(&mut parts);
    Response::from_parts(parts)
}

fn location(text: &'static str) -> impl FnOnce(&mut ResponseParts) {
    move |parts| {
        parts.status = 302;
        parts.headers.insert("location", HeaderValue::from_static(text));
    }
}

#[test]
fn a_recipe_is_shared_and_what_a_session_makes_can_be_moved() {
    fn is_send<T: Send>() {}
    fn is_shared<T: Send + Sync + Clone>() {}
    is_shared::<SessionBuilder>();
    is_shared::<Request>();
    is_shared::<Prepared>();
    is_send::<Session>();
    is_send::<Response>();
    is_send::<Flight>();
}
