//! `WWW-Authenticate` and `Authentication-Info`: what servers say about Digest.
//!
//! The grammar of RFC 9110 11.6.1 lets a comma separate parameters as well as challenges, and a
//! field may stand several times. So a scheme is told from a parameter by the `=` behind it, and
//! everything in between is read as leniently as browsers and curl read it: blanks for commas,
//! blanks around `=`, a quote that is never closed, names in any case. Values are bytes: a realm
//! may be in any charset, and has to come back as it was.

use super::algorithm::Algorithm;
use http::{HeaderMap, header};

/// What a challenge may hold at most; a session remembers it.
const LONGEST: usize = 8 * 1024;

/// A Digest challenge that can be answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Challenge {
    pub(super) realm: Vec<u8>,
    pub(super) nonce: Vec<u8>,
    pub(super) opaque: Option<Vec<u8>>,
    pub(super) algorithm: Algorithm,
    /// The algorithm as the server spells it; `None` where it names none.
    pub(super) spelled: Option<Vec<u8>>,
    pub(super) qop: Qop,
    /// The nonce that was used is too old; the credentials may be right.
    pub(super) stale: bool,
    /// `charset=UTF-8`, by which a server says that it knows RFC 7616.
    pub(super) utf8: bool,
    pub(super) userhash: bool,
    /// Where credentials may be sent ahead; empty for everywhere at the origin.
    pub(super) domain: Vec<String>,
}

/// The quality of protection that is going to be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Qop {
    /// As in RFC 2069, which has none.
    None,
    Auth,
    /// With the hash of the body; only where the server takes nothing else, since the body has to
    /// be read for it.
    AuthInt,
}

/// What a response offers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Offer {
    /// Nothing about Digest.
    None,
    /// Challenges that nobody can answer.
    Unusable,
    /// The one to answer.
    Usable(Box<Challenge>),
}

impl Offer {
    /// The strongest of all challenges that can be answered; the first among equals.
    pub(crate) fn of(headers: &HeaderMap) -> Self {
        let mut offer = Self::None;
        for value in headers.get_all(header::WWW_AUTHENTICATE) {
            for (scheme, params) in challenges(value.as_bytes()) {
                if !scheme.eq_ignore_ascii_case(b"digest") {
                    continue;
                }
                let Some(challenge) = Challenge::of(&params) else {
                    if offer == Self::None {
                        offer = Self::Unusable;
                    }
                    continue;
                };
                match &offer {
                    Self::Usable(have) if have.algorithm.hash >= challenge.algorithm.hash => {}
                    _ => offer = Self::Usable(Box::new(challenge)),
                }
            }
        }
        offer
    }
}

impl Challenge {
    pub(crate) fn is_stale(&self) -> bool {
        self.stale
    }

    /// `None` without realm or nonce, and for an algorithm or `qop` that is not known.
    fn of(params: &Params) -> Option<Self> {
        let is = |name, wanted: &[u8]| {
            params.get(name).is_some_and(|value| value.eq_ignore_ascii_case(wanted))
        };
        if params.bytes() > LONGEST {
            return None;
        }
        let spelled = params.get("algorithm").map(<[u8]>::to_vec);
        let algorithm = match &spelled {
            Some(name) => Algorithm::parse(name)?,
            None => Algorithm::DEFAULT,
        };
        let domain = params.get("domain").unwrap_or_default();
        Some(Self {
            realm: params.get("realm")?.to_vec(),
            nonce: params.get("nonce")?.to_vec(),
            opaque: params.get("opaque").map(<[u8]>::to_vec),
            algorithm,
            spelled,
            qop: Qop::of(params.get("qop").unwrap_or_default())?,
            stale: is("stale", b"true"),
            utf8: is("charset", b"utf-8"),
            userhash: is("userhash", b"true"),
            domain: String::from_utf8_lossy(domain)
                .split_ascii_whitespace()
                .map(ToOwned::to_owned)
                .collect(),
        })
    }
}

impl Qop {
    /// Of the list that a server accepts.
    fn of(list: &[u8]) -> Option<Self> {
        let words = || list.split(|byte| b", \t".contains(byte)).filter(|word| !word.is_empty());
        let has = |wanted: &[u8]| words().any(|word| word.eq_ignore_ascii_case(wanted));
        if words().next().is_none() {
            Some(Self::None)
        } else if has(b"auth") {
            Some(Self::Auth)
        } else {
            has(b"auth-int").then_some(Self::AuthInt)
        }
    }
}

/// The nonce that the next request should use (RFC 7616 3.5).
pub(super) fn next_nonce(headers: &HeaderMap) -> Option<Vec<u8>> {
    let value = headers.get("authentication-info")?.as_bytes();
    let mut params = Params::default();
    // There is no scheme in front of these.
    Scanner(value).read_into(&mut params);
    params.get("nextnonce").filter(|nonce| (1..=LONGEST).contains(&nonce.len())).map(Into::into)
}

/// The parameters of one challenge, with the last of those that are repeated in force, as in
/// requests.
#[derive(Default)]
struct Params(Vec<(Vec<u8>, Vec<u8>)>);

impl Params {
    fn get(&self, name: &str) -> Option<&[u8]> {
        let same = |(have, _): &&(Vec<u8>, Vec<u8>)| have.eq_ignore_ascii_case(name.as_bytes());
        self.0.iter().rev().find(same).map(|(_, value)| value.as_slice())
    }

    fn bytes(&self) -> usize {
        self.0.iter().map(|(name, value)| name.len() + value.len()).sum()
    }
}

/// Each challenge of a field with its scheme, in order.
fn challenges(value: &[u8]) -> Vec<(Vec<u8>, Params)> {
    let mut found = Vec::new();
    let mut scanner = Scanner(value);
    // Parameters before any scheme belong to none.
    let mut next = scanner.read_into(&mut Params::default());
    while let Some(scheme) = next {
        let mut params = Params::default();
        next = scanner.read_into(&mut params);
        found.push((scheme, params));
    }
    found
}

/// What is left of a field.
struct Scanner<'a>(&'a [u8]);

impl Scanner<'_> {
    /// Reads parameters up to the next scheme, which it gives, or up to the end.
    fn read_into(&mut self, params: &mut Params) -> Option<Vec<u8>> {
        loop {
            self.skip(|byte| matches!(byte, b' ' | b'\t' | b','));
            if self.0.is_empty() {
                return None;
            }
            let name = self.take(is_token);
            if name.is_empty() || !self.at_word_end() {
                // Credentials of another scheme, or rubbish: nothing in it is a name.
                self.skip(|byte| !matches!(byte, b' ' | b'\t' | b','));
                continue;
            }
            let before = self.0;
            self.skip(is_blank);
            let Some((b'=', rest)) = self.0.split_first() else {
                self.0 = before;
                return Some(name.to_vec());
            };
            self.0 = rest;
            self.skip(is_blank);
            let value = match self.0.split_first() {
                Some((b'"', rest)) => {
                    self.0 = rest;
                    self.quoted()
                }
                _ => self.take(|byte| !matches!(byte, b' ' | b'\t' | b',')).to_vec(),
            };
            params.0.push((name.to_vec(), value));
        }
    }

    /// Whether a name may end here.
    fn at_word_end(&self) -> bool {
        matches!(self.0.first(), None | Some(b' ' | b'\t' | b',' | b'='))
    }

    /// The rest of a quoted string, with what was escaped.
    fn quoted(&mut self) -> Vec<u8> {
        let mut value = Vec::new();
        while let Some((byte, rest)) = self.0.split_first() {
            self.0 = rest;
            match byte {
                b'"' => break,
                b'\\' => {
                    if let Some((escaped, rest)) = rest.split_first() {
                        self.0 = rest;
                        value.push(*escaped);
                    }
                }
                byte => value.push(*byte),
            }
        }
        value
    }

    fn skip(&mut self, skipped: impl Fn(u8) -> bool) {
        self.take(skipped);
    }
}

impl<'a> Scanner<'a> {
    fn take(&mut self, taken: impl Fn(u8) -> bool) -> &'a [u8] {
        let end = self.0.iter().position(|byte| !taken(*byte)).unwrap_or(self.0.len());
        let (before, rest) = self.0.split_at(end);
        self.0 = rest;
        before
    }
}

fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t')
}

/// RFC 9110 5.6.2.
fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::digest::algorithm::Hash;
    use http::HeaderValue;
    use proptest::prelude::*;

    fn offer(lines: &[&[u8]]) -> Offer {
        let mut headers = HeaderMap::new();
        for line in lines {
            headers.append(header::WWW_AUTHENTICATE, HeaderValue::from_bytes(line).unwrap());
        }
        Offer::of(&headers)
    }

    fn usable(line: &str) -> Challenge {
        match offer(&[line.as_bytes()]) {
            Offer::Usable(challenge) => *challenge,
            other => panic!("{line}: {other:?}"),
        }
    }

    #[test]
    fn parameters_in_every_form_that_servers_send() {
        for line in [
            r#"Digest realm="r", nonce="n", opaque="o", qop="auth", stale=TRUE"#,
            r#"dIGEST REALM="r",NONCE="n",Opaque="o",qop=auth,stale="true""#,
            r#"Digest realm = "r" ,, nonce=	n , opaque=o qop="auth" stale=true,"#,
            r#", Digest realm="x", realm="r", nonce="n"opaque="o", qop="AUTH,auth-int", stale=true, x=y"#,
            r#"Digest nonce="n", realm="\r", qop="auth-int, auth", stale=true, opaque="o"#,
        ] {
            let challenge = usable(line);
            assert_eq!((&*challenge.realm, &*challenge.nonce), (&b"r"[..], &b"n"[..]), "{line}");
            assert_eq!(challenge.opaque.as_deref(), Some(&b"o"[..]), "{line}");
            assert_eq!((challenge.qop, challenge.stale), (Qop::Auth, true), "{line}");
        }
    }

    #[test]
    fn quoted_strings_hold_commas_equals_signs_escapes_and_any_byte() {
        let challenge = usable(r#"Digest realm="a, nonce=\"x\", \\ Digest b=c", nonce="==,="#);
        assert_eq!(challenge.realm, br#"a, nonce="x", \ Digest b=c"#);
        assert_eq!(challenge.nonce, b"==,=");
        assert_eq!((challenge.qop, challenge.spelled), (Qop::None, None));
        let latin = b"Digest realm=\"k\xf6ln\", nonce=\"\xff\"";
        let Offer::Usable(challenge) = offer(&[latin]) else { panic!() };
        assert_eq!((challenge.realm, challenge.nonce), (b"k\xf6ln".to_vec(), vec![0xff]));
    }

    #[test]
    fn the_strongest_of_all_lines_wins_and_the_first_among_equals() {
        let of =
            |name: &str, nonce: u8| format!(r#"Digest realm="r", algorithm={name}, nonce={nonce}"#);
        for (lines, hash, nonce) in [
            (vec![of("MD5", 1), of("SHA-256", 2)], Hash::Sha256, b'2'),
            (vec![of("SHA-256", 1), of("MD5", 2)], Hash::Sha256, b'1'),
            (
                vec![format!("{}, {}", of("MD5", 1), of("SHA-512-256", 2)), of("SHA-256", 3)],
                Hash::Sha512Of256,
                b'2',
            ),
            (vec![of("MD5-sess", 1), of("MD5", 2)], Hash::Md5, b'1'),
            (vec![of("TIGER", 1), of("MD5", 2), of("SHA-1", 3)], Hash::Md5, b'2'),
            (
                vec![
                    format!(r#"Basic realm="b", {}"#, of("MD5", 1)),
                    "Negotiate YWJj/Digest==".to_owned(),
                ],
                Hash::Md5,
                b'1',
            ),
            (vec![format!("NTLM, Negotiate oYG2==, {}, Bearer", of("MD5", 1))], Hash::Md5, b'1'),
        ] {
            let lines: Vec<&[u8]> = lines.iter().map(String::as_bytes).collect();
            let Offer::Usable(challenge) = offer(&lines) else { panic!("{lines:?}") };
            assert_eq!((challenge.algorithm.hash, challenge.nonce), (hash, vec![nonce]));
        }
    }

    #[test]
    fn what_cannot_be_answered_is_told_from_what_is_not_there() {
        for (line, wanted) in [
            ("", Offer::None),
            ("Basic realm=\"Digest realm=x, nonce=y\"", Offer::None),
            ("Negotiate abc/Digest", Offer::None),
            ("Digest", Offer::Unusable),
            ("Digest realm=r", Offer::Unusable),
            ("Digest nonce=n", Offer::Unusable),
            ("Digest realm=r, nonce=n, algorithm=SHA", Offer::Unusable),
            ("Digest realm=r, nonce=n, qop=\"auth-conf\"", Offer::Unusable),
        ] {
            assert_eq!(offer(&[line.as_bytes()]), wanted, "{line}");
        }
        let long = format!("Digest realm=r, nonce={}", "n".repeat(LONGEST));
        assert_eq!(offer(&[long.as_bytes()]), Offer::Unusable);
    }

    #[test]
    fn qop_is_auth_wherever_it_is_offered() {
        for (list, wanted) in [
            ("", Some(Qop::None)),
            (" , ", Some(Qop::None)),
            ("auth", Some(Qop::Auth)),
            ("auth-int,auth", Some(Qop::Auth)),
            ("auth-int , Auth", Some(Qop::Auth)),
            ("AUTH-INT", Some(Qop::AuthInt)),
            ("auth-conf,auth-int", Some(Qop::AuthInt)),
            ("auth-conf", None),
        ] {
            assert_eq!(Qop::of(list.as_bytes()), wanted, "{list}");
        }
    }

    #[test]
    fn the_next_nonce() {
        let next = |value: &'static str| {
            let mut headers = HeaderMap::new();
            headers.insert("authentication-info", HeaderValue::from_static(value));
            next_nonce(&headers)
        };
        assert_eq!(next(r#"rspauth="x", nextnonce="a\"b", nc=00000001"#), Some(b"a\"b".to_vec()));
        assert_eq!(next("nextnonce=n"), Some(b"n".to_vec()));
        for without in ["nextnonce=\"\"", "nc=1", "", "nextnonce"] {
            assert_eq!(next(without), None, "{without}");
        }
    }

    proptest! {
        #[test]
        fn any_field_is_read_to_its_end(
            bytes in prop::collection::vec(prop_oneof![
                4 => prop::sample::select(b"Digestralmnoc=\",\\ \t".to_vec()),
                1 => 0x80_u8..,
            ], 0..200),
        ) {
            if let Ok(value) = HeaderValue::from_bytes(&bytes) {
                let mut headers = HeaderMap::new();
                headers.insert(header::WWW_AUTHENTICATE, value.clone());
                headers.insert("authentication-info", value);
                let _ = Offer::of(&headers);
                let _ = next_nonce(&headers);
            }
        }

        #[test]
        fn a_quoted_value_comes_back_whatever_is_in_it(realm in "[ -~]{0,40}", nonce in "[ -~]{1,40}") {
            let quoted = |text: &str| text.replace('\\', "\\\\").replace('"', "\\\"");
            let line = format!("Digest realm=\"{}\",nonce=\"{}\"", quoted(&realm), quoted(&nonce));
            let challenge = usable(&line);
            prop_assert_eq!(challenge.realm, realm.as_bytes());
            prop_assert_eq!(challenge.nonce, nonce.as_bytes());
        }
    }
}
