//! The protection spaces that a session knows.

use super::{Challenge, Space, challenge};
use http::HeaderMap;
use url::Url;

/// How many are remembered; a run over many hosts must not grow with them.
const MOST: usize = 32;

/// The spaces of one identity, the last used at the end.
#[derive(Debug, Default)]
pub(crate) struct Spaces(Vec<Space>);

impl Spaces {
    /// The space whose credentials a request to `url` sends ahead.
    pub(crate) fn of(&mut self, url: &Url, user: &str, password: &str) -> Option<&mut Space> {
        let at = self.0.iter().rposition(|space| space.covers(url, user, password))?;
        self.0.get_mut(at..)?.rotate_left(1);
        self.0.last_mut()
    }

    /// Takes up the space of a challenge, in place of the same realm's before it.
    pub(crate) fn challenged(
        &mut self,
        url: &Url,
        user: &str,
        password: &str,
        challenge: Challenge,
        cnonce: String,
    ) {
        self.put(Space::new(url, user, password, challenge, cnonce));
    }

    /// Gives the space away whose credentials a request to `url` would send.
    pub(crate) fn take(&mut self, url: &Url, user: &str, password: &str) -> Option<Space> {
        let at = self.0.iter().rposition(|space| space.covers(url, user, password))?;
        Some(self.0.remove(at))
    }

    /// Takes up a space, in place of the same realm's before it.
    pub(crate) fn put(&mut self, space: Space) {
        self.0.retain(|have| {
            have.origin != space.origin
                || have.challenge.realm != space.challenge.realm
                || have.user != space.user
        });
        if self.0.len() >= MOST {
            self.0.remove(0);
        }
        self.0.push(space);
    }

    /// Forgets what was refused, so that it is not sent ahead again.
    pub(crate) fn refused(&mut self, url: &Url, user: &str, password: &str) {
        self.0.retain(|space| !space.covers(url, user, password));
    }

    /// Takes the nonce that an answer names for the next request.
    pub(crate) fn note_answer(
        &mut self,
        url: &Url,
        user: &str,
        password: &str,
        headers: &HeaderMap,
    ) {
        let Some(nonce) = challenge::next_nonce(headers) else { return };
        if let Some(space) = self.of(url, user, password) {
            space.challenge.nonce = nonce;
            space.used = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::Body;
    use crate::message::digest::Offer;
    use http::{HeaderValue, header};

    fn url(text: &str) -> Url {
        Url::parse(text).unwrap()
    }

    fn challenged(spaces: &mut Spaces, at: &str, challenge: &str) {
        let mut headers = HeaderMap::new();
        headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_str(challenge).unwrap());
        let Offer::Usable(challenge) = Offer::of(&headers) else { panic!("{challenge}") };
        spaces.challenged(&url(at), "u", "p", *challenge, "c".to_owned());
    }

    /// Nonce and count of what a request sends ahead.
    fn ahead(spaces: &mut Spaces, at: &str, user: &str) -> Option<(String, String)> {
        let field = spaces
            .of(&url(at), user, "p")?
            .authorization("GET", &url(at), &Body::Empty)
            .unwrap()
            .unwrap();
        let text = String::from_utf8(field).unwrap();
        let param = |name: &str| {
            let value = text.split(", ").find_map(|part| part.strip_prefix(name));
            value.unwrap_or_else(|| panic!("no {name} in {text}")).trim_matches('"').to_owned()
        };
        Some((param("nonce="), param("nc=")))
    }

    fn pair(nonce: &str, count: &str) -> Option<(String, String)> {
        Some((nonce.to_owned(), count.to_owned()))
    }

    #[test]
    fn a_nonce_is_counted_and_belongs_to_its_origin_and_user() {
        let mut spaces = Spaces::default();
        challenged(&mut spaces, "http://a.test/x", r#"Digest realm="r", nonce="one", qop="auth""#);
        assert_eq!(ahead(&mut spaces, "http://a.test/y?z", "u"), pair("one", "00000001"));
        assert_eq!(ahead(&mut spaces, "http://a.test/", "u"), pair("one", "00000002"));
        for elsewhere in ["http://b.test/", "https://a.test/", "http://a.test:81/"] {
            assert_eq!(ahead(&mut spaces, elsewhere, "u"), None, "{elsewhere}");
        }
        assert_eq!(ahead(&mut spaces, "http://a.test/", "somebody else"), None);

        challenged(&mut spaces, "http://a.test/x", r#"Digest realm="r", nonce="two", qop="auth""#);
        assert_eq!(ahead(&mut spaces, "http://a.test/", "u"), pair("two", "00000001"));
        spaces.refused(&url("http://a.test/"), "u", "p");
        assert_eq!(ahead(&mut spaces, "http://a.test/", "u"), None);
        assert!(spaces.0.is_empty());
    }

    #[test]
    fn a_domain_bounds_where_credentials_go_ahead_and_never_widens_it() {
        let mut spaces = Spaces::default();
        let domain = r#"Digest realm="r", nonce="n", qop="auth", domain="/in http://b.test/ http://a.test/also""#;
        challenged(&mut spaces, "http://a.test/in/1", domain);
        for (at, wanted) in [
            ("http://a.test/in/2", true),
            ("http://a.test/also?q", true),
            ("http://a.test/out", false),
            ("http://b.test/", false),
        ] {
            assert_eq!(ahead(&mut spaces, at, "u").is_some(), wanted, "{at}");
        }
    }

    #[test]
    fn realms_of_one_origin_stand_beside_each_other() {
        let mut spaces = Spaces::default();
        let of = |realm: &str| {
            format!(r#"Digest realm="{realm}", nonce="{realm}", qop="auth", domain="/{realm}""#)
        };
        challenged(&mut spaces, "http://a.test/r", &of("r"));
        challenged(&mut spaces, "http://a.test/s", &of("s"));
        for (path, count) in [("r", "00000001"), ("s", "00000001"), ("r", "00000002")] {
            assert_eq!(
                ahead(&mut spaces, &format!("http://a.test/{path}"), "u"),
                pair(path, count)
            );
        }
    }

    #[test]
    fn the_next_nonce_starts_to_count_anew() {
        let mut spaces = Spaces::default();
        challenged(&mut spaces, "http://a.test/", r#"Digest realm="r", nonce="one", qop="auth""#);
        assert_eq!(ahead(&mut spaces, "http://a.test/", "u"), pair("one", "00000001"));
        let mut headers = HeaderMap::new();
        let at = url("http://a.test/");
        spaces.note_answer(&at, "u", "p", &headers);
        assert_eq!(ahead(&mut spaces, "http://a.test/", "u"), pair("one", "00000002"));
        headers.insert("authentication-info", HeaderValue::from_static("nextnonce=\"two\""));
        spaces.note_answer(&at, "u", "p", &headers);
        assert_eq!(ahead(&mut spaces, "http://a.test/", "u"), pair("two", "00000001"));
    }

    #[test]
    fn what_is_remembered_is_bounded_and_the_least_recently_used_goes() {
        let mut spaces = Spaces::default();
        let at = |host: usize| format!("http://h{host}.test/");
        for host in 0..MOST {
            challenged(&mut spaces, &at(host), r#"Digest realm="r", nonce="n", qop="auth""#);
        }
        assert!(ahead(&mut spaces, &at(0), "u").is_some());
        challenged(&mut spaces, &at(MOST), r#"Digest realm="r", nonce="n", qop="auth""#);
        assert_eq!(spaces.0.len(), MOST);
        assert!(ahead(&mut spaces, &at(0), "u").is_some());
        assert!(ahead(&mut spaces, &at(1), "u").is_none());
    }

    #[test]
    fn nothing_of_a_space_is_shown_but_where_it_is() {
        let mut spaces = Spaces::default();
        challenged(&mut spaces, "http://a.test/x", r#"Digest realm="r", nonce="hunter2""#);
        assert_eq!(format!("{spaces:?}"), "Spaces([Space(http://a.test)])");
    }
}
