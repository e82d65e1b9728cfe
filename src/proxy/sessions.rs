//! User names that choose an exit.
//!
//! Many gateways have one address and thousands of exits, and let the client say which of them it
//! wants to keep by a word in its user name: whoever comes as `anna-session-17` leaves by the same
//! exit as before, and `anna-session-18` by another. So a proxy of a list may be a template, with
//! `{n}` where the number stands, and [`SessionPer`] says who gets a number of their own.
//!
//! A template never reaches the wire. What does is the concrete proxy with its number, and that is
//! an identity like any other: cookies, sockets and TLS tickets of `anna-session-17` are not those
//! of `anna-session-18`. For the pool the template is one member with one credential: health, the
//! limits of parallel attempts and the 407 speak of the gateway, not of one of its exits.
//!
//! Numbers begin with 1 and are given out once in a run, so a run meets as many identities as it
//! asks for; what a session remembers of them is bounded.

use super::{Identity, ProxyUrl, Route};
use std::sync::Arc;

/// Where the number stands.
const PLACE: &[u8] = b"{n}";

/// Who gets a number of their own, where user names are templates.
#[non_exhaustive]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SessionPer {
    /// Each session, and so each worker of a run: it keeps its exit until a retry has to leave it.
    Worker,
    /// Each URL, with its redirects, on whichever worker.
    Url,
    /// Each attempt.
    Request,
}

impl ProxyUrl {
    /// Whether `{n}` stands in the user name or in the password.
    pub fn is_template(&self) -> bool {
        self.credentials().is_some_and(|(user, password)| has_place(user) || has_place(password))
    }

    /// Whether `{n}` stands in the user name, where no real one has it.
    pub fn has_template_user(&self) -> bool {
        self.credentials().is_some_and(|(user, _)| has_place(user))
    }

    /// The proxy with this number in place of each `{n}`; the same proxy where there is none.
    ///
    /// # Examples
    /// ```
    /// let gateway: longhaul::ProxyUrl = "gate.example:8000:anna-session-{n}:secret".parse()?;
    /// let third = gateway.with_session(3);
    /// assert_eq!(third.credentials(), Some((&b"anna-session-3"[..], &b"secret"[..])));
    /// # Ok::<(), longhaul::Error>(())
    /// ```
    #[must_use]
    pub fn with_session(&self, number: u64) -> Self {
        match self.credentials() {
            Some((user, password)) if self.is_template() => {
                let number = number.to_string();
                let credentials = (filled(user, &number), filled(password, &number));
                self.clone().with_credentials(credentials.0, credentials.1)
            }
            _ => self.clone(),
        }
    }
}

impl Route {
    /// The same way through the concrete proxy of this number, which is an identity of its own.
    pub(crate) fn in_session(mut self, number: u64) -> Self {
        if let Some(template) = &self.proxy {
            let concrete = template.with_session(number);
            self.identity = Identity::of(&concrete);
            self.proxy = Some(Arc::new(concrete));
        }
        self
    }
}

fn has_place(text: &[u8]) -> bool {
    text.windows(PLACE.len()).any(|window| window == PLACE)
}

fn filled(text: &[u8], number: &str) -> Vec<u8> {
    let mut result = Vec::with_capacity(text.len() + number.len());
    let mut rest = text;
    while let Some(at) = rest.windows(PLACE.len()).position(|window| window == PLACE) {
        let (before, after) = rest.split_at_checked(at).unwrap_or((rest, &[]));
        result.extend_from_slice(before);
        result.extend_from_slice(number.as_bytes());
        rest = after.get(PLACE.len()..).unwrap_or_default();
    }
    result.extend_from_slice(rest);
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_stand_where_the_place_was() {
        for (text, number, user, password) in [
            ("h:1:u-session-{n}:p", 7, "u-session-7", "p"),
            ("http://u-{n}:p@h:1", 1, "u-1", "p"),
            ("http://u-%7Bn%7D:p@h:1", 12, "u-12", "p"),
            ("socks5h://u:p_session-{n}_x@h:1", u64::MAX, "u", "p_session-18446744073709551615_x"),
            ("h:1:{n}{n}:{n}", 42, "4242", "42"),
            ("h:1:u{}{m}n}:p{n", 5, "u{}{m}n}", "p{n"),
        ] {
            let template: ProxyUrl = text.parse().unwrap();
            let concrete = template.with_session(number);
            let wanted = (user.as_bytes(), password.as_bytes());
            assert_eq!(concrete.credentials(), Some(wanted), "{text}");
            assert!(!concrete.is_template());
            assert_eq!(template.is_template(), template != concrete, "{text}");
        }
        let plain: ProxyUrl = "h:1".parse().unwrap();
        assert_eq!(plain.with_session(3), plain);
        assert!(!plain.is_template() && !plain.has_template_user());
        let password: ProxyUrl = "h:1:u:p{n}".parse().unwrap();
        assert!(password.is_template() && !password.has_template_user());
    }

    #[test]
    fn each_number_is_an_identity_and_none_is_shown() {
        let template = Arc::new("h:1:u-{n}:secret".parse::<ProxyUrl>().unwrap());
        let of = |number| Route::through(Arc::clone(&template)).in_session(number);
        assert_eq!(of(1).identity, of(1).identity);
        assert_ne!(of(1).identity, of(2).identity);
        assert_eq!(of(1).shown, of(2).shown);
        assert_eq!(format!("{:?}", of(1).proxy), "Some(http://***@h:1)");
    }
}
