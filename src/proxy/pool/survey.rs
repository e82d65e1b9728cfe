//! Who may be taken for one attempt, and in which order of preference.
//!
//! Every usable member gets a seat, and seats are ranks: the draw is among those who share the best
//! seat that anybody has. What keeps the others from a seat is noted on the way, since it tells when
//! it is worth asking again.

use super::rotation::Rotation;
use super::{Member, Pick, PickRequest, ProxyPool};
use crate::proxy::health::Standing;
use crate::rng::Rng;
use std::time::{Duration, Instant};

/// When to ask again while every usable member is at its limit: leases come back unannounced.
const BUSY: (Duration, Duration) = (Duration::from_millis(50), Duration::from_millis(100));
/// The same while only probes are under way.
const PROBED: (Duration, Duration) = (Duration::from_millis(250), Duration::from_millis(500));

/// Healthy, below the floor, due for a retry; and the same for members that the URL has tried.
const SEATS: usize = 6;
const FIRST_TRIED: usize = 3;

/// Where one member stands for one request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Seat(usize),
    Busy {
        preferred: bool,
    },
    /// Its rate has no slot before this time.
    Paced {
        until: Instant,
        preferred: bool,
    },
    Probing,
    Down(Instant),
    Refused,
}

/// What a walk over the members found.
#[derive(Debug)]
pub(super) struct Survey {
    empty: bool,
    /// Per seat: the first who sits there, and how many do.
    seats: [(usize, usize); SEATS],
    busy: bool,
    /// A healthy member that the URL has not tried is at its limit.
    preferred_is_busy: bool,
    probing: bool,
    /// The next slot of a rate.
    slot: Option<Instant>,
    revival: Option<Instant>,
}

/// When to ask again where a member is at its limit of parallel attempts.
pub(super) fn soon(now: Instant, rng: &mut Rng) -> Instant {
    now + rng.between(BUSY.0, BUSY.1)
}

impl Survey {
    fn new(empty: bool) -> Self {
        Self {
            empty,
            seats: [(0, 0); SEATS],
            busy: false,
            preferred_is_busy: false,
            probing: false,
            slot: None,
            revival: None,
        }
    }

    fn seat(&mut self, seat: usize, index: usize) {
        if let Some((first, count)) = self.seats.get_mut(seat) {
            if *count == 0 {
                *first = index;
            }
            *count += 1;
        }
    }

    pub(super) fn choose(
        &self,
        rotation: Rotation,
        rng: &mut Rng,
        nth_of: impl Fn(usize, usize) -> Option<usize>,
    ) -> Option<usize> {
        let best = self.seats.iter().enumerate().find(|(_, (_, count))| *count > 0);
        let (seat, (first, count)) = best?;
        if seat >= FIRST_TRIED && self.preferred_is_busy {
            return None;
        }
        match rotation {
            Rotation::Random => nth_of(rng.below(*count), seat),
            _ => Some(*first),
        }
    }

    pub(super) fn refusal(&self, now: Instant, rng: &mut Rng) -> Pick {
        let room = self.busy.then(|| soon(now, rng));
        let probed = (self.probing && !self.busy).then(|| now + rng.between(PROBED.0, PROBED.1));
        let at_limit = [room, self.slot].into_iter().flatten().min();
        let back = [probed, self.revival].into_iter().flatten().min();
        match (at_limit, back) {
            (Some(limit), Some(back)) if back < limit => Pick::NotBefore(back),
            (Some(limit), _) => Pick::AtLimit(limit),
            (None, Some(back)) => Pick::NotBefore(back),
            (None, None) => Pick::Never { auth: !self.empty },
        }
    }
}

/// The earlier of two times.
fn earlier(have: Option<Instant>, other: Instant) -> Option<Instant> {
    Some(have.map_or(other, |have| have.min(other)))
}

impl ProxyPool {
    /// Everybody, beginning with `start`.
    fn around(&self, start: usize) -> impl Iterator<Item = (usize, &Member)> {
        let (before, after) = self.members.split_at_checked(start).unwrap_or((&self.members, &[]));
        let index = |offset: usize| move |(at, member)| (at + offset, member);
        after.iter().enumerate().map(index(before.len())).chain(before.iter().enumerate())
    }

    /// Where everybody sits for this request, and what stands in the way of those who do not.
    pub(super) fn survey(&self, request: PickRequest<'_>, start: usize, now: Instant) -> Survey {
        let lenient = self.is_bench_needed(now);
        let mut survey = Survey::new(self.members.is_empty());
        for (index, member) in self.around(start) {
            match self.place(index, member, request, lenient, now) {
                Place::Seat(seat) => survey.seat(seat, index),
                Place::Busy { preferred } => {
                    survey.busy = true;
                    survey.preferred_is_busy |= preferred;
                }
                Place::Probing => survey.probing = true,
                Place::Paced { until, preferred } => {
                    survey.preferred_is_busy |= preferred;
                    survey.slot = earlier(survey.slot, until);
                }
                Place::Down(until) => survey.revival = earlier(survey.revival, until),
                Place::Refused => {}
            }
        }
        survey
    }

    /// The `place`-th of those who sit in `seat`.
    pub(super) fn nth_of(
        &self,
        place: usize,
        seat: usize,
        request: PickRequest<'_>,
        start: usize,
        now: Instant,
    ) -> Option<usize> {
        let lenient = self.is_bench_needed(now);
        self.around(start)
            .filter(|(index, member)| {
                self.place(*index, member, request, lenient, now) == Place::Seat(seat)
            })
            .nth(place)
            .map(|(index, _)| index)
    }

    /// Whether too few are above the floor to do without those below.
    fn is_bench_needed(&self, now: Instant) -> bool {
        let in_service = self.members.iter().filter(|member| !self.is_refused(member));
        let (mut count, mut healthy) = (0, 0);
        for member in in_service {
            count += 1;
            healthy += usize::from(member.health.standing(now) == Standing::Healthy);
        }
        healthy < usize::max(1, count / 10)
    }

    fn place(
        &self,
        index: usize,
        member: &Member,
        request: PickRequest<'_>,
        lenient: bool,
        now: Instant,
    ) -> Place {
        if self.is_refused(member) {
            return Place::Refused;
        }
        let tried = request.tried.contains(&index);
        let healthy = |preferred| {
            if self.is_busy(member) { Place::Busy { preferred } } else { Place::Seat(0) }
        };
        let place = match member.health.standing(now) {
            Standing::Down(until) => return Place::Down(until),
            Standing::Probing => return Place::Probing,
            Standing::Healthy => healthy(!tried),
            Standing::Benched if lenient => healthy(false),
            Standing::Benched if self.is_busy(member) => Place::Busy { preferred: false },
            Standing::Benched => Place::Seat(1),
            Standing::Due if self.is_busy(member) => Place::Busy { preferred: false },
            // The last attempt of a URL is too good for finding out about a proxy.
            Standing::Due => Place::Seat(if request.retry { 2 } else { 0 }),
        };
        let preferred = place == Place::Seat(0) && !tried;
        if matches!(place, Place::Seat(_))
            && let Some(until) = self.paced_until(member, now)
        {
            return Place::Paced { until, preferred };
        }
        match place {
            Place::Seat(seat) if tried => Place::Seat(seat + FIRST_TRIED),
            place => place,
        }
    }
}
