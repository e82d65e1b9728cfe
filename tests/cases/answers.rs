//! Origins that answer from a script, and what a session makes of it.

use crate::roads::{Road, World, each};
use longhaul::error::Error;
use longhaul::lab::{Origin, Received, Reply, Script};
use longhaul::{Response, Session};

/// An origin that plays this for the first request of each connection; the script goes on itself.
pub(crate) fn playing(script: Script) -> World {
    World::new(Origin::builder().handler(move |_: &Received| script.clone()))
}

/// The same bytes for each request, as they stand.
pub(crate) fn sending(bytes: impl AsRef<[u8]>) -> World {
    playing(Script::send(bytes))
}

/// An origin that answers every request by one of these scripts: `/0`, `/1` …
pub(crate) fn scripted(scripts: Vec<Script>) -> World {
    World::new(Origin::builder().handler(move |request: &Received| {
        let number: usize = request.path.trim_start_matches('/').parse().unwrap();
        scripts[number].clone()
    }))
}

/// Asks for each of these scripts in turn, on each road.
pub(crate) fn each_of(
    roads: &[Road],
    scripts: &[Script],
    see: impl Fn(usize, Result<Response, Error>) + Sync,
) {
    each(
        roads,
        || scripted(scripts.to_vec()),
        |world, road| {
            let session = world.session(road);
            for number in 0..scripts.len() {
                see(number, get(world, road, &session, &format!("/{number}")));
            }
        },
    );
}

pub(crate) fn get(
    world: &World,
    road: Road,
    session: &Session,
    path: &str,
) -> Result<Response, Error> {
    session.get(world.url(road, path)).send()
}

/// What a session makes of a response of these bytes, in the clear; the peer leaves after them.
pub(crate) fn answer(bytes: impl AsRef<[u8]>) -> Result<Response, Error> {
    let world = scripted(vec![Script::send(bytes).fin()]);
    let session = world.session(Road::Plain);
    get(&world, Road::Plain, &session, "/0")
}

/// An origin that redirects `/dir/N?q` to the N-th of these, and has a page everywhere else.
pub(crate) fn leading<L: AsRef<[u8]>>(locations: &[L]) -> World {
    let locations: Vec<Vec<u8>> =
        locations.iter().map(|location| location.as_ref().to_vec()).collect();
    World::new(Origin::builder().handler(move |request: &Received| {
        let number = request.path.strip_prefix("/dir/").and_then(|number| number.parse().ok());
        let location = number.and_then(|number: usize| locations.get(number));
        match location {
            Some(location) if request.query.as_deref() == Some("q") => {
                Reply::redirect(302, location).body("moved")
            }
            _ => Reply::ok("there"),
        }
    }))
}
