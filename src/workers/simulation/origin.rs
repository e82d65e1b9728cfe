//! The servers and proxies of a simulated night, as a transport.
//!
//! Each worker has an [`Origin`] with its own clock, on which an attempt takes its time; all share
//! one [`World`], which knows what each URL has been through.

use super::faults::{FaultModel, Overload, Persistence, Trouble};
use crate::error::{Error, ErrorKind, Fault, Phase};
use crate::proxy::Route;
use crate::rng::Rng;
use crate::time::Clock;
use crate::transport::{AttemptLimits, Incoming, Outgoing, Play, Transport};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use url::Url;

/// What the answers of a night depend on.
pub(super) struct World {
    faults: FaultModel,
    seed: u64,
    /// By the place in the pool.
    dead_proxies: Vec<bool>,
    lives: Mutex<Vec<Life>>,
    /// When the attempts that are under way end, where it matters how many they are.
    ends: Mutex<BinaryHeap<Reverse<Instant>>>,
}

/// What a URL has been through.
#[derive(Debug, Clone, Copy, Default)]
struct Life {
    asked: u32,
    trouble: Option<Trouble>,
    /// When a server that tells the truth is in good health again.
    well_at: Option<Instant>,
}

impl World {
    pub(super) fn new(faults: FaultModel, seed: u64, urls: usize, proxies: usize) -> Self {
        // A stream of its own: those below belong to the URLs.
        let mut rng = Rng::stream(seed, u64::MAX);
        let mut places: Vec<usize> = (0..proxies).collect();
        let mut dead_proxies = vec![false; proxies];
        for _ in 0..faults.dead_proxies.min(proxies) {
            let drawn = places.swap_remove(rng.below(places.len()));
            if let Some(dead) = dead_proxies.get_mut(drawn) {
                *dead = true;
            }
        }
        Self {
            faults,
            seed,
            dead_proxies,
            lives: Mutex::new(vec![Life::default(); urls]),
            ends: Mutex::default(),
        }
    }

    /// The URL of this number, on one of `hosts`.
    pub(super) fn url(number: u64, hosts: usize) -> String {
        format!("http://host-{}.test/{number}", number % (hosts.max(1) as u64))
    }

    fn is_dead(&self, route: &Route) -> bool {
        route.member.and_then(|member| self.dead_proxies.get(member)).copied().unwrap_or(false)
    }

    /// How many attempts are under way with one that begins at `now`.
    fn crowd(&self, now: Instant) -> usize {
        let mut ends = self.ends.lock().unwrap_or_else(PoisonError::into_inner);
        while ends.peek().is_some_and(|Reverse(end)| *end <= now) {
            ends.pop();
        }
        ends.len() + 1
    }

    /// Notes the end of an attempt. Attempts begin in the order of time, so none ends too early to
    /// be counted.
    fn ends_at(&self, end: Instant) {
        self.ends.lock().unwrap_or_else(PoisonError::into_inner).push(Reverse(end));
    }

    /// What a URL meets that is asked at `now`.
    fn answer(&self, url: &Url, now: Instant) -> Answer {
        let number = url.path().trim_start_matches('/').parse().unwrap_or(usize::MAX);
        let mut lives = self.lives.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(life) = lives.get_mut(number) else { return Answer::prompt(Play::status(404)) };
        let nth = life.asked;
        life.asked += 1;
        // Each attempt of each URL has a stream of its own, so that what it draws depends on
        // nothing that was drawn elsewhere.
        let attempt_seed = self.seed ^ u64::from(nth).rotate_right(16);
        let mut rng = Rng::stream(attempt_seed, number as u64);
        if nth == 0 {
            life.trouble = self.faults.draw(&mut rng);
        }
        let mut latency = self.faults.latency.draw(&mut rng);
        if let Some((parallel, overload)) = self.faults.overload {
            let crowd = self.crowd(now);
            match overload {
                _ if crowd <= parallel => {}
                Overload::Refuse(status) => {
                    return Answer::prompt(Play::status(status).after(latency / 10));
                }
                Overload::Slow => latency = latency.mul_f64(crowd as f64 / parallel.max(1) as f64),
            }
        }
        let throttled = match life.trouble {
            Some(Trouble::Throttle(_)) if self.faults.honest => {
                life.still_throttled(now.checked_add(latency), self.faults.retry_after)
            }
            _ => Some(self.faults.retry_after).filter(|_| self.is_in_trouble(nth)),
        };
        match (life.trouble, throttled) {
            (Some(trouble), Some(wait)) => Answer::of(trouble, wait, latency),
            _ => Answer::prompt(Play::status(200).after(latency)),
        }
    }

    fn is_in_trouble(&self, nth: u32) -> bool {
        match self.faults.persistence {
            Persistence::Once => nth == 0,
            Persistence::Attempts(attempts) => nth < attempts,
            Persistence::Always => true,
        }
    }
}

impl Life {
    /// What is left of the wait in an answer that is given at `at`.
    fn still_throttled(&mut self, at: Option<Instant>, wait: Duration) -> Option<Duration> {
        let at = at?;
        match self.well_at {
            None => {
                self.well_at = at.checked_add(wait);
                Some(wait)
            }
            Some(well_at) => well_at.checked_duration_since(at).filter(|left| !left.is_zero()),
        }
    }
}

/// What comes after the connection, and whether that stands in the last moment only.
struct Answer {
    play: Play,
    late: bool,
}

impl Answer {
    const fn prompt(play: Play) -> Self {
        Self { play, late: false }
    }

    fn of(trouble: Trouble, wait: Duration, latency: Duration) -> Self {
        let play = match trouble {
            Trouble::ConnectTimeout => Play::black_hole(),
            Trouble::Silence | Trouble::Stall => Play::silence(),
            Trouble::ConnectRefused => {
                Play::error(ErrorKind::Connection, Phase::Connect, Fault::Target)
            }
            Trouble::Reset => Play::error(ErrorKind::Connection, Phase::Headers, Fault::Target),
            Trouble::Truncated => Play::status(200).body("half a pa").truncated(),
            Trouble::Status(status) => Play::status(status),
            Trouble::Throttle(status) => {
                Play::status(status).header("Retry-After", &wait.as_secs_f64().to_string())
            }
        };
        Self { play: play.after(latency), late: trouble == Trouble::Stall }
    }
}

/// What a simulated worker sends through.
pub(super) struct Origin {
    pub(super) world: Arc<World>,
    pub(super) clock: Arc<dyn Clock>,
}

impl Origin {
    fn perform(
        &self,
        outgoing: &Outgoing<'_>,
        route: &Route,
        limits: &AttemptLimits,
    ) -> Result<Incoming, Error> {
        let now = self.clock.now();
        let play = |play: Play| play.perform(&self.clock, outgoing.method, limits);
        if self.world.is_dead(route) {
            return play(Play::dead_proxy());
        }
        let Answer { play: answer, late } = self.world.answer(outgoing.url, now);
        if late {
            let connected = now.checked_add(limits.connect.unwrap_or_default());
            match connected.filter(|at| limits.deadline.is_none_or(|deadline| *at < deadline)) {
                Some(at) => self.clock.sleep_until(at),
                None => return play(Play::black_hole()),
            }
        }
        let answered = play(answer);
        if self.world.faults.overload.is_some() {
            self.world.ends_at(self.clock.now());
        }
        answered
    }
}

impl Transport for Origin {
    fn attempt(
        &mut self,
        outgoing: Outgoing<'_>,
        route: &Route,
        limits: &AttemptLimits,
    ) -> Result<Incoming, Error> {
        // The URLs are ours and hold no credentials.
        self.perform(&outgoing, route, limits).map_err(|error| {
            error.with_url(outgoing.url.as_str()).with_proxy(route.shown.as_deref())
        })
    }
}

impl fmt::Debug for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Origin").field("faults", &self.world.faults).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::Headers;
    use crate::time::{SimClock, secs};
    use http::Method;

    struct Stage {
        clock: Arc<SimClock>,
        origin: Origin,
        limits: AttemptLimits,
    }

    impl Stage {
        fn new(faults: FaultModel) -> Self {
            let clock = Arc::new(SimClock::default());
            let world = Arc::new(World::new(faults, 9, 4, 4));
            let origin = Origin { world, clock: Arc::clone(&clock) as Arc<dyn Clock> };
            let (connect, read) = (Some(secs(5.0)), Some(secs(25.0)));
            Self { clock, origin, limits: AttemptLimits { connect, read, deadline: None } }
        }

        /// The answer of URL 1: status or kind, and the time it took.
        fn ask(&mut self, route: &Route) -> (String, Duration) {
            let (url, headers) = (Url::parse(&World::url(1, 3)).unwrap(), Headers::new());
            let before = self.clock.elapsed();
            let outgoing = Outgoing::new(&Method::GET, &url, &headers);
            let said = match self.origin.attempt(outgoing, route, &self.limits) {
                Ok(mut incoming) => {
                    let whole = std::io::copy(&mut incoming.body, &mut std::io::sink()).is_ok();
                    let wait = incoming.headers.get("retry-after");
                    let wait = wait.map(|wait| wait.to_str().unwrap()).unwrap_or_default();
                    format!("{}{}{wait}", incoming.status, if whole { " " } else { " cut" })
                }
                Err(error) => format!("{} {}", error.kind(), error.fault()),
            };
            (said.trim().to_owned(), self.clock.elapsed() - before)
        }
    }

    fn always(trouble: Trouble) -> FaultModel {
        FaultModel::none().share(trouble, 1.0).persistence(Persistence::Always)
    }

    #[test]
    fn each_trouble_takes_its_time() {
        for (trouble, said, took) in [
            (Trouble::ConnectTimeout, "connect_timeout target", 5.0),
            (Trouble::ConnectRefused, "connection target", 0.5),
            (Trouble::Silence, "read_timeout target", 25.0),
            (Trouble::Stall, "read_timeout target", 30.0),
            (Trouble::Reset, "connection target", 0.5),
            (Trouble::Truncated, "200 cut", 0.5),
            (Trouble::Status(503), "503", 0.5),
            (Trouble::Throttle(429), "429 2", 0.5),
        ] {
            let mut stage = Stage::new(always(trouble));
            let wanted = (said.to_owned(), secs(took));
            assert_eq!(stage.ask(&Route::direct()), wanted, "{trouble}");
        }
    }

    #[test]
    fn a_stall_ends_with_the_deadline_too() {
        // Where both clocks end together, the connect timeout is told, as by the engine.
        for (deadline, said) in [(3.0, "deadline"), (5.0, "connect_timeout"), (12.0, "deadline")] {
            let mut stage = Stage::new(always(Trouble::Stall));
            stage.limits.deadline = Some(stage.clock.now() + secs(deadline));
            let wanted = (format!("{said} target"), secs(deadline));
            assert_eq!(stage.ask(&Route::direct()), wanted);
        }
    }

    #[test]
    fn trouble_lasts_for_as_long_as_it_should() {
        let direct = Route::direct();
        let mut stage = Stage::new(always(Trouble::Reset).persistence(Persistence::Attempts(2)));
        let said: Vec<_> = (0..3).map(|_| stage.ask(&direct).0).collect();
        assert_eq!(said, ["connection target", "connection target", "200"]);

        // True: asked again after half of the 2 s it names what is left, and later it is well.
        let throttle = always(Trouble::Throttle(503));
        let mut stage = Stage::new(throttle.clone());
        assert_eq!(stage.ask(&direct).0, "503 2");
        stage.clock.advance(secs(0.5));
        assert_eq!(stage.ask(&direct).0, "503 1");
        stage.clock.advance(secs(0.5));
        assert_eq!(stage.ask(&direct).0, "200");

        // A lie: the same wait again, however late.
        let mut stage = Stage::new(throttle.honest_retry_after(false));
        for _ in 0..3 {
            assert_eq!(stage.ask(&direct).0, "503 2");
            stage.clock.advance(secs(60.0));
        }
    }

    #[test]
    fn dead_proxies_are_as_many_as_asked_for_and_take_the_connect_timeout() {
        let mut stage = Stage::new(FaultModel::none().dead_proxies(3));
        let said: Vec<_> = (0..4)
            .map(|member| stage.ask(&Route { member: Some(member), ..Route::direct() }))
            .collect();
        let dead = ("connect_timeout proxy".to_owned(), secs(5.0));
        assert_eq!(said.iter().filter(|said| **said == dead).count(), 3);
        assert_eq!(stage.ask(&Route::direct()).0, "200");
    }
}
