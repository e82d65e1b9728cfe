//! How many connections to a host there may be at all: urllib3's `block`.
//!
//! Without it `pool_maxsize` bounds the connections that are *kept*, and there are as many as
//! responses are read at once. With it a request that finds all of them in use waits for one. In a
//! session that one thread has to itself only that thread can give a connection back, and it is
//! waiting; but a streamed response may have gone to another thread, which reads or drops it. So
//! the wait is real, and it has an end: the connect budget, of which it is a part, and the
//! deadline. DIFFERENCE(bounded-block): urllib3 below requests has no such end and waits for ever.
//!
//! A [`Place`] is the right to have a connection. It lives in the connection and gives itself back
//! with it, on whichever thread that is.

use super::cutter::Cutter;
use super::map_error;
use super::wait::{Expired, Expiry, Wait};
use crate::error::{Error, ErrorKind, Fault, Phase};
use std::collections::HashMap;
use std::fmt;
use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// How often who waits looks whether all connections were cut.
const SLICE: Duration = Duration::from_millis(100);

/// The connections of an engine, idle or in use, counted by key.
pub(super) struct Crowd {
    most: usize,
    doors: Mutex<Doors>,
    moved: Condvar,
}

#[derive(Default)]
struct Doors {
    inside: HashMap<Arc<[u8]>, usize>,
    /// How often a connection became idle: who saw this number missed none. One that closes shows
    /// in the count.
    moves: u64,
}

/// The right to have one connection under a key.
pub(super) struct Place {
    crowd: Arc<Crowd>,
    key: Arc<[u8]>,
}

/// What came of asking for a place.
pub(super) enum Admission {
    /// There is one.
    Place(Place),
    /// There was none, and a connection has become idle since.
    Moved,
}

impl Crowd {
    /// At most so many connections under each key.
    pub(super) fn new(most: usize) -> Arc<Self> {
        Arc::new(Self { most, doors: Mutex::default(), moved: Condvar::new() })
    }

    /// The moves so far; to be asked for before looking at what is idle.
    pub(super) fn moves(&self) -> u64 {
        self.lock().moves
    }

    /// A connection has become idle.
    pub(super) fn note_idle(&self) {
        self.lock().moves += 1;
        self.moved.notify_all();
    }

    /// A place under `key`, or the news that a connection has become idle since `seen`.
    ///
    /// # Errors
    /// `NoFreeConnection` and `Deadline` where neither comes in time, `Cancelled` where all
    /// connections were cut.
    pub(super) fn admit(
        self: &Arc<Self>,
        key: &[u8],
        host: &str,
        seen: u64,
        wait: &Wait<'_>,
        cutter: &Cutter,
    ) -> Result<Admission, Error> {
        let mut doors = self.lock();
        loop {
            let inside = doors.inside.get(key).copied().unwrap_or(0);
            if inside < self.most {
                let key: Arc<[u8]> = Arc::from(key);
                doors.inside.insert(Arc::clone(&key), inside + 1);
                return Ok(Admission::Place(Place { crowd: Arc::clone(self), key }));
            }
            if doors.moves != seen {
                return Ok(Admission::Moved);
            }
            if cutter.is_cut() {
                return Err(map_error::cancelled(Phase::Connect));
            }
            let bound = wait.bound().map_err(|error| self.full(host, &error))?;
            let slice = bound.left.map_or(SLICE, |left| left.min(SLICE));
            let woken = self.moved.wait_timeout(doors, slice);
            doors = woken.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// How many connections there are under `key`.
    #[cfg(test)]
    pub(super) fn inside(&self, key: &[u8]) -> usize {
        self.lock().inside.get(key).copied().unwrap_or(0)
    }

    fn full(&self, host: &str, error: &io::Error) -> Error {
        let (kind, clock) = match Expired::of(error) {
            Some(Expiry::Connect) => (ErrorKind::NoFreeConnection, "the connect timeout"),
            _ => (ErrorKind::Deadline, "the deadline"),
        };
        let text = format!(
            "none of the {} connections to {host} that pool_maxsize permits came free within \
             {clock}; read or drop streamed responses, or raise pool_maxsize",
            self.most
        );
        Error::new(kind, Phase::Connect, Fault::Local, text)
    }

    fn lock(&self) -> MutexGuard<'_, Doors> {
        self.doors.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut doors = self.crowd.lock();
        match doors.inside.get_mut(&self.key) {
            Some(inside) if *inside > 1 => *inside -= 1,
            // Nobody is left: a run over many hosts keeps no entry for each.
            _ => drop(doors.inside.remove(&self.key)),
        }
        drop(doors);
        self.crowd.moved.notify_all();
    }
}

impl fmt::Debug for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Place")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::{Clock, SimClock, secs};
    use crate::transport::AttemptLimits;

    fn place(admission: Admission) -> Place {
        match admission {
            Admission::Place(place) => place,
            Admission::Moved => panic!("no place"),
        }
    }

    #[test]
    fn places_are_counted_by_key_and_leave_nothing_behind() {
        let (crowd, clock, cutter) = (Crowd::new(2), SimClock::default(), Cutter::default());
        let wait = Wait::connect(&clock, clock.now(), &AttemptLimits::default());
        let admit = |key: &[u8]| crowd.admit(key, "h", crowd.moves(), &wait, &cutter).unwrap();
        let (one, two, other) = (place(admit(b"a")), place(admit(b"a")), place(admit(b"b")));
        assert_eq!((crowd.inside(b"a"), crowd.inside(b"b")), (2, 1));
        let seen = crowd.moves();
        drop(one);
        let three = place(crowd.admit(b"a", "h", seen, &wait, &cutter).unwrap());
        drop((two, three, other));
        assert!(crowd.lock().inside.is_empty());
    }

    #[test]
    fn what_moved_since_it_was_looked_at_is_not_missed() {
        let (crowd, clock, cutter) = (Crowd::new(1), SimClock::default(), Cutter::default());
        let wait = Wait::connect(&clock, clock.now(), &AttemptLimits::default());
        let seen = crowd.moves();
        let _held = place(crowd.admit(b"a", "h", seen, &wait, &cutter).unwrap());
        crowd.note_idle();
        let news = crowd.admit(b"a", "h", seen, &wait, &cutter).unwrap();
        assert!(matches!(news, Admission::Moved));
        // Of another thread, while this one waits.
        let seen = crowd.moves();
        std::thread::scope(|scope| {
            scope.spawn(|| crowd.note_idle());
            let news = crowd.admit(b"a", "h", seen, &wait, &cutter).unwrap();
            assert!(matches!(news, Admission::Moved));
        });
    }

    #[test]
    fn the_wait_ends_with_the_clock_that_ends_first_and_with_a_stop() {
        let (crowd, clock, cutter) = (Crowd::new(1), SimClock::default(), Cutter::default());
        let start = clock.now();
        let unlimited = Wait::connect(&clock, start, &AttemptLimits::default());
        let _held = place(crowd.admit(b"a", "h", 0, &unlimited, &cutter).unwrap());
        clock.advance(secs(5.0));
        for (connect, deadline, kind) in [
            (Some(5.0), None, ErrorKind::NoFreeConnection),
            (Some(5.0), Some(3.0), ErrorKind::Deadline),
            (None, Some(5.0), ErrorKind::Deadline),
        ] {
            let limits = AttemptLimits {
                connect: connect.map(secs),
                deadline: deadline.map(|deadline| start + secs(deadline)),
                ..AttemptLimits::default()
            };
            let wait = Wait::connect(&clock, start, &limits);
            let admission = crowd.admit(b"a", "h.test", crowd.moves(), &wait, &cutter);
            let Err(error) = admission else { panic!("admitted") };
            assert_eq!((error.kind(), error.fault()), (kind, Fault::Local));
            assert!(error.is_unsent() && error.message().contains("h.test"), "{error}");
        }
        cutter.cut();
        let admission = crowd.admit(b"a", "h", crowd.moves(), &unlimited, &cutter);
        assert!(matches!(admission, Err(error) if error.kind() == ErrorKind::Cancelled));
    }
}
