//! What sessions learn of hosts and proxies, kept back until its time has come.
//!
//! A worker that is simulated makes its attempt in one go: it begins when its step begins and ends,
//! on a clock of its own, after the beginnings of other steps that have yet to be made. What the
//! attempt shows (a host throttles, a proxy is down) must not be known before it has happened, or
//! a simulated night would be better informed than a real one. So in a recipe with [`Lessons`] it
//! is written down with its time, and whoever drives the night teaches it when that time is there.

use super::SessionBuilder;
use super::router::lock;
use crate::message::Hooks;
use crate::proxy::{Identity, Verdict};
use crate::rng::Rng;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// One thing that was learnt, and when.
#[derive(Debug)]
pub(crate) struct Lesson {
    pub(crate) at: Instant,
    what: What,
}

#[derive(Debug)]
enum What {
    Answer { host: Box<str>, identity: Identity, status: u16, wait: Duration },
    Refusal { host: Box<str>, pause: Duration },
    Proxy { member: usize, verdict: Verdict, host: String, item: u64 },
}

impl Lesson {
    /// A host answered.
    pub(super) fn of_answer(
        at: Instant,
        host: &str,
        identity: Identity,
        status: u16,
        wait: Duration,
    ) -> Self {
        Self { at, what: What::Answer { host: host.into(), identity, status, wait } }
    }

    /// A host refused.
    pub(super) fn of_refusal(at: Instant, host: &str, pause: Duration) -> Self {
        Self { at, what: What::Refusal { host: host.into(), pause } }
    }

    /// A member of the proxy pool is given back.
    pub(super) fn of_proxy(
        at: Instant,
        member: usize,
        verdict: Verdict,
        host: String,
        item: u64,
    ) -> Self {
        Self { at, what: What::Proxy { member, verdict, host, item } }
    }
}

/// The lessons of all sessions of a recipe that are still to come.
#[derive(Debug, Default)]
pub(crate) struct Lessons(Mutex<Kept>);

#[derive(Debug, Default)]
struct Kept {
    now: Option<Instant>,
    lessons: Vec<Lesson>,
}

impl Lessons {
    /// The time of the night is `now`: what is learnt up to then need not be kept.
    pub(crate) fn come_to(&self, now: Instant) {
        lock(&self.0).now = Some(now);
    }

    /// What was kept since the last call, in the order in which it was learnt.
    pub(crate) fn take(&self) -> Vec<Lesson> {
        std::mem::take(&mut lock(&self.0).lessons)
    }

    /// Whether `at` is later than the time of the night.
    pub(super) fn is_ahead(&self, at: Instant) -> bool {
        lock(&self.0).now.is_none_or(|now| at > now)
    }

    /// Keeps a lesson back.
    pub(super) fn keep(&self, lesson: Lesson) {
        lock(&self.0).lessons.push(lesson);
    }
}

impl SessionBuilder {
    /// The same recipe for a world of its own: what its sessions learn, in the course of
    /// `lessons`, stays there, and nothing of the environment gets in.
    pub(crate) fn apart(&self, lessons: Arc<Lessons>) -> Self {
        let mut apart = self.clone().trust_env(false);
        apart.pool = self.pool.as_ref().map(|pool| Arc::new(Mutex::new(lock(pool).clone())));
        apart.cooldown = self.cooldown.as_ref().map(|_| Arc::default());
        apart.restraint = self.restraint.anew();
        apart.env = None;
        apart.streams = Arc::default();
        apart.numbers = Arc::default();
        apart.exits = Arc::default();
        apart.lessons = Some(lessons);
        // What is hung into the sessions by the user belongs to the world outside.
        apart.hooks(Hooks::new()).unmounted()
    }

    /// Makes known to all sessions of the recipe what was kept back.
    pub(crate) fn learn(&self, lesson: Lesson, rng: &mut Rng) {
        let Lesson { at, what } = lesson;
        match what {
            What::Answer { host, identity, status, wait } => {
                if let Some(cooldown) = &self.cooldown {
                    lock(cooldown).note(&host, identity.value(), status, wait, at);
                }
            }
            What::Refusal { host, pause } => {
                if let Some(cooldown) = &self.cooldown {
                    lock(cooldown).note_refusal(&host, pause, at);
                }
            }
            What::Proxy { member, verdict, host, item } => {
                if let Some(pool) = &self.pool {
                    lock(pool).report(member, verdict, &host, item, at, rng);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::Session;
    use crate::time::{Clock, SimClock, secs};
    use crate::transport::{Play, Script};
    use crate::{ProxyPool, Request};
    use http::Method;

    /// A recipe on a scripted transport, on a clock that is one second ahead of the night.
    fn ahead(plays: Vec<Play>) -> (SessionBuilder, SessionBuilder, Arc<Lessons>, Instant) {
        let clock = Arc::new(SimClock::default());
        let night = clock.now();
        let script = Script::new(Arc::clone(&clock) as Arc<dyn Clock>, plays);
        let world = Session::builder()
            .host_cooldown(true)
            .proxies(ProxyPool::parse("http://proxy.test:1").unwrap())
            .clock(clock)
            .transport(move || script.clone());
        let lessons = Arc::new(Lessons::default());
        lessons.come_to(night);
        (world.apart(Arc::clone(&lessons)), world, lessons, night)
    }

    #[test]
    fn what_an_attempt_shows_is_known_when_it_is_taught() {
        let throttle = Play::status(429).header("Retry-After", "7").after(secs(1.0));
        let (apart, world, lessons, night) = ahead(vec![throttle]);
        let session = apart.build().unwrap();
        let request = Request::new(Method::GET, "http://host.test/");
        assert_eq!(session.send(request).unwrap().status(), 429);
        assert_eq!(apart.proxy_stats()[0].in_flight, 1);
        let kept = lessons.take();
        let times: Vec<_> = kept.iter().map(|lesson| lesson.at - night).collect();
        assert_eq!(times, [secs(1.0), secs(1.0)]);
        let mut rng = Rng::seeded(1);
        for lesson in kept {
            apart.learn(lesson, &mut rng);
        }
        let stats = apart.proxy_stats();
        assert_eq!((stats[0].in_flight, stats[0].good), (0, 1));
        assert_eq!(world.proxy_stats()[0].picks, 0, "the world outside knows nothing");
        let cooldown = apart.cooldown.as_ref().unwrap();
        assert_eq!((lock(cooldown).hosts(), lessons.take().len()), (1, 0));
        assert_eq!(lock(world.cooldown.as_ref().unwrap()).hosts(), 0);
    }

    #[test]
    fn what_takes_no_time_is_known_at_once() {
        let (apart, _, lessons, _) = ahead(vec![Play::status(200)]);
        let request = Request::new(Method::GET, "http://host.test/");
        assert_eq!(apart.build().unwrap().send(request).unwrap().status(), 200);
        let stats = apart.proxy_stats();
        assert_eq!((stats[0].in_flight, stats[0].good, lessons.take().len()), (0, 1, 0));
    }

    #[test]
    fn a_world_apart_calls_nothing_of_the_users() {
        let (_, world, lessons, _) = ahead(vec![Play::status(200)]);
        let world = world
            .response_hook(|_| panic!("a hook"))
            .attempt_hook(|_| panic!("a hook"))
            .mount("http://host.test/", || -> Script { panic!("a transport") });
        let session = world.apart(lessons).build().unwrap();
        let request = Request::new(Method::GET, "http://host.test/");
        assert_eq!(session.send(request).unwrap().status(), 200);
    }
}
