//! What follows once there is a response: the word of the hooks, another hop, or the end.
//!
//! Hooks may put another response in the place of the one they were given, so whether there is a
//! redirect to follow is asked again where one of them has changed that. Without hooks nothing
//! here looks twice.

use super::Step;
use super::answer::{Next, can_follow};
use super::state::Running;
use crate::error::{Error, ErrorKind, Fault, Phase};
use crate::message::{Hooks, Prepared, RedirectRules, Request, Response, follow, is_redirect};
use crate::policy::Decision;
use crate::proxy::{Route, Verdict};
use crate::session::live::Session;
use http::header;
use std::time::Duration;

/// A response that the hooks have seen.
pub(super) struct Seen {
    pub(super) response: Response,
    /// Whether it redirects otherwise than before.
    pub(super) moved: bool,
}

impl Running {
    pub(super) fn hop(&mut self, route: &Route, next: Prepared, mut response: Response) -> Next {
        if !can_follow(&next) {
            let error = Error::new(
                ErrorKind::BodyNotReplayable,
                Phase::Send,
                Fault::Local,
                format!(
                    "status {} asks for the body again, and it can be read only once",
                    response.status()
                ),
            );
            self.end_course_with(&mut response);
            return Next::Step(self.end(error.with_response(response)), Verdict::Good);
        }
        self.hop_to(next, response);
        // Maps and the environment are asked again for each hop; a member of the pool covers all.
        Next::Hop { same_way: route.member.is_some() }
    }

    /// Gives the last response of a chain what came before it.
    fn end_course_with(&mut self, response: &mut Response) {
        let (hops, attempts) = response.course();
        (*hops, *attempts) = (std::mem::take(&mut self.hops), std::mem::take(&mut self.attempts));
    }

    /// Hands the response out, or raises it.
    pub(super) fn finish(
        &mut self,
        session: &Session,
        request: &Request,
        route: &Route,
        response: Response,
        raise: bool,
        wanted: Option<Duration>,
    ) -> Next {
        if raise {
            // urllib3 raises below requests' hooks.
            let error = Error::new(
                ErrorKind::RetriesExhausted,
                Phase::Headers,
                Fault::Target,
                format!("too many {} error responses", response.status()),
            );
            let error = error.with_retry_after(wanted).with_response(response);
            return Next::Step(self.end(error), Verdict::Good);
        }
        match self.hooked(session, request, response) {
            Ok(Seen { response, moved: true }) if self.follow_redirects => {
                self.replaced(session, request, route, response, false)
            }
            Ok(Seen { response, .. }) => {
                Next::Step(self.done(session, request, response), Verdict::Good)
            }
            Err(error) => Next::Step(self.end(error), Verdict::Good),
        }
    }

    fn done(&mut self, session: &Session, request: &Request, response: Response) -> Step {
        self.over = true;
        if self.follow_redirects || !response.is_redirect() {
            return Step::Done(response);
        }
        let rules = RedirectRules::of(session.settings(), &request.overrides, &self.retry);
        // A Location that leads nowhere is no error while nobody follows it.
        match follow(&self.current, response.status(), response.headers(), rules) {
            Ok(Some(mut next)) => {
                next.overrides = request.overrides.clone();
                Step::Done(response.with_next(next))
            }
            _ => Step::Done(response),
        }
    }

    /// Lets the hooks see a response.
    pub(super) fn hooked(
        &mut self,
        session: &Session,
        request: &Request,
        response: Response,
    ) -> Result<Seen, Error> {
        let (ours, its) = (&session.settings().hooks, &request.overrides.hooks);
        if !Hooks::see_responses(ours, its) {
            return Ok(Seen { response, moved: false });
        }
        let target = |response: &Response| {
            let headers = response.headers();
            let location = headers.get(header::LOCATION).cloned();
            is_redirect(response.status(), headers).then_some((response.status(), location))
        };
        let before = target(&response);
        let attempts = response.attempts().to_vec();
        match Hooks::on_response(ours, its, response) {
            Ok(mut response) => {
                let (_, own) = response.course();
                if own.is_empty() {
                    // One of the hook's own making is the last of the same course.
                    *own = attempts;
                }
                Ok(Seen { moved: target(&response) != before, response })
            }
            Err(error) => {
                if self.attempts.is_empty() {
                    self.attempts = attempts;
                }
                Err(error)
            }
        }
    }

    /// What a response leads to that redirects otherwise than the one that a hook was given;
    /// `charged` says that the retry policy has counted the redirect.
    pub(super) fn replaced(
        &mut self,
        session: &Session,
        request: &Request,
        route: &Route,
        mut response: Response,
        charged: bool,
    ) -> Next {
        let settings = session.settings();
        let rules = RedirectRules::of(settings, &request.overrides, &self.retry);
        let next = follow(&self.current, response.status(), response.headers(), rules);
        // The course so far is the flight's while it goes on, and the last response's in the end.
        let (hops, attempts) = response.course();
        let (from, into) = if matches!(next, Ok(Some(_))) {
            ((hops, attempts), (&mut self.hops, &mut self.attempts))
        } else {
            ((&mut self.hops, &mut self.attempts), (hops, attempts))
        };
        if !from.1.is_empty() {
            (*into.0, *into.1) = (std::mem::take(from.0), std::mem::take(from.1));
        }
        match next {
            Ok(None) => Next::Step(self.done(session, request, response), Verdict::Good),
            Err(error) => Next::Step(self.end(error.with_response(response)), Verdict::Good),
            Ok(Some(next)) => {
                let permitted =
                    charged || matches!(self.state.redirect(None), Decision::Retry { .. });
                if permitted && self.redirects < settings.max_redirects {
                    return self.hop(route, next, response);
                }
                self.end_course_with(&mut response);
                Next::Step(self.one_redirect_too_many(response), Verdict::Good)
            }
        }
    }

    pub(super) fn one_redirect_too_many(&mut self, response: Response) -> Step {
        let error = Error::new(
            ErrorKind::TooManyRedirects,
            Phase::Headers,
            Fault::Target,
            format!("more than {} redirects", self.redirects),
        );
        self.end(error.with_response(response))
    }
}
