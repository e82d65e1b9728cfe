//! Credentials that each attempt makes anew, and the challenges of servers.
//!
//! A 401 with a challenge is half of an answer: the request goes out once more, within the same
//! attempt. That costs nothing of any budget, so it must not cost time either: both copies
//! together take no longer than one attempt may, and the promised worst case stays true. It is not
//! the sign of a fault either, so neither the host's throttles nor its circuit hear of it.
//!
//! DIFFERENCE(digest-status): a 401 alone is answered; requests answers every 4xx with a challenge,
//! a 429 too.
//! DIFFERENCE(digest-body): a body that can be read only once is not sent again, and the 401 is the
//! response; requests sends the request without it.

use super::attempt::Lost;
use super::state::Running;
use crate::error::Error;
use crate::message::digest::{Offer, is_answered};
use crate::message::{Auth, Prepared, apply};
use crate::proxy::Route;
use crate::rng::Rng;
use crate::session::live::Core;
use crate::transport::Incoming;

/// What becomes of a response that asks for credentials.
pub(super) enum Challenge {
    /// It does not, or nobody here could give any.
    None,
    /// It is the response, with this remark.
    Refused(&'static str),
    /// The request goes out again, and this is noted.
    Answered(&'static str),
}

impl Running {
    /// The request with the credentials of this attempt; `None` where it has them already, or
    /// where there are none before the server has spoken.
    pub(super) fn with_credentials(
        &self,
        core: &mut Core,
        route: &Route,
    ) -> Result<Option<Prepared>, Error> {
        let Some(auth) = &self.current.auth else { return Ok(None) };
        let mut request = self.current.clone();
        match auth {
            Auth::Digest(user, password) => {
                let Prepared { method, url, body, .. } = &self.current;
                let spaces = core.spaces.get_mut(&route.identity);
                let Some(space) = spaces.and_then(|spaces| spaces.of(url, user, password)) else {
                    return Ok(None);
                };
                match space.authorization(method.as_str(), url, body)? {
                    Some(field) => request.headers.insert("Authorization", field)?,
                    None => return Ok(None),
                }
            }
            Auth::Custom(custom) => apply(&**custom, &mut request)?,
            Auth::Basic(..) | Auth::Bearer(_) => {
                if let Some(field) = auth.header()? {
                    request.headers.insert("Authorization", field)?;
                }
            }
        }
        Ok(Some(request))
    }

    /// Decides whether a response is answered by another copy of the request.
    pub(super) fn heed_challenge(
        &mut self,
        core: &mut Core,
        route: &Route,
        incoming: &Incoming,
        copy: Lost,
    ) -> Challenge {
        let wanted = match &self.current.auth {
            Some(Auth::Digest(user, password)) => {
                let url = &self.current.url;
                if incoming.status != 401 {
                    if let Some(spaces) = core.spaces.get_mut(&route.identity) {
                        spaces.note_answer(url, user, password, &incoming.headers);
                    }
                    return Challenge::None;
                }
                let spaces = core.spaces.entry(route.identity).or_default();
                let challenge = match Offer::of(&incoming.headers) {
                    Offer::Usable(challenge) => challenge,
                    Offer::Unusable => return Challenge::Refused(UNUSABLE),
                    Offer::None => return Challenge::Refused(NO_DIGEST),
                };
                let stale = challenge.is_stale();
                if !is_answered(self.answers, stale) {
                    // They are not sent ahead again, where each time is counted against the user.
                    spaces.refused(url, user, password);
                    return Challenge::Refused(REFUSED);
                }
                spaces.challenged(url, user, password, *challenge, client_nonce(&mut core.rng));
                if stale { "its nonce was too old; answered with the new one" } else { ANSWERED }
            }
            Some(Auth::Custom(custom)) if matches!(incoming.status, 401 | 403 | 407) => {
                if self.answers > 0 {
                    return Challenge::Refused(REFUSED);
                }
                let asks = self.current.body.is_replayable()
                    && custom.handle_401(&self.current, incoming.status, &incoming.headers);
                if !asks {
                    return Challenge::None;
                }
                "sent again, as its credentials asked"
            }
            _ => return Challenge::None,
        };
        if !self.current.body.is_replayable() {
            return Challenge::Refused(ONE_SHOT);
        }
        if !self.has_time_after(copy) {
            return Challenge::Refused("the clocks of the attempt leave no time for an answer");
        }
        self.answers += 1;
        Challenge::Answered(wanted)
    }
}

const ANSWERED: &str = "its challenge was answered";
const REFUSED: &str = "the credentials were refused";
const NO_DIGEST: &str = "it asks for other credentials than Digest";
const UNUSABLE: &str = "nobody can answer its Digest challenge";
const ONE_SHOT: &str = "its challenge cannot be answered, as the body can be read only once";

/// 128 bits, in hexadecimal.
fn client_nonce(rng: &mut Rng) -> String {
    format!("{:016x}{:016x}", rng.bits(), rng.bits())
}
