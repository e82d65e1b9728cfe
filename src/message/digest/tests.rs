use super::*;
use crate::error::ErrorKind;
use http::{HeaderMap, HeaderValue, header};
use proptest::prelude::*;

fn offered(challenge: &[u8]) -> HeaderMap {
    let mut headers = HeaderMap::new();
    headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_bytes(challenge).unwrap());
    headers
}

struct Asked<'a> {
    challenge: &'a str,
    user: &'a str,
    password: &'a str,
    method: &'a str,
    url: &'a str,
    cnonce: &'a str,
}

impl Asked<'_> {
    fn with_body(&self, body: &Body) -> String {
        let url = Url::parse(self.url).unwrap();
        let field = build_digest_header(
            &offered(self.challenge.as_bytes()),
            (self.user, self.password),
            (self.method, &url, body),
            self.cnonce,
            0,
        );
        String::from_utf8(field.unwrap().unwrap()).unwrap()
    }

    fn answer(&self) -> String {
        self.with_body(&Body::Empty)
    }
}

const MUFASA: Asked<'_> = Asked {
    challenge: "",
    user: "Mufasa",
    password: "Circle of Life",
    method: "GET",
    url: "http://www.example.org/dir/index.html",
    cnonce: "f2/wE4q74E6zIJEtWaHKaf5wv/H5QzzpXusqGemxURZJ",
};

/// RFC 7616 3.9.1, of which each field stands there.
#[test]
fn the_example_of_rfc_7616_in_both_algorithms() {
    for (algorithm, response) in [
        ("MD5", "8ca523f5e9506fed4657c9700eebdbec"),
        ("SHA-256", "753927fa0e85d155564e2e272a28d1802ca10daf4496794697cf8db5856cb6c1"),
    ] {
        let challenge = format!(
            "Digest realm=\"http-auth@example.org\", qop=\"auth, auth-int\", \
             algorithm={algorithm}, nonce=\"7ypf/xlj9XXwfDPEoM4URrv/xwf94BcCAzFZH4GiTo0v\", \
             opaque=\"FQhe/qaU925kfnzjCev0ciny7QMkPqMAFRtzCUYo5tdS\""
        );
        let wanted = format!(
            "Digest username=\"Mufasa\", realm=\"http-auth@example.org\", \
             nonce=\"7ypf/xlj9XXwfDPEoM4URrv/xwf94BcCAzFZH4GiTo0v\", uri=\"/dir/index.html\", \
             response=\"{response}\", opaque=\"FQhe/qaU925kfnzjCev0ciny7QMkPqMAFRtzCUYo5tdS\", \
             algorithm={algorithm}, qop=auth, nc=00000001, \
             cnonce=\"f2/wE4q74E6zIJEtWaHKaf5wv/H5QzzpXusqGemxURZJ\""
        );
        assert_eq!(Asked { challenge: &challenge, ..MUFASA }.answer(), wanted);
    }
}

/// RFC 7616 3.9.2 as erratum 4897 corrects it: the RFC itself shows SHA-512 cut to 256 bits.
#[test]
fn a_hashed_user_name_beyond_ascii() {
    let challenge = "Digest realm=\"api@example.org\", qop=\"auth\", algorithm=SHA-512-256, \
                     nonce=\"5TsQWLVdgBdmrQ0XsxbDODV+57QdFR34I9HAbC/RVvkK\", \
                     opaque=\"HRPCssKJSGjCrkzDg8OhwpzCiGPChXYjwrI2QmXDnsOS\", \
                     charset=UTF-8, userhash=true";
    let asked = Asked {
        challenge,
        user: "J\u{e4}s\u{f8}n Doe",
        password: "Secret, or not?",
        url: "http://api.example.org/doe.json",
        cnonce: "NTg6RKcb9boFIAS3KrFK9BGeh+iDa/sm6jUMp2wds69v",
        ..MUFASA
    };
    let response = "response=\"3798d4131c277846293534c3edc11bd8a5e4cdcbff78b05db9d95eeb1cec68a5\"";
    let answer = asked.answer();
    assert!(answer.contains(response), "{answer}");
    assert!(answer.ends_with(", userhash=true"), "{answer}");
    let hashed = "username=\"793263caabb707a56211940d90411ea4a575adeccb7e360aeb624ed06ece9b0b\"";
    assert!(answer.contains(hashed), "{answer}");

    // Without the hash the name is sent, by which the response does not change.
    let named = challenge.replace(", userhash=true", "");
    let answer = Asked { challenge: &named, ..asked }.answer();
    assert!(
        answer.starts_with("Digest username*=UTF-8''J%C3%A4s%C3%B8n%20Doe, realm="),
        "{answer}"
    );
    assert!(answer.contains(response) && !answer.contains("userhash"), "{answer}");
    let old = named.replace(", charset=UTF-8", "");
    let answer = Asked { challenge: &old, ..asked }.answer();
    assert!(answer.starts_with("Digest username=\"J\u{e4}s\u{f8}n Doe\", realm="), "{answer}");
}

/// RFC 2617 3.5, and RFC 2069 2.4 with the response that its erratum 749 calculates.
#[test]
fn the_examples_of_the_older_rfcs() {
    let challenge = "Digest realm=\"testrealm@host.com\", qop=\"auth,auth-int\", \
                     nonce=\"dcd98b7102dd2f0e8b11d0f600bfb0c093\", \
                     opaque=\"5ccc069c403ebaf9f0171e9517f40e41\"";
    let url = "http://www.nowhere.org/dir/index.html";
    let asked = Asked { challenge, password: "Circle Of Life", url, cnonce: "0a4f113b", ..MUFASA };
    assert_eq!(
        asked.answer(),
        "Digest username=\"Mufasa\", realm=\"testrealm@host.com\", \
         nonce=\"dcd98b7102dd2f0e8b11d0f600bfb0c093\", uri=\"/dir/index.html\", \
         response=\"6629fae49393a05397450978507c4ef1\", \
         opaque=\"5ccc069c403ebaf9f0171e9517f40e41\", qop=auth, nc=00000001, cnonce=\"0a4f113b\""
    );
    let challenge = challenge.replace("qop=\"auth,auth-int\", ", "");
    let asked = Asked { challenge: &challenge, password: "CircleOfLife", ..asked };
    assert_eq!(
        asked.answer(),
        "Digest username=\"Mufasa\", realm=\"testrealm@host.com\", \
         nonce=\"dcd98b7102dd2f0e8b11d0f600bfb0c093\", uri=\"/dir/index.html\", \
         response=\"1949323746fe6a43ef61f9606e7febea\", \
         opaque=\"5ccc069c403ebaf9f0171e9517f40e41\""
    );
}

/// Calculated by hand from RFC 7616 3.4.1 to 3.4.3, with Python's hashlib.
#[test]
fn sessions_and_the_hash_of_the_body() {
    let of = |rest: &str| format!("Digest realm=\"r\", nonce=\"n\", {rest}");
    let asked =
        Asked { user: "u", password: "p", method: "POST", url: "http://h/a?b=c d", ..MUFASA };
    let response = |rest: &str, body: Body| {
        let challenge = of(rest);
        let answer = Asked { challenge: &challenge, cnonce: "c", ..asked }.with_body(&body);
        let (_, rest) = answer.split_once("response=\"").unwrap();
        assert!(answer.contains("uri=\"/a?b=c%20d\""), "{answer}");
        rest.split('"').next().unwrap().to_owned()
    };
    for (rest, body, wanted) in [
        ("qop=auth, algorithm=MD5-sess", "", "20b85a11c76fe69cbd2847c65ef6f4ca"),
        (
            "qop=auth, algorithm=SHA-256-SESS",
            "",
            "438da8836a34e0a5b0d0f6f294c56efb6e2efa1fd3231ab80438b61ef6c50484",
        ),
        (
            "qop=auth, algorithm=SHA-512",
            "",
            "0ae7b9b5d42c15658737eaeb59ef122583d5d389645cb83e7e7f6b0894efe73bad1ed88ebc7f7c56fcb726b6b177caa9c7be14ae02868bd80ad159d5622ae67f",
        ),
        ("qop=\"auth-int\"", "hello", "09db309f32b77675fd2815db76757f05"),
        (
            "qop=auth-int, algorithm=SHA-256-sess",
            "hello",
            "b5a946c2fba4d210ad88aedebd21d54920e47ea26c1cd34325506b9be9feaee2",
        ),
    ] {
        assert_eq!(response(rest, body.into()), wanted, "{rest}");
    }
    let reader = || Ok((Box::new(&b"hello"[..]) as Box<dyn std::io::Read + Send>, None));
    assert_eq!(
        response("qop=auth-int", Body::replayable(reader)),
        response("qop=auth-int", "hello".into())
    );
    // A session without qop has to tell the nonce of the client all the same.
    let challenge = of("algorithm=MD5-sess");
    let answer = Asked { challenge: &challenge, cnonce: "c", ..asked }.answer();
    assert!(answer.ends_with("algorithm=MD5-sess, cnonce=\"c\""), "{answer}");
}

#[test]
fn a_body_that_cannot_be_hashed_is_an_error_and_is_left_alone() {
    let url = Url::parse("http://h/").unwrap();
    let body = Body::reader(&b"once"[..], None);
    let headers = offered(b"Digest realm=r, nonce=n, qop=auth-int");
    let error = build_digest_header(&headers, ("u", "p"), ("POST", &url, &body), "c", 0);
    assert_eq!(error.unwrap_err().kind(), ErrorKind::BodyNotReplayable);
    assert!(body.open().is_ok());
}

#[test]
fn what_is_quoted_is_escaped_and_bytes_come_back() {
    let url = Url::parse("http://h/").unwrap();
    let headers = offered(b"Digest realm=\"\\\"a\\\\b\\\" \xff\", nonce=\"\\n\", opaque=\"\"");
    let asked = ("GET", &url, &Body::Empty);
    let field = build_digest_header(&headers, ("a\"b", "p"), asked, "c", 0).unwrap().unwrap();
    let start =
        b"Digest username=\"a\\\"b\", realm=\"\\\"a\\\\b\\\" \xff\", nonce=\"n\", uri=\"/\"";
    assert!(field.starts_with(start), "{}", String::from_utf8_lossy(&field));
    assert!(field.ends_with(b", opaque=\"\""), "{}", String::from_utf8_lossy(&field));
}

#[test]
fn a_nonce_is_used_up_rather_than_counted_from_the_start() {
    let url = Url::parse("http://h/").unwrap();
    let headers = offered(b"Digest realm=r, nonce=n, qop=auth");
    let at =
        |uses| build_digest_header(&headers, ("u", "p"), ("GET", &url, &Body::Empty), "c", uses);
    let last = String::from_utf8(at(u32::MAX - 1).unwrap().unwrap()).unwrap();
    assert!(last.contains("nc=ffffffff"), "{last}");
    assert_eq!(at(u32::MAX).unwrap(), None);
}

#[test]
fn one_answer_and_one_more_for_a_nonce_that_was_too_old() {
    for (answers, stale, wanted) in
        [(0, false, true), (0, true, true), (1, false, false), (1, true, true), (2, true, false)]
    {
        assert_eq!(is_answered(answers, stale), wanted, "{answers} {stale}");
    }
}

proptest! {
    /// Whatever a server says, what comes of it can stand in a field.
    #[test]
    fn an_answer_is_a_field(
        realm in prop::collection::vec(0x20_u8.., 0..60),
        user in "\\PC{0,20}",
        algorithm in prop::sample::select(vec!["MD5", "MD5-sess", "SHA-256", "SHA-512-256", "SHA-512"]),
        more in prop::sample::select(vec!["", ", charset=UTF-8", ", userhash=true", ", qop=auth"]),
    ) {
        let mut line = format!("Digest nonce=n, algorithm={algorithm}{more}, realm=\"").into_bytes();
        line.extend_from_slice(&realm);
        if HeaderValue::from_bytes(&line).is_ok() {
            let url = Url::parse("http://h/p?q").unwrap();
            let asked = ("GET", &url, &Body::Empty);
            let field = build_digest_header(&offered(&line), (&user, "p"), asked, "c", 0);
            prop_assert!(HeaderValue::from_bytes(&field.unwrap().unwrap()).is_ok());
        }
    }
}
