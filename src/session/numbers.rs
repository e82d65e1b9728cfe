//! Which session number an attempt goes under, where user names are templates.
//!
//! The number decides the exit, so this is where "another exit on a retry" is kept: an attempt that
//! is to leave by a fresh exit must not carry the number under which its URL failed. Whether the
//! worker keeps its number or the URL does, a new one is taken only when the old one is the one to
//! get away from; that a *different* worker goes on with the URL is change enough.

use crate::proxy::{Route, SessionPer};
use std::sync::atomic::{AtomicU64, Ordering};

/// The numbers that a worker and a URL hold.
#[derive(Debug)]
pub(super) struct Held<'a> {
    /// Of the session, and so of the worker.
    pub(super) worker: &'a mut Option<u64>,
    /// Under which the URL went last.
    pub(super) url: &'a mut Option<u64>,
}

/// Gives numbers out, each once in a run, from 1.
#[derive(Debug, Default)]
pub(super) struct Numbers(AtomicU64);

impl Numbers {
    fn next(&self) -> u64 {
        self.0.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// The way under the number that is due; a way through no template stays as it is.
    ///
    /// `anew` asks for a number that nobody holds, whatever the holder has.
    pub(super) fn place(
        &self,
        mut route: Route,
        per: Option<SessionPer>,
        held: &mut Held<'_>,
        anew: bool,
    ) -> Route {
        let is_template = route.proxy.as_ref().is_some_and(|proxy| proxy.is_template());
        let Some(per) = per.filter(|_| is_template) else { return route };
        let last = *held.url;
        let number = match per {
            SessionPer::Worker => *held.worker,
            SessionPer::Url => last,
            _ => None,
        };
        let number = number
            .filter(|number| !(anew || route.fresh && Some(*number) == last))
            .unwrap_or_else(|| self.next());
        *held.url = Some(number);
        match per {
            SessionPer::Worker => *held.worker = Some(number),
            // Nobody comes back to this identity, so its connection is of no further use.
            SessionPer::Request => route.keep_alive = false,
            SessionPer::Url => {}
        }
        // A kept connection of another number is another exit already.
        route.fresh = false;
        route.in_session(number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proxy::{Identity, ProxyUrl};
    use std::sync::Arc;

    fn route(proxy: &str, fresh: bool) -> Route {
        Route { fresh, ..Route::through(Arc::new(proxy.parse().unwrap())) }
    }

    const TEMPLATE: &str = "h:1:u-{n}:p";

    /// The number that a route carries.
    fn number(route: &Route) -> u64 {
        let proxy = route.proxy.as_ref().unwrap();
        let user = String::from_utf8(proxy.credentials().unwrap().0.to_vec()).unwrap();
        assert_eq!(route.identity, Identity::of(proxy));
        user.strip_prefix("u-").unwrap().parse().unwrap()
    }

    /// Places attempts of (worker, URL, retry) in turn.
    fn placed(per: SessionPer, attempts: &[(usize, usize, bool)]) -> Vec<u64> {
        let numbers = Numbers::default();
        let (mut workers, mut urls) = ([None; 4], [None; 4]);
        let mut go = |(worker, url, retry): &(usize, usize, bool)| {
            let mut held = Held { worker: &mut workers[*worker], url: &mut urls[*url] };
            number(&numbers.place(route(TEMPLATE, *retry), Some(per), &mut held, false))
        };
        attempts.iter().map(&mut go).collect()
    }

    #[test]
    fn a_worker_keeps_its_number_until_a_retry_leaves_it() {
        let attempts = [
            (0, 0, false),
            (1, 1, false),
            (0, 2, false),
            (0, 2, true),
            (0, 3, false),
            (1, 2, true),
        ];
        // The last one is a retry, but on a worker that leaves by another exit anyway.
        assert_eq!(placed(SessionPer::Worker, &attempts), [1, 2, 1, 3, 3, 2]);
    }

    #[test]
    fn a_url_keeps_its_number_over_workers_and_changes_it_on_a_retry() {
        let attempts = [
            (0, 0, false),
            (1, 0, false),
            (0, 1, false),
            (1, 0, true),
            (0, 0, false),
            (0, 1, true),
        ];
        assert_eq!(placed(SessionPer::Url, &attempts), [1, 1, 2, 3, 3, 4]);
    }

    #[test]
    fn every_request_has_its_own() {
        let attempts = [(0, 0, false), (0, 0, false), (0, 0, true), (1, 1, false)];
        assert_eq!(placed(SessionPer::Request, &attempts), [1, 2, 3, 4]);
    }

    #[test]
    fn what_is_no_template_stays_as_it_is() {
        let numbers = Numbers::default();
        let (mut worker, mut url) = (None, None);
        for (proxy, per) in [("h:1:u:p", Some(SessionPer::Url)), (TEMPLATE, None)] {
            let mut held = Held { worker: &mut worker, url: &mut url };
            let placed = numbers.place(route(proxy, true), per, &mut held, true);
            assert_eq!(placed.proxy.as_deref(), Some(&proxy.parse::<ProxyUrl>().unwrap()));
            assert!(placed.fresh && placed.keep_alive);
        }
        assert_eq!((worker, url), (None, None));
    }

    #[test]
    fn connections_are_kept_where_the_number_is() {
        let numbers = Numbers::default();
        for (per, keeps) in
            [(SessionPer::Worker, true), (SessionPer::Url, true), (SessionPer::Request, false)]
        {
            let mut held = Held { worker: &mut None, url: &mut None };
            let placed = numbers.place(route(TEMPLATE, true), Some(per), &mut held, false);
            assert_eq!((placed.keep_alive, placed.fresh), (keeps, false), "{per:?}");
        }
    }
}
